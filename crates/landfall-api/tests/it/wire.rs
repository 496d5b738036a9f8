//! The shapes of messages. A change here is a change of the wire: old clients meet new engines.

use expect_test::expect;
use landfall_api::{
    Ask, EditTask, Filter, NewTask, NewTasks, Nothing, Problem, ProblemCode, ReportOf, Request, Response,
    RunId, Service, Status, StopAsked, TaskAsked, TaskId, TaskRef, UnknownWord, WaitFor, Why,
};

#[test]
fn requests_have_a_name_and_what_is_asked() {
    let requests = [
        Request::Add(NewTasks {
            tasks: vec![NewTask {
                title: "one".to_owned(),
                needs: vec![TaskRef::Task(TaskId(1)), TaskRef::Batch(2)],
                ..NewTask::default()
            }],
        }),
        Request::List(Filter { status: vec![Status::Ready], limit: 10, ..Filter::default() }),
        Request::Edit(EditTask { ready: Some(true), ..EditTask::new(TaskId(3)) }),
        Request::Status(Nothing {}),
        Request::Stop(StopAsked { task: None, now: true }),
        Request::Report(ReportOf::Run(RunId(2))),
        Request::Report(ReportOf::LastRun),
        Request::FlowList(Nothing {}),
    ];
    let mut lines = String::new();
    for request in requests {
        let text = serde_json::to_string(&request).expect("json");
        assert_eq!(serde_json::from_str::<Request>(&text).expect("read back"), request);
        lines += &(text + "\n");
    }
    expect![[r##"
        {"op":"add","asked":{"tasks":[{"title":"one","needs":["T1","#2"]}]}}
        {"op":"list","asked":{"status":["ready"],"limit":10}}
        {"op":"edit","asked":{"task":"T3","ready":true}}
        {"op":"status","asked":{}}
        {"op":"stop","asked":{"now":true}}
        {"op":"report","asked":{"run":"R2"}}
        {"op":"report","asked":"last-run"}
        {"op":"flow-list","asked":{}}
    "##]]
    .assert_eq(&lines);
}

#[test]
fn an_old_reader_takes_no_notice_of_new_fields() {
    let text = r#"{"op":"why","asked":{"task":"T7","colour":"blue"}}"#;
    assert_eq!(
        serde_json::from_str::<Request>(text).expect("read"),
        Request::Why(TaskAsked { task: TaskId(7) })
    );
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
        assert_eq!(text.parse(), Ok(TaskId(7)));
    }
    for text in ["", "T", "T0", "T-1", "T+1", "TT1", "T99999999999", "T1 ", "#1"] {
        assert!(text.parse::<TaskId>().is_err(), "{text}");
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
                task: TaskId(7),
                status: Status::Ready,
                sentence,
                details: Vec::new(),
                clashes: Vec::new(),
            }))
        }
    }
    assert!(Confused.why(TaskAsked { task: TaskId(7) }).is_ok());
    assert_eq!(Confused.runs(Nothing {}).expect_err("not an answer").code, ProblemCode::Internal);
}
