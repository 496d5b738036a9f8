//! The operations as routes: one for each line of the table, none written by hand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams, State};
use axum::http::{HeaderMap, Request, header};
use http_body_util::{BodyExt as _, Limited};
use landfall_api::http::{self, BODY_BYTES_MAX, IDEMPOTENCY_HEADER, ROOT};
use landfall_api::{
    Access, HttpMethod, OperationCost, OperationRoute, Problem, ProblemCode, Request as Asked, Response,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access;
use crate::answer::escape_json_bytes;
use crate::answer::{self, HttpResponse};
use crate::connections::ConnectionSource;
use crate::door::{Requester, ServerState};
use crate::router::{Guard, RouteTable};

pub(crate) fn routes(routes: &mut RouteTable) {
    for route in Asked::ROUTES {
        let answer =
            async move |State(shared): State<Arc<ServerState>>, request: Request<Body>| match operate(
                &shared, route, request,
            )
            .await
            {
                Ok(answer) => answer,
                Err(problem) => answer::problem(&problem),
            };
        let path = format!("{ROOT}{}", route.path);
        routes.on(route.method, &path, Guard::Needs(route.access), answer);
    }
    let read = Guard::Needs(Access::Read);
    routes.get(&format!("{ROOT}/hello"), read, async || answer::json(b"{}".to_vec()));
    routes.get(&format!("{ROOT}/openapi.json"), read, async || answer::json(OPENAPI.to_vec()));
}

/// The reference of everything that can be asked, as it is in the repository.
pub const OPENAPI: &[u8] = include_bytes!("../../../docs/reference/openapi.json");

async fn operate(
    shared: &Arc<ServerState>,
    route: &'static OperationRoute,
    request: Request<Body>,
) -> Result<HttpResponse, Problem> {
    let (mut parts, body) = request.into_parts();
    let who = parts.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    who.may(route.access)?;
    let key = idempotency_key(&parts.headers, route.method)?;
    let fields = RawPathParams::from_request_parts(&mut parts, &()).await;
    let fields = fields.map_err(|_| Problem::new(ProblemCode::BadInput, "the path is no text"))?;
    let fields: Vec<(String, String)> =
        fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = match route.method {
        HttpMethod::Get | HttpMethod::Delete => Vec::new(),
        HttpMethod::Post | HttpMethod::Patch => read_json(&parts.headers, body).await?,
    };
    let asked = http::read(route, &fields, parts.uri.query().unwrap_or_default(), &body)?;
    if who != Requester::Owner && is_shared(&asked) {
        return shared_answer(shared, asked, &parts.uri).await;
    }
    let Some(key) = key else {
        return Ok(answer::json(encode_response(&call(shared, &who, asked).await?)?));
    };
    let mark = IdempotencyCache::hash_request(&parts.uri.to_string(), &body);
    // In a task of its own: whoever hangs up meanwhile and asks again gets what came of it.
    let once = tokio::spawn(call_once(Arc::clone(shared), who, key, mark, asked));
    match once.await {
        Ok(text) => Ok(answer::json(text?)),
        Err(_) => Err(unfinished_problem()),
    }
}

/// Whether everybody who asks this is answered the same until something is written.
fn is_shared(asked: &Asked) -> bool {
    match asked {
        Asked::Status(_) | Asked::Board(_) | Asked::List(_) | Asked::Show(_) | Asked::Inbox(_) => true,
        // The end of an output, as everybody who looks sees it. Whoever reads on from a place is the only one there.
        Asked::Output(asked) => asked.backward && asked.at.is_none() && asked.search.is_empty(),
        _ => false,
    }
}

/// The answer to what is the same for everybody.
async fn shared_answer(
    shared: &Arc<ServerState>,
    asked: Asked,
    uri: &axum::http::Uri,
) -> Result<HttpResponse, Problem> {
    let (name, began) = (asked.name(), std::time::Instant::now());
    let question = uri.path_and_query().map_or("", |it| it.as_str());
    let make = move |shared: &Arc<ServerState>| {
        let mut answer = shared.service.call(asked.clone())?;
        if let Some(mask) = shared.masks.current_finder(&*shared.service) {
            mask.hide_in_response(&mut answer);
        }
        Ok(escape_json_bytes(encode_response(&answer)?).into())
    };
    let answer = shared.kept.get(shared, question, make).await;
    shared.metrics.note_request(name, answer.is_ok(), began.elapsed());
    answer.map(answer::harmless_json_response)
}

/// Carries a request out once for its key, however often it is asked.
async fn call_once(
    shared: Arc<ServerState>,
    who: Requester,
    key: String,
    mark: [u8; 32],
    asked: Asked,
) -> Result<Vec<u8>, Problem> {
    let slot = shared.done.slot_for(&who, &key);
    let mut done = slot.lock().await;
    match &*done {
        Some((asked, answer)) if *asked == mark => return Ok(answer.clone()),
        Some(_) => {
            return Err(Problem::new(
                ProblemCode::KeyReused,
                "this idempotency key came with another request before",
            )
            .with_hint("a new request needs a new key"));
        }
        None => {}
    }
    // A problem is not kept: nothing was done, and asking again may help.
    let text = encode_response(&call(&shared, &who, asked).await?)?;
    *done = Some((mark, text.clone()));
    shared.done.note_size(&who, &key, text.len());
    Ok(text)
}

fn unfinished_problem() -> Problem {
    Problem::new(ProblemCode::Internal, "the request could not be carried out to its end")
}

fn encode_response(response: &Response) -> Result<Vec<u8>, Problem> {
    response.to_json().map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))
}

