//! What follows from a step that failed: the ladder of recoveries, one rung after another, until the step comes to a good end
//! or a person has to look.

use super::{DecisionDraft, NewsRefusal, backoff_ms, jittered, loop_break, not_now};
use crate::effect::Effect;
use crate::event::{Event, StepResult};
use crate::flow::StepKind;
use crate::input::{EndedRun, RecoveryResult, YieldReason};
use crate::judge::Verdict;
use crate::recovery::{
    PlanAction, RecoveryAction, RecoveryContext, RecoveryEvent, RecoveryOutcome, RecoveryStep, RecoveryTier,
};
use crate::task::{AttemptPhase, EndCode, EndKind, Feedback, Task, TaskState};
use crate::{Commit, StepName, WaitReason};

/// The pause before an agent that is busy is asked again.
const BUSY_MS: u64 = 60_000;
/// What is said of a step that an agent is to look at.
const DIAGNOSE: &str = "diagnose";

impl DecisionDraft {
    fn recovery(&mut self, event: RecoveryEvent) -> Result<(), NewsRefusal> {
        self.event(Event::Recovery(event))
    }

    /// Says what came of the last try of a step, if that is not known.
    pub(super) fn recovery_over(
        &mut self,
        step: &StepName,
        outcome: RecoveryOutcome,
        detail: String,
    ) -> Result<(), NewsRefusal> {
        if self.task.recoveries.under_way(step).is_none() {
            return Ok(());
        }
        self.recovery(RecoveryEvent::Ended { step: step.clone(), outcome, detail })
    }

    pub(super) fn tried(
        &mut self,
        climbed: &RecoveryContext,
        tier: RecoveryTier,
        action: String,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        self.recovery_over(
            step,
            RecoveryOutcome::Failed,
            format!("then it failed by `{}`", climbed.symptom),
        )?;
        let RecoveryContext { symptom, exit, tail, took_ms, known, climb: _ } = climbed.clone();
        let took_ms = Some(took_ms).filter(|ms| *ms > 0);
        let known = known.into_iter().map(|it| it.word().to_owned()).collect();
        let step = step.clone();
        self.recovery(RecoveryEvent::Tried { step, symptom, tier, action, exit, tail, took_ms, known })
    }

    /// A run of the agent ended in a way that something is done about.
    pub(super) fn climb(
        &mut self,
        run: &EndedRun,
        climbed: &RecoveryContext,
        verdict: &Verdict,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        let climbed = &lacking(climbed, &run.evidence.missing);
        let pause = match verdict {
            Verdict::Crashed { .. } | Verdict::Lost | Verdict::NotStarted { .. } => {
                backoff_ms(self.task.counters.restarts, 500, 30_000)
            }
            _ => 0,
        };
        match &climbed.climb {
            RecoveryStep::Done => {
                self.tried(climbed, RecoveryTier::Reconcile, "go on".to_owned(), step)?;
                if self.flow_step(step).kind == StepKind::Review {
                    self.recovery_over(step, RecoveryOutcome::Success, String::new())?;
                    return self.read_by_a_reviewer(run, step);
                }
                self.papers_left(run)?;
                self.leave(StepResult::Done, None)
            }
            RecoveryStep::Act(action) => {
                self.tried(climbed, RecoveryTier::Pattern, action.said(), step)?;
                let works = matches!(self.flow_step(step).kind, StepKind::Agent { iterate: true, .. });
                if *action == RecoveryAction::Proceed && works {
                    return self.leave(StepResult::Done, None); // verification says what it is worth
                }
                let feedback = match verdict {
                    Verdict::Looping => Some(loop_break()),
                    Verdict::Complete | Verdict::Continue => Some(nothing_there(&run.evidence.missing)),
                    _ => None,
                };
                self.act(*action, pause, climbed, feedback, step)
            }
            RecoveryStep::Diagnose | RecoveryStep::Wait | RecoveryStep::Stop(_) => self.above(climbed, step),
        }
    }

    /// An exchange with the tracker did not work out.
    pub(super) fn stuck(&mut self, climbed: &RecoveryContext, step: &StepName) -> Result<(), NewsRefusal> {
        match &climbed.climb {
            // It is asked again, which finds what is there.
            RecoveryStep::Done => self.act(RecoveryAction::Retry, self.poll_ms, climbed, None, step),
            RecoveryStep::Act(action) => {
                self.tried(climbed, RecoveryTier::Pattern, action.said(), step)?;
                self.act(*action, 1_000, climbed, None, step)
            }
            RecoveryStep::Diagnose | RecoveryStep::Wait | RecoveryStep::Stop(_) => self.above(climbed, step),
        }
    }

