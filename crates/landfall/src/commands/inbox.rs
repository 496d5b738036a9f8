//! `landfall inbox`: everything that waits for a person.

use landfall_api::{Ask, Inbox, InboxAsked, InboxOrder, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format;
use crate::say::clean;

/// Show everything that waits for you
///
/// Questions, reviews, conflicts, blocked and failed tasks, and landed issues with acceptance criteria to confirm.
#[derive(clap::Args)]
pub struct Args {
    /// Only items of this task
    task: Option<TaskId>,

    /// Newest first, instead of longest waiting first
    #[arg(long)]
    newest: bool,

    /// Maximum number of items
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { task, newest, limit } = args;
    let order = if newest { InboxOrder::Newest } else { InboxOrder::Oldest };
    let found = context.service()?.inbox(InboxAsked { order, kinds: Vec::new(), task, limit })?;
    context.answer(&found, text)?;
    Ok(Exit::Ok)
}

fn text(found: &Inbox) -> String {
    if found.items.is_empty() {
        return "nothing waits for you\n".to_owned();
    }
    let mut text = String::new();
    for item in &found.items {
        let task = item.task.map(|task| format!("{task}  ")).unwrap_or_default();
        let since = format::moment(item.since_ms);
        text.push_str(&format!("{task}{}  {}  since {since}\n", item.kind.word(), clean(&item.title)));
        for line in item.text.lines().chain(item.findings.iter().map(String::as_str)) {
            text.push_str(&format!("  {}\n", clean(line)));
        }
        if let Some(reply) = &item.reply {
            text.push_str(&format!("  the agent says: {}\n", clean(reply)));
        }
        if let Some(until) = item.until_ms {
            text.push_str(&format!("  until {}, then {}\n", format::moment(until), clean(&item.overdue)));
        }
        let actions: Vec<&str> = item.actions.iter().map(|action| action.label.as_str()).collect();
        text.push_str(&format!("  you can: {}\n", actions.join("; ")));
    }
    if found.more > 0 {
        text.push_str(&format!("and {} more\n", found.more));
    }
    text
}
