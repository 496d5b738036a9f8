//! The tracker that was opened last, kept for the next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landfall_trackers::tracker::Tracker;

/// A tracker that was opened: it knows how much may be asked yet.
pub(crate) struct CachedTracker {
    pub at: Instant,
    /// Everything it was opened with.
    pub of: blake3::Hash,
    pub tracker: Arc<dyn Tracker>,
}

/// The tracker that was opened last.
#[derive(Default)]
pub(crate) struct OpenTracker(Mutex<Option<CachedTracker>>);

impl OpenTracker {
    pub fn lock(&self) -> MutexGuard<'_, Option<CachedTracker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
