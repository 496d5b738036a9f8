//! The request to end a run at once: threads read it, and wait for it instead of sleeping.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Whether the run is to end at once. It is set once and never cleared.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Interrupt {
    pub fn set(&self) {
        *self.lock_flag() = true;
        self.changed.notify_all();
    }

    pub fn is_set(&self) -> bool {
        *self.lock_flag()
    }

    /// Waits until the run is interrupted, at most for `span`. Returns whether it is.
    pub fn wait(&self, span: Duration) -> bool {
        let (flag, _) = self
            .changed
            .wait_timeout_while(self.lock_flag(), span, |is_set| !*is_set)
            .expect("no thread panics while it holds the flag");
        *flag
    }

    fn lock_flag(&self) -> MutexGuard<'_, bool> {
        self.flag.lock().expect("no thread panics while it holds the flag")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_the_run_is_interrupted() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| interrupt.wait(Duration::from_secs(600)));
            interrupt.set();
            assert!(waits.join().expect("it returns"));
        });
        assert!(interrupt.is_set());
    }
}
