//! The gate from outside: what each outcome of a check leads to, and that no work can loosen the checks it is judged by.

use landfall_testkit::{CommandOutput, ScratchProject};

use crate::LANDFALL;
use crate::sandbox::open_folder;

const PLAIN: &str = "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n";

/// Settings with these lines in the verify section, before its commands, and these commands. The folder of
/// [`open_folder`] may be written.
fn verify(section: &str, commands: &[&str]) -> String {
    let mut text = format!(
        "[agent.default]\nkind = \"script\"\n[run]\niterations_max = 3\nsandbox_write = [\"~/open\"]\n[verify]\nred_base = \"start\"\n{section}\n"
    );
    for (place, command) in commands.iter().enumerate() {
        text.push_str(&format!("[[verify.command]]\nname = \"check {}\"\n{command}\n", place + 1));
    }
    text
}

/// One task under these settings.
fn gated(settings: &str, script: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(settings);
    scratch.task("Story", script, &[]);
    scratch
}

/// The run ended with something for a person to do, `main` stands where it stood, and the word about it is there.
#[track_caller]
fn holds(scratch: &ScratchProject, words: &[&str]) -> CommandOutput {
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(run.code, Some(9), "{why}\n{}\n{}", run.out, run.err);
    assert_eq!(scratch.wait_of("T1"), "gate broken", "{why}");
    for word in words {
        assert!(why.contains(word), "`{word}` is not in: {why}");
    }
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "nothing landed");
    assert_eq!(scratch.left_behind(), []);
    run
}

#[track_caller]
fn lands(scratch: &ScratchProject) {
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done", "{}\n{}", scratch.why("T1"), run.err);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
}

#[track_caller]
fn in_review(scratch: &ScratchProject, words: &[&str]) {
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), "review", "{why}\n{}", run.err);
    assert_eq!(run.code, Some(9), "{why}");
    for word in words {
        assert!(why.contains(word), "`{word}` is not in: {why}");
    }
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "nothing landed");
}

// The section is the base's.

