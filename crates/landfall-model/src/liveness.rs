//! Whether an agent is alive, from evidence. A silent build is not a stall; an open connection is no sign of life.
//!
//! An agent that calls a model itself is measured more strictly: its own timers and its attempts to connect again use the
//! processor and the network while nobody answers. Only what the model or a tool of it does counts.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};

use crate::Timestamp;
use crate::budget::{BudgetScope, BudgetUse as _, ExhaustedBudget, Spending};
use crate::decide::spell_ms;
use crate::signal::{AgentFinish, ControlSignal, Signal};
use crate::stride::StopReason;
use crate::task::TaskLimits;

/// What is known of a running agent; every figure is an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivenessSample {
    /// Since it began.
    pub running_ms: u64,
    /// Since it last wrote anything; none when it never did.
    pub silent_ms: Option<u64>,
    /// Since its processes last used the processor or moved data.
    pub idle_ms: u64,
    /// Since its workspace last changed.
    pub still_ms: u64,
    /// If it calls a model itself and its connections can be measured.
    pub calls: Option<ModelCalls>,
    /// Tools it began to use and has not ended, by its own word.
    pub tools_open: u32,
    /// Processes it started that still run.
    pub children: u32,
    /// It asks a person and waits for the answer.
    pub asking: bool,
    /// How often in a row it said and did the same.
    pub echoes: u32,
}

/// What is known of an agent that calls a model itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelCalls {
    /// Since a command it started last used the processor or moved data. Its own program does not count.
    pub tools_idle_ms: u64,
    /// Since its connections last received more than keep-alives: see [`StreamDetector`].
    pub inflow_ms: u64,
    /// TCP connections its processes have open.
    pub connections: u32,
}

/// How long what is borne with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivenessLimits {
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
pub enum AgentActivity {
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
    /// It waited for the model's answer longer than it may.
    Unanswered,
    /// There is no sign of life.
    Dead,
}

impl AgentActivity {
    /// Every class there is.
    pub const ALL: [Self; 7] = [
        Self::Working,
        Self::InTool,
        Self::WaitingForModel,
        Self::WaitingForPerson,
        Self::Looping,
        Self::Unanswered,
        Self::Dead,
    ];

    /// The words people see.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InTool => "in a tool",
            Self::WaitingForModel => "waiting for the model",
            Self::WaitingForPerson => "waiting for a person",
            Self::Looping => "looping",
            Self::Unanswered => "not answered by the model",
            Self::Dead => "dead",
        }
    }
}

/// Equal steps in a row that make a loop.
pub const ECHOES_MAX: u32 = 3;

/// Since the last sign of life that counts for this agent.
#[must_use]
pub fn lifeless_ms(pulse: &LivenessSample) -> u64 {
    let unheard_ms = pulse.silent_ms.unwrap_or(pulse.running_ms).min(pulse.still_ms);
    match (&pulse.calls, pulse.silent_ms) {
        (Some(calls), Some(_)) => unheard_ms.min(calls.tools_idle_ms).min(calls.inflow_ms),
        // It is still starting: what its own program does is a sign of life until its first word.
        (Some(calls), None) => unheard_ms.min(pulse.idle_ms).min(calls.inflow_ms),
        (None, _) => unheard_ms.min(pulse.idle_ms),
    }
}

/// Since the model or a tool last did something, if the agent waits for nothing but its model now.
fn unanswered_ms(pulse: &LivenessSample, calls: &ModelCalls) -> Option<u64> {
    // One that never said a word and is not connected may hang by its own fault.
    let waits = pulse.silent_ms.is_some() || calls.connections > 0;
    let unheard_ms = pulse.silent_ms.unwrap_or(pulse.running_ms).min(pulse.still_ms);
    (waits && !pulse.asking).then(|| unheard_ms.min(calls.tools_idle_ms).min(calls.inflow_ms))
}

