//! What came of the work, by day, by agent and in all.

use serde::{Deserialize, Serialize};

use crate::{FlakeLine, Outcome};

/// Asks what came of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StatsAsked {
    /// The last so many days, today included; 30 when it is 0, never more than 366.
    pub days: u32,
}

/// What came of the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stats {
    /// The last fact of the journal this is true for.
    pub seq: u64,
    /// Each day, oldest first, days without work included.
    pub days: Vec<StatsDay>,
    /// All of these days together.
    pub total: StatsSum,
    /// How many tasks landed after so many iterations.
    pub iterations: Vec<StatsCount>,
    /// From being added to landing.
    pub cycle: Spread,
    /// From first being worked on to landing.
    pub lead: Spread,
    /// By agent profile, the one that landed most first.
    pub profiles: Vec<StatsProfile>,
    /// What verifications came to.
    pub gates: Vec<StatsGate>,
    /// Checks that failed and then passed on the same tree, the worst first. When one last did is known to the quarter of an hour.
    pub flakes: Vec<FlakeLine>,
    /// How many landed tasks took so many rounds of a reviewing agent.
    pub review_rounds: Vec<StatsCount>,
    /// Where a person and a reviewing agent both looked at the same work.
    pub agreement: Agreement,
    /// What judges said of finished work against what verification and landing said later, over all of the journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<crate::JudgeAgreement>,
}

/// One day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsDay {
    /// The day, such as `2026-07-29`.
    pub day: String,
    /// When it began.
    pub from_ms: i64,
    /// What happened on it.
    #[serde(flatten)]
    pub sum: StatsSum,
}

/// What happened in a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsSum {
    /// Tasks that were added.
    pub added: u64,
    /// Tasks that landed.
    pub landed: u64,
    /// Tasks that failed, ran out, are blocked, or were cancelled.
    pub not_landed: u64,
    /// Runs of agents.
    pub iterations: u64,
    /// Tries of steps.
    pub attempts: u64,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, if an agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens whose cost nobody told: the money above does not include them.
    #[serde(default)]
    pub tokens_without_price: u64,
    /// Runs that may have used more than they reported.
    #[serde(default)]
    pub runs_at_least: u64,
    /// Working time of agents.
    pub agent_ms: u64,
    /// Time that verification took.
    pub verify_ms: u64,
    /// How often work went on after a crash: of the engine, of an agent, of something on the machine.
    pub recoveries: u64,
    /// How often a task waited for an account.
    pub quota_waits: u64,
    /// Tasks that take landed work back.
    pub rollbacks: u64,
    /// Work that did not merge with the base.
    pub conflicts: u64,
    /// Questions to a person.
    pub questions: u64,
}

/// How often a number occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsCount {
    /// The number.
    pub of: u64,
    /// How often.
    pub count: u64,
}

/// How long something took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// How often it was seen.
    pub count: u64,
    /// Half of them were quicker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
    /// Nine of ten were quicker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ms: Option<u64>,
}

/// What came of the work of one agent profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsProfile {
    /// Which.
    pub profile: String,
    /// Tasks it worked on last before they landed.
    pub landed: u64,
    /// Tasks it worked on last before they failed, ran out or were blocked.
    pub failed: u64,
    /// Its runs.
    pub iterations: u64,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, if it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Its working time.
    pub agent_ms: u64,
}

/// How often verification came to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsGate {
    /// To this.
    pub outcome: Outcome,
    /// So often.
    pub count: u64,
}

/// Whether a person and a reviewing agent are of one mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agreement {
    /// Both let it pass.
    pub both_approved: u64,
    /// Both wanted changes.
    pub both_objected: u64,
    /// The agent let it pass, the person did not.
    pub person_objected: u64,
    /// The agent wanted changes, the person let it pass.
    pub person_approved: u64,
}
