//! Bookkeeping: what a fact means. Replays every journal ever written, so it holds no policy.
//!
//! Every event leaves a state that can be gone on from by itself: after an end of an iteration or a check the
//! task is ready for the same step, until a later event of the same decision says more. So a journal that is cut
//! after any event still recovers.

use thiserror::Error;

use crate::budget::Spending;
use crate::driving::{AgentRunTraces, AgentSession, PastRun, SessionStart};
use crate::event::{AttemptStart, Event};
use crate::flow::{EdgeTarget, StepKind, TrackerOperation};
use crate::input::YieldReason;
use crate::issue::IssueEvent;
use crate::judge::Verdict;
use crate::liveness::AccountWaitTime;
use crate::recover::landing_candidate;
use crate::sandbox::Confinement;
use crate::seeded_bugs::{self, SeededBug};
use crate::signal::AgentUsage;
use crate::staged::StagedEvent;
use crate::task::{
    AttemptPhase, Counters, EndCode, EndKind, Ending, Feedback, LandingRecord, RequestedStep, SignOff, Task,
    TaskHold, TaskState,
};
use crate::{StepName, StepResult, TaskId, Timestamp, WaitReason};

/// A fact that cannot follow: the journal is damaged, or the engine has a bug.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{task}: `{event}` cannot follow {state}")]
pub struct IllegalEvent {
    /// Of this task.
    pub task: TaskId,
    /// The event's name.
    pub event: &'static str,
    /// Where the task was.
    pub state: String,
}

const WARNINGS_MAX: usize = 50; // the journal keeps them all; a task shows the latest
const PAST_MAX: usize = 10; // what a newcomer reads; the log has them all
const FEEDBACK_MAX: usize = 8; // older words have been through a prompt already

/// What the task is after `event`. Only [`Event::Added`] may come without a task.
///
/// # Errors
/// When the event cannot follow.
pub fn apply(task: Option<Task>, id: TaskId, at: Timestamp, event: &Event) -> Result<Task, IllegalEvent> {
    let illegal = |state: &str| IllegalEvent { task: id, event: event.name(), state: state.to_owned() };
    match (task, event) {
        (None, Event::Added { spec }) => Ok(Task::from_spec(id, spec.clone(), at)),
        (Some(_), Event::Added { .. }) => Err(illegal("an existing task")),
        (None, _) => Err(illegal("nothing")),
        (Some(mut task), _) => {
            apply_in_place(&mut task, at, event)?;
            Ok(task)
        }
    }
}

/// The same in place. A task that refused an event is to be dropped.
pub(crate) fn apply_in_place(task: &mut Task, at: Timestamp, event: &Event) -> Result<(), IllegalEvent> {
    let illegal = |state: String| IllegalEvent { task: task.id, event: event.name(), state };
    if let Some(attempt) = event.fencing_attempt()
        && attempt != task.attempt
        && !seeded_bugs::is_active(SeededBug::MissingFence)
    {
        return Err(illegal(format!("attempt {} (the event has {attempt})", task.attempt)));
    }
    if !change_task(task, at, event) {
        return Err(IllegalEvent { task: task.id, event: event.name(), state: task.state.name() });
    }
    task.changed = at;
    Ok(())
}

