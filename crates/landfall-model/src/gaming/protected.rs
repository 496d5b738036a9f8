//! Which changes touch a protected input, and exactly what they change in it.

use std::collections::{BTreeMap, BTreeSet};

use super::ecosystems::{SettingsFormat, loaded_by, may_be_loaded, section_rule};
use super::inputs::{InputScope, ProtectedInput};
use super::line_diff::{LineChange, diff_lines};
use super::makefile::{Makefile, PHONY_MARK};
use super::package_sources::{SourceFile, moved_dependencies, moved_packages};
use super::runner_marks::{ends_the_reader, shell_function};
use super::sections::{
    WORKSPACE_MARK, deno_lines, grown_list, only_adds_words, package_lines, settings_lines,
};
use super::{ChangedFile, is_protected};
pub use landfall_facts::evidence::ProtectedChange;

const LINES_MAX: usize = 40; // of one file, in a concern and in the journal; the diff has the rest
const LINE_MAX: usize = 2_000; // characters; a longer line is no line of a person

/// The lines as a person sees them. What is left out is said, and never the end of a line.
fn shown_lines(lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES_MAX);
    let mut shown: Vec<String> = lines.into_iter().take(LINES_MAX).map(|line| shown_line(&line)).collect();
    if more > 0 {
        shown.push(format!("… and {more} more lines"));
    }
    shown
}

fn shown_line(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= LINE_MAX {
        return line.to_owned();
    }
    let part = |chars: &[char]| chars.iter().collect::<String>();
    let (begin, end) = (part(&chars[..LINE_MAX / 2]), part(&chars[chars.len() - LINE_MAX / 2..]));
    format!("{begin} … {} characters left out … {end}", chars.len() - LINE_MAX)
}

/// Whether a change of this file may be a change of a protected input.
pub(super) fn is_watched(path: &str, inputs: &[ProtectedInput]) -> bool {
    input_of(path, inputs).is_some()
        || may_be_loaded(path)
        || section_rule(path).is_some()
        || is_package(path)
        || SourceFile::from_path(path).is_some()
}

/// Whether this file decides what the checks do.
pub(super) fn is_input(path: &str, inputs: &[ProtectedInput]) -> bool {
    is_protected(path) || input_of(path, inputs).is_some()
}

/// The protected inputs that a change touches. Settings of Landfall itself are a concern of their own.
#[must_use]
pub fn protected_changes(files: &[ChangedFile], inputs: &[ProtectedInput]) -> Vec<ProtectedChange> {
    let changed = files.iter().filter(|file| !is_protected(&file.path));
    changed.filter_map(|file| protected_change(file, inputs)).collect()
}

fn protected_change(file: &ChangedFile, inputs: &[ProtectedInput]) -> Option<ProtectedChange> {
    let change = |used_by: &str, lines: Vec<String>| {
        let lines = shown_lines(lines);
        ProtectedChange { path: file.path.clone(), used_by: used_by.to_owned(), lines }
    };
    if let Some(input) = input_of(&file.path, inputs) {
        let lines = match &input.scope {
            InputScope::Verbatim => changed_lines(file, all_lines).or_else(|| Some(Vec::new())),
            InputScope::WholeFile => changed_lines(file, code_lines),
            InputScope::TestScript => changed_test_script(file),
            InputScope::Recipes => changed_lines(file, code_lines).filter(|_| !adds_recipes(file)),
            InputScope::MakeTargets(targets) => {
                let lines = changed_lines(file, |text| Makefile::parse(text).lines_for_targets(targets));
                lines.filter(|lines| !is_more_of_the_same(lines, file, targets))
            }
            InputScope::Sourced => changed_lines(file, code_lines).filter(|lines| {
                let mut added = lines.iter().filter_map(|line| line.strip_prefix('+'));
                added.any(ends_the_reader)
            }),
            InputScope::Absent => file.created.then(|| changed_lines(file, code_lines).unwrap_or_default()),
            InputScope::PackageScripts(_) => {
                let scripts = package_scripts_of(&file.path, inputs);
                match is_package(&file.path) {
                    true => changed_package(file, &scripts),
                    false => changed_lines(file, |text| deno_lines(text, &scripts)),
                }
            }
            InputScope::Sections(_) => changed_sections(file, &sections_of(&file.path, inputs)),
        };
        return lines.map(|lines| change(&input.used_by, lines));
    }
    if let Some(ecosystem) = loaded_by(file) {
        return changed_lines(file, code_lines).map(|lines| change(ecosystem.name, lines));
    }
    let lines = if section_rule(&file.path).is_some() {
        changed_sections(file, &BTreeSet::new())
    } else if is_package(&file.path) {
        changed_package(file, &BTreeSet::new())
    } else {
        SourceFile::from_path(&file.path).and_then(|kind| changed_sources(file, kind))
    };
    lines.filter(|lines| !lines.is_empty()).map(|lines| change("the test runner", lines))
}

