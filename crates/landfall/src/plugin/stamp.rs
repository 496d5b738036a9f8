//! The mark on each copy of a file of the plugin: which version it is of, and a digest by which a change is seen.
//!
//! It is in the file itself, so a copy that travels with a repository is known on every machine.

use super::files::MANIFEST_PATH;

/// Whose a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOwnership {
    /// As Landfall wrote it, in this version.
    Ours(String),
    /// Landfall wrote it, and somebody has changed it since.
    Changed,
    /// Landfall did not write it.
    Foreign,
}

/// How a mark begins and ends in a kind of file, and before what it stands.
struct StampFormat {
    begin: &'static str,
    end: &'static str,
    before: &'static str,
}

const MARKDOWN: StampFormat = StampFormat { begin: "\n<!-- landfall ", end: " -->\n", before: "" };
const JSON: StampFormat = StampFormat { begin: ",\n  \"x-landfall\": \"", end: "\"", before: "\n}\n" };

fn stamp_format(path: &str) -> &'static StampFormat {
    if path == MANIFEST_PATH { &JSON } else { &MARKDOWN }
}

fn content_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// The text with its mark.
pub fn add_stamp(path: &str, text: &str, version: &str) -> String {
    let StampFormat { begin, end, before } = stamp_format(path);
    let head = text.strip_suffix(before).unwrap_or(text);
    format!("{head}{begin}{version} {}{end}{before}", content_digest(text))
}

/// Whose this text is.
pub fn find_owner(path: &str, text: &str) -> FileOwnership {
    let StampFormat { begin, end, .. } = stamp_format(path);
    let mark = text.rfind(begin).and_then(|at| {
        let (inner, rest) = text[at + begin.len()..].split_once(end)?;
        let (version, sum) = inner.split_once(' ')?;
        Some((format!("{}{rest}", &text[..at]), version, sum))
    });
    match mark {
        Some((plain, version, sum)) if content_digest(&plain) == sum => {
            FileOwnership::Ours(version.to_owned())
        }
        Some(_) => FileOwnership::Changed,
        None => FileOwnership::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_again_and_every_change_is_seen() {
        for (path, text) in
            [("a/SKILL.md", "---\nname: a\n---\n\nDo it.\n"), (MANIFEST_PATH, "{\n  \"name\": \"x\"\n}\n")]
        {
            let marked = add_stamp(path, text, "1.2.3");
            assert_eq!(find_owner(path, &marked), FileOwnership::Ours("1.2.3".to_owned()), "{marked}");
            assert_eq!(find_owner(path, text), FileOwnership::Foreign);
            for changed in [
                marked.replace("name", "Name"),
                format!("{marked}\nMore.\n"),
                format!(" {marked}"),
                marked.replace('\n', "\r\n").replace("\r\n<!--", "\n<!--"),
            ] {
                assert_ne!(find_owner(path, &changed), FileOwnership::Ours("1.2.3".to_owned()), "{changed}");
            }
        }
        let json = add_stamp(MANIFEST_PATH, "{\n  \"name\": \"x\"\n}\n", "1.2.3");
        let json: serde_json::Value = serde_json::from_str(&json).expect("still JSON");
        assert!(json["x-landfall"].as_str().is_some_and(|it| it.starts_with("1.2.3 ")), "{json}");
    }
}
