//! The catalogue of recoveries: the built-in one, and what a project adds to it.
//!
//! What a project writes comes after what is built in, so it cannot change it by being there. To change a built-in pattern
//! it has to say so by name.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;

use landfall_model::issue::ReconcilePoint;
use landfall_model::recovery::{
    Known, Pattern, PatternCondition, PatternSample, RecoveryAction, find_shadowed_patterns,
};
use serde::Deserialize;
use toml::Spanned;

use crate::flows::read_bounded;
use crate::settings::place::position_at;

const BUILT_IN: &str = include_str!("../../../recoveries.toml");
const BUILT_IN_FILE: &str = "recoveries.toml";
/// Where a project writes its own, below its root.
pub const OWN_FILE: &str = ".landfall/recoveries.toml";

const FILE_BYTES_MAX: u64 = 1024 * 1024; // the built-in one has a few kilobytes
const PATTERNS_MAX: usize = 500; // each is tried on every failure
const LIMIT_MAX: u32 = 20; // a bound nobody reaches is no bound
const WAIT_SECONDS_MAX: u64 = 24 * 60 * 60;
const PERCENT: std::ops::RangeInclusive<u32> = 101..=1_000;

/// What is wrong with a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueError {
    /// The file.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for CatalogueError {}

/// The patterns that are built in.
#[must_use]
pub fn built_in() -> Vec<Pattern> {
    let entries =
        parse_catalogue(BUILT_IN, BUILT_IN_FILE).expect("the built-in catalogue is tried by a test");
    entries.into_iter().map(|entry| entry.pattern).collect()
}

/// The patterns of a project: the built-in ones, and its own after them.
///
/// # Errors
/// The first thing that is wrong with its own file.
pub fn load_catalogue(root: &Path) -> Result<Vec<Pattern>, CatalogueError> {
    match read_bounded(&root.join(OWN_FILE), FILE_BYTES_MAX) {
        Ok(source) => extend_catalogue(built_in(), &source, OWN_FILE),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(built_in()),
        Err(error) => Err(CatalogueError {
            file: OWN_FILE.to_owned(),
            line: None,
            message: format!("read it: {error}"),
        }),
    }
}

/// A catalogue with what `source` adds to it.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn extend_catalogue(
    mut catalogue: Vec<Pattern>,
    source: &str,
    file: &str,
) -> Result<Vec<Pattern>, CatalogueError> {
    for CatalogueEntry { pattern, replaces, line } in parse_catalogue(source, file)? {
        let wrong = |message| CatalogueError { file: file.to_owned(), line: Some(line), message };
        let known = |name: &str| catalogue.iter().position(|other| other.name == name);
        match (replaces, known(&pattern.name)) {
            (Some(name), same) => {
                let at = known(&name)
                    .ok_or_else(|| wrong(format!("`replaces`: there is no pattern called `{name}`")))?;
                if same.is_some_and(|same| same != at) {
                    return Err(wrong(format!("there is another pattern called `{}`", pattern.name)));
                }
                catalogue[at] = pattern;
            }
            (None, Some(_)) => {
                return Err(wrong(format!(
                    "there is a pattern called `{0}` already; say `replaces = \"{0}\"` to take its place",
                    pattern.name
                )));
            }
            (None, None) => catalogue.push(pattern),
        }
    }
    let wrong = |message| CatalogueError { file: file.to_owned(), line: None, message };
    if catalogue.len() > PATTERNS_MAX {
        return Err(wrong(format!(
            "there are {} patterns; at most {PATTERNS_MAX} are tried",
            catalogue.len()
        )));
    }
    match find_shadowed_patterns(&catalogue).first() {
        None => Ok(catalogue),
        Some((pattern, None)) => Err(wrong(format!("`{}` does not fit its own sample", pattern.name))),
        Some((pattern, Some(first))) => Err(wrong(format!(
            "the sample of `{}` is taken by `{}`, which comes first",
            pattern.name, first.name
        ))),
    }
}

