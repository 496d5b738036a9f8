//! What became of an issue, in a banner, a table and a hint.

use landfall_facts::issue::IssueStanding;

use super::whole::is_accepted;
use super::{IssuePhase, IssueProgress, IssueRef, IssueResolution, PhaseStatus, Pipeline};
use crate::acceptance::{ON_TRUST, VerifyOutcome, VerifyResult};
use crate::signal::AgentUsage;
use crate::task::{EndCode, EndKind, Ending, Task, TaskState};
use crate::{TaskId, WaitReason};

/// How an issue stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueSummaryState {
    /// Everything holds.
    Complete,
    /// It landed; something is left for a person, or for another time.
    Partial,
    /// It ended in this phase without success.
    Stopped {
        /// This one.
        at: &'static str,
    },
    /// It failed as often as is allowed: only a person can go on.
    NeedsPerson {
        /// In this phase.
        at: &'static str,
    },
    /// It waits.
    Waits {
        /// For this, in words.
        what: String,
    },
    /// It goes on with the next run.
    UnderWay,
}

impl IssueSummaryState {
    /// Which it is, without its reasons.
    #[must_use]
    pub fn standing(&self) -> IssueStanding {
        match self {
            Self::Complete => IssueStanding::Complete,
            Self::Partial => IssueStanding::Partial,
            Self::Stopped { .. } => IssueStanding::Stopped,
            Self::NeedsPerson { .. } => IssueStanding::NeedsPerson,
            Self::Waits { .. } => IssueStanding::Waits,
            Self::UnderWay => IssueStanding::UnderWay,
        }
    }
}

/// What became of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its number.
    pub number: u64,
    /// Its task.
    pub task: TaskId,
    /// Its title.
    pub title: String,
    /// The way it took, in words.
    pub way: Option<String>,
    /// Its pull request.
    pub pr: Option<u64>,
    /// How it stands.
    pub stand: IssueSummaryState,
    /// Each phase.
    pub rows: Vec<SummaryRow>,
    /// What is left to be looked at, in the words of the issue.
    pub pending: Vec<String>,
    /// Why it stopped, in one line.
    pub why: Option<String>,
    /// What to do next.
    pub next: String,
}

/// A phase of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// Its name.
    pub phase: &'static str,
    /// What came of it.
    pub result: &'static str,
    /// What is worth knowing.
    pub notes: String,
    /// What its runs used.
    pub usage: AgentUsage,
}

impl Summary {
    /// In one line.
    #[must_use]
    pub fn render_banner(&self) -> String {
        let number = self.number;
        match &self.stand {
            IssueSummaryState::Complete => format!("auto #{number} complete"),
            IssueSummaryState::Partial => format!("auto #{number} partial success: opportunistic pending"),
            IssueSummaryState::Stopped { at } => format!("auto #{number} stopped at {at}"),
            IssueSummaryState::NeedsPerson { at } => {
                format!("auto #{number} stopped at {at}: needs a person")
            }
            IssueSummaryState::Waits { what } => format!("auto #{number} waits for {what}"),
            IssueSummaryState::UnderWay => format!("auto #{number} is not through yet"),
        }
    }
}

/// What became of the issue of a task; none if it follows none.
#[must_use]
pub fn summarize_issue(task: &Task, progress: &IssueProgress) -> Option<Summary> {
    let number = IssueRef::from_source(&task.spec.source)?.number;
    let issue = task.issue.as_deref()?;
    let at = progress.current_phase().unwrap_or("the beginning");
    let (stand, why) = summary_state(task, issue, at);
    let rows = progress.phase_rows();
    let rows = rows.iter().map(|row| {
        let result = match row.mark {
            PhaseStatus::NotRun => "-",
            PhaseStatus::Done if row.phase == IssuePhase::Verify.word() => match stand {
                _ if !issue.wishes.accept && issue.accepted.is_none() => "left",
                IssueSummaryState::Partial => "pending",
                _ => "done",
            },
            PhaseStatus::Done => "done",
            PhaseStatus::Stopped => "stopped",
            // It was sent back to an earlier phase, and has not come here again.
            PhaseStatus::UnderWay
                if matches!(
                    stand,
                    IssueSummaryState::Stopped { .. } | IssueSummaryState::NeedsPerson { .. }
                ) =>
            {
                "to do again"
            }
            PhaseStatus::UnderWay => "under way",
        };
        SummaryRow { phase: row.phase, result, notes: row.notes_text(), usage: row.usage }
    });
    let rows = rows.collect();
    let pending =
        if stand == IssueSummaryState::Partial || matches!(stand, IssueSummaryState::NeedsPerson { .. }) {
            pending_criteria(issue)
        } else {
            Vec::new()
        };
    Some(Summary {
        number,
        task: task.id,
        title: task.spec.title.clone(),
        way: progress.routing_decision().map(super::RoutingDecision::label),
        pr: progress.pr(),
        rows,
        next: next(number, task, issue, &stand),
        stand,
        pending,
        why,
    })
}

