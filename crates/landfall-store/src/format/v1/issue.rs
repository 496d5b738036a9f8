//! Facts about the issue a task follows.

use landfall_model as model;
use landfall_model::acceptance::VerifyOutcome;
use landfall_model::issue::{
    Accepted, Ci, IssueEvent, Part, PartEnd, PartFate, Pr, Routed, Seen, SeenPr, Wishes,
};
use landfall_model::{Attempt, Commit, Event, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use super::parts::{Size, is_false, words};
use super::{body, json};
use crate::format::{FormatErrorKind, Raw};

words!(Act = model::flow::Act {
    Observe = "observe",
    Triaged = "triaged",
    Sized = "sized",
    Offer = "offer",
    Checks = "checks",
    Reviewed = "reviewed",
    Merged = "merged",
    Accept = "accept",
    Gather = "gather",
    Close = "close",
});
words!(Way = model::issue::Way { Patch = "patch", Pr = "pr", Split = "split" });
words!(Depth = model::issue::Depth { None = "none", Light = "light", Full = "full" });
words!(Phase = model::issue::Phase {
    Issue = "issue",
    Spec = "spec",
    Ready = "ready",
    Code = "code",
    Review = "review",
    Merge = "merge",
    Verify = "verify",
    Done = "done",
});
words!(PrState = model::issue::SeenPrState { Open = "open", Closed = "closed", Merged = "merged" });
words!(VerifyResult = model::acceptance::VerifyResult {
    Pass = "pass",
    Fail = "fail",
    Uncertain = "uncertain",
    Skipped = "skipped",
    Pending = "pending",
    PostMerge = "post-merge",
});

fn is_true(it: &bool) -> bool {
    *it
}

fn truth() -> bool {
    true
}

#[derive(Serialize, Deserialize)]
struct WantedBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<Way>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    depth: Option<Depth>,
    #[serde(default = "truth", skip_serializing_if = "is_true")]
    accept: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    always_pr: bool,
}

#[derive(Serialize, Deserialize)]
struct SeenBody {
    attempt: u32,
    number: u64,
    title: String,
    body: String,
    open: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    triaged: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pr: Option<SeenPrBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reopened: Option<i64>,
    #[serde(default)]
    parts: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blockers: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    side_base: bool,
}

#[derive(Serialize, Deserialize)]
struct SeenPrBody {
    number: u64,
    url: String,
    state: PrState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    reviewed: bool,
}

#[derive(Serialize, Deserialize)]
struct RoutedBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    way: Way,
    spec: bool,
    depth: Depth,
}

#[derive(Serialize, Deserialize)]
struct OfferedBody {
    attempt: u32,
    number: u64,
    url: String,
    head: String,
}

