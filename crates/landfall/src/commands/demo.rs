//! `landfall demo`: a small real project, driven by the scripted agent.

use std::path::PathBuf;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::{clean, talk};
use crate::{house, live};

/// Makes a small project with a backlog and drives it.
///
/// The scripted agent does the work, in real processes and real git: no model, no account, half a minute.
#[derive(clap::Args)]
pub struct Args {
    /// Makes the project there and keeps it; in a temporary folder when left out.
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let interrupts = live::Interrupts::listen()?;
    let dir = args.dir.map(|dir| context.path(&dir));
    let mut demo = house::demo(dir.as_deref())?;
    let root = demo.root.display().to_string();
    let root = clean(&root);
    talk(&format!("the demo's project is in {root}"));
    let outcome = live::watch(demo.run.as_mut(), &interrupts);
    context.answer(&outcome, live::summary)?;
    talk(&format!(
        "\nlook around: cd {root} && git log --oneline, then `landfall list`, `landfall show T1`, `landfall certificate T1`\n\
         in a repository of yours: `landfall init`, commit landfall.toml, `landfall add \"…\"`, `landfall run`"
    ));
    Ok(live::exit_of(&outcome, &interrupts))
}
