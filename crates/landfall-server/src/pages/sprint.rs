//! Sprints: what one would be, how one goes, and what became of each.

use askama::Template;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use landfall_api::{
    Nothing, Problem, ProblemCode, Request, RunAsked, SprintAsked, SprintGoal, SprintOf, SprintPlan,
    SprintPreview, SprintRecord, SprintReport, SprintStage, TaskAsked, TaskBrief, TypedService as _,
    WireSprintId,
};

use super::plot::{Curve, CurveKind, PlotFigure, PlotUnit, draw_curves};
use super::timeline::{Timeline, TimelineTask};
use super::{PageContext, RenderedPage, parts, words};

const HOUR_MS: f64 = 3_600_000.0;
const HOURS_MAX: f64 = 24.0 * 365.0;

#[derive(Template)]
#[template(path = "sprint.html")]
struct SprintPage<'a> {
    report: Option<&'a SprintReport>,
    burn_up: Option<PlotFigure>,
    timeline: Option<Timeline>,
    /// One sprint at a time: no other can be started while this one is open.
    may_start: bool,
    form: StartForm,
    preview: Option<SprintPreviewView<'a>>,
    wrong: Option<Problem>,
    now_ms: i64,
}

/// What the person filled in to start one.
#[derive(Default)]
struct StartForm {
    goal: String,
    count: String,
    hours: String,
    until: String,
    only: String,
    parents: String,
    tags: String,
    not_tags: String,
    checkpoint: bool,
    pause_on_error: bool,
    batch_review: bool,
    slots: String,
    /// The time zone in which `until` is meant.
    zone: String,
    open: bool,
}

struct SprintPreviewView<'a> {
    preview: &'a SprintPreview,
    goal: String,
    /// How many could begin, and how many at a time.
    ready: String,
    agents: String,
    /// What starts it.
    fields: Vec<(String, String)>,
}

pub(super) fn draw_sprint_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    // Without any sprint there is nothing to report, and everything to start one.
    let report = match visit.sprint(SprintOf { sprint: visit.parse_query_value::<WireSprintId>("sprint") }) {
        Ok(report) => Some(report),
        Err(problem) if visit.query_value("sprint").is_none() && problem.code.http_status() == 404 => None,
        Err(problem) => return Err(problem),
    };
    let now_ms = visit.now_ms();
    let form = StartForm::read(visit);
    let planned = form.open.then(|| form.plan());
    let (mut wrong, mut preview) = (None, None);
    match planned {
        None => {}
        Some(Err(problem)) => wrong = Some(problem),
        Some(Ok(plan)) => match visit.sprint_preview(plan) {
            Ok(found) => preview = Some(found),
            Err(problem) => wrong = Some(problem),
        },
    }
    let preview = preview.as_ref().map(|preview| SprintPreviewView {
        preview,
        goal: goal_words(&preview.plan.goal),
        ready: words::many(preview.ready.len() as u64, "task"),
        agents: words::many(u64::from(preview.slots), "agent"),
        fields: start_fields(&preview.plan, form.slots.parse().ok()),
    });
    let page = SprintPage {
        timeline: report.as_deref().and_then(|report| build_timeline(visit, report, now_ms)),
        may_start: report.as_ref().is_none_or(|report| report.phase == SprintStage::Over),
        report: report.as_deref(),
        burn_up: report.as_ref().map(|report| burn_up_plot(report, now_ms)),
        form,
        preview,
        wrong,
        now_ms,
    };
    RenderedPage::new("Sprint", &page)
}

impl StartForm {
    fn read(visit: &PageContext<'_>) -> Self {
        let asked = |name: &str| visit.query_value(name).unwrap_or_default().to_owned();
        let open = visit.query_value("goal").is_some();
        Self {
            goal: visit.query_value("goal").unwrap_or("count").to_owned(),
            count: visit.query_value("count").unwrap_or("5").to_owned(),
            hours: visit.query_value("hours").unwrap_or("2").to_owned(),
            until: asked("until"),
            only: asked("only"),
            parents: asked("parents"),
            tags: asked("tags"),
            not_tags: asked("not_tags"),
            // A box that is not ticked is not sent: before the form was sent, it is as the settings of a sprint are.
            checkpoint: if open { visit.query_value("checkpoint").is_some() } else { true },
            pause_on_error: visit.query_value("pause_on_error").is_some(),
            batch_review: visit.query_value("batch_review").is_some(),
            slots: asked("slots"),
            zone: TimeZone::system().iana_name().unwrap_or("the server's time zone").to_owned(),
            open,
        }
    }

