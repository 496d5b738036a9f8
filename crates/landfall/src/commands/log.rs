//! `landfall log`: the journal, for people.

use std::time::Duration;

use landfall_api::{Ask, LogAsked, LogEntry, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format;
use crate::say::{clean, print, print_json};

const LOOK_EVERY: Duration = Duration::from_millis(300); // quick for a reader, nothing for the engine

/// Shows the journal: what happened, a line each.
#[derive(clap::Args)]
pub struct Args {
    /// Only what concerns this task.
    task: Option<TaskId>,

    /// Goes on showing what happens, until it is interrupted. With --json, one entry a line.
    #[arg(short, long)]
    follow: bool,

    /// Entries after this sequence number, instead of the newest.
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// At most so many entries at first.
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { task, follow, after, limit } = args;
    let mut asked = LogAsked { after, task, limit, last: after.is_none() };
    let mut page = context.service()?.log(asked.clone())?;
    if !follow {
        context.answer(&page, |page| page.entries.iter().map(line).collect())?;
        return Ok(Exit::Ok);
    }
    loop {
        if context.json {
            for entry in &page.entries {
                print_json(entry)?;
            }
        } else if !page.entries.is_empty() {
            print(&page.entries.iter().map(line).collect::<String>())?;
        }
        if !page.more {
            std::thread::sleep(LOOK_EVERY);
        }
        asked = LogAsked { after: Some(page.next), last: false, ..asked };
        page = context.service()?.log(asked.clone())?;
    }
}

fn line(entry: &LogEntry) -> String {
    let task = entry.task.map(|task| task.to_string()).unwrap_or_default();
    format!("{:>6} {} {task:<4} {}\n", entry.seq, format::moment(entry.at_ms), clean(&entry.text))
}
