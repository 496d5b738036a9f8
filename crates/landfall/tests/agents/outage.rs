//! What becomes of a task while its provider is in trouble: the stories behind `cargo xtask outage`.
//!
//! The times are those of a usual outage, divided by a scale, and so are the settings: a silence of ten minutes is one of
//! ten seconds at the usual scale of 60. The provider's words are those of the model server of the test kit.

use std::io::Write as _;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, PlayTurn};

use crate::kind::{Kind, now};
use crate::shared::{WORK, says_complete, works};
use crate::stage::{LIMIT, Stage};

/// What divides all times.
const SCALE: &str = "LANDFALL_OUTAGE_SCALE";
/// Where a line for each story goes.
const REPORT: &str = "LANDFALL_OUTAGE_REPORT";

struct Outage {
    stage: Stage,
    run: BackgroundCommand,
    kind: Kind,
    what: &'static str,
    scale: u32,
}

fn scale() -> u32 {
    std::env::var(SCALE).ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Scaled settings: everything else is as usual.
fn settings(scale: u32) -> String {
    let ms = |minutes: u32| minutes * 60_000 / scale;
    format!(
        "silence = \"{}ms\"\nfirst_output = \"30s\"\nheartbeat = \"{}ms\"\ntool_limit = \"{}ms\"\ntask_limit = \"{}ms\"\n\
         grace = \"1s\"\n",
        ms(10),
        ms(1),
        ms(30).max(60_000),
        ms(30).max(300_000), // starting one of them takes seconds, and ten times as long on a busy machine
    )
}

const QUOTA: &str = "daily quota";

impl Outage {
    fn begin(kind: Kind, what: &'static str, play: Vec<PlayTurn>) -> Option<Self> {
        let scale = scale();
        let stage = Stage::new(kind, "", &settings(scale))?;
        if what == QUOTA && kind == Kind::Claude {
            stage.log_in(); // it tells of limits only those who log in
        }
        stage.play(play);
        let run = stage.run();
        Some(Self { stage, run, kind, what, scale })
    }

    fn counter(&self, name: &str) -> u64 {
        self.stage.counter(name)
    }

    /// Ends what still runs, checks what holds for every outage, and reports the line.
    fn end(mut self) {
        let stage = &self.stage;
        let detail = stage.scratch.detail("T1");
        let status = stage.scratch.status("T1");
        let reason = stage.scratch.why("T1");
        if !self.run.is_over() {
            let _ = stage.scratch.landfall(&["stop", "--now"]); // it may have ended meanwhile, and that is as good
        }
        stage.until("the run to end", || self.run.is_over());
        let left = stage.scratch.left_behind();
        assert_eq!(left, [], "no process is left\n{}", stage.story());
        let spent = Duration::from_millis(detail["spent_ms"].as_u64().expect("a time"));
        let line = format!(
            "{}\t{}\t{status}\t{}\t{:.1} s\t{}\t{}\n",
            self.kind.name(),
            self.what,
            reason.trim().replace('\t', " "),
            spent.as_secs_f64(),
            stage.counter("agent runs"),
            left.len(),
        );
        if let Some(path) = std::env::var_os(REPORT) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the report can be written");
        }
    }
}

/// The provider takes the request and sends nothing but keep-alives: the run is ended, no time is spent, nobody fails.
pub fn silence(kind: Kind) {
    let pings = PlayTurn::ping(Duration::from_secs(15) / scale()).always();
    let Some(outage) = Outage::begin(kind, "silence", vec![pings]) else { return };
    let stage = &outage.stage;
    stage.until("the run to be ended", || outage.counter("transient errors") >= 1);
    let why = stage.scratch.why("T1");
    assert!(why.contains("the model did not answer for"), "{why}\n{}", stage.story());
    assert_eq!(outage.counter("stalls in all"), 0, "{}", stage.story());
    assert_eq!(outage.counter("agent restarts"), 0, "{}", stage.story());
    let silence = 600_000 / u64::from(outage.scale);
    let spent = stage.scratch.detail("T1")["spent_ms"].as_u64().expect("a time");
    let took = stage.ends().first().map_or(0, |end| {
        let at = |key: &str| end[key].as_u64().unwrap_or_default();
        at("ended_ms").saturating_sub(at("began_ms"))
    });
    assert!(took >= silence && spent + silence <= took + 1_500, "{spent} of {took} ms\n{}", stage.story());
    let accounts = stage.scratch.landfall(&["--json", "status"]).json();
    assert!(accounts.to_string().contains("\"troubled\""), "all tasks are held: {accounts:#}");
    outage.end();
}

