//! Copies of what the first commands of a verification install, such as `node_modules` or `.venv`.
//!
//! Each lane has one installation, because tools write the path of the checkout into what they install. Only commits of the base
//! fill it, in a checkout that is made anew for them, and each verification gets a copy. So what the check of one candidate writes
//! reaches no other one. A lane is deleted after a power cut, and its installation with it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use landfall_host::disk::remove_tree;
use landfall_host::git::{GitError, IgnoredFilesPolicy};
use landfall_host::tree_copy::{TreeSize, can_clone, copy_tree, list_links, measure_tree};
use landfall_model::cache::CACHE_COPY_MAX;
use landfall_model::gaming::{ProtectedInput, is_input_path};
use landfall_model::gate::{CheckOutcome, CommandExit, CommandResult, compute_check_outcome};
use landfall_model::installation::{
    INSTALLATION_AGE_MAX_MS, INSTALLATION_RETRY_MS, InstalledContent, InstalledFolder, InstalledLink,
    is_copyable_installation, keeps_installation,
};

use crate::digests::{digest_text, environment_of};
use crate::environment::variable;
use crate::gate::VerificationRun;
use crate::settings::{Confinement, Installation, VerifyCommand};
use crate::test_evidence::inputs_of;

/// What a lane's installation was made from; beside its folders. It is written last.
const KEY: &str = "key";
/// Marks an installation that cannot be copied, for instance because its commands run tests.
const UNUSABLE: &str = "unusable";
/// Marks an installation whose commands failed on the base.
const FAILED: &str = "failed";

/// How many of the first commands need not run, since what they install was copied to the checkout.
#[derive(Debug, Default)]
pub(crate) struct CopiedInstallation {
    pub commands: usize,
}

/// The result of a command that need not run.
pub(crate) fn copied_result(command: &VerifyCommand) -> CommandResult {
    CommandResult {
        name: command.name.clone(),
        command: command.run.clone(),
        required: command.required,
        outcome: CheckOutcome::Pass,
        exit: None,
        took_ms: 0,
        limit_ms: command.timeout_ms,
        tests: None,
        excerpt: String::new(),
        caps: command.caps,
        denied: Vec::new(),
        copied_from_base: true,
    }
}

/// Checks the work of `gate` out and copies what its first commands would install, if the base has the same. The lane gets its
/// installation at the first use. None: the engine was told to stop.
pub(crate) fn copy_installation(gate: &VerificationRun<'_>) -> Result<Option<CopiedInstallation>, GitError> {
    let nothing = Ok(Some(CopiedInstallation::default()));
    let commands = gate.section.installing_commands();
    // Without a sandbox a check could write to the installation itself. Ignored files that stay have what they need.
    let is_open = gate.site.settings.run.sandbox == Confinement::Off;
    if commands.is_empty() || is_open || gate.section.keep_ignored {
        return nothing;
    }
    if commands.len() == gate.section.commands.len() {
        return nothing; // a verification in which no command runs would prove nothing
    }
    let store = &gate.site.store;
    if store.tree_of(gate.base)? == store.tree_of(gate.merged)? {
        return nothing; // the base is proved without a copy of itself
    }
    let list = |part: fn(&Installation) -> &Vec<String>| -> Vec<&str> {
        commands.iter().flat_map(|(_, installs)| part(installs)).map(String::as_str).collect()
    };
    let folders = list(|installs| &installs.folders);
    let sources = list(|installs| &installs.sources);
    let changed = store.diff_names(gate.base, gate.merged)?;
    let changed: Vec<String> =
        changed.iter().map(|name| String::from_utf8_lossy(&name.path).into_owned()).collect();
    let inputs = inputs_of(gate.site, gate.base, commands.iter().map(|(command, _)| *command))?;
    if !keeps_installation(changed.iter().map(String::as_str), &folders, &sources, &inputs) {
        return nothing;
    }
    let place = gate.lane.installation_path();
    let key = installation_key(gate, &commands, &sources, &inputs)?;
    let filled = match find_installation(&place, &key) {
        Some(found) => found,
        None => match fill_installation(gate, &commands, &folders, &place, &key)? {
            Some(filled) => filled,
            None => return Ok(None),
        },
    };
    if filled != InstallationState::Usable {
        return nothing;
    }
    let checkout = gate.lane.check_out_commit(gate.merged, IgnoredFilesPolicy::Remove)?;
    let copied = folders
        .iter()
        .enumerate()
        .try_for_each(|(number, folder)| copy_into(&place.join(number.to_string()), &checkout.path, folder));
    // The first command that runs instead begins with a clean checkout.
    Ok(Some(CopiedInstallation { commands: if copied.is_ok() { commands.len() } else { 0 } }))
}

