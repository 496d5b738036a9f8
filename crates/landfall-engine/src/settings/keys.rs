//! Which keys are known where, read from the schema, and what a person may have meant by one that is not.

use std::ops::Range;
use std::sync::LazyLock;

use landfall_agents::nearest_word;
use schemars::schema_for;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::raw::{RawSettings, RawVerify};

/// A key that no setting has.
pub struct UnknownSettingKey {
    pub span: Range<usize>,
    /// The key itself.
    pub word: String,
    /// The known one that is nearest.
    pub near: Option<String>,
    pub message: String,
    pub hint: String,
}

static SETTINGS: LazyLock<Value> = LazyLock::new(|| schema_for!(RawSettings).to_value());
static VERIFY: LazyLock<Value> = LazyLock::new(|| schema_for!(RawVerify).to_value());

/// The schema of the whole file.
pub fn settings_schema() -> &'static Value {
    &SETTINGS
}

/// The first key in the file that is not known.
pub fn first_unknown_key(table: &DeTable<'_>) -> Option<UnknownSettingKey> {
    all_unknown(table).into_iter().next()
}

/// Every key in the file that is not known, in the order they stand there.
pub fn all_unknown(table: &DeTable<'_>) -> Vec<UnknownSettingKey> {
    let section = KeyTable { path: Vec::new(), header: TableHeader::Single };
    sort_by_position(KeySearch { root: &SETTINGS }.unknown_in_table(&SETTINGS, table, &section))
}

fn sort_by_position(mut found: Vec<UnknownSettingKey>) -> Vec<UnknownSettingKey> {
    found.sort_by_key(|it| it.span.start);
    found
}

/// The first key in the `[verify]` section that is not known.
pub fn unknown_in_verify(table: &DeTable<'_>) -> Option<UnknownSettingKey> {
    let section = KeyTable { path: vec!["verify"], header: TableHeader::Single };
    sort_by_position(KeySearch { root: &VERIFY }.unknown_in_table(&VERIFY, table, &section))
        .into_iter()
        .next()
}

/// Follows references from `node`, and takes the side of a choice that is a table.
pub fn resolve_reference<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    if let Some(pointer) = node.get("$ref").and_then(Value::as_str) {
        let target = pointer.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return resolve_reference(root, target.expect("the schema refers to its own definitions"));
    }
    let choice = node.get("anyOf").and_then(Value::as_array).and_then(|sides| {
        sides.iter().map(|side| resolve_reference(root, side)).find(|side| side.get("properties").is_some())
    });
    choice.unwrap_or(node)
}

struct KeySearch<'a> {
    root: &'a Value,
}

/// The table a key stands in.
struct KeyTable<'a> {
    path: Vec<&'a str>,
    header: TableHeader,
}

/// How a table is written: `[verify]`, or `[[verify.command]]`.
enum TableHeader {
    Single,
    Double,
}

impl KeySearch<'_> {
    fn unknown_in_table(
        &self,
        node: &Value,
        table: &DeTable<'_>,
        section: &KeyTable<'_>,
    ) -> Vec<UnknownSettingKey> {
        let node = resolve_reference(self.root, node);
        let known = node.get("properties").and_then(Value::as_object);
        let any = node.get("additionalProperties").filter(|schema| schema.is_object());
        let found = table.iter().flat_map(|(key, value)| {
            let word = key.get_ref().as_ref();
            match (known.and_then(|known| known.get(word)).or(any), known) {
                (Some(schema), _) => {
                    let path = section.path.iter().copied().chain([word]).collect();
                    self.unknown_in_value(schema, value.get_ref(), path)
                }
                (None, Some(known)) => {
                    let known: Vec<&str> = known.keys().map(String::as_str).collect();
                    let (message, hint) = match section.path.as_slice() {
                        [] => explain_unknown_section(word, &known, value.get_ref()),
                        [..] => explain_unknown_key(word, &known, section),
                    };
                    let near = nearest_word(word, known.iter().copied()).map(str::to_owned);
                    vec![UnknownSettingKey { span: key.span(), word: word.to_owned(), near, message, hint }]
                }
                (None, None) => Vec::new(), // a value where no table belongs; reading it will say so
            }
        });
        found.collect()
    }

    fn unknown_in_value(
        &self,
        schema: &Value,
        value: &DeValue<'_>,
        path: Vec<&str>,
    ) -> Vec<UnknownSettingKey> {
        match value {
            DeValue::Table(table) => {
                self.unknown_in_table(schema, table, &KeyTable { path, header: TableHeader::Single })
            }
            DeValue::Array(items) => {
                let Some(item) = resolve_reference(self.root, schema).get("items") else { return Vec::new() };
                let section = KeyTable { path, header: TableHeader::Double };
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.flat_map(|table| self.unknown_in_table(item, table, &section)).collect()
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => Vec::new(),
        }
    }
}

fn explain_unknown_section(word: &str, known: &[&str], value: &DeValue<'_>) -> (String, String) {
    let all = || known.iter().map(|word| format!("[{word}]")).collect::<Vec<_>>().join(", ");
    if !value.is_table() && !value.is_array() {
        let hint = section_with_key(word).map_or_else(
            || format!("known sections: {}", all()),
            |home| format!("[{home}] has a key of that name"),
        );
        return (format!("unknown key `{}` outside of any section", escape_beginning(word)), hint);
    }
    let hint = match nearest_word(word, known.iter().copied()) {
        Some(near) => format!("did you mean [{near}]?"),
        None => format!("known sections: {}", all()),
    };
    (format!("unknown section [{}]", escape_beginning(word)), hint)
}

fn explain_unknown_key(word: &str, known: &[&str], section: &KeyTable<'_>) -> (String, String) {
    let path = escape_beginning(&section.path.join("."));
    let message = match section.header {
        TableHeader::Single => format!("unknown key `{}` in [{path}]", escape_beginning(word)),
        TableHeader::Double => format!("unknown key `{}` in [[{path}]]", escape_beginning(word)),
    };
    let hint = match (nearest_word(word, known.iter().copied()), section_with_key(word)) {
        (_, Some(home)) => format!("[{home}] has a key of that name"),
        (Some(near), None) => format!("did you mean `{near}`?"),
        (None, None) => format!("known keys: {}", known.join(", ")),
    };
    (message, hint)
}

/// The section that has a key of this very name.
fn section_with_key(word: &str) -> Option<&'static str> {
    let sections = SETTINGS.get("properties")?.as_object()?;
    let has = |node: &Value| {
        resolve_reference(&SETTINGS, node).get("properties").is_some_and(|keys| keys.get(word).is_some())
    };
    sections.iter().find(|(_, node)| has(node)).map(|(name, _)| name.as_str())
}

/// The beginning of a word for a message; what is written may be anything.
fn escape_beginning(word: &str) -> String {
    const SHOWN_MAX: usize = 60; // enough to find it again
    word.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect()
}
