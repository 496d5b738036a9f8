//! How far the task of an issue has come, phase by phase: a fold of its facts. What is told while it goes on and what stands
//! in the table at the end both come from here.

use super::{IssueEvent, IssuePhase, IssueRoute, RoutingDecision};
use crate::event::{Event, StepResult};
use crate::flow::{EdgeTarget, Flow, StepKind, TrackerOperation};
use crate::recovery::{RecoveryEvent, RecoveryOutcome};
use crate::signal::AgentUsage;
use crate::task::{EndKind, Ending};
use crate::{Commit, FlowStep, StepName};

/// How a phase stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PhaseStatus {
    /// It has not begun.
    NotRun,
    /// It is under way, or to be done again.
    UnderWay,
    /// It is through.
    Done,
    /// The task ended in it without success.
    Stopped,
}

/// One phase, and what happened in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseProgress {
    /// Its name.
    pub phase: &'static str,
    /// How it stands.
    pub mark: PhaseStatus,
    /// Verifications that were red.
    pub red: u32,
    /// Conflicts with the base.
    pub conflicts: u32,
    /// Times that readers wanted changes.
    pub changes: u32,
    /// Times that checks of the forge failed.
    pub forge_red: u32,
    /// Times that what landed did not hold what was promised.
    pub failures: u32,
    /// What was done about steps that failed: the name of each pattern, and whether it helped.
    pub recoveries: Vec<(String, bool)>,
    /// Where it landed.
    pub landed: Option<Commit>,
    /// Ways that were left for another: `L → S: patch, spec first`.
    pub ways: Vec<String>,
    /// What did not hold of a whole when its parts were last looked at.
    pub failing: Vec<String>,
    /// Times that parts were done and held no more.
    pub regressed: u32,
    /// What its runs used.
    pub usage: AgentUsage,
}

impl PhaseProgress {
    fn new(phase: &'static str) -> Self {
        Self {
            phase,
            mark: PhaseStatus::NotRun,
            red: 0,
            conflicts: 0,
            changes: 0,
            forge_red: 0,
            failures: 0,
            recoveries: Vec::new(),
            landed: None,
            ways: Vec::new(),
            failing: Vec::new(),
            regressed: 0,
            usage: AgentUsage::default(),
        }
    }

    /// What is worth knowing about it, in a few words; nothing if all went as it should.
    #[must_use]
    pub fn notes_text(&self) -> String {
        let mended = if self.mark == PhaseStatus::Done { " → fixed" } else { "" };
        let counted = |number: u32, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}{mended}")),
            _ => Some(format!("{number} {many}{mended}")),
        };
        let mut notes: Vec<String> = self.ways.clone();
        notes.extend(counted(self.red, "red verification", "red verifications"));
        notes.extend(counted(self.forge_red, "red check of the forge", "red checks of the forge"));
        notes.extend(counted(self.conflicts, "conflict with the base", "conflicts with the base"));
        notes.extend(counted(self.changes, "round of changes", "rounds of changes"));
        notes.extend(counted(self.failures, "failed acceptance", "failed acceptances"));
        notes.extend(counted(
            self.regressed,
            "round of issues that held no more",
            "rounds of issues that held no more",
        ));
        if !self.failing.is_empty() {
            notes.push(format!("as a whole, not yet: {}", self.failing.join(", ")));
        }
        for (symptom, recovered) in &self.recoveries {
            let note = match recovered {
                true => format!("recovered from {symptom}"),
                false => symptom.clone(),
            };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.extend(self.landed.as_ref().map(|commit| format!("landed as {}", commit.short_hash())));
        notes.join("; ")
    }
}

/// How far a task has come on the way of its issue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueProgress {
    routed: Option<RoutingDecision>,
    rows: Vec<PhaseProgress>,
    now: Option<&'static str>,
    pr: Option<u64>,
}

/// Finding out what an issue is comes before its way is known, so it has no number.
const TRIAGE: &str = "triage";

