//! For tests only: a scratch project, the real program in a sealed environment, and a model for real agents.
//!
//! Nothing here imitates a part of Landfall. Tests drive the binary with real git and real processes; the scripted
//! agent plays the model's part.

mod model;
mod processes;
mod scratch;

pub use model::{Asked, Dialect, Gate, ModelServer, Play, Tokens, Turn};
pub use processes::{Process, left_behind};
pub use scratch::{Said, Scratch, Started};
