//! Loops as older clients ask for them: `/api/sessions/:id/task-auto` and `/api/task-auto/lookup`.
//!
//! The same operations as below `/api/v1/loops`, behind the same door, in the words those clients know.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use landfall_api::{
    Access, HttpMethod, LoopAsked, LoopLine, LoopOf, LoopsAsked, Problem, ProblemCode, Request as Asked,
    Response, TaskAuto, TaskAutoAsked, TaskAutoError, TaskAutoHolder,
};
use serde::{Deserialize, Serialize};

use crate::answer::escape_json_bytes;
use crate::answer::{self, HttpResponse};
use crate::api::{self, read_json};
use crate::door::{Requester, ServerState};
use crate::router::{Guard, RouteTable};

/// Where the loop of a session is.
pub(crate) const OF_SESSION: &str = "/api/sessions/{id}/task-auto";
/// Where the holder of a module is.
pub(crate) const LOOKUP: &str = "/api/task-auto/lookup";

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.post(OF_SESSION, Guard::Needs(Access::Steer), start_session);
    routes.get(OF_SESSION, Guard::Needs(Access::Read), show_session);
    routes.on(HttpMethod::Delete, OF_SESSION, Guard::Needs(Access::Steer), stop_session);
    routes.get(LOOKUP, Guard::Needs(Access::Read), lookup_session);
}

async fn start_session(
    State(shared): State<Arc<ServerState>>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, body) = request.into_parts();
    let done = async {
        let body = read_json(&parts.headers, body).await?;
        let TaskAutoAsked { task_dir, max_iterations, timeout_minutes, flow } = serde_json::from_slice(&body)
            .map_err(|error| {
                Problem::new(ProblemCode::BadInput, format!("the body cannot be understood: {error}")).with_hint(
                    "send `{\"taskDir\": \"/absolute/path\", \"maxIterations\": 20, \"timeoutMinutes\": 30}`",
                )
            })?;
        check_absolute(&task_dir)?;
        let asked =
            LoopAsked { session, dir: task_dir, iterations: max_iterations, minutes: timeout_minutes, flow };
        let who = parts.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
        match api::call(&shared, &who, Asked::LoopStart(asked)).await? {
            Response::LoopStart(line) => Ok(to_task_auto(*line)),
            other => Err(unexpected_response(&other)),
        }
    };
    to_response(done.await)
}

async fn stop_session(
    State(shared): State<Arc<ServerState>>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let who = caller_of(&request);
    to_response(match api::call(&shared, &who, Asked::LoopStop(LoopOf { session })).await {
        Ok(Response::LoopStop(line)) => Ok(to_task_auto(*line)),
        Ok(other) => Err(unexpected_response(&other)),
        Err(problem) => Err(problem),
    })
}

async fn show_session(
    State(shared): State<Arc<ServerState>>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let asked = LoopsAsked { session: Some(session.clone()), ..LoopsAsked::default() };
    to_response(match list_loops(&shared, caller_of(&request), asked).await {
        Ok(loops) => loops.into_iter().next().map(to_task_auto).ok_or_else(|| {
            let session: String = session.chars().take(200).collect();
            Problem::new(ProblemCode::NotFound, format!("session `{session}` has had no loop"))
                .with_hint("`POST` begins one")
        }),
        Err(problem) => Err(problem),
    })
}

#[derive(Deserialize)]
struct LookupRequest {
    #[serde(rename = "taskDir")]
    task_dir: String,
}

