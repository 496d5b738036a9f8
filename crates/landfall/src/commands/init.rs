//! `landfall init`: finds out what it can and writes `landfall.toml`.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use landfall_api::taskfile::quote_toml_string;
use landfall_api::{InitAgent, InitCommand, InitFound, ProjectChecked};
use landfall_app::{CheckOptions, USER_FILE_BYTES_MAX, read_user_file};
use landfall_text::control_chars::escape_line;

use crate::checks::{CheckPrinter, install_hint, result_line, verdict_text};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live::Interrupts;
use crate::say::{print_data, print_json, print_message};

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

pub fn run(Args { no_check }: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if context.at.base.is_some() {
        return Err(CommandFailure::usage_error(
            "`--base` is for work that lands on another base than the project's",
        )
        .with_hint("check the branch out that the project is to land on, and leave `--base` out"));
    }
    let project = landfall_app::find_project(&context.at)?;
    let files = ProjectFiles { root: &project.root, tracked: landfall_app::tracked_files(&context.at)? };
    let commands = detect_commands(&files);
    let agents = find_installed_agents();
    let caches = find_tool_caches(&files);
    let path = project.root.join("landfall.toml");
    let written = write(&path, &render_settings(&project.branch, &commands, agents.first(), &caches))?;
    if written {
        // Whoever has them written wants them. Otherwise the first run asks.
        if let Err(problem) = landfall_app::trust_own_settings(&context.at) {
            print_message(&format!("the settings are not trusted yet: {problem}; `landfall trust` asks"));
        }
    }
    let level = landfall_app::sandbox_level(&project.root);
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
        print_data(&render_init(&found))?;
    }
    let mut is_stopped = false;
    if found.written && !no_check && !found.commands.is_empty() && found.missing_tools.is_empty() {
        let interrupts = Interrupts::start_listening()?;
        let asked =
            CheckOptions { limit: Some(CHECKS_MAX), with_own_settings: true, ..CheckOptions::default() };
        let mut printer = if context.json {
            CheckPrinter::without_output(&interrupts)
        } else {
            CheckPrinter::with_check_lines(&interrupts)
        };
        match landfall_app::check_project(&context.at, &asked, &mut printer) {
            Ok(Some(checked)) => found.checked = Some(checked),
            Ok(None) => is_stopped = true,
            Err(problem) => {
                print_message(&format!("the checks did not run: {problem}; `landfall check` tries again"))
            }
        }
    }
    if context.json {
        print_json(&found)?;
    } else if let Some(checked) = &found.checked {
        print_data(&checked_text(checked))?;
    }
    if found.written && !context.json {
        print_message(&next_steps(&found));
    }
    Ok(if is_stopped { CliExit::Interrupted } else { CliExit::Ok })
}

/// What to do after `init`, in the order in which a person does it.
fn next_steps(found: &InitFound) -> String {
    let mut steps = Vec::new();
    for tool in &found.missing_tools {
        steps.push(match install_hint(tool) {
            Some(how) => format!(
                "install `{}`, which the checks need: `{how}`; then `landfall check`",
                escape_line(tool)
            ),
            None => format!("install `{}`, which the checks need; then `landfall check`", escape_line(tool)),
        });
    }
    match &found.agent {
        Some(agent) => steps.push(format!(
            "`landfall agents --probe` tries whether {} answers; to log in: {}",
            escape_line(&agent.kind),
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
            text += &format!("  {}\n", escape_line(line));
        }
    }
    text + &verdict_text(checked)
}

fn render_init(found: &InitFound) -> String {
    let file = escape_line(&found.file);
    if !found.written {
        return format!("{file} is there already; nothing was changed. `landfall check` runs its checks\n");
    }
    let mut text = format!("wrote {file}\nbase    {}\n", escape_line(&found.base));
    for command in &found.commands {
        text +=
            &format!("check   {} (found in {})\n", escape_line(&command.run), escape_line(&command.found_in));
    }
    if found.commands.is_empty() {
        text += "check   none found: name your test command under [[verify.command]];\n        until then no agent starts\n";
    }
    for (place, agent) in found.agents.iter().enumerate() {
        let is_set = if place == 0 { ", set as the default" } else { "" };
        text += &format!("agent   {} ({}{is_set})\n", escape_line(&agent.kind), escape_line(&agent.path));
    }
    if found.agents.is_empty() {
        text += "agent   none found: the scripted one is set for now\n";
    }
    text += &format!("sandbox level {}; it leaves open:\n", escape_line(&found.sandbox));
    for open in &found.sandbox_leaves_open {
        text += &format!("        - {}\n", escape_line(open));
    }
    text
}

/// The files of the project that a clean checkout has.
struct ProjectFiles<'a> {
    root: &'a Path,
    tracked: BTreeSet<String>,
}

