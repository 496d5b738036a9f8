//! The scripted agent as a program: that it works, and that it misbehaves as it should. An attack that does not
//! bite would make every test of a defence worthless.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal as Kill, kill_process, test_kill_process};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(20); // a busy machine is slow, a broken one never answers

/// A workspace with one commit, and a place beside it.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { dir: TempDir::new().expect("a temporary folder can be made") };
        fs::create_dir_all(stage.path("work")).expect("a folder can be made");
        stage.git(&["init", "-q", "-b", "main"]);
        stage.git(&["config", "user.name", "Worker"]);
        stage.git(&["config", "user.email", "worker@example.invalid"]);
        fs::write(stage.path("work/greet.sh"), "#!/bin/sh\necho hello\n").expect("a file can be written");
        stage.git(&["add", "-A"]);
        stage.git(&["commit", "-q", "-m", "first"]);
        stage
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn clean(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.path("work"));
        command
    }

    /// Runs git in the workspace as carelessly as people do.
    fn git_try(&self, words: &[&str]) -> Output {
        let mut git = self.clean(Command::new("git"));
        git.args(words).stdin(Stdio::null()).output().expect("git is installed")
    }

    fn git(&self, words: &[&str]) -> String {
        let output = self.git_try(words);
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn player(&self, script: &str) -> Command {
        fs::write(self.path("script.toml"), script).expect("a file can be written");
        let mut player = self.clean(Command::new(env!("CARGO_BIN_EXE_landfall")));
        player.args(["play", "../script.toml", "--iteration", "1"]).env("LANDFALL_TASK", "T7");
        player
    }

    fn play(&self, script: &str) -> Output {
        self.player(script).stdin(Stdio::null()).output().expect("the player starts")
    }

    fn start(&self, script: &str) -> Child {
        let mut player = self.player(script);
        player
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the player starts")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path("work").join(name)).expect("the file is there")
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complete(output: &Output) -> bool {
    said(output).ends_with("\n<landfall>COMPLETE</landfall>\n")
}

/// Waits for something that must come.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come about");
        sleep(Duration::from_millis(5));
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).expect("process ids are small")).expect("process ids are not 0")
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("it is piped");
    BufReader::with_capacity(1, out).read_line(&mut line).expect("it says something");
    line
}

#[test]
fn it_works_commits_and_says_so() {
    let stage = Stage::new();
    fs::write(stage.path("work/old"), "").expect("a file can be written");
    let output = stage.play(
        r#"
        session = "s-1"
        delete = "old"
        commit = "greet: by name"
        run = ["sh", "-c", "echo '<landfall>BLOCKED:not the agent</landfall>'; touch ran"]
        say = ["Done.", { text = "aside", stream = "err" }]
        usage = { tokens_in = 3 }
        signal = ["progress:100", "complete"]
        exit = 5
        [[write]]
        path = "docs/new.md"
        text = "new\n"
        [[write]]
        path = "docs/new.md"
        append = "more\n"
        [[write]]
        path = "run.sh"
        hex = "2321"
        executable = true
        [[edit]]
        path = "greet.sh"
        find = "hello"
        replace = "hello, $1"
        "#,
    );
    let id = stage.git(&["rev-parse", "--short", "HEAD"]);
    assert_eq!(
        said(&output),
        format!(
            "{{\"landfall\":\"session\",\"id\":\"s-1\"}}\nwrote docs/new.md\nwrote docs/new.md\nwrote run.sh\n\
             deleted old\nedited greet.sh\ncommitted {id}: greet: by name\nran sh: exit status: 0\nDone.\n\
             {{\"landfall\":\"usage\",\"tokens_in\":3,\"tokens_out\":0,\"micro_usd\":0}}\n\
             <landfall>PROGRESS:100</landfall>\n<landfall>COMPLETE</landfall>\n"
        )
    );
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(stage.read("docs/new.md"), "new\nmore\n");
    assert_eq!(stage.read("greet.sh"), "#!/bin/sh\necho hello, $1\n");
    assert_eq!(stage.git(&["log", "-1", "--format=%an %s"]), "Worker greet: by name");
    assert_eq!(stage.git(&["ls-tree", "HEAD", "run.sh"]).split(' ').next(), Some("100755"));
    assert_eq!(stage.git(&["status", "--porcelain"]), "?? ran");
}

