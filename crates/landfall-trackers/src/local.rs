//! Issues as Markdown files in a folder: no account, no network. The folder is beside Landfall's state, where no agent
//! writes, or `.landfall/issues/` of a project whose people want their issues in its history.
//!
//! `12.md` is an issue or the record of a pull request, `12/3.md` a comment or a review below it. One lock orders those who write;
//! those who read need none. It keeps no branches: a merge is written down after the landing.

mod file;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_model::{TaskSize, Timestamp};

use crate::plain_file::{LinkPolicy, read_plain, read_plain_text};
use crate::tracker::{
    Blocker, ChildIssue, CloseReason, Comment, CommentThread, CommitSha, CompletedMerge, CreateOutcome,
    Cursor, FailedJob, ForgeCheck, Issue, IssueFilter, IssueLocation, IssueNumber, IssueSize, IssueTextEdit,
    Label, LabelSpec, Marker, NewIssue, NewPullRequest, NewReview, PrNumber, PrState, PullRequest,
    PullRequestMerge, ReviewAction, ReviewVerdict, SIZE_FAMILY, SizeSource, Tracker, TrackerBranchName,
    TrackerChange, TrackerClock, TrackerError, TrackerIssueState, TrackerResult, TrackerReview,
};
use file::{
    LocalFrontMatter, LocalRecord, RecordKind, RecordState, RecordVerdict, put_file, unavailable_error,
};

/// Issues in a folder.
pub struct LocalTracker {
    folder: PathBuf,
    author: String,
    clock: Arc<dyn TrackerClock>,
}

/// Held by whoever writes.
struct WriteLock {
    _lock: File,
}

/// What was found by its number, and what is wrong with what cannot be read.
type RecordScan = (Vec<(u64, LocalRecord)>, Vec<(u64, TrackerError)>);

impl LocalTracker {
    /// The tracker of a folder, which is made when something is written. `author` signs what is written.
    #[must_use]
    pub fn new(folder: &Path, author: &str, clock: Arc<dyn TrackerClock>) -> Self {
        Self { folder: folder.to_owned(), author: author.to_owned(), clock }
    }

    fn lock_for_writing(&self) -> TrackerResult<WriteLock> {
        let path = self.folder.join(".lock");
        let open = || {
            fs::create_dir_all(&self.folder)?;
            let file = File::options().create(true).append(true).open(&path)?;
            file.lock()?;
            Ok(WriteLock { _lock: file })
        };
        open().map_err(|error| unavailable_error(&path, &error))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.md"))
    }

    fn comment_path(&self, number: u64, id: u64) -> PathBuf {
        self.folder.join(number.to_string()).join(format!("{id}.md"))
    }

    fn write(&self, _: &WriteLock, path: &Path, record: &LocalRecord) -> TrackerResult<()> {
        record.write(path, &self.folder.join(".new"))
    }

    /// Reads a record of one kind.
    fn read_record(&self, number: u64, kind: RecordKind) -> TrackerResult<LocalRecord> {
        let called = if kind == RecordKind::PullRequest { "pull request" } else { "issue" };
        let missing = |hint: String| TrackerError::NotFound { what: format!("{called} #{number}"), hint };
        match LocalRecord::read(&self.path(number))? {
            Some(record) if record.head.kind == kind => Ok(record),
            Some(LocalRecord { head: LocalFrontMatter { kind: RecordKind::PullRequest, .. }, .. }) => {
                Err(missing(format!("#{number} is a pull request: `landfall issue pr {number}` shows it")))
            }
            Some(LocalRecord { head: LocalFrontMatter { kind: RecordKind::Issue, .. }, .. }) => {
                Err(missing(format!("#{number} is an issue: `landfall issue show {number}` shows it")))
            }
            Some(_) | None => Err(missing(format!(
                "`landfall issue list --all` shows the issues there are; they are files in {}",
                self.folder.display()
            ))),
        }
    }

    /// Changes a record, if the change changes anything.
    fn change_record(
        &self,
        number: u64,
        kind: RecordKind,
        change: impl FnOnce(&mut LocalRecord) -> TrackerResult<bool>,
    ) -> TrackerResult<LocalRecord> {
        let writing = self.lock_for_writing()?;
        let mut record = self.read_record(number, kind)?;
        if change(&mut record)? {
            self.touch_record(&mut record);
            self.write(&writing, &self.path(number), &record)?;
        }
        Ok(record)
    }

