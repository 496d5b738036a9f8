//! Scores, verdicts and convergence against the second opinion, over inputs at random. `LANDFALL_SEEDS` sets how many.

use std::collections::BTreeMap;

use landfall_model::convergence::{
    Coverage, DIRECTIONS_MAX, Exclusion, StageProgress, compare_stages, compute_convergence, next_focus,
    snap_to_quarter,
};
use landfall_model::objective::{Requirement, Weight};
use landfall_model::score::{
    Dimension, GatePoint, Judgement, RefinementImpact, ScoreFacts, Scores, Shortfall, weigh_judgement,
};
use landfall_model::tune::{GateParams, dimension_weights, params_for_types};
use landfall_model::{Commit, StepResult};

use crate::sim::Rng;
use crate::staged_oracle::{self as oracle, Facts, Fraction};

const SEEDS: u64 = 20_000;

fn seeds() -> u64 {
    std::env::var("LANDFALL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

const TYPES: [&str; 9] = [
    "software",
    "infrastructure",
    "data-pipeline",
    "documentation",
    "ml",
    "dsp",
    "science",
    "bug-fix",
    "architecture",
];

fn some_of<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len())]
}

fn number(rng: &mut Rng, below: usize) -> u32 {
    u32::try_from(rng.below(below)).expect("small")
}

/// A score, often one that stands at a border.
fn score(rng: &mut Rng) -> u32 {
    let borders = [0, 1, 399, 400, 499, 500, 501, 599, 600, 699, 700, 749, 750, 751, 800, 900, 999, 1000];
    match rng.below(3) {
        0 => number(rng, 1001),
        1 => some_of(rng, &borders),
        _ => 500 + number(rng, 501), // where verdicts differ
    }
}

fn types(rng: &mut Rng) -> Vec<&'static str> {
    (0..rng.below(4)).map(|_| some_of(rng, &TYPES)).collect()
}

#[test]
fn composite_gates_and_verdict_are_those_of_the_second_opinion() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..seeds() {
        let rng = &mut Rng::new(seed);
        let checkpoint = some_of(rng, &GatePoint::ALL);
        let types = types(rng);
        let (weights, threshold) = match rng.below(3) {
            0 => (oracle::TABLE, oracle::threshold(checkpoint.word())),
            1 => (dimension_weights(&types), params_for_types(&types).thresholds.of(checkpoint)),
            _ => (dimension_weights(&types), number(rng, 1001)),
        };
        let scores: [u32; 6] = match rng.below(8) {
            // All the same: the composite is just at, or beside, the threshold.
            0 => [(threshold + number(rng, 3)).saturating_sub(1).min(1000); 6],
            _ => std::array::from_fn(|_| score(rng)),
        };
        let said = (rng.below(2) == 0).then(|| some_of(rng, checkpoint.possible_results()));
        let impact = (rng.below(4) == 0).then(|| some_of(rng, &RefinementImpact::ALL));
        let failed: Vec<usize> = if rng.below(6) == 0 { vec![1 + rng.below(6)] } else { Vec::new() };
        let (red, uncovered) = (rng.below(6) == 0, rng.below(6) == 0);

        let facts =
            Facts { red, uncovered, failed_checks: &failed, refinement: impact.map(RefinementImpact::word) };
        let expected =
            oracle::verdict(checkpoint.word(), threshold, scores, weights, said.map(StepResult::word), facts);

        let known = ScoreFacts {
            red,
            uncovered: if uncovered { vec![1 + number(rng, 30)] } else { Vec::new() },
            caps: failed.iter().map(|it| (Dimension::ALL[it - 1], "lint".to_owned())).collect(),
            refinement: impact,
            unproved: None,
        };
        let judgement = Judgement { scores: Scores::new(scores), word: said, ..Judgement::default() };
        let ruling = weigh_judgement(checkpoint, threshold, weights, &judgement, &known)
            .unwrap_or_else(|| panic!("seed {seed}: six scores are enough to weigh"));
        let told = format!(
            "seed {seed}: {} at {threshold} with {scores:?} by {weights:?}, said {said:?}, {facts:?}",
            checkpoint.word()
        );
        assert_eq!(ruling.result.word(), expected, "{told}");

        let counted = oracle::counted(scores, facts);
        let composite = oracle::composite(counted, weights);
        assert_eq!(ruling.composite.map(u128::from), Some(composite.floored(1_000_000)), "{told}");
        let gate = ruling.shortfalls.iter().find_map(|it| match it {
            Shortfall::Gate(dimension, score) => Some((*dimension, *score)),
            _ => None,
        });
        let blocking = oracle::blocking_gate(counted).filter(|_| said != Some(StepResult::CheckBlocked));
        let blocking = blocking.map(|it| (Dimension::ALL[it - 1], counted[it - 1]));
        assert_eq!(gate, blocking, "{told}");
        assert_eq!(ruling.shortfalls.is_empty(), ruling.result == checkpoint.pass_result(), "{told}");
        *met.entry(format!("{} {expected}", checkpoint.word())).or_default() += 1;
    }
    let all: usize = GatePoint::ALL.iter().map(|it| oracle::ladder(it.word()).len()).sum();
    assert_eq!(met.len(), all, "every verdict of every checkpoint is met: {met:?}");
    assert!(met.values().all(|times| u64::from(*times) * 500 >= seeds()), "none of them is rare: {met:?}");
}

