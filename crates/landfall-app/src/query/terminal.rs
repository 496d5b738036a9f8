//! The terminal of a running agent, if it has one.

use landfall_agents::tmux::{AttachTarget, TERMINAL};
use landfall_api::{Problem, ProblemCode};
use landfall_engine::model::{AttemptPhase, TaskId, TaskState};

use crate::project::place::ProjectLocation;
use crate::project::problems;

/// Where to attach to the agent of this task.
pub(crate) fn find_attach_target(place: &ProjectLocation, id: TaskId) -> Result<AttachTarget, Problem> {
    let not_now = |message: String| Problem::new(ProblemCode::NotNow, message);
    let Some(reader) = place.open_reader()? else { return Err(problems::unknown_task(id)) };
    let task = reader.task(id).map_err(|error| problems::from_store_error(&error))?;
    let task = task.ok_or_else(|| problems::unknown_task(id))?;
    let TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } = task.state else {
        return Err(not_now(format!("no agent runs for {id} now"))
            .with_hint(format!("`landfall why {id}` says where it stands")));
    };
    let file = place.folder.iteration_path(task.id, task.attempt, iteration).join(TERMINAL);
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_now(format!("the agent of {id} does not run in a terminal")).with_hint(format!(
                "`landfall log {id} --follow` shows what happens; a profile of kind `tmux` has a terminal"
            )));
        }
        Err(error) => return Err(problems::from_io_error("read", &file, &error)),
    };
    let terminal = AttachTarget::read(&text)
        .map_err(|error| Problem::new(ProblemCode::Corrupt, format!("read {}: {error}", file.display())))?;
    if !terminal.folder.join(&terminal.socket).exists() {
        return Err(not_now(format!("the terminal of {id} is not up")).with_hint("try again in a moment"));
    }
    Ok(terminal)
}
