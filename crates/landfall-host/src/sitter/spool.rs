//! Draining one output of the child: the pipe is emptied whatever happens, the file gets what fits.
//!
//! The first bytes are written as they come. Past that, bytes go round a buffer of fixed size and only the last of them are
//! written, at the end, behind a mark that says how many are missing. Nothing here waits for the disk to have room: a
//! write that fails ends the first part, and the child never notices.

use super::ended::SpoolSummary;
use super::follow::gap_mark;
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How much of the end is kept of an output that is too long.
pub(super) const TAIL: u64 = 64 * 1024;

/// One read's worth, and the ring. Large, so that a flood costs few calls; untouched pages of it cost nothing.
const BUFFER: usize = 256 * 1024;

/// What a flooded pipe is widened to: as much as the system allows without privilege.
const WIDE_PIPE: usize = 1 << 20;

pub(super) struct OutputDrain {
    pipe: Option<OwnedFd>,
    file: Option<File>,
    buffer: Box<[u8]>,
    /// How much more may be written as it comes.
    head_left: u64,
    /// How much of the rest is kept.
    tail_max: usize,
    written: u64,
    /// Bytes that went round the ring.
    past: u64,
    /// Where in the ring the next byte goes.
    at: usize,
}

/// What a pull found at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainState {
    /// There may be more at once.
    More,
    /// Nothing for now.
    Dry,
    /// All writers are gone.
    Closed,
}

impl OutputDrain {
    /// Drains `pipe`, which must not block, into `file`; without a file all is left out.
    pub(super) fn new(pipe: OwnedFd, file: Option<File>, cap: u64) -> OutputDrain {
        let tail = TAIL.min(cap / 2);
        let head_left = if file.is_some() { cap - tail } else { 0 };
        OutputDrain {
            pipe: Some(pipe),
            file,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            head_left,
            tail_max: usize::try_from(tail).expect("at most TAIL"),
            written: 0,
            past: 0,
            at: 0,
        }
    }

