//! Traces for an OpenTelemetry collector: a run with its tasks, their attempts, and within those iterations, verifications and
//! landings. They are made of the facts in the journal, after these were written.
//!
//! [`TraceExporter::record_entries`] only puts notes in line. A thread makes spans of them and posts them as OTLP over HTTP in JSON, which is a small
//! format: the exporter of OpenTelemetry would bring a second HTTP client and a second TLS with it, and wants to choose the ids
//! itself. Ours follow from what a span is about, so a parent can be named before it is over, and after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landfall_model::{
    Attempt, EndKind, EngineEvent, Event, Fact, JournalEntry, RunId, TaskId, Timestamp, Verdict, World,
};
use serde_json::{Value, json};

use crate::herald::NotifierContext;
use crate::logfile::LogFile;
use crate::notify::{NotificationTiming, find_proxy};

const LINE_MAX: usize = 4096; // notes in line; beyond, they are counted and left out
const BATCH_MAX: usize = 500; // spans in one message
const BATCH_EVERY: Duration = Duration::from_secs(2);
const KEPT_MAX: usize = 5000; // spans kept while a collector does not answer
const TEXT_MAX: usize = 200;

/// The line to a collector.
#[derive(Debug)]
pub struct TraceExporter {
    line: Option<SyncSender<SpanNote>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has ended.
    done: Receiver<()>,
}

