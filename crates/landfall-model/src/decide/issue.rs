//! What follows from an exchange with the tracker of a task: which way its issue takes, what it waits for, and when it is over.

use super::{DecisionDraft, NewsRefusal, add_jitter, backoff_ms, not_now_refusal};
use crate::acceptance::VerifyOutcome;
use crate::event::{Event, StepResult, Warning};
use crate::flow::{StepKind, TrackerOperation};
use crate::input::{ExchangeResult, YieldReason};
use crate::issue::{
    self, AcceptanceOutcome, CiStatus, IssueEvent, IssueOptions, IssueResolution, IssueRoute, IssueSnapshot,
    NextPhase, Pipeline, PullRequestRef, ReviewDepth, RoutingDecision, SubIssue, SubIssueEnd,
    SubIssueOutcome,
};
use crate::recovery::{RecoveryAction, RecoveryContext, RecoveryOutcome, RecoveryStep, RecoveryTier};
use crate::task::{AttemptPhase, EndCode, EndKind, Feedback, StopRequest, TaskState};
use crate::{Commit, StepName, WaitReason};

/// The longest time between two looks for a landing that is being published.
const PUBLISHED_MS_MAX: u64 = 5_000;
/// The longest first pause after a tracker did not answer.
const OUTAGE_MS_MAX: u64 = 5_000;
/// How long is waited between two looks, at most.
const REST_MS: u64 = 10 * 60 * 1000;
/// Looks in all; after that a person is told.
const LOOKS_MAX: u32 = 60;

impl DecisionDraft {
    fn pipeline(&self) -> &Pipeline {
        self.task.issue.as_ref().expect("a flow that follows an issue is granted only to a task that does")
    }

    fn routing_decision(&self) -> Option<RoutingDecision> {
        self.task.issue.as_ref()?.routed
    }

    /// A person says how the issue is to be done.
    pub(super) fn set_issue_options(&mut self, wishes: &IssueOptions) -> Result<(), NewsRefusal> {
        if self.task.issue.as_ref().is_some_and(|issue| issue.wishes == *wishes) {
            return Ok(());
        }
        match &self.task.state {
            TaskState::Active { .. } => {
                Err(not_now_refusal(&self.task, "it is under way; say it when the run is over"))
            }
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => self.add_event(Event::Issue(IssueEvent::Wanted(wishes.clone()))),
        }
    }

    /// Whether nobody is to read the work: its issue is too small for that.
    pub(super) fn needs_no_reader(&self) -> bool {
        self.routing_decision().is_some_and(|routed| routed.depth == ReviewDepth::None)
    }

    /// Whether another reader is to read the same work.
    pub(super) fn needs_another_reader(&self) -> bool {
        self.task.issue.as_ref().is_some_and(|issue| issue.readers > 0)
    }

    /// What needs no exchange is done at once; whether it was.
    pub(super) fn enter_tracker(
        &mut self,
        step: &StepName,
        act: TrackerOperation,
    ) -> Result<bool, NewsRefusal> {
        match act {
            TrackerOperation::Gather if self.pipeline().ends.is_none() && !self.pipeline().level.is_due() => {
                self.add_event(Event::Waited { wait: WaitReason::Parts, then: step.clone() })?;
                Ok(true)
            }
            TrackerOperation::Accept if !self.pipeline().wishes.accept => {
                self.make_current(step)?;
                self.leave_step(StepResult::Partial, None)?;
                Ok(true)
            }
            TrackerOperation::Observe
            | TrackerOperation::Triaged
            | TrackerOperation::Sized
            | TrackerOperation::Offer
            | TrackerOperation::Checks
            | TrackerOperation::Reviewed
            | TrackerOperation::Merged
            | TrackerOperation::Accept
            | TrackerOperation::Gather
            | TrackerOperation::Close => Ok(false),
        }
    }

