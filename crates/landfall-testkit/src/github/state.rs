//! What the fake remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

/// The repository and everything in it. Moments are seconds; each change is a second of its own.
#[derive(Debug, Clone)]
pub struct FakeRepository {
    /// `owner/name`.
    pub repository: String,
    /// A name it had before: what is asked there is sent on.
    pub former: Option<String>,
    /// The default branch.
    pub default_branch: String,
    /// Whose token it is.
    pub login: String,
    /// The token it knows.
    pub token: String,
    /// Issues by number.
    pub issues: BTreeMap<u64, FakeIssue>,
    /// Pull requests by number.
    pub pulls: BTreeMap<u64, FakePull>,
    /// The labels of the repository.
    pub labels: BTreeSet<String>,
    /// Branches and what they point at.
    pub branches: BTreeMap<String, String>,
    /// Check runs by commit.
    pub checks: BTreeMap<String, Vec<FakeCheck>>,
    /// What is known of the jobs behind check runs, by commit and name.
    pub jobs: BTreeMap<(String, String), FakeJob>,
    /// How often the workflow of a commit was run again.
    pub reruns: BTreeMap<String, u64>,
    /// The checks that the head of a branch gets when it is pushed, by the branch.
    pub workflows: BTreeMap<String, Vec<(FakeCheck, FakeJob)>>,
    /// The older kind, by commit.
    pub statuses: BTreeMap<String, Vec<FakeStatus>>,
    /// Issues that were moved to another repository: `owner/name#12` by number.
    pub transferred: BTreeMap<u64, String>,
    /// Whether there are projects with a size field.
    pub has_projects: bool,
    /// The bare repository it keeps, if it keeps a real one: what is pushed there is seen here.
    pub kept: Option<PathBuf>,
    /// Why it merges nothing at present, if so.
    pub merges_none: Option<String>,
    /// Whether it merges only what has a check, and none that is not green.
    pub needs_checks: bool,
    /// Requests left in this window.
    pub left: u64,
    /// The next id of a comment or review.
    pub next_id: u64,
    /// The last change.
    pub now: u64,
}

/// An issue.
#[derive(Debug, Clone, Default)]
pub struct FakeIssue {
    /// The title.
    pub title: String,
    /// The body; null if none was given.
    pub body: Option<String>,
    /// Whether it is closed, and why.
    pub closed: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who wrote it.
    pub author: String,
    /// Its comments.
    pub comments: Vec<FakeComment>,
    /// Its sub-issues.
    pub children: Vec<u64>,
    /// What it waits for.
    pub blocked_by: Vec<u64>,
    /// Its size in a project.
    pub size: Option<String>,
    /// What happened: name and moment.
    pub events: Vec<(String, u64)>,
    /// When it was made.
    pub created: u64,
    /// When it changed.
    pub updated: u64,
}

/// A comment.
#[derive(Debug, Clone)]
pub struct FakeComment {
    /// Its id.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// The text.
    pub body: String,
    /// When.
    pub at: u64,
}

/// A pull request.
#[derive(Debug, Clone, Default)]
pub struct FakePull {
    /// The title.
    pub title: String,
    /// The body.
    pub body: String,
    /// The branch.
    pub head: String,
    /// Whose branch it is: `owner/name`.
    pub head_repository: String,
    /// Into which branch.
    pub base: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is closed.
    pub closed: bool,
    /// The commit that came of it.
    pub merged: Option<String>,
    /// What the head was when it was merged.
    pub merged_head: Option<String>,
    /// Who made it.
    pub author: String,
    /// Its reviews.
    pub reviews: Vec<FakeReview>,
    /// Its comments.
    pub comments: Vec<FakeComment>,
    /// When it was made.
    pub created: u64,
    /// When it changed.
    pub updated: u64,
}

/// A review.
#[derive(Debug, Clone)]
pub struct FakeReview {
    /// Its id.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// `APPROVED` and so on.
    pub state: String,
    /// The text.
    pub body: String,
    /// The commit.
    pub commit: String,
}

/// A check run.
#[derive(Debug, Clone)]
pub struct FakeCheck {
    /// Its name.
    pub name: String,
    /// `completed` and so on.
    pub status: String,
    /// `success` and so on.
    pub conclusion: Option<String>,
}

impl FakeCheck {
    /// A check that is over.
    #[must_use]
    pub fn over(name: &str, conclusion: &str) -> Self {
        let (status, conclusion) = ("completed".to_owned(), Some(conclusion.to_owned()));
        Self { name: name.to_owned(), status, conclusion }
    }
}

