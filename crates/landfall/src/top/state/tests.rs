//! Keys and answers, and what follows: without a terminal and without an engine.

use landfall_api::{
    Added, Answer, AutoAsked, Block, Changed, ChangedTask, Hold, InboxKind, Level, LogPage, Message, Mode,
    Nothing, Output, OutputKind, OutputLine, PauseAsked, Problem, ProblemCode, Redo, Release, Request,
    Response, Retry, ReviewAsked, ReviewSaid, RunAsked, Said, Status, StopAsked, TaskPage,
};

use super::{
    ConnectionState, DashboardPanel, JOURNAL_MAX, Popup, RequestSubject, TaskView, TuiAction, TuiEvent,
    TuiOverlay, TuiState,
};
use crate::top::polls::PollTopic;
use crate::top::sample::{
    NOW_MS, TuiSample, inbox_item, inbox_items, inbox_of, log_entry, status_report, task_id, task_line,
};

fn action_names(actions: &[TuiAction]) -> Vec<&'static str> {
    actions
        .iter()
        .map(|action| match action {
            TuiAction::Call(_, request) => request.name(),
            TuiAction::Suspend => "suspend",
            TuiAction::Quit => "quit",
        })
        .collect()
}

fn toast_texts(state: &TuiState) -> String {
    let texts: Vec<&str> = state.toasts.iter().map(|toast| toast.text.as_str()).collect();
    texts.join(" | ")
}

fn changed_task(text: &str) -> Changed {
    Changed { tasks: vec![ChangedTask { id: task_id(7), status: Status::Ready, text: text.to_owned() }] }
}

#[test]
fn everything_is_asked_for_once_and_again_when_it_is_due() {
    let mut sample = TuiSample::new(80, 24);
    let first = sample.advance_clock(0);
    assert_eq!(action_names(&first), ["log", "status", "inbox", "reviews", "queue", "list"]);
    assert!(sample.advance_clock(10_000).is_empty(), "nothing was answered yet");
    sample.poll(
        PollTopic::Journal,
        Response::Log(LogPage { entries: vec![log_entry(1, 3, "a fact")], next: 1, more: false }),
    );
    let TuiAction::Call(_, Request::Log(asked)) = &sample.advance_clock(2_000)[0] else {
        panic!("the journal again")
    };
    assert_eq!((asked.after, asked.last), (Some(1), false));
}

#[test]
fn a_fact_in_the_journal_makes_the_rest_be_asked_for_soon() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.advance_clock(410);
    let page = LogPage { entries: vec![log_entry(13, 3, "landed")], next: 13, more: false };
    let asked = sample.poll(PollTopic::Journal, Response::Log(page));
    assert_eq!(action_names(&asked), ["status", "inbox", "queue"]);
}

#[test]
fn a_question_is_answered_from_the_keyboard() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    assert!(sample.press_keys("<Tab>a").is_empty());
    assert_eq!(sample.press_keys("<Enter>"), [], "an empty answer is not sent");
    sample.send_event(TuiEvent::Paste("spaces, ".to_owned()));
    let answer = Answer { task: task_id(7), text: "spaces, plëase".to_owned() };
    assert_eq!(sample.press_keys("plëase<Enter>"), [Request::Answer(answer)]);
    assert_eq!(sample.press_keys("<Enter>"), [], "it is not sent twice");
    sample.send_answer(RequestSubject::Order, Err(Problem::new(ProblemCode::NotNow, "too late")));
    let Some(Popup::Text(popup)) = &sample.state.popup else { panic!("it stays open") };
    assert_eq!((popup.line.text(), popup.problem.as_deref()), ("spaces, plëase", Some("too late")));
    sample.press_keys("<Enter>");
    sample.send_answer(
        RequestSubject::Order,
        Ok(Response::Answer(changed_task("T7 has its answer and goes on."))),
    );
    assert!(sample.state.popup.is_none());
    assert_eq!(toast_texts(&sample.state), "T7 has its answer and goes on.");
}

