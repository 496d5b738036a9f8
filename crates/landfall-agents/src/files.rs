//! The files by which an agent with a loop of its own says where it is: `.auto-signal`, and the status file of its module.
//!
//! Whoever looks at the folder feeds what it finds, again and again; here it is told whether that is news, and what it
//! means. The same content is news once. What is not whole yet is waited for; what is wrong is said once, by a code, and
//! changes nothing. Nothing here reads a disk or a clock.

use landfall_model::stride::{CHECKPOINTS, ENDS, RESULTS, STEPS};
use landfall_model::{ControlSignal, LoopStep, Signal};
use serde_json::{Map, Value};

/// The file of signals, in the folder of a module.
pub const SIGNAL: &str = ".auto-signal";
/// What it is called while it is being written.
pub const SIGNAL_TMP: &str = ".auto-signal.tmp";
/// The file that asks a loop to end before its next step.
pub const STOP: &str = ".auto-stop";
/// The status files that are known, the newest kind first. The first that is there counts.
pub const STATUSES: [&str; 3] = [".status.json", ".index.json", ".index.md"];
/// What makes up the state of a module besides its status: a change in it by another hand is a reason to read it anew.
pub const PAPERS: [&str; 2] = [".target.md", ".plan.md"];
/// No such file is longer.
pub const BYTES_MAX: usize = 256 * 1024;

/// Looks at the same words that are no JSON before they are taken for nonsense rather than for a file being written.
const HALF_LOOKS: u32 = 20;
const TEXT_MAX: usize = 200; // of what was wrong, for a person

const PHASES: [&str; 7] =
    ["", "target", "planning", "execution", "finalization", "needs-plan", "needs-check"];
/// Every status a module can have.
const WORDS: [&str; 10] = [
    "draft",
    "planning",
    "review",
    "executing",
    "re-planning",
    "complete",
    "blocked",
    "cancelled",
    "evolving",
    "satisfied",
];

/// Which file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopFileKind {
    /// [`SIGNAL`].
    Signal,
    /// `.status.json` or `.index.json`.
    Status,
    /// `.index.md`: its front matter.
    Front,
}

impl LoopFileKind {
    /// What kind of file has this name, of those in [`STATUSES`].
    #[must_use]
    pub fn for_status_file(name: &str) -> Self {
        if name.ends_with(".md") { Self::Front } else { Self::Status }
    }
}

/// The step that a loop begins with, as the status of its module says.
#[must_use]
pub fn loop_entry_step(file: LoopFileKind, bytes: &[u8]) -> &'static str {
    let Ok(Some(StatusFileProgress { status, phase, .. })) = parse_status_file(file, bytes) else {
        return "plan";
    };
    match (status.as_str(), phase.as_str()) {
        ("planning" | "executing", _) | ("re-planning", "needs-check") => "check",
        ("review", _) => "exec",
        ("complete" | "satisfied", _) => "report",
        _ => "plan",
    }
}

/// The ear for the files of one run.
#[derive(Debug, Clone, Default)]
pub struct LoopFileParser {
    signal: FileReadState,
    status: FileReadState,
    /// Whether signals are used: then a status is no step of its own.
    signals: bool,
    standing: Option<StatusFileProgress>,
    /// A change of the status that is a step unless a signal says it, and in how many looks it has stood.
    held: Option<(LoopStep, u32)>,
    /// Whether the status changed in this run.
    moved: bool,
    /// Whether what the loop came to was said.
    closed: bool,
}

/// What was seen of one file.
#[derive(Debug, Clone, Default)]
struct FileReadState {
    /// What was understood last.
    taken: Option<u64>,
    /// What was not whole, and in how many looks.
    half: Option<(u64, u32)>,
}

/// What a status file says, as far as it is progress. Its time stamp is none: it changes for other reasons, too.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StatusFileProgress {
    status: String,
    phase: String,
    steps: u64,
    stage: u64,
    reason: Option<String>,
}

