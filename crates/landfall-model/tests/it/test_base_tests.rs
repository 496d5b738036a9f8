//! The tests of the base against the work: which files are put back, and which tests a failure names.

use landfall_model::gaming::{
    BaseTestMode, BaseTestRun, ChangedFile, TestRestoration, base_test_run, commands_with_tests,
    failing_tests, plan_restorations, unrestored_tests,
};
use landfall_model::gate::CheckOutcome;

fn changed(path: &str) -> ChangedFile {
    ChangedFile { path: path.to_owned(), ..ChangedFile::default() }
}

fn paths(files: &[ChangedFile]) -> Vec<String> {
    let word = |restore: &TestRestoration| match restore {
        TestRestoration::FromBase { path } => format!("base {path}"),
        TestRestoration::Remove { path } => format!("remove {path}"),
        TestRestoration::Text { path, .. } => format!("text {path}"),
    };
    plan_restorations(files, true).iter().map(word).collect()
}

#[test]
fn changed_and_deleted_tests_come_back_and_new_ones_go() {
    let created = |path: &str| ChangedFile { created: true, ..changed(path) };
    let deleted = |path: &str| ChangedFile { deleted: true, ..changed(path) };
    assert_eq!(
        paths(&[changed("tests/a.rs"), created("tests/b.rs"), deleted("a_test.go"), changed("src/lib.rs")]),
        ["base tests/a.rs", "remove tests/b.rs", "base a_test.go"]
    );
    assert_eq!(
        paths(&[created("tests/b.rs"), changed("src/lib.rs")]),
        [""; 0],
        "no test of the base changed"
    );
    let with = |path: &str, text: &str| ChangedFile { after: Some(text.to_owned()), ..created(path) };
    // A test that comes runs in one process with the others, whatever it looks like. In Cargo it is a program of its own.
    for file in [
        with("tests/test_b.py", "import a\n\n\ndef test_b():\n    a.x = 1\n"),
        with("tests/test_b.py", "import a\n\na.add = lambda *args: 3\n"),
        with("test/b.test.js", "require('../calc').add = () => 3;\n"),
        with("b_test.go", "var _ = patch()\n"),
        with("tests/__init__.py", ""),
        with("b_test.go", "func init() {\n"),
        with("tests/aaa.sh", "assert() { :; }\n"),
    ] {
        assert_eq!(
            paths(std::slice::from_ref(&file)),
            [format!("remove {}", file.path)],
            "it may alter the other tests"
        );
    }
    // Data that comes may belong to the product, and alters no test by itself.
    assert_eq!(
        paths(&[created("fixtures/names.json"), created("tests/a.snap"), created("tests/test_b.py")]),
        ["remove tests/test_b.py"]
    );
    assert_eq!(paths(&[changed("xtask/src/test.rs")]), [""; 0], "a module that is only called so");
    assert_eq!(paths(&[changed("tests/README.md")]), [""; 0]);
    for path in [
        "src/__snapshots__/a.snap",
        "src/snapshots/a.snap",
        "src/tests/expected.json",
        "golden/a.txt",
        "test/fixtures/a.json",
        "test-add.js",
        "add-test.js",
        "testcalc.py",
    ] {
        assert_eq!(paths(&[changed(path)]), [format!("base {path}")]);
    }
    for path in ["src/testing.py", "src/testutils.py", "src/attest-all.js", "latest.js", "contest.py"] {
        assert_eq!(paths(&[changed(path)]), [""; 0], "{path}");
    }
}

