//! A place where the plugin can be: what is there, and how it gets there and away again.
//!
//! Files are written whole, by rename. What a person has changed, and what is not ours, is never touched.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::files::{self, PREFIX};
use super::stamp::{self, FileOwnership};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Who reads it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PluginHost {
    /// Claude Code, as a plugin.
    Claude,
    /// Codex, Gemini CLI, opencode and others, as Agent Skills.
    Skills,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLocation {
    /// Who reads it.
    pub host: PluginHost,
    /// Where its files are: the plugin's own folder, or the one where skills of all sorts are.
    pub folder: PathBuf,
}

/// What is done to a file, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginFileChange {
    /// Where it is.
    pub path: PathBuf,
    /// What.
    pub what: ChangeKind,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Write,
    /// It is there in another version.
    Update,
    /// It goes.
    Remove,
}

/// A file that is left as it is, though the plugin has one of this name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UntouchedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is left.
    pub why: &'static str,
}

/// What became of a place, or would.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PluginPlan {
    /// What is done.
    pub changes: Vec<PluginFileChange>,
    /// What is left alone.
    pub kept: Vec<UntouchedFile>,
    /// How many files are there already, just so.
    pub same: usize,
    /// The version that is there, if one is.
    pub version: Option<String>,
}

/// What could not be done.
#[derive(Debug, Error)]
#[error("{doing} `{}`: {source}", path.display())]
pub struct PluginFileError {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

fn file_error<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> PluginFileError + 'a {
    move |source| PluginFileError { doing, path: path.to_owned(), source }
}

/// What is at a path.
enum PathState {
    Nothing,
    File(String),
    /// A folder, a link, or bytes that are no text: nothing that Landfall has made.
    Other,
}

const CHANGED: &str = "it was changed since Landfall wrote it";
const FOREIGN: &str = "Landfall did not write it";

impl PluginLocation {
    /// The files that belong here, with their marks.
    fn wanted_files(&self) -> Vec<(String, String)> {
        let files = match self.host {
            PluginHost::Claude => files::plugin_files(),
            PluginHost::Skills => files::skill_files(),
        };
        files
            .into_iter()
            .map(|(path, text)| {
                let text = stamp::add_stamp(&path, &text, VERSION);
                (path, text)
            })
            .collect()
    }

    /// What installing would do.
    ///
    /// # Errors
    /// What could not be read.
    pub fn plan_install(&self) -> Result<PluginPlan, PluginFileError> {
        let mut plan = PluginPlan::default();
        let wanted = self.wanted_files();
        for (name, text) in &wanted {
            let path = self.folder.join(name);
            let kept = |why| UntouchedFile { path: path.clone(), why };
            match read_path_state(&path)? {
                PathState::Nothing => plan.changes.push(PluginFileChange { path, what: ChangeKind::Write }),
                PathState::File(there) => match stamp::find_owner(name, &there) {
                    FileOwnership::Ours(version) => {
                        if there == *text {
                            plan.same += 1;
                        } else {
                            plan.changes.push(PluginFileChange { path, what: ChangeKind::Update });
                        }
                        plan.version = Some(version);
                    }
                    // The very words of this version, without the mark: there is nothing to keep.
                    FileOwnership::Foreign | FileOwnership::Changed if is_same(name, &there, text) => {
                        plan.changes.push(PluginFileChange { path, what: ChangeKind::Update });
                    }
                    FileOwnership::Changed => plan.kept.push(kept(CHANGED)),
                    FileOwnership::Foreign => plan.kept.push(kept(FOREIGN)),
                },
                PathState::Other => plan.kept.push(kept(FOREIGN)),
            }
        }
        // What an older version had and this one has no more.
        for (name, path) in self.list_files()? {
            if !wanted.iter().any(|(wanted, _)| *wanted == name)
                && let PathState::File(text) = read_path_state(&path)?
                && matches!(stamp::find_owner(&name, &text), FileOwnership::Ours(_))
            {
                plan.changes.push(PluginFileChange { path, what: ChangeKind::Remove });
            }
        }
        Ok(plan)
    }

