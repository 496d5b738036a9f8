//! `landfall serve` from outside: commands, programs and browsers come by HTTP, runs outlive whoever asked for them, and what is
//! secret stays so.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use landfall_api::client::{EngineAddress, EngineClient};
use landfall_api::{
    IssueAsked, IssueClose, IssueNew, IssueNumber, IssueSay, IssueState, IssueSummariesAsked, IssueTick,
    IssuesAsked, IssuesFollow, Nothing, OutputAsked, OutputOf, ProblemCode, ReconcileAsked, RunAsked,
    RunEnded, RunNowAsked, RunOutcome, Size, Status, TaskAsked, TypedService as _, VerifyAsked, WireTaskId,
};
use landfall_testkit::{BackgroundCommand, ScratchProject};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::Value;

use crate::LANDFALL;
use crate::hold_file::HoldFile;
use crate::lifecycle::works;
use crate::pipeline::{script, there};
use crate::sandbox::open;
use crate::styles::{Style, in_styles};

const TIME_MAX: Duration = Duration::from_secs(60);

/// A server at work.
pub struct Served {
    pub process: BackgroundCommand,
    pub at: SocketAddr,
    pub token: String,
}

impl Served {
    pub fn start(scratch: &ScratchProject, more: &[&str]) -> Self {
        let process = scratch.start(&[&["--json", "serve", "--listen", "127.0.0.1:0"], more].concat());
        let log = scratch.root().join("started.log");
        let mut first = None;
        scratch.eventually("the server says where it is", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            first = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
            first.is_some()
        });
        let first = first.expect("it was said");
        let at =
            first["addresses"][0].as_str().and_then(|it| it.strip_prefix("http://")).expect("an address");
        let token = scratch.landfall(&["token"]).ok().trim().to_owned();
        Self { process, at: at.parse().expect("an address"), token }
    }

    /// A program that talks to it over the network.
    pub fn client(&self) -> EngineClient {
        let address =
            EngineAddress::Server { at: self.at, host: self.at.to_string(), token: self.token.clone() };
        EngineClient::connect_to(address).expect("it lets us in")
    }

    /// A raw request; status and body.
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).expect("it listens");
        stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.at,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("an answer");
        let said = String::from_utf8_lossy(&said).into_owned();
        let status =
            said.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{said:?}"));
        (status, said.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    pub fn get(&self, target: &str) -> (u16, String) {
        self.ask("GET", target, &format!("Authorization: Bearer {}\r\n", self.token), "")
    }

    /// An operation that changes something, with the token.
    pub fn post(&self, target: &str, body: &str) -> (u16, String) {
        let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.token);
        self.ask("POST", target, &headers, body)
    }

    /// How often an operation was carried out by the server.
    fn count(&self, operation: &str) -> u32 {
        let line = format!("landfall_requests_total{{operation=\"{operation}\",result=\"ok\"}} ");
        let (_, text) = self.get("/metrics");
        text.lines().find_map(|it| it.strip_prefix(&line)).map_or(0, |it| it.parse().expect("a number"))
    }

    /// Interrupts it, and waits for its end.
    pub fn end(mut self) {
        self.process.signal("INT");
        assert_eq!(self.process.wait(TIME_MAX), Some(0));
    }
}

pub fn writes(path: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"here\\n\"\n")
}

