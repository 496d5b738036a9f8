//! Whether an agent is alive, from evidence. A silent build is not a stall; an open connection is no sign of life.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use crate::budget::{Scope, Spending, Spent};
use crate::decide::spell_ms;
use crate::signal::Signal;
use crate::stride::StopReason;
use crate::task::TaskLimits;

/// What is known of a running agent; every figure is an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pulse {
    /// Since it began.
    pub running_ms: u64,
    /// Since it last wrote anything; none when it never did.
    pub silent_ms: Option<u64>,
    /// Since its processes last used the processor or moved data.
    pub idle_ms: u64,
    /// Since its workspace last changed.
    pub still_ms: u64,
    /// Tools it began to use and has not ended, by its own word.
    pub tools_open: u32,
    /// Processes it started that still run.
    pub children: u32,
    /// It asks a person and waits for the answer.
    pub asking: bool,
    /// How often in a row it said and did the same.
    pub echoes: u32,
}

/// How long what is borne with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// How often the evidence is looked at.
    pub beat_ms: u64,
    /// How many looks without a sign of life make it suspect.
    pub beats: u32,
    /// Without any sign of life for so long it is dead.
    pub silence_ms: u64,
    /// Without a first word and without any other sign of life for so long it is dead.
    pub first_output_ms: u64,
    /// A tool that shows no sign of life may take so long.
    pub tool_ms: u64,
}

/// What an agent is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It writes, computes or changes files.
    Working,
    /// A tool of it runs.
    InTool,
    /// It waits for the model's answer.
    WaitingForModel,
    /// It waits for a person.
    WaitingForPerson,
    /// It says and does the same over and over.
    Looping,
    /// There is no sign of life.
    Dead,
}

impl Class {
    /// Every class there is.
    pub const ALL: [Self; 6] = [
        Self::Working,
        Self::InTool,
        Self::WaitingForModel,
        Self::WaitingForPerson,
        Self::Looping,
        Self::Dead,
    ];

    /// The words people see.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InTool => "in a tool",
            Self::WaitingForModel => "waiting for the model",
            Self::WaitingForPerson => "waiting for a person",
            Self::Looping => "looping",
            Self::Dead => "dead",
        }
    }
}

/// Equal steps in a row that make a loop.
pub const ECHOES_MAX: u32 = 3;

/// What an agent is at, by what is known.
#[must_use]
pub fn class(pulse: &Pulse, watch: &Watch) -> Class {
    let suspect_ms = watch.beat_ms.saturating_mul(u64::from(watch.beats));
    let unheard_ms = pulse.silent_ms.unwrap_or(pulse.running_ms);
    let lifeless_ms = unheard_ms.min(pulse.idle_ms).min(pulse.still_ms);
    let in_tool = pulse.tools_open > 0 && pulse.children > 0;
    if pulse.echoes >= ECHOES_MAX {
        return Class::Looping;
    }
    let patience_ms = match (pulse.silent_ms, in_tool) {
        (_, true) => watch.tool_ms,
        (None, false) => watch.first_output_ms.min(watch.silence_ms),
        (Some(_), false) => watch.silence_ms,
    };
    if pulse.asking && lifeless_ms < watch.silence_ms {
        return Class::WaitingForPerson;
    }
    if lifeless_ms >= patience_ms {
        return Class::Dead;
    }
    if in_tool {
        return Class::InTool;
    }
    if lifeless_ms >= suspect_ms { Class::WaitingForModel } else { Class::Working }
}

/// All that may end a run of an agent before it ends itself.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// A person wants it to end.
    pub stopped: bool,
    /// A budget of the run or the day that is used up.
    pub spent: Option<&'a Spent>,
    /// What this run has spent so far.
    pub here: Spending,
    /// What the attempt had spent before.
    pub attempt: Spending,
    /// What the task had spent before.
    pub task: Spending,
    /// What they may spend.
    pub limits: &'a TaskLimits,
    /// How often it dropped its context.
    pub compactions: u32,
    /// How often it may.
    pub compactions_max: u32,
    /// What it is at; none once its processes are gone.
    pub class: Option<Class>,
    /// If it runs a loop of its own: how far that is.
    pub course: Option<Course>,
}

/// How far an agent is that runs a loop of its own. Its limits are also kept by a timer: a step that hangs says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Steps it has finished, in all its runs.
    pub strides: u32,
    /// How long it has worked in this run, waits for an account not counted.
    pub worked_ms: u64,
    /// How long it may.
    pub limit_ms: u64,
    /// Stalls so far, in this step and in all.
    pub stalls: (u32, u32),
    /// Times it was told that it goes round in a circle.
    pub loops: u32,
}

/// Why a run is ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Early {
    /// A person wants it to end.
    Stopped,
    /// A budget is used up.
    OverBudget(Scope, String),
    /// It drops its context again and again.
    ContextUsedUp,
    /// It says and does the same over and over.
    Looping,
    /// There is no sign of life.
    Silent,
    /// The steps of its own loop are used up.
    IterationsUsed,
    /// The time of its own loop is used up.
    TimeUsed,
}

/// What an agent with a loop of its own is told in its stop file, and whether it may finish its step first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// It ends after its step, for this reason.
    AfterStep(StopReason),
    /// It is ended at once; the file says why it is not to go on.
    Now(Option<StopReason>),
}

