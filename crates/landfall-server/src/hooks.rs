//! What a tracker sends by itself. Anybody may send it; whether it is believed is for the project to say, by its signature.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use landfall_api::{Problem, ProblemCode, TrackerWebhook};

use crate::answer::{self, HttpResponse};
use crate::api::check_json;
use crate::connections::ConnectionSource;
use crate::door::ServerState;
use crate::router::{Guard, RouteTable};

/// Where trackers send to.
const HOOKS: &str = "/hooks/{tracker}";
/// A long push. What is longer is found by polling.
const HOOK_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.post(HOOKS, Guard::Open, receive_webhook);
}

async fn receive_webhook(
    State(shared): State<Arc<ServerState>>,
    Path(tracker): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, body) = request.into_parts();
    if let Err(problem) = check_json(&parts.headers) {
        return answer::problem(&problem);
    }
    let source = parts.extensions.get::<ConnectionSource>().copied();
    let body = match shared.hook_bodies.read(source, body, HOOK_BYTES_MAX).await {
        Ok(body) => body,
        Err(problem) => return answer::problem(&problem),
    };
    let named = |name: &axum::http::HeaderName| name.as_str().starts_with("x-");
    let headers = parts.headers.iter().filter(|(name, _)| named(name));
    let headers =
        headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let hook = TrackerWebhook { tracker, headers: headers.collect(), body };
    let service = Arc::clone(&shared.service);
    let heard = tokio::task::spawn_blocking(move || service.handle_webhook(&hook)).await;
    match heard.unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "the hook is broken"))) {
        Ok(()) => answer::json(b"{}".to_vec()),
        Err(problem) => answer::problem(&problem),
    }
}
