//! Paths into JSON, in the words of jq that people use for it: `.a.b`, `.a[0]`, `.a[-1]`, `.a[]`, `.["a b"]`, `."a b"`, and behind
//! a `|` one of `length`, `keys`, `type`, `not`, `first`, `last`, `sort`, `unique`, `tostring`. Nothing else of jq.

use serde_json::Value;

/// A path that was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<JsonPathStep>);

#[derive(Debug, Clone, PartialEq)]
enum JsonPathStep {
    Key(String),
    Index(i64),
    Each,
    Word(&'static str),
}

const WORDS: [&str; 9] = ["length", "keys", "type", "not", "first", "last", "sort", "unique", "tostring"];
const STEPS_MAX: usize = 100;
const VALUES_MAX: usize = 10_000;

/// Reads a path.
pub(super) fn parse_json_path(text: &str) -> Result<JsonPath, String> {
    let wrong = || {
        let given = landfall_trackers::tracker::escape_beginning(text, 80);
        format!(
            "the path `{given}` is not understood; known are `.a.b`, `.a[0]`, `.a[]`, `.[\"a b\"]` and `| {}`",
            WORDS.join("`, `| ")
        )
    };
    let mut steps = Vec::new();
    for (number, part) in split_at_pipes(text).ok_or_else(wrong)?.into_iter().enumerate() {
        let part = part.trim();
        if let Some(word) = WORDS.into_iter().find(|word| *word == part) {
            if number == 0 && !text.trim_start().starts_with('.') && text.trim() != word {
                return Err(wrong());
            }
            steps.push(JsonPathStep::Word(word));
        } else {
            parse_steps(part, &mut steps).ok_or_else(wrong)?;
        }
    }
    if steps.len() > STEPS_MAX {
        return Err(wrong());
    }
    Ok(JsonPath(steps))
}

/// The parts between pipes; none if a quote is not closed.
fn split_at_pipes(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '|' if !quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    (!quoted).then_some(parts)
}

fn parse_steps(text: &str, steps: &mut Vec<JsonPathStep>) -> Option<()> {
    let mut rest = text.strip_prefix('.')?;
    let mut first = true;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            if let Some(after) = inner.strip_prefix(']') {
                steps.push(JsonPathStep::Each);
                rest = after;
            } else if inner.starts_with('"') {
                let (key, after) = parse_json_string(inner)?;
                steps.push(JsonPathStep::Key(key));
                rest = after.strip_prefix(']')?;
            } else {
                let (number, after) = inner.split_once(']')?;
                steps.push(JsonPathStep::Index(number.trim().parse().ok()?));
                rest = after;
            }
        } else {
            let name = if first { rest } else { rest.strip_prefix('.')? };
            if name.starts_with('[') && !first {
                rest = name;
                continue;
            }
            if name.starts_with('"') {
                let (key, after) = parse_json_string(name)?;
                steps.push(JsonPathStep::Key(key));
                rest = after;
            } else {
                let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@');
                let end = name.find(|c| !legal(c)).unwrap_or(name.len());
                if end == 0 {
                    return None;
                }
                steps.push(JsonPathStep::Key(name[..end].to_owned()));
                rest = &name[end..];
            }
        }
        rest = rest.strip_prefix('?').unwrap_or(rest);
        first = false;
    }
    Some(())
}

/// A JSON string, and what stands behind it.
fn parse_json_string(text: &str) -> Option<(String, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((serde_json::from_str(&text[..=at]).ok()?, &text[at + 1..])),
            _ => {}
        }
    }
    None
}

impl JsonPath {
    /// What it leads to: one value, or as many as `[]` finds.
    pub fn run(&self, root: &Value) -> Result<Vec<Value>, String> {
        let mut values = vec![root.clone()];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in values {
                apply_step(step, value, &mut next)?;
                if next.len() > VALUES_MAX {
                    return Err(format!("there are more than {VALUES_MAX} values"));
                }
            }
            values = next;
        }
        Ok(values)
    }
}