/// Carries one request out, for whoever asks. Nobody is shown less after it.
pub(crate) async fn call(
    shared: &Arc<ServerState>,
    who: &Requester,
    asked: Asked,
) -> Result<Response, Problem> {
    let answer = call_without_marking(shared, who, asked).await;
    shared.mark_all_told();
    answer
}

/// The same; what it answers is told to nobody yet.
pub(crate) async fn call_without_marking(
    shared: &Arc<ServerState>,
    who: &Requester,
    asked: Asked,
) -> Result<Response, Problem> {
    let room = shared.rooms.acquire_permit(&asked).await?;
    let (shared, who) = (Arc::clone(shared), who.clone());
    let done = tokio::task::spawn_blocking(move || {
        let _room = room; // whoever hung up still takes it until the work is done
        call_in_thread(&shared, &who, asked)
    });
    done.await.unwrap_or_else(|_| Err(unfinished_problem()))
}

/// How many requests of a kind are carried out at once, so that none of them keeps the others out: what changes something always
/// finds a thread.
pub(crate) struct RequestLimits {
    heavy: Arc<Semaphore>,
    tracker: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

const HEAVY_MAX: usize = 3; // each starts processes, or goes through everything
const TRACKER_MAX: usize = 4; // each waits for a tracker, which may be far away and slow
const READS_MAX: usize = 20; // of the server's 32 threads
const ROOM_WAIT_MAX: Duration = Duration::from_secs(20);

impl Default for RequestLimits {
    fn default() -> Self {
        let [heavy, tracker, reads] =
            [HEAVY_MAX, TRACKER_MAX, READS_MAX].map(|most| Arc::new(Semaphore::new(most)));
        Self { heavy, tracker, reads }
    }
}

impl RequestLimits {
    /// SessionExpiry to be carried out; none is needed by what changes something here.
    async fn acquire_permit(&self, asked: &Asked) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        match asked.route().cost {
            OperationCost::Read => self.read().await.map(Some),
            OperationCost::Heavy => self.wait(&self.heavy).await.map(Some),
            OperationCost::Tracker => self.wait(&self.tracker).await.map(Some),
            OperationCost::Change => Ok(None),
        }
    }

    /// SessionExpiry to read, for a page too.
    pub(crate) async fn read(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.wait(&self.reads).await
    }

    async fn wait(&self, room: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
        match tokio::time::timeout(ROOM_WAIT_MAX, Arc::clone(room).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Problem::new(ProblemCode::TooMany, "too many ask for this at once")
                .with_hint("ask again in a moment")),
        }
    }
}

