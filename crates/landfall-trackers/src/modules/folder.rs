//! Finding and reading module folders.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landfall_model::Digest;
use thiserror::Error;

use super::entry::{self, EntryFolder};
use super::metadata::{Metadata, MetadataFormat};
use super::problem::{ModuleFormatError, UnreadableMetadata};
use super::target::ModuleTarget;
use super::text::is_name;
use super::type_profile::TYPE_PROFILE;
use super::write::{FileError, ModuleWrite, WriteReport, apply_in, digest_bytes, path_below, read_below};

/// What sort of folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// Below `TASK/`.
    Task,
    /// Below `AiTasks/`.
    AiTasks,
    /// `.working/` of a notebook's worktree.
    Notebook,
}

impl ModuleKind {
    /// The form a new module of this sort has.
    #[must_use]
    pub fn metadata_format(self) -> MetadataFormat {
        match self {
            Self::Task => MetadataFormat::IndexMd,
            Self::AiTasks => MetadataFormat::IndexJson,
            Self::Notebook => MetadataFormat::StatusJson,
        }
    }

    /// The flow its tasks go through.
    #[must_use]
    pub fn flow_name(self) -> &'static str {
        match self {
            Self::Task | Self::AiTasks => "lifecycle",
            Self::Notebook => "staged",
        }
    }
}

/// Where a module is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLocation {
    /// The project's root.
    pub root: PathBuf,
    /// The folder, below the root.
    pub path: PathBuf,
    /// What it is called.
    pub name: String,
    /// What sort it is.
    pub sort: ModuleKind,
}

impl ModuleLocation {
    /// The folder.
    #[must_use]
    pub fn to_path(&self) -> PathBuf {
        self.root.join(&self.path)
    }

    /// Writes files of the folder. It is entered from the root without following links.
    ///
    /// # Errors
    /// As for [`apply`](super::write::apply).
    pub fn apply(&self, writes: &[ModuleWrite]) -> Result<WriteReport, FileError> {
        apply_in(&self.root, &self.shown_path(), writes)
    }

    /// Its path below the root, with `/`.
    #[must_use]
    pub fn shown_path(&self) -> String {
        self.path.display().to_string()
    }
}

/// A folder that was not taken for a module, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFolder {
    /// The folder, below the root.
    pub path: PathBuf,
    /// Why not.
    pub why: String,
}

/// What lies below a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleScan {
    /// The modules, by name.
    pub modules: Vec<ModuleLocation>,
    /// What looks like one and is not.
    pub passed: Vec<SkippedFolder>,
}

/// Why folders could not be looked at.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The machine said no.
    #[error("look into `{path}`")]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Not a folder below the project.
    #[error(
        "`{0}` is not a folder of modules below the project; known: TASK, AiTasks, .worktrees/task-<name>/.working"
    )]
    Outside(PathBuf),
    /// Not a module's name.
    #[error("`{0}` cannot name a module; letters, digits, `_` and `-` can")]
    Name(String),
    /// A link stands where the folder should be.
    #[error("`{0}` is a link; links are not followed here")]
    Link(PathBuf),
    /// A file of it could not be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Roots of modules, below a project.
pub const ROOTS: [(&str, ModuleKind); 2] = [("TASK", ModuleKind::Task), ("AiTasks", ModuleKind::AiTasks)];
const WORKTREES: &str = ".worktrees";
const NOTEBOOK_PREFIX: &str = "task-";
/// The folder of a notebook's own files.
pub const WORKING: &str = ".working";

/// The modules of a project: below `TASK/` and `AiTasks/`, and the notebooks below `.worktrees/`.
///
/// # Errors
/// When a folder that is there cannot be read.
pub fn find_modules(project: &Path) -> Result<ModuleScan, FolderError> {
    let mut found = ModuleScan::default();
    for (root, sort) in ROOTS {
        scan_below(project, Path::new(root), sort, &mut found)?;
    }
    for name in list_names(&project.join(WORKTREES))? {
        let Some(notebook) = name.strip_prefix(NOTEBOOK_PREFIX) else { continue };
        let path = Path::new(WORKTREES).join(&name).join(WORKING);
        consider_folder(project, path, notebook, ModuleKind::Notebook, &mut found);
    }
    Ok(found)
}

