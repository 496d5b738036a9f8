//! What a judge's scores come to. A judge gives six figures and findings; composite, gates and verdict are computed here,
//! and what the engine has seen for itself caps them.

use std::fmt;

use crate::event::StepResult;
use crate::review::ReviewerFinding;
pub use landfall_facts::score::{Dimension, GATE, GatePoint, RefinementImpact, Scores};

/// What each dimension weighs, in thousandths; they sum to a thousand.
pub const WEIGHTS: [u32; 6] = [250, 200, 200, 100, 100, 150];

/// What a judge said, read from the block their words end with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// The six scores; none only where the judge says that it cannot be done.
    pub scores: Option<Scores>,
    /// The judge's own word, if it gave one.
    pub word: Option<StepResult>,
    /// What it found.
    pub findings: Vec<ReviewerFinding>,
    /// How far each requirement is covered.
    pub coverage: Vec<RequirementCoverage>,
    /// How much each refinement matters.
    pub impacts: Vec<(u32, RefinementImpact)>,
    /// Why, in a paragraph.
    pub reason: String,
}

/// How far one requirement is covered, in a judge's opinion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequirementCoverage {
    /// The requirement's number.
    pub number: u32,
    /// From 0 to 1000.
    pub coverage: u32,
    /// Why; may be empty.
    pub why: String,
}

/// What the engine knows of the work itself, which no judge can overrule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScoreFacts {
    /// Verification of just this work failed.
    pub red: bool,
    /// Requirements of the stage that no step of the plan covers.
    pub uncovered: Vec<u32>,
    /// Dimensions that a check of the project holds down, with the check's name.
    pub caps: Vec<(Dimension, String)>,
    /// A refinement that the plan does not answer yet.
    pub refinement: Option<RefinementImpact>,
    /// Less than half of the plan's checks prove something: so many, of so many.
    pub unproved: Option<(usize, usize)>,
}

/// Why work did not pass a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortfall {
    /// A gate dimension is below its bar.
    Gate(Dimension, u32),
    /// The composite is below the threshold; both in thousandths, the composite rounded down.
    Composite {
        /// It is.
        got: u32,
        /// It should be.
        need: u32,
    },
    /// The engine's own verification failed.
    Verification,
    /// Requirements that no step of the plan covers.
    Uncovered(Vec<u32>),
    /// A refinement changes the plan.
    Refinement(RefinementImpact),
    /// So many of the plan's checks prove something, of so many.
    Unproved(usize, usize),
    /// The judge's own word is stricter than its scores.
    Word(StepResult),
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(dimension, score) => write!(
                f,
                "{} ({}) is {}, below the gate of {}",
                dimension.code(),
                dimension.word(),
                format_score(*score),
                format_score(GATE)
            ),
            Self::Composite { got, need } => {
                write!(f, "the composite is {}, below {}", format_score(*got), format_score(*need))
            }
            Self::Verification => f.write_str("verification failed on just this work"),
            Self::Uncovered(numbers) => {
                let list = numbers.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ");
                write!(f, "no step of the plan covers {list} (write `Covers: R…` into the step that does)")
            }
            Self::Refinement(impact) => write!(f, "a refinement of {} impact is open", impact.word()),
            Self::Unproved(proved, all) => write!(
                f,
                "{proved} of {all} checks of the plan fail before the work and pass after it; name better ones after `Verify:`"
            ),
            Self::Word(word) => write!(f, "the judge says {}", word.word()),
        }
    }
}

/// A score for people: `0.75`.
#[must_use]
pub fn format_score(thousandths: u32) -> String {
    match thousandths % 10 {
        0 => format!("{}.{:02}", thousandths / 1000, thousandths % 1000 / 10),
        _ => format!("{}.{:03}", thousandths / 1000, thousandths % 1000),
    }
}

/// What a judgement comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgementOutcome {
    /// How the step ends.
    pub result: StepResult,
    /// The scores after the caps.
    pub scores: Option<Scores>,
    /// Their composite, in millionths.
    pub composite: Option<u32>,
    /// Why it did not pass; empty when it did.
    pub shortfalls: Vec<Shortfall>,
}

