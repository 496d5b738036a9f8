//! The one loop: news in, [`step`](landfall_model::step), journal, perform.
//!
//! Decisions are the model's; this crate gathers what they need, writes down what they say and carries it out.
//! [`Engine`] holds a project's state folder exclusively. [`Running`] is a drive of it. Everyone else asks
//! through a [`Handle`] or reads the tables.

pub mod accept;
mod ask;
mod base_check;
mod caches;
pub mod catalogue;
mod channel;
mod confine;
mod consult;
pub mod core;
pub mod diagnose;
pub mod disk;
mod dispatch;
pub mod engine;
pub mod errand;
pub mod exchange;
pub mod flows;
pub mod folder;
mod folders;
mod follow;
mod gate;
mod guard;
mod handover;
pub mod herald;
mod hooks;
pub mod improve;
mod interrupt;
pub mod journal_link;
mod land;
mod launch;
mod logfile;
mod loops;
mod meter;
mod module;
pub mod notify;
pub mod occasions;
mod opinion;
pub mod papers;
mod patience;
mod perform;
pub mod ports;
mod probe;
pub mod project_check;
pub mod prompts;
pub mod propose;
mod publish;
mod queue;
mod recover;
pub mod recover_ops;
mod recovering;
mod report;
#[cfg(target_os = "linux")]
pub mod sandbox_probe;
mod scout;
pub mod secrets;
pub mod settings;
mod shortage;
mod site;
mod spare;
mod test_evidence;
pub mod traces;
pub mod tracker;
pub mod trust;
mod vitals;
mod warm_caches;
pub mod workspace;

pub use ask::{Ask, AskError, FollowAsked, FollowIssue, LoopAsked, NewTask, Position, Reply, Rewritten};
pub use caches::CacheNotice;
pub use confine::{cache_notices, secret_places, tmp_problem};
pub use core::{Core, RunOptions, SprintAsked};
pub use engine::{Engine, Handle, OpenError, Options, RunOutcome, Running};
pub use folder::StateFolder;
pub use herald::Herald;
pub use landfall_host as host;
pub use landfall_model as model;
pub use landfall_store as store;
pub use launch::{NoTerminal, agent_profile, check_terminal};
pub use meter::day;
pub use probe::{ProbeAsked, Probed, probe};
pub use report::{certificate_of, look_back, report_of};
pub use shortage::Shortage;
pub use site::{Allowance, Live, RunningCheck, Site, View};