impl TraceExporter {
    /// Begins to tell the collector at this address.
    #[must_use]
    pub fn start(ground: NotifierContext, otlp: &str, timing: &NotificationTiming) -> Self {
        let (line, notes) = sync_channel(LINE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let post = SpanExporter {
            url: format!("{}/v1/traces", otlp.trim_end_matches('/')),
            answer: timing.answer,
            log: LogFile::at_path(ground.folder.notices_log()),
            lost: Arc::clone(&lost),
            ground,
            kept: Vec::new(),
        };
        let (done_to, done) = mpsc::channel();
        let log = LogFile::at_path(post.ground.folder.notices_log());
        let started = std::thread::Builder::new().name("traces".to_owned()).spawn(move || {
            let _done_to = done_to; // closed by the end of the thread, a panic included
            post.run_exporter(&notes);
        });
        if let Err(error) = &started {
            // Traces must not hold up a run: what is not sent is counted as lost.
            log.append_line(
                &json!({ "about": "traces", "what": format!("none in this run: start a thread: {error}") }),
            );
        }
        Self { line: Some(line), lost, thread: started.ok(), done }
    }

    /// Hears facts that are in the journal. Returns at once.
    pub fn record_entries(&self, entries: &[JournalEntry], world: &World) {
        let Some(line) = &self.line else { return };
        for note in entries.iter().filter_map(|entry| note_for_entry(entry, world)) {
            if line.try_send(note).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Takes nothing in any more, and lets what is in line be told until `deadline`.
    pub fn finish_export(&mut self, deadline: Instant) {
        self.line = None;
        let Some(thread) = self.thread.take() else { return };
        let left = deadline.saturating_duration_since(Instant::now());
        if self.done.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
            let _ = thread.join(); // a panic there was reported by the panic hook
        }
    }
}

/// What a fact says about a span.
#[derive(Debug, Clone)]
struct SpanNote {
    at: Timestamp,
    what: SpanEvent,
}

#[derive(Debug, Clone)]
enum SpanEvent {
    RunBegan {
        run: RunId,
        slots: u32,
    },
    RunEnded {
        run: RunId,
        why: String,
    },
    Entered {
        task: TaskId,
        title: String,
        attempt: Attempt,
        step: String,
    },
    AttemptEnded {
        task: TaskId,
        result: String,
        good: bool,
    },
    TaskEnded {
        task: TaskId,
        result: String,
        good: bool,
    },
    IterationBegan {
        task: TaskId,
        iteration: u32,
    },
    IterationEnded {
        task: TaskId,
        iteration: u32,
        took_ms: u64,
        verdict: &'static str,
        good: bool,
        used: [u64; 3],
    },
    Verified {
        task: TaskId,
        took_ms: u64,
        outcome: &'static str,
        good: bool,
    },
    LandingBegan {
        task: TaskId,
    },
    LandingEnded {
        task: TaskId,
        result: &'static str,
        good: bool,
        commit: Option<String>,
    },
}

fn note_for_entry(entry: &JournalEntry, world: &World) -> Option<SpanNote> {
    let what = match &entry.fact {
        Fact::Engine(EngineEvent::RunStarted { run, slots, .. }) => {
            SpanEvent::RunBegan { run: *run, slots: *slots }
        }
        Fact::Engine(EngineEvent::RunEnded { run, why }) => {
            SpanEvent::RunEnded { run: *run, why: format!("{why:?}") }
        }
        Fact::Engine(_) => return None,
        Fact::Task(task, event) => of_task(*task, event, world)?,
    };
    Some(SpanNote { at: entry.at, what })
}

/// What does not begin or end anything that is a span says nothing here.
fn of_task(task: TaskId, event: &Event, world: &World) -> Option<SpanEvent> {
    Some(match event {
        Event::Entered { attempt, step, .. } => {
            let title = world.get(task).map(|it| it.spec.title.chars().take(TEXT_MAX).collect());
            SpanEvent::Entered {
                task,
                title: title.unwrap_or_default(),
                attempt: *attempt,
                step: step.to_string(),
            }
        }
        Event::Left { result, .. } => {
            SpanEvent::AttemptEnded { task, result: result.word().to_owned(), good: true }
        }
        Event::Yielded { why, .. } => SpanEvent::AttemptEnded {
            task,
            result: format!("{why:?}").chars().take(TEXT_MAX).collect(),
            good: false,
        },
        Event::Ended(ending) => SpanEvent::TaskEnded {
            task,
            result: ending.code.word().to_owned(),
            good: ending.kind == EndKind::Done,
        },
        Event::IterationBegan { iteration, .. } => SpanEvent::IterationBegan { task, iteration: *iteration },
        Event::IterationEnded { iteration, took_ms, verdict, usage, .. } => {
            let (verdict, good) = verdict_outcome(verdict);
            let used = [usage.tokens_in, usage.tokens_out, usage.micro_usd];
            SpanEvent::IterationEnded { task, iteration: *iteration, took_ms: *took_ms, verdict, good, used }
        }
        Event::Verified { report, .. } => {
            let outcome = report.outcome();
            SpanEvent::Verified {
                task,
                took_ms: report.took_ms,
                outcome: outcome.word(),
                good: outcome.is_green(),
            }
        }
        Event::LandingBegan { .. } => SpanEvent::LandingBegan { task },
        Event::Landed { commit, .. } => {
            SpanEvent::LandingEnded { task, result: "landed", good: true, commit: Some(commit.to_string()) }
        }
        Event::Requeued { .. } => {
            SpanEvent::LandingEnded { task, result: "requeued", good: false, commit: None }
        }
        Event::Ejected { .. } => {
            SpanEvent::LandingEnded { task, result: "ejected", good: false, commit: None }
        }
        _ => return None,
    })
}

/// A verdict in a word, and whether the agent did what agents are there for.
fn verdict_outcome(verdict: &Verdict) -> (&'static str, bool) {
    match verdict {
        Verdict::Complete => ("complete", true),
        Verdict::Continue => ("continue", true),
        Verdict::Checkpoint { .. } => ("checkpoint", true),
        Verdict::Pending { .. } => ("pending", true),
        Verdict::Blocked { .. } => ("blocked", false),
        Verdict::Quota { .. } => ("quota", false),
        Verdict::Transient { .. } => ("transient", false),
        Verdict::Unauthorized { .. } => ("unauthorized", false),
        Verdict::SessionGone => ("session-gone", false),
        Verdict::Looping => ("looping", false),
        Verdict::OverBudget { .. } => ("over-budget", false),
        Verdict::ContextUsedUp => ("context-used-up", false),
        Verdict::Crashed { .. } => ("crashed", false),
        Verdict::OutOfTime => ("out-of-time", false),
        Verdict::Stalled => ("stalled", false),
        Verdict::Stopped => ("stopped", true),
        Verdict::NotStarted { .. } => ("not-started", false),
        Verdict::Lost => ("lost", false),
    }
}

/// A span that is over.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'static str,
    from: Timestamp,
    to: Timestamp,
    good: bool,
    facts: Vec<(&'static str, Value)>,
}

/// What is under way.
struct Spans {
    seed: String,
    run: Option<(RunId, Timestamp, u32)>,
    tasks: BTreeMap<TaskId, ActiveTaskSpan>,
}

struct ActiveTaskSpan {
    since: Timestamp,
    title: String,
    attempt: Option<(Attempt, String, Timestamp)>,
    iteration: Option<(u32, Timestamp)>,
    landing: Option<Timestamp>,
}

impl Spans {
    fn new(seed: String) -> Self {
        Self { seed, run: None, tasks: BTreeMap::new() }
    }

    /// The spans that are over with this note.
    fn finish_spans(&mut self, SpanNote { at, what }: SpanNote) -> Vec<Span> {
        match what {
            SpanEvent::RunBegan { run, slots } => {
                let over = self.close_run(at, "lost", false);
                self.run = Some((run, at, slots));
                over
            }
            SpanEvent::RunEnded { run, why } => match &self.run {
                Some((under_way, ..)) if *under_way == run => self.close_run(at, &why, true),
                Some(_) | None => Vec::new(),
            },
            SpanEvent::Entered { task, title, attempt, step } => {
                let over = self.close_attempt(task, at, "left", true);
                let under_way = self.active_span(task, at);
                under_way.title = title;
                under_way.attempt = Some((attempt, step, at));
                over
            }
            SpanEvent::AttemptEnded { task, result, good } => self.close_attempt(task, at, &result, good),
            SpanEvent::TaskEnded { task, result, good } => self.close_task(task, at, &result, good),
            SpanEvent::IterationBegan { task, iteration } => {
                self.active_span(task, at).iteration = Some((iteration, at));
                Vec::new()
            }
            SpanEvent::IterationEnded { task, iteration, took_ms, verdict, good, used } => {
                let began = match self.active_span(task, at).iteration.take() {
                    Some((under_way, since)) if under_way == iteration => since,
                    // It was adopted: its begin was told by the engine before this one.
                    Some(_) | None => subtract_millis(at, took_ms),
                };
                let [tokens_in, tokens_out, micro_usd] = used;
                let facts = vec![
                    ("landfall.iteration", json!(iteration)),
                    ("landfall.verdict", json!(verdict)),
                    ("gen_ai.usage.input_tokens", json!(tokens_in)),
                    ("gen_ai.usage.output_tokens", json!(tokens_out)),
                    ("landfall.micro_usd", json!(micro_usd)),
                ];
                self.span_within_attempt(task, "iteration", &iteration.to_string(), (began, at), good, facts)
            }
            SpanEvent::Verified { task, took_ms, outcome, good } => {
                let facts = vec![("landfall.outcome", json!(outcome))];
                let name = at.0.to_string();
                self.span_within_attempt(
                    task,
                    "verification",
                    &name,
                    (subtract_millis(at, took_ms), at),
                    good,
                    facts,
                )
            }
            SpanEvent::LandingBegan { task } => {
                self.active_span(task, at).landing = Some(at);
                Vec::new()
            }
            SpanEvent::LandingEnded { task, result, good, commit } => {
                let began = self.active_span(task, at).landing.take().unwrap_or(at);
                let mut facts = vec![("landfall.outcome", json!(result))];
                facts.extend(commit.map(|it| ("landfall.commit", json!(it))));
                self.span_within_attempt(task, "landing", &at.0.to_string(), (began, at), good, facts)
            }
        }
    }

    fn active_span(&mut self, task: TaskId, at: Timestamp) -> &mut ActiveTaskSpan {
        self.tasks.entry(task).or_insert_with(|| ActiveTaskSpan {
            since: at,
            title: String::new(),
            attempt: None,
            iteration: None,
            landing: None,
        })
    }

    fn close_run(&mut self, at: Timestamp, why: &str, good: bool) -> Vec<Span> {
        let tasks: Vec<TaskId> = self.tasks.keys().copied().collect();
        let mut over: Vec<Span> =
            tasks.into_iter().flat_map(|task| self.close_task(task, at, "run ended", true)).collect();
        if let Some((run, since, slots)) = self.run {
            let facts = vec![
                ("landfall.run", json!(run.to_string())),
                ("landfall.slots", json!(slots)),
                ("landfall.outcome", json!(why)),
            ];
            over.push(self.build_span("run", None, &[], (since, at), good, facts));
        }
        self.run = None;
        over
    }

    fn close_task(&mut self, task: TaskId, at: Timestamp, result: &str, good: bool) -> Vec<Span> {
        let mut over = self.close_attempt(task, at, result, good);
        let Some(under_way) = self.tasks.remove(&task) else { return over };
        let name = task.to_string();
        let facts = vec![
            ("landfall.task", json!(name)),
            ("landfall.title", json!(under_way.title)),
            ("landfall.outcome", json!(result)),
        ];
        over.push(self.build_span("task", Some(&[]), &[&name], (under_way.since, at), good, facts));
        over
    }

    fn close_attempt(&mut self, task: TaskId, at: Timestamp, result: &str, good: bool) -> Vec<Span> {
        let open = self.tasks.get_mut(&task).and_then(|it| it.attempt.take());
        let Some((attempt, step, since)) = open else { return Vec::new() };
        let (task, attempt) = (task.to_string(), attempt.0.to_string());
        let facts = vec![
            ("landfall.task", json!(task)),
            ("landfall.attempt", json!(attempt)),
            ("landfall.step", json!(step)),
            ("landfall.outcome", json!(result)),
        ];
        vec![self.build_span("attempt", Some(&[&task]), &[&task, &attempt], (since, at), good, facts)]
    }

    /// A span within the attempt under way, or within the task where none is.
    fn span_within_attempt(
        &mut self,
        task: TaskId,
        kind: &'static str,
        which: &str,
        (from, to): (Timestamp, Timestamp),
        good: bool,
        mut facts: Vec<(&'static str, Value)>,
    ) -> Vec<Span> {
        let attempt =
            self.active_span(task, from).attempt.as_ref().map(|(attempt, ..)| attempt.0.to_string());
        let task = task.to_string();
        facts.insert(0, ("landfall.task", json!(task)));
        let parent: Vec<&str> = [Some(task.as_str()), attempt.as_deref()].into_iter().flatten().collect();
        let path: Vec<&str> = parent.iter().copied().chain([kind, which]).collect();
        vec![self.build_span(kind, Some(&parent), &path, (from, to), good, facts)]
    }

    fn build_span(
        &self,
        name: &'static str,
        parent: Option<&[&str]>,
        path: &[&str],
        (from, to): (Timestamp, Timestamp),
        good: bool,
        facts: Vec<(&'static str, Value)>,
    ) -> Span {
        let (run, since) = self.run.map_or((0, 0), |(run, since, _)| (run.0, since.0));
        let root = format!("{}\n{run}\n{since}", self.seed);
        let id = |path: &[&str]| hash_prefix(&format!("{root}\n{}", path.join("\n")));
        Span {
            trace: hash_prefix(&root),
            id: id(path),
            parent: parent.map(id),
            name,
            from,
            to: to.max(from),
            good,
            facts,
        }
    }
}

fn subtract_millis(at: Timestamp, ms: u64) -> Timestamp {
    Timestamp(at.0.saturating_sub(i64::try_from(ms).unwrap_or(0)))
}

/// The first bytes of the hash of what something is about: never all zero, which OpenTelemetry takes for none.
fn hash_prefix<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..N]);
    bytes
}

/// Posts spans.
struct SpanExporter {
    ground: NotifierContext,
    url: String,
    answer: Duration,
    log: LogFile,
    lost: Arc<AtomicU64>,
    kept: Vec<Span>,
}

impl SpanExporter {
    fn run_exporter(mut self, notes: &Receiver<SpanNote>) {
        // The same project gives the same ids, and two projects never do.
        let mut spans = Spans::new(self.ground.folder.root().display().to_string());
        let mut due = Instant::now() + BATCH_EVERY;
        loop {
            let heard = notes.recv_timeout(due.saturating_duration_since(Instant::now()));
            match heard {
                Ok(note) => self.kept.extend(spans.finish_spans(note)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.kept.len() >= BATCH_MAX || Instant::now() >= due {
                self.send_batch();
                due = Instant::now() + BATCH_EVERY;
            }
        }
        while !self.kept.is_empty() && self.send_batch() {}
    }

    /// Sends a batch. What cannot be sent is kept for the next time, within a bound. Says whether it went well.
    fn send_batch(&mut self) -> bool {
        let count = self.kept.len().min(BATCH_MAX);
        if count == 0 {
            return true;
        }
        let sent = self.post_spans(&to_otlp_json(&self.ground.project_label(), &self.kept[..count]));
        match sent {
            Ok(()) => {
                self.kept.drain(..count);
                true
            }
            Err(why) => {
                let extra = self.kept.len().saturating_sub(KEPT_MAX);
                self.kept.drain(..extra);
                let lost = self.lost.fetch_add(extra as u64, Ordering::Relaxed) + extra as u64;
                self.log.append_line(
                    &json!({ "traces": "not sent", "why": why, "kept": self.kept.len(), "lost": lost }),
                );
                false
            }
        }
    }

    fn post_spans(&self, body: &Value) -> Result<(), String> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(self.answer))
            .max_redirects(0) // what is sent goes where it was meant to go
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(find_proxy(&self.ground, &self.url))
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent: ureq::Agent = config.into();
        let answer = agent.post(&self.url).header("Content-Type", "application/json").send(body.to_string());
        match answer {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("the collector answered {}", answer.status().as_u16())),
            Err(error) => Err(error.to_string().chars().take(TEXT_MAX).collect()),
        }
    }
}

