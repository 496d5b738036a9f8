//! The scripted agent as a program: `landfall play script.toml --iteration 2` performs one iteration of a script in
//! the current folder and says what it does, as an agent would.
//!
//! It stands outside of everything Landfall trusts: it runs git and whatever the script names, and it misbehaves when
//! told to. What a script may say is read by `landfall_agents::script`.

mod args;
mod attack;
mod children;
mod git;
mod misbehave;
mod perform;
mod voice;
mod weaken;
mod work;

pub use perform::play_role;
