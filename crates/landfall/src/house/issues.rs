//! Issues of the project's tracker, read and changed for a person. The tracker orders those who write; the engine is not asked.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::engine::load_settings;
use landfall_engine::settings::Settings;
use landfall_engine::tracker::nudges::{self, NotHeard};
use landfall_engine::tracker::{self, Around, Standing};
use landfall_trackers::github::webhook::{Deliveries, Delivery, DeliveryError};
use landfall_trackers::tracker::{
    Answer, CloseWhy, Issue, IssueFilter, IssueNumber, IssueState, Label, Marker, NameError, NewIssue,
    Place as IssuePlace, Thread, Title, Tracker, TrackerError, shown,
};

use super::place::Place;
use super::{moment, problem, wire};

/// An issue that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueAsked {
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its size.
    pub size: Option<api::Size>,
    /// The issue it is a part of.
    pub parent: Option<u64>,
    /// Issues it waits for.
    pub blocked_by: Vec<u64>,
}

/// What is to become of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueChange {
    /// Something is said about it.
    Comment(String),
    /// It is done.
    Close,
    /// Nobody will do it.
    Drop,
    /// It is open again.
    Reopen,
    /// Labels come and go.
    Label {
        /// Those that come.
        add: Vec<String>,
        /// Those that go.
        remove: Vec<String>,
    },
    /// It is this big.
    Size(api::Size),
}

/// Which issues are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuesAsked {
    /// Closed ones too.
    pub all: bool,
    /// With all of these labels.
    pub labels: Vec<String>,
    /// At most so many.
    pub limit: u32,
}

/// Makes an issue.
pub(super) fn make(place: &Place, asked: &IssueAsked) -> Result<api::IssueMade, Problem> {
    let labels = labels(&asked.labels)?;
    let parent = asked.parent.map(number).transpose()?;
    let blockers = asked.blocked_by.iter().map(|it| number(*it)).collect::<Result<Vec<_>, _>>()?;
    if asked.title.trim().is_empty() {
        return Err(Problem::new(ProblemCode::BadInput, "an issue needs a title"));
    }
    let tracker = open(place)?;
    // What it is part of or waits for is there, or nothing is made.
    for other in parent.iter().chain(&blockers) {
        tracker.issue(*other).map_err(|error| tracker_problem(&error))?;
    }
    let made = tracker.create_issue(&NewIssue {
        marker: marker(&[&asked.title, &asked.body]),
        title: Title::of(&asked.title),
        body: asked.body.clone(),
        labels,
    });
    let issue = made.map_err(|error| tracker_problem(&error))?.into_inner();
    let number = issue.number;
    let rest = || -> Answer<()> {
        if let Some(size) = asked.size {
            tracker.set_size(number, wire::model_size(size))?;
        }
        if let Some(parent) = parent {
            tracker.add_child(parent, number)?;
        }
        for blocker in blockers {
            tracker.add_blocker(number, blocker)?;
        }
        Ok(())
    };
    rest().and_then(|()| line_now(&*tracker, number)).map(|issue| api::IssueMade { issue }).map_err(|error| {
        let problem = tracker_problem(&error);
        Problem {
            message: format!("{number} is made, but not all that was asked: {}", problem.message),
            ..problem
        }
    })
}

/// The issues there are.
pub(super) fn list(place: &Place, asked: &IssuesAsked) -> Result<api::IssueList, Problem> {
    let filter = IssueFilter {
        only_open: !asked.all,
        labels: labels(&asked.labels)?,
        most: usize::try_from(asked.limit).unwrap_or(usize::MAX),
    };
    let standing = look(place)?.ok_or_else(nowhere)?;
    let issues = open(place)?.issues(&filter).map_err(|error| tracker_problem(&error))?;
    Ok(api::IssueList {
        tracker: standing.kind.to_owned(),
        place: standing.place,
        issues: issues.iter().map(|issue| line(issue, None)).collect(),
    })
}

/// Everything about one issue.
pub(super) fn show(place: &Place, asked: u64) -> Result<api::IssueDetail, Problem> {
    let number = number(asked)?;
    let tracker = open(place)?;
    detail(&*tracker, number).map_err(|error| tracker_problem(&error))
}

