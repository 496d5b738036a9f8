//! Files that a check uses without naming them on its line: what its tools load, and what its programs run.

use landfall_model::gaming::{ChangedFile, InputScope, ProtectedInput, find_concerns};

use crate::test_protected::{Files, change, trace};

/// What a change of files asks a review for, with the codes that tests do not count here.
fn found(line: &str, base: Files<'_>, changed: &[ChangedFile]) -> Vec<String> {
    let found = find_concerns(changed, &trace(line, base), None, None, None);
    found.iter().map(ToString::to_string).collect()
}

/// The change of one file of the base is shown.
fn check_seen(line: &str, base: Files<'_>, path: &str, after: &str) {
    let before = base.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text);
    let found = found(line, base, &[change(path, before, after)]);
    assert!(!found.is_empty(), "{line}: a change of {path} to {after:?} is not seen");
}

/// The change of one file of the base lands by itself.
fn check_unseen(line: &str, base: Files<'_>, path: &str, after: &str) {
    let before = base.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text);
    let found = found(line, base, &[change(path, before, after)]);
    assert!(found.is_empty(), "{line}: a change of {path} to {after:?} asks for a review: {found:?}");
}

#[test]
fn plugins_that_pytest_loads_by_name_are_protected() {
    let plugin = "def pytest_collection_modifyitems(items):\n    pass\n";
    let empty = "def pytest_collection_modifyitems(items):\n    items.clear()\n";
    let conftest = ("conftest.py", "pytest_plugins = [\n    \"support.collect\",\n]\n");
    check_seen("pytest -q", &[conftest, ("support/collect.py", plugin)], "support/collect.py", empty);
    let of_tests = ("tests/conftest.py", "from support.hooks import *\n");
    check_seen("pytest -q", &[of_tests, ("support/hooks.py", plugin)], "support/hooks.py", empty);
    let hook = ("conftest.py", "from support.hooks import pytest_collection_modifyitems\n");
    check_seen("pytest -q", &[hook, ("support/hooks.py", plugin)], "support/hooks.py", empty);
    let product = ("conftest.py", "import pytest\nfrom shop.app import create_app\n");
    check_unseen("pytest -q", &[product, ("shop/app.py", plugin)], "shop/app.py", "x = 1\n");
    for line in ["pytest -p collect", "python3 -m pytest -pcollect", "uv run pytest -p collect"] {
        check_seen(line, &[("collect.py", plugin)], "collect.py", empty);
    }
    for (settings, text) in [
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = [\"-p\", \"collect\"]\n"),
        ("pytest.ini", "[pytest]\naddopts = -q -p collect\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -p collect\n"),
        ("tox.ini", "[pytest]\naddopts = -pcollect\n"),
    ] {
        check_seen("pytest", &[(settings, text), ("collect.py", plugin)], "collect.py", empty);
    }
}

#[test]
fn what_python_loads_in_place_of_a_source_is_protected() {
    for path in [
        "calc.dist-info/entry_points.txt",
        "src/calc.egg-info/entry_points.txt",
        "__pycache__/test_calc.cpython-312.pyc",
        "tests/__pycache__/test_calc.cpython-312-pytest-8.3.4.pyc",
        "packaging/__init__.py",
        "pygments.py",
        "exceptiongroup.py",
        "_strptime.py",
        "hatch_build.py",
    ] {
        check_seen("python3 -m pytest", &[], path, "x = 1\n");
    }
    // A link in the place of a package.
    let link = ChangedFile { after: None, ..change("unittest", "", "tools/fake\n") };
    assert!(!found("python3 -m unittest", &[], &[link]).is_empty(), "a link to a package is not seen");
    check_seen(
        "python3 manage.py test",
        &[("shop/settings.py", "A = 1\n")],
        "shop/settings.py",
        "A = 1\nTEST_RUNNER = \"shop.runner.Quiet\"\n",
    );
    let setup = ("setup.py", "from setuptools import setup\nsetup(name=\"calc\", version=\"1.0\")\n");
    check_unseen(
        "pip install . && pytest",
        &[setup],
        "setup.py",
        "from setuptools import setup\nsetup(name=\"calc\", version=\"1.1\")\n",
    );
    check_seen(
        "pip install . && pytest",
        &[setup],
        "setup.py",
        "from setuptools import setup\nopen(\"sitecustomize.py\", \"w\").write(\"\")\nsetup(name=\"calc\", version=\"1.0\")\n",
    );
}

