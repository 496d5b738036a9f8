//! `landfall mcp`: Landfall as tools, on stdin and stdout.

use landfall_api::{Problem, ProblemCode, Request, Response, RunAsked};
use landfall_bridge::person::ToolBackend;
use serde_json::Value;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Serve Landfall's tools over the Model Context Protocol on stdin and stdout
///
/// Your assistant gets tools to add tasks, to run and stop them, to ask for their state and to pass on your answers. An agent that
/// Landfall has started always gets the tools for agents: it reports the state of its task and controls nothing.
#[derive(clap::Args)]
pub struct Args {
    /// Serve the tools for an agent at work: signal, ask, discovery, follow_up; Landfall sets this for the agents it starts
    #[arg(long)]
    agent: bool,

    /// Serve the tools for your assistant; this is the default, unless an agent at work asks
    #[arg(long, conflicts_with = "agent")]
    person: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let code = match (args.agent, runs_under_landfall()) {
        (true, _) => landfall_bridge::mcp::serve_signal_tools(),
        (false, true) if args.person => {
            return Err(CommandFailure::new(CliExit::NotNow, "an agent at work gets no tools of a person")
                .with_hint("`landfall mcp --agent` offers yours"));
        }
        (false, true) => landfall_bridge::mcp::serve_signal_tools(),
        (false, false) => landfall_bridge::person::serve_project_tools(
            McpProject { at: context.at.clone() },
            landfall_app::OPENAPI,
        ),
    };
    Ok(match code {
        0 => CliExit::Ok,
        _ => CliExit::Internal,
    })
}

/// Whether Landfall has started whoever started us. One that hides it gets no further: the engine itself answers no
/// process that belongs to an agent.
fn runs_under_landfall() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set(landfall_bridge::socket::SOCKET) || set(landfall_bridge::socket::KEY)
}

/// The project around a folder. It is looked for at each call: an assistant may be there before it.
struct McpProject {
    at: landfall_app::ProjectLocator,
}

impl ToolBackend for McpProject {
    fn handle_request(&self, request: Request) -> Result<Response, Problem> {
        landfall_app::open_service(&self.at)?.call(request)
    }

    fn run(&self, asked: RunAsked) -> Result<Value, Problem> {
        let begun = landfall_app::run_detached(&self.at, &asked)?;
        serde_json::to_value(begun).map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))
    }
}
