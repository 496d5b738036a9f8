//! Landfall: takes a backlog and the coding agents a person already has, and lands only work that it has proved.
//!
//! The sitter, the scripted agent, the bridges and `--version` come before everything else: they are started often and
//! must be small and quick. All other words are commands.

mod bridge;
mod checks;
mod commands;
mod context;
mod exit;
mod live;
mod player;
mod plugin;
mod presence;
mod run_text;
mod say;
mod table;
mod times;
mod tone;
mod top;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    match first.as_deref().and_then(|word| word.to_str()) {
        Some("sit") => match args.next() {
            Some(dir) => return ExitCode::from(landfall_app::run_sitter(&dir)),
            None => return exit::CliExit::Usage.into(),
        },
        Some("attempt") => {
            return match landfall_app::run_sandbox_attempts(args).map(|report| say::print_data(&report)) {
                Some(Ok(())) => exit::CliExit::Ok.into(),
                Some(Err(failure)) => failure.code.into(),
                None => exit::CliExit::Usage.into(),
            };
        }
        Some("play") => return ExitCode::from(player::play_role(args)),
        Some("bridge") => return ExitCode::from(bridge::run_bridge(args)),
        Some("--version" | "-V") if args.next().is_none() => {
            let text = concat!("landfall ", env!("CARGO_PKG_VERSION"), "\n");
            return match say::print_data(text) {
                Ok(()) => exit::CliExit::Ok.into(),
                Err(failure) => failure.code.into(),
            };
        }
        Some(_) | None => {}
    }
    commands::main().into()
}
