//! A sandbox around an agent's process tree: put up by its sitter between fork and exec, or the agent does not start.
//!
//! | | `write` | `isolated` | `strict` |
//! |---|---|---|---|
//! | change files | only in the places named, by Landlock | the same, and the rest of the machine is mounted read-only | as `isolated` |
//! | change owners, rights and times of other files | as its user may | refused | refused |
//! | read files | all but what is hidden, by Landlock | the same, and an empty folder stands in place of each hidden one | as `isolated` |
//! | names of hidden files | can be seen: Landlock does not look at names | cannot | cannot |
//! | folders for everybody's temporary files | can be read | its own | its own |
//! | caches that are layers | can be read | a view of its own, whose changes go elsewhere | as `isolated` |
//! | hard links, and moves to another folder | only in places that no other run can change | the same | the same |
//! | signals, tracing, scheduling of others | only within the tree, by Landlock and seccomp | the same | the same |
//! | network | open | open | none: a network namespace of its own, without even a loopback |
//! | sockets of local services | open by path before Landlock 9, closed if abstract | those in hidden and private folders, and those that listen at the start, are covered up | as `isolated` |
//! | devices | the harmless ones; others only if named as places to write | the same | the same |
//! | terminals | none | its own | its own |
//! | shared memory | the user's | its own | its own |
//! | kernel surface | seccomp, no new privileges, fewer capabilities for root | the same | the same |
//!
//! The sitter stays outside. It prepares everything (`setup`) so that the child needs only system calls
//! (`enter`), and the child, once inside, tries what must fail (`trial`). Whatever cannot be set up, or does not hold,
//! ends the child before the program runs; nothing is ever lowered on the way.
//!
//! Landlock only knows what is allowed. So "everything but what is hidden" is every neighbour of what is hidden, on every
//! level from the root down, as they are when the run starts. What is made among these neighbours later (a new folder
//! in the home folder, say) cannot be read by this run: closed rather than open. Symbolic links among them are no
//! exception to anything, as it is their target that counts.
//!
//! There is no process namespace. It would make the agent the first process of its world, which ignores signals and
//! has to collect orphans; the tree is held by its sitter already, and Landlock keeps its signals inside. User
//! namespaces are not refused: inside Landlock nobody can mount anything with them.

mod machine;
mod words;

#[cfg(target_os = "linux")]
mod aliases;
#[cfg(target_os = "linux")]
pub mod attempts;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod trial;

pub use machine::{
    cached_probe, can_isolate, needed_runtime_files, runtime_folders, shared_temporary_folders,
};
pub use words::{
    CacheLayer, LayerChanges, MissingFeature, ProcessLimits, Sandbox, SandboxLevel, SandboxSupport,
};

#[cfg(target_os = "linux")]
use probe::is_isolation_supported;
#[cfg(target_os = "linux")]
pub use probe::{can_overlay, probe_sandbox};
#[cfg(target_os = "linux")]
pub(crate) use {
    enter::SandboxEntryStep,
    setup::{SandboxError, SandboxSetup},
};

#[cfg(not(target_os = "linux"))]
fn is_isolation_supported() -> bool {
    false
}

/// Whether an overlay over `lower` can be put up whose changes go to `folder`: not here.
#[cfg(not(target_os = "linux"))]
pub fn can_overlay(_folder: &std::path::Path, _lower: &std::path::Path) -> bool {
    false
}

/// Says what of the sandbox this machine has: nothing, so far only Linux has what it takes.
#[cfg(not(target_os = "linux"))]
pub fn probe_sandbox() -> Result<SandboxSupport, MissingFeature> {
    Err(MissingFeature { level: SandboxLevel::Write, feature: "Landlock, which only Linux has".to_owned() })
}
