//! The tools of an agent at work, through the program itself. What each tool does is tested beside it.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::signal::Ear;
use crate::support::TestEnvironment;

#[test]
fn the_program_serves_tools_that_speak_to_the_run() {
    let environment = TestEnvironment::without_repository();
    let ear = Ear::new(&environment);
    let mut command = environment.command(&["mcp", "--agent"]);
    command.env("LANDFALL_SIGNAL", &ear.socket).env("LANDFALL_KEY", "k1");
    let mut child = command.spawn().expect("the program starts");
    let mut to = child.stdin.take().expect("piped");
    let mut from = BufReader::new(child.stdout.take().expect("piped"));
    let mut ask = |message: Value| -> Value {
        writeln!(to, "{message}").expect("it reads");
        let mut line = String::new();
        from.read_line(&mut line).expect("readable");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let hello = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":
        "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    assert_eq!(hello["result"]["serverInfo"]["name"], "landfall", "{hello}");
    let answer = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "signal", "arguments": {"word": "blocked", "text": "no network"}}}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!((&ear.next()["say"], child.try_wait().expect("ours")), (&json!("blocked"), None));
    drop(to);
    assert_eq!(child.wait().expect("ours").code(), Some(0));
}
