//! Loops: a session of a client holds a module's task, has it worked on within limits of its own, and stops it.
//!
//! A loop is a fold of facts. What is asked is a fact of its own ([`AutoEvent`]); what becomes of it is told by the facts of
//! its task. It is over only when its task is seen to be at rest: until then whoever else wants the task is refused. Loops
//! that are over are kept.

use std::collections::BTreeSet;

use crate::event::Event;
use crate::flow::EdgeTarget;
use crate::judge::Verdict;
use crate::task::{EndCode, EndKind, StopRequest};
use crate::{LoopStep, TaskId, Timestamp, WaitReason};
pub use landfall_facts::auto::AutoEvent;

/// One loop, under way or over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLoop {
    /// Whose it is.
    pub session: String,
    /// The module's folder, below the project.
    pub module: String,
    /// Its task.
    pub task: TaskId,
    /// So many iterations there may be.
    pub iterations_max: u32,
    /// So much working time there may be.
    pub minutes_max: u32,
    /// When it began.
    pub started: Timestamp,
    /// Iterations that are completed: runs of agents, or steps of an agent that runs its own loop.
    pub iterations: u32,
    /// Time its agents and checks took. Waits, and times in which nothing drove, are no part of it.
    pub spent_ms: u64,
    /// When its task last came forward.
    pub signal: Option<Timestamp>,
    /// Agents that broke off, in a row.
    pub restarts: u32,
    /// Silences since the last progress.
    pub stalls_step: u32,
    /// Silences in all.
    pub stalls: u32,
    /// Silences in a row: an agent that ends by its own word breaks the row.
    pub stalls_in_row: u32,
    /// Since when it waits for an account's allowance.
    pub quota_since: Option<Timestamp>,
    /// Since when it is to stop.
    pub stop: Option<Timestamp>,
    /// How it ended.
    pub over: Option<LoopEnd>,
    /// Runs of agents that ended by their own word.
    runs: u32,
    /// Steps of an agent's own loop.
    strides: u32,
    /// The last of them.
    stride: Option<LoopStep>,
    /// Whether something is under way.
    at_work: bool,
    /// Whether its failure was seen by whoever holds it.
    let_go: bool,
}

/// The end of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopEnd {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: LoopEndReason,
}

/// Why a loop is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopEndReason {
    /// A person stopped it.
    Person,
    /// Its task ended.
    Task(EndKind, EndCode),
}

impl LoopEndReason {
    /// The word programs read: that of a stop file where there is one.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Person => "user_stop",
            Self::Task(EndKind::Done, _) => "complete",
            Self::Task(EndKind::Cancelled, _) => "cancelled",
            Self::Task(_, EndCode::MaxIterations) => "max_iterations",
            Self::Task(_, EndCode::TaskLimit) => "timeout",
            Self::Task(_, EndCode::StallLimit) => "stall_limit",
            Self::Task(_, EndCode::ReasoningLoop) => "reasoning_loop",
            Self::Task(EndKind::Blocked, _) => "blocked",
            Self::Task(EndKind::Failed | EndKind::Timeout, code) => code.word(),
        }
    }
}

/// How a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopState {
    /// It goes on.
    Running,
    /// It ends as soon as what is under way is finished.
    Stopping,
    /// It is over.
    Stopped,
    /// Its agent broke off too often, or something else failed. It keeps its task until somebody has seen that.
    Failed,
}

impl LoopState {
    /// The word programs read.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl AgentLoop {
    /// How it stands.
    #[must_use]
    pub fn loop_state(&self) -> LoopState {
        match (&self.over, self.stop) {
            // It did all the iterations it was given.
            (Some(LoopEnd { why: LoopEndReason::Task(_, EndCode::MaxIterations), .. }), _) => {
                LoopState::Stopped
            }
            (Some(LoopEnd { why: LoopEndReason::Task(EndKind::Failed, _), .. }), _) => LoopState::Failed,
            (Some(_), _) => LoopState::Stopped,
            (None, Some(_)) => LoopState::Stopping,
            (None, None) => LoopState::Running,
        }
    }

    /// Whether nobody else may have its session, or its task.
    #[must_use]
    pub fn holds_session(&self) -> bool {
        match self.loop_state() {
            LoopState::Running | LoopState::Stopping => true,
            LoopState::Failed => !self.let_go,
            LoopState::Stopped => false,
        }
    }

    fn note_event(&mut self, at: Timestamp, event: &Event) {
        self.apply_event(at, event);
        self.iterations = self.runs.max(self.strides);
    }

