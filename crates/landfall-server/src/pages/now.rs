//! Now: the board by attention, what is wrong, and what things cost.

use askama::Template;
use landfall_api::{
    AccountLine, AccountStanding, Board, BoardAsked, BudgetLine, BudgetOf, BudgetScope, Card, CheckMark,
    Column, ColumnName, MarkState, Mode, Outcome, Problem, Severity, SprintGoal, SprintOf, SprintReport,
    SprintStage, Status, Trouble, TypedService as _, WaitFor,
};

use super::state::RunCondition;
use super::{PageContext, RenderedPage, now as here, parts, words}; // templates reach functions by a path only

/// Cards in a column: more are a list, and the backlog has lists.
const CARDS: u32 = 30;

pub(super) fn draw_now_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let mut board = visit.board(BoardAsked { cards: CARDS, columns: Vec::new() })?;
    for column in board.columns.iter_mut().filter(|column| column.name == ColumnName::NeedsYou) {
        column.cards.sort_by_key(|card| !is_question(card)); // an agent waits for the answer
    }
    let sprint = match board.sprint {
        Some(_) => visit.sprint(SprintOf::default()).ok(), // its line is on the board in any case
        None => None,
    };
    let page = RenderedPage::new("Now", &NowPage::new(&board, sprint.as_deref()))?;
    Ok(page.with_board(board))
}

/// Whether its agent waits for an answer.
fn is_question(card: &Card) -> bool {
    card.wait.as_ref().is_some_and(|wait| wait.wait == WaitFor::Question)
}

/// The columns, in the order in which a person should look at them.
const ATTENTION: [ColumnName; 5] = [
    ColumnName::NeedsYou,
    ColumnName::InReview,
    ColumnName::Working,
    ColumnName::Landing,
    ColumnName::DoneToday,
];

#[derive(Template)]
#[template(path = "now.html")]
struct NowPage<'a> {
    board: &'a Board,
    drive: RunCondition,
    /// No task was ever added.
    empty: bool,
    columns: Vec<&'a Column>,
    folded: Vec<&'a Column>,
    sprint: Option<SprintView<'a>>,
    semi: bool,
}

impl<'a> NowPage<'a> {
    fn new(board: &'a Board, sprint: Option<&'a SprintReport>) -> Self {
        let folded = |it: &&Column| matches!(it.name, ColumnName::Next | ColumnName::Waiting);
        Self {
            board,
            drive: RunCondition::from_board(board),
            empty: board.counts.values().all(|count| *count == 0),
            columns: ATTENTION
                .iter()
                .filter_map(|name| board.columns.iter().find(|column| column.name == *name))
                .collect(),
            folded: board.columns.iter().filter(folded).collect(),
            sprint: sprint
                .filter(|it| it.phase != SprintStage::Over)
                .map(|it| SprintView::new(it, board.at_ms)),
            semi: board.pilot.as_ref().is_some_and(|pilot| pilot.mode == Mode::SemiAuto),
        }
    }

    fn card(&self, column: &Column, card: &'a Card) -> CardView<'a> {
        CardView { card, column: column.name, now_ms: self.board.at_ms, semi: self.semi }
    }
}

/// A sprint as a bar.
struct SprintView<'a> {
    report: &'a SprintReport,
    bar: parts::ProgressBar,
    left: TimeLeft,
}

/// How long a sprint still takes.
enum TimeLeft {
    /// Nobody knows.
    Unknown,
    /// The goal ends it then.
    Until(parts::RelativeTime),
    /// So much work is left, and it is paused.
    Work(String),
    /// At its pace it would be over then.
    Expected(parts::RelativeTime),
}