pub fn outcome(client: &EngineClient) -> RunOutcome {
    let began = std::time::Instant::now();
    loop {
        let view = client.run_now(RunNowAsked::default()).expect("a run");
        if let Some(outcome) = view.outcome {
            return *outcome;
        }
        assert!(began.elapsed() < TIME_MAX, "{view:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn commands_go_through_the_server_and_have_no_other_way() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    scratch.task("Lands", &writes("b.txt"), &[]);
    assert_eq!(served.count("add"), 1, "it was asked by HTTP, not done beside it");
    scratch.landfall(&["list"]).ok();
    scratch.landfall(&["status"]).ok();
    scratch.landfall(&["edit", "T1", "--priority", "2"]).ok();
    assert_eq!(served.count("list"), 1);
    assert_eq!(served.count("edit"), 1);
    assert!(served.count("status") >= 1);
    // A run is followed to its end, in the server.
    let ran = scratch.landfall(&["--json", "run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let outcome: RunOutcome = serde_json::from_str(&ran.out).expect("an outcome");
    assert_eq!((outcome.ended, outcome.tasks[0].status), (RunEnded::Finished, Status::Done));
    assert_eq!(served.count("run_start"), 1);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "here");
    // The same for one that does not end well.
    scratch.task("Stuck", "signal = \"blocked:no key\"\n", &[]);
    let ran = scratch.landfall(&["run"]);
    assert_eq!(ran.code, Some(8), "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("no key"), "{}", ran.out);
    served.end();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn nobody_is_shown_less_than_what_was_written_by_any_face() {
    const FACES: [&str; 5] = ["/api/v1/status", "/api/v1/board", "/api/v1/tasks", "/api/v1/tasks/T1", "/"];
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    scratch.landfall(&["add", "The first"]).ok();
    let json = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", served.token);
    for round in 1..=25 {
        // Whoever looked just before has an answer that would still do for others.
        for face in FACES.iter().chain(&FACES) {
            assert_eq!(served.get(face).0, 200, "{face}");
        }
        let title = format!("Written in round {round}");
        let body = format!("{{\"title\":\"{title}\"}}");
        let (status, said) = if round % 2 == 0 {
            served.ask("PATCH", "/api/v1/tasks/T1", &json, &body)
        } else {
            (200, scratch.landfall(&["edit", "T1", "--title", &title]).ok())
        };
        assert_eq!(status, 200, "{said}");
        for face in &FACES[1..] {
            let (_, shown) = served.get(face);
            assert!(shown.contains(&title), "{face} shows no `{title}`");
        }
        let added = format!("{{\"tasks\":[{{\"title\":\"Number {round}\"}}]}}");
        assert_eq!(served.ask("POST", "/api/v1/tasks", &json, &added).0, 200);
        let counted: Value = serde_json::from_str(&served.get(FACES[0]).1).expect("JSON");
        assert_eq!(counted["counts"]["ready"], round + 1, "{counted}");
        assert!(scratch.landfall(&["list"]).ok().contains(&format!("Number {round}")));
    }
    served.end();
}

#[test]
fn a_run_that_a_program_starts_lands_and_the_stream_tells_of_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    let client = served.client();
    let mut stream = TcpStream::connect(served.at).expect("it listens");
    stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
    let head = format!(
        "GET /api/v1/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        served.at, served.token
    );
    stream.write_all(head.as_bytes()).expect("sent");
    scratch.task("Lands", &writes("b.txt"), &[]);
    assert_eq!(client.run_now(RunNowAsked::default()).expect_err("none yet").code.word(), "not-now");
    let (status, body) = served.ask(
        "POST",
        "/api/v1/runs",
        &format!(
            "Authorization: Bearer {}\r\nContent-Type: application/json\r\nIdempotency-Key: k1\r\n",
            served.token
        ),
        "{}",
    );
    assert_eq!(status, 200, "{body}");
    let again = client.run_start(RunAsked::default()).expect_err("one at a time");
    assert_eq!(again.code.word(), "not-now");
    let outcome = outcome(&client);
    assert_eq!((outcome.ended, outcome.tasks[0].status), (RunEnded::Finished, Status::Done));
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "here");
    let mut places = Vec::new();
    let mut landed = false;
    for line in BufReader::new(stream).lines() {
        let line = line.expect("the stream goes on until it was told");
        if let Some(place) = line.strip_prefix("id: ") {
            places.push(place.parse::<u64>().expect("a number"));
        }
        landed |= line.contains("\"kind\":\"landed\"");
        if line.contains("\"kind\":\"run-ended\"") {
            break;
        }
    }
    assert!(landed);
    let expected: Vec<u64> = (places[0]..places[0] + places.len() as u64).collect();
    assert_eq!(places, expected, "every fact once, in order");
    served.end();
}

#[test]
fn a_second_server_is_refused_and_told_who_holds_the_project() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    let second = scratch.landfall(&["serve", "--listen", "127.0.0.1:0"]);
    assert_ne!(second.code, Some(0), "{}", second.out);
    assert!(
        second.err.contains("landfall serve") && second.err.contains(&served.process.pid().to_string()),
        "{}",
        second.err
    );
    // Nor is its address taken twice.
    let other = ScratchProject::new(LANDFALL);
    let taken = other.landfall(&["serve", "--listen", &served.at.to_string()]);
    assert!(taken.code != Some(0) && taken.err.contains("127.0.0.1:0"), "{}", taken.err);
    served.end();
}

/// A child of a killed server may hold its lock until it has become another program.
#[test]
fn a_lock_that_outlives_its_killed_holder_for_a_moment_is_waited_for() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut served = Served::start(&scratch, &[]);
    let path = scratch.state().join("engine.lock");
    let lock = std::fs::File::open(&path).expect("the lock of the project");
    served.process.kill();
    scratch.eventually("the lock is ours", || lock.try_lock().is_ok());
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("a watch");
    inotify::add_watch(&inotify, &path, WatchFlags::CLOSE_WRITE).expect("the file is there");
    std::thread::scope(|scope| {
        let next = scope.spawn(|| Served::start(&scratch, &[]));
        // Each try opens and closes the file; one that does not wait tries once.
        let mut tries = 0;
        scratch.eventually("it tries again", || {
            tries += usize::from(rustix::io::read(&inotify, &mut [0; 4096]).is_ok());
            tries >= 2
        });
        drop(lock);
        next.join().expect("it starts once the lock is free").end();
    });
}

fn behaviour_14_a_killed_server_loses_nothing_and_the_next_one_adopts_its_agents(style: Style) {
    let scratch = style.scratch();
    let count = open(&scratch).join("runs");
    let hold = HoldFile::new(&scratch, "slow");
    let script = format!(
        "run = [\"sh\", \"-c\", \"echo one >> {}; {}\"]\n{}",
        count.display(),
        hold.shell(),
        writes("b.txt")
    );
    scratch.task("Slow", &style.script(&script), &[]);
    let mut served = Served::start(&scratch, &["--run"]);
    scratch.eventually("the agent is at work", || count.exists());
    served.process.kill();
    let next = Served::start(&scratch, &["--run"]);
    assert_eq!(next.token, served.token, "the token is the same");
    hold.release();
    let outcome = outcome(&next.client());
    assert_eq!(outcome.tasks[0].status, Status::Done, "{outcome:?}");
    let runs = std::fs::read_to_string(&count).expect("the agent ran");
    assert_eq!(runs, "one\n", "it was adopted, not run again");
    assert_eq!(scratch.facts("T1", "iteration-ended").len(), 1);
    next.end();
    assert_eq!(scratch.left_behind(), []);
}
in_styles!(behaviour_14_a_killed_server_loses_nothing_and_the_next_one_adopts_its_agents: fresh, session);

#[test]
fn an_interrupt_finishes_what_is_under_way_and_a_second_one_stops_now() {
    for interrupts in [1, 2] {
        let scratch = ScratchProject::new(LANDFALL);
        let hold = HoldFile::new(&scratch, "slow");
        scratch.task("Slow", &format!("{}signal = \"progress:10\"\n", hold.line()), &[]);
        let mut served = Served::start(&scratch, &["--run"]);
        scratch.eventually("the agent is at work", || scratch.why("T1").contains("iteration 1"));
        served.process.signal("INT");
        let says = |words: &str| {
            let log = scratch.root().join("started.log");
            scratch.eventually(words, || std::fs::read_to_string(&log).unwrap_or_default().contains(words));
        };
        says("finishing the iterations under way");
        if interrupts == 1 {
            hold.release();
        } else {
            served.process.signal("INT");
            says("stopping the agents");
        }
        assert_eq!(served.process.wait(TIME_MAX), Some(0));
        assert_ne!(scratch.status("T1"), "failed", "nothing is lost: {}", scratch.why("T1"));
        let ended = scratch.facts("T1", "iteration-ended").len();
        assert_eq!(ended, 1, "the iteration was {}", if interrupts == 1 { "finished" } else { "stopped" });
        assert_eq!(scratch.left_behind(), []);
    }
}

#[test]
fn settings_that_were_edited_count_from_the_next_run_on() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    scratch.task("First", &writes("b.txt"), &[]);
    scratch.landfall(&["run"]).ok();
    let settings = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("settings");
    scratch.settings(&format!(
        "{settings}\n[run]\niterations_max = 1\n[[verify.command]]\nname = \"never\"\nrun = \"false\"\n"
    ));
    scratch.task("Second", &writes("c.txt"), &[]);
    let second = scratch.landfall(&["run"]);
    let said = format!("{}{}", second.out, second.err);
    assert!(
        second.code != Some(0) && said.contains("`never`"),
        "no agent starts under the new check: {said}"
    );
    // Broken ones are told, and the server goes on.
    scratch.settings(&format!("{settings}\n[run]\nslotz = 1\n"));
    let broken = scratch.landfall(&["run"]);
    assert!(broken.code != Some(0) && broken.err.contains("slotz"), "{}", broken.err);
    scratch.settings(&settings);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:c.txt"]), "here");
    served.end();
}