impl ProjectFiles<'_> {
    fn has_file(&self, file: &str) -> bool {
        self.tracked.contains(file)
    }

    /// The text of a tracked file of a size that people write.
    fn read_text(&self, file: &str) -> Option<String> {
        if !self.has_file(file) {
            return None;
        }
        String::from_utf8(read_user_file(&self.root.join(file), USER_FILE_BYTES_MAX).ok()?).ok()
    }

    fn contains_word(&self, file: &str, word: &str) -> bool {
        self.read_text(file).is_some_and(|text| text.contains(word))
    }

    /// Whether git ignores the folder `name` at the root. One that it does not ignore is removed between two checks.
    fn ignores_folder(&self, name: &str) -> bool {
        let text = self.read_text(".gitignore").unwrap_or_default();
        text.lines().any(|line| line.trim().trim_start_matches("**/").trim_matches('/') == name)
    }
}

/// The programs that the checks begin with and that are not installed.
fn missing_tools(commands: &[InitCommand]) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for command in commands {
        let Some(program) = command.run.split_whitespace().next() else { continue };
        let is_there = program.contains('/') || landfall_app::find_program_on_path(program).is_some();
        if !is_there && !missing.iter().any(|known| known == program) {
            missing.push(program.to_owned());
        }
    }
    missing
}

/// Writes the file unless one is there. It is whole or not there at all.
fn write(path: &Path, text: &str) -> Result<bool, CommandFailure> {
    let fail = |error: std::io::Error| {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                CliExit::Machine
            }
            _ => CliExit::Internal,
        };
        CommandFailure::new(code, format!("write `{}`: {error}", path.display()))
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
fn find_installed_agents() -> Vec<InitAgent> {
    let found = landfall_app::installed_agents().into_iter();
    found.map(|(kind, path, login)| InitAgent { kind, path: path.display().to_string(), login }).collect()
}

