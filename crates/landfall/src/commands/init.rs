//! `landfall init`: finds out what it can and writes `landfall.toml`.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use landfall_api::taskfile::quoted;
use landfall_api::{InitAgent, InitCommand, InitFound};

use crate::house::{USER_FILE_BYTES_MAX, read_user_file};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house;
use crate::say::{clean, talk};

/// Detect how the project is tested and write `landfall.toml`
///
/// Detects the base branch, the checks (Cargo, npm, pytest, Go, Make) and the installed agents. Asks no questions. An existing
/// `landfall.toml` stays unchanged.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &Context) -> Result<Exit, Failure> {
    if context.at.base.is_some() {
        return Err(Failure::usage("`--base` is for work that lands on another base than the project's")
            .hint("check the branch out that the project is to land on, and leave `--base` out"));
    }
    let project = house::project(&context.at)?;
    let commands = detect(&project.root);
    let agent = agent();
    let caches = caches(&project.root);
    let path = project.root.join("landfall.toml");
    let written = write(&path, &settings(&project.branch, &commands, agent.as_ref(), &caches))?;
    if written {
        // Whoever has them written wants them. Otherwise the first run asks.
        if let Err(problem) = house::trust_own_settings(&context.at) {
            talk(&format!("the settings are not trusted yet: {problem}; `landfall trust` asks"));
        }
    }
    let level = house::sandbox_level(&project.root);
    let found = InitFound {
        sandbox: level.word().to_owned(),
        sandbox_leaves_open: level.leaves_open().iter().map(|&open| open.to_owned()).collect(),
        root: project.root.display().to_string(),
        base: project.branch,
        commands,
        agent,
        caches,
        file: path.display().to_string(),
        written,
    };
    context.answer(&found, text)?;
    if found.written {
        match &found.agent {
            Some(agent) => talk(&format!(
                "`landfall agents --probe` tries whether it answers; to log in: {}",
                agent.login
            )),
            None => talk(
                "no agent was found, so the scripted one is set, which does only what a script says; `landfall agents` says \
                 which agents there are and how to install them",
            ),
        }
        talk(
            "next: commit landfall.toml (checks are read from the base branch), then `landfall add \"…\"` and `landfall run`",
        );
    }
    Ok(Exit::Ok)
}

fn text(found: &InitFound) -> String {
    let file = clean(&found.file);
    if !found.written {
        return format!("{file} is there already; nothing was changed\n");
    }
    let mut text = format!("wrote {file}\nbase   {}\n", clean(&found.base));
    for command in &found.commands {
        text += &format!("check  {} (found in {})\n", clean(&command.run), clean(&command.found_in));
    }
    match &found.agent {
        Some(agent) => text += &format!("agent  {} ({})\n", clean(&agent.kind), clean(&agent.path)),
        None => text += "agent  none found: the scripted one is set for now\n",
    }
    let open = found.sandbox_leaves_open.join("; ");
    text += &format!("sandbox  level {}; it leaves open: {}\n", clean(&found.sandbox), clean(&open));
    if found.commands.is_empty() {
        text += "check  none found: without one nothing is proved; name your test command under [[verify.command]]\n";
    }
    text
}

/// Writes the file unless one is there. It is whole or not there at all.
fn write(path: &Path, text: &str) -> Result<bool, Failure> {
    let fail = |error: std::io::Error| {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                Exit::Machine
            }
            _ => Exit::Internal,
        };
        Failure::new(code, format!("write `{}`: {error}", path.display()))
    };
    let mut file = match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(fail(error)),
    };
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        drop(fs::remove_file(path)); // ours, made a moment ago; the error below is what matters
        return Err(fail(error));
    }
    Ok(true)
}

/// The first ready-made agent that is installed.
fn agent() -> Option<InitAgent> {
    let (kind, path, login) = house::installed_agent()?;
    Some(InitAgent { kind, path: path.display().to_string(), login })
}