/// Every file below `folder` with this text in it.
fn files_with(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            files_with(&path, text, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn a4_the_token_is_in_its_file_and_nowhere_else() {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "slow");
    let slow = format!("{}{}", hold.line(), writes("b.txt"));
    scratch.task("Slow", &slow, &[]);
    let served = Served::start(&scratch, &["--run"]);
    scratch.eventually("the agent is at work", || scratch.why("T1").contains("iteration 1"));
    // While the server, a sitter and an agent are at work.
    let looked = || {
        let mut seen = 0;
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            for file in ["cmdline", "environ"] {
                let text = std::fs::read(entry.path().join(file)).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                seen += usize::from(text.contains(&scratch.root().display().to_string()));
                assert!(!text.contains(&served.token), "{} of {}", file, entry.path().display());
            }
        }
        seen
    };
    scratch.eventually("the processes of the test are looked at", || looked() >= 3);
    hold.release();
    served.get(&format!("/api/v1/status?token={}", "f".repeat(64)));
    outcome(&served.client());
    let mut found = Vec::new();
    files_with(scratch.root(), &served.token, &mut found);
    let file = std::fs::read_dir(scratch.state())
        .expect("the state")
        .flatten()
        .map(|it| it.path().join("token"))
        .chain([scratch.state().join("token")])
        .find(|it| it.exists())
        .expect("a token");
    assert_eq!(found, [file.display().to_string()]);
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    served.end();
}

