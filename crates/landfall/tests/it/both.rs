//! The same story where issues are files of the project, and on a GitHub of ours that sees what is pushed.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use landfall_testkit::{FAKE_TOKEN, FakeGithub, ScratchProject};
use serde_json::Value;

use crate::LANDFALL;

/// Keys of `[tracker]` for a forge of ours: nobody has to be spared there.
pub const SHORT_WAITS: &str = "poll = \"200ms\"\nwrite_pause = \"0s\"\n";

/// A project and its tracker.
pub struct World {
    /// What the settings call the tracker.
    pub tracker: &'static str,
    scratch: ScratchProject,
    github: Option<FakeGithub>,
}

impl Deref for World {
    type Target = ScratchProject;

    fn deref(&self) -> &ScratchProject {
        &self.scratch
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut ScratchProject {
        &mut self.scratch
    }
}

impl World {
    /// A project whose issues are files.
    pub fn local() -> Self {
        Self { tracker: "local", scratch: ScratchProject::new(LANDFALL), github: None }
    }

    /// A project whose `origin` is a GitHub of ours: issues and pull requests over HTTP, branches in a bare repository.
    pub fn github() -> Self {
        let github = FakeGithub::start();
        let mut scratch = ScratchProject::new(LANDFALL);
        let bare = scratch.root().join("forge.git");
        let bare_text = bare.to_str().expect("a path is text here");
        scratch.git(&["init", "--quiet", "--bare", "--initial-branch=main", bare_text]);
        scratch.git(&["remote", "add", "origin", bare_text]);
        scratch.more_settings(&format!(
            "[tracker]\nkind = \"github\"\nrepository = \"o/r\"\nurl = \"{}\"\n{SHORT_WAITS}[land]\npublish = \"push\"\n",
            github.url()
        ));
        scratch.git(&["push", "--quiet", "origin", "main"]);
        scratch.be_patient(Duration::from_secs(300));
        scratch.set("GH_ENTERPRISE_TOKEN", FAKE_TOKEN);
        github.world(|world| world.kept = Some(bare));
        Self { tracker: "github", scratch, github: Some(github) }
    }

    /// The GitHub of ours.
    #[track_caller]
    pub fn forge(&self) -> &FakeGithub {
        self.github.as_ref().expect("this story is told on GitHub")
    }

    /// The branch that landed work is seen on: where the tracker keeps branches, there.
    pub fn main(&self) -> &'static str {
        match &self.github {
            Some(_) => {
                self.git(&["fetch", "--quiet", "origin"]);
                "origin/main"
            }
            None => "main",
        }
    }

    /// A file as it landed.
    #[track_caller]
    pub fn landed(&self, path: &str) -> String {
        self.git(&["show", &format!("{}:{path}", self.main())])
    }

    /// The files that landed, at the top.
    pub fn files(&self) -> String {
        self.git(&["ls-tree", "--name-only", self.main()])
    }

    /// Changes the settings of the project. What is published is what they stand in.
    pub fn change_settings(&self, change: impl FnOnce(String) -> String) {
        let path = self.project().join("landfall.toml");
        let settings = std::fs::read_to_string(path).expect("the settings can be read");
        self.settings(&change(settings));
        self.publish();
    }

    /// Has the forge hold what the project holds, as a person who pushes.
    pub fn publish(&self) {
        if self.github.is_some() {
            self.git(&["push", "--quiet", "origin", "main"]);
        }
    }

    /// An issue as the tracker shows it.
    pub fn shown(&self, number: u64) -> Value {
        show(self, number)
    }
}

/// An issue as the tracker of a project shows it.
pub fn show(scratch: &ScratchProject, number: u64) -> Value {
    scratch.landfall(&["--json", "issue", "show", &number.to_string()]).json()
}

/// The labels of an issue as it is shown.
pub fn labels(shown: &Value) -> Vec<String> {
    let labels = shown["issue"]["labels"].as_array().into_iter().flatten();
    labels.map(|label| label.as_str().expect("a word").to_owned()).collect()
}

/// Tells each story on both trackers.
macro_rules! on_both {
    ($($story:ident),+ $(,)?) => {
        mod on_local {
            $(#[test]
            fn $story() {
                super::$story(&crate::both::World::local());
            })+
        }
        mod on_github {
            $(#[test]
            fn $story() {
                super::$story(&crate::both::World::github());
            })+
        }
    };
}

pub(crate) use on_both;
