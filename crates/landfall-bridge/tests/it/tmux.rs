//! A small program in a real terminal, driven to its end. Skipped where tmux is not installed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landfall_agents::tmux::{SOCKET, TerminalAgentKind, TmuxNote, TmuxOrder};
use landfall_agents::{AgentStream, ParserContext, registry};
use landfall_model::{AgentFinish, Signal};
use landfall_testkit::has_tmux;
use rustix::process::{Pid, Signal as Unix};
use tempfile::TempDir;

use crate::PROBE;

const PATIENCE: Duration = Duration::from_secs(90);
/// The time between two looks at the screen.
const POLL_MS: u64 = 50;

struct Scene {
    folder: TempDir,
}

/// A bridge at work.
struct Run {
    child: Child,
    lines: mpsc::Receiver<String>,
    out: String,
}

impl Scene {
    /// None where there is no tmux.
    fn new() -> Option<Self> {
        if !has_tmux() {
            return None;
        }
        let it = Self { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir_all(it.tmp()).expect("folders");
        std::fs::create_dir(it.work()).expect("a folder");
        Some(it)
    }

    /// Deeper than a socket's address can say.
    fn tmp(&self) -> PathBuf {
        self.folder.path().join("a".repeat(80)).join("b".repeat(80))
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(name)).ok()
    }

    fn start(&self, ways: &[&str]) -> Run {
        let argv = [PROBE, "cli"].into_iter().chain(ways.iter().copied()).map(str::to_owned).collect();
        let order = TmuxOrder {
            argv,
            cli: TerminalAgentKind::Other,
            prompt: "say hello;\n  indented \"quoted\" $HOME `x`\ngo\n".to_owned(),
            name: "landfall-T7".to_owned(),
            folder: self.tmp(),
            dispatched: false,
            poll_ms: POLL_MS,
            session: None,
        };
        let mut child = Command::new(PROBE)
            .args(["bridge", "tmux"])
            .current_dir(self.work())
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bridge starts");
        let order = serde_json::to_vec(&order).expect("plain");
        child.stdin.take().expect("piped").write_all(&order).expect("it reads");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Run { child, lines, out: String::new() }
    }

    fn server_is_gone(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let alive = || {
            let said =
                Command::new("tmux").args(["-S", SOCKET, "list-sessions"]).current_dir(self.tmp()).output();
            said.is_ok_and(|said| said.status.success())
        };
        while alive() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }
}

impl Run {
    /// Reads on until a note like this.
    fn until(&mut self, what: &str, wanted: impl Fn(&TmuxNote) -> bool) -> TmuxNote {
        let by = Instant::now() + PATIENCE;
        loop {
            let left = by.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else { panic!("no {what}: {}", self.out) };
            self.out += &line;
            self.out.push('\n');
            let note: TmuxNote = serde_json::from_str(&line).expect("a note");
            if wanted(&note) {
                return note;
            }
        }
    }

    fn stop(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("small")).expect("not zero");
        rustix::process::kill_process(pid, Unix::TERM).expect("it runs");
    }

    /// Reads to the end; how it went, in the engine's eyes.
    fn end(&mut self) -> (Option<i32>, Vec<Signal>) {
        self.until("end", |note| matches!(note, TmuxNote::Ended { .. }));
        let code = self.child.wait().expect("ours").code();
        let mut parser = registry::find_agent("tmux")
            .expect("built in")
            .create_agent()
            .create_parser(&ParserContext::default());
        let mut signals = parser.feed(AgentStream::Out, self.out.as_bytes());
        signals.extend(parser.finish());
        (code, signals)
    }

    fn keys(&self) -> Vec<(String, String)> {
        let notes = self.out.lines().filter_map(|line| serde_json::from_str(line).ok());
        notes
            .filter_map(|note| match note {
                TmuxNote::Key { keys, why } => Some((keys, why)),
                _ => None,
            })
            .collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
            let until = Instant::now() + PATIENCE;
            while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            self.child.kill().ok(); // it has ended by itself
            self.child.wait().ok();
        }
    }
}

