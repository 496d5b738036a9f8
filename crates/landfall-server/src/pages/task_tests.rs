//! The pages of a task, drawn from answers that were made up: nothing in any field becomes markup, and what can be done is what
//! is offered.

use std::sync::Arc;

use landfall_api::{
    Blob, CertificateJson, Diff, FlowLine, FlowList, FlowOrigin, LogEntry, LogPage, Output, OutputKind,
    OutputLine, OutputList, Problem, ProblemCode, Request as Asked, Response, ReviewList, Said, Service,
    TaskDetail, Why,
};
use serde_json::json;

use super::{PAGES, PageContext, RenderedPage};
use crate::door::{Requester, ServerState};

/// Breaks out of wherever it lands, if anything can.
const EVIL: &str = "</textarea></script><img src=x onerror=alert(1)>'\"><b>\u{202e}\u{1b}[31m`";

const TASK: &str = r#"{
    "id": "T7", "title": "@", "status": "@status", "phase": "@", "tags": ["@"], "priority": 5, "needs": ["T1"], "iterations": 2,
    "wait": { "for": "question", "owner": "@", "detail": "@" }, "why": "@", "body": "@body", "criteria": ["@"], "touches": ["@"],
    "flow": "@", "agent": "@", "source": "@", "step": "work", "attempt": 3, "iterations_max": 50,
    "counters": [{ "name": "@", "used": 3, "max": 4 }], "spent_ms": 1000, "limit_ms": 2000, "tokens": 10, "cost_usd": 0.5,
    "budgets": [{ "scope": "task", "of": "usd", "used": 1.0, "max": 2.0 }],
    "gate": { "outcome": "fail", "base": "@", "head": "@", "commit": "@", "tree": "@", "took_ms": 5, "reused": true, "empty": true,
        "commands": [{ "name": "@", "command": "@", "required": false, "outcome": "timeout", "took_ms": 42000, "limit_ms": 600000,
            "tests": 3, "excerpt": "@" }] },
    "concerns": [{ "code": "x", "text": "@" }], "feedback": "@", "messages": ["@"], "held": "@", "warnings": ["@"],
    "progress": { "phase": "@", "phases": [{ "phase": "@", "state": "done" }, { "phase": "@", "state": "now", "percent": 45 }],
        "plan_steps": 4, "plan_done": 2, "stage": 2, "convergence": 0.5, "composite": 0.8, "verdict": "@",
        "can_do": ["@", "check/post-plan"], "directed": "@", "strip": "@" },
    "branch": "@", "workspace": "@", "added_ms": 0,
    "attempts": [
        { "attempt": 1, "step": "@", "began_ms": 0, "ended_ms": 5, "iterations": 1, "end": "@", "runs": [{
            "iteration": 1, "began_ms": 0, "took_ms": 4, "profile": "@", "model": "@", "session": "@", "resumed": true, "sandbox": "@",
            "usage": { "tokens_in": 1, "tokens_cached": 1, "tokens_out": 1, "turns": 1, "cost_usd": 0.1 }, "verdict": "@" }] },
        { "attempt": 2, "step": "work", "began_ms": 0, "iterations": 0, "end": "@" }]
}"#;

const TARGET: &str = r#"{
    "task": "T7", "progress": { "phase": "@", "plan_done": 1, "strip": "@" },
    "items": [{ "text": "@", "requirements": [{ "number": 1, "text": "@", "criteria": "@", "weight": "@", "coverage": 0.5, "focus": true }] }],
    "constraints": ["@"], "revision": 2, "shown": 2, "awaits": true, "question": "@", "satisfied_at": 0.95,
    "stage": { "number": 2, "focus": [1] }, "stages": [{ "number": 1, "focus": [1], "commit": "@", "convergence": 0.5 }],
    "exclusions": [{ "stage": 2, "direction": "@", "reason": "@", "abandoned": "@", "from": 0.5, "to": 0.5 }],
    "refinements": [{ "number": 1, "at_ms": 0, "text": "@", "state": "weighed", "impact": "@" }],
    "judgements": [{ "at_ms": 0, "checkpoint": "post-exec", "stage": 1, "head": "@", "composite": 0.8, "verdict": "@", "passed": false,
        "scores": [{ "code": "@", "name": "@", "score": 0.4, "weight": 0.2, "gate": 0.5 }, { "code": "D4", "name": "performance", "score": 0.7, "weight": 0.1 }],
        "reasons": ["@"] }],
    "thresholds": [{ "step": "@", "checkpoint": "post-exec", "threshold": 0.75 }],
    "plan": [{ "number": 1, "title": "@", "covers": [1], "done": true }, { "number": 2, "title": "@", "done": false }],
    "proofs": [{ "of": "@", "about": "@", "command": "@", "standing": "@" }]
}"#;

