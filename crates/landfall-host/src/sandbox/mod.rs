//! A sandbox around an agent's process tree: put up by its sitter between fork and exec, or the agent does not start.

mod words;

pub use words::{Available, Level, Limits, Missing, Sandbox};

/// Says what of the sandbox this machine has.
pub fn probe() -> Result<Available, Missing> {
    Err(Missing { level: Level::Write, feature: "not built yet".to_owned() })
}