    /// Two changes are two moments, however coarse the clock is: a cursor tells them apart by that.
    fn touch_record(&self, record: &mut LocalRecord) {
        record.head.updated = Some(self.clock.now().max(record.head.updated_at().plus_ms(1)));
    }

    /// The numbers of the files in a folder, ascending. A folder that is not there holds none.
    fn list_numbers(folder: &Path) -> TrackerResult<Vec<u64>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unavailable_error(folder, &error)),
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| unavailable_error(folder, &error))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".md")?.parse::<u64>().ok());
            // `007.md` is not ours: we would write `7.md` beside it.
            numbers.extend(number.filter(|number| name.to_str() == Some(&format!("{number}.md"))));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Everything that can be read, and what is wrong with the rest. One that went away since is one less.
    fn list_records(&self, kind: RecordKind) -> TrackerResult<RecordScan> {
        let (mut found, unread) = self.list_all_records()?;
        found.retain(|(_, record)| record.head.kind == kind);
        Ok((found, unread))
    }

    /// The same, of every kind.
    fn list_all_records(&self) -> TrackerResult<RecordScan> {
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        for number in Self::list_numbers(&self.folder)? {
            match LocalRecord::read(&self.path(number)) {
                Ok(record) => found.extend(record.map(|record| (number, record))),
                Err(error @ TrackerError::Malformed { .. }) => unread.push((number, error)),
                Err(error) => return Err(error),
            }
        }
        Ok((found, unread))
    }

    /// Everything that can be read, for whoever looks for `this` before it is made. What cannot be read and speaks of it is an
    /// error: it may be there already.
    fn records_for_creation(&self, kind: RecordKind, this: &str) -> TrackerResult<Vec<(u64, LocalRecord)>> {
        let (found, unread) = self.list_records(kind)?;
        let speaks = |number: u64| {
            match read_plain(&self.path(number), LinkPolicy::Refuse) {
                Ok(text) => text.windows(this.len().max(1)).any(|part| part == this.as_bytes()),
                Err(error) => error.kind() == std::io::ErrorKind::FileTooLarge, // a link or a pipe is none of ours
            }
        };
        match unread.into_iter().find(|(number, _)| file::is_plain(&self.path(*number)) && speaks(*number)) {
            Some((_, error)) => Err(error),
            None => Ok(found),
        }
    }

    /// A number nobody had before, also when the last one was deleted.
    fn next(&self, _: &WriteLock) -> TrackerResult<u64> {
        let path = self.folder.join(".next");
        let text = read_plain_text(&path, LinkPolicy::Refuse).ok();
        let kept = text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(1);
        let last = Self::list_numbers(&self.folder)?.last().copied().unwrap_or(0);
        let next = kept.max(last.saturating_add(1));
        put_file(&path, &self.folder.join(".new"), format!("{}\n", next.saturating_add(1)).as_bytes())
            .map_err(|error| unavailable_error(&path, &error))?;
        Ok(next)
    }

    fn records_under(&self, number: u64, kind: RecordKind) -> TrackerResult<Vec<(u64, LocalRecord)>> {
        let mut found = Vec::new();
        for id in Self::list_numbers(&self.folder.join(number.to_string()))? {
            let record = LocalRecord::read(&self.comment_path(number, id))?;
            found.extend(record.filter(|record| record.head.kind == kind).map(|record| (id, record)));
        }
        Ok(found)
    }

    /// Writes something below an issue or pull request, unless it is there. It counts as a change of what it is below.
    fn add_below(
        &self,
        thread: CommentThread,
        marker: &Marker,
        record: LocalRecord,
    ) -> TrackerResult<CreateOutcome<(u64, LocalRecord)>> {
        let (number, kind) = (thread.number(), kind_of(thread));
        let writing = self.lock_for_writing()?;
        let mut above = self.read_record(number, kind)?;
        let there = self.records_under(number, record.head.kind)?;
        let found = there.into_iter().find(|(_, record)| record.head.ours && marker.is_on(&record.body));
        if let Some(found) = found {
            return Ok(CreateOutcome::Found(found));
        }
        let last = Self::list_numbers(&self.folder.join(number.to_string()))?.last().copied();
        let id = last.unwrap_or(0).saturating_add(1);
        self.write(&writing, &self.comment_path(number, id), &record)?;
        self.touch_record(&mut above);
        self.write(&writing, &self.path(number), &above)?;
        Ok(CreateOutcome::Made((id, record)))
    }

    fn as_issue(&self, number: u64, record: LocalRecord) -> TrackerResult<Issue> {
        let path = self.path(number);
        let number = IssueNumber::new(number).ok_or_else(|| TrackerError::Malformed {
            what: path.display().to_string(),
            why: "numbers begin at 1".to_owned(),
        })?;
        let LocalRecord { head, body } = record;
        let closed = |why| TrackerIssueState::Closed { why, at: head.closed };
        let state = match head.state {
            Some(RecordState::Open) | None => TrackerIssueState::Open,
            Some(RecordState::Done | RecordState::Closed) => closed(CloseReason::Done),
            Some(RecordState::NotPlanned) => closed(CloseReason::NotPlanned),
            Some(state @ (RecordState::Draft | RecordState::Merged)) => {
                let why = format!("an issue is never {state:?}").to_lowercase();
                return Err(TrackerError::Malformed { what: path.display().to_string(), why });
            }
        };
        let comments = Self::list_numbers(&self.folder.join(number.get().to_string()))?.len() as u64;
        Ok(Issue {
            number,
            state,
            labels: parse_record_labels(&path, &head)?,
            comments,
            children: head.children.len() as u64,
            blockers: Some(head.blocked_by.len() as u64),
            created: head.created,
            updated: head.updated_at(),
            url: path.display().to_string(),
            title: head.title,
            body,
            assignees: head.assignees,
            author: head.author,
        })
    }

    fn as_pull_request(&self, number: u64, record: LocalRecord) -> TrackerResult<PullRequest> {
        let path = self.path(number);
        let malformed = |why: String| TrackerError::Malformed { what: path.display().to_string(), why };
        let number = PrNumber::new(number).ok_or_else(|| malformed("numbers begin at 1".to_owned()))?;
        let LocalRecord { head, body } = record;
        let commit = |text: &Option<String>| text.as_deref().map(CommitSha::new).transpose();
        let state = match head.state {
            Some(RecordState::Open) | None => PrState::Open,
            Some(RecordState::Draft) => PrState::Draft,
            Some(RecordState::Merged) => PrState::Merged {
                commit: commit(&head.merged).map_err(|error| malformed(error.to_string()))?,
            },
            Some(RecordState::Closed | RecordState::Done | RecordState::NotPlanned) => PrState::Closed,
        };
        let head_sha = commit(&head.commit).map_err(|error| malformed(error.to_string()))?;
        let branch =
            |text: &Option<String>| text.as_deref().and_then(|text| TrackerBranchName::new(text).ok());
        Ok(PullRequest {
            number,
            state,
            head: branch(&head.branch),
            head_is_here: true,
            head_sha: head_sha.ok_or_else(|| malformed("`commit` is missing".to_owned()))?,
            base: branch(&head.base),
            merges: None,
            created: head.created,
            url: path.display().to_string(),
            title: head.title,
            body,
            author: head.author,
        })
    }

    fn list_blockers(&self, record: &LocalRecord) -> TrackerResult<Vec<Blocker>> {
        let mut blockers = Vec::new();
        for number in record.head.blocked_by.iter().copied().filter_map(IssueNumber::new) {
            let open = self.read_issue(number)?.state.is_open();
            blockers.push(Blocker { place: IssueLocation::Here(number), open });
        }
        Ok(blockers)
    }

    /// Sets the state of an issue, and answers with it.
    fn set_state(&self, number: IssueNumber, to: RecordState) -> TrackerResult<Issue> {
        let now = self.clock.now();
        let record = self.change_record(number.get(), RecordKind::Issue, |record| {
            let head = &mut record.head;
            let from = head.state.unwrap_or(RecordState::Open);
            if from == to {
                return Ok(false);
            }
            head.state = Some(to);
            if to == RecordState::Open {
                (head.closed, head.reopened) = (None, Some(now));
            } else {
                head.closed = Some(now);
            }
            Ok(true)
        })?;
        self.as_issue(number.get(), record)
    }
}

