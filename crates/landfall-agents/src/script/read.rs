//! TOML into a [`Script`]. The tables are walked by hand, so that every complaint has its line and the word that may
//! have been meant.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use landfall_model::{AgentUsage, Signal};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ScriptError, ScriptProblem};
use super::turn::{
    FileContent, RepoAttack, Script, ScriptCommit, ScriptEdit, ScriptMessage, ScriptMisbehavior, ScriptTurn,
    ScriptWrite, TestWeakening,
};
use super::units::{duration_ms, parse_bytes};
use crate::agent::AgentStream;
use crate::lines::StreamLine;
use crate::nearest::nearest_word;
use crate::tags::{ControlTagParser, LineKind};

/// What one iteration may say.
const TURN_KEYS: [&str; 12] = [
    "session",
    "sleep",
    "write",
    "delete",
    "edit",
    "commit",
    "run",
    "say",
    "usage",
    "misbehave",
    "signal",
    "exit",
];

/// What modes may say besides, and which.
const MODE_KEYS: [(&str, &[&str]); 9] = [
    ("bytes", &["flood", "huge-line"]),
    ("count", &["fork-bomb"]),
    ("for", &["fork-bomb", "setsid", "orphan", "slow-drip"]),
    ("target", &["setsid", "weaken-test"]),
    ("how", &["weaken-test"]),
    ("until", &["quota"]),
    ("detail", &["transient"]),
    ("attack", &["move-main"]),
    ("canary", &["move-main"]),
];

const MODES: [&str; 20] = [
    "ok",
    "fail",
    "no-op",
    "hang",
    "ignore-term",
    "crash",
    "flood",
    "huge-line",
    "slow-drip",
    "garbage",
    "fork-bomb",
    "setsid",
    "orphan",
    "lie",
    "forget-commit",
    "weaken-test",
    "quota",
    "transient",
    "prompt",
    "move-main",
];

const ATTACKS: [(&str, RepoAttack); 9] = [
    ("branches", RepoAttack::Branches),
    ("hooks", RepoAttack::Hooks),
    ("filter", RepoAttack::Filter),
    ("fsmonitor", RepoAttack::Fsmonitor),
    ("gitfile", RepoAttack::Gitfile),
    ("nested-bare", RepoAttack::NestedBare),
    ("alternates", RepoAttack::Alternates),
    ("attributes", RepoAttack::Attributes),
    ("config-include", RepoAttack::ConfigInclude),
];

const WAYS: [(&str, TestWeakening); 3] =
    [("delete", TestWeakening::Delete), ("skip", TestWeakening::Skip), ("trivial", TestWeakening::Trivial)];

const FLOOD_BYTES: u64 = 64 << 20;
const HUGE_LINE_BYTES: u64 = 100_000_000;
const BOMB_COUNT: u16 = 200;
/// How long left-behind processes live if nobody ends them: long enough to be noticed, short enough to be survived.
const LINGER_MS: u64 = 60_000;
const DRIP_MS: u64 = 1000;

type ScriptValue<'a> = Spanned<DeValue<'a>>;

