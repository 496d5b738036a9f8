//! One output as it grows: a stream that goes on from a place, with the place of the next line as the id of each event.
//!
//! Each viewer has a reader of its own, which looks while somebody listens and stops when nobody does. What a viewer has not
//! taken waits in a short line; one that takes nothing for a while is left alone and comes back with the last id it saw.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};
use landfall_api::http::ROOT;
use landfall_api::{Access, Output, Problem, ProblemCode, Request as Asked, Response, TaskId};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answer::{self, Answer};
use crate::api;
use crate::door::{Shared, Who};
use crate::pages::log::{self, Wanted};

const LOOK_MIN: Duration = Duration::from_millis(100); // while lines come
const LOOK_MAX: Duration = Duration::from_millis(1_000); // while none do
const WAITING_MAX: usize = 8; // pages a viewer may be behind
const PATIENCE: Duration = Duration::from_secs(20); // how long a viewer may take nothing
const ALIVE: Duration = Duration::from_secs(15);
const LINES: u32 = 500;

pub(crate) fn routes(router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    router.route(&format!("{ROOT}/tasks/{{task}}/output/stream"), axum::routing::get(output))
}

async fn output(
    State(shared): State<Arc<Shared>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> Answer {
    let (parts, _) = request.into_parts();
    match watch(&shared, &task, &parts).await {
        Ok(stream) => Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)).into_response(),
        Err(problem) => answer::problem(&problem),
    }
}

/// How the lines of an event are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As the operation answers.
    Lines,
    /// As rows of the page.
    Html,
}

async fn watch(
    shared: &Arc<Shared>,
    task: &str,
    request: &Parts,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>, Problem> {
    let who = request.extensions.get::<Who>().cloned().unwrap_or(Who::Nobody);
    who.may(Access::Read)?;
    let bad = |what: &dyn std::fmt::Display| {
        Problem::new(ProblemCode::BadInput, format!("the stream cannot be had: {what}"))
    };
    let task: TaskId = task.parse().map_err(|error| bad(&error))?;
    let query: Vec<(String, String)> =
        serde_html_form::from_str(request.uri.query().unwrap_or_default()).map_err(|error| bad(&error))?;
    let number =
        |what: &'static str, text: &str| text.parse::<u64>().map_err(|_| bad(&format!("{what} is a number")));
    // What the browser says it saw last wins: the address it began with is old by then.
    let last = match request.headers.get("last-event-id") {
        Some(id) => Some(number("Last-Event-ID", id.to_str().unwrap_or_default())?),
        None => None,
    };
    let offset = match query.iter().find(|(name, _)| name == "offset") {
        Some((_, text)) => Some(number("`offset`", text)?),
        None => None,
    };
    let form = match query.iter().find(|(name, _)| name == "as").map(|(_, text)| text.as_str()) {
        None | Some("lines") => Form::Lines,
        Some("html") => Form::Html,
        Some(other) => {
            return Err(bad(&format!(
                "`{}` is no form; known: lines, html",
                other.chars().take(40).collect::<String>()
            )));
        }
    };
    let mut wanted = Wanted::of(task, &query);
    (wanted.at, wanted.backward) = (last.or(offset).or(Some(0)), false);
    // The first look says whether there is such an output, and which: from then on it stays this one.
    let first = look(shared, &who, &wanted).await?;
    let wanted = wanted.pinned(&first.output);
    let (line, taken) = mpsc::channel(WAITING_MAX);
    let reader = Reader { shared: Arc::clone(shared), who, wanted, form, line };
    tokio::spawn(reader.read(*first));
    Ok(stream::unfold(taken, async |mut taken| taken.recv().await.map(|event| (Ok(event), taken))))
}

async fn look(shared: &Arc<Shared>, who: &Who, wanted: &Wanted) -> Result<Box<Output>, Problem> {
    match api::call(shared, who, Asked::Output(wanted.asked(LINES))).await? {
        Response::Output(page) => Ok(page),
        other => Err(Problem::new(ProblemCode::Internal, format!("`{}` is no output", other.name()))),
    }
}

/// Reads one output for one viewer.
struct Reader {
    shared: Arc<Shared>,
    who: Who,
    wanted: Wanted,
    form: Form,
    line: mpsc::Sender<Event>,
}

impl Reader {
    /// Until the output ends, the viewer leaves, or takes nothing any more.
    async fn read(mut self, first: Output) {
        let mut page = first;
        let mut pause = LOOK_MIN;
        loop {
            let moved = Some(page.next) != self.wanted.at;
            if !page.lines.is_empty() || (moved && page.last) {
                pause = LOOK_MIN;
                if self.tell(self.event(&page)).await.is_err() {
                    return;
                }
            }
            self.wanted.at = Some(page.next);
            if page.last && !page.output.grows {
                let end = Event::default()
                    .event("end")
                    .id(page.next.to_string())
                    .data(json!({ "next": page.next }).to_string());
                return self.tell(end).await.unwrap_or(()); // if the viewer has left there is nothing to tell
            }
            if page.last {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.line.closed() => return,
                }
                pause = (pause * 2).min(LOOK_MAX);
            }
            page = match look(&self.shared, &self.who, &self.wanted).await {
                Ok(page) => *page,
                Err(_) => return, // it comes again, and is told why
            };
        }
    }

    async fn tell(&self, event: Event) -> Result<(), ()> {
        self.line.send_timeout(event, PATIENCE).await.map_err(drop)
    }

    fn event(&self, page: &Output) -> Event {
        let mut told = json!({
            "from": page.from, "next": page.next, "total_bytes": page.total_bytes, "grows": page.output.grows,
        });
        match self.form {
            Form::Lines => told["lines"] = serde_json::to_value(&page.lines).unwrap_or_default(), // plain words and numbers
            Form::Html => {
                told["html"] = log::rows(&page.lines).as_str().into();
                told["count"] = page.lines.len().into();
            }
        }
        Event::default().id(page.next.to_string()).data(told.to_string())
    }
}
