//! The socket of an engine: who may use the file, and what a client makes of those who listen there. What an engine
//! answers is tested with the server.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::thread;

use landfall_api::client::{ConnectError, EngineClient};
use landfall_api::socket;

#[test]
fn the_socket_is_for_its_owner_alone_and_replaces_a_dead_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("engine.sock");
    drop(socket::bind_socket(&path).expect("bind"));
    assert!(matches!(EngineClient::connect(&path), Err(ConnectError::Nobody(_))), "nobody listens any more");
    let _listener = socket::bind_socket(&path).expect("bind again");
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let file = folder.path().join("a-file");
    std::fs::write(&file, "kept").expect("write");
    assert!(socket::bind_socket(&file).is_err(), "something else in its place is not replaced");
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "kept");
}

/// What a client says to something that answers its greeting with this.
fn greeted_with(answer: &'static str) -> ConnectError {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("engine.sock");
    let listener = socket::bind_socket(&path).expect("bind");
    let greeter = thread::spawn(move || {
        let (mut stream, _) = listener.listener.accept().expect("a client");
        let mut asked = [0; 1024];
        let length = stream.read(&mut asked).expect("a greeting");
        assert!(asked[..length].starts_with(b"GET /api/v1/hello HTTP/1.1\r\n"));
        stream.write_all(answer.as_bytes()).expect("greet");
    });
    let error = EngineClient::connect(&path).expect_err("no engine of ours");
    greeter.join().expect("greeted");
    error
}

#[test]
fn an_engine_of_another_version_is_named() {
    let error = greeted_with(
        "HTTP/1.1 200 OK\r\nlandfall-wire: 9\r\nlandfall-version: 9.0.0\r\nlandfall-pid: 42\r\ncontent-length: 2\r\n\r\n{}",
    );
    assert_eq!(
        error.to_string(),
        "the engine (version 9.0.0, process 42) speaks version 9 of the wire, not 1"
    );
}

#[test]
fn what_is_no_engine_is_not_taken_for_one() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "220 mail.example.invalid ESMTP\r\n",
        "",
        "HTTP/1.1 200 OK\r\nlandfall-wire: 1\r\ncontent-length: 20\r\n\r\n{}",
    ] {
        let error = greeted_with(answer);
        assert!(matches!(error, ConnectError::Broken { .. }), "{answer:?}: {error:?}");
    }
}

#[test]
fn an_engine_from_before_there_were_keys_is_asked_without_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("engine.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bind");
    let greeter = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut asked = [0; 1024];
        let length = stream.read(&mut asked).expect("a greeting");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nlandfall-wire: 1\r\nlandfall-version: 0.0.1\r\ncontent-length: 2\r\n\r\n{}")
            .expect("greet");
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    let client = EngineClient::connect(&path).expect("it is an engine of ours");
    assert_eq!(client.engine().engine, "0.0.1");
    assert!(!greeter.join().expect("greeted").contains("landfall-key"));
}

#[test]
fn the_key_is_new_with_every_engine_and_shown_by_nobody() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("engine.sock");
    let first = socket::bind_socket(&path).expect("bind").key;
    let second = socket::bind_socket(&path).expect("bind again").key;
    assert_ne!(first.expose(), second.expose());
    assert!(second.matches(second.expose().as_bytes()) && !second.matches(first.expose().as_bytes()));
    assert!(!second.matches(b"") && !second.matches(&second.expose().as_bytes()[1..]));
    let file = landfall_api::SocketKey::key_path(&path);
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(!format!("{second:?}").contains(second.expose()));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("ours").flatten().map(|it| it.file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left beside them: {left:?}");
}
