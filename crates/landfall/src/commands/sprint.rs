//! `landfall sprint`: a run with a goal, and an honest report of it.

use landfall_api::{
    Mode, Nothing, PauseAsked, SprintFate, SprintGoal, SprintList, SprintOf, SprintPlan, SprintPreview,
    SprintReport, SprintStage, SprintTask, TypedService, WireSprintId, WireTaskId,
};
use landfall_app::clock;
use landfall_app::run_handle::{RunAsked, SprintAsked};
use landfall_text::control_chars::escape_line;

use super::run::{RunRequest, drive_run};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_message};
use crate::table::Table;
use crate::times;

/// Run the backlog up to a goal, such as a time, and report the result
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: SprintSubcommand,
}

#[derive(clap::Subcommand)]
enum SprintSubcommand {
    /// Start a sprint and run it
    Start(Box<Start>),
    /// Show the progress of the newest sprint
    Status,
    /// Pause the sprint: current iterations finish, and the time stops
    Pause {
        /// Reason, shown where the pause is shown
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Resume the open sprint, in the current run or in a new one
    Resume {
        /// Number of agents that work in parallel; the default is in `landfall.toml`
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        slots: Option<u32>,
        /// Never wait for you; a pause ends the run
        #[arg(long)]
        non_interactive: bool,
    },
    /// End the open sprint; current iterations finish, and their work is kept
    Cancel,
    /// Show the report of a sprint: what landed, what did not and why, what waits for you
    Report {
        /// Sprint, such as S3; the default is the newest
        sprint: Option<WireSprintId>,
    },
    /// List sprints
    List {
        /// Print one JSON object per line
        #[arg(long)]
        jsonl: bool,
    },
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("goal").required(true).args(["count", "duration", "until", "no_ready"]))]
struct Start {
    /// Until this many tasks are verified
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// For this long, such as 6h or 90m, without pauses
    #[arg(long, value_name = "TIME", value_parser = times::duration_ms)]
    duration: Option<u64>,
    /// Until this local time, such as 08:00 (tomorrow, if it is past), or "2026-08-01 08:00"
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Until no task is ready
    #[arg(long)]
    no_ready: bool,
    /// Only these tasks, such as T1,T2
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    only: Vec<WireTaskId>,
    /// Only subtasks of these tasks
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    parent: Vec<WireTaskId>,
    /// Only tasks with this tag; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    tag: Vec<String>,
    /// No tasks with this tag; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    not_tag: Vec<String>,
    /// Do not create a checkpoint first
    #[arg(long)]
    no_checkpoint: bool,
    /// Pause when a task fails
    #[arg(long)]
    pause_on_error: bool,
    /// List everything that lands in `landfall review`, for a review after landing
    #[arg(long)]
    batch_review: bool,
    /// Number of agents that work in parallel; the default is in `landfall.toml`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: Option<u32>,
    /// Never wait for you; a pause ends the run
    #[arg(long)]
    non_interactive: bool,
    /// Show the tasks and the forecast, and start nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        SprintSubcommand::Start(start) => start_sprint(*start, context),
        SprintSubcommand::Status => {
            let report = context.open_service()?.sprint(SprintOf { sprint: None })?;
            context.print_answer(&*report, |report| render_status(report, clock::now_ms()))?;
            Ok(CliExit::Ok)
        }
        SprintSubcommand::Pause { reason } => {
            let changed = context.open_service()?.sprint_pause(PauseAsked { reason })?;
            context.print_answer(&changed, |changed| format!("{}\n", escape_line(&changed.text)))?;
            Ok(CliExit::Ok)
        }
        SprintSubcommand::Resume { slots, non_interactive } => resume_sprint(slots, non_interactive, context),
        SprintSubcommand::Cancel => {
            let changed = context.open_service()?.sprint_cancel(Nothing {})?;
            context.print_answer(&changed, |changed| format!("{}\n", escape_line(&changed.text)))?;
            Ok(CliExit::Ok)
        }
        SprintSubcommand::Report { sprint } => {
            let report = context.open_service()?.sprint(SprintOf { sprint })?;
            context.print_answer(&*report, |report| render_full_report(report, clock::now_ms()))?;
            Ok(CliExit::Ok)
        }
        SprintSubcommand::List { jsonl } => {
            let list = context.open_service()?.sprints(Nothing {})?;
            if jsonl {
                print_data(&render_json_lines(&list)?)?
            } else {
                context.print_answer(&list, render_sprint_table)?
            }
            Ok(CliExit::Ok)
        }
    }
}

