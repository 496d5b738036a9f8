//! Puts the house together: the only file of the binary that names the engine.
//!
//! What the commands need from here; bodies follow.
//!
//! - `sit(dir: &OsStr) -> u8`: the sitter, before anything else starts; its exit code.
//! - `project(dir: &Path) -> Result<Project, Problem>`: where the project is. Needs no `landfall.toml`.
//! - `service(dir: &Path) -> Result<Box<dyn Service>, Problem>`: the running engine's socket, else the engine
//!   in-process for the moment. Commands take a new one for each look (`log -f`), so that it holds no lock between.
//! - `run(dir: &Path, asked: RunAsked) -> Result<Box<dyn RunHandle>, Problem>`: holds the lock and drives.
//! - `demo(dir: Option<&Path>) -> Result<Demo, Problem>`: makes the project and its backlog, starts the run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use landfall_api::{Problem, ProblemCode, Service};

use crate::running::{RunAsked, RunHandle};

/// Where a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The root of its repository: where `landfall.toml` belongs.
    pub root: PathBuf,
    /// The branch HEAD is on: what `init` proposes to land on.
    pub branch: String,
}

/// A demonstration under way.
pub struct Demo {
    /// The project that was made.
    pub root: PathBuf,
    /// Its run. What it says at the end is shown like that of any run.
    pub run: Box<dyn RunHandle>,
}

fn not_built() -> Problem {
    Problem::new(ProblemCode::Internal, "not built yet")
}

/// Owns one agent process. Returns the exit code.
pub fn sit(_dir: &OsStr) -> u8 {
    1
}

/// The project around `dir`.
pub fn project(_dir: &Path) -> Result<Project, Problem> {
    Err(not_built())
}

/// Whoever answers for the project around `dir`.
pub fn service(_dir: &Path) -> Result<Box<dyn Service>, Problem> {
    Err(not_built())
}

/// Drives the project around `dir`.
pub fn run(_dir: &Path, _asked: RunAsked) -> Result<Box<dyn RunHandle>, Problem> {
    Err(not_built())
}

/// Makes a project to look at, in `dir` or in a temporary folder, and drives it.
pub fn demo(_dir: Option<&Path>) -> Result<Demo, Problem> {
    Err(not_built())
}
