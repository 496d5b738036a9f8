//! What may be spent, what has been, and when that is enough.

use std::collections::BTreeMap;

use crate::driving::{AgentRunTraces, ContextUsage};
use crate::signal::{AgentUsage, Signal};
use crate::{Digest, Timestamp};
pub use landfall_facts::budget::{Budget, BudgetScope};

/// What has been spent, with the time it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// Tokens, turns, money.
    pub usage: AgentUsage,
    /// Working time of agents.
    pub time_ms: u64,
}

impl Spending {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { usage: self.usage.plus(other.usage), time_ms: self.time_ms.saturating_add(other.time_ms) }
    }
}

/// Compares budgets with what is spent.
pub trait BudgetUse {
    /// What of it is used up, in words: `$40.12 of $40.00`.
    #[must_use]
    fn describe_used_up(&self, spent: Spending) -> Option<String>;
}

impl BudgetUse for Budget {
    fn describe_used_up(&self, spent: Spending) -> Option<String> {
        let Spending { usage, time_ms } = spent;
        let over = |limit: Option<u64>, spent: u64| limit.filter(|limit| spent >= *limit);
        if let Some(limit) = over(self.micro_usd, usage.micro_usd) {
            return Some(format!("{} of {}", format_micro_usd(usage.micro_usd), format_micro_usd(limit)));
        }
        if let Some(limit) = over(self.tokens, usage.total_tokens()) {
            return Some(format!("{} of {limit} tokens", usage.total_tokens()));
        }
        if let Some(limit) = over(self.turns, usage.turns) {
            return Some(format!("{} of {limit} turns", usage.turns));
        }
        let limit = over(self.time_ms, time_ms)?;
        let spell = crate::decide::spell_ms;
        Some(format!("{} of {} of working time", spell(time_ms), spell(limit)))
    }
}

/// Money for people.
#[must_use]
pub fn format_micro_usd(micro: u64) -> String {
    let cents = micro.saturating_add(5_000) / 10_000;
    match (micro, cents) {
        (0, _) => "$0.00".to_owned(),
        (micro, 0) => format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000),
        (_, cents) => format!("${}.{:02}", cents / 100, cents % 100),
    }
}

/// A budget that is used up: no agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExhaustedBudget {
    /// Whose.
    pub scope: BudgetScope,
    /// How much of how much.
    pub what: String,
    /// When there is more, if time brings it.
    pub until: Option<Timestamp>,
}

/// What has been spent in all, by the time it was: a fold of the ends of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendLog {
    /// By quarters of an hour: every midnight on Earth is at the beginning of one.
    quarters: BTreeMap<i64, Spending>,
    run: Spending,
}

const QUARTER_MS: i64 = 15 * 60 * 1000;
const QUARTERS_MAX: usize = 4 * 24 * 8; // a week and a day: nobody asks about more

impl SpendLog {
    /// Takes in what a run of an agent has spent.
    pub fn note(&mut self, at: Timestamp, spent: Spending) {
        let quarter = self.quarters.entry(at.0.div_euclid(QUARTER_MS)).or_default();
        *quarter = quarter.plus(spent);
        self.run = self.run.plus(spent);
        while self.quarters.len() > QUARTERS_MAX {
            self.quarters.pop_first();
        }
    }

    /// Takes in what an agent has spent outside of any run: it is of that day, and of no run.
    pub fn note_aside(&mut self, at: Timestamp, spent: Spending) {
        let run = self.run;
        self.note(at, spent);
        self.run = run;
    }

    /// Another run of the engine begins.
    pub fn run_started(&mut self) {
        self.run = Spending::default();
    }

    /// Spent since then.
    #[must_use]
    pub fn spent_since(&self, from: Timestamp) -> Spending {
        let quarters = self.quarters.range(from.0.div_euclid(QUARTER_MS)..);
        quarters.fold(Spending::default(), |sum, (_, spent)| sum.plus(*spent))
    }

    /// Spent in this run of the engine.
    #[must_use]
    pub fn run(&self) -> Spending {
        self.run
    }
}

/// The day, as the person's clock has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetDay {
    /// The last midnight.
    pub from: Timestamp,
    /// The next.
    pub to: Timestamp,
}

/// Bounds of a run and a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunBudgets {
    /// Of one drive of the engine.
    pub run: Budget,
    /// Of one day.
    pub day: Budget,
}

impl RunBudgets {
    /// Whether there is nothing left to start agents with. `live` is what agents at work have spent so far.
    #[must_use]
    pub fn exhausted_budget(
        &self,
        ledger: &SpendLog,
        live: Spending,
        day: BudgetDay,
    ) -> Option<ExhaustedBudget> {
        if let Some(what) = self.day.describe_used_up(ledger.spent_since(day.from).plus(live)) {
            return Some(ExhaustedBudget { scope: BudgetScope::Day, what, until: Some(day.to) });
        }
        let what = self.run.describe_used_up(ledger.run().plus(live))?;
        Some(ExhaustedBudget { scope: BudgetScope::Run, what, until: None })
    }
}