    fn apply_event(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::Entered { .. } => {
                self.at_work = true;
                self.quota_since = None;
            }
            Event::IterationEnded { verdict, took_ms, .. } => {
                self.spent_ms += took_ms;
                self.count_verdict(at, verdict);
            }
            Event::Strode { stride, .. } => {
                let steps = stride.steps_since(self.stride.as_ref());
                self.strides = self.strides.saturating_add(steps);
                self.stride = Some(stride.clone());
                (self.stalls_step, self.stalls_in_row) = (0, 0);
                self.signal = Some(at);
            }
            Event::Verified { report, .. } => self.spent_ms += report.took_ms,
            Event::Left { to, .. } => {
                (self.stalls_step, self.stalls_in_row) = (0, 0);
                self.signal = Some(at);
                match to {
                    EdgeTarget::Step(_) => self.note_idle(at),
                    EdgeTarget::End => self.record_end(at, EndKind::Done, EndCode::Accepted),
                    EdgeTarget::Stop => self.record_end(at, EndKind::Blocked, EndCode::FlowStop),
                }
            }
            Event::Waited { wait, .. } => {
                self.quota_since = matches!(wait, WaitReason::Quota { .. }).then_some(at);
                self.note_idle(at);
            }
            Event::Resumed { .. } => self.quota_since = None,
            Event::Yielded { .. } | Event::ReviewWanted { .. } => self.note_idle(at),
            // Whoever holds or pauses its task stops its loop.
            Event::StopAsked { stop: StopRequest::Pause } => {
                let _ = self.stop.get_or_insert(at); // since then
            }
            Event::Held { .. } => {
                self.stop.get_or_insert(at);
                if !self.at_work {
                    self.note_idle(at);
                }
            }
            Event::Released if self.over.is_none() => self.stop = None,
            Event::Ended(ending) => self.record_end(at, ending.kind, ending.code),
            _ => {}
        }
    }

    fn count_verdict(&mut self, at: Timestamp, verdict: &Verdict) {
        match verdict {
            Verdict::Complete
            | Verdict::Blocked { .. }
            | Verdict::Pending { .. }
            | Verdict::Checkpoint { .. }
            | Verdict::Continue => {
                self.runs += 1;
                (self.restarts, self.stalls_in_row) = (0, 0);
                self.signal = Some(at);
            }
            Verdict::OutOfTime => self.runs += 1,
            Verdict::Crashed { .. } | Verdict::Lost | Verdict::NotStarted { .. } => self.restarts += 1,
            Verdict::Stalled => {
                self.stalls_step += 1;
                self.stalls += 1;
                self.stalls_in_row += 1;
            }
            _ => {}
        }
    }

    fn record_end(&mut self, at: Timestamp, kind: EndKind, code: EndCode) {
        self.at_work = false;
        self.over.get_or_insert(LoopEnd { at, why: LoopEndReason::Task(kind, code) });
    }

    /// Nothing is under way: a loop that is to stop has stopped.
    fn note_idle(&mut self, at: Timestamp) {
        self.at_work = false;
        if self.stop.is_some() {
            self.over.get_or_insert(LoopEnd { at, why: LoopEndReason::Person });
        }
    }
}

/// Every loop there was, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentLoops {
    all: Vec<AgentLoop>,
    /// Tasks of which something is under way.
    at_work: BTreeSet<TaskId>,
}

impl AgentLoops {
    /// All of them, oldest first.
    #[must_use]
    pub fn all_loops(&self) -> &[AgentLoop] {
        &self.all
    }

    /// The latest of a session.
    #[must_use]
    pub fn find_by_session(&self, session: &str) -> Option<&AgentLoop> {
        self.all.iter().rev().find(|it| it.session == session)
    }

    /// Who holds a module.
    #[must_use]
    pub fn find_holder(&self, module: &str) -> Option<&AgentLoop> {
        self.all.iter().rev().find(|it| it.module == module && it.holds_session())
    }

    /// Takes in what was asked.
    pub fn apply(&mut self, at: Timestamp, event: &AutoEvent) {
        match event {
            AutoEvent::Started { session, module, task, iterations_max, minutes_max } => {
                self.all.push(AgentLoop {
                    session: session.clone(),
                    module: module.clone(),
                    task: *task,
                    iterations_max: *iterations_max,
                    minutes_max: *minutes_max,
                    started: at,
                    iterations: 0,
                    spent_ms: 0,
                    signal: None,
                    restarts: 0,
                    stalls_step: 0,
                    stalls: 0,
                    stalls_in_row: 0,
                    quota_since: None,
                    stop: None,
                    over: None,
                    runs: 0,
                    strides: 0,
                    stride: None,
                    at_work: self.at_work.contains(task),
                    let_go: false,
                });
            }
            AutoEvent::StopAsked { session } => {
                let Some(it) = self.all.iter_mut().rev().find(|it| it.session == *session) else { return };
                it.let_go = true;
                if it.over.is_none() {
                    it.stop.get_or_insert(at);
                    if !it.at_work {
                        it.note_idle(at);
                    }
                }
            }
        }
    }

