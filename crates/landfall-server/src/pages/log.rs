//! What agents and checks printed, as rows of HTML, and the words by which a page of it is asked for. The page, the rows that
//! scripts fetch, the stream and the downloads all use these.

use landfall_api::{
    Level, Output, OutputAsked, OutputKind, OutputLine, OutputOf, Said, ToolOutcome, WireTaskId,
};

use super::markup::Markup;
use super::{ansi, markdown, words};

/// Rows on a page, and in each piece that scripts fetch.
pub(crate) const ROWS: u32 = 400;

/// Which page of which output is wanted, as an address says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPageQuery {
    pub(crate) task: WireTaskId,
    pub(crate) key: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) iteration: Option<u32>,
    pub(crate) check: Option<String>,
    pub(crate) stderr: bool,
    pub(crate) at: Option<u64>,
    pub(crate) backward: bool,
    pub(crate) search: String,
    pub(crate) levels: Vec<Level>,
    pub(crate) view: LogView,
    pub(crate) raw: bool,
}

/// How much of an output is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogView {
    /// What the agent said and did. Its reports about itself and lines of its protocol are left out.
    #[default]
    Conversation,
    /// Tools and errors.
    Tools,
    /// Every line.
    Everything,
}

impl LogView {
    pub(crate) const ALL: [Self; 3] = [Self::Conversation, Self::Tools, Self::Everything];

    /// The word in an address.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Tools => "tools",
            Self::Everything => "everything",
        }
    }

    /// What it is called on the page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Conversation => "Conversation",
            Self::Tools => "Tools",
            Self::Everything => "Everything",
        }
    }

    /// The levels it shows; all, if empty.
    fn shown_levels(self) -> &'static [Level] {
        match self {
            Self::Conversation => &[Level::Error, Level::Warn, Level::Tool, Level::Text, Level::Raw],
            Self::Tools => &[Level::Error, Level::Tool],
            Self::Everything => &[],
        }
    }
}

