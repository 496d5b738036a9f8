//! What only the engine of a repository and base branch has, beside the context of the machine that it runs on.

use std::ops::Deref;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use landfall_model::gate::GateReport;
use landfall_model::{Commit, Event, ExhaustedBudget, Spending, TaskId, Timestamp};
use landfall_trackers::tracker::{Tracker, TrackerResult};

use crate::base_tracker::{BaseTracker, LandingLock};
use crate::core::CoreEnvironment;
use crate::host_context::HostContext;
use crate::live_view::LiveView;
use crate::pass_cache::PassCache;

/// The context of orders that only the engine performs: landing, publishing, talking with a tracker.
pub struct EngineContext {
    /// The machine that it runs on.
    pub host: Arc<HostContext>,
    /// What a person sees of a run.
    pub live: Arc<LiveView>,
    /// What verifications came to.
    pub(crate) passes: PassCache,
    /// Where the base may be.
    pub(crate) base: BaseTracker,
    /// Held by a landing.
    pub(crate) landing: LandingLock,
    /// The tracker of the project, once it was needed.
    pub(crate) tracker: OnceLock<TrackerResult<Arc<dyn Tracker>>>,
    /// Workspaces that are being given up.
    pub(crate) tidying: AtomicUsize,
}

/// An engine can do everything on its own machine that any host can: whoever has it has a [`HostContext`].
impl Deref for EngineContext {
    type Target = HostContext;

    fn deref(&self) -> &HostContext {
        &self.host
    }
}

impl AsRef<HostContext> for EngineContext {
    fn as_ref(&self) -> &HostContext {
        &self.host
    }
}

impl EngineContext {
    /// The engine of this machine. Nothing is known yet.
    pub(crate) fn new(host: HostContext) -> Self {
        Self {
            host: Arc::new(host),
            live: Arc::default(),
            passes: PassCache::default(),
            base: BaseTracker::default(),
            landing: LandingLock::default(),
            tracker: OnceLock::new(),
            tidying: AtomicUsize::new(0),
        }
    }

    /// What was spent in this run of the engine and what today, agents at work included.
    #[must_use]
    pub fn current_spending(&self) -> (Spending, Spending) {
        self.live.current_spending(self.now())
    }

    /// A pass that is known of the same tree by the same rules in the same environment.
    #[must_use]
    pub fn known_pass(&self, wanted: &GateReport) -> Option<GateReport> {
        let key = (wanted.tree.clone(), wanted.config.clone(), wanted.environment.clone());
        self.passes.lock().passes.get(&key).map(|known| GateReport {
            commands: known.commands.clone(),
            reused: true,
            ..wanted.clone()
        })
    }
}

impl CoreEnvironment for EngineContext {
    fn now(&self) -> Timestamp {
        HostContext::now(self)
    }

    fn exhausted_budget(&self) -> Option<ExhaustedBudget> {
        self.live.exhausted_budget(&self.settings.purse, HostContext::now(self))
    }

    fn note_live_spending(&self, task: TaskId, spending: Option<Spending>) {
        let live = &mut self.live.lock().meter.live;
        match spending {
            Some(spending) => live.insert(task, spending),
            None => live.remove(&task),
        };
    }

    fn note_journalled_spending(&self, at: Timestamp, spending: Spending) {
        self.live.lock().meter.ledger.note(at, spending);
    }

    fn run_started(&self) {
        self.live.lock().meter.ledger.run_started();
    }

    fn note_pass(&self, report: &GateReport) {
        self.passes.lock().passes.add_pass(report);
    }

    fn trust_base(&self, base: &Commit) {
        self.base.trust_base(base);
    }

    fn note_task_event(&self, at: Timestamp, task: TaskId, event: &Event) {
        self.prompts.note_event(at, task, event);
        if let Event::Landed { commit, .. } = event {
            self.base.note_landed(task, commit);
        }
    }

    fn withdraw_discovery(&self, number: u32) {
        self.prompts.withdraw_discovery(number);
    }

    fn note_consultation(&self, at: Timestamp, spending: Spending) {
        self.live.lock().meter.ledger.note_aside(at, spending);
    }

    fn note_user_branch_tip(&self, commit: &Commit) {
        self.base.note_user_branch_tip(commit);
    }
}
