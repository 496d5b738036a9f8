//! Issues that are followed, one by one or many at once: which they are, in which order, and what became of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landfall_api::client::EngineClient;
use landfall_api::{self as api, Problem, ProblemCode, TypedService as _};
use landfall_engine::engine::load_settings;
use landfall_engine::exchange::{blockers_of, read_idle_sub_issues, read_live_issue};
use landfall_engine::host::wait::FolderWatch;
use landfall_engine::model::haul::{
    self, BatchIssueOutcome, IssueBatch, IssueBatchId, IssueSelection, LiveIssue,
};
use landfall_engine::model::issue::{
    self, IssueOptions, IssuePhase, IssueProgress, IssueRef, IssueRoute, ReviewDepth,
};
use landfall_engine::model::{EndKind, Ending, Event, Fact, Task, TaskSize, TaskState};
use landfall_engine::store::{Seq, StoreReader};
use landfall_engine::{EngineReply, EngineRequest, FollowIssue, FollowRequest};
use landfall_engine::{StateFolder, accept};
use landfall_text::pluralize;
use landfall_text::quote_shell_word;
use landfall_trackers::tracker::{
    Blocker, CloseReason, Issue, IssueFilter, IssueLocation as IssuePlace, IssueNumber, Label, Tracker,
    TrackerError, TrackerIssueState, TrackerResult,
};

use crate::command::{reconcile, verify};
use crate::project::command_handler::{CommandHandler, unexpected_reply};
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems};
use crate::query::{backlog, issues};

/// So many triaged issues are looked through for small ones.
const LOOKED_THROUGH: usize = 200;
/// So many issues are taken on at once.
const ISSUES_MAX: usize = 200;

/// Issues as they are now, in the order in which they are begun.
struct IssueFollowPlan {
    tracker: String,
    wanted: Vec<RequestedIssue>,
    wishes: IssueOptions,
    chosen: Option<IssueSelection>,
    batch: Option<IssueBatchId>,
    left_out: Vec<RequestedIssue>,
    text: String,
}

/// An issue that somebody wants.
struct RequestedIssue {
    issue: Issue,
    live: LiveIssue,
    size: Option<TaskSize>,
    blockers: Vec<Blocker>,
    task: Option<Task>,
}

impl RequestedIssue {
    fn number(&self) -> u64 {
        self.issue.number.get()
    }

    /// Whether nothing is left to do for it in the tracker, and its task is over.
    fn is_settled(&self) -> bool {
        let LiveIssue { open, phase, .. } = self.live;
        self.task.as_ref().is_some_and(is_settled) && !open && phase != Some(IssuePhase::Verify)
    }

    /// Whether somebody decided that nobody does it.
    fn is_unplanned(&self) -> bool {
        matches!(self.issue.state, TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. })
    }

    /// Whether an agent finds out first what it is.
    fn wants_triage(&self) -> bool {
        let LiveIssue { open, phase, .. } = self.live;
        let triaged = self.issue.labels.iter().any(|label| label.as_str() == "triaged");
        open && issue::wants_triage(triaged, phase)
    }

    /// Whether its task landed, and its acceptance is all that is left.
    fn is_pending(&self) -> bool {
        self.live.phase == Some(IssuePhase::Verify) && self.task.as_ref().is_some_and(issue::is_partial)
    }

    /// Whether it begins only once what it waits for is done.
    fn waits_for_blockers(&self) -> bool {
        self.live.open && !self.is_pending() && self.blockers.iter().any(|it| it.open)
    }

    fn open_blockers(&self) -> Vec<String> {
        self.blockers.iter().filter(|it| it.open).map(|it| it.place.to_string()).collect()
    }
}

/// Whether a task is over, and not because it gave up.
fn is_settled(task: &Task) -> bool {
    matches!(task.state, TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }))
}

