//! What verifications of this engine came to, so that the same tree is not verified twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use landfall_model::gaming::{BaseTestRun, MutationRun};
use landfall_model::gate::GateReport;
use landfall_model::{Commit, Digest, Tree};

/// Passes, and what was found out about tests.
#[derive(Default)]
pub(crate) struct PassCache {
    known: Mutex<PassCacheContent>,
}

/// What a [`PassCache`] holds.
#[derive(Default)]
pub(crate) struct PassCacheContent {
    /// Trees that passed, with what was seen.
    pub passes: PassedTrees,
    /// What was found out about the tests of works.
    pub tests: TestRuns,
}

impl PassCache {
    /// What is known now.
    pub fn lock(&self) -> MutexGuard<'_, PassCacheContent> {
        self.known.lock().expect("no thread panics while it holds it")
    }
}

/// Trees that passed: tree, verify section, machine.
type PassKey = (Tree, Digest, Digest);

/// What was seen of trees that passed, the latest of them.
#[derive(Debug, Default)]
pub(crate) struct PassedTrees {
    known: HashMap<PassKey, GateReport>,
    order: VecDeque<PassKey>,
}

const PASSES_MAX: usize = 1_000; // a base older than a thousand landings is verified again

impl PassedTrees {
    /// Takes a pass in.
    pub fn add_pass(&mut self, report: &GateReport) {
        let key = (report.tree.clone(), report.config.clone(), report.environment.clone());
        if self.known.insert(key.clone(), report.clone()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > PASSES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What was seen, if it passed.
    pub fn get(&self, key: &PassKey) -> Option<&GateReport> {
        self.known.get(key)
    }
}

/// What was found out about the tests of works, by the head of the work and what was run. A base that moves changes nothing.
#[derive(Default)]
pub(crate) struct TestRuns {
    pub base_tests: RunsByWork<BaseTestRun>,
    pub mutations: RunsByWork<MutationRun>,
}

pub(crate) type RunsByWork<R> = HashMap<(Commit, Digest), R>;
