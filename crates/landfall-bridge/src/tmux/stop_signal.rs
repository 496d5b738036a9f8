//! The signals that end the bridge, as something to wait for.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Readable once a signal has asked the bridge to end. Nobody reads it, so it stays readable.
pub(super) struct StopSignal {
    asked: UnixStream,
}

impl StopSignal {
    /// Listens for SIGTERM, SIGINT and SIGHUP.
    pub(super) fn listen() -> io::Result<Self> {
        let (asked, ask) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
        }
        Ok(Self { asked })
    }

    /// Whether the bridge was asked to end.
    pub(super) fn is_asked(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until the bridge is asked to end, at most for `span`. Returns whether it was.
    pub(super) fn wait(&self, span: Duration) -> bool {
        let until = Instant::now() + span;
        loop {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now()))
                .expect("a wait of the bridge fits into the kernel's type");
            match poll(&mut [PollFd::new(&self.asked, PollFlags::IN)], Some(&left)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {} // the signal may be the one that is waited for
                Err(error) => panic!("poll a socket of our own: {error}"),
            }
        }
    }
}
