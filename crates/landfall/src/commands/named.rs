//! Tasks by the names people give them: `T7` or `7`, `#12` or `issue:12` for the task that follows an issue, and `AiTasks/auth` for
//! that of a module. Every argument that is a task is read here, so every command takes them all.

use std::any::TypeId;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use clap_complete::engine::ArgValueCandidates;
use landfall_api::{Problem, ProblemCode, ReportOf, WireTaskId};

use super::{report, review};
use crate::exit::CommandFailure;
use crate::say::print_message;

/// Where names are looked up while the words of the command line are read.
#[derive(Default)]
pub struct NameLookup {
    /// None: there is no project to look in.
    at: Option<landfall_app::ProjectLocator>,
    /// Whether a program reads the answer.
    json: bool,
    /// What was not found. To the reader of words it is a wrong word, to people it is not.
    missed: OnceLock<Problem>,
}

impl NameLookup {
    /// In the folder that `-C` names, or here, and among the tasks of `--base`.
    pub fn from_words(args: &[OsString], json: bool) -> Self {
        Self { at: Some(place_of(args)), json, missed: OnceLock::new() }
    }

    /// The failure that is behind a word that could not be read, if something was not found.
    pub fn failure(&self) -> Option<CommandFailure> {
        self.missed.get().cloned().map(CommandFailure::from)
    }
}

/// Every argument of a command that is a task takes all its names.
pub fn parse_task_names(command: clap::Command, lookup: &Arc<NameLookup>) -> clap::Command {
    let named = |arg: clap::Arg| {
        let (of, lookup) = (arg.get_value_parser().type_id(), Arc::clone(lookup));
        if of == TypeId::of::<WireTaskId>() {
            let candidates = Arc::clone(&lookup);
            let find =
                move || candidates.at.as_ref().map(super::completions::task_candidates).unwrap_or_default();
            arg.value_parser(move |text: &str| parse_task(text, &lookup)).add(ArgValueCandidates::new(find))
        } else if of == TypeId::of::<ReportOf>() {
            arg.value_parser(move |text: &str| report::of(text, &lookup))
        } else if of == TypeId::of::<review::TaskSelection>() {
            arg.value_parser(move |text: &str| review::tasks(text, &lookup))
        } else {
            arg
        }
    };
    command.mut_args(named).mut_subcommands(|below| parse_task_names(below, lookup))
}

/// Whether the words ask for JSON. It is asked before they are understood, so that a program gets JSON for a bad option too.
pub fn wants_json(args: &[OsString]) -> bool {
    args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// The base that the command line of this process names, if it is not the project's own and a person reads the answer.
pub fn side_base() -> Option<String> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let at = place_of(&args);
    at.base.as_ref().filter(|_| !wants_json(&args)).and_then(|_| landfall_app::list_other_bases(&at).0)
}

/// The place that `-C` and `--base` name.
fn place_of(args: &[OsString]) -> landfall_app::ProjectLocator {
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
    landfall_app::ProjectLocator { dir, base }
}

/// The task that a word means.
pub fn parse_task(text: &str, lookup: &NameLookup) -> Result<WireTaskId, String> {
    if text.contains('/') && !text.starts_with("issue:") {
        return task_of_module(text, lookup);
    }
    let rest = text.strip_prefix("issue:").map(|rest| rest.strip_prefix('#').unwrap_or(rest));
    let Some(digits) = rest.or_else(|| text.strip_prefix('#')) else {
        let id = text.parse::<WireTaskId>().map_err(|error| error.to_string())?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            note_ambiguous_number(id, lookup);
        }
        return Ok(id);
    };
    let number = super::issue::number(digits)?;
    let Some(at) = &lookup.at else { return Err("issues are not looked up here".to_owned()) };
    match landfall_app::find_issue_task(at, number) {
        Ok(Some(id)) => Ok(id),
        Ok(None) => {
            let problem = landfall_app::unfollowed_issue_problem(at, number);
            let message = problem.message.clone();
            let _ = lookup.missed.set(problem); // the first one is told
            Err(message)
        }
        Err(problem) => Err(problem.message),
    }
}

/// The task of the module in a folder.
fn task_of_module(path: &str, lookup: &NameLookup) -> Result<WireTaskId, String> {
    let Some(at) = &lookup.at else { return Err("modules are not looked up here".to_owned()) };
    let dir = at.dir.join(path);
    match landfall_app::task_of_module(at, &dir.to_string_lossy()) {
        Ok(Some(id)) => Ok(id),
        Ok(None) => {
            let message = format!("no task was made of the module `{path}`");
            let hint = format!("`landfall import {path}` makes one, `landfall auto {path}` starts it");
            let _ = lookup.missed.set(Problem::new(ProblemCode::NotFound, message.clone()).with_hint(hint)); // as above
            Err(message)
        }
        Err(problem) => {
            Err(format!("neither a task, such as T7, nor the folder of a module: {}", problem.message))
        }
    }
}

/// A bare number is a task. Where an issue of that number has another one, that is said.
fn note_ambiguous_number(id: WireTaskId, lookup: &NameLookup) {
    let Some(at) = lookup.at.as_ref().filter(|_| !lookup.json) else { return };
    if let Some(other) = landfall_app::find_issue_task_quickly(at, id.0.into()).filter(|other| *other != id) {
        print_message(&format!(
            "{} is the task {id}; issue #{0} is followed by {other}: write '#{0}' for it",
            id.0
        ));
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::WireTaskId;

    use super::{NameLookup, parse_task};

    #[test]
    fn a_task_has_its_own_name_and_that_of_its_issue() {
        let lookup = NameLookup::default();
        let read = |text: &str| parse_task(text, &lookup);
        assert_eq!(
            (read("T7"), read("t7"), read("7")),
            (Ok(WireTaskId(7)), Ok(WireTaskId(7)), Ok(WireTaskId(7)))
        );
        for wrong in ["#0", "#", "#x", "issue:", "issue:T7", "#-1", "##7", "x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_task_on_the_command_line_is_read_here() {
        let mut cli = super::parse_task_names(super::super::build_cli(), &std::sync::Arc::default());
        cli.build();
        for words in [["landfall", "why", "#x"], ["landfall", "show", "issue:x"], ["landfall", "retry", "#x"]]
        {
            let read = cli.try_get_matches_from_mut(words).expect_err("no number");
            assert!(read.to_string().contains("the number of an issue"), "{read}");
        }
    }
}
