//! One output as it grows: a stream that goes on from a place, with the place of the next line as the id of each event.
//!
//! Each viewer has a reader of its own, which looks while somebody listens and stops when nobody does. What a viewer has not
//! taken waits in a short line; one that takes nothing for a while is left alone and comes back with the last id it saw.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};
use landfall_api::http::ROOT;
use landfall_api::{Access, Output, Problem, ProblemCode, Request as Asked, Response, WireTaskId};
use serde_json::json;
use tokio::sync::mpsc;

use crate::answer::escape_json_bytes;
use crate::answer::{self, HttpResponse};
use crate::api;
use crate::door::{Requester, ServerState};
use crate::forms::value_of;
use crate::leave::SessionExpiry;
use crate::pages::log::{self, LogPageQuery};
use crate::router::{Guard, RouteTable};

const LOOK_MIN: Duration = Duration::from_millis(100); // while lines come
const LOOK_MAX: Duration = Duration::from_millis(1_000); // while none do
const WAITING_MAX: usize = 8; // pages a viewer may be behind
const PATIENCE: Duration = Duration::from_secs(20); // how long a viewer may take nothing
const ALIVE: Duration = Duration::from_secs(15);
const LINES: u32 = 500;

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.get(&format!("{ROOT}/tasks/{{task}}/output/stream"), Guard::Needs(Access::Read), output);
}

async fn output(
    State(shared): State<Arc<ServerState>>,
    Path(task): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, _) = request.into_parts();
    match watch(&shared, &task, &parts).await {
        Ok(stream) => Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)).into_response(),
        Err(problem) => answer::problem(&problem),
    }
}

/// How the lines of an event are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFormat {
    /// As the operation answers.
    Lines,
    /// As rows of the page.
    Html,
}

