//! How a run ended, as the sitter saw it.

use crate::sandbox::SandboxLevel;

/// The end of a run. There is one only once no process of it is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitterEnd {
    /// What became of the main child.
    pub exit: ChildExit,
    /// Who brought it about.
    pub cause: EndCause,
    /// When the child was spawned, in milliseconds since 1970.
    pub began_ms: i64,
    /// When the main child ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// What became of its standard output.
    pub out: SpoolSummary,
    /// What became of its standard error.
    pub err: SpoolSummary,
    /// Other processes of the tree that had to be killed: an agent run leaves nothing behind.
    pub swept: u32,
    /// Processes that would not die, however often they were killed: stuck in the kernel, or another user's. Zero
    /// except on a sick machine.
    pub left: u32,
    /// What held the tree together.
    pub contained: Containment,
    /// The sandbox it ran in, or would have if it did not start; none if none was asked for.
    pub sandbox: Option<SandboxLevel>,
    /// Processes that the kernel ended for lack of memory while it ran, in the control group around the sitter, or on the whole
    /// machine where no group is counted. They need not be of this run.
    pub oom_kills: u64,
}

/// What became of the main child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildExit {
    /// It ended with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It never ran.
    NotStarted {
        /// What was tried and what the system said.
        message: String,
        /// The program is not there.
        missing: bool,
        /// The program may not be run, or not without the sandbox that was asked for and cannot be had.
        denied: bool,
        /// The system's error number, 0 if there was none: `EAGAIN` and `ENOMEM` are nobody's fault and may pass.
        errno: i32,
    },
}

/// Who ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The child itself.
    Own,
    /// The hard deadline.
    Deadline,
    /// Someone who called `stop`.
    Asked,
}

/// What held the process tree together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A control group of its own: killed by the kernel as a whole. Orphans also come back to the sitter.
    Cgroup,
    /// Orphans come back to the sitter, which hunts them down one by one.
    Subreaper,
}

/// What became of one output. `bytes` is always `kept` + `left_out`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolSummary {
    /// Bytes the tree wrote.
    pub bytes: u64,
    /// Bytes of those in the file.
    pub kept: u64,
    /// Bytes of those dropped: over the cap, or the disk was full.
    pub left_out: u64,
    /// Where in the file the mark stands that says so.
    pub cut_at: Option<u64>,
}
