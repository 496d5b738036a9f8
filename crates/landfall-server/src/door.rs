//! The door: every request passes it before a route is looked for.
//!
//! In this order: is it for us (the exact `Host`), does it come from a page of ours (`Origin`, `Sec-Fetch-Site`), who is it
//! (the socket's peer, a token, a session), may they (people decide, agents read and suggest). Whatever is not said to
//! be open is shut, so a new route is guarded before anybody thinks of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use landfall_api::http::{KEY_HEADER, SOCKET_HOST, VERSION_HEADER};
use landfall_api::socket::PeerProcess;
use landfall_api::{Access, Problem, ProblemCode, Service, SocketKey};
use tokio::sync::{Semaphore, watch};

use crate::connections::ConnectionSource;
use crate::events::EventFeed;
use crate::forms::Flashes;
use crate::guess_limit::GuessLimit;
use crate::keys::{AccessKeys, SecretOwner};

/// What all requests share.
pub(crate) struct ServerState {
    pub(crate) service: Arc<dyn Service + Send + Sync>,
    /// None when only the socket is served.
    pub(crate) keys: Option<AccessKeys>,
    /// What clients on the socket prove themselves with; none when there is no socket.
    pub(crate) socket_key: Option<SocketKey>,
    /// What strangers send to the login, and to the webhooks.
    pub(crate) login_bodies: crate::api::BodyReadLimits,
    pub(crate) hook_bodies: crate::api::BodyReadLimits,
    /// Wrong tokens at the login.
    pub(crate) login_guesses: GuessLimit,
    /// Wrong tokens in headers. Apart from the login, so that a program with an old token does not keep a person out.
    pub(crate) token_guesses: GuessLimit,
    /// Wrong links. Apart from the login, so that whoever guesses tokens does not keep a person with a link out.
    pub(crate) link_guesses: GuessLimit,
    /// The names by which we are asked, and no others.
    names: Vec<ServerName>,
    /// Where the pages are: one link per address.
    pub(crate) links: Vec<String>,
    pub(crate) project: String,
    pub(crate) feed: EventFeed,
    pub(crate) flashes: Flashes,
    pub(crate) done: crate::api::IdempotencyCache,
    pub(crate) rooms: crate::api::RequestLimits,
    pub(crate) kept: crate::kept::ResponseCache,
    pub(crate) metrics: crate::metrics::Metrics,
    pub(crate) masks: crate::mask::SecretFinderCache,
    /// Closed when the server ends, so that what goes on for ever hears of it.
    pub(crate) stopping: Option<watch::Receiver<bool>>,
}

impl ServerState {
    pub(crate) fn new(
        service: Arc<dyn Service + Send + Sync>,
        keys: Option<AccessKeys>,
        addresses: &[SocketAddr],
        hosts: Vec<String>,
        origins: &[String],
        project: String,
    ) -> Self {
        let mut names = Vec::new();
        let mut links = Vec::new();
        for address in addresses {
            let (ip, port) = (address.ip(), address.port());
            match &keys {
                Some(keys) if ip.is_loopback() => {
                    let own = ServerName::plain_host(&format!("{}:{port}", keys.local_cookie_name()));
                    let pages = PageLocation::At(own.origin.clone());
                    links.push(own.origin.clone());
                    names.push(own);
                    for bare in [format!("localhost:{port}"), address.to_string()] {
                        names.push(ServerName { pages: pages.clone(), ..ServerName::plain_host(&bare) });
                    }
                }
                Some(_) | None if ip.is_unspecified() => {}
                Some(_) | None => {
                    let name = ServerName::plain_host(&address.to_string());
                    links.push(name.origin.clone());
                    names.push(name);
                }
            }
        }
        for host in hosts {
            let name = ServerName::plain_host(&host.to_ascii_lowercase());
            links.push(name.origin.clone());
            names.push(name);
        }
        for name in origins.iter().filter_map(|origin| ServerName::from_origin(origin)) {
            links.push(name.origin.clone());
            names.push(name);
        }
        Self {
            service,
            keys,
            socket_key: None,
            login_bodies: crate::api::BodyReadLimits::default(),
            hook_bodies: crate::api::BodyReadLimits::default(),
            login_guesses: GuessLimit::default(),
            token_guesses: GuessLimit::default(),
            link_guesses: GuessLimit::default(),
            names,
            links,
            project,
            feed: EventFeed::default(),
            flashes: Flashes::default(),
            done: crate::api::IdempotencyCache::default(),
            rooms: crate::api::RequestLimits::default(),
            kept: crate::kept::ResponseCache::default(),
            metrics: crate::metrics::Metrics::default(),
            masks: crate::mask::SecretFinderCache::default(),
            stopping: None,
        }
    }