pub(super) fn read(text: &str) -> Result<Script, ScriptError> {
    let reader = ScriptReader { text };
    let document = DeTable::parse(text).map_err(|error| reader.toml(&error))?;
    let top = document.get_ref();
    let ours = |key: &str| ["iteration", "otherwise", "step"].contains(&key) || turn_key(key);
    reader.known_keys(top, "the script", ours)?;
    let defaults = ScriptKeys { own: top, defaults: None };
    let lone = reader.turn(defaults)?;
    let turn = |key, value| {
        let own = reader.table(key, value)?;
        reader.known_keys(own, "an iteration", turn_key)?;
        reader.turn(ScriptKeys { own, defaults: Some(top) })
    };

    let mut turns = Vec::new();
    if let Some(list) = top.get("iteration") {
        for value in reader.array("iteration", "a list of tables, each `[[iteration]]`", list)? {
            turns.push(turn("iteration", value)?);
        }
    }
    let otherwise = top.get("otherwise").map(|value| turn("otherwise", value)).transpose()?;
    if turns.is_empty() {
        let empty = top.is_empty();
        turns.push(if empty { ScriptTurn { signals: vec![wrap_in_tag("COMPLETE")], ..lone } } else { lone });
    }
    let mut steps = BTreeMap::new();
    if let Some(by_step) = top.get("step") {
        for (name, value) in reader.table("step", by_step)?.iter() {
            let list = reader.array("step", "a list of tables, each `[[step.plan]]`", value)?;
            let turns = list.iter().map(|value| turn("step", value)).collect::<Result<Vec<_>, _>>()?;
            steps.insert(name.get_ref().to_string(), turns);
        }
    }
    Ok(Script::new(turns, otherwise, steps))
}

/// The keys of one iteration, and those it takes from the top of the script.
#[derive(Clone, Copy)]
struct ScriptKeys<'a, 'i> {
    own: &'a DeTable<'i>,
    defaults: Option<&'a DeTable<'i>>,
}

impl<'a, 'i> ScriptKeys<'a, 'i> {
    fn get(&self, key: &str) -> Option<&'a ScriptValue<'i>> {
        self.own.get(key).or_else(|| self.defaults?.get(key))
    }
}

fn turn_key(key: &str) -> bool {
    TURN_KEYS.contains(&key) || MODE_KEYS.iter().any(|(known, _)| *known == key)
}

fn wrap_in_tag(inner: &str) -> String {
    format!("<landfall>{inner}</landfall>")
}

struct ScriptReader<'a> {
    text: &'a str,
}

impl<'a> ScriptReader<'a> {
    fn turn(&self, keys: ScriptKeys<'_, 'a>) -> Result<ScriptTurn, ScriptError> {
        let mode = self.mode(keys)?;
        let signals = match keys.get("signal") {
            Some(value) => self.signals(value)?,
            // These modes are lies about being done; the lie is part of them.
            None if matches!(
                mode,
                ScriptMisbehavior::Lie
                    | ScriptMisbehavior::ForgetCommit
                    | ScriptMisbehavior::WeakenTest { .. }
            ) =>
            {
                vec![wrap_in_tag("COMPLETE")]
            }
            None => Vec::new(),
        };
        Ok(ScriptTurn {
            session: keys.get("session").map(|value| self.string("session", value)).transpose()?,
            sleep_ms: keys.get("sleep").map_or(Ok(0), |value| self.duration("sleep", value))?,
            writes: self.each(keys, "write", Self::write)?,
            deletes: self.each(keys, "delete", |reader, value| reader.path("delete", value))?,
            edits: self.each(keys, "edit", Self::edit)?,
            commit: keys.get("commit").map_or(Ok(ScriptCommit::IfChanged), |value| self.commit(value))?,
            run: self.each(keys, "run", |reader, value| reader.string("run", value))?,
            says: self.each(keys, "say", Self::say)?,
            usage: keys.get("usage").map(|value| self.usage(value)).transpose()?,
            mode,
            signals,
            exit: keys
                .get("exit")
                .map_or(Ok(0), |value| self.integer("exit", "a number from 0 to 255", value))?,
        })
    }