#[test]
fn weights_are_within_rounding_of_the_exact_ones() {
    let quarters = |word: &str| -> [u128; 6] {
        match word {
            "software" => [4, 5, 5, 4, 4, 4],
            "infrastructure" => [4, 6, 6, 4, 4, 4],
            "data-pipeline" => [4, 4, 5, 5, 4, 4],
            "documentation" => [5, 4, 4, 4, 4, 5],
            "ml" => [4, 4, 4, 5, 5, 4],
            "dsp" => [5, 4, 4, 5, 4, 4],
            "science" => [6, 4, 5, 4, 4, 4],
            _ => [4; 6],
        }
    };
    for seed in 0..seeds() / 10 {
        let rng = &mut Rng::new(seed);
        let types = types(rng);
        let found = dimension_weights(&types);
        assert_eq!(found.iter().sum::<u32>(), 1000, "seed {seed}: {types:?}");
        let strongest: [u128; 6] =
            std::array::from_fn(|at| types.iter().map(|word| quarters(word)[at]).max().unwrap_or(4));
        let raised: [u128; 6] = std::array::from_fn(|at| u128::from(oracle::TABLE[at]) * strongest[at]);
        for (at, weight) in found.into_iter().enumerate() {
            let exact = Fraction::new(raised[at], raised.iter().sum()).floored(1000);
            let weight = u128::from(weight);
            assert!(weight == exact || weight == exact + 1, "seed {seed}: {types:?} D{} {found:?}", at + 1);
        }
    }
}

#[test]
fn the_default_numbers_are_those_of_the_checkpoints() {
    for checkpoint in GatePoint::ALL {
        assert_eq!(checkpoint.default_threshold(), oracle::threshold(checkpoint.word()));
        assert_eq!(GateParams::DEFAULT.thresholds.of(checkpoint), checkpoint.default_threshold());
        let words: Vec<&str> = checkpoint.possible_results().iter().map(|it| it.word()).collect();
        assert_eq!(words, oracle::ladder(checkpoint.word()), "{}", checkpoint.word());
    }
    for weight in Weight::ALL {
        assert_eq!(weight.numeric_weight(), oracle::weight(weight.word()));
    }
}

/// Requirements as both sides know them. Numbers may have gaps: what was withdrawn leaves one.
fn baseline(rng: &mut Rng) -> Vec<Requirement> {
    let mut all = Vec::new();
    for number in 1..=1 + number(rng, 30) {
        if rng.below(5) > 0 {
            all.push(Requirement::new(number, "it holds", "", some_of(rng, &Weight::ALL)));
        }
    }
    all
}

/// What is covered: mostly of the baseline, sometimes of something that is not in it.
fn covered(rng: &mut Rng) -> Vec<(u32, u32)> {
    let generous = rng.below(3) == 0;
    let mut all = Vec::new();
    for number in 1..=33 {
        if rng.below(4) > 0 || generous {
            let least = if generous { 700 } else { 0 };
            let borders = [0, 124, 125, 249, 250, 375, 499, 500, 625, 749, 750, 875, 999, 1000];
            all.push((
                number,
                if rng.below(2) == 0 { some_of(rng, &borders) } else { score(rng) }.max(least),
            ));
        }
    }
    all
}