impl<'a> SprintView<'a> {
    fn new(report: &'a SprintReport, now_ms: i64) -> Self {
        let is_paused = report.phase == SprintStage::Paused;
        let label = words::line(&report.bar);
        let until = |until_ms: i64| match until_ms > now_ms {
            true => TimeLeft::Until(parts::until(now_ms, until_ms)),
            false => TimeLeft::Unknown,
        };
        let expected = match report.forecast_ms.filter(|at| *at > now_ms && !is_paused) {
            Some(at) => TimeLeft::Expected(parts::ago(now_ms, at)),
            None => TimeLeft::Unknown,
        };
        let (done, all, left) = match report.plan.goal {
            SprintGoal::Duration { duration_ms } => {
                let left = duration_ms.saturating_sub(report.worked_ms);
                // The clock of a sprint stands while it is paused: a countdown would not be true.
                let left = match is_paused {
                    true => TimeLeft::Work(words::length(left)),
                    false => until(now_ms.saturating_add(i64::try_from(left).unwrap_or(i64::MAX))),
                };
                (report.worked_ms, duration_ms, left)
            }
            SprintGoal::UntilTime { until_ms } => {
                let since = |at_ms: i64| u64::try_from(at_ms - report.started_ms).unwrap_or_default();
                (since(now_ms), since(until_ms), until(until_ms))
            }
            SprintGoal::Count { .. } | SprintGoal::NoReady => (report.landed, report.total, expected),
        };
        Self { report, bar: parts::progress_bar(percent_of(done, all), "good", label), left }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar is a few hundred dots wide")]
fn percent_of(done: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { done as f64 * 100.0 / all as f64 }
}

/// What a column is called, and what to say when nothing is in it.
fn named(name: &ColumnName) -> (&'static str, &'static str, &'static str) {
    match *name {
        ColumnName::Working => ("Working", "info", "No agent is at work."),
        ColumnName::NeedsYou => ("Needs you", "warn", "Nothing waits for you."),
        ColumnName::InReview => ("Review", "warn", "No work waits for a review."),
        ColumnName::Landing => ("Landing", "info", "The landing queue is empty."),
        ColumnName::DoneToday => ("Done today", "good", "Nothing has landed today."),
        ColumnName::Next => ("Next", "quiet", "Nothing is ready to start."),
        ColumnName::Waiting => ("Waiting", "quiet", "Nothing waits for others."),
    }
}

/// Where the rest of a column is listed.
fn rest(name: &ColumnName) -> &'static str {
    match *name {
        ColumnName::Working => "/backlog?status=active",
        ColumnName::NeedsYou | ColumnName::InReview => "/inbox",
        ColumnName::Landing => "/queue",
        ColumnName::DoneToday => "/backlog?status=done",
        ColumnName::Next => "/backlog?status=ready",
        ColumnName::Waiting => "/backlog?status=waiting",
    }
}

/// One task on the board.
#[derive(Template)]
#[template(path = "card.html")]
struct CardView<'a> {
    card: &'a Card,
    column: ColumnName,
    now_ms: i64,
    semi: bool,
}

impl askama::filters::HtmlSafe for CardView<'_> {}

impl CardView<'_> {
    /// The agent and its model: of the one at work, or of the profile it would take.
    fn agent(&self) -> String {
        match &self.card.agent {
            Some(agent) => match &agent.model {
                Some(model) => words::line(&format!("{} · {model}", agent.profile)),
                None => words::line(&agent.profile),
            },
            None => words::line(&self.card.profile),
        }
    }

    /// Where in its flow it is, unless its status says the same.
    fn place(&self) -> Option<String> {
        let place = self.card.phase.as_deref().or(self.card.step.as_deref())?;
        (place != self.card.status.word()).then(|| words::line(place))
    }

    /// Checks that did not pass, and how many did.
    fn failing(&self) -> impl Iterator<Item = &CheckMark> {
        self.card.checks.iter().filter(|mark| !has_passed(mark)).take(3)
    }

    fn passed(&self) -> usize {
        self.card.checks.iter().filter(|mark| has_passed(mark)).count()
    }

    /// How far the agent at work says it is, in per cent.
    fn progress(&self) -> Option<u8> {
        self.card.agent.as_ref()?.progress
    }

    /// What it waits for, or why it is where it is.
    fn reason(&self) -> Option<String> {
        let wait = self.card.wait.as_ref().map(|wait| match wait.detail.as_str() {
            "" => format!("waits for: {}", wait.wait),
            detail if is_question(self.card) => detail.to_owned(),
            detail => format!("waits for: {} ({detail})", wait.wait),
        });
        let reason = if self.card.detail.is_empty() { wait? } else { self.card.detail.clone() };
        Some(words::line(&reason))
    }

    /// What is being done and the last that was said.
    fn doing(&self) -> String {
        let agent = self.card.agent.as_ref();
        let class = agent.and_then(|it| it.class.clone()).unwrap_or_else(|| self.card.doing.clone());
        words::line(&class)
    }

    fn words(&self) -> String {
        words::line(self.card.agent.as_ref().map_or("", |it| &it.words))
    }

    /// Whether it is at the front or the back of the line by a person's wish.
    fn is_tagged(&self, tag: &str) -> bool {
        self.card.tags.iter().any(|it| it == tag)
    }

    /// Its tags with one of `next` and `later`.
    fn tags_with<'b>(&'b self, tag: &'b str) -> impl Iterator<Item = &'b str> {
        self.card.tags.iter().map(String::as_str).filter(|tag| !super::backlog::is_place(tag)).chain([tag])
    }

    fn unmet(&self) -> String {
        words::many(u64::from(self.card.unmet), "task")
    }

    fn gave_up(&self) -> bool {
        matches!(self.card.status, Status::Failed | Status::Timeout | Status::Blocked)
    }
}

