//! Comments on a diff: many fields of one form become one message, to the agent at work or as the changes a reviewer requests.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, header};
use landfall_api::{
    Access, Message, Problem, ProblemCode, Redo, Request as Asked, Response, ReviewAsked, ReviewSaid, Status,
    TaskAsked, WireTaskId,
};

use crate::answer::{self, HttpResponse};
use crate::api::{self, read_body};
use crate::door::{Requester, ServerState};
use crate::forms::Flash;
use crate::pages;
use crate::router::{Guard, RouteTable};

const COMMENTS_MAX: usize = 500;
const CODE_MAX: usize = 300; // letters of a quoted line

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.post("/tasks/{task}/comments", Guard::Needs(Access::Steer), post_comments);
}

async fn post_comments(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, body) = request.into_parts();
    let who = parts.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return pages::problem(&Problem::new(ProblemCode::UnsupportedMediaType, "a form is wanted"));
    }
    let Ok(task) = task.parse::<WireTaskId>() else {
        return pages::problem(&Problem::new(ProblemCode::NotFound, "no such task"));
    };
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(problem) => return pages::problem(&problem),
    };
    let fields: Vec<(String, String)> = serde_html_form::from_bytes(&body).unwrap_or_default(); // no fields are no comments
    let flash = match send(&shared, &who, task, &fields).await {
        Ok(response) => Flash { good: true, text: pages::response_text(&response), hint: None },
        Err(problem) => Flash { good: false, text: problem.message, hint: problem.hint },
    };
    let sent = if flash.good { "?sent=1" } else { "" };
    shared.flashes.push_flash(who.session().unwrap_or_default(), flash);
    answer::redirect_response(&format!("/tasks/{task}/diff{sent}"))
}

async fn send(
    shared: &Arc<ServerState>,
    who: &Requester,
    task: WireTaskId,
    fields: &[(String, String)],
) -> Result<Response, Problem> {
    let text = build_message(fields)?;
    let Response::Show(shown) = api::call(shared, who, Asked::Show(TaskAsked { task })).await? else {
        return Err(Problem::new(ProblemCode::Internal, "the task was not shown"));
    };
    let asked = match shown.line.status {
        Status::Review => Asked::Review(ReviewAsked {
            tasks: vec![task],
            said: ReviewSaid::Changes { issues: Vec::new(), note: text, redo: Redo::Keep, hint: None },
        }),
        _ => Asked::Message(Message { task, text, now: false }),
    };
    api::call(shared, who, asked).await
}

/// One message from the fields of the form: a `comment` belongs to the `file`, `line` and `code` before it.
fn build_message(fields: &[(String, String)]) -> Result<String, Problem> {
    let (mut file, mut line, mut code) = ("", "", "");
    let mut parts: Vec<String> = Vec::new();
    for (name, text) in fields {
        match name.as_str() {
            "file" => (file, line, code) = (text, "", ""),
            "line" => line = text,
            "code" => code = text,
            "comment" => {
                let said = text.trim().replace("\r\n", "\n");
                if !said.is_empty() {
                    let mut part = to_one_line(file);
                    if !line.is_empty() && !file.is_empty() {
                        part.push_str(&format!(", line {}", to_one_line(line)));
                    }
                    if !part.is_empty() {
                        part.push_str(":\n");
                    }
                    if !code.is_empty() {
                        part.push_str(&format!("> {}\n", to_one_line(code)));
                    }
                    part.push_str(&said);
                    parts.push(part);
                }
                (file, line, code) = ("", "", "");
            }
            _ => {}
        }
    }
    match parts.len() {
        0 => Err(Problem::new(ProblemCode::BadInput, "there is no comment to send")
            .with_hint("write one beside a file or a line first")),
        1..=COMMENTS_MAX => Ok(parts.join("\n\n")),
        many => Err(Problem::new(
            ProblemCode::BadInput,
            format!("{many} comments are too many; at most {COMMENTS_MAX} are sent at once"),
        )),
    }
}

fn to_one_line(text: &str) -> String {
    let text: String =
        text.chars().take(CODE_MAX).map(|char| if char.is_control() { ' ' } else { char }).collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn comments_quote_what_they_are_about() {
        let text = build_message(&fields(&[
            ("file", "src/a.rs"),
            ("comment", ""),
            ("file", "src/b.rs"),
            ("line", "12"),
            ("code", "let x = 1;"),
            ("comment", "why 1?\r\nnot 2?"),
            ("file", "src/c.rs"),
            ("comment", "split this"),
            ("file", ""),
            ("comment", "good otherwise"),
        ]));
        assert_eq!(
            text.expect("there are comments"),
            "src/b.rs, line 12:\n> let x = 1;\nwhy 1?\nnot 2?\n\nsrc/c.rs:\nsplit this\n\ngood otherwise"
        );
    }

    #[test]
    fn an_empty_form_sends_nothing() {
        assert!(build_message(&fields(&[("file", "a"), ("line", "1"), ("comment", "  \r\n")])).is_err());
    }

    #[test]
    fn a_quoted_line_stays_one_line() {
        let text = build_message(&fields(&[
            ("file", "a\nb"),
            ("line", "1\n"),
            ("code", "x\ny\u{1b}"),
            ("comment", "z"),
        ]));
        assert_eq!(text.expect("a comment"), "a b, line 1:\n> x y\nz");
    }
}
