//! Where packages come from, in files that a change may touch for other reasons: a library that does not come from its registry
//! can be any program.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

/// The part of such a file that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceFile {
    /// `requirements.txt`.
    Requirements,
    /// A list of exact versions, written by a package manager.
    Lock,
    /// A lock that counts before the other one, as a whole where it comes.
    Shrinkwrap,
    /// The workspace of pnpm: its packages, and what takes the place of others.
    PnpmWorkspace,
    /// The program that builds a Python package.
    SetupProgram,
    /// Variables, one each line.
    Variables,
}

impl SourceFile {
    pub(super) fn from_path(path: &str) -> Option<Self> {
        const LOCKS: [&str; 8] = [
            "package-lock.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "uv.lock",
            "poetry.lock",
            "pdm.lock",
            "cargo.lock",
            "bun.lock",
        ];
        let lower = path.to_ascii_lowercase();
        let name = lower.rsplit('/').next().unwrap_or_default();
        let is_list = ["requirements", "constraints"].iter().any(|word| lower.contains(word));
        match name {
            "npm-shrinkwrap.json" => Some(Self::Shrinkwrap),
            "pnpm-workspace.yaml" | "pnpm-workspace.yml" => Some(Self::PnpmWorkspace),
            "setup.py" => Some(Self::SetupProgram),
            _ if LOCKS.contains(&name) => Some(Self::Lock),
            _ if is_list && (name.ends_with(".txt") || name.ends_with(".in")) => Some(Self::Requirements),
            _ if name.starts_with(".env") || name.ends_with(".env") => Some(Self::Variables),
            _ => None,
        }
    }

    /// The lines that count, if that can be told from each version alone.
    pub(super) fn is_source_line(self, line: &str) -> bool {
        let code = line.trim();
        match self {
            Self::Requirements => {
                let is_list = ["-r ", "-c ", "--hash"].iter().any(|option| code.starts_with(option));
                !code.starts_with('#')
                    && ((code.starts_with('-') && !is_list)
                        || code.starts_with(['.', '/'])
                        || code.contains("://")
                        || code.contains(" @ ")
                        || code.contains("file:"))
            }
            Self::PnpmWorkspace => {
                const ELSEWHERE: [&str; 5] = ["link:", "file:", "portal:", "://", "patchedDependencies"];
                code.starts_with("- ")
                    || code.contains('!')
                    || ELSEWHERE.iter().any(|mark| code.contains(mark))
            }
            Self::SetupProgram => {
                const PROGRAM: [&str; 12] = [
                    "import ", "from ", "def ", "class ", "exec", "with ", "for ", "if ", "try", "while ",
                    "@", "else",
                ];
                const ANYWHERE: [&str; 5] = ["cmdclass", "pytest11", "open(", "os.", "subprocess"];
                PROGRAM.iter().any(|word| code.starts_with(word))
                    || ANYWHERE.iter().any(|word| code.contains(word))
            }
            Self::Variables => super::ecosystems::sets_runner_variable(code),
            Self::Lock | Self::Shrinkwrap => false,
        }
    }
}

/// Hosts of registries that everybody uses.
const REGISTRIES: [&str; 8] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "github.com/rust-lang/crates.io-index",
    "index.crates.io",
    "static.crates.io",
    "npm",
];

/// A package in a lock, and where it comes from.
struct LockedPackage {
    name: String,
    source: String,
    line: String,
}

/// Packages that came from one place and come from another now, and those from a host that the lock did not name.
pub(super) fn moved_packages(before: &str, after: &str) -> Vec<String> {
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut hosts: BTreeSet<String> = REGISTRIES.iter().map(|host| (*host).to_owned()).collect();
    for LockedPackage { name, source, .. } in locked_packages(before) {
        if !is_local(&source) {
            hosts.insert(source.clone());
        }
        known.entry(name).or_default().insert(source);
    }
    let is_moved = |package: &LockedPackage| match known.get(&package.name) {
        Some(sources) if sources.contains(&package.source) => false,
        // From one registry to another one.
        Some(_) => !hosts.contains(&package.source),
        None => !is_local(&package.source) && !hosts.contains(&package.source),
    };
    let moved = locked_packages(after).into_iter().filter(is_moved);
    moved.map(|package| format!("+{}: {}", package.name, package.line)).collect()
}

/// A package of the repository itself, or of a folder.
fn is_local(source: &str) -> bool {
    source == LOCAL
}

const LOCAL: &str = "this repository";

