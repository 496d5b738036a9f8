//! The reference page of the settings, written from the schema, which is written from `raw.rs`.

use serde_json::{Map, Value};

use super::keys::{resolve_reference, settings_schema};
use super::raw::RawSettings;
use super::resolve::Settings;

/// Where the order of the keys comes from: a schema has none.
const RAW: &str = include_str!("raw.rs");

const HEAD: &str = "\
# `landfall.toml`

<!-- Written from crates/landfall-engine/src/settings/raw.rs. Change it there, then run the tests with LANDFALL_BLESS=1. -->

The file stands at the root of the repository. Every key has a default, so an empty file is valid. A key that is not
listed here is refused, with the nearest known one named.

Durations are written `90s`, `30m`, `1h30m`, `2d` (units `d`, `h`, `m`, `s`, `ms`, larger ones first). Sizes are
written `64MB` (a thousand thousand) or `64MiB` (1024 times 1024), from `B` to `TiB`. Both stand in quotes.

Editors that know JSON Schema can use [landfall.schema.json](landfall.schema.json).
";

impl Settings {
    /// The reference page, as Markdown.
    #[must_use]
    pub fn render_reference() -> String {
        let mut page = HEAD.to_owned();
        let root = settings_schema();
        for (name, node) in in_order("RawSettings", keys_of(root)) {
            let section = resolve_reference(root, node);
            let named = section.get("additionalProperties").filter(|any| any.is_object());
            let (title, table) = match (named, section.get("items")) {
                (Some(any), _) => (format!("[{name}.NAME]"), any),
                (None, Some(items)) => (format!("[[{name}]]"), items),
                (None, None) => (format!("[{name}]"), node),
            };
            page.push_str(&format!("\n## `{title}`\n\n{}\n\n", description_text(node)));
            write_table(&mut page, table);
            for (key, value) in keys_of(resolve_reference(root, table)) {
                let item = value.get("items").map(|items| resolve_reference(root, items));
                if item.is_some_and(|item| item.get("properties").is_some()) {
                    page.push_str(&format!("\n### `[[{name}.{key}]]`\n\n"));
                    write_table(&mut page, &value["items"]);
                }
            }
        }
        let sample = toml::to_string(&RawSettings::default()).expect("defaults can be written");
        page.push_str(&format!("\n## All defaults\n\n```toml\n{}\n```\n", sample.trim()));
        page
    }
}

fn write_table(page: &mut String, node: &Value) {
    let root = settings_schema();
    let type_name = type_name(node);
    let table = resolve_reference(root, node);
    let owed = |key: &str| {
        table.get("required").and_then(Value::as_array).is_some_and(|keys| keys.iter().any(|k| k == key))
    };
    page.push_str("| key | value | default | what it says |\n|---|---|---|---|\n");
    for (key, node) in in_order(&type_name, keys_of(table)) {
        let default = match node.get("default") {
            Some(default) => format!("`{default}`"),
            None if owed(key) => "must be given".to_owned(),
            None => "–".to_owned(),
        };
        let words = format!("{}{}", description_text(node), describe_choices(node));
        page.push_str(&format!("| `{key}` | {} | {default} | {words} |\n", describe_value(node)));
    }
}

/// What kind of value a setting takes.
pub(super) fn describe_value(node: &Value) -> String {
    let node = unwrap_optional(node);
    let text = |key: &str| node.get(key).and_then(Value::as_str);
    if let (Some(unit), Some(min), Some(max)) = (text("x-unit"), text("x-minimum"), text("x-maximum")) {
        return format!("{unit}, {min} to {max}");
    }
    let word = node["type"].as_str().or_else(|| node["type"][0].as_str());
    if let (Some(min), Some(max)) = (node.get("minimum"), node.get("maximum")) {
        let number = if word == Some("number") { "dollars" } else { "whole number" };
        return format!("{number}, {min} to {max}");
    }
    let words: Vec<String> = list_options(node).iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    // A key that may be left out has two types, the second of which is nothing.
    match word {
        Some("string") => "text",
        Some("integer") => "whole number",
        Some("boolean") => "`true` or `false`",
        Some("array") if node["items"].get("$ref").is_some() => "list of tables, or of text",
        Some("array") => "list of text",
        Some("object") => "table of text",
        Some(_) | None => unreachable!("settings have no other types: {node}"),
    }
    .to_owned()
}

/// A node that may be left out, without that.
fn unwrap_optional(node: &Value) -> &Value {
    let sides = node.get("anyOf").and_then(Value::as_array);
    sides.and_then(|sides| sides.iter().find(|side| side["type"] != "null")).unwrap_or(node)
}

pub(super) fn describe_choices(node: &Value) -> String {
    list_options(node).iter().map(|(word, words)| format!(" `{word}`: {words}")).collect()
}

/// The words a setting chooses from, each with what it means.
fn list_options(node: &Value) -> Vec<(&str, String)> {
    let sides =
        resolve_reference(settings_schema(), unwrap_optional(node)).get("oneOf").and_then(Value::as_array);
    let sides = sides.map(Vec::as_slice).unwrap_or_default();
    sides.iter().filter_map(|side| Some((side.get("const")?.as_str()?, description_text(side)))).collect()
}

pub(super) fn description_text(node: &Value) -> String {
    let words = node.get("description").and_then(Value::as_str).expect("every setting has a comment");
    words.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

pub(super) fn keys_of(node: &Value) -> &Map<String, Value> {
    resolve_reference(settings_schema(), node)
        .get("properties")
        .and_then(Value::as_object)
        .expect("it is a table")
}

/// The name of the type in `raw.rs` that a node of the schema stands for.
pub(super) fn type_name(node: &Value) -> String {
    let root = settings_schema();
    let target = resolve_reference(root, node);
    let types = root["$defs"].as_object().expect("the schema has definitions");
    let found = types.iter().find(|(_, definition)| std::ptr::eq(*definition, target));
    found.map(|(name, _)| name.clone()).expect("every table is a type of its own")
}

/// The keys of a table in the order of the fields of its type.
pub(super) fn in_order<'a>(type_name: &str, keys: &'a Map<String, Value>) -> Vec<(&'a String, &'a Value)> {
    let (_, fields) =
        RAW.split_once(&format!("pub struct {type_name} {{")).expect("the type stands in raw.rs");
    let mut keys: Vec<_> = keys.iter().collect();
    let place = |key: &str| fields.find(&format!("\n    pub {}: ", key.replace('-', "_")));
    keys.sort_by_key(|(key, _)| place(key).expect("each key is a field"));
    keys
}