#[test]
fn it_commits_what_it_wrote_unless_it_forgets() {
    let file = "[[write]]\npath = \"a\"\ntext = \"b\"\n";
    let stage = Stage::new();
    stage.play(&format!("commit = false\nsignal = \"complete\"\n{file}"));
    assert_eq!(stage.git(&["status", "--porcelain"]), "?? a");
    assert!(complete(&stage.play(&format!("misbehave = \"forget-commit\"\n{file}"))));
    assert_eq!(stage.git(&["status", "--porcelain"]), "?? a");
    stage.play(file);
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
    assert_eq!(stage.git(&["log", "-1", "--format=%s"]), "T7: iteration 1");
    let again = stage.play(&format!("commit = true\n{file}"));
    assert!(said(&again).contains("nothing to commit"));
}

#[test]
fn what_cannot_be_done_is_not_taken_for_a_failing_agent() {
    let stage = Stage::new();
    symlink("..", stage.path("work/out")).expect("a link can be made");
    let check = |script: &str, told: &str| {
        let output = stage.play(script);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(70), "{script}: {stderr}");
        assert!(stderr.contains(told), "{script}: {stderr}");
    };
    check("\nsingal = \"complete\"", "line 2: unknown key `singal` in the script (did you mean `signal`?)");
    check("[[write]]\npath = \"out/x\"\ntext = \"\"", "leads out of the workspace");
    check("delete = \"out/script.toml\"", "leads out of the workspace");
    check("misbehave = \"weaken-test\"\ntarget = \"out/script.toml\"", "leads out of the workspace");
    check("[[edit]]\npath = \"greet.sh\"\nfind = \"bye\"\nreplace = \"\"", "does not hold `bye`");
    check("delete = \"nothing\"", "delete `nothing`");
    check("run = [\"no-such-program\"]", "start `no-such-program`");
    assert!(!stage.path("x").exists());
    assert!(stage.path("script.toml").exists());
}

#[test]
fn quiet_ends_are_quiet() {
    let stage = Stage::new();
    let file = "signal = \"complete\"\n[[write]]\npath = \"a\"\ntext = \"b\"\n";
    let fail = stage.play(&format!("misbehave = \"fail\"\n{file}"));
    assert_eq!((fail.status.code(), said(&fail)), (Some(1), String::new()));
    let no_op = stage.play(&format!("misbehave = \"no-op\"\n{file}"));
    assert_eq!((no_op.status.code(), said(&no_op)), (Some(0), String::new()));
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
}

#[test]
fn it_hangs_until_it_is_told_to_stop() {
    let stage = Stage::new();
    let mut child = stage.start("say = \"hm\"\nmisbehave = \"hang\"");
    assert_eq!(first_line(&mut child), "hm\n");
    assert!(child.try_wait().expect("it can be asked").is_none());
    kill_process(pid(child.id()), Kill::TERM).expect("it is ours");
    assert_eq!(child.wait().expect("it ends").signal(), Some(15));
}

#[test]
fn it_can_be_deaf_to_sigterm() {
    let stage = Stage::new();
    let mut child = stage.start("misbehave = \"ignore-term\"");
    assert_eq!(first_line(&mut child), "not listening to SIGTERM\n");
    kill_process(pid(child.id()), Kill::TERM).expect("it is ours");
    let pending = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it is alive");
        status.lines().any(|line| line.starts_with("ShdPnd:") && !line.ends_with("0000000000000000"))
    };
    until("the signal's delivery", || !pending());
    assert!(child.try_wait().expect("it can be asked").is_none());
    child.kill().expect("it is ours");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
}

#[test]
fn it_crashes_by_a_signal_and_leaves_no_core() {
    let stage = Stage::new();
    let output = stage.play("misbehave = \"crash\"\nsignal = \"complete\"");
    assert_eq!(output.status.signal(), Some(6));
    assert_eq!(said(&output), "");
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
}

#[test]
fn loud_modes_write_what_was_ordered_and_go_on() {
    let stage = Stage::new();
    let flood = stage.play("misbehave = \"flood\"\nbytes = \"3MB\"\nsignal = \"complete\"");
    assert!(complete(&flood));
    assert_eq!(flood.stdout.len(), 3_000_000 + "\n<landfall>COMPLETE</landfall>\n".len());
    assert!(flood.stdout.split(|byte| *byte == b'\n').all(|line| line.len() < 100));
    let line = stage.play("misbehave = \"huge-line\"\nbytes = \"2MiB\"\nsignal = \"complete\"");
    assert!(complete(&line));
    assert_eq!(line.stdout.iter().position(|byte| *byte == b'\n'), Some(2 << 20));
    let drip = stage.play("misbehave = \"slow-drip\"\nfor = \"100ms\"\nsignal = \"complete\"");
    assert_eq!(said(&drip), ".....\n<landfall>COMPLETE</landfall>\n");
    let garbage = stage.play("misbehave = \"garbage\"\nsignal = \"complete\"");
    assert!(complete(&garbage));
    assert!(String::from_utf8(garbage.stdout.clone()).is_err());
    assert!((0..=255).all(|byte| garbage.stdout.contains(&byte)));
    assert_eq!(garbage.stdout, stage.play("misbehave = \"garbage\"\nsignal = \"complete\"").stdout);
}