/// An objective with the worst in every field.
fn evil_target() -> landfall_api::Target {
    let evil = serde_json::to_string(EVIL).expect("a text");
    serde_json::from_str(&TARGET.replace("\"@\"", &evil)).expect("an objective")
}

/// A task with the worst in every field.
fn evil_task(status: &str) -> TaskDetail {
    let evil = serde_json::to_string(EVIL).expect("a text");
    let body = format!("# {EVIL}\n- {EVIL}\n```\n{EVIL}\n```\n**{EVIL}**");
    let body = serde_json::to_string(&body).expect("a text");
    let text = TASK.replace("@status", status).replace("\"@body\"", &body).replace("\"@\"", &evil);
    serde_json::from_str(&text).expect("a task")
}

fn evil_output() -> OutputLine {
    OutputLine {
        key: EVIL.to_owned(),
        kind: OutputKind::Check,
        attempt: Some(3),
        iteration: None,
        name: Some(EVIL.to_owned()),
        profile: Some(EVIL.to_owned()),
        bytes: 1,
        stderr_bytes: 1,
        began_ms: Some(0),
        ended_ms: None,
        grows: true,
    }
}

struct Toy(TaskDetail);

impl Service for Toy {
    fn call(&self, asked: Asked) -> Result<Response, Problem> {
        let evil = || EVIL.to_owned();
        Ok(match asked {
            Asked::Show(_) => Response::Show(Box::new(self.0.clone())),
            Asked::Why(asked) => Response::Why(Why {
                task: asked.task,
                status: self.0.line.status,
                sentence: evil(),
                details: vec![evil()],
                progress: None,
                clashes: vec![landfall_api::ClashLine {
                    task: asked.task,
                    with: landfall_api::WireTaskId(3),
                    files: vec![evil()],
                }],
            }),
            Asked::Target(_) => Response::Target(Box::new(evil_target())),
            Asked::Papers(asked) => Response::Papers(landfall_api::PaperList {
                task: asked.task,
                papers: vec![landfall_api::PaperLine { name: evil(), bytes: 1, told: false }],
            }),
            Asked::Paper(asked) => Response::Paper(Box::new(landfall_api::Paper {
                task: asked.task,
                name: evil(),
                text: evil(),
                told: false,
            })),
            Asked::FlowList(_) => Response::FlowList(FlowList {
                flows: vec![FlowLine {
                    name: evil(),
                    about: evil(),
                    origin: FlowOrigin::Project,
                    steps: vec!["work".to_owned(), evil()],
                    default: true,
                    not_yet: None,
                }],
            }),
            Asked::Reviews(_) => Response::Reviews(ReviewList {
                before: Vec::new(),
                after: Vec::new(),
                issues: vec![landfall_api::QuickIssue { name: evil(), text: evil() }],
            }),
            Asked::Outputs(asked) => {
                Response::Outputs(OutputList { task: asked.task, outputs: vec![evil_output()] })
            }
            Asked::Output(_) => Response::Output(Box::new(Output {
                output: evil_output(),
                lines: landfall_api::Level::ALL
                    .map(|level| Said { at: 0, level, at_ms: Some(0), text: evil(), cut: true, tool: None })
                    .to_vec(),
                from: 5,
                next: 9,
                first: false,
                last: false,
                total_bytes: 20,
            })),
            Asked::Diff(asked) => Response::Diff(Diff {
                task: asked.task,
                from: evil(),
                to: evil(),
                diff: Blob::Text(format!(
                    "{EVIL}\ndiff --git a/x.js b/x.js\nrename from {EVIL}\nnew mode {EVIL}\n--- a/{EVIL}.js\n+++ b/{EVIL}.js\n@@ -1,2 +1,2 @@ {EVIL}\n-{EVIL}\n+let a = \"{EVIL}\";\n {EVIL}\n\\ {EVIL}\n"
                )),
            }),
            Asked::Certificate(asked) => Response::Certificate(CertificateJson {
                task: asked.task,
                certificate: json!({
                    "criteria": [EVIL], "verification": { "commands": [{ "name": EVIL, "command": EVIL, "outcome": EVIL }], "tree": EVIL },
                    "landing": { "tree": EVIL, "commit": EVIL, "base_before": EVIL, "proof": EVIL, "at_ms": 0 }, "work": { "head": EVIL },
                    "review": { "concerns": [{ "code": EVIL, "detail": EVIL }], "note": EVIL }, "warnings": [EVIL],
                }),
            }),
            Asked::Log(_) => Response::Log(LogPage {
                entries: vec![LogEntry {
                    seq: 1,
                    at_ms: 0,
                    task: None,
                    kind: "verified".to_owned(),
                    text: evil(),
                    data: json!({ "attempt": 2, "report": { "commands": [{ "name": EVIL, "outcome": "pass", "took_ms": 3 }] }, "x": EVIL }),
                }],
                next: 1,
                more: true,
            }),
            other => {
                return Err(Problem::new(ProblemCode::NotNow, format!("`{}` is not made up", other.name())));
            }
        })
    }
}