#[test]
fn a_library_of_python_from_another_place_is_shown() {
    let base = ("pyproject.toml", "[project]\nname = \"calc\"\ndependencies = [\"numpy\"]\n");
    for more in [
        "[tool.uv.sources]\npytest = { path = \"tools/pytest\" }\n",
        "[tool.uv]\noverride-dependencies = [\"pytest @ file:tools/pytest\"]\n",
        "[[tool.uv.index]]\nurl = \"https://example.com\"\n",
        "[tool.poetry.dependencies]\npytest = { path = \"tools/pytest\" }\n",
        "[tool.poetry.group.dev.dependencies]\npytest = { git = \"https://example.com/p\" }\n",
        "[tool.hatch.build.hooks.custom]\n",
    ] {
        check_seen("uv run pytest", &[base], "pyproject.toml", &format!("{}{more}", base.1));
    }
    check_unseen(
        "uv run pytest",
        &[base],
        "pyproject.toml",
        &base.1.replace("\"numpy\"", "\"numpy\", \"requests\""),
    );
    let list = ("requirements-dev.txt", "pytest==8.0\n");
    for line in
        ["pytest @ file:tools/pytest", "-e tools/pytest", "./tools/pytest", "--index-url https://example.com"]
    {
        check_seen("pytest", &[list], "requirements-dev.txt", &format!("{line}\n"));
    }
    check_unseen("pytest", &[list], "requirements-dev.txt", "pytest==8.1\nnumpy>=2\n");
}

#[test]
fn a_locked_package_that_comes_from_elsewhere_is_shown() {
    let npm = (
        "package-lock.json",
        "{\n\"packages\": {\n\"node_modules/jest\": {\n\"version\": \"29.0.0\",\n\"resolved\": \"https://registry.npmjs.org/jest/-/jest-29.0.0.tgz\"\n}\n}\n}\n",
    );
    let registry = "https://registry.npmjs.org/jest/-/jest-29.0.0.tgz";
    for other in ["file:tools/jest.tgz", "https://example.com/jest.tgz", "tools/jest"] {
        check_seen("npm ci && npm test", &[npm], "package-lock.json", &npm.1.replace(registry, other));
    }
    check_seen("npm ci", &[npm], "npm-shrinkwrap.json", &npm.1.replace(registry, "tools/jest"));
    check_unseen("npm ci", &[npm], "package-lock.json", &npm.1.replace("29.0.0", "29.1.0"));
    let member = npm.1.replace(
        "\"node_modules/jest\"",
        "\"node_modules/web\": {\n\"resolved\": \"packages/web\",\n\"link\": true\n},\n\"node_modules/jest\"",
    );
    check_unseen("npm ci", &[npm], "package-lock.json", &member);
    let uv = (
        "uv.lock",
        "[[package]]\nname = \"pytest\"\nversion = \"8.0\"\nsource = { registry = \"https://pypi.org/simple\" }\n",
    );
    let old = "source = { registry = \"https://pypi.org/simple\" }";
    check_seen(
        "uv run pytest",
        &[uv],
        "uv.lock",
        &uv.1.replace(old, "source = { directory = \"tools/pytest\" }"),
    );
    check_unseen("uv run pytest", &[uv], "uv.lock", &uv.1.replace("8.0", "8.1"));
    let cargo = (
        "Cargo.lock",
        "[[package]]\nname = \"insta\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n",
    );
    let other = cargo
        .1
        .replace("registry+https://github.com/rust-lang/crates.io-index", "git+https://example.com/insta");
    check_seen("cargo test", &[cargo], "Cargo.lock", &other);
    check_unseen(
        "cargo test",
        &[cargo],
        "Cargo.lock",
        &format!("{}\n[[package]]\nname = \"web\"\nversion = \"0.1.0\"\n", cargo.1),
    );
}