fn kind_of(thread: CommentThread) -> RecordKind {
    match thread {
        CommentThread::Issue(_) => RecordKind::Issue,
        CommentThread::PullRequest(_) => RecordKind::PullRequest,
    }
}

fn parse_record_labels(path: &Path, head: &LocalFrontMatter) -> TrackerResult<BTreeSet<Label>> {
    let labels: Result<_, _> = head.labels.iter().map(|label| Label::new(label)).collect();
    labels
        .map_err(|error| TrackerError::Malformed { what: path.display().to_string(), why: error.to_string() })
}

fn as_comment((id, record): (u64, LocalRecord)) -> Comment {
    let LocalRecord { head, body } = record;
    Comment { id, author: head.author, ours: head.ours, body, created: head.created }
}

fn as_review((id, record): (u64, LocalRecord)) -> TrackerReview {
    let LocalRecord { head, body } = record;
    let verdict = match head.verdict {
        Some(RecordVerdict::Approved) => ReviewVerdict::Approved,
        Some(RecordVerdict::ChangesRequested) => ReviewVerdict::ChangesRequested,
        Some(RecordVerdict::Commented) | None => ReviewVerdict::Commented,
    };
    let commit = head.commit.as_deref().and_then(|text| CommitSha::new(text).ok());
    TrackerReview { id, author: head.author, ours: head.ours, verdict, body, commit }
}