#[test]
fn a_review_is_approved_sent_back_or_put_off() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let review = |said| Request::Review(ReviewAsked { tasks: vec![task_id(6)], said });
    sample.press_keys("<Tab>j");
    assert_eq!(sample.state.selected_task(), Some(task_id(6)));
    assert_eq!(sample.press_keys("agood<Enter>"), [review(ReviewSaid::Approve { note: "good".to_owned() })]);
    sample.press_keys("<Esc>");
    let sent_back = sample.press_keys("cnames<Down><Down> <Up><Enter>");
    let changes = ReviewSaid::Changes {
        issues: vec!["docs".to_owned()],
        note: "names".to_owned(),
        redo: Redo::Keep,
        hint: None,
    };
    assert_eq!(sent_back, [review(changes)]);
    sample.press_keys("<Esc>");
    assert_eq!(sample.press_keys("d"), [review(ReviewSaid::Defer)]);
    assert_eq!(sample.press_keys("k"), []);
    assert_eq!(sample.press_keys("d"), [], "a question cannot be put off");
    assert!(toast_texts(&sample.state).contains("only a look"), "{}", toast_texts(&sample.state));
}

#[test]
fn r_shows_one_look_after_the_other() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("R");
    let open = sample.state.open.as_ref().expect("a task is open");
    assert_eq!((open.task, open.page), (task_id(6), TaskView::Diff));
    sample.press_keys("R");
    assert_eq!(sample.state.open.as_ref().map(|open| open.task), Some(task_id(2)), "the one that landed");
    sample.press_keys("R");
    assert_eq!(sample.state.open.as_ref().map(|open| open.task), Some(task_id(6)), "and from the start");
    sample.press_keys("<Esc>");
    assert!(sample.state.screens.is_empty() && sample.state.open.is_none());
}

#[test]
fn nothing_dangerous_happens_without_a_word_more() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let stop = |task, now| Request::Stop(StopAsked { task, now });
    assert_eq!(sample.press_keys("x"), []);
    assert_eq!(sample.press_keys("z<Enter>jx"), [], "no other key confirms");
    assert_eq!(sample.press_keys("y"), [stop(Some(task_id(3)), false)]);
    assert_eq!(sample.press_keys("x<Esc>y"), []);
    assert_eq!(sample.press_keys("sn"), [stop(None, true)]);
    assert_eq!(sample.press_keys("sy"), [stop(None, false)]);
    let auto = |mode| Request::Auto(AutoAsked { mode });
    assert_eq!(sample.press_keys(" "), [auto(Mode::SemiAuto)], "to ask more often needs no question");
    let mut semi = status_report();
    semi.pilot.as_mut().expect("a pilot").mode = Mode::SemiAuto;
    sample.poll(PollTopic::Status, Response::Status(Box::new(semi)));
    assert_eq!(sample.press_keys(" "), []);
    assert_eq!(sample.press_keys("y"), [auto(Mode::Autopilot)]);
}

#[test]
fn a_run_is_paused_and_resumed_with_one_key_and_nothing_is_asked_of_none() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    assert_eq!(sample.press_keys("p"), [Request::Pause(PauseAsked::default())]);
    let mut paused = status_report();
    paused.pilot.as_mut().expect("a pilot").pause = Some(landfall_api::PauseLine {
        why: landfall_api::PauseReason::Person,
        reason: "lunch".to_owned(),
        since_ms: NOW_MS,
    });
    sample.poll(PollTopic::Status, Response::Status(Box::new(paused)));
    assert_eq!(sample.press_keys("p"), [Request::Resume(Nothing {})]);
    let mut rest = status_report();
    (rest.run, rest.pilot, rest.engine) = (None, None, None);
    sample.poll(PollTopic::Status, Response::Status(Box::new(rest)));
    assert!(toast_texts(&sample.state).contains("no engine drives the project any more"));
    assert_eq!(sample.press_keys("p s"), []);
    let asked = RunAsked { attended: true, ..RunAsked::default() };
    assert_eq!(sample.press_keys("y"), [Request::RunStart(asked)], "a run is started after a word more");
}

#[test]
fn a_task_that_gave_up_is_tried_again_with_a_note() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("<Tab>G");
    sample.press_keys("k");
    assert_eq!(sample.state.selected_task(), Some(task_id(8)), "the blocked one");
    let fresh = |note: &str| Retry { tasks: vec![task_id(8)], fresh: true, note: Some(note.to_owned()) };
    assert_eq!(sample.press_keys("a1from the start<Enter>"), [Request::Retry(fresh("from the start"))]);
    sample.press_keys("<Esc>");
    assert_eq!(sample.press_keys("a2"), [], "what is dangerous is asked once more");
    let skip = ReviewAsked { tasks: vec![task_id(8)], said: ReviewSaid::Skip };
    assert_eq!(sample.press_keys("y"), [Request::Review(skip)]);
    let retry = Retry { tasks: vec![task_id(8)], fresh: false, note: Some("use make".to_owned()) };
    assert_eq!(sample.press_keys("ruse make<Enter>"), [Request::Retry(retry)]);
}

