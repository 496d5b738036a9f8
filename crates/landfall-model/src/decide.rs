//! Policy: which facts follow from the news, and what to do about them.
//!
//! One function per piece of news. Each returns the facts in order and the orders that follow; nothing here reads
//! a clock or touches the world. A refusal is an answer: nothing changes and the asker is told why.

mod intervene;
mod issue;
mod recovery;
mod staged;

pub use intervene::MESSAGES_MAX;
pub use staged::{REFINEMENTS_MAX, possible_commands};

use thiserror::Error;

use crate::apply::{IllegalEvent, apply_in_place};
use crate::budget::{BudgetScope, BudgetUse as _, ExhaustedBudget, Spending};
use crate::conflict::{self, ConflictTimeoutAction, ConflictingFile};
use crate::driving::{AgentAssignment, PastRun, SessionStart};
use crate::effect::Effect;
use crate::event::{AttemptStart, Event, StepResult, Warning};
use crate::flow::{EdgeTarget, Flow, FlowStep, StepKind};
use crate::gaming::TestEvidence;
use crate::gate::{CheckOutcome, GateReport};
use crate::input::{EndedRun, FlowChange, IntakeState, News, ReviewInput, TaskInput, YieldReason};
use crate::issue::IssueEvent;
use crate::judge::{Verdict, judge};
use crate::liveness::ECHOES_MAX;
use crate::proof;
use crate::recover::{check_effect, exchange_effect, may_land};
use crate::recovery::{RecoveryOutcome as Came, is_climbed};
use crate::resource::MachineResource;
use crate::review::{self, Finding, RedoChoice, ReviewMode};
use crate::score::GatePoint;
use crate::seeded_bugs::{self, SeededBug};
use crate::signal::{ControlSignal, Signal};
use crate::sprint::ReviewDecision;
use crate::staged::PLAN;
use crate::task::{
    AttemptPhase, ChangeConcern, ConcernCode, EndCode, EndKind, Ending, Feedback, SignOff, StopRequest, Task,
    TaskLimits, TaskState,
};
use crate::{Attempt, Commit, RunId, StepName, TaskId, Timestamp, WaitReason};

/// What follows from a piece of news.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The facts, in order. They are journalled together.
    pub events: Vec<Event>,
    /// The orders, performed after that.
    pub effects: Vec<Effect>,
}

/// Why news changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NewsRefusal {
    /// It is about an attempt that is over.
    #[error("{task}: news of {got}, but {current} is the latest attempt")]
    Stale {
        /// Of this task.
        task: TaskId,
        /// The news was about this attempt.
        got: Attempt,
        /// This one is the latest.
        current: Attempt,
    },
    /// It cannot happen where the task is.
    #[error("{task} is {state}: {what}")]
    NotNow {
        /// Of this task.
        task: TaskId,
        /// Where it is.
        state: String,
        /// What cannot happen.
        what: &'static str,
    },
    /// The flow does not allow it in this phase.
    #[error("{task}: `{command}` cannot be done in the phase `{phase}`{}", known_commands(.allowed))]
    NotAllowed {
        /// Of this task.
        task: TaskId,
        /// What was asked for.
        command: String,
        /// Where it is.
        phase: String,
        /// What can be done there.
        allowed: Vec<String>,
    },
    /// The engine decided on a fact that cannot follow: a bug, and the task is left as it is.
    #[error(transparent)]
    Bug(#[from] IllegalEvent),
}

fn known_commands(allowed: &[String]) -> String {
    match allowed {
        [] => "; nothing can be done by hand there".to_owned(),
        some => format!("; there you can do: {}", some.join(", ")),
    }
}

/// Both: what follows from the news, and the task as it is afterwards.
///
/// # Errors
/// When the news is refused; nothing changes then.
pub fn decide_and_apply(task: &Task, input: &TaskInput) -> Result<(Task, Decision), NewsRefusal> {
    let draft = draft_decision(task, input)?;
    Ok((draft.task, draft.decision))
}

/// Which facts follow from the news, and what to do about them.
///
/// # Errors
/// When the news is refused.
pub fn decide(task: &Task, input: &TaskInput) -> Result<Decision, NewsRefusal> {
    Ok(draft_decision(task, input)?.decision)
}

fn draft_decision(task: &Task, input: &TaskInput) -> Result<DecisionDraft, NewsRefusal> {
    let at = input.at;
    let mut draft = DecisionDraft {
        task: task.clone(),
        at,
        drive: input.drive,
        spent: input.spent.clone(),
        attended: input.attended,
        poll_ms: input.poll_ms,
        last_words: String::new(),
        decision: Decision::default(),
    };
    match &input.news {
        News::Edit { spec, flows } => match &task.state {
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => {
                return Err(not_now_refusal(task, "its words can no longer be changed"));
            }
            _ => {
                draft.add_event(Event::Edited { spec: spec.clone() })?;
                draft.handle_stale_objective()?;
                if let Some(change) = flows {
                    draft.enter_other_flow(change)?;
                }
            }
        },
        News::Granted { run, flow, limits, driving } => {
            let TaskState::Ready { .. } = &task.state else {
                return Err(not_now_refusal(task, "it cannot be started"));
            };
            if task.is_held() {
                return Err(not_now_refusal(task, "a person holds it"));
            }
            let limits = &task.own_limits.over(limits.clone());
            let flow = task.flow.clone().unwrap_or_else(|| flow.clone());
            if flow.follows_an_issue() && task.issue.is_none() {
                let detail = format!(
                    "flow `{}` follows an issue of a tracker, and this task comes from none; `landfall auto` makes such tasks",
                    flow.name
                );
                // It is not bound to such a flow: a person may choose another and retry.
                draft.end_task(EndKind::Failed, EndCode::UnsupportedStep, detail)?;
            } else {
                let is_agent_next = matches!(
                    flow.find_step(task.next_step(&flow)).map(|step| &step.kind),
                    Some(StepKind::Agent { .. })
                );
                if is_agent_next && !flow.suits_style(driving.style) {
                    draft.end_for_unsuitable_flow(&flow, driving)?;
                    return Ok(draft);
                }
                let bound = task.flow.is_some() && task.limits == *limits;
                if !bound || task.driving.as_ref() != Some(driving) {
                    let (flow, limits, driving) = (flow.clone(), limits.clone(), driving.clone());
                    draft.add_event(Event::Bound { flow, limits, driving })?;
                }
                let next = draft.task.next_step(&flow).clone();
                draft.enter_step(&next, *run)?;
            }
        }
        News::WorkspaceReady { attempt, base } => {
            check_attempt(task, *attempt)?;
            let TaskState::Active { step, doing: AttemptPhase::Preparing { stop, .. } } = &task.state else {
                return Err(not_now_refusal(task, "no workspace was asked for"));
            };
            draft.add_event(Event::WorkspaceMade { attempt: *attempt, base: base.clone() })?;
            match stop {
                Some(stop) => draft.apply_stop(stop.clone(), step.clone())?,
                None => draft.next_iteration()?,
            }
        }
        News::MachineFailed { attempt, detail, hopeless } => {
            check_attempt(task, *attempt)?;
            draft.handle_machine_failure(detail, *hopeless)?;
        }
        News::Exhausted { attempt, resource, is_missing, detail } => {
            check_attempt(task, *attempt)?;
            draft.handle_exhausted_resource(*resource, *is_missing, detail)?;
        }
        News::AgentEnded(run) => draft.handle_agent_ended(run)?,
        News::Strode { attempt, iteration, stride } => {
            check_attempt(task, *attempt)?;
            draft.require_running(*iteration)?;
            if task.stride.as_ref().is_some_and(|last| last.mark == stride.mark) {
                return Err(not_now_refusal(task, "that step is known"));
            }
            draft.add_event(Event::Strode { attempt: *attempt, stride: stride.clone() })?;
        }
        News::AccountWaitBegan { attempt, iteration, until } => {
            check_attempt(task, *attempt)?;
            draft.require_running(*iteration)?;
            if task.account_waits.since.is_some() {
                return Err(not_now_refusal(task, "it waits for its account already"));
            }
            draft.add_event(Event::AccountWaitBegan { attempt: *attempt, until: *until })?;
        }
        News::AccountWaitEnded { attempt, iteration } => {
            check_attempt(task, *attempt)?;
            draft.require_running(*iteration)?;
            if task.account_waits.since.is_none() {
                return Err(not_now_refusal(task, "it does not wait for its account"));
            }
            draft.add_event(Event::AccountWaitEnded { attempt: *attempt })?;
        }
        News::Checked { attempt, head, leftovers, report, concerns, evidence, proofs, extent } => {
            check_attempt(task, *attempt)?;
            let stop = draft.require_checking("nothing is being verified")?;
            draft.note_collected(head, *leftovers)?;
            draft.note_change_size(*extent)?;
            draft.handle_gate_report(report, concerns, evidence.as_ref(), proofs, stop)?;
        }
        News::MergeConflict { attempt, head, base, clashes } => {
            check_attempt(task, *attempt)?;
            let stop = draft
                .require_checking("nothing is being merged")
                .or_else(|_| draft.require_queued().map(|_| None))?;
            draft.note_collected(head, false)?;
            let paths = clashes.iter().map(|clash| clash.path.clone()).collect();
            draft.add_event(Event::Conflicted { attempt: *attempt, base: base.clone(), paths })?;
            draft.handle_conflict(base, clashes, stop)?;
        }
        News::NothingChanged { attempt } => {
            check_attempt(task, *attempt)?;
            let stop = draft
                .require_checking("nothing is being verified")
                .or_else(|_| draft.require_queued().map(|_| None))?;
            draft.handle_no_changes(stop)?;
        }
        News::WorkspaceRebuilt { attempt } => {
            check_attempt(task, *attempt)?;
            let stop = draft.require_checking("nothing is being verified")?;
            let step = draft.current_step();
            match stop {
                Some(stop) => draft.apply_stop(stop, step)?,
                None => draft.redo_work(&step)?,
            }
        }
        News::Landed { attempt, commit, base_before, tree, proof } => {
            check_attempt(task, *attempt)?;
            draft.require_landing().or_else(|_| draft.require_queued())?;
            draft.add_event(Event::Landed {
                attempt: *attempt,
                commit: commit.clone(),
                base_before: base_before.clone(),
                tree: tree.clone(),
                proof: proof.clone(),
            })?;
            let rule = task.limits.review;
            if (rule.after || rule.mode == ReviewMode::Batch) && task.is_made_by_an_agent() {
                draft.add_event(Event::ReviewOwed)?;
            }
            draft.leave_step(StepResult::Landed, None)?;
        }
        News::Review(said) => draft.handle_review(said)?,
        News::LandingBegan { attempt, batch, report } => {
            check_attempt(task, *attempt)?;
            draft.require_queued()?;
            draft.add_event(Event::LandingBegan {
                attempt: *attempt,
                batch: *batch,
                report: report.clone(),
            })?;
        }
        News::Ejected { attempt, batch, report } => {
            check_attempt(task, *attempt)?;
            draft.require_queued()?;
            draft.add_event(Event::Ejected { attempt: *attempt, batch: *batch, report: report.clone() })?;
            draft.leave_step(StepResult::Red, Some(verification_feedback(report, true)))?;
        }
        News::HookFailed { detail } => {
            draft.add_event(Event::Warned(Warning::HookFailed { detail: detail.clone() }))?;
        }
        News::FolderChanged { what } => {
            draft.add_event(Event::Warned(Warning::Folder { what: what.clone() }))?;
        }
        News::Doubted { attempt, concerns } => {
            check_attempt(task, *attempt)?;
            let then = draft.require_queued()?;
            draft.add_event(Event::ReviewWanted { concerns: concerns.clone(), then })?;
        }
        News::LandMoved { attempt, .. } => {
            check_attempt(task, *attempt)?;
            draft.require_landing()?;
            draft.add_event(Event::Requeued { attempt: *attempt, unsure: false })?;
        }
        News::LandUnsure { attempt } => {
            check_attempt(task, *attempt)?;
            draft.require_landing()?;
            draft.add_event(Event::Requeued { attempt: *attempt, unsure: true })?;
        }
        News::LandMismatch { attempt, detail } => {
            check_attempt(task, *attempt)?;
            draft.require_landing()?;
            draft.end_task(EndKind::Failed, EndCode::LandingMismatch, detail.clone())?;
        }
        News::Reported { attempt, report, certificate } => {
            check_attempt(task, *attempt)?;
            let TaskState::Active { doing: AttemptPhase::Reporting, .. } = &task.state else {
                return Err(not_now_refusal(task, "no report was asked for"));
            };
            draft.add_event(Event::Reported {
                attempt: *attempt,
                report: report.clone(),
                certificate: certificate.clone(),
            })?;
            draft.leave_step(StepResult::Done, None)?;
        }
        News::Due => match task.due_at() {
            Some(due) if due <= at => draft.handle_due()?,
            // Nobody is there whose time could run.
            Some(_) if !input.attended && task.waits_for_a_resolution() => draft.handle_due()?,
            Some(_) | None => return Err(not_now_refusal(task, "no wait is over")),
        },
        News::BaseAdvanced => match &task.state {
            TaskState::Waiting { wait: WaitReason::GateBroken { .. }, .. } => {
                draft.add_event(Event::Resumed { feedback: None })?;
            }
            _ => return Err(not_now_refusal(task, "it does not wait for the base")),
        },
        News::RouteOpened => match &task.state {
            TaskState::Waiting { wait: WaitReason::Quota { .. } | WaitReason::Login { .. }, .. } => {
                draft.add_event(Event::Resumed { feedback: None })?;
            }
            _ => return Err(not_now_refusal(task, "it does not wait for an account")),
        },
        News::Answer { text } => draft.handle_answer(text)?,
        News::StopTask => draft.stop_task()?,
        News::Interrupt => match &task.state {
            TaskState::Active { doing: AttemptPhase::Running { stop: None, .. }, .. } => {
                draft.ask_to_stop(StopRequest::Interrupt)?;
            }
            _ => return Err(not_now_refusal(task, "no agent runs")),
        },
        News::Cancel { reason } => draft.cancel_task(reason)?,
        News::Retry { fresh, note } => draft.retry_task(*fresh, note.as_deref())?,
        News::WorkspaceRemoved { kept } => {
            if !task.is_over() {
                return Err(not_now_refusal(task, "its workspace is still needed"));
            }
            draft.add_event(Event::WorkspaceRemoved { kept: kept.clone() })?;
        }
        News::Message { text, now } => draft.message_agent(text, *now)?,
        News::Inform(feedback) => draft.inform_agent(feedback)?,
        News::Hold { reason } => draft.hold_task(reason)?,
        News::Release => draft.release_task()?,
        News::Accept { reason } => draft.accept_task(reason)?,
        News::Block { reason } => draft.block_task(reason)?,
        News::SetLimits { limits } => draft.set_limits(*limits)?,
        News::Do { command, checkpoint, alone, note, flow } => {
            let wanted = (command.as_str(), *checkpoint);
            draft.run_requested_step(wanted, *alone, task.flow.as_ref().or(flow.as_ref()))?;
            if let Some(text) = note {
                draft.add_event(Event::Messaged { about: None, text: text.clone() })?;
            }
        }
        News::Annotate(annotated) => draft.handle_annotation(annotated)?,
        News::Wish(wishes) => draft.set_issue_options(wishes)?,
        News::Exchanged { attempt, exchanged } => {
            check_attempt(task, *attempt)?;
            draft.handle_exchange(exchanged)?;
        }
        News::PartsOver(ends) => match &task.state {
            TaskState::Waiting { wait: WaitReason::Parts, .. } => {
                draft.add_event(Event::Issue(IssueEvent::PartsOver(ends.clone())))?;
                draft.add_event(Event::Resumed { feedback: None })?;
            }
            _ => return Err(not_now_refusal(task, "it does not wait for its parts")),
        },
        News::PartsCame { over, levels } => match &task.state {
            TaskState::Waiting { wait: WaitReason::Parts, .. } => {
                draft
                    .add_event(Event::Issue(IssueEvent::PartsCame { over: over.clone(), levels: *levels }))?;
                draft.add_event(Event::Resumed { feedback: None })?;
            }
            _ => return Err(not_now_refusal(task, "it does not wait for its parts")),
        },
        News::LookAgain => match &task.state {
            TaskState::Waiting { wait: WaitReason::Blockers { .. }, .. } => {
                draft.add_event(Event::Resumed { feedback: None })?;
            }
            _ => return Err(not_now_refusal(task, "it does not wait for other issues")),
        },
        News::Refine { text } => draft.add_refinement(text)?,
        News::Recovered { attempt, recovered } => {
            check_attempt(task, *attempt)?;
            draft.handle_recovery_result(recovered)?;
        }
        News::Withdraw { number } => draft.withdraw_refinement(*number)?,
    }
    Ok(draft)
}

