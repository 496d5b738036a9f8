//! The project of a round: a repository with files of its user, a backlog of scripted tasks, and the engine that drives it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::random::Random;
use super::{ChaosLab, FaultKind};

/// A file of the user: what it holds, and its mode.
pub type UserFile = (Vec<u8>, u32);

/// A task that was acknowledged, and the files that its landing brings.
pub struct Acknowledged {
    pub id: String,
    pub files: BTreeMap<String, String>,
}

/// The project of a round.
pub struct ChaosProject {
    root: PathBuf,
    landfall: PathBuf,
    env: Vec<(&'static str, PathBuf)>,
    pub kind: FaultKind,
    pub acknowledged: Vec<Acknowledged>,
    /// Files that git does not track, or that the user has changed: they must stay as they are.
    pub user_files: BTreeMap<PathBuf, UserFile>,
    /// Whether the user has changed a tracked file and not committed it.
    pub has_own_change: bool,
    /// The commit before the first landing.
    pub begin: String,
    engine: Option<Child>,
    runs: u32,
    offered: u32,
}

/// Every `.want` file has its text in the file of the same name; no file is empty.
const TEST_SH: &str = r#"failed=0; passed=1
for want in *.want; do
  [ -e "$want" ] || continue
  if grep -qxF "$(cat "$want")" "${want%.want}" 2>/dev/null; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $want"; fi
done
empty=$(find . -name .git -prune -o -type f -empty -print)
[ -z "$empty" ] || { failed=$((failed + 1)); echo "FAIL empty: $empty"; }
sleep 0.1
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
"#;

const COMMAND_MAX: Duration = Duration::from_secs(60); // a command that takes longer hangs

impl ChaosProject {
    /// Makes the repository, the files of its user and the first tasks.
    pub fn make(lab: &ChaosLab, root: &Path, kind: FaultKind, random: &mut Random) -> Result<Self> {
        let mut project = Self {
            root: root.to_owned(),
            landfall: lab.landfall.clone(),
            env: Vec::new(),
            kind,
            acknowledged: Vec::new(),
            user_files: BTreeMap::new(),
            has_own_change: false,
            begin: String::new(),
            engine: None,
            runs: 0,
            offered: 0,
        };
        for part in ["project", "home", "tmp"] {
            std::fs::create_dir_all(root.join(part))?;
        }
        if let (FaultKind::Clock, Some(library)) = (kind, &lab.clock) {
            std::fs::write(project.clock_file(), "0")?;
            project.env.push(("LD_PRELOAD", library.clone()));
            project.env.push(("LANDFALL_CHAOS_CLOCK", project.clock_file()));
        }
        let disk = match kind {
            // With thresholds the engine waits in time; without them it meets the full disk itself.
            FaultKind::Disk | FaultKind::Inodes if random.number(0, 1) == 0 => {
                "warn = \"24MB\"\npause = \"16MB\"\nstop = \"4MB\"\n"
            }
            _ => "warn = \"0MB\"\npause = \"0MB\"\nstop = \"0MB\"\n",
        };
        let settings = format!(
            "[agent.default]\nkind = \"script\"\n[run]\nslots = 3\ngrace = \"2s\"\n[disk]\n{disk}\
             [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\ntimeout = \"60s\"\n"
        );
        project.write("landfall.toml", settings.as_bytes())?;
        project.write("test.sh", TEST_SH.as_bytes())?;
        project.write("notes.txt", b"tracked\n")?;
        project.write("src/a.txt", b"one\ntwo\n")?;
        project.write(".gitignore", b".env\ncache/\n*.log\n")?;
        project.git(&["init", "--quiet", "--initial-branch=main", "."])?;
        project.git(&["add", "--all"])?;
        project.git(&["commit", "--quiet", "-m", "begin"])?;
        project.begin = project.git(&["rev-parse", "main"])?;
        project.make_user_files(random)?;
        for _ in 0..random.number(3, 4) {
            ensure!(project.add_task(random)?, "a task could not be added before any fault");
        }
        // What was there before the fault is on the disk, as it would be for a user who wrote it an hour ago.
        rustix::fs::syncfs(File::open(root)?).context("sync the project")?;
        Ok(project)
    }

