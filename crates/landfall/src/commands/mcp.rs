//! `landfall mcp`: Landfall as tools, on stdin and stdout.

use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Offers Landfall as tools of the Model Context Protocol, on stdin and stdout.
#[derive(clap::Args)]
pub struct Args {
    /// The tools of an agent at work: signal, ask, discovery, follow_up. Landfall sets this up for the agents it starts.
    #[arg(long)]
    agent: bool,
}

pub fn run(args: Args, _context: &Context) -> Result<Exit, Failure> {
    if !args.agent {
        return Err(Failure::usage("only the tools of an agent at work are there so far").hint(
            "`landfall mcp --agent` offers them; for your own assistant, let it run `landfall --json`",
        ));
    }
    Ok(match landfall_bridge::mcp::agent() {
        0 => Exit::Ok,
        _ => Exit::Internal,
    })
}
