//! What we make of what we saw. An exit code alone is neither success nor failure.

use crate::decide::spell_ms;
use crate::event::AgentExit;
use crate::objective::ObjectiveSplit;
use crate::plan::PlanOutline;
use crate::review::ReviewOpinion;
use crate::score::Judgement;
use crate::signal::{AgentFinish, ControlSignal, Signal};
use crate::{Commit, Digest};
pub use landfall_facts::verdict::Verdict;

/// Facts about one run of the agent that do not depend on its word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentRunEvidence {
    /// Where the workspace's branch stood before.
    pub head_before: Option<Commit>,
    /// Where it stands now; none when it could not be read.
    pub head_after: Option<Commit>,
    /// Files that the step must leave behind and that are missing, empty or older than the run.
    pub missing: Vec<String>,
    /// What changed meanwhile in the agent's own settings.
    pub touched: Vec<String>,
    /// What a reviewer said, if the step is a review and it could be read.
    pub opinion: Option<ReviewOpinion>,
    /// What a judge said, if the step is a check and it could be read.
    pub judgement: Option<Judgement>,
    /// How the objective was split, if that is the step and it could be read.
    pub split: Option<ObjectiveSplit>,
    /// What the agent wrote for those after it, by name.
    pub papers: Vec<(String, Digest)>,
    /// The steps of its plan, if it wrote one.
    pub outline: Option<PlanOutline>,
    /// The last words of the run, cut to a few lines.
    pub last_words: String,
    /// The end of what a run wrote to stderr that ended with an error.
    pub last_error: String,
    /// Whether the agent's protocol has a closing word, so that a run without one was cut short.
    pub closes: bool,
    /// Processes that the kernel ended for lack of memory while it ran.
    pub oom_kills: u64,
    /// Whether it was ended because its model did not answer.
    pub unanswered: bool,
    /// How long, at its end, it had done nothing but wait for its model. No working time if its provider was in the way.
    pub model_wait_ms: u64,
}

impl AgentRunEvidence {
    /// Whether the run left a commit.
    #[must_use]
    pub fn has_committed(&self) -> bool {
        self.head_after.is_some() && self.head_after != self.head_before
    }
}

