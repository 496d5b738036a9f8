//! `landfall issue verify`: whether an issue holds what it asks for.

use landfall_api::{IssueNumber, IssueVerified, VerifyAsked};
use landfall_text::control_chars::escape_line;
use landfall_text::pluralize;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;
use crate::table::Table;

/// Check the acceptance criteria of an issue, and update the issue
///
/// Checks the base branch, or the pull request you name. Ticks checkboxes, comments, and closes or reopens the issue. Without
/// `--full`, commands from the issue are not run. An issue without work is checked but not changed.
#[derive(clap::Args)]
pub struct Args {
    /// Issue, such as 12
    #[arg(value_parser = super::issue::number)]
    issue: u64,

    /// Pull request with the work; while it is open, only the pull request gets a comment
    #[arg(long, value_name = "K", value_parser = super::issue::number)]
    pr: Option<u64>,

    /// Run commands from the issue, too, in the sandbox
    #[arg(long, conflicts_with = "safe")]
    full: bool,

    /// Run no commands from the issue; this is the default
    #[arg(long)]
    safe: bool,

    /// Allow requests to addresses of this machine
    #[arg(long)]
    allow_localhost: bool,

    /// Check only, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Agent profile that judges; the default is in the settings
    #[arg(long, value_name = "PROFILE")]
    judge: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { issue, pr, full, safe: _, allow_localhost, dry_run, judge } = args;
    let (issue, pr) = (IssueNumber(issue), pr.map(IssueNumber));
    let asked = VerifyAsked { issue, pr, full, allow_localhost, dry_run, judge };
    let seen = landfall_app::verify_issue(&context.at, &asked, &mut |line| {
        if !context.json {
            print_message(&escape_line(line));
        }
    })?;
    context.print_answer(&seen, render_verified)?;
    if !context.json {
        for note in &seen.notes {
            print_message(&format!("note: {}", escape_line(note)));
        }
        if seen.dry_run {
            print_message("nothing was changed: this was a dry run");
        } else if seen.ticked > 0 {
            print_message(&format!("{} ticked", pluralize(seen.ticked, "box").replace("boxs", "boxes")));
        }
    }
    Ok(match seen.outcome.as_str() {
        "done" | "left-over" => CliExit::Ok,
        "not-begun" if seen.criteria.iter().all(|it| it.result != "FAIL") => CliExit::Ok,
        "not-begun" | "reopened" => CliExit::SomeDidNotLand,
        _ => CliExit::NeedsYou,
    })
}

fn render_verified(seen: &IssueVerified) -> String {
    let mut table = Table::new(&["CRITERION", "RESULT", "EVIDENCE"]);
    for it in &seen.criteria {
        table.add_row([&it.text, &it.result, &it.evidence]);
    }
    format!("{}\n#{}: {}\n", table.to_text(), seen.issue, seen.text)
}
