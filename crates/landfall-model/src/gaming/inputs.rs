//! Which files of the base decide what the verify commands do: those named on their lines, followed through shell scripts,
//! Makefiles and the scripts of a package.json.
//!
//! The trace asks for one file at a time; reading it is left to the engine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use toml::de::{DeTable, DeValue};

use super::cases;
use super::ecosystems::{CHECK_TOOLS, COMMAND_FILES, CheckTool, PROGRAMS, RUNNER_SETTINGS};
use super::imports::{
    PYTEST_FILES, configured_files, imported_files, imported_or_shadowing_files, named_scripts,
    plugin_options, pytest_plugins,
};
use super::makefile::Makefile;
use super::sections::{is_script, package_scripts, runner_settings};
use super::shell_text::{SimpleCommand, simple_commands};
use super::{is_code, is_test_path};

/// Which part of a file decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputScope {
    /// All of it.
    WholeFile,
    /// The recipes of a justfile: more of them may come.
    Recipes,
    /// A script that holds tests itself: more of them may come, what is there may not change.
    TestScript,
    /// What these targets of a Makefile need. An empty name is the target that is made when none is named.
    MakeTargets(BTreeSet<String>),
    /// These scripts of a package.json, or tasks of a deno.json.
    PackageScripts(BTreeSet<String>),
    /// These sections of a file that several tools share.
    Sections(BTreeSet<String>),
    /// Product code that a check script reads into its own shell, where it can end the script.
    Sourced,
    /// A file of this name may not come: `make` would not make the target that is called so.
    Absent,
    /// All of it, remarks included: it runs outside of the sandbox.
    Verbatim,
}

/// A file that decides what the checks do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedInput {
    /// From the root of the repository. A `*` stands for anything.
    pub path: String,
    /// The part of it that counts.
    pub scope: InputScope,
    /// What runs or reads it: a file, or `the check`.
    pub used_by: String,
}

/// What people write on a verify line is followed this far.
const DEPTH_MAX: usize = 8;
/// So many files are asked for at most: a check that runs more is no line of a person.
const FILES_MAX: usize = 128;
/// The same where each word may name a file: most of them do not.
const WORDS_MAX: usize = 512;
/// The largest file that is followed. A larger one is protected and not read.
pub const INPUT_BYTES_MAX: u64 = 256 << 10;

/// How a command is used, which decides how sure it is that it belongs to the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandSource {
    /// On the line of the verify command.
    Line,
    /// In a Makefile or a package.json.
    Recipe,
    /// In a shell script: it also runs the product.
    Script,
}

/// A file that may be followed.
#[derive(Debug, Clone)]
struct FileRequest {
    path: String,
    kind: RequestKind,
    used_by: String,
    depth: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestKind {
    /// A program of the repository; `is_sure` if it belongs to the check whatever it is called and holds.
    Program {
        is_sure: bool,
        /// Whether a script reads it into its own shell.
        is_sourced: bool,
    },
    /// A settings file that a command names.
    Settings,
    Make {
        targets: BTreeSet<String>,
        /// The file that includes this one.
        root: Option<String>,
    },
    Package {
        script: String,
    },
    /// A module that a check program imports, or a file that the settings of a runner name.
    Import,
    /// The settings of a runner of tests, which name files to load first.
    RunnerSettings,
    /// Settings of pytest, or a conftest.py, which name modules to load first.
    PytestSettings,
    /// A file whose commands name scripts.
    CommandFile,
    /// A file that a script compares an output with.
    Expectation,
    /// A script that another file names; it is a part of the check if its name says so.
    NamedScript,
    /// Where Cargo finds what `cargo NAME` stands for.
    CargoAlias {
        name: String,
        rest: Vec<String>,
    },
}

/// What the base has at a path.
#[derive(Debug, Clone)]
enum BaseFile {
    /// Nothing, or nothing that is read.
    Missing,
    Text(String),
    /// The path itself, or a folder above it, is a link.
    Link {
        link: String,
        target: String,
    },
}

/// Follows the verify commands through the files of the base.
#[derive(Debug, Default)]
pub struct InputTrace {
    requests: VecDeque<FileRequest>,
    /// What was read already, for files that are used in several ways.
    texts: BTreeMap<String, BaseFile>,
    done: BTreeSet<String>,
    inputs: BTreeMap<String, ProtectedInput>,
    sources_tests: bool,
    /// The setting of the command, if it runs outside of the sandbox: then each file that it may run or read counts as a whole.
    unconfined: Option<String>,
}

impl InputTrace {
    /// Begins with a command that runs outside of the sandbox, by the name of its setting.
    #[must_use]
    pub fn from_unconfined_command(setting: &str, line: &str) -> Self {
        let mut trace = Self { unconfined: Some(setting.to_owned()), ..Self::default() };
        trace.follow_text(line, CommandSource::Line, setting, "", 0);
        trace
    }

    /// Begins with the lines of the verify commands.
    #[must_use]
    pub fn new<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut trace = Self::default();
        for line in lines {
            trace.follow_text(line, CommandSource::Line, "the check", "", 0);
        }
        trace
    }

    /// The next file to read from the base; none when all is known.
    pub fn next_path(&mut self) -> Option<String> {
        loop {
            let path = self.requests.front()?.path.clone();
            match self.texts.get(&path).cloned() {
                None if self.texts.len() >= self.files_max() => {
                    let request = self.requests.pop_front().expect("it is at the front");
                    match request.kind {
                        RequestKind::Import
                        | RequestKind::RunnerSettings
                        | RequestKind::PytestSettings
                        | RequestKind::CommandFile
                        | RequestKind::Expectation
                        | RequestKind::NamedScript
                        | RequestKind::CargoAlias { .. } => {}
                        RequestKind::Program { .. }
                        | RequestKind::Settings
                        | RequestKind::Make { .. }
                        | RequestKind::Package { .. } => {
                            self.protect_input(&request.path, InputScope::WholeFile, &request.used_by);
                        }
                    }
                }
                None => return Some(path),
                Some(file) => {
                    let request = self.requests.pop_front().expect("it is at the front");
                    match file {
                        BaseFile::Missing => self.follow_file(&request, None),
                        BaseFile::Text(text) => self.follow_file(&request, Some(&text)),
                        BaseFile::Link { link, target } => self.follow_link(&request, &link, &target),
                    }
                }
            }
        }
    }

