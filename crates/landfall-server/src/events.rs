//! The stream of events: the journal as it grows, one event each, with its place as the id.
//!
//! One pump reads the journal for everybody. A viewer first catches up from the journal itself, then follows the
//! pump, and goes back to the journal wherever the two do not meet: so there is no gap and nothing twice. A viewer
//! that does not read falls behind the pump's bounded line and is hung up on alone; it comes back with the id of the last
//! event it saw.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, header};
use futures::stream::{self, Stream};
use landfall_api::http::ROOT;
use landfall_api::{
    Access, LogAsked, LogEntry, LogPage, Nothing, Problem, ProblemCode, Request as Asked, Response,
    WireTaskId,
};
use serde::Deserialize;
use tokio::sync::{broadcast, watch};

use crate::answer::escape_json_bytes;
use crate::answer::{self, HttpResponse};
use crate::api;
use crate::door::{Requester, ServerState};
use crate::leave::SessionExpiry;
use crate::router::{Guard, RouteTable};

const LINE_MAX: usize = 64; // messages a viewer may be behind before it is hung up on: some seconds
const PAGE: u32 = 500;
const LOOK: Duration = Duration::from_millis(60); // how often the journal is looked at while somebody watches
const LOOK_ON: Duration = Duration::from_millis(20); // the same, while there is more: everybody gets to read meanwhile
const LIVE_EVERY: Duration = Duration::from_secs(1); // how often what is not in the journal is told
const ALIVE: Duration = Duration::from_secs(15);
/// An event and no comment: a page cannot hear comments, and wants to know whether the line still is one.
const STILL_THERE: &[u8] = b"event: alive\ndata: yes\n\n";

/// What the pump hands to every viewer: bytes that are made once and sent to all.
#[derive(Clone)]
enum StreamMessage {
    /// Entries of the journal after `after`, up to `to`.
    Facts { after: u64, to: u64, told: Arc<EncodedEntries> },
    /// What agents at work are at, as an event. It has no place in the journal and is not repeated.
    Live(Bytes),
}

/// Entries of the journal as the stream tells them, one after the other.
#[derive(Default)]
struct EncodedEntries {
    bytes: Bytes,
    /// Where each begins.
    entries: Vec<(u64, Option<WireTaskId>, usize)>,
}

impl EncodedEntries {
    fn new(entries: &[LogEntry]) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for entry in entries {
            places.push((entry.seq, entry.task, bytes.len()));
            let text = escape_json_bytes(serde_json::to_vec(entry).unwrap_or_default()); // plain words and numbers
            bytes.extend_from_slice(format!("id: {}\ndata: ", entry.seq).as_bytes());
            bytes.extend_from_slice(&text);
            bytes.extend_from_slice(b"\n\n");
        }
        Self { bytes: bytes.into(), entries: places }
    }

    /// What comes after a place; of one task, if it is asked for.
    fn bytes_after(&self, at: u64, task: Option<WireTaskId>) -> Bytes {
        let new = self.entries.partition_point(|(seq, ..)| *seq <= at);
        let Some((_, _, from)) = self.entries.get(new) else { return Bytes::new() };
        if task.is_none() {
            return self.bytes.slice(from..);
        }
        let ends = self.entries.iter().skip(1).map(|(_, _, from)| *from).chain([self.bytes.len()]);
        let all = self.entries.iter().zip(ends).skip(new).filter(|((_, of, _), _)| *of == task);
        all.fold(Vec::new(), |mut told, ((_, _, from), end)| {
            told.extend_from_slice(&self.bytes[*from..end]);
            told
        })
        .into()
    }
}

/// The line from the pump to the viewers.
pub(crate) struct EventFeed {
    line: broadcast::Sender<StreamMessage>,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self { line: broadcast::channel(LINE_MAX).0 }
    }
}

impl EventFeed {
    /// How many watch.
    pub(crate) fn viewer_count(&self) -> usize {
        self.line.receiver_count()
    }
}

/// Reads the journal for everybody, while anybody watches.
pub(crate) async fn run_event_pump(shared: Arc<ServerState>, mut stopping: watch::Receiver<bool>) {
    let mut at: Option<u64> = None;
    let mut live_at = tokio::time::Instant::now();
    let mut last_live = String::new();
    let mut pause = LOOK;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopping.changed() => return,
        }
        pause = LOOK;
        if let Some(keys) = &shared.keys {
            keys.look(); // who only watches asks nothing: a token that was renewed is noticed for them
        }
        if shared.feed.viewer_count() == 0 {
            at = None;
            last_live.clear();
            continue;
        }
        let asked = match at {
            Some(after) => LogAsked { after: Some(after), limit: PAGE, ..LogAsked::default() },
            None => LogAsked { limit: 1, last: true, ..LogAsked::default() },
        };
        if let Ok(page) = read_journal(&shared, asked).await {
            // Whoever hears of something and asks finds it in the answers that are kept.
            if at.is_some_and(|at| at < page.next)
                && shared.service.state_version().is_some_and(|mark| mark.seq >= page.next)
            {
                shared.kept.wait_until_ready(page.next).await;
            }
            shared.kept.note_told(page.next);
            if at.is_some() && page.more {
                pause = LOOK_ON;
            }
            match at {
                Some(after) if !page.entries.is_empty() => {
                    let facts = StreamMessage::Facts {
                        after,
                        to: page.next,
                        told: Arc::new(EncodedEntries::new(&page.entries)),
                    };
                    let _ = shared.feed.line.send(facts); // the last viewer has left
                }
                Some(_) => {}
                // What came between a viewer's look and this one was told to nobody: they look again.
                None => {
                    let facts =
                        StreamMessage::Facts { after: page.next, to: page.next, told: Arc::default() };
                    let _ = shared.feed.line.send(facts); // the last viewer has left
                }
            }
            at = Some(page.next);
        }
        if live_at.elapsed() >= LIVE_EVERY {
            live_at = tokio::time::Instant::now();
            if let Ok(Response::Status(status)) =
                api::call_without_marking(&shared, &Requester::Owner, Asked::Status(Nothing {})).await
            {
                let live = escape_json_bytes(serde_json::to_vec(&status.active).unwrap_or_default()); // plain words and numbers
                let live = String::from_utf8(live).unwrap_or_default(); // JSON is text
                if live != last_live {
                    let head = shared.service.state_version().map_or(0, |mark| mark.seq);
                    shared.kept.wait_until_ready(head).await;
                    shared.kept.note_told(head);
                    let event = Bytes::from(format!("event: live\ndata: {live}\n\n"));
                    last_live = live;
                    let _ = shared.feed.line.send(StreamMessage::Live(event)); // the last viewer has left
                }
            }
        }
    }
}

