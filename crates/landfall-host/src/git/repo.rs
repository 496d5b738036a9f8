//! The person's repository, seen from outside: where it is and where its branches stand.
//!
//! Nothing is written here (see `publish`), and its configuration is trusted for nothing that executes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::files;
use super::names::{BranchName, Oid};
use super::objects::Objects;
use super::run::{Git, GitConfigTrust, GitError, Signature};

/// Why a folder cannot be used as a project.
#[derive(Debug, Error)]
pub enum RepoProblem {
    /// Neither the folder nor one above it is a repository.
    #[error("`{}` is not inside a git repository", .path.display())]
    NotARepository {
        /// Where the search began.
        path: PathBuf,
    },
    /// It is a repository without a checkout.
    #[error("`{}` is a bare repository", .path.display())]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// Someone else owns it, so its settings may not be meant well.
    #[error("`{}` belongs to user {owner}", .path.display())]
    OtherOwner {
        /// The git folder.
        path: PathBuf,
        /// The numeric id of its owner.
        owner: u32,
    },
    /// It has no commit yet.
    #[error("the repository has no commits")]
    NoCommits,
    /// git could not be asked.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckoutHead {
    /// A branch with at least one commit.
    Branch {
        /// The branch.
        name: BranchName,
        /// Its last commit.
        tip: Oid,
    },
    /// A commit, no branch.
    Detached {
        /// The commit.
        tip: Oid,
    },
    /// A branch that has no commit yet.
    Unborn {
        /// The name the branch will have.
        branch: String,
    },
}

/// A person's repository with a checkout.
#[derive(Debug, Clone)]
pub struct Repo {
    git: Git,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_format: ObjectFormat,
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl ObjectFormat {
    pub(crate) fn oid_bytes(self) -> usize {
        match self {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }

    /// The lines of a config file that say so.
    pub(crate) fn config_lines(self) -> &'static str {
        match self {
            ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n",
            ObjectFormat::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n[core]\n"
            }
        }
    }
}

impl Repo {
    /// Finds the repository around `path`, upward. Runs nothing that the repository could have planted.
    pub fn discover(git: &Git, path: &Path) -> Result<Repo, RepoProblem> {
        let none = || RepoProblem::NotARepository { path: path.to_owned() };
        let start = path.canonicalize().map_err(|_| none())?;
        for folder in start.ancestors() {
            let dot_git = folder.join(".git");
            if let Some(git_dir) = git_dir_of(&dot_git) {
                return Repo::open(git, folder, &git_dir);
            }
            if looks_like_git_dir(folder) {
                // Inside `.git` of a checkout there is a better word for it, but the answer is the same.
                return Err(RepoProblem::Bare { path: folder.to_owned() });
            }
        }
        Err(none())
    }

    fn open(git: &Git, root: &Path, git_dir: &Path) -> Result<Repo, RepoProblem> {
        let owner = std::fs::metadata(git_dir).map(|meta| meta.uid()).unwrap_or(u32::MAX);
        if !may_trust(owner) {
            return Err(RepoProblem::OtherOwner { path: git_dir.to_owned(), owner });
        }
        let said = git
            .prepare_call(format!("look at the repository in `{}`", root.display()))
            .git_dir(git_dir)
            .args(["rev-parse", "--show-object-format", "--is-bare-repository"])
            .output_text()?;
        let mut lines = said.lines();
        let object_format = match lines.next() {
            Some("sha1") => ObjectFormat::Sha1,
            Some("sha256") => ObjectFormat::Sha256,
            other => {
                return Err(
                    GitError::unexpected_output("read the object format", format!("{other:?}")).into()
                );
            }
        };
        let common_dir = common_dir_of(git_dir);
        // A linked worktree of a bare repository is a fine checkout; `core.bare` then speaks of the other one.
        if lines.next() == Some("true") && common_dir == git_dir {
            return Err(RepoProblem::Bare { path: git_dir.to_owned() });
        }
        Ok(Repo {
            git: git.clone(),
            root: root.to_owned(),
            git_dir: git_dir.to_owned(),
            common_dir,
            object_format,
        })
    }

    /// The folder of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git folder of this checkout.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git folder that all linked worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// How the repository names its objects.
    pub fn object_format(&self) -> ObjectFormat {
        self.object_format
    }