async fn lookup_session(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> HttpResponse {
    let query = request.uri().query().unwrap_or_default();
    let asked: Result<LookupRequest, _> = serde_html_form::from_str(query);
    let Ok(LookupRequest { task_dir }) = asked else {
        return to_response::<()>(Err(Problem::new(ProblemCode::BadInput, "the query says no `taskDir`")
            .with_hint("ask for `/api/task-auto/lookup?taskDir=/absolute/path`")));
    };
    if let Err(problem) = check_absolute(&task_dir) {
        return to_response::<()>(Err(problem));
    }
    let asked = LoopsAsked { dir: Some(task_dir.clone()), ..LoopsAsked::default() };
    to_response(match list_loops(&shared, caller_of(&request), asked).await {
        Ok(loops) => match loops.into_iter().find(|it| it.holds) {
            Some(held) => Ok(TaskAutoHolder { session_name: held.session, status: held.status }),
            None => {
                let dir: String = task_dir.chars().take(200).collect();
                Err(Problem::new(ProblemCode::NotFound, format!("no session has a loop for `{dir}`"))
                    .with_hint("`POST /api/sessions/NAME/task-auto` begins one"))
            }
        },
        Err(problem) => Err(problem),
    })
}

/// Those clients name folders from the root of the machine on.
fn check_absolute(dir: &str) -> Result<(), Problem> {
    if dir.starts_with('/') {
        return Ok(());
    }
    let dir: String = dir.chars().take(200).collect();
    Err(Problem::new(ProblemCode::BadInput, format!("`taskDir` is no absolute path: `{dir}`"))
        .with_hint("name the module's folder from `/` on"))
}

fn caller_of(request: &Request<Body>) -> Requester {
    request.extensions().get::<Requester>().cloned().unwrap_or(Requester::Nobody)
}

async fn list_loops(
    shared: &Arc<ServerState>,
    who: Requester,
    asked: LoopsAsked,
) -> Result<Vec<LoopLine>, Problem> {
    match api::call(shared, &who, Asked::Loops(asked)).await? {
        Response::Loops(list) => Ok(list.loops),
        other => Err(unexpected_response(&other)),
    }
}

fn unexpected_response(other: &Response) -> Problem {
    Problem::new(ProblemCode::Internal, format!("asked for a loop and got an answer to `{}`", other.name()))
}

/// The answer as those clients read it. They take 400 for words that cannot be used.
fn to_response<T: Serialize>(done: Result<T, Problem>) -> HttpResponse {
    match done {
        Ok(it) => answer::json(serde_json::to_vec(&it).unwrap_or_default()), // words and numbers always can be written
        Err(problem) => {
            let status = match problem.code.http_status() {
                422 => 400,
                other => other,
            };
            let body = serde_json::to_vec(&TaskAutoError::from(&problem)).unwrap_or_default(); // as above
            answer::of(status, "application/json", escape_json_bytes(body))
        }
    }
}

fn to_task_auto(line: LoopLine) -> TaskAuto {
    TaskAuto {
        session_name: line.session,
        task_dir: line.dir,
        status: line.status,
        max_iterations: line.iterations_max,
        timeout_minutes: line.minutes_max,
        iteration_count: line.iterations,
        started_at: format_moment(Some(line.started_ms)),
        last_signal_at: format_moment(line.signal_ms),
        recovery_count_step: line.recoveries_step,
        recovery_count_total: line.recoveries,
        stall_count: line.stalls,
        quota_wait_since: format_moment(line.quota_since_ms),
        restart_count: line.restarts,
        elapsed_seconds: line.elapsed_ms / 1_000,
        current_step: line.agent_step.or(line.step).unwrap_or_default(),
        ended_at: format_moment(line.ended_ms),
        stop_reason: line.reason.unwrap_or_default(),
        task: line.task,
    }
}

/// A moment as text, in UTC; empty for none.
fn format_moment(at_ms: Option<i64>) -> String {
    let at = at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_20_and_30_and_words_of_another_kind_are_refused() {
        let asked: TaskAutoAsked = serde_json::from_str(r#"{"taskDir":"/a"}"#).expect("it reads");
        assert_eq!((asked.max_iterations, asked.timeout_minutes), (20, 30));
        for bad in ["", "[]", "{}", r#"{"taskDir":1}"#, r#"{"taskDir":"/a","maxIterations":"20"}"#] {
            assert!(serde_json::from_str::<TaskAutoAsked>(bad).is_err(), "{bad}");
        }
        for bad in [r#"{"taskDir":"/a","maxIterations":-1}"#, r#"{"taskDir":"/a","timeoutMinutes":1.5}"#] {
            assert!(serde_json::from_str::<TaskAutoAsked>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_in_utc_and_none_is_empty() {
        assert_eq!(format_moment(Some(1_785_283_200_000)), "2026-07-29T00:00:00Z");
        assert_eq!(format_moment(None), "");
    }
}