/// The modules at a path a person named: one module, a folder of them, or a notebook's worktree.
///
/// # Errors
/// When it is none of these, or not below the project.
pub fn find_at(project: &Path, path: &Path) -> Result<ModuleScan, FolderError> {
    let outside = || FolderError::Outside(path.to_owned());
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    let whole = if path.is_absolute() { path.to_owned() } else { project.join(path) };
    // Links above the project are the machine's business; below it they are not followed.
    let real = fs::canonicalize(&whole).map_err(io)?;
    let real_project = fs::canonicalize(project).map_err(io)?;
    let relative = path_below(&real_project, &real).ok_or_else(outside)?;
    if let Some(asked) = path_below(project, &whole).filter(|asked| {
        *asked != relative && asked.components().all(|part| matches!(part, std::path::Component::Normal(_)))
    }) {
        return Err(FolderError::Link(asked));
    }
    let parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let mut found = ModuleScan::default();
    let sort_of = |root: &str| ROOTS.iter().find(|(name, _)| *name == root).map(|(_, sort)| *sort);
    match parts.as_slice() {
        [] => return find_modules(project),
        [root] if sort_of(root).is_some() => {
            scan_below(project, &relative, sort_of(root).expect("just asked"), &mut found)?;
        }
        [root, module] if sort_of(root).is_some() => {
            check_name(module)?;
            consider_folder(
                project,
                relative.clone(),
                module,
                sort_of(root).expect("just asked"),
                &mut found,
            );
        }
        [WORKTREES] => {
            found = find_modules(project)?;
            found.modules.retain(|place| place.sort == ModuleKind::Notebook);
        }
        [WORKTREES, name] | [WORKTREES, name, WORKING] => {
            let notebook = name.strip_prefix(NOTEBOOK_PREFIX).ok_or_else(outside)?;
            check_name(notebook)?;
            let path = Path::new(WORKTREES).join(name).join(WORKING);
            consider_folder(project, path, notebook, ModuleKind::Notebook, &mut found);
        }
        _ => return Err(outside()),
    }
    Ok(found)
}

fn check_name(name: &str) -> Result<(), FolderError> {
    if is_name(name) { Ok(()) } else { Err(FolderError::Name(super::problem::shorten_text(name))) }
}

fn scan_below(
    project: &Path,
    root: &Path,
    sort: ModuleKind,
    found: &mut ModuleScan,
) -> Result<(), FolderError> {
    for name in list_names(&project.join(root))? {
        // `.experiences`, `.references` and the like are shared, not modules.
        if !name.starts_with('.') {
            consider_folder(project, root.join(&name), &name, sort, found);
        }
    }
    Ok(())
}

fn consider_folder(project: &Path, path: PathBuf, name: &str, sort: ModuleKind, found: &mut ModuleScan) {
    let mut whole = project.to_owned();
    for part in &path {
        whole.push(part);
        match fs::symlink_metadata(&whole) {
            Ok(metadata) if metadata.is_symlink() => {
                let why = format!("`{}` is a link; links are not followed here", whole.display());
                found.passed.push(SkippedFolder { path, why });
                return;
            }
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) | Err(_) => return, // a file beside the modules, or a worktree without a notebook
        }
    }
    if !is_name(name) {
        let why = format!(
            "`{}` cannot name a module; letters, digits, `_` and `-` can",
            super::problem::shorten_text(name)
        );
        found.passed.push(SkippedFolder { path, why });
        return;
    }
    let there = |file: &str| whole.join(file).symlink_metadata().is_ok();
    if MetadataFormat::ALL.iter().any(|form| there(form.file_name())) || there(TARGET) {
        found.modules.push(ModuleLocation { root: project.to_owned(), path, name: name.to_owned(), sort });
    } else {
        found.passed.push(SkippedFolder { path, why: "there is no metadata and no target in it".to_owned() });
    }
}

