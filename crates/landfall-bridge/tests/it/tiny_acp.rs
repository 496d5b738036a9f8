//! A small agent that speaks the protocol by hand, well or badly: the other side of the bridge.

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Value, json};

const SESSION: &str = "tiny-1";

/// Speaks until stdin ends. `ways` say what it does otherwise than a good agent.
pub fn main(ways: &[&str]) -> ExitCode {
    let mut tiny = Tiny { ways: ways.iter().map(|way| (*way).to_owned()).collect(), asked: 0 };
    let is = |way: &str| ways.contains(&way);
    if is("die-at-start") {
        return ExitCode::from(3);
    }
    if is("hang-at-start") {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    while let Some(message) = tiny.read() {
        if let Err(code) = tiny.answer(&message) {
            return code;
        }
    }
    if is("stays") {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    ExitCode::SUCCESS
}

struct Tiny {
    ways: Vec<String>,
    asked: u64,
}

impl Tiny {
    fn is(&self, way: &str) -> bool {
        self.ways.iter().any(|it| it == way)
    }

    fn read(&self) -> Option<Value> {
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("the bridge speaks JSON")),
        }
    }

    fn write(&self, message: &Value) {
        let mut out = io::stdout().lock();
        writeln!(out, "{message}").and_then(|()| out.flush()).expect("the bridge listens");
    }

    fn update(&self, update: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": SESSION, "update": update}}));
    }

    fn say(&self, text: &str) {
        // In two pieces, cut in the middle of a line.
        let at = text.floor_char_boundary(text.len() / 2);
        for piece in [&text[..at], &text[at..]] {
            self.update(json!({"sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": piece}}));
        }
    }

    /// A request of our own, and its answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = format!("mine-{}", self.asked);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let answer = self.read().expect("an answer");
            if answer["id"] == id.as_str() {
                return answer;
            }
        }
    }

    fn answer(&mut self, message: &Value) -> Result<(), ExitCode> {
        let id = message["id"].clone();
        let good = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let bad = |code: i64, text: &str, data: Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data}});
        match message["method"].as_str() {
            Some("initialize") => {
                assert_eq!(message["params"]["protocolVersion"], 1, "version 1 is asked for");
                if self.is("garbage") {
                    let mut out = io::stdout().lock();
                    out.write_all(b"Loading\xff\xfe\n[1,2]\n\n{\"half\": \n\"text\"\n").expect("room");
                }
                self.write(&good(json!({"protocolVersion": 1, "agentCapabilities": {
                    "loadSession": self.is("loads"),
                    "sessionCapabilities": if self.is("resumes") { json!({"resume": {}}) } else { json!({}) }}})));
            }
            Some("session/new") if self.is("logged-out") => {
                self.write(&bad(-32000, "Authentication required", Value::Null));
            }
            Some("session/new") => self.write(&good(json!({"sessionId": SESSION,
                "modes": {"currentModeId": "default", "availableModes":
                    [{"id": "default", "name": "Default"}, {"id": "yolo", "name": "All"}]},
                "configOptions": [{"id": "m", "name": "Model", "category": "model", "type": "select",
                    "currentValue": "small", "options": [{"value": "small", "name": "Small"},
                        {"value": "large", "name": "Large"}]}]}))),
            Some("session/load" | "session/resume") => {
                if message["params"]["sessionId"] != SESSION {
                    self.write(&bad(-32002, "Session not found", Value::Null));
                } else {
                    if message["method"] == "session/load" {
                        self.say("an old conversation\n<landfall>COMPLETE</landfall>\n");
                    }
                    self.write(&good(json!({})));
                }
            }
            Some("session/set_mode" | "session/set_config_option") => {
                if self.is("no-mode") {
                    self.write(&bad(-32602, "not as root", Value::Null));
                } else {
                    self.write(&good(json!({})));
                }
            }
            Some("session/prompt") => return self.prompted(message, &good, &bad),
            Some("session/cancel") => {}
            other => panic!("unexpected {other:?}"),
        }
        Ok(())
    }

    fn prompted(
        &mut self,
        message: &Value,
        good: &dyn Fn(Value) -> Value,
        bad: &dyn Fn(i64, &str, Value) -> Value,
    ) -> Result<(), ExitCode> {
        let prompt = message["params"]["prompt"][0]["text"].as_str().expect("a text").to_owned();
        if self.is("die-with-an-heir") {
            // It holds our output open after we are gone.
            #[expect(clippy::zombie_processes, reason = "it outlives us; the test ends it")]
            let heir = std::process::Command::new("sleep").arg("30").spawn().expect("sleep is everywhere");
            self.say(&format!("heir {}", heir.id()));
            return Err(ExitCode::from(7));
        }
        if self.is("die") {
            self.say("I am about to");
            return Err(ExitCode::from(7));
        }
        if self.is("limit") {
            self.say("You have hit your limit");
            self.write(&bad(-32603, "limit", json!({"errorKind": "rate_limit"})));
            return Ok(());
        }
        if self.is("flood") {
            let much = "x".repeat(1 << 10);
            for _ in 0..20_000 {
                self.update(json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": much}}));
            }
            println!("{}", "y".repeat(20 << 20));
            self.update(json!({"sessionUpdate": "tool_call", "toolCallId": "big", "kind": "execute",
                "title": "cat big", "rawInput": {"command": "cat big"}}));
            self.update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "big", "status": "completed",
                "rawOutput": "z".repeat(3 << 20)}),
            );
        }
        if self.is("hang") || self.is("deaf") {
            self.say("working on it\n");
            loop {
                let Some(message) = self.read() else { return Err(ExitCode::SUCCESS) };
                if message["method"] == "session/cancel" && !self.is("deaf") {
                    self.write(&good(json!({"stopReason": "cancelled"})));
                    return Ok(());
                }
            }
        }
        self.say(&format!("asked: {prompt}\n"));
        let answer = self.ask(
            "session/request_permission",
            json!({"sessionId": SESSION,
            "toolCall": {"toolCallId": "t1", "title": "commit", "kind": "execute"},
            "options": if self.is("only-no") {
                json!([{"optionId": "n", "name": "No", "kind": "reject_once"}])
            } else {
                json!([{"optionId": "a", "name": "Always", "kind": "allow_always"},
                    {"optionId": "o", "name": "Once", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"}])
            }}),
        );
        if answer["result"]["outcome"]["optionId"] == "o" {
            std::fs::write("hello.txt", "hello\n").expect("a file");
            let git =
                |args: &[&str]| assert!(Command::new("git").args(args).status().expect("git").success());
            git(&["add", "-A"]);
            git(&["-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-qm", "hello"]);
            self.update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed",
                "title": "commit", "kind": "execute"}),
            );
        }
        let strange = self.ask("craft/strange", json!({}));
        assert_eq!(strange["error"]["code"], -32601);
        let file = self.ask("fs/read_text_file", json!({"sessionId": SESSION, "path": "/etc/passwd"}));
        assert_eq!(file["error"]["code"], -32601);
        self.update(json!({"sessionUpdate": "usage_update", "used": 1000, "size": 200_000,
            "cost": {"amount": 0.25, "currency": "USD"}}));
        self.say("all\ndone");
        let reason = if self.is("max") { "max_tokens" } else { "end_turn" };
        self.write(&good(json!({"stopReason": reason,
            "usage": {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3, "totalTokens": 18}})));
        Ok(())
    }
}