impl CommandHandler<'_> {
    /// Follows issues, each by a task.
    pub fn follow_issues(&self, asked: &api::IssuesFollow) -> Result<api::IssuesFollowed, Problem> {
        let plan = plan(self.place, asked)?;
        let new = |wanted: &RequestedIssue| FollowIssue {
            number: wanted.number(),
            title: wanted.issue.title.clone(),
            size: wanted.size,
            settled: wanted.is_settled(),
            at_verify: wanted.live.phase == Some(IssuePhase::Verify),
        };
        let follow = FollowRequest {
            tracker: plan.tracker.clone(),
            issues: plan.wanted.iter().map(new).collect(),
            wishes: plan.wishes.clone(),
            keep: asked.resume,
            together: plan.chosen,
        };
        let (haul, tasks) = match (self.ask)(EngineRequest::Follow(Box::new(follow)))? {
            EngineReply::Followed { haul, tasks } => (haul, tasks),
            other => return Err(unexpected_reply("tasks of issues", &other)),
        };
        let mut followed = to_followed_issues(&plan);
        followed.batch = haul.or(plan.batch).map(conversions::haul_id);
        for ((line, wanted), task) in followed.issues.iter_mut().zip(&plan.wanted).zip(&tasks) {
            line.task = Some(conversions::task_id(task.id));
            line.text = followed_text(wanted, task);
        }
        Ok(followed)
    }
}

/// What would be done, without doing it.
pub(crate) fn preview_follow(
    place: &ProjectLocation,
    asked: &api::IssuesFollow,
) -> Result<api::IssuesFollowed, Problem> {
    let plan = plan(place, asked)?;
    let mut followed = to_followed_issues(&plan);
    let tracker = issues::open(place)?;
    for (line, wanted) in followed.issues.iter_mut().zip(&plan.wanted) {
        if issue::route_issue(wanted.size, &plan.wishes).way == IssueRoute::Split && !wanted.is_settled() {
            line.parts = list_open_parts(&*tracker, wanted.issue.number)?;
        }
    }
    Ok(followed)
}

/// What an issue is made of and what of that is still to be done, level by level.
fn list_open_parts(tracker: &dyn Tracker, number: IssueNumber) -> Result<Vec<api::FollowedPart>, Problem> {
    let all = read_idle_sub_issues(tracker, number).map_err(reconcile::exchange_problem)?;
    let left: Vec<issue::SubIssue> = all.into_iter().filter(|part| !part.done).collect();
    let open = |need: &u64| left.iter().any(|part| part.number == *need);
    let part = |level: u32, part: &issue::SubIssue| api::FollowedPart {
        number: part.number,
        title: part.title.clone(),
        size: part.size.map(conversions::to_api_size),
        level,
        waits_for: part.needs.iter().copied().filter(open).collect(),
    };
    let of_level = |(level, numbers): (u32, Vec<u64>)| -> Vec<api::FollowedPart> {
        let here = left.iter().filter(|part| numbers.contains(&part.number));
        here.map(|it| part(level, it)).collect()
    };
    Ok((1..).zip(issue::dependency_levels(&left)).flat_map(of_level).collect())
}

fn to_followed_issues(plan: &IssueFollowPlan) -> api::IssuesFollowed {
    let line = |wanted: &RequestedIssue| api::FollowedIssue {
        number: wanted.number(),
        title: wanted.issue.title.clone(),
        size: wanted.size.map(conversions::to_api_size),
        way: issue::route_issue(wanted.size, &plan.wishes).label(),
        task: None,
        settled: wanted.is_settled(),
        blocked_by: wanted.open_blockers(),
        triage: wanted.wants_triage(),
        parts: Vec::new(),
        text: match &wanted.task {
            _ if wanted.is_settled() => "is done already".to_owned(),
            None => "gets a task".to_owned(),
            Some(task) if is_settled(task) && !wanted.is_pending() => {
                "is open again, and gets another task".to_owned()
            }
            Some(task) => followed_text(wanted, task),
        },
    };
    let left_out = |it: &RequestedIssue| api::LeftOutIssue {
        number: it.number(),
        title: it.issue.title.clone(),
        why: format!("it is closed as not planned; `landfall issue reopen {}` opens it again", it.number()),
    };
    api::IssuesFollowed {
        batch: plan.batch.map(conversions::haul_id),
        issues: plan.wanted.iter().map(line).collect(),
        left_out: plan.left_out.iter().map(left_out).collect(),
        text: plan.text.clone(),
    }
}

/// What is done about an issue, by how its task was before.
fn followed_text(wanted: &RequestedIssue, task: &Task) -> String {
    let id = task.id;
    if wanted.is_settled() {
        return format!("is done already ({id})");
    }
    if wanted.is_pending() {
        return format!("has landed; {id} looks at what is left of its acceptance");
    }
    match wanted.task.as_ref().map(|before| &before.state) {
        None => format!("is followed by {id}"),
        Some(TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. })) => {
            format!("is open again, and followed by {id}")
        }
        Some(TaskState::Ended(ending)) => {
            let detail = ending.detail.lines().next().filter(|line| !line.is_empty());
            format!("is tried again by {id}, which had stopped: {}", detail.unwrap_or(ending.code.word()))
        }
        Some(
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. },
        ) => format!("goes on with {id}"),
    }
}

