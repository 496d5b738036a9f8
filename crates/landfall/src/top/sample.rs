//! A project to draw and to press keys on, for tests.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use landfall_api::{
    AccountLine, AccountStanding, Action, ActiveLine, AgentAtWork, Base, BatchLine, BudgetScope, EngineState,
    Inbox, InboxItem, InboxKind, LogEntry, LogPage, Mode, Outcome, Pilot, PilotPhase, QueuePlace,
    QueueReport, QuickIssue, Request, Response, Retry, ReviewAsked, ReviewList, ReviewSaid, RunState,
    SpendingLine, Status, StatusReport, TaskActivity, TaskLine, TaskPage, Usage, WireTaskId,
};

use super::polls::PollTopic;
use super::state::{self, RequestSubject, TuiEvent, TuiState};

/// When it is.
pub const NOW_MS: i64 = 1_785_283_200_000;

/// A state that is told things.
pub struct TuiSample {
    /// It.
    pub state: TuiState,
    /// What time it is.
    pub now_ms: i64,
}

pub fn task_id(number: u32) -> WireTaskId {
    format!("T{number}").parse().expect("an id")
}

impl TuiSample {
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { state: TuiState::new((columns, rows), NOW_MS), now_ms: NOW_MS }
    }

    /// With a run under way, and something in every panel.
    pub fn with_busy_run(columns: u16, rows: u16) -> Self {
        let mut sample = Self::new(columns, rows);
        sample.advance_clock(0);
        sample.poll(PollTopic::Status, Response::Status(Box::new(status_report())));
        sample.poll(PollTopic::Queue, Response::Queue(Box::new(queue_report())));
        sample.poll(PollTopic::Reviews, Response::Reviews(review_list()));
        sample.poll(PollTopic::Inbox, Response::Inbox(inbox_of(inbox_items())));
        sample.poll(
            PollTopic::Journal,
            Response::Log(LogPage { entries: journal_entries(), next: 12, more: false }),
        );
        let tasks = (1..=40).map(|number| {
            let status = [Status::Done, Status::Ready, Status::Active, Status::Failed][number as usize % 4];
            task_line(number, status, &format!("Task number {number}"))
        });
        sample.poll(PollTopic::Backlog, Response::List(TaskPage { tasks: tasks.collect(), next: None }));
        sample
    }

    pub fn send_event(&mut self, news: TuiEvent) -> Vec<state::TuiAction> {
        self.state.handle_event(news, self.now_ms)
    }

    pub fn advance_clock(&mut self, ms: i64) -> Vec<state::TuiAction> {
        self.now_ms += ms;
        self.send_event(TuiEvent::Tick)
    }

    pub fn poll(&mut self, poll: PollTopic, response: Response) -> Vec<state::TuiAction> {
        self.send_answer(RequestSubject::Poll(poll), Ok(response))
    }

    pub fn send_answer(
        &mut self,
        about: RequestSubject,
        result: Result<Response, landfall_api::Problem>,
    ) -> Vec<state::TuiAction> {
        self.send_event(TuiEvent::Answered { about, result: Box::new(result), took_ms: 1 })
    }

    /// Presses keys as people write them: letters, `<Enter>`, `<Esc>`, `<Tab>`, `<Down>`, `<^c>`. What a person orders by it.
    pub fn press_keys(&mut self, keys: &str) -> Vec<Request> {
        let mut orders = Vec::new();
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (code, with, length) = match rest.find('>').filter(|_| first == '<') {
                Some(end) => {
                    let (code, with) = match &rest[1..end] {
                        "Enter" => (KeyCode::Enter, KeyModifiers::NONE),
                        "Esc" => (KeyCode::Esc, KeyModifiers::NONE),
                        "Tab" => (KeyCode::Tab, KeyModifiers::NONE),
                        "Down" => (KeyCode::Down, KeyModifiers::NONE),
                        "Up" => (KeyCode::Up, KeyModifiers::NONE),
                        "^c" => (KeyCode::Char('c'), KeyModifiers::CONTROL),
                        other => panic!("no key {other}"),
                    };
                    (code, with, end + 1)
                }
                None => (KeyCode::Char(first), KeyModifiers::NONE, first.len_utf8()),
            };
            rest = &rest[length..];
            for action in self.send_event(TuiEvent::Key(KeyEvent::new(code, with))) {
                if let state::TuiAction::Call(RequestSubject::Order, request) = action {
                    orders.push(request);
                }
            }
        }
        orders
    }
}

