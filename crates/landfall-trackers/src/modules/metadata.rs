//! The metadata file of a module: `.index.md`, `.index.json` or `.status.json`, read into a [`ModuleRecord`] and written back.
//!
//! Writing changes only the fields that differ. Everything else (unknown fields, key order, spacing, comments, text
//! below the front matter, a person's spelling of a field or a status) stays as it was.

use serde_json::{Map, Value, json};

use super::document::{Document, DocumentField, Syntax};
use super::problem::{ModuleFormatError, ModuleLineProblem, UnreadableMetadata, shorten_text};
use super::record::{
    CompletedStage, ModuleDependency, ModulePhase, ModuleRecord, ModuleStatus, NotebookStages,
    VersionSpecificFields,
};
use super::text::plain_line;

/// Which file holds the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetadataFormat {
    /// `.index.md`: front matter.
    IndexMd,
    /// `.index.json`.
    IndexJson,
    /// `.status.json` of a notebook.
    StatusJson,
}

impl MetadataFormat {
    /// Every one, the newest first: where a folder has two, this is who is believed.
    pub const ALL: [Self; 3] = [Self::StatusJson, Self::IndexJson, Self::IndexMd];

    /// The name of the file.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::IndexMd => ".index.md",
            Self::IndexJson => ".index.json",
            Self::StatusJson => ".status.json",
        }
    }

    pub(super) fn syntax(self) -> Syntax {
        match self {
            Self::IndexMd => Syntax::FrontMatter,
            Self::IndexJson | Self::StatusJson => Syntax::Json,
        }
    }
}

/// The fields we know, each with the other names it goes by.
pub(super) const FIELDS: &[&[&str]] = &[
    &["title", "name"],
    &["type", "task_type", "taskType"],
    &["status", "state"],
    &["phase"],
    &["completed_steps", "completedSteps", "completed-steps"],
    &["created", "created_at", "createdAt"],
    &["updated", "updated_at", "updatedAt"],
    &["depends_on", "dependsOn", "depends-on", "dependencies"],
    &["tags", "labels"],
    &["branch"],
    &["worktree"],
    &["stage"],
    &["revision"],
    &["compaction_count", "compactionCount"],
    &["vfp_cycles_completed", "vfpCyclesCompleted"],
    &["phase_progress", "phaseProgress"],
    &["check_score", "checkScore"],
    &["retry_count", "retryCount"],
    &["delegation_failures", "delegationFailures"],
];

/// A metadata file, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Which file it is.
    pub form: MetadataFormat,
    /// What it says.
    pub module: ModuleRecord,
    /// What a person should know about it; it can be used all the same.
    pub warnings: Vec<ModuleFormatError>,
    document: Document,
    /// Fields whose words make no sense and count as something else.
    odd: Vec<&'static str>,
}

impl Metadata {
    /// Reads the text of a metadata file.
    ///
    /// # Errors
    /// Everything in it that cannot be understood. Nothing is guessed: an unknown status is an error, not a draft.
    pub fn read(form: MetadataFormat, text: &str) -> Result<Self, UnreadableMetadata> {
        Self::read_named(form, form.file_name(), text)
    }

