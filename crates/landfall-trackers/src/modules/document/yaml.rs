//! Front matter: the part of YAML that people write above a note, read strictly, with places.
//!
//! Understood: `key: value`, lists in brackets or as `- item` lines, maps inside them, quoted text, text over several
//! lines after `|` or `>`, and comments. Anchors, tags and several documents are not. A field that is not understood
//! spoils only itself.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{DocumentField, line_at};
use crate::modules::problem::{ModuleLineProblem, shorten_text};

const DEPTH_MAX: usize = 16; // what a person nests; beyond it something is wrong

/// A line with its place.
#[derive(Debug, Clone, Copy)]
struct YamlLine<'a> {
    /// Without its end.
    text: &'a str,
    start: usize,
}

impl YamlLine<'_> {
    fn end_offset(&self) -> usize {
        self.start + self.text.len()
    }

    fn is_blank(&self) -> bool {
        let text = self.text.trim();
        text.is_empty() || text.starts_with('#')
    }

    fn is_inner(&self) -> bool {
        self.text.starts_with([' ', '\t']) || self.text.starts_with("- ") || self.text == "-"
    }
}

fn split_lines(text: &str) -> Vec<YamlLine<'_>> {
    let mut next = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        lines.push(YamlLine { text: line.trim_end_matches(['\n', '\r']), start: next });
        next += line.len();
    }
    lines
}

pub(super) fn parse_fields(text: &str) -> Result<(Vec<DocumentField>, usize), ModuleLineProblem> {
    let mut lines = split_lines(text);
    if let Some(first) = lines.first_mut()
        && let Some(rest) = first.text.strip_prefix('\u{feff}')
    {
        *first = YamlLine { text: rest, start: '\u{feff}'.len_utf8() };
    }
    let fence = |line: &YamlLine<'_>| line.text.trim_end() == "---";
    let Some(open) =
        lines.iter().position(|line| !line.text.trim().is_empty()).filter(|at| fence(&lines[*at]))
    else {
        return Err(ModuleLineProblem::new(1, "there is no front matter")
            .with_hint("begin with a line `---`, then `key: value` lines"));
    };
    let Some(length) = lines[open + 1..].iter().position(|line| fence(line) || line.text.trim_end() == "...")
    else {
        let hint = "close it with a line `---`";
        return Err(ModuleLineProblem::new(open + 1, "the front matter is not closed").with_hint(hint));
    };
    let inside = &lines[open + 1..open + 1 + length];
    let end = lines[open + 1 + length].start;
    let mut fields = Vec::new();
    let mut at = 0;
    while at < inside.len() {
        let line = inside[at];
        if line.is_blank() {
            at += 1;
            continue;
        }
        let number = open + 2 + at;
        let key = (!line.is_inner()).then(|| key_of(line.text)).flatten();
        let Some((key, value_at)) = key else {
            return Err(ModuleLineProblem::new(
                number,
                format!("`{}` is not `key: value`", shorten_text(line.text.trim())),
            )
            .with_hint("a field is a word, a colon, a space and its value"));
        };
        // The field goes on as long as lines are indented or list items; blank lines count only in between.
        let more = inside[at + 1..].iter().take_while(|line| line.is_inner() || line.is_blank());
        let rest: Vec<YamlLine<'_>> = more.copied().collect();
        let kept = rest
            .iter()
            .rposition(|line| line.is_inner() && !line.text.trim().is_empty())
            .map_or(0, |last| last + 1);
        fields.push(parse_field(text, line, key, value_at, &rest[..kept]));
        at += 1 + kept;
    }
    Ok((fields, end))
}

/// The key of a line, and where its value begins.
fn key_of(text: &str) -> Option<(String, usize)> {
    let (key, rest) = match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let close = text[1..].find(quote)? + 1;
            (text[1..close].to_owned(), close + 1)
        }
        _ => {
            let colon = text.match_indices(':').map(|(at, _)| at).find(|at| {
                let after = &text[at + 1..];
                after.is_empty() || after.starts_with([' ', '\t'])
            })?;
            (text[..colon].trim_end().to_owned(), colon)
        }
    };
    let after = text[rest..].strip_prefix(':')?;
    let plain = !key.is_empty() && !key.starts_with(['[', '{', '&', '*', '!', '|', '>', '%', '@', '`', '#']);
    (plain && (after.is_empty() || after.starts_with([' ', '\t']))).then_some((key, rest + 1))
}

