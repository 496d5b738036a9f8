//! The socket: the same operations for processes of the same user, by the client that the commands use.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use landfall_api::client::{Address, Client, ConnectError};
use landfall_api::{
    Ask as _, NewTask, NewTasks, Nothing, ProblemCode, Request, StopAsked, TaskAsked, TaskId,
};

use crate::support::{Answer, Place, until};

fn raw(place: &Place, head: &str) -> Answer {
    let mut stream = UnixStream::connect(place.socket()).expect("somebody listens");
    stream.set_read_timeout(Some(crate::support::TIME_MAX)).expect("a timeout");
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("an answer");
    Answer::read(&said).expect("an answer")
}

#[test]
fn many_requests_of_one_client_are_answered_in_turn() {
    let place = Place::new();
    let client = Client::connect(&place.socket()).expect("connect");
    assert_eq!(client.engine().pid, std::process::id());
    for _ in 0..10 {
        assert!(client.runs(Nothing {}).is_ok());
        assert!(client.show(TaskAsked { task: TaskId(3) }).is_ok());
        let problem =
            client.session_revoke(landfall_api::SessionOf { session: "x".to_owned() }).expect_err("nobody");
        assert_eq!(problem.code, ProblemCode::NotFound);
        assert_eq!(problem.hint.as_deref(), Some("`landfall sessions` lists them"));
    }
    let asked = place.toy.asked();
    assert_eq!(asked.len(), 20, "{asked:?}");
    assert_eq!(asked[1], Request::Show(TaskAsked { task: TaskId(3) }), "the words arrive");
}

#[test]
fn the_same_client_comes_by_the_address_with_the_token() {
    let place = Place::new();
    let reach = |token: &str| {
        Client::reach(Address::Server { at: place.at, host: place.host(), token: token.to_owned() })
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
    let client = Client::connect(&place.socket()).expect("connect");
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
    let status = "GET /api/v1/status HTTP/1.1\r\n";
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
    let client = Client::connect(&place.socket()).expect("connect");
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
