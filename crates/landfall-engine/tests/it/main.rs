//! Stories about the engine, told from outside.

mod flows;
mod herald;
mod notify;
mod prompts;
mod settings;
