//! Checks that only read files.

use landfall_model::acceptance::RepoPath;

use super::json_path;
use super::tree::{AcceptanceTree, TreePathContent, glob, glob_matches};
use super::{CheckEvidence, fail, judged, pass, uncertain};

const PATTERN_BYTES_MAX: usize = 1 << 20; // of memory; a pattern is a line
const SHOWN_CHARS_MAX: usize = 120;

/// Whether a file is there.
pub(super) fn file(tree: &AcceptanceTree, path: &RepoPath, there: bool) -> CheckEvidence {
    match tree.find(path.as_str()) {
        Err(why) => uncertain(why),
        Ok(TreePathContent::File(_)) => judged(there, format!("`{}` is there", path.as_str())),
        Ok(TreePathContent::Nothing) => judged(!there, format!("there is no `{}`", path.as_str())),
        Ok(TreePathContent::Folder | TreePathContent::Other) => {
            judged(!there, format!("`{}` is no file", path.as_str()))
        }
    }
}

/// Whether a folder is there.
pub(super) fn dir(tree: &AcceptanceTree, path: &RepoPath, there: bool) -> CheckEvidence {
    match tree.find(path.as_str()) {
        Err(why) => uncertain(why),
        Ok(TreePathContent::Folder) => judged(there, format!("the folder `{}` is there", path.as_str())),
        Ok(TreePathContent::Nothing) => judged(!there, format!("there is no `{}`", path.as_str())),
        Ok(TreePathContent::File(_) | TreePathContent::Other) => {
            judged(!there, format!("`{}` is no folder", path.as_str()))
        }
    }
}

/// Whether git knows it.
pub(super) fn committed(tree: &AcceptanceTree, path: &RepoPath) -> CheckEvidence {
    match tree.is_committed(path.as_str()) {
        Err(why) => uncertain(why),
        Ok(true) => pass(format!("git knows `{}`", path.as_str())),
        Ok(false) => fail(format!("git does not know `{}`", path.as_str())),
    }
}

/// The text of a file, or what is said instead.
fn text(tree: &AcceptanceTree, path: &RepoPath) -> Result<String, CheckEvidence> {
    match tree.text(path.as_str()) {
        Err(why) => Err(uncertain(why)),
        Ok(None) => Err(fail(format!("there is no `{}`", path.as_str()))),
        Ok(Some(text)) => Ok(text),
    }
}

/// Whether a text is in a file. A file that is not there holds nothing, but that it does not hold something is no news.
pub(super) fn contains(tree: &AcceptanceTree, path: &RepoPath, wanted: &str, there: bool) -> CheckEvidence {
    match text(tree, path) {
        Err(saw) => saw,
        Ok(text) => match line_of(&text, wanted) {
            Some(line) => judged(there, format!("`{}` line {line}", path.as_str())),
            None => judged(!there, format!("`{}` does not contain `{}`", path.as_str(), short(wanted))),
        },
    }
}

fn line_of(text: &str, wanted: &str) -> Option<usize> {
    text.find(wanted).map(|at| text[..at].matches('\n').count() + 1)
}

/// Whether a text is in none of the files.
pub(super) fn none_contains(tree: &AcceptanceTree, pattern: &RepoPath, wanted: &str) -> CheckEvidence {
    let (matcher, files) = match glob(pattern.as_str()).and_then(|matcher| Ok((matcher, tree.files()?))) {
        Ok(both) => both,
        Err(why) => return uncertain(why),
    };
    let mut count = 0;
    for path in files.iter().filter(|path| glob_matches(&matcher, path)) {
        count += 1;
        match tree.text(path) {
            Err(why) => return uncertain(why),
            Ok(text) => {
                if let Some(line) = text.and_then(|text| line_of(&text, wanted)) {
                    return fail(format!("`{path}` line {line}"));
                }
            }
        }
    }
    pass(format!("in none of {count} files that match `{}`", pattern.as_str()))
}

