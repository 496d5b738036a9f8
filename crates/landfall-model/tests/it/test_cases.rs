//! The tests in a file, one by one: which of them can fail, and which lost what they asserted.

use expect_test::{Expect, expect};
use landfall_model::gaming::{ChangedFile, count_changed, find_concerns, test_cases, with_tests_of_base};

fn check(path: &str, text: &str, expect: Expect) {
    let words = test_cases(path, text)
        .iter()
        .map(|case| {
            let mark = if case.can_fail {
                ""
            } else if case.is_hollow {
                " hollow"
            } else {
                " cannot fail"
            };
            format!("{} {}{mark}", case.name, case.assertions.len())
        })
        .collect::<Vec<_>>();
    expect.assert_eq(&words.join("\n"));
}

fn change(path: &str, before: &str, after: &str) -> ChangedFile {
    let lines = |text: &str, other: &str| {
        let is_new = |line: &&str| !other.lines().any(|known| known == *line);
        text.lines().filter(is_new).map(str::to_owned).collect()
    };
    ChangedFile {
        path: path.to_owned(),
        created: before.is_empty(),
        deleted: after.is_empty(),
        added: lines(after, before),
        removed: lines(before, after),
        before: Some(before.to_owned()),
        after: Some(after.to_owned()),
    }
}

