//! Flows: the steps of a task and the edges between them.

use crate::defaults::is_zero;
use serde::{Deserialize, Serialize};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::score::GatePoint;
use crate::{AgentDriveStyle, StepName, StepResult};

/// A graph of steps with one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// What people call it.
    pub name: String,
    /// One sentence for `flow list`.
    pub about: String,
    /// Where a new task begins.
    pub entry: StepName,
    /// Where a task in a given phase begins, when it is taken up from outside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, StepName>,
    /// What a person can ask for by hand: the word, or `word/checkpoint`, then the step it means in each phase. In a phase
    /// that is not named it is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, BTreeMap<String, StepName>>,
    /// How its agents are driven, whatever their profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<AgentDriveStyle>,
    /// The steps, in the order of the file.
    pub steps: Vec<FlowStep>,
}

/// A node of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowStep {
    /// Its name within the flow.
    pub name: StepName,
    /// What is done in it.
    pub kind: StepKind,
    /// The flow's own word for a task that is here.
    pub phase: String,
    /// The word for a task that is to come here and has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The profile that works here, if the project has one of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where each result leads.
    pub on: Vec<FlowEdge>,
}

/// Where one result leads, and how often it may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEdge {
    /// When the step ends with this.
    pub result: StepResult,
    /// Go there.
    pub to: EdgeTarget,
    /// At most this often over the task's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// Where an edge leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EdgeTarget {
    /// To another step.
    #[serde(rename = "step")]
    Step(StepName),
    /// To the end: the task is done.
    #[serde(rename = "end")]
    End,
    /// To a stop: the task is blocked and a person looks at it.
    #[serde(rename = "stop")]
    Stop,
}

/// What is done in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StepKind {
    /// An agent works.
    #[serde(rename = "agent")]
    Agent {
        /// With this prompt template.
        prompt: String,
        /// Files that must exist, be non-empty and newer afterwards.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        output: Vec<String>,
        /// Whether it runs again and again until it signals.
        iterate: bool,
        /// A judge looks after so many steps of the plan; 0: only when the agent wants it.
        #[serde(default, skip_serializing_if = "is_zero")]
        every: u32,
    },
    /// The engine runs the project's checks.
    #[serde(rename = "verify")]
    Verify,
    /// A judge scores the work.
    #[serde(rename = "check")]
    Check {
        /// At this point of the flow.
        checkpoint: GatePoint,
        /// And must reach this score, in thousandths.
        threshold: u32,
    },
    /// A reviewer reads the change.
    #[serde(rename = "review")]
    Review,
    /// The work goes onto the base.
    #[serde(rename = "land")]
    Land,
    /// The report is written.
    #[serde(rename = "report")]
    Report,
    /// A person is asked.
    #[serde(rename = "ask")]
    Ask {
        /// This.
        question: String,
    },
    /// The task becomes several.
    #[serde(rename = "split")]
    Split,
    /// Something is looked up in, or written to, the tracker the task came from.
    #[serde(rename = "tracker")]
    Tracker {
        /// This.
        act: TrackerOperation,
    },
    /// The objective becomes requirements, confirmed once.
    #[serde(rename = "target")]
    Target,
    /// The stage is measured against the objective.
    #[serde(rename = "converge")]
    Converge,
}

words! {
    /// What is done with the tracker of a task.
    pub enum TrackerOperation {
        /// The issue is looked at: where does it go on?
        Observe = "observe",
        /// What was found out about the issue is written down there.
        Triaged = "triaged",
        /// How big it is by now is looked up: does its way change?
        Sized = "sized",
        /// The work is offered as a pull request, if it takes that way.
        Offer = "offer",
        /// The checks of the forge are waited for.
        Checks = "checks",
        /// What readers think of the work is written down there.
        Reviewed = "reviewed",
        /// The landing is written down there.
        Merged = "merged",
        /// What was promised is held against what is there.
        Accept = "accept",
        /// The parts of a whole are waited for, and what became of them is written down.
        Gather = "gather",
        /// It is closed.
        Close = "close",
    }
}

