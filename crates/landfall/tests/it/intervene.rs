//! What a person says to one task while it goes on, from outside: messages, redirects, holds, blocks, other limits.

use std::path::PathBuf;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, ScratchProject};

use crate::LANDFALL;
use crate::sandbox::open;

const SOON: Duration = Duration::from_secs(30);

/// A task whose first run says nothing and waits until it is let go; the second is done.
struct Steered {
    scratch: ScratchProject,
    go: PathBuf,
    began: PathBuf,
}

impl Steered {
    fn new() -> Self {
        Self::with_settings("")
    }

    fn with_settings(settings: &str) -> Self {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings(settings);
        let folder = open(&scratch);
        let (go, began) = (folder.join("go"), folder.join("began"));
        let script = format!(
            "[[iteration]]\nsay = \"thinking\"\nrun = [\"sh\", \"-c\", \"echo x >> {}; echo half > half.txt; \
             while [ ! -e {} ]; do sleep 0.02; done\"]\n\
             [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n",
            began.display(),
            go.display(),
        );
        scratch.task("Long", &script, &[]);
        Self { scratch, go, began }
    }

    /// Starts a run and waits until the agent is at work.
    fn start(&self) -> BackgroundCommand {
        let started = self.scratch.start(&["run", "--slots", "1"]);
        self.scratch.eventually("the agent to work", || self.began.exists());
        started
    }

    fn let_go(&self) {
        std::fs::write(&self.go, "").expect("ours");
    }

    /// How many prompts have this in them.
    fn told(&self, words: &str) -> usize {
        self.scratch.prompts("T1").iter().filter(|prompt| prompt.contains(words)).count()
    }
}