    /// What a file holds on the base; none: there is no such file, or it is too large to follow.
    pub fn provide_file(&mut self, path: &str, text: Option<String>) {
        self.texts.insert(path.to_owned(), text.map_or(BaseFile::Missing, BaseFile::Text));
    }

    /// The file at `path` is behind a link on the base: `link` is the path, or a folder above it, and leads to `target`.
    pub fn provide_link(&mut self, path: &str, link: &str, target: &str) {
        let (link, target) = (link.to_owned(), target.to_owned());
        self.texts.insert(path.to_owned(), BaseFile::Link { link, target });
    }

    fn follow_link(&mut self, request: &FileRequest, link: &str, target: &str) {
        self.protect_input(link, InputScope::WholeFile, &request.used_by);
        let rest = request.path.strip_prefix(link).unwrap_or_default();
        if let Some(path) =
            resolve_word(folder_of(link), target).and_then(|to| resolve_word(&to, &format!(".{rest}")))
        {
            self.request_file(path, request.kind.clone(), link, request.depth + 1);
        }
    }

    /// Whether a script reads files into its own shell whose names cannot be told: tests, perhaps.
    #[must_use]
    pub fn sources_tests(&self) -> bool {
        self.sources_tests
    }

    /// All that decides what the checks do.
    #[must_use]
    pub fn into_inputs(self) -> Vec<ProtectedInput> {
        self.inputs.into_values().collect()
    }

    fn request_file(&mut self, path: String, kind: RequestKind, used_by: &str, depth: usize) {
        let key = format!("{path} {kind:?}");
        if depth <= DEPTH_MAX && self.requests.len() < self.files_max() * 4 && self.done.insert(key) {
            self.requests.push_back(FileRequest { path, kind, used_by: used_by.to_owned(), depth });
        }
    }

    fn is_unconfined(&self) -> bool {
        self.unconfined.is_some()
    }

    fn files_max(&self) -> usize {
        if self.is_unconfined() { WORDS_MAX } else { FILES_MAX }
    }

    fn protect_input(&mut self, path: &str, scope: InputScope, used_by: &str) {
        let outside = self.unconfined.as_ref().map(|setting| format!("{setting}, outside of the sandbox"));
        let (scope, used_by) = match &outside {
            Some(outside) => (InputScope::Verbatim, outside.as_str()),
            None => (scope, used_by),
        };
        let input = self.inputs.entry(path.to_owned()).or_insert_with(|| ProtectedInput {
            path: path.to_owned(),
            scope: scope.clone(),
            used_by: used_by.to_owned(),
        });
        match (&mut input.scope, scope) {
            (InputScope::MakeTargets(known), InputScope::MakeTargets(more))
            | (InputScope::PackageScripts(known), InputScope::PackageScripts(more))
            | (InputScope::Sections(known), InputScope::Sections(more)) => known.extend(more),
            (known @ (InputScope::Absent | InputScope::Sourced), scope) => *known = scope,
            (known, scope @ (InputScope::WholeFile | InputScope::Verbatim)) => *known = scope,
            (
                _,
                InputScope::TestScript
                | InputScope::Recipes
                | InputScope::MakeTargets(_)
                | InputScope::PackageScripts(_)
                | InputScope::Sections(_)
                | InputScope::Sourced
                | InputScope::Absent,
            ) => {}
        }
    }

