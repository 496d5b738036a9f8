//! `landfall auto`: issues followed from the tracker onto the base, alone or as a batch; and who picks the next task of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landfall_api::{
    AutoReport, FollowedIssue, HaulId, HaulList, IssueReview, IssueStanding, IssueSummariesAsked,
    IssueSummary, IssueWay, IssuesFollow, IssuesFollowed, LeftOutIssue, Mode, Nothing, RunOutcome,
    TypedService, WireTaskId,
};
use landfall_app::run_handle::RunAsked;
use landfall_text::control_chars::escape_line;
use landfall_text::{format_count, format_local, format_usd, pluralize};

mod module_loop;

use super::autopilot;
use super::run::{RunRequest, drive_to_end};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live;
use crate::say::print_message;
use crate::table::Table;

/// Work on issues of the tracker, from triage to verified landing, or on a task module
///
/// `landfall auto 12` works on one issue. Its size decides the route: XS and S land directly on the base, M and L by a reviewed
/// pull request, XL by its sub-issues. `--batch 5` takes the five newest small issues that are triaged; `--batch 12 13 14` takes
/// these. Ctrl-C works as in `landfall run`, and `--resume` continues.
///
/// `landfall auto AiTasks/auth` works on a task module, within limits of its own. `--stop` ends the loop after the step under way,
/// and `--status` shows how far it is.
#[derive(clap::Args)]
pub struct Args {
    /// Issue (`12`) or folder of a task module (`AiTasks/auth`). With `--batch`: how many (`5`), which (`12 13`), or the batch to
    /// resume (`--resume H3`)
    #[arg(value_name = "ISSUE|MODULE")]
    words: Vec<String>,

    /// Land directly on the base, whatever its size
    #[arg(long)]
    patch: bool,

    /// Use a pull request, whatever its size
    #[arg(long)]
    pr: bool,

    /// Review depth of the pull request: `light` or `full`
    #[arg(long, value_name = "DEPTH", value_parser = ["light", "full"])]
    review: Option<String>,

    /// Continue an issue, or the rest of a batch, with the options given earlier
    #[arg(long)]
    resume: bool,

    /// Work on several issues: one number is a count, more are a list of issues
    #[arg(long)]
    batch: bool,

    /// List unfinished batches
    #[arg(long)]
    list: bool,

    /// Never ask; leave acceptance criteria for a person (`phase/verify`)
    #[arg(long)]
    non_interactive: bool,

    /// Show the issues and their routes, and start nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    module: ModuleWords,
}

/// What is wanted of the loop of a module.
#[derive(clap::Args)]
struct ModuleWords {
    /// Start the loop of a module; the default
    #[arg(long, conflicts_with_all = ["stop", "status"])]
    start: bool,

    /// Stop the loop of a module after the step under way
    #[arg(long, conflicts_with = "status")]
    stop: bool,

    /// Show the loop of a module
    #[arg(long)]
    status: bool,

    /// Iterations that the loop of a module may do
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,

    /// Working time that the loop of a module may use, in minutes
    #[arg(long, value_name = "N")]
    minutes: Option<u32>,
}

impl ModuleWords {
    fn are_given(&self) -> bool {
        self.start || self.stop || self.status || self.iterations.is_some() || self.minutes.is_some()
    }
}

