//! Tasks from a list of another tool: read, held against what is there, and added all at once.

use landfall_api::import::{self, Format, ImportError, ImportPlan, ImportText, Imported};
use landfall_api::taskfile::TaskFileSource;
use landfall_api::{Added, NewTasks, Problem, ProblemCode};

use crate::command::modules;
use crate::project::place::ProjectLocation;
use crate::query::backlog;

/// Adds what is new in a list.
pub(crate) fn import_tasks(
    place: &ProjectLocation,
    asked: &ImportText,
    add: &dyn Fn(NewTasks) -> Result<Added, Problem>,
) -> Result<Imported, Problem> {
    let file = TaskFileSource {
        name: if asked.name.is_empty() { "the list" } else { &asked.name },
        text: &asked.text,
    };
    let format = match asked.format {
        Some(format) => format,
        None => import::guess_format(&file).map_err(|error| import_problem(&error))?,
    };
    let list = match format {
        Format::Modules if asked.text.is_empty() => modules::list_importable_modules(place, &asked.name)?,
        Format::Modules | Format::Markdown | Format::Beads | Format::Taskmaster | Format::Prd => {
            import::read(&file, format, asked.list.as_deref()).map_err(|error| import_problem(&error))?
        }
    };
    let known = backlog::tasks_by_source(place)?;
    let ImportPlan { tasks, there, left_out } =
        import::resolve_import(list, &known, asked.again).map_err(|error| import_problem(&error))?;
    let added = match asked.dry_run || tasks.is_empty() {
        true => Vec::new(),
        false => add(NewTasks { tasks: tasks.clone() })?.tasks,
    };
    Ok(Imported { format, dry_run: asked.dry_run, tasks, added, there, left_out })
}

/// A file that cannot be imported, as a problem.
pub(crate) fn import_problem(error: &ImportError) -> Problem {
    let problem = Problem::new(ProblemCode::BadInput, error.to_string());
    match &error.hint {
        Some(hint) => problem.with_hint(hint.clone()),
        None => problem.with_hint("mend the file; nothing was added"),
    }
}