#[test]
fn a5_a_confined_agent_reaches_neither_token_nor_socket_nor_port() {
    let scratch = ScratchProject::new(LANDFALL);
    let marks = open(&scratch).join("marks");
    let settings = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("settings");
    scratch.settings(&settings.replacen("[run]\n", "[run]\nsandbox = \"strict\"\niterations_max = 1\n", 1));
    let served = Served::start(&scratch, &[]);
    scratch.file(
        "tries.sh",
        &format!(
            "try() {{ name=$1; shift; if \"$@\" >/dev/null 2>&1; then echo \"$name: yes\"; else echo \"$name: no\"; fi >> {marks}; }}\n\
             try control true\n\
             try token sh -c 'cat {state}/token {state}/*/token'\n\
             try sessions sh -c 'cat {state}/sessions.json {state}/*/sessions.json'\n\
             try port bash -c 'exec 3<>/dev/tcp/{host}/{port}'\n\
             try socket sh -c 'cd {project}; LANDFALL_STATE={state} {LANDFALL} list | grep Tries'\n\
             try steer sh -c 'cd {project}; LANDFALL_STATE={state} {LANDFALL} cancel T1'\n\
             try serve sh -c 'cd {project}; LANDFALL_STATE={state} {LANDFALL} token'\n",
            marks = marks.display(),
            state = scratch.state().display(),
            project = scratch.project().display(),
            host = served.at.ip(),
            port = served.at.port(),
        ),
    );
    scratch.commit("tries");
    // The same from outside: each of them works there, so the answers below mean something.
    let outside = std::process::Command::new("bash")
        .args(["-c", &format!("exec 3<>/dev/tcp/{}/{}", served.at.ip(), served.at.port())])
        .status()
        .expect("bash");
    assert!(outside.success());
    scratch.task("Tries", "run = [\"sh\", \"tries.sh\"]\nsignal = \"blocked:enough\"\n", &[]);
    scratch.landfall(&["run"]);
    let said = std::fs::read_to_string(&marks).expect("it tried");
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        ["control: yes", "token: no", "sessions: no", "port: no", "socket: no", "steer: no", "serve: no"]
    );
    served.end();
}

