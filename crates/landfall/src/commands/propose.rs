//! `landfall propose`: an agent turns a goal into tasks, and a person says yes.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landfall_api::{NewTask, NewTasks, Proposal, ProposalOf, ProposalOutcome, TypedService};
use landfall_app::ProposeOptions;
use landfall_text::control_chars::{escape_block, escape_line};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;

/// Let an agent split a goal into tasks, and add them after you confirm
///
/// The agent reads a temporary copy of the base branch. Landfall checks its proposal: each task about one thing, with criteria, no
/// duplicates, no cycles. Problems go back to the agent, five times at most. Without a terminal and without `--yes` the tasks are
/// stored as drafts, which `--accept` starts.
#[derive(clap::Args)]
pub struct Args {
    /// Goal, in a sentence or two
    #[arg(value_name = "GOAL", conflicts_with = "file")]
    goal: Option<String>,

    /// File that describes the goal; `-` reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Agent profile of `landfall.toml`
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    agent: String,

    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=50))]
    max: u8,

    /// Add the tasks without asking
    #[arg(long, short = 'y', conflicts_with = "dry_run")]
    yes: bool,

    /// Show the tasks, and add nothing
    #[arg(long)]
    dry_run: bool,

    /// Allow the drafts of proposal N to start
    #[arg(long, value_name = "N", conflicts_with_all = ["goal", "file", "yes", "dry_run"])]
    accept: Option<u32>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if let Some(number) = args.accept {
        let changed = context.open_service()?.proposal_accept(ProposalOf { number })?;
        context.print_answer(&changed, words::render_changed)?;
        return Ok(CliExit::Ok);
    }
    let (goal, source) = match (&args.goal, &args.file) {
        (Some(goal), _) => (goal.clone(), "cli".to_owned()),
        (None, Some(path)) => (words::read_text(context, path)?, format!("file:{}", path.display())),
        (None, None) => {
            return Err(CommandFailure::usage_error("there is no goal")
                .with_hint("say it in quotes, or name a document with `-f`"));
        }
    };
    if goal.trim().is_empty() {
        return Err(CommandFailure::usage_error("the goal is empty")
            .with_hint("say in a sentence or two what is wanted"));
    }
    if goal.len() > GOAL_BYTES_MAX {
        let message = format!("the goal has {} bytes; an agent is shown {GOAL_BYTES_MAX}", goal.len());
        return Err(CommandFailure::usage_error(message).with_hint("propose for one part of it at a time"));
    }
    let stopped = watch_stop_signal()?;
    let asked = ProposeOptions {
        goal: &goal,
        source: &source,
        agent: &args.agent,
        tasks_max: usize::from(args.max),
        is_stopped: &|| stopped.load(Ordering::SeqCst),
    };
    // A program reads the answer, and errors as JSON: no talk comes between.
    let mut tell_round = |line: &str| {
        if !context.json {
            print_message(&escape_block(line));
        }
    };
    let proposed = landfall_app::propose_tasks(&context.at, &asked, &mut tell_round);
    if stopped.load(Ordering::SeqCst) {
        return Err(CommandFailure::new(CliExit::Interrupted, "interrupted; the agent was stopped")
            .with_hint("nothing was added"));
    }
    let mut proposal = proposed?;
    proposal.outcome = decide(&args, context, &proposal)?;
    match proposal.outcome {
        ProposalOutcome::Shown | ProposalOutcome::Declined => {}
        ProposalOutcome::Added | ProposalOutcome::Drafts => {
            if proposal.outcome == ProposalOutcome::Drafts {
                proposal.tasks.iter_mut().for_each(|task| task.draft = true);
            }
            let tasks: Vec<NewTask> = proposal.tasks.clone();
            proposal.added = context.open_service()?.add(NewTasks { tasks })?.tasks;
        }
    }
    context.print_answer(&proposal, |it| match it.outcome {
        ProposalOutcome::Shown => words::render_task_batch(&it.tasks),
        ProposalOutcome::Added | ProposalOutcome::Drafts | ProposalOutcome::Declined => {
            it.added.iter().map(|task| format!("{} {}\n", task.id, escape_line(&task.title))).collect()
        }
    })?;
    if !context.json {
        print_outcome(&proposal);
    }
    Ok(CliExit::Ok)
}

