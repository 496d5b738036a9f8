//! `landfall review`: what a person looks at, and what they say of it.

use landfall_api::{Ask, Nothing, Redo, RedoHint, ReviewAsked, ReviewLine, ReviewList, ReviewSaid, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format;
use crate::say::clean;

/// Lists what a person is to look at, or says what is to become of it.
///
/// `landfall review` lists; `landfall review T7 approve` lets it land; `landfall review T7 changes "…"` sends it back.
#[derive(clap::Args)]
#[command(disable_help_subcommand = true)]
pub struct Args {
    /// The tasks, such as T7 or T7,T8; `list`, or nothing, lists what there is to look at.
    #[arg(value_name = "TASK", value_parser = tasks, default_value = "list", hide_default_value = true)]
    tasks: Chosen,

    #[command(subcommand)]
    decision: Option<Decision>,
}

#[derive(Debug, Clone)]
struct Chosen(Vec<TaskId>);

fn tasks(text: &str) -> Result<Chosen, String> {
    if text == "list" {
        return Ok(Chosen(Vec::new()));
    }
    text.split(',').map(super::named::task).collect::<Result<_, _>>().map(Chosen)
}

#[derive(clap::Subcommand)]
enum Decision {
    /// It is good: it lands, or what landed is signed off.
    Approve {
        /// A note that is kept with it.
        note: Vec<String>,
    },
    /// It is to be changed. Landed work is changed by a task of its own.
    Changes {
        /// What is wrong with it; `-` reads stdin.
        #[arg(value_name = "TEXT")]
        words: Vec<String>,
        /// What is wrong with it, by a name that `landfall review` lists, or in a few words; may be given several times.
        #[arg(long, value_name = "ISSUE")]
        issue: Vec<String>,
        /// Begins anew; what is there is kept.
        #[arg(long, conflicts_with = "from")]
        fresh: bool,
        /// Goes on from what this attempt left, such as a2.
        #[arg(long, value_name = "ATTEMPT", value_parser = attempt)]
        from: Option<u32>,
        /// Takes it up before others (`next`), or after them (`later`).
        #[arg(long, value_enum)]
        hint: Option<Hint>,
    },
    /// It is not wanted: it does not land, or what landed is taken back by a task of its own.
    Reject {
        /// Why.
        #[arg(required = true, value_name = "WHY")]
        note: Vec<String>,
    },
    /// Nobody need look.
    Skip,
    /// Not now: it stays on the list.
    Defer,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Hint {
    Next,
    Later,
}

fn attempt(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['a', 'A']).unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is not an attempt such as a2"))
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let tasks = args.tasks.0;
    let said = match (args.decision, tasks.is_empty()) {
        (None, _) => {
            let mut list = context.service()?.reviews(Nothing {})?;
            let wanted = |line: &ReviewLine| tasks.is_empty() || tasks.contains(&line.task);
            list.before.retain(wanted);
            list.after.retain(wanted);
            context.answer(&list, text)?;
            return Ok(Exit::Ok);
        }
        (Some(_), true) => {
            return Err(Failure::usage("which task is it about?").hint("`landfall review T7 approve`"));
        }
        (Some(decision), false) => said(decision, context)?,
    };
    let changed = context.service()?.review(ReviewAsked { tasks, said })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

fn said(decision: Decision, context: &Context) -> Result<ReviewSaid, Failure> {
    Ok(match decision {
        Decision::Approve { note } => ReviewSaid::Approve { note: note.join(" ") },
        Decision::Changes { words, issue, fresh, from, hint } => ReviewSaid::Changes {
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
                Hint::Next => RedoHint::Next,
                Hint::Later => RedoHint::Later,
            }),
        },
        Decision::Reject { note } => ReviewSaid::Reject { note: note.join(" ") },
        Decision::Skip => ReviewSaid::Skip,
        Decision::Defer => ReviewSaid::Defer,
    })
}

fn text(list: &ReviewList) -> String {
    let mut text = String::new();
    if list.before.is_empty() && list.after.is_empty() {
        return "nothing waits for a look\n".to_owned();
    }
    if !list.before.is_empty() {
        text += "does not land before somebody has looked\n";
        text += &lines(&list.before);
    }
    if !list.after.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text +=
            &format!("{gap}has landed, and somebody is to look when there is time\n{}", lines(&list.after));
    }
    text += "\n`landfall diff T7` shows the change; `landfall review T7 approve`, `changes \"…\"`, `reject \"…\"`, `skip` or `defer` \
             decides\nissues with a name, for `--issue`:\n";
    for issue in &list.issues {
        text += &format!("  {:<12} {}\n", clean(&issue.name), clean(&issue.text));
    }
    text
}

fn lines(lines: &[ReviewLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let commit = line.commit.as_deref().map(|commit| format!(", as {}", format::commit(commit)));
        text += &format!(
            "  {:<5} {} (since {}{})\n",
            line.task.to_string(),
            clean(&line.title),
            format::moment(line.since_ms),
            commit.unwrap_or_default()
        );
        for reason in &line.reasons {
            text += &format!("        it {}\n", clean(reason));
        }
        for finding in &line.findings {
            text += &format!("        its reviewer: {}\n", clean(finding));
        }
        if let Some(reply) = &line.reply {
            text += &format!("        its agent: {}\n", clean(reply));
        }
        if line.attempts.len() > 1 {
            let kept: Vec<String> = line.attempts.iter().map(|attempt| format!("a{attempt}")).collect();
            text += &format!("        kept, for `--from`: {}\n", kept.join(", "));
        }
    }
    text
}
