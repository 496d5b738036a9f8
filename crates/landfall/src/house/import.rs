//! Tasks from a list of another tool: read, held against what is there, and added all at once.

use landfall_api::import::{self, Format, ImportError, Imported, Settled};
use landfall_api::taskfile::Source;
use landfall_api::{Added, Ask as _, NewTasks, Problem, ProblemCode};

use super::backlog;
use super::desk::Desk;
use super::place::Place;

/// What to import, and how.
pub struct ImportAsked<'a> {
    /// The file.
    pub file: Source<'a>,
    /// How it is written.
    pub format: Format,
    /// The list that is meant, of a file with several.
    pub list: Option<&'a str>,
    /// Whether what was imported before is added once more.
    pub again: bool,
    /// Whether only to look.
    pub dry_run: bool,
}

pub(super) fn import(place: Place, asked: &ImportAsked<'_>) -> Result<Imported, Problem> {
    let list = import::read(&asked.file, asked.format, asked.list).map_err(|error| bad(&error))?;
    let known = backlog::by_source(&place)?;
    let Settled { tasks, there, left_out } =
        import::settle(list, &known, asked.again).map_err(|error| bad(&error))?;
    let added = match asked.dry_run || tasks.is_empty() {
        true => Vec::new(),
        false => {
            let Added { tasks } = Desk::door(place).add(NewTasks { tasks: tasks.clone() })?;
            tasks
        }
    };
    Ok(Imported { format: asked.format, dry_run: asked.dry_run, tasks, added, there, left_out })
}

/// A file that cannot be imported, as a problem.
pub(super) fn bad(error: &ImportError) -> Problem {
    let problem = Problem::new(ProblemCode::BadInput, error.to_string());
    match &error.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem.hint("mend the file; nothing was added"),
    }
}