fn apply_step(step: &JsonPathStep, value: Value, into: &mut Vec<Value>) -> Result<(), String> {
    let no = |what: &str, value: &Value| Err(format!("{} has no {what}", describe_kind(value)));
    match (step, value) {
        (JsonPathStep::Key(key), Value::Object(mut map)) => into.push(map.remove(key).unwrap_or(Value::Null)),
        (JsonPathStep::Key(_) | JsonPathStep::Index(_), Value::Null) => into.push(Value::Null),
        (JsonPathStep::Key(key), other) => return no(&format!("field `{key}`"), &other),
        (JsonPathStep::Index(index), Value::Array(mut list)) => {
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let at = if *index < 0 { length + index } else { *index };
            let at = usize::try_from(at).ok().filter(|at| *at < list.len());
            into.push(at.map_or(Value::Null, |at| list.swap_remove(at)));
        }
        (JsonPathStep::Index(_), other) => return no("numbered values", &other),
        (JsonPathStep::Each, Value::Array(list)) => into.extend(list),
        (JsonPathStep::Each, Value::Object(map)) => into.extend(map.into_iter().map(|(_, value)| value)),
        (JsonPathStep::Each, other) => return no("values in it", &other),
        (JsonPathStep::Word(word), value) => into.push(apply_function(word, value)?),
    }
    Ok(())
}

fn apply_function(word: &str, value: Value) -> Result<Value, String> {
    let no = |value: &Value| Err(format!("{} has no `{word}`", describe_kind(value)));
    Ok(match (word, value) {
        ("length", Value::Array(list)) => list.len().into(),
        ("length", Value::Object(map)) => map.len().into(),
        ("length", Value::String(text)) => text.chars().count().into(),
        ("length", Value::Null) => 0.into(),
        ("keys", Value::Object(map)) => {
            let mut keys: Vec<String> = map.keys().cloned().collect();
            keys.sort();
            keys.into()
        }
        ("type", value) => describe_kind(&value).trim_start_matches("an ").trim_start_matches("a ").into(),
        ("not", value) => matches!(value, Value::Null | Value::Bool(false)).into(),
        ("first", Value::Array(list)) => list.into_iter().next().unwrap_or_default(),
        ("last", Value::Array(list)) => list.into_iter().next_back().unwrap_or_default(),
        ("sort" | "unique", Value::Array(mut list)) => {
            list.sort_by_key(Value::to_string);
            if word == "unique" {
                list.dedup();
            }
            list.into()
        }
        ("tostring", value) => format_values_raw(&[value]).into(),
        (_, other) => return no(&other),
    })
}

fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Values as `jq -r` writes them, a line each.
pub(super) fn format_values_raw(values: &[Value]) -> String {
    let line = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    values.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{format_values_raw, parse_json_path};

    #[test]
    fn paths_lead_where_jq_leads() {
        let root = serde_json::json!({"a": {"b": [1, "two", null], "c d": true}, "n": 1.5, "l": [{"x": 1}, {"x": 2}]});
        let at = |path: &str| {
            parse_json_path(path).and_then(|query| query.run(&root)).map(|found| format_values_raw(&found))
        };
        for (path, value) in [
            (".a.b[0]", "1"),
            (".a.b[-2]", "two"),
            (".a.b[9]", "null"),
            (".a[\"c d\"]", "true"),
            (".a.\"c d\"", "true"),
            (".n", "1.5"),
            (".l[].x", "1\n2"),
            (".a.b | length", "3"),
            (".a|keys|length", "2"),
            (".missing.too", "null"),
            (".l|first|.x", "1"),
            (".a | type", "object"),
            (".a.b[1]?", "two"),
            (".", &root.to_string()),
        ] {
            assert_eq!(at(path).as_deref(), Ok(value), "{path}");
        }
        for path in [
            "",
            "a",
            ".a..b",
            ".a[",
            ".a[x]",
            ".a | select(.b)",
            ".a \"",
            ".a + 1",
            "..",
            ".a | input",
            "env",
        ] {
            assert!(parse_json_path(path).is_err(), "{path}");
        }
        assert!(at(".n.x").is_err() && at(".n[]").is_err() && at(".n[0]").is_err());
    }
}
