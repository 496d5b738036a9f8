//! Task lists of other tools, read into tasks. Nothing is touched here: who is there already comes in, what to add goes out.
//!
//! [`read`] makes an [`ImportFile`] of a file, one reader per format; [`settle`] looks its references up, finds circles, and
//! leaves out what was imported before. A format is a file here and a line in [`Format`].

mod beads;
mod json;
mod markdown;
mod prd;
mod settle;
mod taskmaster;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::taskfile::TaskFileSource;
use crate::{NewTask, TaskLine, UnknownWord, WireTaskId};

pub use settle::{ImportPlan, resolve_import};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A Markdown document with `- [ ]` items.
    Markdown,
    /// `.beads/issues.jsonl`, or what `bd export` writes.
    Beads,
    /// `tasks.json` of Task Master.
    Taskmaster,
    /// `prd.json`: user stories for a loop.
    Prd,
    /// Module folders: `AiTasks/`, `TASK/`, or the `.working/` of a notebook. Whoever answers reads them.
    Modules,
}

impl Format {
    /// Every one there is.
    pub const ALL: [Self; 5] = [Self::Markdown, Self::Beads, Self::Taskmaster, Self::Prd, Self::Modules];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Beads => "beads",
            Self::Taskmaster => "taskmaster",
            Self::Prd => "prd",
            Self::Modules => "modules",
        }
    }

    /// What a task says about where it came from, when the file calls it `id`.
    #[must_use]
    pub fn source(self, id: &str) -> String {
        match self {
            // The folder goes on showing how the task stands, so it is more than where it was once read from.
            Self::Modules => format!("module:{id}"),
            Self::Markdown | Self::Beads | Self::Taskmaster | Self::Prd => format!("import:{self}:{id}"),
        }
    }

    /// What it is, for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Markdown => "a Markdown checklist",
            Self::Beads => "issues of beads, a line each",
            Self::Taskmaster => "the tasks.json of Task Master",
            Self::Prd => "a prd.json with user stories",
            Self::Modules => "a folder of task modules",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Format {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(text)).ok_or_else(|| UnknownWord {
            text: text.chars().take(40).collect(),
            wanted: "a format that can be imported",
            known: Self::ALL.map(Self::word).join(", "),
        })
    }
}

/// Where in a file something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportPlace {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(usize),
    /// A place in a JSON document: `tasks[2].status`.
    Path(String),
    /// A place in the JSON document on one line.
    LinePath(usize, String),
}

/// Why a file cannot be imported. Nothing of it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{}: {message}", place_suffix(place))]
pub struct ImportError {
    /// The file as it was named.
    pub file: String,
    /// Where.
    pub place: ImportPlace,
    /// What.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

fn place_suffix(place: &ImportPlace) -> String {
    match place {
        ImportPlace::Whole => String::new(),
        ImportPlace::Line(line) => format!(":{line}"),
        ImportPlace::Path(path) => format!(": {path}"),
        ImportPlace::LinePath(line, path) => format!(":{line}: {path}"),
    }
}

/// What is wrong, before the name of the file is known.
#[derive(Debug)]
struct ImportProblem {
    place: ImportPlace,
    message: String,
    hint: Option<String>,
}

impl ImportProblem {
    fn new(place: ImportPlace, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn into_import_error(self, file: &str) -> ImportError {
        let Self { place, message, hint } = self;
        ImportError { file: file.to_owned(), place, message, hint }
    }
}

/// What a file holds, before its references are looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportFile {
    /// The file as it was named.
    pub file: String,
    /// How it is written.
    pub format: Format,
    /// What is to be done, in the order of the file.
    pub items: Vec<ImportItem>,
    /// The ids of what is not to be done any more: whoever needs it need not wait.
    pub over: BTreeSet<String>,
    /// What was read and is not taken over, with how often: done items, fields without a meaning here.
    pub left_out: LeftOutCounts,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportItem {
    /// What the file calls it; no two are called the same.
    pub id: String,
    /// Where it is.
    pub place: ImportPlace,
    /// Its words, without needs and parent.
    pub task: NewTask,
    /// The ids it must wait for.
    pub needs: Vec<ImportLink>,
    /// The id it is a part of.
    pub parent: Option<ImportLink>,
}

/// One item names another.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportLink {
    /// The other.
    pub to: String,
    /// Where.
    pub place: ImportPlace,
}

/// Things with how often they were met, in the order in which they first were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOutCounts(Vec<LeftOut>);

impl LeftOutCounts {
    /// One more of these.
    pub fn add(&mut self, what: &str) {
        let what = match self.0.iter().any(|it| it.what == what) || self.0.len() < WHAT_MAX {
            true => what,
            false => "more of other kinds",
        };
        match self.0.iter_mut().find(|it| it.what == what) {
            Some(it) => it.count += 1,
            None => self.0.push(LeftOut { what: what.to_owned(), count: 1 }),
        }
    }
}

const WHAT_MAX: usize = 40; // what a person reads; a file with more kinds of fields is no task list

/// Something that was read and not taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// An item that was imported before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct There {
    /// The task it became then.
    pub id: WireTaskId,
    /// What the file calls it.
    pub item: String,
    /// Its title in the file.
    pub title: String,
}

