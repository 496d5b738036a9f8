//! What stands above and below every page: who drives, how many agents work, what was spent, what waits for a person.

use std::borrow::Borrow;

use askama::Template;
use landfall_api::{
    Board, BoardAsked, BudgetScope, ColumnName, Mode, PilotPhase, Status, TroubleKind, TypedService as _,
};

use super::{PageContext, parts, state as here, words}; // templates reach functions by a path only

/// The board without its cards: all that is drawn with every page.
pub(super) fn fetch_board(visit: &PageContext<'_>) -> Option<Box<Board>> {
    let columns = vec![ColumnName::NeedsYou, ColumnName::InReview];
    visit.board(BoardAsked { cards: 1, columns }).ok() // the page itself says what is wrong
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunCondition {
    /// Nothing runs.
    Idle,
    /// Tasks are started.
    Running,
    /// No agent starts, because a budget is used up.
    OutOfBudget,
    /// Nothing new begins until somebody resumes it.
    Paused,
    /// A person picks the next task.
    YourTurn,
    /// What is under way ends, nothing begins.
    Ending,
}

impl RunCondition {
    /// How the run of a board stands.
    pub(super) fn from_board(board: &Board) -> Self {
        let Some(run) = &board.run else { return Self::Idle };
        let phase = board.pilot.as_ref().map(|pilot| pilot.phase);
        match (run.mode.as_str(), phase) {
            ("draining" | "stopping", _) => Self::Ending,
            (_, Some(PilotPhase::Paused)) => Self::Paused,
            (_, Some(PilotPhase::WaitingUser)) => Self::YourTurn,
            _ if board.problems.iter().any(|it| it.kind == TroubleKind::Budget) => Self::OutOfBudget,
            _ => Self::Running,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Idle => "not running",
            Self::Running => "running",
            Self::OutOfBudget => "out of budget",
            Self::Paused => "paused",
            Self::YourTurn => "your turn",
            Self::Ending => "ending",
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Idle => "■",
            Self::Running => "▶",
            Self::OutOfBudget => "◔",
            Self::Paused => "‖",
            Self::YourTurn => "☞",
            Self::Ending => "▪",
        }
    }

    fn tone(self) -> &'static str {
        match self {
            Self::Running => "good",
            Self::Paused | Self::YourTurn | Self::OutOfBudget => "warn",
            Self::Idle | Self::Ending => "quiet",
        }
    }

    /// Whether it can be started.
    pub(super) fn can_start(self) -> bool {
        self == Self::Idle
    }

    /// Whether it can be paused.
    pub(super) fn can_pause(self) -> bool {
        matches!(self, Self::Running | Self::YourTurn | Self::OutOfBudget)
    }

    /// Whether it can be resumed.
    pub(super) fn can_resume(self) -> bool {
        self == Self::Paused
    }

    /// Whether it can be stopped.
    pub(super) fn can_stop(self) -> bool {
        matches!(self, Self::Running | Self::YourTurn | Self::OutOfBudget | Self::Paused)
    }

    /// Whether it ends by itself, and can be made to end at once.
    pub(super) fn can_stop_now(self) -> bool {
        self == Self::Ending
    }
}

/// The state of the project at the top of a page.
#[derive(Template)]
#[template(path = "state.html")]
pub(super) struct PageHeader<'a> {
    board: &'a Board,
    drive: RunCondition,
    why: String,
    autopilot: Option<bool>,
    agents: u32,
    slots: u32,
    spent: Option<String>,
    needs_you: u64,
    back: &'a str,
}

impl askama::filters::HtmlSafe for PageHeader<'_> {}

impl<'a> PageHeader<'a> {
    pub(super) fn new(board: &'a Board, back: &'a str) -> Self {
        let slots = board.run.as_ref().map(|run| run.slots);
        let slots = slots.or_else(|| board.pilot.as_ref().map(|pilot| pilot.slots)).unwrap_or_default();
        Self {
            board,
            drive: RunCondition::from_board(board),
            why: board.pilot.as_ref().map(|pilot| words::line(&pilot.text)).unwrap_or_default(),
            autopilot: board.pilot.as_ref().map(|pilot| pilot.mode == Mode::Autopilot),
            agents: board.run.as_ref().map_or(0, |run| run.agents),
            slots,
            spent: spent_today(board),
            needs_you: needs_you(board),
            back,
        }
    }
}

impl PageHeader<'_> {
    /// How many things wait for a person.
    pub(super) fn needs_you(&self) -> u64 {
        self.needs_you
    }
}

/// What is counted at the foot of a page.
#[derive(Template)]
#[template(path = "foot.html")]
pub(super) struct PageFooter<'a> {
    board: &'a Board,
    blocked: u64,
    queue: u64,
}

impl askama::filters::HtmlSafe for PageFooter<'_> {}

impl<'a> PageFooter<'a> {
    pub(super) fn new(board: &'a Board) -> Self {
        let blocked = [Status::Blocked, Status::Failed, Status::Timeout]
            .map(|status| count(board, status))
            .iter()
            .sum();
        Self { board, blocked, queue: count(board, Status::Landing) }
    }
}

/// How many tasks are in a status.
pub(super) fn count(board: &Board, status: impl Borrow<Status>) -> u64 {
    board.counts.get(status.borrow()).copied().unwrap_or_default()
}

/// How many things wait for a person.
pub(super) fn needs_you(board: &Board) -> u64 {
    let columns = board.columns.iter();
    let waits = columns.filter(|it| matches!(it.name, ColumnName::NeedsYou | ColumnName::InReview));
    waits.map(|it| it.count).sum::<u64>() + board.reviews_owed + board.issues_left
}

/// What today cost, if anything is known about it.
fn spent_today(board: &Board) -> Option<String> {
    let day = board.spending.iter().find(|line| line.scope == BudgetScope::Day)?;
    Some(match day.usage.cost_usd {
        Some(cost) if day.usage.tokens_without_price > 0 => {
            let unpriced = words::short(day.usage.tokens_without_price);
            format!(
                "{}{}, without {unpriced} tokens that have no price",
                day.usage.prefix(),
                words::usd(cost)
            )
        }
        Some(cost) => format!("{}{}", day.usage.prefix(), words::usd(cost)),
        None => {
            let tokens = words::short(day.usage.tokens_in + day.usage.tokens_out);
            format!("{}{tokens} tokens", day.usage.prefix())
        }
    })
}
