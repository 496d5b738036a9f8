//! `landfall issue reconcile`: whether a phase of an issue is complete, by what can be seen.

use landfall_api::{IssueNumber, ReconcileAsked, Reconciliation, TypedService as _};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Check whether a phase of an issue is complete
///
/// Compares the issue, its pull request, the base and the spec file with what the phase must produce. What an agent reported
/// does not count. Nothing is changed. Exit code 0: complete, or `--strict` is not set; 1: not complete, with `--strict`; 2: the
/// check could not be made.
#[derive(clap::Args)]
pub struct Args {
    /// Issue: `12` or `#12`
    #[arg(value_name = "N", value_parser = super::issue::number)]
    issue: u64,

    /// Phase: issue, spec, code-patch, code-pr, review, merge or verify
    #[arg(long, value_parser = landfall_app::points())]
    phase: String,

    /// Pull request; the default is the one of the issue's branch
    #[arg(long, value_name = "K", value_parser = super::issue::number)]
    pr: Option<u64>,

    /// Check whether the phase can begin instead
    #[arg(long)]
    before: bool,

    /// Exit with code 1 if the phase is not complete
    #[arg(long)]
    strict: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { issue, phase, pr, before, strict } = args;
    let (issue, pr) = (IssueNumber(issue), pr.map(IssueNumber));
    let asked = ReconcileAsked { issue, phase, pr, begin: before };
    // Whoever reads these codes knows three of them.
    let failed = |problem| CommandFailure { code: CliExit::Usage, ..CommandFailure::from(problem) };
    let reconciled = landfall_app::open_service(&context.at)
        .and_then(|service| service.reconcile(asked))
        .map_err(failed)?;
    context.print_answer(&*reconciled, render_reconciliation)?;
    Ok(if strict && !reconciled.matches_expected { CliExit::Internal } else { CliExit::Ok })
}

fn render_reconciliation(it: &Reconciliation) -> String {
    let word = if it.matches_expected { "matches" } else { "does not match" };
    format!("{} {word}: {}\n", it.phase, escape_line(&it.diagnosis))
}
