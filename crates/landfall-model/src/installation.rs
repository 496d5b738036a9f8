//! Installations: dependency folders such as `node_modules` or `.venv` that a verification copies from the base instead of
//! installing them again. Decides when a copy is as good as a run of the command.

use crate::gaming::{ProtectedInput, is_input_path};
use crate::gate::{Outcome, Seen, weigh};

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
        places.any(|place| overlaps(path, place)) || is_input_path(path, inputs)
    };
    !changed.into_iter().any(concerns)
}

/// Whether a copy of `folders` stands for runs of the commands that installed them. All passed, and none ran a test. They left
/// nothing elsewhere, and no file or link in place of a folder. `left` names what is in the checkout besides the files of the
/// commit; a folder ends with a slash.
#[must_use]
pub fn is_copyable_installation(runs: &[Seen], left: &[String], folders: &[&str]) -> bool {
    let is_inside =
        |path: &str, folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
    runs.iter().all(|seen| weigh(seen, None, None) == Outcome::Pass && seen.tests.is_none())
        && left.iter().all(|path| folders.iter().any(|folder| is_inside(path, folder)))
}

/// Whether one of two paths is the other, or is inside of it. Letter case is ignored, as some disks do.
fn overlaps(one: &str, other: &str) -> bool {
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
        let seen = |exit, tests| Seen { exit: Some(exit), timed_out: false, tests, is_denied: false };
        let copyable = |seen: Seen, left: &[&str]| {
            let left: Vec<String> = left.iter().map(|&path| path.to_owned()).collect();
            is_copyable_installation(&[seen], &left, &["node_modules", "a/.venv"])
        };
        assert!(copyable(seen(0, None), &["node_modules/", "a/.venv/bin/"]));
        assert!(!copyable(seen(1, None), &["node_modules/"]));
        assert!(!copyable(seen(0, Some(3)), &["node_modules/"]));
        assert!(!copyable(seen(0, None), &["node_modules/", "dist/"]));
        assert!(!copyable(seen(0, None), &["node_modules.old/"]));
        assert!(!copyable(seen(0, None), &["a/"]));
        assert!(!copyable(seen(0, None), &["node_modules"]), "a file or a link");
    }
}