/// Weighs one run of the agent.
///
/// The last control word wins, except that BLOCKED and PENDING outweigh COMPLETE: an agent that says both is
/// not done. A control word outweighs the exit code in both directions; the work itself is judged later, by
/// verification. Where the agent's protocol has a closing word, COMPLETE counts only with one that flags no error. What
/// the provider said last outweighs a crash or a silence, because it explains them; what the agent got over does not.
#[must_use]
pub fn judge(seen: &[Signal], exit: &AgentExit, evidence: &AgentRunEvidence) -> Verdict {
    let mut complete = false;
    let mut stop: Option<Verdict> = None;
    let mut provider: Option<Verdict> = None;
    let mut finish: Option<AgentFinish> = None;
    let mut leave: Option<&String> = None;
    for signal in seen {
        match signal {
            Signal::Said(ControlSignal::Complete | ControlSignal::Resolved) => complete = true,
            Signal::Said(ControlSignal::Blocked(reason)) => {
                stop = Some(Verdict::Blocked { reason: reason.clone() })
            }
            Signal::Said(ControlSignal::Pending(question)) | Signal::Question(question) => {
                stop = Some(Verdict::Pending { question: question.clone() });
            }
            // Whoever cannot go on, or asks, has said more.
            Signal::Said(ControlSignal::Check(reason)) if stop.is_none() => {
                stop = Some(Verdict::Checkpoint { reason: reason.clone() });
            }
            Signal::Quota { until } => provider = Some(Verdict::Quota { until: *until }),
            Signal::Transient { detail } => provider = Some(Verdict::Transient { detail: detail.clone() }),
            Signal::Unauthorized { detail } => {
                provider = Some(Verdict::Unauthorized { detail: detail.clone() });
            }
            Signal::SessionGone => provider = Some(Verdict::SessionGone),
            Signal::Finished { how, .. } => {
                finish = Some(*how);
                if *how == AgentFinish::Success && matches!(provider, Some(Verdict::Transient { .. })) {
                    provider = None; // it passed
                }
            }
            Signal::PermissionAsked { what } => leave = Some(what),
            // The agent went on: whatever it was has passed.
            Signal::ToolUse { .. } => (provider, leave) = (None, None),
            Signal::Said(
                ControlSignal::Check(_)
                | ControlSignal::Step(_)
                | ControlSignal::Progress(_)
                | ControlSignal::DiscoveryLocal(_)
                | ControlSignal::DiscoveryGlobal(_)
                | ControlSignal::FollowUp(_),
            )
            | Signal::Started { .. }
            | Signal::Text(_)
            | Signal::Stride(_)
            | Signal::Waiting { .. }
            | Signal::ToolDone
            | Signal::Usage(_)
            | Signal::Cost(_)
            | Signal::Context { .. }
            | Signal::Compacted
            | Signal::Allowance { .. }
            | Signal::Malformed { .. } => {}
        }
    }
    if matches!(exit, AgentExit::Asked) {
        return Verdict::Stopped;
    }
    if let Some(verdict) = stop {
        return verdict;
    }
    let closed_well = match finish {
        Some(AgentFinish::Success | AgentFinish::Limit) => true,
        Some(AgentFinish::Error | AgentFinish::Interrupted) => false,
        None => !evidence.closes,
    };
    if complete && closed_well {
        return Verdict::Complete;
    }
    match exit {
        AgentExit::NotStarted { detail, hopeless } => {
            Verdict::NotStarted { detail: detail.clone(), hopeless: *hopeless }
        }
        AgentExit::Lost => Verdict::Lost,
        AgentExit::Deadline => Verdict::OutOfTime,
        // A process that hangs on after its own good word has done its part.
        AgentExit::Silent | AgentExit::Signal(_)
            if evidence.closes && finish == Some(AgentFinish::Success) && provider.is_none() =>
        {
            Verdict::Continue
        }
        // Waiting for an account is not a stall, nor is waiting for leave that only a person gives.
        AgentExit::Silent => match (provider, leave) {
            (Some(verdict), _) => verdict,
            (None, Some(what)) => {
                Verdict::Pending { question: format!("the agent wants leave to go on: {what}") }
            }
            (None, None) if evidence.unanswered => Verdict::Transient {
                detail: format!("the model did not answer for {}", spell_ms(evidence.model_wait_ms)),
            },
            (None, None) => Verdict::Stalled,
        },
        AgentExit::Looping => Verdict::Looping,
        AgentExit::OverBudget { scope, what } => Verdict::OverBudget { scope: *scope, what: what.clone() },
        AgentExit::ContextUsedUp => Verdict::ContextUsedUp,
        AgentExit::Asked => Verdict::Stopped,
        AgentExit::Code(code) => match (provider, finish) {
            (Some(verdict), _) => verdict,
            // Its own word about the end is worth more than its exit code.
            (None, Some(AgentFinish::Success | AgentFinish::Limit)) if evidence.closes => Verdict::Continue,
            (None, Some(AgentFinish::Error)) => {
                Verdict::Crashed { detail: format!("it reported an error of its own, exit code {code}") }
            }
            (None, Some(AgentFinish::Interrupted)) => {
                Verdict::Crashed { detail: "it was interrupted".to_owned() }
            }
            (None, None) if evidence.closes => {
                Verdict::Crashed { detail: format!("it ended without its closing word, exit code {code}") }
            }
            (None, _) if *code == 0 => Verdict::Continue,
            (None, _) => Verdict::Crashed { detail: format!("exit code {code}") },
        },
        AgentExit::Signal(signal) => match provider {
            Some(verdict) => verdict,
            None => Verdict::Crashed { detail: format!("killed by signal {signal}") },
        },
    }
}
