//! Which keys are known where, read from the schema, and what a person may have meant by one that is not.

use std::ops::Range;
use std::sync::LazyLock;

use landfall_agents::nearest;
use schemars::schema_for;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::place::in_order;
use super::raw::{RawSettings, RawVerify};

/// A key that no setting has.
pub struct Unknown {
    pub span: Range<usize>,
    pub message: String,
    pub hint: String,
}

static SETTINGS: LazyLock<Value> = LazyLock::new(|| schema_for!(RawSettings).to_value());
static VERIFY: LazyLock<Value> = LazyLock::new(|| schema_for!(RawVerify).to_value());

/// The schema of the whole file.
pub fn schema() -> &'static Value {
    &SETTINGS
}

/// The first key in the file that is not known.
pub fn unknown(table: &DeTable<'_>) -> Option<Unknown> {
    Search { root: &SETTINGS }.within(&SETTINGS, table, &[])
}

/// The first key in the `[verify]` section that is not known.
pub fn unknown_in_verify(table: &DeTable<'_>) -> Option<Unknown> {
    Search { root: &VERIFY }.within(&VERIFY, table, &["verify".to_owned()])
}

/// Follows references from `node`, and takes the side of a choice that is a table.
pub fn resolve<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    if let Some(pointer) = node.get("$ref").and_then(Value::as_str) {
        let target = pointer.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return resolve(root, target.expect("the schema refers to its own definitions"));
    }
    let choice = node.get("anyOf").and_then(Value::as_array).and_then(|sides| {
        sides.iter().map(|side| resolve(root, side)).find(|side| side.get("properties").is_some())
    });
    choice.unwrap_or(node)
}

struct Search<'a> {
    root: &'a Value,
}

impl Search<'_> {
    fn within(&self, node: &Value, table: &DeTable<'_>, path: &[String]) -> Option<Unknown> {
        let node = resolve(self.root, node);
        let known = node.get("properties").and_then(Value::as_object);
        let any = node.get("additionalProperties").filter(|schema| schema.is_object());
        let mut first: Option<Unknown> = None;
        for (key, value) in in_order(table) {
            let word = key.get_ref().as_ref();
            let path: Vec<String> = path.iter().cloned().chain([word.to_owned()]).collect();
            let found = match known.and_then(|known| known.get(word)).or(any) {
                Some(schema) => self.value(schema, value.get_ref(), &path),
                None if known.is_none() => None, // a wrong type; reading it will say so
                None => Some(self.describe(
                    known?.keys().map(String::as_str).collect(),
                    key.span(),
                    value.get_ref(),
                    &path,
                )),
            };
            let earlier =
                |found: &Unknown| first.as_ref().is_none_or(|first| found.span.start < first.span.start);
            first = found.filter(earlier).or(first);
        }
        first
    }

    fn value(&self, schema: &Value, value: &DeValue<'_>, path: &[String]) -> Option<Unknown> {
        match value {
            DeValue::Table(table) => self.within(schema, table, path),
            DeValue::Array(items) => {
                let item = resolve(self.root, schema).get("items")?;
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.filter_map(|table| self.within(item, table, path)).min_by_key(|found| found.span.start)
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        }
    }

    fn describe(
        &self,
        known: Vec<&str>,
        span: Range<usize>,
        value: &DeValue<'_>,
        path: &[String],
    ) -> Unknown {
        let (key, section) = path.split_last().expect("the path ends with the key");
        let shown: String = key.chars().take(60).flat_map(char::escape_debug).collect();
        let is_section = section.is_empty() && (value.is_table() || value.is_array());
        let message = match section {
            [] if is_section => format!("unknown section [{shown}]"),
            [] => format!("unknown key `{shown}` outside of any section"),
            _ => format!("unknown key `{shown}` in [{}]", section.join(".")),
        };
        let at_home = || self.home_of(key).filter(|home| section != [home.to_owned()]);
        let hint = match nearest(key, known.iter().copied()) {
            Some(word) if is_section => format!("did you mean [{word}]?"),
            Some(word) if !section.is_empty() => format!("did you mean `{word}`?"),
            Some(_) | None => match at_home() {
                Some(home) => format!("`{shown}` belongs into [{home}]"),
                None if section.is_empty() => {
                    format!(
                        "known sections: {}",
                        known.iter().map(|word| format!("[{word}]")).collect::<Vec<_>>().join(", ")
                    )
                }
                None => format!("known keys: {}", known.join(", ")),
            },
        };
        Unknown { span, message, hint }
    }

    /// The section that has a key of this name.
    fn home_of(&self, key: &str) -> Option<String> {
        let sections = SETTINGS.get("properties")?.as_object()?;
        let has = |node: &&Value| {
            resolve(&SETTINGS, node).get("properties").is_some_and(|keys| keys.get(key).is_some())
        };
        sections.iter().find(|(_, node)| has(node)).map(|(name, _)| name.clone())
    }
}