const CAP: u32 = 400; // below every gate, so that a failing check of the project blocks whatever a judge says

/// Weighs a judgement. None when it says nothing that could be weighed: that is an error of the judge, not of the work.
///
/// A judge can be stricter than its scores, never milder. The gates come before the average.
#[must_use]
pub fn weigh_judgement(
    checkpoint: GatePoint,
    threshold: u32,
    weights: [u32; 6],
    judgement: &Judgement,
    known: &ScoreFacts,
) -> Option<JudgementOutcome> {
    let blocked = judgement.word == Some(StepResult::CheckBlocked);
    let scores = judgement.scores.map(|scores| {
        known.caps.iter().fold(scores, |scores, (dimension, _)| scores.with_cap(*dimension, CAP))
    });
    let composite = scores.map(|scores| scores.weighted_mean(weights));
    if blocked {
        let shortfalls = vec![Shortfall::Word(StepResult::CheckBlocked)];
        return Some(JudgementOutcome { result: StepResult::CheckBlocked, scores, composite, shortfalls });
    }
    let (some, mean) = (scores?, composite?);
    let mut shortfalls = Vec::new();
    if let Some(dimension) = some.blocking_dimension() {
        shortfalls.push(Shortfall::Gate(dimension, some.of(dimension)));
    } else if mean < threshold * 1000 {
        shortfalls.push(Shortfall::Composite { got: mean / 1000, need: threshold });
    }
    if checkpoint == GatePoint::PostExec && known.red {
        shortfalls.push(Shortfall::Verification);
    }
    if let (GatePoint::PostExec, Some((proved, all))) = (checkpoint, known.unproved) {
        shortfalls.push(Shortfall::Unproved(proved, all));
    }
    if checkpoint == GatePoint::PostPlan && !known.uncovered.is_empty() {
        shortfalls.push(Shortfall::Uncovered(known.uncovered.clone()));
    }
    let replans =
        |impact: RefinementImpact| checkpoint != GatePoint::PostPlan && impact == RefinementImpact::Major;
    let open = known.refinement.filter(|impact| match checkpoint {
        GatePoint::PostPlan => false, // the plan is made with all of them
        GatePoint::MidExec => *impact == RefinementImpact::Major, // the others go along
        GatePoint::PostExec => *impact >= RefinementImpact::Minor,
    });
    if let Some(impact) = open {
        shortfalls.push(Shortfall::Refinement(impact));
    }
    let stricter = judgement
        .word
        .filter(|word| matches!(word, StepResult::NeedsRevision | StepResult::NeedsFix | StepResult::Replan));
    if let (Some(word), true) = (stricter, shortfalls.is_empty()) {
        shortfalls.push(Shortfall::Word(word));
    }
    let result = match (shortfalls.is_empty(), checkpoint) {
        (true, _) => checkpoint.pass_result(),
        // Of a plan there is nothing to give up yet: it is revised.
        (false, GatePoint::PostPlan) => StepResult::NeedsRevision,
        (false, GatePoint::MidExec | GatePoint::PostExec)
            if stricter == Some(StepResult::Replan) || open.is_some_and(replans) =>
        {
            StepResult::Replan
        }
        (false, GatePoint::MidExec | GatePoint::PostExec) => checkpoint.fail_result(),
    };
    Some(JudgementOutcome { result, scores, composite, shortfalls })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(scores: [u32; 6]) -> Judgement {
        Judgement { scores: Scores::new(scores), ..Judgement::default() }
    }

    fn ruled(checkpoint: GatePoint, judgement: &Judgement, known: &ScoreFacts) -> JudgementOutcome {
        weigh_judgement(checkpoint, checkpoint.default_threshold(), WEIGHTS, judgement, known)
            .expect("it can be weighed")
    }

    #[test]
    fn edge_19_a_gate_blocks_whatever_the_average() {
        let ruling =
            ruled(GatePoint::PostExec, &judged([1000, 400, 1000, 1000, 1000, 1000]), &ScoreFacts::default());
        assert_eq!(ruling.result, StepResult::NeedsFix);
        assert_eq!(ruling.composite, Some(880_000));
        assert_eq!(ruling.shortfalls, [Shortfall::Gate(Dimension::Security, 400)]);
    }

    #[test]
    fn gates_are_asked_in_the_order_security_correctness_reliability() {
        let all = Scores::new([400, 400, 400, 0, 0, 0]).expect("in range");
        assert_eq!(all.blocking_dimension(), Some(Dimension::Security));
        assert_eq!(all.with_cap(Dimension::Security, 0).blocking_dimension(), Some(Dimension::Security));
        let two = Scores::new([499, 500, 499, 0, 0, 0]).expect("in range");
        assert_eq!(two.blocking_dimension(), Some(Dimension::Correctness));
        let one = Scores::new([500, 500, 499, 0, 0, 0]).expect("in range");
        assert_eq!(one.blocking_dimension(), Some(Dimension::Reliability));
    }

    #[test]
    fn a_threshold_is_met_exactly() {
        for checkpoint in GatePoint::ALL {
            let at = checkpoint.default_threshold();
            assert_eq!(
                ruled(checkpoint, &judged([at; 6]), &ScoreFacts::default()).result,
                checkpoint.pass_result()
            );
            let below = ruled(checkpoint, &judged([at, at, at, at, at, at - 1]), &ScoreFacts::default());
            assert_eq!(below.result, checkpoint.fail_result(), "{below:?}");
        }
    }

    #[test]
    fn c36_failing_verification_is_never_accepted() {
        let known = ScoreFacts { red: true, ..ScoreFacts::default() };
        let ruling = ruled(GatePoint::PostExec, &judged([1000; 6]), &known);
        assert_eq!(
            (ruling.result, ruling.shortfalls.as_slice()),
            (StepResult::NeedsFix, &[Shortfall::Verification][..])
        );
    }

    #[test]
    fn a_judge_is_stricter_than_its_scores_but_never_milder() {
        let strict = Judgement { word: Some(StepResult::Replan), ..judged([900; 6]) };
        assert_eq!(ruled(GatePoint::PostExec, &strict, &ScoreFacts::default()).result, StepResult::Replan);
        let mild = Judgement { word: Some(StepResult::Accept), ..judged([600; 6]) };
        assert_eq!(ruled(GatePoint::PostExec, &mild, &ScoreFacts::default()).result, StepResult::NeedsFix);
        let blocked = Judgement { word: Some(StepResult::CheckBlocked), ..Judgement::default() };
        assert_eq!(
            ruled(GatePoint::PostPlan, &blocked, &ScoreFacts::default()).result,
            StepResult::CheckBlocked
        );
    }

    #[test]
    fn a_judgement_without_scores_is_an_error_of_the_judge() {
        let nothing = Judgement::default();
        assert_eq!(
            weigh_judgement(GatePoint::PostExec, 750, WEIGHTS, &nothing, &ScoreFacts::default()),
            None
        );
    }

    #[test]
    fn a_check_of_the_project_holds_its_dimension_below_the_gate() {
        let known =
            ScoreFacts { caps: vec![(Dimension::Reliability, "lint".to_owned())], ..ScoreFacts::default() };
        let ruling = ruled(GatePoint::PostExec, &judged([1000; 6]), &known);
        assert_eq!(ruling.shortfalls, [Shortfall::Gate(Dimension::Reliability, CAP)]);
    }

    #[test]
    fn requirements_that_no_step_covers_send_the_plan_back() {
        let known = ScoreFacts { uncovered: vec![2, 5], ..ScoreFacts::default() };
        let ruling = ruled(GatePoint::PostPlan, &judged([900; 6]), &known);
        assert_eq!(ruling.result, StepResult::NeedsRevision);
        assert!(ruling.shortfalls[0].to_string().contains("R2, R5"));
    }
}
