//! How many rounds an audit has, and when it has had enough.

use crate::tune::words;

/// Rounds of an audit that nobody has measured anything for.
pub const STANDALONE: u32 = 3;
/// Fewer rounds than this prove nothing: the second looks at what the first has mended.
pub const ROUNDS_MIN: u32 = 2;
/// More rounds than this find only what the earlier ones broke.
pub const ROUNDS_MAX: u32 = 10;
const AT_ONCE_FILES: u32 = 3; // a change this small is seen whole in one round

/// How large the change is that is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Files changed.
    pub files: u32,
    /// Lines changed.
    pub lines: u32,
    /// Folders they are in.
    pub dirs: u32,
}

/// How many rounds a change of this extent has, in a task of these types: one for every five files, two hundred lines
/// and three folders, each begun one counted whole; one more for software, and one more for a task of several types.
#[must_use]
pub fn rounds(extent: Extent, types: &[&str]) -> u32 {
    let Extent { files, lines, dirs } = extent;
    let words = words(types);
    let software = words.iter().any(|word| word.eq_ignore_ascii_case("software"));
    let bonus = u32::from(software) + u32::from(words.len() > 1);
    let parts = [files.div_ceil(5), lines.div_ceil(200), dirs.div_ceil(3), bonus];
    parts.into_iter().fold(0, u32::saturating_add).clamp(ROUNDS_MIN, ROUNDS_MAX)
}

/// What one round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Whether everything passed.
    pub passed: bool,
    /// What was mended.
    pub fixes: u32,
}

/// Why an audit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enough {
    /// Everything in a small change passed in the first round.
    AtOnce,
    /// Two rounds in a row mended nothing.
    Quiet,
    /// All rounds are used up.
    UsedUp,
}

impl Enough {
    /// The word people and reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Quiet => "quiet",
            Self::UsedUp => "used-up",
        }
    }
}

/// Whether the audit of a change with so many files ends after these rounds.
#[must_use]
pub fn enough(rounds: &[Round], files: u32, rounds_max: u32) -> Option<Enough> {
    if let [first] = rounds
        && first.passed
        && files <= AT_ONCE_FILES
    {
        return Some(Enough::AtOnce);
    }
    if let [.., before, last] = rounds
        && before.fixes == 0
        && last.fixes == 0
    {
        return Some(Enough::Quiet);
    }
    (rounds.len() >= rounds_max as usize).then_some(Enough::UsedUp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(files: u32, lines: u32, dirs: u32) -> Extent {
        Extent { files, lines, dirs }
    }

    #[test]
    fn the_budget_grows_with_the_change_between_two_and_ten() {
        assert_eq!(rounds(extent(0, 0, 0), &[]), 2);
        assert_eq!(rounds(extent(1, 1, 1), &[]), 3);
        assert_eq!(rounds(extent(5, 200, 3), &[]), 3);
        assert_eq!(rounds(extent(6, 201, 4), &[]), 6);
        assert_eq!(rounds(extent(6, 201, 4), &["software"]), 7);
        assert_eq!(rounds(extent(6, 201, 4), &["ml|dsp"]), 7);
        assert_eq!(rounds(extent(6, 201, 4), &["software|ml"]), 8);
        assert_eq!(rounds(extent(50, 0, 0), &["software|ml"]), 10);
        assert_eq!(rounds(extent(u32::MAX, u32::MAX, u32::MAX), &["software|ml"]), 10);
    }

    #[test]
    fn edge_25_a_type_is_matched_whole() {
        let plain = rounds(extent(6, 201, 4), &[]);
        for near in ["software-docs", "nosoftware", "software:web", "hybrid"] {
            assert_eq!(rounds(extent(6, 201, 4), &[near]), plain, "{near}");
        }
        assert_eq!(rounds(extent(6, 201, 4), &["Software"]), plain + 1);
        assert_eq!(rounds(extent(6, 201, 4), &["ml|ML"]), plain, "the same twice is not two");
    }

    #[test]
    fn it_ends_when_a_small_change_passes_at_once() {
        let passed = [Round { passed: true, fixes: 0 }];
        assert_eq!(enough(&passed, 3, 5), Some(Enough::AtOnce));
        assert_eq!(enough(&passed, 4, 5), None);
        assert_eq!(enough(&[Round { passed: false, fixes: 0 }], 3, 5), None);
        assert_eq!(enough(&[], 1, 5), None, "nothing was looked at yet");
    }

    #[test]
    fn it_ends_after_two_rounds_that_mended_nothing() {
        let round = |fixes| Round { passed: fixes == 0, fixes };
        assert_eq!(enough(&[round(2), round(0)], 9, 5), None);
        assert_eq!(enough(&[round(2), round(0), round(0)], 9, 5), Some(Enough::Quiet));
        assert_eq!(enough(&[round(0), round(1), round(0)], 9, 5), None);
    }

    #[test]
    fn it_ends_when_the_rounds_are_used_up() {
        let busy = [Round { passed: false, fixes: 1 }; 3];
        assert_eq!(enough(&busy[..2], 9, STANDALONE), None);
        assert_eq!(enough(&busy, 9, STANDALONE), Some(Enough::UsedUp));
    }
}
