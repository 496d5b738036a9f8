//! Who is the user on the engine's socket: a process that can read the key in the state folder, and no agent.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::open_folder;

/// The variable that makes [`asks_the_engine`] a part of another test: the folder that both can write.
const MEETING: &str = "LANDFALL_TEST_MEETING";
/// No wait takes longer, even on a loaded machine.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Not a test of its own: what a process of an agent does, in a sandbox, when another test starts this program there.
/// It says that it is ready, waits for the word, and then asks the engine by its socket without any client of ours.
#[test]
fn asks_the_engine() {
    let Some(meeting) = std::env::var_os(MEETING).map(PathBuf::from) else { return };
    let socket = std::fs::read_to_string(meeting.join("socket")).expect("it is told where");
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    // Connected while its sitter lives, as well as afterwards.
    let early = UnixStream::connect(&socket);
    write_whole(&meeting, "ready", &format!("{} {parent}", std::process::id()));
    let began = Instant::now();
    while !meeting.join("go").exists() {
        assert!(began.elapsed() < WAIT_MAX, "nobody says go");
        std::thread::sleep(Duration::from_millis(5));
    }
    let key = std::fs::read_to_string(Path::new(&socket).with_extension("key"));
    let mut said = format!("key {}\n", if key.is_ok() { "read" } else { "hidden" });
    for header in ["".to_owned(), format!("landfall-key: {}\r\n", "0".repeat(64))] {
        said += &format!("late {}\n", ask(UnixStream::connect(&socket), &header));
    }
    said += &format!("early {}\n", ask(early, ""));
    write_whole(&meeting, "said", &said);
}

/// Written aside and moved into place, so that whoever waits for it reads all of it.
fn write_whole(meeting: &Path, name: &str, text: &str) {
    std::fs::write(meeting.join("aside"), text).expect("both can write there");
    std::fs::rename(meeting.join("aside"), meeting.join(name)).expect("both can write there");
}

