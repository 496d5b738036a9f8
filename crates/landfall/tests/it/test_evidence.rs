//! Changes that weaken what judges them, from outside: the review shows what changed, and the certificate keeps the evidence.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

/// A greeting, a script that the check runs, and a test that the script runs.
fn greeting(section: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("greet.sh", "echo \"Hello, $1!\"\n");
    scratch.file("scripts/ci.sh", "set -e\nfor file in tests/*.sh; do sh \"$file\"; done\n");
    scratch.file(
        "tests/greets.sh",
        "[ \"$(sh greet.sh Ada)\" = 'Hello, Ada!' ] || { echo 'FAIL greets'; exit 1; }\n",
    );
    scratch.settings(&format!(
        "[agent.default]\nkind = \"script\"\n[verify]\n{section}\ncommand = [\"sh scripts/ci.sh\"]\n"
    ));
    scratch
}

const WELCOMES: &str = r#"signal = "complete"
[[write]]
path = "greet.sh"
text = "echo \"Welcome, $1!\"\n"
[[write]]
path = "tests/greets.sh"
text = "[ \"$(sh greet.sh Ada)\" = 'Welcome, Ada!' ] || { echo 'FAIL greets'; exit 1; }\n"
"#;

#[test]
fn a_script_of_the_check_lands_only_after_a_person_saw_its_change() {
    let scratch = greeting("");
    let script = "signal = \"complete\"\n[[write]]\npath = \"greet.sh\"\ntext = \"echo Bye\\n\"\n\
                  [[write]]\npath = \"scripts/ci.sh\"\ntext = \"set -e\\ntrue\\n\"\n";
    scratch.task("Empty the script", script, &[]);
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}");
    assert!(why.contains("scripts/ci.sh (used by the check): −for file in tests/*.sh"), "{why}");
    assert!(why.contains("+true"), "{why}");
    scratch.landfall(&["review", "T1", "approve", "we replace it"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let certificate = scratch.landfall(&["certificate", "T1"]).json();
    let input = &certificate["tests"]["protected_inputs"][0];
    assert_eq!((&input["path"], &input["note"]), (&"scripts/ci.sh".into(), &"we replace it".into()));
    assert_eq!(input["approved_by"], "person");
    assert_eq!(certificate["tests"]["base_tests"], serde_json::Value::Null, "no test changed");
}

#[test]
fn a_script_behind_a_link_is_followed() {
    let scratch = greeting("");
    scratch.file("tools/real.sh", "set -e\nfor file in tests/*.sh; do sh \"$file\"; done\n");
    let link = scratch.project().join("scripts/ci.sh");
    std::fs::remove_file(&link).expect("the script is there");
    std::os::unix::fs::symlink("../tools/real.sh", &link).expect("a link can be made");
    scratch.commit("link");
    let script = "signal = \"complete\"\n[[write]]\npath = \"tools/real.sh\"\ntext = \"true\\n\"\n";
    scratch.task("Empty the script behind the link", script, &[]);
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}");
    assert!(why.contains("tools/real.sh (used by scripts/ci.sh)"), "{why}");
}

#[test]
fn settings_behind_a_link_change_only_after_a_person_saw_it() {
    let scratch = greeting("");
    let settings = scratch.project().join("landfall.toml");
    let text = std::fs::read_to_string(&settings).expect("the settings are there");
    scratch.file("config/landfall.toml", &text);
    std::fs::remove_file(&settings).expect("the settings are there");
    std::os::unix::fs::symlink("config/landfall.toml", &settings).expect("a link can be made");
    scratch.commit("link");
    let script = "signal = \"complete\"\n[[write]]\npath = \"config/landfall.toml\"\ntext = \"[verify]\\ncommand = \
                  [\\\"true\\\"]\\n\"\n";
    scratch.task("Replace the settings behind the link", script, &[]);
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}");
    assert!(why.contains("config/landfall.toml (used by landfall.toml)"), "{why}");
}

/// A new option of the product, wrong, and a test of it that compares nothing with it.
const SHOUTS: &str = r#"signal = "complete"
[[write]]
path = "shout.sh"
text = "echo \"HELLO\"\n"
[[write]]
path = "tests/shouts.sh"
text = "out=$(sh shout.sh)\n[ \"$out\" = \"$out\" ] || { echo 'FAIL shouts'; exit 1; }\n"
"#;

#[test]
fn a_test_that_notices_no_altered_line_is_reported_or_reviewed() {
    let scratch = greeting("");
    scratch.task("Shout", SHOUTS, &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let certificate = scratch.landfall(&["certificate", "T1"]).json();
    let tried = &certificate["tests"]["mutations"]["tried"];
    assert_eq!(
        (&tried[0]["outcome"], &tried[1]["outcome"]),
        (&"survived".into(), &"survived".into()),
        "{tried}"
    );
    let warning = certificate["warnings"][0].as_str().unwrap_or_default();
    assert!(
        warning.contains("tests/shouts.sh: shouts.sh (no test fails with `echo \"xHELLO\"` in place of"),
        "{warning}"
    );

    let scratch = greeting("mutation = \"review\"");
    scratch.task("Shout", SHOUTS, &[]);
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}");
    assert!(why.contains("at shout.sh:1"), "{why}");

    let scratch = greeting("mutation = \"review\"");
    scratch.task("Shout", &SHOUTS.replace("= \\\"$out\\\"", "= HELLO"), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "its test can fail: {}", scratch.why("T1"));
    let tried = scratch.landfall(&["certificate", "T1"]).json()["tests"]["mutations"]["tried"].clone();
    assert_eq!((tried.as_array().map(Vec::len), &tried[0]["outcome"]), (Some(1), &"caught".into()));
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_changed_expectation_is_named_by_the_test_of_the_base() {
    let scratch = greeting("");
    scratch.task("Welcome", WELCOMES, &[]);
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}");
    let told = "fails tests of the base: greets (the version on the base of tests/greets.sh)";
    assert!(why.contains(told), "{why}");
    scratch.landfall(&["review", "T1", "approve"]).ok();
    scratch.landfall(&["run"]).ok();
    let run = scratch.landfall(&["certificate", "T1"]).json()["tests"]["base_tests"].clone();
    assert_eq!((&run["outcome"], &run["failing"][0]), (&"fail".into(), &"greets".into()));
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_project_may_only_report_failing_tests_of_the_base_or_not_run_them() {
    for (mode, outcome, warnings) in [("report", Some("fail"), 1), ("off", None, 0)] {
        let scratch = greeting(&format!("base_tests = \"{mode}\""));
        scratch.task("Welcome", WELCOMES, &[]);
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.status("T1"), "done", "{mode}: {}", scratch.why("T1"));
        let certificate = scratch.landfall(&["certificate", "T1"]).json();
        assert_eq!(certificate["tests"]["base_tests"]["outcome"].as_str(), outcome, "{mode}");
        assert_eq!(certificate["warnings"].as_array().map(Vec::len), Some(warnings), "{mode}");
    }
}
