//! The door: every request passes it before a route is looked for.
//!
//! In this order: is it for us (the exact `Host`), does it come from a page of ours (`Origin`, `Sec-Fetch-Site`), who is it
//! (the socket's peer, a token, a session), may they (people decide, agents read and suggest). Whatever is not said to
//! be open is shut, so a new route is guarded before anybody thinks of it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Uri, header};
use landfall_api::http::{SOCKET_HOST, VERSION_HEADER};
use landfall_api::{Access, Problem, ProblemCode, Service};
use tokio::sync::watch;

use crate::events::Feed;
use crate::forms::Flashes;
use crate::keys::{Keys, Known};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) service: Arc<dyn Service + Send + Sync>,
    /// None when only the socket is served.
    pub(crate) keys: Option<Keys>,
    /// The exact values of `Host` that are for us.
    hosts: Vec<String>,
    /// Where the pages are: one link per address.
    pub(crate) links: Vec<String>,
    pub(crate) project: String,
    pub(crate) feed: Feed,
    pub(crate) flashes: Flashes,
    pub(crate) done: crate::api::Done,
    pub(crate) rooms: crate::api::Rooms,
    pub(crate) kept: crate::kept::Kept,
    pub(crate) metrics: crate::metrics::Metrics,
    /// Closed when the server ends, so that what goes on for ever hears of it.
    pub(crate) stopping: Option<watch::Receiver<bool>>,
}

impl Shared {
    pub(crate) fn new(
        service: Arc<dyn Service + Send + Sync>,
        keys: Option<Keys>,
        addresses: &[SocketAddr],
        names: Vec<String>,
        project: String,
    ) -> Self {
        let mut hosts = Vec::new();
        let mut links = Vec::new();
        for address in addresses {
            if address.ip().is_loopback() {
                hosts.push(format!("localhost:{}", address.port()));
            }
            if !address.ip().is_unspecified() {
                hosts.push(address.to_string());
                links.push(format!("http://{address}"));
            }
        }
        for name in names {
            links.push(format!("http://{name}"));
            hosts.push(name.to_ascii_lowercase());
        }
        Self {
            service,
            keys,
            hosts,
            links,
            project,
            feed: Feed::default(),
            flashes: Flashes::default(),
            done: crate::api::Done::default(),
            rooms: crate::api::Rooms::default(),
            kept: crate::kept::Kept::default(),
            metrics: crate::metrics::Metrics::default(),
            stopping: None,
        }
    }
}

/// Who is on the other side of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// A process of the same user, by the socket.
    Local(i32),
    /// Anybody who can reach the address.
    Remote,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
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

impl Who {
    /// Whether they may do what asks for this.
    pub(crate) fn may(&self, access: Access) -> Result<(), Problem> {
        match (self, access) {
            (Self::Owner | Self::Token | Self::Browser { .. }, _)
            | (Self::Agent { .. }, Access::Read | Access::Suggest) => Ok(()),
            (Self::Agent { .. }, Access::Steer) => {
                Err(Problem::new(ProblemCode::Forbidden, "an agent's token does not decide")
                    .hint("it may read, and add tasks as drafts; a person decides the rest"))
            }
            (Self::Nobody, _) => Err(stranger()),
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

/// What anybody may see: how to get in, and what that page is drawn with.
fn is_open(path: &str) -> bool {
    path == "/login" || path.starts_with("/pair/") || path.starts_with("/assets/")
}

/// Whether a page is the right answer, and not JSON.
pub(crate) fn wants_page(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    !path.starts_with("/api/") && path != "/metrics" && !path.starts_with("/assets/")
}

/// Whether a process of the same user may ask at all: an agent at work may not.
pub(crate) async fn admit(shared: &Arc<Shared>, peer: &Peer) -> Result<(), Problem> {
    let Peer::Local(pid) = *peer else { return Ok(()) };
    let service = Arc::clone(&shared.service);
    let admitted = tokio::task::spawn_blocking(move || service.admit(pid)).await;
    admitted.unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "the door is broken")))
}

/// Lets a request in, and says who it is.
pub(crate) fn check(shared: &Shared, peer: &Peer, request: &Request<Body>) -> Result<Who, Problem> {
    check_host(shared, peer, request.uri(), request.headers())?;
    check_version(request.headers())?;
    let who = match peer {
        Peer::Local(_) => Who::Owner,
        Peer::Remote => {
            check_origin(shared, request)?;
            identify(shared, request)?
        }
    };
    if who == Who::Nobody && !is_open(request.uri().path()) {
        return Err(stranger());
    }
    Ok(who)
}

fn stranger() -> Problem {
    Problem::new(ProblemCode::Unauthorized, "a token is wanted")
        .hint("`landfall token` prints it; send it as `Authorization: Bearer …`, or sign in at /login")
}

/// Exactly one `Host`, exactly one of ours, and no other authority in the request line: a page that was bound to our address by
/// a name of its own is turned away before anything is looked at.
fn check_host(shared: &Shared, peer: &Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |what: &str| {
        Err(Problem::new(ProblemCode::Misdirected, what.to_owned())
            .hint("`landfall serve --host NAME:PORT` adds a name"))
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
        Peer::Local(_) => host == SOCKET_HOST.as_bytes(),
        Peer::Remote => shared.hosts.iter().any(|name| name.as_bytes() == host),
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
            Err(Problem::new(ProblemCode::BadInput, what)
                .hint("use the client that belongs to this engine: `landfall --version` shows its version"))
        }
    }
}

/// What comes from a browser must come from a page of ours. Programs send neither header.
fn check_origin(shared: &Shared, request: &Request<Body>) -> Result<(), Problem> {
    let headers = request.headers();
    let refuse = || Err(Problem::new(ProblemCode::Forbidden, "the request comes from another site's page"));
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next();
    if origins.next().is_some() {
        return refuse();
    }
    if let Some(origin) = origin {
        let ours = origin.to_str().ok().and_then(|it| it.strip_prefix("http://"));
        if !ours.is_some_and(|host| shared.hosts.iter().any(|name| name == host)) {
            return refuse();
        }
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
fn identify(shared: &Shared, request: &Request<Body>) -> Result<Who, Problem> {
    let Some(keys) = &shared.keys else { return Ok(Who::Nobody) };
    let headers = request.headers();
    let mut bearers = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(bearer) = bearers.next() {
        let token = bearer.to_str().ok().and_then(|it| it.strip_prefix("Bearer "));
        let known = match (token, bearers.next()) {
            (Some(token), None) => keys.known(token),
            (Some(_) | None, _) => None,
        };
        return match known {
            Some(Known::Owner) => Ok(Who::Token),
            Some(Known::Agent(session)) => Ok(Who::Agent { session }),
            // What is in a cookie is no token: it would be one that pages can be made to send.
            Some(Known::Browser(_)) | None => Err(stranger()),
        };
    }
    let Some(secret) = cookie(headers, keys.cookie()) else { return Ok(Who::Nobody) };
    let Some(Known::Browser(session)) = keys.known(secret) else { return Ok(Who::Nobody) };
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        // A browser says where a form comes from; one that does not is not believed.
        let says = headers.contains_key(header::ORIGIN)
            || headers.get("sec-fetch-site").is_some_and(|it| it == "same-origin");
        if !says {
            return Err(Problem::new(
                ProblemCode::Forbidden,
                "the request does not say which page it comes from",
            ));
        }
    }
    Ok(Who::Browser { session })
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}