#[test]
fn plain_new_tests_start_no_run_of_those_of_the_base() {
    let check = |path: &str, text: &str, is_run: bool| {
        let file = ChangedFile {
            created: true,
            after: Some(text.to_owned()),
            ..ChangedFile { path: path.to_owned(), ..ChangedFile::default() }
        };
        assert_eq!(!plan_restorations(&[file], false).is_empty(), is_run, "{path}: {text}");
    };
    let python = "import unittest\n\nfrom calc import add\n\nCASES = [(1, 2, 3)]\n\n\nclass Sums(unittest.TestCase):\n    \
                  def setUp(self):\n        self.start = 0\n\n    def test_adds(self):\n        for a, b, c in CASES:\n            \
                  total = add(\n                a,\n                b=b,\n            )\n            self.assertEqual(total, c)\n\n\n\
                  if __name__ == \"__main__\":\n    unittest.main()\n";
    check("tests/test_sums.py", python, false);
    check("tests/test_sums.py", &python.replace("self.start = 0", "import calc; calc.add = max"), true);
    check("tests/test_sums.py", &python.replace("CASES = [(1, 2, 3)]", "CASES = load()"), true);
    check("tests/test_sums.py", &python.replace("self.start = 0", "setattr(calc, name, max)"), true);
    check("tests/test_sums.py", &python.replace("total = add(", "c = calc; c.add = max; total = add("), true);
    let script = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = \
                  require('../calc');\n\ntest('adds', () => {\n  const cases = [[1, 2, 3]];\n  for (let i = 0; i < \
                  cases.length; i++) {\n    const [a, b, c] = cases[i];\n    assert.strictEqual(add(a, b), c);\n  }\n  let total;\n  total = add(1, 2);\n});\n";
    check("test/sums.test.js", script, false);
    check("test/sums.test.js", &script.replace("let total;", "let total; calc.add = add;"), true);
    check("test/sums.test.js", "test('x', () => { require('../calc').add = () => 3; });\n", true);
    check("test/sums.test.js", "beforeEach(() => reset());\n", true);
    let go = "package calc\n\nimport \"testing\"\n\nfunc TestSums(t *testing.T) {\n\tcases := []struct {\n\t\ta, b int\n\t}{\n\t\t{1, \
              2},\n\t}\n\tfor _, c := range cases {\n\t\tif got := Add(c.a, c.b); got != 3 {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t}\n}\n";
    check("sums_test.go", go, false);
    check("sums_test.go", &go.replace("\tcases :=", "\tadd = nil\n\tcases :="), true);
    check("sums_test.go", &format!("{go}\nvar _ = patch()\n"), true);
    check("sums_test.go", &format!("//go:build none\n{go}"), true);
    check("tests/sums.sh", "out=$(sh greet.sh)\n[ \"$out\" = hello ] || exit 1\n", false);
    check("tests/sums.bats", "@test \"x\" {\n  true\n}\n", true);
}

#[test]
fn tests_that_cannot_be_put_back_are_named() {
    let bare = |result: u32| format!("fn f() {{}}\n#[test]\nfn a() {{ assert_eq!(f(), {result}); }}\n");
    let file = |before: &str, after: &str| ChangedFile {
        before: Some(before.to_owned()),
        after: Some(after.to_owned()),
        ..changed("src/lib.rs")
    };
    let told = |files: &[ChangedFile]| {
        unrestored_tests(files, BaseTestMode::Review).map(|concern| concern.to_string())
    };
    assert_eq!(
        told(&[file(&bare(1), &bare(2))]).as_deref(),
        Some("fails tests of the base: src/lib.rs: a (changed, and not run as the base has it)")
    );
    assert_eq!(unrestored_tests(&[file(&bare(1), &bare(2))], BaseTestMode::Report), None);
    assert_eq!(told(&[file(&bare(1), &format!("{}fn g() {{}}\n", bare(1)))]), None);
    let doc = |result: u32| format!("/// ```\n/// assert_eq!(f(), {result});\n/// ```\nfn f() {{}}\n");
    assert_eq!(
        told(&[file(&doc(1), &doc(2))]).as_deref(),
        Some(
            "fails tests of the base: src/lib.rs: assert_eq!(f(), 1); (changed, and not run as the base has it)"
        )
    );
    let moved = ChangedFile { before: None, created: true, after: Some(doc(1)), ..changed("src/b.rs") };
    assert_eq!(told(&[file(&doc(1), ""), moved]), None, "it moved");
    let tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(1, 1); }\n}\n";
    assert_eq!(told(&[file(tests, &tests.replace("1, 1", "1, 2"))]), None, "the module is put back");
}

#[test]
fn unit_tests_in_a_rust_file_come_back_by_themselves() {
    let tests = |result: u32| {
        format!("#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{ assert_eq!(1, {result}); }}\n}}\n")
    };
    let file = ChangedFile { before: Some(tests(1)), after: Some(tests(2)), ..changed("src/lib.rs") };
    assert_eq!(
        plan_restorations(&[file], false),
        [TestRestoration::Text { path: "src/lib.rs".to_owned(), text: tests(1) }]
    );
}

