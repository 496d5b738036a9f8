//! Facts about plans, judges, objectives and stages.

use std::collections::BTreeMap;

use landfall_model as model;
use landfall_model::audit::Extent;
use landfall_model::convergence::Exclusion;
use landfall_model::objective::{Item, Requirement};
use landfall_model::proof::{Of, Promise, Run};
use landfall_model::score::Scores;
use landfall_model::staged::{Judged, StagedEvent};
use landfall_model::{Attempt, Commit, Digest, Event, StepName, Timestamp};
use serde::{Deserialize, Serialize};

use super::parts::{self, words};
use super::{Nothing, body, json};
use crate::format::{FormatErrorKind, Raw};
use landfall_model::tune::{Params, PerCheckpoint};

words!(Checkpoint = model::score::Checkpoint {
    PostPlan = "post-plan",
    MidExec = "mid-exec",
    PostExec = "post-exec",
});
words!(Dimension = model::score::Dimension {
    Correctness = "d1",
    Security = "d2",
    Reliability = "d3",
    Performance = "d4",
    Architecture = "d5",
    Maintainability = "d6",
});
words!(Impact = model::score::Impact {
    None = "none",
    Minor = "minor",
    Moderate = "moderate",
    Major = "major",
});
words!(Mattering = model::annotate::Impact {
    None = "none",
    Low = "low",
    Medium = "medium",
    High = "high",
});
words!(Weight = model::objective::Weight {
    Optional = "optional",
    Important = "important",
    Critical = "critical",
});
words!(Progress = model::convergence::Progress {
    Satisfied = "satisfied",
    Closer = "closer",
    NoCloser = "no-closer",
    Stuck = "stuck",
});

words!(Colour = model::proof::Colour {
    Red = "red",
    Green = "green",
    Broken = "broken",
});
words!(Author = model::proof::Author {
    Planner = "planner",
    Judge = "judge",
});

/// What the kind of a task asks of its checks: plan, on the way, end.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Tuning {
    thresholds: [u32; 3],
    retries: [u32; 3],
    interval: u32,
    compact_percent: u32,
}

impl From<Params> for Tuning {
    fn from(params: Params) -> Self {
        let Params { thresholds, retries, mid_exec_interval, compact_percent } = params;
        let three = |PerCheckpoint { post_plan, mid_exec, post_exec }| [post_plan, mid_exec, post_exec];
        Self {
            thresholds: three(thresholds),
            retries: three(retries),
            interval: mid_exec_interval,
            compact_percent,
        }
    }
}

