//! The commands, one file and one line each.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say;
use named::NameLookup;

mod aliases;
mod autopilot;
mod examples;
pub mod named;
pub(crate) mod words;

/// Declares the commands: those on the first page of the help, further ones, and words that moved to another command and still work.
macro_rules! commands {
    (shown { $($shown:ident: $shown_file:ident,)* } further { $($further:ident: $further_file:ident,)* }
     moved { $($moved:ident: $moved_file:ident,)* }) => {
        $(mod $shown_file;)*
        $(mod $further_file;)*
        $(mod $moved_file;)*

        #[derive(Subcommand)]
        enum CliCommand {
            $($shown($shown_file::Args),)*
            $($further($further_file::Args),)*
            $(#[command(hide = true)] $moved($moved_file::Args),)*
        }

        impl CliCommand {
            fn run(self, context: &CliContext) -> Result<CliExit, CommandFailure> {
                match self {
                    $(Self::$shown(args) => $shown_file::run(args, context),)*
                    $(Self::$further(args) => $further_file::run(args, context),)*
                    $(Self::$moved(args) => $moved_file::run(args, context),)*
                }
            }
        }
    };
}

commands! {
    shown {
        Demo: demo,
        Init: init,
        Check: check,
        Doctor: doctor,
        Agents: agents,
        Add: add,
        List: list,
        Show: show,
        Edit: edit,
        Run: run,
        Stop: stop,
        Status: status,
        Top: top,
        Why: why,
        Log: log,
        Report: report,
        Stats: stats,
        Serve: serve,
        Inbox: inbox,
        Answer: answer,
        Review: review,
        Retry: retry,
        Cancel: cancel,
        Queue: queue,
        Diff: diff,
        Certificate: certificate,
        Rollback: rollback,
        Issue: issue,
        Auto: auto,
        Help: help,
        Completions: completions,
    }
    further {
        Accept: accept,
        Sprint: sprint,
        Task: task,
        Objective: objective,
        Checkpoint: checkpoint,
        Graph: graph,
        Propose: propose,
        Project: project,
        Trust: trust,
        Signal: signal,
        Mcp: mcp,
    }
    moved {
        Pause: pause,
        Resume: resume,
        Next: next,
        Do: do_step,
        Hold: hold,
        Release: release,
        Tell: tell,
        Limits: limits,
        Block: block,
        Papers: papers,
        Annotate: annotate,
        Attach: attach,
        Target: target,
        Refine: refine,
        Reconcile: reconcile,
        Verify: verify,
        Flow: flow,
        Module: module,
        Plugin: plugin,
        Discoveries: discoveries,
        Token: token,
        Pair: pair,
        Sessions: sessions,
        Reclaim: reclaim,
        Export: export,
        Import: import,
    }
}

/// Run your coding agents on a backlog, and land only work that passes verification
#[derive(Parser)]
#[command(name = "landfall", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, hide = true)]
    start_in: Option<PathBuf>, // not `dir`: a command's own `--dir` would be taken for the same option

    /// Use BRANCH as the base branch; each base branch has its own tasks, runs and landing queue
    #[arg(long, value_name = "BRANCH", global = true, hide = true)]
    base: Option<String>,

    /// Print the answer as JSON, and errors as JSON on stderr
    #[arg(long, global = true, hide = true)]
    json: bool,

    #[command(subcommand)]
    command: CliCommand,
}

/// Reads the words of the command line, carries them out, and says how that ended.
pub fn main() -> CliExit {
    let args: Vec<OsString> = std::env::args_os().collect();
    completions::complete_words(&args);
    let json = named::wants_json(&args);
    let lookup = Arc::new(NameLookup::from_words(&args, json));
    let failure = match parse(args.clone(), &lookup) {
        Ok(cli) => match run_command(cli) {
            Ok(exit) => return exit,
            Err(failure) => failure,
        },
        Err(error) => match lookup.failure().map_or_else(|| explain_clap_error(&error, &args), Err) {
            Ok(exit) => return exit,
            Err(failure) => failure,
        },
    };
    say::print_failure(&failure, json);
    failure.code
}

