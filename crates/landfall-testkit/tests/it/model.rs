//! The model server, asked over plain TCP as an agent would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use landfall_testkit::{Dialect, ModelServer, PlayGate, PlayTurn, Tokens};
use serde_json::{Value, json};

/// An agent's end of a connection.
struct Client {
    reader: BufReader<TcpStream>,
    base: String,
}

/// What came back.
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of every event of a stream.
    fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Client {
    fn new(url: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("plain HTTP");
        let (host, base) = rest.split_once('/').expect("a path");
        let stream = TcpStream::connect(host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        Self { reader: BufReader::new(stream), base: format!("/{base}") }
    }

    fn send(&mut self, method: &str, path: &str, more: &str, body: &[u8]) {
        let head = format!("{method} {}{path} HTTP/1.1\r\nhost: x\r\n{more}\r\n", self.base);
        let bytes = [head.as_bytes(), body].concat();
        self.reader.get_mut().write_all(&bytes).expect("sent");
    }

    fn post(&mut self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send("POST", path, &format!("content-length: {}\r\n", body.len()), body.as_bytes());
        self.answer()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn answer(&mut self) -> Answer {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|it| it.parse().ok());
        let mut headers = String::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            headers += &(line + "\n");
        }
        let body = if headers.contains("transfer-encoding: chunked") {
            self.chunks()
        } else {
            let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.expect("a length").parse().expect("a number")];
            self.reader.read_exact(&mut body).expect("the body");
            String::from_utf8(body).expect("UTF-8")
        };
        Answer { status: status.unwrap_or_else(|| panic!("no status in {first:?}")), headers, body }
    }

    fn chunks(&mut self) -> String {
        let mut body = String::new();
        loop {
            let size = usize::from_str_radix(&self.line(), 16).expect("a size");
            let mut part = vec![0; size + 2];
            self.reader.read_exact(&mut part).expect("a chunk");
            if size == 0 {
                return body;
            }
            body += std::str::from_utf8(&part[..size]).expect("whole characters");
        }
    }

    /// Whether the server has closed the connection.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).is_ok()
    }
}

/// For each dialect: the path, a request that offers a shell, and how a stream is asked for.
fn request(dialect: Dialect, stream: bool) -> (String, Value) {
    match dialect {
        Dialect::Anthropic => (
            "/v1/messages?beta=true".to_owned(),
            json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "say <a>B</a>" }],
                    "tools": [{ "name": "Read" }, { "name": "Bash" }] }),
        ),
        Dialect::Responses => (
            "/v1/responses".to_owned(),
            json!({ "model": "m", "stream": stream, "input": [{ "role": "user", "content": "say <a>B</a>" }],
                    "tools": [{ "type": "function", "name": "exec_command" }] }),
        ),
        Dialect::Chat => (
            "/v1/chat/completions".to_owned(),
            json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "say <a>B</a>" }],
                    "tools": [{ "type": "function", "function": { "name": "bash" } }] }),
        ),
        Dialect::Gemini => {
            let way = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (
                format!("/v1beta/models/m:{way}"),
                json!({ "contents": [{ "role": "user", "parts": [{ "text": "say <a>B</a>" }] }],
                        "tools": [{ "functionDeclarations": [{ "name": "run_shell_command" }] }] }),
            )
        }
    }
}

const DIALECTS: [Dialect; 4] = [Dialect::Anthropic, Dialect::Responses, Dialect::Chat, Dialect::Gemini];

/// The text, the command and the figures of an answer, wherever the dialect has them.
fn found(values: &[Value]) -> (String, String, Vec<u64>) {
    fn walk(value: &Value, key: &str, visit: &mut impl FnMut(&str, &Value)) {
        visit(key, value);
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, it)| walk(it, key, visit)),
            Value::Array(values) => values.iter().for_each(|it| walk(it, key, visit)),
            _ => {}
        }
    }
    let (mut text, mut command, mut figures) = (String::new(), String::new(), Vec::new());
    for value in values {
        walk(value, "", &mut |key, it| match (key, it) {
            ("text" | "content" | "delta", Value::String(part)) => text += part,
            ("partial_json" | "arguments", Value::String(part)) => command += part,
            ("command" | "cmd", Value::String(part)) => command += part,
            (_, Value::Number(number)) if key.to_lowercase().contains("token") => {
                figures.extend(number.as_u64());
            }
            _ => {}
        });
    }
    (text, command, figures)
}