    /// The same; messages name the file `file`.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_named(form: MetadataFormat, file: &str, text: &str) -> Result<Self, UnreadableMetadata> {
        let unread = |bad: Vec<ModuleLineProblem>| UnreadableMetadata {
            errors: bad.into_iter().map(|bad| bad.in_file(file)).collect(),
        };
        let document = Document::read(form.syntax(), text).map_err(|bad| unread(vec![bad]))?;
        let reading = parse_document(&document);
        if !reading.bad.is_empty() {
            return Err(unread(reading.bad.into_iter().map(|(_, bad)| bad).collect()));
        }
        let warnings = reading.warnings.into_iter().map(|bad| bad.in_file(file)).collect();
        Ok(Self { form, module: reading.module, warnings, document, odd: reading.odd })
    }

    /// A new file for a module.
    #[must_use]
    pub fn new(form: MetadataFormat, module: &ModuleRecord) -> Self {
        let empty = match form {
            MetadataFormat::IndexMd => "---\n---\n",
            MetadataFormat::IndexJson | MetadataFormat::StatusJson => "{\n}\n",
        };
        let mut document = Document::read(form.syntax(), empty).expect("an empty document can be read");
        for (place, (names, value)) in values(module).into_iter().enumerate() {
            if place < ALWAYS || !is_unset(&value) {
                document = document.with_field(names[0], &value);
            }
        }
        Self { form, module: module.clone(), warnings: Vec::new(), document, odd: Vec::new() }
    }

    /// The same file, saying what `module` says. What is said already keeps the form it is said in.
    #[must_use]
    pub fn with_module(&self, module: &ModuleRecord) -> Self {
        let mut document = self.document.clone();
        for ((names, new), (_, old)) in values(module).into_iter().zip(values(&self.module)) {
            if new != old {
                let key =
                    find_field(&document, names).map_or(names[0], |field| field.key.as_str()).to_owned();
                let new = merge_with_field(find_field(&document, names), new);
                document = document.with_field(&key, &new);
            }
        }
        let kept = |name: &&&str| !self.changed_fields(module).contains(*name);
        Self {
            form: self.form,
            module: module.clone(),
            warnings: self.warnings.clone(),
            document,
            odd: self.odd.iter().filter(kept).copied().collect(),
        }
    }

    /// Whether saying what `module` says would write over words that were not understood. Then the file is kept beside.
    #[must_use]
    pub fn would_lose(&self, module: &ModuleRecord) -> bool {
        self.changed_fields(module).iter().any(|name| self.odd.contains(name))
    }

    fn changed_fields(&self, module: &ModuleRecord) -> Vec<&'static str> {
        let pairs = values(module).into_iter().zip(values(&self.module));
        pairs.filter(|((_, new), (_, old))| new != old).map(|((names, _), _)| names[0]).collect()
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// What the file says for the field of this name, if it has it.
    pub(super) fn value_of(&self, name: &str) -> Option<Value> {
        let names = FIELDS.iter().find(|names| names[0] == name)?;
        find_field(&self.document, names)?.value.clone().ok()
    }

    /// Why the module is blocked, where its agent or a person wrote that down.
    #[must_use]
    pub fn blocked_reason(&self) -> Option<String> {
        let value = find_field(&self.document, &["reason"])?.value.as_ref().ok()?;
        value.as_str().map(|text| plain_line(text).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// What it says, as text by field, without its stamps.
    pub(super) fn described_fields(&self) -> Vec<(&'static str, String)> {
        let shown = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let stamps = ["updated", "revision"];
        values(&self.module)
            .into_iter()
            .filter(|(names, _)| !stamps.contains(&names[0]))
            .map(|(names, value)| (names[0], shown(value)))
            .collect()
    }
}

/// The field that is meant: by its own name, or by another it goes by.
fn find_field<'a>(document: &'a Document, names: &[&str]) -> Option<&'a DocumentField> {
    names.iter().find_map(|name| document.fields().iter().find(|field| field.key == *name))
}

/// So many fields, from the first on, stand in every new file.
const ALWAYS: usize = 11;

fn is_unset(value: &Value) -> bool {
    value.is_null() || *value == json!(0) || *value == json!([])
}

/// What a module says, as values, in the order in which a new file has them.
fn values(module: &ModuleRecord) -> Vec<(&'static [&'static str], Value)> {
    let ModuleRecord {
        title,
        kind,
        status,
        phase,
        completed_steps,
        created,
        updated,
        depends_on,
        tags,
        branch,
        worktree,
        stage,
        revision,
        extra,
    } = module;
    let VersionSpecificFields {
        compaction_count,
        vfp_cycles_completed,
        phase_progress,
        check_score,
        retry_count,
        delegation_failures,
    } = extra;
    let needs: Vec<Value> = depends_on
        .iter()
        .map(|need| match need.least {
            None => json!(need.module),
            Some(least) => json!({"module": need.module, "min_status": least.wire_name()}),
        })
        .collect();
    let all = [
        json!(title),
        json!(kind),
        json!(status.wire_name()),
        json!(phase.wire_name()),
        json!(completed_steps),
        json!(created),
        json!(updated),
        json!(needs),
        json!(tags),
        json!(branch),
        json!(worktree),
        stage.as_ref().map_or(Value::Null, stage_value),
        json!(revision),
        json!(compaction_count),
        json!(vfp_cycles_completed),
        json!(phase_progress),
        json!(check_score),
        json!(retry_count),
        json!(delegation_failures),
    ];
    FIELDS.iter().copied().zip(all).collect()
}

