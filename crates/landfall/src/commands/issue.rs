//! `landfall issue`: the issues of the project's tracker, by hand.

use std::path::PathBuf;

use landfall_api::{
    ImprovementList, ImprovementsFile, IssueAsked, IssueChanged, IssueClose, IssueComment, IssueDetail,
    IssueEdit, IssueEventsAsked, IssueLine, IssueList, IssueMade, IssueNew, IssueNumber, IssueSay,
    IssueState, IssueTick, IssuesAsked, Nothing, PullRequestDetail, Size, TypedService as _, UnreadableIssue,
};
use landfall_text::control_chars::{escape_block, escape_line};
use landfall_text::{format_local, pluralize};

use super::{reconcile, verify, words};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_json_line, print_message};
use crate::table::Table;

const EVENTS_AT_ONCE: u32 = 10_000; // lines of a page

/// Create, show and change issues of the tracker
///
/// The tracker is the one that landfall.toml names. The default is files in Landfall's state folder.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: IssueSubcommand,
}

#[derive(clap::Subcommand)]
enum IssueSubcommand {
    #[command(flatten)]
    Tracker(TrackerAction),
    Reconcile(reconcile::Args),
    Verify(verify::Args),
}

/// What is asked of the tracker itself.
#[derive(clap::Subcommand)]
enum TrackerAction {
    /// Create an issue and print its number
    New {
        /// Title
        title: String,
        /// Description
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        body: Option<String>,
        /// File with the description; `-` reads stdin
        #[arg(long, value_name = "FILE", conflicts_with = "body")]
        body_file: Option<PathBuf>,
        /// Label; may be repeated
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// Size: XS, S, M, L or XL
        #[arg(long, value_parser = words::size)]
        size: Option<Size>,
        /// Parent issue
        #[arg(long, value_name = "N", value_parser = number)]
        parent: Option<u64>,
        /// Issue that blocks it; may be repeated
        #[arg(long, value_name = "N", value_parser = number)]
        blocked_by: Vec<u64>,
    },
    /// List open issues, newest first
    List {
        /// Include closed issues
        #[arg(long)]
        all: bool,
        /// Only issues with this label; may be repeated
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// Maximum number of issues
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show an issue with its sub-issues, blockers and comments
    Show {
        /// Issue: `12` or `#12`
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
    },
    /// Show a pull request with its reviews and checks
    Pr {
        /// Pull request, or an issue to show the pull request of its branch
        #[arg(value_name = "N", value_parser = number)]
        number: u64,
    },
    /// Change an issue; options you leave out keep their value
    #[command(group(clap::ArgGroup::new("what").required(true).multiple(true)
        .args(["title", "body", "body_file", "size", "labels", "unlabel", "blocked_by", "unblock"])))]
    Edit {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// New title
        #[arg(long)]
        title: Option<String>,
        /// New description
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        body: Option<String>,
        /// File with the description; `-` reads stdin
        #[arg(long, value_name = "FILE", conflicts_with = "body")]
        body_file: Option<PathBuf>,
        /// Size: XS, S, M, L or XL
        #[arg(long, value_parser = words::size)]
        size: Option<Size>,
        /// Label to add; may be repeated
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// Label to remove; may be repeated
        #[arg(long, value_name = "LABEL")]
        unlabel: Vec<String>,
        /// Issue that blocks it from now on; may be repeated
        #[arg(long, value_name = "N", value_parser = number)]
        blocked_by: Vec<u64>,
        /// Issue that no longer blocks it; may be repeated
        #[arg(long, value_name = "N", value_parser = number)]
        unblock: Vec<u64>,
    },
    /// Tick a checkbox of an issue
    Tick {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// Checkbox: its number, from 1, or a part of its text
        #[arg(value_name = "BOX")]
        named: String,
        /// Untick it instead
        #[arg(long)]
        untick: bool,
    },
    /// Comment on an issue
    Comment {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// Comment; `-` reads stdin
        #[arg(value_name = "TEXT", required = true)]
        words: Vec<String>,
    },
    /// Close an issue as done
    Close {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// Close it as not planned
        #[arg(long)]
        not_planned: bool,
    },
    /// Reopen an issue
    Reopen {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
    },
    /// Add and remove labels
    #[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["add", "remove"])))]
    Label {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// Label to add; may be repeated
        #[arg(long, value_name = "LABEL")]
        add: Vec<String>,
        /// Label to remove; may be repeated
        #[arg(long, value_name = "LABEL")]
        remove: Vec<String>,
    },
    /// Print the events of issues as JSON lines, oldest first
    Events {
        /// Issues; the default is every issue that Landfall worked on
        #[arg(value_name = "N", value_parser = number)]
        issues: Vec<u64>,
    },
    /// List improvements that agents propose, and create issues from them
    Proposals {
        /// Create an issue from the proposal with this id, unless it exists; may be repeated
        #[arg(long, value_name = "ID")]
        file: Vec<String>,
    },
    /// Set the size of an issue
    Size {
        /// Issue
        #[arg(value_name = "N", value_parser = number)]
        issue: u64,
        /// Size: XS, S, M, L or XL
        #[arg(value_parser = words::size)]
        size: Size,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        IssueSubcommand::Tracker(action) => ask_tracker(action, context),
        IssueSubcommand::Reconcile(args) => reconcile::run(args, context),
        IssueSubcommand::Verify(args) => verify::run(args, context),
    }
}

