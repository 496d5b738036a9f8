//! From the text of a flow file to a [`Flow`]. Everything wrong in a file is said at once; whether the steps fit
//! together is asked only when each can be read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use landfall_agents::nearest_word;
use landfall_model::flow::{FlowDefect, FlowEdge, FlowStep, TrackerOperation};
use landfall_model::score::GatePoint;
use landfall_model::{AgentDriveStyle, EdgeTarget, Flow, StepKind, StepName, StepResult};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::FlowError;
use crate::settings::place::{in_order, line_text, position_at};

type FlowValue<'a> = Spanned<DeValue<'a>>;

const SECTIONS: [&str; 4] = ["flow", "entries", "do", "step"];
const FLOW_KEYS: [&str; 3] = ["about", "entry", "style"];
const EDGE_KEYS: [&str; 2] = ["to", "max"];
/// Keys of every step, then those of some kinds only.
const STEP_KEYS: [&str; 13] = [
    "kind",
    "phase",
    "before",
    "on",
    "agent",
    "prompt",
    "output",
    "iterate",
    "every",
    "checkpoint",
    "threshold",
    "question",
    "act",
];
const COMMON_KEYS: usize = 5;
/// Where edges may lead besides steps.
const RESERVED: [&str; 2] = ["end", "stop"];
const MAX_OF_MAX: i64 = 10_000; // a bound nobody reaches is no bound

/// The flow in `source`. It is called what the file is called, without folder and extension.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn parse_flow(source: &str, file_name: &str) -> Result<Flow, Vec<FlowError>> {
    let mut reader = FlowReader { source, file: file_name, errors: Vec::new(), lines: FlowSpans::default() };
    let flow = reader.read_document();
    if reader.errors.is_empty()
        && let Some(flow) = &flow
    {
        for problem in flow.find_problems() {
            reader.add_defect(problem);
        }
    }
    reader.errors.sort_by_key(|error| error.line);
    match flow {
        Some(flow) if reader.errors.is_empty() => Ok(flow),
        Some(_) | None => Err(reader.errors),
    }
}

/// Where the parts of a flow stand, by byte, to answer for what the model finds.
#[derive(Default)]
struct FlowSpans {
    entry: Option<usize>,
    phases: BTreeMap<String, usize>,
    steps: BTreeMap<StepName, usize>,
    edges: BTreeMap<(StepName, StepResult), usize>,
}

struct FlowReader<'a> {
    source: &'a str,
    file: &'a str,
    errors: Vec<FlowError>,
    lines: FlowSpans,
}

