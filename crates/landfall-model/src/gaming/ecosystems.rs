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

/// How a settings file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsFormat {
    Toml,
    Ini,
    GoMod,
}

/// The part of a settings file that decides about tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionRule {
    /// The name of the file, in any folder.
    pub file: &'static str,
    pub format: SettingsFormat,
    /// Sections that count as a whole, with those inside them.
    pub sections: &'static [&'static str],
    /// Keys that count, with their sections; in a go.mod, directives.
    pub keys: &'static [&'static str],
    /// Keys that count wherever they are in a section, each with the section.
    pub inner_keys: &'static [(&'static str, &'static str)],
    /// Lists from which no word may go. One that comes is no news.
    pub growing: &'static [&'static str],
}

pub(super) const ECOSYSTEMS: [Ecosystem; 4] = [
    Ecosystem {
        name: "Cargo",
        files: &["rust-toolchain", "rust-toolchain.toml", "build.rs", "makefile.toml"],
        folders: &[".cargo", ".config/nextest.toml"],
        modules: &[],
        module_endings: &[],
        sections: &[SectionRule {
            file: "Cargo.toml",
            format: SettingsFormat::Toml,
            sections: &["test", "profile.test", "patch", "replace", "workspace.metadata.nextest"],
            keys: &[
                "package.autotests",
                "package.build",
                "lib.test",
                "lib.harness",
                "lib.doctest",
                "workspace.default-members",
                "workspace.exclude",
            ],
            inner_keys: &[
                ("bin", "test"),
                ("bin", "harness"),
                ("example", "test"),
                // Tests are built like this, unless `[profile.test]` says something else.
                ("profile.dev", "debug-assertions"),
                ("profile.dev", "overflow-checks"),
                ("profile.dev", "panic"),
            ],
            growing: &["workspace.members"],
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
            "pytest.toml",
            ".pytest.toml",
            // Compiled modules can take the place of their sources.
            "*.pyc",
            "*.pyo",
            "hatch_build.py",
            ".python-version",
        ],
        folders: &[],
        // What unittest and pytest import, and what people do not name their own modules after.
        modules: &[
            "unittest",
            "pytest",
            "_pytest",
            "pluggy",
            "iniconfig",
            "packaging",
            "pygments",
            "exceptiongroup",
            "tomli",
            "xdist",
            "coverage",
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
        module_endings: &["py", "pyc", "so", "pyd"],
        sections: &[
            SectionRule {
                file: "pyproject.toml",
                format: SettingsFormat::Toml,
                sections: &[
                    "tool.pytest",
                    "tool.coverage",
                    "tool.tox",
                    "tool.nox",
                    "tool.hatch.envs",
                    "tool.pdm.scripts",
                    "tool.poe",
                    "tool.taskipy",
                    "project.entry-points.pytest11",
                    "tool.poetry.plugins.pytest11",
                    // Where packages come from, and code that runs when one is built.
                    "tool.uv.sources",
                    "tool.uv.override-dependencies",
                    "tool.uv.index",
                    "tool.uv.index-url",
                    "tool.uv.extra-index-url",
                    "tool.uv.find-links",
                    "tool.poetry.source",
                    "tool.poetry.build",
                    "tool.pdm.source",
                    "tool.hatch.build.hooks",
                    "tool.setuptools.cmdclass",
                ],
                // Code of the repository that runs when the check installs the package.
                keys: &["build-system.backend-path", "build-system.build-backend"],
                inner_keys: &[],
                growing: &[],
            },
            SectionRule {
                file: "setup.cfg",
                format: SettingsFormat::Ini,
                sections: &["tool:pytest", "unittest", "coverage"],
                keys: &[],
                inner_keys: &[],
                growing: &[],
            },
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
            "vite.config*",
            "babel.config*",
            ".babelrc*",
            "bunfig.toml",
            "turbo.json",
            "nx.json",
            "mise.toml",
            ".mise.toml",
            "mise.local.toml",
            ".mise.local.toml",
            ".tool-versions",
            ".nvmrc",
            ".node-version",
            ".pnp.*",
        ],
        folders: &[
            "node_modules",
            ".yarn/releases",
            ".yarn/plugins",
            ".yarn/patches",
            ".config/mise",
            ".config/mise.toml",
        ],
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
        sections: &[SectionRule {
            file: "go.mod",
            format: SettingsFormat::GoMod,
            sections: &[],
            keys: &["replace", "toolchain", "ignore", "exclude"],
            inner_keys: &[],
            growing: &[],
        }],
    },
];

/// A tool that checks how code is written, or that runs what its settings say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckTool {
    /// The command that runs it.
    pub command: &'static str,
    /// Its settings as paths in which `*` stands for anything.
    pub files: &'static [&'static str],
    /// Sections of settings that it shares with others.
    pub sections: &'static [(&'static str, &'static str)],
}

