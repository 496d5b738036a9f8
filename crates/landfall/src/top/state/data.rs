//! What the service said, and what to ask it next.

use landfall_api::{
    DiffAsked, Filter, Inbox, InboxAsked, LogAsked, Nothing, Output, OutputAsked, OutputOf, Problem,
    ProblemCode, Request, Response, SprintOf, StatusReport, TaskAsked,
};

use super::{
    ConnectionState, JOURNAL_MAX, MessageTone, OpenOutput, OpenTask, Popup, RequestSubject, Scroll, TaskView,
    TuiAction, TuiState,
};
use crate::top::inbox::{first_line, is_urgent};
use crate::top::polls::PollTopic;
use crate::top::views;

const JOURNAL_PAGE: u32 = 500;
const TASKS_PAGE: u32 = 1_000; // the most that is sent at once
const INBOX_MAX: u32 = 200; // more than anybody decides in one sitting
const OUTPUT_LINES: u32 = 1_000;
const OUTPUT_LINES_MAX: usize = 10_000; // the file has them all
const DIFF_LINES_MAX: usize = 50_000; // more than anybody scrolls through; `landfall diff` has it all

/// How often things are asked for when nothing seems to happen.
const LIVELY_MS: i64 = 400;
const CALM_MS: i64 = 1_500;
const LATER_MS: i64 = 15_000; // what the journal tells of; this is for what it does not

impl TuiState {
    /// What is due.
    pub(super) fn request_due_polls(&mut self) -> Vec<TuiAction> {
        let mut actions = Vec::new();
        for poll in PollTopic::ALL {
            if self.polls.take(poll, self.now_ms) {
                match self.poll_request(poll) {
                    Some(request) => actions.push(TuiAction::Call(RequestSubject::Poll(poll), request)),
                    None => self.polls.note_answer(poll, 0, LATER_MS, self.now_ms),
                }
            }
        }
        if (self.page_old || self.page_due_ms <= self.now_ms) && !self.page_asked {
            actions.extend(self.page_request());
        }
        actions
    }

    fn poll_request(&self, poll: PollTopic) -> Option<Request> {
        Some(match poll {
            PollTopic::Status => Request::Status(Nothing {}),
            PollTopic::Journal => Request::Log(LogAsked {
                after: self.journal_next,
                task: None,
                limit: JOURNAL_PAGE,
                last: self.journal_next.is_none(),
            }),
            PollTopic::Queue => Request::Queue(Nothing {}),
            PollTopic::Reviews => Request::Reviews(Nothing {}),
            PollTopic::Inbox => Request::Inbox(InboxAsked { limit: INBOX_MAX, ..InboxAsked::default() }),
            PollTopic::Backlog => Request::List(Filter {
                after: self.incoming.last().map(|line| line.id),
                limit: TASKS_PAGE,
                ..Filter::default()
            }),
            PollTopic::Sprint => {
                self.status_report().and_then(|status| status.sprint.as_ref())?;
                Request::Sprint(SprintOf::default())
            }
            PollTopic::Open => Request::Show(TaskAsked { task: self.open.as_ref()?.task }),
        })
    }

    /// What the pages of the open task need besides its detail.
    fn page_request(&mut self) -> Option<TuiAction> {
        self.page_old = false;
        self.page_due_ms = i64::MAX;
        let OpenTask { task, page, log, output, .. } = self.open.as_ref()?;
        self.page_asked = true;
        let asked = TaskAsked { task: *task };
        let request = match page {
            TaskView::About | TaskView::Attempts | TaskView::Checks => Request::Why(asked),
            TaskView::Diff => Request::Diff(DiffAsked { task: *task, from: None }),
            TaskView::Log => Request::Log(LogAsked {
                after: log.last().map(|entry| entry.seq),
                task: Some(*task),
                limit: TASKS_PAGE,
                last: log.is_empty(),
            }),
            TaskView::Output => {
                // Only one that still grows is read on; otherwise a newer one may have begun.
                let on = output.as_ref().filter(|output| output.grows);
                Request::Output(OutputAsked {
                    of: OutputOf { key: on.map(|output| output.key.clone()), ..OutputOf::latest_of(*task) },
                    at: on.map(|output| output.next),
                    backward: on.is_none(),
                    lines: OUTPUT_LINES,
                    search: String::new(),
                    levels: Vec::new(),
                    raw: false,
                })
            }
        };
        Some(TuiAction::Call(RequestSubject::Page(*task), request))
    }