fn plan(start: &Start) -> Result<SprintPlan, CommandFailure> {
    let goal = match (start.count, start.duration, &start.until) {
        (Some(count), _, _) => SprintGoal::Count { count },
        (None, Some(duration_ms), _) => SprintGoal::Duration { duration_ms },
        (None, None, Some(text)) => {
            let now = jiff::Zoned::now();
            let at = times::parse_until(text, &now).map_err(|error| {
                CommandFailure::usage_error(error)
                    .with_hint("`--until 08:00` is the next time a clock here shows it")
            })?;
            if at.date() != now.date() && !text.contains('-') {
                let left = at.timestamp().as_millisecond() - now.timestamp().as_millisecond();
                let left = landfall_text::format_duration(u64::try_from(left).unwrap_or(0));
                print_message(&format!(
                    "{text} is past for today: the sprint ends tomorrow at {text}, in {left}"
                ));
            }
            SprintGoal::UntilTime { until_ms: at.timestamp().as_millisecond() }
        }
        (None, None, None) => SprintGoal::NoReady,
    };
    Ok(SprintPlan {
        goal,
        only: start.only.clone(),
        parents: start.parent.clone(),
        tags: start.tag.clone(),
        not_tags: start.not_tag.clone(),
        checkpoint: !start.no_checkpoint,
        pause_on_error: start.pause_on_error,
        batch_review: start.batch_review,
    })
}

fn start_sprint(start: Start, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let plan = plan(&start)?;
    if start.dry_run {
        let mut preview = context.open_service()?.sprint_preview(plan)?;
        if let Some(slots) = start.slots {
            rescale_preview(&mut preview, slots);
        }
        context.print_answer(&preview, render_preview)?;
        return Ok(CliExit::Ok);
    }
    let asked = RunAsked {
        slots: start.slots,
        mode: Some(Mode::Autopilot),
        sprint: Some(SprintAsked::New(plan)),
        ..RunAsked::default()
    };
    drive_run(RunRequest { asked, non_interactive: start.non_interactive }, context)
}

fn resume_sprint(
    slots: Option<u32>,
    non_interactive: bool,
    context: &CliContext,
) -> Result<CliExit, CommandFailure> {
    let report = context.open_service()?.sprint(SprintOf { sprint: None })?;
    if report.driven {
        let changed = context.open_service()?.sprint_resume(Nothing {})?;
        context.print_answer(&changed, |changed| format!("{}\n", escape_line(&changed.text)))?;
        return Ok(CliExit::Ok);
    }
    let asked = RunAsked {
        slots,
        mode: Some(Mode::Autopilot),
        sprint: Some(SprintAsked::Open),
        ..RunAsked::default()
    };
    drive_run(RunRequest { asked, non_interactive }, context)
}

/// The same with other slots than the settings say.
fn rescale_preview(preview: &mut SprintPreview, slots: u32) {
    let scale =
        |number: u64| number.saturating_mul(u64::from(preview.slots.max(1))).div_ceil(u64::from(slots));
    preview.total_ms = preview.total_ms.map(scale);
    let all = (preview.ready.len() + preview.later.len()) as u64 + preview.more;
    let more = |fits: u64| fits.saturating_mul(u64::from(slots)) / u64::from(preview.slots.max(1));
    preview.fits = preview.fits.map(|fits| more(fits).min(all));
    preview.slots = slots;
}

fn goal_label(goal: &SprintGoal) -> String {
    match goal {
        SprintGoal::Count { count } => {
            format!("until {} are verified", landfall_text::pluralize(u64::from(*count), "task"))
        }
        SprintGoal::Duration { duration_ms } => {
            format!("for {}", landfall_text::format_duration(*duration_ms))
        }
        SprintGoal::UntilTime { until_ms } => format!("until {}", landfall_text::format_local(*until_ms)),
        SprintGoal::NoReady => "until nothing is ready".to_owned(),
    }
}