fn plan(place: &ProjectLocation, asked: &api::IssuesFollow) -> Result<IssueFollowPlan, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?.tracker;
    let tracker = issues::open(place)?;
    let kind = settings.kind.unwrap_or("none").to_owned();
    let tasks = IssueTasks::load_from(place, &kind)?;
    let failed = |error| issues::tracker_problem(&error);
    let wishes = IssueOptions {
        way: asked.way.map(|way| match way {
            api::IssueWay::Patch => IssueRoute::Patch,
            api::IssueWay::Pr => IssueRoute::Pr,
        }),
        depth: asked.review.map(|review| match review {
            api::IssueReview::Light => ReviewDepth::Light,
            api::IssueReview::Full => ReviewDepth::Full,
        }),
        accept: !asked.leave_acceptance,
        always_pr: settings.always_pr,
    };
    check_wishes(asked)?;
    let mut left_out = Vec::new();
    let (mut wanted, chosen, batch, mut text) = match (&asked.issues[..], asked.newest, asked.batch) {
        ([_, ..], None, None) => {
            let all = fetch_listed_issues(&*tracker, &tasks, &asked.issues)?;
            let (unplanned, wanted): (Vec<RequestedIssue>, Vec<RequestedIssue>) =
                all.into_iter().partition(RequestedIssue::is_unplanned);
            if let (Some(it), []) = (unplanned.first(), &wanted[..]) {
                return Err(verify::unplanned_issue_problem(it.issue.number));
            }
            refuse_cycles(&*tracker, &wanted)?;
            let mut text = pluralize(wanted.len() as u64, "issue");
            if !unplanned.is_empty() {
                text += &format!(", and {} left out", unplanned.len());
            }
            left_out = unplanned;
            (wanted, asked.together.then_some(IssueSelection::Listed), None, text)
        }
        ([], Some(many), None) => {
            let wanted = find_newest_issues(&*tracker, &tasks, many).map_err(failed)?;
            let unread = tracker.list_unreadable().map_err(failed)?;
            let mut text = newest_text(many, wanted.len()).map_err(|none| match &unread[..] {
                [] => none,
                // The one that was meant may be among these.
                [first, rest @ ..] => {
                    let more = match rest.len() {
                        0 => String::new(),
                        more => format!(", and {more} more"),
                    };
                    let message = format!("{}; and this cannot be read: {first}{more}", none.message);
                    Problem { message, ..none }
                        .with_hint("mend the file; `landfall issue list` lists all of them")
                }
            })?;
            if !unread.is_empty() {
                let files = pluralize(unread.len() as u64, "file");
                text += &format!("; {files} cannot be read, `landfall issue list` says why");
            }
            (wanted, asked.together.then_some(IssueSelection::Newest(many)), None, text)
        }
        ([], None, Some(id)) => {
            let id = IssueBatchId(id.0);
            let haul = find_haul(place, id)?;
            if haul.tracker != kind {
                let what =
                    format!("{id} is of the tracker `{}`, and the project's is `{kind}`", haul.tracker);
                return Err(Problem::new(ProblemCode::NotNow, what).with_hint("set `tracker.kind` back"));
            }
            let all = fetch_listed_issues(&*tracker, &tasks, &haul.issues)?;
            let left = |it: &RequestedIssue| {
                haul::batch_issue_outcome(it.live, it.task.as_ref()) == BatchIssueOutcome::Left
            };
            let wanted: Vec<RequestedIssue> = all.into_iter().filter(left).collect();
            let text = format!("{id}: {} of {} left", wanted.len(), haul.issues.len());
            (wanted, None, Some(id), text)
        }
        _ => {
            let what = "which issues is said by exactly one of `issues`, `newest` and `batch`";
            return Err(Problem::new(ProblemCode::BadInput, what));
        }
    };
    refuse_second_base(place, &kind, &wanted)?;
    if sort_by_blockers(&mut wanted)? {
        text += ", those that others wait for first";
    }
    Ok(IssueFollowPlan { tracker: kind, wanted, wishes, chosen, batch, left_out, text })
}

