//! What holds for every agent. The tests walk the registry, so a new agent is under them from its first line on.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use landfall_agents::registry::{AGENTS, AgentEntry, UnknownAgent, find_agent};
use landfall_agents::{AgentStream, LINE_MAX, LaunchCommand, LaunchRequest, OutputParser, ParserContext};
use landfall_model::{AgentFinish, AgentUsage, ControlSignal, Signal};

use crate::speech::{self, EVERYWHERE, KEY, Where, keyed};
use crate::{at_once, brief, render};

/// Recorded outputs of one agent, by name.
fn transcripts(agent: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts").join(agent);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("agent `{agent}` has no transcripts in {}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "out"))
        .collect();
    files.sort();
    files
}

/// One recorded run: what it wrote, what it keeps, and what was known before.
struct Recording {
    out: Vec<u8>,
    err: Vec<u8>,
    aside: Vec<u8>,
    ear: ParserContext,
}

impl Recording {
    fn read(file: &Path) -> Self {
        let beside = |extension: &str| fs::read(file.with_extension(extension)).unwrap_or_default();
        let story = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        // The run before the resumed one is the story `success`, with the same figures for every agent.
        let before = AgentUsage {
            tokens_in: 3000,
            tokens_cached: 600,
            tokens_out: 60,
            turns: 2,
            micro_usd: 10_920,
            ..AgentUsage::default()
        };
        let resumed = ["resumed", "session-gone"].contains(&story);
        let before = if story == "resumed" { before } else { AgentUsage::default() };
        Self {
            out: fs::read(file).expect("a listed file can be read"),
            err: beside("err"),
            aside: beside("aside"),
            ear: ParserContext { nonce: KEY.to_owned(), resumed, before },
        }
    }

    fn hear(&self, entry: &AgentEntry, size: usize) -> Vec<Signal> {
        let mut parser = entry.create_agent().create_parser(&self.ear);
        let mut signals = Vec::new();
        for (stream, bytes) in
            [(AgentStream::Out, &self.out), (AgentStream::Err, &self.err), (AgentStream::Aside, &self.aside)]
        {
            signals.extend(bytes.chunks(size).flat_map(|piece| parser.feed(stream, piece)));
        }
        signals.extend(parser.finish());
        signals
    }
}

fn ear() -> ParserContext {
    ParserContext { nonce: KEY.to_owned(), ..ParserContext::default() }
}

fn parser(entry: &AgentEntry) -> Box<dyn OutputParser + Send> {
    entry.create_agent().create_parser(&ear())
}

/// The same output in pieces of this size.
fn in_pieces(mut parser: Box<dyn OutputParser + Send>, size: usize, output: &[u8]) -> Vec<Signal> {
    let mut signals: Vec<Signal> =
        output.chunks(size).flat_map(|bytes| parser.feed(AgentStream::Out, bytes)).collect();
    signals.extend(parser.finish());
    signals
}

/// The control words among them, well-formed or not.
fn controls(signals: Vec<Signal>) -> Vec<Signal> {
    let control = |signal: &Signal| matches!(signal, Signal::Said(_) | Signal::Malformed { .. });
    signals.into_iter().filter(control).collect()
}

/// Agents whose words a test can put into their protocol.
fn speakers() -> impl Iterator<Item = &'static AgentEntry> {
    AGENTS.iter().filter(|entry| speech::said(entry.name, "hello").is_some())
}

/// Agents with a model behind them.
fn models() -> impl Iterator<Item = &'static AgentEntry> {
    AGENTS.iter().filter(|entry| !["command", "script"].contains(&entry.name))
}

fn launch(entry: &AgentEntry, brief: &LaunchRequest) -> LaunchCommand {
    entry
        .create_agent()
        .build_launch_command(brief)
        .unwrap_or_else(|error| panic!("{} is not launched: {error}", entry.name))
}

