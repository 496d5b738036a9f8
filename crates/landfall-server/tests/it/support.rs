//! A project that only pretends, a real server before it, and raw requests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use landfall_api::{LogEntry, LogPage, Problem, ProblemCode, Request, Response, Service, WireTaskId, socket};
use landfall_server::{AccessKeys, RunningServer, ServerOptions, serve};

use crate::samples::Samples;

/// No wait of a test takes longer, even on a loaded machine.
pub const TIME_MAX: Duration = Duration::from_secs(30);

/// A project that answers every request with a sample, has a real journal, and remembers what was asked.
pub struct Toy {
    answers: Mutex<BTreeMap<&'static str, Vec<u8>>>,
    asked: Mutex<Vec<Request>>,
    journal: Mutex<Vec<LogEntry>>,
    looks: Mutex<Vec<(bool, u64)>>,
    /// How long each change takes.
    pub takes: Mutex<Duration>,
    /// What nobody is to read.
    pub secrets: Mutex<Vec<String>>,
    /// Who is not let in by the socket.
    pub shut: Mutex<bool>,
    /// While it is held, nobody is admitted or turned away.
    pub admitting: Mutex<()>,
}

impl Toy {
    fn new() -> Self {
        Self {
            answers: Mutex::new(Samples::new().answers()),
            asked: Mutex::default(),
            journal: Mutex::default(),
            looks: Mutex::default(),
            takes: Mutex::default(),
            secrets: Mutex::default(),
            shut: Mutex::new(false),
            admitting: Mutex::new(()),
        }
    }

    /// What was asked since the last look, except for the looks of the stream itself and of the frame of the pages.
    pub fn asked(&self) -> Vec<Request> {
        let asked = std::mem::take(&mut *self.asked.lock().expect("no panic while it is held"));
        asked
            .into_iter()
            .filter(|it| !matches!(it, Request::Log(_) | Request::Status(_) | Request::Board(_)))
            .collect()
    }

    /// The looks into the journal: whether each asked for its end, and where its page ended.
    pub fn looks(&self) -> Vec<(bool, u64)> {
        self.looks.lock().expect("no panic while it is held").clone()
    }

    /// Answers with this text wherever a text can be. Says which operations cannot.
    pub fn speak(&self, text: &str) -> Vec<String> {
        let mut mute = Vec::new();
        for (name, answer) in Samples::new().full(text) {
            match Response::of_json(name, &answer) {
                Ok(Some(_)) => {
                    self.answers.lock().expect("no panic while it is held").insert(name, answer);
                }
                Ok(None) => mute.push(name.to_owned()),
                Err(error) => mute.push(format!("{name}: {error}")),
            }
        }
        self.write(2, None);
        for entry in &mut *self.journal.lock().expect("no panic while it is held") {
            entry.text = text.to_owned();
            entry.data = serde_json::json!({ text: text });
        }
        mute
    }

    /// Changes one place in the answers of an operation.
    pub fn answer(&self, name: &'static str, at: &str, value: serde_json::Value) {
        let mut answers = self.answers.lock().expect("no panic while it is held");
        let mut answer: serde_json::Value = serde_json::from_slice(&answers[name]).expect("json");
        *answer.pointer_mut(at).unwrap_or_else(|| panic!("`{name}` has no `{at}`")) = value;
        answers.insert(name, serde_json::to_vec(&answer).expect("json"));
    }

    /// Whether this operation was asked for since the last look.
    pub fn has_asked(&self, name: &str) -> bool {
        self.asked.lock().expect("no panic while it is held").iter().any(|it| it.name() == name)
    }

    /// Writes facts to the journal.
    pub fn write(&self, count: usize, task: Option<WireTaskId>) {
        let mut journal = self.journal.lock().expect("no panic while it is held");
        for _ in 0..count {
            let seq = journal.len() as u64 + 1;
            let text = format!("fact {seq}");
            journal.push(LogEntry {
                seq,
                at_ms: 0,
                task,
                kind: "sample".to_owned(),
                text,
                data: serde_json::Value::Null,
            });
        }
    }

    /// Writes facts of so many letters.
    pub fn write_long(&self, count: usize, letters: usize) {
        self.write(count, None);
        let mut journal = self.journal.lock().expect("no panic while it is held");
        let from = journal.len() - count;
        for entry in &mut journal[from..] {
            entry.text = "x".repeat(letters);
        }
    }

    fn page(&self, asked: &landfall_api::LogAsked) -> LogPage {
        let journal = self.journal.lock().expect("no panic while it is held");
        let limit = if asked.limit == 0 { 500 } else { asked.limit as usize };
        let head = journal.len() as u64;
        if asked.last {
            let from = journal.len().saturating_sub(limit);
            return LogPage { entries: journal[from..].to_vec(), next: head, more: false };
        }
        let from = journal.partition_point(|it| it.seq <= asked.after.unwrap_or(0));
        let entries: Vec<LogEntry> = journal[from..].iter().take(limit).cloned().collect();
        let next = entries.last().map_or(asked.after.unwrap_or(0), |it| it.seq);
        LogPage { more: from + entries.len() < journal.len(), next, entries }
    }
}

impl Service for Toy {
    fn call(&self, request: Request) -> Result<Response, Problem> {
        let name = request.name();
        self.asked.lock().expect("no panic while it is held").push(request.clone());
        if let Request::Log(asked) = &request {
            let page = self.page(asked);
            self.looks.lock().expect("no panic while it is held").push((asked.last, page.next));
            return Ok(Response::Log(page));
        }
        let takes = *self.takes.lock().expect("no panic while it is held");
        if request.route().access != landfall_api::Access::Read && !takes.is_zero() {
            std::thread::sleep(takes);
        }
        let answer = self.answers.lock().expect("no panic while it is held").get(name).cloned();
        let answer = answer.expect("every operation has a sample");
        Ok(Response::of_json(name, &answer).expect("samples are understood").expect("it has a name"))
    }

