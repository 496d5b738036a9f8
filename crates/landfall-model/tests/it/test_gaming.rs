//! Signs that a change bends the rules it is judged by, and changes that only look like it.

use expect_test::{Expect, expect};
use landfall_model::gaming::{BaseTestRun, ChangedFile, find_concerns, is_telling};
use landfall_model::gate::CheckOutcome;

fn file(path: &str, added: &[&str], removed: &[&str]) -> ChangedFile {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    ChangedFile {
        path: path.to_owned(),
        added: lines(added),
        removed: lines(removed),
        ..ChangedFile::default()
    }
}

fn deleted(path: &str, removed: &[&str]) -> ChangedFile {
    ChangedFile { deleted: true, ..file(path, &[], removed) }
}

fn check<const N: usize>(files: [ChangedFile; N], expect: Expect) {
    let found: Vec<_> =
        find_concerns(&files, &[], None, None, None).iter().map(ToString::to_string).collect();
    expect.assert_eq(&found.join("\n"));
}

fn clean<const N: usize>(files: [ChangedFile; N]) {
    assert_eq!(find_concerns(&files, &[], None, None, None), [], "{files:?}");
}

#[test]
fn the_rules_themselves_want_an_eye() {
    check(
        [
            file("landfall.toml", &["x"], &[]),
            file(".github/workflows/ci.yml", &["x"], &[]),
            file(".landfall/flows/loop.toml", &["x"], &[]),
            deleted(".ci/run", &["cargo test"]),
        ],
        expect![[r#"
            changes a protected path: landfall.toml
            changes a protected path: .github/workflows/ci.yml
            changes a protected path: .landfall/flows/loop.toml
            changes a protected path: .ci/run"#]],
    );
    check([file("LANDFALL.toml", &["x"], &[])], expect!["changes a protected path: LANDFALL.toml"]);
    clean([file("docs/landfall.toml", &["x"], &[]), file("src/ci.rs", &["x"], &[])]);
}

#[test]
fn rules_behind_a_link_want_an_eye() {
    let link = |path| file(path, &["elsewhere"], &[]);
    check(
        [link(".landfall"), link(".github"), link(".github/workflows"), link(".circleci"), link(".ci")],
        expect![[r#"
            changes a protected path: .landfall
            changes a protected path: .github
            changes a protected path: .github/workflows
            changes a protected path: .circleci
            changes a protected path: .ci"#]],
    );
    clean([file(".git", &["x"], &[]), file(".github/CODEOWNERS", &["x"], &[]), file(".cirrus", &["x"], &[])]);
}

#[test]
fn a_deleted_test_file_wants_an_eye() {
    check([deleted("tests/a.rs", &["#[test]", "fn a() {}"])], expect!["deletes a test file: tests/a.rs"]);
    check([deleted("tests/data.bin", &[])], expect!["deletes a test file: tests/data.bin"]);
    check(
        [deleted("tests/data.bin", &[]), file("src/a.rs", &[], &["x"])],
        expect!["deletes a test file: tests/data.bin"],
    );
    check([deleted("src/old.rs", &["fn old() {}", "#[test]"])], expect!["removes tests: src/old.rs (−1 +0)"]);
    clean([deleted("src/old.rs", &["fn old() {}"])]);
}

#[test]
fn a_test_that_is_switched_off_wants_an_eye() {
    for (path, line) in [
        ("src/lib.rs", "    #[ignore]"),
        ("src/lib.rs", "    #[ignore = \"later\"]"),
        ("test_a.py", "@pytest.mark.skip(reason=\"later\")"),
        ("test_a.py", "@pytest.mark.xfail"),
        ("test_a.py", "    @unittest.skip(\"later\")"),
        ("a_test.go", "\tt.Skip(\"later\")"),
        ("a.test.ts", "  it.skip('works', () => {"),
        ("a.test.ts", "  test.only('other', () => {"),
        ("a.spec.js", "xit('works', () => {"),
        ("ATest.java", "    @Disabled"),
    ] {
        let found = find_concerns(&[file(path, &[line], &[])], &[], None, None, None);
        let words: Vec<_> = found.iter().map(|concern| concern.code.word()).collect();
        assert_eq!(words, ["test-skipped"], "{path}: {line}");
    }
}

#[test]
fn a_test_that_is_gone_wants_an_eye_whatever_the_language() {
    for (path, line) in [
        ("src/lib.rs", "    #[test]"),
        ("src/lib.rs", "    #[tokio::test]"),
        ("src/lib.rs", "    #[rstest]"),
        ("test_a.py", "def test_a():"),
        ("test_a.py", "    async def test_a(self):"),
        ("a_test.go", "func TestA(t *testing.T) {"),
        ("a.test.ts", "  it('works', () => {"),
        ("a.test.ts", "  test(\"works\", () => {"),
        ("a.test.ts", "  it.each([1, 2])('works', () => {"),
        ("ATest.kt", "    @Test"),
        ("a_test.exs", "  test \"works\" do"),
    ] {
        let found = find_concerns(&[file(path, &["x"], &[line])], &[], None, None, None);
        let words: Vec<_> = found.iter().map(|concern| concern.code.word()).collect();
        assert_eq!(words, ["test-removed"], "{path}: {line}");
    }
}

#[test]
fn fewer_tests_than_on_the_base_want_an_eye() {
    let words = |now, base| -> Vec<String> {
        find_concerns(&[], &[], now, base, None).iter().map(ToString::to_string).collect()
    };
    assert_eq!(words(Some(3), Some(4)), ["runs fewer tests than the base: 3 ran, 4 on the base"]);
    assert!(words(Some(4), Some(4)).is_empty());
    assert!(words(Some(5), Some(4)).is_empty());
    assert_eq!(
        words(None, Some(4)),
        ["runs fewer tests than the base: none were told of, 4 ran on the base"]
    );
    assert!(words(None, Some(0)).is_empty());
    assert!(words(None, None).is_empty());
    assert!(words(Some(4), None).is_empty());
}

#[test]
fn a_weakened_test_wants_an_eye() {
    check(
        [file(
            "tests/a.rs",
            &["    let _ = add(1, 2);"],
            &["    assert_eq!(add(1, 2), 3);", "    assert!(ok);"],
        )],
        expect!["removes tests: assertions in tests/a.rs (−2 +0)"],
    );
    check(
        [file("test_a.py", &["    pass"], &["    assert add(1, 2) == 3"])],
        expect!["removes tests: assertions in test_a.py (−1 +0)"],
    );
    check(
        [file("a.test.ts", &[], &["  expect(add(1, 2)).toBe(3)"])],
        expect!["removes tests: assertions in a.test.ts (−1 +0)"],
    );
}

#[test]
fn a_test_that_moves_within_the_change_is_no_concern() {
    let test = ["#[test]", "fn adds() {", "    assert_eq!(add(1, 2), 3);", "}"];
    clean([file("tests/a.rs", &[], &test), file("tests/b.rs", &test, &[])]);
    clean([file("tests/a.rs", &[], &test), file("src/lib.rs", &test, &[])]);
    clean([deleted("tests/a.rs", &test), file("tests/all/a.rs", &test, &[])]);
    clean([
        deleted("tests/common.rs", &["pub fn help() {}"]),
        file("tests/help/mod.rs", &["pub fn help() {}"], &[]),
    ]);
    let skipped = ["#[ignore]", "#[test]"];
    clean([file("tests/a.rs", &[], &skipped), file("tests/b.rs", &skipped, &[])]);
}

#[test]
fn a_change_that_adds_tests_may_also_remove_some() {
    clean([file(
        "test_a.py",
        &["def test_b():", "    assert b()", "def test_c():", "    assert c()"],
        &["def test_a():", "    assert a()"],
    )]);
}

#[test]
fn tests_that_become_one_are_not_removed() {
    let three = ["def test_a():", "    assert f(1)", "def test_b():", "    assert f(2)"];
    let file = file("test_a.py", &["@parametrize", "def test_all(x):", "    assert f(x)"], &three);
    let run = |outcome| BaseTestRun {
        files: vec!["test_a.py".to_owned()],
        outcome,
        failing: Vec::new(),
        took_ms: 1,
    };
    let found = |now: Option<u64>, run: Option<&BaseTestRun>| {
        !find_concerns(std::slice::from_ref(&file), &[], now, Some(2), run).is_empty()
    };
    assert!(!found(Some(2), Some(&run(CheckOutcome::Pass))), "as many run, and those of the base pass");
    assert!(found(Some(2), None));
    assert!(found(Some(2), Some(&run(CheckOutcome::Fail))));
    assert!(found(Some(1), Some(&run(CheckOutcome::Pass))));
    assert!(found(None, Some(&run(CheckOutcome::Pass))));
}

#[test]
fn code_that_only_looks_like_a_test_is_no_concern() {
    clean([file("src/lib.rs", &[], &["    assert!(index < len);", "    assert_ne!(a, b);"])]);
    clean([file("src/parse.py", &[], &["    assert isinstance(x, str)", "def testify():"])]);
    clean([file("src/emit.rs", &[], &["    it(1);", "    test(2);"])]);
    clean([file("src/run.go", &[], &["func Testable() bool {"])]);
    clean([file("README.md", &[], &["test(your code)", "it('s) fine"])]);
    clean([file("docs/skip.md", &["xit(1)", "@Disabled"], &[])]);
}

#[test]
fn what_was_removed_is_named_by_file() {
    check(
        [
            file("tests/a.rs", &[], &["#[test]", "#[test]"]),
            file("tests/b.rs", &["#[test]"], &[]),
            file("tests/c.rs", &[], &["#[test]"]),
        ],
        expect!["removes tests: tests/a.rs (−2 +0), tests/c.rs (−1 +0)"],
    );
}

#[test]
fn only_lines_that_can_tell_of_tests_are_asked_for() {
    for path in ["src/lib.rs", "a.py", "a_test.go", "web/a.ts", "A.java", "tests/run.sh", "tests/data.json"] {
        assert!(is_telling(path), "{path}");
    }
    for path in ["picture.png", "Cargo.lock", "docs/guide.md", "data/table.json"] {
        assert!(!is_telling(path), "{path}");
    }
}
