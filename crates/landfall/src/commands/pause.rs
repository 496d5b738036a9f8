//! `landfall pause`: begins nothing new.

use landfall_api::{Ask, PauseAsked};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Lets the run begin nothing new; iterations under way finish. `landfall resume` goes on.
#[derive(clap::Args)]
pub struct Args {
    /// Why, for whoever finds it paused.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let pilot = context.service()?.pause(PauseAsked { reason: args.reason })?;
    context.answer(&*pilot, |pilot| format!("{}\n", clean(&pilot.text)))?;
    Ok(Exit::Ok)
}