/// An issue has one state, so it is followed on one base at a time: the next one may have it when that is over, and somebody opened it
/// again.
fn refuse_second_base(
    place: &ProjectLocation,
    tracker: &str,
    wanted: &[RequestedIssue],
) -> Result<(), Problem> {
    for (other, said) in other_bases(place) {
        let tasks = IssueTasks::load_from(&other, tracker)?;
        for it in wanted.iter().filter(|it| it.task.as_ref().is_none_or(issue::is_through)) {
            let Some(task) = tasks.find_task(it.issue.number) else { continue };
            let (number, BaseMention { base, word }) = (it.issue.number, &said);
            let (what, hint) = if !issue::is_through(&task) {
                (
                    format!("{number} is followed on {base}"),
                    format!(
                        "`{word} why '{number}'` says how far it has come there; `{word} cancel '{number}'` gives it up there"
                    ),
                )
            } else if !it.issue.state.is_open() && it.task.is_none() {
                (
                    format!("{number} was done on {base}"),
                    format!(
                        "`landfall issue reopen {}` opens it again, if it is to land here too",
                        it.number()
                    ),
                )
            } else {
                continue;
            };
            return Err(Problem::new(ProblemCode::NotNow, what).with_hint(hint));
        }
    }
    Ok(())
}

/// What another base has shown is not held against this one.
pub(crate) fn check_other_base(
    place: &ProjectLocation,
    tracker: &dyn Tracker,
    number: IssueNumber,
) -> Result<(), Problem> {
    let side = place.folder.side_name();
    if !accept::is_of_another_base(tracker, number, side).map_err(|error| issues::tracker_problem(&error))? {
        return Ok(());
    }
    let followed = |(other, _): &(ProjectLocation, BaseMention)| {
        matches!(find_issue_task(other, number.get()), Ok(Some(_)))
    };
    match other_bases(place).iter().find(|it| followed(it)) {
        None => Ok(()), // whoever did it, it is looked at here
        Some((_, BaseMention { base, word })) => {
            Err(Problem::new(ProblemCode::NotNow, format!("{number} was verified on {base}"))
                .with_hint(format!("`{word} verify {}` looks at it there", number.get())))
        }
    }
}

/// How another base is said.
struct BaseMention {
    base: String,
    /// How its commands begin.
    word: String,
}

/// The project as its other bases see it.
fn other_bases(place: &ProjectLocation) -> Vec<(ProjectLocation, BaseMention)> {
    let others = place.folder.all_bases().into_iter().filter(|folder| folder.root() != place.folder.root());
    let seen = |folder: StateFolder| {
        let said = match folder.read_base_name() {
            Some(base) => {
                let word = format!("landfall --base {}", quote_shell_word(&base));
                BaseMention { base: format!("`{base}`"), word }
            }
            // Commands that are shown are about the base that is meant: the project's own has to be said, too.
            None => {
                let own = place.configured_base().map(|base| format!(" --base {}", quote_shell_word(&base)));
                let word = format!("landfall{}", own.unwrap_or_default());
                BaseMention { base: "the base of the project".to_owned(), word }
            }
        };
        (ProjectLocation { folder, base: None, ..place.clone() }, said)
    };
    others.map(seen).collect()
}

fn check_wishes(asked: &api::IssuesFollow) -> Result<(), Problem> {
    let bad = |what: String| Err(Problem::new(ProblemCode::BadInput, what));
    if asked.way == Some(api::IssueWay::Patch) && asked.review.is_some() {
        return bad("a patch is not reviewed: only a pull request is".to_owned());
    }
    if asked.newest.is_some_and(|many| many == 0 || many as usize > ISSUES_MAX) {
        return bad(format!("so many issues are not taken on at once; 1 to {ISSUES_MAX} are"));
    }
    if asked.issues.len() > ISSUES_MAX {
        return bad(format!("{} issues are too many at once; 1 to {ISSUES_MAX} are not", asked.issues.len()));
    }
    let mut seen = BTreeSet::new();
    match asked.issues.iter().find(|number| !seen.insert(**number)) {
        Some(twice) => bad(format!("#{twice} is named twice")),
        None => Ok(()),
    }
}

