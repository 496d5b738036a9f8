//! The parts of shared settings files that decide about the checks: the rest of them may change unseen.

use std::collections::{BTreeMap, BTreeSet};

use super::ecosystems::{PACKAGE_KEYS, SectionRule};
use super::json_text::{members, string};

/// The lines of a settings file that count by a rule of the table.
pub(super) fn settings_lines(text: &str, rule: &SectionRule) -> Vec<String> {
    let mut counts = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_start_matches('[').trim_end_matches(']');
            let begins = |section: &str| {
                header
                    .strip_prefix(section)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
            };
            counts = rule.sections.iter().any(|section| begins(section));
        }
        if counts || rule.lines.iter().any(|beginning| line.starts_with(beginning)) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The scripts of a package.json that these names run, and its settings for runners, a line each. A text that is no
/// JSON object counts as a whole.
pub(super) fn package_lines(text: &str, scripts: &BTreeSet<String>) -> Vec<String> {
    let Some(package) = members(text) else {
        return text.lines().map(|line| line.trim().to_owned()).collect();
    };
    let mut lines = Vec::new();
    for (name, line) in package_scripts(text) {
        if scripts.contains(&name) {
            lines.push(format!("\"{name}\": \"{line}\""));
        }
    }
    for (name, value) in &package {
        if PACKAGE_KEYS.contains(&name.as_str()) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("\"{name}\": {value}"));
        }
    }
    // A package that comes from this repository can be any program.
    let tables = ["dependencies", "devDependencies", "overrides", "resolutions"];
    for (_, table) in package.iter().filter(|(name, _)| tables.contains(&name.as_str())) {
        for (name, from) in members(table).unwrap_or_default() {
            let is_local = |from: &String| {
                ["file:", "link:", "portal:", "./", "../"].iter().any(|mark| from.starts_with(mark))
            };
            if string(from).as_ref().is_some_and(is_local) {
                lines.push(format!("\"{name}\": {from}"));
            }
        }
    }
    lines
}

/// The scripts of a package.json. Of two with one name the later one counts, as in npm.
pub(super) fn package_scripts(text: &str) -> BTreeMap<String, String> {
    let tables = members(text).unwrap_or_default().into_iter().filter(|(name, _)| name == "scripts");
    let scripts = tables.flat_map(|(_, table)| members(table).unwrap_or_default());
    scripts.filter_map(|(name, line)| Some((name, string(line)?))).collect()
}

/// The variable to which `now` only adds words of what `before` has, and no word that could be a command.
pub(super) fn grown_list<'a>(before: &'a str, now: &str) -> Option<&'a str> {
    let ((name, old), (name_now, new)) = before.split_once('=').zip(now.split_once('='))?;
    // A line that begins with a tab is a command.
    let is_assignment = name == name_now && !name.starts_with('\t');
    (is_assignment && only_adds_words(old, new))
        .then(|| name.trim_end_matches([':', '?', '+', '!', ' ', '\t']).trim())
}

/// Whether `new` has every word of `old` in order, the first one at the beginning, and besides only plain words.
pub(super) fn only_adds_words(old: &str, new: &str) -> bool {
    let mut new_words = new.split_whitespace();
    let is_harmless = |word: &&str| {
        word.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '/' | '-'))
            && !word.starts_with('-')
    };
    let mut added = Vec::new();
    for old_word in old.split_whitespace() {
        loop {
            match new_words.next() {
                Some(word) if word == old_word => break,
                Some(word) => added.push(word),
                None => return false,
            }
        }
    }
    added.extend(new_words);
    old.split_whitespace().next() == new.split_whitespace().next() && added.iter().all(is_harmless)
}
