//! A model for real agents to talk to: it speaks their providers' protocols on a port of its own and plays a part.
//!
//! It knows nothing of Landfall. What a request asks for decides the dialect; what the model does next is the play's.

mod dialect;
mod play;
mod server;

pub use dialect::Dialect;
pub use play::{Play, PlayGate, PlayTurn, Tokens};
pub use server::{ModelRequest, ModelServer};
