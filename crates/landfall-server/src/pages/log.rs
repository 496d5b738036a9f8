//! What agents and checks printed, as rows of HTML, and the words by which a page of it is asked for. The page, the rows that
//! scripts fetch, the stream and the downloads all use these.

use landfall_api::{Level, Output, OutputAsked, OutputKind, OutputLine, OutputOf, Said, TaskId};

use super::ansi;
use super::markup::Markup;
use super::words;

/// Rows on a page, and in each piece that scripts fetch.
pub(crate) const ROWS: u32 = 400;

/// Which page of which output is wanted, as an address says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) task: TaskId,
    pub(crate) key: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) iteration: Option<u32>,
    pub(crate) check: Option<String>,
    pub(crate) stderr: bool,
    pub(crate) at: Option<u64>,
    pub(crate) backward: bool,
    pub(crate) search: String,
    pub(crate) levels: Vec<Level>,
    pub(crate) raw: bool,
}

impl Wanted {
    /// Reads the words of a query. What cannot be understood is not asked for.
    pub(crate) fn of(task: TaskId, query: &[(String, String)]) -> Self {
        let find = |name: &str| {
            query
                .iter()
                .find(|(field, text)| field == name && !text.is_empty())
                .map(|(_, text)| text.as_str())
        };
        let is = |name: &str| find(name).is_some_and(|text| matches!(text, "1" | "on" | "true"));
        let levels = query
            .iter()
            .filter(|(field, _)| field == "level")
            .filter_map(|(_, text)| Level::ALL.into_iter().find(|level| level.word() == text));
        Self {
            task,
            key: find("key").map(str::to_owned),
            attempt: find("attempt").and_then(|it| it.parse().ok()),
            iteration: find("iteration").and_then(|it| it.parse().ok()),
            check: find("check").map(str::to_owned),
            stderr: is("stderr"),
            at: find("at").and_then(|it| it.parse().ok()),
            backward: is("back"),
            search: find("search").unwrap_or_default().chars().take(200).collect(),
            levels: levels.collect(),
            raw: is("raw"),
        }
    }

    /// Whether nobody says which output is meant.
    pub(crate) fn is_any(&self) -> bool {
        let Self { key, attempt, iteration, check, .. } = self;
        key.is_none() && attempt.is_none() && iteration.is_none() && check.is_none()
    }

    /// The output that is meant.
    pub(crate) fn output(&self) -> OutputOf {
        OutputOf {
            task: self.task,
            key: self.key.clone(),
            attempt: self.attempt,
            iteration: self.iteration,
            check: self.check.clone(),
            stderr: self.stderr,
        }
    }

    /// The page that is meant.
    pub(crate) fn asked(&self, lines: u32) -> OutputAsked {
        OutputAsked {
            of: self.output(),
            at: self.at,
            backward: self.backward,
            lines,
            search: self.search.clone(),
            levels: self.levels.clone(),
            raw: self.raw,
        }
    }

    /// The same output by its own name, so that it stays the same when another one begins.
    pub(crate) fn pinned(&self, output: &OutputLine) -> Self {
        Self { key: Some(output.key.clone()), attempt: None, iteration: None, check: None, ..self.clone() }
    }

    /// The words of a query that mean this, after a `?`; without the place.
    pub(crate) fn query(&self) -> String {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let mut put =
            |name: &'static str, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
        put("key", self.key.clone());
        put("attempt", self.attempt.map(|it| it.to_string()));
        put("iteration", self.iteration.map(|it| it.to_string()));
        put("check", self.check.clone());
        put("stderr", self.stderr.then(|| "1".to_owned()));
        put("search", (!self.search.is_empty()).then(|| self.search.clone()));
        for level in &self.levels {
            put("level", Some(level.word().to_owned()));
        }
        put("raw", self.raw.then(|| "1".to_owned()));
        serde_html_form::to_string(&pairs).unwrap_or_default() // pairs of texts always can be written
    }

    /// The same with a place.
    pub(crate) fn query_at(&self, at: u64, backward: bool) -> String {
        let back = if backward { "&back=1" } else { "" };
        format!("{}&at={at}{back}", self.query())
    }
}