/// Changes the task, or says that the event cannot follow.
fn change_task(task: &mut Task, at: Timestamp, event: &Event) -> bool {
    match event {
        Event::Added { .. } => return false,
        Event::Edited { spec } => {
            match (&task.state, spec.draft) {
                (TaskState::Draft, false) => task.state = TaskState::Ready { next: None, since: at },
                (TaskState::Ready { next: None, .. }, true) => task.state = TaskState::Draft,
                (_, _) => {}
            }
            task.spec = spec.clone();
        }
        Event::Offered { head } => task.head = Some(head.clone()),
        Event::Bound { flow, limits, driving } => {
            // It was directed there in the flow that it had before.
            task.directed = task.directed.take().filter(|directed| flow.find_step(&directed.step).is_some());
            task.flow = Some(flow.clone());
            task.limits = limits.clone();
            task.driving = Some(driving.clone());
        }
        Event::Entered { attempt, step, run, opening } => {
            let TaskState::Ready { .. } = task.state else { return false };
            if *attempt != task.attempt.next() {
                return false;
            }
            let doing = match opening {
                AttemptStart::Workspace => AttemptPhase::Preparing { fresh: false, stop: None },
                AttemptStart::FreshWorkspace => AttemptPhase::Preparing { fresh: true, stop: None },
                AttemptStart::Check => AttemptPhase::Checking { stop: None },
                AttemptStart::Land => AttemptPhase::Landing,
                AttemptStart::Queue => AttemptPhase::Queued { since: at },
                AttemptStart::Report => AttemptPhase::Reporting,
                AttemptStart::Exchange => AttemptPhase::Exchanging { stop: None },
                AttemptStart::Recover => AttemptPhase::Recovering { stop: None },
            };
            if *opening == AttemptStart::Land {
                task.landing = landing_candidate(task);
            }
            task.attempt = *attempt;
            task.last_step = Some(step.clone());
            task.counters.attempt = Spending::default();
            task.run = Some(*run);
            task.state = TaskState::Active { step: step.clone(), doing };
        }
        Event::WorkspaceMade { base, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Preparing { fresh, .. } } = &task.state else {
                return false;
            };
            if is_reader_step(task, step) {
                return true; // that of a reader is thrown away
            }
            if task.workspace.is_none() || *fresh {
                task.seen_head = Some(base.clone());
            }
            task.workspace = Some(base.clone());
            task.has_discarded_workspace = false; // this one has replaced it
            task.restart = None;
        }
        Event::IterationBegan { attempt, iteration, talk } => {
            let step = match &task.state {
                TaskState::Active { step, doing: AttemptPhase::Preparing { .. } } => step.clone(),
                TaskState::Ready { next: Some(step), .. } if *attempt == task.attempt => step.clone(),
                _ => return false,
            };
            let green = task.gate.as_ref().is_some_and(|gate| gate.outcome().is_green());
            // Whoever only reads leaves nothing that could land.
            if green && task.landed.is_none() && !is_reader_step(task, &step) {
                task.gate = None; // what this run leaves has not been verified
            }
            task.counters.runs += 1;
            task.account_waits = AccountWaitTime::default();
            *task.counters.step_runs.entry(step.clone()).or_default() += 1;
            if !is_reader_step(task, &step) {
                task.carried.append(&mut task.messages); // what is said from here on is for the run after it
            }
            if let (SessionStart::Resumed { compact: true, .. }, Some(session)) = (talk, &mut task.session) {
                session.compacted = true;
            }
            let doing =
                AttemptPhase::Running { iteration: *iteration, since: at, stop: None, talk: talk.clone() };
            task.state = TaskState::Active { step, doing };
        }
        Event::IterationEnded { iteration, verdict, took_ms, usage, head, traces, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Running { iteration: running, talk, .. } } =
                &task.state
            else {
                return false;
            };
            if running != iteration {
                return false;
            }
            let (step, talk) = (step.clone(), talk.clone());
            let committed = head.is_some() && *head != task.seen_head;
            if head.is_some() {
                task.seen_head.clone_from(head);
            }
            count_words(task, verdict, traces, committed);
            task.account_waits = AccountWaitTime::default();
            task.counters.permission_denials += traces.denials;
            if let Some(level) = traces.sandbox.as_deref().and_then(Confinement::from_word) {
                task.lowest_confinement =
                    Some(task.lowest_confinement.map_or(level, |lowest| lowest.min(level)));
            }
            if traces.revision.is_some() {
                task.revision.clone_from(&traces.revision);
            }
            count_iteration(task, verdict, committed);
            if committed && is_work_step(task, &step) {
                task.issue.iter_mut().for_each(|issue| issue.authored.clone_from(head));
            }
            let spent = Spending { usage: *usage, time_ms: *took_ms };
            task.counters.spent_ms += took_ms;
            task.counters.agent_ms += took_ms;
            task.counters.usage = task.counters.usage.plus(*usage);
            task.counters.attempt = task.counters.attempt.plus(spent);
            if !is_reader_step(task, &step) {
                keep_session(task, &talk, verdict, traces, *usage); // a reviewer's memory is not the worker's
            }
            if task.past.len() == PAST_MAX {
                task.past.remove(0);
            }
            task.past.push(PastRun { iteration: *iteration, verdict: verdict.clone(), committed });
            if was_prompt_read(verdict, traces, *usage, committed) {
                task.carried.clear();
            }
            if verdict.is_own_word() {
                task.feedback.clear(); // it has been in the prompt of a run that heard it out
            }
            make_ready_for(task, step, at);
        }
        Event::Warned(warning) => {
            if task.warnings.len() == WARNINGS_MAX {
                task.warnings.remove(0);
            }
            task.warnings.push(warning.clone());
        }
        Event::Collected { head, .. } => {
            if task.head.as_ref() != Some(head) {
                task.concerns.clear(); // they were about other work
            }
            task.head = Some(head.clone());
            if task.workspace.is_some() {
                task.seen_head = Some(head.clone()); // what the engine committed is not the agent's next commit
            }
        }
        Event::Verified { report, evidence, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Checking { .. } } = &task.state else {
                return false;
            };
            let step = step.clone();
            task.counters.spent_ms += report.took_ms;
            task.counters.machine = 0;
            task.counters.shortages = 0;
            task.counters.empty_claims = 0;
            if !report.outcome().is_green() {
                task.counters.verify_rounds += 1;
            }
            task.gate = Some(report.clone());
            task.evidence.clone_from(evidence);
            task.cleared = false;
            make_ready_for(task, step, at);
        }
        Event::Conflicted { .. } => {
            let TaskState::Active {
                step,
                doing: AttemptPhase::Checking { .. } | AttemptPhase::Queued { .. },
            } = &task.state
            else {
                return false;
            };
            let step = step.clone();
            task.counters.conflicts += 1;
            task.counters.empty_claims = 0; // what conflicts is a change
            task.gate = None;
            task.landing = None; // nor does the base hold what it conflicts with
            make_ready_for(task, step, at);
        }
        Event::BaseMoved { .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Landing } = &task.state else { return false };
            let step = step.clone();
            task.gate = None;
            task.landing = None;
            make_ready_for(task, step, at);
        }
        Event::Opinion { head, findings, .. } => {
            let more = task.issue.as_mut().is_some_and(|issue| issue.read_once_more());
            task.counters.reviews += u32::from(!more);
            if let Some(findings) = findings {
                task.findings.clone_from(findings);
                task.reviewed_head.clone_from(head);
                task.reply = None;
            }
        }
        Event::Replied { text } => task.reply = Some(text.clone()),
        Event::Strode { stride, .. } => {
            let TaskState::Active { doing: AttemptPhase::Running { .. }, .. } = &task.state else {
                return false;
            };
            let steps = stride.steps_since(task.stride.as_ref());
            task.counters.strides = task.counters.strides.saturating_add(steps);
            task.counters.stalls_step = 0; // it goes on; in all they still count
            // It came forward: the same closing words are those of another step.
            task.counters.same_words = 0;
            task.last_words = None;
            task.stride = Some(stride.clone());
        }
        Event::AccountWaitBegan { until, .. } => {
            let TaskState::Active { doing: AttemptPhase::Running { .. }, .. } = &task.state else {
                return false;
            };
            task.account_waits.begin_wait(at, *until);
        }
        Event::AccountWaitEnded { .. } => {
            let TaskState::Active { doing: AttemptPhase::Running { .. }, .. } = &task.state else {
                return false;
            };
            task.account_waits.end(at);
        }
        Event::SentBack { to } => {
            let (TaskState::Ended(_) | TaskState::Ready { .. }) = task.state else { return false };
            task.has_discarded_workspace |= task.workspace.take().is_some();
            task.session = None;
            task.head = None;
            task.gate = None;
            task.restart = Some(to.clone());
            // Operations put it there: it is work, whoever goes on from it.
            let mended = task.recoveries.tried.last().is_some_and(|it| it.is_done());
            task.issue.iter_mut().filter(|_| mended).for_each(|issue| issue.authored = Some(to.clone()));
        }
        Event::ReviewOwed => task.sign_off = SignOff::Owed,
        Event::Signed { decision, note } => {
            if task.sign_off == SignOff::NotOwed {
                return false;
            }
            task.sign_off = SignOff::Given(*decision, note.clone());
        }
        Event::LandingBegan { report, .. } => {
            let TaskState::Active { doing: doing @ AttemptPhase::Queued { .. }, .. } = &mut task.state else {
                return false;
            };
            *doing = AttemptPhase::Landing;
            task.gate = Some(report.clone());
            task.landing = None;
            task.landing = landing_candidate(task);
        }
        Event::Requeued { unsure, .. } => {
            let TaskState::Active { doing: doing @ AttemptPhase::Landing, .. } = &mut task.state else {
                return false;
            };
            *doing = AttemptPhase::Queued { since: at };
            if !unsure {
                task.landing = None;
            }
        }
        Event::Ejected { report, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Queued { .. } } = &task.state else {
                return false;
            };
            let step = step.clone();
            task.counters.verify_rounds += 1;
            task.gate = Some(report.clone());
            task.cleared = false;
            task.landing = None;
            make_ready_for(task, step, at);
        }
        Event::Left { step, result, to, feedback, .. } => {
            if task.step() != Some(step) || matches!(task.state, TaskState::Ended(_)) {
                return false;
            }
            take_edge(task, step, *result);
            if is_passed(task, step, *result) {
                task.counters.edges.retain(|(of, _), _| of != step); // its rounds were for this
            }
            if *result == StepResult::Pass {
                task.cleared = true;
            }
            task.counters.stalls_step = 0;
            task.counters.outputs_missing = 0;
            task.counters.same_words = 0;
            task.last_words = None;
            task.feedback.extend(feedback.clone());
            task.state = match to {
                EdgeTarget::Step(next) => TaskState::Ready { next: Some(next.clone()), since: at },
                EdgeTarget::End => {
                    let code = if task.landed.is_some() { EndCode::Landed } else { EndCode::Accepted };
                    TaskState::Ended(Ending { kind: EndKind::Done, code, detail: String::new() })
                }
                EdgeTarget::Stop => TaskState::Ended(Ending {
                    kind: EndKind::Blocked,
                    code: EndCode::FlowStop,
                    detail: format!("step `{step}` ended with `{}`", result.word()),
                }),
            };
            apply_user_step(task, step, at);
        }
        Event::Yielded { why, feedback, .. } => {
            let Some(step) = task.step().cloned() else { return false };
            count_parting(task, *why);
            if *why == YieldReason::NothingChanged {
                task.landing = None; // whoever looked for it on the base looked for this, too
            }
            task.feedback.extend(feedback.clone());
            make_ready_for(task, step.clone(), at);
            apply_user_step(task, &step, at);
        }
        Event::Waited { wait, then } => {
            if matches!(task.state, TaskState::Ended(_) | TaskState::Draft) {
                return false;
            }
            match wait {
                WaitReason::Quota { .. } => task.counters.quota_waits += 1,
                WaitReason::Login { .. } => task.counters.logins += 1,
                WaitReason::Dependency(_)
                | WaitReason::Slot
                | WaitReason::Turn(_)
                | WaitReason::Question { .. }
                | WaitReason::Backoff { .. }
                | WaitReason::Disk { .. }
                | WaitReason::Budget { .. }
                | WaitReason::Pause
                | WaitReason::Conflict { .. }
                | WaitReason::Parts
                | WaitReason::Blockers { .. }
                | WaitReason::GateBroken { .. } => {}
            }
            task.state = TaskState::Waiting { wait: wait.clone(), then: then.clone(), since: at };
        }
        Event::Resumed { feedback } => {
            let TaskState::Waiting { then, .. } = &task.state else { return false };
            let then = then.clone();
            task.feedback.extend(feedback.clone());
            make_ready_for(task, then, at);
        }
        Event::ReviewWanted { concerns, then } => {
            task.concerns.clone_from(concerns);
            task.state = TaskState::Review { then: then.clone() };
        }
        Event::Reviewed { approved, note } => {
            let TaskState::Review { then } = &task.state else { return false };
            let then = then.clone();
            task.cleared = *approved;
            if *approved {
                task.approved = task.gate.as_ref().map(|gate| (gate.tree.clone(), note.clone()));
                task.approved_head = task.gate.as_ref().map(|gate| gate.head.clone());
            } else {
                task.gate = None; // what a person refused is no candidate, however green
                (task.approved, task.approved_head) = (None, None);
            }
            make_ready_for(task, then, at);
        }
        Event::Landed { commit, base_before, tree, proof, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Landing | AttemptPhase::Queued { .. } } =
                &task.state
            else {
                return false;
            };
            let step = step.clone();
            task.landing = None;
            task.landed = Some(LandingRecord {
                commit: commit.clone(),
                base_before: base_before.clone(),
                tree: tree.clone(),
                proof: proof.clone(),
                at,
            });
            make_ready_for(task, step, at);
        }
        Event::Reported { report, certificate, .. } => {
            let TaskState::Active { step, doing: AttemptPhase::Reporting } = &task.state else {
                return false;
            };
            let step = step.clone();
            task.reported = Some((report.clone(), certificate.clone()));
            make_ready_for(task, step, at);
        }
        Event::StopAsked { stop } => match &mut task.state {
            TaskState::Active {
                doing:
                    AttemptPhase::Preparing { stop: slot, .. }
                    | AttemptPhase::Running { stop: slot, .. }
                    | AttemptPhase::Checking { stop: slot }
                    | AttemptPhase::Exchanging { stop: slot }
                    | AttemptPhase::Recovering { stop: slot },
                ..
            } => {
                *slot = Some(stop.clone());
            }
            _ => return false,
        },
        Event::Ended(ending) => {
            if matches!(ending.kind, EndKind::Failed | EndKind::Timeout | EndKind::Blocked) {
                task.counters.machine = 0;
                task.counters.shortages = 0;
            }
            if ending.code == EndCode::LandingMismatch {
                task.landing = None;
            }
            task.state = TaskState::Ended(ending.clone());
        }
        Event::Retried { fresh, feedback } => {
            let TaskState::Ended(ending) = &task.state else { return false };
            if ending.code == EndCode::DirectionsUsedUp {
                task.staged.exclusions_lifted = task.staged.exclusions.len();
            }
            let Counters { retries, runs, step_runs, usage, agent_ms, .. } =
                std::mem::take(&mut task.counters);
            task.counters =
                Counters { retries: retries + 1, runs, step_runs, usage, agent_ms, ..Counters::default() };
            task.recoveries.note_user_retry();
            task.feedback.clear();
            task.feedback.extend(feedback.clone());
            if let Some(issue) = &mut task.issue {
                issue.looks = 0;
            }
            if *fresh {
                task.session = None;
            }
            if task.landing.is_none() && task.landed.is_none() {
                task.gate = None;
            }
            // Work that was offered, not made in a workspace, is all there is: it stays.
            if *fresh && task.workspace.take().is_some() {
                task.has_discarded_workspace = true;
                task.head = None;
            }
            task.state = TaskState::Ready { next: None, since: at };
        }
        Event::WorkspaceRemoved { .. } => {
            task.workspace = None;
            task.has_discarded_workspace = false;
            task.session = None; // it knows files that are gone
        }
        Event::Messaged { about: None, text } => task.messages.push(text.clone()),
        Event::Messaged { about: Some(about), text } => {
            task.feedback.push(Feedback { about: about.clone(), text: text.clone() });
        }
        Event::Held { reason } => {
            if matches!(task.state, TaskState::Ended(_) | TaskState::Draft) {
                return false;
            }
            task.hold = Some(TaskHold { reason: reason.clone(), since: at, this_run: false });
        }
        Event::Staged(event) => return task.staged.apply_event(at, event) && apply_staged_event(task, event),
        Event::Directed { step, alone } => {
            let directed = RequestedStep { step: step.clone(), alone: *alone };
            match &task.state {
                TaskState::Ended(_) => return false,
                TaskState::Active { .. } => {}
                TaskState::Draft
                | TaskState::Ready { .. }
                | TaskState::Waiting { .. }
                | TaskState::Review { .. } => {
                    make_ready_for(task, step.clone(), at);
                }
            }
            task.hold = None;
            task.directed = Some(directed);
        }
        Event::Reopened { text } => {
            let TaskState::Ended(Ending { kind: EndKind::Done, .. }) = task.state else { return false };
            let Counters { retries, runs, step_runs, usage, agent_ms, .. } =
                std::mem::take(&mut task.counters);
            task.counters = Counters { retries, runs, step_runs, usage, agent_ms, ..Counters::default() };
            task.staged.focus = None; // what is wanted now is another stage, and an objective to say yes to
            if let Some(objective) = &mut task.staged.objective {
                (objective.shown, objective.confirmed) = (None, None);
            }
            reset_for_rework(task);
            let about = "The person wants more of what was done".to_owned();
            task.feedback = vec![Feedback { about, text: text.clone() }];
            task.state = TaskState::Ready { next: None, since: at };
        }
        Event::Issue(event) => {
            let issue = task.issue.get_or_insert_default();
            issue.apply_event(at, event);
            match event {
                IssueEvent::Reworked { .. } => rework_issue(task),
                IssueEvent::Wanted(_)
                | IssueEvent::Routed(_)
                | IssueEvent::PartsOver(_)
                | IssueEvent::PartsCame { .. }
                | IssueEvent::Levelled { .. }
                | IssueEvent::Seen { .. }
                | IssueEvent::Offered { .. }
                | IssueEvent::Checks { .. }
                | IssueEvent::Looked { .. }
                | IssueEvent::Accepted { .. }
                | IssueEvent::Parted { .. } => {}
            }
        }
        Event::Released => task.hold = None,
        Event::LimitsSet { limits } => {
            task.own_limits = task.own_limits.merge_newer(*limits);
            task.limits = task.own_limits.over(task.limits.clone());
        }
        Event::Recovery(event) => return task.recoveries.apply_event(at, event),
    }
    if matches!(task.state, TaskState::Ended(_)) {
        task.hold = None; // who takes it up again wants it to go on
    }
    // Whatever ended the run before it could read them: the next one carries them.
    if !matches!(task.state, TaskState::Active { doing: AttemptPhase::Running { .. }, .. }) {
        task.messages.splice(..0, task.carried.drain(..));
    }
    let over = task.feedback.len().saturating_sub(FEEDBACK_MAX);
    task.feedback.drain(..over);
    true
}