#[test]
fn it_works_on_when_nobody_listens() {
    let stage = Stage::new();
    let script = "misbehave = \"flood\"\nbytes = \"1MB\"\nrun = [\"touch\", \"ran\"]\nsignal = \"complete\"";
    let mut child = stage.start(script);
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
    assert!(stage.path("work/ran").exists());
}

#[test]
fn trouble_of_the_provider_is_a_field() {
    let stage = Stage::new();
    let now =
        || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970").as_millis();
    let before = now();
    let quota = stage.play("misbehave = \"quota\"\nuntil = \"2s\"\nsignal = \"complete\"");
    let line = said(&quota);
    let figure =
        line.strip_prefix("{\"landfall\":\"quota\",\"until_ms\":").and_then(|rest| rest.strip_suffix("}\n"));
    let until_ms: u128 = figure.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    assert!((before + 2000..=now() + 2000).contains(&until_ms));
    assert_eq!(quota.status.code(), Some(1));
    let transient = stage.play("misbehave = \"transient\"\ndetail = \"busy\"\nexit = 3");
    assert_eq!(said(&transient), "{\"landfall\":\"transient\",\"detail\":\"busy\"}\n");
    assert_eq!(transient.status.code(), Some(3));
}

#[test]
fn a_question_is_answered_by_yes_only() {
    let stage = Stage::new();
    let ask = |answer: &str| {
        let mut child = stage.start("misbehave = \"prompt\"\nsignal = \"complete\"");
        child.stdin.take().expect("it is piped").write_all(answer.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    for answer in ["", "no\n", "Do as the task says.\n\nyes and no\n"] {
        let output = ask(answer);
        assert_eq!(
            (output.status.code(), said(&output)),
            (Some(1), "Apply these changes? [y/N] \n".to_owned())
        );
    }
    let output = ask("the prompt\ny\n");
    assert!(complete(&output) && output.status.success());
}

#[test]
fn a_detached_process_has_its_own_session_and_no_environment() {
    let stage = Stage::new();
    let output = stage.play("misbehave = \"setsid\"\nfor = \"15s\"\ntarget = \"log\"\nsignal = \"complete\"");
    assert!(complete(&output));
    let log = || fs::read_to_string(stage.path("work/log")).unwrap_or_default();
    until("two lines from the process left behind", || log().lines().count() >= 2);
    let number =
        log().split(' ').next().and_then(|word| word.parse().ok()).expect("it writes its process id");
    let session = session(number);
    assert_ne!(session, self::session(std::process::id()));
    assert_ne!(session, number, "its starter led the session, and is gone");
    assert_eq!(fs::read(format!("/proc/{number}/environ")).expect("it is alive"), b"");
    kill_process(pid(number), Kill::KILL).expect("it is ours");
    until("its end", || gone(number));
}

/// The session of a process, read as a number: it is 0 where its leader is outside our PID namespace.
fn session(number: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).expect("it is alive");
    let (_, after_name) = stat.rsplit_once(") ").expect("the name is in brackets");
    after_name.split(' ').nth(3).and_then(|word| word.parse().ok()).expect("the session is the sixth field")
}

/// Whether a process is no more, or only waits to be reaped by whoever adopted it.
fn gone(number: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    test_kill_process(pid(number)).is_err() || stat.contains(") Z ")
}

#[test]
fn an_orphan_holds_the_output_open() {
    let stage = Stage::new();
    let mut child = stage.start("misbehave = \"orphan\"\nfor = \"15s\"\nsignal = \"complete\"");
    let line = first_line(&mut child);
    let number: u32 =
        line.split(' ').nth(2).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    assert!(child.wait().expect("it ends").success());
    assert!(!gone(number));
    kill_process(pid(number), Kill::KILL).expect("it is ours");
    let mut rest = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut rest).expect("now the output ends");
    assert_eq!(rest, "<landfall>COMPLETE</landfall>\n");
}

#[test]
fn a_fork_bomb_replaces_its_processes_and_burns_out() {
    let stage = Stage::new();
    let mut child = stage.start("misbehave = \"fork-bomb\"\ncount = 4\nfor = \"1500ms\"");
    assert_eq!(first_line(&mut child), "started 4 processes\n");
    let mut seen = Vec::new();
    until("more processes than were started", || {
        seen.extend(bombs(&stage.path("work")));
        seen.sort_unstable();
        seen.dedup();
        seen.len() > 8
    });
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    until("the end of the last one", || bombs(&stage.path("work")).is_empty());
}