fn stage_value(stage: &NotebookStages) -> Value {
    let history: Vec<Value> = stage
        .history
        .iter()
        .map(|done| {
            let CompletedStage { stage, name, completed_at, commit, convergence } = done;
            json!({"stage": stage, "name": name, "completed_at": completed_at, "commit": commit,
                   "convergence": convergence})
        })
        .collect();
    let mut value = json!({"current": stage.current, "history": history});
    if let (Some(total), Value::Object(map)) = (stage.total, &mut value) {
        map.insert("total".to_owned(), json!(total));
    }
    value
}

/// The new value with what the old one says beyond it: unknown keys inside a stage outlive a new stage number.
fn merge_with_field(old: Option<&DocumentField>, new: Value) -> Value {
    match old.and_then(|field| field.value.as_ref().ok()) {
        Some(old) => merge_values(old, new),
        None => new,
    }
}

fn merge_values(old: &Value, new: Value) -> Value {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut all: Map<String, Value> = old.clone();
            for (key, value) in new {
                let value = match old.get(&key) {
                    Some(before) => merge_values(before, value),
                    None => value,
                };
                all.insert(key, value);
            }
            Value::Object(all)
        }
        // A list of stages grows at its end; a list of needs or tags is replaced, item by item the same.
        (Value::Array(old), Value::Array(new)) => {
            let items = new.into_iter().enumerate();
            Value::Array(
                items
                    .map(|(place, value)| match old.get(place) {
                        Some(before) if same_item(before, &value) => merge_values(before, value),
                        Some(_) | None => value,
                    })
                    .collect(),
            )
        }
        (_, new) => new,
    }
}

fn same_item(old: &Value, new: &Value) -> bool {
    ["stage", "module"].iter().any(|key| old.get(key).is_some() && old.get(key) == new.get(key))
}

