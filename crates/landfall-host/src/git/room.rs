//! A room: the engine's own index for one checkout, kept where the checkout's user cannot write.
//!
//! All our git calls on a workspace or lane use the store as git folder and the room's index. The `.git`
//! inside the checkout is for the agent or the verification command: we write it and never obey it.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FileType;

use super::files;
use super::index::{Index, TrackedPaths};
use super::names::Oid;
use super::run::{GitCall, GitError, GitErrorKind, GitResultExt as _, SLOW};
use super::store::Store;

/// Every file was written by us since the last user of the checkout ended.
const FRESH: &str = "fresh";
/// Somebody used it since who could hand out files. Written before they start; a fresh checkout takes it away.
const HANDED_OUT: &str = "handed-out";
/// The same for ignored files that the last checkout kept.
const IGNORED_HANDED_OUT: &str = "ignored-handed-out";
/// Who was started in it and is not known to have ended with all processes, a line each.
const OCCUPANTS: &str = "occupants";

/// What is to be done about an untrusted workspace; synced before anything is removed, so that a crash in between repeats
/// it.
pub(crate) const REBUILD_PLAN: &str = "rebuild";
/// What was done about it. It stays until the workspace goes.
pub(crate) const REBUILD_RESULT: &str = "rebuilt";
/// Its agent was started since, and was told.
pub(crate) const REBUILD_ANNOUNCED: &str = "rebuilt.announced";

const REBUILD_FILES: [&str; 3] = [REBUILD_PLAN, REBUILD_RESULT, REBUILD_ANNOUNCED];

/// The folder with the engine's index of one checkout.
#[derive(Debug, Clone)]
pub(crate) struct PrivateIndex {
    dir: PathBuf,
}