/// What a million tokens cost, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Read.
    pub input: u64,
    /// Read from a cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
}

/// Prices by the beginning of a model's name; the longest that fits counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The price of a model.
    #[must_use]
    pub fn for_model(&self, model: &str) -> Option<Price> {
        // A name that begins with a shorter one stands after it in order.
        let fits = |(name, _): &(&String, &Price)| model.starts_with(name.as_str());
        self.0.range(..=model.to_owned()).rev().find(fits).map(|(_, price)| *price)
    }
}

impl Price {
    fn cost_micro_usd(self, usage: AgentUsage) -> u64 {
        let fresh = usage.tokens_in.saturating_sub(usage.tokens_cached);
        let parts =
            [(fresh, self.input), (usage.tokens_cached, self.cached), (usage.tokens_out, self.output)];
        let sum = parts.iter().fold(0u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
        });
        u64::try_from(sum / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// Counts what one run of an agent says, as it says it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageCounter {
    counted: AgentUsage,
    reported: Option<u64>,
    model: Option<String>,
    session: Option<String>,
    context: Option<ContextUsage>,
    compactions: u32,
    denials: u32,
    tools_open: u32,
    words: String,
}

const WORDS_MAX: usize = 4_000; // enough to tell two endings apart

impl UsageCounter {
    /// Takes one signal in.
    pub fn hear(&mut self, signal: &Signal) {
        match signal {
            Signal::Started { session, model } => {
                self.session = session.clone().or(self.session.take());
                self.model = model.clone().or(self.model.take());
            }
            Signal::Usage(usage) => self.counted = self.counted.plus(*usage),
            Signal::Cost(micro_usd) => self.reported = Some(*micro_usd),
            Signal::Context { used, size } => self.context = Some(ContextUsage { used: *used, size: *size }),
            Signal::Compacted => self.compactions += 1,
            Signal::PermissionAsked { .. } => self.denials = self.denials.saturating_add(1),
            Signal::ToolUse { .. } => self.tools_open += 1,
            Signal::ToolDone => self.tools_open = self.tools_open.saturating_sub(1),
            Signal::Text(text) | Signal::Finished { text, .. } if !text.trim().is_empty() => {
                let end = match text.len() <= WORDS_MAX {
                    true => text.len(), // no more characters than bytes
                    false => text.char_indices().nth(WORDS_MAX).map_or(text.len(), |(end, _)| end),
                };
                self.words.clear();
                self.words.push_str(&text[..end]);
            }
            Signal::Text(_)
            | Signal::Finished { .. }
            | Signal::Said(_)
            | Signal::Allowance { .. }
            | Signal::Quota { .. }
            | Signal::Transient { .. }
            | Signal::Unauthorized { .. }
            | Signal::SessionGone
            | Signal::Question(_)
            | Signal::Stride(_)
            | Signal::Waiting { .. }
            | Signal::Malformed { .. } => {}
        }
    }

    /// What it has used. The agent's own word about money is believed; without one, the table says.
    #[must_use]
    pub fn total_usage(&self, prices: &Prices) -> AgentUsage {
        let mut usage = self.counted;
        match (self.reported, self.model.as_deref().and_then(|model| prices.for_model(model))) {
            (Some(micro_usd), _) => usage.micro_usd = micro_usd,
            (None, Some(price)) if usage.micro_usd == 0 => {
                usage.micro_usd = price.cost_micro_usd(usage);
                usage.micro_usd_priced = usage.micro_usd;
            }
            (None, Some(_)) => {}
            (None, None) if usage.micro_usd == 0 => usage.tokens_unpriced = usage.total_tokens(),
            (None, None) => {}
        }
        usage
    }

    /// Tools it has begun to use and not ended.
    #[must_use]
    pub fn tools_open(&self) -> u32 {
        self.tools_open
    }

    /// How often it dropped its context.
    #[must_use]
    pub fn compactions(&self) -> u32 {
        self.compactions
    }

    /// How full its context is.
    #[must_use]
    pub fn context(&self) -> Option<ContextUsage> {
        self.context
    }

    /// The model it uses.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Its last words.
    #[must_use]
    pub fn last_words(&self) -> &str {
        &self.words
    }

    /// What is kept of it. `digest` makes a name of its last words.
    #[must_use]
    pub fn to_traces(&self, digest: &dyn Fn(&str) -> Digest) -> AgentRunTraces {
        let words = self.words.trim();
        AgentRunTraces {
            revision: None,
            session: self.session.clone(),
            model: self.model.clone(),
            context: self.context,
            words: (!words.is_empty()).then(|| digest(words)),
            sandbox: None,
            denials: self.denials,
            quiet_ms: 0,
        }
    }
}
