//! Where tasks come from and reports go. One file, or folder, per tracker.

pub mod github;
pub mod local;
pub mod modules;
mod plain_file;
pub mod registry;
pub mod tracker;
