//! What a person says while work goes on, from outside: answers, stops, retries, cancels, edits, Ctrl-C, a second engine.

use std::path::PathBuf;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, ScratchProject};

use crate::LANDFALL;
use crate::sandbox::{off, open};
use crate::styles::{Style, in_styles};

const SOON: Duration = Duration::from_secs(30);

fn writes(path: &str, text: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"{text}\\n\"\n")
}

/// A task whose agent works until it is let go.
struct Held {
    scratch: ScratchProject,
    go: PathBuf,
    began: PathBuf,
}

impl Held {
    /// One task that has written `b.txt`, waits, and is then done.
    fn new() -> Self {
        Self::with_settings("")
    }

    fn with_settings(settings: &str) -> Self {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings(settings);
        Self::within(Style::Fresh, scratch)
    }

    fn in_style(style: Style) -> Self {
        Self::within(style, style.scratch())
    }

    fn within(style: Style, scratch: ScratchProject) -> Self {
        let folder = open(&scratch);
        let (go, began) = (folder.join("go"), folder.join("began"));
        let script = format!(
            "run = [\"sh\", \"-c\", \"echo x >> {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{}",
            began.display(),
            go.display(),
            writes("b.txt", "work")
        );
        scratch.task("Long", &style.script(&script), &[]);
        Self { scratch, go, began }
    }

    /// Starts a run and waits until the agent is at work.
    fn start(&self) -> BackgroundCommand {
        let runs = self.runs();
        let started = self.scratch.start(&["run"]);
        self.scratch.eventually("the agent to work", || self.runs() > runs);
        started
    }

    /// How often the agent began.
    fn runs(&self) -> usize {
        std::fs::read_to_string(&self.began).unwrap_or_default().lines().count()
    }

    fn let_go(&self) {
        std::fs::write(&self.go, "").expect("ours");
    }
}

// Questions.

