//! What is shown, and how news changes it: pure, with the time handed in. What is to be done comes out as data.

mod commands;
mod data;
mod popup;

use std::collections::VecDeque;

use crossterm::event::{KeyEvent, KeyEventKind};
use landfall_api::{
    DiscoveryList, Health, InboxItem, LogEntry, Problem, QueueReport, Request, Response, ReviewList, Said,
    SprintReport, StatusReport, TaskDetail, TaskLine, Why, WireTaskId,
};

use super::keys;
use super::polls::{PollTopic, Polls};
use super::views;

pub use popup::{ChoiceAction, Popup, PopupChoice, TextPopup, TextPurpose};

/// Entries of the journal that are kept to scroll through; the file has them all.
pub const JOURNAL_MAX: usize = 2_000;

/// What comes in.
#[derive(Debug)]
pub enum TuiEvent {
    /// A key.
    Key(KeyEvent),
    /// Text that was pasted.
    Paste(String),
    /// The terminal has another size: columns and rows.
    Resized(u16, u16),
    /// Time has passed.
    Tick,
    /// The service answered.
    Answered {
        /// What was asked.
        about: RequestSubject,
        /// What it said.
        result: Box<Result<Response, Problem>>,
        /// How long it took.
        took_ms: u64,
    },
    /// A signal, or a terminal that is gone: it is time to leave.
    Leave,
}

/// What a request was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSubject {
    /// It is asked again and again.
    Poll(PollTopic),
    /// Part of the task that is open.
    Page(WireTaskId),
    /// A screen that was opened.
    Screen,
    /// A person's order.
    Order,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a handful are there at a time")]
pub enum TuiAction {
    /// TypedService the service.
    Call(RequestSubject, Request),
    /// Give the terminal to the shell for a while.
    Suspend,
    /// Close the screen. The run goes on.
    Quit,
}

/// A part of the first screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardPanel {
    /// Who is at work.
    Slots,
    /// What waits for a person.
    Inbox,
    /// The landing queue.
    Queue,
    /// The journal.
    Log,
    /// Every task.
    Backlog,
}

impl DashboardPanel {
    /// In the order Tab goes.
    pub const ALL: [Self; 5] = [Self::Slots, Self::Inbox, Self::Queue, Self::Log, Self::Backlog];
}

/// What lies on top of the first screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuiOverlay {
    /// One task.
    Task,
    /// The landing queue in full.
    Queue,
    /// What agents found out.
    Discoveries,
    /// Whether everything is well.
    Doctor,
    /// The sprint.
    Sprint,
    /// The keys.
    Help,
}

/// A page about the task that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskView {
    /// Why it is where it is, and what is wanted.
    About,
    /// Its attempts.
    Attempts,
    /// What verification saw.
    Checks,
    /// What it changes.
    Diff,
    /// Its part of the journal.
    Log,
    /// What its agent prints.
    Output,
}

impl TaskView {
    /// In the order Tab goes.
    pub const ALL: [Self; 6] =
        [Self::About, Self::Attempts, Self::Checks, Self::Diff, Self::Log, Self::Output];

    /// Whether the newest is at its end, and followed.
    pub fn follows_end(self) -> bool {
        match self {
            Self::Log | Self::Output => true,
            Self::About | Self::Attempts | Self::Checks | Self::Diff => false,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::About => "About",
            Self::Attempts => "Attempts",
            Self::Checks => "Checks",
            Self::Diff => "Diff",
            Self::Log => "Log",
            Self::Output => "Output",
        }
    }
}

/// How far down something is scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scroll {
    /// This line is the first that is shown.
    At(usize),
    /// The last line is shown, also when more come.
    End,
}

/// Something chosen from a list that changes: by what it is, and by its place when it has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSelection<I> {
    /// What.
    pub id: Option<I>,
    /// Where it was.
    pub place: usize,
}

impl<I: Clone + PartialEq> ListSelection<I> {
    /// The first, whatever it is.
    fn first() -> Self {
        Self { id: None, place: 0 }
    }