/// Where the tools of the project keep what they download: outside of the workspace, so each run gets changes of its own.
fn caches(root: &Path) -> Vec<String> {
    let is = |file: &str| root.join(file).is_file();
    let mut caches: Vec<&str> = Vec::new();
    if is("Cargo.toml") {
        caches.extend(["~/.cargo/registry", "~/.cargo/git"]);
    }
    if is("package.json") {
        caches.push(match () {
            () if is("pnpm-lock.yaml") => "~/.local/share/pnpm",
            () if is("yarn.lock") => "~/.cache/yarn",
            () if is("bun.lock") || is("bun.lockb") => "~/.bun/install/cache",
            () => "~/.npm",
        });
    }
    if is("go.mod") {
        caches.extend(["~/go/pkg", "~/.cache/go-build"]);
    }
    if ["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "tox.ini"].into_iter().any(is) {
        caches.push(match () {
            () if is("uv.lock") => "~/.cache/uv",
            () if is("poetry.lock") => "~/.cache/pypoetry",
            () => "~/.cache/pip",
        });
        if is("tox.ini") {
            caches.push("~/.local/share/virtualenv");
        }
    }
    caches.into_iter().map(str::to_owned).collect()
}

fn settings(base: &str, commands: &[InitCommand], agent: Option<&InitAgent>, caches: &[String]) -> String {
    let mut text = format!(
        "# Landfall's settings for this project. Every key has a default, so any line may be taken out.\n\
         # Commit this file: the checks are read from the base branch, never from the work they check.\n\
         \n\
         [project]\n\
         base = {}                # work lands on this branch\n\
         # flow = \"loop\"              # how a task is done: `landfall flow list`\n\
         \n\
         # What must pass before anything lands, on a clean checkout of the merged work.\n\
         [verify]\n\
         required = true             # nothing lands unchecked\n",
        quoted(base)
    );
    for command in commands {
        text += &format!(
            "\n[[verify.command]]\nname = {}\nrun = {}\ntimeout = \"10m\"\n",
            quoted(&command.name),
            quoted(&command.run)
        );
    }
    if commands.is_empty() {
        text += "\n# No test command was found. Name yours; until then every task is held at its checks.\n\
                 # [[verify.command]]\n# name = \"tests\"\n# run = \"make test\"\n# timeout = \"10m\"\n";
    }
    text += "\n[run]\n\
             # slots = 3                 # agents at work at once\n\
             # iterations_max = 50       # runs of the agent per task\n\
             # task_limit = \"30m\"        # time per task\n";
    if !caches.is_empty() {
        let list = caches.iter().map(|cache| quoted(cache)).collect::<Vec<_>>().join(", ");
        text += &format!(
            "# Where the tools of this project keep what they download. Agents and checks see these folders and change them only\n\
             # for themselves: nothing of it reaches you, another task or another check.\n\
             caches = [{list}]\n"
        );
    }
    text += "\n# [budget]\n# day_usd = 20               # no agent starts once this much is spent today\n";
    text += &match agent {
        Some(agent) => format!(
            "\n[agent.default]\n\
             kind = {}\n\
             # model = \"…\"               # what the agent itself would take, otherwise\n\
             # style = \"session\"         # goes on with its session instead of beginning anew each time\n",
            quoted(&agent.kind)
        ),
        None => "\n# No agent was found. The scripted one does only what a script in a task's text says; put yours in its place:\n\
                 # `landfall agents` lists the kinds, `kind = \"command\"` with `run` is any program that takes a prompt on stdin.\n\
                 [agent.default]\n\
                 kind = \"script\"\n"
            .to_owned(),
    };
    text
}

/// How the project is tested, from the files at its root. Make is asked last: it often only calls the others.
pub fn detect(root: &Path) -> Vec<InitCommand> {
    let mut found: Vec<InitCommand> =
        [cargo(root), npm(root), pytest(root), go(root)].into_iter().flatten().collect();
    if found.is_empty() {
        found = make(root);
    }
    // Two kinds in one repository would both be called `tests`; the file that gave them away tells them apart.
    let tests = found.iter().filter(|it| it.name == "tests").count();
    if tests > 1 {
        for it in found.iter_mut().filter(|it| it.name == "tests") {
            it.name = format!("tests ({})", it.found_in);
        }
    }
    found
}