/// Where the tools of the project keep what they download: outside of the workspace, so each run gets changes of its own.
fn find_tool_caches(files: &ProjectFiles<'_>) -> Vec<String> {
    let is = |file: &str| files.has_file(file);
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

fn render_settings(
    base: &str,
    commands: &[InitCommand],
    agent: Option<&InitAgent>,
    caches: &[String],
) -> String {
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
        quote_toml_string(base)
    );
    let list =
        |words: &[String]| words.iter().map(|word| quote_toml_string(word)).collect::<Vec<_>>().join(", ");
    for command in commands {
        text += &format!(
            "\n[[verify.command]]\nname = {}\nrun = {}\ntimeout = \"10m\"\n",
            quote_toml_string(&command.name),
            quote_toml_string(&command.run)
        );
        if !command.installs.is_empty() {
            text += &format!(
                "# Copied from the base instead, as long as work does not change these files.\n\
                 installs = [{}]\ninstalls_from = [{}]\n",
                list(&command.installs),
                list(&command.installs_from)
            );
        }
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
        text += &format!(
            "# Where the tools of this project keep what they download. Agents and checks see these folders and change them only\n\
             # for themselves: nothing of it reaches you, another task or another check.\n\
             caches = [{}]\n",
            list(caches)
        );
    }
    text += match agent.is_some_and(|agent| landfall_app::reports_tokens_alone(&agent.kind)) {
        true => "\n[budget]\nday_tokens = 20000000       # no agent starts once this much is used today\n",
        false => "\n[budget]\nday_usd = 20                # no agent starts once this much is spent today\n",
    };
    text += &match agent {
        Some(agent) => format!(
            "\n[agent.default]\n\
             kind = {}\n\
             # model = \"…\"               # what the agent itself would take, otherwise\n\
             # style = \"session\"         # goes on with its session instead of beginning anew each time\n",
            quote_toml_string(&agent.kind)
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
fn detect_commands(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let mut found: Vec<InitCommand> =
        [detect_cargo(files), detect_npm(files), detect_python(files), detect_go(files)]
            .into_iter()
            .flatten()
            .collect();
    if found.is_empty() {
        found = detect_make(files);
    }
    found.sort_by_key(|command| command.installs.is_empty()); // only the first commands may be copied
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

fn new_command(name: &str, run: &str, found_in: &str) -> InitCommand {
    InitCommand {
        name: name.to_owned(),
        run: run.to_owned(),
        found_in: found_in.to_owned(),
        installs: Vec::new(),
        installs_from: Vec::new(),
    }
}

/// A command that fills `folder`. With `sources`, a verification may copy the folder instead.
fn installation_command(
    run: &str,
    found_in: &str,
    folder: &str,
    sources: Option<Vec<String>>,
) -> InitCommand {
    let command = new_command("install", run, found_in);
    match sources {
        Some(installs_from) => InitCommand { installs: vec![folder.to_owned()], installs_from, ..command },
        None => command,
    }
}

/// An installation and the tests after it: one command if git would remove between them what was installed.
fn installed_and_tested(
    files: &ProjectFiles<'_>,
    (folder, sources): (&str, Option<Vec<String>>),
    (install, lock): (&str, &str),
    (run, found_in): (&str, &str),
) -> Vec<InitCommand> {
    match files.ignores_folder(folder) {
        true => {
            vec![installation_command(install, lock, folder, sources), new_command("tests", run, found_in)]
        }
        false => vec![new_command("tests", &format!("{install} && {run}"), found_in)],
    }
}

/// What `node_modules` depends on, if that can be told: scripts of an installation and packages of the project itself may read
/// any file of it.
fn node_sources(package: &serde_json::Value, lock: &str) -> Option<Vec<String>> {
    const SCRIPTS: [&str; 7] =
        ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
    const DEPENDENCIES: [&str; 4] =
        ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];
    let versions = DEPENDENCIES.iter().filter_map(|key| package[*key].as_object()).flat_map(|it| it.values());
    let is_own = |version: &str| {
        [".", "/", "~", "file:", "link:", "portal:", "workspace:"].iter().any(|own| version.starts_with(own))
    };
    let is_plain = SCRIPTS.iter().all(|script| package["scripts"][*script].is_null())
        && package["workspaces"].is_null()
        && versions.filter_map(serde_json::Value::as_str).all(|version| !is_own(version));
    let settings: &[&str] = match lock {
        "package-lock.json" => &[".npmrc"],
        "pnpm-lock.yaml" => &[".npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs", "patches"],
        "yarn.lock" => &[".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", "patches"],
        "bun.lock" => &[".npmrc", "bunfig.toml", "bun.lockb", "patches"],
        _ => return None, // without a lock file each installation may be another one
    };
    is_plain.then(|| ["package.json", lock].iter().chain(settings).map(|&file| file.to_owned()).collect())
}

/// What a folder with Python packages depends on: `files`, the lists of packages at the root, and all lists that these include.
/// None if that cannot be told, or one of the files names code of the project itself.
fn python_sources(files: &ProjectFiles<'_>, of: &[&str]) -> Option<Vec<String>> {
    const OWN: [&str; 10] = [
        "-e ",
        "--editable",
        "file:",
        "./",
        "{toxinidir}",
        ".[",
        "workspace",
        "find-links",
        "install_command",
        "PIP_",
    ];
    const OWN_KEYS: [&str; 3] = ["path", "directory", "editable"];
    let is_list = |path: &str| {
        path.ends_with(".txt") && ["requirements", "constraints"].iter().any(|name| path.contains(name))
    };
    let lists = files.tracked.iter().filter(|path| !path.contains('/') && is_list(path)).cloned();
    let mut sources: Vec<String> = Vec::new();
    let mut open: VecDeque<String> = of.iter().map(|&file| file.to_owned()).chain(lists).collect();
    while let Some(file) = open.pop_front() {
        if sources.contains(&file) {
            continue;
        }
        if files.root.join(&file).is_symlink() {
            return None; // a change of the file that it leads to would not be noticed
        }
        if let Some(text) = files.read_text(&file) {
            let is_list = is_list(&file) || !of.contains(&file.as_str());
            let is_own = |text: &str| {
                OWN.iter().any(|own| text.contains(own)) || OWN_KEYS.iter().any(|key| has_key(text, key))
            };
            let lines = match file.as_str() {
                _ if is_list => text.replace("\\\n", " "),
                _ if is_own(&text) => return None,
                "tox.ini" => tox_packages(&text),
                _ => String::new(),
            };
            for line in lines.lines() {
                if let PackageLine::Includes(name) = package_line(line)? {
                    let included =
                        path_beside(&file, &name).filter(|path| files.read_text(path).is_some())?;
                    open.push_back(included);
                }
            }
        }
        sources.push(file);
    }
    Some(sources)
}

/// Whether `text` has a line or a table with a value for `key`: `path = "libs/x"`.
fn has_key(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(at, _)| {
        let is_whole = !text[..at].ends_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
        is_whole && text[at + key.len()..].trim_start_matches([' ', '\t', '"', '\'']).starts_with('=')
    })
}

/// A line of a list of packages for pip.
enum PackageLine {
    /// A package that pip downloads, or an option that changes nothing of the project.
    Remote,
    /// The name of another list.
    Includes(String),
}

/// What a line of a list of packages asks for; none if it may be something of the project or of the machine.
fn package_line(line: &str) -> Option<PackageLine> {
    const INCLUDES: [&str; 4] = ["--requirement", "--constraint", "-r", "-c"];
    const INDEXES: [&str; 3] = ["-i", "--index-url", "--extra-index-url"];
    const HARMLESS: [&str; 6] =
        ["--pre", "--prefer-binary", "--require-hashes", "--no-binary", "--only-binary", "--trusted-host"];
    const ARCHIVES: [&str; 5] = [".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2"];
    let line = match line.find('#') {
        Some(at) if line[..at].trim_end().len() < at || at == 0 => &line[..at],
        _ => line,
    };
    let line = line.trim();
    if line.contains(['$', '{']) || line.contains("file:") {
        return None; // a variable, or something of this machine
    }
    if line.starts_with('-') {
        let included = INCLUDES.iter().find_map(|option| line.strip_prefix(option));
        if let Some(name) = included {
            let name = name.trim_start().trim_start_matches('=').trim();
            // What is in quotes, or has a blank, is read by rules of its own.
            let is_plain =
                !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "\"'\\:".contains(c));
            return is_plain.then(|| PackageLine::Includes(name.to_owned()));
        }
        let option = line.split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
        let is_harmless = HARMLESS.contains(&option) || (INDEXES.contains(&option) && line.contains("://"));
        return is_harmless.then_some(PackageLine::Remote);
    }
    let line = line.split(';').next().unwrap_or_default();
    let package = line.split([' ', '\t']).next().unwrap_or_default();
    let is_url = line.contains("://")
        && (package.contains("://") || line[package.len()..].trim_start().starts_with('@'));
    let is_archive = ARCHIVES.iter().any(|ending| package.ends_with(ending));
    let is_local = !is_url && (package.starts_with('.') || line.contains(['/', '\\']) || is_archive);
    (!is_local).then_some(PackageLine::Remote)
}

/// The packages that the environments of tox install, one on each line.
fn tox_packages(text: &str) -> String {
    let mut packages = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']);
        if line.starts_with(['#', ';']) {
            continue;
        }
        let value = match line.split_once('=') {
            _ if is_continued || line.trim().is_empty() => is_inside.then_some(line),
            Some((key, value)) => {
                is_inside = ["deps", "requires", "constraints"].contains(&key.trim());
                is_inside.then_some(value)
            }
            None => {
                is_inside = false;
                None
            }
        };
        let Some(value) = value.map(str::trim) else { continue };
        // `py312,lint: pytest` is for some environments only. What another section has is read there.
        let is_factor = |word: &str| {
            let is_closed = word.matches('{').count() == word.matches('}').count(); // `{env:LIST}` is none
            is_closed
                && !word.is_empty()
                && !word.contains(|c: char| !c.is_alphanumeric() && !"-_,.!{}".contains(c))
        };
        let value = match value.split_once(':') {
            Some((factors, rest)) if is_factor(factors) && !rest.starts_with('/') => rest.trim(),
            _ => value,
        };
        if !(value.starts_with("{[") && value.ends_with("deps}")) {
            packages += value;
            packages.push('\n');
        }
    }
    packages
}

