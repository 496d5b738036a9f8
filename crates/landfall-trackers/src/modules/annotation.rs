//! Remarks of a person on the files of a module: `.tmp-annotations.json` with four kinds, as lists of texts or as objects.

use serde_json::{Map, Value};

use super::document::without_place;
use super::problem::{ModuleFormatError, ModuleLineProblem, shorten_text};

/// The name of the file.
pub const FILE: &str = ".tmp-annotations.json";

/// What a person wants done with a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationRequest {
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

impl ModuleAnnotation {
    /// It in words, for whoever is to heed it.
    #[must_use]
    pub fn describe(&self) -> String {
        let near = match (self.before.as_str(), self.after.as_str()) {
            ("", "") => String::new(),
            (before, "") => format!(" after `{before}`"),
            ("", after) => format!(" before `{after}`"),
            (before, after) => format!(" between `{before}` and `{after}`"),
        };
        let file = if self.file.is_empty() { String::new() } else { format!("{}: ", self.file) };
        match &self.remark {
            AnnotationRequest::Insert(text) => format!("{file}insert{near}: {text}"),
            AnnotationRequest::Delete(text) => format!("{file}delete{near}: {text}"),
            AnnotationRequest::Replace { old, new } => format!("{file}replace{near} `{old}` with: {new}"),
            AnnotationRequest::Comment { on, text } => format!("{file}comment{near} on `{on}`: {text}"),
        }
    }
}

/// A remark and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleAnnotation {
    /// The file; empty when the older form does not say.
    pub file: String,
    /// The text before the place (`Line3:...words`), or the selection.
    pub before: String,
    /// The text after it.
    pub after: String,
    /// What is wanted.
    pub remark: AnnotationRequest,
    /// What else the line says, kept.
    pub extra: Map<String, Value>,
}

/// What a remark is, before its texts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemarkKind {
    Insert,
    Delete,
    Replace,
    Comment,
}

impl RemarkKind {
    const ALL: [Self; 4] = [Self::Insert, Self::Delete, Self::Replace, Self::Comment];

    fn wire_name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::Comment => "comment",
        }
    }

    /// `Insert Annotations`, `insertions` and `INSERT` are all `insert`.
    fn from_words(words: &str) -> Option<Self> {
        let words = words.to_ascii_lowercase();
        let begins = |kind: &Self| words.starts_with(kind.wire_name());
        match words.as_str() {
            "add" => Some(Self::Insert),
            _ if words.starts_with("deletion") => Some(Self::Delete),
            _ => Self::ALL.into_iter().find(begins),
        }
    }

    fn known() -> String {
        Self::ALL.map(Self::wire_name).join(", ")
    }
}

/// Reads the file: lists of three or four texts, by kind: `{"insert": [[before, text, after]], …}`, or a list of objects.
///
/// # Errors
/// When it is no JSON, a kind is not known, or texts are missing.
pub fn read_annotations(text: &str) -> Result<Vec<ModuleAnnotation>, ModuleFormatError> {
    understand(text).map_err(|bad| bad.in_file(FILE))
}

fn understand(text: &str) -> Result<Vec<ModuleAnnotation>, ModuleLineProblem> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        ModuleLineProblem::new(error.line().max(1), format!("this is no JSON: {}", without_place(&error)))
    })?;
    match &value {
        Value::Array(items) => items.iter().map(|item| parse_object(1, item)).collect(),
        Value::Object(map) => {
            let file = map.get("file").and_then(Value::as_str).unwrap_or_default();
            let mut found = Vec::new();
            for (key, items) in map {
                let kind = RemarkKind::from_words(key);
                let (Some(kind), Value::Array(items)) = (kind, items) else {
                    if matches!(key.as_str(), "file" | "timestamp" | "version") {
                        continue;
                    }
                    return Err(ModuleLineProblem::new(
                        1,
                        format!("`{}` is no kind of annotation", shorten_text(key)),
                    )
                    .with_known(RemarkKind::known()));
                };
                for item in items {
                    found.push(match item {
                        Value::Array(parts) => parse_tuple(file, kind, parts)?,
                        item => parse_object(1, item)?,
                    });
                }
            }
            Ok(found)
        }
        _ => Err(ModuleLineProblem::new(1, "this is no list of annotations").with_known(RemarkKind::known())),
    }
}

fn parse_tuple(file: &str, kind: RemarkKind, parts: &[Value]) -> Result<ModuleAnnotation, ModuleLineProblem> {
    let texts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
    let wanted = if matches!(kind, RemarkKind::Insert | RemarkKind::Delete) { 3 } else { 4 };
    let texts = texts.filter(|texts| texts.len() == wanted).ok_or_else(|| {
        ModuleLineProblem::new(
            1,
            format!(
                "an annotation of kind `{}` has {} parts, not {wanted} texts",
                kind.wire_name(),
                parts.len()
            ),
        )
        .with_hint("before, text, after; for replace and comment: before, selection, text, after")
    })?;
    let text = |place: usize| restore_newlines(texts[place]);
    let remark = match kind {
        RemarkKind::Insert => AnnotationRequest::Insert(text(1)),
        RemarkKind::Delete => AnnotationRequest::Delete(text(1)),
        RemarkKind::Replace => AnnotationRequest::Replace { old: text(1), new: text(2) },
        RemarkKind::Comment => AnnotationRequest::Comment { on: text(1), text: text(2) },
    };
    Ok(ModuleAnnotation {
        file: file.to_owned(),
        before: text(0),
        after: text(wanted - 1),
        remark,
        extra: Map::new(),
    })
}

/// Line ends are shown as `↵` in lists of texts.
fn restore_newlines(text: &str) -> String {
    text.replace('↵', "\n")
}

fn parse_object(line: usize, value: &Value) -> Result<ModuleAnnotation, ModuleLineProblem> {
    let Value::Object(map) = value else {
        return Err(ModuleLineProblem::new(line, "this is no annotation")
            .with_known("{file, type, selected, cursor, content | replacement | comment}"));
    };
    let mut rest = map.clone();
    let mut take = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| rest.shift_remove(*name))
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    let word = take(&["type", "kind"]).unwrap_or_default();
    let kind = RemarkKind::from_words(&word).ok_or_else(|| {
        ModuleLineProblem::new(line, format!("`{}` is no kind of annotation", shorten_text(&word)))
            .with_known(RemarkKind::known())
    })?;
    let file = take(&["file"]).unwrap_or_default();
    let selected = take(&["selected", "selection"]).unwrap_or_default();
    let before = take(&["before"]).unwrap_or_default();
    let after = take(&["after"]).unwrap_or_default();
    let mut owed = |names: &[&str]| {
        take(names).ok_or_else(|| {
            ModuleLineProblem::new(
                line,
                format!("an annotation of kind `{}` needs `{}`", kind.wire_name(), names[0]),
            )
        })
    };
    let remark = match kind {
        RemarkKind::Insert => AnnotationRequest::Insert(owed(&["content", "text"])?),
        RemarkKind::Delete => AnnotationRequest::Delete(selected),
        RemarkKind::Replace => {
            AnnotationRequest::Replace { new: owed(&["replacement", "content"])?, old: selected }
        }
        RemarkKind::Comment => {
            AnnotationRequest::Comment { text: owed(&["comment", "content"])?, on: selected }
        }
    };
    Ok(ModuleAnnotation { file, before, after, remark, extra: rest })
}
