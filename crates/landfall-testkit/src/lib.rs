//! For tests only: a scratch project and the real program in a sealed environment.
//!
//! Nothing here imitates a part of Landfall. Tests drive the binary with real git and real processes; the scripted
//! agent plays the model's part.

mod processes;
mod scratch;

pub use processes::{Process, left_behind};
pub use scratch::{Said, Scratch, Started};
