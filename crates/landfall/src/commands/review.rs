//! `landfall review`: what a person looks at, and what they say of it.

use landfall_api::{
    Nothing, Redo, RedoHint, ReviewAsked, ReviewLine, ReviewList, ReviewSaid, TypedService, WireTaskId,
};
use landfall_text::control_chars::escape_line;

use super::named::NameLookup;
use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// List reviews, approve one or request changes
///
/// `landfall review` lists them; `landfall review T7 approve` lets the task land; `landfall review T7 changes "…"` sends it back.
#[derive(clap::Args)]
#[command(disable_help_subcommand = true)]
pub struct Args {
    /// Tasks, such as T7 or T7,T8; `list`, the default, lists all reviews
    #[arg(value_name = "TASK", value_parser = |text: &str| tasks(text, &NameLookup::default()), default_value = "list", hide_default_value = true)]
    tasks: TaskSelection,

    #[command(subcommand)]
    decision: Option<ReviewSubcommand>,
}

#[derive(Debug, Clone)]
pub struct TaskSelection(Vec<WireTaskId>);

pub fn tasks(text: &str, lookup: &NameLookup) -> Result<TaskSelection, String> {
    if text == "list" {
        return Ok(TaskSelection(Vec::new()));
    }
    text.split(',')
        .map(|name| super::named::parse_task(name, lookup))
        .collect::<Result<_, _>>()
        .map(TaskSelection)
}

#[derive(clap::Subcommand)]
enum ReviewSubcommand {
    /// Approve: the task lands, or the landed work is signed off
    Approve {
        /// Note that is kept with the review
        note: Vec<String>,
    },
    /// Request changes; landed work gets a follow-up task
    Changes {
        /// What is wrong; `-` reads stdin
        #[arg(value_name = "TEXT")]
        words: Vec<String>,
        /// Issue found: a name that `landfall review` lists, or a few words; may be repeated
        #[arg(long, value_name = "ISSUE")]
        issue: Vec<String>,
        /// Start over; the work so far is kept
        #[arg(long, conflicts_with = "from")]
        fresh: bool,
        /// Continue from the work of this attempt, such as a2
        #[arg(long, value_name = "ATTEMPT", value_parser = attempt)]
        from: Option<u32>,
        /// Work on it before other tasks (`next`) or after them (`later`)
        #[arg(long, value_enum)]
        hint: Option<PriorityHint>,
    },
    /// Reject: the task does not land, or landed work is rolled back by a task
    Reject {
        /// Reason
        #[arg(required = true, value_name = "WHY")]
        note: Vec<String>,
    },
    /// Skip the review
    Skip,
    /// Postpone: the review stays on the list
    Defer,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PriorityHint {
    Next,
    Later,
}

fn attempt(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['a', 'A']).unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is not an attempt such as a2"))
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let tasks = args.tasks.0;
    let said = match (args.decision, tasks.is_empty()) {
        (None, _) => {
            let mut list = context.open_service()?.reviews(Nothing {})?;
            let wanted = |line: &ReviewLine| tasks.is_empty() || tasks.contains(&line.task);
            list.before.retain(wanted);
            list.after.retain(wanted);
            context.print_answer(&list, render_reviews)?;
            return Ok(CliExit::Ok);
        }
        (Some(_), true) => {
            return Err(CommandFailure::usage_error("which task is it about?")
                .with_hint("`landfall review T7 approve`"));
        }
        (Some(decision), false) => to_review_said(decision, context)?,
    };
    let changed = context.open_service()?.review(ReviewAsked { tasks, said })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

fn to_review_said(decision: ReviewSubcommand, context: &CliContext) -> Result<ReviewSaid, CommandFailure> {
    Ok(match decision {
        ReviewSubcommand::Approve { note } => ReviewSaid::Approve { note: note.join(" ") },
        ReviewSubcommand::Changes { words, issue, fresh, from, hint } => ReviewSaid::Changes {
            issues: issue,
            note: match words.as_slice() {
                [only] if only == "-" => words::read_text(context, "-".as_ref())?.trim().to_owned(),
                words => words.join(" "),
            },
            redo: match (fresh, from) {
                (true, _) => Redo::Fresh,
                (false, Some(attempt)) => Redo::From(attempt),
                (false, None) => Redo::Keep,
            },
            hint: hint.map(|hint| match hint {
                PriorityHint::Next => RedoHint::Next,
                PriorityHint::Later => RedoHint::Later,
            }),
        },
        ReviewSubcommand::Reject { note } => ReviewSaid::Reject { note: note.join(" ") },
        ReviewSubcommand::Skip => ReviewSaid::Skip,
        ReviewSubcommand::Defer => ReviewSaid::Defer,
    })
}

fn render_reviews(list: &ReviewList) -> String {
    let mut text = String::new();
    if list.before.is_empty() && list.after.is_empty() {
        return "no review is pending\n".to_owned();
    }
    if !list.before.is_empty() {
        text += "does not land before somebody has looked\n";
        text += &render_review_lines(&list.before);
    }
    if !list.after.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!(
            "{gap}has landed, and somebody is to look when there is time\n{}",
            render_review_lines(&list.after)
        );
    }
    text += "\n`landfall diff T7` shows the change; `landfall review T7 approve`, `changes \"…\"`, `reject \"…\"`, `skip` or `defer` \
             decides\nissues with a name, for `--issue`:\n";
    for issue in &list.issues {
        text += &format!("  {:<12} {}\n", escape_line(&issue.name), escape_line(&issue.text));
    }
    text
}

fn render_review_lines(lines: &[ReviewLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let commit =
            line.commit.as_deref().map(|commit| format!(", as {}", landfall_text::short_commit(commit)));
        text += &format!(
            "  {:<5} {} (since {}{})\n",
            line.task.to_string(),
            escape_line(&line.title),
            landfall_text::format_local(line.since_ms),
            commit.unwrap_or_default()
        );
        for reason in &line.reasons {
            text += &format!("        it {}\n", escape_line(reason));
        }
        for finding in &line.findings {
            text += &format!("        its reviewer: {}\n", escape_line(finding));
        }
        if let Some(reply) = &line.reply {
            text += &format!("        its agent: {}\n", escape_line(reply));
        }
        if line.attempts.len() > 1 {
            let kept: Vec<String> = line.attempts.iter().map(|attempt| format!("a{attempt}")).collect();
            text += &format!("        kept, for `--from`: {}\n", kept.join(", "));
        }
    }
    text
}