#[test]
fn targets_and_profiles_of_cargo_that_switch_tests_off_are_shown() {
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
    let base: Files<'_> = &[("Cargo.toml", manifest)];
    for more in [
        "[[bin]]\nname = \"calc\"\ntest = false\n",
        "[[bin]]\nname = \"calc\"\nharness = false\n",
        "[[example]]\nname = \"calc\"\ntest = false\n",
        "[profile.dev.package.calc]\ndebug-assertions = false\n",
        "[profile.dev.package.\"*\"]\noverflow-checks = false\n",
    ] {
        check_seen("cargo test", base, "Cargo.toml", &format!("{manifest}{more}"));
    }
    check_seen(
        "cargo test",
        base,
        "Cargo.toml",
        &manifest.replace("tokio = \"1\"", "tokio = { path = \"fake\" }"),
    );
    check_unseen(
        "cargo test",
        base,
        "Cargo.toml",
        &format!("{manifest}[[bin]]\nname = \"more\"\npath = \"src/more.rs\"\n"),
    );
    check_unseen("cargo test", base, "Cargo.toml", &format!("{manifest}web = {{ path = \"web\" }}\n"));
    check_unseen(
        "cargo test",
        base,
        "Cargo.toml",
        &manifest.replace("tokio = \"1\"", "tokio = { version = \"1.2\", features = [\"rt\"] }"),
    );
    for (line, path) in [
        ("cargo fmt --check", "rustfmt.toml"),
        ("cargo fmt --check", ".rustfmt.toml"),
        ("cargo deny check", "deny.toml"),
    ] {
        check_seen(line, &[], path, "ignore = [\"src\"]\n");
        check_unseen("cargo test", &[], path, "ignore = [\"src\"]\n");
    }
}

#[test]
fn programs_that_package_managers_and_version_managers_load_are_protected() {
    for path in [
        ".yarn/releases/yarn-4.1.0.cjs",
        ".yarn/plugins/fake.cjs",
        ".yarn/patches/jest-npm-29.patch",
        ".pnp.cjs",
        ".pnp.loader.mjs",
        "patches/jest+29.7.0.patch",
        ".tool-versions",
        ".config/mise.toml",
        ".mise.local.toml",
        ".python-version",
        ".nvmrc",
        ".node-version",
    ] {
        check_seen("npm test", &[], path, "x\n");
    }
    let list = ("pnpm-workspace.yaml", "packages:\n  - web\n");
    check_seen(
        "pnpm test",
        &[list],
        "pnpm-workspace.yaml",
        "packages:\n  - web\noverrides:\n  jest: link:./tools/jest\n",
    );
    check_seen(
        "pnpm test",
        &[list],
        "pnpm-workspace.yaml",
        "packages:\n  - web\npatchedDependencies:\n  jest: patches/jest\n",
    );
    check_unseen("pnpm test", &[list], "pnpm-workspace.yaml", "packages:\n  - web\n  - api\n");
    let package = ("package.json", "{\"scripts\": {\"test\": \"jest\"}}");
    check_seen(
        "npm test",
        &[package],
        "package.json",
        "{\"scripts\": {\"test\": \"jest\"}, \"pnpm\": {\"overrides\": {\"jest\": \"link:x\"}}}",
    );
    check_seen("gulp test", &[], "gulpfile.js", "exports.test = done => done();\n");
    check_seen("npx grunt test", &[], "Gruntfile.js", "module.exports = () => {};\n");
}

