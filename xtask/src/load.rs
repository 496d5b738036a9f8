//! A machine that is busy with something else: what a test must be able to live with.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that compute until this value is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts this many busy threads per core.
    pub fn start(per_core: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            let mut count = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                count = black_box(count.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        };
        let threads = (0..per_core * cores).map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || spin(stop))
        });
        let threads = threads.collect();
        eprintln!("── load: {} busy threads", per_core * cores);
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a busy thread does not panic");
        }
    }
}