fn ask_tracker(action: TrackerAction, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    let changed = |changed: IssueChanged| context.print_answer(&changed, changed_text);
    match action {
        TrackerAction::New { title, body, body_file, labels, size, parent, blocked_by } => {
            let body = words::read_text_or_file(context, body, body_file.as_deref())?.unwrap_or_default();
            let asked = IssueNew {
                title,
                body,
                labels,
                size,
                parent: parent.map(IssueNumber),
                blocked_by: issue_numbers(blocked_by),
            };
            context.print_answer(&service.issue_new(asked)?, made_text)?;
        }
        TrackerAction::List { all, labels, limit } => {
            let list = service.issue_list(IssuesAsked { all, labels, limit })?;
            context.print_answer(&list, list_text)?;
            if !list.unreadable.is_empty() {
                let (what, hint) = unreadable_issues_notice(&list.unreadable);
                return Err(CommandFailure::new(CliExit::Machine, what).with_hint(hint));
            }
            if !context.json && list.issues.is_empty() {
                let place = escape_line(&list.place);
                print_message(&format!("no issues in {place}; `landfall issue new \"…\"` creates one"));
            }
        }
        TrackerAction::Show { issue } => {
            context.print_answer(&*service.issue_show(issue_asked(issue))?, detail_text)?
        }
        TrackerAction::Pr { number } => {
            context.print_answer(&*service.issue_pull(issue_asked(number))?, pull_text)?
        }
        TrackerAction::Edit { issue, title, body, body_file, size, labels, unlabel, blocked_by, unblock } => {
            let body = words::read_text_or_file(context, body, body_file.as_deref())?;
            let (add, remove) = (labels, unlabel);
            let (block, unblock) = (issue_numbers(blocked_by), issue_numbers(unblock));
            let issue = IssueNumber(issue);
            changed(service.issue_edit(IssueEdit {
                issue,
                title,
                body,
                size,
                add,
                remove,
                block,
                unblock,
            })?)?;
        }
        TrackerAction::Tick { issue, named, untick } => {
            let asked = IssueTick { issue: IssueNumber(issue), named, open: untick };
            changed(service.issue_tick(asked)?)?;
        }
        TrackerAction::Comment { issue, words } => {
            let text = words::read_words(context, &words)?;
            changed(service.issue_say(IssueSay { issue: IssueNumber(issue), text })?)?;
        }
        TrackerAction::Close { issue, not_planned } => {
            changed(service.issue_close(IssueClose { issue: IssueNumber(issue), not_planned })?)?;
        }
        TrackerAction::Reopen { issue } => changed(service.issue_reopen(issue_asked(issue))?)?,
        TrackerAction::Label { issue, add, remove } => {
            let edit = IssueEdit { add, remove, ..IssueEdit::for_issue(IssueNumber(issue)) };
            changed(service.issue_edit(edit)?)?;
        }
        TrackerAction::Events { issues } => {
            let service = context.open_service()?;
            let mut asked = IssueEventsAsked { issue: issues, after: None, limit: EVENTS_AT_ONCE };
            loop {
                let page = service.issue_events(asked.clone())?;
                page.events.iter().try_for_each(print_json_line)?;
                asked.after = page.next;
                if asked.after.is_none() {
                    break;
                }
            }
        }
        TrackerAction::Proposals { file } => {
            let service = context.open_service()?;
            let list = match file.is_empty() {
                true => service.improvements(Nothing {})?,
                false => service.improvements_file(ImprovementsFile { ids: file })?,
            };
            context.print_answer(&list, proposals_text)?;
            if !context.json && list.proposals.is_empty() {
                print_message(
                    "nobody has proposed anything: neither in a spec that landed nor by recoveries",
                );
            }
        }
        TrackerAction::Size { issue, size } => {
            let edit = IssueEdit { size: Some(size), ..IssueEdit::for_issue(IssueNumber(issue)) };
            changed(service.issue_edit(edit)?)?;
        }
    }
    Ok(CliExit::Ok)
}

