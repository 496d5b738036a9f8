//! Format 1: a JSON body for each kind of fact.
//!
//! An old reader ignores fields it does not know; a kind or a word it does not know is an error with the number
//! of the event. Fields may be added with a default. Nothing else may change: the sample says so.

mod autopilot;
mod issue;
mod parts;
mod recovery;
mod staged;

use std::sync::Arc;

use landfall_model::auto::AutoEvent;
use landfall_model::haul::{Chosen, HaulEvent, HaulId};
use landfall_model::{
    Attempt, BatchId, Commit, Digest, Ending, EngineEvent, Entry, Event, Fact, Flow, OwnLimits, RunId,
    StepName, TaskId, Timestamp, Tree,
};
use serde::{Deserialize, Serialize};

use super::text::Text;
use super::{FlowText, Flows, FormatError, FormatErrorKind, Raw, Written};

#[derive(Serialize, Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    spec: parts::Spec<'a>,
}

#[derive(Serialize, Deserialize)]
struct Offered<'a> {
    #[serde(borrow)]
    head: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Bound<'a> {
    #[serde(borrow)]
    flow: Text<'a>,
    limits: parts::Limits,
    #[serde(borrow, default)]
    driving: parts::Driving<'a>,
    /// The flow itself, in the first event that names it. Must stay the last field.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    inline: Option<parts::Flow<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Entered<'a> {
    attempt: u32,
    #[serde(borrow)]
    step: Text<'a>,
    run: u32,
    opening: parts::Opening,
}

#[derive(Serialize, Deserialize)]
struct WorkspaceMade<'a> {
    attempt: u32,
    #[serde(borrow)]
    base: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct IterationBegan<'a> {
    attempt: u32,
    iteration: u32,
    #[serde(borrow, default, skip_serializing_if = "parts::Talk::is_new")]
    talk: parts::Talk<'a>,
}

#[derive(Serialize, Deserialize)]
struct IterationEnded<'a> {
    attempt: u32,
    iteration: u32,
    #[serde(borrow)]
    exit: parts::Exit<'a>,
    #[serde(borrow)]
    verdict: parts::Verdict<'a>,
    took_ms: u64,
    usage: parts::Usage,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    head: Option<Text<'a>>,
    #[serde(borrow, default)]
    traces: parts::Traces<'a>,
}

#[derive(Serialize, Deserialize)]
struct Warned<'a> {
    #[serde(borrow)]
    warning: parts::Warning<'a>,
}

#[derive(Serialize, Deserialize)]
struct Collected<'a> {
    attempt: u32,
    #[serde(borrow)]
    head: Text<'a>,
    leftovers: bool,
}

#[derive(Serialize, Deserialize)]
struct Verified<'a> {
    attempt: u32,
    #[serde(borrow)]
    report: parts::Report<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    evidence: Option<parts::TestEvidence<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Conflicted<'a> {
    attempt: u32,
    #[serde(borrow)]
    base: Text<'a>,
    #[serde(borrow)]
    paths: Vec<Text<'a>>,
}

#[derive(Serialize, Deserialize)]
struct BaseMoved<'a> {
    attempt: u32,
    #[serde(borrow)]
    to: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Left<'a> {
    attempt: u32,
    #[serde(borrow)]
    step: Text<'a>,
    result: parts::StepResult,
    #[serde(borrow)]
    to: parts::Target<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    feedback: Option<parts::Feedback<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Yielded<'a> {
    attempt: u32,
    why: parts::Parting,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    feedback: Option<parts::Feedback<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Waited<'a> {
    #[serde(borrow)]
    wait: parts::Wait<'a>,
    #[serde(borrow)]
    then: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Resumed<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    feedback: Option<parts::Feedback<'a>>,
}

#[derive(Serialize, Deserialize)]
struct ReviewWanted<'a> {
    #[serde(borrow)]
    concerns: Vec<parts::Concern<'a>>,
    #[serde(borrow)]
    then: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Reviewed<'a> {
    approved: bool,
    #[serde(borrow)]
    note: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct LandingBegan<'a> {
    attempt: u32,
    batch: u32,
    #[serde(borrow)]
    report: parts::Report<'a>,
}

