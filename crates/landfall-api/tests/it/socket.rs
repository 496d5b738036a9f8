//! The socket with real clients and a real listener.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use landfall_api::socket::{self, CONNECTIONS_MAX, Client, ConnectError, Serving};
use landfall_api::{
    Ask, Blob, Diff, DiffAsked, Nothing, Problem, ProblemCode, Request, Response, RunList, Service, TaskId,
    VERSION,
};

#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
}

impl Service for Echo {
    fn call(&self, request: Request) -> Result<Response, Problem> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match request {
            Request::Runs(_) => Ok(Response::Runs(RunList { runs: Vec::new() })),
            Request::Diff(DiffAsked { task, .. }) => Ok(Response::Diff(Diff {
                task,
                from: "a".to_owned(),
                to: "b".to_owned(),
                diff: Blob::new(vec![0xff; 1 << 20]),
            })),
            other => Err(Problem::new(ProblemCode::NotNow, other.name()).hint("later")),
        }
    }
}

struct Place {
    folder: tempfile::TempDir,
    echo: Arc<Echo>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("temporary folder"), echo: Arc::default() }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    fn serve(&self) -> Serving {
        self.serve_on(&self.socket())
    }

    fn serve_on(&self, path: &Path) -> Serving {
        socket::serve(
            socket::bind(path).expect("bind"),
            Arc::clone(&self.echo) as Arc<dyn Service + Send + Sync>,
        )
        .expect("serve")
    }
}

#[test]
fn many_requests_of_one_client_are_answered_in_turn() {
    let place = Place::new();
    let _serving = place.serve();
    let client = Client::connect(&place.socket()).expect("connect");
    assert_eq!(client.engine().pid, std::process::id());
    for _ in 0..10 {
        assert_eq!(client.runs(Nothing {}), Ok(RunList { runs: Vec::new() }));
        let diff = client.diff(DiffAsked { task: TaskId(3), from: None }).expect("a diff");
        assert_eq!(diff.diff.bytes().expect("base64").len(), 1 << 20);
        let problem = client.status(Nothing {}).expect_err("a problem");
        assert_eq!((problem.code, problem.hint.as_deref()), (ProblemCode::NotNow, Some("later")));
    }
    assert_eq!(place.echo.calls.load(Ordering::SeqCst), 30);
}

#[test]
fn the_socket_is_for_its_owner_alone_and_replaces_a_dead_one() {
    let place = Place::new();
    drop(place.serve());
    assert!(
        matches!(Client::connect(&place.socket()), Err(ConnectError::Nobody(_))),
        "nobody listens any more"
    );
    let _serving = place.serve();
    let mode = std::fs::metadata(place.socket()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(Client::connect(&place.socket()).is_ok());

    let file = place.folder.path().join("a-file");
    std::fs::write(&file, "kept").expect("write");
    assert!(socket::bind(&file).is_err(), "something else in its place is not replaced");
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "kept");
}

#[test]
fn a_path_longer_than_an_address_works() {
    let place = Place::new();
    let deep = place.folder.path().join("d".repeat(200));
    std::fs::create_dir(&deep).expect("folder");
    let path = deep.join("engine.sock");
    let _serving = place.serve_on(&path);
    assert!(Client::connect(&path).expect("connect").runs(Nothing {}).is_ok());
    assert!(matches!(Client::connect(&deep.join("other.sock")), Err(ConnectError::Nobody(_))));
}

#[test]
fn clients_at_once_are_all_served_and_one_too_many_is_told() {
    let place = Place::new();
    let _serving = place.serve();
    let clients: Vec<Client> =
        (0..CONNECTIONS_MAX).map(|_| Client::connect(&place.socket()).expect("connect")).collect();
    let extra = Client::connect(&place.socket()).expect("greeted before it is told");
    assert_eq!(extra.runs(Nothing {}).expect_err("one too many").code, ProblemCode::EngineBusy);
    let start = Barrier::new(clients.len());
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                start.wait();
                assert!(client.runs(Nothing {}).is_ok());
            });
        }
    });
}

#[test]
fn garbage_and_other_versions_are_answered_with_a_problem() {
    let place = Place::new();
    let _serving = place.serve();
    let newer = format!("{{\"v\":{},\"request\":{{\"op\":\"dance\"}}}}\n", VERSION + 1);
    let cases: [(&[u8], &str); 4] = [
        (b"\xff\xfe\n", "cannot be understood"),
        (b"{\"v\":1}\n", "missing field `request`"),
        (b"{\"v\":1,\"request\":{\"op\":\"dance\",\"asked\":{}}}\n", "unknown variant `dance`"),
        (newer.as_bytes(), "this engine speaks 1"),
    ];
    for (sent, expected) in cases {
        let mut stream = UnixStream::connect(place.socket()).expect("connect");
        stream.write_all(sent).expect("write");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("read");
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("\"problem\""), "{said}");
    }
    assert_eq!(place.echo.calls.load(Ordering::SeqCst), 0);
}

#[test]
fn an_engine_of_another_version_is_named() {
    let place = Place::new();
    let listener = socket::bind(&place.socket()).expect("bind");
    let greeter = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(b"{\"v\":9,\"engine\":\"9.0.0\",\"pid\":42}\n").expect("greet");
    });
    let error = Client::connect(&place.socket()).expect_err("another version");
    assert_eq!(
        error.to_string(),
        "the engine (version 9.0.0, process 42) speaks version 9 of the wire, not 1"
    );
    greeter.join().expect("greeted");
}

#[test]
fn stopping_lets_a_request_under_way_end() {
    struct Slow(Barrier);
    impl Service for Slow {
        fn call(&self, _request: Request) -> Result<Response, Problem> {
            self.0.wait();
            thread::sleep(Duration::from_millis(50)); // long enough for the stop to be under way
            Ok(Response::Runs(RunList { runs: Vec::new() }))
        }
    }
    let place = Place::new();
    let slow = Arc::new(Slow(Barrier::new(2)));
    let service = Arc::clone(&slow) as Arc<dyn Service + Send + Sync>;
    let serving = socket::serve(socket::bind(&place.socket()).expect("bind"), service).expect("serve");
    let client = Client::connect(&place.socket()).expect("connect");
    thread::scope(|scope| {
        let asked = scope.spawn(|| client.runs(Nothing {}));
        slow.0.wait();
        serving.stop();
        assert!(asked.join().expect("no panic").is_ok());
    });
    assert_eq!(client.runs(Nothing {}).expect_err("it has hung up").code, ProblemCode::Internal);
}
