//! GitHub, by its REST interface. A client of our own over a plain HTTP library: blocking, as the engine's threads are, and few
//! dependencies.
//!
//! What is made bears a marker, is looked for before and after, and a marker counts only in what our own account wrote: anybody may
//! write one into a comment.

mod actions;
mod address;
mod budget;
mod client;
mod etags;
mod projects;
mod token;
pub mod webhook;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use landfall_model::{TaskSize, Timestamp};
use serde_json::{Map, Value, json};

use crate::tracker::{
    Blocker, ChildIssue, CloseReason, Comment, CommentThread, CommitSha, CompletedMerge, CreateOutcome,
    Cursor, FailedJob, ForgeCheck, Issue, IssueFilter, IssueLocation, IssueNumber, IssueSize, IssueTextEdit,
    Label, LabelSpec, Marker, NewIssue, NewPullRequest, NewReview, PrNumber, PrState, PullRequest,
    PullRequestMerge, RepoName, ReviewAction, SIZE_FAMILY, SizeSource, Tracker, TrackerBranchName,
    TrackerChange, TrackerClock, TrackerError, TrackerIssueState, TrackerResult, TrackerReview,
};
pub use address::GithubEndpoints;
use address::GithubPath;
pub use client::GithubRetryPolicy;
use client::{GithubClient, GithubMethod, GithubRequest, RetryEffect, read};
pub use token::{GithubToken, TokenProvider, TokenSources};
use wire::{
    CheckRuns, CombinedStatus, CommentWire, EventWire, IssueWire, LabelWire, MergeWire, PullWire, Repository,
    ReviewWire, User, malformed_error, parse_labels,
};

/// One repository on one GitHub, as one account.
pub struct Github {
    client: GithubClient,
    repository: RepoName,
    size_field: Option<String>,
    me: OnceLock<GithubIdentity>,
}

/// What is needed to speak with it.
pub struct GithubSetup {
    /// Which GitHub.
    pub base: GithubEndpoints,
    /// Which repository.
    pub repository: RepoName,
    /// Who we are.
    pub token: TokenSources,
    /// The proxy on the way, if there is one.
    pub proxy: Option<String>,
    /// What the size field of projects is called; none if nobody has one.
    pub size_field: Option<String>,
    /// How long to go on before whoever asked is told.
    pub patience: GithubRetryPolicy,
    /// The time.
    pub clock: Arc<dyn TrackerClock>,
}

/// Who we are to GitHub.
#[derive(Debug)]
enum GithubIdentity {
    /// An account.
    Account(String),
    /// An app, which has no account to ask for: what bots write counts as ours.
    App,
}

/// GitHub cuts nothing; it refuses what is longer.
const BODY_CHARS_MAX: usize = 65_000;
/// What was said before is among the newest; further back nobody means the same thing.
const LOOK_BACK_ISSUES: usize = 300;
/// Others change labels, too. Three of them in a row is a fight that a person should see.
const SWAPS_MAX: u32 = 4;
/// GitHub's moments are seconds: what changed just now may change again within the same one.
const UNSETTLED_MS: i64 = 2_000;

impl Github {
    /// The tracker of a repository. Nothing is asked until something is wanted.
    pub fn new(setup: GithubSetup) -> TrackerResult<Self> {
        let proxy = setup.proxy.as_deref().map(ureq::Proxy::new).transpose();
        let proxy = proxy.map_err(|error| malformed_error("the address of the proxy", &error.to_string()))?;
        Ok(Self {
            client: GithubClient::new(setup.base, setup.token, proxy, setup.patience, setup.clock),
            repository: setup.repository,
            size_field: setup.size_field,
            me: OnceLock::new(),
        })
    }

    fn path<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> GithubPath {
        let path = GithubPath::from_parts(["repos", self.repository.owner(), self.repository.name()]);
        parts.into_iter().fold(path, GithubPath::append_part)
    }

