//! What a person looks at: work that waits for it before it lands, and landed work that is owed a look.

use std::collections::BTreeSet;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::EngineRequest;
use landfall_engine::host::git::RefName;
use landfall_engine::model::review::{self, QUICK_ISSUES, RedoChoice};
use landfall_engine::model::{ReviewInput, SignOff, Tag, Task, TaskId, TaskStatus};
use landfall_engine::store::{StoreReader, TaskFilter};

use crate::project::command_handler::CommandHandler;
use crate::project::query_context::Query;
use crate::project::{conversions, problems, trust};

const LIST_MAX: u32 = 1_000; // more than a person looks at in a day

/// All of it.
pub(crate) fn list_reviews(look: &Query<'_>) -> Result<api::ReviewList, Problem> {
    let issues = QUICK_ISSUES
        .iter()
        .map(|(name, text)| api::QuickIssue { name: (*name).to_owned(), text: (*text).to_owned() })
        .collect();
    let mut found = api::ReviewList { before: Vec::new(), after: Vec::new(), issues };
    let Some(reader) = look.place.open_reader()? else { return Ok(found) };
    let of = |error| problems::from_store_error(&error);
    let waiting = TaskFilter { status: Some(TaskStatus::Review), ..TaskFilter::default() };
    let mut kept = None;
    for row in reader.tasks(&waiting, None, LIST_MAX).map_err(of)? {
        let Some(task) = reader.task(row.id).map_err(of)? else { continue };
        if kept.is_none() {
            kept = Some(look.open_store()?);
        }
        let attempts = kept.as_ref().map(|store| list_kept_attempts(store, task.id)).transpose()?;
        found
            .before
            .push(api::ReviewLine { attempts: attempts.unwrap_or_default(), ..to_review_line(&task) });
    }
    for id in tasks_owing_review(&reader)? {
        found.after.extend(reader.task(id).map_err(of)?.map(|task| to_review_line(&task)));
    }
    Ok(found)
}

/// The landed tasks that somebody is still to look at.
pub(crate) fn tasks_owing_review(reader: &StoreReader) -> Result<Vec<TaskId>, Problem> {
    let of = |error| problems::from_store_error(&error);
    if reader.latest(&["review-owed"]).map_err(of)?.is_none() {
        return Ok(Vec::new());
    }
    let all = reader.sign_offs().map_err(of)?;
    Ok(all.into_iter().filter(|(_, it)| is_owed(it)).map(|(task, _)| task).collect())
}

/// What was put off is still owed.
fn is_owed(sign_off: &SignOff) -> bool {
    use landfall_engine::model::sprint::ReviewDecision;
    match sign_off {
        SignOff::Owed | SignOff::Given(ReviewDecision::Deferred, _) => true,
        SignOff::NotOwed | SignOff::Given(..) => false,
    }
}

fn to_review_line(task: &Task) -> api::ReviewLine {
    let mut reasons: Vec<String> = task.concerns.iter().map(ToString::to_string).collect();
    if let SignOff::Given(_, note) = &task.sign_off {
        reasons.push(match note.as_str() {
            "" => "was put off".to_owned(),
            note => format!("was put off: {note}"),
        });
    }
    let findings = review::blocking_findings(&task.findings).map(ToString::to_string).collect();
    api::ReviewLine {
        task: conversions::task_id(task.id),
        title: task.spec.title.clone(),
        since_ms: task.landed.as_ref().map_or(task.changed, |landed| landed.at).0,
        reasons,
        findings,
        reply: task.reply.clone().filter(|reply| !reply.is_empty()),
        commit: task.landed.as_ref().map(|landed| landed.commit.as_str().to_owned()),
        attempts: Vec::new(),
    }
}

/// Where the work of a task is kept, attempt by attempt.
fn kept_work_ref(task: TaskId) -> RefName {
    RefName::new(&format!("refs/landfall/tasks/t{}", task.0)).expect("made of our own words")
}

/// The attempts of a task whose work is kept.
fn list_kept_attempts(store: &landfall_engine::host::git::Store, task: TaskId) -> Result<Vec<u32>, Problem> {
    let refs = store.list_refs(&kept_work_ref(task)).map_err(|error| problems::from_git_error(&error))?;
    let attempt = |name: &RefName| name.as_str().rsplit('/').next()?.strip_prefix('a')?.parse::<u32>().ok();
    let mut attempts: Vec<u32> = refs.iter().filter_map(|(name, _)| attempt(name)).collect();
    attempts.sort_unstable();
    Ok(attempts)
}

