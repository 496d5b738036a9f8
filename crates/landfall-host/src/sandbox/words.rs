//! The words of the sandbox: what is asked for, what there is, what is wanting.

use std::path::PathBuf;
use thiserror::Error;

/// What a process tree may do, and to what. Made by whoever knows the folders; put up by the sitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// How much is closed.
    pub level: SandboxLevel,
    /// Folders and single files it may change, and read too. One that does not exist is skipped, so what the program
    /// shall be able to make must lie in a folder named here. A single file can be written but not replaced by another,
    /// as that is a change of its folder. A device, or a socket that is to stay open in the strict level, is named here
    /// too. The sitter's own folder must not be among them.
    pub write: Vec<PathBuf>,
    /// Folders and files whose content it must not see, whether they exist or not.
    pub hide: Vec<PathBuf>,
    /// Folders and files that it may read although they lie below a hidden one. One that does not exist is skipped.
    pub read: Vec<PathBuf>,
    /// Folders in whose place it gets an empty one of its own, which it may change: those for everybody's temporary files.
    /// Only a level with mounts of its own can do that. One that does not exist is skipped.
    pub private: Vec<PathBuf>,
    /// Those of `write` that no other run can change while this one lasts. Only within and between them can files be linked
    /// or moved to another folder: in a place that others can write, a link would be a file of theirs and of this run.
    pub exclusive: Vec<PathBuf>,
    /// Folders that it may change without changing them: what it does goes elsewhere. Only a level with mounts of its own can
    /// do that. One that does not exist is skipped.
    pub layers: Vec<CacheLayer>,
    /// Bounds on what it uses up.
    pub limits: ProcessLimits,
}

/// A folder that a process tree sees with changes of its own, such as the cache of a package manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayer {
    /// Where the tree sees it.
    pub path: PathBuf,
    /// Where its changes go.
    pub changes: LayerChanges,
}

/// Where the changes of a layer go. The folders are there before the tree starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerChanges {
    /// Over the folder, by overlayfs. Both folders are on one file system that can be an upper layer, see
    /// [`can_overlay`](super::can_overlay), and serve one tree at a time.
    Overlay {
        /// Files that were made or changed.
        upper: PathBuf,
        /// For overlayfs alone.
        work: PathBuf,
    },
    /// Into this folder, which stands in the place of the other one.
    Copy(PathBuf),
}

/// How much is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxLevel {
    /// Changes only where allowed, no look at what is hidden, no signal to and no tracing of anyone outside. The network
    /// is open, and so are the sockets of local services.
    Write,
    /// As `Write`, and the machine is read-only, without what is hidden, with folders for temporary files, terminals and
    /// shared memory of its own. The network is open. Needs namespaces.
    Isolated,
    /// As `Isolated`, and no network, no local services, and names and attributes outside cannot be changed either. Needs
    /// namespaces.
    Strict,
}

impl SandboxLevel {
    /// The level's name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            SandboxLevel::Write => "write",
            SandboxLevel::Isolated => "isolated",
            SandboxLevel::Strict => "strict",
        }
    }
}

/// Bounds for each process of the tree, 0 for none. They only ever lower what the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Processes and threads of the same person, the person's own included: the kernel counts them together.
    pub processes: u64,
    /// Open files of one process.
    pub files: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
}

impl Default for ProcessLimits {
    /// Far above honest work, far below what brings a machine down.
    fn default() -> ProcessLimits {
        ProcessLimits { processes: 32_768, files: 1 << 20, file_bytes: 64 << 30 }
    }
}

/// What this machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The version of Landlock in the kernel.
    pub landlock: u32,
    /// What is wanting for [`SandboxLevel::Isolated`]; none if it can be had too.
    pub isolated: Option<MissingFeature>,
    /// What is wanting for [`SandboxLevel::Strict`]; none if it can be had too.
    pub strict: Option<MissingFeature>,
}

/// What a level needs and the machine has not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the sandbox `{}` cannot be had here: {feature}", level.name())]
pub struct MissingFeature {
    /// The level that needs it.
    pub level: SandboxLevel,
    /// What is wanting, with what the system said.
    pub feature: String,
}

impl MissingFeature {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self.level {
            SandboxLevel::Write => {
                "agents run without a sandbox only if you say so: `sandbox = \"off\"` under [run], or in the agent's profile"
            }
            SandboxLevel::Isolated => {
                "`sandbox = \"write\"` leaves the sockets of local services open, `sandbox = \"off\"` leaves everything open: under [run], or in the agent's profile"
            }
            SandboxLevel::Strict => {
                "`sandbox = \"write\"` leaves the network open, `sandbox = \"off\"` leaves everything open: under [run], or in the agent's profile"
            }
        }
    }
}