fn check_attempt(task: &Task, got: Attempt) -> Result<(), NewsRefusal> {
    if got == task.attempt || seeded_bugs::is_active(SeededBug::MissingFence) {
        return Ok(());
    }
    Err(NewsRefusal::Stale { task: task.id, got, current: task.attempt })
}

fn not_now_refusal(task: &Task, what: &'static str) -> NewsRefusal {
    NewsRefusal::NotNow { task: task.id, state: task.state.name(), what }
}

/// A decision in the making: the task as it would be after the events so far.
struct DecisionDraft {
    task: Task,
    at: Timestamp,
    drive: IntakeState,
    spent: Option<ExhaustedBudget>,
    attended: bool,
    poll_ms: u64,
    /// The last that the agent said whose run has ended now.
    last_words: String,
    decision: Decision,
}

impl DecisionDraft {
    fn add_event(&mut self, event: Event) -> Result<(), NewsRefusal> {
        apply_in_place(&mut self.task, self.at, &event)?;
        self.decision.events.push(event);
        Ok(())
    }

    fn add_effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    fn flow_step(&self, name: &StepName) -> &FlowStep {
        let flow = self.task.flow.as_ref().expect("a task in a step is bound to a flow");
        flow.find_step(name).expect("a checked flow leads only to its own steps")
    }

    /// Refuses news of a run that is over.
    fn require_running(&self, iteration: u32) -> Result<(), NewsRefusal> {
        match &self.task.state {
            TaskState::Active { doing: AttemptPhase::Running { iteration: running, .. }, .. }
                if *running == iteration =>
            {
                Ok(())
            }
            _ => Err(not_now_refusal(&self.task, "that iteration does not run")),
        }
    }

    fn current_step(&self) -> StepName {
        self.task.step().cloned().expect("asked only of a task in a step")
    }

    /// A task that has not started begins in its new flow where it stood in the one before.
    fn enter_other_flow(&mut self, change: &FlowChange) -> Result<(), NewsRefusal> {
        let task = &self.task;
        let is_placed = matches!(&task.state, TaskState::Ready { next: Some(_), .. }) && !task.is_held();
        if task.flow.is_some() || !is_placed {
            return Ok(()); // a step that the flow does not have is its entry
        }
        let plan = &task.staged.plan;
        let is_planned = task.staged.papers.contains_key(PLAN);
        let is_finished = task.head.is_some() && plan.done >= plan.steps;
        let phase = task.phase_word_in(&change.from);
        let step = change.to.entry_at(&phase, is_planned, is_finished).unwrap_or(&change.to.entry).clone();
        self.add_event(Event::Directed { step, alone: false })
    }

    /// Its agent runs a loop of its own, and would run all of it in each step of this flow.
    fn end_for_unsuitable_flow(&mut self, flow: &Flow, driving: &AgentAssignment) -> Result<(), NewsRefusal> {
        let id = self.task.id;
        let onward = match self.task.flow {
            Some(_) => format!("`landfall edit {id} --agent NAME` gives it a profile of another style"),
            None => format!("`landfall edit {id} --flow NAME` gives it a flow with `style = \"self\"`"),
        };
        let detail = format!(
            "flow `{}` has {} steps for agents, and the agent of profile `{}`, driven in style `{}`, does the whole task in each; {onward}",
            flow.name,
            flow.agent_steps(),
            driving.profile,
            driving.style.word(),
        );
        self.end_task(EndKind::Blocked, EndCode::UnsupportedStep, detail)
    }