/// What an agent is at, by what is known.
#[must_use]
pub fn classify_activity(pulse: &LivenessSample, watch: &LivenessLimits) -> AgentActivity {
    let suspect_ms = watch.beat_ms.saturating_mul(u64::from(watch.beats));
    let lifeless_ms = lifeless_ms(pulse);
    let in_tool = pulse.tools_open > 0 && pulse.children > 0;
    if pulse.echoes >= ECHOES_MAX {
        return AgentActivity::Looping;
    }
    let unanswered_ms = match &pulse.calls {
        Some(calls) if !in_tool => unanswered_ms(pulse, calls),
        Some(_) | None => None,
    };
    if unanswered_ms.is_some_and(|ms| ms >= watch.silence_ms) {
        return AgentActivity::Unanswered;
    }
    let patience_ms = match (pulse.silent_ms, in_tool) {
        (_, true) => watch.tool_ms,
        // It is connected: the model is thinking, and may do so as long as any other.
        (None, false) if unanswered_ms.is_some() => watch.silence_ms,
        (None, false) => watch.first_output_ms.min(watch.silence_ms),
        (Some(_), false) => watch.silence_ms,
    };
    if pulse.asking && lifeless_ms < watch.silence_ms {
        return AgentActivity::WaitingForPerson;
    }
    if lifeless_ms >= patience_ms {
        return if unanswered_ms.is_some() { AgentActivity::Unanswered } else { AgentActivity::Dead };
    }
    if in_tool {
        return AgentActivity::InTool;
    }
    if lifeless_ms >= suspect_ms { AgentActivity::WaitingForModel } else { AgentActivity::Working }
}

/// How long an agent has done nothing but wait for its model. This is no working time unless the model answers.
#[must_use]
pub fn model_wait_ms(pulse: &LivenessSample, watch: &LivenessLimits) -> u64 {
    match (classify_activity(pulse, watch), &pulse.calls) {
        (AgentActivity::WaitingForModel | AgentActivity::Unanswered, Some(calls)) => {
            unanswered_ms(pulse, calls).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Bytes a second that connections receive while a model answers. Keep-alives of a provider come to a tenth of it: a
/// comment of 40 bytes, 70 with encryption, every few seconds. One token of a stream takes 150 bytes or more.
pub const INFLOW_FLOOR: u64 = 128;
/// However short the span is, a few keep-alives in it are no answer.
const INFLOW_FLOOR_MIN: u64 = 256;
/// So many spans are looked back on.
const INFLOW_SPANS: usize = 8;
/// In so many of them something must have arrived. Each new try of a request that is answered by an error, or by the beginning
/// of a stream that does not go on, is one burst: at most two spans.
const INFLOW_SPANS_MIN: usize = 3;

/// Notices when the connections of an agent receive a stream, rather than keep-alives or the answers to new tries.
#[derive(Debug, Clone, Default)]
pub struct StreamDetector {
    /// Bytes received so far, by connection.
    known: BTreeMap<u64, u64>,
    /// Bytes of this span, and since when it lasts.
    bytes: u64,
    since_ms: Option<u64>,
    spans: VecDeque<bool>,
}

impl StreamDetector {
    /// The length of a span: at the usual silence of ten minutes it is 15 seconds.
    fn span_ms(watch: &LivenessLimits) -> u64 {
        (watch.silence_ms / 40).clamp(50, 15_000)
    }

    /// Takes in what each connection has received in all. Returns whether a stream arrives. What a new connection has
    /// received by the first look counts for nothing: it is the handshake, or the answer to one more try.
    pub fn note_connections(
        &mut self,
        now_ms: u64,
        connections: &[(u64, u64)],
        watch: &LivenessLimits,
    ) -> bool {
        let grown = connections
            .iter()
            .filter_map(|(id, received)| self.known.get(id).map(|before| received.saturating_sub(*before)));
        self.bytes = self.bytes.saturating_add(grown.fold(0, u64::saturating_add));
        self.known = connections.iter().copied().collect();
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        let length_ms = now_ms.saturating_sub(since_ms);
        if length_ms < Self::span_ms(watch) {
            return false;
        }
        let floor = (length_ms.saturating_mul(INFLOW_FLOOR) / 1000).max(INFLOW_FLOOR_MIN);
        let flows = std::mem::take(&mut self.bytes) >= floor;
        self.since_ms = Some(now_ms);
        if self.spans.len() == INFLOW_SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(flows);
        flows && self.spans.iter().filter(|flows| **flows).count() >= INFLOW_SPANS_MIN
    }
}

/// All that may end a run of an agent before it ends itself.
#[derive(Debug, Clone, Copy)]
pub struct RunEndInputs<'a> {
    /// A person wants it to end.
    pub stopped: bool,
    /// A budget of the run or the day that is used up.
    pub spent: Option<&'a ExhaustedBudget>,
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
    pub class: Option<AgentActivity>,
    /// If it runs a loop of its own: how far that is.
    pub course: Option<LoopProgress>,
    /// How long it has worked in this run. Waits for an account or for an answer of the model do not count.
    pub worked_ms: u64,
    /// How long it may.
    pub worked_max_ms: u64,
}

/// How far an agent is that runs a loop of its own. Its limits are also kept by a timer: a step that hangs says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopProgress {
    /// Steps it has finished, in all its runs.
    pub strides: u32,
    /// Stalls so far, in this step and in all.
    pub stalls: (u32, u32),
    /// Times it was told that it goes round in a circle.
    pub loops: u32,
}

/// Why a run is ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlyEndReason {
    /// A person wants it to end.
    Stopped,
    /// A budget is used up.
    OverBudget(BudgetScope, String),
    /// It drops its context again and again.
    ContextUsedUp,
    /// It says and does the same over and over.
    Looping,
    /// There is no sign of life.
    Silent,
    /// Its model does not answer.
    Unanswered,
    /// The steps of its own loop are used up.
    IterationsUsed,
    /// Its working time is used up.
    TimeUsed,
}