    fn mode(&self, keys: ScriptKeys<'_, 'a>) -> Result<ScriptMisbehavior, ScriptError> {
        let name = match keys.get("misbehave") {
            Some(value) => self.word("mode", MODES.map(|name| (name, name)), value)?,
            None => "ok",
        };
        for (key, modes) in MODE_KEYS {
            if let Some((at, _)) = keys.own.get_key_value(key)
                && !modes.contains(&name)
            {
                let problem = ScriptProblem::Misplaced { key, mode: name, modes: modes.to_vec() };
                return Err(self.at(at.span().start, problem));
            }
        }
        let for_ms = |or| keys.get("for").map_or(Ok(or), |value| self.duration("for", value));
        let size = |or| keys.get("bytes").map_or(Ok(or), |value| self.bytes("bytes", value));
        let target = || keys.get("target").map(|value| self.path("target", value)).transpose();
        Ok(match name {
            "ok" => ScriptMisbehavior::Ok,
            "fail" => ScriptMisbehavior::Fail,
            "no-op" => ScriptMisbehavior::NoOp,
            "hang" => ScriptMisbehavior::Hang,
            "ignore-term" => ScriptMisbehavior::IgnoreTerm,
            "crash" => ScriptMisbehavior::Crash,
            "flood" => ScriptMisbehavior::Flood { bytes: size(FLOOD_BYTES)? },
            "huge-line" => ScriptMisbehavior::HugeLine { bytes: size(HUGE_LINE_BYTES)? },
            "slow-drip" => ScriptMisbehavior::SlowDrip { for_ms: for_ms(DRIP_MS)? },
            "garbage" => ScriptMisbehavior::Garbage,
            "fork-bomb" => ScriptMisbehavior::ForkBomb {
                count: keys
                    .get("count")
                    .map_or(Ok(BOMB_COUNT), |value| self.integer("count", "a number of processes", value))?,
                for_ms: for_ms(LINGER_MS)?,
            },
            "setsid" => ScriptMisbehavior::Setsid {
                target: target()?.unwrap_or_else(|| PathBuf::from("setsid.log")),
                for_ms: for_ms(LINGER_MS)?,
            },
            "orphan" => ScriptMisbehavior::Orphan { for_ms: for_ms(LINGER_MS)? },
            "lie" => ScriptMisbehavior::Lie,
            "forget-commit" => ScriptMisbehavior::ForgetCommit,
            "weaken-test" => ScriptMisbehavior::WeakenTest {
                target: target()?.ok_or_else(|| self.missing(keys, "`target`, the test file"))?,
                how: keys
                    .get("how")
                    .map_or(Ok(TestWeakening::Delete), |value| self.word("way", WAYS, value))?,
            },
            "quota" => ScriptMisbehavior::Quota {
                until_ms: keys.get("until").map(|value| self.duration("until", value)).transpose()?,
            },
            "transient" => ScriptMisbehavior::Transient {
                detail: keys
                    .get("detail")
                    .map_or(Ok("overloaded".to_owned()), |value| self.string("detail", value))?,
            },
            "prompt" => ScriptMisbehavior::Prompt,
            "move-main" => {
                let attack = keys
                    .get("attack")
                    .map_or(Ok(RepoAttack::Branches), |value| self.word("attack", ATTACKS, value))?;
                let canary = keys.get("canary").map(|value| self.canary(value)).transpose()?;
                if canary.is_none() && attack != RepoAttack::Branches {
                    return Err(self.missing(keys, "`canary`, the file that would betray the attack"));
                }
                ScriptMisbehavior::MoveMain { attack, canary }
            }
            other => unreachable!("`{other}` is in the list of modes and has no arm"),
        })
    }

    fn write(&self, value: &ScriptValue<'a>) -> Result<ScriptWrite, ScriptError> {
        const PLACE: &str = "a `write`";
        const ONE_OF: &str = "`text`, `append` and `hex`";
        let table = self.table("write", value)?;
        self.known_keys(table, PLACE, |key| ["path", "text", "append", "hex", "executable"].contains(&key))?;
        let path = self.path("path", self.need(value, table, PLACE, "path")?)?;
        let mut contents = Vec::new();
        if let Some(text) = table.get("text") {
            contents.push(FileContent::Whole(self.string("text", text)?.into_bytes()));
        }
        if let Some(text) = table.get("append") {
            contents.push(FileContent::Append(self.string("append", text)?));
        }
        if let Some(hex) = table.get("hex") {
            contents.push(FileContent::Whole(self.hex("hex", hex)?));
        }
        let executable = table.get("executable").map_or(Ok(false), |value| self.bool("executable", value))?;
        let content = contents.pop().ok_or_else(|| {
            self.at(
                value.span().start,
                ScriptProblem::Missing { place: PLACE, wanted: "one of `text`, `append` and `hex`" },
            )
        })?;
        if contents.is_empty() {
            Ok(ScriptWrite { path, content, executable })
        } else {
            Err(self.at(value.span().start, ScriptProblem::TooMany { place: PLACE, of: ONE_OF }))
        }
    }