/// OTLP in JSON: ids in hex, large numbers as text.
fn to_otlp_json(project: &str, spans: &[Span]) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let nanos = |at: Timestamp| (i128::from(at.0.max(0)) * 1_000_000).to_string();
    let attribute = |name: &str, value: &Value| {
        let value = match value {
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::String(text) => json!({ "stringValue": text }),
            other => json!({ "stringValue": other.to_string() }),
        };
        json!({ "key": name, "value": value })
    };
    let span = |it: &Span| {
        let attributes: Vec<Value> = it.facts.iter().map(|(name, value)| attribute(name, value)).collect();
        json!({
            "traceId": hex(&it.trace),
            "spanId": hex(&it.id),
            "parentSpanId": it.parent.map(|id| hex(&id)).unwrap_or_default(),
            "name": it.name,
            "kind": 1,
            "startTimeUnixNano": nanos(it.from),
            "endTimeUnixNano": nanos(it.to),
            "attributes": attributes,
            "status": { "code": if it.good { 1 } else { 2 } },
        })
    };
    let resource = [
        ("service.name", "landfall"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("landfall.project", project),
    ];
    let resource: Vec<Value> = resource.iter().map(|(name, value)| attribute(name, &json!(value))).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "landfall" }, "spans": spans.iter().map(span).collect::<Vec<_>>() }],
    }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_note(at: i64, what: SpanEvent) -> SpanNote {
        SpanNote { at: Timestamp(at), what }
    }

    fn entered_event(task: u32, attempt: u32) -> SpanEvent {
        SpanEvent::Entered {
            task: TaskId(task),
            title: "A title".to_owned(),
            attempt: Attempt(attempt),
            step: "work".to_owned(),
        }
    }

    fn ended_event(task: u32, iteration: u32) -> SpanEvent {
        let (took_ms, used) = (30, [1, 2, 3]);
        SpanEvent::IterationEnded {
            task: TaskId(task),
            iteration,
            took_ms,
            verdict: "complete",
            good: true,
            used,
        }
    }

    #[test]
    fn spans_are_within_each_other_in_ids_and_in_time() {
        let mut spans = Spans::new("here".to_owned());
        let story = [
            make_note(100, SpanEvent::RunBegan { run: RunId(1), slots: 2 }),
            make_note(110, entered_event(1, 1)),
            make_note(120, SpanEvent::IterationBegan { task: TaskId(1), iteration: 1 }),
            make_note(150, ended_event(1, 1)),
            make_note(170, SpanEvent::Verified { task: TaskId(1), took_ms: 15, outcome: "pass", good: true }),
            make_note(
                171,
                SpanEvent::AttemptEnded { task: TaskId(1), result: "pass".to_owned(), good: true },
            ),
            make_note(172, entered_event(1, 2)),
            make_note(173, SpanEvent::LandingBegan { task: TaskId(1) }),
            make_note(
                180,
                SpanEvent::LandingEnded { task: TaskId(1), result: "landed", good: true, commit: None },
            ),
            make_note(190, SpanEvent::TaskEnded { task: TaskId(1), result: "landed".to_owned(), good: true }),
            make_note(200, SpanEvent::RunEnded { run: RunId(1), why: "NothingLeft".to_owned() }),
        ];
        let over: Vec<Span> = story.into_iter().flat_map(|note| spans.finish_spans(note)).collect();
        let told: Vec<String> =
            over.iter().map(|it| format!("{} {}-{}", it.name, it.from.0, it.to.0)).collect();
        assert_eq!(
            told,
            [
                "iteration 120-150",
                "verification 155-170",
                "attempt 110-171",
                "landing 173-180",
                "attempt 172-190",
                "task 110-190",
                "run 100-200"
            ]
        );
        let parent = |name: &str| over.iter().find(|it| it.name == name).and_then(|it| it.parent);
        let ids = |name: &str| over.iter().filter(|it| it.name == name).map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(parent("iteration"), Some(ids("attempt")[0]));
        assert_eq!(parent("verification"), Some(ids("attempt")[0]));
        assert_eq!(parent("landing"), Some(ids("attempt")[1]));
        assert_eq!(parent("attempt"), Some(ids("task")[0]));
        assert_eq!(parent("task"), Some(ids("run")[0]));
        assert_eq!(parent("run"), None);
        assert!(over.iter().all(|it| it.trace == over[0].trace));
    }

    #[test]
    fn an_adopted_iteration_has_the_time_it_took() {
        let mut spans = Spans::new("here".to_owned());
        assert_eq!(spans.finish_spans(make_note(100, SpanEvent::RunBegan { run: RunId(2), slots: 1 })), []);
        let over = spans.finish_spans(make_note(140, ended_event(7, 3)));
        assert_eq!((over[0].from, over[0].to), (Timestamp(110), Timestamp(140)));
        let names: Vec<&str> = spans
            .finish_spans(make_note(150, SpanEvent::RunBegan { run: RunId(3), slots: 1 }))
            .iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["task", "run"], "a run that was lost is over when the next begins");
    }
}
