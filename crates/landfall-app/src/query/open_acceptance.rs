//! What is left of issues that landed, for a person. Which issues that may be is in the tables; how they stand now is what their tracker
//! shows, as far as it can be asked without making anybody wait for long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use landfall_api::Problem;
use landfall_engine::engine::load_settings;
use landfall_engine::exchange::phase_of;
use landfall_engine::model::issue::{
    IssuePhase, IssueRef, LandedIssue, OpenCheckbox, describe_open_boxes, is_left, is_partial, left_boxes,
};
use landfall_engine::model::{Task, TaskStatus};
use landfall_engine::store::{StoreReader, TaskRow};
use landfall_trackers::tracker::{
    CloseReason, Issue, IssueFilter, IssueNumber, Label, PHASE_FAMILY, Tracker, TrackerError,
    TrackerIssueState, TrackerResult,
};

use crate::project::issue_answers::{ForgeAnswer, IssueAnswer, IssueAnswerMap};
use crate::project::place::ProjectLocation;
use crate::project::{problems, task_cache};
use crate::query::issues;

/// An issue that landed and is not done.
pub(crate) struct OpenAcceptance {
    /// The task that follows it.
    pub row: TaskRow,
    /// The same, with all that is known of it.
    pub task: Arc<Task>,
    /// What is left and what to do about it, in lines.
    pub text: String,
    pub issue: u64,
    /// The boxes that are not ticked.
    pub boxes: Vec<OpenCheckbox>,
}

/// All of them, by their tasks.
pub(crate) fn list_open_acceptances(
    place: &ProjectLocation,
    reader: &StoreReader,
) -> Result<Vec<OpenAcceptance>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let unaccepted = task_cache::table_snapshot(place, reader)?.unaccepted_tasks(reader)?;
    if unaccepted.is_empty() {
        return Ok(Vec::new());
    }
    // Broken settings complain elsewhere.
    let Some(kind) = load_settings(&place.root).ok().and_then(|it| it.tracker.kind) else {
        return Ok(Vec::new());
    };
    // Of several that follow the same issue the last one counts.
    let mut found: BTreeMap<u64, (TaskRow, Arc<Task>)> = BTreeMap::new();
    for row in
        reader.read_rows(&unaccepted).map_err(of)?.into_iter().filter(|row| row.status == TaskStatus::Done)
    {
        let Some(task) = task_cache::cached_task(place, reader, &row)?.filter(|task| is_partial(task)) else {
            continue;
        };
        if let Some(source) = IssueRef::from_source(&task.spec.source).filter(|source| source.tracker == kind)
        {
            found.insert(source.number, (row, task));
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let shown = current_answers(place, found.keys().copied().collect());
    let mut all = Vec::new();
    for (number, (row, task)) in found {
        let now = match shown.as_ref().map(|shown| shown.get(&number)) {
            None | Some(Some(IssueAnswer::Unread)) => None, // as it was last seen
            Some(Some(IssueAnswer::Now(now))) if is_left(now) => Some(now),
            Some(Some(IssueAnswer::Now(_)) | None) => continue,
        };
        let text = describe_open_boxes(&task, now).unwrap_or_default();
        let boxes = left_boxes(&task, now);
        all.push(OpenAcceptance { row, task, text, issue: number, boxes });
    }
    all.sort_by_key(|left| left.row.id);
    Ok(all)
}

/// How issues stand now; none if nobody can say. A forge is asked once a minute at most, beside whoever wants to know.
fn current_answers(place: &ProjectLocation, numbers: BTreeSet<u64>) -> Option<Arc<IssueAnswerMap>> {
    let before = match cached_answer(place, &numbers) {
        CachedForgeAnswer::Fresh(shown) => return shown,
        CachedForgeAnswer::Old(shown) => Some(PreviousAnswer(shown)),
        CachedForgeAnswer::Not => None,
    };
    let tracker = issues::open(place).ok()?;
    match tracker.keeps_branches() {
        false => Some(Arc::new(fetch_each_issue(&*tracker, &numbers))),
        true => ask_forge(place, tracker, numbers, before),
    }
}

fn fetch_each_issue(tracker: &dyn Tracker, numbers: &BTreeSet<u64>) -> IssueAnswerMap {
    let one = |number: &u64| {
        let shown = match tracker.read_issue(IssueNumber::new(*number)?) {
            Ok(issue) => IssueAnswer::Now(to_landed_issue(tracker, issue)),
            Err(TrackerError::NotFound { .. } | TrackerError::Moved { .. }) => return None,
            Err(_) => IssueAnswer::Unread,
        };
        Some((*number, shown))
    };
    numbers.iter().filter_map(one).collect()
}

fn to_landed_issue(tracker: &dyn Tracker, issue: Issue) -> LandedIssue {
    LandedIssue {
        open: issue.state.is_open(),
        unplanned: matches!(issue.state, TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. }),
        phase: phase_of(&issue),
        body: issue.body,
        forge: tracker.keeps_branches(),
    }
}

