//! Remarks of a person on the files of a module: `.tmp-annotations.json` with four kinds, and one JSON object per line later.

use serde_json::{Map, Value, json};

use super::document::without_place;
use super::problem::{Bad, FormatError, short};

/// The name of the older file.
pub const FILE: &str = ".tmp-annotations.json";

/// What a person wants done with a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// Put this in.
    Insert(String),
    /// Take this out.
    Delete(String),
    /// Put something else in its place.
    Replace {
        /// What stands there.
        old: String,
        /// What should.
        new: String,
    },
    /// Something is said about it.
    Comment {
        /// What stands there.
        on: String,
        /// What is said.
        text: String,
    },
}

impl Remark {
    /// The word for the kind.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Delete(_) => "delete",
            Self::Replace { .. } => "replace",
            Self::Comment { .. } => "comment",
        }
    }
}

/// A remark and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The file; empty when the older form does not say.
    pub file: String,
    /// The text before the place (`Line3:...words`), or the selection.
    pub before: String,
    /// The text after it.
    pub after: String,
    /// What is wanted.
    pub remark: Remark,
    /// What else the line says, kept.
    pub extra: Map<String, Value>,
}

const KINDS: &[&str] = &["insert", "delete", "replace", "comment"];

/// The older file: lists of three or four texts, by kind: `{"insert": [[before, text, after]], …}`, or a list of objects.
///
/// # Errors
/// When it is no JSON, a kind is not known, or texts are missing.
pub fn read_old(text: &str) -> Result<Vec<Annotation>, FormatError> {
    understand_old(text).map_err(|bad| bad.in_file(FILE))
}

fn understand_old(text: &str) -> Result<Vec<Annotation>, Bad> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        Bad::new(error.line().max(1), format!("this is no JSON: {}", without_place(&error)))
    })?;
    match &value {
        Value::Array(items) => items.iter().map(|item| object(1, item)).collect(),
        Value::Object(map) => {
            let file = map.get("file").and_then(Value::as_str).unwrap_or_default();
            let mut found = Vec::new();
            for (key, items) in map {
                let kind = kind_of(key);
                let (Some(kind), Value::Array(items)) = (kind, items) else {
                    if key == "file" || key == "timestamp" || key == "version" {
                        continue;
                    }
                    return Err(Bad::new(1, format!("`{}` is no kind of annotation", short(key)))
                        .known(KINDS.join(", ")));
                };
                for item in items {
                    found.push(match item {
                        Value::Array(parts) => tuple(file, kind, parts)?,
                        item => object(1, item)?,
                    });
                }
            }
            Ok(found)
        }
        _ => Err(Bad::new(1, "this is no list of annotations").known(KINDS.join(", "))),
    }
}

/// `Insert Annotations`, `insertions` and `INSERT` are all `insert`.
fn kind_of(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    KINDS.iter().copied().find(|kind| {
        word.starts_with(*kind)
            || (*kind == "delete" && word.starts_with("deletion"))
            || (*kind == "insert" && word == "add")
    })
}

fn tuple(file: &str, kind: &str, parts: &[Value]) -> Result<Annotation, Bad> {
    let texts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
    let wanted = if matches!(kind, "insert" | "delete") { 3 } else { 4 };
    let texts = texts.filter(|texts| texts.len() == wanted).ok_or_else(|| {
        Bad::new(1, format!("an annotation of kind `{kind}` has {} parts, not {wanted} texts", parts.len()))
            .hint("before, text, after; for replace and comment: before, selection, text, after")
    })?;
    let text = |place: usize| unfolded(texts[place]);
    let remark = match kind {
        "insert" => Remark::Insert(text(1)),
        "delete" => Remark::Delete(text(1)),
        "replace" => Remark::Replace { old: text(1), new: text(2) },
        _ => Remark::Comment { on: text(1), text: text(2) },
    };
    Ok(Annotation {
        file: file.to_owned(),
        before: text(0),
        after: text(wanted - 1),
        remark,
        extra: Map::new(),
    })
}

/// Line ends are shown as `↵` in the older file.
fn unfolded(text: &str) -> String {
    text.replace('↵', "\n")
}

/// One JSON object per line. Empty lines are skipped.
///
/// # Errors
/// The first line that is not understood.
pub fn read_lines(file: &str, text: &str) -> Result<Vec<Annotation>, FormatError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(line, text)| {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Bad::new(line, format!("this is no JSON: {}", without_place(&error))))?;
        object(line, &value)
    });
    read.collect::<Result<_, Bad>>().map_err(|bad| bad.in_file(file))
}

fn object(line: usize, value: &Value) -> Result<Annotation, Bad> {
    let Value::Object(map) = value else {
        return Err(Bad::new(line, "this is no annotation")
            .known("{file, type, selected, cursor, content | replacement | comment}"));
    };
    let mut rest = map.clone();
    let mut take = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| rest.shift_remove(*name))
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    let word = take(&["type", "kind"]).unwrap_or_default();
    let kind = kind_of(&word).ok_or_else(|| {
        Bad::new(line, format!("`{}` is no kind of annotation", short(&word))).known(KINDS.join(", "))
    })?;
    let file = take(&["file"]).unwrap_or_default();
    let selected = take(&["selected", "selection"]).unwrap_or_default();
    let before = take(&["before"]).unwrap_or_default();
    let after = take(&["after"]).unwrap_or_default();
    let mut owed = |names: &[&str]| {
        take(names)
            .ok_or_else(|| Bad::new(line, format!("an annotation of kind `{kind}` needs `{}`", names[0])))
    };
    let remark = match kind {
        "insert" => Remark::Insert(owed(&["content", "text"])?),
        "delete" => Remark::Delete(selected),
        "replace" => Remark::Replace { new: owed(&["replacement", "content"])?, old: selected },
        _ => Remark::Comment { text: owed(&["comment", "content"])?, on: selected },
    };
    Ok(Annotation { file, before, after, remark, extra: rest })
}

/// The annotations as lines.
#[must_use]
pub fn write_lines(annotations: &[Annotation]) -> String {
    annotations
        .iter()
        .map(|it| {
            let mut map = Map::new();
            map.insert("file".to_owned(), json!(it.file));
            map.insert("type".to_owned(), json!(it.remark.word()));
            let (selected, more) = match &it.remark {
                Remark::Insert(text) => ("", Some(("content", text))),
                Remark::Delete(text) => (text.as_str(), None),
                Remark::Replace { old, new } => (old.as_str(), Some(("replacement", new))),
                Remark::Comment { on, text } => (on.as_str(), Some(("comment", text))),
            };
            map.insert("selected".to_owned(), json!(selected));
            for (key, text) in [("before", &it.before), ("after", &it.after)] {
                if !text.is_empty() {
                    map.insert(key.to_owned(), json!(text));
                }
            }
            if let Some((key, text)) = more {
                map.insert(key.to_owned(), json!(text));
            }
            map.extend(it.extra.clone());
            Value::Object(map).to_string() + "\n"
        })
        .collect()
}
