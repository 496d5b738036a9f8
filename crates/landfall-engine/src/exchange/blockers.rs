//! What an issue waits for: the relation of its tracker and the words of its text, and whether each of them still holds it up.

use std::collections::BTreeMap;

use landfall_model::haul::LiveIssue;
use landfall_model::issue::{IssuePhase, blockers_in};
use landfall_trackers::tracker::{
    Blocker, Issue, IssueLocation, IssueNumber, Tracker, TrackerError, TrackerResult,
};

use super::seeing::phase_of;

/// The issues that an issue waits for or waited for. One that bears the label of the phase `done` holds nobody up, unless a person
/// opened it again. Of those that only a text names, its own parts, what it is a part of, and what is not there hold nobody up.
///
/// # Errors
/// When the tracker cannot be asked.
pub fn blockers_of(tracker: &dyn Tracker, issue: &Issue) -> TrackerResult<Vec<Blocker>> {
    let related = match issue.blockers {
        Some(0) => Vec::new(), // most have none, and the answer says so
        Some(_) | None => tracker.blocked_by(issue.number)?,
    };
    BlockerReader::new(tracker).read_blockers(issue, related)
}

/// Reads the blockers of several issues. Each answer of the tracker is remembered: issues that are read together often wait for
/// the same ones.
pub(super) struct BlockerReader<'a> {
    tracker: &'a dyn Tracker,
    /// Whether an issue is done; none if it cannot be found here.
    done: BTreeMap<IssueNumber, Option<bool>>,
    parents: BTreeMap<IssueNumber, Option<IssueLocation>>,
}

impl<'a> BlockerReader<'a> {
    pub fn new(tracker: &'a dyn Tracker) -> Self {
        Self { tracker, done: BTreeMap::new(), parents: BTreeMap::new() }
    }

    /// Remembers an issue that was read already, and answers whether it is done.
    pub fn note_issue(&mut self, issue: &Issue) -> TrackerResult<bool> {
        let done = read_live_issue(self.tracker, issue)?.is_done();
        self.done.insert(issue.number, Some(done));
        Ok(done)
    }

    /// Remembers what an issue is a part of.
    pub fn note_parent(&mut self, child: IssueNumber, parent: IssueNumber) {
        self.parents.insert(child, Some(IssueLocation::Here(parent)));
    }

    /// The blockers of an issue: those that are `related` to it, and those that its text names.
    pub fn read_blockers(&mut self, issue: &Issue, related: Vec<Blocker>) -> TrackerResult<Vec<Blocker>> {
        let mut all = Vec::new();
        for blocker in related {
            let open = match &blocker.place {
                // One that was deleted or moved meanwhile is as open as the relation says.
                IssueLocation::Here(number) if blocker.open => !self.is_done(*number)?.unwrap_or(false),
                IssueLocation::Here(_) | IssueLocation::Elsewhere(_) => blocker.open,
            };
            all.push(Blocker { open, ..blocker });
        }
        for number in blockers_in(&issue.body).into_iter().filter_map(IssueNumber::new) {
            let place = IssueLocation::Here(number);
            let known = number == issue.number || all.iter().any(|it| it.place == place);
            if known || self.is_parent_or_child(issue, number)? {
                continue;
            }
            // A number without an issue is a slip of the pen.
            if let Some(done) = self.is_done(number)? {
                all.push(Blocker { place, open: !done });
            }
        }
        Ok(all)
    }

