//! What a person sees of a run as it goes on, and what it has spent so far. The engine and the thread that follows agents write
//! it; whoever asks reads it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use landfall_model::liveness::AgentActivity;
use landfall_model::pilot::PilotState;
use landfall_model::queue::Queue;
use landfall_model::sprint::Sprint;
use landfall_model::{
    AccountState, AgentUsage, ExhaustedBudget, RunBudgets, Signal, Spending, Task, TaskId, Timestamp,
    WaitReason,
};

use crate::meter::{UsageMeter, local_day};
use crate::shortage::Shortage;

/// The one owner of what is shown of a run.
#[derive(Default)]
pub struct LiveView {
    state: Mutex<LiveState>,
}

/// What a [`LiveView`] holds.
#[derive(Default)]
pub struct LiveState {
    /// What a person sees.
    pub view: LiveSnapshot,
    /// What has been spent.
    pub(crate) meter: UsageMeter,
    /// The folders of modules that show how their tasks stand: what changes there is nobody's to commit first.
    pub(crate) modules: BTreeSet<String>,
}

impl LiveView {
    /// What is shown now. Everyone who writes waits meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().expect("no thread panics while it holds the view")
    }

    /// What was spent in this run of the engine and what today, agents at work included.
    #[must_use]
    pub fn current_spending(&self, now: Timestamp) -> (Spending, Spending) {
        let meter = &self.lock().meter;
        let live = meter.live.values().fold(Spending::default(), |sum, spent| sum.plus(*spent));
        let today = meter.ledger.spent_since(local_day(now).from);
        (meter.ledger.run().plus(live), today.plus(live))
    }

    /// Whether a budget of the run or the day is used up.
    pub(crate) fn exhausted_budget(&self, purse: &RunBudgets, now: Timestamp) -> Option<ExhaustedBudget> {
        self.lock().meter.exhausted_budget(purse, now)
    }

    /// What an agent at work has used, and what it is at.
    pub(crate) fn update_agent(&self, task: TaskId, spending: Spending, live: &LiveAgent) {
        let mut state = self.lock();
        state.meter.live.insert(task, spending);
        state.view.live.insert(task, live.clone());
    }

    pub(crate) fn note_allowances(&self, task: &Task, seen: &VecDeque<Signal>) {
        let Some(driving) = &task.driving else { return };
        let last = seen.iter().rev().find_map(|signal| match signal {
            Signal::Allowance { used_percent, until } => {
                Some(AccountAllowance { used_percent: *used_percent, until: *until })
            }
            Signal::Quota { until } => Some(AccountAllowance { used_percent: 100, until: *until }),
            _ => None,
        });
        if let Some(allowance) = last {
            self.lock().view.allowances.insert(driving.account.clone(), allowance);
        }
    }
}

/// What a person sees of a run, as it goes on.
#[derive(Debug, Clone, Default)]
pub struct LiveSnapshot {
    /// What each running agent is at.
    pub live: BTreeMap<TaskId, LiveAgent>,
    /// Why no agent is started, if the disk has too little room.
    pub low_disk: Option<String>,
    /// Why no agent starts on the base, if some want to.
    pub base_hold: Option<String>,
    /// What this machine has run out of: nothing is started meanwhile.
    pub shortage: Option<Shortage>,
    /// Those at the front of the line whose turn it is not, and why.
    pub turns: BTreeMap<TaskId, WaitReason>,
    /// Whether the engine was told to stop.
    pub stopping: bool,
    /// The budget that keeps agents from starting.
    pub spent: Option<ExhaustedBudget>,
    /// How much of an account's allowance is used, as its agents said last.
    pub allowances: BTreeMap<String, AccountAllowance>,
    /// The accounts that are not open.
    pub shut: BTreeMap<String, AccountState>,
    /// The landing queue.
    pub queue: Queue,
    /// Who picks tasks, and pauses.
    pub pilot: PilotState,
    /// The sprint that is open.
    pub sprint: Option<Sprint>,
    /// Works under way that do not fit together as they stand, and in which files.
    pub clashes: BTreeMap<(TaskId, TaskId), Vec<String>>,
}

/// What is known of a running agent before it ends.
#[derive(Debug, Clone, Default)]
pub struct LiveAgent {
    /// Its last words, one line.
    pub words: String,
    /// How far it says it is.
    pub progress: Option<u8>,
    /// What it used so far in this run.
    pub usage: AgentUsage,
    /// Bytes it wrote.
    pub bytes: u64,
    /// What it is at.
    pub class: Option<AgentActivity>,
    /// The evidence for that.
    pub evidence: String,
    /// How long it has said nothing.
    pub quiet_ms: u64,
    /// The profile that works.
    pub profile: String,
    /// The model it uses, if it said.
    pub model: Option<String>,
    /// How full its context is, in per cent.
    pub context_percent: Option<u32>,
    /// How it is confined.
    pub sandbox: &'static str,
}

/// How much of an account's allowance is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountAllowance {
    /// In per cent.
    pub used_percent: u8,
    /// When it resets, if the agent said.
    pub until: Option<Timestamp>,
}
