//! Installations: dependency folders such as `node_modules` or `.venv` that a verification copies from the base instead of
//! installing them again. Decides when a copy is as good as a run of the command.

use crate::cache::CACHE_COPY_MAX;
use crate::gaming::{ProtectedInput, is_input_path};
use crate::gate::{CheckOutcome, CommandExit, compute_check_outcome};

/// How long a copy of an installation is used. Afterwards the command runs again: something outside of the project may have
/// changed, such as an interpreter that the installation links to.
pub const INSTALLATION_AGE_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long an installation is not tried again after its commands failed on the base. Each verification would wait for the same
/// failure; its cause, the network perhaps, may be gone soon.
pub const INSTALLATION_RETRY_MS: u64 = 5 * 60 * 1_000;

/// Whether a change leaves an installation as it is: neither what it is made from, nor anything in its folders, nor the files
/// that decide what its commands do.
pub fn keeps_installation<'a>(
    changed: impl IntoIterator<Item = &'a str>,
    folders: &[&str],
    sources: &[&str],
    inputs: &[ProtectedInput],
) -> bool {
    let concerns = |path: &str| {
        let mut places =
            folders.iter().chain(sources).copied().chain(inputs.iter().map(|input| input.path.as_str()));
        places.any(|place| paths_overlap(path, place)) || is_input_path(path, inputs)
    };
    !changed.into_iter().any(concerns)
}

/// A folder that commands were to install, as it is on disk afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledFolder {
    /// Its path in the checkout.
    pub path: String,
    /// What is there.
    pub content: InstalledContent,
}

/// What is at the path of an installed folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstalledContent {
    /// Nothing.
    Absent,
    /// A folder that is reached without links.
    Folder {
        /// Where the links in it lead.
        links: Vec<InstalledLink>,
        /// How many files it has, as far as they were counted.
        files: u64,
        /// How many bytes these have.
        bytes: u64,
        /// Whether a copy shares the content on disk.
        shares_content: bool,
    },
    /// A file or a link, here or in place of a folder above.
    Other,
}

/// Where a link in an installation leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledLink {
    /// Into the checkout.
    Checkout,
    /// To a file outside that every verification finds.
    Outside,
    /// To the layer over the user's caches that this verification alone has.
    CacheLayer,
    /// Nowhere.
    Nowhere,
}