    fn follow_file(&mut self, request: &FileRequest, text: Option<&str>) {
        let FileRequest { path, kind, used_by, depth } = request;
        match kind {
            RequestKind::Settings => {
                self.protect_input(path, InputScope::WholeFile, used_by);
                // `node --require ./setup.js`
                if let Some(text) = text {
                    self.follow_imports(path, text, *depth);
                }
            }
            RequestKind::Program { is_sure, is_sourced } => {
                let Some(text) = text else {
                    if *is_sure {
                        self.protect_input(path, InputScope::WholeFile, used_by); // it may come with the change
                    } else if self.is_unconfined() {
                        self.protect_input(&format!("{path}/*"), InputScope::Verbatim, used_by); // a folder, perhaps
                    }
                    return;
                };
                if !is_sure && !self.is_unconfined() && !is_check_like(path, text) {
                    if *is_sourced {
                        self.protect_input(path, InputScope::Sourced, used_by);
                    }
                    return; // the product, which the check runs
                }
                let is_tests = is_test_path(path) && !cases::test_cases(path, text).is_empty();
                if is_tests && !self.is_unconfined() && !is_shell(path, text) {
                    return; // a file of tests: each of them is looked at by itself
                }
                let is_justfile = path.to_ascii_lowercase().ends_with("justfile");
                let scope = match is_test_path(path) {
                    true => InputScope::TestScript,
                    false if is_justfile => InputScope::Recipes,
                    false => InputScope::WholeFile,
                };
                self.protect_input(path, scope, used_by);
                if is_shell(path, text) {
                    self.follow_text(text, CommandSource::Script, path, folder_of(path), depth + 1);
                } else {
                    self.follow_imports(path, text, *depth);
                    self.follow_names(path, text, *depth);
                }
            }
            RequestKind::Import => {
                let Some(text) = text else {
                    if self.is_unconfined() {
                        self.protect_input(path, InputScope::Verbatim, used_by); // it would be found before the system's
                    }
                    return;
                };
                let is_neighbour = !folder_of(path).is_empty() && folder_of(path) == folder_of(used_by);
                let is_part = has_check_name(path) || (is_neighbour && !is_in_product(path));
                // Files of tests are judged by themselves: the version of the base runs against the work.
                if self.is_unconfined() || (is_part && !is_test_path(path)) {
                    self.protect_input(path, InputScope::WholeFile, used_by);
                    self.follow_imports(path, text, *depth);
                }
            }
            RequestKind::RunnerSettings => {
                for file in text.map(|text| configured_files(path, text)).unwrap_or_default() {
                    self.request_loaded(file, path, *depth);
                }
            }
            RequestKind::PytestSettings => {
                for file in text.map(|text| pytest_plugins(path, text)).unwrap_or_default() {
                    self.request_loaded(file, path, *depth);
                }
            }
            RequestKind::CommandFile => {
                if let Some(text) = text {
                    self.follow_names(path, text, *depth);
                }
            }
            RequestKind::Expectation => {
                // Files of tests are judged by themselves, and code is the product.
                if text.is_some() && !is_code(path) && !is_test_path(path) {
                    self.protect_input(path, InputScope::WholeFile, used_by);
                }
            }
            RequestKind::NamedScript => {
                if text.is_some() && has_check_name(path) && !is_test_path(path) {
                    let kind = RequestKind::Program { is_sure: true, is_sourced: false };
                    self.request_file(path.clone(), kind, used_by, *depth);
                }
            }
            RequestKind::CargoAlias { name, rest } => {
                let alias = text.and_then(|text| cargo_alias(text, name));
                let words = match alias {
                    Some(alias) => format!("cargo {alias} {}", rest.join(" ")),
                    None if name == "xtask" => "cargo run --package xtask".to_owned(),
                    None => return,
                };
                self.follow_text(&words, CommandSource::Recipe, used_by, "", depth + 1);
            }
            RequestKind::Make { targets, root } => {
                let Some(text) = text else { return };
                self.protect_input(path, InputScope::MakeTargets(targets.clone()), used_by);
                let makefile = Makefile::parse(text);
                let folder = folder_of(path);
                self.follow_search_path(text, path, folder);
                let needed = makefile.needed_targets(targets);
                let root = root.as_deref().unwrap_or(path);
                for include in makefile.included_files() {
                    // Names of included files are looked up where `make` runs: mostly the folder of the first one.
                    if include.contains('*') {
                        let pattern = join(folder, include.trim_start_matches("./"));
                        self.protect_input(&pattern, InputScope::MakeTargets(needed.clone()), used_by);
                    } else if let Some(path) = resolve_word(folder, &include) {
                        self.protect_input(&path, InputScope::MakeTargets(needed.clone()), used_by);
                        let kind = RequestKind::Make { targets: needed.clone(), root: Some(root.to_owned()) };
                        self.request_file(path, kind, used_by, depth + 1);
                    }
                }
                if root != path {
                    // The file that includes it may define the variables that it uses.
                    let names = needed.iter().filter(|name| name.starts_with('$')).cloned().collect();
                    let kind = RequestKind::Make { targets: names, root: None };
                    self.request_file(root.to_owned(), kind, used_by, depth + 1);
                }
                for target in makefile.targets_like_files(targets) {
                    if let Some(file) = resolve_word(folder, &target) {
                        self.protect_input(&file, InputScope::Absent, path);
                    }
                }
                for commands in makefile.commands_for_targets(targets) {
                    self.follow_text(&commands, CommandSource::Recipe, path, folder, depth + 1);
                }
            }
            RequestKind::Package { script } => {
                let Some(text) = text else { return };
                let scripts = package_scripts(text);
                let names = with_hooks(script);
                self.protect_input(
                    path,
                    InputScope::PackageScripts(names.iter().cloned().collect()),
                    used_by,
                );
                let is_used = |name: &String| names.iter().any(|wanted| is_script(wanted, name));
                for (_, line) in scripts.iter().filter(|(name, _)| is_used(name)) {
                    self.follow_text(line, CommandSource::Recipe, path, folder_of(path), depth + 1);
                }
                for file in configured_files(path, &runner_settings(text)) {
                    self.request_loaded(file, path, *depth);
                }
            }
        }
    }

    fn follow_imports(&mut self, path: &str, text: &str, depth: usize) {
        let files = match self.is_unconfined() {
            true => imported_or_shadowing_files(path, text),
            false => imported_files(path, text),
        };
        for file in files {
            self.request_file(file, RequestKind::Import, path, depth + 1);
        }
    }

    /// Scripts that a text names, in a way that cannot be told: by a variable, or as arguments of another program.
    fn follow_names(&mut self, path: &str, text: &str, depth: usize) {
        for file in named_scripts(path, text) {
            self.request_file(file, RequestKind::NamedScript, path, depth + 1);
        }
    }

    /// Folders of the repository that a text puts before the others in `PATH`.
    fn follow_search_path(&mut self, text: &str, used_by: &str, folder: &str) {
        for line in text.lines().filter(|line| line.contains("PATH")) {
            // `PATH=a:b`, `export PATH := a:b`, `A=1 PATH=a:b command`
            let Some(at) = line.match_indices("PATH").map(|(at, _)| at).find(|at| {
                let is_word = !line[..*at]
                    .ends_with(|char: char| char.is_ascii_alphanumeric() || "_$({".contains(char));
                is_word && line[at + 4..].trim_start_matches([' ', '\t', ':', '?', '+']).starts_with('=')
            }) else {
                continue;
            };
            let value = line[at..].split_once('=').map_or("", |(_, value)| value).trim_start();
            let value = value.split([' ', ';', '\t']).next().unwrap_or_default();
            for place in value.split(':').map(|place| place.trim_matches(['"', '\''])) {
                let Some(place) = resolve_word(folder, place).filter(|place| !place.is_empty()) else {
                    continue;
                };
                for program in PROGRAMS {
                    self.protect_input(&join(&place, program), InputScope::WholeFile, used_by);
                }
            }
        }
    }

