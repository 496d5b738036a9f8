//! Words that trackers give us, and that others wrote. Each becomes a type of its own here, once; what cannot become one
//! is refused. Whoever holds one of these may put it where the type says and nowhere else.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::str::FromStr;

use thiserror::Error;

/// Text that is not the name it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{given}` is not {wanted}: {why}")]
pub struct NameError {
    /// What was given: its beginning, with control characters made visible.
    pub given: String,
    /// What would have been understood.
    pub wanted: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

impl NameError {
    fn new(given: &str, wanted: &'static str, why: &'static str) -> Self {
        Self { given: escape_beginning(given, 60), wanted, why }
    }
}

/// The beginning of a text, on one line, with control characters made visible.
#[must_use]
pub fn escape_beginning(text: &str, chars_max: usize) -> String {
    let mut line: String = text.chars().take(chars_max).map(make_visible).collect();
    if text.chars().nth(chars_max).is_some() {
        line.push('…');
    }
    line
}

fn make_visible(c: char) -> char {
    if is_control(c) { '\u{fffd}' } else { c }
}

/// Control characters, and those that turn the direction of a line or hide in it. The joiners inside emoji and words
/// (U+200C, U+200D) are letters to those who use them.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $wanted:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU64);

        impl $name {
            /// The number, if it is one: they begin at 1.
            #[must_use]
            pub fn new(number: u64) -> Option<Self> {
                NonZeroU64::new(number).map(Self)
            }

            /// The number.
            #[must_use]
            pub fn get(self) -> u64 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "#{}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let digits = text.strip_prefix('#').unwrap_or(text);
                // `parse` alone would take `+7`.
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(NameError::new(text, $wanted, "only digits, with or without `#`"));
                }
                let number = digits.parse().ok().and_then(Self::new);
                number.ok_or_else(|| NameError::new(text, $wanted, "numbers begin at 1 and have an end"))
            }
        }
    };
}

number!(
    /// An issue, written `#12`.
    IssueNumber,
    "the number of an issue"
);
number!(
    /// A pull request, written `#12`. Issues and pull requests are counted together.
    PrNumber,
    "the number of a pull request"
);

/// A label. Two that differ only in case are the same, as they are to GitHub.
#[derive(Debug, Clone)]
pub struct Label(String);

/// GitHub allows 50; others a little more.
const LABEL_CHARS_MAX: usize = 100;

impl Label {
    /// The label, if the text can be one.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let wrong = |why| Err(NameError::new(text, "a label", why));
        if text.trim().is_empty() {
            return wrong("it is empty");
        }
        if text.trim() != text {
            return wrong("it begins or ends with a space");
        }
        if text.chars().any(is_control) {
            return wrong("it has control characters");
        }
        if text.contains(',') {
            return wrong("a comma parts labels"); // in the list that is asked for
        }
        if text.chars().count() > LABEL_CHARS_MAX {
            return wrong("it is too long");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands behind a family's prefix: `ready` of `phase/ready` in `phase/`.
    #[must_use]
    pub fn name_within(&self, family: &str) -> Option<&str> {
        let head = self.0.get(..family.len())?;
        head.eq_ignore_ascii_case(family).then(|| &self.0[family.len()..])
    }

    fn lowercase_key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.lowercase_key() == other.lowercase_key()
    }
}

impl Eq for Label {}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.lowercase_key().cmp(&other.lowercase_key())
    }
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lowercase_key().hash(state);
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A branch, by a name that git takes, that is no option and that stays in a folder of refs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackerBranchName(String);

/// A file name of this length still fits with what git puts behind it.
const BRANCH_BYTES_MAX: usize = 200;

