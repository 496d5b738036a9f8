//! `.wholework.yml`: what another tool for issues is told, taken over where `landfall.toml` says nothing. A small and strict
//! reader: keys with a value, lists, and one table below a key. What it cannot read is said and changes nothing.

use std::collections::BTreeSet;

use super::raw::RawSettings;
use super::tracker::{parse_address, parse_ignored_paths, spec_path};
use super::units::{BoundedInteger, DAY, Millis, SECOND};

/// Its name, at the root of the repository.
pub const FILE: &str = ".wholework.yml";
/// A person wrote it.
pub const BYTES_MAX: u64 = 64 * 1024;

/// Keys it may have that say nothing here: another way is built in, or there is none.
const WITHOUT: &[&str] = &[
    "auto-retry-on-fail",
    "auto-stop-at",
    "autonomy",
    "capabilities",
    "claude-code-review",
    "coderabbit-review",
    "copilot-review",
    "opportunistic-verify",
    "patch-lock-timeout",
    "permission-mode",
    "preview-url-command",
    "recoveries-auto-fire",
    "retro-proposals-upstream",
    "review-bug",
    "session-auto-rename",
    "steering-docs-path",
    "steering-hint",
];

/// A value of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WholeworkValue {
    Text(String),
    List(Vec<String>),
    /// Keys below a key.
    Table(Vec<String>),
}

/// A key of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WholeworkEntry {
    line: usize,
    key: String,
    value: WholeworkValue,
}

/// Something of the file that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WholeworkProblem {
    line: usize,
    why: String,
}

/// Takes over what `text` says, where `said` knows of no key of ours that says it, and tells what was done, a line each.
pub(super) fn apply_wholework(
    raw: &mut RawSettings,
    said: &dyn Fn(&str, &str) -> bool,
    text: &str,
) -> Vec<String> {
    let entries = match read_entries(text) {
        Ok(entries) => entries,
        Err(WholeworkProblem { line, why }) => {
            return vec![format!("{FILE}:{line}: {why}; nothing of it is taken over")];
        }
    };
    let mut told = WholeworkReport::default();
    let mut silence: Option<(u64, Vec<String>)> = None;
    for WholeworkEntry { line, key, value } in entries {
        let taken = match key.as_str() {
            "production-url" => told.try_take_key(said, &key, "production_url", || {
                let url = single_text(&value)?;
                parse_address(url)?;
                raw.tracker.production_url = Some(url.to_owned());
                Ok(())
            }),
            "spec-path" => told.try_take_key(said, &key, "spec_path", || {
                raw.tracker.spec_path = spec_path(single_text(&value)?)?;
                Ok(())
            }),
            "always-pr" => told.try_take_key(said, &key, "always_pr", || {
                raw.tracker.always_pr = parse_bool(&value)?;
                Ok(())
            }),
            "skill-proposals" => told.try_take_key(said, &key, "file_proposals", || {
                raw.tracker.file_proposals = parse_bool(&value)?;
                Ok(())
            }),
            "verify-max-iterations" => told.try_take_key(said, &key, "verify_iterations_max", || {
                raw.tracker.verify_iterations_max = BoundedInteger(parse_number(&value, 20)?);
                Ok(())
            }),
            "auto-max-concurrent" => told.try_take_key(said, &key, "concurrent", || {
                raw.tracker.concurrent = BoundedInteger(parse_number(&value, 64)?);
                Ok(())
            }),
            "verify-ignore-paths" => told.try_take_key(said, &key, "verify_ignore", || {
                let paths = match &value {
                    WholeworkValue::List(paths) => paths.clone(),
                    WholeworkValue::Text(path) => vec![path.clone()],
                    WholeworkValue::Table(_) => return Err("a list of paths is wanted".to_owned()),
                };
                parse_ignored_paths(&paths)?;
                raw.tracker.verify_ignore = paths;
                Ok(())
            }),
            watchdog if watchdog.starts_with("watchdog-timeout-") && watchdog.ends_with("seconds") => {
                parse_number(&value, u32::try_from(7 * DAY / SECOND).expect("a week has fewer seconds")).map(
                    |seconds| {
                        let ms = u64::from(seconds) * SECOND;
                        let (longest, keys) = silence.get_or_insert_default();
                        *longest = (*longest).max(ms);
                        keys.push(key.clone());
                    },
                )
            }
            known if WITHOUT.contains(&known) => {
                told.without.push(key.clone());
                Ok(())
            }
            _ => {
                told.unknown.push(key.clone());
                Ok(())
            }
        };
        if let Err(why) = taken {
            told.wrong.push(format!("{FILE}:{line}: `{key}`: {why}; it is not taken over"));
        }
    }
    // There is one time here for every phase: the longest of theirs cuts none of them short.
    if let Some((ms, keys)) = silence {
        if said("run", "silence") {
            told.said.extend(keys);
        } else {
            raw.run.silence = Millis(ms);
            told.taken.extend(keys.into_iter().map(|key| format!("{key} → run.silence")));
        }
    }
    told.into_lines()
}

