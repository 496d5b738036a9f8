//! Where a project is and where its state is: found by looking at files, so that reading starts no process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_api::{Problem, ProblemCode};
use landfall_engine::StateFolder;
use landfall_engine::host::git::{BranchName, CheckoutHead, Git, Repo};
use landfall_engine::host::lock::StateLock;
use landfall_engine::host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_engine::store::StoreError;

use crate::ProjectLocator;
use crate::project::problems;
use crate::project::read_caches::ReadCaches;
use crate::project::reader_pool::PooledReader;

const STATE: &str = "LANDFALL_STATE";

/// A project: its checkout and its state folder. Cheap to clone and to send.
#[derive(Debug, Clone)]
pub(crate) struct ProjectLocation {
    /// The root of the checkout.
    pub root: PathBuf,
    /// The git folder of the checkout.
    pub git_dir: PathBuf,
    /// Where its state is.
    pub folder: StateFolder,
    /// The branch that is meant, where that is not the base of the project.
    pub base: Option<String>,
    /// Set when the state folder is not the one the environment names.
    pub state: Option<PathBuf>,
    /// The lock of the state folder, where this process holds it for longer than one request.
    pub lock: Option<Arc<StateLock>>,
    pub caches: Arc<ReadCaches>,
}

impl ProjectLocation {
    /// The project that is meant.
    pub fn find(at: &ProjectLocator) -> Result<Self, Problem> {
        let place = Self::with_state(&at.dir, None)?;
        let set = place.configured_base();
        let own = set.clone().or_else(|| place.head_branch());
        match &at.base {
            None => Ok(place),
            base if *base == own => Ok(place),
            Some(base) if set.is_some() => place.with_base(base),
            // Whatever is checked out is the project's base then, and that changes.
            Some(_) => {
                let what = "`--base` needs to know the project's own base, and `project.base` is not set";
                let own = own.unwrap_or_else(|| "main".to_owned());
                Err(Problem::new(ProblemCode::BadInput, what)
                    .with_hint(format!("set `base = {own:?}` in the section [project] of landfall.toml")))
            }
        }
    }

    /// The same project, for work that lands on another base than its own.
    fn with_base(self, base: &str) -> Result<Self, Problem> {
        let Ok(branch) = base.parse::<BranchName>() else {
            let what = format!("`{}` is not the name of a branch", base.escape_debug());
            return Err(Problem::new(ProblemCode::BadInput, what)
                .with_hint("`--base` takes a local branch such as `release/1.2`"));
        };
        let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
        let repo = Repo::discover(&git, &self.root).map_err(problems::from_repo_problem)?;
        if repo.branch_tip(&branch).map_err(|error| problems::from_git_error(&error))?.is_none() {
            let problem = problems::open(&landfall_engine::OpenError::NoBranch(base.to_owned()));
            return Err(Problem { code: ProblemCode::BadInput, ..problem }); // a word of the command, not of the settings
        }
        Ok(Self { folder: self.folder.for_base(base), base: Some(base.to_owned()), ..self })
    }

    /// The project around `dir`, with its state in `state` whatever the environment says.
    pub fn with_state(dir: &Path, state: Option<PathBuf>) -> Result<Self, Problem> {
        let (root, git_dir) = find_checkout(dir)?;
        let folder = StateFolder::for_project(&root, &env_lookup(state.clone()));
        let folder = folder.ok_or_else(|| problems::open(&landfall_engine::OpenError::NoHome))?;
        Ok(Self { root, git_dir, folder, base: None, state, lock: None, caches: Arc::default() })
    }