impl<'a> FlowReader<'a> {
    fn read_document(&mut self) -> Option<Flow> {
        let document = match DeTable::parse(self.source) {
            Ok(document) => document.into_inner(),
            Err(error) => {
                self.not_toml(&error);
                return None;
            }
        };
        self.reject_unknown_keys(&document, &SECTIONS, |word| format!("unknown section [{word}]"));
        let name = Path::new(self.file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let steps = self.read_steps(&document);
        let head = document.get("flow").and_then(|value| self.expect_table("flow", value));
        let entries = document.get("entries").and_then(|value| self.expect_table("entries", value));
        let style = head.and_then(|head| head.get("style")).and_then(|value| self.read_style(value));
        let (about, entry) = head.map(|head| self.read_head(head)).unwrap_or_default();
        let entries = entries.map(|entries| self.read_entries(entries)).unwrap_or_default();
        let commands = document.get("do").and_then(|value| self.expect_table("do", value));
        let commands = commands.map(|commands| self.read_commands(commands)).unwrap_or_default();
        let steps = steps?;
        let entry = entry.or_else(|| steps.first().map(|step| step.name.clone()));
        Some(Flow {
            name: name.unwrap_or_default(),
            about: about.unwrap_or_default(),
            entry: entry?,
            entries,
            commands,
            style,
            steps,
        })
    }

    /// What a person can ask for by hand: a table for each command, the step it means by the phase.
    fn read_commands(&mut self, table: &DeTable<'_>) -> BTreeMap<String, BTreeMap<String, StepName>> {
        let mut commands = BTreeMap::new();
        for (command, value) in in_order(table) {
            let command = command.get_ref().to_string();
            let Some(by_phase) = self.expect_table(&format!("do.{command}"), value) else { continue };
            let mut steps = BTreeMap::new();
            for (phase, value) in in_order(by_phase) {
                let phase = phase.get_ref().to_string();
                self.lines.phases.insert(phase.clone(), value.span().start);
                if let Some(step) = self.expect_text(&format!("do.{command}.{phase}"), value) {
                    steps.insert(phase, StepName::new(&step));
                }
            }
            commands.insert(command, steps);
        }
        commands
    }

    fn read_head(&mut self, head: &DeTable<'_>) -> (Option<String>, Option<StepName>) {
        self.reject_unknown_keys(head, &FLOW_KEYS, |word| format!("unknown key `{word}` in [flow]"));
        let about = head.get("about").and_then(|value| self.expect_text("flow.about", value));
        let entry = head.get("entry").and_then(|value| {
            self.lines.entry = Some(value.span().start);
            self.expect_text("flow.entry", value)
        });
        (about, entry.map(|name| StepName::new(&name)))
    }

    fn read_style(&mut self, value: &FlowValue<'_>) -> Option<AgentDriveStyle> {
        let word = self.expect_text("flow.style", value)?;
        let style = AgentDriveStyle::ALL.into_iter().find(|style| style.word() == word);
        if style.is_none() {
            let known = AgentDriveStyle::ALL.map(AgentDriveStyle::word).join(", ");
            self.add_error(Some(value.span()), format!("`{word}` is no style"), format!("known: {known}"));
        }
        style
    }

    fn read_entries(&mut self, table: &DeTable<'_>) -> BTreeMap<String, StepName> {
        let mut entries = BTreeMap::new();
        for (phase, value) in in_order(table) {
            let phase = phase.get_ref().to_string();
            self.lines.phases.insert(phase.clone(), value.span().start);
            if let Some(step) = self.expect_text(&format!("entries.{phase}"), value) {
                entries.insert(phase, StepName::new(&step));
            }
        }
        entries
    }

    fn read_steps(&mut self, document: &DeTable<'_>) -> Option<Vec<FlowStep>> {
        let table = document.get("step").and_then(|value| self.expect_table("step", value));
        let Some(table) = table.filter(|table| !table.is_empty()) else {
            if self.errors.is_empty() {
                self.add_error(None, "it has no steps", "add one: `[step.work]` with `kind = \"agent\"`");
            }
            return None;
        };
        let mut steps = Vec::new();
        for (name, value) in in_order(table) {
            let word = name.get_ref().as_ref();
            self.lines.steps.insert(StepName::new(word), name.span().start);
            if RESERVED.contains(&word) {
                let what = format!("a step cannot be called `{word}`");
                self.add_error(Some(name.span()), what, "edges use that word for leaving the flow");
            } else if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control()) {
                let what = format!("a step cannot be called `{}`", word.escape_debug());
                self.add_error(Some(name.span()), what, "letters, digits, `-` and `_`");
            } else if let Some(table) = self.expect_table(&format!("step.{word}"), value) {
                steps.extend(self.read_step(word, name.span(), table));
            }
        }
        Some(steps)
    }

    fn read_step(&mut self, name: &str, at: Range<usize>, table: &DeTable<'_>) -> Option<FlowStep> {
        self.reject_unknown_keys(table, &STEP_KEYS, |word| format!("unknown key `{word}` in [step.{name}]"));
        let kind = self.read_kind(name, at, table);
        let phase =
            table.get("phase").and_then(|value| self.expect_text(&format!("step.{name}.phase"), value));
        let before =
            table.get("before").and_then(|value| self.expect_text(&format!("step.{name}.before"), value));
        let agent =
            table.get("agent").and_then(|value| self.expect_text(&format!("step.{name}.agent"), value));
        let on = table.get("on").and_then(|value| self.expect_table(&format!("step.{name}.on"), value));
        let on = on.map(|on| self.read_edges(name, on)).unwrap_or_default();
        Some(FlowStep {
            name: StepName::new(name),
            kind: kind?,
            phase: phase.unwrap_or_else(|| name.to_owned()),
            before,
            agent,
            on,
        })
    }