/// What landed is to be worked on again, from the base as it is by then.
fn reset_for_rework(task: &mut Task) {
    task.landed_before.extend(task.landed.take());
    (task.gate, task.cleared, task.reported) = (None, false, None);
    (task.head, task.workspace, task.session) = (None, None, None);
    (task.approved, task.approved_head) = (None, None);
    task.sign_off = SignOff::NotOwed;
    task.concerns.clear();
}

/// What landed does not hold what its issue promised: another piece of work, with rounds of its own.
fn rework_issue(task: &mut Task) {
    reset_for_rework(task);
    (task.reviewed_head, task.reply) = (None, None);
    task.issue.iter_mut().for_each(|issue| issue.authored = None);
    task.findings.clear();
    task.counters.reviews = 0;
    let flow = task.flow.clone();
    let accepts = |step: &StepName| {
        let step = flow.as_ref().and_then(|flow| flow.find_step(step));
        step.is_some_and(|step| matches!(step.kind, StepKind::Tracker { act: TrackerOperation::Accept }))
    };
    task.counters.edges.retain(|(of, _), _| accepts(of));
}

/// Whether the agent of a step makes what lands, rather than a paper about it.
fn is_work_step(task: &Task, step: &StepName) -> bool {
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(step));
    step.is_some_and(|step| matches!(step.kind, StepKind::Agent { iterate: true, .. }))
}

