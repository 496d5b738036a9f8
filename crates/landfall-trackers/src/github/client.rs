//! Requests to GitHub and what comes of them: the budget, tags, pages, tries again, and which failures leave it open whether
//! something happened.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use landfall_model::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::http;

use super::address::{GithubEndpoints, GithubPath, next_page};
use super::budget::{GithubRateLimit, RateLimitWait, Resource};
use super::etags::{EtagEntry, Etags};
use super::token::{GithubToken, TokenSources};
use crate::tracker::{TrackerClock, TrackerError, TrackerResult, WaitEnd, escape_beginning};

/// How long to go on before whoever asked is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GithubRetryPolicy {
    /// The longest one answer may take.
    pub answer_ms: u64,
    /// The longest wait for a limit to pass, inside a call. A longer one is an answer: it says until when.
    pub limit_ms_max: u64,
    /// How often the same is asked for when the server breaks over it.
    pub tries_max: u32,
    /// The wait before the second try. It doubles each time.
    pub again_ms: u64,
    /// The distance of two changes. GitHub asks for a second.
    pub write_gap_ms: u64,
}

impl Default for GithubRetryPolicy {
    fn default() -> Self {
        Self { answer_ms: 30_000, limit_ms_max: 90_000, tries_max: 4, again_ms: 1_000, write_gap_ms: 1_000 }
    }
}

/// Speaks with one GitHub as one account. Threads share it.
pub(super) struct GithubClient {
    pub base: GithubEndpoints,
    pub clock: Arc<dyn TrackerClock>,
    pub patience: GithubRetryPolicy,
    agent: ureq::Agent,
    sources: TokenSources,
    token: Mutex<Option<GithubToken>>,
    budget: GithubRateLimit,
    etags: Mutex<Etags>,
}

/// A request.
pub(super) struct GithubRequest {
    pub what: String,
    pub method: GithubMethod,
    pub path: GithubPath,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    pub repeat: RetryEffect,
    /// Whether it changes anything.
    pub changes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GithubMethod {
    Get,
    Post,
    Patch,
    Put,
    Delete,
}

impl GithubMethod {
    fn name(self) -> http::Method {
        match self {
            Self::Get => http::Method::GET,
            Self::Post => http::Method::POST,
            Self::Patch => http::Method::PATCH,
            Self::Put => http::Method::PUT,
            Self::Delete => http::Method::DELETE,
        }
    }
}

/// What a second request would do after a first whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryEffect {
    /// The same: nothing more.
    Same,
    /// It might make a second one; look first.
    Twice,
}

impl GithubRequest {
    pub(super) fn get(what: impl Into<String>, path: GithubPath) -> Self {
        Self {
            what: what.into(),
            method: GithubMethod::Get,
            path,
            query: Vec::new(),
            body: None,
            repeat: RetryEffect::Same,
            changes: false,
        }
    }

    /// One that takes something away: what is gone already is gone.
    pub(super) fn delete(what: impl Into<String>, path: GithubPath) -> Self {
        Self { method: GithubMethod::Delete, changes: true, ..Self::get(what, path) }
    }

    pub(super) fn write(
        what: impl Into<String>,
        method: GithubMethod,
        path: GithubPath,
        body: Value,
        repeat: RetryEffect,
    ) -> Self {
        Self { method, body: Some(body), repeat, changes: true, ..Self::get(what, path) }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }
}

/// Whether an answer we have may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheUse {
    Yes,
    No,
}

/// An answer with a body.
struct GithubReply {
    body: Arc<[u8]>,
    link: Option<String>,
    /// When it was given, by GitHub's clock.
    date: Option<Timestamp>,
}

/// All pages of a list.
pub(super) struct PagedList<T> {
    pub items: Vec<T>,
    /// When the first page was given, by GitHub's clock.
    pub date: Option<Timestamp>,
}

/// As much as GitHub gives at once.
/// What is not there and what we may not see look alike from outside.
pub(super) const UNSEEN: &str =
    "see that the number and the repository are right, and that the token may see it";

const PER_PAGE: usize = 100;
/// Ten thousand items: more than anyone reads, and an end for a server that has none.
const PAGES_MAX: usize = 100;
/// The largest page of issues is some MB.
const BODY_BYTES_MAX: u64 = 64 << 20;

