//! A record on disk: Markdown below a head of TOML between two lines of `+++`. Read with suspicion, written whole or not at
//! all.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use landfall_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::tracker::{TrackerError, TrackerResult};

/// What stands between the lines of `+++`. Fields are added, never renamed; what is not known is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LocalFrontMatter {
    pub kind: RecordKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RecordState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignees: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Whether Landfall wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<u64>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blocked_by: BTreeSet<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the branch points at, or what a review is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What came of a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RecordVerdict>,
    #[serde(with = "moment")]
    pub created: Timestamp,
    #[serde(default, with = "moment::maybe", skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    #[serde(default, with = "moment::maybe", skip_serializing_if = "Option::is_none")]
    pub closed: Option<Timestamp>,
    #[serde(default, with = "moment::maybe", skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Timestamp>,
    /// What a person or a newer version added.
    #[serde(flatten)]
    pub others: toml::Table,
}

impl LocalFrontMatter {
    pub(super) fn new(kind: RecordKind, author: &str, now: Timestamp) -> Self {
        Self {
            kind,
            title: String::new(),
            state: None,
            labels: Vec::new(),
            assignees: Vec::new(),
            author: Some(author.to_owned()),
            ours: true,
            children: Vec::new(),
            blocked_by: BTreeSet::new(),
            branch: None,
            base: None,
            commit: None,
            merged: None,
            verdict: None,
            created: now,
            updated: None,
            closed: None,
            reopened: None,
            others: toml::Table::new(),
        }
    }

    pub(super) fn updated_at(&self) -> Timestamp {
        self.updated.unwrap_or(self.created)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RecordKind {
    Issue,
    PullRequest,
    Comment,
    Review,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RecordState {
    Open,
    Draft,
    Done,
    NotPlanned,
    Closed,
    Merged,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RecordVerdict {
    Approved,
    ChangesRequested,
    Commented,
}

/// A record: head and text.
#[derive(Debug, Clone)]
pub(super) struct LocalRecord {
    pub head: LocalFrontMatter,
    pub body: String,
}

const FENCE: &str = "+++";

/// The longest body of a task, and some head.
const FILE_BYTES_MAX: u64 = 2 << 20;

impl LocalRecord {
    /// The record in a file; none if there is no file.
    pub(super) fn read(path: &Path) -> TrackerResult<Option<Self>> {
        let what = || path.display().to_string();
        let malformed = |why: String| TrackerError::Malformed { what: what(), why };
        let text = match open(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(malformed(error.to_string()));
            }
            Err(error) => return Err(unavailable_error(path, &error)),
        };
        Self::parse(&text).map(Some).map_err(malformed)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let unix = text.starts_with("+++\r\n").then(|| text.replace("\r\n", "\n"));
        let text = unix.as_deref().unwrap_or(text);
        let rest = text.strip_prefix("+++\n").ok_or("the first line is not `+++`")?;
        let end = if rest.starts_with("+++\n") { Some(0) } else { rest.find("\n+++\n").map(|at| at + 1) };
        let end = end.or_else(|| rest.strip_suffix("\n+++").map(|head| head.len() + 1));
        let end = end.ok_or("the head is not ended by a line `+++`")?;
        let head: LocalFrontMatter =
            toml::from_str(&rest[..end]).map_err(|error| at_line(&rest[..end], &error))?;
        let body = rest[end + FENCE.len()..].strip_prefix('\n').unwrap_or_default();
        let body = body.strip_prefix('\n').unwrap_or(body);
        Ok(Self { head, body: body.strip_suffix('\n').unwrap_or(body).to_owned() })
    }

    fn to_text(&self) -> Result<String, String> {
        let head = toml::to_string(&self.head).map_err(|error| error.to_string())?;
        Ok(format!("{FENCE}\n{head}{FENCE}\n\n{}\n", self.body))
    }

    /// Writes it whole: whoever reads sees what was or what is. `temporary` is a name nobody else writes to.
    pub(super) fn write(&self, path: &Path, temporary: &Path) -> TrackerResult<()> {
        let malformed = |why| TrackerError::Malformed { what: path.display().to_string(), why };
        let text = self.to_text().map_err(malformed)?;
        // What we could not read again is not written.
        Self::parse(&text).map_err(malformed)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let why = format!("it would be longer than {FILE_BYTES_MAX} bytes");
            return Err(TrackerError::Refused { what: path.display().to_string(), why });
        }
        put_file(path, temporary, text.as_bytes()).map_err(|error| unavailable_error(path, &error))
    }
}

/// What is wrong with a head, and in which line of its file.
fn at_line(head: &str, error: &toml::de::Error) -> String {
    let said = error.message().lines().collect::<Vec<_>>().join("; ");
    match error.span() {
        // What is missing is in no line.
        Some(span) if !said.starts_with("missing field") => {
            let before = head.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
            format!("line {}: {said}", before + 2) // the fence is the first
        }
        Some(_) | None => said,
    }
}

/// Whether it is a plain file, and can be read without waiting.
pub(super) fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Puts a file in its place, synced. The folder is made if it is missing.
pub(super) fn put_file(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("a record is in a folder");
    fs::create_dir_all(folder)?;
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {} // what an earlier write left behind
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    File::open(folder)?.sync_all()
}

/// The text of a plain file. Links and pipes that someone put in its place are not followed and not waited for.
fn open(path: &Path) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        if error.raw_os_error() == Some(libc::ELOOP) { wrong("it is a link") } else { error }
    })?;
    if !file.metadata()?.is_file() {
        return Err(wrong("it is no file"));
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    Ok(text)
}

pub(super) fn unavailable_error(path: &Path, error: &io::Error) -> TrackerError {
    TrackerError::Unavailable { what: path.display().to_string(), why: error.to_string(), unsure: false }
}

/// Moments as people read them.
mod moment {
    use landfall_model::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        let at = jiff::Timestamp::from_millisecond(at.0).map_err(serde::ser::Error::custom)?;
        to.serialize_str(&at.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        let at: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Timestamp(at.as_millisecond()))
    }

    pub(super) mod maybe {
        use super::{Deserializer, Serializer, Timestamp};

        pub(in super::super) fn serialize<S: Serializer>(
            at: &Option<Timestamp>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => super::serialize(at, to),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            super::deserialize(from).map(Some)
        }
    }
}