/// What was meant.
#[derive(Debug, PartialEq, Eq)]
enum AutoCommand {
    /// Who picks tasks; none: how it is now.
    Pilot(Option<Mode>),
    /// One issue.
    One(u64),
    /// So many of the newest.
    Newest(u32),
    /// These.
    Listed(Vec<u64>),
    /// What is left of a batch; none: of the newest.
    Rest(Option<HaulId>),
    /// Which batches there are.
    Batches,
    /// The loop of the module in this folder.
    Module(String),
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let form = read(&args).map_err(|(what, hint)| CommandFailure::usage_error(what).with_hint(hint))?;
    let mut asked = IssuesFollow {
        way: if args.patch { Some(IssueWay::Patch) } else { args.pr.then_some(IssueWay::Pr) },
        review: args.review.as_deref().map(|depth| match depth {
            "full" => IssueReview::Full,
            _ => IssueReview::Light,
        }),
        leave_acceptance: args.non_interactive,
        resume: args.resume,
        ..IssuesFollow::default()
    };
    match form {
        AutoCommand::Pilot(mode) => return autopilot::show_or_set(mode, context),
        AutoCommand::Module(path) => {
            return module_loop::run(&path, &args.module, args.non_interactive, context);
        }
        AutoCommand::Batches => {
            let list = context.open_service()?.issue_batches(Nothing {})?;
            context.print_answer(&list, batches_text)?;
            if !context.json && list.batches.is_empty() {
                print_message("nothing is left of any batch; `landfall auto --batch 5` starts one");
            }
            return Ok(CliExit::Ok);
        }
        AutoCommand::One(number) => asked.issues = vec![number],
        AutoCommand::Newest(many) => (asked.newest, asked.together) = (Some(many), true),
        AutoCommand::Listed(numbers) => (asked.issues, asked.together) = (numbers, true),
        AutoCommand::Rest(Some(id)) => asked.batch = Some(id),
        AutoCommand::Rest(None) => {
            let newest =
                context.open_service()?.issue_batches(Nothing {})?.batches.first().map(|batch| batch.id);
            let nothing = || {
                CommandFailure::new(CliExit::NotNow, "nothing is left of any batch")
                    .with_hint("`landfall auto --batch 12 13` starts one")
            };
            asked.batch = Some(newest.ok_or_else(nothing)?);
        }
    }
    if args.dry_run {
        context.print_answer(&context.open_service()?.issues_preview(asked)?, preview_text)?;
        return Ok(CliExit::Ok);
    }
    follow_issues(asked, args.non_interactive, context)
}

fn follow_issues(
    asked: IssuesFollow,
    non_interactive: bool,
    context: &CliContext,
) -> Result<CliExit, CommandFailure> {
    let followed = context.open_service()?.issues_follow(asked)?;
    if !context.json {
        print_followed_issues(&followed);
    }
    let tasks: Vec<WireTaskId> = followed.issues.iter().filter_map(|it| it.task).collect();
    let open: Vec<WireTaskId> =
        followed.issues.iter().filter(|it| !it.settled).filter_map(|it| it.task).collect();
    let (run, exit) = if open.is_empty() {
        (None, CliExit::Ok)
    } else {
        let all_over = || Ok(fetch_summaries(context, &tasks)?.iter().all(is_over));
        let driven = drive_or_watch(&open, non_interactive, context, &all_over)?;
        let exit = match driven.interrupted {
            true => CliExit::Interrupted,
            false => driven.run.as_ref().map_or(CliExit::Ok, |(_, exit)| *exit),
        };
        (driven.run.map(|(outcome, _)| outcome), exit)
    };
    let issues = fetch_summaries(context, &tasks)?;
    let report = AutoReport { batch: followed.batch, issues, left_out: followed.left_out.clone(), run };
    context.print_answer(&report, |report| report_text(report, &find_blockers(&followed)))?;
    let gave_up = |issue: &IssueSummary| issue.stand.has_stopped();
    Ok(match report.run.is_none() && exit == CliExit::Ok && report.issues.iter().any(gave_up) {
        true if !open.is_empty() => CliExit::SomeDidNotLand,
        true | false => exit,
    })
}

/// How tasks were driven.
struct DriveResult {
    /// Our own run and what it says; none if another process drove them to their end.
    run: Option<(RunOutcome, CliExit)>,
    /// Whether the person left while another process went on.
    interrupted: bool,
}

/// An engine that holds the project and cannot be asked does so for a moment.
const DEAF_MAX: u32 = 40;
const DEAF_PAUSE: Duration = Duration::from_millis(250);