    /// What is checked out now. No process in the common case.
    pub fn read_head(&self) -> Result<CheckoutHead, GitError> {
        let full = match plain_head(&self.git_dir) {
            Some(full) if !may_be_symbolic(&self.common_dir, &full) => full,
            Some(_) | None => {
                let asked = self.git.prepare_call("read HEAD").git_dir(&self.git_dir);
                let said = asked.args(["symbolic-ref", "--quiet", "HEAD"]).run()?;
                if said.code == 1 {
                    let tip = self.rev_parse("HEAD")?;
                    let tip =
                        tip.ok_or_else(|| GitError::unexpected_output("read HEAD", "it points nowhere"))?;
                    return Ok(CheckoutHead::Detached { tip });
                }
                String::from_utf8_lossy(&said.require_success()?).trim_end_matches('\n').to_owned()
            }
        };
        let short = full.strip_prefix("refs/heads/").unwrap_or(&full);
        let name = BranchName::new(short)
            .map_err(|bad| GitError::unexpected_output("read HEAD", bad.to_string()))?;
        Ok(match self.branch_tip(&name)? {
            Some(tip) => CheckoutHead::Branch { name, tip },
            None => CheckoutHead::Unborn { branch: short.to_owned() },
        })
    }

    /// The last commit of a branch; `None` if there is no such branch. No process in the common case.
    pub fn branch_tip(&self, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        let full = branch.full_name();
        if let Ok(bytes) = std::fs::read(self.common_dir.join(&full))
            && let Some(oid) = Oid::from_line(&bytes)
            && oid.as_str().len() == self.object_format.oid_bytes() * 2
        {
            return Ok(Some(oid));
        }
        self.rev_parse(&full)
    }

    pub(crate) fn rev_parse(&self, rev: &str) -> Result<Option<Oid>, GitError> {
        let said = self
            .git
            .prepare_call(format!("resolve `{rev}`"))
            .git_dir(&self.git_dir)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{rev}^{{commit}}")])
            .run()?;
        if said.code == 1 {
            return Ok(None);
        }
        let doing = said.doing.clone();
        let bytes = said.require_success()?;
        Oid::from_line(&bytes).map(Some).ok_or_else(|| GitError::unexpected_output(doing, "not an object id"))
    }

    /// A new repository in `root`, with everything that is there as its first commit on `branch`.
    pub fn create(
        git: &Git,
        root: &Path,
        branch: &BranchName,
        message: &str,
        by: &Signature,
    ) -> Result<Repo, RepoProblem> {
        let doing = |what: &str| format!("{what} a repository in `{}`", root.display());
        let dot_git = root.join(".git");
        git.prepare_call(doing("make"))
            .args(["init", "--quiet", "--template=", "--initial-branch", branch.as_str(), "--"])
            .arg(root)
            .output()?;
        let call = |what| git.prepare_call(doing(what)).git_dir(&dot_git).work_tree(root);
        call("fill").args(["add", "--all"]).output()?;
        call("commit to")
            .signed_by(by, by)
            .args(["commit", "--quiet", "--allow-empty", "-m", message])
            .output()?;
        Repo::discover(git, root)
    }

