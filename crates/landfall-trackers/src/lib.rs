//! Where tasks come from and reports go. One file, or folder, per tracker.

pub mod modules;
