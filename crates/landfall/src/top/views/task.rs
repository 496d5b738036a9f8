//! One task: why it is where it is, its attempts, its checks, its diff, its log.

use landfall_api::{AttemptLine, Gate, Level, Outcome, PhaseMark, PhaseState, Progress, Said, TaskDetail};
use landfall_text::control_chars::escape_line;
use ratatui::style::Style;
use ratatui::text::Line;

use super::text::WrappedText;
use super::{ViewContent, status_sign};
use crate::top::state::{OpenTask, TaskView, TuiState};
use crate::top::theme::Theme;

/// The page that is shown.
pub fn task_content(state: &TuiState, width: usize, theme: Theme) -> ViewContent<'_> {
    let Some(open) = &state.open else { return ViewContent::Built(Vec::new()) };
    let problem = |width| {
        let mut text = WrappedText::new(width);
        text.add_styled(open.problem.as_deref().unwrap_or("one moment …"), Theme::strong());
        ViewContent::Built(text.lines)
    };
    match (open.page, &open.detail) {
        (TaskView::Log, _) if open.log.is_empty() => problem(width),
        (TaskView::Log, _) => ViewContent::Log(&open.log),
        (TaskView::Diff, _) => match &open.diff {
            Some(lines) if lines.is_empty() => {
                let mut text = WrappedText::new(width);
                text.add_paragraph("it changes nothing yet");
                ViewContent::Built(text.lines)
            }
            Some(lines) => ViewContent::Raw(lines, diff_style),
            None => problem(width),
        },
        (TaskView::Output, _) => match &open.output {
            Some(output) if output.lines.is_empty() => {
                let mut text = WrappedText::new(width);
                text.add_paragraph("nothing is printed yet");
                ViewContent::Built(text.lines)
            }
            Some(output) => ViewContent::Output(&output.lines),
            None => problem(width),
        },
        (_, None) => problem(width),
        (TaskView::About, Some(detail)) => ViewContent::Built(about_lines(open, detail, width, theme)),
        (TaskView::Attempts, Some(detail)) => ViewContent::Built(attempt_lines(&detail.attempts, width)),
        (TaskView::Checks, Some(detail)) => {
            ViewContent::Built(check_lines(detail.gate.as_ref(), width, theme))
        }
    }
}

fn diff_style(line: &str, theme: Theme) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => theme.good(),
        Some(b'-') => theme.bad(),
        Some(b'@') => theme.lively(),
        Some(b' ') => Style::new(),
        Some(_) | None => Theme::strong(),
    }
}

/// One line of what an agent printed.
pub fn output_line(line: &Said, theme: Theme) -> Line<'static> {
    let (sign, style) = match line.level {
        Level::Error => ("✗ ", theme.bad()),
        Level::Warn => ("! ", theme.warn()),
        Level::Tool => ("⚙ ", theme.lively()),
        Level::Info | Level::Debug => ("· ", Theme::dim()),
        Level::Text | Level::Raw => ("  ", Style::new()),
    };
    let cut = if line.cut { " …" } else { "" };
    Line::styled(format!("{sign}{}{cut}", escape_line(&line.text.replace('\t', "    "))), style)
}

fn about_lines(open: &OpenTask, detail: &TaskDetail, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    let line = &detail.line;
    let (shape, style) = status_sign(line.status, theme);
    text.add_item(&format!("{shape} {}", line.status), style, &detail.why);
    if let Some(why) = &open.why {
        for more in &why.details {
            text.add_item(" ", Theme::dim(), more);
        }
    }
    if let Some(problem) = &open.problem {
        text.add_styled(problem, theme.warn());
    }
    for concern in &detail.concerns {
        text.add_item("◐", theme.warn(), &format!("it {}", concern.text));
    }
    for warning in &detail.warnings {
        text.add_item("!", theme.warn(), warning);
    }
    text.lines.push(Line::default());
    let step = detail.step.as_deref().unwrap_or("none");
    text.add_field("flow", &format!("{}, step {step}, attempt {}", detail.flow, detail.attempt));
    if let Some(progress) = &detail.progress {
        add_progress(&mut text, progress);
    }
    text.add_field("agent", &detail.agent);
    let cost = detail.cost_usd.map(|usd| format!(", {}", landfall_text::format_usd(usd))).unwrap_or_default();
    text.add_field(
        "used",
        &format!(
            "{}/{} iterations, {} of {}, {} tokens{cost}",
            line.iterations,
            detail.iterations_max,
            landfall_text::format_duration(detail.spent_ms),
            landfall_text::format_duration(detail.limit_ms),
            landfall_text::format_count(detail.tokens)
        ),
    );
    let counted = detail.counters.iter().filter(|counter| counter.used > 0);
    let counted: Vec<String> = counted
        .map(|counter| {
            let max = counter.max.map(|max| format!("/{max}")).unwrap_or_default();
            format!("{} {}{max}", counter.name, counter.used)
        })
        .collect();
    text.add_field("counted", &counted.join(", "));
    text.add_field("branch", detail.branch.as_deref().unwrap_or_default());
    text.add_field("workspace", detail.workspace.as_deref().unwrap_or_default());
    if let Some(landed) = &detail.landed_as {
        let when = landfall_text::format_local(landed.at_ms);
        text.add_field(
            "landed",
            &format!("as {}, {when}, {}", landfall_text::short_commit(&landed.commit), landed.proof),
        );
    }
    if let Some(feedback) = &detail.feedback {
        text.add_heading("What its agent is told next time");
        text.add_paragraph(feedback);
    }
    text.add_heading("What is wanted");
    text.add_paragraph(&detail.body);
    for criterion in &detail.criteria {
        text.add_item("•", Theme::strong(), criterion);
    }
    text.lines
}

