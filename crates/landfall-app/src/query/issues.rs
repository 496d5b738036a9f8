//! Issues of the project's tracker, read and changed for a person. The tracker orders those who write; the engine is not asked.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::engine::load_settings;
use landfall_engine::exchange::{blockers_of, branch_of};
use landfall_engine::model::TaskSize;
use landfall_engine::model::acceptance::{
    Criteria, VerifyKind, find_box, tick_boxes as tick_lines, untick_boxes,
};
use landfall_engine::settings::Settings;
use landfall_engine::tracker::nudges::{self, WebhookRejection};
use landfall_engine::tracker::{self, TrackerDescription, TrackerEnv};
use landfall_text::pluralize;
use landfall_trackers::github::webhook::{Deliveries, Delivery, DeliveryError};
use landfall_trackers::tracker::{
    CloseReason, Comment, CommentThread, Conclusion, ForgeCheck, ForgeCheckState, Issue, IssueFilter,
    IssueLocation as IssuePlace, IssueNumber, IssueTextEdit, Label, Marker, NameError, NewIssue, PrNumber,
    PrState, PullRequest, ReviewVerdict, SIZE_FAMILY, Title, Tracker, TrackerError, TrackerIssueState,
    TrackerResult, TrackerReview, escape_beginning,
};

use crate::project::open_tracker::CachedTracker;
use crate::project::place::ProjectLocation;
use crate::project::{clock, conversions, problems, trust};

const LISTED_MAX: u32 = 1_000; // a forge is asked once for each hundred, and lets us ask so often an hour

/// What is to become of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IssueChange {
    /// Something is said about it.
    Comment(String),
    /// It is done.
    Close,
    /// Nobody will do it.
    Drop,
    /// It is open again.
    Reopen,
    /// Several things about it change.
    Edit(api::IssueEdit),
    /// A box is ticked, or opened again.
    Tick {
        /// Its place among the boxes, or words of it.
        named: String,
        /// Whether it is opened again.
        open: bool,
    },
}

/// Makes an issue.
pub(crate) fn create_issue(
    place: &ProjectLocation,
    asked: &api::IssueNew,
) -> Result<api::IssueMade, Problem> {
    let labels = new_labels(&asked.labels)?;
    let parent = asked.parent.map(|it| parse_issue_number(it.0)).transpose()?;
    let blockers =
        asked.blocked_by.iter().map(|it| parse_issue_number(it.0)).collect::<Result<Vec<_>, _>>()?;
    if asked.title.trim().is_empty() {
        return Err(untitled_issue_problem());
    }
    let tracker = open(place)?;
    // What it is part of or waits for is there, or nothing is made.
    for other in parent.iter().chain(&blockers) {
        tracker.read_issue(*other).map_err(|error| tracker_problem(&error))?;
    }
    let made = tracker.create_issue(&NewIssue {
        marker: unique_marker(&[&asked.title, &asked.body]),
        title: Title::from_text(&asked.title),
        body: asked.body.clone(),
        labels,
    });
    let issue = made.map_err(|error| tracker_problem(&error))?.into_inner();
    let number = issue.number;
    let rest = || -> TrackerResult<()> {
        if let Some(size) = asked.size {
            tracker.set_size(number, conversions::model_size(size))?;
        }
        if let Some(parent) = parent {
            tracker.add_child(parent, number)?;
        }
        for blocker in blockers {
            tracker.add_blocker(number, blocker)?;
        }
        Ok(())
    };
    rest().and_then(|()| fetch_issue_line(&*tracker, number)).map(|issue| api::IssueMade { issue }).map_err(
        |error| {
            let problem = tracker_problem(&error);
            Problem {
                message: format!("{number} is made, but not all that was asked: {}", problem.message),
                ..problem
            }
        },
    )
}

fn untitled_issue_problem() -> Problem {
    Problem::new(ProblemCode::BadInput, "an issue needs a title")
}