    fn item_path<'a>(
        &self,
        below: &str,
        number: u64,
        parts: impl IntoIterator<Item = &'a str>,
    ) -> GithubPath {
        parts.into_iter().fold(self.path([below, &number.to_string()]), GithubPath::append_part)
    }

    fn current_identity(&self) -> TrackerResult<&GithubIdentity> {
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        let me = match self
            .client
            .fetch_json::<User>(&GithubRequest::get("ask who we are", GithubPath::from_parts(["user"])))
        {
            Ok(user) => GithubIdentity::Account(user.login),
            // The token of an app has no account behind it.
            Err(TrackerError::Forbidden { .. } | TrackerError::NotFound { .. }) => GithubIdentity::App,
            Err(error) => return Err(error),
        };
        Ok(self.me.get_or_init(|| me))
    }

    fn is_ours(&self, author: Option<&User>) -> TrackerResult<bool> {
        let Some(author) = author else { return Ok(false) };
        Ok(match self.current_identity()? {
            GithubIdentity::Account(login) => login.eq_ignore_ascii_case(&author.login),
            GithubIdentity::App => author.kind == "Bot",
        })
    }

    /// Makes something that must not be there twice: looks, makes, and looks again when the answer was lost.
    fn create_once<T>(
        &self,
        what: &str,
        find: impl Fn() -> TrackerResult<Option<T>>,
        make: impl Fn() -> TrackerResult<T>,
    ) -> TrackerResult<CreateOutcome<T>> {
        let mut tried = 0;
        let mut lost = None;
        loop {
            if let Some(found) = find()? {
                // One that was looked for in vain before was made by us, just now.
                return Ok(if lost.is_some() {
                    CreateOutcome::Made(found)
                } else {
                    CreateOutcome::Found(found)
                });
            }
            tried += 1;
            if tried > self.client.patience.tries_max {
                let why = lost.unwrap_or_else(|| "it was made and cannot be found".to_owned());
                return Err(TrackerError::Unavailable { what: what.to_owned(), why, unsure: true });
            }
            match make() {
                Ok(made) => return Ok(CreateOutcome::Made(made)),
                Err(TrackerError::Unavailable { why, unsure: true, .. }) => {
                    lost = Some(why);
                    self.client.wait_before_retry(what, tried)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn issue_wire(&self, number: IssueNumber) -> TrackerResult<IssueWire> {
        let what = format!("read issue {number}");
        let wire: IssueWire =
            self.client.fetch_json(&GithubRequest::get(&what, self.item_path("issues", number.get(), [])))?;
        if wire.pull_request.is_some() {
            let hint = format!("{number} is a pull request: `landfall issue pr {}` shows it", number.get());
            return Err(TrackerError::NotFound { what, hint });
        }
        Ok(wire)
    }

    fn patch_issue(&self, what: &str, number: IssueNumber, body: Value) -> TrackerResult<Issue> {
        let path = self.item_path("issues", number.get(), []);
        let call = GithubRequest::write(what, GithubMethod::Patch, path, body, RetryEffect::Same);
        self.client.fetch_json_uncached::<IssueWire>(&call)?.into_issue()
    }

    fn current_labels(&self, number: IssueNumber) -> TrackerResult<BTreeSet<Label>> {
        let call = GithubRequest::get(
            format!("read the labels of {number}"),
            self.item_path("issues", number.get(), ["labels"]),
        );
        // An issue has at most 100, which is one page.
        Ok(parse_labels(self.client.fetch_json_uncached::<Vec<LabelWire>>(&call.query("per_page", 100))?))
    }

    fn add_labels<'a>(&self, number: IssueNumber, add: impl Iterator<Item = &'a Label>) -> TrackerResult<()> {
        let add: Vec<&str> = add.map(Label::as_str).collect();
        if add.is_empty() {
            return Ok(());
        }
        let path = self.item_path("issues", number.get(), ["labels"]);
        let what = format!("label {number} with {}", add.join(", "));
        self.client.send_only(&GithubRequest::write(
            what,
            GithubMethod::Post,
            path,
            json!({ "labels": add }),
            RetryEffect::Same,
        ))
    }

    fn remove_label(&self, number: IssueNumber, label: &Label) -> TrackerResult<()> {
        let path = self.item_path("issues", number.get(), ["labels", label.as_str()]);
        let call = GithubRequest::delete(format!("take the label {label} from {number}"), path);
        match self.client.send_only(&call) {
            Err(TrackerError::NotFound { .. }) => Ok(()), // somebody else took it, or we did and did not hear
            other => other,
        }
    }

    fn as_comment(&self, wire: CommentWire) -> TrackerResult<Comment> {
        Ok(Comment {
            id: wire.id,
            ours: self.is_ours(wire.user.as_ref())?,
            author: wire.user.map(|user| user.login),
            body: wire.body.unwrap_or_default(),
            created: wire.created_at,
        })
    }

    fn comments_since(&self, thread: CommentThread, since: Option<Timestamp>) -> TrackerResult<Vec<Comment>> {
        let mut call = GithubRequest::get(
            format!("read the comments of {thread}"),
            self.item_path("issues", thread.number(), ["comments"]),
        );
        if let Some(since) = since {
            call = call.query("since", format_rfc3339(since));
        }
        let mut seen = BTreeSet::new();
        let mut comments = Vec::new();
        for wire in self.client.fetch_list::<CommentWire>(call)? {
            // Pages shift while they are read.
            if seen.insert(wire.id) {
                comments.push(self.as_comment(wire)?);
            }
        }
        Ok(comments)
    }

    /// The comment with this marker. If a request arrived twice there are two; the first stays.
    fn find_marked_comment(
        &self,
        thread: CommentThread,
        marker: &Marker,
        since: Option<Timestamp>,
    ) -> TrackerResult<Option<Comment>> {
        let comments = self.comments_since(thread, since)?.into_iter();
        let mut marked = comments.filter(|comment| comment.ours && marker.is_on(&comment.body));
        let first = marked.next();
        for again in marked {
            let path = self.path(["issues", "comments", &again.id.to_string()]);
            let call = GithubRequest::delete(format!("take back a comment that {thread} has twice"), path);
            match self.client.send_only(&call) {
                Ok(()) | Err(TrackerError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(first)
    }

    /// The issue with this marker. If a request arrived twice there are two; the first stays open.
    fn marked_issue(&self, marker: &Marker) -> TrackerResult<Option<Issue>> {
        let mut call = GithubRequest::get("look for an issue of ours", self.path(["issues"]))
            .query("state", "all")
            .query("sort", "created")
            .query("direction", "desc");
        if let GithubIdentity::Account(login) = self.current_identity()? {
            call = call.query("creator", login);
        }
        let pages =
            self.client.fetch_pages(call, read::<Vec<IssueWire>>, |items| items.len() >= LOOK_BACK_ISSUES)?;
        let mut marked = BTreeMap::new();
        for wire in pages.items {
            let bears = wire.body.as_deref().is_some_and(|body| marker.is_on(body));
            if bears && wire.pull_request.is_none() && self.is_ours(wire.user.as_ref())? {
                marked.insert(wire.number, wire);
            }
        }
        let mut marked = marked.into_values().map(IssueWire::into_issue);
        let first = marked.next().transpose()?;
        for again in marked {
            let again = again?;
            if again.state.is_open() {
                self.close_issue(again.number, CloseReason::NotPlanned)?;
            }
        }
        Ok(first)
    }

    fn pull_wire(&self, number: PrNumber) -> TrackerResult<PullWire> {
        let path = self.item_path("pulls", number.get(), []);
        self.client.fetch_json_uncached(&GithubRequest::get(format!("read pull request {number}"), path))
    }

    fn as_review(&self, wire: ReviewWire) -> TrackerResult<TrackerReview> {
        Ok(TrackerReview {
            id: wire.id,
            ours: self.is_ours(wire.user.as_ref())?,
            author: wire.user.map(|user| user.login),
            verdict: wire.state.into(),
            body: wire.body.unwrap_or_default(),
            commit: wire.commit_id.as_deref().map(CommitSha::new).transpose()?,
        })
    }

    /// Where an issue is, seen from here.
    fn locate_issue(&self, wire: &IssueWire) -> TrackerResult<IssueLocation> {
        let here = self.repository.to_string();
        match wire.repository_name() {
            Some(repository) if !repository.eq_ignore_ascii_case(&here) => {
                Ok(IssueLocation::Elsewhere(format!("{repository}#{}", wire.number)))
            }
            Some(_) | None => {
                let number = IssueNumber::new(wire.number);
                number.map(IssueLocation::Here).ok_or_else(|| malformed_error("issue", "its number is 0"))
            }
        }
    }

    /// A list below an issue that older servers do not have: theirs is empty, if the issue itself is there.
    fn list_related(&self, number: IssueNumber, what: &str, parts: &[&str]) -> TrackerResult<Vec<IssueWire>> {
        let path = self.item_path("issues", number.get(), parts.iter().copied());
        match self.client.fetch_list(GithubRequest::get(what, path)) {
            Err(TrackerError::NotFound { .. }) => self.issue_wire(number).map(|_| Vec::new()),
            other => other,
        }
    }

    fn add_relation(
        &self,
        what: &str,
        number: IssueNumber,
        parts: &[&str],
        body: Value,
    ) -> TrackerResult<()> {
        let path = self.item_path("issues", number.get(), parts.iter().copied());
        self.client.send_only(&GithubRequest::write(what, GithubMethod::Post, path, body, RetryEffect::Twice))
    }
}

/// A moment as GitHub writes them.
fn format_rfc3339(at: Timestamp) -> String {
    let seconds = jiff::Timestamp::from_second(at.0.div_euclid(1_000)).unwrap_or_default();
    seconds.to_string()
}

/// A text that GitHub takes, with room for what comes below it.
fn fit_body(text: &str) -> String {
    const CUT: &str = "\n\n(cut: the whole is too long for GitHub)";
    if text.chars().count() <= BODY_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(BODY_CHARS_MAX).chain(CUT.chars()).collect()
}

impl Tracker for Github {
    fn keeps_branches(&self) -> bool {
        true
    }

    fn default_branch(&self) -> TrackerResult<Option<TrackerBranchName>> {
        // It may be renamed at any time, so it is asked for each time; what has not changed costs nothing.
        let call = GithubRequest::get(format!("read about {}", self.repository), self.path([]));
        let repository: Repository = self.client.fetch_json(&call)?;
        if !repository.full_name.eq_ignore_ascii_case(&self.repository.to_string()) {
            return Err(TrackerError::Moved { what: call.what, to: repository.full_name });
        }
        Ok(Some(TrackerBranchName::new(&repository.default_branch)?))
    }

    fn read_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        self.issue_wire(number)?.into_issue()
    }

    fn list_issues(&self, filter: &IssueFilter) -> TrackerResult<Vec<Issue>> {
        let mut call = GithubRequest::get("list issues", self.path(["issues"]))
            .query("state", if filter.only_open { "open" } else { "all" })
            .query("sort", "created")
            .query("direction", "desc");
        if !filter.labels.is_empty() {
            let labels: Vec<&str> = filter.labels.iter().map(Label::as_str).collect();
            call = call.query("labels", labels.join(","));
        }
        let plain = |items: &[IssueWire]| items.iter().filter(|wire| wire.pull_request.is_none()).count();
        let pages =
            self.client.fetch_pages(call, read::<Vec<IssueWire>>, |items| plain(items) >= filter.most)?;
        let mut seen = BTreeSet::new();
        let issues =
            pages.items.into_iter().filter(|wire| wire.pull_request.is_none() && seen.insert(wire.number));
        issues.take(filter.most).map(IssueWire::into_issue).collect()
    }

    fn list_unreadable(&self) -> TrackerResult<Vec<TrackerError>> {
        Ok(Vec::new()) // nobody writes its records but itself
    }

    fn create_issue(&self, new: &NewIssue) -> TrackerResult<CreateOutcome<Issue>> {
        let what = format!("create the issue \"{}\"", new.title);
        let labels: Vec<&str> = new.labels.iter().map(Label::as_str).collect();
        let body = json!({
            "title": new.title.as_str(),
            "body": new.marker.sign_text(&fit_body(&new.body)),
            "labels": labels,
        });
        let call =
            GithubRequest::write(&what, GithubMethod::Post, self.path(["issues"]), body, RetryEffect::Twice);
        let make = || self.client.fetch_json_uncached::<IssueWire>(&call)?.into_issue();
        let once = self.create_once(&what, || self.marked_issue(&new.marker), make)?;
        if let CreateOutcome::Made(made) = &once
            && let Some(first) = self.marked_issue(&new.marker)?
            && first.number != made.number
        {
            return Ok(CreateOutcome::Made(first));
        }
        Ok(once)
    }

    fn edit_issue(&self, number: IssueNumber, edit: &IssueTextEdit) -> TrackerResult<Issue> {
        let mut body = Map::new();
        if let Some(title) = &edit.title {
            body.insert("title".to_owned(), title.as_str().into());
        }
        if let Some(text) = &edit.body {
            body.insert("body".to_owned(), fit_body(text).into());
        }
        if body.is_empty() {
            return self.read_issue(number);
        }
        self.issue_wire(number)?; // a pull request's words are not ours to change this way
        self.patch_issue(&format!("edit issue {number}"), number, body.into())
    }

    fn close_issue(&self, number: IssueNumber, why: CloseReason) -> TrackerResult<Issue> {
        let issue = self.read_issue(number)?;
        if matches!(issue.state, TrackerIssueState::Closed { why: is, .. } if is == why) {
            return Ok(issue);
        }
        let reason = match why {
            CloseReason::Done => "completed",
            CloseReason::NotPlanned => "not_planned",
        };
        let body = json!({ "state": "closed", "state_reason": reason });
        self.patch_issue(&format!("close issue {number}"), number, body)
    }

    fn reopen_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        let issue = self.read_issue(number)?;
        if issue.state.is_open() {
            return Ok(issue);
        }
        let body = json!({ "state": "open", "state_reason": "reopened" });
        self.patch_issue(&format!("reopen issue {number}"), number, body)
    }

    fn last_reopened(&self, number: IssueNumber) -> TrackerResult<Option<Timestamp>> {
        let call = GithubRequest::get(
            format!("read the history of {number}"),
            self.item_path("issues", number.get(), ["events"]),
        );
        let mut last = None;
        for event in self.client.fetch_list::<EventWire>(call)? {
            last = last.max(event.reopened_at()?);
        }
        Ok(last)
    }

    fn list_comments(&self, thread: CommentThread) -> TrackerResult<Vec<Comment>> {
        self.comments_since(thread, None)
    }

    fn add_comment(
        &self,
        thread: CommentThread,
        marker: &Marker,
        body: &str,
    ) -> TrackerResult<CreateOutcome<Comment>> {
        let what = format!("comment on {thread}");
        let path = self.item_path("issues", thread.number(), ["comments"]);
        let body = json!({ "body": marker.sign_text(&fit_body(body)) });
        let call = GithubRequest::write(&what, GithubMethod::Post, path, body, RetryEffect::Twice);
        let make = || self.as_comment(self.client.fetch_json_uncached(&call)?);
        let once = self.create_once(&what, || self.find_marked_comment(thread, marker, None), make)?;
        if let CreateOutcome::Made(made) = &once {
            // Something between us and GitHub may have sent it twice.
            let first =
                self.find_marked_comment(thread, marker, Some(Timestamp(made.created.0 - UNSETTLED_MS)))?;
            return Ok(first.map_or(once, CreateOutcome::Made));
        }
        Ok(once)
    }

    fn ensure_labels(&self, wanted: &[LabelSpec]) -> TrackerResult<()> {
        let there =
            parse_labels(self.client.fetch_list(GithubRequest::get("list labels", self.path(["labels"])))?);
        for spec in wanted.iter().filter(|spec| !there.contains(&spec.label)) {
            let [red, green, blue] = spec.colour;
            let about: String = spec.about.chars().take(100).collect(); // GitHub takes no more
            let body = json!({
                "name": spec.label.as_str(),
                "color": format!("{red:02x}{green:02x}{blue:02x}"),
                "description": about,
            });
            let what = format!("create the label {}", spec.label);
            match self.client.send_only(&GithubRequest::write(
                &what,
                GithubMethod::Post,
                self.path(["labels"]),
                body,
                RetryEffect::Same,
            )) {
                // Somebody made it meanwhile, or we did and did not hear.
                Err(error @ TrackerError::Refused { .. }) => {
                    let look = GithubRequest::get(&what, self.path(["labels", spec.label.as_str()]));
                    self.client.fetch_json_uncached::<LabelWire>(&look).map_err(|_| error)?;
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn change_labels(
        &self,
        number: IssueNumber,
        add: &BTreeSet<Label>,
        remove: &BTreeSet<Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        let there = self.current_labels(number)?;
        let (add, remove): (Vec<_>, Vec<_>) = (
            add.difference(&there).collect(),
            remove.intersection(&there).filter(|it| !add.contains(it)).collect(),
        );
        if add.is_empty() && remove.is_empty() {
            return Ok(there);
        }
        self.add_labels(number, add.into_iter())?;
        for label in remove {
            self.remove_label(number, label)?;
        }
        self.current_labels(number)
    }

    fn swap_label(
        &self,
        number: IssueNumber,
        family: &str,
        to: Option<&Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        for _ in 0..SWAPS_MAX {
            let there = self.current_labels(number)?;
            let others: Vec<&Label> = there
                .iter()
                .filter(|label| label.name_within(family).is_some() && Some(*label) != to)
                .collect();
            let missing = to.filter(|to| !there.contains(to));
            if others.is_empty() && missing.is_none() {
                return Ok(there);
            }
            // First the new one, so that a reader in between sees two rather than none.
            self.add_labels(number, missing.into_iter())?;
            for other in others {
                self.remove_label(number, other)?;
            }
        }
        let there = self.current_labels(number)?;
        let settled =
            there.iter().filter(|label| label.name_within(family).is_some()).all(|label| Some(label) == to)
                && to.is_none_or(|to| there.contains(to));
        if settled {
            return Ok(there);
        }
        let what = format!("set the {family}* label of {number}");
        Err(TrackerError::Conflict { what, why: "someone else changes it at the same time".to_owned() })
    }

    fn read_size(&self, number: IssueNumber) -> TrackerResult<Option<IssueSize>> {
        let fields: BTreeSet<TaskSize> =
            self.list_project_items(number)?.iter().filter_map(projects::ProjectItem::task_size).collect();
        // Projects that disagree say nothing.
        if let (1, Some(size)) = (fields.len(), fields.first()) {
            return Ok(Some(IssueSize { size: *size, stands: SizeSource::Field }));
        }
        let size = self.read_issue(number)?.labelled_size();
        Ok(size.map(|size| IssueSize { size, stands: SizeSource::Label }))
    }

    fn set_size(&self, number: IssueNumber, size: TaskSize) -> TrackerResult<SizeSource> {
        if self.set_size_fields(number, size)? {
            return Ok(SizeSource::Field);
        }
        let label = Label::new(&format!("{SIZE_FAMILY}{size}")).expect("a size is a word");
        self.swap_label(number, SIZE_FAMILY, Some(&label))?;
        Ok(SizeSource::Label)
    }

    fn list_children(&self, number: IssueNumber) -> TrackerResult<Vec<ChildIssue>> {
        let what = format!("read what {number} is made of");
        let mut children = Vec::new();
        for wire in self.list_related(number, &what, &["sub_issues"])? {
            if let IssueLocation::Elsewhere(place) = self.locate_issue(&wire)? {
                let why = format!("{place}, a part of it, is in another repository");
                return Err(TrackerError::Refused { what, why });
            }
            let issue = wire.into_issue()?;
            // Most have none, and the answer says so.
            let blocked_by =
                if issue.blockers == Some(0) { Vec::new() } else { self.blocked_by(issue.number)? };
            children.push(ChildIssue { issue, blocked_by });
        }
        Ok(children)
    }

    fn add_child(&self, parent: IssueNumber, child: IssueNumber) -> TrackerResult<()> {
        let what = format!("make {child} part of {parent}");
        let id = self.issue_wire(child)?.id;
        let find = || {
            let there = self.list_related(parent, &what, &["sub_issues"])?;
            Ok(there.iter().any(|wire| wire.id == id).then_some(()))
        };
        let make = || self.add_relation(&what, parent, &["sub_issues"], json!({ "sub_issue_id": id }));
        self.create_once(&what, find, make).map(CreateOutcome::into_inner)
    }

    fn find_parent(&self, number: IssueNumber) -> TrackerResult<Option<IssueLocation>> {
        let what = format!("read what {number} is part of");
        let path = self.item_path("issues", number.get(), ["parent"]);
        match self.client.fetch_json::<IssueWire>(&GithubRequest::get(what, path)) {
            Ok(wire) => self.locate_issue(&wire).map(Some),
            // It is part of none, or there is no such issue.
            Err(TrackerError::NotFound { .. }) => self.issue_wire(number).map(|_| None),
            Err(error) => Err(error),
        }
    }

    fn blocked_by(&self, number: IssueNumber) -> TrackerResult<Vec<Blocker>> {
        let what = format!("read what {number} waits for");
        let mut blockers = Vec::new();
        for wire in self.list_related(number, &what, &["dependencies", "blocked_by"])? {
            let place = self.locate_issue(&wire)?;
            blockers.push(Blocker { place, open: wire.state == wire::GithubOpenState::Open });
        }
        Ok(blockers)
    }

    fn add_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        let what = format!("make {number} wait for {blocker}");
        let id = self.issue_wire(blocker)?.id;
        let parts = ["dependencies", "blocked_by"];
        let find =
            || Ok(self.list_related(number, &what, &parts)?.iter().any(|wire| wire.id == id).then_some(()));
        let make = || self.add_relation(&what, number, &parts, json!({ "issue_id": id }));
        self.create_once(&what, find, make).map(CreateOutcome::into_inner)
    }

    fn remove_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        let what = format!("make {number} wait for {blocker} no longer");
        let there = self.list_related(number, &what, &["dependencies", "blocked_by"])?;
        let find = |wanted: IssueLocation| {
            let is = |wire: &&IssueWire| self.locate_issue(wire).is_ok_and(|place| place == wanted);
            there.iter().find(is).map(|wire| wire.id)
        };
        let found = match find(IssueLocation::Here(blocker)) {
            Some(id) => Some(id),
            None => match self.issue_wire(blocker) {
                Ok(_) => None,
                // It was known by this number when it began to hold the other up.
                Err(TrackerError::Moved { to, .. }) => find(IssueLocation::Elsewhere(to)),
                Err(error) => return Err(error),
            },
        };
        let Some(id) = found else { return Ok(()) };
        let path = self.item_path("issues", number.get(), ["dependencies", "blocked_by", &id.to_string()]);
        match self.client.send_only(&GithubRequest::delete(what, path)) {
            Err(TrackerError::NotFound { .. }) => Ok(()), // somebody else took it, or we did and did not hear
            other => other,
        }
    }

    fn pull_request(&self, number: PrNumber) -> TrackerResult<PullRequest> {
        self.pull_wire(number)?.into_pull_request()
    }

    fn pull_requests_of(&self, head: &TrackerBranchName) -> TrackerResult<Vec<PullRequest>> {
        let call = GithubRequest::get(format!("look for the pull request of {head}"), self.path(["pulls"]))
            .query("head", format!("{}:{head}", self.repository.owner()))
            .query("state", "all")
            .query("sort", "created")
            .query("direction", "desc");
        let found: TrackerResult<Vec<PullRequest>> =
            self.client.fetch_list::<PullWire>(call)?.into_iter().map(PullWire::into_pull_request).collect();
        // The filter is GitHub's; that it is this branch and of this repository is looked at here.
        Ok(found?.into_iter().filter(|it| it.head.as_ref() == Some(head) && it.head_is_here).collect())
    }

    fn create_pull_request(&self, new: &NewPullRequest) -> TrackerResult<CreateOutcome<PullRequest>> {
        let what = format!("create a pull request of {} to {}", new.head, new.base);
        let body = json!({
            "title": new.title.as_str(),
            "head": new.head.as_str(),
            "base": new.base.as_str(),
            "body": fit_body(&new.body),
            "draft": new.draft,
        });
        let call =
            GithubRequest::write(&what, GithubMethod::Post, self.path(["pulls"]), body, RetryEffect::Twice);
        let find = || {
            let there = self.pull_requests_of(&new.head)?.into_iter();
            Ok(there.into_iter().find(|it| it.state.is_open() && it.base.as_ref() == Some(&new.base)))
        };
        let make = || self.client.fetch_json_uncached::<PullWire>(&call)?.into_pull_request();
        match self.create_once(&what, find, make) {
            // It was made between the look and the request.
            Err(error @ TrackerError::Refused { .. }) => find()?.map(CreateOutcome::Found).ok_or(error),
            other => other,
        }
    }

    fn note_pushed(&self, _: PrNumber, _: &CommitSha) -> TrackerResult<()> {
        Ok(()) // it saw the push
    }

    fn mark_ready(&self, number: PrNumber) -> TrackerResult<()> {
        let what = format!("say that {number} is ready");
        let wire = self.pull_wire(number)?;
        if !wire.draft {
            return Ok(());
        }
        self.send_ready(&what, &wire.node_id)?;
        if self.pull_wire(number)?.draft {
            return Err(TrackerError::Conflict { what, why: "it is still a draft".to_owned() });
        }
        Ok(())
    }

    fn merge_pull_request(
        &self,
        number: PrNumber,
        merge: &PullRequestMerge,
    ) -> TrackerResult<CompletedMerge> {
        let what = format!("merge {number}");
        let path = self.item_path("pulls", number.get(), ["merge"]);
        let body = json!({
            "merge_method": "merge",
            "sha": merge.expected.as_str(),
            "commit_title": merge.subject.as_str(),
            "commit_message": fit_body(&merge.body),
        });
        let merged = || -> TrackerResult<Option<CompletedMerge>> {
            let there = self.pull_request(number)?;
            match there.state {
                PrState::Merged { commit } if there.head_sha == merge.expected => {
                    Ok(Some(CompletedMerge { commit, already: true }))
                }
                PrState::Merged { .. } => {
                    let why = format!("it was merged with another head, {}", there.head_sha);
                    Err(TrackerError::Conflict { what: what.clone(), why })
                }
                PrState::Draft | PrState::Open | PrState::Closed => Ok(None),
            }
        };
        let call = GithubRequest::write(&what, GithubMethod::Put, path, body, RetryEffect::Twice);
        let make = || {
            let done: MergeWire = self.client.fetch_json_uncached(&call)?;
            if !done.merged {
                return Err(TrackerError::Conflict {
                    what: what.clone(),
                    why: "it was not merged".to_owned(),
                });
            }
            Ok(CompletedMerge { commit: Some(CommitSha::new(&done.sha)?), already: false })
        };
        Ok(match self.create_once(&what, merged, make)? {
            CreateOutcome::Made(done) => CompletedMerge { already: false, ..done },
            CreateOutcome::Found(done) => done,
        })
    }

    fn close_pull_request(&self, number: PrNumber) -> TrackerResult<()> {
        if self.pull_wire(number)?.state == wire::GithubOpenState::Closed {
            return Ok(());
        }
        let path = self.item_path("pulls", number.get(), []);
        let body = json!({ "state": "closed" });
        self.client.send_only(&GithubRequest::write(
            format!("close {number}"),
            GithubMethod::Patch,
            path,
            body,
            RetryEffect::Same,
        ))
    }

    fn list_reviews(&self, number: PrNumber) -> TrackerResult<Vec<TrackerReview>> {
        let call = GithubRequest::get(
            format!("read the reviews of {number}"),
            self.item_path("pulls", number.get(), ["reviews"]),
        );
        let mut seen = BTreeSet::new();
        let wires = self.client.fetch_list::<ReviewWire>(call)?.into_iter();
        wires.filter(|wire| seen.insert(wire.id)).map(|wire| self.as_review(wire)).collect()
    }

    fn add_review(&self, number: PrNumber, new: &NewReview) -> TrackerResult<CreateOutcome<TrackerReview>> {
        let what = format!("review {number}");
        let find = || {
            let reviews = self.list_reviews(number)?.into_iter();
            Ok(reviews.into_iter().find(|review| review.ours && new.marker.is_on(&review.body)))
        };
        // Nobody judges what is their own, by GitHub's rule; what is said stands in the text.
        let own = self.is_ours(self.pull_wire(number)?.user.as_ref())?;
        let event = match new.says {
            ReviewAction::Approve if !own => "APPROVE",
            ReviewAction::RequestChanges if !own => "REQUEST_CHANGES",
            ReviewAction::Approve | ReviewAction::RequestChanges | ReviewAction::Comment => "COMMENT",
        };
        let body = json!({
            "commit_id": new.commit.as_str(),
            "event": event,
            "body": new.marker.sign_text(&fit_body(&new.body)),
        });
        let path = self.item_path("pulls", number.get(), ["reviews"]);
        let call = GithubRequest::write(&what, GithubMethod::Post, path, body, RetryEffect::Twice);
        self.create_once(&what, find, || self.as_review(self.client.fetch_json_uncached(&call)?))
    }

    fn list_checks(&self, commit: &CommitSha) -> TrackerResult<Vec<ForgeCheck>> {
        let what = format!("read the checks of {commit}");
        let runs = GithubRequest::get(&what, self.path(["commits", commit.as_str(), "check-runs"]))
            .query("filter", "latest");
        let runs = self.client.fetch_pages(
            runs,
            |what, body| Ok(read::<CheckRuns>(what, body)?.check_runs),
            |_| false,
        )?;
        let statuses = GithubRequest::get(&what, self.path(["commits", commit.as_str(), "status"]));
        let statuses = self.client.fetch_pages(
            statuses,
            |what, body| Ok(read::<CombinedStatus>(what, body)?.statuses),
            |_| false,
        )?;
        let mut checks: Vec<ForgeCheck> =
            runs.items.into_iter().map(wire::CheckRun::into_check).collect::<TrackerResult<_>>()?;
        checks.extend(statuses.items.into_iter().map(ForgeCheck::from));
        Ok(checks)
    }

    fn failed_jobs(&self, commit: &CommitSha) -> TrackerResult<Vec<FailedJob>> {
        self.jobs_that_failed(commit)
    }

    fn rerun_checks(&self, commit: &CommitSha) -> TrackerResult<usize> {
        self.run_again(commit)
    }

    fn list_changes(&self, since: &Cursor) -> TrackerResult<(Vec<TrackerChange>, Cursor)> {
        let call = GithubRequest::get("look for changes", self.path(["issues"]))
            .query("state", "all")
            .query("sort", "updated")
            .query("direction", "asc")
            .query("since", format_rfc3339(since.at));
        let pages = self.client.fetch_pages(call, read::<Vec<IssueWire>>, |_| false)?;
        let settled = pages.date.map_or(i64::MAX, |date| date.0.saturating_sub(UNSETTLED_MS));
        let mut seen = Vec::new();
        for wire in pages.items.into_iter().filter(|wire| wire.updated_at.0 <= settled) {
            let zero = || malformed_error("issue", "its number is 0");
            let thread = match wire.pull_request {
                Some(_) => CommentThread::PullRequest(PrNumber::new(wire.number).ok_or_else(zero)?),
                None => CommentThread::Issue(IssueNumber::new(wire.number).ok_or_else(zero)?),
            };
            seen.push(TrackerChange { thread, at: wire.updated_at });
        }
        Ok(since.advance_past(seen))
    }
}