    pub(super) fn handle_answer(
        &mut self,
        about: RequestSubject,
        result: Result<Response, Problem>,
        took_ms: u64,
    ) {
        match (about, result) {
            (RequestSubject::Poll(poll), result) => self.handle_poll_answer(poll, result, took_ms),
            (RequestSubject::Page(task), result) => self.handle_page_answer(task, result),
            (RequestSubject::Screen, Ok(Response::Discoveries(list))) => self.discoveries = Some(list),
            (RequestSubject::Screen, Ok(Response::Doctor(health))) => self.health = Some(health),
            (RequestSubject::Screen, Ok(_)) => {}
            (RequestSubject::Screen, Err(problem)) => {
                self.add_toast(MessageTone::Bad, problem_sentence(&problem))
            }
            (RequestSubject::Order, Ok(response)) => self.handle_order_done(&response),
            (RequestSubject::Order, Err(problem)) => self.handle_refusal(&problem),
        }
        self.stale |= !matches!(about, RequestSubject::Poll(_));
    }

    fn handle_poll_answer(&mut self, poll: PollTopic, result: Result<Response, Problem>, took_ms: u64) {
        let lively = self.status_report().is_some_and(|status| status.run.is_some());
        let again_ms = match poll {
            PollTopic::Journal if lively => LIVELY_MS,
            PollTopic::Status if lively => 2 * LIVELY_MS,
            PollTopic::Journal | PollTopic::Status => CALM_MS,
            PollTopic::Open if lively => CALM_MS,
            PollTopic::Queue
            | PollTopic::Reviews
            | PollTopic::Inbox
            | PollTopic::Backlog
            | PollTopic::Sprint
            | PollTopic::Open => LATER_MS,
        };
        self.polls.note_answer(poll, took_ms, again_ms, self.now_ms);
        let response = match result {
            Ok(response) => response,
            Err(problem) => return self.handle_poll_failure(poll, problem),
        };
        if self.link != ConnectionState::Up {
            if matches!(self.link, ConnectionState::Lost { .. }) {
                self.add_toast(MessageTone::Info, "the project can be reached again");
                PollTopic::ALL.iter().for_each(|poll| self.polls.request_now(*poll));
            }
            self.link = ConnectionState::Up;
            self.stale = true;
        }
        match response {
            Response::Status(status) => self.store_status(status),
            Response::Log(page) => self.store_journal_page(page),
            Response::Queue(queue) => replace(&mut self.queue, queue, &mut self.stale),
            Response::Sprint(sprint) => replace(&mut self.sprint, sprint, &mut self.stale),
            Response::Reviews(reviews) => replace(&mut self.reviews, reviews, &mut self.stale),
            Response::Inbox(inbox) => self.store_inbox(inbox),
            Response::List(page) => {
                self.incoming.extend(page.tasks);
                if page.next.is_some() {
                    return self.polls.request_now(PollTopic::Backlog);
                }
                let whole = std::mem::take(&mut self.incoming);
                if whole != self.backlog {
                    self.backlog = whole;
                    self.filter_backlog();
                    self.stale = true;
                }
            }
            Response::Show(detail) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.task == detail.line.id)
                    && open.detail.as_ref() != Some(&detail)
                {
                    open.detail = Some(detail);
                    open.problem = None;
                    self.stale = true;
                }
            }
            _ => {} // no poll asks for it
        }
    }

    fn handle_poll_failure(&mut self, poll: PollTopic, problem: Problem) {
        if poll == PollTopic::Backlog {
            self.incoming.clear();
        }
        if poll == PollTopic::Open {
            if let Some(open) = &mut self.open {
                open.problem = Some(problem_sentence(&problem));
            }
            self.stale = true;
            return;
        }
        // A project without a sprint, or one that only this question fails for, is still there.
        if problem.code == ProblemCode::UnknownSprint
            || !matches!(poll, PollTopic::Status | PollTopic::Journal)
        {
            return;
        }
        self.stale = true;
        let since_ms = match self.link {
            ConnectionState::Lost { since_ms, .. } => since_ms,
            ConnectionState::Fresh | ConnectionState::Up => self.now_ms,
        };
        self.link = ConnectionState::Lost { since_ms, problem: Box::new(problem) };
    }

    fn store_status(&mut self, status: Box<StatusReport>) {
        let before = self.status_report().map(|status| status.engine.is_some());
        match (before, &status.engine) {
            (Some(true), None) => {
                self.add_toast(
                    MessageTone::Warn,
                    "no engine drives the project any more; what is shown is what the journal says",
                );
            }
            (Some(false), Some(engine)) => {
                self.add_toast(
                    MessageTone::Info,
                    format!("an engine drives the project now (process {})", engine.pid),
                );
            }
            (Some(true), Some(_)) | (Some(false), None) | (None, _) => {}
        }
        if status.sprint.is_some() && self.sprint.is_none() {
            self.polls.request_now(PollTopic::Sprint);
        }
        if status.sprint.is_none() {
            self.sprint = None;
        }
        self.stale |= self.status_report() != Some(&status);
        self.status = Some((status, self.now_ms));
    }

    fn store_journal_page(&mut self, page: landfall_api::LogPage) {
        let first = self.journal_next.is_none();
        self.journal_next = Some(page.next);
        if page.more {
            self.polls.request_now(PollTopic::Journal);
        }
        if page.entries.is_empty() {
            return;
        }
        self.stale = true;
        let open = self.open.as_ref().map(|open| open.task);
        let about_open = page.entries.iter().any(|entry| entry.task.is_some() && entry.task == open);
        self.journal.extend(page.entries);
        let over = self.journal.len().saturating_sub(JOURNAL_MAX);
        self.journal.drain(..over);
        if first {
            return; // everything was asked for already
        }
        for poll in [PollTopic::Status, PollTopic::Inbox, PollTopic::Queue, PollTopic::Sprint] {
            self.polls.hasten_poll(poll, LIVELY_MS);
        }
        self.polls.hasten_poll(PollTopic::Backlog, CALM_MS);
        if about_open {
            self.polls.hasten_poll(PollTopic::Open, LIVELY_MS);
            self.page_old = true;
        }
    }

    fn store_inbox(&mut self, inbox: Inbox) {
        let Inbox { mut items, more, .. } = inbox;
        items.sort_by_key(|item| (item.kind, item.since_ms)); // what holds others up comes first
        if self.inbox.as_ref() == Some(&items) && self.inbox_more == more {
            return;
        }
        if let Some(known) = &self.inbox {
            let is_new = |key: &String| known.iter().all(|item| item.key != *key);
            let new = items.iter().filter(|item| is_urgent(item.kind) && is_new(&item.key));
            let new: Vec<String> = new
                .map(|item| {
                    let task = item.task.map(|task| format!("{task} ")).unwrap_or_default();
                    format!("{task}{}: {}", item.kind.word(), first_line(item))
                })
                .collect();
            new.into_iter().for_each(|text| self.add_toast(MessageTone::Warn, text));
        }
        self.inbox = Some(items);
        self.inbox_more = more;
        self.stale = true;
    }

    fn handle_page_answer(&mut self, task: landfall_api::WireTaskId, result: Result<Response, Problem>) {
        self.page_asked = false;
        let Some(open) = self.open.as_mut().filter(|open| open.task == task) else { return };
        match result {
            Ok(Response::Why(why)) => open.why = Some(why),
            Ok(Response::Diff(diff)) => {
                let bytes = diff.diff.bytes().unwrap_or_default(); // what is no base64 is shown as nothing
                let text = String::from_utf8_lossy(&bytes);
                let mut lines: Vec<String> = text.lines().take(DIFF_LINES_MAX).map(str::to_owned).collect();
                if text.lines().nth(DIFF_LINES_MAX).is_some() {
                    lines.push(format!("… and more; `landfall diff {task}` has it all"));
                }
                open.diff = Some(lines);
            }
            Ok(Response::Log(page)) => {
                open.log.extend(page.entries);
                let over = open.log.len().saturating_sub(JOURNAL_MAX);
                open.log.drain(..over);
            }
            Ok(Response::Output(page)) => {
                let Output { output, lines, next, last, .. } = *page;
                match open.output.as_mut().filter(|known| known.key == output.key && known.grows) {
                    Some(known) => {
                        known.lines.extend(lines);
                        let over = known.lines.len().saturating_sub(OUTPUT_LINES_MAX);
                        known.lines.drain(..over);
                        (known.next, known.grows) = (next, output.grows || !last);
                    }
                    None => {
                        let grows = output.grows || !last;
                        open.output = Some(OpenOutput { key: output.key, next, grows, lines });
                    }
                }
                open.problem = None;
                self.page_due_ms = self.now_ms + if last { CALM_MS } else { 0 };
            }
            Ok(_) => {} // no page asks for it
            Err(problem) => {
                open.problem = Some(problem_sentence(&problem));
                self.page_due_ms = self.now_ms + 2 * CALM_MS; // an agent may begin at any time
            }
        }
        let last = views::lines_count(self).saturating_sub(1);
        if let Scroll::At(line) = self.page_scroll() {
            self.set_scroll(Scroll::At(line.min(last)));
        }
    }

    fn handle_order_done(&mut self, response: &Response) {
        if matches!(&self.popup, Some(Popup::Text(popup)) if popup.sending) {
            self.popup = None;
        }
        let text = match response {
            Response::Retry(changed)
            | Response::Cancel(changed)
            | Response::Answer(changed)
            | Response::Message(changed)
            | Response::Hold(changed)
            | Response::Release(changed)
            | Response::Accept(changed)
            | Response::Block(changed)
            | Response::QueueEject(changed)
            | Response::Review(changed) => {
                let texts: Vec<&str> = changed.tasks.iter().map(|task| task.text.as_str()).collect();
                texts.join(" ")
            }
            Response::Stop(stopped) => stopped.text.clone(),
            Response::Pause(pilot) | Response::Resume(pilot) | Response::Auto(pilot) => pilot.text.clone(),
            Response::Next(picked) => picked.text.clone(),
            Response::RunStart(_) => "a run has begun".to_owned(),
            other => format!("{} is done", other.name()),
        };
        self.add_toast(MessageTone::Info, text);
        PollTopic::ALL
            .iter()
            .filter(|poll| **poll != PollTopic::Backlog)
            .for_each(|poll| self.polls.request_now(*poll));
        self.polls.hasten_poll(PollTopic::Backlog, LIVELY_MS);
    }

    fn handle_refusal(&mut self, problem: &Problem) {
        let text = problem_sentence(problem);
        match &mut self.popup {
            Some(Popup::Text(popup)) if popup.sending => {
                popup.sending = false; // what was typed is kept
                popup.problem = Some(text);
            }
            Some(_) | None => self.add_toast(MessageTone::Bad, text),
        }
    }
}

fn replace<T: PartialEq>(held: &mut Option<T>, new: T, stale: &mut bool) {
    *stale |= held.as_ref() != Some(&new);
    *held = Some(new);
}

/// A problem in one line.
pub fn problem_sentence(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}