    /// Somebody was told of everything that happened until now.
    pub(crate) fn mark_all_told(&self) {
        self.kept.note_told(self.service.state_version().map_or(0, |mark| mark.seq));
    }

    /// The name a request is for. It has passed the door, so there is one.
    pub(crate) fn name(&self, headers: &HeaderMap) -> Option<&ServerName> {
        let of = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let (host, origin) = (of(header::HOST)?, of(header::ORIGIN));
        let mut ours = self.names.iter().filter(|it| it.host == host);
        let first = ours.next();
        ours.chain(first).find(|it| Some(it.origin.as_str()) == origin).or(first)
    }
}

/// A name by which we are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerName {
    /// The exact value of `Host`.
    pub(crate) host: String,
    /// The exact value of `Origin` of its pages.
    pub(crate) origin: String,
    /// Where its pages are.
    pub(crate) pages: PageLocation,
}

/// Where the pages of a name are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageLocation {
    /// Here.
    Here,
    /// Here, and all the way is encrypted.
    Secure,
    /// At a name that only this server has. Every server of this machine has the bare ones, and a browser shows a cookie to all
    /// ports of a name.
    At(String),
}

impl ServerName {
    fn plain_host(host: &str) -> Self {
        Self { host: host.to_owned(), origin: format!("http://{host}"), pages: PageLocation::Here }
    }

    /// The name in an origin, as browsers write it: `https://build.example`. None where it is no origin.
    pub(crate) fn from_origin(origin: &str) -> Option<Self> {
        let (pages, host) = match origin.split_once("://")? {
            ("https", host) => (PageLocation::Secure, host),
            ("http", host) => (PageLocation::Here, host),
            _ => return None,
        };
        let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || ".-:[]".contains(it);
        let whole = !host.is_empty() && host.chars().all(plain) && !host.ends_with(':');
        whole.then(|| Self { host: host.to_owned(), origin: origin.to_owned(), pages })
    }
}

/// Whether this is an origin as browsers write it: `https://build.example`.
#[must_use]
pub fn is_origin(text: &str) -> bool {
    ServerName::from_origin(text).is_some()
}

/// Who is on the other side of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// A process of the same user, by the socket.
    Local(Arc<PeerProcess>),
    /// A process of the same user that may not ask, and why.
    Barred(Problem),
    /// Anybody who can reach the address.
    Remote(ConnectionSource),
}

/// What a request on the socket proves about who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyProof {
    /// It carries the key, and the process that connected still runs.
    Holds,
    /// It carries no key, as a client from before there was one.
    Missing,
    /// It carries another key, or more than one.
    Wrong,
    /// The process that connected has ended: somebody else writes on its connection.
    Ended,
}

/// Who asks on the socket. Only the key makes one the user.
fn judge_proof(proof: KeyProof) -> Result<Requester, Problem> {
    let refuse = |what: &str, hint: &str| Err(Problem::new(ProblemCode::Unauthorized, what).with_hint(hint));
    match proof {
        KeyProof::Holds => Ok(Requester::Owner),
        KeyProof::Missing => refuse(
            "the request does not carry the key of the engine's socket",
            "use the `landfall` that started the engine: it reads the key in the state folder. An agent says \
             `landfall signal` instead",
        ),
        KeyProof::Wrong => refuse(
            "the request carries another key than that of the engine's socket",
            "ask again: a client reads the key in the state folder each time it connects",
        ),
        KeyProof::Ended => {
            refuse("the process that made this connection has ended", "ask on a connection of your own")
        }
    }
}

fn read_key_proof(key: Option<&SocketKey>, process: &PeerProcess, headers: &HeaderMap) -> KeyProof {
    if process.has_ended() {
        return KeyProof::Ended;
    }
    let mut given = headers.get_all(KEY_HEADER).iter();
    match (given.next(), given.next(), key) {
        (None, _, _) => KeyProof::Missing,
        (Some(given), None, Some(key)) if key.matches(given.as_bytes()) => KeyProof::Holds,
        (Some(_), _, _) => KeyProof::Wrong,
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A process of the same user.
    Owner,
    /// Whoever holds the token of the project.
    Token,
    /// A browser that was let in.
    Browser {
        /// The name of its session.
        session: String,
    },
    /// An agent with a token of its own.
    Agent {
        /// The name of its token.
        session: String,
    },
    /// Nobody in particular: only what is open to all.
    Nobody,
}

impl Requester {
    /// Whether they may do what asks for this.
    pub(crate) fn may(&self, access: Access) -> Result<(), Problem> {
        match (self, access) {
            (Self::Owner | Self::Token | Self::Browser { .. }, _)
            | (Self::Agent { .. }, Access::Read | Access::Suggest) => Ok(()),
            (Self::Agent { .. }, Access::Steer) => {
                Err(Problem::new(ProblemCode::Forbidden, "an agent's token does not decide")
                    .with_hint("it may read, and add tasks as drafts; a person decides the rest"))
            }
            (Self::Nobody, _) => Err(unauthorized_problem()),
        }
    }

    /// The session, where there is one.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Browser { session } | Self::Agent { session } => Some(session),
            Self::Owner | Self::Token | Self::Nobody => None,
        }
    }
}

