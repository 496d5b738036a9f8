//! How close a task is to its objective, and what follows for its stages.

use std::collections::{BTreeMap, BTreeSet};

use crate::Commit;
use crate::objective::Requirement;
use crate::score::RequirementCoverage;
pub use landfall_facts::convergence::{Coverage, Exclusion, StageProgress};

/// From here on an objective is met, in ten-thousandths.
pub const SATISFIED: u32 = 9_500;

/// A whole convergence, in ten-thousandths.
pub const WHOLE: u32 = 10_000;

const QUARTER: u32 = 250; // coverage is judged in quarters
const FOCUS_MAX: usize = 5; // requirements of one stage: what one plan can hold

/// Coverage in quarters, snapped down: an eighth is not a quarter.
#[must_use]
pub fn snap_to_quarter(coverage: u32) -> u32 {
    coverage.min(1000) / QUARTER * QUARTER
}

/// What a judge's coverage comes to, after what was there before. A requirement that rises by more than a quarter needs a
/// reason; without one it is held to that. One that falls is believed: to be strict needs no reason.
#[must_use]
pub fn update_coverage(before: Option<&Coverage>, said: &[RequirementCoverage]) -> Coverage {
    let mut all = Coverage::new();
    for covered in said {
        let mut now = snap_to_quarter(covered.coverage);
        if let (Some(before), true) = (before, covered.why.trim().is_empty()) {
            let was = before.get(&covered.number).copied().unwrap_or(0);
            now = now.min(was + QUARTER);
        }
        all.insert(covered.number, now);
    }
    all
}

/// Σ(weight · coverage) / Σ weight in ten-thousandths, rounded to the nearest; a requirement nobody spoke of counts as
/// nothing. None without requirements: there is nothing to converge to.
#[must_use]
pub fn compute_convergence(baseline: &[Requirement], coverage: &Coverage) -> Option<u32> {
    let weight = |requirement: &Requirement| u64::from(requirement.weight.numeric_weight());
    let all: u64 = baseline.iter().map(weight).sum();
    if all == 0 {
        return None;
    }
    let covered: u64 = baseline
        .iter()
        .map(|requirement| {
            weight(requirement)
                * u64::from(snap_to_quarter(coverage.get(&requirement.number).copied().unwrap_or(0)))
        })
        .sum();
    Some(u32::try_from((covered * 10 + all / 2) / all).expect("a mean of shares is a share"))
}

/// A convergence for people: `0.6667`.
#[must_use]
pub fn format_share(ten_thousandths: u32) -> String {
    format!("{}.{:04}", ten_thousandths / WHOLE, ten_thousandths % WHOLE)
}

/// A stage that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedStage {
    /// Which, from 1.
    pub number: u32,
    /// The requirements it was for.
    pub focus: Vec<u32>,
    /// The work as it was accepted.
    pub commit: Commit,
    /// What was covered then.
    pub coverage: Coverage,
    /// What that came to.
    pub convergence: u32,
}

/// Compares a stage with the one before it, both under the same requirements. What is whole cannot get closer, and that
/// is no fault.
#[must_use]
pub fn compare_stages(previous: Option<u32>, current: u32) -> StageProgress {
    let closer = current > previous.unwrap_or(0) || (current == WHOLE && previous == Some(WHOLE));
    match (closer, previous) {
        (true, _) if current >= SATISFIED => StageProgress::Satisfied,
        (true, _) => StageProgress::Closer,
        (false, Some(_)) => StageProgress::NoCloser,
        (false, None) => StageProgress::Stuck,
    }
}

/// Directions that are tried for the same requirements. What three plans did not bring closer, a fourth will not.
pub const DIRECTIONS_MAX: usize = 3;