    fn read_kind(&mut self, name: &str, at: Range<usize>, table: &DeTable<'_>) -> Option<StepKind> {
        let Some(value) = table.get("kind") else {
            let hint = format!("known kinds: {}", StepKind::WORDS.join(", "));
            self.add_error(Some(at), format!("step `{name}` has no `kind`"), hint);
            return None;
        };
        let path = |key: &str| format!("step.{name}.{key}");
        let word = self.expect_text(&path("kind"), value)?;
        let own: &[&str] = match word.as_str() {
            "agent" => &["prompt", "output", "iterate", "every"],
            "check" => &["checkpoint", "threshold"],
            "ask" => &["question"],
            "tracker" => &["act"],
            known if StepKind::WORDS.contains(&known) => &[],
            _ => {
                let what = format!("unknown kind `{}`", word.escape_debug());
                self.add_error(Some(value.span()), what, suggest_word(&word, &StepKind::WORDS, "kinds"));
                return None;
            }
        };
        for (key, _) in in_order(table) {
            let key_word = key.get_ref().as_ref();
            if STEP_KEYS[COMMON_KEYS..].contains(&key_word) && !own.contains(&key_word) {
                let what = format!("a step of kind `{word}` takes no `{key_word}`");
                self.add_error(Some(key.span()), what, "take it out");
            }
        }
        let mut owed = |key: &str| match table.get(key) {
            Some(value) => self.expect_text(&path(key), value),
            None => {
                let what = format!("step `{name}` has no `{key}`");
                self.add_error(Some(at.clone()), what, format!("a step of kind `{word}` needs one"));
                None
            }
        };
        // Every key is read before the first mistake ends the step, so that all of them are said.
        Some(match word.as_str() {
            "agent" => {
                let prompt = owed("prompt");
                let output =
                    table.get("output").map_or(Some(Vec::new()), |v| self.expect_texts(&path("output"), v));
                let iterate =
                    table.get("iterate").map_or(Some(false), |v| self.expect_bool(&path("iterate"), v));
                let every = table.get("every").map_or(Some(0), |v| self.expect_bound(&path("every"), v));
                StepKind::Agent { prompt: prompt?, output: output?, iterate: iterate?, every: every? }
            }
            "check" => {
                let word = owed("checkpoint");
                let threshold = table.get("threshold").map(|v| self.expect_score(&path("threshold"), v));
                let word = word?;
                let Some(checkpoint) = GatePoint::from_word(&word) else {
                    let known = GatePoint::ALL.map(GatePoint::word);
                    let at = table.get("checkpoint").map(FlowValue::span);
                    let what = format!("unknown checkpoint `{}`", word.escape_debug());
                    self.add_error(at, what, suggest_word(&word, &known, "checkpoints"));
                    return None;
                };
                StepKind::Check {
                    checkpoint,
                    threshold: threshold.unwrap_or(Some(checkpoint.default_threshold()))?,
                }
            }
            "ask" => StepKind::Ask { question: owed("question")? },
            "verify" => StepKind::Verify,
            "review" => StepKind::Review,
            "land" => StepKind::Land,
            "report" => StepKind::Report,
            "split" => StepKind::Split,
            "tracker" => {
                let word = owed("act")?;
                let Some(act) = TrackerOperation::from_word(&word) else {
                    let known = TrackerOperation::ALL.map(TrackerOperation::word);
                    let at = table.get("act").map(FlowValue::span);
                    let what = format!("unknown act `{}`", word.escape_debug());
                    self.add_error(at, what, suggest_word(&word, &known, "acts"));
                    return None;
                };
                StepKind::Tracker { act }
            }
            "target" => StepKind::Target,
            "converge" => StepKind::Converge,
            _ => unreachable!("only the words of StepKind come this far"),
        })
    }

