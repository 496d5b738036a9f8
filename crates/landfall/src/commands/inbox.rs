//! `landfall inbox`: everything that waits for a person.

use landfall_api::{
    Action, Inbox, InboxAsked, InboxKind, InboxOrder, Request, ReviewAsked, ReviewSaid, TypedService,
    WireTaskId,
};
use landfall_text::control_chars::escape_line;
use landfall_text::quote_shell_word;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::tone::{TextTone, paint_text};

/// Show everything that waits for you
///
/// Questions, reviews, conflicts, blocked and failed tasks, and landed issues with acceptance criteria to confirm.
#[derive(clap::Args)]
pub struct Args {
    /// Only items of this task
    task: Option<WireTaskId>,

    /// Newest first, instead of most urgent first
    #[arg(long)]
    newest: bool,

    /// Maximum number of items
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, newest, limit } = args;
    let order = if newest { InboxOrder::Newest } else { InboxOrder::Urgent };
    let found = context.open_service()?.inbox(InboxAsked { order, kinds: Vec::new(), task, limit })?;
    context.print_answer(&found, render_inbox)?;
    Ok(CliExit::Ok)
}

fn render_inbox(found: &Inbox) -> String {
    if found.items.is_empty() {
        return "nothing waits for you\n".to_owned();
    }
    let mut text = String::new();
    for item in &found.items {
        let task = item.task.map(|task| format!("{task}  ")).unwrap_or_default();
        let since = landfall_text::format_local(item.since_ms);
        let kind = paint_text(kind_tone(item.kind), item.kind.word());
        text.push_str(&format!("{task}{kind}  {}  since {since}\n", escape_line(&item.title)));
        for line in item.text.lines().chain(item.findings.iter().map(String::as_str)) {
            text.push_str(&format!("  {}\n", escape_line(line)));
        }
        if let Some(reply) = &item.reply {
            text.push_str(&format!("  the agent says: {}\n", escape_line(reply)));
        }
        if let Some(until) = item.until_ms {
            text.push_str(&format!(
                "  until {}, then {}\n",
                landfall_text::format_local(until),
                escape_line(&item.overdue)
            ));
        }
        let commands: Vec<(String, &str)> = item
            .actions
            .iter()
            .filter_map(|action| Some((action_command(action)?, action.label.as_str())))
            .collect();
        let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
        for (command, label) in &commands {
            text.push_str(&format!(
                "    {}  {}\n",
                escape_line(&format!("{command:<width$}")),
                paint_text(TextTone::Dim, &escape_line(label))
            ));
        }
    }
    if found.more > 0 {
        text.push_str(&format!("and {} more\n", found.more));
    }
    text
}

fn kind_tone(kind: InboxKind) -> TextTone {
    match kind {
        InboxKind::Escalation | InboxKind::Failed | InboxKind::Blocked => TextTone::Bad,
        InboxKind::Question | InboxKind::Login | InboxKind::Conflict | InboxKind::Review => TextTone::Warn,
        InboxKind::Owed | InboxKind::Acceptance | InboxKind::Paused => TextTone::Dim,
    }
}

/// The command that does the same as an action; none where only the pages can.
fn action_command(action: &Action) -> Option<String> {
    let list = |tasks: &[WireTaskId]| tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let words = |text: &str| if text.is_empty() { "\"…\"".to_owned() } else { quote_shell_word(text) };
    let request = Request::of_words(&action.op, &action.asked).ok().flatten()?;
    Some(match request {
        Request::Answer(asked) => format!("landfall answer {} {}", asked.task, words(&asked.text)),
        Request::Retry(asked) if asked.fresh => format!("landfall retry {} --fresh", list(&asked.tasks)),
        Request::Retry(asked) => format!("landfall retry {}", list(&asked.tasks)),
        Request::Cancel(asked) => format!("landfall cancel {}", list(&asked.tasks)),
        Request::Accept(asked) => format!("landfall accept {} --already-done \"…\"", list(&asked.tasks)),
        Request::Release(asked) => format!("landfall task release {}", list(&asked.tasks)),
        Request::Review(ReviewAsked { tasks, said }) => {
            let said = match said {
                ReviewSaid::Approve { .. } => "approve",
                ReviewSaid::Changes { .. } => "changes \"…\"",
                ReviewSaid::Reject { .. } => "reject \"…\"",
                ReviewSaid::Skip => "skip",
                ReviewSaid::Defer => "defer",
            };
            format!("landfall review {} {said}", list(&tasks))
        }
        Request::IssueTick(asked) => format!("landfall issue tick {} {}", asked.issue.0, words(&asked.named)),
        Request::Resume(_) => "landfall run resume".to_owned(),
        Request::SprintResume(_) => "landfall sprint resume".to_owned(),
        Request::SprintCancel(_) => "landfall sprint cancel".to_owned(),
        Request::QueueResume(_) => "landfall queue resume".to_owned(),
        Request::QueueEject(asked) => format!("landfall queue eject {}", asked.task),
        _ => return None,
    })
}
