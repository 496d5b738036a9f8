//! The parts of shared settings files that decide about the checks: the rest of them may change unseen.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ecosystems::{PACKAGE_KEYS, SectionRule, SettingsFormat};
use super::json_text::{object_members, parse_json_string};

/// The lines of a settings file that count by a rule of the table, and those of these sections.
pub(super) fn settings_lines(text: &str, rule: &SectionRule, also: &BTreeSet<String>) -> Vec<String> {
    match rule.format {
        SettingsFormat::Toml => toml_lines(text, rule, also),
        SettingsFormat::Ini => ini_lines(text, rule, also),
        SettingsFormat::GoMod => go_mod_lines(text, rule),
    }
}

/// A line for each key that counts, with its whole name before it. A text that is no TOML counts as a whole.
fn toml_lines(text: &str, rule: &SectionRule, also: &BTreeSet<String>) -> Vec<String> {
    let Ok(table) = DeTable::parse(text) else {
        return text.lines().map(|line| line.trim().to_owned()).collect();
    };
    let mut lines = Vec::new();
    let mut pending: Vec<(String, &Spanned<DeValue<'_>>)> =
        table.get_ref().iter().rev().map(|(key, value)| (key.get_ref().to_string(), value)).collect();
    while let Some((key, value)) = pending.pop() {
        let is_in = |section: &str| {
            key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let counts = rule.sections.iter().any(|section| is_in(section))
            || also.iter().any(|section| is_in(section))
            || rule.keys.contains(&key.as_str())
            || rule.inner_keys.iter().any(|(section, last)| {
                key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
                    && key.rsplit('.').next() == Some(*last)
            });
        let may_count = || rule.inner_keys.iter().any(|(section, _)| *section == key);
        let written = || text[value.span()].split_whitespace().collect::<Vec<_>>().join(" ");
        match value.get_ref() {
            DeValue::Array(words) if rule.growing.contains(&key.as_str()) => {
                lines.extend(words.iter().map(|word| format!("{key}: {}", text[word.span()].trim())));
            }
            DeValue::Table(inner) if is_other_library(&key, inner) => {
                lines.push(format!("{key} = {}", written()));
            }
            DeValue::Table(inner) => {
                if counts && inner.is_empty() {
                    lines.push(key.clone());
                }
                let inside = inner.iter().rev();
                pending.extend(inside.map(|(name, value)| (format!("{key}.{}", name.get_ref()), value)));
            }
            // `[[test]]`: each is a table of its own.
            DeValue::Array(tables)
                if (counts || may_count()) && tables.iter().all(|table| table.get_ref().is_table()) =>
            {
                pending.extend(
                    tables.iter().enumerate().rev().map(|(at, table)| (format!("{key}.{at}"), table)),
                );
            }
            _ if counts => lines.push(format!("{key} = {}", written())),
            DeValue::Array(words) if is_list_of_requirements(&key) => {
                let words = words.iter().map(|word| text[word.span()].trim());
                let elsewhere = words.filter(|word| word.contains("@ ") || word.contains("://"));
                lines.extend(elsewhere.map(|word| format!("{key}: {word}")));
            }
            _ => {}
        }
    }
    lines
}

/// Lists of a pyproject.toml in which a requirement may name its own place: `pytest @ file:tools/pytest`.
fn is_list_of_requirements(key: &str) -> bool {
    key == "build-system.requires"
        || key.ends_with("dependencies")
        || key.starts_with("project.optional-dependencies.")
        || key.starts_with("dependency-groups.")
}

/// Whether a dependency puts another library in place of one that asserts.
fn is_other_library(key: &str, dependency: &DeTable<'_>) -> bool {
    const LIBRARIES: [&str; 10] = [
        "proptest",
        "quickcheck",
        "rstest",
        "insta",
        "googletest",
        "test-case",
        "expect-test",
        "trybuild",
        "k9",
        "snapbox",
    ];
    let Some((table, name)) = key.rsplit_once('.') else { return false };
    let is_library = name.contains("assert") || name.starts_with("pytest") || LIBRARIES.contains(&name);
    table.ends_with("dependencies")
        && is_library
        && ["path", "git", "package", "registry"].iter().any(|from| dependency.contains_key(*from))
}

fn ini_lines(text: &str, rule: &SectionRule, also: &BTreeSet<String>) -> Vec<String> {
    let mut counts = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']').trim();
            let begins = |section: &str| {
                header
                    .strip_prefix(section)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '.', '-']))
            };
            counts = rule.sections.iter().any(|section| begins(section))
                || also.iter().any(|section| begins(section));
        }
        if counts {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The directives that count, those of a block with their word before them.
fn go_mod_lines(text: &str, rule: &SectionRule) -> Vec<String> {
    let mut block: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = code.split_whitespace().collect();
        match (block, words.as_slice()) {
            (_, []) => {}
            (Some(_), [")"]) => block = None,
            (Some(word), words) if rule.keys.contains(&word) => {
                lines.push(format!("{word} {}", words.join(" ")))
            }
            (Some(_), _) => {}
            (None, [word, "("]) => block = Some(word),
            (None, [_, "()"]) => {}
            (None, words) => {
                let word = words[0].trim_end_matches('(');
                if words[0].ends_with('(') {
                    block = Some(word);
                } else if rule.keys.contains(&word) {
                    lines.push(words.join(" "));
                }
            }
        }
    }
    lines
}

