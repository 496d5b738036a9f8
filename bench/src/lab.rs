//! What every benchmark needs: the programs, a folder that goes away again, repositories to work in.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// The lab: programs built, a folder made.
pub struct Lab {
    /// Fewer rounds, smaller backlogs.
    pub quick: bool,
    /// Our product.
    pub landfall: PathBuf,
    /// The no-op agent.
    pub agent: PathBuf,
    /// A program that does nothing.
    pub empty: PathBuf,
    release: PathBuf,
    store_figures: OnceCell<Vec<serde_json::Value>>,
    // Below the target folder and not in a temporary one: that may be in memory, where a sync costs nothing.
    dir: TempDir,
}

impl Lab {
    /// Builds what is measured.
    pub fn open(quick: bool) -> Result<Self> {
        let me = std::env::current_exe().context("find our own program")?;
        let release = me.parent().context("our program is in a folder")?.to_owned();
        let landfall = match std::env::var_os("LANDFALL_BENCH_PROGRAM") {
            Some(program) => PathBuf::from(program), // another build, to compare with
            None => {
                eprintln!("── build");
                cargo_do(&["build", "--release", "--quiet", "--package", "landfall"])?;
                release.join("landfall")
            }
        };
        let dir = tempfile::Builder::new()
            .prefix("landfall-bench-")
            .tempdir_in(release.parent().context("the target folder")?)
            .context("make a folder for the benchmarks")?;
        // Static where that can be had: it starts sooner, so that less of it is measured.
        let agent = include_str!("programs/agent.rs");
        let agent = rustc(dir.path(), "agent", agent, &["-C", "target-feature=+crt-static"])
            .or_else(|_| rustc(dir.path(), "agent", agent, &[]))?;
        let empty = rustc(dir.path(), "empty", include_str!("programs/empty.rs"), &[])?;
        Ok(Self { quick, landfall, agent, empty, release, store_figures: OnceCell::new(), dir })
    }

    /// One number for a full run, another for a quick one.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A folder below the lab's; it goes away with the value.
    pub fn folder(&self) -> Result<TempDir> {
        TempDir::new_in(self.dir.path()).context("make a folder")
    }

    /// Builds an example of a crate of ours and runs it; its lines are JSON.
    pub fn example(&self, package: &str, name: &str, args: &[&str]) -> Result<Vec<serde_json::Value>> {
        cargo_do(&["build", "--release", "--quiet", "--package", package, "--example", name])?;
        let dir = self.folder()?;
        let mut command = Command::new(self.release.join("examples").join(name));
        command.args(args).current_dir(dir.path()).env("TMPDIR", dir.path());
        if self.quick {
            command.arg("quick");
        }
        let text = output(command)?;
        text.lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("`{name}` wrote `{line}`")))
            .collect()
    }

    /// What the example of the store measures; it is asked once, for two benchmarks.
    pub fn store_figures(&self) -> Result<&[serde_json::Value]> {
        if self.store_figures.get().is_none() {
            drop(self.store_figures.set(self.example("landfall-store", "bench_store", &[])?)); // it was empty
        }
        Ok(self.store_figures.get().expect("just set"))
    }

    /// A repository with so many files and these settings.
    pub fn project(&self, files: u32, settings: &str) -> Result<Project> {
        let dir = self.folder()?;
        let root = dir.path().join("project");
        repository(&root, files, settings)?;
        let state = dir.path().join("state");
        let project = Project { root, state, landfall: self.landfall.clone(), dir };
        if !settings.is_empty() {
            project.trust()?;
        }
        Ok(project)
    }

    /// The command line of the agent, as settings want it.
    pub fn agent_line(&self, words: &str) -> String {
        format!("'{}' {words}", self.agent.display())
    }
}

/// A project of the product's.
pub struct Project {
    /// The checkout.
    pub root: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    landfall: PathBuf,
    dir: TempDir,
}

