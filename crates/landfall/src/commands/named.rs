//! Tasks by the names people give them: `T7` or `7`, and `#12` or `issue:12` for the task that follows an issue. Every argument
//! that is a task is read here, so every command takes them all.

use std::any::TypeId;
use std::ffi::OsString;
use std::sync::OnceLock;

use clap_complete::engine::ArgValueCandidates;
use landfall_api::{Problem, TaskId};

use crate::exit::Failure;
use crate::say::talk;

/// Where names are looked up, and whether a person reads what is said about them.
struct Looking {
    at: landfall_app::At,
    json: bool,
}

/// Known before the words are read: names are looked up while they are.
static LOOKING: OnceLock<Looking> = OnceLock::new();

/// What was not found while the words were read. To the reader of words it is a wrong word, to people it is not.
static MISSED: OnceLock<Problem> = OnceLock::new();

/// The failure that is behind a word that could not be read, if something was not found.
pub fn missed() -> Option<Failure> {
    MISSED.get().cloned().map(Failure::from)
}

/// Every argument of a command that is a task takes all its names.
pub fn everywhere(command: clap::Command) -> clap::Command {
    let named = |arg: clap::Arg| match arg.get_value_parser().type_id() == TypeId::of::<TaskId>() {
        true => arg.value_parser(task).add(ArgValueCandidates::new(super::completions::task_candidates)),
        false => arg,
    };
    command.mut_args(named).mut_subcommands(everywhere)
}

/// Says where names are looked up: in the folder that `-C` names, or here, and among the tasks of `--base`.
pub fn look_from(args: &[OsString], json: bool) {
    let mut words = args.iter().skip(1).take_while(|word| *word != "--");
    let (mut dir, mut base) = (None, None);
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        let mut value = |rest: &str| match rest.strip_prefix('=').unwrap_or(rest) {
            "" => words.next().cloned(),
            named => Some(named.into()),
        };
        if let Some(rest) = word.strip_prefix("-C") {
            dir = value(rest);
        } else if let Some(rest) =
            word.strip_prefix("--base").filter(|it| it.is_empty() || it.starts_with('='))
        {
            base = value(rest);
        }
    }
    let dir = std::env::current_dir().unwrap_or_default().join(dir.unwrap_or_default());
    let base = base.map(|base| base.to_string_lossy().into_owned());
    let _ = LOOKING.set(Looking { at: landfall_app::At { dir, base }, json }); // the words are read once
}

/// Where names are looked up, once that is known.
pub fn looked_from() -> Option<landfall_app::At> {
    LOOKING.get().map(|looking| looking.at.clone())
}

/// The task that a word means.
pub fn task(text: &str) -> Result<TaskId, String> {
    let rest = text.strip_prefix("issue:").map(|rest| rest.strip_prefix('#').unwrap_or(rest));
    let Some(digits) = rest.or_else(|| text.strip_prefix('#')) else {
        let id = text.parse::<TaskId>().map_err(|error| error.to_string())?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            tell_other(id);
        }
        return Ok(id);
    };
    let number = super::issue::number(digits)?;
    let Some(looking) = LOOKING.get() else { return Err("issues are not looked up here".to_owned()) };
    match landfall_app::task_of_issue(&looking.at, number) {
        Ok(Some(id)) => Ok(id),
        Ok(None) => {
            let problem = landfall_app::unfollowed_issue(&looking.at, number);
            let message = problem.message.clone();
            let _ = MISSED.set(problem); // the first one is told
            Err(message)
        }
        Err(problem) => Err(problem.message),
    }
}

/// A bare number is a task. Where an issue of that number has another one, that is said.
fn tell_other(id: TaskId) {
    let Some(looking) = LOOKING.get().filter(|looking| !looking.json) else { return };
    if let Some(other) =
        landfall_app::likely_task_of_issue(&looking.at, id.0.into()).filter(|other| *other != id)
    {
        talk(&format!("{} is the task {id}; issue #{0} is followed by {other}: write '#{0}' for it", id.0));
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::TaskId;

    use super::task;

    #[test]
    fn a_task_has_its_own_name_and_that_of_its_issue() {
        assert_eq!((task("T7"), task("t7"), task("7")), (Ok(TaskId(7)), Ok(TaskId(7)), Ok(TaskId(7))));
        for wrong in ["#0", "#", "#x", "issue:", "issue:T7", "#-1", "##7", "x"] {
            assert!(task(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_task_on_the_command_line_is_read_here() {
        let mut cli = super::everywhere(super::super::cli());
        cli.build();
        for words in [["landfall", "why", "#x"], ["landfall", "show", "issue:x"], ["landfall", "retry", "#x"]]
        {
            let read = cli.try_get_matches_from_mut(words).expect_err("no number");
            assert!(read.to_string().contains("the number of an issue"), "{read}");
        }
    }
}
