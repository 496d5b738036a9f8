//! `landfall checkpoint`: where the base was, and back to it.

use std::io::Write as _;

use landfall_api::{
    CheckpointAsked, CheckpointDetail, CheckpointDrop, CheckpointList, CheckpointNew, Nothing, TypedService,
};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;
use crate::table::Table;
use crate::{presence, times};

/// List, create or restore checkpoints of the base branch
///
/// Landfall creates checkpoints as tasks land and before each sprint. Restoring is a change like any other: it is verified and
/// lands, and what landed since stays in the history.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<CheckpointSubcommand>,
}

#[derive(clap::Subcommand)]
enum CheckpointSubcommand {
    /// List checkpoints, newest first
    List,
    /// Create a checkpoint of the base, kept until you delete it
    Create {
        /// Name; generated if left out
        name: Option<String>,
    },
    /// Show what restoring a checkpoint removes, ask, and add the task that restores it
    Restore {
        /// Checkpoint
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Delete a checkpoint; the commit stays in the history
    Delete {
        /// Checkpoint
        name: String,
    },
    /// Delete old checkpoints, except yours and the latest three
    Cleanup {
        /// Delete checkpoints older than this, such as 7d
        #[arg(long, value_name = "TIME", value_parser = times::duration_ms, required_unless_present = "keep")]
        older_than: Option<u64>,
        /// Keep this many and delete the oldest
        #[arg(long, value_name = "N", conflicts_with = "older_than")]
        keep: Option<u32>,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    match args.action.unwrap_or(CheckpointSubcommand::List) {
        CheckpointSubcommand::List => {
            let list = service.checkpoints(Nothing {})?;
            context.print_answer(&list, render_checkpoints)?;
        }
        CheckpointSubcommand::Create { name } => {
            let made = service.checkpoint_create(CheckpointNew { name })?;
            context.print_answer(&made, |made| {
                format!(
                    "checkpoint {} is at {}\n",
                    escape_line(&made.name),
                    landfall_text::short_commit(&made.commit)
                )
            })?;
        }
        CheckpointSubcommand::Restore { name, yes } => {
            let detail = service.checkpoint(CheckpointAsked { name: name.clone() })?;
            let takes_away = !detail.lost.is_empty() || !detail.commits.is_empty();
            if !yes && takes_away {
                confirm_restore(&detail, context)?;
            }
            let restored = context.open_service()?.checkpoint_restore(CheckpointAsked { name })?;
            context.print_answer(&restored, |restored| format!("{}\n", escape_line(&restored.text)))?;
        }
        CheckpointSubcommand::Delete { name } => {
            drop_checkpoints(CheckpointDrop { names: vec![name], ..CheckpointDrop::default() }, context)?
        }
        CheckpointSubcommand::Cleanup { older_than, keep } => {
            drop_checkpoints(CheckpointDrop { names: Vec::new(), older_than_ms: older_than, keep }, context)?;
        }
    }
    Ok(CliExit::Ok)
}

fn drop_checkpoints(asked: CheckpointDrop, context: &CliContext) -> Result<(), CommandFailure> {
    let dropped = context.open_service()?.checkpoint_drop(asked)?;
    context.print_answer(&dropped, |dropped| {
        let left = landfall_text::pluralize(dropped.left, "checkpoint");
        match dropped.names.as_slice() {
            [] => format!("nothing to let go; {left} kept\n"),
            names => format!("let go: {}; {left} kept\n", escape_line(&names.join(", "))),
        }
    })
}

/// Shows what is lost, and asks. Where nobody can be asked, nothing is done.
fn confirm_restore(detail: &CheckpointDetail, context: &CliContext) -> Result<(), CommandFailure> {
    print_message(render_loss(detail).trim_end());
    if context.json || presence::absence_reason(false).is_some() {
        return Err(CommandFailure::new(
            CliExit::NeedsYou,
            "nobody is there to confirm it, so nothing was done",
        )
        .with_hint("read above what it takes away; `--yes` says that you have"));
    }
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(b"go back? [y/N] ").and_then(|()| err.flush()); // an unseen question is answered with no
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CommandFailure::new(CliExit::NeedsYou, "not confirmed, so nothing was done"))
}

fn render_loss(detail: &CheckpointDetail) -> String {
    let checkpoint = &detail.checkpoint;
    let mut text = format!(
        "going back to {} ({}, {}) takes away what landed and was committed since:\n",
        escape_line(&checkpoint.name),
        landfall_text::short_commit(&checkpoint.commit),
        landfall_text::format_local(checkpoint.at_ms)
    );
    for task in &detail.lost {
        let commit = task.commit.as_deref().map(landfall_text::short_commit).unwrap_or_default();
        text += &format!("  {:<5} {commit}  {}\n", task.task.to_string(), escape_line(&task.title));
    }
    for it in &detail.commits {
        let (commit, author) = (landfall_text::short_commit(&it.commit), escape_line(&it.author));
        text += &format!("  {:<5} {commit}  {} (by {author})\n", "", escape_line(&it.title));
    }
    text
}

fn render_checkpoints(list: &CheckpointList) -> String {
    if list.checkpoints.is_empty() {
        return "no checkpoint is kept; `landfall checkpoint create NAME` creates one\n".to_owned();
    }
    let mut table = Table::new(&["CHECKPOINT", "MADE", "COMMIT", "BECAUSE", "LANDED SINCE"]);
    for it in &list.checkpoints {
        let why = match it.why.as_str() {
            "landings" => "tasks landed",
            "sprint" => "a sprint began",
            "person" => "you made it",
            "restore" => "before going back",
            other => other,
        };
        table.add_row([
            &it.name,
            &landfall_text::format_local(it.at_ms),
            landfall_text::short_commit(&it.commit),
            why,
            &it.landed_since.to_string(),
        ]);
    }
    table.to_text()
}