    /// Scripts that a text finds by a pattern, and runs: `for file in checks/*.sh; do sh "$file"; done`.
    fn follow_pattern(
        &mut self,
        command: &SimpleCommand,
        all: &[SimpleCommand],
        used_by: &str,
        folder: &str,
    ) {
        const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", ".", "source"];
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let (patterns, is_run) = match words.as_slice() {
            ["for", name, "in", words @ ..] => {
                let uses =
                    |word: &str| word.contains(&format!("${name}")) || word.contains(&format!("${{{name}}}"));
                let runs = |other: &SimpleCommand| {
                    let (first, rest) = (&other.words[0], &other.words[1..]);
                    uses(first) || (SHELLS.contains(&first.as_str()) && rest.iter().any(|word| uses(word)))
                };
                (words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), all.iter().any(runs))
            }
            ["run-parts", .., place] => (vec![format!("{place}/*")], true),
            ["find", place, rest @ ..] => {
                let name = rest.iter().skip_while(|word| **word != "-name").nth(1).copied().unwrap_or("*");
                let is_run = rest.iter().any(|word| SHELLS.contains(word)) || gives_to_a_shell(all);
                (vec![format!("{place}/{name}")], is_run)
            }
            ["ls" | "printf" | "echo", words @ ..] => {
                (words.iter().map(|word| (*word).to_owned()).collect(), gives_to_a_shell(all))
            }
            _ => return,
        };
        for pattern in patterns.iter().filter(|pattern| is_run && pattern.contains('*')) {
            let (start, rest) = pattern.split_at(pattern.find('*').unwrap_or_default());
            let Some(start) = resolve_word(folder, start).filter(|start| !start.is_empty()) else { continue };
            let slash =
                if pattern[..pattern.find('*').unwrap_or_default()].ends_with('/') { "/" } else { "" };
            let pattern = format!("{start}{slash}{rest}");
            if has_check_name(&pattern) && !is_test_path(&pattern) {
                self.protect_input(&pattern, InputScope::WholeFile, used_by);
            }
        }
    }

    /// A file that a runner of tests loads first. In the folders of the product it is the product.
    fn request_loaded(&mut self, file: String, used_by: &str, depth: usize) {
        if !is_in_product(&file) && !is_test_path(&file) {
            let kind = RequestKind::Program { is_sure: true, is_sourced: false };
            self.request_file(file, kind, used_by, depth + 1);
        }
    }

    /// Follows the commands of a text. `folder` is where its file is; commands begin there or at the root.
    fn follow_text(&mut self, text: &str, place: CommandSource, used_by: &str, folder: &str, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        // A script is started at the root and may change to its own folder; a recipe runs where its file is.
        let mut folders = match place {
            CommandSource::Line | CommandSource::Recipe => vec![folder.to_owned()],
            CommandSource::Script if folder.is_empty() => vec![String::new()],
            CommandSource::Script => vec![String::new(), folder.to_owned()],
        };
        let mut outer: Vec<Vec<String>> = Vec::new();
        self.follow_search_path(text, used_by, folder);
        if place == CommandSource::Script {
            self.follow_names(used_by, text, depth);
        }
        let commands = simple_commands(text);
        for (tool, files) in COMMAND_FILES {
            // `hatch run test`: a wrapper is no word of the command.
            if commands_name(text, tool) {
                for file in *files {
                    self.request_file(join(folder, file), RequestKind::CommandFile, used_by, depth);
                }
            }
        }
        for command in &commands {
            for folder in folders.clone() {
                self.follow_pattern(command, &commands, used_by, &folder);
            }
            match command.begins_subshell() {
                Some(true) => outer.push(folders.clone()),
                // In a script all folders stay: what the text says of its shells is not sure.
                Some(false) => match outer.pop() {
                    Some(before) if place != CommandSource::Script => folders = before,
                    Some(_) | None => {}
                },
                None if matches!(command.words[0].as_str(), "cd" | "pushd" | "popd") => {
                    // In a pipeline or a substitution it changes the folder of another shell.
                    if command.is_plain || place == CommandSource::Script {
                        enter_folder(&mut folders, command.words.get(1), place);
                    }
                }
                None => {
                    for folder in folders.clone() {
                        self.follow_command(command, place, used_by, &folder, depth);
                    }
                }
            }
        }
    }

    fn follow_command(
        &mut self,
        command: &SimpleCommand,
        place: CommandSource,
        used_by: &str,
        folder: &str,
        depth: usize,
    ) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let program = words[0].rsplit('/').next().unwrap_or_default();
        // What is captured is compared: it is the product, or a tool.
        if command.is_captured && !self.is_unconfined() {
            return;
        }
        if self.is_unconfined() {
            // Any word may be a program, or a file that one reads: `env X=1 timeout 5 node tools/notify.js`.
            for path in words.iter().flat_map(|word| paths_in(folder, word)) {
                let kind = RequestKind::Program { is_sure: false, is_sourced: false };
                self.request_file(path, kind, used_by, depth);
            }
        }
        let is_sure = match place {
            _ if self.is_unconfined() => true,
            CommandSource::Line => true,
            CommandSource::Recipe => command.is_plain,
            CommandSource::Script => false,
        };
        let is_sourced = matches!(program, "." | "source");
        let program_kind = || RequestKind::Program { is_sure, is_sourced };
        for path in settings_of(&words).into_iter().filter_map(|word| resolve_word(folder, word)) {
            self.request_file(path, RequestKind::Settings, used_by, depth);
        }
        // `cargo +nightly clippy`, `python3 -m mypy`
        let runs = |tool: &str| {
            words.iter().take(4).any(|word| word.rsplit('/').next().is_some_and(|name| name == tool))
        };
        for CheckTool { files, sections, .. } in CHECK_TOOLS.iter().filter(|tool| runs(tool.command)) {
            for pattern in *files {
                self.protect_input(pattern, InputScope::WholeFile, used_by);
            }
            for (pattern, section) in *sections {
                let sections = BTreeSet::from([(*section).to_owned()]);
                self.protect_input(pattern, InputScope::Sections(sections), used_by);
            }
        }
        for (_, names) in RUNNER_SETTINGS.iter().filter(|(runner, _)| runs(runner)) {
            for name in *names {
                self.request_file(join(folder, name), RequestKind::RunnerSettings, used_by, depth);
            }
        }
        if runs("pytest") || runs("py.test") {
            for file in PYTEST_FILES {
                self.request_file(join(folder, file), RequestKind::PytestSettings, used_by, depth);
            }
            for name in plugin_options(words.iter().copied()) {
                for file in [
                    format!("{}.py", name.replace('.', "/")),
                    format!("{}/__init__.py", name.replace('.', "/")),
                ] {
                    self.request_loaded(join(folder, &file), used_by, depth);
                }
            }
        }
        match program {
            "make" | "gmake" => self.follow_make(&words, used_by, folder, depth),
            "npm" | "pnpm" | "yarn" | "bun" | "run-s" | "run-p" | "npm-run-all" | "npm-run-all2"
            | "concurrently" | "lerna" | "turbo" => {
                self.follow_package(&words, place, used_by, folder, depth);
            }
            "just" => {
                for name in ["justfile", "Justfile", ".justfile"] {
                    self.request_file(join(folder, name), program_kind(), used_by, depth);
                }
            }
            "task" => self.request_file(join(folder, "Taskfile.yml"), program_kind(), used_by, depth),
            "rake" => self.request_file(join(folder, "Rakefile"), program_kind(), used_by, depth),
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "." | "source" => {
                match shell_argument(&words[1..]) {
                    Some(ShellArgument::Text(text)) => {
                        self.follow_text(text, place, used_by, folder, depth + 1)
                    }
                    Some(ShellArgument::File(word)) => match resolve_word(folder, word) {
                        Some(path) => self.request_file(path, program_kind(), used_by, depth),
                        None => self.sources_tests |= is_sourced,
                    },
                    None => {}
                }
            }
            _ if words[0].contains('/') => {
                if let Some(path) = resolve_word(folder, words[0]) {
                    self.request_file(path, program_kind(), used_by, depth);
                }
            }
            // `uv run check.py`: a runner was before it.
            _ if program.ends_with(".py") => {
                self.request_file(join(folder, program), program_kind(), used_by, depth);
            }
            "diff" | "cmp" | "comm" => {
                for path in words[1..].iter().filter_map(|word| resolve_word(folder, word)) {
                    self.request_file(path, RequestKind::Expectation, used_by, depth);
                }
            }
            "cargo" => self.follow_cargo(&words[1..], used_by, depth),
            "deno" => self.follow_deno(&words[1..], used_by, folder, depth),
            _ if is_interpreter(program) => {
                for path in interpreter_files(&words[1..], folder) {
                    self.request_file(path, program_kind(), used_by, depth);
                }
            }
            _ => {}
        }
    }

    fn follow_package(
        &mut self,
        words: &[&str],
        place: CommandSource,
        used_by: &str,
        folder: &str,
        depth: usize,
    ) {
        let Some(PackageUse { folder: own, scripts, in_workspaces }) = package_use(words, folder) else {
            return;
        };
        for script in scripts {
            if in_workspaces {
                // Which folders they are in cannot be told from here.
                let names = with_hooks(&script).into_iter().collect();
                self.protect_input("*package.json", InputScope::PackageScripts(names), used_by);
            }
            let path = join(&own, "package.json");
            self.request_file(path, RequestKind::Package { script }, used_by, depth);
        }
        if words[0] == "concurrently" {
            for text in words[1..].iter().filter(|word| word.contains(' ')) {
                self.follow_text(text, place, used_by, folder, depth + 1);
            }
        }
    }

    /// A package that the check runs is a part of it if its name says so: `cargo run -p ci`. Any other is the product.
    fn follow_cargo(&mut self, words: &[&str], used_by: &str, depth: usize) {
        const OWN: [&str; 18] = [
            "test", "t", "nextest", "build", "b", "check", "c", "clippy", "fmt", "doc", "bench", "metadata",
            "fetch", "deny", "audit", "llvm-cov", "miri", "hack",
        ];
        let mut rest = words.iter().skip_while(|word| word.starts_with('+') || word.starts_with('-'));
        match rest.next() {
            Some(&("run" | "r")) => {
                let words: Vec<&str> = rest.copied().take_while(|word| *word != "--").collect();
                for folder in run_packages(&words) {
                    for part in ["src/*", "build.rs"] {
                        self.protect_input(&join(&folder, part), InputScope::WholeFile, used_by);
                    }
                    if !folder.contains('*') {
                        self.request_file(
                            join(&folder, "src/main.rs"),
                            RequestKind::CommandFile,
                            used_by,
                            depth,
                        );
                    }
                }
            }
            Some(name) if !OWN.contains(name) => {
                let rest = rest.map(|word| (*word).to_owned()).collect();
                let kind = RequestKind::CargoAlias { name: (*name).to_owned(), rest };
                self.request_file(".cargo/config.toml".to_owned(), kind, used_by, depth);
            }
            Some(_) | None => {}
        }
    }

    fn follow_deno(&mut self, words: &[&str], used_by: &str, folder: &str, depth: usize) {
        let program = RequestKind::Program { is_sure: true, is_sourced: false };
        if words.first() == Some(&"run") {
            for path in interpreter_files(words, folder) {
                self.request_file(path, program.clone(), used_by, depth);
            }
        }
        let task = words.iter().skip(1).find(|word| !word.starts_with('-')).filter(|_| words[0] == "task");
        for name in ["deno.json", "deno.jsonc"] {
            let path = join(folder, name);
            let script = task.map(|task| (*task).to_owned()).unwrap_or_default();
            let scripts = BTreeSet::from([script.clone()]);
            self.protect_input(&path, InputScope::PackageScripts(scripts), used_by);
            self.request_file(path, RequestKind::Package { script }, used_by, depth);
        }
    }

    fn follow_make(&mut self, words: &[&str], used_by: &str, folder: &str, depth: usize) {
        let mut folder = folder.to_owned();
        let mut file = None;
        let mut targets = BTreeSet::new();
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            match *word {
                "-C" | "--directory" => {
                    folder = rest.next().and_then(|next| resolve_word(&folder, next)).unwrap_or(folder)
                }
                "-f" | "--file" | "--makefile" => file = rest.next().copied(),
                "-j" | "-l" | "-o" | "-W" => {
                    if rest.clone().next().is_some_and(|next| next.chars().all(|char| char.is_ascii_digit()))
                    {
                        rest.next();
                    }
                }
                word if word.starts_with('-') || word.contains('=') => {
                    if let Some(inside) = word.strip_prefix("-C").or(word.strip_prefix("--directory=")) {
                        folder = resolve_word(&folder, inside).unwrap_or(folder);
                    } else if let Some(inside) = word.strip_prefix("-f").or(word.strip_prefix("--file=")) {
                        file = Some(inside);
                    }
                }
                word => {
                    targets.insert(word.to_owned());
                }
            }
        }
        if targets.is_empty() {
            targets.insert(String::new());
        }
        let names = file.map_or_else(|| vec!["GNUmakefile", "makefile", "Makefile"], |file| vec![file]);
        for name in names {
            if let Some(path) = resolve_word(&folder, name) {
                // One that comes with the change is read before the one that is there.
                self.protect_input(&path, InputScope::MakeTargets(targets.clone()), used_by);
                self.request_file(
                    path,
                    RequestKind::Make { targets: targets.clone(), root: None },
                    used_by,
                    depth,
                );
            }
        }
    }
}