    fn read_edges(&mut self, name: &str, on: &DeTable<'_>) -> Vec<FlowEdge> {
        let mut edges = Vec::new();
        for (word, value) in in_order(on) {
            let shown = word.get_ref().escape_debug().to_string();
            let Some(result) = StepResult::from_word(word.get_ref()) else {
                let known = StepResult::ALL.map(StepResult::word);
                let what = format!("unknown result `{shown}` in [step.{name}]");
                self.add_error(Some(word.span()), what, suggest_word(word.get_ref(), &known, "results"));
                continue;
            };
            self.lines.edges.insert((StepName::new(name), result), word.span().start);
            let path = format!("step.{name}.on.{shown}");
            let (to, max) = match value.get_ref() {
                DeValue::Table(table) => {
                    self.reject_unknown_keys(table, &EDGE_KEYS, |word| {
                        format!("unknown key `{word}` in `{path}`")
                    });
                    if table.get("to").is_none() {
                        let hint = "`to` is a step, `end` or `stop`";
                        self.add_error(Some(value.span()), format!("`{path}` does not say where `to`"), hint);
                    }
                    (
                        table.get("to").and_then(|to| self.expect_text(&format!("{path}.to"), to)),
                        table.get("max").and_then(|max| self.expect_bound(&format!("{path}.max"), max)),
                    )
                }
                DeValue::String(to) => (Some(to.to_string()), None),
                DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_) => {
                    self.wrong_type(&path, "the name of a step or `{ to = \"…\", max = 3 }`", value);
                    (None, None)
                }
            };
            let Some(to) = to else { continue };
            let to = match to.as_str() {
                "end" => EdgeTarget::End,
                "stop" => EdgeTarget::Stop,
                step => EdgeTarget::Step(StepName::new(step)),
            };
            edges.push(FlowEdge { result, to, max });
        }
        edges
    }

    fn expect_table<'v, 'i>(&mut self, path: &str, value: &'v FlowValue<'i>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(path, "a table", value);
        }
        table
    }

    fn expect_text(&mut self, path: &str, value: &FlowValue<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => return Some(text.to_owned()),
            Some(_) => self.add_error(Some(value.span()), format!("`{path}` is empty"), None),
            None => self.wrong_type(path, "text in quotes", value),
        }
        None
    }

    fn expect_texts(&mut self, path: &str, value: &FlowValue<'_>) -> Option<Vec<String>> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(path, "a list such as [\"plan.md\"]", value);
            return None;
        };
        items.iter().map(|item| self.expect_text(path, item)).collect()
    }

    fn expect_bool(&mut self, path: &str, value: &FlowValue<'_>) -> Option<bool> {
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(path, "true or false", value);
        }
        truth
    }

    /// A bound. One of 0 is let through: the model knows better what to say about it.
    fn expect_bound(&mut self, path: &str, value: &FlowValue<'_>) -> Option<u32> {
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type(path, "a whole number", value);
            return None;
        };
        let number = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let bound =
            number.filter(|number| *number <= MAX_OF_MAX).and_then(|number| u32::try_from(number).ok());
        if bound.is_none() {
            self.add_error(Some(value.span()), format!("`{path}` is out of range: 1 to {MAX_OF_MAX}"), None);
        }
        bound
    }

    /// A score from 0 to 1, in thousandths.
    fn expect_score(&mut self, path: &str, value: &FlowValue<'_>) -> Option<u32> {
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => {
                self.wrong_type(path, "a number such as 0.70", value);
                return None;
            }
        };
        let score = number.filter(|number| (0.0..=1.0).contains(number));
        if score.is_none() {
            self.add_error(Some(value.span()), format!("`{path}` is out of range: 0.0 to 1.0"), None);
        }
        score.map(|score| (score * 1000.0).round() as u32)
    }

    fn reject_unknown_keys(&mut self, table: &DeTable<'_>, known: &[&str], what: impl Fn(&str) -> String) {
        for (key, _) in in_order(table) {
            let word = key.get_ref().as_ref();
            if !known.contains(&word) {
                let shown = word.escape_debug().to_string();
                self.add_error(Some(key.span()), what(&shown), suggest_word(word, known, "keys"));
            }
        }
    }

    fn wrong_type(&mut self, path: &str, wanted: &str, value: &FlowValue<'_>) {
        let found = value.get_ref().type_str();
        self.add_error(
            Some(value.span()),
            format!("`{path}` should be {wanted}, not a value of type {found}"),
            None,
        );
    }

    fn add_error(&mut self, at: Option<Range<usize>>, message: impl Into<String>, hint: impl IntoHint) {
        let line = at.map(|at| position_at(self.source, at.start).line);
        self.errors.push(FlowError {
            file: self.file.to_owned(),
            line,
            message: message.into(),
            hint: hint.into_hint(),
        });
    }

    fn not_toml(&mut self, error: &toml::de::Error) {
        let line = error.span().map(|span| position_at(self.source, span.start).line);
        let shown = line.and_then(|line| line_text(self.source, line)).map(|text| format!(", in `{text}`"));
        let message =
            format!("not TOML: {}{}", error.message().replace('\n', "; "), shown.unwrap_or_default());
        self.errors.push(FlowError { file: self.file.to_owned(), line, message, hint: None });
    }

    /// Says what the model finds, at the line it is about.
    fn add_defect(&mut self, problem: FlowDefect) {
        let FlowDefect { step, result, what, hint } = problem;
        let lines = &self.lines;
        let at = match (step, result) {
            (Some(step), Some(result)) => lines.edges.get(&(step, result)).copied(),
            (Some(step), None) => lines.steps.get(&step).copied(),
            // The model does not say which entry it means, but its sentence does.
            (None, _) => {
                let mut phases = lines.phases.iter();
                let phase = phases.find(|(phase, _)| what.contains(&format!("phase `{phase}` ")));
                phase.map(|(_, at)| *at).or(lines.entry)
            }
        };
        self.add_error(at.map(|at| at..at), what, hint);
    }
}

/// What a person may have meant by `word`, or all there is.
fn suggest_word(word: &str, known: &[&str], things: &str) -> String {
    match nearest_word(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known {things}: {}", known.join(", ")),
    }
}

trait IntoHint {
    fn into_hint(self) -> Option<String>;
}

impl IntoHint for &str {
    fn into_hint(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl IntoHint for String {
    fn into_hint(self) -> Option<String> {
        Some(self)
    }
}

impl IntoHint for Option<String> {
    fn into_hint(self) -> Option<String> {
        self
    }
}
