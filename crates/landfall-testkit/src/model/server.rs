//! The server: one thread for each connection, one cursor for each agent, and a list of what was asked.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialect::{Dialect, ModelReply, ModelRequestSpec, shell, tool};
use super::play::{Play, PlayAct, PlayDelay, PlayTurn, Thoughts, Times};
use crate::http::{self, HttpRequest};
use crate::scratch::eventually;

/// A model server on a port of its own; it ends when dropped.
pub struct ModelServer {
    at: SocketAddr,
    house: Arc<ModelServerState>,
    door: Option<JoinHandle<()>>,
}

/// A request of an agent to its model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Whose play it belongs to.
    pub name: String,
    /// When it came.
    pub at: Instant,
    /// In which protocol.
    pub dialect: Dialect,
    /// The model it was for.
    pub model: String,
    /// Which turn of the play answered, from 0; none for side requests and after the end of the play.
    pub turn: Option<usize>,
    /// Whether it was a side request: a title, a summary, anything without tools.
    pub side: bool,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Value,
}

impl ModelRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether a text stands anywhere in the body.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        let mut found = false;
        strings(&self.body, &mut |it| found |= it.contains(text));
        found
    }
}

#[derive(Default)]
struct ModelServerState {
    stages: Mutex<BTreeMap<String, PlayProgress>>,
    asked: Mutex<Vec<ModelRequest>>,
    strays: Mutex<Vec<String>>,
    guests: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
    replies: AtomicU64,
    closing: AtomicBool,
}

/// A play and how far it has come.
#[derive(Default)]
struct PlayProgress {
    play: Play,
    turn: usize,
    used: u32,
}

/// What is said when the play has nothing to say.
const DULL: &str = "Nothing to add.";

/// How often a wait looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

impl ModelServer {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no port to be had.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of our own");
        let at = listener.local_addr().expect("a bound socket has an address");
        let house = Arc::new(ModelServerState::default());
        let within = Arc::clone(&house);
        let door = std::thread::spawn(move || within.open(&listener));
        Self { at, house, door: Some(door) }
    }

    /// Gives a play to the agent called `name` and begins it anew; the base of the URLs that this agent is to use.
    pub fn play(&self, name: &str, play: impl Into<Play>) -> String {
        let stage = PlayProgress { play: play.into(), ..PlayProgress::default() };
        lock(&self.house.stages).insert(name.to_owned(), stage);
        self.url(name)
    }

    /// The base of the URLs of an agent.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/s/{name}", self.at)
    }

    /// What an agent has asked its model so far, side requests left out.
    #[must_use]
    pub fn asked(&self, name: &str) -> Vec<ModelRequest> {
        self.asked_all().into_iter().filter(|it| it.name == name && !it.side).collect()
    }

    /// Everything that was asked, by all agents, side requests too.
    #[must_use]
    pub fn asked_all(&self) -> Vec<ModelRequest> {
        lock(&self.house.asked).clone()
    }

    /// Requests that no play and no protocol knows, as `GET /path`.
    #[must_use]
    pub fn strays(&self) -> Vec<String> {
        lock(&self.house.strays).clone()
    }

    /// Waits until an agent has asked so often, at most so long.
    #[track_caller]
    pub fn wait(&self, name: &str, count: usize, limit: Duration) {
        let what = format!("{count} requests of {name}");
        eventually(limit, &what, || self.asked(name).len() >= count);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.house.closing.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.at); // wakes the door; if it cannot, the listener is gone already
        if let Some(door) = self.door.take() {
            let _ = door.join(); // a panic there has been printed
        }
        for (stream, guest) in lock(&self.house.guests).drain(..) {
            let _ = stream.shutdown(Shutdown::Both); // it has gone by itself
            let _ = guest.join(); // a panic there has been printed
        }
    }
}

