//! `landfall list`: tasks, a line each.

use landfall_api::{Filter, Status, TaskLine, TaskPage, TypedService, WireTaskId};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;
use crate::table::Table;

/// List tasks
#[derive(clap::Args)]
pub struct Args {
    /// Only tasks with this status; may be repeated
    #[arg(long, value_delimiter = ',')]
    status: Vec<Status>,

    /// Only tasks with this tag
    #[arg(long)]
    tag: Option<String>,

    /// Only tasks with this text in the title or description
    #[arg(long)]
    text: Option<String>,

    /// Only subtasks of this task
    #[arg(long, value_name = "TASK")]
    parent: Option<WireTaskId>,

    /// Only tasks after this one, to get the next page
    #[arg(long, value_name = "TASK")]
    after: Option<WireTaskId>,

    /// Maximum number of tasks
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { status, tag, text, parent, after, limit } = args;
    let page = context.open_service()?.list(Filter { status, tag, text, parent, after, limit })?;
    context.print_answer(&page, render_tasks)?;
    if context.json {
        return Ok(CliExit::Ok);
    }
    match page.next {
        Some(next) => print_message(&format!("more: the same with --after {next}")),
        None if page.tasks.is_empty() => print_message("no tasks; `landfall add \"…\"` adds one"),
        None => {}
    }
    Ok(CliExit::Ok)
}

fn render_tasks(page: &TaskPage) -> String {
    if page.tasks.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["TASK", "STATUS", "PRI", "SIZE", "NEEDS", "TITLE"]);
    for task in &page.tasks {
        let needs = task.needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        table.add_row([
            &task.id.to_string(),
            &status_with_wait(task),
            &task.priority.to_string(),
            task.size.map_or("", |size| size.word()),
            &needs,
            &title_with_tags(task),
        ]);
    }
    table.to_text()
}

/// The status, with what a waiting task waits for.
fn status_with_wait(task: &TaskLine) -> String {
    match &task.wait {
        Some(wait) => format!("{} ({})", task.status, wait.wait),
        None => task.status.to_string(),
    }
}

fn title_with_tags(task: &TaskLine) -> String {
    if task.tags.is_empty() {
        task.title.clone()
    } else {
        format!("{} [{}]", task.title, task.tags.join(", "))
    }
}