/// What an output is called in a list.
pub(crate) fn name(output: &OutputLine) -> String {
    let mut parts = Vec::new();
    if let Some(attempt) = output.attempt {
        parts.push(format!("attempt {attempt}"));
    }
    parts.push(match (output.kind, &output.name) {
        (OutputKind::Agent, _) => {
            let profile =
                output.profile.as_deref().map(|it| format!(" ({})", words::line(it))).unwrap_or_default();
            match output.iteration {
                Some(iteration) => format!("iteration {iteration}{profile}"),
                None => format!("agent{profile}"),
            }
        }
        (OutputKind::Check, Some(name)) => format!("check {}", words::line(name)),
        (OutputKind::Check, None) => "check".to_owned(),
        (OutputKind::Hook, Some(name)) => format!("hook {}", words::line(name)),
        (OutputKind::Hook, None) => "hook".to_owned(),
    });
    parts.push(words::bytes(output.bytes + output.stderr_bytes));
    if output.grows {
        parts.push("growing".to_owned());
    }
    parts.join(" · ")
}

/// A page as a list that says where it is.
pub(crate) fn list(page: &Output) -> Markup {
    let mut html = Markup::default();
    html.tag("<ol class=\"log-page\" data-from=\"").number(page.from);
    html.tag("\" data-next=\"").number(page.next);
    html.tag("\" data-total=\"").number(page.total_bytes);
    html.tag("\" data-first=\"").tag(if page.first { "1" } else { "" });
    html.tag("\" data-last=\"").tag(if page.last { "1" } else { "" });
    html.tag("\" data-grows=\"").tag(if page.output.grows { "1" } else { "" }).tag("\">");
    html.add(&rows(&page.lines)).tag("</ol>");
    html
}

/// Lines as rows of a list.
pub(crate) fn rows(lines: &[Said]) -> Markup {
    let mut html = Markup::default();
    for line in lines {
        let (class, mark) = look(line.level);
        html.tag("<li class=\"")
            .tag(class)
            .tag("\" data-at=\"")
            .number(line.at)
            .tag("\"><span class=\"l-time\">");
        if let Some(at_ms) = line.at_ms {
            html.text(words::stamp(at_ms).get(11..19).unwrap_or_default());
        }
        html.tag("</span><span class=\"l-level\">").tag(mark).tag("</span><span class=\"l-text\">");
        ansi::render(&line.text, &mut html);
        if line.cut {
            html.tag("<span class=\"muted\"> … (longer in the file)</span>");
        }
        html.tag("</span></li>");
    }
    html
}

/// The class and the sign of a level; what is read aloud stands beside the sign.
fn look(level: Level) -> (&'static str, &'static str) {
    match level {
        Level::Error => {
            ("ll ll-error", "<span aria-hidden=\"true\">✗</span><span class=\"hidden-text\">error</span>")
        }
        Level::Warn => {
            ("ll ll-warn", "<span aria-hidden=\"true\">!</span><span class=\"hidden-text\">warning</span>")
        }
        Level::Info => ("ll ll-info", "<span aria-hidden=\"true\">i</span>"),
        Level::Debug => ("ll ll-debug", "<span aria-hidden=\"true\">·</span>"),
        Level::Tool => {
            ("ll ll-tool", "<span aria-hidden=\"true\">⚙</span><span class=\"hidden-text\">tool</span>")
        }
        Level::Text => ("ll ll-text", "<span aria-hidden=\"true\">›</span>"),
        Level::Raw => ("ll ll-raw", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        serde_html_form::from_str(query).expect("a query")
    }

    #[test]
    fn a_query_says_what_it_was_made_from() {
        let query = "key=a%2Fb+%26c&stderr=1&search=x%22y&level=error&level=warn&raw=1";
        let wanted = Wanted::of(TaskId(1), &pairs(query));
        assert_eq!(wanted.levels, [Level::Error, Level::Warn]);
        assert_eq!(Wanted::of(TaskId(1), &pairs(&wanted.query())), wanted);
        let placed = Wanted::of(TaskId(1), &pairs(&wanted.query_at(77, true)));
        assert_eq!((placed.at, placed.backward), (Some(77), true));
    }

    #[test]
    fn nonsense_in_a_query_asks_for_nothing() {
        let wanted = Wanted::of(TaskId(1), &pairs("at=-1&level=loud&stderr=maybe&attempt=x"));
        assert_eq!(wanted, Wanted::of(TaskId(1), &[]));
    }

    #[test]
    fn rows_escape_what_was_printed() {
        let line =
            |level, text: &str| Said { at: 5, level, at_ms: Some(0), text: text.to_owned(), cut: false };
        let html = rows(&[line(Level::Error, "<svg>alert(1)</svg>\u{1b}[31m'\"")]).to_string();
        assert!(!html.contains("<svg"), "{html}");
        assert!(
            html.contains("data-at=\"5\"") && html.contains("00:00:00") && html.contains("error"),
            "{html}"
        );
    }
}
