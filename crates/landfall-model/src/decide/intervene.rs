//! What a person says to one task while it goes on: a message, a hold, a block, other limits.

use super::{DecisionDraft, NewsRefusal, not_now_refusal};
use crate::budget::{BudgetUse as _, Spending};
use crate::event::{Event, StepResult};
use crate::flow::{EdgeTarget, StepKind};
use crate::input::YieldReason;
use crate::task::{
    AttemptPhase, EndCode, EndKind, Ending, Feedback, StopRequest, TaskLimitOverrides, TaskState,
};
use crate::{StepName, WaitReason};

/// Messages that may wait for an agent. Who has more to say had better change the words of the task.
pub const MESSAGES_MAX: usize = 20;

/// Less than this is what two clocks differ by, not time that somebody gave.
const WORTHWHILE_MS: u64 = 1_000;

impl DecisionDraft {
    /// Something for the agent: with its next prompt, or at once.
    pub(super) fn message_agent(&mut self, text: &str, now: bool) -> Result<(), NewsRefusal> {
        match &self.task.state {
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => {
                return Err(not_now_refusal(&self.task, "no agent works on it any more"));
            }
            TaskState::Active { doing: AttemptPhase::Landing | AttemptPhase::Reporting, .. } => {
                return Err(not_now_refusal(
                    &self.task,
                    "no agent works on it any more, unless it comes back",
                ));
            }
            _ if self.task.landed.is_some() => {
                return Err(not_now_refusal(&self.task, "it has landed; no agent works on it any more"));
            }
            _ => {}
        }
        if self.task.messages.len() >= MESSAGES_MAX {
            return Err(not_now_refusal(&self.task, "as many messages as may be wait for its agent already"));
        }
        self.add_event(Event::Messaged { about: None, text: text.to_owned() })?;
        if !now {
            return Ok(());
        }
        match self.task.state.clone() {
            TaskState::Active { doing: AttemptPhase::Running { stop: None, .. }, .. } => {
                self.ask_to_stop(StopRequest::Redirect)
            }
            TaskState::Active { doing: AttemptPhase::Checking { stop: None }, .. } => {
                self.add_event(Event::StopAsked { stop: StopRequest::Redirect })
            }
            TaskState::Active { step, doing: AttemptPhase::Queued { .. } } if self.task.landing.is_none() => {
                self.redirect_to_agent(&step)
            }
            // Whoever is not at work begins with it; whoever is being stopped for another reason, too, one day.
            TaskState::Active { .. }
            | TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => Ok(()),
        }
    }

    /// Something the next run of its agent should know, which nobody said to it: it stands apart from a person's words.
    pub(super) fn inform_agent(&mut self, Feedback { about, text }: &Feedback) -> Result<(), NewsRefusal> {
        if self.task.is_over() || self.task.landed.is_some() {
            return Err(not_now_refusal(&self.task, "no agent works on it any more"));
        }
        self.add_event(Event::Messaged { about: Some(about.clone()), text: text.clone() })
    }

    /// The agent is to hear what a person said: it goes on with that, or gets the work back.
    pub(super) fn redirect_to_agent(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        let result = match self.flow_step(step).kind {
            StepKind::Agent { .. } => return self.continue_step(),
            StepKind::Land => StepResult::Red,
            StepKind::Review => StepResult::Changes,
            _ => StepResult::Fail,
        };
        let back = self.find_edge(step, result).map(|edge| edge.to);
        let Some(to @ EdgeTarget::Step(_)) = back else {
            // A flow without a way back: whoever comes to it next, hears it.
            return self.yield_attempt(YieldReason::Redirected, None);
        };
        let (attempt, step) = (self.task.attempt, step.clone());
        // As after a person's review: their word uses up no round of the flow.
        self.add_event(Event::Left { attempt, step, result: StepResult::Changes, to, feedback: None })
    }

    /// The work of this step is gone and has to be done again: the agent gets the task back, by an edge that leads to one, else
    /// by name. No other step may come first, and the step itself may not be repeated: both would end here again, for ever.
    pub(super) fn redo_work(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        let is_agent = |kind: &StepKind| matches!(kind, StepKind::Agent { .. });
        if is_agent(&self.flow_step(step).kind) {
            return self.continue_step();
        }
        let by_edge = [StepResult::Fail, StepResult::Red, StepResult::Changes].into_iter().find_map(
            |result| match self.find_edge(step, result)?.to {
                EdgeTarget::Step(to) => Some(to).filter(|to| is_agent(&self.flow_step(to).kind)),
                EdgeTarget::End | EdgeTarget::Stop => None,
            },
        );
        let steps = self.task.flow.as_ref().map(|flow| flow.steps.as_slice()).unwrap_or_default();
        let before = steps.iter().take_while(|earlier| earlier.name != *step);
        let nearest = before.filter(|earlier| is_agent(&earlier.kind)).last();
        let by_name = nearest.or_else(|| steps.iter().find(|other| is_agent(&other.kind)));
        let Some(worker) = by_edge.or_else(|| by_name.map(|worker| worker.name.clone())) else {
            let detail = "Landfall rebuilt its workspace after this machine or its disk stopped, and its flow has no agent that \
                          could do the lost work again; `landfall retry --fresh` begins it anew";
            return self.end_task(EndKind::Blocked, EndCode::Machine, detail.to_owned());
        };
        let (attempt, step) = (self.task.attempt, step.clone());
        let to = EdgeTarget::Step(worker);
        self.add_event(Event::Left { attempt, step, result: StepResult::Changes, to, feedback: None })
    }

