//! Bringing the base into the person's repository, one try at a time, never by force.
//!
//! A dirty checkout or a person's own commits win. If both went on, their commits and the landed work are merged, the
//! merge is verified like any other, and that is what is offered to their branch.

mod carry;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use landfall_host::crash;
use landfall_host::git::{
    BlockedFile, BlockedFileReason, CompareAndSwap, GitError, HeldReason, MergeResult, Oid, PublishMethod,
    PublishMode, PublishOutcome, Signature,
};
use landfall_host::wait;
use landfall_model::issue::refused_merge_pause_ms;
use landfall_model::{BaseMover, EngineEvent};

use self::carry::PullRequestResult;
use crate::engine_context::EngineContext;
use crate::exchange::ExchangeError;
use crate::gate;
use crate::host_context::HostContext;
use crate::ids;
use crate::land;
use crate::mail::EngineMessage;
use crate::settings::{PublishTarget, PushMode};

/// Whose turn it is to publish: at most one thread, asked as often as the base moves.
pub(crate) struct Publisher {
    site: Arc<EngineContext>,
    wanted: bool,
    busy: bool,
    /// When the last try began, by the clock that never goes back.
    began_ms: Option<u64>,
    /// What came of the last try.
    held: PublishHold,
    /// What came of a try is sent here before the engine hears that it is over.
    ends: (Sender<PublishHold>, Receiver<PublishHold>),
    /// The try at the end of the run was asked for.
    asked_last: bool,
}

/// Why nothing is published.
#[derive(Debug, Clone, Default)]
struct PublishHold {
    reason: Option<String>,
    /// How often in a row a forge refused to merge.
    refused: u32,
    /// The user can make way at any time, and nobody tells us.
    is_in_checkout: bool,
}

impl Publisher {
    pub fn new(site: Arc<EngineContext>) -> Self {
        Self {
            site,
            wanted: false,
            busy: false,
            began_ms: None,
            held: PublishHold::default(),
            ends: mpsc::channel(),
            asked_last: false,
        }
    }

    /// There is something to publish.
    pub fn request_publish(&mut self) {
        self.wanted = true;
    }

    /// Asks once more at the end of the run, if files or a git command of the user were in the way: they may be gone.
    pub fn request_final_try(&mut self) {
        if !self.asked_last && !self.busy && self.is_held_here() {
            self.asked_last = true;
            self.wanted = true;
        }
    }

    fn is_held_here(&self) -> bool {
        self.held.is_in_checkout
    }

    /// Asks, if it is time to see what others have pushed, or whether the user's checkout is free again. Neither a remote
    /// nor a user tells us.
    pub fn request_check_if_due(&mut self) {
        if self.time_to_next_check().is_some_and(|left| left.is_zero()) {
            self.wanted = true;
        }
    }

    /// How long until it is time to look again; none if there is nothing to look at, or a try is under way.
    pub fn time_to_next_check(&self) -> Option<Duration> {
        let is_push = matches!(self.site.settings.land.publish, PublishTarget::Push { .. });
        if self.busy || !(is_push || self.is_held_here()) {
            return None;
        }
        let since = self.site.clock.mono_ms().saturating_sub(self.began_ms?);
        let refused = self.held.refused;
        let pace_ms = if refused == 0 { land::LOOK_OUT_MS } else { refused_merge_pause_ms(refused) };
        Some(Duration::from_millis(pace_ms.saturating_sub(since)))
    }

    /// Nothing is to be published.
    pub fn cancel_request(&mut self) {
        self.wanted = false;
    }

    /// Whether a try is under way.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether another try is wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The try is over.
    pub fn finish_try(&mut self) {
        self.busy = false;
        if let Some(held) = self.ends.1.try_iter().last() {
            self.held = held;
        }
    }

    /// Why the last try came to nothing, if it did.
    pub fn hold_reason(&self) -> Option<String> {
        self.held.reason.clone()
    }