#[test]
fn a_question_frees_the_slot_and_its_answer_reaches_the_agent() {
    let scratch = ScratchProject::new(LANDFALL);
    let asks = format!(
        "[[iteration]]\nsignal = \"pending:Tabs or spaces?\"\n[[iteration.write]]\npath = \"half.txt\"\ntext = \"half\\n\"\n[[iteration]]\n{}",
        writes("b.txt", "b").replace("[[write]]", "[[iteration.write]]")
    );
    scratch.task("Asks", &asks, &[]);
    scratch.task("Works", &writes("c.txt", "c"), &[]);
    let run = scratch.landfall(&["run", "--slots", "1"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.status("T2"), "done", "the slot was free for it");
    assert_eq!(scratch.wait_of("T1"), "question");
    assert!(scratch.why("T1").contains("Tabs or spaces?"), "{}", scratch.why("T1"));
    assert!(format!("{}{}", run.out, run.err).contains("Tabs or spaces?"), "{}{}", run.out, run.err);
    scratch.landfall(&["answer", "T1", "spaces,", "please"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains("You asked: Tabs or spaces?"), "{}", prompts[1]);
    assert!(prompts[1].contains("The answer: spaces, please"), "{}", prompts[1]);
    assert_eq!(scratch.git(&["show", "main:half.txt"]), "half", "what it did before it asked is there");
}

#[test]
fn an_answer_during_the_run_resumes_the_task_in_it() {
    let held = Held::new();
    let scratch = &held.scratch;
    let asks = format!(
        "[[iteration]]\nsignal = \"pending:Which?\"\n[[iteration]]\n{}",
        writes("c.txt", "c").replace("[[write]]", "[[iteration.write]]")
    );
    scratch.task("Asks", &asks, &[]);
    let mut run = held.start();
    scratch.eventually("the question", || scratch.wait_of("T2") == "question");
    scratch.landfall(&["answer", "T2", "the second"]).ok();
    scratch.eventually("it to land", || scratch.status("T2") == "done");
    held.let_go();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn an_answer_to_no_question_is_refused() {
    let held = Held::new();
    let said = held.scratch.landfall(&["answer", "T1", "yes"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("asks nothing"), "{}", said.err);
}

// Stopping.

#[test]
fn stop_of_a_task_pauses_it_and_retry_goes_on_in_its_workspace() {
    let held = Held::new();
    let scratch = &held.scratch;
    scratch.task("Other", &writes("c.txt", "c"), &["--needs", "T1"]);
    let mut run = held.start();
    scratch.landfall(&["stop", "T1"]).ok();
    let code = run.wait(SOON);
    assert_eq!(scratch.wait_of("T1"), "pause", "{}", scratch.why("T1"));
    assert_eq!(code, Some(9), "{}", scratch.heard());
    assert!(scratch.why("T1").contains("paused by you"), "{}", scratch.why("T1"));
    assert_eq!(scratch.left_behind(), []);
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
    // A run alone does not wake it.
    scratch.landfall(&["run"]);
    assert_eq!(held.runs(), 1);
    held.let_go();
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T2").as_str()), ("done", "done"));
}

fn behaviour_16_stop_finishes_the_iterations_under_way_and_starts_no_more(style: Style) {
    let held = Held::in_style(style);
    let scratch = &held.scratch;
    scratch.task("Next", &writes("c.txt", "c"), &["--needs", "T1"]);
    let mut run = held.start();
    scratch.landfall(&["stop"]).ok();
    assert!(!run.is_over(), "the iteration is finished first");
    held.let_go();
    run.wait(SOON);
    assert_eq!(held.runs(), 1);
    assert_eq!(scratch.prompts("T2").len(), 0, "nothing new was started");
    assert_eq!(scratch.left_behind(), []);
    scratch.landfall(&["run"]).ok();
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T2").as_str()), ("done", "done"));
    assert_eq!(held.runs(), 1, "what was finished is not done again");
}
in_styles!(behaviour_16_stop_finishes_the_iterations_under_way_and_starts_no_more: fresh, session);

#[test]
fn stop_now_ends_the_agents_and_keeps_the_work() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(SOON);
    assert_eq!(scratch.left_behind(), []);
    assert_eq!(scratch.status("T1"), "ready", "{}", scratch.why("T1"));
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
    assert_eq!(scratch.detail("T1")["iterations"], 0, "no iteration is spent");
    held.let_go();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
}

#[test]
fn stop_now_kills_an_agent_that_does_not_listen() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\ngrace = \"200ms\"");
    scratch.task(
        "Deaf",
        "misbehave = \"ignore-term\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n",
        &[],
    );
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent to work", || !scratch.kept("T1", "b.txt", "work\n").is_empty());
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(SOON);
    assert_eq!(scratch.left_behind(), []);
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
}

#[test]
fn stop_now_ends_checks_too_and_the_next_run_does_them_again() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let check = format!(
        "[ ! -e b.txt ] || {{ echo x >> {}; while [ ! -e {} ]; do sleep 0.02; done; }}; echo '1 passed, 0 failed'\n",
        began.display(),
        go.display()
    );
    scratch.file("test.sh", &check);
    scratch.commit("a long check");
    scratch.task("Checked", &writes("b.txt", "work"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || began.exists());
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(SOON);
    assert_eq!(scratch.left_behind(), []);
    std::fs::write(&go, "").expect("ours");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.prompts("T1").len(), 1, "the agent is not run again");
}

