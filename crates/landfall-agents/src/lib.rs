//! How each agent speaks: argv and prompt out, bytes in, signals out.
//!
//! This crate is sans-IO: it opens no file, starts no process and reads no clock. An adapter says what to launch
//! ([`Agent::launch`]) and makes [`Signal`](landfall_model::Signal)s of the bytes that come back ([`Parse`]). Whoever
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

pub use agent::{Agent, Aside, Brief, Ear, Launch, LaunchError, Needs, Parse, Profile, Stream};
pub use family::{GUARDED, LOGINS, PROGRAM_PARTS, RUNS};
pub use fence::{Fences, Place};
pub use lines::{LINE_MAX, Line, Lines};
pub use nearest::nearest;
pub use tags::{Heard, PAYLOAD_MAX, Tags};
pub use words::{WordsError, split};