/// What an agent with a loop of its own is told in its stop file, and whether it may finish its step first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopStopNotice {
    /// It ends after its step, for this reason.
    AfterStep(StopReason),
    /// It is ended at once; the file says why it is not to go on.
    Now(Option<StopReason>),
}

/// How an agent with a loop of its own is brought to an end.
#[must_use]
pub fn choose_stop_notice(
    early: &EarlyEndReason,
    course: &LoopProgress,
    limits: &TaskLimits,
) -> LoopStopNotice {
    match early {
        EarlyEndReason::Stopped => LoopStopNotice::AfterStep(StopReason::UserStop),
        EarlyEndReason::IterationsUsed => LoopStopNotice::AfterStep(StopReason::MaxIterations),
        EarlyEndReason::TimeUsed => LoopStopNotice::AfterStep(StopReason::Timeout),
        EarlyEndReason::Silent => {
            let (here, in_all) = course.stalls;
            let last = here >= limits.stalls_step_max || in_all >= limits.stalls_total_max;
            LoopStopNotice::Now(last.then_some(StopReason::StallLimit))
        }
        EarlyEndReason::Looping => {
            LoopStopNotice::Now((course.loops >= limits.loops_max).then_some(StopReason::ReasoningLoop))
        }
        EarlyEndReason::OverBudget(..) | EarlyEndReason::ContextUsedUp | EarlyEndReason::Unanswered => {
            LoopStopNotice::Now(None)
        }
    }
}

/// Whether a run is to end now, and why. A person comes first, then money, then what it does.
#[must_use]
pub fn early_end_reason(case: &RunEndInputs<'_>) -> Option<EarlyEndReason> {
    if case.stopped {
        return Some(EarlyEndReason::Stopped);
    }
    if let Some(ExhaustedBudget { scope, what, .. }) = case.spent {
        return Some(EarlyEndReason::OverBudget(*scope, what.clone()));
    }
    if let Some(what) = case.limits.attempt_budget.describe_used_up(case.attempt.plus(case.here)) {
        return Some(EarlyEndReason::OverBudget(BudgetScope::Attempt, what));
    }
    if let Some(what) = case.limits.task_budget.describe_used_up(case.task.plus(case.here)) {
        return Some(EarlyEndReason::OverBudget(BudgetScope::Task, what));
    }
    if case.compactions >= case.compactions_max {
        return Some(EarlyEndReason::ContextUsedUp);
    }
    if let Some(course) = &case.course
        && course.strides >= case.limits.iterations_max
    {
        return Some(EarlyEndReason::IterationsUsed);
    }
    if case.worked_ms >= case.worked_max_ms {
        return Some(EarlyEndReason::TimeUsed);
    }
    match case.class? {
        AgentActivity::Dead => Some(EarlyEndReason::Silent),
        AgentActivity::Unanswered => Some(EarlyEndReason::Unanswered),
        AgentActivity::Looping => Some(EarlyEndReason::Looping),
        AgentActivity::Working
        | AgentActivity::InTool
        | AgentActivity::WaitingForModel
        | AgentActivity::WaitingForPerson => None,
    }
}