async fn read_journal(shared: &Arc<ServerState>, asked: LogAsked) -> Result<LogPage, Problem> {
    match api::call_without_marking(shared, &Requester::Owner, Asked::Log(asked)).await? {
        Response::Log(page) => Ok(page),
        other => {
            Err(Problem::new(ProblemCode::Internal, format!("`{}` is no page of the journal", other.name())))
        }
    }
}

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.get(&format!("{ROOT}/events"), Guard::Needs(Access::Read), serve_events);
}

/// What a viewer asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventQuery {
    /// Events after this place; from now on otherwise.
    after: Option<u64>,
    /// Only what concerns this task.
    task: Option<WireTaskId>,
}

async fn serve_events(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> HttpResponse {
    let (parts, _) = request.into_parts();
    match watch_journal(&shared, &parts).await {
        Ok(stream) => {
            let mut answer = answer::of(200, "text/event-stream", Body::from_stream(stream));
            answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            answer
        }
        Err(problem) => answer::problem(&problem),
    }
}

async fn watch_journal(
    shared: &Arc<ServerState>,
    request: &Parts,
) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>, Problem> {
    let who = request.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    who.may(Access::Read)?;
    let bad = |what: &dyn std::fmt::Display| {
        Problem::new(ProblemCode::BadInput, format!("the stream cannot be had: {what}"))
    };
    let wanted: EventQuery =
        serde_html_form::from_str(request.uri.query().unwrap_or_default()).map_err(|error| bad(&error))?;
    // What the browser says it saw last wins: the address it began with is old by then.
    let last = match request.headers.get("last-event-id") {
        None => None,
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.parse::<u64>().ok());
            Some(id.ok_or_else(|| bad(&"Last-Event-ID is a number"))?)
        }
    };
    let line = shared.feed.line.subscribe(); // before the first look, so that nothing falls between
    // A place beyond the journal is one of another journal: from here on, then.
    let head = read_journal(shared, LogAsked { limit: 1, last: true, ..LogAsked::default() }).await?.next;
    let at = last.or(wanted.after).map_or(head, |at| at.min(head));
    let viewer = Viewer {
        shared: Arc::clone(shared),
        line,
        at,
        task: wanted.task,
        behind: true,
        leave: SessionExpiry::of(shared, &who),
        told_at: tokio::time::Instant::now(),
    };
    Ok(stream::unfold(viewer, Viewer::next))
}

/// One who watches.
struct Viewer {
    shared: Arc<ServerState>,
    line: broadcast::Receiver<StreamMessage>,
    /// The last place that was told.
    at: u64,
    task: Option<WireTaskId>,
    /// Whether the journal is to be read before the pump is listened to.
    behind: bool,
    leave: SessionExpiry,
    /// When it was told something last.
    told_at: tokio::time::Instant,
}

impl Viewer {
    fn with_sent(mut self, bytes: Bytes) -> (Result<Bytes, Infallible>, Self) {
        self.told_at = tokio::time::Instant::now();
        (Ok(bytes), self)
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if self.leave.is_over() {
                return None;
            }
            if self.behind {
                let asked = LogAsked { after: Some(self.at), task: None, limit: PAGE, last: false };
                let page = read_journal(&self.shared, asked).await.ok()?; // it comes again, and goes on from there
                self.behind = page.more;
                let told = EncodedEntries::new(&page.entries).bytes_after(self.at, self.task);
                self.at = self.at.max(page.next);
                self.shared.kept.note_told(self.at);
                if told.is_empty() {
                    continue;
                }
                return Some(self.with_sent(told));
            }
            let said = tokio::select! {
                said = self.line.recv() => said,
                () = self.leave.over() => return None,
                () = tokio::time::sleep_until(self.told_at + ALIVE) => {
                    return Some(self.with_sent(Bytes::from_static(STILL_THERE)));
                }
            };
            match said {
                Ok(StreamMessage::Facts { to, .. }) if to <= self.at => {}
                Ok(StreamMessage::Facts { after, .. }) if after > self.at => self.behind = true,
                Ok(StreamMessage::Facts { to, told, .. }) => {
                    let told = told.bytes_after(self.at, self.task);
                    self.at = to;
                    if !told.is_empty() {
                        return Some(self.with_sent(told));
                    }
                }
                Ok(StreamMessage::Live(event)) => return Some(self.with_sent(event)),
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => {
                    return None;
                }
            }
        }
    }
}