    /// What the catalogue orders. Operations are done by the attempt that follows.
    fn act(
        &mut self,
        action: RecoveryAction,
        pause_ms: u64,
        climbed: &RecoveryContext,
        feedback: Option<Feedback>,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        let pause_ms = match action {
            RecoveryAction::RetryAfter(seconds) => pause_ms.max(seconds.saturating_mul(1_000)),
            RecoveryAction::WaitCi => self.poll_ms,
            RecoveryAction::Retry
            | RecoveryAction::Resume
            | RecoveryAction::OpenPr
            | RecoveryAction::Rebase
            | RecoveryAction::SignOff
            | RecoveryAction::RerunCi
            | RecoveryAction::RestoreLabel
            | RecoveryAction::RerunReview
            | RecoveryAction::MarkReview
            | RecoveryAction::RaiseTimeout(_)
            | RecoveryAction::CleanUnrelated
            | RecoveryAction::Proceed
            | RecoveryAction::Escalate
            | RecoveryAction::Stop => pause_ms,
        };
        self.yielded(YieldReason::Recovered, feedback)?;
        if action == RecoveryAction::CleanUnrelated
            && let Some(to) = self.task.head.clone().or_else(|| self.task.workspace.clone())
        {
            self.event(Event::SentBack { to })?; // what stands in the workspace is kept under a ref
        }
        self.pause(pause_ms, &climbed.symptom, step)
    }

    fn pause(&mut self, ms: u64, symptom: &str, step: &StepName) -> Result<(), NewsRefusal> {
        if ms == 0 {
            return Ok(());
        }
        let until = self.at.plus_ms(jittered(self.task.id, ms));
        let cause = format!("step `{step}` failed by `{symptom}` and is tried again");
        self.event(Event::Waited { wait: WaitReason::Backoff { until, cause }, then: step.clone() })
    }

    /// The catalogue has no more to say.
    fn above(&mut self, climbed: &RecoveryContext, step: &StepName) -> Result<(), NewsRefusal> {
        match &climbed.climb {
            RecoveryStep::Wait => {
                self.yielded(YieldReason::Recovered, None)?;
                self.pause(BUSY_MS, &climbed.symptom, step)
            }
            RecoveryStep::Stop(why) if let Some(lack) = lack(&climbed.tail) => {
                self.give_up_recovery(step, format!("{why}; {lack}"))
            }
            RecoveryStep::Stop(why) => self.give_up_recovery(step, why.clone()),
            RecoveryStep::Done | RecoveryStep::Act(_) | RecoveryStep::Diagnose => {
                self.tried(climbed, RecoveryTier::Agent, DIAGNOSE.to_owned(), step)?;
                self.yielded(YieldReason::Recovered, None)
            }
        }
    }

    /// A person has to look.
    fn give_up_recovery(&mut self, step: &StepName, why: String) -> Result<(), NewsRefusal> {
        // Which of its files a step did not leave is the first thing that a person wants to know.
        let last = self.task.recoveries.tried.iter().rev().find(|it| it.step == *step);
        let why = match last.and_then(|it| lack(&it.tail)).filter(|lack| !why.contains(lack)) {
            Some(lack) => format!("{why}; {lack}"),
            None => why,
        };
        self.recovery_over(step, RecoveryOutcome::Failed, why.clone())?;
        let first = idle(&self.task, step).map(|idle| format!("{idle}; ")).unwrap_or_default();
        self.end(EndKind::Blocked, EndCode::RecoveryFailed, format!("{first}step `{step}` failed by {why}"))
    }

    /// What was to be done about a failure was done, or could not be.
    pub(super) fn recovered(&mut self, recovered: &RecoveryResult) -> Result<(), NewsRefusal> {
        let TaskState::Active { step, doing: AttemptPhase::Recovering { stop } } = self.task.state.clone()
        else {
            return Err(not_now(&self.task, "nothing is being recovered"));
        };
        let open = self.task.recoveries.under_way(&step);
        let (symptom, tier) =
            open.map_or((String::new(), RecoveryTier::Person), |it| (it.symptom.clone(), it.tier));
        match recovered {
            RecoveryResult::Diagnosed { action, rationale, ops, .. } => {
                let (action, rationale, ops) = (*action, rationale.clone(), ops.clone());
                let said = rationale.clone();
                self.recovery(RecoveryEvent::Diagnosed { step: step.clone(), action, rationale, ops })?;
                match action {
                    None => {
                        let no_help = "the agent that was asked had no usable answer";
                        let why = format!("`{symptom}`: {no_help} (the plan was refused: {said})");
                        self.give_up_recovery(&step, why)
                    }
                    Some(PlanAction::Abort) => {
                        self.give_up_recovery(&step, format!("`{symptom}`: the recovery agent says: {said}"))
                    }
                    Some(_) if let Some(stop) = stop => self.stopped(stop, step),
                    Some(PlanAction::Skip) => self.leave(StepResult::Done, None),
                    Some(PlanAction::Retry) => self.once_more(&step, "the step is tried again".to_owned()),
                    Some(PlanAction::Recover) => {
                        let (task, attempt) = (self.task.id, self.task.attempt);
                        self.effect(Effect::Recover { task, attempt });
                        Ok(())
                    }
                }
            }
            RecoveryResult::Done { head, lines } => {
                self.once_more(&step, lines.join("; "))?;
                if let Some(head) = head {
                    self.moved(head, &step)?;
                }
                match stop {
                    Some(stop) => self.stopped_between(stop, step),
                    None => Ok(()),
                }
            }
            RecoveryResult::PutOff => match stop {
                Some(stop) => self.stopped_between(stop, step),
                None => self.yielded(YieldReason::Drained, None),
            },
            RecoveryResult::Failed { why } => {
                self.recovery_over(&step, RecoveryOutcome::Failed, why.clone())?;
                if let Some(stop) = stop {
                    return self.stopped(stop, step);
                }
                let looked =
                    self.task.recoveries.since_success(&step).any(|it| it.tier == RecoveryTier::Agent);
                let last = self.task.recoveries.tried.iter().rev().find(|it| it.step == step).cloned();
                match last {
                    Some(last) if tier == RecoveryTier::Pattern && !looked => {
                        let (symptom, exit, tail) = (last.symptom, last.exit, last.tail);
                        let known = last.known.iter().map(|it| it.word().to_owned()).collect();
                        self.recovery(RecoveryEvent::Tried {
                            step,
                            symptom,
                            tier: RecoveryTier::Agent,
                            action: DIAGNOSE.to_owned(),
                            exit,
                            tail,
                            took_ms: last.took_ms,
                            known,
                        })?;
                        self.yielded(YieldReason::Recovered, None)
                    }
                    Some(_) | None => self.give_up_recovery(&step, format!("`{symptom}`: {why}")),
                }
            }
        }
    }

