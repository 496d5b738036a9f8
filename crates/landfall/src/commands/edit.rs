//! `landfall edit`: changes the words of a task.

use std::path::PathBuf;

use landfall_api::{Clear, EditTask, Size, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Change a task; options you leave out keep their value
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// New title
    #[arg(long)]
    title: Option<String>,

    /// Full description
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,

    /// File with the full description; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,

    /// Acceptance criterion; repeat to give the whole list
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Option<Vec<String>>,

    /// Size: XS, S, M, L or XL
    #[arg(long, value_parser = words::size)]
    size: Option<Size>,

    /// Tag; repeat to give the whole list
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Option<Vec<String>>,

    /// Priority from 0 (most urgent) to 9
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,

    /// Tasks that must land first; gives the whole list
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    needs: Option<Vec<WireTaskId>>,

    /// File, folder or glob pattern that the task is expected to change; repeat to give the whole list
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    touches: Option<Vec<String>>,

    /// Parent task
    #[arg(long, value_name = "TASK")]
    parent: Option<WireTaskId>,

    /// Flow of the task; `landfall project flow list` lists them
    #[arg(long)]
    flow: Option<String>,

    /// Agent profile of `landfall.toml`
    #[arg(long)]
    agent: Option<String>,

    /// Remove a value: size, parent, flow, agent, needs, tags, criteria or touches
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    unset: Vec<ClearableField>,

    /// Allow a draft to start
    #[arg(long, conflicts_with = "draft")]
    ready: bool,

    /// Turn the task into a draft, which does not start
    #[arg(long)]
    draft: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClearableField {
    Size,
    Parent,
    Flow,
    Agent,
    Needs,
    Tags,
    Criteria,
    Touches,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let task = args.task;
    let edit = parse_edit(args, context)?;
    if edit == EditTask::new(task) {
        return Err(CommandFailure::usage_error("nothing to change")
            .with_hint("`landfall edit --help` shows what can be changed"));
    }
    let changed = context.open_service()?.edit(edit)?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

fn parse_edit(args: Args, context: &CliContext) -> Result<EditTask, CommandFailure> {
    let mut edit = EditTask {
        title: args.title,
        body: words::read_text_or_file(context, args.body, args.body_file.as_deref())?,
        criteria: args.criteria,
        size: args.size,
        tags: args.tags,
        priority: args.priority,
        needs: args.needs,
        touches: args.touches,
        parent: args.parent,
        flow: args.flow,
        agent: args.agent,
        ready: args.ready.then_some(true).or(args.draft.then_some(false)),
        ..EditTask::new(args.task)
    };
    for unset in args.unset {
        match unset {
            ClearableField::Size => edit.clear.push(Clear::Size),
            ClearableField::Parent => edit.clear.push(Clear::Parent),
            ClearableField::Flow => edit.clear.push(Clear::Flow),
            ClearableField::Agent => edit.clear.push(Clear::Agent),
            ClearableField::Needs => edit.needs = Some(Vec::new()),
            ClearableField::Tags => edit.tags = Some(Vec::new()),
            ClearableField::Criteria => edit.criteria = Some(Vec::new()),
            ClearableField::Touches => edit.touches = Some(Vec::new()),
        }
    }
    Ok(edit)
}