const GOAL_BYTES_MAX: usize = 64 * 1024; // what a prompt holds of a text that others wrote

/// Set by Ctrl-C: the agent is stopped then, and does not go on spending. A second one leaves at once.
fn watch_stop_signal() -> Result<Arc<AtomicBool>, CommandFailure> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stopped))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stopped)))
            .map_err(|error| {
                CommandFailure::new(CliExit::Internal, format!("listen for signals: {error}"))
            })?;
    }
    Ok(stopped)
}

/// What becomes of it: one question at most, and none where nobody can answer.
fn decide(args: &Args, context: &CliContext, proposal: &Proposal) -> Result<ProposalOutcome, CommandFailure> {
    if !context.json {
        let tree = if args.dry_run {
            String::new()
        } else {
            format!("\n\n{}", words::render_task_batch(&proposal.tasks))
        };
        print_message(&(proposal_headline(proposal) + &tree));
        for mended in &proposal.mended {
            print_message(&format!("mended: {}", escape_line(mended)));
        }
    }
    if args.dry_run {
        return Ok(ProposalOutcome::Shown);
    }
    if args.yes {
        return Ok(ProposalOutcome::Added);
    }
    let somebody = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !somebody || context.json || std::env::var_os("CI").is_some() {
        return Ok(ProposalOutcome::Drafts);
    }
    loop {
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "add these tasks? [y]es, as [d]rafts, [n]o: "); // unseen, it is still answered
        let _ = err.flush(); // as above
        drop(err);
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        match (read, line.trim().to_ascii_lowercase().as_str()) {
            (Ok(0) | Err(_), _) | (_, "n" | "no" | "") => return Ok(ProposalOutcome::Declined),
            (_, "y" | "yes") => return Ok(ProposalOutcome::Added),
            (_, "d" | "drafts" | "draft") => return Ok(ProposalOutcome::Drafts),
            (_, _) => print_message("`y`, `d` or `n`"),
        }
    }
}

/// `proposal 3: 7 tasks in 2 groups; 2 rounds, 41s, $0.21 as the agent says`.
fn proposal_headline(proposal: &Proposal) -> String {
    let groups = words::parts_by_parent(&proposal.tasks).len();
    let tasks = landfall_text::pluralize((proposal.tasks.len() - groups) as u64, "task");
    let groups = match groups {
        0 => String::new(),
        many => format!(" in {}", landfall_text::pluralize(many as u64, "group")),
    };
    let mut spent = vec![
        landfall_text::pluralize(u64::from(proposal.rounds), "round"),
        landfall_text::format_duration(proposal.took_ms),
    ];
    let tokens = proposal.usage.tokens_in.saturating_add(proposal.usage.tokens_out);
    if tokens > 0 {
        spent.push(format!("{} tokens", landfall_text::format_count(tokens)));
    }
    spent.extend(proposal.usage.cost_usd.map(landfall_text::format_usd));
    format!("proposal {}: {tasks}{groups}; {}", proposal.number, spent.join(", "))
}

fn print_outcome(proposal: &Proposal) {
    match proposal.outcome {
        ProposalOutcome::Shown => print_message("nothing was added"),
        ProposalOutcome::Declined => print_message("declined; nothing was added"),
        ProposalOutcome::Added => print_message("added; `landfall run` works on them"),
        ProposalOutcome::Drafts => print_message(&format!(
            "stored as drafts, because nobody said yes; `landfall propose --accept {}` lets them start",
            proposal.number
        )),
    }
}