fn check_change<const N: usize>(files: [ChangedFile; N], expect: Expect) {
    let found = find_concerns(&files, &[], None, None, None);
    expect.assert_eq(&found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}

#[test]
fn tests_are_told_apart_in_every_language() {
    check(
        "tests/a.rs",
        "#[test]\nfn a() {\n    assert_eq!(f(\"{\"), 1);\n}\n#[test]\n#[should_panic]\nfn b() { f(); }\n#[test]\nfn c() {}\n#[test]\nfn d() { assert!(true); }\n#[test]\nfn e() { f().unwrap(); }\n",
        expect![[r#"
            a 1
            b 0
            c 0 hollow
            d 0 hollow
            e 0"#]],
    );
    check(
        "test_a.py",
        "class A(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)\n        self.assertTrue(g())\n\n    def test_b(self):\n        pass\n\ndef test_c(): assert f()\n\ndef test_d():\n    return\n    assert f()\n\ndef test_e():\n    try:\n        assert f()\n    except Exception:\n        pass\n",
        expect![[r#"
            A.test_a 2
            A.test_b 0 hollow
            test_c 1
            test_d 0 hollow
            test_e 0 cannot fail"#]],
    );
    check(
        "a_test.go",
        "func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Errorf(\"no\")\n\t}\n}\n\nfunc TestB(t *testing.T) {}\n",
        expect![[r#"
            TestA 1
            TestB 0 hollow"#]],
    );
    check(
        "a.test.js",
        "test('a (one)', () => {\n  assert.strictEqual(f(), 1);\n});\nit(\"b\", async () => {});\nit('c', () => expect(f()).toBe(1));\nit('d', () => { expect(true).toBe(true); });\n",
        expect![[r#"
            a (one) 1
            b 0 hollow
            c 1
            d 0 hollow"#]],
    );
    check("tests/a.sh", "[ -e x ] || exit 1\n# [ -e y ]\n", expect!["a.sh 1"]);
}

const TWO: &str =
    "def test_a():\n    assert f() == 1\n    assert g() == 2\n\n\ndef test_b():\n    assert h() == 3\n";

#[test]
fn a_test_that_lost_its_assertions_is_named() {
    check_change(
        [change("test_a.py", TWO, &TWO.replace("    assert h() == 3\n", "    h()\n    assert True\n"))],
        expect!["empties tests: test_a.py: test_b (1 assertions before, none now)"],
    );
    // Another test that gains one does not make up for it.
    check_change(
        [change("test_a.py", TWO, &(TWO.replace("    assert g() == 2\n", "") + "    assert 1 < len(h())\n"))],
        expect!["empties tests: test_a.py: test_a (2 assertions before, 1 now; gone: assert g() == 2)"],
    );
    check_change(
        [change("test_a.py", TWO, "def test_c():\n    pass\n\n\ndef test_d():\n    pass\n")],
        expect![[r#"
            empties tests: test_a.py: test_a, test_a.py: test_b (gone; the tests that came in their place assert nothing)
            empties tests: test_a.py: test_c (it cannot fail)
            empties tests: test_a.py: test_d (it cannot fail)"#]],
    );
}

#[test]
fn honest_changes_of_tests_are_not_named() {
    for after in [
        TWO.replace("test_b", "test_better_name"),
        TWO.replace("== 3", "== 4"), // the tests of the base see that
        TWO.replace("    assert g() == 2\n", "") + "\n\ndef test_g():\n    assert g() == 2\n",
        TWO.replace("    assert h() == 3\n", "    check(h(), 3)\n"),
        TWO.to_owned() + "\n\ndef test_smoke():\n    main()\n",
        TWO.replace(
            "    assert f() == 1\n    assert g() == 2\n",
            "    assert (f(), g()) == (1, 2)\n    assert f() < g()\n",
        ),
    ] {
        assert_eq!(find_concerns(&[change("test_a.py", TWO, &after)], &[], None, None, None), [], "{after}");
    }
    let moved = change("tests/unit/test_a.py", "", TWO);
    check_change([change("test_a.py", TWO, ""), moved], expect![[""]]);
}

#[test]
fn tests_and_assertions_are_counted_before_and_after() {
    let counts = count_changed(&[change("test_a.py", TWO, &TWO.replace("    assert g() == 2\n", ""))]);
    assert_eq!((counts.tests_before, counts.tests_after), (2, 2));
    assert_eq!((counts.assertions_before, counts.assertions_after), (3, 2));
}

#[test]
fn unit_tests_of_the_base_take_the_place_of_those_of_the_work() {
    let file = |code: &str, result: u32| {
        format!(
            "fn f() -> u32 {{ {code} }}\n\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{ assert_eq!(super::f(), {result}); }}\n}}\n"
        )
    };
    assert_eq!(with_tests_of_base("src/a.rs", &file("1", 1), &file("2", 2)), Some(file("2", 1)));
    assert_eq!(with_tests_of_base("src/a.rs", &file("1", 1), &file("2", 1)), None, "they are the same");
    assert_eq!(with_tests_of_base("src/a.py", &file("1", 1), &file("2", 2)), None);
    let gone = with_tests_of_base("src/a.rs", &file("1", 1), "fn f() -> u32 { 2 }\n");
    assert!(gone.is_some_and(|text| text.contains("assert_eq!(super::f(), 1)")));
}

const TESTS: &str = "mod tests {\n    #[test]\n    fn a() { assert_eq!(super::f(), 1); }\n}\n";

/// The tests of the base are in what is put back, and those of the work are not.
fn check_put_back(base: &str, work: &str) {
    let text =
        with_tests_of_base("src/a.rs", base, work).unwrap_or_else(|| panic!("nothing is put back:\n{work}"));
    assert!(text.contains("assert_eq!(super::f(), 1)") && !text.contains("super::f(), 2"), "{text}");
}

#[test]
fn unit_tests_are_found_behind_attributes_and_decoys() {
    let weak = TESTS.replace(", 1)", ", 2)");
    for head in [
        "#[cfg(test)]\n#[allow(clippy::unwrap_used)]\n",
        "#[allow(unused)] #[cfg( test )]\n// Why.\n",
        "#[cfg(all(test, unix))]\npub ",
        "#[cfg(test)]\npub(crate) ",
        "#[cfg(test)] ",
        "",
    ] {
        let code = "fn f() -> u32 { 1 }\n\n";
        check_put_back(&format!("{code}{head}{TESTS}"), &format!("{code}{head}{weak}"));
        let base = format!("{code}#[cfg(test)]\n{TESTS}");
        check_put_back(&base, &format!("{code}/*\n#[cfg(test)]\n{TESTS}*/\n{head}{weak}"));
        check_put_back(
            &base,
            &format!("{code}const X: &str = r#\"\n#[cfg(test)]\n{TESTS}\"#;\n{head}{weak}"),
        );
        check_put_back(
            &base,
            &format!("macro_rules! x {{ () => {{\n#[cfg(test)]\n{TESTS}}} }}\n{head}{weak}"),
        );
        check_put_back(&base, &format!("#[cfg(any())]\n#[cfg(test)]\n{TESTS}{head}{weak}"));
    }
}

#[test]
fn several_modules_of_tests_come_back_by_name() {
    let second = "#[cfg(test)]\nmod more {\n    #[test]\n    fn b() { assert!(super::f() > 0); }\n}\n";
    let base = format!("fn f() {{}}\n#[cfg(test)]\n{TESTS}{second}");
    check_put_back(&base, &base.replace(", 1)", ", 2)"));
    // A second module comes: it stays, and the first one is not appended a second time.
    let one = format!("fn f() {{}}\n#[cfg(test)]\n{TESTS}");
    assert_eq!(with_tests_of_base("src/a.rs", &one, &base), None, "the tests of the base are as they were");
    // The module moves to a file of its own: it comes back in place of its declaration.
    let moved = "fn f() {}\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(with_tests_of_base("src/a.rs", &one, moved), Some(one.clone()));
    let elsewhere = "fn f() {}\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\n";
    assert_eq!(with_tests_of_base("src/a.rs", &one, elsewhere), Some(one));
}

#[test]
fn a_hostile_file_is_read_to_its_end() {
    for text in [
        "#[test]\n".repeat(50_000),
        "#[test]\nfn a() {".repeat(5_000),
        "test('".repeat(20_000),
        "\"".repeat(100_000),
        format!("{}{}", " ".repeat(150_000), "[]".repeat(100_000)),
        "r#".repeat(100_000),
        "/*".repeat(100_000),
    ] {
        for path in ["tests/a.rs", "a.test.js", "test_a.py", "a_test.go"] {
            assert!(test_cases(path, &text).len() <= 5_000, "{path}");
            assert_eq!(with_tests_of_base("src/a.rs", &text, "/* r#\""), None, "{path}");
        }
    }
}
