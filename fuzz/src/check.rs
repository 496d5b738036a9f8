//! What must hold for every parser, whatever an agent writes. The replay test of `landfall-agents` takes in this file
//! as it stands.

use landfall_agents::files::{LoopFileKind, LoopFileParser};
use landfall_agents::registry::find_agent;
use landfall_agents::tmux::{
    ScreenPromptKind, ScreenState, TerminalAgentKind, TerminalScreen, is_destructive, read_screen,
    visible_messages,
};
use landfall_agents::{
    AgentStream, ControlTagParser, LINE_MAX, LineKind, OutputParser, ParserContext, StreamLine,
};
use landfall_model::{AgentUsage, Signal};

/// The key of the run.
pub const KEY: &str = "k7";

/// The key of a run that no input knows.
const OTHER_KEY: &str = "5d0f1c38-9b1e-4a58-b2d5-40a1a9b1f0c7";

/// Feeds an input to the parser of this agent, at once and in pieces, and looks at what comes out.
pub fn parser(kind: &str, data: &[u8]) {
    let Ok(entry) = find_agent(kind) else { return };
    let (resumed, data) = match data.strip_prefix(b"%%resumed\n") {
        Some(data) => (true, data),
        None => (false, data),
    };
    let before =
        AgentUsage { tokens_in: 1000, tokens_out: 50, turns: 1, micro_usd: 5000, ..AgentUsage::default() };
    let ear = ParserContext { nonce: KEY.to_owned(), resumed, before };
    let parts = parts(data);
    let (whole, unknown) = hear(entry.create_agent().create_parser(&ear), &parts, |_| usize::MAX);
    // Cut as the input itself says, so that a finding can be played again.
    let mut seed = data.iter().fold(0x9e37_79b9_u32, |seed, byte| seed.rotate_left(5) ^ u32::from(*byte)) | 1;
    let pieces = hear(entry.create_agent().create_parser(&ear), &parts, |room| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        1 + seed as usize % room.clamp(1, 97)
    });
    assert_eq!(pieces, (whole.clone(), unknown), "pieces give something else");

    let lines = data.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    assert!(unknown <= lines, "{unknown} lines of {lines} are unknown");
    assert!(whole.len() <= data.len() + 16, "{} signals of {} bytes", whole.len(), data.len());
    let words: usize = whole.iter().map(weight).sum();
    assert!(words <= 16 * data.len() + 4096, "{words} bytes of words of {} bytes", data.len());
    for signal in &whole {
        match signal {
            Signal::SessionGone => assert!(resumed || kind == "acp", "nothing was resumed"),
            Signal::Text(text) => assert!(!text.is_empty() && text.len() <= 3 * LINE_MAX),
            _ => {}
        }
    }
    // The same words in another run, whose key they cannot know.
    let (other, _) = hear(
        entry.create_agent().create_parser(&ParserContext { nonce: OTHER_KEY.to_owned(), ..ear }),
        &parts,
        |_| usize::MAX,
    );
    for signal in other {
        let forged = matches!(signal, Signal::Said(_)) && !["command", "script"].contains(&kind);
        assert!(!forged, "{signal:?} without the key");
    }
}

/// Takes an input for a screen of each program. A screen that asks for something that cannot be taken back is never
/// answered.
pub fn screen(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines: Vec<String> = text.split('\n').map(ToOwned::to_owned).collect();
    let title = lines.pop().unwrap_or_default();
    let cursor =
        data.iter().fold(0, |sum: usize, byte| sum.wrapping_add(usize::from(*byte))) % (lines.len() + 2);
    let screen = TerminalScreen { lines, cursor, title };
    for cli in [TerminalAgentKind::Claude, TerminalAgentKind::Codex, TerminalAgentKind::Other] {
        let seen = read_screen(cli, &screen);
        assert_eq!(read_screen(cli, &screen), seen, "the same screen shows the same");
        if let ScreenState::Ask(ask) = &seen {
            let asks_leave = matches!(
                ask.why,
                ScreenPromptKind::Permission
                    | ScreenPromptKind::YesNo
                    | ScreenPromptKind::Continue
                    | ScreenPromptKind::Question
            );
            let answered = asks_leave && ask.key.is_some() && is_destructive(&ask.text);
            assert!(!answered, "answered: {ask:?}");
        }
        let shown: usize = screen.lines.iter().map(|line| line.len() + 1).sum();
        let words: usize = visible_messages(cli, &screen).iter().map(String::len).sum();
        assert!(words <= 2 * shown + 64, "{words} bytes of messages on a screen of {shown}");
    }
    assert_eq!(is_destructive(&text), is_destructive(&text), "the same text is the same");
}

