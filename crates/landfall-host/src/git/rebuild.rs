//! Checkouts whose content cannot be trusted after a start: what is recorded about them, and how they are replaced.
//!
//! Who is trusted is decided elsewhere. Here the evidence is read, and the decision is carried out. Objects leave an
//! untrusted workspace only through `take`, which hashes and checks each of them, so a commit that was damaged stays behind.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::collect::{CollectError, LeftoverCommit, is_gone, logged_heads, read_head};
use super::files;
use super::names::{Oid, RefName};
use super::room::{
    DotGit, PrivateIndex, REBUILD_ANNOUNCED as ANNOUNCED, REBUILD_PLAN as PLAN, REBUILD_RESULT as RESULT,
};
use super::run::{GitError, GitResultExt as _, Signature};
use super::store::Store;
use super::workspace::{Workspace, WorkspacePool};
use crate::mount::MountIdentity;

/// How many earlier positions of HEAD are tried. Each costs a copy of the agent's objects.
const HEADS_MAX: usize = 20;

/// A workspace that was made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltWorkspace {
    /// The commit it was made from.
    pub head: Oid,
    /// A commit on top of it with what was not committed. Files in it may be damaged.
    pub uncommitted: Option<Oid>,
}

impl RebuiltWorkspace {
    fn to_text(&self) -> String {
        let kept = self.uncommitted.as_ref().map_or("-", Oid::as_str);
        format!("head {}\nuncommitted {kept}\n", self.head)
    }

    fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let mut lines = text.lines();
        let head = lines.next()?.strip_prefix("head ")?.parse().ok()?;
        let uncommitted = match lines.next()?.strip_prefix("uncommitted ")? {
            "-" => None,
            oid => Some(oid.parse().ok()?),
        };
        Some(Self { head, uncommitted })
    }
}

impl Workspace {
    /// The mount it was last used on, if that can be read.
    #[must_use]
    pub fn recorded_mount(&self) -> Option<MountIdentity> {
        MountIdentity::recorded_in(self.room().dir())
    }

    /// What was made again, if it was and no agent has been started in it since.
    #[must_use]
    pub fn unannounced_rebuild(&self) -> Option<RebuiltWorkspace> {
        let room = self.room().dir();
        let rebuilt = RebuiltWorkspace::read(&room.join(RESULT))?;
        (!room.join(ANNOUNCED).exists()).then_some(rebuilt)
    }

    /// Notes that an agent is about to be started that was told of the rebuild.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn announce_rebuild(&self) -> Result<(), GitError> {
        let doing = || format!("note that the agent of workspace {} was told", self.name());
        let room = self.room().dir();
        if !room.join(RESULT).exists() {
            return Ok(());
        }
        std::fs::write(room.join(ANNOUNCED), b"").with_context(doing)
    }
}

impl WorkspacePool {
    /// The mount that the workspaces are on, if the system can tell.
    #[must_use]
    pub fn current_mount(&self) -> Option<MountIdentity> {
        MountIdentity::of_path(self.dir()).ok()
    }