/// Whoever waits for another of them comes after it. Whether that changed the order.
fn sort_by_blockers(wanted: &mut [RequestedIssue]) -> Result<bool, Problem> {
    let numbers: Vec<u64> = wanted.iter().map(RequestedIssue::number).collect();
    let blocked_by = wanted.iter().map(|it| (it.number(), list_open_local_blockers(&it.blockers))).collect();
    let ordered = haul::order(&numbers, &blocked_by).map_err(|circle| {
        let issue = wanted.iter().find(|it| Some(&it.number()) == circle.first());
        cycle_problem(&circle, issue.map_or("", |it| &it.issue.body))
    })?;
    wanted.sort_by_key(|it| ordered.iter().position(|number| *number == it.number()));
    Ok(ordered != numbers)
}

/// The open ones of this tracker.
fn list_open_local_blockers(blockers: &[Blocker]) -> BTreeSet<u64> {
    let here = |blocker: &Blocker| match &blocker.place {
        IssuePlace::Here(number) if blocker.open => Some(number.get()),
        IssuePlace::Here(_) | IssuePlace::Elsewhere(_) => None,
    };
    blockers.iter().filter_map(here).collect()
}

/// Issues that are looked at for a circle beyond those that were named: more than anybody keeps in mind.
const WALKED_MAX: usize = 50;

/// Refuses issues of which one would wait for ever: it, or what it waits for, waits for itself.
fn refuse_cycles(tracker: &dyn Tracker, wanted: &[RequestedIssue]) -> Result<(), Problem> {
    let held_up = wanted.iter().filter(|it| it.waits_for_blockers());
    let mut blocked_by: BTreeMap<u64, BTreeSet<u64>> =
        held_up.map(|it| (it.number(), list_open_local_blockers(&it.blockers))).collect();
    let mut ahead: Vec<u64> = blocked_by.values().flatten().copied().collect();
    let mut bodies: BTreeMap<u64, String> =
        wanted.iter().map(|it| (it.number(), it.issue.body.clone())).collect();
    let most = blocked_by.len() + WALKED_MAX;
    while let Some(number) = ahead.pop().filter(|_| blocked_by.len() < most) {
        if blocked_by.contains_key(&number) {
            continue;
        }
        // What cannot be looked at is no circle anybody has seen.
        let issue = tracker.read_issue(issues::parse_issue_number(number)?);
        let found = issue.and_then(|issue| {
            let found = blockers_of(tracker, &issue);
            bodies.insert(number, issue.body);
            found
        });
        let blockers = list_open_local_blockers(&found.unwrap_or_default());
        ahead.extend(&blockers);
        blocked_by.insert(number, blockers);
    }
    let numbers: Vec<u64> = blocked_by.keys().copied().collect();
    haul::order(&numbers, &blocked_by).map(drop).map_err(|circle| {
        let body = circle.first().and_then(|first| bodies.get(first));
        cycle_problem(&circle, body.map_or("", String::as_str))
    })
}

/// The refusal of a circle. `body` is the text of its first issue: a blocker that it names stays until the text is changed.
fn cycle_problem(circle: &[u64], body: &str) -> Problem {
    let path: Vec<String> = circle.iter().chain(circle.first()).map(|number| format!("#{number}")).collect();
    let what = format!("these issues wait for each other: {}", path.join(" is blocked by "));
    let hint = match circle {
        [one, two, ..] if issue::blockers_in(body).contains(two) => format!(
            "the text of #{one} says that it is blocked by #{two}: change it with `landfall issue edit {one} --body-file FILE`; \
             `--unblock {two}` removes only the relation in the tracker"
        ),
        [one, two, ..] => format!("`landfall issue edit {one} --unblock {two}` takes a blocker away"),
        [..] => "take one of the blockers away in the tracker".to_owned(),
    };
    Problem::new(ProblemCode::BadInput, what).with_hint(hint)
}

fn fetch_listed_issues(
    tracker: &dyn Tracker,
    tasks: &IssueTasks,
    numbers: &[u64],
) -> Result<Vec<RequestedIssue>, Problem> {
    let one = |number: &u64| {
        let number = issues::parse_issue_number(*number)?;
        let found = tracker.read_issue(number).and_then(|issue| to_requested_issue(tracker, tasks, issue));
        found.map_err(|error| issues::tracker_problem(&error))
    };
    numbers.iter().map(one).collect()
}