/// The issues there are.
pub(crate) fn list_issues(
    place: &ProjectLocation,
    asked: &api::IssuesAsked,
) -> Result<api::IssueList, Problem> {
    if asked.limit > LISTED_MAX {
        let what = format!("at most {LISTED_MAX} issues are listed at once");
        return Err(Problem::new(ProblemCode::BadInput, what).with_hint("name labels to see fewer of them"));
    }
    let filter = IssueFilter {
        only_open: !asked.all,
        labels: parse_labels(&asked.labels)?,
        most: usize::try_from(asked.limit).unwrap_or(usize::MAX),
    };
    let standing = describe_tracker(place)?.ok_or_else(no_tracker_problem)?;
    let tracker = open(place)?;
    let found = || -> TrackerResult<_> { Ok((tracker.list_issues(&filter)?, tracker.list_unreadable()?)) };
    let (issues, unreadable) = found().map_err(|error| tracker_problem(&error))?;
    Ok(api::IssueList {
        unreadable: unreadable.iter().map(to_unreadable_issue).collect(),
        tracker: standing.kind.to_owned(),
        place: standing.place,
        issues: issues.iter().map(|issue| to_issue_line(issue, None)).collect(),
    })
}

fn to_unreadable_issue(error: &TrackerError) -> api::UnreadableIssue {
    match error {
        TrackerError::Malformed { what, why } => {
            api::UnreadableIssue { what: what.clone(), why: why.clone() }
        }
        other => api::UnreadableIssue { what: String::new(), why: other.to_string() },
    }
}

/// Everything about a pull request, or about the one of an issue.
pub(crate) fn show_pull_request(
    place: &ProjectLocation,
    asked: u64,
) -> Result<api::PullRequestDetail, Problem> {
    let number = parse_issue_number(asked)?;
    let pr = PrNumber::new(asked).expect("an issue has such a number, too");
    let tracker = open(place)?;
    let found = match tracker.pull_request(pr) {
        // They are counted together: whoever names an issue means the pull request of its branch.
        Err(TrackerError::NotFound { .. }) => {
            let of_issue = || -> TrackerResult<Option<PullRequest>> {
                tracker.read_issue(number)?;
                Ok(tracker.pull_requests_of(&branch_of(number, place.folder.side_name()))?.into_iter().next())
            };
            match of_issue().map_err(|error| tracker_problem(&error))? {
                Some(pull) => Ok(pull),
                None => {
                    let what = format!("issue {number} has no pull request");
                    return Err(Problem::new(ProblemCode::NotFound, what)
                        .with_hint(format!("`landfall show '#{asked}'` says how far it has come")));
                }
            }
        }
        other => other,
    };
    found.and_then(|pull| pull_request_detail(&*tracker, pull)).map_err(|error| tracker_problem(&error))
}

fn pull_request_detail(tracker: &dyn Tracker, pull: PullRequest) -> TrackerResult<api::PullRequestDetail> {
    let review = |it: TrackerReview| api::PullRequestReview {
        verdict: match it.verdict {
            ReviewVerdict::Approved => "approved",
            ReviewVerdict::ChangesRequested => "changes-requested",
            ReviewVerdict::Commented => "commented",
            ReviewVerdict::Dismissed => "dismissed",
            ReviewVerdict::Pending => "pending",
        }
        .to_owned(),
        body: strip_marker(&it.body),
        author: it.author,
        commit: it.commit.map(|commit| commit.to_string()),
    };
    let check =
        |it: ForgeCheck| api::PullRequestCheck { state: check_word(it.state).to_owned(), name: it.name };
    let (state, merged) = match &pull.state {
        PrState::Draft => ("draft", None),
        PrState::Open => ("open", None),
        PrState::Closed => ("closed", None),
        PrState::Merged { commit } => ("merged", commit.as_ref().map(ToString::to_string)),
    };
    Ok(api::PullRequestDetail {
        number: pull.number.get(),
        state: state.to_owned(),
        merged,
        reviews: tracker.list_reviews(pull.number)?.into_iter().map(review).collect(),
        checks: tracker.list_checks(&pull.head_sha)?.into_iter().map(check).collect(),
        comments: tracker
            .list_comments(CommentThread::PullRequest(pull.number))?
            .into_iter()
            .map(to_issue_comment)
            .collect(),
        branch: pull.head.map(|branch| branch.to_string()),
        base: pull.base.map(|branch| branch.to_string()),
        head: pull.head_sha.to_string(),
        author: pull.author,
        created_ms: pull.created.0,
        url: pull.url,
        body: strip_marker(&pull.body),
        title: pull.title,
    })
}