fn parse_field(
    text: &str,
    line: YamlLine<'_>,
    key: String,
    value_at: usize,
    rest: &[YamlLine<'_>],
) -> DocumentField {
    let inline = &line.text[value_at..];
    let (value, _) = cut_comment(inline);
    let lead = value.len() - value.trim_start().len();
    let start = line.start + value_at + lead;
    let block_text = is_block_text(value.trim());
    let (read, span) = match rest {
        [] => (scalar_or_flow(value.trim()), start..line.start + value_at + value.trim_end().len().max(lead)),
        [.., last] => {
            let read = match value.trim() {
                "" => parse_block(rest, 0),
                style if block_text => Ok(Value::String(read_block_scalar(style, rest))),
                first => join_continued(first, rest),
            };
            (read, start..last.end_offset())
        }
    };
    // Comments that a new value would wipe out with the old one.
    let comments = match rest {
        [] => Vec::new(),
        // A `#` in text over several lines is text.
        _ if block_text => cut_comment(inline).1.map(str::to_owned).into_iter().collect(),
        lines => std::iter::once(inline)
            .chain(lines.iter().map(|line| line.text))
            .filter_map(|text| cut_comment(text).1.map(str::to_owned))
            .collect(),
    };
    DocumentField { key, line: line_at(text, line.start), value: read, span, comments }
}

fn is_block_text(value: &str) -> bool {
    matches!(value, "|" | "|-" | "|+" | ">" | ">-" | ">+")
}

/// The text before a comment, and the comment.
fn cut_comment(text: &str) -> (&str, Option<&str>) {
    let (mut quote, mut before) = (None, ' ');
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if open == c => quote = None,
            Some(_) => {}
            // A quote opens only where a value may begin: `it's` is a word.
            None if (c == '"' || c == '\'') && matches!(before, ' ' | '\t' | '[' | '{' | ',' | ':') => {
                quote = Some(c)
            }
            None if c == '#' && matches!(before, ' ' | '\t') => return (&text[..at], Some(&text[at..])),
            None => {}
        }
        before = c;
    }
    (text, None)
}

