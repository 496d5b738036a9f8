//! Lines as they were printed into lines to read. Each line is understood by itself, so that a page means the same wherever
//! it begins.

use landfall_agents::{Agent, AgentStream, ParserContext, registry};
use landfall_api::{Level, Said, ToolOutcome};
use landfall_engine::engine::load_settings;
use landfall_engine::model::{AgentFinish, Signal};
use landfall_engine::settings::Settings;
use serde_json::Value;

use super::spool::SpoolLine;
use crate::project::engine_at::EngineLocation;
use crate::project::query_context::Query;

const TEXT_MAX: usize = 16 * 1024; // of one line to read
const SAID_MAX: usize = 1_000; // lines of one message

/// How lines are to be understood.
pub(super) enum LineFormat {
    /// Not at all.
    Raw,
    /// As the words of a program.
    Plain,
    /// As this agent speaks.
    Agent(Box<dyn Agent>),
}

impl LineFormat {
    /// The voice of the agent of a profile; that of any program if it is not known any more.
    pub fn for_profile(look: &Query<'_>, profile: Option<&str>) -> Self {
        let profile = profile.unwrap_or("default");
        let kind_in = |settings: &Settings| settings.agents.get(profile).map(|profile| profile.kind.clone());
        // The run under way has read the settings already. Settings that are broken complain elsewhere.
        let at_work = match look.engine {
            EngineLocation::Here { site } => kind_in(&site.settings),
            EngineLocation::There { .. } | EngineLocation::Resting { .. } | EngineLocation::Nowhere => None,
        };
        let kind = at_work.or_else(|| kind_in(&load_settings(&look.place.root).ok()?));
        let entry = kind.and_then(|kind| registry::find_agent(&kind).ok());
        entry.map_or(Self::Plain, |entry| Self::Agent(entry.create_agent()))
    }

    pub fn render_line(&self, line: &SpoolLine) -> Vec<Said> {
        let text = String::from_utf8_lossy(&line.bytes);
        let said = |level: Level, text: &str| to_said(line, level, text);
        let agent = match self {
            Self::Raw => return vec![said(Level::Raw, &text)],
            Self::Plain => return vec![said(guess_level(&text), &text)],
            Self::Agent(agent) => agent,
        };
        let mut parser = agent.create_parser(&ParserContext::default());
        let mut signals = parser.feed(AgentStream::Out, &line.bytes);
        signals.extend(parser.feed(AgentStream::Out, b"\n"));
        signals.extend(parser.finish());
        let at_ms = parse_sent_at(&text);
        let mut made: Vec<Said> = Vec::new();
        for (level, words) in signals.into_iter().flat_map(describe_signal) {
            made.extend(words.lines().take(SAID_MAX).map(|words| said(level, words)));
        }
        if let Some((outcome, printed)) = parse_tool_result(&text) {
            let mut lines = printed.lines().filter(|line| !line.trim().is_empty()).take(SAID_MAX).peekable();
            let nothing = lines.peek().is_none().then_some("(printed nothing)");
            made.extend(
                lines.chain(nothing).map(|line| Said { tool: Some(outcome), ..said(Level::Tool, line) }),
            );
        }
        if made.is_empty() {
            // It says nothing to a person, but it was printed.
            let level = if text.trim_start().starts_with('{') { Level::Debug } else { guess_level(&text) };
            made.push(said(level, &text));
        }
        for it in &mut made {
            it.at_ms = at_ms;
        }
        made
    }
}

fn to_said(line: &SpoolLine, level: Level, text: &str) -> Said {
    let end = text.floor_char_boundary(TEXT_MAX);
    let cut = line.cut || end < text.len();
    Said { at: line.at, level, at_ms: None, text: text[..end].to_owned(), cut, tool: None }
}