pub fn task_line(number: u32, status: Status, title: &str) -> TaskLine {
    TaskLine {
        id: task_id(number),
        title: title.to_owned(),
        status,
        wait: None,
        phase: None,
        size: None,
        tags: vec!["core".to_owned()],
        priority: 5,
        needs: Vec::new(),
        parent: None,
        iterations: 1,
        landed: None,
    }
}

pub fn inbox_item(kind: InboxKind, number: u32, title: &str, text: &str) -> InboxItem {
    InboxItem {
        key: format!("{}-T{number}", kind.word()),
        kind,
        task: Some(task_id(number)),
        title: title.to_owned(),
        text: text.to_owned(),
        step: None,
        since_ms: NOW_MS - 90_000 + i64::from(number),
        until_ms: None,
        overdue: String::new(),
        choices: Vec::new(),
        concerns: Vec::new(),
        findings: Vec::new(),
        reply: None,
        files: Vec::new(),
        commit: None,
        actions: Vec::new(),
    }
}

pub fn inbox_items() -> Vec<InboxItem> {
    let mut review = inbox_item(InboxKind::Review, 6, "Change the gate", "changes the checks themselves");
    review.findings = vec!["a name is unclear".to_owned()];
    let mut blocked = inbox_item(InboxKind::Blocked, 8, "Mend the build", "blocked: there is no compiler");
    let retry = Retry { tasks: vec![task_id(8)], fresh: true, note: None };
    let reject = ReviewAsked { tasks: vec![task_id(8)], said: ReviewSaid::Skip };
    blocked.actions = vec![
        Action::new("Try again from the base", &Request::Retry(retry)).with_fill(
            "/note",
            "What to know",
            false,
        ),
        Action::new("Skip it", &Request::Review(reject)).with_confirmation(),
    ];
    vec![
        inbox_item(InboxKind::Owed, 2, "Write a guide", "landed as 26e30cc76d; somebody is to look at it"),
        blocked,
        review,
        inbox_item(InboxKind::Question, 7, "Format the sources", "Tabs or spaces?"),
    ]
}

pub fn inbox_of(items: Vec<InboxItem>) -> Inbox {
    Inbox { seq: 12, counts: BTreeMap::new(), items, more: 0 }
}

