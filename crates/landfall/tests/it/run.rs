//! A run from outside: what it says, how it ends, and what Ctrl-C means.

use landfall_api::{RunEnded, RunOutcome, Status, TaskDetail, TaskPage, Why};
use rustix::process::Signal;

use crate::hold_file::HoldFile;
use crate::support::{TestEnvironment, finish, until};

fn script(text: &str) -> String {
    format!("```landfall-script\n{text}\n```\n")
}

fn writes(file: &str) -> String {
    script(&format!("signal = \"complete\"\n[[write]]\npath = \"{file}\"\ntext = \"here\\n\""))
}

#[test]
fn a_task_lands_and_the_proof_can_be_read() {
    let place = TestEnvironment::with_red_base("test -e wanted.txt");
    place.add(&["make the file", "--body", &writes("wanted.txt"), "--criterion", "the file is there"]);
    let said = place.landfall(&["run"]).works();
    assert!(
        said.out.contains("T1") && said.out.contains("done") && said.out.contains("1 of 1 task landed"),
        "{said:?}"
    );
    assert!(said.err.contains(" T1 landed as "), "plain lines on stderr: {said:?}");
    let task: TaskDetail = place.json(&["show", "T1"]);
    let landed = task.landed_as.expect("landed");
    assert_eq!(place.git(&["rev-parse", "main"]), landed.commit, "published to the person's branch");
    assert!(place.project().join("wanted.txt").exists(), "and to the clean checkout");
    let certificate: serde_json::Value = place.json(&["certificate", "T1"]);
    assert!(certificate.to_string().contains(&landed.tree), "{certificate}");
    for args in [&["report", "T1"][..], &["report"], &["show", "T1"], &["diff", "T1"], &["log"]] {
        assert!(!place.landfall(args).works().out.is_empty(), "{args:?}");
    }
    let again: RunOutcome = place.json(&["run"]);
    assert_eq!((again.ended, again.tasks.len()), (RunEnded::Finished, 0));
}

#[test]
fn c42_the_exit_code_says_that_some_did_not_land() {
    let place = TestEnvironment::with_script_agent("test ! -e bad.txt");
    place.add(&["blocked", "--body", &script("signal = \"blocked:no key\"")]);
    place.add(&["fine", "--body", &writes("fine.txt")]);
    let said = place.landfall(&["run"]);
    assert_eq!(said.code, Some(8), "{said:?}");
    assert!(
        said.out.contains("1 of 2 tasks landed; 1 failed or blocked") && said.out.contains("no key"),
        "{said:?}"
    );
}

#[test]
fn a_question_is_shown_answered_and_goes_on() {
    let place = TestEnvironment::with_script_agent("true");
    let body = script(
        "[[iteration]]\nsignal = \"pending:tabs or spaces?\"\n[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"a\"\ntext = \"a\"",
    );
    place.add(&["asks", "--body", &body]);
    let said = place.landfall(&["run"]);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert!(said.out.contains("tabs or spaces?"), "{said:?}");
    let why: Why = place.json(&["why", "T1"]);
    assert_eq!(why.status, Status::Waiting);
    place.landfall(&["answer", "T1", "spaces", "of", "course"]).works();
    let outcome: RunOutcome = place.json(&["run"]);
    assert_eq!(outcome.tasks[0].status, Status::Done, "{outcome:?}");
}

#[test]
fn one_interrupt_finishes_the_iteration_and_two_stop_now() {
    for interrupts in [1, 2] {
        let place = TestEnvironment::with_script_agent("true");
        let hold = HoldFile::at(&place.path("go"));
        let body = script(&format!("{}signal = \"progress:10\"", hold.line()));
        place.add(&["slow", "--body", &body]);
        let run = place.start(&["run"]);
        until("the agent is at work", || place.landfall(&["why", "T1"]).out.contains("iteration 1"));
        run.signal(Signal::INT);
        run.says("finishing the iterations under way");
        if interrupts == 1 {
            hold.release();
        } else {
            run.signal(Signal::INT);
            run.says("stopping now");
        }
        let said = run.end();
        assert_eq!(said.code, Some(130), "{said:?}");
        assert!(said.out.contains("as asked"), "{said:?}");
        let task: TaskDetail = place.json(&["show", "T1"]);
        assert!(!matches!(task.line.status, Status::Active | Status::Failed), "nothing is lost: {task:?}");
        place.landfall(&["cancel", "T1"]).works();
    }
}

#[test]
fn a_third_interrupt_leaves_at_once_and_the_agent_is_adopted() {
    let place = TestEnvironment::with_script_agent("true");
    let hold = HoldFile::at(&place.path("go"));
    let body =
        script(&format!("{}signal = \"complete\"\n[[write]]\npath = \"a\"\ntext = \"a\"", hold.line()));
    place.add(&["slow", "--body", &body]);
    let run = place.start(&["run"]);
    until("the agent is at work", || place.landfall(&["why", "T1"]).out.contains("iteration 1"));
    run.signal(Signal::TERM);
    run.says("finishing");
    // Both at once: the engine has no time to stop the agent in between.
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    let said = run.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    hold.release();
    let outcome: RunOutcome = place.json(&["run"]);
    assert_eq!(outcome.tasks[0].status, Status::Done, "{outcome:?}");
    assert_eq!(place.git(&["show", "main:a"]), "a");
}

#[test]
fn tasks_can_be_chosen_with_what_they_need() {
    let place = TestEnvironment::with_script_agent("true");
    place.add(&["ground", "--body", &writes("ground")]);
    place.add(&["wanted", "--body", &writes("wanted"), "--needs", "T1"]);
    place.add(&["other", "--body", &writes("other")]);
    let outcome: RunOutcome = place.json(&["run", "T2", "--slots", "1"]);
    let done: Vec<String> = outcome
        .tasks
        .iter()
        .filter(|task| task.status == Status::Done)
        .map(|task| task.task.to_string())
        .collect();
    assert_eq!(done, ["T1", "T2"], "{outcome:?}");
    let why: Why = place.json(&["why", "T3"]);
    assert_eq!(why.status, Status::Ready);
}

#[test]
fn the_demo_ends_well_and_its_project_can_be_looked_at() {
    let place = TestEnvironment::without_repository();
    let said = place.landfall(&["demo", "--dir", "shown"]).works();
    assert!(said.out.contains("landed"), "{said:?}");
    let (root, state) = (place.project().join("shown/project"), place.project().join("shown/state"));
    let mut command = place.command(&["--json", "list"]);
    let child = command.current_dir(&root).env("LANDFALL_STATE", &state).spawn().expect("it starts");
    let page: TaskPage = serde_json::from_str(&finish(child, "").works().out).expect("JSON");
    assert_eq!(page.tasks.len(), 8);
    assert!(page.tasks.iter().filter(|task| task.status == Status::Done).count() >= 6, "{page:?}");
    place.landfall(&["demo", "--dir", "shown"]).refuses(2, &["shown"]);
}
