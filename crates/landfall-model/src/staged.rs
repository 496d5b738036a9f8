//! What a task with a plan and an objective remembers: its papers, the plan's steps, what judges said, its stages.

use std::collections::{BTreeMap, BTreeSet};

use crate::annotate::AnnotationImpact;
use crate::audit::ChangeSize;
use crate::convergence::{AcceptedStage, Exclusion, StageProgress};
use crate::objective::{Objective, Refinement, RefinementStatus};
use crate::proof::{ProofSubject, Proofs};
use crate::score::GatePoint;
use crate::{Digest, Timestamp};
pub use landfall_facts::staged::{JudgeResult, StagedEvent};

/// The plan among the papers of a task.
pub const PLAN: &str = "plan.md";

/// What a task with a plan and an objective remembers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StagedState {
    /// What its agents wrote for each other, by name. They are kept outside of the branch: nothing of them lands.
    pub papers: BTreeMap<String, Digest>,
    /// How far its plan is.
    pub plan: PlanState,
    /// What judges said, the latest last.
    pub judged: Vec<JudgeResult>,
    /// What it is for, worked out with a person.
    pub objective: Option<Objective>,
    /// The stage under way.
    pub focus: Option<CurrentStage>,
    /// The stages that were accepted.
    pub stages: Vec<AcceptedStage>,
    /// The directions that led nowhere.
    pub exclusions: Vec<Exclusion>,
    /// How many of them, the first ones, a person's retry allows to be tried in another way.
    pub exclusions_lifted: usize,
    /// What a person wants otherwise since it began.
    pub refinements: Vec<Refinement>,
    /// The checks its plan and its judges named.
    pub proofs: Proofs,
    /// How large the change of the stage under way is, when it was last measured.
    pub extent: Option<ChangeSize>,
}

/// How far a plan is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanState {
    /// Its steps.
    pub steps: u32,
    /// Of these, done, in the words of whoever did them.
    pub done: u32,
    /// How many were done when a judge last looked.
    pub checked: u32,
    /// The requirements some step covers.
    pub covers: BTreeSet<u32>,
    /// Plans that were given up.
    pub superseded: u32,
    /// What it does, in the titles of its steps.
    pub approach: String,
    /// How many steps were done when a check of the plan last turned from red to green.
    pub proved_at: u32,
}

/// The stage under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentStage {
    /// Which, from 1.
    pub number: u32,
    /// The requirements it is for.
    pub requirements: Vec<u32>,
}

/// Steps of a plan with checks of its own after which a judge looks if none of the checks turned from red to green.
pub const STEPS_WITHOUT_PROOF: u32 = 3;

const JUDGED_MAX: usize = 50; // the journal keeps them all; a task shows the latest

impl StagedState {
    /// What a judge said last.
    #[must_use]
    pub fn last_judged(&self) -> Option<&JudgeResult> {
        self.judged.last()
    }

    /// The requirements that convergence is measured by.
    #[must_use]
    pub fn baseline_requirements(&self) -> Vec<crate::objective::Requirement> {
        self.objective.as_ref().map(Objective::requirements).unwrap_or_default()
    }

    /// Requirements of the stage that no step of the plan covers.
    #[must_use]
    pub fn uncovered_requirements(&self) -> Vec<u32> {
        let focus = self.focus.iter().flat_map(|focus| focus.requirements.iter().copied());
        focus.filter(|number| !self.plan.covers.contains(number)).collect()
    }

    /// The stage before the one under way: what that is measured by, and goes back to.
    #[must_use]
    pub fn stage_before(&self) -> Option<&AcceptedStage> {
        let under_way = self.focus.as_ref().map_or(u32::MAX, |focus| focus.number);
        self.stages.iter().rev().find(|stage| stage.number < under_way)
    }

    /// The directions that may not be taken again.
    #[must_use]
    pub fn barred_directions(&self) -> &[Exclusion] {
        self.exclusions.get(self.exclusions_lifted..).unwrap_or_default()
    }

    /// What is odd about the checks of the plan: its steps are done and no check turned from red to green.
    #[must_use]
    pub fn proof_anomaly(&self) -> Option<String> {
        let steps = self.plan.done.saturating_sub(self.plan.proved_at);
        let has_checks = self.proofs.all.iter().any(|it| matches!(it.promise.of, ProofSubject::Step(_)));
        (has_checks && steps >= STEPS_WITHOUT_PROOF).then(|| {
            format!(
                "no check of the plan turned from red to green during the last {steps} steps: find out why"
            )
        })
    }

    /// Refinements that nobody has dealt with.
    pub fn open_refinements(&self) -> impl Iterator<Item = &Refinement> {
        self.refinements.iter().filter(|it| match it.state {
            RefinementStatus::Pending | RefinementStatus::Weighed(_) => true,
            RefinementStatus::TakenIn | RefinementStatus::Withdrawn => false,
        })
    }

