//! `landfall auto`: who picks the next task.

use landfall_api::{Ask, AutoAsked, Mode, Nothing};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Shows who picks the next task of the run, or changes it while it runs.
///
/// On autopilot every slot is filled. Otherwise you pick each task with `landfall next`. Agents at work finish either way.
#[derive(clap::Args)]
pub struct Args {
    /// `on`: the engine picks. `off`: you do. `status`: how it is now.
    #[arg(value_enum, default_value = "status", hide_default_value = true)]
    action: Action,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Action {
    On,
    Off,
    Status,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let service = context.service()?;
    let pilot = match args.action {
        Action::On => service.auto(AutoAsked { mode: Mode::Autopilot }),
        Action::Off => service.auto(AutoAsked { mode: Mode::SemiAuto }),
        Action::Status => service.pilot(Nothing {}),
    }?;
    context.answer(&*pilot, |pilot| format!("{}\n", clean(&pilot.text)))?;
    Ok(Exit::Ok)
}