#[derive(Serialize, Deserialize)]
struct Requeued {
    attempt: u32,
    unsure: bool,
}

#[derive(Serialize, Deserialize)]
struct Ejected<'a> {
    attempt: u32,
    batch: u32,
    #[serde(borrow)]
    report: parts::Report<'a>,
}

#[derive(Serialize, Deserialize)]
struct Opinion<'a> {
    attempt: u32,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    head: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<parts::Finding<'a>>>,
}

#[derive(Serialize, Deserialize)]
struct Replied<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Strode<'a> {
    attempt: u32,
    #[serde(borrow)]
    stride: parts::Stride<'a>,
}

#[derive(Serialize, Deserialize)]
struct AccountWaitBegan {
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct AccountWaitEnded {
    attempt: u32,
}

#[derive(Serialize, Deserialize)]
struct SentBack<'a> {
    #[serde(borrow)]
    to: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Signed<'a> {
    decision: parts::ReviewDecision,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    note: Text<'a>,
}

/// The body of a fact whose kind says it all. It is an object, so that a later version may add to it.
#[derive(Serialize, Deserialize)]
struct Nothing {}

#[derive(Serialize, Deserialize)]
struct Landed<'a> {
    attempt: u32,
    #[serde(borrow)]
    commit: Text<'a>,
    #[serde(borrow)]
    base_before: Text<'a>,
    #[serde(borrow)]
    tree: Text<'a>,
    #[serde(borrow)]
    proof: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Reported<'a> {
    attempt: u32,
    #[serde(borrow)]
    report: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    certificate: Option<Text<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StopAsked<'a> {
    #[serde(borrow)]
    stop: parts::Stop<'a>,
}

#[derive(Serialize, Deserialize)]
struct Ended<'a> {
    status: parts::EndKind,
    code: parts::EndCode,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    detail: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Retried<'a> {
    fresh: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    feedback: Option<parts::Feedback<'a>>,
}

#[derive(Serialize, Deserialize)]
struct WorkspaceRemoved<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    kept: Option<Text<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Messaged<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    about: Option<Text<'a>>,
    #[serde(borrow)]
    text: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Held<'a> {
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    reason: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct LimitsSet {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iterations: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    micro_usd: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Started<'a> {
    #[serde(borrow)]
    version: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct RunStarted {
    run: u32,
    slots: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    only: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct RunEnded {
    run: u32,
    why: parts::RunEnd,
}

#[derive(Serialize, Deserialize)]
struct EngineBaseMoved<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    from: Option<Text<'a>>,
    #[serde(borrow)]
    to: Text<'a>,
    by: parts::Mover,
}

#[derive(Serialize, Deserialize)]
struct Published<'a> {
    #[serde(borrow)]
    commit: Text<'a>,
    #[serde(borrow)]
    how: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct PublishHeld<'a> {
    #[serde(borrow)]
    commit: Text<'a>,
    #[serde(borrow)]
    reason: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct Account<'a> {
    #[serde(borrow)]
    account: Text<'a>,
    state: parts::AccountState,
}

#[derive(Serialize, Deserialize)]
struct Measured<'a> {
    #[serde(borrow)]
    report: parts::Report<'a>,
}

#[derive(Serialize, Deserialize)]
struct DiscoveryDropped {
    number: u32,
}

#[derive(Serialize, Deserialize)]
struct Consulted<'a> {
    #[serde(borrow)]
    about: Text<'a>,
    #[serde(borrow)]
    profile: Text<'a>,
    usage: parts::Usage,
    took_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct AutoStarted<'a> {
    #[serde(borrow)]
    session: Text<'a>,
    #[serde(borrow)]
    module: Text<'a>,
    task: u32,
    iterations_max: u32,
    minutes_max: u32,
}

