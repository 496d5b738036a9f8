//! `landfall doctor`: whether everything Landfall needs is there and whole.

use landfall_api::{Check, CheckState, Health, Nothing, SandboxReport, TypedService};
use landfall_app::CheckOptions;
use landfall_text::control_chars::escape_line;

use crate::checks::{CheckPrinter, is_green, verdict_text};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live::Interrupts;
use crate::table::Table;
use crate::tone::{terminal_columns, wrap_line};

/// Check that everything Landfall needs is installed and intact
///
/// The checks of the project run on the base unless a pass of the same commit and rules is known.
#[derive(clap::Args)]
pub struct Args {
    /// Rebuild the tables from the journal, which is never changed
    #[arg(long)]
    rebuild: bool,
    /// Test what an agent can do at each sandbox level
    #[arg(long, conflicts_with = "rebuild")]
    sandbox: bool,
    /// Do not run the checks of the project
    #[arg(long)]
    no_check: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if args.sandbox {
        let project = landfall_app::find_project(&context.at)?;
        let report = landfall_app::sandbox_report(&project.root)?;
        context.print_answer(&report, sandbox_text)?;
        return Ok(CliExit::Ok);
    }
    let service = context.open_service()?;
    let mut health = if args.rebuild { service.rebuild(Nothing {}) } else { service.doctor(Nothing {}) }?;
    let bad = health.checks.iter().any(|check| check.state == CheckState::Bad);
    let mut exit = if bad { CliExit::Machine } else { CliExit::Ok };
    if !args.no_check
        && !args.rebuild
        && let Some(check) = check_project(context, bad)?
    {
        if check.state == CheckState::Bad && !bad {
            exit = CliExit::SomeDidNotLand;
        }
        health.checks.push(check);
    }
    context.print_answer(&health, render_health)?;
    Ok(exit)
}

/// What the checks of the project come to on the base; none if there is nothing to run them on. What is wrong already is mended
/// first: nothing is written where something is damaged.
fn check_project(context: &CliContext, is_broken: bool) -> Result<Option<Check>, CommandFailure> {
    let found = |state, detail: &str, hint: Option<&str>| Check {
        name: "checks".to_owned(),
        state,
        detail: detail.to_owned(),
        hint: hint.map(str::to_owned),
    };
    if is_broken {
        return Ok(Some(found(CheckState::Warn, "not run, because of what is wrong above", None)));
    }
    if !landfall_app::has_journal(&context.at) {
        let hint = "`landfall check` runs them";
        return Ok(Some(found(CheckState::Ok, "not run: no task was added yet", Some(hint))));
    }
    let interrupts = Interrupts::start_listening()?;
    let asked = CheckOptions { may_be_known: true, is_look: true, ..CheckOptions::default() };
    let mut printer = match context.json {
        true => CheckPrinter::without_output(&interrupts),
        false => CheckPrinter::with_check_lines(&interrupts),
    };
    Ok(match landfall_app::check_project(&context.at, &asked, &mut printer) {
        Ok(Some(checked)) => {
            let text = verdict_text(&checked);
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            let rest = rest.trim_end().replace("hint: ", "");
            let state = match () {
                () if is_green(checked.outcome) => CheckState::Ok,
                () if checked.commands.is_empty() => CheckState::Warn,
                () => CheckState::Bad,
            };
            Some(found(state, first, Some(rest.as_str()).filter(|rest| !rest.is_empty())))
        }
        Ok(None) => Some(found(CheckState::Warn, "stopped", Some("`landfall check` runs them again"))),
        Err(problem) => Some(Check { hint: problem.hint, ..found(CheckState::Warn, &problem.message, None) }),
    })
}

fn render_health(health: &Health) -> String {
    render_health_within(health, terminal_columns())
}

/// The checks, wrapped to a terminal with so many columns.
fn render_health_within(health: &Health, columns: Option<usize>) -> String {
    const COLUMNS_MAX: usize = 80; // longer lines are hard to read
    const INDENT: &str = "      ";
    let wrapped = |line: String| match columns {
        Some(columns) => wrap_line(&line, columns.min(COLUMNS_MAX), INDENT),
        None => line + "\n",
    };
    let mut text = String::new();
    for check in &health.checks {
        let state = match check.state {
            CheckState::Ok => "ok",
            CheckState::Warn => "warn",
            CheckState::Bad => "BAD",
        };
        text += &wrapped(format!("{state:<5} {}: {}", escape_line(&check.name), escape_line(&check.detail)));
        if let Some(hint) = &check.hint {
            // A hint of several lines is about several things.
            for (place, line) in hint.lines().enumerate() {
                let word = if place == 0 { "hint: " } else { "      " };
                text += &wrapped(format!("{INDENT}{word}{}", escape_line(line.trim())));
            }
        }
    }
    text
}

fn sandbox_text(report: &SandboxReport) -> String {
    let mut text = format!(
        "level {}, Landlock {}; it leaves open: {}\n\n",
        escape_line(&report.level),
        report.landlock,
        escape_line(&report.leaves_open.join("; "))
    );
    let mut head = vec!["AN AGENT TRIES TO"];
    let words: Vec<String> = report.supported.iter().map(|level| level.to_uppercase()).collect();
    head.extend(words.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for probe in &report.probes {
        let outcome = |level: &String| probe.outcomes.get(level).map(String::as_str).unwrap_or_default();
        let cells: Vec<&str> =
            std::iter::once(probe.what.as_str()).chain(report.supported.iter().map(outcome)).collect();
        table.add_row_slice(&cells);
    }
    text += &table.to_text();
    let seconds = report.took_ms.div_ceil(1000);
    text + &format!("\n{} probes at {} levels in {seconds} s\n", report.probes.len(), report.supported.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_api::Check;

    #[test]
    fn lines_are_wrapped_at_80_columns_and_commands_stay_whole() {
        let command = "`landfall trust --yes 0123456789abcdef0123456789abcdef0123456789abcdef`";
        let long = "a word and more ".repeat(12);
        let check = |name: &str, hint: String| Check {
            name: name.to_owned(),
            state: CheckState::Warn,
            detail: long.clone(),
            hint: Some(hint),
        };
        let checks = vec![check("first", long.clone()), check("second", format!("{long}{command} shows it"))];
        let health = Health { checks };
        for (columns, widest) in [(Some(60), 60), (Some(200), 80)] {
            let text = render_health_within(&health, columns);
            let is_narrow = |line: &&str| line.chars().count() <= widest;
            assert!(text.lines().filter(|line| !line.contains('`')).all(|line| is_narrow(&line)), "{text}");
            assert!(text.contains(command), "{text}");
            assert!(text.lines().all(|line| line == line.trim_end()), "{text:?}");
        }
        // A program that reads it finds a check and a hint in a line each.
        assert_eq!(render_health_within(&health, None).lines().count(), 4);
    }
}
