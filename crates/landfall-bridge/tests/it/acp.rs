//! Conversations with a small agent, good and bad.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landfall_agents::acp::{AcpNote, AcpOrder};
use landfall_agents::{AgentStream, ParserContext, registry};
use landfall_model::{AgentFinish, AgentUsage, Signal};
use rustix::process::{Pid, Signal as Unix};
use tempfile::TempDir;

use crate::PROBE;

const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    folder: TempDir,
}

/// What a bridge printed and how it ended.
struct Told {
    code: Option<i32>,
    out: String,
    signals: Vec<Signal>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let it = Self { folder };
        it.git(&["init", "-q"]);
        it
    }

    fn git(&self, args: &[&str]) -> String {
        let out = Command::new("git").args(args).current_dir(self.folder.path()).output().expect("git");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn order(&self, ways: &[&str]) -> AcpOrder {
        let argv = [PROBE, "acp"].into_iter().chain(ways.iter().copied()).map(str::to_owned).collect();
        AcpOrder {
            argv,
            prompt: "say hello\nin two lines".to_owned(),
            resume: None,
            modes: vec!["yolo".to_owned()],
            model: None,
            effort: None,
            mcp: None,
        }
    }

    fn start(&self, order: &AcpOrder) -> Child {
        let mut child = Command::new(PROBE)
            .args(["bridge", "acp"])
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the bridge starts");
        child.stdin.take().expect("piped").write_all(&order.json()).expect("it reads");
        child
    }

    fn run(&self, order: &AcpOrder) -> Told {
        finish(Guarded(self.start(order)), Vec::new())
    }
}

/// A bridge that does not outlive a test that breaks off; its agent goes when its stdin closes.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.kill().ok(); // it has ended by itself
        self.0.wait().ok();
    }
}

/// Waits for the bridge to end; `before` was read already.
fn finish(mut child: Guarded, before: Vec<u8>) -> Told {
    let mut stdout = child.0.stdout.take().expect("piped");
    let (tell, told) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut out = before;
        stdout.read_to_end(&mut out).ok();
        tell.send(out).ok();
    });
    let Ok(out) = told.recv_timeout(PATIENCE) else { panic!("the bridge did not end") };
    reader.join().expect("it read");
    let code = child.0.wait().expect("ours").code();
    let mut parser = registry::find_agent("acp")
        .expect("built in")
        .create_agent()
        .create_parser(&ParserContext::default());
    let mut signals = parser.feed(AgentStream::Out, &out);
    signals.extend(parser.finish());
    Told { code, out: String::from_utf8_lossy(&out).into_owned(), signals }
}

impl Told {
    fn notes(&self) -> Vec<AcpNote> {
        self.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn closing(&self) -> (AgentFinish, &str) {
        match self.signals.last() {
            Some(Signal::Finished { how, text }) => (*how, text),
            other => panic!("no closing word but {other:?}: {}", self.out),
        }
    }

    fn fault(&self) -> String {
        let fault = self.notes().into_iter().find_map(|note| match note {
            AcpNote::Failed(fault) => Some(format!("{}: {}", fault.at, fault.message)),
            _ => None,
        });
        fault.unwrap_or_else(|| panic!("nothing failed: {}", self.out))
    }
}

fn gone(pid: u32) -> bool {
    let until = Instant::now() + PATIENCE;
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn agent_of(notes: &[AcpNote]) -> u32 {
    let pid = notes.iter().find_map(|note| match note {
        AcpNote::Started { pid, .. } => Some(*pid),
        _ => None,
    });
    pid.expect("it was started")
}

#[test]
fn a_good_agent_works_commits_and_is_understood() {
    let scene = Scene::new();
    let mut order = scene.order(&[]);
    order.model = Some("Large".to_owned());
    let told = scene.run(&order);
    assert_eq!(told.code, Some(0), "{}", told.out);
    assert_eq!(scene.git(&["log", "--format=%s"]), "hello");
    let started = Signal::Started { session: Some("tiny-1".to_owned()), model: Some("small".to_owned()) };
    let turn = Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() });
    assert_eq!(
        told.signals,
        [
            started,
            turn.clone(),
            Signal::Text("asked: say hello\nin two lines".to_owned()),
            Signal::ToolUse { name: "execute".to_owned(), detail: "commit".to_owned() },
            Signal::ToolDone,
            Signal::Context { used: 1000, size: 200_000 },
            Signal::Cost(250_000),
            turn,
            Signal::Text("all\ndone".to_owned()),
            Signal::Usage(AgentUsage {
                tokens_in: 13,
                tokens_cached: 3,
                tokens_out: 5,
                ..AgentUsage::default()
            }),
            Signal::Finished { how: AgentFinish::Success, text: "all\ndone".to_owned() },
        ],
        "{}",
        told.out
    );
    let notes = told.notes();
    let set = |what: &str, to: &str| {
        let (what, to) = (what.to_owned(), to.to_owned());
        notes.contains(&AcpNote::Set { what, to, refused: None })
    };
    assert!(set("mode", "yolo") && set("model", "Large"), "{}", told.out);
    let asked = AcpNote::Asked { what: "commit".to_owned(), chosen: Some("Once".to_owned()) };
    assert!(notes.contains(&asked), "{}", told.out);
    assert!(gone(agent_of(&notes)));
}