/// Everything an agent is told but the environment that all have: arguments, files, and its own variables.
fn told(launch: &LaunchCommand) -> String {
    let argv = launch.argv.iter().map(|word| word.to_string_lossy().into_owned());
    let files = launch.files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
    let env = launch.env.iter().filter(|(key, _)| !key.to_string_lossy().starts_with("LANDFALL_"));
    let env = env.map(|(_, value)| value.to_string_lossy().into_owned());
    argv.chain(files).chain(env).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_registry_is_in_order_and_finds_what_is_in_it() {
    assert!(AGENTS.is_sorted_by_key(|entry| entry.name));
    for entry in AGENTS {
        assert_eq!(find_agent(entry.name).map(|found| found.name), Ok(entry.name));
        assert!(entry.about.ends_with('.') && entry.about.len() < 80, "{}", entry.about);
    }
}

#[test]
fn an_unknown_kind_is_refused_with_the_known_ones() {
    let slip = find_agent("comand").err().expect("there is no such agent");
    assert_eq!(slip.nearest, Some("command"));
    assert_eq!(slip.to_string(), "unknown agent `comand`");
    let stranger: UnknownAgent = find_agent("zz").err().expect("there is no such agent");
    assert_eq!(stranger.nearest, None);
    assert!(AGENTS.iter().all(|entry| stranger.hint().contains(entry.name)));
}

#[test]
fn every_agent_says_what_it_needs() {
    for entry in AGENTS {
        let needs = entry.create_agent().list_requirements(&brief(entry.name).profile);
        assert!(needs.program.is_some() || entry.name == "script", "{}", entry.name);
        assert!(!needs.install.is_empty() && !needs.login.is_empty(), "{}", entry.name);
        for place in &needs.state {
            assert!(place.starts_with("~/") || place.starts_with('/'), "{}: {place}", entry.name);
            assert!(place.len() > 3, "{} would be given a whole home: {place}", entry.name);
        }
    }
}

#[test]
fn every_agent_launches_and_keeps_prompt_and_key_out_of_argv() {
    for entry in AGENTS {
        for resume in [None, Some("5e55107d-0000-4000-8000-000000000001".to_owned())] {
            let mut brief = brief(entry.name);
            brief.resume = resume;
            entry.create_agent().check_profile(&brief.profile).expect("the standard profile is fine");
            let launch = launch(entry, &brief);
            assert!(!launch.argv.is_empty(), "{}", entry.name);
            for word in &launch.argv {
                let word = word.to_string_lossy();
                assert!(!word.contains("CANARY") && !word.contains(&brief.body), "{}: {word}", entry.name);
            }
            for (path, bytes) in &launch.files {
                assert!(path.starts_with(&brief.attempt_dir), "{}: {}", entry.name, path.display());
                assert!(
                    !String::from_utf8_lossy(bytes).contains(KEY),
                    "{}: the key is in a file",
                    entry.name
                );
            }
            for (key, value) in &launch.env {
                let canary = value.to_string_lossy().contains("CANARY");
                assert!(!canary || key == "LANDFALL_KEY", "{}: {key:?}", entry.name);
            }
            for (key, value) in [("LANDFALL_TASK", "T7"), ("LANDFALL_KEY", KEY)] {
                assert!(launch.env.contains(&(key.into(), value.into())), "{}: {key}", entry.name);
            }
        }
    }
}

#[test]
fn keys_of_accounts_come_from_the_profile_or_not_at_all() {
    let secret = |key: &OsStr| {
        let key = key.to_string_lossy();
        !key.starts_with("LANDFALL_") && ["KEY", "TOKEN", "SECRET"].iter().any(|word| key.contains(word))
    };
    for entry in AGENTS {
        let mut brief = brief(entry.name);
        let bare = launch(entry, &brief);
        assert!(!bare.env.iter().any(|(key, _)| secret(key)), "{}", entry.name);
        brief.profile.env.insert("ANTHROPIC_API_KEY".to_owned(), "from the profile".to_owned());
        let asked = launch(entry, &brief);
        assert!(
            asked.env.contains(&("ANTHROPIC_API_KEY".into(), "from the profile".into())),
            "{}",
            entry.name
        );
    }
}

#[test]
fn the_profile_has_the_last_word_about_the_environment() {
    for entry in AGENTS {
        let usual = launch(entry, &brief(entry.name));
        let ours = |key: &OsStr| key.to_string_lossy().starts_with("LANDFALL_") || key == "TMPDIR";
        for (key, _) in usual.env.iter().filter(|(key, _)| !ours(key)) {
            let mut brief = brief(entry.name);
            brief.profile.env.insert(key.to_string_lossy().into_owned(), "mine".to_owned());
            let launch = launch(entry, &brief);
            let last = launch.env.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_os_str());
            assert_eq!(last, Some(OsStr::new("mine")), "{}: {key:?}", entry.name);
        }
    }
}

