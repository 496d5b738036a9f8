//! A task of three stages, whose agent, engine or both are killed at every step: it ends satisfied, no stage is made
//! twice, no round is counted that was none, and nothing is left behind.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, Process, ScratchProject, left_behind};

use crate::LANDFALL;
use crate::lifecycle::{GOOD, covers, plans, says, works};
use crate::sandbox::{open, open_folder};

/// Where an agent is at work, in the order of a stage.
const STEPS: [&str; 4] = ["plan", "check-plan", "exec", "check-exec"];
const STAGES: u32 = 3;

/// What the agent does in a step of a stage. Each stage meets one requirement more.
fn turn(step: &str, stage: u32) -> String {
    match step {
        "plan" => plans("plan", &format!("stage {stage}"), 1, "Covers: R1, R2, R3"),
        "check-plan" => says("check-plan", GOOD),
        "exec" => works("exec", &format!("stage-{stage}.txt"), "\"complete\""),
        "check-exec" => {
            let met = |r: u32| (r, if r <= stage { 1.0 } else { 0.0 });
            says("check-exec", &covers(&[met(1), met(2), met(3)]))
        }
        other => panic!("no agent is at work in `{other}`"),
    }
}

/// The files by which a run says that it waits, and is told to go on.
fn marks(folder: &Path, step: &str, stage: u32) -> (PathBuf, PathBuf) {
    let mark = |word: &str| folder.join(format!("{word}-{step}-{stage}"));
    (mark("waits"), mark("go"))
}

/// The same, but it waits before it says a word, until somebody kills it or lets it go on.
fn waiting(folder: &Path, step: &str, stage: u32) -> String {
    let (waits, go) = marks(folder, step, stage);
    let wait = format!("touch {}; while [ ! -e {} ]; do sleep 0.02; done", waits.display(), go.display());
    let head = format!("[[step.{step}]]\n");
    turn(step, stage).replacen(&head, &format!("{head}run = [\"sh\", \"-c\", {wait:?}]\n"), 1)
}

/// What becomes of a run that waits.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    /// It is let go on.
    ThenGoesOn,
    /// It is killed, and done once more.
    ThenDies,
}

/// A task whose objective is confirmed, and every stage in it. In `steps` the agent waits.
fn confirmed(steps: &[&str], waits: Waits) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    open(&scratch);
    let folder = open_folder(&scratch);
    let mut script = String::new();
    for step in STEPS {
        for stage in 1..=STAGES {
            if steps.contains(&step) {
                script.push_str(&waiting(&folder, step, stage));
            }
            if !steps.contains(&step) || waits == Waits::ThenDies {
                script.push_str(&turn(step, stage));
            }
        }
    }
    let criteria = ["it greets", "it asks", "it leaves"].iter().flat_map(|it| ["--criterion", it]);
    let more: Vec<&str> = ["--flow", "staged"].into_iter().chain(criteria).collect();
    scratch.task("First", &script, &more);
    scratch.landfall(&["run"]);
    scratch.landfall(&["answer", "T1", "OK"]).ok();
    scratch
}

/// Everything that must hold once it is over, whatever was killed before.
#[track_caller]
fn check_whole(scratch: &ScratchProject) {
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let entries = scratch.log();
    let of = entries.iter().filter(|it| it["task"] == "T1");
    let log = of.map(|it| format!("{}\n", it["text"].as_str().unwrap_or_default())).collect::<String>();
    let count = |words: &str| log.matches(words).count();
    for stage in 1..=STAGES {
        assert_eq!(count(&format!("stage {stage} begins, for ")), 1, "stage {stage} began once:\n{log}");
        let file = format!("main:stage-{stage}.txt");
        assert_eq!(scratch.git(&["show", &file]), "x");
    }
    for (told, times) in [
        ("judged, post-plan: PASS", 3),
        ("judged, post-exec: ACCEPT", 3),
        ("judged, ", 6),
        ("convergence went from nothing to 0.3333: another stage follows", 1),
        ("convergence went from 0.3333 to 0.6667: another stage follows", 1),
        ("convergence went from 0.6667 to 1.0000: the objective is met", 1),
        ("is given up", 0),
    ] {
        assert_eq!(count(told), times, "{told}:\n{log}");
    }
    assert_eq!(scratch.facts("T1", "landed").len(), 1, "it landed once in the journal");
    let subjects = scratch.git(&["log", "--first-parent", "--format=%s", "main"]);
    assert_eq!(subjects.lines().filter(|it| it.contains("(T1)")).count(), 1, "and on main:\n{subjects}");
    let seqs: Vec<u64> = entries.iter().map(|it| it["seq"].as_u64().expect("a number")).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "the journal is dense");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "the checkout is clean");
    scratch.git(&["fsck", "--connectivity-only"]);
    assert_eq!(scratch.left_behind(), []);
}

fn counter(scratch: &ScratchProject, name: &str) -> u64 {
    let detail = scratch.detail("T1");
    let all = detail["counters"].as_array().expect("a list").clone();
    all.iter().find(|it| it["name"] == name).map_or(0, |it| it["used"].as_u64().expect("a number"))
}

