//! What changes something: requests of a user become questions to the engine, files or issues.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod follow_issues;
pub(crate) mod import;
pub(crate) mod intervene;
pub(crate) mod loops;
pub(crate) mod manual_steps;
pub(crate) mod modules;
pub(crate) mod proposals;
pub(crate) mod propose;
pub(crate) mod reclaim;
pub(crate) mod reconcile;
pub(crate) mod verify;