/// What became of the keys.
#[derive(Default)]
struct WholeworkReport {
    taken: Vec<String>,
    said: Vec<String>,
    without: Vec<String>,
    unknown: Vec<String>,
    wrong: Vec<String>,
}

impl WholeworkReport {
    /// Has a key of theirs become one of ours in `[tracker]`, unless ours is said.
    fn try_take_key(
        &mut self,
        said: &dyn Fn(&str, &str) -> bool,
        key: &str,
        ours: &str,
        take: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        if said("tracker", ours) {
            self.said.push(key.to_owned());
            return Ok(());
        }
        take()?;
        self.taken.push(format!("{key} → tracker.{ours}"));
        Ok(())
    }

    fn into_lines(self) -> Vec<String> {
        let parts: Vec<String> = [
            ("taken over: ", &self.taken),
            ("landfall.toml says otherwise: ", &self.said),
            ("without a counterpart here: ", &self.without),
            ("not known: ", &self.unknown),
        ]
        .iter()
        .filter(|(_, keys)| !keys.is_empty())
        .map(|(what, keys)| format!("{what}{}", keys.join(", ")))
        .collect();
        let whole = if parts.is_empty() { "nothing in it".to_owned() } else { parts.join("; ") };
        std::iter::once(format!("{FILE}: {whole}")).chain(self.wrong).collect()
    }
}

fn single_text(value: &WholeworkValue) -> Result<&str, String> {
    match value {
        WholeworkValue::Text(text) => Ok(text),
        WholeworkValue::List(_) | WholeworkValue::Table(_) => Err("one value is wanted".to_owned()),
    }
}

