//! Forms: every operation that changes something can be posted by a page without a script.
//!
//! `POST /do/<operation>` takes the fields of a form as the words of the request. A name says where a value belongs and what it
//! is: `note` is a text, `said.changes.note` is a text inside, `tasks[]` is one of a list, `limit:n` is a number, `draft:b` is
//! true, `criteria:l` is a list with an item for each line, `time_ms:min` is minutes. An empty field is left out, unless its
//! kind ends in `!`: `body:s!`. `back` says which page comes next without scripts, `then` which one comes next in any case.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use landfall_api::{Access, HttpMethod, Problem, ProblemCode, Request as Asked, Response};
use serde::de::IntoDeserializer as _;
use serde_json::{Map, Value};

use crate::answer::{self, HttpResponse};
use crate::api::{self, read_body};
use crate::door::{Requester, ServerState};
use crate::pages;
use crate::router::{Guard, RouteTable};

const FIELDS_MAX: usize = 10_000; // a bulk action on a long list
const DEPTH_MAX: usize = 8;

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.post("/do/{operation}", Guard::Needs(Access::Steer), post_form);
}

async fn post_form(
    State(shared): State<Arc<ServerState>>,
    Path(operation): Path<String>,
    request: Request<Body>,
) -> HttpResponse {
    let (parts, body) = request.into_parts();
    let who = parts.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    let scripted = parts.headers.get("hx-request").is_some();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(problem) => return pages::problem(&problem),
    };
    let fields: Vec<(String, String)> = serde_html_form::from_bytes(&body).unwrap_or_default(); // no fields are no words
    let back = value_of(&fields, "back").map_or("/", local_path);
    let done = match pages::send_form(&shared, &who, &operation, &fields).await {
        Some(done) => done,
        None => match read(&operation, &fields) {
            Ok(asked) => {
                api::call(&shared, &who, asked).await.map(|response| pages::response_text(&response))
            }
            Err(problem) => Err(problem),
        },
    };
    let flash = match done {
        Ok(text) => Flash { good: true, text, hint: None },
        Err(problem) => Flash { good: false, text: problem.message, hint: problem.hint },
    };
    // A page whose form is of no use once it was sent names the page that comes then.
    let then = value_of(&fields, "then").map(local_path);
    match (scripted, then.filter(|_| flash.good)) {
        (true, None) => pages::toast_response(&flash),
        (true, Some(then)) => {
            shared.flashes.push_flash(who.session().unwrap_or_default(), flash);
            answer::leave(then)
        }
        (false, then) => {
            shared.flashes.push_flash(who.session().unwrap_or_default(), flash);
            answer::redirect_response(then.unwrap_or(back))
        }
    }
}

/// A page of ours, whatever was asked for.
pub(crate) fn local_path(path: &str) -> &str {
    // Browsers drop tabs and line ends, and take a backslash for a slash: what is left then may be another site.
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if plain && path.starts_with('/') && !path.starts_with("//") { path } else { "/" }
}

/// The request that the fields of a form make.
pub(crate) fn read(operation: &str, fields: &[(String, String)]) -> Result<Asked, Problem> {
    let unknown = || Problem::new(ProblemCode::NotFound, "no such form");
    let route = Asked::ROUTES
        .iter()
        .find(|it| it.name == operation && it.method != HttpMethod::Get)
        .ok_or_else(unknown)?;
    let bad = |what: &dyn std::fmt::Display| {
        Problem::new(ProblemCode::BadInput, format!("the form cannot be understood: {what}"))
    };
    if fields.len() > FIELDS_MAX {
        return Err(bad(&"it has too many fields"));
    }
    let mut words = Value::Object(Map::new());
    for (name, text) in fields {
        if name == "back" || name == "then" || (text.is_empty() && !name.ends_with('!')) {
            continue;
        }
        let (path, kind) = name.trim_end_matches('!').split_once(':').unwrap_or((name, "s"));
        let value = match kind {
            "s" => Value::String(text.replace("\r\n", "\n")),
            "n" => serde_json::from_str(text.trim())
                .ok()
                .filter(Value::is_number)
                .ok_or_else(|| bad(&format!("`{path}` is a number")))?,
            "min" => {
                const MINUTES_MAX: u64 = 100 * 365 * 24 * 60; // nobody waits longer
                let minutes = text.trim().parse::<u64>().ok().filter(|it| *it <= MINUTES_MAX);
                (minutes.ok_or_else(|| bad(&format!("`{path}` is a number of minutes")))? * 60_000).into()
            }
            "b" => Value::Bool(matches!(text.as_str(), "on" | "true" | "1" | "yes")),
            "l" => text.lines().map(str::trim).filter(|it| !it.is_empty()).map(Value::from).collect(),
            _ => return Err(bad(&format!("`{name}` is no field"))),
        };
        set_json_value(&mut words, path, value).ok_or_else(|| bad(&format!("`{name}` is no field")))?;
    }
    let asked = Asked::of_words(route.name, words.into_deserializer());
    asked.map_err(|error: serde_json::Error| bad(&error))?.ok_or_else(unknown)
}