/// Changes an issue.
pub(super) fn change(place: &Place, asked: u64, change: &IssueChange) -> Result<api::IssueChanged, Problem> {
    let number = number(asked)?;
    // Words are read before anybody is asked.
    let (add, remove) = match change {
        IssueChange::Label { add, remove } => (labels(add)?, labels(remove)?),
        IssueChange::Comment(_)
        | IssueChange::Close
        | IssueChange::Drop
        | IssueChange::Reopen
        | IssueChange::Size(_) => (BTreeSet::new(), BTreeSet::new()),
    };
    let tracker = open(place)?;
    let done = || -> Answer<String> {
        Ok(match change {
            IssueChange::Comment(text) => {
                tracker.comment(Thread::Issue(number), &marker(&[text]), text)?;
                format!("{number} has one comment more")
            }
            IssueChange::Close => {
                tracker.close_issue(number, CloseWhy::Done)?;
                format!("{number} is closed as done")
            }
            IssueChange::Drop => {
                tracker.close_issue(number, CloseWhy::NotPlanned)?;
                format!("{number} is closed as not planned")
            }
            IssueChange::Reopen => {
                tracker.reopen_issue(number)?;
                format!("{number} is open")
            }
            IssueChange::Label { .. } => {
                let there = tracker.change_labels(number, &add, &remove)?;
                match there.is_empty() {
                    true => format!("{number} has no labels"),
                    false => format!("{number} has the labels {}", words(&there).join(", ")),
                }
            }
            IssueChange::Size(size) => {
                tracker.set_size(number, wire::model_size(*size))?;
                format!("{number} is of size {}", size.word())
            }
        })
    };
    let text = done().map_err(|error| tracker_problem(&error))?;
    let issue = line_now(&*tracker, number).map_err(|error| tracker_problem(&error))?;
    Ok(api::IssueChanged { issue, text })
}

/// What can be said about the tracker without asking it; none if nobody wants one.
pub(super) fn look(place: &Place) -> Result<Option<Standing>, Problem> {
    with(place, |settings, around| tracker::look(&settings.tracker, around))
}

pub(super) fn open(place: &Place) -> Result<Box<dyn Tracker>, Problem> {
    with(place, tracker::open)
}

fn with<T>(place: &Place, ask: impl FnOnce(&Settings, &Around<'_>) -> Answer<T>) -> Result<T, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problem::open(&error))?;
    let environment = place.environment();
    let named = |name: &str| {
        environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.to_string_lossy())
    };
    let author = ["GIT_AUTHOR_NAME", "USER", "LOGNAME"].into_iter().find_map(named);
    let author = author.map_or_else(|| "a person".to_owned(), |name| shown(&name, 60));
    let around =
        Around { root: &place.root, folder: &place.folder, environment: &environment, author: &author };
    ask(&settings, &around).map_err(|error| {
        // It is not opened for what settings say.
        Problem { code: ProblemCode::SettingsBroken, ..tracker_problem(&error) }
    })
}

/// Hears what a tracker sent by itself, unless it was heard before.
pub(super) fn hear(place: &Place, heard: &Mutex<Deliveries>, hook: &api::Hook) -> Result<(), Problem> {
    let header =
        |name: &str| hook.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let delivery = Delivery::of(header, &hook.body);
    let settings = load_settings(&place.root).map_err(|error| problem::open(&error))?.tracker;
    let environment = place.environment();
    let around = Around { root: &place.root, folder: &place.folder, environment: &environment, author: "" };
    nudges::hear(&settings, &around, &hook.tracker, delivery, &mut |id| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).is_new(id)
    })
    .map_err(|error| {
        let code = match &error {
            NotHeard::NotSet => ProblemCode::NotFound,
            NotHeard::NotBelieved(DeliveryError::Signature) => ProblemCode::Forbidden,
            NotHeard::NotBelieved(DeliveryError::Repository(_) | DeliveryError::Malformed(_)) => {
                ProblemCode::BadInput
            }
            NotHeard::Secret(_) | NotHeard::Mark(_) => ProblemCode::Internal,
        };
        Problem::new(code, error.to_string())
    })
}

fn nowhere() -> Problem {
    Problem::new(
        ProblemCode::SettingsBroken,
        "no tracker is wanted: `tracker.kind` in landfall.toml is `none`",
    )
    .hint("take it out; issues are files then")
}

