//! Paths that a task touches.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use std::fmt;
use std::str::FromStr;

use crate::spec::SpecError;

/// A path, a folder (`web/`) or a pattern (`src/**/*.rs`) below the root of the repository.
///
/// A name without an ending may be a folder and then stands for all that is in it. `*` and `?` stay within a folder,
/// `**` does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern {
    /// As it is shown; never empty, never absolute, without `.` and `..`.
    text: String,
    /// Whether it stands for what is below it, too.
    below: bool,
}

impl PathPattern {
    /// Whether it is a folder or a pattern, which may mean more than one file.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        is_wild(&self.text) || self.below
    }

    /// One file that was seen.
    ///
    /// # Errors
    /// When it is no path within a repository.
    pub fn for_file(path: &str) -> Result<Self, SpecError> {
        let refused = || SpecError::Touch(path.chars().take(40).collect());
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.is_empty() || parts.len() > PARTS_MAX || path.len() > BYTES_MAX || parts.contains(&"..") {
            return Err(refused());
        }
        Ok(Self { text: parts.join("/"), below: false })
    }

    /// As it is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether some file can belong to both.
    #[must_use]
    pub fn overlaps_with(&self, other: &Self) -> bool {
        if !is_wild(&self.text) && !is_wild(&other.text) {
            let (mine, theirs) = (self.text.trim_end_matches('/'), other.text.trim_end_matches('/'));
            let is_in = |inner: &str, outer: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
            };
            return mine == theirs || self.below && is_in(theirs, mine) || other.below && is_in(mine, theirs);
        }
        let (mine, theirs) = (self.path_parts(), other.path_parts());
        let mut seen = vec![0_u128; mine.len() + 1];
        parts_overlap((&mine, self.below), (&theirs, other.below), (0, 0), &mut seen)
    }

    fn path_parts(&self) -> Vec<&str> {
        self.text.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// The folders and names at its beginning that are no patterns, each with a `/` behind it.
    #[must_use]
    pub fn literal_prefix(&self) -> String {
        let parts = self.text.split('/').filter(|part| !part.is_empty());
        parts.take_while(|part| !is_wild(part)).fold(String::new(), |stem, part| stem + part + "/")
    }

    /// The folder it is in, as a whole; none when it is at the root.
    #[must_use]
    pub fn parent_folder(&self) -> Option<Self> {
        let (folder, _) = self.text.trim_end_matches('/').rsplit_once('/')?;
        Some(Self { text: format!("{folder}/"), below: true })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PathPattern {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let refused = || SpecError::Touch(text.chars().take(40).collect());
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.len() > BYTES_MAX || trimmed.chars().any(char::is_control) {
            return Err(refused());
        }
        let parts: Vec<&str> = trimmed.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.len() > PARTS_MAX || parts.contains(&"..") {
            return Err(refused());
        }
        let Some(last) = parts.last() else {
            return Ok(Self { text: "**".to_owned(), below: true }); // `.`: all there is
        };
        let folder = trimmed.ends_with('/');
        // `v1.2` may be a folder, but `main.rs` is what people write; a slash at the end says which is meant.
        let has_ending = last.trim_start_matches('.').contains('.');
        let below = folder || *last == "**" || !(is_wild(last) || has_ending);
        let slash = if folder && *last != "**" { "/" } else { "" };
        Ok(Self { text: parts.join("/") + slash, below })
    }
}

const BYTES_MAX: usize = 512; // a path, not a text

const PARTS_MAX: usize = 100; // folders in folders; fewer than the bits that note which pairs were looked at

fn is_wild(part: &str) -> bool {
    part.contains(['*', '?', '{', '}'])
}

/// Whether some path fits both from these places on. Each pair of places is looked at once.
fn parts_overlap(
    mine: (&[&str], bool),
    theirs: (&[&str], bool),
    at: (usize, usize),
    seen: &mut [u128],
) -> bool {
    let ((a, a_below), (b, b_below), (i, j)) = (mine, theirs, at);
    let empty = |rest: &[&str]| rest.iter().all(|part| *part == "**");
    match (a.get(i), b.get(j)) {
        (None, None) => return true,
        (None, Some(_)) => return a_below || empty(&b[j..]),
        (Some(_), None) => return b_below || empty(&a[i..]),
        (Some(_), Some(_)) if seen[i] >> j & 1 == 1 => return false,
        (Some(_), Some(_)) => seen[i] |= 1 << j,
    }
    if a[i] == "**" || b[j] == "**" {
        // Whichever has it may leave it behind or take one part of the other's in.
        return parts_overlap(mine, theirs, (i + 1, j), seen)
            || parts_overlap(mine, theirs, (i, j + 1), seen);
    }
    names_overlap(a[i], b[j]) && parts_overlap(mine, theirs, (i + 1, j + 1), seen)
}

/// Whether some name fits both patterns. Alternatives in braces are taken for any name: too much is held back, never
/// too little.
fn names_overlap(a: &str, b: &str) -> bool {
    match (is_wild(a), is_wild(b)) {
        (false, false) => return a == b,
        (_, _) if a.contains(['{', '}']) || b.contains(['{', '}']) => return true,
        (_, _) => {}
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // `fits[j]`: whether some text fits the first `i` of one and the first `j` of the other.
    let mut fits = vec![false; b.len() + 1];
    for i in 0..=a.len() {
        let mut corner = false; // `fits[j - 1]` of the row before
        for j in 0..=b.len() {
            let above = i > 0 && fits[j];
            let left = j > 0 && fits[j - 1];
            let star =
                i > 0 && a[i - 1] == '*' && (above || left) || j > 0 && b[j - 1] == '*' && (above || left);
            let both = i > 0 && j > 0 && corner && {
                let (x, y) = (a[i - 1], b[j - 1]);
                x == y || matches!(x, '*' | '?') || matches!(y, '*' | '?')
            };
            corner = above;
            fits[j] = i == 0 && j == 0 || star || both;
        }
    }
    fits[b.len()]
}

impl Serialize for PathPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PathPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
