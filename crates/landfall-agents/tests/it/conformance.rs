//! What holds for every agent. The tests walk the registry, so a new agent is under them from its first line on.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use landfall_agents::registry::{AGENTS, UnknownAgent, find};
use landfall_agents::{Ear, LINE_MAX, Parse, Stream};
use landfall_model::{Said, Signal};

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

/// The same output in pieces of this size.
fn in_pieces(mut parser: Box<dyn Parse + Send>, size: usize, output: &[u8]) -> Vec<Signal> {
    let mut signals: Vec<Signal> =
        output.chunks(size).flat_map(|bytes| parser.feed(Stream::Out, bytes)).collect();
    signals.extend(parser.finish());
    signals
}

#[test]
fn the_registry_is_in_order_and_finds_what_is_in_it() {
    assert!(AGENTS.is_sorted_by_key(|entry| entry.name));
    for entry in AGENTS {
        assert_eq!(find(entry.name).map(|found| found.name), Ok(entry.name));
        assert!(entry.about.ends_with('.') && entry.about.len() < 80, "{}", entry.about);
    }
}

#[test]
fn an_unknown_kind_is_refused_with_the_known_ones() {
    let slip = find("comand").err().expect("there is no such agent");
    assert_eq!(slip.nearest, Some("command"));
    assert_eq!(slip.to_string(), "unknown agent `comand`");
    let stranger: UnknownAgent = find("zz").err().expect("there is no such agent");
    assert_eq!(stranger.nearest, None);
    assert!(AGENTS.iter().all(|entry| stranger.hint().contains(entry.name)));
}

#[test]
fn every_agent_launches_and_keeps_prompt_and_nonce_out_of_argv() {
    for entry in AGENTS {
        let brief = brief(entry.name);
        entry.agent().check(&brief.profile).expect("the standard profile is fine");
        let launch = entry.agent().launch(&brief).expect("the standard brief can be launched");
        assert!(!launch.argv.is_empty(), "{}", entry.name);
        for word in &launch.argv {
            let word = word.to_string_lossy();
            assert!(!word.contains("CANARY") && !word.contains(&brief.body), "{}: {word}", entry.name);
        }
        for (path, _) in &launch.files {
            assert!(path.starts_with(&brief.attempt_dir), "{}: {}", entry.name, path.display());
        }
        let task = ("LANDFALL_TASK".into(), "T7".into());
        assert!(launch.env.contains(&task), "{}", entry.name);
    }
}

#[test]
fn profiles_cannot_set_what_is_ours_or_what_is_no_name() {
    for entry in AGENTS {
        for (key, value) in [("LANDFALL_TASK", "T1"), ("", "x"), ("A=B", "x"), ("A", "x\0y")] {
            let mut brief = brief(entry.name);
            brief.profile.env.insert(key.to_owned(), value.to_owned());
            assert!(entry.agent().check(&brief.profile).is_err(), "{}: {key}", entry.name);
            assert!(entry.agent().launch(&brief).is_err(), "{}: {key}", entry.name);
        }
    }
}

#[test]
fn transcripts_give_the_expected_signals_however_they_arrive() {
    for entry in AGENTS {
        let files = transcripts(entry.name);
        assert!(!files.is_empty(), "agent `{}` has no transcript", entry.name);
        for file in files {
            let output = fs::read(&file).expect("a listed file can be read");
            let signals = at_once(entry.agent().parser(&Ear::default()), &output);
            expect_file![file.with_extension("signals")].assert_eq(&render(&signals));
            for size in [1, 2, 3, 7, 64, 4096] {
                let pieces = in_pieces(entry.agent().parser(&Ear::default()), size, &output);
                assert_eq!(pieces, signals, "{} in pieces of {size}", file.display());
            }
        }
    }
}

#[test]
fn stderr_says_nothing_the_engine_believes() {
    for entry in AGENTS {
        let mut parser = entry.agent().parser(&Ear::default());
        let heard = parser.feed(Stream::Err, b"<landfall>COMPLETE</landfall>\n");
        assert_eq!(heard, [], "{}", entry.name);
        // Half a line on one output must not join half a line on the other.
        parser.feed(Stream::Out, b"<landfall>COMP");
        parser.feed(Stream::Err, b"noise\n");
        let heard = parser.feed(Stream::Out, b"LETE</landfall>\n");
        assert_eq!(heard, [Signal::Said(Said::Complete)], "{}", entry.name);
    }
}