    /// Where it is now.
    pub fn current_index(&self, rows: &[I]) -> usize {
        let found = self.id.as_ref().and_then(|id| rows.iter().position(|row| row == id));
        found.unwrap_or_else(|| self.place.min(rows.len().saturating_sub(1)))
    }

    fn choose_index(&mut self, rows: &[I], place: usize) {
        let place = place.min(rows.len().saturating_sub(1));
        *self = Self { id: rows.get(place).cloned(), place };
    }
}

/// The task that is open, as far as its pages were asked for.
#[derive(Debug)]
pub struct OpenTask {
    /// Which.
    pub task: WireTaskId,
    /// The page that is shown.
    pub page: TaskView,
    /// How far down.
    pub scroll: Scroll,
    /// All there is to know.
    pub detail: Option<Box<TaskDetail>>,
    /// Why it is where it is.
    pub why: Option<Why>,
    /// The lines of its diff, as they came.
    pub diff: Option<Vec<String>>,
    /// Its part of the journal.
    pub log: Vec<LogEntry>,
    /// What its agent prints.
    pub output: Option<OpenOutput>,
    /// What could not be had, and why.
    pub problem: Option<String>,
}

/// The newest output of the task that is open.
#[derive(Debug)]
pub struct OpenOutput {
    /// Its name.
    pub key: String,
    /// Where to go on.
    pub next: u64,
    /// Whether more comes.
    pub grows: bool,
    /// Its lines.
    pub lines: Vec<Said>,
}

/// A word that goes away by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiToast {
    /// How grave.
    pub tone: MessageTone,
    /// What.
    pub text: String,
    /// When it goes.
    pub until_ms: i64,
}

/// How grave a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTone {
    /// Something to know.
    Info,
    /// Something to look at.
    Warn,
    /// Something went wrong.
    Bad,
}

impl MessageTone {
    /// How long it stays: the graver, the longer.
    fn duration_ms(self) -> i64 {
        match self {
            Self::Info => 3_000,
            Self::Warn => 5_000,
            Self::Bad => 8_000,
        }
    }

    /// A sign that differs in its shape.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Info => "·",
            Self::Warn => "!",
            Self::Bad => "✗",
        }
    }
}

/// Whether the project can be reached.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionState {
    /// Nothing was answered yet.
    Fresh,
    /// It can.
    Up,
    /// It cannot, since then, for this reason. It is tried again.
    Lost {
        /// Since then.
        since_ms: i64,
        /// Why.
        problem: Box<Problem>,
    },
}

/// Everything on the screen.
#[derive(Debug)]
pub struct TuiState {
    /// The time.
    pub now_ms: i64,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Whether the project can be reached.
    pub link: ConnectionState,
    /// How the project stands, and when it said so.
    pub status: Option<(Box<StatusReport>, i64)>,
    /// The landing queue.
    pub queue: Option<Box<QueueReport>>,
    /// What there is to look at, and the complaints that have a name.
    pub reviews: Option<ReviewList>,
    /// What waits for a person; none before it is known.
    pub inbox: Option<Vec<InboxItem>>,
    /// How much more there is than is listed.
    pub inbox_more: u64,
    /// The newest entries of the journal.
    pub journal: VecDeque<LogEntry>,
    /// Every task.
    pub backlog: Vec<TaskLine>,
    /// Which of them are shown: places in `backlog`.
    pub backlog_shown: Vec<usize>,
    /// The sprint.
    pub sprint: Option<Box<SprintReport>>,
    /// What agents found out.
    pub discoveries: Option<DiscoveryList>,
    /// Whether everything is well.
    pub health: Option<Health>,
    /// The task that is open.
    pub open: Option<OpenTask>,
    /// The panel that has the keys.
    pub focus: DashboardPanel,
    /// Screens on top of the first, the last one is seen.
    pub screens: Vec<TuiOverlay>,
    /// How far down the last screen is scrolled; a task has its own.
    pub scroll: Scroll,
    /// What must be answered before anything else.
    pub popup: Option<Popup>,
    /// Words that go away by themselves, the newest last.
    pub toasts: Vec<TuiToast>,
    /// What the backlog is filtered by.
    pub filter: String,
    /// What the log is filtered by.
    pub log_filter: String,
    /// What was last looked for in a page.
    pub sought: String,
    /// Chosen among those at work.
    pub slot: ListSelection<WireTaskId>,
    /// Chosen in the inbox.
    pub item: ListSelection<String>,
    /// Chosen in the queue.
    pub place: ListSelection<WireTaskId>,
    /// Chosen in the backlog.
    pub task: ListSelection<WireTaskId>,
    /// The entry of the journal that is looked at; none follows the newest.
    pub entry: Option<u64>,
    polls: Polls,
    incoming: Vec<TaskLine>, // pages of the backlog, until it is whole
    journal_next: Option<u64>,
    page_due_ms: i64, // what grows without a word in the journal is asked for again then
    page_old: bool,   // the page of the open task is behind the journal
    page_asked: bool, // it was asked for and did not come yet
    second: i64,
    stale: bool,
}

