//! A run on the screen: live on a terminal, plain lines otherwise, a table at the end. And what Ctrl-C means.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use landfall_api::{Mode, OutcomeLine, RunEnded, RunOutcome, Status};
use landfall_app::clock;
use landfall_app::run_handle::{NewsLine, RunHandle, RunMode, RunView, SlotLine};
use landfall_app::run_text;
use landfall_text::control_chars::escape_line;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_message, shorten_to_columns};
use crate::table::Table;

const FRAME_EVERY: Duration = Duration::from_millis(125); // eight a second: alive, and not a load
const WORD_EVERY: Duration = Duration::from_secs(30); // without a terminal: silence for longer reads as a hang

/// A number that can be waited for.
#[derive(Default)]
struct InterruptCount {
    number: Mutex<usize>,
    changed: Condvar,
}

impl InterruptCount {
    fn lock_number(&self) -> MutexGuard<'_, usize> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts how often the person asked to stop: Ctrl-C, or SIGTERM.
pub struct Interrupts {
    count: Arc<InterruptCount>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Interrupts {
    /// From now on they are counted. The third ends the program at once.
    pub fn start_listening() -> Result<Self, CommandFailure> {
        let fail = |error: std::io::Error| {
            CommandFailure::new(CliExit::Internal, format!("listen for signals: {error}"))
        };
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(fail)?;
        let handle = signals.handle();
        let count = Arc::new(InterruptCount::default());
        let counted = Arc::clone(&count);
        let thread = thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for _ in &mut signals {
                    let mut number = counted.lock_number();
                    *number += 1;
                    counted.changed.notify_all();
                    if *number >= 3 {
                        print_message(
                            "\nleft at once; agents that still work are adopted by the next `landfall run`",
                        );
                        std::process::exit(CliExit::Interrupted.exit_code().into());
                    }
                }
            })
            .map_err(fail)?;
        Ok(Self { count, handle, thread: Some(thread) })
    }

    /// How many there were.
    pub fn count_seen(&self) -> usize {
        *self.count.lock_number()
    }

    /// Waits until there were more than `seen`, at most for `span`.
    pub fn wait_for_more_than(&self, seen: usize, span: Duration) {
        let waited =
            self.count.changed.wait_timeout_while(self.count.lock_number(), span, |number| *number <= seen);
        drop(waited); // whoever waited looks again anyway
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it only counts; a panic there was reported by the panic hook
        }
    }
}

/// Shows the run until it ends.
pub fn watch_run(run: &mut dyn RunHandle, interrupts: &Interrupts) -> RunOutcome {
    let term = console::Term::stderr();
    let mut screen = if term.is_term() && !crate::tone::is_dumb() {
        RunDisplay::Live { term, drawn: 0 }
    } else {
        RunDisplay::Plain { last: Instant::now() }
    };
    let mut heard = 0;
    loop {
        let outcome = run.wait(FRAME_EVERY);
        while heard < interrupts.count_seen() {
            heard += 1;
            screen.print_above(&handle_interrupt(run, heard));
        }
        let view = run.snapshot();
        for news in &view.news {
            screen.print_above(&news_line(news));
        }
        match outcome {
            Some(outcome) => {
                screen.clear();
                return outcome;
            }
            None => screen.show_view(&view),
        }
    }
}

fn handle_interrupt(run: &mut dyn RunHandle, heard: usize) -> String {
    if heard == 1 {
        run.drain();
        return "finishing the iterations under way; Ctrl-C again stops now".to_owned();
    }
    run.stop_now();
    "stopping now; the work is kept. Ctrl-C again leaves at once".to_owned()
}

/// What the exit code says about a run.
pub fn exit_for_run(outcome: &RunOutcome, interrupts: &Interrupts) -> CliExit {
    if interrupts.count_seen() > 0 { CliExit::Interrupted } else { exit_by_tasks(outcome) }
}

