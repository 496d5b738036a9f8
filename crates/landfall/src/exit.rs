//! How the program ends: exit codes for programs, an error and a hint for people.

use std::process::ExitCode;

use landfall_api::{Problem, ProblemCode};

/// What the exit code says. `docs/reference/exit-codes.md` is made from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliExit {
    /// It is done.
    Ok,
    /// A fault of Landfall or of git.
    Internal,
    /// The words cannot be used.
    Usage,
    /// There is no project here.
    NotAProject,
    /// The settings or a flow are broken.
    Settings,
    /// No such task, flow, run, sprint, checkpoint or issue.
    UnknownThing,
    /// Not possible in the status the task is in.
    NotNow,
    /// Another engine holds the project.
    Busy,
    /// The run ended, and some tasks did not land.
    SomeDidNotLand,
    /// The run ended, and something waits for a person.
    NeedsYou,
    /// The disk or the state folder.
    Machine,
    /// Nobody was there, and too many tasks were put aside for a person.
    TooManyDeferred,
    /// A person interrupted it.
    Interrupted,
}

impl CliExit {
    /// Every one there is.
    #[cfg(test)]
    const ALL: [Self; 13] = [
        Self::Ok,
        Self::Internal,
        Self::Usage,
        Self::NotAProject,
        Self::Settings,
        Self::UnknownThing,
        Self::NotNow,
        Self::Busy,
        Self::SomeDidNotLand,
        Self::NeedsYou,
        Self::Machine,
        Self::TooManyDeferred,
        Self::Interrupted,
    ];

    /// The number that a shell sees.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::NotAProject => 3,
            Self::Settings => 4,
            Self::UnknownThing => 5,
            Self::NotNow => 6,
            Self::Busy => 7,
            Self::SomeDidNotLand => 8,
            Self::NeedsYou => 9,
            Self::Machine => 10,
            Self::TooManyDeferred => 11,
            Self::Interrupted => 130,
        }
    }

    /// The word that programs see with `--json`.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::NotAProject => "not-a-project",
            Self::Settings => "settings",
            Self::UnknownThing => "unknown-thing",
            Self::NotNow => "not-now",
            Self::Busy => "busy",
            Self::SomeDidNotLand => "some-did-not-land",
            Self::NeedsYou => "needs-you",
            Self::Machine => "machine",
            Self::TooManyDeferred => "too-many-deferred",
            Self::Interrupted => "interrupted",
        }
    }

    #[cfg(test)]
    fn meaning_text(self) -> &'static str {
        match self {
            Self::Ok => "Done. For `run`: everything that was to land has landed.",
            Self::Internal => {
                "A fault of Landfall, or git refused something it should not. For `issue reconcile --strict`: it does not match."
            }
            Self::Usage => {
                "The words of the command cannot be used: an unknown option, a bad value, a circle of needs."
            }
            Self::NotAProject => {
                "Not a git repository, a bare one, one without commits, or HEAD is on no branch."
            }
            Self::Settings => "`landfall.toml` or a flow is broken, or an agent it names is not there.",
            Self::UnknownThing => "There is no such task, flow, run, sprint, checkpoint or issue.",
            Self::NotNow => "The task is in a status in which this is not possible.",
            Self::Busy => "Another engine holds the project; the message names it.",
            Self::SomeDidNotLand => {
                "The run ended, and tasks failed, ran out of time or are blocked. For `issue verify`: a criterion does not hold. For `certificate --verify`: the certificate does not agree with the repository. For `check` and `doctor`: a required check does not pass."
            }
            Self::NeedsYou => {
                "The run ended, and something waits for a person: a question, a review, a check that is broken or does not pass on the base, a checkout that landed \
                 work cannot come into. Or settings need your trust (`landfall trust`), or an agent that was asked had no answer."
            }
            Self::Machine => {
                "The disk is full, the state folder cannot be written, or it holds something that cannot be right."
            }
            Self::TooManyDeferred => {
                "Nobody was there, and more than ten tasks were put aside for a person: the run failed as a whole."
            }
            Self::Interrupted => {
                "Ctrl-C, or a signal, ended it. Nothing is lost: the next run goes on from there."
            }
        }
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(exit.exit_code())
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct CommandFailure {
    /// For programs.
    pub code: CliExit,
    /// The finer code, if the engine gave one.
    pub problem: Option<ProblemCode>,
    /// What was wrong, as a lowercase fragment.
    pub message: String,
    /// What to do about it. Agents read this too: it never names a command that destroys anything.
    pub hint: Option<String>,
}