    /// What the fact changes; false if it cannot follow.
    pub(crate) fn apply_event(&mut self, at: Timestamp, event: &StagedEvent) -> bool {
        match event {
            StagedEvent::Planned { paper, steps, covers, approach, .. } => {
                let before = self.papers.insert(PLAN.to_owned(), paper.clone());
                let superseded = match before {
                    Some(old) if old != *paper => {
                        let number = self.plan.superseded + 1;
                        self.papers.insert(superseded_plan_name(number), old);
                        number
                    }
                    Some(_) | None => self.plan.superseded,
                };
                let covers = covers.iter().copied().collect();
                let approach = approach.clone();
                self.plan = PlanState { steps: *steps, covers, superseded, approach, ..PlanState::default() };
            }
            StagedEvent::PapersKept { papers, .. } => self.papers.extend(papers.iter().cloned()),
            StagedEvent::Advanced { done, .. } => self.plan.done = *done,
            StagedEvent::Judged { judged, .. } => {
                if judged.checkpoint != GatePoint::PostPlan {
                    self.plan.checked = self.plan.done;
                }
                if self.judged.len() == JUDGED_MAX {
                    self.judged.remove(0);
                }
                self.judged.push(judged.clone());
            }
            StagedEvent::ObjectiveSet { items, constraints } => {
                let before = self.objective.take().unwrap_or_default();
                self.objective = Some(Objective {
                    items: items.clone(),
                    constraints: constraints.clone(),
                    revision: before.revision + 1,
                    ..before
                });
            }
            StagedEvent::ObjectiveShown => {
                let Some(objective) = &mut self.objective else { return false };
                objective.shown = Some(objective.revision);
            }
            StagedEvent::ObjectiveConfirmed => {
                let Some(objective) = &mut self.objective else { return false };
                if !objective.needs_approval() {
                    return false;
                }
                objective.confirmed = Some(objective.revision);
            }
            StagedEvent::StageBegan { number, focus } => {
                self.focus = Some(CurrentStage { number: *number, requirements: focus.clone() });
                self.plan.covers.clear();
                (self.plan.done, self.plan.checked, self.plan.proved_at) = (0, 0, 0);
                self.plan.approach.clear();
                self.proofs = Proofs::default(); // its plan names its own
                self.extent = None;
            }
            StagedEvent::Promised { by, promises } => self.proofs.add_promises(*by, promises),
            StagedEvent::Proved { runs, .. } => {
                if self.proofs.note_runs(runs) {
                    self.plan.proved_at = self.plan.done;
                }
            }
            StagedEvent::Measured { extent, .. } => self.extent = Some(*extent),
            StagedEvent::Converged { current, progress, commit, .. } => {
                let (Some(focus), Some(judged)) = (&self.focus, self.judged.last()) else { return false };
                let stage = AcceptedStage {
                    number: focus.number,
                    focus: focus.requirements.clone(),
                    commit: commit.clone(),
                    coverage: judged.coverage.clone(),
                    convergence: *current,
                };
                match progress {
                    StageProgress::Satisfied | StageProgress::Closer => {
                        // A stage that came back from its landing is the same stage, measured once more.
                        self.stages.retain(|it| it.number < stage.number);
                        self.stages.push(stage);
                    }
                    StageProgress::NoCloser | StageProgress::Stuck => {}
                }
            }
            StagedEvent::GivenUp { exclusion } => {
                self.stages.retain(|it| it.number < exclusion.stage);
                self.exclusions.push(exclusion.clone());
                self.focus = None;
            }
            StagedEvent::Refined { number, text } => {
                let state = RefinementStatus::Pending;
                self.refinements.push(Refinement { number: *number, at, text: text.clone(), state });
            }
            StagedEvent::RefinementWeighed { number, impact } => {
                return self.set_refinement(*number, RefinementStatus::Weighed(*impact));
            }
            StagedEvent::RefinementsTaken { numbers } => {
                return numbers.iter().all(|number| self.set_refinement(*number, RefinementStatus::TakenIn));
            }
            StagedEvent::RefinementWithdrawn { number } => {
                return self.set_refinement(*number, RefinementStatus::Withdrawn);
            }
            StagedEvent::Annotated { name, paper, steps, covers, impact } => {
                let before = self.papers.insert(name.clone(), paper.clone());
                if name == PLAN {
                    let plan = &mut self.plan;
                    // A comment changes nothing that anyone follows: the plan is the same.
                    let is_other = |old: &Digest| old != paper && *impact != AnnotationImpact::None;
                    if let Some(old) = before.filter(is_other) {
                        plan.superseded += 1;
                        self.papers.insert(superseded_plan_name(plan.superseded), old);
                    }
                    // What is done of it stays done: the person wrote into a plan that is under way.
                    plan.steps = *steps;
                    (plan.done, plan.checked) = (plan.done.min(*steps), plan.checked.min(*steps));
                    plan.covers = covers.iter().copied().collect();
                }
            }
        }
        true
    }

    fn set_refinement(&mut self, number: u32, state: RefinementStatus) -> bool {
        let found = self.refinements.iter_mut().find(|it| it.number == number);
        let Some(refinement) = found else { return false };
        refinement.state = state;
        true
    }
}

/// The name under which a plan that was given up is kept: dotted, so that nobody reads two plans together.
#[must_use]
pub fn superseded_plan_name(number: u32) -> String {
    format!(".plan-superseded-{number}.md")
}