struct CatalogueEntry {
    pattern: Pattern,
    replaces: Option<String>,
    line: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile {
    #[serde(default)]
    recovery: Vec<Spanned<RawPattern>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPattern {
    name: String,
    about: String,
    #[serde(default)]
    phases: Vec<String>,
    #[serde(default)]
    all: Vec<RawSign>,
    #[serde(default)]
    any: Vec<RawSign>,
    action: String,
    wait_s: Option<u64>,
    percent: Option<u32>,
    limit: u32,
    replaces: Option<String>,
    sample: RawSample,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum RawSign {
    Says(String),
    Exit(Vec<i32>),
    Matches(bool),
    UnderS(u64),
    Fact(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSample {
    phase: String,
    log: String,
    exit: Option<i32>,
    took_s: u64,
    matches: Option<bool>,
    #[serde(default)]
    facts: Vec<String>,
}

fn parse_catalogue(source: &str, file: &str) -> Result<Vec<CatalogueEntry>, CatalogueError> {
    let at = |byte: usize| position_at(source, byte).line;
    let raw: CatalogueFile = toml::from_str(source).map_err(|error| CatalogueError {
        file: file.to_owned(),
        line: error.span().map(|span| at(span.start)),
        message: error.message().replace('\n', "; "),
    })?;
    let mut entries: Vec<CatalogueEntry> = Vec::new();
    for raw in raw.recovery {
        let line = at(raw.span().start);
        let wrong = |message| CatalogueError { file: file.to_owned(), line: Some(line), message };
        let raw = raw.into_inner();
        let replaces = raw.replaces.clone();
        let pattern = pattern_from_raw(raw).map_err(wrong)?;
        if entries.iter().any(|entry| entry.pattern.name == pattern.name) {
            return Err(wrong(format!("there are two patterns called `{}`", pattern.name)));
        }
        entries.push(CatalogueEntry { pattern, replaces, line });
    }
    Ok(entries)
}

fn pattern_from_raw(raw: RawPattern) -> Result<Pattern, String> {
    let RawPattern { name, about, phases, all, any, action, wait_s, percent, limit, replaces: _, sample } =
        raw;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("`{}` is no name: a-z, 0-9 and `-` make one", name.escape_debug()));
    }
    if all.is_empty() && any.is_empty() {
        return Err(format!("`{name}` has no signs: it would fit every failure"));
    }
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(format!("`limit` of `{name}` is {limit}; 1 to {LIMIT_MAX} are allowed"));
    }
    let signs = |raw: Vec<RawSign>| {
        raw.into_iter().map(sign_from_raw).collect::<Result<Vec<PatternCondition>, String>>()
    };
    let RawSample { phase, log, exit, took_s, matches, facts } = sample;
    let facts =
        facts.iter().map(|word| parse_known_fact(word)).collect::<Result<BTreeSet<Known>, String>>()?;
    Ok(Pattern {
        action: action_of(&name, &action, wait_s, percent)?,
        name,
        about,
        phases: phases.iter().map(|word| phase_of(word)).collect::<Result<_, _>>()?,
        all: signs(all)?,
        any: signs(any)?,
        limit,
        sample: PatternSample { phase: phase_of(&phase)?, log, exit, took_s, matches, facts },
    })
}

fn sign_from_raw(raw: RawSign) -> Result<PatternCondition, String> {
    Ok(match raw {
        RawSign::Says(text) if text.trim().is_empty() => {
            return Err("`says` is empty: every log holds that".to_owned());
        }
        RawSign::Says(text) => PatternCondition::Says(text),
        RawSign::Exit(codes) => PatternCondition::Exit(codes),
        RawSign::Matches(wanted) => PatternCondition::Matches(wanted),
        RawSign::UnderS(seconds) => PatternCondition::UnderSeconds(seconds),
        RawSign::Fact(word) => PatternCondition::Fact(parse_known_fact(&word)?),
    })
}

fn action_of(
    name: &str,
    word: &str,
    wait_s: Option<u64>,
    percent: Option<u32>,
) -> Result<RecoveryAction, String> {
    let known = || RecoveryAction::ALL.map(RecoveryAction::wire_name).join(", ");
    let plain = RecoveryAction::ALL.into_iter().find(|action| action.wire_name() == word);
    let plain = plain.ok_or_else(|| format!("`{}` is no action; known: {}", word.escape_debug(), known()))?;
    match (plain, wait_s, percent) {
        (RecoveryAction::RetryAfter(_), Some(wait_s), None) if wait_s <= WAIT_SECONDS_MAX => {
            Ok(RecoveryAction::RetryAfter(wait_s))
        }
        (RecoveryAction::RetryAfter(_), _, _) => {
            Err(format!("`retry-after` of `{name}` takes `wait_s`, at most {WAIT_SECONDS_MAX}"))
        }
        (RecoveryAction::RaiseTimeout(_), None, Some(percent)) if PERCENT.contains(&percent) => {
            Ok(RecoveryAction::RaiseTimeout(percent))
        }
        (RecoveryAction::RaiseTimeout(_), _, _) => Err(format!(
            "`raise-timeout` of `{name}` takes `percent`, {} to {}",
            PERCENT.start(),
            PERCENT.end()
        )),
        (plain, None, None) => Ok(plain),
        (_, _, _) => Err(format!("`{word}` of `{name}` takes neither `wait_s` nor `percent`")),
    }
}

fn phase_of(word: &str) -> Result<ReconcilePoint, String> {
    let known: Vec<&str> = ReconcilePoint::ALL.iter().map(|phase| phase.wire_name()).collect();
    ReconcilePoint::from_wire_name(word)
        .ok_or_else(|| format!("`{}` is no phase; known: {}", word.escape_debug(), known.join(", ")))
}

fn parse_known_fact(word: &str) -> Result<Known, String> {
    let known: Vec<&str> = Known::ALL.iter().map(|known| known.word()).collect();
    Known::from_word(word)
        .ok_or_else(|| format!("`{}` is no fact; known: {}", word.escape_debug(), known.join(", ")))
}
