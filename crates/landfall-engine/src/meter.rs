//! What has been spent, as the engine and the followers of agents see it: the ledger of what is journalled, and what
//! agents at work have used so far.

use std::collections::BTreeMap;

use jiff::{Timestamp as Moment, ToSpan as _, tz::TimeZone};
use landfall_model::{BudgetDay, ExhaustedBudget, RunBudgets, SpendLog, Spending, TaskId, Timestamp};

/// The ledger and the agents at work. The engine notes what has ended and takes it out of the live part in one go, so
/// that nothing is counted twice or not at all.
#[derive(Debug, Default)]
pub(crate) struct UsageMeter {
    /// What is journalled.
    pub ledger: SpendLog,
    /// What agents at work have used.
    pub live: BTreeMap<TaskId, Spending>,
}

impl UsageMeter {
    /// Whether a budget of the run or the day is used up.
    pub fn exhausted_budget(&self, purse: &RunBudgets, now: Timestamp) -> Option<ExhaustedBudget> {
        if *purse == RunBudgets::default() {
            return None;
        }
        let live = self.live.values().fold(Spending::default(), |sum, spent| sum.plus(*spent));
        purse.exhausted_budget(&self.ledger, live, local_day(now))
    }
}

/// The day around this moment, by the clock on the person's wall.
#[must_use]
pub fn local_day(now: Timestamp) -> BudgetDay {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let in_utc = || {
        let from = now.0.div_euclid(DAY_MS) * DAY_MS;
        BudgetDay { from: Timestamp(from), to: Timestamp(from + DAY_MS) }
    };
    let Ok(moment) = Moment::from_millisecond(now.0) else { return in_utc() };
    let local = moment.to_zoned(TimeZone::system());
    let bounds = || -> Result<BudgetDay, jiff::Error> {
        let from = local.start_of_day()?;
        let to = from.checked_add(1.day())?.start_of_day()?;
        let ms = |at: &jiff::Zoned| Timestamp(at.timestamp().as_millisecond());
        Ok(BudgetDay { from: ms(&from), to: ms(&to) })
    };
    bounds().unwrap_or_else(|_| in_utc())
}
