//! The socket: the same operations for processes of the same user, by the client that the commands use.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use landfall_api::client::{ConnectError, EngineAddress, EngineClient};
use landfall_api::{
    NewTask, NewTasks, Nothing, ProblemCode, Request, StopAsked, TaskAsked, TypedService as _, WireTaskId,
};

use crate::support::{Answer, Place, until};

fn raw(place: &Place, head: &str) -> Answer {
    raw_on(UnixStream::connect(place.socket()).expect("somebody listens"), head)
}

fn raw_on(mut stream: UnixStream, head: &str) -> Answer {
    stream.set_read_timeout(Some(crate::support::TIME_MAX)).expect("a timeout");
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("an answer");
    Answer::read(&said).expect("an answer")
}

/// The key of the engine, as it is in its file.
fn key(place: &Place) -> String {
    let path = place.folder.path().join("engine.key");
    std::fs::read_to_string(path).expect("the engine made one").trim_end().to_owned()
}

const STATUS: &str = "GET /api/v1/status HTTP/1.1\r\nHost: landfall\r\n";

#[test]
fn many_requests_of_one_client_are_answered_in_turn() {
    let place = Place::new();
    let client = EngineClient::connect(&place.socket()).expect("connect");
    assert_eq!(client.engine().pid, std::process::id());
    for _ in 0..10 {
        assert!(client.runs(Nothing {}).is_ok());
        assert!(client.show(TaskAsked { task: WireTaskId(3) }).is_ok());
        let problem =
            client.session_revoke(landfall_api::SessionOf { session: "x".to_owned() }).expect_err("nobody");
        assert_eq!(problem.code, ProblemCode::NotFound);
        assert_eq!(problem.hint.as_deref(), Some("`landfall project sessions` lists them"));
    }
    let asked = place.toy.asked();
    assert_eq!(asked.len(), 20, "{asked:?}");
    assert_eq!(asked[1], Request::Show(TaskAsked { task: WireTaskId(3) }), "the words arrive");
}

