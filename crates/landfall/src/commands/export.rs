//! `landfall project export`: tasks as files that `add -f` reads.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use landfall_api::{Export, Exported, ExportedFile, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_json, print_message, print_untrusted};

/// Export tasks as files that `landfall add -f` reads
///
/// Writes to stdout, or one file per task into a folder. On a terminal, control characters are shown as escapes. In a pipe or a
/// file they stay as they are. Use `--safe` if another program shows the output on a terminal.
#[derive(clap::Args)]
pub struct Args {
    /// Tasks; the default is all
    #[arg(value_name = "TASK")]
    tasks: Vec<WireTaskId>,

    /// Write one file per task into this folder; existing files stay unchanged
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Show control characters as escapes in a pipe, too
    #[arg(long, conflicts_with = "dir")]
    safe: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let exported = context.open_service()?.export(Export { tasks: args.tasks })?;
    if let Some(dir) = args.dir {
        return write_exported_files(&context.path(&dir), &exported);
    }
    if context.json {
        print_json(&exported)?;
    } else {
        let text: String = exported.files.iter().map(|file| file.text.as_str()).collect();
        print_untrusted(text.as_bytes(), args.safe)?;
    }
    Ok(CliExit::Ok)
}

fn write_exported_files(dir: &std::path::Path, exported: &Exported) -> Result<CliExit, CommandFailure> {
    let fail = |what: &str, error: std::io::Error| {
        CommandFailure::new(CliExit::Machine, format!("write `{what}`: {error}"))
    };
    std::fs::create_dir_all(dir).map_err(|error| fail(&dir.display().to_string(), error))?;
    let mut kept = 0;
    for ExportedFile { name, text } in &exported.files {
        // The engine makes names of plain letters; a name with a folder in it did not come from there.
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(CommandFailure::new(CliExit::Internal, format!("`{name}` is not a file name")));
        }
        let path = dir.join(name);
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map_err(|error| fail(name, error))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                print_message(&format!(
                    "{} is there already and was left as it is",
                    escape_line(&path.display().to_string())
                ));
                kept += 1;
            }
            Err(error) => return Err(fail(name, error)),
        }
    }
    let written = exported.files.len() - kept;
    print_message(&format!(
        "wrote {} to {}",
        landfall_text::pluralize(written as u64, "file"),
        escape_line(&dir.display().to_string())
    ));
    Ok(CliExit::Ok)
}
