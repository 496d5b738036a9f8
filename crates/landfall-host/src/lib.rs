//! The machine: sitters, process trees, git, workspaces, clock, disk.
//!
//! This crate does what it is told and reports what it saw. It knows no tasks and never decides.
//! Only [`git`] spawns git; only [`sitter`] spawns agents and verification commands.

pub mod clock;
pub mod crash;
pub mod disk;
pub mod git;
pub mod lock;
pub mod memory;
pub mod mount;
pub mod sandbox;
pub mod sitter;
pub mod tree_copy;
pub mod user_file;
pub mod wait;