#[test]
fn stop_now_begins_no_other_check_while_an_agent_is_still_ending() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\ngrace = \"1s\"");
    let began = open(&scratch).join("began");
    scratch.file("test.sh", &format!("[ ! -e b.txt ] || {{ echo x >> {}; sleep 60; }}\n", began.display()));
    scratch.commit("a long check");
    scratch.task("Checked", &writes("b.txt", "work"), &[]);
    scratch.task(
        "Deaf",
        "misbehave = \"ignore-term\"\n[[write]]\npath = \"c.txt\"\ntext = \"work\\n\"\n",
        &[],
    );
    let mut run = scratch.start(&["run"]);
    scratch.eventually("both", || began.exists() && !scratch.kept("T2", "c.txt", "work\n").is_empty());
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(SOON);
    let starts = std::fs::read_to_string(&began).expect("it began").lines().count();
    assert_eq!(starts, 1, "a check that was ended is no failure to look into");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn stop_now_ends_a_check_that_has_stopped_its_sitter() {
    let scratch = ScratchProject::new(LANDFALL);
    let began = scratch.root().join("began");
    scratch.file("test.sh", "");
    scratch.settings(&format!(
        "[agent.default]\nkind = \"script\"\n[[verify.command]]\nname = \"tests\"\nrun = \"kill -STOP $PPID; echo x >> {}; sleep 60\"\n",
        began.display()
    ));
    off(&scratch);
    scratch.task("Checked", &writes("b.txt", "work"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || began.exists());
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(SOON);
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn without_a_run_there_is_nothing_to_stop() {
    let held = Held::new();
    let said = held.scratch.landfall(&["stop"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("no run is under way"), "{}", said.err);
}

#[test]
fn ctrl_c_once_finishes_the_iteration_and_lands_nothing_new() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    run.signal("INT");
    scratch.eventually("the word about it", || scratch.heard().contains("finishing"));
    assert!(!run.is_over());
    held.let_go();
    assert_eq!(run.wait(SOON), Some(130), "{}", scratch.heard());
    assert_eq!(held.runs(), 1);
    assert_eq!(scratch.facts("T1", "iteration-ended").len(), 1, "the iteration ended by itself");
    assert_eq!(scratch.left_behind(), []);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(held.runs(), 1, "nothing was lost or done twice");
}

#[test]
fn ctrl_c_twice_stops_now_and_loses_nothing() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    run.signal("INT");
    scratch.eventually("the word about it", || scratch.heard().contains("finishing"));
    run.signal("INT");
    assert_eq!(run.wait(SOON), Some(130), "{}", scratch.heard());
    assert_eq!(scratch.left_behind(), []);
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
    held.let_go();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
}

#[test]
fn sigterm_is_heard_like_ctrl_c() {
    let held = Held::new();
    let mut run = held.start();
    run.signal("TERM");
    held.scratch.eventually("the word about it", || held.scratch.heard().contains("finishing"));
    held.let_go();
    assert_eq!(run.wait(SOON), Some(130), "{}", held.scratch.heard());
}

// Cancelling.

#[test]
fn cancel_ends_a_running_task_and_keeps_its_work() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    scratch.landfall(&["cancel", "T1", "--reason", "not wanted"]).ok();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "cancelled");
    assert!(scratch.why("T1").contains("not wanted"), "{}", scratch.why("T1"));
    assert_eq!(scratch.left_behind(), []);
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
    assert_eq!(scratch.landfall(&["retry", "T1"]).code, Some(6), "it is over for good");
    assert_eq!(scratch.landfall(&["cancel", "T1"]).code, Some(6));
}