fn finish_of(signals: &[Signal]) -> AgentFinish {
    match signals.last() {
        Some(Signal::Finished { how, .. }) => *how,
        other => panic!("no closing word but {other:?}"),
    }
}

#[test]
fn a_program_is_waited_for_typed_to_answered_and_left() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["slow", "welcome", "asks"]);
    run.until("screen that is not ready", |note| matches!(note, TmuxNote::Screen { .. }));
    std::fs::write(scene.work().join("ready.txt"), "").expect("ours");
    let (code, signals) = run.end();
    assert_eq!((code, finish_of(&signals)), (Some(0), AgentFinish::Success), "{}", run.out);
    assert_eq!(
        scene.file("prompt.txt").as_deref(),
        Some("say hello;\n  indented \"quoted\" $HOME `x`\ngo\n"),
        "{}",
        run.out
    );
    assert_eq!(scene.file("answer.txt").as_deref(), Some("y\n"), "{}", run.out);
    let why: Vec<String> = run.keys().into_iter().map(|(_, why)| why).collect();
    // Nothing is pressed for the look-alikes in its output.
    assert_eq!(why, ["continue", "prompt", "yes-no", "leave", "leave"], "{}", run.out);
    assert!(scene.server_is_gone());
}

#[test]
fn a_program_that_is_done_before_the_next_look_has_taken_the_prompt() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["quick"]);
    let (code, signals) = run.end();
    assert_eq!((code, finish_of(&signals)), (Some(0), AgentFinish::Success), "{}", run.out);
    let why: Vec<String> = run.keys().into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, ["prompt", "leave", "leave"], "Enter is not pressed again: {}", run.out);
}

#[test]
fn edge_06_what_destroys_is_not_agreed_to_and_told() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["danger"]);
    let asked = run.until("question", |note| matches!(note, TmuxNote::Asked { .. }));
    let TmuxNote::Asked { text, .. } = asked else { unreachable!("waited for") };
    assert!(text.contains("rm -rf build"), "{text}");
    run.stop();
    let (_, signals) = run.end();
    assert_eq!(finish_of(&signals), AgentFinish::Interrupted, "{}", run.out);
    assert!(signals.iter().any(|signal| matches!(signal, Signal::Question(_))), "{}", run.out);
    assert_eq!(scene.file("answer.txt").filter(|answer| !answer.is_empty()), None);
    assert!(scene.server_is_gone());
}

#[test]
fn nothing_is_typed_while_another_program_has_the_keyboard() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["front"]);
    let held = run.until("hold", |note| matches!(note, TmuxNote::Held { .. }));
    assert_eq!(held, TmuxNote::Held { by: "cat".to_owned() });
    run.stop();
    let (_, signals) = run.end();
    assert_eq!(finish_of(&signals), AgentFinish::Interrupted, "{}", run.out);
    assert_eq!(run.keys().len(), 1, "only the prompt was typed: {}", run.out);
    assert_eq!(scene.file("cat.txt").as_deref(), Some(""), "cat has read something");
}

#[test]
fn a_program_that_ends_by_itself_has_failed() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["dies"]);
    let (code, signals) = run.end();
    assert_eq!((code, finish_of(&signals)), (Some(1), AgentFinish::Error), "{}", run.out);
    assert!(run.out.contains("the agent ended by itself: exit status 3"), "{}", run.out);
    assert!(scene.server_is_gone());
}

