//! What follows from an exchange with the tracker of a task: which way its issue takes, what it waits for, and when it is over.

use super::{Draft, Refusal, backoff_ms, jittered, not_now};
use crate::acceptance::VerifyOutcome;
use crate::event::{Event, StepResult, Warning};
use crate::flow::{StepKind, TrackerOperation};
use crate::input::{Exchanged, YieldReason};
use crate::issue::{
    self, AcceptanceOutcome, CiStatus, ClosedAs, IssueEvent, IssueOptions, IssueRoute, IssueSnapshot, Onward,
    Pipeline, PullRequestRef, ReviewDepth, RoutingDecision, SubIssue, SubIssueEnd, SubIssueOutcome,
};
use crate::recovery::{Action, Climb, Climbed, RecoveryOutcome, RecoveryTier};
use crate::task::{Doing, EndCode, EndKind, Feedback, State, StopRequest};
use crate::{Commit, StepName, WaitReason};

/// The longest time between two looks for a landing that is being published.
const PUBLISHED_MS_MAX: u64 = 5_000;
/// The longest first pause after a tracker did not answer.
const OUTAGE_MS_MAX: u64 = 5_000;
/// How long is waited between two looks, at most.
const REST_MS: u64 = 10 * 60 * 1000;
/// Looks in all; after that a person is told.
const LOOKS_MAX: u32 = 60;

impl Draft {
    fn pipeline(&self) -> &Pipeline {
        self.task.issue.as_ref().expect("a flow that follows an issue is granted only to a task that does")
    }

    fn routed(&self) -> Option<RoutingDecision> {
        self.task.issue.as_ref()?.routed
    }

    /// A person says how the issue is to be done.
    pub(super) fn wish(&mut self, wishes: &IssueOptions) -> Result<(), Refusal> {
        if self.task.issue.as_ref().is_some_and(|issue| issue.wishes == *wishes) {
            return Ok(());
        }
        match &self.task.state {
            State::Active { .. } => Err(not_now(&self.task, "it is under way; say it when the run is over")),
            State::Draft
            | State::Ready { .. }
            | State::Waiting { .. }
            | State::Review { .. }
            | State::Ended(_) => self.event(Event::Issue(IssueEvent::Wanted(wishes.clone()))),
        }
    }

    /// Whether nobody is to read the work: its issue is too small for that.
    pub(super) fn needs_no_reader(&self) -> bool {
        self.routed().is_some_and(|routed| routed.depth == ReviewDepth::None)
    }

    /// Whether another reader is to read the same work.
    pub(super) fn more_readers(&self) -> bool {
        self.task.issue.as_ref().is_some_and(|issue| issue.readers > 0)
    }

