//! What the host does with real processes, real git and a real disk.

mod disk;
mod git_acceptance;
mod git_attacks;
mod git_batch;
mod git_figures;
mod git_freshness;
mod git_in_flight;
mod git_include;
mod git_merge;
mod git_news;
mod git_publish;
mod git_publish_files;
mod git_rebuild;
mod git_scene;
mod git_store;
mod git_store_repair;
mod git_workspace;
mod lock;
mod sandbox;
mod sitter;
mod sitter_figures;
mod sitter_scene;
mod sitter_signals;
mod sitter_within;