/// Draws a page of the task by its path and query.
fn draw_path(path: &str, query: &str, task: TaskDetail) -> String {
    let shared = ServerState::new(Arc::new(Toy(task)), None, &[], Vec::new(), &[], "toy".to_owned());
    let visit = PageContext {
        shared: &shared,
        who: &Requester::Owner,
        fields: vec![("task".to_owned(), "T7".to_owned())],
        query: serde_html_form::from_str(query).expect("a query"),
    };
    let entry = PAGES.iter().find(|entry| entry.path == path).expect("there is such a page");
    let RenderedPage { title, main, .. } =
        (entry.draw)(&visit).unwrap_or_else(|problem| panic!("{path}: {problem:?}"));
    assert!(title.contains("T7"), "{title}");
    main
}

const ALL: &[(&str, &str)] = &[
    ("/tasks/{task}", ""),
    ("/tasks/{task}/log", ""),
    (
        "/tasks/{task}/log",
        "search=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%22&level=error&at=3&back=1&key=%22%3E%3Cimg%20src%3Dx",
    ),
    ("/tasks/{task}/log", "bare=1"),
    ("/tasks/{task}/diff", ""),
    ("/tasks/{task}/diff", "view=split&blanks=1&since=%22%3E%3Cimg%20src%3Dx&file=0"),
    ("/tasks/{task}/diff", "bare=1"),
    ("/tasks/{task}/checks", ""),
    ("/tasks/{task}/gates", ""),
    ("/tasks/{task}/target", "paper=%22%3E%3Cimg%20src%3Dx"),
    ("/tasks/{task}/attempts", "all=1"),
    ("/tasks/{task}/cost", ""),
    ("/tasks/{task}/certificate", ""),
    ("/tasks/{task}/history", "after=0"),
];

#[test]
fn nothing_in_any_field_becomes_markup() {
    for status in ["active", "review", "waiting", "done", "landing", "failed", "draft"] {
        for (path, query) in ALL {
            let html = draw_path(path, query, evil_task(status));
            for bad in ["<img", "</script", "<b>", "onerror=alert(1)>"] {
                assert!(!html.contains(bad), "{status} {path}?{query}: {bad} in {html}");
            }
            let shown = visible_text(&html);
            assert!(!shown.contains(['\u{202e}', '\u{1b}']), "{status} {path}?{query}: {shown}");
            // An area for text is closed as often as it is opened.
            assert_eq!(
                html.matches("<textarea").count(),
                html.matches("</textarea>").count(),
                "{status} {path}?{query}"
            );
            assert_balanced(&html, &format!("{status} {path}?{query}"));
        }
    }
}

/// What people read: the text between tags. Fields keep their values as they are, for they are sent back.
fn visible_text(html: &str) -> String {
    let parts = html.split('<').filter(|part| !part.starts_with("textarea"));
    parts.filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect()
}

/// Every tag that is opened is closed, in order.
#[track_caller]
fn assert_balanced(html: &str, what: &str) {
    const ALONE: &[&str] = &["br", "col", "input", "meta", "link", "hr", "img"];
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split(['>', ' ', '\n', '/']).next().unwrap_or_default();
        if let Some(closes) = part.strip_prefix('/') {
            let name = closes.split('>').next().unwrap_or_default();
            assert_eq!(open.pop(), Some(name), "{what}: {part}");
        } else if !ALONE.contains(&tag) && !part.split('>').next().unwrap_or_default().ends_with('/') {
            open.push(tag);
        }
    }
    assert!(open.is_empty(), "{what}: {open:?} are not closed");
}