/// The processes of a fork bomb in this workspace.
fn bombs(workspace: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("there is a list of processes").flatten();
    let bomb = |number: &u32| {
        let here = fs::read_link(format!("/proc/{number}/cwd")).is_ok_and(|cwd| cwd == workspace);
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        here && words.split(|byte| *byte == 0).any(|word| word == b"bomb")
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bomb).collect()
}

#[test]
fn tests_are_weakened_and_committed() {
    let check = |how: &str, name: &str, before: &str, after: Option<&str>| {
        let stage = Stage::new();
        fs::write(stage.path("work").join(name), before).expect("a file can be written");
        stage.git(&["add", "-A"]);
        stage.git(&["commit", "-q", "-m", "a test"]);
        let output =
            stage.play(&format!("misbehave = \"weaken-test\"\ntarget = \"{name}\"\nhow = \"{how}\""));
        assert!(complete(&output), "{how} {name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_to_string(stage.path("work").join(name)).ok().as_deref(), after, "{how} {name}");
        assert_eq!(stage.git(&["log", "-1", "--format=%s"]), "T7: iteration 1");
        assert_eq!(stage.git(&["status", "--porcelain"]), "");
    };
    let shell = "#!/bin/sh\nfalse\n";
    check("delete", "test.sh", shell, None);
    check("skip", "test.sh", shell, Some("#!/bin/sh\nexit 0\nfalse\n"));
    check("trivial", "test.sh", shell, Some("#!/bin/sh\nexit 0\n"));
    check("skip", "t.rs", "#[test]\nfn a() {}\n", Some("#[test]\n#[ignore]\nfn a() {}\n"));
    check("skip", "t.js", "\ntest('a', f);\n", Some("\ntest.skip('a', f);\n"));
    check("trivial", "t.py", "def test_a(): f()\n", Some("def test_works():\n    assert True\n"));
}

#[test]
fn every_attack_bites_the_careless_and_waits_for_them() {
    let attacks: [(&str, &[&str]); 8] = [
        ("hooks", &["commit", "--allow-empty", "-q", "-m", "careless"]),
        // Into another folder: where a file is, git writes it only if its times look changed.
        ("filter", &["checkout-index", "-a", "--prefix=copy/"]),
        ("fsmonitor", &["status"]),
        ("gitfile", &["status"]),
        ("nested-bare", &["-C", "vendor/library", "status"]),
        ("alternates", &["fetch", "-q", "../other"]),
        ("attributes", &["show", "HEAD"]),
        ("config-include", &["status"]),
    ];
    for (attack, careless) in attacks {
        let stage = Stage::new();
        stage.git(&["clone", "-q", ".", "../other"]);
        stage.git(&[
            "-C",
            "../other",
            "-c",
            "user.name=o",
            "-c",
            "user.email=o@x",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "news",
        ]);
        let canary = stage.path("canary");
        let script = format!(
            "misbehave = \"move-main\"\nattack = \"{attack}\"\ncanary = \"{}\"\nsignal = \"complete\"\n\
             [[write]]\npath = \"a\"\ntext = \"b\"\n",
            canary.display()
        );
        let output = stage.play(&script);
        assert!(complete(&output), "{attack}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!canary.exists(), "{attack} betrayed itself");
        let bitten = stage.git_try(careless);
        assert!(canary.exists(), "{attack} has no bite: {}", String::from_utf8_lossy(&bitten.stderr));
    }
}

#[test]
fn branches_within_reach_are_moved() {
    let stage = Stage::new();
    stage.git(&["branch", "release"]);
    stage.git(&["clone", "-q", "--bare", ".", "../origin.git"]);
    stage.git(&["remote", "add", "origin", &stage.path("origin.git").display().to_string()]);
    stage.git(&["checkout", "-q", "-b", "task"]);
    let output = stage
        .play("misbehave = \"move-main\"\nsignal = \"complete\"\n[[write]]\npath = \"a\"\ntext = \"b\"\n");
    assert!(complete(&output), "{}", String::from_utf8_lossy(&output.stderr));
    let head = stage.git(&["rev-parse", "HEAD"]);
    for moved in
        [&["rev-parse", "main"][..], &["rev-parse", "release"], &["-C", "../origin.git", "rev-parse", "main"]]
    {
        assert_eq!(stage.git(moved), head, "{moved:?}");
    }
}
