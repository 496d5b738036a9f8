//! What happened when, as a picture: a row for each task, a bar for each attempt, a flag for each landing, and how many tasks
//! were in scope and had landed. The list below it says the same in words.

use askama::Template;
use askama::filters::HtmlSafe;
use landfall_api::{AttemptKind, TaskDetail, WireTaskId};

use super::words;

const LEFT: f64 = 260.0;
const RIGHT: f64 = 16.0;
const WIDTH: f64 = 1000.0;
const TOP: f64 = 26.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
const SUM: f64 = 70.0; // the curves of scope and landed
const TICKS: usize = 5;
const NAMED_MIN: f64 = 44.0; // a narrower bar has no name

/// A task with what was tried on it.
pub(super) struct TimelineTask {
    pub(super) task: WireTaskId,
    pub(super) title: String,
    pub(super) spans: Vec<TimelineSpan>,
    pub(super) landed_ms: Option<i64>,
}

/// One attempt.
pub(super) struct TimelineSpan {
    step: String,
    kind: AttemptKind,
    has_failed: bool,
    began_ms: i64,
    ended_ms: i64,
    end: String,
}

impl TimelineTask {
    /// What is known of a task, between two moments.
    pub(super) fn from_detail(detail: &TaskDetail, from_ms: i64, to_ms: i64) -> Self {
        let within = |at_ms: i64| (from_ms..=to_ms).contains(&at_ms);
        let spans = detail.attempts.iter().filter_map(|attempt| {
            let ended_ms = attempt.ended_ms.unwrap_or(to_ms).min(to_ms);
            (ended_ms >= from_ms && attempt.began_ms <= to_ms).then(|| TimelineSpan {
                step: words::line(&attempt.step),
                kind: attempt.kind,
                has_failed: attempt.has_failed,
                began_ms: attempt.began_ms.max(from_ms),
                ended_ms,
                end: words::line(&attempt.end),
            })
        });
        Self {
            task: detail.line.id,
            title: words::line(&detail.line.title),
            spans: spans.collect(),
            landed_ms: detail.landed_as.as_ref().map(|landed| landed.at_ms).filter(|at| within(*at)),
        }
    }
}

/// The picture.
#[derive(Template)]
#[template(path = "timeline.html")]
pub(super) struct Timeline {
    width: f64,
    height: f64,
    left: f64,
    plot_right: f64,
    rows_bottom: f64,
    label: String,
    rows: Vec<TimelineRow>,
    flags: Vec<LandingFlag>,
    ticks: Vec<(f64, String)>,
    sum: Option<TimelineSum>,
}

impl HtmlSafe for Timeline {} // its template escapes every word

struct TimelineRow {
    y: f64,
    /// Where the middle of its text is.
    text_y: f64,
    task: WireTaskId,
    /// The whole title. The picture cuts it off: a part of a secret would not be known as one, and not be hidden.
    title: String,
    bars: Vec<TimelineBar>,
}

struct TimelineBar {
    x: f64,
    width: f64,
    class: &'static str,
    name: String,
    hint: String,
}

struct LandingFlag {
    x: f64,
    tasks: String,
}

struct TimelineSum {
    landed: String,
    scope_y: f64,
    landed_y: f64,
    scope: usize,
    count: usize,
}

impl Timeline {
    /// The tasks between two moments; none if there is nothing to show.
    pub(super) fn new(tasks: &[TimelineTask], from_ms: i64, to_ms: i64) -> Option<Self> {
        if tasks.iter().all(|task| task.spans.is_empty() && task.landed_ms.is_none()) {
            return None;
        }
        let plot_right = WIDTH - RIGHT;
        let span_ms = to_f64(to_ms.saturating_sub(from_ms).max(1));
        let x = |at_ms: i64| {
            round_tenth(LEFT + (plot_right - LEFT) * to_f64(at_ms.clamp(from_ms, to_ms) - from_ms) / span_ms)
        };
        let mut rows = Vec::new();
        for (place, task) in tasks.iter().enumerate() {
            let y = TOP + ROW * count_to_f64(place);
            let bars = task.spans.iter().map(|span| draw_span(span, x(span.began_ms), x(span.ended_ms)));
            rows.push(TimelineRow {
                y,
                text_y: y + BAR / 2.0,
                task: task.task,
                title: task.title.clone(),
                bars: bars.collect(),
            });
        }
        let rows_bottom = TOP + ROW * count_to_f64(tasks.len());
        let mut landings: Vec<(i64, WireTaskId)> =
            tasks.iter().filter_map(|task| Some((task.landed_ms?, task.task))).collect();
        landings.sort_unstable();
        let sum = (tasks.len() > 1).then(|| draw_sum(&landings, tasks.len(), rows_bottom, plot_right, &x));
        let ticks = (0..TICKS).map(|place| {
            let at_ms = from_ms + (to_ms - from_ms) * i64::try_from(place).unwrap_or(0) / 4;
            (x(at_ms), axis_label(at_ms, to_ms - from_ms))
        });
        let label = format!(
            "{} from {} to {}: {} landed",
            words::many(tasks.len() as u64, "task"),
            words::moment(from_ms),
            words::moment(to_ms),
            landings.len()
        );
        Some(Self {
            width: WIDTH,
            height: rows_bottom + if sum.is_some() { SUM } else { 0.0 } + 22.0,
            left: LEFT,
            plot_right,
            rows_bottom,
            label,
            rows,
            flags: group_flags(&landings, &x),
            ticks: ticks.collect(),
            sum,
        })
    }

