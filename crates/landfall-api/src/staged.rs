//! Tasks with a plan, a judge or an objective: what a person does by hand, and what they see of it.
//!
//! Scores, coverage and convergence go from 0 to 1.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::task::words;
use crate::{AttemptLine, Status, UnknownWord, WireTaskId};

/// Wants one step of a task done now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoAsked {
    /// Of this task.
    pub task: WireTaskId,
    /// By the flow's word for it: `plan`, `check`, `exec`, `verify`, `land`, `report`, `target`.
    pub command: String,
    /// Of several checks, this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<FlowCheckpoint>,
    /// Of the plan, only this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Nothing after it in the same run.
    #[serde(default)]
    pub alone: bool,
}

words! {
    /// Where in a flow a judge is asked.
    FlowCheckpoint ("a checkpoint") {
        /// The plan, before anything is done.
        PostPlan = "post-plan",
        /// Work under way.
        MidExec = "mid-exec",
        /// Work that is said to be done.
        PostExec = "post-exec",
    }
}

/// What came of a step that was asked for by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepDone {
    /// Of this task.
    pub task: WireTaskId,
    /// What was asked for.
    pub command: String,
    /// Whether it was driven to its end; otherwise the run under way does it, or the next one.
    pub driven: bool,
    /// Where the task is now.
    pub status: Status,
    /// The flow's own word for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The attempts it took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptLine>,
    /// How far the task is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<Progress>>,
    /// What happened, in one sentence.
    pub text: String,
}

/// How far a task with a plan is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Progress {
    /// The word for where it is, which says what can be done by hand.
    pub phase: String,
    /// The phases of its flow, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseMark>,
    /// The steps of its plan; 0 when there is none yet.
    pub plan_steps: u32,
    /// Of these, done, in the agent's words.
    pub plan_done: u32,
    /// The checks that its plan and its judges named.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub proofs: u32,
    /// Of these, those that failed before the work and pass now, seen by the engine.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub proofs_done: u32,
    /// How often one that passed did not any more.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub anomalies: u32,
    /// How often the judge at the end sent the work of this stage back; 0 again when it was accepted.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub fixes: u32,
    /// How often it may, by the flow, the kind of the task and the size of the change; 0 where no judge does.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub fixes_max: u32,
    /// The stage under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// How close the last accepted stage came to the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<f64>,
    /// The composite of the last judgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composite: Option<f64>,
    /// What the last judgement came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What can be done by hand in this phase, such as `plan` or `check/post-plan`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub can_do: Vec<String>,
    /// A step that somebody asked for and that has not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directed: Option<String>,
    /// It all in a line: `status=executing phase=executing exec:done → verify #3`.
    pub strip: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none_of_them(count: &u32) -> bool {
    *count == 0
}

/// A phase of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseMark {
    /// Its word.
    pub phase: String,
    /// Where the task is, seen from it.
    pub state: PhaseState,
    /// How far it is, in per cent, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
}

words! {
    /// Where a task is, seen from a phase.
    PhaseState ("a state of a phase") {
        /// Past it.
        Done = "done",
        /// In it.
        Now = "now",
        /// It stopped in it.
        Stopped = "stopped",
        /// Not there yet.
        Next = "next",
    }
}

/// Wants something otherwise while a task is under way, or more of what is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refine {
    /// Of this task.
    pub task: WireTaskId,
    /// In these words.
    pub text: String,
}

/// Takes a refinement back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefineWithdraw {
    /// Of this task.
    pub task: WireTaskId,
    /// By its number.
    pub number: u32,
}

/// Says something about what a task is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetSay {
    /// Which task.
    pub task: WireTaskId,
    /// In these words.
    pub text: String,
}

/// Says yes to what a task is for, as it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetConfirm {
    /// Which task.
    pub task: WireTaskId,
    /// The revision the person read.
    pub revision: u32,
}

