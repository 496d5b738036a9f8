//! Stories about the engine, told from outside.

mod flows;
mod prompts;
mod settings;
