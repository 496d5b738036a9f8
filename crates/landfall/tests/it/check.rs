//! The checks of the project without an agent: what they say, what is remembered of them, and that no agent starts before they pass
//! on the base.

use landfall_api::{InitFound, LogPage, Outcome, ProjectChecked, Why};

use crate::support::TestEnvironment;

/// How often checks ran on a base, as the journal has it.
fn measured(place: &TestEnvironment) -> usize {
    let log: LogPage = place.json(&["log"]);
    log.entries.iter().filter(|entry| entry.kind == "measured").count()
}

const HELLO: &str =
    "```landfall-script\nsignal = \"complete\"\n[[write]]\npath = \"hello.txt\"\ntext = \"hello\\n\"\n```\n";

#[test]
fn no_agent_starts_while_a_check_fails_on_the_base() {
    let place = TestEnvironment::with_script_agent("echo the parser is broken; test -e repaired.txt");
    place.landfall(&["add", "say hello", "--body", HELLO]).works();
    let run = place.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{run:?}");
    assert!(
        run.out.contains("no agent was started: the check `check` fails (exit 1) on the base"),
        "{run:?}"
    );
    let log: LogPage = place.json(&["log"]);
    assert!(log.entries.iter().all(|entry| entry.kind != "iteration-began"), "an agent was started");
    let why: Why = place.json(&["why", "T1"]);
    assert!(why.sentence.contains("no agent starts: the check `check` fails"), "{}", why.sentence);
    assert!(why.sentence.contains("`landfall check`"), "{}", why.sentence);
    let status = place.landfall(&["status"]).works();
    assert!(format!("{}{}", status.out, status.err).contains("no agent starts"), "{status:?}");

    place.write("repaired.txt", "");
    place.commit("repair");
    let why: Why = place.json(&["why", "T1"]);
    assert!(
        !why.sentence.contains("no agent starts"),
        "what was committed since was not checked: {}",
        why.sentence
    );
    place.landfall(&["run"]).works();
    assert!(place.project().join("hello.txt").exists(), "it landed");
}

#[test]
fn agents_start_on_a_red_base_if_the_settings_say_so() {
    let place = TestEnvironment::with_red_base("test -e hello.txt");
    place.landfall(&["add", "say hello", "--body", HELLO]).works();
    place.landfall(&["run"]).works();
    assert!(place.project().join("hello.txt").exists(), "it landed");
}

#[test]
fn check_says_what_came_of_each_check_and_its_pass_is_remembered() {
    let place = TestEnvironment::with_script_agent("echo one; echo two >&2; test ! -e broken.txt");
    let said = place.landfall(&["check"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("  one\n") && said.out.contains("  two\n"), "{said:?}");
    assert!(
        said.out.contains("ok    check in") && said.out.contains("the checks pass on `main`"),
        "{said:?}"
    );
    place.landfall(&["add", "say hello", "--body", HELLO]).works();
    place.landfall(&["run"]).works();
    assert_eq!(measured(&place), 1, "the run has taken the pass over");

    let checked: ProjectChecked = place.json(&["check", "T1"]);
    assert_eq!((checked.outcome, checked.commands.len()), (Outcome::Pass, 1));
    place.write("broken.txt", "");
    place.commit("break it");
    let said = place.landfall(&["--json", "check"]);
    let checked: ProjectChecked = serde_json::from_str(&said.out).expect("a report");
    assert_eq!((said.code, checked.outcome), (Some(8), Outcome::Fail), "{said:?}");
    let said = place.landfall(&["check", "T1", "--unconfined"]);
    assert_eq!(said.code, Some(2), "an agent wrote that: {said:?}");
}

#[test]
fn init_runs_the_checks_once_and_the_run_after_it_does_not() {
    let place = TestEnvironment::new();
    place.write("Makefile", "test:\n\ttest -e README.md\n");
    place.commit("a project");
    place.write("package.json", r#"{ "scripts": { "test": "node --test" } }"#);
    let found: InitFound = place.json(&["init"]);
    let runs: Vec<&str> = found.commands.iter().map(|command| command.run.as_str()).collect();
    assert_eq!(runs, ["make test"], "what git does not track is not on a clean checkout");
    let checked = found.checked.expect("the checks ran");
    assert_eq!(checked.outcome, Outcome::Pass, "{checked:?}");
    place.git(&["add", "landfall.toml"]);
    place.git(&["commit", "--quiet", "--message", "set up"]);
    place.landfall(&["add", "say hello", "--body", HELLO]).works();
    place.landfall(&["run"]).works();
    assert_eq!(measured(&place), 1, "the commit is what `init` has checked");
}

#[test]
fn init_names_the_check_that_fails_and_what_to_do() {
    let place = TestEnvironment::new();
    place.write("Makefile", "test:\n\t@echo three is not four; exit 3\n");
    place.commit("a project");
    let said = place.landfall(&["init"]).works();
    assert!(said.out.contains("three is not four") && said.out.contains("do not pass on `main`"), "{said:?}");
    assert!(said.out.contains("red_base = \"start\""), "{said:?}");
    let text = std::fs::read_to_string(place.project().join("landfall.toml")).expect("written");
    assert!(text.contains("\nday_usd = 20"), "{text}");
}

#[test]
fn a_path_that_the_sandbox_denies_is_named_with_the_setting_that_allows_it() {
    if !checks_are_isolated() {
        return landfall_testkit::skip_test("no sandbox with namespaces on this machine");
    }
    let place = TestEnvironment::with_script_agent("mkdir ~/.tool-4711-a0b1 && rmdir ~/.tool-4711-a0b1");
    let said = place.landfall(&["check"]);
    assert_eq!(said.code, Some(8), "{said:?}");
    assert!(said.out.contains("the check `check` tried to write `~/.tool-4711-a0b1`"), "{said:?}");
    assert!(said.out.contains("sandbox_write = [\"~/.tool-*\"]"), "{said:?}");
    let said = place.landfall(&["--json", "check"]);
    let checked: ProjectChecked = serde_json::from_str(&said.out).expect("a report");
    assert_eq!(checked.outcome, Outcome::Broken, "the settings are to blame: {checked:?}");
    let said = place.landfall(&["check", "--unconfined"]);
    assert_eq!(said.code, Some(0), "{said:?}");

    place.landfall(&["add", "say hello", "--body", HELLO]).works();
    let run = place.landfall(&["run"]);
    assert!(run.out.contains("which the sandbox denies"), "{run:?}");
    assert!(!run.out.contains("on the base as well"), "{run:?}");

    let settings = std::fs::read_to_string(place.project().join("landfall.toml")).expect("written");
    place.write("landfall.toml", &format!("{settings}[run]\nsandbox_write = [\"~/.tool-*\"]\n"));
    place.commit("allow it");
    place.trust();
    place.landfall(&["run"]).works();
    assert!(place.project().join("hello.txt").exists(), "it landed");
    let entries = std::fs::read_dir(place.path("home")).expect("there").flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".tool")), "{names:?}");
}

/// Whether checks get a view of the machine of their own here.
fn checks_are_isolated() -> bool {
    let place = TestEnvironment::new();
    let found: InitFound = place.json(&["init", "--no-check"]);
    found.sandbox == "isolated"
}