/// The path of what `name` means in a file, from the root; none outside of the project.
fn path_beside(file: &str, name: &str) -> Option<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    if name.starts_with('/') {
        return None;
    }
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn detect_cargo(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let Some(text) = files.read_text("Cargo.toml") else { return Vec::new() };
    let workspace = text.lines().any(|line| line.trim().starts_with("[workspace"));
    let run = if workspace { "cargo test --workspace" } else { "cargo test" };
    vec![new_command("tests", run, "Cargo.toml")]
}

fn detect_npm(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let Some(text) = files.read_text("package.json") else { return Vec::new() };
    let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let test = package["scripts"]["test"].as_str().unwrap_or_default();
    if test.is_empty() || test.contains("no test specified") {
        return Vec::new(); // what `npm init` writes always fails
    }
    let has_dependencies = ["dependencies", "devDependencies", "optionalDependencies", "workspaces"]
        .iter()
        .any(|key| package[*key].as_object().is_some_and(|it| !it.is_empty()) || package[*key].is_array());
    // Checks run on a clean checkout, where nothing is installed yet. A lock file names each package by its hash.
    let (install, run, lock) = if files.has_file("pnpm-lock.yaml") {
        (Some("pnpm install --frozen-lockfile"), "pnpm test", "pnpm-lock.yaml")
    } else if files.has_file("yarn.lock") {
        (Some("yarn install --frozen-lockfile"), "yarn test", "yarn.lock")
    } else if files.has_file("bun.lock") || files.has_file("bun.lockb") {
        (Some("bun install --frozen-lockfile"), "bun run test", "bun.lock")
    } else if files.has_file("package-lock.json") {
        (Some("npm ci --prefer-offline --no-audit --no-fund"), "npm test", "package-lock.json")
    } else if has_dependencies {
        (Some("npm install --no-package-lock"), "npm test", "package.json")
    } else {
        (None, "npm test", "package.json")
    };
    match install {
        Some(install) => {
            let folder = ("node_modules", node_sources(&package, lock));
            installed_and_tested(files, folder, (install, lock), (run, "package.json"))
        }
        None => vec![new_command("tests", run, "package.json")],
    }
}