/// The status of the answer; what went wrong, where there is none.
fn ask(stream: std::io::Result<UnixStream>, header: &str) -> String {
    let answer = stream.and_then(|mut stream| {
        stream.set_read_timeout(Some(WAIT_MAX))?;
        let head = "GET /api/v1/status HTTP/1.1\r\nHost: landfall\r\nConnection: close\r\n";
        stream.write_all(format!("{head}{header}\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    match answer {
        Ok(answer) => answer.split(' ').nth(1).unwrap_or("closed").to_owned(),
        Err(error) => format!("failed: {error}"),
    }
}

/// An agent's process that has left the tree of its sitter asks the engine. It forked twice and has no environment, so that
/// nothing but its sandbox says whose it is.
fn orphan_asks(settings: &str) -> String {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.set("LANDFALL_NO_CGROUP", "1");
    let meeting = open_folder(&scratch);
    std::fs::write(meeting.join("socket"), scratch.state().join("engine.sock").to_str().expect("plain"))
        .expect("ours");
    let program = std::env::current_exe().expect("we run");
    let name = "socket_identity::asks_the_engine";
    let asker = format!(
        "(setsid env -i {MEETING}={} {} --exact {name} --nocapture >/dev/null 2>&1 &) & sleep 100",
        meeting.display(),
        program.display()
    );
    scratch.more_settings(&format!("[run]\nsandbox_write = [\"~/open\"]\n{settings}\n"));
    scratch.task("Ask", &format!("run = [\"sh\", \"-c\", \"{asker}\"]\n"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent's process is there", || meeting.join("ready").exists());
    let ready = std::fs::read_to_string(meeting.join("ready")).expect("ours");
    let (asker, sitter) = ready.split_once(' ').expect("two numbers");
    // Its parents have ended, so it is the child of its sitter. A sitter cannot be ended from inside; the system may end it.
    let words = std::fs::read(format!("/proc/{sitter}/cmdline")).expect("its parent is there");
    assert!(words.split(|byte| *byte == 0).any(|word| word == b"sit"), "{words:?}");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(sitter.parse().expect("a number")).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("it is ours");
    let gone = || !Path::new(&format!("/proc/{asker}")).exists();
    scratch.eventually("the sitter is gone", || !Path::new(&format!("/proc/{sitter}/exe")).exists());
    write_whole(&meeting, "go", "");
    scratch.eventually("it has asked, or was ended", || meeting.join("said").exists() || gone());
    run.kill();
    std::fs::read_to_string(meeting.join("said")).unwrap_or_default()
}

#[track_caller]
fn check_refused(said: &str) {
    // An engine may find and end such a process before it can ask.
    for line in said.lines() {
        assert!(
            !line.ends_with(" 200") && line != "key read",
            "the engine takes an agent for the user: {said}"
        );
    }
}

#[test]
fn an_orphan_of_a_sandboxed_agent_is_not_the_user() {
    check_refused(&orphan_asks(""));
}

#[test]
fn an_orphan_of_a_strictly_sandboxed_agent_is_not_the_user() {
    check_refused(&orphan_asks("sandbox = \"strict\""));
}

/// The level at which an agent reaches the socket by its path. An engine may end the orphan before it asks, so this is tried
/// until it has asked.
#[test]
fn an_orphan_that_reaches_the_socket_is_not_the_user() {
    const TRIES: u32 = 5;
    for _ in 0..TRIES {
        let said = orphan_asks("sandbox = \"write\"");
        check_refused(&said);
        if !said.is_empty() {
            assert!(said.contains("key hidden"), "{said}");
            let statuses: Vec<&str> =
                said.lines().filter_map(|line| line.strip_prefix("late ")?.get(..3)).collect();
            assert!(
                statuses.len() == 2 && statuses.iter().all(|status| ["401", "403", "409"].contains(status)),
                "{said}"
            );
            return;
        }
    }
    panic!("the orphan was ended {TRIES} times before it could ask");
}

/// The variable that makes [`connects_for_another`] a part of another test: the socket of an engine.
const SOCKET: &str = "LANDFALL_TEST_ENGINE_SOCKET";

/// Not a test of its own: connects the socket on its stdin, which its parent has as well, and ends when its parent says so.
#[test]
fn connects_for_another() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let address = rustix::net::SocketAddrUnix::new(socket).expect("a short path");
    rustix::net::connect(std::io::stdin(), &address).expect("somebody listens");
    let ready = std::env::var_os(MEETING).map(PathBuf::from).expect("it is told where");
    std::fs::write(ready.join("connected"), "").expect("both can write there");
    let began = Instant::now();
    while !ready.join("end").exists() {
        assert!(began.elapsed() < WAIT_MAX, "nobody says that it may end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process with this number, which was another's; none if this machine does not let us choose.
fn process_with_id(id: u32) -> Option<std::process::Child> {
    const TRIES: u32 = 2_000; // others take numbers as well
    for _ in 0..TRIES {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()).ok()?;
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("runs");
        if child.id() == id {
            return Some(child);
        }
        let _ = (child.kill(), child.wait()); // ours
    }
    None
}

/// The status of the answer on a connection that stays open; none if it was closed.
fn ask_on(stream: &mut UnixStream, key: &str) -> Option<String> {
    let head = "GET /api/v1/hello HTTP/1.1\r\nHost: landfall\r\n";
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    stream.write_all(format!("{head}landfall-key: {key}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer).ok().filter(|length| *length > 0)?;
    String::from_utf8_lossy(&answer[..length]).split(' ').nth(1).map(str::to_owned)
}

#[test]
fn the_id_of_a_process_that_has_ended_is_worth_nothing_to_the_next_one() {
    let scratch = ScratchProject::new(LANDFALL);
    let socket = scratch.state().join("engine.sock");
    let mut served = scratch.start(&["serve", "--listen", "127.0.0.1:0"]);
    scratch.eventually("it listens", || UnixStream::connect(&socket).is_ok());
    let key = std::fs::read_to_string(socket.with_extension("key")).expect("the engine made one");
    let key = key.trim_end();
    let ours = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None)
        .expect("a socket");
    let mut child = std::process::Command::new(std::env::current_exe().expect("we run"))
        .args(["--exact", "socket_identity::connects_for_another", "--nocapture"])
        .env(SOCKET, &socket)
        .env(MEETING, scratch.root())
        .stdin(std::process::Stdio::from(ours.try_clone().expect("a descriptor")))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("runs");
    scratch.eventually("it has connected", || scratch.root().join("connected").exists());
    let mut stream = UnixStream::from(ours);
    assert_eq!(ask_on(&mut stream, key).as_deref(), Some("200"), "while it lives, and with the key");
    assert_eq!(ask_on(&mut stream, &"0".repeat(64)).as_deref(), Some("401"), "each request has to prove it");
    std::fs::write(scratch.root().join("end"), "").expect("ours");
    assert!(child.wait().expect("ours").success());
    match process_with_id(child.id()) {
        Some(mut other) => {
            let answer = ask_on(&mut stream, key);
            let _ = (other.kill(), other.wait()); // ours
            assert!(answer.is_none_or(|status| status == "401"), "another process has its id now");
        }
        None => landfall_testkit::skip_test("process ids cannot be chosen here"),
    }
    assert!(ask_on(&mut stream, key).is_none_or(|status| status == "401"), "it has ended");
    served.kill();
}
