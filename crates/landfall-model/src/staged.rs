//! What a task with a plan and an objective remembers: its papers, the plan's steps, what judges said, its stages.

use std::collections::{BTreeMap, BTreeSet};

use crate::annotate;
use crate::audit::Extent;
use crate::convergence::{Coverage, Exclusion, Progress, Stage};
use crate::event::StepResult;
use crate::objective::{Item, Objective, Refinement, RefinementState};
use crate::proof::{Author, Promise, Proofs, Run};
use crate::score::{Checkpoint, Impact, Scores};
use crate::{Attempt, Commit, Digest, Timestamp};

/// The plan among the papers of a task.
pub const PLAN: &str = "plan.md";

/// What a task with a plan and an objective remembers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Staged {
    /// What its agents wrote for each other, by name. They are kept outside of the branch: nothing of them lands.
    pub papers: BTreeMap<String, Digest>,
    /// How far its plan is.
    pub plan: PlanState,
    /// What judges said, the latest last.
    pub judged: Vec<Judged>,
    /// What it is for, worked out with a person.
    pub objective: Option<Objective>,
    /// The stage under way.
    pub focus: Option<Focus>,
    /// The stages that were accepted.
    pub stages: Vec<Stage>,
    /// The directions that led nowhere.
    pub exclusions: Vec<Exclusion>,
    /// How many of them, the first ones, a person's retry allows to be tried in another way.
    pub exclusions_lifted: usize,
    /// What a person wants otherwise since it began.
    pub refinements: Vec<Refinement>,
    /// The checks its plan and its judges named.
    pub proofs: Proofs,
    /// How large the change of the stage under way is, when it was last measured.
    pub extent: Option<Extent>,
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
}

/// The stage under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// Which, from 1.
    pub number: u32,
    /// The requirements it is for.
    pub requirements: Vec<u32>,
}

/// What a judge said of the work, and what was made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Where.
    pub checkpoint: Checkpoint,
    /// In this stage, if there are stages.
    pub stage: Option<u32>,
    /// The work it read.
    pub head: Option<Commit>,
    /// The scores, after what the engine knows capped them.
    pub scores: Option<Scores>,
    /// Their composite, in millionths.
    pub composite: Option<u32>,
    /// How the step ended.
    pub result: StepResult,
    /// Why it did not pass.
    pub reasons: Vec<String>,
    /// How far requirements are covered.
    pub coverage: Coverage,
    /// When.
    pub at: Timestamp,
}

/// One fact about a plan, an objective or a stage.
#[derive(Debug, Clone, PartialEq)]
pub enum StagedEvent {
    /// A plan was written; the one before it is kept beside it.
    Planned {
        /// In this attempt.
        attempt: Attempt,
        /// The plan.
        paper: Digest,
        /// Its steps.
        steps: u32,
        /// The requirements some step covers.
        covers: Vec<u32>,
    },
    /// Other papers were written.
    PapersKept {
        /// In this attempt.
        attempt: Attempt,
        /// By name.
        papers: Vec<(String, Digest)>,
    },
    /// Steps of the plan are done, in the agent's words.
    Advanced {
        /// In this attempt.
        attempt: Attempt,
        /// This many in all.
        done: u32,
    },
    /// A judge read the work.
    Judged {
        /// In this attempt.
        attempt: Attempt,
        /// What came of it.
        judged: Judged,
    },
    /// What it is for was worked out anew.
    ObjectiveSet {
        /// Its parts.
        items: Vec<Item>,
        /// What holds for all of them.
        constraints: Vec<String>,
    },
    /// A person was asked whether that is it.
    ObjectiveShown,
    /// A person said yes.
    ObjectiveConfirmed,
    /// A stage began.
    StageBegan {
        /// Which.
        number: u32,
        /// The requirements it is for.
        focus: Vec<u32>,
    },
    /// A stage was measured against the objective.
    Converged {
        /// In this attempt.
        attempt: Attempt,
        /// Where it stood before, under the same requirements.
        previous: Option<u32>,
        /// Where it stands now.
        current: u32,
        /// What follows.
        progress: Progress,
        /// The work.
        commit: Commit,
    },
    /// A stage was given up.
    GivenUp {
        /// And its direction with it.
        exclusion: Exclusion,
    },
    /// A person wants something otherwise.
    Refined {
        /// By this number it is spoken of.
        number: u32,
        /// In their words.
        text: String,
    },
    /// A judge said how much that matters.
    RefinementWeighed {
        /// Which.
        number: u32,
        /// This much.
        impact: Impact,
    },
    /// Refinements went into the plan or to the agent.
    RefinementsTaken {
        /// These.
        numbers: Vec<u32>,
    },
    /// A person took one back.
    RefinementWithdrawn {
        /// Which.
        number: u32,
    },
    /// A person wrote into the margin of a paper; the one before it is kept beside it if it was the plan.
    Annotated {
        /// Which.
        name: String,
        /// As it is now.
        paper: Digest,
        /// Its steps, if it is the plan.
        steps: u32,
        /// The requirements some step covers, if it is the plan.
        covers: Vec<u32>,
        /// How much that matters.
        impact: annotate::Impact,
    },
    /// Checks were named that must fail before the work and pass after it.
    Promised {
        /// By whom; what they named before is no longer owed.
        by: Author,
        /// These.
        promises: Vec<Promise>,
    },
    /// Such checks were run.
    Proved {
        /// In this attempt.
        attempt: Attempt,
        /// On this work.
        head: Commit,
        /// With these results.
        runs: Vec<Run>,
    },
    /// It was seen how large the change of the stage is.
    Measured {
        /// In this attempt.
        attempt: Attempt,
        /// This large.
        extent: Extent,
    },
}