fn to_requested_issue(
    tracker: &dyn Tracker,
    tasks: &IssueTasks,
    issue: Issue,
) -> TrackerResult<RequestedIssue> {
    let size = tracker.read_size(issue.number)?.map(|seen| seen.size);
    let live = read_live_issue(tracker, &issue)?;
    let blockers = blockers_of(tracker, &issue)?;
    let task = tasks.find_task(issue.number);
    Ok(RequestedIssue { issue, live, size, blockers, task })
}

/// The newest small ones that somebody has looked at and that are still to be done.
fn find_newest_issues(
    tracker: &dyn Tracker,
    tasks: &IssueTasks,
    many: u32,
) -> TrackerResult<Vec<RequestedIssue>> {
    let labels = BTreeSet::from([Label::new("triaged")?]);
    let all = tracker.list_issues(&IssueFilter { only_open: true, labels, most: LOOKED_THROUGH })?;
    let small = |size: Option<TaskSize>| matches!(size, None | Some(TaskSize::XS | TaskSize::S));
    let mut found = Vec::new();
    for issue in all {
        if found.len() >= many as usize {
            break;
        }
        // A label that says it is big saves asking.
        if !small(issue.labelled_size()) {
            continue;
        }
        let it = to_requested_issue(tracker, tasks, issue)?;
        if small(it.size) && haul::batch_issue_outcome(it.live, it.task.as_ref()) != BatchIssueOutcome::Done {
            found.push(it);
        }
    }
    Ok(found)
}

fn newest_text(asked: u32, found: usize) -> Result<String, Problem> {
    let which = "open issues that are triaged and of size XS, S or none";
    match found {
        0 => Err(Problem::new(ProblemCode::NotNow, format!("there are no {which}")).with_hint(
            "`landfall auto 12` takes one whatever its size, `landfall auto --batch 12 13` several",
        )),
        found if found < asked as usize => {
            Ok(format!("the {found} {which} there are ({asked} were asked for)"))
        }
        1 => Ok("the newest of the open issues that are triaged and of size XS, S or none".to_owned()),
        found => Ok(format!("the {found} newest {which}")),
    }
}

/// The task that follows an issue; the one of the project's tracker, where there were several.
pub(crate) fn find_issue_task(
    place: &ProjectLocation,
    number: u64,
) -> Result<Option<api::WireTaskId>, Problem> {
    let kind = load_settings(&place.root).ok().and_then(|settings| settings.tracker.kind);
    let sources = backlog::list_task_sources(place)?.into_iter();
    let of_issue = sources.filter_map(|(id, source)| Some((id, IssueRef::from_source(&source)?)));
    let found: Vec<_> = of_issue.filter(|(_, source)| source.number == number).collect();
    let here = found.iter().rev().find(|(_, source)| Some(source.tracker.as_str()) == kind);
    Ok(here.or(found.last()).map(|(id, _)| conversions::task_id(*id)))
}

/// Why no task follows an issue.
pub(crate) fn unfollowed_issue_problem(place: &ProjectLocation, number: u64) -> Problem {
    let there = || {
        let of = issues::parse_issue_number(number)?;
        issues::open(place)?.read_issue(of).map_err(|error| issues::tracker_problem(&error))
    };
    match there() {
        Err(problem) => problem,
        Ok(issue) => {
            let what = format!("no task follows issue #{number}");
            let followed = |(other, _): &(ProjectLocation, BaseMention)| {
                matches!(find_issue_task(other, number), Ok(Some(_)))
            };
            let hint = match other_bases(place).iter().find(|it| followed(it)) {
                Some((_, BaseMention { base, word })) => {
                    format!("one does on {base}: `{word} why '#{number}'`")
                }
                None if matches!(
                    issue.state,
                    TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. }
                ) =>
                {
                    format!("it is closed as not planned; `landfall issue reopen {number}` opens it again")
                }
                None if matches!(issue.state, TrackerIssueState::Closed { .. }) => {
                    format!("it was closed without Landfall; `landfall issue reopen {number}` opens it again")
                }
                None => format!("`landfall auto {number}` starts one"),
            };
            Problem::new(ProblemCode::NotFound, what).with_hint(hint)
        }
    }
}

/// So many facts are looked through where nobody asked for it.
const BY_THE_WAY: u64 = 20_000;

