//! `landfall edit`: changes the words of a task.

use std::path::PathBuf;

use landfall_api::{Ask, Clear, EditTask, Size, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Changes the words of a task. What is left out stays.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// Its new title.
    #[arg(long)]
    title: Option<String>,

    /// What is wanted, in full.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,

    /// A file with what is wanted, in full; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,

    /// Something that must hold when it is done; all of them, given several times.
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Option<Vec<String>>,

    /// How much work it is: XS, S, M, L, XL.
    #[arg(long, value_parser = words::size)]
    size: Option<Size>,

    /// The words on it; all of them, given several times.
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Option<Vec<String>>,

    /// 0 is the most urgent, 9 can wait.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,

    /// Tasks that must land first; all of them.
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    needs: Option<Vec<TaskId>>,

    /// A file, folder or pattern it is thought to change; all of them, given several times.
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    touches: Option<Vec<String>>,

    /// The task this one is a part of.
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,

    /// The flow; `landfall flow list` shows them.
    #[arg(long)]
    flow: Option<String>,

    /// The agent profile of `landfall.toml`.
    #[arg(long)]
    agent: Option<String>,

    /// Goes back to not being set: size, parent, flow, agent, needs, tags, criteria, touches.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    unset: Vec<Unset>,

    /// Lets a draft start.
    #[arg(long, conflicts_with = "draft")]
    ready: bool,

    /// Makes it a draft: not to be started.
    #[arg(long)]
    draft: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Unset {
    Size,
    Parent,
    Flow,
    Agent,
    Needs,
    Tags,
    Criteria,
    Touches,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let task = args.task;
    let edit = understand(args, context)?;
    if edit == EditTask::new(task) {
        return Err(
            Failure::usage("nothing to change").hint("`landfall edit --help` shows what can be changed")
        );
    }
    let changed = context.service()?.edit(edit)?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

fn understand(args: Args, context: &Context) -> Result<EditTask, Failure> {
    let mut edit = EditTask {
        title: args.title,
        body: words::text_or_file(context, args.body, args.body_file.as_deref())?,
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
            Unset::Size => edit.clear.push(Clear::Size),
            Unset::Parent => edit.clear.push(Clear::Parent),
            Unset::Flow => edit.clear.push(Clear::Flow),
            Unset::Agent => edit.clear.push(Clear::Agent),
            Unset::Needs => edit.needs = Some(Vec::new()),
            Unset::Tags => edit.tags = Some(Vec::new()),
            Unset::Criteria => edit.criteria = Some(Vec::new()),
            Unset::Touches => edit.touches = Some(Vec::new()),
        }
    }
    Ok(edit)
}
