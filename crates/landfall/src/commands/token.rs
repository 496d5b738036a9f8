//! `landfall project token`: what opens the server.

use landfall_api::{AgentTokenAsked, TypedService};
use serde::Serialize;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Print the access token of this project's server
///
/// Use it for `Authorization: Bearer` or on the sign-in page. It allows every decision. It is stored in the state folder, readable
/// only by you.
#[derive(clap::Args)]
pub struct Args {
    /// Create a new token; the old one stops working at once, and browsers and agents must sign in again
    #[arg(long, conflicts_with = "agent")]
    renew: bool,

    /// Create a token for an agent, which can read and add drafts but not decide; the server must be running
    #[arg(long, value_name = "LABEL")]
    agent: Option<String>,
}

#[derive(Serialize)]
struct TokenReport {
    token: String,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let token = match args.agent {
        Some(label) => context.open_service()?.agent_token(AgentTokenAsked { label })?.token,
        None => landfall_app::access_token(&context.at, args.renew)?,
    };
    context.print_answer(&TokenReport { token }, |it| format!("{}\n", it.token))?;
    Ok(CliExit::Ok)
}