/// Whether the agent of a step reads the work of another, in a workspace of its own.
fn is_reader_step(task: &Task, step: &StepName) -> bool {
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(step));
    step.is_some_and(|step| step.kind.is_reader_step())
}

/// Whether a check let the work pass: what was counted against it is over with.
fn is_passed(task: &Task, step: &StepName, result: StepResult) -> bool {
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(step));
    step.is_some_and(|step| match step.kind {
        StepKind::Check { checkpoint, .. } => result == checkpoint.pass_result(),
        _ => false,
    })
}

/// What a fact about a stage means besides: a new stage has its rounds for itself. How many stages there may be is
/// counted over all of them.
fn apply_staged_event(task: &mut Task, event: &StagedEvent) -> bool {
    if matches!(event, StagedEvent::StageBegan { .. }) {
        let flow = task.flow.clone();
        let kind =
            |step: &StepName| flow.as_ref().and_then(|flow| flow.find_step(step)).map(|step| &step.kind);
        task.counters.edges.retain(|(of, _), _| kind(of) == Some(&StepKind::Converge));
    }
    true
}

/// A person's step comes next; after it, if they wanted it alone, nothing more in this run.
fn apply_user_step(task: &mut Task, left: &StepName, at: Timestamp) {
    let TaskState::Ready { .. } = task.state else {
        task.directed = None;
        return;
    };
    let Some(directed) = task.directed.clone() else { return };
    if directed.step != *left {
        return make_ready_for(task, directed.step, at);
    }
    task.directed = None;
    if directed.alone {
        let reason = "one step was asked for by hand".to_owned();
        task.hold = Some(TaskHold { reason, since: at, this_run: true });
    }
}

