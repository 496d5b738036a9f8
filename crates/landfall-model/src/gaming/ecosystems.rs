//! What each ecosystem loads without being asked for. This table is the only place that knows these names.

use super::ChangedFile;

/// Files that configure a runner of tests, or that it loads by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ecosystem {
    pub name: &'static str,
    /// Names of files in any folder. A `*` at the end or at the beginning stands for anything.
    pub files: &'static [&'static str],
    /// Folders, in any place, whose whole content counts.
    pub folders: &'static [&'static str],
    /// Modules that the runner imports: one of this name at the root of the repository is loaded in its place.
    pub modules: &'static [&'static str],
    /// Endings of such modules.
    pub module_endings: &'static [&'static str],
    /// Files of which only some sections or keys count.
    pub sections: &'static [SectionRule],
}

/// The part of a settings file that decides about tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionRule {
    /// The name of the file, in any folder.
    pub file: &'static str,
    /// How the header of a section begins that counts as a whole, without its brackets.
    pub sections: &'static [&'static str],
    /// How lines begin that count wherever they are.
    pub lines: &'static [&'static str],
}

pub(super) const ECOSYSTEMS: [Ecosystem; 4] = [
    Ecosystem {
        name: "Cargo",
        files: &["rust-toolchain", "rust-toolchain.toml", "build.rs"],
        folders: &[".cargo", ".config/nextest.toml"],
        modules: &[],
        module_endings: &[],
        sections: &[SectionRule {
            file: "Cargo.toml",
            sections: &["test", "bench", "profile.test", "patch", "replace", "workspace.metadata.nextest"],
            lines: &["autotests", "harness", "test =", "test=", "doctest", "build =", "build="],
        }],
    },
    Ecosystem {
        name: "Python",
        files: &[
            "conftest.py",
            "pytest.ini",
            ".pytest.ini",
            "tox.ini",
            "noxfile.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
            ".coveragerc",
        ],
        folders: &[],
        // What unittest and pytest import, and what people do not name their own modules after.
        modules: &[
            "unittest",
            "pytest",
            "_pytest",
            "pluggy",
            "iniconfig",
            "doctest",
            "nose",
            "nose2",
            "hypothesis",
            "traceback",
            "argparse",
            "difflib",
            "warnings",
            "contextlib",
            "functools",
            "inspect",
            "weakref",
            "fnmatch",
            "asyncio",
            "pprint",
            "collections",
            "importlib",
            "runpy",
            "site",
            "builtins",
        ],
        module_endings: &[".py", ".pyc", ".so", "/"],
        sections: &[
            SectionRule {
                file: "pyproject.toml",
                sections: &["tool.pytest", "tool.coverage", "tool.tox", "tool.nox", "tool.hatch.envs"],
                lines: &[],
            },
            SectionRule { file: "setup.cfg", sections: &["tool:pytest", "unittest", "coverage"], lines: &[] },
        ],
    },
    Ecosystem {
        name: "npm",
        files: &[
            ".mocharc*",
            "jest.config*",
            "jest.setup*",
            "jest.preset*",
            "jest-preset*",
            "vitest.*",
            "ava.config*",
            "karma.conf*",
            "playwright.config*",
            "cypress.config*",
            ".nycrc*",
            ".c8rc*",
            ".taprc",
            ".npmrc",
            ".yarnrc*",
            ".pnpmfile*",
        ],
        folders: &["node_modules"],
        modules: &[],
        module_endings: &[],
        sections: &[],
    },
    Ecosystem {
        name: "Go",
        files: &["go.work"],
        folders: &["vendor/github.com/stretchr", "vendor/gotest.tools", "vendor/github.com/onsi"],
        modules: &[],
        module_endings: &[],
        sections: &[SectionRule { file: "go.mod", sections: &[], lines: &["replace", "toolchain"] }],
    },
];

/// Keys of a package.json that configure a runner, besides its scripts.
pub(super) const PACKAGE_KEYS: &[&str] =
    &["jest", "mocha", "vitest", "ava", "tap", "nyc", "c8", "jasmine", "imports"];

/// The ecosystem that loads this file without being asked for.
pub(super) fn loaded_by(file: &ChangedFile) -> Option<&'static Ecosystem> {
    let lower = file.path.to_ascii_lowercase();
    ECOSYSTEMS.iter().find(|ecosystem| {
        let name = lower.rsplit('/').next().unwrap_or_default();
        let is_named = ecosystem.files.iter().any(|pattern| matches(pattern, name));
        // A module of the crate that is called `build` is no build script.
        let runs = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("fn main("));
        let is_module = name == "build.rs"
            && format!("/{lower}").contains("/src/")
            && !runs(&file.before)
            && !runs(&file.after);
        let is_in = |folder: &&str| format!("/{lower}/").contains(&format!("/{folder}/"));
        (is_named && !is_module)
            || ecosystem.folders.iter().any(is_in)
            || (file.created && shadows(ecosystem, &lower))
    })
}

/// Whether a file of this name may be loaded so.
pub(super) fn may_be_loaded(path: &str) -> bool {
    let created = ChangedFile { path: path.to_owned(), created: true, ..ChangedFile::default() };
    loaded_by(&created).is_some() || path.to_ascii_lowercase().ends_with("build.rs")
}

/// Whether the file takes the place of a module that the runner imports.
fn shadows(ecosystem: &Ecosystem, lower: &str) -> bool {
    ecosystem.modules.iter().any(|module| {
        // Folders that are put on the path of modules, besides the root.
        let inside = ["", "src/", "lib/", "test/", "tests/"]
            .iter()
            .find_map(|folder| lower.strip_prefix(folder)?.strip_prefix(module));
        inside.is_some_and(|rest| {
            ecosystem.module_endings.iter().any(|ending| match *ending {
                "/" => rest.starts_with('/'),
                ending => rest == ending,
            })
        })
    })
}

/// The sections of this file that count.
pub(super) fn section_rule(path: &str) -> Option<&'static SectionRule> {
    let name = path.rsplit('/').next().unwrap_or_default();
    ECOSYSTEMS
        .iter()
        .flat_map(|ecosystem| ecosystem.sections)
        .find(|rule| rule.file.eq_ignore_ascii_case(name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(ending), _) => name.ends_with(ending),
        (None, Some(beginning)) => name.starts_with(beginning),
        (None, None) => name == pattern,
    }
}
