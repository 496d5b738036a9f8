//! Checkpoints for people: where the base was, and what going back there takes away.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::host::git::{BranchName, CommitLogEntry, Git, GitError, LogRange, Repo, Signature};
use landfall_engine::model::TaskId;
use landfall_engine::model::checkpoint::{Checkpoint, Checkpoints, Retention};
use landfall_engine::store::StoreReader;
use landfall_engine::{AskError, EngineReply, EngineRequest};

use crate::project::command_handler::{CommandHandler, unexpected_reply};
use crate::project::query_context::Query;
use crate::project::reader_pool::PooledReader;
use crate::project::{clock, conversions, problems};

fn load_checkpoints(look: &Query<'_>) -> Result<(Checkpoints, Option<PooledReader>), Problem> {
    let Some(reader) = look.place.open_reader()? else { return Ok((Checkpoints::default(), None)) };
    let checkpoints = reader.checkpoints().map_err(|error| problems::from_store_error(&error))?;
    Ok((checkpoints, Some(reader)))
}

fn to_checkpoint_line(all: &Checkpoints, it: &Checkpoint) -> api::CheckpointLine {
    api::CheckpointLine {
        name: it.name.clone(),
        at_ms: it.at.0,
        commit: it.commit.as_str().to_owned(),
        why: it.why.word().to_owned(),
        landed_since: all.landed_after(it).len() as u64,
    }
}

/// Those there are, newest first.
pub(crate) fn list_checkpoints(look: &Query<'_>) -> Result<api::CheckpointList, Problem> {
    let (all, _) = load_checkpoints(look)?;
    Ok(api::CheckpointList {
        checkpoints: all.kept_checkpoints().iter().rev().map(|it| to_checkpoint_line(&all, it)).collect(),
    })
}

/// One, and what going back to it takes away.
pub(crate) fn checkpoint_detail(look: &Query<'_>, name: &str) -> Result<api::CheckpointDetail, Problem> {
    let (all, reader) = load_checkpoints(look)?;
    let Some(checkpoint) = all.get(name) else { return Err(unknown_checkpoint_problem(&all, name)) };
    let mut lost = Vec::new();
    for id in all.landed_after(checkpoint) {
        lost.push(to_lost_task(reader.as_deref(), *id)?);
    }
    let commits = list_lost_commits(look, checkpoint)?;
    Ok(api::CheckpointDetail { checkpoint: to_checkpoint_line(&all, checkpoint), lost, commits })
}

/// What people have committed to their branch since, oldest first.
fn list_lost_commits(look: &Query<'_>, checkpoint: &Checkpoint) -> Result<Vec<api::LostCommit>, Problem> {
    const MAX: u32 = 10_000; // a person who reads more than that does not
    let failed = |error: GitError| problems::from_git_error(&error);
    let git = Git::find_installed().map_err(failed)?;
    let repo = Repo::discover(&git, &look.place.root).map_err(problems::from_repo_problem)?;
    let (Ok(branch), Ok(from)) =
        (BranchName::new(&look.place.base_branch_or_empty()), checkpoint.commit.as_str().parse())
    else {
        return Ok(Vec::new()); // there is no branch to lose anything from
    };
    let Some(to) = repo.branch_tip(&branch).map_err(failed)? else { return Ok(Vec::new()) };
    let store = look.open_store()?;
    if !store.contains(&to).map_err(failed)? {
        store.import_branch(&repo, &branch).map_err(failed)?; // as the engine will, before it goes back
    }
    let range = LogRange { to, from: Some(from), first_parent: true };
    let mut log = store.read_log(&range, MAX).map_err(failed)?;
    let ours = Signature::for_engine(0);
    log.retain(|entry| entry.author.email != ours.email);
    let commit = |entry: CommitLogEntry| api::LostCommit {
        commit: entry.oid.as_str().to_owned(),
        title: entry.subject,
        author: entry.author.name,
    };
    Ok(log.into_iter().rev().map(commit).collect())
}

fn to_lost_task(reader: Option<&StoreReader>, id: TaskId) -> Result<api::LostTask, Problem> {
    let row = match reader {
        Some(reader) => reader.row(id).map_err(|error| problems::from_store_error(&error))?,
        None => None,
    };
    let (title, commit) = row.map(|row| (row.title, row.landed)).unwrap_or_default();
    let commit = commit.map(|commit| commit.as_str().to_owned());
    Ok(api::LostTask { task: conversions::task_id(id), title, commit })
}

fn unknown_checkpoint_problem(all: &Checkpoints, name: &str) -> Problem {
    let known = all.kept_checkpoints().iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    problems::from_ask_error(&AskError::UnknownCheckpoint { name: name.to_owned(), known })
}

impl CommandHandler<'_> {
    pub fn create_checkpoint(&self, name: Option<String>) -> Result<api::CheckpointLine, Problem> {
        if let Some(name) = &name
            && load_checkpoints(&self.query())?.0.get(name).is_some()
        {
            return Err(Problem::new(
                ProblemCode::BadInput,
                format!("there is a checkpoint `{name}` already"),
            )
            .with_hint("take another name; `landfall checkpoint list` shows those there are"));
        }
        let name = match (self.ask)(EngineRequest::Checkpoint { name })? {
            EngineReply::Checkpoint { name } => name,
            other => return Err(unexpected_reply("a checkpoint", &other)),
        };
        Ok(checkpoint_detail(&self.query(), &name)?.checkpoint)
    }

    pub fn restore_checkpoint(&self, name: &str) -> Result<api::Restored, Problem> {
        let api::CheckpointDetail { lost, commits, .. } = checkpoint_detail(&self.query(), name)?;
        if lost.is_empty() && commits.is_empty() {
            return Err(Problem::new(ProblemCode::NotNow, format!("nothing has landed since `{name}`"))
                .with_hint("`landfall checkpoint list` shows how much landed after each"));
        }
        let made = self.request_tasks(EngineRequest::Restore { name: name.to_owned() })?;
        let Some(task) = made.first() else {
            return Err(Problem::new(
                ProblemCode::Internal,
                "a checkpoint is restored, and no task was made for it",
            ));
        };
        let when = if self.engine.is_alive() { "now" } else { "by the next `landfall run`" };
        let text = format!(
            "{} brings the base back to `{name}`; it is verified and landed like any other change, {when}. \
             What landed stays in the history.",
            task.id
        );
        Ok(api::Restored { name: name.to_owned(), task: conversions::task_id(task.id), lost, text })
    }

    pub fn drop_checkpoints(&self, asked: &api::CheckpointDrop) -> Result<api::CheckpointsDropped, Problem> {
        let (all_now, _) = load_checkpoints(&self.query())?;
        let mut names = asked.names.clone();
        if let Some(name) = names.iter().find(|name| all_now.get(name).is_none()) {
            return Err(unknown_checkpoint_problem(&all_now, name));
        }
        if asked.older_than_ms.is_some() || asked.keep.is_some() {
            let retention = Retention {
                count: asked.keep.map_or(usize::MAX, |keep| usize::try_from(keep).unwrap_or(usize::MAX)),
                age_ms: asked.older_than_ms.unwrap_or(u64::MAX),
            };
            let now = landfall_engine::model::Timestamp(clock::now_ms());
            names.extend(all_now.find_outdated(now, retention));
        }
        names.sort();
        names.dedup();
        if !names.is_empty() {
            self.request_done(EngineRequest::DropCheckpoints { names: names.clone() })?;
        }
        let left = (all_now.kept_checkpoints().len() - names.len()) as u64;
        Ok(api::CheckpointsDropped { names, left })
    }
}