/// Drives tasks. Where another process drives, its engine was told of them and a run that is for some tasks only is now for these as
/// well: they are watched there. What it leaves is driven here.
fn drive_or_watch(
    tasks: &[WireTaskId],
    non_interactive: bool,
    context: &CliContext,
    is_over: &dyn Fn() -> Result<bool, CommandFailure>,
) -> Result<DriveResult, CommandFailure> {
    let (mut told, mut deaf) = (false, 0);
    loop {
        let asked = RunAsked { tasks: tasks.to_vec(), ..RunAsked::default() };
        let failure = match drive_to_end(RunRequest { asked, non_interactive }, context) {
            Ok(run) => return Ok(DriveResult { run: Some(run), interrupted: false }),
            Err(failure) if failure.code == CliExit::Busy && deaf < DEAF_MAX => failure,
            Err(failure) => return Err(failure),
        };
        let interrupts = live::Interrupts::start_listening()?;
        if !told {
            print_message(
                "a run is under way already, and takes them up: this shows how they go; Ctrl-C leaves it alone",
            );
            told = true;
        }
        let watched = landfall_app::watch_tasks(&context.at, tasks, &mut |news| {
            news.iter().for_each(|news| print_message(&live::news_line(news)));
            interrupts.count_seen() == 0
        })?;
        if interrupts.count_seen() > 0 {
            print_message("left; the run goes on, and `landfall status` shows it");
            return Ok(DriveResult { run: None, interrupted: true });
        }
        if is_over()? {
            return Ok(DriveResult { run: None, interrupted: false });
        }
        if !watched {
            deaf += 1;
            if deaf >= DEAF_MAX {
                return Err(failure);
            }
            interrupts.wait_for_more_than(0, DEAF_PAUSE);
        }
    }
}

fn fetch_summaries(context: &CliContext, tasks: &[WireTaskId]) -> Result<Vec<IssueSummary>, CommandFailure> {
    let asked = IssueSummariesAsked { tasks: tasks.to_vec() };
    Ok(context.open_service()?.issue_summaries(asked)?.issues)
}

fn is_over(issue: &IssueSummary) -> bool {
    issue.stand.is_over()
}

type RefusalText = (String, String);

/// What the words mean together. What could be meant in two ways is refused, with the right form.
fn read(args: &Args) -> Result<AutoCommand, RefusalText> {
    let refuse = |what: &str, hint: &str| Err((what.to_owned(), hint.to_owned()));
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let said_how = args.patch || args.pr || args.review.is_some();
    if let [path] = words[..]
        && path.contains('/')
    {
        let of_issues = said_how || args.batch || args.resume || args.list || args.dry_run;
        return match of_issues {
            false => Ok(AutoCommand::Module(path.to_owned())),
            true => refuse(
                &format!("`{path}` is a module, and these options are for issues"),
                "a module takes `--start`, `--stop`, `--status`, `--iterations` and `--minutes`",
            ),
        };
    }
    if args.module.are_given() {
        return refuse(
            "`--start`, `--stop`, `--status`, `--iterations` and `--minutes` are for the loop of a module",
            "name the folder of the module: `landfall auto AiTasks/auth --status`",
        );
    }
    if args.patch && args.pr {
        return refuse(
            "`--patch` and `--pr` are two ways, and an issue takes one",
            "`landfall auto 12 --pr`",
        );
    }
    if args.patch && args.review.is_some() {
        return refuse("a patch is not reviewed", "`landfall auto 12 --pr --review=full`");
    }
    if args.list {
        let alone = words.is_empty() && !args.batch && !args.resume && !said_how && !args.dry_run;
        return match alone {
            true => Ok(AutoCommand::Batches),
            false => refuse("`--list` stands alone", "`landfall auto --list`"),
        };
    }
    if args.batch && args.resume && words.is_empty() && !said_how {
        return Ok(AutoCommand::Rest(None));
    }
    if let Some(mode) = parse_pilot_words(&words) {
        let more = said_how || args.batch || args.resume || args.dry_run || args.non_interactive;
        return match more {
            false => Ok(AutoCommand::Pilot(mode)),
            true if words.is_empty() => refuse(
                "name an issue",
                "`landfall auto 12`, `landfall auto --resume 12`, `landfall auto --batch 5` or `landfall auto --batch 12 13`",
            ),
            true => refuse(
                "`on`, `off` and `status` are about the run, and take no options",
                "`landfall run autopilot`",
            ),
        };
    }
    if !args.batch {
        return match words[..] {
            [word] => parse_issue_number(word).map(AutoCommand::One),
            _ => refuse(
                "one issue at a time, unless they are a batch",
                &format!("`landfall auto --batch {}`", words.join(" ")),
            ),
        };
    }
    if said_how {
        return refuse(
            "a batch takes the way each size says",
            "leave `--patch`, `--pr` and `--review` out, or follow one issue: `landfall auto 12 --pr`",
        );
    }
    if args.resume {
        return match words[..] {
            [word] if word.starts_with(['H', 'h']) => match word.parse() {
                Ok(id) => Ok(AutoCommand::Rest(Some(id))),
                Err(error) => Err((format!("{error}"), "`landfall auto --list` shows them".to_owned())),
            },
            _ => refuse(
                "what is left of a batch needs no numbers of issues",
                "`landfall auto --batch --resume`, `landfall auto --batch --resume H3`, or for one issue `landfall auto --resume 12`",
            ),
        };
    }
    match words[..] {
        [word] => match word.parse::<u32>() {
            Ok(many) if (1..=200).contains(&many) && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(AutoCommand::Newest(many))
            }
            Ok(_) | Err(_) => refuse(
                &format!(
                    "with `--batch` one number says how many issues, from 1 to 200, and `{word}` does not"
                ),
                "`landfall auto --batch 5` takes the five newest; `landfall auto 12` takes issue 12",
            ),
        },
        _ => {
            let numbers =
                words.iter().map(|word| parse_issue_number(word)).collect::<Result<Vec<u64>, _>>()?;
            let mut seen = BTreeSet::new();
            match numbers.iter().find(|number| !seen.insert(**number)) {
                Some(twice) => refuse(&format!("#{twice} is named twice"), "name each issue once"),
                None => Ok(AutoCommand::Listed(numbers)),
            }
        }
    }
}

