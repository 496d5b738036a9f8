//! Where tasks come from and reports go. One file, or folder, per tracker.

pub mod github;
pub mod local;
pub mod modules;
pub mod registry;
pub mod tracker;