impl TrackerOperation {
    /// The results that must lead somewhere.
    #[must_use]
    pub fn required_results(self) -> &'static [StepResult] {
        use StepResult as R;
        match self {
            Self::Observe => &[R::Triage, R::Spec, R::Code, R::Offered, R::Landed, R::Split, R::Done],
            Self::Triaged => &[R::Spec, R::Code, R::Split, R::Fail],
            Self::Sized => &[R::Code, R::Split],
            Self::Offer => &[R::Patch, R::Pr],
            Self::Checks => &[R::Pass, R::Fail],
            Self::Accept => &[R::Pass, R::Fail, R::Partial],
            Self::Reviewed | Self::Merged | Self::Gather | Self::Close => &[R::Done],
        }
    }
}

impl StepKind {
    /// The word in a flow file.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "agent",
            Self::Verify => "verify",
            Self::Check { .. } => "check",
            Self::Review => "review",
            Self::Land => "land",
            Self::Report => "report",
            Self::Ask { .. } => "ask",
            Self::Split => "split",
            Self::Tracker { .. } => "tracker",
            Self::Target => "target",
            Self::Converge => "converge",
        }
    }

    /// Every word of a kind.
    pub const WORDS: [&'static str; 11] = [
        "agent", "verify", "check", "review", "land", "report", "ask", "split", "tracker", "target",
        "converge",
    ];

    /// The results that must lead somewhere.
    #[must_use]
    pub fn must_route(&self) -> &'static [StepResult] {
        use StepResult as R;
        match self {
            Self::Agent { .. } | Self::Report | Self::Split => &[R::Done],
            Self::Verify => &[R::Pass, R::Fail],
            Self::Check { checkpoint, .. } => checkpoint.possible_results(),
            Self::Tracker { act } => act.required_results(),
            Self::Review => &[R::Approved, R::Changes],
            Self::Land => &[R::Landed, R::Conflict, R::Red],
            Self::Ask { .. } | Self::Target => &[R::Answered],
            Self::Converge => &[R::Satisfied, R::Continue, R::Rollback],
        }
    }

    /// The results that may lead somewhere; without an edge they stop the task.
    #[must_use]
    pub fn may_route(&self) -> &'static [StepResult] {
        use StepResult as R;
        match self {
            Self::Agent { .. } => &[R::Blocked, R::MidExec],
            Self::Verify => &[R::Conflict],
            Self::Converge => &[R::NeedsFix],
            Self::Check { .. }
            | Self::Review
            | Self::Land
            | Self::Report
            | Self::Ask { .. }
            | Self::Target => &[],
            Self::Split => &[R::Blocked],
            Self::Tracker { act: TrackerOperation::Gather } => &[R::Split],
            Self::Tracker { .. } => &[],
        }
    }

    /// Whether its agent reads the work of others and leaves nothing that could land.
    #[must_use]
    pub fn is_reader_step(&self) -> bool {
        match self {
            Self::Review | Self::Check { .. } | Self::Target => true,
            Self::Agent { .. }
            | Self::Verify
            | Self::Land
            | Self::Report
            | Self::Ask { .. }
            | Self::Split
            | Self::Tracker { .. }
            | Self::Converge => false,
        }
    }

    /// Whether it is about an issue of a tracker.
    #[must_use]
    pub fn is_about_an_issue(&self) -> bool {
        matches!(self, Self::Split | Self::Tracker { .. })
    }
}