    /// Files that Landfall must never touch: ignored, untracked, and tracked with a change of the user's.
    fn make_user_files(&mut self, random: &mut Random) -> Result<()> {
        let mut files = vec![".env", "cache/deep/object.bin", "debug.log", "draft.md", "scratch/plan.txt"];
        if random.number(0, 3) == 0 {
            files.push("notes.txt"); // tracked: nothing is published while this change is not committed
            self.has_own_change = true;
        }
        for name in files {
            let size = usize::try_from(random.number(1, 9_000)).unwrap_or(1);
            let bytes = random.bytes(size);
            self.write(name, &bytes)?;
            let path = self.project().join(name);
            let mode = if random.number(0, 3) == 0 { 0o600 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
            self.user_files.insert(PathBuf::from(name), (bytes, mode));
        }
        Ok(())
    }

    /// The folder of everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The checkout of the user.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The state folder.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// The file that says how far the wall clock of the engine is moved.
    pub fn clock_file(&self) -> PathBuf {
        self.root.join("clock")
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().context("below the project")?)?;
        std::fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))
    }

    fn sealed(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root.join("home")).env("TMPDIR", self.root.join("tmp"));
        command.env("LANDFALL_STATE", self.state()).env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1");
        command
    }

    /// Runs git in a folder of the round, as the user; its output.
    pub fn git_in(&self, folder: &Path, args: &[&str]) -> Result<String> {
        let mut command = self.sealed(Path::new("git"));
        command.current_dir(folder);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "User")
                .env(format!("GIT_{who}_EMAIL"), "user@example.invalid");
        }
        let done = command.args(args).output().context("start git")?;
        ensure!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr).trim());
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    /// Runs git in the checkout of the user.
    pub fn git(&self, args: &[&str]) -> Result<String> {
        self.git_in(&self.project(), args)
    }

    /// Runs a shell script in a folder; whether it succeeds, and what it printed.
    pub fn shell(&self, folder: &Path, script: &str) -> Result<(bool, String)> {
        let mut command = self.sealed(Path::new("sh"));
        let done = command.current_dir(folder).args(["-c", script]).output().context("start sh")?;
        Ok((done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned()))
    }

    /// Runs a command of the program. None: it did not end in time.
    pub fn landfall(&self, args: &[&str]) -> Result<Option<Output>> {
        let mut command = self.sealed(&self.landfall);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        let child = command.spawn().context("start landfall")?;
        let pid = child.id();
        let (done, over) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            let output = child.wait_with_output();
            drop(done); // the word that it is over
            output
        });
        let hangs = over.recv_timeout(COMMAND_MAX) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if hangs {
            signal(pid, Signal::KILL);
        }
        let output = waiting.join().map_err(|_| anyhow::anyhow!("the thread that waits panicked"))??;
        Ok((!hangs).then_some(output))
    }

    /// The answer of a command as JSON.
    pub fn ask(&self, args: &[&str]) -> Result<serde_json::Value> {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        let output = self.landfall(&args)?.with_context(|| format!("landfall {args:?} hangs"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).with_context(|| {
            format!("landfall {args:?} said `{text}` and `{}`", String::from_utf8_lossy(&output.stderr))
        })
    }

    /// Adds one more task. True: it was acknowledged.
    pub fn add_task(&mut self, random: &mut Random) -> Result<bool> {
        self.offered += 1;
        let number = self.offered;
        let mut files = BTreeMap::new();
        let line = format!("work {number} {}", random.number(0, u64::MAX / 2));
        files.insert(format!("t{number}.txt"), format!("{line}\n"));
        files.insert(format!("t{number}.txt.want"), format!("{line}\n"));
        let many = if random.number(0, 2) == 0 { 40 } else { 2 };
        for place in 0..many {
            files.insert(format!("many{number}/f{place}.txt"), format!("{number} {place} {line}\n"));
        }
        let writes: String = files
            .iter()
            .map(|(path, text)| format!("[[write]]\npath = {path:?}\ntext = {text:?}\n"))
            .collect();
        let pause = random.number(0, 4);
        let script = format!("signal = \"complete\"\nrun = [\"sh\", \"-c\", \"sleep 0.{pause}\"]\n{writes}");
        let body = format!("Do as the script says.\n\n```landfall-script\n{script}\n```\n");
        let title = format!("Task {number}");
        let Some(output) = self.landfall(&["--json", "add", &title, "--body", &body])? else {
            return Ok(false);
        };
        if !output.status.success() {
            return Ok(false);
        }
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("read the answer of add")?;
        let id = answer["tasks"][0]["id"].as_str().context("add names the task")?.to_owned();
        self.acknowledged.push(Acknowledged { id, files });
        Ok(true)
    }

    /// The log of a run, outside of the file system of the round.
    fn log_path(&self, run: u32) -> PathBuf {
        self.root.with_file_name(format!("run-{run}.log"))
    }

    /// What the runs so far have printed.
    pub fn logs(&self) -> String {
        (1..=self.runs).filter_map(|run| std::fs::read_to_string(self.log_path(run)).ok()).collect()
    }

    /// Starts the engine, unless it runs.
    pub fn start_engine(&mut self) -> Result<()> {
        if self.engine_pid().is_some() {
            return Ok(());
        }
        self.runs += 1;
        let log = File::create(self.log_path(self.runs)).context("make the log of a run")?;
        let mut command = self.sealed(&self.landfall);
        command.arg("run").stdout(log.try_clone()?).stderr(log);
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        self.engine = Some(command.spawn().context("start landfall run")?);
        Ok(())
    }

    /// The process of the engine, while it runs.
    pub fn engine_pid(&mut self) -> Option<u32> {
        let child = self.engine.as_mut()?;
        match child.try_wait() {
            Ok(None) => Some(child.id()),
            Ok(Some(_)) | Err(_) => None,
        }
    }

    /// Kills the engine and waits for its end.
    pub fn kill_engine(&mut self) {
        if let Some(mut child) = self.engine.take() {
            let _ = child.kill(); // it has ended already
            let _ = child.wait(); // reaped
        }
    }

    /// Waits for the end of the engine. None: it still runs.
    pub fn wait_engine(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let Some(child) = self.engine.as_mut() else { return Ok(None) };
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = child.try_wait().context("wait for the engine")? {
                self.engine = None;
                return Ok(Some(status));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The sitters that run: process and name of the run.
    pub fn sitters(&self) -> Vec<(u32, String)> {
        let attempts = self.state().join("attempts");
        let mut found = Vec::new();
        for (pid, command) in processes() {
            let mut words = command.split('\0').skip(1);
            if words.next() == Some("sit")
                && let Some(dir) = words.next().map(Path::new)
                && dir.starts_with(&attempts)
                && let Some(name) = dir.file_name()
            {
                found.push((pid, name.to_string_lossy().into_owned()));
            }
        }
        found
    }

    /// Every process that belongs to the round.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let needle = self.root.as_os_str().as_encoded_bytes();
        let belongs = |pid: u32| {
            let folder = PathBuf::from(format!("/proc/{pid}"));
            let mentions = |file: &str| {
                std::fs::read(folder.join(file))
                    .is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle))
            };
            let within = std::fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.root));
            within || mentions("environ") || mentions("cmdline")
        };
        let own = std::process::id();
        processes().into_iter().filter(|(pid, _)| *pid != own && belongs(*pid)).collect()
    }

    /// Ends everything that belongs to the round.
    pub fn end_processes(&mut self) {
        self.kill_engine();
        for _ in 0..50 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for (pid, _) in left {
                signal(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for ChaosProject {
    fn drop(&mut self) {
        self.end_processes();
    }
}

/// Every process that is alive, with its command line.
fn processes() -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_zombie = stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'));
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !is_zombie && !command.is_empty() {
            found.push((pid, String::from_utf8_lossy(&command).into_owned()));
        }
    }
    found
}

/// Sends a signal; a process that has ended hears nothing.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).ok(); // gone already is as good
    }
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}

/// Appends to a file until the file system takes no more. Returns how much it took.
pub fn fill_bytes(path: &Path) -> Result<u64> {
    let mut file = File::create(path).context("make the ballast")?;
    let mut total = 0;
    for size in [1 << 20, 4096] {
        let chunk = vec![b'x'; size];
        while file.write_all(&chunk).is_ok() {
            total += size as u64;
        }
    }
    Ok(total)
}