/// What a task is for, and how close it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Which task.
    pub task: WireTaskId,
    /// How far it is.
    pub progress: Progress,
    /// The parts of its objective; empty before they are worked out.
    pub items: Vec<TargetItem>,
    /// What holds for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Counts the changes of the objective; 0 before there is one.
    pub revision: u32,
    /// The revision a person was last asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u32>,
    /// The revision a person said yes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<u32>,
    /// Whether a yes would count now.
    pub awaits: bool,
    /// What it asks you now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// From here on the objective is met.
    pub satisfied_at: f64,
    /// The stage under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageNow>,
    /// The stages that were accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageLine>,
    /// The directions that led nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ExclusionLine>,
    /// What a person wants otherwise since it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refinements: Vec<RefinementLine>,
    /// What judges said, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judgements: Vec<JudgementLine>,
    /// What a composite must reach, by the steps of the flow that ask a judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// The steps of its plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlanStepLine>,
    /// The checks that its plan and its judges named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofLine>,
}

/// A check that must fail before the work and pass after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofLine {
    /// What it is of: `step 2` or `finding 1`.
    pub of: String,
    /// That in a line.
    pub about: String,
    /// What is run.
    pub command: String,
    /// How it stands: `owed`, `void`, `open`, `lost` or `proved`.
    pub standing: String,
}

/// One part of an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetItem {
    /// In a line.
    pub text: String,
    /// What it comes to.
    pub requirements: Vec<RequirementLine>,
}

/// Something that must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequirementLine {
    /// `R3` is 3.
    pub number: u32,
    /// What must hold.
    pub text: String,
    /// How to see that it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub criteria: String,
    /// How much it matters: `critical`, `important` or `optional`.
    pub weight: String,
    /// How far it is covered, if a judge said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Whether the stage under way is for it.
    #[serde(default)]
    pub focus: bool,
}

/// The stage under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageNow {
    /// Which, from 1.
    pub number: u32,
    /// The requirements it is for.
    pub focus: Vec<u32>,
}

/// A stage that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageLine {
    /// Which, from 1.
    pub number: u32,
    /// The requirements it was for.
    pub focus: Vec<u32>,
    /// The work as it was accepted.
    pub commit: String,
    /// How close it came.
    pub convergence: f64,
}

/// A direction that is not taken again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExclusionLine {
    /// The stage that was given up.
    pub stage: u32,
    /// What was tried, in a line.
    pub direction: String,
    /// Why it was given up.
    pub reason: String,
    /// The work that was given up; it is kept under a ref.
    pub abandoned: String,
    /// Convergence before it.
    pub from: f64,
    /// And with it.
    pub to: f64,
}

/// What a person wants otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefinementLine {
    /// By this it is spoken of.
    pub number: u32,
    /// When it was said.
    pub at_ms: i64,
    /// In their words.
    pub text: String,
    /// What became of it.
    pub state: RefinementState,
    /// How much it matters, if a judge said: `none`, `minor`, `moderate` or `major`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact: Option<String>,
}

words! {
    /// What became of a refinement.
    RefinementState ("a state of a refinement") {
        /// Nobody has looked at it.
        Pending = "pending",
        /// A judge has, and it is to be dealt with.
        Weighed = "weighed",
        /// It is in the plan, or in the work.
        TakenIn = "taken-in",
        /// The person took it back.
        Withdrawn = "withdrawn",
    }
}

impl RefinementState {
    /// Whether it can still be taken back.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Weighed)
    }
}