    /// Records that a workspace is used on this mount.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn record_mount(&self, workspace: &Workspace) -> Result<(), GitError> {
        self.record_mount_in(workspace.room().dir())
    }

    /// Records that the checkout of a room is used on this mount. Where the system cannot tell there is no record.
    pub(super) fn record_mount_in(&self, room: &Path) -> Result<(), GitError> {
        let Some(mount) = self.current_mount() else { return Ok(()) };
        mount.record_in(room).with_context(|| format!("record the mount of `{}`", room.display()))
    }

    /// Deletes the pooled checkouts, spares included, that `may_keep` refuses, and records the mount for the others.
    /// Returns how many went.
    ///
    /// # Errors
    /// When one cannot be deleted.
    pub fn delete_untrusted_pooled(
        &self,
        may_keep: &dyn Fn(Option<&MountIdentity>) -> bool,
    ) -> Result<usize, GitError> {
        let doing = || "sort out pooled checkouts".to_owned();
        let mut deleted = 0;
        for room in self.pooled_rooms().with_context(doing)? {
            let recorded = MountIdentity::recorded_in(&room);
            if may_keep(recorded.as_ref()) {
                if recorded != self.current_mount() {
                    self.record_mount_in(&room)?;
                }
            } else {
                files::remove_path(&room).with_context(doing)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Makes a workspace again: from the agent's newest commit that is whole, or `collected`, or its base. What was not
    /// committed, and the agent's other branches, are kept under `keep` first. Repeats safely.
    ///
    /// # Errors
    /// When the machine fails. Then the workspace is as untrusted as before.
    pub fn rebuild_workspace(
        &self,
        workspace: &Workspace,
        collected: Option<&Oid>,
        keep: &RefName,
        by: &Signature,
    ) -> Result<RebuiltWorkspace, CollectError> {
        let name = workspace.name();
        let doing = || format!("rebuild workspace {name}");
        let _busy = self.lock_workspace(name);
        let (store, room, path) = (self.store(), workspace.room(), workspace.path());
        let plan_file = room.dir().join(PLAN);
        let plan = match RebuiltWorkspace::read(&plan_file) {
            Some(plan) => plan, // cut short: from here on the folder may be half gone
            None => {
                let plan = self.save_work(workspace, collected, keep, by)?;
                files::write_whole(&plan_file, plan.to_text().as_bytes()).with_context(doing)?;
                plan
            }
        };
        crate::crash::pass_point("git.rebuild.planned");
        files::remove_path(path).with_context(doing)?;
        // Nobody has synced these either, and what is in them can be downloaded again.
        files::remove_path(&workspace.caches_path()).with_context(doing)?;
        for file in ["index", "index.lock", "tree", "incoming", "checkout", "spare", RESULT, ANNOUNCED] {
            files::remove_path(&room.dir().join(file)).with_context(doing)?;
        }
        std::fs::create_dir(path).with_context(doing)?;
        std::fs::write(room.dir().join("exclude"), self.exclude_patterns()).with_context(doing)?;
        room.check_out(store, path, &plan.head)?;
        DotGit { branch: Some(workspace.branch()), commit: &plan.head, exclude: self.exclude_patterns() }
            .write_dot_git(store, room, path)
            .with_context(doing)?;
        crate::crash::pass_point("git.rebuild.checked_out");
        files::write_whole(&room.dir().join(RESULT), plan.to_text().as_bytes()).with_context(doing)?;
        workspace.write_meta().with_context(doing)?;
        // The record is the last word: until it is there, the workspace is not trusted and all this is done again.
        files::remove_path(&plan_file).with_context(doing)?;
        // A plan that came back after a power cut would have the next rebuild delete what the agent has done since.
        files::sync_folder(room.dir()).with_context(doing)?;
        self.record_mount(workspace)?;
        Ok(plan)
    }

    /// Keeps what was not committed in a workspace, and the agent's branches, under `keep`; then removes the workspace.
    ///
    /// # Errors
    /// When the machine fails. Then the workspace stays.
    pub fn discard_workspace(
        &self,
        workspace: &Workspace,
        keep: &RefName,
        by: &Signature,
    ) -> Result<(), CollectError> {
        let doing = || format!("discard workspace {}", workspace.name());
        let _busy = self.lock_workspace(workspace.name());
        self.save_work(workspace, None, keep, by)?;
        files::remove_path(workspace.path()).with_context(doing)?;
        files::remove_path(workspace.room().dir()).with_context(doing)?;
        Ok(())
    }

    /// Moves a workspace out of the way that could not be saved by any other means. Nothing is deleted but our own index.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, workspace: &Workspace) -> Result<PathBuf, GitError> {
        let doing = || format!("move workspace {} aside", workspace.name());
        let _busy = self.lock_workspace(workspace.name());
        let to = self.move_aside(workspace.path()).with_context(doing)?;
        files::remove_path(workspace.room().dir()).with_context(doing)?;
        Ok(to)
    }

    /// Brings everything of an untrusted workspace into the store that is whole, and says what it can be made again from.
    fn save_work(
        &self,
        workspace: &Workspace,
        collected: Option<&Oid>,
        keep: &RefName,
        by: &Signature,
    ) -> Result<RebuiltWorkspace, CollectError> {
        let store = self.store();
        let newest = newest_whole_head(store, workspace)?;
        // It may have been made again before, and no agent has worked in it since.
        let earlier =
            RebuiltWorkspace::read(&workspace.room().dir().join(RESULT)).map(|rebuilt| rebuilt.head);
        let collected = match (&earlier, collected) {
            (Some(earlier), Some(collected)) if store.is_ancestor(earlier, collected)? => Some(collected),
            (Some(earlier), _) => Some(earlier),
            (None, collected) => collected,
        };
        let head = match (newest, collected) {
            // The work was collected with what was not committed on top of the agent's commit.
            (Some(head), Some(collected)) if store.is_ancestor(&head, collected)? => collected.clone(),
            (Some(head), _) => head,
            (None, Some(collected)) => collected.clone(),
            (None, None) => workspace.base().clone(),
        };
        if !files::is_folder(workspace.path()) {
            return Ok(RebuiltWorkspace { head, uncommitted: None });
        }
        // The index was not synced either, and git would believe it about files it need not look at.
        forget_index(workspace.room())?;
        let leftovers = LeftoverCommit {
            message: format!("Uncommitted files of workspace {} after an unclean end\n", workspace.name()),
            signature: by.clone(),
        };
        let uncommitted = store.commit_leftovers(workspace, &head, &leftovers)?;
        let top = uncommitted.clone().unwrap_or_else(|| head.clone());
        self.keep_refs(workspace, Some(top), Vec::new(), keep)?;
        // What an earlier rebuild kept, and no agent was told of, is still the news.
        let unannounced = workspace.unannounced_rebuild().and_then(|rebuilt| rebuilt.uncommitted);
        Ok(RebuiltWorkspace { head, uncommitted: uncommitted.or(unannounced) })
    }
}

fn forget_index(room: &PrivateIndex) -> Result<(), GitError> {
    for file in ["index", "index.lock", "tree"] {
        files::remove_path(&room.dir().join(file))
            .with_context(|| "forget the index of a checkout".to_owned())?;
    }
    Ok(())
}

/// The newest commit that the agent's HEAD was at and that is whole, with everything it needs. It is in the store then.
fn newest_whole_head(store: &Store, workspace: &Workspace) -> Result<Option<Oid>, CollectError> {
    let folder = match files::open_folder(workspace.path()) {
        Ok(folder) => folder,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(GitError::from_io("open a workspace", error).into()),
    };
    let mut heads: Vec<Oid> = Vec::new();
    match read_head(folder.as_fd(), store.oid_bytes()) {
        Ok(head) => heads.push(head),
        Err(CollectError::HeadUnreadable { .. }) => {} // its log may say more
        Err(error) => return Err(error),
    }
    heads.extend(logged_heads(folder.as_fd(), store.oid_bytes()));
    let mut tried: Vec<Oid> = Vec::new();
    for head in heads {
        if tried.contains(&head) || tried.len() == HEADS_MAX {
            continue;
        }
        match store.take_object(workspace, folder.as_fd(), &head) {
            Ok(kind) if kind == "commit" => return Ok(Some(head)),
            Ok(_) | Err(CollectError::Broken { .. } | CollectError::HeadUnreadable { .. }) => {}
            Err(
                error @ (CollectError::WorkspaceGone
                | CollectError::TooManyPaths { .. }
                | CollectError::Git(_)),
            ) => return Err(error),
        }
        tried.push(head);
    }
    Ok(None)
}