const fn check_tool(
    command: &'static str,
    files: &'static [&'static str],
    sections: &'static [(&'static str, &'static str)],
) -> CheckTool {
    CheckTool { command, files, sections }
}

/// Their settings count where a verify command runs the tool.
pub(super) const CHECK_TOOLS: &[CheckTool] = &[
    check_tool("fmt", &["*rustfmt.toml"], &[]),
    check_tool("rustfmt", &["*rustfmt.toml"], &[]),
    check_tool("deny", &["*deny.toml"], &[]),
    check_tool("typos", &["*typos.toml"], &[]),
    check_tool("gulp", &["gulpfile.*"], &[]),
    check_tool("grunt", &["Gruntfile.*"], &[]),
    check_tool("mage", &["magefile.go", "magefiles/*"], &[]),
    check_tool("doit", &["dodo.py"], &[]),
    check_tool("stylelint", &["*.stylelintrc*", "*stylelint.config.*"], &[]),
    check_tool("oxlint", &["*.oxlintrc.json"], &[]),
    check_tool("hadolint", &["*.hadolint.*"], &[]),
    // `git archive` leaves out what the attributes name.
    check_tool("archive", &["*.gitattributes"], &[]),
    check_tool("clippy", &["*clippy.toml"], &[("*Cargo.toml", "lints"), ("*Cargo.toml", "workspace.lints")]),
    check_tool("ruff", &["*ruff.toml"], &[("*pyproject.toml", "tool.ruff")]),
    check_tool("mypy", &["*mypy.ini"], &[("*pyproject.toml", "tool.mypy"), ("*setup.cfg", "mypy")]),
    check_tool("flake8", &["*.flake8"], &[("*setup.cfg", "flake8")]),
    check_tool("pylint", &["*pylintrc"], &[("*pyproject.toml", "tool.pylint"), ("*setup.cfg", "pylint")]),
    check_tool("pyright", &["*pyrightconfig.json"], &[("*pyproject.toml", "tool.pyright")]),
    check_tool("black", &[], &[("*pyproject.toml", "tool.black")]),
    check_tool("isort", &["*.isort.cfg"], &[("*pyproject.toml", "tool.isort"), ("*setup.cfg", "isort")]),
    check_tool("bandit", &["*.bandit"], &[("*pyproject.toml", "tool.bandit")]),
    check_tool("eslint", &["*eslint.config.*", "*.eslintrc*", "*.eslintignore"], &[]),
    check_tool("prettier", &["*.prettierrc*", "*.prettierignore"], &[]),
    check_tool("biome", &["*biome.json*"], &[]),
    check_tool("tsc", &["*tsconfig*.json"], &[]),
    check_tool("golangci-lint", &["*.golangci.*"], &[]),
    check_tool("shellcheck", &["*.shellcheckrc"], &[]),
    check_tool("yamllint", &["*.yamllint*"], &[]),
    check_tool("pre-commit", &[".pre-commit-config.yaml"], &[]),
    check_tool("invoke", &["tasks.py"], &[]),
    check_tool("inv", &["tasks.py"], &[]),
    check_tool("docker", COMPOSED, &[]),
    check_tool("docker-compose", COMPOSED, &[]),
    check_tool("podman", COMPOSED, &[]),
];

const COMPOSED: &[&str] =
    &["docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", "Dockerfile"];

