//! `landfall run autopilot`: who picks the tasks of the current run.

use landfall_api::{AutoAsked, Mode, Nothing, TypedService};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show or change who picks the next task of the run
///
/// With `on`, Landfall fills every slot. With `off`, you pick each task with `landfall run next`. Agents at work finish either way.
#[derive(clap::Args)]
pub struct Args {
    /// New mode; without it, the current mode is shown
    switch: Option<OnOff>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OnOff {
    On,
    Off,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let mode = args.switch.map(|switch| match switch {
        OnOff::On => Mode::Autopilot,
        OnOff::Off => Mode::SemiAuto,
    });
    show_or_set(mode, context)
}

/// Shows who picks tasks, or changes it.
pub fn show_or_set(mode: Option<Mode>, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    let pilot = match mode {
        Some(mode) => service.auto(AutoAsked { mode }),
        None => service.pilot(Nothing {}),
    }?;
    context.print_answer(&*pilot, |pilot| format!("{}\n", escape_line(&pilot.text)))?;
    Ok(CliExit::Ok)
}