/// What changes in the sections that count. Lists that only grow weaken nothing.
fn changed_sections(file: &ChangedFile, also: &BTreeSet<String>) -> Option<Vec<String>> {
    let rule = section_rule(&file.path)?;
    let nothing = BTreeSet::new();
    // A new package of Cargo has lints of its own; elsewhere a new file may take the place of one above it.
    let also = if file.created && rule.file == "Cargo.toml" { &nothing } else { also };
    // No line of the sections may change where a dependency does.
    let mut lines = changed_lines(file, |text| settings_lines(text, rule, also)).unwrap_or_default();
    let grows = |line: &String| rule.growing.iter().any(|key| line.starts_with(&format!("+{key}: ")));
    lines.retain(|line| !grows(line));
    if rule.format == SettingsFormat::Toml
        && let (Some(before), Some(after)) = (&file.before, &file.after)
    {
        let moved = moved_dependencies(before, after).into_iter();
        let moved: Vec<String> = moved.filter(|line| !lines.contains(line)).collect();
        lines.extend(moved);
    }
    (!lines.is_empty()).then_some(lines)
}

/// What changes in the parts of a package.json that count. Packages of the repository that come weaken nothing.
fn changed_package(file: &ChangedFile, scripts: &BTreeSet<String>) -> Option<Vec<String>> {
    let mut lines = changed_lines(file, |text| package_lines(text, scripts))?;
    let comes = |line: &String| {
        let folder = line.strip_prefix('+').and_then(|line| line.strip_prefix(WORKSPACE_MARK));
        folder.is_some_and(|folder| !folder.contains('!'))
    };
    lines.retain(|line| !comes(line));
    (!lines.is_empty()).then_some(lines)
}

/// What changes in where packages come from, or in variables that steer a runner.
fn changed_sources(file: &ChangedFile, kind: SourceFile) -> Option<Vec<String>> {
    let (before, after) =
        (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
    match kind {
        // A large one is not read, and its lines are no news.
        SourceFile::Lock if file.after.is_none() => None,
        SourceFile::Shrinkwrap if file.created => changed_lines(file, code_lines),
        SourceFile::Lock | SourceFile::Shrinkwrap => Some(moved_packages(before, after)),
        SourceFile::Requirements
        | SourceFile::PnpmWorkspace
        | SourceFile::SetupProgram
        | SourceFile::Variables => {
            let mut lines = changed_lines(file, code_lines)?;
            lines.retain(|line| {
                let code = line.trim_start_matches(['−', '+']);
                // A package that comes to a list of them weakens nothing.
                let comes = kind == SourceFile::PnpmWorkspace
                    && line.starts_with('+')
                    && code.trim_start().starts_with("- ")
                    && !code.contains('!');
                kind.is_source_line(code) && !comes
            });
            Some(lines)
        }
    }
}

/// The sections of a shared file that count because a tool of the check reads them.
fn sections_of(path: &str, inputs: &[ProtectedInput]) -> BTreeSet<String> {
    let scopes = inputs.iter().filter(|input| matches_pattern(&input.path, path)).filter_map(|input| {
        match &input.scope {
            InputScope::Sections(sections) => Some(sections),
            _ => None,
        }
    });
    scopes.flatten().cloned().collect()
}

/// Whether a file with this path is one of the inputs.
#[must_use]
pub fn is_input_path(path: &str, inputs: &[ProtectedInput]) -> bool {
    inputs.iter().any(|input| input.path == path || matches_pattern(&input.path, path))
}

/// The input that this path is, or holds: a link in place of its folder takes the file elsewhere.
fn input_of<'a>(path: &str, inputs: &'a [ProtectedInput]) -> Option<&'a ProtectedInput> {
    let holds = |input: &&ProtectedInput| {
        input.path.get(..path.len()).is_some_and(|start| start.eq_ignore_ascii_case(path))
            && input.path[path.len()..].starts_with('/')
    };
    let is_this = |input: &&ProtectedInput| input.path.eq_ignore_ascii_case(path);
    let by_pattern = |input: &&ProtectedInput| matches_pattern(&input.path, path);
    let found = inputs.iter().find(|input| input.path == path).or_else(|| inputs.iter().find(is_this));
    let found = found.or_else(|| inputs.iter().find(by_pattern));
    found.or_else(|| inputs.iter().find(holds))
}