#[test]
fn scripts_that_settings_and_programs_of_the_check_name_are_followed() {
    let script = ("scripts/unit-check.sh", "python3 -m unittest\n");
    for (line, path, text) in [
        ("tox", "tox.ini", "[testenv]\ncommands = sh scripts/unit-check.sh\n"),
        ("nox", "noxfile.py", "def tests(session):\n    session.run(\"sh\", \"scripts/unit-check.sh\")\n"),
        ("task test", "Taskfile.yml", "tasks:\n  test:\n    cmds:\n      - sh ./scripts/unit-check.sh\n"),
        ("pre-commit run --all", ".pre-commit-config.yaml", "    entry: sh scripts/unit-check.sh\n"),
        (
            "cargo test",
            ".cargo/config.toml",
            "[target.'cfg(all())']\nrunner = [\"sh\", \"scripts/unit-check.sh\"]\n",
        ),
        ("cargo make test", "Makefile.toml", "[tasks.test]\nscript = \"sh scripts/unit-check.sh\"\n"),
        ("cargo nextest run", ".config/nextest.toml", "command = 'sh scripts/unit-check.sh'\n"),
        ("poe test", "pyproject.toml", "[tool.poe.tasks]\ntest = \"sh scripts/unit-check.sh\"\n"),
        (
            "hatch run test",
            "pyproject.toml",
            "[tool.hatch.envs.default.scripts]\ntest = \"sh scripts/unit-check.sh\"\n",
        ),
        ("docker compose run test", "compose.yml", "    command: sh scripts/unit-check.sh\n"),
        (
            "python3 ci/check.py",
            "ci/check.py",
            "import subprocess\nsubprocess.run([\"sh\", \"scripts/unit-check.sh\"], check=True)\n",
        ),
        (
            "node ci/check.js",
            "ci/check.js",
            "require('child_process').execSync('sh scripts/unit-check.sh');\n",
        ),
        ("cargo xtask ci", "xtask/src/main.rs", "fn main() { run(\"sh\", &[\"scripts/unit-check.sh\"]) }\n"),
        ("sh ci.sh", "ci.sh", "UNIT=scripts/unit-check.sh\nsh \"$UNIT\"\n"),
        ("sh ci.sh", "ci.sh", "for part in scripts/unit-check.sh scripts/b.sh; do sh \"$part\"; done\n"),
    ] {
        check_seen(line, &[(path, text), script], script.0, "true\n");
        check_unseen(line, &[(path, text), script, ("greet.sh", "echo a\n")], "greet.sh", "echo b\n");
    }
}

#[test]
fn scripts_that_a_check_finds_by_a_pattern_are_protected() {
    let script = ("checks/unit.sh", "python3 -m unittest\n");
    for line in [
        "for file in checks/*.sh; do sh \"$file\" || exit 1; done",
        "run-parts checks",
        "find checks -name '*.sh' -exec sh {} ';'",
        "ls checks/*.sh | xargs -n 1 sh",
    ] {
        check_seen(line, &[script], script.0, "true\n");
        check_seen(&format!("sh ci.sh # {line}"), &[script, ("ci.sh", line)], script.0, "true\n");
    }
    check_unseen(
        "for file in src/*.sh; do sh -n \"$file\"; done",
        &[("src/greet.sh", "a\n")],
        "src/greet.sh",
        "b\n",
    );
}

#[test]
fn a_program_that_comes_before_the_one_of_the_check_is_shown() {
    let script = ("ci.sh", "PATH=\"$PWD/tools:$PATH\"\nexport PATH\npytest -q\n");
    check_seen("sh ci.sh", &[script], "tools/pytest", "#!/bin/sh\nexit 0\n");
    check_seen("PATH=tools:$PATH pytest -q", &[], "tools/pytest", "#!/bin/sh\nexit 0\n");
    check_unseen("sh ci.sh", &[script], "tools/greet", "#!/bin/sh\necho\n");
    let makefile = ("Makefile", "export PATH := $(CURDIR)/tools:$(PATH)\n.PHONY: test\ntest:\n\tpytest -q\n");
    check_seen("make test", &[makefile], "tools/python3", "#!/bin/sh\nexit 0\n");
}

#[test]
fn a_folder_in_the_place_of_a_target_is_shown() {
    let mut inputs = trace("make check", &[("Makefile", "check:\n\tsh run.sh\n")]);
    let target = inputs.iter().find(|input| input.scope == InputScope::Absent).cloned().expect("a target");
    // The engine adds this where the base has no such folder.
    inputs.push(ProtectedInput { path: format!("{}/*", target.path), ..target });
    let found = |path: &str| find_concerns(&[change(path, "", "later\n")], &inputs, None, None, None).len();
    assert_eq!((found("check/notes.txt"), found("checked/notes.txt")), (1, 0));
}