    /// What was to be done is done: the step is tried again.
    fn once_more(&mut self, step: &StepName, detail: String) -> Result<(), NewsRefusal> {
        self.recovery_over(step, RecoveryOutcome::Partial, detail)?;
        self.yielded(YieldReason::Recovered, None)
    }

    /// A person wanted it stopped while something was done about its failure.
    fn stopped_between(&mut self, stop: crate::task::StopRequest, step: StepName) -> Result<(), NewsRefusal> {
        let step = self.task.step().cloned().unwrap_or(step);
        self.stopped(stop, step)
    }

    /// The work stands elsewhere now, in the store. Whoever works goes on from there; what is past its agent is verified
    /// again.
    fn moved(&mut self, head: &Commit, step: &StepName) -> Result<(), NewsRefusal> {
        self.event(Event::SentBack { to: head.clone() })?;
        if matches!(self.flow_step(step).kind, StepKind::Agent { .. }) {
            return Ok(());
        }
        self.event(Event::Offered { head: head.clone() })?;
        let flow = self.task.flow.as_ref().expect("a task in a step is bound to a flow");
        let verify = flow.steps.iter().find(|step| step.kind == StepKind::Verify);
        match verify.map(|step| step.name.clone()) {
            Some(verify) => self.settle(&verify),
            None => Ok(()), // what lands is verified all the same
        }
    }
}

/// That the agent of a step did nothing, if that is what was last wrong with it: it says more than what was tried about it.
fn idle(task: &Task, step: &StepName) -> Option<String> {
    let works = task.flow.as_ref()?.find_step(step)?.kind.clone();
    let last = task.recoveries.tried.iter().rev().find(|it| it.step == *step)?;
    let ended_well = last.exit == Some(0);
    match (works, task.counters.fruitless) {
        (StepKind::Agent { iterate: true, .. }, 1) if ended_well => {
            Some("its agent committed nothing".to_owned())
        }
        (StepKind::Agent { iterate: true, .. }, many @ 2..) if ended_well => {
            Some(format!("its agent committed nothing, {many} times"))
        }
        _ => None,
    }
}

/// What stands in front of the names of files that a step was to leave and did not.
const LACKS: &str = "it did not leave: ";

/// The end of a run with what it did not leave as the last line of its log: whoever looks at it should know.
fn lacking(climbed: &RecoveryContext, missing: &[String]) -> RecoveryContext {
    let mut climbed = climbed.clone();
    if !missing.is_empty() {
        let gap = if climbed.tail.is_empty() || climbed.tail.ends_with('\n') { "" } else { "\n" };
        climbed.tail.push_str(&format!("{gap}{LACKS}{}", missing.join(", ")));
    }
    climbed
}

fn lack(tail: &str) -> Option<&str> {
    tail.lines().last().filter(|line| line.starts_with(LACKS))
}

/// What an agent is told that says it is done and has left nothing.
fn nothing_there(missing: &[String]) -> Feedback {
    let text = match missing {
        [] => "You ended as if all was done, but what this step is for is not there: your branch has no commit of yours, or \
               what you were to say cannot be read. Do the work. If nothing needs to change, signal BLOCKED with the reason."
            .to_owned(),
        some => format!("Missing, empty or not written in this run: {}", some.join(", ")),
    };
    Feedback { about: "What this step must leave behind is not there".to_owned(), text }
}
