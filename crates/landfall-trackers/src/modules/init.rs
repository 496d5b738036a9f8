//! Making a module: what a new folder holds, and what the root gets the first time.

use std::path::Path;

use landfall_model::Timestamp;
use thiserror::Error;

use super::folder::{FileSnapshot, ModuleKind, ROOTS, TARGET};
use super::listing::{Listing, ListingEntry};
use super::metadata::Metadata;
use super::problem::ModuleFormatError;
use super::record::ModuleRecord;
use super::text::{format_timestamp, is_name, plain_line};
use super::write::{ExpectedFile, FileError, ModuleWrite, read_below};

/// A module that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleInitRequest {
    /// Its folder.
    pub name: String,
    /// What people call it; its name otherwise.
    pub title: Option<String>,
    /// Words on it.
    pub tags: Vec<String>,
    /// Whether its work gets a worktree.
    pub worktree: bool,
    /// Below which root.
    pub sort: ModuleKind,
}

impl ModuleInitRequest {
    /// The branch of its work.
    #[must_use]
    pub fn branch_name(&self) -> String {
        format!("task/{}", self.name)
    }

    /// The worktree of its work, below the project; empty when it gets none.
    #[must_use]
    pub fn worktree_path(&self) -> String {
        if self.worktree { format!(".worktrees/task-{}", self.name) } else { String::new() }
    }
}

/// What is there before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleInitContext {
    /// The listing at the root.
    pub listing: Option<FileSnapshot>,
    /// The table of types.
    pub registry: bool,
    /// The project's `.gitignore`.
    pub ignore: Option<FileSnapshot>,
    /// Whether there is something where the folder should be.
    pub taken: bool,
    /// Whether its branch exists; git knows.
    pub branch_exists: bool,
    /// Tracked files that are not committed; git knows.
    pub dirty: Vec<String>,
}

/// Why a module is not made.
#[derive(Debug, Error)]
pub enum InitError {
    /// Not a name.
    #[error("`{0}` cannot name a module; letters, digits, `_` and `-` can")]
    Name(String),
    /// There is something already.
    #[error("`{0}` is there already")]
    Taken(String),
    /// The branch is there already.
    #[error("the branch `{0}` is there already")]
    Branch(String),
    /// Work that is not committed would be mixed up with it.
    #[error("{} changed files are not committed, the first is `{}`", .0.len(), .0.first().map_or("", String::as_str))]
    Dirty(Vec<String>),
    /// Notebooks are made with their worktree.
    #[error("a notebook lies in a worktree of its own; modules are made below TASK or AiTasks")]
    Notebook,
    /// The listing cannot be used.
    #[error(transparent)]
    Listing(#[from] ModuleFormatError),
    /// Files cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl InitError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Name(_) => Some("give it a name like `auth-refactor` and its words with `--title`"),
            Self::Taken(_) => Some("choose another name, or import the module that is there"),
            Self::Branch(_) => Some("choose another name, or finish what that branch holds"),
            Self::Dirty(_) => Some("commit them first; files that git does not know are no trouble"),
            Self::Notebook => None,
            Self::Listing(_) => Some("mend the listing; nothing was written"),
            Self::File(_) => None,
        }
    }
}

fn root_of(sort: ModuleKind) -> Result<&'static str, InitError> {
    ROOTS.iter().find(|(_, it)| *it == sort).map(|(root, _)| *root).ok_or(InitError::Notebook)
}

/// Looks at what is there on disk; what git knows is for the caller to fill in.
///
/// # Errors
/// When the files cannot be read, or the name is none.
pub fn read_init_context(project: &Path, ask: &ModuleInitRequest) -> Result<ModuleInitContext, InitError> {
    let root = root_of(ask.sort)?;
    if !is_name(&ask.name) {
        return Err(InitError::Name(super::problem::shorten_text(&ask.name)));
    }
    let file = |path: &str| read_below(project, path).map(|bytes| bytes.map(FileSnapshot::new));
    Ok(ModuleInitContext {
        listing: file(&format!("{root}/{}", listing_file(ask.sort)))?,
        registry: file(&format!("{root}/{REGISTRY}"))?.is_some(),
        ignore: file(".gitignore")?,
        taken: project.join(root).join(&ask.name).symlink_metadata().is_ok(),
        branch_exists: false,
        dirty: Vec::new(),
    })
}

const REGISTRY: &str = ".type-registry.md";

fn listing_file(sort: ModuleKind) -> &'static str {
    sort.metadata_format().file_name()
}