    /// Begins an attempt of `step`, or does at once what needs no attempt.
    fn enter_step(&mut self, step: &StepName, run: RunId) -> Result<(), NewsRefusal> {
        if self.task.recoveries.pending_recovery(step).is_some() {
            return self.open(step, run, AttemptStart::Recover);
        }
        let without_work = self.task.workspace.is_none() && self.task.head.is_none();
        let opening = match &self.flow_step(step).kind.clone() {
            StepKind::Agent { .. } if self.has_empty_spec() => return self.end_for_empty_target(),
            StepKind::Target if self.enter_target(step)? => return Ok(()),
            StepKind::Converge => return self.measure_convergence(step),
            StepKind::Review if self.needs_no_reader() => {
                self.make_current(step)?;
                return self.leave_step(StepResult::Approved, None);
            }
            StepKind::Tracker { act } if self.enter_tracker(step, *act)? => return Ok(()),
            StepKind::Tracker { .. } | StepKind::Split => AttemptStart::Exchange,
            StepKind::Agent { .. } if self.task.workspace.is_none() => AttemptStart::FreshWorkspace,
            StepKind::Agent { .. } | StepKind::Review | StepKind::Check { .. } | StepKind::Target => {
                AttemptStart::Workspace
            }
            StepKind::Verify if without_work => {
                let detail = format!("step `{step}` has nothing to verify: no workspace and no commit");
                return self.end_task(EndKind::Blocked, EndCode::NothingChanged, detail);
            }
            StepKind::Verify => AttemptStart::Check,
            StepKind::Land if self.task.landed.is_some() => {
                // The journal was cut between the landing and the step after it.
                self.make_current(step)?;
                return self.leave_step(StepResult::Landed, None);
            }
            StepKind::Land if may_land(&self.task) => AttemptStart::Queue,
            StepKind::Land if without_work => {
                let detail = format!("step `{step}` has nothing to land: no workspace and no commit");
                return self.end_task(EndKind::Blocked, EndCode::NothingChanged, detail);
            }
            StepKind::Land => AttemptStart::Check,
            StepKind::Report if self.task.reported.is_some() => {
                self.make_current(step)?;
                return self.leave_step(StepResult::Done, None);
            }
            StepKind::Report => AttemptStart::Report,
            StepKind::Ask { question } => {
                let wait = WaitReason::Question { text: question.clone() };
                return self.add_event(Event::Waited { wait, then: step.clone() });
            }
        };
        self.open(step, run, opening)
    }

    /// Makes `step` the current one without an attempt, so that it can be left.
    fn make_current(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        if self.task.step() != Some(step) {
            self.add_event(Event::Waited { wait: WaitReason::Pause, then: step.clone() })?;
            self.add_event(Event::Resumed { feedback: None })?;
        }
        Ok(())
    }

