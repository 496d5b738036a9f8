//! Mutations of changed lines: which are tried, for how long, and what follows from those that no test notices.

use landfall_model::gaming::{
    ChangedFile, Mutation, MutationBudget, MutationMode, MutationOutcome, MutationRun, MutationTrial,
    choose_mutations, could_not_build, mutation_outcome,
};
use landfall_model::gate::CheckOutcome;

use crate::test_protected::{change, trace};

/// A test that comes with the change.
fn new_test() -> ChangedFile {
    change("tests/test_new.py", "", "def test_new():\n    assert add(1, 2) == 3\n")
}

/// The lines that are tried in a file of the product, in order.
fn altered(path: &str, before: &str, after: &str) -> Vec<String> {
    let mutations = choose_mutations(&[change(path, before, after), new_test()], &[]);
    mutations.iter().map(|mutation| format!("{}: {}", mutation.line, mutation.after)).collect()
}

#[test]
fn changed_lines_of_every_ecosystem_are_altered() {
    for (path, before, after, expected) in [
        (
            "src/lib.rs",
            "fn a() {}\n",
            "fn a() {}\npub fn add(a: u32, b: u32) -> u32 { a + b }\n",
            &["2: pub fn add(a: u32, b: u32) -> u32 { a - b }"][..],
        ),
        ("calc.py", "", "def add(a, b):\n    return a + b\n", &["2: return a - b", "2: return None"]),
        (
            "calc.js",
            "",
            "function add(a, b) { return a + b; }\n",
            &["1: function add(a, b) { return a - b; }"],
        ),
        (
            "calc.js",
            "",
            "const isBig = (a) => {\n  return a >= 10;\n};\n",
            &["2: return a < 10;", "2: return undefined;", "2: return a >= 11;"],
        ),
        (
            "calc.go",
            "",
            "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
            &["4: return a - b"],
        ),
        (
            "greet.sh",
            "",
            "#!/bin/sh\necho \"Hello, $1\"\n",
            &["2: echo \"xHello, $1\"", "2: : \"Hello, $1\""],
        ),
        ("add.c", "", "int add(int a, int b) {\n  return a + b;\n}\n", &["2: return a - b;"]),
    ] {
        assert_eq!(altered(path, before, after), expected, "{path}");
    }
}

#[test]
fn what_no_test_is_about_is_left_alone() {
    for (path, before, after) in [
        (
            "src/lib.rs",
            "",
            "//! a == b\nuse a::b;\n#[cfg(test)]\nmod tests {\n    fn a() -> u32 { 1 + 1 }\n}\n",
        ),
        ("src/lib.rs", "fn a() -> u32 {\n    1 + 1\n}\n", "/// More.\nfn a() -> u32 {\n    1 + 1\n}\n"),
        ("calc.py", "", "\"\"\"One == two\n1 + 1\n\"\"\"\nimport a\n__version__ = \"1.2\"\n# 1 + 1\n"),
        ("calc.py", "", "raise ValueError(\"one\" + \"two\")\n"),
        ("README.md", "", "1 + 1\n"),
        ("vendor/a.js", "", "x = 1 + 1\n"),
        ("jest.config.js", "", "x = 1 + 1\n"),
        ("tests/helper.py", "", "x = 1 + 1\n"),
    ] {
        assert_eq!(altered(path, before, after), [""; 0], "{path}: {after}");
    }
}

#[test]
fn lines_that_only_moved_are_left_alone() {
    let code = "def add(a, b):\n    return a + b\n";
    let files =
        [change("calc.py", &format!("{code}x = 1\n"), "x = 1\n"), change("sums.py", "", code), new_test()];
    assert_eq!(choose_mutations(&files, &[]), []);
}

#[test]
fn a_change_without_tests_of_its_own_is_not_altered() {
    let product = change("calc.py", "", "def add(a, b):\n    return a + b\n");
    assert_eq!(choose_mutations(std::slice::from_ref(&product), &[]), []);
    let moved = change(
        "tests/test_new.py",
        "def test_new():\n    assert add(1, 2) == 3\n",
        "def test_new():\n\n    assert add(1, 2) == 3\n",
    );
    assert_eq!(choose_mutations(&[product, moved], &[]), [], "the same test");
}

#[test]
fn a_program_of_the_check_is_not_altered() {
    let inputs = trace("python3 check.py", &[("check.py", "x\n")]);
    let files = [change("check.py", "", "def add(a, b):\n    return a + b\n"), new_test()];
    assert_eq!(choose_mutations(&files, &inputs), []);
}