/// Tasks from a list of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportText {
    /// What is in the file.
    pub text: String,
    /// What the file is called, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How it is written; guessed when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The list that is meant, of a file with several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Whether what was imported before is added once more.
    #[serde(default)]
    pub again: bool,
    /// Whether only to look.
    #[serde(default)]
    pub dry_run: bool,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Imported {
    /// How the file was read.
    pub format: Format,
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// What is new in it; `#2` is the second of these.
    pub tasks: Vec<NewTask>,
    /// The same as tasks, if they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TaskLine>,
    /// What was imported before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub there: Vec<There>,
    /// What was read and not taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// How the text is written, by what is in it.
///
/// # Errors
/// When it looks like nothing that is known.
pub fn guess_format(file: &TaskFileSource<'_>) -> Result<Format, ImportError> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    let unknown = || {
        let known: Vec<String> =
            Format::ALL.iter().map(|it| format!("{it} ({})", it.description())).collect();
        ImportProblem::new(ImportPlace::Whole, "this looks like no task list that is known")
            .with_hint(format!("`--format` says what it is: {}", known.join(", ")))
            .into_import_error(file.name)
    };
    let in_list = text.strip_prefix('[').map(str::trim_start);
    if text.starts_with('{') || in_list.is_some_and(|rest| rest.starts_with(['{', ']'])) {
        match json::guess_format(text) {
            Ok(Some(format)) => return Ok(format),
            // A Markdown document may begin with a brace, too.
            Err(bad) if !markdown::is_checklist(text) => {
                let hint = "mend it; or `--format` says what it is";
                return Err(bad.with_hint(hint).into_import_error(file.name));
            }
            Ok(None) | Err(_) => {}
        }
    }
    if markdown::is_checklist(text) { Ok(Format::Markdown) } else { Err(unknown()) }
}

/// Reads a file. Of a file with several lists, `list` names the one that is meant.
///
/// # Errors
/// The first thing that cannot be understood, with its place.
pub fn read(
    file: &TaskFileSource<'_>,
    format: Format,
    list: Option<&str>,
) -> Result<ImportFile, ImportError> {
    let text = file.text.trim_start_matches('\u{feff}');
    let read = match format {
        Format::Markdown => markdown::read(file.name, text),
        Format::Beads => beads::read(text),
        Format::Taskmaster => taskmaster::read(text, list),
        Format::Prd => prd::read(text),
        Format::Modules => {
            Err(ImportProblem::new(ImportPlace::Whole, "task modules are folders, and this is a text")
                .with_hint("name the folder: `landfall project import AiTasks/`"))
        }
    };
    let ImportContent { items, over, left_out } = read.map_err(|bad| bad.into_import_error(file.name))?;
    let mut seen: BTreeMap<&str, &ImportPlace> = BTreeMap::new();
    for item in &items {
        if seen.insert(&item.id, &item.place).is_some() {
            let message = format!("two items are called `{}`", words::shorten_for_message(&item.id));
            let hint = "give one of them another name; nothing was added";
            return Err(ImportProblem::new(item.place.clone(), message)
                .with_hint(hint)
                .into_import_error(file.name));
        }
    }
    Ok(ImportFile { file: file.name.to_owned(), format, items, over, left_out })
}

/// What a reader of one format gathers.
#[derive(Default)]
struct ImportContent {
    items: Vec<ImportItem>,
    over: BTreeSet<String>,
    left_out: LeftOutCounts,
}