    /// The environment, as the engine should see it.
    pub fn engine_environment(&self) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        if let Some(state) = &self.state {
            all.retain(|(key, _)| key != STATE);
            all.push((STATE.into(), state.clone().into_os_string()));
        }
        all
    }

    /// The tables; none before the first task was added.
    pub fn open_reader(&self) -> Result<Option<PooledReader>, Problem> {
        let journal = self.folder.journal_path();
        if std::fs::metadata(&journal).is_ok_and(|meta| meta.len() == 0) {
            return Ok(None); // it holds no more than one that is missing
        }
        match PooledReader::open(&self.caches, &journal) {
            Ok(reader) => Ok(Some(reader)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(problems::from_store_error(&error)),
        }
    }

    /// The text of `landfall.toml`, if there is one that can be read.
    pub fn settings_text(&self) -> Option<String> {
        read_user_text(&self.root.join("landfall.toml"), USER_FILE_BYTES_MAX).ok()
    }

    /// The branch that work lands on, as far as files tell.
    pub fn base_branch_or_empty(&self) -> String {
        self.base
            .clone()
            .or_else(|| self.configured_base())
            .or_else(|| self.head_branch())
            .unwrap_or_default()
    }

    /// `project.base`. The rest of the settings is not looked at: this is on the way of every `status`.
    pub fn configured_base(&self) -> Option<String> {
        let text = self.settings_text().filter(|text| text.contains("base"))?;
        let table: toml::Table = text.parse().ok()?;
        table.get("project")?.get("base")?.as_str().map(str::to_owned)
    }

    /// The branch that work lands on: the one that was asked for, the one of the settings, or the one that is checked out.
    pub fn base_branch(&self) -> Option<String> {
        self.base.clone().or_else(|| self.configured_base()).or_else(|| self.head_branch())
    }

    fn head_branch(&self) -> Option<String> {
        if self.has_reftable() {
            return match self.discover_repo()?.read_head().ok()? {
                CheckoutHead::Branch { name, .. } => Some(name.as_str().to_owned()),
                CheckoutHead::Unborn { branch } => Some(branch),
                CheckoutHead::Detached { .. } => None,
            };
        }
        let head = std::fs::read_to_string(self.git_dir.join("HEAD")).ok()?;
        head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Whether refs are in a table that only git reads. `HEAD` names a branch then that does not exist.
    fn has_reftable(&self) -> bool {
        common_dir(&self.git_dir).join("reftable").is_dir()
    }

    fn discover_repo(&self) -> Option<Repo> {
        Repo::discover(&Git::find_installed().ok()?, &self.root).ok()
    }

    /// The last commit of a branch.
    pub fn branch_tip(&self, branch: &str) -> Option<String> {
        if branch.is_empty() || branch.starts_with(['/', '-']) || branch.contains("..") {
            return None;
        }
        if self.has_reftable() {
            let branch = BranchName::new(branch).ok()?;
            return self.discover_repo()?.branch_tip(&branch).ok()?.map(|oid| oid.as_str().to_owned());
        }
        let common = common_dir(&self.git_dir);
        let name = format!("refs/heads/{branch}");
        let is_id = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Ok(text) = std::fs::read_to_string(common.join(&name)) {
            return Some(text.trim().to_owned()).filter(|text| is_id(text));
        }
        let packed = std::fs::read_to_string(common.join("packed-refs")).ok()?;
        let line = packed.lines().find(|line| line.split_once(' ').is_some_and(|(_, rest)| rest == name))?;
        line.split_once(' ').map(|(id, _)| id.to_owned()).filter(|text| is_id(text))
    }
}

fn env_lookup(state: Option<PathBuf>) -> impl Fn(&str) -> Option<OsString> {
    move |name| match (&state, name) {
        (Some(state), STATE) => Some(state.clone().into_os_string()),
        _ => std::env::var_os(name),
    }
}

/// The checkout around `dir` and its git folder, by the engine's own rule: the nearest folder upward with a `.git`.
fn find_checkout(dir: &Path) -> Result<(PathBuf, PathBuf), Problem> {
    let start =
        dir.canonicalize().map_err(|error| not_a_repository_problem(dir).with_hint(format!("{error}")))?;
    for folder in start.ancestors() {
        if let Some(git_dir) = resolve_git_dir(&folder.join(".git")) {
            return Ok((folder.to_owned(), git_dir));
        }
        if is_git_dir(folder) {
            return Err(bare_repository_problem(folder));
        }
    }
    Err(not_a_repository_problem(dir)
        .with_hint("go to your project, or make it a repository with `git init` and a first commit"))
}

fn not_a_repository_problem(dir: &Path) -> Problem {
    Problem::new(ProblemCode::NotARepository, format!("`{}` is not inside a git repository", dir.display()))
}

pub(crate) fn bare_repository_problem(path: &Path) -> Problem {
    Problem::new(
        ProblemCode::BareRepository,
        format!("`{}` is a bare repository: it has no checkout", path.display()),
    )
    .with_hint(
        "use a clone of it with a checkout; landed work can be pushed back with `land.publish = \"push\"`",
    )
}

fn resolve_git_dir(dot_git: &Path) -> Option<PathBuf> {
    let meta = std::fs::metadata(dot_git).ok()?;
    let target = if meta.is_dir() {
        dot_git.to_owned()
    } else {
        let text = std::fs::read_to_string(dot_git).ok()?;
        dot_git.parent()?.join(text.strip_prefix("gitdir: ")?.trim_end())
    };
    let target = target.canonicalize().ok()?;
    is_git_dir(&target).then_some(target)
}

fn is_git_dir(folder: &Path) -> bool {
    let common = common_dir(folder);
    folder.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}

fn common_dir(git_dir: &Path) -> PathBuf {
    match std::fs::read_to_string(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(text.trim_end()),
        Err(_) => git_dir.to_owned(),
    }
}

/// The files that git tracks in the project.
pub(crate) fn tracked_files(place: &ProjectLocation) -> Result<std::collections::BTreeSet<String>, Problem> {
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    repo.tracked_files().map_err(|error| problems::from_git_error(&error))
}

/// The branch of the project around `dir` by git itself, for whoever is about to write settings.
pub(crate) fn read_branch_from_git(place: &ProjectLocation) -> Result<String, Problem> {
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    match repo.read_head().map_err(|error| problems::from_git_error(&error))? {
        CheckoutHead::Branch { name, .. } => Ok(name.as_str().to_owned()),
        CheckoutHead::Unborn { branch } => Err(problems::no_commits(&branch)),
        CheckoutHead::Detached { .. } => match place.configured_base() {
            Some(base) => Ok(base),
            None => Err(problems::detached_head()),
        },
    }
}
