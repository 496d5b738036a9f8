//! The pages: what people see. Each is drawn by the server from the answers of operations and works without a script;
//! where scripts run, it is drawn again when something has happened.
//!
//! A page is a file here and one line in [`PAGES`]. Text from tasks, agents and files reaches a page only through
//! templates, which escape it. Nothing is styled in place: the policy of the pages does not allow it.

pub(crate) mod ansi;
mod backlog;
mod checkpoints;
mod colours;
mod decide;
mod diff;
mod discoveries;
mod doctor;
mod fleet;
mod flows;
mod graph;
mod help;
mod inbox;
mod layered;
pub(crate) mod log;
mod markdown;
pub(crate) mod markup;
mod now;
mod parts;
mod plot;
mod problems;
mod queue;
mod reference;
mod runs;
mod sessions;
mod settings;
mod sprint;
mod state;
mod stats;
mod task;
mod task_attempts;
mod task_checks;
mod task_diff;
mod task_log;
mod task_loop;
mod task_panel;
mod task_proof;
mod task_target;
#[cfg(test)]
mod task_tests;
mod timeline;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams, State};
use axum::http::{HeaderValue, Method, Request};
use landfall_api::{Access, Board, Problem, ProblemCode, Request as Asked, Response, Service};
use landfall_text::control_chars::escape_html;

use crate::answer::{self, HttpResponse};
use crate::door::{Requester, ServerState};
use crate::forms::{self, Flash};
use crate::router::{Guard, RouteTable};
use crate::{api, assets};

/// One page.
struct PageEntry {
    /// Where it is; a word in braces is a field.
    path: &'static str,
    /// How it is called in the navigation, and by which key it is reached; none for pages reached from others.
    nav: Option<(&'static str, char)>,
    /// Draws it.
    draw: fn(&PageContext<'_>) -> Result<RenderedPage, Problem>,
}

/// Every page there is, in the order of the navigation.
const PAGES: &[PageEntry] = &[
    PageEntry { path: "/", nav: Some(("Now", 'n')), draw: now::draw_now_page },
    PageEntry { path: "/inbox", nav: Some(("Inbox", 'r')), draw: inbox::draw_inbox_page },
    PageEntry { path: "/backlog", nav: Some(("Backlog", 'p')), draw: backlog::draw_backlog_page },
    PageEntry { path: "/queue", nav: Some(("Queue", 'm')), draw: queue::draw_queue_page },
    PageEntry { path: "/sprint", nav: Some(("Sprint", 'S')), draw: sprint::draw_sprint_page },
    PageEntry { path: "/sprints", nav: None, draw: sprint::draw_sprints_page },
    PageEntry { path: "/graph", nav: Some(("Graph", 'g')), draw: graph::draw_graph_page },
    PageEntry {
        path: "/discoveries",
        nav: Some(("Discoveries", 'l')),
        draw: discoveries::draw_discoveries_page,
    },
    PageEntry { path: "/stats", nav: Some(("Statistics", 't')), draw: stats::draw_stats_page },
    PageEntry { path: "/fleet", nav: Some(("Fleet", 'f')), draw: fleet::draw_fleet_page },
    PageEntry {
        path: "/checkpoints",
        nav: Some(("Checkpoints", 'c')),
        draw: checkpoints::draw_checkpoints_page,
    },
    PageEntry { path: "/runs", nav: Some(("Runs", 'u')), draw: runs::draw_runs_page },
    PageEntry { path: "/runs/{run}", nav: None, draw: runs::draw_run_page },
    PageEntry { path: "/flows", nav: Some(("Flows", 'w')), draw: flows::draw_flows_page },
    PageEntry { path: "/flows/{name}", nav: None, draw: flows::draw_flow_page },
    PageEntry { path: "/settings", nav: Some(("Settings", 's')), draw: settings::draw_settings_page },
    PageEntry { path: "/tasks/{task}", nav: None, draw: task::draw_task_page },
    PageEntry { path: "/tasks/{task}/log", nav: None, draw: task_log::draw_log_page },
    PageEntry { path: "/tasks/{task}/diff", nav: None, draw: task_diff::draw_diff_page },
    PageEntry { path: "/tasks/{task}/checks", nav: None, draw: task_checks::draw_checks_page },
    PageEntry { path: "/tasks/{task}/gates", nav: None, draw: task_checks::draw_gates },
    PageEntry { path: "/tasks/{task}/target", nav: None, draw: task_target::draw_target_page },
    PageEntry { path: "/tasks/{task}/attempts", nav: None, draw: task_attempts::draw_attempts_page },
    PageEntry { path: "/tasks/{task}/cost", nav: None, draw: task_attempts::draw_cost },
    PageEntry { path: "/tasks/{task}/certificate", nav: None, draw: task_proof::draw_certificate_page },
    PageEntry { path: "/tasks/{task}/history", nav: None, draw: task_proof::draw_history },
    PageEntry { path: "/doctor", nav: None, draw: doctor::draw_doctor_page },
    PageEntry { path: "/api", nav: None, draw: reference::draw_reference_page },
    PageEntry { path: "/sessions", nav: None, draw: sessions::draw_sessions_page },
    PageEntry { path: "/problems", nav: None, draw: problems::draw_problems_page },
    PageEntry { path: "/help", nav: None, draw: help::draw_help_page },
];

/// Pages that are the answer to a form, for what is shown only once.
const ANSWERS: &[PageEntry] = &[
    PageEntry { path: "/sessions/pair", nav: None, draw: sessions::draw_pairing_page },
    PageEntry { path: "/sessions/token", nav: None, draw: sessions::draw_agent_token_page },
];

/// A form that asks for more than one operation, or for one in words of its own.
struct PageForm {
    /// Its name below `/do/`; no operation has it.
    name: &'static str,
    /// Carries it out, and says what was done.
    send: fn(&PageContext<'_>, &FormFields) -> Result<String, Problem>,
}

/// Every such form.
const FORMS: &[PageForm] = &[
    PageForm { name: "backlog-add", send: backlog::add },
    PageForm { name: "backlog-paste", send: backlog::add_pasted_tasks },
    PageForm { name: "backlog-change", send: backlog::change_tasks },
    PageForm { name: "decide", send: decide::send },
    PageForm { name: "step", send: task_target::do_step },
];

/// The fields of a form.
struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// The text of a field, without blanks around it; none if there is nothing in it.
    fn first_text(&self, name: &str) -> Option<&str> {
        self.all_texts(name).next()
    }

    /// Every text of a field that may be there several times.
    fn all_texts<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let texts = self.0.iter().filter(move |(field, _)| field == name);
        texts.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    /// A field as what it is to be.
    fn parse_field<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let read = |text: &str| {
            text.parse().map_err(|error: T::Err| {
                Problem::new(ProblemCode::BadInput, format!("`{name}` cannot be understood: {error}"))
            })
        };
        self.first_text(name).map(read).transpose()
    }

    /// The words of a field, with commas or blanks between them.
    fn split_words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let split = |text: &'a str| text.split(|it: char| it == ',' || it.is_whitespace());
        self.all_texts(name).flat_map(split).filter(|word| !word.is_empty())
    }

