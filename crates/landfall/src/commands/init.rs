//! `landfall init`: finds out what it can and writes `landfall.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use landfall_api::taskfile::quoted;
use landfall_api::{InitAgent, InitCommand, InitFound, ProjectChecked};

use crate::checks::{CheckPrinter, install_hint, result_line, verdict};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house::{self, CheckAsked, USER_FILE_BYTES_MAX, read_user_file};
use crate::live::Interrupts;
use crate::say::{clean, print, print_json, talk};

/// Detect how the project is tested, write `landfall.toml`, and run the checks once
///
/// Detects the base branch, the checks (Cargo, npm, uv, pip, tox, pytest, Go, Make) and the installed agents. Asks no questions.
/// Only files that git tracks count: checks run on a clean checkout. Then each check runs once on the base, in the sandbox, for at
/// most five minutes in all. An existing `landfall.toml` stays unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// Do not run the checks
    #[arg(long)]
    no_check: bool,
}

/// How long the checks may take together: a person waits. `landfall check` has no such limit.
const CHECKS_MAX: Duration = Duration::from_secs(300);

pub fn run(Args { no_check }: Args, context: &Context) -> Result<Exit, Failure> {
    if context.at.base.is_some() {
        return Err(Failure::usage("`--base` is for work that lands on another base than the project's")
            .hint("check the branch out that the project is to land on, and leave `--base` out"));
    }
    let project = house::project(&context.at)?;
    let files = ProjectFiles { root: &project.root, tracked: house::tracked_files(&context.at)? };
    let commands = detect(&files);
    let agents = agents();
    let caches = caches(&files);
    let path = project.root.join("landfall.toml");
    let written = write(&path, &settings(&project.branch, &commands, agents.first(), &caches))?;
    if written {
        // Whoever has them written wants them. Otherwise the first run asks.
        if let Err(problem) = house::trust_own_settings(&context.at) {
            talk(&format!("the settings are not trusted yet: {problem}; `landfall trust` asks"));
        }
    }
    let level = house::sandbox_level(&project.root);
    let mut found = InitFound {
        sandbox: level.word().to_owned(),
        sandbox_leaves_open: level.leaves_open().iter().map(|&open| open.to_owned()).collect(),
        root: project.root.display().to_string(),
        base: project.branch,
        missing_tools: missing_tools(&commands),
        commands,
        agent: agents.first().cloned(),
        agents,
        caches,
        checked: None,
        file: path.display().to_string(),
        written,
    };
    if !context.json {
        print(&text(&found))?;
    }
    let mut is_stopped = false;
    if found.written && !no_check && !found.commands.is_empty() && found.missing_tools.is_empty() {
        let interrupts = Interrupts::listen()?;
        let asked = CheckAsked { limit: Some(CHECKS_MAX), with_own_settings: true, ..CheckAsked::default() };
        let mut printer =
            if context.json { CheckPrinter::silent(&interrupts) } else { CheckPrinter::brief(&interrupts) };
        match house::check(&context.at, &asked, &mut printer) {
            Ok(Some(checked)) => found.checked = Some(checked),
            Ok(None) => is_stopped = true,
            Err(problem) => talk(&format!("the checks did not run: {problem}; `landfall check` tries again")),
        }
    }
    if context.json {
        print_json(&found)?;
    } else if let Some(checked) = &found.checked {
        print(&checked_text(checked))?;
    }
    if found.written && !context.json {
        talk(&next_steps(&found));
    }
    Ok(if is_stopped { Exit::Interrupted } else { Exit::Ok })
}

/// What to do after `init`, in the order in which a person does it.
fn next_steps(found: &InitFound) -> String {
    let mut steps = Vec::new();
    for tool in &found.missing_tools {
        steps.push(match install_hint(tool) {
            Some(how) => format!("install `{}`, which the checks need: `{how}`; then `landfall check`", clean(tool)),
            None => format!("install `{}`, which the checks need; then `landfall check`", clean(tool)),
        });
    }
    match &found.agent {
        Some(agent) => steps.push(format!(
            "`landfall agents --probe` tries whether {} answers; to log in: {}",
            clean(&agent.kind),
            agent.login
        )),
        None => steps.push(
            "set an agent: none was found, so the scripted one is set, which does only what a script says;\n  \
             `landfall agents` lists the agents there are and how to install them"
                .to_owned(),
        ),
    }
    steps.push("commit landfall.toml: checks are read from the base branch".to_owned());
    steps.push("`landfall add \"…\"`, then `landfall run`".to_owned());
    let steps: Vec<String> = steps.iter().map(|step| format!("- {step}")).collect();
    format!("next:\n{}", steps.join("\n"))
}