/// What anybody may see: how to get in, and what that page is drawn with. And where trackers send to, who sign what they say.
fn is_open(path: &str) -> bool {
    path == "/login"
        || path.starts_with("/pair/")
        || path.starts_with("/assets/")
        || path.starts_with("/hooks/")
}

/// Whether a page is the right answer, and not JSON.
pub(crate) fn wants_page(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    let for_programs = ["/api/", "/assets/", "/hooks/"];
    path != "/metrics" && !for_programs.iter().any(|it| path.starts_with(it))
}

/// How long it may take to find out whose process a peer is. A process can make others wait for what they read about it.
const ADMIT_TIME_MAX: Duration = Duration::from_secs(10);

/// Whether a process of the same user may ask at all: an agent at work may not.
pub(crate) async fn check_peer_process(
    shared: &ServerState,
    lookups: &Arc<Semaphore>,
    process: &Arc<PeerProcess>,
) -> Result<(), Problem> {
    let (service, process) = (Arc::clone(&shared.service), Arc::clone(process));
    let admitted = async {
        let leave = Arc::clone(lookups).acquire_owned().await.ok()?;
        let lookup = tokio::task::spawn_blocking(move || {
            let _leave = leave; // held by the thread, which goes on when the connection is given up
            service.admit_peer(&process)
        });
        lookup.await.ok()
    };
    match tokio::time::timeout(ADMIT_TIME_MAX, admitted).await {
        Ok(Some(admitted)) => admitted,
        Ok(None) | Err(_) => {
            Err(Problem::new(ProblemCode::Forbidden, "the engine cannot tell whose process this is")
                .with_hint("ask again in a moment"))
        }
    }
}

/// Lets a request in, and says who it is.
pub(crate) fn check_request(
    shared: &ServerState,
    peer: &Peer,
    request: &Request<Body>,
) -> Result<Requester, Problem> {
    check_host(shared, peer, request.uri(), request.headers())?;
    check_version(request.headers())?;
    let who = match peer {
        Peer::Local(process) => {
            judge_proof(read_key_proof(shared.socket_key.as_ref(), process, request.headers()))?
        }
        Peer::Barred(problem) => return Err(problem.clone()),
        Peer::Remote(source) => {
            check_origin(shared, request)?;
            identify_caller(shared, *source, request)?
        }
    };
    if who == Requester::Nobody && !is_open(request.uri().path()) {
        return Err(unauthorized_problem());
    }
    Ok(who)
}

/// Where a page is that was asked for by a bare name of this machine. Programs with a token are answered by any name.
pub(crate) fn redirect_target(shared: &ServerState, peer: &Peer, request: &Request<Body>) -> Option<String> {
    let (Peer::Remote(_), true) = (peer, wants_page(request)) else { return None };
    let looks = [Method::GET, Method::HEAD].contains(request.method());
    if !looks || request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    check_host(shared, peer, request.uri(), request.headers()).ok()?;
    match &shared.name(request.headers())?.pages {
        PageLocation::At(there) => {
            Some(format!("{there}{}", request.uri().path_and_query().map_or("/", |it| it.as_str())))
        }
        PageLocation::Here | PageLocation::Secure => None,
    }
}

fn unauthorized_problem() -> Problem {
    Problem::new(ProblemCode::Unauthorized, "a token is wanted").with_hint(
        "`landfall project token` prints it; send it as `Authorization: Bearer …`, or sign in at /login",
    )
}