/// The model thinks aloud for longer than the silence lasts, and the CLI prints nothing of it: it is left alone.
pub fn long_thinking(kind: Kind) {
    let span = Duration::from_secs(25 * 60) / scale();
    let turns = vec![PlayTurn::shell(WORK).after_thoughts(span), says_complete()];
    let Some(mut outage) = Outage::begin(kind, "long thinking", turns) else { return };
    outage.stage.until_over(&mut outage.run);
    outage.stage.check_landed();
    // A busy machine may need longer than the scaled silence to start the CLI, and such a run is ended before it asks its model
    // anything. A run that was ended while its model was thinking would ask the model once more.
    let asked = outage.stage.asked();
    assert_eq!(
        asked,
        2,
        "the model was asked once for the work and once for the end\n{}",
        outage.stage.story()
    );
    outage.end();
}

/// The stream is cut in the middle, several times: it is tried again.
pub fn cut_stream(kind: Kind) {
    let mut turns = vec![PlayTurn::cut("It begins and then").times(3)];
    turns.extend(works());
    let Some(mut outage) = Outage::begin(kind, "cut stream", turns) else { return };
    outage.stage.until_over(&mut outage.run);
    outage.stage.check_landed();
    outage.end();
}

/// The provider is overloaded and stays so: the account waits, the task does not fail.
pub fn endless_529(kind: Kind) {
    let status = if matches!(kind, Kind::Claude) { 529 } else { 503 };
    let turns = vec![kind.refusal(status).always()];
    let Some(outage) = Outage::begin(kind, "endless 529", turns) else { return };
    let stage = &outage.stage;
    stage.until("three tries", || outage.counter("transient errors") >= 3);
    stage.until_waits_for("backoff");
    let why = stage.scratch.why("T1");
    assert!(why.contains("tries again") && why.contains("passing error of the provider"), "{why}");
    outage.end();
}

/// The account is used up for the day: the task waits for the reset, and a guess is called a guess.
pub fn daily_quota(kind: Kind) {
    let turn = match kind {
        Kind::Opencode => kind.refusal(429), // it tells nothing of limits
        _ => kind.limit(now() + 3_600),
    };
    let Some(outage) = Outage::begin(kind, QUOTA, vec![turn.always()]) else { return };
    let stage = &outage.stage;
    match kind {
        Kind::Opencode => stage.until("two tries", || outage.counter("transient errors") >= 2),
        _ => {
            stage.until_waits_for("quota");
            let why = stage.scratch.why("T1");
            let guesses = why.contains("named no reset, so Landfall guesses");
            assert_eq!(guesses, kind == Kind::Gemini, "{why}");
            assert_eq!(outage.counter("agent runs"), 1, "{}", stage.story());
        }
    }
    outage.end();
}

/// The model does the same over and over: the agent is told so, and then it is the end.
pub fn identical_loop(kind: Kind) {
    let turns = vec![PlayTurn::shell("echo again").with_words("Once more.").always()];
    let Some(outage) = Outage::begin(kind, "identical loop", turns) else { return };
    let stage = &outage.stage;
    stage.until("it to be given up", || stage.scratch.status("T1") == "failed");
    let why = stage.scratch.why("T1");
    assert!(why.contains("reasoning_loop"), "{why}\n{}", stage.story());
    outage.end();
}

/// A command leaves a process in a session of its own: it is found and ended.
pub fn setsid_daemon(kind: Kind) {
    let command = format!("setsid sleep 3000 > /dev/null 2>&1 < /dev/null & {WORK}");
    let turns = vec![PlayTurn::shell(&command), says_complete()];
    let Some(mut outage) = Outage::begin(kind, "setsid daemon", turns) else { return };
    assert!(LIMIT < Duration::from_secs(3_000), "the process outlives the story by itself");
    outage.stage.until_over(&mut outage.run);
    outage.stage.check_landed();
    outage.end();
}