impl StagedEvent {
    /// The attempt it is a fact of, if it is of one.
    #[must_use]
    pub fn fence(&self) -> Option<Attempt> {
        match self {
            Self::Planned { attempt, .. }
            | Self::PapersKept { attempt, .. }
            | Self::Advanced { attempt, .. }
            | Self::Judged { attempt, .. }
            | Self::Converged { attempt, .. }
            | Self::Proved { attempt, .. }
            | Self::Measured { attempt, .. } => Some(*attempt),
            Self::ObjectiveSet { .. }
            | Self::ObjectiveShown
            | Self::ObjectiveConfirmed
            | Self::StageBegan { .. }
            | Self::GivenUp { .. }
            | Self::Refined { .. }
            | Self::RefinementWeighed { .. }
            | Self::RefinementsTaken { .. }
            | Self::RefinementWithdrawn { .. }
            | Self::Annotated { .. }
            | Self::Promised { .. } => None,
        }
    }

    /// The name, for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned { .. } => "planned",
            Self::PapersKept { .. } => "papers-kept",
            Self::Advanced { .. } => "advanced",
            Self::Judged { .. } => "judged",
            Self::ObjectiveSet { .. } => "objective-set",
            Self::ObjectiveShown => "objective-shown",
            Self::ObjectiveConfirmed => "objective-confirmed",
            Self::StageBegan { .. } => "stage-began",
            Self::Converged { .. } => "converged",
            Self::GivenUp { .. } => "given-up",
            Self::Refined { .. } => "refined",
            Self::RefinementWeighed { .. } => "refinement-weighed",
            Self::RefinementsTaken { .. } => "refinements-taken",
            Self::RefinementWithdrawn { .. } => "refinement-withdrawn",
            Self::Annotated { .. } => "annotated",
            Self::Promised { .. } => "promised",
            Self::Proved { .. } => "proved",
            Self::Measured { .. } => "change-measured",
        }
    }
}

const JUDGED_MAX: usize = 50; // the journal keeps them all; a task shows the latest

impl Staged {
    /// What a judge said last.
    #[must_use]
    pub fn last_judged(&self) -> Option<&Judged> {
        self.judged.last()
    }

    /// The requirements that convergence is measured by.
    #[must_use]
    pub fn baseline(&self) -> Vec<crate::objective::Requirement> {
        self.objective.as_ref().map(Objective::requirements).unwrap_or_default()
    }

    /// Requirements of the stage that no step of the plan covers.
    #[must_use]
    pub fn uncovered(&self) -> Vec<u32> {
        let focus = self.focus.iter().flat_map(|focus| focus.requirements.iter().copied());
        focus.filter(|number| !self.plan.covers.contains(number)).collect()
    }

    /// The stage before the one under way: what that is measured by, and goes back to.
    #[must_use]
    pub fn stage_before(&self) -> Option<&Stage> {
        let under_way = self.focus.as_ref().map_or(u32::MAX, |focus| focus.number);
        self.stages.iter().rev().find(|stage| stage.number < under_way)
    }

