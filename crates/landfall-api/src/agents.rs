//! Agents: which there are, what a profile would run, what they used.

use landfall_facts::BudgetScope;
use serde::{Deserialize, Serialize};

/// Asks which agents there are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentsAsked {
    /// Only this profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Which agents there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentsFound {
    /// Every kind that can be driven.
    pub kinds: Vec<AgentKind>,
    /// The profiles of the project; none outside of one.
    pub profiles: Vec<AgentProfile>,
}

/// A kind of agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentKind {
    /// Its name in settings.
    pub kind: String,
    /// What it is.
    pub about: String,
    /// The program it is started by; none when it is part of Landfall or each profile names its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Where that program is; none when it is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its version, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it could not say its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How to install it.
    pub install: String,
    /// How to log in.
    pub login: String,
}

/// An agent with its model, flags and environment, as the settings name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentProfile {
    /// What the settings call it.
    pub profile: String,
    /// Which agent it is.
    pub kind: String,
    /// The model it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard the model is to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How it is driven from run to run: `fresh` or `session`.
    pub style: String,
    /// What is used up together.
    pub account: String,
    /// The profile that takes over while the account is shut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<String>,
    /// How it is confined: `strict`, `isolated`, `write` or `off`.
    pub sandbox: String,
    /// Where its program is; none when it is not installed, or is part of Landfall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it would run, for a shell to read. Words in capitals stand for what differs from run to run; keys and tokens
    /// are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Why it cannot work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What to do about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What came of a tiny prompt, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probed>,
}

/// What came of a tiny prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probed {
    /// In a word.
    pub answer: ProbeAnswer,
    /// What it said, or what is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When the account opens again, if it is used up and the agent said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// The model it used, if it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long it took.
    pub took_ms: u64,
    /// What it used.
    pub usage: Usage,
}

/// What came of a tiny prompt, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeAnswer {
    /// It answers.
    Answers,
    /// It wants a login.
    WantsLogin,
    /// Its account is used up.
    UsedUp,
    /// Its provider has a passing trouble.
    Trouble,
    /// It ended with an error.
    Failed,
    /// It said nothing in time.
    Silent,
}

impl ProbeAnswer {
    /// The words people see.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::WantsLogin => "wants a login",
            Self::UsedUp => "is used up",
            Self::Trouble => "has a passing trouble",
            Self::Failed => "failed",
            Self::Silent => "is silent",
        }
    }
}

/// What agents used.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub tokens_in: u64,
    /// Of these, read from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Answers of the model.
    pub turns: u64,
    /// Money, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Who says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_from: Option<CostFrom>,
    /// Tokens whose cost nobody told: the money above does not include them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_without_price: u64,
    /// Whether it may be more: a run ended before it had reported all that it used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// What stands before the figures: `at least ` if there may be more.
    #[must_use]
    pub fn prefix(&self) -> &'static str {
        if self.at_least { "at least " } else { "" }
    }
}

/// Who says what something cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CostFrom {
    /// The agent itself.
    Agent,
    /// The table of prices, by the tokens.
    Prices,
    /// Each for a part of it.
    Both,
}

impl CostFrom {
    /// The words people see.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Agent => "as the agent says",
            Self::Prices => "by the table of prices",
            Self::Both => "partly as the agent says, partly by the table of prices",
        }
    }
}

/// How much of a budget is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetLine {
    /// Whose: `attempt`, `task`, `run` or `day`.
    pub scope: BudgetScope,
    /// What is counted.
    pub of: BudgetOf,
    /// How much is used: dollars, tokens, turns, or milliseconds.
    pub used: f64,
    /// How much there is.
    pub max: f64,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BudgetOf {
    /// Dollars.
    Usd,
    /// Tokens, read and written.
    Tokens,
    /// Answers of the model.
    Turns,
    /// Working time of agents, in milliseconds.
    Time,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpendingLine {
    /// Where: `run` or `day`.
    pub scope: BudgetScope,
    /// On this.
    pub usage: Usage,
    /// Working time of agents.
    pub time_ms: u64,
}

/// How an account stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountLine {
    /// Which.
    pub account: String,
    /// Whether it can be worked on.
    pub state: AccountStanding,
    /// When it opens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// Whether that moment is a guess of Landfall, because no agent named it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_is_a_guess: bool,
    /// How much of its allowance is used, in per cent, as an agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u8>,
    /// When the allowance begins anew, as an agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_ms: Option<i64>,
    /// Who waits for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<crate::WireTaskId>,
}

/// Whether an account can be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AccountStanding {
    /// It can.
    Open,
    /// Not before its reset; then one agent tries it first.
    UsedUp,
    /// Its provider has a passing trouble; one agent tries it a little later.
    Troubled,
    /// Not before a person has logged in.
    LoggedOut,
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentRun {
    /// Which, counted over the task's life.
    pub iteration: u32,
    /// When it began.
    pub began_ms: i64,
    /// How long it took; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The profile that worked.
    pub profile: String,
    /// The model it used, if it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own name for its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it went on with an earlier session.
    pub resumed: bool,
    /// How it was confined: `strict`, `isolated`, `write` or `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// How full its context was at last, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u32>,
    /// What it used.
    pub usage: Usage,
    /// What we make of it, in one line.
    pub verdict: String,
}

/// What an agent used that was asked outside of any task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Consulted {
    /// What for, in a word: `proposal` or `probe`.
    pub about: String,
    /// By this profile.
    pub profile: String,
    /// Tokens read, those from a cache included.
    pub tokens_in: u64,
    /// Of these, read from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Answers of the model.
    pub turns: u64,
    /// Money in millionths of a dollar.
    pub micro_usd: u64,
    /// Of this, what the table of prices says, because the agent did not.
    pub micro_usd_priced: u64,
    /// Tokens whose cost nobody told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_unpriced: u64,
    /// Whether it may be more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// How long it took.
    pub took_ms: u64,
}