#[test]
fn messages_are_in_the_next_prompt_in_order_and_only_there() {
    let steered = Steered::new();
    let scratch = &steered.scratch;
    scratch.landfall(&["tell", "T1", "before it begins"]).ok();
    let mut run = steered.start();
    scratch.landfall(&["tell", "T1", "use the other parser"]).ok();
    let said = scratch.landfall(&["--json", "tell", "T1", "and keep the tests"]).ok();
    assert!(said.contains("begins the next run"), "{said}");
    let shown = scratch.landfall(&["show", "T1"]).ok();
    assert!(shown.contains("use the other parser"), "{shown}");
    steered.let_go();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    let prompts = scratch.prompts("T1");
    assert!(prompts[0].contains("before it begins"), "{}", prompts[0]);
    assert!(prompts[0].contains("A message from the person you work for"), "{}", prompts[0]);
    let at = |words: &str| prompts[1].find(words).unwrap_or_else(|| panic!("`{words}` in {}", prompts[1]));
    assert!(at("use the other parser") < at("and keep the tests"));
    for words in ["before it begins", "use the other parser", "and keep the tests"] {
        assert_eq!(steered.told(words), 1, "{words}");
    }
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_message_is_heard_once_although_the_engine_is_killed_wherever_the_run_begins() {
    for point in ["spawn.before", "spawn.after", "effect.spawn.before", "effect.prepare.after"] {
        let mut steered = Steered::new();
        steered.let_go();
        steered.scratch.landfall(&["tell", "T1", "use the other parser"]).ok();
        steered.scratch.set("LANDFALL_CRASH", point);
        let crashed = steered.scratch.landfall(&["run"]);
        assert!(crashed.code.is_none(), "{point}: it ended the engine: {crashed:?}");
        steered.scratch.unset("LANDFALL_CRASH");
        steered.scratch.landfall(&["run"]).ok();
        assert_eq!(steered.scratch.status("T1"), "done", "{point}: {}", steered.scratch.why("T1"));
        assert_eq!(steered.told("use the other parser"), 1, "{point}");
    }
}

#[test]
fn a_redirect_ends_the_run_keeps_its_work_and_costs_nothing() {
    let steered = Steered::new();
    let scratch = &steered.scratch;
    let mut run = steered.start();
    scratch.landfall(&["tell", "T1", "another way", "--now"]).ok();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(steered.told("another way"), 1);
    let of = |kind: &str| scratch.facts("T1", kind).len();
    assert_eq!((of("retried"), of("ended"), of("waited")), (0, 0, 0), "nothing was given up, or waited for");
    let detail = scratch.landfall(&["show", "T1"]).ok();
    assert!(!detail.contains("restarts"), "{detail}");
    assert_eq!(scratch.git(&["show", "main:half.txt"]), "half", "what it had done is there");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_hold_frees_the_slot_and_outlives_the_engine() {
    let steered = Steered::new();
    let scratch = &steered.scratch;
    scratch.task("Other", "signal = \"complete\"\n[[write]]\npath = \"c.txt\"\ntext = \"c\\n\"\n", &[]);
    let mut run = steered.start();
    scratch.landfall(&["hold", "T1", "the design", "is open"]).ok();
    assert!(scratch.why("T1").contains("after that you hold it"), "{}", scratch.why("T1"));
    steered.let_go();
    assert_eq!(run.wait(SOON), Some(9), "it waits for a person: {}", scratch.heard());
    assert_eq!(scratch.status("T2"), "done", "the slot was free for it");
    assert_eq!((scratch.status("T1").as_str(), scratch.wait_of("T1").as_str()), ("waiting", "pause"));
    assert!(scratch.why("T1").contains("the design is open"), "{}", scratch.why("T1"));
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "waiting", "another run does not begin it");
    let refused = scratch.landfall(&["retry", "T1"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.err.contains("landfall task release"), "{}", refused.err);
    scratch.landfall(&["release", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.prompts("T1").len(), 2, "it went on where it was");
}

#[test]
fn a_block_keeps_the_work_and_retry_opens_it_again() {
    let steered = Steered::new();
    let scratch = &steered.scratch;
    let mut run = steered.start();
    scratch.landfall(&["block", "T1", "no", "key"]).ok();
    run.wait(SOON);
    assert_eq!(scratch.status("T1"), "blocked");
    assert!(scratch.why("T1").contains("blocked by you: no key"), "{}", scratch.why("T1"));
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:half.txt"]), "half");
}

#[test]
fn a_task_that_ran_out_of_time_or_iterations_finishes_with_limits_of_its_own() {
    let steered = Steered::with_settings("[run]\ntask_limit = \"1s\"\n");
    let scratch = &steered.scratch;
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "timeout", "{}", scratch.why("T1"));
    let said =
        scratch.landfall(&["limits", "T1", "--time", "10m", "--iterations", "7", "--usd", "2.50"]).ok();
    assert!(said.contains("7 iterations, 10m of working time, $2.50"), "{said}");
    assert!(said.contains("landfall retry T1"), "{said}");
    let why = scratch.landfall(&["why", "T1"]).ok();
    assert!(why.contains("limits you set: 7 iterations"), "{why}");
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let shown = scratch.landfall(&["show", "T1"]).ok();
    assert!(shown.contains("of 7"), "{shown}");
}

#[test]
fn time_that_is_given_while_the_agent_runs_is_time_it_has() {
    let steered = Steered::with_settings("[run]\ntask_limit = \"3s\"\n");
    let scratch = &steered.scratch;
    let mut run = steered.start();
    scratch.landfall(&["limits", "T1", "--time", "10m"]).ok();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.facts("T1", "retried").len(), 0, "nobody had to take it up again");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let steered = Steered::new();
    let scratch = &steered.scratch;
    for (args, words) in [
        (&["tell", "T1", " "][..], "the message is empty"),
        (&["tell", "T9", "hello"], "no task T9"),
        (&["release", "T1"], "not held"),
        (&["block", "T1", " "], "the reason is empty"),
        (&["limits", "T1"], "missing"),
        (&["limits", "T1", "--iterations", "0"], "a limit of nothing"),
        (&["limits", "T1", "--usd", "-1"], "unexpected argument"),
        (&["limits", "T1", "--usd=-1"], "not an amount of money"),
        (&["diff", "T1", "--since", "0123456"], "no diff"),
    ] {
        let said = scratch.landfall(args);
        assert_ne!(said.code, Some(0), "{args:?}: {said:?}");
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
    assert_eq!(scratch.status("T1"), "ready");
}

#[test]
fn a_diff_since_a_commit_shows_the_work_after_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let script = "[[iteration]]\nsay = \"thinking\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"one\\n\"\n\
        [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"c.txt\"\ntext = \"two\\n\"\n";
    scratch.task("Two steps", script, &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]).ok();
    let whole = scratch.landfall(&["diff", "T1"]).ok();
    assert!(whole.contains("b.txt") && whole.contains("c.txt"), "{whole}");
    let all = scratch.landfall(&["diff", "T1", "--since", &before]).ok();
    assert!(all.contains("b.txt") && all.contains("c.txt"), "{all}");
    let first =
        scratch.git(&["rev-list", "main", "--", "b.txt"]).lines().last().expect("it landed").to_owned();
    let later = scratch.landfall(&["diff", "T1", "--since", &first[..10]]).ok();
    assert!(!later.contains("b.txt") && later.contains("c.txt"), "{later}");
    for other in ["0123456789012345678901234567890123456789", "main", "abc"] {
        let said = scratch.landfall(&["diff", "T1", "--since", other]);
        assert_eq!(said.code, Some(2), "{other}: {said:?}");
    }
}