impl LoopFileParser {
    /// What is there before the run begins is no news of it.
    pub fn note_initial_file(&mut self, file: LoopFileKind, bytes: &[u8]) {
        let mark = hash_content(bytes);
        match file {
            LoopFileKind::Signal => self.signal.taken = Some(mark),
            LoopFileKind::Status | LoopFileKind::Front => {
                self.status.taken = Some(mark);
                self.standing = parse_status_file(file, bytes).ok().flatten();
            }
        }
    }

    /// Takes in what a file holds now; what of it is news.
    pub fn feed(&mut self, file: LoopFileKind, bytes: &[u8]) -> Vec<Signal> {
        let looks = match file {
            LoopFileKind::Signal => &mut self.signal,
            LoopFileKind::Status | LoopFileKind::Front => &mut self.status,
        };
        let mark = hash_content(bytes);
        if looks.taken == Some(mark) {
            looks.half = None;
            return if file == LoopFileKind::Signal { Vec::new() } else { self.handle_unchanged_status() };
        }
        let read = match file {
            _ if bytes.len() > BYTES_MAX => Err(LoopFileError::Code("FILE_TOO_LARGE")),
            LoopFileKind::Signal => parse_signal_file(bytes, mark).map(LoopFileContent::Stride),
            LoopFileKind::Status | LoopFileKind::Front => {
                parse_status_file(file, bytes).map(LoopFileContent::Standing)
            }
        };
        match read {
            Err(LoopFileError::Half) => {
                let count = match looks.half {
                    Some((half, count)) if half == mark => count + 1,
                    Some(_) | None => 1,
                };
                looks.half = Some((mark, count));
                if count < HALF_LOOKS {
                    return Vec::new();
                }
                looks.taken = Some(mark); // said once
                vec![malformed_signal("FILE_NOT_JSON", bytes)]
            }
            Err(LoopFileError::Code(code)) => {
                (looks.taken, looks.half) = (Some(mark), None);
                vec![malformed_signal(code, bytes)]
            }
            Ok(heard) => {
                (looks.taken, looks.half) = (Some(mark), None);
                match heard {
                    LoopFileContent::Stride(stride) => self.handle_loop_step(stride),
                    LoopFileContent::Standing(standing) => self.handle_status(standing, mark),
                }
            }
        }
    }

    /// The run is over: what was not said yet.
    pub fn finish(&mut self) -> Vec<Signal> {
        let mut heard: Vec<Signal> =
            self.held.take().map(|(stride, _)| Signal::Stride(stride)).into_iter().collect();
        if self.closed || !self.moved {
            return heard;
        }
        let said = self.standing.as_ref().and_then(StatusFileProgress::close);
        self.closed = said.is_some();
        heard.extend(said.map(Signal::Said));
        heard
    }

    fn handle_loop_step(&mut self, stride: LoopStep) -> Vec<Signal> {
        self.signals = true;
        self.held = None; // it was the status of this very step
        let stops = stride.next == "(stop)";
        let said = stops.then(|| self.close(&stride)).flatten();
        self.closed = said.is_some(); // a step after the end: it goes on
        let mut heard = vec![Signal::Stride(stride)];
        heard.extend(said.map(Signal::Said));
        heard
    }

    fn handle_status(&mut self, standing: Option<StatusFileProgress>, mark: u64) -> Vec<Signal> {
        let Some(standing) = standing else { return Vec::new() };
        let progress = self.standing.as_ref().is_none_or(|before| !before.is_at(&standing));
        self.moved |= progress;
        let step = standing.status.clone();
        let phase = standing.phase.clone();
        self.standing = Some(standing);
        if !progress || self.signals {
            return Vec::new();
        }
        let stride = LoopStep { step, checkpoint: phase, mark: format_hash(mark), ..LoopStep::default() };
        self.held.replace((stride, 0)).map(|(before, _)| Signal::Stride(before)).into_iter().collect()
    }

