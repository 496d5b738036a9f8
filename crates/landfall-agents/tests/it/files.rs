//! The files of an agent's own loop: every version that was ever written is understood, what is wrong is said once, and half
//! a file is nothing.

use landfall_agents::files::{LoopFileKind, LoopFileParser};
use landfall_model::{ControlSignal, Signal};

const V1: &str = r#"{"step":"check","result":"PASS","next":"exec","timestamp":"2026-01-31T12:00:00Z"}"#;
const V2: &str = r#"{"step":"exec","result":"(step-3)","next":"check","checkpoint":"mid-exec","iteration":4,"compaction_count":1,"timestamp":"2026-01-31T12:00:00.123+01:00"}"#;
const V3: &str = r#"{"step":"target","result":"(o2-collected)","next":"(none)","checkpoint":"post-o2","iteration":0,"timestamp":"2026-01-31T12:00:00Z",
    "compaction_count":0,"vfp_cycles_completed":2,"phase":"planning","phase_progress":0.4,"stage":{"current":1,"total":3},
    "check_score":{"overall":0.8,"d1_correctness":0.9},"retry_count":1,"delegation_failures":["verify@iter3"]}"#;

fn heard(file: LoopFileKind, text: &str) -> Vec<Signal> {
    LoopFileParser::default().feed(file, text.as_bytes())
}

/// What is heard of a file that stays as it is.
fn settled(files: &mut LoopFileParser, file: LoopFileKind, text: &str) -> String {
    let heard: Vec<Signal> = (0..100).flat_map(|_| files.feed(file, text.as_bytes())).collect();
    shown(&heard)
}