/// A test that panics while it holds the list must not hide its own message behind ours.
fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelServerState {
    fn open(self: Arc<Self>, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let Ok(handle) = stream.try_clone() else { continue };
            let within = Arc::clone(&self);
            // The end of a connection is no news: agents go away in the middle of things.
            let guest = std::thread::spawn(move || drop(within.serve(&stream)));
            let mut guests = lock(&self.guests);
            guests.retain(|(_, guest)| !guest.is_finished());
            guests.push((handle, guest));
        }
    }

    /// Answers requests on a connection until it ends.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream.try_clone()?;
        let mut go_on = true;
        while go_on && let Some(request) = http::read(&mut reader, &mut writer)? {
            go_on = self.answer(stream, &request)?;
            go_on &= !request.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        }
        stream.shutdown(Shutdown::Both)
    }

    /// Answers one request; whether the connection goes on.
    fn answer(&self, stream: &TcpStream, request: &HttpRequest) -> io::Result<bool> {
        let mut to = stream;
        let plain = request.path.split('?').next().unwrap_or_default();
        let (name, path) = named(&request.path);
        let dialect = if request.method == "POST" { Dialect::of(path) } else { None };
        let Some(dialect) = dialect else {
            let (status, body) = aside(request, plain);
            if status == 404 {
                lock(&self.strays).push(format!("{} {}", request.method, request.path));
            }
            let body = if request.method == "HEAD" { String::new() } else { body.to_string() };
            http::answer(&mut to, status, &[], body.as_bytes())?;
            return Ok(true);
        };
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let wanted = dialect.wanted(path, &body);
        let side = wanted.tools.is_empty() && wanted.tools_plain.is_empty() || is_aside(&body);
        let Some((number, turn)) = self.next(name, side) else {
            lock(&self.strays).push(format!("{} {}", request.method, request.path));
            let text = dialect.error(404, "not_found_error", "there is no such play").to_string();
            http::answer(&mut to, 404, &[], text.as_bytes())?;
            return Ok(true);
        };
        lock(&self.asked).push(ModelRequest {
            name: name.to_owned(),
            at: Instant::now(),
            dialect,
            model: wanted.model.clone(),
            turn: number,
            side,
            headers: request.headers.clone(),
            body: body.clone(),
        });
        self.perform(stream, dialect, &wanted, &body, &turn)
    }

    /// The turn that is next in a play; none when there is no such play.
    fn next(&self, name: &str, side: bool) -> Option<(Option<usize>, PlayTurn)> {
        let mut stages = lock(&self.stages);
        let stage = stages.get_mut(name)?;
        if side {
            return Some((None, PlayTurn::say(DULL)));
        }
        let number = stage.turn;
        let Some(turn) = stage.play.turns.get(number).cloned() else {
            return Some((None, PlayTurn::say(DULL)));
        };
        stage.used += 1;
        if matches!(turn.times, Times::Count(count) if stage.used >= count) {
            (stage.turn, stage.used) = (number + 1, 0);
        }
        Some((Some(number), turn))
    }

    /// Acts a turn out; whether the connection goes on.
    fn perform(
        &self,
        stream: &TcpStream,
        dialect: Dialect,
        wanted: &ModelRequestSpec,
        body: &Value,
        turn: &PlayTurn,
    ) -> io::Result<bool> {
        let mut to = stream;
        let stays = match &turn.before {
            PlayDelay::Nothing => true,
            PlayDelay::Wait(time) => {
                let until = Instant::now() + *time;
                self.wait_until(stream, || Instant::now() >= until)
            }
            PlayDelay::Gate(gate) => self.wait_until(stream, || gate.is_open()),
        };
        if !stays {
            return Ok(false);
        }
        let reply = |text: &str, call| ModelReply {
            number: self.replies.fetch_add(1, Ordering::SeqCst) + 1,
            text: text.to_owned(),
            call,
            too_long: matches!(turn.act, PlayAct::TooLong),
            tokens: turn.tokens,
            thoughts: turn.thoughts.map(pieces).unwrap_or_default(),
        };
        let reply = match &turn.act {
            PlayAct::Error { status, kind, body } => {
                let text = body.clone().unwrap_or_else(|| dialect.error(*status, kind, &turn.text));
                http::answer(&mut to, *status, &turn.headers, text.to_string().as_bytes())?;
                return Ok(true);
            }
            PlayAct::Hang => {
                self.wait_until(stream, || false);
                return Ok(false);
            }
            PlayAct::Shell(command) => match shell(wanted, command) {
                Some(call) => reply(&turn.text, Some(call)),
                None => {
                    // A test that asks for a shell where there is none must be told, not be left to wonder.
                    let text = format!("no shell among {:?} and {:?}", wanted.tools, wanted.tools_plain);
                    let text = dialect.error(400, "invalid_request_error", &text).to_string();
                    http::answer(&mut to, 400, &[], text.as_bytes())?;
                    return Ok(true);
                }
            },
            PlayAct::Tool { server, name, input } => {
                reply(&turn.text, Some(tool(dialect, server, name, input)))
            }
            PlayAct::Quote { from, to } => reply(&quote(body, from, to), None),
            PlayAct::Say | PlayAct::TooLong | PlayAct::Stall | PlayAct::Cut | PlayAct::Ping { .. } => {
                reply(&turn.text, None)
            }
        };
        let broken = matches!(turn.act, PlayAct::Stall | PlayAct::Cut | PlayAct::Ping { .. });
        if wanted.stream {
            let mut events = dialect.events(wanted, &reply);
            if broken {
                events.truncate((events.len() / 2).max(1));
            }
            http::begin_events(&mut to, &turn.headers)?;
            for (name, data) in &events {
                http::event(&mut to, name.as_deref(), data)?;
                let pause = turn.thoughts.filter(|_| data.contains(THOUGHT));
                if let Some(Thoughts { every, .. }) = pause {
                    let until = Instant::now() + every;
                    if !self.wait_until(stream, || Instant::now() >= until) {
                        return Ok(false);
                    }
                }
            }
            if !broken {
                http::end_events(&mut to)?;
            }
        } else if !broken {
            let text = dialect.whole(wanted, &reply).to_string();
            http::answer(&mut to, 200, &turn.headers, text.as_bytes())?;
        }
        to.flush()?;
        if let PlayAct::Ping { every } = turn.act {
            loop {
                let until = Instant::now() + every;
                if !self.wait_until(stream, || Instant::now() >= until) {
                    return Ok(false);
                }
                http::keep_alive(&mut to)?;
            }
        }
        if matches!(turn.act, PlayAct::Stall) {
            self.wait_until(stream, || false);
        }
        Ok(!broken)
    }

    /// Waits until `over`; whether the other side is still there then.
    fn wait_until(&self, stream: &TcpStream, over: impl Fn() -> bool) -> bool {
        let _ = stream.set_read_timeout(Some(LOOK)); // without it the next look is later, not wrong
        let mut byte = [0];
        let stays = loop {
            if self.closing.load(Ordering::SeqCst) {
                break false;
            }
            if over() {
                break true;
            }
            match stream.peek(&mut byte) {
                Ok(0) => break false,
                Ok(_) => std::thread::sleep(LOOK), // it asks again before we have answered
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(_) => break false,
            }
        };
        let _ = stream.set_read_timeout(None); // as above
        stays
    }
}