    fn open(&mut self, step: &StepName, run: RunId, opening: AttemptStart) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt.next();
        self.add_event(Event::Entered { attempt, step: step.clone(), run, opening })?;
        let task = self.task.id;
        let effect = match opening {
            AttemptStart::Workspace => Effect::Prepare { task, attempt, fresh: false },
            AttemptStart::FreshWorkspace => Effect::Prepare { task, attempt, fresh: true },
            AttemptStart::Check => check_effect(&self.task),
            AttemptStart::Report => Effect::Report { task, attempt },
            AttemptStart::Exchange => exchange_effect(&self.task),
            AttemptStart::Recover => Effect::Recover { task, attempt },
            AttemptStart::Queue | AttemptStart::Land => return Ok(()), // the landing queue sees to it
        };
        self.add_effect(effect);
        Ok(())
    }

    /// Starts the next run of the agent in this attempt, unless a limit or the engine's stop is in the way.
    fn next_iteration(&mut self) -> Result<(), NewsRefusal> {
        let limits = self.task.limits.clone();
        if self.task.iterations_done() >= limits.iterations_max {
            return self.handle_iterations_used();
        }
        if self.task.time_left_ms() == 0 {
            return self.time_used();
        }
        let spent = Spending { usage: self.task.counters.usage, time_ms: self.task.counters.agent_ms };
        if let Some(what) = limits.task_budget.describe_used_up(spent) {
            return self.task_budget_used(&what);
        }
        if let Some(what) = limits.attempt_budget.describe_used_up(self.task.counters.attempt) {
            return self.handle_over_budget(BudgetScope::Attempt, &what);
        }
        if self.drive == IntakeState::Draining {
            return self.yield_attempt(YieldReason::Drained, None);
        }
        if self.task.hold.is_some() {
            return self.yield_attempt(YieldReason::Held, None);
        }
        if self.spent.is_some() {
            return self.yield_attempt(YieldReason::Budget, None); // it goes on when there is more to spend
        }
        let talk = self.task.session_start();
        let (id, attempt, step) = (self.task.id, self.task.attempt, self.current_step());
        let iteration = self.task.counters.iterations + 1;
        self.mark_refinements_told(&step)?;
        self.add_event(Event::IterationBegan { attempt, iteration, talk: talk.clone() })?;
        let deadline_ms = self.task.time_left_ms();
        self.add_effect(Effect::Spawn { task: id, attempt, iteration, step, deadline_ms, talk });
        Ok(())
    }

    fn handle_iterations_used(&mut self) -> Result<(), NewsRefusal> {
        let detail =
            format!("{}, after all {} iterations", self.describe_missing(), self.task.limits.iterations_max);
        self.end_task(EndKind::Failed, EndCode::MaxIterations, detail)
    }

    /// What a task lacks that has used all that it may: the reason at the root of its end.
    fn describe_missing(&self) -> String {
        if let Some(red) = self.red_checks() {
            return format!("its checks are still red ({red})");
        }
        let what = match (self.task.past.last(), &self.task.seen_head, &self.task.workspace) {
            (Some(PastRun { verdict: Verdict::Complete, .. }), ..) => "the steps of its flow are not through",
            (_, Some(head), Some(base)) if head != base => "its agent never signalled that it is complete",
            (..) => "its agent committed nothing and never signalled that it is complete",
        };
        self.with_last_words(what)
    }

    fn time_used(&mut self) -> Result<(), NewsRefusal> {
        let limit = spell_ms(self.task.limits.task_ms);
        let detail = format!("{}, after all {limit} of its working time", self.describe_missing());
        self.end_task(EndKind::Timeout, EndCode::TaskLimit, detail)
    }

    fn task_budget_used(&mut self, what: &str) -> Result<(), NewsRefusal> {
        let detail = format!("{}; {}", self.describe_missing(), budget_used_text(BudgetScope::Task, what));
        self.end_task(EndKind::Timeout, EndCode::Budget, detail)
    }

    /// A reason, with what the agent said last: it often names the cause behind it.
    fn with_last_words(&self, reason: &str) -> String {
        match last_line(&self.last_words) {
            Some(line) => format!("{reason} (its last words: \"{line}\")"),
            None => reason.to_owned(),
        }
    }

    /// A budget is used up. That of an attempt ends the attempt, that of a task the task; those of the run and the day
    /// only keep agents from working on, and are nobody's fault.
    fn handle_over_budget(&mut self, scope: BudgetScope, what: &str) -> Result<(), NewsRefusal> {
        let detail = budget_used_text(scope, what);
        match scope {
            BudgetScope::Attempt => {
                let (step, count) = (self.current_step(), self.task.counters.overspent + 1);
                if count > self.task.limits.restarts_max {
                    let detail = format!("{detail}, by {count} attempts");
                    return self.end_task(EndKind::Failed, EndCode::Budget, detail);
                }
                self.back_off(YieldReason::Overspent, backoff_ms(count, 500, 30_000), detail, step)
            }
            BudgetScope::Task if self.money_was_raised() => self.continue_step(),
            BudgetScope::Task => self.task_budget_used(what),
            BudgetScope::Run | BudgetScope::Day => self.yield_attempt(YieldReason::Budget, None),
        }
    }

    /// The agent goes round in a circle: it is told so, a few times.
    fn handle_looping(&mut self) -> Result<(), NewsRefusal> {
        if self.task.counters.loops >= self.task.limits.loops_max {
            let reason = "the agent said and did the same over and over, and telling it so did not help";
            return self.end_task(EndKind::Failed, EndCode::ReasoningLoop, self.with_last_words(reason));
        }
        self.yield_attempt(YieldReason::Looping, Some(loop_feedback()))
    }

    fn handle_agent_ended(&mut self, run: &EndedRun) -> Result<(), NewsRefusal> {
        self.last_words.clone_from(&run.evidence.last_words);
        check_attempt(&self.task, run.attempt)?;
        let TaskState::Active { step, doing: AttemptPhase::Running { iteration, stop, talk, .. } } =
            &self.task.state
        else {
            return Err(not_now_refusal(&self.task, "no agent runs"));
        };
        if *iteration != run.iteration {
            return Err(not_now_refusal(&self.task, "that iteration does not run"));
        }
        let (step, stop, resumed) = (step.clone(), stop.clone(), *talk != SessionStart::New);
        let told = self.task.feedback.clone();
        let verdict = self.reconsider_verdict(run, resumed, stop.is_some());
        let took_ms = match &verdict {
            Verdict::Transient { .. } | Verdict::Quota { .. } => {
                run.took_ms.saturating_sub(run.evidence.model_wait_ms)
            }
            _ => run.took_ms,
        };
        self.add_event(Event::IterationEnded {
            attempt: run.attempt,
            iteration: run.iteration,
            exit: run.exit.clone(),
            verdict: verdict.clone(),
            took_ms,
            usage: run.usage,
            head: run.evidence.head_after.clone(),
            traces: run.traces.clone(),
        })?;
        for path in &run.evidence.touched {
            self.add_event(Event::Warned(Warning::SettingsTouched { path: path.clone() }))?;
        }
        self.warn_of_signals(&run.seen)?;
        self.warn_of_iterations(&verdict)?;
        if let Some(stop) = stop {
            return self.apply_stop(stop, step);
        }
        if matches!(verdict, Verdict::Crashed { .. }) && run.evidence.oom_kills > 0 {
            return self.handle_memory_crash(step);
        }
        if let Some(climbed) = &run.climbed
            && self.task.issue.is_some()
            && is_climbed(&verdict)
        {
            return self.recover_from_run(run, climbed, &verdict, &step);
        }
        let said = matches!(verdict, Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. });
        let reviews = match self.flow_step(&step).kind {
            StepKind::Review if said => return self.read_by_a_reviewer(run, &step),
            StepKind::Check { .. } if said => return self.handle_judgement(run, &step),
            StepKind::Target if said => return self.handle_target_split(run, &step, &told),
            StepKind::Check { .. } if is_own_failure(&verdict) => {
                return self.handle_judge_failure(&format!("it ended early ({})", verdict.to_sentence()));
            }
            StepKind::Review | StepKind::Check { .. } | StepKind::Target => true,
            StepKind::Agent { .. }
            | StepKind::Verify
            | StepKind::Land
            | StepKind::Report
            | StepKind::Ask { .. }
            | StepKind::Split
            | StepKind::Tracker { .. }
            | StepKind::Converge => false,
        };
        if !reviews {
            self.note_papers(run)?;
            let step_said = run.seen.iter().filter_map(|signal| match signal {
                Signal::Said(ControlSignal::Step(number)) => Some(*number),
                _ => None,
            });
            let last_step = step_said.max();
            // Whoever writes a plan is done with the plan, not with its steps.
            let works = matches!(self.flow_step(&step).kind, StepKind::Agent { iterate: true, .. });
            self.note_steps_done(last_step, works && verdict == Verdict::Complete)?;
        }
        let open = review::blocking_findings(&self.task.findings).next().is_some();
        if open && !reviews && verdict == Verdict::Complete && !run.evidence.last_words.is_empty() {
            self.add_event(Event::Replied { text: run.evidence.last_words.clone() })?;
        }
        if verdict == Verdict::Complete
            && run.evidence.missing.is_empty()
            && self.resolve_told_refinements(&step)?
        {
            return self.next_iteration();
        }
        match verdict {
            Verdict::Complete if !run.evidence.missing.is_empty() => {
                self.handle_missing_output(&run.evidence.missing)
            }
            Verdict::Complete => self.leave_step(StepResult::Done, None),
            Verdict::Blocked { reason } => {
                // A flow that only stops here has nothing to add to the agent's own words.
                let goes_on = self
                    .find_edge(&step, StepResult::Blocked)
                    .is_some_and(|edge| edge.to != EdgeTarget::Stop);
                if goes_on {
                    let feedback = Feedback { about: "The agent was blocked".to_owned(), text: reason };
                    return self.leave_step(StepResult::Blocked, Some(feedback));
                }
                self.end_task(EndKind::Blocked, EndCode::AgentBlocked, reason)
            }
            Verdict::Pending { question } => {
                self.yield_attempt(YieldReason::Asked, None)?;
                self.add_event(Event::Waited { wait: WaitReason::Question { text: question }, then: step })
            }
            Verdict::Checkpoint { reason } if self.find_edge(&step, StepResult::MidExec).is_some() => {
                let about = "Why the agent wants a look".to_owned();
                self.leave_step(StepResult::MidExec, Some(Feedback { about, text: reason }))
            }
            Verdict::Checkpoint { .. } | Verdict::Continue => {
                self.handle_unfinished_run(&step, &run.evidence.missing)
            }
            Verdict::Quota { until } => {
                // Without a word about the reset, ask again a little later: longer each time, at most an hour.
                let waits = self.task.counters.quota_waits;
                // A reset that is past already says no more than none: believing it would start the agent in a loop. One that
                // passed while the run ended is asked for soon, and later each time.
                let has_just_passed = until.is_some_and(|until| until.plus_ms(JUST_PASSED_MS) > self.at);
                let first_ms = if has_just_passed { 1_000 } else { 300_000 };
                let until = until.filter(|until| *until > self.at);
                let guessed = until.is_none();
                let until = until
                    .map(|until| until.min(self.at.plus_ms(QUOTA_WAIT_MAX_MS)))
                    .unwrap_or_else(|| self.at.plus_ms(backoff_ms(waits + 1, first_ms, 3_600_000)));
                self.yield_attempt(YieldReason::Quota, None)?;
                self.add_event(Event::Waited { wait: WaitReason::Quota { until, guessed }, then: step })
            }
            // An outage is nobody's fault, however long it is: the account waits for it, with one probe at a time.
            Verdict::Transient { detail } => {
                let count = self.task.counters.transients;
                let cause = format!("a passing error of the provider ({detail})");
                self.back_off(YieldReason::Transient, transient_ms(count), cause, step)
            }
            Verdict::Crashed { detail } => {
                let cause = match last_line(&run.evidence.last_error) {
                    Some(line) => format!("the agent crashed ({detail}; its last error: \"{line}\")"),
                    None => format!("the agent crashed ({detail})"),
                };
                self.restart_agent(YieldReason::Crashed, EndCode::AgentCrashed, cause, step)
            }
            Verdict::Lost | Verdict::Stopped => {
                let cause = "the agent vanished and its end was not seen".to_owned();
                self.restart_agent(YieldReason::Lost, EndCode::AgentLost, cause, step)
            }
            Verdict::NotStarted { detail, hopeless } => {
                if hopeless {
                    return self.end_task(EndKind::Failed, EndCode::AgentNotStarted, detail);
                }
                self.restart_agent(YieldReason::NotStarted, EndCode::AgentNotStarted, detail, step)
            }
            Verdict::Unauthorized { detail } => {
                let account = self.task.driving.as_ref().map(|it| it.account.clone()).unwrap_or_default();
                self.yield_attempt(YieldReason::Login, None)?;
                let wait = WaitReason::Login { account, detail, asker: self.task.id };
                self.add_event(Event::Waited { wait, then: step })
            }
            Verdict::SessionGone => {
                self.yield_attempt(YieldReason::SessionGone, Some(session_gone_feedback()))
            }
            Verdict::Looping => self.handle_looping(),
            Verdict::OverBudget { scope, what } => self.handle_over_budget(scope, &what),
            Verdict::ContextUsedUp => {
                let detail = "context budget insufficient: the agent dropped its context again and again within one run; \
                              split the task, or give it an agent with more room"
                    .to_owned();
                self.end_task(EndKind::Failed, EndCode::ContextBudget, detail)
            }
            // It was asked to end its own loop after the last of them, and had to be made to.
            Verdict::OutOfTime
                if self.task.runs_own_loop()
                    && self.task.counters.strides >= self.task.limits.iterations_max =>
            {
                self.handle_iterations_used()
            }
            Verdict::OutOfTime if self.time_was_raised() => self.continue_step(),
            Verdict::OutOfTime => self.time_used(),
            Verdict::Stalled => {
                let (counters, limits) = (&self.task.counters, &self.task.limits);
                let (here, in_all) = (counters.stalls_step, counters.stalls_total);
                if here > limits.stalls_step_max || in_all > limits.stalls_total_max {
                    let reason = match (here, in_all) {
                        (1, 1) => "the agent fell silent".to_owned(),
                        (1, _) => format!("the agent fell silent once in this step, {in_all} times in all"),
                        (..) => {
                            format!("the agent fell silent {here} times in this step, {in_all} times in all")
                        }
                    };
                    let detail = self.with_last_words(&reason);
                    return self.end_task(EndKind::Failed, EndCode::StallLimit, detail);
                }
                self.yield_attempt(YieldReason::Stalled, None)
            }
        }
    }

    /// A reviewer has read the work. What they found goes back to the agent, a few times; then a person weighs both.
    fn read_by_a_reviewer(&mut self, run: &EndedRun, step: &StepName) -> Result<(), NewsRefusal> {
        let findings =
            run.evidence.opinion.as_ref().map(|said| review::merge_findings(&self.task.findings, said));
        let reply = self.task.reply.clone();
        let (attempt, head) = (run.attempt, self.task.head.clone());
        self.add_event(Event::Opinion { attempt, head, findings: findings.clone() })?;
        if findings.is_some() && self.needs_another_reader() {
            return self.next_iteration();
        }
        let open: Vec<Finding> = review::blocking_findings(&self.task.findings).cloned().collect();
        let rounds = self.task.counters.reviews;
        if findings.is_some() && open.is_empty() {
            return self.leave_step(StepResult::Approved, None);
        }
        if rounds >= review::ROUNDS_MAX {
            let mut concerns: Vec<ChangeConcern> = open
                .iter()
                .map(|finding| ChangeConcern { code: ConcernCode::Disputed, detail: finding.to_string() })
                .collect();
            if let Some(reply) = &reply {
                concerns.push(ChangeConcern {
                    code: ConcernCode::Disputed,
                    detail: format!("the agent says: {reply}"),
                });
            }
            if concerns.is_empty() {
                let detail = "what the reviewer said could not be read".to_owned();
                concerns.push(ChangeConcern { code: ConcernCode::Disputed, detail });
            }
            return self.add_event(Event::ReviewWanted { concerns, then: step.clone() });
        }
        if findings.is_none() {
            // Nothing is known of the work then: it is read again.
            let feedback = Feedback {
                about: "What you said could not be read".to_owned(),
                text: "End with one JSON block, just as this page asks for.".to_owned(),
            };
            return self.yield_attempt(YieldReason::OutputMissing, Some(feedback));
        }
        let mut text = String::new();
        for finding in &open {
            text.push_str(&format!("- {finding}\n  {}\n", finding.detail.replace('\n', "\n  ")));
        }
        text.push_str(
            "Deal with each, or say in your last message why it is wrong, by its name. A reviewer reads the work again.\n",
        );
        let about = "A reviewer wants changes".to_owned();
        self.leave_step(StepResult::Changes, Some(Feedback { about, text }))
    }

    /// The verdict on a run, in the light of what was asked of it and of the runs before it.
    fn reconsider_verdict(&self, run: &EndedRun, resumed: bool, stopping: bool) -> Verdict {
        let task = &self.task;
        match judge(&run.seen, &run.exit, &run.evidence) {
            Verdict::SessionGone if !resumed => {
                Verdict::Crashed { detail: "it misses a session that nobody asked for".to_owned() }
            }
            Verdict::Stopped if !stopping => Verdict::Lost, // not by us
            // Runs that end in the same words and leave nothing are a loop, too.
            Verdict::Continue
                if run.traces.words.is_some()
                    && run.traces.words == task.last_words
                    && (run.evidence.head_after.is_none() || run.evidence.head_after == task.seen_head)
                    && !self.reports_new_step(run)
                    && task.counters.same_words + 1 >= ECHOES_MAX =>
            {
                Verdict::Looping
            }
            verdict => verdict,
        }
    }

    /// Whether a run reported a step of its plan that no run before it did.
    fn reports_new_step(&self, run: &EndedRun) -> bool {
        let done = self.task.staged.plan.done;
        run.seen
            .iter()
            .any(|signal| matches!(signal, Signal::Said(ControlSignal::Step(number)) if *number > done))
    }

    /// The output gate: a step is not done before what it must leave behind is there. The agent is told, and tries
    /// again a few times.
    fn handle_missing_output(&mut self, missing: &[String]) -> Result<(), NewsRefusal> {
        let files = missing.join(", ");
        let feedback = Feedback {
            about: "What this step must leave behind is not there".to_owned(),
            text: format!("Missing, empty or not written in this run: {files}"),
        };
        self.try_output_again(&format!("{files} was missing, empty or not written"), feedback)
    }

    /// Tells the agent what is wrong with the output of its step. The task fails when that was in vain as often as it may be.
    fn try_output_again(&mut self, what: &str, feedback: Feedback) -> Result<(), NewsRefusal> {
        let tries = self.task.counters.outputs_missing + 1;
        if tries < OUTPUT_TRIES_MAX {
            return self.yield_attempt(YieldReason::OutputMissing, Some(feedback));
        }
        let step = self.current_step();
        let detail = format!("step `{step}` ended {tries} times in a row without its output: {what}");
        self.end_task(EndKind::Failed, EndCode::OutputMissing, detail)
    }

    /// The agent said nothing that ends the work.
    fn handle_unfinished_run(&mut self, step: &StepName, missing: &[String]) -> Result<(), NewsRefusal> {
        let iterates = match &self.flow_step(step).kind {
            StepKind::Agent { iterate, .. } => *iterate,
            _ => false,
        };
        if !iterates && !missing.is_empty() {
            return self.handle_missing_output(missing);
        }
        if !iterates {
            return self.leave_step(StepResult::Done, None);
        }
        if self.wants_judge(step) {
            return self.leave_step(StepResult::MidExec, None);
        }
        let (fruitless, stuck_after) = (self.task.counters.fruitless, self.task.limits.stuck_after);
        if is_stuck(&self.task) && fruitless.is_multiple_of(stuck_after.max(1)) {
            self.add_event(Event::Warned(Warning::Stuck { iterations: fruitless }))?;
        }
        self.next_iteration()
    }

    /// Warns once, by the iteration that reaches four fifths of what there is.
    fn warn_of_iterations(&mut self, verdict: &Verdict) -> Result<(), NewsRefusal> {
        let (used, max) = (self.task.counters.iterations, self.task.limits.iterations_max);
        let reached = |used: u32| used.saturating_mul(5) >= max.saturating_mul(4);
        let counted = matches!(verdict, Verdict::Complete | Verdict::Pending { .. } | Verdict::Continue);
        if counted && reached(used) && !reached(used - 1) && used < max {
            self.add_event(Event::Warned(Warning::NearIterationsMax { used, max }))?;
        }
        Ok(())
    }

    fn warn_of_signals(&mut self, seen: &[Signal]) -> Result<(), NewsRefusal> {
        for signal in seen {
            let warning = match signal {
                Signal::Malformed { code, text } => {
                    Warning::SignalMalformed { code: (*code).to_owned(), text: text.clone() }
                }
                Signal::Said(ControlSignal::DiscoveryLocal(text)) => {
                    Warning::Discovery { global: false, text: text.clone() }
                }
                Signal::Said(ControlSignal::DiscoveryGlobal(text)) => {
                    Warning::Discovery { global: true, text: text.clone() }
                }
                _ => continue,
            };
            self.add_event(Event::Warned(warning))?;
        }
        Ok(())
    }

    /// Tries the agent again after a crash, a few times.
    fn restart_agent(
        &mut self,
        why: YieldReason,
        code: EndCode,
        cause: String,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        // A crash for lack of memory is counted in both.
        let count = self.task.counters.restarts.saturating_sub(self.task.counters.shortages);
        if count > self.task.limits.restarts_max {
            let repeated = if count > 1 { format!(", {count} times in a row") } else { String::new() };
            return self.end_task(EndKind::Failed, code, cause + &repeated);
        }
        self.back_off(why, backoff_ms(count, 500, 30_000), cause, step)
    }

    fn back_off(
        &mut self,
        why: YieldReason,
        ms: u64,
        cause: String,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        self.yield_attempt(why, None)?;
        let until = self.at.plus_ms(add_jitter(self.task.id, ms));
        self.add_event(Event::Waited { wait: WaitReason::Backoff { until, cause }, then: step })
    }

    fn yield_attempt(&mut self, why: YieldReason, feedback: Option<Feedback>) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt;
        self.add_event(Event::Yielded { attempt, why, feedback })
    }

    fn apply_stop(&mut self, stop: StopRequest, step: StepName) -> Result<(), NewsRefusal> {
        match stop {
            StopRequest::Pause => {
                self.yield_attempt(YieldReason::Stopped, None)?;
                self.add_event(Event::Waited { wait: WaitReason::Pause, then: step })
            }
            StopRequest::Interrupt => self.yield_attempt(YieldReason::Drained, None),
            StopRequest::Cancel { reason } => self.end_task(EndKind::Cancelled, EndCode::Person, reason),
            StopRequest::Redirect => self.redirect_to_agent(&step),
            StopRequest::Block { reason } => self.end_task(EndKind::Blocked, EndCode::Person, reason),
        }
    }

    /// The stop that was asked for while the work was being checked, if it is being checked at all.
    fn require_checking(&self, otherwise: &'static str) -> Result<Option<StopRequest>, NewsRefusal> {
        match &self.task.state {
            TaskState::Active { doing: AttemptPhase::Checking { stop }, .. } => Ok(stop.clone()),
            _ => Err(not_now_refusal(&self.task, otherwise)),
        }
    }

    fn require_landing(&self) -> Result<StepName, NewsRefusal> {
        match &self.task.state {
            TaskState::Active { step, doing: AttemptPhase::Landing } => Ok(step.clone()),
            _ => Err(not_now_refusal(&self.task, "nothing is being landed")),
        }
    }

    fn require_queued(&self) -> Result<StepName, NewsRefusal> {
        match &self.task.state {
            TaskState::Active { step, doing: AttemptPhase::Queued { .. } } => Ok(step.clone()),
            _ => Err(not_now_refusal(&self.task, "it does not stand in the landing queue")),
        }
    }

    fn note_collected(&mut self, head: &Commit, leftovers: bool) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt;
        if self.task.head.as_ref() != Some(head) || leftovers {
            self.add_event(Event::Collected { attempt, head: head.clone(), leftovers })?;
        }
        if leftovers {
            self.add_event(Event::Warned(Warning::LeftoversCommitted))?;
        }
        Ok(())
    }

    fn handle_gate_report(
        &mut self,
        report: &GateReport,
        concerns: &[ChangeConcern],
        evidence: Option<&TestEvidence>,
        proofs: &[(proof::ProofRun, String)],
        stop: Option<StopRequest>,
    ) -> Result<(), NewsRefusal> {
        let step = self.current_step();
        let repeats = self.task.gate.as_ref().is_some_and(|before| report.repeats_failure(before));
        self.add_event(Event::Verified {
            attempt: self.task.attempt,
            report: report.clone(),
            evidence: evidence.cloned(),
        })?;
        self.note_proofs(&report.head, proofs)?;
        if report.is_empty() {
            self.add_event(Event::Warned(Warning::VerificationEmpty))?;
        }
        for command in &report.commands {
            let name = || command.name.clone();
            let warning = match command.outcome {
                CheckOutcome::Flaky => Some(Warning::Flaky { command: name() }),
                CheckOutcome::Pass => None,
                CheckOutcome::Fail
                | CheckOutcome::Timeout
                | CheckOutcome::Broken
                | CheckOutcome::PreExisting => {
                    (!command.required).then(|| Warning::OptionalFailed { command: name() })
                }
            };
            if let Some(warning) = warning {
                self.add_event(Event::Warned(warning))?;
            }
        }
        if let Some(stop) = stop {
            return self.apply_stop(stop, step);
        }
        let lands = matches!(self.flow_step(&step).kind, StepKind::Land);
        match report.outcome() {
            CheckOutcome::Pass | CheckOutcome::Flaky if self.has_failing_proof(proofs) => {
                let feedback = self.proof_feedback(proofs);
                let result = if lands { StepResult::Red } else { StepResult::Fail };
                self.leave_step(result, Some(feedback))
            }
            CheckOutcome::Pass | CheckOutcome::Flaky => self.handle_green(report, concerns, &step, lands),
            CheckOutcome::Fail | CheckOutcome::Timeout if repeats && is_stuck(&self.task) => {
                let detail = format!(
                    "its agent was told {} times in a row what is red, and changed nothing: {}",
                    self.task.counters.fruitless,
                    report.describe_failures()
                );
                self.end_task(EndKind::Failed, EndCode::NothingChanged, detail)
            }
            CheckOutcome::Fail | CheckOutcome::Timeout => {
                let feedback = verification_feedback(report, lands);
                let result = if lands { StepResult::Red } else { StepResult::Fail };
                self.leave_step(result, Some(feedback))
            }
            CheckOutcome::Broken | CheckOutcome::PreExisting => {
                self.yield_attempt(YieldReason::GateBroken, None)?;
                let wait = gate_wait(report);
                self.add_event(Event::Waited { wait, then: step })
            }
        }
    }

    fn handle_green(
        &mut self,
        report: &GateReport,
        concerns: &[ChangeConcern],
        step: &StepName,
        lands: bool,
    ) -> Result<(), NewsRefusal> {
        // What a person asked to be taken back was made by no agent: there is nothing to look out for.
        let by_an_agent = self.task.is_made_by_an_agent();
        let concerns = &[concerns, &review::review_reasons(&self.task, report)].concat();
        if by_an_agent && !concerns.is_empty() && !self.is_approved(report, concerns) {
            // It stays in this step until a person has looked: a step left is a step passed.
            return self.add_event(Event::ReviewWanted { concerns: concerns.to_vec(), then: step.clone() });
        }
        if lands && self.task.hold.is_some() {
            return Ok(()); // it stays ready for this step
        }
        if lands {
            let run = self.task.run.expect("a landing is part of a run");
            return self.open(step, run, AttemptStart::Queue);
        }
        self.leave_step(StepResult::Pass, None)
    }

    /// Whether a person has looked at just this. They read the work, not the base: when only the base moved and
    /// no other kind of concern came up, their word stands; else a busy queue would ask them for ever. A protected input is
    /// another one on a newer base if its lines differ from those that they saw.
    fn is_approved(&self, report: &GateReport, concerns: &[ChangeConcern]) -> bool {
        let same_tree = self.task.approved.as_ref().is_some_and(|(tree, _)| *tree == report.tree);
        let same_work = self.task.approved_head.as_ref() == Some(&report.head);
        let is_same = |seen: &ChangeConcern, concern: &ChangeConcern| {
            let is_shown = concern.code != ConcernCode::ProtectedInput || seen.detail == concern.detail;
            seen.code == concern.code && is_shown
        };
        let known = |concern: &ChangeConcern| self.task.concerns.iter().any(|seen| is_same(seen, concern));
        same_tree || (same_work && concerns.iter().all(known))
    }

    fn handle_conflict(
        &mut self,
        base: &Commit,
        clashes: &[ConflictingFile],
        stop: Option<StopRequest>,
    ) -> Result<(), NewsRefusal> {
        let step = self.current_step();
        if let Some(stop) = stop {
            return self.apply_stop(stop, step);
        }
        // Without an agent that could be asked, the flow says what happens.
        let by_an_agent = self.task.is_made_by_an_agent();
        let rounds = self.task.counters.conflicts;
        let complex = conflict::classify_conflict(clashes) == conflict::ConflictClass::Complex;
        if by_an_agent && (complex || rounds > self.task.limits.conflicts_max) {
            return self.for_a_person(base, clashes.iter().map(ToString::to_string).collect(), step);
        }
        let list = clashes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        self.return_for_conflict(&step, conflict_feedback(base, &list))
    }

    /// A conflict that a person resolves, within a time.
    fn for_a_person(&mut self, base: &Commit, files: Vec<String>, step: StepName) -> Result<(), NewsRefusal> {
        let TaskLimits { conflict_ms, overdue, .. } = self.task.limits;
        let (conflict_ms, overdue) =
            if self.attended { (conflict_ms, overdue) } else { (0, ConflictTimeoutAction::Defer) };
        let until = self.at.plus_ms(conflict_ms);
        self.yield_attempt(YieldReason::Asked, None)?;
        let wait = WaitReason::Conflict { base: base.clone(), files, until, overdue };
        self.add_event(Event::Waited { wait, then: step })
    }

    /// A moment has come that the task waited for.
    fn handle_due(&mut self) -> Result<(), NewsRefusal> {
        let TaskState::Waiting { wait: WaitReason::Conflict { base, files, overdue, .. }, then, .. } =
            self.task.state.clone()
        else {
            return self.add_event(Event::Resumed { feedback: None });
        };
        let detail =
            || format!("it conflicts with the base in {} and nobody resolved it in time", files.join(", "));
        let overdue = if self.attended { overdue } else { ConflictTimeoutAction::Defer };
        match overdue {
            ConflictTimeoutAction::Defer => self.end_task(EndKind::Blocked, EndCode::ConflictLimit, detail()),
            ConflictTimeoutAction::Skip => {
                self.end_task(EndKind::Cancelled, EndCode::ConflictLimit, detail())
            }
            ConflictTimeoutAction::Retry => {
                self.return_for_conflict(&then, conflict_feedback(&base, &files.join(", ")))
            }
            ConflictTimeoutAction::Notify => {
                let until = self.at.plus_ms(self.task.limits.conflict_ms);
                self.add_event(Event::Waited {
                    wait: WaitReason::Conflict { base, files, until, overdue },
                    then,
                })
            }
        }
    }

    /// Back to the agent, along the edge for a conflict.
    fn return_for_conflict(&mut self, step: &StepName, feedback: Feedback) -> Result<(), NewsRefusal> {
        let result = match self.find_edge(step, StepResult::Conflict) {
            Some(_) => StepResult::Conflict,
            None => StepResult::Fail,
        };
        self.leave_step(result, Some(feedback))
    }

    fn handle_no_changes(&mut self, stop: Option<StopRequest>) -> Result<(), NewsRefusal> {
        let step = self.current_step();
        if let Some(stop) = stop {
            return self.apply_stop(stop, step);
        }
        // A judge looks at it next, whatever it is.
        let judged_next = self.find_edge(&step, StepResult::Fail).is_some_and(|edge| match &edge.to {
            EdgeTarget::Step(to) => matches!(self.flow_step(to).kind, StepKind::Check { .. }),
            EdgeTarget::End | EdgeTarget::Stop => false,
        });
        if judged_next {
            let about = "Nothing has changed yet".to_owned();
            let text = "The branch is where it began and the work tree holds no change.".to_owned();
            return self.leave_step(StepResult::Fail, Some(Feedback { about, text }));
        }
        self.yield_attempt(YieldReason::NothingChanged, None)?;
        // Said twice in a row it is an answer, and a person should hear it; once it may be a slip.
        if self.task.counters.empty_claims > 1 {
            let detail = "the agent says it is complete, twice, but its branch holds no change".to_owned();
            return self.end_task(EndKind::Blocked, EndCode::NothingChanged, detail);
        }
        let feedback = Feedback {
            about: "You signalled COMPLETE, but nothing changed".to_owned(),
            text:
                "Your branch is where it began and the work tree holds no change. Do the work and commit it. \
                   If nothing needs to change, signal BLOCKED with the reason."
                    .to_owned(),
        };
        let lands = matches!(self.flow_step(&step).kind, StepKind::Land);
        self.leave_step(if lands { StepResult::Red } else { StepResult::Fail }, Some(feedback))
    }

    /// A task waits for a resource that is missing, however long that takes: it never fails for it. If the resource can
    /// be had and the effect fails all the same, the effect needs more of it than there is, so the tries are bounded.
    fn handle_exhausted_resource(
        &mut self,
        resource: MachineResource,
        is_missing: bool,
        detail: &str,
    ) -> Result<(), NewsRefusal> {
        const PAUSE_MS: u64 = 1_000; // nothing is started before the resource is back, whoever is due
        let step = match self.machine_trouble()? {
            MachineTrouble::Stopped => return Ok(()),
            MachineTrouble::At(step) => step,
        };
        let cause = format!("this machine is out of {resource}: {detail}");
        if is_missing {
            return self.back_off(YieldReason::NotYet, PAUSE_MS, cause, step);
        }
        if self.task.counters.shortages >= SHORTAGE_TRIES_MAX {
            return self.end_task(EndKind::Failed, EndCode::Machine, cause);
        }
        let pause = backoff_ms(self.task.counters.shortages + 1, PAUSE_MS, 60_000);
        self.back_off(YieldReason::Shortage, pause, cause, step)
    }

    /// The agent crashed while the kernel ended processes for lack of memory: a shortage, and no fault of the agent.
    fn handle_memory_crash(&mut self, step: StepName) -> Result<(), NewsRefusal> {
        const PAUSE_MS: u64 = 2_000; // what else needs the memory may end meanwhile
        let cause = format!(
            "this machine is out of {}: the kernel ended processes, and the agent with them (OOM killer)",
            MachineResource::Memory
        );
        if self.task.counters.shortages >= SHORTAGE_TRIES_MAX {
            return self.end_task(EndKind::Failed, EndCode::Machine, cause);
        }
        let pause = backoff_ms(self.task.counters.shortages + 1, PAUSE_MS, 60_000);
        self.back_off(YieldReason::Shortage, pause, cause, step)
    }

    fn handle_machine_failure(&mut self, detail: &str, hopeless: bool) -> Result<(), NewsRefusal> {
        let step = match self.machine_trouble()? {
            MachineTrouble::Stopped => return Ok(()),
            MachineTrouble::At(step) => step,
        };
        if hopeless || self.task.counters.machine >= MACHINE_TRIES_MAX {
            return self.end_task(EndKind::Failed, EndCode::Machine, detail.to_owned());
        }
        let pause = backoff_ms(self.task.counters.machine + 1, 1_000, 60_000);
        self.back_off(YieldReason::Machine, pause, detail.to_owned(), step)
    }

    /// The step that an effect failed in, unless a person had asked the task to stop: that is what happens then.
    fn machine_trouble(&mut self) -> Result<MachineTrouble, NewsRefusal> {
        let Some(step) = self.task.step().cloned() else {
            return Err(not_now_refusal(&self.task, "nothing is under way"));
        };
        let TaskState::Active { doing, .. } = &self.task.state else {
            return Err(not_now_refusal(&self.task, "nothing is under way"));
        };
        let stop = match doing {
            AttemptPhase::Preparing { stop, .. }
            | AttemptPhase::Running { stop, .. }
            | AttemptPhase::Checking { stop }
            | AttemptPhase::Exchanging { stop }
            | AttemptPhase::Recovering { stop } => stop.clone(),
            AttemptPhase::Queued { .. } | AttemptPhase::Landing | AttemptPhase::Reporting => None,
        };
        match stop {
            Some(stop) => self.apply_stop(stop, step).map(|()| MachineTrouble::Stopped),
            None => Ok(MachineTrouble::At(step)),
        }
    }

    fn handle_answer(&mut self, text: &str) -> Result<(), NewsRefusal> {
        match self.task.state.clone() {
            TaskState::Waiting { wait: WaitReason::Question { text: question }, then, .. } => {
                let feedback = Feedback {
                    about: "A person answered your question".to_owned(),
                    text: format!("You asked: {question}\nThe answer: {text}"),
                };
                let asks =
                    self.task.flow.as_ref().and_then(|flow| flow.find_step(&then)).map(|step| &step.kind);
                match asks {
                    Some(StepKind::Ask { .. }) => {
                        return self.leave_step(StepResult::Answered, Some(feedback));
                    }
                    Some(StepKind::Target) => return self.handle_target_answer(&question, text, &then),
                    _ => {}
                }
                self.add_event(Event::Resumed { feedback: Some(feedback) })
            }
            TaskState::Waiting { wait: WaitReason::Conflict { base, files, .. }, then, .. } => {
                // Somebody merged in the workspace, or tells the agent how.
                let done = matches!(text.trim().to_ascii_lowercase().as_str(), "resolved" | "done" | "ok");
                if done {
                    return self.add_event(Event::Resumed { feedback: None });
                }
                let mut feedback = conflict_feedback(&base, &files.join(", "));
                feedback.text.push_str(&format!("\nA person says how: {text}\n"));
                self.return_for_conflict(&then, feedback)
            }
            // Whatever they say to that, it means that the login is done.
            TaskState::Waiting { wait: WaitReason::Login { .. }, .. } => {
                self.add_event(Event::Resumed { feedback: None })
            }
            TaskState::Review { then } => match ReviewAnswer::parse(text) {
                ReviewAnswer::Approve(note) => {
                    self.add_event(Event::Reviewed { approved: true, note })?;
                    match self.flow_step(&then).kind {
                        StepKind::Land => Ok(()), // it lands when it is its turn
                        StepKind::Review => self.leave_step(StepResult::Approved, None),
                        _ => self.leave_step(StepResult::Pass, None),
                    }
                }
                ReviewAnswer::Changes(note) => self.handle_changes_requested(&then, note),
            },
            _ => Err(not_now_refusal(&self.task, "it asks nothing")),
        }
    }

    /// A person looked at work: before it landed, or afterwards.
    fn handle_review(&mut self, said: &ReviewInput) -> Result<(), NewsRefusal> {
        if self.task.landed.is_some() {
            return self.sign_off(said);
        }
        let TaskState::Review { then } = self.task.state.clone() else {
            return Err(not_now_refusal(&self.task, "it does not wait for a review"));
        };
        match said {
            ReviewInput::Approve { note } => self.handle_answer(&format!("approve {note}")),
            ReviewInput::Skip => self.handle_answer("approve nobody looked: the review was skipped"),
            ReviewInput::Defer => {
                self.add_event(Event::Waited { wait: WaitReason::Pause, then }) // `retry` verifies it again and asks again
            }
            ReviewInput::Reject { note } => {
                self.add_event(Event::Reviewed { approved: false, note: note.clone() })?;
                self.end_task(EndKind::Cancelled, EndCode::Rejected, note.clone())
            }
            ReviewInput::Changes { issues, note, redo } => {
                let text = review::format_complaint(issues, note);
                match redo {
                    RedoChoice::Keep => self.handle_changes_requested(&then, text),
                    RedoChoice::Fresh | RedoChoice::From(_) => self.restart_task(text, redo),
                }
            }
        }
    }

    /// What a person wants done again, from the beginning or from an earlier state of it.
    fn restart_task(&mut self, text: String, redo: &RedoChoice) -> Result<(), NewsRefusal> {
        self.add_event(Event::Reviewed { approved: false, note: text.clone() })?;
        self.end_task(EndKind::Blocked, EndCode::Rejected, text.clone())?;
        let feedback = Feedback { about: "A reviewer wants it done again".to_owned(), text };
        let fresh = *redo == RedoChoice::Fresh;
        self.add_event(Event::Retried { fresh, feedback: Some(feedback) })?;
        match redo {
            RedoChoice::From(to) => self.add_event(Event::SentBack { to: to.clone() }),
            RedoChoice::Keep | RedoChoice::Fresh => Ok(()),
        }
    }

    /// Landed work was looked at. What a person wants changed about it becomes a task of its own: the engine adds it.
    fn sign_off(&mut self, said: &ReviewInput) -> Result<(), NewsRefusal> {
        if self.task.sign_off == SignOff::NotOwed {
            return Err(not_now_refusal(&self.task, "it has landed and nobody was asked to look at it"));
        }
        let (decision, note) = match said {
            ReviewInput::Approve { note } => (ReviewDecision::Approved, note.clone()),
            ReviewInput::Changes { issues, note, .. } => {
                (ReviewDecision::Redo, review::format_complaint(issues, note))
            }
            ReviewInput::Reject { note } => (ReviewDecision::Rejected, note.clone()),
            ReviewInput::Defer => (ReviewDecision::Deferred, String::new()),
            ReviewInput::Skip => (ReviewDecision::Skipped, String::new()),
        };
        self.add_event(Event::Signed { decision, note })
    }

    /// A reviewer said no: the work goes back to where a failed verification would send it.
    fn handle_changes_requested(&mut self, then: &StepName, note: String) -> Result<(), NewsRefusal> {
        self.add_event(Event::Reviewed { approved: false, note: note.clone() })?;
        let failed = match self.flow_step(then).kind {
            StepKind::Land => StepResult::Red,
            StepKind::Review => StepResult::Changes,
            _ => StepResult::Fail,
        };
        let back = self.find_edge(then, failed).and_then(|edge| match edge.to {
            EdgeTarget::Step(to) => Some(to),
            EdgeTarget::End | EdgeTarget::Stop => None,
        });
        let Some(back) = back else {
            return self.end_task(EndKind::Blocked, EndCode::Rejected, note);
        };
        let feedback = Feedback { about: "A reviewer wants changes".to_owned(), text: note };
        let attempt = self.task.attempt;
        let (step, to) = (then.clone(), EdgeTarget::Step(back));
        self.add_event(Event::Left {
            attempt,
            step,
            result: StepResult::Changes,
            to,
            feedback: Some(feedback),
        })
    }

    fn stop_task(&mut self) -> Result<(), NewsRefusal> {
        match self.task.state.clone() {
            TaskState::Active {
                doing:
                    AttemptPhase::Running {
                        stop: None | Some(StopRequest::Interrupt | StopRequest::Redirect),
                        ..
                    },
                ..
            } => self.ask_to_stop(StopRequest::Pause),
            // A workspace being made, or checked, is not given up half-way: the stop waits until that is over.
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { stop: None, .. }
                    | AttemptPhase::Checking { stop: None | Some(StopRequest::Redirect) }
                    | AttemptPhase::Exchanging { stop: None }
                    | AttemptPhase::Recovering { stop: None },
                ..
            } => self.add_event(Event::StopAsked { stop: StopRequest::Pause }),
            TaskState::Active { step, doing: AttemptPhase::Queued { .. } } => {
                self.apply_stop(StopRequest::Pause, step)
            }
            TaskState::Ready { next: Some(then), .. } => {
                self.add_event(Event::Waited { wait: WaitReason::Pause, then })
            }
            TaskState::Waiting {
                wait:
                    WaitReason::Backoff { .. }
                    | WaitReason::Quota { .. }
                    | WaitReason::Login { .. }
                    | WaitReason::Parts
                    | WaitReason::Blockers { .. }
                    | WaitReason::GateBroken { .. },
                then,
                ..
            } => self.add_event(Event::Waited { wait: WaitReason::Pause, then }),
            _ => Err(not_now_refusal(&self.task, "there is nothing to stop")),
        }
    }

    fn ask_to_stop(&mut self, stop: StopRequest) -> Result<(), NewsRefusal> {
        let (task, attempt) = (self.task.id, self.task.attempt);
        self.add_event(Event::StopAsked { stop: stop.clone() })?;
        self.add_effect(Effect::Kill { task, attempt, stop });
        Ok(())
    }

    /// Ends a task as done without a landing, so that the tasks that need it go on.
    fn accept_task(&mut self, reason: &str) -> Result<(), NewsRefusal> {
        if self.task.landed.is_some() {
            return Err(not_now_refusal(&self.task, "it has landed"));
        }
        if self.task.landing.is_some() {
            return Err(not_now_refusal(&self.task, "it may have landed already; the next run finds out"));
        }
        if self.task.issue.is_some() {
            return Err(not_now_refusal(
                &self.task,
                "it follows an issue; close the issue where it is tracked",
            ));
        }
        match &self.task.state {
            TaskState::Active { .. } => Err(not_now_refusal(
                &self.task,
                "it is being worked on; `landfall stop` with its id stops it first",
            )),
            TaskState::Ended(Ending { kind: EndKind::Done, .. }) => {
                Err(not_now_refusal(&self.task, "it is done"))
            }
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => {
                let detail = format!("you said that it is already done, because {reason}");
                self.end_task(EndKind::Done, EndCode::Person, detail)?;
                if self.task.has_any_workspace() {
                    self.add_effect(Effect::Tidy { task: self.task.id }); // what is in it is kept under a ref
                }
                Ok(())
            }
        }
    }

    fn cancel_task(&mut self, reason: &str) -> Result<(), NewsRefusal> {
        let stop = StopRequest::Cancel { reason: reason.to_owned() };
        if self.task.landed.is_some() {
            return Err(not_now_refusal(&self.task, "it has landed; `landfall rollback` can take it back"));
        }
        let doing = match &self.task.state {
            TaskState::Active { doing, .. } => !matches!(doing, AttemptPhase::Queued { .. }),
            _ => false,
        };
        if self.task.landing.is_some() && !doing {
            let what = match &self.task.state {
                TaskState::Active { .. } => "it may have landed already; the next run finds out",
                _ => "it may have landed already; `landfall retry` finds out",
            };
            return Err(not_now_refusal(&self.task, what));
        }
        match self.task.state.clone() {
            TaskState::Active {
                doing:
                    AttemptPhase::Running {
                        stop:
                            None
                            | Some(
                                StopRequest::Interrupt
                                | StopRequest::Pause
                                | StopRequest::Redirect
                                | StopRequest::Block { .. },
                            ),
                        ..
                    },
                ..
            } => self.ask_to_stop(stop),
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { stop: Some(StopRequest::Cancel { .. }), .. }
                    | AttemptPhase::Checking { stop: Some(StopRequest::Cancel { .. }) }
                    | AttemptPhase::Exchanging { stop: Some(StopRequest::Cancel { .. }) }
                    | AttemptPhase::Recovering { stop: Some(StopRequest::Cancel { .. }) },
                ..
            } => Err(not_now_refusal(&self.task, "it is being cancelled already")),
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { .. }
                    | AttemptPhase::Checking { .. }
                    | AttemptPhase::Exchanging { .. }
                    | AttemptPhase::Recovering { .. },
                ..
            } => self.add_event(Event::StopAsked { stop }),
            TaskState::Active { doing: AttemptPhase::Landing | AttemptPhase::Reporting, .. } => {
                Err(not_now_refusal(
                    &self.task,
                    "it is too late to cancel it; `landfall rollback` can take it back",
                ))
            }
            TaskState::Active { doing: AttemptPhase::Running { .. }, .. } => {
                Err(not_now_refusal(&self.task, "it is being cancelled already"))
            }
            TaskState::Active { doing: AttemptPhase::Queued { .. }, .. }
            | TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(Ending {
                kind: EndKind::Failed | EndKind::Timeout | EndKind::Blocked, ..
            }) => self.end_task(EndKind::Cancelled, EndCode::Person, reason.to_owned()),
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => {
                Err(not_now_refusal(&self.task, "it cannot be cancelled any more"))
            }
        }
    }

    fn retry_task(&mut self, fresh: bool, note: Option<&str>) -> Result<(), NewsRefusal> {
        let feedback =
            note.map(|text| Feedback { about: "A word from the person".to_owned(), text: text.to_owned() });
        match &self.task.state {
            // It landed, and its issue is not done: what is left of it is looked at again.
            TaskState::Ended(Ending { kind: EndKind::Done, .. }) if crate::issue::is_partial(&self.task) => {
                self.add_event(Event::Retried { fresh: false, feedback })
            }
            TaskState::Ended(
                ending @ Ending { kind: EndKind::Failed | EndKind::Timeout | EndKind::Blocked, .. },
            ) => {
                // The base may hold what the workspace holds: it is not given up before that is known.
                let fresh = fresh && self.task.landing.is_none() && self.task.landed.is_none();
                let used_up = ending.code == EndCode::DirectionsUsedUp;
                self.add_event(Event::Retried { fresh, feedback })?;
                if used_up && !fresh && self.begin_direction()? {
                    return Ok(());
                }
                self.enter_by_phase(fresh)
            }
            TaskState::Waiting {
                wait:
                    WaitReason::Pause
                    | WaitReason::Backoff { .. }
                    | WaitReason::Quota { .. }
                    | WaitReason::Login { .. }
                    | WaitReason::GateBroken { .. }
                    | WaitReason::Conflict { .. }
                    | WaitReason::Blockers { .. }
                    | WaitReason::Disk { .. },
                ..
            } => {
                if fresh && self.task.landed.is_none() && self.task.landing.is_none() {
                    let detail = "a person wants it done afresh".to_owned();
                    self.end_task(EndKind::Blocked, EndCode::Person, detail)?;
                    return self.add_event(Event::Retried { fresh, feedback });
                }
                self.add_event(Event::Resumed { feedback })
            }
            TaskState::Ready { .. } if self.task.is_held() => {
                Err(not_now_refusal(&self.task, "you hold it; `landfall task release` lets it continue"))
            }
            _ => Err(not_now_refusal(&self.task, "there is nothing to retry")),
        }
    }

    fn find_edge(&self, step: &StepName, result: StepResult) -> Option<crate::flow::FlowEdge> {
        self.flow_step(step).on.iter().find(|edge| edge.result == result).cloned()
    }

    /// Leaves the current step along the edge for `result`, or stops where the edge's bound is used up.
    fn leave_step(&mut self, result: StepResult, feedback: Option<Feedback>) -> Result<(), NewsRefusal> {
        let step = self.current_step();
        let attempt = self.task.attempt;
        self.record_recovery_outcome(&step, Came::Success, String::new())?;
        let Some(edge) = self.find_edge(&step, result) else {
            let stop = Event::Left { attempt, step, result, to: EdgeTarget::Stop, feedback };
            return self.add_event(stop);
        };
        let taken = self.task.counters.edges.get(&(step.clone(), result)).copied().unwrap_or(0);
        if let Some(max) = edge.max.map(|max| self.edge_bound(&step, result, max))
            && taken >= max
        {
            let detail = match self.flow_step(&step).kind {
                StepKind::Check { checkpoint: GatePoint::PostPlan, .. } => format!(
                    "the plan failed review more than {max} times{}: change the words of the task, or the plan itself",
                    last_complaint(feedback.as_ref())
                        .map(|line| format!(" (\"{line}\")"))
                        .unwrap_or_default()
                ),
                StepKind::Check { checkpoint: GatePoint::MidExec, .. } => format!(
                    "the check on the way sent the work back more than {max} times ({}): read its findings, change the words of \
                     the task or its plan, then retry it",
                    result.word()
                ),
                StepKind::Check { checkpoint: GatePoint::PostExec, .. } => format!(
                    "the check at the end refused the work more than {max} times ({}): read its findings, change the words of \
                     the task, then retry it",
                    result.word()
                ),
                StepKind::Verify | StepKind::Land
                    if matches!(result, StepResult::Fail | StepResult::Red)
                        && let Some(red) = self.red_checks() =>
                {
                    format!(
                        "its checks are still red ({red}), after step `{step}` failed {} times",
                        taken + 1
                    )
                }
                _ => {
                    let ended = format!("step `{step}` ended with `{}` more than {max} times", result.word());
                    match last_complaint(feedback.as_ref()) {
                        Some(line) => format!("\"{line}\": {ended}"),
                        None => ended,
                    }
                }
            };
            if let Some(converge) = self.can_give_up(&step) {
                return self.give_up_stage(&converge, detail);
            }
            return self.end_task(EndKind::Failed, EndCode::EdgeLimit, detail);
        }
        let ends = edge.to == EdgeTarget::End;
        self.add_event(Event::Left { attempt, step, result, to: edge.to, feedback })?;
        if ends && self.task.has_any_workspace() {
            self.add_effect(Effect::Tidy { task: self.task.id });
        }
        Ok(())
    }

    /// What is red of the work, if its checks were red when they last ran.
    fn red_checks(&self) -> Option<String> {
        let report = self.task.gate.as_ref()?;
        Some(report.describe_failures()).filter(|complaint| !complaint.is_empty())
    }

    fn end_task(&mut self, kind: EndKind, code: EndCode, detail: String) -> Result<(), NewsRefusal> {
        self.add_event(Event::Ended(Ending { kind, code, detail }))
    }
}