    pub(super) fn handle_exchange(&mut self, exchanged: &ExchangeResult) -> Result<(), NewsRefusal> {
        let TaskState::Active { step, doing: AttemptPhase::Exchanging { stop } } = self.task.state.clone()
        else {
            return Err(not_now_refusal(&self.task, "no tracker is asked"));
        };
        if let Some(stop) = stop {
            return self.handle_exchange_stop(exchanged, stop, step);
        }
        let act = match self.flow_step(&step).kind {
            StepKind::Tracker { act } => Some(act),
            _ => None,
        };
        match (act, exchanged) {
            // While its parts go on, what keeps a whole from being told of them keeps nobody from working.
            (Some(TrackerOperation::Gather), ExchangeResult::Trouble { .. })
                if self.pipeline().ends.is_none() =>
            {
                self.note_level_checked(None, step)
            }
            (_, ExchangeResult::Trouble { detail, until: Some(until), hopeless: false }) => {
                self.yield_attempt(YieldReason::Transient, None)?;
                let wait = WaitReason::Backoff { until: *until, cause: detail.clone() };
                self.add_event(Event::Waited { wait, then: step })
            }
            (_, ExchangeResult::Trouble { detail, hopeless: true, .. }) => {
                self.end_task(EndKind::Blocked, EndCode::Tracker, detail.clone())
            }
            (_, ExchangeResult::Trouble { detail, until: None, hopeless: false }) => {
                self.wait_for_outside_event(detail, self.poll_ms.min(OUTAGE_MS_MAX), step)
            }
            (_, ExchangeResult::Stuck(climbed)) => self.recover_from_exchange(climbed, &step),
            (_, ExchangeResult::Closed(closed)) => self.handle_issue_closed(*closed),
            (Some(TrackerOperation::Observe), ExchangeResult::Seen { seen, head }) => {
                self.handle_observed_issue(seen, head.as_ref(), &step)
            }
            (Some(TrackerOperation::Triaged), ExchangeResult::Seen { seen, .. }) => {
                let routed = self.note_issue_seen(seen)?;
                self.leave_step(result_after_triage(seen, &routed), None)
            }
            (Some(TrackerOperation::Triaged), ExchangeResult::Unread { why }) => {
                let about = "What you left cannot be read".to_owned();
                self.leave_step(StepResult::Fail, Some(Feedback { about, text: why.clone() }))
            }
            (Some(TrackerOperation::Sized), ExchangeResult::Seen { seen, .. }) => {
                let routed = self.note_issue_seen(seen)?;
                let result =
                    if routed.way == IssueRoute::Split { StepResult::Split } else { StepResult::Code };
                self.leave_step(result, None)
            }
            (Some(TrackerOperation::Offer), ExchangeResult::Offered(None)) => {
                self.leave_step(StepResult::Patch, None)
            }
            (Some(TrackerOperation::Offer), ExchangeResult::Offered(Some(pr))) => self.note_pull_request(pr),
            (Some(TrackerOperation::Checks), ExchangeResult::Checks { ci, climbed }) => {
                self.handle_ci_status(ci, climbed.as_ref(), step)
            }
            (Some(TrackerOperation::Accept), ExchangeResult::Accepted { accepted, climbed }) => {
                self.handle_acceptance(accepted, climbed.as_ref(), step)
            }
            (Some(TrackerOperation::Gather), ExchangeResult::Gathered { ends, reopened }) => {
                self.conclude_parts(ends, reopened)
            }
            (Some(TrackerOperation::Gather), ExchangeResult::Levelled { failing }) => {
                self.note_level_checked(failing.as_deref(), step)
            }
            (
                Some(TrackerOperation::Reviewed | TrackerOperation::Merged | TrackerOperation::Close),
                ExchangeResult::Told,
            ) => self.leave_step(StepResult::Done, None),
            (Some(TrackerOperation::Merged), ExchangeResult::NotYet { what }) => {
                self.wait_for_outside_event(what, self.poll_ms.min(PUBLISHED_MS_MAX), step)
            }
            (None, ExchangeResult::Parts(parts)) => self.handle_split(parts),
            (_, other) => {
                let word = act.map_or("split", TrackerOperation::word);
                let detail = format!("the exchange `{word}` was answered with something else: {other:?}");
                self.end_task(EndKind::Failed, EndCode::Machine, detail)
            }
        }
    }

    /// Somebody closed the issue. Nothing of ours is thrown away, and nothing is done against that.
    fn handle_issue_closed(&mut self, closed: IssueResolution) -> Result<(), NewsRefusal> {
        let kept = match (&self.task.landed, &self.pipeline().pr, &self.task.head) {
            (Some(landed), _, _) => format!("its work has landed as {}", landed.commit.short_hash()),
            (None, Some(pr), _) => format!("its work is kept as pull request #{}", pr.number),
            (None, None, Some(head)) => format!("its work is kept at {}", head.short_hash()),
            (None, None, None) => "nothing was made yet".to_owned(),
        };
        let number = self.pipeline().seen.as_ref().map(|seen| seen.number).unwrap_or_default();
        let closed = issue::explain_issue_closed(number, closed);
        let detail = format!("{closed}; {kept}. Open it again and ask for it again, and it goes on");
        self.end_task(EndKind::Blocked, EndCode::Tracker, detail)
    }