/// The same, in this thread.
pub(crate) fn call_in_thread(
    shared: &ServerState,
    who: &Requester,
    asked: Asked,
) -> Result<Response, Problem> {
    who.may(asked.route().access)?;
    let name = asked.name();
    let asked = match (who, asked) {
        // What an agent brings is for a person to look at first.
        (Requester::Agent { session }, Asked::Add(mut new)) => {
            if new.tasks.len() > AGENT_TASKS_MAX {
                let what = format!("an agent adds at most {AGENT_TASKS_MAX} drafts at once");
                return Err(Problem::new(ProblemCode::BadInput, what));
            }
            for task in &mut new.tasks {
                task.draft = true;
                task.source = format!("agent:{session}");
            }
            Asked::Add(new)
        }
        (_, asked) => asked,
    };
    let began = std::time::Instant::now();
    let answer = match access::answer(shared, who, &asked) {
        Some(answer) => answer,
        None => shared.service.call(asked),
    };
    let answer = answer.map(|mut answer| {
        // The person's own commands see what is there; who comes by the network does not.
        if *who != Requester::Owner
            && let Some(mask) = shared.masks.current_finder(&*shared.service)
        {
            mask.hide_in_response(&mut answer);
        }
        answer
    });
    shared.metrics.note_request(name, answer.is_ok(), began.elapsed());
    answer
}

const AGENT_TASKS_MAX: usize = 50; // as many as a person still looks through

/// A JSON body, within its bounds.
pub(crate) async fn read_json(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Problem> {
    let body = read_body(body).await?;
    check_json(headers)?;
    check_depth(&body)?;
    Ok(body)
}

/// Other kinds can be sent by pages of others without being asked about it.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            ProblemCode::UnsupportedMediaType,
            "a body of the type application/json is wanted",
        ));
    }
    Ok(())
}

/// A body, within its bounds.
pub(crate) async fn read_body(body: Body) -> Result<Vec<u8>, Problem> {
    read_within(body, BODY_BYTES_MAX, BODY_TIME_MAX).await
}

/// The bodies of one open route that are being read, by their source. Anybody can send one, as slowly as they like, so few of
/// a source are read at once and the others are refused right away: nobody else waits for them.
#[derive(Default)]
pub(crate) struct BodyReadLimits(Mutex<BTreeMap<Option<ConnectionSource>, usize>>);

const OPEN_BODIES_MAX: usize = 128; // each takes milliseconds, unless it is sent slowly on purpose
const OPEN_BODIES_SOURCE_MAX: usize = 8; // a browser sends one
/// How long the body of a stranger may take to arrive.
const OPEN_BODY_TIME_MAX: Duration = Duration::from_secs(10);

impl BodyReadLimits {
    /// A body of at most so many bytes, from anybody.
    pub(crate) async fn read(
        &self,
        source: Option<ConnectionSource>,
        body: Body,
        bytes_max: usize,
    ) -> Result<Vec<u8>, Problem> {
        let Some(_body) = self.begin_body(source) else {
            return Err(Problem::new(ProblemCode::TooMany, "too many requests of this kind arrive at once")
                .with_hint("ask again in a moment"));
        };
        read_within(body, bytes_max, OPEN_BODY_TIME_MAX).await
    }

    fn begin_body(&self, source: Option<ConnectionSource>) -> Option<BodyReadPermit<'_>> {
        let mut counts = self.lock_counts();
        let of_source = counts.get(&source).copied().unwrap_or(0);
        if of_source >= OPEN_BODIES_SOURCE_MAX || counts.values().sum::<usize>() >= OPEN_BODIES_MAX {
            return None;
        }
        counts.insert(source, of_source + 1);
        Some(BodyReadPermit { all: self, source })
    }

    fn lock_counts(&self) -> MutexGuard<'_, BTreeMap<Option<ConnectionSource>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is being read.
struct BodyReadPermit<'a> {
    all: &'a BodyReadLimits,
    source: Option<ConnectionSource>,
}

impl Drop for BodyReadPermit<'_> {
    fn drop(&mut self) {
        let mut counts = self.all.lock_counts();
        if let Some(count) = counts.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.source);
            }
        }
    }
}

async fn read_within(body: Body, bytes_max: usize, time_max: Duration) -> Result<Vec<u8>, Problem> {
    let read = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(time_max, read).await {
        Ok(Ok(read)) => Ok(read.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Problem::new(ProblemCode::TooLarge, format!("a request has at most {bytes_max} bytes")))
        }
        Ok(Err(_)) => Err(Problem::new(ProblemCode::BadInput, "the request broke off")),
        Err(_) => Err(Problem::new(ProblemCode::BadInput, "the request did not arrive in time")),
    }
}