async fn watch(
    shared: &Arc<ServerState>,
    task: &str,
    request: &Parts,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>, Problem> {
    let who = request.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    who.may(Access::Read)?;
    let bad = |what: &dyn std::fmt::Display| {
        Problem::new(ProblemCode::BadInput, format!("the stream cannot be had: {what}"))
    };
    let task: WireTaskId = task.parse().map_err(|error| bad(&error))?;
    let query: Vec<(String, String)> =
        serde_html_form::from_str(request.uri.query().unwrap_or_default()).map_err(|error| bad(&error))?;
    let number =
        |what: &'static str, text: &str| text.parse::<u64>().map_err(|_| bad(&format!("{what} is a number")));
    // What the browser says it saw last wins: the address it began with is old by then.
    let last = match request.headers.get("last-event-id") {
        Some(id) => Some(number("Last-Event-ID", id.to_str().unwrap_or_default())?),
        None => None,
    };
    let offset = match value_of(&query, "offset") {
        Some(text) => Some(number("`offset`", text)?),
        None => None,
    };
    let form = match value_of(&query, "as") {
        None | Some("lines") => StreamFormat::Lines,
        Some("html") => StreamFormat::Html,
        Some(other) => {
            return Err(bad(&format!(
                "`{}` is no form; known: lines, html",
                other.chars().take(40).collect::<String>()
            )));
        }
    };
    let mut wanted = LogPageQuery::of(task, &query);
    (wanted.at, wanted.backward) = (last.or(offset).or(Some(0)), false);
    // The first look says whether there is such an output, and which: from then on it stays this one.
    let first = look(shared, &who, &wanted).await?;
    let wanted = wanted.pinned(&first.output);
    let (line, taken) = mpsc::channel(WAITING_MAX);
    let leave = SessionExpiry::of(shared, &who);
    let reader = OutputStreamReader { shared: Arc::clone(shared), who, wanted, form, line };
    tokio::spawn(reader.read(*first));
    Ok(stream::unfold((taken, leave), async |(mut taken, mut leave)| {
        let event = tokio::select! {
            event = taken.recv() => event?,
            () = leave.over() => return None,
        };
        Some((Ok(event), (taken, leave)))
    }))
}

async fn look(
    shared: &Arc<ServerState>,
    who: &Requester,
    wanted: &LogPageQuery,
) -> Result<Box<Output>, Problem> {
    match api::call(shared, who, Asked::Output(wanted.to_request(LINES))).await? {
        Response::Output(page) => Ok(page),
        other => Err(Problem::new(ProblemCode::Internal, format!("`{}` is no output", other.name()))),
    }
}

/// Reads one output for one viewer.
struct OutputStreamReader {
    shared: Arc<ServerState>,
    who: Requester,
    wanted: LogPageQuery,
    form: StreamFormat,
    line: mpsc::Sender<Event>,
}

impl OutputStreamReader {
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
            StreamFormat::Lines => told["lines"] = serde_json::to_value(&page.lines).unwrap_or_default(), // plain words and numbers
            StreamFormat::Html => {
                told["html"] = log::render_rows(&page.lines).as_str().into();
                told["count"] = page.lines.len().into();
            }
        }
        let told = escape_json_bytes(told.to_string().into_bytes());
        Event::default().id(page.next.to_string()).data(String::from_utf8_lossy(&told))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt as _;
    use landfall_api::{Level, OutputKind, OutputLine, Said, Service};

    use super::*;

    /// An output of lines of six bytes each, which grows and ends as the test says.
    #[derive(Default)]
    struct Toy {
        lines: AtomicUsize,
        over: AtomicUsize,
        asked: Mutex<Vec<Option<u64>>>,
    }

    impl Service for Toy {
        fn call(&self, asked: Asked) -> Result<Response, Problem> {
            let Asked::Output(asked) = asked else {
                return Err(Problem::new(ProblemCode::NotFound, "only outputs are here"));
            };
            if asked.of.task != WireTaskId(1) {
                return Err(Problem::new(ProblemCode::NotFound, "no such task"));
            }
            self.asked.lock().expect("nobody panicked").push(asked.at);
            let total = self.lines.load(Ordering::SeqCst) as u64;
            let from = asked.at.unwrap_or_default().div_ceil(6).min(total);
            let to = total.min(from + u64::from(asked.lines.min(10)));
            let line = |at: u64| Said {
                at: at * 6,
                level: Level::Raw,
                at_ms: None,
                text: format!("<{at:03}>"),
                cut: false,
                tool: None,
            };
            let output = OutputLine {
                key: "only".to_owned(),
                kind: OutputKind::Agent,
                attempt: None,
                iteration: None,
                name: None,
                profile: None,
                bytes: total * 6,
                stderr_bytes: 0,
                began_ms: None,
                ended_ms: None,
                grows: self.over.load(Ordering::SeqCst) == 0,
            };
            Ok(Response::Output(Box::new(Output {
                output,
                lines: (from..to).map(line).collect(),
                from: from * 6,
                next: to * 6,
                first: from == 0,
                last: to == total,
                total_bytes: total * 6,
            })))
        }
    }

    async fn open(toy: &Arc<Toy>, query: &str, last: Option<&str>) -> HttpResponse {
        let service: Arc<dyn Service + Send + Sync> = Arc::clone(toy) as _;
        let shared = Arc::new(ServerState::new(service, None, &[], Vec::new(), &[], "toy".to_owned()));
        let mut request = Request::builder().uri(format!("/api/v1/tasks/T1/output/stream?{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut request = request.body(Body::empty()).expect("a request");
        request.extensions_mut().insert(Requester::Owner);
        output(State(shared), Path("T1".to_owned()), request).await
    }

    /// Reads until so many lines came or the stream ended; every wait has an end. Gives the lines and the last id.
    async fn read(answer: HttpResponse, lines: usize) -> (Vec<u64>, String, bool) {
        let mut stream = answer.into_body().into_data_stream();
        let (mut text, mut seen) = (String::new(), Vec::new());
        let deadline = Duration::from_secs(20);
        while seen.len() < lines {
            let Ok(Some(Ok(bytes))) = tokio::time::timeout(deadline, stream.next()).await else { break };
            text.push_str(&String::from_utf8_lossy(&bytes));
            seen = places(&text);
        }
        let id = text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default().to_owned();
        (seen, id, text.contains("event: end"))
    }

    fn places(text: &str) -> Vec<u64> {
        let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
        events
            .flat_map(|event| event["lines"].as_array().cloned().unwrap_or_default())
            .filter_map(|line| line["at"].as_u64())
            .map(|at| at / 6)
            .collect()
    }

    fn toy(lines: usize, over: bool) -> Arc<Toy> {
        Arc::new(Toy { lines: lines.into(), over: usize::from(over).into(), asked: Mutex::default() })
    }

    #[tokio::test]
    async fn every_line_comes_once_and_the_end_is_told() {
        let (seen, id, ended) = read(open(&toy(137, true), "", None).await, 1_000).await;
        assert_eq!(seen, (0..137).collect::<Vec<_>>());
        assert_eq!((id.as_str(), ended), ("822", true));
    }

    #[tokio::test]
    async fn a_stream_goes_on_where_the_last_one_was_left() {
        let toy = toy(45, false);
        let (mut seen, id, _) = read(open(&toy, "offset=0", None).await, 20).await;
        toy.lines.store(90, Ordering::SeqCst);
        toy.over.store(1, Ordering::SeqCst);
        // What the browser saw last wins over the address it began with.
        let (rest, _, ended) = read(open(&toy, "offset=0", Some(&id)).await, 1_000).await;
        seen.extend(rest);
        assert_eq!(seen, (0..90).collect::<Vec<_>>(), "no gap, nothing twice");
        assert!(ended);
    }

    #[tokio::test]
    async fn what_is_printed_while_somebody_watches_comes_too() {
        let toy = toy(3, false);
        let answer = open(&toy, "offset=6", None).await;
        let grows = Arc::clone(&toy);
        let growing = tokio::spawn(async move {
            for _ in 0..40 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                grows.lines.fetch_add(1, Ordering::SeqCst);
            }
            grows.over.store(1, Ordering::SeqCst);
        });
        let (seen, _, ended) = read(answer, 1_000).await;
        growing.await.expect("it grew");
        assert_eq!(seen, (1..43).collect::<Vec<_>>());
        assert!(ended);
    }

    #[tokio::test]
    async fn nobody_looks_once_the_viewer_has_left() {
        let toy = toy(3, false);
        drop(read(open(&toy, "", None).await, 3).await);
        let looks = || toy.asked.lock().expect("nobody panicked").len();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let before = looks();
            tokio::time::sleep(LOOK_MAX * 2).await;
            if looks() == before {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it still looks");
        }
    }

    #[tokio::test]
    async fn a_viewer_that_takes_nothing_is_not_read_for() {
        let toy = toy(100_000, true);
        let answer = open(&toy, "", None).await;
        let looks = || toy.asked.lock().expect("nobody panicked").len();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while looks() < WAITING_MAX {
            assert!(tokio::time::Instant::now() < deadline, "nothing is read ahead: {}", looks());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await; // in which it would read on
        let looks = looks();
        assert!(looks <= WAITING_MAX + 3, "{looks} pages were read for somebody who takes none");
        drop(answer);
    }

    #[tokio::test]
    async fn rows_are_escaped_and_nonsense_is_refused() {
        let answer = open(&toy(2, true), "as=html", None).await;
        let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("&lt;001&gt;") && !text.contains("<001>"), "{text}");
        for (query, last) in [("offset=x", None), ("as=xml", None), ("", Some("-1"))] {
            let status = open(&toy(1, true), query, last).await.status();
            assert_eq!(status, ProblemCode::BadInput.http_status(), "{query} {last:?}");
        }
    }
}
