//! The program from outside: real processes, real git, a home of its own.

mod acp;
mod agents;
mod attack;
mod autopilot;
mod backlog;
mod bad_input;
mod batches;
mod behaviours;
mod branch;
mod budgets;
mod checkpoint;
mod conflicts;
mod crash;
mod faces;
mod gate;
mod import;
mod init;
mod intervene;
mod json;
mod landing;
mod mcp;
mod misbehave;
mod own_loop;
mod person;
mod player;
mod propose;
mod queue;
mod quota;
mod review;
mod run;
mod sandbox;
mod schemathesis;
mod serve;
mod services;
mod shares;
mod signal;
mod sprint;
mod support;
mod tasks;
mod terminal;
mod tmux;
mod top;
mod views;

/// The program under test.
const LANDFALL: &str = env!("CARGO_BIN_EXE_landfall");