/// The job behind a check run.
#[derive(Debug, Clone, Default)]
pub struct FakeJob {
    /// Its steps, and how each ended.
    pub steps: Vec<(String, Option<String>)>,
    /// What its runner remarked about the failure.
    pub remarks: Vec<String>,
    /// How it ends when it is run again, one time after the other; as before if nothing is said.
    pub again: Vec<String>,
}

impl FakeJob {
    /// One that was set up, and whose step `Run tests` ended like this.
    #[must_use]
    pub fn tested(conclusion: &str) -> Self {
        let steps = [("Set up job", "success"), ("Run tests", conclusion)];
        let steps = steps.map(|(name, ended)| (name.to_owned(), Some(ended.to_owned()))).to_vec();
        Self { steps, ..Self::default() }
    }
}

/// A commit status.
#[derive(Debug, Clone)]
pub struct FakeStatus {
    /// Its name.
    pub context: String,
    /// `success` and so on.
    pub state: String,
}

const BEGAN: u64 = 1_790_000_000;

impl Default for FakeRepository {
    fn default() -> Self {
        Self {
            repository: "o/r".to_owned(),
            former: None,
            default_branch: "main".to_owned(),
            login: "landfall-bot".to_owned(),
            token: super::FAKE_TOKEN.to_owned(),
            issues: BTreeMap::new(),
            pulls: BTreeMap::new(),
            labels: BTreeSet::new(),
            branches: BTreeMap::from([("main".to_owned(), "0".repeat(40))]),
            checks: BTreeMap::new(),
            jobs: BTreeMap::new(),
            reruns: BTreeMap::new(),
            workflows: BTreeMap::new(),
            statuses: BTreeMap::new(),
            transferred: BTreeMap::new(),
            has_projects: false,
            kept: None,
            merges_none: None,
            needs_checks: false,
            left: 5_000,
            next_id: 1,
            now: BEGAN,
        }
    }
}