/// Ready for the same step: what an event says unless a later one says more.
fn make_ready_for(task: &mut Task, step: StepName, at: Timestamp) {
    task.state = TaskState::Ready { next: Some(step), since: at };
}

fn take_edge(task: &mut Task, step: &StepName, result: StepResult) {
    *task.counters.edges.entry((step.clone(), result)).or_default() += 1;
}

/// One cause, one counter. What a run of the agent came to is counted where it ended.
fn count_parting(task: &mut Task, why: YieldReason) {
    match why {
        YieldReason::NothingChanged => task.counters.empty_claims += 1,
        YieldReason::Machine => task.counters.machine += 1,
        YieldReason::Shortage => task.counters.shortages += 1,
        YieldReason::Overspent => task.counters.overspent += 1,
        YieldReason::OutputMissing => task.counters.outputs_missing += 1,
        YieldReason::Drained
        | YieldReason::Stopped
        | YieldReason::Crashed
        | YieldReason::Lost
        | YieldReason::Stalled
        | YieldReason::NotStarted
        | YieldReason::Quota
        | YieldReason::Transient
        | YieldReason::Asked
        | YieldReason::GateBroken
        | YieldReason::Budget
        | YieldReason::Login
        | YieldReason::Looping
        | YieldReason::SessionGone
        | YieldReason::Redirected
        | YieldReason::Held
        | YieldReason::Recovered
        | YieldReason::NotYet => {}
    }
}

