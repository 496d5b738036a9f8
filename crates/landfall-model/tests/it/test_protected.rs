//! Which files decide what the checks do, and which changes of them are shown to a person.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use landfall_model::gaming::{ChangedFile, InputScope, InputTrace, ProtectedInput, find_concerns};

pub type Files<'a> = &'a [(&'a str, &'a str)];

pub fn trace(line: &str, files: Files<'_>) -> Vec<ProtectedInput> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut trace = InputTrace::new([line]);
    let mut asked = 0;
    while let Some(path) = trace.next_path() {
        asked += 1;
        assert!(asked <= 128, "it asks for ever");
        trace.provide_file(&path, files.get(path.as_str()).map(|text| (*text).to_owned()));
    }
    trace.into_inputs()
}

/// The inputs of a check that are there, each with its part.
pub fn check_inputs(line: &str, files: Files<'_>, expect: Expect) {
    let words = |input: &ProtectedInput| {
        let names =
            |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let part = match &input.scope {
            InputScope::WholeFile => "all".to_owned(),
            InputScope::TestScript => "tests".to_owned(),
            InputScope::MakeTargets(targets) => format!("targets {}", names(targets)),
            InputScope::PackageScripts(scripts) => format!("scripts {}", names(scripts)),
            InputScope::Sections(sections) => format!("sections {}", names(sections)),
            InputScope::Recipes => "recipes".to_owned(),
            InputScope::Sourced => "sourced".to_owned(),
            InputScope::Absent => "absent".to_owned(),
            InputScope::Verbatim => "verbatim".to_owned(),
        };
        format!("{}: {part} ({})", input.path, input.used_by)
    };
    let inputs = trace(line, files);
    let there = inputs.iter().filter(|input| files.iter().any(|(path, _)| *path == input.path));
    expect.assert_eq(&there.map(words).collect::<Vec<_>>().join("\n"));
}

/// A change of one file of the base.
pub fn change(path: &str, before: &str, after: &str) -> ChangedFile {
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ChangedFile {
        path: path.to_owned(),
        created: before.is_empty(),
        deleted: after.is_empty(),
        added: lines(after),
        removed: lines(before),
        before: text(before),
        after: text(after),
    }
}