fn exit_by_tasks(outcome: &RunOutcome) -> CliExit {
    match &outcome.ended {
        RunEnded::Broken(problem) => return CommandFailure::from(problem.clone()).code,
        RunEnded::Held(_) | RunEnded::Paused(_) => return CliExit::NeedsYou,
        RunEnded::Deferred(_) => return CliExit::TooManyDeferred,
        RunEnded::Finished | RunEnded::OneDone | RunEnded::Goal | RunEnded::Drained | RunEnded::Stopped => {}
    }
    let worst = outcome.tasks.iter().map(|task| match task.status {
        Status::Failed | Status::Timeout | Status::Blocked => 2,
        Status::Review => 1,
        Status::Waiting => match task.wait {
            // At the end of a whole run nothing waits that could go on by itself, so a person is wanted.
            Some(wait) if wait.is_yours() => 1,
            Some(_) | None => i32::from(outcome.ended == RunEnded::Finished),
        },
        Status::Draft
        | Status::Ready
        | Status::Active
        | Status::Landing
        | Status::Done
        | Status::Cancelled => 0,
    });
    match worst.max() {
        Some(2) => CliExit::SomeDidNotLand,
        Some(1) => CliExit::NeedsYou,
        Some(_) | None if outcome.needs_you.is_empty() => CliExit::Ok,
        Some(_) | None => CliExit::NeedsYou,
    }
}

/// Where the run is shown.
enum RunDisplay {
    /// Redrawn in place.
    Live { term: console::Term, drawn: usize },
    /// One line after the other.
    Plain { last: Instant },
}

impl RunDisplay {
    /// A line that stays.
    fn print_above(&mut self, line: &str) {
        self.clear();
        print_message(line);
        if let Self::Plain { last } = self {
            *last = Instant::now();
        }
    }