#[test]
fn cancel_reaches_an_agent_that_a_crash_kept_from_beginning() {
    let mut held = Held::new();
    held.scratch.set("LANDFALL_CRASH", "spawn.before");
    assert_eq!(held.scratch.landfall(&["run"]).code, None, "it crashed");
    held.scratch.unset("LANDFALL_CRASH");
    let scratch = &held.scratch;
    scratch.landfall(&["cancel", "T1"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.status("T1"), "cancelled", "{}", scratch.why("T1"));
    assert_eq!(held.runs(), 0, "it never began");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn cancel_reaches_an_agent_that_has_stopped_its_sitter() {
    let scratch = ScratchProject::new(LANDFALL);
    off(&scratch);
    let began = scratch.root().join("began");
    let script = format!(
        "run = [\"sh\", \"-c\", \"kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); echo x >> {}; sleep 60\"]",
        began.display()
    );
    scratch.task("Deaf", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent to work", || began.exists());
    scratch.landfall(&["cancel", "T1"]).ok();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "cancelled", "{}", scratch.why("T1"));
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn cancel_works_in_every_status_that_is_not_over() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("tests/t.rs", "#[test]\nfn t() {}\n");
    scratch.commit("a test");
    scratch.more_settings("[run]\nrestarts_max = 0\niterations_max = 2");
    scratch.task("Draft", &writes("x", "x"), &["--draft"]);
    scratch.task("Fails", "misbehave = \"fail\"\n", &[]);
    scratch.task("Blocked", "signal = \"blocked:no\"\n", &[]);
    scratch.task("Out of iterations", "say = \"hm\"\n", &[]);
    scratch.task("Asks", "signal = \"pending:Which?\"\n", &[]);
    scratch.task("In review", "signal = \"complete\"\ndelete = [\"tests/t.rs\"]\n", &[]);
    scratch.task("Needs", &writes("y", "y"), &["--needs", "T3"]);
    scratch.landfall(&["run"]);
    scratch.task("Ready", &writes("z", "z"), &[]);
    let expected = [
        ("T1", "draft"),
        ("T2", "failed"),
        ("T3", "blocked"),
        ("T4", "failed"),
        ("T5", "waiting"),
        ("T6", "review"),
        ("T7", "waiting"),
        ("T8", "ready"),
    ];
    for (task, status) in expected {
        assert_eq!(scratch.status(task), status, "{}", scratch.why(task));
        scratch.landfall(&["cancel", task]).ok();
        assert_eq!(scratch.status(task), "cancelled");
    }
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
}

#[test]
fn cancel_of_landed_work_points_to_rollback() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    let said = scratch.landfall(&["cancel", "T1"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("rollback"), "{}", said.err);
}

#[test]
fn cancel_while_it_is_being_verified_does_not_land_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    scratch.file(
        "test.sh",
        &format!(
            "[ ! -e b.txt ] || {{ touch {}; while [ ! -e {} ]; do sleep 0.02; done; }}; echo '1 passed, 0 failed'\n",
            began.display(),
            go.display()
        ),
    );
    scratch.commit("a long check");
    scratch.task("Checked", &writes("b.txt", "work"), &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || began.exists());
    scratch.landfall(&["cancel", "T1"]).ok();
    std::fs::write(&go, "").expect("ours");
    run.wait(SOON);
    assert_eq!(scratch.status("T1"), "cancelled");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
}

// Trying again.

#[test]
fn retry_tells_the_agent_the_note_and_keeps_its_workspace() {
    let scratch = ScratchProject::new(LANDFALL);
    let script = "[[iteration]]\nsignal = \"blocked:no idea\"\n[[iteration.write]]\npath = \"half.txt\"\ntext = \"half\\n\"\n[[iteration]]\nsignal = \"complete\"\n";
    scratch.task("Tries", script, &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    scratch.landfall(&["retry", "T1", "--note", "try the other API"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains("try the other API"), "{}", prompts[1]);
    assert_eq!(scratch.git(&["show", "main:half.txt"]), "half");
}

#[test]
fn retry_fresh_begins_anew_and_keeps_the_old_work_under_a_ref() {
    let scratch = ScratchProject::new(LANDFALL);
    let script = "[[iteration]]\nsignal = \"blocked:a mess\"\ncommit = false\n[[iteration.write]]\npath = \"mess.txt\"\ntext = \"mess\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    scratch.task("Tries", script, &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    scratch.landfall(&["retry", "T1", "--fresh"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert!(!scratch.project().join("mess.txt").exists(), "the old work did not land");
    let kept = scratch.kept("T1", "mess.txt", "mess\n");
    assert!(kept.iter().any(|place| place.starts_with("refs/landfall/")), "{kept:?}");
}

#[test]
fn retry_gives_a_failed_task_all_its_tries_again() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\niterations_max = 2");
    scratch.task("Out of iterations", "say = \"hm\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed");
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]);
    assert_eq!(scratch.prompts("T1").len(), 4, "{}", scratch.why("T1"));
}

#[test]
fn what_goes_on_or_has_landed_cannot_be_retried() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    assert_eq!(scratch.landfall(&["retry", "T1"]).code, Some(6));
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.landfall(&["retry", "T1"]).code, Some(6));
}

// While an engine runs.

#[test]
fn a_task_added_during_a_run_is_taken_up_by_it() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    scratch.task("Late", &writes("c.txt", "c"), &[]);
    scratch.eventually("it to land", || scratch.status("T2") == "done");
    assert!(!run.is_over());
    held.let_go();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
}

#[test]
fn words_changed_during_an_iteration_reach_the_next_one() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let script = format!(
        "[[iteration]]\nrun = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n[[iteration]]\n{}",
        began.display(),
        go.display(),
        writes("b.txt", "b").replace("[[write]]", "[[iteration.write]]")
    );
    scratch.task("Edited", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent", || began.exists());
    scratch.landfall(&["edit", "T1", "--title", "Another name", "--criterion", "it is blue"]).ok();
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
    let prompts = scratch.prompts("T1");
    assert!(!prompts[0].contains("it is blue"), "{}", prompts[0]);
    assert!(prompts[1].contains("Another name") && prompts[1].contains("it is blue"), "{}", prompts[1]);
    assert_eq!(scratch.landfall(&["edit", "T1", "--title", "Too late"]).code, Some(6));
}

