//! What an agent at work says to its run. The sitter's socket is played by the test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::support::{Said, TIME_MAX, TestEnvironment, finish};

/// A socket that takes every word with the key `k1`, and tells the test.
pub struct Ear {
    pub socket: PathBuf,
    heard: mpsc::Receiver<Value>,
}

impl Ear {
    pub fn new(environment: &TestEnvironment) -> Self {
        let socket = environment.path("signal.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (tell, heard) = mpsc::channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
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
        Self { socket, heard }
    }

    pub fn next(&self) -> Value {
        self.heard.recv_timeout(TIME_MAX).expect("a word")
    }
}

fn signal(environment: &TestEnvironment, ear: &Ear, key: &str, args: &[&str], stdin: &str) -> Said {
    let mut command = environment.command(&[&["signal"], args].concat());
    command.env("LANDFALL_SIGNAL", &ear.socket).env("LANDFALL_KEY", key);
    finish(command.spawn().expect("the program starts"), stdin)
}

#[test]
fn c02_every_word_is_said_with_what_belongs_to_it() {
    let environment = TestEnvironment::without_repository(); // an agent may be anywhere
    let ear = Ear::new(&environment);
    for (args, stdin, say, text) in [
        (&["complete"][..], "", "complete", Value::Null),
        (&["complete", "all is well"], "", "complete", Value::Null),
        (&["blocked", "no", "network"], "", "blocked", json!("no network")),
        (&["pending", "-"], "which of\nthe two?\n", "pending", json!("which of\nthe two?")),
        (&["progress", "40%"], "", "progress", json!("40")),
        (&["step", "2"], "", "step", json!("2")),
        (&["check", "the parser is done"], "", "check", json!("the parser is done")),
        (&["resolved"], "", "resolved", Value::Null),
        (&["discovery", "-x is not a flag"], "", "discovery-local", json!("-x is not a flag")),
        (&["discovery-global", "use make"], "", "discovery-global", json!("use make")),
        (&["ask", "Which port?"], "", "ask", json!("Which port?")),
        (
            &["follow-up", "Mend the clock", "It is late."],
            "",
            "follow-up",
            json!("Mend the clock\nIt is late."),
        ),
        (&["follow-up", "Only a title"], "", "follow-up", json!("Only a title")),
    ] {
        let said = signal(&environment, &ear, "k1", args, stdin);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "noted\n"), "{args:?}: {said:?}");
        let heard = ear.next();
        assert_eq!((&heard["say"], &heard["text"]), (&json!(say), &text), "{args:?}");
    }
}

#[test]
fn what_cannot_be_said_is_refused_with_a_hint() {
    let environment = TestEnvironment::without_repository();
    let ear = Ear::new(&environment);
    for (args, code, why) in [
        (&["done"][..], 2, "known are complete"),
        (&["blocked"], 2, "`blocked` needs a text"),
        (&["progress", "101"], 2, "from 0 to 100"),
        (&["progress", "half"], 2, "from 0 to 100"),
    ] {
        let said = signal(&environment, &ear, "k1", args, "");
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(why), "{args:?}: {said:?}");
    }
    let said = signal(&environment, &ear, "another", &["complete"], "");
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(
        said.err.contains("the key is not this run's") && said.err.contains("leave it as it is"),
        "{said:?}"
    );

    let outside = environment.landfall(&["signal", "complete"]);
    assert_eq!(outside.code, Some(6), "{outside:?}");
    assert!(outside.err.contains("not inside a run of Landfall"), "{outside:?}");

    std::fs::remove_file(&ear.socket).expect("it was there");
    let over = signal(&environment, &ear, "k1", &["complete"], "");
    assert_eq!(over.code, Some(10), "{over:?}");
    assert!(over.err.contains("the run may be over"), "{over:?}");
}
