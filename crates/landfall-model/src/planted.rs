//! Bugs on purpose, for tests only. A simulation that finds none of them finds no others either.
//!
//! Without the feature `planted` there are none: [`is`] is false and the compiler drops what hangs on it. With it, one at a
//! time can be switched on, so that one build shows that each is found (`cargo xtask planted`).

/// A bug that the simulation has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
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

impl Bug {
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

/// Whether this bug is here.
#[cfg(not(feature = "planted"))]
#[must_use]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use on::{is, plant};

#[cfg(feature = "planted")]
mod on {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Bug;

    const NONE: usize = usize::MAX;
    static PLANTED: AtomicUsize = AtomicUsize::new(NONE);

    /// Whether this bug is here.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as usize
    }

    /// Switches this bug on and all others off, for the whole process.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(NONE, |bug| bug as usize), Ordering::SeqCst);
    }
}
