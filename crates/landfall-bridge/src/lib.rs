//! Bridges: small processes of ours that a sitter starts as the agent, and that drive the real agent as their child.
//!
//! Some agents want a conversation ([`acp`]), some a terminal ([`tmux`]). A bridge gives them one and prints what
//! happens as lines that the adapters of `landfall-agents` understand. So they run under the same sitter as all others:
//! the engine may go and come back, the bridge goes on. A bridge knows nothing of tasks.
//!
//! The agent's own way back to us is here too: [`socket`] takes one word to the run's sitter, for `landfall signal` and
//! for the tools that [`mcp`] offers. [`person`] has other tools, for the assistant of a person.

use std::io::{self, Read as _};

pub mod acp;
pub mod attach;
pub mod mcp;
pub mod person;
mod say;
pub mod socket;
pub mod tmux;

/// An order is a prompt and a few words.
const ORDER_MAX: u64 = 64 << 20;

/// The exit code of a bridge without an order.
const NO_ORDER: u8 = 2;

/// The order on stdin, or the exit code once it was said that there is none.
fn order<T>(read: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, u8> {
    let mut text = Vec::new();
    let order = match io::stdin().lock().take(ORDER_MAX).read_to_end(&mut text) {
        Ok(_) => read(&text),
        Err(error) => Err(error.to_string()),
    };
    order.map_err(|problem| {
        eprintln!("read the order on stdin: {problem}");
        NO_ORDER
    })
}

/// The bridge of this name, with its order on stdin. None: there is no such bridge. Returns the exit code.
#[must_use]
pub fn run_bridge(name: &str) -> Option<u8> {
    match name {
        "acp" => Some(acp::run()),
        "tmux" => Some(tmux::run()),
        _ => None,
    }
}