    /// What removing would do.
    ///
    /// # Errors
    /// What could not be read.
    pub fn plan_remove(&self) -> Result<PluginPlan, PluginFileError> {
        let mut plan = PluginPlan::default();
        for (name, path) in self.list_files()? {
            let whose = match read_path_state(&path)? {
                PathState::File(text) => stamp::find_owner(&name, &text),
                PathState::Nothing | PathState::Other => FileOwnership::Foreign,
            };
            match whose {
                FileOwnership::Ours(version) => {
                    plan.changes.push(PluginFileChange { path, what: ChangeKind::Remove });
                    plan.version = Some(version);
                }
                FileOwnership::Changed => plan.kept.push(UntouchedFile { path, why: CHANGED }),
                FileOwnership::Foreign => plan.kept.push(UntouchedFile { path, why: FOREIGN }),
            }
        }
        Ok(plan)
    }

    /// Does what a plan says. What was begun before a problem is whole: doing it again goes on from there.
    ///
    /// # Errors
    /// What could not be written or removed.
    pub fn apply_plan(&self, plan: &PluginPlan) -> Result<(), PluginFileError> {
        let wanted = self.wanted_files();
        for PluginFileChange { path, what } in &plan.changes {
            match what {
                ChangeKind::Write | ChangeKind::Update => {
                    let text = wanted.iter().find(|(name, _)| self.folder.join(name) == *path);
                    let (_, text) = text.expect("a plan names files that are wanted");
                    write(path, text)?;
                }
                ChangeKind::Remove => {
                    fs::remove_file(path).map_err(file_error("remove", path))?;
                    self.remove_empty_folders(path);
                }
            }
        }
        Ok(())
    }

    /// Removes the folders that a removed file leaves empty, as far as they are ours.
    fn remove_empty_folders(&self, path: &Path) {
        let ours = |folder: &&Path| match self.host {
            PluginHost::Claude => folder.starts_with(&self.folder),
            PluginHost::Skills => folder.starts_with(&self.folder) && *folder != self.folder,
        };
        for folder in path.ancestors().skip(1).take_while(ours) {
            if fs::remove_dir(folder).is_err() {
                break; // something else is in it
            }
        }
    }

    /// Every file of the folders that are ours, by its name below the place.
    fn list_files(&self) -> Result<Vec<(String, PathBuf)>, PluginFileError> {
        let mut folders = match self.host {
            PluginHost::Claude => vec![self.folder.clone()],
            PluginHost::Skills => list_entries(&self.folder)?
                .into_iter()
                .filter(|path| {
                    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
                })
                .filter(|path| is_folder(path))
                .collect(),
        };
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for path in list_entries(&folder)? {
                if is_folder(&path) {
                    folders.push(path);
                } else if let Some(name) = path.strip_prefix(&self.folder).ok().and_then(Path::to_str) {
                    files.push((name.to_owned(), path));
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A real folder; a link to one is somebody's own doing.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_dir())
}

fn list_entries(folder: &Path) -> Result<Vec<PathBuf>, PluginFileError> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(file_error("read", folder)(error)),
    }
}

fn read_path_state(path: &Path) -> Result<PathState, PluginFileError> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => return Ok(PathState::Other),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(PathState::Nothing),
        Err(error) => return Err(file_error("look at", path)(error)),
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(PathState::File(text)),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(PathState::Other),
        Err(error) => Err(file_error("read", path)(error)),
    }
}

/// Whether a file without a good mark says just what ours does.
fn is_same(name: &str, there: &str, ours: &str) -> bool {
    stamp::add_stamp(name, there, VERSION) == ours
}

/// Puts a file in its place, whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), PluginFileError> {
    let folder = path.parent().expect("below its place");
    fs::create_dir_all(folder).map_err(file_error("make", folder))?;
    let name = path.file_name().expect("a file").to_string_lossy();
    let part = folder.join(format!(".{name}.landfall-{}", std::process::id()));
    let written = fs::File::create(&part)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part); // it may never have been there
        file_error("write", path)(error)
    })
}
