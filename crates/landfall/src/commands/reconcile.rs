//! `landfall reconcile`: whether a phase of an issue is complete, by what can be seen.

use landfall_api::{Ask as _, IssueNumber, ReconcileAsked, Reconciliation};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house;
use crate::say::clean;

/// Compares what a phase of an issue should have left behind with what can be seen, and changes nothing.
///
/// It looks at the issue, its pull request, the base and the file that says what is to be done. What an agent said of its work
/// is not asked. Exit code 0: it matches, or nobody wanted to be strict; 1 with `--strict`: it does not; 2: it could not be
/// looked at.
#[derive(clap::Args)]
pub struct Args {
    /// Which issue: `12` or `#12`.
    #[arg(value_name = "N", value_parser = super::issue::number)]
    issue: u64,

    /// The phase: issue, spec, code-patch, code-pr, review, merge or verify.
    #[arg(long, value_parser = house::points())]
    phase: String,

    /// Its pull request; otherwise the one of its branch.
    #[arg(long, value_name = "K", value_parser = super::issue::number)]
    pr: Option<u64>,

    /// Whether the phase can begin, instead of whether it is complete.
    #[arg(long)]
    before: bool,

    /// Ends with code 1 if it does not match.
    #[arg(long)]
    strict: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { issue, phase, pr, before, strict } = args;
    let (issue, pr) = (IssueNumber(issue), pr.map(IssueNumber));
    let asked = ReconcileAsked { issue, phase, pr, begin: before };
    // Whoever reads these codes knows three of them.
    let failed = |problem| Failure { code: Exit::Usage, ..Failure::from(problem) };
    let reconciled =
        house::service(&context.at).and_then(|service| service.reconcile(asked)).map_err(failed)?;
    context.answer(&*reconciled, text)?;
    Ok(if strict && !reconciled.matches_expected { Exit::Internal } else { Exit::Ok })
}

fn text(it: &Reconciliation) -> String {
    let word = if it.matches_expected { "matches" } else { "does not match" };
    format!("{} {word}: {}\n", it.phase, clean(&it.diagnosis))
}
