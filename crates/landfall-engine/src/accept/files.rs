//! Checks that only read files.

use landfall_model::acceptance::RepoPath;

use super::json_path;
use super::tree::{AcceptanceTree, TreePathContent, glob_matches, glob_to_regex};
use super::{CheckEvidence, fail_with_evidence, pass_or_fail, pass_with_evidence, uncertain_because};

const PATTERN_BYTES_MAX: usize = 1 << 20; // of memory; a pattern is a line
const SHOWN_CHARS_MAX: usize = 120;

/// Whether a file is there.
pub(super) fn check_file_presence(tree: &AcceptanceTree, path: &RepoPath, there: bool) -> CheckEvidence {
    match tree.resolve_path(path.as_str()) {
        Err(why) => uncertain_because(why),
        Ok(TreePathContent::File(_)) => pass_or_fail(there, format!("`{}` is there", path.as_str())),
        Ok(TreePathContent::Nothing) => pass_or_fail(!there, format!("there is no `{}`", path.as_str())),
        Ok(TreePathContent::Folder | TreePathContent::Other) => {
            pass_or_fail(!there, format!("`{}` is no file", path.as_str()))
        }
    }
}

/// Whether a folder is there.
pub(super) fn check_folder_presence(tree: &AcceptanceTree, path: &RepoPath, there: bool) -> CheckEvidence {
    match tree.resolve_path(path.as_str()) {
        Err(why) => uncertain_because(why),
        Ok(TreePathContent::Folder) => {
            pass_or_fail(there, format!("the folder `{}` is there", path.as_str()))
        }
        Ok(TreePathContent::Nothing) => pass_or_fail(!there, format!("there is no `{}`", path.as_str())),
        Ok(TreePathContent::File(_) | TreePathContent::Other) => {
            pass_or_fail(!there, format!("`{}` is no folder", path.as_str()))
        }
    }
}

/// Whether git knows it.
pub(super) fn check_path_committed(tree: &AcceptanceTree, path: &RepoPath) -> CheckEvidence {
    match tree.is_committed(path.as_str()) {
        Err(why) => uncertain_because(why),
        Ok(true) => pass_with_evidence(format!("git knows `{}`", path.as_str())),
        Ok(false) => fail_with_evidence(format!("git does not know `{}`", path.as_str())),
    }
}

/// The text of a file, or what is said instead.
fn read_text_file(tree: &AcceptanceTree, path: &RepoPath) -> Result<String, CheckEvidence> {
    match tree.read_text(path.as_str()) {
        Err(why) => Err(uncertain_because(why)),
        Ok(None) => Err(fail_with_evidence(format!("there is no `{}`", path.as_str()))),
        Ok(Some(text)) => Ok(text),
    }
}

/// Whether a text is in a file. A file that is not there holds nothing, but that it does not hold something is no news.
pub(super) fn check_file_contains(
    tree: &AcceptanceTree,
    path: &RepoPath,
    wanted: &str,
    there: bool,
) -> CheckEvidence {
    match read_text_file(tree, path) {
        Err(saw) => saw,
        Ok(text) => match line_of(&text, wanted) {
            Some(line) => pass_or_fail(there, format!("`{}` line {line}", path.as_str())),
            None => pass_or_fail(
                !there,
                format!("`{}` does not contain `{}`", path.as_str(), shorten_to_line(wanted)),
            ),
        },
    }
}

fn line_of(text: &str, wanted: &str) -> Option<usize> {
    text.find(wanted).map(|at| text[..at].matches('\n').count() + 1)
}

/// Whether a text is in none of the files.
pub(super) fn none_contains(tree: &AcceptanceTree, pattern: &RepoPath, wanted: &str) -> CheckEvidence {
    let (matcher, files) =
        match glob_to_regex(pattern.as_str()).and_then(|matcher| Ok((matcher, tree.list_files()?))) {
            Ok(both) => both,
            Err(why) => return uncertain_because(why),
        };
    let mut count = 0;
    for path in files.iter().filter(|path| glob_matches(&matcher, path)) {
        count += 1;
        match tree.read_text(path) {
            Err(why) => return uncertain_because(why),
            Ok(text) => {
                if let Some(line) = text.and_then(|text| line_of(&text, wanted)) {
                    return fail_with_evidence(format!("`{path}` line {line}"));
                }
            }
        }
    }
    pass_with_evidence(format!("in none of {count} files that match `{}`", pattern.as_str()))
}

