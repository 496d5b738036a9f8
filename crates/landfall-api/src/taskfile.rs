//! Tasks as files: Markdown with front matter, in TOML between `+++` or simple YAML between `---`.
//!
//! A file holds one task, or several, each with its own front matter. What [`write()`] makes, [`read`] reads back as the
//! same task. Inside one batch a task may be named by its `id`, by `#2` (the second of the batch), or by the id of a
//! task that is already there.

use std::collections::BTreeMap;

use thiserror::Error;
use toml::{Table, Value};

use crate::nearest::nearest_word;
use crate::{NewTask, Size, TaskRef, WireTaskId};

/// The keys of the front matter.
pub const KEYS: &[&str] = &[
    "id", "title", "body", "criteria", "size", "tags", "priority", "needs", "touches", "parent", "flow",
    "agent", "draft",
];

/// What is wrong with a task file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {message}")]
pub struct TaskFileError {
    /// The file as it was named.
    pub file: String,
    /// Where, counted from 1.
    pub line: usize,
    /// What.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A file to read: its name for messages, and what is in it.
#[derive(Debug, Clone, Copy)]
pub struct TaskFileSource<'a> {
    /// As the person named it.
    pub name: &'a str,
    /// All of it.
    pub text: &'a str,
}

/// The tasks of all files, as one batch in the order of the files.
///
/// # Errors
/// The first thing that cannot be understood, with its place.
pub fn read(files: &[TaskFileSource<'_>]) -> Result<Vec<NewTask>, TaskFileError> {
    let mut drafts = Vec::new();
    for file in files {
        for block in split(file)? {
            drafts.push(block.parse_draft(file.name)?);
        }
    }
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for (place, draft) in (1..).zip(&drafts) {
        if let Some(id) = &draft.id
            && places.insert(id.clone(), place).is_some()
        {
            return Err(draft.error_here(format!("two tasks have the id `{id}`"), None));
        }
    }
    drafts.into_iter().map(|draft| draft.resolve_refs(&places)).collect()
}

/// Whether the text is a task file and not, say, a list of titles.
#[must_use]
pub fn is_task_file(text: &str) -> bool {
    let first = text.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| FrontMatterFence::from_line(line).is_some())
}

/// The task as a file. `id` is how other files of the same export name it.
#[must_use]
pub fn write(id: Option<WireTaskId>, task: &NewTask) -> String {
    let plain = write_with(id, task, BodySource::Text);
    // A body may hold a line that looks like front matter, or spaces at its ends, or an open block of code that would
    // swallow a task after it. Then it goes into the front matter.
    let with_another = format!("{plain}+++\ntitle = \"next\"\n+++\n");
    match split(&TaskFileSource { name: "", text: &with_another })
        .map(|blocks| (blocks.len(), trim_blank(&blocks[0].body)))
    {
        Ok((2, body)) if body == task.body => plain,
        Ok(_) | Err(_) => write_with(id, task, BodySource::FrontMatter),
    }
}