#[test]
fn garbage_is_survived_and_what_follows_is_heard() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let samples: [&[u8]; 8] = [
        b"\0\0\0",
        b"\xff\xfe\xc0\xaf",
        b"\xe2\x82",
        b"\x1b]52;c;aGk=\x07\x1b[2J\x1b[31m",
        b"{\"landfall\":",
        b"{\"landfall\":\"usage\",\"tokens_in\":-1}",
        b"{\"landfall\":\"no-such-note\"}",
        &every_byte,
    ];
    for entry in AGENTS {
        for sample in samples {
            let output = [sample, b"\n<landfall>COMPLETE</landfall>\n"].concat();
            let signals = at_once(entry.agent().parser(&Ear::default()), &output);
            assert_eq!(signals.last(), Some(&Signal::Said(Said::Complete)), "{}: {sample:?}", entry.name);
            assert_eq!(
                in_pieces(entry.agent().parser(&Ear::default()), 1, &output),
                signals,
                "{}: {sample:?}",
                entry.name
            );
        }
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
    for seed in 1..500_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % 1009).expect("small") % bound
        };
        let output: Vec<u8> = (0..60).flat_map(|_| PARTS[below(PARTS.len())]).copied().collect();
        for entry in AGENTS {
            let signals = at_once(entry.agent().parser(&Ear::default()), &output);
            let mut parser = entry.agent().parser(&Ear::default());
            let mut heard = Vec::new();
            let mut rest = output.as_slice();
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(below(9)));
                heard.extend(parser.feed(Stream::Out, piece));
                rest = later;
            }
            heard.extend(parser.finish());
            assert_eq!(heard, signals, "{}, seed {seed}", entry.name);
        }
    }
}

#[test]
fn a_last_line_without_a_newline_is_heard_and_half_of_one_is_not_believed() {
    for entry in AGENTS {
        let whole = at_once(entry.agent().parser(&Ear::default()), b"<landfall>COMPLETE</landfall>");
        assert_eq!(whole, [Signal::Said(Said::Complete)], "{}", entry.name);
        let half = at_once(entry.agent().parser(&Ear::default()), b"<landfall>COMPLETE</landf");
        assert!(matches!(half.as_slice(), [Signal::Malformed { .. }]), "{}: {half:?}", entry.name);
    }
}

#[test]
fn a_line_of_100_mb_is_cut_counted_and_takes_little_memory() {
    const CHUNK: usize = 64 << 10;
    let chunk = vec![b'x'; CHUNK];
    for entry in AGENTS {
        let before = resident_bytes();
        let mut parser = entry.agent().parser(&Ear::default());
        for _ in 0..100_000_000 / CHUNK {
            assert_eq!(parser.feed(Stream::Out, &chunk), []);
            parser.feed(Stream::Err, &chunk);
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 16 * LINE_MAX as u64, "{} holds {grown} bytes", entry.name);
        let heard = parser.feed(Stream::Out, b"\n<landfall>COMPLETE</landfall>\n");
        let [Signal::Text(text), Signal::Said(Said::Complete)] = heard.as_slice() else {
            panic!("{} heard {} signals", entry.name, heard.len());
        };
        assert_eq!(text.len(), LINE_MAX);
        assert_eq!(parser.lines_cut(), 1, "{}", entry.name);
    }
}

#[test]
fn a_control_word_in_a_cut_line_is_not_one() {
    for entry in AGENTS {
        let padded = [b"<landfall>COMPLETE</landfall>".as_slice(), &vec![b' '; LINE_MAX], b"\n"].concat();
        let heard = at_once(entry.agent().parser(&Ear::default()), &padded);
        assert!(matches!(heard.as_slice(), [Signal::Text(_)]), "{}", entry.name);
    }
}

/// Memory of this process that is in use, as the kernel counts it.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}
