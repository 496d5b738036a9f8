//! Dated entries: one file per finding, plan or note, below `.analysis/`, `.test/`, `.bugfix/` and `.notes/`.

use std::fmt;

/// Where entries of one sort lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryFolder {
    /// What checks found.
    Analysis,
    /// Criteria and results of tests.
    Test,
    /// What went wrong and how it was mended.
    Bugfix,
    /// What was noted on the way.
    Notes,
}

impl EntryFolder {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Analysis, Self::Test, Self::Bugfix, Self::Notes];

    /// The name of the folder.
    #[must_use]
    pub fn folder_name(self) -> &'static str {
        match self {
            Self::Analysis => ".analysis",
            Self::Test => ".test",
            Self::Bugfix => ".bugfix",
            Self::Notes => ".notes",
        }
    }

    /// The one file that the oldest folders have instead.
    #[must_use]
    pub fn old_file(self) -> String {
        format!("{}.md", self.folder_name())
    }

    /// The folder of a stage that is over: `.analysis-stage-2`.
    #[must_use]
    pub fn archive_name(self, stage: u32) -> String {
        format!("{}-stage-{stage}", self.folder_name())
    }
}

impl fmt::Display for EntryFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.folder_name())
    }
}

/// The name of an entry: a day and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryName {
    /// `YYYY-MM-DD`.
    pub day: String,
    /// `post-plan-pass`, `plan-criteria`, `index-recovery`, …
    pub about: String,
}

impl EntryName {
    /// A name; what cannot stand in a file name becomes `-`.
    #[must_use]
    pub fn new(day: &str, about: &str) -> Self {
        const ABOUT_BYTES_MAX: usize = 80; // read in a listing
        let mut out = String::new();
        for c in about.chars() {
            if out.len() >= ABOUT_BYTES_MAX {
                break;
            }
            match c {
                c if c.is_ascii_alphanumeric() || c == '_' => out.push(c.to_ascii_lowercase()),
                _ if out.is_empty() || out.ends_with('-') => {}
                _ => out.push('-'),
            }
        }
        let about = out.trim_end_matches('-');
        Self {
            day: day.to_owned(),
            about: if about.is_empty() { "entry".to_owned() } else { about.to_owned() },
        }
    }

    /// Reads a file's name; none for summaries and other files.
    #[must_use]
    pub fn read(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".md")?;
        let (day, about) = (stem.get(..10)?, stem.get(10..)?.strip_prefix('-')?);
        let shape = day.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        (shape && !about.is_empty()).then(|| Self { day: day.to_owned(), about: about.to_owned() })
    }

    /// The name of the file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.md", self.day, self.about)
    }
}

/// The latest of these files: the last by name. Summaries and files without a date do not count.
#[must_use]
pub fn latest_entry<'a>(files: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    files.into_iter().filter(|file| EntryName::read(file).is_some()).max()
}