impl Project {
    /// A path beside the project.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The product, called in this project.
    pub fn landfall<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.landfall);
        command.args(args).current_dir(&self.root).env("LANDFALL_STATE", &self.state).stdin(Stdio::null());
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(variable);
        }
        command
    }

    /// Trusts the settings as they are: they are ours.
    pub fn trust(&self) -> Result<()> {
        let report: serde_json::Value = serde_json::from_str(&output(self.landfall(["--json", "trust"]))?)?;
        if let (Some(false), Some(digest)) = (report["trusted"].as_bool(), report["digest"].as_str()) {
            output(self.landfall(["trust", "--yes", digest]))?;
        }
        Ok(())
    }

    /// Adds so many tasks.
    pub fn add(&self, count: u32) -> Result<()> {
        const AT_ONCE: u32 = 10_000;
        let mut left = count;
        while left > 0 {
            let now = left.min(AT_ONCE);
            let titles: String =
                (1..=now).map(|number| format!("Change a file, number {number}\n")).collect();
            self.add_text(&titles)?;
            left -= now;
        }
        Ok(())
    }

    /// Adds the tasks of a text: a title a line, or tasks with front matter.
    pub fn add_text(&self, text: &str) -> Result<()> {
        let mut command = self.landfall(["add", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start landfall add")?;
        let mut stdin = child.stdin.take().context("its stdin")?;
        stdin.write_all(text.as_bytes()).context("hand over the tasks")?;
        drop(stdin);
        let done = child.wait_with_output().context("wait for landfall add")?;
        ensure!(done.status.success(), "landfall add: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Starts a run in the background.
    pub fn run(&self, slots: u32) -> Result<Child> {
        let mut command = self.landfall(["run", "--slots", &slots.to_string()]);
        let log = std::fs::File::create(self.beside("run.log")).context("make the log of the run")?;
        command.stdout(log.try_clone()?).stderr(log);
        command.spawn().context("start landfall run")
    }

    /// Drives the backlog to its end.
    pub fn run_to_end(&self, slots: u32) -> Result<()> {
        let status = self.run(slots)?.wait().context("wait for landfall run")?;
        if !status.success() {
            bail!("landfall run ended with {status}:\n{}", self.log());
        }
        Ok(())
    }

    /// The last lines of what the run said.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.beside("run.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// One number from the journal.
    pub fn count(&self, question: &str) -> Result<i64> {
        self.journal()?.query_row(question, [], |row| row.get(0)).with_context(|| format!("ask `{question}`"))
    }

    /// The journal, to be read.
    pub fn journal(&self) -> Result<Connection> {
        let path = self.state.join("journal.db");
        Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .with_context(|| format!("open {}", path.display()))
    }
}

/// Makes a repository with files `src/d0/f0.txt` and so on, and these settings.
pub fn repository(root: &Path, files: u32, settings: &str) -> Result<()> {
    std::fs::create_dir_all(root)?;
    for place in 0..files {
        let folder = root.join(format!("src/d{}", place / 100));
        if place % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        let text = format!("file {place}\n{}", "a line of a file that nobody reads\n".repeat(8));
        std::fs::write(folder.join(format!("f{place}.txt")), text)?;
    }
    std::fs::write(root.join("landfall.toml"), settings)?;
    git(root, &["init", "-q", "-b", "main"])?;
    for (key, value) in [("gc.auto", "0"), ("maintenance.auto", "false")] {
        git(root, &["config", key, value])?;
    }
    git(root, &["add", "."])?;
    git(root, &["commit", "-q", "-m", "Begin"])?;
    Ok(())
}

/// git, as the floors use it: a plain process.
pub fn git<A: AsRef<OsStr>>(folder: &Path, args: &[A]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args).stdin(Stdio::null());
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Bench"),
        ("GIT_AUTHOR_EMAIL", "bench@example.com"),
        ("GIT_COMMITTER_NAME", "Bench"),
        ("GIT_COMMITTER_EMAIL", "bench@example.com"),
    ] {
        command.env(name, value);
    }
    Ok(output(command)?.trim_end().to_owned())
}

/// What a program writes, if it ends well.
pub fn output(mut command: Command) -> Result<String> {
    let done = command.output().with_context(|| format!("start {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?} ended with {}: {}", done.status, String::from_utf8_lossy(&done.stderr));
    }
    String::from_utf8(done.stdout).with_context(|| format!("read what {command:?} wrote"))
}

/// The cargo that runs us.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn cargo_do(args: &[&str]) -> Result<()> {
    let mut command = Command::new(cargo());
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Builds a small program.
fn rustc(dir: &Path, name: &str, source: &str, more: &[&str]) -> Result<PathBuf> {
    let (program, file) = (dir.join(name), dir.join(format!("{name}.rs")));
    std::fs::write(&file, source)?;
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.args(["--edition", "2024", "-O", "-C", "panic=abort", "-C", "strip=symbols"]).args(more);
    command.arg("-o").arg(&program).arg(&file);
    output(command)?;
    Ok(program)
}