#[test]
fn only_this_machine_is_served_unless_it_is_said() {
    let scratch = ScratchProject::new(LANDFALL);
    for address in ["0.0.0.0:0", "[::]:0", "nonsense", "127.0.0.1", "127.0.0.1:99999"] {
        let said = scratch.landfall(&["serve", "--listen", address]);
        assert_eq!(said.code, Some(2), "{address}: {}", said.err);
        assert!(
            address.starts_with('n') || address.starts_with('1') || said.err.contains("--bind"),
            "{}",
            said.err
        );
    }
    let served = Served::start(&scratch, &["--bind", "127.0.0.1:0", "--host", "build-box:7878"]);
    let log = std::fs::read_to_string(scratch.root().join("started.log")).expect("a log");
    let first: Value = log.lines().find_map(|line| serde_json::from_str(line).ok()).expect("where it is");
    assert_eq!(first["addresses"].as_array().map(Vec::len), Some(2), "{first}");
    assert!(first["links"].to_string().contains("http://build-box:7878/pair/"), "{first}");
    assert!(first["links"][0].as_str().is_some_and(|it| it.contains(".localhost:")), "{first}");
    let (status, _) = served.get("/login");
    assert_eq!(status, 200);
    served.end();
}

#[test]
fn a7_outputs_are_read_by_their_names_and_from_plain_files_alone() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Says", &format!("say = \"hello\"\n{}", writes("b.txt")), &[]);
    let served = Served::start(&scratch, &["--run"]);
    let client = served.client();
    outcome(&client);
    let list = client.outputs(TaskAsked { task: WireTaskId(1) }).expect("outputs");
    let key = list.outputs.first().expect("the agent's").key.clone();
    let page = |key: &str| {
        let of = OutputOf {
            task: WireTaskId(1),
            key: Some(key.to_owned()),
            attempt: None,
            iteration: None,
            check: None,
            stderr: false,
        };
        client.output(OutputAsked {
            of,
            at: None,
            backward: false,
            lines: 0,
            search: String::new(),
            levels: Vec::new(),
            raw: true,
        })
    };
    assert!(format!("{:?}", page(&key).expect("a page")).contains("hello"));
    let token = served.token.as_str();
    let names = [
        "..",
        ".",
        "/",
        "../token",
        "../../token",
        "/etc/passwd",
        "token",
        "T1-1/../../token",
        "T1-1/out.log",
        "..%2ftoken",
        "\0",
        "T1-1\0",
        "CON",
        "a\u{202e}b",
        "．．/token",
        "..\\token",
        "~",
        "T2-1",
        "",
        " ",
        "-",
        "T1-",
        "engine.sock",
    ];
    let long = [
        "x".repeat(5000),
        "../".repeat(500) + "etc/passwd",
        format!("{key}/."),
        format!("{key}/"),
        format!("./{key}"),
    ];
    for name in names.iter().map(|it| (*it).to_owned()).chain(long) {
        let problem = page(&name).expect_err(&name);
        assert!(!format!("{problem:?}").contains(token), "{name:?}");
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (status, body) = served.get(&format!("/api/v1/tasks/T1/output/bytes?key={escaped}"));
        assert!((400..500).contains(&status) && !body.contains(token), "{name:?}: {status} {body}");
    }
    // The file is exchanged for something else: it is not followed, and not waited for.
    let mut found = Vec::new();
    files_with(&scratch.state(), "hello", &mut found);
    let file = found.into_iter().find(|it| it.ends_with("out.log")).expect("the file of the output");
    let secret = scratch.root().join("secret");
    std::fs::write(&secret, "canary of a secret\n").expect("ours");
    let exchange = |make: &dyn Fn(&Path)| {
        std::fs::remove_file(&file).expect("ours");
        make(Path::new(&file));
        let said = page(&key);
        assert!(!format!("{said:?}").contains("canary"), "{said:?}");
    };
    exchange(&|path| std::os::unix::fs::symlink(&secret, path).expect("a link"));
    exchange(&|path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(made.success());
    });
    exchange(&|path| std::os::unix::fs::symlink("/dev/zero", path).expect("a link"));
    assert!(client.status(Nothing {}).is_ok(), "the server goes on");
    served.end();
}

