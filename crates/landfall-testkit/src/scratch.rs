//! A scratch project: a real repository, a state folder and a home of its own, and the real program run in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::processes::{Process, left_behind};

/// A project that goes away with its folder when dropped.
pub struct ScratchProject {
    folder: tempfile::TempDir,
    program: PathBuf,
    env: Vec<(String, String)>,
    /// How long a command may take.
    patience: Duration,
    /// The settings as they were when they were last trusted.
    trusted: Mutex<String>,
    /// Whether settings are trusted as soon as they change.
    trusts: bool,
}

/// What a command said.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub out: String,
    /// What it wrote to stderr.
    pub err: String,
}

impl CommandOutput {
    /// The output, which must be a success.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }

    /// The output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}\nstdout: {}\nstderr: {}", self.out, self.err))
    }
}

/// A command that goes on; killed when dropped.
pub struct BackgroundCommand {
    child: Child,
}

impl BackgroundCommand {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are small")
    }

    /// Sends it a signal by its short name, as `kill -INT` would.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name} {}", self.pid());
    }

    /// The most memory it has had so far, in KiB; none when it is over.
    #[must_use]
    pub fn memory_peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Whether it is over.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("waitable").is_some()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill(); // it has ended already
        let _ = self.child.wait(); // reaped
    }

    /// Waits for its end, at most so long; its exit code.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> Option<i32> {
        let mut code = None;
        eventually(limit, "the command to end", || match self.child.try_wait().expect("waitable") {
            Some(status) => {
                code = status.code();
                true
            }
            None => false,
        });
        code
    }
}

impl Drop for BackgroundCommand {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where tests lay out their projects. Agents get a `/tmp` of their own, and many stories meet them half-way in a folder that
/// both see. So it is beside the programs that cargo built or, if that path is too long for sockets or lies in `/tmp` itself,
/// in the user's cache: tests have another home folder. Only for a project with a repository: the folder may lie in another
/// one.
#[must_use]
pub fn tests_folder() -> PathBuf {
    const LENGTH_MAX: usize = 40; // a socket's path has room for 108, and what a run adds to the folder takes half of it
    const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).map(|target| target.join("tmp")); // target/debug/deps/program
    let cache = std::env::home_dir().map(|home| home.join(".cache/landfall-tests"));
    let is_shared = |folder: &PathBuf| {
        let is_private = PRIVATE.iter().any(|private| folder.starts_with(private));
        folder.as_os_str().len() <= LENGTH_MAX && !is_private && std::fs::create_dir_all(folder).is_ok()
    };
    [target, cache].into_iter().flatten().find(is_shared).unwrap_or_else(std::env::temp_dir)
}

