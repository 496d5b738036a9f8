//! `landfall module`: task modules, folders that hold a task as files.

use std::path::PathBuf;

use landfall_api::{ModuleMade, ModulesMended};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format::plural;
use crate::house::{self, ModuleAsked};
use crate::say::{clean, talk};

/// Makes and mends task modules: folders below `AiTasks/` or `TASK/` that hold a task as files.
///
/// `landfall import AiTasks/` takes them over as tasks.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Makes a module: its metadata, a target to fill in, and what the root needs the first time.
    ///
    /// No branch and no worktree is made: the work of a task has a branch and a workspace of its own once it begins. The
    /// metadata names those that other tools would use, and work that lies on that branch is gone on with.
    Init {
        /// Its folder: letters, digits, `_` and `-`.
        name: String,
        /// What people call it; the name when left out.
        #[arg(long)]
        title: Option<String>,
        /// Words on it, with commas.
        #[arg(long, value_delimiter = ',', value_name = "TAG,…")]
        tags: Vec<String>,
        /// Sets a worktree aside for its work.
        #[arg(long)]
        worktree: bool,
        /// Below `TASK/`, in the form of the oldest folders.
        #[arg(long)]
        old: bool,
        /// Commits its files, and nothing else, on the branch that is checked out. Tracked files must have no changes.
        #[arg(long)]
        commit: bool,
    },
    /// Mends modules whose metadata cannot be read: from the last commit, or anew as a draft.
    ///
    /// The broken file is kept beside, and a note in `.analysis/` says what was done.
    Mend {
        /// A module or a folder of them; all of the project when left out.
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Init { name, title, tags, worktree, old, commit } => {
            let asked = ModuleAsked { name, title, tags, worktree, old, commit };
            let made = house::module_init(&context.at, &asked)?;
            context.answer(&made, made_text)?;
            if !context.json {
                talk(&format!(
                    "next: say what is wanted in {}/.target.md, then `landfall import {}`",
                    made.module, made.module
                ));
            }
        }
        Action::Mend { path } => {
            let path = path.map(|path| context.path(&path));
            let mended = house::module_mend(&context.at, path.as_deref())?;
            context.answer(&mended, mended_text)?;
            if !context.json {
                talk(&format!("{} fine", plural(mended.fine, "module")));
            }
        }
    }
    Ok(Exit::Ok)
}

fn made_text(made: &ModuleMade) -> String {
    let wrote = made.files.iter().map(|file| format!("wrote {}\n", clean(file)));
    let committed =
        made.commit.iter().map(|commit| format!("committed {}\n", &commit[..commit.len().min(12)]));
    wrote.chain(committed).collect()
}

fn mended_text(found: &ModulesMended) -> String {
    let shown = found.mended.iter().map(|it| {
        let (module, wrong, done, copy) =
            (clean(&it.module), clean(&it.wrong), clean(&it.done), clean(&it.copy));
        format!("{module}: {done}\n  was wrong: {wrong}\n  kept as {copy}\n")
    });
    shown.collect()
}