    /// How long a try that is wanted has to wait, so that landings which follow each other are published together.
    pub fn remaining_wait(&self) -> Option<Duration> {
        if self.busy || !self.wanted {
            return None;
        }
        let since = |began_ms| self.site.clock.mono_ms().saturating_sub(began_ms);
        let left = self.began_ms.map_or(0, |began_ms| PACE_MS.saturating_sub(since(began_ms)));
        Some(Duration::from_millis(left))
    }

    /// Begins a try if one is wanted and none is under way.
    pub fn start_if_wanted(&mut self) {
        if self.busy || !self.wanted {
            return;
        }
        self.wanted = false;
        self.busy = true;
        self.began_ms = Some(self.site.clock.mono_ms());
        let (before, end, theirs) = (self.held.clone(), self.ends.0.clone(), self.site.clone());
        let work = move || {
            let site = &theirs;
            let _fuse = crate::effect_thread::AbortOnPanic;
            crash::pass_point("effect.publish.before");
            let now = match publish_base(site, &before) {
                Ok(now) => now,
                Err(error) => {
                    let reason = format!("{}; `landfall run` tries again", explain_git_error(site, &error));
                    if before.reason.as_ref() != Some(&reason)
                        && let Ok(Some(base)) = site.store.read_base()
                    {
                        let commit = ids::oid_to_commit(&base);
                        send_engine_event(site, EngineEvent::PublishHeld { commit, reason: reason.clone() });
                    }
                    PublishHold { reason: Some(reason), refused: 0, is_in_checkout: true }
                }
            };
            crash::pass_point("effect.publish.after");
            let _ = end.send(now); // the run is over
            let _ = site.mail.send(EngineMessage::PublishOver); // the engine has left
        };
        // Without a thread the try is under way until one can be had: the engine does not wait for that.
        self.site.shortages.start_thread("publish", Box::new(work));
    }
}

const PACE_MS: u64 = 1_000; // a try costs six processes, and a person who watches sees no difference
const TRIES_MAX: u32 = 5; // a person who commits five times in a few seconds is at work; the next landing tries again

/// What went wrong. git does not always say that the disk is full.
fn explain_git_error(site: &HostContext, error: &GitError) -> String {
    const ROOM: u64 = 1 << 20; // less is not enough for a ref and an index
    let is_full = landfall_host::disk::free_bytes(site.repo.common_dir()).is_ok_and(|free| free < ROOM);
    match is_full {
        true => format!(
            "no disk space is left in `{}`: {}",
            site.repo.common_dir().display(),
            error.full_message()
        ),
        false => error.full_message(),
    }
}

/// Publishes, and tries again for a moment if a git command of the user holds a lock. Most take less, such as the `git status`
/// of an editor.
fn retry_past_locks(
    publish: impl Fn() -> Result<PublishOutcome, GitError>,
) -> Result<PublishOutcome, GitError> {
    const WAIT: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(250);
    let mut last = None;
    wait::retry_until(WAIT, PAUSE, || {
        let published = publish();
        let is_locked = matches!(&published, Ok(PublishOutcome::Held(HeldReason::OperationInProgress { sign, .. })) if is_lock(sign));
        last = Some(published);
        (!is_locked).then_some(())
    });
    last.expect("it is tried at least once")
}

fn is_lock(sign: &str) -> bool {
    sign.ends_with(".lock") || sign == "gc.pid"
}

