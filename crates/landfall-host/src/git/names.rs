//! Names that come from outside, checked once: object ids, our own refs, a person's branches.
//!
//! git accepts `$(id)`, quotes and U+3000 in a branch name. Nothing here is ever given to a shell, but
//! our own refs still keep to a small alphabet, and every other name is refused if git would refuse it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A name that breaks the grammar of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}` is no {what}: {why}", .text.escape_debug())]
pub struct BadName {
    /// What it should have been.
    pub what: &'static str,
    /// The text that was given.
    pub text: String,
    /// The rule it breaks.
    pub why: &'static str,
}

impl BadName {
    fn new(what: &'static str, text: &str, why: &'static str) -> BadName {
        BadName { what, text: text.chars().take(200).collect(), why }
    }
}

/// An object id: 40 (SHA-1) or 64 (SHA-256) lowercase hex digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid(String);

impl Oid {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }

    pub(crate) fn from_raw(bytes: &[u8]) -> Oid {
        use fmt::Write as _;
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Oid(text)
    }

    pub(crate) fn to_raw_bytes(&self) -> Vec<u8> {
        let digit = |byte: u8| if byte.is_ascii_digit() { byte - b'0' } else { byte - b'a' + 10 };
        self.0.as_bytes().chunks(2).map(|pair| (digit(pair[0]) << 4) | digit(pair[1])).collect()
    }

    /// Reads an id from the bytes of a file or an output line; a trailing newline is fine.
    pub(crate) fn from_line(bytes: &[u8]) -> Option<Oid> {
        std::str::from_utf8(bytes).ok()?.trim_end_matches(['\n', '\r']).parse().ok()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }
}

impl FromStr for Oid {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Oid, BadName> {
        if text.len() != 40 && text.len() != 64 {
            return Err(BadName::new("object id", text, "it has not 40 or 64 digits"));
        }
        if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(BadName::new("object id", text, "it holds something else than lowercase hex digits"));
        }
        Ok(Oid(text.to_owned()))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

/// A ref that the engine writes: `refs/…` in the small alphabet `[a-z0-9/._-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

impl RefName {
    /// Checks and takes a full ref name.
    pub fn new(text: &str) -> Result<RefName, BadName> {
        let bad = |why| Err(BadName::new("ref name", text, why));
        if !text.starts_with("refs/") {
            return bad("it does not start with `refs/`");
        }
        if text.len() > 200 {
            return bad("it is longer than 200 characters");
        }
        if !text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-')) {
            return bad("only a-z, 0-9 and / . _ - are allowed");
        }
        if text.contains("..") {
            return bad("it holds `..`");
        }
        for part in text.split('/') {
            if part.is_empty() {
                return bad("it has an empty part");
            }
            if part.starts_with(['.', '-']) || part.ends_with(['.', '-']) {
                return bad("a part starts or ends with `.` or `-`");
            }
            if part.ends_with(".lock") {
                return bad("a part ends with `.lock`");
            }
        }
        if text.split('/').count() < 3 {
            return bad("it needs a folder and a name below `refs/`");
        }
        Ok(RefName(text.to_owned()))
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RefName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<RefName, BadName> {
        RefName::new(text)
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A branch of the person's repository, without `refs/heads/`. Any name that git itself accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchName(String);

impl BranchName {
    /// Checks a branch name by git's own rules, without asking git.
    pub fn new(text: &str) -> Result<BranchName, BadName> {
        let bad = |why| Err(BadName::new("branch name", text, why));
        if text.is_empty() {
            return bad("it is empty");
        }
        if text.len() > 240 {
            return bad("it is longer than 240 bytes");
        }
        if text.starts_with('-') {
            return bad("it starts with `-`");
        }
        if text == "@" || text == "HEAD" {
            return bad("it is a name that git keeps for itself");
        }
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return bad("it holds a control character");
        }
        if text.contains([' ', '~', '^', ':', '?', '*', '[', '\\']) {
            return bad("it holds a space or one of ~ ^ : ? * [ \\");
        }
        if text.contains("..") || text.contains("@{") {
            return bad("it holds `..` or `@{`");
        }
        if text.ends_with('.') {
            return bad("it ends with `.`");
        }
        for part in text.split('/') {
            if part.is_empty() {
                return bad("it has an empty part");
            }
            if part.starts_with('.') || part.ends_with(".lock") {
                return bad("a part starts with `.` or ends with `.lock`");
            }
        }
        Ok(BranchName(text.to_owned()))
    }

    /// The name without `refs/heads/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name with `refs/heads/`.
    pub fn full_name(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl FromStr for BranchName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<BranchName, BadName> {
        BranchName::new(text)
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BranchName, Oid, RefName};

    #[test]
    fn an_object_id_is_forty_or_sixty_four_hex_digits() {
        assert!("a".repeat(40).parse::<Oid>().is_ok());
        assert!("0".repeat(64).parse::<Oid>().is_ok());
        for text in ["", "HEAD", "--all", &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert!(text.parse::<Oid>().is_err(), "{text}");
        }
    }

    #[test]
    fn our_refs_keep_to_a_small_alphabet() {
        for text in ["refs/landfall/base", "refs/landfall/pins/t7.2", "refs/landfall/keep/t-1_a"] {
            assert!(RefName::new(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "refs",
            "refs/",
            "refs/x",
            "main",
            "refs/landfall/",
            "refs//x",
            "/refs/a/b",
            "refs/a/../b",
            "refs/a/b.lock",
            "refs/a/.b",
            "refs/a/-b",
            "refs/a/b.",
            "refs/A/b",
            "refs/a/b c",
            "refs/a/$(id)",
            "refs/a/b\n",
            "refs/a/\u{3000}",
            "refs/a.lock/b",
            "refs/a/b@{1}",
            "refs/a/b;id",
        ] {
            assert!(RefName::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_branch_may_be_odd_but_not_refused_by_git() {
        for text in ["main", "feature/x", "$(id)", "a|b", "x'y", "größe", "\u{3000}", "a.b", "release-1.2"]
        {
            assert!(BranchName::new(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "-x",
            "--upload-pack=x",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "@",
            "HEAD",
            "a\nb",
            "a\u{7f}",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
        ] {
            assert!(BranchName::new(text).is_err(), "{text}");
        }
    }
}
