//! Proposals that the server was asked for: each in a thread of its own, kept while the server runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landfall_api::{
    NewTasks, Problem, ProblemCode, ProposalList, ProposalOutcome, ProposeStart, Proposing, Service,
    TypedService as _,
};

use crate::command::propose::{self, ProposeOptions};
use crate::project::clock;
use crate::project::place::ProjectLocation;

const AT_ONCE_MAX: usize = 2; // each is an agent at work
const KEPT_MAX: usize = 20;
const TOLD_MAX: usize = 100;
const GOAL_BYTES_MAX: usize = 64 * 1024; // what a prompt holds of a text that others wrote
const TASKS_MAX: u32 = 50;

/// The proposals of one server.
#[derive(Default, Clone)]
pub(crate) struct Proposals {
    all: Arc<Mutex<Vec<Proposing>>>,
    /// Notified when one of them changes.
    changed: Arc<Condvar>,
    stopped: Arc<AtomicBool>,
}

impl Proposals {
    /// Asks an agent. What comes of it is added as drafts by `desk`.
    pub fn start(
        &self,
        place: &ProjectLocation,
        desk: Arc<dyn Service + Send + Sync>,
        asked: ProposeStart,
    ) -> Result<Proposing, Problem> {
        let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
        if asked.goal.trim().is_empty() {
            return Err(
                bad("the goal is empty".to_owned()).with_hint("say in a sentence or two what is wanted")
            );
        }
        if asked.goal.len() > GOAL_BYTES_MAX {
            let what = format!("the goal has {} bytes; an agent is shown {GOAL_BYTES_MAX}", asked.goal.len());
            return Err(bad(what).with_hint("propose for one part of it at a time"));
        }
        let tasks_max = asked.tasks_max.unwrap_or(20);
        if !(1..=TASKS_MAX).contains(&tasks_max) {
            return Err(bad(format!("a proposal has 1 to {TASKS_MAX} tasks, not {tasks_max}")));
        }
        let agent = asked.agent.unwrap_or_else(|| "default".to_owned());
        let mut all = self.lock();
        let busy = all.iter().filter(|it| it.proposal.is_none() && it.problem.is_none()).count();
        if busy >= AT_ONCE_MAX {
            return Err(Problem::new(
                ProblemCode::NotNow,
                format!("{busy} proposals are on their way already"),
            )
            .with_hint("wait until one of them has come"));
        }
        let number = all.last().map_or(1, |it| it.place + 1);
        let new = Proposing {
            place: number,
            goal: asked.goal,
            agent,
            since_ms: clock::now_ms(),
            told: Vec::new(),
            proposal: None,
            problem: None,
        };
        all.push(new.clone());
        if all.len() > KEPT_MAX {
            all.remove(0);
        }
        drop(all);
        let (it, place, asked) = (self.clone(), place.clone(), new.clone());
        let thread = std::thread::Builder::new().name("proposal".to_owned());
        let run = move || it.work_on_proposal(&place, desk.as_ref(), &asked, tasks_max as usize);
        thread.spawn(run).map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
        Ok(new)
    }

    /// Stops those on their way: an agent that nobody waits for does not go on spending.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Waits until none is on its way, at most for `span`.
    pub fn wait_until_idle(&self, span: Duration) {
        let is_busy =
            |all: &mut Vec<Proposing>| all.iter().any(|it| it.proposal.is_none() && it.problem.is_none());
        let _ = self.changed.wait_timeout_while(self.lock(), span, is_busy); // the server ends either way
    }

    /// All of them, newest first.
    pub fn list_newest_first(&self) -> ProposalList {
        ProposalList { proposals: self.lock().iter().rev().cloned().collect() }
    }

    fn work_on_proposal(
        &self,
        place: &ProjectLocation,
        desk: &(dyn Service + Send + Sync),
        asked: &Proposing,
        tasks_max: usize,
    ) {
        let mut tell = |line: &str| {
            self.change_proposal(asked.place, |it| {
                it.told.push(line.to_owned());
                if it.told.len() > TOLD_MAX {
                    it.told.remove(0);
                }
            })
        };
        let question = ProposeOptions {
            goal: &asked.goal,
            source: "web",
            agent: &asked.agent,
            tasks_max,
            is_stopped: &|| self.stopped.load(Ordering::SeqCst),
        };
        let proposed = propose::propose_tasks(place, &question, &mut tell).and_then(|mut proposal| {
            for task in &mut proposal.tasks {
                task.draft = true;
            }
            proposal.added = desk.add(NewTasks { tasks: proposal.tasks.clone() })?.tasks;
            proposal.outcome = ProposalOutcome::Drafts;
            Ok(proposal)
        });
        self.change_proposal(asked.place, |it| match proposed {
            Ok(proposal) => it.proposal = Some(Box::new(proposal)),
            Err(problem) => it.problem = Some(problem),
        });
    }

    fn change_proposal(&self, place: u32, change: impl FnOnce(&mut Proposing)) {
        if let Some(it) = self.lock().iter_mut().find(|it| it.place == place) {
            change(it);
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Proposing>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
