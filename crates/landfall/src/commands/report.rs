//! `landfall report`: what happened in a run or to a task.

use std::str::FromStr;

use landfall_api::{ReportOf, TypedService};
use landfall_app::clock::now_ms;
use landfall_text::control_chars::escape_block;

use super::named::NameLookup;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::run_text::render_run_report;
use crate::say::{print_data, print_json};
use crate::tone;

/// Show the report of a run or a task
///
/// The report of a run covers it over all engines that drove it: after a kill, the next `landfall run` continues the report.
/// Each task is counted once, so the numbers add up.
#[derive(clap::Args)]
pub struct Args {
    /// Task (T7) or run (R2); the default is the newest run
    #[arg(value_name = "TASK|RUN", value_parser = |text: &str| of(text, &NameLookup::default()))]
    of: Option<ReportOf>,

    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let report = context.open_service()?.report(args.of.unwrap_or(ReportOf::LastRun).into())?;
    match &report.run {
        Some(run) if !context.json && !args.markdown => {
            context.print_answer(&**run, |run| render_run_report(run, now_ms()))?
        }
        _ if context.json => print_json(&report)?,
        _ if args.markdown => print_data(&escape_block(&report.markdown))?,
        _ => print_data(&tone::fit_to_terminal(&escape_block(&report.markdown)))?,
    }
    Ok(CliExit::Ok)
}

pub fn of(text: &str, lookup: &NameLookup) -> Result<ReportOf, String> {
    if text.starts_with('#') || text.starts_with("issue:") || text.contains('/') {
        return super::named::parse_task(text, lookup).map(ReportOf::Task);
    }
    let task = FromStr::from_str(text).map(ReportOf::Task);
    let run = || FromStr::from_str(text).map(ReportOf::Run);
    task.or_else(|_: landfall_api::BadId| run()).map_err(|error: landfall_api::BadId| {
        format!("`{}` is not a task such as T7 or a run such as R2", error.text)
    })
}
