//! Reading a spool while it grows.

use super::files;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// One of the things a run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SitterStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// What the program said through its socket: a line of JSON for each message that was taken, see [`super::SignalSpec`].
    Signals,
}

/// A reader of one spool that never waits: what is not there yet is read next time.
#[derive(Debug)]
pub struct SpoolReader {
    dir: PathBuf,
    stream: SitterStream,
    file: Option<File>,
    offset: u64,
}

impl SpoolReader {
    /// A reader of the spool of `stream` in `dir`, from `offset` on. The spool need not exist yet.
    pub fn new(dir: &Path, stream: SitterStream, offset: u64) -> SpoolReader {
        SpoolReader { dir: dir.to_owned(), stream, file: None, offset }
    }

    /// Where the next read begins: what to remember in order to go on later.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is there, at most `max` bytes; empty if there is nothing new. The mark of a cut is read like any other line.
    pub fn read(&mut self, max: usize) -> io::Result<Vec<u8>> {
        let offset = self.offset;
        let Some(file) = self.open_file()? else { return Ok(Vec::new()) };
        let there = file.metadata()?.len().saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(there).unwrap_or(max).min(max)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        self.offset += filled as u64;
        Ok(bytes)
    }

    fn open_file(&mut self) -> io::Result<Option<&File>> {
        if self.file.is_none() {
            let name = match self.stream {
                SitterStream::Out => files::OUT,
                SitterStream::Err => files::ERR,
                SitterStream::Signals => files::SIGNALS,
            };
            // An agent without a sandbox can put a pipe in its place: opening one would wait for a writer.
            let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            match OpenOptions::new().read(true).custom_flags(flags).open(self.dir.join(name)) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.file.as_ref())
    }
}

/// The line that stands where bytes were left out.
pub(super) fn gap_mark(left_out: u64) -> String {
    format!("\n[landfall: {left_out} bytes left out here]\n")
}