/// What a lane has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstallationState {
    Usable,
    Unusable,
    /// Its commands failed on the base a short while ago.
    Failed,
}

/// The installation of `key`, if the lane has it and it is not too old.
fn find_installation(place: &Path, key: &str) -> Option<InstallationState> {
    let file = place.join(KEY);
    let age = file.metadata().ok()?.modified().ok()?.elapsed().ok()?;
    let is_marked = |mark: &str| place.join(mark).exists();
    let (filled, age_max_ms) = match (is_marked(FAILED), is_marked(UNUSABLE)) {
        (true, _) => (InstallationState::Failed, INSTALLATION_RETRY_MS),
        (false, true) => (InstallationState::Unusable, INSTALLATION_AGE_MAX_MS),
        (false, false) => (InstallationState::Usable, INSTALLATION_AGE_MAX_MS),
    };
    let is_current = age.as_millis() <= u128::from(age_max_ms) && std::fs::read_to_string(&file).ok()? == key;
    is_current.then_some(filled)
}

/// What decides whether an installation can be used: the commands, what they are made from on the base, the checkout that they
/// are made for, and the tools.
fn installation_key(
    gate: &VerificationRun<'_>,
    commands: &[(&VerifyCommand, &Installation)],
    sources: &[&str],
    inputs: &[ProtectedInput],
) -> Result<String, GitError> {
    let mut text = format!("{:?} {:?}\n", gate.lane.path(), gate.site.settings.run.sandbox);
    for (command, installs) in commands {
        text += &format!("{:?} {:?} {:?}\n", command.run, installs.folders, find_tools(gate, &command.run));
    }
    let (patterns, files): (Vec<&str>, Vec<&str>) =
        inputs.iter().map(|input| input.path.as_str()).partition(|path| path.contains('*'));
    let mut files: Vec<String> = sources.iter().copied().chain(files).map(str::to_owned).collect();
    if !patterns.is_empty() {
        files.extend(
            gate.site.store.paths_of(gate.base)?.into_iter().filter(|path| is_input_path(path, inputs)),
        );
    }
    for file in files {
        text += &format!("{file:?} {:?}\n", gate.site.store.object_at(gate.base, file.as_bytes())?);
    }
    text += environment_of(&gate.site.env).as_str();
    Ok(digest_text(&text).as_str().to_owned())
}

/// The programs that a command line may use, with what changes if another version is installed.
fn find_tools(gate: &VerificationRun<'_>, line: &str) -> Vec<(PathBuf, u64, i64)> {
    // What is run in the end by tools that are scripts themselves.
    const INTERPRETERS: [&str; 3] = ["node", "python3", "python"];
    let path = variable(&gate.site.env, "PATH");
    let words = line.split(|c: char| c.is_whitespace() || "&|;()".contains(c)).chain(INTERPRETERS);
    let words = words.filter(|word| !word.is_empty() && !word.contains('/'));
    let find = |word: &str| {
        let found = std::env::split_paths(path.unwrap_or(OsStr::new(""))).map(|folder| folder.join(word));
        let program = found.into_iter().find_map(|file| file.canonicalize().ok())?;
        let meta = program.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((program, meta.len(), meta.mtime()))
    };
    words.filter_map(find).collect()
}