/// Reads a text line by line as the control words of a model and of a program.
pub fn tags(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (mut model, mut program) =
        (ControlTagParser::for_model_output(KEY), ControlTagParser::for_program_output(KEY));
    for line in text.split('\n') {
        let whole = StreamLine { text: line.to_owned(), whole: true };
        let (model, program) = (model.hear(&whole), program.hear(&whole));
        match (&model, &program) {
            (LineKind::Signal(Signal::Said(said)), _) => {
                assert!(line.contains("key=") && line.contains(KEY), "{said:?} without the key: {line}");
                assert_eq!(model, program, "a program may say what a model may: {line}");
            }
            (LineKind::Signal(Signal::Malformed { text, .. }), LineKind::Signal(_)) => {
                assert!(line.contains(text.as_str()) && text.starts_with('<'), "{line}");
            }
            (LineKind::Words | LineKind::Code, _) => assert_eq!(model, program, "{line}"),
            other => panic!("{other:?}: {line}"),
        }
        let cut = ControlTagParser::for_program_output(KEY)
            .hear(&StreamLine { text: line.to_owned(), whole: false });
        assert!(!matches!(cut, LineKind::Signal(_)), "a line that was cut says nothing: {line}");
    }
}

/// The input cut into its streams.
fn parts(data: &[u8]) -> Vec<(AgentStream, Vec<u8>)> {
    let mut parts: Vec<(AgentStream, Vec<u8>)> = vec![(AgentStream::Out, Vec::new())];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let stream = match line {
            b"%%out\n" => AgentStream::Out,
            b"%%err\n" => AgentStream::Err,
            b"%%aside\n" => AgentStream::Aside,
            _ => {
                parts.last_mut().expect("there is a first one").1.extend_from_slice(line);
                continue;
            }
        };
        parts.push((stream, Vec::new()));
    }
    parts
}

fn hear(
    mut parser: Box<dyn OutputParser + Send>,
    parts: &[(AgentStream, Vec<u8>)],
    mut size: impl FnMut(usize) -> usize,
) -> (Vec<Signal>, u64) {
    let mut signals = Vec::new();
    for (stream, bytes) in parts {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(size(rest.len()).min(rest.len()));
            signals.extend(parser.feed(*stream, piece));
            rest = later;
        }
    }
    signals.extend(parser.finish());
    (signals, parser.raw_lines_unknown())
}

/// Bytes of words in a signal.
fn weight(signal: &Signal) -> usize {
    match signal {
        Signal::Text(text)
        | Signal::Question(text)
        | Signal::Transient { detail: text }
        | Signal::Unauthorized { detail: text }
        | Signal::PermissionAsked { what: text }
        | Signal::Malformed { text, .. }
        | Signal::Finished { text, .. } => text.len(),
        Signal::ToolUse { name, detail } => name.len() + detail.len(),
        Signal::Started { session, model } => {
            session.as_ref().map_or(0, String::len) + model.as_ref().map_or(0, String::len)
        }
        Signal::Said(said) => format!("{said:?}").len(),
        Signal::Stride(stride) => format!("{stride:?}").len(),
        Signal::Waiting { .. } => 0,
        Signal::ToolDone
        | Signal::Usage(_)
        | Signal::Cost(_)
        | Signal::Context { .. }
        | Signal::Compacted
        | Signal::Allowance { .. }
        | Signal::Quota { .. }
        | Signal::SessionGone => 0,
    }
}

/// Takes an input for each of the files of an agent's own loop. Each content says at most a step and an end, and only once.
pub fn files(data: &[u8]) {
    for file in [LoopFileKind::Signal, LoopFileKind::Status, LoopFileKind::Front] {
        let mut files = LoopFileParser::default();
        let heard = files.feed(file, data);
        assert!(heard.len() <= 2, "{heard:?}");
        for signal in &heard {
            match signal {
                Signal::Stride(stride) => {
                    assert!(!stride.step.is_empty() && stride.to_string().len() < 200, "{stride:?}");
                }
                Signal::Said(_) | Signal::Malformed { .. } => {}
                other => panic!("{other:?} in a file"),
            }
        }
        if !heard.is_empty() {
            assert_eq!(files.feed(file, data), [], "it was said twice");
        }
        assert!(files.finish().len() <= 2);
    }
}
