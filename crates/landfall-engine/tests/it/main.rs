//! Stories about the engine, told from outside.

mod flows;
mod herald;
mod notify;
mod ports;
mod prompts;
mod settings;
mod sim;
mod workspace;