#[test]
fn only_what_is_possible_is_offered() {
    let offers = |status: &str, wait: bool| {
        let mut task = evil_task(status);
        task.held = None;
        task.progress = None; // what it allows by hand is told elsewhere
        if !wait {
            task.line.wait = None;
        }
        let html = draw_path("/tasks/{task}", "", task);
        let mut offers: Vec<String> = html
            .split("action=\"/do/")
            .skip(1)
            .filter_map(|it| it.split('"').next())
            .map(str::to_owned)
            .collect();
        offers.dedup();
        offers.join(" ")
    };
    let cases = [
        offers("active", false),
        offers("review", false),
        offers("waiting", true),
        offers("landing", false),
        offers("done", false),
        offers("failed", false),
    ];
    assert_eq!(
        cases,
        [
            "message stop hold block limits cancel edit",
            "review message hold block limits cancel edit",
            "message hold retry block limits cancel edit",
            "message queue_eject hold block limits cancel edit",
            "",
            "message retry limits cancel edit",
        ]
    );
}

#[test]
fn a_step_that_failed_has_no_tick() {
    let mut failed = evil_task("failed");
    failed.step = None; // a task that is over is at no step
    let html = draw_path("/tasks/{task}", "", failed);
    let steps =
        html.split("<ol class=\"steps\"").nth(1).and_then(|it| it.split("</ol>").next()).unwrap_or_default();
    assert!(steps.contains("class=\"step stopped\"") && steps.contains("✗"), "{steps}");
    let work = steps.split("<li").find(|it| it.contains("> work")).unwrap_or_default();
    assert!(!work.contains("✓"), "{work}");
}

#[test]
fn a_form_with_two_answers_confirms_before_it_throws_away() {
    let html = draw_path("/tasks/{task}", "", evil_task("active"));
    let cancel = html.split("action=\"/do/cancel\"").nth(1).expect("it may be cancelled");
    let form = cancel.split("</form>").next().expect("a form ends");
    assert!(form.contains("data-confirm=") && form.contains("type=\"checkbox\" required"), "{form}");
}

#[test]
fn checks_say_how_they_ended_and_how_long_they_might_have_taken() {
    let html = draw_path("/tasks/{task}/checks", "", evil_task("failed"));
    assert!(html.contains("✗") && html.contains("TIMEOUT") && html.contains("42s / 10m"), "{html}");
}

#[test]
fn a_task_that_is_not_there_says_so() {
    struct Nothing;
    impl Service for Nothing {
        fn call(&self, _: Asked) -> Result<Response, Problem> {
            Err(Problem::new(ProblemCode::NotFound, "no such task"))
        }
    }
    let shared = ServerState::new(Arc::new(Nothing), None, &[], Vec::new(), &[], "toy".to_owned());
    for (path, _) in ALL {
        let visit = PageContext {
            shared: &shared,
            who: &Requester::Owner,
            fields: vec![("task".to_owned(), "T7".to_owned())],
            query: Vec::new(),
        };
        let entry = PAGES.iter().find(|entry| entry.path == *path).expect("there is such a page");
        assert!((entry.draw)(&visit).is_err_and(|problem| problem.code == ProblemCode::NotFound), "{path}");
    }
}

#[test]
fn gates_say_in_words_and_numbers_what_a_judge_said() {
    let html = draw_path("/tasks/{task}/gates", "", evil_task("active"));
    for said in [
        "blocks: below its gate of 0.50",
        "counts in the mean",
        "D4",
        "0.70",
        "Convergence by stage, met at 0.95",
        "R1",
        "action=\"/do/refine_withdraw\"",
        "0.75",
    ] {
        assert!(html.contains(said), "{said} in {html}");
    }
    let mut plain = evil_task("active");
    plain.progress = None;
    let html = draw_path("/tasks/{task}/gates", "", plain);
    assert!(!html.contains("/do/refine"), "a task without a judge has nothing of it: {html}");
    assert!(!html.contains("id=\"tab-target\""), "nor a tab for it");
}

#[test]
fn an_objective_can_be_confirmed_only_where_a_yes_is_awaited() {
    let html = draw_path("/tasks/{task}/target", "", evil_task("waiting"));
    assert!(
        html.contains("action=\"/do/target_confirm\"") && html.contains("name=\"revision:n\" value=\"2\""),
        "{html}"
    );
    assert!(html.contains("action=\"/do/target_say\""));
    assert!(
        html.contains("☑") && html.contains("done:") && html.contains("open:"),
        "steps that are done are told in words too"
    );
    assert!(html.contains("45 %") && html.contains("id=\"task-strip\""), "the head says how far it is");
    assert!(html.contains("name=\"checkpoint\" value=\"post-plan\""), "what can be done by hand is a button");
}