/// What the checks came to, a line each; the end of the output of what failed, and how to mend it.
fn checked_text(checked: &ProjectChecked) -> String {
    const LINES: usize = 12; // `landfall check` shows all
    let mut text = String::new();
    for command in &checked.commands {
        text += &format!("{}\n", result_line(command));
        let lines: Vec<&str> = command.excerpt.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            text += &format!("  {}\n", clean(line));
        }
    }
    text + &verdict(checked)
}

fn text(found: &InitFound) -> String {
    let file = clean(&found.file);
    if !found.written {
        return format!("{file} is there already; nothing was changed. `landfall check` runs its checks\n");
    }
    let mut text = format!("wrote {file}\nbase    {}\n", clean(&found.base));
    for command in &found.commands {
        text += &format!("check   {} (found in {})\n", clean(&command.run), clean(&command.found_in));
    }
    if found.commands.is_empty() {
        text += "check   none found: name your test command under [[verify.command]];\n        until then no agent starts\n";
    }
    for (place, agent) in found.agents.iter().enumerate() {
        let is_set = if place == 0 { ", set as the default" } else { "" };
        text += &format!("agent   {} ({}{is_set})\n", clean(&agent.kind), clean(&agent.path));
    }
    if found.agents.is_empty() {
        text += "agent   none found: the scripted one is set for now\n";
    }
    text += &format!("sandbox level {}; it leaves open:\n", clean(&found.sandbox));
    for open in &found.sandbox_leaves_open {
        text += &format!("        - {}\n", clean(open));
    }
    text
}

/// The files of the project that a clean checkout has.
struct ProjectFiles<'a> {
    root: &'a Path,
    tracked: BTreeSet<String>,
}

impl ProjectFiles<'_> {
    fn has(&self, file: &str) -> bool {
        self.tracked.contains(file)
    }

    /// The text of a tracked file of a size that people write.
    fn text(&self, file: &str) -> Option<String> {
        if !self.has(file) {
            return None;
        }
        String::from_utf8(read_user_file(&self.root.join(file), USER_FILE_BYTES_MAX).ok()?).ok()
    }

    fn says(&self, file: &str, word: &str) -> bool {
        self.text(file).is_some_and(|text| text.contains(word))
    }

    /// Whether git ignores the folder `name` at the root. One that it does not ignore is removed between two checks.
    fn ignores(&self, name: &str) -> bool {
        let text = self.text(".gitignore").unwrap_or_default();
        text.lines().any(|line| line.trim().trim_start_matches("**/").trim_matches('/') == name)
    }
}

/// The programs that the checks begin with and that are not installed.
fn missing_tools(commands: &[InitCommand]) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for command in commands {
        let Some(program) = command.run.split_whitespace().next() else { continue };
        let is_there = program.contains('/') || house::program_on_path(program).is_some();
        if !is_there && !missing.iter().any(|known| known == program) {
            missing.push(program.to_owned());
        }
    }
    missing
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
        let _ = fs::remove_file(path); // ours, made a moment ago; the error below is what matters
        return Err(fail(error));
    }
    Ok(true)
}

/// The ready-made agents that are installed, the default first.
fn agents() -> Vec<InitAgent> {
    let found = house::installed_agents().into_iter();
    found.map(|(kind, path, login)| InitAgent { kind, path: path.display().to_string(), login }).collect()
}