    /// A person wanted it stopped meanwhile. What was done in the tracker is found there again.
    fn handle_exchange_stop(
        &mut self,
        exchanged: &ExchangeResult,
        stop: StopRequest,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        if let ExchangeResult::Offered(Some(pr)) = exchanged {
            let (attempt, pr) = (self.task.attempt, pr.clone());
            self.add_event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        }
        self.apply_stop(stop, step)
    }

    /// Writes down what was seen and the way that follows from it.
    fn note_issue_seen(&mut self, seen: &IssueSnapshot) -> Result<RoutingDecision, NewsRefusal> {
        let attempt = self.task.attempt;
        if self.pipeline().seen.as_ref() != Some(seen) {
            self.add_event(Event::Issue(IssueEvent::Seen { attempt, seen: Box::new(seen.clone()) }))?;
        }
        let (title, body) = &seen.words;
        let mut spec = self.task.spec.clone();
        if !title.trim().is_empty() {
            spec.title.clone_from(title);
        }
        spec.body.clone_from(body);
        spec.size = seen.size;
        if spec != self.task.spec {
            self.add_event(Event::Edited { spec })?;
        }
        let routed = issue::route_issue(seen.size, &self.pipeline().wishes);
        if self.pipeline().routed != Some(routed) {
            self.add_event(Event::Issue(IssueEvent::Routed(routed)))?;
        }
        Ok(routed)
    }

    fn handle_observed_issue(
        &mut self,
        seen: &IssueSnapshot,
        head: Option<&Commit>,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        let routed = self.note_issue_seen(seen)?;
        let onward = issue::next_phase(seen, &routed);
        let begins =
            matches!(onward, NextPhase::Triage | NextPhase::Spec | NextPhase::Code | NextPhase::Split);
        if begins && !seen.blockers.is_empty() {
            self.yield_attempt(YieldReason::NotYet, None)?;
            let wait = WaitReason::Blockers { by: seen.blockers.clone() };
            return self.add_event(Event::Waited { wait, then: step.clone() });
        }
        // What this engine has made and verified is not made again, whether or not anybody outside can see it.
        let made = self.task.head.is_some() && self.task.landed.is_none();
        let result = match onward {
            NextPhase::Triage => StepResult::Triage,
            NextPhase::Spec | NextPhase::Code if made && self.task.workspace.is_none() => StepResult::Offered,
            NextPhase::Spec => StepResult::Spec,
            NextPhase::Code => StepResult::Code,
            NextPhase::Verify => return self.adopt_pull_request(seen, head, made),
            NextPhase::Accept => StepResult::Landed,
            NextPhase::Split => StepResult::Split,
            // This task set the label, and closing the issue failed: it is closed now.
            NextPhase::Done if seen.open && self.was_accepted() => StepResult::Landed,
            NextPhase::Done => StepResult::Done,
        };
        self.leave_step(result, None)
    }

    fn was_accepted(&self) -> bool {
        self.pipeline().accepted.as_ref().is_some_and(|accepted| accepted.outcome == VerifyOutcome::Done)
    }

    /// The pull request is there, from another run or another engine: its work goes on from where it is.
    fn adopt_pull_request(
        &mut self,
        seen: &IssueSnapshot,
        head: Option<&Commit>,
        made: bool,
    ) -> Result<(), NewsRefusal> {
        if made {
            return self.leave_step(StepResult::Offered, None);
        }
        let (Some(head), Some(pr)) = (head, &seen.pr) else { return self.leave_step(StepResult::Code, None) };
        let attempt = self.task.attempt;
        let pr = PullRequestRef { number: pr.number, url: pr.url.clone(), head: head.clone() };
        self.add_event(Event::Offered { head: head.clone() })?;
        self.add_event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        self.leave_step(StepResult::Offered, None)
    }

    fn note_pull_request(&mut self, pr: &PullRequestRef) -> Result<(), NewsRefusal> {
        let (attempt, pr) = (self.task.attempt, pr.clone());
        self.add_event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        self.leave_step(StepResult::Pr, None)
    }