const LAST_WORDS_MAX: usize = 160; // characters: a line of a sentence, not a report

/// The last line that says something, cut to what fits into a sentence.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(truncate_chars(line, LAST_WORDS_MAX))
}

/// What was wrong the last time: the first line of what the agent would have been told.
fn last_complaint(feedback: Option<&Feedback>) -> Option<String> {
    let line = feedback?.text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(truncate_chars(line, LAST_WORDS_MAX))
}

fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether so many runs in a row left no commit that its agent may be stuck. While it works on that is worth a warning; where
/// the same work is red once more it is the end.
fn is_stuck(task: &Task) -> bool {
    task.counters.fruitless >= task.limits.stuck_after.max(1)
}

/// Whether a run ended by a fault of the agent itself, not of its account, its provider or this machine.
fn is_own_failure(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Crashed { .. }
        | Verdict::Stalled
        | Verdict::Looping
        | Verdict::ContextUsedUp
        | Verdict::Blocked { .. }
        | Verdict::Pending { .. } => true,
        Verdict::Complete
        | Verdict::Checkpoint { .. }
        | Verdict::Continue
        | Verdict::Quota { .. }
        | Verdict::Transient { .. }
        | Verdict::Unauthorized { .. }
        | Verdict::SessionGone
        | Verdict::OverBudget { .. }
        | Verdict::OutOfTime
        | Verdict::Stopped
        | Verdict::NotStarted { .. }
        | Verdict::Lost => false,
    }
}