/// Plain text that goes on in further lines is one line.
fn join_continued(first: &str, rest: &[YamlLine<'_>]) -> Result<Value, String> {
    let mut all = first.to_owned();
    for line in rest {
        let text = cut_comment(line.text).0.trim();
        if !text.is_empty() {
            all.push(' ');
            all.push_str(text);
        }
    }
    scalar_or_flow(&all)
}

fn read_block_scalar(style: &str, rest: &[YamlLine<'_>]) -> String {
    let indent = rest
        .iter()
        .filter(|line| !line.text.trim().is_empty())
        .map(|line| indent_width(line.text))
        .min()
        .unwrap_or(0);
    let mut out = String::new();
    for line in rest {
        if !out.is_empty() {
            out.push(if style.starts_with('|') { '\n' } else { ' ' });
        }
        out.push_str(line.text.get(indent..).unwrap_or("").trim_end());
    }
    out
}

fn indent_width(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// A list or a map over several lines.
fn parse_block(lines: &[YamlLine<'_>], nested: usize) -> Result<Value, String> {
    if nested > DEPTH_MAX {
        return Err("it is nested too deeply".to_owned());
    }
    let lines: Vec<YamlLine<'_>> = lines.iter().filter(|line| !line.is_blank()).copied().collect();
    let Some(first) = lines.first() else { return Ok(Value::Null) };
    let indent = indent_width(first.text);
    let is_item = |text: &str| text.starts_with("- ") || text == "-";
    let list = is_item(first.text.trim_start());
    // Each item or key, with the lines that belong to it.
    let mut groups: Vec<Vec<YamlLine<'_>>> = Vec::new();
    for line in lines {
        let content = line.text.trim_start();
        match indent_width(line.text) {
            here if here < indent => {
                return Err(format!("`{}` is indented less than what it belongs to", shorten_text(content)));
            }
            here if here == indent && (!list || is_item(content)) => groups.push(vec![line]),
            here if here == indent => {
                return Err(format!("`{}` is no item of the list", shorten_text(content)));
            }
            _ => groups.last_mut().expect("the first line has this depth").push(line),
        }
    }
    if list {
        let item = |group: &Vec<YamlLine<'_>>| -> Result<Value, String> {
            let (head, rest) = (group[0], &group[1..]);
            let dash = indent_width(head.text) + 1;
            let content = head.text[dash..].trim_start();
            if is_item(content) {
                return Err("lists directly inside lists are not understood".to_owned());
            }
            if content.is_empty() {
                return parse_block(rest, nested + 1);
            }
            if key_of(content).is_some() && !content.starts_with(['"', '\'', '[', '{']) {
                // `- module: a` with more keys below: a map whose first key stands beside the dash.
                let inner = YamlLine { text: content, start: head.start };
                return map(&[&[inner], rest].concat(), nested + 1, true);
            }
            match rest {
                [] => scalar_or_flow(cut_comment(content).0.trim()),
                rest => join_continued(cut_comment(content).0.trim(), rest),
            }
        };
        return groups.iter().map(item).collect::<Result<Vec<_>, _>>().map(Value::Array);
    }
    map(&groups.concat(), nested, false)
}

/// A map; with `beside` its first line lost its indentation to a dash.
fn map(lines: &[YamlLine<'_>], nested: usize, beside: bool) -> Result<Value, String> {
    if nested > DEPTH_MAX {
        return Err("it is nested too deeply".to_owned());
    }
    let indent = match (beside, lines) {
        (true, [_, second, ..]) => indent_width(second.text),
        (true, _) => 0,
        (false, _) => lines.first().map_or(0, |line| indent_width(line.text)),
    };
    let mut groups: Vec<Vec<YamlLine<'_>>> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        match (place, indent_width(line.text)) {
            (0, _) => groups.push(vec![*line]),
            (_, here) if here == indent => groups.push(vec![*line]),
            (_, here) if here < indent => {
                return Err(format!("`{}` is indented less than its map", shorten_text(line.text.trim())));
            }
            _ => groups.last_mut().expect("the first line opened a group").push(*line),
        }
    }
    let mut map = Map::new();
    for group in groups {
        let (head, rest) = (group[0].text.trim_start(), &group[1..]);
        let (key, at) =
            key_of(head).ok_or_else(|| format!("`{}` is not `key: value`", shorten_text(head)))?;
        let value = cut_comment(&head[at..]).0.trim();
        let value = match (value, rest) {
            ("", rest) => parse_block(rest, nested + 1)?,
            (value, []) => scalar_or_flow(value)?,
            (style, rest) if is_block_text(style) => Value::String(read_block_scalar(style, rest)),
            (value, rest) => join_continued(value, rest)?,
        };
        if map.insert(key.clone(), value).is_some() {
            return Err(format!("`{}` is there twice", shorten_text(&key)));
        }
    }
    Ok(Value::Object(map))
}

fn scalar_or_flow(text: &str) -> Result<Value, String> {
    let mut flow = YamlFlowParser { rest: text };
    match text.chars().next() {
        None => Ok(Value::Null),
        Some('[' | '{') => {
            let value = flow.parse_value(0)?;
            match flow.rest.trim() {
                "" => Ok(value),
                more => Err(format!("`{}` stands after the end of the value", shorten_text(more))),
            }
        }
        Some('"' | '\'') => {
            let value = flow.take_quoted()?;
            match flow.rest.trim() {
                "" => Ok(Value::String(value)),
                more => Err(format!("`{}` stands after the closing quote", shorten_text(more))),
            }
        }
        Some('&' | '*' | '!' | '%' | '@' | '`') => {
            Err(format!("`{}` is more YAML than is understood here", shorten_text(text)))
        }
        Some(_) if is_block_text(text) => Ok(Value::String(String::new())),
        Some(_) => Ok(parse_plain(text)),
    }
}

/// A word without quotes. Only what reads back as it was written is a number: `007` and `1.10` are words.
fn parse_plain(text: &str) -> Value {
    match text {
        "null" | "~" | "Null" | "NULL" => return Value::Null,
        "true" | "True" => return Value::Bool(true),
        "false" | "False" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        return Value::from(number);
    }
    if text.contains('.')
        && let Ok(number) = text.parse::<f64>()
        && number.to_string() == text
    {
        return Value::from(number);
    }
    Value::String(text.to_owned())
}

/// What stands in brackets.
struct YamlFlowParser<'a> {
    rest: &'a str,
}

impl YamlFlowParser<'_> {
    fn parse_value(&mut self, nested: usize) -> Result<Value, String> {
        if nested > DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some('[') => {
                let mut items = Vec::new();
                self.rest = &self.rest[1..];
                while !self.skip_closing(']')? {
                    items.push(self.parse_value(nested + 1)?);
                    self.skip_comma(']')?;
                }
                Ok(Value::Array(items))
            }
            Some('{') => {
                let mut map = Map::new();
                self.rest = &self.rest[1..];
                while !self.skip_closing('}')? {
                    let key = match self.rest.chars().next() {
                        Some('"' | '\'') => self.take_quoted()?,
                        _ => self.take_word(&[':', ',', '}']).to_owned(),
                    };
                    self.rest = self.rest.trim_start();
                    self.rest = self
                        .rest
                        .strip_prefix(':')
                        .ok_or_else(|| format!("`{}` in braces has no value", shorten_text(&key)))?;
                    let value = self.parse_value(nested + 1)?;
                    if map.insert(key.clone(), value).is_some() {
                        return Err(format!("`{}` is there twice", shorten_text(&key)));
                    }
                    self.skip_comma('}')?;
                }
                Ok(Value::Object(map))
            }
            Some('"' | '\'') => self.take_quoted().map(Value::String),
            Some(_) | None => Ok(parse_plain(self.take_word(&[',', ']', '}']).trim())),
        }
    }

    fn skip_closing(&mut self, with: char) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(with) {
            Some(rest) => {
                self.rest = rest;
                Ok(true)
            }
            None if self.rest.is_empty() => Err(format!("the closing `{with}` is missing")),
            None => Ok(false),
        }
    }

    /// Over the comma; the closing bracket stays for `closes`.
    fn skip_comma(&mut self, close: char) -> Result<(), String> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            return Ok(());
        }
        match self.rest {
            rest if rest.starts_with(close) => Ok(()),
            "" => Err(format!("the closing `{close}` is missing")),
            rest => Err(format!("a comma or `{close}` is missing before `{}`", shorten_text(rest))),
        }
    }

    fn take_word(&mut self, ends: &[char]) -> &str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.trim()
    }

    fn take_quoted(&mut self) -> Result<String, String> {
        let quote = self.rest.chars().next().expect("called at a quote");
        let mut out = String::new();
        let mut chars = self.rest[1..].char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    chars.next();
                    out.push('\'');
                }
                c if c == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(out);
                }
                '\\' if quote == '"' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, '0')) => out.push('\0'),
                    Some((_, c @ ('"' | '\\' | '/' | ' '))) => out.push(c),
                    Some((_, 'u')) => {
                        let code: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        let c = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        out.push(c.ok_or_else(|| format!("`\\u{code}` is no character"))?);
                    }
                    Some((_, c)) => return Err(format!("`\\{c}` means nothing in quotes")),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err("the quote is not closed".to_owned())
    }
}

