//! Files to keep: outputs, diffs and certificates as attachments, streamed in pages; and the rows of a log that scripts ask for.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, header};
use futures::stream;
use landfall_api::{
    Access, DiffAsked, OutputRange, Problem, ProblemCode, Request as Asked, Response, TaskAsked, WireTaskId,
};

use crate::answer::{self, HttpResponse};
use crate::api;
use crate::door::{Requester, ServerState};
use crate::pages::log::{self, LogPageQuery, ROWS};
use crate::pages::{self, ansi};
use crate::router::{Guard, RouteTable};

pub(crate) fn routes(routes: &mut RouteTable) {
    let people = Guard::Needs(Access::Steer); // they belong to pages
    routes.get("/tasks/{task}/log/lines", people, serve_log_lines);
    routes.get("/tasks/{task}/log/download", people, serve_output);
    routes.get("/tasks/{task}/diff.patch", people, serve_patch);
    routes.get("/tasks/{task}/certificate.json", people, serve_certificate);
}

/// Somebody who wants something of a task.
struct DownloadRequest {
    shared: Arc<ServerState>,
    who: Requester,
    task: WireTaskId,
    query: Vec<(String, String)>,
}

impl DownloadRequest {
    fn from_request(shared: Arc<ServerState>, task: &str, request: &Parts) -> Result<Self, Problem> {
        let who = request.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
        who.may(Access::Steer)?; // an agent has no business on pages made for people
        let task = task
            .parse()
            .map_err(|error: landfall_api::BadId| Problem::new(ProblemCode::NotFound, error.to_string()))?;
        let query = serde_html_form::from_str(request.uri.query().unwrap_or_default()).unwrap_or_default(); // what cannot be read is not asked
        Ok(Self { shared, who, task, query })
    }

    fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    async fn call_operation(&self, asked: Asked) -> Result<Response, Problem> {
        api::call(&self.shared, &self.who, asked).await
    }
}

fn or_problem_response(answer: Result<HttpResponse, Problem>) -> HttpResponse {
    answer.unwrap_or_else(|problem| pages::problem(&problem))
}

fn other(response: &Response) -> Problem {
    Problem::new(ProblemCode::Internal, format!("an answer to `{}` was not asked for", response.name()))
}

/// Rows of a log, for the scripts of its page.
async fn serve_log_lines(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, _) = request.into_parts();
    or_problem_response(
        async {
            let caller = DownloadRequest::from_request(shared, &task, &parts)?;
            let wanted = LogPageQuery::of(caller.task, &caller.query);
            match caller.call_operation(Asked::Output(wanted.to_request(ROWS))).await? {
                Response::Output(page) => Ok(answer::html_response(200, log::list(&page).to_string())),
                response => Err(other(&response)),
            }
        }
        .await,
    )
}

/// How an output is written into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DownloadFormat {
    Raw,
    Text,
    JsonLines,
    Html,
}

async fn serve_output(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, _) = request.into_parts();
    or_problem_response(
        async {
            let caller = DownloadRequest::from_request(shared, &task, &parts)?;
            let form = match caller.query_value("as") {
                None | Some("raw") => DownloadFormat::Raw,
                Some("txt") => DownloadFormat::Text,
                Some("jsonl") => DownloadFormat::JsonLines,
                Some("html") => DownloadFormat::Html,
                Some(_) => {
                    return Err(Problem::new(
                        ProblemCode::BadInput,
                        "an output is kept as raw, txt, jsonl or html",
                    ));
                }
            };
            let wanted =
                LogPageQuery { at: None, backward: false, ..LogPageQuery::of(caller.task, &caller.query) };
            // The first piece says whether there is such an output, before anything is sent.
            let first = bytes_of(&caller, &wanted, 0).await?;
            let name = first.name.clone();
            let (kind, ending) = match form {
                DownloadFormat::Raw => ("application/octet-stream", ""),
                DownloadFormat::Text => ("text/plain; charset=utf-8", ".txt"),
                DownloadFormat::JsonLines => ("application/octet-stream", ".jsonl"),
                DownloadFormat::Html => ("application/octet-stream", ".html"),
            };
            let body = match form {
                DownloadFormat::Raw => stream_raw(caller, wanted),
                DownloadFormat::Text | DownloadFormat::JsonLines | DownloadFormat::Html => {
                    stream_formatted(caller, wanted, form, name.clone())
                }
            };
            Ok(to_attachment(kind, &format!("{name}{ending}"), body))
        }
        .await,
    )
}

async fn bytes_of(
    caller: &DownloadRequest,
    wanted: &LogPageQuery,
    at: u64,
) -> Result<landfall_api::OutputBytes, Problem> {
    match caller.call_operation(Asked::OutputBytes(OutputRange { of: wanted.output(), at, bytes: 0 })).await?
    {
        Response::OutputBytes(bytes) => Ok(bytes),
        response => Err(other(&response)),
    }
}

