//! Files that a check program, or the configuration of a test runner, loads by name: they are parts of the check as well.

use super::ecosystems;

const NAMES_MAX: usize = 12; // modules that one file loads and that are looked for

/// The files that a program of Python or JavaScript may import, from the root of the repository. Only one of several spellings
/// of a module is there.
pub(super) fn imported_files(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "py" => {
            let modules = text.lines().flat_map(python_modules).take(NAMES_MAX);
            modules.flat_map(|module| python_files(folder, &module)).collect()
        }
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" => {
            let names = text.lines().filter(|line| loads(line)).flat_map(quoted_paths).take(NAMES_MAX);
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
    files.filter(is_file).take(NAMES_MAX).filter_map(|name| below(folder, name)).collect()
}

fn loads(line: &str) -> bool {
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
    let is_local = |module: &String| {
        let first = module.split('.').next().unwrap_or_default();
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
        !module.is_empty() && module.chars().all(is_name) && !ecosystems::is_python_standard(first)
    };
    modules.into_iter().filter(is_local).collect()
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
            below(folder, &format!("{name}{end}"))
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
    names.iter().filter_map(|name| below(folder, name)).collect()
}

/// A path from the root; none for one outside of the repository.
fn below(folder: &str, name: &str) -> Option<String> {
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