/// Runs the commands on the base in the lane and keeps what they install. None: the engine was told to stop.
fn fill_installation(
    gate: &VerificationRun<'_>,
    commands: &[(&VerifyCommand, &Installation)],
    folders: &[&str],
    place: &Path,
    key: &str,
) -> Result<Option<InstallationState>, GitError> {
    // The base of a batch that is verified ahead has not landed: its code fills nothing.
    let landed = gate.site.store.read_base()?;
    if landed.as_ref() != Some(gate.base) {
        return Ok(Some(InstallationState::Unusable));
    }
    let mut runs: Vec<CommandExit> = Vec::new();
    for (number, (command, _)) in commands.iter().enumerate() {
        let ignored = if number == 0 { IgnoredFilesPolicy::Remove } else { IgnoredFilesPolicy::Keep };
        let name = format!("{}-i{number}", gate.name);
        let Some(shown) = gate.run_on_commit(gate.base, ignored, command, &name)? else { return Ok(None) };
        if compute_check_outcome(&shown.seen, None, None) != CheckOutcome::Pass {
            // Without a note the next verification tries again at once.
            return Ok(Some(
                store_installation(gate.lane.path(), folders, place, key, InstallationState::Failed)
                    .unwrap_or(InstallationState::Failed),
            ));
        }
        runs.push(shown.seen);
    }
    let left = gate.lane.extra_paths()?;
    let tree = gate.lane.path();
    let caches = gate.lane.caches_path();
    let installed: Vec<InstalledFolder> =
        folders.iter().map(|folder| look_at_folder(tree, folder, &caches, place)).collect();
    let is_usable = is_copyable_installation(&runs, &left, &installed);
    let filled = if is_usable { InstallationState::Usable } else { InstallationState::Unusable };
    // Without room for a copy nothing is kept.
    Ok(Some(store_installation(tree, folders, place, key, filled).unwrap_or(InstallationState::Unusable)))
}

/// What the commands made of a folder. `place` is where a copy of it would be kept.
fn look_at_folder(tree: &Path, folder: &str, caches: &Path, place: &Path) -> InstalledFolder {
    let content = match (is_absent(tree, folder), is_plain_folder(tree, folder)) {
        (true, _) => InstalledContent::Absent,
        (false, false) => InstalledContent::Other,
        (false, true) => {
            let full = tree.join(folder);
            let caches = caches.canonicalize().unwrap_or_else(|_| caches.to_owned());
            let links = list_links(&full);
            let links = links.iter().map(|(link, target)| {
                place_of_link(tree, &caches, &resolve_link_target(link.parent().unwrap_or(tree), target))
            });
            // It need not be measured to the end.
            let max = TreeSize { files: CACHE_COPY_MAX.files, bytes: CACHE_COPY_MAX.bytes };
            let size = measure_tree(&full, &[], max);
            let shares_content = place.parent().is_some_and(|room| can_clone(&full, room));
            InstalledContent::Folder {
                links: links.collect(),
                files: size.files,
                bytes: size.bytes,
                shares_content,
            }
        }
    };
    InstalledFolder { path: folder.to_owned(), content }
}

/// Where the target of a link is. `caches` is the folder of the layers that a verification has over the user's caches.
fn place_of_link(tree: &Path, caches: &Path, target: &Path) -> InstalledLink {
    if target.starts_with(tree) {
        return InstalledLink::Checkout;
    }
    match target.canonicalize() {
        Ok(target) if target.starts_with(caches) => InstalledLink::CacheLayer,
        Ok(_) => InstalledLink::Outside,
        Err(_) => InstalledLink::Nowhere,
    }
}

/// Where a link in `folder` leads, without a look at the disk.
fn resolve_link_target(folder: &Path, target: &Path) -> PathBuf {
    let mut at = folder.to_owned();
    for part in target.components() {
        match part {
            Component::ParentDir => {
                at.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => at.push(part),
        }
    }
    at
}

/// Replaces the installation of a lane.
fn store_installation(
    tree: &Path,
    folders: &[&str],
    place: &Path,
    key: &str,
    filled: InstallationState,
) -> io::Result<InstallationState> {
    remove_tree(place)?;
    std::fs::create_dir_all(place)?;
    match filled {
        InstallationState::Usable => {
            for (number, folder) in folders.iter().enumerate() {
                if is_plain_folder(tree, folder) {
                    copy_tree(&tree.join(folder), &place.join(number.to_string()), &[])?;
                }
            }
        }
        InstallationState::Unusable => std::fs::write(place.join(UNUSABLE), b"")?,
        InstallationState::Failed => std::fs::write(place.join(FAILED), b"")?,
    }
    std::fs::write(place.join(KEY), key)?;
    Ok(filled)
}

/// Copies one folder of an installation to a checkout that does not have it. One that the commands did not make stays away.
fn copy_into(from: &Path, tree: &Path, folder: &str) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    if tree.join(folder).symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
    // A link of the work would lead out of the checkout.
    if !parent.is_empty() && !is_plain_folder(tree, parent) {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    copy_tree(from, &tree.join(folder), &[])
}

/// Whether a path below `tree` is a folder that is reached without links.
fn is_plain_folder(tree: &Path, path: &str) -> bool {
    let mut at = tree.to_owned();
    path.split('/').all(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    })
}

