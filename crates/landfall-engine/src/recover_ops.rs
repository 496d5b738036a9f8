//! Carries out the operations of a recovery: those a pattern orders and those a plan names, which are the same.
//!
//! The work is changed in the store, never in the agent's workspace: whoever goes on begins from what came of it. Before
//! anything is done, what the operations rely on is looked at again; if it has changed, nothing is done at all. All of
//! them may be repeated. The caller writes down what is tried and what came of it.

mod rebase;

use landfall_host::git::{
    CollectOptions, HeldReason, LeftoverCommit, LogRange, LostHeadPolicy, MergeResult, Oid, PublishOutcome,
    Repo, Signature, Store, Workspace,
};
use landfall_model::TaskId;
use landfall_model::recovery::{IssueArtifacts, RecoveryOp, restored_phase};
use landfall_trackers::tracker::{
    CommentThread, CommitSha, IssueNumber, Label, Marker, NewPullRequest, PHASE_FAMILY, PrNumber,
    PullRequest, Title, Tracker, TrackerBranchName, TrackerError, TrackerIssueState, neutralize_markers,
};
use thiserror::Error;

use crate::git_refs::task_ref;

/// What a review that we know again ends with, as the key of a marker.
pub const REVIEW_MARKER: &str = "review-summary";
/// What reviews are headed with, in small letters.
const REVIEW_HEADINGS: [&str; 3] = ["review summary", "review result", "findings"];

/// What the operations are about.
pub struct RecoveryOpContext<'a> {
    /// The engine's own repository.
    pub store: &'a Store,
    /// The person's repository.
    pub repo: &'a Repo,
    /// The tracker of the project.
    pub tracker: &'a dyn Tracker,
    /// The remote that branches are pushed to, by its name; none if the tracker keeps no branches.
    pub remote: Option<&'a str>,
    /// The task.
    pub task: TaskId,
    /// What it is called in marks of the tracker.
    pub key: &'a str,
    /// What makes this recovery different from others of the task, for refs and markers: digits and dashes, such as `4-1`.
    pub mark: &'a str,
    /// The issue it is for.
    pub issue: IssueNumber,
    /// Its workspace, if it stands.
    pub workspace: Option<&'a Workspace>,
    /// The tip of its work as the caller knows it.
    pub head: &'a Oid,
    /// Its branch, which begins with `landfall/`.
    pub branch: &'a TrackerBranchName,
    /// The branch its work is for.
    pub base: &'a TrackerBranchName,
    /// The title of its pull request, and of commits.
    pub title: &'a str,
    /// The text of its pull request.
    pub body: &'a str,
    /// Who signs off, and signs commits.
    pub by: &'a Signature,
    /// Whether a pull request of the branch belongs to the round of work that is under way.
    pub is_of_round: &'a dyn Fn(PrNumber) -> bool,
    /// What the issue has left behind, looked at now.
    pub hints: &'a dyn Fn() -> Result<IssueArtifacts, String>,
    /// Runs a check of the settings, by its name, on this work; the error says how it failed.
    pub run_check: &'a dyn Fn(&str, &Oid) -> Result<(), String>,
}

/// What came of the operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryOpsResult {
    /// The tip of the work now. It is kept in the store.
    pub head: Oid,
    /// The pull request, if one was made or found.
    pub pr: Option<PrNumber>,
    /// A line for each operation that is done.
    pub lines: Vec<String>,
}

/// Why they were not all done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpsError {
    /// Something is not as it was: nothing was done.
    #[error("nothing was done, because things have changed: {0}")]
    Changed(String),
    /// One did not work out; those before it are done.
    #[error("`{op}` (step {number}): {why}")]
    Failed {
        /// Which, from 1.
        number: usize,
        /// Its name.
        op: &'static str,
        /// Why.
        why: String,
        /// What was done before it.
        did: Box<RecoveryOpsResult>,
    },
}

/// Carries them out, in order, until one does not work out.
///
/// # Errors
/// When something has changed, or one did not work out.
pub fn perform_operations(
    ground: &RecoveryOpContext<'_>,
    ops: &[RecoveryOp],
) -> Result<RecoveryOpsResult, OpsError> {
    ground.still_holds().map_err(OpsError::Changed)?;
    let mut hands = RecoveryOperator { ground, head: ground.head.clone(), pr: None };
    let mut lines = Vec::new();
    for (op, number) in ops.iter().zip(1..) {
        match hands.perform_operation(op) {
            Ok(line) => lines.push(line),
            Err(why) => {
                let did = Box::new(RecoveryOpsResult { head: hands.head, pr: hands.pr, lines });
                return Err(OpsError::Failed { number, op: op.word(), why, did });
            }
        }
    }
    Ok(RecoveryOpsResult { head: hands.head, pr: hands.pr, lines })
}

