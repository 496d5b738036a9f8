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
//! | `signals.jsonl` | the sitter | what the child said through its socket, synced before it is answered |
//! | `paused_until` | [`pause_deadline`] | until when the deadline stands still |
//! | `exit.json` | the sitter, as its last act | how it ended; only there once no process is left |
//! | `sitter.err` | the sitter, only when it fails itself | why |
//!
//! So whatever dies at whatever moment, [`find`] can tell what happened from the folder and the lock alone. But for
//! what the child says through its socket, the sitter never syncs: a power cut takes the child too, and the engine then
//! records the run as lost.
//!
//! The sitter itself is outside of the sandbox that it puts around its child, see [`crate::sandbox`].

mod deadline;
mod effort;
mod ended;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "without sitters there is nothing to write and little to read")
)]
mod files;
mod follow;
mod sitting;
mod spec;

#[cfg(target_os = "linux")]
mod abandon;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod connections;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod find;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod listen;
#[cfg(target_os = "linux")]
mod run_mark;
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
#[cfg(target_os = "linux")]
mod within;

pub use deadline::{Deadline, pause_deadline, resume_deadline};
pub use effort::{ProcessActivity, TcpConnection, cpu_ticks, measure_activities, measure_activity};
pub use ended::{ChildExit, Containment, EndCause, SitterEnd, SpoolSummary};
pub use follow::{SitterStream, SpoolReader};
pub use sitting::{
    FindError, SitterProcess, SitterState, StopError, StopMode, StopResult, SweepError, is_shortage,
};
pub use spec::{SignalSpec, SitterSpec, StartError};

#[cfg(target_os = "linux")]
pub use self::{
    abandon::abandon_sitter,
    find::find_sitter,
    identity::started_of,
    listen::WORDS,
    sit::run_sitter,
    start::{raise_file_limit, start_sitter},
    stop::stop_sitter,
    sweep::sweep_processes,
    watch::{SitterWaker, SitterWatch},
    within::is_confined,
};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{
    UnsupportedSitterWaker as SitterWaker, UnsupportedSitterWatch as SitterWatch, WORDS, abandon_sitter,
    find_sitter, is_confined, raise_file_limit, run_sitter, start_sitter, started_of, stop_sitter,
    sweep_processes,
};
