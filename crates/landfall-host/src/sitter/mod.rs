//! Sitters: small processes that own one agent's or one command's process tree each, and outlive the engine.
//!
//! The engine calls [`start`]; the binary's `sit` command calls [`sit`]. Between the two there is only a folder:
//!
//! | file | written by | says |
//! |---|---|---|
//! | `spec.json` | [`start`] | what to run |
//! | `lock` | [`start`], handed on to the sitter | held without a gap from before the sitter exists until it has ended |
//! | `sitter.json` | the sitter, before it spawns anything | who it is; created once and never again: the fence |
//! | `out.log`, `err.log` | the sitter | what the child said, capped |
//! | `exit.json` | the sitter, as its last act | how it ended; only there once no process is left |
//! | `sitter.err` | the sitter, only when it fails itself | why |
//!
//! So whatever dies at whatever moment, [`find`] can tell what happened from the folder and the lock alone. The sitter
//! never syncs: a power cut takes the child too, and the engine then records the run as lost.

mod ended;
mod files;
mod find;
mod follow;
mod spec;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod deadline;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod sit;
#[cfg(target_os = "linux")]
mod spool;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watch;

pub use ended::{Cause, Containment, Ended, Exit, Spool};
pub use find::{FindError, Found, find};
pub use follow::{Cut, Follow, Stream};
pub use spec::{Spec, StartError};

#[cfg(target_os = "linux")]
pub use self::{
    identity::{Sitting, started_of},
    sit::sit,
    start::{raise_file_limit, start},
    stop::{Stop, StopError, Stopped, stop},
    sweep::{SweepError, sweep},
    watch::{Waker, Watch},
};