impl PrivateIndex {
    pub fn at_folder(dir: PathBuf) -> PrivateIndex {
        PrivateIndex { dir }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn index_path(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// The layers over caches of whoever works in the checkout.
    pub fn caches_path(dir: &Path) -> PathBuf {
        dir.join("caches")
    }

    /// Forgets that a checkout was made again: that was about the work in it, which is done.
    pub fn forget_rebuild(dir: &Path) -> std::io::Result<()> {
        for file in REBUILD_FILES {
            files::remove_path(&dir.join(file))?;
        }
        Ok(())
    }

    /// Notes, before somebody is started in the checkout, whether they could hand a file of it to somebody else who
    /// outlives them: by an open descriptor, a mapping or a link. It holds until all files were written anew.
    pub fn note_occupant(&self, occupant: &str, may_hand_out: bool) -> Result<(), GitError> {
        let doing = || "note who uses a checkout".to_owned();
        if may_hand_out {
            std::fs::write(self.dir.join(HANDED_OUT), b"").with_context(doing)?;
        }
        let mut occupants = self.read_occupants();
        occupants.push(occupant.to_owned());
        std::fs::write(self.dir.join(OCCUPANTS), occupants.join("\n")).with_context(doing) // unsynced: see `note_fresh`
    }

    /// Notes that every process of an occupant has ended.
    pub fn note_vacated(&self, occupant: &str) -> Result<(), GitError> {
        let doing = || "note who uses a checkout no more".to_owned();
        let mut occupants = self.read_occupants();
        occupants.retain(|other| other != occupant);
        let path = self.dir.join(OCCUPANTS);
        match occupants.is_empty() {
            true => files::remove_path(&path).with_context(doing),
            false => std::fs::write(&path, occupants.join("\n")).with_context(doing),
        }
    }

    fn read_occupants(&self) -> Vec<String> {
        let text = std::fs::read(self.dir.join(OCCUPANTS)).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    /// Whether somebody may still be at work in the checkout, who can write there by its paths. Without a word of ours they
    /// may.
    fn may_be_occupied(&self) -> bool {
        !self.dir.join(FRESH).exists() || self.dir.join(OCCUPANTS).exists()
    }

    /// Whether somebody else may still hold a file of the checkout, those included that an earlier checkout kept.
    pub fn may_be_handed_out(&self) -> bool {
        self.may_be_occupied()
            || [HANDED_OUT, IGNORED_HANDED_OUT].iter().any(|mark| self.dir.join(mark).exists())
    }

    /// Notes whether a checkout keeps ignored files, which stay in the hands of whoever has them.
    pub fn note_ignored(&self, are_kept: bool) -> Result<(), GitError> {
        let doing = || "note that ignored files are kept".to_owned();
        let mark = self.dir.join(IGNORED_HANDED_OUT);
        match (are_kept, self.dir.join(HANDED_OUT).exists()) {
            (true, true) => std::fs::write(&mark, b"").with_context(doing),
            (true, false) => Ok(()),
            (false, _) => files::remove_path(&mark).with_context(doing),
        }
    }

    /// Removes every tracked file that somebody may still hold, so that each one is made again.
    fn forget_files(&self, store: &Store, tree: &Path) -> Result<(), GitError> {
        let is_occupied = self.may_be_occupied();
        if !is_occupied && !self.dir.join(HANDED_OUT).exists() {
            return self.forget_touched_files(store, tree);
        }
        let doing = || format!("remove files of `{}` that others may hold", tree.display());
        files::remove_path(&self.dir.join(FRESH)).with_context(doing)?;
        if is_occupied {
            // Another folder: whoever still runs may write in the old one, whatever is in it.
            files::remove_path(tree).with_context(doing)?;
            std::fs::create_dir(tree).with_context(doing)?;
        } else {
            self.remove_files(store, tree, RemovalKind::Tracked)?;
        }
        files::remove_path(&self.index_path()).with_context(doing)
    }

    /// The same for those that are not as git left them: a link shows in the number of names and in the time of change.
    fn forget_touched_files(&self, store: &Store, tree: &Path) -> Result<(), GitError> {
        let doing = || format!("remove files of `{}` that were touched", tree.display());
        let index = self.read_index(store).unwrap_or_default(); // unreadable: everything is written anew
        for entry in index.entries() {
            let path = files::path_of(entry.path);
            match tree.join(path).symlink_metadata() {
                Ok(meta) if meta.is_file() && !entry.is_as_checked_out(&meta) => {
                    files::remove_beneath(tree, entry.path).with_context(doing)?;
                }
                Ok(_) | Err(_) => {} // gone, or something else: git puts the file there
            }
        }
        Ok(())
    }

    /// Notes that every file was written since the last user of the checkout ended. No note is synced: after a power cut no
    /// checkout is used again that was not.
    fn note_fresh(&self) -> Result<(), GitError> {
        let doing = || "note that a checkout is fresh".to_owned();
        files::remove_path(&self.dir.join(HANDED_OUT)).with_context(doing)?;
        files::remove_path(&self.dir.join(OCCUPANTS)).with_context(doing)?;
        std::fs::write(self.dir.join(FRESH), b"").with_context(doing)
    }

    /// A call on the checkout `tree` with the store's objects and this room's index.
    pub fn index_call<'s>(&self, store: &'s Store, tree: &Path, doing: impl Into<String>) -> GitCall<'s> {
        store
            .write_call(doing)
            .work_tree(tree)
            .env("GIT_INDEX_FILE", self.index_path())
            .config(exclude_setting(&self.dir))
    }

    pub fn read_index(&self, store: &Store) -> Result<Index, GitError> {
        let path = self.index_path();
        Index::read(&path, store.oid_bytes()).with_context(|| format!("read the index `{}`", path.display()))
    }

    /// The tree that the index stands for, if we know.
    pub fn recorded_tree(&self) -> Option<Oid> {
        Oid::from_line(&std::fs::read(self.dir.join("tree")).ok()?)
    }

    /// Notes the tree of the index; `None` before the index is changed, so that a crash leaves "unknown".
    pub fn note_tree(&self, tree: Option<&Oid>) -> Result<(), GitError> {
        let path = self.dir.join("tree");
        match tree {
            Some(oid) => std::fs::write(&path, format!("{oid}\n")),
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                other => other,
            },
        }
        .with_context(|| "note the tree of an index".to_owned())
    }