#[derive(Serialize, Deserialize)]
struct AutoStopAsked<'a> {
    #[serde(borrow)]
    session: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct HaulBegun<'a> {
    haul: u32,
    /// None: each was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest: Option<u32>,
    #[serde(borrow)]
    tracker: Text<'a>,
    issues: Vec<u64>,
}

/// Writes a fact down.
pub(crate) fn encode(entry: &Entry) -> Written {
    let at_ms = entry.at.0;
    match &entry.fact {
        Fact::Task(task, event) => {
            let flow = match event {
                Event::Bound { flow, .. } => Some(flow_text(flow)),
                _ => None,
            };
            let (kind, short) = encode_event(event, flow.as_ref());
            Written { at_ms, task: Some(task.0), kind, short, flow }
        }
        Fact::Engine(event) => {
            let (kind, short) = encode_engine(event);
            Written { at_ms, task: None, kind, short, flow: None }
        }
    }
}

fn encode_event(event: &Event, flow: Option<&FlowText>) -> (&'static str, String) {
    match event {
        Event::Added { spec } => ("added", json(&Spec { spec: spec.into() })),
        Event::Edited { spec } => ("edited", json(&Spec { spec: spec.into() })),
        Event::Offered { head } => ("offered", json(&Offered { head: head.as_str().into() })),
        Event::Bound { flow: _, limits, driving } => {
            let flow = (&flow.expect("written before its body").digest).into();
            let body = Bound { flow, limits: limits.into(), driving: driving.into(), inline: None };
            ("bound", json(&body))
        }
        Event::Entered { attempt, step, run, opening } => {
            let step = step.as_str().into();
            ("entered", json(&Entered { attempt: attempt.0, step, run: run.0, opening: (*opening).into() }))
        }
        Event::WorkspaceMade { attempt, base } => {
            ("workspace-made", json(&WorkspaceMade { attempt: attempt.0, base: base.as_str().into() }))
        }
        Event::IterationBegan { attempt, iteration, talk } => {
            let body = IterationBegan { attempt: attempt.0, iteration: *iteration, talk: talk.into() };
            ("iteration-began", json(&body))
        }
        Event::IterationEnded { attempt, iteration, exit, verdict, took_ms, usage, head, traces } => (
            "iteration-ended",
            json(&IterationEnded {
                attempt: attempt.0,
                iteration: *iteration,
                exit: exit.into(),
                verdict: verdict.into(),
                took_ms: *took_ms,
                usage: (*usage).into(),
                head: head.as_ref().map(|head| head.as_str().into()),
                traces: traces.into(),
            }),
        ),
        Event::Warned(warning) => ("warned", json(&Warned { warning: warning.into() })),
        Event::Collected { attempt, head, leftovers } => (
            "collected",
            json(&Collected { attempt: attempt.0, head: head.as_str().into(), leftovers: *leftovers }),
        ),
        Event::Verified { attempt, report, evidence } => {
            let evidence = evidence.as_ref().map(Into::into);
            ("verified", json(&Verified { attempt: attempt.0, report: report.into(), evidence }))
        }
        Event::Conflicted { attempt, base, paths } => (
            "conflicted",
            json(&Conflicted {
                attempt: attempt.0,
                base: base.as_str().into(),
                paths: paths.iter().map(Text::from).collect(),
            }),
        ),
        Event::BaseMoved { attempt, to } => {
            ("base-moved", json(&BaseMoved { attempt: attempt.0, to: to.as_str().into() }))
        }
        Event::Left { attempt, step, result, to, feedback } => (
            "left",
            json(&Left {
                attempt: attempt.0,
                step: step.as_str().into(),
                result: (*result).into(),
                to: to.into(),
                feedback: feedback.as_ref().map(parts::Feedback::from),
            }),
        ),
        Event::Yielded { attempt, why, feedback } => (
            "yielded",
            json(&Yielded {
                attempt: attempt.0,
                why: (*why).into(),
                feedback: feedback.as_ref().map(parts::Feedback::from),
            }),
        ),
        Event::Waited { wait, then } => {
            ("waited", json(&Waited { wait: wait.into(), then: then.as_str().into() }))
        }
        Event::Resumed { feedback } => {
            ("resumed", json(&Resumed { feedback: feedback.as_ref().map(parts::Feedback::from) }))
        }
        Event::ReviewWanted { concerns, then } => (
            "review-wanted",
            json(&ReviewWanted {
                concerns: concerns.iter().map(parts::Concern::from).collect(),
                then: then.as_str().into(),
            }),
        ),
        Event::Reviewed { approved, note } => {
            ("reviewed", json(&Reviewed { approved: *approved, note: note.into() }))
        }
        Event::LandingBegan { attempt, batch, report } => (
            "landing-began",
            json(&LandingBegan { attempt: attempt.0, batch: batch.0, report: report.into() }),
        ),
        Event::Requeued { attempt, unsure } => {
            ("requeued", json(&Requeued { attempt: attempt.0, unsure: *unsure }))
        }
        Event::Ejected { attempt, batch, report } => {
            ("ejected", json(&Ejected { attempt: attempt.0, batch: batch.0, report: report.into() }))
        }
        Event::Opinion { attempt, head, findings } => (
            "opinion",
            json(&Opinion {
                attempt: attempt.0,
                head: head.as_ref().map(|head| head.as_str().into()),
                findings: findings.as_ref().map(|all| all.iter().map(parts::Finding::from).collect()),
            }),
        ),
        Event::Replied { text } => ("replied", json(&Replied { text: text.into() })),
        Event::Strode { attempt, stride } => {
            ("strode", json(&Strode { attempt: attempt.0, stride: stride.into() }))
        }
        Event::AccountWaitBegan { attempt, until } => (
            "account-wait-began",
            json(&AccountWaitBegan { attempt: attempt.0, until: until.map(|until| until.0) }),
        ),
        Event::AccountWaitEnded { attempt } => {
            ("account-wait-ended", json(&AccountWaitEnded { attempt: attempt.0 }))
        }
        Event::SentBack { to } => ("sent-back", json(&SentBack { to: to.as_str().into() })),
        Event::ReviewOwed => ("review-owed", json(&Nothing {})),
        Event::Signed { decision, note } => {
            ("signed", json(&Signed { decision: (*decision).into(), note: note.into() }))
        }
        Event::Landed { attempt, commit, base_before, tree, proof } => (
            "landed",
            json(&Landed {
                attempt: attempt.0,
                commit: commit.as_str().into(),
                base_before: base_before.as_str().into(),
                tree: tree.as_str().into(),
                proof: proof.into(),
            }),
        ),
        Event::Reported { attempt, report, certificate } => (
            "reported",
            json(&Reported {
                attempt: attempt.0,
                report: report.as_str().into(),
                certificate: certificate.as_ref().map(|it| it.as_str().into()),
            }),
        ),
        Event::StopAsked { stop } => ("stop-asked", json(&StopAsked { stop: stop.into() })),
        Event::Ended(Ending { kind, code, detail }) => {
            ("ended", json(&Ended { status: (*kind).into(), code: (*code).into(), detail: detail.into() }))
        }
        Event::Retried { fresh, feedback } => (
            "retried",
            json(&Retried { fresh: *fresh, feedback: feedback.as_ref().map(parts::Feedback::from) }),
        ),
        Event::WorkspaceRemoved { kept } => (
            "workspace-removed",
            json(&WorkspaceRemoved { kept: kept.as_ref().map(|kept| kept.as_str().into()) }),
        ),
        Event::Messaged { about, text } => {
            let about = about.as_ref().map(Into::into);
            ("messaged", json(&Messaged { about, text: text.into() }))
        }
        Event::Held { reason } => ("held", json(&Held { reason: reason.into() })),
        Event::Released => ("released", json(&Nothing {})),
        Event::LimitsSet { limits: OwnLimits { iterations_max, task_ms, micro_usd } } => (
            "limits-set",
            json(&LimitsSet { iterations: *iterations_max, time_ms: *task_ms, micro_usd: *micro_usd }),
        ),
        Event::Staged(event) => (event.name(), staged::encode(event)),
        Event::Directed { step, alone } => ("directed", staged::directed(step, *alone)),
        Event::Reopened { text } => ("reopened", staged::reopened(text)),
        Event::Issue(event) => (event.name(), issue::encode(event)),
        Event::Recovery(event) => (event.name(), recovery::encode(event)),
    }
}

