//! For tests only: a scratch project, the real program in a sealed environment, a model for real agents, and a GitHub.
//!
//! Nothing here imitates a part of Landfall. Tests drive the binary with real git and real processes; the scripted
//! agent plays the model's part.

mod blanked;
mod github;
mod http;
mod loop_disk;
mod model;
mod processes;
mod scratch;
mod skip;

pub use blanked::blanked;
pub use github::{
    FAKE_TOKEN, FakeCheck, FakeComment, FakeGithub, FakeIssue, FakeJob, FakePull, FakeRepository, FakeReview,
    FakeStatus, GithubFault, RecordedRequest,
};
pub use loop_disk::LoopDisk;
pub use model::{Dialect, ModelRequest, ModelServer, Play, PlayGate, PlayTurn, Tokens};
pub use processes::{Process, left_behind};
pub use scratch::{BackgroundCommand, CommandOutput, ScratchProject, tests_folder};
pub use skip::{has_tmux, skip_test};