    fn show_view(&mut self, view: &RunView) {
        match self {
            Self::Live { term, drawn } => {
                let (height, width) = term.size();
                let lines = frame_lines(view, width.into(), height.into());
                let mut text = erase_lines(*drawn);
                for line in &lines {
                    text += line;
                    text.push('\n');
                }
                *drawn = lines.len();
                let _ = std::io::stderr().lock().write_all(text.as_bytes()); // the terminal is gone: the run goes on
            }
            Self::Plain { last } => {
                if last.elapsed() >= WORD_EVERY {
                    *last = Instant::now();
                    print_message(&format!(
                        "{} {}",
                        landfall_text::format_clock(clock::now_ms()),
                        progress_line(view)
                    ));
                }
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Live { drawn, .. } if *drawn > 0 => {
                let _ = std::io::stderr().lock().write_all(erase_lines(*drawn).as_bytes()); // the terminal is gone
                *drawn = 0;
            }
            Self::Live { .. } | Self::Plain { .. } => {}
        }
    }
}

/// Up over the lines drawn before, and everything below away.
fn erase_lines(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\r\x1b[J") }
}

/// What is on the screen: a row for each slot in use, then the sums. No row is wider than the terminal, or it would
/// wrap and the next frame would not find its place.
fn frame_lines(view: &RunView, width: usize, height: usize) -> Vec<String> {
    let room = height.saturating_sub(3).max(1); // the sums, the prompt line, and a line for what is above
    let shown = if view.slots.len() > room { room - 1 } else { view.slots.len() };
    let mut lines: Vec<String> = view.slots[..shown].iter().map(slot_line).collect();
    if shown < view.slots.len() {
        lines.push(format!("… and {} more at work", view.slots.len() - shown));
    }
    lines.extend(view.batches.iter().map(|batch| escape_line(batch).into_owned()));
    lines.extend(alert_lines(view));
    lines.extend(view.sprint.as_ref().map(|bar| escape_line(bar).into_owned()));
    lines.push(totals_line(view));
    let over = lines.len().saturating_sub(height.saturating_sub(1).max(1));
    lines.drain(..over); // the last lines say most
    lines.iter().map(|line| shorten_to_columns(line, width.saturating_sub(1).max(1)).into_owned()).collect()
}

fn slot_line(slot: &SlotLine) -> String {
    let words = if slot.last_words.is_empty() {
        String::new()
    } else {
        format!(" · {}", escape_line(&slot.last_words))
    };
    format!(
        "{:<5} {:<10} {:>7} {:>8} {:>7}{}  {}{words}",
        escape_line(&slot.task),
        escape_line(&slot.doing),
        format!("{}/{}", slot.iteration, slot.iterations_max),
        landfall_text::format_duration(slot.elapsed_ms),
        landfall_text::format_count(slot.tokens),
        slot.cost_usd.map(|usd| format!(" {:>7}", landfall_text::format_usd(usd))).unwrap_or_default(),
        shorten_to_columns(&escape_line(&slot.title), 48),
    )
}

/// What a person must not miss.
fn alert_lines(view: &RunView) -> Vec<String> {
    let paused = view.paused.as_ref().map(|reason| {
        format!(
            "!! PAUSED: {} !! `landfall run resume` in another terminal goes on; Ctrl-C ends the run",
            escape_line(reason)
        )
    });
    let held = view.queue_held.as_ref().map(|reason| {
        format!("!! LANDING QUEUE HELD: {} !! `landfall queue` says more", escape_line(reason))
    });
    let pick = view.pick.as_ref().map(|pick| format!("?? {}", escape_line(pick)));
    paused.into_iter().chain(held).chain(pick).collect()
}

fn totals_line(view: &RunView) -> String {
    let mode = match view.mode {
        RunMode::Running if view.paused.is_some() => "paused · ",
        RunMode::Running if view.pilot == Some(Mode::SemiAuto) => "semi-auto · ",
        RunMode::Running => "",
        RunMode::Draining => "finishing · ",
        RunMode::Stopping => "stopping · ",
    };
    let mut parts = vec![format!("{} landed", view.landed)];
    for (number, name) in [
        (view.landing, "landing"),
        (view.failed, "not landed"),
        (view.waiting, "waiting"),
        (view.needs_you, "for you"),
        (view.queued, "queued"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {name}"));
        }
    }
    // A task that is being verified is at work without a slot, so the two numbers are apart.
    parts.push(format!("{} at work", view.slots.len()));
    parts.push(landfall_text::pluralize(view.slots_max.into(), "slot"));
    parts.push(landfall_text::format_duration(view.elapsed_ms));
    if view.tokens > 0 {
        parts.push(format!("{} tokens", landfall_text::format_count(view.tokens)));
    }
    parts.extend(view.cost_usd.map(landfall_text::format_usd));
    format!("{mode}{}", parts.join(" · "))
}

/// The same in one line, for logs.
fn progress_line(view: &RunView) -> String {
    let at_work: Vec<String> = view
        .slots
        .iter()
        .map(|slot| {
            format!(
                "{} {} {}/{}",
                escape_line(&slot.task),
                escape_line(&slot.doing),
                slot.iteration,
                slot.iterations_max
            )
        })
        .collect();
    let at_work =
        if at_work.is_empty() { String::new() } else { format!("; at work: {}", at_work.join(", ")) };
    let mut line = format!("{}{at_work}", totals_line(view));
    for more in
        alert_lines(view).into_iter().chain(view.sprint.as_ref().map(|bar| escape_line(bar).into_owned()))
    {
        line = format!("{line}; {more}");
    }
    line
}

/// A piece of news in a line.
pub fn news_line(news: &NewsLine) -> String {
    let task = news.task.map(|task| format!("{task} ")).unwrap_or_default();
    format!("{} {task}{}", landfall_text::format_clock(news.at_ms), escape_line(&news.text))
}

/// How the run ended: a table, then what did not land and why, then what only a person can do.
pub fn render_summary(outcome: &RunOutcome) -> String {
    let mut table = Table::new(&["TASK", "STATUS", "ITERATIONS", "TIME", "COMMIT", "TITLE"]);
    for task in &outcome.tasks {
        table.add_row([
            &task.task.to_string(),
            &status_with_wait(task),
            &task.iterations.to_string(),
            &landfall_text::format_duration(task.spent_ms),
            task.commit.as_deref().map_or("", landfall_text::short_commit),
            &task.title,
        ]);
    }
    let mut text = if outcome.tasks.is_empty() { String::new() } else { table.to_text() + "\n" };
    let count =
        |wanted: &[Status]| outcome.tasks.iter().filter(|task| wanted.contains(&task.status)).count() as u64;
    let landed = count(&[Status::Done]);
    let not_landed = outcome.tasks.len() as u64 - landed - count(&[Status::Cancelled]);
    text += &match (outcome.tasks.len(), &outcome.line) {
        (0, _) if !outcome.needs_you.is_empty() => format!("{}: nothing was done\n", outcome.run),
        (0, _) => format!("{}: there was nothing to do\n", outcome.run),
        (_, Some(line)) => {
            let figures = run_text::run_figures(line, clock::now_ms());
            let figures: Vec<String> =
                figures.iter().skip(1).map(|(name, value)| format!("{name} {value}")).collect();
            format!("{}: {}\n{}\n", line.run, run_text::run_headline(line), figures.join(" · "))
        }
        (_, None) => {
            let took = landfall_text::format_duration(outcome.elapsed_ms);
            format!("{}: {landed} landed, {not_landed} did not, in {took}\n", outcome.run)
        }
    };
    text += &run_ended_text(&outcome.ended);
    // What needs the person is said below, with what to do about it.
    let said_below = |task: &OutcomeLine| outcome.needs_you.iter().any(|need| need.contains(&task.why));
    for task in &outcome.tasks {
        if !matches!(task.status, Status::Done | Status::Cancelled) && !said_below(task) {
            text += &format!("- {}\n", escape_line(&task.why));
        }
    }
    text + &notes_text(outcome)
}

/// The same without what became of each task, for whoever says that in their own words.
pub fn ending_text(outcome: &RunOutcome) -> String {
    run_ended_text(&outcome.ended) + &notes_text(outcome)
}

fn run_ended_text(ended: &RunEnded) -> String {
    let mut text = String::new();
    match ended {
        RunEnded::Finished => {}
        RunEnded::Goal => text += "the goal of the sprint was reached\n",
        RunEnded::OneDone => {
            text += "one task at a time: `landfall run` takes the next, `landfall run --mode autopilot` all of them\n"
        }
        RunEnded::Paused(reason) => {
            text += &format!(
                "PAUSED: {}; nobody was there to resume it, so the run ended. `landfall run` continues\n",
                escape_line(reason)
            );
        }
        RunEnded::Drained => {
            text += "ended as asked, after the iterations under way; `landfall run` continues\n"
        }
        RunEnded::Stopped => text += "stopped as asked; the work is kept, `landfall run` continues\n",
        RunEnded::Deferred(many) => {
            text += &format!(
                "failed: nobody was there, and {many} tasks were put aside for a person; `landfall list` shows them\n"
            );
        }
        RunEnded::Held(reason) => text += &format!("held: {}\n", escape_line(reason)),
        RunEnded::Broken(problem) => {
            text += &format!("broke off: {}\n", escape_line(&problem.message));
            if let Some(hint) = &problem.hint {
                text += &format!("hint: {}\n", escape_line(hint));
            }
        }
    }
    text
}

fn notes_text(outcome: &RunOutcome) -> String {
    let mut text = String::new();
    for warning in &outcome.warnings {
        text += &format!("warning: {}\n", escape_line(warning));
    }
    for need in &outcome.needs_you {
        text += &format!("needs you: {}\n", escape_line(need));
    }
    if let Some(report) = &outcome.report {
        text += &format!("report: {}\n", escape_line(report));
    }
    text
}

fn status_with_wait(task: &OutcomeLine) -> String {
    match task.wait {
        Some(wait) => format!("{} ({wait})", task.status),
        None => task.status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{
        OutcomeLine, Problem, ProblemCode, RunEnded, RunOutcome, Status, WaitFor, WireRunId, WireTaskId,
    };

    use super::{exit_by_tasks, frame_lines, render_summary};
    use crate::exit::CliExit;
    use landfall_app::run_handle::{RunView, SlotLine};

    fn line(number: u32, status: Status, wait: Option<WaitFor>) -> OutcomeLine {
        OutcomeLine {
            task: WireTaskId(number),
            title: format!("title {number}"),
            status,
            wait,
            iterations: 2,
            spent_ms: 41_000,
            tokens: 12_345,
            commit: (status == Status::Done).then(|| "3f2a9c0d1e2f3a4b".to_owned()),
            why: format!("T{number} is {status}."),
        }
    }

    fn outcome(ended: RunEnded, tasks: Vec<OutcomeLine>) -> RunOutcome {
        RunOutcome {
            run: WireRunId(3),
            ended,
            tasks,
            elapsed_ms: 65_000,
            tokens: 24_690,
            cost_usd: None,
            warnings: Vec::new(),
            needs_you: Vec::new(),
            sprint: None,
            report: None,
            line: None,
        }
    }

    #[test]
    fn the_exit_code_says_what_became_of_the_tasks() {
        let done = || line(1, Status::Done, None);
        let broken = Problem::new(ProblemCode::DiskFull, "no room");
        let cases = [
            (RunEnded::Finished, vec![], CliExit::Ok),
            (RunEnded::Finished, vec![done(), line(2, Status::Cancelled, None)], CliExit::Ok),
            (RunEnded::Finished, vec![done(), line(2, Status::Failed, None)], CliExit::SomeDidNotLand),
            (RunEnded::Finished, vec![line(2, Status::Timeout, None)], CliExit::SomeDidNotLand),
            (
                RunEnded::Finished,
                vec![line(2, Status::Blocked, None), line(3, Status::Review, None)],
                CliExit::SomeDidNotLand,
            ),
            (RunEnded::Finished, vec![line(3, Status::Review, None)], CliExit::NeedsYou),
            (RunEnded::Finished, vec![line(3, Status::Waiting, Some(WaitFor::Question))], CliExit::NeedsYou),
            (
                RunEnded::Finished,
                vec![line(3, Status::Waiting, Some(WaitFor::Dependency))],
                CliExit::NeedsYou,
            ),
            (RunEnded::Drained, vec![line(3, Status::Waiting, Some(WaitFor::Dependency))], CliExit::Ok),
            (RunEnded::Held("the gate is broken".to_owned()), vec![done()], CliExit::NeedsYou),
            (RunEnded::Deferred(11), vec![done(), line(3, Status::Review, None)], CliExit::TooManyDeferred),
            (RunEnded::Broken(broken), vec![done()], CliExit::Machine),
        ];
        for (ended, tasks, exit) in cases {
            let outcome = outcome(ended, tasks);
            assert_eq!(exit_by_tasks(&outcome), exit, "{outcome:?}");
        }
        let held =
            RunOutcome { needs_you: vec!["look".to_owned()], ..outcome(RunEnded::Finished, vec![done()]) };
        assert_eq!(exit_by_tasks(&held), CliExit::NeedsYou);
    }

    #[test]
    fn the_summary_names_what_did_not_land() {
        let mut outcome = outcome(
            RunEnded::Finished,
            vec![line(1, Status::Done, None), line(2, Status::Waiting, Some(WaitFor::Question))],
        );
        outcome.needs_you.push("answer T2".to_owned());
        expect_test::expect![[r#"
            TASK  STATUS              ITERATIONS  TIME  COMMIT      TITLE
            T1    done                         2   41s  3f2a9c0d1e  title 1
            T2    waiting (question)           2   41s              title 2

            R3: 1 landed, 1 did not, in 1m 5s
            - T2 is waiting.
            needs you: answer T2
        "#]]
        .assert_eq(&render_summary(&outcome));
    }

    #[test]
    fn a_frame_fits_the_terminal_whatever_agents_say() {
        let slot = |number: u32| SlotLine {
            task: format!("T{number}"),
            title: "日本語 ".repeat(30),
            doing: "working".to_owned(),
            iteration: 2,
            iterations_max: 50,
            elapsed_ms: 41_000,
            tokens: 12_345,
            last_words: "\u{1b}[2J\nrm -rf".to_owned(),
            ..SlotLine::default()
        };
        let view = RunView { slots: (1..=40).map(slot).collect(), slots_max: 40, ..RunView::default() };
        for (width, height) in [(80, 24), (20, 5), (1, 1), (0, 0)] {
            let lines = frame_lines(&view, width, height);
            assert!(lines.len() <= height.max(3), "{lines:?}");
            for line in &lines {
                assert!(console::measure_text_width(line) <= width.max(2), "{line}");
                assert!(!line.contains(['\u{1b}', '\n']), "{line}");
            }
        }
        let view = RunView {
            slots: vec![slot(3)],
            slots_max: 2,
            landed: 1,
            queued: 4,
            elapsed_ms: 65_000,
            tokens: 34_000,
            ..RunView::default()
        };
        let mut view = view;
        view.slots[0].title = "Fix the parser".to_owned();
        view.slots[0].last_words = "reading the tests".to_owned();
        expect_test::expect![[r#"
            T3    working       2/50      41s   12.3k  Fix the parser · reading the tests
            1 landed · 4 queued · 1 at work · 2 slots · 1m 5s · 34k tokens"#]]
        .assert_eq(&frame_lines(&view, 120, 24).join("\n"));
    }
}