/// Runs that end in the same words and leave nothing are a loop, too.
fn count_words(task: &mut Task, verdict: &Verdict, traces: &AgentRunTraces, committed: bool) {
    let same = traces.words.is_some() && task.last_words == traces.words;
    task.counters.same_words = match verdict {
        Verdict::Continue if same && !committed => task.counters.same_words + 1,
        Verdict::Looping => 0,
        _ => 1,
    };
    task.last_words.clone_from(&traces.words);
}

/// The session that the next run may go on with.
fn keep_session(
    task: &mut Task,
    talk: &SessionStart,
    verdict: &Verdict,
    traces: &AgentRunTraces,
    usage: AgentUsage,
) {
    // One without room would only run out of it again.
    // One that crashed before it said a word may be what crashed it.
    let never_up =
        *talk != SessionStart::New && traces.session.is_none() && matches!(verdict, Verdict::Crashed { .. });
    if never_up || matches!(verdict, Verdict::SessionGone | Verdict::ContextUsedUp) {
        task.session = None;
        return;
    }
    let (Some(driving), Some(id)) = (&task.driving, &traces.session) else { return };
    // Some agents give a resumed session another name.
    let resumed = *talk != SessionStart::New;
    let before = task.session.take().filter(|it| (resumed || it.id == *id) && it.profile == driving.profile);
    let (used, context, compacted) = match before {
        Some(session) => (session.usage, session.context, session.compacted),
        None => (AgentUsage::default(), None, false),
    };
    task.session = Some(AgentSession {
        profile: driving.profile.clone(),
        id: id.clone(),
        usage: used.plus(usage),
        context: traces.context.or(context),
        compacted,
    });
}