/// The scripts of a package.json that these names run, and its settings for runners, a line each. A text that is no
/// JSON object counts as a whole.
pub(super) fn package_lines(text: &str, scripts: &BTreeSet<String>) -> Vec<String> {
    let Some(package) = object_members(text) else {
        return text.lines().map(|line| line.trim().to_owned()).collect();
    };
    let mut lines = Vec::new();
    for (name, line) in package_scripts(text) {
        if scripts.iter().any(|wanted| is_script(wanted, &name)) {
            lines.push(format!("\"{name}\": \"{line}\""));
        }
    }
    for (name, value) in &package {
        if PACKAGE_KEYS.contains(&name.as_str()) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("\"{name}\": {value}"));
        }
    }
    // What goes from the list is not checked any more.
    for (_, value) in package.iter().filter(|(name, _)| name == "workspaces") {
        let packages = object_members(value).into_iter().flatten().find(|(name, _)| name == "packages");
        let list = packages.map_or(*value, |(_, list)| list);
        lines.extend(split_json_list(list).into_iter().map(|folder| format!("{WORKSPACE_MARK}{folder}")));
    }
    for (name, value) in package.iter().filter(|(name, _)| matches!(name.as_str(), "pnpm" | "packageManager"))
    {
        const ELSEWHERE: [&str; 5] = ["link:", "file:", "portal:", "://", "patchedDependencies"];
        if ELSEWHERE.iter().any(|mark| value.contains(mark)) {
            lines.push(format!("\"{name}\": {}", value.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    // A package that does not come from the registry under its own name can be any program.
    let tables = ["dependencies", "devDependencies", "optionalDependencies", "overrides", "resolutions"];
    for (_, table) in package.iter().filter(|(name, _)| tables.contains(&name.as_str())) {
        for (name, from) in object_members(table).unwrap_or_default() {
            let is_elsewhere = |from: &String| {
                let is_own = from.starts_with("workspace:") || from.starts_with("catalog:");
                !is_own && from.contains([':', '/'])
            };
            if parse_json_string(from).as_ref().is_some_and(is_elsewhere) {
                lines.push(format!("\"{name}\": {from}"));
            }
        }
    }
    lines
}

/// How a line for a package of the repository begins.
pub(super) const WORKSPACE_MARK: &str = "\"workspaces\": ";

/// The strings of a JSON list as they are written.
fn split_json_list(list: &str) -> Vec<&str> {
    let inside = list.trim().trim_start_matches('[').trim_end_matches(']');
    inside.split(',').map(str::trim).filter(|element| !element.is_empty()).collect()
}

/// Of a deno.json the tasks that these names run, its settings for tests and checks, and modules that come from files of the
/// repository, a line each.
pub(super) fn deno_lines(text: &str, tasks: &BTreeSet<String>) -> Vec<String> {
    const KEYS: [&str; 6] = ["test", "lint", "fmt", "importMap", "exclude", "nodeModulesDir"];
    let Some(settings) = object_members(text) else {
        return text.lines().map(|line| line.trim().to_owned()).collect();
    };
    let used = package_scripts(text).into_iter().filter(|(name, _)| tasks.contains(name));
    let mut lines: Vec<String> = used.map(|(name, line)| format!("\"{name}\": \"{line}\"")).collect();
    for (name, value) in &settings {
        if KEYS.contains(&name.as_str()) {
            lines.push(format!("\"{name}\": {}", value.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    let imports = settings.iter().filter(|(name, _)| matches!(name.as_str(), "imports" | "scopes"));
    for (name, from) in imports.flat_map(|(_, table)| object_members(table).unwrap_or_default()) {
        let registries = ["\"npm:", "\"jsr:", "\"node:", "\"https:"];
        if !registries.iter().any(|registry| from.starts_with(registry)) {
            lines.push(format!("\"{name}\": {from}"));
        }
    }
    lines
}

/// Whether a name of a script, in which `*` stands for anything, is this one.
pub(super) fn is_script(wanted: &str, name: &str) -> bool {
    match wanted.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => wanted == name,
    }
}

/// The scripts of a package.json, or the tasks of a deno.json. Of two with one name the later one counts, as in npm.
pub(super) fn package_scripts(text: &str) -> BTreeMap<String, String> {
    let is_table = |name: &str| matches!(name, "scripts" | "tasks");
    let tables = object_members(text).unwrap_or_default().into_iter().filter(|(name, _)| is_table(name));
    let scripts = tables.flat_map(|(_, table)| object_members(table).unwrap_or_default());
    // A task of Deno may be an object.
    let line_of = |value: &str| {
        let inside = object_members(value).into_iter().flatten().find(|(name, _)| name == "command");
        parse_json_string(inside.map_or(value, |(_, line)| line))
    };
    scripts.filter_map(|(name, value)| Some((name, line_of(value)?))).collect()
}

/// The values of a package.json that configure runners, as one text.
pub(super) fn runner_settings(text: &str) -> String {
    let package = object_members(text).unwrap_or_default();
    let values = package.iter().filter(|(name, _)| PACKAGE_KEYS.contains(&name.as_str()));
    values.map(|(_, value)| format!("{value}\n")).collect()
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
