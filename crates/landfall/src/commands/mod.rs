//! The commands, one file and one line each.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::{house, say};

mod named;
mod words;

macro_rules! commands {
    ($($variant:ident: $file:ident,)*) => {
        $(mod $file;)*

        #[derive(Subcommand)]
        enum Command {
            $($variant($file::Args),)*
        }

        impl Command {
            fn run(self, context: &Context) -> Result<Exit, Failure> {
                match self { $(Self::$variant(args) => $file::run(args, context),)* }
            }
        }
    };
}

commands! {
    Init: init,
    Add: add,
    List: list,
    Show: show,
    Edit: edit,
    Run: run,
    Serve: serve,
    Sprint: sprint,
    Pause: pause,
    Resume: resume,
    Auto: auto,
    Next: next,
    Queue: queue,
    Inbox: inbox,
    Review: review,
    Checkpoint: checkpoint,
    Status: status,
    Top: top,
    Why: why,
    Graph: graph,
    Stats: stats,
    Log: log,
    Diff: diff,
    Stop: stop,
    Retry: retry,
    Cancel: cancel,
    Do: do_step,
    Target: target,
    Refine: refine,
    Papers: papers,
    Annotate: annotate,
    Tell: tell,
    Hold: hold,
    Release: release,
    Block: block,
    Limits: limits,
    Answer: answer,
    Rollback: rollback,
    Certificate: certificate,
    Report: report,
    Flow: flow,
    Export: export,
    Import: import,
    Issue: issue,
    Reconcile: reconcile,
    Module: module,
    Propose: propose,
    Verify: verify,
    Agents: agents,
    Discoveries: discoveries,
    Doctor: doctor,
    Reclaim: reclaim,
    Trust: trust,
    Token: token,
    Pair: pair,
    Sessions: sessions,
    Demo: demo,
    Attach: attach,
    Signal: signal,
    Mcp: mcp,
    Plugin: plugin,
    Completions: completions,
}

/// Drives the coding agents you already have through a backlog, and lands only work that it has proved itself.
#[derive(Parser)]
#[command(name = "landfall", version, max_term_width = 100)]
#[command(after_help = "Start with `landfall demo`, or in a repository of yours with `landfall init`.\n\
    Exit codes: docs/reference/exit-codes.md. Shapes of --json: docs/reference/json.md.")]
struct Cli {
    /// Works as if it had been started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, display_order = 1000)]
    start_in: Option<PathBuf>, // not `dir`: a command's own `--dir` would be taken for the same option

    /// Means the work that lands on BRANCH, where that is not the base of the project: it has tasks, runs and a landing queue
    /// of its own.
    #[arg(long, value_name = "BRANCH", global = true, display_order = 1001)]
    base: Option<String>,

    /// Writes the answer as JSON, and errors as JSON on stderr.
    #[arg(long, global = true, display_order = 1002)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// Reads the words of the command line, carries them out, and says how that ended.
pub fn main() -> Exit {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Asked before the words are understood, so that a program gets JSON for a bad option too.
    let json = args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    named::look_from(&args, json);
    let failure = match parse(args) {
        Ok(cli) => match carry_out(cli) {
            Ok(exit) => return exit,
            Err(failure) => failure,
        },
        Err(error) => match named::missed().map_or_else(|| explain(&error), Err) {
            Ok(exit) => return exit,
            Err(failure) => failure,
        },
    };
    say::complain(&failure, json);
    failure.code
}

fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = named::everywhere(cli());
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn carry_out(cli: Cli) -> Result<Exit, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::NotAProject, format!("find the current folder: {error}")))?;
    let dir = cli.start_in.map_or_else(|| here.clone(), |dir| here.join(dir));
    if !dir.is_dir() {
        return Err(Failure::usage(format!("`{}` is not a folder", dir.display())));
    }
    let at = house::At { dir, base: cli.base };
    let context = Context { at, json: cli.json };
    let side = context.at.base.as_ref().filter(|_| !cli.json).and_then(|_| house::bases(&context.at).0);
    if let Some(base) = &side {
        say::about_base(base);
    }
    let exit = cli.command.run(&context);
    if let Some(base) = side {
        let word = say::shell_word(&base);
        say::talk(&format!(
            "(about `{base}`, not the base of the project: say `--base {word}` with each command)"
        ));
    }
    exit
}

/// What clap has to say: help is data, everything else is an error in our words.
fn explain(error: &clap::Error) -> Result<Exit, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => Ok(Exit::Ok),
            Err(_) => Err(Failure::reader_left()),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say::talk(error.to_string().trim_end());
            Ok(Exit::Usage)
        }
        _ => {
            let text = error.to_string();
            let text = text.trim().strip_prefix("error: ").unwrap_or(&text);
            // The first paragraph says what is wrong; tips and usage follow.
            let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
            let failure = Failure::usage(message.trim());
            let tip = rest.split("\n\n").map(str::trim).find_map(|part| part.strip_prefix("tip: "));
            let more = "`--help` shows the words there are";
            let hint = tip.map_or_else(|| more.to_owned(), |tip| format!("{tip}; {more}"));
            Err(failure.hint(hint))
        }
    }
}

/// The whole command line as clap knows it.
pub fn cli() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_command_line_holds_together() {
        super::cli().debug_assert();
    }

    /// `LANDFALL_BLESS=1` writes the page again.
    #[test]
    fn the_page_about_commands_says_what_help_says() {
        let mut page = String::from(
            "# Commands\n\n<!-- Made from the help texts; `LANDFALL_BLESS=1 cargo test -p landfall` writes it again. -->\n",
        );
        let mut cli = super::cli().term_width(100).disable_help_subcommand(true);
        cli.build();
        describe(&mut page, &mut cli, "landfall");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
        if std::env::var_os("LANDFALL_BLESS").is_some() {
            std::fs::write(&path, &page).expect("write the page");
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap_or_default(),
            page,
            "LANDFALL_BLESS=1 writes it again"
        );
    }

    fn describe(page: &mut String, command: &mut clap::Command, name: &str) {
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
        for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
            let name = format!("{name} {}", below.get_name());
            describe(page, below, &name);
        }
    }
}