    /// The status is what it was. A loop that signals writes it a moment before; one that does not has taken a step.
    fn handle_unchanged_status(&mut self) -> Vec<Signal> {
        match &mut self.held {
            Some((_, looks)) if *looks < HALF_LOOKS => {
                *looks += 1;
                Vec::new()
            }
            Some(_) | None => {
                self.held.take().map(|(stride, _)| Signal::Stride(stride)).into_iter().collect()
            }
        }
    }

    /// What a loop that stops came to: as its module says, else as its last step says.
    fn close(&self, stride: &LoopStep) -> Option<ControlSignal> {
        if let Some(said) = self.standing.as_ref().and_then(StatusFileProgress::close) {
            return Some(said);
        }
        let LoopStep { step, result, .. } = stride;
        match (step.as_str(), result.as_str()) {
            (_, "BLOCKED" | "(blocked)" | "conflict" | "failed" | "rejected") => {
                Some(ControlSignal::Blocked(format!("its loop stopped at `{step}` with {result}")))
            }
            ("report", _) | ("merge", "success") => Some(ControlSignal::Complete),
            _ => None,
        }
    }
}

enum LoopFileContent {
    Stride(LoopStep),
    Standing(Option<StatusFileProgress>),
}

impl StatusFileProgress {
    /// Whether nothing that is progress differs.
    fn is_at(&self, other: &Self) -> bool {
        let Self { status, phase, steps, stage, reason: _ } = self;
        (status, phase, steps, stage) == (&other.status, &other.phase, &other.steps, &other.stage)
    }

    /// What a status that ends a loop means.
    fn close(&self) -> Option<ControlSignal> {
        let reason = |otherwise: &str| self.reason.clone().unwrap_or_else(|| otherwise.to_owned());
        match self.status.as_str() {
            "complete" | "satisfied" => Some(ControlSignal::Complete),
            "blocked" => Some(ControlSignal::Blocked(reason(
                "its module says it is blocked, and no reason is recorded",
            ))),
            "cancelled" => Some(ControlSignal::Blocked(reason("its module says it is cancelled"))),
            _ => None,
        }
    }
}

/// Why a file says nothing.
enum LoopFileError {
    /// It may be being written.
    Half,
    /// It is whole, and wrong.
    Code(&'static str),
}

fn malformed_signal(code: &'static str, bytes: &[u8]) -> Signal {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_MAX)]).into_owned();
    Signal::Malformed { code, text }
}

fn parse_json_object(bytes: &[u8]) -> Result<Map<String, Value>, LoopFileError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(LoopFileError::Code("FILE_NOT_AN_OBJECT")),
        Err(_) => Err(LoopFileError::Half),
    }
}

/// A text that must be there.
fn required_text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a str, LoopFileError> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(LoopFileError::Code("FILE_INVALID_FIELD")),
        None => Err(LoopFileError::Code("FILE_MISSING_FIELD")),
    }
}

/// A text that may be missing.
fn optional_text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a str, LoopFileError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(_) => required_text(object, key),
    }
}

/// A whole number from 0 that may be missing.
fn optional_count(
    object: &Map<String, Value>,
    key: &str,
    code: &'static str,
) -> Result<Option<u32>, LoopFileError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
            count.map(Some).ok_or(LoopFileError::Code(code))
        }
    }
}

fn parse_signal_file(bytes: &[u8], mark: u64) -> Result<LoopStep, LoopFileError> {
    let object = parse_json_object(bytes)?;
    let (step, result, next) =
        (required_text(&object, "step")?, required_text(&object, "result")?, required_text(&object, "next")?);
    let checkpoint = optional_text(&object, "checkpoint")?;
    if !STEPS.contains(&step) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_STEP"));
    }
    if !(RESULTS.contains(&result) || is_numbered_word(result, "(step-", ")")) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_RESULT"));
    }
    if !(STEPS.contains(&next) || ENDS.contains(&next)) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_NEXT"));
    }
    if !(CHECKPOINTS.contains(&checkpoint) || is_numbered_word(checkpoint, "step-", "")) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_CHECKPOINT"));
    }
    if !PHASES.contains(&optional_text(&object, "phase")?) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_PHASE"));
    }
    let iteration = optional_count(&object, "iteration", "FILE_INVALID_ITERATION")?;
    let compactions = optional_count(&object, "compaction_count", "FILE_INVALID_COUNT")?.unwrap_or(0);
    if !is_moment(required_text(&object, "timestamp")?) {
        return Err(LoopFileError::Code("FILE_INVALID_TIMESTAMP"));
    }
    Ok(LoopStep {
        step: step.to_owned(),
        result: result.to_owned(),
        next: next.to_owned(),
        checkpoint: checkpoint.to_owned(),
        iteration,
        compactions,
        mark: format_hash(mark),
    })
}

