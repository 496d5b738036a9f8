//! The landing queue: who stands in line, which batches are on their way, how a red one is taken apart, and what is flaky.

use askama::Template;
use askama::filters::HtmlSafe;
use landfall_api::{
    BatchLine, Nothing, Outcome, Problem, QueuePlace, QueueReport, StatsAsked, StatsGate, TypedService as _,
    WireTaskId,
};

use super::inbox::mark;
use super::{PageContext, RenderedPage, parts, words};

const GATE_DAYS: u32 = 7; // long enough to see a habit, short enough to be about now
const LINE_MAX: usize = 200;

#[derive(Template)]
#[template(path = "queue.html")]
struct QueuePage<'a> {
    queue: &'a QueueReport,
    now_ms: i64,
    gates: Vec<StatsGate>,
    verified: u64,
    /// How long a verification took on average.
    verify_ms: Option<u64>,
}

impl QueuePage<'_> {
    /// How long it may take until a task in the line lands: its own verification, and those of the batches before it.
    fn estimate(&self, place: &QueuePlace) -> Option<String> {
        let each = self.verify_ms.filter(|_| self.queue.hold.is_none())?;
        let batches = &self.queue.batches;
        let before = match &place.batch {
            Some(name) => batches.iter().position(|batch| batch.batch == *name).unwrap_or_default(),
            None => batches.len(),
        };
        Some(format!("about {}", words::length(each.saturating_mul(before as u64 + 1))))
    }
}

pub(super) fn draw_queue_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let queue = visit.queue(Nothing {})?;
    // Without its history the queue is still worth looking at.
    let stats = visit.stats(StatsAsked { days: GATE_DAYS }).ok();
    let gates = stats.as_ref().map(|stats| stats.gates.clone()).unwrap_or_default();
    let verified: u64 = gates.iter().map(|gate| gate.count).sum();
    let verify_ms = stats.and_then(|stats| stats.total.verify_ms.checked_div(verified)).filter(|ms| *ms > 0);
    let page = QueuePage { queue: &queue, now_ms: visit.now_ms(), gates, verified, verify_ms };
    RenderedPage::new("Landing queue", &page)
}

#[expect(clippy::cast_precision_loss, reason = "a bar is coarser than a float")]
fn share(count: u64, of: u64, outcome: Outcome) -> parts::ProgressBar {
    let percent = count as f64 * 100.0 / of.max(1) as f64;
    parts::progress_bar(percent, mark(outcome).1, words::many(count, "verification"))
}

/// Every look at a batch as a row: the members that were verified together, and what came of it.
#[derive(Template)]
#[template(path = "bisect.html")]
struct BisectFigure<'a> {
    batch: &'a BatchLine,
    width: usize,
    height: usize,
    heads: Vec<BisectColumn>,
    rows: Vec<BisectRow>,
}

impl HtmlSafe for BisectFigure<'_> {} // its template escapes every word

struct BisectColumn {
    x: usize,
    task: WireTaskId,
    culprit: bool,
}

struct BisectRow {
    y: usize,
    cells: Vec<Cell>,
    outcome: Outcome,
}

struct Cell {
    x: usize,
    within: bool,
}

const CELL: usize = 52;
const ROW: usize = 30;
const MEMBERS_MAX: usize = 24; // wider than that nobody follows a row
const LOOKS_MAX: usize = 40;

fn bisect(batch: &BatchLine) -> BisectFigure<'_> {
    let members = batch.members.len().min(MEMBERS_MAX);
    let x = |place: usize| 12 + place * CELL;
    let heads = batch.members.iter().take(members).enumerate().map(|(place, task)| BisectColumn {
        x: x(place),
        task: *task,
        culprit: batch.culprit == Some(*task),
    });
    let rows = batch.looks.iter().take(LOOKS_MAX).enumerate().map(|(number, look)| BisectRow {
        y: 30 + number * ROW,
        cells: (0..members)
            .map(|place| Cell {
                x: x(place),
                within: place < usize::try_from(look.count).unwrap_or(usize::MAX),
            })
            .collect(),
        outcome: look.outcome,
    });
    BisectFigure {
        batch,
        width: x(members) + 120,
        height: 36 + batch.looks.len().min(LOOKS_MAX) * ROW,
        heads: heads.collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{BatchLook, FlakeLine, HoldLine, QueuePlace};

    use super::*;

    fn batch(looks: &[(u64, Outcome)]) -> BatchLine {
        BatchLine {
            batch: "B7".to_owned(),
            on: Some("B6".to_owned()),
            members: (1..=5).map(WireTaskId).collect(),
            titles: Vec::new(),
            doing: "looking for the culprit <b>".to_owned(),
            looks: looks
                .iter()
                .map(|(count, outcome)| BatchLook { count: *count, outcome: *outcome })
                .collect(),
            drawing: "5 ✗ → 2 ✓ → 3 ✗".to_owned(),
            culprit: Some(WireTaskId(3)),
            commit: None,
            ended_ms: None,
        }
    }

    #[test]
    fn every_look_is_a_row_and_the_culprit_is_named() {
        let batch = batch(&[(5, Outcome::Fail), (2, Outcome::Pass), (3, Outcome::Fail)]);
        let drawn = bisect(&batch);
        let within: Vec<usize> =
            drawn.rows.iter().map(|row| row.cells.iter().filter(|it| it.within).count()).collect();
        assert_eq!(within, [5, 2, 3]);
        let html = drawn.to_string();
        assert!(html.contains("role=\"img\"") && html.contains("5 ✗ → 2 ✓ → 3 ✗"), "{html}");
        assert!(!html.contains("<b>") && !html.contains("style="), "{html}");
        let far = self::batch(&[(u64::MAX, Outcome::Broken)]);
        assert_eq!(bisect(&far).rows[0].cells.iter().filter(|it| it.within).count(), 5);
    }

    #[test]
    fn the_whole_queue_is_drawn_and_words_stay_words() {
        let hostile = "<script>x</script>".to_owned();
        let queue = QueueReport {
            line: vec![QueuePlace {
                place: 1,
                task: WireTaskId(3),
                title: hostile.clone(),
                since_ms: 0,
                batch: Some(hostile.clone()),
                text: hostile.clone(),
            }],
            batches: vec![batch(&[(5, Outcome::Fail)])],
            hold: Some(HoldLine {
                why: landfall_api::HoldReason::Rewritten,
                reason: hostile.clone(),
                since_ms: 0,
                until_ms: Some(5),
                hint: hostile.clone(),
            }),
            past: vec![batch(&[])],
            flakes: vec![FlakeLine { check: hostile, runs: 3, flakes: 1, last_ms: Some(1) }],
        };
        let gates = vec![StatsGate { outcome: Outcome::Pass, count: 3 }];
        let html = QueuePage { queue: &queue, now_ms: 9, gates, verified: 3, verify_ms: Some(60_000) }
            .render()
            .expect("drawn");
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("keep_landed"), "{html}");
    }
}
