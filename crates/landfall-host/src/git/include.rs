//! Files that git ignores and an agent needs all the same, such as `.env`: copied from the person's checkout into a
//! workspace, if `.worktreeinclude` at the root of that checkout names them.
//!
//! The list is the person's own: that of an agent's branch is never read. A copy is not work: each path is excluded
//! in the workspace before it is made, and whatever would count as a change nevertheless is not copied.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::files;
use super::in_flight::ScratchObjects;
use super::repo::Repo;
use super::run::{GitCall, GitConfigTrust, GitError, GitResultExt as _, QUICK};
use super::workspace::{Workspace, WorkspacePool};

/// The name of the list.
const LIST: &str = ".worktreeinclude";

/// A list is a page of patterns.
const LIST_BYTES_MAX: usize = 64 << 10;

/// Settings and secrets are a few files; a folder of packages is better made anew than copied for each task.
const FILES_MAX: usize = 2_000;

/// All copies of one workspace together.
const BYTES_MAX: u64 = 512 << 20;

/// How many paths are named that were not copied.
const SKIPPED_NAMED_MAX: usize = 100;

/// What was copied into a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InclusionReport {
    /// The files, by their paths below the root.
    pub copied: Vec<Vec<u8>>,
    /// Paths that the list names and that were not copied, the first few, and why.
    pub skipped: Vec<(Vec<u8>, InclusionRefusal)>,
    /// How many there were.
    pub skipped_count: usize,
}

/// Why a file was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InclusionRefusal {
    /// git does not ignore it: in the workspace it would count as a change.
    NotIgnored,
    /// It is a link, a repository of its own, or something else than a file.
    NotAFile,
    /// The workspace has something there already.
    AlreadyThere,
    /// No line of a list of exclusions can say its name.
    OddName,
    /// There are too many files, or they are too large.
    TooMuch,
    /// It could not be read or written.
    Failed(String),
}

impl InclusionReport {
    fn note_skipped(&mut self, path: &[u8], why: InclusionRefusal) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_NAMED_MAX {
            self.skipped.push((path.to_vec(), why));
        }
    }
}

impl WorkspacePool {
    /// Copies the files that the person's `.worktreeinclude` names into a workspace. Only files that git ignores; what
    /// is there already stays as it is. No process without such a list.
    pub fn copy_included_files(
        &self,
        repo: &Repo,
        workspace: &Workspace,
    ) -> Result<InclusionReport, GitError> {
        let doing = || format!("copy what `{LIST}` names into workspace {}", workspace.name());
        let mut included = InclusionReport::default();
        let from = files::open_folder(repo.root()).with_context(doing)?;
        let list = match files::read_beneath(from.as_fd(), LIST.as_bytes(), LIST_BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(included),
            other => other.with_context(doing)?,
        };
        let to = files::open_folder(workspace.path()).with_context(doing)?;
        let store = self.store();
        let wanted = self.find_wanted_files(repo, &list, to.as_fd(), &mut included)?;
        // Excluded first and asked then: what is copied must not count as work by the rules that count it.
        let path = workspace.room().dir().join("exclude");
        let mut exclude = std::fs::read(&path).with_context(doing)?;
        for line in wanted.iter().map(|path| exclude_line(path)) {
            // What was copied before stays excluded, and is not said twice.
            if !exclude.split_inclusive(|byte| *byte == b'\n').any(|known| known == line) {
                exclude.extend(line);
            }
        }
        files::write_whole(&path, &exclude).with_context(doing)?;
        write_own_exclude(to.as_fd(), &exclude).with_context(doing)?;
        let ask = workspace.room().index_call(store, workspace.path(), doing());
        let ignored = find_ignored(ask, &wanted)?;

        let mut budget = BYTES_MAX;
        for path in wanted {
            let why = if ignored.binary_search(&path).is_err() {
                InclusionRefusal::NotIgnored
            } else if included.copied.len() >= FILES_MAX {
                InclusionRefusal::TooMuch
            } else {
                match copy_within_budget(from.as_fd(), to.as_fd(), &path, &mut budget) {
                    Ok(()) => {
                        included.copied.push(path);
                        continue;
                    }
                    Err(why) => why,
                }
            };
            included.note_skipped(&path, why);
        }
        Ok(included)
    }

