//! `landfall completions`: for the shell.

use clap_complete::Shell;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::{print, print_json};

/// Prints completions for a shell.
///
/// For example: `landfall completions bash > ~/.local/share/bash-completion/completions/landfall`.
#[derive(clap::Args)]
pub struct Args {
    /// Which shell.
    shell: Shell,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::cli(), "landfall", &mut script);
    let script = String::from_utf8_lossy(&script);
    if context.json {
        print_json(&serde_json::json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        print(&script)?;
    }
    Ok(Exit::Ok)
}
