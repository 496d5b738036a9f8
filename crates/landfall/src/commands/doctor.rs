//! `landfall doctor`: whether everything Landfall needs is there and whole.

use landfall_api::{Ask, CheckState, Health, Nothing, SandboxReport};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house;
use crate::say::clean;
use crate::table::Table;

/// Check that everything Landfall needs is installed and intact
#[derive(clap::Args)]
pub struct Args {
    /// Rebuild the tables from the journal, which is never changed
    #[arg(long)]
    rebuild: bool,
    /// Test what an agent can do at each sandbox level
    #[arg(long, conflicts_with = "rebuild")]
    sandbox: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    if args.sandbox {
        let project = house::project(&context.at)?;
        let report = house::sandbox_report(&project.root)?;
        context.answer(&report, sandbox_text)?;
        return Ok(Exit::Ok);
    }
    let service = context.service()?;
    let health = if args.rebuild { service.rebuild(Nothing {}) } else { service.doctor(Nothing {}) }?;
    context.answer(&health, text)?;
    let bad = health.checks.iter().any(|check| check.state == CheckState::Bad);
    Ok(if bad { Exit::Machine } else { Exit::Ok })
}

fn text(health: &Health) -> String {
    let mut text = String::new();
    for check in &health.checks {
        let state = match check.state {
            CheckState::Ok => "ok",
            CheckState::Warn => "warn",
            CheckState::Bad => "BAD",
        };
        text += &format!("{state:<5} {}: {}\n", clean(&check.name), clean(&check.detail));
        if let Some(hint) = &check.hint {
            text += &format!("      hint: {}\n", clean(hint));
        }
    }
    text
}

fn sandbox_text(report: &SandboxReport) -> String {
    let mut text = format!(
        "level {}, Landlock {}; it leaves open: {}\n\n",
        clean(&report.level),
        report.landlock,
        clean(&report.leaves_open.join("; "))
    );
    let mut head = vec!["AN AGENT TRIES TO"];
    let words: Vec<String> = report.supported.iter().map(|level| level.to_uppercase()).collect();
    head.extend(words.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for probe in &report.probes {
        let outcome = |level: &String| probe.outcomes.get(level).map(String::as_str).unwrap_or_default();
        let cells: Vec<&str> =
            std::iter::once(probe.what.as_str()).chain(report.supported.iter().map(outcome)).collect();
        table.row_of(&cells);
    }
    text += &table.text();
    let seconds = report.took_ms.div_ceil(1000);
    text + &format!("\n{} probes at {} levels in {seconds} s\n", report.probes.len(), report.supported.len())
}