fn render_preview(preview: &SprintPreview) -> String {
    let plan = &preview.plan;
    let mut text = format!(
        "a sprint {}, with {}\n",
        goal_label(&plan.goal),
        landfall_text::pluralize(preview.slots.into(), "slot")
    );
    let mut options = Vec::new();
    if plan.checkpoint {
        options.push("a checkpoint before it");
    }
    if plan.pause_on_error {
        options.push("a pause when the first task fails");
    }
    if plan.batch_review {
        options.push("a look at what landed afterwards");
    }
    if !options.is_empty() {
        text += &format!("with {}\n", options.join(", "));
    }
    let all = preview.ready.len() + preview.later.len();
    if all == 0 {
        return text + "no task would be in it; `landfall status` says how the backlog stands\n";
    }
    let mut table = Table::new(&["TASK", "WHEN", "TITLE"]);
    for brief in &preview.ready {
        table.add_row([&brief.task.to_string(), "ready", &brief.title]);
    }
    for brief in &preview.later {
        table.add_row([&brief.task.to_string(), "after what it needs", &brief.title]);
    }
    text += &table.to_text();
    if preview.more > 0 {
        text += &format!("and {} more\n", preview.more);
    }
    text += &match (preview.each_ms, preview.total_ms, preview.fits) {
        (Some(each), Some(total), _) => {
            format!(
                "about {}, at {} a task\n",
                landfall_text::format_duration(total),
                landfall_text::format_duration(each)
            )
        }
        (Some(each), None, Some(fits)) => {
            format!(
                "about {} fit into it, at {} a task\n",
                landfall_text::pluralize(fits, "task"),
                landfall_text::format_duration(each)
            )
        }
        (_, _, _) => "nothing has landed yet, so how long it takes is not known\n".to_owned(),
    };
    text
}

/// How a sprint goes, at a glance.
fn render_status(report: &SprintReport, now_ms: i64) -> String {
    let mut text = format!("{} {}\n", report.sprint, escape_line(&report.bar));
    if report.phase == SprintStage::Paused && !report.driven {
        text += "no run drives it; `landfall sprint resume` continues\n";
    }
    text += &format!("{}\n", escape_line(&report.verdict));
    if let Some(forecast) = forecast_text(report, now_ms) {
        text += &format!("{forecast}\n");
    }
    text += &plot_burn_up(report, now_ms);
    text += &format!("`landfall sprint report {}` says what became of each task\n", report.sprint);
    text
}

fn forecast_text(report: &SprintReport, now_ms: i64) -> Option<String> {
    let at = report.forecast_ms?;
    let more = landfall_text::pluralize(report.forecast_of, "more task");
    Some(format!("at this pace {more} would have landed by {}", landfall_text::format_until(at, now_ms)))
}