#[test]
fn work_that_empties_the_section_is_judged_by_the_old_one() {
    let script = r#"
signal = "complete"
[[write]]
path = "landfall.toml"
text = "[agent.default]\nkind = \"script\"\n"
[[write]]
path = "b.txt"
text = "wrong\n"
[[write]]
path = "b.txt.want"
text = "right\n"
"#;
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\niterations_max = 2");
    scratch.task("Story", script, &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed", "{}\n{}", scratch.why("T1"), run.err);
    assert_eq!(run.code, Some(8));
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    assert!(scratch.prompts("T1")[1].contains("FAIL b.txt"), "{}", scratch.prompts("T1")[1]);
}

#[test]
fn work_that_empties_the_section_and_passes_waits_for_a_person() {
    let script = r#"
signal = "complete"
[[write]]
path = "landfall.toml"
text = "[agent.default]\nkind = \"script\"\n"
"#;
    let scratch = gated(&verify("", &["run = \"sh test.sh\""]), script);
    in_review(&scratch, &["changes a protected path: landfall.toml"]);
}

#[test]
fn work_that_swaps_the_check_for_one_that_always_passes_is_judged_by_the_old_one() {
    let script = r#"
signal = "complete"
[[write]]
path = "landfall.toml"
text = "[agent.default]\nkind = \"script\"\n[[verify.command]]\nrun = \"true\"\n"
[[write]]
path = "b.txt.want"
text = "right\n"
"#;
    let scratch = gated(&verify("", &["run = \"sh test.sh\""]), script);
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
}

#[test]
fn work_that_deletes_the_check_does_not_pass_by_that() {
    let scratch =
        gated(&verify("", &["run = \"./test.sh\""]), "signal = \"complete\"\ndelete = [\"test.sh\"]\n");
    std::fs::set_permissions(
        scratch.project().join("test.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("a file of ours");
    scratch.commit("executable");
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    assert_ne!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let prompt = scratch.prompts("T1")[1].clone();
    assert!(prompt.contains("exit code 127"), "{prompt}");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "nothing landed");
}

#[test]
fn work_that_touches_ci_waits_for_a_person() {
    for path in [".github/workflows/ci.yml", ".ci/run", ".landfall/prompts/work.md"] {
        let script = format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"x\\n\"\n");
        let scratch = gated(&verify("", &["run = \"true\""]), &script);
        in_review(&scratch, &["changes a protected path", path]);
    }
}

#[test]
fn work_that_puts_the_rules_behind_a_link_waits_for_a_person() {
    for path in [".github", ".ci", ".landfall"] {
        let script =
            format!("run = [\"sh\", \"-c\", \"mkdir own; echo x > own/x; ln -s own {path}\"]\n{PLAIN}");
        let scratch = gated(&verify("", &["run = \"true\""]), &script);
        in_review(&scratch, &["changes a protected path", path]);
    }
}

#[test]
fn a_test_that_goes_is_seen_behind_much_data_and_beside_a_nul() {
    let hidden = |command: &str, words: &[&str]| {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.settings(&verify("", &["run = \"true\""]));
        scratch.file("tests/test_z.py", "def test_one():\n    pass\ndef test_two():\n    pass\n");
        scratch.commit("two tests");
        scratch.task("Story", &format!("run = [\"sh\", \"-c\", '''{command}''']\n{PLAIN}"), &[]);
        in_review(&scratch, words);
    };
    let weaken = "sed -i 3,4d tests/test_z.py";
    let seen = ["removes tests", "tests/test_z.py"];
    hidden(weaken, &seen);
    hidden(&format!("{weaken}; printf \"\\000\" >> tests/test_z.py"), &seen);
    hidden(&format!("{weaken}; yes data | head -c 9000000 > aaa.dat"), &seen);
    hidden(&format!("{weaken}; yes a=1 | head -c 9000000 > aaa.py"), &["too large to look through"]);
}

#[test]
fn work_that_runs_fewer_tests_than_the_base_waits_for_a_person() {
    let scratch = ScratchProject::new(LANDFALL);
    for name in ["one", "two", "three"] {
        scratch.file(name, "here\n");
        scratch.file(&format!("{name}.want"), "here\n");
    }
    scratch.commit("three checks");
    scratch.task("Story", "signal = \"complete\"\ndelete = [\"two.want\", \"three.want\"]\n", &[]);
    in_review(&scratch, &["runs fewer tests than the base", "2 ran, 4 on the base"]);
}

#[test]
fn a_base_without_settings_is_judged_by_the_persons_own() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.git(&["rm", "-q", "--cached", "landfall.toml"]);
    scratch.file(".git/info/exclude", "landfall.toml\n");
    scratch.git(&["commit", "-qm", "settings of my own"]);
    let script = r#"
signal = "complete"
[[write]]
path = "b.txt.want"
text = "right\n"
"#;
    scratch.file("landfall.toml", &verify("", &["run = \"sh test.sh\""]));
    scratch.task("Story", script, &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed", "{}", scratch.why("T1"));
}

#[test]
fn a_section_on_the_base_that_cannot_be_read_holds() {
    let scratch = gated(&verify("", &["run = \"true\""]), PLAIN);
    // Committed by a colleague; the checkout is mended, the branch is not.
    let whole = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("readable");
    scratch.settings("[verify]\nrequird = true\n");
    scratch.file("landfall.toml", &whole);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert!(scratch.why("T1").contains("no agent starts"), "{}", scratch.why("T1"));
    assert!(run.out.contains("requird"), "{}", run.out);
}

// Outcomes.

#[test]
fn a_command_that_is_not_there_is_broken_and_holds_with_an_honest_table() {
    let scratch = gated(&verify("", &["run = \"no-such-program-here\""]), PLAIN);
    scratch.task("Second", "signal = \"complete\"\n[[write]]\npath = \"c.txt\"\ntext = \"c\\n\"\n", &[]);
    let run = holds(&scratch, &["no-such-program-here", "exit code 127"]);
    assert_eq!(scratch.wait_of("T2"), "gate broken");
    for task in ["T1", "T2"] {
        let line = run.out.lines().find(|line| line.contains(task)).unwrap_or_else(|| panic!("{}", run.out));
        assert!(line.contains("waiting"), "{line}");
    }
    assert!(!run.out.contains("done"), "{}", run.out);
}

#[test]
fn a_command_that_may_not_be_executed_is_broken_and_holds() {
    let scratch = gated(&verify("", &["run = \"./a.txt\""]), PLAIN);
    holds(&scratch, &["exit code 126"]);
}

#[test]
fn a_check_that_the_work_makes_crash_goes_back_to_the_agent() {
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"bad.txt\"\ntext = \"x\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\ndelete = [\"bad.txt\"]\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    let scratch = gated(&verify("", &["run = \"test ! -e bad.txt || kill -SEGV $$\""]), script);
    lands(&scratch);
    let prompt = scratch.prompts("T1")[1].clone();
    assert!(prompt.contains("139"), "{prompt}");
}