/// Whether the words are about the run, and what they say.
fn parse_pilot_words(words: &[&str]) -> Option<Option<Mode>> {
    match words {
        [] | ["status"] => Some(None),
        ["on"] => Some(Some(Mode::Autopilot)),
        ["off"] => Some(Some(Mode::SemiAuto)),
        _ => None,
    }
}

/// `12`, or `#12`.
fn parse_issue_number(word: &str) -> Result<u64, RefusalText> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|number| plain && *number > 0);
    number.ok_or_else(|| {
        let known = "known: the number of an issue (12 or #12), `on`, `off`, `status`";
        (format!("`{}` is not an issue", word.chars().take(40).collect::<String>()), known.to_owned())
    })
}

/// What was chosen and what is done about each, before it begins.
fn print_followed_issues(followed: &IssuesFollowed) {
    if let Some(batch) = followed.batch {
        let text = escape_line(&followed.text).into_owned();
        let prefix = format!("{batch}: ");
        print_message(&if text.starts_with(&prefix) { text } else { prefix + &text });
    }
    for issue in &followed.issues {
        let waits = match issue.blocked_by.is_empty() {
            true => String::new(),
            false => format!("; it waits for {}", escape_line(&issue.blocked_by.join(", "))),
        };
        let size = if issue.size.is_none() && !issue.settled { " (its size is not known yet)" } else { "" };
        print_message(&format!("#{} {}{size}{waits}", issue.number, escape_line(&issue.text)));
    }
    followed.left_out.iter().for_each(|issue| print_message(&left_out_text(issue)));
}

fn left_out_text(issue: &LeftOutIssue) -> String {
    format!("#{} is left out: {}", issue.number, escape_line(&issue.why))
}

fn preview_text(followed: &IssuesFollowed) -> String {
    let mut table = Table::new(&["ISSUE", "WAY", "WAITS FOR", "WHAT", "TITLE"]);
    for issue in &followed.issues {
        let way = match (issue.triage && !issue.settled, issue.size) {
            (false, _) => issue.way.clone(),
            (true, Some(_)) => format!("triage first; {}", issue.way),
            (true, None) => "triage first, which finds out its size".to_owned(),
        };
        table.add_row([
            &format!("#{}", issue.number),
            &way,
            &issue.blocked_by.join(", "),
            &issue.text,
            &issue.title,
        ]);
    }
    let left_out: String = followed.left_out.iter().map(|it| left_out_text(it) + "\n").collect();
    let parts: String = followed.issues.iter().map(parts_text).collect();
    format!("{}\n{}{left_out}{parts}", escape_line(&followed.text), table.to_text())
}

/// The issues that one is made of, as they would be begun.
fn parts_text(issue: &FollowedIssue) -> String {
    let Some(last) = issue.parts.last() else { return String::new() };
    let many = pluralize(issue.parts.len() as u64, "part");
    let levels = pluralize(u64::from(last.level), "level");
    let mut text = format!("\n#{}: {many} in {levels}\n", issue.number);
    for part in &issue.parts {
        let size = part.size.map_or_else(|| "no size".to_owned(), |size| size.word().to_owned());
        let waits: Vec<String> = part.waits_for.iter().map(|number| format!("#{number}")).collect();
        let after = if waits.is_empty() { String::new() } else { format!(", after {}", waits.join(", ")) };
        text +=
            &format!("   {}. #{} {} ({size}{after})\n", part.level, part.number, escape_line(&part.title));
    }
    text
}