fn summary_state(task: &Task, issue: &Pipeline, at: &'static str) -> (IssueSummaryState, Option<String>) {
    match &task.state {
        TaskState::Ended(Ending { kind: EndKind::Done, .. }) => (landed_state(issue), None),
        TaskState::Ended(ending) => {
            let line = first_words(&ending.detail).unwrap_or_else(|| ending.code.word().to_owned());
            let why = Some(match describe_unmet_criteria(task) {
                Some(unmet) => format!("{line}; {unmet}"),
                None => line,
            });
            let exhausted = issue
                .accepted
                .as_ref()
                .is_some_and(|accepted| matches!(accepted.outcome, VerifyOutcome::Exhausted { .. }));
            match ending.code {
                EndCode::AcceptanceFailed if exhausted => (IssueSummaryState::NeedsPerson { at }, why),
                _ => (IssueSummaryState::Stopped { at }, why),
            }
        }
        TaskState::Waiting { wait, .. } => (IssueSummaryState::Waits { what: describe_wait(wait) }, None),
        TaskState::Review { .. } => (IssueSummaryState::Waits { what: "your review".to_owned() }, None),
        TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } => {
            (IssueSummaryState::UnderWay, None)
        }
    }
}

/// The first line of a text; where that only announces the next ones, they belong to it.
fn first_words(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let rest: Vec<&str> = lines.take(NAMED_MAX).map(|line| line.trim_start_matches("- ")).collect();
    let announces = first.ends_with(':') && !rest.is_empty();
    Some(if announces { format!("{first} {}", rest.join("; ")) } else { first.to_owned() })
}

fn landed_state(issue: &Pipeline) -> IssueSummaryState {
    match issue.accepted.as_ref().map(|accepted| &accepted.outcome) {
        Some(VerifyOutcome::Done) => IssueSummaryState::Complete,
        Some(
            VerifyOutcome::LeftOver(_)
            | VerifyOutcome::Waiting
            | VerifyOutcome::Unsure
            | VerifyOutcome::Reopen { .. }
            | VerifyOutcome::Exhausted { .. },
        ) => IssueSummaryState::Partial,
        // Found done by somebody else.
        None if issue.wishes.accept => IssueSummaryState::Complete,
        None => IssueSummaryState::Partial,
    }
}

/// Whether a task is done and its issue is not: it landed, and its acceptance is left to be looked at.
#[must_use]
pub fn is_partial(task: &Task) -> bool {
    let done = matches!(task.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
    done && task.issue.is_some() && !is_accepted(task)
}

/// Whether nothing is left to be done by the task of an issue, not even to look at its acceptance.
#[must_use]
pub fn is_through(task: &Task) -> bool {
    let settled =
        matches!(task.state, TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }));
    settled && !is_partial(task)
}

/// Whether an issue is another base's to look at, by the bases it was verified on; none is the project's own. Where nobody told
/// anything, it is of the project's own.
#[must_use]
pub fn is_of_another_base(verified_on: &[Option<String>], here: Option<&str>) -> bool {
    let ours = verified_on.iter().any(|side| side.as_deref() == here);
    !ours && (here.is_some() || !verified_on.is_empty())
}

