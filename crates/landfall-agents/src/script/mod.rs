//! Kind `script`: an agent that does what a script tells it. It needs no model and no account, and it can
//! misbehave in every way we defend against.
//!
//! [`Script`] is the file, [`ScriptNote`] the lines it reports facts with; the program that plays it lives in the binary.

mod adapter;
mod error;
mod note;
mod read;
mod turn;
mod units;

pub(crate) use adapter::ScriptedAgent;
pub use error::{ScriptError, ScriptProblem};
pub use note::ScriptNote;
pub use turn::{
    FileContent, RepoAttack, Script, ScriptCommit, ScriptEdit, ScriptMessage, ScriptMisbehavior, ScriptTurn,
    ScriptWrite, TestWeakening,
};
