//! A place to run the program in: its own home, state folder and repository, and none of the environment around.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use landfall_api::{Added, TaskPage};
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// No command of a test takes longer, even on a loaded machine.
pub const TIME_MAX: Duration = Duration::from_secs(60);

/// A home, a state folder and a repository with one commit.
pub struct TestEnvironment {
    folder: TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub out: String,
    /// What it wrote to stderr.
    pub err: String,
}

impl TestEnvironment {
    /// With a repository that has one commit on `main`.
    pub fn new() -> Self {
        let it = Self::within(&landfall_testkit::tests_folder());
        it.git(&["init", "--quiet", "--initial-branch=main"]);
        it.write("README.md", "a project\n");
        it.commit("first");
        it
    }

    /// With an empty folder where the repository would be.
    pub fn without_repository() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(folder: &Path) -> Self {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("landfall-test-").tempdir_in(folder).expect("a temporary folder");
        let it = Self { folder };
        for name in ["home", "project"] {
            fs::create_dir(it.path(name)).expect("a new folder");
        }
        it
    }

    /// A repository whose settings name the scripted agent and one check.
    pub fn with_script_agent(check: &str) -> Self {
        let it = Self::new();
        it.write(
            "landfall.toml",
            &format!(
                "[project]\nbase = \"main\"\n[verify]\nrequired = true\n[[verify.command]]\nname = \"check\"\nrun = {check:?}\n\
                 [agent.default]\nkind = \"script\"\n"
            ),
        );
        it.commit("settings");
        it
    }

    /// The same for a check that only the work of an agent makes green.
    pub fn with_red_base(check: &str) -> Self {
        let it = Self::with_script_agent(check);
        let settings = fs::read_to_string(it.project().join("landfall.toml")).expect("just written");
        it.write("landfall.toml", &settings.replace("[verify]", "[verify]\nred_base = \"start\""));
        it.commit("agents start on a red base");
        it
    }