/// What became of a sprint: the bad news is not left out.
fn render_full_report(report: &SprintReport, now_ms: i64) -> String {
    let mut text = format!("# Sprint {}, {}\n\n", report.sprint, goal_label(&report.plan.goal));
    text += &format!("{}\n\n", escape_line(&report.verdict));
    let ended = match (report.ended_ms, report.phase) {
        (Some(at), _) => {
            format!("ended {}: {}", landfall_text::format_local(at), escape_line(&report.because))
        }
        (None, phase) if report.because.is_empty() => phase.word().to_owned(),
        (None, phase) => format!("{phase}: {}", escape_line(&report.because)),
    };
    text += &format!("- began {}, {ended}\n", landfall_text::format_local(report.started_ms));
    let paused = match report.paused_ms {
        0 => String::new(),
        ms => format!(", and was paused for {}", landfall_text::format_duration(ms)),
    };
    text += &format!("- went on for {}{paused}\n", landfall_text::format_duration(report.worked_ms));
    let cost = report.cost_usd.map(|usd| format!(", {}", landfall_text::format_usd(usd))).unwrap_or_default();
    text += &format!("- used {} tokens{cost}\n", landfall_text::format_count(report.tokens));
    if let Some(forecast) = forecast_text(report, now_ms) {
        text += &format!("- {forecast}\n");
    }
    let plot = plot_burn_up(report, now_ms);
    if !plot.is_empty() {
        text += &format!("\n## Landed over time\n\n{plot}");
    }
    let landed: Vec<&SprintTask> =
        report.tasks.iter().filter(|task| task.fate == SprintFate::Landed).collect();
    text += &render_section("Landed", &landed, |task| {
        let commit = task.commit.as_deref().map(landfall_text::short_commit).unwrap_or_default();
        let took = task.completed_ms.map(|at| at - task.started_ms).and_then(|ms| u64::try_from(ms).ok());
        let took = took
            .map(|ms| format!(", {} after it began", landfall_text::format_duration(ms)))
            .unwrap_or_default();
        format!("{commit}, {}{took}", landfall_text::pluralize(task.iterations.into(), "iteration"))
    });
    let failed: Vec<&SprintTask> = report
        .tasks
        .iter()
        .filter(|task| matches!(task.fate, SprintFate::Failed | SprintFate::Timeout | SprintFate::Blocked))
        .collect();
    text += &render_section("Did not land", &failed, |task| task.why.clone());
    let yours: Vec<&SprintTask> = report
        .tasks
        .iter()
        .filter(|task| task.owed || (task.needs_you && task.fate == SprintFate::Open))
        .collect();
    text += &render_section("Waits for you", &yours, |task| match task.owed {
        true => "has landed, and is to be looked at; `landfall review` lists it".to_owned(),
        false => task.why.clone(),
    });
    let ejected: Vec<&SprintTask> = report.tasks.iter().filter(|task| task.ejected).collect();
    text += &render_section("Sent back out of the landing queue on the way", &ejected, |task| {
        format!("{}; now {}", task.sent_back.clone().unwrap_or_default(), task.status)
    });
    let open: Vec<&SprintTask> =
        report.tasks.iter().filter(|task| task.fate == SprintFate::Open && !task.needs_you).collect();
    text += &render_section("Not finished", &open, |task| task.why.clone());
    let gone: Vec<&SprintTask> =
        report.tasks.iter().filter(|task| task.fate == SprintFate::Cancelled).collect();
    text += &render_section("Cancelled", &gone, |task| task.why.clone());
    text
}

fn render_section(title: &str, tasks: &[&SprintTask], more: impl Fn(&SprintTask) -> String) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {title}\n\n");
    for task in tasks {
        let review = task.review.as_ref().map(|word| format!(" ({word})")).unwrap_or_default();
        text +=
            &format!("- {} {}{review}: {}\n", task.task, escape_line(&task.title), escape_line(&more(task)));
    }
    text
}

const PLOT_COLUMNS: usize = 48;
const PLOT_ROWS: usize = 6;

/// How many had landed, over the time of the sprint.
fn plot_burn_up(report: &SprintReport, now_ms: i64) -> String {
    let Some(last) = report.burn_up.last() else { return String::new() };
    let (from, to) = (report.started_ms, report.ended_ms.unwrap_or(now_ms).max(last.at_ms));
    let span = (to - from).max(1);
    let rows = usize::try_from(last.landed).unwrap_or(PLOT_ROWS).min(PLOT_ROWS);
    let landed_at = |column: usize| {
        let at =
            from + span * i64::try_from(column + 1).unwrap_or(0) / i64::try_from(PLOT_COLUMNS).unwrap_or(1);
        report.burn_up.iter().rev().find(|point| point.at_ms <= at).map_or(0, |point| point.landed)
    };
    let mut text = String::new();
    for row in (1..=rows).rev() {
        let level = last.landed * row as u64 / rows as u64;
        let bars: String =
            (0..PLOT_COLUMNS).map(|column| if landed_at(column) >= level { '█' } else { ' ' }).collect();
        text += &format!("{level:>5} |{}\n", bars.trim_end());
    }
    let (begin, end) = (landfall_text::format_until(from, now_ms), landfall_text::format_until(to, now_ms));
    let gap = PLOT_COLUMNS.saturating_sub(begin.len() + end.len()).max(1);
    text + &format!("      +{}\n       {begin}{}{end}\n", "-".repeat(PLOT_COLUMNS), " ".repeat(gap))
}

fn render_json_lines(list: &SprintList) -> Result<String, CommandFailure> {
    let mut text = String::new();
    for sprint in &list.sprints {
        let line = serde_json::to_string(sprint);
        text +=
            &line.map_err(|error| CommandFailure::new(CliExit::Internal, format!("write JSON: {error}")))?;
        text.push('\n');
    }
    Ok(text)
}