    /// The same step again, first in line for the slot it leaves; nothing is counted.
    pub(super) fn continue_step(&mut self) -> Result<(), NewsRefusal> {
        self.yield_attempt(YieldReason::Redirected, None)
    }

    /// Whether a person gave it more time than the run that just ended was told of.
    pub(super) fn time_was_raised(&self) -> bool {
        self.task.own_limits.task_ms.is_some() && self.task.time_left_ms() >= WORTHWHILE_MS
    }

    /// The same for money.
    pub(super) fn money_was_raised(&self) -> bool {
        let counters = &self.task.counters;
        let spent = Spending { usage: counters.usage, time_ms: counters.agent_ms };
        self.task.own_limits.micro_usd.is_some()
            && self.task.limits.task_budget.describe_used_up(spent).is_none()
    }

    /// What is under way is finished; then it waits for the person.
    pub(super) fn hold_task(&mut self, reason: &str) -> Result<(), NewsRefusal> {
        let held = Event::Held { reason: reason.to_owned() };
        if self.task.hold.is_some() {
            return Err(not_now_refusal(&self.task, "it is held already"));
        }
        if self.task.landed.is_some() {
            return Err(not_now_refusal(&self.task, "it has landed; there is nothing to hold"));
        }
        match self.task.state.clone() {
            TaskState::Draft => Err(not_now_refusal(&self.task, "a draft does not start by itself")),
            TaskState::Ended(_) => Err(not_now_refusal(&self.task, "there is nothing to hold")),
            TaskState::Waiting { wait: WaitReason::Pause, .. } => {
                Err(not_now_refusal(&self.task, "it is paused already"))
            }
            TaskState::Active { doing: AttemptPhase::Landing | AttemptPhase::Reporting, .. } => {
                Err(not_now_refusal(&self.task, "it is too late to hold it"))
            }
            TaskState::Active { doing: AttemptPhase::Queued { .. }, .. } => {
                self.add_event(held)?;
                self.yield_attempt(YieldReason::Held, None)
            }
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { .. }
                    | AttemptPhase::Running { .. }
                    | AttemptPhase::Checking { .. }
                    | AttemptPhase::Exchanging { .. }
                    | AttemptPhase::Recovering { .. },
                ..
            }
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. } => self.add_event(held),
        }
    }

    /// It goes on where it was.
    pub(super) fn release_task(&mut self) -> Result<(), NewsRefusal> {
        let held = self.task.hold.is_some();
        let paused = matches!(self.task.state, TaskState::Waiting { wait: WaitReason::Pause, .. });
        if !held && !paused {
            return Err(not_now_refusal(&self.task, "it is not held"));
        }
        if held {
            self.add_event(Event::Released)?;
        }
        if paused {
            self.add_event(Event::Resumed { feedback: None })?;
        }
        Ok(())
    }

    /// It ends as if its agent had said that it cannot go on.
    pub(super) fn block_task(&mut self, reason: &str) -> Result<(), NewsRefusal> {
        let stop = StopRequest::Block { reason: reason.to_owned() };
        if self.task.landed.is_some() {
            return Err(not_now_refusal(&self.task, "it has landed; there is nothing to block"));
        }
        if self.task.landing.is_some() {
            return Err(not_now_refusal(&self.task, "it may have landed already; the next run finds out"));
        }
        match self.task.state.clone() {
            TaskState::Active {
                doing:
                    AttemptPhase::Running {
                        stop: None | Some(StopRequest::Interrupt | StopRequest::Pause | StopRequest::Redirect),
                        ..
                    },
                ..
            } => self.ask_to_stop(stop),
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { stop: None | Some(StopRequest::Pause), .. }
                    | AttemptPhase::Checking { stop: None | Some(StopRequest::Pause | StopRequest::Redirect) }
                    | AttemptPhase::Exchanging { stop: None | Some(StopRequest::Pause) }
                    | AttemptPhase::Recovering { stop: None | Some(StopRequest::Pause) },
                ..
            } => self.add_event(Event::StopAsked { stop }),
            TaskState::Active {
                doing:
                    AttemptPhase::Running { .. }
                    | AttemptPhase::Preparing { .. }
                    | AttemptPhase::Checking { .. }
                    | AttemptPhase::Exchanging { .. }
                    | AttemptPhase::Recovering { .. },
                ..
            } => Err(not_now_refusal(&self.task, "it is being ended already")),
            TaskState::Active { doing: AttemptPhase::Landing | AttemptPhase::Reporting, .. } => {
                Err(not_now_refusal(&self.task, "it is too late to block it"))
            }
            TaskState::Draft => Err(not_now_refusal(&self.task, "a draft does not start by itself")),
            TaskState::Ended(_) => Err(not_now_refusal(&self.task, "there is nothing to block")),
            TaskState::Active { doing: AttemptPhase::Queued { .. }, .. }
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. } => self.end_task(EndKind::Blocked, EndCode::Person, reason.to_owned()),
        }
    }

    /// Other limits, from here on.
    pub(super) fn set_limits(&mut self, limits: TaskLimitOverrides) -> Result<(), NewsRefusal> {
        if let TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) = &self.task.state {
            return Err(not_now_refusal(&self.task, "no agent works on it any more"));
        }
        self.add_event(Event::LimitsSet { limits })
    }
}
