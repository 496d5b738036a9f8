//! Mending a fault: a test that fails, then the fix, then the test passes, then everything does.
//!
//! Whoever mends something goes this way. Running tests is left to others; here is what each result means.

/// Where a fix is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Nothing is known about it.
    Begun,
    /// It is known what kind of fault it is; a test is to be written.
    Classified,
    /// The test is written and has not been run.
    Written,
    /// The test fails, as it should.
    Red,
    /// Something was changed to mend it; the test has not been run since.
    Fixed,
    /// The test passes; the whole suite has not been run since.
    Green,
    /// The whole suite passes.
    Mended,
}

impl Stage {
    /// The word people and reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Classified => "classified",
            Self::Written => "written",
            Self::Red => "red",
            Self::Fixed => "fixed",
            Self::Green => "green",
            Self::Mended => "mended",
        }
    }
}

/// What kind of fault it is, as far as its proof goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It needs a test that fails first.
    Behaviour,
    /// It needs none, only the suite.
    Exempt(Exemption),
}

/// Why a fix needs no test of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exemption {
    /// Three characters or fewer were mistyped.
    Typo,
    /// Only comments change.
    Comment,
    /// A document that tells of the past.
    Historical,
}

const TYPO_CHARS_MAX: usize = 3;

impl Exemption {
    /// Whether two texts differ by a slip of the pen: counted is what lies between the part they begin with and the
    /// part they end with, on the longer side. Such a change may still matter where a machine reads the text, so this
    /// is asked only where the change is meant as a correction.
    #[must_use]
    pub fn is_typo(before: &str, after: &str) -> bool {
        let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let shorter = before.len().min(after.len());
        let head = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let same_end = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other);
        let tail = same_end.take(shorter - head).count();
        let changed = before.len().max(after.len()) - head - tail;
        (1..=TYPO_CHARS_MAX).contains(&changed)
    }
}

/// Something that happened to a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It was looked at.
    Classified(Fault),
    /// A test was written.
    TestWritten,
    /// The test was run.
    TestRan {
        /// It passed.
        passed: bool,
    },
    /// Something was changed to mend it.
    FixApplied,
    /// The whole suite was run.
    SuiteRan {
        /// It passed.
        passed: bool,
    },
}

/// Why news is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The test passes before the fix.
    #[error("the test passes before the fix, so it does not test the fault: write another")]
    GreenBeforeFix,
    /// The fix came before a test was seen failing.
    #[error("the fix came before its test was seen failing")]
    FixBeforeRed,
    /// The test still fails after the fix.
    #[error("the test still fails after the fix")]
    StillRed,
    /// Something else fails.
    #[error("the fix breaks something else: the suite fails")]
    SuiteRed,
    /// This does not come now.
    #[error("nothing of the kind is due in the stage `{}`", .0.word())]
    NotNow(Stage),
}

/// One fix on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fix {
    stage: Stage,
    exempt: Option<Exemption>,
    applied: bool,
}

impl Default for Fix {
    fn default() -> Self {
        Self { stage: Stage::Begun, exempt: None, applied: false }
    }
}

impl Fix {
    /// Where it is.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it is proved: its test was red and is green, unless it needs none, and the suite passes.
    #[must_use]
    pub fn is_mended(&self) -> bool {
        self.stage == Stage::Mended
    }

    /// Why it needs no test of its own.
    #[must_use]
    pub fn exemption(&self) -> Option<Exemption> {
        self.exempt
    }

    /// Takes news in. What is wrong is said, and the fix stands where it can go on from: a test that proves nothing is
    /// written anew, a fix that mends nothing is made again.
    pub fn hear(&mut self, news: &News) -> Result<Stage, Wrong> {
        let result = self.next(news);
        self.stage = match &result {
            Ok(stage) => *stage,
            Err(Wrong::GreenBeforeFix) => Stage::Classified,
            Err(Wrong::StillRed) => Stage::Red,
            Err(Wrong::SuiteRed) if self.exempt.is_some() => Stage::Classified,
            Err(Wrong::SuiteRed) => Stage::Red,
            Err(Wrong::FixBeforeRed | Wrong::NotNow(_)) => self.stage,
        };
        result
    }

