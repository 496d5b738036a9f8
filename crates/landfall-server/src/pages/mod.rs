//! The pages: what people see. Each is drawn by the server from the answers of operations and works without a script;
//! where scripts run, it is drawn again when something has happened.
//!
//! A page is a file here and one line in [`PAGES`]. Text from tasks, agents and files reaches a page only through
//! templates, which escape it. Nothing is styled in place: the policy of the pages does not allow it.

mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams, State};
use axum::http::{HeaderValue, Request};
use landfall_api::{Access, Problem, ProblemCode, Request as Asked, Response, Service};

use crate::answer::{self, Answer};
use crate::api;
use crate::door::{Shared, Who};
use crate::forms::{self, Flash};

/// One page.
struct Entry {
    /// Where it is; a word in braces is a field.
    path: &'static str,
    /// How it is called in the navigation, and by which key it is reached; none for pages reached from others.
    nav: Option<(&'static str, char)>,
    /// Draws it.
    draw: fn(&Visit<'_>) -> Result<Page, Problem>,
}

/// Every page there is, in the order of the navigation.
const PAGES: &[Entry] = &[];

/// A page as it was drawn.
pub(crate) struct Page {
    /// What stands in the title of the window.
    title: String,
    /// What stands between navigation and foot, as HTML.
    main: String,
}

impl Page {
    fn new(title: impl Into<String>, main: &impl Template) -> Result<Self, Problem> {
        let main = main
            .render()
            .map_err(|error| Problem::new(ProblemCode::Internal, format!("draw the page: {error}")))?;
        Ok(Self { title: title.into(), main })
    }
}

/// Somebody who looks at a page. Asks operations in their name.
pub(crate) struct Visit<'a> {
    shared: &'a Shared,
    who: &'a Who,
    /// The words in the path.
    fields: Vec<(String, String)>,
    /// The words in the query.
    query: Vec<(String, String)>,
}

impl Service for Visit<'_> {
    fn call(&self, asked: Asked) -> Result<Response, Problem> {
        api::call_here(self.shared, self.who, asked)
    }
}

impl Visit<'_> {
    /// A word in the path, as what it is to be.
    fn field<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, Problem> {
        let text = self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, text)| text.as_str());
        text.parse().map_err(|error: T::Err| Problem::new(ProblemCode::NotFound, error.to_string()))
    }

    /// A word in the query.
    fn asked(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, text)| text.as_str())
            .filter(|text| !text.is_empty())
    }

    /// A word in the query, as what it is to be; none if it is not that.
    fn asked_as<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.asked(name)?.parse().ok()
    }
}

pub(crate) fn routes(mut router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    for entry in PAGES {
        let show = async move |State(shared): State<Arc<Shared>>, request: Request<Body>| {
            show(&shared, entry, request).await
        };
        router = router.route(entry.path, axum::routing::get(show));
    }
    router
}

async fn show(shared: &Arc<Shared>, entry: &'static Entry, request: Request<Body>) -> Answer {
    let (mut parts, _) = request.into_parts();
    let who = parts.extensions.get::<Who>().cloned().unwrap_or(Who::Nobody);
    // An agent has no business on pages made for people.
    if let Err(problem) = who.may(Access::Steer) {
        return refused(shared, &problem);
    }
    let fields = match RawPathParams::from_request_parts(&mut parts, &()).await {
        Ok(fields) => fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        Err(_) => Vec::new(),
    };
    let query = serde_html_form::from_str(parts.uri.query().unwrap_or_default()).unwrap_or_default(); // what cannot be read is not asked
    let path = parts.uri.path().to_owned();
    let target = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let shared = Arc::clone(shared);
    let drawn = tokio::task::spawn_blocking(move || {
        let visit = Visit { shared: &shared, who: &who, fields, query };
        let flashes = shared.flashes.take(who.session().unwrap_or_default());
        match (entry.draw)(&visit) {
            Ok(page) => answer::html(200, frame(&shared, &path, &target, &page, &flashes)),
            Err(problem) => {
                let page = problem_page(&problem);
                answer::html(problem.code.status(), frame(&shared, &path, &target, &page, &flashes))
            }
        }
    });
    drawn
        .await
        .unwrap_or_else(|_| problem(&Problem::new(ProblemCode::Internal, "the page could not be drawn")))
}