fn render_sprint_table(list: &SprintList) -> String {
    if list.sprints.is_empty() {
        return "there is no sprint yet; `landfall sprint start --count 10` starts one\n".to_owned();
    }
    let mut table = Table::new(&["SPRINT", "BEGAN", "WANTED", "LANDED", "FAILED", "TASKS", "HOW IT IS"]);
    for sprint in &list.sprints {
        let wanted = match (&sprint.target.kind[..], &sprint.target.value) {
            ("count", value) => format!("{value} tasks"),
            ("duration", value) => format!("{value} hours"),
            ("until_time", value) => {
                format!("until {}", landfall_text::format_local_rfc3339(value.as_str().unwrap_or_default()))
            }
            (_, _) => "nothing ready".to_owned(),
        };
        let how = sprint
            .end
            .as_ref()
            .map_or_else(|| sprint.phase.word().to_owned(), |end| format!("{}: {end}", sprint.phase));
        table.add_row([
            &sprint.id.to_string(),
            &landfall_text::format_local_rfc3339(&sprint.started_at),
            &wanted,
            &sprint.completed_tasks.to_string(),
            &sprint.failed_tasks.to_string(),
            &sprint.total_tasks.to_string(),
            &how,
        ]);
    }
    table.to_text()
}

#[cfg(test)]
mod tests {
    use landfall_api::{
        BurnPoint, SprintFate, SprintGoal, SprintPlan, SprintReport, SprintStage, SprintTask, Status,
        WireSprintId, WireTaskId,
    };

    use super::render_full_report;

    #[test]
    fn the_report_of_a_bad_night_leaves_nothing_out() {
        let plan = SprintPlan {
            goal: SprintGoal::Count { count: 4 },
            only: Vec::new(),
            parents: Vec::new(),
            tags: Vec::new(),
            not_tags: Vec::new(),
            checkpoint: true,
            pause_on_error: false,
            batch_review: false,
        };
        let task = |number: u32, fate: SprintFate, status, commit: Option<&str>| SprintTask {
            task: WireTaskId(number),
            title: format!("title {number}"),
            fate,
            status,
            started_ms: 0,
            completed_ms: commit.map(|_| 600_000),
            iterations: 2,
            verified: commit.is_some(),
            ejected: number == 2,
            sent_back: (number == 2).then(|| "sent back out of B7: tests (exit 1)".to_owned()),
            needs_you: commit.is_none(),
            review: None,
            owed: false,
            commit: commit.map(str::to_owned),
            tokens: 10,
            cost_usd: None,
            why: format!("T{number} is {fate}."),
        };
        let report = SprintReport {
            sprint: WireSprintId(3),
            plan,
            phase: SprintStage::Over,
            driven: false,
            because: "nothing was left that could start".to_owned(),
            started_ms: 0,
            ended_ms: Some(3_600_000),
            worked_ms: 3_000_000,
            paused_ms: 600_000,
            ready_at_start: 3,
            ready: 0,
            bar: "SPRINT | …".to_owned(),
            verdict: "1 of 3 tasks landed, 1 failed, 4 were wanted.".to_owned(),
            landed: 1,
            total: 5,
            tasks: vec![
                task(1, SprintFate::Landed, Status::Done, Some("3f2a9c0d1e2f3a4b")),
                task(2, SprintFate::Failed, Status::Failed, None),
                task(3, SprintFate::Open, Status::Waiting, None),
            ],
            tokens: 30,
            cost_usd: Some(0.5),
            burn_up: vec![BurnPoint { at_ms: 1_800_000, landed: 1 }],
            forecast_ms: None,
            forecast_of: 0,
        };
        let text = render_full_report(&report, 3_600_000);
        let rest = text.split("## Landed\n").nth(1).unwrap_or_default();
        expect_test::expect![[r#"

            - T1 title 1: 3f2a9c0d1e, 2 iterations, 10m after it began

            ## Did not land

            - T2 title 2: T2 is failed.

            ## Waits for you

            - T3 title 3: T3 is open.

            ## Sent back out of the landing queue on the way

            - T2 title 2: sent back out of B7: tests (exit 1); now failed
        "#]]
        .assert_eq(rest);
        assert!(text.contains("went on for 50m, and was paused for 10m"), "{text}");
        assert!(text.contains("used 30 tokens, $0.50"), "{text}");
        let half = format!("    1 |{}{}\n", " ".repeat(23), "█".repeat(25));
        assert!(text.contains(&half), "{text}");
    }
}