#[test]
fn the_same_client_comes_by_the_address_with_the_token() {
    let place = Place::new();
    let reach = |token: &str| {
        EngineClient::connect_to(EngineAddress::Server {
            at: place.at,
            host: place.host(),
            token: token.to_owned(),
        })
    };
    assert!(reach(&place.token).expect("let in").status(Nothing {}).is_ok());
    match reach("wrong") {
        Err(ConnectError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Unauthorized),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_backlog_fits_and_a_flood_does_not() {
    let place = Place::new();
    let client = EngineClient::connect(&place.socket()).expect("connect");
    let tasks = |count: usize| NewTasks {
        tasks: (0..count)
            .map(|_| NewTask { title: "t".repeat(60), body: "b".repeat(400), ..NewTask::default() })
            .collect(),
    };
    assert!(client.add(tasks(10_000)).is_ok());
    assert_eq!(client.add(tasks(20_000)).expect_err("too long").code, ProblemCode::TooLarge);
    assert!(client.runs(Nothing {}).is_ok(), "the line is still good");
}

#[test]
fn requests_for_others_of_other_versions_and_by_agents_are_refused() {
    let place = Place::new();
    let status = format!("GET /api/v1/status HTTP/1.1\r\nlandfall-key: {}\r\n", key(&place));
    assert_eq!(raw(&place, &format!("{status}Host: landfall\r\n")).status, 200);
    assert_eq!(raw(&place, &format!("{status}Host: {}\r\n", place.at)).status, 421);
    let newer = raw(&place, &format!("{status}Host: landfall\r\nlandfall-wire: 9\r\n"));
    assert_eq!((newer.status, newer.code().as_str()), (422, "bad-input"));
    assert!(newer.body.contains("this engine speaks 1"), "{newer:?}");
    *place.toy.shut.lock().expect("no panic while it is held") = true;
    place.toy.asked();
    let answer = raw(&place, &format!("{status}Host: landfall\r\n"));
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"));
    assert_eq!(place.toy.asked(), []);
}

#[test]
fn stopping_lets_a_request_under_way_end_and_does_not_wait_for_ever() {
    let mut place = Place::new();
    *place.toy.takes.lock().expect("no panic while it is held") = Duration::from_millis(500);
    let client = EngineClient::connect(&place.socket()).expect("connect");
    // Somebody who began to ask and never goes on, and somebody who watches.
    let _slow = place.ask("POST", "/api/v1/stop").with("Content-Length", "10").open();
    let _stream = place.owner("GET", "/api/v1/events").open();
    let asked = thread::spawn(move || {
        let answer = client.stop(StopAsked { task: None, now: true });
        (answer, client)
    });
    until("it is under way", || place.toy.asked().iter().any(|it| matches!(it, Request::Stop(_))));
    let began = std::time::Instant::now();
    place.stop();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let (answer, client) = asked.join().expect("no panic");
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(client.runs(Nothing {}).expect_err("it has hung up").code, ProblemCode::Internal);
}

#[test]
fn only_the_key_of_this_very_engine_makes_one_the_user() {
    let mut place = Place::new();
    let old = key(&place);
    place.start();
    let key = key(&place);
    assert_ne!(old, key, "each engine has its own");
    let half = &key[..key.len() / 2];
    let upper = key.to_uppercase();
    let wrong = ["", "0", &"0".repeat(64), &old, half, &format!("{key}0"), &upper[..], &"0".repeat(10_000)];
    place.toy.asked();
    let heads = wrong.iter().filter(|it| **it != key).map(|it| format!("{STATUS}landfall-key: {it}\r\n"));
    let twice = format!("{STATUS}landfall-key: {key}\r\nlandfall-key: {key}\r\n");
    let token = format!("{STATUS}Authorization: Bearer {}\r\n", place.token);
    for head in heads.chain([STATUS.to_owned(), twice, token]) {
        let answer = raw(&place, &head);
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{head}");
        assert!(answer.value()["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer:?}");
        assert!(!format!("{answer:?}").contains(&key), "the key is never told");
    }
    assert_eq!(place.toy.asked(), [], "nothing of it reached the project");
    assert_eq!(raw(&place, &format!("{STATUS}landfall-key: {key}\r\n")).status, 200);
    // The key opens the socket and nothing else.
    let answer = place.ask("GET", "/api/v1/status").with("landfall-key", &key).send();
    assert_eq!(answer.status, 401);
    let answer = place.ask("GET", "/api/v1/status").with("Authorization", &format!("Bearer {key}")).send();
    assert_eq!(answer.status, 401);
}

#[test]
fn a_key_file_that_others_could_have_made_or_read_is_refused_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let path = place.folder.path().join("engine.key");
    let good = std::fs::read(&path).expect("ours");
    let write = |bytes: &[u8], mode: u32| {
        let _ = std::fs::remove_file(&path); // there may be none
        std::fs::write(&path, bytes).expect("ours");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    let refused = |how: &str| match EngineClient::connect(&place.socket()) {
        Err(ConnectError::Refused(problem)) => {
            assert_eq!(problem.code, ProblemCode::Unauthorized, "{how}");
            let text = format!("{problem:?}");
            assert!(!text.contains(std::str::from_utf8(&good).expect("text").trim_end()), "{how}: {text}");
            assert!(problem.hint.is_some(), "{how}");
        }
        other => panic!("{how}: {other:?}"),
    };
    for mode in [0o644, 0o640, 0o606] {
        write(&good, mode);
        refused(&format!("mode {mode:o}"));
    }
    for (how, bytes) in
        [("empty", &b""[..]), ("short", b"12"), ("no key", b"not a key"), ("binary", &[0xff; 64])]
    {
        write(bytes, 0o600);
        refused(how);
    }
    write(&"0".repeat(64).into_bytes(), 0o600);
    refused("another key");
    let aside = place.folder.path().join("aside");
    std::fs::rename(&path, &aside).expect("ours");
    std::fs::write(&aside, &good).expect("ours");
    refused("none at all, as with an engine that made none");
    std::os::unix::fs::symlink(&aside, &path).expect("ours");
    refused("a link to the right one");
    // An engine that starts replaces the link and leaves alone what it leads to.
    drop(landfall_api::socket::bind_socket(&place.folder.path().join("other.sock")).expect("bound"));
    drop(landfall_api::SocketKey::create(&place.socket()).expect("made"));
    assert!(!std::fs::symlink_metadata(&path).expect("there").is_symlink());
    assert_eq!(std::fs::read(&aside).expect("ours"), good);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    write(&good, 0o600);
    assert!(EngineClient::connect(&place.socket()).is_ok(), "the right one is still the right one");
}

/// Connects in a process of its own, which ends and leaves its connection to us.
fn connected_by_another(place: &Place) -> UnixStream {
    use std::os::fd::AsFd as _;
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    // The program of this test once more, with an end of the pair as its stdin.
    let mut child = std::process::Command::new(std::env::current_exe().expect("we run"))
        .args(["--exact", "socket::connects_for_another", "--nocapture"])
        .env("LANDFALL_TEST_SOCKET", place.socket())
        .stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("runs");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = rustix::net::RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        ours.as_fd(),
        &mut [std::io::IoSliceMut::new(&mut byte)],
        &mut ancillary,
        rustix::net::RecvFlags::empty(),
    )
    .expect("it sends one");
    let mut found = ancillary.drain().filter_map(|message| match message {
        rustix::net::RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let connection = UnixStream::from(found.next().expect("a connection"));
    drop(ours); // the word that it may end
    assert!(child.wait().expect("ours").success());
    connection
}

/// Not a test of its own: connects, hands its connection to another process, and ends when that one has it.
#[test]
fn connects_for_another() {
    use std::os::fd::AsFd as _;
    let Some(socket) = std::env::var_os("LANDFALL_TEST_SOCKET") else { return };
    let connection = UnixStream::connect(socket).expect("somebody listens");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
    let files = [connection.as_fd()];
    assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&files)));
    rustix::net::sendmsg(
        std::io::stdin().as_fd(),
        &[std::io::IoSlice::new(b".")],
        &mut ancillary,
        rustix::net::SendFlags::empty(),
    )
    .expect("sent");
    let _ = std::io::stdin().read(&mut [0]); // until the other end is closed
}

#[test]
fn a_connection_that_was_handed_on_is_worth_nothing() {
    let place = Place::new();
    let key = key(&place);
    place.toy.asked();
    // Without the key, and even with it: whoever connected has ended, and its id may be another's by now.
    for header in [String::new(), format!("landfall-key: {key}\r\n")] {
        let mut stream = connected_by_another(&place);
        stream.set_read_timeout(Some(crate::support::TIME_MAX)).expect("a timeout");
        // It is hung up on at once if it ended before it was let in.
        drop(stream.write_all(format!("{STATUS}{header}Connection: close\r\n\r\n").as_bytes()));
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said); // a reset ends it too
        assert!(Answer::read(&said).is_none_or(|answer| answer.status == 401), "{said:?}");
    }
    assert_eq!(place.toy.asked(), []);
    // Ours, handed to somebody without the key.
    let ours = UnixStream::connect(place.socket()).expect("somebody listens");
    assert_eq!(raw_on(ours, STATUS).status, 401);
}