/// The packages of a lock of any kind, as far as its lines tell. It is written by a program: each has its place on a line.
fn locked_packages(text: &str) -> Vec<LockedPackage> {
    let mut found = Vec::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| line.len() < LINE_MAX) {
        let code = line.trim();
        if let Some(header) = package_name(code) {
            name = header;
        }
        if let Some(source) = source_of(code) {
            found.push(LockedPackage { name: name.clone(), source, line: code.to_owned() });
        }
    }
    found
}

const LINE_MAX: usize = 4_000;

/// The name that begins an entry.
fn package_name(code: &str) -> Option<String> {
    if let Some(name) = code.strip_prefix("name = ") {
        return Some(name.trim_matches('"').to_owned());
    }
    // `"node_modules/jest": {`, `jest@^29.0.0:`, `/jest@29.0.0:`
    let head = code.strip_suffix('{').unwrap_or(code).trim().strip_suffix(':')?;
    let head = head.split(',').next().unwrap_or_default().trim_matches(['"', '\'', '/']);
    let name = head.rsplit("node_modules/").next().unwrap_or_default();
    let end = name.get(1..).and_then(|rest| rest.find('@')).map_or(name.len(), |at| at + 1);
    (!name.is_empty() && !name.contains(' ')).then(|| name[..end].to_owned())
}

/// Where the package of a line comes from: a host, a way such as `git`, or this repository.
fn source_of(code: &str) -> Option<String> {
    let value = ["\"resolved\": ", "resolved ", "resolution: ", "source = ", "tarball: ", "directory: "]
        .iter()
        .find_map(|key| code.strip_prefix(key))
        .or_else(|| code.find("url = \"").map(|at| &code[at + 6..]))
        .or_else(|| {
            ["tarball: ", "directory: "].iter().find_map(|key| Some(&code[code.find(key)? + key.len()..]))
        })?;
    let value =
        value.trim_matches(|char: char| char.is_whitespace() || matches!(char, '"' | '\'' | ',' | '{' | '}'));
    if value.starts_with("integrity:") {
        return None;
    }
    if ["git+", "git ", "git ="].iter().any(|way| value.starts_with(way)) {
        let place = value.split("://").nth(1).unwrap_or(value).split(['"', '?', '#', '}']).next();
        return Some(format!("git {}", place.unwrap_or_default()));
    }
    if let Some(at) = value.find("://") {
        let rest = &value[at + 3..];
        let index = "github.com/rust-lang/crates.io-index";
        let host = if rest.starts_with(index) { index } else { rest.split(['/', '"', ' ']).next()? };
        return Some(host.to_owned());
    }
    // `jest@npm:29.0.0`
    let behind = value.get(1..).and_then(|rest| rest.split_once('@')).map_or(value, |(_, way)| way);
    Some(if behind.starts_with("npm:") { "npm".to_owned() } else { LOCAL.to_owned() })
}

/// Dependencies of a manifest that came from a registry and come from a folder or a repository now.
pub(super) fn moved_dependencies(before: &str, after: &str) -> Vec<String> {
    let before = parse_dependencies(before);
    let is_moved = |(name, (is_elsewhere, _)): &(&String, &(bool, String))| {
        *is_elsewhere && before.get(*name).is_some_and(|(was_elsewhere, _)| !was_elsewhere)
    };
    let after = parse_dependencies(after);
    after.iter().filter(is_moved).map(|(name, (_, text))| format!("+{name} = {text}")).collect()
}

/// The dependencies of a manifest by their whole key, each with whether it comes from elsewhere.
fn parse_dependencies(text: &str) -> BTreeMap<String, (bool, String)> {
    let Ok(table) = DeTable::parse(text) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    let mut pending: Vec<(String, &DeTable<'_>)> = vec![(String::new(), table.get_ref())];
    while let Some((key, table)) = pending.pop() {
        for (name, value) in table {
            let inner =
                if key.is_empty() { name.get_ref().to_string() } else { format!("{key}.{}", name.get_ref()) };
            let written = || text[value.span()].split_whitespace().collect::<Vec<_>>().join(" ");
            match value.get_ref() {
                DeValue::Table(table) if key.ends_with("dependencies") => {
                    let is_elsewhere =
                        ["path", "git", "url", "registry"].iter().any(|from| table.contains_key(*from));
                    found.insert(inner, (is_elsewhere, written()));
                }
                DeValue::Table(table) => pending.push((inner, table)),
                _ if key.ends_with("dependencies") => {
                    found.insert(inner, (false, written()));
                }
                _ => {}
            }
        }
    }
    found
}