/// Where the tools of the project keep what they download: outside of the workspace, so each run gets changes of its own.
fn caches(files: &ProjectFiles<'_>) -> Vec<String> {
    let is = |file: &str| files.has(file);
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
    let python =
        ["pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.py", "setup.cfg", "tox.ini"];
    if python.into_iter().any(is) {
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
         # flow = \"loop\"              # how a task is done: `landfall project flow list`\n\
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
        text += "\n# No test command was found. Name yours; until then no agent starts.\n\
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
    text += match agent.is_some_and(|agent| house::reports_tokens_alone(&agent.kind)) {
        true => "\n[budget]\nday_tokens = 20000000       # no agent starts once this much is used today\n",
        false => "\n[budget]\nday_usd = 20                # no agent starts once this much is spent today\n",
    };
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
fn detect(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let mut found: Vec<InitCommand> =
        [cargo(files), npm(files), python(files), go(files)].into_iter().flatten().collect();
    if found.is_empty() {
        found = make(files);
    }
    // Two kinds in one repository would both be called `tests`; the file that gave them away tells them apart.
    for name in ["install", "tests"] {
        if found.iter().filter(|command| command.name == name).count() > 1 {
            for command in found.iter_mut().filter(|command| command.name == name) {
                command.name = format!("{name} ({})", command.found_in);
            }
        }
    }
    found
}

fn command(name: &str, run: &str, found_in: &str) -> InitCommand {
    InitCommand { name: name.to_owned(), run: run.to_owned(), found_in: found_in.to_owned() }
}

/// An installation and the tests after it: one command if git would remove between them what was installed.
fn installed_and_tested(
    files: &ProjectFiles<'_>,
    folder: &str,
    (install, lock): (&str, &str),
    (run, found_in): (&str, &str),
) -> Vec<InitCommand> {
    match files.ignores(folder) {
        true => vec![command("install", install, lock), command("tests", run, found_in)],
        false => vec![command("tests", &format!("{install} && {run}"), found_in)],
    }
}

fn cargo(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let Some(text) = files.text("Cargo.toml") else { return Vec::new() };
    let workspace = text.lines().any(|line| line.trim().starts_with("[workspace"));
    let run = if workspace { "cargo test --workspace" } else { "cargo test" };
    vec![command("tests", run, "Cargo.toml")]
}

fn npm(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let Some(text) = files.text("package.json") else { return Vec::new() };
    let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let test = package["scripts"]["test"].as_str().unwrap_or_default();
    if test.is_empty() || test.contains("no test specified") {
        return Vec::new(); // what `npm init` writes always fails
    }
    let has_dependencies = ["dependencies", "devDependencies", "optionalDependencies", "workspaces"]
        .iter()
        .any(|key| package[*key].as_object().is_some_and(|it| !it.is_empty()) || package[*key].is_array());
    // Checks run on a clean checkout, where nothing is installed yet. A lock file names each package by its hash.
    let (install, run, lock) = if files.has("pnpm-lock.yaml") {
        (Some("pnpm install --frozen-lockfile"), "pnpm test", "pnpm-lock.yaml")
    } else if files.has("yarn.lock") {
        (Some("yarn install --frozen-lockfile"), "yarn test", "yarn.lock")
    } else if files.has("bun.lock") || files.has("bun.lockb") {
        (Some("bun install --frozen-lockfile"), "bun run test", "bun.lock")
    } else if files.has("package-lock.json") {
        (Some("npm ci --prefer-offline --no-audit --no-fund"), "npm test", "package-lock.json")
    } else if has_dependencies {
        (Some("npm install --no-package-lock"), "npm test", "package.json")
    } else {
        (None, "npm test", "package.json")
    };
    match install {
        Some(install) => {
            installed_and_tested(files, "node_modules", (install, lock), (run, "package.json"))
        }
        None => vec![command("tests", run, "package.json")],
    }
}

fn python(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let named = [
        ("pytest.ini", ""),
        ("pyproject.toml", "pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "pytest"),
        ("requirements-dev.txt", "pytest"),
        ("requirements.txt", "pytest"),
        ("conftest.py", ""),
    ];
    let is_test = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.starts_with("tests/") && name.starts_with("test_") && name.ends_with(".py")
    };
    let named = named.iter().find(|(file, word)| files.has(file) && files.says(file, word));
    let pytest = match named {
        Some((file, _)) => Some(*file),
        None => files.tracked.iter().any(is_test).then_some("tests/"),
    };
    let has_tox = files.says("tox.ini", "[testenv") || files.says("tox.ini", "[tox]");
    let Some(found_in) = pytest else {
        return if has_tox { vec![command("tests", "tox run", "tox.ini")] } else { Vec::new() };
    };
    if files.has("uv.lock") {
        // `uv` has git ignore the folder it installs to.
        return vec![
            command("install", "uv sync --frozen", "uv.lock"),
            command("tests", "uv run --frozen pytest", found_in),
        ];
    }
    if files.has("poetry.lock") {
        return vec![
            command("install", "poetry install --no-interaction", "poetry.lock"),
            command("tests", "poetry run pytest", found_in),
        ];
    }
    if has_tox {
        return vec![command("tests", "tox run", "tox.ini")];
    }
    let requirements = ["requirements-dev.txt", "requirements.txt"].into_iter().find(|file| files.says(file, "pytest"));
    let Some(requirements) = requirements else {
        return vec![command("tests", "python3 -m pytest", found_in)];
    };
    let by_hash = if files.says(requirements, "--hash=") { "--require-hashes " } else { "" };
    let mut install =
        format!("python3 -m venv .venv && .venv/bin/pip install --quiet --no-compile {by_hash}-r {requirements}");
    if files.has("setup.py") || files.says("pyproject.toml", "[build-system]") {
        install += " && .venv/bin/pip install --quiet --no-deps --editable .";
    }
    installed_and_tested(
        files,
        ".venv",
        (&install, requirements),
        (".venv/bin/python -m pytest", found_in),
    )
}

fn go(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    if files.has("go.mod") { vec![command("tests", "go test ./...", "go.mod")] } else { Vec::new() }
}

fn make(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    for file in ["GNUmakefile", "makefile", "Makefile"] {
        let Some(text) = files.text(file) else { continue };
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