impl CommandHandler<'_> {
    pub fn review_tasks(&self, asked: api::ReviewAsked) -> Result<api::Changed, Problem> {
        let mut seen = BTreeSet::new();
        let ids: Vec<TaskId> =
            asked.tasks.into_iter().map(conversions::model_task).filter(|id| seen.insert(*id)).collect();
        let mut hint = None;
        let said = match asked.said {
            api::ReviewSaid::Approve { note } => ReviewInput::Approve { note },
            api::ReviewSaid::Changes { issues, note, redo, hint: when } => {
                if issues.is_empty() && note.trim().is_empty() {
                    return Err(Problem::new(ProblemCode::BadInput, "what is to be changed is not said")
                        .with_hint("say it in a few words, or name it: `--issue tests`"));
                }
                hint = when;
                ReviewInput::Changes { issues, note, redo: self.to_redo_choice(&ids, redo)? }
            }
            api::ReviewSaid::Reject { note } => ReviewInput::Reject { note },
            api::ReviewSaid::Skip => ReviewInput::Skip,
            api::ReviewSaid::Defer => ReviewInput::Defer,
        };
        let changed = self.request_tasks(EngineRequest::Review(ids, Box::new(said.clone())))?;
        if let ReviewInput::Approve { .. } = said {
            // Whoever approves a change of settings has seen it.
            for task in &changed {
                trust::trust_approved_work(&self.query(), task)?;
            }
        }
        if let Some(hint) = hint {
            for task in changed.iter().filter(|task| task.landed.is_none()) {
                self.set_redo_hint(task, hint)?;
            }
        }
        let mut lines = Vec::new();
        for task in changed {
            let what = review_outcome_text(&said, &task);
            lines.extend(self.describe_changes(&[task], &what)?.tasks);
        }
        Ok(api::Changed { tasks: lines })
    }

    fn to_redo_choice(&self, ids: &[TaskId], redo: api::Redo) -> Result<RedoChoice, Problem> {
        let attempt = match redo {
            api::Redo::Keep => return Ok(RedoChoice::Keep),
            api::Redo::Fresh => return Ok(RedoChoice::Fresh),
            api::Redo::From(attempt) => attempt,
        };
        let [id] = ids else {
            return Err(Problem::new(ProblemCode::BadInput, "an attempt to go back to is that of one task")
                .with_hint("name one task with `--from`"));
        };
        let store = self.query().open_store()?;
        let name = RefName::new(&format!("{}/a{attempt}", kept_work_ref(*id).as_str()))
            .expect("made of our own words");
        if let Some(oid) = store.resolve_ref(&name).map_err(|error| problems::from_git_error(&error))? {
            return Ok(RedoChoice::From(landfall_engine::model::Commit::new(oid.as_str())));
        }
        let known: Vec<String> =
            list_kept_attempts(&store, *id)?.iter().map(|attempt| format!("a{attempt}")).collect();
        let hint = match known.is_empty() {
            true => format!("no work of {id} was brought in yet; `--fresh` begins anew"),
            false => format!("kept: {}", known.join(", ")),
        };
        Err(Problem::new(ProblemCode::BadInput, format!("no work of attempt a{attempt} of {id} is kept"))
            .with_hint(hint))
    }

    /// The tag that lets a task go before others, or after them.
    fn set_redo_hint(&self, task: &Task, hint: api::RedoHint) -> Result<(), Problem> {
        let (word, other) = match hint {
            api::RedoHint::Next => ("next", "later"),
            api::RedoHint::Later => ("later", "next"),
        };
        let tag = |word: &str| word.parse::<Tag>().map_err(|error| problems::bad_spec(&error));
        let mut spec = task.spec.clone();
        spec.tags.remove(&tag(other)?);
        spec.tags.insert(tag(word)?);
        self.request_tasks(EngineRequest::Edit(task.id, Box::new(spec))).map(drop)
    }
}

fn review_outcome_text(said: &ReviewInput, task: &Task) -> String {
    let made_now = task.spec.source.starts_with("review:") || task.spec.source.starts_with("rollback:");
    match (said, &task.landed) {
        (ReviewInput::Approve { .. }, None) => "is approved and lands next".to_owned(),
        (ReviewInput::Approve { .. }, Some(_)) => "is approved".to_owned(),
        (ReviewInput::Changes { .. }, None) if made_now && task.counters.runs == 0 => {
            "brings what you want changed".to_owned()
        }
        (ReviewInput::Changes { redo: RedoChoice::Keep, .. }, None) => {
            "goes back to its agent with what you said".to_owned()
        }
        (ReviewInput::Changes { redo: RedoChoice::Fresh, .. }, None) => {
            "begins anew with what you said; its work so far is kept".to_owned()
        }
        (ReviewInput::Changes { redo: RedoChoice::From(commit), .. }, None) => {
            format!("goes on from {} with what you said", commit.short_hash())
        }
        (ReviewInput::Changes { .. }, Some(_)) => "is to be done again, by a task of its own".to_owned(),
        (ReviewInput::Reject { .. }, None) if made_now && task.counters.runs == 0 => {
            "takes it back; it is verified and landed like any other change".to_owned()
        }
        (ReviewInput::Reject { .. }, None) => "is rejected and does not land; its work is kept".to_owned(),
        (ReviewInput::Reject { .. }, Some(_)) => "is rejected and is taken back".to_owned(),
        (ReviewInput::Skip, None) => "lands without a look".to_owned(),
        (ReviewInput::Skip, Some(_)) => "needs no look".to_owned(),
        (ReviewInput::Defer, _) => "is put off; `landfall review` goes on naming it".to_owned(),
    }
}