#[test]
fn files_take_turns_and_there_are_few() {
    let code = |name: &str| {
        change(
            name,
            "",
            "def f(a, b):\n    c = a * b\n    if a == b:\n        return c - a\n    return a + b\n",
        )
    };
    let mutations = choose_mutations(&[code("a.py"), code("b.py"), new_test()], &[]);
    let named: Vec<String> =
        mutations.iter().map(|mutation| format!("{}:{}", mutation.path, mutation.line)).collect();
    assert_eq!(named, ["a.py:3", "b.py:3", "a.py:5", "b.py:5"]);
}

#[test]
fn the_altered_file_is_whole_and_of_another_size() {
    let text = "def f(a, b):\n    return a + b\n\n\nx = 1\n";
    let mutations = choose_mutations(&[change("a.py", "", text), new_test()], &[]);
    let sizes: std::collections::BTreeSet<usize> =
        mutations.iter().map(|mutation| mutation.text.len()).collect();
    assert_eq!(sizes.len(), mutations.len(), "each of its own: {mutations:?}");
    assert!(!sizes.contains(&text.len()));
    let Mutation { text, before, .. } = &mutations[0];
    assert_eq!(before, "return a + b");
    assert!(
        text.starts_with("def f(a, b):\n    return a - b") && text.trim_end().ends_with("\n\n\nx = 1"),
        "{text}"
    );
}

fn run(outcomes: &[MutationOutcome]) -> MutationRun {
    let trial = |(at, outcome): (usize, &MutationOutcome)| MutationTrial {
        path: "calc.py".to_owned(),
        line: at as u64 + 1,
        before: "a + b".to_owned(),
        after: "a - b".to_owned(),
        outcome: *outcome,
    };
    let trials = outcomes.iter().enumerate().map(trial).collect();
    MutationRun { tests: vec!["tests/test_a.py: test_a".to_owned()], trials, took_ms: 5 }
}

#[test]
fn only_several_survivors_and_nothing_caught_are_a_finding() {
    use MutationOutcome::{Caught, Survived, Unbuilt};
    for (outcomes, is_finding) in [
        (&[Survived, Survived][..], true),
        (&[Survived, Unbuilt, Survived], true),
        (&[Survived], false),
        (&[Survived, Survived, Caught], false),
        (&[Unbuilt, Unbuilt], false),
        (&[], false),
    ] {
        assert_eq!(run(outcomes).is_finding(), is_finding, "{outcomes:?}");
        assert_eq!(MutationMode::Review.to_concern(&run(outcomes)).is_some(), is_finding);
        assert_eq!(MutationMode::Report.to_concern(&run(outcomes)), None);
    }
    assert_eq!(
        run(&[Survived, Survived]).summary_text(),
        "tests/test_a.py: test_a (no test fails with `a - b` in place of `a + b` at calc.py:1, or `a - b` in place of `a + b` \
         at calc.py:2)"
    );
}

#[test]
fn the_time_for_mutations_follows_from_that_of_the_check() {
    let total = |check_ms| MutationBudget::from_check_duration(check_ms).map(|budget| budget.total_ms);
    assert_eq!((total(100), total(10_000), total(60_000)), (Some(3_000), Some(20_000), None));
    let budget = MutationBudget::from_check_duration(10_000).expect("it is short enough");
    assert!(budget.allows_another(0) && budget.allows_another(11_000));
    assert!(!budget.allows_another(19_000) && !budget.allows_another(25_000));
    assert_eq!(MutationBudget::command_limit_ms(Some(1_000), 600_000), 10_000);
    assert_eq!(MutationBudget::command_limit_ms(Some(200_000), 600_000), 600_000);
    assert_eq!(MutationBudget::command_limit_ms(None, 600_000), 600_000, "it was copied from the base");
}

#[test]
fn only_a_command_with_tests_notices_a_mutation() {
    use MutationOutcome::{Caught, Unbuilt};
    for (outcome, with_tests, without_tests) in [
        (CheckOutcome::Pass, None, None),
        (CheckOutcome::Fail, Some(Caught), Some(Unbuilt)),
        (CheckOutcome::Timeout, Some(Caught), Some(Unbuilt)),
        (CheckOutcome::Broken, Some(Caught), Some(Unbuilt)),
    ] {
        assert_eq!(mutation_outcome(outcome, true, false), with_tests, "{outcome:?}");
        assert_eq!(mutation_outcome(outcome, false, false), without_tests, "{outcome:?}");
    }
    assert_eq!(mutation_outcome(CheckOutcome::Fail, true, true), Some(Unbuilt));
    assert_eq!(mutation_outcome(CheckOutcome::Timeout, true, true), Some(Caught));
}

#[test]
fn code_that_does_not_build_shows_nothing_of_the_tests() {
    assert!(could_not_build("error: could not compile `a` (lib) due to 1 previous error"));
    assert!(could_not_build("FAIL\tcalc [build failed]"));
    assert!(!could_not_build("test adds ... FAILED"));
}
