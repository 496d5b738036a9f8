//! The bridges from outside: real processes, a real repository, agents of our own.

mod acp;
mod mcp;
mod tmux;

/// The program with the bridges and the agents.
const PROBE: &str = env!("CARGO_BIN_EXE_landfall-bridge-probe");
