//! How each agent speaks: argv and prompt out, bytes in, signals out.
//!
//! This crate is sans-IO: it opens no file, starts no process and reads no clock. An adapter says what to launch
//! ([`Agent::build_launch_command`]) and makes [`Signal`](landfall_model::Signal)s of the bytes that come back ([`OutputParser`]). Whoever
//! has a process to run does the rest. A new agent is a file here and a line in [`registry`].

pub mod acp;
mod agent;
mod claude;
mod codex;
mod command;
mod family;
mod fence;
pub mod files;
mod gemini;
mod json;
mod lines;
mod mcp;
mod nearest;
mod opencode;
mod provider;
pub mod registry;
pub mod script;
mod tags;
pub mod tmux;
mod voice;
mod words;

pub use agent::{
    Agent, AgentRequirements, AgentStream, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest,
    OutputParser, ParserContext, SideFile,
};
pub use family::{GUARDED, LOGINS, PROGRAM_PARTS, RUNS};
pub use fence::{CodeFenceTracker, LinePosition};
pub use lines::{LINE_MAX, LineSplitter, StreamLine};
pub use nearest::nearest_word;
pub use tags::{ControlTagParser, LineKind, PAYLOAD_MAX};
pub use words::{CommandLineError, split};
