//! Whether the content of a checkout can be trusted after a start, and what happens to it if not.
//!
//! Nothing in a checkout is synced while agents and checks write there. A power cut, or an unmount without a sync, leaves
//! files that are empty or filled with zeros, and git cannot tell those from an agent's changes.

/// What a checkout is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutKind {
    /// A task works in it, or has left work in it.
    TaskWorkspace,
    /// A reader works in it; nothing that is written there counts.
    ReaderWorkspace,
    /// It waits in the pool for the next task.
    Pooled,
    /// Checks run in it.
    Lane,
}

/// What is known about a checkout at a start. `M` identifies a mount: start of the machine, device and mount.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutEvidence<'a, M> {
    /// The mount it was last used on, if the record can be read.
    pub recorded: Option<&'a M>,
    /// The mount it is on now, if the system can tell.
    pub current: Option<&'a M>,
    /// The mount on which it was synced and marked clean after its last use.
    pub clean: Option<&'a M>,
    /// Whether a process that was started in it still runs. It keeps the mount alive, so nothing was lost since.
    pub is_occupied: bool,
}

/// What happens to a checkout at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutAction {
    /// It is used as it is.
    Keep,
    /// It is made again from the last commit in the store. What was not committed is kept for its agent to read.
    Rebuild,
    /// What was not committed is kept; the checkout goes.
    Discard,
    /// It goes: everything in it can be made again.
    Delete,
}

/// Decides what happens to a checkout at a start.
#[must_use]
pub fn decide_checkout<M: PartialEq>(
    kind: CheckoutKind,
    evidence: &CheckoutEvidence<'_, M>,
) -> CheckoutAction {
    let is_same = |mount: Option<&M>| evidence.recorded.is_some() && evidence.recorded == mount;
    if evidence.is_occupied || is_same(evidence.current) || is_same(evidence.clean) {
        return CheckoutAction::Keep;
    }
    match kind {
        CheckoutKind::TaskWorkspace => CheckoutAction::Rebuild,
        CheckoutKind::ReaderWorkspace => CheckoutAction::Discard,
        CheckoutKind::Pooled | CheckoutKind::Lane => CheckoutAction::Delete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [CheckoutKind; 4] = [
        CheckoutKind::TaskWorkspace,
        CheckoutKind::ReaderWorkspace,
        CheckoutKind::Pooled,
        CheckoutKind::Lane,
    ];

    /// Every combination of three mounts, or none, for each piece of evidence.
    fn for_all(mut each: impl FnMut(CheckoutKind, CheckoutEvidence<'_, u8>)) {
        let mounts = [None, Some(1), Some(2), Some(3)];
        for kind in KINDS {
            for recorded in &mounts {
                for current in &mounts {
                    for clean in &mounts {
                        for is_occupied in [false, true] {
                            let (recorded, current, clean) =
                                (recorded.as_ref(), current.as_ref(), clean.as_ref());
                            each(kind, CheckoutEvidence { recorded, current, clean, is_occupied });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_checkout_is_kept_only_on_its_mount_or_marked_clean_or_occupied() {
        let mut count = 0;
        for_all(|kind, evidence| {
            let CheckoutEvidence { recorded, current, clean, is_occupied } = evidence;
            let same_mount = recorded.is_some() && recorded == current;
            let was_clean = recorded.is_some() && recorded == clean;
            let kept = decide_checkout(kind, &evidence) == CheckoutAction::Keep;
            assert_eq!(kept, same_mount || was_clean || is_occupied, "{kind:?} {evidence:?}");
            count += 1;
        });
        assert_eq!(count, 4 * 4 * 4 * 4 * 2);
    }

    #[test]
    fn uncommitted_work_is_never_deleted_without_being_kept() {
        for_all(|kind, evidence| {
            let fate = decide_checkout(kind, &evidence);
            match kind {
                CheckoutKind::TaskWorkspace => {
                    assert!(matches!(fate, CheckoutAction::Keep | CheckoutAction::Rebuild))
                }
                CheckoutKind::ReaderWorkspace => {
                    assert!(matches!(fate, CheckoutAction::Keep | CheckoutAction::Discard))
                }
                CheckoutKind::Pooled | CheckoutKind::Lane => {
                    assert!(matches!(fate, CheckoutAction::Keep | CheckoutAction::Delete))
                }
            }
        });
    }
}