    fn plan(&self) -> Result<SprintPlan, Problem> {
        let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
        let goal = match self.goal.as_str() {
            "count" => {
                let count = self.count.parse().ok().filter(|it| *it > 0);
                SprintGoal::Count {
                    count: count.ok_or_else(|| bad("how many tasks is a number".to_owned()))?,
                }
            }
            "duration" => {
                let hours = self.hours.parse::<f64>().ok().filter(|it| *it > 0.0 && *it <= HOURS_MAX);
                let hours = hours.ok_or_else(|| bad("how long is a number of hours".to_owned()))?;
                SprintGoal::Duration { duration_ms: to_whole_ms(hours * HOUR_MS) }
            }
            "until" => {
                let until = self.until.parse::<DateTime>().and_then(|it| it.to_zoned(TimeZone::system()));
                let until = until.map_err(|_| bad("until when is a date and a time".to_owned()))?;
                SprintGoal::UntilTime { until_ms: until.timestamp().as_millisecond() }
            }
            "no-ready" => SprintGoal::NoReady,
            other => return Err(bad(format!("`{other}` is no goal of a sprint"))),
        };
        let split = |text: &str| -> Vec<String> {
            let words = text.split(|it: char| it == ',' || it.is_whitespace());
            words.filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        let tasks = |text: &str| {
            let parsed =
                split(text).into_iter().map(|it| it.parse().map_err(|error| bad(format!("{error}"))));
            parsed.collect::<Result<Vec<_>, _>>()
        };
        Ok(SprintPlan {
            goal,
            only: tasks(&self.only)?,
            parents: tasks(&self.parents)?,
            tags: split(&self.tags),
            not_tags: split(&self.not_tags),
            checkpoint: self.checkpoint,
            pause_on_error: self.pause_on_error,
            batch_review: self.batch_review,
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and a year")]
fn to_whole_ms(ms: f64) -> u64 {
    ms as u64
}

/// The fields of the form that starts this plan.
fn start_fields(plan: &SprintPlan, slots: Option<u32>) -> Vec<(String, String)> {
    let sprint = Some(SprintAsked::New(plan.clone()));
    let asked = Request::RunStart(RunAsked { sprint, slots, attended: true, ..RunAsked::default() });
    let mut fields = Vec::new();
    match asked.words().ok().and_then(|words| parts::flatten_fields(&words, "", &mut fields)) {
        Some(()) => fields,
        None => Vec::new(), // never: every word of a run can stand in a form
    }
}

fn goal_words(goal: &SprintGoal) -> String {
    match goal {
        SprintGoal::Count { count } => {
            format!("until {} are verified", words::many(u64::from(*count), "task"))
        }
        SprintGoal::Duration { duration_ms } => format!("for {}", words::length(*duration_ms)),
        SprintGoal::UntilTime { until_ms } => format!("until {}", words::moment(*until_ms)),
        SprintGoal::NoReady => "until nothing is ready".to_owned(),
    }
}

/// When which of its tasks was worked on.
fn build_timeline(visit: &PageContext<'_>, report: &SprintReport, now_ms: i64) -> Option<Timeline> {
    const ROWS_MAX: usize = 60; // more is not taken in; the table below has them all
    let to_ms = report.ended_ms.unwrap_or(now_ms);
    let tasks = report.tasks.iter().take(ROWS_MAX);
    let details = tasks.filter_map(|task| visit.show(TaskAsked { task: task.task }).ok());
    let rows: Vec<TimelineTask> =
        details.map(|detail| TimelineTask::from_detail(&detail, report.started_ms, to_ms)).collect();
    Timeline::new(&rows, report.started_ms, to_ms)
}

fn burn_up_plot(report: &SprintReport, now_ms: i64) -> PlotFigure {
    #[expect(clippy::cast_precision_loss, reason = "nobody lands that many tasks")]
    let many = |count: u64| count as f64;
    let end = report.ended_ms.unwrap_or(now_ms);
    let landed = report.burn_up.last().map_or(0, |point| point.landed);
    let mut points = vec![(report.started_ms, 0.0)];
    points.extend(report.burn_up.iter().map(|point| (point.at_ms, many(point.landed))));
    points.push((end.max(report.started_ms), many(landed)));
    let mut all = vec![Curve { name: "landed", kind: CurveKind::Steps, points }];
    let mut last = end;
    if let Some(forecast) = report.forecast_ms.filter(|it| *it > end && report.ended_ms.is_none()) {
        last = forecast;
        all.push(Curve {
            name: "expected",
            kind: CurveKind::Expected,
            points: vec![(end, many(landed)), (forecast, many(landed + report.forecast_of))],
        });
    }
    if let SprintGoal::Count { count } = report.plan.goal {
        let goal = f64::from(count);
        all.push(Curve {
            name: "wanted",
            kind: CurveKind::LogPageQuery,
            points: vec![(report.started_ms, goal), (last, goal)],
        });
    }
    draw_curves("burn-up", "Tasks landed", PlotUnit::Count, &all)
}

#[derive(Template)]
#[template(path = "sprints.html")]
struct SprintsPage {
    now_ms: i64,
    sprints: Vec<SprintRecord>,
}

pub(super) fn draw_sprints_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let mut sprints = visit.sprints(Nothing {})?.sprints;
    sprints.reverse();
    RenderedPage::new("Sprints", &SprintsPage { now_ms: crate::keys::now_ms(), sprints })
}

/// When a sprint began.
fn began(sprint: &SprintRecord) -> Option<i64> {
    sprint.started_at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// The tasks of a preview, in short.
fn named(tasks: &[TaskBrief]) -> impl Iterator<Item = &TaskBrief> {
    tasks.iter().take(50)
}

/// What a sprint of the list wanted, in words.
fn target_words(record: &SprintRecord) -> String {
    let value = match &record.target.value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match record.target.kind.as_str() {
        "count" => format!("{value} tasks"),
        "duration" => format!("{value} hours"),
        "until_time" => match value.parse::<jiff::Timestamp>() {
            Ok(at) => format!("until {}", words::moment(at.as_millisecond())),
            Err(_) => format!("until {value}"), // an older version wrote it
        },
        _ => "until nothing is ready".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{BurnPoint, Status, WireTaskId};

    use super::*;

    fn form(goal: &str) -> StartForm {
        StartForm {
            goal: goal.to_owned(),
            count: "3".to_owned(),
            hours: "1.5".to_owned(),
            until: "2030-01-02T03:04".to_owned(),
            ..StartForm::default()
        }
    }

    #[test]
    fn what_was_filled_in_becomes_a_plan() {
        let goal = |word: &str| form(word).plan().map(|plan| plan.goal);
        assert_eq!(goal("count"), Ok(SprintGoal::Count { count: 3 }));
        assert_eq!(goal("duration"), Ok(SprintGoal::Duration { duration_ms: 5_400_000 }));
        assert!(matches!(goal("until"), Ok(SprintGoal::UntilTime { .. })));
        assert_eq!(goal("no-ready"), Ok(SprintGoal::NoReady));
        assert!(goal("never").is_err());
        assert!(StartForm { count: "many".to_owned(), ..form("count") }.plan().is_err());
        assert!(StartForm { only: "T1, x".to_owned(), ..form("count") }.plan().is_err());
    }

    #[test]
    fn the_form_that_starts_it_says_the_same() {
        let plan = StartForm { only: "T1 T2".to_owned(), tags: "docs".to_owned(), ..form("count") }.plan();
        let fields = start_fields(&plan.expect("a plan"), Some(2));
        let fields: Vec<String> = fields.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert!(fields.contains(&"sprint.new.goal.count:n=3".to_owned()), "{fields:?}");
        assert!(fields.contains(&"sprint.new.only[]=T2".to_owned()), "{fields:?}");
        assert!(fields.contains(&"sprint.new.checkpoint:b=false".to_owned()), "{fields:?}");
        assert!(fields.contains(&"slots:n=2".to_owned()), "{fields:?}");
    }

    #[test]
    fn a_sprint_is_drawn_with_its_curve_and_words_stay_words() {
        let hostile = "<script>x</script>".to_owned();
        let report = SprintReport {
            sprint: WireSprintId(2),
            plan: form("count").plan().expect("a plan"),
            phase: SprintStage::Running,
            driven: true,
            because: hostile.clone(),
            started_ms: 1_000,
            ended_ms: None,
            worked_ms: 5,
            paused_ms: 0,
            ready_at_start: 3,
            ready: 1,
            bar: hostile.clone(),
            verdict: hostile.clone(),
            landed: 1,
            total: 3,
            tasks: vec![landfall_api::SprintTask {
                task: WireTaskId(1),
                title: hostile.clone(),
                fate: landfall_api::SprintFate::Landed,
                status: Status::Done,
                started_ms: 0,
                completed_ms: Some(3),
                iterations: 1,
                verified: true,
                ejected: true,
                sent_back: Some(hostile.clone()),
                needs_you: true,
                review: None,
                owed: true,
                commit: Some(hostile.clone()),
                tokens: 3,
                cost_usd: Some(0.5),
                why: hostile.clone(),
            }],
            tokens: 5,
            cost_usd: None,
            burn_up: vec![BurnPoint { at_ms: 60_000, landed: 1 }],
            forecast_ms: Some(600_000),
            forecast_of: 2,
        };
        let preview = SprintPreview {
            plan: report.plan.clone(),
            ready: vec![TaskBrief { task: WireTaskId(1), title: hostile.clone() }],
            later: Vec::new(),
            more: 3,
            slots: 2,
            each_ms: Some(60_000),
            total_ms: None,
            fits: None,
        };
        let page = SprintPage {
            burn_up: Some(burn_up_plot(&report, 120_000)),
            report: Some(&report),
            timeline: None,
            may_start: true,
            form: form("count"),
            preview: Some(SprintPreviewView {
                preview: &preview,
                goal: hostile.clone(),
                ready: String::new(),
                agents: String::new(),
                fields: Vec::new(),
            }),
            wrong: Some(Problem::new(ProblemCode::BadInput, hostile)),
            now_ms: 120_000,
        };
        let html = page.render().expect("drawn");
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("class=\"curve expected\"") && html.contains("class=\"curve wanted\""),
            "{html}"
        );
    }
}