#[test]
fn a_check_that_crashes_on_the_base_as_well_holds() {
    let scratch = gated(&verify("", &["run = \"kill -9 $$\""]), PLAIN);
    holds(&scratch, &["check 1", "on the base as well"]);
}

#[test]
fn no_test_that_ran_is_broken_and_holds() {
    let scratch = gated(&verify("", &["run = \"echo '0 passed, 0 failed'\""]), PLAIN);
    holds(&scratch, &["ran no test"]);
    let scratch =
        gated(&verify("", &["run = \"echo 'test result: ok. 0 passed; 0 failed; 0 ignored'\""]), PLAIN);
    holds(&scratch, &["ran no test"]);
}

#[test]
fn c21_required_without_commands_holds() {
    let scratch = gated(&verify("required = true", &[]), PLAIN);
    holds(&scratch, &["requires verification but configures no command"]);
}

#[test]
fn c21_no_command_at_all_lands_with_a_loud_warning() {
    let scratch = gated(&verify("", &[]), PLAIN);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(format!("{}{}", run.out, run.err).contains("VERIFICATION_EMPTY"), "{}{}", run.out, run.err);
    for args in [&["show", "T1"][..], &["certificate", "T1"], &["report", "T1"]] {
        let said = scratch.landfall(args);
        assert!(said.out.contains("VERIFICATION_EMPTY"), "{args:?}: {}", said.out);
    }
    let served = crate::serve::Served::start(&scratch, &[]);
    let (_, board) = served.get("/api/v1/board");
    assert!(board.contains("\"unverified\":true"), "{board}");
    let (_, page) = served.get("/");
    assert!(page.contains("verified by nothing"), "the board marks it: {page}");
    served.end();
}

#[test]
fn an_optional_command_that_fails_is_a_warning_only() {
    let commands = ["run = \"true\"", "run = \"echo untidy; false\"\nrequired = false"];
    let scratch = gated(&verify("", &commands), PLAIN);
    lands(&scratch);
    let warnings = scratch.detail("T1")["warnings"].to_string();
    assert!(warnings.contains("the optional check `check 2` failed"), "{warnings}");
    assert!(scratch.landfall(&["certificate", "T1"]).out.contains("check 2"));
}

#[test]
fn an_optional_command_that_is_not_there_is_a_warning_only() {
    let commands = ["run = \"no-such-program-here\"\nrequired = false", "run = \"true\""];
    let scratch = gated(&verify("", &commands), PLAIN);
    lands(&scratch);
}

#[test]
fn a_failure_goes_back_with_its_output_and_later_checks_are_not_run() {
    let scratch = ScratchProject::new(LANDFALL);
    let second = open_folder(&scratch).join("second");
    let run = format!("run = \"test ! -e b.txt || echo x >> {}\"", second.display());
    scratch.settings(&verify(
        "",
        &["run = \"test ! -e bad.txt || (echo the bad file is there; exit 3)\"", &run],
    ));
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"bad.txt\"\ntext = \"x\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\ndelete = [\"bad.txt\"]\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    scratch.task("Story", script, &[]);
    lands(&scratch);
    let prompt = scratch.prompts("T1")[1].clone();
    assert!(prompt.contains("exit code 3") && prompt.contains("the bad file is there"), "{prompt}");
    assert_eq!(std::fs::read_to_string(&second).expect("it ran"), "x\n", "only once the first check passed");
}