impl LogPageQuery {
    /// Reads the words of a query. What cannot be understood is not asked for.
    pub(crate) fn of(task: WireTaskId, query: &[(String, String)]) -> Self {
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
            view: LogView::ALL.into_iter().find(|view| find("show") == Some(view.word())).unwrap_or_default(),
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
    pub(crate) fn to_request(&self, lines: u32) -> OutputAsked {
        OutputAsked {
            of: self.output(),
            at: self.at,
            backward: self.backward,
            lines,
            search: self.search.clone(),
            levels: match self.levels.is_empty() {
                true => self.view.shown_levels().to_vec(),
                false => self.levels.clone(),
            },
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
        put("show", (self.view != LogView::default()).then(|| self.view.word().to_owned()));
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
    html.push_tag("<ol class=\"log-page\" data-from=\"").number(page.from);
    html.push_tag("\" data-next=\"").number(page.next);
    html.push_tag("\" data-total=\"").number(page.total_bytes);
    html.push_tag("\" data-first=\"").push_tag(if page.first { "1" } else { "" });
    html.push_tag("\" data-last=\"").push_tag(if page.last { "1" } else { "" });
    html.push_tag("\" data-grows=\"").push_tag(if page.output.grows { "1" } else { "" }).push_tag("\">");
    html.add(&render_rows(&page.lines)).push_tag("</ol>");
    html
}

/// Lines as rows of a list. What belongs together is one row: the lines of a message, and what a tool printed.
pub(crate) fn render_rows(lines: &[Said]) -> Markup {
    let mut html = Markup::default();
    let mut rest = lines;
    let mut tool_began_ms = None;
    while let Some(first) = rest.first() {
        let kind = RowKind::of_line(first);
        let count = match kind {
            RowKind::Line => 1,
            RowKind::Message | RowKind::Result => rest
                .iter()
                .take_while(|line| {
                    line.at == first.at && RowKind::of_line(line) == kind && line.tool == first.tool
                })
                .count(),
        };
        let (block, after) = rest.split_at(count);
        rest = after;
        match kind {
            RowKind::Line => write_line_row(first, &mut html),
            RowKind::Message => write_message_row(block, &mut html),
            RowKind::Result => write_result_row(block, tool_began_ms, &mut html),
        }
        tool_began_ms = match kind {
            RowKind::Line if first.level == Level::Tool => first.at_ms,
            RowKind::Line | RowKind::Message => tool_began_ms,
            RowKind::Result => None,
        };
    }
    html
}

/// What a row of the list is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    Line,
    /// What the agent said, with its Markdown.
    Message,
    /// What a tool printed, folded.
    Result,
}

impl RowKind {
    fn of_line(line: &Said) -> Self {
        match (line.tool, line.level) {
            (Some(_), _) => Self::Result,
            (None, Level::Text) => Self::Message,
            (None, _) => Self::Line,
        }
    }
}

/// Opens a row: its place, its time and its sign.
fn open_row(line: &Said, class: &'static str, mark: &'static str, html: &mut Markup) {
    html.push_tag("<li class=\"")
        .push_tag(class)
        .push_tag("\" data-at=\"")
        .number(line.at)
        .push_tag("\"><span class=\"l-time\">");
    if let Some(at_ms) = line.at_ms {
        html.text(words::to_rfc3339(at_ms).get(11..19).unwrap_or_default());
    }
    html.push_tag("</span><span class=\"l-level\">").push_tag(mark).push_tag("</span>");
}

fn write_cut_mark(line: &Said, html: &mut Markup) {
    if line.cut {
        html.push_tag("<span class=\"muted\"> … (longer in the file)</span>");
    }
}

fn write_line_row(line: &Said, html: &mut Markup) {
    let (class, mark) = level_look(line.level);
    open_row(line, class, mark, html);
    html.push_tag("<span class=\"l-text\">");
    match line.text.split_once(' ') {
        Some((tool, detail)) if line.level == Level::Tool => {
            html.push_tag("<strong>").text(tool).push_tag("</strong> ");
            ansi::render_line(detail, html);
        }
        _ => ansi::render_line(&line.text, html),
    }
    write_cut_mark(line, html);
    html.push_tag("</span></li>");
}

fn write_message_row(lines: &[Said], html: &mut Markup) {
    let (class, mark) = level_look(Level::Text);
    open_row(&lines[0], class, mark, html);
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    html.push_tag("<div class=\"l-text prose\">").add(&markdown::render_markdown(&text.join("\n")));
    write_cut_mark(&lines[lines.len() - 1], html);
    html.push_tag("</div></li>");
}

fn write_result_row(lines: &[Said], began_ms: Option<i64>, html: &mut Markup) {
    const OK: &str = "<span aria-hidden=\"true\">✓</span><span class=\"hidden-text\">succeeded</span>";
    const FAILED: &str = "<span aria-hidden=\"true\">✗</span><span class=\"hidden-text\">failed</span>";
    let first = &lines[0];
    match first.tool {
        Some(ToolOutcome::Failed) => open_row(first, "ll ll-result ll-error", FAILED, html),
        Some(ToolOutcome::Succeeded) | None => open_row(first, "ll ll-result", OK, html),
    }
    let took = first.at_ms.zip(began_ms).and_then(|(end, began)| u64::try_from(end - began).ok());
    let took = took.map(|ms| format!(" · {}", super::task::format_precise(ms))).unwrap_or_default();
    if lines.len() == 1 {
        html.push_tag("<span class=\"l-text\">");
        ansi::render_line(&first.text, html);
        html.push_tag("<span class=\"muted\">").text(&took).push_tag("</span>");
        write_cut_mark(first, html);
        html.push_tag("</span></li>");
        return;
    }
    html.push_tag("<details class=\"l-text\"><summary>");
    ansi::render_line(&first.text, html);
    html.push_tag(" <span class=\"muted\">… ").number(lines.len() as u64).push_tag(" lines").text(&took);
    html.push_tag("</span></summary><pre>");
    for line in lines {
        ansi::render_line(&line.text, html);
        write_cut_mark(line, html);
        html.push_tag("\n");
    }
    html.push_tag("</pre></details></li>");
}

/// The class and the sign of a level; what is read aloud stands beside the sign.
fn level_look(level: Level) -> (&'static str, &'static str) {
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

    fn line(at: u64, level: Level, text: &str) -> Said {
        Said { at, level, at_ms: Some(0), text: text.to_owned(), cut: false, tool: None }
    }

    #[test]
    fn the_conversation_leaves_the_protocol_out() {
        let asked = |query: &str| LogPageQuery::of(WireTaskId(1), &pairs(query)).to_request(1).levels;
        assert!(!asked("").contains(&Level::Debug) && !asked("").contains(&Level::Info));
        assert!(asked("").contains(&Level::Text) && asked("").contains(&Level::Raw));
        assert_eq!(asked("show=tools"), [Level::Error, Level::Tool]);
        assert!(asked("show=everything").is_empty());
        assert_eq!(asked("level=warn"), [Level::Warn], "a level that is asked for is what is shown");
    }

    #[test]
    fn a_tool_is_one_row_and_its_result_is_folded_below() {
        let said = |text: &str, tool| Said { tool, at_ms: Some(1_200), ..line(9, Level::Tool, text) };
        let failed = Some(ToolOutcome::Failed);
        let html = render_rows(&[
            line(1, Level::Text, "# Plan"),
            line(1, Level::Text, "- <b>read</b>"),
            line(5, Level::Tool, "Bash cargo test"),
            said("error: one", failed),
            said("\u{1b}[31mtwo\u{1b}[0m", failed),
        ])
        .to_string();
        assert_eq!(html.matches("<li class=\"ll").count(), 3, "{html}");
        assert!(html.contains("<h3>Plan</h3><ul><li>&lt;b&gt;read"), "{html}");
        assert!(html.contains("<strong>Bash</strong> cargo test"), "{html}");
        assert!(html.contains("failed") && html.contains("2 lines · 1.2s"), "{html}");
        assert!(html.contains("<span class=\"ansi f1\">two</span>"), "{html}");
    }

    #[test]
    fn a_query_says_what_it_was_made_from() {
        let query = "key=a%2Fb+%26c&stderr=1&search=x%22y&level=error&level=warn&show=tools&raw=1";
        let wanted = LogPageQuery::of(WireTaskId(1), &pairs(query));
        assert_eq!(wanted.levels, [Level::Error, Level::Warn]);
        assert_eq!(LogPageQuery::of(WireTaskId(1), &pairs(&wanted.query())), wanted);
        let placed = LogPageQuery::of(WireTaskId(1), &pairs(&wanted.query_at(77, true)));
        assert_eq!((placed.at, placed.backward), (Some(77), true));
    }

    #[test]
    fn nonsense_in_a_query_asks_for_nothing() {
        let wanted = LogPageQuery::of(WireTaskId(1), &pairs("at=-1&level=loud&stderr=maybe&attempt=x"));
        assert_eq!(wanted, LogPageQuery::of(WireTaskId(1), &[]));
    }

    #[test]
    fn rows_escape_what_was_printed() {
        let html = render_rows(&[line(5, Level::Error, "<svg>alert(1)</svg>\u{1b}[31m'\"")]).to_string();
        assert!(!html.contains("<svg"), "{html}");
        assert!(
            html.contains("data-at=\"5\"") && html.contains("00:00:00") && html.contains("error"),
            "{html}"
        );
    }
}
