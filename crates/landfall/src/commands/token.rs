//! `landfall token`: what opens the server.

use landfall_api::{AgentTokenAsked, Ask};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house;

/// Prints the token that opens the server of this project: for `Authorization: Bearer`, or for the sign-in page.
///
/// Whoever has it can decide everything. It is kept in the state folder, readable for its owner alone.
#[derive(clap::Args)]
pub struct Args {
    /// Makes a new token. The old one opens nothing any more, and browsers and agents have to be let in again: at once, also where
    /// a server runs.
    #[arg(long, conflicts_with = "agent")]
    renew: bool,

    /// Makes a token for an agent instead: it reads and adds drafts, and decides nothing. The server must run.
    #[arg(long, value_name = "LABEL")]
    agent: Option<String>,
}

#[derive(Serialize)]
struct Token {
    token: String,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let token = match args.agent {
        Some(label) => context.service()?.agent_token(AgentTokenAsked { label })?.token,
        None => house::token(&context.at, args.renew)?,
    };
    context.answer(&Token { token }, |it| format!("{}\n", it.token))?;
    Ok(Exit::Ok)
}