fn shown(signals: &[Signal]) -> String {
    let one = |signal: &Signal| match signal {
        Signal::Stride(stride) => stride.to_string(),
        Signal::Malformed { code, .. } => (*code).to_owned(),
        other => format!("{other:?}"),
    };
    signals.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn signals_of_every_version_are_understood() {
    for (text, means) in [
        (V1, "check: PASS → exec"),
        (V2, "exec mid-exec: (step-3) → check #4"),
        (V3, "target post-o2: (o2-collected) → (none) #0"),
    ] {
        assert_eq!(shown(&heard(LoopFileKind::Signal, text)), means);
    }
    let Some(Signal::Stride(stride)) = heard(LoopFileKind::Signal, V2).pop() else { panic!("a stride") };
    assert_eq!((stride.iteration, stride.compactions), (Some(4), 1));
}

#[test]
fn every_word_that_a_loop_ever_had_is_understood() {
    for result in landfall_model::stride::RESULTS {
        let told = shown(&heard(LoopFileKind::Signal, &V1.replace("PASS", result)));
        assert_eq!(told, format!("check: {result} → exec"), "a loop that rolls a stage back is no nonsense");
    }
}

#[test]
fn what_is_wrong_is_named_once() {
    let change = |from: &str, to: &str| V2.replace(from, to);
    for (text, code) in [
        (change("\"exec\"", "\"dance\""), "FILE_UNKNOWN_STEP"),
        (change("(step-3)", "(step-x)"), "FILE_UNKNOWN_RESULT"),
        (change("(step-3)", "pass"), "FILE_UNKNOWN_RESULT"),
        (change("\"next\":\"check\"", "\"next\":\"stop\""), "FILE_UNKNOWN_NEXT"),
        (change("mid-exec", "mid"), "FILE_UNKNOWN_CHECKPOINT"),
        (change(":4,", ":-4,"), "FILE_INVALID_ITERATION"),
        (change(":4,", ":4.5,"), "FILE_INVALID_ITERATION"),
        (change(":4,", ":\"4\","), "FILE_INVALID_ITERATION"),
        (change("\"compaction_count\":1", "\"compaction_count\":-1"), "FILE_INVALID_COUNT"),
        (change("2026-01-31T12:00:00.123+01:00", "31.1.2026"), "FILE_INVALID_TIMESTAMP"),
        (change("2026-01-31T12:00:00.123+01:00", "2026-13-31T12:00:00Z"), "FILE_INVALID_TIMESTAMP"),
        (change("\"result\":\"(step-3)\",", ""), "FILE_MISSING_FIELD"),
        (change("\"step\":\"exec\"", "\"step\":7"), "FILE_INVALID_FIELD"),
        (change("\"step\":\"exec\"", "\"phase\":\"moon\",\"step\":\"exec\""), "FILE_UNKNOWN_PHASE"),
        ("[]".to_owned(), "FILE_NOT_AN_OBJECT"),
        (format!("{}{V1}", " ".repeat(300_000)), "FILE_TOO_LARGE"),
    ] {
        let mut files = LoopFileParser::default();
        assert_eq!(shown(&files.feed(LoopFileKind::Signal, text.as_bytes())), code, "{}", text.trim());
        assert_eq!(files.feed(LoopFileKind::Signal, text.as_bytes()), [], "said once");
        assert_eq!(
            shown(&files.feed(LoopFileKind::Signal, V1.as_bytes())),
            "check: PASS → exec",
            "and it goes on"
        );
    }
}

#[test]
fn half_a_file_is_nothing_until_it_is_whole_and_the_same_is_news_once() {
    let whole = V2.as_bytes();
    for cut in 0..whole.len() {
        let mut files = LoopFileParser::default();
        assert_eq!(files.feed(LoopFileKind::Signal, &whole[..cut]), [], "the first {cut} bytes");
        assert_eq!(files.feed(LoopFileKind::Signal, whole).len(), 1);
        assert_eq!(files.feed(LoopFileKind::Signal, whole), []);
        // A file that is being written anew, and is then what it was.
        assert_eq!(files.feed(LoopFileKind::Signal, &whole[..cut]), []);
        assert_eq!(files.feed(LoopFileKind::Signal, whole), []);
    }
}

#[test]
fn words_that_stay_are_no_file_being_written() {
    let mut files = LoopFileParser::default();
    let heard: Vec<Signal> =
        (0..100).flat_map(|_| files.feed(LoopFileKind::Signal, b"all is well")).collect();
    assert_eq!(shown(&heard), "FILE_NOT_JSON");
}

#[test]
fn a_loop_that_stops_came_to_what_its_module_says() {
    let signal = |step: &str, result: &str| {
        format!(
            r#"{{"step":"{step}","result":"{result}","next":"(stop)","timestamp":"2026-01-31T12:00:00Z"}}"#
        )
    };
    let blocked = |text: &str| Some(ControlSignal::Blocked(text.to_owned()));
    for (status, step, result, came_to) in [
        (r#"{"status":"complete"}"#, "report", "(done)", Some(ControlSignal::Complete)),
        (r#"{"status":"satisfied"}"#, "report", "(done)", Some(ControlSignal::Complete)),
        (r#"{"status":"blocked","reason":"no key"}"#, "check", "BLOCKED", blocked("no key")),
        (
            r#"{"status":"blocked"}"#,
            "check",
            "BLOCKED",
            blocked("its module says it is blocked, and no reason is recorded"),
        ),
        (r#"{"status":"cancelled"}"#, "report", "(done)", blocked("its module says it is cancelled")),
        // Without a status that ends it, the last step says it.
        ("{}", "report", "(done)", Some(ControlSignal::Complete)),
        ("{}", "check", "BLOCKED", blocked("its loop stopped at `check` with BLOCKED")),
        (
            r#"{"status":"executing"}"#,
            "merge",
            "conflict",
            blocked("its loop stopped at `merge` with conflict"),
        ),
        (r#"{"status":"executing"}"#, "exec", "(done)", None),
    ] {
        let mut files = LoopFileParser::default();
        files.feed(LoopFileKind::Status, status.as_bytes());
        let heard = files.feed(LoopFileKind::Signal, signal(step, result).as_bytes());
        let said = heard.iter().find_map(|signal| match signal {
            Signal::Said(said) => Some(said.clone()),
            _ => None,
        });
        assert_eq!(said, came_to, "{status} {step} {result}");
        let more = files.finish();
        assert!(more.is_empty() || said.is_none(), "said once: {more:?}");
    }
}

#[test]
fn edge_21_a_time_stamp_in_a_status_is_no_progress() {
    let mut files = LoopFileParser::default();
    let before = r#"{"status":"executing","completed_steps":1,"updated":"2026-01-31T12:00:00Z"}"#;
    files.note_initial_file(LoopFileKind::Status, before.as_bytes());
    let touched = before.replace("12:00", "12:01");
    assert_eq!(files.feed(LoopFileKind::Status, touched.as_bytes()), []);
    let annotated = touched.replace("}", r#","tags":["new"]}"#);
    assert_eq!(files.feed(LoopFileKind::Status, annotated.as_bytes()), []);
    assert_eq!(files.finish(), [], "nothing happened");
    let further = touched.replace("\"completed_steps\":1", "\"completed_steps\":2");
    assert_eq!(settled(&mut files, LoopFileKind::Status, &further), "executing");
    // Where signals are written, they are the steps: also when the status comes a moment before.
    assert_eq!(files.feed(LoopFileKind::Status, touched.as_bytes()), []);
    files.feed(LoopFileKind::Signal, V1.as_bytes());
    let done = r#"{"status":"satisfied","stage":{"current":2}}"#;
    assert_eq!(files.feed(LoopFileKind::Status, done.as_bytes()), []);
    assert_eq!(files.finish(), [Signal::Said(ControlSignal::Complete)]);
}

#[test]
fn a_status_that_was_there_before_closes_nothing() {
    let mut files = LoopFileParser::default();
    files.note_initial_file(LoopFileKind::Status, br#"{"status":"complete"}"#);
    assert_eq!(files.feed(LoopFileKind::Status, br#"{"status":"complete"}"#), []);
    assert_eq!(files.finish(), []);
}

#[test]
fn the_front_matter_of_the_first_version_is_a_status_too() {
    let mut files = LoopFileParser::default();
    let text = "---\ntitle: \"A: b\"\nstatus: executing\ntags: [a]\n---\n# Text\nstatus: draft\n";
    assert_eq!(settled(&mut files, LoopFileKind::Front, text), "executing");
    assert_eq!(files.feed(LoopFileKind::Front, b"---\nstatus: comp"), [], "half of it");
    files.feed(LoopFileKind::Front, text.replace("executing", "complete").as_bytes());
    assert_eq!(shown(&files.finish()), "complete; Said(Complete)");
    assert_eq!(shown(&heard(LoopFileKind::Status, r#"{"status":"splendid"}"#)), "FILE_UNKNOWN_STATUS");
}

#[test]
fn whatever_is_written_there_nothing_breaks() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % 1_000_003).expect("small") % below
    };
    for _ in 0..20_000 {
        let mut bytes = [V1, V2, V3, "---\nstatus: review\n---\n"][random(4)].as_bytes().to_vec();
        for _ in 0..random(6) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = u8::try_from(random(256)).expect("a byte"),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\"{}[]:,-0e\\n\n"[random(13)]),
            }
        }
        crate::check::files(&bytes);
    }
}