fn detect_python(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
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
    let named = named.iter().find(|(file, word)| files.has_file(file) && files.contains_word(file, word));
    let pytest = match named {
        Some((file, _)) => Some(*file),
        None => files.tracked.iter().any(is_test).then_some("tests/"),
    };
    let has_tox = files.contains_word("tox.ini", "[testenv") || files.contains_word("tox.ini", "[tox]");
    let Some(found_in) = pytest else {
        return if has_tox { detect_tox(files) } else { Vec::new() };
    };
    // A package that is built may depend on any file of the project.
    let is_built = files.has_file("setup.py") || files.contains_word("pyproject.toml", "[build-system]");
    if files.has_file("uv.lock") {
        // `uv` has git ignore the folder it installs to.
        let of = ["pyproject.toml", "uv.lock", "uv.toml", ".python-version"];
        let sources = if is_built { None } else { python_sources(files, &of) };
        return vec![
            installation_command("uv sync --frozen", "uv.lock", ".venv", sources),
            new_command("tests", "uv run --frozen pytest", found_in),
        ];
    }
    if files.has_file("poetry.lock") {
        return vec![
            new_command("install", "poetry install --no-interaction", "poetry.lock"),
            new_command("tests", "poetry run pytest", found_in),
        ];
    }
    if has_tox {
        return detect_tox(files);
    }
    let requirements = ["requirements-dev.txt", "requirements.txt"]
        .into_iter()
        .find(|file| files.contains_word(file, "pytest"));
    let Some(requirements) = requirements else {
        return vec![new_command("tests", "python3 -m pytest", found_in)];
    };
    let by_hash = if files.contains_word(requirements, "--hash=") { "--require-hashes " } else { "" };
    let mut install = format!(
        "python3 -m venv .venv && .venv/bin/pip install --quiet --no-compile {by_hash}-r {requirements}"
    );
    if is_built {
        install += " && .venv/bin/pip install --quiet --no-deps --editable .";
    }
    let sources = if is_built { None } else { python_sources(files, &[requirements, ".python-version"]) };
    installed_and_tested(
        files,
        (".venv", sources),
        (&install, requirements),
        (".venv/bin/python -m pytest", found_in),
    )
}

/// tox installs by itself. An installation of its own can be copied; a package is built again by each run.
fn detect_tox(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    let tests = new_command("tests", "tox run", "tox.ini");
    let sources = python_sources(files, &["tox.ini", "pyproject.toml", "setup.cfg", "setup.py"]);
    match sources.filter(|_| files.ignores_folder(".tox")) {
        Some(sources) => {
            vec![installation_command("tox run --notest", "tox.ini", ".tox", Some(sources)), tests]
        }
        None => vec![tests],
    }
}

fn detect_go(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    if files.has_file("go.mod") { vec![new_command("tests", "go test ./...", "go.mod")] } else { Vec::new() }
}

fn detect_make(files: &ProjectFiles<'_>) -> Vec<InitCommand> {
    for file in ["GNUmakefile", "makefile", "Makefile"] {
        let Some(text) = files.read_text(file) else { continue };
        for target in ["test", "check"] {
            let rule = |line: &str| {
                let rest = line.strip_prefix(target).map(str::trim_start);
                rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
            };
            if text.lines().any(rule) {
                return vec![new_command("tests", &format!("make {target}"), file)];
            }
        }
    }
    Vec::new()
}