/// A value on one line.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) if reads_back(text) => text.clone(),
        Value::String(text) => format_quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(in_flow).collect::<Vec<_>>().join(", ")),
        Value::Object(_) => in_flow(value),
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn in_flow(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
                && reads_back(text) =>
        {
            text.clone()
        }
        Value::String(text) => format_quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(in_flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", in_flow(&Value::String(key.clone())), in_flow(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn format_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Whether the text can stand without quotes.
fn reads_back(text: &str) -> bool {
    let odd_start = text.starts_with([
        '"', '\'', '[', '{', '}', ']', '&', '*', '!', '|', '>', '%', '@', '`', '#', '-', '?', ',', ':',
    ]);
    let odd = text.trim() != text
        || text.contains(": ")
        || text.ends_with(':')
        || text.contains(" #")
        || text.contains("\t#");
    !text.is_empty()
        && !odd_start
        && !odd
        && !text.chars().any(char::is_control)
        && parse_plain(text).is_string()
        && text != "---"
        && text != "..."
}

fn detect_newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

pub(super) fn format_replacement(
    text: &str,
    span: &Range<usize>,
    value: &Value,
    comments: &[String],
) -> String {
    // `key:` with nothing behind it has no space to write after.
    let space = if text[..span.start].ends_with(':') { " " } else { "" };
    let mut out = format!("{space}{}", format_value(value));
    for comment in comments {
        out.push_str(detect_newline(text));
        out.push_str(comment.trim());
    }
    // A comment behind an empty value needs its space back.
    if text[span.end..].starts_with('#') {
        out.push(' ');
    }
    out
}

pub(super) fn format_added_field(text: &str, key: &str, value: &Value) -> String {
    format!("{key}: {}{}", format_value(value), detect_newline(text))
}