fn issue_asked(issue: u64) -> IssueAsked {
    IssueAsked { issue: IssueNumber(issue) }
}

fn issue_numbers(all: Vec<u64>) -> Vec<IssueNumber> {
    all.into_iter().map(IssueNumber).collect()
}

/// `12`, or `#12`.
pub fn number(text: &str) -> Result<u64, String> {
    let read = text.parse::<IssueNumber>();
    read.map(|number| number.0).map_err(|_| "the number of an issue is written 12 or #12".to_owned())
}

/// What is said about files that cannot be read, once the others were shown.
fn unreadable_issues_notice(all: &[UnreadableIssue]) -> (String, String) {
    let lines: Vec<String> = all.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
    let what = format!("{} cannot be read: {}", pluralize(all.len() as u64, "issue"), lines.join("; "));
    (what, "put the file right; the others are listed".to_owned())
}

fn made_text(made: &IssueMade) -> String {
    format!("#{} {}\n", made.issue.number, escape_line(&made.issue.title))
}

fn changed_text(changed: &IssueChanged) -> String {
    format!("{}\n", escape_line(&changed.text))
}

fn list_text(list: &IssueList) -> String {
    if list.issues.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["ISSUE", "STATE", "SIZE", "LABELS", "TITLE"]);
    for issue in &list.issues {
        table.add_row([
            &format!("#{}", issue.number),
            issue.state.word(),
            issue.size.map_or("", |size| size.word()),
            &visible_labels(issue).join(", "),
            &issue.title,
        ]);
    }
    table.to_text()
}

/// Its labels, without those that a column of their own says.
fn visible_labels(issue: &IssueLine) -> Vec<String> {
    let sized = |label: &str| {
        issue.size.is_some_and(|size| label.eq_ignore_ascii_case(&format!("size/{}", size.word())))
    };
    issue.labels.iter().filter(|label| !sized(label)).cloned().collect()
}

