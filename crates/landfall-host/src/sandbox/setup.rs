//! Preparing a sandbox: everything that needs memory or may fail for a reason worth telling, done before the fork.

use super::filter::build_filter;
use super::mounts::{NamespaceSetup, Network};
use super::places::SandboxPaths;
use super::rules;
use super::trial::SandboxTrial;
use super::words::{MissingFeature, ProcessLimits, Sandbox, SandboxLevel};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use thiserror::Error;

/// A sandbox ready to be entered by a child.
pub(crate) struct SandboxSetup {
    pub(super) rules: OwnedFd,
    /// A second layer, where the kernel knows it: which sockets may be spoken to.
    pub(super) socket_rules: Option<OwnedFd>,
    pub(super) filter: Vec<libc::sock_filter>,
    pub(super) limits: ProcessLimits,
    pub(super) apart: Option<NamespaceSetup>,
    pub(super) trial: SandboxTrial,
    pub(super) broken: Option<OmittedSandboxPart>,
}

/// Why a sandbox could not be prepared.
#[derive(Debug, Error)]
pub(crate) enum SandboxError {
    #[error("{0}; {hint}", hint = .0.hint())]
    Missing(#[from] MissingFeature),
    #[error("set up the sandbox: {0}")]
    Places(String),
    #[error("set up the sandbox: {doing}")]
    Failed { doing: String, errno: i32 },
}

/// A part that a test leaves out, to see that the trial inside finds it wanting. Never more than one refusal comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OmittedSandboxPart {
    Landlock,
    Signals,
    Seccomp,
    Privileges,
    Network,
    Hidden,
    Namespaces,
    Overlay,
}

impl OmittedSandboxPart {
    /// What a machine without namespaces says.
    pub(super) const NO_NAMESPACES: &str = "namespaces of its own: taken away for a test";

    pub(super) fn omitted_part_from_env() -> Option<OmittedSandboxPart> {
        match std::env::var("LANDFALL_SANDBOX_BREAK").ok()?.as_str() {
            "landlock" => Some(OmittedSandboxPart::Landlock),
            "signals" => Some(OmittedSandboxPart::Signals),
            "seccomp" => Some(OmittedSandboxPart::Seccomp),
            "privileges" => Some(OmittedSandboxPart::Privileges),
            "network" => Some(OmittedSandboxPart::Network),
            "hidden" => Some(OmittedSandboxPart::Hidden),
            "namespaces" => Some(OmittedSandboxPart::Namespaces),
            "overlay" => Some(OmittedSandboxPart::Overlay),
            _ => None,
        }
    }
}

impl SandboxSetup {
    /// Prepares `sandbox` for a child of ours, whose run is kept in `run` and who may speak to us on `socket`. The mounts of
    /// the run are called `run_name`.
    pub(crate) fn new(
        sandbox: &Sandbox,
        run: &Path,
        socket: Option<&Path>,
        run_name: &str,
    ) -> Result<SandboxSetup, SandboxError> {
        rules::check_landlock()?;
        let filter = build_filter(sandbox.level).ok_or_else(|| MissingFeature {
            level: sandbox.level,
            feature: "the system calls of this processor are not known".to_owned(),
        })?;
        let broken = OmittedSandboxPart::omitted_part_from_env();
        if broken == Some(OmittedSandboxPart::Namespaces) && sandbox.level.has_mounts() {
            return Err(MissingFeature {
                level: sandbox.level,
                feature: OmittedSandboxPart::NO_NAMESPACES.to_owned(),
            }
            .into());
        }
        let mut sandbox = sandbox.clone();
        // The tree speaks to us with our own program, which may lie below the home folder.
        sandbox.read.extend(std::env::current_exe());
        let sandbox = &sandbox;
        let places = SandboxPaths::new(sandbox, run)?;
        let trial = SandboxTrial::new(&places, run, sandbox.level)?;
        let places = match broken {
            Some(OmittedSandboxPart::Hidden) => SandboxPaths { hide: vec![], private: vec![], ..places },
            _ => places,
        };
        let rules = rules::make_rules(&places, broken)?;
        let socket_rules = rules::socket_rules(&places, socket)?;
        let apart = match sandbox.level {
            SandboxLevel::Write => None,
            SandboxLevel::Isolated => Some(NamespaceSetup::new(&places, socket, run_name, Network::Open)?),
            SandboxLevel::Strict => Some(NamespaceSetup::new(&places, socket, run_name, Network::None)?),
        };
        Ok(SandboxSetup { rules, socket_rules, filter, limits: sandbox.limits, apart, trial, broken })
    }
}

/// A path as the kernel takes it.
pub(super) fn to_c_path(path: &Path) -> Result<CString, SandboxError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SandboxError::Places(format!("`{}` holds a NUL byte", path.display())))
}
