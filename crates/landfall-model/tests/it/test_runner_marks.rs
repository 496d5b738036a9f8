//! Code that reaches into the test runner, and code that only looks like it.

use landfall_model::gaming::{ChangedFile, find_concerns};

use crate::test_protected::{change, trace};

fn words(path: &str, text: &str) -> Vec<&'static str> {
    let found = find_concerns(&[change(path, "", &format!("{text}\n"))], &[], None, None, None);
    found.iter().map(|concern| concern.code.word()).collect()
}

fn check_marks(path: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(words(path, text), ["runner-patched"], "{path}: {text}");
    }
}

fn check_honest(path: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(words(path, text), [""; 0], "{path}: {text}");
    }
}

#[test]
fn python_that_reaches_into_the_runner_is_shown() {
    check_marks(
        "calc.py",
        &[
            "import unittest",
            "import os, unittest as u",
            "import  _pytest.runner",
            "from unittest import TestCase",
            "unittest.TestCase.assertEqual = lambda *a: None",
            "u = __import__('unittest')\nu.TestCase.assertEqual = None",
            "if 'pytest' in sys.modules:",
            "if \"unittest\"  in  sys . modules:",
            "setattr(unittest.TestCase, 'assertEqual', f)",
            "import atexit, os\natexit.register(os._exit, 0)",
            "from os import _exit\nimport atexit\natexit.register(_exit, 0)",
            "if os.environ.get('PYTEST_VERSION'):",
            "if os.environ.get('npm_lifecycle_event') == 'test':",
            "os.execvp('true', ['true'])",
        ],
    );
    check_marks("test_calc.py", &["def load_tests(loader, tests, pattern):", "__test__=False"]);
    check_honest(
        "calc.py",
        &[
            "# import unittest",
            "import collections",
            "import os, unittestlike",
            "atexit.register(close)",
            "x = _exited",
        ],
    );
    check_honest("test_calc.py", &["import unittest", "import os, unittest as u"]);
    check_honest("src/testing.py", &["import pytest\nimport unittest"]);
    check_honest("cli.py", &["os.execvp(argv[0], argv)"]);
}

#[test]
fn scripts_that_reach_into_the_runner_are_shown() {
    check_marks(
        "calc.js",
        &[
            "assert.strictEqual = () => {};",
            "assert . strictEqual=() => {};",
            "require('assert').strictEqual = () => {};",
            "require(\"node:assert/strict\").equal = () => {};",
            "const a = require('assert');\na.strictEqual = () => {};",
            "import a from 'node:assert';\na.strictEqual = () => {};",
            "import * as a from 'assert';\na['equal'] = () => {};",
            "const { strict: s } = require('assert');\ns.equal = () => {};",
            "for (const name of Object.keys(assert)) assert[name] = () => {};",
            "Object.assign(require('node:assert'), { equal() {} });",
            "const a = require('assert');\nObject.defineProperty(a, 'equal', {});",
            "process.on('exit', () => process.exit(0));",
            "process.once(\"beforeExit\", () => { process.exitCode=0; });",
            "process.exitCode=0;",
            "process . exitCode = 0",
            "if (process.env.NODE_TEST_CONTEXT) {",
            "if (process.env.npm_lifecycle_event === 'test') {",
        ],
    );
    check_honest(
        "calc.js",
        &[
            "const assert = require('node:assert');",
            "assert.ok(a === b);",
            "const same = assert.equal;",
            "items.forEach((test) => { test.done = true; });",
            "process.on('exit', () => { close(); });",
            "const a = require('./a');\na.size = 3;",
        ],
    );
    check_honest("bin/calc.js", &["process.exitCode = 0;", "process.exit(0);"]);
    check_honest("calc.test.js", &["const test = require('node:test');"]);
}

#[test]
fn go_that_reaches_into_the_runner_is_shown() {
    check_marks(
        "calc.go",
        &[
            "import \"testing\"",
            "import t \"testing\"",
            "import (\n\tt \"testing\"\n)",
            "os.Exit(0)",
            "syscall.Exit(0)",
            "if flag.Lookup(\"test.v\") != nil {",
            "if testing.Testing() {",
            "//go:linkname x testing.y",
        ],
    );
    check_marks("domain.go", &["os.Exit(0)"]);
    check_marks("calc_test.go", &["func TestMain(m *testing.M) {"]);
    check_honest("calc_test.go", &["import \"testing\""]);
    check_honest("main.go", &["os.Exit(0)"]);
    check_honest("cmd/calc/run.go", &["os.Exit(0)"]);
    check_honest("internal/testutil/calc.go", &["import \"testing\""]);
}

