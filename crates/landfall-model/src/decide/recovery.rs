//! What follows from a step that failed: the ladder of recoveries, one rung after another, until the step comes to a good end
//! or a person has to look.

use super::{DecisionDraft, NewsRefusal, add_jitter, backoff_ms, loop_feedback, not_now_refusal};
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
    fn add_recovery_event(&mut self, event: RecoveryEvent) -> Result<(), NewsRefusal> {
        self.add_event(Event::Recovery(event))
    }

    /// Says what came of the last try of a step, if that is not known.
    pub(super) fn record_recovery_outcome(
        &mut self,
        step: &StepName,
        outcome: RecoveryOutcome,
        detail: String,
    ) -> Result<(), NewsRefusal> {
        if self.task.recoveries.unresolved_try(step).is_none() {
            return Ok(());
        }
        self.add_recovery_event(RecoveryEvent::Ended { step: step.clone(), outcome, detail })
    }

    pub(super) fn note_recovery_try(
        &mut self,
        climbed: &RecoveryContext,
        tier: RecoveryTier,
        action: String,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        self.record_recovery_outcome(
            step,
            RecoveryOutcome::Failed,
            format!("then it failed by `{}`", climbed.symptom),
        )?;
        let RecoveryContext { symptom, exit, tail, took_ms, known, climb: _ } = climbed.clone();
        let took_ms = Some(took_ms).filter(|ms| *ms > 0);
        let known = known.into_iter().map(|it| it.word().to_owned()).collect();
        let step = step.clone();
        self.add_recovery_event(RecoveryEvent::Tried {
            step,
            symptom,
            tier,
            action,
            exit,
            tail,
            took_ms,
            known,
        })
    }

    /// A run of the agent ended in a way that something is done about.
    pub(super) fn recover_from_run(
        &mut self,
        run: &EndedRun,
        climbed: &RecoveryContext,
        verdict: &Verdict,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        let climbed = &with_missing_outputs(climbed, &run.evidence.missing);
        let pause = match verdict {
            Verdict::Crashed { .. } | Verdict::Lost | Verdict::NotStarted { .. } => {
                backoff_ms(self.task.counters.restarts, 500, 30_000)
            }
            _ => 0,
        };
        match &climbed.climb {
            RecoveryStep::Done => {
                self.note_recovery_try(climbed, RecoveryTier::Reconcile, "go on".to_owned(), step)?;
                if self.flow_step(step).kind == StepKind::Review {
                    self.record_recovery_outcome(step, RecoveryOutcome::Success, String::new())?;
                    return self.read_by_a_reviewer(run, step);
                }
                self.note_papers(run)?;
                self.leave_step(StepResult::Done, None)
            }
            RecoveryStep::Act(action) => {
                self.note_recovery_try(climbed, RecoveryTier::Pattern, action.to_text(), step)?;
                let works = matches!(self.flow_step(step).kind, StepKind::Agent { iterate: true, .. });
                if *action == RecoveryAction::Proceed && works {
                    return self.leave_step(StepResult::Done, None); // verification says what it is worth
                }
                let feedback = match verdict {
                    Verdict::Looping => Some(loop_feedback()),
                    Verdict::Complete | Verdict::Continue => {
                        Some(missing_output_feedback(&run.evidence.missing))
                    }
                    _ => None,
                };
                self.start_recovery_action(*action, pause, climbed, feedback, step)
            }
            RecoveryStep::Diagnose | RecoveryStep::Wait | RecoveryStep::Stop(_) => {
                self.handle_exhausted_catalogue(climbed, step)
            }
        }
    }

    /// An exchange with the tracker did not work out.
    pub(super) fn recover_from_exchange(
        &mut self,
        climbed: &RecoveryContext,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        match &climbed.climb {
            // It is asked again, which finds what is there.
            RecoveryStep::Done => {
                self.start_recovery_action(RecoveryAction::Retry, self.poll_ms, climbed, None, step)
            }
            RecoveryStep::Act(action) => {
                self.note_recovery_try(climbed, RecoveryTier::Pattern, action.to_text(), step)?;
                self.start_recovery_action(*action, 1_000, climbed, None, step)
            }
            RecoveryStep::Diagnose | RecoveryStep::Wait | RecoveryStep::Stop(_) => {
                self.handle_exhausted_catalogue(climbed, step)
            }
        }
    }

    /// What the catalogue orders. Operations are done by the attempt that follows.
    fn start_recovery_action(
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
        self.yield_attempt(YieldReason::Recovered, feedback)?;
        if action == RecoveryAction::CleanUnrelated
            && let Some(to) = self.task.head.clone().or_else(|| self.task.workspace.clone())
        {
            self.add_event(Event::SentBack { to })?; // what stands in the workspace is kept under a ref
        }
        self.pause_step(pause_ms, &climbed.symptom, step)
    }

    fn pause_step(&mut self, ms: u64, symptom: &str, step: &StepName) -> Result<(), NewsRefusal> {
        if ms == 0 {
            return Ok(());
        }
        let until = self.at.plus_ms(add_jitter(self.task.id, ms));
        let cause = format!("step `{step}` failed by `{symptom}` and is tried again");
        self.add_event(Event::Waited { wait: WaitReason::Backoff { until, cause }, then: step.clone() })
    }

    /// The catalogue has no more to say.
    fn handle_exhausted_catalogue(
        &mut self,
        climbed: &RecoveryContext,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        match &climbed.climb {
            RecoveryStep::Wait => {
                self.yield_attempt(YieldReason::Recovered, None)?;
                self.pause_step(BUSY_MS, &climbed.symptom, step)
            }
            RecoveryStep::Stop(why) if let Some(lack) = missing_outputs_line(&climbed.tail) => {
                self.give_up_recovery(step, format!("{why}; {lack}"))
            }
            RecoveryStep::Stop(why) => self.give_up_recovery(step, why.clone()),
            RecoveryStep::Done | RecoveryStep::Act(_) | RecoveryStep::Diagnose => {
                self.note_recovery_try(climbed, RecoveryTier::Agent, DIAGNOSE.to_owned(), step)?;
                self.yield_attempt(YieldReason::Recovered, None)
            }
        }
    }

    /// A person has to look.
    fn give_up_recovery(&mut self, step: &StepName, why: String) -> Result<(), NewsRefusal> {
        // Which of its files a step did not leave is the first thing that a person wants to know.
        let last = self.task.recoveries.tried.iter().rev().find(|it| it.step == *step);
        let why = match last.and_then(|it| missing_outputs_line(&it.tail)).filter(|lack| !why.contains(lack))
        {
            Some(lack) => format!("{why}; {lack}"),
            None => why,
        };
        self.record_recovery_outcome(step, RecoveryOutcome::Failed, why.clone())?;
        let first = idle_agent_reason(&self.task, step).map(|idle| format!("{idle}; ")).unwrap_or_default();
        self.end_task(
            EndKind::Blocked,
            EndCode::RecoveryFailed,
            format!("{first}step `{step}` failed by {why}"),
        )
    }

    /// What was to be done about a failure was done, or could not be.
    pub(super) fn handle_recovery_result(&mut self, recovered: &RecoveryResult) -> Result<(), NewsRefusal> {
        let TaskState::Active { step, doing: AttemptPhase::Recovering { stop } } = self.task.state.clone()
        else {
            return Err(not_now_refusal(&self.task, "nothing is being recovered"));
        };
        let open = self.task.recoveries.unresolved_try(&step);
        let (symptom, tier) =
            open.map_or((String::new(), RecoveryTier::Person), |it| (it.symptom.clone(), it.tier));
        match recovered {
            RecoveryResult::Diagnosed { action, rationale, ops, .. } => {
                let (action, rationale, ops) = (*action, rationale.clone(), ops.clone());
                let said = rationale.clone();
                self.add_recovery_event(RecoveryEvent::Diagnosed {
                    step: step.clone(),
                    action,
                    rationale,
                    ops,
                })?;
                match action {
                    None => {
                        let no_help = "the agent that was asked had no usable answer";
                        let why = format!("`{symptom}`: {no_help} (the plan was refused: {said})");
                        self.give_up_recovery(&step, why)
                    }
                    Some(PlanAction::Abort) => {
                        self.give_up_recovery(&step, format!("`{symptom}`: the recovery agent says: {said}"))
                    }
                    Some(_) if let Some(stop) = stop => self.apply_stop(stop, step),
                    Some(PlanAction::Skip) => self.leave_step(StepResult::Done, None),
                    Some(PlanAction::Retry) => self.retry_step(&step, "the step is tried again".to_owned()),
                    Some(PlanAction::Recover) => {
                        let (task, attempt) = (self.task.id, self.task.attempt);
                        self.add_effect(Effect::Recover { task, attempt });
                        Ok(())
                    }
                }
            }
            RecoveryResult::Done { head, lines } => {
                self.retry_step(&step, lines.join("; "))?;
                if let Some(head) = head {
                    self.note_work_moved(head, &step)?;
                }
                match stop {
                    Some(stop) => self.handle_recovery_stop(stop, step),
                    None => Ok(()),
                }
            }
            RecoveryResult::PutOff => match stop {
                Some(stop) => self.handle_recovery_stop(stop, step),
                None => self.yield_attempt(YieldReason::Drained, None),
            },
            RecoveryResult::Failed { why } => {
                self.record_recovery_outcome(&step, RecoveryOutcome::Failed, why.clone())?;
                if let Some(stop) = stop {
                    return self.apply_stop(stop, step);
                }
                let looked =
                    self.task.recoveries.tries_since_success(&step).any(|it| it.tier == RecoveryTier::Agent);
                let last = self.task.recoveries.tried.iter().rev().find(|it| it.step == step).cloned();
                match last {
                    Some(last) if tier == RecoveryTier::Pattern && !looked => {
                        let (symptom, exit, tail) = (last.symptom, last.exit, last.tail);
                        let known = last.known.iter().map(|it| it.word().to_owned()).collect();
                        self.add_recovery_event(RecoveryEvent::Tried {
                            step,
                            symptom,
                            tier: RecoveryTier::Agent,
                            action: DIAGNOSE.to_owned(),
                            exit,
                            tail,
                            took_ms: last.took_ms,
                            known,
                        })?;
                        self.yield_attempt(YieldReason::Recovered, None)
                    }
                    Some(_) | None => self.give_up_recovery(&step, format!("`{symptom}`: {why}")),
                }
            }
        }
    }

    /// What was to be done is done: the step is tried again.
    fn retry_step(&mut self, step: &StepName, detail: String) -> Result<(), NewsRefusal> {
        self.record_recovery_outcome(step, RecoveryOutcome::Partial, detail)?;
        self.yield_attempt(YieldReason::Recovered, None)
    }

    /// A person wanted it stopped while something was done about its failure.
    fn handle_recovery_stop(
        &mut self,
        stop: crate::task::StopRequest,
        step: StepName,
    ) -> Result<(), NewsRefusal> {
        let step = self.task.step().cloned().unwrap_or(step);
        self.apply_stop(stop, step)
    }

    /// The work stands elsewhere now, in the store. Whoever works goes on from there; what is past its agent is verified
    /// again.
    fn note_work_moved(&mut self, head: &Commit, step: &StepName) -> Result<(), NewsRefusal> {
        self.add_event(Event::SentBack { to: head.clone() })?;
        if matches!(self.flow_step(step).kind, StepKind::Agent { .. }) {
            return Ok(());
        }
        self.add_event(Event::Offered { head: head.clone() })?;
        let flow = self.task.flow.as_ref().expect("a task in a step is bound to a flow");
        let verify = flow.steps.iter().find(|step| step.kind == StepKind::Verify);
        match verify.map(|step| step.name.clone()) {
            Some(verify) => self.make_current(&verify),
            None => Ok(()), // what lands is verified all the same
        }
    }
}

/// That the agent of a step did nothing, if that is what was last wrong with it: it says more than what was tried about it.
fn idle_agent_reason(task: &Task, step: &StepName) -> Option<String> {
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
fn with_missing_outputs(climbed: &RecoveryContext, missing: &[String]) -> RecoveryContext {
    let mut climbed = climbed.clone();
    if !missing.is_empty() {
        let gap = if climbed.tail.is_empty() || climbed.tail.ends_with('\n') { "" } else { "\n" };
        climbed.tail.push_str(&format!("{gap}{LACKS}{}", missing.join(", ")));
    }
    climbed
}

fn missing_outputs_line(tail: &str) -> Option<&str> {
    tail.lines().last().filter(|line| line.starts_with(LACKS))
}

/// What an agent is told that says it is done and has left nothing.
fn missing_output_feedback(missing: &[String]) -> Feedback {
    let text = match missing {
        [] => "You ended as if all was done, but what this step is for is not there: your branch has no commit of yours, or \
               what you were to say cannot be read. Do the work. If nothing needs to change, signal BLOCKED with the reason."
            .to_owned(),
        some => format!("Missing, empty or not written in this run: {}", some.join(", ")),
    };
    Feedback { about: "What this step must leave behind is not there".to_owned(), text }
}
