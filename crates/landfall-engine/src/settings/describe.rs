//! Every key of a settings file, with what is in force and where that comes from: for whoever shows settings.

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::keys::{all_unknown, resolve_reference, settings_schema};
use super::reference::{describe_value, description_text, in_order, keys_of, type_name};
use super::resolve::Settings;

/// A settings file, key by key.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsDescription {
    /// The tables, in the order of the reference.
    pub sections: Vec<SettingsTable>,
    /// What is wrong with it, in the order of the file.
    pub wrong: Vec<SettingsFileProblem>,
    /// Whether it can be used.
    pub usable: bool,
}

/// A table of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsTable {
    /// Its name as it stands in the file.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Its keys.
    pub keys: Vec<SettingDescription>,
}

/// One key.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingDescription {
    /// Its name in full.
    pub name: String,
    /// What it says.
    pub about: String,
    /// What it takes.
    pub takes: String,
    /// What is in force.
    pub value: Value,
    /// What is in force when nobody says.
    pub default: Value,
    /// The line that sets it, from 1.
    pub line: Option<usize>,
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFileProblem {
    /// In words.
    pub text: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// The key, if it is not known.
    pub unknown: Option<String>,
    /// The nearest known one.
    pub nearest: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The whole text with this mended.
    pub mended: Option<String>,
}

impl Settings {
    /// What is in `text`, key by key. Messages call the file `file`.
    #[must_use]
    pub fn describe_text(text: &str, file: &str) -> SettingsDescription {
        let parsed = Self::parse(text, file);
        let (table, _) = DeTable::parse_recoverable(text);
        let table = table.get_ref();
        let mut wrong: Vec<SettingsFileProblem> = all_unknown(table)
            .into_iter()
            .map(|unknown| {
                let (line, column) = line_and_column(text, unknown.span.start);
                let mended = unknown.near.as_ref().map(|near| {
                    let mut mended = text.to_owned();
                    mended.replace_range(unknown.span.clone(), near);
                    mended
                });
                SettingsFileProblem {
                    text: unknown.message,
                    line: Some(line),
                    column: Some(column),
                    unknown: Some(unknown.word),
                    nearest: unknown.near,
                    hint: Some(unknown.hint),
                    mended,
                }
            })
            .collect();
        if let Err(problem) = &parsed
            && !wrong.iter().any(|it| it.text == problem.message)
        {
            wrong.push(SettingsFileProblem {
                text: problem.message.clone(),
                line: problem.line,
                column: problem.column,
                unknown: None,
                nearest: None,
                hint: problem.hint.clone(),
                mended: None,
            });
        }
        wrong.sort_by_key(|it| (it.line, it.column));
        SettingsDescription { sections: describe_sections(text, table), wrong, usable: parsed.is_ok() }
    }
}

fn describe_sections(text: &str, table: &DeTable<'_>) -> Vec<SettingsTable> {
    let root = settings_schema();
    let mut found = Vec::new();
    for (name, node) in in_order("RawSettings", keys_of(root)) {
        let own = resolve_reference(root, node);
        let about = description_text(node);
        let set =
            table.iter().find(|(key, _)| key.get_ref() == name.as_str()).map(|(_, value)| value.get_ref());
        let named = own.get("additionalProperties").filter(|any| any.is_object());
        match (named, own.get("items")) {
            (Some(any), _) => {
                let tables: Vec<_> =
                    set.and_then(DeValue::as_table).into_iter().flat_map(DeTable::iter).collect();
                for (key, value) in &tables {
                    let full = format!("{name}.{}", key.get_ref());
                    found.push(describe_section(text, &full, &about, any, value.get_ref().as_table()));
                }
                if tables.is_empty() {
                    found.push(describe_section(text, &format!("{name}.NAME"), &about, any, None));
                }
            }
            (None, Some(items)) => {
                let tables: Vec<&DeTable<'_>> = match set {
                    Some(DeValue::Array(items)) => {
                        items.iter().filter_map(|it| it.get_ref().as_table()).collect()
                    }
                    _ => Vec::new(),
                };
                for (at, one) in tables.iter().enumerate() {
                    found.push(describe_section(
                        text,
                        &format!("{name}.{}", at + 1),
                        &about,
                        items,
                        Some(one),
                    ));
                }
                if tables.is_empty() {
                    found.push(describe_section(text, name, &about, items, None));
                }
            }
            (None, None) => {
                found.push(describe_section(text, name, &about, node, set.and_then(DeValue::as_table)))
            }
        }
    }
    found
}

fn describe_section(
    text: &str,
    name: &str,
    about: &str,
    node: &Value,
    set: Option<&DeTable<'_>>,
) -> SettingsTable {
    let table = resolve_reference(settings_schema(), node);
    let mut keys = Vec::new();
    for (key, node) in in_order(&type_name(node), keys_of(table)) {
        let found = set.and_then(|set| set.iter().find(|(word, _)| word.get_ref() == key.as_str()));
        let default = node.get("default").cloned().unwrap_or(Value::Null);
        keys.push(SettingDescription {
            name: format!("{name}.{key}"),
            about: description_text(node),
            takes: describe_value(node),
            value: found.map_or_else(|| default.clone(), |(_, value)| toml_to_json(value.get_ref())),
            default,
            line: found.map(|(word, _)| line_and_column(text, word.span().start).0),
        });
    }
    SettingsTable { name: name.to_owned(), about: about.to_owned(), keys }
}

/// The line and column of a byte, from 1.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn toml_to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(it) => Value::from(*it),
        DeValue::Datetime(moment) => Value::from(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| toml_to_json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let pairs =
                table.iter().map(|(key, value)| (key.get_ref().to_string(), toml_to_json(value.get_ref())));
            Value::Object(pairs.collect::<Map<String, Value>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_setting<'a>(described: &'a SettingsDescription, name: &str) -> &'a SettingDescription {
        let all = described.sections.iter().flat_map(|section| &section.keys);
        all.clone()
            .find(|key| key.name == name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", all.map(|key| &key.name).collect::<Vec<_>>()))
    }

    #[test]
    fn a_key_says_what_is_in_force_and_which_line_says_so() {
        let described = Settings::describe_text("# mine\n[run]\nslots = 7\n", "landfall.toml");
        assert!(described.usable && described.wrong.is_empty(), "{:?}", described.wrong);
        let slots = find_setting(&described, "run.slots");
        assert_eq!((slots.value.clone(), slots.line), (Value::from(7), Some(3)));
        assert_ne!(slots.default, slots.value);
        let other = described.sections.iter().flat_map(|it| &it.keys).find(|it| it.line.is_none());
        assert!(other.is_some_and(|it| it.value == it.default && !it.about.is_empty()));
    }

    #[test]
    fn every_unknown_key_is_named_with_the_file_mended() {
        let text = "[run]\nslotz = 2\n[lannd]\nx = 1\n";
        let described = Settings::describe_text(text, "landfall.toml");
        assert!(!described.usable);
        let seen: Vec<_> = described.wrong.iter().map(|it| (it.line, it.nearest.as_deref())).collect();
        assert_eq!(seen, [(Some(2), Some("slots")), (Some(3), Some("land"))]);
        let mended = described.wrong[0].mended.as_deref().expect("it is plain");
        assert_eq!(mended, "[run]\nslots = 2\n[lannd]\nx = 1\n");
    }

    #[test]
    fn a_file_that_is_no_toml_still_shows_every_key() {
        let described = Settings::describe_text("[run\nslots = = 2", "landfall.toml");
        assert!(!described.usable && !described.wrong.is_empty());
        assert!(described.sections.iter().any(|section| section.name == "run"));
    }
}