/// That it had landed and what did not hold then, if it was worked on once more because of that.
#[must_use]
pub fn describe_unmet_criteria(task: &Task) -> Option<String> {
    let landed = task.landed_before.last()?;
    let accepted = task.issue.as_ref()?.accepted.as_ref()?;
    let failed = accepted.items.iter().filter(|(_, result, _)| *result == VerifyResult::Fail);
    let words: Vec<String> = failed.map(|(words, ..)| format!("`{words}`")).collect();
    let again = !words.is_empty() && task.landed.is_none();
    again.then(|| {
        format!(
            "it had landed as {}, and {} did not hold",
            landed.commit.short_hash(),
            join_first_items(&words)
        )
    })
}

/// What was left of the issue of a task that is done when somebody last looked, and what closes it.
#[must_use]
pub fn describe_left_open(task: &Task) -> Option<String> {
    let number = IssueRef::from_source(&task.spec.source)?.number;
    let issue = task.issue.as_deref().filter(|_| is_partial(task))?;
    let (left, next) =
        (join_first_items(&pending_criteria(issue)), next(number, task, issue, &IssueSummaryState::Partial));
    Some(format!("issue #{number} was left open for this: {left}; {next}"))
}

/// That somebody closed an issue while its task was at it.
#[must_use]
pub fn explain_issue_closed(number: u64, closed: IssueResolution) -> String {
    format!("#{number} was closed as {} meanwhile", closed.label())
}

/// What lets a task of an issue go on that stopped, in a way that works; none if it follows no issue.
#[must_use]
pub fn suggest_resume(task: &Task) -> Option<String> {
    let number = IssueRef::from_source(&task.spec.source).filter(|_| task.issue.is_some())?.number;
    Some(match &task.state {
        TaskState::Ended(ending) if was_closed(number, ending) => {
            format!("`landfall issue reopen {number}`, then `landfall auto {number}` continues from there")
        }
        TaskState::Ended(ending) if ending.code == EndCode::NothingChanged => format!(
            "`landfall auto --resume {number}` has its agent try again; where nothing is left to do, `landfall issue close {number}`, \
             then `landfall auto {number}` verifies it"
        ),
        TaskState::Ended(ending) if ending.code == EndCode::AcceptanceFailed => {
            format!("change the work or the issue first, then `landfall auto --resume {number}` looks again")
        }
        _ => format!("`landfall auto --resume {number}` continues from there"),
    })
}

/// Whether a task stopped because somebody closed its issue: `landfall auto` refuses that one, or finds it done. The journal says so only in the words
/// we wrote there.
fn was_closed(number: u64, ending: &Ending) -> bool {
    let said = |closed| ending.detail.starts_with(&explain_issue_closed(number, closed));
    ending.code == EndCode::Tracker
        && [IssueResolution::Done, IssueResolution::NotPlanned].into_iter().any(said)
}

/// Criteria that are named in a sentence; the others are counted.
const NAMED_MAX: usize = 3;

fn join_first_items(words: &[String]) -> String {
    let some = words[..words.len().min(NAMED_MAX)].join("; ");
    match words.len().saturating_sub(NAMED_MAX) {
        0 => some,
        more => format!("{some}; and {more} more"),
    }
}

fn describe_wait(wait: &WaitReason) -> String {
    match wait {
        WaitReason::Blockers { by } => by.join(", "),
        WaitReason::Parts => "the issues it is made of".to_owned(),
        WaitReason::Question { text } => {
            format!("your answer to: {}", text.lines().next().unwrap_or_default())
        }
        WaitReason::Backoff { cause, .. } => cause.lines().next().unwrap_or_default().to_owned(),
        WaitReason::Quota { .. } => "an account's allowance".to_owned(),
        WaitReason::Login { account, .. } => format!("a login of `{account}`"),
        WaitReason::Budget { what, .. } => format!("a budget ({what})"),
        WaitReason::Disk { .. } => "room on the disk".to_owned(),
        WaitReason::Pause => "your permission to continue".to_owned(),
        WaitReason::Conflict { .. } => "a person who resolves its conflict with the base".to_owned(),
        WaitReason::GateBroken { .. } => "checks that pass on the base".to_owned(),
        WaitReason::Dependency(_) => "other tasks".to_owned(),
        WaitReason::Slot | WaitReason::Turn(_) => "a slot".to_owned(),
    }
}