fn encode_engine(event: &EngineEvent) -> (&'static str, String) {
    match event {
        EngineEvent::Started { version } => ("engine-started", json(&Started { version: version.into() })),
        EngineEvent::RunStarted { run, slots, only } => {
            let only = only.iter().map(|task| task.0).collect();
            ("run-started", json(&RunStarted { run: run.0, slots: *slots, only }))
        }
        EngineEvent::RunEnded { run, why } => {
            ("run-ended", json(&RunEnded { run: run.0, why: (*why).into() }))
        }
        EngineEvent::BaseMoved { from, to, by } => (
            "engine-base-moved",
            json(&EngineBaseMoved {
                from: from.as_ref().map(|from| from.as_str().into()),
                to: to.as_str().into(),
                by: (*by).into(),
            }),
        ),
        EngineEvent::Published { commit, how } => {
            ("published", json(&Published { commit: commit.as_str().into(), how: how.into() }))
        }
        EngineEvent::PublishHeld { commit, reason } => {
            ("publish-held", json(&PublishHeld { commit: commit.as_str().into(), reason: reason.into() }))
        }
        EngineEvent::Account { account, state } => {
            ("account", json(&Account { account: account.into(), state: state.into() }))
        }
        EngineEvent::Queue(event) => autopilot::encode_queue(event),
        EngineEvent::Pilot(event) => autopilot::encode_pilot(event),
        EngineEvent::Sprint(event) => autopilot::encode_sprint(event),
        EngineEvent::Checkpoint(event) => autopilot::encode_checkpoint(event),
        EngineEvent::Measured { report } => ("measured", json(&Measured { report: report.into() })),
        EngineEvent::DiscoveryDropped { number } => {
            ("discovery-dropped", json(&DiscoveryDropped { number: *number }))
        }
        EngineEvent::Consulted { about, profile, usage, took_ms } => (
            "consulted",
            json(&Consulted {
                about: about.into(),
                profile: profile.into(),
                usage: (*usage).into(),
                took_ms: *took_ms,
            }),
        ),
        EngineEvent::Auto(AutoEvent::Started { session, module, task, iterations_max, minutes_max }) => (
            "auto-started",
            json(&AutoStarted {
                session: session.into(),
                module: module.into(),
                task: task.0,
                iterations_max: *iterations_max,
                minutes_max: *minutes_max,
            }),
        ),
        EngineEvent::Auto(AutoEvent::StopAsked { session }) => {
            ("auto-stop-asked", json(&AutoStopAsked { session: session.into() }))
        }
        EngineEvent::Haul(HaulEvent::Begun { haul, chosen, tracker, issues }) => (
            "haul-begun",
            json(&HaulBegun {
                haul: haul.0,
                newest: match chosen {
                    Chosen::Newest(many) => Some(*many),
                    Chosen::Listed => None,
                },
                tracker: tracker.into(),
                issues: issues.clone(),
            }),
        ),
    }
}