#[test]
fn one_task_is_told_held_and_blocked() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let message = |now| Request::Message(Message { task: task_id(3), text: "use make".to_owned(), now });
    assert_eq!(sample.press_keys("muse make<Enter>"), [message(false)]);
    sample.press_keys("<Esc>");
    assert_eq!(sample.press_keys("muse make<Down> <Enter>"), [message(true)]);
    sample.press_keys("<Esc>");
    assert_eq!(sample.press_keys("b<Enter>"), [], "a reason must be given");
    let block = Block { tasks: vec![task_id(3)], reason: "no compiler".to_owned() };
    assert_eq!(sample.press_keys("no compiler<Enter>"), [Request::Block(block)]);
    sample.press_keys("<Esc>");
    assert_eq!(
        sample.press_keys("h<Enter>"),
        [Request::Hold(Hold { tasks: vec![task_id(3)], reason: None })]
    );
    sample.press_keys("<Esc>");
    let held = vec![inbox_item(InboxKind::Paused, 3, "Speed the parser up", "it is paused by a person")];
    sample.poll(PollTopic::Inbox, Response::Inbox(inbox_of(held)));
    assert_eq!(sample.press_keys("h"), [Request::Release(Release { tasks: vec![task_id(3)] })]);
}

#[test]
fn what_is_chosen_stays_chosen_when_the_list_changes_around_it() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("<Tab>jj");
    assert_eq!(sample.state.selected_task(), Some(task_id(8)));
    let mut more = inbox_items();
    more.push(inbox_item(InboxKind::Question, 4, "Another", "Why?"));
    sample.poll(PollTopic::Inbox, Response::Inbox(inbox_of(more)));
    assert_eq!(sample.state.selected_task(), Some(task_id(8)), "though another question came before it");
    assert!(
        toast_texts(&sample.state).contains("T4 question: Why?"),
        "and is told of: {}",
        toast_texts(&sample.state)
    );
    let rest = inbox_items().into_iter().filter(|item| item.kind == InboxKind::Owed).collect();
    sample.poll(PollTopic::Inbox, Response::Inbox(inbox_of(rest)));
    assert_eq!(sample.state.selected_task(), Some(task_id(2)), "its place, when it is gone");
}

#[test]
fn an_answer_can_be_chosen_from_those_that_suggest_themselves() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let mut asks = inbox_item(InboxKind::Question, 7, "Format", "Which?\n- tabs\n- spaces");
    asks.choices = vec!["tabs".to_owned(), "spaces".to_owned()];
    sample.poll(PollTopic::Inbox, Response::Inbox(inbox_of(vec![asks])));
    let answer = Answer { task: task_id(7), text: "spaces".to_owned() };
    assert_eq!(sample.press_keys("<Tab>a<Down><Down> <Enter>"), [Request::Answer(answer)]);
}

#[test]
fn the_output_of_an_agent_is_read_on_and_the_next_one_taken_up() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let page = |key: &str, texts: &[&str], next: u64, grows: bool| {
        let said = |text: &&str| Said {
            at: 0,
            level: Level::Text,
            at_ms: None,
            text: (*text).to_owned(),
            cut: false,
            tool: None,
        };
        let output = OutputLine {
            key: key.to_owned(),
            kind: OutputKind::Agent,
            attempt: Some(1),
            iteration: Some(1),
            name: None,
            profile: None,
            bytes: next,
            stderr_bytes: 0,
            began_ms: None,
            ended_ms: None,
            grows,
        };
        let lines = texts.iter().map(said).collect();
        let page = Output { output, lines, from: 0, next, first: true, last: true, total_bytes: next };
        Ok(Response::Output(Box::new(page)))
    };
    let asked = |actions: Vec<TuiAction>| {
        actions.into_iter().find_map(|action| match action {
            TuiAction::Call(RequestSubject::Page(_), Request::Output(asked)) => {
                Some((asked.of.key, asked.at, asked.backward))
            }
            _ => None,
        })
    };
    let lines = |sample: &TuiSample| {
        sample.state.open.as_ref().and_then(|open| open.output.as_ref()).map(|it| it.lines.len())
    };
    let opened = sample.send_event(TuiEvent::Key(crossterm::event::KeyCode::Char('o').into()));
    assert_eq!(asked(opened), Some((None, None, true)));
    sample.send_answer(RequestSubject::Page(task_id(3)), page("i1", &["a", "b"], 10, true));
    assert_eq!(asked(sample.advance_clock(2_000)), Some((Some("i1".to_owned()), Some(10), false)));
    sample.send_answer(RequestSubject::Page(task_id(3)), page("i1", &["c"], 12, false));
    assert_eq!(lines(&sample), Some(3));
    assert_eq!(asked(sample.advance_clock(2_000)), Some((None, None, true)), "it is over: is there another?");
    sample.send_answer(RequestSubject::Page(task_id(3)), page("i2", &["d"], 2, true));
    assert_eq!(lines(&sample), Some(1));
}

