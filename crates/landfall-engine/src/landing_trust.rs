//! Trust in what a landing makes of settings and scripts that run outside of the sandbox. The model decides from the parts of
//! the commits whether the approvals of the tasks cover it; then hooks and later runs do not ask again.

use std::sync::Arc;

use landfall_model::queue::BatchMember;
use landfall_model::trust::{LandedWork, is_landing_trusted};
use landfall_model::{Commit, Task};

use crate::hook_scripts::sensitive_in_commit;
use crate::host_context::HostContext;
use crate::ids;
use crate::settings::{SensitiveSettings, Settings};
use crate::settings_file::settings_in;
use crate::trust::{TrustStore, TrustVerdict, TrustedBy};

/// Notes that what landed is trusted, if the person approved every change of it. What cannot be read is asked about later.
pub(crate) fn trust_landing(
    site: &HostContext,
    tasks: &[Arc<Task>],
    base: &Commit,
    members: &[BatchMember],
    landed: &Commit,
) {
    // The settings of each commit count for the next run, those that this run began with for the hooks of this one.
    for settings in [None, Some(&site.settings)] {
        let _ = try_trust(site, settings, tasks, base, members, landed); // as above
    }
}

fn try_trust(
    site: &HostContext,
    settings: Option<&Settings>,
    tasks: &[Arc<Task>],
    base: &Commit,
    members: &[BatchMember],
    landed: &Commit,
) -> Option<()> {
    let parts_of = |commit: &Commit| -> Option<SensitiveSettings> {
        let own = match settings {
            Some(_) => None,
            None => Some(settings_in(&site.store, commit).ok()?),
        };
        let settings = settings.or(own.as_ref())?;
        sensitive_in_commit(settings, site.repo.root(), &site.store, &ids::commit_to_oid(commit)).ok()
    };
    let (before, after) = (parts_of(base)?, parts_of(landed)?);
    if before == after {
        return Some(());
    }
    let store = TrustStore::for_repository(&site.folder, site.repo.root());
    if !is_trusted(&store, &before) || is_trusted(&store, &after) {
        return Some(());
    }
    // A member that left the base before a hook landed does not run its script by its own settings. It may change it all the same.
    let of_landed = match settings {
        Some(_) => None,
        None => Some(settings_in(&site.store, landed).ok()?),
    };
    let landed_settings = settings.or(of_landed.as_ref())?;
    let landed_parts_of = |commit: &Commit| -> Option<SensitiveSettings> {
        let commit = ids::commit_to_oid(commit);
        sensitive_in_commit(landed_settings, site.repo.root(), &site.store, &commit).ok()
    };
    let mut work = Vec::new();
    for member in members {
        let task = tasks.iter().find(|task| task.id == member.task);
        let met =
            site.store.merge_bases(&ids::commit_to_oid(base), &ids::commit_to_oid(&member.head)).ok()?;
        let left_base_at = match met.as_slice() {
            [only] => Some(ids::oid_to_commit(only)),
            [] | [_, _, ..] => None,
        };
        let mut landed_work = LandedWork {
            is_approved: task.is_some_and(|task| task.approved_head.as_ref() == Some(&member.head)),
            before: left_base_at.as_ref().and_then(parts_of).map(|parts| parts.parts()),
            after: parts_of(&member.head)?.parts(),
        };
        if let Some(left_base_at) = &left_base_at {
            let (before, after) = (landed_parts_of(left_base_at)?, landed_parts_of(&member.head)?);
            landed_work.count_landed_scripts(&before.parts(), &after.parts());
        }
        work.push(landed_work);
    }
    if is_landing_trusted(&before.parts(), &work, &after.parts()) {
        store.add_trust(&after.compute_digest(), TrustedBy::Review, site.now()).ok()?;
    }
    Some(())
}

fn is_trusted(store: &TrustStore, settings: &SensitiveSettings) -> bool {
    matches!(store.judge(settings), Ok(TrustVerdict::Nothing | TrustVerdict::Trusted))
}