fn check_word(state: ForgeCheckState) -> &'static str {
    match state {
        ForgeCheckState::Waiting => "waiting",
        ForgeCheckState::Running => "running",
        ForgeCheckState::Done(Conclusion::Success) => "success",
        ForgeCheckState::Done(Conclusion::Failure) => "failure",
        ForgeCheckState::Done(Conclusion::Neutral) => "neutral",
        ForgeCheckState::Done(Conclusion::Cancelled) => "cancelled",
        ForgeCheckState::Done(Conclusion::Skipped) => "skipped",
        ForgeCheckState::Done(Conclusion::TimedOut) => "timed-out",
        ForgeCheckState::Done(Conclusion::ActionRequired) => "action-required",
        ForgeCheckState::Done(Conclusion::Stale) => "stale",
        ForgeCheckState::Done(Conclusion::StartupFailure) => "startup-failure",
    }
}

fn to_issue_comment(it: Comment) -> api::IssueComment {
    api::IssueComment { id: it.id, body: strip_marker(&it.body), author: it.author, at_ms: it.created.0 }
}

/// Everything about one issue.
pub(crate) fn show_issue(place: &ProjectLocation, asked: u64) -> Result<api::IssueDetail, Problem> {
    let number = parse_issue_number(asked)?;
    let tracker = open(place)?;
    issue_detail(&*tracker, number).map_err(|error| tracker_problem(&error))
}

/// Changes an issue.
pub(crate) fn change_issue(
    place: &ProjectLocation,
    asked: u64,
    change: &IssueChange,
) -> Result<api::IssueChanged, Problem> {
    let number = parse_issue_number(asked)?;
    // Words are read before anybody is asked.
    let (add, remove) = match change {
        IssueChange::Edit(api::IssueEdit { title: Some(title), .. }) if title.trim().is_empty() => {
            return Err(untitled_issue_problem());
        }
        IssueChange::Edit(edit) => (new_labels(&edit.add)?, parse_labels(&edit.remove)?),
        IssueChange::Comment(text) if text.trim().is_empty() => {
            return Err(Problem::new(ProblemCode::BadInput, "there is nothing to say"));
        }
        IssueChange::Tick { .. }
        | IssueChange::Comment(_)
        | IssueChange::Close
        | IssueChange::Drop
        | IssueChange::Reopen => (BTreeSet::new(), BTreeSet::new()),
    };
    let tracker = open(place)?;
    if let IssueChange::Tick { named, open } = change {
        let text = tick_criterion(&*tracker, number, named, *open)?;
        let issue = fetch_issue_line(&*tracker, number).map_err(|error| tracker_problem(&error))?;
        return Ok(api::IssueChanged { issue, text });
    }
    let done = || -> TrackerResult<String> {
        Ok(match change {
            IssueChange::Tick { .. } => unreachable!("it was done above"),
            IssueChange::Edit(edited) => edit_issue(&*tracker, number, edited, (&add, &remove))?,
            IssueChange::Comment(text) => {
                tracker.add_comment(CommentThread::Issue(number), &unique_marker(&[text]), text)?;
                format!("{number} has one comment more")
            }
            IssueChange::Close => {
                tracker.close_issue(number, CloseReason::Done)?;
                format!("{number} is closed as done")
            }
            IssueChange::Drop => {
                tracker.close_issue(number, CloseReason::NotPlanned)?;
                format!("{number} is closed as not planned")
            }
            IssueChange::Reopen => {
                tracker.reopen_issue(number)?;
                format!("{number} is open")
            }
        })
    };
    let text = done().map_err(|error| tracker_problem(&error))?;
    let issue = fetch_issue_line(&*tracker, number).map_err(|error| tracker_problem(&error))?;
    Ok(api::IssueChanged { issue, text })
}