impl TuiState {
    /// Before anything is known.
    pub fn new(size: (u16, u16), now_ms: i64) -> Self {
        Self {
            now_ms,
            size,
            link: ConnectionState::Fresh,
            status: None,
            queue: None,
            reviews: None,
            inbox: None,
            inbox_more: 0,
            journal: VecDeque::new(),
            backlog: Vec::new(),
            backlog_shown: Vec::new(),
            sprint: None,
            discoveries: None,
            health: None,
            open: None,
            focus: DashboardPanel::Slots,
            screens: Vec::new(),
            scroll: Scroll::At(0),
            popup: None,
            toasts: Vec::new(),
            filter: String::new(),
            log_filter: String::new(),
            sought: String::new(),
            slot: ListSelection::first(),
            item: ListSelection::first(),
            place: ListSelection::first(),
            task: ListSelection::first(),
            entry: None,
            polls: Polls::new(),
            incoming: Vec::new(),
            journal_next: None,
            page_due_ms: i64::MAX,
            page_old: false,
            page_asked: false,
            second: 0,
            stale: true,
        }
    }

    /// What follows from the news.
    pub fn handle_event(&mut self, news: TuiEvent, now_ms: i64) -> Vec<TuiAction> {
        self.now_ms = now_ms;
        let mut actions = match news {
            TuiEvent::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            TuiEvent::Key(key) => {
                self.stale = true;
                match self.popup {
                    Some(_) => self.handle_popup_key(key),
                    None => {
                        keys::key_command(key).map(|command| self.handle_command(command)).unwrap_or_default()
                    }
                }
            }
            TuiEvent::Paste(text) => {
                self.stale = true;
                self.paste_into_popup(&text);
                Vec::new()
            }
            TuiEvent::Resized(columns, rows) => {
                self.size = (columns, rows);
                self.stale = true;
                Vec::new()
            }
            TuiEvent::Tick => Vec::new(),
            TuiEvent::Answered { about, result, took_ms } => {
                self.handle_answer(about, *result, took_ms);
                Vec::new()
            }
            TuiEvent::Leave => vec![TuiAction::Quit],
        };
        self.expire_toasts();
        actions.extend(self.request_due_polls());
        actions
    }