#[test]
fn the_backlog_is_filtered_while_one_types_and_esc_brings_it_back() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("/failed number");
    assert_eq!(sample.state.focus, DashboardPanel::Backlog);
    assert_eq!(sample.state.backlog_shown.len(), 10);
    sample.press_keys(" 3");
    assert_eq!(sample.state.backlog_tasks(), [39, 35, 31, 23, 3].map(task_id));
    sample.press_keys("<Esc>");
    assert_eq!(sample.state.backlog_shown.len(), 40);
    sample.press_keys("/T12<Enter>");
    assert_eq!(sample.state.selected_task(), Some(task_id(12)));
    sample.press_keys("<Esc>");
    assert_eq!(sample.state.backlog_shown.len(), 40);
}

#[test]
fn what_is_open_comes_before_what_is_over() {
    let sample = TuiSample::with_busy_run(80, 24);
    let tasks = sample.state.backlog_tasks();
    assert_eq!((tasks[0], tasks[19], tasks[20]), (task_id(1), task_id(38), task_id(40)));
}

#[test]
fn ten_thousand_tasks_come_in_pages_and_keys_stay_quick() {
    let mut sample = TuiSample::new(200, 60);
    sample.advance_clock(0);
    let page = |from: u32| {
        (from..from + 1_000).map(|number| task_line(number, Status::Ready, "One of many")).collect()
    };
    for number in 0..10 {
        let next = (number < 9).then(|| task_id((number + 1) * 1_000));
        let page = TaskPage { tasks: page(number * 1_000 + 1), next };
        let asked = sample.poll(PollTopic::Backlog, Response::List(page));
        let Some(next) = next else { continue };
        let again = asked.iter().any(
            |action| matches!(action, TuiAction::Call(_, Request::List(filter)) if filter.after == Some(next)),
        );
        assert!(again, "the page after {next}");
    }
    assert_eq!(sample.state.backlog.len(), 10_000);
    let began = std::time::Instant::now();
    sample.press_keys("<Tab><Tab><Tab><Tab>");
    for _ in 0..100 {
        sample.press_keys("j");
    }
    sample.press_keys("/9999");
    assert_eq!(sample.state.backlog_tasks(), [task_id(9_999)]);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[test]
fn the_log_stands_still_while_it_is_read_and_follows_again() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("<Tab><Tab><Tab>kk");
    assert_eq!(sample.state.entry, Some(10));
    let page = LogPage { entries: vec![log_entry(13, 5, "more")], next: 13, more: false };
    sample.poll(PollTopic::Journal, Response::Log(page));
    assert_eq!(sample.state.entry, Some(10));
    sample.press_keys("G");
    assert_eq!(sample.state.entry, None);
    sample.press_keys("/more<Enter>");
    assert_eq!(sample.state.shown_entries().len(), 1);
    let flood: Vec<_> = (14..14 + 2 * JOURNAL_MAX as u64).map(|seq| log_entry(seq, 5, "flood")).collect();
    sample.poll(PollTopic::Journal, Response::Log(LogPage { entries: flood, next: 9_999, more: false }));
    assert_eq!(sample.state.journal.len(), JOURNAL_MAX);
}