    /// Makes the tracked files of `tree` those of `commit`, whatever state they are in. Untracked files are
    /// overwritten if they are in the way and left alone otherwise. One process, two if attributes changed.
    pub fn check_out(&self, store: &Store, tree: &Path, commit: &Oid) -> Result<Index, GitError> {
        let path = self.index_path();
        // One user at a time: a lock here was left by a git that is dead.
        files::remove_path(&self.dir.join("index.lock"))
            .with_context(|| "remove a stale index lock".to_owned())?;
        let before = match self.read_index(store) {
            Ok(index) => index,
            Err(_) => {
                // Ours, and broken: start from none, which rewrites every file.
                files::remove_path(&path).with_context(|| "remove a broken index".to_owned())?;
                Index::default()
            }
        };
        self.note_tree(None)?;
        self.forget_files(store, tree)?;
        self.read_tree(store, tree, commit)?;
        let mut after = self.read_index(store)?;
        // Line endings and encodings follow attributes. If those changed, files that did not change in the
        // tree may have to change on disk, and git does not do that by itself.
        if !before.is_empty() && before.attribute_files() != after.attribute_files() {
            files::remove_path(&path).with_context(|| "remove an index".to_owned())?;
            self.read_tree(store, tree, commit)?;
            after = self.read_index(store)?;
        }
        self.note_tree(Some(&store.tree_of(commit)?))?;
        self.note_fresh()?;
        Ok(after)
    }

    fn read_tree(&self, store: &Store, tree: &Path, commit: &Oid) -> Result<(), GitError> {
        self.index_call(store, tree, format!("check out {commit}"))
            .config("checkout.workers=0") // as many as there are cores, once it pays
            .config("checkout.thresholdForParallelism=2000")
            .args([
                "read-tree",
                "--reset",
                "-u",
                "--no-recurse-submodules",
                "--end-of-options",
                commit.as_str(),
            ])
            .timeout(SLOW)
            .output()?;
        Ok(())
    }

    /// Removes everything in `tree` that the index does not track, `.git` included, and opens closed folders.
    pub fn remove_untracked(&self, store: &Store, tree: &Path) -> Result<(), GitError> {
        self.remove_files(store, tree, RemovalKind::Untracked)
    }

    /// Removes only what git would wait for: pipes and the like between the tracked files.
    pub fn remove_blocking_files(&self, store: &Store, tree: &Path) -> Result<(), GitError> {
        self.remove_files(store, tree, RemovalKind::InTheWay)
    }

    fn remove_files(&self, store: &Store, tree: &Path, what: RemovalKind) -> Result<(), GitError> {
        let doing = || format!("clean `{}`", tree.display());
        let index = self.read_index(store).unwrap_or_default(); // unreadable: everything goes
        let folder = files::open_folder(tree).with_context(doing)?;
        remove_in_folder(folder.as_fd(), &mut Vec::new(), &index.paths(), what).with_context(doing)
    }

    /// Lists files of `tree` with `ls-files`, whatever stands in the way of looking.
    pub fn list_files(
        &self,
        store: &Store,
        tree: &Path,
        doing: &str,
        flags: &[&str],
    ) -> Result<Vec<u8>, GitError> {
        let list = |timeout| {
            self.index_call(store, tree, doing).args(["ls-files", "-z"]).args(flags).timeout(timeout).run()
        };
        let open = || files::open_folder(tree).with_context(|| doing.to_owned());
        let mut said = match list(FIRST_LOOK) {
            Err(GitError { kind: GitErrorKind::Timeout { .. }, .. }) => {
                // Slow, or waiting for a pipe that stands in the place of a settings file.
                files::remove_special_files(open()?.as_fd(), 0).with_context(|| doing.to_owned())?;
                list(SLOW)?
            }
            other => other?,
        };
        if said.stderr.contains("could not open directory") {
            files::open_up(open()?.as_fd(), 0).with_context(|| doing.to_owned())?;
            said = list(SLOW)?;
        }
        said.require_success()
    }
}

/// Long enough for most; if it was too short, looking again costs no more than it did.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// What is removed from a checkout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RemovalKind {
    /// What the index does not track.
    Untracked,
    /// What it does track.
    Tracked,
    /// Only what git would wait for.
    InTheWay,
}

