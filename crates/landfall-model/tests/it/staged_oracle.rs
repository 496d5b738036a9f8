//! A second opinion on scores and convergence, written from the tables that describe them and from nothing else.
//!
//! It is meant to be slow, plain and different from the code it is compared with: exact fractions, no shared constants,
//! words instead of enums. Where the two differ, one of them is wrong.

/// A fraction that is never rounded.
#[derive(Debug, Clone, Copy)]
pub struct Fraction {
    pub over: u128,
    pub under: u128,
}

impl Fraction {
    pub fn new(over: u128, under: u128) -> Self {
        assert!(under > 0, "a fraction of nothing");
        let (mut divisor, mut rest) = (under, over);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self { over: over / divisor, under: under / divisor }
    }

    fn times(self, other: Self) -> Self {
        Self::new(self.over * other.over, self.under * other.under)
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    pub fn at_least(self, other: Self) -> bool {
        self.over * other.under >= other.over * self.under
    }

    /// In units of one `unit`-th, to the nearest, a half upwards.
    pub fn rounded(self, unit: u128) -> u128 {
        (2 * self.over * unit + self.under) / (2 * self.under)
    }

    /// In units of one `unit`-th, what is whole of it.
    pub fn floored(self, unit: u128) -> u128 {
        self.over * unit / self.under
    }
}

/// A share in thousandths.
pub fn milli(number: u32) -> Fraction {
    Fraction::new(u128::from(number), 1000)
}

/// Composite = 0.25·D1 + 0.20·D2 + 0.20·D3 + 0.10·D4 + 0.10·D5 + 0.15·D6, or with other weights.
pub fn composite(scores: [u32; 6], weights: [u32; 6]) -> Fraction {
    let parts = scores.into_iter().zip(weights).map(|(score, weight)| milli(score).times(milli(weight)));
    parts.fold(Fraction::new(0, 1), Fraction::plus)
}

/// The weights of the table: D1 to D6.
pub const TABLE: [u32; 6] = [250, 200, 200, 100, 100, 150];

/// The first gate that blocks. Order: D2, then D1, then D3; each blocks below one half. The others only advise.
pub fn blocking_gate(scores: [u32; 6]) -> Option<usize> {
    if scores[1] < 500 {
        Some(2)
    } else if scores[0] < 500 {
        Some(1)
    } else if scores[2] < 500 {
        Some(3)
    } else {
        None
    }
}

/// What a plan, work on the way or finished work must reach.
pub fn threshold(checkpoint: &str) -> u32 {
    match checkpoint {
        "post-plan" => 700,
        "mid-exec" => 600,
        "post-exec" => 750,
        other => panic!("no checkpoint {other}"),
    }
}

/// The words a judge may say at a checkpoint, from the mildest to the strictest.
pub fn ladder(checkpoint: &str) -> &'static [&'static str] {
    match checkpoint {
        "post-plan" => &["PASS", "NEEDS_REVISION", "BLOCKED"],
        "mid-exec" => &["CONTINUE", "NEEDS_FIX", "REPLAN", "BLOCKED"],
        "post-exec" => &["ACCEPT", "NEEDS_FIX", "REPLAN", "BLOCKED"],
        other => panic!("no checkpoint {other}"),
    }
}

/// What else is known besides what a judge said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// Verification failed on just this work.
    pub red: bool,
    /// A requirement is covered by no step of the plan.
    pub uncovered: bool,
    /// Dimensions, from 1, whose own check failed.
    pub failed_checks: &'a [usize],
    /// The worst of the refinements that are waiting: none, minor, moderate, major.
    pub refinement: Option<&'a str>,
}

/// The scores that count: a dimension whose own check failed does not pass its gate.
pub fn counted(mut scores: [u32; 6], facts: Facts<'_>) -> [u32; 6] {
    for dimension in facts.failed_checks {
        scores[dimension - 1] = scores[dimension - 1].min(400);
    }
    scores
}

/// The verdict: a step of the ladder for each thing that is known, and the strictest counts.
///
/// By the numbers it is the mildest word if the composite reaches the threshold and no gate blocks, else the next. A
/// judge who is stricter is heard, one who is milder is not, and one who says a word of another checkpoint is not
/// asked here.
pub fn verdict(
    checkpoint: &str,
    threshold: u32,
    scores: [u32; 6],
    weights: [u32; 6],
    said: Option<&str>,
    facts: Facts<'_>,
) -> &'static str {
    let ladder = ladder(checkpoint);
    let rung = |word: &str| ladder.iter().position(|it| *it == word).expect("a word of this checkpoint");
    let scores = counted(scores, facts);
    let good = blocking_gate(scores).is_none() && composite(scores, weights).at_least(milli(threshold));
    let mut rungs = vec![usize::from(!good), said.map_or(0, rung)];
    // A plan that leaves a requirement out is revised.
    if checkpoint == "post-plan" && facts.uncovered {
        rungs.push(rung("NEEDS_REVISION"));
    }
    // Evidence is above any opinion: what fails is not accepted.
    if checkpoint == "post-exec" && facts.red {
        rungs.push(rung("NEEDS_FIX"));
    }
    // None: nothing. Minor: dealt with at the end. Moderate: a check on the way is called, and decides as it would
    // anyway; at the end it has to be dealt with. Major: another plan.
    match (checkpoint, facts.refinement) {
        ("post-exec", Some("minor" | "moderate")) => rungs.push(rung("NEEDS_FIX")),
        ("post-exec" | "mid-exec", Some("major")) => rungs.push(rung("REPLAN")),
        _ => {}
    }
    ladder[rungs.into_iter().max().expect("there are two at least")]
}