impl TrackerBranchName {
    /// The branch, if git would take the name and so would a command line.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let wrong = |why| Err(NameError::new(text, "a branch", why));
        if text.is_empty() || text == "@" || text == "HEAD" {
            return wrong("it names nothing");
        }
        if text.len() > BRANCH_BYTES_MAX {
            return wrong("it is too long");
        }
        if text.starts_with('-') {
            return wrong("it would be read as an option");
        }
        if text.chars().any(|c| is_control(c) || c.is_whitespace()) {
            return wrong("it has spaces or control characters");
        }
        if text.contains(['~', '^', ':', '?', '*', '[', '\\']) || text.contains("..") || text.contains("@{") {
            return wrong("git gives some of its characters a meaning");
        }
        let part_is_wrong = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
        if text.split('/').any(part_is_wrong) || text.ends_with('.') {
            return wrong("a part of it is empty, hidden or a lock");
        }
        if text.starts_with("refs/") {
            return wrong("it is a whole ref, not a branch");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TrackerBranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit, by its whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitSha(String);

impl CommitSha {
    /// The commit, if the text is the whole hexadecimal name of one.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex || !matches!(text.len(), 40 | 64) {
            return Err(NameError::new(text, "a commit", "40 or 64 hexadecimal digits are"));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitSha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Part of a file or branch name, made of any text: lowercase letters, digits and single dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

/// Enough to recognise a title by.
const SLUG_BYTES_MAX: usize = 40;

impl Slug {
    /// What of a text can stand in a name; `untitled` if nothing can.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut slug = String::new();
        for c in text.chars() {
            if slug.len() >= SLUG_BYTES_MAX {
                break;
            }
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let slug = slug.trim_end_matches('-');
        Self(if slug.is_empty() { "untitled".to_owned() } else { slug.to_owned() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A repository on a forge, written `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName {
    owner: String,
    name: String,
}

impl RepoName {
    /// The repository, if the text names one.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let wrong = |why| NameError::new(text, "a repository such as `owner/name`", why);
        let (owner, name) = text.split_once('/').ok_or_else(|| wrong("there is no `/` in it"))?;
        let legal = |part: &str| {
            !part.is_empty()
                && part.len() <= 100
                && !part.starts_with(['-', '.'])
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        };
        // A repository may be called `.github`, and that is the only one with a dot in front that we let in.
        if !legal(owner) || !(legal(name) || name == ".github") {
            return Err(wrong("letters, digits, `-`, `_` and `.` make a name"));
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// The repository that the address of a git remote leads to, and the host it is on: `https://host/owner/name.git`,
    /// `ssh://git@host/owner/name`, `git@host:owner/name`. None if it leads nowhere of this kind, or to a name that only
    /// this machine knows.
    #[must_use]
    pub fn from_remote_url(url: &str) -> Option<(String, Self)> {
        let url = url.trim().trim_end_matches('/');
        let (host, path) = match url.split_once("://") {
            Some(("https" | "http" | "ssh" | "git" | "git+ssh", rest)) => rest.split_once('/')?,
            Some(_) => return None,
            None => url.split_once(':')?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        if !host.contains('.') || !host.chars().all(legal) {
            return None;
        }
        let path = path.trim_start_matches('/');
        let name = Self::new(path.strip_suffix(".git").unwrap_or(path)).ok()?;
        Some((host, name))
    }

    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Its name below the owner.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// What we write into a text of ours to know it again: `<!-- landfall:phase/code/3 -->`, the last line of it. Whoever
/// writes looks for the marker first, so that nothing is written twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Marker(String);

const MARKER_BYTES_MAX: usize = 120;
const MARKER_OPENS: &str = "<!-- landfall:";
const MARKER_ENDS: &str = " -->";

impl Marker {
    /// A marker with this key, which has to be the same whenever the same thing is meant.
    pub fn new(key: &str) -> Result<Self, NameError> {
        let legal = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'/' | b'-' | b'.')
        };
        // Two dashes would end the comment that hides it.
        if key.is_empty() || key.len() > MARKER_BYTES_MAX || !key.bytes().all(legal) || key.contains("--") {
            return Err(NameError::new(key, "the key of a marker", "a-z, 0-9, `/`, `.` and single `-` are"));
        }
        Ok(Self(key.to_owned()))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
    }

    /// The text with the marker below it. Markers inside the text lose their meaning: an agent may have written it.
    #[must_use]
    pub fn sign_text(&self, text: &str) -> String {
        let text = neutralize_markers(text);
        let text = text.trim_end();
        if text.is_empty() { self.to_string() } else { format!("{text}\n\n{self}") }
    }

    /// Whether a text ends with this marker.
    #[must_use]
    pub fn is_on(&self, text: &str) -> bool {
        text.trim_end().lines().next_back().is_some_and(|line| line.trim() == self.to_string())
    }

    /// The marker a text ends with, and the text above it.
    #[must_use]
    pub fn split_marker(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_end();
        let began = text.rfind('\n').map_or(0, |at| at + 1);
        let key = text[began..].trim().strip_prefix(MARKER_OPENS)?.strip_suffix(MARKER_ENDS)?;
        Some((Self::new(key).ok()?, text[..began].trim_end()))
    }
}

/// A text in which nothing is a marker of ours any more.
#[must_use]
pub fn neutralize_markers(text: &str) -> String {
    text.replace(MARKER_OPENS, "<!-- quoted landfall:")
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARKER_OPENS}{}{MARKER_ENDS}", self.0)
    }
}

/// A title: one line, as every tracker takes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Title(String);

/// What GitHub takes.
const TITLE_CHARS_MAX: usize = 256;

impl Title {
    /// A title of any text: its first line that says something, without control characters, cut where trackers cut.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("untitled");
        let line: String = line.chars().map(make_visible).collect();
        if line.chars().count() <= TITLE_CHARS_MAX {
            return Self(line);
        }
        Self(line.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!("#12".parse::<IssueNumber>().map(IssueNumber::get), Ok(12));
        for wrong in ["", "#", "0", "+7", "-1", "1 ", "1.0", "١٢", "99999999999999999999999", "##1"] {
            assert!(wrong.parse::<IssueNumber>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_that_differ_in_case_are_one() {
        let [one, two] = ["phase/Ready", "Phase/ready"].map(|text| Label::new(text).expect("a label"));
        assert_eq!(one, two);
        assert_eq!(two.name_within("phase/"), Some("ready"));
        assert_eq!(Label::new("phase").expect("a label").name_within("phase/"), None);
        // `ü` is two bytes: the length of the prefix may fall inside a letter.
        assert_eq!(Label::new("phasü").expect("a label").name_within("phase/"), None);
    }

    #[test]
    fn a_marker_is_found_again_and_cannot_be_smuggled_in() {
        let marker = Marker::new("phase/code/3").expect("a key");
        let other = Marker::new("phase/code/4").expect("a key");
        let text = marker.sign_text(&format!("done\n{other}\n"));
        assert!(marker.is_on(&text) && !other.is_on(&text), "{text}");
        assert_eq!(
            Marker::split_marker(&text).map(|(marker, above)| (marker.key().to_owned(), above.to_owned())),
            Some(("phase/code/3".to_owned(), "done\n<!-- quoted landfall:phase/code/4 -->".to_owned()))
        );
        assert_eq!(Marker::split_marker("no marker"), None);
        assert!(Marker::new("a--b").is_err() && Marker::new("a b").is_err() && Marker::new("").is_err());
    }

    #[test]
    fn the_address_of_a_remote_names_its_repository() {
        let found = |url: &str| RepoName::from_remote_url(url).map(|(host, name)| format!("{host} {name}"));
        for url in [
            "https://github.com/o/r.git",
            "https://GitHub.com/o/r/",
            "https://x-token:secret@github.com/o/r",
            "git@github.com:o/r.git",
            "ssh://git@github.com:22/o/r.git",
            "git://github.com/o/r",
        ] {
            assert_eq!(found(url).as_deref(), Some("github.com o/r"), "{url}");
        }
        assert_eq!(
            found("git@git.example.com:team/my.repo.git").as_deref(),
            Some("git.example.com team/my.repo")
        );
        for url in [
            "",
            "../r",
            "/srv/git/r.git",
            "file:///srv/o/r",
            "work:o/r",
            "https://github.com/o",
            "https://h.x/a/b/c",
        ] {
            assert_eq!(found(url), None, "{url}");
        }
    }

    #[test]
    fn slugs_are_names_whatever_the_title_is() {
        let slugs = ["Fix the Bug!", "--force", "../../etc/passwd", "日本語", "", "a  b\nc"];
        let slugs = slugs.map(|title| Slug::from_text(title).to_string());
        assert_eq!(slugs, ["fix-the-bug", "force", "etc-passwd", "untitled", "untitled", "a-b-c"]);
    }
}
