//! Who is let in: the operations about sessions that the server answers itself, and the pages that let a browser in.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Request, header};
use landfall_api::{
    Access, AgentToken, Pairing, Problem, ProblemCode, Request as Asked, Response, SessionLine, SessionList,
};

use crate::answer::{self, HttpResponse};
use crate::connections::ConnectionSource;
use crate::door::{PageLocation, Requester, ServerState, says_origin};
use crate::guess_limit::GuessLimit;
use crate::keys::{AccessKeys, KeysProblem, SecretOwner, now_ms};
use crate::pages;
use crate::router::{Guard, RouteTable};

/// Answers what is about sessions; none if it is about something else.
pub(crate) fn answer(
    shared: &ServerState,
    who: &Requester,
    asked: &Asked,
) -> Option<Result<Response, Problem>> {
    let keys = || {
        shared.keys.as_ref().ok_or_else(|| {
            Problem::new(ProblemCode::NotNow, "no server listens for browsers")
                .with_hint("`landfall serve` starts one")
        })
    };
    Some(match asked {
        Asked::Sessions(_) => keys().map(|keys| Response::Sessions(list_sessions(keys, who))),
        Asked::SessionRevoke(of) => keys().and_then(|keys| match keys.revoke_session(&of.session) {
            Ok(true) => Ok(Response::SessionRevoke(list_sessions(keys, who))),
            Ok(false) => {
                Err(Problem::new(ProblemCode::NotFound, format!("no session is called `{}`", of.session))
                    .with_hint("`landfall project sessions` lists them"))
            }
            Err(error) => Err(keys_problem(&error)),
        }),
        Asked::Pair(asked) => keys().and_then(|keys| {
            let (code, until_ms) = keys.create_pairing(&asked.label).map_err(|error| keys_problem(&error))?;
            let links: Vec<String> = shared.links.iter().map(|link| format!("{link}/pair/{code}")).collect();
            let squares = links.last().map(|link| qr_squares(link)).unwrap_or_default();
            Ok(Response::Pair(Pairing { links, until_ms, squares }))
        }),
        Asked::AgentToken(asked) => keys().and_then(|keys| {
            let (token, session) =
                keys.create_session(&asked.label, true).map_err(|error| keys_problem(&error))?;
            Ok(Response::AgentToken(AgentToken { token, session: session.name, until_ms: session.until_ms }))
        }),
        _ => return None,
    })
}

fn list_sessions(keys: &AccessKeys, who: &Requester) -> SessionList {
    let line = |it: crate::keys::StoredSession| SessionLine {
        this: who.session() == Some(&it.name),
        session: it.name,
        agent: it.agent,
        label: it.label,
        since_ms: it.since_ms,
        seen_ms: it.seen_ms,
        until_ms: it.until_ms,
    };
    SessionList { sessions: keys.sessions().into_iter().map(line).collect() }
}

fn keys_problem(error: &KeysProblem) -> Problem {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    if let KeysProblem::Full = error {
        return Problem::new(ProblemCode::TooMany, error.to_string())
            .with_hint("`landfall project sessions` lists them, and `landfall project sessions --revoke SESSION` lets one in no more");
    }
    Problem::new(ProblemCode::Internal, format!("{error}{cause}"))
}

/// A link as rows of dark (`#`) and light (`.`) squares.
fn qr_squares(link: &str) -> Vec<String> {
    let Ok(code) = qrcode::QrCode::with_error_correction_level(link, qrcode::EcLevel::L) else {
        return Vec::new();
    };
    let width = code.width();
    let colors = code.to_colors();
    let row = |row: &[qrcode::Color]| {
        row.iter().map(|it| if *it == qrcode::Color::Dark { '#' } else { '.' }).collect()
    };
    colors.chunks(width).map(row).collect()
}

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.get("/login", Guard::Open, login_page);
    routes.post("/login", Guard::Open, handle_login);
    routes.get("/pair/{code}", Guard::Open, pair_page);
    routes.post("/pair/{code}", Guard::Open, handle_pairing);
    routes.post("/logout", Guard::Needs(Access::Steer), handle_logout);
}

/// A token and the words of a form around it: strangers send this.
const LOGIN_BYTES_MAX: usize = 4 * 1024;

async fn login_page(State(shared): State<Arc<ServerState>>) -> HttpResponse {
    pages::login_page_response(&shared, None)
}

