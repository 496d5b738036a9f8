//! Waiting for many sitters at once, on one thread.

use super::identity;
use super::sitting::SitterProcess;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// What [`SitterWaker`] is known by among the watched.
const WAKE: u64 = u64::MAX;

/// A set of sitters whose end is waited for. Each costs one open file; see `raise_file_limit`.
#[derive(Debug)]
pub struct SitterWatch {
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    handles: HashMap<u64, OwnedFd>,
    gone: HashSet<u64>,
}

/// Ends a `Watch::wait` from another thread.
#[derive(Clone, Debug)]
pub struct SitterWaker(Arc<OwnedFd>);

impl SitterWaker {
    /// Makes the wait under way, or else the next one, return.
    pub fn wake(&self) {
        rustix::io::write(&*self.0, &1u64.to_ne_bytes()).ok(); // it only fails when it is already very much awake
    }
}

impl SitterWatch {
    /// An empty set.
    pub fn new() -> io::Result<SitterWatch> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(SitterWatch { epoll, wake: Arc::new(wake), handles: HashMap::new(), gone: HashSet::new() })
    }

    /// A way to end a wait from elsewhere.
    pub fn waker(&self) -> SitterWaker {
        SitterWaker(Arc::clone(&self.wake))
    }

    /// Watches a sitter under `id` (any number but the largest), in place of what was watched under it before. One that
    /// has already ended is reported by the next wait.
    pub fn add(&mut self, id: u64, sitting: &SitterProcess) -> io::Result<()> {
        if id == WAKE {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this id is taken"));
        }
        self.remove(id);
        match sitting.open_handle()? {
            Some(handle) => {
                epoll::add(&self.epoll, &handle, epoll::EventData::new_u64(id), epoll::EventFlags::IN)?;
                self.handles.insert(id, handle);
            }
            None => {
                self.gone.insert(id);
            }
        }
        Ok(())
    }

    /// Stops watching `id`.
    pub fn remove(&mut self, id: u64) {
        self.gone.remove(&id);
        if let Some(handle) = self.handles.remove(&id) {
            epoll::delete(&self.epoll, &handle).ok(); // closing the last handle does it too
        }
    }

    /// How many are watched.
    pub fn len(&self) -> usize {
        self.handles.len() + self.gone.len()
    }

    /// Whether none is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until a sitter has ended, the waker is used, or `timeout` is over (none: without end). Returns the ids of those
    /// that ended, each once; they are no longer watched, and no zombie is left of them.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        const AT_ONCE: usize = 256; // the rest is reported by the next wait
        let mut ended: Vec<u64> = self.gone.drain().collect();
        let timeout = if ended.is_empty() { timeout } else { Some(Duration::ZERO) };
        let span = timeout.map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        });
        let mut events = Vec::with_capacity(AT_ONCE);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), span.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            match event.data.u64() {
                WAKE => {
                    let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]); // back to sleep
                }
                id => {
                    if let Some(handle) = self.handles.remove(&id) {
                        identity::reap_child(&handle);
                        ended.push(id);
                    }
                }
            }
        }
        Ok(ended)
    }
}