/// Whether a text has a word that is the name of this tool.
fn commands_name(text: &str, tool: &str) -> bool {
    text.split(|char: char| char.is_whitespace() || matches!(char, ';' | '&' | '|' | '(' | ')' | '/'))
        .any(|word| word == tool)
}

/// Whether one of the commands is a shell that is given its script by another program: `ls checks/*.sh | xargs sh`.
fn gives_to_a_shell(commands: &[SimpleCommand]) -> bool {
    commands.iter().any(|command| {
        matches!(command.words.as_slice(), [word] if matches!(word.as_str(), "sh" | "bash" | "dash" | "zsh"))
    })
}

/// The folders, perhaps patterns, of the packages that `cargo run` runs and that are called like a part of the check.
fn run_packages(words: &[&str]) -> Vec<String> {
    let mut folders = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (*word, None),
        };
        if matches!(option, "-p" | "--package" | "--bin" | "--manifest-path")
            && let Some(name) = value.or_else(|| rest.next().copied())
            && is_check_name(name)
        {
            match option {
                "--manifest-path" => folders.push(folder_of(name.trim_start_matches("./")).to_owned()),
                _ => folders.extend([name.to_owned(), format!("*/{name}")]),
            }
        }
    }
    folders
}

/// Whether the name of a package says that it checks or builds, not that it is sold.
fn is_check_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(['/', '.', '_', '-']);
    words.any(|word| matches!(word, "xtask" | "tasks" | "devtools") || CHECK_WORDS.contains(&word))
}