/// A link of the navigation.
struct NavLink {
    path: &'static str,
    name: &'static str,
    key: char,
    here: bool,
}

#[derive(Template)]
#[template(path = "frame.html")]
struct Frame<'a> {
    project: &'a str,
    title: &'a str,
    target: &'a str,
    nav: Vec<NavLink>,
    flashes: &'a [Flash],
    main: &'a str,
}

/// Puts a page into its frame.
fn frame(shared: &Shared, path: &str, target: &str, page: &Page, flashes: &[Flash]) -> String {
    let nav = PAGES.iter().filter_map(|entry| {
        let (name, key) = entry.nav?;
        Some(NavLink { path: entry.path, name, key, here: entry.path == path })
    });
    let frame = Frame {
        project: &shared.project,
        title: &page.title,
        target,
        nav: nav.collect(),
        flashes,
        main: &page.main,
    };
    frame.render().unwrap_or_default() // a template over texts always can be drawn
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    text: String,
    hint: Option<&'a str>,
    code: String,
}

fn problem_page(problem: &Problem) -> Page {
    let page = ProblemPage {
        text: words::sentence(&problem.message),
        hint: problem.hint.as_deref(),
        code: problem.code.word(),
    };
    Page { title: "A problem".to_owned(), main: page.render().unwrap_or_default() }
}

#[derive(Template)]
#[template(path = "bare.html")]
struct Bare<'a> {
    project: &'a str,
    title: &'a str,
    main: &'a str,
}

fn bare(status: u16, project: &str, page: &Page) -> Answer {
    let bare = Bare { project, title: &page.title, main: &page.main };
    answer::html(status, bare.render().unwrap_or_default())
}

/// A problem outside of any page of the project.
pub(crate) fn problem(problem: &Problem) -> Answer {
    bare(problem.code.status(), "", &problem_page(problem))
}

/// Somebody is not let in: whoever is a stranger is shown how to get in.
pub(crate) fn refused(shared: &Shared, problem: &Problem) -> Answer {
    match problem.code {
        ProblemCode::Unauthorized => answer::see("/login"),
        _ => bare(problem.code.status(), &shared.project, &problem_page(problem)),
    }
}

#[derive(Template)]
#[template(path = "login.html")]
struct Login<'a> {
    wrong: Option<&'a str>,
}

/// The page on which a token lets somebody in.
pub(crate) fn login(shared: &Shared, wrong: Option<&str>) -> Answer {
    let main = Login { wrong }.render().unwrap_or_default();
    let status = if wrong.is_some() { 403 } else { 200 };
    bare(status, &shared.project, &Page { title: "Sign in".to_owned(), main })
}

#[derive(Template)]
#[template(path = "pair.html")]
struct Pair;

/// The page a link of `landfall pair` leads to.
pub(crate) fn pair(shared: &Shared) -> Answer {
    bare(
        200,
        &shared.project,
        &Page { title: "Let this browser in".to_owned(), main: Pair.render().unwrap_or_default() },
    )
}

#[derive(Template)]
#[template(path = "toast.html")]
struct Toast<'a> {
    flash: &'a Flash,
}

/// What became of a form, for a page with scripts: it is shown for a while, and the page is drawn again.
pub(crate) fn toast(flash: &Flash) -> Answer {
    let mut answer = answer::html(200, Toast { flash }.render().unwrap_or_default());
    answer.headers_mut().insert("hx-trigger", HeaderValue::from_static("changed"));
    answer
}

/// A word about what was done.
pub(crate) fn said(response: &Response) -> String {
    words::sentence(&forms::sentence(response))
}
