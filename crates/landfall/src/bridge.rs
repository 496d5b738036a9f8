//! `landfall bridge NAME`: what a sitter starts for an agent that wants a conversation or a terminal.

use std::ffi::OsString;

use crate::exit::CliExit;

/// Drives the agent that stdin orders, to its end. Returns the exit code.
pub fn run_bridge(mut words: impl Iterator<Item = OsString>) -> u8 {
    let name = words.next();
    name.as_deref()
        .and_then(|name| name.to_str())
        .and_then(landfall_bridge::run_bridge)
        .unwrap_or(CliExit::Usage.exit_code())
}
