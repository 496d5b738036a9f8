//! Who does a command: the agent that is at work, or a cheaper one beside it that hands back files and one word.

use std::collections::BTreeSet;

/// How able a model a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Bookkeeping.
    Light,
    /// Looking and telling.
    Medium,
    /// Thinking.
    Heavy,
}

impl Tier {
    /// Every tier, the least first.
    pub const ALL: [Self; 3] = [Self::Light, Self::Medium, Self::Heavy];

    /// The word people and settings use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Medium => "medium",
            Self::Heavy => "heavy",
        }
    }

    /// How long a delegated command of this tier may take.
    #[must_use]
    pub fn timeout_ms(self) -> u64 {
        const MINUTE_MS: u64 = 60_000;
        match self {
            Self::Light => 2 * MINUTE_MS,
            Self::Medium => 5 * MINUTE_MS,
            Self::Heavy => 10 * MINUTE_MS,
        }
    }
}

/// Which tier a command needs; none if there is no such command.
#[must_use]
pub fn tier(command: &str) -> Option<Tier> {
    Some(match command {
        "auto" | "target" | "research" | "plan" | "check" | "exec" | "security" => Tier::Heavy,
        "verify" | "highlight" | "report" | "read" | "annotate" | "merge" => Tier::Medium,
        "init" | "list" | "cancel" | "summarize" | "library" => Tier::Light,
        _ => return None,
    })
}

/// Commands that the agent at work does itself, always: what they decide has to stay in its head, or, like a merge, is
/// nothing to hand on. The loop does not delegate itself either.
pub const INLINE: [&str; 7] = ["target", "plan", "check", "exec", "annotate", "merge", "auto"];

/// How much the command leans on what only the agent at work knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaning {
    /// It decided something that no file says yet.
    pub unwritten_decisions: bool,
    /// The summary is older than the last step.
    pub summary_stale: bool,
    /// Lines changed since the last commit.
    pub diff_lines: u32,
}

const DIFF_LINES_MAX: u32 = 500; // more than another agent takes in before it can begin

/// What a verification runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Builds, lints and types.
    Lint,
    /// Tests.
    Tests,
    /// The whole, from outside.
    EndToEnd,
}

/// What is known when a command is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The command.
    pub command: &'a str,
    /// The task's phase.
    pub phase: &'a str,
    /// A person asked for it by hand: it is done where they asked.
    pub by_hand: bool,
    /// What only the agent at work knows.
    pub leaning: Leaning,
    /// How deep a verification goes.
    pub depth: Option<Depth>,
}

/// Who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The agent at work.
    Inline(Why),
    /// Another one.
    Delegate {
        /// Of this tier.
        tier: Tier,
        /// Within this time.
        timeout_ms: u64,
    },
}

/// Why a command is not delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Such commands never are.
    Always,
    /// There is no such command, so nobody knows what it needs.
    Unknown,
    /// A person asked for it.
    ByHand,
    /// The objective is still being talked about.
    Draft,
    /// It leans on what only the agent at work knows.
    Context,
    /// It failed before, in this phase.
    Failed,
}

impl Why {
    /// In words, for `why`.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Always => "such commands are never delegated",
            Self::Unknown => "no such command is known",
            Self::ByHand => "a person asked for it",
            Self::Draft => "the objective is still being talked about",
            Self::Context => "it needs what only the agent at work knows",
            Self::Failed => "it failed beside the agent before, in this phase",
        }
    }
}

/// Who does a command, by four factors: the phase, what it leans on, how heavy it is, and what failed before.
#[must_use]
pub fn decide(asked: Asked<'_>, failures: &Failures) -> Decision {
    let Asked { command, phase, by_hand, leaning, depth } = asked;
    let Some(tier) = tier(command) else { return Decision::Inline(Why::Unknown) };
    if INLINE.contains(&command) {
        return Decision::Inline(Why::Always);
    }
    if by_hand {
        return Decision::Inline(Why::ByHand);
    }
    if command == "research" && matches!(phase, "draft" | "target") {
        return Decision::Inline(Why::Draft);
    }
    if failures.has(command) {
        return Decision::Inline(Why::Failed);
    }
    let Leaning { unwritten_decisions, summary_stale, diff_lines } = leaning;
    // Bookkeeping needs no context; a summary is written by whoever knows more than the last one says.
    let needs_context = tier != Tier::Light || command == "summarize";
    if needs_context && (unwritten_decisions || summary_stale || diff_lines > DIFF_LINES_MAX) {
        return Decision::Inline(Why::Context);
    }
    let tier = match (command, depth) {
        ("verify", Some(Depth::Lint)) => Tier::Light,
        ("verify", Some(Depth::Tests | Depth::EndToEnd)) => Tier::Medium,
        _ => tier,
    };
    Decision::Delegate { tier, timeout_ms: tier.timeout_ms() }
}

/// How a delegated command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It said how it ended, and the files it owes are there.
    Delivered,
    /// It said so, and files are missing.
    OutputsMissing,
    /// It failed.
    Failed,
    /// It took too long.
    TimedOut,
}

impl Ended {
    /// Whether the agent at work does it after all.
    #[must_use]
    pub fn falls_back(self) -> bool {
        match self {
            Self::Delivered => false,
            Self::OutputsMissing | Self::Failed | Self::TimedOut => true,
        }
    }
}

/// What failed beside the agent at work in this phase: `verify@iter3`. Such a command is not delegated again until the
/// phase changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failures {
    phase: String,
    all: BTreeSet<(u32, String)>,
}

/// A word that names no failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` names no failed command: it is written `verify@iter3`")]
pub struct FailureError {
    word: String,
}