#[derive(Serialize, Deserialize)]
struct ChecksBody {
    attempt: u32,
    ci: CiBody,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CiBody {
    Absent,
    Running(Vec<String>),
    Passed,
    Failed(Vec<String>),
    PreExisting(Vec<String>),
    Broken(Vec<String>),
}

#[derive(Serialize, Deserialize)]
struct AcceptedBody {
    attempt: u32,
    items: Vec<ItemBody>,
    outcome: OutcomeBody,
}

#[derive(Serialize, Deserialize)]
struct ItemBody {
    text: String,
    result: VerifyResult,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    seen: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OutcomeBody {
    Done,
    LeftOver(u64),
    Reopen(u32),
    Exhausted(u32),
    Waiting,
    Unsure,
}

#[derive(Serialize, Deserialize)]
struct AttemptBody {
    attempt: u32,
}

#[derive(Serialize, Deserialize)]
struct PartedBody {
    attempt: u32,
    parts: Vec<PartBody>,
}

#[derive(Serialize, Deserialize)]
struct PartBody {
    number: u64,
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    #[serde(default, skip_serializing_if = "is_false")]
    done: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    at_verify: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    needs: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct PartsOverBody {
    ends: Vec<EndBody>,
}

#[derive(Serialize, Deserialize)]
struct EndBody {
    number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    end: FateBody,
    /// It landed, and something is left for a person: an older reader takes it for one that failed.
    #[serde(default, skip_serializing_if = "is_false")]
    left: bool,
}

#[derive(Serialize, Deserialize)]
struct PartsCameBody {
    over: Vec<u64>,
    levels: u32,
}

#[derive(Serialize, Deserialize)]
struct LevelledBody {
    attempt: u32,
    failing: Vec<FailingBody>,
}

#[derive(Serialize, Deserialize)]
struct FailingBody {
    text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    seen: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FateBody {
    Done,
    Failed(String),
    Skipped(u64),
}

/// Writes a fact about an issue down.
pub(super) fn encode(event: &IssueEvent) -> String {
    match event {
        IssueEvent::Wanted(Wishes { way, depth, accept, always_pr }) => json(&WantedBody {
            way: way.map(Into::into),
            depth: depth.map(Into::into),
            accept: *accept,
            always_pr: *always_pr,
        }),
        IssueEvent::Seen { attempt, seen } => json(&seen_body(*attempt, seen)),
        IssueEvent::Routed(Routed { size, way, spec, depth }) => json(&RoutedBody {
            size: size.map(Into::into),
            way: (*way).into(),
            spec: *spec,
            depth: (*depth).into(),
        }),
        IssueEvent::Offered { attempt, pr: Pr { number, url, head } } => json(&OfferedBody {
            attempt: attempt.0,
            number: *number,
            url: url.clone(),
            head: head.as_str().to_owned(),
        }),
        IssueEvent::Checks { attempt, ci } => json(&ChecksBody { attempt: attempt.0, ci: ci.into() }),
        IssueEvent::Accepted { attempt, accepted: Accepted { items, outcome } } => {
            let item = |(text, result, seen): &(String, model::acceptance::VerifyResult, String)| ItemBody {
                text: text.clone(),
                result: (*result).into(),
                seen: seen.clone(),
            };
            let items = items.iter().map(item).collect();
            json(&AcceptedBody { attempt: attempt.0, items, outcome: (*outcome).into() })
        }
        IssueEvent::Looked { attempt } | IssueEvent::Reworked { attempt } => {
            json(&AttemptBody { attempt: attempt.0 })
        }
        IssueEvent::Parted { attempt, parts } => {
            let part = |Part { number, title, size, done, at_verify, needs }: &Part| PartBody {
                number: *number,
                title: title.clone(),
                size: size.map(Into::into),
                done: *done,
                at_verify: *at_verify,
                needs: needs.clone(),
            };
            json(&PartedBody { attempt: attempt.0, parts: parts.iter().map(part).collect() })
        }
        IssueEvent::PartsOver(ends) => {
            let end = |PartEnd { number, task, end }: &PartEnd| EndBody {
                number: *number,
                task: task.map(|task| task.0),
                left: *end == PartFate::Left,
                end: match end {
                    PartFate::Done => FateBody::Done,
                    PartFate::Left => {
                        FateBody::Failed("it landed, and something is left for a person".to_owned())
                    }
                    PartFate::Failed(why) => FateBody::Failed(why.clone()),
                    PartFate::Skipped(by) => FateBody::Skipped(*by),
                },
            };
            json(&PartsOverBody { ends: ends.iter().map(end).collect() })
        }
        IssueEvent::PartsCame { over, levels } => {
            json(&PartsCameBody { over: over.clone(), levels: *levels })
        }
        IssueEvent::Levelled { attempt, failing } => {
            let failing = failing.iter();
            let failing =
                failing.map(|(text, seen)| FailingBody { text: text.clone(), seen: seen.clone() }).collect();
            json(&LevelledBody { attempt: attempt.0, failing })
        }
    }
}

fn seen_body(attempt: Attempt, seen: &Seen) -> SeenBody {
    let Seen {
        number,
        words: (title, body),
        open,
        phase,
        labels,
        triaged,
        size,
        kind,
        pr,
        spec_file,
        commit,
        reopened,
        parts,
        blockers,
        side_base,
    } = seen;
    SeenBody {
        attempt: attempt.0,
        number: *number,
        title: title.clone(),
        body: body.clone(),
        open: *open,
        phase: phase.map(Into::into),
        labels: labels.clone(),
        triaged: *triaged,
        size: size.map(Into::into),
        kind: kind.clone(),
        pr: pr.as_ref().map(|SeenPr { number, url, state, head, reviewed }| SeenPrBody {
            number: *number,
            url: url.clone(),
            state: (*state).into(),
            head: head.as_ref().map(|head| head.as_str().to_owned()),
            reviewed: *reviewed,
        }),
        spec_file: spec_file.clone(),
        commit: commit.as_ref().map(|commit| commit.as_str().to_owned()),
        reopened: reopened.map(|at| at.0),
        parts: *parts,
        blockers: blockers.clone(),
        side_base: *side_base,
    }
}

impl From<SeenBody> for Seen {
    fn from(seen: SeenBody) -> Self {
        let pr = |SeenPrBody { number, url, state, head, reviewed }| SeenPr {
            number,
            url,
            state: PrState::into(state),
            head: head.map(|head: String| Commit::new(&head)),
            reviewed,
        };
        Self {
            number: seen.number,
            words: (seen.title, seen.body),
            open: seen.open,
            phase: seen.phase.map(Into::into),
            labels: seen.labels,
            triaged: seen.triaged,
            size: seen.size.map(Into::into),
            kind: seen.kind,
            pr: seen.pr.map(pr),
            spec_file: seen.spec_file,
            commit: seen.commit.map(|commit| Commit::new(&commit)),
            reopened: seen.reopened.map(Timestamp),
            parts: seen.parts,
            blockers: seen.blockers,
            side_base: seen.side_base,
        }
    }
}

impl From<&Ci> for CiBody {
    fn from(ci: &Ci) -> Self {
        match ci {
            Ci::Absent => Self::Absent,
            Ci::Running(names) => Self::Running(names.clone()),
            Ci::Passed => Self::Passed,
            Ci::Failed(names) => Self::Failed(names.clone()),
            Ci::PreExisting(names) => Self::PreExisting(names.clone()),
            Ci::Broken(names) => Self::Broken(names.clone()),
        }
    }
}

impl From<CiBody> for Ci {
    fn from(ci: CiBody) -> Self {
        match ci {
            CiBody::Absent => Self::Absent,
            CiBody::Running(names) => Self::Running(names),
            CiBody::Passed => Self::Passed,
            CiBody::Failed(names) => Self::Failed(names),
            CiBody::PreExisting(names) => Self::PreExisting(names),
            CiBody::Broken(names) => Self::Broken(names),
        }
    }
}

impl From<VerifyOutcome> for OutcomeBody {
    fn from(outcome: VerifyOutcome) -> Self {
        match outcome {
            VerifyOutcome::Done => Self::Done,
            VerifyOutcome::LeftOver(count) => Self::LeftOver(count as u64),
            VerifyOutcome::Reopen { iteration } => Self::Reopen(iteration),
            VerifyOutcome::Exhausted { iteration } => Self::Exhausted(iteration),
            VerifyOutcome::Waiting => Self::Waiting,
            VerifyOutcome::Unsure => Self::Unsure,
        }
    }
}

impl From<OutcomeBody> for VerifyOutcome {
    fn from(outcome: OutcomeBody) -> Self {
        match outcome {
            OutcomeBody::Done => Self::Done,
            OutcomeBody::LeftOver(count) => Self::LeftOver(usize::try_from(count).unwrap_or(usize::MAX)),
            OutcomeBody::Reopen(iteration) => Self::Reopen { iteration },
            OutcomeBody::Exhausted(iteration) => Self::Exhausted { iteration },
            OutcomeBody::Waiting => Self::Waiting,
            OutcomeBody::Unsure => Self::Unsure,
        }
    }
}

/// Reads a fact of this part; none if it is of another.
pub(super) fn decode(raw: Raw<'_>) -> Result<Option<Event>, FormatErrorKind> {
    let event = match raw.kind {
        "issue-wanted" => {
            let WantedBody { way, depth, accept, always_pr } = body(raw)?;
            let (way, depth) = (way.map(Into::into), depth.map(Into::into));
            IssueEvent::Wanted(Wishes { way, depth, accept, always_pr })
        }
        "issue-seen" => {
            let seen: SeenBody = body(raw)?;
            IssueEvent::Seen { attempt: Attempt(seen.attempt), seen: Box::new(seen.into()) }
        }
        "issue-routed" => {
            let RoutedBody { size, way, spec, depth } = body(raw)?;
            let size = size.map(Into::into);
            IssueEvent::Routed(Routed { size, way: way.into(), spec, depth: depth.into() })
        }
        "issue-offered" => {
            let OfferedBody { attempt, number, url, head } = body(raw)?;
            let pr = Pr { number, url, head: Commit::new(&head) };
            IssueEvent::Offered { attempt: Attempt(attempt), pr }
        }
        "issue-checks" => {
            let ChecksBody { attempt, ci } = body(raw)?;
            IssueEvent::Checks { attempt: Attempt(attempt), ci: ci.into() }
        }
        "issue-accepted" => {
            let AcceptedBody { attempt, items, outcome } = body(raw)?;
            let item = |ItemBody { text, result, seen }| (text, VerifyResult::into(result), seen);
            let items = items.into_iter().map(item).collect();
            let accepted = Accepted { items, outcome: outcome.into() };
            IssueEvent::Accepted { attempt: Attempt(attempt), accepted }
        }
        "issue-looked" => IssueEvent::Looked { attempt: Attempt(body::<AttemptBody>(raw)?.attempt) },
        "issue-reworked" => IssueEvent::Reworked { attempt: Attempt(body::<AttemptBody>(raw)?.attempt) },
        "issue-parted" => {
            let PartedBody { attempt, parts } = body(raw)?;
            let part = |PartBody { number, title, size, done, at_verify, needs }| Part {
                number,
                title,
                size: size.map(Size::into),
                done,
                at_verify,
                needs,
            };
            IssueEvent::Parted { attempt: Attempt(attempt), parts: parts.into_iter().map(part).collect() }
        }
        "issue-parts-over" => {
            let PartsOverBody { ends } = body(raw)?;
            let end = |EndBody { number, task, end, left }| PartEnd {
                number,
                task: task.map(TaskId),
                end: match end {
                    FateBody::Done => PartFate::Done,
                    FateBody::Failed(_) if left => PartFate::Left,
                    FateBody::Failed(why) => PartFate::Failed(why),
                    FateBody::Skipped(by) => PartFate::Skipped(by),
                },
            };
            IssueEvent::PartsOver(ends.into_iter().map(end).collect())
        }
        "issue-parts-came" => {
            let PartsCameBody { over, levels } = body(raw)?;
            IssueEvent::PartsCame { over, levels }
        }
        "issue-levelled" => {
            let LevelledBody { attempt, failing } = body(raw)?;
            let failing = failing.into_iter().map(|it: FailingBody| (it.text, it.seen)).collect();
            IssueEvent::Levelled { attempt: Attempt(attempt), failing }
        }
        _ => return Ok(None),
    };
    Ok(Some(Event::Issue(event)))
}
