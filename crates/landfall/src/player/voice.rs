//! What the agent says, unbuffered, so that it is heard when it is said.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use landfall_agents::script::ScriptNote;

/// The two outputs of the agent.
pub(super) struct PlayerOutput {
    out: Option<File>,
    err: Option<File>,
}

impl PlayerOutput {
    /// The outputs of this process.
    pub(super) fn new() -> Self {
        Self { out: open(io::stdout().as_fd()), err: open(io::stderr().as_fd()) }
    }

    /// Says a line.
    pub(super) fn print_line(&mut self, text: &str) {
        self.write_raw(format!("{text}\n").as_bytes());
    }

    /// Reports a fact.
    pub(super) fn report_note(&mut self, note: &ScriptNote) {
        self.print_line(&note.line());
    }

    /// Writes bytes as they are.
    pub(super) fn write_raw(&mut self, bytes: &[u8]) {
        write_or_close(&mut self.out, bytes);
    }

    /// Says a line where nobody takes it for a control word.
    pub(super) fn print_error_line(&mut self, text: &str) {
        write_or_close(&mut self.err, format!("{text}\n").as_bytes());
    }
}

fn open(fd: BorrowedFd<'_>) -> Option<File> {
    fd.try_clone_to_owned().ok().map(File::from)
}

/// An agent whose output is closed works on without a word, as many do.
fn write_or_close(file: &mut Option<File>, bytes: &[u8]) {
    if let Some(open) = file
        && open.write_all(bytes).is_err()
    {
        *file = None;
    }
}
