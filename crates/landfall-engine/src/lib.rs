//! The one loop: news in, [`decide_and_apply`](landfall_model::decide_and_apply), journal, perform.
//!
//! Decisions are the model's; this crate gathers what they need, writes down what they say and carries it out.
//! [`Engine`] holds a project's state folder exclusively. [`RunThread`] is a drive of it. Everyone else asks
//! through an [`EngineHandle`] or reads the tables.
//!
//! Modules import only downwards. From the top, the layers that carry out orders are:
//!
//! 1. `engine`: the loop.
//! 2. `perform`: one arm per order.
//! 3. `launch`, then `follow`: agents.
//! 4. `publish`, and `queue`: landed work and batches.
//! 5. `gate`: verification of one tree.
//! 6. `land`: where the base is.
//! 7. [`EngineContext`]: what only an engine has.
//! 8. [`HostContext`]: what performing an order needs on any machine.
//!
//! What several of them need is in a module below all of them, such as `git_refs`, `run_folder` or `effect_thread`.
//! A test of `xtask` (`engine_layers`) finds an import upwards, also by way of other modules.

pub mod accept;
mod active_work;
mod agent_run;
mod ask;
mod base_check;
mod base_tracker;
mod caches;
pub mod catalogue;
mod channel;
mod commit_message;
mod confine;
mod consult;
pub mod core;
pub mod diagnose;
mod digests;
pub mod disk;
mod dispatch;
mod effect_thread;
pub mod engine;
mod engine_context;
mod environment;
pub mod errand;
pub mod exchange;
pub mod flows;
pub mod folder;
mod folders;
mod follow;
mod gate;
mod git_refs;
mod guard;
mod handover;
pub mod herald;
pub mod hook_scripts;
mod hooks;
mod host_context;
mod ids;
pub mod improve;
mod installations;
mod interrupt;
pub mod journal_link;
mod land;
mod landing_trust;
mod lane_pool;
mod launch;
mod live_view;
mod logfile;
mod loops;
mod mail;
mod measured;
mod meter;
mod module;
pub mod notify;
pub mod occasions;
mod open_error;
mod opinion;
mod output_text;
pub mod papers;
mod pass_cache;
mod patience;
mod perform;
pub mod ports;
mod premerge;
mod probe;
pub mod project_check;
pub mod prompts;
pub mod propose;
mod publish;
mod queue;
mod reader_workspace;
mod recover;
pub mod recover_ops;
mod recovering;
mod report;
mod run_folder;
#[cfg(target_os = "linux")]
pub mod sandbox_probe;
mod scout;
pub mod secrets;
mod session_file;
pub mod settings;
mod settings_file;
mod shortage;
mod spare;
mod step_outputs;
mod test_evidence;
pub mod traces;
pub mod tracker;
pub mod trust;
mod vitals;
mod warm_caches;
pub mod workspace;

pub use agent_run::agent_profile;
pub use ask::{
    AskError, EngineReply, EngineRequest, FollowIssue, FollowRequest, ImportedProgress, LoopRequest,
    NewTaskSpec, RewrittenBaseChoice,
};
pub use caches::CacheNotice;
pub use confine::{cache_notices, secret_places, tmp_problem};
pub use core::{Core, RunOptions, SprintRequest};
pub use engine::{Engine, EngineHandle, EngineOptions, EngineRunOutcome, OpenError, RunThread};
pub use engine_context::EngineContext;
pub use folder::StateFolder;
pub use herald::Notifier;
pub use host_context::{HostContext, RunningCheck};
pub use landfall_host as host;
pub use landfall_model as model;
pub use landfall_store as store;
pub use launch::{TerminalError, check_terminal};
pub use live_view::{AccountAllowance, LiveAgent, LiveSnapshot};
pub use meter::local_day;
pub use probe::{ProbeRequest, ProbeResult, probe_agent};
pub use report::{build_retrospective, certificate_of, report_of};
pub use shortage::Shortage;