impl Tracker for LocalTracker {
    fn keeps_branches(&self) -> bool {
        false
    }

    fn default_branch(&self) -> TrackerResult<Option<TrackerBranchName>> {
        Ok(None)
    }

    fn read_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        let record = self.read_record(number.get(), RecordKind::Issue)?;
        self.as_issue(number.get(), record)
    }

    fn list_issues(&self, filter: &IssueFilter) -> TrackerResult<Vec<Issue>> {
        let mut issues = Vec::new();
        for (number, record) in self.list_records(RecordKind::Issue)?.0.into_iter().rev() {
            let Ok(issue) = self.as_issue(number, record) else { continue }; // told by `unreadable`
            let wanted =
                filter.labels.is_subset(&issue.labels) && (issue.state.is_open() || !filter.only_open);
            if wanted && issues.len() < filter.most {
                issues.push(issue);
            }
        }
        Ok(issues)
    }

    fn list_unreadable(&self) -> TrackerResult<Vec<TrackerError>> {
        let (found, mut unread) = self.list_all_records()?;
        for (number, record) in found {
            let error = match record.head.kind {
                RecordKind::PullRequest => self.as_pull_request(number, record).err(),
                RecordKind::Issue => self.as_issue(number, record).err(),
                RecordKind::Comment | RecordKind::Review => None, // they have folders of their own
            };
            unread.extend(error.map(|error| (number, error)));
        }
        unread.sort_by_key(|(number, _)| *number);
        Ok(unread.into_iter().map(|(_, error)| error).collect())
    }

    fn create_issue(&self, new: &NewIssue) -> TrackerResult<CreateOutcome<Issue>> {
        let writing = self.lock_for_writing()?;
        let mut there = self.records_for_creation(RecordKind::Issue, new.marker.key())?.into_iter();
        let found = there.find(|(_, record)| record.head.ours && new.marker.is_on(&record.body));
        if let Some((number, record)) = found {
            return self.as_issue(number, record).map(CreateOutcome::Found);
        }
        let number = self.next(&writing)?;
        let mut head = LocalFrontMatter::new(RecordKind::Issue, &self.author, self.clock.now());
        head.title = new.title.to_string();
        head.state = Some(RecordState::Open);
        head.labels = new.labels.iter().map(ToString::to_string).collect();
        let record = LocalRecord { head, body: new.marker.sign_text(&new.body) };
        self.write(&writing, &self.path(number), &record)?;
        self.as_issue(number, record).map(CreateOutcome::Made)
    }

    fn edit_issue(&self, number: IssueNumber, edit: &IssueTextEdit) -> TrackerResult<Issue> {
        let record = self.change_record(number.get(), RecordKind::Issue, |record| {
            let before = (record.head.title.clone(), record.body.clone());
            if let Some(title) = &edit.title {
                record.head.title = title.to_string();
            }
            if let Some(body) = &edit.body {
                record.body.clone_from(body);
            }
            Ok(before != (record.head.title.clone(), record.body.clone()))
        })?;
        self.as_issue(number.get(), record)
    }

    fn close_issue(&self, number: IssueNumber, why: CloseReason) -> TrackerResult<Issue> {
        self.set_state(
            number,
            match why {
                CloseReason::Done => RecordState::Done,
                CloseReason::NotPlanned => RecordState::NotPlanned,
            },
        )
    }

    fn reopen_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        self.set_state(number, RecordState::Open)
    }

    fn last_reopened(&self, number: IssueNumber) -> TrackerResult<Option<Timestamp>> {
        Ok(self.read_record(number.get(), RecordKind::Issue)?.head.reopened)
    }

    fn list_comments(&self, thread: CommentThread) -> TrackerResult<Vec<Comment>> {
        self.read_record(thread.number(), kind_of(thread))?;
        Ok(self.records_under(thread.number(), RecordKind::Comment)?.into_iter().map(as_comment).collect())
    }

    fn add_comment(
        &self,
        thread: CommentThread,
        marker: &Marker,
        body: &str,
    ) -> TrackerResult<CreateOutcome<Comment>> {
        let head = LocalFrontMatter::new(RecordKind::Comment, &self.author, self.clock.now());
        let once = self.add_below(thread, marker, LocalRecord { head, body: marker.sign_text(body) })?;
        Ok(match once {
            CreateOutcome::Made(it) => CreateOutcome::Made(as_comment(it)),
            CreateOutcome::Found(it) => CreateOutcome::Found(as_comment(it)),
        })
    }

    fn ensure_labels(&self, _: &[LabelSpec]) -> TrackerResult<()> {
        Ok(()) // a label is there when an issue has it
    }

    fn change_labels(
        &self,
        number: IssueNumber,
        add: &BTreeSet<Label>,
        remove: &BTreeSet<Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        let path = self.path(number.get());
        let record = self.change_record(number.get(), RecordKind::Issue, |record| {
            let before = parse_record_labels(&path, &record.head)?;
            let mut after: BTreeSet<Label> = before.difference(remove).cloned().collect();
            after.extend(add.iter().cloned());
            record.head.labels = after.iter().map(ToString::to_string).collect();
            Ok(before != after)
        })?;
        parse_record_labels(&path, &record.head)
    }

    fn swap_label(
        &self,
        number: IssueNumber,
        family: &str,
        to: Option<&Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        let path = self.path(number.get());
        let record = self.change_record(number.get(), RecordKind::Issue, |record| {
            let before = parse_record_labels(&path, &record.head)?;
            let mut after = before.clone();
            after.retain(|label| label.name_within(family).is_none() || Some(label) == to);
            after.extend(to.cloned());
            record.head.labels = after.iter().map(ToString::to_string).collect();
            Ok(before != after)
        })?;
        parse_record_labels(&path, &record.head)
    }

    fn read_size(&self, number: IssueNumber) -> TrackerResult<Option<IssueSize>> {
        let size = self.read_issue(number)?.labelled_size();
        Ok(size.map(|size| IssueSize { size, stands: SizeSource::Label }))
    }

    fn set_size(&self, number: IssueNumber, size: TaskSize) -> TrackerResult<SizeSource> {
        let label = Label::new(&format!("{SIZE_FAMILY}{size}")).expect("a size is a word");
        self.swap_label(number, SIZE_FAMILY, Some(&label))?;
        Ok(SizeSource::Label)
    }

    fn list_children(&self, number: IssueNumber) -> TrackerResult<Vec<ChildIssue>> {
        let parent = self.read_record(number.get(), RecordKind::Issue)?;
        let mut children = Vec::new();
        for child in parent.head.children {
            let record = self.read_record(child, RecordKind::Issue)?;
            let blocked_by = self.list_blockers(&record)?;
            children.push(ChildIssue { issue: self.as_issue(child, record)?, blocked_by });
        }
        Ok(children)
    }

    fn add_child(&self, parent: IssueNumber, child: IssueNumber) -> TrackerResult<()> {
        let what = || format!("make {child} part of {parent}");
        self.read_record(child.get(), RecordKind::Issue)?;
        if parent == child {
            return Err(TrackerError::Refused { what: what(), why: "nothing is part of itself".to_owned() });
        }
        let (issues, unread) = self.list_records(RecordKind::Issue)?;
        if let Some((_, error)) = unread.into_iter().next() {
            return Err(error); // it may be a part of that one
        }
        for (other, record) in issues {
            if other != parent.get() && record.head.children.contains(&child.get()) {
                let why = format!("it is part of #{other}");
                return Err(TrackerError::Conflict { what: what(), why });
            }
        }
        self.change_record(parent.get(), RecordKind::Issue, |record| {
            let new = !record.head.children.contains(&child.get());
            if new {
                record.head.children.push(child.get());
            }
            Ok(new)
        })?;
        Ok(())
    }

    fn find_parent(&self, number: IssueNumber) -> TrackerResult<Option<IssueLocation>> {
        self.read_record(number.get(), RecordKind::Issue)?;
        // One that cannot be read is told elsewhere, and may be the one: nothing is claimed then.
        let (issues, _) = self.list_records(RecordKind::Issue)?;
        let whole = issues.into_iter().find(|(_, record)| record.head.children.contains(&number.get()));
        Ok(whole.and_then(|(other, _)| IssueNumber::new(other)).map(IssueLocation::Here))
    }

    fn blocked_by(&self, number: IssueNumber) -> TrackerResult<Vec<Blocker>> {
        self.list_blockers(&self.read_record(number.get(), RecordKind::Issue)?)
    }

    fn add_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        self.read_record(blocker.get(), RecordKind::Issue)?;
        if number == blocker {
            let what = format!("make {number} wait for {blocker}");
            return Err(TrackerError::Refused { what, why: "nothing waits for itself".to_owned() });
        }
        self.change_record(number.get(), RecordKind::Issue, |record| {
            Ok(record.head.blocked_by.insert(blocker.get()))
        })?;
        Ok(())
    }

    fn remove_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        self.change_record(number.get(), RecordKind::Issue, |record| {
            Ok(record.head.blocked_by.remove(&blocker.get()))
        })?;
        Ok(())
    }

    fn pull_request(&self, number: PrNumber) -> TrackerResult<PullRequest> {
        let record = self.read_record(number.get(), RecordKind::PullRequest)?;
        self.as_pull_request(number.get(), record)
    }

    fn pull_requests_of(&self, head: &TrackerBranchName) -> TrackerResult<Vec<PullRequest>> {
        let all = self.records_for_creation(RecordKind::PullRequest, head.as_str())?.into_iter().rev();
        all.filter(|(_, record)| record.head.branch.as_deref() == Some(head.as_str()))
            .map(|(number, record)| self.as_pull_request(number, record))
            .collect()
    }

    fn create_pull_request(&self, new: &NewPullRequest) -> TrackerResult<CreateOutcome<PullRequest>> {
        let writing = self.lock_for_writing()?;
        for there in self.pull_requests_of(&new.head)? {
            if there.state.is_open() && there.base.as_ref() == Some(&new.base) {
                return Ok(CreateOutcome::Found(there));
            }
        }
        let number = self.next(&writing)?;
        let mut head = LocalFrontMatter::new(RecordKind::PullRequest, &self.author, self.clock.now());
        head.title = new.title.to_string();
        head.state = Some(if new.draft { RecordState::Draft } else { RecordState::Open });
        head.branch = Some(new.head.to_string());
        head.base = Some(new.base.to_string());
        head.commit = Some(new.head_sha.to_string());
        let record = LocalRecord { head, body: new.body.clone() };
        self.write(&writing, &self.path(number), &record)?;
        self.as_pull_request(number, record).map(CreateOutcome::Made)
    }

    fn note_pushed(&self, number: PrNumber, head: &CommitSha) -> TrackerResult<()> {
        self.change_record(number.get(), RecordKind::PullRequest, |record| {
            let head = Some(head.to_string());
            let new = record.head.commit != head;
            record.head.commit = head;
            Ok(new)
        })?;
        Ok(())
    }

    fn mark_ready(&self, number: PrNumber) -> TrackerResult<()> {
        self.change_record(number.get(), RecordKind::PullRequest, |record| {
            let draft = record.head.state == Some(RecordState::Draft);
            if draft {
                record.head.state = Some(RecordState::Open);
            }
            Ok(draft)
        })?;
        Ok(())
    }

    fn merge_pull_request(
        &self,
        number: PrNumber,
        merge: &PullRequestMerge,
    ) -> TrackerResult<CompletedMerge> {
        let what = || format!("merge {number}");
        let conflict = |why: String| TrackerError::Conflict { what: what(), why };
        let mut already = false;
        let record = self.change_record(number.get(), RecordKind::PullRequest, |record| {
            let head = &mut record.head;
            if head.commit.as_deref() != Some(merge.expected.as_str()) {
                let is = head.commit.as_deref().unwrap_or("nothing");
                return Err(conflict(format!("its head is {is}, not {}", merge.expected)));
            }
            match head.state.unwrap_or(RecordState::Open) {
                RecordState::Merged => {
                    already = true;
                    return Ok(false);
                }
                RecordState::Open => {}
                RecordState::Draft => return Err(conflict("it is a draft".to_owned())),
                RecordState::Closed | RecordState::Done | RecordState::NotPlanned => {
                    return Err(conflict("it is closed".to_owned()));
                }
            }
            let Some(landed) = &merge.landed else {
                let why = "these issues keep no branches: land the work, then name the commit".to_owned();
                return Err(TrackerError::Refused { what: what(), why });
            };
            head.state = Some(RecordState::Merged);
            head.merged = Some(landed.to_string());
            Ok(true)
        })?;
        match self.as_pull_request(number.get(), record)?.state {
            PrState::Merged { commit } => Ok(CompletedMerge { commit, already }),
            PrState::Draft | PrState::Open | PrState::Closed => {
                unreachable!("it was merged just now or before")
            }
        }
    }

    fn close_pull_request(&self, number: PrNumber) -> TrackerResult<()> {
        self.change_record(number.get(), RecordKind::PullRequest, |record| {
            match record.head.state.unwrap_or(RecordState::Open) {
                RecordState::Open | RecordState::Draft => {
                    record.head.state = Some(RecordState::Closed);
                    Ok(true)
                }
                RecordState::Merged | RecordState::Closed | RecordState::Done | RecordState::NotPlanned => {
                    Ok(false)
                }
            }
        })?;
        Ok(())
    }

    fn list_reviews(&self, number: PrNumber) -> TrackerResult<Vec<TrackerReview>> {
        self.read_record(number.get(), RecordKind::PullRequest)?;
        Ok(self.records_under(number.get(), RecordKind::Review)?.into_iter().map(as_review).collect())
    }

    fn add_review(&self, number: PrNumber, new: &NewReview) -> TrackerResult<CreateOutcome<TrackerReview>> {
        let mut head = LocalFrontMatter::new(RecordKind::Review, &self.author, self.clock.now());
        head.commit = Some(new.commit.to_string());
        head.verdict = Some(match new.says {
            ReviewAction::Approve => RecordVerdict::Approved,
            ReviewAction::RequestChanges => RecordVerdict::ChangesRequested,
            ReviewAction::Comment => RecordVerdict::Commented,
        });
        let record = LocalRecord { head, body: new.marker.sign_text(&new.body) };
        Ok(match self.add_below(number.into(), &new.marker, record)? {
            CreateOutcome::Made(it) => CreateOutcome::Made(as_review(it)),
            CreateOutcome::Found(it) => CreateOutcome::Found(as_review(it)),
        })
    }

    fn list_checks(&self, _: &CommitSha) -> TrackerResult<Vec<ForgeCheck>> {
        Ok(Vec::new()) // nobody runs any; the gate is Landfall's own
    }

    fn failed_jobs(&self, _commit: &CommitSha) -> TrackerResult<Vec<FailedJob>> {
        Ok(Vec::new()) // nothing runs here
    }

    fn rerun_checks(&self, _commit: &CommitSha) -> TrackerResult<usize> {
        Ok(0)
    }

    fn list_changes(&self, since: &Cursor) -> TrackerResult<(Vec<TrackerChange>, Cursor)> {
        let mut seen = Vec::new();
        for (number, record) in self.list_records(RecordKind::Issue)?.0 {
            let thread = IssueNumber::new(number).map(CommentThread::Issue);
            seen.extend(thread.map(|thread| TrackerChange { thread, at: record.head.updated_at() }));
        }
        for (number, record) in self.list_records(RecordKind::PullRequest)?.0 {
            let thread = PrNumber::new(number).map(CommentThread::PullRequest);
            seen.extend(thread.map(|thread| TrackerChange { thread, at: record.head.updated_at() }));
        }
        Ok(since.advance_past(seen))
    }
}