impl IssueProgress {
    /// Folds the facts of a task, oldest first.
    #[must_use]
    pub fn from_events<'a>(flow: Option<&Flow>, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut progress = Self::default();
        for event in events {
            progress.hear(flow, event);
        }
        progress
    }

    /// Takes the next fact in; the lines it is told by: `[2/5] code`, `[2/5] code → done (PR #7)`.
    pub fn hear(&mut self, flow: Option<&Flow>, event: &Event) -> Vec<String> {
        let step = |name: &StepName| flow.and_then(|flow| flow.find_step(name));
        match event {
            Event::Entered { step: name, .. } => {
                return step(name)
                    .and_then(|step| self.phase_of_step(step))
                    .map_or_else(Vec::new, |at| self.enter_phase(at));
            }
            Event::Left { step: name, result, to, .. } => {
                self.count_result(step(name), *result);
                return match to {
                    EdgeTarget::Step(to) => {
                        let to = step(to).and_then(|to| self.phase_of_step(to));
                        to.map_or_else(Vec::new, |to| self.leave_phase(to))
                    }
                    EdgeTarget::End => self.end_phase(EndKind::Done),
                    EdgeTarget::Stop => self.end_phase(EndKind::Blocked),
                };
            }
            Event::Ended(Ending { kind, .. }) => return self.end_phase(*kind),
            Event::Retried { .. } => self.now = None, // where it goes on is found out anew
            Event::Verified { report, .. } if !report.outcome().is_green() => {
                self.update_current_row(|row| row.red += 1);
            }
            Event::IterationEnded { usage, .. } => {
                self.update_current_row(|row| row.usage = row.usage.plus(*usage));
            }
            Event::Ejected { .. } => self.update_current_row(|row| row.red += 1),
            Event::Conflicted { .. } => self.update_current_row(|row| row.conflicts += 1),
            Event::Landed { commit, .. } => self.update_current_row(|row| row.landed = Some(commit.clone())),
            Event::Recovery(RecoveryEvent::Tried { symptom, .. }) => {
                self.update_current_row(|row| row.recoveries.push((symptom.clone(), false)));
            }
            Event::Recovery(RecoveryEvent::Ended { outcome: RecoveryOutcome::Success, .. }) => {
                self.update_current_row(|row| {
                    if let Some((_, recovered)) = row.recoveries.last_mut() {
                        *recovered = true;
                    }
                });
            }
            Event::Issue(IssueEvent::Routed(routed)) => return self.set_route(*routed),
            Event::Issue(IssueEvent::Offered { pr, .. }) => self.pr = Some(pr.number),
            Event::Issue(IssueEvent::Levelled { failing, .. }) => {
                self.update_current_row(|row| {
                    row.failing = failing.iter().map(|(words, _)| words.clone()).collect()
                });
            }
            // What the whole promises is looked at once more from here, and told there.
            Event::Issue(IssueEvent::PartsOver(_)) => self.update_current_row(|row| row.failing.clear()),
            Event::Issue(IssueEvent::Reworked { .. }) => self.pr = None,
            Event::Issue(IssueEvent::Accepted { accepted, .. }) => {
                if let Some(iteration) = accepted.outcome.iteration() {
                    self.row_for_phase("verify").failures = iteration;
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// The way it takes.
    #[must_use]
    pub fn routing_decision(&self) -> Option<&RoutingDecision> {
        self.routed.as_ref()
    }

    /// Its pull request.
    #[must_use]
    pub fn pr(&self) -> Option<u64> {
        self.pr
    }

    /// The phase that is under way, or was last.
    #[must_use]
    pub fn current_phase(&self) -> Option<&'static str> {
        self.now
    }

    /// Every phase of its way in order, also those that have not begun; what it is comes first, if that had to be found out.
    #[must_use]
    pub fn phase_rows(&self) -> Vec<PhaseProgress> {
        let known = |phase: &'static str| self.rows.iter().find(|row| row.phase == phase).cloned();
        let phases = self.phases();
        let mut rows: Vec<PhaseProgress> =
            phases.iter().map(|phase| known(phase).unwrap_or_else(|| PhaseProgress::new(phase))).collect();
        let before =
            self.rows.iter().filter(|row| !phases.contains(&row.phase) && row.mark != PhaseStatus::NotRun);
        rows.splice(0..0, before.cloned());
        rows
    }

    fn phases(&self) -> Vec<&'static str> {
        self.routed.map(|routed| routed.phases()).unwrap_or_default()
    }

    /// The phase a step belongs to, as people count them; none for a look at the issue itself.
    fn phase_of_step(&self, step: &FlowStep) -> Option<&'static str> {
        let way = self.routed.map(|routed| routed.way);
        let phases = self.phases();
        let or_code = |phase: &'static str| if phases.contains(&phase) { phase } else { "code" };
        Some(match IssuePhase::from_word(&step.phase)? {
            IssuePhase::Issue if step.kind == (StepKind::Tracker { act: TrackerOperation::Observe }) => {
                return None;
            }
            IssuePhase::Issue => TRIAGE,
            IssuePhase::Spec | IssuePhase::Ready => "spec",
            IssuePhase::Code if way == Some(IssueRoute::Split) => "sub-issues",
            IssuePhase::Code => "code",
            IssuePhase::Review => or_code("review"),
            IssuePhase::Merge => or_code("merge"),
            IssuePhase::Verify | IssuePhase::Done => "verify",
        })
    }

    fn enter_phase(&mut self, at: &'static str) -> Vec<String> {
        if self.now == Some(at) && self.row_for_phase(at).mark == PhaseStatus::UnderWay {
            return Vec::new();
        }
        self.now = Some(at);
        self.row_for_phase(at).mark = PhaseStatus::UnderWay;
        vec![self.format_phase(at)]
    }

    /// Whatever comes before `to` is through; what comes after it is to be done again.
    fn leave_phase(&mut self, to: &'static str) -> Vec<String> {
        let Some(now) = self.now.filter(|now| *now != to) else { return Vec::new() };
        let (from, onto) = (self.phase_number(now), self.phase_number(to));
        if onto > from {
            if self.row_for_phase(now).mark == PhaseStatus::Done {
                return Vec::new();
            }
            self.row_for_phase(now).mark = PhaseStatus::Done;
            return vec![self.format_phase_done(now)];
        }
        let again: Vec<&'static str> =
            self.phases().into_iter().filter(|phase| self.phase_number(phase) >= onto).collect();
        for phase in again {
            let row = self.row_for_phase(phase);
            if row.mark == PhaseStatus::Done {
                row.mark = PhaseStatus::UnderWay;
            }
        }
        vec![format!("{} → back to {to}", self.format_phase(now))]
    }

    fn end_phase(&mut self, kind: EndKind) -> Vec<String> {
        let Some(now) = self.now else { return Vec::new() };
        match kind {
            EndKind::Done if self.row_for_phase(now).mark == PhaseStatus::Done => Vec::new(),
            EndKind::Done => {
                self.row_for_phase(now).mark = PhaseStatus::Done;
                vec![self.format_phase_done(now)]
            }
            _ if self.row_for_phase(now).mark == PhaseStatus::Stopped => Vec::new(),
            EndKind::Failed | EndKind::Timeout | EndKind::Blocked | EndKind::Cancelled => {
                self.row_for_phase(now).mark = PhaseStatus::Stopped;
                vec![format!("{} → stopped", self.format_phase(now))]
            }
        }
    }

    /// Another way than before is worth a line.
    fn set_route(&mut self, routed: RoutingDecision) -> Vec<String> {
        let before = self.routed.replace(routed);
        // Before it is known how big it is, its way is only guessed at.
        let known = before.filter(|before| *before != routed && before.size.is_some());
        let Some(before) = known else { return Vec::new() };
        let size = |routed: &RoutingDecision| {
            routed.size.map_or_else(|| "no size".to_owned(), |size| size.to_string())
        };
        let line = format!("{} → {}", size(&before), routed.label());
        self.row_for_phase("spec").ways.push(line.clone());
        vec![format!("its way changes: {line}")]
    }

    fn count_result(&mut self, step: Option<&FlowStep>, result: StepResult) {
        let kind = step.map(|step| &step.kind);
        match (kind, result) {
            (Some(StepKind::Review), StepResult::Changes) => self.update_current_row(|row| row.changes += 1),
            (Some(StepKind::Tracker { act: TrackerOperation::Checks }), StepResult::Fail) => {
                self.update_current_row(|row| row.forge_red += 1);
            }
            (Some(StepKind::Tracker { act: TrackerOperation::Gather }), StepResult::Split) => {
                self.update_current_row(|row| row.regressed += 1);
            }
            _ => {}
        }
    }

    fn update_current_row(&mut self, note: impl FnOnce(&mut PhaseProgress)) {
        if let Some(now) = self.now {
            note(self.row_for_phase(now));
        }
    }

    fn row_for_phase(&mut self, phase: &'static str) -> &mut PhaseProgress {
        let place = self.rows.iter().position(|row| row.phase == phase).unwrap_or_else(|| {
            self.rows.push(PhaseProgress::new(phase));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// The number of a phase, from 1; 0 for what comes before the way is known.
    fn phase_number(&self, phase: &str) -> usize {
        self.phases().iter().position(|it| *it == phase).map_or(0, |place| place + 1)
    }

    fn format_phase(&self, phase: &str) -> String {
        match self.phase_number(phase) {
            0 => phase.to_owned(),
            place => format!("[{place}/{}] {phase}", self.phases().len()),
        }
    }

    fn format_phase_done(&self, phase: &str) -> String {
        let pr = self.pr.filter(|_| phase != "spec" && phase != TRIAGE);
        let pr = pr.map(|pr| format!(" (PR #{pr})")).unwrap_or_default();
        format!("{} → done{pr}", self.format_phase(phase))
    }
}