    /// Tracked files whose content is not committed, by their paths below the root.
    pub fn list_uncommitted(&self) -> Result<Vec<String>, GitError> {
        let said = self
            .git
            .prepare_call("look for changes that are not committed")
            .trust(GitConfigTrust::Checkout)
            .git_dir(&self.git_dir)
            .work_tree(&self.root)
            .args(["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"])
            .output()?;
        let records = said.split(|byte| *byte == 0).filter_map(|record| record.get(3..));
        let paths = records.filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// The files that git tracks, by their paths below the root. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When git fails.
    pub fn tracked_files(&self) -> Result<BTreeSet<String>, GitError> {
        let said = self
            .git
            .prepare_call("list the tracked files")
            .trust(GitConfigTrust::Checkout)
            .git_dir(&self.git_dir)
            .work_tree(&self.root)
            .args(["ls-files", "-z", "--cached", "--full-name"])
            .output()?;
        let paths = said.split(|byte| *byte == 0).filter_map(|path| std::str::from_utf8(path).ok());
        Ok(paths.filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// The files that git tracks, by their paths below the root, each with its object in the index if the checkout shows exactly
    /// that, apart from line endings and filters. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When git fails.
    pub fn tracked_objects(&self) -> Result<BTreeMap<String, Option<Oid>>, GitError> {
        let list = |doing: &str, options: &[&str]| {
            let call = self.git.prepare_call(doing).trust(GitConfigTrust::Checkout).git_dir(&self.git_dir);
            call.work_tree(&self.root).args(["ls-files", "-z", "--full-name"]).args(options).output()
        };
        let staged = list("list the objects of the index", &["--cached", "--stage", "-v"])?;
        let mut files = BTreeMap::new();
        for line in staged.split(|byte| *byte == 0) {
            let Some((entry, path)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once('\t'))
            else {
                continue;
            };
            let words: Vec<&str> = entry.split(' ').collect();
            let oid = match words[..] {
                // Of other entries git is told not to look at the file, or they are conflicts, links or submodules.
                ["H", "100644" | "100755", oid, "0"] => oid.parse().ok(),
                _ => None,
            };
            files.insert(path.to_owned(), oid);
        }
        let modified = list("list the files that are not as in the index", &["--modified"])?;
        for path in modified.split(|byte| *byte == 0).filter_map(|path| std::str::from_utf8(path).ok()) {
            if let Some(oid) = files.get_mut(path) {
                *oid = None;
            }
        }
        Ok(files)
    }

    /// A reader of the objects of this repository.
    #[must_use]
    pub fn blob_reader(&self) -> BlobReader {
        BlobReader { objects: Objects::new(&self.git, &self.common_dir) }
    }

    /// Commits these files, and nothing else, on the branch that is checked out, in the person's name.
    pub fn commit_files(&self, paths: &[String], message: &str) -> Result<Oid, GitError> {
        let call = |doing: &str| {
            let call = self.git.prepare_call(doing).trust(GitConfigTrust::Checkout);
            call.git_dir(&self.git_dir).work_tree(&self.root)
        };
        call("add the files of a commit").args(["add", "--"]).args(paths).output()?;
        call("commit files")
            .args(["commit", "--quiet", "--only", "-m", message, "--"])
            .args(paths)
            .output()?;
        let doing = "find the new commit";
        self.rev_parse("HEAD")?.ok_or_else(|| GitError::unexpected_output(doing.to_owned(), "there is none"))
    }

    /// The content of a file in a commit of theirs, at most `max` bytes of it; `None` if there is no such file.
    pub fn read_file(&self, commit: &Oid, path: &str, max: usize) -> Result<Option<Vec<u8>>, GitError> {
        let name = format!("{commit}:{path}");
        let found = self
            .git
            .prepare_call(format!("look for `{path}` in {commit}"))
            .git_dir(&self.git_dir)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
            .run()?;
        if found.code == 1 {
            return Ok(None);
        }
        let Some(oid) = Oid::from_line(&found.require_success()?) else { return Ok(None) };
        let said = self
            .git
            .prepare_call(format!("read `{path}` of {commit}"))
            .git_dir(&self.git_dir)
            .args(["cat-file", "blob", oid.as_str()])
            .cut_at(max)
            .output()?;
        Ok(Some(said))
    }

    /// Whether the checkout is on a disk to which large and small letters are the same. git finds that out when it makes a
    /// repository.
    pub fn ignores_case(&self) -> Result<bool, GitError> {
        let said = self
            .git
            .prepare_call("look up whether names differ by case")
            .git_dir(&self.git_dir)
            .args(["config", "--local", "--type=bool", "--get", "core.ignoreCase"]) // our own calls set another value
            .run()?;
        Ok(said.stdout.trim_ascii_end() == b"true") // it ends with 1 if nothing is set
    }

    /// Where a remote is, as the person's configuration says; `None` if there is no such remote.
    pub fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        let said = self
            .git
            .prepare_call(format!("look up the remote `{remote}`"))
            .git_dir(&self.git_dir)
            .args(["config", "--get", &format!("remote.{remote}.url")])
            .run()?;
        if said.code == 1 {
            return Ok(None);
        }
        let bytes = said.require_success()?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(text.trim_end_matches('\n').to_owned()))
    }

    /// The remote that has the objects which a partial clone left out; none if the repository is no partial clone.
    pub(crate) fn promisor_remote(&self) -> Result<Option<String>, GitError> {
        let call = self.git.prepare_call("look up whether this is a partial clone").git_dir(&self.git_dir);
        let said = call.args(["config", "--name-only", "--get-regexp", r"^remote\..*\.promisor$"]).run()?;
        let names = String::from_utf8_lossy(&said.stdout).into_owned(); // it ends with 1 if there is none
        let name =
            names.lines().next().and_then(|name| name.strip_prefix("remote.")?.strip_suffix(".promisor"));
        Ok(name.map(str::to_owned))
    }

    /// Where the objects are.
    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// The checkouts of this repository: the main one if it has one, and the linked ones.
    pub(crate) fn list_checkouts(&self) -> Result<Vec<Checkout>, GitError> {
        let mut found = Vec::new();
        let main_root = match self.common_dir.file_name() {
            Some(name) if name == ".git" => self.common_dir.parent().map(Path::to_owned),
            _ if self.common_dir == self.git_dir => Some(self.root.clone()),
            _ => None,
        };
        if let Some(root) = main_root {
            found.push(Checkout { root, git_dir: self.common_dir.clone() });
        }
        if let Ok(listing) = std::fs::read_dir(self.common_dir.join("worktrees")) {
            for entry in listing {
                let entry = entry.map_err(|error| GitError::from_io("list linked worktrees", error))?;
                let git_dir = entry.path();
                let Ok(bytes) = std::fs::read(git_dir.join("gitdir")) else { continue };
                let dot_git = files::path_of(bytes.trim_ascii_end());
                let dot_git = if dot_git.is_absolute() { dot_git.to_owned() } else { git_dir.join(dot_git) };
                if let Some(root) = dot_git.parent() {
                    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
                    found.push(Checkout { root, git_dir });
                }
            }
        }
        Ok(found)
    }

    /// The folders of every checkout of this repository that is there, and the git folder that they share.
    #[must_use]
    pub fn checkout_folders(&self) -> Vec<PathBuf> {
        let all = self.list_checkouts().unwrap_or_default(); // those that cannot be listed cannot be found by others either
        // What a linked worktree leaves behind when its folder is deleted names a place that may be anything by now.
        let there = all.into_iter().map(|checkout| checkout.root).filter(|root| root.join(".git").exists());
        let mut folders: Vec<PathBuf> =
            [self.root.clone(), self.common_dir.clone()].into_iter().chain(there).collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// The commit that a checkout is on; `None` if it has none yet.
    pub(crate) fn head_of(&self, checkout: &Checkout) -> Result<Option<Oid>, GitError> {
        let said = self
            .git
            .prepare_call("read HEAD of a checkout")
            .git_dir(&checkout.git_dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .run()?;
        Ok(Oid::from_line(&said.stdout))
    }

    /// Whether `ancestor` leads to `commit`. A commit that the repository does not have leads to nothing; one that it has and
    /// cannot read is an error.
    pub(crate) fn has_ancestor(&self, commit: &Oid, ancestor: &Oid) -> Result<bool, GitError> {
        let doing = || format!("ask whether {ancestor} leads to {commit}");
        let call =
            self.git.prepare_call(doing()).git_dir(&self.common_dir).args(["cat-file", "--batch-check"]);
        let said = call.input(format!("{ancestor}^{{commit}}\n")).run()?;
        let stderr = said.stderr.clone();
        if said.require_success()?.ends_with(b" missing\n") {
            // Git says this of a damaged object, too, after it has said what is wrong with it.
            return if stderr.is_empty() {
                Ok(false)
            } else {
                Err(GitError::unexpected_output(doing(), stderr))
            };
        }
        let call = self.git.prepare_call(doing()).git_dir(&self.common_dir);
        let said = call.args(["merge-base", "--is-ancestor", ancestor.as_str(), commit.as_str()]).run()?;
        match said.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => said.require_success().map(|_| false),
        }
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }
}

/// Reads objects of the user's repository by their ids.
#[derive(Debug)]
pub struct BlobReader {
    objects: Objects,
}

/// An object as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobContent {
    /// All of it.
    Whole(Vec<u8>),
    /// It has this many bytes, more than were asked for.
    Larger(u64),
}

impl BlobReader {
    /// The content of an object of at most `max` bytes; `None` if the repository does not have it.
    ///
    /// # Errors
    /// When git fails.
    pub fn read_content(&self, oid: &Oid, max: u64) -> Result<Option<BlobContent>, GitError> {
        let object = self.objects.read_object(oid, max)?;
        Ok(object.map(|object| match object.size > max {
            true => BlobContent::Larger(object.size),
            false => BlobContent::Whole(object.bytes),
        }))
    }
}

/// One checkout of the person: the main one or a linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkout {
    pub root: PathBuf,
    pub git_dir: PathBuf,
}

