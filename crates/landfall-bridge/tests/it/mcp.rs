//! The tools of an agent at work, by a client that writes JSON by hand, and a sitter's socket played by the test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::PROBE;

const PATIENCE: Duration = Duration::from_secs(60);

/// A socket that takes every word with the key, and tells the test.
pub struct Ear {
    folder: TempDir,
    pub socket: PathBuf,
    pub heard: mpsc::Receiver<Value>,
}

impl Ear {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("signal.sock");
        Self::at(folder, socket)
    }

    /// With a path that is longer than an address can be.
    pub fn deep() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("a".repeat(90)).join("b".repeat(90));
        std::fs::create_dir_all(&deep).expect("folders");
        // Bound where the path is short, then moved: the test needs no trick of its own.
        let short = folder.path().join("s");
        let listener = UnixListener::bind(&short).expect("a socket");
        let socket = deep.join("signal.sock");
        std::fs::rename(short, &socket).expect("the same disk");
        Self::listening(folder, socket, listener)
    }

    fn at(folder: TempDir, socket: PathBuf) -> Self {
        let listener = UnixListener::bind(&socket).expect("a socket");
        Self::listening(folder, socket, listener)
    }

    fn listening(folder: TempDir, socket: PathBuf, listener: UnixListener) -> Self {
        let (tell, heard) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).expect("a line");
                let said: Value = serde_json::from_str(&line).expect("JSON");
                let answer = match said["key"].as_str() {
                    Some("k1") => json!({"ok": true}),
                    _ => {
                        json!({"ok": false, "error": "the key is not this run's", "hint": "leave it as it is"})
                    }
                };
                writeln!(stream, "{answer}").expect("somebody listens");
                if tell.send(said).is_err() {
                    return;
                }
            }
        });
        Self { folder, socket, heard }
    }

    pub fn next(&self) -> Value {
        self.heard.recv_timeout(PATIENCE).expect("a word")
    }
}

struct Server {
    child: Child,
    /// Until the test closes it.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn start(ear: &Ear) -> Self {
        let mut child = Command::new(PROBE)
            .args(["mcp", "--agent"])
            .env("LANDFALL_SIGNAL", &ear.socket)
            .env("LANDFALL_KEY", "k1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, to: Some(to), from: BufReader::new(from), id: 0 }
    }

    fn greet(&mut self) -> Value {
        let hello = self.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        hello
    }

    fn write(&mut self, line: &str) {
        self.bytes(line.as_bytes());
        self.bytes(b"\n");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.to.as_mut().expect("open").write_all(bytes).expect("it reads");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).expect("readable"), 0, "it ended");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok(); // it has ended by itself
        self.child.wait().ok();
    }
}

#[test]
fn every_tool_is_listed_and_says_its_word() {
    let ear = Ear::new();
    let mut server = Server::start(&ear);
    assert_eq!(server.greet()["result"]["serverInfo"]["name"], "landfall");
    let list = server.ask("tools/list", json!({}));
    let names: Vec<&str> = list["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["signal", "ask", "discovery", "follow_up"]);
    for (tool, arguments, say, text) in [
        ("signal", json!({"word": "complete"}), "complete", Value::Null),
        ("signal", json!({"word": "COMPLETE", "text": "all is well"}), "complete", Value::Null),
        ("signal", json!({"word": "blocked", "text": "no network"}), "blocked", json!("no network")),
        ("signal", json!({"word": "progress", "text": 40}), "progress", json!("40")),
        ("ask", json!({"question": "Which port?"}), "ask", json!("Which port?")),
        ("discovery", json!({"text": "tests are slow"}), "discovery-local", json!("tests are slow")),
        ("discovery", json!({"scope": "global", "text": "use make"}), "discovery-global", json!("use make")),
        (
            "follow_up",
            json!({"title": "Mend\n the clock", "body": "It\nis late."}),
            "follow-up",
            json!("Mend the clock\nIt\nis late."),
        ),
    ] {
        let answer = server.call(tool, arguments.clone());
        assert_eq!(answer["isError"], false, "{tool} {arguments}: {answer}");
        let heard = ear.next();
        assert_eq!((&heard["say"], &heard["text"]), (&json!(say), &text), "{tool} {arguments}");
        assert_eq!(heard["key"], "k1");
    }
}

#[test]
fn what_cannot_be_said_is_told_to_the_model() {
    let ear = Ear::new();
    let mut server = Server::start(&ear);
    server.greet();
    for (tool, arguments, why) in [
        ("signal", json!({"word": "done"}), "known are complete"),
        ("signal", json!({}), "known are complete"),
        ("signal", json!({"word": "blocked"}), "`blocked` needs a text"),
        ("signal", json!({"word": "progress", "text": "130"}), "from 0 to 100"),
        ("discovery", json!({"scope": "world", "text": "x"}), "`local` or `global`"),
        ("follow_up", json!({"body": "x"}), "needs a title"),
    ] {
        let answer = server.call(tool, arguments.clone());
        assert_eq!(answer["isError"], true, "{tool} {arguments}: {answer}");
        assert!(answer["content"][0]["text"].as_str().expect("a text").contains(why), "{answer}");
    }
    let unknown = server.ask("tools/call", json!({"name": "rm", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    drop(std::fs::remove_file(&ear.socket));
    let answer = server.call("signal", json!({"word": "complete"}));
    assert_eq!(answer["isError"], true, "{answer}");
    assert!(answer["content"][0]["text"].as_str().expect("a text").contains("reach the run at"), "{answer}");
}

#[test]
fn garbage_does_not_end_it() {
    let ear = Ear::new();
    let mut server = Server::start(&ear);
    for line in ["", "no JSON", "{\"half\":", "[]", "\u{0}\u{1}", "{\"jsonrpc\":\"2.0\"}"] {
        server.write(line);
    }
    server.greet();
    for line in [
        "no JSON",
        "{\"half\":",
        "[1,2]",
        "5",
        "null",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"no/such\"}",
    ] {
        server.write(line);
    }
    server.bytes(b"\xff\xfe\xc0\n");
    server.write(&"x".repeat(3 << 20));
    assert_eq!(server.call("signal", json!({"word": "complete"}))["isError"], false);
    assert_eq!(ear.next()["say"], "complete");
}

#[test]
fn a_socket_deep_in_the_folders_is_reached() {
    let ear = Ear::deep();
    assert!(ear.socket.as_os_str().len() > 150 && ear.folder.path().is_dir());
    let mut server = Server::start(&ear);
    server.greet();
    assert_eq!(server.call("signal", json!({"word": "resolved"}))["isError"], false);
    assert_eq!(ear.next()["say"], "resolved");
}

#[test]
fn it_ends_when_stdin_does() {
    let ear = Ear::new();
    let mut server = Server::start(&ear);
    server.greet();
    server.to.take();
    assert_eq!(server.child.wait().expect("ours").code(), Some(0));
}
