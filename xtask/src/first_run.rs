//! `cargo xtask first-run`: makes a project of each ecosystem with a real dependency and types what the README says, as a new user
//! does, until a task has landed; then lands a second one.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::agents::{Ended, cache_folder, within};
use crate::gaming::build_landfall;
use crate::tools::{self, Tool};

/// Land a task in a project of each ecosystem, by the commands of the README alone
#[derive(Debug, clap::Args)]
pub struct FirstRunArgs {
    /// Which ecosystem
    #[arg(long, value_enum, default_value_t = EcosystemChoice::All)]
    ecosystem: EcosystemChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EcosystemChoice {
    All,
    Cargo,
    Npm,
    PythonUv,
    PythonVenv,
    PythonTox,
    Go,
    Make,
}

impl EcosystemChoice {
    const EACH: [Self; 7] =
        [Self::Cargo, Self::Npm, Self::PythonUv, Self::PythonVenv, Self::PythonTox, Self::Go, Self::Make];

    /// Programs that must be there.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::All => &[],
            Self::Cargo => &["cargo"],
            Self::Npm => &["npm", "node"],
            Self::PythonUv => &["uv", "python3"],
            // `uv` writes the list of hashes; the project itself is tested without it.
            Self::PythonVenv => &["python3", "uv"],
            Self::PythonTox => &["tox", "python3", "uv"],
            Self::Go => &["go"],
            Self::Make => &["make", "cc"],
        }
    }

    /// Files of the project.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        const PYTHON_TEST: (&str, &str) = (
            "tests/test_total.py",
            "import numpy\n\n\ndef test_total():\n    assert numpy.array([1, 2, 3]).sum() == 6\n",
        );
        const PYTHON_IGNORED: (&str, &str) = (".gitignore", ".venv/\n.tox/\n__pycache__/\n.pytest_cache/\n");
        const REQUIREMENTS: (&str, &str) = ("requirements.in", "numpy\npytest\n");
        match self {
            Self::All => &[],
            Self::Cargo => &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"first-run\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nitoa = \"1\"\n",
                ),
                (".gitignore", "target/\n"),
                (
                    "src/lib.rs",
                    "pub fn text(number: u32) -> String {\n    itoa::Buffer::new().format(number).to_owned()\n}\n\n\
                     #[test]\nfn numbers_are_written() {\n    assert_eq!(text(7), \"7\");\n}\n",
                ),
            ],
            Self::Npm => &[
                (
                    "package.json",
                    "{\n  \"name\": \"first-run\",\n  \"private\": true,\n  \"scripts\": { \"test\": \"jest\" },\n  \
                     \"devDependencies\": { \"jest\": \"^29.7.0\" }\n}\n",
                ),
                (".gitignore", "node_modules/\n"),
                ("total.js", "module.exports = (list) => list.reduce((sum, one) => sum + one, 0);\n"),
                (
                    "total.test.js",
                    "const total = require(\"./total\");\ntest(\"adds\", () => expect(total([1, 2, 3])).toBe(6));\n",
                ),
            ],
            Self::PythonUv => &[
                (
                    "pyproject.toml",
                    "[project]\nname = \"first-run\"\nversion = \"0.1.0\"\nrequires-python = \">=3.11\"\n\
                     dependencies = [\"numpy\"]\n\n[dependency-groups]\ndev = [\"pytest\"]\n",
                ),
                PYTHON_IGNORED,
                PYTHON_TEST,
            ],
            Self::PythonVenv => &[REQUIREMENTS, PYTHON_IGNORED, PYTHON_TEST],
            Self::PythonTox => &[
                REQUIREMENTS,
                PYTHON_IGNORED,
                PYTHON_TEST,
                (
                    "tox.ini",
                    "[tox]\nenv_list = tests\nno_package = true\n\n[testenv]\ndeps = -r requirements.txt\ncommands = pytest\n",
                ),
            ],
            Self::Go => &[
                ("go.mod", "module example.invalid/firstrun\n\ngo 1.19\n"),
                (
                    "total.go",
                    "package firstrun\n\nfunc Total(list ...int) int {\n\tsum := 0\n\tfor _, one := range list {\n\t\tsum += one\n\t}\n\treturn sum\n}\n",
                ),
                (
                    "total_test.go",
                    "package firstrun\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif Total(1, 2, 3) != 6 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
                ),
            ],
            Self::Make => &[
                (
                    "Makefile",
                    ".PHONY: test\ntest: total\n\t./total 1 2 3 | grep -x 6\n\ntotal: total.c\n\tcc -o total total.c\n",
                ),
                (".gitignore", "total\n"),
                (
                    "total.c",
                    "#include <stdio.h>\n#include <stdlib.h>\n\nint main(int count, char **words) {\n  int sum = 0;\n  \
                     for (int at = 1; at < count; at++) sum += atoi(words[at]);\n  printf(\"%d\\n\", sum);\n}\n",
                ),
            ],
        }
    }

    /// What the author of such a project has done before: the lock file that names each package by its hash.
    fn preparation(self) -> Option<&'static str> {
        match self {
            Self::Cargo => Some("cargo generate-lockfile"),
            Self::Npm => Some("npm install --package-lock-only --ignore-scripts --no-audit --no-fund"),
            Self::PythonUv => Some("uv lock"),
            Self::PythonVenv | Self::PythonTox => Some(
                "uv pip compile --quiet --universal --generate-hashes requirements.in --output-file requirements.txt",
            ),
            Self::Go | Self::Make | Self::All => None,
        }
    }

    /// Whether the second landing must take less than half of the first: what was downloaded is there already.
    fn has_warm_dependencies(self) -> bool {
        match self {
            Self::Npm | Self::PythonUv | Self::PythonVenv | Self::PythonTox => true,
            Self::Cargo | Self::Go | Self::Make | Self::All => false,
        }
    }
}

