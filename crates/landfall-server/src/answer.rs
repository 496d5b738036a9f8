//! Answers: problems as problem JSON or as a page, and the headers that every answer carries.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use landfall_api::http::{ENGINE_HEADER, PID_HEADER, PROBLEM_TYPE, ProblemBody, VERSION_HEADER};
use landfall_api::{Problem, ProblemCode};
use landfall_text::control_chars::{escape_html, escape_json};

/// What is sent back.
pub(crate) type HttpResponse = Response<Body>;

/// A body of a kind.
pub(crate) fn of(status: u16, kind: &'static str, body: impl Into<Body>) -> HttpResponse {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// JSON without characters that a terminal obeys.
pub(crate) fn escape_json_bytes(json: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(json) {
        Ok(json) => escape_json(json).into_bytes(),
        Err(error) => error.into_bytes(), // what is not text is not JSON: nothing to escape
    }
}

pub(crate) fn json(body: Vec<u8>) -> HttpResponse {
    harmless_json_response(escape_json_bytes(body))
}

/// JSON that was made harmless when it was made.
pub(crate) fn harmless_json_response(body: impl Into<Body>) -> HttpResponse {
    of(200, "application/json", body)
}

pub(crate) fn html_response(status: u16, text: String) -> HttpResponse {
    drawn_page(status, escape_html(text))
}

/// A page that was made harmless when it was drawn.
pub(crate) fn drawn_page(status: u16, text: impl Into<Body>) -> HttpResponse {
    of(status, "text/html; charset=utf-8", text)
}

/// A problem, for programs.
pub(crate) fn problem(problem: &Problem) -> HttpResponse {
    let body = ProblemBody::from(problem);
    let text = serde_json::to_vec(&body).unwrap_or_default(); // words and numbers always can be written
    let mut answer = of(body.status, PROBLEM_TYPE, escape_json_bytes(text));
    if problem.code == ProblemCode::Unauthorized {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// Sends a browser on to a page of ours.
pub(crate) fn redirect_response(to: &str) -> HttpResponse {
    let mut answer = of(303, "text/plain; charset=utf-8", "");
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(header::LOCATION, to);
    }
    answer
}

/// The same for a script that sent a form: it opens the page.
pub(crate) fn leave(to: &str) -> HttpResponse {
    let mut answer = of(200, "text/plain; charset=utf-8", "");
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert("hx-redirect", to);
    }
    answer
}

/// No script, style, picture or form but our own; nothing from elsewhere may frame us or look at us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds what every answer carries, whatever it is.
pub(crate) fn add_common_headers(answer: &mut HttpResponse) {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: browsers would then send the forms of our own pages with the origin `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
        (HeaderName::from_static(ENGINE_HEADER), env!("CARGO_PKG_VERSION")),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(HeaderName::from_static(VERSION_HEADER), HeaderValue::from(landfall_api::VERSION));
    headers.insert(HeaderName::from_static(PID_HEADER), HeaderValue::from(std::process::id()));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