#[test]
fn an_agent_with_a_model_is_told_all_its_profile_says() {
    for entry in models() {
        let mut brief = brief(entry.name);
        brief.profile.model = Some("MODEL-7".to_owned());
        brief.profile.flags = vec!["--my-flag".to_owned()];
        brief.resume = Some("SESSION-7".to_owned());
        let words = told(&launch(entry, &brief));
        for word in ["my-agent", "--unattended", "MODEL-7", "--my-flag", "SESSION-7", "/usr/bin/landfall"] {
            assert!(words.contains(word), "{} is not told {word}: {words}", entry.name);
        }
        brief.profile.mcp = false;
        let words = told(&launch(entry, &brief));
        assert!(!words.contains("\"mcp\""), "{} has the server all the same: {words}", entry.name);
    }
}

#[test]
fn profiles_cannot_set_what_is_ours_or_what_is_no_name() {
    for entry in AGENTS {
        for (key, value) in [("LANDFALL_TASK", "T1"), ("", "x"), ("A=B", "x"), ("A", "x\0y")] {
            let mut brief = brief(entry.name);
            brief.profile.env.insert(key.to_owned(), value.to_owned());
            assert!(entry.create_agent().check_profile(&brief.profile).is_err(), "{}: {key}", entry.name);
            assert!(entry.create_agent().build_launch_command(&brief).is_err(), "{}: {key}", entry.name);
        }
    }
}

#[test]
fn transcripts_give_the_expected_signals_however_they_arrive() {
    for entry in AGENTS {
        let files = transcripts(entry.name);
        assert!(!files.is_empty(), "agent `{}` has no transcript", entry.name);
        for file in files {
            let recording = Recording::read(&file);
            let signals = recording.hear(entry, usize::MAX);
            expect_file![file.with_extension("signals")].assert_eq(&render(&signals));
            for size in [1, 2, 3, 7, 64, 4096] {
                assert_eq!(recording.hear(entry, size), signals, "{} in pieces of {size}", file.display());
            }
        }
    }
}

#[test]
fn no_run_ends_well_without_its_closing_word() {
    let closed = |signals: &[Signal]| {
        signals.iter().any(|signal| matches!(signal, Signal::Finished { how: AgentFinish::Success, .. }))
    };
    for entry in AGENTS.iter().filter(|entry| entry.create_agent().has_closing_message()) {
        let mut good = 0;
        for file in transcripts(entry.name) {
            let mut recording = Recording::read(&file);
            if !closed(&recording.hear(entry, 4096)) {
                continue;
            }
            good += 1;
            // Every earlier end of the stream, at a line and in the middle of one.
            let ends: Vec<usize> = recording
                .out
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at)
                .collect();
            for end in &ends[..ends.len() - 1] {
                for end in [*end, end.saturating_sub(9)] {
                    let shorter = at_once(parser(entry), &recording.out[..end]);
                    assert!(!closed(&shorter), "{} cut at {end}", file.display());
                }
            }
            recording.out.truncate(ends[ends.len() - 1].saturating_sub(9));
            assert!(!closed(&recording.hear(entry, 4096)), "{} without its last letters", file.display());
        }
        assert!(good > 0, "agent `{}` has no transcript of a success", entry.name);
    }
}