impl fmt::Display for EcosystemChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self).expect("none is hidden");
        f.pad(value.get_name())
    }
}

/// How long a first landing may take.
const FIRST_MAX: Duration = Duration::from_secs(300);
/// How long a command may take before it counts as hanging.
const COMMAND_MAX: Duration = Duration::from_secs(900);
/// What the README calls the file with the text of the task.
const TASK_FILE: &str = "hello.md";

/// What came of one ecosystem.
enum FirstRunResult {
    Landed { first: Duration, second: Duration },
    Skipped(String),
    Failed(String),
}

pub fn run(args: &FirstRunArgs) -> Result<()> {
    let landfall = build_landfall()?;
    let commands = commands_of_readme()?;
    let path = tool_path(&landfall)?;
    let wanted: Vec<EcosystemChoice> = match args.ecosystem {
        EcosystemChoice::All => EcosystemChoice::EACH.to_vec(),
        one => vec![one],
    };
    let mut failed = Vec::new();
    let mut skipped = Vec::new();
    for ecosystem in wanted {
        let result = land_in(ecosystem, &commands, &path)
            .unwrap_or_else(|error| FirstRunResult::Failed(format!("{error:#}")));
        match result {
            FirstRunResult::Landed { first, second } => {
                println!(
                    "{ecosystem:<12} landed in {:.1} s, the second task in {:.1} s",
                    first.as_secs_f64(),
                    second.as_secs_f64()
                );
                if first > FIRST_MAX {
                    failed.push(format!(
                        "{ecosystem}: the first landing took more than {} s",
                        FIRST_MAX.as_secs()
                    ));
                }
                if ecosystem.has_warm_dependencies() && second * 2 >= first {
                    failed.push(format!("{ecosystem}: the second landing took half of the first or more"));
                }
            }
            FirstRunResult::Skipped(reason) => {
                println!("{ecosystem:<12} skipped: {reason}");
                skipped.push(ecosystem);
            }
            FirstRunResult::Failed(why) => {
                println!("{ecosystem:<12} FAILED: {why}");
                failed.push(format!("{ecosystem}: nothing landed"));
            }
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    if !skipped.is_empty() {
        bail!("{} of the ecosystems were skipped", skipped.len());
    }
    Ok(())
}

/// The commands that the README quotes for a first landing: the block that names the file of the task.
fn commands_of_readme() -> Result<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(&path).context("read README.md")?;
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.into_iter().find(|block| block.contains(TASK_FILE));
    let block = block.with_context(|| format!("README.md has no block of commands with `{TASK_FILE}`"))?;
    let commands = block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    let commands: Vec<String> = commands.filter(|line| !line.is_empty()).collect();
    ensure!(
        commands.iter().any(|line| line == "landfall run"),
        "the block of README.md does not run anything"
    );
    Ok(commands)
}

/// The `PATH` of the user: Landfall, the tools, and no agent, so that `init` sets the scripted one.
fn tool_path(landfall: &Path) -> Result<OsString> {
    const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];
    let own = own_tools()?;
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![landfall.parent().context("the program is in a folder")?.to_owned()];
    folders.extend(own);
    let has_agent = |folder: &PathBuf| AGENTS.iter().any(|agent| folder.join(agent).exists());
    folders.extend(std::env::split_paths(&inherited).filter(|folder| !has_agent(folder)));
    std::env::join_paths(folders).context("a folder with a colon in its name")
}

/// Folders with tools that are not on this machine otherwise: `uv` and `tox` from pip, Go from a Debian package. What cannot be
/// installed is reported where it is missing.
fn own_tools() -> Result<Vec<PathBuf>> {
    if let Tool::Missing(reason) = tools::install_go()? {
        eprintln!("── first-run: go: {reason}");
    }
    let home = cache_folder().join("first-run");
    std::fs::create_dir_all(&home).context("make a folder in the cache")?;
    let bin = home.join("venv/bin");
    if !bin.join("tox").exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home.join("venv")).stdin(Stdio::null());
        let mut pip = Command::new(bin.join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv", "tox"]);
        pip.stdin(Stdio::null());
        for step in [venv, pip] {
            if !matches!(within(step, COMMAND_MAX), Ok(Ended::Well)) {
                eprintln!("── first-run: uv and tox cannot be installed from here");
                break;
            }
        }
    }
    // Only these: the folder has a `python3` and a `pip` of its own, which a user does not have.
    let tools = home.join("tools");
    std::fs::create_dir_all(&tools).context("make a folder for tools")?;
    for tool in ["uv", "tox"] {
        let link = tools.join(tool);
        if bin.join(tool).exists() && !link.exists() {
            std::os::unix::fs::symlink(bin.join(tool), &link).context("link a tool")?;
        }
    }
    // A shim finds its interpreter in the home folder, and each project has another one.
    if let Ok(found) = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output() {
        let python = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        let link = tools.join("python3");
        if python.is_file() && !link.exists() {
            std::os::unix::fs::symlink(python, &link).context("link python3")?;
        }
    }
    Ok(vec![tools])
}