/// Tools with the files whose commands they run.
pub(super) const COMMAND_FILES: &[(&str, &[&str])] = &[
    ("tox", &["tox.ini", "pyproject.toml", "setup.cfg"]),
    ("nox", &["noxfile.py"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml", "pyproject.toml"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("cargo", &[".cargo/config.toml"]),
    ("nextest", &[".config/nextest.toml"]),
    ("make", &["Makefile.toml"]),
    ("poe", &["pyproject.toml"]),
    ("hatch", &["pyproject.toml"]),
    ("pdm", &["pyproject.toml"]),
    ("docker", COMPOSED),
    ("docker-compose", COMPOSED),
    ("podman", COMPOSED),
    ("mage", &["magefile.go"]),
    ("doit", &["dodo.py"]),
    ("inv", &["tasks.py"]),
    ("invoke", &["tasks.py"]),
    ("gulp", &["gulpfile.js"]),
    ("grunt", &["Gruntfile.js"]),
];

/// Programs that a check runs by their names: one of that name in a folder that is looked in first takes their place.
pub(super) const PROGRAMS: &[&str] = &[
    "sh", "bash", "dash", "env", "python", "python3", "pytest", "tox", "nox", "uv", "pip", "node", "npm",
    "npx", "pnpm", "yarn", "bun", "deno", "jest", "mocha", "vitest", "go", "cargo", "rustc", "make", "diff",
    "cmp", "grep", "test", "cat", "sed", "awk", "git", "true", "false", "ruff", "mypy", "eslint", "tsc",
];

/// Runners of tests in JavaScript with the names of their settings at the root of a package. They name files to load first.
pub(super) const RUNNER_SETTINGS: &[(&str, &[&str])] = &[
    ("jest", &["jest.config.js", "jest.config.cjs", "jest.config.mjs", "jest.config.ts", "jest.config.json"]),
    ("mocha", &[".mocharc.js", ".mocharc.cjs", ".mocharc.json", ".mocharc.yml", ".mocharc.yaml"]),
    (
        "vitest",
        &["vitest.config.ts", "vitest.config.js", "vitest.config.mts", "vite.config.ts", "vite.config.js"],
    ),
    ("ava", &["ava.config.js", "ava.config.cjs"]),
];

/// Keys of a package.json that configure a runner, besides its scripts.
pub(super) const PACKAGE_KEYS: &[&str] =
    &["jest", "mocha", "vitest", "ava", "tap", "nyc", "c8", "jasmine", "imports", "babel", "eslintConfig"];

/// The ecosystem that loads this file without being asked for.
pub(super) fn loaded_by(file: &ChangedFile) -> Option<&'static Ecosystem> {
    let lower = file.path.to_ascii_lowercase();
    ECOSYSTEMS.iter().find(|ecosystem| {
        let name = lower.rsplit('/').next().unwrap_or_default();
        let is_named = ecosystem.files.iter().any(|pattern| matches_name_pattern(pattern, name));
        // A module of the crate that is called `build` is no build script.
        let runs = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("fn main("));
        let is_module = name == "build.rs"
            && format!("/{lower}").contains("/src/")
            && !runs(&file.before)
            && !runs(&file.after);
        let is_in = |folder: &&str| format!("/{lower}/").contains(&format!("/{folder}/"));
        // A module inside another one takes its tests out of those of the outer one.
        let is_nested = ecosystem.name == "Go" && file.created && lower.ends_with("/go.mod");
        let is_mock = ecosystem.name == "npm" && lower.starts_with("__mocks__/");
        // `jest+29.7.0.patch`, `jest@29.7.0.patch`: what is put on an installed package.
        let is_patch = ecosystem.name == "npm"
            && lower.starts_with("patches/")
            && name.ends_with(".patch")
            && name.contains(['+', '@']);
        // Metadata of an installed package, which may name plugins.
        let is_metadata = ecosystem.name == "Python"
            && name == "entry_points.txt"
            && lower.split('/').rev().nth(1).is_some_and(|folder| folder.ends_with("-info"));
        (is_named && !is_module)
            || is_patch
            || is_metadata
            || is_nested
            || is_mock
            || ecosystem.folders.iter().any(is_in)
            || (file.created && shadows_module(ecosystem, &lower))
            || (file.created
                && file.after.is_none()
                && !name.contains('.')
                && shadows_module(ecosystem, &format!("{lower}/__init__.py")))
    })
}

/// Whether a file of this name may be loaded so.
pub(super) fn may_be_loaded(path: &str) -> bool {
    let created = ChangedFile { path: path.to_owned(), created: true, ..ChangedFile::default() };
    loaded_by(&created).is_some() || path.to_ascii_lowercase().ends_with("build.rs")
}