    fn next(&mut self, news: &News) -> Result<Stage, Wrong> {
        use Stage as S;
        match (self.stage, news) {
            (S::Begun, News::Classified(fault)) => {
                self.exempt = match fault {
                    Fault::Behaviour => None,
                    Fault::Exempt(why) => Some(*why),
                };
                Ok(S::Classified)
            }
            (S::Classified, News::TestWritten) => Ok(S::Written),
            (S::Written, News::TestRan { passed: true }) => Err(Wrong::GreenBeforeFix),
            (S::Written | S::Red, News::TestRan { passed: false }) => Ok(S::Red),
            // It failed a moment ago and nothing was changed: it fails by chance and proves nothing.
            (S::Red, News::TestRan { passed: true }) if !self.applied => Err(Wrong::GreenBeforeFix),
            (S::Red, News::TestRan { passed: true }) => Ok(S::Green),
            (S::Red, News::FixApplied) => {
                self.applied = true;
                Ok(S::Fixed)
            }
            (S::Classified, News::FixApplied) if self.exempt.is_some() => {
                self.applied = true;
                Ok(S::Green)
            }
            (S::Classified | S::Written, News::FixApplied) => Err(Wrong::FixBeforeRed),
            (S::Fixed, News::FixApplied) => Ok(S::Fixed),
            (S::Fixed | S::Green, News::TestRan { passed: true }) => Ok(S::Green),
            (S::Fixed | S::Green, News::TestRan { passed: false }) => Err(Wrong::StillRed),
            // What is changed after green has to be seen green again.
            (S::Green | S::Mended, News::FixApplied) => {
                Ok(if self.exempt.is_some() { S::Green } else { S::Fixed })
            }
            (S::Green | S::Mended, News::SuiteRan { passed: true }) => Ok(S::Mended),
            (S::Green | S::Mended, News::SuiteRan { passed: false }) => Err(Wrong::SuiteRed),
            (
                stage @ (S::Begun | S::Classified | S::Written | S::Red | S::Fixed | S::Green | S::Mended),
                News::Classified(_)
                | News::TestWritten
                | News::TestRan { .. }
                | News::FixApplied
                | News::SuiteRan { .. },
            ) => Err(Wrong::NotNow(stage)),
        }
    }
}

/// What a finding has to say about the test of its fix, so that someone else can write it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestSpec {
    /// What kind of test it is.
    pub category: String,
    /// How it goes about it.
    pub approach: String,
    /// What fails before the fix.
    pub red: String,
    /// What passes after it.
    pub green: String,
}

