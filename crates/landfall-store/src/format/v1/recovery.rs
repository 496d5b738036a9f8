//! Facts about what was done when steps failed.

use std::collections::BTreeMap;

use landfall_model::recovery::{self as model, Op, RecoveryEvent};
use landfall_model::{Event, StepName};
use serde::{Deserialize, Serialize};

use super::parts::words;
use super::{body, json};
use crate::format::{FormatErrorKind, Raw};

words!(Tier = model::Tier {
    Reconcile = "reconcile",
    Pattern = "pattern",
    Agent = "agent",
    Person = "person",
});
words!(Outcome = model::Outcome { Success = "success", Partial = "partial", Failed = "failed" });
words!(PlanAction = model::PlanAction {
    Retry = "retry",
    Skip = "skip",
    Recover = "recover",
    Abort = "abort",
});

#[derive(Serialize, Deserialize)]
struct TriedBody {
    step: String,
    symptom: String,
    tier: Tier,
    action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tail: String,
}

#[derive(Serialize, Deserialize)]
struct DiagnosedBody {
    step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<PlanAction>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    rationale: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ops: Vec<OpBody>,
}

#[derive(Serialize, Deserialize)]
struct OpBody {
    op: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    said: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct EndedBody {
    step: String,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    detail: String,
}

#[derive(Serialize, Deserialize)]
struct ProposedBody {
    symptom: String,
}

pub(super) fn encode(event: &RecoveryEvent) -> String {
    match event {
        RecoveryEvent::Tried { step, symptom, tier, action, exit, tail } => json(&TriedBody {
            step: step.to_string(),
            symptom: symptom.clone(),
            tier: (*tier).into(),
            action: action.clone(),
            exit: *exit,
            tail: tail.clone(),
        }),
        RecoveryEvent::Diagnosed { step, action, rationale, ops } => {
            let said = |op: &Op| op.said().map(|(key, value)| (key.to_owned(), value.to_owned()));
            let op = |op: &Op| OpBody { op: op.word().to_owned(), said: said(op).into_iter().collect() };
            json(&DiagnosedBody {
                step: step.to_string(),
                action: action.map(Into::into),
                rationale: rationale.clone(),
                ops: ops.iter().map(op).collect(),
            })
        }
        RecoveryEvent::Ended { step, outcome, detail } => {
            json(&EndedBody { step: step.to_string(), outcome: (*outcome).into(), detail: detail.clone() })
        }
        RecoveryEvent::Proposed { symptom } => json(&ProposedBody { symptom: symptom.clone() }),
    }
}

/// Reads a fact of this part; none if it is of another.
pub(super) fn decode(raw: Raw<'_>) -> Result<Option<Event>, FormatErrorKind> {
    let event = match raw.kind {
        "recovery-tried" => {
            let TriedBody { step, symptom, tier, action, exit, tail } = body(raw)?;
            let (step, tier) = (StepName::new(&step), tier.into());
            RecoveryEvent::Tried { step, symptom, tier, action, exit, tail }
        }
        "recovery-diagnosed" => {
            let DiagnosedBody { step, action, rationale, ops } = body(raw)?;
            let op = |it: OpBody| {
                Op::read(&it.op, &it.said).map_err(|problem| FormatErrorKind::Body(problem.to_string()))
            };
            RecoveryEvent::Diagnosed {
                step: StepName::new(&step),
                action: action.map(Into::into),
                rationale,
                ops: ops.into_iter().map(op).collect::<Result<_, _>>()?,
            }
        }
        "recovery-ended" => {
            let EndedBody { step, outcome, detail } = body(raw)?;
            RecoveryEvent::Ended { step: StepName::new(&step), outcome: outcome.into(), detail }
        }
        "recovery-proposed" => RecoveryEvent::Proposed { symptom: body::<ProposedBody>(raw)?.symptom },
        _ => return Ok(None),
    };
    Ok(Some(Event::Recovery(event)))
}