impl RecoveryOpContext<'_> {
    /// Whether what the caller knew is still so.
    fn still_holds(&self) -> Result<(), String> {
        if self.branch == self.base {
            return Err(format!("`{}` is the base, not the branch of a task", self.branch));
        }
        let issue = self.tracker.read_issue(self.issue).map_err(tracker_error_text)?;
        if let TrackerIssueState::Closed { .. } = issue.state {
            return Err(format!("issue {} was closed", self.issue));
        }
        let seen = self.workspace.and_then(|workspace| self.store.workspace_head(workspace));
        // Work that was changed in the store is ahead of its workspace.
        if let Some(seen) = seen.filter(|seen| seen != self.head) {
            let known = self.store.contains(&seen).map_err(|error| error.full_message())?;
            if !known {
                return Err(format!("the work has moved to {}", seen.short()));
            }
        }
        let all = self.tracker.pull_requests_of(self.branch).map_err(tracker_error_text)?;
        if all.iter().any(|pr| is_merged(pr) && (self.is_of_round)(pr.number)) {
            return Err(format!("the pull request of `{}` was merged", self.branch));
        }
        Ok(())
    }
}

fn is_merged(pr: &PullRequest) -> bool {
    matches!(pr.state, landfall_trackers::tracker::PrState::Merged { .. })
}

fn tracker_error_text(error: TrackerError) -> String {
    error.to_string()
}

struct RecoveryOperator<'a> {
    ground: &'a RecoveryOpContext<'a>,
    head: Oid,
    pr: Option<PrNumber>,
}

