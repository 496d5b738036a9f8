//! Two folders that tell of the same thing at two times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All files below a folder, with what differs from run to run blanked: moments, days, hashes, lengths of time, and the
/// order of the fields of a JSON object, which tells only which of them was written first.
#[must_use]
pub fn blanked(dir: &Path) -> BTreeMap<String, String> {
    fn walk(dir: &Path, below: &str, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).expect("a folder").flatten() {
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), all);
            } else {
                let text = fs::read_to_string(entry.path()).expect("text");
                let ordered = name.ends_with(".json").then(|| in_order(&text)).flatten();
                all.insert(blank(&name), blank(&ordered.unwrap_or(text)));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(dir, "", &mut all);
    all
}

fn in_order(object: &str) -> Option<String> {
    let fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(object).ok()?;
    serde_json::to_string_pretty(&fields).ok()
}

fn blank(text: &str) -> String {
    let is_stamp = |word: &str| {
        let hex = word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
        let digits = word.chars().filter(char::is_ascii_digit).count();
        hex || digits >= 4
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.');
    let mut out = String::new();
    for line in text.lines().filter(|line| {
        !["revision", "working time", "iterations", "tokens", "proof", "| `"]
            .iter()
            .any(|it| line.contains(it))
    }) {
        let mut word = String::new();
        for c in line.chars().chain(['\n']) {
            if is_part(c) {
                word.push(c);
                continue;
            }
            out.push_str(if is_stamp(&word) { "*" } else { &word });
            word.clear();
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_fields_is_no_difference_and_their_values_are() {
        let shown = |text: &str| {
            let dir = tempfile::tempdir().expect("a folder");
            fs::write(dir.path().join("a.json"), text).expect("written");
            blanked(dir.path())
        };
        let one = shown("{\"steps\": 1, \"updated\": \"2026-01-31\", \"revision\": 3}");
        assert_eq!(one, shown("{\"revision\": 7,\n\"updated\": \"2026-01-31\", \"steps\": 1}"));
        assert_ne!(one, shown("{\"steps\": 2, \"updated\": \"2026-01-31\", \"revision\": 3}"));
    }
}
