//! JSON documents with places: whoever reads one can say where something is.

use serde_json::{Map, Value};

use super::{Format, ImportPlace, ImportProblem, LeftOutCounts, words};

/// A value and where it is.
#[derive(Clone)]
pub(super) struct LocatedJson<'a> {
    pub value: &'a Value,
    path: String,
    /// The line, for a document that is one line of a file.
    line: Option<usize>,
}

impl<'a> LocatedJson<'a> {
    pub fn at_root(value: &'a Value) -> Self {
        Self { value, path: String::new(), line: None }
    }

    pub fn on_line(line: usize, value: &'a Value) -> Self {
        Self { value, path: String::new(), line: Some(line) }
    }

    pub fn place(&self) -> ImportPlace {
        match (self.line, self.path.as_str()) {
            (None, "") => ImportPlace::Whole,
            (None, path) => ImportPlace::Path(path.to_owned()),
            (Some(line), "") => ImportPlace::Line(line),
            (Some(line), path) => ImportPlace::LinePath(line, path.to_owned()),
        }
    }

    pub fn bad(&self, message: impl Into<String>) -> ImportProblem {
        ImportProblem::new(self.place(), message)
    }

    fn wrong_type_problem(&self, wanted: &str) -> ImportProblem {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.bad(format!("this is {found}, not {wanted}"))
    }

    fn descend(&self, value: &'a Value, key: &str) -> Self {
        let plain =
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let key = if plain { key.to_owned() } else { format!("{:?}", words::shorten_for_message(key)) };
        let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
        Self { value, path, line: self.line }
    }

    pub fn as_object(&self) -> Result<&'a Map<String, Value>, ImportProblem> {
        self.value.as_object().ok_or_else(|| self.wrong_type_problem("an object"))
    }

    /// The value of a key; null is as good as nothing.
    pub fn get(&self, key: &str) -> Option<LocatedJson<'a>> {
        let value = self.value.as_object()?.get(key).filter(|value| !value.is_null())?;
        Some(self.descend(value, key))
    }

    /// The value of the first of these keys that is there.
    pub fn first(&self, keys: &[&str]) -> Option<LocatedJson<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub fn list(&self) -> Result<Vec<LocatedJson<'a>>, ImportProblem> {
        let items = self.value.as_array().ok_or_else(|| self.wrong_type_problem("a list"))?;
        let step = |(at, value)| Self { value, path: format!("{}[{at}]", self.path), line: self.line };
        Ok(items.iter().enumerate().map(step).collect())
    }

    pub fn text(&self) -> Result<&'a str, ImportProblem> {
        self.value.as_str().ok_or_else(|| self.wrong_type_problem("text"))
    }

    /// The text of a key; nothing is empty text.
    pub fn text_at(&self, key: &str) -> Result<&'a str, ImportProblem> {
        self.get(key).map_or(Ok(""), |it| it.text())
    }

    /// A name: text, or a number written as text.
    pub fn name(&self) -> Result<String, ImportProblem> {
        match self.value {
            Value::String(text) if !text.trim().is_empty() => Ok(words::one_line(text)),
            Value::String(_) => Err(self.bad("this name is empty")),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(self.wrong_type_problem("a name or a number")),
        }
    }

    pub fn as_bool(&self) -> Result<bool, ImportProblem> {
        self.value.as_bool().ok_or_else(|| self.wrong_type_problem("true or false"))
    }

    pub fn as_whole_number(&self) -> Result<u64, ImportProblem> {
        self.value.as_u64().ok_or_else(|| self.wrong_type_problem("a whole number"))
    }

    /// Criteria: a list of texts, or one text with a line each.
    pub fn read_criteria(&self) -> Result<Vec<String>, ImportProblem> {
        match self.value {
            Value::String(text) => Ok(words::split_criteria(text)),
            Value::Array(_) => {
                let texts = self.list()?.iter().map(LocatedJson::text).collect::<Result<Vec<_>, _>>()?;
                Ok(texts.into_iter().map(words::one_line).filter(|it| !it.is_empty()).collect())
            }
            _ => Err(self.wrong_type_problem("a list of texts")),
        }
    }

    /// One of a table of words.
    pub fn word<T: Copy>(&self, wanted: &str, table: &[(&str, T)]) -> Result<T, ImportProblem> {
        let text = self.text()?.trim();
        let found = table.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
            self.bad(format!("`{}` is not {wanted}", words::shorten_for_message(text)))
                .with_hint(format!("known: {}", known.join(", ")))
        })
    }

    /// The title under this key, which must have words in it.
    pub fn read_title(&self, key: &str) -> Result<String, ImportProblem> {
        let Some(at) = self.get(key) else {
            return Err(self.bad(format!("there is no `{key}`")));
        };
        let title = words::one_line(at.text()?);
        if title.is_empty() { Err(at.bad("the title is empty")) } else { Ok(title) }
    }

    /// Counts the fields that are not taken over. Those in `silent` are the other tool's bookkeeping.
    pub fn count_others(&self, used: &[&str], silent: &[&str], left_out: &mut LeftOutCounts) {
        let Some(object) = self.value.as_object() else { return };
        for (key, value) in object {
            let empty = match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(object) => object.is_empty(),
                Value::Bool(_) | Value::Number(_) => false,
            };
            if !empty && !used.contains(&key.as_str()) && !silent.contains(&key.as_str()) {
                left_out.add(&format!("field `{}`", words::shorten_for_message(key)));
            }
        }
    }
}

/// Reads a document.
pub(super) fn parse(text: &str) -> Result<Value, ImportProblem> {
    serde_json::from_str(text).map_err(|error| json_problem(error.line(), &error))
}

/// What is wrong with JSON on this line.
pub(super) fn json_problem(line: usize, error: &serde_json::Error) -> ImportProblem {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    ImportProblem::new(
        ImportPlace::Line(line.max(1)),
        format!("this is not JSON: {message} (column {})", error.column()),
    )
}

/// How a document of JSON, or of lines of JSON, is written; none when it is something else.
pub(super) fn guess_format(text: &str) -> Result<Option<Format>, ImportProblem> {
    let has = |value: &Value, keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    let is_issue = |value: &Value| {
        has(value, &["_type"]) || (has(value, &["id"]) && has(value, &["title", "issue_type"]))
    };
    let value = match parse(text) {
        Ok(value) => value,
        Err(bad) => {
            let first = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
            return first.filter(is_issue).map(|_| Some(Format::Beads)).ok_or(bad);
        }
    };
    let holds_tasks = |value: &Value| value.get("tasks").is_some_and(Value::is_array);
    Ok(match &value {
        Value::Object(_) if has(&value, super::prd::STORIES) => Some(Format::Prd),
        Value::Object(_) if holds_tasks(&value) => Some(Format::Taskmaster),
        Value::Object(object) if object.values().any(holds_tasks) => Some(Format::Taskmaster),
        Value::Object(_) if is_issue(&value) => Some(Format::Beads),
        Value::Array(list) => {
            list.first().filter(|it| has(it, &["passes", "acceptanceCriteria"])).map(|_| Format::Prd)
        }
        _ => None,
    })
}
