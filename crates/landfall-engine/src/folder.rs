//! The state folder: where everything lives that is not the person's to version.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use landfall_model::{Attempt, TaskId};

const BASES: &str = "bases";
const BASE_NAME: &str = "base"; // the file that holds the name of the branch
const BASE_WORD_MAX: usize = 40; // a name is for people; the hash tells them apart

/// The paths inside a project's state folder.
#[derive(Debug, Clone)]
pub struct StateFolder {
    root: PathBuf,
    /// The state folder of the project, where this is that of another base.
    project: Option<PathBuf>,
}

impl StateFolder {
    /// The folder at `root`.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root, project: None }
    }

    /// The folder of the same project for work that lands on another base than its own: a journal, a store and workspaces
    /// that have nothing to do with the project's.
    #[must_use]
    pub fn for_base(&self, base: &str) -> Self {
        let word: String = base
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' })
            .collect();
        let word: String = word.trim_matches('-').chars().take(BASE_WORD_MAX).collect();
        let hash = blake3::hash(base.as_bytes()).to_hex();
        let name = format!("{word}-{}", &hash.as_str()[..8]); // words alone are not distinct
        self.of_line(Some(name.trim_start_matches('-')))
    }

    /// The state folder of the project itself.
    #[must_use]
    pub fn project(&self) -> &Path {
        self.project.as_ref().unwrap_or(&self.root)
    }

    /// The folder of the same project for the base of this name; of the project itself, if there is none.
    #[must_use]
    pub fn of_line(&self, line: Option<&str>) -> Self {
        let project = self.project().to_owned();
        match line {
            Some(line) => Self { root: project.join(BASES).join(line), project: Some(project) },
            None => Self::at(project),
        }
    }

    /// What this base is called in names, where it is not the project's own.
    #[must_use]
    pub fn line(&self) -> Option<&str> {
        self.project.as_ref().and_then(|_| self.root.file_name()?.to_str())
    }

    /// The folder of the project at `project`: `$LANDFALL_STATE`, else under `$XDG_STATE_HOME`, else under
    /// `~/.local/state`. `variable` looks an environment variable up.
    #[must_use]
    pub fn of(project: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = set("LANDFALL_STATE") {
            return Some(Self::at(root));
        }
        let home = || set("HOME").map(|home| home.join(".local/state"));
        let states = set("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home)?;
        let hash = blake3::hash(project.as_os_str().as_bytes()).to_hex();
        let mut name = project.file_name().unwrap_or(OsStr::new("project")).to_owned();
        name.push("-");
        name.push(&hash.as_str()[..8]);
        Some(Self::at(states.join("landfall").join(name)))
    }

    /// The other bases that work of this project lands on, or has.
    #[must_use]
    pub fn bases(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.project().join(BASES)).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join(BASE_NAME)).ok());
        let mut all: Vec<String> = named.collect();
        all.sort();
        all
    }

    /// Notes which base this is the folder of, for [`StateFolder::bases`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_base(&self, base: &str) -> std::io::Result<()> {
        std::fs::write(self.root.join(BASE_NAME), base)
    }

    /// Makes the folders that are missing, readable by nobody else.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn make(&self) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for path in [
            self.root.clone(),
            self.workspaces(),
            self.lanes(),
            self.attempts(),
            self.papers(),
            self.modules(),
        ] {
            builder.create(path)?;
        }
        Ok(())
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// The bare repository only the engine writes.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.root.join("store.git")
    }

    /// Where agents work.
    #[must_use]
    pub fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// Where verification runs.
    #[must_use]
    pub fn lanes(&self) -> PathBuf {
        self.root.join("lanes")
    }

    /// The records of agent runs and checks.
    #[must_use]
    pub fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Reports and certificates, named by their hash.
    #[must_use]
    pub fn papers(&self) -> PathBuf {
        self.root.join("papers")
    }

    /// Issues that are files, unless settings keep them elsewhere.
    #[must_use]
    pub fn issues(&self) -> PathBuf {
        self.project().join("issues") // they are of the project, wherever they land
    }

    /// What we wrote into the folders of modules, by task.
    #[must_use]
    pub fn modules(&self) -> PathBuf {
        self.root.join("modules")
    }

    /// Marks that a tracker has something new.
    #[must_use]
    pub fn nudges(&self) -> PathBuf {
        self.root.join("nudges")
    }

    /// Where commands of the person's run that belong to no attempt.
    #[must_use]
    pub fn errands(&self) -> PathBuf {
        self.root.join("errands")
    }

    /// What became of hooks, a line each.
    #[must_use]
    pub fn hooks_log(&self) -> PathBuf {
        self.root.join("hooks.jsonl")
    }

    /// What became of messages, a line each.
    #[must_use]
    pub fn notices_log(&self) -> PathBuf {
        self.root.join("notices.jsonl")
    }

    /// Which workspace has which ports.
    #[must_use]
    pub fn ports(&self) -> PathBuf {
        self.project().join("ports.json") // there is one machine, wherever work lands
    }

    /// Where a running engine listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join("engine.sock")
    }

    /// The record of one run of an agent.
    #[must_use]
    pub fn iteration(&self, task: TaskId, attempt: Attempt, iteration: u32) -> PathBuf {
        self.attempts().join(format!("{task}-{attempt}-i{iteration}"))
    }

    /// The record of one run of a check.
    #[must_use]
    pub fn check(&self, name: &str) -> PathBuf {
        self.attempts().join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_has_a_folder_of_its_own_with_a_name_that_branches_and_marks_can_bear() {
        let project = StateFolder::at("/s".into());
        let bases = ["release/1.2", "release-1-2", "Release/1.2", "ä", "/", &"x".repeat(300)];
        let mut seen = std::collections::BTreeSet::new();
        for base in bases {
            let folder = project.for_base(base);
            let line = folder.line().expect("it is another base");
            assert!(
                line.len() <= BASE_WORD_MAX + 9 && !line.starts_with('-') && !line.ends_with('-'),
                "{line}"
            );
            assert!(
                line.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-'),
                "{line}"
            );
            assert!(seen.insert(line.to_owned()), "{base} has the name of another one");
            assert_eq!((folder.project(), folder.issues()), (project.root(), project.issues()));
            assert_eq!(folder.for_base(base).root(), folder.root(), "a base of a base is one of the project");
            assert_eq!(project.of_line(folder.line()).root(), folder.root());
        }
        assert_eq!((project.line(), project.of_line(None).root()), (None, project.root()));
    }
}