/// A coverage is one of 0, ¼, ½, ¾, 1. What lies between goes down. In quarters.
pub fn snapped(milli: u32) -> u32 {
    [1000, 750, 500, 250].into_iter().position(|step| milli >= step).map_or(0, |place| 4 - place as u32)
}

/// critical 3, important 2, optional 1.
pub fn weight(word: &str) -> u32 {
    match word {
        "critical" => 3,
        "important" => 2,
        "optional" => 1,
        other => panic!("no weight {other}"),
    }
}

/// Σ(w·c)/Σw over the baseline, with what is not covered at 0. None for an empty baseline: that is an error.
pub fn convergence(baseline: &[(u32, u32)], coverage: &[(u32, u32)]) -> Option<Fraction> {
    let all: u128 = baseline.iter().map(|(_, weight)| u128::from(*weight)).sum();
    if all == 0 {
        return None;
    }
    let mut met = 0;
    for (number, weight) in baseline {
        let found = coverage.iter().rev().find(|(covered, _)| covered == number);
        met += u128::from(*weight) * found.map_or(0, |(_, milli)| u128::from(snapped(*milli)));
    }
    Some(Fraction::new(met, 4 * all))
}

/// What the gate says about a stage that was accepted.
///
/// `before` is what the previous stage covered; it is measured with today's baseline, since a refined objective has
/// another one (edge 16). The first stage is compared with nothing at all, and has nowhere to go back to (edge 18).
pub fn gate(
    baseline: Option<&[(u32, u32)]>,
    now: &[(u32, u32)],
    before: Option<&[(u32, u32)]>,
) -> &'static str {
    let Some(baseline) = baseline else { return "skipped" };
    let Some(current) = convergence(baseline, now) else { return "error" };
    let current = current.rounded(10_000);
    let previous =
        before.map_or(0, |before| convergence(baseline, before).expect("the same baseline").rounded(10_000));
    let closer = current > previous || (current == previous && current == 10_000);
    match (closer, before) {
        (true, _) if current >= 9_500 => "satisfied",
        (true, _) => "advanced",
        (false, Some(_)) => "rollback",
        (false, None) => "needs-fix",
    }
}

#[test]
fn the_oracle_agrees_with_the_tables_by_hand() {
    // 0.25 + 0.20 + 0.20 + 0.10 + 0.10 + 0.15 is all of it.
    assert!(composite([1000; 6], TABLE).at_least(milli(1000)));
    assert_eq!(composite([800, 700, 600, 500, 400, 300], TABLE).rounded(1000), 595);
    assert_eq!(blocking_gate([499, 499, 499, 0, 0, 0]), Some(2));
    assert_eq!(blocking_gate([499, 500, 499, 0, 0, 0]), Some(1));
    assert_eq!(blocking_gate([500, 500, 499, 0, 0, 0]), Some(3));
    assert_eq!(blocking_gate([500, 500, 500, 0, 0, 0]), None);
    assert_eq!(
        [0, 125, 249, 250, 375, 499, 500, 749, 750, 999, 1000].map(snapped),
        [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4]
    );
    // (3·1 + 2·0.5 + 1·0) / 6 is 0.6667.
    let baseline = [(1, 3), (2, 2), (3, 1)];
    let found = convergence(&baseline, &[(1, 1000), (2, 500)]).expect("there is a baseline");
    assert_eq!(found.rounded(10_000), 6_667);
    assert_eq!(gate(Some(&baseline), &[(1, 1000)], None), "advanced");
    assert_eq!(gate(Some(&baseline), &[], None), "needs-fix");
    assert_eq!(gate(Some(&baseline), &[(1, 1000)], Some(&[(1, 1000)])), "rollback");
    assert_eq!(gate(Some(&baseline), &[(1, 1000), (2, 1000), (3, 1000)], None), "satisfied");
    assert_eq!(gate(Some(&[]), &[], None), "error");
    assert_eq!(gate(None, &[], None), "skipped");
    assert_eq!(threshold("post-plan") + threshold("mid-exec") + threshold("post-exec"), 2050);
    assert_eq!(["critical", "important", "optional"].map(weight), [3, 2, 1]);
}