/// The git folder behind `.git`: the folder itself, or where the file points.
fn git_dir_of(dot_git: &Path) -> Option<PathBuf> {
    let meta = std::fs::metadata(dot_git).ok()?;
    if meta.is_dir() {
        return looks_like_git_dir(dot_git).then(|| dot_git.canonicalize().ok()).flatten();
    }
    if !meta.is_file() || meta.len() > 8192 {
        return None;
    }
    let bytes = std::fs::read(dot_git).ok()?;
    let target = files::path_of(bytes.strip_prefix(b"gitdir: ")?.trim_ascii_end());
    let target = dot_git.parent()?.join(target).canonicalize().ok()?;
    looks_like_git_dir(&target).then_some(target)
}

fn looks_like_git_dir(folder: &Path) -> bool {
    let common = common_dir_of(folder);
    files::path_exists(&folder.join("HEAD"))
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}

fn common_dir_of(git_dir: &Path) -> PathBuf {
    let Ok(bytes) = std::fs::read(git_dir.join("commondir")) else {
        return git_dir.to_owned();
    };
    let path = git_dir.join(Path::new(std::ffi::OsStr::from_bytes(bytes.trim_ascii_end())));
    path.canonicalize().unwrap_or(path)
}

/// git's own rule: mine, or mine before `sudo`.
fn may_trust(owner: u32) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let before_sudo = std::env::var("SUDO_UID").ok().and_then(|text| text.parse::<u32>().ok());
    owner == me || (me == 0 && before_sudo == Some(owner))
}

