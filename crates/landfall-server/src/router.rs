//! Every route there is: the operations, the stream, the pages, the forms and the files of the pages.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, header};
use landfall_api::{Problem, ProblemCode};
use tower::Service as _;

use crate::answer::{self, Answer};
use crate::door::{self, Peer, Shared};
use crate::{access, api, assets, events, forms, metrics, pages};

/// All routes. Whatever is not here is not found; whatever is here is behind the [`door`].
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let router = Router::new();
    let router = api::routes(router);
    let router = events::routes(router);
    let router = metrics::routes(router);
    let router = access::routes(router);
    let router = forms::routes(router);
    let router = assets::routes(router);
    let router = pages::routes(router);
    router.fallback(not_found).method_not_allowed_fallback(not_allowed).with_state(shared)
}

/// Answers one request: the door first, then the route, then what every answer carries.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    peer: &Peer,
    mut router: Router,
    mut request: Request<Body>,
) -> Answer {
    let wants_page = door::wants_page(&request);
    let head = request.method() == Method::HEAD;
    let checked = door::check(shared, peer, &request);
    let checked = match checked {
        Ok(who) => door::admit(shared, peer).await.map(|()| who),
        Err(problem) => Err(problem),
    };
    let mut answer = match checked {
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
    answer::seal(&mut answer);
    if head {
        *answer.body_mut() = Body::empty();
    }
    answer
}

async fn not_found(request: Request<Body>) -> Answer {
    let what = format!("nothing is at `{}`", request.uri().path().chars().take(200).collect::<String>());
    let problem = Problem::new(ProblemCode::NotFound, what).hint("what there is: /api");
    if door::wants_page(&request) { pages::problem(&problem) } else { answer::problem(&problem) }
}

async fn not_allowed(request: Request<Body>) -> Answer {
    let what = format!("`{}` is not how this is asked for", request.method());
    let problem = Problem::new(ProblemCode::MethodNotAllowed, what).hint("what there is: /api");
    let mut answer = answer::problem(&problem);
    answer.headers_mut().entry(header::ALLOW).or_insert(HeaderValue::from_static("GET, POST, PATCH"));
    answer
}