/// Publishes the base; gives the reason if a person is in the way. One that was told `before` is not told again.
fn publish_base(site: &EngineContext, before: &PublishHold) -> Result<PublishHold, GitError> {
    let held = |ours: &Oid, reason: String| {
        if before.reason.as_ref() != Some(&reason) {
            send_engine_event(
                site,
                EngineEvent::PublishHeld { commit: ids::oid_to_commit(ours), reason: reason.clone() },
            );
        }
        PublishHold { reason: Some(reason), ..PublishHold::default() }
    };
    let mode = match &site.settings.land.publish {
        PublishTarget::Checkout => {
            // What a folder shows of its task is changed while the task is worked on: nobody commits that first.
            PublishMode::Beside { folders: site.live.lock().modules.iter().cloned().collect() }
        }
        PublishTarget::Push { remote, .. } => PublishMode::Remote { name: remote.clone() },
        PublishTarget::None => return Ok(PublishHold::default()),
    };
    // Also if there is nothing to publish: a crash may have come after the branch had moved.
    // A checkout that cannot be cleaned up does not stand in the way of others; the one to be published is tried again.
    let _ = site.store.recover_publishing(&site.repo, &site.branch); // the next publishing tries again, and says what is wrong
    let by_forge =
        matches!(site.settings.land.publish, PublishTarget::Push { by: PushMode::PullRequest, .. });
    for _ in 0..TRIES_MAX {
        let land::BaseObservation { ours, theirs, apart, trouble } = land::observe_remote(site, 0)?;
        let (Some(theirs), None) = (theirs, &trouble) else {
            let reason = trouble.unwrap_or_default();
            return Ok(held(&ours, reason));
        };
        if ours == theirs && matches!(mode, PublishMode::Beside { .. }) {
            // A command of the user that deletes objects may have done so while their branch was moved.
            site.store.repair_published(&site.repo, &ours)?;
            return Ok(PublishHold::default());
        }
        if !site.store.is_ancestor(&theirs, &ours)? {
            match rebuild_base(site, &ours, &theirs)? {
                RebuildResult::Moved => continue,
                RebuildResult::Interrupted => return Ok(PublishHold::default()), // nothing is known of it; the next run looks again
                RebuildResult::Held(reason) => return Ok(held(&ours, reason)),
            }
        }
        if let Some(apart) = apart {
            match rebuild_base(site, &ours, &apart)? {
                RebuildResult::Moved => continue,
                RebuildResult::Interrupted => return Ok(PublishHold::default()),
                RebuildResult::Held(reason) => return Ok(held(&ours, reason)),
            }
        }
        if let PublishMode::Remote { name } = &mode
            && site.store.remote_seen(name, &site.branch)?.as_ref() == Some(&ours)
        {
            return Ok(PublishHold::default());
        }
        if let PublishMode::Remote { name } = &mode
            && by_forge
        {
            match carry::merge_by_pull_request(site, name, &ours) {
                Ok(PullRequestResult::Merged { how }) => {
                    send_engine_event(
                        site,
                        EngineEvent::Published { commit: ids::oid_to_commit(&ours), how },
                    );
                    continue; // the base goes on to the merge that the forge made; more may have landed since
                }
                Ok(PullRequestResult::Moved) => continue,
                Ok(PullRequestResult::Interrupted) | Err(ExchangeError::Interrupted) => {
                    return Ok(PublishHold::default());
                }
                Err(ExchangeError::Git(error)) => return Err(error),
                Err(ExchangeError::Refused(reason)) => {
                    return Ok(PublishHold {
                        refused: before.refused.saturating_add(1),
                        ..held(&ours, reason)
                    });
                }
                Err(trouble) => return Ok(held(&ours, trouble.to_string())),
            }
        }
        let by = Signature::for_engine(site.clock.now_ms());
        crash::pass_point("publish.before");
        match retry_past_locks(|| {
            site.store.publish_branch(&site.repo, &site.branch, &ours, &theirs, &mode, &by)
        })? {
            PublishOutcome::Done(how) => {
                crash::pass_point("publish.after");
                note_pushed(site, &ours)?;
                let how = match how {
                    PublishMethod::Ref => "the branch was moved".to_owned(),
                    PublishMethod::Checkout { path } => {
                        format!("the checkout in {} was fast-forwarded", path.display())
                    }
                    PublishMethod::Pushed => "it was pushed".to_owned(),
                };
                send_engine_event(site, EngineEvent::Published { commit: ids::oid_to_commit(&ours), how });
                return Ok(PublishHold::default());
            }
            PublishOutcome::Already => {
                note_pushed(site, &ours)?;
                return Ok(PublishHold::default());
            }
            PublishOutcome::Held(HeldReason::Moved { .. }) => {}
            PublishOutcome::Held(reason) => {
                let is_in_checkout =
                    matches!(reason, HeldReason::Files { .. } | HeldReason::OperationInProgress { .. });
                return Ok(PublishHold { is_in_checkout, ..held(&ours, explain_hold(&reason)) });
            }
        }
    }
    let reason = "your branch kept moving; the next landing tries again".to_owned();
    Ok(PublishHold { reason: Some(reason), ..PublishHold::default() })
}