impl GithubClient {
    pub(super) fn new(
        base: GithubEndpoints,
        sources: TokenSources,
        proxy: Option<ureq::Proxy>,
        patience: GithubRetryPolicy,
        clock: Arc<dyn TrackerClock>,
    ) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_millis(patience.answer_ms)))
            .max_redirects(0) // the token goes where it was meant to go
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(proxy)
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            base,
            clock,
            patience,
            agent: config.into(),
            sources,
            token: Mutex::new(None),
            budget: GithubRateLimit::default(),
            etags: Mutex::new(Etags::default()),
        }
    }

    pub(super) fn is_public(&self) -> bool {
        self.base == GithubEndpoints::for_github_com()
    }

    /// Asks, and reads the answer.
    pub(super) fn fetch_json<T: DeserializeOwned>(&self, call: &GithubRequest) -> TrackerResult<T> {
        let reply = self.send_request(call, CacheUse::Yes)?;
        read(&call.what, &reply.body)
    }

    /// Asks for how it is now, not for whether it has changed.
    pub(super) fn fetch_json_uncached<T: DeserializeOwned>(&self, call: &GithubRequest) -> TrackerResult<T> {
        let reply = self.send_request(call, CacheUse::No)?;
        read(&call.what, &reply.body)
    }

    /// Asks for something done; the answer's body says nothing.
    pub(super) fn send_only(&self, call: &GithubRequest) -> TrackerResult<()> {
        self.send_request(call, CacheUse::No).map(drop)
    }

    /// All items of a list, page by page, or as many as `enough` wants.
    pub(super) fn fetch_pages<T: DeserializeOwned>(
        &self,
        call: GithubRequest,
        mut items_of: impl FnMut(&str, &[u8]) -> TrackerResult<Vec<T>>,
        mut enough: impl FnMut(&[T]) -> bool,
    ) -> TrackerResult<PagedList<T>> {
        let call = call.query("per_page", PER_PAGE);
        let mut url = call.path.to_url(&self.base, &call.query);
        let mut pages = PagedList { items: Vec::new(), date: None };
        for _ in 0..PAGES_MAX {
            let reply = self.send(&call.what, &call, &url, Resource::Rest, CacheUse::Yes)?;
            pages.items.extend(items_of(&call.what, &reply.body)?);
            pages.date = pages.date.or(reply.date);
            if enough(&pages.items) {
                return Ok(pages);
            }
            let Some(next) = reply.link.as_deref().and_then(next_page) else { return Ok(pages) };
            if !self.base.contains_url(next) {
                let why = format!("the next page is said to be at {}", escape_beginning(next, 100));
                return Err(TrackerError::Malformed { what: call.what, why });
            }
            url = next.to_owned();
        }
        let why = format!("there are more than {} of them", PAGES_MAX * PER_PAGE);
        Err(TrackerError::Refused { what: call.what, why })
    }

    /// All items of a plain list.
    pub(super) fn fetch_list<T: DeserializeOwned>(&self, call: GithubRequest) -> TrackerResult<Vec<T>> {
        Ok(self.fetch_pages(call, read::<Vec<T>>, |_| false)?.items)
    }

    /// Asks what only GraphQL knows.
    pub(super) fn query_graphql<T: DeserializeOwned>(
        &self,
        what: &str,
        query: &str,
        variables: &Value,
    ) -> TrackerResult<Result<T, Vec<GraphqlError>>> {
        let body = json!({ "query": query, "variables": variables });
        // What we ask of it may be asked twice.
        let mut call =
            GithubRequest::write(what, GithubMethod::Post, GithubPath::default(), body, RetryEffect::Same);
        call.changes = query.starts_with("mutation");
        let reply = self.send(what, &call, self.base.graphql_url(), Resource::Graphql, CacheUse::No)?;
        let reply: GraphqlReply<T> = read(what, &reply.body)?;
        let limited = reply.errors.iter().any(|error| error.kind.as_deref() == Some("RATE_LIMITED"));
        if limited {
            let until = self.budget.note_slow_down(self.clock.now(), None);
            return Err(TrackerError::RateLimited { what: what.to_owned(), until });
        }
        match reply.data {
            Some(data) if reply.errors.is_empty() => Ok(Ok(data)),
            Some(_) | None => Ok(Err(reply.errors)),
        }
    }

    fn send_request(&self, call: &GithubRequest, reuse: CacheUse) -> TrackerResult<GithubReply> {
        let url = call.path.to_url(&self.base, &call.query);
        self.send(&call.what, call, &url, Resource::Rest, reuse)
    }

    fn send(
        &self,
        what: &str,
        call: &GithubRequest,
        url: &str,
        resource: Resource,
        reuse: CacheUse,
    ) -> TrackerResult<GithubReply> {
        let mut tried = 0;
        let mut renewed = false;
        loop {
            tried += 1;
            let tries_left = tried < self.patience.tries_max;
            match self.send_once(what, call, url, resource, reuse)? {
                RequestOutcome::Reply(reply) => return Ok(reply),
                RequestOutcome::Limit(error) => {
                    // Whether it was waited for is decided here: nothing was done, so the same may be asked again.
                    let wait = error.retry_time().flatten().map_or(0, |until| until.0 - self.clock.now().0);
                    let wait = u64::try_from(wait).unwrap_or(0);
                    if wait > self.patience.limit_ms_max || !tries_left {
                        return Err(error);
                    }
                    self.pause_between_requests(what, wait.max(1))?;
                }
                RequestOutcome::Unknown => {
                    // A token may have been renewed since it was read.
                    if renewed || !self.renew_token(what)? {
                        let hint = TokenSources::token_hint(self.is_public());
                        return Err(TrackerError::Unauthorized { what: what.to_owned(), hint });
                    }
                    renewed = true;
                }
                RequestOutcome::Broken { why, happened } => {
                    let unsure = call.changes && happened;
                    if !tries_left || (unsure && call.repeat == RetryEffect::Twice) {
                        return Err(TrackerError::Unavailable { what: what.to_owned(), why, unsure });
                    }
                    self.wait_before_retry(what, tried)?;
                }
            }
        }
    }

    /// Waits before the next try.
    pub(super) fn wait_before_retry(&self, what: &str, tried: u32) -> TrackerResult<()> {
        let doubled = 1_u64 << tried.saturating_sub(1).min(6);
        self.pause_between_requests(what, self.patience.again_ms.saturating_mul(doubled))
    }

    /// Waits between two requests, never within one: a stop cuts off nothing that is being written.
    fn pause_between_requests(&self, what: &str, ms: u64) -> TrackerResult<()> {
        match self.clock.wait(ms) {
            WaitEnd::Elapsed => Ok(()),
            WaitEnd::Stopped => Err(TrackerError::Stopped { what: what.to_owned() }),
        }
    }

    /// One request, one answer.
    fn send_once(
        &self,
        what: &str,
        call: &GithubRequest,
        url: &str,
        resource: Resource,
        reuse: CacheUse,
    ) -> TrackerResult<RequestOutcome> {
        let turn =
            call.changes.then(|| self.budget.wait_for_turn(self.clock.now(), self.patience.write_gap_ms));
        if let Some((_, wait)) = &turn
            && *wait > 0
        {
            self.pause_between_requests(what, *wait)?;
        }
        if let Err(wait) = self.budget.take(resource, self.clock.now()) {
            return Ok(RequestOutcome::Limit(rate_limit_error(what, wait)));
        }
        let token = self.current_token(what)?;
        let kept = (call.method == GithubMethod::Get && reuse == CacheUse::Yes)
            .then(|| self.etags.lock().unwrap_or_else(PoisonError::into_inner).get(url))
            .flatten();
        let mut request = http::Request::builder()
            .method(call.method.name())
            .uri(url)
            .header("Accept", "application/vnd.github+json")
            .header("X-GitHub-Api-Version", "2022-11-28")
            .header("Authorization", token.authorization_header());
        if let Some(kept) = &kept {
            request = request.header("If-None-Match", &kept.etag);
        }
        let malformed = |why: String| TrackerError::Malformed { what: what.to_owned(), why };
        let answer = match &call.body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json").body(body.to_string());
                self.agent.run(request.map_err(|error| malformed(error.to_string()))?)
            }
            None => self.agent.run(request.body(()).map_err(|error| malformed(error.to_string()))?),
        };
        if call.changes {
            self.budget.note_write(self.clock.now());
        }
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                return Ok(RequestOutcome::Broken {
                    why: error.to_string(),
                    happened: may_have_happened(&error),
                });
            }
        };
        let status = answer.status().as_u16();
        let headers = GithubHeaders::from_response(&answer, self.clock.now());
        if let (Some(left), Some(reset)) = (headers.left, headers.reset) {
            self.budget.note_remaining(resource, left, reset);
        }
        let body = match answer.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec() {
            Ok(body) => body,
            // The head of the answer was there, so it happened; what it is, we do not know.
            Err(error) => return Ok(RequestOutcome::Broken { why: error.to_string(), happened: true }),
        };
        match (status, kept) {
            (304, Some(kept)) => {
                self.budget.note_success();
                Ok(RequestOutcome::Reply(GithubReply {
                    body: kept.body,
                    link: kept.link,
                    date: headers.date,
                }))
            }
            (200..=299, _) => {
                self.budget.note_success();
                let body: Arc<[u8]> = body.into();
                if let (GithubMethod::Get, Some(etag)) = (call.method, headers.etag) {
                    let kept = EtagEntry { etag, body: Arc::clone(&body), link: headers.link.clone() };
                    self.etags.lock().unwrap_or_else(PoisonError::into_inner).store_entry(url, kept);
                }
                Ok(RequestOutcome::Reply(GithubReply { body, link: headers.link, date: headers.date }))
            }
            (401, _) => Ok(RequestOutcome::Unknown),
            (500..=599, _) => {
                Ok(RequestOutcome::Broken { why: format!("GitHub answered {status}"), happened: true })
            }
            (301 | 302 | 307 | 308, _) => {
                let to = self.describe_new_location(what, headers.location.as_deref());
                Err(TrackerError::Moved { what: what.to_owned(), to })
            }
            (status, _) => self.classify_refusal(what, status, &headers, &body),
        }
    }

    fn classify_refusal(
        &self,
        what: &str,
        status: u16,
        headers: &GithubHeaders,
        body: &[u8],
    ) -> TrackerResult<RequestOutcome> {
        let what = what.to_owned();
        let said: GithubErrorBody = serde_json::from_slice(body).unwrap_or_default();
        let slow =
            said.documentation_url.contains("secondary") || said.message.contains("secondary rate limit");
        let why = said.explain_error(status);
        Err(match status {
            403 | 429 if slow || headers.retry_after_ms.is_some() => {
                let until = self.budget.note_slow_down(self.clock.now(), headers.retry_after_ms);
                return Ok(RequestOutcome::Limit(TrackerError::SecondaryLimit { what, until }));
            }
            403 | 429 if headers.left == Some(0) => {
                let until =
                    headers.reset.unwrap_or_else(|| self.budget.note_slow_down(self.clock.now(), None));
                return Ok(RequestOutcome::Limit(TrackerError::RateLimited { what, until }));
            }
            429 => {
                let until = self.budget.note_slow_down(self.clock.now(), None);
                return Ok(RequestOutcome::Limit(TrackerError::SecondaryLimit { what, until }));
            }
            403 | 451 => TrackerError::Forbidden { what, why },
            404 | 410 => TrackerError::NotFound { what, hint: UNSEEN.to_owned() },
            405 | 409 | 412 => TrackerError::Conflict { what, why },
            _ => TrackerError::Refused { what, why },
        })
    }

    /// Where something has gone, as a person would name it.
    fn describe_new_location(&self, what: &str, location: Option<&str>) -> String {
        #[derive(Deserialize)]
        struct RepositoryReference {
            full_name: Option<String>,
            repository_url: Option<String>,
            number: Option<u64>,
        }
        let Some(location) = location else { return "an address that was not named".to_owned() };
        let location = if location.starts_with('/') {
            format!("{}{location}", self.base.rest_url())
        } else {
            location.to_owned()
        };
        if !self.base.contains_url(&location) {
            return escape_beginning(&location, 200);
        }
        let call = GithubRequest::get(what, GithubPath::default());
        let there = match self.send_once(what, &call, &location, Resource::Rest, CacheUse::No) {
            Ok(RequestOutcome::Reply(reply)) => {
                serde_json::from_slice::<RepositoryReference>(&reply.body).ok()
            }
            Ok(RequestOutcome::Limit(_) | RequestOutcome::Unknown | RequestOutcome::Broken { .. })
            | Err(_) => None,
        };
        let Some(there) = there else { return escape_beginning(&location, 200) };
        let repository = there.full_name.or_else(|| repository_of(&there.repository_url?));
        match (repository, there.number) {
            (Some(repository), Some(number)) => format!("{}#{number}", escape_beginning(&repository, 150)),
            (Some(repository), None) => escape_beginning(&repository, 150),
            (None, _) => escape_beginning(&location, 200),
        }
    }

    fn current_token(&self, what: &str) -> TrackerResult<GithubToken> {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if token.is_none() {
            *token = Some(self.read_token(what)?);
        }
        Ok(token.clone().expect("put there"))
    }

    /// Reads the token again, and says whether it is another one.
    fn renew_token(&self, what: &str) -> TrackerResult<bool> {
        let read = self.read_token(what)?;
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let other = token.as_ref() != Some(&read);
        *token = Some(read);
        if other {
            self.etags.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        Ok(other)
    }

    fn read_token(&self, what: &str) -> TrackerResult<GithubToken> {
        self.sources.read().map_err(|why| {
            let hint = format!("{}; tried: {why}", TokenSources::token_hint(self.is_public()));
            TrackerError::Unauthorized { what: what.to_owned(), hint }
        })
    }
}