fn command(name: &str, run: &str, found_in: &str) -> InitCommand {
    InitCommand { name: name.to_owned(), run: run.to_owned(), found_in: found_in.to_owned() }
}

fn cargo(root: &Path) -> Vec<InitCommand> {
    let Some(text) = small(&root.join("Cargo.toml")) else { return Vec::new() };
    let workspace = text.lines().any(|line| line.trim().starts_with("[workspace"));
    let run = if workspace { "cargo test --workspace" } else { "cargo test" };
    vec![command("tests", run, "Cargo.toml")]
}

fn npm(root: &Path) -> Vec<InitCommand> {
    let Some(text) = small(&root.join("package.json")) else { return Vec::new() };
    let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let test = package["scripts"]["test"].as_str().unwrap_or_default();
    if test.is_empty() || test.contains("no test specified") {
        return Vec::new(); // what `npm init` writes always fails
    }
    // Checks run on a clean checkout, where nothing is installed yet.
    let (install, run, lock) = if root.join("pnpm-lock.yaml").is_file() {
        (Some("pnpm install --frozen-lockfile"), "pnpm test", "pnpm-lock.yaml")
    } else if root.join("yarn.lock").is_file() {
        (Some("yarn install --frozen-lockfile"), "yarn test", "yarn.lock")
    } else if root.join("bun.lock").is_file() || root.join("bun.lockb").is_file() {
        (Some("bun install --frozen-lockfile"), "bun run test", "bun.lock")
    } else if root.join("package-lock.json").is_file() {
        (Some("npm ci"), "npm test", "package-lock.json")
    } else {
        (None, "npm test", "package.json")
    };
    let install = install.map(|run| command("install", run, lock));
    install.into_iter().chain([command("tests", run, "package.json")]).collect()
}

fn pytest(root: &Path) -> Vec<InitCommand> {
    let says = |file: &str, word: &str| small(&root.join(file)).is_some_and(|text| text.contains(word));
    let found_in = if root.join("pytest.ini").is_file() {
        "pytest.ini"
    } else if says("pyproject.toml", "pytest") {
        "pyproject.toml"
    } else if says("setup.cfg", "[tool:pytest]") {
        "setup.cfg"
    } else if says("tox.ini", "pytest") {
        "tox.ini"
    } else if says("requirements-dev.txt", "pytest") {
        "requirements-dev.txt"
    } else if says("requirements.txt", "pytest") {
        "requirements.txt"
    } else if root.join("conftest.py").is_file() {
        "conftest.py"
    } else if has_python_tests(&root.join("tests")) {
        "tests/"
    } else {
        return Vec::new();
    };
    let run = if root.join("uv.lock").is_file() {
        "uv run pytest"
    } else if root.join("poetry.lock").is_file() {
        "poetry run pytest"
    } else {
        "python3 -m pytest"
    };
    vec![command("tests", run, found_in)]
}

fn has_python_tests(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().take(1000).any(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with("test_") && name.ends_with(".py"))
    })
}

fn go(root: &Path) -> Vec<InitCommand> {
    if root.join("go.mod").is_file() { vec![command("tests", "go test ./...", "go.mod")] } else { Vec::new() }
}

fn make(root: &Path) -> Vec<InitCommand> {
    for file in ["GNUmakefile", "makefile", "Makefile"] {
        let Some(text) = small(&root.join(file)) else { continue };
        for target in ["test", "check"] {
            let rule = |line: &str| {
                let rest = line.strip_prefix(target).map(str::trim_start);
                rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
            };
            if text.lines().any(rule) {
                return vec![command("tests", &format!("make {target}"), file)];
            }
        }
    }
    Vec::new()
}

/// The text of a file of a size that people write.
fn small(path: &Path) -> Option<String> {
    String::from_utf8(read_user_file(path, USER_FILE_BYTES_MAX).ok()?).ok()
}
