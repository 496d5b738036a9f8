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

/// What the commands of `init` may copy from the base, and what that depends on.
fn check_installs(files: &[(&str, &str)], expected: Option<(&str, &[&str])>) {
    let place = TestEnvironment::new();
    for (name, text) in files {
        place.write(name, text);
    }
    place.commit("a project");
    let found: InitFound = place.json(&["init", "--no-check"]);
    let copied: Vec<_> = found.commands.iter().filter(|command| !command.installs.is_empty()).collect();
    match expected {
        None => assert!(copied.is_empty(), "{files:?}: {copied:?}"),
        Some((folder, sources)) => {
            assert_eq!(copied.len(), 1, "{files:?}");
            assert_eq!(copied[0].installs, [folder], "{files:?}");
            assert_eq!(copied[0].installs_from, sources, "{files:?}");
        }
    }
    place.landfall(&["add", "x"]).works(); // the settings are understood
}

#[test]
fn installations_that_depend_on_the_lock_file_alone_may_be_copied() {
    let ignored = (".gitignore", "node_modules\n.venv\n.tox\n");
    let package = |more: &str| {
        format!(r#"{{ "scripts": {{ "test": "jest"{more} }}, "devDependencies": {{ "jest": "^29" }} }}"#)
    };
    let (plain, with_script) = (package(""), package(r#", "postinstall": "node build.js""#));
    let lock = ("package-lock.json", "{}");
    let npm = Some(("node_modules", &["package.json", "package-lock.json", ".npmrc"][..]));
    check_installs(&[("package.json", &plain), lock, ignored], npm);
    check_installs(&[("package.json", &with_script), lock, ignored], None);
    check_installs(&[("package.json", &plain), lock], None);
    let local = plain.replace("^29", "file:./jest");
    check_installs(&[("package.json", &local), lock, ignored], None);

    let pytest = ("pytest.ini", "[pytest]\n");
    let uv = Some((".venv", &["pyproject.toml", "uv.lock", "uv.toml", ".python-version"][..]));
    check_installs(&[pytest, ("pyproject.toml", "[project]\n"), ("uv.lock", "x"), ignored], uv);
    check_installs(&[pytest, ("pyproject.toml", "[build-system]\n"), ("uv.lock", "x"), ignored], None);
    let sources = "[tool.uv.sources]\nx = { path = \"libs/x\" }\n";
    check_installs(&[pytest, ("pyproject.toml", sources), ("uv.lock", "x"), ignored], None);
    let sources = sources.replace("path = ", "path=");
    check_installs(&[pytest, ("pyproject.toml", &sources), ("uv.lock", "x"), ignored], None);

    let requirements = |text: &'static str| [pytest, ("requirements.txt", text), ignored];
    let pip =
        [&["requirements.txt", ".python-version"][..], &["requirements/base.txt", "limits.txt"]].concat();
    check_installs(
        &requirements("pytest==8\n--index-url https://pip.example/simple\n"),
        Some((".venv", &pip[..2])),
    );
    for own in [
        "-e ./libs/x",
        "-e .",
        "libs/x",
        "../x",
        "x-1.0-py3-none-any.whl",
        "--find-links wheels",
        "-f wheels",
        "-r ${LIST}",
        "-r missing.txt",
        "-r ../outside.txt",
        "x @ file:libs/x",
    ] {
        check_installs(&[pytest, ("requirements.txt", &format!("pytest==8\n{own}\n")), ignored], None);
    }
    // Lists that include others, wherever those are.
    let base =
        ("requirements/base.txt", "requests==2 \\\n  --hash=sha256:00\n--constraint=../limits.txt # all\n");
    let limits = ("limits.txt", "urllib3<3\n");
    for include in
        ["-r requirements/base.txt", "-rrequirements/base.txt", "--requirement=requirements/base.txt"]
    {
        let text = format!("{include}\npytest\n");
        check_installs(&[pytest, ("requirements.txt", &text), base, limits, ignored], Some((".venv", &pip)));
    }
    let included = [pytest, ("requirements.txt", "-r requirements/base.txt\npytest\n"), limits, ignored];
    let with_base = |text| [&included[..], &[("requirements/base.txt", text)]].concat();
    check_installs(&with_base("-e ../libs/x\n"), None);
    check_installs(&with_base("-c ../limits.txt\n-r ../gone.txt\n"), None);

    let tox = ("tox.ini", "[testenv]\ndeps = pytest\ncommands = pytest\n");
    let of_tox = Some((".tox", &["tox.ini", "pyproject.toml", "setup.cfg", "setup.py"][..]));
    check_installs(&[tox, ignored], of_tox);
    check_installs(&[tox], None);
    let text = "[testenv]\ndeps =\n  pytest\n  lint: -r requirements/base.txt\ncommands = pytest libs/x\n";
    let of_tox =
        [of_tox.map_or(&[][..], |(_, files)| files), &["requirements/base.txt", "limits.txt"]].concat();
    check_installs(&[("tox.ini", text), base, limits, ignored], Some((".tox", &of_tox)));
    for own in ["libs/x", "-rgone.txt", "{env:LIST}"] {
        let text = format!("[testenv]\ndeps =\n  pytest\n  {own}\ncommands = pytest\n");
        check_installs(&[("tox.ini", &text), ignored], None);
    }
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