    /// Where the words of the ticks stand.
    fn ticks_y(&self) -> f64 {
        self.height - 6.0
    }
}

fn draw_span(span: &TimelineSpan, from: f64, to: f64) -> TimelineBar {
    let width = (to - from).max(2.0);
    let class = match (span.has_failed, span.kind) {
        (true, _) => "t-red",
        (false, AttemptKind::Agent) => "t-agent",
        (false, AttemptKind::Checks) => "t-checks",
        (false, AttemptKind::Landing) => "t-waiting",
        (false, AttemptKind::Other) => "t-other",
    };
    let took = words::length(span.ended_ms.abs_diff(span.began_ms));
    let mark = if span.has_failed { " ✗" } else { "" };
    TimelineBar {
        x: from,
        width: round_tenth(width),
        class,
        name: if width >= NAMED_MIN { format!("{}{mark}", span.step) } else { String::new() },
        hint: format!("{}{mark} · {took} · {}", span.step, span.end),
    }
}

/// The landings as flags. Those that stand too close to tell them apart share one.
fn group_flags(landings: &[(i64, WireTaskId)], x: &impl Fn(i64) -> f64) -> Vec<LandingFlag> {
    const APART: f64 = 46.0;
    let mut flags: Vec<LandingFlag> = Vec::new();
    for (at_ms, task) in landings {
        match flags.last_mut().filter(|flag| x(*at_ms) - flag.x < APART) {
            Some(flag) if flag.tasks.len() > 12 => {}
            Some(flag) => flag.tasks.push_str(&format!(" {task}")),
            None => flags.push(LandingFlag { x: x(*at_ms), tasks: task.to_string() }),
        }
    }
    flags
}

fn draw_sum(
    landings: &[(i64, WireTaskId)],
    scope: usize,
    top: f64,
    right: f64,
    x: &impl Fn(i64) -> f64,
) -> TimelineSum {
    let (high, low) = (top + 14.0, top + SUM - 12.0);
    let y =
        |landed: usize| round_tenth(low - (low - high) * count_to_f64(landed) / count_to_f64(scope.max(1)));
    let mut landed = format!("M{LEFT} {}", y(0));
    for (place, (at_ms, _)) in landings.iter().enumerate() {
        landed.push_str(&format!(" H{} V{}", x(*at_ms), y(place + 1)));
    }
    landed.push_str(&format!(" H{right}"));
    TimelineSum { landed, scope_y: y(scope), landed_y: y(landings.len()), scope, count: landings.len() }
}

/// A moment on the axis: the time of day, with the day where that is not clear.
fn axis_label(at_ms: i64, span_ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    const SHORT_MS: i64 = 600_000; // minutes do not tell the moments of the axis apart
    let stamp = words::to_rfc3339(at_ms);
    let day = stamp.get(5..10).unwrap_or_default();
    let time = stamp.get(if span_ms < SHORT_MS { 11..19 } else { 11..16 }).unwrap_or_default();
    if span_ms > DAY_MS { format!("{day} {time}") } else { time.to_owned() }
}

fn round_tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "a picture is a thousand dots wide")]
fn to_f64(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "a picture is a thousand dots wide")]
fn count_to_f64(value: usize) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, spans: &[(AttemptKind, bool, i64, i64)], landed_ms: Option<i64>) -> TimelineTask {
        let span = |(kind, has_failed, began_ms, ended_ms): &(AttemptKind, bool, i64, i64)| TimelineSpan {
            step: "<b>work</b>".to_owned(),
            kind: *kind,
            has_failed: *has_failed,
            began_ms: *began_ms,
            ended_ms: *ended_ms,
            end: "<i>".to_owned(),
        };
        TimelineTask {
            task: WireTaskId(id),
            title: "<script>".to_owned(),
            spans: spans.iter().map(span).collect(),
            landed_ms,
        }
    }

    #[test]
    fn bars_stand_where_the_attempts_were_and_words_stay_words() {
        let tasks = [
            task(1, &[(AttemptKind::Agent, false, 0, 500), (AttemptKind::Checks, true, 500, 1_000)], None),
            task(2, &[(AttemptKind::Landing, false, 0, 10)], Some(1_000)),
        ];
        let timeline = Timeline::new(&tasks, 0, 1_000).expect("there is something");
        let bars = &timeline.rows[0].bars;
        assert_eq!((bars[0].x, bars[0].class, bars[1].class), (LEFT, "t-agent", "t-red"));
        assert!((bars[0].x + bars[0].width - bars[1].x).abs() < 0.2, "they follow each other");
        let html = timeline.to_string();
        assert!(!html.contains("<b>") && !html.contains("<script") && !html.contains("<i>"), "{html}");
        assert!(html.contains("scope 2") && html.contains("landed 1"), "{html}");
    }

    #[test]
    fn landings_close_together_share_a_flag() {
        let tasks: Vec<_> = (1..=3).map(|id| task(id, &[], Some(i64::from(id)))).collect();
        let timeline = Timeline::new(&tasks, 0, 1_000).expect("there is something");
        assert_eq!(timeline.flags.iter().map(|flag| flag.tasks.as_str()).collect::<Vec<_>>(), ["T1 T2 T3"]);
        assert!(Timeline::new(&[task(1, &[], None)], 0, 1).is_none());
    }
}