/// What `.cargo/config.toml` says `cargo NAME` stands for.
fn cargo_alias(text: &str, name: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let DeValue::Table(aliases) = table.get("alias")?.get_ref() else { return None };
    match aliases.get(name)?.get_ref() {
        DeValue::String(words) => Some(words.to_string()),
        DeValue::Array(words) => {
            let word = |word: &toml::Spanned<DeValue<'_>>| match word.get_ref() {
                DeValue::String(word) => Some(word.to_string()),
                _ => None,
            };
            Some(words.iter().map(word).collect::<Option<Vec<_>>>()?.join(" "))
        }
        _ => None,
    }
}

const FOLDERS_MAX: usize = 8; // that commands of one text may run in

/// Changes the folders in which the next commands may run.
fn enter_folder(folders: &mut Vec<String>, word: Option<&String>, place: CommandSource) {
    let target = word.and_then(|word| resolve_word(&folders[0], word));
    let is_sure = target.is_some() && place != CommandSource::Script;
    if is_sure {
        folders.clear();
    }
    // Where it goes cannot be told, `cd -` for example: back to the root, perhaps.
    let target = target.unwrap_or_default();
    if folders.len() < FOLDERS_MAX && !folders.contains(&target) {
        folders.push(target);
    }
}

enum ShellArgument<'a> {
    File(&'a str),
    Text(&'a str),
}

/// What a shell is to run.
fn shell_argument<'a>(words: &[&'a str]) -> Option<ShellArgument<'a>> {
    let mut rest = words.iter();
    let mut is_text = false;
    while let Some(word) = rest.next() {
        match *word {
            "--" | "-" => return rest.next().map(|word| shell_operand(word, is_text)),
            "--rcfile" | "--init-file" => {
                rest.next();
            }
            word if word.starts_with("--") => {}
            // A cluster: every `o` in it takes a word, `-euo pipefail` for example.
            word if word.starts_with(['-', '+']) => {
                is_text |= word.starts_with('-') && word.contains('c');
                for _ in word.matches(['o', 'O']) {
                    rest.next();
                }
            }
            word => return Some(shell_operand(word, is_text)),
        }
    }
    None
}