/// What the next stage is for: unmet requirements, the heaviest and least covered first, as many as one plan can hold. Those
/// that the fewest directions were given up for come first, and none that [`DIRECTIONS_MAX`] were given up for. None when
/// nothing is unmet, or every direction was tried.
#[must_use]
pub fn next_focus(baseline: &[Requirement], coverage: &Coverage, excluded: &[Exclusion]) -> Option<Vec<u32>> {
    let covered =
        |requirement: &Requirement| snap_to_quarter(coverage.get(&requirement.number).copied().unwrap_or(0));
    let mut unmet: Vec<&Requirement> = baseline.iter().filter(|it| covered(it) < 1000).collect();
    unmet.sort_by_key(|it| (std::cmp::Reverse(it.weight.numeric_weight()), covered(it), it.number));
    let unmet: Vec<u32> = unmet.into_iter().map(|it| it.number).collect();
    let mut times_excluded: BTreeMap<BTreeSet<u32>, usize> = BTreeMap::new();
    for exclusion in excluded {
        *times_excluded.entry(exclusion.focus.iter().copied().collect()).or_default() += 1;
    }
    let tried = |focus: &[u32]| {
        times_excluded.get(&focus.iter().copied().collect::<BTreeSet<_>>()).copied().unwrap_or(0)
    };
    let sizes = (1..=FOCUS_MAX.min(unmet.len())).rev();
    let open = sizes.flat_map(|size| unmet.windows(size)).filter(|focus| tried(focus) < DIRECTIONS_MAX);
    open.min_by_key(|focus| tried(focus)).map(<[u32]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Weight;

    fn baseline(weights: &[Weight]) -> Vec<Requirement> {
        (1..)
            .zip(weights)
            .map(|(number, weight)| Requirement::new(number, &format!("r{number}"), "", *weight))
            .collect()
    }

    fn excluded(focus: &[u32]) -> Exclusion {
        Exclusion {
            stage: 2,
            focus: focus.to_vec(),
            direction: String::new(),
            reason: String::new(),
            abandoned: Commit::new("1111111111111111111111111111111111111111"),
            from: 0,
            to: 0,
        }
    }

    #[test]
    fn edge_17_ties_snap_down() {
        for (said, kept) in
            [(125, 0), (249, 0), (250, 250), (375, 250), (625, 500), (999, 750), (1000, 1000), (4000, 1000)]
        {
            assert_eq!(snap_to_quarter(said), kept, "{said}");
        }
    }

    #[test]
    fn convergence_weighs_requirements_and_misses_count_as_nothing() {
        let three = baseline(&[Weight::Critical, Weight::Important, Weight::Optional]);
        assert_eq!(compute_convergence(&three, &Coverage::from([(1, 1000), (2, 500)])), Some(6_667));
        assert_eq!(compute_convergence(&three, &Coverage::new()), Some(0));
        assert_eq!(compute_convergence(&[], &Coverage::from([(1, 1000)])), None);
    }

    #[test]
    fn edge_16_whole_stays_satisfied_and_equal_does_not_count_as_closer() {
        assert_eq!(compare_stages(Some(WHOLE), WHOLE), StageProgress::Satisfied);
        assert_eq!(compare_stages(Some(5_000), 5_000), StageProgress::NoCloser);
        assert_eq!(compare_stages(Some(5_000), 5_001), StageProgress::Closer);
        assert_eq!(compare_stages(Some(9_600), 9_600), StageProgress::NoCloser);
        assert_eq!(compare_stages(Some(5_000), SATISFIED), StageProgress::Satisfied);
    }

    #[test]
    fn edge_18_the_first_stage_has_nothing_to_go_back_to() {
        assert_eq!(compare_stages(None, 0), StageProgress::Stuck);
        assert_eq!(compare_stages(None, 1), StageProgress::Closer);
    }

    #[test]
    fn a_jump_without_a_reason_is_held_to_a_quarter() {
        let before = Coverage::from([(1, 250), (2, 1000)]);
        let said =
            |number, coverage, why: &str| RequirementCoverage { number, coverage, why: why.to_owned() };
        let now = update_coverage(Some(&before), &[said(1, 1000, ""), said(2, 0, " ")]);
        assert_eq!(now, Coverage::from([(1, 500), (2, 0)]));
        let now = update_coverage(
            Some(&before),
            &[said(1, 1000, "all of it is there"), said(2, 0, "it was removed")],
        );
        assert_eq!(now, Coverage::from([(1, 1000), (2, 0)]));
        assert_eq!(
            update_coverage(None, &[said(1, 1000, "")]),
            Coverage::from([(1, 1000)]),
            "there was nothing before"
        );
    }

    #[test]
    fn the_next_stage_is_for_the_heaviest_and_least_covered_and_never_a_way_that_failed() {
        let all = baseline(&[Weight::Optional, Weight::Critical, Weight::Critical, Weight::Important]);
        let coverage = Coverage::from([(2, 500), (4, 1000)]);
        assert_eq!(next_focus(&all, &coverage, &[]), Some(vec![3, 2, 1]));
        let mut tried = vec![excluded(&[1, 2, 3])];
        assert_eq!(next_focus(&all, &coverage, &tried), Some(vec![3, 2]));
        tried.extend([excluded(&[2, 3]), excluded(&[1, 2]), excluded(&[3]), excluded(&[2])]);
        assert_eq!(next_focus(&all, &coverage, &tried), Some(vec![1]));
        tried.push(excluded(&[1]));
        assert_eq!(next_focus(&all, &coverage, &tried), Some(vec![3, 2, 1]), "in another direction");
        let thrice = [tried.clone(), tried.clone(), tried].concat();
        assert_eq!(next_focus(&all, &coverage, &thrice), None, "every direction was tried");
        assert_eq!(next_focus(&all, &coverage, &thrice[1..]), Some(vec![3, 2, 1]));
        let met = Coverage::from([(1, 1000), (2, 1000), (3, 1000), (4, 1000)]);
        assert_eq!(next_focus(&all, &met, &[]), None);
    }
}
