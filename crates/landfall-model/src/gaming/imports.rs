//! Files that a check program, or the configuration of a test runner, loads by name: they are parts of the check as well.

use super::ecosystems;

const SCRIPTS_MAX: usize = 12; // scripts that one file names and that are looked for
const NAMES_MAX: usize = 12; // modules that one file loads and that are looked for

/// The files that a program of Python or JavaScript may import, from the root of the repository. Only one of several spellings
/// of a module is there.
pub(super) fn imported_files(path: &str, text: &str) -> Vec<String> {
    find_imported_files(path, text, |module| !is_standard(module))
}

/// The same with files that are not there yet and that would be found before a module of the language.
pub(super) fn imported_or_shadowing_files(path: &str, text: &str) -> Vec<String> {
    find_imported_files(path, text, |_| true)
}

fn is_standard(module: &str) -> bool {
    ecosystems::is_python_standard(module.split('.').next().unwrap_or_default())
}

fn find_imported_files(path: &str, text: &str, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "py" => {
            let modules =
                text.lines().flat_map(python_modules).filter(|module| counts(module)).take(NAMES_MAX);
            modules.flat_map(|module| python_files(folder, &module)).collect()
        }
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" => {
            let names =
                text.lines().filter(|line| is_import_line(line)).flat_map(quoted_paths).take(NAMES_MAX);
            names.flat_map(|name| script_files(folder, name, ending)).collect()
        }
        _ => Vec::new(),
    }
}

/// The files that a configuration names: `./tools/setup.js`, `<rootDir>/tools/setup.js`.
pub(super) fn configured_files(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let listed = text.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(str::trim);
    let names = text.lines().flat_map(quoted_paths).chain(listed);
    let files = names.map(|name| name.trim_start_matches("<rootDir>/").trim_start_matches("./"));
    let is_file = |name: &&str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        last.contains('.')
            && !name.contains(['*', ' ', '{', '$', '(', ':'])
            && !name.starts_with(['/', '.', '-'])
    };
    files.filter(is_file).take(NAMES_MAX).filter_map(|name| join_in_repository(folder, name)).collect()
}

/// Files that a text names and that are scripts by their ending: what the commands of a settings file, or of a check program, run.
pub(super) fn named_scripts(path: &str, text: &str) -> Vec<String> {
    const ENDINGS: [&str; 10] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "bats"];
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', ';']) && !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| {
        line.split(|char: char| !(char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '/' | '-')))
    });
    let is_script = |word: &&str| {
        word.rsplit_once('.').is_some_and(|(stem, ending)| {
            ENDINGS.contains(&ending) && stem.ends_with(|char: char| char.is_ascii_alphanumeric())
        })
    };
    let mut found: Vec<String> = Vec::new();
    for word in words.filter(is_script) {
        let name = word.trim_start_matches('/').trim_start_matches("./");
        for folder in ["", folder] {
            let file = join_in_repository(folder, name).filter(|file| file != path && !found.contains(file));
            found.extend(file.filter(|_| found.len() < SCRIPTS_MAX * 2));
        }
    }
    found
}

/// Where pytest looks for its settings, and what it loads by itself.
pub(super) const PYTEST_FILES: [&str; 7] = [
    "conftest.py",
    "tests/conftest.py",
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "setup.cfg",
    "tox.ini",
];

/// The modules that settings of pytest, a conftest.py or a command line make it load as plugins.
pub(super) fn pytest_plugins(path: &str, text: &str) -> Vec<String> {
    let modules = match path.ends_with(".py") {
        true => conftest_modules(text),
        false => plugin_options(
            text.split(|char: char| char.is_whitespace() || matches!(char, '"' | '\'' | ',' | '[' | ']')),
        ),
    };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found: Vec<String> = Vec::new();
    for module in modules.iter().take(NAMES_MAX) {
        found.extend(python_files("", module));
        // A folder of tests is on the path of modules as well.
        if !folder.is_empty() {
            found.extend(python_files(folder, module));
        }
    }
    found
}

/// The plugins that `-p` names.
pub(super) fn plugin_options<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_name = false;
    for word in words.filter(|word| !word.is_empty()) {
        let name = if std::mem::take(&mut is_name) { Some(word) } else { word.strip_prefix("-p") };
        match name {
            Some("") => is_name = true,
            Some(name) if !name.starts_with("no:") && !name.starts_with('-') => found.push(name.to_owned()),
            Some(_) | None => {}
        }
    }
    found.retain(|name| name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '.')));
    found
}