/// What came of looking at every field.
pub(super) struct ParsedMetadata {
    pub(super) module: ModuleRecord,
    /// What is wrong, with the canonical name of the field.
    pub(super) bad: Vec<(&'static str, ModuleLineProblem)>,
    warnings: Vec<ModuleLineProblem>,
    odd: Vec<&'static str>,
}

pub(super) fn parse_document(document: &Document) -> ParsedMetadata {
    let mut reading = ParsedMetadata {
        module: ModuleRecord::new("", ""),
        bad: Vec::new(),
        warnings: Vec::new(),
        odd: Vec::new(),
    };
    for names in FIELDS {
        let present: Vec<&DocumentField> = names
            .iter()
            .filter_map(|name| document.fields().iter().find(|field| field.key == *name))
            .collect();
        let [field, others @ ..] = present.as_slice() else { continue };
        for other in others {
            let message = format!("`{}` is not looked at: `{}` says the same", other.key, field.key);
            reading.warnings.push(ModuleLineProblem::new(other.line, message).with_hint("keep one of them"));
        }
        let told = reading.warnings.len();
        let read = match &field.value {
            Ok(value) => reading.set(names[0], field, value),
            Err(message) => Err(ModuleLineProblem::new(field.line, format!("{}: {message}", field.key))),
        };
        if let Err(bad) = read {
            reading.bad.push((names[0], bad));
        } else if reading.warnings.len() > told {
            reading.odd.push(names[0]);
        }
    }
    if find_field(document, FIELDS[2]).is_none() {
        let line = document.fields().first().map_or(1, |field| field.line);
        reading.warnings.push(
            ModuleLineProblem::new(line, "there is no `status`; it counts as `draft`")
                .with_known(ModuleStatus::list_known()),
        );
    }
    reading
}

impl ParsedMetadata {
    fn set(
        &mut self,
        name: &'static str,
        field: &DocumentField,
        value: &Value,
    ) -> Result<(), ModuleLineProblem> {
        match name {
            "title" => self.module.title = read_text(field, value)?,
            "type" => {
                self.module.kind = match value {
                    // A list of kinds is a hybrid.
                    Value::Array(_) => read_words(field, value)?.join("|"),
                    _ => read_text(field, value)?,
                }
            }
            "status" => {
                let word = read_text(field, value)?;
                self.module.status = match word.trim() {
                    "" => ModuleStatus::Draft,
                    word => word.parse().map_err(|_| {
                        ModuleLineProblem::new(
                            field.line,
                            format!("`{}` is not a status", shorten_text(word)),
                        )
                        .with_known(ModuleStatus::list_known())
                        .with_hint("write one of these")
                    })?,
                };
            }
            "phase" => {
                self.module.phase = ModulePhase::read(&read_text(field, value)?);
                if let ModulePhase::Other(word) = &self.module.phase
                    && !ModulePhase::KNOWN.contains(&word.as_str())
                {
                    let message = format!("the phase `{}` means nothing here", shorten_text(word));
                    self.warnings.push(
                        ModuleLineProblem::new(field.line, message).with_known(ModulePhase::KNOWN.join(", ")),
                    );
                }
            }
            "completed_steps" => match as_count(value).and_then(|steps| u32::try_from(steps).ok()) {
                Some(steps) => self.module.completed_steps = steps,
                None => {
                    let message = format!(
                        "completed_steps is `{}`, not a whole number from 0 on; it counts as 0",
                        shorten_text(&value.to_string())
                    );
                    self.warnings.push(ModuleLineProblem::new(field.line, message));
                }
            },
            "created" => self.module.created = self.moment(field, value)?,
            "updated" => self.module.updated = self.moment(field, value)?,
            "depends_on" => self.module.depends_on = read_needs(field, value)?,
            "tags" => self.module.tags = read_words(field, value)?,
            "branch" => self.module.branch = read_text(field, value)?,
            "worktree" => self.module.worktree = read_text(field, value)?,
            "stage" => self.module.stage = read_stage(field, value)?,
            "revision" => self.module.revision = self.counted(field, value).unwrap_or(0),
            "compaction_count" => self.module.extra.compaction_count = self.counted(field, value),
            "vfp_cycles_completed" => self.module.extra.vfp_cycles_completed = self.counted(field, value),
            "retry_count" => self.module.extra.retry_count = self.counted(field, value),
            "phase_progress" => {
                self.module.extra.phase_progress = as_fraction(value);
                if !value.is_null() && self.module.extra.phase_progress.is_none() {
                    let message =
                        format!("phase_progress is `{}`, not from 0 to 1", shorten_text(&value.to_string()));
                    self.warnings
                        .push(ModuleLineProblem::new(field.line, message).with_hint("it is not used"));
                }
            }
            "check_score" => self.module.extra.check_score = (!value.is_null()).then(|| value.clone()),
            "delegation_failures" => self.module.extra.delegation_failures = read_words(field, value)?,
            other => unreachable!("`{other}` is in the table of fields and is not read"),
        }
        Ok(())
    }

    fn moment(&mut self, field: &DocumentField, value: &Value) -> Result<String, ModuleLineProblem> {
        let text = read_text(field, value)?;
        if !text.is_empty() && !super::text::is_moment(&text) {
            let message = format!("{} is `{}`, not a date", field.key, shorten_text(&text));
            self.warnings.push(
                ModuleLineProblem::new(field.line, message).with_hint("write it as 2026-01-31T10:00:00Z"),
            );
        }
        Ok(text)
    }

    /// A counter of another tool: nonsense in it is told and stops nobody.
    fn counted(&mut self, field: &DocumentField, value: &Value) -> Option<u64> {
        let read = as_count(value);
        if read.is_none() && !value.is_null() {
            let message = format!(
                "{} is `{}`, not a whole number from 0 on",
                field.key,
                shorten_text(&value.to_string())
            );
            self.warnings.push(ModuleLineProblem::new(field.line, message).with_hint("it is not used"));
        }
        read
    }
}

fn as_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        _ => None,
    }
}

fn as_fraction(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| (0.0..=1.0).contains(number))
}

fn wrong_type_problem(field: &DocumentField, value: &Value, wanted: &str) -> ModuleLineProblem {
    let is = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    };
    ModuleLineProblem::new(field.line, format!("{} is {is}, not {wanted}", field.key))
}

fn read_text(field: &DocumentField, value: &Value) -> Result<String, ModuleLineProblem> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        // `title: 2026` is a number to the reader and a word to the person.
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Array(_) | Value::Object(_) => Err(wrong_type_problem(field, value, "text")),
    }
}