/// Notes where the remote is by our own doing.
fn note_pushed(site: &HostContext, ours: &Oid) -> Result<(), GitError> {
    match &site.settings.land.publish {
        PublishTarget::Push { remote, .. } => site.store.note_remote(remote, &site.branch, ours),
        PublishTarget::Checkout | PublishTarget::None => Ok(()),
    }
}

enum RebuildResult {
    Moved,
    Held(String),
    Interrupted,
}

/// The person committed while landed work waited: both are merged on top of theirs, verified, and become the base.
fn rebuild_base(site: &EngineContext, ours: &Oid, theirs: &Oid) -> Result<RebuildResult, GitError> {
    let tree = match site.store.merge_commits(theirs, ours)? {
        MergeResult::Clean { tree } => tree,
        MergeResult::Conflict { paths, .. } => {
            let list =
                paths.iter().map(|it| String::from_utf8_lossy(&it.path).into_owned()).collect::<Vec<_>>();
            return Ok(RebuildResult::Held(format!(
                "your commits on `{}` conflict with landed work in {}; merge {} into your branch",
                site.branch.as_str(),
                list.join(", "),
                ours.short()
            )));
        }
    };
    let by = Signature::for_engine(site.clock.now_ms());
    let message = format!("{} `{}` together\n", land::TOGETHER, site.branch.as_str());
    let merged = site.store.create_commit(&tree, &[theirs.clone(), ours.clone()], &message, &by, &by)?;
    let Some(report) = gate::verify_merge(site, "rebuild", theirs, ours, &merged)? else {
        return Ok(RebuildResult::Interrupted);
    };
    if !report.outcome().is_green() {
        let what =
            report.blocking_commands().map(|it| format!("`{}`", it.name)).collect::<Vec<_>>().join(", ");
        return Ok(RebuildResult::Held(format!(
            "your commits and landed work fit together, but {what} does not pass on the result"
        )));
    }
    crash::pass_point("rebuild.swap.before");
    site.base.trust_base(&ids::oid_to_commit(&merged));
    match site.store.set_base(&merged, Some(ours))? {
        CompareAndSwap::Moved => land::tell_moved(site, Some(ours), &merged, BaseMover::Rebuild),
        CompareAndSwap::Lost { .. } => {} // a landing came first: look again
    }
    Ok(RebuildResult::Moved)
}

fn send_engine_event(site: &HostContext, event: EngineEvent) {
    let _ = site.mail.send(EngineMessage::Fact(event)); // the engine has left: the next run looks again
}

fn explain_hold(reason: &HeldReason) -> String {
    match reason {
        HeldReason::Files { path, files } => blocked_files(path, files),
        HeldReason::Moved { to } => format!("your branch moved to {}", to.short()),
        HeldReason::CheckedOutElsewhere { path } => {
            format!("the branch is checked out in {} as well; check out another branch there", path.display())
        }
        HeldReason::OperationInProgress { path, sign } if is_lock(sign) => format!(
            "another git command is running in {} ({sign}), or one that was killed left that file behind; \
             `landfall run` tries again",
            path.display()
        ),
        HeldReason::OperationInProgress { path, sign } => {
            format!(
                "a git operation is in progress in {path} ({sign}); `git -C {path} status` shows it",
                path = path.display()
            )
        }
        HeldReason::BranchMissing => {
            "the base branch does not exist in your repository any more; `git branch` lists the branches"
                .to_owned()
        }
        HeldReason::Remote { stderr } => {
            let protected = ["GH006", "GH013", "protected branch"].iter().any(|sign| stderr.contains(sign));
            let hint = match protected {
                true => "; for a branch that nobody may push, set `land.publish = \"pull-request\"`",
                false => "",
            };
            format!("the remote refused: {}{hint}", stderr.trim())
        }
    }
}