/// What a judge said of the work, and what was made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgementLine {
    /// When.
    pub at_ms: i64,
    /// Where in the flow.
    pub checkpoint: FlowCheckpoint,
    /// In this stage, if there are stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// The work it read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The six scores, D1 first, capped by what the engine knows; empty when the judge gave none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ScoreLine>,
    /// Their weighted mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composite: Option<f64>,
    /// What it came to, such as `PASS` or `NEEDS_FIX`.
    pub verdict: String,
    /// Whether that let it pass.
    pub passed: bool,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What it found, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// The score of one dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreLine {
    /// `D1` to `D6`.
    pub code: String,
    /// Its word.
    pub name: String,
    /// The score.
    pub score: f64,
    /// What it weighs.
    pub weight: f64,
    /// It blocks below this, if it is a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<f64>,
}

/// What a composite must reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// In this step.
    pub step: String,
    /// Of this checkpoint.
    pub checkpoint: FlowCheckpoint,
    /// This much.
    pub threshold: f64,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStepLine {
    /// The number it has in the plan.
    pub number: u32,
    /// In a line.
    pub title: String,
    /// The requirements it covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<u32>,
    /// Whether it is done, in the agent's words.
    pub done: bool,
}

/// What agents and the engine wrote for whoever works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperList {
    /// Of this task.
    pub task: WireTaskId,
    /// By name.
    pub papers: Vec<PaperLine>,
}

/// One paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperLine {
    /// Such as `plan.md` or `notes/parser.md`.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// Whether the engine wrote it: it is made anew for every run, and cannot be annotated.
    #[serde(default)]
    pub told: bool,
}

/// Asks for a paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperAsked {
    /// Of this task.
    pub task: WireTaskId,
    /// By its name; the plan when left out.
    #[serde(default = "plan", skip_serializing_if = "is_plan")]
    pub name: String,
}

fn plan() -> String {
    "plan.md".to_owned()
}

fn is_plan(name: &str) -> bool {
    name == "plan.md"
}

/// A paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paper {
    /// Of this task.
    pub task: WireTaskId,
    /// Its name.
    pub name: String,
    /// What is in it, as it was written.
    pub text: String,
    /// Whether the engine wrote it.
    #[serde(default)]
    pub told: bool,
}

/// Writes into the margin of a paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Annotate {
    /// Of this task.
    pub task: WireTaskId,
    /// By its name; the plan when left out.
    #[serde(default = "plan", skip_serializing_if = "is_plan")]
    pub paper: String,
    /// What is written, all or nothing.
    pub notes: Vec<Note>,
}

/// One annotation. Its place is known by the text around it; the line decides between places that look alike.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Note {
    /// What it does.
    pub kind: NoteKind,
    /// The line and up to 20 characters before its place: `Line12:...the text before`, a line break as `↵`.
    pub before: String,
    /// What it is about; empty for an insertion.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selected: String,
    /// What is inserted, put in place, or said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Up to 20 characters behind its place: `the text behind...`.
    pub after: String,
}

words! {
    /// What an annotation does.
    NoteKind ("a kind of annotation") {
        /// Adds text.
        Insert = "insert",
        /// Takes text away.
        Delete = "delete",
        /// Puts text in place of other text.
        Replace = "replace",
        /// Says something about text, and changes nothing of it.
        Comment = "comment",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro that makes words derives no default")]
impl Default for NoteKind {
    fn default() -> Self {
        Self::Comment
    }
}

/// What annotations came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Annotated {
    /// Of this task.
    pub task: WireTaskId,
    /// In this paper.
    pub paper: String,
    /// How much they matter: `none`, `low`, `medium` or `high`.
    pub impact: String,
    /// Where the task is now.
    pub status: Status,
    /// What follows, in one sentence.
    pub text: String,
}

/// A judge's verdicts against what came later.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgeAgreement {
    /// The agent profile that judged.
    pub judge: String,
    /// Work it accepted.
    pub accepted: u64,
    /// Of that, landed since.
    pub landed: u64,
    /// Of that, red when it was verified again, or given up.
    pub red: u64,
    /// Work it let pass although its verification had failed: the engine did not.
    pub overruled: u64,
    /// Work it sent back.
    pub sent_back: u64,
    /// The share of its acceptances that held, of those something is known of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
}
