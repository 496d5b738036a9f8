//! The program from outside: real processes, real git, a home of its own.

mod acp;
mod agents;
mod attack;
mod bad_input;
mod budgets;
mod crash;
mod faces;
mod gate;
mod import;
mod init;
mod json;
mod landing;
mod mcp;
mod misbehave;
mod person;
mod player;
mod propose;
mod quota;
mod run;
mod sandbox;
mod services;
mod signal;
mod support;
mod tasks;
mod terminal;
mod tmux;

/// The program under test.
const LANDFALL: &str = env!("CARGO_BIN_EXE_landfall");