#[test]
fn told_to_stop_it_ends_the_terminal_with_all_that_is_in_it() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["never-ready"]);
    let started = run.until("start", |note| matches!(note, TmuxNote::Started { .. }));
    let TmuxNote::Started { pid, .. } = started else { unreachable!("waited for") };
    run.until("screen", |note| matches!(note, TmuxNote::Screen { .. }));
    run.stop();
    let (_, signals) = run.end();
    assert_eq!(finish_of(&signals), AgentFinish::Interrupted, "{}", run.out);
    assert!(scene.server_is_gone());
    let until = Instant::now() + PATIENCE;
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < until, "the program is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let Some(scene) = Scene::new() else { return };
    let order = TmuxOrder {
        argv: vec!["no-such-program".to_owned()],
        cli: TerminalAgentKind::Other,
        prompt: "x".to_owned(),
        name: "landfall-T7".to_owned(),
        folder: scene.tmp(),
        dispatched: false,
        poll_ms: POLL_MS,
        session: None,
    };
    let mut child = Command::new(PROBE)
        .args(["bridge", "tmux"])
        .current_dir(scene.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the bridge starts");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(&serde_json::to_vec(&order).expect("plain"))
        .expect("it reads");
    let said = child.wait_with_output().expect("ours");
    let out = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{out}");
    assert!(out.contains("exit status 127"), "{out}");
}

/// Ends a tmux server with the test.
struct Gone(PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.0).arg("kill-server").output(); // it never started
    }
}

/// Runs tmux on the run's own server, as an agent could that looks for it.
fn as_agent(scene: &Scene, words: &[&str]) -> String {
    let said = Command::new("tmux")
        .args(["-S", SOCKET])
        .args(words)
        .current_dir(scene.tmp())
        .env_remove("TMUX")
        .output()
        .expect("tmux");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

#[test]
fn a_person_who_attaches_sees_the_terminal_and_runs_nothing_for_the_agent() {
    let Some(scene) = Scene::new() else { return };
    let mut run = scene.start(&["never-ready"]);
    run.until("screen", |note| matches!(note, TmuxNote::Screen { .. }));
    // The person's own terminal: another server, whose pane is the client.
    let home = tempfile::tempdir().expect("a folder");
    let socket = home.path().join("s");
    let _gone = Gone(socket.clone());
    let person = |words: &[&str]| {
        let said = Command::new("tmux")
            .arg("-S")
            .arg(&socket)
            .args(words)
            .env_remove("TMUX")
            .output()
            .expect("tmux");
        String::from_utf8_lossy(&said.stdout).into_owned()
    };
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < until, "never: {what}; {}", person(&["capture-pane", "-p", "-t", "me"]));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let tmp = scene.tmp();
    let client = [PROBE, "attach", tmp.to_str().expect("text")];
    person(
        &[&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "me",
            "-x",
            "150",
            "-y",
            "70",
            "--",
            "sleep",
            "600",
        ][..]]
        .concat(),
    );
    for trick in ["lock", "exec"] {
        let marker = home.path().join(trick);
        let evil = format!("touch {}", marker.display());
        let mut words = vec!["respawn-pane", "-k", "-t", "me", "--"];
        words.extend(client);
        person(&words);
        wait("the terminal is shown", &|| {
            !as_agent(&scene, &["list-clients"]).is_empty()
                && person(&["capture-pane", "-p", "-t", "me"]).contains("still loading")
        });
        match trick {
            "lock" => {
                as_agent(&scene, &["set-option", "-g", "lock-command", &evil]);
                // The server holds the client as suspended until it has run the command.
                as_agent(&scene, &["lock-server"]);
                wait("the client is back", &|| {
                    !as_agent(&scene, &["list-clients", "-F", "#{client_flags}"]).contains("suspended")
                });
            }
            _ => {
                as_agent(&scene, &["detach-client", "-a", "-s", "landfall-T7", "-E", &evil]);
                as_agent(&scene, &["detach-client", "-s", "landfall-T7", "-E", &evil]);
                // The command would run in place of the client: its pane closes after it.
                wait("the client is gone", &|| person(&["list-panes", "-t", "me"]).is_empty());
            }
        }
        assert!(!marker.exists(), "{trick}: the agent has run a program as the person");
    }
    run.stop();
    run.end();
    assert!(scene.server_is_gone());
}
