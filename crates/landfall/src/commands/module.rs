//! `landfall project module`: task modules, folders that hold a task as files.

use std::path::PathBuf;

use landfall_api::{ModuleMade, ModulesMended};
use landfall_app::ModuleRequest;
use landfall_text::control_chars::escape_line;
use landfall_text::pluralize;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;

/// Create and repair task modules, folders that describe a task
///
/// Task modules are folders below `AiTasks/` or `TASK/`. `landfall project import AiTasks/` imports them as tasks.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: ModuleSubcommand,
}

#[derive(clap::Subcommand)]
enum ModuleSubcommand {
    /// Create a module with its metadata and a target to fill in
    ///
    /// No branch and no worktree is created: the work of a task gets its own branch and workspace when it starts. The metadata names
    /// the branch that other tools would use, and work on that branch is continued.
    Init {
        /// Name of the folder: letters, digits, `_` and `-`
        name: String,
        /// Title; the default is the name
        #[arg(long)]
        title: Option<String>,
        /// Tags, separated by commas
        #[arg(long, value_delimiter = ',', value_name = "TAG,…")]
        tags: Vec<String>,
        /// Reserve a worktree for its work
        #[arg(long)]
        worktree: bool,
        /// Create it below `TASK/`, in the oldest format
        #[arg(long)]
        old: bool,
        /// Commit its files, and nothing else, on the current branch; tracked files must have no changes
        #[arg(long)]
        commit: bool,
    },
    /// Repair modules with unreadable metadata
    ///
    /// Restores the metadata from the last commit, or creates it again as a draft. The broken file is kept, and a note in
    /// `.analysis/` describes the repair.
    Mend {
        /// Module, or a folder of modules; the default is all of the project
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        ModuleSubcommand::Init { name, title, tags, worktree, old, commit } => {
            let asked = ModuleRequest { name, title, tags, worktree, old, commit };
            let made = landfall_app::init_module(&context.at, &asked)?;
            context.print_answer(&made, made_text)?;
            if !context.json {
                print_message(&format!(
                    "next: say what is wanted in {}/.target.md, then `landfall project import {}`",
                    made.module, made.module
                ));
            }
        }
        ModuleSubcommand::Mend { path } => {
            let path = path.map(|path| context.path(&path));
            let mended = landfall_app::repair_modules(&context.at, path.as_deref())?;
            context.print_answer(&mended, mended_text)?;
            if !context.json {
                print_message(&format!("{} fine", pluralize(mended.fine, "module")));
            }
        }
    }
    Ok(CliExit::Ok)
}

fn made_text(made: &ModuleMade) -> String {
    let wrote = made.files.iter().map(|file| format!("wrote {}\n", escape_line(file)));
    let committed =
        made.commit.iter().map(|commit| format!("committed {}\n", &commit[..commit.len().min(12)]));
    wrote.chain(committed).collect()
}

fn mended_text(found: &ModulesMended) -> String {
    let shown = found.mended.iter().map(|it| {
        let (module, wrong, done, copy) =
            (escape_line(&it.module), escape_line(&it.wrong), escape_line(&it.done), escape_line(&it.copy));
        format!("{module}: {done}\n  was wrong: {wrong}\n  kept as {copy}\n")
    });
    shown.collect()
}