const JUST_PASSED_MS: u64 = 60_000; // a busy machine takes seconds to see that an agent has ended
const QUOTA_WAIT_MAX_MS: u64 = 8 * 24 * 60 * 60 * 1000; // no plan resets later than in a week; a wrong clock might
/// Runs in a row that may end without the output of their step.
pub const OUTPUT_TRIES_MAX: u32 = 3; // an agent that was told twice what is missing does not write it the next time either
const SHORTAGE_TRIES_MAX: u32 = 20; // a quarter of an hour: a shortage that comes and goes is over by then
const MACHINE_TRIES_MAX: u32 = 3; // a full disk or a broken git does not mend itself in seconds

/// What an effect that failed means for its task.
enum MachineTrouble {
    /// It stops, as a person asked.
    Stopped,
    /// It is in this step.
    At(StepName),
}

/// What a person says to a review.
enum ReviewAnswer {
    Approve(String),
    Changes(String),
}

impl ReviewAnswer {
    fn parse(text: &str) -> Self {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match word.trim_end_matches([':', ',', '.']).to_ascii_lowercase().as_str() {
            "approve" | "approved" => Self::Approve(rest.trim().to_owned()),
            // "ok, but …" is an objection.
            "yes" | "ok" if rest.trim().is_empty() => Self::Approve(String::new()),
            "changes" | "reject" | "no" if !rest.trim().is_empty() => Self::Changes(rest.trim().to_owned()),
            _ => Self::Changes(text.trim().to_owned()),
        }
    }
}

