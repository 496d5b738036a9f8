//! Limits by profile, account and area, and files that two tasks would touch: who starts, and what the others are told.

use std::path::PathBuf;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, ScratchProject};

use crate::LANDFALL;

/// Tasks that write a file of their own, wait for leave, and are then done.
struct Yard {
    scratch: ScratchProject,
    go: PathBuf,
}

impl Yard {
    fn new(settings: &str) -> Self {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings(settings);
        let go = scratch.root().join("go");
        Self { scratch, go }
    }

    fn task(&self, title: &str, more: &[&str]) {
        let script = format!(
            "run = [\"sh\", \"-c\", \"while [ ! -e {} ]; do sleep 0.02; done\"]\nsignal = \"complete\"\n\
             [[write]]\npath = \"{title}.txt\"\ntext = \"{title}\\n\"\n",
            self.go.display()
        );
        self.scratch.task(title, &script, more);
    }

    fn start(&self, slots: &str, begin: &[&str]) -> BackgroundCommand {
        let run = self.scratch.start(&["run", "--slots", slots]);
        self.scratch
            .eventually("the agents to work", || begin.iter().all(|it| self.scratch.status(it) == "active"));
        run
    }

    /// Lets everybody go on to the end.
    fn finish(&self, mut run: BackgroundCommand, tasks: &[&str]) {
        std::fs::write(&self.go, "").expect("ours");
        assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{}", self.scratch.heard());
        for task in tasks {
            assert_eq!(self.scratch.status(task), "done", "{}", self.scratch.why(task));
        }
    }
}

#[test]
fn who_would_touch_the_same_file_is_passed_over_and_told_for_whom() {
    let yard = Yard::new("");
    yard.task("one", &["--touches", "src/lib.rs"]);
    yard.task("two", &["--touches", "src/"]);
    yard.task("three", &["--touches", "web/"]);
    let run = yard.start("2", &["T1", "T3"]);
    assert_eq!(yard.scratch.status("T2"), "waiting");
    assert_eq!(yard.scratch.wait_of("T2"), "slot");
    let held = "T2 is held back: T1, which has not landed, changes `src/lib.rs` as well; it starts when T1 has landed, or when \
                nothing else can run.";
    yard.scratch.eventually("it to be told", || yard.scratch.why("T2") == held);
    yard.finish(run, &["T1", "T2", "T3"]);
}

#[test]
fn an_area_has_as_many_agents_as_it_may_and_the_rest_is_told() {
    let yard = Yard::new("[[area]]\nname = \"database\"\npaths = [\"migrations/\"]\nslots = 1");
    yard.task("one", &["--touches", "migrations/1.sql"]);
    yard.task("two", &["--touches", "migrations/2.sql"]);
    yard.task("three", &[]);
    let run = yard.start("3", &["T1", "T3"]);
    yard.scratch.eventually("it to be told", || {
        yard.scratch.why("T2")
            == "T2 waits for its turn; other tasks hold all slots of area `database`, 1 at once."
    });
    yard.finish(run, &["T1", "T2", "T3"]);
}