/// A regular expression of others, in bounds. The engine takes time in proportion to the text, whatever the pattern.
pub(super) fn compile_pattern(text: &str) -> Result<regex::Regex, String> {
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
pub(super) fn check_line_matches(tree: &AcceptanceTree, wanted: &str, path: &RepoPath) -> CheckEvidence {
    let pattern = match compile_pattern(wanted) {
        Ok(pattern) => pattern,
        Err(why) => {
            return uncertain_because(format!(
                "the pattern `{}` makes no sense: {why}",
                shorten_to_line(wanted)
            ));
        }
    };
    match read_text_file(tree, path) {
        Err(saw) => saw,
        Ok(text) => match text.lines().position(|line| pattern.is_match(line)) {
            Some(line) => pass_with_evidence(format!("`{}` line {}", path.as_str(), line + 1)),
            None => fail_with_evidence(format!("no line of `{}` matches", path.as_str())),
        },
    }
}

/// Whether a field of a JSON file has a value.
pub(super) fn json_field(tree: &AcceptanceTree, path: &RepoPath, field: &str, value: &str) -> CheckEvidence {
    match read_text_file(tree, path) {
        Err(saw) => saw,
        Ok(text) => check_json_value(&text, field, value, &format!("`{}`", path.as_str())),
    }
}

/// Whether a path of a JSON text has a value.
pub(super) fn check_json_value(text: &str, path: &str, value: &str, what: &str) -> CheckEvidence {
    let query = match json_path::parse_json_path(path) {
        Ok(query) => query,
        Err(why) => return uncertain_because(why),
    };
    let root: serde_json::Value = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => return fail_with_evidence(format!("{what} is no JSON: {error}")),
    };
    match query.run(&root) {
        Err(why) => fail_with_evidence(format!("{what}: {why}")),
        Ok(found) => {
            let shown = json_path::format_values_raw(&found);
            pass_or_fail(
                shown == value,
                format!("`{}` is `{}`", shorten_to_line(path), shorten_to_line(&shown)),
            )
        }
    }
}

/// Whether a text is below a heading.
pub(super) fn check_section_text(
    tree: &AcceptanceTree,
    path: &RepoPath,
    heading: &str,
    wanted: &str,
    there: bool,
) -> CheckEvidence {
    let text = match read_text_file(tree, path) {
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
            headings.iter().take(3).map(|(_, _, title)| format!("`{}`", shorten_to_line(title))).collect();
        let near =
            if near.is_empty() { "it has none".to_owned() } else { format!("it has {}", near.join(", ")) };
        return uncertain_because(format!(
            "`{}` has no heading with `{}`; {near}",
            path.as_str(),
            shorten_to_line(heading)
        ));
    };
    let (from, level, title) = headings[place];
    let end = headings[place + 1..].iter().find(|(_, other, _)| *other <= level).map(|(number, ..)| *number);
    let lines: Vec<&str> = text.lines().skip(from + 1).take(end.unwrap_or(usize::MAX) - from - 1).collect();
    let found = lines.join("\n").contains(wanted);
    let how = if found { "contains" } else { "does not contain" };
    pass_or_fail(found == there, format!("below `{}` `{}` {how} it", shorten_to_line(title), path.as_str()))
}

/// Whether a link leads there.
pub(super) fn check_symlink_target(tree: &AcceptanceTree, path: &RepoPath, target: &str) -> CheckEvidence {
    match tree.read_link_target(path.as_str()) {
        Err(why) => uncertain_because(why),
        Ok(None) => fail_with_evidence(format!("`{}` is no link", path.as_str())),
        Ok(Some(leads)) => {
            let same = leads.trim_end_matches('/') == target.trim_end_matches('/');
            pass_or_fail(same, format!("`{}` leads to `{}`", path.as_str(), shorten_to_line(&leads)))
        }
    }
}

/// The beginning of a text of others, on one line.
pub(super) fn shorten_to_line(text: &str) -> String {
    landfall_trackers::tracker::escape_beginning(text, SHOWN_CHARS_MAX)
}