impl Failures {
    /// None yet, in this phase.
    #[must_use]
    pub fn new(phase: &str) -> Self {
        Self { phase: phase.to_owned(), all: BTreeSet::new() }
    }

    /// Those that were written down, in the phase they were.
    pub fn parse<'a>(phase: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Self, FailureError> {
        let mut failures = Self::new(phase);
        for word in words {
            let wrong = || FailureError { word: word.to_owned() };
            let (command, iteration) = word.rsplit_once("@iter").ok_or_else(wrong)?;
            let iteration = iteration.parse::<u32>().map_err(|_| wrong())?;
            tier(command).ok_or_else(wrong)?;
            failures.all.insert((iteration, command.to_owned()));
        }
        Ok(failures)
    }

    /// A delegated command ended. Whether the agent at work does it after all.
    pub fn ended(&mut self, command: &str, iteration: u32, ended: Ended) -> bool {
        if ended.falls_back() {
            self.all.insert((iteration, command.to_owned()));
        }
        ended.falls_back()
    }

    /// The task is in this phase now: another phase forgets.
    pub fn phase(&mut self, phase: &str) {
        if self.phase != phase {
            *self = Self::new(phase);
        }
    }

    /// Whether the command failed in this phase.
    #[must_use]
    pub fn has(&self, command: &str) -> bool {
        self.all.iter().any(|(_, failed)| failed == command)
    }

    /// As they are written down, in order of time.
    pub fn words(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|(iteration, command)| format!("{command}@iter{iteration}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str) -> Asked<'_> {
        Asked { command, phase: "execution", by_hand: false, leaning: Leaning::default(), depth: None }
    }

    fn who(asked: Asked<'_>) -> Result<(Tier, u64), Why> {
        match decide(asked, &Failures::default()) {
            Decision::Inline(why) => Err(why),
            Decision::Delegate { tier, timeout_ms } => Ok((tier, timeout_ms / 60_000)),
        }
    }

    #[test]
    fn each_command_has_its_tier_and_each_tier_its_time() {
        assert_eq!(who(asked("research")), Ok((Tier::Heavy, 10)));
        assert_eq!(who(asked("report")), Ok((Tier::Medium, 5)));
        assert_eq!(who(asked("list")), Ok((Tier::Light, 2)));
        assert_eq!(who(asked("sing")), Err(Why::Unknown));
        for command in INLINE {
            assert!(tier(command).is_some(), "{command}");
            assert_eq!(who(asked(command)), Err(Why::Always), "{command}");
        }
    }

    #[test]
    fn the_phase_counts() {
        assert_eq!(who(Asked { phase: "draft", ..asked("research") }), Err(Why::Draft));
        assert_eq!(who(Asked { phase: "draft", ..asked("list") }), Ok((Tier::Light, 2)));
    }

    #[test]
    fn what_it_leans_on_counts() {
        let cases = [
            Leaning { unwritten_decisions: true, ..Leaning::default() },
            Leaning { summary_stale: true, ..Leaning::default() },
            Leaning { diff_lines: 501, ..Leaning::default() },
        ];
        for leaning in cases {
            assert_eq!(who(Asked { leaning, ..asked("verify") }), Err(Why::Context), "{leaning:?}");
            assert_eq!(who(Asked { leaning, ..asked("summarize") }), Err(Why::Context), "{leaning:?}");
            assert_eq!(who(Asked { leaning, ..asked("list") }), Ok((Tier::Light, 2)), "{leaning:?}");
        }
        let leaning = Leaning { diff_lines: 500, ..Leaning::default() };
        assert_eq!(who(Asked { leaning, ..asked("verify") }), Ok((Tier::Medium, 5)));
    }

    #[test]
    fn how_heavy_it_is_counts() {
        let with = |depth| who(Asked { depth: Some(depth), ..asked("verify") });
        assert_eq!(with(Depth::Lint), Ok((Tier::Light, 2)));
        assert_eq!(with(Depth::Tests), Ok((Tier::Medium, 5)));
        assert_eq!(with(Depth::EndToEnd), Ok((Tier::Medium, 5)));
    }

    #[test]
    fn what_failed_is_not_delegated_again_until_the_phase_changes() {
        let mut failures = Failures::new("execution");
        assert!(!failures.ended("report", 2, Ended::Delivered));
        for (iteration, ended) in [(3, Ended::TimedOut), (10, Ended::OutputsMissing), (4, Ended::Failed)] {
            assert!(failures.ended("verify", iteration, ended), "{ended:?}");
        }
        assert_eq!(failures.words().collect::<Vec<_>>(), ["verify@iter3", "verify@iter4", "verify@iter10"]);
        assert_eq!(decide(asked("verify"), &failures), Decision::Inline(Why::Failed));
        assert!(matches!(decide(asked("report"), &failures), Decision::Delegate { .. }));
        failures.phase("execution");
        assert!(failures.has("verify"));
        failures.phase("acceptance");
        assert!(matches!(decide(asked("verify"), &failures), Decision::Delegate { .. }));
    }

    #[test]
    fn a_person_is_served_where_they_asked() {
        assert_eq!(who(Asked { by_hand: true, ..asked("verify") }), Err(Why::ByHand));
    }

    #[test]
    fn failures_are_read_back_as_they_were_written() {
        let words = ["verify@iter3", "report@iter12"];
        let failures = Failures::parse("execution", words).expect("both are good");
        assert_eq!(failures.words().collect::<Vec<_>>(), words);
        for wrong in ["verify", "verify@3", "verify@iter", "verify@iter-1", "sing@iter3"] {
            let error = Failures::parse("execution", [wrong]).expect_err(wrong);
            assert!(error.to_string().contains(wrong), "{error}");
        }
    }
}