/// What a status file says; none where it has no status, which is no mistake of a loop.
fn parse_status_file(file: LoopFileKind, bytes: &[u8]) -> Result<Option<StatusFileProgress>, LoopFileError> {
    let object = match file {
        LoopFileKind::Front => match parse_front_matter(bytes) {
            Some(object) => object,
            None => return Ok(None),
        },
        LoopFileKind::Signal | LoopFileKind::Status => parse_json_object(bytes)?,
    };
    let Some(status) = object.get("status") else { return Ok(None) };
    let status = status
        .as_str()
        .filter(|word| WORDS.contains(word))
        .ok_or(LoopFileError::Code("FILE_UNKNOWN_STATUS"))?;
    let phase = optional_text(&object, "phase")?;
    if !PHASES.contains(&phase) {
        return Err(LoopFileError::Code("FILE_UNKNOWN_PHASE"));
    }
    let reason = ["blocked_reason", "reason"].iter().find_map(|key| object.get(*key)?.as_str());
    Ok(Some(StatusFileProgress {
        status: status.to_owned(),
        phase: phase.to_owned(),
        // A count that is none is 0, as whoever keeps the file reads it.
        steps: object.get("completed_steps").and_then(Value::as_u64).unwrap_or(0),
        stage: object.get("stage").and_then(|stage| stage["current"].as_u64()).unwrap_or(0),
        reason: reason.map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned),
    }))
}

/// The plain `key: value` lines between the first two rules of a Markdown file; none while there are not two.
fn parse_front_matter(bytes: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let mut object = Map::new();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(object);
        }
        if let Some((key, value)) = line.split_once(':')
            && !key.starts_with([' ', '#', '-'])
        {
            let value = value.trim().trim_matches(['"', '\'']);
            let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
            object.insert(key.trim().to_owned(), value);
        }
    }
    None
}

/// `before`, a number, `after`.
fn is_numbered_word(word: &str, before: &str, after: &str) -> bool {
    let number = word.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|number| {
        (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether this is a moment as ISO 8601 writes it: a date, and a time with or without seconds, a fraction and a zone.
fn is_moment(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let number = |part: &str, digits: usize, max: u32| {
        part.len() == digits
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|number| number <= max)
    };
    let date: Vec<&str> = date.split('-').collect();
    let is_date = matches!(date.as_slice(), [year, month, day]
        if number(year, 4, 9999) && number(month, 2, 12) && *month != "00" && number(day, 2, 31) && *day != "00");
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let clock: Vec<&str> = clock.split(':').collect();
    let is_clock = match clock.as_slice() {
        [hour, minute] => number(hour, 2, 24) && number(minute, 2, 59),
        [hour, minute, second] => number(hour, 2, 24) && number(minute, 2, 59) && number(second, 2, 60),
        _ => false,
    };
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_zone = match zone.strip_prefix(['+', '-']) {
        None => matches!(zone, "" | "Z" | "z"),
        Some(offset) => match offset.split_once(':') {
            Some((hours, minutes)) => number(hours, 2, 23) && number(minutes, 2, 59),
            None => number(offset, 2, 23) || number(offset, 4, 2359),
        },
    };
    is_date && is_clock && is_fraction && is_zone
}

/// Tells contents apart; the same on every machine and in every version, because the journal keeps it.
fn hash_content(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn format_hash(mark: u64) -> String {
    format!("{mark:016x}")
}