/// Changes what was said of an issue, and says what is new about it.
fn edit_issue(
    tracker: &dyn Tracker,
    number: IssueNumber,
    edited: &api::IssueEdit,
    (add, remove): (&BTreeSet<Label>, &BTreeSet<Label>),
) -> TrackerResult<String> {
    let of = |others: &[api::IssueNumber]| {
        others.iter().filter_map(|it| IssueNumber::new(it.0)).collect::<Vec<_>>()
    };
    let (block, unblock) = (of(&edited.block), of(&edited.unblock));
    let before = tracker.read_issue(number)?;
    for other in &block {
        tracker.read_issue(*other)?; // one that is not there is told before anything is changed
    }
    if !unblock.is_empty() {
        can_unblock(tracker, number, &unblock)?;
    }
    let mut news = Vec::new();
    if edited.title.is_some() || edited.body.is_some() {
        // What an issue is known again by stays on it, whatever it says.
        let body = edited.body.as_ref().map(|body| match Marker::split_marker(&before.body) {
            Some((marker, _)) => marker.sign_text(body),
            None => body.clone(),
        });
        tracker.edit_issue(
            number,
            &IssueTextEdit { title: edited.title.as_deref().map(Title::from_text), body },
        )?;
        news.extend(edited.title.as_ref().map(|_| "a new title".to_owned()));
        news.extend(edited.body.as_ref().map(|_| "a new text".to_owned()));
    }
    if let Some(size) = edited.size {
        tracker.set_size(number, conversions::model_size(size))?;
        news.push(format!("the size {}", size.word()));
    }
    if !add.is_empty() || !remove.is_empty() {
        let there = tracker.change_labels(number, add, remove)?;
        news.push(match there.is_empty() {
            true => "no labels".to_owned(),
            false => format!("the labels {}", label_names(&there).join(", ")),
        });
    }
    for other in &unblock {
        tracker.remove_blocker(number, *other)?;
    }
    for other in &block {
        tracker.add_blocker(number, *other)?;
    }
    let mut text = match news.is_empty() {
        true if block.is_empty() && unblock.is_empty() => format!("{number} stays as it is"),
        true => String::new(),
        false => format!("{number} has {}", news.join(", ")),
    };
    if !block.is_empty() || !unblock.is_empty() {
        let left = tracker.blocked_by(number)?;
        let left: Vec<String> = left.iter().filter(|it| it.open).map(|it| it.place.to_string()).collect();
        let waits = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
        let joint = if text.is_empty() { number.to_string() } else { text + ", and" };
        text = format!("{joint} waits for {waits}");
    }
    Ok(text)
}

