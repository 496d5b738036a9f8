//! What a check came to, how many tests a runner says it ran, and what all checks amount to together.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use landfall_model::gate::{CheckOutcome, CommandExit, GateReport, compute_check_outcome, count_tests};

use crate::story::{command, report};

// ── weigh ────────────────────────────────────────────────────────────────────────────────────────────────

/// Every way one run of a command can look.
fn runs() -> [(&'static str, CommandExit); 7] {
    let seen = |exit, timed_out, tests| CommandExit { exit, timed_out, tests, is_denied: false };
    [
        ("exit 0", seen(Some(0), false, Some(3))),
        ("exit 1", seen(Some(1), false, Some(3))),
        ("timed out", seen(None, true, None)),
        ("exit 126", seen(Some(126), false, None)),
        ("exit 127", seen(Some(127), false, None)),
        ("no test", seen(Some(0), false, Some(0))),
        ("killed", seen(None, false, None)),
    ]
}

#[test]
fn a_command_weighs_its_run_on_the_work_then_again_then_on_the_base() {
    let mut table = String::new();
    for (work, on_work) in runs() {
        let mut options = vec![("-", None)];
        options.extend(runs().map(|(name, seen)| (name, Some(seen))));
        let mut lines: Vec<(String, String)> = Vec::new();
        for (second, again) in &options {
            let row: Vec<_> = options
                .iter()
                .map(|(_, on_base)| compute_check_outcome(&on_work, again.as_ref(), on_base.as_ref()).word())
                .collect();
            let row = row.join(" · ");
            match lines.iter_mut().find(|(_, known)| *known == row) {
                Some((names, _)) => *names = format!("{names}, {second}"),
                None => lines.push(((*second).to_owned(), row)),
            }
        }
        for (seconds, row) in lines {
            writeln!(table, "{work}; again {seconds}:\n    {row}").expect("a string takes it");
        }
    }
    // The columns are the base: not run, exit 0, exit 1, timed out, exit 126, exit 127, no test, killed.
    expect![[r#"
        exit 0; again -, exit 0, exit 1, timed out, exit 126, exit 127, no test, killed:
            pass · pass · pass · pass · pass · pass · pass · pass
        exit 1; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            fail · fail · pre-existing · pre-existing · fail · fail · fail · fail
        exit 1; again exit 0:
            flaky · flaky · flaky · flaky · flaky · flaky · flaky · flaky
        timed out; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            timeout · timeout · pre-existing · pre-existing · timeout · timeout · timeout · timeout
        timed out; again exit 0:
            flaky · flaky · flaky · flaky · flaky · flaky · flaky · flaky
        exit 126; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            broken · fail · broken · broken · broken · broken · broken · broken
        exit 126; again exit 0:
            broken · flaky · broken · broken · broken · broken · broken · broken
        exit 127; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            broken · fail · broken · broken · broken · broken · broken · broken
        exit 127; again exit 0:
            broken · flaky · broken · broken · broken · broken · broken · broken
        no test; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            broken · fail · broken · broken · broken · broken · broken · broken
        no test; again exit 0:
            broken · flaky · broken · broken · broken · broken · broken · broken
        killed; again -, exit 1, timed out, exit 126, exit 127, no test, killed:
            broken · fail · broken · broken · broken · broken · broken · broken
        killed; again exit 0:
            broken · flaky · broken · broken · broken · broken · broken · broken
    "#]]
    .assert_eq(&table);
}

#[test]
fn only_a_pass_or_a_pass_on_retry_is_green() {
    let green: Vec<_> = CheckOutcome::ALL.into_iter().filter(|it| it.is_green()).collect();
    assert_eq!(green, [CheckOutcome::Pass, CheckOutcome::Flaky]);
}

// ── the report ───────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_worst_required_check_is_the_outcome() {
    use CheckOutcome::{Broken, Fail, Flaky, Pass, PreExisting, Timeout};
    let check = |commands: &[(&str, CheckOutcome)], expect: CheckOutcome| {
        let made = commands.iter().map(|(name, outcome)| command(name, *outcome)).collect();
        assert_eq!(report(made).outcome(), expect, "{commands:?}");
    };
    check(&[], Pass);
    check(&[("a", Pass)], Pass);
    check(&[("a", Pass), ("b", Flaky)], Flaky);
    check(&[("a", Fail), ("b", PreExisting)], Fail);
    check(&[("a", Fail), ("b", Timeout)], Timeout);
    check(&[("a", Fail), ("b", Broken), ("c", Pass)], Broken);
    check(&[("a", Pass), ("b?", Fail), ("c?", Broken)], Pass);
    check(&[("a?", Fail)], Pass);
}

#[test]
fn a_gate_of_optional_checks_alone_holds_where_one_is_required() {
    let optional = report(vec![command("lint?", CheckOutcome::Pass)]);
    assert_eq!(GateReport { required: true, ..optional.clone() }.outcome(), CheckOutcome::Broken);
    assert_eq!(optional.outcome(), CheckOutcome::Pass);
    assert!(!optional.is_empty());
    assert!(report(vec![]).is_empty());
}

#[test]
fn tests_are_summed_over_the_commands_that_told() {
    let told = |tests| {
        let mut command = command("tests", CheckOutcome::Pass);
        command.tests = tests;
        command
    };
    assert_eq!(report(vec![]).test_count(), None);
    assert_eq!(report(vec![told(None)]).test_count(), None);
    assert_eq!(report(vec![told(Some(2)), told(None), told(Some(3))]).test_count(), Some(5));
}

#[test]
fn offenders_are_the_required_checks_that_are_not_green() {
    let all = report(vec![
        command("a", CheckOutcome::Pass),
        command("b", CheckOutcome::Fail),
        command("c?", CheckOutcome::Fail),
        command("d", CheckOutcome::Flaky),
        command("e", CheckOutcome::Broken),
    ]);
    let names: Vec<_> = all.blocking_commands().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["b", "e"]);
}

// ── counting tests ───────────────────────────────────────────────────────────────────────────────────────

fn counts(output: &str, expect: Option<u64>) {
    assert_eq!(count_tests(output), expect, "in:\n{output}");
}

#[test]
fn cargo_test_is_counted_over_all_binaries() {
    counts(
        "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... FAILED\n\n\
         test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
         running 1 test\ntest d ... ok\n\n\
         test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   \
         Doc-tests x\n\nrunning 0 tests\n\n\
         test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Some(4),
    );
    counts(
        "running 0 tests\n\n\
         test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Some(0),
    );
    counts("test result: ok. 0 passed; 0 failed; 5 ignored; 0 measured; 2 filtered out", Some(0));
    counts("error: could not compile `x` (lib test) due to 1 previous error", None);
}

#[test]
fn nextest_is_counted_by_its_summary() {
    counts(
        "    Starting 3 tests across 1 binary\n        PASS [   0.004s] x::it a\n\
         ────────────\n     Summary [   0.012s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped\n",
        Some(3),
    );
    counts("     Summary [   0.006s] 1 test run: 1 passed, 0 skipped\n", Some(1));
    counts(
        "    Starting 0 tests across 2 binaries (12 tests skipped)\n\
         ────────────\n     Summary [   0.000s] 0 tests run: 0 passed, 12 skipped\n\
         error: no tests to run\n",
        Some(0),
    );
    counts(
        "\u{1b}[32;1m     Summary\u{1b}[0m [   0.012s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, 0 skipped\n",
        Some(3),
    );
}

#[test]
fn pytest_is_counted_by_its_last_line() {
    counts("============================== 3 passed in 0.01s ===============================", Some(3));
    counts("==== 1 failed, 2 passed, 4 skipped, 1 xfailed, 2 warnings in 0.12s ====", Some(4));
    counts("=========================== 1 error in 0.05s ===========================", Some(1));
    counts("==== 2 passed, 2 errors in 61.20s (0:01:01) ====", Some(4));
    counts("============================ no tests ran in 0.00s =============================", Some(0));
    counts("==== 3 skipped in 0.01s ====", Some(0));
    counts("==== 12 deselected in 0.04s ====", Some(0));
    counts("...\n3 passed in 0.01s\n", Some(3)); // pytest -q
    counts("F.\n1 failed, 1 passed in 0.05s\n", Some(2));
    counts("\nno tests ran in 0.00s\n", Some(0));
}

#[test]
fn unittest_is_counted_without_what_it_skipped() {
    counts("..\n-----\nRan 2 tests in 0.000s\n\nOK\n", Some(2));
    counts("F\n-----\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n", Some(1));
    counts("\n-----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", Some(0));
    counts("ss\n-----\nRan 2 tests in 0.000s\n\nOK (skipped=2)\n", Some(0));
    counts("Fs.\n-----\nRan 3 tests in 0.000s\n\nFAILED (failures=1, skipped=1)\n", Some(2));
}

#[test]
fn go_is_counted_only_when_it_tells() {
    counts(
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/sub\n--- FAIL: TestB (0.00s)\n    \
         --- FAIL: TestB/sub (0.00s)\n--- SKIP: TestC (0.00s)\nFAIL\nFAIL\texample.com/x\t0.002s\nFAIL\n",
        Some(3),
    );
    counts("ok  \texample.com/x\t0.002s\n", None);
    counts("ok  \texample.com/x\t(cached)\n?   \texample.com/y\t[no test files]\n", None);
    counts("?   \texample.com/x\t[no test files]\n?   \texample.com/y\t[no test files]\n", Some(0));
    counts(
        "testing: warning: no tests to run\nPASS\nok  \texample.com/x\t0.002s [no tests to run]\n",
        Some(0),
    );
    counts("--- SKIP: TestC (0.00s)\nPASS\nok  \texample.com/x\t0.002s\n", Some(0));
    counts("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/x\t0.002s\n", Some(1)); // without -v only failures tell
    counts(
        "# example.com/x\n./x.go:3:1: syntax error\nFAIL\texample.com/x [build failed]\n?   \texample.com/y\t[no test files]\n",
        None,
    );
}

#[test]
fn jest_is_counted_without_what_it_skipped() {
    counts(
        "PASS ./a.test.js\nTest Suites: 1 passed, 1 total\nTests:       1 failed, 2 passed, 3 total\n\
         Snapshots:   0 total\nTime:        0.4 s\nRan all test suites.\n",
        Some(3),
    );
    counts("Tests:       1 skipped, 1 todo, 2 passed, 4 total\n", Some(2));
    counts("Tests:       3 skipped, 3 total\nRan all test suites.\n", Some(0));
    counts("No tests found, exiting with code 1\n", Some(0));
    // A file that cannot be loaded is the work's fault, not a gate without tests.
    counts("Test Suites: 1 failed, 1 total\nTests:       0 total\n", None);
}

#[test]
fn vitest_is_counted_without_what_it_skipped() {
    counts(" Test Files  1 passed (1)\n      Tests  3 passed (3)\n   Start at  10:00:00\n", Some(3));
    counts("      Tests  1 failed | 2 passed (3)\n", Some(3));
    counts("      Tests  2 failed (2)\n", Some(2));
    counts("      Tests  1 passed | 2 skipped (3)\n", Some(1));
    counts("      Tests  2 skipped (2)\n", Some(0));
    counts("No test files found, exiting with code 1\n", Some(0));
}

#[test]
fn the_node_runner_is_counted_in_both_its_voices() {
    counts(
        "TAP version 13\nok 1 - a\n1..1\n# tests 3\n# suites 0\n# pass 2\n# fail 1\n# skipped 0\n",
        Some(3),
    );
    counts(
        "✔ a (0.4ms)\nℹ tests 2\nℹ suites 0\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n",
        Some(2),
    );
    counts("ℹ tests 0\nℹ suites 0\nℹ pass 0\n", Some(0));
    counts("# tests 2\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 2\n", Some(0));
}

#[test]
fn mocha_is_counted_by_what_passes_and_fails() {
    counts("  a\n    ✔ works\n\n  3 passing (5ms)\n  1 pending\n  2 failing\n\n  1) a\n", Some(5));
    counts("\n\n  0 passing (1ms)\n\n", Some(0));
}

#[test]
fn a_plain_tally_is_understood_in_any_language() {
    counts("3 passed, 1 failed\n", Some(4));
    counts("0 passed, 0 failed\n", Some(0));
}

#[test]
fn a_linter_or_a_build_is_no_suite_without_tests() {
    for output in [
        "",
        "warning: unused variable: `x`\n    Finished `dev` profile in 0.1s\n",
        "All checks passed!\n",
        "Ran eslint on 3 files\n",
        "Tests are in the folder tests (see README)\n",
        "Checked 3 files in 12ms. No fixes applied.\n",
        "# tests are described below\n",
        "12 packages in 0.3s\n",
        "make: Nothing to be done for 'all'.\n",
        "Success: no issues found in 3 source files\n",
        "the login test is passing again\n",
    ] {
        counts(output, None);
    }
}

#[test]
fn a_count_no_runner_could_mean_does_not_panic() {
    counts("99999999999999999999 passed, 1 failed\n", None);
    counts("test result: ok. 99999999999999999999 passed; 0 failed;\n", Some(0));
    let huge = u64::MAX;
    counts(&format!("{huge} passed, {huge} failed\n{huge} passed, 1 failed\n"), Some(u64::MAX));
}

#[test]
fn outcomes_have_words() {
    let check = |words: Expect| words.assert_eq(&CheckOutcome::ALL.map(CheckOutcome::word).join(", "));
    check(expect!["pass, flaky, pre-existing, fail, timeout, broken"]);
}