/// Whether nothing is at a path below `tree`, and no link or file is in place of a folder above it.
fn is_absent(tree: &Path, path: &str) -> bool {
    let mut at = tree.to_owned();
    for part in path.split('/') {
        at.push(part);
        match at.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seen_what_a_folder_is_and_where_its_links_lead() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for inner in [
            "tree/plain/bin",
            "tree/real",
            "tree/layered/bin",
            "tree/gone/bin",
            "caches/python",
            "user/python",
        ] {
            std::fs::create_dir_all(at(inner)).expect("ours");
        }
        std::fs::write(at("tree/file"), "").expect("ours");
        for (target, link) in [
            (at("tree/real"), "tree/link"),
            (at("user/python"), "tree/plain/bin/python"),
            (PathBuf::from("../../real/missing"), "tree/plain/bin/inside"),
            (at("tree/plain"), "tree/plain/bin/own"),
            (PathBuf::from("../../../caches/python"), "tree/layered/bin/python"),
            (at("user/removed"), "tree/gone/bin/python"),
        ] {
            std::os::unix::fs::symlink(target, at(link)).expect("ours");
        }
        let look = |path: &str| {
            let found = look_at_folder(&at("tree"), path, &at("caches"), &at("kept/installation"));
            assert_eq!(found.path, path);
            found.content
        };
        let links = |path: &str| match look(path) {
            InstalledContent::Folder { links, .. } => links,
            InstalledContent::Absent | InstalledContent::Other => panic!("{path} is a folder"),
        };
        use InstalledLink::{CacheLayer, Checkout, Nowhere, Outside};
        let mut plain = links("plain");
        plain.sort_by_key(|link| *link == Outside);
        assert_eq!(plain, [Checkout, Checkout, Outside]);
        assert_eq!((links("layered"), links("gone")), (vec![CacheLayer], vec![Nowhere]));
        for absent in ["missing", "missing/deps", "real/deps"] {
            assert_eq!(look(absent), InstalledContent::Absent, "{absent}");
        }
        for other in ["file", "link", "file/deps", "link/deps"] {
            assert_eq!(look(other), InstalledContent::Other, "{other}");
        }
    }

    #[test]
    fn a_failed_installation_is_tried_again_after_a_few_minutes() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("installation");
        let age = |age_ms: u64| {
            let file = std::fs::File::options().write(true).open(place.join(KEY)).expect("written last");
            let time = file.metadata().and_then(|meta| meta.modified()).expect("ours");
            file.set_modified(time - std::time::Duration::from_millis(age_ms)).expect("ours");
        };
        for (filled, lasts_ms) in [
            (InstallationState::Failed, INSTALLATION_RETRY_MS),
            (InstallationState::Unusable, INSTALLATION_AGE_MAX_MS),
        ] {
            store_installation(folder.path(), &["deps"], &place, "key", filled).expect("there is room");
            assert_eq!(find_installation(&place, "key"), Some(filled));
            assert_eq!(find_installation(&place, "another"), None);
            age(lasts_ms / 2);
            assert_eq!(find_installation(&place, "key"), Some(filled));
            age(lasts_ms + 1_000);
            assert_eq!(find_installation(&place, "key"), None, "{filled:?}");
        }
    }

    #[test]
    fn a_folder_is_copied_neither_over_files_of_the_work_nor_through_its_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for inner in ["kept/bin", "tree/tracked", "tree/web", "outside"] {
            std::fs::create_dir_all(at(inner)).expect("ours");
        }
        std::fs::write(at("kept/bin/tool"), "of the base").expect("ours");
        std::os::unix::fs::symlink(at("outside"), at("tree/link")).expect("ours");
        let copy = |target: &str| copy_into(&at("kept"), &at("tree"), target);
        for refused in ["tracked", "link", "link/deps", "missing/deps"] {
            assert!(copy(refused).is_err(), "{refused}");
        }
        assert_eq!(std::fs::read_dir(at("outside")).expect("ours").count(), 0);
        copy("web/deps").expect("there is room");
        assert_eq!(std::fs::read_to_string(at("tree/web/deps/bin/tool")).expect("copied"), "of the base");
        copy_into(&at("not-installed"), &at("tree"), "other").expect("nothing to copy");
        assert!(!at("tree/other").exists());
    }
}
