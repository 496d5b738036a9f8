//! `landfall project sessions`: who is let in.

use landfall_api::{Nothing, SessionList, SessionOf, TypedService};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;

/// List browsers and agents with access to the server, or revoke access
#[derive(clap::Args)]
pub struct Args {
    /// Revoke the access of this session
    #[arg(long, value_name = "SESSION")]
    revoke: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    let list = match args.revoke {
        Some(session) => service.session_revoke(SessionOf { session })?,
        None => service.sessions(Nothing {})?,
    };
    context.print_answer(&list, render_sessions)?;
    Ok(CliExit::Ok)
}

fn render_sessions(list: &SessionList) -> String {
    if list.sessions.is_empty() {
        return "nobody is let in\n".to_owned();
    }
    let mut table = Table::new(&["SESSION", "WHO", "SINCE", "LAST SEEN", "UNTIL"]);
    for it in &list.sessions {
        let who = if it.agent { format!("agent: {}", it.label) } else { it.label.clone() };
        let [since, seen, until] = [it.since_ms, it.seen_ms, it.until_ms].map(landfall_text::format_local);
        table.add_row([&it.session, &who, &since, &seen, &until]);
    }
    table.to_text()
}
