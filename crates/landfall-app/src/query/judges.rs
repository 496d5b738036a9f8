//! What judges said of finished work, against what verification and landing said later.
//!
//! Only an acceptance can be held against facts: work that lands was right to be accepted; work that is red when it is
//! verified again, is sent out of the landing queue, or whose stage is given up was not. Who sends work back cannot be
//! refuted: the work is changed then.

use std::collections::{BTreeMap, BTreeSet};

use landfall_api::{JudgeAgreement, Problem};
use landfall_engine::model::score::{GatePoint, Scores, Shortfall, WEIGHTS};
use landfall_engine::model::staged::{JudgeResult, StagedEvent};
use landfall_engine::model::{Event, Fact, StepResult, TaskId};
use landfall_engine::store::{Seq, StoreReader};

use crate::project::problems;

/// By the profile that judged.
pub(crate) fn judge_agreement(reader: &StoreReader) -> Result<Vec<JudgeAgreement>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let tasks: BTreeSet<TaskId> = reader.tasks_with_kind("judged").map_err(of)?;
    let mut all: BTreeMap<String, JudgeAgreement> = BTreeMap::new();
    for task in tasks {
        let events = reader.events(Seq::ZERO, Some(task), u32::MAX).map_err(of)?;
        let events = events.iter().filter_map(|(_, entry)| match &entry.fact {
            Fact::Task(_, event) => Some(event),
            Fact::Engine(_) => None,
        });
        count_judgements(events, &mut all);
    }
    let mut all: Vec<JudgeAgreement> = all.into_values().collect();
    for judge in &mut all {
        let known = judge.landed + judge.red + judge.overruled;
        #[expect(clippy::cast_precision_loss, reason = "a share of a few thousand at most")]
        let share = judge.landed as f64 / known.max(1) as f64;
        judge.agreement = (known > 0).then_some(share);
    }
    Ok(all)
}

/// Counts the judgements of one task.
fn count_judgements<'a>(events: impl Iterator<Item = &'a Event>, all: &mut BTreeMap<String, JudgeAgreement>) {
    let mut profile = String::new();
    // Who accepted the work as it stands, and nothing is known of it yet.
    let mut accepted: Option<String> = None;
    let mut judge = |name: &str, note: &dyn Fn(&mut JudgeAgreement)| {
        let line = all
            .entry(name.to_owned())
            .or_insert_with(|| JudgeAgreement { judge: name.to_owned(), ..JudgeAgreement::default() });
        note(line);
    };
    for event in events {
        match event {
            Event::Bound { driving, .. } => profile.clone_from(&driving.profile),
            Event::Staged(StagedEvent::Judged { judged, .. }) if judged.checkpoint == GatePoint::PostExec => {
                accepted = None;
                if judged.result == StepResult::Accept {
                    judge(&profile, &|it| it.accepted += 1);
                    accepted = Some(profile.clone());
                } else if failed_only_verification(judged) {
                    judge(&profile, &|it| it.overruled += 1);
                } else {
                    judge(&profile, &|it| it.sent_back += 1);
                }
            }
            Event::Landed { .. } => {
                if let Some(name) = accepted.take() {
                    judge(&name, &|it| it.landed += 1);
                }
            }
            Event::Verified { report, .. } if !report.outcome().is_green() => {
                if let Some(name) = accepted.take() {
                    judge(&name, &|it| it.red += 1);
                }
            }
            Event::Ejected { .. } | Event::Staged(StagedEvent::GivenUp { .. }) => {
                if let Some(name) = accepted.take() {
                    judge(&name, &|it| it.red += 1);
                }
            }
            _ => {}
        }
    }
}

/// Whether the judge had let it pass, and the engine's own checks did not.
fn failed_only_verification(judged: &JudgeResult) -> bool {
    let passes = |scores: Scores| {
        scores.blocking_dimension().is_none()
            && scores.weighted_mean(WEIGHTS) >= GatePoint::PostExec.default_threshold() * 1000
    };
    judged.reasons == [Shortfall::Verification.to_string()] && judged.scores.is_some_and(passes)
}

#[cfg(test)]
mod tests {
    use landfall_engine::model::{Attempt, Timestamp};

    use super::*;

    fn judged(result: StepResult, reasons: &[String]) -> Event {
        Event::Staged(StagedEvent::Judged {
            attempt: Attempt(1),
            judged: JudgeResult {
                checkpoint: GatePoint::PostExec,
                stage: None,
                head: None,
                scores: Scores::new([900; 6]),
                composite: Some(900_000),
                result,
                reasons: reasons.to_vec(),
                coverage: BTreeMap::new(),
                findings: Vec::new(),
                at: Timestamp(0),
            },
        })
    }

    #[test]
    fn a_judge_is_held_against_what_came_later() {
        let red = Shortfall::Verification.to_string();
        let events = [
            judged(StepResult::Accept, &[]),
            judged(StepResult::NeedsFix, &["the composite is 0.60, below 0.75".to_owned()]),
            judged(StepResult::NeedsFix, &[red]),
        ];
        let mut all = BTreeMap::new();
        count_judgements(events.iter(), &mut all);
        let it = &all[""];
        assert_eq!((it.accepted, it.landed, it.red, it.sent_back, it.overruled), (1, 0, 0, 1, 1));
    }
}