    /// Takes in what happened to a task.
    pub fn note(&mut self, at: Timestamp, task: TaskId, event: &Event) {
        match event {
            Event::Entered { .. } => {
                self.at_work.insert(task); // it was at rest before
            }
            Event::Left { .. }
            | Event::Yielded { .. }
            | Event::Waited { .. }
            | Event::ReviewWanted { .. }
            | Event::Ended(_) => {
                self.at_work.remove(&task); // an end may come at rest
            }
            _ => {}
        }
        if let Some(it) = self.all.iter_mut().rev().find(|it| it.task == task && it.over.is_none()) {
            it.note_event(at, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::YieldReason;
    use crate::task::Ending;
    use crate::{Attempt, AttemptStart, RunId, StepName};

    const TASK: TaskId = TaskId(7);

    fn started(session: &str) -> AutoEvent {
        AutoEvent::Started {
            session: session.to_owned(),
            module: "AiTasks/auth".to_owned(),
            task: TASK,
            iterations_max: 20,
            minutes_max: 30,
        }
    }

    fn entered() -> Event {
        Event::Entered {
            attempt: Attempt(1),
            step: StepName::new("plan"),
            run: RunId(1),
            opening: AttemptStart::Workspace,
        }
    }

    fn yielded() -> Event {
        Event::Yielded { attempt: Attempt(1), why: YieldReason::Held, feedback: None }
    }

    fn stop(session: &str) -> AutoEvent {
        AutoEvent::StopAsked { session: session.to_owned() }
    }

    #[test]
    fn edge_3_a_loop_is_stopping_and_holds_its_task_until_its_work_is_seen_to_end() {
        let mut loops = AgentLoops::default();
        loops.apply(Timestamp(1), &started("main"));
        loops.note(Timestamp(2), TASK, &entered());
        loops.apply(Timestamp(3), &stop("main"));
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Stopping);
        assert_eq!(loops.find_holder("AiTasks/auth").map(|it| it.session.as_str()), Some("main"));
        loops.note(Timestamp(4), TASK, &yielded());
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Stopped);
        assert_eq!(loops.all_loops()[0].over, Some(LoopEnd { at: Timestamp(4), why: LoopEndReason::Person }));
        assert_eq!(loops.find_holder("AiTasks/auth"), None);
    }

    #[test]
    fn edge_12_loops_that_are_over_are_kept() {
        let mut loops = AgentLoops::default();
        for at in [10, 20, 30] {
            loops.apply(Timestamp(at), &started("main"));
            loops.apply(Timestamp(at + 1), &stop("main"));
        }
        let started: Vec<i64> = loops.all_loops().iter().map(|it| it.started.0).collect();
        assert_eq!(started, [10, 20, 30]);
        assert!(loops.all_loops().iter().all(|it| it.loop_state() == LoopState::Stopped));
        // What happens to the task afterwards is none of their business.
        let before = loops.all_loops().to_vec();
        loops.note(Timestamp(40), TASK, &entered());
        assert_eq!(loops.all_loops(), before);
    }

    #[test]
    fn c42_a_loop_that_failed_keeps_its_task_until_somebody_has_seen_it() {
        let mut loops = AgentLoops::default();
        loops.apply(Timestamp(1), &started("main"));
        loops.note(Timestamp(2), TASK, &entered());
        let (kind, code) = (EndKind::Failed, EndCode::AgentCrashed);
        loops.note(Timestamp(3), TASK, &Event::Ended(Ending { kind, code, detail: String::new() }));
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Failed);
        assert!(loops.all_loops()[0].holds_session());
        loops.apply(Timestamp(4), &stop("main"));
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Failed, "what happened stays so");
        assert!(!loops.all_loops()[0].holds_session());
    }

    #[test]
    fn a_hold_by_other_means_stops_the_loop_too() {
        let mut loops = AgentLoops::default();
        loops.note(Timestamp(1), TASK, &entered());
        loops.apply(Timestamp(1), &started("main"));
        loops.note(Timestamp(2), TASK, &Event::Held { reason: String::new() });
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Stopping);
        loops.note(Timestamp(3), TASK, &Event::Released);
        assert_eq!(loops.all_loops()[0].loop_state(), LoopState::Running, "it was let go on in time");
    }
}