/// The folder of one project, given up when dropped.
struct FirstRunFolder(PathBuf);

impl Drop for FirstRunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what stays is in the cache folder
    }
}

fn land_in(ecosystem: EcosystemChoice, commands: &[String], path: &OsString) -> Result<FirstRunResult> {
    for program in ecosystem.needs() {
        if !std::env::split_paths(path).any(|folder| folder.join(program).is_file()) {
            return Ok(FirstRunResult::Skipped(format!("`{program}` is not installed")));
        }
    }
    // Neither in our own workspace, where Cargo would take it for a member, nor in a folder that the sandbox replaces.
    let folder = cache_folder().join(format!("first-run/{}-{ecosystem}", std::process::id()));
    let folder = FirstRunFolder(folder);
    let user = FirstUser { root: folder.0.clone(), path: path.clone() };
    let project = user.project();
    for place in [&project, &user.root.join("home")] {
        std::fs::create_dir_all(place).context("make the folder of a project")?;
    }
    for (name, text) in ecosystem.files() {
        let file = project.join(name);
        std::fs::create_dir_all(file.parent().context("below the project")?)?;
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    if let Some(preparation) = ecosystem.preparation() {
        user.call(preparation).context("prepare the project")?;
        user.forget_downloads()?;
    }
    for line in ["git init --quiet --initial-branch=main", "git add --all", "git commit --quiet -m begin"] {
        user.call(line)?;
    }
    user.write_task("HELLO.md")?;
    let began = Instant::now();
    for line in commands {
        user.call(line)?;
    }
    let first = began.elapsed();
    ensure!(project.join("HELLO.md").is_file(), "the work of the first task is not in the checkout");
    // The second task is added and landed by the same commands; what sets up is done.
    user.write_task("AGAIN.md")?;
    let began = Instant::now();
    for line in commands
        .iter()
        .filter(|line| ["landfall add", "landfall run"].iter().any(|word| line.starts_with(word)))
    {
        user.call(line)?;
    }
    let second = began.elapsed();
    ensure!(project.join("AGAIN.md").is_file(), "the work of the second task is not in the checkout");
    Ok(FirstRunResult::Landed { first, second })
}

/// A new user: a home folder, a project, and what they type.
struct FirstUser {
    root: PathBuf,
    path: OsString,
}

impl FirstUser {
    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The text of a task with what the scripted agent does in the place of a model.
    fn write_task(&self, file: &str) -> Result<()> {
        let text = format!(
            "Write a greeting.\n\n```landfall-script\nsignal = \"complete\"\n[[write]]\npath = {file:?}\ntext = \"Hello.\\n\"\n```\n"
        );
        std::fs::write(self.project().join(TASK_FILE), text).context("write the text of a task")
    }

    /// Removes what the preparation of the project left in the home folder: a new user has none of it.
    fn forget_downloads(&self) -> Result<()> {
        let home = self.root.join("home");
        let mut force = Command::new("chmod");
        force.args(["-R", "u+w"]).arg(&home);
        within(force, COMMAND_MAX)?;
        std::fs::remove_dir_all(&home).context("remove the home folder")?;
        std::fs::create_dir_all(&home).context("make the home folder")
    }

    /// Types a line. What it writes is shown if it fails.
    fn call(&self, line: &str) -> Result<()> {
        const PASSED_ON: [&str; 10] = [
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
            "http_proxy",
            "https_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "no_proxy",
        ];
        let output = self.root.join("output");
        let file = std::fs::File::create(&output).context("make a file for the output")?;
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.project()).env_clear().stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        let home = self.root.join("home");
        command.env("PATH", &self.path).env("HOME", &home).env("LANG", "C.UTF-8").env("COLUMNS", "80");
        command.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // The toolchain stays where it is; only what it downloads is new.
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let rustup = rustup.or_else(|| std::env::home_dir().map(|home| home.join(".rustup")));
        command.envs(rustup.map(|folder| ("RUSTUP_HOME", folder)));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "New User");
            command.env(format!("GIT_{role}_EMAIL"), "user@example.invalid");
        }
        let ended = within(command, COMMAND_MAX)?;
        if ended != Ended::Well {
            let text = std::fs::read_to_string(&output).unwrap_or_default();
            let how = if ended == Ended::TooLate { "did not end" } else { "failed" };
            bail!("`{line}` {how}:\n{text}");
        }
        Ok(())
    }
}