/// The bytes as they were written, up to where the file ends when the end is reached.
fn stream_raw(caller: DownloadRequest, wanted: LogPageQuery) -> Body {
    Body::from_stream(stream::unfold(Some((caller, wanted, 0)), async |state| {
        let (caller, wanted, at) = state?;
        let piece = async {
            let bytes = bytes_of(&caller, &wanted, at).await?;
            let content = bytes
                .content
                .bytes()
                .map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
            Ok::<_, Problem>((content, bytes.next, bytes.total_bytes))
        }
        .await;
        match piece {
            Ok((content, next, total)) => {
                let state = (next < total && next > at).then_some((caller, wanted, next));
                Some((Ok(Bytes::from(content)), state))
            }
            Err(problem) => Some((Err(io::Error::other(problem.message)), None)),
        }
    }))
}

const PIECE: u32 = 2_000;

/// The lines, each as the form wants it.
fn stream_formatted(
    caller: DownloadRequest,
    wanted: LogPageQuery,
    form: DownloadFormat,
    name: String,
) -> Body {
    Body::from_stream(stream::unfold(Some((caller, wanted, true)), move |state| {
        let name = name.clone();
        async move {
            let (caller, mut wanted, begins) = state?;
            let page = match caller.call_operation(Asked::Output(wanted.to_request(PIECE))).await {
                Ok(Response::Output(page)) => page,
                Ok(response) => return Some((Err(io::Error::other(other(&response).message)), None)),
                Err(problem) => return Some((Err(io::Error::other(problem.message)), None)),
            };
            let mut text = String::new();
            if begins && form == DownloadFormat::Html {
                text.push_str(HTML_HEAD);
                text.push_str(pages::markup::escape_text(&name).as_str());
                text.push_str("</title><ol>");
            }
            for line in &page.lines {
                match form {
                    DownloadFormat::Raw | DownloadFormat::Text => {
                        text.push_str(&ansi::strip_colors(&line.text));
                        text.push('\n');
                    }
                    DownloadFormat::JsonLines => {
                        text.push_str(&serde_json::to_string(line).unwrap_or_default()); // plain words and numbers
                        text.push('\n');
                    }
                    DownloadFormat::Html => {}
                }
            }
            if form == DownloadFormat::Html {
                text.push_str(log::render_rows(&page.lines).as_str());
            }
            let ends = page.last || Some(page.next) == wanted.at;
            if ends && form == DownloadFormat::Html {
                text.push_str("</ol>\n");
            }
            wanted = wanted.pinned(&page.output);
            wanted.at = Some(page.next);
            Some((Ok(Bytes::from(text)), (!ends).then_some((caller, wanted, false))))
        }
    }))
}

/// The beginning of a log as a page of its own, to be read from a disk.
const HTML_HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
    content=\"default-src 'none'; style-src 'unsafe-inline'\"><style>body{font:13px/1.5 monospace}ol{list-style:none;margin:0;padding:0}\
    li{white-space:pre-wrap;overflow-wrap:anywhere}.l-time,.l-level{color:#666;margin-right:1ch}.ll-error{color:#a81d16}.ll-warn{color:#7d4a00}\
    .hidden-text{position:absolute;left:-99em}.bold{font-weight:700}.dim{opacity:.7}</style><title>";

async fn serve_patch(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, _) = request.into_parts();
    or_problem_response(
        async {
            let caller = DownloadRequest::from_request(shared, &task, &parts)?;
            let from = caller.query_value("since").filter(|it| !it.is_empty()).map(str::to_owned);
            match caller.call_operation(Asked::Diff(DiffAsked { task: caller.task, from })).await? {
                Response::Diff(diff) => {
                    let bytes = diff
                        .diff
                        .bytes()
                        .map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
                    Ok(to_attachment(
                        "application/octet-stream",
                        &format!("{}.patch", caller.task),
                        Body::from(bytes),
                    ))
                }
                response => Err(other(&response)),
            }
        }
        .await,
    )
}

async fn serve_certificate(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, _) = request.into_parts();
    or_problem_response(
        async {
            let caller = DownloadRequest::from_request(shared, &task, &parts)?;
            match caller.call_operation(Asked::Certificate(TaskAsked { task: caller.task })).await? {
                Response::Certificate(paper) => {
                    let text = serde_json::to_vec_pretty(&paper.certificate).unwrap_or_default(); // it came as JSON
                    Ok(to_attachment(
                        "application/octet-stream",
                        &format!("{}-certificate.json", caller.task),
                        Body::from(text),
                    ))
                }
                response => Err(other(&response)),
            }
        }
        .await,
    )
}

/// A file to keep, never to be shown in place.
fn to_attachment(kind: &'static str, name: &str, body: Body) -> HttpResponse {
    let plain: String = name
        .chars()
        .map(|char| match char {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' => char,
            _ => '-',
        })
        .take(120)
        .collect();
    let plain = plain.trim_start_matches('.');
    let mut answer = answer::of(200, kind, body);
    if let Ok(how) = HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"")) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, how);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_is_harmless() {
        let answer = to_attachment("text/plain", "../..\"\r\nx: y/é.log", Body::empty());
        let how = answer.headers()[header::CONTENT_DISPOSITION].to_str().expect("ASCII");
        assert_eq!(how, "attachment; filename=\"-..---x--y--.log\"");
    }
}