    fn edit(&self, value: &ScriptValue<'a>) -> Result<ScriptEdit, ScriptError> {
        const PLACE: &str = "an `edit`";
        let table = self.table("edit", value)?;
        self.known_keys(table, PLACE, |key| ["path", "find", "replace"].contains(&key))?;
        let find = self.need(value, table, PLACE, "find")?;
        let edit = ScriptEdit {
            path: self.path("path", self.need(value, table, PLACE, "path")?)?,
            find: self.string("find", find)?,
            replace: self.string("replace", self.need(value, table, PLACE, "replace")?)?,
        };
        if edit.find.is_empty() { Err(self.value("find", find, "the text to look for")) } else { Ok(edit) }
    }

    fn say(&self, value: &ScriptValue<'a>) -> Result<ScriptMessage, ScriptError> {
        const PLACE: &str = "a `say`";
        let DeValue::Table(table) = value.get_ref() else {
            let text = self.string("say", value)?;
            return Ok(ScriptMessage { text, stream: AgentStream::Out, pause_ms: 0 });
        };
        self.known_keys(table, PLACE, |key| ["text", "stream", "pause"].contains(&key))?;
        let streams = [("out", AgentStream::Out), ("err", AgentStream::Err)];
        Ok(ScriptMessage {
            text: self.string("text", self.need(value, table, PLACE, "text")?)?,
            stream: table
                .get("stream")
                .map_or(Ok(AgentStream::Out), |value| self.word("stream", streams, value))?,
            pause_ms: table.get("pause").map_or(Ok(0), |value| self.duration("pause", value))?,
        })
    }