    /// A path beside the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The root of the repository.
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().expect("inside the project")).expect("its folder");
        fs::write(path, text).expect("a file of the project");
    }

    /// Commits everything in the project.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Trusts the settings of the project as they are, as a person does.
    pub fn trust(&self) {
        let report: serde_json::Value =
            serde_json::from_str(&self.landfall(&["--json", "trust"]).out).expect("a report");
        let digest = report["digest"].as_str().expect("a digest");
        let said = self.landfall(&["trust", "--yes", digest]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }

    /// Runs git in the project, and expects it to succeed.
    pub fn git(&self, args: &[&str]) -> String {
        let mut command = self.scrubbed("git");
        // Each commit would start two more processes, which find nothing to do.
        command.args(["-c", "maintenance.auto=false"]);
        let said = finish(command.args(args).spawn().expect("git starts"), "");
        assert_eq!(said.code, Some(0), "git {args:?}: {}", said.err);
        said.out.trim_end().to_owned()
    }

    /// The program in the project, ready to start.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.scrubbed(env!("CARGO_BIN_EXE_landfall"));
        command.args(args);
        command
    }

    /// Any program in the project with a scrubbed environment and pipes.
    pub fn scrubbed(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("LANDFALL_STATE", self.path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([("GIT_AUTHOR_NAME", "A Person"), ("GIT_AUTHOR_EMAIL", "person@example.invalid")])
            .envs([("GIT_COMMITTER_NAME", "A Person"), ("GIT_COMMITTER_EMAIL", "person@example.invalid")])
            .envs([("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("RUST_BACKTRACE", "0")])
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn landfall<S: AsRef<OsStr>>(&self, args: &[S]) -> Said {
        self.landfall_with(args, "")
    }

    /// Runs the program to its end with this on stdin.
    pub fn landfall_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &str) -> Said {
        finish(self.command(args).spawn().expect("the program starts"), stdin)
    }

    /// Runs the program, expects it to succeed, and reads its JSON.
    pub fn json<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        let said = self.landfall(&[&["--json"], args].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", said.out))
    }

    /// Adds tasks and gives their ids back.
    pub fn add(&self, args: &[&str]) -> Vec<String> {
        let added: Added = self.json(&[&["add"], args].concat());
        added.tasks.iter().map(|task| task.id.to_string()).collect()
    }

    /// The titles there are.
    pub fn titles(&self) -> Vec<String> {
        let page: TaskPage = self.json(&["list"]);
        page.tasks.into_iter().map(|task| task.title).collect()
    }
}

impl Drop for TestEnvironment {
    /// Agents outlive the engine, so a test that breaks off would leave some behind. They are known by the folder that
    /// only this test has.
    fn drop(&mut self) {
        let folder = self.folder.path().as_os_str().as_encoded_bytes().to_vec();
        let Ok(entries) = fs::read_dir("/proc") else { return };
        for entry in entries.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid.filter(|pid| *pid != rustix::process::getpid()) else { continue };
            let names = |file: &str| {
                let text = fs::read(entry.path().join(file)).unwrap_or_default();
                text.windows(folder.len()).any(|part| part == folder)
            };
            if names("cmdline") || names("environ") {
                rustix::process::kill_process(pid, Signal::KILL).ok(); // it has ended by itself
            }
        }
    }
}

/// The program at work. What it says on stderr can be looked at while it runs.
pub struct Running {
    child: Child,
    err: Arc<Mutex<String>>,
    reader: thread::JoinHandle<()>,
}

impl TestEnvironment {
    /// Starts the program and goes on.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).spawn().expect("the program starts");
        let err = Arc::new(Mutex::new(String::new()));
        let (heard, stderr) = (Arc::clone(&err), child.stderr.take().expect("piped"));
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                heard.lock().expect("no panic while it is held").push_str(&(line + "\n"));
            }
        });
        Running { child, err, reader }
    }
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).expect("our own child");
    }

    /// Waits until it has said this on stderr.
    pub fn says(&self, words: &str) {
        until(words, || self.err.lock().expect("no panic while it is held").contains(words));
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        drop(self.child.stdin.take());
        let mut out = self.child.stdout.take().expect("piped");
        let out_reader = thread::spawn(move || read_all(&mut out));
        let status = wait(&mut self.child, TIME_MAX);
        let out = out_reader.join().expect("read");
        self.reader.join().expect("read");
        let err = self.err.lock().expect("no panic while it is held").clone();
        Said { code: status.code(), out, err }
    }
}

impl Said {
    /// Expects this exit code, an error with these words on stderr, and nothing on stdout.
    pub fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
        // Agents read our errors; what would destroy something is never proposed to them.
        for word in ["--force", "--hard", "rm -", "reset", "clean -", "-delete", "branch -D", "push -f"] {
            assert!(!self.err.contains(word), "`{word}` is proposed in: {}", self.err);
        }
    }

    /// Expects success.
    pub fn works(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// Waits for the end of a process that has pipes, with a bound.
pub fn finish(mut child: Child, stdin: &str) -> Said {
    let mut input = child.stdin.take();
    let mut out = child.stdout.take().expect("piped");
    let mut err = child.stderr.take().expect("piped");
    let text = stdin.to_owned();
    let writer = thread::spawn(move || {
        if let Some(input) = &mut input {
            let _ = input.write_all(text.as_bytes()); // it may end without reading
        }
        drop(input);
    });
    let reader = thread::spawn(move || read_all(&mut out));
    let talk = thread::spawn(move || read_all(&mut err));
    let status = wait(&mut child, TIME_MAX);
    writer.join().expect("written");
    let out = reader.join().expect("read");
    let err = talk.join().expect("read");
    Said { code: status.code(), out, err }
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("a pipe can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for a process, and ends it if it takes too long: a test that hangs tells nothing.
pub fn wait(child: &mut Child, time_max: Duration) -> ExitStatus {
    let deadline = Instant::now() + time_max;
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
            panic!("it did not end within {time_max:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TIME_MAX;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {TIME_MAX:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a file is there.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