fn batches_text(list: &HaulList) -> String {
    if list.batches.is_empty() {
        return String::new();
    }
    let numbers = |all: &[u64]| all.iter().map(|it| format!("#{it}")).collect::<Vec<_>>().join(" ");
    let mut table = Table::new(&["BATCH", "BEGUN", "CHOSEN", "DONE", "FAILED", "LEFT"]);
    for batch in &list.batches {
        table.add_row([
            &batch.id.to_string(),
            &format_local(batch.begun_ms),
            &batch.chosen,
            &numbers(&batch.completed),
            &numbers(&batch.failed),
            &numbers(&batch.remaining),
        ]);
    }
    table.to_text()
}

/// Which of its tracker each issue waited for when it was taken up.
type Blockers = BTreeMap<u64, BTreeSet<u64>>;

fn find_blockers(followed: &IssuesFollowed) -> Blockers {
    let here = |place: &String| place.strip_prefix('#')?.parse().ok();
    followed.issues.iter().map(|it| (it.number, it.blocked_by.iter().filter_map(here).collect())).collect()
}

fn report_text(report: &AutoReport, blockers: &Blockers) -> String {
    let mut text = match (&report.issues[..], report.batch) {
        ([one], None) => issue_report_text(one),
        (many, _) => batch_report_text(report.batch, many, blockers),
    };
    for issue in &report.left_out {
        text += &format!("{}\n", left_out_text(issue));
    }
    if let Some(run) = &report.run {
        text += &live::ending_text(run);
    }
    text
}

fn issue_report_text(issue: &IssueSummary) -> String {
    let mut text = format!("{}\n", escape_line(&issue.banner));
    if let Some(way) = &issue.way {
        text += &format!("{}\n", escape_line(way));
    }
    if !issue.phases.is_empty() {
        // What agents used has a column once one of them has told.
        let told = issue.phases.iter().any(|row| row.tokens > 0 || row.cost_usd.is_some());
        let heads: &[&str] = if told {
            &["PHASE", "RESULT", "TOKENS", "COST", "NOTES"]
        } else {
            &["PHASE", "RESULT", "NOTES"]
        };
        let mut table = Table::new(heads);
        for row in &issue.phases {
            let tokens = if row.tokens > 0 { format_count(row.tokens) } else { String::new() };
            let cost = row.cost_usd.map(format_usd).unwrap_or_default();
            match told {
                true => table.add_row([row.phase.as_str(), &row.result, &tokens, &cost, &row.notes]),
                false => table.add_row([&row.phase, &row.result, &row.notes]),
            }
        }
        text += &format!("\n{}\n", table.to_text());
    }
    text + &issue_details(issue)
}

/// Conditions that are named; the others are counted.
const NAMED_MAX: usize = 5;

/// Why it stopped, what is left and what to do next.
fn issue_details(issue: &IssueSummary) -> String {
    let mut text = String::new();
    if let Some(why) = &issue.why {
        text += &format!("why: {}\n", escape_line(why));
    }
    for pending in issue.pending.iter().take(NAMED_MAX) {
        text += &format!("pending: {}\n", escape_line(pending));
    }
    if issue.pending.len() > NAMED_MAX {
        text += &format!("… and {} more\n", issue.pending.len() - NAMED_MAX);
    }
    text + &format!("next: {}\n", escape_line(&issue.next))
}

