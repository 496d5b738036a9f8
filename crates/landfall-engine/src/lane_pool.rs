//! Who may use which lane: numbered lanes for candidates, and one in which only the base is ever checked out.

use std::sync::{Condvar, Mutex, MutexGuard};

/// The lanes of an engine.
pub(crate) struct LanePool {
    free: Mutex<FreeLanes>,
    /// Told when a lane is given back.
    freed: Condvar,
}

struct FreeLanes {
    numbers: Vec<usize>,
    is_base_free: bool,
}

impl LanePool {
    /// So many numbered lanes, and the lane of the base.
    pub fn new(count: usize) -> Self {
        let free = FreeLanes { numbers: (0..count).rev().collect(), is_base_free: true };
        Self { free: Mutex::new(free), freed: Condvar::new() }
    }

    /// Waits for a lane for a candidate. Gives its number.
    pub fn take_numbered(&self) -> (usize, LaneHold<'_>) {
        let waited = self.freed.wait_while(self.lock_free_lanes(), |free| free.numbers.is_empty());
        let mut free = waited.expect("no thread panics while it holds the lanes");
        let number = free.numbers.pop().expect("waited for");
        (number, LaneHold { pool: self, number: Some(number) })
    }

    /// Waits for the lane of the base.
    pub fn take_base(&self) -> LaneHold<'_> {
        let waited = self.freed.wait_while(self.lock_free_lanes(), |free| !free.is_base_free);
        waited.expect("no thread panics while it holds the lanes").is_base_free = false;
        LaneHold { pool: self, number: None }
    }

    fn lock_free_lanes(&self) -> MutexGuard<'_, FreeLanes> {
        self.free.lock().expect("no thread panics while it holds the lanes")
    }
}

/// What keeps others out of a lane until it is dropped. None: it is the lane of the base.
pub(crate) struct LaneHold<'p> {
    pool: &'p LanePool,
    number: Option<usize>,
}

impl Drop for LaneHold<'_> {
    fn drop(&mut self) {
        let mut free = self.pool.lock_free_lanes();
        match self.number {
            Some(number) => free.numbers.push(number),
            None => free.is_base_free = true,
        }
        // Some wait for a numbered lane and some for the base: the one that is woken must not be the wrong one.
        self.pool.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_lent_to_one_at_a_time() {
        let pool = LanePool::new(1);
        let (number, hold) = pool.take_numbered();
        assert_eq!(number, 0);
        let base = pool.take_base(); // the lane of the base is another one
        std::thread::scope(|scope| {
            let numbered = scope.spawn(|| pool.take_numbered().0);
            let of_base = scope.spawn(|| pool.take_base().number);
            drop(base);
            assert_eq!(of_base.join().expect("it gets the lane"), None);
            assert!(!numbered.is_finished(), "its lane is still lent");
            drop(hold);
            assert_eq!(numbered.join().expect("it gets the lane"), 0);
        });
    }
}
