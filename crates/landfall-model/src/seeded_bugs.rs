//! Bugs on purpose, for tests only: a simulation that misses one of them would also miss a real one.
//!
//! Without the feature `seeded-bugs`, [`is_active`] is always false and the compiler removes the code behind it. With it, a
//! test switches on one bug at a time, so that one build shows that each is found (`cargo xtask seeded-bugs`).

/// A bug that the simulation has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeededBug {
    /// A red batch loses whoever stands before the culprit.
    BisectNeighbour,
    /// News of an attempt that is over is believed.
    MissingFence,
    /// A report that was being written is not written again after a crash.
    RecoverySkipsReport,
    /// A landing that was cut off is not looked into after a crash.
    AstrayForgotten,
    /// A run of an agent counts twice.
    DoubleCount,
    /// An account that is used up counts as a crash.
    QuotaIsFailure,
    /// What a task needs counts only the first time.
    NeedIgnoredOnRetry,
    /// Whoever left the line lands with their batch all the same.
    CancelledLands,
    /// A task that a person paused goes on with the next run.
    PauseForgotten,
    /// What an agent used counts only if it ended by its own word.
    BudgetByWord,
    /// One agent more than there are slots.
    OneSlotMore,
    /// The base is moved wherever it is.
    SwapWithoutOld,
    /// The base is moved before the journal says that it will be.
    LandBeforeRecord,
    /// Work is verified by its own settings, not by those of the base.
    SettingsFromCandidate,
    /// A pass of the work on one base counts on another.
    PassReused,
    /// Work is merged as if it stood on the base.
    WrongMergeBase,
    /// The merge of a batch does not stand on all of its members.
    SquashDropsParent,
    /// A person's push is overwritten when landed work is published.
    ForcedPublish,
    /// A person is told that it is done before it is on the disk.
    AckBeforeSync,
    /// The landing queue is ordered by the clock.
    LineByClock,
    /// A run that is given up is not ended.
    AbandonWithoutKill,
    /// Whoever became ready last goes first.
    NewestFirst,
    /// What fails again is tried again as soon as the first time.
    SteadyBackoff,
}

impl SeededBug {
    /// Every one of them.
    pub const ALL: [Self; 23] = [
        Self::BisectNeighbour,
        Self::MissingFence,
        Self::RecoverySkipsReport,
        Self::AstrayForgotten,
        Self::DoubleCount,
        Self::QuotaIsFailure,
        Self::NeedIgnoredOnRetry,
        Self::CancelledLands,
        Self::PauseForgotten,
        Self::BudgetByWord,
        Self::OneSlotMore,
        Self::SwapWithoutOld,
        Self::LandBeforeRecord,
        Self::SettingsFromCandidate,
        Self::PassReused,
        Self::WrongMergeBase,
        Self::SquashDropsParent,
        Self::ForcedPublish,
        Self::AckBeforeSync,
        Self::LineByClock,
        Self::AbandonWithoutKill,
        Self::NewestFirst,
        Self::SteadyBackoff,
    ];
}

/// Whether this bug is switched on.
#[cfg(not(feature = "seeded-bugs"))]
#[must_use]
pub const fn is_active(_: SeededBug) -> bool {
    false
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{activate, is_active};

#[cfg(feature = "seeded-bugs")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::SeededBug;

    const NONE: usize = usize::MAX;
    static ACTIVE: AtomicUsize = AtomicUsize::new(NONE);

    /// Whether this bug is switched on.
    #[must_use]
    pub fn is_active(bug: SeededBug) -> bool {
        ACTIVE.load(Ordering::Relaxed) == bug as usize
    }

    /// Switches this bug on and all others off, for the whole process.
    pub fn activate(bug: Option<SeededBug>) {
        ACTIVE.store(bug.map_or(NONE, |bug| bug as usize), Ordering::SeqCst);
    }
}
