//! Whether agents may start on the base as it is: only while the checks of the project pass there. Otherwise an agent works for
//! hours on something that cannot land.
//!
//! The checks run on a base at most once: a pass is known by its tree, rules and environment, and what lands was verified as
//! exactly that tree. A red base is checked again when it moves, and by the next run.

use crate::course::gate_pause_ms;
use crate::denial::settings_that_allow;
use crate::event::BaseMover;
use crate::gate::{CheckOutcome, CommandResult, GateReport};
use crate::{Commit, Timestamp};

/// What agents do while a check does not pass on the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RedBasePolicy {
    /// They wait.
    #[default]
    Wait,
    /// They start: one of them may be there to repair it.
    Start,
}

/// What is known of the checks on the base where it is now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BaseGate {
    /// Nothing yet.
    #[default]
    Unknown,
    /// Agents may start. After a landing the base is verified, but its rules may be new.
    Open {
        /// Whether the checks were seen to pass by the rules of this very base.
        is_current: bool,
    },
    /// A check does not pass: no agent starts.
    Shut {
        /// Which one and how, in a clause.
        reason: String,
    },
    /// The checks could not be run on this machine: they are tried again.
    Untried {
        /// Why.
        reason: String,
        /// When they are tried again.
        until: Timestamp,
        /// How often they were tried.
        tries: u32,
    },
}

/// What came of checking a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseNews {
    /// The rules of the base let agents start whatever its checks come to.
    Exempt,
    /// The checks ran, or a pass of the same tree was known.
    Checked(Box<GateReport>),
    /// They could not be run.
    Failed(String),
}

/// Where a check of the base found the base, what came of it, and what the engine knew when the check began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseCheckResult {
    /// Where the base was by the facts when the check began.
    pub known: Option<Commit>,
    /// Where it was found; none if it could not be found.
    pub found: Option<Commit>,
    /// What came of the checks there.
    pub news: BaseNews,
}

impl BaseCheckResult {
    /// Whether this is about the base where it is now. `present` is where it is by the facts. No fact names a base if the engine
    /// ended between moving it and writing so; what was found there counts all the same, or it would be checked without end.
    /// What was found before the base moved does not count.
    #[must_use]
    pub fn is_about(&self, present: Option<&Commit>) -> bool {
        match (&self.found, present) {
            (None, _) | (_, None) => true,
            (Some(found), Some(present)) => found == present || self.known.as_ref() == Some(present),
        }
    }
}

/// So often the checks are tried on a machine that cannot run them before a run ends over it.
const TRIES_MAX: u32 = 4;

impl BaseGate {
    /// Whether an agent may start.
    #[must_use]
    pub fn may_start(&self) -> bool {
        match self {
            Self::Open { .. } => true,
            Self::Unknown | Self::Shut { .. } | Self::Untried { .. } => false,
        }
    }

    /// Whether the checks should run on the base now, if somebody wants to start.
    #[must_use]
    pub fn wants_check(&self, now: Timestamp) -> bool {
        match self {
            Self::Unknown | Self::Open { is_current: false } => true,
            Self::Open { is_current: true } | Self::Shut { .. } => false,
            Self::Untried { until, .. } => *until <= now,
        }
    }

    /// Whether agents may start by and by without a person doing something. While the landing queue is held because of the base,
    /// checks that could not be run there will not run before a person has ended the hold.
    #[must_use]
    pub fn opens_by_itself(&self, is_base_held: bool) -> bool {
        match self {
            Self::Unknown => true,
            Self::Untried { tries, .. } => *tries < TRIES_MAX && !is_base_held,
            Self::Open { .. } | Self::Shut { .. } => false,
        }
    }