#[test]
fn every_dialect_says_what_the_play_says_whole_and_streamed() {
    let server = ModelServer::start();
    for dialect in DIALECTS {
        for stream in [false, true] {
            let price = Tokens { fresh: 70, cached: 7, out: 13 };
            let play = [
                PlayTurn::shell("echo gr\u{fc}n > x").with_words("Now.").tokens(price),
                PlayTurn::say("All d\u{f6}ne.").tokens(price),
            ];
            let url = server.play("one", play);
            let mut client = Client::new(&url);
            let (path, body) = request(dialect, stream);
            let heard = |client: &mut Client| {
                let answer = client.post(&path, &body);
                assert_eq!(answer.status, 200, "{dialect:?}: {}", answer.body);
                assert_eq!(answer.headers.contains("text/event-stream"), stream, "{dialect:?}");
                if stream { answer.events() } else { vec![answer.json()] }
            };
            let first = heard(&mut client);
            let (text, command, figures) = found(&first);
            assert!(text.contains("Now."), "{dialect:?}, stream {stream}: {text}");
            assert!(command.contains("echo gr\u{fc}n > x"), "{dialect:?}, stream {stream}: {command}");
            assert!(figures.contains(&13) && figures.contains(&7), "{dialect:?}: {figures:?}");
            // The same connection goes on.
            let second = heard(&mut client);
            let (text, command, _) = found(&second);
            assert!(text.contains("All d\u{f6}ne."), "{dialect:?}, stream {stream}: {text}");
            assert_eq!(command, "", "{dialect:?}");
            // And when the play is over, it has nothing to add.
            assert!(found(&heard(&mut client)).0.contains("Nothing to add."), "{dialect:?}");
        }
    }
    assert_eq!(server.asked("one").len(), DIALECTS.len() * 2 * 3);
    assert_eq!(server.strays(), [""; 0]);
}

#[test]
fn a_quotation_is_what_the_prompt_told_it_to_say() {
    let server = ModelServer::start();
    for dialect in DIALECTS {
        let url = server.play("one", [PlayTurn::quote("<a>", "</a>"), PlayTurn::quote("<b>", "</b>")]);
        let mut client = Client::new(&url);
        let (path, body) = request(dialect, false);
        let (text, ..) = found(&[client.post(&path, &body).json()]);
        assert!(text.contains("<a>B</a>") && !text.contains("say"), "{dialect:?}: {text}");
        let (text, ..) = found(&[client.post(&path, &body).json()]);
        assert!(text.contains("There is nothing between"), "{dialect:?}: {text}");
    }
}

