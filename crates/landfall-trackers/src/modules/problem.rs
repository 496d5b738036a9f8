//! What is wrong with a file: where, what is known instead, what to do.

use std::fmt;

use thiserror::Error;

/// Something in a file that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFormatError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What would have been understood.
    pub known: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for ModuleFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        match &self.known {
            Some(known) => write!(f, "; known: {known}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ModuleFormatError {}

/// The same, before the name of the file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModuleLineProblem {
    pub(super) line: usize,
    pub(super) message: String,
    pub(super) known: Option<String>,
    pub(super) hint: Option<String>,
}

impl ModuleLineProblem {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), known: None, hint: None }
    }

    pub(super) fn with_known(mut self, known: impl Into<String>) -> Self {
        self.known = Some(known.into());
        self
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn in_file(self, file: &str) -> ModuleFormatError {
        let Self { line, message, known, hint } = self;
        ModuleFormatError { file: file.to_owned(), line, message, known, hint }
    }
}

/// A metadata file that cannot be used as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", first(.errors))]
pub struct UnreadableMetadata {
    /// All that is wrong with it, in the order of the file; never empty.
    pub errors: Vec<ModuleFormatError>,
}

fn first(errors: &[ModuleFormatError]) -> String {
    let more = match errors.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    errors.first().map(ToString::to_string).unwrap_or_default() + &more
}

/// At most `max` characters of `text`, for messages.
pub(super) fn shorten_text(text: &str) -> String {
    const CHARS_MAX: usize = 40; // enough to recognise it
    let mut out: String =
        text.chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}