fn set_json_value(words: &mut Value, path: &str, value: Value) -> Option<()> {
    let mut at = words;
    let parts: Vec<&str> = path.split('.').collect();
    if parts.len() > DEPTH_MAX {
        return None;
    }
    let (last, inner) = parts.split_last()?;
    for part in inner {
        at = at.as_object_mut()?.entry(*part).or_insert_with(|| Value::Object(Map::new()));
    }
    let at = at.as_object_mut()?;
    match last.strip_suffix("[]") {
        Some(list) => at.entry(list).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?.push(value),
        // A later field of the same name wins: a box that is ticked stands after its default.
        None => {
            at.insert((*last).to_owned(), value);
        }
    }
    Some(())
}

/// What became of a form, told on the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    pub(crate) good: bool,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

/// What is still to be told, by session.
#[derive(Default)]
pub(crate) struct Flashes(Mutex<VecDeque<(String, Flash)>>);

const FLASHES_MAX: usize = 100;

impl Flashes {
    pub(crate) fn push_flash(&self, session: &str, flash: Flash) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((session.to_owned(), flash));
        while kept.len() > FLASHES_MAX {
            kept.pop_front();
        }
    }

    /// What is to be told to a session, once.
    pub(crate) fn take(&self, session: &str) -> Vec<Flash> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mine, rest): (Vec<_>, Vec<_>) = kept.drain(..).partition(|(whose, _)| whose == session);
        kept.extend(rest);
        mine.into_iter().map(|(_, flash)| flash).collect()
    }
}

/// A word about what was done: the engine's own sentence where it has one.
pub(crate) fn response_sentence(response: &Response) -> String {
    match response {
        Response::Stop(it) => it.text.clone(),
        Response::Rollback(it) => it.text.clone(),
        Response::Pause(it) | Response::Resume(it) | Response::Auto(it) => it.text.clone(),
        Response::Next(it) => it.text.clone(),
        Response::SprintPause(it) | Response::SprintResume(it) | Response::SprintCancel(it) => {
            it.text.clone()
        }
        Response::QueuePause(it) | Response::QueueResume(it) => it.text.clone(),
        Response::RunStart(_) => "The run begins.".to_owned(),
        Response::LoopStart(_) => "The loop begins.".to_owned(),
        Response::LoopStop(it) => it.text.clone(),
        Response::IssuesFollow(it) => it.text.clone(),
        Response::SessionRevoke(_) => "It is let in no more.".to_owned(),
        Response::Add(added) => {
            let ids: Vec<String> = added.tasks.iter().map(|it| it.id.to_string()).collect();
            format!("Added {}.", ids.join(", "))
        }
        Response::Annotate(it) => it.text.clone(),
        Response::IssueTick(it) => it.text.clone(),
        Response::Edit(it)
        | Response::TaskDo(it)
        | Response::TargetSay(it)
        | Response::TargetConfirm(it)
        | Response::Refine(it)
        | Response::RefineWithdraw(it)
        | Response::Retry(it)
        | Response::Accept(it)
        | Response::Cancel(it)
        | Response::Answer(it)
        | Response::Review(it)
        | Response::QueueEject(it) => match it.tasks.as_slice() {
            [one] => one.text.clone(),
            many => format!("{} tasks changed.", many.len()),
        },
        _ => "Done.".to_owned(),
    }
}

/// The first value of this name among the fields of a form, or the parameters of an address.
pub(crate) fn value_of<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
}
