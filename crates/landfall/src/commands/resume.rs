//! `landfall run resume`: goes on after a pause.

use landfall_api::{Ask, Nothing};
use landfall_text::control_chars::escape_line;

use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Resume a paused run
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &Context) -> Result<Exit, Failure> {
    let pilot = context.service()?.resume(Nothing {})?;
    context.answer(&*pilot, |pilot| format!("{}\n", escape_line(&pilot.text)))?;
    Ok(Exit::Ok)
}