#[test]
fn a_check_that_takes_too_long_is_shown_as_a_timeout() {
    let check = "run = \"test ! -e slow.txt || sleep 30\"\ntimeout = \"1s\"";
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"slow.txt\"\ntext = \"x\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\ndelete = [\"slow.txt\"]\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    let scratch = gated(&verify("retries = 0", &[check]), script);
    lands(&scratch);
    let prompt = scratch.prompts("T1")[1].clone();
    assert!(prompt.contains("TIMEOUT (1s / 1s)"), "{prompt}");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_check_that_fails_once_and_then_passes_is_flaky_and_lands_with_a_warning() {
    let scratch = ScratchProject::new(LANDFALL);
    let count = open_folder(&scratch).join("count");
    let check =
        format!("run = \"test ! -e b.txt || [ -e {0} ] || {{ touch {0}; exit 1; }}\"", count.display());
    scratch.settings(&verify("", &[&check]));
    scratch.task("Story", PLAIN, &[]);
    lands(&scratch);
    let certificate = scratch.landfall(&["certificate", "T1"]).json();
    assert_eq!(certificate["verification"]["outcome"], "flaky");
    assert!(certificate["warnings"].to_string().contains("flaky"), "{certificate}");
    assert_eq!(scratch.detail("T1")["iterations"], 1, "it is not the agent's fault");
}

#[test]
fn a_flaky_check_without_retries_is_a_failure() {
    let scratch = ScratchProject::new(LANDFALL);
    let count = open_folder(&scratch).join("count");
    let check =
        format!("run = \"test ! -e b.txt || [ -e {0} ] || {{ touch {0}; exit 1; }}\"", count.display());
    scratch.settings(&verify("retries = 0", &[&check]));
    scratch.task("Story", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\nappend = \"more\\n\"\n", &[]);
    lands(&scratch);
    assert_eq!(scratch.detail("T1")["iterations"], 2);
}

#[test]
fn a_red_main_is_not_the_works_fault_and_a_commit_that_mends_it_lets_it_go_on() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&verify("", &["run = \"sh test.sh\""]));
    scratch.file("z.txt.want", "mended\n");
    scratch.commit("red");
    scratch.task("Story", PLAIN, &[]);
    holds(&scratch, &["fails on the base as well"]);
    assert_eq!(scratch.detail("T1")["gate"]["outcome"], "pre-existing");
    // Nothing has changed: it still waits, and the agent is not run again.
    holds(&scratch, &["fails on the base as well"]);
    assert_eq!(scratch.prompts("T1").len(), 1);
    scratch.file("z.txt", "mended\n");
    scratch.commit("mended");
    lands(&scratch);
    assert_eq!(scratch.prompts("T1").len(), 1, "its work was good all the time");
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
    assert_eq!(scratch.git(&["show", "main:z.txt"]), "mended");
}

#[test]
fn work_that_mends_a_red_main_lands() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&verify("", &["run = \"sh test.sh\""]));
    scratch.file("z.txt.want", "mended\n");
    scratch.commit("red");
    scratch.task("Story", "signal = \"complete\"\n[[write]]\npath = \"z.txt\"\ntext = \"mended\\n\"\n", &[]);
    lands(&scratch);
}

#[test]
fn a_broken_gate_that_is_mended_outside_goes_on_with_retry() {
    let scratch = ScratchProject::new(LANDFALL);
    let tool = scratch.root().join("tool");
    scratch.settings(&verify("", &[&format!("run = \"{}\"", tool.display())]));
    scratch.task("Story", PLAIN, &[]);
    holds(&scratch, &["exit code 127"]);
    std::fs::write(&tool, "#!/bin/sh\nexit 0\n").expect("a file of ours");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a file of ours");
    scratch.landfall(&["retry", "T1"]).ok();
    lands(&scratch);
    assert_eq!(scratch.prompts("T1").len(), 1);
}

#[test]
fn a_check_sees_a_clean_checkout_of_the_merge_and_nothing_an_agent_or_a_check_left() {
    let scratch = ScratchProject::new(LANDFALL);
    let seen = open_folder(&scratch).join("seen");
    let check = format!(
        "run = \"ls -A | grep -v '^.git$' | sort | tr '\\\\n' ' ' >> {0}; echo >> {0}; touch litter\"",
        seen.display()
    );
    scratch.file(".gitignore", "*.tmp\n");
    scratch.settings(&verify("", &[&check, &check]));
    let script = "run = [\"sh\", \"-c\", \"echo ignored > trash.tmp\"]\n";
    scratch.task("Story", &format!("{script}{PLAIN}"), &[]);
    lands(&scratch);
    let seen = std::fs::read_to_string(&seen).expect("the check ran");
    for line in seen.lines() {
        let clean =
            [".gitignore a.txt b.txt landfall.toml test.sh", ".gitignore a.txt landfall.toml test.sh"];
        assert!(clean.contains(&line.trim()), "{seen}");
    }
}

