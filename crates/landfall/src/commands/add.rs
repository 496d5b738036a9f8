//! `landfall add`: tasks from words, files and stdin.

use std::path::PathBuf;

use landfall_api::taskfile::{self, TaskFileSource};
use landfall_api::{NewTask, NewTasks, Size, TaskRef, TypedService};
use landfall_text::control_chars::escape_line;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Add tasks from titles, files or stdin
///
/// Landfall adds all of the tasks or none. A task file is Markdown with TOML (`+++`) or simple YAML (`---`) front matter and may contain
/// several tasks. Stdin is such a file, or one title per line. Options apply to every task that does not set its own value.
/// Put a title that begins with a dash after `--`.
#[derive(clap::Args)]
pub struct Args {
    /// Title of a task; repeat for more tasks. `-` reads stdin
    #[arg(value_name = "TITLE")]
    titles: Vec<String>,

    /// File with tasks; may be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Full description
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", allow_hyphen_values = true)]
    body: Option<String>,

    /// File with the full description
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,

    /// Acceptance criterion; may be repeated
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Vec<String>,

    /// Tasks that must land first: `T1,T2`, or `#1` for the first task of this command
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    needs: Vec<TaskRef>,

    /// File, folder or glob pattern that the task is expected to change; may be repeated
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    touches: Vec<String>,

    /// Size: XS, S, M, L or XL
    #[arg(long, value_parser = words::size)]
    size: Option<Size>,

    /// Tag, such as `critical`, `quick-win`, `next` or `later`; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,

    /// Priority from 0 (most urgent) to 9; the default is 5
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,

    /// Parent task
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskRef>,

    /// Flow of the task; `landfall project flow list` lists them
    #[arg(long)]
    flow: Option<String>,

    /// Agent profile of `landfall.toml`
    #[arg(long)]
    agent: Option<String>,

    /// Add as a draft: it does not start until `landfall edit T7 --ready`
    #[arg(long)]
    draft: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let mut tasks = Vec::new();
    let (stdin, titles): (Vec<&String>, Vec<&String>) = args.titles.iter().partition(|title| *title == "-");
    tasks.extend(titles.into_iter().map(|title| new_task(title, "cli")));
    let mut files = Vec::new();
    for path in &args.files {
        files.push((path.display().to_string(), words::read_text(context, path)?));
    }
    if !stdin.is_empty() {
        let text = words::read_text(context, "-".as_ref())?;
        if taskfile::is_task_file(&text) {
            files.push(("stdin".to_owned(), text));
        } else {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            tasks.extend(lines.map(|title| new_task(title, "stdin")));
        }
    }
    // Places in the batch are counted over all tasks, so those of the files come after the titles.
    let before = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let sources: Vec<TaskFileSource<'_>> =
        files.iter().map(|(name, text)| TaskFileSource { name, text }).collect();
    let read = taskfile::read(&sources).map_err(|error| CommandFailure {
        hint: error.hint.clone(),
        ..CommandFailure::usage_error(error.to_string())
    })?;
    tasks.extend(read.into_iter().map(|task| shift_batch_refs(before, task)));
    if tasks.is_empty() {
        return Err(CommandFailure::usage_error("nothing to add")
            .with_hint("give a title, a file with `-f`, or `-` for stdin"));
    }
    let body = words::read_text_or_file(context, args.body.clone(), args.body_file.as_deref())?;
    for task in &mut tasks {
        apply_defaults(task, &args, body.as_deref());
    }
    let added = context.open_service()?.add(NewTasks { tasks })?;
    context.print_answer(&added, |added| {
        added.tasks.iter().map(|task| format!("{} {}\n", task.id, escape_line(&task.title))).collect()
    })?;
    Ok(CliExit::Ok)
}

fn new_task(title: &str, source: &str) -> NewTask {
    NewTask { title: title.to_owned(), source: source.to_owned(), ..NewTask::default() }
}

fn shift_batch_refs(by: u32, mut task: NewTask) -> NewTask {
    let shift = |it: TaskRef| match it {
        TaskRef::Batch(place) => TaskRef::Batch(place.saturating_add(by)),
        TaskRef::Task(id) => TaskRef::Task(id),
    };
    task.needs = task.needs.into_iter().map(shift).collect();
    task.parent = task.parent.map(shift);
    task
}

/// What the options say, where the task does not say it itself.
fn apply_defaults(task: &mut NewTask, args: &Args, body: Option<&str>) {
    if task.body.is_empty() {
        task.body = body.unwrap_or_default().to_owned();
    }
    if task.criteria.is_empty() {
        task.criteria = args.criteria.clone();
    }
    if task.needs.is_empty() {
        task.needs = args.needs.clone();
    }
    if task.tags.is_empty() {
        task.tags = args.tags.clone();
    }
    if task.touches.is_empty() {
        task.touches = args.touches.clone();
    }
    task.size = task.size.or(args.size);
    task.priority = task.priority.or(args.priority);
    task.parent = task.parent.or(args.parent);
    task.flow = task.flow.take().or_else(|| args.flow.clone());
    task.agent = task.agent.take().or_else(|| args.agent.clone());
    task.draft |= args.draft;
}