pub fn check_change(line: &str, files: Files<'_>, changed: ChangedFile, expect: Expect) {
    let found = find_concerns(&[changed], &trace(line, files), None, None, None);
    expect.assert_eq(&found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}

const CI: &str = "#!/bin/sh\nset -e\nsh \"$(dirname \"$0\")/unit.sh\"\nmake lint\n";
const GREET_TEST: &str = "[ \"$(sh greet.sh Ada)\" = \"Hello, Ada!\" ] || exit 1\n";

#[test]
fn scripts_are_followed_and_the_product_is_not() {
    check_inputs(
        "sh scripts/ci.sh && ./check.sh",
        &[
            ("scripts/ci.sh", CI),
            ("scripts/unit.sh", "python3 -m unittest\n"),
            ("Makefile", "lint:\n\tsh tools/lint.sh\nother:\n\tsh other.sh\n"),
            ("tools/lint.sh", "true\n"),
            ("other.sh", ""),
            ("check.sh", "out=$(sh greet.sh)\nsh greet.sh | grep Hello\n. ./lib.sh\nsh greet.sh Bob\n"),
            ("greet.sh", "echo Hello\n"),
            ("lib.sh", "assert_equal() { [ \"$1\" = \"$2\" ]; }\n"),
        ],
        expect![[r#"
            Makefile: targets lint (scripts/ci.sh)
            check.sh: all (the check)
            lib.sh: all (check.sh)
            scripts/ci.sh: all (the check)
            scripts/unit.sh: all (scripts/ci.sh)
            tools/lint.sh: all (Makefile)"#]],
    );
}

/// The script is protected, however the line spells the way to it.
fn check_follows(line: &str, path: &str) {
    let inputs = trace(line, &[(path, "true\n")]);
    assert!(inputs.iter().any(|input| input.path == path), "{line}: {path} is not protected: {inputs:?}");
}

#[test]
fn options_of_a_shell_and_of_wrappers_hide_no_script() {
    for line in [
        "bash -euo pipefail scripts/ci.sh",
        "bash -euo pipefail -c 'sh scripts/ci.sh'",
        "bash -c -e 'sh scripts/ci.sh'",
        "bash -O extglob +o posix -- scripts/ci.sh",
        "bash --rcfile x --noprofile scripts/ci.sh",
        "nice -n 10 sh scripts/ci.sh",
        "sudo -u user -E sh scripts/ci.sh",
        "timeout 60 sh scripts/ci.sh 2",
        "timeout -k 5 -s KILL 60s sh scripts/ci.sh 2",
        "env -u HOME A=1 stdbuf -o L sh scripts/ci.sh",
        "uv run scripts/ci.sh",
        "poetry run sh scripts/ci.sh",
        "npx -y sh scripts/ci.sh",
        "xargs -n 1 sh scripts/ci.sh",
        "flock -n lock sh scripts/ci.sh",
        "setsid ionice -c 3 chrt -b 0 sh scripts/ci.sh",
    ] {
        check_follows(line, "scripts/ci.sh");
    }
    check_follows("uv run check.py", "check.py");
    check_follows("cargo xtask ci", "xtask/src/*");
    let inputs = trace("bash -o pipefail other.sh", &[("pipefail", "")]);
    assert!(inputs.iter().all(|input| input.path == "other.sh"), "{inputs:?}");
}

#[test]
fn a_change_of_folder_ends_with_its_shell() {
    check_follows("(cd web && npm test) && sh scripts/ci.sh", "scripts/ci.sh");
    check_follows("cd web && true; cd .. && sh scripts/ci.sh", "scripts/ci.sh");
    check_follows("cd \"$X\"; cd web; cd -; sh scripts/ci.sh", "scripts/ci.sh");
    check_follows("cd web | true; sh scripts/ci.sh", "scripts/ci.sh");
    check_follows("X=$(cd web && pwd); sh scripts/ci.sh", "scripts/ci.sh");
    check_inputs(
        "make test",
        &[
            ("Makefile", "test:\n\tcd web && npm test\n\tsh scripts/ci.sh\n"),
            ("scripts/ci.sh", "true\n"),
            ("web/scripts/ci.sh", "true\n"),
        ],
        expect![[r#"
            Makefile: targets test (the check)
            scripts/ci.sh: all (Makefile)"#]],
    );
    check_inputs(
        "make test",
        &[("Makefile", ".ONESHELL:\ntest:\n\tcd web\n\tsh scripts/ci.sh\n"), ("web/scripts/ci.sh", "true\n")],
        expect![[r#"
            Makefile: targets test (the check)
            web/scripts/ci.sh: all (Makefile)"#]],
    );
    check_follows("make -f ci.mk", "ci.mk");
    check_inputs(
        "make",
        &[("Makefile", "all:\n\t${MAKE} -C sub test\n"), ("sub/Makefile", "test:\n\ttrue\n")],
        expect![[r#"
            Makefile: targets  (the check)
            sub/Makefile: targets test (Makefile)"#]],
    );
}

#[test]
fn a_comment_that_cuts_a_command_is_shown() {
    let script = "set -e\nsh unit.sh \\\n  --all \\\n  --strict\n";
    let check = |old: &str, new: &str, expect: Expect| {
        let changed = change("ci.sh", script, &script.replace(old, new));
        check_change("sh ci.sh", &[("ci.sh", script)], changed, expect);
    };
    check(
        "  --all",
        "# Everything.\n  --all",
        expect!["changes what the checks do: ci.sh (used by the check): +# Everything."],
    );
    check("  --all", "\n  --all", expect!["changes what the checks do: ci.sh (used by the check): +"]);
    check("sh unit.sh", "# Units.\nsh unit.sh", expect![[""]]);
}

#[test]
fn package_scripts_are_followed() {
    let package =
        r#"{"scripts": {"test": "npm run unit && sh extra.sh", "unit": "node --test", "start": "sh s.sh"}}"#;
    check_inputs(
        "cd web && npm test",
        &[
            ("web/package.json", package),
            ("web/extra.sh", "true"),
            ("web/s.sh", ""),
            ("package.json", package),
        ],
        expect![[r#"
            web/extra.sh: all (web/package.json)
            web/package.json: scripts posttest postunit pretest preunit test unit (the check)"#]],
    );
}

/// The scripts of a package.json that a line runs.
fn check_scripts(line: &str, path: &str, expected: &[&str]) {
    let package = r#"{"scripts": {"test": "x", "lint": "x", "test:a": "x", "test:b": "x", "postinstall": "x", "prepare": "x"}}"#;
    let inputs = trace(line, &[("package.json", package), ("web/package.json", package)]);
    for script in ["test", "lint", "test:a", "test:b", "postinstall", "prepare"] {
        let changed = change(
            path,
            package,
            &package.replace(&format!(r#""{script}": "x""#), &format!(r#""{script}": "true""#)),
        );
        let found = find_concerns(&[changed], &inputs, None, None, None).len();
        assert_eq!(found == 1, expected.contains(&script), "{line}: {script} of {path}");
    }
}

#[test]
fn scripts_of_packages_are_found_behind_options_and_runners() {
    check_scripts("npm test", "package.json", &["test"]);
    check_scripts("npm test", "web/package.json", &[]);
    check_scripts("npm run lint -- test", "package.json", &["lint"]);
    check_scripts("npm --loglevel error test", "package.json", &["test"]);
    check_scripts("npm -s --if-present run test", "package.json", &["test"]);
    for line in [
        "npm -w web test",
        "npm test --workspace=web",
        "npm test --workspaces",
        "npm run test -ws",
        "pnpm -r test",
        "pnpm --filter web test",
        "yarn workspaces foreach -A run test",
        "yarn workspace web test",
        "npx lerna run test",
        "turbo run test",
    ] {
        check_scripts(line, "web/package.json", &["test"]);
    }
    check_scripts("npm ci && npm test", "package.json", &["test", "postinstall", "prepare"]);
    check_scripts("yarn && yarn test", "package.json", &["test", "postinstall", "prepare"]);
    check_scripts("npm ci --ignore-scripts && npm test", "package.json", &["test"]);
    check_scripts("npx run-s test lint", "package.json", &["test", "lint"]);
    check_scripts("npm-run-all --parallel 'test:*'", "package.json", &["test:a", "test:b"]);
    check_scripts(
        "concurrently \"npm:test:*\" 'npm run lint'",
        "package.json",
        &["lint", "test:a", "test:b"],
    );
}

#[test]
fn settings_of_a_linter_count_where_a_check_runs_it() {
    let shown = |line: &str, path: &str| {
        let package = r#"{"scripts": {"lint": "eslint ."}}"#;
        let inputs = trace(line, &[("package.json", package)]);
        !find_concerns(&[change(path, "x = 1\n", "x = 2\n")], &inputs, None, None, None).is_empty()
    };
    for (line, path) in [
        ("cargo clippy --all-targets", "clippy.toml"),
        ("cargo +nightly clippy", "crates/a/.clippy.toml"),
        ("ruff check .", "ruff.toml"),
        ("python3 -m mypy src", "mypy.ini"),
        ("npm run lint", "eslint.config.mjs"),
        ("npx tsc --noEmit", "tsconfig.base.json"),
        ("golangci-lint run", ".golangci.yml"),
    ] {
        assert!(shown(line, path), "{line}: {path}");
        assert!(!shown("cargo test", path), "{path}");
    }
    assert!(!shown("cargo clippy", "src/clippy.rs"));
}

#[test]
fn a_dependency_that_can_be_any_program_is_shown() {
    let base = r#"{"devDependencies": {"mocha": "^10"}, "version": "1"}"#;
    for from in [
        "file:./m",
        "npm:other@1",
        "git+https://x/y.git",
        "github:x/y",
        "x/y",
        "https://x/y.tgz",
        "workspace:*",
    ] {
        let is_expected = from != "workspace:*";
        assert_eq!(is_shown("package.json", base, "^10", from), is_expected, "{from}");
    }
    assert!(!is_shown("package.json", base, "^10", "^11 || 12.x"));
}

#[test]
fn links_of_the_base_are_followed() {
    let mut trace = InputTrace::new(["sh check.sh && sh ci/run.sh"]);
    while let Some(path) = trace.next_path() {
        match path.as_str() {
            "check.sh" => trace.provide_link(&path, "check.sh", "scripts/real.sh"),
            "ci/run.sh" => trace.provide_link(&path, "ci", "./tools/ci/"),
            "scripts/real.sh" => trace.provide_file(&path, Some("true\n".to_owned())),
            "tools/ci/run.sh" => trace.provide_link(&path, "tools/ci/run.sh", "run.sh"), // to itself
            path => trace.provide_file(path, None),
        }
    }
    let paths: Vec<_> = trace.into_inputs().into_iter().map(|input| input.path).collect();
    assert_eq!(paths, ["check.sh", "ci", "scripts/real.sh", "tools/ci/run.sh"]);
}

#[test]
fn a_file_of_tests_is_no_protected_input() {
    let files: Files<'_> = &[
        ("tests/test_a.py", "def test_a():\n    assert 1\n"),
        ("tests/run.py", "import sys\n"),
        ("test.sh", GREET_TEST),
        ("tests/data.txt", "x"),
    ];
    check_inputs("python3 -m pytest tests/test_a.py", files, expect![[""]]);
    check_inputs("python3 tests/test_a.py && cat tests/data.txt", files, expect![[""]]);
    check_inputs("python3 tests/run.py", files, expect!["tests/run.py: tests (the check)"]);
    check_inputs("sh test.sh", files, expect!["test.sh: tests (the check)"]);
}

#[test]
fn files_that_include_each_other_and_large_ones_end_the_trace() {
    let inputs = trace(
        "make && sh a.sh",
        &[
            ("Makefile", "include a.mk\nall: all\n\tmake all\n"),
            ("a.mk", "include Makefile a.mk\n"),
            ("a.sh", "sh check_b.sh\n"),
            ("check_b.sh", "sh a.sh; sh check_b.sh\n"),
        ],
    );
    assert!(inputs.len() < 20);
    let many: Vec<(String, String)> =
        (0..200).map(|number| (format!("check{number}.sh"), format!("sh check{}.sh", number + 1))).collect();
    let files: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(trace("sh check0.sh", &files).len() < 64, "the depth is bounded");
    let line = (0..5_000).map(|number| format!("sh x{number}.sh;")).collect::<String>();
    let _ = trace(&line, &[]); // the number of files is bounded
}

#[test]
fn a_shown_line_hides_nothing() {
    let shown = |after: &str| {
        let changed = change("ci.sh", "true\n", after);
        let found = find_concerns(&[changed], &trace("sh ci.sh", &[("ci.sh", "true\n")]), None, None, None);
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let hidden = shown(&format!("true{}; exit 0\n", " ".repeat(300)));
    assert!(hidden.contains("; exit 0"), "{hidden}");
    let long = shown(&format!("true{}; exit 0\n", "x".repeat(5_000)));
    assert!(long.contains("characters left out") && long.ends_with("; exit 0"), "{long}");
    assert!(shown("true \\ \n").ends_with("+true \\ "), "blanks behind a backslash count");
    let many = shown(&(0..100).map(|number| format!("x{number}\n")).collect::<String>());
    assert!(many.ends_with("… and 61 more lines"), "{many}");
}

#[test]
fn a_change_of_a_script_is_shown_exactly() {
    let files: Files<'_> = &[("scripts/ci.sh", "set -e\nsh unit.sh\ncargo test\n")];
    check_change(
        "sh scripts/ci.sh",
        files,
        change("scripts/ci.sh", files[0].1, "set -e\nsh unit.sh\ntrue\n"),
        expect!["changes what the checks do: scripts/ci.sh (used by the check): −cargo test ⏎ +true"],
    );
    check_change(
        "sh scripts/ci.sh",
        files,
        change("scripts", "", "link"),
        expect!["changes what the checks do: scripts (used by the check): +link"],
    );
    check_change(
        "sh scripts/ci.sh",
        files,
        change("scripts/ci.sh", files[0].1, "# The checks.\nset -e\nsh unit.sh\n\ncargo test\n"),
        expect![[""]],
    );
    // A file that the base does not have and the check would use.
    check_change(
        "sh check.sh",
        &[],
        change("check.sh", "", "true\n"),
        expect!["changes what the checks do: check.sh (used by the check): +true"],
    );
}

#[test]
fn only_the_used_part_of_a_makefile_counts() {
    let base = "PY = python3\nSRC = a.c b.c\ntest: build\n\t$(PY) -m unittest\nbuild: $(SRC)\n\tcc $(SRC)\nclean:\n\trm -f x\n";
    let check = |old: &str, new: &str, expect: Expect| {
        let changed = change("Makefile", base, &base.replace(old, new));
        check_change("make test", &[("Makefile", base)], changed, expect);
    };
    check("rm -f x", "rm -rf x y", expect![[""]]);
    check("a.c b.c", "a.c b.c c.c", expect![[""]]);
    check(
        "PY = python3",
        "PY = true",
        expect!["changes what the checks do: Makefile (used by the check): −PY = python3 ⏎ +PY = true"],
    );
    check(
        "\t$(PY) -m unittest\n",
        "",
        expect![
            "changes what the checks do: Makefile (used by the check): −PY = python3 ⏎ −	$(PY) -m unittest"
        ],
    );
    check(
        "clean:",
        "test: extra\nclean:",
        expect!["changes what the checks do: Makefile (used by the check): +test: extra"],
    );
    check_change(
        "make test",
        &[("Makefile", base)],
        change("GNUmakefile", "", "test:\n\ttrue\n"),
        expect!["changes what the checks do: GNUmakefile (used by the check): +test: ⏎ +	true"],
    );
}

#[test]
fn only_the_used_part_of_an_included_file_counts() {
    let files: Files<'_> = &[
        ("Makefile", "include tests.mk\ntest: unit\n\t$(AFTER)\n"),
        ("tests.mk", "RUNNER = sh\nAFTER = echo\nOTHER = x\nunit:\n\t$(RUNNER) run.sh\nlint:\n\ttrue\n"),
    ];
    let check = |old: &str, new: &str, expect: Expect| {
        check_change(
            "make test",
            files,
            change("tests.mk", files[1].1, &files[1].1.replace(old, new)),
            expect,
        );
    };
    check("OTHER = x", "OTHER = y", expect![[""]]);
    check("lint:\n\ttrue", "lint:\n\tfalse", expect![[""]]);
    check(
        "RUNNER = sh",
        "RUNNER = true",
        expect!["changes what the checks do: tests.mk (used by the check): −RUNNER = sh ⏎ +RUNNER = true"],
    );
    check(
        "AFTER = echo",
        "AFTER = true",
        expect!["changes what the checks do: tests.mk (used by the check): −AFTER = echo ⏎ +AFTER = true"],
    );
}

#[test]
fn only_the_used_scripts_of_a_package_count() {
    let base = r#"{"version": "1", "scripts": {"test": "mocha", "start": "node ."}, "devDependencies": {"mocha": "^10"}}"#;
    let check = |old: &str, new: &str, expect: Expect| {
        let changed = change("package.json", base, &base.replace(old, new));
        check_change("npm test", &[("package.json", base)], changed, expect);
    };
    check(r#""version": "1""#, r#""version": "2""#, expect![[""]]);
    check("node .", "node index.js", expect![[""]]);
    check("^10", "^11", expect![[""]]);
    check(
        "\"mocha\",",
        "\"true\",",
        expect![[
            r#"changes what the checks do: package.json (used by the check): −"test": "mocha" ⏎ +"test": "true""#
        ]],
    );
    check(
        "\"start\"",
        "\"pretest\": \"exit 0\", \"start\"",
        expect![[r#"changes what the checks do: package.json (used by the check): +"pretest": "exit 0""#]],
    );
    check(
        "^10",
        "file:./mocha",
        expect![[
            r#"changes what the checks do: package.json (used by the check): +"mocha": "file:./mocha""#
        ]],
    );
}

#[test]
fn what_a_runner_loads_by_itself_is_protected_in_every_ecosystem() {
    for path in [
        "conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        "tox.ini",
        "sitecustomize.py",
        "x.pth",
        "unittest/__init__.py",
        "unittest.py",
        "src/pytest.py",
        ".mocharc.json",
        "jest.config.ts",
        "web/vitest.config.mts",
        "node_modules/assert/index.js",
        ".npmrc",
        ".cargo/config.toml",
        "build.rs",
        "crates/a/build.rs",
        "rust-toolchain.toml",
        "go.work",
        "vendor/github.com/stretchr/testify/assert/assertions.go",
        "web/vite.config.ts",
        "babel.config.js",
        ".babelrc.json",
        "__mocks__/fs.js",
        "pytest.toml",
        ".pytest.toml",
        "bunfig.toml",
        "turbo.json",
        "Makefile.toml",
        ".mise.toml",
        "signal.py",
        "gettext.py",
        "logging/__init__.py",
        "tests/random.py",
        "src/unittest/__init__.py",
        "lib/inspect.so",
        "sub/go.mod",
    ] {
        let found = find_concerns(&[change(path, "", "x = 1\n")], &[], None, None, None);
        let words: Vec<_> = found.iter().map(|concern| concern.code.word()).collect();
        assert_eq!(words, ["protected-input"], "{path}");
    }
    for path in [
        "src/build.rs",
        "src/unittest_tools.py",
        "docs/pytest.md",
        "app/collections/a.py",
        "src/collections/list.rs",
        "src/collections/list.py",
        "site/index.html",
        "site/page.py",
        "lib/inspect/a.js",
        "src/queue.py",
        "src/types.py",
        "signal.js",
        "src/__mocks__/fs.js",
        "go.sum",
        "a.config.js",
    ] {
        assert_eq!(find_concerns(&[change(path, "", "x = 1\n")], &[], None, None, None), [], "{path}");
    }
}

#[test]
fn a_module_of_the_base_that_shadows_may_change() {
    let changed = |path: &str| find_concerns(&[change(path, "x = 1\n", "x = 2\n")], &[], None, None, None);
    assert_eq!(changed("src/collections/__init__.py"), []);
    assert_eq!(changed("signal.py"), [], "the base has it already");
    let script =
        |text: &str| find_concerns(&[change("src/thing/build.rs", "", text)], &[], None, None, None).len();
    assert_eq!((script("fn main() {}\n"), script("pub fn build() {}\n")), (1, 0));
}

/// Whether a change of one settings file is shown.
fn is_shown(path: &str, before: &str, old: &str, new: &str) -> bool {
    assert!(before.contains(old), "{old}");
    !find_concerns(&[change(path, before, &before.replacen(old, new, 1))], &[], None, None, None).is_empty()
}

#[test]
fn settings_count_however_they_are_spelled() {
    let cargo = "[package]\nname = \"a\"\n[lib]\nname = \"a\"\n[workspace]\nmembers = [\"b\", \"c\"]\n\
        [dependencies]\nserde = \"1\"\n";
    for (old, new) in [
        ("[lib]", "[ lib ]\ntest = false"),
        ("[lib]", "[lib]\n\"test\" = false"),
        ("[lib]\n", "[lib]\ntest   =   false\n"),
        ("[package]", "lib.harness = false\n[package]"),
        ("[lib]", "autotests=false\n[lib]"),
        ("[dependencies]", "[ profile . test ]\nopt-level = 3\n[dependencies]"),
        ("[dependencies]", "[[test]]\nname = \"x\"\n[dependencies]"),
        ("[\"b\", \"c\"]", "[\"b\"]"),
        ("[dependencies]", "default-members = [\"b\"]\n[dependencies]"),
        ("[dependencies]", "exclude = [\"c\"]\n[dependencies]"),
        ("[dependencies]", "[dev-dependencies]\npretty_assertions = { path = \"fake\" }\n[dependencies]"),
        ("[dependencies]", "[patch.crates-io]\nserde = { path = \"x\" }\n[dependencies]"),
        ("[dependencies]", "[dependencies"),
    ] {
        assert!(is_shown("Cargo.toml", cargo, old, new), "{new}");
    }
    for (old, new) in [
        ("[\"b\", \"c\"]", "[\"b\", \"c\", \"d\"]"),
        ("[dependencies]", "[[bench]]\nname = \"x\"\nharness = false\n[dependencies]"),
        ("serde", "doctest-file = \"1\"\nbuild = \"1\"\nserde"),
        ("serde", "b = { path = \"b\" }\nserde"),
        ("[lib]", "[lib]\n# test = false"),
    ] {
        assert!(!is_shown("Cargo.toml", cargo, old, new), "{new}");
    }
    let project = "[project]\nname = \"a\"\n";
    for section in [
        "[ tool.pytest.ini_options ]\naddopts = \"-k none\"",
        "[tool.\"pytest\".ini_options]\naddopts = \"-k none\"",
        "tool.pytest.ini_options.addopts = \"-k none\"",
        "[project.entry-points.pytest11]\nx = \"x\"",
        "[tool.poe.tasks]\ntest = \"true\"",
    ] {
        let before = "x = 1\n".to_owned() + project;
        assert!(is_shown("pyproject.toml", &before, "x = 1", section), "{section}");
    }
    assert!(!is_shown("pyproject.toml", project, "[project]", "[tool.black]\nline-length = 9\n[project]"));
    let go = "module a\n\nreplace (\n\tb => ./b\n)\n\nrequire (\n\tc v1.0.0\n)\n";
    assert!(is_shown("go.mod", go, "\tb => ./b\n", "\tb => ./b\n\ttestify => ./fake\n"));
    assert!(is_shown("go.mod", go, "require", "ignore ./x\n\nrequire"));
    assert!(!is_shown("go.mod", go, "\tc v1.0.0\n", "\tc v1.0.0\n\td v1.0.0\n"));
}

#[test]
fn only_sections_about_tests_count_in_shared_settings() {
    let check = |path: &str, before: &str, after: &str, expect: Expect| {
        check_change("true", &[], change(path, before, after), expect);
    };
    let project = "[project]\nversion = \"1\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
    check("pyproject.toml", project, &project.replace("\"1\"", "\"2\""), expect![[""]]);
    check(
        "pyproject.toml",
        project,
        &project.replace("-q", "-k nothing"),
        expect![[
            r#"changes what the checks do: pyproject.toml (used by the test runner): −tool.pytest.ini_options.addopts = "-q" ⏎ +tool.pytest.ini_options.addopts = "-k nothing""#
        ]],
    );
    let cargo = "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n";
    check("Cargo.toml", cargo, &cargo.replace("\"1\"", "\"2\""), expect![[""]]);
    check(
        "Cargo.toml",
        cargo,
        &cargo.replace("[dep", "autotests = false\n[dep"),
        expect![
            "changes what the checks do: Cargo.toml (used by the test runner): +package.autotests = false"
        ],
    );
    check("go.mod", "module a\n", "module a\nrequire b v1.0.0\n", expect![[""]]);
    check(
        "go.mod",
        "module a\n",
        "module a\nreplace b => ./b\n",
        expect!["changes what the checks do: go.mod (used by the test runner): +replace b => ./b"],
    );
}

#[test]
fn a_new_recipe_of_a_justfile_is_no_news() {
    let base = "set shell := [\"sh\"]\n\ntest: build\n    cargo test\n\nbuild:\n    cargo build\n";
    let shown = |after: &str| {
        let found = find_concerns(
            &[change("justfile", base, after)],
            &trace("just test", &[("justfile", base)]),
            None,
            None,
            None,
        );
        !found.is_empty()
    };
    assert!(!shown(&format!("{base}\n# More.\n[private]\ndocs target=\"x\":\n    cargo doc\n")));
    assert!(shown(&base.replace("cargo test", "true")));
    assert!(shown(&base.replace("test: build", "test: build docs")));
    assert!(shown(&format!("{base}\ntest:\n    true\n")), "the same name");
    assert!(shown(&format!("set allow-duplicate-recipes\n{base}")));
    assert!(shown(&format!("{base}\nexport X := \"y\"\n")));
}

#[test]
fn a_loop_over_tests_may_grow() {
    let base = "for name in adds adds_nothing; do\n  sh \"tests/$name.sh\" || exit 1\ndone\n";
    let shown = |new: &str| {
        let changed = change("tests/run.sh", base, &base.replace("adds adds_nothing", new));
        !find_concerns(&[changed], &trace("sh tests/run.sh", &[("tests/run.sh", base)]), None, None, None)
            .is_empty()
    };
    assert!(!shown("adds adds_nothing minus"));
    assert!(!shown("adds minus adds_nothing"));
    assert!(shown("adds"));
    assert!(shown("adds adds_nothing $(exit)"));
    assert!(shown("adds_nothing adds"));
}

#[test]
fn a_script_of_tests_may_grow_and_not_shrink() {
    let files: Files<'_> = &[("test.sh", GREET_TEST)];
    let check = |after: &str, expect: Expect| {
        check_change("sh test.sh", files, change("test.sh", GREET_TEST, after), expect);
    };
    check(&format!("{GREET_TEST}[ -e more ] || exit 1\n"), expect![[""]]);
    check(&format!("test_more() {{\n  [ -e more ] || exit 1\n}}\n{GREET_TEST}test_more\n"), expect![[""]]);
    check(
        &format!("{GREET_TEST}if [ -e x ]; then exit 0; fi\n"),
        expect!["changes what the checks do: test.sh (used by the check): +if [ -e x ]; then exit 0; fi"],
    );
    check(
        &format!("exit 0\n{GREET_TEST}"),
        expect![[r#"
            changes what the checks do: test.sh (used by the check): +exit 0
            empties tests: test.sh: test.sh (1 assertions before, none now)"#]],
    );
    check(
        "[ \"$(sh greet.sh Ada)\" = \"Bye\" ] || exit 1\n",
        expect![[
            r#"changes what the checks do: test.sh (used by the check): −[ "$(sh greet.sh Ada)" = "Hello, Ada!" ] || exit 1 ⏎ +[ "$(sh greet.sh Ada)" = "Bye" ] || exit 1"#
        ]],
    );
}

#[test]
fn a_check_program_is_protected_with_what_it_imports() {
    check_inputs(
        "python3 ci/check.py && node tools/verify.mjs",
        &[
            ("ci/check.py", "import json\nimport rules\nfrom calc import add\n"),
            ("ci/rules.py", "import more\n"),
            ("ci/more.py", ""),
            ("calc.py", "def add(a, b):\n    assert a\n"),
            (
                "tools/verify.mjs",
                "import { check } from './rules.mjs';\nimport { add } from '../src/calc.mjs';\n",
            ),
            ("tools/rules.mjs", "export const check = 1;\n"),
            ("src/calc.mjs", ""),
        ],
        expect![[r#"
            ci/check.py: all (the check)
            ci/more.py: all (ci/rules.py)
            ci/rules.py: all (ci/check.py)
            tools/rules.mjs: all (tools/verify.mjs)
            tools/verify.mjs: all (the check)"#]],
    );
    check_inputs(
        "python3 check.py",
        &[
            ("check.py", "from calc import add\nimport check_rules\n"),
            ("calc.py", "assert True\n"),
            ("check_rules.py", ""),
        ],
        expect![[r#"
            check.py: all (the check)
            check_rules.py: all (check.py)"#]],
    );
}

#[test]
fn a_package_that_the_check_runs_is_protected_whole() {
    let alias = "[alias]\nci = [\"run\", \"--package\", \"ci-tool\", \"--\"]\n";
    for (line, changed, is_seen) in [
        ("cargo xtask test", "xtask/src/main.rs", true),
        ("cargo xtask test", "xtask/src/checks/lint.rs", true),
        ("cargo xtask test", "tools/xtask/src/lint.rs", true),
        ("cargo ci", "ci-tool/src/lint.rs", true),
        ("cargo run --quiet --manifest-path tools/check/Cargo.toml", "tools/check/src/lib.rs", true),
        ("sh ci.sh", "xtask/src/lint.rs", true),
        ("cargo run -p shop -- --selftest", "shop/src/lib.rs", false),
        ("cargo test", "xtask/src/lint.rs", false),
        ("cargo xtask test", "xtask/README.md", false),
    ] {
        let files = [(".cargo/config.toml", alias), ("ci.sh", "cargo xtask test\n")];
        let found = find_concerns(
            &[change(changed, "fn a() {}\n", "fn b() {}\n")],
            &trace(line, &files),
            None,
            None,
            None,
        );
        assert_eq!(!found.is_empty(), is_seen, "{line}: {changed}: {found:?}");
    }
}

#[test]
fn sections_of_linters_count_where_the_check_runs_them() {
    let python = |rules: &str| format!("[project]\nname = \"a\"\n[tool.ruff.lint]\nselect = [{rules}]\n");
    let changed = || change("pyproject.toml", &python("\"E\""), &python(""));
    check_change(
        "ruff check .",
        &[],
        changed(),
        expect![[
            r#"changes what the checks do: pyproject.toml (used by the check): −tool.ruff.lint.select = ["E"]"#
        ]],
    );
    check_change("pytest", &[], changed(), expect![[""]]);
    let cargo = |lints: &str| format!("[package]\nname = \"a\"\n[lints.clippy]\n{lints}");
    let changed = || change("Cargo.toml", &cargo("unwrap_used = \"deny\"\n"), &cargo(""));
    check_change(
        "cargo clippy --all-targets",
        &[],
        changed(),
        expect![[
            r#"changes what the checks do: Cargo.toml (used by the check): −lints.clippy.unwrap_used = "deny" ⏎ +lints.clippy"#
        ]],
    );
    check_change("cargo test", &[], changed(), expect![[""]]);
    check_change("cargo clippy", &[], change("new/Cargo.toml", "", &cargo("")), expect![[""]]);
    let version = change("pyproject.toml", &python("\"E\""), &python("\"E\"").replace("\"a\"", "\"b\""));
    check_change("ruff check .", &[], version, expect![[""]]);
    let flake = change("setup.cfg", "[flake8]\nmax-line-length = 80\n", "[flake8]\nignore = E\n");
    check_change(
        "python -m flake8",
        &[],
        flake,
        expect![
            "changes what the checks do: setup.cfg (used by the check): −max-line-length = 80 ⏎ +ignore = E"
        ],
    );
}

#[test]
fn workspaces_may_come_and_not_go() {
    let package =
        |list: &str| format!("{{\"workspaces\": [{list}], \"scripts\": {{\"test\": \"npm test -ws\"}}}}");
    let changed = |before: &str, after: &str| change("package.json", &package(before), &package(after));
    check_change(
        "npm test -ws",
        &[],
        changed("\"a\", \"b\"", "\"a\""),
        expect![[r#"changes what the checks do: package.json (used by the check): −"workspaces": "b""#]],
    );
    check_change("npm test -ws", &[], changed("\"a\"", "\"a\", \"b\""), expect![[""]]);
    check_change(
        "npm test -ws",
        &[],
        changed("\"p/*\"", "\"p/*\", \"!p/a\""),
        expect![[r#"changes what the checks do: package.json (used by the check): +"workspaces": "!p/a""#]],
    );
    let pnpm =
        |list: &str| change("pnpm-workspace.yaml", "packages:\n  - a\n  - b\ncatalog:\n  x: 1\n", list);
    check_change(
        "pnpm -r test",
        &[],
        pnpm("packages:\n  - a\ncatalog:\n  x: 1\n"),
        expect!["changes what the checks do: pnpm-workspace.yaml (used by the test runner): −  - b"],
    );
    check_change(
        "pnpm -r test",
        &[],
        pnpm("packages:\n  - a\n  - b\n  - c\ncatalog:\n  x: 2\n"),
        expect![[""]],
    );
}

#[test]
fn tasks_of_deno_and_its_settings_for_tests_count() {
    let deno = |task: &str, rest: &str| {
        format!(
            "{{\"tasks\": {{\"test\": \"{task}\", \"dev\": \"a\"}}, \"imports\": {{\"x\": \"npm:x@1\"}}{rest}}}"
        )
    };
    let changed = |task: &str, rest: &str| change("deno.json", &deno("deno test", ""), &deno(task, rest));
    check_change(
        "deno task test",
        &[],
        changed("true", ""),
        expect![[
            r#"changes what the checks do: deno.json (used by the check): −"test": "deno test" ⏎ +"test": "true""#
        ]],
    );
    check_change(
        "deno test",
        &[],
        changed("deno test", ", \"test\": {\"exclude\": [\"a\"]}"),
        expect![[
            r#"changes what the checks do: deno.json (used by the check): +"test": {"exclude": ["a"]}"#
        ]],
    );
    let upgrade = change("deno.json", &deno("deno test", ""), &deno("deno test", "").replace("x@1", "x@2"));
    check_change("deno task test", &[], upgrade, expect![[""]]);
    check_change("cargo test", &[], changed("true", ""), expect![[""]]);
}

#[test]
fn files_that_the_settings_of_a_runner_name_are_protected() {
    check_inputs(
        "npm test",
        &[
            (
                "package.json",
                "{\"scripts\": {\"test\": \"mocha\"}, \"jest\": {\"setupFiles\": [\"./tools/env.js\"]}}",
            ),
            (".mocharc.yml", "require:\n  - ./tools/setup.js\n  - ./src/calc.js\n"),
            ("tools/setup.js", "require('./hooks')\n"),
            ("tools/hooks.js", ""),
            ("tools/env.js", ""),
            ("src/calc.js", ""),
        ],
        expect![[r#"
            package.json: scripts posttest pretest test (the check)
            tools/env.js: all (package.json)
            tools/hooks.js: all (tools/setup.js)
            tools/setup.js: all (.mocharc.yml)"#]],
    );
}

#[test]
fn a_file_that_is_loaded_first_is_protected_with_what_it_imports() {
    let inputs = trace(
        "node --require ./tools/setup.js --test test/",
        &[("tools/setup.js", "require('./more');\n"), ("tools/more.js", "")],
    );
    assert!(inputs.iter().any(|input| input.path == "tools/more.js"), "{inputs:?}");
}

#[test]
fn settings_behind_a_link_are_protected_where_they_are() {
    let inputs = landfall_model::gaming::linked_settings("landfall.toml", "config/landfall.toml");
    let found =
        find_concerns(&[change("config/landfall.toml", "a = 1\n", "a = 2\n")], &inputs, None, None, None);
    expect!["changes what the checks do: config/landfall.toml (used by landfall.toml): −a = 1 ⏎ +a = 2"]
        .assert_eq(&found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    let inputs = landfall_model::gaming::linked_settings(".landfall", "tools/landfall");
    let found = find_concerns(
        &[change("tools/landfall/flows/a.toml", "a = 1\n", "a = 2\n")],
        &inputs,
        None,
        None,
        None,
    );
    assert_eq!(found.len(), 1);
    assert_eq!(landfall_model::gaming::linked_settings("landfall.toml", "../other.toml"), []);
}

#[test]
fn tests_are_built_like_the_development_profile() {
    let cargo = |overflow: &str| format!("[profile.dev]\nopt-level = 1\n{overflow}");
    check_change(
        "cargo test",
        &[],
        change("Cargo.toml", &cargo(""), &cargo("overflow-checks = false\n")),
        expect![
            "changes what the checks do: Cargo.toml (used by the test runner): +profile.dev.overflow-checks = false"
        ],
    );
}

/// What commands outside of the sandbox may run or read, and that is there.
fn check_unconfined(line: &str, files: Files<'_>, expected: &[&str]) {
    let mut trace = InputTrace::from_unconfined_command("hooks.post-merge", line);
    let mut asked = 0;
    while let Some(path) = trace.next_path() {
        asked += 1;
        assert!(asked <= 512, "it asks for ever");
        let text = files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        trace.provide_file(&path, text);
    }
    let inputs = trace.into_inputs();
    for path in expected {
        let change = change(path, "a\n", "# a remark\na\n");
        let found = find_concerns(&[change], &inputs, None, None, None);
        let shown = format!("{path} (used by hooks.post-merge, outside of the sandbox)");
        assert!(found.iter().any(|it| it.detail.starts_with(&shown)), "{line}: {path}: {inputs:?}");
    }
    let other = change("scripts/other.sh", "a\n", "b\n");
    assert_eq!(find_concerns(&[other], &inputs, None, None, None), [], "{line}: {inputs:?}");
}

#[test]
fn what_runs_outside_of_the_sandbox_is_protected_with_all_that_it_names() {
    const FILES: Files<'_> = &[
        (
            "scripts/notify.sh",
            "#!/bin/sh\ntext=$(./scripts/text.sh)\n. \"$(dirname \"$0\")/lib.sh\"\nsend \"$text\"\n",
        ),
        ("scripts/text.sh", "echo hi | target/debug/app --config conf/app.toml\n"),
        ("scripts/lib.sh", "send() { node src/send.js \"$1\"; }\n"),
        ("src/send.js", "const x = require('./part')\n"),
        ("src/part.js", "module.exports = 1\n"),
        ("conf/app.toml", "a = 1\n"),
        ("tools/notify.py", "import json\nimport helper\n"),
        ("tools/helper.py", "x = 1\n"),
        ("Makefile", "notify: tools\n\tpython3 tools/notify.py\nother:\n\ttrue\n"),
    ];
    let shell = [
        "scripts/notify.sh",
        "scripts/text.sh",
        "scripts/lib.sh",
        "src/send.js",
        "src/part.js",
        "conf/app.toml",
    ];
    for line in [
        "./scripts/notify.sh",
        "sh scripts/notify.sh",
        "cd scripts && ./notify.sh",
        "timeout 5 env X=1 sh -c 'exec ./scripts/notify.sh'",
        "\"$LANDFALL_PROJECT/scripts/notify.sh\" &",
        "/home/me/project/scripts/notify.sh",
        "~/project/scripts/notify.sh > /dev/null",
        "if true; then nohup ./scripts/notify.sh; fi",
        "out=$(./scripts/notify.sh)",
        "cat x | xargs -n1 ./scripts/notify.sh",
    ] {
        check_unconfined(line, FILES, &shell);
    }
    // A module of the same name would be found before that of the system.
    for line in ["python3 tools/notify.py", "make notify", "make -s notify"] {
        check_unconfined(line, FILES, &["tools/notify.py", "tools/helper.py", "tools/json.py"]);
    }
    check_unconfined("make notify", FILES, &["Makefile"]);
    // What is not there yet may come with the change.
    check_unconfined(
        "test -x ./extra.sh && ./extra.sh; run-parts hooks.d",
        FILES,
        &["extra.sh", "hooks.d/x"],
    );
}

#[test]
fn the_type_profile_of_a_module_is_protected_wherever_the_module_is() {
    for path in [".type-profile.md", "AiTasks/auth/.type-profile.md", "TASK/auth/.Type-Profile.md"] {
        assert!(landfall_model::gaming::is_protected(path), "{path}");
    }
    assert!(!landfall_model::gaming::is_protected("AiTasks/auth/.target.md"));
}