/// The branch that the file `HEAD` names in the form that git writes itself. For all else git is asked: a commit, a link, a file
/// that somebody wrote by hand, or `refs/heads/.invalid`, which says that the refs are kept in a table.
pub(super) fn plain_head(git_dir: &Path) -> Option<String> {
    const LENGTH_MAX: u64 = 4096;
    let path = git_dir.join("HEAD");
    let is_plain =
        std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= LENGTH_MAX);
    let text = if is_plain { std::fs::read_to_string(path).ok()? } else { return None };
    let name = text.strip_prefix("ref: ")?.strip_suffix('\n')?;
    BranchName::new(name.strip_prefix("refs/heads/")?).ok()?;
    Some(name.to_owned())
}

/// Whether a ref may be another name for a ref. A missing file is none: the ref is packed, or has no commit yet.
fn may_be_symbolic(common_dir: &Path, full: &str) -> bool {
    let path = common_dir.join(full);
    match std::fs::symlink_metadata(&path) {
        // A link is how git wrote symbolic refs long ago, and it still reads them.
        Ok(meta) if !meta.is_file() => true,
        Ok(_) => std::fs::read(&path).map_or(true, |text| text.starts_with(b"ref:")),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_plain_head_is_read_from_its_file_and_for_all_else_git_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let head = folder.path().join("HEAD");
        let check = |text: &str, expected: Option<&str>| {
            std::fs::write(&head, text).expect("a file");
            assert_eq!(plain_head(folder.path()).as_deref(), expected, "{text:?}");
        };
        assert_eq!(plain_head(folder.path()), None);
        check("ref: refs/heads/main\n", Some("refs/heads/main"));
        check("ref: refs/heads/a/b\n", Some("refs/heads/a/b"));
        check("ref: refs/heads/.invalid\n", None);
        check("ref: refs/heads/a..b\n", None);
        check("ref: refs/tags/v1\n", None);
        check("ref: refs/heads/main", None);
        check("ref: refs/heads/main\n\n", None);
        check("ref:  refs/heads/main\n", None);
        check(&format!("{}\n", "1".repeat(40)), None);
        std::fs::remove_file(&head).expect("ours");
        std::fs::write(folder.path().join("main"), "ref: refs/heads/main\n").expect("a file");
        std::os::unix::fs::symlink("main", &head).expect("a link");
        assert_eq!(plain_head(folder.path()), None);
    }

    #[test]
    fn a_commit_that_is_damaged_is_an_error_and_one_that_is_absent_leads_to_nothing() {
        let git = Git::find_installed().expect("git is there");
        let folder = tempfile::tempdir().expect("a folder");
        let run = |args: &[&str]| {
            let mut command = Command::new("git");
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
            let who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
            let done = command.current_dir(folder.path()).args(who).args(args).output().expect("git runs");
            assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8_lossy(&done.stdout).trim().to_owned()
        };
        run(&["init", "--quiet"]);
        run(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
        let first: Oid = run(&["rev-parse", "HEAD"]).parse().expect("an id");
        run(&["commit", "--quiet", "--allow-empty", "--message", "second"]);
        let second: Oid = run(&["rev-parse", "HEAD"]).parse().expect("an id");
        let repo = Repo::discover(&git, folder.path()).expect("a repository");
        assert!(repo.has_ancestor(&second, &first).expect("known"));
        assert!(!repo.has_ancestor(&first, &second).expect("known"));
        let absent: Oid = "1".repeat(40).parse().expect("an id");
        assert!(!repo.has_ancestor(&second, &absent).expect("it is not there"));
        // As a power cut leaves it.
        let name = first.as_str();
        let object = repo.common_dir.join("objects").join(&name[..2]).join(&name[2..]);
        std::fs::remove_file(&object).expect("it is loose");
        std::fs::write(&object, "").expect("a file");
        let damaged = repo.has_ancestor(&second, &first).expect_err("nobody knows");
        assert!(damaged.full_message().contains(name), "{}", damaged.full_message());
    }
}
