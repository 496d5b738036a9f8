//! Steps of issues that fail, by the scripted agent: what is done about them, rung by rung. Behaviours 22 to 24 and 27.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, CommandOutput, FakeCheck, FakeJob, ScratchProject};

use crate::both::{World, on_both};
use crate::hold_file::HoldFile;
use crate::lifecycle::{says, works};

/// The agent of a project, asked about a failure, says this.
pub fn looks(world: &World, plan: &str) {
    world.file("looks.toml", &says("diagnosis", plan));
    world.change_settings(|settings| {
        settings.replacen("kind = \"script\"\n", "kind = \"script\"\nscript = \"looks.toml\"\n", 1)
    });
}

/// A turn in which it says that it is done and has done nothing.
fn idles(step: &str) -> String {
    format!("[[step.{step}]]\nsignal = \"complete\"\ncommit = false\n")
}

/// A turn in which it writes a file and ends with this code, without a word.
pub fn breaks_off(step: &str, file: &str, commit: bool, exit: u8) -> String {
    format!(
        "[[step.{step}]]\ncommit = {commit}\nexit = {exit}\n[[step.{step}.write]]\npath = {file:?}\ntext = \"x\\n\"\n"
    )
}

const LIMIT: Duration = Duration::from_secs(180); // GitHub lets a client change one thing a second

/// An issue with this script; its number.
fn issue(scratch: &ScratchProject, title: &str, turns: &[String], size: &str) -> String {
    let body = format!("```landfall-script\n{}\n```\n", turns.concat());
    let args = ["--json", "issue", "new", title, "--body", &body, "--size", size, "--label", "triaged"];
    scratch.landfall(&args).json()["issue"]["number"].as_u64().expect("a number").to_string()
}

/// Follows an issue with this script.
pub fn follow(scratch: &ScratchProject, title: &str, turns: &[String], size: &str) -> CommandOutput {
    scratch.landfall(&["auto", &issue(scratch, title, turns, size)])
}

/// The same, and does not wait for the end.
fn begin(scratch: &ScratchProject, title: &str, turns: &[String], size: &str) -> BackgroundCommand {
    scratch.start(&["auto", &issue(scratch, title, turns, size)])
}

/// Returns when the agent writes code.
fn at_work(world: &World) {
    world.eventually("its agent is at work", || world.prompts("T1").len() == 2);
}

pub fn log(scratch: &ScratchProject, task: &str) -> String {
    scratch.landfall(&["log", task]).ok()
}

on_both!(
    behaviour_22_nothing_done_is_tried_once_more_then_an_agent_looks_then_a_person,
    a_spec_that_nobody_wrote_is_named_by_why,
    behaviour_23_finished_work_lands_whatever_the_exit_code_says,
    behaviour_24_killed_after_the_commit_it_goes_on_with_the_offer,
    behaviour_27_what_comes_a_third_time_becomes_a_draft,
    what_a_plan_of_an_agent_names_is_done_and_the_work_goes_on_from_there,
    a_plan_beyond_the_list_is_refused_and_a_person_is_told,
);

