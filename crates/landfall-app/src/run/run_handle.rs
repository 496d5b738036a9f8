//! A run as the terminal sees it. This crate drives the engine and implements [`RunHandle`]; the command shows it.

use std::time::Duration;

use landfall_api::RunOutcome;
pub use landfall_api::{NewsLine, RunAsked, RunMode, RunView, SlotLine, SprintAsked};

/// A run under way. Dropping it lets go of the engine; agents that still work are adopted by the next one.
pub trait RunHandle: Send {
    /// What goes on now, with the news since the last call. It must be cheap: it is called eight times a second.
    fn snapshot(&mut self) -> RunView;

    /// Starts no more iterations; those under way finish.
    fn drain(&mut self);

    /// Stops the agents now. Their work is kept.
    fn stop_now(&mut self);

    /// How the run ended, if it does within `timeout`.
    fn wait(&mut self, timeout: Duration) -> Option<RunOutcome>;
}
