//! `init` finds out how a project is tested, and never changes a file that is there.

use landfall_api::InitFound;

use crate::support::TestEnvironment;

fn check(files: &[(&str, &str)], expected: &[&str]) {
    let place = TestEnvironment::new();
    for (name, text) in files {
        place.write(name, text);
    }
    place.commit("a project");
    let found: InitFound = place.json(&["init", "--no-check"]);
    let runs: Vec<&str> = found.commands.iter().map(|command| command.run.as_str()).collect();
    assert_eq!(runs, expected, "{files:?}");
    assert_eq!((found.base.as_str(), found.written), ("main", true));
    // What was written is understood by the engine.
    place.commit("settings");
    place.landfall(&["add", "x"]).works();
    let names: std::collections::BTreeSet<&str> = found.commands.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names.len(), found.commands.len(), "each check has its own name");
}

#[test]
fn cargo_is_recognised() {
    check(&[("Cargo.toml", "[package]\nname = \"x\"\n")], &["cargo test"]);
    check(
        &[("Cargo.toml", "[workspace]\nmembers = []\n"), ("Makefile", "test:\n\tcargo test\n")],
        &["cargo test --workspace"],
    );
}

#[test]
fn npm_is_recognised() {
    let package = r#"{ "scripts": { "test": "node --test" } }"#;
    check(&[("package.json", package)], &["npm test"]);
    let ignored = (".gitignore", "/node_modules/\n");
    let lock = ("package-lock.json", "{}");
    check(
        &[("package.json", package), lock, ignored],
        &["npm ci --prefer-offline --no-audit --no-fund", "npm test"],
    );
    check(&[("package.json", package), lock], &["npm ci --prefer-offline --no-audit --no-fund && npm test"]);
    check(&[("package.json", package), (".gitignore", "package-lock.json\n"), lock], &["npm test"]);
    check(
        &[("package.json", package), ("pnpm-lock.yaml", ""), ignored],
        &["pnpm install --frozen-lockfile", "pnpm test"],
    );
    let nothing = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1" } }"#;
    check(&[("package.json", nothing)], &[]);
    check(&[("package.json", "not json")], &[]);
}

#[test]
fn pytest_is_recognised() {
    check(&[("pyproject.toml", "[tool.pytest.ini_options]\n")], &["python3 -m pytest"]);
    check(&[("tests/test_it.py", "def test_it(): pass\n")], &["python3 -m pytest"]);
    check(
        &[("pytest.ini", "[pytest]\n"), ("uv.lock", "x\n")],
        &["uv sync --frozen", "uv run --frozen pytest"],
    );
    check(&[("tox.ini", "[testenv]\ncommands = pytest\n")], &["tox run"]);
    let ignored = (".gitignore", ".venv\n");
    check(
        &[("requirements.txt", "pytest==8 --hash=sha256:00\n"), ignored],
        &[
            "python3 -m venv .venv && .venv/bin/pip install --quiet --no-compile --require-hashes -r requirements.txt",
            ".venv/bin/python -m pytest",
        ],
    );
    check(&[("pyproject.toml", "[project]\nname = \"x\"\n")], &[]);
}

#[test]
fn go_is_recognised() {
    check(&[("go.mod", "module example.invalid/x\n")], &["go test ./..."]);
}

#[test]
fn make_is_recognised() {
    check(&[("Makefile", ".PHONY: test\ntest: build\n\t./run-tests\n")], &["make test"]);
    check(&[("Makefile", "check:\n\ttrue\n")], &["make check"]);
    check(&[("Makefile", "test := 1\nall:\n\ttrue\n")], &[]);
}

#[test]
fn two_kinds_in_one_repository_are_both_tested() {
    let package = r#"{ "scripts": { "test": "node --test" } }"#;
    check(&[("Cargo.toml", "[package]\n"), ("package.json", package)], &["cargo test", "npm test"]);
}

#[test]
fn a_file_that_is_there_is_left_as_it_is() {
    let place = TestEnvironment::new();
    place.write("landfall.toml", "# mine\n");
    let said = place.landfall(&["init"]).works();
    assert!(said.out.contains("there already; nothing was changed"), "{said:?}");
    let text = std::fs::read_to_string(place.project().join("landfall.toml")).expect("still there");
    assert_eq!(text, "# mine\n");
    let found: InitFound = place.json(&["init"]);
    assert!(!found.written);
}

#[test]
fn the_file_goes_to_the_root_and_names_the_branch() {
    let place = TestEnvironment::new();
    place.git(&["checkout", "--quiet", "-b", "work/in-progress"]);
    place.write("deep/down/x", "");
    let mut command = place.command(&["-C", "down", "init"]);
    command.current_dir(place.project().join("deep"));
    crate::support::finish(command.spawn().expect("it starts"), "").works();
    let text = std::fs::read_to_string(place.project().join("landfall.toml")).expect("at the root");
    let settings: toml::Table = text.parse().expect("TOML");
    assert_eq!(settings["project"]["base"].as_str(), Some("work/in-progress"));
}