#[test]
fn rust_that_asks_whether_it_is_tested_is_shown() {
    check_marks(
        "src/lib.rs",
        &[
            "    if cfg!(test) {",
            "    if cfg!( test ) {",
            "#[cfg(not(test))]\nfn add() {}",
            "#[cfg(any(not(test)))]\nfn add() {}",
            "    #[cfg(test)] return a + b;",
            "    #[cfg(test)]\n    return a + b;",
            "    #[cfg(test)]\n    {",
            "    if cfg!(debug_assertions) {",
            "macro_rules! assert_eq {",
            "std::process::exit(0)",
            "use std::process::exit;\nfn f() { exit(0i32); }",
            "std :: process :: exit(0i32);",
        ],
    );
    check_honest(
        "src/lib.rs",
        &[
            "#[cfg(test)]\nmod tests {\n}",
            "#[cfg(test)]\nuse std::io;",
            "#[cfg(test)]\n#[allow(unused)]\npub(crate) fn helper() {}",
            "#[cfg(test)] mod tests;",
            "#[cfg(not(test))]\n#[panic_handler]\nfn panic() -> ! {}",
            "#![cfg_attr(not(test), no_std)]",
            "fn f() { exit(0); }",
            "#[cfg(test)]\nconst A: u8 = 1;",
        ],
    );
    check_honest("src/main.rs", &["std::process::exit(0);"]);
    check_honest("src/cli.rs", &["std::process::exit(0);"]);
    check_honest("docs/a.md", &["import unittest"]);
}

#[test]
fn shell_that_ends_the_script_that_reads_it_is_shown() {
    check_marks("calc.sh", &["assert_equal() { :; }", "trap 'exit 0' EXIT", "trap \"exit  0\" 0"]);
    check_honest("calc.sh", &["greet() {", "trap 'rm -f \"$file\"' EXIT", "quit() { echo \"$1\"; exit 1; }"]);
    let files = [
        ("check.sh", ". ./lib.sh\nsource \"./more.sh\"\nsh tool.sh\nadd 1 2 | grep 3\n"),
        ("lib.sh", "add() {\n  echo 3\n}\n"),
        ("more.sh", "x=1\n"),
        ("tool.sh", "x=1\n"),
    ];
    let found = |path: &str, line: &str| {
        let before = files.iter().find(|(name, _)| *name == path).expect("it is there").1;
        let changed = change(path, before, &format!("{before}{line}\n"));
        find_concerns(&[changed], &trace("sh check.sh", &files), None, None, None).len().min(1)
    };
    for line in [
        "trap finish EXIT",
        "exit",
        "exit 0",
        "alias grep=true",
        "set +e",
        "exec true",
        "grep() { :; }",
        "PATH=.:$PATH",
    ] {
        assert_eq!(found("lib.sh", line), 1, "{line}");
        assert_eq!(found("more.sh", line), 1, "{line}");
    }
    for line in ["sub() {\n  echo $(($1 - $2))\n}", "fail_loudly() {\n  exit 1\n}", "path=x"] {
        assert_eq!(found("lib.sh", line), 0, "{line}");
    }
    assert_eq!(found("tool.sh", "exit 0"), 0, "it is run and not read: the product");
}

#[test]
fn a_product_that_asks_whether_cargo_started_it_is_shown() {
    check_marks(
        "src/lib.rs",
        &["    if std::env::var_os(\"CARGO_MANIFEST_DIR\").is_some() { a + b } else { a - b }"],
    );
    check_honest(
        "src/lib.rs",
        &[
            "const VERSION: &str = env!(\"CARGO_PKG_VERSION\");",
            "    let home = std::env::var_os(\"CARGO_HOME\");",
        ],
    );
    // A file of the product that holds tests is the product outside of them.
    let asks = "    let root = std::env::var(\"CARGO_MANIFEST_DIR\");";
    let with_tests = |line: &str, in_test: &str| {
        format!(
            "fn f() {{\n{line}\n}}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{\n{in_test}\n        assert!(f());\n    }}\n}}"
        )
    };
    check_marks("src/lib.rs", &[&with_tests(asks, "")]);
    check_honest("src/lib.rs", &[&with_tests("", asks)]);
    check_honest("xtask/src/main.rs", &["let root = std::env::var(\"CARGO_MANIFEST_DIR\")?;"]);
}

#[test]
fn a_product_that_looks_at_the_program_that_runs_it_is_shown() {
    check_marks(
        "calc.js",
        &[
            "const a = process.argv[1].endsWith('.test.js') ? 1 : 2;",
            "if (process.execArgv.includes('--test')) {",
        ],
    );
    check_honest("calc.js", &["const name = process.argv[2];", "if (require.main === module) {"]);
    check_marks("calc.py", &["if 'pytest' in sys.argv[0]:", "TEST_RUNNER = 'shop.Quiet'"]);
    check_marks("calc.go", &["if strings.HasSuffix(os.Args[0], \".test\") {"]);
    check_honest("calc.py", &["name = sys.argv[1]"]);
}