#[test]
fn a_verification_finds_what_its_own_commands_left_in_ignored_folders_and_nothing_of_an_earlier_one() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".gitignore", "cache/\n");
    let install = "run = \"test ! -e cache/stub && mkdir -p cache && touch cache/stub\"";
    scratch.settings(&verify("retries = 0", &[install, "run = \"test -e cache/stub\""]));
    scratch.task("Story", PLAIN, &[]);
    lands(&scratch);
    scratch.task("Next", &PLAIN.replace("b.txt", "c.txt"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T2"), "done", "{}\n{}", scratch.why("T2"), run.err);
}

#[test]
fn a_check_gets_no_variables_but_safe_ones_and_those_that_are_named() {
    let mut scratch = ScratchProject::new(LANDFALL);
    let seen = open_folder(&scratch).join("seen");
    let check = format!("run = \"env >> {}\"", seen.display());
    scratch.settings(&verify("", &[&check]).replace("[run]\n", "[run]\nenv = [\"NAMED_ONE\"]\n"));
    scratch.set("SECRET_TOKEN", "hush");
    scratch.set("NAMED_ONE", "given");
    scratch.task("Story", &format!("run = [\"sh\", \"-c\", \"env >> {}\"]\n{PLAIN}", seen.display()), &[]);
    lands(&scratch);
    let seen = std::fs::read_to_string(&seen).expect("both ran");
    assert!(!seen.contains("hush") && !seen.contains("SECRET_TOKEN"), "{seen}");
    assert!(!seen.contains("LANDFALL_STATE"), "agents are not told where the state is: {seen}");
    assert!(seen.matches("NAMED_ONE=given").count() >= 2, "{seen}");
}

// Signals and checks together.

#[test]
fn checks_that_would_pass_without_a_signal_change_nothing_it_iterates() {
    let script = "[[iteration]]\nsay = \"not yet\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\n";
    let scratch = gated(&verify("", &["run = \"true\""]), script);
    lands(&scratch);
    assert_eq!(scratch.detail("T1")["iterations"], 2);
    assert_eq!(scratch.facts("T1", "verified").len(), 1, "nothing is verified before it says so");
}

#[test]
fn complete_twice_without_a_change_is_blocked() {
    let scratch = gated(&verify("", &["run = \"true\""]), "signal = \"complete\"\n");
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "blocked");
    assert_eq!(run.code, Some(8));
    assert!(scratch.why("T1").contains("nothing_changed"), "{}", scratch.why("T1"));
    assert_eq!(scratch.prompts("T1").len(), 2);
}

#[test]
fn complete_and_blocked_is_blocked() {
    for signal in ["[\"complete\", \"blocked:no access\"]", "[\"blocked:no access\", \"complete\"]"] {
        let script = format!("signal = {signal}\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n");
        let scratch = gated(&verify("", &["run = \"true\""]), &script);
        let run = scratch.landfall(&["run"]);
        assert_eq!(scratch.status("T1"), "blocked", "{signal}");
        assert_eq!(run.code, Some(8), "{signal}");
        assert!(scratch.why("T1").contains("no access"), "{}", scratch.why("T1"));
        assert_eq!(scratch.facts("T1", "verified").len(), 0, "{signal}");
    }
}

#[test]
fn a_tag_in_a_code_block_or_amid_a_line_is_no_signal() {
    let script = "say = \"I will say <landfall>COMPLETE</landfall> soon\\n```\\n<landfall>COMPLETE</landfall>\\n```\"\n\
                  [[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n";
    let scratch = gated(&verify("", &["run = \"true\""]), script);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed", "{}", scratch.why("T1"));
}

#[test]
fn names_that_differ_in_case_only_do_not_land_where_the_checkout_folds_case() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.git(&["config", "core.ignoreCase", "true"]);
    let write = |name: &str| format!("[[iteration.write]]\npath = {name:?}\ntext = \"text\\n\"\n");
    let script = format!(
        "[[iteration]]\nsignal = \"complete\"\n{}{}[[iteration]]\nsignal = \"complete\"\nrun = [\"rm\", \"Guide.md\"]\n",
        write("guide.md"),
        write("Guide.md"),
    );
    scratch.task("Two names", &script, &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.detail("T1")["iterations"], 2, "the agent was told: {}", scratch.heard());
    assert_eq!(scratch.git(&["ls-tree", "-r", "--name-only", "main"]).matches("uide.md").count(), 1);
}