#[test]
fn a_program_makes_follows_verifies_and_closes_an_issue_by_the_api_alone() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    let client = served.client();
    let body = format!(
        "{}- [ ] <!-- verify-type: opportunistic --> people like it\n{}",
        there("done.txt"),
        script(&[works("code", "done.txt", "\"complete\"")])
    );
    let labels = vec!["triaged".to_owned()];
    let new = IssueNew {
        title: "By the API".to_owned(),
        body,
        labels,
        size: Some(Size::XS),
        parent: None,
        blocked_by: Vec::new(),
    };
    let issue = IssueNumber(client.issue_new(new).expect("it is made").issue.number);
    assert_eq!(client.issue_list(IssuesAsked::default()).expect("a list").issues.len(), 1);
    let follow = IssuesFollow { issues: vec![issue.0], ..IssuesFollow::default() };
    let preview = client.issues_preview(follow.clone()).expect("a preview");
    assert_eq!(preview.issues.len(), 1, "{preview:?}");
    let refused = client.issue_show(IssueAsked { issue: IssueNumber(99) }).expect_err("there is none");
    assert_eq!(refused.code, ProblemCode::NotFound);

    client.issues_follow(follow).expect("it is followed");
    client.run_start(RunAsked::default()).expect("a run begins");
    let tasks = vec![WireTaskId(1)];
    let stand = || {
        let asked = IssueSummariesAsked { tasks: tasks.clone() };
        client.issue_summaries(asked).expect("readable").issues.first().map(|issue| issue.stand)
    };
    scratch.eventually("it lands, and waits for a person", || {
        stand() == Some(landfall_api::IssueStanding::Partial)
    });
    let phase = "code-patch".to_owned();
    let complete = ReconcileAsked { issue, phase, pr: None, begin: false };
    assert!(client.reconcile(complete).expect("it can be looked at").matches_expected);

    client.issue_say(IssueSay { issue, text: "I like it.".to_owned() }).expect("it is said");
    client
        .issue_tick(IssueTick { issue, named: "people like".to_owned(), open: false })
        .expect("it is ticked");
    let verify =
        VerifyAsked { issue, pr: None, full: false, allow_localhost: false, dry_run: false, judge: None };
    let seen = client.issue_verify(verify).expect("it is verified");
    assert_eq!(seen.outcome, "done", "{seen:?}");
    let shown = client.issue_show(IssueAsked { issue }).expect("it is shown");
    assert_eq!(shown.issue.state, IssueState::Done);
    assert!(shown.comments.iter().any(|it| it.body.contains("I like it.")), "{:?}", shown.comments);
    client.issue_reopen(IssueAsked { issue }).expect("it is opened again");
    let closed = client.issue_close(IssueClose { issue, not_planned: true }).expect("it is closed");
    assert_eq!(closed.issue.state, IssueState::NotPlanned);
    let wrong = served.post("/api/v1/issues/0/close", "{}");
    assert!(wrong.0 == 422 && wrong.1.contains("the number of an issue"), "{wrong:?}");
}
