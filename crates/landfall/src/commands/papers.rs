//! `landfall task papers`: what agents wrote for each other.

use landfall_api::{PaperAsked, TaskAsked, TypedService, WireTaskId};
use landfall_text::control_chars::{escape_block, escape_line};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;

/// List or show the documents of a task, such as its plan and notes
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Document, such as `plan.md`; without it, all are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, name } = args;
    let service = context.open_service()?;
    match name {
        Some(name) => {
            let paper = service.paper(PaperAsked { task, name })?;
            context.print_answer(&*paper, |paper| escape_block(&paper.text).into_owned())?;
        }
        None => {
            let list = service.papers(TaskAsked { task })?;
            context.print_answer(&list, |list| {
                if list.papers.is_empty() {
                    return format!("{task} has no documents\n");
                }
                let mut table = Table::new(&["DOCUMENT", "BYTES", "WRITTEN BY"]);
                for it in &list.papers {
                    let by = if it.told { "the engine" } else { "agents and you" };
                    table.add_row([&escape_line(&it.name), it.bytes.to_string().as_str(), by]);
                }
                table.to_text()
            })?;
        }
    }
    Ok(CliExit::Ok)
}
