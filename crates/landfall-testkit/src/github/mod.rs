//! A GitHub that remembers, on a port of its own: issues, labels, comments, sub-issues, pull requests, reviews and checks of one
//! repository. It answers as GitHub does where Landfall looks, and misbehaves when it is told to.

mod actions;
mod routes;
mod state;

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{self, HttpRequest};
pub use state::{
    FakeCheck, FakeComment, FakeIssue, FakeJob, FakePull, FakeRepository, FakeReview, FakeStatus,
};

/// A fake GitHub; it ends when dropped.
pub struct FakeGithub {
    at: SocketAddr,
    house: Arc<FakeGithubState>,
    door: Option<JoinHandle<()>>,
}

/// A request that came, and what was answered.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// `GET` and so on.
    pub method: String,
    /// The path below `/api/v3`, as it was sent, without the query.
    pub path: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// The body; null if there was none.
    pub body: Value,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The status of the answer; 0 if none was given.
    pub status: u16,
    /// The body of the answer.
    pub answer: Value,
}

/// What goes wrong.
#[derive(Clone)]
pub enum GithubFault {
    /// This status instead of doing anything.
    Status(u16),
    /// It is done, and this status is answered.
    DoneBut(u16),
    /// It is done, and the connection is cut before the answer.
    DoneAndCut,
    /// It is done, and no answer comes.
    DoneAndSilent,
    /// It arrives twice, and is done twice.
    Twice,
    /// The secondary limit, with or without a word on how many seconds.
    Secondary(Option<u64>),
    /// The requests are used up for so many seconds.
    Exhausted(u64),
    /// It is done, and then someone else does this.
    Then(Arc<dyn Fn(&mut FakeRepository) + Send + Sync>),
    /// Answered with this body instead of the true one.
    Garbled(String),
    /// Not done, but answered as GitHub once did.
    Recorded {
        /// The status.
        status: u16,
        /// Headers. Addresses of GitHub in them become addresses of the fake.
        headers: Vec<(String, String)>,
        /// The body, with its addresses.
        body: Value,
    },
}

struct InjectedFault {
    method: &'static str,
    /// What the path ends with.
    ending: String,
    trouble: GithubFault,
    times: u32,
}

struct FakeGithubState {
    world: Mutex<FakeRepository>,
    faults: Mutex<Vec<InjectedFault>>,
    heard: Mutex<Vec<RecordedRequest>>,
    guests: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
    closing: AtomicBool,
    at: SocketAddr,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The token it knows.
pub const FAKE_TOKEN: &str = "fake-token";

impl FakeGithub {
    /// Starts it, with the empty repository `o/r`, whose default branch is `main`, and the account `landfall-bot`.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let house = Arc::new(FakeGithubState {
            world: Mutex::new(FakeRepository::default()),
            faults: Mutex::new(Vec::new()),
            heard: Mutex::new(Vec::new()),
            guests: Mutex::new(Vec::new()),
            closing: AtomicBool::new(false),
            at,
        });
        let door = std::thread::spawn({
            let house = Arc::clone(&house);
            move || house.open(&listener)
        });
        Self { at, house, door: Some(door) }
    }

    /// Its address, as that of a company's own server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// What it knows, to look at and to change as another person would.
    pub fn world<T>(&self, with: impl FnOnce(&mut FakeRepository) -> T) -> T {
        with(&mut lock(&self.house.world))
    }

    /// Makes the next requests of this method and to a path that ends like this go wrong, so many times.
    pub fn fault(&self, method: &'static str, ending: &str, times: u32, trouble: GithubFault) {
        lock(&self.house.faults).push(InjectedFault { method, ending: ending.to_owned(), trouble, times });
    }

    /// Everything that was asked.
    #[must_use]
    pub fn heard(&self) -> Vec<RecordedRequest> {
        lock(&self.house.heard).clone()
    }

    /// How many requests of this method went to a path that ends like this.
    #[must_use]
    pub fn count(&self, method: &str, ending: &str) -> usize {
        lock(&self.house.heard).iter().filter(|it| it.method == method && it.path.ends_with(ending)).count()
    }
}

impl Drop for FakeGithub {
    fn drop(&mut self) {
        self.house.closing.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.at); // so that the door looks up
        if let Some(door) = self.door.take() {
            let _ = door.join(); // it has nothing to tell
        }
        for (stream, guest) in lock(&self.house.guests).drain(..) {
            let _ = stream.shutdown(Shutdown::Both); // it has gone by itself
            let _ = guest.join(); // it has nothing to tell
        }
    }
}

/// What a request comes to.
pub(crate) struct FakeGithubReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl FakeGithubReply {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn said(status: u16, message: &str) -> Self {
        Self::new(status, json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }))
    }
}

