//! A project as seen by one request: where it is, who drives it, its tables, and what is kept of them; with the
//! conversions between the model and the wire, and the errors.

pub(crate) mod attempts;
pub mod clock;
pub(crate) mod command_handler;
pub(crate) mod conversions;
pub(crate) mod dead_ends;
pub(crate) mod engine_at;
pub(crate) mod issue_answers;
pub(crate) mod open_engine;
pub(crate) mod open_tracker;
pub(crate) mod place;
pub(crate) mod problems;
pub(crate) mod query_context;
pub(crate) mod read_caches;
pub(crate) mod reader_pool;
pub(crate) mod run_folders;
pub(crate) mod sentences;
pub(crate) mod staged_text;
pub(crate) mod task_cache;
pub(crate) mod trust;