/// A piece of a thought: as much as some ten tokens take on the wire.
const THOUGHT: &str = "Let me think about that once more, from the beginning. ";

fn pieces(Thoughts { span, every }: Thoughts) -> Vec<String> {
    let count = usize::try_from(span.as_millis() / every.as_millis().max(1)).unwrap_or(0).max(1);
    vec![THOUGHT.to_owned(); count]
}

/// What is answered to everything that is no question to a model.
fn aside(request: &HttpRequest, plain: &str) -> (u16, Value) {
    if request.header("upgrade").is_some() {
        (426, json!({}))
    } else if plain.ends_with("/models") {
        (200, json!({ "object": "list", "data": [], "models": [] }))
    } else if plain.ends_with("/count_tokens") || plain.ends_with(":countTokens") {
        let count = request.body.len() / 4; // as good a guess as any
        (200, json!({ "input_tokens": count, "totalTokens": count }))
    } else if plain == "/" || request.method == "HEAD" {
        (200, json!({}))
    } else {
        (404, json!({ "error": { "type": "not_found_error", "message": "there is nothing here" } }))
    }
}

/// Whose request it is, and the path without that.
fn named(path: &str) -> (&str, &str) {
    let parts = path.strip_prefix("/s/").and_then(|rest| rest.split_once('/'));
    parts.map_or(("", path), |(name, _)| (name, &path["/s/".len() + name.len()..]))
}

/// Some agents offer their tools while they only ask for a title, or for what a person might say next.
fn is_aside(body: &Value) -> bool {
    let mut found = false;
    for part in ["system", "instructions", "text", "messages"] {
        strings(&body[part], &mut |it| {
            found |= it.contains("thread_title") || it.starts_with("You are a title generator");
        });
    }
    let last = body["messages"].as_array().and_then(|it| it.last()).unwrap_or(&Value::Null);
    strings(last, &mut |it| {
        found |= it.ends_with("Reply with ONLY the suggestion, no quotes or explanation.")
    });
    found
}

fn strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values.iter().for_each(|it| strings(it, visit)),
        Value::Object(fields) => fields.iter().for_each(|(key, it)| {
            visit(key);
            strings(it, visit);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The shortest text of the last string that has one: it begins with `from` and ends with `to`.
fn quote(body: &Value, from: &str, to: &str) -> String {
    let mut found = None;
    strings(body, &mut |text| {
        let Some(end) = text.rfind(to) else { return };
        let Some(begin) = text[..end].rfind(from) else { return };
        found = Some(text[begin..end + to.len()].to_owned());
    });
    found.unwrap_or_else(|| format!("There is nothing between `{from}` and `{to}`."))
}