    /// The directions that may not be taken again.
    #[must_use]
    pub fn barred_directions(&self) -> &[Exclusion] {
        self.exclusions.get(self.exclusions_lifted..).unwrap_or_default()
    }

    /// Refinements that nobody has dealt with.
    pub fn open_refinements(&self) -> impl Iterator<Item = &Refinement> {
        self.refinements.iter().filter(|it| match it.state {
            RefinementState::Pending | RefinementState::Weighed(_) => true,
            RefinementState::TakenIn | RefinementState::Withdrawn => false,
        })
    }

    /// What the fact changes; false if it cannot follow.
    pub(crate) fn absorb(&mut self, at: Timestamp, event: &StagedEvent) -> bool {
        match event {
            StagedEvent::Planned { paper, steps, covers, .. } => {
                let before = self.papers.insert(PLAN.to_owned(), paper.clone());
                let superseded = match before {
                    Some(old) if old != *paper => {
                        let number = self.plan.superseded + 1;
                        self.papers.insert(superseded(number), old);
                        number
                    }
                    Some(_) | None => self.plan.superseded,
                };
                let covers = covers.iter().copied().collect();
                self.plan = PlanState { steps: *steps, covers, superseded, ..PlanState::default() };
            }
            StagedEvent::PapersKept { papers, .. } => self.papers.extend(papers.iter().cloned()),
            StagedEvent::Advanced { done, .. } => self.plan.done = *done,
            StagedEvent::Judged { judged, .. } => {
                if judged.checkpoint != Checkpoint::PostPlan {
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
                if !objective.wants_a_yes() {
                    return false;
                }
                objective.confirmed = Some(objective.revision);
            }
            StagedEvent::StageBegan { number, focus } => {
                self.focus = Some(Focus { number: *number, requirements: focus.clone() });
                self.plan.covers.clear();
                (self.plan.done, self.plan.checked) = (0, 0);
                self.proofs = Proofs::default(); // its plan names its own
                self.extent = None;
            }
            StagedEvent::Promised { by, promises } => self.proofs.promised(*by, promises),
            StagedEvent::Proved { runs, .. } => self.proofs.ran(runs),
            StagedEvent::Measured { extent, .. } => self.extent = Some(*extent),
            StagedEvent::Converged { current, progress, commit, .. } => {
                let (Some(focus), Some(judged)) = (&self.focus, self.judged.last()) else { return false };
                let stage = Stage {
                    number: focus.number,
                    focus: focus.requirements.clone(),
                    commit: commit.clone(),
                    coverage: judged.coverage.clone(),
                    convergence: *current,
                };
                match progress {
                    Progress::Satisfied | Progress::Closer => {
                        // A stage that came back from its landing is the same stage, measured once more.
                        self.stages.retain(|it| it.number < stage.number);
                        self.stages.push(stage);
                    }
                    Progress::NoCloser | Progress::Stuck => {}
                }
            }
            StagedEvent::GivenUp { exclusion } => {
                self.stages.retain(|it| it.number < exclusion.stage);
                self.exclusions.push(exclusion.clone());
                self.focus = None;
            }
            StagedEvent::Refined { number, text } => {
                let state = RefinementState::Pending;
                self.refinements.push(Refinement { number: *number, at, text: text.clone(), state });
            }
            StagedEvent::RefinementWeighed { number, impact } => {
                return self.set_refinement(*number, RefinementState::Weighed(*impact));
            }
            StagedEvent::RefinementsTaken { numbers } => {
                return numbers.iter().all(|number| self.set_refinement(*number, RefinementState::TakenIn));
            }
            StagedEvent::RefinementWithdrawn { number } => {
                return self.set_refinement(*number, RefinementState::Withdrawn);
            }
            StagedEvent::Annotated { name, paper, steps, covers, .. } => {
                let before = self.papers.insert(name.clone(), paper.clone());
                if name == PLAN {
                    let plan = &mut self.plan;
                    if let Some(old) = before.filter(|old| old != paper) {
                        plan.superseded += 1;
                        self.papers.insert(superseded(plan.superseded), old);
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

    fn set_refinement(&mut self, number: u32, state: RefinementState) -> bool {
        let found = self.refinements.iter_mut().find(|it| it.number == number);
        let Some(refinement) = found else { return false };
        refinement.state = state;
        true
    }
}

/// The name under which a plan that was given up is kept: dotted, so that nobody reads two plans together.
#[must_use]
pub fn superseded(number: u32) -> String {
    format!(".plan-superseded-{number}.md")
}