/// A regular expression of others, in bounds. The engine takes time in proportion to the text, whatever the pattern.
pub(super) fn pattern(text: &str) -> Result<regex::Regex, String> {
    regex::RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        })
}

/// Whether a line of the file matches.
pub(super) fn grep(tree: &AcceptanceTree, wanted: &str, path: &RepoPath) -> CheckEvidence {
    let pattern = match pattern(wanted) {
        Ok(pattern) => pattern,
        Err(why) => return uncertain(format!("the pattern `{}` makes no sense: {why}", short(wanted))),
    };
    match text(tree, path) {
        Err(saw) => saw,
        Ok(text) => match text.lines().position(|line| pattern.is_match(line)) {
            Some(line) => pass(format!("`{}` line {}", path.as_str(), line + 1)),
            None => fail(format!("no line of `{}` matches", path.as_str())),
        },
    }
}

/// Whether a field of a JSON file has a value.
pub(super) fn json_field(tree: &AcceptanceTree, path: &RepoPath, field: &str, value: &str) -> CheckEvidence {
    match text(tree, path) {
        Err(saw) => saw,
        Ok(text) => json(&text, field, value, &format!("`{}`", path.as_str())),
    }
}

/// Whether a path of a JSON text has a value.
pub(super) fn json(text: &str, path: &str, value: &str, what: &str) -> CheckEvidence {
    let query = match json_path::parse(path) {
        Ok(query) => query,
        Err(why) => return uncertain(why),
    };
    let root: serde_json::Value = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => return fail(format!("{what} is no JSON: {error}")),
    };
    match query.run(&root) {
        Err(why) => fail(format!("{what}: {why}")),
        Ok(found) => {
            let shown = json_path::shown(&found);
            judged(shown == value, format!("`{}` is `{}`", short(path), short(&shown)))
        }
    }
}

/// Whether a text is below a heading.
pub(super) fn section(
    tree: &AcceptanceTree,
    path: &RepoPath,
    heading: &str,
    wanted: &str,
    there: bool,
) -> CheckEvidence {
    let text = match text(tree, path) {
        Err(saw) => return saw,
        Ok(text) => text,
    };
    let mut headings: Vec<(usize, usize, &str)> = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if fence.is_none() && (1..=6).contains(&level) && line[level..].starts_with([' ', '\t']) {
            headings.push((number, level, line[level..].trim()));
        }
    }
    let Some(place) = headings.iter().position(|(_, _, title)| title.contains(heading)) else {
        let near: Vec<String> =
            headings.iter().take(3).map(|(_, _, title)| format!("`{}`", short(title))).collect();
        let near =
            if near.is_empty() { "it has none".to_owned() } else { format!("it has {}", near.join(", ")) };
        return uncertain(format!("`{}` has no heading with `{}`; {near}", path.as_str(), short(heading)));
    };
    let (from, level, title) = headings[place];
    let end = headings[place + 1..].iter().find(|(_, other, _)| *other <= level).map(|(number, ..)| *number);
    let lines: Vec<&str> = text.lines().skip(from + 1).take(end.unwrap_or(usize::MAX) - from - 1).collect();
    let found = lines.join("\n").contains(wanted);
    let how = if found { "contains" } else { "does not contain" };
    judged(found == there, format!("below `{}` `{}` {how} it", short(title), path.as_str()))
}

/// Whether a link leads there.
pub(super) fn symlink(tree: &AcceptanceTree, path: &RepoPath, target: &str) -> CheckEvidence {
    match tree.link(path.as_str()) {
        Err(why) => uncertain(why),
        Ok(None) => fail(format!("`{}` is no link", path.as_str())),
        Ok(Some(leads)) => {
            let same = leads.trim_end_matches('/') == target.trim_end_matches('/');
            judged(same, format!("`{}` leads to `{}`", path.as_str(), short(&leads)))
        }
    }
}

/// The beginning of a text of others, on one line.
pub(super) fn short(text: &str) -> String {
    landfall_trackers::tracker::shown(text, SHOWN_CHARS_MAX)
}