#[test]
fn convergence_over_whole_histories_is_that_of_the_second_opinion() {
    let mut met: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..seeds() / 10 {
        let rng = &mut Rng::new(seed);
        let mut wanted = baseline(rng);
        // What the last accepted stage covered: the second opinion keeps the figures a judge said, the model snaps them.
        let mut before: Option<Vec<(u32, u32)>> = None;
        for stage in 1..=1 + rng.below(8) {
            if rng.below(5) == 0 {
                wanted = baseline(rng); // refined: another baseline, and the earlier stage is measured by it
            }
            let mut now = covered(rng);
            if rng.below(6) == 0 {
                now = before.clone().unwrap_or(now); // no closer
            }
            if rng.below(12) == 0 {
                now = (1..=33).map(|number| (number, 1000)).collect();
            }
            let told = format!("seed {seed}, stage {stage}: {wanted:?} {before:?} {now:?}");
            let flat: Vec<(u32, u32)> =
                wanted.iter().map(|it| (it.number, it.weight.numeric_weight())).collect();
            let expected = oracle::gate(Some(&flat), &now, before.as_deref());

            let kept = |said: &[(u32, u32)]| {
                said.iter().map(|(r, c)| (*r, snap_to_quarter(*c))).collect::<Coverage>()
            };
            let previous = before.as_ref().map(|before| compute_convergence(&wanted, &kept(before)));
            let found = match (compute_convergence(&wanted, &kept(&now)), previous) {
                (None, _) | (_, Some(None)) => "error",
                (Some(current), previous) => {
                    let exact = oracle::convergence(&flat, &now).expect("both have a baseline");
                    assert_eq!(u128::from(current), exact.rounded(10_000), "{told}");
                    match compare_stages(previous.flatten(), current) {
                        StageProgress::Satisfied => "satisfied",
                        StageProgress::Closer => "advanced",
                        StageProgress::NoCloser => "rollback",
                        StageProgress::Stuck => "needs-fix",
                    }
                }
            };
            assert_eq!(found, expected, "{told}");
            *met.entry(expected).or_default() += 1;
            match expected {
                "advanced" | "satisfied" => before = Some(now),
                "rollback" | "needs-fix" => {} // what is kept is the stage before, if there is one
                _ => break,
            }
        }
    }
    let all = ["advanced", "error", "needs-fix", "rollback", "satisfied"];
    assert_eq!(met.keys().copied().collect::<Vec<_>>(), all, "{met:?}");
}

/// With thirty requirements at most, shares differ by more than four decimals can hide: rounding decides nothing.
#[test]
fn rounding_to_four_decimals_never_decides() {
    for all in 1..=90u128 {
        for met in 0..=4 * all {
            let share = Fraction::new(met, 4 * all);
            assert_eq!(
                share.at_least(Fraction::new(95, 100)),
                share.rounded(10_000) >= 9_500,
                "{met} of {all}"
            );
            let more = Fraction::new(met + 1, 4 * all);
            assert!(more.rounded(10_000) > share.rounded(10_000), "{met} of {all}");
        }
    }
}

#[test]
fn a_next_stage_is_for_something_unmet_and_never_for_what_was_given_up() {
    for seed in 0..seeds() / 20 {
        let rng = &mut Rng::new(seed);
        let wanted = baseline(rng);
        let met: Coverage = covered(rng).into_iter().map(|(r, c)| (r, snap_to_quarter(c))).collect();
        let unmet = |number: u32| met.get(&number).copied().unwrap_or(0) < 1000;
        let unmet_count = wanted.iter().filter(|it| unmet(it.number)).count();
        let mut excluded: Vec<Exclusion> = Vec::new();
        let mut tried: Vec<Vec<u32>> = Vec::new();
        // It ends by itself: there are only so many directions.
        while let Some(focus) = next_focus(&wanted, &met, &excluded) {
            assert!(!focus.is_empty(), "seed {seed}");
            assert!(
                focus.iter().all(|it| unmet(*it) && wanted.iter().any(|r| r.number == *it)),
                "seed {seed}"
            );
            let mut sorted = focus.clone();
            sorted.sort_unstable();
            let again = tried.iter().filter(|it| **it == sorted).count();
            assert!(again < DIRECTIONS_MAX, "seed {seed}: {focus:?} again");
            if tried.is_empty() {
                let heaviest = wanted.iter().filter(|it| unmet(it.number)).map(|it| it.weight).max();
                let first = wanted.iter().find(|it| it.number == focus[0]).map(|it| it.weight);
                assert_eq!(first, heaviest, "seed {seed}: what is critical comes first");
            }
            tried.push(sorted);
            excluded.push(Exclusion {
                stage: 2,
                focus,
                direction: String::new(),
                reason: String::new(),
                abandoned: Commit::new("1111111111111111111111111111111111111111"),
                from: 0,
                to: 0,
            });
            assert!(tried.len() < 1000, "seed {seed}: it does not end");
        }
        assert_eq!(tried.is_empty(), unmet_count == 0, "seed {seed}");
    }
}