    fn known_secrets(&self) -> Vec<String> {
        self.secrets.lock().expect("no panic while it is held").clone()
    }

    fn admit_peer(&self, _peer: &landfall_api::socket::PeerProcess) -> Result<(), Problem> {
        drop(self.admitting.lock().expect("no panic while it is held"));
        match *self.shut.lock().expect("no panic while it is held") {
            true => Err(Problem::new(ProblemCode::Forbidden, "an agent at work does not steer")),
            false => Ok(()),
        }
    }
}

/// A server, and what it needs.
pub struct Place {
    pub toy: Arc<Toy>,
    pub at: SocketAddr,
    pub token: String,
    /// The name that only this server has.
    own: String,
    pub folder: tempfile::TempDir,
    serving: Option<RunningServer>,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut it = Self {
            toy: Arc::new(Toy::new()),
            at: ([127, 0, 0, 1], 0).into(),
            token: String::new(),
            own: String::new(),
            folder,
            serving: None,
        };
        it.start();
        it
    }

    /// Starts the server, again.
    pub fn start(&mut self) {
        drop(self.serving.take());
        let listener = TcpListener::bind(self.at).expect("a port");
        self.at = listener.local_addr().expect("it has one");
        let options = ServerOptions {
            socket: Some(socket::bind_socket(&self.socket()).expect("a socket")),
            addresses: vec![listener],
            hosts: vec!["build-box:7878".to_owned()],
            origins: vec!["https://build.example".to_owned()],
            folder: self.folder.path().to_owned(),
            project: "a project".to_owned(),
        };
        let serving =
            serve(options, Arc::clone(&self.toy) as Arc<dyn Service + Send + Sync>).expect("served");
        self.own = serving.links()[0].strip_prefix("http://").expect("a link").to_owned();
        self.serving = Some(serving);
        self.token = AccessKeys::read_or_create_token(self.folder.path()).expect("a token");
    }

    /// Stops the server.
    pub fn stop(&mut self) {
        drop(self.serving.take());
    }

    /// Where processes of the same user come.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Our own name.
    pub fn host(&self) -> String {
        self.own.clone()
    }

    /// A request with the right `Host` and nothing else.
    pub fn ask(&self, method: &str, target: &str) -> Asking {
        Asking {
            at: self.at,
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: None,
        }
        .with("Host", &self.host())
    }

    /// The same, with the token of the project.
    pub fn owner(&self, method: &str, target: &str) -> Asking {
        self.ask(method, target).with("Authorization", &format!("Bearer {}", self.token))
    }

    /// Signs a browser in, and gives its cookie.
    pub fn sign_in(&self) -> String {
        let answer = self
            .ask("POST", "/login")
            .with("Origin", &format!("http://{}", self.host()))
            .form(&format!("token={}", self.token))
            .send();
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
        let cookie = answer.header("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a name and a value").to_owned()
    }

    /// Makes a token for an agent.
    pub fn agent(&self) -> String {
        let answer = self.owner("POST", "/api/v1/tokens").json(r#"{"label":"an agent"}"#).send();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.value()["token"].as_str().expect("a token").to_owned()
    }
}

/// A request that is being written.
#[derive(Clone)]
pub struct Asking {
    at: SocketAddr,
    pub method: String,
    pub target: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Asking {
    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without the headers of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(it, _)| !it.eq_ignore_ascii_case(name));
        self
    }

    pub fn json(self, body: &str) -> Self {
        self.kind("application/json", body)
    }

    pub fn form(self, body: &str) -> Self {
        self.kind("application/x-www-form-urlencoded", body)
    }

    /// With a body of this type.
    pub fn kind(mut self, kind: &str, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self.without("content-type").with("Content-Type", kind)
    }

    /// As it travels.
    pub fn text(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text + "\r\n" + self.body.as_deref().unwrap_or_default()
    }

    /// Sends it on a connection of its own, and reads the answer.
    pub fn send(self) -> Answer {
        let it = self.with("Connection", "close");
        let bytes = raw(it.at, it.text().as_bytes());
        Answer::read(&bytes)
            .unwrap_or_else(|| panic!("no answer to {:?}: {:?}", it.text(), String::from_utf8_lossy(&bytes)))
    }

    /// Sends it, and leaves the connection open.
    pub fn open(self) -> TcpStream {
        let mut stream = connect(self.at);
        stream.write_all(self.text().as_bytes()).expect("sent");
        stream
    }
}

/// A connection with bounded waits.
pub fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&at, TIME_MAX).expect("somebody listens");
    stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
    stream.set_write_timeout(Some(TIME_MAX)).expect("a timeout");
    stream
}

/// Sends bytes, and reads until the other side hangs up.
pub fn raw(at: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(at);
    let _ = stream.write_all(bytes); // it may have been refused halfway
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // a reset ends it too
    answer
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// Reads one whole answer; none if it is not one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self { status, headers, body: body.to_owned() })
    }

    /// The value of a header that is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(it, _)| it == name);
        let first = all.next().map(|(_, value)| value.as_str());
        assert!(all.next().is_none(), "`{name}` is there twice: {self:?}");
        first
    }

    /// The body as JSON.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem.
    pub fn code(&self) -> String {
        self.value()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Waits until something holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TIME_MAX;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {TIME_MAX:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