/// Whether a new file takes the place of a module that the runner imports. A folder is a module by its `__init__` alone; a link
/// may lead to such a folder.
fn shadows_module(ecosystem: &Ecosystem, lower: &str) -> bool {
    let module_in = |folder: &str| -> Option<&str> {
        let (module, rest) = lower.strip_prefix(folder)?.split_once(['.', '/'])?;
        let is_file = ecosystem.module_endings.contains(&rest);
        let is_package =
            rest.strip_prefix("__init__.").is_some_and(|end| ecosystem.module_endings.contains(&end));
        (is_file || is_package).then_some(module)
    };
    // Folders that are put on the path of modules, besides the root. The sources of the product have names of their own.
    let of_runner = ["", "src/", "lib/", "test/", "tests/"].iter().filter_map(|folder| module_in(folder));
    let of_language = ["", "test/", "tests/"].iter().filter_map(|folder| module_in(folder));
    of_runner.into_iter().any(|name| ecosystem.modules.contains(&name))
        || (!ecosystem.modules.is_empty() && of_language.into_iter().any(is_python_standard))
}

/// Whether a line sets a variable that decides what a runner of tests, or a tool of the language, does.
pub(super) fn sets_runner_variable(line: &str) -> bool {
    const NAMES: [&str; 25] = [
        "PATH",
        "PYTEST_ADDOPTS",
        "PYTEST_PLUGINS",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONOPTIMIZE",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "NODE_PATH",
        "GOFLAGS",
        "GOTOOLCHAIN",
        "GOENV",
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTUP_TOOLCHAIN",
        "MAKEFLAGS",
        "MAKEFILES",
        "BASH_ENV",
        "LD_PRELOAD",
        "UPDATE_EXPECT",
        "TRYBUILD",
        "SNAPSHOTS",
    ];
    const BEGINNINGS: [&str; 6] = ["CARGO_", "INSTA_", "NEXTEST", "npm_config_", "TOX_", "COVERAGE_"];
    let code = line.trim();
    let code = code.strip_prefix("export ").unwrap_or(code).trim_start();
    let Some((name, _)) = code.split_once('=') else { return false };
    let name = name.trim();
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether Python has this module itself.
pub(super) fn is_python_standard(name: &str) -> bool {
    PYTHON_MODULES.split_whitespace().any(|module| module == name)
}

/// The standard library of Python, as `sys.stdlib_module_names` has it, without what is not imported by tests.
const PYTHON_MODULES: &str = "abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 calendar cmd \
    code codecs codeop collections colorsys concurrent configparser contextlib contextvars copy copyreg csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis doctest email encodings enum errno faulthandler fcntl filecmp fileinput \
    fnmatch fractions ftplib functools gc getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http \
    imaplib importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox marshal math \
    mimetypes mmap modulefinder multiprocessing netrc numbers opcode operator optparse os pathlib pdb pickle pkgutil \
    platform plistlib poplib posixpath pprint profile pstats pty pwd pyclbr pydoc queue quopri random re readline reprlib \
    resource runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 ssl \
    stat statistics string stringprep struct subprocess symtable sys sysconfig syslog tabnanny tarfile tempfile termios \
    textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata \
    unittest urllib uuid venv warnings wave weakref webbrowser xml xmlrpc zipapp zipfile zipimport zlib zoneinfo \
    __future__ _strptime _weakrefset _pydecimal _py_abc _collections_abc _compat_pickle _sitebuiltins _pyio \
    _threading_local _markupbase _compression cgi crypt distutils imp sre_compile sre_constants sre_parse ntpath \
    genericpath nturl2path rlcompleter ensurepip tkinter pyexpat";

/// The sections of this file that count.
pub(super) fn section_rule(path: &str) -> Option<&'static SectionRule> {
    let name = path.rsplit('/').next().unwrap_or_default();
    ECOSYSTEMS
        .iter()
        .flat_map(|ecosystem| ecosystem.sections)
        .find(|rule| rule.file.eq_ignore_ascii_case(name))
}

fn matches_name_pattern(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(ending), _) => name.ends_with(ending),
        (None, Some(beginning)) => name.starts_with(beginning),
        (None, None) => name == pattern,
    }
}
