//! `landfall report`: what happened, as Markdown.

use std::str::FromStr;

use landfall_api::{Ask, ReportOf};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::{clean_block, print, print_json};

/// Show the report of a run or a task
#[derive(clap::Args)]
pub struct Args {
    /// Task (T7) or run (R2); the default is the newest run
    #[arg(value_name = "TASK|RUN", value_parser = of)]
    of: Option<ReportOf>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let report = context.service()?.report(args.of.unwrap_or(ReportOf::LastRun).into())?;
    if context.json {
        print_json(&report)?;
    } else {
        print(&clean_block(&report.markdown))?;
    }
    Ok(Exit::Ok)
}

fn of(text: &str) -> Result<ReportOf, String> {
    if text.starts_with('#') || text.starts_with("issue:") {
        return super::named::task(text).map(ReportOf::Task);
    }
    let task = FromStr::from_str(text).map(ReportOf::Task);
    let run = || FromStr::from_str(text).map(ReportOf::Run);
    task.or_else(|_: landfall_api::BadId| run()).map_err(|error: landfall_api::BadId| {
        format!("`{}` is not a task such as T7 or a run such as R2", error.text)
    })
}
