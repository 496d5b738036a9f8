//! What the tests of trackers share: a clock that does not wait, and trackers to be asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use landfall_model::Timestamp;
use landfall_testkit::{FAKE_TOKEN, FakeGithub};
use landfall_trackers::github::{Github, GithubEndpoints, GithubRetryPolicy, GithubSetup, TokenSources};
use landfall_trackers::local::LocalTracker;
use landfall_trackers::tracker::{
    CreateOutcome, Issue, IssueNumber, Label, Marker, NewIssue, RepoName, Title, Tracker, TrackerClock,
    WaitEnd,
};

/// A clock that moves when someone waits, and a little with every look.
pub struct TestClock {
    now: AtomicI64,
    waited: AtomicU64,
    is_stopped: AtomicBool,
}

impl TestClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicI64::new(1_800_000_000_000),
            waited: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// From now on every wait is cut short, or none is.
    pub fn stop(&self, is_stopped: bool) {
        self.is_stopped.store(is_stopped, Ordering::SeqCst);
    }

    /// How long was waited, all in all.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::SeqCst)
    }
}

impl TrackerClock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.fetch_add(1, Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) -> WaitEnd {
        if self.is_stopped.load(Ordering::SeqCst) {
            return WaitEnd::Stopped;
        }
        self.waited.fetch_add(ms, Ordering::SeqCst);
        self.now.fetch_add(i64::try_from(ms).expect("no test waits for ages"), Ordering::SeqCst);
        WaitEnd::Elapsed
    }
}

/// A GitHub of ours, and the adapter that speaks with it.
pub struct Fake {
    pub fake: FakeGithub,
    pub github: Github,
    pub clock: Arc<TestClock>,
}

/// Short where the clock is real, as it is for an answer that does not come.
pub const PATIENCE: GithubRetryPolicy = GithubRetryPolicy {
    answer_ms: 1_500,
    limit_ms_max: 90_000,
    tries_max: 4,
    again_ms: 1_000,
    write_gap_ms: 0,
};

pub fn fake() -> Fake {
    let fake = FakeGithub::start();
    let clock = TestClock::new();
    let github = github(&fake, Arc::clone(&clock), PATIENCE);
    Fake { fake, github, clock }
}

pub fn github(fake: &FakeGithub, clock: Arc<TestClock>, patience: GithubRetryPolicy) -> Github {
    let token = TokenSources::default().with_provider("the test", Arc::new(|| Ok(FAKE_TOKEN.to_owned())));
    let setup = GithubSetup {
        base: GithubEndpoints::new(&fake.url()).expect("an address"),
        repository: RepoName::new("o/r").expect("a name"),
        token,
        proxy: None,
        size_field: Some("Size".to_owned()),
        patience,
        clock,
    };
    Github::new(setup).expect("it can be made")
}

/// Issues in a folder that goes away with it.
pub struct Files {
    pub folder: tempfile::TempDir,
    pub local: LocalTracker,
}

pub fn files() -> Files {
    let folder = tempfile::tempdir().expect("a folder");
    let local = LocalTracker::new(&folder.path().join("issues"), "landfall", TestClock::new());
    Files { folder, local }
}

pub fn number(number: u64) -> IssueNumber {
    IssueNumber::new(number).expect("not 0")
}

pub fn label(text: &str) -> Label {
    Label::new(text).expect("a label")
}

pub fn labels<const N: usize>(texts: [&str; N]) -> std::collections::BTreeSet<Label> {
    texts.into_iter().map(label).collect()
}

pub fn marker(key: &str) -> Marker {
    Marker::new(key).expect("a key")
}

pub fn new_issue(key: &str, title: &str, body: &str) -> NewIssue {
    NewIssue { marker: marker(key), title: Title::from_text(title), body: body.to_owned(), labels: [].into() }
}

/// Makes an issue that was not there.
pub fn make(tracker: &dyn Tracker, title: &str) -> Issue {
    let slug = landfall_trackers::tracker::Slug::from_text(title);
    match tracker.create_issue(&new_issue(&format!("test/{slug}"), title, "body")).expect("it can be made") {
        CreateOutcome::Made(issue) => issue,
        CreateOutcome::Found(issue) => panic!("{} was there already", issue.number),
    }
}
