//! What is known for certain: the certificate of a landed task, and the journal of a task.

use askama::Template;
use landfall_api::{LogAsked, Problem, TaskAsked, TypedService as _};
use serde_json::Value;

use super::parts::{self, RelativeTime};
use super::task::{self, TaskPageHead};
use super::{PageContext, RenderedPage, words};

struct ProofCommand {
    name: String,
    command: String,
    exit: String,
    tests: String,
    took: String,
    outcome: String,
    good: bool,
}

struct ProofPage {
    criteria: Vec<String>,
    commands: Vec<ProofCommand>,
    empty: bool,
    taken_over: bool,
    tree: String,
    work: String,
    commit: String,
    base_before: String,
    proof: String,
    landed: Option<RelativeTime>,
    same_tree: bool,
    concerns: Vec<String>,
    note: String,
    warnings: Vec<String>,
    json: String,
}

#[derive(Template)]
#[template(path = "task_certificate.html")]
struct CertificatePage<'a> {
    head: &'a TaskPageHead,
    paper: Option<ProofPage>,
    trouble: String,
}

pub(super) fn draw_certificate_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "certificate")?;
    let (paper, trouble) = match visit.certificate(TaskAsked { task: head.id }) {
        Ok(answer) => (Some(to_proof_page(&answer.certificate, head.now_ms)), String::new()),
        Err(problem) => (None, words::sentence(&problem.message)),
    };
    let page = CertificatePage { paper, trouble, head: &head };
    head.render_page("certificate", &page)
}

/// The fields of a certificate that are known; a later version may have others, which are in the JSON.
fn to_proof_page(value: &Value, now_ms: i64) -> ProofPage {
    let text = |path: &str| match value.pointer(path) {
        Some(Value::String(text)) => words::line(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => words::line(&other.to_string()),
    };
    let is = |path: &str| value.pointer(path).and_then(Value::as_bool).unwrap_or_default();
    let list = |path: &str| value.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let texts = |path: &str| list(path).iter().filter_map(Value::as_str).map(words::line).collect::<Vec<_>>();
    let ran = list("/verification/commands");
    let commands = ran.iter().map(|command| {
        let text =
            |name: &str| command.get(name).and_then(Value::as_str).map(words::line).unwrap_or_default();
        let number = |name: &str| command.get(name).and_then(Value::as_i64);
        ProofCommand {
            name: text("name"),
            command: text("command"),
            exit: number("exit").map_or_else(|| "none".to_owned(), |exit| exit.to_string()),
            tests: number("tests_run").map(|tests| tests.to_string()).unwrap_or_default(),
            took: number("took_ms").map(|took| task::format_precise(took.unsigned_abs())).unwrap_or_default(),
            good: matches!(text("outcome").as_str(), "pass" | "flaky" | "pre-existing"),
            outcome: text("outcome"),
        }
    });
    let concerns = list("/review/concerns")
        .iter()
        .map(|concern| {
            let text =
                |name: &str| concern.get(name).and_then(Value::as_str).map(words::line).unwrap_or_default();
            format!("{}: {}", text("code"), text("detail"))
        })
        .collect();
    ProofPage {
        criteria: texts("/criteria"),
        commands: commands.collect(),
        empty: is("/verification/empty"),
        taken_over: is("/verification/pass_taken_over"),
        same_tree: value.pointer("/verification/tree").is_some()
            && value.pointer("/verification/tree") == value.pointer("/landing/tree"),
        tree: text("/landing/tree"),
        work: text("/work/head"),
        commit: text("/landing/commit"),
        base_before: text("/landing/base_before"),
        proof: text("/landing/proof"),
        landed: value.pointer("/landing/at_ms").and_then(Value::as_i64).map(|at| parts::ago(now_ms, at)),
        concerns,
        note: text("/review/note"),
        warnings: texts("/warnings"),
        json: words::visible(&serde_json::to_string_pretty(value).unwrap_or_default()), // it came as JSON
    }
}

struct TaskLogEntry {
    seq: u64,
    when: RelativeTime,
    kind: String,
    text: String,
    data: Option<String>,
}

#[derive(Template)]
#[template(path = "task_history.html")]
struct TaskHistoryPage<'a> {
    head: &'a TaskPageHead,
    entries: Vec<TaskLogEntry>,
    whole: bool,
    next: Option<u64>,
    from_start: bool,
}

const ENTRIES: u32 = 200;
const DATA_MAX: usize = 4_000; // letters of the facts behind a line

pub(super) fn draw_history(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "history")?;
    let after: Option<u64> = visit.parse_query_value("after");
    let page = visit.log(LogAsked { task: Some(head.id), after, limit: ENTRIES, last: after.is_none() })?;
    let entries = page.entries.iter().map(|entry| TaskLogEntry {
        seq: entry.seq,
        when: parts::ago(head.now_ms, entry.at_ms),
        kind: words::line(&entry.kind),
        text: words::line(&entry.text),
        data: (!entry.data.is_null() && entry.data.as_object().is_none_or(|it| !it.is_empty())).then(|| {
            let text = serde_json::to_string_pretty(&entry.data).unwrap_or_default(); // it came as JSON
            let cut = text.char_indices().nth(DATA_MAX).map_or(text.as_str(), |(end, _)| &text[..end]);
            words::visible(cut)
        }),
    });
    let page = TaskHistoryPage {
        whole: after.is_none() && page.entries.len() < ENTRIES as usize,
        next: (after.is_some() && page.more).then_some(page.next),
        from_start: after.is_some(),
        entries: entries.collect(),
        head: &head,
    };
    head.render_page("history", &page)
}