/// Whether a copy of `folders` stands for runs of the commands that installed them. All passed, and none ran a test. They left
/// nothing elsewhere, and each folder can be copied. `left` names what is in the checkout besides the files of the
/// commit; a folder ends with a slash.
#[must_use]
pub fn is_copyable_installation(runs: &[CommandExit], left: &[String], folders: &[InstalledFolder]) -> bool {
    let is_inside = |path: &str, folder: &InstalledFolder| {
        path.strip_prefix(folder.path.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    runs.iter()
        .all(|seen| compute_check_outcome(seen, None, None) == CheckOutcome::Pass && seen.tests.is_none())
        && left.iter().all(|path| folders.iter().any(|folder| is_inside(path, folder)))
        && folders.iter().all(|folder| is_copyable_folder(&folder.content))
}

/// Whether a copy has all that the commands made, and costs little. A tool may install elsewhere, such as `uv` a Python to its
/// cache: later verifications do not get the layer over the cache that has it.
fn is_copyable_folder(content: &InstalledContent) -> bool {
    match content {
        InstalledContent::Absent => true,
        InstalledContent::Other => false,
        InstalledContent::Folder { links, files, bytes, shares_content } => {
            let is_small = *files <= CACHE_COPY_MAX.files && *bytes <= CACHE_COPY_MAX.bytes;
            let is_lasting = |link: &InstalledLink| match link {
                InstalledLink::Checkout | InstalledLink::Outside => true,
                InstalledLink::CacheLayer | InstalledLink::Nowhere => false,
            };
            links.iter().all(is_lasting) && (is_small || *shares_content)
        }
    }
}

/// Whether one of two paths is the other, or is inside of it. Letter case is ignored, as some disks do.
fn paths_overlap(one: &str, other: &str) -> bool {
    let parts = |path: &str| path.split('/').map(str::to_lowercase).collect::<Vec<_>>();
    let (one, other) = (parts(one), parts(other));
    let length = one.len().min(other.len());
    one[..length] == other[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaming::InputScope;

    #[test]
    fn a_change_of_a_source_or_in_a_folder_needs_an_installation_of_its_own() {
        let keeps = |changed: &[&str]| {
            keeps_installation(
                changed.iter().copied(),
                &["node_modules", "web/node_modules"],
                &["package.json", "patches"],
                &["install.sh", "ci/*.sh"].map(|path| ProtectedInput {
                    path: path.to_owned(),
                    scope: InputScope::WholeFile,
                    used_by: "the check".to_owned(),
                }),
            )
        };
        assert!(keeps(&[]));
        assert!(keeps(&["src/index.js", "web/package.json", "package.json.md", "src/install.sh", "ci/a.py"]));
        for changed in [
            "package.json",
            "patches/jest.patch",
            "node_modules/jest/index.js",
            "web",
            "Package.JSON",
            "install.sh",
            "ci/fetch.sh",
        ] {
            assert!(!keeps(&["README.md", changed]), "{changed}");
        }
    }

    #[test]
    fn only_a_whole_installation_without_tests_is_copied() {
        let seen = |exit, tests| CommandExit { exit: Some(exit), timed_out: false, tests, is_denied: false };
        let copyable = |seen: CommandExit, left: &[&str]| {
            let left: Vec<String> = left.iter().map(|&path| path.to_owned()).collect();
            let folders = ["node_modules", "a/.venv"].map(|path| small_folder(path, Vec::new()));
            is_copyable_installation(&[seen], &left, &folders)
        };
        assert!(copyable(seen(0, None), &["node_modules/", "a/.venv/bin/"]));
        assert!(!copyable(seen(1, None), &["node_modules/"]));
        assert!(!copyable(seen(0, Some(3)), &["node_modules/"]));
        assert!(!copyable(seen(0, None), &["node_modules/", "dist/"]));
        assert!(!copyable(seen(0, None), &["node_modules.old/"]));
        assert!(!copyable(seen(0, None), &["a/"]));
        assert!(!copyable(seen(0, None), &["node_modules"]), "a file or a link");
    }

    fn small_folder(path: &str, links: Vec<InstalledLink>) -> InstalledFolder {
        let content = InstalledContent::Folder { links, files: 2, bytes: 10, shares_content: false };
        InstalledFolder { path: path.to_owned(), content }
    }

    #[test]
    fn only_a_folder_that_lasts_and_costs_little_is_copied() {
        use InstalledLink::{CacheLayer, Checkout, Nowhere, Outside};
        let copyable = |content: InstalledContent| {
            let deps = InstalledFolder { path: "deps".to_owned(), content };
            is_copyable_installation(&[], &[], &[small_folder("other", Vec::new()), deps])
        };
        assert!(copyable(InstalledContent::Absent), "the commands made none");
        assert!(!copyable(InstalledContent::Other));
        let linked = |links: &[InstalledLink]| small_folder("deps", links.to_vec()).content;
        assert!(copyable(linked(&[Checkout, Outside])));
        assert!(!copyable(linked(&[Checkout, CacheLayer])), "later verifications have another layer");
        assert!(!copyable(linked(&[Nowhere])));
        let sized = |files, bytes, shares_content| InstalledContent::Folder {
            links: Vec::new(),
            files,
            bytes,
            shares_content,
        };
        let max = CACHE_COPY_MAX;
        assert!(copyable(sized(max.files, max.bytes, false)));
        for (files, bytes) in [(max.files + 1, 1), (1, max.bytes + 1)] {
            assert!(!copyable(sized(files, bytes, false)));
            assert!(copyable(sized(files, bytes, true)), "the copy shares the content");
        }
    }
}