    /// The lines of a field.
    fn split_lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.all_texts(name).flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty())
    }
}

/// A link with words in its query; those without a text are left out.
fn build_link(path: &str, words: &[(&str, &str)]) -> String {
    let words: Vec<_> = words.iter().filter(|(_, text)| !text.is_empty()).collect();
    match serde_html_form::to_string(words) {
        Ok(query) if !query.is_empty() => format!("{path}?{query}"),
        Ok(_) | Err(_) => path.to_owned(), // texts always can be written
    }
}

/// Carries a form of a page out; none if no page has one of that name.
pub(crate) async fn send_form(
    shared: &Arc<ServerState>,
    who: &Requester,
    name: &str,
    fields: &[(String, String)],
) -> Option<Result<String, Problem>> {
    let form = FORMS.iter().find(|it| it.name == name)?;
    let (shared, who, fields) = (Arc::clone(shared), who.clone(), FormFields(fields.to_vec()));
    let done = tokio::task::spawn_blocking(move || {
        let visit = PageContext { shared: &shared, who: &who, fields: Vec::new(), query: Vec::new() };
        (form.send)(&visit, &fields)
    });
    let done = done.await;
    Some(done.unwrap_or_else(|_| {
        Err(Problem::new(ProblemCode::Internal, "the form could not be carried out to its end"))
    }))
}

/// A page as it was drawn.
pub(crate) struct RenderedPage {
    /// What stands in the title of the window.
    title: String,
    /// What stands between navigation and foot, as HTML.
    main: String,
    /// The board it was drawn from, so that the frame need not ask again.
    board: Option<Box<Board>>,
}

