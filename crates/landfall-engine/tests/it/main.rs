//! Stories about the engine, told from outside.

mod accept;
mod blockers;
mod disk;
mod flows;
mod herald;
mod notify;
mod ports;
mod prompts;
mod recovery;
mod recovery_ops;
mod routing;
mod routing_tables;
mod settings;
mod sim;
mod workspace;