    /// When the checks are tried again.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        match self {
            Self::Untried { until, .. } => Some(*until),
            Self::Unknown | Self::Open { .. } | Self::Shut { .. } => None,
        }
    }

    /// Why no agent starts, in a clause; none if they may.
    #[must_use]
    pub fn blocking_reason(&self) -> Option<String> {
        match self {
            Self::Open { .. } => None,
            Self::Unknown => Some("the checks run on the base first".to_owned()),
            Self::Shut { reason } => Some(reason.clone()),
            Self::Untried { reason, .. } => {
                Some(format!("the checks could not be run on the base: {reason}"))
            }
        }
    }

    /// The base has moved. What a landing made was verified; what a person made was not.
    pub fn note_base_moved(&mut self, by: BaseMover) {
        *self = match (by, &self) {
            (BaseMover::Landing(_), Self::Open { .. }) => Self::Open { is_current: false },
            (BaseMover::Landing(_) | BaseMover::Person | BaseMover::Rebuild, _) => Self::Unknown,
        };
    }

    /// Takes in what came of checking the base.
    pub fn hear(&mut self, now: Timestamp, news: &BaseNews) {
        *self = match news {
            BaseNews::Exempt => Self::Open { is_current: true },
            BaseNews::Checked(report) => match explain_base_failure(report) {
                None => Self::Open { is_current: true },
                Some(reason) => Self::Shut { reason },
            },
            BaseNews::Failed(reason) => {
                let tries = match self {
                    Self::Untried { tries, .. } => tries.saturating_add(1),
                    Self::Unknown | Self::Open { .. } | Self::Shut { .. } => 1,
                };
                let until = now.plus_ms(gate_pause_ms(tries - 1));
                Self::Untried { reason: reason.clone(), until, tries }
            }
        };
    }
}

/// Whether the command keeps agents from starting. One that runs no test yet does not: the first tests are work for an agent.
fn blocks_agents(command: &CommandResult) -> bool {
    const NOTHING_COLLECTED: i32 = 5; // how pytest exits without tests
    let is_empty = command.tests == Some(0) && matches!(command.exit, Some(0 | NOTHING_COLLECTED));
    command.required && !command.outcome.is_green() && !is_empty
}

/// The first check that does not pass on the base, and how, in a clause; none if agents may start.
#[must_use]
pub fn explain_base_failure(report: &GateReport) -> Option<String> {
    if report.is_empty() {
        return report.required.then(|| {
            "`verify.required` is set, but the base has no check; name one under [[verify.command]]"
                .to_owned()
        });
    }
    let command = report.commands.iter().find(|command| blocks_agents(command))?;
    let name = &command.name;
    if let Some(denial) = command.denied.first() {
        let allow = settings_that_allow(&command.denied).join(" and ");
        return Some(format!("{}; allow it with `{allow}` under [run]", denial.to_sentence(name)));
    }
    let how = match (command.outcome, command.exit) {
        (CheckOutcome::Timeout, _) => format!("did not end within {} s", command.limit_ms / 1000),
        (_, Some(127)) => "needs a program that was not found (exit 127)".to_owned(),
        (_, Some(126)) => "cannot be executed (exit 126)".to_owned(),
        (_, Some(code)) => format!("fails (exit {code})"),
        (_, None) => "could not be run".to_owned(),
    };
    let last = command.excerpt.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let last = last.map(|line| format!(": {}", truncate_line(line))).unwrap_or_default();
    Some(format!("the check `{name}` {how} on the base{last}"))
}