fn parse_bool(value: &WholeworkValue) -> Result<bool, String> {
    match single_text(value)? {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{}` is neither true nor false", other.escape_debug())),
    }
}

fn parse_number(value: &WholeworkValue, max: u32) -> Result<u32, String> {
    let text = single_text(value)?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (1..=max).contains(number));
    number.ok_or_else(|| format!("`{}` is not a whole number from 1 to {max}", text.escape_debug()))
}

/// The keys of the file, in order.
fn read_entries(text: &str) -> Result<Vec<WholeworkEntry>, WholeworkProblem> {
    let mut entries: Vec<WholeworkEntry> = Vec::new();
    let mut seen = BTreeSet::new();
    // Whether the last key had no value beside it, so that lines below may be its own.
    let mut open = false;
    for (at, whole) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = at + 1;
        let broken = |why: &str| WholeworkProblem { line, why: why.to_owned() };
        let bare = strip_comment(whole).trim_end();
        if bare.trim().is_empty() || bare == "---" {
            continue;
        }
        if bare.trim_start_matches(' ').starts_with('\t') {
            return Err(broken("a tab indents it, and only spaces can"));
        }
        let words = bare.trim_start();
        let inside = words.len() < bare.len();
        let item = words.strip_prefix("- ").or_else(|| (words == "-").then_some(""));
        match (entries.last_mut(), item) {
            (Some(last), Some(item)) if open => match &mut last.value {
                WholeworkValue::List(items) => items.push(parse_plain(item).map_err(|why| broken(&why))?),
                WholeworkValue::Text(text) if text.is_empty() => {
                    last.value = WholeworkValue::List(vec![parse_plain(item).map_err(|why| broken(&why))?]);
                }
                WholeworkValue::Text(_) | WholeworkValue::Table(_) => {
                    return Err(broken("a list begins where there is none"));
                }
            },
            (_, Some(_)) => return Err(broken("a list begins below no key")),
            (Some(last), None) if inside && open => {
                let (key, _) = split_pair(words).ok_or_else(|| broken("it is no `key: value`"))?;
                match &mut last.value {
                    WholeworkValue::Table(keys) => keys.push(key.to_owned()),
                    WholeworkValue::Text(text) if text.is_empty() => {
                        last.value = WholeworkValue::Table(vec![key.to_owned()])
                    }
                    WholeworkValue::Text(_) | WholeworkValue::List(_) => {
                        return Err(broken("a table begins where there is none"));
                    }
                }
            }
            (_, None) if inside => return Err(broken("it is indented below no key")),
            (_, None) => {
                let (key, value) = split_pair(words).ok_or_else(|| broken("it is no `key: value`"))?;
                if !seen.insert(key.to_owned()) {
                    return Err(broken(&format!("`{key}` is there twice")));
                }
                open = value.is_empty();
                let value = parse_value(value).map_err(|why| broken(&why))?;
                entries.push(WholeworkEntry { line, key: key.to_owned(), value });
            }
        }
    }
    Ok(entries)
}

/// A line without its comment. One begins at the start, or behind a space, and not within quotes.
fn strip_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') if matches!(before, ' ' | '[' | ',') => quote = Some(c),
            (None, '#') if before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}

/// A key and what stands behind its colon.
fn split_pair(words: &str) -> Option<(&str, &str)> {
    let (key, value) = words.split_once(':')?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let parted = value.is_empty() || value.starts_with(' ');
    (parted && !key.is_empty() && key.chars().all(legal)).then(|| (key, value.trim()))
}

fn parse_value(text: &str) -> Result<WholeworkValue, String> {
    let Some(inner) = text.strip_prefix('[') else { return parse_plain(text).map(WholeworkValue::Text) };
    let inner =
        inner.strip_suffix(']').ok_or("a list that begins with `[` ends on the same line with `]`")?;
    let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(parse_plain).collect::<Result<_, _>>().map(WholeworkValue::List)
}

/// One value, without its quotes.
fn parse_plain(text: &str) -> Result<String, String> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let inner = inner.strip_suffix(quote).filter(|inner| !inner.contains([quote, '\\']));
            return inner.map(str::to_owned).ok_or_else(|| "quotes with escapes are not read".to_owned());
        }
    }
    if text.starts_with(['|', '>', '&', '*', '!', '{', '[', '%', '@', '`']) {
        return Err(format!(
            "`{}` is a form that is not read",
            text.chars().take(20).collect::<String>().escape_debug()
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply_to_toml(toml: &[(&str, &str)], text: &str) -> (RawSettings, Vec<String>) {
        let mut raw = RawSettings::default();
        let lines = apply_wholework(&mut raw, &|section, key| toml.contains(&(section, key)), text);
        (raw, lines)
    }

    const WHOLE: &str = "\
# what the team uses
---
production-url: https://www.example.com   # live
spec-path: \"docs/specs\"
always-pr: true
skill-proposals: true
verify-max-iterations: 5
auto-max-concurrent: 2
verify-ignore-paths:
  - docs/reports/
  - '*.log'
watchdog-timeout-seconds: 2700
watchdog-timeout-code-seconds: 4680
permission-mode: auto
capabilities:
  browser: true
  mcp:
colour: blue
";

    #[test]
    fn what_has_a_counterpart_is_taken_over_and_the_rest_is_named() {
        let (raw, lines) = apply_to_toml(&[], WHOLE);
        assert_eq!(raw.tracker.production_url.as_deref(), Some("https://www.example.com"));
        assert_eq!(raw.tracker.spec_path, "docs/specs");
        assert!(raw.tracker.always_pr && raw.tracker.file_proposals);
        assert_eq!((raw.tracker.verify_iterations_max.0, raw.tracker.concurrent.0), (5, 2));
        assert_eq!(raw.tracker.verify_ignore, ["docs/reports/", "*.log"]);
        assert_eq!(raw.run.silence.0, 4_680_000, "the longest cuts no phase short");
        assert_eq!(
            lines,
            [
                ".wholework.yml: taken over: production-url → tracker.production_url, spec-path → tracker.spec_path, \
              always-pr → tracker.always_pr, skill-proposals → tracker.file_proposals, verify-max-iterations → tracker.verify_iterations_max, \
              auto-max-concurrent → tracker.concurrent, verify-ignore-paths → tracker.verify_ignore, \
              watchdog-timeout-seconds → run.silence, watchdog-timeout-code-seconds → run.silence; \
              without a counterpart here: permission-mode, capabilities; not known: colour"
            ]
        );
    }

    #[test]
    fn landfall_toml_has_the_last_word() {
        let (raw, lines) = apply_to_toml(
            &[("tracker", "concurrent"), ("run", "silence")],
            "auto-max-concurrent: 2\nwatchdog-timeout-seconds: 9\n",
        );
        assert_eq!((raw.tracker.concurrent.0, raw.run.silence.0), (5, 600_000));
        assert_eq!(
            lines,
            [".wholework.yml: landfall.toml says otherwise: auto-max-concurrent, watchdog-timeout-seconds"]
        );
    }

    #[test]
    fn a_value_that_cannot_be_is_named_and_nothing_else_suffers() {
        let text = "verify-max-iterations: 21\nspec-path: ../x\nalways-pr: yes\nauto-max-concurrent: 3\nproduction-url: ftp://x\n\
                    watchdog-timeout-seconds: -1\nverify-ignore-paths: [a, ../b]\n";
        let (raw, lines) = apply_to_toml(&[], text);
        assert_eq!(raw.tracker.concurrent.0, 3);
        assert_eq!(raw.tracker.verify_iterations_max.0, 3);
        assert_eq!(raw.tracker.spec_path, "docs/spec");
        assert!(raw.tracker.verify_ignore.is_empty() && raw.tracker.production_url.is_none());
        assert_eq!(lines.len(), 7, "{lines:#?}");
        assert!(
            lines[1].contains(
                ".wholework.yml:1: `verify-max-iterations`: `21` is not a whole number from 1 to 20"
            )
        );
        assert!(lines[2].contains("`../x` is not a folder of the repository"), "{lines:#?}");
    }

    #[test]
    fn a_file_that_cannot_be_read_changes_nothing_and_says_where() {
        for (text, line, why) in [
            ("auto-max-concurrent: 2\n\tx: 1\n", 2, "a tab"),
            ("auto-max-concurrent: 2\n  x: 1\n", 2, "indented below no key"),
            ("- a\n", 1, "below no key"),
            ("just words\n", 1, "no `key: value`"),
            ("a: 1\na: 2\n", 2, "`a` is there twice"),
            ("a: |\n  x\n", 1, "not read"),
            ("a: [x\n", 1, "ends on the same line"),
            ("a: {b: c}\n", 1, "not read"),
            ("a: \"x\\n\"\n", 1, "escapes"),
            ("a:\n  b: 1\n  - c\n", 3, "a list begins where there is none"),
        ] {
            let (raw, lines) = apply_to_toml(&[], text);
            assert_eq!(raw.tracker.concurrent.0, 5, "{text}");
            let [only] = lines.as_slice() else { panic!("{text}: {lines:?}") };
            assert!(
                only.starts_with(&format!(".wholework.yml:{line}: ")) && only.contains(why),
                "{text}: {only}"
            );
        }
        assert_eq!(apply_to_toml(&[], "").1, [".wholework.yml: nothing in it"]);
        assert_eq!(read_entries("a: 'x # y'\nb: #\nc: d#e\n").map(|it| it.len()), Ok(3));
    }
}