/// Whether an issue can be made to wait for these no longer, told before anything is changed. What it does not wait for is taken
/// away already, if there is such an issue, or was before it moved.
fn can_unblock(tracker: &dyn Tracker, number: IssueNumber, others: &[IssueNumber]) -> TrackerResult<()> {
    let waits = match tracker.blocked_by(number) {
        Ok(waits) => waits,
        // One of them is gone: that it is named is all that is left of it, and that can be taken away.
        Err(TrackerError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for other in others {
        if waits.iter().any(|it| it.place == IssuePlace::Here(*other)) {
            continue;
        }
        match tracker.read_issue(*other) {
            Ok(_) | Err(TrackerError::Moved { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ticks a box, or opens it again.
fn tick_criterion(
    tracker: &dyn Tracker,
    number: IssueNumber,
    named: &str,
    open: bool,
) -> Result<String, Problem> {
    let failed = |error| tracker_problem(&error);
    let issue = tracker.read_issue(number).map_err(failed)?;
    // Which words are commands does not matter for where boxes are.
    let criteria = Criteria::from_body(&issue.body, &BTreeSet::new());
    let found = find_box(&criteria, named).map_err(|why| {
        let all: Vec<String> =
            (1..).zip(&criteria.items).map(|(place, it): (u32, _)| format!("{place}. {}", it.text)).collect();
        let problem = Problem::new(ProblemCode::BadInput, format!("{number}: {why}"));
        match all.is_empty() {
            true => problem.with_hint("boxes are lines such as `- [ ] there is a README`"),
            false => problem.with_hint(format!("its boxes: {}", all.join("; "))),
        }
    })?;
    let which = BTreeSet::from([found.line]);
    let body = if open { untick_boxes(&issue.body, &which) } else { tick_lines(&issue.body, &which) };
    if body != issue.body {
        tracker.edit_issue(number, &IssueTextEdit { title: None, body: Some(body) }).map_err(failed)?;
    }
    let left =
        criteria.items.iter().filter(|it| if it.line == found.line { open } else { !it.ticked }).count();
    let now = if open { "open" } else { "ticked" };
    // A tick is somebody's word; where it says how it can be seen, that is what counts.
    let looked_at = match found.kind {
        VerifyKind::Auto if !open => {
            "; it has a hint, so it is looked at all the same when the issue is verified, and what is seen counts"
        }
        VerifyKind::Auto | VerifyKind::Opportunistic | VerifyKind::Observation(_) | VerifyKind::Manual => "",
    };
    Ok(format!(
        "{number}: \"{}\" is {now}; {} left{looked_at}",
        found.text,
        pluralize(left as u64, "open box").replace("boxs", "boxes")
    ))
}

/// What can be said about the tracker without asking it; none if nobody wants one.
pub(crate) fn describe_tracker(place: &ProjectLocation) -> Result<Option<TrackerDescription>, Problem> {
    with_tracker_env(place, |settings, around| tracker::describe_tracker(&settings.tracker, around))
}

const OPENED_FOR: Duration = Duration::from_secs(60); // whoever gives us another token does not wait long

pub(crate) fn open(place: &ProjectLocation) -> Result<Arc<dyn Tracker>, Problem> {
    let mut of = blake3::Hasher::new();
    of.update(place.settings_text().unwrap_or_default().as_bytes());
    of.update(place.folder.project_folder().as_os_str().as_bytes());
    for (name, value) in place.engine_environment() {
        of.update(b"\n").update(name.as_bytes()).update(b"\n").update(value.as_bytes());
    }
    let of = of.finalize();
    let mut opened = place.caches.tracker.lock();
    if let Some(opened) = opened.as_ref().filter(|it| it.of == of && it.at.elapsed() < OPENED_FOR) {
        return Ok(Arc::clone(&opened.tracker));
    }
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?;
    trust::check_trust(place, &settings)?;
    let tracker: Arc<dyn Tracker> = Arc::from(with_settings(place, &settings, tracker::open_tracker)?);
    *opened = Some(CachedTracker { at: Instant::now(), of, tracker: Arc::clone(&tracker) });
    Ok(tracker)
}

fn with_tracker_env<T>(
    place: &ProjectLocation,
    ask: impl FnOnce(&Settings, &TrackerEnv<'_>) -> TrackerResult<T>,
) -> Result<T, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?;
    with_settings(place, &settings, ask)
}

fn with_settings<T>(
    place: &ProjectLocation,
    settings: &Settings,
    ask: impl FnOnce(&Settings, &TrackerEnv<'_>) -> TrackerResult<T>,
) -> Result<T, Problem> {
    let environment = place.engine_environment();
    let named = |name: &str| {
        environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.to_string_lossy())
    };
    let author = ["GIT_AUTHOR_NAME", "USER", "LOGNAME"].into_iter().find_map(named);
    let author = author.map_or_else(|| "a person".to_owned(), |name| escape_beginning(&name, 60));
    let around =
        TrackerEnv { root: &place.root, folder: &place.folder, environment: &environment, author: &author };
    ask(settings, &around).map_err(|error| {
        // It is not opened for what settings say.
        Problem { code: ProblemCode::SettingsBroken, ..tracker_problem(&error) }
    })
}

/// Hears what a tracker sent by itself, unless it was heard before.
pub(crate) fn handle_webhook(
    place: &ProjectLocation,
    heard: &Mutex<Deliveries>,
    hook: &api::TrackerWebhook,
) -> Result<(), Problem> {
    let header =
        |name: &str| hook.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let delivery = Delivery::from_request(header, &hook.body);
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?;
    trust::check_trust(place, &settings)?;
    let settings = settings.tracker;
    let environment = place.engine_environment();
    let around =
        TrackerEnv { root: &place.root, folder: &place.folder, environment: &environment, author: "" };
    nudges::receive_delivery(&settings, &around, &hook.tracker, delivery, &mut |id| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).is_new(id)
    })
    .map_err(|error| {
        let code = match &error {
            WebhookRejection::NotSet => ProblemCode::NotFound,
            WebhookRejection::NotBelieved(DeliveryError::Signature) => ProblemCode::Forbidden,
            WebhookRejection::NotBelieved(DeliveryError::Repository(_) | DeliveryError::Malformed(_)) => {
                ProblemCode::BadInput
            }
            WebhookRejection::Secret(_) | WebhookRejection::Mark(_) => ProblemCode::Internal,
        };
        Problem::new(code, error.to_string())
    })
}

fn no_tracker_problem() -> Problem {
    Problem::new(
        ProblemCode::SettingsBroken,
        "no tracker is wanted: `tracker.kind` in landfall.toml is `none`",
    )
    .with_hint("take it out; issues are files then")
}

fn issue_detail(tracker: &dyn Tracker, number: IssueNumber) -> TrackerResult<api::IssueDetail> {
    let issue = tracker.read_issue(number)?;
    let size = tracker.read_size(number)?.map(|seen| seen.size);
    let mut notes = Vec::new();
    let children = match issue.children {
        0 => Vec::new(),
        _ => match tracker.list_children(number) {
            Ok(children) => children.iter().map(|child| to_issue_line(&child.issue, None)).collect(),
            Err(error @ TrackerError::Refused { .. }) => {
                notes.push(error.to_string());
                Vec::new()
            }
            Err(error) => return Err(error),
        },
    };
    let parent = match tracker.find_parent(number) {
        Ok(parent) => parent,
        Err(error @ (TrackerError::Refused { .. } | TrackerError::Forbidden { .. })) => {
            notes.push(error.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    let blockers = blockers_of(tracker, &issue)?;
    let comments =
        if issue.comments == 0 { Vec::new() } else { tracker.list_comments(CommentThread::Issue(number))? };
    Ok(api::IssueDetail {
        body: strip_marker(&issue.body),
        created_ms: issue.created.0,
        parent: parent.map(|place| place.to_string()),
        children,
        blocked_by: blockers
            .into_iter()
            .map(|blocker| api::IssueBlocker { issue: blocker.place.to_string(), open: blocker.open })
            .collect(),
        comments: comments.into_iter().map(to_issue_comment).collect(),
        notes,
        issue: to_issue_line(&issue, size.map(conversions::to_api_size)),
    })
}

/// The text above the line we know our own texts by.
fn strip_marker(body: &str) -> String {
    Marker::split_marker(body).map_or(body, |(_, above)| above).to_owned()
}

fn fetch_issue_line(tracker: &dyn Tracker, number: IssueNumber) -> TrackerResult<api::IssueLine> {
    let issue = tracker.read_issue(number)?;
    let size = tracker.read_size(number)?.map(|seen| conversions::to_api_size(seen.size));
    Ok(to_issue_line(&issue, size))
}

fn to_issue_line(issue: &Issue, size: Option<api::Size>) -> api::IssueLine {
    api::IssueLine {
        number: issue.number.get(),
        title: issue.title.clone(),
        state: match issue.state {
            TrackerIssueState::Open => api::IssueState::Open,
            TrackerIssueState::Closed { why: CloseReason::Done, .. } => api::IssueState::Done,
            TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. } => api::IssueState::NotPlanned,
        },
        labels: label_names(&issue.labels),
        size: size.or_else(|| issue.labelled_size().map(conversions::to_api_size)),
        author: issue.author.clone(),
        comments: issue.comments,
        updated_ms: issue.updated.0,
        url: issue.url.clone(),
    }
}

fn label_names(labels: &BTreeSet<Label>) -> Vec<String> {
    labels.iter().map(|label| label.as_str().to_owned()).collect()
}

fn parse_labels(texts: &[String]) -> Result<BTreeSet<Label>, Problem> {
    let bad = |error: NameError| Problem::new(ProblemCode::BadInput, error.to_string());
    texts.iter().map(|text| Label::new(text).map_err(bad)).collect()
}

/// Labels that somebody gives an issue. One that is to be a size is one.
fn new_labels(texts: &[String]) -> Result<BTreeSet<Label>, Problem> {
    let labels = parse_labels(texts)?;
    let no_size =
        |label: &&Label| label.name_within(SIZE_FAMILY).is_some_and(|size| size.parse::<TaskSize>().is_err());
    match labels.iter().find(no_size) {
        None => Ok(labels),
        Some(label) => {
            let known: Vec<String> =
                TaskSize::ALL.iter().map(|size| format!("{SIZE_FAMILY}{size}")).collect();
            Err(Problem::new(ProblemCode::BadInput, format!("`{label}` is no size"))
                .with_hint(format!("known: {}", known.join(", "))))
        }
    }
}

/// What of the tracker cannot be read, a line each. Only files are asked: they are here.
pub(crate) fn list_unreadable_files(place: &ProjectLocation) -> Result<Vec<String>, Problem> {
    let unreadable = open(place)?.list_unreadable().map_err(|error| tracker_problem(&error))?;
    Ok(unreadable.iter().map(ToString::to_string).collect())
}

pub(crate) fn parse_issue_number(number: u64) -> Result<IssueNumber, Problem> {
    IssueNumber::new(number)
        .ok_or_else(|| Problem::new(ProblemCode::BadInput, "the numbers of issues begin at 1"))
}

/// What a person says twice is meant twice, so each time has a marker of its own.
fn unique_marker(texts: &[&str]) -> Marker {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(text.as_bytes()).update(&[0]);
    }
    hasher.update(&std::process::id().to_le_bytes());
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    hasher.update(&since.as_nanos().to_le_bytes());
    let hash = hasher.finalize().to_hex();
    Marker::new(&format!("by-hand/{}", &hash.as_str()[..16])).expect("hexadecimal digits are a key")
}

/// What a tracker did not do, for programs and people.
pub(crate) fn tracker_problem(error: &TrackerError) -> Problem {
    let code = match error {
        TrackerError::NotFound { .. } => ProblemCode::NotFound,
        // It is the tracker that does not let us in: whoever asks us is no stranger here.
        TrackerError::Forbidden { .. } | TrackerError::Unauthorized { .. } => ProblemCode::NotNow,
        TrackerError::RateLimited { .. } | TrackerError::SecondaryLimit { .. } => ProblemCode::TooMany,
        TrackerError::Refused { .. } => ProblemCode::BadInput,
        TrackerError::Malformed { .. } => ProblemCode::Corrupt,
        TrackerError::Moved { .. }
        | TrackerError::Conflict { .. }
        | TrackerError::Unavailable { .. }
        | TrackerError::Stopped { .. } => ProblemCode::NotNow,
    };
    let hint = match error.retry_time().flatten() {
        Some(until) => format!("try again after {}", clock::format_when_or_left(until)),
        None => error.hint(),
    };
    Problem::new(code, error.to_string()).with_hint(hint)
}
