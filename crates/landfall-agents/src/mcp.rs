//! How an agent at work is told of Landfall's own MCP server: our own program, spoken to over stdin and stdout.

use crate::agent::LaunchRequest;

/// What agents call it.
pub(crate) const NAME: &str = "landfall";

/// What makes our program that server.
pub(crate) const ARGS: [&str; 2] = ["mcp", "--agent"];

/// What it must have in its environment: which run speaks, and where it is heard. The values are never written into
/// an argument or a file, because the key is a secret of the run; the agents pass their own environment on.
pub(crate) const ENV: [&str; 3] = ["LANDFALL_SIGNAL", "LANDFALL_KEY", "LANDFALL_TASK"];

/// The program to name; none when the profile wants no server, or when its path is no text and so cannot be written
/// into a file of settings. The agent still has its shell and the tags.
pub(crate) fn mcp_program(brief: &LaunchRequest) -> Option<&str> {
    brief.program.to_str().filter(|_| brief.profile.mcp)
}
