//! What follows from a plan, a judge's word, a dialogue about the objective and the measure of a stage; and from a person
//! who runs one step by hand, or changes their mind.

use std::sync::Arc;

use super::{DecisionDraft, NewsRefusal, not_now_refusal};
use crate::annotate::AnnotationResumePoint;
use crate::audit::ChangeSize;
use crate::convergence::{self, AcceptedStage, Exclusion, StageProgress, format_share};
use crate::event::{Event, StepResult};
use crate::flow::{EdgeTarget, Flow, FlowStep, StepKind};
use crate::input::{AnnotatedDocument, EndedRun, YieldReason};
use crate::objective::{
    self, ItemWish, Objective, ObjectiveItem, Refinement, RefinementStatus, Requirement, Weight,
};
use crate::plan::PlanOutline;
use crate::proof::{self, PROOFS_MAX, ProofAuthor, ProofState, ProofSubject, RequiredProof};
use crate::review::ReviewerFinding;
use crate::score::{
    self, GatePoint, Judgement, JudgementOutcome, RefinementImpact, ScoreFacts, format_score,
};
use crate::staged::{JudgeResult, PLAN, STEPS_WITHOUT_PROOF, StagedEvent};
use crate::task::{AttemptPhase, EndCode, EndKind, Ending, Feedback, StopRequest, Task, TaskState};
use crate::tune::{self, GateParams};
use crate::{StepName, WaitReason};

/// Refinements that may be open. Who has more to say had better change the objective.
pub const REFINEMENTS_MAX: usize = 20;

/// Findings of one check that the journal keeps; the judge's answer has them all.
const FINDINGS_KEPT: usize = 30;

/// What a task of a module folder is told when its target says nothing.
const FILL_TARGET: &str =
    "its target says nothing yet: fill .target.md first, then `landfall retry` takes it up";

impl DecisionDraft {
    fn add_staged_event(&mut self, event: StagedEvent) -> Result<(), NewsRefusal> {
        self.add_event(Event::Staged(event))
    }

    /// Whether the words of a task say what to do. A title is enough, but not for a module: its title is only a name.
    pub(super) fn has_empty_spec(&self) -> bool {
        let spec = &self.task.spec;
        spec.source.starts_with("module:")
            && spec.criteria.is_empty()
            && !objective::is_substantive(&spec.body)
    }

    /// It cannot begin: nobody said what it is for.
    pub(super) fn end_for_empty_target(&mut self) -> Result<(), NewsRefusal> {
        self.end_task(EndKind::Blocked, EndCode::EmptyTarget, FILL_TARGET.to_owned())
    }

    /// Takes in what an agent wrote for those after it: the plan, and how far it is.
    pub(super) fn note_papers(&mut self, run: &EndedRun) -> Result<(), NewsRefusal> {
        let attempt = run.attempt;
        let evidence = &run.evidence;
        let known = &self.task.staged.papers;
        let others: Vec<_> = evidence
            .papers
            .iter()
            .filter(|(name, digest)| name != PLAN && known.get(name) != Some(digest))
            .cloned()
            .collect();
        let plan = evidence.papers.iter().find(|(name, _)| name == PLAN).map(|(_, digest)| digest.clone());
        // A step that must write a plan wrote one, even in the same words as the one before.
        let plans = match self.task.last_step.as_ref().map(|step| &self.flow_step(step).kind) {
            Some(StepKind::Agent { output, .. }) => output.iter().any(|path| path.ends_with(PLAN)),
            _ => false,
        };
        let written = plans && evidence.missing.is_empty();
        let plan = plan.filter(|digest| written || known.get(PLAN) != Some(digest));
        if let (Some(paper), Some(outline)) = (plan, &evidence.outline) {
            let covers = outline.covered_requirements().into_iter().collect();
            let (steps, approach) = (outline.len(), outline.approach());
            self.add_staged_event(StagedEvent::Planned { attempt, paper, steps, covers, approach })?;
            self.promise_steps(outline)?;
        }
        if !others.is_empty() {
            self.add_staged_event(StagedEvent::PapersKept { attempt, papers: others })?;
        }
        Ok(())
    }

    /// Takes in the checks that a plan names, in place of those of the plan before it.
    fn promise_steps(&mut self, outline: &PlanOutline) -> Result<(), NewsRefusal> {
        let named = outline.steps.iter().filter_map(|step| {
            let (of, about) = (ProofSubject::Step(step.number), step.title.clone());
            Some(RequiredProof { of, about, command: step.verify.clone()?, before: None })
        });
        let promises: Vec<RequiredProof> = named.take(PROOFS_MAX).collect();
        let had = self.task.staged.proofs.all.iter().any(|it| matches!(it.promise.of, ProofSubject::Step(_)));
        if promises.is_empty() && !had {
            return Ok(());
        }
        self.add_staged_event(StagedEvent::Promised { by: ProofAuthor::Planner, promises })
    }

    /// Takes in the tests that a judge names for what is to be mended, in place of what was not proved of the last ones.
    fn promise_findings(&mut self, judgement: &Judgement, result: StepResult) -> Result<(), NewsRefusal> {
        let first = self.task.staged.proofs.next_finding();
        let before = self.task.head.clone();
        let named =
            judgement.findings.iter().filter_map(|said| Some((said.title.clone(), said.test.clone()?)));
        let promises: Vec<RequiredProof> = match result {
            StepResult::NeedsFix => (first..)
                .zip(named.take(PROOFS_MAX))
                .map(|(number, (about, command))| RequiredProof {
                    of: ProofSubject::Finding(number),
                    about,
                    command,
                    before: before.clone(),
                })
                .collect(),
            _ => Vec::new(),
        };
        let unproved = |it: &proof::Proof| {
            matches!(it.promise.of, ProofSubject::Finding(_))
                && it.proof_state() != ProofState::Proved
                && it.lost == 0
        };
        if promises.is_empty() && !self.task.staged.proofs.all.iter().any(unproved) {
            return Ok(());
        }
        self.add_staged_event(StagedEvent::Promised { by: ProofAuthor::Judge, promises })
    }