fn budget_used_text(scope: BudgetScope, what: &str) -> String {
    format!("the budget of the {} is used up: {what}", scope.word())
}

fn loop_feedback() -> Feedback {
    Feedback {
        about: "You are going round in a circle".to_owned(),
        text: "You said and did the same thing several times and nothing came of it. Stop repeating it. Say in one \
               sentence what you were trying to reach and why it does not work, then take another way. If there is none, \
               signal BLOCKED with the reason."
            .to_owned(),
    }
}

fn conflict_feedback(base: &Commit, list: &str) -> Feedback {
    Feedback {
        about: "Your work conflicts with the base branch".to_owned(),
        text: format!(
            "The base has moved to commit {base} and your branch no longer merges into it.\n\
             Files in conflict: {list}\n\
             Run `git merge {base}` in your workspace, resolve the conflicts keeping what both sides meant, \
             commit, and signal COMPLETE again."
        ),
    }
}

fn session_gone_feedback() -> Feedback {
    Feedback {
        about: "Your earlier session is gone".to_owned(),
        text: "You start without its memory. What earlier runs came to is told here, what they did is in the commits of \
               your branch: read them before you continue."
            .to_owned(),
    }
}

/// A length of time for people: `30m`, `1h 5m`, `45s`.
#[must_use]
pub(crate) fn spell_ms(ms: u64) -> String {
    let s = ms / 1000;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, 0) => format!("{ms} ms"),
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m {s}s"),
        (h, 0, _) => format!("{h}h"),
        (h, m, _) => format!("{h}h {m}m"),
    }
}