/// What came of one request.
enum RequestOutcome {
    Reply(GithubReply),
    /// Not now: nothing was done.
    Limit(TrackerError),
    /// The token is not known.
    Unknown,
    Broken {
        why: String,
        /// Whether the request may have been carried out.
        happened: bool,
    },
}

fn rate_limit_error(what: &str, wait: RateLimitWait) -> TrackerError {
    let what = what.to_owned();
    match wait {
        RateLimitWait::Empty(until) => TrackerError::RateLimited { what, until },
        RateLimitWait::Slow(until) => TrackerError::SecondaryLimit { what, until },
    }
}

/// Whether a request that failed on the way may have arrived.
fn may_have_happened(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::BadUri(_)
        | ureq::Error::Http(_)
        | ureq::Error::InvalidProxyUrl
        | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => false,
        ureq::Error::Io(error) => !matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
        ),
        _ => true,
    }
}

pub(super) fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> TrackerResult<T> {
    serde_json::from_slice(body)
        .map_err(|error| TrackerError::Malformed { what: what.to_owned(), why: error.to_string() })
}

/// `owner/name` of `…/repos/owner/name`.
pub(super) fn repository_of(url: &str) -> Option<String> {
    let mut parts = url.rsplit('/');
    let (name, owner) = (parts.next()?, parts.next()?);
    (parts.next()? == "repos").then(|| format!("{owner}/{name}"))
}