pub fn status_report() -> StatusReport {
    let active = |number: u32, title: &str, doing: TaskActivity, words: &str| ActiveLine {
        check: None,
        task: task_id(number),
        title: title.to_owned(),
        step: "work".to_owned(),
        doing,
        iteration: 2,
        iterations_max: 50,
        elapsed_ms: 754_000,
        tokens: 123_456,
        cost_usd: Some(1.25),
        progress: None,
        agent: Some(AgentAtWork {
            profile: "default".to_owned(),
            model: Some("large".to_owned()),
            sandbox: "write".to_owned(),
            class: Some("in a tool".to_owned()),
            evidence: "cargo test runs".to_owned(),
            context_percent: Some(41),
            progress: Some(60),
            words: words.to_owned(),
        }),
    };
    StatusReport {
        checks: Vec::new(),
        counts: BTreeMap::from([(Status::Ready, 9), (Status::Active, 2), (Status::Done, 14)]),
        run: Some(RunState {
            run: "R4".parse().expect("an id"),
            since_ms: NOW_MS - 7_860_000,
            slots: 4,
            agents: 2,
            mode: "running".to_owned(),
        }),
        engine: Some(EngineState { pid: 4711, since_ms: NOW_MS - 7_860_000, version: "0.1.0".to_owned() }),
        active: vec![
            active(3, "Speed the parser up", TaskActivity::Working, "reading the tests"),
            active(
                5,
                "日本語 \u{1b}[2J title",
                TaskActivity::Verifying,
                "\u{1b}]0;owned\u{7} all done\nreally",
            ),
        ],
        pilot: Some(Box::new(Pilot {
            run: Some("R4".parse().expect("an id")),
            mode: Mode::Autopilot,
            phase: PilotPhase::Running,
            pause: None,
            picked: None,
            next: None,
            ready: 9,
            slots: 4,
            text: "R4 is on autopilot: 9 tasks ready, 4 slots.".to_owned(),
        })),
        queue: None,
        sprint: Some("S2 SPRINT | 14/23 tasks | 2 failed | Until 08:00 (6h 23m left)".to_owned()),
        reviews_owed: 1,
        issues_left: 0,
        waiting: Vec::new(),
        clashes: Vec::new(),
        accounts: vec![AccountLine {
            account: "claude".to_owned(),
            state: AccountStanding::UsedUp,
            until_ms: Some(NOW_MS + 4_320_000),
            until_is_a_guess: false,
            used_percent: None,
            resets_ms: None,
            tasks: Vec::new(),
        }],
        spending: vec![SpendingLine {
            scope: BudgetScope::Day,
            usage: Usage { tokens_in: 800_000, tokens_out: 12_000, cost_usd: Some(12.0), ..Usage::default() },
            time_ms: 2_470_000,
        }],
        budgets: Vec::new(),
        base: Base {
            branch: "main".to_owned(),
            commit: "3f2a9c0d1e77".to_owned(),
            published: true,
            held: None,
            unpublished: None,
        },
        disk: None,
        warnings: Vec::new(),
    }
}

pub fn queue_report() -> QueueReport {
    let place = |place: u64, number: u32, title: &str| QueuePlace {
        place,
        task: task_id(number),
        title: title.to_owned(),
        since_ms: NOW_MS - 60_000,
        batch: Some("B2".to_owned()),
        text: "in B2: being verified".to_owned(),
    };
    QueueReport {
        line: vec![place(1, 11, "Greet by name"), place(2, 12, "Handle empty input")],
        batches: vec![BatchLine {
            batch: "B2".to_owned(),
            on: None,
            members: vec![task_id(11), task_id(12)],
            titles: Vec::new(),
            doing: "verifying".to_owned(),
            looks: vec![landfall_api::BatchLook { count: 2, outcome: Outcome::Fail }],
            drawing: "2 ✗ → 1 …".to_owned(),
            culprit: None,
            commit: None,
            ended_ms: None,
        }],
        hold: None,
        past: Vec::new(),
        flakes: Vec::new(),
    }
}

pub fn review_list() -> ReviewList {
    ReviewList {
        before: Vec::new(),
        after: Vec::new(),
        issues: vec![
            QuickIssue { name: "tests".to_owned(), text: "There are no tests for it.".to_owned() },
            QuickIssue { name: "docs".to_owned(), text: "The documentation is missing.".to_owned() },
        ],
    }
}

pub fn log_entry(seq: u64, number: u32, text: &str) -> LogEntry {
    LogEntry {
        seq,
        at_ms: NOW_MS - 100_000 + i64::try_from(seq).expect("small") * 1_000,
        task: Some(task_id(number)),
        kind: "said".to_owned(),
        text: text.to_owned(),
        data: serde_json::Value::Null,
    }
}

pub fn journal_entries() -> Vec<LogEntry> {
    (1..=12).map(|seq| log_entry(seq, 3, &format!("fact number {seq}"))).collect()
}