fn remove_in_folder(
    folder: BorrowedFd<'_>,
    prefix: &mut Vec<u8>,
    tracked: &TrackedPaths<'_>,
    what: RemovalKind,
) -> std::io::Result<()> {
    for (name, kind) in files::list_entries(folder)? {
        let length = prefix.len();
        prefix.extend_from_slice(name.as_bytes());
        let plain = matches!(kind, FileType::RegularFile | FileType::Symlink);
        if kind == FileType::Directory && tracked.folders.contains(prefix.as_slice()) {
            let inner = files::open_to_change(folder, &name)?;
            prefix.push(b'/');
            remove_in_folder(inner.as_fd(), prefix, tracked, what)?;
        } else if kind == FileType::Directory || plain {
            let known = plain && tracked.files.contains(prefix.as_slice());
            let goes = match what {
                RemovalKind::Untracked => !known,
                RemovalKind::Tracked => known,
                RemovalKind::InTheWay => false,
            };
            if goes {
                files::remove_at(folder, &name, kind)?;
            }
        } else {
            files::remove_at(folder, &name, kind)?;
        }
        prefix.truncate(length);
    }
    Ok(())
}

fn exclude_setting(room: &Path) -> std::ffi::OsString {
    let mut setting = std::ffi::OsString::from("core.excludesFile=");
    let own = room.join("exclude");
    setting.push(if own.exists() { own.as_path() } else { Path::new("/dev/null") });
    setting
}

/// What a fresh `.git` in a checkout holds.
#[derive(Debug)]
pub(crate) struct DotGit<'a> {
    /// The branch to be on, without `refs/heads/`; detached if `None`.
    pub branch: Option<&'a str>,
    pub commit: &'a Oid,
    /// Lines for `info/exclude`.
    pub exclude: &'a str,
}

impl DotGit<'_> {
    /// Puts the `.git` of `tree` on a new branch at `commit`.
    pub fn start_branch(tree: &Path, branch: &str, commit: &Oid) -> std::io::Result<()> {
        let git_dir = tree.join(".git");
        let path = git_dir.join("refs/heads").join(branch);
        std::fs::create_dir_all(path.parent().expect("it is below refs/heads"))?;
        std::fs::write(path, format!("{commit}\n"))?;
        std::fs::write(git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n"))
    }

    /// Writes a new `.git` into `tree`, replacing whatever is there, with a copy of the room's index.
    pub fn write_dot_git(&self, store: &Store, room: &PrivateIndex, tree: &Path) -> std::io::Result<()> {
        let git_dir = tree.join(".git");
        files::remove_path(&git_dir)?;
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            std::fs::create_dir_all(git_dir.join(folder))?;
        }
        let mut alternates = files::bytes_of(&store.objects_dir()).to_vec();
        alternates.push(b'\n');
        std::fs::write(git_dir.join("objects/info/alternates"), alternates)?;
        std::fs::write(git_dir.join("info/exclude"), self.exclude)?;
        let config = format!(
            "{}\tbare = false\n\tfilemode = true\n\tlogallrefupdates = true\n\
             [user]\n\tname = Landfall agent\n\temail = agent@landfall.invalid\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[commit]\n\tgpgsign = false\n",
            store.object_format().config_lines()
        );
        std::fs::write(git_dir.join("config"), config)?;
        let shallow = store.dir().join("shallow");
        if shallow.exists() {
            std::fs::copy(shallow, git_dir.join("shallow"))?;
        }
        match self.branch {
            Some(branch) => Self::start_branch(tree, branch, self.commit)?,
            None => std::fs::write(git_dir.join("HEAD"), format!("{}\n", self.commit))?,
        }
        // The copy keeps the time of the original: git judges by it whether a file changed too soon to tell.
        let original = room.index_path();
        let copy = git_dir.join("index");
        std::fs::copy(&original, &copy)?;
        let modified = std::fs::metadata(&original)?.modified()?;
        File::options().write(true).open(&copy)?.set_modified(modified)
    }
}