    /// The forge's own checks. Ours have passed already: what is broken there, or was before, keeps nothing from landing. What
    /// counts against the work is run once more on the same commit before the work is blamed.
    fn handle_ci_status(
        &mut self,
        ci: &CiStatus,
        climbed: Option<&RecoveryContext>,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt;
        self.add_event(Event::Issue(IssueEvent::Checks { attempt, ci: ci.clone() }))?;
        match climbed.map(|climbed| (climbed, &climbed.climb)) {
            Some((climbed, RecoveryStep::Act(RecoveryAction::RerunCi | RecoveryAction::RetryAfter(_)))) => {
                return self.recover_from_exchange(climbed, &step);
            }
            Some((climbed, RecoveryStep::Act(action @ RecoveryAction::Proceed))) => {
                self.note_recovery_try(climbed, RecoveryTier::Pattern, action.to_text(), &step)?;
            }
            // The rest is for steps that can be done otherwise. Here it is the checks that say what follows.
            Some((
                _,
                RecoveryStep::Done
                | RecoveryStep::Act(_)
                | RecoveryStep::Diagnose
                | RecoveryStep::Wait
                | RecoveryStep::Stop(_),
            ))
            | None => {
                if matches!(ci, CiStatus::Failed(_) | CiStatus::Broken(_)) {
                    let detail = "they end on the same commit as before".to_owned();
                    self.record_recovery_outcome(&step, RecoveryOutcome::Failed, detail)?;
                }
            }
        }
        match ci {
            CiStatus::Absent | CiStatus::Passed => self.leave_step(StepResult::Pass, None),
            CiStatus::Failed(names) => {
                let text = format!(
                    "These checks of the forge fail on your work and not on the base: {}. What they say is with the pull \
                     request. Find out what they run, make it pass, commit and signal COMPLETE.",
                    names.join(", ")
                );
                self.leave_step(
                    StepResult::Fail,
                    Some(Feedback { about: "Checks of the forge failed".to_owned(), text }),
                )
            }
            CiStatus::PreExisting(names) | CiStatus::Broken(names) => {
                self.warn_ignored_checks(names)?;
                self.leave_step(StepResult::Pass, None)
            }
            CiStatus::Running(names) => {
                if issue::is_ci_overdue(self.pipeline(), &self.task.recoveries, &step, self.at) {
                    self.warn_ignored_checks(names)?;
                    return self.leave_step(StepResult::Pass, None);
                }
                let cause = format!("checks of the forge run: {}", names.join(", "));
                self.back_off(YieldReason::NotYet, self.poll_ms, cause, step)
            }
        }
    }

    fn warn_ignored_checks(&mut self, names: &[String]) -> Result<(), NewsRefusal> {
        names.iter().try_for_each(|name| {
            self.add_event(Event::Warned(Warning::OptionalFailed {
                command: format!("{name} (of the forge)"),
            }))
        })
    }

    /// Something outside has not happened yet. It is looked for again, and at last a person is told.
    fn wait_for_outside_event(
        &mut self,
        what: &str,
        every_ms: u64,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        if self.pipeline().looks >= LOOKS_MAX {
            let detail = format!("{what}, and {LOOKS_MAX} looks did not change that");
            return self.end_task(EndKind::Blocked, EndCode::Tracker, detail);
        }
        let attempt = self.task.attempt;
        self.add_event(Event::Issue(IssueEvent::Looked { attempt }))?;
        let pause = backoff_ms(1 + self.pipeline().looks / 5, every_ms, REST_MS);
        self.yield_attempt(YieldReason::NotYet, None)?;
        let until = self.at.plus_ms(add_jitter(self.task.id, pause));
        self.add_event(Event::Waited {
            wait: WaitReason::Backoff { until, cause: what.to_owned() },
            then: step,
        })
    }