    /// The files of the person's checkout that the list names and git ignores there, without those that cannot be
    /// copied anyway. Sorted.
    fn find_wanted_files(
        &self,
        repo: &Repo,
        list: &[u8],
        to: BorrowedFd<'_>,
        included: &mut InclusionReport,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let doing = || format!("find what `{LIST}` names");
        let scratch = ScratchObjects::new(self.store())?;
        let patterns = scratch.path().join("patterns");
        std::fs::write(&patterns, list).with_context(doing)?;
        let theirs = || {
            let call = repo.git().prepare_call(doing()).trust(GitConfigTrust::Checkout);
            call.git_dir(repo.git_dir()).work_tree(repo.root()).timeout(QUICK)
        };
        let mut from_file = std::ffi::OsString::from("--exclude-from=");
        from_file.push(&patterns);
        let named = theirs().args(["ls-files", "-z", "--others", "--ignored"]).arg(from_file).output()?;
        let mut named: Vec<Vec<u8>> =
            named.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
        named.sort();
        let ignored = find_ignored(theirs(), &named)?;
        let mut wanted = Vec::new();
        for path in named {
            let why = if path.ends_with(b"/") || has_git_folder(&path) {
                InclusionRefusal::NotAFile
            } else if path.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                InclusionRefusal::OddName
            } else if ignored.binary_search(&path).is_err() {
                InclusionRefusal::NotIgnored
            } else if wanted.len() >= 2 * FILES_MAX {
                InclusionRefusal::TooMuch
            } else if is_blocked(to, &path) {
                InclusionRefusal::AlreadyThere
            } else {
                wanted.push(path);
                continue;
            };
            included.note_skipped(&path, why);
        }
        Ok(wanted)
    }
}

/// Which of the paths git ignores in the checkout of the call. Sorted, as they must be.
fn find_ignored(call: GitCall<'_>, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    // With a folder in front, a path that begins with a colon is only a path.
    let list: Vec<u8> = paths.iter().flat_map(|path| [b"./", path.as_slice(), b"\0"].concat()).collect();
    let said = call.not_literal().args(["check-ignore", "-z", "--stdin"]).input(list).run()?;
    if said.code == 1 {
        return Ok(Vec::new());
    }
    let said = said.require_success()?;
    let mut found: Vec<Vec<u8>> = said
        .split(|byte| *byte == 0)
        .filter_map(|path| path.strip_prefix(b"./"))
        .map(<[u8]>::to_vec)
        .collect();
    found.sort();
    Ok(found)
}

fn has_git_folder(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part.eq_ignore_ascii_case(b".git"))
}

/// Whether something else than a folder of the workspace stands on the way to the file.
fn is_blocked(workspace: BorrowedFd<'_>, path: &[u8]) -> bool {
    let Ok(mut open) = workspace.try_clone_to_owned() else { return true };
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in parts {
        match files::open_folder_beneath(open.as_fd(), &[part]) {
            Ok(inner) => open = inner,
            Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
        }
    }
    false
}

/// The line of an exclude file that means this path and no other.
fn exclude_line(path: &[u8]) -> Vec<u8> {
    let mut line = vec![b'/'];
    for byte in path {
        if matches!(byte, b'\\' | b'*' | b'?' | b'[' | b']' | b'#' | b'!' | b' ') {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    line.push(b'\n');
    line
}

/// The agent's own git is to ignore the copies too, even if the agent rewrites `.gitignore`.
pub(super) fn write_own_exclude(workspace: BorrowedFd<'_>, text: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let info = match files::open_folder_beneath(workspace, &[b".git", b"info"]) {
        Ok(info) => info,
        Err(_) => return Ok(()), // an agent was here; its git is its own affair
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&info, c"exclude", flags | OFlags::NONBLOCK, Mode::from_raw_mode(0o644)) {
        Ok(file) => File::from(file).write_all(text),
        Err(_) => Ok(()), // the same
    }
}

fn copy_within_budget(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    path: &[u8],
    budget: &mut u64,
) -> Result<(), InclusionRefusal> {
    let failed = |error: std::io::Error| InclusionRefusal::Failed(error.to_string());
    let source =
        files::open_file_beneath(from, path).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP | Errno::NOTDIR | Errno::NXIO) | None => InclusionRefusal::NotAFile,
            Some(_) => failed(error),
        })?;
    let meta = source.metadata().map_err(failed)?;
    let size = meta.len();
    *budget = budget.checked_sub(size).ok_or(InclusionRefusal::TooMuch)?;
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let (name, folders) = parts.split_last().expect("split gives at least one part");
    let parent = make_folders(to, folders).map_err(failed)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(meta.permissions().mode() & 0o777 | 0o600);
    let target = match rustix::fs::openat(&parent, *name, flags, mode) {
        Ok(target) => File::from(target),
        Err(Errno::EXIST) => return Err(InclusionRefusal::AlreadyThere),
        Err(error) => return Err(failed(error.into())),
    };
    // The kernel shares the blocks where the filesystem can.
    let copied = std::io::copy(&mut source.take(size), &mut &target);
    if let Err(error) = copied {
        // Half a file is worse than none.
        rustix::fs::unlinkat(&parent, *name, rustix::fs::AtFlags::empty()).ok();
        return Err(failed(error));
    }
    Ok(())
}

/// Opens a folder below another, making what is missing and following no link.
pub(super) fn make_folders(folder: BorrowedFd<'_>, parts: &[&[u8]]) -> std::io::Result<OwnedFd> {
    let mut open = folder.try_clone_to_owned()?;
    for part in parts {
        match rustix::fs::mkdirat(&open, *part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        open = files::open_folder_beneath(open.as_fd(), &[part])?;
    }
    Ok(open)
}