/// The first names of a list, and how many there are besides.
fn list_first_names(names: &[String]) -> String {
    const NAMED_MAX: usize = 20; // more does not fit on a screen
    let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Names the files in the way, and for each kind what to do about it.
fn blocked_files(checkout: &Path, files: &[BlockedFile]) -> String {
    let named = |why: BlockedFileReason| {
        let of_kind = files.iter().filter(|file| file.why == why);
        of_kind.map(|file| String::from_utf8_lossy(&file.path).into_owned()).collect::<Vec<_>>()
    };
    let in_checkout = |path: &str| checkout.join(path).to_string_lossy().into_owned();
    let mut parts = Vec::new();
    let changed = named(BlockedFileReason::Changed);
    if !changed.is_empty() {
        parts.push(format!(
            "changes that are not committed: {} (commit them, or put them aside with `git -C {} stash`)",
            list_first_names(&changed),
            quote_for_shell(&checkout.to_string_lossy())
        ));
    }
    let untracked = named(BlockedFileReason::Untracked);
    if let Some(first) = untracked.first() {
        parts.push(format!(
            "not tracked by git, and landed files have these names: {} (move them away, for example with `mv -n {} {}`)",
            list_first_names(&untracked),
            quote_for_shell(&in_checkout(first)),
            quote_for_shell(&in_checkout(&format!("{first}.mine")))
        ));
    }
    let submodules = named(BlockedFileReason::Submodule);
    if !submodules.is_empty() {
        parts.push(format!(
            "a submodule or another repository, which Landfall never changes: {} (commit your work there, then move the \
             folder away)",
            list_first_names(&submodules)
        ));
    }
    let filtered = named(BlockedFileReason::Filtered);
    if let Some(first) = filtered.first() {
        parts.push(format!(
            "changed, which a clean filter or a setting for line endings hides from git: {} (move them away, for example with `mv -n {} {}`, and let \
             git write them with `git -C {} checkout -- {}`)",
            list_first_names(&filtered),
            quote_for_shell(&in_checkout(first)),
            quote_for_shell(&in_checkout(&format!("{first}.mine"))),
            quote_for_shell(&checkout.to_string_lossy()),
            quote_for_shell(first)
        ));
    }
    let in_use = named(BlockedFileReason::InUse);
    if !in_use.is_empty() {
        parts
            .push(format!("open for writing in a program: {} (close them there)", list_first_names(&in_use)));
    }
    let special = named(BlockedFileReason::Special);
    if !special.is_empty() {
        let names = list_first_names(&special);
        parts.push(format!(
            "a pipe, a socket or a device that git would wait for: {names} (remove it, or move it away)"
        ));
    }
    let damaged = named(BlockedFileReason::Damaged);
    if let Some(first) = damaged.first() {
        parts.push(format!(
            "damaged by a power cut, or emptied by you: {} (compare with `git -C {} diff -- {}`; commit them if you emptied \
             them)",
            list_first_names(&damaged),
            quote_for_shell(&checkout.to_string_lossy()),
            quote_for_shell(first)
        ));
    }
    format!(
        "files in {} are in the way; {}; after that, `landfall run` publishes",
        checkout.display(),
        parts.join("; ")
    )
}

/// A path as one word of a shell command.
fn quote_for_shell(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(is_plain) && !path.starts_with('-') {
        return path.to_owned();
    }
    let prefix = if path.starts_with('/') { "" } else { "./" };
    format!("'{prefix}{}'", path.replace('\'', "'\\''"))
}