impl RecoveryOperator<'_> {
    fn perform_operation(&mut self, op: &RecoveryOp) -> Result<String, String> {
        match op {
            RecoveryOp::CommitLeftovers => self.commit_leftovers(),
            RecoveryOp::AmendSignOff => self.amend_sign_off(),
            RecoveryOp::RebaseOntoBase => self.rebase_onto_base(),
            RecoveryOp::MergeBase => self.merge_base(),
            RecoveryOp::PushBranch => self.push_branch(),
            RecoveryOp::OpenPr => self.open_pr(),
            RecoveryOp::Comment { text } => self.post_comment(text),
            RecoveryOp::SetPhaseLabel { phase } => self.set_phase(*phase),
            RecoveryOp::RerunChecks => self.rerun_checks(),
            RecoveryOp::MarkReview => self.mark_review(),
            RecoveryOp::RunCheck { name } => {
                (self.ground.run_check)(name, &self.head)?;
                Ok(format!("check `{name}` passes"))
            }
        }
    }

    // ── The work ───────────────────────────────────────────────────────────────────────────────────────

    fn commit_leftovers(&mut self) -> Result<String, String> {
        const PATHS_MAX: u64 = 200_000; // work that is collected for verification has the limit of the settings
        let workspace = self.ground.workspace.ok_or("its workspace is gone")?;
        let options = CollectOptions {
            pin: Some(task_ref("tasks", self.ground.task, &format!("recovered-{}", self.ground.mark))),
            commit_leftovers: Some(LeftoverCommit {
                message: format!("{} ({}): what was left uncommitted\n", self.ground.title, self.ground.task),
                signature: self.ground.by.clone(),
            }),
            lost_head: LostHeadPolicy::Refuse,
            aside: None,
            paths_max: PATHS_MAX,
        };
        let collected =
            self.ground.store.collect_work(workspace, &options).map_err(|error| error.to_string())?;
        if collected.agent_head != self.head {
            return Err(format!("the workspace stands at {}, not at the work", collected.agent_head.short()));
        }
        if !collected.leftovers {
            return Ok("nothing was left uncommitted".to_owned());
        }
        self.head = collected.head;
        Ok(format!("committed {} changed paths as {}", collected.dirty_count, self.head.short()))
    }

    /// The base as it is now, if the work has commits of its own on it: what is on the base is nobody's to change.
    fn base_below_work(&self) -> Result<Oid, String> {
        let store = self.ground.store;
        let base = store.read_base().map_err(git_error_text)?.ok_or("there is no base yet")?;
        if store.is_ancestor(&self.head, &base).map_err(git_error_text)? {
            return Err("there are no commits besides those of the base".to_owned());
        }
        Ok(base)
    }

    fn amend_sign_off(&mut self) -> Result<String, String> {
        self.base_below_work()?;
        let RecoveryOpContext { store, by, .. } = *self.ground;
        let range = LogRange { to: self.head.clone(), from: None, first_parent: true };
        let last = store
            .read_log(&range, 1)
            .map_err(git_error_text)?
            .pop()
            .ok_or("the last commit cannot be read")?;
        let line = format!("Signed-off-by: {} <{}>", by.name, by.email);
        if last.message.lines().any(|it| it.trim() == line) {
            return Ok("the last commit is signed off".to_owned());
        }
        let message = last.message.trim_end();
        let gap = if ends_with_trailers(message) { "\n" } else { "\n\n" };
        let message = format!("{message}{gap}{line}\n");
        let amended = store
            .create_commit(&last.tree, &last.parents, &message, &last.author, by)
            .map_err(git_error_text)?;
        self.move_work_to(amended)?;
        Ok(format!("signed off as {}", self.head.short()))
    }

    fn rebase_onto_base(&mut self) -> Result<String, String> {
        let base = self.base_below_work()?;
        let RecoveryOpContext { store, by, .. } = *self.ground;
        if store.is_ancestor(&base, &self.head).map_err(git_error_text)? {
            return Ok("the work is on the base".to_owned());
        }
        let rebased = rebase::rebase_onto(store, &base, &self.head, by)?;
        if rebased == base {
            return Err("everything in the work is on the base already".to_owned());
        }
        self.move_work_to(rebased)?;
        Ok(format!("put on {} as {}", base.short(), self.head.short()))
    }

    fn merge_base(&mut self) -> Result<String, String> {
        let base = self.base_below_work()?;
        let RecoveryOpContext { store, by, branch, base: base_name, .. } = *self.ground;
        if store.is_ancestor(&base, &self.head).map_err(git_error_text)? {
            return Ok("the base is in the work".to_owned());
        }
        let tree = match store.merge_commits(&self.head, &base).map_err(git_error_text)? {
            MergeResult::Clean { tree } => tree,
            MergeResult::Conflict { paths, .. } => return Err(rebase::describe_disputed_paths(&paths)),
        };
        let message = format!("Merge `{base_name}` into `{branch}`\n");
        let merged = store
            .create_commit(&tree, &[self.head.clone(), base.clone()], &message, by, by)
            .map_err(git_error_text)?;
        self.move_work_to(merged)?;
        Ok(format!("merged {} as {}", base.short(), self.head.short()))
    }

    /// The work stands elsewhere now. What it was stays reachable under the name it had.
    fn move_work_to(&mut self, to: Oid) -> Result<(), String> {
        let RecoveryOpContext { store, task, mark, .. } = *self.ground;
        store
            .pin_commit(&task_ref("kept", task, &format!("before-{mark}")), self.ground.head)
            .map_err(git_error_text)?;
        store
            .pin_commit(&task_ref("tasks", task, &format!("recovered-{mark}")), &to)
            .map_err(git_error_text)?;
        self.head = to;
        Ok(())
    }

    // ── The tracker ────────────────────────────────────────────────────────────────────────────────────

    fn push_branch(&mut self) -> Result<String, String> {
        self.base_below_work()?;
        let RecoveryOpContext { store, repo, tracker, remote, branch, .. } = *self.ground;
        let open = self.open_of_branch()?;
        let Some(remote) = remote else {
            if tracker.keeps_branches() {
                return Err("the settings name no remote to push to".to_owned());
            }
            let Some(pr) = open else { return Ok("the tracker keeps no branches".to_owned()) };
            tracker.note_pushed(pr.number, &to_commit_sha(&self.head)?).map_err(tracker_error_text)?;
            return Ok(format!("{} stands at {}", pr.number, self.head.short()));
        };
        let name = landfall_host::git::BranchName::new(branch.as_str()).map_err(|error| error.to_string())?;
        let expected = match (store.remote_seen(remote, &name).map_err(git_error_text)?, open) {
            (Some(seen), _) => Some(seen),
            // Ours, if the store has it: nobody else's commits get there by themselves.
            (None, Some(pr)) => {
                pr.head_sha.as_str().parse().ok().filter(|oid| store.contains(oid).unwrap_or(false))
            }
            (None, None) => None,
        };
        match store
            .push_task_branch(repo, remote, &name, &self.head, expected.as_ref())
            .map_err(git_error_text)?
        {
            PublishOutcome::Done(_) => Ok(format!("pushed {} to `{branch}`", self.head.short())),
            PublishOutcome::Already => Ok(format!("`{branch}` stands at {}", self.head.short())),
            PublishOutcome::Held(HeldReason::Remote { stderr }) => {
                Err(format!("the remote refused: {}", stderr.lines().last().unwrap_or_default()))
            }
            PublishOutcome::Held(reason) => Err(format!("it is held: {reason:?}")),
        }
    }

    fn open_of_branch(&self) -> Result<Option<PullRequest>, String> {
        let all = self.ground.tracker.pull_requests_of(self.ground.branch).map_err(tracker_error_text)?;
        Ok(all.into_iter().find(|pr| pr.state.is_open()))
    }

    fn must_be_open(&mut self) -> Result<PullRequest, String> {
        let pr = self.open_of_branch()?.ok_or("there is no open pull request")?;
        self.pr = Some(pr.number);
        Ok(pr)
    }

    fn open_pr(&mut self) -> Result<String, String> {
        self.base_below_work()?;
        let RecoveryOpContext { tracker, branch, base, title, body, .. } = *self.ground;
        let new = NewPullRequest {
            head: branch.clone(),
            head_sha: to_commit_sha(&self.head)?,
            base: base.clone(),
            title: Title::from_text(title),
            body: body.to_owned(),
            draft: false,
        };
        let pr = tracker.create_pull_request(&new).map_err(tracker_error_text)?.into_inner();
        self.pr = Some(pr.number);
        Ok(format!("{} is open", pr.number))
    }

    fn comment_marker(&self, what: &str) -> Result<Marker, String> {
        let key = format!("recovery/{}/{}/{what}", self.ground.key, self.ground.mark).to_lowercase();
        Marker::new(&key).map_err(|error| error.to_string())
    }

    fn post_comment(&mut self, text: &str) -> Result<String, String> {
        // Two things to say in one plan are two comments; the same plan again says neither again.
        let digest = blake3::hash(text.as_bytes()).to_hex();
        let marker = self.comment_marker(&digest.as_str()[..12])?;
        // The words are an agent's: marks in them would speak for us.
        let text = neutralize_markers(text);
        self.ground
            .tracker
            .add_comment(CommentThread::Issue(self.ground.issue), &marker, &text)
            .map_err(tracker_error_text)?;
        Ok(format!("said so under {}", self.ground.issue))
    }

    fn set_phase(&mut self, phase: landfall_model::issue::IssuePhase) -> Result<String, String> {
        let found = restored_phase((self.ground.hints)()?);
        if found != phase {
            return Err(format!("its work says `{}`, not `{}`", found.word(), phase.word()));
        }
        let name = format!("{PHASE_FAMILY}{}", phase.word());
        let name = Label::new(&name).map_err(|error| error.to_string())?;
        self.ground
            .tracker
            .swap_label(self.ground.issue, PHASE_FAMILY, Some(&name))
            .map_err(tracker_error_text)?;
        Ok(format!("{} is in `{name}`", self.ground.issue))
    }

    fn rerun_checks(&mut self) -> Result<String, String> {
        let pr = self.must_be_open()?;
        match self.ground.tracker.rerun_checks(&pr.head_sha).map_err(tracker_error_text)? {
            0 => Ok(format!("nothing of {} can be run again", pr.number)),
            count => Ok(format!("the failed jobs of {count} runs of {} run again", pr.number)),
        }
    }

    fn mark_review(&mut self) -> Result<String, String> {
        let pr = self.must_be_open()?;
        let RecoveryOpContext { tracker, .. } = *self.ground;
        let thread = CommentThread::PullRequest(pr.number);
        let is_review = |text: &str| {
            let text = text.to_lowercase();
            REVIEW_HEADINGS.iter().any(|heading| text.contains(heading))
        };
        let said = tracker.list_comments(thread).map_err(tracker_error_text)?;
        let mut ours: Vec<String> = said.into_iter().filter(|it| it.ours).map(|it| it.body).collect();
        ours.extend(
            tracker
                .list_reviews(pr.number)
                .map_err(tracker_error_text)?
                .into_iter()
                .filter(|it| it.ours)
                .map(|it| it.body),
        );
        let Some(review) = ours.iter().find(|text| is_review(text)) else {
            return Err(format!("{} has no review of ours that could be marked", pr.number));
        };
        let marker = Marker::new(REVIEW_MARKER).map_err(|error| error.to_string())?;
        if marker.is_on(review) {
            return Ok("the review bears its mark".to_owned());
        }
        tracker
            .add_comment(thread, &marker, "The review of this pull request is above.")
            .map_err(tracker_error_text)?;
        Ok(format!("marked the review of {}", pr.number))
    }
}

fn git_error_text(error: landfall_host::git::GitError) -> String {
    error.full_message()
}

fn to_commit_sha(oid: &Oid) -> Result<CommitSha, String> {
    CommitSha::new(oid.as_str()).map_err(|error| error.to_string())
}

/// Whether the last paragraph of a message is one of trailers such as `Fixes: #12`.
fn ends_with_trailers(message: &str) -> bool {
    let Some((_, last)) = message.rsplit_once("\n\n") else { return false };
    let is_trailer = |line: &str| {
        line.split_once(": ").is_some_and(|(key, _)| {
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    last.lines().all(is_trailer)
}