impl TestSpec {
    /// What it does not say.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let parts = [
            ("category", &self.category),
            ("approach", &self.approach),
            ("red", &self.red),
            ("green", &self.green),
        ];
        parts.into_iter().filter(|(_, text)| text.trim().is_empty()).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: News = News::TestRan { passed: false };
    const GREEN: News = News::TestRan { passed: true };
    const SUITE: News = News::SuiteRan { passed: true };
    const SUITE_RED: News = News::SuiteRan { passed: false };

    fn story(news: &[News]) -> (Fix, String) {
        let mut fix = Fix::default();
        let told: Vec<String> = news
            .iter()
            .map(|news| match fix.hear(news) {
                Ok(stage) => stage.word().to_owned(),
                Err(wrong) => format!("[{wrong}]"),
            })
            .collect();
        (fix, told.join(" "))
    }

    fn behaviour() -> News {
        News::Classified(Fault::Behaviour)
    }

    #[test]
    fn red_then_fix_then_green_then_the_suite() {
        let (fix, told) = story(&[behaviour(), News::TestWritten, RED, News::FixApplied, GREEN, SUITE]);
        assert_eq!(told, "classified written red fixed green mended");
        assert!(fix.is_mended());
    }

    #[test]
    fn a_test_that_is_green_before_the_fix_is_wrong() {
        let (fix, told) = story(&[behaviour(), News::TestWritten, GREEN, News::FixApplied]);
        assert!(told.contains("[the test passes before the fix"), "{told}");
        assert!(told.ends_with("[the fix came before its test was seen failing]"), "{told}");
        assert_eq!(fix.stage(), Stage::Classified);
        let (_, told) = story(&[behaviour(), News::TestWritten, RED, GREEN]);
        assert!(told.contains("[the test passes before the fix"), "by chance: {told}");
    }

    #[test]
    fn a_fix_without_a_failing_test_is_refused() {
        let (fix, told) = story(&[behaviour(), News::FixApplied, SUITE]);
        assert_eq!(
            told,
            "classified [the fix came before its test was seen failing] \
             [nothing of the kind is due in the stage `classified`]"
        );
        assert!(!fix.is_mended());
    }

    #[test]
    fn a_fix_that_mends_nothing_is_made_again() {
        let (fix, told) = story(&[
            behaviour(),
            News::TestWritten,
            RED,
            News::FixApplied,
            RED,
            News::FixApplied,
            GREEN,
            SUITE,
        ]);
        assert_eq!(
            told,
            "classified written red fixed [the test still fails after the fix] fixed green mended"
        );
        assert!(fix.is_mended());
    }

    #[test]
    fn a_red_suite_sends_the_fix_back() {
        let (fix, told) =
            story(&[behaviour(), News::TestWritten, RED, News::FixApplied, GREEN, SUITE_RED, SUITE]);
        assert!(told.contains("[the fix breaks something else"), "{told}");
        assert!(told.ends_with("[nothing of the kind is due in the stage `red`]"), "{told}");
        assert!(!fix.is_mended());
    }

    #[test]
    fn an_exemption_spares_the_test_and_not_the_suite() {
        for why in [Exemption::Typo, Exemption::Comment, Exemption::Historical] {
            let begun = News::Classified(Fault::Exempt(why));
            let (fix, told) = story(&[begun.clone(), News::FixApplied]);
            assert_eq!(told, "classified green");
            assert!(!fix.is_mended(), "the suite has not been run");
            assert_eq!(fix.exemption(), Some(why));
            let (fix, told) = story(&[begun.clone(), News::FixApplied, SUITE_RED, News::FixApplied, SUITE]);
            assert_eq!(
                told,
                "classified green [the fix breaks something else: the suite fails] green mended"
            );
            assert!(fix.is_mended());
        }
    }

    #[test]
    fn what_changes_after_green_is_seen_green_again() {
        let (fix, told) = story(&[
            behaviour(),
            News::TestWritten,
            RED,
            News::FixApplied,
            GREEN,
            SUITE,
            News::FixApplied,
            SUITE,
        ]);
        assert!(told.ends_with("mended fixed [nothing of the kind is due in the stage `fixed`]"), "{told}");
        assert!(!fix.is_mended());
    }

    #[test]
    fn a_typo_is_three_characters_at_most() {
        assert!(Exemption::is_typo("teh cat", "the cat"));
        assert!(Exemption::is_typo("recieve", "receive"));
        assert!(Exemption::is_typo("colour", "color"));
        assert!(Exemption::is_typo("naïve", "naive"));
        assert!(Exemption::is_typo("aaa", "aaaa"));
        assert!(!Exemption::is_typo("the cat", "the bird"));
        assert!(!Exemption::is_typo("same", "same"), "nothing changed");
        assert!(!Exemption::is_typo("", "four"));
    }

    #[test]
    fn a_finding_says_all_of_its_test() {
        let spec = TestSpec {
            category: "unit".into(),
            approach: " ".into(),
            red: "panics".into(),
            green: "".into(),
        };
        assert_eq!(spec.missing(), ["approach", "green"]);
    }
}