pub(crate) fn find_issue_task_quickly(place: &ProjectLocation, number: u64) -> Option<api::WireTaskId> {
    let head = place.open_reader().ok()??.head().ok()?;
    if head.seq.0 > BY_THE_WAY {
        return None;
    }
    find_issue_task(place, number).ok()?
}

/// How often a run of another process is looked at.
const LOOK: Duration = Duration::from_millis(150);

/// Watches tasks in a run that another process drives, and tells what happens to them and to their parts.
pub(crate) fn watch_tasks(
    place: &ProjectLocation,
    tasks: &[api::WireTaskId],
    tell: &mut dyn FnMut(&[api::NewsLine]) -> bool,
) -> Result<bool, Problem> {
    let Ok(client) = EngineClient::connect(&place.folder.socket_path()) else { return Ok(false) };
    let Ok(view) = client.run_now(api::RunNowAsked { after: None }) else { return Ok(false) };
    let mut shown = view.head;
    let watch = FolderWatch::for_writes(place.folder.root()); // the journal is there
    let is_over = |task: &Option<Task>| task.as_ref().is_none_or(Task::is_over);
    loop {
        // Whether they are over is asked first: what happened until then is still told.
        let over = {
            let Some(reader) = place.open_reader()? else { return Ok(true) };
            let found: Result<Vec<_>, _> =
                tasks.iter().map(|id| reader.task(conversions::model_task(*id))).collect();
            found.map_err(|error| problems::from_store_error(&error))?.iter().all(is_over)
        };
        // Whoever drove has left: how it ended stands in the journal.
        let Ok(view) = client.run_now(api::RunNowAsked { after: Some(shown) }) else { return Ok(true) };
        shown = shown.max(view.head);
        let (ended, mut news) = (view.outcome.is_some(), view.news);
        news.retain(|it| it.task.is_some_and(|task| is_among(place, tasks, task)));
        if !tell(&news) || over || ended {
            return Ok(true);
        }
        watch.wait(LOOK);
    }
}

/// Whether it is one of these tasks, or a part of one.
fn is_among(place: &ProjectLocation, tasks: &[api::WireTaskId], task: api::WireTaskId) -> bool {
    if tasks.contains(&task) {
        return true;
    }
    let found = place
        .open_reader()
        .ok()
        .flatten()
        .and_then(|it| it.task(conversions::model_task(task)).ok().flatten());
    let parent = found.and_then(|task| task.spec.parent).map(conversions::task_id);
    parent.is_some_and(|parent| tasks.contains(&parent))
}

/// The tasks that follow issues of a tracker.
struct IssueTasks {
    reader: Option<crate::project::reader_pool::PooledReader>,
    tracker: String,
    by_source: BTreeMap<String, landfall_engine::model::TaskId>,
}

impl IssueTasks {
    fn load_from(place: &ProjectLocation, tracker: &str) -> Result<Self, Problem> {
        // Of several that follow the same issue the last one counts.
        let by_source =
            backlog::list_task_sources(place)?.into_iter().map(|(id, source)| (source, id)).collect();
        Ok(Self { reader: place.open_reader()?, tracker: tracker.to_owned(), by_source })
    }

    fn find_task(&self, number: IssueNumber) -> Option<Task> {
        let source = IssueRef { tracker: self.tracker.clone(), number: number.get() };
        let id = self.by_source.get(&source.to_string())?;
        self.reader.as_ref()?.task(*id).ok().flatten()
    }
}

fn find_haul(place: &ProjectLocation, id: IssueBatchId) -> Result<IssueBatch, Problem> {
    let hauls = match place.open_reader()? {
        Some(reader) => reader.hauls().map_err(|error| problems::from_store_error(&error))?,
        None => haul::IssueBatchHistory::default(),
    };
    hauls.get(id).cloned().ok_or_else(|| {
        Problem::new(ProblemCode::BadInput, format!("there is no batch of issues {id}"))
            .with_hint("`landfall auto --list` shows those of which something is left")
    })
}