#[test]
fn a_model_is_heard_with_the_key_and_only_in_its_own_words() {
    for entry in speakers() {
        let heard = controls(at_once(
            parser(entry),
            &speech::said(entry.name, &keyed("COMPLETE")).expect("it speaks"),
        ));
        assert_eq!(heard, [Signal::Said(ControlSignal::Complete)], "{}", entry.name);
        for place in EVERYWHERE.into_iter().filter(|place| *place != Where::Said) {
            for word in ["COMPLETE", "BLOCKED:not mine"] {
                let Some(events) = speech::events(entry.name, place, &keyed(word)) else { continue };
                let output = [speech::opening(entry.name), events].concat();
                assert_eq!(controls(at_once(parser(entry), &output)), [], "{}: {place:?}", entry.name);
            }
        }
    }
    for entry in models() {
        let Some(output) = speech::said(entry.name, "<landfall>COMPLETE</landfall>") else { continue };
        let heard = controls(at_once(parser(entry), &output));
        assert!(
            matches!(heard.as_slice(), [Signal::Malformed { code: "SIGNAL_WITHOUT_KEY", .. }]),
            "{}: {heard:?}",
            entry.name
        );
    }
}

#[test]
fn stderr_says_nothing_the_engine_believes() {
    for entry in speakers() {
        let output = speech::said(entry.name, &keyed("COMPLETE")).expect("it speaks");
        let mut parser = parser(entry);
        assert_eq!(parser.feed(AgentStream::Err, &output), [], "{}", entry.name);
        // Half a line on one output must not join half a line on the other.
        let (first, last) = output.split_at(output.len() / 2);
        let mut heard = parser.feed(AgentStream::Out, first);
        parser.feed(AgentStream::Err, b"noise\n");
        heard.extend(parser.feed(AgentStream::Out, last));
        heard.extend(parser.finish());
        assert_eq!(controls(heard), [Signal::Said(ControlSignal::Complete)], "{}", entry.name);
    }
}

#[test]
fn garbage_is_survived_and_what_follows_is_heard() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let deep = "[".repeat(100_000).into_bytes();
    let deeper = format!("{{\"type\":\"result\",\"a\":{}}}", "{\"a\":".repeat(5_000)).into_bytes();
    let samples: [&[u8]; 22] = [
        b"\0\0\0",
        b"\xff\xfe\xc0\xaf",
        b"\xe2\x82",
        b"\x1b]52;c;aGk=\x07\x1b[2J\x1b[31m",
        b"{\"landfall\":",
        b"{\"landfall\":\"usage\",\"tokens_in\":-1}",
        b"{\"landfall\":\"no-such-note\"}",
        b"{}",
        b"[]",
        b"null",
        b"\"words\"",
        b"1e999",
        b"{\"type\":null}",
        b"{\"type\":{\"type\":\"result\"}}",
        b"{\"type\":\"result\"",
        b"{\"type\":\"assistant\",\"message\":7}",
        b"{\"type\":\"item.completed\",\"item\":[]}",
        b"{\"type\":\"no.such.event\",\"x\":[1,2,3]}",
        b"{\"type\":\"step_finish\",\"part\":{\"reason\":\"tool-calls\",\"tokens\":{\"input\":-1,\"output\":1e300},\"cost\":-5}}",
        &every_byte,
        &deep,
        &deeper,
    ];
    for entry in speakers() {
        for sample in samples {
            let word = speech::events(entry.name, Where::Said, &keyed("COMPLETE")).expect("it speaks");
            let output = [&speech::opening(entry.name), sample, b"\n", &word].concat();
            let signals = at_once(parser(entry), &output);
            let shown = String::from_utf8_lossy(&sample[..sample.len().min(60)]);
            assert_eq!(
                controls(signals.clone()),
                [Signal::Said(ControlSignal::Complete)],
                "{}: {shown}",
                entry.name
            );
            assert_eq!(in_pieces(parser(entry), 1, &output), signals, "{}: {shown}", entry.name);
        }
    }
}

#[test]
fn lines_that_are_not_understood_are_counted() {
    for entry in speakers().filter(|entry| !["command", "script"].contains(&entry.name)) {
        let mut parser = parser(entry);
        parser.feed(AgentStream::Out, &speech::opening(entry.name));
        let signals =
            parser.feed(AgentStream::Out, b"a warning of the program\n{\"type\":\"no.such.event\"}\n\n");
        assert_eq!(parser.raw_lines_unknown(), 2, "{}", entry.name);
        assert!(
            signals.iter().all(|signal| matches!(signal, Signal::Text(_))),
            "{}: {signals:?}",
            entry.name
        );
    }
}