/// Waits until `holds`, at most so long.
#[track_caller]
pub(crate) fn eventually(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while let Some(pause) = pause_unless(&mut holds) {
        assert!(began.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(pause);
    }
}

/// Looks whether something holds; if not, how long to pause before the next look. Many looks start the program, which takes
/// longer than a pause of some milliseconds: then the waiting test would keep a core from what it waits for.
fn pause_unless(holds: &mut impl FnMut() -> bool) -> Option<Duration> {
    let looked = Instant::now();
    let pause = || (looked.elapsed() * 3).clamp(Duration::from_millis(5), Duration::from_millis(250));
    (!holds()).then(pause)
}

impl ScratchProject {
    /// A repository with one commit, whose only check is `sh test.sh`, and the scripted agent as its agent.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self::within(&tests_folder(), program)
    }

    /// The same in another folder than the usual one for such things.
    #[must_use]
    pub fn within(folder: &Path, program: &str) -> Self {
        let scratch = Self::bare_within(folder, program);
        scratch.file("test.sh", TEST_SH);
        scratch.file("a.txt", "one\ntwo\nthree\n");
        scratch.file("landfall.toml", SETTINGS);
        scratch.git(&["init", "--quiet", "--initial-branch=main", "."]);
        scratch.commit("begin");
        scratch
    }

    /// An empty folder, without a repository.
    #[must_use]
    pub fn bare(program: &str) -> Self {
        Self::bare_within(&std::env::temp_dir(), program)
    }

    fn bare_within(folder: &Path, program: &str) -> Self {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("landfall-test-").tempdir_in(folder).expect("a folder can be made");
        for part in ["project", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(part)).expect("a folder can be made");
        }
        Self {
            folder,
            program: PathBuf::from(program),
            env: Vec::new(),
            patience: COMMAND_MAX,
            trusted: Mutex::default(),
            trusts: true,
        }
    }

    /// The folder of everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The repository.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Sets a variable for every command from now on.
    pub fn set(&mut self, key: &str, value: &str) {
        self.env.retain(|(name, _)| name != key);
        self.env.push((key.to_owned(), value.to_owned()));
    }

    /// Every command from now on is run with another program, as after an upgrade.
    pub fn upgrade(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// Lets every command from now on take longer than most do.
    pub fn be_patient(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Takes a variable back.
    pub fn unset(&mut self, key: &str) {
        self.env.retain(|(name, _)| name != key);
    }

    /// Writes a file of the project.
    pub fn file(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().expect("below the project")).expect("a folder can be made");
        std::fs::write(path, text).expect("a file can be written");
    }

    /// Commits everything in the project.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Adds sections to `landfall.toml` and commits it.
    pub fn more_settings(&self, text: &str) {
        let path = self.project().join("landfall.toml");
        let before = std::fs::read_to_string(path).expect("the settings can be read");
        self.settings(&format!("{before}\n{text}\n"));
    }

    /// Replaces `landfall.toml` and commits it.
    pub fn settings(&self, text: &str) {
        self.file("landfall.toml", text);
        self.commit("settings");
    }

    fn sealed(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root().join("home")).env("TMPDIR", self.root().join("tmp"));
        command
            .env("LANDFALL_STATE", self.state())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1");
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Runs git in the project, as the person; its output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let mut command = self.sealed(Path::new("git"));
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Person")
                .env(format!("GIT_{who}_EMAIL"), "person@example.invalid");
        }
        // Each commit would start two more processes, which find nothing to do.
        command.args(["-c", "maintenance.auto=false"]);
        let output = command.args(args).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs git in Landfall's own repository; its output, or none when git says no.
    #[must_use]
    pub fn store(&self, args: &[&str]) -> Option<String> {
        let mut command = self.sealed(Path::new("git"));
        let output = command.arg("--git-dir").arg(self.state().join("store.git")).args(args).output();
        let output = output.expect("git runs");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Where this text of a file is kept: in the workspace of a task, under refs of the store, or on a branch.
    #[must_use]
    pub fn kept(&self, task: &str, path: &str, text: &str) -> Vec<String> {
        let mut places = Vec::new();
        let there = std::fs::read_to_string(self.workspace(task).join(path));
        if there.is_ok_and(|there| there == text) {
            places.push("the workspace".to_owned());
        }
        let refs = self.store(&["for-each-ref", "--format=%(refname)"]).unwrap_or_default();
        for name in refs.lines() {
            let there = self.store(&["show", &format!("{name}:{path}")]);
            if there.is_some_and(|there| there == text.trim_end()) {
                places.push(name.to_owned());
            }
        }
        places
    }

    /// Leaves it to the test to trust the settings of the project. Otherwise every change of `landfall.toml` is trusted by
    /// `landfall trust`, before the next command.
    pub fn trust_nothing(&mut self) {
        self.trusts = false;
    }

    /// Trusts the settings of the project as they are now, as a person does with `landfall trust`. Settings that cannot be read
    /// are for the test's own command to complain about.
    pub fn trust(&self) {
        let report = self.sealed(&self.program).args(["--json", "trust"]).output().expect("the program runs");
        let Ok(report) = serde_json::from_slice::<Value>(&report.stdout) else { return };
        if let (Some(false), Some(digest)) = (report["trusted"].as_bool(), report["digest"].as_str()) {
            let said = self.sealed(&self.program).args(["trust", "--yes", digest]).output();
            let said = said.expect("the program runs");
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        }
    }

    /// Trusts settings that have changed since the last command, if there may be something to trust.
    fn trust_changes(&self) {
        /// Parts of the names of all settings that have to be trusted.
        const NAMES: [&str; 13] = [
            "hooks",
            "notify",
            "sandbox",
            "env",
            "flags",
            "url",
            "token_file",
            "secret_file",
            "otlp",
            "remote",
            "wholework",
            "URL",
            "url_env",
        ];
        if !self.trusts {
            return;
        }
        // A test may have put a pipe or a device there, which would be waited for.
        let read = |name: &str| {
            let path = self.project().join(name);
            let is_plain = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= 1 << 20);
            if is_plain { std::fs::read(path).unwrap_or_default() } else { Vec::new() }
        };
        let text = [read("landfall.toml"), read(".wholework.yml")].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut trusted = self.trusted.lock().expect("no panic while it is held");
        if *trusted != text {
            if NAMES.iter().any(|name| text.contains(name)) {
                self.trust();
            }
            *trusted = text;
        }
    }

    /// Runs the program; what it said.
    #[track_caller]
    pub fn landfall<S: AsRef<OsStr>>(&self, args: &[S]) -> CommandOutput {
        self.landfall_with(args, b"")
    }

    /// Runs the program with this on its stdin.
    #[track_caller]
    pub fn landfall_with<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> CommandOutput {
        use std::io::Write as _;
        self.trust_changes();
        let mut command = self.sealed(&self.program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let mut stdin = child.stdin.take().expect("piped");
        let _ = stdin.write_all(input); // it may have ended without reading; what it says is checked
        drop(stdin);
        // A command that hangs would say nothing about why: it is ended, and what it said so far is shown.
        let pid = child.id().to_string();
        let (done, over) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            let output = child.wait_with_output();
            drop(done); // which is the word that it is over
            output
        });
        let hung = over.recv_timeout(self.patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if hung {
            let _ = Command::new("kill").args(["-9", &pid]).status(); // it has ended just now
        }
        let said = said(&waiting.join().expect("it only waits").expect("the program ends"));
        assert!(!hung, "it did not end within {:?}: {said:?}", self.patience);
        said
    }

    /// The program with these words, ready to be started as the caller likes.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        self.trust_changes();
        let mut command = self.sealed(&self.program);
        command.args(args);
        command
    }

    /// Starts the program and lets it go on. Its output goes to a file in the scratch folder.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> BackgroundCommand {
        let command = self.command(args);
        self.start_command(command)
    }

    /// Starts the program with at most so many open files, which it cannot raise, and lets it go on. `prlimit` must be there.
    #[must_use]
    pub fn start_with_files_max<S: AsRef<OsStr>>(&self, files_max: u32, args: &[S]) -> BackgroundCommand {
        self.trust_changes();
        let mut command = self.sealed(Path::new("prlimit"));
        command.arg(format!("--nofile={files_max}:{files_max}")).arg(&self.program).args(args);
        self.start_command(command)
    }

    fn start_command(&self, mut command: Command) -> BackgroundCommand {
        let log = std::fs::File::create(self.root().join("started.log")).expect("a file can be made");
        let err = log.try_clone().expect("a file can be shared");
        BackgroundCommand { child: command.stdout(log).stderr(err).spawn().expect("the program runs") }
    }

    /// Adds a task whose body is a script; its id.
    #[track_caller]
    pub fn task(&self, title: &str, script: &str, more: &[&str]) -> String {
        let body = format!("Do as the script says.\n\n```landfall-script\n{script}\n```\n");
        let mut args = vec!["--json", "add", title, "--body", &body];
        args.extend(more);
        let added = self.landfall(&args);
        assert_eq!(added.code, Some(0), "{}", added.err);
        added.json()["tasks"][0]["id"].as_str().expect("an id").to_owned()
    }

    /// The status of a task, in one word.
    #[track_caller]
    pub fn status(&self, task: &str) -> String {
        let said = self.landfall(&["--json", "why", task]);
        said.json()["status"].as_str().expect("a status").to_owned()
    }

    /// Why a task is where it is.
    #[track_caller]
    pub fn why(&self, task: &str) -> String {
        let said = self.landfall(&["--json", "why", task]);
        said.json()["sentence"].as_str().expect("a sentence").to_owned()
    }

    /// All there is to know about a task.
    #[track_caller]
    pub fn detail(&self, task: &str) -> Value {
        self.landfall(&["--json", "show", task]).json()
    }

    /// What a task waits for; empty when it does not wait.
    #[track_caller]
    pub fn wait_of(&self, task: &str) -> String {
        self.detail(task)["wait"]["for"].as_str().unwrap_or_default().to_owned()
    }

    /// The facts of one kind about one task, oldest first.
    #[track_caller]
    pub fn facts(&self, task: &str, kind: &str) -> Vec<Value> {
        let of = |it: &Value| it["task"] == task && it["kind"] == kind;
        self.log().into_iter().filter(of).collect()
    }

    /// What each run of the agent of a task was told, in order.
    #[must_use]
    pub fn prompts(&self, task: &str) -> Vec<String> {
        let mut runs: Vec<(u32, u32, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(self.state().join("attempts")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(rest) = name.strip_prefix(&format!("{task}-")) else { continue };
            let Some((attempt, iteration)) = rest.split_once("-i") else { continue };
            let number = |text: &str| text.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
            if let (Some(attempt), Some(iteration)) = (number(attempt), number(iteration)) {
                runs.push((attempt, iteration, entry.path()));
            }
        }
        runs.sort();
        runs.iter()
            .map(|(.., path)| std::fs::read_to_string(path.join("prompt.md")).unwrap_or_default())
            .collect()
    }

    /// Where the agent of a task works.
    #[must_use]
    pub fn workspace(&self, task: &str) -> PathBuf {
        self.state().join("workspaces").join(task)
    }

    /// What the program that was started has written so far.
    #[must_use]
    pub fn heard(&self) -> String {
        let bytes = std::fs::read(self.root().join("started.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The facts of the journal, oldest first.
    #[track_caller]
    pub fn log(&self) -> Vec<Value> {
        let mut entries = Vec::new();
        loop {
            let after =
                entries.last().map_or(0, |it: &Value| it["seq"].as_u64().expect("a number")).to_string();
            let page = self.landfall(&["--json", "log", "--after", &after]).json();
            entries.extend(page["entries"].as_array().expect("a list").iter().cloned());
            if page["more"].as_bool() != Some(true) {
                return entries;
            }
        }
    }

    /// Waits until `holds`. If that never happens, the panic tells what the program has said and journalled.
    #[track_caller]
    pub fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while let Some(pause) = pause_unless(&mut holds) {
            if began.elapsed() > EVENTUALLY {
                let log = self.landfall(&["log"]);
                let heard = self.heard();
                panic!("waited {EVENTUALLY:?} for {what}\nstarted: {heard}\nlog: {}{}", log.out, log.err);
            }
            std::thread::sleep(pause);
        }
    }

    /// Processes that are still there. Waits a moment: an end may be under way.
    #[must_use]
    pub fn left_behind(&self) -> Vec<Process> {
        let began = Instant::now();
        loop {
            let left = left_behind(self.root());
            if left.is_empty() || began.elapsed() > Duration::from_secs(5) {
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for ScratchProject {
    fn drop(&mut self) {
        // A failed test must not leave agents behind.
        for process in left_behind(self.root()) {
            let pid = process.pid.to_string();
            let _ = Command::new("kill").args(["-9", &pid]).status(); // it has ended already
        }
    }
}

fn said(output: &Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

const EVENTUALLY: Duration = Duration::from_secs(120); // a bound for what never comes, on a machine that is busy
const COMMAND_MAX: Duration = Duration::from_secs(120); // no test waits for more than a few seconds of it

/// A check that looks at every file called `*.want`: its text must stand in the file of the same name without it.
const TEST_SH: &str = r#"passed=0
failed=0
for want in *.want; do
  [ -e "$want" ] || continue
  if grep -qxF "$(cat "$want")" "${want%.want}" 2>/dev/null; then passed=$((passed + 1)); else
    failed=$((failed + 1)); echo "FAIL ${want%.want}: $(cat "$want") is missing"; fi
done
echo "$((passed + 1)) passed, $failed failed"
[ "$failed" = 0 ]
"#;

const SETTINGS: &str = r#"[agent.default]
kind = "script"

[[verify.command]]
name = "tests"
run = "sh test.sh"
timeout = "20s"
"#;