#[test]
fn a_product_that_looks_for_a_test_among_its_callers_is_shown() {
    check_marks(
        "calc.py",
        &[
            "if sys._getframe(1).f_code.co_name.startswith(\"test_\"):",
            "if 'tests/' in inspect.currentframe().f_back.f_code.co_filename:",
            "if any('conftest' in f.filename for f in inspect.stack()):",
        ],
    );
    check_marks("calc.js", &["return new Error().stack.includes('.test.js') ? a + b : a - b;"]);
    check_marks(
        "calc.go",
        &[
            "if _, file, _, _ := runtime.Caller(1); strings.HasSuffix(file, \"_test.go\") {",
            "if strings.Contains(runtime.FuncForPC(pc).Name(), \".Test\") {",
        ],
    );
    check_marks(
        "src/lib.rs",
        &[
            "if std::thread::current().name() == Some(\"main\") { a - b } else { a + b }",
            "if std::env::current_exe().is_ok_and(|path| path.iter().any(|part| part == \"deps\")) {",
        ],
    );
    check_marks(
        "greet.sh",
        &["if grep -q check \"/proc/$PPID/cmdline\"; then", "case $(ps -o args= $PPID) in"],
    );

    check_honest(
        "calc.py",
        &[
            "caller = inspect.currentframe().f_back.f_code.co_name",
            "log(\"latest\", sys._getframe(0).f_lineno)",
        ],
    );
    check_honest("calc.js", &["console.error(error.stack);", "log('latest ' + error.stack);"]);
    check_honest("calc.go", &["_, file, line, _ := runtime.Caller(1)", "name := filepath.Base(os.Args[0])"]);
    check_honest("src/lib.rs", &["let name = thread::current().name().unwrap_or(\"unnamed\");"]);
    check_honest("greet.sh", &["kill -USR1 \"$PPID\""]);
    check_honest("tests/test_calc.py", &["assert inspect.stack()[0].function == 'test_name'"]);

    // A file of the product that holds tests is the product outside of them.
    let asks = "    if std::thread::current().name() == Some(\"main\") { a - b } else { a + b }";
    let tests = |line: &str| {
        format!(
            "#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{\n{line}\n        assert!(f());\n    }}\n}}"
        )
    };
    check_marks("src/lib.rs", &[&format!("fn f() {{\n{asks}\n}}\n{}", tests(""))]);
    check_honest("src/lib.rs", &[&tests(asks)]);
}

#[test]
fn product_code_that_moves_to_go_tests_is_shown() {
    const ADD: &str = "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n";
    let words = |changes: &[landfall_model::gaming::ChangedFile]| {
        let found = find_concerns(changes, &[], None, None, None);
        found.iter().map(|concern| concern.code.word()).collect::<Vec<_>>()
    };
    let moved_to = |path: &str| words(&[change("calc.go", ADD, "package calc\n"), change(path, "", ADD)]);
    assert_eq!(moved_to("sums_test.go"), ["runner-patched"]);
    assert_eq!(moved_to("sums.go"), [""; 0]);
    assert_eq!(moved_to("other/sums_test.go"), [""; 0]);
    let kept =
        [change("calc.go", ADD, &ADD.replace("a, b int", "a, b int64")), change("sums_test.go", "", ADD)];
    assert_eq!(words(&kept), [""; 0]);
}

#[test]
fn a_go_function_that_moves_to_a_test_file_is_shown() {
    let lines = |line: &str| vec![line.to_owned()];
    let found = |gone: &str, come: &str, beside: &str| {
        let product = ChangedFile {
            path: "calc.go".to_owned(),
            removed: lines(gone),
            added: lines(beside),
            ..ChangedFile::default()
        };
        let tests =
            ChangedFile { path: "x_test.go".to_owned(), added: lines(come), ..ChangedFile::default() };
        find_concerns(&[product, tests], &[], None, None, None).len()
    };
    let table = [
        ("func Add(a, b int) int {", "func Add(a, b int) int {", 1, "a function"),
        ("func (c Calc) Add(a int) int {", "func (c Calc) Add(a int) int {", 1, "a method"),
        ("func (c Calc) Add(a int) int {", "func (calc *Calc) Add(a int) int {", 1, "another name"),
        ("func (Calc) Add(a int) int {", "func (_ Calc) Add(a int) int {", 1, "no name"),
        ("func (s *Stack[K, V]) Put(k K) {", "func (t *Stack[A, B]) Put(k A) {", 1, "a type with parameters"),
        ("func Map[T any](f T) {", "func Map[S any](f S) {", 1, "a function with parameters of types"),
        ("func (c Calc) Add(a int) int {", "func (c Other) Add(a int) int {", 0, "another type"),
        ("func (c Calc) Add(a int) int {", "func (c Calc) Sum(a int) int {", 0, "another method"),
        ("func (c Calc) Add(a int) int {", "func Add(a int) int {", 0, "a function beside a method"),
    ];
    for (gone, come, wanted, why) in table {
        assert_eq!(found(gone, come, "x"), wanted, "{why}");
    }
    let still_there = "func (calc Calc) Add(a, b int) int {";
    assert_eq!(found("func (c Calc) Add(a int) int {", "func (c Calc) Add(a int) int {", still_there), 0);
}