/// The modules whose hooks a conftest.py has: those in `pytest_plugins`, and those from which it takes all names, or a hook.
fn conftest_modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some((_, list)) = text.split_once("pytest_plugins") {
        let end =
            list.find([']', ')']).filter(|_| list.trim_start_matches([' ', '=']).starts_with(['[', '(']));
        let list = &list[..end.or_else(|| list.find('\n')).unwrap_or(list.len())];
        found.extend(list.split(['"', '\'']).skip(1).step_by(2).map(str::to_owned));
    }
    for line in text.lines() {
        let Some((module, names)) =
            line.trim().strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
        else {
            continue;
        };
        if names.contains('*') || names.contains("pytest_") {
            found.push(module.trim().to_owned());
        }
    }
    found
}

fn is_import_line(line: &str) -> bool {
    let code = line.trim_start();
    ["import ", "import{", "export ", "} from"].iter().any(|word| code.starts_with(word))
        || ["require(", "import("].iter().any(|word| code.contains(word))
}

/// What a line has in quotes and that begins like a path.
fn quoted_paths(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let quote = char::from(rest.as_bytes()[at]);
        let Some((inside, behind)) = rest[at + 1..].split_once(quote) else { break };
        if ["./", "../", "<rootDir>/"].iter().any(|begin| inside.starts_with(begin)) {
            found.push(inside);
        }
        rest = behind;
    }
    found
}

/// `import a.b, c` and `from a import b` as `a.b`, `c`, and `a`, `a.b`. A dot at the beginning stays.
fn python_modules(line: &str) -> Vec<String> {
    let code = line.split('#').next().unwrap_or_default().trim();
    let name_of = |part: &str| part.split_whitespace().next().unwrap_or_default().to_owned();
    let modules: Vec<String> = if let Some(list) = code.strip_prefix("import ") {
        list.split(',').map(name_of).collect()
    } else if let Some((module, list)) =
        code.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    {
        let module = module.trim();
        let inner = list.trim_matches(['(', ')', ' ']).split(',').map(name_of);
        let joined = inner.filter(|name| !name.is_empty()).map(|name| match module.ends_with('.') {
            true => format!("{module}{name}"),
            false => format!("{module}.{name}"),
        });
        std::iter::once(module.to_owned()).chain(joined.take(3)).collect()
    } else {
        Vec::new()
    };
    let is_module = |module: &String| {
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
        !module.is_empty() && module.chars().all(is_name)
    };
    modules.into_iter().filter(is_module).collect()
}

fn python_files(folder: &str, module: &str) -> Vec<String> {
    let dots = module.len() - module.trim_start_matches('.').len();
    let name = module.trim_start_matches('.').replace('.', "/");
    let mut folder = folder;
    for _ in 1..dots {
        folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
    }
    if name.is_empty() {
        return Vec::new();
    }
    ["py", "/__init__.py"]
        .iter()
        .filter_map(|end| {
            let end = if end.starts_with('/') { (*end).to_owned() } else { format!(".{end}") };
            join_in_repository(folder, &format!("{name}{end}"))
        })
        .collect()
}

fn script_files(folder: &str, name: &str, ending: &str) -> Vec<String> {
    let last = name.rsplit('/').next().unwrap_or_default();
    let names = match last.contains('.') && !last.starts_with('.') {
        true => vec![name.to_owned()],
        false => {
            let mut endings = vec![format!(".{ending}"), ".js".to_owned(), "/index.js".to_owned()];
            endings.dedup();
            endings.into_iter().map(|end| format!("{name}{end}")).collect()
        }
    };
    names.iter().filter_map(|name| join_in_repository(folder, name)).collect()
}

/// A path from the root; none for one outside of the repository.
fn join_in_repository(folder: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_modules_are_looked_for_where_the_program_is() {
        assert_eq!(
            imported_files("ci/check.py", "import os, rules\nfrom .more import one\nfrom lib import two\n"),
            [
                "ci/rules.py",
                "ci/rules/__init__.py",
                "ci/more.py",
                "ci/more/__init__.py",
                "ci/more/one.py",
                "ci/more/one/__init__.py",
                "ci/lib.py",
                "ci/lib/__init__.py",
                "ci/lib/two.py",
                "ci/lib/two/__init__.py"
            ]
        );
        assert_eq!(
            imported_files(
                "ci/check.mjs",
                "import { a } from './rules.mjs';\nconst b = require('../lib');\n"
            ),
            ["ci/rules.mjs", "lib.mjs", "lib.js", "lib/index.js"]
        );
        assert_eq!(
            imported_files("ci/check.js", "console.log('./rules.js')\nimport fs from 'fs';\n"),
            [""; 0]
        );
        assert_eq!(configured_files(".mocharc.yml", "require:\n  - ./tools/setup.js\n"), ["tools/setup.js"]);
        assert_eq!(
            configured_files("web/jest.config.js", "setupFiles: ['<rootDir>/tools/env.js', './src'],"),
            ["web/tools/env.js"]
        );
    }
}