#[test]
fn a_draft_is_not_started_until_it_is_ready() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Draft", &writes("b.txt", "b"), &["--draft"]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "draft");
    scratch.landfall(&["edit", "T1", "--ready"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
}

fn behaviour_01_c30_a_second_engine_is_refused_and_names_the_first(style: Style) {
    let held = Held::in_style(style);
    let mut run = held.start();
    let said = held.scratch.landfall(&["run"]);
    assert_eq!(said.code, Some(7), "{said:?}");
    assert!(said.err.contains(&run.pid().to_string()), "{} is not in: {}", run.pid(), said.err);
    held.let_go();
    assert_eq!(run.wait(SOON), Some(0), "{}", held.scratch.heard());
}
in_styles!(behaviour_01_c30_a_second_engine_is_refused_and_names_the_first: fresh, session);

#[test]
fn while_an_engine_runs_every_look_is_answered() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    let status = scratch.landfall(&["--json", "status"]).json();
    assert_eq!(status["engine"]["pid"], run.pid());
    assert_eq!(status["active"][0]["task"], "T1");
    assert_eq!(status["active"][0]["iteration"], 1);
    for args in [
        &["list"][..],
        &["show", "T1"],
        &["why", "T1"],
        &["log"],
        &["doctor"],
        &["reclaim", "--dry-run"],
        &["report", "T1"],
    ] {
        assert_eq!(scratch.landfall(args).code, Some(0), "{args:?}");
    }
    assert_eq!(scratch.landfall(&["reclaim"]).code, Some(6), "not while a run is under way");
    held.let_go();
    assert_eq!(run.wait(SOON), Some(0), "{}", scratch.heard());
}

#[test]
fn an_engine_that_was_killed_leaves_status_and_commands_working() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    run.kill();
    let status = scratch.landfall(&["--json", "status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let status = status.json();
    assert!(status["engine"].is_null(), "{status}");
    assert!(status["warnings"].to_string().contains("is gone"), "{status}");
    assert!(scratch.landfall(&["why", "T1"]).code == Some(0));
    scratch.task("Added meanwhile", &writes("c.txt", "c"), &[]);
    held.let_go();
    scratch.landfall(&["run"]).ok();
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T2").as_str()), ("done", "done"));
    assert_eq!(held.runs(), 1, "the agent was adopted");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn cancel_without_an_engine_ends_an_agent_that_outlived_it() {
    let held = Held::new();
    let scratch = &held.scratch;
    let mut run = held.start();
    run.kill();
    scratch.landfall(&["cancel", "T1"]).ok();
    assert_eq!(scratch.left_behind(), [], "nothing of it goes on");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "cancelled");
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new());
}

#[test]
fn a_check_that_outlived_its_engine_is_ended_and_done_again() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let check = format!(
        "echo x >> {}; while [ ! -e {} ]; do sleep 0.02; done; echo '1 passed, 0 failed'\n",
        began.display(),
        go.display()
    );
    scratch.file("test.sh", &check);
    scratch.commit("a long check");
    scratch.task("Checked", &writes("b.txt", "work"), &[]);
    let lines = || std::fs::read_to_string(&began).unwrap_or_default().lines().count();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || lines() == 1);
    run.kill();
    let mut again = scratch.start(&["run"]);
    scratch.eventually("the check again", || lines() == 2);
    let checks = landfall_testkit::left_behind(scratch.root());
    let checks = checks.iter().filter(|it| it.command.starts_with("sh -c sh test.sh")).count();
    assert!(checks <= 1, "the old one is gone");
    std::fs::write(&go, "").expect("ours");
    assert_eq!(again.wait(SOON), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.prompts("T1").len(), 1, "the agent is not run again");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn c38_the_state_is_outside_the_repository_where_the_system_keeps_such_things() {
    for (variable, place) in [("XDG_STATE_HOME", "xdg"), ("", "home/.local/state")] {
        let mut scratch = ScratchProject::new(LANDFALL);
        scratch.set("LANDFALL_STATE", "");
        let folder = scratch.root().join(place);
        if !variable.is_empty() {
            scratch.set(variable, &folder.display().to_string());
        }
        scratch.task("First", &writes("b.txt", "b"), &[]);
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.status("T1"), "done");
        let states: Vec<_> =
            std::fs::read_dir(folder.join("landfall")).expect("it is there").flatten().collect();
        assert_eq!(states.len(), 1);
        let name = states[0].file_name().to_string_lossy().into_owned();
        assert!(name.starts_with("project-") && name.len() == "project-".len() + 8, "{name}");
        assert!(states[0].path().join("journal.db").exists());
        assert_eq!(
            scratch.git(&["status", "--porcelain", "--ignored"]),
            "",
            "nothing is left in the repository"
        );
    }
}