/// Whether a check is over, and nothing is to be said about it.
fn has_passed(mark: &CheckMark) -> bool {
    mark.state == MarkState::Over && matches!(mark.outcome, None | Some(Outcome::Pass))
}

/// A check: its symbol, its tone, and its time against its limit.
fn check(mark: &CheckMark) -> (&'static str, &'static str, String) {
    let times = match (mark.took_ms, mark.limit_ms) {
        (Some(took), Some(limit)) => format!(" ({} / {})", words::length(took), words::length(limit)),
        (Some(took), None) => format!(" ({})", words::length(took)),
        (None, _) => String::new(),
    };
    let (symbol, tone, word) = match (mark.state, mark.outcome) {
        (MarkState::Waiting, _) => ("○", "quiet", "waiting"),
        (MarkState::Running, _) => ("●", "info", "running"),
        (MarkState::Over, None | Some(Outcome::Pass)) => ("✓", "good", "passed"),
        (MarkState::Over, Some(Outcome::Flaky)) => ("✓", "warn", "flaky, passed"),
        (MarkState::Over, Some(Outcome::PreExisting)) => ("!", "warn", "fails on the base too"),
        (MarkState::Over, Some(Outcome::Fail)) => ("✗", "bad", "failed"),
        (MarkState::Over, Some(Outcome::Timeout)) => ("✗", "bad", "TIMEOUT"),
        (MarkState::Over, Some(Outcome::Broken)) => ("✗", "bad", "broken"),
    };
    (symbol, tone, format!("{word}{times}"))
}

/// The share of an account's allowance that is used, as a bar.
fn allowance(used: &u8) -> parts::ProgressBar {
    parts::used(*used, format!("{used} per cent of the allowance is used"))
}

fn severity(trouble: &Trouble) -> (&'static str, &'static str, &'static str) {
    match trouble.severity {
        Severity::Error => ("✗", "bad", "Broken"),
        Severity::Warning => ("!", "warn", "Decide"),
        Severity::Info => ("i", "info", "Note"),
    }
}

fn standing(account: &AccountLine) -> (&'static str, &'static str, &'static str) {
    match account.state {
        AccountStanding::Open => ("✓", "good", "open"),
        AccountStanding::UsedUp => ("◔", "warn", "used up"),
        AccountStanding::Troubled => ("!", "warn", "its provider has trouble"),
        AccountStanding::LoggedOut => ("⊗", "warn", "wants a login"),
    }
}

/// A budget: whose, and how much of it is used.
fn budget(line: &BudgetLine) -> (String, String) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are whole and not negative"
    )]
    let amount = |number: f64| match line.of {
        BudgetOf::Usd => words::usd(number),
        BudgetOf::Tokens => format!("{} tokens", words::short(number as u64)),
        BudgetOf::Turns => format!("{} turns", number as u64),
        BudgetOf::Time => words::length(number as u64),
    };
    let whose = match line.scope {
        BudgetScope::Day => "Today".to_owned(),
        BudgetScope::Run => "This run".to_owned(),
        other => other.word().to_owned(),
    };
    (whose, format!("{} of {}", amount(line.used), amount(line.max)))
}

fn budget_percent(line: &BudgetLine) -> f64 {
    if line.max > 0.0 { line.used * 100.0 / line.max } else { 100.0 }
}

#[cfg(test)]
mod tests;