async fn handle_login(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> HttpResponse {
    let (parts, body) = request.into_parts();
    if let Err(problem) = check_form_origin(&parts.headers) {
        return pages::problem(&problem);
    }
    let source = parts.extensions.get::<ConnectionSource>().copied();
    if let Err(problem) = check_guesses(&shared.login_guesses, source) {
        return refuse_guess(&shared, &problem);
    }
    let body = match shared.login_bodies.read(source, body, LOGIN_BYTES_MAX).await {
        Ok(body) => body,
        Err(problem) => return pages::problem(&problem),
    };
    let pairs: Vec<(String, String)> = serde_html_form::from_bytes(&body).unwrap_or_default(); // what cannot be read is no token
    let token = crate::forms::value_of(&pairs, "token").map_or("", str::trim);
    let Some(keys) = &shared.keys else { return answer::redirect_response("/login") };
    match keys.find_owner(token) {
        Some(SecretOwner::Owner) => start_browser_session(&shared, keys, &parts.headers, ""),
        Some(SecretOwner::Agent(_) | SecretOwner::Browser(_)) | None => {
            note_wrong_guess(&shared.login_guesses, source);
            pages::login_page_response(&shared, Some("This is not the token of this project."))
        }
    }
}

/// The page a link leads to changes nothing: whoever looks at links in advance does not use it up.
async fn pair_page(State(shared): State<Arc<ServerState>>) -> HttpResponse {
    pages::pair_page_response(&shared)
}

async fn handle_pairing(
    State(shared): State<Arc<ServerState>>,
    Path(code): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let headers = request.headers();
    if let Err(problem) = check_form_origin(headers) {
        return pages::problem(&problem);
    }
    let source = request.extensions().get::<ConnectionSource>().copied();
    let Some(keys) = &shared.keys else { return answer::redirect_response("/login") };
    match keys.redeem_pairing(&code, now_ms()) {
        // Before the limit: nobody guesses 128 bits, and others at the same address must not keep the user out.
        Some(label) => start_browser_session(&shared, keys, headers, &label),
        None => {
            if let Err(problem) = check_guesses(&shared.link_guesses, source) {
                return refuse_guess(&shared, &problem);
            }
            note_wrong_guess(&shared.link_guesses, source);
            pages::login_page_response(
                &shared,
                Some("This link was used already, or is too old. `landfall project pair` makes a new one."),
            )
        }
    }
}

/// Whether one more guess of a source is looked at. Who comes by the socket has its key, and guesses nothing.
fn check_guesses(guesses: &GuessLimit, source: Option<ConnectionSource>) -> Result<(), Problem> {
    let Some(wait) = source.and_then(|source| guesses.wait(source, Instant::now())) else { return Ok(()) };
    let seconds = wait.as_secs() + 1;
    Err(Problem::new(ProblemCode::TooMany, "too many wrong guesses came from this address").with_hint(
        format!("try again in {seconds} s; `landfall project pair` makes a link that lets a browser in"),
    ))
}

fn note_wrong_guess(guesses: &GuessLimit, source: Option<ConnectionSource>) {
    if let Some(source) = source {
        guesses.note_wrong(source, Instant::now());
    }
}

fn refuse_guess(shared: &ServerState, problem: &Problem) -> HttpResponse {
    let mut answer = pages::refused(shared, problem);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    answer
}

/// Only a form of ours may sign somebody in: otherwise another page could sign them in as somebody else.
fn check_form_origin(headers: &HeaderMap) -> Result<(), Problem> {
    if says_origin(headers) {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::Forbidden, "the request does not say which page it comes from"))
}

fn start_browser_session(
    shared: &ServerState,
    keys: &AccessKeys,
    headers: &HeaderMap,
    label: &str,
) -> HttpResponse {
    let attributes = match cookie_attributes(shared, headers) {
        Ok(attributes) => attributes,
        Err(problem) => return pages::refused(shared, &problem),
    };
    let agent = headers.get(header::USER_AGENT).and_then(|it| it.to_str().ok()).unwrap_or("a browser");
    let label = if label.is_empty() { agent } else { label };
    match keys.create_session(label, false) {
        Ok((secret, session)) => {
            let seconds = (session.until_ms - session.since_ms) / 1000;
            let cookie = format!("{}={secret}; {attributes}; Max-Age={seconds}", keys.cookie_name());
            let mut answer = answer::redirect_response("/");
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                answer.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            answer
        }
        Err(error) => pages::refused(shared, &keys_problem(&error)),
    }
}

/// What a cookie of this name is bound to. A bare name of this machine gets none: other servers on it would be shown it.
fn cookie_attributes(shared: &ServerState, headers: &HeaderMap) -> Result<&'static str, Problem> {
    match shared.name(headers).map(|name| &name.pages) {
        Some(PageLocation::Here) => Ok("Path=/; HttpOnly; SameSite=Strict"),
        Some(PageLocation::Secure) => Ok("Path=/; HttpOnly; SameSite=Strict; Secure"),
        Some(PageLocation::At(there)) => {
            Err(Problem::new(ProblemCode::Forbidden, "nobody signs in by this name of the machine")
                .with_hint(format!("the pages are at {there}")))
        }
        None => Err(Problem::new(ProblemCode::Misdirected, "this is another host than the request names")),
    }
}

async fn handle_logout(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> HttpResponse {
    let mut answer = answer::redirect_response("/login");
    if let (Some(keys), Some(Requester::Browser { session })) =
        (&shared.keys, request.extensions().get::<Requester>())
    {
        let _ = keys.revoke_session(session); // the cookie goes either way
        let attributes = cookie_attributes(&shared, request.headers()).unwrap_or("Path=/; HttpOnly");
        if let Ok(cookie) =
            HeaderValue::from_str(&format!("{}=; {attributes}; Max-Age=0", keys.cookie_name()))
        {
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
    answer
}