// Keeping house.

#[test]
fn reclaim_removes_just_what_the_dry_run_lists_and_nothing_is_lost() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[keep]\nfailed = \"0s\"\nattempts = \"0s\"");
    scratch.task(
        "Fails",
        "signal = \"blocked:no\"\ncommit = false\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n",
        &[],
    );
    scratch.task("Lands", &writes("c.txt", "c"), &[]);
    scratch.landfall(&["run"]);
    scratch.landfall(&["cancel", "T1"]).ok();
    let planned = scratch.landfall(&["--json", "reclaim", "--dry-run"]).json();
    assert!(scratch.workspace("T1").exists(), "a dry run removes nothing");
    let gone = scratch.landfall(&["--json", "reclaim"]).json();
    assert_eq!(planned["items"], gone["items"]);
    assert!(!gone["items"].as_array().expect("a list").is_empty());
    assert!(!scratch.workspace("T1").exists());
    let kept = scratch.kept("T1", "b.txt", "work\n");
    assert!(kept.iter().any(|place| place.starts_with("refs/landfall/")), "{kept:?}");
}

#[test]
fn c39_the_work_of_a_failed_task_is_kept_for_a_week() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Fails", "signal = \"blocked:no\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n", &[]);
    scratch.landfall(&["run"]);
    scratch.landfall(&["reclaim"]).ok();
    assert!(scratch.workspace("T1").join("b.txt").exists());
}

#[test]
fn too_little_room_on_the_disk_starts_no_agent() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[disk]\nwarn = \"90TiB\"\npause = \"90TiB\"\nstop = \"0B\"");
    scratch.task("Waits", &writes("b.txt", "b"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the word about it", || {
        let status = scratch.landfall(&["--json", "status"]).json();
        status["engine"].is_object() && status.to_string().contains("disk")
    });
    assert_eq!(scratch.prompts("T1").len(), 0);
    run.signal("INT");
    assert_eq!(run.wait(SOON), Some(130), "{}", scratch.heard());
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_full_disk_ends_the_agents_at_work_and_keeps_what_they_did() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task(
        "Long",
        "run = [\"sleep\", \"60\"]\nsignal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"",
        &[],
    );
    let mut first = scratch.start(&["run"]);
    let written = scratch.workspace("T1").join("b.txt");
    scratch.eventually("the agent to write", || written.exists());
    first.kill();
    scratch.more_settings("[disk]\nwarn = \"90TiB\"\npause = \"90TiB\"\nstop = \"90TiB\"");
    let mut second = scratch.start(&["run"]);
    second.wait(SOON);
    assert!(scratch.heard().contains("disk.stop"), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "ready", "{}", scratch.why("T1"));
    assert!(written.exists(), "the work is kept");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn what_others_wrote_is_safe_in_a_pipe_where_somebody_asks_for_that() {
    let scratch = ScratchProject::new(LANDFALL);
    let tricks = "\u{1b}[31mred\u{7} \u{202e}turned";
    let script =
        format!("signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = {:?}\n", format!("{tricks}\n"));
    let script =
        script.replace("\\u{1b}", "\\u001b").replace("\\u{7}", "\\u0007").replace("\\u{202e}", "\\u202e");
    scratch.task(&format!("A title {tricks}").replace(['\u{1b}', '\u{7}'], ""), &script, &[]);
    scratch.landfall(&["run"]);
    let is_trick = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
    for command in [&["diff", "T1"][..], &["export", "T1"]] {
        let raw = scratch.landfall(command);
        assert!(raw.code == Some(0) && raw.out.contains('\u{202e}'), "as it is, for programs: {raw:?}");
        let safe = scratch.landfall(&[command, &["--safe"]].concat());
        assert!(safe.code == Some(0) && !safe.out.contains(is_trick), "{safe:?}");
        assert!(safe.out.contains("turned"), "{safe:?}");
    }
}
