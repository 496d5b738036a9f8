//! Flat documents that are edited without being rewritten: a JSON object, or front matter above Markdown.
//!
//! A document keeps its text. Reading finds where each field stands; setting a field replaces only that place. So key
//! order, spacing, comments, unknown fields and the words below the front matter stay as a person left them.

mod json;
mod yaml;

use std::ops::Range;

use serde_json::Value;

use super::problem::ModuleLineProblem;

pub(super) use json::without_place;

/// How the fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    FrontMatter,
}

/// A text with fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    syntax: Syntax,
    text: String,
    fields: Vec<DocumentField>,
    /// Where a further field goes.
    end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocumentField {
    pub(super) key: String,
    pub(super) line: usize,
    /// What it says. Front matter of other tools may hold what we cannot read; it matters only for fields we use.
    pub(super) value: Result<Value, String>,
    /// The place of the value.
    span: Range<usize>,
    /// Comments inside that place, which outlive the value.
    comments: Vec<String>,
}

impl Document {
    pub(super) fn read(syntax: Syntax, text: &str) -> Result<Self, ModuleLineProblem> {
        let (fields, end) = match syntax {
            Syntax::Json => json::parse_fields(text)?,
            Syntax::FrontMatter => yaml::parse_fields(text)?,
        };
        for (place, field) in fields.iter().enumerate() {
            if fields[..place].iter().any(|it| it.key == field.key) {
                let message = format!("`{}` is there twice", super::problem::shorten_text(&field.key));
                return Err(
                    ModuleLineProblem::new(field.line, message).with_hint("keep the one that is meant")
                );
            }
        }
        Ok(Self { syntax, text: text.to_owned(), fields, end })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn fields(&self) -> &[DocumentField] {
        &self.fields
    }

    /// The same with one field changed, or added at the end.
    pub(super) fn with_field(&self, key: &str, value: &Value) -> Self {
        let mut text = self.text.clone();
        match self.fields.iter().find(|field| field.key == key) {
            Some(field) => {
                let new = match self.syntax {
                    Syntax::Json => json::format_value(&self.text, value),
                    Syntax::FrontMatter => {
                        yaml::format_replacement(&self.text, &field.span, value, &field.comments)
                    }
                };
                text.replace_range(field.span.clone(), &new);
            }
            None => {
                let new = match self.syntax {
                    Syntax::Json => json::format_added_field(&self.text, self.fields.is_empty(), key, value),
                    Syntax::FrontMatter => yaml::format_added_field(&self.text, key, value),
                };
                text.insert_str(self.end, &new);
            }
        }
        Self::read(self.syntax, &text).expect("an edit of one field leaves a document that can be read")
    }
}

/// The line of a place, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}
