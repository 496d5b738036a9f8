//! What is known of the base and of the branches it is compared with. Only the engine of a repository and base branch has it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use landfall_model::{Commit, TaskId};

/// Where the base may be, and where the user's branch and the remote were seen.
#[derive(Debug, Default)]
pub(crate) struct BaseTracker {
    facts: Mutex<BaseFacts>,
    /// Held while the base is compared with the user's branch, which takes several git commands. The facts are read and
    /// written meanwhile, so it is a lock of its own.
    comparing: Mutex<()>,
    /// Held while the remote is asked: whoever wants to land waits for the answer.
    remote: Mutex<RemoteSnapshot>,
}

#[derive(Debug, Default)]
struct BaseFacts {
    /// Every place the base was moved to, by us or by the person: anywhere else it was put by a stranger.
    trusted: HashSet<Commit>,
    /// Where the person's branch was seen last, by us or by an engine before us: from there it only goes ahead, unless it
    /// was rewritten.
    theirs: Option<Commit>,
    /// What tasks landed as: whoever needs them begins with it.
    landed: HashMap<TaskId, Commit>,
}

/// What was seen of a remote, and when.
#[derive(Debug, Default)]
pub(crate) struct RemoteSnapshot {
    /// When it was last asked, by the clock that never goes back.
    pub asked_ms: Option<u64>,
    /// What a person must say before anything lands.
    pub trouble: Option<String>,
}

impl BaseTracker {
    fn lock_facts(&self) -> MutexGuard<'_, BaseFacts> {
        self.facts.lock().expect("no thread panics while it holds them")
    }

    /// The base may be here: a fact says so, or is about to.
    pub fn trust_base(&self, base: &Commit) {
        self.lock_facts().trusted.insert(base.clone());
    }

    /// Whether the base was moved here by a landing or by the person.
    pub fn is_trusted(&self, base: &Commit) -> bool {
        self.lock_facts().trusted.contains(base)
    }

    /// Where the person's branch was seen last.
    pub fn user_branch_tip(&self) -> Option<Commit> {
        self.lock_facts().theirs.clone()
    }

    /// The person's branch was seen here.
    pub fn note_user_branch_tip(&self, commit: &Commit) {
        self.lock_facts().theirs = Some(commit.clone());
    }

    /// A task landed as this commit.
    pub fn note_landed(&self, task: TaskId, commit: &Commit) {
        self.lock_facts().landed.insert(task, commit.clone());
    }

    /// What these tasks landed as, those of them that have.
    pub fn landed_commits(&self, tasks: &BTreeSet<TaskId>) -> Vec<Commit> {
        let facts = self.lock_facts();
        tasks.iter().filter_map(|task| facts.landed.get(task)).cloned().collect()
    }

    /// Waits for the turn to compare the base with the user's branch.
    pub fn lock_comparison(&self) -> MutexGuard<'_, ()> {
        self.comparing.lock().expect("no thread panics while it compares")
    }

    /// Waits for the turn to ask the remote.
    pub fn lock_remote(&self) -> MutexGuard<'_, RemoteSnapshot> {
        self.remote.lock().expect("no thread panics while it asks")
    }
}

/// Held by a landing. A check waits for it before it looks where the base is: what it merged with the base from before the
/// landing would have to be merged and verified again.
#[derive(Debug, Default)]
pub(crate) struct LandingLock(Mutex<()>);

impl LandingLock {
    /// Waits for the turn to land.
    pub fn wait_for_turn(&self) -> MutexGuard<'_, ()> {
        self.0.lock().expect("no thread panics while it lands")
    }

    /// Waits until no landing is under way.
    pub fn wait_until_free(&self) {
        drop(self.wait_for_turn());
    }
}