#[test]
fn whoever_opens_many_connections_does_not_keep_the_user_out() {
    let place = Place::new();
    let kept = EngineClient::connect(&place.socket()).expect("connect");
    let silent: Vec<UnixStream> = (0..400).filter_map(|_| UnixStream::connect(place.socket()).ok()).collect();
    assert!(silent.len() > 100, "{}", silent.len());
    for _ in 0..5 {
        let client = EngineClient::connect(&place.socket()).expect("there is room for the user");
        assert!(client.stop(StopAsked { task: None, now: false }).is_ok());
    }
    assert!(kept.runs(Nothing {}).is_ok(), "whoever has shown the key keeps their place");
    // An agent at work, which is told so, as often as it comes.
    *place.toy.shut.lock().expect("no panic while it is held") = true;
    let agents: Vec<UnixStream> = (0..400).filter_map(|_| UnixStream::connect(place.socket()).ok()).collect();
    assert!(agents.len() > 100, "{}", agents.len());
    let answer = raw(&place, &format!("{STATUS}landfall-key: {}\r\n", key(&place)));
    assert_eq!(answer.status, 403, "even one that got hold of the key");
    *place.toy.shut.lock().expect("no panic while it is held") = false;
    assert!(EngineClient::connect(&place.socket()).expect("there is room").status(Nothing {}).is_ok());
    drop((silent, agents));
}

#[test]
fn a_connection_that_gives_way_is_closed_before_anybody_knows_whose_it_is() {
    let place = Place::new();
    let stuck = place.toy.admitting.lock().expect("no panic while it is held");
    let mut oldest = UnixStream::connect(place.socket()).expect("connect");
    oldest.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let began = Instant::now();
    let newer: Vec<UnixStream> = (0..64).filter_map(|_| UnixStream::connect(place.socket()).ok()).collect();
    assert!(newer.len() > 32, "{}", newer.len());
    assert_eq!(oldest.read(&mut [0]).expect("it is closed"), 0);
    assert!(began.elapsed() < Duration::from_secs(9), "not only when finding out has taken too long");
    drop(stuck);
    assert!(EngineClient::connect(&place.socket()).expect("there is room").status(Nothing {}).is_ok());
}