#[test]
fn a_project_that_cannot_be_reached_is_said_so_tried_again_and_welcomed_back() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.send_answer(
        RequestSubject::Poll(PollTopic::Status),
        Err(Problem::new(ProblemCode::NotARepository, "it is gone")),
    );
    assert!(matches!(sample.state.link, ConnectionState::Lost { since_ms, .. } if since_ms == NOW_MS));
    assert!(sample.state.status_report().is_some(), "what was known stays");
    let again = sample.advance_clock(5_000);
    assert!(action_names(&again).contains(&"status"), "{again:?}");
    sample.poll(PollTopic::Status, Response::Status(Box::new(status_report())));
    assert_eq!(sample.state.link, ConnectionState::Up);
    assert!(toast_texts(&sample.state).contains("can be reached again"));
}

#[test]
fn toasts_stay_as_long_as_they_are_grave() {
    use super::MessageTone;
    let mut sample = TuiSample::new(80, 24);
    for tone in [MessageTone::Info, MessageTone::Warn, MessageTone::Bad] {
        sample.state.add_toast(tone, "x");
    }
    for (ms, left) in [(2_999, 3), (1, 2), (2_000, 1), (2_999, 1), (1, 0)] {
        sample.advance_clock(ms);
        assert_eq!(sample.state.toasts.len(), left);
    }
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let mut rest = status_report();
    (rest.run, rest.pilot) = (None, None);
    (rest.accounts, rest.sprint) = (Vec::new(), None);
    sample.poll(PollTopic::Status, Response::Status(Box::new(rest.clone())));
    sample.state.toasts.clear();
    sample.state.take_stale();
    sample.advance_clock(3_000);
    sample.poll(PollTopic::Status, Response::Status(Box::new(rest)));
    sample.poll(PollTopic::Journal, Response::Log(LogPage { entries: Vec::new(), next: 12, more: false }));
    sample.advance_clock(1_000);
    assert!(!sample.state.take_stale());
    sample.press_keys("?");
    assert!(sample.state.take_stale());
}

#[test]
fn pages_of_a_task_are_asked_for_when_they_are_opened() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    let key = |code| TuiEvent::Key(crossterm::event::KeyEvent::from(code));
    let opened = sample.send_event(key(crossterm::event::KeyCode::Char('1')));
    assert_eq!(action_names(&opened), ["show", "why"]);
    assert_eq!(sample.state.open.as_ref().map(|open| open.task), Some(task_id(3)));
    let late = Response::Diff(landfall_api::Diff {
        task: task_id(9),
        from: String::new(),
        to: String::new(),
        diff: landfall_api::Blob::new(b"late".to_vec()),
    });
    sample.send_answer(RequestSubject::Page(task_id(9)), Ok(late));
    assert_eq!(
        sample.state.open.as_ref().and_then(|open| open.diff.as_ref()),
        None,
        "late news of another task"
    );
    sample.press_keys("<Tab><Tab><Tab>");
    let diff = Response::Diff(landfall_api::Diff {
        task: task_id(3),
        from: String::new(),
        to: String::new(),
        diff: landfall_api::Blob::new(b"--- a\n+++ b\n@@\n-old\n+new\n".to_vec()),
    });
    sample.send_answer(RequestSubject::Page(task_id(3)), Ok(diff));
    assert_eq!(sample.state.open.as_ref().and_then(|open| open.diff.as_ref()).map(Vec::len), Some(5));
    sample.press_keys("8");
    assert!(toast_texts(&sample.state).contains("slot 8"));
}

#[test]
fn leaving_is_one_key_wherever_one_is() {
    for keys in ["", "?", "1", "<Tab>a"] {
        let mut sample = TuiSample::with_busy_run(80, 24);
        sample.press_keys(keys);
        let key = crossterm::event::KeyEvent::new(
            crossterm::event::KeyCode::Char('c'),
            crossterm::event::KeyModifiers::CONTROL,
        );
        assert!(sample.send_event(TuiEvent::Key(key)).contains(&TuiAction::Quit), "{keys}");
    }
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("?<Esc>");
    assert!(sample.state.screens.is_empty());
    sample.press_keys("M?");
    assert_eq!(sample.state.screens, [TuiOverlay::Queue, TuiOverlay::Help]);
}

#[test]
fn an_answer_of_another_kind_changes_nothing() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.poll(PollTopic::Open, Response::Add(Added { tasks: Vec::new() }));
    assert_eq!(sample.state.link, ConnectionState::Up);
}