fn parse(args: Vec<OsString>, lookup: &Arc<NameLookup>) -> Result<Cli, clap::Error> {
    let mut command = named::parse_task_names(build_cli(), lookup);
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run_command(cli: Cli) -> Result<CliExit, CommandFailure> {
    let here = std::env::current_dir().map_err(|error| {
        CommandFailure::new(CliExit::NotAProject, format!("find the current folder: {error}"))
    })?;
    let dir = cli.start_in.map_or_else(|| here.clone(), |dir| here.join(dir));
    if !dir.is_dir() {
        return Err(CommandFailure::usage_error(format!("`{}` is not a folder", dir.display())));
    }
    let at = landfall_app::ProjectLocator { dir, base: cli.base };
    let context = CliContext { at, json: cli.json };
    let exit = cli.command.run(&context);
    if let Some(base) = say::side_base() {
        let word = landfall_text::quote_shell_word(base);
        say::print_message(&format!(
            "(about `{base}`, not the base of the project: say `--base {word}` with each command)"
        ));
    }
    exit
}

/// What clap has to say: help is data, everything else is an error in our words.
fn explain_clap_error(error: &clap::Error, args: &[OsString]) -> Result<CliExit, CommandFailure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => Ok(CliExit::Ok),
            Err(_) => Err(CommandFailure::output_closed()),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say::print_message(error.to_string().trim_end());
            Ok(CliExit::Usage)
        }
        _ => {
            if let Some(failure) = aliases::explain_unknown_command(error) {
                return Err(failure);
            }
            let text = error.to_string();
            let text = text.trim().strip_prefix("error: ").unwrap_or(&text);
            // The first paragraph says what is wrong; tips and usage follow.
            let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing))
                    if error.kind() == ErrorKind::MissingRequiredArgument =>
                {
                    Some(format!("missing {}", missing.join(" and ")))
                }
                _ => None,
            };
            let failure = CommandFailure::usage_error(missing.as_deref().unwrap_or(message.trim()));
            let part = |prefix| rest.split("\n\n").map(str::trim).find_map(|part| part.strip_prefix(prefix));
            let usage: Option<&str> = part("Usage: ");
            let more = format!("`{} --help` has examples", command_words(args));
            let hint = match (part("tip: "), usage.filter(|_| missing.is_some())) {
                (Some(tip), _) => format!("{tip}; {more}"),
                (None, Some(usage)) => format!("usage: {usage}; {more}"),
                (None, None) => more,
            };
            Err(failure.with_hint(hint))
        }
    }
}

/// The command that was typed, without its arguments: `landfall task limits`.
fn command_words(args: &[OsString]) -> String {
    let mut command = build_cli();
    let mut words = vec!["landfall".to_owned()];
    let mut args = args.iter().skip(1);
    while let Some(arg) = args.next() {
        if ["-C", "--base"].iter().any(|option| arg == option) {
            args.next(); // its value is no command
        }
        if let Some(found) = command.find_subcommand(arg).cloned() {
            words.push(found.get_name().to_owned());
            command = found;
        }
    }
    words.join(" ")
}

/// The whole command line as clap knows it.
pub fn build_cli() -> clap::Command {
    let command = examples::add_examples(Cli::command());
    let first_page = help::render_first_page();
    command.override_help(first_page)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_command_line_holds_together() {
        super::build_cli().debug_assert();
    }

    #[test]
    fn wrong_arguments_are_answered_with_what_is_expected() {
        let check = |words: &[&str], message: &str, hint: &str| {
            let args: Vec<std::ffi::OsString> =
                std::iter::once("landfall").chain(words.iter().copied()).map(Into::into).collect();
            let Err(error) = super::parse(args.clone(), &std::sync::Arc::default()) else {
                panic!("{words:?} are accepted")
            };
            let Err(failure) = super::explain_clap_error(&error, &args) else { panic!("{words:?} are help") };
            assert_eq!((failure.message.as_str(), failure.hint.as_deref()), (message, Some(hint)));
        };
        check(
            &["show"],
            "missing <TASK>",
            "usage: landfall show <TASK>; `landfall show --help` has examples",
        );
        check(
            &["answer"],
            "missing <TASK> and <TEXT>...",
            "usage: landfall answer <TASK> <TEXT>...; `landfall answer --help` has examples",
        );
        check(
            &["show", "x"],
            "invalid value 'x' for '<TASK>': `x` is not a task id such as T7",
            "`landfall show --help` has examples",
        );
        check(
            &["-C", "show", "task", "limits", "T1", "--time", "soon"],
            "invalid value 'soon' for '--time <TIME>': `soon` is not a length of time such as 90m, 6h or 7d",
            "`landfall task limits --help` has examples",
        );
    }

    /// `LANDFALL_BLESS=1` writes the page again.
    #[test]
    fn the_page_about_commands_says_what_help_says() {
        let mut page = String::from(
            "# Commands\n\n<!-- Made from the help texts; `LANDFALL_BLESS=1 cargo test -p landfall` writes it again. -->\n",
        );
        let mut cli = super::build_cli().term_width(100).disable_help_subcommand(true);
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