fn shell_operand(word: &str, is_text: bool) -> ShellArgument<'_> {
    if is_text { ShellArgument::Text(word) } else { ShellArgument::File(word) }
}

fn is_interpreter(program: &str) -> bool {
    const NAMES: [&str; 9] = ["node", "ruby", "perl", "php", "lua", "tsx", "ts-node", "Rscript", "pypy3"];
    NAMES.contains(&program) || program.starts_with("python")
}

/// The files that an interpreter runs: a script, or a module of the repository.
fn interpreter_files(words: &[&str], folder: &str) -> Vec<String> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-m" => {
                let Some(module) = rest.next() else { return Vec::new() };
                // What everybody has is no file of the repository.
                const RUNNERS: [&str; 6] = ["unittest", "pytest", "tox", "nox", "coverage", "doctest"];
                let first = module.split('.').next().unwrap_or_default();
                if RUNNERS.contains(&first) {
                    return Vec::new();
                }
                let path = module.replace('.', "/");
                return [format!("{path}.py"), format!("{path}/__main__.py")]
                    .iter()
                    .filter_map(|path| resolve_word(folder, path))
                    .collect();
            }
            "-c" | "-e" | "--eval" | "-p" | "--test" | "-" => return Vec::new(),
            "-W" | "-X" | "-I" | "-r" | "--require" | "--import" => {
                rest.next();
            }
            "run" => {} // deno run
            word if word.starts_with('-') => {}
            word => return resolve_word(folder, word).into_iter().collect(),
        }
    }
    Vec::new()
}

/// Files that a command is given as its settings, or to load first.
fn settings_of<'a>(words: &[&'a str]) -> Vec<&'a str> {
    const OPTIONS: [&str; 8] =
        ["-c", "--config", "--config-file", "-r", "--require", "--import", "--rcfile", "--env-file"];
    const TOOLS: [&str; 12] = [
        "pytest", "py.test", "jest", "mocha", "vitest", "nyc", "c8", "node", "tox", "coverage", "ava", "npx",
    ];
    let is_tool =
        words.iter().take(3).any(|word| TOOLS.contains(&word.rsplit('/').next().unwrap_or_default()));
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1).filter(|_| is_tool) {
        if OPTIONS.contains(word) {
            found.extend(words.get(at + 1).copied());
        } else if let Some((option, value)) = word.split_once('=')
            && OPTIONS.contains(&option)
        {
            found.push(value);
        }
    }
    found.retain(|word| word.contains(['.', '/']));
    found
}

/// Scripts of package.json files that a command runs.
#[derive(Debug, Default)]
struct PackageUse {
    folder: String,
    scripts: Vec<String>,
    /// Whether they are those of other packages of the repository.
    in_workspaces: bool,
}

/// What package managers run when they install.
const LIFECYCLE: [&str; 3] = ["install", "prepublish", "prepare"];

/// What a package manager, or a runner of scripts, runs.
fn package_use(words: &[&str], folder: &str) -> Option<PackageUse> {
    match words[0].rsplit('/').next().unwrap_or_default() {
        "npm" | "pnpm" | "yarn" | "bun" => manager_use(words, folder),
        "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
            let scripts = plain_words(&words[1..]);
            Some(PackageUse { folder: folder.to_owned(), scripts, in_workspaces: false })
        }
        "concurrently" => {
            let names = words[1..].iter().filter_map(|word| word.strip_prefix("npm:"));
            let scripts = names.map(str::to_owned).collect();
            Some(PackageUse { folder: folder.to_owned(), scripts, in_workspaces: false })
        }
        "lerna" | "turbo" => {
            let scripts = plain_words(&words[1..]).into_iter().filter(|word| word != "run").collect();
            Some(PackageUse { folder: folder.to_owned(), scripts, in_workspaces: true })
        }
        _ => None,
    }
}

fn plain_words(words: &[&str]) -> Vec<String> {
    let words = words.iter().take_while(|word| **word != "--");
    words.filter(|word| !word.starts_with('-')).map(|word| (*word).to_owned()).collect()
}