/// A file name for a task: its id and the plain letters of its title. It holds no folder and no surprise.
#[must_use]
pub fn file_name(id: WireTaskId, title: &str) -> String {
    const NAME_CHARS_MAX: usize = 40; // enough to recognise it, short enough for a listing
    let mut name = id.to_string();
    let mut gap = true;
    for c in title.chars() {
        if name.len() >= NAME_CHARS_MAX {
            break;
        }
        if c.is_ascii_alphanumeric() {
            if gap {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
            gap = false;
        } else {
            gap = true;
        }
    }
    name + ".md"
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BodySource {
    Text,
    FrontMatter,
}

fn write_with(id: Option<WireTaskId>, task: &NewTask, body_in: BodySource) -> String {
    let mut out = String::from("+++\n");
    let mut put = |key: &str, value: String| out.push_str(&format!("{key} = {value}\n"));
    let list = |items: &[String]| {
        format!("[{}]", items.iter().map(|it| quote_toml_string(it)).collect::<Vec<_>>().join(", "))
    };
    if let Some(id) = id {
        put("id", quote_toml_string(&id.to_string()));
    }
    put("title", quote_toml_string(&task.title));
    if let Some(size) = task.size {
        put("size", quote_toml_string(size.word()));
    }
    if !task.tags.is_empty() {
        put("tags", list(&task.tags));
    }
    if let Some(priority) = task.priority {
        put("priority", priority.to_string());
    }
    if !task.needs.is_empty() {
        put("needs", list(&task.needs.iter().map(ToString::to_string).collect::<Vec<_>>()));
    }
    if !task.touches.is_empty() {
        put("touches", list(&task.touches));
    }
    if let Some(parent) = task.parent {
        put("parent", quote_toml_string(&parent.to_string()));
    }
    if let Some(flow) = &task.flow {
        put("flow", quote_toml_string(flow));
    }
    if let Some(agent) = &task.agent {
        put("agent", quote_toml_string(agent));
    }
    if task.draft {
        put("draft", "true".to_owned());
    }
    if !task.criteria.is_empty() {
        put("criteria", list(&task.criteria));
    }
    match body_in {
        BodySource::FrontMatter => {
            put("body", quote_toml_string(&task.body));
            out.push_str("+++\n");
        }
        BodySource::Text if task.body.is_empty() => out.push_str("+++\n"),
        BodySource::Text => {
            out.push_str("+++\n\n");
            out.push_str(&task.body);
            out.push('\n');
        }
    }
    out
}

/// A string of TOML on one line, whatever is in it: no line of a value may look like the end of the front matter.
#[must_use]
pub fn quote_toml_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// The line that opens and closes front matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrontMatterFence {
    Toml,
    Yaml,
}

impl FrontMatterFence {
    fn from_line(line: &str) -> Option<Self> {
        match line.trim_end() {
            "+++" => Some(Self::Toml),
            "---" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// One task of a file, in pieces.
struct TaskFileBlock<'a> {
    matter: Option<(FrontMatterFence, usize, Vec<&'a str>)>, // how it is written, its first line, its lines
    line: usize,
    body: Vec<&'a str>,
}

fn split<'a>(file: &TaskFileSource<'a>) -> Result<Vec<TaskFileBlock<'a>>, TaskFileError> {
    let fail = |line: usize, message: &str, hint: Option<&str>| TaskFileError {
        file: file.name.to_owned(),
        line,
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    };
    let lines: Vec<&str> = file.text.trim_start_matches('\u{feff}').lines().collect();
    let Some(first) = lines.iter().position(|line| !line.trim().is_empty()) else {
        return Err(fail(1, "the file is empty", None));
    };
    let mut blocks: Vec<TaskFileBlock<'a>> = Vec::new();
    let mut at = first;
    let mut code: Option<&str> = None; // inside a fenced block of Markdown nothing is front matter
    while at < lines.len() {
        let line = lines[at];
        let opens = match (FrontMatterFence::from_line(line), code) {
            (Some(FrontMatterFence::Toml), None) => Some(FrontMatterFence::Toml),
            // In Markdown `---` is a rule as well: past the first block it counts only if keys follow and it closes.
            (Some(FrontMatterFence::Yaml), None)
                if blocks.is_empty() || starts_yaml_block(&lines[at + 1..]) =>
            {
                Some(FrontMatterFence::Yaml)
            }
            (Some(_), _) | (None, _) => None,
        };
        if let Some(fence) = opens {
            let inside = at + 1;
            let length =
                lines[inside..].iter().position(|line| FrontMatterFence::from_line(line) == Some(fence));
            let Some(length) = length else {
                let hint = "close it with the same line that opened it";
                return Err(fail(at + 1, "the front matter is not closed", Some(hint)));
            };
            let matter = lines[inside..inside + length].to_vec();
            blocks.push(TaskFileBlock {
                matter: Some((fence, inside + 1, matter)),
                line: at + 1,
                body: Vec::new(),
            });
            at = inside + length + 1;
            continue;
        }
        let trimmed = line.trim_start();
        code = match code {
            Some(mark) if trimmed.starts_with(mark) => None,
            Some(mark) => Some(mark),
            None => ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)),
        };
        if blocks.is_empty() {
            blocks.push(TaskFileBlock { matter: None, line: at + 1, body: Vec::new() });
        }
        blocks.last_mut().expect("pushed just above").body.push(line);
        at += 1;
    }
    Ok(blocks)
}

fn starts_yaml_block(lines: &[&str]) -> bool {
    let Some(length) =
        lines.iter().position(|line| FrontMatterFence::from_line(line) == Some(FrontMatterFence::Yaml))
    else {
        return false;
    };
    let key = |line: &&str| line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key));
    lines[..length].first().is_some_and(key)
}

/// A task before its needs are looked up in the batch.
struct TaskFileDraft {
    file: String,
    line: usize,
    id: Option<String>,
    needs: Vec<String>,
    parent: Option<String>,
    task: NewTask,
}