    /// The pipe, while it has writers.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.as_fd())
    }

    /// Empties the pipe, up to a few buffers' worth so that the other output gets its turn.
    pub(super) fn pull_some(&mut self) -> DrainState {
        const TURN: usize = 8;
        for _ in 0..TURN {
            match self.pull_once() {
                DrainState::More => {}
                end @ (DrainState::Dry | DrainState::Closed) => return end,
            }
        }
        DrainState::More
    }

    fn pull_once(&mut self) -> DrainState {
        let Some(pipe) = &self.pipe else { return DrainState::Closed };
        let in_head = self.head_left > 0;
        let room = if in_head {
            let room = usize::try_from(self.head_left).unwrap_or(BUFFER).min(BUFFER);
            &mut self.buffer[..room]
        } else {
            &mut self.buffer[self.at..]
        };
        match rustix::io::read(pipe, room) {
            Ok(0) => {
                self.pipe = None;
                DrainState::Closed
            }
            Ok(read) if in_head => {
                self.write_head(read);
                DrainState::More
            }
            Ok(read) => {
                if self.past < TAIL && self.past + read as u64 >= TAIL {
                    // A flood: a wider pipe means fewer turns for both of us. Not before, as wide pipes are counted
                    // against the user, and without leave for more it stays as it is.
                    rustix::pipe::fcntl_setpipe_size(pipe, WIDE_PIPE).ok();
                }
                self.past += read as u64;
                self.at = (self.at + read) % BUFFER;
                DrainState::More
            }
            Err(Errno::AGAIN) => DrainState::Dry,
            Err(Errno::INTR) => DrainState::More,
            Err(_) => {
                self.pipe = None; // cannot be with a pipe; whatever it is, there is nothing more to be had
                DrainState::Closed
            }
        }
    }

    /// Writes what was just read. Where the file takes no more, the rest of it is the beginning of the ring, as it lies.
    fn write_head(&mut self, read: usize) {
        let file = self.file.as_mut().expect("a head is only planned for a file");
        let mut done = 0;
        while done < read {
            match file.write(&self.buffer[done..read]) {
                Ok(0) => break,
                Ok(wrote) => done += wrote,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.written += done as u64;
        self.head_left -= done as u64;
        if done < read {
            self.head_left = 0;
            self.past = (read - done) as u64;
        }
        if self.head_left == 0 {
            self.at = read % BUFFER;
        }
    }

    /// Writes the end and says what became of everything.
    pub(super) fn finish_spool(mut self) -> SpoolSummary {
        let bytes = self.written + self.past;
        let tail = usize::try_from(self.past).unwrap_or(usize::MAX).min(self.tail_max);
        let left_out = self.past - tail as u64;
        let all_kept = SpoolSummary { bytes, kept: bytes, left_out: 0, cut_at: None };
        if self.past == 0 {
            return all_kept;
        }
        let nothing_more = SpoolSummary { bytes, kept: self.written, left_out: self.past, cut_at: None };
        let Some(mut file) = self.file.take() else { return nothing_more };
        let mark = if left_out > 0 { gap_mark(left_out) } else { String::new() };
        let (older, newer) = self.last_bytes(tail);
        let wrote = file.write_all(mark.as_bytes()).and_then(|()| file.write_all(older));
        match wrote.and_then(|()| file.write_all(newer)) {
            Ok(()) if left_out == 0 => all_kept,
            Ok(()) => SpoolSummary { bytes, kept: bytes - left_out, left_out, cut_at: Some(self.written) },
            Err(_) => self.drop_tail(file, nothing_more),
        }
    }

    /// The disk has no room for the last bytes. The mark alone is small and may still fit.
    fn drop_tail(&self, mut file: File, spool: SpoolSummary) -> SpoolSummary {
        if file.set_len(self.written).is_err() {
            return spool;
        }
        match file.write_all(gap_mark(spool.left_out).as_bytes()) {
            Ok(()) => SpoolSummary { cut_at: Some(self.written), ..spool },
            Err(_) => {
                let _ = file.set_len(self.written); // half a mark is worse than none; the record says what is missing
                spool
            }
        }
    }

    /// The last `len` bytes that went round, in two pieces.
    fn last_bytes(&self, len: usize) -> (&[u8], &[u8]) {
        if len <= self.at {
            (&self.buffer[self.at - len..self.at], &[])
        } else {
            (&self.buffer[BUFFER - (len - self.at)..], &self.buffer[..self.at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _};
    use std::os::fd::AsRawFd as _;

    /// Pushes `chunks` through a real pipe and returns the file and the account.
    fn drain_chunks(cap: u64, chunks: &[&[u8]]) -> (Vec<u8>, SpoolSummary) {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("pipe");
        rustix::io::ioctl_fionbio(&reader, true).expect("not blocking");
        let mut file = tempfile::tempfile().expect("file");
        let mut drain = OutputDrain::new(reader, Some(file.try_clone().expect("second handle")), cap);
        let mut writer = File::from(writer);
        for chunk in chunks {
            for part in chunk.chunks(4096) {
                writer.write_all(part).expect("the pipe has room");
                while drain.pull_some() == DrainState::More {}
            }
        }
        assert!(writer.as_raw_fd() > 2);
        drop(writer);
        assert_eq!(drain.pull_some(), DrainState::Closed);
        let spool = drain.finish_spool();
        let mut text = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut text).expect("a file");
        (text, spool)
    }

    fn numbered_bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| b"0123456789abcdef\n"[(at * 7 + at / 251) % 17]).collect()
    }

    #[test]
    fn every_length_around_the_cap_adds_up() {
        for cap in [0, 1, 2, 3, 100, 4096, 200_000, 400_000] {
            for len in
                [0, 1, 2, 3, 99, 100, 101, 4095, 4096, 4097, 199_999, 200_000, 200_001, 399_999, 700_000]
            {
                let said = numbered_bytes(len);
                let (text, spool) = drain_chunks(cap, &[&said]);
                assert_eq!(spool.bytes, len as u64, "cap {cap}, {len} bytes");
                assert_eq!(spool.kept, (len as u64).min(cap), "cap {cap}, {len} bytes");
                assert_eq!(spool.kept + spool.left_out, spool.bytes, "cap {cap}, {len} bytes");
                match spool.cut_at {
                    None => assert_eq!(text, said, "cap {cap}, {len} bytes"),
                    Some(at) => {
                        let at = usize::try_from(at).expect("small");
                        let mark = gap_mark(spool.left_out);
                        let tail = &text[at + mark.len()..];
                        assert_eq!(text[..at], said[..at], "cap {cap}, {len} bytes: the beginning");
                        assert_eq!(&text[at..at + mark.len()], mark.as_bytes());
                        assert_eq!(tail, &said[len - tail.len()..], "cap {cap}, {len} bytes: the end");
                        assert_eq!((at + tail.len()) as u64, cap);
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_disk_is_an_account_and_not_a_halt() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("pipe");
        rustix::io::ioctl_fionbio(&reader, true).expect("not blocking");
        let full = File::options().write(true).open("/dev/full").expect("a disk that is always full");
        let mut drain = OutputDrain::new(reader, Some(full), 1 << 20);
        let mut writer = File::from(writer);
        for _ in 0..100 {
            writer.write_all(&[b'x'; 8192]).expect("drained");
            while drain.pull_some() == DrainState::More {}
        }
        drop(writer);
        assert_eq!(drain.pull_some(), DrainState::Closed);
        assert_eq!(
            drain.finish_spool(),
            SpoolSummary { bytes: 819_200, kept: 0, left_out: 819_200, cut_at: None }
        );
    }
}
