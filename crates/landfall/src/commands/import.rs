//! `landfall project import`: tasks from a list of another tool.

use std::path::{Path, PathBuf};

use landfall_api::import::{Format, Imported, guess_format};
use landfall_api::taskfile::TaskFileSource;
use landfall_api::{ImportText, TypedService as _};
use landfall_text::control_chars::escape_line;
use landfall_text::pluralize;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;

/// Import tasks from a checklist or another tool
///
/// Reads a Markdown checklist, issues of beads, the tasks.json of Task Master, a prd.json, or a folder of task modules. Landfall
/// imports all of the tasks or none. Finished items and items that were imported before are left out, so you can import a
/// list again when it has grown. An item with open sub-items becomes a draft that groups them.
#[derive(clap::Args)]
pub struct Args {
    /// File, or a folder of task modules (`AiTasks/`, one module, a notebook); `-` reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Format: markdown, beads, taskmaster, prd or modules; detected if left out
    #[arg(long, value_parser = format)]
    format: Option<Format>,

    /// Only this list of a file with several lists: a tag of Task Master
    #[arg(long, value_name = "NAME")]
    list: Option<String>,

    /// Import items again that were imported before
    #[arg(long)]
    again: bool,

    /// Show what would be imported, and change nothing
    #[arg(long)]
    dry_run: bool,
}

fn format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|error: landfall_api::UnknownWord| error.to_string())
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let name = args.file.display().to_string();
    let folder = context.path(&args.file);
    if folder.is_dir() {
        return import_modules(args, context, &folder);
    }
    let text = words::read_text(context, &args.file)?;
    let file = TaskFileSource { name: if name == "-" { "stdin" } else { &name }, text: &text };
    let format = match args.format {
        Some(format) => format,
        None => {
            let format = guess_format(&file).map_err(|error| CommandFailure {
                hint: error.hint.clone(),
                ..CommandFailure::usage_error(error.to_string())
            })?;
            if !context.json {
                print_message(&format!(
                    "{} is read as {} ({format})",
                    escape_line(file.name),
                    format.description()
                ));
            }
            format
        }
    };
    if args.list.is_some() && format != Format::Taskmaster {
        return Err(CommandFailure::usage_error(format!(
            "`--list` means nothing for {}",
            format.description()
        ))
        .with_hint("only a tasks.json of Task Master holds several lists"));
    }
    let asked = ImportText {
        name: file.name.to_owned(),
        format: Some(format),
        list: args.list,
        again: args.again,
        dry_run: args.dry_run,
        text: text.clone(),
    };
    import_text(context, asked)
}

/// A folder holds modules, and nothing else can be read from one. Whoever answers reads it: it is part of the project.
fn import_modules(args: Args, context: &CliContext, folder: &Path) -> Result<CliExit, CommandFailure> {
    if let Some(format) = args.format.filter(|format| *format != Format::Modules) {
        let message =
            format!("`{}` is a folder, and {} is a file", args.file.display(), format.description());
        return Err(
            CommandFailure::usage_error(escape_line(&message)).with_hint("a folder is read as task modules")
        );
    }
    if args.list.is_some() {
        return Err(CommandFailure::usage_error("`--list` means nothing for a folder of task modules"));
    }
    let asked = ImportText {
        name: folder.display().to_string(),
        format: Some(Format::Modules),
        list: None,
        again: args.again,
        dry_run: args.dry_run,
        text: String::new(),
    };
    import_text(context, asked)
}

fn import_text(context: &CliContext, asked: ImportText) -> Result<CliExit, CommandFailure> {
    let imported = context.open_service()?.import(asked)?;
    context.print_answer(&imported, render_imported)?;
    if !context.json {
        print_import_notes(&imported);
    }
    Ok(CliExit::Ok)
}

/// What was added, a line each; or what would be.
fn render_imported(imported: &Imported) -> String {
    if imported.dry_run {
        return words::render_task_batch(&imported.tasks);
    }
    imported.added.iter().map(|task| format!("{} {}\n", task.id, escape_line(&task.title))).collect()
}

fn print_import_notes(imported: &Imported) {
    let Imported { tasks, there, left_out, dry_run, .. } = imported;
    for it in left_out {
        print_message(&format!("left out: {} ({})", escape_line(&it.what), it.count));
    }
    const SHOWN_MAX: usize = 10; // the rest is counted
    for it in there.iter().take(SHOWN_MAX) {
        print_message(&format!("there already: {} {}", it.id, escape_line(&it.title)));
    }
    if there.len() > SHOWN_MAX {
        print_message(&format!("there already: {} more", there.len() - SHOWN_MAX));
    }
    let groups = match words::parts_by_parent(tasks).len() {
        0 => String::new(),
        many => format!(", {many} of them drafts that hold others together"),
    };
    let new = pluralize(tasks.len() as u64, "task");
    match (tasks.is_empty(), dry_run) {
        (true, _) => print_message("nothing new to add"),
        (false, true) => print_message(&format!("{new} would be added{groups}; nothing was changed")),
        (false, false) => print_message(&format!("{new} added{groups}")),
    }
    if !there.is_empty() && tasks.is_empty() {
        print_message("`--again` adds once more what is there already");
    }
}
