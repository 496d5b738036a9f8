//! The shapes of messages. A change here is a change of the wire: old clients meet new engines.

use std::collections::BTreeSet;

use expect_test::expect;
use landfall_api::{
    Access, EditTask, Filter, HttpMethod, Level, NewTask, NewTasks, Nothing, OperationRoute, OutputAsked,
    OutputOf, Problem, ProblemCode, ReportAsked, Request, Response, Service, Status, StopAsked, TaskAsked,
    TaskRef, TypedService, UnknownWord, WaitFor, Why, WireRunId, WireTaskId, http,
};

/// Reads a request as the server does: the fields of the path are taken out of the target first.
fn read_back(written: &http::WireRequest, route: &OperationRoute) -> Result<Request, Problem> {
    let (path, query) = written.target.split_once('?').unwrap_or((&written.target, ""));
    let path = path.strip_prefix(http::ROOT).expect("below the root");
    let fields = route.path.split('/').zip(path.split('/')).filter_map(|(name, value)| {
        Some((name.strip_prefix('{')?.strip_suffix('}')?.to_owned(), value.to_owned()))
    });
    http::read(route, &fields.collect::<Vec<_>>(), query, written.body.as_deref().unwrap_or_default())
}

#[test]
fn requests_are_words_in_the_path_the_query_or_the_body() {
    let requests = [
        Request::Add(NewTasks {
            tasks: vec![NewTask {
                title: "one".to_owned(),
                needs: vec![TaskRef::Task(WireTaskId(1)), TaskRef::Batch(2)],
                ..NewTask::default()
            }],
        }),
        Request::List(Filter {
            status: vec![Status::Ready, Status::Draft],
            limit: 10,
            text: Some("a&b=c é".to_owned()),
            ..Filter::default()
        }),
        Request::Edit(EditTask { ready: Some(true), ..EditTask::new(WireTaskId(3)) }),
        Request::Status(Nothing {}),
        Request::Output(OutputAsked {
            of: OutputOf {
                task: WireTaskId(7),
                key: None,
                attempt: Some(1),
                iteration: Some(2),
                check: None,
                stderr: true,
            },
            at: Some(100),
            backward: true,
            lines: 50,
            search: "error".to_owned(),
            levels: vec![Level::Raw],
            raw: false,
        }),
        Request::Stop(StopAsked { task: None, now: true }),
        Request::Report(ReportAsked { run: Some(WireRunId(2)), ..ReportAsked::default() }),
        Request::Report(ReportAsked::default()),
        Request::FlowList(Nothing {}),
    ];
    let mut lines = String::new();
    for request in requests {
        let written = http::write(&request).expect("words");
        assert_eq!(read_back(&written, request.route()).expect("read back"), request);
        let body = String::from_utf8(written.body.unwrap_or_default()).expect("text");
        lines += format!("{} {} {body}", written.method.word(), written.target).trim_end();
        lines += "\n";
    }
    expect![[r##"
        POST /api/v1/tasks {"tasks":[{"title":"one","needs":["T1","#2"]}]}
        GET /api/v1/tasks?status=ready&status=draft&text=a%26b%3Dc%20%C3%A9&limit=10
        PATCH /api/v1/tasks/T3 {"ready":true}
        GET /api/v1/status
        GET /api/v1/tasks/T7/output?levels=raw&attempt=1&iteration=2&stderr=true&at=100&backward=true&lines=50&search=error
        POST /api/v1/stop {"now":true}
        GET /api/v1/report?run=R2
        GET /api/v1/report
        GET /api/v1/flows
    "##]]
    .assert_eq(&lines);
}

#[test]
fn every_operation_has_a_place_of_its_own() {
    let mut places = BTreeSet::new();
    let mut names = BTreeSet::new();
    for route in Request::ROUTES {
        assert!(places.insert((route.method.word(), route.path)), "{} is there twice", route.path);
        assert!(names.insert(route.name), "{} is there twice", route.name);
        assert!(route.doc.trim().ends_with('.'), "{} says what it does", route.name);
        // What changes something is never a GET: links, pictures and previews ask without being asked.
        assert!(
            route.method != HttpMethod::Get
                || route.access == Access::Read
                || matches!(route.name, "agents" | "settings" | "sessions"),
            "{} is a GET that decides",
            route.name
        );
    }
}

#[test]
fn an_old_reader_takes_no_notice_of_new_fields() {
    let route = Request::Why(TaskAsked { task: WireTaskId(7) }).route();
    let fields = [("task".to_owned(), "T7".to_owned())];
    assert_eq!(
        http::read(route, &fields, "colour=blue", b""),
        Ok(Request::Why(TaskAsked { task: WireTaskId(7) }))
    );
    let route = Request::Rollback(TaskAsked { task: WireTaskId(7) }).route();
    assert_eq!(
        http::read(route, &fields, "", br#"{"colour":"blue"}"#),
        Ok(Request::Rollback(TaskAsked { task: WireTaskId(7) }))
    );
}

#[test]
fn a_field_is_not_one_thing_in_the_path_and_another_in_the_body() {
    let route = Request::Rollback(TaskAsked { task: WireTaskId(7) }).route();
    let fields = [("task".to_owned(), "T7".to_owned())];
    assert!(http::read(route, &fields, "", br#"{"task":"T7"}"#).is_ok());
    for body in [&br#"{"task":"T8"}"#[..], b"[]", b"7", b"\xff", b"{"] {
        let problem = http::read(route, &fields, "", body).expect_err("no sense in it");
        assert_eq!(problem.code, ProblemCode::BadInput, "{problem}");
    }
}

#[test]
fn words_are_read_back_and_unknown_ones_are_refused_with_the_known_ones() {
    for status in Status::ALL {
        assert_eq!(status.word().parse(), Ok(*status));
    }
    for wait in WaitFor::ALL {
        assert_eq!(wait.word().parse(), Ok(*wait));
    }
    let error: UnknownWord = "redy".parse::<Status>().expect_err("unknown");
    assert!(error.to_string().starts_with("`redy` is not a status; known: draft, ready"), "{error}");
}

#[test]
fn ids_are_read_in_every_way_people_write_them() {
    for text in ["T7", "t7", "7"] {
        assert_eq!(text.parse(), Ok(WireTaskId(7)));
    }
    for text in ["", "T", "T0", "T-1", "T+1", "TT1", "T99999999999", "T1 ", "#1"] {
        assert!(text.parse::<WireTaskId>().is_err(), "{text}");
    }
    assert_eq!("#2".parse(), Ok(TaskRef::Batch(2)));
    assert!("##2".parse::<TaskRef>().is_err() && "#0".parse::<TaskRef>().is_err());
}

#[test]
fn an_answer_to_another_question_is_a_problem() {
    struct Confused;
    impl Service for Confused {
        fn call(&self, _request: Request) -> Result<Response, Problem> {
            let sentence = "T7 is ready.".to_owned();
            Ok(Response::Why(Why {
                task: WireTaskId(7),
                status: Status::Ready,
                sentence,
                details: Vec::new(),
                progress: None,
                clashes: Vec::new(),
            }))
        }
    }
    assert!(Confused.why(TaskAsked { task: WireTaskId(7) }).is_ok());
    assert_eq!(Confused.runs(Nothing {}).expect_err("not an answer").code, ProblemCode::Internal);
}