/// How far a task with a plan is: its phases, its plan, its stage, its last judgement.
fn add_progress(text: &mut WrappedText, progress: &Progress) {
    let phase = |it: &PhaseMark| {
        let percent = it.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
        let sign = match it.state {
            PhaseState::Done => " ✓",
            PhaseState::Now => " ●",
            PhaseState::Stopped => " ✗",
            PhaseState::Next => "",
        };
        format!("[{}{sign}{percent}]", it.phase)
    };
    text.add_field("phases", &progress.phases.iter().map(phase).collect::<Vec<_>>().join("→"));
    if progress.plan_steps > 0 {
        text.add_field("plan", &format!("{} of {} steps done", progress.plan_done, progress.plan_steps));
    }
    if let Some(stage) = progress.stage {
        let close = progress.convergence.map(|it| format!(", convergence {it:.4}")).unwrap_or_default();
        text.add_field("stage", &format!("{stage}{close}"));
    }
    if let Some(verdict) = &progress.verdict {
        let composite = progress.composite.map(|it| format!(", composite {it:.3}")).unwrap_or_default();
        text.add_field("judged", &format!("{verdict}{composite}"));
    }
    text.add_field("by hand", &progress.can_do.join(", "));
}

fn attempt_lines(attempts: &[AttemptLine], width: usize) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    if attempts.is_empty() {
        text.add_paragraph("it has not been tried yet");
    }
    for attempt in attempts.iter().rev() {
        let took = attempt.ended_ms.map(|ended| {
            format!(
                ", {}",
                landfall_text::format_duration(u64::try_from(ended - attempt.began_ms).unwrap_or(0))
            )
        });
        let began = landfall_text::format_local(attempt.began_ms);
        text.add_heading(&format!(
            "a{} {} · {began}{}",
            attempt.attempt,
            attempt.step,
            took.unwrap_or_default()
        ));
        text.add_paragraph(&attempt.end);
        for run in &attempt.runs {
            let model = run.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
            let took =
                run.took_ms.map(landfall_text::format_duration).unwrap_or_else(|| "running".to_owned());
            let tokens =
                landfall_text::format_count(run.usage.tokens_in.saturating_add(run.usage.tokens_out));
            let cost = run
                .usage
                .cost_usd
                .map(|usd| format!(", {}", landfall_text::format_usd(usd)))
                .unwrap_or_default();
            text.add_item(
                &format!("  i{:<3}", run.iteration),
                Theme::dim(),
                &format!("{}{model}, {took}, {tokens} tokens{cost}: {}", run.profile, run.verdict),
            );
        }
    }
    text.lines
}

fn check_lines(gate: Option<&Gate>, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    let Some(gate) = gate else {
        text.add_paragraph("it was not verified yet");
        return text.lines;
    };
    let reused = if gate.reused { ", reused from an earlier pass of the same tree" } else { "" };
    text.add_paragraph(&format!(
        "{} in {}{reused}",
        gate.outcome,
        landfall_text::format_duration(gate.took_ms)
    ));
    text.add_field("commit", landfall_text::short_commit(&gate.commit));
    text.add_field("base", landfall_text::short_commit(&gate.base));
    if gate.empty {
        text.add_styled("there was nothing to run, so this means nothing", theme.warn());
    }
    for command in &gate.commands {
        let (shape, style) = match command.outcome {
            Outcome::Pass => ("✓", theme.good()),
            Outcome::Flaky | Outcome::PreExisting => ("!", theme.warn()),
            Outcome::Fail | Outcome::Broken => ("✗", theme.bad()),
            Outcome::Timeout => ("◷", theme.bad()),
        };
        text.lines.push(Line::default());
        let tests = command
            .tests
            .map(|tests| format!(", {}", landfall_text::pluralize(tests, "test")))
            .unwrap_or_default();
        let required = if command.required { "" } else { ", not required" };
        let time = match command.copied_from_base {
            true => "copied from the base".to_owned(),
            false => {
                format!(
                    "{} / {}",
                    landfall_text::format_duration(command.took_ms),
                    landfall_text::format_duration(command.limit_ms)
                )
            }
        };
        text.add_item(
            shape,
            style,
            &format!("{} {} ({time}{tests}{required})", command.name, command.outcome),
        );
        text.add_field("", &command.command);
        if command.outcome != Outcome::Pass {
            text.add_styled(&command.excerpt, Theme::dim());
        }
    }
    text.lines
}