fn pull_text(pull: &PullRequestDetail) -> String {
    let short = |commit: &str| commit.chars().take(10).collect::<String>();
    let mut text = format!("#{} {}\n", pull.number, escape_line(&pull.title));
    let mut about = vec![pull.state.clone()];
    about.extend(pull.merged.as_ref().map(|commit| format!("as {}", short(commit))));
    about.extend(pull.author.as_ref().map(|author| format!("by {author}")));
    about.push(format!("made {}", format_local(pull.created_ms)));
    text += &format!("{}\n", escape_line(&about.join(", ")));
    let named = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "?".to_owned());
    let (branch, base) = (named(&pull.branch), named(&pull.base));
    text += &format!("{}\n", escape_line(&format!("{branch} → {base}, head {}", short(&pull.head))));
    text += &format!("{}\n", escape_line(&pull.url));
    if !pull.body.trim().is_empty() {
        text += &format!("\n{}\n", escape_block(pull.body.trim_end()));
    }
    text += if pull.reviews.is_empty() { "\nno reviews\n" } else { "\nreviews\n" };
    for review in &pull.reviews {
        let author = review.author.as_deref().unwrap_or("somebody");
        let of = review.commit.as_deref().map(|commit| format!(" of {}", short(commit))).unwrap_or_default();
        text += &escape_line(&format!("   {author}: {}{of}", review.verdict));
        text += "\n";
        for line in review.body.trim().lines() {
            text += &format!("      {}\n", escape_line(line));
        }
    }
    text += if pull.checks.is_empty() { "\nno checks of a forge\n" } else { "\nchecks\n" };
    for check in &pull.checks {
        text += &format!("   {}: {}\n", escape_line(&check.name), check.state);
    }
    text + &comments_text(&pull.comments)
}

fn comments_text(comments: &[IssueComment]) -> String {
    let mut text = String::new();
    for comment in comments {
        let author = comment.author.as_deref().unwrap_or("somebody");
        text += &format!("\n{}, {}\n", escape_line(author), format_local(comment.at_ms));
        text += &format!("{}\n", escape_block(comment.body.trim_end()));
    }
    text
}

fn proposals_text(list: &ImprovementList) -> String {
    if list.proposals.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["ID", "TIER", "ISSUE", "FROM", "TITLE"]);
    for it in &list.proposals {
        let issue = it.issue.map(|number| format!("#{number}")).unwrap_or_default();
        table.add_row([&it.id, &it.tier, &issue, &it.from, &it.title]);
    }
    table.to_text()
}

/// How a part stands: `open, code`, `done`.
fn state_and_phase(issue: &IssueLine) -> String {
    let state = issue.state.word().replace('-', " ");
    let phase = issue.labels.iter().find_map(|label| label.strip_prefix("phase/"));
    match phase.filter(|_| issue.state == IssueState::Open) {
        Some(phase) => format!("{state}, {}", escape_line(phase)),
        None => state,
    }
}

fn detail_text(detail: &IssueDetail) -> String {
    let issue = &detail.issue;
    let mut text = format!("#{} {}\n", issue.number, escape_line(&issue.title));
    let mut about = vec![issue.state.word().to_owned()];
    about.extend(issue.size.map(|size| format!("size {}", size.word())));
    about.extend(issue.author.as_ref().map(|author| format!("by {author}")));
    about.push(format!("made {}", format_local(detail.created_ms)));
    text += &format!("{}\n", escape_line(&about.join(", ")));
    let labels = visible_labels(issue);
    if !labels.is_empty() {
        text += &format!("labels: {}\n", escape_line(&labels.join(", ")));
    }
    if let Some(parent) = &detail.parent {
        text += &format!("part of {}\n", escape_line(parent));
    }
    text += &format!("{}\n", escape_line(&issue.url));
    if !detail.body.trim().is_empty() {
        text += &format!("\n{}\n", escape_block(detail.body.trim_end()));
    }
    if !detail.children.is_empty() {
        let is_open = |child: &&IssueLine| child.state == IssueState::Open;
        let open = detail.children.iter().filter(is_open).count();
        let many = detail.children.len();
        text += &format!("\nparts: {} of {many} are closed\n", many - open);
        for child in &detail.children {
            let mark = if is_open(&child) { " " } else { "x" };
            text += &format!(
                "   [{mark}] #{} {} ({})\n",
                child.number,
                escape_line(&child.title),
                state_and_phase(child)
            );
        }
    }
    if !detail.blocked_by.is_empty() {
        text += "\nwaits for\n";
        for blocker in &detail.blocked_by {
            let state = if blocker.open { "open" } else { "closed" };
            text += &format!("   {} ({state})\n", escape_line(&blocker.issue));
        }
    }
    text += &comments_text(&detail.comments);
    for note in &detail.notes {
        text += &format!("\n{}\n", escape_line(note));
    }
    text
}