impl RenderedPage {
    fn new(title: impl Into<String>, main: &impl Template) -> Result<Self, Problem> {
        let main = main
            .render()
            .map_err(|error| Problem::new(ProblemCode::Internal, format!("draw the page: {error}")))?;
        Ok(Self { title: title.into(), main, board: None })
    }

    /// The same with the board it was drawn from.
    fn with_board(mut self, board: Box<Board>) -> Self {
        self.board = Some(board);
        self
    }
}

/// Somebody who looks at a page. Asks operations in their name.
pub(crate) struct PageContext<'a> {
    shared: &'a ServerState,
    who: &'a Requester,
    /// The words in the path.
    fields: Vec<(String, String)>,
    /// The words in the query.
    query: Vec<(String, String)>,
}

impl Service for PageContext<'_> {
    fn call(&self, asked: Asked) -> Result<Response, Problem> {
        api::call_in_thread(self.shared, self.who, asked)
    }
}

impl PageContext<'_> {
    /// The moment it is.
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }

    /// A word in the path, as what it is to be.
    fn path_value<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, Problem> {
        let text = self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, text)| text.as_str());
        text.parse().map_err(|error: T::Err| Problem::new(ProblemCode::NotFound, error.to_string()))
    }

    /// A word in the query.
    fn query_value(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, text)| text.as_str())
            .filter(|text| !text.is_empty())
    }

    /// A word in the query, as what it is to be; none if it is not that.
    fn parse_query_value<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.query_value(name)?.parse().ok()
    }
}

pub(crate) fn routes(routes: &mut RouteTable) {
    // An agent has no business on pages made for people.
    let people = Guard::Needs(Access::Steer);
    for entry in PAGES {
        let show = async move |State(shared): State<Arc<ServerState>>, request: Request<Body>| {
            show(&shared, entry, request).await
        };
        routes.get(entry.path, people, show);
    }
    for entry in ANSWERS {
        let show = async move |State(shared): State<Arc<ServerState>>, request: Request<Body>| {
            show(&shared, entry, request).await
        };
        routes.post(entry.path, people, show);
    }
}