/// The scripts of a package.json that count: its own, and those of all packages.
fn package_scripts_of(path: &str, inputs: &[ProtectedInput]) -> BTreeSet<String> {
    let is_of =
        |input: &&ProtectedInput| input.path.eq_ignore_ascii_case(path) || matches_pattern(&input.path, path);
    let scopes = inputs.iter().filter(is_of).filter_map(|input| match &input.scope {
        InputScope::PackageScripts(scripts) => Some(scripts),
        _ => None,
    });
    scopes.flatten().cloned().collect()
}

/// Whether a path is what a pattern with `*` says.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.to_ascii_lowercase(), path.to_ascii_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else { return false };
    let Some(mut left) = path.strip_prefix(first) else { return false };
    let parts: Vec<&str> = rest.split('*').collect();
    let Some((last, middle)) = parts.split_last() else { return true };
    for part in middle {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

fn is_package(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case("package.json"))
}

/// The lines that do something. A comment cannot weaken a check; the line that became one is gone. After a line that is
/// continued, a comment or an empty line ends the command.
fn code_lines(text: &str) -> Vec<String> {
    let mut is_continued = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let code = line.trim();
        let is_comment =
            code.is_empty() || (code.starts_with('#') && !line.starts_with("#!") && !code.starts_with("#["));
        let is_cut = is_comment && is_continued;
        is_continued = line.ends_with('\\');
        // Behind a backslash, blanks count: they end the line.
        let kept = line.trim_end();
        let kept = if kept.ends_with('\\') { line } else { kept };
        if !is_comment || is_cut {
            lines.push(kept.to_owned());
        }
    }
    lines
}

/// What differs between the protected parts; none if they are the same.
fn changed_lines(file: &ChangedFile, part: impl Fn(&str) -> Vec<String>) -> Option<Vec<String>> {
    let is_unread = (!file.created && file.before.is_none()) || (!file.deleted && file.after.is_none());
    if is_unread {
        // Too large, a link, or no text: all that changed counts.
        let mut lines: Vec<String> = file.removed.iter().map(|line| format!("−{line}")).collect();
        lines.extend(file.added.iter().map(|line| format!("+{line}")));
        return Some(lines);
    }
    let part_of = |text: &Option<String>| text.as_deref().map(&part).unwrap_or_default();
    let (before, after) = (part_of(&file.before), part_of(&file.after));
    if before == after {
        return None;
    }
    let signed = diff_lines(&before, &after).into_iter().map(|change| match change {
        LineChange::Removed(at) => format!("−{}", before[at]),
        LineChange::Added(at) => format!("+{}", after[at]),
    });
    Some(signed.collect())
}

fn all_lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Lists of needed files that only grow, and targets that are made always now: they weaken nothing.
fn is_more_of_the_same(lines: &[String], file: &ChangedFile, targets: &BTreeSet<String>) -> bool {
    let signed = |sign: char| lines.iter().filter_map(move |line| line.strip_prefix(sign));
    let removed: Vec<&str> = signed('−').collect();
    let added: Vec<&str> = signed('+').filter(|line| !line.starts_with(PHONY_MARK)).collect();
    let makefile = Makefile::parse(file.before.as_deref().unwrap_or_default());
    let grows = |old: &str, new: &str| {
        grown_list(old, new).is_some_and(|name| makefile.is_list_of_needs(targets, name))
    };
    !file.created
        && removed.len() == added.len()
        && removed.iter().zip(&added).all(|(old, new)| grows(old, new))
}

