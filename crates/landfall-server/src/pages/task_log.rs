//! The log of a task: what its agents and checks printed, a page at a time, the newest at the end.

use askama::Template;
use landfall_api::{
    Level, Output, OutputAsked, OutputKind, OutputLine, Problem, TaskAsked, TypedService as _,
};

use super::log::{self, LogPageQuery, LogView, ROWS};
use super::markup::Markup;
use super::task::TaskPageHead;
use super::{PageContext, RenderedPage, words};

#[derive(Template)]
#[template(path = "task_log.html")]
struct TaskLogPage<'a> {
    head: &'a TaskPageHead,
    choices: Vec<LogPageChoice>,
    wanted: &'a LogPageQuery,
    views: Vec<ViewLink>,
    shown: Option<LogPageContent>,
    trouble: Option<String>,
    bare: bool,
}

/// One way to see the output.
struct ViewLink {
    view: LogView,
    link: String,
    here: bool,
}

struct LogPageChoice {
    key: String,
    name: String,
    here: bool,
}

struct LogPageContent {
    name: String,
    list: Markup,
    count: usize,
    place: u64,
    has_stderr: bool,
    grows: bool,
    older: Option<String>,
    newer: Option<String>,
    start: String,
    end: String,
    first_error: Option<String>,
    last_error: Option<String>,
    /// Where scripts ask for rows and for news.
    lines: String,
    stream: String,
    downloads: Vec<(&'static str, String)>,
    /// The same output's other stream, and the same lines as they were printed or as they are understood.
    other_stream: String,
    other_form: String,
}

pub(super) fn draw_log_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "log")?;
    let mut wanted = LogPageQuery::of(head.id, &visit.query);
    if wanted.at.is_none() && wanted.search.is_empty() && wanted.levels.is_empty() {
        wanted.backward = true; // the newest at the end
    }
    let bare = visit.query_value("bare").is_some();
    let outputs = visit.outputs(TaskAsked { task: head.id })?.outputs;
    if wanted.is_any() {
        wanted.key = first_shown(&outputs).map(|output| output.key.clone());
    }
    let page = match bare {
        true => None, // only the head is wanted: the rest stays as the browser has it
        false => Some(visit.output(wanted.to_request(ROWS))),
    };
    let (page, trouble) = match page.transpose() {
        Ok(page) => (page, None),
        Err(_) if outputs.is_empty() => (None, None), // there is nothing to be shown
        Err(problem) => (None, Some(words::sentence(&problem.message))),
    };
    let here = page.as_ref().map(|page| page.output.key.clone());
    let choices = outputs.iter().rev().map(|output| LogPageChoice {
        key: output.key.clone(),
        name: log::name(output),
        here: here.as_ref() == Some(&output.key),
    });
    let drawn = TaskLogPage {
        choices: choices.collect(),
        views: LogView::ALL
            .map(|view| ViewLink {
                view,
                link: format!(
                    "{}?{}",
                    head.path("log"),
                    LogPageQuery { view, levels: Vec::new(), ..wanted.clone() }.query()
                ),
                here: wanted.levels.is_empty() && wanted.view == view,
            })
            .into(),
        shown: page.map(|page| log_page_content(visit, &head, &wanted, &page)),
        trouble,
        bare,
        wanted: &wanted,
        head: &head,
    };
    head.render_page("log", &drawn)
}

/// What is shown where nobody says what: the last iteration of the agent that printed something, else the newest output that has
/// something in it.
fn first_shown(outputs: &[OutputLine]) -> Option<&OutputLine> {
    let says = |it: &&OutputLine| it.grows || it.bytes > 0 || it.stderr_bytes > 0;
    let of_agent = |it: &&OutputLine| it.kind == OutputKind::Agent && says(it);
    outputs.iter().rev().find(of_agent).or_else(|| outputs.iter().rev().find(says)).or(outputs.last())
}

fn log_page_content(
    visit: &PageContext<'_>,
    head: &TaskPageHead,
    wanted: &LogPageQuery,
    page: &Output,
) -> LogPageContent {
    let pinned = wanted.pinned(&page.output);
    let at = head.path("log");
    let link = |place: u64, backward: bool| format!("{at}?{}", pinned.query_at(place, backward));
    let bare = LogPageQuery { search: String::new(), levels: Vec::new(), ..pinned.clone() };
    let error = |backward: bool| {
        let asked = OutputAsked { levels: vec![Level::Error], at: None, backward, ..bare.to_request(1) };
        let found = visit.output(asked).ok()?;
        let line = if backward { found.lines.last() } else { found.lines.first() };
        line.map(|line| format!("{at}?{}", bare.query_at(line.at, false)))
    };
    let first_error = error(false);
    let last_error = first_error.is_some().then(|| error(true)).flatten();
    let query = pinned.query();
    let other = |other: LogPageQuery| format!("{at}?{}", other.query());
    let part = |kind: &str| format!("{at}/download?{query}&as={kind}");
    LogPageContent {
        name: log::name(&page.output),
        list: log::list(page),
        count: page.lines.len(),
        place: (page.next.min(page.total_bytes) * 100).checked_div(page.total_bytes).unwrap_or(100),
        has_stderr: page.output.stderr_bytes > 0,
        grows: page.output.grows,
        older: (!page.first).then(|| link(page.from, true)),
        newer: (!page.last).then(|| link(page.next, false)),
        start: link(0, false),
        end: format!("{at}?{query}&back=1"),
        first_error,
        last_error,
        lines: format!("{at}/lines?{query}"),
        other_stream: other(LogPageQuery { stderr: !pinned.stderr, ..pinned.clone() }),
        other_form: other(LogPageQuery { raw: !pinned.raw, ..pinned.clone() }),
        stream: format!("/api/v1/tasks/{}/output/stream?{query}&as=html", head.id),
        downloads: vec![
            ("raw", part("raw")),
            ("text", part("txt")),
            ("JSON lines", part("jsonl")),
            ("HTML", part("html")),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_opens_on_the_newest_that_says_something() {
        let output = |key: &str, bytes: u64, stderr_bytes: u64, grows: bool| OutputLine {
            key: key.to_owned(),
            kind: OutputKind::Agent,
            attempt: None,
            iteration: None,
            name: None,
            profile: None,
            bytes,
            stderr_bytes,
            began_ms: None,
            ended_ms: None,
            grows,
        };
        let first = |outputs: &[OutputLine]| first_shown(outputs).map(|it| it.key.clone());
        let agent = output("agent", 10, 0, false);
        let silent = output("silent", 0, 0, false);
        assert_eq!(first(&[agent.clone(), silent.clone()]).as_deref(), Some("agent"), "not an empty check");
        assert_eq!(
            first(&[agent.clone(), output("warns", 0, 3, false), silent.clone()]).as_deref(),
            Some("warns")
        );
        assert_eq!(first(&[agent, output("begins", 0, 0, true)]).as_deref(), Some("begins"), "it is at work");
        assert_eq!(first(std::slice::from_ref(&silent)).as_deref(), Some("silent"));
        let check = OutputLine { kind: OutputKind::Check, ..output("check", 9, 0, true) };
        assert_eq!(
            first(&[output("agent", 10, 0, false), check.clone(), silent]).as_deref(),
            Some("agent"),
            "a check that runs now is not what the agent did"
        );
        assert_eq!(first(&[check]).as_deref(), Some("check"));
        assert_eq!(first(&[]), None);
    }
}