#[test]
fn failing_tests_are_named_by_every_runner() {
    for (line, name) in [
        ("test tests::adds ... FAILED", "tests::adds"),
        ("---- tests::adds stdout ----", "tests::adds"),
        ("        FAIL [   0.004s] calc::sums adds", "calc::sums adds"),
        ("FAILED tests/test_a.py::test_add - assert 2 == 3", "tests/test_a.py::test_add"),
        ("FAIL: test_add (test_a.Sums.test_add)", "test_add"),
        ("ERROR: test_a (unittest.loader._FailedTest.test_a)", "test_a"),
        ("--- FAIL: TestAdd (0.00s)", "TestAdd"),
        ("    --- FAIL: TestAdd/one (0.00s)", "TestAdd/one"),
        ("not ok 2 - adds nothing # time=1ms", "adds nothing"),
        ("\u{1b}[31m✖ adds (0.51ms)\u{1b}[39m", "adds"),
        ("  ● sums › adds", "sums › adds"),
        ("FAIL greets_by_name", "greets_by_name"),
    ] {
        assert_eq!(failing_tests(line), [name], "{line}");
    }
    for line in [
        "FAILED (failures=1)",
        "FAIL\tcalc\t0.002s",
        "FAIL",
        "✖ failing tests:",
        "ok 1 - adds",
        "error: 1 test failed",
    ] {
        assert_eq!(failing_tests(line), [""; 0], "{line}");
    }
}

#[test]
fn a_failure_asks_for_a_review_that_names_the_test() {
    let restore = [TestRestoration::FromBase { path: "tests/a.py".to_owned() }];
    let run = |outcome, failing: &[&str]| {
        let failing = failing.iter().map(|name| (*name).to_owned()).collect();
        base_test_run(&restore, &[changed("tests/a.py")], outcome, failing, None, 7)
    };
    let told =
        |run: &BaseTestRun, mode: BaseTestMode| mode.to_concern(run).map(|concern| concern.to_string());
    let red = run(CheckOutcome::Fail, &["test_add"]);
    let words = "fails tests of the base: test_add (the version on the base of tests/a.py)";
    assert_eq!(told(&red, BaseTestMode::Review).as_deref(), Some(words));
    assert_eq!(told(&red, BaseTestMode::Report), None, "the certificate says so");
    assert_eq!(told(&run(CheckOutcome::Pass, &[]), BaseTestMode::Review), None);
    assert_eq!(told(&run(CheckOutcome::Flaky, &["test_add"]), BaseTestMode::Review), None);
    let unnamed = run(CheckOutcome::Broken, &[]);
    let words =
        "fails tests of the base: tests/a.py (the version on the base of tests/a.py, which could not run)";
    assert_eq!(told(&unnamed, BaseTestMode::Review).as_deref(), Some(words));
}

#[test]
fn a_failure_without_the_new_tests_names_a_test_or_is_about_something_else() {
    let restore = [TestRestoration::Remove { path: "tests/b.py".to_owned() }];
    let told = |failing: &[&str], tests| {
        let failing = failing.iter().map(|name| (*name).to_owned()).collect();
        let run = base_test_run(&restore, &[changed("tests/b.py")], CheckOutcome::Fail, failing, tests, 7);
        BaseTestMode::Review.to_concern(&run).map(|concern| concern.to_string())
    };
    let words = "fails tests of the base: test_add (without the test files that the change adds)";
    assert_eq!(told(&["test_add"], Some(3)).as_deref(), Some(words));
    assert_eq!(told(&[], Some(3)), None, "all tests ran and none is named: too little is covered, perhaps");
    let words = "fails tests of the base: no test is named (without the test files that the change adds)";
    assert_eq!(told(&[], None).as_deref(), Some(words));
}

#[test]
fn only_commands_that_count_tests_show_what_tests_say() {
    let counts = |tests: &[Option<u64>]| commands_with_tests(tests.iter().copied());
    assert_eq!(counts(&[Some(3), None, Some(1)]), [true, false, true]);
    assert_eq!(counts(&[None, None]), [true, true], "which of them run tests cannot be told");
}