fn behaviour_22_nothing_done_is_tried_once_more_then_an_agent_looks_then_a_person(world: &World) {
    looks(world, r#"{"action": "retry", "rationale": "it may do it this time"}"#);
    let said = follow(world, "Idle", &[idles("code"), idles("code"), idles("code"), idles("code")], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let log = log(world, "T1");
    assert_eq!(world.status("T1"), "blocked", "{log}");
    let why = world.why("T1");
    assert!(why.contains("recovery_failed") && why.contains("`silent-no-op`"), "{why}\n{log}");
    assert_eq!(log.matches("failed (silent-no-op); retry").count(), 1, "{log}");
    assert_eq!(log.matches("failed (silent-no-op); an agent looks").count(), 1, "{log}");
    assert!(log.contains("an agent's plan: retry: it may do it this time"), "{log}");
    let runs = world.prompts("T1").len();
    assert_eq!(runs, 3, "once, once more, and once after an agent had looked: {log}");
    assert!(world.prompts("T1")[1].contains("is not there"), "the agent is told");
}

fn a_spec_that_nobody_wrote_is_named_by_why(world: &World) {
    looks(world, r#"{"action": "abort", "rationale": "somebody has to say what is wanted"}"#);
    let said = follow(world, "Idle", &[idles("spec"), idles("spec"), idles("spec")], "S");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = world.why("T1");
    assert!(why.contains("it did not leave: docs/spec/issue-1-idle.md"), "{why}");
    assert!(world.prompts("T1")[1].contains("docs/spec/issue-1-idle.md"), "the agent is told which");
}

fn behaviour_23_finished_work_lands_whatever_the_exit_code_says(world: &World) {
    let said = follow(world, "Break off", &[breaks_off("code", "done.txt", true, 1)], "XS");
    assert_eq!(said.code, Some(0), "{}\n{}\n{}", said.out, said.err, log(world, "T1"));
    assert_eq!(world.landed("done.txt"), "x");
    let log = log(world, "T1");
    assert!(log.contains("is done in spite of its end"), "{log}");
    assert_eq!(world.prompts("T1").len(), 1, "nothing is done twice: {log}");
}

fn behaviour_24_killed_after_the_commit_it_goes_on_with_the_offer(world: &World) {
    let spec = "[[step.spec]]\nsignal = \"complete\"\n[[step.spec.write]]\npath = \"docs/spec/issue-1-x.md\"\ntext = \"# X\\n\"\n";
    let turns = [
        spec.to_owned(),
        breaks_off("code", "done.txt", true, 137),
        says("review", r#"{"findings": [], "resolved": []}"#),
    ];
    let said = follow(world, "Killed", &turns, "M");
    let log = log(world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(
        log.contains("is done in spite of its end") && log.contains("offered as pull request #"),
        "{log}"
    );
    assert_eq!(world.landed("done.txt"), "x");
    assert_eq!(log.matches("is done in spite of its end").count(), 1, "{log}");
    let runs = world.prompts("T1").len();
    assert_eq!(runs, 3, "spec, code and review, each once: {log}");
}

fn what_a_plan_of_an_agent_names_is_done_and_the_work_goes_on_from_there(world: &World) {
    let plan =
        r#"{"action": "recover", "rationale": "the work is there", "steps": [{"op": "commit-leftovers"}]}"#;
    looks(world, plan);
    let turns = [breaks_off("code", "done.txt", false, 3), works("code", "more.txt", "\"complete\"")];
    let said = follow(world, "Leftovers", &turns, "XS");
    let log = log(world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("an agent's plan: recover (commit-leftovers)"), "{log}");
    for file in ["done.txt", "more.txt"] {
        assert_eq!(world.landed(file), "x", "{log}");
    }
}

fn a_plan_beyond_the_list_is_refused_and_a_person_is_told(world: &World) {
    let plan = r#"{"action": "recover", "rationale": "quick", "steps": [{"op": "force_push"}]}"#;
    looks(world, plan);
    let said = follow(world, "Forced", &[breaks_off("code", "done.txt", false, 3)], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = world.why("T1");
    assert!(why.contains("the plan was refused") && why.contains("`force_push`"), "{why}");
    assert!(log(world, "T1").contains("an agent's plan was refused"));
}

fn behaviour_27_what_comes_a_third_time_becomes_a_draft(world: &World) {
    for number in 1..=4 {
        let turns = [idles("code"), works("code", &format!("f{number}.txt"), "\"complete\"")];
        let said = follow(world, &format!("Slow {number}"), &turns, "XS");
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        let list = world.landfall(&["list"]).ok();
        let proposed = list.matches("Keep `silent-no-op` from happening").count();
        assert_eq!(proposed, usize::from(number >= 3), "{list}");
    }
    assert_eq!(world.status("T4"), "draft", "only a person lets it start");
    let report = world.landfall(&["report", "T1"]).ok();
    assert!(report.contains("silent-no-op") && report.contains("seen 1 of 3 times"), "{report}");
}

// ── What a forge has to say ────────────────────────────────────────────────────────────────────────────────────────

/// A spec, and work that writes `done.txt`; a reader who finds nothing.
fn by_pull_request(code: &[String]) -> Vec<String> {
    let spec = "[[step.spec]]\nsignal = \"complete\"\n[[step.spec.write]]\npath = \"docs/spec/issue-1-x.md\"\ntext = \"# X\\n\"\n";
    let fine = says("review", r#"{"findings": [], "resolved": []}"#);
    [&[spec.to_owned()], code, &[fine]].concat()
}

/// A GitHub that runs these checks on the work of issue 1, and one that passes and one that fails on the base.
fn with_checks(checks: Vec<(FakeCheck, FakeJob)>) -> World {
    let world = World::github();
    world.forge().world(|forge| {
        let of = |name: &str, end: &str| (FakeCheck::over(name, end), FakeJob::tested(end));
        forge.workflows.insert("main".to_owned(), vec![of("test", "success"), of("lint", "failure")]);
        forge.workflows.insert("landfall/issue-1".to_owned(), checks);
    });
    world
}

fn reruns(world: &World) -> u64 {
    world.forge().world(|forge| forge.reruns.values().sum())
}

fn red(name: &str, again: &[&str]) -> (FakeCheck, FakeJob) {
    let again = again.iter().map(|word| (*word).to_owned()).collect();
    (FakeCheck::over(name, "failure"), FakeJob { again, ..FakeJob::tested("failure") })
}

#[test]
fn a_check_that_is_green_when_it_is_run_again_blames_nobody() {
    let world = with_checks(vec![red("test", &["success"])]);
    let said = follow(&world, "Flaky", &by_pull_request(&[works("code", "done.txt", "\"complete\"")]), "M");
    let log = log(&world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("step `checks` failed (ci-flake-retry); rerun-ci"), "{log}");
    assert!(log.contains("recovery of step `checks`: success"), "{log}");
    assert_eq!((world.landed("done.txt"), reruns(&world)), ("x".to_owned(), 1));
    assert_eq!(world.prompts("T1").len(), 3, "spec, code and review, each once: {log}");
    assert!(said.out.contains("recovered from ci-flake-retry"), "{}", said.out);
}

#[test]
fn a_check_that_is_red_again_on_the_same_commit_is_the_works_to_mend() {
    let world = with_checks(vec![red("test", &[]), red("lint", &[])]);
    let gives_up = "[[step.code]]\nsignal = \"blocked:no idea\"\ncommit = false\n".to_owned();
    let code = [works("code", "done.txt", "\"complete\""), gives_up];
    let said = follow(&world, "Red", &by_pull_request(&code), "M");
    let log = log(&world, "T1");
    assert_ne!(said.code, Some(0), "{}\n{log}", said.out);
    assert_eq!(reruns(&world), 1, "once before the work is blamed: {log}");
    let prompts = world.prompts("T1");
    let told = prompts.last().expect("it was asked");
    assert!(told.contains("fail on your work and not on the base: test."), "only what is new: {told}");
    assert!(!world.files().contains("done.txt"), "{log}");
}

#[test]
fn a_check_that_fails_on_the_base_as_well_is_said_and_does_not_block() {
    let world = with_checks(vec![(FakeCheck::over("test", "success"), FakeJob::default()), red("lint", &[])]);
    let said = follow(&world, "Before", &by_pull_request(&[works("code", "done.txt", "\"complete\"")]), "M");
    let log = log(&world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("step `checks` failed (baseline-failure); proceed"), "{log}");
    assert!(log.contains("lint (of the forge)"), "what is not heeded is told: {log}");
    assert_eq!((world.landed("done.txt"), reruns(&world)), ("x".to_owned(), 0));
}

#[test]
fn a_machine_of_the_forge_that_broke_is_tried_once_more_and_then_says_nothing_about_the_work() {
    let never_ran = FakeJob::default();
    let world = with_checks(vec![(FakeCheck::over("test", "failure"), never_ran)]);
    let said = follow(&world, "Broken", &by_pull_request(&[works("code", "done.txt", "\"complete\"")]), "M");
    let log = log(&world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("step `checks` failed (ci-flake-retry); rerun-ci"), "{log}");
    assert!(log.contains("test: no step of it ran (of the forge)"), "{log}");
    assert_eq!((world.landed("done.txt"), reruns(&world)), ("x".to_owned(), 1));
    assert_eq!(world.prompts("T1").len(), 3, "nobody is asked to mend it: {log}");
}

/// Another person pushes a file to the base of the forge, from a clone of their own.
fn someone_pushes(world: &World, path: &str, text: &str) {
    let root = world.root();
    let git = |at: &Path, args: &[&str]| {
        let name = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"];
        let done = Command::new("git").current_dir(at).args(name).args(args).output().expect("git runs");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let clone = root.join("eve");
    git(root, &["clone", "--quiet", "forge.git", "eve"]);
    std::fs::write(clone.join(path), text).expect("ours");
    git(&clone, &["add", "."]);
    git(&clone, &["commit", "--quiet", "-m", "elsewhere"]);
    git(&clone, &["push", "--quiet", "origin", "main"]);
}

/// A forge that takes only branches that hold its base.
fn wants_the_base(world: &World) {
    use std::os::unix::fs::PermissionsExt as _;
    let hook = world.root().join("forge.git/hooks/update");
    let text = "#!/bin/sh\ncase $1 in refs/heads/landfall/*) git merge-base --is-ancestor main \"$3\" || {\n\
                echo 'this branch is behind main' >&2; exit 1; };; esac\n";
    std::fs::create_dir_all(hook.parent().expect("it has one")).expect("ours");
    std::fs::write(&hook, text).expect("ours");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("ours");
}

#[test]
fn a_base_that_moved_elsewhere_is_taken_into_the_work_and_the_offer_goes_on() {
    let world = World::github();
    wants_the_base(&world);
    let hold = HoldFile::new(&world, "code");
    let code = hold.in_step("code", &works("code", "done.txt", "\"complete\""));
    let mut started = begin(&world, "Behind", &by_pull_request(&[code]), "M");
    at_work(&world);
    someone_pushes(&world, "theirs.txt", "theirs\n");
    hold.release();
    let code = started.wait(LIMIT);
    let log = log(&world, "T1");
    assert_eq!(code, Some(0), "{}\n{log}", world.heard());
    assert!(log.contains("step `offer` failed (code-base-conflict); rebase"), "{log}");
    assert_eq!((world.landed("done.txt"), world.landed("theirs.txt")), ("x".to_owned(), "theirs".to_owned()));
    assert_eq!(world.prompts("T1").len(), 3, "nothing is made twice: {log}");
}

#[test]
fn a_base_that_is_in_dispute_with_the_work_goes_back_to_its_agent_and_nothing_is_lost() {
    let world = World::github();
    let hold = HoldFile::new(&world, "code");
    let first = hold.in_step("code", &works("code", "done.txt", "\"complete\""));
    let forge = world.root().join("forge.git");
    let merges = format!(
        "git merge -q $(git -C {} rev-parse main); printf 'both\\n' > done.txt; git add --all; \
         git -c user.name=a -c user.email=a@example.invalid commit -qm merged",
        forge.display()
    );
    let second = format!("[[step.code]]\nsignal = \"complete\"\nrun = [\"sh\", \"-c\", '''{merges}''']\n");
    let turns = by_pull_request(&[first, second]);
    let mut started = begin(&world, "Dispute", &turns, "M");
    at_work(&world);
    someone_pushes(&world, "done.txt", "theirs\n");
    hold.release();
    let code = started.wait(LIMIT);
    let log = log(&world, "T1");
    assert_eq!(code, Some(0), "{}\n{log}", world.heard());
    assert_eq!(world.landed("done.txt"), "both", "{log}");
    let told = world.prompts("T1");
    assert!(told.iter().any(|prompt| prompt.contains("done.txt") && prompt.contains("onflict")), "{log}");
    let history = world.git(&["log", "--format=%s", world.main()]);
    assert!(history.contains("elsewhere"), "{history}");
}

/// The agent that looks says nothing and does not end.
fn looks_for_ever(world: &World, run: &str) {
    world.file("looks.toml", "[[step.diagnosis]]\nmisbehave = \"hang\"\n");
    world.change_settings(|settings| {
        let settings =
            settings.replacen("kind = \"script\"\n", "kind = \"script\"\nscript = \"looks.toml\"\n", 1);
        format!("{settings}\n[run]\n{run}")
    });
}

#[test]
fn an_agent_that_looks_and_falls_silent_is_ended_like_any_other() {
    let world = World::local();
    looks_for_ever(
        &world,
        "silence = \"2s\"\nfirst_output = \"2s\"\nheartbeat = \"500ms\"\ngrace = \"1s\"\n",
    );
    let began = std::time::Instant::now();
    let said = follow(&world, "Leftovers", &[breaks_off("code", "done.txt", false, 3)], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = world.why("T1");
    assert!(
        why.contains("the recovery agent did not answer: it fell silent"),
        "{why}\n{}",
        log(&world, "T1")
    );
    assert!(began.elapsed() < Duration::from_secs(300), "half of its ten minutes");
    assert_eq!(world.left_behind(), []);
}

#[test]
fn a_stop_ends_the_agent_that_looks_and_the_next_run_asks_again() {
    let world = World::local();
    looks_for_ever(&world, "grace = \"1s\"\n");
    let mut run = begin(&world, "Leftovers", &[breaks_off("code", "done.txt", false, 3)], "XS");
    let looking = || world.landfall(&["why", "T1"]).out.contains("something is done about that");
    world.eventually("an agent looks", looking);
    world.landfall(&["stop"]).ok();
    assert!(run.wait(Duration::from_secs(300)).is_some(), "half of its ten minutes\n{}", world.heard());
    assert_eq!(world.left_behind(), []);
    assert_ne!(world.status("T1"), "blocked", "nothing was concluded from it: {}", world.why("T1"));
    let plan = r#"{"action": "abort", "rationale": "a person has to look"}"#;
    world.file("looks.toml", &says("diagnosis", plan));
    world.commit("another plan");
    world.landfall(&["run"]);
    let why = world.why("T1");
    assert!(why.contains("a person has to look"), "it was asked again: {why}\n{}", log(&world, "T1"));
}