const FRESH: Duration = Duration::from_secs(60); // a person ticks boxes in minutes; a forge counts its requests
const PATIENCE: Duration = Duration::from_secs(3); // for the first answer; whoever asks for the status is in a hurry
const LISTED_MAX: usize = 200; // issues at `phase/verify` at once; the others are asked for one by one
const PLACES_MAX: usize = 8; // projects that one process answers for

/// What is known of what a forge says about some issues. It may have been asked and not have answered.
enum CachedForgeAnswer {
    Fresh(Option<Arc<IssueAnswerMap>>),
    Old(Option<Arc<IssueAnswerMap>>),
    Not,
}

/// What it said before, if it answered.
struct PreviousAnswer(Option<Arc<IssueAnswerMap>>);

/// What a forge said about these issues.
fn cached_answer(place: &ProjectLocation, numbers: &BTreeSet<u64>) -> CachedForgeAnswer {
    let all = place.caches.issue_answers.lock();
    match all.get(&place.folder.journal_path()).filter(|said| numbers.is_subset(&said.about)) {
        Some(said) if said.asked.elapsed() < FRESH => CachedForgeAnswer::Fresh(said.shown.clone()),
        Some(said) => CachedForgeAnswer::Old(said.shown.clone()),
        None => CachedForgeAnswer::Not,
    }
}

/// Has a forge asked. Whoever wants to know has at once what it said `before`, and waits only where it was not asked.
fn ask_forge(
    place: &ProjectLocation,
    tracker: Arc<dyn Tracker>,
    numbers: BTreeSet<u64>,
    before: Option<PreviousAnswer>,
) -> Option<Arc<IssueAnswerMap>> {
    let key = place.folder.journal_path();
    {
        let mut all = place.caches.issue_answers.lock();
        if all.len() >= PLACES_MAX {
            all.clear();
        }
        // Whoever comes meanwhile is content with what is known.
        let shown = before.as_ref().and_then(|before| before.0.clone());
        all.insert(key.clone(), ForgeAnswer { asked: Instant::now(), about: numbers.clone(), shown });
    }
    let (tell, told) = mpsc::channel();
    // Nobody waits for it longer than `PATIENCE`: what it finds out later is there for the next one.
    let caches = Arc::clone(&place.caches);
    let ask = move || {
        let shown = fetch_listed_issues(&*tracker, &numbers).ok().map(Arc::new);
        let said = ForgeAnswer { asked: Instant::now(), about: numbers, shown: shown.clone() };
        caches.issue_answers.lock().insert(key, said);
        let _ = tell.send(shown); // whoever asked may have left
    };
    let started = std::thread::Builder::new().name("left".to_owned()).spawn(ask);
    match before {
        Some(PreviousAnswer(shown)) => shown,
        None if started.is_err() => None,
        None => told.recv_timeout(PATIENCE).unwrap_or_default(),
    }
}

/// The issues of a forge that are at their verification, by one request.
fn fetch_listed_issues(tracker: &dyn Tracker, numbers: &BTreeSet<u64>) -> TrackerResult<IssueAnswerMap> {
    let labels = BTreeSet::from([Label::new(&format!("{PHASE_FAMILY}{}", IssuePhase::Verify.word()))?]);
    let found = tracker.list_issues(&IssueFilter { only_open: false, labels, most: LISTED_MAX })?;
    let whole = found.len() < LISTED_MAX;
    let wanted = found.into_iter().filter(|issue| numbers.contains(&issue.number.get()));
    let mut all: IssueAnswerMap =
        wanted.map(|issue| (issue.number.get(), IssueAnswer::Now(to_landed_issue(tracker, issue)))).collect();
    if !whole {
        let rest = numbers.iter().copied().filter(|number| !all.contains_key(number)).collect();
        all.extend(fetch_each_issue(tracker, &rest));
    }
    Ok(all)
}