fn batch_report_text(batch: Option<HaulId>, issues: &[IssueSummary], blockers: &Blockers) -> String {
    let mut table = Table::new(&["ISSUE", "TASK", "RESULT", "PHASES", "PR", "TITLE"]);
    for issue in issues {
        let phases: Vec<String> =
            issue.phases.iter().map(|it| format!("{} {}", it.phase, it.result)).collect();
        table.add_row([
            &format!("#{}", issue.number),
            &issue.task.to_string(),
            issue.stand.word(),
            &phases.join(", "),
            &issue.pr.map(|pr| format!("#{pr}")).unwrap_or_default(),
            &issue.title,
        ]);
    }
    let mut text = if issues.is_empty() { String::new() } else { table.to_text() + "\n" };
    for issue in issues.iter().filter(|issue| issue.stand != IssueStanding::Complete) {
        text += &format!("{}\n", escape_line(&issue.banner));
        for line in issue_details(issue).lines() {
            text += &format!("   {line}\n");
        }
    }
    let which = |stands: &[IssueStanding]| -> Vec<u64> {
        issues.iter().filter(|it| stands.contains(&it.stand)).map(|it| it.number).collect()
    };
    let count = |stands: &[IssueStanding]| which(stands).len();
    let left = which(&[IssueStanding::Waits, IssueStanding::UnderWay]);
    let mut parts = vec![format!("{} complete", count(&[IssueStanding::Complete]))];
    for (number, what) in [
        (count(&[IssueStanding::Partial]), "with something pending"),
        (count(&[IssueStanding::Stopped, IssueStanding::NeedsPerson]), "stopped"),
        (left.len(), "left"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    let name = batch.map(|batch| format!("{batch}: ")).unwrap_or_default();
    text += &format!("{name}{} of {}\n", parts.join(", "), pluralize(issues.len() as u64, "issue"));
    let onward =
        |batch| landfall_app::batch_next_step(batch, &left, &which(&[IssueStanding::Complete]), blockers);
    if let Some(next) = batch.and_then(onward) {
        text += &format!("next: {next}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct AutoWords {
        #[command(flatten)]
        args: Args,
    }

    fn form(words: &str) -> Result<AutoCommand, String> {
        let args = AutoWords::try_parse_from(["auto"].into_iter().chain(words.split_whitespace()));
        let args = args.map_err(|error| error.to_string())?.args;
        read(&args).map_err(|(what, hint)| format!("{what} | {hint}"))
    }

    #[test]
    fn every_form_means_one_thing() {
        for (words, meant) in [
            ("", AutoCommand::Pilot(None)),
            ("status", AutoCommand::Pilot(None)),
            ("on", AutoCommand::Pilot(Some(Mode::Autopilot))),
            ("off", AutoCommand::Pilot(Some(Mode::SemiAuto))),
            ("12", AutoCommand::One(12)),
            ("#12 --pr --review=full", AutoCommand::One(12)),
            ("--resume 12", AutoCommand::One(12)),
            ("12 --resume --non-interactive", AutoCommand::One(12)),
            ("--batch 5", AutoCommand::Newest(5)),
            ("--batch 5 6 --dry-run", AutoCommand::Listed(vec![5, 6])),
            ("--batch #5 6", AutoCommand::Listed(vec![5, 6])),
            ("--batch --resume", AutoCommand::Rest(None)),
            ("--batch --resume H3", AutoCommand::Rest(Some(HaulId(3)))),
            ("--list", AutoCommand::Batches),
        ] {
            assert_eq!(form(words), Ok(meant), "{words}");
        }
    }

    #[test]
    fn what_could_be_meant_in_two_ways_is_refused_with_the_right_form() {
        for (words, hint) in [
            ("--batch 5 --resume", "`landfall auto --batch --resume`"),
            ("--resume", "`landfall auto --resume 12`"),
            ("--batch", "`landfall auto --batch 5`"),
            ("--patch --pr 12", "`landfall auto 12 --pr`"),
            ("12 --patch --review=light", "--review=full"),
            ("12 13", "`landfall auto --batch 12 13`"),
            ("--batch #5", "`landfall auto 12` takes issue 12"),
            ("--batch 0", "five newest"),
            ("--batch 5 5", "name each issue once"),
            ("--batch 5 6 --pr", "leave `--patch`"),
            ("--list 5", "`landfall auto --list`"),
            ("on --pr", "`landfall run autopilot`"),
            ("maybe", "`on`, `off`, `status`"),
            ("0", "known"),
            ("--batch 5 x", "known"),
            ("--batch --resume 12", "`landfall auto --resume 12`"),
        ] {
            let refused = form(words).expect_err(words);
            assert!(refused.contains(hint), "{words}: {refused}");
        }
        for words in ["12 --review=none", "12 --fast", "12 --review"] {
            assert!(form(words).is_err(), "{words}");
        }
    }
}