    /// What needs no exchange is done at once; whether it was.
    pub(super) fn enter_tracker(&mut self, step: &StepName, act: TrackerOperation) -> Result<bool, Refusal> {
        match act {
            TrackerOperation::Gather if self.pipeline().ends.is_none() && !self.pipeline().level.is_due() => {
                self.event(Event::Waited { wait: WaitReason::Parts, then: step.clone() })?;
                Ok(true)
            }
            TrackerOperation::Accept if !self.pipeline().wishes.accept => {
                self.settle(step)?;
                self.leave(StepResult::Partial, None)?;
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

    pub(super) fn exchanged(&mut self, exchanged: &Exchanged) -> Result<(), Refusal> {
        let State::Active { step, doing: Doing::Exchanging { stop } } = self.task.state.clone() else {
            return Err(not_now(&self.task, "no tracker is asked"));
        };
        if let Some(stop) = stop {
            return self.exchange_stopped(exchanged, stop, step);
        }
        let act = match self.flow_step(&step).kind {
            StepKind::Tracker { act } => Some(act),
            _ => None,
        };
        match (act, exchanged) {
            // While its parts go on, what keeps a whole from being told of them keeps nobody from working.
            (Some(TrackerOperation::Gather), Exchanged::Trouble { .. }) if self.pipeline().ends.is_none() => {
                self.levelled(None, step)
            }
            (_, Exchanged::Trouble { detail, until: Some(until), hopeless: false }) => {
                self.yielded(YieldReason::Transient, None)?;
                let wait = WaitReason::Backoff { until: *until, cause: detail.clone() };
                self.event(Event::Waited { wait, then: step })
            }
            (_, Exchanged::Trouble { detail, hopeless: true, .. }) => {
                self.end(EndKind::Blocked, EndCode::Tracker, detail.clone())
            }
            (_, Exchanged::Trouble { detail, until: None, hopeless: false }) => {
                self.not_yet(detail, self.poll_ms.min(OUTAGE_MS_MAX), step)
            }
            (_, Exchanged::Stuck(climbed)) => self.stuck(climbed, &step),
            (_, Exchanged::Closed(closed)) => self.closed_meanwhile(*closed),
            (Some(TrackerOperation::Observe), Exchanged::Seen { seen, head }) => {
                self.observed(seen, head.as_ref(), &step)
            }
            (Some(TrackerOperation::Triaged), Exchanged::Seen { seen, .. }) => {
                let routed = self.seen(seen)?;
                self.leave(after_triage(seen, &routed), None)
            }
            (Some(TrackerOperation::Triaged), Exchanged::Unread { why }) => {
                let about = "What you left cannot be read".to_owned();
                self.leave(StepResult::Fail, Some(Feedback { about, text: why.clone() }))
            }
            (Some(TrackerOperation::Sized), Exchanged::Seen { seen, .. }) => {
                let routed = self.seen(seen)?;
                let result =
                    if routed.way == IssueRoute::Split { StepResult::Split } else { StepResult::Code };
                self.leave(result, None)
            }
            (Some(TrackerOperation::Offer), Exchanged::Offered(None)) => self.leave(StepResult::Patch, None),
            (Some(TrackerOperation::Offer), Exchanged::Offered(Some(pr))) => self.offered(pr),
            (Some(TrackerOperation::Checks), Exchanged::Checks { ci, climbed }) => {
                self.ci(ci, climbed.as_ref(), step)
            }
            (Some(TrackerOperation::Accept), Exchanged::Accepted { accepted, climbed }) => {
                self.accepted(accepted, climbed.as_ref(), step)
            }
            (Some(TrackerOperation::Gather), Exchanged::Gathered { ends, reopened }) => {
                self.gathered(ends, reopened)
            }
            (Some(TrackerOperation::Gather), Exchanged::Levelled { failing }) => {
                self.levelled(failing.as_deref(), step)
            }
            (
                Some(TrackerOperation::Reviewed | TrackerOperation::Merged | TrackerOperation::Close),
                Exchanged::Told,
            ) => self.leave(StepResult::Done, None),
            (Some(TrackerOperation::Merged), Exchanged::NotYet { what }) => {
                self.not_yet(what, self.poll_ms.min(PUBLISHED_MS_MAX), step)
            }
            (None, Exchanged::Parts(parts)) => self.parted(parts),
            (_, other) => {
                let word = act.map_or("split", TrackerOperation::word);
                let detail = format!("the exchange `{word}` was answered with something else: {other:?}");
                self.end(EndKind::Failed, EndCode::Machine, detail)
            }
        }
    }

    /// Somebody closed the issue. Nothing of ours is thrown away, and nothing is done against that.
    fn closed_meanwhile(&mut self, closed: ClosedAs) -> Result<(), Refusal> {
        let kept = match (&self.task.landed, &self.pipeline().pr, &self.task.head) {
            (Some(landed), _, _) => format!("its work has landed as {}", landed.commit.short()),
            (None, Some(pr), _) => format!("its work is kept as pull request #{}", pr.number),
            (None, None, Some(head)) => format!("its work is kept at {}", head.short()),
            (None, None, None) => "nothing was made yet".to_owned(),
        };
        let number = self.pipeline().seen.as_ref().map(|seen| seen.number).unwrap_or_default();
        let closed = issue::closed_meanwhile(number, closed);
        let detail = format!("{closed}; {kept}. Open it again and ask for it again, and it goes on");
        self.end(EndKind::Blocked, EndCode::Tracker, detail)
    }

    /// A person wanted it stopped meanwhile. What was done in the tracker is found there again.
    fn exchange_stopped(
        &mut self,
        exchanged: &Exchanged,
        stop: StopRequest,
        step: StepName,
    ) -> Result<(), Refusal> {
        if let Exchanged::Offered(Some(pr)) = exchanged {
            let (attempt, pr) = (self.task.attempt, pr.clone());
            self.event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        }
        self.stopped(stop, step)
    }

    /// Writes down what was seen and the way that follows from it.
    fn seen(&mut self, seen: &IssueSnapshot) -> Result<RoutingDecision, Refusal> {
        let attempt = self.task.attempt;
        if self.pipeline().seen.as_ref() != Some(seen) {
            self.event(Event::Issue(IssueEvent::Seen { attempt, seen: Box::new(seen.clone()) }))?;
        }
        let (title, body) = &seen.words;
        let mut spec = self.task.spec.clone();
        if !title.trim().is_empty() {
            spec.title.clone_from(title);
        }
        spec.body.clone_from(body);
        spec.size = seen.size;
        if spec != self.task.spec {
            self.event(Event::Edited { spec })?;
        }
        let routed = issue::route(seen.size, &self.pipeline().wishes);
        if self.pipeline().routed != Some(routed) {
            self.event(Event::Issue(IssueEvent::Routed(routed)))?;
        }
        Ok(routed)
    }

    fn observed(
        &mut self,
        seen: &IssueSnapshot,
        head: Option<&Commit>,
        step: &StepName,
    ) -> Result<(), Refusal> {
        let routed = self.seen(seen)?;
        let onward = issue::onward(seen, &routed);
        let begins = matches!(onward, Onward::Triage | Onward::Spec | Onward::Code | Onward::Split);
        if begins && !seen.blockers.is_empty() {
            self.yielded(YieldReason::NotYet, None)?;
            let wait = WaitReason::Blockers { by: seen.blockers.clone() };
            return self.event(Event::Waited { wait, then: step.clone() });
        }
        // What this engine has made and verified is not made again, whether or not anybody outside can see it.
        let made = self.task.head.is_some() && self.task.landed.is_none();
        let result = match onward {
            Onward::Triage => StepResult::Triage,
            Onward::Spec | Onward::Code if made && self.task.workspace.is_none() => StepResult::Offered,
            Onward::Spec => StepResult::Spec,
            Onward::Code => StepResult::Code,
            Onward::Verify => return self.take_up(seen, head, made),
            Onward::Accept => StepResult::Landed,
            Onward::Split => StepResult::Split,
            Onward::Done => StepResult::Done,
        };
        self.leave(result, None)
    }

    /// The pull request is there, from another run or another engine: its work goes on from where it is.
    fn take_up(&mut self, seen: &IssueSnapshot, head: Option<&Commit>, made: bool) -> Result<(), Refusal> {
        if made {
            return self.leave(StepResult::Offered, None);
        }
        let (Some(head), Some(pr)) = (head, &seen.pr) else { return self.leave(StepResult::Code, None) };
        let attempt = self.task.attempt;
        let pr = PullRequestRef { number: pr.number, url: pr.url.clone(), head: head.clone() };
        self.event(Event::Offered { head: head.clone() })?;
        self.event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        self.leave(StepResult::Offered, None)
    }

    fn offered(&mut self, pr: &PullRequestRef) -> Result<(), Refusal> {
        let (attempt, pr) = (self.task.attempt, pr.clone());
        self.event(Event::Issue(IssueEvent::Offered { attempt, pr }))?;
        self.leave(StepResult::Pr, None)
    }

    /// The forge's own checks. Ours have passed already: what is broken there, or was before, keeps nothing from landing. What
    /// counts against the work is run once more on the same commit before the work is blamed.
    fn ci(&mut self, ci: &CiStatus, climbed: Option<&Climbed>, step: StepName) -> Result<(), Refusal> {
        let attempt = self.task.attempt;
        self.event(Event::Issue(IssueEvent::Checks { attempt, ci: ci.clone() }))?;
        match climbed.map(|climbed| (climbed, &climbed.climb)) {
            Some((climbed, Climb::Act(Action::RerunCi | Action::RetryAfter(_)))) => {
                return self.stuck(climbed, &step);
            }
            Some((climbed, Climb::Act(action @ Action::Proceed))) => {
                self.tried(climbed, RecoveryTier::Pattern, action.said(), &step)?;
            }
            // The rest is for steps that can be done otherwise. Here it is the checks that say what follows.
            Some((_, Climb::Done | Climb::Act(_) | Climb::Diagnose | Climb::Wait | Climb::Stop(_)))
            | None => {
                if matches!(ci, CiStatus::Failed(_) | CiStatus::Broken(_)) {
                    let detail = "they end on the same commit as before".to_owned();
                    self.recovery_over(&step, RecoveryOutcome::Failed, detail)?;
                }
            }
        }
        match ci {
            CiStatus::Absent | CiStatus::Passed => self.leave(StepResult::Pass, None),
            CiStatus::Failed(names) => {
                let text = format!(
                    "These checks of the forge fail on your work and not on the base: {}. What they say is with the pull \
                     request. Find out what they run, make it pass, commit and signal COMPLETE.",
                    names.join(", ")
                );
                self.leave(
                    StepResult::Fail,
                    Some(Feedback { about: "Checks of the forge failed".to_owned(), text }),
                )
            }
            CiStatus::PreExisting(names) | CiStatus::Broken(names) => {
                self.unheeded(names)?;
                self.leave(StepResult::Pass, None)
            }
            CiStatus::Running(names) => {
                if issue::overdue(self.pipeline(), &self.task.recoveries, &step, self.at) {
                    self.unheeded(names)?;
                    return self.leave(StepResult::Pass, None);
                }
                let cause = format!("checks of the forge run: {}", names.join(", "));
                self.back_off(YieldReason::NotYet, self.poll_ms, cause, step)
            }
        }
    }

    fn unheeded(&mut self, names: &[String]) -> Result<(), Refusal> {
        names.iter().try_for_each(|name| {
            self.event(Event::Warned(Warning::OptionalFailed { command: format!("{name} (of the forge)") }))
        })
    }

    /// Something outside has not happened yet. It is looked for again, and at last a person is told.
    fn not_yet(&mut self, what: &str, every_ms: u64, step: StepName) -> Result<(), Refusal> {
        if self.pipeline().looks >= LOOKS_MAX {
            let detail = format!("{what}, and {LOOKS_MAX} looks did not change that");
            return self.end(EndKind::Blocked, EndCode::Tracker, detail);
        }
        let attempt = self.task.attempt;
        self.event(Event::Issue(IssueEvent::Looked { attempt }))?;
        let pause = backoff_ms(1 + self.pipeline().looks / 5, every_ms, REST_MS);
        self.yielded(YieldReason::NotYet, None)?;
        let until = self.at.plus_ms(jittered(self.task.id, pause));
        self.event(Event::Waited { wait: WaitReason::Backoff { until, cause: what.to_owned() }, then: step })
    }

    fn accepted(
        &mut self,
        accepted: &AcceptanceOutcome,
        climbed: Option<&Climbed>,
        step: StepName,
    ) -> Result<(), Refusal> {
        let attempt = self.task.attempt;
        self.event(Event::Issue(IssueEvent::Accepted { attempt, accepted: accepted.clone() }))?;
        match accepted.outcome {
            VerifyOutcome::Done => self.leave(StepResult::Pass, None),
            VerifyOutcome::LeftOver(_) | VerifyOutcome::Unsure => self.leave(StepResult::Partial, None),
            VerifyOutcome::Waiting if self.pipeline().looks >= LOOKS_MAX => {
                self.leave(StepResult::Partial, None)
            }
            VerifyOutcome::Waiting => {
                let what = "checks that an acceptance criterion asks for are running";
                self.not_yet(what, self.poll_ms, step)
            }
            VerifyOutcome::Reopen { .. }
                if self.routed().is_some_and(|routed| routed.way == IssueRoute::Split) =>
            {
                let detail =
                    format!("its parts are done, but the whole does not hold:\n{}", accepted.complaint());
                self.end(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
            VerifyOutcome::Reopen { .. } if let Some(Climb::Stop(why)) = climbed.map(|it| &it.climb) => {
                let detail = format!("{why}\n{}", accepted.complaint());
                self.end(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
            VerifyOutcome::Reopen { .. } => {
                // How often is for the tracker's own count to say; what it may cost, for the budget that every run is held to.
                if let Some(climbed) = climbed {
                    self.tried(climbed, RecoveryTier::Pattern, Action::Retry.said(), &step)?;
                }
                let feedback = Feedback {
                    about: "Your work landed, but its issue's acceptance criteria do not hold".to_owned(),
                    text: accepted.complaint(),
                };
                self.event(Event::Issue(IssueEvent::Reworked { attempt }))?;
                self.leave(StepResult::Fail, Some(feedback))
            }
            VerifyOutcome::Exhausted { iteration } => {
                let detail = format!(
                    "MAX_ITERATIONS_REACHED: its acceptance criteria failed {iteration} times; it needs a person\n{}",
                    accepted.complaint()
                );
                self.end(EndKind::Blocked, EndCode::AcceptanceFailed, detail)
            }
        }
    }

    fn parted(&mut self, parts: &[SubIssue]) -> Result<(), Refusal> {
        if parts.is_empty() {
            let detail = "it is too big for one piece of work (XL) and not made of other issues: split it into sub-issues, \
                          or give it a smaller size";
            return self.end(EndKind::Blocked, EndCode::Tracker, detail.to_owned());
        }
        let attempt = self.task.attempt;
        self.event(Event::Issue(IssueEvent::Parted { attempt, parts: parts.to_vec() }))?;
        self.leave(StepResult::Done, None)
    }

    /// How far the parts have come is written down: the whole waits for the others. What does not hold yet is worth knowing and no more.
    fn levelled(&mut self, failing: Option<&[(String, String)]>, step: StepName) -> Result<(), Refusal> {
        let attempt = self.task.attempt;
        let failing = failing.map_or_else(|| self.pipeline().level.failing.clone(), <[_]>::to_vec);
        self.event(Event::Issue(IssueEvent::Levelled { attempt, failing }))?;
        self.yielded(YieldReason::NotYet, None)?;
        self.event(Event::Waited { wait: WaitReason::Parts, then: step })
    }

    /// What became of the parts is written down: the whole goes on only if all are done. Those that were done and hold no more
    /// are done again, unless something else keeps the whole from being done.
    fn gathered(&mut self, ends: &[SubIssueEnd], reopened: &[u64]) -> Result<(), Refusal> {
        if self.pipeline().ends.as_deref() != Some(ends) {
            self.event(Event::Issue(IssueEvent::PartsOver(ends.to_vec())))?;
        }
        let again = |end: &&SubIssueEnd| !reopened.contains(&end.number);
        let hopeless: Vec<String> = ends.iter().filter(again).filter_map(undone).collect();
        match (hopeless.is_empty(), reopened.is_empty()) {
            (true, true) => self.leave(StepResult::Done, None),
            (true, false) => self.leave(StepResult::Split, None),
            (false, _) => {
                let all: Vec<String> = ends.iter().filter_map(undone).collect();
                self.end(EndKind::Blocked, EndCode::PartsFailed, all.join("; "))
            }
        }
    }
}

/// Where an issue goes on once it is known what it is.
fn after_triage(seen: &IssueSnapshot, routed: &RoutingDecision) -> StepResult {
    match issue::onward(&IssueSnapshot { triaged: true, ..seen.clone() }, routed) {
        Onward::Split => StepResult::Split,
        Onward::Spec => StepResult::Spec,
        Onward::Triage | Onward::Code | Onward::Verify | Onward::Accept | Onward::Done => StepResult::Code,
    }
}

fn undone(end: &SubIssueEnd) -> Option<String> {
    match &end.end {
        SubIssueOutcome::Done | SubIssueOutcome::Left => None,
        SubIssueOutcome::Failed(why) => Some(format!("#{} failed: {why}", end.number)),
        SubIssueOutcome::Skipped(by) => Some(format!("#{} was skipped: it waits for #{by}", end.number)),
    }
}