    fn is_done(&mut self, number: IssueNumber) -> TrackerResult<Option<bool>> {
        if let Some(done) = self.done.get(&number) {
            return Ok(*done);
        }
        match self.tracker.read_issue(number) {
            Ok(issue) => self.note_issue(&issue).map(Some),
            Err(TrackerError::NotFound { .. } | TrackerError::Moved { .. }) => {
                self.done.insert(number, None);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether one of two issues is a part of the other. A parent is done once its parts are, so neither can wait for the other
    /// before it begins: texts say it all the same.
    fn is_parent_or_child(&mut self, issue: &Issue, other: IssueNumber) -> TrackerResult<bool> {
        if self.find_parent(issue.number)? == Some(IssueLocation::Here(other)) {
            return Ok(true);
        }
        Ok(issue.children > 0 && self.find_parent(other)? == Some(IssueLocation::Here(issue.number)))
    }

    fn find_parent(&mut self, number: IssueNumber) -> TrackerResult<Option<IssueLocation>> {
        if let Some(parent) = self.parents.get(&number) {
            return Ok(parent.clone());
        }
        let parent = match self.tracker.find_parent(number) {
            Ok(parent) => parent,
            // Not every tracker has parents or shows them to everybody, and a text may name what is not there.
            Err(
                TrackerError::NotFound { .. }
                | TrackerError::Moved { .. }
                | TrackerError::Refused { .. }
                | TrackerError::Forbidden { .. },
            ) => None,
            Err(error) => return Err(error),
        };
        self.parents.insert(number, parent.clone());
        Ok(parent)
    }
}

/// Whether an issue is open, its phase by its labels, and whether it was opened again. The tracker is asked for that only where
/// the issue is open and labelled as done: nowhere else does it matter.
///
/// # Errors
/// When the tracker cannot be asked.
pub fn read_live_issue(tracker: &dyn Tracker, issue: &Issue) -> TrackerResult<LiveIssue> {
    let (open, phase) = (issue.state.is_open(), phase_of(issue));
    let matters = open && phase == Some(IssuePhase::Done);
    let reopened = matters && tracker.last_reopened(issue.number)?.is_some();
    Ok(LiveIssue { open, phase, reopened })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landfall_model::Timestamp;
    use landfall_trackers::local::LocalTracker;
    use landfall_trackers::tracker::{CloseReason, Marker, NewIssue, Title, TrackerClock, WaitEnd};

    use super::*;

    struct StoppedClock;

    impl TrackerClock for StoppedClock {
        fn now(&self) -> Timestamp {
            Timestamp(1)
        }

        fn wait(&self, _: u64) -> WaitEnd {
            WaitEnd::Elapsed
        }
    }

    fn add_issue(tracker: &dyn Tracker, title: &str, body: &str) -> Issue {
        let new = NewIssue {
            marker: Marker::new(&format!("test/{title}")).expect("a key"),
            title: Title::from_text(title),
            body: body.to_owned(),
            labels: std::collections::BTreeSet::new(),
        };
        tracker.create_issue(&new).expect("made").into_inner()
    }

    #[test]
    fn a_related_blocker_that_is_gone_is_as_open_as_the_relation_says() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let tracker = LocalTracker::new(&folder.path().join("issues"), "landfall", Arc::new(StoppedClock));
        let issue = add_issue(&tracker, "one", "");
        let gone = IssueNumber::new(77).expect("not 0");
        let related = |open| vec![Blocker { place: IssueLocation::Here(gone), open }];
        for open in [true, false] {
            let found = BlockerReader::new(&tracker).read_blockers(&issue, related(open));
            assert_eq!(found, Ok(related(open)));
        }
    }

    #[test]
    fn a_blocker_of_several_issues_is_asked_for_once() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let tracker = LocalTracker::new(&folder.path().join("issues"), "landfall", Arc::new(StoppedClock));
        let blocker = add_issue(&tracker, "one", "").number;
        let (two, three) =
            (add_issue(&tracker, "two", "Blocked by #1"), add_issue(&tracker, "three", "Blocked by #1"));
        let open = |open| vec![Blocker { place: IssueLocation::Here(blocker), open }];
        let mut reader = BlockerReader::new(&tracker);
        assert_eq!(reader.read_blockers(&two, Vec::new()), Ok(open(true)));
        tracker.close_issue(blocker, CloseReason::Done).expect("closed");
        assert_eq!(reader.read_blockers(&three, Vec::new()), Ok(open(true)), "it remembers the answer");
        assert_eq!(BlockerReader::new(&tracker).read_blockers(&three, Vec::new()), Ok(open(false)));
    }
}