    fn handle_acceptance(
        &mut self,
        accepted: &AcceptanceOutcome,
        climbed: Option<&RecoveryContext>,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt;
        self.add_event(Event::Issue(IssueEvent::Accepted { attempt, accepted: accepted.clone() }))?;
        match accepted.outcome {
            VerifyOutcome::Done => self.leave_step(StepResult::Pass, None),
            VerifyOutcome::LeftOver(_) | VerifyOutcome::Unsure => self.leave_step(StepResult::Partial, None),
            VerifyOutcome::Waiting if self.pipeline().looks >= LOOKS_MAX => {
                self.leave_step(StepResult::Partial, None)
            }
            VerifyOutcome::Waiting => {
                let what = "checks that an acceptance criterion asks for are running";
                self.wait_for_outside_event(what, self.poll_ms, step)
            }
            VerifyOutcome::Reopen { .. }
                if self.routing_decision().is_some_and(|routed| routed.way == IssueRoute::Split) =>
            {
                let detail = format!(
                    "its parts are done, but the whole does not hold:\n{}",
                    accepted.describe_failed_items()
                );
                self.end_task(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
            VerifyOutcome::Reopen { .. }
                if let Some(RecoveryStep::Stop(why)) = climbed.map(|it| &it.climb) =>
            {
                let detail = format!("{why}\n{}", accepted.describe_failed_items());
                self.end_task(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
            VerifyOutcome::Reopen { .. } => {
                // How often is for the tracker's own count to say; what it may cost, for the budget that every run is held to.
                if let Some(climbed) = climbed {
                    self.note_recovery_try(
                        climbed,
                        RecoveryTier::Pattern,
                        RecoveryAction::Retry.to_text(),
                        &step,
                    )?;
                }
                let feedback = Feedback {
                    about: "Your work landed, but its issue's acceptance criteria do not hold".to_owned(),
                    text: accepted.describe_failed_items(),
                };
                self.add_event(Event::Issue(IssueEvent::Reworked { attempt }))?;
                self.leave_step(StepResult::Fail, Some(feedback))
            }
            VerifyOutcome::Exhausted { iteration } => {
                let detail = format!(
                    "MAX_ITERATIONS_REACHED: its acceptance criteria failed {iteration} times; it needs a person\n{}",
                    accepted.describe_failed_items()
                );
                self.end_task(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
        }
    }

    fn handle_split(&mut self, parts: &[SubIssue]) -> Result<(), NewsRefusal> {
        if parts.is_empty() {
            let detail = "it is too big for one piece of work (XL) and not made of other issues: split it into sub-issues, \
                          or give it a smaller size";
            return self.end_task(EndKind::Blocked, EndCode::Tracker, detail.to_owned());
        }
        let attempt = self.task.attempt;
        self.add_event(Event::Issue(IssueEvent::Parted { attempt, parts: parts.to_vec() }))?;
        self.leave_step(StepResult::Done, None)
    }

    /// How far the parts have come is written down: the whole waits for the others. What does not hold yet is worth knowing and no more.
    fn note_level_checked(
        &mut self,
        failing: Option<&[(String, String)]>,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        let attempt = self.task.attempt;
        let failing = failing.map_or_else(|| self.pipeline().level.failing.clone(), <[_]>::to_vec);
        self.add_event(Event::Issue(IssueEvent::Levelled { attempt, failing }))?;
        self.yield_attempt(YieldReason::NotYet, None)?;
        self.add_event(Event::Waited { wait: WaitReason::Parts, then: step })
    }

    /// What became of the parts is written down: the whole goes on only if all are done. Those that were done and hold no more
    /// are done again, unless something else keeps the whole from being done.
    fn conclude_parts(&mut self, ends: &[SubIssueEnd], reopened: &[u64]) -> Result<(), NewsRefusal> {
        if self.pipeline().ends.as_deref() != Some(ends) {
            self.add_event(Event::Issue(IssueEvent::PartsOver(ends.to_vec())))?;
        }
        let again = |end: &&SubIssueEnd| !reopened.contains(&end.number);
        let hopeless: Vec<String> = ends.iter().filter(again).filter_map(describe_undone).collect();
        match (hopeless.is_empty(), reopened.is_empty()) {
            (true, true) => self.leave_step(StepResult::Done, None),
            (true, false) => self.leave_step(StepResult::Split, None),
            (false, _) => {
                let all: Vec<String> = ends.iter().filter_map(describe_undone).collect();
                self.end_task(EndKind::Blocked, EndCode::PartsFailed, all.join("; "))
            }
        }
    }
}

/// Where an issue goes on once it is known what it is.
fn result_after_triage(seen: &IssueSnapshot, routed: &RoutingDecision) -> StepResult {
    match issue::next_phase(&IssueSnapshot { triaged: true, ..seen.clone() }, routed) {
        NextPhase::Split => StepResult::Split,
        NextPhase::Spec => StepResult::Spec,
        NextPhase::Triage | NextPhase::Code | NextPhase::Verify | NextPhase::Accept | NextPhase::Done => {
            StepResult::Code
        }
    }
}

fn describe_undone(end: &SubIssueEnd) -> Option<String> {
    match &end.end {
        SubIssueOutcome::Done | SubIssueOutcome::Left => None,
        SubIssueOutcome::Failed(why) => Some(format!("#{} failed: {why}", end.number)),
        SubIssueOutcome::Skipped(by) => Some(format!("#{} was skipped: it waits for #{by}", end.number)),
    }
}