    /// Whether the screen shows something else than is so; asked once for each drawing.
    pub fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.stale)
    }

    /// When something is to be done, if nothing happens before.
    pub fn wake_ms(&self) -> i64 {
        let toasts = self.toasts.iter().map(|toast| toast.until_ms).min().unwrap_or(i64::MAX);
        let clock = if self.has_clock() { (self.now_ms / 1_000 + 1) * 1_000 } else { i64::MAX };
        let page = if self.page_asked { i64::MAX } else { self.page_due_ms };
        self.polls.next_ms().min(toasts).min(clock).min(page)
    }

    /// Whether something on the screen counts seconds.
    fn has_clock(&self) -> bool {
        let counts = self.status_report().is_some_and(|status| {
            let shut = status.accounts.iter().any(|account| account.until_ms.is_some());
            status.run.is_some() || shut
        });
        counts || matches!(self.link, ConnectionState::Lost { .. })
    }

    fn expire_toasts(&mut self) {
        let now_ms = self.now_ms;
        let before = self.toasts.len();
        self.toasts.retain(|toast| toast.until_ms > now_ms);
        self.stale |= self.toasts.len() != before;
        let second = now_ms / 1_000;
        if second != self.second {
            self.second = second;
            self.stale |= self.has_clock();
        }
    }

    /// Says something for a while.
    pub fn add_toast(&mut self, tone: MessageTone, text: impl Into<String>) {
        const TOASTS_MAX: usize = 4; // more would cover what they are about
        self.toasts.push(TuiToast { tone, text: text.into(), until_ms: self.now_ms + tone.duration_ms() });
        let over = self.toasts.len().saturating_sub(TOASTS_MAX);
        self.toasts.drain(..over);
        self.stale = true;
    }

    /// How the project stands.
    pub fn status_report(&self) -> Option<&StatusReport> {
        self.status.as_ref().map(|(status, _)| &**status)
    }

    /// How long ago the project said how it stands.
    pub fn status_age_ms(&self) -> u64 {
        self.status.as_ref().map_or(0, |(_, at)| u64::try_from(self.now_ms - at).unwrap_or(0))
    }

    /// Whether all panels are shown at once, or one at a time.
    pub fn is_wide(&self) -> bool {
        self.size.0 >= 120 && self.size.1 >= 34
    }

    /// Who is at work, in the order shown.
    pub fn active_tasks(&self) -> Vec<WireTaskId> {
        self.status_report()
            .map(|status| status.active.iter().map(|line| line.task).collect())
            .unwrap_or_default()
    }

    /// What waits for a person, as far as it is known.
    pub fn inbox_items(&self) -> &[InboxItem] {
        self.inbox.as_deref().unwrap_or_default()
    }

    /// The keys of the inbox, in the order shown.
    pub fn inbox_keys(&self) -> Vec<String> {
        self.inbox_items().iter().map(|item| item.key.clone()).collect()
    }

    /// Who stands in line, in the order shown.
    pub fn queued_tasks(&self) -> Vec<WireTaskId> {
        self.queue
            .as_ref()
            .map(|queue| queue.line.iter().map(|place| place.task).collect())
            .unwrap_or_default()
    }

    /// The tasks of the backlog that are shown.
    pub fn backlog_tasks(&self) -> Vec<WireTaskId> {
        self.backlog_shown.iter().map(|place| self.backlog[*place].id).collect()
    }

    /// The entries of the journal that are shown.
    pub fn shown_entries(&self) -> Vec<&LogEntry> {
        let words = views::filter_words(&self.log_filter);
        self.journal.iter().filter(|entry| views::log::matches_words(entry, &words)).collect()
    }

    /// The task that keys are about.
    pub fn selected_task(&self) -> Option<WireTaskId> {
        match self.screens.last() {
            Some(TuiOverlay::Task) => self.open.as_ref().map(|open| open.task),
            Some(
                TuiOverlay::Queue
                | TuiOverlay::Discoveries
                | TuiOverlay::Doctor
                | TuiOverlay::Sprint
                | TuiOverlay::Help,
            ) => None,
            None => match self.focus {
                DashboardPanel::Slots => {
                    let rows = self.active_tasks();
                    rows.get(self.slot.current_index(&rows)).copied()
                }
                DashboardPanel::Inbox => self.chosen_item().and_then(|item| item.task),
                DashboardPanel::Queue => {
                    let rows = self.queued_tasks();
                    rows.get(self.place.current_index(&rows)).copied()
                }
                DashboardPanel::Log => self.entry.and_then(|seq| {
                    self.journal.iter().find(|entry| entry.seq == seq).and_then(|entry| entry.task)
                }),
                DashboardPanel::Backlog => {
                    let rows = self.backlog_tasks();
                    rows.get(self.task.current_index(&rows)).copied()
                }
            },
        }
    }

    /// The item of the inbox that is chosen there.
    pub fn chosen_item(&self) -> Option<&InboxItem> {
        self.inbox_items().get(self.item.current_index(&self.inbox_keys()))
    }

    fn show_overlay(&mut self, screen: TuiOverlay) {
        self.screens.retain(|it| *it != screen); // a screen is on the pile once, however people get there
        self.screens.push(screen);
        self.scroll = Scroll::At(0);
    }
}

#[cfg(test)]
mod tests;