/// GitHub's words about what it does not do.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GithubErrorBody {
    message: String,
    documentation_url: String,
    errors: Value,
}

impl GithubErrorBody {
    fn explain_error(&self, status: u16) -> String {
        let mut why =
            if self.message.is_empty() { format!("GitHub answered {status}") } else { self.message.clone() };
        for error in self.errors.as_array().into_iter().flatten() {
            let word = |name: &str| error[name].as_str();
            let detail = error.as_str().or_else(|| word("message"));
            let detail =
                detail.map(str::to_owned).or_else(|| Some(format!("{} {}", word("field")?, word("code")?)));
            if let Some(detail) = detail {
                why = format!("{why}: {detail}");
            }
        }
        escape_beginning(&why, 500)
    }
}

/// The headers that matter.
struct GithubHeaders {
    left: Option<u64>,
    reset: Option<Timestamp>,
    retry_after_ms: Option<u64>,
    link: Option<String>,
    etag: Option<String>,
    location: Option<String>,
    date: Option<Timestamp>,
}

impl GithubHeaders {
    fn from_response(answer: &http::Response<ureq::Body>, now: Timestamp) -> Self {
        let text =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        let date = text("date").and_then(|text| jiff::fmt::rfc2822::parse(&text).ok());
        let date = date.map(|date| Timestamp(date.timestamp().as_millisecond()));
        // Its clock and ours may differ; the length of the wait does not.
        let reset =
            number("x-ratelimit-reset").and_then(|seconds| i64::try_from(seconds).ok()).map(|seconds| {
                let at = seconds.saturating_mul(1_000);
                Timestamp(date.map_or(at, |date| now.0.saturating_add(at.saturating_sub(date.0))))
            });
        Self {
            left: number("x-ratelimit-remaining"),
            reset,
            retry_after_ms: number("retry-after").map(|seconds| seconds.saturating_mul(1_000)),
            link: text("link"),
            etag: text("etag"),
            location: text("location"),
            date,
        }
    }
}

#[derive(Deserialize)]
struct GraphqlReply<T> {
    #[serde(default = "Option::default")]
    data: Option<T>,
    #[serde(default)]
    errors: Vec<GraphqlError>,
}

/// What GraphQL says is wrong.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct GraphqlError {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(default)]
    pub message: String,
}