#[test]
fn variables_that_steer_a_runner_are_shown_in_files_of_variables() {
    let base: Files<'_> = &[("ci.sh", "set -a\n. ./.env\npytest\n"), (".env", "PORT=1\n")];
    for line in [
        "PYTEST_ADDOPTS=-k nothing",
        "export NODE_OPTIONS=--require=./x.js",
        "GOFLAGS='-run=^$'",
        "MAKEFLAGS=-n",
        "PATH=tools",
    ] {
        check_seen("sh ci.sh", base, ".env", &format!("PORT=1\n{line}\n"));
    }
    check_unseen("sh ci.sh", base, ".env", "PORT=2\nHOST=x\n");
    check_seen(
        "uv run --env-file ci.env pytest",
        &[("ci.env", "A=1\n")],
        "ci.env",
        "A=1\nPYTEST_ADDOPTS=--co\n",
    );
    let sourced: Files<'_> = &[("ci.sh", ". ./vars.sh\npytest\n"), ("vars.sh", "A=1\n")];
    check_seen("sh ci.sh", sourced, "vars.sh", "A=1\nexport PYTEST_ADDOPTS=--co\n");
    check_unseen("sh ci.sh", sourced, "vars.sh", "A=2\n");
}

#[test]
fn settings_of_every_forge_are_protected() {
    for path in [
        ".github/actions/test/action.yml",
        ".gitea/workflows/ci.yml",
        ".forgejo/workflows/ci.yml",
        ".woodpecker.yml",
        ".woodpecker/test.yml",
        ".drone.yml",
        ".cirrus.yml",
        "bitbucket-pipelines.yml",
        "appveyor.yml",
        ".gitlab/ci/test.yml",
    ] {
        check_seen("true", &[], path, "x\n");
    }
}

#[test]
fn attributes_count_where_the_check_exports_the_tree() {
    let line = "git archive HEAD | tar -x -C out && make -C out test";
    check_seen(line, &[], ".gitattributes", "tests/** export-ignore\n");
    check_unseen("make test", &[], ".gitattributes", "*.png binary\n");
}

#[test]
fn a_file_that_a_script_compares_with_is_protected() {
    let base: Files<'_> = &[
        ("ci.sh", "sh greet.sh > out.txt\ndiff -u out.txt data/greeting.txt\n"),
        ("data/greeting.txt", "Hello\n"),
        ("greet.sh", "echo Hello\n"),
    ];
    check_seen("sh ci.sh", base, "data/greeting.txt", "Bye\n");
    check_unseen("sh ci.sh", base, "data/names.txt", "Ada\n");
    let product: Files<'_> = &[("ci.sh", "cmp greet.sh greet.py\n"), ("greet.py", "a\n")];
    check_unseen("sh ci.sh", product, "greet.py", "b\n");
}

#[test]
fn a_module_that_is_not_built_any_more_is_shown() {
    let base: Files<'_> = &[("src/lib.rs", "pub mod extra;\nmod more;\n")];
    check_seen("cargo test", base, "src/lib.rs", "mod more;\n");
    check_seen("cargo test", base, "src/lib.rs", "#[path = \"other.rs\"]\npub mod extra;\nmod more;\n");
    check_unseen("cargo test", base, "src/lib.rs", "mod extra;\nmod more;\nmod other;\n");
    let text = "fn f() {}\n";
    let removed = [change("src/lib.rs", "pub mod extra;\n", "fn g() {}\n"), change("src/extra.rs", text, "")];
    assert_eq!(found("cargo test", &[], &removed), [""; 0]);
    let inlined = [
        change("src/lib.rs", "pub mod extra;\n", "pub mod extra {}\n"),
        change("src/extra/mod.rs", text, ""),
    ];
    assert_eq!(found("cargo test", &[], &inlined), [""; 0]);
}