impl TaskFileBlock<'_> {
    fn parse_draft(self, file: &str) -> Result<TaskFileDraft, TaskFileError> {
        let (mut body_line, mut table) = (self.line, Table::new());
        if let Some((fence, first, lines)) = &self.matter {
            body_line = first + lines.len() + 1;
            table = match fence {
                FrontMatterFence::Toml => read_toml(file, *first, lines)?,
                FrontMatterFence::Yaml => read_yaml(file, *first, lines)?,
            };
        }
        let mut draft = TaskFileDraft {
            file: file.to_owned(),
            line: self.line,
            id: None,
            needs: Vec::new(),
            parent: None,
            task: NewTask {
                source: format!("file:{file}"),
                body: trim_blank(&self.body),
                ..NewTask::default()
            },
        };
        for (key, value) in table {
            draft.line = self.line_of_key(&key);
            draft.set_field(&key, value)?;
        }
        draft.line = self.line;
        if draft.task.title.is_empty() {
            // A file that begins with a heading has its title there.
            let body = std::mem::take(&mut draft.task.body);
            let (first, rest) = body.split_once('\n').unwrap_or((&body, ""));
            match first.strip_prefix("# ") {
                Some(title) => {
                    draft.task.title = title.trim().to_owned();
                    draft.task.body = trim_blank(&rest.lines().collect::<Vec<_>>());
                }
                None => {
                    let hint = "write `title = \"…\"` into the front matter, or begin with `# Title`";
                    draft.line = body_line;
                    return Err(draft.error_here("the task has no title".to_owned(), Some(hint.to_owned())));
                }
            }
        }
        Ok(draft)
    }
}

impl TaskFileBlock<'_> {
    fn line_of_key(&self, key: &str) -> usize {
        let Some((_, first, lines)) = &self.matter else { return self.line };
        let place = lines.iter().position(|line| line.trim_start_matches(['"', '\'']).starts_with(key));
        place.map_or(self.line, |place| first + place)
    }
}

/// Blank lines around a body are layout, not content.
fn trim_blank(lines: &[&str]) -> String {
    let blank = |line: &&str| line.trim().is_empty();
    let start = lines.iter().position(|line| !blank(line)).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !blank(line)).map_or(start, |last| last + 1);
    lines[start..end].join("\n")
}

impl TaskFileDraft {
    fn error_here(&self, message: String, hint: Option<String>) -> TaskFileError {
        TaskFileError { file: self.file.clone(), line: self.line, message, hint }
    }

    fn set_field(&mut self, key: &str, value: Value) -> Result<(), TaskFileError> {
        match key {
            "id" => self.id = Some(self.read_word(key, value)?),
            "title" => self.task.title = self.read_word(key, value)?,
            "body" => self.task.body = self.read_word(key, value)?,
            "criteria" => self.task.criteria = self.read_word_list(key, value, CommaHandling::Kept)?,
            "tags" => self.task.tags = self.read_word_list(key, value, CommaHandling::Split)?,
            "needs" => self.needs = self.read_word_list(key, value, CommaHandling::Split)?,
            "touches" => self.task.touches = self.read_word_list(key, value, CommaHandling::Split)?,
            "parent" => self.parent = Some(self.read_word(key, value)?),
            "flow" => self.task.flow = Some(self.read_word(key, value)?),
            "agent" => self.task.agent = Some(self.read_word(key, value)?),
            "size" => {
                let word = self.read_word(key, value)?;
                let size: Size =
                    word.parse().map_err(|error| self.error_here(format!("size: {error}"), None))?;
                self.task.size = Some(size);
            }
            "priority" => match &value {
                Value::Integer(number) if (0..=9).contains(number) => {
                    self.task.priority = u8::try_from(*number).ok()
                }
                other => {
                    let message = format!("priority is {other}, not a number from 0 (most urgent) to 9");
                    return Err(self.error_here(message, None));
                }
            },
            "draft" => match value {
                Value::Boolean(draft) => self.task.draft = draft,
                other => return Err(self.error_here(format!("draft is {other}, not true or false"), None)),
            },
            unknown => {
                let hint = match nearest_word(KEYS, unknown) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known: {}", KEYS.join(", ")),
                };
                return Err(self.error_here(format!("unknown key `{unknown}`"), Some(hint)));
            }
        }
        Ok(())
    }

    fn read_word(&self, key: &str, value: Value) -> Result<String, TaskFileError> {
        match value {
            Value::String(word) => Ok(word),
            // YAML reads `id: 3` as a number; the person meant the word.
            Value::Integer(number) => Ok(number.to_string()),
            other => Err(self.error_here(format!("{key} is {}, not text", other.type_str()), None)),
        }
    }

    fn read_word_list(
        &self,
        key: &str,
        value: Value,
        commas: CommaHandling,
    ) -> Result<Vec<String>, TaskFileError> {
        match (value, commas) {
            (Value::Array(items), _) => items.into_iter().map(|item| self.read_word(key, item)).collect(),
            (Value::String(text), CommaHandling::Split) => {
                Ok(text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect())
            }
            (value, _) => Ok(vec![self.read_word(key, value)?]),
        }
    }

    fn resolve_refs(mut self, places: &BTreeMap<String, u32>) -> Result<NewTask, TaskFileError> {
        let find = |draft: &Self, key: &str, word: &str| match places.get(word) {
            Some(place) => Ok(TaskRef::Batch(*place)),
            None => word.parse().map_err(|error| draft.error_here(format!("{key}: {error}"), None)),
        };
        self.task.needs =
            self.needs.iter().map(|word| find(&self, "needs", word)).collect::<Result<_, _>>()?;
        self.task.parent = self.parent.as_deref().map(|word| find(&self, "parent", word)).transpose()?;
        Ok(self.task)
    }
}