/// Whether what an agent wrote is a sign of life. A provider's passing troubles, told again and again, are none; what we do
/// not understand may be one.
#[must_use]
pub fn is_life(signals: &[Signal]) -> bool {
    signals.is_empty() || signals.iter().any(|signal| !matches!(signal, Signal::Transient { .. }))
}

/// The same of an agent that calls a model: an error that it tells, in whatever way, is no answer of its model.
#[must_use]
pub fn is_answer(signals: &[Signal]) -> bool {
    !signals.iter().any(|signal| {
        matches!(
            signal,
            Signal::Transient { .. }
                | Signal::Quota { .. }
                | Signal::Unauthorized { .. }
                | Signal::Finished { how: AgentFinish::Error | AgentFinish::Interrupted, .. }
        )
    })
}

/// What an agent says of its account while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountNotice {
    /// It is used up, and the agent waits.
    UsedUp {
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// The agent goes on.
    WentOn,
}

/// The last that an agent said of its account, if it said anything about it.
#[must_use]
pub fn account_sign(signals: &[Signal]) -> Option<AccountNotice> {
    signals.iter().rev().find_map(|signal| match signal {
        Signal::Quota { until } => Some(AccountNotice::UsedUp { until: *until }),
        Signal::Text(_) | Signal::ToolUse { .. } | Signal::Stride(_) | Signal::Finished { .. } => {
            Some(AccountNotice::WentOn)
        }
        _ => None,
    })
}

/// Waits of a running agent for its account. They are no working time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountWaitTime {
    /// Those that are over.
    pub over_ms: u64,
    /// When the one under way began.
    pub since: Option<Timestamp>,
    /// When the account resets, if the agent said.
    pub until: Option<Timestamp>,
}

impl AccountWaitTime {
    /// A wait begins, unless one is under way.
    pub fn begin_wait(&mut self, at: Timestamp, until: Option<Timestamp>) {
        self.since.get_or_insert(at);
        self.until = until.or(self.until);
    }

    /// The wait under way is over.
    pub fn end(&mut self, at: Timestamp) {
        self.over_ms = self.all_ms(at);
        (self.since, self.until) = (None, None);
    }

    /// All waits, by this moment.
    #[must_use]
    pub fn all_ms(&self, at: Timestamp) -> u64 {
        let under_way = self.since.map_or(0, |since| u64::try_from(at.0 - since.0).unwrap_or(0));
        self.over_ms.saturating_add(under_way)
    }
}

/// The evidence in a few words, beside the class.
#[must_use]
pub fn describe_liveness(pulse: &LivenessSample) -> String {
    let mut parts = Vec::new();
    match pulse.silent_ms {
        Some(ms) => parts.push(format!("last word {} ago", spell_ms(ms))),
        None => parts.push(format!("no word since it began {} ago", spell_ms(pulse.running_ms))),
    }
    match &pulse.calls {
        Some(calls) => {
            parts.push(format!("tools {} ago", spell_ms(calls.tools_idle_ms)));
            parts.push(match calls.connections {
                0 => "no connection".to_owned(),
                _ => format!("answer of the model received {} ago", spell_ms(calls.inflow_ms)),
            });
        }
        None => parts.push(format!("processor or disk {} ago", spell_ms(pulse.idle_ms))),
    }
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
pub struct RepetitionDetector {
    step: DefaultHasher,
    /// Whether anything was said or done in this step.
    begun: bool,
    last: Option<u64>,
    count: u32,
    /// The last step of a loop of its own that it reported.
    stride: Option<String>,
    /// The highest step of its plan that it reported.
    plan_step: u32,
}

impl RepetitionDetector {
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
            // It has got further, in whatever words it says so.
            Signal::Stride(stride) if self.stride.as_ref() != Some(&stride.mark) => {
                self.stride = Some(stride.mark.clone());
                self.forget_last();
            }
            Signal::Said(ControlSignal::Step(number)) if *number > self.plan_step => {
                self.plan_step = *number;
                self.forget_last();
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
    pub fn repeat_count(&self) -> u32 {
        self.count
    }

    /// Compares with nothing that came before.
    fn forget_last(&mut self) {
        (self.last, self.count) = (None, 0);
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
