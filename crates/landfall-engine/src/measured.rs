//! What this engine has read and measured of commits, which never change: so that it is done once.

use std::collections::HashMap;

use landfall_host::git::Oid;
use landfall_model::gate::CommandExit;
use landfall_model::{Digest, Tree};

use crate::settings::VerifySettings;

/// What is known of trees and commits. All of it can be found out again.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    /// What single checks showed on the base, by tree, section and command.
    pub baseline: HashMap<(Tree, Digest, String), BaselineEntry>,
    /// Verify sections by the base they were read from.
    pub sections: HashMap<Oid, Result<VerifySettings, String>>,
    /// How often the check of a tree failed while the kernel ended processes for lack of memory, by tree and command.
    pub oom_checks: HashMap<(Tree, String), u32>,
}

/// What a check showed on the base, and when by the clock that never goes back.
#[derive(Debug, Clone)]
pub(crate) struct BaselineEntry {
    pub seen: CommandExit,
    pub at_ms: u64,
}