#[test]
fn leave_that_cannot_be_given_is_told() {
    let scene = Scene::new();
    let told = scene.run(&scene.order(&["only-no"]));
    assert!(told.signals.contains(&Signal::PermissionAsked { what: "commit".to_owned() }), "{}", told.out);
    assert_eq!(scene.git(&["log", "--format=%s"]), "");
}

#[test]
fn a_mode_that_is_refused_does_not_stop_it_and_a_model_that_is_not_there_does() {
    let scene = Scene::new();
    let told = scene.run(&scene.order(&["no-mode"]));
    assert_eq!(told.closing().0, AgentFinish::Success, "{}", told.out);
    let mut order = scene.order(&[]);
    order.model = Some("huge".to_owned());
    let told = scene.run(&order);
    assert_eq!(told.code, Some(1));
    assert_eq!(told.fault(), "set: the agent has no model `huge`: it offers small, large");
}

#[test]
fn an_old_session_goes_on_and_its_replay_says_nothing() {
    let scene = Scene::new();
    for way in ["loads", "resumes"] {
        let mut order = scene.order(&[way, "only-no"]);
        order.resume = Some("tiny-1".to_owned());
        let told = scene.run(&order);
        assert_eq!(told.closing().0, AgentFinish::Success, "{}", told.out);
        let resumed = AcpNote::Session { id: "tiny-1".to_owned(), resumed: true, model: None };
        assert!(told.notes().contains(&resumed), "{}", told.out);
        assert!(!format!("{:?}", told.signals).contains("an old conversation"), "{}", told.out);
    }
}

#[test]
fn a_session_that_is_gone_is_told_and_the_run_ends_before_its_prompt() {
    let scene = Scene::new();
    for ways in [&["loads", "only-no"][..], &["only-no"]] {
        let mut order = scene.order(ways);
        order.resume = Some("tiny-0".to_owned());
        let told = scene.run(&order);
        assert_eq!(told.signals.first(), Some(&Signal::SessionGone), "{}", told.out);
        assert_eq!(told.closing().0, AgentFinish::Error, "{}", told.out);
        assert!(!told.out.contains("prompted"), "it was written for one that remembers: {}", told.out);
    }
}

#[test]
fn limits_logins_and_lengths_are_told_apart() {
    let scene = Scene::new();
    let told = scene.run(&scene.order(&["limit"]));
    assert!(told.signals.contains(&Signal::Quota { until: None }), "{}", told.out);
    assert_eq!(told.closing(), (AgentFinish::Error, "limit"));
    let told = scene.run(&scene.order(&["logged-out"]));
    let out = Signal::Unauthorized { detail: "Authentication required".to_owned() };
    assert!(told.signals.contains(&out), "{}", told.out);
    let told = scene.run(&scene.order(&["max", "only-no"]));
    assert_eq!(told.closing().0, AgentFinish::Limit, "{}", told.out);
}