/// Doubles with every try, up to a cap.
pub(crate) fn backoff_ms(tries: u32, first_ms: u64, cap_ms: u64) -> u64 {
    let tries = if seeded_bugs::is_active(SeededBug::SteadyBackoff) { 1 } else { tries };
    first_ms.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(cap_ms)
}

/// The pause after so many passing errors of a provider in a row.
fn transient_ms(count: u32) -> u64 {
    backoff_ms(count, 1_000, 600_000)
}

/// How long a task leaves its provider alone after so many passing errors in a row.
pub(crate) fn trouble_ms(task: TaskId, count: u32) -> u64 {
    add_jitter(task, transient_ms(count))
}

/// Up to a tenth more, by the task's number, so that tasks that failed together do not come back together.
pub(crate) fn add_jitter(task: TaskId, ms: u64) -> u64 {
    let spread = u64::from(task.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    ms + ms * spread / 2560
}

fn verification_feedback(report: &GateReport, lands: bool) -> Feedback {
    let mut text = String::new();
    for command in report.blocking_commands() {
        let how = match (command.outcome, command.exit) {
            (CheckOutcome::Timeout, _) => {
                format!("TIMEOUT ({}s / {}s)", command.took_ms / 1000, command.limit_ms / 1000)
            }
            (_, Some(0)) if command.tests == Some(0) => "ran no test, but runs tests on the base".to_owned(),
            (_, Some(code @ (126 | 127))) => {
                format!("exit code {code}: could not be run on your work, but passes on the base")
            }
            (_, Some(code)) => format!("exit code {code}"),
            (_, None) => "killed".to_owned(),
        };
        // An agent cannot open the sandbox, but its work can use another place.
        let denied: String = command
            .denied
            .iter()
            .map(|denial| format!("{}; use `$TMPDIR` instead\n", denial.to_sentence(&command.name)))
            .collect();
        text.push_str(&format!(
            "`{}` ({}): {how}\n{denied}{}\n",
            command.command,
            command.name,
            command.excerpt.trim_end()
        ));
    }
    let about = if lands {
        format!("Verification failed together with what landed meanwhile (base {})", report.base.short_hash())
    } else {
        "Verification failed on your work merged with the base".to_owned()
    };
    if lands {
        text.push_str(&format!("Run `git merge {}` in your workspace to work on top of it.\n", report.base));
    }
    Feedback { about, text }
}

/// Why the gate says nothing about the work, in words.
pub(crate) fn gate_detail(report: &GateReport) -> String {
    match gate_wait(report) {
        WaitReason::GateBroken { command, detail } => {
            format!("the check `{command}` cannot be trusted: {detail}")
        }
        other => unreachable!("a gate waits for itself, not for {other:?}"),
    }
}

fn gate_wait(report: &GateReport) -> WaitReason {
    let worst = report.blocking_commands().max_by_key(|command| command.outcome);
    let Some(command) = worst else {
        return WaitReason::GateBroken {
            command: "verify".to_owned(),
            detail: "the project requires verification but configures no command".to_owned(),
        };
    };
    if let Some(detail) = command.denial_text() {
        return WaitReason::GateBroken { command: command.name.clone(), detail };
    }
    let detail = match (command.outcome, command.exit) {
        (CheckOutcome::PreExisting, _) => "it fails on the base as well, without this work".to_owned(),
        (_, Some(127)) => format!("`{}` was not found (exit code 127)", command.command),
        (_, Some(126)) => format!("`{}` could not be executed (exit code 126)", command.command),
        (_, Some(code)) if command.tests == Some(0) => format!("it ran no test (exit code {code})"),
        (_, Some(code)) => format!("exit code {code}"),
        (_, None) => "it was killed or could not be started".to_owned(),
    };
    WaitReason::GateBroken { command: command.name.clone(), detail }
}
