//! Two folders that tell of the same thing at two times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All files below a folder, with what differs from run to run blanked: moments, days, hashes, lengths of time.
#[must_use]
pub fn blanked(dir: &Path) -> BTreeMap<String, String> {
    fn walk(dir: &Path, below: &str, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).expect("a folder").flatten() {
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), all);
            } else {
                let text = fs::read_to_string(entry.path()).expect("text");
                all.insert(blank(&name), blank(&text));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(dir, "", &mut all);
    all
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