async fn show(shared: &Arc<ServerState>, entry: &'static PageEntry, request: Request<Body>) -> HttpResponse {
    let (mut parts, body) = request.into_parts();
    let who = parts.extensions.get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    let fields = match RawPathParams::from_request_parts(&mut parts, &()).await {
        Ok(fields) => fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        Err(_) => Vec::new(),
    };
    let path = parts.uri.path().to_owned();
    // What cannot be read is not asked. The answer to a form is not drawn again: it would be another answer.
    let (query, target) = if parts.method == Method::POST {
        match api::read_body(body).await {
            Ok(body) => (serde_html_form::from_bytes(&body).unwrap_or_default(), String::new()),
            Err(problem) => return refused(shared, &problem),
        }
    } else {
        let query = serde_html_form::from_str(parts.uri.query().unwrap_or_default()).unwrap_or_default();
        (query, parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned())
    };
    let flashes = shared.flashes.take(who.session().unwrap_or_default());
    if entry.path == "/" && target == "/" && flashes.is_empty() {
        // What everybody looks at is drawn once for all of them. It says nothing of who looks.
        let draw = move |shared: &Arc<ServerState>| {
            let visit = PageContext { shared, who: &Requester::Token, fields: Vec::new(), query: Vec::new() };
            let page = (entry.draw)(&visit)?;
            Ok(escape_html(draw_frame(&visit, "/", "/", &page, &[])).into())
        };
        if let Ok(page) = shared.kept.get(shared, "/", draw).await {
            return answer::drawn_page(200, page);
        }
        // Drawn once more: the page says what is wrong.
    }
    let shared = Arc::clone(shared);
    let room = match shared.rooms.read().await {
        Ok(room) => room,
        Err(busy) => {
            flashes
                .into_iter()
                .for_each(|it| shared.flashes.push_flash(who.session().unwrap_or_default(), it));
            return problem(&busy);
        }
    };
    let drawn = tokio::task::spawn_blocking(move || {
        let _room = room; // until it is drawn
        let visit = PageContext { shared: &shared, who: &who, fields, query };
        let (status, page) = match (entry.draw)(&visit) {
            Ok(page) => (200, page),
            Err(problem) => (problem.code.http_status(), problem_page(&problem)),
        };
        shared.mark_all_told();
        answer::html_response(status, draw_frame(&visit, &path, &target, &page, &flashes))
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
struct PageFrame<'a> {
    project: &'a str,
    title: &'a str,
    target: &'a str,
    nav: Vec<NavLink>,
    top: Option<state::PageHeader<'a>>,
    foot: Option<state::PageFooter<'a>>,
    flashes: &'a [Flash],
    main: &'a str,
}

/// Puts a page into its frame.
fn draw_frame(
    visit: &PageContext<'_>,
    path: &str,
    target: &str,
    page: &RenderedPage,
    flashes: &[Flash],
) -> String {
    let asked = if page.board.is_none() { state::fetch_board(visit) } else { None };
    let board = page.board.as_deref().or(asked.as_deref());
    // A form in the head comes back to this page; the answer to a form cannot be come back to.
    let back = if target.is_empty() { "/" } else { target };
    let nav = PAGES.iter().filter_map(|entry| {
        let (name, key) = entry.nav?;
        Some(NavLink {
            path: entry.path,
            name,
            key,
            here: entry.path == path || (entry.path != "/" && path.starts_with(&format!("{}/", entry.path))),
        })
    });
    let frame = PageFrame {
        project: &visit.shared.project,
        title: &page.title,
        target,
        nav: nav.collect(),
        top: board.map(|board| state::PageHeader::new(board, back)),
        foot: board.map(state::PageFooter::new),
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

fn problem_page(problem: &Problem) -> RenderedPage {
    let page = ProblemPage {
        text: words::sentence(&problem.message),
        hint: problem.hint.as_deref(),
        code: problem.code.word(),
    };
    RenderedPage { title: "A problem".to_owned(), main: page.render().unwrap_or_default(), board: None }
}

#[derive(Template)]
#[template(path = "bare.html")]
struct BarePage<'a> {
    project: &'a str,
    title: &'a str,
    main: &'a str,
}

fn bare_page(status: u16, project: &str, page: &RenderedPage) -> HttpResponse {
    let bare = BarePage { project, title: &page.title, main: &page.main };
    answer::html_response(status, bare.render().unwrap_or_default())
}

/// A problem outside of any page of the project.
pub(crate) fn problem(problem: &Problem) -> HttpResponse {
    bare_page(problem.code.http_status(), "", &problem_page(problem))
}

/// Somebody is not let in: whoever is a stranger is shown how to get in.
pub(crate) fn refused(shared: &ServerState, problem: &Problem) -> HttpResponse {
    match problem.code {
        ProblemCode::Unauthorized => answer::redirect_response("/login"),
        _ => bare_page(problem.code.http_status(), &shared.project, &problem_page(problem)),
    }
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    project: &'a str,
    wrong: Option<&'a str>,
}

/// The page on which a token lets somebody in.
pub(crate) fn login_page_response(shared: &ServerState, wrong: Option<&str>) -> HttpResponse {
    let main = LoginPage { project: &shared.project, wrong }.render().unwrap_or_default();
    let status = if wrong.is_some() { 403 } else { 200 };
    bare_page(status, &shared.project, &RenderedPage { title: "Sign in".to_owned(), main, board: None })
}

#[derive(Template)]
#[template(path = "pair.html")]
struct PairingPage<'a> {
    project: &'a str,
}

/// The page a link of `landfall project pair` leads to.
pub(crate) fn pair_page_response(shared: &ServerState) -> HttpResponse {
    bare_page(
        200,
        &shared.project,
        &RenderedPage {
            title: "Sign in this browser".to_owned(),
            main: PairingPage { project: &shared.project }.render().unwrap_or_default(),
            board: None,
        },
    )
}

#[derive(Template)]
#[template(path = "toast.html")]
struct FlashToast<'a> {
    flash: &'a Flash,
}

/// What became of a form, for a page with scripts: it is shown for a while, and the page is drawn again.
pub(crate) fn toast_response(flash: &Flash) -> HttpResponse {
    let mut answer = answer::html_response(200, FlashToast { flash }.render().unwrap_or_default());
    answer.headers_mut().insert("hx-trigger", HeaderValue::from_static("changed"));
    answer
}

/// A word about what was done.
pub(crate) fn response_text(response: &Response) -> String {
    words::sentence(&forms::response_sentence(response))
}

#[cfg(test)]
mod tests;
