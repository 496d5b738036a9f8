//! `landfall completions`: for the shell, with the ids of tasks.

use std::ffi::OsString;
use std::sync::Arc;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use super::named::{self, NameLookup};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_json};

/// Print shell completions
///
/// Completes commands, options and task ids. For bash, add `source <(landfall completions bash)` to ~/.bashrc, so that the script
/// always fits the installed version.
#[derive(clap::Args)]
pub struct Args {
    /// Shell: bash, elvish, fish, powershell or zsh
    #[arg(value_parser = shell)]
    shell: String,
}

/// Set by the script when it asks for completions.
const VARIABLE: &str = "LANDFALL_COMPLETE";

fn shell(text: &str) -> Result<String, String> {
    let shells = Shells::builtins();
    match shells.completer(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("known shells are {}", shells.names().collect::<Vec<_>>().join(", "))),
    }
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&args.shell).expect("the argument was checked");
    completer
        .write_registration(VARIABLE, "landfall", "landfall", "landfall", &mut script)
        .map_err(|error| CommandFailure::new(CliExit::Internal, format!("write the completions: {error}")))?;
    let script = String::from_utf8_lossy(&script);
    if context.json {
        print_json(&serde_json::json!({ "shell": args.shell, "script": script }))?;
    } else {
        print_data(&script)?;
    }
    Ok(CliExit::Ok)
}

/// If a completion script started this process, prints completions and exits.
pub fn complete_words(args: &[OsString]) {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // The words to complete follow `--`; `-C` and `--base` among them say where tasks are looked up.
    let words: Vec<OsString> = args.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let lookup = Arc::new(NameLookup::from_words(&words, true));
    CompleteEnv::with_factory(|| named::parse_task_names(super::build_cli(), &lookup))
        .var(VARIABLE)
        .complete();
}

/// The tasks of the project, with their titles. Nothing is completed where there is no project.
pub fn task_candidates(at: &landfall_app::ProjectLocator) -> Vec<CompletionCandidate> {
    const TASKS_MAX: u32 = 200; // a shell shows no more
    let filter = landfall_api::Filter { limit: TASKS_MAX, ..landfall_api::Filter::default() };
    let Ok(page) = landfall_app::open_service(at)
        .and_then(|service| landfall_api::TypedService::list(&*service, filter))
    else {
        return Vec::new();
    };
    let candidate = |task: &landfall_api::TaskLine| {
        CompletionCandidate::new(task.id.to_string())
            .help(Some(landfall_text::control_chars::escape_line(&task.title).into_owned().into()))
    };
    page.tasks.iter().map(candidate).collect()
}