/// The names in a folder, sorted; a folder that is not there has none.
fn list_names(folder: &Path) -> Result<Vec<String>, FolderError> {
    let io = |source| FolderError::Io { path: folder.to_owned(), source };
    match fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        if let Ok(name) = entry.map_err(io)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The objective.
pub const TARGET: &str = ".target.md";
/// The plan that counts.
pub const PLAN: &str = ".plan.md";

/// Files of a module that are read, besides its metadata and its shelves.
pub const FILES: &[&str] = &[
    TARGET,
    PLAN,
    ".convergence-baseline.md",
    ".pending-refinements.md",
    ".summary.md",
    ".report.md",
    ".auto-timeline.md",
    TYPE_PROFILE,
    ".exclusions.md",
    ".tmp-annotations.json",
];

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSnapshot {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
}

impl FileSnapshot {
    /// Takes the bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let digest = digest_bytes(&bytes);
        Self { bytes, digest }
    }

    /// Its text; what is no text is shown as such.
    #[must_use]
    pub fn lossy_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A module folder as it was seen at one moment.
#[derive(Debug, Clone)]
pub struct ModuleFolderSnapshot {
    /// Where.
    pub place: ModuleLocation,
    /// Which file holds the metadata.
    pub form: MetadataFormat,
    /// What the metadata says; none when there is no such file.
    pub metadata: Option<Result<Metadata, UnreadableMetadata>>,
    /// All files, by their path below the folder, the metadata included.
    pub files: BTreeMap<String, FileSnapshot>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl ModuleFolderSnapshot {
    /// What it wants.
    #[must_use]
    pub fn read_target(&self) -> ModuleTarget {
        ModuleTarget::read(&self.file_text(TARGET).unwrap_or_default())
    }

    /// The text of a file.
    #[must_use]
    pub fn file_text(&self, path: &str) -> Option<String> {
        self.files.get(path).map(|file| file.lossy_text().into_owned())
    }

    /// Whether there is a plan that says something.
    #[must_use]
    pub fn has_plan(&self) -> bool {
        self.file_text(PLAN).is_some_and(|plan| !plan.trim().is_empty())
    }

    /// The latest entry of a shelf, with its path: the last by name.
    #[must_use]
    pub fn latest_entry(&self, shelf: EntryFolder) -> Option<String> {
        let prefix = format!("{}/", shelf.folder_name());
        let names = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let latest = entry::latest_entry(names).map(|name| format!("{prefix}{name}"));
        latest.or_else(|| Some(shelf.old_file()).filter(|file| self.files.contains_key(file)))
    }

    /// What fixes go by: the newest of bugfix and analysis.
    #[must_use]
    pub fn latest_guidance(&self) -> Option<String> {
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        [EntryFolder::Bugfix, EntryFolder::Analysis]
            .into_iter()
            .filter_map(|shelf| self.latest_entry(shelf))
            .max_by_key(name)
    }

    /// What is not understood in its metadata.
    #[must_use]
    pub fn problems(&self) -> &[ModuleFormatError] {
        match &self.metadata {
            Some(Err(unread)) => &unread.errors,
            Some(Ok(_)) | None => &[],
        }
    }
}

/// Whether it is what we keep of a broken file.
pub(super) fn is_copy(name: &str) -> bool {
    MetadataFormat::ALL
        .iter()
        .any(|form| name.strip_prefix(form.file_name()).is_some_and(|rest| rest.starts_with(".corrupt-")))
}

const FILES_MAX: usize = 2_000; // a year of daily entries on each shelf; beyond it the folder is not a module

/// Reads a folder.
///
/// # Errors
/// When it cannot be read. Files that make no sense are no error here: they are in [`ModuleFolderSnapshot`].
pub fn read(place: &ModuleLocation) -> Result<ModuleFolderSnapshot, FolderError> {
    let dir = place.to_path();
    // A link that took the folder's place since it was found is not followed: every read goes through the project's root.
    let at = |path: &str| format!("{}/{path}", place.path.display());
    let mut files = BTreeMap::new();
    let mut warnings = Vec::new();
    let mut take = |path: String, files: &mut BTreeMap<String, FileSnapshot>| -> Result<(), FolderError> {
        match read_below(&place.root, &at(&path)) {
            Ok(Some(bytes)) => {
                files.insert(path, FileSnapshot::new(bytes));
            }
            Ok(None) => {}
            Err(error @ (FileError::Large { .. } | FileError::Link(_))) => warnings.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    };
    let mut paths: Vec<String> = Vec::new();
    for name in list_names(&dir)? {
        let archive = |shelf: EntryFolder| {
            name.strip_prefix(&format!("{}-stage-", shelf.folder_name()))
                .is_some_and(|n| n.parse::<u32>().is_ok())
        };
        let old = |shelf: EntryFolder| name == shelf.old_file();
        let archived_plan = name.starts_with(".plan-superseded") || name.starts_with(".plan-stage-");
        if EntryFolder::ALL.into_iter().any(|shelf| name == shelf.folder_name() || archive(shelf)) {
            let inside = list_names(&dir.join(&name))?;
            paths
                .extend(inside.into_iter().filter(|it| it.ends_with(".md")).map(|it| format!("{name}/{it}")));
        } else if FILES.contains(&name.as_str())
            || MetadataFormat::ALL.iter().any(|form| form.file_name() == name)
            || is_copy(&name)
            || EntryFolder::ALL.into_iter().any(old)
            || (archived_plan && name.ends_with(".md"))
        {
            paths.push(name);
        }
    }
    let many = paths.len();
    for path in paths.into_iter().take(FILES_MAX) {
        take(path, &mut files)?;
    }
    if many > FILES_MAX {
        warnings.push(format!("`{}` has {many} files; only {FILES_MAX} are read", place.shown_path()));
    }
    let present: Vec<MetadataFormat> =
        MetadataFormat::ALL.into_iter().filter(|form| files.contains_key(form.file_name())).collect();
    let form = present.first().copied().unwrap_or(place.sort.metadata_format());
    for other in present.iter().skip(1) {
        warnings.push(format!(
            "`{}` is not looked at: `{}` says the same",
            at(other.file_name()),
            form.file_name()
        ));
    }
    let metadata = files.get(form.file_name()).map(|file| {
        let name = at(form.file_name());
        match std::str::from_utf8(&file.bytes) {
            Ok(text) => Metadata::read_named(form, &name, text),
            Err(error) => {
                let line =
                    1 + file.bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                let bad = super::problem::ModuleLineProblem::new(line, "this is no text in UTF-8");
                Err(UnreadableMetadata { errors: vec![bad.in_file(&name)] })
            }
        }
    });
    Ok(ModuleFolderSnapshot { place: place.clone(), form, metadata, files, warnings })
}
