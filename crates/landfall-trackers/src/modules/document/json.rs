//! The fields of a JSON object, with their places.

use serde_json::Value;

use super::{DocumentField, line_at};
use crate::modules::problem::ModuleLineProblem;

/// The fields of the object, and where a further one goes.
pub(super) fn parse_fields(text: &str) -> Result<(Vec<DocumentField>, usize), ModuleLineProblem> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let whole: Value = serde_json::from_str(&text[start..]).map_err(|error| {
        ModuleLineProblem::new(error.line().max(1), format!("this is no JSON: {}", without_place(&error)))
            .with_hint("mend it by hand, or let it be restored from the last commit")
    })?;
    if !whole.is_object() {
        return Err(ModuleLineProblem::new(line_at(text, start), "this is no object")
            .with_hint("begin with `{` and end with `}`"));
    }
    // The text is valid JSON from here on, so walking over it needs no further checks.
    let mut walk = JsonWalker { bytes: text.as_bytes(), at: start };
    walk.skip_blanks();
    walk.at += 1;
    let (mut fields, mut end) = (Vec::new(), walk.at);
    loop {
        walk.skip_blanks();
        match walk.bytes[walk.at] {
            b'}' => return Ok((fields, end)),
            b',' => walk.at += 1,
            _ => {
                let from = walk.at;
                walk.skip_value();
                let key =
                    serde_json::from_str(&text[from..walk.at]).expect("a key of valid JSON is a string");
                walk.skip_blanks();
                walk.at += 1; // the colon
                walk.skip_blanks();
                let first = walk.at;
                walk.skip_value();
                let span = first..walk.at;
                end = walk.at;
                let value = serde_json::from_str(&text[span.clone()]).map_err(|error| error.to_string());
                fields.push(DocumentField {
                    key,
                    line: line_at(text, from),
                    value,
                    span,
                    comments: Vec::new(),
                });
            }
        }
    }
}

struct JsonWalker<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl JsonWalker<'_> {
    fn skip_blanks(&mut self) {
        while self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
    }

    /// Over one value: a string, something in brackets, or a word.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.bytes[self.at] {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                _ => {
                    while !matches!(
                        self.bytes.get(self.at),
                        None | Some(b',' | b':' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                    ) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while self.bytes[self.at] != b'"' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }
}

/// The error without serde's own mention of the place, which we give as file and line.
pub(in crate::modules) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// What stands between the brace and the first key: it shows how the object is laid out.
fn leading_gap(text: &str) -> &str {
    let after = text.find('{').map_or(0, |at| at + 1);
    let rest = &text[after..];
    &rest[..rest.len() - rest.trim_start().len()]
}

/// A value as this document writes its values.
pub(super) fn format_value(text: &str, value: &Value) -> String {
    let gap = leading_gap(text);
    match gap.rfind('\n') {
        Some(line) if value.is_object() || value.is_array() => {
            let indent = &gap[line + 1..];
            let pretty = serde_json::to_string_pretty(value).expect("a JSON value can be written");
            pretty.replace('\n', &format!("\n{indent}"))
        }
        Some(_) | None => value.to_string(),
    }
}

pub(super) fn format_added_field(text: &str, first: bool, key: &str, value: &Value) -> String {
    let key = Value::String(key.to_owned());
    let value = format_value(text, value);
    match (first, leading_gap(text)) {
        (true, "") => format!("{key}: {value}"),
        (true, _) => format!("\n  {key}: {value}"),
        (false, gap) if gap.contains('\n') => format!(",{gap}{key}: {value}"),
        (false, gap) => {
            let space = if gap.is_empty() { "" } else { " " };
            format!(",{space}{key}:{space}{value}")
        }
    }
}