/// What a signal says to a person.
fn describe_signal(signal: Signal) -> Option<(Level, String)> {
    Some(match signal {
        Signal::Started { session, model } => {
            let named = |what: &str, it: Option<String>| it.map(|it| format!("{what} {it}"));
            let parts = [named("model", model), named("session", session)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            (Level::Info, format!("started: {}", parts.join(", ")))
        }
        Signal::Text(text) => (Level::Text, text),
        Signal::ToolUse { name, detail } => (Level::Tool, format!("{name} {detail}").trim_end().to_owned()),
        Signal::ToolDone => return None,
        Signal::Usage(usage) => (
            Level::Debug,
            format!(
                "used {} tokens read, {} written, {}",
                usage.tokens_in,
                usage.tokens_out,
                landfall_text::pluralize(usage.turns, "turn")
            ),
        ),
        Signal::Cost(micro) => {
            (Level::Debug, format!("cost {} so far", landfall_text::format_usd(micro as f64 / 1e6)))
        }
        Signal::Context { used, size } => (Level::Debug, format!("context: {used} of {size} tokens")),
        Signal::Compacted => (Level::Info, "summed up and dropped its earlier context".to_owned()),
        Signal::Allowance { used_percent, .. } => {
            (Level::Info, format!("{used_percent} % of the account's allowance is used"))
        }
        Signal::Quota { .. } => (Level::Warn, "the account is used up".to_owned()),
        Signal::Transient { detail } => (Level::Warn, format!("passing trouble: {detail}")),
        Signal::Unauthorized { detail } => (Level::Error, format!("not logged in: {detail}")),
        Signal::SessionGone => (Level::Warn, "the session to go on with is gone".to_owned()),
        Signal::PermissionAsked { what } => (Level::Warn, format!("was refused leave: {what}")),
        Signal::Question(text) => (Level::Warn, format!("asks: {text}")),
        Signal::Said(said) => (Level::Info, format!("{said:?}")),
        Signal::Waiting { .. } => (Level::Debug, "waits for the next step".to_owned()),
        Signal::Stride(stride) => (Level::Info, format!("its own loop: {stride}")),
        Signal::Malformed { code, text } => {
            (Level::Warn, format!("a control word that is none ({code}): {text}"))
        }
        Signal::Finished { how, text } => match how {
            AgentFinish::Success => (Level::Info, format!("finished: {text}")),
            AgentFinish::Error => (Level::Error, format!("finished with an error: {text}")),
            AgentFinish::Limit => (Level::Warn, format!("finished at a limit: {text}")),
            AgentFinish::Interrupted => (Level::Warn, format!("interrupted: {text}")),
        },
    })
}

/// What a tool printed, if a message of an agent says so. The agents put it in different places: a block of type `tool_result`
/// in a message, an event of that type, or an item that has `aggregated_output`.
fn parse_tool_result(message: &str) -> Option<(ToolOutcome, String)> {
    if !message.contains("tool_result") && !message.contains("aggregated_output") {
        return None;
    }
    let message: Value = serde_json::from_str(message).ok()?;
    let outcome = |has_failed: bool| if has_failed { ToolOutcome::Failed } else { ToolOutcome::Succeeded };
    if let Some(blocks) = message["message"]["content"].as_array() {
        let results: Vec<&Value> = blocks.iter().filter(|block| block["type"] == "tool_result").collect();
        let has_failed = results.iter().any(|block| block["is_error"] == true);
        let texts: Vec<String> = results.iter().map(|block| value_text(&block["content"])).collect();
        return (!results.is_empty()).then(|| (outcome(has_failed), texts.join("\n")));
    }
    if message["type"] == "tool_result" {
        let text = [&message["output"], &message["content"], &message["error"]["message"]]
            .into_iter()
            .map(value_text)
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        return Some((outcome(message["status"] == "error" || message["is_error"] == true), text));
    }
    let item = &message["item"];
    let printed = item["aggregated_output"].as_str().filter(|_| message["type"] == "item.completed")?;
    Some((outcome(item["exit_code"].as_i64().is_some_and(|code| code != 0)), printed.to_owned()))
}

/// The text of a value that is one, or a list of blocks with texts.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// What a line of a program is, by its first words: compilers and test runners begin with them.
fn guess_level(text: &str) -> Level {
    let line = text.trim_start_matches(|c: char| c.is_whitespace() || c == '[' || c == '\u{1b}');
    let starts = |words: &[&str]| {
        words.iter().any(|word| line.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
    };
    if starts(&["error", "fatal", "panic", "fail", "traceback", "not ok"])
        || text.contains("... FAILED")
        || text.contains("panicked at")
    {
        Level::Error
    } else if starts(&["warn"]) {
        Level::Warn
    } else {
        Level::Raw
    }
}

/// When a message was sent, if it says so.
fn parse_sent_at(text: &str) -> Option<i64> {
    if !text.contains("\"timestamp\"") {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    match value.get("timestamp")? {
        Value::String(text) => Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
        Value::Number(number) => {
            let number = number.as_i64()?;
            Some(if number < 100_000_000_000 { number * 1_000 } else { number }) // seconds, or milliseconds
        }
        _ => None,
    }
}

/// Which lines are wanted.
pub(super) struct LineFilter<'a> {
    search: String,
    levels: &'a [Level],
}

impl<'a> LineFilter<'a> {
    pub fn new(search: &str, levels: &'a [Level]) -> Self {
        Self { search: search.to_lowercase(), levels }
    }

    pub fn matches_filter(&self, said: &Said) -> bool {
        (self.levels.is_empty() || self.levels.contains(&said.level))
            && (self.search.is_empty() || said.text.to_lowercase().contains(&self.search))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> SpoolLine {
        SpoolLine { at: 7, bytes: text.as_bytes().to_vec(), cut: false }
    }

    #[test]
    fn lines_of_programs_keep_their_text_and_show_what_is_wrong() {
        let level = |text: &str| LineFormat::Plain.render_line(&line(text))[0].level;
        assert_eq!(level("error[E0425]: cannot find value"), Level::Error);
        assert_eq!(level("test parser::empty ... FAILED"), Level::Error);
        assert_eq!(level("warning: unused"), Level::Warn);
        assert_eq!(level("   Compiling landfall"), Level::Raw);
        assert_eq!(level("ünïcode"), Level::Raw);
        assert_eq!(LineFormat::Raw.render_line(&line("error: x"))[0].level, Level::Raw);
    }

    #[test]
    fn every_line_of_every_agent_says_something_and_never_panics() {
        let odd = ["", "{", "{}", "null", "[1]", "\u{1b}[31mred", "{\"type\":\"assistant\"}", "plain words"];
        for entry in registry::AGENTS {
            let voice = LineFormat::Agent(entry.create_agent());
            for text in odd {
                assert!(!voice.render_line(&line(text)).is_empty(), "{}: {text}", entry.name);
            }
        }
    }

    #[test]
    fn what_a_tool_printed_is_shown_in_place_of_the_message_that_carries_it() {
        let check = |agent: &str, message: &str, expected: &[(Option<ToolOutcome>, &str)]| {
            let voice = LineFormat::Agent(registry::find_agent(agent).expect("it is known").create_agent());
            let said = voice.render_line(&line(message));
            let seen: Vec<_> = said.iter().map(|it| (it.tool, it.text.as_str())).collect();
            assert_eq!(seen, expected, "{agent}");
        };
        let (ok, failed) = (Some(ToolOutcome::Succeeded), Some(ToolOutcome::Failed));
        let block = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"one\n\ntwo","is_error":false}]}}"#;
        check("claude", block, &[(ok, "one"), (ok, "two")]);
        let error = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no such file"}],"is_error":true}]}}"#;
        check("claude", error, &[(failed, "no such file")]);
        let item = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","aggregated_output":"","exit_code":1}}"#;
        let voice = LineFormat::Agent(registry::find_agent("codex").expect("it is known").create_agent());
        let said = voice.render_line(&line(item));
        assert!(said.iter().any(|it| it.tool == failed && it.text == "(printed nothing)"), "{said:?}");
    }

    #[test]
    fn an_agent_that_speaks_json_is_shown_in_its_own_words() {
        let voice = LineFormat::Agent(registry::find_agent("claude").expect("it is known").create_agent());
        let text = r#"{"type":"assistant","timestamp":"2026-03-02T12:00:00Z","message":{"role":"assistant","content":[{"type":"text","text":"one\ntwo"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}"#;
        let said = voice.render_line(&line(text));
        let seen: Vec<(Level, &str)> = said.iter().map(|it| (it.level, it.text.as_str())).collect();
        assert!(seen.contains(&(Level::Text, "one")) && seen.contains(&(Level::Text, "two")), "{seen:?}");
        assert!(seen.iter().any(|(level, text)| *level == Level::Tool && text.contains("ls")), "{seen:?}");
        assert!(said.iter().all(|it| it.at == 7 && it.at_ms == Some(1_772_452_800_000)));
    }
}