fn detail(tracker: &dyn Tracker, number: IssueNumber) -> Answer<api::IssueDetail> {
    let issue = tracker.issue(number)?;
    let size = tracker.size(number)?.map(|seen| seen.size);
    let mut notes = Vec::new();
    let children = match issue.children {
        0 => Vec::new(),
        _ => match tracker.children(number) {
            Ok(children) => children.iter().map(|child| line(&child.issue, None)).collect(),
            Err(error @ TrackerError::Refused { .. }) => {
                notes.push(error.to_string());
                Vec::new()
            }
            Err(error) => return Err(error),
        },
    };
    let blockers = if issue.blockers == Some(0) { Vec::new() } else { tracker.blocked_by(number)? };
    let comments = if issue.comments == 0 { Vec::new() } else { tracker.comments(Thread::Issue(number))? };
    Ok(api::IssueDetail {
        body: unsigned(&issue.body),
        created_ms: issue.created.0,
        children,
        blocked_by: blockers
            .into_iter()
            .map(|blocker| api::IssueBlocker {
                issue: match blocker.place {
                    IssuePlace::Here(number) => number.to_string(),
                    IssuePlace::Elsewhere(place) => place,
                },
                open: blocker.open,
            })
            .collect(),
        comments: comments
            .into_iter()
            .map(|comment| api::IssueComment {
                id: comment.id,
                body: unsigned(&comment.body),
                author: comment.author,
                at_ms: comment.created.0,
            })
            .collect(),
        notes,
        issue: line(&issue, size.map(wire::size)),
    })
}

/// The text above the line we know our own texts by.
fn unsigned(body: &str) -> String {
    Marker::of(body).map_or(body, |(_, above)| above).to_owned()
}

fn line_now(tracker: &dyn Tracker, number: IssueNumber) -> Answer<api::IssueLine> {
    let issue = tracker.issue(number)?;
    let size = tracker.size(number)?.map(|seen| wire::size(seen.size));
    Ok(line(&issue, size))
}

fn line(issue: &Issue, size: Option<api::Size>) -> api::IssueLine {
    api::IssueLine {
        number: issue.number.get(),
        title: issue.title.clone(),
        state: match issue.state {
            IssueState::Open => api::IssueState::Open,
            IssueState::Closed { why: CloseWhy::Done, .. } => api::IssueState::Done,
            IssueState::Closed { why: CloseWhy::NotPlanned, .. } => api::IssueState::NotPlanned,
        },
        labels: words(&issue.labels),
        size: size.or_else(|| issue.labelled_size().map(wire::size)),
        author: issue.author.clone(),
        comments: issue.comments,
        updated_ms: issue.updated.0,
        url: issue.url.clone(),
    }
}

fn words(labels: &BTreeSet<Label>) -> Vec<String> {
    labels.iter().map(|label| label.as_str().to_owned()).collect()
}

fn labels(texts: &[String]) -> Result<BTreeSet<Label>, Problem> {
    let bad = |error: NameError| Problem::new(ProblemCode::BadInput, error.to_string());
    texts.iter().map(|text| Label::new(text).map_err(bad)).collect()
}

pub(super) fn number(number: u64) -> Result<IssueNumber, Problem> {
    IssueNumber::new(number)
        .ok_or_else(|| Problem::new(ProblemCode::BadInput, "the numbers of issues begin at 1"))
}

/// What a person says twice is meant twice, so each time has a marker of its own.
fn marker(texts: &[&str]) -> Marker {
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
pub(super) fn tracker_problem(error: &TrackerError) -> Problem {
    let code = match error {
        TrackerError::NotFound { .. } => ProblemCode::NotFound,
        TrackerError::Forbidden { .. } => ProblemCode::Forbidden,
        TrackerError::Unauthorized { .. } => ProblemCode::Unauthorized,
        TrackerError::RateLimited { .. } | TrackerError::SecondaryLimit { .. } => ProblemCode::TooMany,
        TrackerError::Refused { .. } => ProblemCode::BadInput,
        TrackerError::Malformed { .. } => ProblemCode::Corrupt,
        TrackerError::Moved { .. } | TrackerError::Conflict { .. } | TrackerError::Unavailable { .. } => {
            ProblemCode::NotNow
        }
    };
    let hint = match error.passes().flatten() {
        Some(until) => format!("try again after {}", moment::when_model(until)),
        None => error.hint(),
    };
    Problem::new(code, error.to_string()).hint(hint)
}
