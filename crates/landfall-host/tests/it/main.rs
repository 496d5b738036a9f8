//! What the host does with real processes, real git and a real disk.

mod disk;
mod git_scene;
mod git_store;
mod lock;
mod sitter;
mod sitter_figures;
mod sitter_scene;