/// Whether a plain text with commas is a list.
#[derive(Clone, Copy)]
enum CommaHandling {
    Split,
    Kept,
}

fn read_toml(file: &str, first: usize, lines: &[&str]) -> Result<Table, TaskFileError> {
    let text = lines.join("\n");
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = first + text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count();
        TaskFileError { file: file.to_owned(), line, message: error.message().to_owned(), hint: None }
    })
}

/// Flat keys with text, numbers, yes or no, and lists: what people write above a note. More wants TOML.
fn read_yaml(file: &str, first: usize, lines: &[&str]) -> Result<Table, TaskFileError> {
    let mut table = Table::new();
    let mut open: Option<String> = None; // the key whose `- item` lines follow
    for (line, text) in (first..).zip(lines) {
        let fail = |message: String| TaskFileError {
            file: file.to_owned(),
            line,
            message,
            hint: Some("for more than `key: value` and lists, write TOML between `+++` lines".to_owned()),
        };
        let content = text.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if let Some(item) = content.strip_prefix("- ").or_else(|| (content == "-").then_some("")) {
            let key = open.as_ref().ok_or_else(|| fail("a list item without a key above it".to_owned()))?;
            let list = table.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else {
                return Err(fail(format!("`{key}` has a value and a list")));
            };
            list.push(parse_scalar(item.trim()));
            continue;
        }
        let Some((key, value)) = content.split_once(':') else {
            return Err(fail(format!(
                "`{}` is not `key: value`",
                content.chars().take(40).collect::<String>()
            )));
        };
        if text.starts_with([' ', '\t']) {
            return Err(fail("keys inside keys are not understood".to_owned()));
        }
        let (key, value) = (key.trim().to_owned(), value.trim());
        if table.contains_key(&key) || open.as_ref() == Some(&key) {
            return Err(fail(format!("`{key}` is there twice")));
        }
        open = None;
        match value {
            "" => open = Some(key),
            "|" | ">" | "|-" | ">-" | "|+" | ">+" => {
                return Err(fail(format!("`{key}`: text over several lines is not understood here")));
            }
            list if list.starts_with('[') => {
                let Some(inside) = list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
                    return Err(fail(format!("the list of `{key}` does not end on its line")));
                };
                let items = split_list(inside).iter().map(|item| parse_scalar(item)).collect();
                table.insert(key, Value::Array(items));
            }
            value => {
                table.insert(key, parse_scalar(value));
            }
        }
    }
    Ok(table)
}

/// The items between commas, where quotes keep commas in.
fn split_list(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match quote {
            None if c == ',' => {
                items.push(String::new());
                continue;
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(open) if open == c => quote = None,
            None | Some(_) => {}
        }
        items.last_mut().expect("begins with one item").push(c);
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn parse_scalar(text: &str) -> Value {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            let plain = match quote {
                '"' => inside.replace("\\\"", "\"").replace("\\\\", "\\"),
                _ => inside.replace("''", "'"),
            };
            return Value::String(plain);
        }
    }
    // A comment needs a space before it: `C#` is a word.
    let text = text.split_once(" #").map_or(text, |(value, _)| value.trim_end());
    match text {
        "true" | "yes" => Value::Boolean(true),
        "false" | "no" => Value::Boolean(false),
        word => word.parse().map_or_else(|_| Value::String(word.to_owned()), Value::Integer),
    }
}
