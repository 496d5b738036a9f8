//! Scripted agents that work until the test lets them go on, instead of for some seconds.

use std::path::{Path, PathBuf};

use landfall_testkit::ScratchProject;

/// A file that agents wait for.
pub struct HoldFile {
    file: PathBuf,
}

impl HoldFile {
    /// One that several stories of a scratch may have, each with its own name.
    pub fn new(scratch: &ScratchProject, name: &str) -> Self {
        Self::at(&scratch.root().join(format!("go-{name}")))
    }

    pub fn at(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    /// The shell command that waits.
    pub fn shell(&self) -> String {
        format!("while [ ! -e {} ]; do sleep 0.02; done", self.file.display())
    }

    /// The line of a script that waits.
    pub fn line(&self) -> String {
        format!("run = [\"sh\", \"-c\", \"{}\"]\n", self.shell())
    }

    /// The script, with a wait in the first turn of this step.
    pub fn in_step(&self, step: &str, script: &str) -> String {
        let head = format!("[[step.{step}]]\n");
        assert!(script.contains(&head), "no step `{step}` in {script}");
        script.replacen(&head, &format!("{head}{}", self.line()), 1)
    }

    /// Lets everybody who waits go on.
    pub fn release(&self) {
        std::fs::write(&self.file, "").expect("the scratch folder can be written");
    }
}