    fn usage(&self, value: &ScriptValue<'a>) -> Result<AgentUsage, ScriptError> {
        let table = self.table("usage", value)?;
        self.known_keys(table, "`usage`", |key| ["tokens_in", "tokens_out", "micro_usd"].contains(&key))?;
        let figure = |key: &'static str| {
            table.get(key).map_or(Ok(0), |value| self.integer(key, "a whole number", value))
        };
        Ok(AgentUsage {
            tokens_in: figure("tokens_in")?,
            tokens_out: figure("tokens_out")?,
            micro_usd: figure("micro_usd")?,
            ..AgentUsage::default()
        })
    }

    fn commit(&self, value: &ScriptValue<'a>) -> Result<ScriptCommit, ScriptError> {
        match value.get_ref() {
            DeValue::Boolean(true) => Ok(ScriptCommit::Always(None)),
            DeValue::Boolean(false) => Ok(ScriptCommit::Never),
            DeValue::String(message) if !message.trim().is_empty() => {
                Ok(ScriptCommit::Always(Some(message.to_string())))
            }
            _ => Err(self.value("commit", value, "a message, `true` or `false`")),
        }
    }

    /// The tags of one signal or of a list of them. The parser of signals is asked whether it would understand.
    fn signals(&self, value: &ScriptValue<'a>) -> Result<Vec<String>, ScriptError> {
        let mut tags = Vec::new();
        for value in as_list(value) {
            let given = self.string("signal", value)?;
            if given == "none" {
                continue;
            }
            let (kind, payload) = given.split_once(':').map_or((given.as_str(), None), |(k, p)| (k, Some(p)));
            let kind = kind.replace('-', "_").to_ascii_uppercase();
            let tag = wrap_in_tag(&payload.map_or(kind.clone(), |payload| format!("{kind}:{payload}")));
            let refuse = |code| {
                self.at(value.span().start, ScriptProblem::Signal { given: shorten_word(&given), code })
            };
            if tag.contains(['\n', '\r']) {
                return Err(refuse("more than one line"));
            }
            match ControlTagParser::default().hear(&StreamLine { text: tag.clone(), whole: true }) {
                LineKind::Signal(Signal::Malformed { code, .. }) => return Err(refuse(code)),
                LineKind::Signal(_) => tags.push(tag),
                LineKind::Words | LineKind::Code => return Err(refuse("taken for text")),
            }
        }
        Ok(tags)
    }

    fn path(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<PathBuf, ScriptError> {
        let given = self.string(key, value)?;
        let path = Path::new(&given);
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if inside && !given.is_empty() && !given.contains('\0') {
            Ok(path.to_path_buf())
        } else {
            Err(self.at(value.span().start, ScriptProblem::Outside { key, given: shorten_word(&given) }))
        }
    }

    fn canary(&self, value: &ScriptValue<'a>) -> Result<PathBuf, ScriptError> {
        let given = self.string("canary", value)?;
        // It is written into shell scripts and git configuration; a plain path needs no quoting in either.
        let plain = given.starts_with('/')
            && given.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
        if plain {
            Ok(given.into())
        } else {
            Err(self.value("canary", value, "an absolute path of plain letters"))
        }
    }

    fn string(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<String, ScriptError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.value(key, value, "text in quotes")),
        }
    }

    fn bool(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<bool, ScriptError> {
        value.get_ref().as_bool().ok_or_else(|| self.value(key, value, "`true` or `false`"))
    }

    fn integer<T: TryFrom<u64>>(
        &self,
        key: &'static str,
        wanted: &'static str,
        value: &ScriptValue<'a>,
    ) -> Result<T, ScriptError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| self.value(key, value, wanted))
    }

    fn duration(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<u64, ScriptError> {
        let wanted = "a time such as \"200ms\", \"2s\" or \"1m\"";
        value.get_ref().as_str().and_then(duration_ms).ok_or_else(|| self.value(key, value, wanted))
    }

    fn bytes(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<u64, ScriptError> {
        let wanted = "a size such as \"64MiB\" or \"10GB\"";
        value.get_ref().as_str().and_then(parse_bytes).ok_or_else(|| self.value(key, value, wanted))
    }

    fn hex(&self, key: &'static str, value: &ScriptValue<'a>) -> Result<Vec<u8>, ScriptError> {
        let digits: Option<Vec<u8>> = value.get_ref().as_str().and_then(|text| {
            let digits = text.chars().filter(|c| !c.is_ascii_whitespace());
            digits.map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect()
        });
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
            Some(_) | None => Err(self.value(key, value, "pairs of hex digits")),
        }
    }

    fn word<T: Copy, const N: usize>(
        &self,
        what: &'static str,
        known: [(&'static str, T); N],
        value: &ScriptValue<'a>,
    ) -> Result<T, ScriptError> {
        let given = self.string(what, value)?;
        if let Some((_, meant)) = known.iter().find(|(name, _)| *name == given) {
            return Ok(*meant);
        }
        let known: Vec<&'static str> = known.iter().map(|(name, _)| *name).collect();
        let nearest = nearest_word(&given, known.iter().copied());
        Err(self.at(
            value.span().start,
            ScriptProblem::UnknownWord { what, given: shorten_word(&given), nearest, known },
        ))
    }

    fn each<T>(
        &self,
        keys: ScriptKeys<'_, 'a>,
        key: &'static str,
        one: impl Fn(&Self, &ScriptValue<'a>) -> Result<T, ScriptError>,
    ) -> Result<Vec<T>, ScriptError> {
        match keys.get(key) {
            Some(value) => as_list(value).iter().map(|value| one(self, value)).collect(),
            None => Ok(Vec::new()),
        }
    }

    fn table<'v>(
        &self,
        key: &'static str,
        value: &'v ScriptValue<'a>,
    ) -> Result<&'v DeTable<'a>, ScriptError> {
        value.get_ref().as_table().ok_or_else(|| self.value(key, value, "a table"))
    }

    fn array<'v>(
        &self,
        key: &'static str,
        wanted: &'static str,
        value: &'v ScriptValue<'a>,
    ) -> Result<&'v [ScriptValue<'a>], ScriptError> {
        value.get_ref().as_array().map(|array| &**array).ok_or_else(|| self.value(key, value, wanted))
    }

    fn need<'v>(
        &self,
        value: &ScriptValue<'a>,
        table: &'v DeTable<'a>,
        place: &'static str,
        key: &'static str,
    ) -> Result<&'v ScriptValue<'a>, ScriptError> {
        table.get(key).ok_or_else(|| {
            self.at(value.span().start, ScriptProblem::Missing { place, wanted: quote_key(key) })
        })
    }

    fn missing(&self, keys: ScriptKeys<'_, 'a>, wanted: &'static str) -> ScriptError {
        let at = keys.get("misbehave").map_or(0, |value| value.span().start);
        self.at(at, ScriptProblem::Missing { place: "the mode", wanted })
    }

    /// The first unknown key by its place in the text, not in the alphabet.
    fn known_keys(
        &self,
        table: &DeTable<'a>,
        place: &'static str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), ScriptError> {
        let unknown = table.keys().filter(|key| !is_known(key.get_ref())).min_by_key(|key| key.span().start);
        let Some(key) = unknown else { return Ok(()) };
        let known: Vec<&'static str> = every_key().filter(|key| is_known(key)).collect();
        let nearest = nearest_word(key.get_ref(), known.iter().copied());
        let problem = ScriptProblem::UnknownKey { key: shorten_word(key.get_ref()), place, nearest, known };
        Err(self.at(key.span().start, problem))
    }

    fn value(&self, key: &'static str, value: &ScriptValue<'a>, wanted: &'static str) -> ScriptError {
        let given = match value.get_ref() {
            DeValue::String(text) => format!("`{}`", shorten_word(text)),
            DeValue::Integer(number) => format!("`{}`", shorten_word(&number.to_string())),
            other => format!("of type {}", other.type_str()),
        };
        self.at(value.span().start, ScriptProblem::Value { key, given, wanted })
    }

    fn toml(&self, error: &toml::de::Error) -> ScriptError {
        let at = error.span().map_or(0, |span| span.start);
        self.at(at, ScriptProblem::Toml(error.message().replace('\n', "; ")))
    }

    fn at(&self, byte: usize, problem: ScriptProblem) -> ScriptError {
        let before = self.text.as_bytes().iter().take(byte);
        ScriptError { line: 1 + before.filter(|byte| **byte == b'\n').count(), problem }
    }
}

/// A list as it is, anything else as the only element of one.
fn as_list<'v, 'i>(value: &'v ScriptValue<'i>) -> &'v [ScriptValue<'i>] {
    match value.get_ref() {
        DeValue::Array(array) => array,
        _ => std::slice::from_ref(value),
    }
}

fn every_key() -> impl Iterator<Item = &'static str> {
    let parts = ["path", "text", "append", "hex", "executable", "find", "replace", "stream", "pause"];
    let figures = ["tokens_in", "tokens_out", "micro_usd"];
    ["iteration", "otherwise"]
        .into_iter()
        .chain(TURN_KEYS)
        .chain(MODE_KEYS.map(|(key, _)| key))
        .chain(parts)
        .chain(figures)
}

fn quote_key(key: &'static str) -> &'static str {
    match key {
        "path" => "`path`",
        "find" => "`find`",
        "replace" => "`replace`",
        "text" => "`text`",
        other => other,
    }
}

/// Enough of a word to recognise it by, on one line.
fn shorten_word(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}