#[test]
fn an_agent_that_is_not_there_dies_or_is_silent_at_once_is_an_error() {
    let scene = Scene::new();
    let mut order = scene.order(&[]);
    order.argv = vec!["no-such-agent".to_owned()];
    let told = scene.run(&order);
    assert_eq!((told.code, told.closing().0), (Some(1), AgentFinish::Error));
    assert!(told.fault().starts_with("start: run `no-such-agent`"), "{}", told.fault());

    let told = scene.run(&scene.order(&["die-at-start"]));
    assert_eq!((told.code, told.closing().0), (Some(1), AgentFinish::Error));
    assert_eq!(told.fault(), "initialize: the agent ended in the middle: exit status: 3");

    let told = scene.run(&scene.order(&["die"]));
    assert_eq!((told.code, told.closing().0), (Some(1), AgentFinish::Error));
    assert!(told.signals.contains(&Signal::Text("I am about to".to_owned())), "{}", told.out);
    assert_eq!(told.fault(), "session/prompt: the agent ended in the middle: exit status: 7");

    // What it leaves behind holds its output open: that is no conversation.
    let began = std::time::Instant::now();
    let told = scene.run(&scene.order(&["die-with-an-heir"]));
    assert_eq!((told.code, told.closing().0), (Some(1), AgentFinish::Error), "{}", told.out);
    assert!(told.fault().contains("the agent ended in the middle: exit status: 7"), "{}", told.fault());
    assert!(began.elapsed().as_secs() < 20, "it did not wait for the heir");
    let heir = told.signals.iter().find_map(|signal| match signal {
        Signal::Text(text) => text.strip_prefix("heir ")?.trim().parse().ok(),
        _ => None,
    });
    let heir = rustix::process::Pid::from_raw(heir.expect("it said so")).expect("not 0");
    rustix::process::kill_process(heir, rustix::process::Signal::KILL).expect("it is ours");
}

#[test]
fn garbage_is_shown_and_survived() {
    let scene = Scene::new();
    let told = scene.run(&scene.order(&["garbage"]));
    assert_eq!(told.closing().0, AgentFinish::Success, "{}", told.out);
    let raw = told.notes().into_iter().filter(|note| matches!(note, AcpNote::Raw { .. })).count();
    assert_eq!(raw, 4, "{}", told.out);
}

#[test]
fn a_flood_is_passed_on_in_bounded_lines() {
    let scene = Scene::new();
    let told = scene.run(&scene.order(&["flood"]));
    assert_eq!(told.closing().0, AgentFinish::Success);
    let longest = told.out.lines().map(str::len).max().expect("lines");
    assert!(longest < 64 << 10, "a line of {longest} bytes");
    assert!(
        told.signals.contains(&Signal::ToolUse { name: "execute".to_owned(), detail: "cat big".to_owned() })
    );
    let cut = |note: &AcpNote| matches!(note, AcpNote::Raw { bytes, .. } if *bytes == 20 << 20);
    assert!(told.notes().iter().any(cut), "the long line is counted");
}

#[test]
fn told_to_stop_it_cancels_and_leaves_nobody_behind() {
    for (ways, at) in
        [(&["hang"][..], "working"), (&["deaf", "stays"], "working"), (&["hang-at-start"], "started")]
    {
        let scene = Scene::new();
        let mut child = Guarded(scene.start(&scene.order(ways)));
        let mut before = Vec::new();
        let mut reader = BufReader::with_capacity(1, child.0.stdout.take().expect("piped"));
        while !String::from_utf8_lossy(&before).contains(at) {
            assert_ne!(reader.read_until(b'\n', &mut before).expect("readable"), 0, "{ways:?} ended early");
        }
        child.0.stdout = Some(reader.into_inner());
        let pid = Pid::from_raw(i32::try_from(child.0.id()).expect("small")).expect("not zero");
        rustix::process::kill_process(pid, Unix::TERM).expect("it runs");
        let told = finish(child, before);
        assert_eq!(told.closing().0, AgentFinish::Interrupted, "{ways:?}: {}", told.out);
        assert!(gone(agent_of(&told.notes())), "{ways:?}");
    }
}

#[test]
fn an_order_that_cannot_be_read_is_refused() {
    let mut child = Command::new(PROBE)
        .args(["bridge", "acp"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the bridge starts");
    assert_eq!(child.wait().expect("ours").code(), Some(2));
}