/// Batches of which something is left, newest first.
pub(crate) fn list_batches(place: &ProjectLocation) -> Result<api::HaulList, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(api::HaulList { batches: Vec::new() }) };
    let hauls = reader.hauls().map_err(|error| problems::from_store_error(&error))?;
    drop(reader); // whoever writes meanwhile is not waited for
    if hauls.all_batches().is_empty() {
        return Ok(api::HaulList { batches: Vec::new() });
    }
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?.tracker;
    let kind = settings.kind.unwrap_or("none");
    let tracker = issues::open(place)?;
    let tasks = IssueTasks::load_from(place, kind)?;
    let mut known: BTreeMap<u64, BatchIssueOutcome> = BTreeMap::new();
    let mut lines = Vec::new();
    for haul in hauls.all_batches().iter().rev().filter(|haul| haul.tracker == kind) {
        for number in &haul.issues {
            if known.contains_key(number) {
                continue;
            }
            let of = issues::parse_issue_number(*number)?;
            let live = tracker.read_issue(of).and_then(|issue| read_live_issue(&*tracker, &issue));
            let fate = match live {
                Ok(live) => haul::batch_issue_outcome(live, tasks.find_task(of).as_ref()),
                // It is still to be done, once somebody has mended its file.
                Err(TrackerError::Malformed { .. }) => BatchIssueOutcome::Left,
                Err(error) => return Err(issues::tracker_problem(&error)),
            };
            known.insert(*number, fate);
        }
        let which = |is: fn(&BatchIssueOutcome) -> bool| -> Vec<u64> {
            haul.issues.iter().copied().filter(|number| known.get(number).is_some_and(is)).collect()
        };
        let remaining = which(|fate| *fate == BatchIssueOutcome::Left);
        if remaining.is_empty() {
            continue;
        }
        lines.push(api::HaulLine {
            id: conversions::haul_id(haul.id),
            begun_ms: haul.begun.0,
            chosen: match haul.chosen {
                IssueSelection::Newest(many) => format!("the {many} newest"),
                IssueSelection::Listed => "by number".to_owned(),
            },
            remaining,
            completed: which(|fate| *fate == BatchIssueOutcome::Done),
            failed: which(|fate| matches!(fate, BatchIssueOutcome::Failed(_))),
        });
    }
    Ok(api::HaulList { batches: lines })
}

/// What became of issues, by their tasks.
pub(crate) fn summarize_issues(
    place: &ProjectLocation,
    tasks: &[api::WireTaskId],
) -> Result<Vec<api::IssueSummary>, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for id in tasks {
        let id = conversions::model_task(*id);
        let task = reader.task(id).map_err(|error| problems::from_store_error(&error))?;
        let task = task.ok_or_else(|| problems::unknown_task(id))?;
        let progress =
            issue_progress(&reader, &task, None).map_err(|error| problems::from_store_error(&error))?;
        all.extend(issue::summarize_issue(&task, &progress).map(to_issue_summary));
    }
    Ok(all)
}

/// How far the task of an issue has come, by its facts up to `before`.
pub(crate) fn issue_progress(
    reader: &StoreReader,
    task: &Task,
    before: Option<u64>,
) -> Result<IssueProgress, landfall_engine::store::StoreError> {
    let events = reader.events(Seq::ZERO, Some(task.id), u32::MAX)?;
    let until = before.unwrap_or(u64::MAX);
    let facts = events.iter().filter(|(seq, _)| seq.0 < until);
    let events = facts.filter_map(|(_, entry)| match &entry.fact {
        Fact::Task(_, event) => Some(event),
        Fact::Engine(_) => None,
    });
    let events: Vec<&Event> = events.collect();
    Ok(IssueProgress::from_events(task.flow.as_deref(), events))
}

fn to_issue_summary(it: issue::Summary) -> api::IssueSummary {
    let phase = |row: &issue::SummaryRow| api::PhaseLine {
        phase: row.phase.to_owned(),
        result: row.result.to_owned(),
        notes: row.notes.clone(),
        tokens: row.usage.total_tokens(),
        cost_usd: conversions::micro_to_usd(row.usage.micro_usd),
    };
    api::IssueSummary {
        number: it.number,
        task: conversions::task_id(it.task),
        stand: it.stand.standing(),
        banner: it.render_banner(),
        phases: it.rows.iter().map(phase).collect(),
        title: it.title,
        way: it.way,
        pr: it.pr,
        pending: it.pending,
        why: it.why,
        next: it.next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_through_a_text_is_taken_away_in_the_text() {
        let hint = |body| cycle_problem(&[1, 2], body).hint.unwrap_or_default();
        assert_eq!(hint("See #2"), "`landfall issue edit 1 --unblock 2` takes a blocker away");
        assert!(hint("Blocked by #2").contains("`landfall issue edit 1 --body-file FILE`"));
    }
}