impl FakeRepository {
    /// Merges a pull request of the repository it keeps, with a merge commit, as GitHub does: nobody pushes.
    pub fn merge_kept(&self, pull: &FakePull) -> Option<String> {
        let kept = self.kept.as_ref()?;
        let git = |args: &[&str]| {
            let who = ["-c", "user.name=GitHub", "-c", "user.email=noreply@example.com"];
            let said = Command::new("git").arg("--git-dir").arg(kept).args(who).args(args).output();
            let said = said.expect("git can be run");
            assert!(said.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&said.stderr));
            String::from_utf8_lossy(&said.stdout).trim().to_owned()
        };
        let (base, head) = (self.branches.get(&pull.base)?, self.head_of(pull));
        let tree = git(&["merge-tree", "--write-tree", base, &head]);
        let message = format!("Merge {}", pull.head);
        let merged = git(&["commit-tree", &tree, "-p", base, "-p", &head, "-m", &message]);
        git(&["update-ref", &format!("refs/heads/{}", pull.base), &merged]);
        Some(merged)
    }

    /// Sees what was pushed, as GitHub does: branches are where they are, a pull request whose work the base holds is merged,
    /// and a commit that says so on the default branch closes its issue.
    pub fn see_pushes(&mut self) {
        let Some(kept) = self.kept.clone() else { return };
        let git = |args: &[&str]| {
            let said =
                Command::new("git").arg("--git-dir").arg(&kept).args(args).output().expect("git can be run");
            said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
        };
        let all_before = std::mem::take(&mut self.branches);
        let refs = git(&["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads"]);
        self.branches = refs
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, oid)| (name.to_owned(), oid.to_owned()))
            .collect();
        self.run_workflows();
        let moved = |branch: &str| all_before.get(branch) != self.branches.get(branch);
        let pulls = self.pulls.iter().filter(|(_, it)| !it.closed && moved(&it.base));
        let open: Vec<u64> = pulls.map(|(number, _)| *number).collect();
        for number in open {
            let head = self.head_of(&self.pulls[&number]);
            let base = self.branches.get(&self.pulls[&number].base).cloned().unwrap_or_default();
            if git(&["merge-base", "--is-ancestor", &head, &base]).is_some() {
                let tick = self.tick();
                let pull = self.pulls.get_mut(&number).expect("just seen");
                (pull.closed, pull.merged, pull.merged_head, pull.updated) =
                    (true, Some(base), Some(head), tick);
            }
        }
        let before = all_before.get(&self.default_branch).cloned();
        let now = self.branches.get(&self.default_branch).cloned();
        if now == before {
            return;
        }
        let range = match (&before, &now) {
            (Some(before), Some(now)) if git(&["cat-file", "-e", before]).is_some() => {
                format!("{before}..{now}")
            }
            (_, Some(now)) => now.clone(),
            (_, None) => return,
        };
        let words = git(&["log", "--format=%B", &range]).unwrap_or_default().to_lowercase();
        for number in self.issues.keys().copied().collect::<Vec<_>>() {
            let closes = words.split_whitespace().collect::<Vec<_>>();
            let named = format!("#{number}");
            if closes.windows(2).any(|pair| pair[0] == "closes" && pair[1] == named) {
                let tick = self.tick();
                let issue = self.issues.get_mut(&number).expect("just seen");
                if issue.closed.is_none() {
                    issue.closed = Some("completed".to_owned());
                    issue.updated = tick;
                    issue.events.push(("closed".to_owned(), tick));
                }
            }
        }
    }

    /// Heads that were pushed get the checks of their branch, once.
    fn run_workflows(&mut self) {
        for (branch, checks) in &self.workflows {
            let Some(sha) = self.branches.get(branch).filter(|sha| !self.checks.contains_key(*sha)) else {
                continue;
            };
            for (check, job) in checks {
                self.checks.entry(sha.clone()).or_default().push(check.clone());
                self.jobs.insert((sha.clone(), check.name.clone()), job.clone());
            }
        }
    }

    /// Now, by the fake's clock: a while after the last change.
    #[must_use]
    pub fn date(&self) -> u64 {
        self.now + 10
    }

    /// A moment for a change.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A number nobody has.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        let last = |it: Option<&u64>| it.copied().unwrap_or(0);
        last(self.issues.keys().next_back()).max(last(self.pulls.keys().next_back())) + 1
    }

    /// An id nobody has.
    pub fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Another person opens an issue. Its number.
    pub fn opened(&mut self, title: &str, body: &str, labels: &[&str]) -> u64 {
        let (number, now) = (self.next_number(), self.tick());
        self.labels.extend(labels.iter().map(|it| (*it).to_owned()));
        let issue = FakeIssue {
            title: title.to_owned(),
            body: Some(body.to_owned()),
            labels: labels.iter().map(|it| (*it).to_owned()).collect(),
            author: "someone".to_owned(),
            created: now,
            updated: now,
            ..FakeIssue::default()
        };
        self.issues.insert(number, issue);
        number
    }

    /// Another person comments on an issue.
    pub fn said(&mut self, number: u64, author: &str, body: &str) {
        let (id, at) = (self.id(), self.tick());
        let issue = self.issues.get_mut(&number).expect("there is such an issue");
        issue.comments.push(FakeComment { id, author: author.to_owned(), body: body.to_owned(), at });
        issue.updated = at;
    }

    pub(super) fn user(&self, login: &str) -> Value {
        let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
        json!({ "login": login, "id": 7, "type": kind, "site_admin": false })
    }

    pub(super) fn label(&self, name: &str) -> Value {
        json!({ "id": 1, "name": name, "color": "ededed", "default": false, "description": null })
    }

    pub(super) fn issue(&self, at: SocketAddr, number: u64) -> Value {
        let issue = &self.issues[&number];
        let labels: Vec<Value> = issue.labels.iter().map(|label| self.label(label)).collect();
        let open =
            issue.blocked_by.iter().filter(|it| self.issues.get(it).is_some_and(|it| it.closed.is_none()));
        json!({
            "id": id_of(number),
            "node_id": format!("I_{number}"),
            "url": format!("http://{at}/api/v3/repos/{}/issues/{number}", self.repository),
            "html_url": format!("http://{at}/{}/issues/{number}", self.repository),
            "repository_url": format!("http://{at}/api/v3/repos/{}", self.repository),
            "number": number,
            "title": issue.title,
            "body": issue.body,
            "state": if issue.closed.is_some() { "closed" } else { "open" },
            "state_reason": issue.closed,
            "labels": labels,
            "assignees": [],
            "assignee": null,
            "milestone": null,
            "locked": false,
            "user": self.user(&issue.author),
            "comments": issue.comments.len(),
            "created_at": moment(issue.created),
            "updated_at": moment(issue.updated),
            "closed_at": issue.closed.as_ref().map(|_| moment(issue.updated)),
            "author_association": "MEMBER",
            "sub_issues_summary": { "total": issue.children.len(), "completed": 0, "percent_completed": 0 },
            "issue_dependencies_summary": {
                "blocked_by": open.count(), "blocking": 0, "total_blocked_by": issue.blocked_by.len(), "total_blocking": 0,
            },
        })
    }

    /// A pull request among the issues.
    pub(super) fn pull_as_issue(&self, at: SocketAddr, number: u64) -> Value {
        let pull = &self.pulls[&number];
        json!({
            "id": id_of(number),
            "node_id": format!("PR_{number}"),
            "html_url": format!("http://{at}/{}/pull/{number}", self.repository),
            "repository_url": format!("http://{at}/api/v3/repos/{}", self.repository),
            "number": number,
            "title": pull.title,
            "body": pull.body,
            "state": if pull.closed { "closed" } else { "open" },
            "labels": [],
            "user": self.user(&pull.author),
            "comments": pull.comments.len(),
            "created_at": moment(pull.created),
            "updated_at": moment(pull.updated),
            "closed_at": null,
            "pull_request": { "url": null, "html_url": null, "diff_url": null, "patch_url": null },
        })
    }

    pub(super) fn comment(&self, comment: &FakeComment) -> Value {
        json!({
            "id": comment.id,
            "body": comment.body,
            "user": self.user(&comment.author),
            "created_at": moment(comment.at),
            "updated_at": moment(comment.at),
        })
    }

    /// What the head of a pull request points at.
    #[must_use]
    pub fn head_of(&self, pull: &FakePull) -> String {
        let now = || self.branches.get(&pull.head).cloned().unwrap_or_else(|| "f".repeat(40));
        pull.merged_head.clone().unwrap_or_else(now)
    }

    pub(super) fn pull(&self, at: SocketAddr, number: u64) -> Value {
        let pull = &self.pulls[&number];
        let sha = self.head_of(pull);
        let base_sha = self.branches.get(&pull.base).cloned().unwrap_or_else(|| "0".repeat(40));
        let repository = |name: &str| json!({ "id": 1, "full_name": name, "name": name.rsplit('/').next() });
        json!({
            "id": id_of(number),
            "node_id": format!("PR_{number}"),
            "html_url": format!("http://{at}/{}/pull/{number}", self.repository),
            "number": number,
            "title": pull.title,
            "body": pull.body,
            "state": if pull.closed { "closed" } else { "open" },
            "locked": false,
            "draft": pull.draft,
            "merged": pull.merged.is_some(),
            "merged_at": pull.merged.as_ref().map(|_| moment(pull.updated)),
            // GitHub shows the commit it tried the merge with as long as it is open.
            "merge_commit_sha": pull.merged.clone().unwrap_or_else(|| "e".repeat(40)),
            "mergeable": (!pull.closed).then_some(true),
            "user": self.user(&pull.author),
            "head": { "label": format!("o:{}", pull.head), "ref": pull.head, "sha": sha, "repo": repository(&pull.head_repository) },
            "base": { "label": format!("o:{}", pull.base), "ref": pull.base, "sha": base_sha, "repo": repository(&self.repository) },
            "created_at": moment(pull.created),
            "updated_at": moment(pull.updated),
        })
    }

    pub(super) fn review(&self, review: &FakeReview) -> Value {
        json!({
            "id": review.id,
            "node_id": format!("R_{}", review.id),
            "user": self.user(&review.author),
            "body": review.body,
            "state": review.state,
            "commit_id": review.commit,
        })
    }
}

/// The id of an issue is not its number; a client that mixes them up is found out.
pub(super) fn id_of(number: u64) -> u64 {
    number + 1_000_000
}

/// The one run of workflows of a commit.
pub(super) fn run_of(sha: &str) -> u64 {
    u64::from_str_radix(sha.get(..8).unwrap_or_default(), 16).unwrap_or_default() + 1
}

/// Days since 1970 as year, month and day.
fn civil(days: u64) -> (u64, u64, u64) {
    // The calendar repeats every 400 years, 146 097 days; years are counted from March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

pub(super) fn moment(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let rest = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

pub(super) fn http_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = civil(seconds / 86_400);
    let index = |number: u64| usize::try_from(number).expect("small");
    let (weekday, month) = (DAYS[index(seconds / 86_400 % 7)], MONTHS[index(month - 1)]);
    let rest = seconds % 86_400;
    format!(
        "{weekday}, {day:02} {month} {year} {:02}:{:02}:{:02} GMT",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}