/// Reads a fact. Flows it brings are kept in `flows`; flows it names are taken from there.
pub(crate) fn decode(raw: Raw<'_>, flows: &mut Flows) -> Result<Entry, FormatError> {
    let wrong = |what| FormatError { seq: raw.seq, kind: raw.kind.to_owned(), what };
    let fact = match decode_event(raw, flows).map_err(wrong)? {
        Some(event) => {
            let task = raw.task.ok_or_else(|| wrong(FormatErrorKind::NoTask))?;
            Fact::Task(TaskId(task), event)
        }
        None => {
            let event = decode_engine(raw).map_err(wrong)?;
            if raw.task.is_some() {
                return Err(wrong(FormatErrorKind::StrayTask));
            }
            Fact::Engine(event)
        }
    };
    Ok(Entry { at: Timestamp(raw.at_ms), fact })
}

/// None when the kind is not one of a task.
fn decode_event(raw: Raw<'_>, flows: &mut Flows) -> Result<Option<Event>, FormatErrorKind> {
    Ok(Some(match raw.kind {
        "added" => Event::Added { spec: body::<Spec<'_>>(raw)?.spec.model().map_err(FormatErrorKind::Body)? },
        "edited" => {
            Event::Edited { spec: body::<Spec<'_>>(raw)?.spec.model().map_err(FormatErrorKind::Body)? }
        }
        "offered" => Event::Offered { head: commit(body::<Offered<'_>>(raw)?.head) },
        "bound" => {
            let Bound { flow: digest, limits, driving, inline } = body(raw)?;
            if let Some(inline) = inline
                && !flows.contains_key(digest.as_str())
            {
                flows.insert(digest.as_str().to_owned(), Arc::new(inline.into()));
            }
            let flow = flows.get(digest.as_str()).cloned();
            let flow = flow.ok_or_else(|| FormatErrorKind::UnknownFlow(digest.into_string()))?;
            Event::Bound { flow, limits: limits.into(), driving: driving.into() }
        }
        "entered" => {
            let Entered { attempt, step, run, opening } = body(raw)?;
            Event::Entered {
                attempt: Attempt(attempt),
                step: step_name(step),
                run: RunId(run),
                opening: opening.into(),
            }
        }
        "workspace-made" => {
            let WorkspaceMade { attempt, base } = body(raw)?;
            Event::WorkspaceMade { attempt: Attempt(attempt), base: commit(base) }
        }
        "iteration-began" => {
            let IterationBegan { attempt, iteration, talk } = body(raw)?;
            Event::IterationBegan { attempt: Attempt(attempt), iteration, talk: talk.into() }
        }
        "iteration-ended" => {
            let IterationEnded { attempt, iteration, exit, verdict, took_ms, usage, head, traces } =
                body(raw)?;
            Event::IterationEnded {
                attempt: Attempt(attempt),
                iteration,
                exit: exit.into(),
                verdict: verdict.into(),
                took_ms,
                usage: usage.into(),
                head: head.map(commit),
                traces: traces.into(),
            }
        }
        "warned" => Event::Warned(body::<Warned<'_>>(raw)?.warning.into()),
        "collected" => {
            let Collected { attempt, head, leftovers } = body(raw)?;
            Event::Collected { attempt: Attempt(attempt), head: commit(head), leftovers }
        }
        "verified" => {
            let Verified { attempt, report, evidence } = body(raw)?;
            Event::Verified {
                attempt: Attempt(attempt),
                report: report.into(),
                evidence: evidence.map(Into::into),
            }
        }
        "conflicted" => {
            let Conflicted { attempt, base, paths } = body(raw)?;
            Event::Conflicted { attempt: Attempt(attempt), base: commit(base), paths: parts::strings(paths) }
        }
        "base-moved" => {
            let BaseMoved { attempt, to } = body(raw)?;
            Event::BaseMoved { attempt: Attempt(attempt), to: commit(to) }
        }
        "left" => {
            let Left { attempt, step, result, to, feedback } = body(raw)?;
            Event::Left {
                attempt: Attempt(attempt),
                step: step_name(step),
                result: result.into(),
                to: to.into(),
                feedback: feedback.map(Into::into),
            }
        }
        "yielded" => {
            let Yielded { attempt, why, feedback } = body(raw)?;
            Event::Yielded { attempt: Attempt(attempt), why: why.into(), feedback: feedback.map(Into::into) }
        }
        "waited" => {
            let Waited { wait, then } = body(raw)?;
            Event::Waited { wait: wait.into(), then: step_name(then) }
        }
        "resumed" => Event::Resumed { feedback: body::<Resumed<'_>>(raw)?.feedback.map(Into::into) },
        "review-wanted" => {
            let ReviewWanted { concerns, then } = body(raw)?;
            Event::ReviewWanted {
                concerns: concerns.into_iter().map(Into::into).collect(),
                then: step_name(then),
            }
        }
        "reviewed" => {
            let Reviewed { approved, note } = body(raw)?;
            Event::Reviewed { approved, note: note.into_string() }
        }
        "landing-began" => {
            let LandingBegan { attempt, batch, report } = body(raw)?;
            Event::LandingBegan { attempt: Attempt(attempt), batch: BatchId(batch), report: report.into() }
        }
        "requeued" => {
            let Requeued { attempt, unsure } = body(raw)?;
            Event::Requeued { attempt: Attempt(attempt), unsure }
        }
        "ejected" => {
            let Ejected { attempt, batch, report } = body(raw)?;
            Event::Ejected { attempt: Attempt(attempt), batch: BatchId(batch), report: report.into() }
        }
        "opinion" => {
            let Opinion { attempt, head, findings } = body(raw)?;
            let findings = findings.map(|all| all.into_iter().map(Into::into).collect());
            Event::Opinion { attempt: Attempt(attempt), head: head.map(commit), findings }
        }
        "replied" => Event::Replied { text: body::<Replied<'_>>(raw)?.text.into_string() },
        "strode" => {
            let Strode { attempt, stride } = body(raw)?;
            Event::Strode { attempt: Attempt(attempt), stride: stride.into() }
        }
        "account-wait-began" => {
            let AccountWaitBegan { attempt, until } = body(raw)?;
            Event::AccountWaitBegan { attempt: Attempt(attempt), until: until.map(Timestamp) }
        }
        "account-wait-ended" => {
            let AccountWaitEnded { attempt } = body(raw)?;
            Event::AccountWaitEnded { attempt: Attempt(attempt) }
        }
        "sent-back" => Event::SentBack { to: commit(body::<SentBack<'_>>(raw)?.to) },
        "review-owed" => {
            let Nothing {} = body(raw)?;
            Event::ReviewOwed
        }
        "signed" => {
            let Signed { decision, note } = body(raw)?;
            Event::Signed { decision: decision.into(), note: note.into_string() }
        }
        "landed" => {
            let Landed { attempt, commit: landed, base_before, tree, proof } = body(raw)?;
            Event::Landed {
                attempt: Attempt(attempt),
                commit: commit(landed),
                base_before: commit(base_before),
                tree: Tree::new(tree.as_str()),
                proof: proof.into_string(),
            }
        }
        "reported" => {
            let Reported { attempt, report, certificate } = body(raw)?;
            Event::Reported {
                attempt: Attempt(attempt),
                report: Digest::new(report.as_str()),
                certificate: certificate.map(|it| Digest::new(it.as_str())),
            }
        }
        "stop-asked" => Event::StopAsked { stop: body::<StopAsked<'_>>(raw)?.stop.into() },
        "ended" => {
            let Ended { status, code, detail } = body(raw)?;
            Event::Ended(Ending { kind: status.into(), code: code.into(), detail: detail.into_string() })
        }
        "retried" => {
            let Retried { fresh, feedback } = body(raw)?;
            Event::Retried { fresh, feedback: feedback.map(Into::into) }
        }
        "workspace-removed" => {
            Event::WorkspaceRemoved { kept: body::<WorkspaceRemoved<'_>>(raw)?.kept.map(commit) }
        }
        "messaged" => {
            let Messaged { about, text } = body(raw)?;
            Event::Messaged { about: about.map(Text::into_string), text: text.into_string() }
        }
        "held" => Event::Held { reason: body::<Held<'_>>(raw)?.reason.into_string() },
        "released" => {
            let Nothing {} = body(raw)?;
            Event::Released
        }
        "limits-set" => {
            let LimitsSet { iterations, time_ms, micro_usd } = body(raw)?;
            let limits = OwnLimits { iterations_max: iterations, task_ms: time_ms, micro_usd };
            Event::LimitsSet { limits }
        }
        kind if kind.starts_with("issue-") => return issue::decode(raw),
        _ => {
            return match staged::decode(raw)? {
                Some(event) => Ok(Some(event)),
                None => recovery::decode(raw),
            };
        }
    }))
}

fn decode_engine(raw: Raw<'_>) -> Result<EngineEvent, FormatErrorKind> {
    Ok(match raw.kind {
        "engine-started" => EngineEvent::Started { version: body::<Started<'_>>(raw)?.version.into_string() },
        "run-started" => {
            let RunStarted { run, slots, only } = body(raw)?;
            EngineEvent::RunStarted { run: RunId(run), slots, only: only.into_iter().map(TaskId).collect() }
        }
        "run-ended" => {
            let RunEnded { run, why } = body(raw)?;
            EngineEvent::RunEnded { run: RunId(run), why: why.into() }
        }
        "engine-base-moved" => {
            let EngineBaseMoved { from, to, by } = body(raw)?;
            EngineEvent::BaseMoved { from: from.map(commit), to: commit(to), by: by.into() }
        }
        "published" => {
            let Published { commit: published, how } = body(raw)?;
            EngineEvent::Published { commit: commit(published), how: how.into_string() }
        }
        "publish-held" => {
            let PublishHeld { commit: held, reason } = body(raw)?;
            EngineEvent::PublishHeld { commit: commit(held), reason: reason.into_string() }
        }
        "account" => {
            let Account { account, state } = body(raw)?;
            EngineEvent::Account { account: account.into_string(), state: state.into() }
        }
        "measured" => EngineEvent::Measured { report: body::<Measured<'_>>(raw)?.report.into() },
        "discovery-dropped" => {
            EngineEvent::DiscoveryDropped { number: body::<DiscoveryDropped>(raw)?.number }
        }
        "consulted" => {
            let Consulted { about, profile, usage, took_ms } = body(raw)?;
            EngineEvent::Consulted {
                about: about.into_string(),
                profile: profile.into_string(),
                usage: usage.into(),
                took_ms,
            }
        }
        "auto-started" => {
            let AutoStarted { session, module, task, iterations_max, minutes_max } = body(raw)?;
            EngineEvent::Auto(AutoEvent::Started {
                session: session.into_string(),
                module: module.into_string(),
                task: TaskId(task),
                iterations_max,
                minutes_max,
            })
        }
        "auto-stop-asked" => {
            let session = body::<AutoStopAsked<'_>>(raw)?.session.into_string();
            EngineEvent::Auto(AutoEvent::StopAsked { session })
        }
        "haul-begun" => {
            let HaulBegun { haul, newest, tracker, issues } = body(raw)?;
            EngineEvent::Haul(HaulEvent::Begun {
                haul: HaulId(haul),
                chosen: newest.map_or(Chosen::Listed, Chosen::Newest),
                tracker: tracker.into_string(),
                issues,
            })
        }
        _ => return autopilot::decode(raw)?.ok_or(FormatErrorKind::UnknownKind),
    })
}

/// A flow as it is written, with its name by content.
pub(crate) fn flow_text(flow: &Flow) -> FlowText {
    let json = json(&parts::Flow::from(flow));
    FlowText { digest: blake3::hash(json.as_bytes()).to_hex().to_string(), json }
}

/// Reads a flow that is kept apart from the events.
pub(crate) fn flow_from_text(json: &str) -> Result<Flow, String> {
    serde_json::from_str::<parts::Flow<'_>>(json).map(Flow::from).map_err(|error| error.to_string())
}

fn json<T: Serialize>(body: &T) -> String {
    serde_json::to_string(body).expect("bodies hold nothing that JSON cannot")
}

fn body<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Result<T, FormatErrorKind> {
    serde_json::from_str(raw.body).map_err(|error| FormatErrorKind::Body(error.to_string()))
}

fn commit(text: Text<'_>) -> Commit {
    Commit::new(text.as_str())
}

fn step_name(text: Text<'_>) -> StepName {
    StepName::new(text.as_str())
}
