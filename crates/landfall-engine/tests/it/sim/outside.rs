//! What an engine knows of the world in memory. It ends with the engine, and the journal brings it back.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use landfall_engine::core::CoreEnvironment;
use landfall_model::gate::GateReport;
use landfall_model::{
    BudgetDay, Commit, Digest, ExhaustedBudget, RunBudgets, SpendLog, Spending, TaskId, Timestamp, Tree,
};

pub const DAY_MS: i64 = 60 * 60 * 1000; // short days, so that a walk sees some

/// The tree, the settings it was verified by, the machine.
pub type PassKey = (Tree, Digest, Digest);

#[derive(Clone)]
pub struct Out {
    pub now: Cell<Timestamp>,
    pub purse: RunBudgets,
    pub ledger: RefCell<SpendLog>,
    pub live: RefCell<BTreeMap<TaskId, Spending>>,
    pub passes: RefCell<BTreeMap<PassKey, GateReport>>,
    pub trusted: RefCell<BTreeSet<Commit>>,
    pub theirs: RefCell<Option<Commit>>,
}

impl Out {
    pub fn new(now: Timestamp, purse: RunBudgets) -> Self {
        Self {
            now: Cell::new(now),
            purse,
            ledger: RefCell::default(),
            live: RefCell::default(),
            passes: RefCell::default(),
            trusted: RefCell::default(),
            theirs: RefCell::default(),
        }
    }

    pub fn trusts(&self, commit: &Commit) -> bool {
        self.trusted.borrow().contains(commit)
    }
}

/// What a pass is a pass of.
pub fn key(tree: &Tree, report: &GateReport) -> PassKey {
    (tree.clone(), report.config.clone(), report.environment.clone())
}

impl CoreEnvironment for Out {
    fn now(&self) -> Timestamp {
        self.now.get()
    }

    fn exhausted_budget(&self) -> Option<ExhaustedBudget> {
        if self.purse == RunBudgets::default() {
            return None;
        }
        let from = self.now.get().0.div_euclid(DAY_MS) * DAY_MS;
        let day = BudgetDay { from: Timestamp(from), to: Timestamp(from + DAY_MS) };
        let live = self.live.borrow().values().fold(Spending::default(), |sum, spent| sum.plus(*spent));
        self.purse.exhausted_budget(&self.ledger.borrow(), live, day)
    }

    fn note_live_spending(&self, task: TaskId, spending: Option<Spending>) {
        match spending {
            Some(spending) => self.live.borrow_mut().insert(task, spending),
            None => self.live.borrow_mut().remove(&task),
        };
    }

    fn note_journalled_spending(&self, at: Timestamp, spending: Spending) {
        self.ledger.borrow_mut().note(at, spending);
    }

    fn run_started(&self) {
        self.ledger.borrow_mut().run_started();
    }

    fn note_pass(&self, report: &GateReport) {
        self.passes.borrow_mut().insert(key(&report.tree, report), report.clone());
    }

    fn trust_base(&self, base: &Commit) {
        self.trusted.borrow_mut().insert(base.clone());
    }

    fn note_user_branch_tip(&self, commit: &Commit) {
        *self.theirs.borrow_mut() = Some(commit.clone());
    }
}