#[test]
fn random_outputs_give_the_same_signals_however_they_are_cut() {
    const PARTS: [&[u8]; 14] = [
        b"\n",
        b"\r\n",
        b"```",
        b"~~~",
        b" ",
        b"- ",
        b"> ",
        b"words",
        b"<landfall>COMPLETE</landfall>",
        b"<axiom>BLOCKED:x</axiom>",
        b"<landfall>",
        b"{\"landfall\":\"quota\"}",
        b"\xe2\x82",
        b"\xff\0",
    ];
    for seed in 1..300_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % 1009).expect("small") % bound
        };
        let words: Vec<u8> = (0..60).flat_map(|_| PARTS[below(PARTS.len())]).copied().collect();
        for entry in AGENTS {
            // As it is, and as words of the agent.
            let said = speech::said(entry.name, &String::from_utf8_lossy(&words)).unwrap_or_default();
            for output in [&words, &said] {
                let signals = at_once(parser(entry), output);
                let mut parser = parser(entry);
                let mut heard = Vec::new();
                let mut rest = output.as_slice();
                while !rest.is_empty() {
                    let (piece, later) = rest.split_at(rest.len().min(below(9)));
                    heard.extend(parser.feed(AgentStream::Out, piece));
                    rest = later;
                }
                heard.extend(parser.finish());
                assert_eq!(heard, signals, "{}, seed {seed}", entry.name);
            }
        }
    }
}

#[test]
fn a_last_line_without_a_newline_is_heard_and_half_of_one_is_not_believed() {
    for entry in speakers() {
        let output = speech::said(entry.name, &keyed("COMPLETE")).expect("it speaks");
        let whole = controls(at_once(parser(entry), output.strip_suffix(b"\n").expect("a line")));
        assert_eq!(whole, [Signal::Said(ControlSignal::Complete)], "{}", entry.name);
        let half = speech::said(entry.name, "<landfall>COMPLETE</landf").expect("it speaks");
        let heard = controls(at_once(parser(entry), &half));
        assert!(matches!(heard.as_slice(), [Signal::Malformed { .. }]), "{}: {heard:?}", entry.name);
    }
}

#[test]
fn a_line_of_100_mb_is_cut_counted_and_takes_little_memory() {
    const CHUNK: usize = 64 << 10;
    let chunk = vec![b'x'; CHUNK];
    for entry in speakers() {
        let before = resident_bytes();
        let mut parser = parser(entry);
        parser.feed(AgentStream::Out, &speech::opening(entry.name));
        for _ in 0..100_000_000 / CHUNK {
            assert_eq!(parser.feed(AgentStream::Out, &chunk), []);
            parser.feed(AgentStream::Err, &chunk);
            parser.feed(AgentStream::Aside, &chunk);
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 16 * LINE_MAX as u64, "{} holds {grown} bytes", entry.name);
        let word = speech::events(entry.name, Where::Said, &keyed("COMPLETE")).expect("it speaks");
        let mut heard = parser.feed(AgentStream::Out, &[b"\n", word.as_slice()].concat());
        heard.extend(parser.finish());
        let text = heard.iter().find_map(|signal| match signal {
            Signal::Text(text) => Some(text.len()),
            _ => None,
        });
        assert_eq!(text, Some(LINE_MAX), "{}", entry.name);
        assert_eq!(controls(heard), [Signal::Said(ControlSignal::Complete)], "{}", entry.name);
        assert_eq!(parser.lines_cut(), 1, "{}", entry.name);
    }
}

#[test]
fn a_control_word_in_a_cut_line_is_not_one() {
    for entry in speakers() {
        let padded = format!("{}{}", keyed("COMPLETE"), " ".repeat(LINE_MAX));
        let heard = at_once(parser(entry), &speech::said(entry.name, &padded).expect("it speaks"));
        assert_eq!(controls(heard), [], "{}", entry.name);
    }
}

/// Memory of this process that is in use, as the kernel counts it.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}
