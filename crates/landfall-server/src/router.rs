//! Every route there is: the operations, the stream, the pages, the forms and the files of the pages.
//!
//! A route can only be added to [`RouteTable`], which notes it and puts its guard before it. So the list that tests go through
//! is the list that is served, and a route that says nothing about who may come does not compile.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::handler::Handler;
use axum::http::{HeaderValue, Method, Request, header};
use axum::routing::MethodFilter;
use landfall_api::{Access, Problem, ProblemCode};
use tower::Service as _;

use crate::answer::{self, HttpResponse};
use crate::connections::ClientConnection;
use crate::door::{self, Peer, Requester, ServerState};
use crate::mask::MaskedBody;
use crate::{
    access, api, assets, comments, downloads, events, forms, hooks, metrics, pages, streams, task_auto,
};

/// Who may come by a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Anybody: how to get in, and what those pages are drawn with.
    Open,
    /// Whoever may do this.
    Needs(Access),
}

/// A route that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedRoute {
    /// How it is asked for: `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// Where it is; a word in braces stands for anything.
    pub path: String,
    /// Who may come.
    pub guard: Guard,
}

/// Every route there is.
#[must_use]
pub fn served_routes() -> Vec<ServedRoute> {
    RouteTable::with_all().list
}

/// Routes as they are gathered.
pub(crate) struct RouteTable {
    router: Router<Arc<ServerState>>,
    list: Vec<ServedRoute>,
}

impl RouteTable {
    fn with_all() -> Self {
        let mut all = Self { router: Router::new(), list: Vec::new() };
        api::routes(&mut all);
        task_auto::routes(&mut all);
        events::routes(&mut all);
        streams::routes(&mut all);
        downloads::routes(&mut all);
        comments::routes(&mut all);
        metrics::routes(&mut all);
        access::routes(&mut all);
        forms::routes(&mut all);
        hooks::routes(&mut all);
        assets::routes(&mut all);
        pages::routes(&mut all);
        all
    }

    /// Adds a route that changes nothing.
    pub(crate) fn get<H, T>(&mut self, path: &str, guard: Guard, handler: H)
    where
        H: Handler<T, Arc<ServerState>> + Sync,
        T: 'static,
    {
        self.on(landfall_api::HttpMethod::Get, path, guard, handler);
    }

    /// Adds a route that may change something.
    pub(crate) fn post<H, T>(&mut self, path: &str, guard: Guard, handler: H)
    where
        H: Handler<T, Arc<ServerState>> + Sync,
        T: 'static,
    {
        self.on(landfall_api::HttpMethod::Post, path, guard, handler);
    }

    /// Adds a route, behind its guard.
    pub(crate) fn on<H, T>(&mut self, method: landfall_api::HttpMethod, path: &str, guard: Guard, handler: H)
    where
        H: Handler<T, Arc<ServerState>> + Sync,
        T: 'static,
    {
        let filter = match method {
            landfall_api::HttpMethod::Get => MethodFilter::GET,
            landfall_api::HttpMethod::Post => MethodFilter::POST,
            landfall_api::HttpMethod::Patch => MethodFilter::PATCH,
            landfall_api::HttpMethod::Delete => MethodFilter::DELETE,
        };
        let guarded = async move |State(shared): State<Arc<ServerState>>, request: Request<Body>| match pass(
            guard, &request,
        )
        .and_then(|()| check_kind(method, &request))
        {
            Ok(()) => handler.clone().call(request, shared).await,
            Err(problem) if door::wants_page(&request) => pages::refused(&shared, &problem),
            Err(problem) => answer::problem(&problem),
        };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, axum::routing::on(filter, guarded));
        self.list.push(ServedRoute { method: method.word(), path: path.to_owned(), guard });
    }
}

fn pass(guard: Guard, request: &Request<Body>) -> Result<(), Problem> {
    let nobody = Requester::Nobody;
    let who = request.extensions().get::<Requester>().unwrap_or(&nobody);
    match guard {
        Guard::Open => Ok(()),
        Guard::Needs(access) => who.may(access),
    }
}

/// What pages send are forms. Other kinds can be sent by pages of others without being asked about it.
fn check_kind(method: landfall_api::HttpMethod, request: &Request<Body>) -> Result<(), Problem> {
    if method == landfall_api::HttpMethod::Get || !door::wants_page(request) {
        return Ok(()); // what a body must be, the operations say
    }
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::UnsupportedMediaType, "a form is wanted"))
}

/// All routes. Whatever is not here is not found; whatever is here is behind the [`door`].
pub(crate) fn router(shared: Arc<ServerState>) -> Router {
    let router = RouteTable::with_all().router;
    router.fallback(not_found_response).method_not_allowed_fallback(not_allowed_response).with_state(shared)
}

/// Answers one request: the door first, then the route, then what every answer carries.
pub(crate) async fn answer(
    shared: &Arc<ServerState>,
    peer: &Peer,
    connection: &ClientConnection,
    mut router: Router,
    mut request: Request<Body>,
) -> HttpResponse {
    let wants_page = door::wants_page(&request);
    let head = request.method() == Method::HEAD;
    let is_asset = request.uri().path().starts_with("/assets/");
    let elsewhere = door::redirect_target(shared, peer, &request);
    let checked = door::check_request(shared, peer, &request);
    match &checked {
        Ok(Requester::Nobody) | Err(_) => {}
        Ok(Requester::Owner | Requester::Token | Requester::Browser { .. } | Requester::Agent { .. }) => {
            connection.mark_proven()
        }
    }
    if let Peer::Remote(source) = peer {
        request.extensions_mut().insert(*source);
    }
    let mut answer = match checked {
        Ok(_) | Err(Problem { code: ProblemCode::Unauthorized, .. }) if elsewhere.is_some() => {
            answer::redirect_response(&elsewhere.unwrap_or_default())
        }
        Ok(who) => {
            request.extensions_mut().insert(who);
            match router.call(request).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            }
        }
        Err(problem) if wants_page => pages::refused(shared, &problem),
        Err(problem) => answer::problem(&problem),
    };
    answer::add_common_headers(&mut answer);
    if let (Peer::Remote(_), false) = (peer, is_asset)
        && let Some(mask) = shared.masks.current_finder(&*shared.service)
    {
        answer = answer.map(|body| Body::new(MaskedBody::new(body, mask)));
    }
    if head {
        *answer.body_mut() = Body::empty();
    }
    answer
}

async fn not_found_response(request: Request<Body>) -> HttpResponse {
    let what = format!("nothing is at `{}`", request.uri().path().chars().take(200).collect::<String>());
    let problem = Problem::new(ProblemCode::NotFound, what).with_hint("what there is: /api");
    if door::wants_page(&request) { pages::problem(&problem) } else { answer::problem(&problem) }
}

async fn not_allowed_response(request: Request<Body>) -> HttpResponse {
    let what = format!("`{}` is not how this is asked for", request.method());
    let problem = Problem::new(ProblemCode::MethodNotAllowed, what).with_hint("what there is: /api");
    let mut answer = answer::problem(&problem);
    answer.headers_mut().entry(header::ALLOW).or_insert(HeaderValue::from_static("GET, POST, PATCH, DELETE"));
    answer
}