impl FakeGithubState {
    fn open(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let Ok(own) = stream.try_clone() else { continue };
            let house = Arc::clone(&self);
            let guest = std::thread::spawn(move || {
                let _ = house.serve(&stream); // the client has gone
            });
            lock(&self.guests).push((own, guest));
        }
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut from = BufReader::new(stream);
        let mut to = stream;
        while let Some(request) = http::read(&mut from, &mut to)? {
            if !self.answer(stream, &request)? {
                break;
            }
        }
        stream.shutdown(Shutdown::Both)
    }

    /// Answers one request; false if the connection is over.
    fn answer(&self, mut stream: &TcpStream, request: &HttpRequest) -> io::Result<bool> {
        let (path, query) = routes::parted(&request.path);
        let trouble = self.trouble(&request.method, &path);
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let do_it = |world: &mut FakeRepository| {
            world.see_pushes();
            routes::route(world, self.at, request, &path, &query, &body)
        };
        let (reply, speaks) = {
            let mut world = lock(&self.world);
            let world = &mut *world;
            match &trouble {
                None => (do_it(world), true),
                Some(GithubFault::Status(status)) => (FakeGithubReply::said(*status, "it broke"), true),
                Some(GithubFault::DoneBut(status)) => {
                    do_it(world);
                    (FakeGithubReply::said(*status, "it broke afterwards"), true)
                }
                Some(GithubFault::DoneAndCut | GithubFault::DoneAndSilent) => {
                    do_it(world);
                    (FakeGithubReply::new(0, Value::Null), false)
                }
                Some(GithubFault::Twice) => {
                    do_it(world);
                    (do_it(world), true)
                }
                Some(GithubFault::Secondary(seconds)) => {
                    let reply = FakeGithubReply::said(403, "You have exceeded a secondary rate limit.");
                    (seconds.iter().fold(reply, |reply, seconds| reply.with("retry-after", seconds)), true)
                }
                Some(GithubFault::Exhausted(seconds)) => {
                    let reply = FakeGithubReply::said(403, "API rate limit exceeded for user.");
                    let reset = world.date() + seconds;
                    (reply.with("x-ratelimit-remaining", 0).with("x-ratelimit-reset", reset), true)
                }
                Some(GithubFault::Then(then)) => {
                    let reply = do_it(world);
                    then(world);
                    (reply, true)
                }
                Some(GithubFault::Garbled(_)) => (do_it(world), true),
                Some(GithubFault::Recorded { status, headers, body }) => {
                    let here = format!("http://{}/api/v3", self.at);
                    let ours = |text: &str| text.replace("https://api.github.com", &here);
                    let headers = headers.iter().map(|(name, value)| (name.clone(), ours(value))).collect();
                    let body = serde_json::from_str(&ours(&body.to_string())).expect("it was JSON before");
                    (FakeGithubReply { status: *status, headers, body }, true)
                }
            }
        };
        let date = lock(&self.world).date();
        lock(&self.heard).push(RecordedRequest {
            method: request.method.clone(),
            path: path.clone(),
            query,
            body,
            headers: request.headers.clone(),
            status: reply.status,
            answer: reply.body.clone(),
        });
        if !speaks {
            if matches!(trouble, Some(GithubFault::DoneAndSilent)) {
                self.wait_for_goodbye(stream);
            }
            return Ok(false);
        }
        let mut headers = reply.headers;
        headers.push(("date".to_owned(), state::http_date(date)));
        let bytes = match (trouble, &reply.body) {
            (Some(GithubFault::Garbled(text)), _) => text.into_bytes(),
            (_, Value::Null) => Vec::new(),
            (_, body) => body.to_string().into_bytes(),
        };
        http::answer(&mut stream, reply.status, &headers, &bytes)?;
        stream.flush()?;
        Ok(true)
    }

    /// Returns when the client has had enough.
    fn wait_for_goodbye(&self, stream: &TcpStream) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(20))); // without it the first look is the last
        while Instant::now() < deadline && !self.closing.load(Ordering::SeqCst) {
            match stream.peek(&mut [0]) {
                Ok(0) => return,
                Ok(_) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(_) => return,
            }
        }
    }

    fn trouble(&self, method: &str, path: &str) -> Option<GithubFault> {
        let mut faults = lock(&self.faults);
        let index =
            faults.iter().position(|fault| fault.method == method && path.ends_with(&fault.ending))?;
        faults[index].times -= 1;
        let trouble = faults[index].trouble.clone();
        if faults[index].times == 0 {
            faults.remove(index);
        }
        Some(trouble)
    }
}