/// How long the body of a request may take to arrive, from a phone far away too.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// Nothing we take is nested deeply.
fn check_depth(body: &[u8]) -> Result<(), Problem> {
    const DEPTH_MAX: u32 = 32;
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for byte in body {
        match (quoted, escaped, byte) {
            (true, true, _) => escaped = false,
            (true, false, b'\\') => escaped = true,
            (true, false, b'"') => quoted = false,
            (true, false, _) => {}
            (false, _, b'"') => quoted = true,
            (false, _, b'{' | b'[') => depth += 1,
            (false, _, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, _, _) => {}
        }
        if depth > DEPTH_MAX {
            return Err(Problem::new(
                ProblemCode::BadInput,
                format!("the body is nested deeper than {DEPTH_MAX} levels"),
            ));
        }
    }
    Ok(())
}

/// The idempotency key of a request, if it has one.
fn idempotency_key(headers: &HeaderMap, method: HttpMethod) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_HEADER).filter(|_| method != HttpMethod::Get) else {
        return Ok(None);
    };
    let plain =
        |key: &&str| !key.is_empty() && key.len() <= 200 && key.bytes().all(|it| it.is_ascii_graphic());
    match key.to_str().ok().filter(plain) {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Problem::new(
            ProblemCode::BadInput,
            "an idempotency key has 1 to 200 visible ASCII characters",
        )),
    }
}

/// What was done for which idempotency key, so that asking again does nothing again. Kept while the server runs.
#[derive(Default)]
pub(crate) struct IdempotencyCache(Mutex<IdempotencyEntries>);

/// What was asked with a key, and what came of it. Held while it is being done: who asks again meanwhile waits.
type IdempotencySlot = Arc<tokio::sync::Mutex<Option<([u8; 32], Vec<u8>)>>>;

#[derive(Default)]
struct IdempotencyEntries {
    slots: BTreeMap<[u8; 32], IdempotencySlot>,
    order: VecDeque<([u8; 32], usize)>,
    bytes: usize,
}

const DONE_MAX: usize = 1000; // far more than anybody repeats
const DONE_BYTES_MAX: usize = 32 * 1024 * 1024; // answers to changes are short; those to long lists are not

impl IdempotencyCache {
    /// The place of a key of somebody.
    fn slot_for(&self, who: &Requester, key: &str) -> IdempotencySlot {
        let place = Self::hash_key(who, key);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = kept.slots.get(&place) {
            return Arc::clone(slot);
        }
        let slot = IdempotencySlot::default();
        kept.slots.insert(place, Arc::clone(&slot));
        kept.order.push_back((place, 0));
        kept.trim_to_limits();
        slot
    }

    /// Notes how long an answer is that is kept from now on.
    fn note_size(&self, who: &Requester, key: &str, bytes: usize) {
        let place = Self::hash_key(who, key);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, weight)) = kept.order.iter_mut().rev().find(|(it, _)| *it == place) {
            *weight = bytes;
            kept.bytes += bytes;
        }
        kept.trim_to_limits();
    }

    fn hash_key(who: &Requester, key: &str) -> [u8; 32] {
        *blake3::hash(format!("{who:?}\n{key}").as_bytes()).as_bytes()
    }

    fn hash_request(target: &str, body: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(target.as_bytes()).update(b"\n").update(body);
        *hasher.finalize().as_bytes()
    }
}

impl IdempotencyEntries {
    fn trim_to_limits(&mut self) {
        while self.order.len() > DONE_MAX || (self.bytes > DONE_BYTES_MAX && self.order.len() > 1) {
            let Some((oldest, bytes)) = self.order.pop_front() else { return };
            self.slots.remove(&oldest);
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_bodies_of_one_address_leave_room_for_others() {
        let address = |last: u8| Some(ConnectionSource::from_address([127, 0, 0, last].into()));
        let bodies = BodyReadLimits::default();
        let taken: Vec<_> = (0..100).map_while(|_| bodies.begin_body(address(9))).collect();
        assert_eq!(taken.len(), OPEN_BODIES_SOURCE_MAX);
        assert!(bodies.begin_body(address(2)).is_some());
        drop(taken);
        assert!(bodies.begin_body(address(9)).is_some());
        assert!(bodies.lock_counts().is_empty(), "nothing is kept of those that have ended");
        let all: Vec<_> = (0..=255).map_while(|last| bodies.begin_body(address(last))).collect();
        assert_eq!(all.len(), OPEN_BODIES_MAX);
    }
}
