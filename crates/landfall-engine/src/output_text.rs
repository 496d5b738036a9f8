//! What commands wrote, read from its end.

use std::path::Path;

/// The end of a file as text.
pub(crate) fn read_text_tail(path: &Path, max: u64) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let Ok(mut file) = std::fs::File::open(path) else { return String::new() };
    let len = file.metadata().map_or(0, |meta| meta.len());
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(len.saturating_sub(max))).is_err() || file.read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn excerpt_output(out: &str, err: &str) -> String {
    let last = |text: &str, max: usize| {
        let text = text.trim_end();
        let from = text.char_indices().rev().map(|(at, _)| at).take_while(|at| text.len() - at <= max).last();
        from.map_or(String::new(), |from| text[from..].to_owned())
    };
    match (out.trim().is_empty(), err.trim().is_empty()) {
        (_, true) => last(out, EXCERPT_MAX),
        (true, false) => last(err, EXCERPT_MAX),
        (false, false) => format!("{}\n{}", last(out, EXCERPT_MAX / 2), last(err, EXCERPT_MAX / 2)),
    }
}

pub(crate) const TESTS_TAIL: u64 = 1 << 20; // runners say how many tests ran at the end

const EXCERPT_MAX: usize = 4_000; // what an agent can use of a failure; the whole log is in the folder of the run