fn kill_9(process: &Process) {
    // It may be over by now, with the one before it.
    drop(
        Command::new("kill")
            .args(["-9", &process.pid.to_string()])
            .stderr(std::process::Stdio::null())
            .status(),
    );
}

/// Kills the agent alone, not whoever sits with it.
fn kill_the_agent(scratch: &ScratchProject) {
    let all = left_behind(scratch.root());
    let agents: Vec<&Process> =
        all.iter().filter(|it| it.command.contains(" play ") && it.command.contains("--step-run")).collect();
    assert_ne!(agents, [] as [&Process; 0], "somebody is at work: {all:?}");
    agents.into_iter().for_each(kill_9);
}

/// Waits until the agent has come to this step of this stage.
#[track_caller]
fn comes_to(scratch: &ScratchProject, run: &mut BackgroundCommand, step: &str, stage: u32) {
    let (waits, _) = marks(&open_folder(scratch), step, stage);
    scratch.eventually(&format!("`{step}` of stage {stage}"), || {
        assert!(
            waits.exists() || !run.is_over(),
            "the run is over: {}\n{}",
            scratch.why("T1"),
            scratch.heard()
        );
        waits.exists()
    });
}

#[test]
fn an_agent_that_is_killed_at_work_in_any_stage_is_started_again() {
    let steps = ["plan", "exec"];
    let scratch = confirmed(&steps, Waits::ThenDies);
    let mut run = scratch.start(&["run"]);
    for stage in 1..=STAGES {
        for step in steps {
            comes_to(&scratch, &mut run, step, stage);
            kill_the_agent(&scratch);
        }
    }
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{}", scratch.why("T1"));
    check_whole(&scratch);
    assert_eq!(counter(&scratch, "iterations"), 12, "a run that was killed is no iteration");
    assert_eq!(counter(&scratch, "agent runs"), 18);
    assert_eq!(counter(&scratch, "agent restarts"), 0, "they are counted in a row");
}

#[test]
fn a_judge_that_is_killed_in_any_stage_costs_no_round() {
    let steps = ["check-plan", "check-exec"];
    let scratch = confirmed(&steps, Waits::ThenDies);
    for stage in 1..=STAGES {
        for step in steps {
            let mut run = scratch.start(&["run"]);
            comes_to(&scratch, &mut run, step, stage);
            kill_the_agent(&scratch);
            run.wait(Duration::from_secs(30));
            let why = scratch.why("T1");
            assert!(why.contains(&format!("the judge of step `{step}` failed")), "{why}");
            scratch.landfall(&["retry", "T1"]).ok();
        }
    }
    scratch.landfall(&["run"]).ok();
    check_whole(&scratch);
}

#[test]
fn an_engine_that_is_killed_at_any_step_of_any_stage_finds_its_agent_again() {
    let scratch = confirmed(&STEPS, Waits::ThenGoesOn);
    for stage in 1..=STAGES {
        for step in STEPS {
            let mut run = scratch.start(&["run"]);
            comes_to(&scratch, &mut run, step, stage);
            run.kill();
            let (_, go) = marks(&open_folder(&scratch), step, stage);
            std::fs::write(go, "").expect("a file can be written");
        }
    }
    scratch.landfall(&["run"]).ok();
    check_whole(&scratch);
    assert_eq!(counter(&scratch, "iterations"), 12);
    assert_eq!(counter(&scratch, "agent runs"), 12, "no run was made twice");
}

#[test]
fn engine_and_agent_killed_together_at_any_step_of_any_stage_go_on_from_there() {
    let scratch = confirmed(&STEPS, Waits::ThenDies);
    for stage in 1..=STAGES {
        for step in STEPS {
            let mut run = scratch.start(&["run"]);
            comes_to(&scratch, &mut run, step, stage);
            run.kill();
            left_behind(scratch.root()).iter().for_each(kill_9);
        }
    }
    scratch.landfall(&["run"]).ok();
    check_whole(&scratch);
    assert_eq!(counter(&scratch, "iterations"), 12);
    assert_eq!(counter(&scratch, "agent runs"), 24);
}

/// Also where no agent is at work: the objective, verification, the measure of a stage, the landing, the report.
#[test]
fn an_engine_that_is_killed_around_every_entry_of_its_journal_goes_on_from_there() {
    let mut scratch = confirmed(&[], Waits::ThenGoesOn);
    let mut lives = 0;
    // By turns before and after: what was decided is forgotten, or known and not yet done.
    for (at, point) in (0..400).zip(["before", "after"].into_iter().cycle()) {
        // The first entries of an engine are its own.
        scratch.set("LANDFALL_CRASH", &format!("journal.append.{point}:{}", 2 + at / 2 % 3));
        if scratch.landfall(&["run"]).code.is_some() {
            break;
        }
        lives += 1;
    }
    scratch.unset("LANDFALL_CRASH");
    scratch.landfall(&["run"]).ok();
    check_whole(&scratch);
    assert_eq!(counter(&scratch, "iterations"), 12);
    assert_eq!(counter(&scratch, "agent runs"), 12, "no run was made twice");
    assert!(lives > 20, "too few lives to mean anything: {lives}");
}