fn read_words(field: &DocumentField, value: &Value) -> Result<Vec<String>, ModuleLineProblem> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(|item| read_text(field, item)).collect(),
        Value::String(list) => {
            Ok(list.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect())
        }
        Value::Number(_) | Value::Bool(_) => Ok(vec![read_text(field, value)?]),
        Value::Object(_) => Err(wrong_type_problem(field, value, "a list")),
    }
}

fn read_needs(field: &DocumentField, value: &Value) -> Result<Vec<ModuleDependency>, ModuleLineProblem> {
    let hint = "a need is a module's name, or `{module, min_status}`";
    let one = |item: &Value| match item {
        Value::String(module) => Ok(ModuleDependency { module: module.trim().to_owned(), least: None }),
        Value::Object(map) => {
            let first = |names: &[&str]| names.iter().find_map(|name| map.get(*name)).and_then(Value::as_str);
            let module = first(&["module", "notebook", "task", "name"]).ok_or_else(|| {
                ModuleLineProblem::new(field.line, "a need does not say its `module`").with_hint(hint)
            })?;
            let least = match first(&["min_status", "minStatus", "min-status", "status"]) {
                None => None,
                Some(word) => Some(word.parse::<ModuleStatus>().map_err(|_| {
                    ModuleLineProblem::new(field.line, format!("`{}` is not a status", shorten_text(word)))
                        .with_known(ModuleStatus::list_known())
                })?),
            };
            Ok(ModuleDependency { module: module.trim().to_owned(), least })
        }
        Value::Number(number) => Ok(ModuleDependency { module: number.to_string(), least: None }),
        other => Err(wrong_type_problem(field, other, "the name of a module").with_hint(hint)),
    };
    match value {
        Value::Array(items) => items.iter().map(one).collect(),
        Value::Object(_) => Ok(vec![one(value)?]),
        _ => Ok(read_words(field, value)?
            .into_iter()
            .map(|module| ModuleDependency { module, least: None })
            .collect()),
    }
}

fn read_stage(field: &DocumentField, value: &Value) -> Result<Option<NotebookStages>, ModuleLineProblem> {
    let number = |value: Option<&Value>, what: &str| match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => as_count(value).and_then(|n| u32::try_from(n).ok()).map(Some).ok_or_else(|| {
            ModuleLineProblem::new(
                field.line,
                format!("{what} is `{}`, not a whole number", shorten_text(&value.to_string())),
            )
        }),
    };
    let map = match value {
        Value::Null => return Ok(None),
        // An old file may say just the number.
        Value::Number(_) => {
            let current = number(Some(value), "stage")?.unwrap_or(0);
            return Ok(Some(NotebookStages { current, ..NotebookStages::default() }));
        }
        Value::Object(map) => map,
        other => return Err(wrong_type_problem(field, other, "a table with `current` and `history`")),
    };
    let word =
        |value: Option<&Value>| value.map_or_else(|| Ok(String::new()), |value| read_text(field, value));
    let mut history = Vec::new();
    match map.get("history") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for (place, item) in items.iter().enumerate() {
                let Value::Object(item) = item else {
                    return Err(wrong_type_problem(field, item, "a stage that is done"));
                };
                let convergence = match item.get("convergence") {
                    None | Some(Value::Null) => None,
                    Some(value) => Some(as_fraction(value).ok_or_else(|| {
                        let message =
                            format!("convergence is `{}`, not from 0 to 1", shorten_text(&value.to_string()));
                        ModuleLineProblem::new(field.line, message)
                    })?),
                };
                history.push(CompletedStage {
                    stage: number(item.get("stage"), "stage")?.unwrap_or(place as u32 + 1),
                    name: word(item.get("name"))?,
                    completed_at: word(item.get("completed_at").or_else(|| item.get("completedAt")))?,
                    commit: word(item.get("commit"))?,
                    convergence,
                });
            }
        }
        Some(other) => return Err(wrong_type_problem(field, other, "a list of stages")),
    }
    Ok(Some(NotebookStages {
        current: number(map.get("current"), "stage.current")?.unwrap_or(0),
        total: number(map.get("total"), "stage.total")?,
        history,
    }))
}