impl CommandFailure {
    /// A failure of this kind.
    pub fn new(code: CliExit, message: impl Into<String>) -> Self {
        Self { code, problem: None, message: message.into(), hint: None }
    }

    /// The words of the command cannot be used.
    pub fn usage_error(message: impl Into<String>) -> Self {
        Self::new(CliExit::Usage, message)
    }

    /// The same with what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whoever read our output has seen enough. That is no failure, and there is nobody to tell.
    pub fn output_closed() -> Self {
        Self::new(CliExit::Ok, "")
    }
}

impl From<Problem> for CommandFailure {
    fn from(problem: Problem) -> Self {
        let code = exit_for_problem(problem.code);
        Self { code, problem: Some(problem.code), message: problem.message, hint: problem.hint }
    }
}

fn exit_for_problem(code: ProblemCode) -> CliExit {
    match code {
        ProblemCode::NotARepository
        | ProblemCode::BareRepository
        | ProblemCode::NoCommits
        | ProblemCode::DetachedHead => CliExit::NotAProject,
        ProblemCode::SettingsBroken | ProblemCode::FlowBroken | ProblemCode::AgentMissing => {
            CliExit::Settings
        }
        ProblemCode::UnknownFlow
        | ProblemCode::UnknownTask
        | ProblemCode::UnknownRun
        | ProblemCode::UnknownSprint
        | ProblemCode::UnknownCheckpoint
        | ProblemCode::NothingMatches
        | ProblemCode::NotFound => CliExit::UnknownThing,
        ProblemCode::Cycle
        | ProblemCode::BadInput
        | ProblemCode::MethodNotAllowed
        | ProblemCode::TooLarge
        | ProblemCode::UnsupportedMediaType
        | ProblemCode::Misdirected
        | ProblemCode::KeyReused => CliExit::Usage,
        ProblemCode::NotNow | ProblemCode::Unauthorized | ProblemCode::Forbidden => CliExit::NotNow,
        ProblemCode::AgentFailed | ProblemCode::NotTrusted => CliExit::NeedsYou,
        ProblemCode::EngineBusy | ProblemCode::TooMany => CliExit::Busy,
        ProblemCode::DiskFull | ProblemCode::ReadOnly | ProblemCode::Corrupt => CliExit::Machine,
        ProblemCode::GitFailed | ProblemCode::Internal => CliExit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use landfall_api::ProblemCode;

    use super::{CliExit, exit_for_problem};

    #[test]
    fn every_code_has_its_own_number_and_word() {
        let numbers: BTreeSet<u8> = CliExit::ALL.iter().map(|exit| exit.exit_code()).collect();
        let words: BTreeSet<&str> = CliExit::ALL.iter().map(|exit| exit.wire_name()).collect();
        assert_eq!((numbers.len(), words.len()), (CliExit::ALL.len(), CliExit::ALL.len()));
    }

    #[test]
    fn no_problem_ends_well() {
        for code in ProblemCode::ALL {
            assert_ne!(exit_for_problem(code), CliExit::Ok, "{code:?}");
        }
    }

    /// `LANDFALL_BLESS=1` writes the page again.
    #[test]
    fn the_page_about_exit_codes_says_what_the_program_does() {
        let mut page = String::from(
            "# Exit codes\n\n<!-- Made from `crates/landfall/src/exit.rs`; `LANDFALL_BLESS=1 cargo test -p landfall` writes it again. -->\n\n\
             Every command ends with one of these. With `--json`, an error on stderr carries the word.\n\n\
             | code | word | meaning |\n|---|---|---|\n",
        );
        for exit in CliExit::ALL {
            page += &format!("| {} | `{}` | {} |\n", exit.exit_code(), exit.wire_name(), exit.meaning_text());
        }
        page += "\nThe problems that the engine names, and the code each ends with:\n\n| problem | code |\n|---|---|\n";
        for code in ProblemCode::ALL {
            let word = serde_json::to_string(&code).expect("a word");
            page += &format!("| `{}` | {} |\n", word.trim_matches('"'), exit_for_problem(code).exit_code());
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/exit-codes.md");
        if std::env::var_os("LANDFALL_BLESS").is_some() {
            std::fs::write(&path, &page).expect("write the page");
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap_or_default(),
            page,
            "LANDFALL_BLESS=1 writes it again"
        );
    }
}
