//! `landfall demo`: a small real project, driven by the scripted agent.

use std::path::PathBuf;

use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live;
use crate::say::print_message;
use crate::tone;

/// Try Landfall on a small sample project
///
/// The scripted agent does the work in real processes and real git: no model, no account, half a minute.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for the project; the default is a temporary folder
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let interrupts = live::Interrupts::start_listening()?;
    let dir = args.dir.map(|dir| context.path(&dir));
    let mut demo = landfall_app::start_demo(dir.as_deref())?;
    let show = |path: &std::path::Path| escape_line(&path.display().to_string()).into_owned();
    let (root, state) = (show(&demo.root), show(&demo.state));
    print_message(&format!("the demo's project is in {root}"));
    let outcome = live::watch_run(demo.run.as_mut(), &interrupts);
    context.print_answer(&outcome, live::render_summary)?;
    let landed = outcome.tasks.iter().filter(|task| task.commit.is_some());
    let why: String = landed.map(|task| format!("  {}\n", escape_line(&task.why))).collect();
    print_message(&format!("\nwhat landed, and why:\n{}", tone::fit_to_terminal(&why).trim_end()));
    print_message(&format!(
        "\nlook around:\n  cd '{root}' && export LANDFALL_STATE='{state}'\n  git log --oneline --graph\n  \
         landfall list\n  landfall show T1\n  landfall certificate T1\n\
         in a repository of yours:\n  landfall init\n  git add landfall.toml && git commit -m \"Settings of Landfall\"\n  \
         landfall add \"what you want\"\n  landfall run"
    ));
    Ok(match live::exit_for_run(&outcome, &interrupts) {
        CliExit::NeedsYou => CliExit::Ok, // one task of the backlog is meant to end before a person
        other => other,
    })
}