/// The files of a new module, below the project. The listing comes last: what it names is there.
///
/// # Errors
/// When it cannot be made; nothing is written then.
pub fn plan_init(
    ask: &ModuleInitRequest,
    around: &ModuleInitContext,
    now: Timestamp,
) -> Result<Vec<ModuleWrite>, InitError> {
    let root = root_of(ask.sort)?;
    if !is_name(&ask.name) {
        return Err(InitError::Name(super::problem::shorten_text(&ask.name)));
    }
    let folder = format!("{root}/{}", ask.name);
    if around.taken {
        return Err(InitError::Taken(folder));
    }
    if around.branch_exists {
        return Err(InitError::Branch(ask.branch_name()));
    }
    if !around.dirty.is_empty() {
        return Err(InitError::Dirty(around.dirty.clone()));
    }
    let title = ask.title.as_deref().map(plain_line).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| ask.name.clone());
    let mut module = ModuleRecord::new(&title, &format_timestamp(now));
    module.tags = ask.tags.iter().map(|tag| plain_line(tag)).filter(|tag| !tag.is_empty()).collect();
    module.branch = ask.branch_name();
    module.worktree = ask.worktree_path();
    let form = ask.sort.metadata_format();
    let mut writes = Vec::new();
    if let Some(write) = plan_ignore_write(root, around.ignore.as_ref()) {
        writes.push(write);
    }
    if !around.registry && ask.sort == ModuleKind::AiTasks {
        let heads = "# Types\n\n| Type | Description | Discovered | Source Task |\n|---|---|---|---|\n";
        writes.push(ModuleWrite::new(&format!("{root}/{REGISTRY}"), heads));
    }
    writes.push(ModuleWrite::new(&format!("{folder}/{TARGET}"), &target_template(&title)));
    writes.push(ModuleWrite::new(
        &format!("{folder}/{}", form.file_name()),
        Metadata::new(form, &module).text(),
    ));
    writes.push(plan_listing_write(
        root,
        ask.sort,
        around,
        &ListingEntry { module: ask.name.clone(), title },
    )?);
    Ok(writes)
}

fn plan_listing_write(
    root: &str,
    sort: ModuleKind,
    around: &ModuleInitContext,
    new: &ListingEntry,
) -> Result<ModuleWrite, InitError> {
    let path = format!("{root}/{}", listing_file(sort));
    let old = around.listing.as_ref().map(|file| file.lossy_text().into_owned());
    let listing = match sort {
        ModuleKind::Task => Listing::read_md(old.as_deref().unwrap_or("# Tasks\n")),
        ModuleKind::AiTasks | ModuleKind::Notebook => {
            Listing::read_json(&path, old.as_deref().unwrap_or_default())?
        }
    };
    let expect = around
        .listing
        .as_ref()
        .map_or(ExpectedFile::Absent, |file| ExpectedFile::Digest(file.digest.clone()));
    Ok(ModuleWrite::Put { path, bytes: listing.with_module(new).text().as_bytes().to_vec(), expect })
}

/// What is never committed: what comes and goes while work is under way.
fn plan_ignore_write(root: &str, there: Option<&FileSnapshot>) -> Option<ModuleWrite> {
    let old = there.map(|file| file.lossy_text().into_owned()).unwrap_or_default();
    let names = [
        ".auto-signal",
        ".auto-signal.tmp",
        ".auto-stop",
        ".lock",
        ".lock.*",
        ".tmp-annotations.json",
        "*.tmp",
    ];
    let wanted = names.iter().map(|name| format!("{root}/**/{name}")).chain([".worktrees/".to_owned()]);
    let missing: Vec<String> = wanted.filter(|entry| !old.lines().any(|line| line.trim() == entry)).collect();
    if missing.is_empty() {
        return None;
    }
    let mut text = old.clone();
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str("# Files of tasks that come and go\n");
    text.extend(missing.iter().map(|entry| format!("{entry}\n")));
    let expect = there.map_or(ExpectedFile::Absent, |file| ExpectedFile::Digest(file.digest.clone()));
    Some(ModuleWrite::Put { path: ".gitignore".to_owned(), bytes: text.into_bytes(), expect })
}

/// What a person fills in. Comments do not count as said.
fn target_template(title: &str) -> String {
    format!(
        "# {title}\n\n## Objective\n\n<!-- What should be true when this is done, and for whom? -->\n\n## Requirements\n\n\
         <!-- What can be checked, one line each. -->\n\n## Constraints\n\n<!-- What must not change or break. -->\n"
    )
}