/// Something wrong with a flow, and where, so that the loader can name the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDefect {
    /// In this step, if it is in one.
    pub step: Option<StepName>,
    /// At this edge, if it is at one.
    pub result: Option<StepResult>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Flow {
    /// Whether a judge looks at anything in it.
    #[must_use]
    pub fn has_judge(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.kind, StepKind::Check { .. }))
    }

    /// The step called `name`.
    #[must_use]
    pub fn find_step(&self, name: &StepName) -> Option<&FlowStep> {
        self.steps.iter().find(|step| step.name == *name)
    }

    /// Whether an agent works in one of its steps. If none does, a workspace holds nothing that could be lost.
    #[must_use]
    pub fn has_agent(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.kind, StepKind::Agent { .. }))
    }

    /// Where a task goes on that comes from elsewhere in the phase `word`; none: at the beginning. A plan that is not there is
    /// made first, and work that is not there, or not finished, is done before it is judged.
    #[must_use]
    pub fn entry_at(&self, word: &str, planned: bool, finished: bool) -> Option<&StepName> {
        let step = self.entries.get(word)?;
        let going_on = || self.commands.get("exec").and_then(|by_phase| by_phase.get(word));
        let step = match self.find_step(step)?.kind {
            StepKind::Check { checkpoint: GatePoint::PostPlan, .. } if !planned => {
                self.plan_before(step).unwrap_or(step)
            }
            _ if !planned && matches!(word, "review" | "executing") => return None,
            StepKind::Verify | StepKind::Check { .. } if !finished => going_on().unwrap_or(step),
            _ => step,
        };
        (*step != self.entry).then_some(step)
    }

    /// The step that writes the plan which this one judges.
    #[must_use]
    pub fn plan_before(&self, check: &StepName) -> Option<&StepName> {
        let revised =
            self.find_step(check)?.on.iter().find(|edge| edge.result == StepResult::NeedsRevision)?;
        match &revised.to {
            EdgeTarget::Step(plan) => Some(plan),
            EdgeTarget::End | EdgeTarget::Stop => None,
        }
    }

    /// How its agents are driven whose profile says `own`.
    #[must_use]
    pub fn style_for(&self, own: AgentDriveStyle) -> AgentDriveStyle {
        match (self.style, own) {
            (Some(AgentDriveStyle::Own), AgentDriveStyle::Dispatch) => AgentDriveStyle::Dispatch, // such a loop, typed into its terminal
            (Some(style), _) => style,
            (None, own) => own,
        }
    }

    /// Whether it is made for agents that run a loop of their own.
    #[must_use]
    pub fn is_self_driven(&self) -> bool {
        self.style.is_some_and(AgentDriveStyle::runs_own_loop)
    }

    /// How many of its steps an agent works in.
    #[must_use]
    pub fn agent_steps(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.kind, StepKind::Agent { .. })).count()
    }

    /// Whether agents whose profile says `own` can work in it. An agent that runs a loop of its own does all of it in each step.
    #[must_use]
    pub fn suits_style(&self, own: AgentDriveStyle) -> bool {
        !self.style_for(own).runs_own_loop() || self.is_self_driven() || self.agent_steps() <= 1
    }

    /// Whether it follows an issue of a tracker: its task must come from one.
    #[must_use]
    pub fn follows_an_issue(&self) -> bool {
        self.steps.iter().any(|step| step.kind.is_about_an_issue())
    }

    /// All that is wrong with it, in the order of the file. Empty means it can be followed.
    #[must_use]
    pub fn find_problems(&self) -> Vec<FlowDefect> {
        let mut found = Vec::new();
        let names: BTreeSet<&StepName> = self.steps.iter().map(|step| &step.name).collect();
        let known = || self.steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
        if !names.contains(&self.entry) {
            found.push(FlowDefect {
                step: None,
                result: None,
                what: format!("the entry `{}` is not a step", self.entry),
                hint: format!("known steps: {}", known()),
            });
        }
        for (phase, step) in &self.entries {
            if !names.contains(step) {
                found.push(FlowDefect {
                    step: None,
                    result: None,
                    what: format!("the entry for phase `{phase}` names `{step}`, which is not a step"),
                    hint: format!("known steps: {}", known()),
                });
            }
        }
        for (command, by_phase) in &self.commands {
            for (phase, step) in by_phase.iter().filter(|(_, step)| !names.contains(step)) {
                found.push(FlowDefect {
                    step: None,
                    result: None,
                    what: format!(
                        "the command `{command}` in phase `{phase}` names `{step}`, which is not a step"
                    ),
                    hint: format!("known steps: {}", known()),
                });
            }
        }
        for step in &self.steps {
            self.edge_problems(step, &names, &known, &mut found);
        }
        for step in self.unreachable_steps() {
            found.push(FlowDefect {
                step: Some(step.clone()),
                result: None,
                what: format!("step `{step}` cannot be reached from the entry `{}`", self.entry),
                hint: "lead an edge to it, or take it out".to_owned(),
            });
        }
        if let Some(cycle) = self.unbounded_cycle() {
            let shown = cycle.iter().map(StepName::as_str).collect::<Vec<_>>().join(" → ");
            found.push(FlowDefect {
                step: cycle.first().cloned(),
                result: None,
                what: format!("the cycle {shown} has no bound"),
                hint: "give one of its edges a max, e.g. `{ to = \"…\", max = 3 }`".to_owned(),
            });
        }
        found
    }

    fn edge_problems(
        &self,
        step: &FlowStep,
        names: &BTreeSet<&StepName>,
        known: &dyn Fn() -> String,
        found: &mut Vec<FlowDefect>,
    ) {
        let (must, may) = (step.kind.must_route(), step.kind.may_route());
        for result in must {
            if !step.on.iter().any(|edge| edge.result == *result) {
                found.push(FlowDefect {
                    step: Some(step.name.clone()),
                    result: None,
                    what: format!("step `{}` leaves the result `{}` unrouted", step.name, result.word()),
                    hint: format!("add `on.{} = \"…\"` (a step, `end` or `stop`)", result.word()),
                });
            }
        }
        for edge in &step.on {
            let at = |what: String, hint: String| FlowDefect {
                step: Some(step.name.clone()),
                result: Some(edge.result),
                what,
                hint,
            };
            if !must.contains(&edge.result) && !may.contains(&edge.result) {
                let words = must.iter().chain(may).map(|r| r.word()).collect::<Vec<_>>().join(", ");
                found.push(at(
                    format!("a step of kind `{}` never ends with `{}`", step.kind.word(), edge.result.word()),
                    format!("its results: {words}"),
                ));
            }
            if let EdgeTarget::Step(to) = &edge.to
                && !names.contains(to)
            {
                found.push(at(
                    format!("`{to}` is not a step of this flow"),
                    format!("known steps: {}", known()),
                ));
            }
            if edge.max == Some(0) {
                found.push(at(
                    "a bound of 0 could never be taken".to_owned(),
                    "use `stop` instead, or a bound of at least 1".to_owned(),
                ));
            }
        }
    }

    fn unreachable_steps(&self) -> Vec<StepName> {
        let mut reached: BTreeSet<&StepName> = BTreeSet::new();
        let mut open: VecDeque<&StepName> = std::iter::once(&self.entry)
            .chain(self.entries.values())
            .chain(self.commands.values().flat_map(BTreeMap::values))
            .collect();
        while let Some(name) = open.pop_front() {
            if !reached.insert(name) {
                continue;
            }
            let Some(step) = self.find_step(name) else { continue };
            for edge in &step.on {
                if let EdgeTarget::Step(to) = &edge.to {
                    open.push_back(to);
                }
            }
        }
        self.steps.iter().map(|step| &step.name).filter(|name| !reached.contains(name)).cloned().collect()
    }

    /// A cycle made only of edges without a bound, if there is one.
    fn unbounded_cycle(&self) -> Option<Vec<StepName>> {
        fn visit_step<'a>(
            flow: &'a Flow,
            at: &'a StepName,
            path: &mut Vec<&'a StepName>,
            closed: &mut BTreeSet<&'a StepName>,
        ) -> Option<Vec<StepName>> {
            if let Some(start) = path.iter().position(|name| *name == at) {
                let cycle = path[start..].iter().copied().chain(std::iter::once(at));
                return Some(cycle.cloned().collect());
            }
            if closed.contains(at) {
                return None;
            }
            path.push(at);
            for edge in flow.find_step(at).map(|step| step.on.as_slice()).unwrap_or_default() {
                if let (EdgeTarget::Step(to), None) = (&edge.to, edge.max)
                    && let Some(cycle) = visit_step(flow, to, path, closed)
                {
                    return Some(cycle);
                }
            }
            path.pop();
            closed.insert(at);
            None
        }
        let mut closed = BTreeSet::new();
        self.steps.iter().find_map(|step| visit_step(self, &step.name, &mut Vec::new(), &mut closed))
    }
}