fn pending_criteria(issue: &Pipeline) -> Vec<String> {
    match &issue.accepted {
        Some(accepted) => {
            let holds = |result: VerifyResult, evidence: &str| {
                result == VerifyResult::Pass || evidence.starts_with(ON_TRUST)
            };
            let left = accepted.items.iter().filter(|(_, result, evidence)| !holds(*result, evidence));
            left.map(|(words, result, _)| format!("{words} ({})", result.word())).collect()
        }
        None => vec!["its acceptance criteria: nobody has looked at them".to_owned()],
    }
}

fn next(number: u64, task: &Task, issue: &Pipeline, stand: &IssueSummaryState) -> String {
    let id = task.id;
    match stand {
        IssueSummaryState::Complete => format!("`landfall show {id}` says how it went"),
        IssueSummaryState::Partial if issue.accepted.is_none() => {
            format!("`landfall auto {number}` looks at its acceptance")
        }
        IssueSummaryState::Partial => {
            format!(
                "look at what is left; `landfall issue tick {number} BOX` ticks it, and `landfall auto {number}` looks again and closes it"
            )
        }
        IssueSummaryState::Stopped { .. } => {
            let again = suggest_resume(task).expect("it follows an issue, or it had no summary");
            format!("{again}; `landfall log {id}` shows its history")
        }
        IssueSummaryState::NeedsPerson { .. } => format!(
            "read what does not hold, change the work or the issue, then `landfall auto --resume {number}`"
        ),
        IssueSummaryState::Waits { .. } => next_of_waiting(number, task),
        IssueSummaryState::UnderWay => format!("`landfall auto --resume {number}` continues"),
    }
}

/// What ends a wait comes first: going on before that only waits again.
fn next_of_waiting(number: u64, task: &Task) -> String {
    let id = task.id;
    let resume = format!("`landfall auto --resume {number}`");
    let wait = match &task.state {
        TaskState::Waiting { wait, .. } => wait,
        TaskState::Review { .. } => {
            return format!(
                "`landfall diff {id}` shows it, `landfall answer {id} approve` lets it land; then {resume}"
            );
        }
        TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } | TaskState::Ended(_) => {
            return format!("{resume} continues");
        }
    };
    match wait {
        WaitReason::Blockers { by } => next_of_blocked(number, by),
        WaitReason::Question { .. } => format!("`landfall answer {id} \"…\"` answers it; then {resume}"),
        WaitReason::Login { account, .. } => {
            format!("log in to `{account}`, then `landfall answer {id} done`; then {resume}")
        }
        WaitReason::Conflict { .. } => {
            format!("`landfall why {id}` says how the conflict is resolved; then {resume}")
        }
        WaitReason::GateBroken { .. } => format!("mend the check on the base; then {resume}"),
        WaitReason::Disk { .. } => format!("make room on the disk; then {resume}"),
        WaitReason::Dependency(_) => {
            format!("`landfall run` does the others first; `landfall why {id}` names them; then {resume}")
        }
        WaitReason::Parts
        | WaitReason::Backoff { .. }
        | WaitReason::Quota { .. }
        | WaitReason::Budget { .. }
        | WaitReason::Pause
        | WaitReason::Slot
        | WaitReason::Turn(_) => format!("{resume} continues; `landfall why {id}` says what it waits for"),
    }
}

/// What is done first about an issue that waits for others: those of the same tracker can be done with it.
fn next_of_blocked(number: u64, by: &[String]) -> String {
    let here: Vec<&str> = by.iter().filter_map(|it| it.strip_prefix('#')).collect();
    match here.len() == by.len() && !here.is_empty() {
        true => format!(
            "`landfall auto --batch {} {number}` does what it waits for first, and then #{number}",
            here.join(" ")
        ),
        false => {
            format!("once {} is done, `landfall auto --resume {number}` continues", by.join(" and "))
        }
    }
}