/// How an agent with a loop of its own is brought to an end.
#[must_use]
pub fn farewell(early: &Early, course: &Course, limits: &TaskLimits) -> Farewell {
    match early {
        Early::Stopped => Farewell::AfterStep(StopReason::UserStop),
        Early::IterationsUsed => Farewell::AfterStep(StopReason::MaxIterations),
        Early::TimeUsed => Farewell::AfterStep(StopReason::Timeout),
        Early::Silent => {
            let (here, in_all) = course.stalls;
            let last = here >= limits.stalls_step_max || in_all >= limits.stalls_total_max;
            Farewell::Now(last.then_some(StopReason::StallLimit))
        }
        Early::Looping => {
            Farewell::Now((course.loops >= limits.loops_max).then_some(StopReason::ReasoningLoop))
        }
        Early::OverBudget(..) | Early::ContextUsedUp => Farewell::Now(None),
    }
}

/// Whether a run is to end now, and why. A person comes first, then money, then what it does.
#[must_use]
pub fn early(case: &Case<'_>) -> Option<Early> {
    if case.stopped {
        return Some(Early::Stopped);
    }
    if let Some(Spent { scope, what, .. }) = case.spent {
        return Some(Early::OverBudget(*scope, what.clone()));
    }
    if let Some(what) = case.limits.attempt_budget.used_up(case.attempt.plus(case.here)) {
        return Some(Early::OverBudget(Scope::Attempt, what));
    }
    if let Some(what) = case.limits.task_budget.used_up(case.task.plus(case.here)) {
        return Some(Early::OverBudget(Scope::Task, what));
    }
    if case.compactions >= case.compactions_max {
        return Some(Early::ContextUsedUp);
    }
    if let Some(course) = &case.course {
        if course.strides >= case.limits.iterations_max {
            return Some(Early::IterationsUsed);
        }
        if course.worked_ms >= course.limit_ms {
            return Some(Early::TimeUsed);
        }
    }
    match case.class? {
        Class::Dead => Some(Early::Silent),
        Class::Looping => Some(Early::Looping),
        Class::Working | Class::InTool | Class::WaitingForModel | Class::WaitingForPerson => None,
    }
}

/// Whether what an agent wrote is a sign of life. A provider's passing troubles, told again and again, are none; what we do
/// not understand may be one.
#[must_use]
pub fn is_life(signals: &[Signal]) -> bool {
    signals.is_empty() || signals.iter().any(|signal| !matches!(signal, Signal::Transient { .. }))
}

/// The evidence in a few words, beside the class.
#[must_use]
pub fn evidence(pulse: &Pulse) -> String {
    let mut parts = Vec::new();
    match pulse.silent_ms {
        Some(ms) => parts.push(format!("last word {} ago", spell_ms(ms))),
        None => parts.push(format!("no word since it began {} ago", spell_ms(pulse.running_ms))),
    }
    parts.push(format!("processor or disk {} ago", spell_ms(pulse.idle_ms)));
    if pulse.children > 0 {
        parts.push(format!("{} processes of its own", pulse.children));
    }
    if pulse.echoes > 1 {
        parts.push(format!("the same step {} times", pulse.echoes));
    }
    parts.join(", ")
}

/// Notices when an agent says and does the same again and again.
#[derive(Debug, Clone, Default)]
pub struct Echo {
    step: DefaultHasher,
    /// Whether anything was said or done in this step.
    begun: bool,
    last: Option<u64>,
    count: u32,
    /// The last step of its own loop that it reported.
    stride: Option<String>,
}

impl Echo {
    /// Takes one signal in. A step is what it says and the tools it uses, up to the answer of a tool or of the model.
    pub fn hear(&mut self, signal: &Signal) {
        match signal {
            Signal::Text(text) => {
                // A message may come in pieces of any size, so blanks between them do not count.
                for piece in text.split_whitespace() {
                    self.step.write(piece.as_bytes());
                    self.begun = true;
                }
            }
            Signal::ToolUse { name, detail } => {
                (name, detail).hash(&mut self.step);
                self.begun = true;
            }
            Signal::ToolDone | Signal::Finished { .. } => self.close(),
            Signal::Usage(usage) if usage.turns > 0 => self.close(),
            // It came forward, whatever words it does that in. The same report once more is no progress.
            Signal::Stride(stride) if self.stride.as_ref() != Some(&stride.mark) => {
                self.stride = Some(stride.mark.clone());
                (self.last, self.count) = (None, 0);
            }
            Signal::Usage(_)
            | Signal::Started { .. }
            | Signal::Cost(_)
            | Signal::Context { .. }
            | Signal::Compacted
            | Signal::Allowance { .. }
            | Signal::Quota { .. }
            | Signal::Transient { .. }
            | Signal::Unauthorized { .. }
            | Signal::SessionGone
            | Signal::PermissionAsked { .. }
            | Signal::Question(_)
            | Signal::Said(_)
            | Signal::Stride(_)
            | Signal::Waiting { .. }
            | Signal::Malformed { .. } => {}
        }
    }

    /// How often in a row it said and did the same.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    fn close(&mut self) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let step = std::mem::take(&mut self.step).finish();
        self.count = if self.last == Some(step) { self.count + 1 } else { 1 };
        self.last = Some(step);
    }
}
