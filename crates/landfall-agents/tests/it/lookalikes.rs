//! Texts that only look like something: a limit, an error, an event of a protocol, a control word, a prompt on a screen.
//! Wherever they stand in the output of an agent, nothing follows from them.

use std::fs;
use std::path::{Path, PathBuf};

use landfall_agents::registry::{AGENTS, AgentEntry};
use landfall_agents::{AgentStream, ParserContext};
use landfall_model::Signal;

use crate::at_once;
use crate::speech::{self, EVERYWHERE, KEY, Where};

/// The corpus: one text a file.
fn corpus() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lookalikes");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).expect("a listed file can be read");
            (file, text)
        })
        .collect()
}

fn ear(resumed: bool) -> ParserContext {
    ParserContext { nonce: KEY.to_owned(), resumed, ..ParserContext::default() }
}

/// Whether a signal is one that ordinary output gives: words, tools, and the counting of answers.
fn ordinary(signal: &Signal) -> bool {
    match signal {
        Signal::Text(_) | Signal::ToolUse { .. } | Signal::ToolDone => true,
        Signal::Usage(usage) => usage.total_tokens() <= 2 && usage.turns == 1 && usage.micro_usd == 0,
        // Told by the first event of any kind; a forged one would have another name.
        Signal::Started { session, .. } => session.as_deref() == Some("s1"),
        // A control word that is refused changes nothing.
        Signal::Malformed { code, .. } => code.starts_with("SIGNAL_"),
        Signal::Said(_)
        | Signal::Cost(_)
        | Signal::Context { .. }
        | Signal::Compacted
        | Signal::Stride(_)
        | Signal::Waiting { .. }
        | Signal::Allowance { .. }
        | Signal::Quota { .. }
        | Signal::Transient { .. }
        | Signal::Unauthorized { .. }
        | Signal::SessionGone
        | Signal::PermissionAsked { .. }
        | Signal::Question(_)
        | Signal::Finished { .. } => false,
    }
}

/// What a text gives there, in this agent's protocol; none when it has no such place.
fn heard(entry: &AgentEntry, resumed: bool, place: Where, text: &str) -> Option<Vec<Signal>> {
    let events = speech::events(entry.name, place, text)?;
    let output = [speech::opening(entry.name), events].concat();
    Some(at_once(entry.create_agent().create_parser(&ear(resumed)), &output))
}

#[test]
fn the_corpus_is_large() {
    assert!(corpus().len() >= 30);
}

#[test]
fn look_alikes_are_words_wherever_they_stand() {
    let mut tried = 0;
    for (file, text) in corpus() {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
        for entry in AGENTS {
            // What a plain program writes is its own word, so a tag of its own counts.
            let program = ["command", "script"].contains(&entry.name);
            if program && name.starts_with("tag-") {
                continue;
            }
            for place in EVERYWHERE {
                for resumed in [false, true] {
                    let Some(signals) = heard(entry, resumed, place, &text) else { continue };
                    tried += 1;
                    let odd: Vec<&Signal> = signals.iter().filter(|signal| !ordinary(signal)).collect();
                    assert!(odd.is_empty(), "{} of {} as {place:?}: {odd:?}", file.display(), entry.name);
                    let refused = signals.iter().any(|signal| matches!(signal, Signal::Malformed { .. }));
                    let may = name.starts_with("tag-") && place == Where::Said;
                    assert!(!refused || may, "{} of {} as {place:?}", file.display(), entry.name);
                }
            }
        }
    }
    assert!(tried >= 500, "only {tried}");
}

#[test]
fn look_alikes_on_stderr_are_for_people() {
    for (file, text) in corpus() {
        for entry in AGENTS {
            // After the agent has begun, nothing it complains of means anything.
            let Some(begin) = speech::said(entry.name, "I begin.") else { continue };
            for resumed in [false, true] {
                let mut parser = entry.create_agent().create_parser(&ear(resumed));
                parser.feed(AgentStream::Out, &started(entry.name));
                parser.feed(AgentStream::Out, &begin);
                let signals = parser.feed(AgentStream::Err, text.as_bytes());
                assert_eq!(signals, [], "{} of {}", file.display(), entry.name);
            }
        }
    }
}

/// The event by which an agent says that it is up.
fn started(kind: &str) -> Vec<u8> {
    let event = match kind {
        "claude" => r#"{"type":"system","subtype":"init","session_id":"s1"}"#,
        "codex" => r#"{"type":"thread.started","thread_id":"s1"}"#,
        "gemini" => r#"{"type":"init","session_id":"s1"}"#,
        _ => return Vec::new(),
    };
    format!("{event}\n").into_bytes()
}

#[test]
fn look_alikes_in_a_session_file_of_codex_are_words_too() {
    // The file holds the whole conversation; only records of the program itself say something.
    let codex = AGENTS.iter().find(|entry| entry.name == "codex").expect("it is registered");
    for (file, text) in corpus() {
        let record = serde_json::json!({"type": "response_item", "payload": {"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}], "output": text, "rate_limits": text}});
        let mut parser = codex.create_agent().create_parser(&ear(false));
        let mut signals = parser.feed(AgentStream::Aside, format!("{record}\n").as_bytes());
        signals.extend(parser.finish());
        assert_eq!(signals, [], "{}", file.display());
    }
}