/// What changes in a script that holds tests, besides tests that come.
fn changed_test_script(file: &ChangedFile) -> Option<Vec<String>> {
    let lines = changed_lines(file, code_lines)?;
    let (Some(before), Some(after)) = (&file.before, &file.after) else { return Some(lines) };
    let (before, after) = (code_lines(before), code_lines(after));
    let mut kept = before.iter().peekable();
    let mut added = Vec::new();
    for line in &after {
        if kept.peek().is_some_and(|old| *old == line || is_longer_loop(old, line)) {
            kept.next();
        } else {
            added.push(line);
        }
    }
    let all_kept = kept.next().is_none();
    let names: Vec<&str> = before.iter().filter_map(|line| given_name(line)).collect();
    let is_harmless =
        |line: &&String| !may_end_early(line) && given_name(line).is_none_or(|name| !names.contains(&name));
    (!all_kept || !added.iter().all(is_harmless)).then_some(lines)
}

/// Whether a loop over names has the same names and more.
fn is_longer_loop(old: &str, new: &str) -> bool {
    let parts = |line: &str| -> Option<(String, String, String)> {
        let (name, rest) = line.trim().strip_prefix("for ")?.split_once(" in ")?;
        let (words, rest) = rest.split_once(';').unwrap_or((rest, ""));
        Some((name.to_owned(), words.to_owned(), rest.trim().to_owned()))
    };
    let Some(((name, words, rest), (new_name, new_words, new_rest))) = parts(old).zip(parts(new)) else {
        return false;
    };
    (name, rest) == (new_name, new_rest) && only_adds_words(&words, &new_words)
}

/// Whether a justfile has all that it had, in recipes of other names only more.
fn adds_recipes(file: &ChangedFile) -> bool {
    let (Some(before), Some(after)) = (&file.before, &file.after) else { return false };
    let (before, after) = (parse_recipes(before), parse_recipes(after));
    // The first one is run if none is named.
    let first = |recipes: &[(String, Vec<String>)]| recipes.get(1).map(|(name, _)| name.clone());
    let is_same_first = first(&before) == first(&after);
    let by_name = |recipes: Vec<(String, Vec<String>)>| {
        let mut named: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for (name, lines) in recipes {
            named.entry(name).or_default().push(lines);
        }
        named
    };
    let (before, after) = (by_name(before), by_name(after));
    is_same_first && before.iter().all(|(name, lines)| after.get(name) == Some(lines))
}

/// The recipes of a justfile by name; the first entry, without a name, has the lines outside of them.
fn parse_recipes(text: &str) -> Vec<(String, Vec<String>)> {
    const OUTSIDE: [&str; 6] = ["set ", "export ", "alias ", "import ", "import? ", "mod "];
    let mut found = vec![(String::new(), Vec::new())];
    let mut attributes = Vec::new();
    for line in code_lines(text) {
        let is_inside = line.starts_with([' ', '\t']);
        let is_outside = line.contains(":=") || OUTSIDE.iter().any(|word| line.starts_with(word));
        if is_inside {
            found.last_mut().expect("the first is always there").1.push(line);
        } else if line.starts_with('[') {
            attributes.push(line);
        } else if !is_outside && let Some((head, _)) = line.split_once(':') {
            let name = head.trim_start_matches('@').split_whitespace().next().unwrap_or_default().to_owned();
            let mut lines = std::mem::take(&mut attributes);
            lines.push(line);
            found.push((name, lines));
        } else {
            found[0].1.push(line);
        }
    }
    found
}

/// The variable or function that a line of a script sets. To set one again may undo a failure.
fn given_name(line: &str) -> Option<&str> {
    let code = line.trim();
    let variable = code.split_once('=').map(|(name, _)| name);
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    variable.filter(is_name).or_else(|| shell_function(code))
}

/// Whether an added line could keep the lines after it, or around it, from failing.
fn may_end_early(line: &str) -> bool {
    const MARKS: [&str; 13] = [
        "|| true", "|| :", "set +e", "trap ", "exec ", "alias ", "eval ", "<<", "exit 0", "return 0",
        "kill ", "PATH=", "if false",
    ];
    let code = line.trim().trim_end_matches(';');
    let last = code.rsplit([';', '{', '|', '&', ' ']).next().unwrap_or_default().trim();
    let ends_well = matches!(last, "exit" | "return" | "true" | ":" | "break");
    let is_odd_function = shell_function(code).is_some_and(|name| !name.contains("test"));
    ends_well || is_odd_function || MARKS.iter().any(|mark| code.contains(mark))
}
