//! How operations travel over HTTP: words in the path, the query or a JSON body; problems as problem JSON.
//!
//! Both sides use this file, so that what a client writes is what the server reads. Nothing here moves bytes.

use std::borrow::Cow;

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::operation::{HttpMethod, OperationRoute};
use crate::{Problem, ProblemCode, Request};

/// Below this path the operations are.
pub const ROOT: &str = "/api/v1";
/// The header by which each side tells its version of the wire.
pub const VERSION_HEADER: &str = "landfall-wire";
/// The header by which the engine tells its process.
pub const PID_HEADER: &str = "landfall-pid";
/// The header by which the engine tells its own version.
pub const ENGINE_HEADER: &str = "landfall-version";
/// The header by which a client on the socket proves that it can read the state folder.
pub const KEY_HEADER: &str = "landfall-key";
/// The header that makes asking twice the same as asking once.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// What the body of a problem is.
pub const PROBLEM_TYPE: &str = "application/problem+json";
/// The host a client names when it comes by the socket.
pub const SOCKET_HOST: &str = "landfall";
/// The longest request body, in bytes: a large backlog fits, a flood does not.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// How it is asked.
    pub method: HttpMethod,
    /// Path and query.
    pub target: String,
    /// Its JSON body, if it has one.
    pub body: Option<Vec<u8>>,
}

/// Writes a request.
///
/// # Errors
/// When its words cannot be written, which is a fault of ours.
pub fn write(request: &Request) -> Result<WireRequest, serde_json::Error> {
    let route = request.route();
    let mut words = match request.words()? {
        Value::Object(words) => words,
        _ => Map::new(), // words of no operation are anything but an object
    };
    let mut target = ROOT.to_owned();
    for part in split_path(route.path) {
        match part {
            PathSegment::Plain(text) => target.push_str(text),
            PathSegment::Field(name) => {
                push_escaped(&mut target, &plain_text(&words.remove(name).unwrap_or_default()))
            }
        }
    }
    let body = match route.method {
        HttpMethod::Get | HttpMethod::Delete => {
            let mut mark = '?';
            for (name, value) in &words {
                let many = match value {
                    Value::Array(many) => many.as_slice(),
                    one => std::slice::from_ref(one),
                };
                for value in many.iter().filter(|value| !value.is_null()) {
                    target.push(mark);
                    mark = '&';
                    push_escaped(&mut target, name);
                    target.push('=');
                    push_escaped(&mut target, &plain_text(value));
                }
            }
            None
        }
        HttpMethod::Post | HttpMethod::Patch => Some(serde_json::to_vec(&words)?),
    };
    Ok(WireRequest { method: route.method, target, body })
}

/// Reads a request for `route`. `fields` are what stood in the path, `query` and `body` the rest.
///
/// # Errors
/// What cannot be understood.
pub fn read(
    route: &OperationRoute,
    fields: &[(String, String)],
    query: &str,
    body: &[u8],
) -> Result<Request, Problem> {
    let bad = |error: &dyn std::fmt::Display| {
        Problem::new(ProblemCode::BadInput, format!("the request cannot be understood: {error}"))
            .with_hint(format!("the words of `{}` are in the reference: /api", route.name))
    };
    let request = match route.method {
        HttpMethod::Get | HttpMethod::Delete => {
            let mut pairs = query.to_owned();
            for (name, value) in fields {
                pairs.push('&');
                push_escaped(&mut pairs, name);
                pairs.push('=');
                push_escaped(&mut pairs, value);
            }
            let words = serde_html_form::Deserializer::from_bytes(pairs.as_bytes());
            Request::of_words(route.name, words).map_err(|error| bad(&error))
        }
        HttpMethod::Post | HttpMethod::Patch => {
            let mut words = match body {
                [] => Map::new(),
                body => match serde_json::from_slice(body).map_err(|error| bad(&error))? {
                    Value::Object(words) => words,
                    other => return Err(bad(&format!("an object is wanted, not {}", kind(&other)))),
                },
            };
            for (name, value) in fields {
                let value = Value::String(value.clone());
                match words.get(name) {
                    Some(other) if *other != value => {
                        return Err(bad(&format!(
                            "`{name}` is one thing in the path and another in the body"
                        )));
                    }
                    Some(_) | None => {
                        words.insert(name.clone(), value); // the same twice
                    }
                }
            }
            Request::of_words(route.name, Value::Object(words).into_deserializer())
                .map_err(|error: serde_json::Error| bad(&error))
        }
    }?;
    request.ok_or_else(|| Problem::new(ProblemCode::Internal, format!("`{}` is no operation", route.name)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A part of a path.
pub enum PathSegment<'a> {
    /// As it stands.
    Plain(&'a str),
    /// A field of the request.
    Field(&'a str),
}

/// The parts of a route's path.
pub fn split_path(path: &str) -> impl Iterator<Item = PathSegment<'_>> {
    path.split_inclusive(['{', '}']).filter_map(|part| match part.strip_suffix('}') {
        Some(name) => Some(PathSegment::Field(name)),
        None => Some(PathSegment::Plain(part.strip_suffix('{').unwrap_or(part))).filter(|_| part != "{"),
    })
}

fn plain_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Adds `text` so that it is one piece of a path or a query.
fn push_escaped(to: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => to.push(char::from(byte)),
            _ => to.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// A problem as it travels (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProblemBody {
    /// The page that explains the code.
    #[serde(rename = "type")]
    pub page: String,
    /// The code, for programs.
    pub code: ProblemCode,
    /// The status of the answer.
    pub status: u16,
    /// What was wrong.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The facts behind it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}

impl From<&Problem> for ProblemBody {
    fn from(problem: &Problem) -> Self {
        Self {
            page: format!("/problems#{}", problem.code.word()),
            code: problem.code,
            status: problem.code.http_status(),
            detail: problem.message.clone(),
            hint: problem.hint.clone(),
            context: (*problem.context).clone(),
        }
    }
}

impl From<ProblemBody> for Problem {
    fn from(body: ProblemBody) -> Self {
        Self { code: body.code, message: body.detail, hint: body.hint, context: Box::new(body.context) }
    }
}