    /// Takes in what the checks showed that the plan and judges named.
    pub(super) fn note_proofs(
        &mut self,
        head: &crate::Commit,
        proofs: &[(proof::ProofRun, String)],
    ) -> Result<(), NewsRefusal> {
        if proofs.is_empty() {
            return Ok(());
        }
        let (attempt, head) = (self.task.attempt, head.clone());
        self.add_staged_event(StagedEvent::Proved {
            attempt,
            head,
            runs: proofs.iter().map(|(run, _)| *run).collect(),
        })
    }

    /// Takes in how large the change is.
    pub(super) fn note_change_size(&mut self, extent: Option<ChangeSize>) -> Result<(), NewsRefusal> {
        match extent {
            Some(extent) if self.task.staged.extent != Some(extent) => {
                let attempt = self.task.attempt;
                self.add_staged_event(StagedEvent::Measured { attempt, extent })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether one of the checks that were run just now does not pass and should.
    pub(super) fn has_failing_proof(&self, proofs: &[(proof::ProofRun, String)]) -> bool {
        let all = &self.task.staged.proofs.all;
        all.iter().any(|it| it.sends_work_back() && proofs.iter().any(|(run, _)| run.of == it.promise.of))
    }

    /// What whoever works is told of the checks that do not pass.
    pub(super) fn proof_feedback(&self, proofs: &[(proof::ProofRun, String)]) -> Feedback {
        let mut text = String::new();
        for (run, excerpt) in proofs {
            let all = &self.task.staged.proofs.all;
            let Some(proof) = all.iter().find(|it| it.promise.of == run.of && it.sends_work_back()) else {
                continue;
            };
            text.push_str(&format!("- {}\n{}\n", proof.line(), excerpt.trim_end()));
        }
        text.push_str(
            "These checks ran on a clean checkout. Mend the work, not the check. If a `Verify:` line of the plan itself is wrong, \
             correct it in the plan; if a judge's test is, say CHECK.\n",
        );
        Feedback { about: "Checks that the plan or a judge named do not pass".to_owned(), text }
    }

    /// Counts the steps of the plan that an agent says are done.
    pub(super) fn note_steps_done(&mut self, said: Option<u32>, complete: bool) -> Result<(), NewsRefusal> {
        let plan = &self.task.staged.plan;
        let done = if complete { plan.steps } else { said.unwrap_or(0).min(plan.steps) };
        if done > plan.done {
            let attempt = self.task.attempt;
            return self.add_staged_event(StagedEvent::Advanced { attempt, done });
        }
        Ok(())
    }

    /// Whether a judge is to look before the agent goes on: enough steps are done, or a person changed their mind.
    pub(super) fn wants_judge(&self, step: &StepName) -> bool {
        let StepKind::Agent { every, .. } = self.flow_step(step).kind else { return false };
        if self.find_edge(step, StepResult::MidExec).is_none() {
            return false;
        }
        let staged = &self.task.staged;
        let plan = &staged.plan;
        let every = match self.gate_params() {
            Some(params) if every > 0 => params.mid_exec_interval,
            _ => every,
        };
        let unseen = plan.done - plan.checked;
        let due = plan.done < plan.steps
            && (every > 0 && unseen >= every
                || unseen >= STEPS_WITHOUT_PROOF && staged.proof_anomaly().is_some());
        let new = staged.refinements.iter().any(|it| it.state == RefinementStatus::Pending);
        due || new
    }

    /// A judge has read the work.
    pub(super) fn handle_judgement(&mut self, run: &EndedRun, step: &StepName) -> Result<(), NewsRefusal> {
        let StepKind::Check { checkpoint, threshold } = self.flow_step(step).kind else {
            return Err(not_now_refusal(&self.task, "nothing is being judged"));
        };
        let Some(judgement) = &run.evidence.judgement else {
            return self.handle_judge_failure("it said nothing that could be read as a judgement");
        };
        let counted = self.counted_coverage(checkpoint, judgement);
        if checkpoint == GatePoint::PostExec && self.has_objective() && counted.is_empty() {
            return self.handle_judge_failure("it did not say how far the requirements are covered");
        }
        let known = self.score_facts(judgement, checkpoint);
        let threshold = tune::applied_threshold(&self.task, checkpoint, threshold);
        let weights = tune::applied_weights(&self.task);
        let Some(ruling) = score::weigh_judgement(checkpoint, threshold, weights, judgement, &known) else {
            return self.handle_judge_failure("it gave no scores");
        };
        let JudgementOutcome { result, scores, composite, shortfalls } = ruling;
        let judged = JudgeResult {
            checkpoint,
            stage: self.task.staged.focus.as_ref().map(|focus| focus.number),
            head: self.task.head.clone(),
            scores,
            composite,
            result,
            reasons: shortfalls.iter().map(ToString::to_string).collect(),
            coverage: counted,
            findings: judgement.findings.iter().take(FINDINGS_KEPT).map(ReviewerFinding::line).collect(),
            at: self.at,
        };
        let reasons = judged.reasons.clone();
        self.add_staged_event(StagedEvent::Judged { attempt: run.attempt, judged })?;
        if checkpoint != GatePoint::PostPlan {
            self.promise_findings(judgement, result)?;
        }
        self.weigh_refinements(judgement)?;
        let mut feedback = check_feedback(checkpoint, result, &reasons, judgement);
        let open: Vec<Refinement> = self.task.staged.open_refinements().cloned().collect();
        // Whoever comes next deals with them. Work is accepted only when there is nothing in them to deal with.
        if !open.is_empty() && result != StepResult::CheckBlocked {
            feedback
                .text
                .push_str("\nThe person changed their mind since this began. Take it into account:\n");
            for refinement in &open {
                feedback.text.push_str(&format!("- {}\n", refinement.text.replace('\n', " ")));
            }
            let numbers = open.iter().map(|it| it.number).collect();
            self.add_staged_event(StagedEvent::RefinementsTaken { numbers })?;
        }
        if result == StepResult::CheckBlocked {
            let reason = judgement.reason.trim();
            let detail =
                if reason.is_empty() { "the judge says that it cannot be done as it stands" } else { reason };
            let goes_on = self.find_edge(step, result).is_some_and(|edge| edge.to != EdgeTarget::Stop);
            if !goes_on {
                return self.end_task(EndKind::Blocked, EndCode::CheckBlocked, detail.to_owned());
            }
        }
        let says = !feedback.text.trim().is_empty() && result != StepResult::Accept;
        self.leave_step(result, says.then_some(feedback))
    }

    /// What its kind asks of checks, settled when it was bound; none when nobody said what kind it is.
    fn gate_params(&self) -> Option<GateParams> {
        self.task.limits.tuning
    }

    /// How often an edge may be taken: what the kind of the task says, or else the flow. The size of the change is no reason.
    pub(super) fn edge_bound(&self, step: &StepName, result: StepResult, max: u32) -> u32 {
        let is_retry = match (&self.flow_step(step).kind, result) {
            (StepKind::Check { .. }, StepResult::NeedsRevision | StepResult::NeedsFix) => true,
            (StepKind::Check { checkpoint, .. }, StepResult::Replan) => *checkpoint == GatePoint::PostExec,
            _ => false,
        };
        match (&self.flow_step(step).kind, self.gate_params()) {
            (StepKind::Check { checkpoint, .. }, Some(params)) if is_retry => params.retries.of(*checkpoint),
            _ => max,
        }
    }

    fn has_objective(&self) -> bool {
        self.task.staged.focus.is_some()
    }

    /// What the judge says of the requirements, held against what was there before. Only numbers that there are count.
    fn counted_coverage(&self, checkpoint: GatePoint, judgement: &Judgement) -> convergence::Coverage {
        if checkpoint != GatePoint::PostExec {
            return convergence::Coverage::new();
        }
        let staged = &self.task.staged;
        let baseline = staged.baseline_requirements();
        let before = staged.stages.last().map(|stage| &stage.coverage);
        let mut all = convergence::update_coverage(before, &judgement.coverage);
        all.retain(|number, _| baseline.iter().any(|requirement| requirement.number == *number));
        all
    }

    /// What the engine knows of the work, which no judge can overrule.
    fn score_facts(&self, judgement: &Judgement, checkpoint: GatePoint) -> ScoreFacts {
        let task = &self.task;
        let red = match &task.gate {
            Some(gate) => !gate.outcome().is_green(),
            None => checkpoint == GatePoint::PostExec, // nobody verified it
        };
        let proofs = &task.staged.proofs;
        let red = red || proofs.due_proofs(task.staged.plan.done).any(proof::Proof::sends_work_back);
        let impact = |it: &Refinement| {
            let said = judgement.impacts.iter().find(|(number, _)| *number == it.number);
            match (said, it.state) {
                (Some((_, impact)), _) => *impact,
                (None, RefinementStatus::Weighed(impact)) => impact,
                (None, _) => RefinementImpact::Minor, // nobody said; it is not lost
            }
        };
        ScoreFacts {
            red,
            uncovered: task.staged.uncovered_requirements(),
            unproved: proofs.too_few_proofs(),
            caps: task.gate.iter().flat_map(|gate| gate.dimension_caps()).collect(),
            refinement: task
                .staged
                .open_refinements()
                .map(impact)
                .max()
                .filter(|impact| *impact > RefinementImpact::None),
        }
    }

    fn weigh_refinements(&mut self, judgement: &Judgement) -> Result<(), NewsRefusal> {
        let pending: Vec<u32> = self
            .task
            .staged
            .refinements
            .iter()
            .filter(|it| it.state == RefinementStatus::Pending)
            .map(|it| it.number)
            .collect();
        for number in pending {
            let said = judgement.impacts.iter().find(|(it, _)| *it == number).map(|(_, impact)| *impact);
            self.add_staged_event(StagedEvent::RefinementWeighed {
                number,
                impact: said.unwrap_or(RefinementImpact::Minor),
            })?;
        }
        Ok(())
    }

    /// Where no judge weighs what a person wants otherwise, whoever works hears it itself.
    fn delivers_refinements(&self, step: &StepName) -> bool {
        let judged = self.task.flow.as_ref().is_none_or(|flow| flow.has_judge());
        !judged && matches!(self.flow_step(step).kind, StepKind::Agent { iterate: true, .. })
    }

    /// The run that begins is told what is new of it.
    pub(super) fn mark_refinements_told(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        if !self.delivers_refinements(step) {
            return Ok(());
        }
        self.weigh_refinements(&Judgement::default())
    }

    /// The run that is done has dealt with what it was told. True: something was said since, and is not to be lost.
    pub(super) fn resolve_told_refinements(&mut self, step: &StepName) -> Result<bool, NewsRefusal> {
        if !self.delivers_refinements(step) {
            return Ok(false);
        }
        let open = || self.task.staged.open_refinements();
        let told =
            open().filter(|it| it.state != RefinementStatus::Pending).map(|it| it.number).collect::<Vec<_>>();
        let more = open().count() > told.len();
        if !told.is_empty() {
            self.add_staged_event(StagedEvent::RefinementsTaken { numbers: told })?;
        }
        Ok(more)
    }

    /// An error of the judge, not of the work: it stops, and no round is spent.
    pub(super) fn handle_judge_failure(&mut self, why: &str) -> Result<(), NewsRefusal> {
        let step = self.current_step();
        let detail = format!("the judge of step `{step}` failed: {why}; nothing is known of the work");
        self.end_task(EndKind::Failed, EndCode::CheckFailed, detail)
    }

    /// What a task in a step of kind `target` begins with, if not with an agent. True: it is dealt with.
    pub(super) fn enter_target(&mut self, step: &StepName) -> Result<bool, NewsRefusal> {
        let objective = self.task.staged.objective.clone();
        if objective.as_ref().is_some_and(Objective::is_confirmed) {
            self.make_current(step)?;
            self.begin_stage()?;
            return Ok(true);
        }
        if self.has_empty_spec() {
            self.end_for_empty_target()?;
            return Ok(true);
        }
        let heard = !self.task.feedback.is_empty() || !self.task.messages.is_empty();
        let criteria = &self.task.spec.criteria;
        // Criteria are requirements already: nobody has to make them up.
        if objective.is_none() && !criteria.is_empty() && !heard {
            let requirements = (1..)
                .zip(criteria)
                .map(|(number, text)| Requirement::new(number, text, "", Weight::Important))
                .take(objective::REQUIREMENTS_MAX)
                .collect();
            let items = vec![ObjectiveItem { text: self.task.spec.title.clone(), requirements }];
            self.add_staged_event(StagedEvent::ObjectiveSet { items, constraints: Vec::new() })?;
            self.make_current(step)?;
            self.ask_for_approval(step)?;
            return Ok(true);
        }
        if objective.is_some() && !heard {
            self.make_current(step)?;
            self.ask_for_approval(step)?;
            return Ok(true);
        }
        Ok(false) // an agent splits it, in an attempt of its own
    }

    fn ask_for_approval(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        self.add_staged_event(StagedEvent::ObjectiveShown)?;
        let text = objective::prompt(self.task.staged.objective.as_ref().expect("just shown"));
        self.add_event(Event::Waited { wait: WaitReason::Question { text }, then: step.clone() })
    }

    /// An agent has split the objective, after it was told this.
    pub(super) fn handle_target_split(
        &mut self,
        run: &EndedRun,
        step: &StepName,
        told: &[Feedback],
    ) -> Result<(), NewsRefusal> {
        let unread = |what: &str| Feedback {
            about: "What you said could not be read".to_owned(),
            text: format!("{what}. End with one JSON block, just as this page asks for."),
        };
        let Some(split) = &run.evidence.split else {
            let what = "There was no block to read";
            return self.try_output_again("its agent's answer held no JSON block", unread(what));
        };
        if let Some(question) = split.ask.as_ref().filter(|text| !text.trim().is_empty()) {
            self.yield_attempt(YieldReason::Asked, None)?;
            let wait = WaitReason::Question { text: question.clone() };
            return self.add_event(Event::Waited { wait, then: step.clone() });
        }
        let known = self.task.staged.objective.clone().unwrap_or_default();
        let items = match objective::merge_items(&known.items, split, item_wish(told, known.items.len())) {
            Ok(items) => items,
            Err(error) => {
                let what = format!("its agent's answer cannot be used: {error}");
                return self.try_output_again(&what, unread(&error.to_string()));
            }
        };
        let constraints =
            if split.constraints.is_empty() { known.constraints } else { split.constraints.clone() };
        self.add_staged_event(StagedEvent::ObjectiveSet { items, constraints })?;
        self.yield_attempt(YieldReason::Asked, None)?;
        self.ask_for_approval(step)
    }

    /// A person spoke about the objective. Only a yes to what was shown, unchanged since, begins the work.
    pub(super) fn handle_target_answer(
        &mut self,
        question: &str,
        text: &str,
        step: &StepName,
    ) -> Result<(), NewsRefusal> {
        let objective = self.task.staged.objective.clone();
        let awaits = objective.as_ref().is_some_and(Objective::needs_approval);
        let confirmed = objective.as_ref().is_some_and(Objective::is_confirmed); // a cut journal still asks
        if (awaits || confirmed) && objective::is_yes(text) {
            if awaits {
                self.add_staged_event(StagedEvent::ObjectiveConfirmed)?;
            }
            self.add_event(Event::Resumed { feedback: None })?;
            return self.begin_stage();
        }
        if objective.is_some() && (objective::is_yes(text) || objective::is_continue(text)) {
            // It was never shown, or changed since, or nothing was said about it: it is shown first.
            self.add_event(Event::Resumed { feedback: None })?;
            return self.ask_for_approval(step);
        }
        let asked = Feedback {
            about: "What the person was asked about the objective".to_owned(),
            text: question.to_owned(),
        };
        self.add_event(Event::Resumed { feedback: Some(asked) })?;
        if objective::wants_research(text) {
            let about = Some(ON_RESEARCH.to_owned());
            self.add_event(Event::Messaged { about, text: objective::RESEARCH.to_owned() })?;
        }
        self.add_event(Event::Messaged { about: Some(ON_OBJECTIVE.to_owned()), text: text.to_owned() })
    }

    /// The words of a task changed while its objective is worked out: what was shown is stale.
    pub(super) fn handle_stale_objective(&mut self) -> Result<(), NewsRefusal> {
        let at_target = self.task.step().is_some_and(|step| {
            self.task
                .flow
                .as_ref()
                .and_then(|flow| flow.find_step(step))
                .is_some_and(|it| it.kind == StepKind::Target)
        });
        let Some(objective) = self.task.staged.objective.clone().filter(|_| at_target) else { return Ok(()) };
        let Objective { items, constraints, .. } = objective;
        self.add_staged_event(StagedEvent::ObjectiveSet { items, constraints })?;
        if matches!(&self.task.state, TaskState::Waiting { wait: WaitReason::Question { .. }, .. }) {
            let feedback = Feedback {
                about: WORDS_CHANGED.to_owned(),
                text: "Bring the objective in line with them.".to_owned(),
            };
            return self.add_event(Event::Resumed { feedback: Some(feedback) });
        }
        Ok(())
    }

    /// What the next stage is, and is for: unmet requirements, by weight and coverage, in a direction that was not given up.
    ///
    /// # Errors
    /// Why there is none, for a person.
    fn next_focus(&self) -> Result<(u32, Vec<u32>), String> {
        let staged = &self.task.staged;
        let none = convergence::Coverage::new();
        let coverage = staged.stages.last().map_or(&none, |stage| &stage.coverage);
        let number = staged.stages.last().map_or(0, |stage| stage.number) + 1;
        let barred = staged.barred_directions();
        match (convergence::next_focus(&staged.baseline_requirements(), coverage, barred), barred.len()) {
            (Some(focus), _) => Ok((number, focus)),
            (None, 0) => Err("no requirement is left that a stage could be for".to_owned()),
            (None, tried) => Err(format!("every direction was tried: {tried} were given up")),
        }
    }

    /// Leaves the dialogue with a stage to work on, or stops where there is none: nothing is done without being measured.
    fn begin_stage(&mut self) -> Result<(), NewsRefusal> {
        if self.task.staged.focus.is_none() {
            match self.next_focus() {
                Ok((number, focus)) => self.add_staged_event(StagedEvent::StageBegan { number, focus })?,
                Err(detail) => return self.end_task(EndKind::Blocked, EndCode::DirectionsUsedUp, detail),
            }
        }
        self.leave_step(StepResult::Answered, None)
    }

    /// A stage is measured against the objective.
    pub(super) fn measure_convergence(&mut self, step: &StepName) -> Result<(), NewsRefusal> {
        self.make_current(step)?;
        let staged = self.task.staged.clone();
        let (Some(focus), Some(judged)) = (&staged.focus, staged.last_judged()) else {
            if staged.objective.is_none() {
                // A flow without a target has nothing to measure by: what was accepted is all there is.
                return self.leave_step(StepResult::Satisfied, None);
            }
            let detail = format!("step `{step}` has nothing to measure: no stage was begun and judged");
            return self.end_task(EndKind::Failed, EndCode::CheckFailed, detail);
        };
        let Some(commit) = judged.head.clone().or_else(|| self.task.head.clone()) else {
            let detail = format!("step `{step}` has nothing to measure: no commit");
            return self.end_task(EndKind::Blocked, EndCode::NothingChanged, detail);
        };
        let baseline = staged.baseline_requirements();
        let Some(current) = convergence::compute_convergence(&baseline, &judged.coverage) else {
            let detail = "there is no requirement to measure it by".to_owned();
            return self.end_task(EndKind::Failed, EndCode::CheckFailed, detail);
        };
        // Under today's requirements: they may have changed since.
        let score = |stage: &AcceptedStage| convergence::compute_convergence(&baseline, &stage.coverage);
        let previous = staged.stage_before().and_then(score);
        let progress = convergence::compare_stages(previous, current);
        let attempt = self.task.attempt;
        self.add_staged_event(StagedEvent::Converged {
            attempt,
            previous,
            current,
            progress,
            commit: commit.clone(),
        })?;
        match progress {
            StageProgress::Satisfied => self.leave_step(StepResult::Satisfied, None),
            StageProgress::Closer => self.next_stage(StepResult::Continue, None),
            StageProgress::Stuck => {
                let about = "The stage came no closer to the objective".to_owned();
                let text = format!(
                    "Convergence is {} and was 0. Look at the requirements of the stage.",
                    format_share(current)
                );
                self.leave_step(StepResult::NeedsFix, Some(Feedback { about, text }))
            }
            StageProgress::NoCloser => {
                let from = previous.unwrap_or(0);
                let reason =
                    format!("convergence went from {} to {}", format_share(from), format_share(current));
                let focus = focus.requirements.clone();
                self.roll_back(focus, reason, (from, current), commit)
            }
        }
    }

    /// Continues with another stage, or stops where there is none.
    fn next_stage(&mut self, result: StepResult, feedback: Option<Feedback>) -> Result<(), NewsRefusal> {
        let (number, focus) = match self.next_focus() {
            Ok(next) => next,
            Err(detail) => return self.end_task(EndKind::Blocked, EndCode::DirectionsUsedUp, detail),
        };
        self.leave_step(result, feedback)?;
        if self.task.is_over() {
            return Ok(());
        }
        self.add_staged_event(StagedEvent::StageBegan { number, focus })
    }

    /// A stage is given up: its branch goes back to the stage before, its direction is not taken again.
    pub(super) fn roll_back(
        &mut self,
        focus: Vec<u32>,
        reason: String,
        (from, to): (u32, u32),
        abandoned: crate::Commit,
    ) -> Result<(), NewsRefusal> {
        let Some(back) = self.task.staged.stage_before().cloned() else {
            return self.end_task(EndKind::Blocked, EndCode::DirectionsUsedUp, reason);
        };
        let stage = back.number + 1;
        let names = focus.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ");
        let direction = match self.task.staged.plan.approach.as_str() {
            "" => format!("stage {stage} for {names}"),
            approach => format!("stage {stage} for {names}: {approach}"),
        };
        let text = format!(
            "Stage {stage} was given up ({reason}) and the branch is back at the end of stage {}. Its work is kept under a ref. \
             Take another way: {direction} as it was tried is out of the question.",
            back.number
        );
        let exclusion = Exclusion { stage, focus, direction, reason, abandoned, from, to };
        self.add_staged_event(StagedEvent::GivenUp { exclusion })?;
        if let Err(detail) = self.next_focus().and_then(|next| self.another_direction(next)) {
            self.back_to_stage(&back)?;
            let at = back.commit.short_hash();
            let detail = format!("{detail}; the branch is back at the end of stage {} ({at})", back.number);
            return self.end_task(EndKind::Blocked, EndCode::DirectionsUsedUp, detail);
        }
        let feedback = Feedback { about: "The last stage was rolled back".to_owned(), text };
        self.next_stage(StepResult::Rollback, Some(feedback))?;
        if self.task.is_over() {
            return Ok(());
        }
        self.add_event(Event::SentBack { to: back.commit })
    }

    /// The next direction, if the flow lets the task be rolled back once more.
    fn another_direction(&self, next: (u32, Vec<u32>)) -> Result<(u32, Vec<u32>), String> {
        let step = self.current_step();
        let taken = self.task.counters.edges.get(&(step.clone(), StepResult::Rollback)).copied().unwrap_or(0);
        match self.find_edge(&step, StepResult::Rollback).and_then(|edge| edge.max) {
            Some(max) if taken >= max => {
                Err(format!("{max} directions were given up, as many as its flow allows"))
            }
            Some(_) | None => Ok(next),
        }
    }

    /// The work of a stage that was accepted is the work of the task again.
    fn back_to_stage(&mut self, stage: &AcceptedStage) -> Result<(), NewsRefusal> {
        self.add_event(Event::SentBack { to: stage.commit.clone() })?;
        self.add_event(Event::Offered { head: stage.commit.clone() })
    }

    /// Begins a stage in a new direction, for a task that stopped because no direction was left and is taken up again. False:
    /// no requirement is left that a stage could be for.
    pub(super) fn begin_direction(&mut self) -> Result<bool, NewsRefusal> {
        let staged = &self.task.staged;
        let is_confirmed = staged.objective.as_ref().is_some_and(Objective::is_confirmed);
        let (Some(flow), true) = (self.task.flow.clone(), is_confirmed && staged.focus.is_none()) else {
            return Ok(false);
        };
        let converge = flow.steps.iter().find(|step| step.kind == StepKind::Converge);
        let edge = converge.and_then(|step| step.on.iter().find(|edge| edge.result == StepResult::Rollback));
        let (Some(EdgeTarget::Step(plan)), Ok((number, focus))) =
            (edge.map(|edge| &edge.to), self.next_focus())
        else {
            return Ok(false);
        };
        // A journal of an older version stopped on the work that was given up.
        if let Some(back) = self.task.staged.stages.last().cloned()
            && self.task.head.as_ref() != Some(&back.commit)
        {
            self.back_to_stage(&back)?;
        }
        self.add_staged_event(StagedEvent::StageBegan { number, focus })?;
        self.add_event(Event::Directed { step: plan.clone(), alone: false })?;
        Ok(true)
    }

    /// Whether a step that was taken too often can be got out of by giving the stage up.
    pub(super) fn can_give_up(&self, step: &StepName) -> Option<StepName> {
        let StepKind::Check { checkpoint: GatePoint::PostExec, .. } = self.flow_step(step).kind else {
            return None;
        };
        if self.task.staged.stage_before().is_none() || self.task.staged.focus.is_none() {
            return None;
        }
        let flow = self.task.flow.as_ref()?;
        flow.steps.iter().find(|it| it.kind == StepKind::Converge).map(|it| it.name.clone())
    }

    /// Gives the stage up because a judge sent it back too often.
    pub(super) fn give_up_stage(&mut self, converge: &StepName, reason: String) -> Result<(), NewsRefusal> {
        let staged = &self.task.staged;
        let focus = staged.focus.as_ref().map(|focus| focus.requirements.clone()).unwrap_or_default();
        let from = staged.stage_before().map_or(0, |stage| stage.convergence);
        let Some(head) = self.task.head.clone() else {
            return self.end_task(EndKind::Failed, EndCode::EdgeLimit, reason);
        };
        self.make_current(converge)?;
        self.roll_back(focus, reason, (from, from), head)
    }

    /// A person wants one step done now. Their step comes next; then the flow goes on from what it left.
    pub(super) fn run_requested_step(
        &mut self,
        (command, checkpoint): (&str, Option<GatePoint>),
        alone: bool,
        flow: Option<&Arc<Flow>>,
    ) -> Result<(), NewsRefusal> {
        let task = &self.task;
        let Some(flow) = flow else {
            return Err(not_now_refusal(task, "it has no flow that could be followed"));
        };
        let phase = task.phase_word_in(flow);
        let refuse = || NewsRefusal::NotAllowed {
            task: task.id,
            command: command.to_owned(),
            phase: phase.clone(),
            allowed: possible_commands(task, flow, &phase),
        };
        let key = match checkpoint {
            Some(checkpoint) => format!("{command}/{}", checkpoint.word()),
            None => command.to_owned(),
        };
        let by_phase =
            flow.commands.get(&key).or_else(|| flow.commands.get(command).filter(|_| checkpoint.is_none()));
        let step = by_phase.and_then(|by| by.get(&phase)).cloned().ok_or_else(refuse)?;
        if self.task.landed.is_some()
            && !matches!(flow.find_step(&step).map(|step| &step.kind), Some(StepKind::Report))
        {
            return Err(refuse());
        }
        if matches!(flow.find_step(&step).map(|step| &step.kind), Some(StepKind::Land))
            && !is_accepted(task, flow)
        {
            return Err(not_now_refusal(
                task,
                "no judge has accepted this work: `check --checkpoint post-exec` comes first",
            ));
        }
        match self.task.state.clone() {
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => Err(refuse()),
            TaskState::Ended(_) => {
                self.add_event(Event::Retried { fresh: false, feedback: None })?;
                self.add_event(Event::Directed { step, alone })
            }
            // The step under way is finished first.
            TaskState::Active { doing: AttemptPhase::Queued { .. }, step: at } => {
                self.apply_stop(StopRequest::Pause, at)?;
                self.add_event(Event::Directed { step, alone })
            }
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Active { .. } => self.add_event(Event::Directed { step, alone }),
        }
    }

    /// Taken up again, it goes on by the phase it was in, where its flow says how.
    pub(super) fn enter_by_phase(&mut self, fresh: bool) -> Result<(), NewsRefusal> {
        let Some(flow) = self.task.flow.clone().filter(|_| !fresh) else { return Ok(()) };
        if self.task.landed.is_some() || self.task.landing.is_some() {
            return Ok(()); // only what comes after the landing is owed
        }
        let last = self.task.last_step.as_ref().and_then(|step| flow.find_step(step));
        match last.and_then(|step| flow.entries.get(&step.phase)) {
            Some(step) => {
                let step = self.planned_first(&flow, step).unwrap_or_else(|| step.clone());
                self.add_event(Event::Directed { step, alone: false })
            }
            None => Ok(()),
        }
    }

    /// The step that writes the plan, where it would be judged and there is none.
    fn planned_first(&self, flow: &Flow, step: &StepName) -> Option<StepName> {
        let kind = &flow.find_step(step)?.kind;
        let judges_a_plan = matches!(kind, StepKind::Check { checkpoint: GatePoint::PostPlan, .. });
        if !judges_a_plan || self.task.staged.papers.contains_key(PLAN) {
            return None;
        }
        flow.plan_before(step).cloned()
    }

    /// A person changed their mind: it is weighed at the next check. A task that is done is taken up again.
    pub(super) fn add_refinement(&mut self, text: &str) -> Result<(), NewsRefusal> {
        let open = self.task.staged.open_refinements().count();
        let number = self.task.staged.refinements.iter().map(|it| it.number).max().unwrap_or(0) + 1;
        match &self.task.state {
            // Its next workspace would be made while the old one is taken away.
            TaskState::Ended(Ending { kind: EndKind::Done, .. }) if self.task.workspace.is_some() => {
                Err(not_now_refusal(
                    &self.task,
                    "what it left behind is still being put away; say it again in a moment",
                ))
            }
            TaskState::Ended(Ending { kind: EndKind::Done, .. }) => {
                self.add_event(Event::Reopened { text: text.to_owned() })?;
                let Some(flow) = self.task.flow.clone() else { return Ok(()) };
                match flow.entries.get("evolving").or_else(|| flow.entries.get("satisfied")) {
                    Some(step) => self.add_event(Event::Directed { step: step.clone(), alone: false }),
                    None => Ok(()),
                }
            }
            TaskState::Ended(Ending { kind: EndKind::Cancelled, .. }) => {
                Err(not_now_refusal(&self.task, "it was cancelled; add a new task instead"))
            }
            _ if open >= REFINEMENTS_MAX => Err(not_now_refusal(
                &self.task,
                "as many refinements as may be are open; change its words instead",
            )),
            _ if self.task.landed.is_some() => Err(not_now_refusal(
                &self.task,
                "it has landed and its report is being written; refine it after that",
            )),
            _ => self.add_staged_event(StagedEvent::Refined { number, text: text.to_owned() }),
        }
    }

    /// A person wrote into the margin of a paper. A plan that says something else now is judged again.
    pub(super) fn handle_annotation(&mut self, annotated: &AnnotatedDocument) -> Result<(), NewsRefusal> {
        let AnnotatedDocument { name, of, paper, outline, impact, onward } = annotated;
        let at_work = matches!(
            self.task.state,
            TaskState::Active { doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, .. }
        );
        if at_work {
            return Err(not_now_refusal(
                &self.task,
                "an agent is at work on it, and reads its papers as they were",
            ));
        }
        if self.task.staged.papers.get(name) != Some(of) {
            return Err(not_now_refusal(
                &self.task,
                "the paper has changed since it was read; look at it again",
            ));
        }
        let steps = outline.as_ref().map_or(0, PlanOutline::len);
        let covers = outline.iter().flat_map(|outline| outline.covered_requirements()).collect();
        let (name, paper) = (name.clone(), paper.clone());
        self.add_staged_event(StagedEvent::Annotated { name, paper, steps, covers, impact: *impact })?;
        if let Some(outline) = outline {
            self.promise_steps(outline)?;
        }
        let command = match onward {
            _ if self.task.landed.is_some() => return Ok(()), // only its report is owed
            AnnotationResumePoint::GoOn => return Ok(()),
            AnnotationResumePoint::Check => "check/post-exec",
            AnnotationResumePoint::CheckPlan => "check/post-plan",
            AnnotationResumePoint::Plan => "plan",
            AnnotationResumePoint::Target => "target",
        };
        let Some(by_phase) = self.task.flow.as_ref().and_then(|flow| flow.commands.get(command)) else {
            return Ok(());
        };
        // Past its check, a plan that changed is a new plan: it passes the check of one.
        let phase = self.task.phase_word();
        let Some(step) = by_phase.get(&phase).or_else(|| by_phase.get("re-planning")).cloned() else {
            return Ok(());
        };
        match &self.task.state {
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => Ok(()),
            TaskState::Ended(_) => {
                self.add_event(Event::Retried { fresh: false, feedback: None })?;
                self.add_event(Event::Directed { step, alone: false })
            }
            TaskState::Active { doing: AttemptPhase::Queued { .. }, step: at } => {
                let at = at.clone();
                self.apply_stop(StopRequest::Pause, at)?;
                self.add_event(Event::Directed { step, alone: false })
            }
            _ => self.add_event(Event::Directed { step, alone: false }),
        }
    }

    /// A person takes a refinement back, as long as nobody has dealt with it.
    pub(super) fn withdraw_refinement(&mut self, number: u32) -> Result<(), NewsRefusal> {
        let open = self.task.staged.open_refinements().any(|it| it.number == number);
        if !open {
            return Err(not_now_refusal(&self.task, "there is no open refinement of that number"));
        }
        self.add_staged_event(StagedEvent::RefinementWithdrawn { number })
    }
}

/// Above what a person said about an objective: these words say what becomes of its items.
const ON_OBJECTIVE: &str = "What the person says about the objective";
/// Above what its agent has to find out before it answers.
const ON_RESEARCH: &str = "The person asks for research";
const WORDS_CHANGED: &str = "The person changed the words of the task";

/// What a person asked to be done with the items of the objective, by what its agent was told.
fn item_wish(told: &[Feedback], items: usize) -> ItemWish {
    if told.iter().any(|it| it.about == WORDS_CHANGED) {
        return ItemWish::Change;
    }
    let said: Vec<&str> = told.iter().filter(|it| it.about == ON_OBJECTIVE).map(|it| &*it.text).collect();
    ItemWish::from_words(&said.join("\n"), items)
}

fn check_feedback(
    checkpoint: GatePoint,
    result: StepResult,
    reasons: &[String],
    judgement: &Judgement,
) -> Feedback {
    let passed = result == checkpoint.pass_result();
    let about = match passed {
        true => format!("The judge let it pass ({})", checkpoint.word()),
        false => format!("The judge sent it back: {} ({})", result.word(), checkpoint.word()),
    };
    let mut text = String::new();
    for reason in reasons {
        text.push_str(&format!("- {reason}\n"));
    }
    for finding in &judgement.findings {
        text.push_str(&format!("- {}\n", finding.line()));
        if !finding.detail.is_empty() {
            text.push_str(&format!("  {}\n", finding.detail.replace('\n', "\n  ")));
        }
    }
    if !passed && !judgement.reason.trim().is_empty() {
        text.push_str(&format!("\nIn the judge's words: {}\n", judgement.reason.trim()));
    }
    if !passed && let Some(scores) = judgement.scores {
        let all = scores.to_array().map(format_score);
        text.push_str(&format!("Scores D1 to D6: {}\n", all.join(", ")));
    }
    Feedback { about, text }
}

/// The steps of a flow that a person can have done now: those of the phase, and landing only once a judge accepted the work.
#[must_use]
pub fn possible_commands(task: &Task, flow: &Flow, phase: &str) -> Vec<String> {
    let lands = |step: &StepName| matches!(flow.find_step(step).map(|step| &step.kind), Some(StepKind::Land));
    let possible = |step: &StepName| !lands(step) || is_accepted(task, flow);
    let named = flow.commands.iter().filter(|(_, by)| by.get(phase).is_some_and(possible));
    named.map(|(name, _)| name.clone()).collect()
}

/// Whether the work as it is was accepted, in a flow where a judge has to: no hand leads past that.
fn is_accepted(task: &Task, flow: &Flow) -> bool {
    let judges =
        |step: &FlowStep| matches!(step.kind, StepKind::Check { checkpoint: GatePoint::PostExec, .. });
    if !flow.steps.iter().any(judges) {
        return true;
    }
    // What an agent is at work on is not what was judged.
    if let TaskState::Active { step, .. } = &task.state
        && matches!(flow.find_step(step).map(|step| &step.kind), Some(StepKind::Agent { .. }))
    {
        return false;
    }
    let last = task.staged.judged.iter().rev().find(|it| it.checkpoint == GatePoint::PostExec);
    last.is_some_and(|it| it.result == StepResult::Accept && it.head == task.head)
}
