//! The state folder: where everything lives that is not the person's to version.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use landfall_model::{Attempt, TaskId};

const BASES: &str = "bases";
const BASE_NAME: &str = "base"; // the file that holds the name of the branch
const BASE_WORDS_MAX: usize = 40; // a name is for people; the hash tells them apart

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
    pub fn at_root(root: PathBuf) -> Self {
        Self { root, project: None }
    }

    /// The folder of the same project for work that lands on another base than its own: a journal, a store and workspaces
    /// that have nothing to do with the project's.
    #[must_use]
    pub fn for_base(&self, base: &str) -> Self {
        let words = base.split(|it: char| !it.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-"); // two dashes end a comment
        let words = words.get(..BASE_WORDS_MAX).unwrap_or(&words).trim_end_matches('-');
        let hash = blake3::hash(base.as_bytes()).to_hex();
        let name = format!("{words}-{}", &hash.as_str()[..8]); // words alone are not distinct
        self.of_side(Some(name.trim_start_matches('-')))
    }

    /// The state folder of the project itself.
    #[must_use]
    pub fn project_folder(&self) -> &Path {
        self.project.as_ref().unwrap_or(&self.root)
    }

    /// The folder of the same project for the base of this name; of the project itself, if there is none.
    #[must_use]
    pub fn of_side(&self, side: Option<&str>) -> Self {
        let project = self.project_folder().to_owned();
        match side {
            Some(side) => Self { root: project.join(BASES).join(side), project: Some(project) },
            None => Self::at_root(project),
        }
    }

    /// What this base is called in names, where it is not the project's own.
    #[must_use]
    pub fn side_name(&self) -> Option<&str> {
        self.project.as_ref().and_then(|_| self.root.file_name()?.to_str())
    }

    /// The folder of the project at `project`: `$LANDFALL_STATE`, else under `$XDG_STATE_HOME`, else under
    /// `~/.local/state`. `variable` looks an environment variable up.
    #[must_use]
    pub fn for_project(project: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = set("LANDFALL_STATE") {
            return Some(Self::at_root(root));
        }
        let home = || set("HOME").map(|home| home.join(".local/state"));
        let states = set("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home)?;
        let hash = blake3::hash(project.as_os_str().as_bytes()).to_hex();
        let mut name = project.file_name().unwrap_or(OsStr::new("project")).to_owned();
        name.push("-");
        name.push(&hash.as_str()[..8]);
        Some(Self::at_root(states.join("landfall").join(name)))
    }

    /// The folders of the project's own base and of all the others.
    #[must_use]
    pub fn all_bases(&self) -> Vec<Self> {
        let entries = std::fs::read_dir(self.project_folder().join(BASES)).into_iter().flatten().flatten();
        let sides = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let others =
            sides.map(|side| self.of_side(Some(&side))).filter(|it| it.root.join(BASE_NAME).is_file());
        std::iter::once(self.of_side(None)).chain(others).collect()
    }

    /// The other bases that work of this project lands on, or has.
    #[must_use]
    pub fn list_bases(&self) -> Vec<String> {
        let mut all: Vec<String> = self.all_bases().iter().filter_map(Self::read_base_name).collect();
        all.sort();
        all
    }

    /// The branch that this is the folder of, where it is not the project's own.
    #[must_use]
    pub fn read_base_name(&self) -> Option<String> {
        let name = self.side_name().and_then(|_| std::fs::read_to_string(self.root.join(BASE_NAME)).ok());
        name.filter(|name| !name.is_empty())
    }

    /// Notes which base this is the folder of, for [`StateFolder::list_bases`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_base(&self, base: &str) -> std::io::Result<()> {
        let file = self.root.join(BASE_NAME);
        match std::fs::read(&file) {
            Ok(there) if there == base.as_bytes() => Ok(()),
            Ok(_) | Err(_) => landfall_host::disk::write_atomic(&file, base.as_bytes()),
        }
    }

    /// Makes the folders that are missing, readable by nobody else.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn create_folders(&self) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for path in [
            self.root.clone(),
            self.workspaces_path(),
            self.lanes_path(),
            self.attempts_path(),
            self.papers_path(),
            self.modules_path(),
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
    pub fn journal_path(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// The bare repository only the engine writes.
    #[must_use]
    pub fn store_path(&self) -> PathBuf {
        self.root.join("store.git")
    }

    /// Where agents work.
    #[must_use]
    pub fn workspaces_path(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// Where verification runs.
    #[must_use]
    pub fn lanes_path(&self) -> PathBuf {
        self.root.join("lanes")
    }

    /// Where checks run that the user asks for without an engine.
    #[must_use]
    pub fn own_checks(&self) -> PathBuf {
        self.root.join("checks")
    }

    /// The records of agent runs and checks.
    #[must_use]
    pub fn attempts_path(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Reports and certificates, named by their hash.
    #[must_use]
    pub fn papers_path(&self) -> PathBuf {
        self.root.join("papers")
    }

    /// Which settings the person has trusted.
    #[must_use]
    pub fn trust_file(&self) -> PathBuf {
        self.project_folder().join("trust.json") // they are of the project, wherever its work lands
    }

    /// Issues that are files, unless settings keep them elsewhere.
    #[must_use]
    pub fn issues_path(&self) -> PathBuf {
        self.project_folder().join("issues") // they are of the project, wherever they land
    }

    /// What we wrote into the folders of modules, by task.
    #[must_use]
    pub fn modules_path(&self) -> PathBuf {
        self.root.join("modules")
    }

    /// Marks that a tracker has something new.
    #[must_use]
    pub fn nudges_path(&self) -> PathBuf {
        self.root.join("nudges")
    }

    /// Where commands of the person's run that belong to no attempt.
    #[must_use]
    pub fn errands_path(&self) -> PathBuf {
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

    /// What belonged to journals that are lost.
    #[must_use]
    pub fn older_path(&self) -> PathBuf {
        self.root.join("older")
    }

    /// What the kernel had ended for lack of memory when the run under way began.
    #[must_use]
    pub fn oom_mark(&self) -> PathBuf {
        self.root.join("oom-mark")
    }

    /// What was repaired or replaced at a start, a line each.
    #[must_use]
    pub fn repairs_log(&self) -> PathBuf {
        self.root.join("repairs.jsonl")
    }

    /// Which workspace has which ports.
    #[must_use]
    pub fn ports_path(&self) -> PathBuf {
        self.project_folder().join("ports.json") // there is one machine, wherever work lands
    }

    /// Where a running engine listens.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.root.join("engine.sock")
    }

    /// The record of one run of an agent.
    #[must_use]
    pub fn iteration_path(&self, task: TaskId, attempt: Attempt, iteration: u32) -> PathBuf {
        self.attempts_path().join(format!("{task}-{attempt}-i{iteration}"))
    }

    /// The record of one run of a check.
    #[must_use]
    pub fn check_path(&self, name: &str) -> PathBuf {
        self.attempts_path().join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_has_a_folder_of_its_own_with_a_name_that_branches_and_marks_can_bear() {
        let project = StateFolder::at_root("/s".into());
        let long = format!("{}-{}", "x".repeat(39), "y".repeat(300));
        let bases =
            ["release/1.2", "release-1-2", "Release/1.2", "größe", "fix--x", "v1._2", "ä", "/", &long];
        let mut seen = std::collections::BTreeSet::new();
        for base in bases {
            let folder = project.for_base(base);
            let side = folder.side_name().expect("it is another base");
            assert!(
                side.len() <= BASE_WORDS_MAX + 9 && !side.starts_with('-') && !side.ends_with('-'),
                "{side}"
            );
            let key = landfall_trackers::tracker::Marker::new(&format!("done/t1.{side}/0"));
            assert!(key.is_ok(), "{side}: {key:?}");
            assert!(seen.insert(side.to_owned()), "{base} has the name of another one");
            assert_eq!(
                (folder.project_folder(), folder.issues_path()),
                (project.root(), project.issues_path())
            );
            assert_eq!(folder.for_base(base).root(), folder.root(), "a base of a base is one of the project");
            assert_eq!(project.of_side(folder.side_name()).root(), folder.root());
        }
        assert_eq!((project.side_name(), project.of_side(None).root()), (None, project.root()));
    }
}