/// A line for a sentence: the whole output is elsewhere.
fn truncate_line(line: &str) -> String {
    const CHARS_MAX: usize = 120;
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denial::{DeniedAccess, SandboxDenial};
    use crate::{Commit, Digest, TaskId, Tree};

    fn command(outcome: CheckOutcome, exit: Option<i32>) -> CommandResult {
        CommandResult {
            name: "tests".to_owned(),
            command: "make test".to_owned(),
            required: true,
            outcome,
            exit,
            took_ms: 10,
            limit_ms: 60_000,
            tests: None,
            excerpt: "one\nassertion failed\n\n".to_owned(),
            caps: None,
            denied: Vec::new(),
            copied_from_base: false,
        }
    }

    fn report(commands: Vec<CommandResult>) -> GateReport {
        let commit = Commit::new(&"c".repeat(40));
        GateReport {
            base: commit.clone(),
            head: commit.clone(),
            commit,
            tree: Tree::new(&"7".repeat(40)),
            config: Digest::new("rules"),
            environment: Digest::new("machine"),
            commands,
            took_ms: 10,
            reused: false,
            required: true,
            sandbox: None,
        }
    }

    fn after(news: &BaseNews) -> BaseGate {
        let mut gate = BaseGate::default();
        gate.hear(Timestamp(0), news);
        gate
    }

    #[test]
    fn no_agent_starts_before_the_checks_have_passed_on_the_base() {
        let mut gate = BaseGate::default();
        assert!(!gate.may_start() && gate.wants_check(Timestamp(0)) && gate.opens_by_itself(true));
        gate.hear(
            Timestamp(0),
            &BaseNews::Checked(Box::new(report(vec![command(CheckOutcome::Pass, Some(0))]))),
        );
        assert!(gate.may_start() && !gate.wants_check(Timestamp(0)));
        gate.note_base_moved(BaseMover::Person);
        assert!(
            !gate.may_start() && gate.wants_check(Timestamp(0)),
            "nobody has checked what a person commits"
        );
    }

    #[test]
    fn a_landing_holds_nobody_up_and_its_rules_are_checked_beside() {
        let mut gate =
            after(&BaseNews::Checked(Box::new(report(vec![command(CheckOutcome::Flaky, Some(1))]))));
        gate.note_base_moved(BaseMover::Landing(TaskId(1)));
        assert!(gate.may_start() && gate.wants_check(Timestamp(0)));
        let mut red = after(&BaseNews::Checked(Box::new(report(vec![command(CheckOutcome::Fail, Some(1))]))));
        red.note_base_moved(BaseMover::Landing(TaskId(1)));
        assert_eq!(red, BaseGate::Unknown);
    }

    #[test]
    fn a_check_that_does_not_pass_is_named_with_its_last_line() {
        let of = |outcome, exit| explain_base_failure(&report(vec![command(outcome, exit)]));
        assert_eq!(
            of(CheckOutcome::Fail, Some(1)).as_deref(),
            Some("the check `tests` fails (exit 1) on the base: assertion failed")
        );
        assert!(of(CheckOutcome::Broken, Some(127)).is_some_and(|text| text.contains("was not found")));
        assert!(of(CheckOutcome::Timeout, Some(143)).is_some_and(|text| text.contains("within 60 s")));
        assert_eq!(of(CheckOutcome::Flaky, Some(1)), None);
        let optional = CommandResult { required: false, ..command(CheckOutcome::Fail, Some(1)) };
        assert_eq!(explain_base_failure(&report(vec![command(CheckOutcome::Pass, Some(0)), optional])), None);
        assert!(explain_base_failure(&report(Vec::new())).is_some_and(|text| text.contains("no check")));
        let not_required = GateReport { required: false, ..report(Vec::new()) };
        assert_eq!(explain_base_failure(&not_required), None);
    }

    #[test]
    fn a_denial_of_the_sandbox_is_named_with_the_setting() {
        let denial = SandboxDenial {
            access: DeniedAccess::Write,
            path: "~/.tool".to_owned(),
            allow: "~/.tool".to_owned(),
        };
        let denied = CommandResult { denied: vec![denial], ..command(CheckOutcome::Broken, Some(1)) };
        let text = explain_base_failure(&report(vec![denied])).expect("it does not pass");
        assert_eq!(
            text,
            "the check `tests` tried to write `~/.tool`, which the sandbox denies; \
             allow it with `sandbox_write = [\"~/.tool\"]` under [run]"
        );
    }

    #[test]
    fn a_project_without_tests_may_get_its_first_ones() {
        for exit in [0, 5] {
            let empty = CommandResult { tests: Some(0), ..command(CheckOutcome::Broken, Some(exit)) };
            assert_eq!(explain_base_failure(&report(vec![empty])), None, "{exit}");
        }
        let broken = CommandResult { tests: Some(0), ..command(CheckOutcome::Broken, Some(2)) };
        assert!(explain_base_failure(&report(vec![broken])).is_some());
    }

    #[test]
    fn a_base_that_no_fact_names_is_checked_once_and_an_old_result_does_not_count() {
        let [old, new] = ["a", "b"].map(|digit| Commit::new(&digit.repeat(40)));
        let result =
            BaseCheckResult { known: Some(old.clone()), found: Some(new.clone()), news: BaseNews::Exempt };
        assert!(result.is_about(Some(&old)), "the engine ended before it wrote where the base is");
        assert!(result.is_about(Some(&new)), "the fact came meanwhile");
        let stale = BaseCheckResult { found: Some(old.clone()), ..result.clone() };
        assert!(!stale.is_about(Some(&new)));
        assert!(BaseCheckResult { found: None, ..result }.is_about(Some(&old)));
    }

    #[test]
    fn a_machine_that_cannot_run_the_checks_is_tried_again_a_few_times() {
        let mut gate = BaseGate::default();
        for tries in 1..=TRIES_MAX {
            gate.hear(Timestamp(0), &BaseNews::Failed("the disk is full".to_owned()));
            let due = gate.retry_at().expect("it is tried again");
            assert!(!gate.wants_check(Timestamp(0)) && gate.wants_check(due));
            assert_eq!(gate.opens_by_itself(false), tries < TRIES_MAX);
            assert!(!gate.opens_by_itself(true), "a person has to look at the base first");
        }
        assert!(after(&BaseNews::Exempt).may_start());
    }
}