impl From<Tuning> for Params {
    fn from(tuning: Tuning) -> Self {
        let Tuning { thresholds, retries, interval, compact_percent } = tuning;
        let per =
            |[post_plan, mid_exec, post_exec]: [u32; 3]| PerCheckpoint { post_plan, mid_exec, post_exec };
        Self {
            thresholds: per(thresholds),
            retries: per(retries),
            mid_exec_interval: interval,
            compact_percent,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct PlannedBody {
    attempt: u32,
    paper: String,
    steps: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    covers: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct PapersBody {
    attempt: u32,
    papers: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct AdvancedBody {
    attempt: u32,
    done: u32,
}

#[derive(Serialize, Deserialize)]
struct JudgedBody {
    attempt: u32,
    checkpoint: Checkpoint,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scores: Option<[u32; 6]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    composite: Option<u32>,
    result: parts::StepResult,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    coverage: BTreeMap<u32, u32>,
    at: i64,
}

#[derive(Serialize, Deserialize)]
struct ObjectiveBody {
    items: Vec<ItemBody>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ItemBody {
    text: String,
    requirements: Vec<RequirementBody>,
}

#[derive(Serialize, Deserialize)]
struct RequirementBody {
    number: u32,
    text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    criteria: String,
    weight: Weight,
}

#[derive(Serialize, Deserialize)]
struct StageBody {
    number: u32,
    focus: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct ConvergedBody {
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<u32>,
    current: u32,
    progress: Progress,
    commit: String,
}

#[derive(Serialize, Deserialize)]
struct GivenUpBody {
    stage: u32,
    focus: Vec<u32>,
    direction: String,
    reason: String,
    abandoned: String,
    from: u32,
    to: u32,
}

#[derive(Serialize, Deserialize)]
struct RefinedBody {
    number: u32,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct WeighedBody {
    number: u32,
    impact: Impact,
}

#[derive(Serialize, Deserialize)]
struct TakenBody {
    numbers: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct WithdrawnBody {
    number: u32,
}

#[derive(Serialize, Deserialize)]
struct AnnotatedBody {
    name: String,
    paper: String,
    #[serde(default)]
    steps: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    covers: Vec<u32>,
    impact: Mattering,
}

#[derive(Serialize, Deserialize)]
struct PromisedBody {
    by: Author,
    promises: Vec<PromiseBody>,
}

/// What a proof is of, in one word with its number.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OfBody {
    Step(u32),
    Finding(u32),
}

#[derive(Serialize, Deserialize)]
struct PromiseBody {
    of: OfBody,
    about: String,
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ProvedBody {
    attempt: u32,
    head: String,
    runs: Vec<RunBody>,
}

#[derive(Serialize, Deserialize)]
struct SizedBody {
    attempt: u32,
    files: u32,
    lines: u32,
    dirs: u32,
}

#[derive(Serialize, Deserialize)]
struct RunBody {
    of: OfBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Colour>,
    now: Colour,
}

#[derive(Serialize, Deserialize)]
struct DirectedBody {
    step: String,
    #[serde(default, skip_serializing_if = "parts::is_false")]
    alone: bool,
}

#[derive(Serialize, Deserialize)]
struct ReopenedBody {
    text: String,
}

/// Writes down that a person wants a step.
pub(super) fn directed(step: &StepName, alone: bool) -> String {
    json(&DirectedBody { step: step.as_str().to_owned(), alone })
}

/// Writes down that a person wants more.
pub(super) fn reopened(text: &str) -> String {
    json(&ReopenedBody { text: text.to_owned() })
}

/// Writes a fact about a stage down.
pub(super) fn encode(event: &StagedEvent) -> String {
    match event {
        StagedEvent::Planned { attempt, paper, steps, covers } => json(&PlannedBody {
            attempt: attempt.0,
            paper: paper.as_str().to_owned(),
            steps: *steps,
            covers: covers.clone(),
        }),
        StagedEvent::PapersKept { attempt, papers } => {
            let papers =
                papers.iter().map(|(name, digest)| (name.clone(), digest.as_str().to_owned())).collect();
            json(&PapersBody { attempt: attempt.0, papers })
        }
        StagedEvent::Advanced { attempt, done } => json(&AdvancedBody { attempt: attempt.0, done: *done }),
        StagedEvent::Judged { attempt, judged } => {
            let Judged { checkpoint, stage, head, scores, composite, result, reasons, coverage, at } = judged;
            json(&JudgedBody {
                attempt: attempt.0,
                checkpoint: (*checkpoint).into(),
                stage: *stage,
                head: head.as_ref().map(|head| head.as_str().to_owned()),
                scores: scores.map(Scores::all),
                composite: *composite,
                result: (*result).into(),
                reasons: reasons.clone(),
                coverage: coverage.clone(),
                at: at.0,
            })
        }
        StagedEvent::ObjectiveSet { items, constraints } => {
            let items = items.iter().map(ItemBody::from).collect();
            json(&ObjectiveBody { items, constraints: constraints.clone() })
        }
        StagedEvent::ObjectiveShown | StagedEvent::ObjectiveConfirmed => json(&Nothing {}),
        StagedEvent::StageBegan { number, focus } => {
            json(&StageBody { number: *number, focus: focus.clone() })
        }
        StagedEvent::Converged { attempt, previous, current, progress, commit } => json(&ConvergedBody {
            attempt: attempt.0,
            previous: *previous,
            current: *current,
            progress: (*progress).into(),
            commit: commit.as_str().to_owned(),
        }),
        StagedEvent::GivenUp { exclusion } => {
            let Exclusion { stage, focus, direction, reason, abandoned, from, to } = exclusion;
            json(&GivenUpBody {
                stage: *stage,
                focus: focus.clone(),
                direction: direction.clone(),
                reason: reason.clone(),
                abandoned: abandoned.as_str().to_owned(),
                from: *from,
                to: *to,
            })
        }
        StagedEvent::Refined { number, text } => json(&RefinedBody { number: *number, text: text.clone() }),
        StagedEvent::RefinementWeighed { number, impact } => {
            json(&WeighedBody { number: *number, impact: (*impact).into() })
        }
        StagedEvent::RefinementsTaken { numbers } => json(&TakenBody { numbers: numbers.clone() }),
        StagedEvent::RefinementWithdrawn { number } => json(&WithdrawnBody { number: *number }),
        StagedEvent::Annotated { name, paper, steps, covers, impact } => json(&AnnotatedBody {
            name: name.clone(),
            paper: paper.as_str().to_owned(),
            steps: *steps,
            covers: covers.clone(),
            impact: (*impact).into(),
        }),
        StagedEvent::Promised { by, promises } => {
            let promises = promises.iter().map(PromiseBody::from).collect();
            json(&PromisedBody { by: (*by).into(), promises })
        }
        StagedEvent::Measured { attempt, extent } => {
            let Extent { files, lines, dirs } = *extent;
            json(&SizedBody { attempt: attempt.0, files, lines, dirs })
        }
        StagedEvent::Proved { attempt, head, runs } => {
            let run = |run: &Run| RunBody {
                of: run.of.into(),
                before: run.before.map(Into::into),
                now: run.now.into(),
            };
            let (attempt, head) = (attempt.0, head.as_str().to_owned());
            json(&ProvedBody { attempt, head, runs: runs.iter().map(run).collect() })
        }
    }
}

/// Reads a fact of this part; none if it is of another.
pub(super) fn decode(raw: Raw<'_>) -> Result<Option<Event>, FormatErrorKind> {
    let event = match raw.kind {
        "planned" => {
            let PlannedBody { attempt, paper, steps, covers } = body(raw)?;
            StagedEvent::Planned { attempt: Attempt(attempt), paper: Digest::new(&paper), steps, covers }
        }
        "papers-kept" => {
            let PapersBody { attempt, papers } = body(raw)?;
            let papers = papers.into_iter().map(|(name, digest)| (name, Digest::new(&digest))).collect();
            StagedEvent::PapersKept { attempt: Attempt(attempt), papers }
        }
        "advanced" => {
            let AdvancedBody { attempt, done } = body(raw)?;
            StagedEvent::Advanced { attempt: Attempt(attempt), done }
        }
        "judged" => {
            let JudgedBody {
                attempt,
                checkpoint,
                stage,
                head,
                scores,
                composite,
                result,
                reasons,
                coverage,
                at,
            } = body(raw)?;
            let scores = match scores {
                None => None,
                Some(scores) => Some(
                    Scores::new(scores)
                        .ok_or_else(|| FormatErrorKind::Body("a score is out of range".to_owned()))?,
                ),
            };
            let judged = Judged {
                checkpoint: checkpoint.into(),
                stage,
                head: head.map(|head| Commit::new(&head)),
                scores,
                composite,
                result: result.into(),
                reasons,
                coverage,
                at: Timestamp(at),
            };
            StagedEvent::Judged { attempt: Attempt(attempt), judged }
        }
        "objective-set" => {
            let ObjectiveBody { items, constraints } = body(raw)?;
            StagedEvent::ObjectiveSet { items: items.into_iter().map(Item::from).collect(), constraints }
        }
        "objective-shown" => {
            let Nothing {} = body(raw)?;
            StagedEvent::ObjectiveShown
        }
        "objective-confirmed" => {
            let Nothing {} = body(raw)?;
            StagedEvent::ObjectiveConfirmed
        }
        "stage-began" => {
            let StageBody { number, focus } = body(raw)?;
            StagedEvent::StageBegan { number, focus }
        }
        "converged" => {
            let ConvergedBody { attempt, previous, current, progress, commit } = body(raw)?;
            let (attempt, commit) = (Attempt(attempt), Commit::new(&commit));
            StagedEvent::Converged { attempt, previous, current, progress: progress.into(), commit }
        }
        "given-up" => {
            let GivenUpBody { stage, focus, direction, reason, abandoned, from, to } = body(raw)?;
            let abandoned = Commit::new(&abandoned);
            StagedEvent::GivenUp {
                exclusion: Exclusion { stage, focus, direction, reason, abandoned, from, to },
            }
        }
        "refined" => {
            let RefinedBody { number, text } = body(raw)?;
            StagedEvent::Refined { number, text }
        }
        "refinement-weighed" => {
            let WeighedBody { number, impact } = body(raw)?;
            StagedEvent::RefinementWeighed { number, impact: impact.into() }
        }
        "refinements-taken" => StagedEvent::RefinementsTaken { numbers: body::<TakenBody>(raw)?.numbers },
        "refinement-withdrawn" => {
            StagedEvent::RefinementWithdrawn { number: body::<WithdrawnBody>(raw)?.number }
        }
        "annotated" => {
            let AnnotatedBody { name, paper, steps, covers, impact } = body(raw)?;
            let paper = Digest::new(&paper);
            StagedEvent::Annotated { name, paper, steps, covers, impact: impact.into() }
        }
        "promised" => {
            let PromisedBody { by, promises } = body(raw)?;
            let promises = promises.into_iter().map(Promise::from).collect();
            StagedEvent::Promised { by: by.into(), promises }
        }
        "proved" => {
            let ProvedBody { attempt, head, runs } = body(raw)?;
            let run = |run: RunBody| Run {
                of: run.of.into(),
                before: run.before.map(Into::into),
                now: run.now.into(),
            };
            let (attempt, head) = (Attempt(attempt), Commit::new(&head));
            StagedEvent::Proved { attempt, head, runs: runs.into_iter().map(run).collect() }
        }
        "change-measured" => {
            let SizedBody { attempt, files, lines, dirs } = body(raw)?;
            let extent = Extent { files, lines, dirs };
            StagedEvent::Measured { attempt: Attempt(attempt), extent }
        }
        "directed" => {
            let DirectedBody { step, alone } = body(raw)?;
            return Ok(Some(Event::Directed { step: StepName::new(&step), alone }));
        }
        "reopened" => return Ok(Some(Event::Reopened { text: body::<ReopenedBody>(raw)?.text })),
        _ => return Ok(None),
    };
    Ok(Some(Event::Staged(event)))
}

impl From<Of> for OfBody {
    fn from(of: Of) -> Self {
        match of {
            Of::Step(number) => Self::Step(number),
            Of::Finding(number) => Self::Finding(number),
        }
    }
}

impl From<OfBody> for Of {
    fn from(of: OfBody) -> Self {
        match of {
            OfBody::Step(number) => Self::Step(number),
            OfBody::Finding(number) => Self::Finding(number),
        }
    }
}

impl From<&Promise> for PromiseBody {
    fn from(promise: &Promise) -> Self {
        let Promise { of, about, command, before } = promise;
        Self {
            of: (*of).into(),
            about: about.clone(),
            command: command.clone(),
            before: before.as_ref().map(|before| before.as_str().to_owned()),
        }
    }
}

impl From<PromiseBody> for Promise {
    fn from(promise: PromiseBody) -> Self {
        let PromiseBody { of, about, command, before } = promise;
        Self { of: of.into(), about, command, before: before.map(|before| Commit::new(&before)) }
    }
}

impl From<&Item> for ItemBody {
    fn from(item: &Item) -> Self {
        let requirement = |it: &Requirement| RequirementBody {
            number: it.number,
            text: it.text.clone(),
            criteria: it.criteria.clone(),
            weight: it.weight.into(),
        };
        Self { text: item.text.clone(), requirements: item.requirements.iter().map(requirement).collect() }
    }
}

impl From<ItemBody> for Item {
    fn from(item: ItemBody) -> Self {
        let requirement =
            |it: RequirementBody| Requirement::new(it.number, &it.text, &it.criteria, it.weight.into());
        Self { text: item.text, requirements: item.requirements.into_iter().map(requirement).collect() }
    }
}