/// Whether a run really began, so that what its prompt carried was read. A session is named before the model has answered;
/// so where the provider or the account was in the way, only a commit is proof.
fn was_prompt_read(verdict: &Verdict, traces: &AgentRunTraces, usage: AgentUsage, committed: bool) -> bool {
    match verdict {
        Verdict::Complete
        | Verdict::Blocked { .. }
        | Verdict::Pending { .. }
        | Verdict::Checkpoint { .. }
        | Verdict::Continue => true,
        Verdict::NotStarted { .. }
        | Verdict::SessionGone
        | Verdict::Unauthorized { .. }
        | Verdict::Quota { .. }
        | Verdict::Transient { .. } => committed,
        Verdict::Looping
        | Verdict::OverBudget { .. }
        | Verdict::ContextUsedUp
        | Verdict::Crashed { .. }
        | Verdict::OutOfTime
        | Verdict::Stalled
        | Verdict::Stopped
        | Verdict::Lost => {
            committed || usage != AgentUsage::default() || traces.words.is_some() || traces.session.is_some()
        }
    }
}

/// One cause, one counter: only a run that ended by its own word is an iteration.
fn count_iteration(task: &mut Task, verdict: &Verdict, committed: bool) {
    let counters = &mut task.counters;
    match verdict {
        Verdict::Complete
        | Verdict::Blocked { .. }
        | Verdict::Pending { .. }
        | Verdict::Checkpoint { .. }
        | Verdict::Continue => {
            counters.iterations += 1 + u32::from(seeded_bugs::is_active(SeededBug::DoubleCount));
            if matches!(verdict, Verdict::Blocked { .. } | Verdict::Pending { .. }) {
                counters.asked += 1;
            }
            counters.restarts = 0;
            counters.transients = 0;
            counters.machine = 0;
            counters.shortages = 0;
            counters.fruitless = if committed { 0 } else { counters.fruitless + 1 };
            if committed {
                counters.stalls_step = 0;
                counters.loops = 0;
            }
        }
        Verdict::Crashed { .. } | Verdict::Lost | Verdict::NotStarted { .. } => counters.restarts += 1,
        Verdict::Stalled => {
            counters.stalls_step += 1;
            counters.stalls_total += 1;
        }
        Verdict::Transient { .. } => counters.transients += 1,
        Verdict::OutOfTime => counters.iterations += 1,
        Verdict::Looping => counters.loops = if committed { 1 } else { counters.loops + 1 },
        Verdict::SessionGone => counters.sessions_lost += 1,
        Verdict::Quota { .. } if seeded_bugs::is_active(SeededBug::QuotaIsFailure) => counters.restarts += 1,
        Verdict::Quota { .. }
        | Verdict::Unauthorized { .. }
        | Verdict::OverBudget { .. }
        | Verdict::ContextUsedUp
        | Verdict::Stopped => {}
    }
}

impl TaskState {
    /// The state's name, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Draft => "draft".to_owned(),
            Self::Ready { .. } => "ready".to_owned(),
            Self::Active { step, doing } => format!("active in `{step}` ({})", doing.name()),
            Self::Waiting { wait, .. } => format!("waiting for {}", wait.word()),
            Self::Review { .. } => "review".to_owned(),
            Self::Ended(ending) => format!("over ({})", ending.code.word()),
        }
    }
}

impl AttemptPhase {
    /// The name, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Preparing { .. } => "preparing",
            Self::Running { .. } => "running",
            Self::Checking { .. } => "verifying",
            Self::Queued { .. } => "in the landing queue",
            Self::Landing => "landing",
            Self::Reporting => "reporting",
            Self::Exchanging { .. } => "with the tracker",
            Self::Recovering { .. } => "recovering",
        }
    }
}
