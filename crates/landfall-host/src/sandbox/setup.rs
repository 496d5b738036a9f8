//! Preparing a sandbox: everything that needs memory or may fail for a reason worth telling, done before the fork.

use super::filter::filter;
use super::mounts::{Apart, Network};
use super::places::Places;
use super::rules;
use super::trial::Trial;
use super::words::{Level, Limits, Missing, Sandbox};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use thiserror::Error;

/// A sandbox ready to be entered by a child.
pub(crate) struct Setup {
    pub(super) rules: OwnedFd,
    /// A second layer, where the kernel knows it: which sockets may be spoken to.
    pub(super) socket_rules: Option<OwnedFd>,
    pub(super) filter: Vec<libc::sock_filter>,
    pub(super) limits: Limits,
    pub(super) apart: Option<Apart>,
    pub(super) trial: Trial,
    pub(super) broken: Option<Broken>,
}

/// Why a sandbox could not be prepared.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    #[error("{0}; {hint}", hint = .0.hint())]
    Missing(#[from] Missing),
    #[error("set up the sandbox: {0}")]
    Places(String),
    #[error("set up the sandbox: {doing}")]
    Failed { doing: String, errno: i32 },
}

/// A part that a test leaves out, to see that the trial inside finds it wanting. Never more than one refusal comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Landlock,
    Signals,
    Seccomp,
    Privileges,
    Network,
    Hidden,
    Namespaces,
    Overlay,
}

impl Broken {
    /// What a machine without namespaces says.
    pub(super) const NO_NAMESPACES: &str = "namespaces of its own: taken away for a test";

    pub(super) fn asked_for() -> Option<Broken> {
        match std::env::var("LANDFALL_SANDBOX_BREAK").ok()?.as_str() {
            "landlock" => Some(Broken::Landlock),
            "signals" => Some(Broken::Signals),
            "seccomp" => Some(Broken::Seccomp),
            "privileges" => Some(Broken::Privileges),
            "network" => Some(Broken::Network),
            "hidden" => Some(Broken::Hidden),
            "namespaces" => Some(Broken::Namespaces),
            "overlay" => Some(Broken::Overlay),
            _ => None,
        }
    }
}

impl Setup {
    /// Prepares `sandbox` for a child of ours, whose run is kept in `run` and who may speak to us on `socket`. The mounts of
    /// the run are called `run_name`.
    pub(crate) fn new(
        sandbox: &Sandbox,
        run: &Path,
        socket: Option<&Path>,
        run_name: &str,
    ) -> Result<Setup, Refusal> {
        rules::check()?;
        let filter = filter(sandbox.level).ok_or_else(|| Missing {
            level: sandbox.level,
            feature: "the system calls of this processor are not known".to_owned(),
        })?;
        let broken = Broken::asked_for();
        if broken == Some(Broken::Namespaces) && sandbox.level.has_mounts() {
            return Err(Missing { level: sandbox.level, feature: Broken::NO_NAMESPACES.to_owned() }.into());
        }
        let mut sandbox = sandbox.clone();
        // The tree speaks to us with our own program, which may lie below the home folder.
        sandbox.read.extend(std::env::current_exe());
        let sandbox = &sandbox;
        let places = Places::new(sandbox, run)?;
        let trial = Trial::new(&places, run, sandbox.level)?;
        let places = match broken {
            Some(Broken::Hidden) => Places { hide: vec![], private: vec![], ..places },
            _ => places,
        };
        let rules = rules::rules(&places, broken)?;
        let socket_rules = rules::socket_rules(&places, socket)?;
        let apart = match sandbox.level {
            Level::Write => None,
            Level::Isolated => Some(Apart::new(&places, socket, run_name, Network::Open)?),
            Level::Strict => Some(Apart::new(&places, socket, run_name, Network::None)?),
        };
        Ok(Setup { rules, socket_rules, filter, limits: sandbox.limits, apart, trial, broken })
    }
}

/// A path as the kernel takes it.
pub(super) fn raw(path: &Path) -> Result<CString, Refusal> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Refusal::Places(format!("`{}` holds a NUL byte", path.display())))
}
