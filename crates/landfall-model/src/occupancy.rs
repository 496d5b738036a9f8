//! Who has used a checkout, and whether somebody else may still hold a file of it.
//!
//! A checkout is used again: lanes by the next check, pooled workspaces by the next task. Whoever used it before could have
//! passed an open file on, and the one who has it could change that file while the next check reads it.

use crate::sandbox::Confinement;

/// Who uses a checkout, as far as it matters for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckoutUser {
    /// How it is confined.
    pub level: Confinement,
    /// Whether it has a folder of its own state, which others of its kind have as well: agents do.
    pub has_own_state: bool,
    /// Whether the settings open folders to all runs.
    pub has_shared_folders: bool,
}

/// Whether it could hand a file of its checkout to somebody who outlives it. A file is handed out by a link in a folder that
/// both can reach, or by a descriptor over a socket that both can reach.
#[must_use]
pub fn may_hand_out_files(occupant: &CheckoutUser) -> bool {
    let CheckoutUser { level, has_own_state, has_shared_folders } = *occupant;
    match level {
        // Any socket can be reached by its path.
        Confinement::Off | Confinement::Write => true,
        Confinement::Isolated | Confinement::Strict => has_own_state || has_shared_folders,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: CheckoutUser =
        CheckoutUser { level: Confinement::Isolated, has_own_state: false, has_shared_folders: false };

    #[test]
    fn only_one_that_meets_nobody_hands_out_nothing() {
        assert!(!may_hand_out_files(&CHECK));
        assert!(!may_hand_out_files(&CheckoutUser { level: Confinement::Strict, ..CHECK }));
        for occupant in [
            CheckoutUser { level: Confinement::Write, ..CHECK },
            CheckoutUser { level: Confinement::Off, ..CHECK },
            CheckoutUser { has_own_state: true, ..CHECK },
            CheckoutUser { has_shared_folders: true, ..CHECK },
        ] {
            assert!(may_hand_out_files(&occupant), "{occupant:?}");
        }
    }
}