fn manager_use(words: &[&str], folder: &str) -> Option<PackageUse> {
    // Options that take no word. Behind any other one, a word may be its value or the script: both are taken.
    const ALONE: [&str; 12] = [
        "-s",
        "--silent",
        "-q",
        "--quiet",
        "-r",
        "--recursive",
        "-A",
        "--all",
        "--if-present",
        "--ignore-scripts",
        "--parallel",
        "--stream",
    ];
    let manager = words[0].rsplit('/').next().unwrap_or_default();
    let mut found = PackageUse { folder: folder.to_owned(), ..PackageUse::default() };
    let mut candidates: Vec<&str> = Vec::new();
    let (mut runs, mut is_named, mut is_value) = (false, false, false);
    let mut rest = words[1..].iter().copied();
    while let Some(word) = rest.next() {
        let was_value = std::mem::take(&mut is_value);
        match word {
            "--" => break,
            "--prefix" | "-C" | "--dir" | "--cwd" => {
                found.folder =
                    rest.next().and_then(|next| resolve_word(folder, next)).unwrap_or(found.folder);
            }
            "-w" | "--workspace" | "--filter" | "-F" => {
                found.in_workspaces = true;
                rest.next();
            }
            "-ws" | "--workspaces" | "-r" | "--recursive" => found.in_workspaces = true,
            option if option.starts_with('-') => {
                found.in_workspaces |= option.starts_with("--workspace=") || option.starts_with("--filter=");
                is_value = !option.contains('=') && !ALONE.contains(&option) && !option.starts_with("--no-");
            }
            "workspaces" | "foreach" if manager == "yarn" && candidates.is_empty() => {
                found.in_workspaces = true
            }
            "workspace" if manager == "yarn" => {
                found.in_workspaces = true;
                rest.next();
            }
            "run" | "run-script" if !is_named => runs = true,
            word if !is_named => {
                candidates.push(word);
                is_named = !was_value;
            }
            _ => {}
        }
    }
    let is_install = |word: &str| matches!(word, "install" | "ci" | "i" | "install-test" | "it" | "add");
    let installs = !runs
        && (candidates.iter().any(|word| is_install(word)) || (candidates.is_empty() && manager == "yarn"));
    if installs && !words.contains(&"--ignore-scripts") {
        found.scripts.extend(LIFECYCLE.map(str::to_owned));
    }
    let scripts = candidates.into_iter().filter_map(|word| match word {
        "t" | "tst" | "test" | "it" | "install-test" => Some("test"),
        word if runs => Some(word),
        // What managers know themselves; yarn, pnpm and bun take any other word for a script.
        "install" | "ci" | "i" | "exec" | "x" | "add" | "audit" | "dlx" => None,
        "start" | "stop" | "restart" => Some(word),
        word => (manager != "npm").then_some(word),
    });
    found.scripts.extend(scripts.map(str::to_owned));
    (!found.scripts.is_empty()).then_some(found)
}

/// A script with those that run before and after it.
fn with_hooks(script: &str) -> [String; 3] {
    [format!("pre{script}"), script.to_owned(), format!("post{script}")]
}

/// A path from the root of the repository; none for what cannot be told without running it, or is outside.
/// The files that a word of a command may name. What comes before the project in a full path or behind a variable is not known,
/// so each end of such a path counts.
fn paths_in(folder: &str, word: &str) -> Vec<String> {
    const ENDS_MAX: usize = 12; // people write few folders
    // `--config=x.json`, `NAME:x.json`, `@x.json`
    let word = word.rsplit(['=', ':', '@', ',']).next().unwrap_or(word);
    if word.bytes().all(|byte| matches!(byte, b'.' | b'/')) {
        return Vec::new(); // `.` reads a file into the shell, or is everything
    }
    let mut found: Vec<String> = resolve_word(folder, word).into_iter().collect();
    if word.starts_with(['/', '~']) || word.contains('$') {
        let ends = word.match_indices('/').rev().take(ENDS_MAX).map(|(at, _)| &word[at + 1..]);
        found.extend(ends.filter_map(|end| resolve_word("", end)));
    }
    found.retain(|path| !path.is_empty());
    found
}

fn resolve_word(folder: &str, word: &str) -> Option<String> {
    // `"$(dirname "$0")/x"`, `$PWD/x`, `${HERE}/x`: what is behind the last of them is tried from this folder.
    let word = if word.contains(['$', '`']) {
        let behind = match word.rfind([')', '}', '`']) {
            Some(at) => &word[at + 1..],
            None => &word[word.rfind('$')?..],
        };
        let (_, rest) = behind.split_once('/')?;
        rest
    } else {
        word
    };
    if word.is_empty()
        || word.starts_with(['/', '~', '-'])
        || word.contains(['*', '?', '[', '{', '$', '`', '\n', '\0'])
        || word.len() > 500
    {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in word.split('/') {
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

/// Where a link leads, from the root of the repository; none if it leads outside.
pub(super) fn resolve_link(link: &str, target: &str) -> Option<String> {
    resolve_word(folder_of(link), target)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn is_shell(path: &str, text: &str) -> bool {
    let ends = [".sh", ".bash", ".zsh", ".ksh"].iter().any(|ending| path.ends_with(ending));
    let first = text.lines().next().unwrap_or_default();
    let has_no_ending = !path.rsplit('/').next().unwrap_or_default().contains('.');
    ends || (first.starts_with("#!") && first.contains("sh")) || (has_no_ending && !first.starts_with("#!"))
}

/// Words in the names of programs that check.
const CHECK_WORDS: [&str; 16] = [
    "test",
    "tests",
    "check",
    "checks",
    "ci",
    "verify",
    "lint",
    "spec",
    "suite",
    "harness",
    "unit",
    "integration",
    "e2e",
    "scripts",
    "assert",
    "asserts",
];

/// Whether a program that a check script runs is a part of the check rather than the product. Its place and name say so, or
/// that it runs tests itself.
fn is_check_like(path: &str, text: &str) -> bool {
    const RUNS: [&str; 12] = [
        "cargo test",
        "cargo nextest",
        "pytest",
        "-m unittest",
        "npm test",
        "npm run",
        "go test",
        "node --test",
        "make test",
        "make check",
        "assert",
        "expect_",
    ];
    !is_in_product(path) && (has_check_name(path) || RUNS.iter().any(|runs| text.contains(runs)))
}

fn has_check_name(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    !is_in_product(path) && lower.split(['/', '.', '_', '-']).any(|word| CHECK_WORDS.contains(&word))
}

/// Whether a folder on the way to a file says that it is the product.
fn is_in_product(path: &str) -> bool {
    const PRODUCT: [&str; 5] = ["src", "bin", "app", "pkg", "cmd"];
    let lower = path.to_ascii_lowercase();
    folder_of(&lower).split('/').any(|folder| PRODUCT.contains(&folder))
}