/// Exactly one `Host`, exactly one of ours, and no other authority in the request line: a page that was bound to our address by
/// a name of its own is turned away before anything is looked at.
fn check_host(shared: &ServerState, peer: &Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |what: &str| {
        Err(Problem::new(ProblemCode::Misdirected, what.to_owned())
            .with_hint("`landfall serve --host NAME:PORT` adds a name"))
    };
    if uri.authority().is_some() || uri.scheme().is_some() {
        return refuse("the request line names a host");
    }
    let mut named = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return refuse("exactly one Host is wanted");
    };
    let host = host.as_bytes();
    let known = match peer {
        Peer::Local(_) | Peer::Barred(_) => host == SOCKET_HOST.as_bytes(),
        Peer::Remote(_) => shared.names.iter().any(|name| name.host.as_bytes() == host),
    };
    if known { Ok(()) } else { refuse("this is another host than the request names") }
}

fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(VERSION_HEADER).map(|theirs| theirs.to_str().ok().and_then(|it| it.parse::<u32>().ok()))
    {
        None | Some(Some(landfall_api::VERSION)) => Ok(()),
        Some(theirs) => {
            let theirs =
                theirs.map_or_else(|| "an unreadable version".to_owned(), |it| format!("version {it}"));
            let what =
                format!("the request has {theirs} of the wire; this engine speaks {}", landfall_api::VERSION);
            Err(Problem::new(ProblemCode::BadInput, what).with_hint(
                "use the client that belongs to this engine: `landfall --version` shows its version",
            ))
        }
    }
}

/// What comes from a browser must come from a page of ours. Programs send neither header.
fn check_origin(shared: &ServerState, request: &Request<Body>) -> Result<(), Problem> {
    let headers = request.headers();
    let refuse = || Err(Problem::new(ProblemCode::Forbidden, "the request comes from another site's page"));
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next();
    if origins.next().is_some() {
        return refuse();
    }
    // A page of ours asks the very name it is at. One at a bare name of this machine, which other servers have as well, is not
    // taken for a page at the name that has the cookie.
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let is_own_page = |name: &ServerName, origin: &HeaderValue| {
        name.origin.as_bytes() == origin.as_bytes() && Some(name.host.as_bytes()) == host
    };
    if origin.is_some_and(|origin| !shared.names.iter().any(|name| is_own_page(name, origin))) {
        return refuse();
    }
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let navigates = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // A link on another page may lead here. It brings no cookie along, so it leads to the login.
        Some(_) if navigates && *request.method() == Method::GET && wants_page(request) => Ok(()),
        Some(_) => refuse(),
    }
}

/// Who asks, by a token in the header or a session in the cookie. A wrong one is no better than none.
fn identify_caller(
    shared: &ServerState,
    source: ConnectionSource,
    request: &Request<Body>,
) -> Result<Requester, Problem> {
    let Some(keys) = &shared.keys else { return Ok(Requester::Nobody) };
    let headers = request.headers();
    let mut bearers = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(bearer) = bearers.next() {
        let token = bearer.to_str().ok().and_then(|it| it.strip_prefix("Bearer "));
        let known = match (token, bearers.next()) {
            (Some(token), None) => keys.find_owner(token),
            (Some(_) | None, _) => None,
        };
        return match known {
            Some(SecretOwner::Owner) => Ok(Requester::Token),
            Some(SecretOwner::Agent(session)) => Ok(Requester::Agent { session }),
            // What is in a cookie is no token: it would be one that pages can be made to send.
            Some(SecretOwner::Browser(_)) | None => Err(wrong_token(&shared.token_guesses, source)),
        };
    }
    let Some(secret) = find_cookie(headers, keys.cookie_name()) else { return Ok(Requester::Nobody) };
    let Some(SecretOwner::Browser(session)) = keys.find_owner(secret) else { return Ok(Requester::Nobody) };
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        // A browser says where a form comes from; one that does not is not believed.
        if !says_origin(headers) {
            return Err(Problem::new(
                ProblemCode::Forbidden,
                "the request does not say which page it comes from",
            ));
        }
    }
    Ok(Requester::Browser { session })
}

/// What a wrong token is answered. The right one is taken before: at the same address others may guess.
fn wrong_token(guesses: &GuessLimit, source: ConnectionSource) -> Problem {
    let now = Instant::now();
    if let Some(wait) = guesses.wait(source, now) {
        let seconds = wait.as_secs() + 1;
        return Problem::new(ProblemCode::TooMany, "too many wrong tokens came from this address")
            .with_hint(format!("try again in {seconds} s; `landfall project token` prints the right one"));
    }
    guesses.note_wrong(source, now);
    unauthorized_problem()
}

/// The value of a cookie.
pub(crate) fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Whether a request says which page it comes from: that origin is compared elsewhere, or is our own.
pub(crate) fn says_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
        || headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin")
}