#[test]
fn tools_hidden_in_the_input_are_found_and_taken_as_they_want() {
    let server = ModelServer::start();
    let url = server.play("one", [PlayTurn::shell("make").times(2), PlayTurn::shell("make")]);
    let mut client = Client::new(&url);
    let group = json!({ "type": "namespace", "tools": [{ "type": "custom", "name": "exec" }] });
    let hidden = json!({ "input": [{ "type": "additional_tools", "tools": [group] }] });
    let call = &client.post("/v1/responses", &hidden).json()["output"][0];
    assert_eq!(call["type"], "custom_tool_call");
    assert!(
        call["input"].as_str().is_some_and(|it| it.contains(r#"exec_command({"cmd":"make"})"#)),
        "{call}"
    );
    let shell = json!({ "input": [], "tools": [{ "type": "function", "name": "shell" }] });
    let call = &client.post("/v1/responses", &shell).json()["output"][0];
    assert_eq!(call["arguments"], r#"{"command":["sh","-c","make"]}"#);
    let none = json!({ "input": [], "tools": [{ "type": "function", "name": "view" }] });
    let refused = client.post("/v1/responses", &none);
    assert_eq!(refused.status, 400, "a play that cannot be played says so: {}", refused.body);
    assert!(refused.body.contains("view"), "{}", refused.body);
}

#[test]
fn a_tool_of_a_server_has_the_name_that_agents_give_it() {
    let server = ModelServer::start();
    for (dialect, names) in [
        (Dialect::Anthropic, &[r#""name":"mcp__x__signal""#][..]),
        (Dialect::Responses, &[r#""name":"signal""#, r#""namespace":"mcp__x""#]),
        (Dialect::Chat, &[r#""name":"x_signal""#]),
        (Dialect::Gemini, &[r#""name":"mcp_x_signal""#]),
    ] {
        let url = server.play("one", [PlayTurn::tool("x", "signal", json!({ "word": "complete" }))]);
        let (path, body) = request(dialect, false);
        let answer = Client::new(&url).post(&path, &body).body;
        let named = names.iter().all(|name| answer.contains(name));
        assert!(named && answer.contains("complete"), "{dialect:?}: {answer}");
    }
}

#[test]
fn side_requests_get_a_dull_answer_and_do_not_move_the_play() {
    let server = ModelServer::start();
    let url = server.play("one", [PlayTurn::say("first")]);
    let mut client = Client::new(&url);
    let title = json!({ "model": "m", "messages": [{ "role": "user", "content": "a title, please" }] });
    assert!(client.post("/v1/messages", &title).body.contains("Nothing to add."));
    let (path, mut body) = request(Dialect::Chat, false);
    body["messages"] = json!([{ "role": "system", "content": "You are a title generator. Be short." }]);
    assert!(client.post(&path, &body).body.contains("Nothing to add."));
    let (path, mut body) = request(Dialect::Anthropic, false);
    let wish = "What would the user type? Reply with ONLY the suggestion, no quotes or explanation.";
    body["messages"] = json!([{ "role": "user", "content": [{ "type": "text", "text": wish }] }]);
    assert!(client.post(&path, &body).body.contains("Nothing to add."));
    let (path, body) = request(Dialect::Anthropic, false);
    assert!(client.post(&path, &body).body.contains("first"));
    assert_eq!(server.asked("one").len(), 1);
    assert_eq!(server.asked_all().len(), 4);
    assert_eq!(server.asked("one")[0].turn, Some(0));
}

#[test]
fn refusals_have_their_status_headers_and_body_and_end_when_they_are_used_up() {
    let server = ModelServer::start();
    for dialect in DIALECTS {
        let url = server.play(
            "one",
            [
                PlayTurn::error(429, "too_much", "slow down").header("retry-after", "3").times(2),
                PlayTurn::refuse(418, json!({ "own": true })),
                PlayTurn::say("fine"),
            ],
        );
        let mut client = Client::new(&url);
        let (path, body) = request(dialect, true);
        for _ in 0..2 {
            let answer = client.post(&path, &body);
            assert_eq!(answer.status, 429, "{dialect:?}");
            assert!(answer.headers.contains("retry-after: 3\n"), "{dialect:?}: {}", answer.headers);
            let error = &answer.json()["error"];
            assert_eq!(error["message"], "slow down", "{dialect:?}: {error}");
        }
        let own = client.post(&path, &body);
        assert_eq!((own.status, own.json()), (418, json!({ "own": true })), "{dialect:?}");
        assert!(found(&client.post(&path, &body).events()).0.contains("fine"), "{dialect:?}");
    }
}

#[test]
fn an_answer_behind_a_gate_waits_for_it_and_others_do_not_wait_for_the_answer() {
    let server = ModelServer::start();
    let gate = PlayGate::new();
    let slow = server.play("slow", [PlayTurn::say("late").behind(&gate)]);
    let quick = server
        .play("quick", [PlayTurn::say("at once"), PlayTurn::say("soon").after(Duration::from_millis(50))]);
    let (path, body) = request(Dialect::Responses, false);
    let waiting = {
        let (path, body) = (path.clone(), body.clone());
        std::thread::spawn(move || Client::new(&slow).post(&path, &body).body)
    };
    server.wait("slow", 1, Duration::from_secs(5));
    let mut client = Client::new(&quick);
    assert!(client.post(&path, &body).body.contains("at once"));
    let began = Instant::now();
    assert!(client.post(&path, &body).body.contains("soon"));
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert!(!waiting.is_finished(), "the gate is shut");
    gate.open();
    assert!(waiting.join().expect("answered").contains("late"));
}

#[test]
fn a_cut_answer_ends_in_the_middle_and_a_stalled_one_never() {
    let server = ModelServer::start();
    for dialect in DIALECTS {
        let url = server
            .play("one", [PlayTurn::cut("half of this"), PlayTurn::stall("half of that"), PlayTurn::hang()]);
        let (path, body) = request(dialect, true);
        let text = body.to_string();
        let mut cut = Client::new(&url);
        cut.send("POST", &path, &format!("content-length: {}\r\n", text.len()), text.as_bytes());
        let mut all = String::new();
        cut.reader.read_to_string(&mut all).expect("it is closed in the middle");
        assert!(all.contains("text/event-stream") && all.contains("data: "), "{dialect:?}: {all}");
        assert!(!all.ends_with("0\r\n\r\n"), "{dialect:?} ends properly: {all}");
        for begins in [true, false] {
            let mut mute = Client::new(&url);
            mute.send("POST", &path, &format!("content-length: {}\r\n", text.len()), text.as_bytes());
            let limit = Some(Duration::from_millis(200));
            mute.reader.get_mut().set_read_timeout(limit).expect("a limit");
            let mut some = Vec::new();
            let ended = mute.reader.read_to_end(&mut some);
            assert!(ended.is_err(), "{dialect:?}: the connection stays");
            assert_eq!(!some.is_empty(), begins, "{dialect:?}: {}", String::from_utf8_lossy(&some));
        }
    }
}

#[test]
fn requests_in_chunks_upgrades_and_strangers_are_answered() {
    let server = ModelServer::start();
    let url = server.play("one", [PlayTurn::say("heard")]);
    let mut client = Client::new(&url);
    client.send("GET", "/v1/responses", "upgrade: websocket\r\nconnection: upgrade\r\n", b"");
    assert_eq!(client.answer().status, 426);
    client.send("GET", "/v1/models", "", b"");
    assert_eq!(client.answer().status, 200);
    client.send("POST", "/v1/messages/count_tokens", "content-length: 8\r\n", b"12345678");
    assert_eq!(client.answer().json()["input_tokens"], 2);
    client.send("GET", "/elsewhere", "", b"");
    assert_eq!(client.answer().status, 404);
    assert_eq!(server.strays(), ["GET /s/one/elsewhere"]);
    let (path, body) = request(Dialect::Anthropic, false);
    let text = body.to_string();
    let (one, two) = text.split_at(20);
    let chunks = format!("{:x}\r\n{one}\r\n{:x};x=y\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    client.send("POST", &path, "Transfer-Encoding: chunked\r\nconnection: close\r\n", chunks.as_bytes());
    assert!(client.answer().body.contains("heard"));
    assert!(client.is_closed());
    assert_eq!(server.asked("one")[0].body, body);
    assert!(server.asked("one")[0].mentions("say <a>") && !server.asked("one")[0].mentions("say <b>"));
    let mut stranger = Client::new(&server.url("nobody"));
    assert_eq!(stranger.post(&path, &body).status, 404);
}

#[test]
fn a_server_that_is_dropped_lets_everybody_go() {
    let server = ModelServer::start();
    let url = server
        .play("one", [PlayTurn::hang(), PlayTurn::stall("x"), PlayTurn::say("y").behind(&PlayGate::new())]);
    let (path, body) = request(Dialect::Chat, true);
    let text = body.to_string();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&url)).collect();
    for client in &mut clients {
        client.send("POST", &path, &format!("content-length: {}\r\n", text.len()), text.as_bytes());
    }
    let mut idle = Client::new(&url);
    server.wait("one", 3, Duration::from_secs(5));
    let began = Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(clients.iter_mut().all(Client::is_closed) && idle.is_closed());
}
