//! `landfall help`: the first page, the list of all commands, and the page of one command.

use std::path::PathBuf;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_message};

/// Show help for Landfall or a command
#[derive(clap::Args)]
pub struct Args {
    /// List all commands, with their subcommands
    #[arg(long, conflicts_with_all = ["command", "man"])]
    all: bool,
    /// Write man pages for all commands into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    man: Option<PathBuf>,
    /// Command, such as `run` or `run pause`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// A group of the first page: its name, and each command with what it is for.
type HelpGroup = (&'static str, &'static [(&'static str, &'static str)]);

/// The commands people need every day. The rest is in `landfall help --all`.
const GROUPS: [HelpGroup; 7] = [
    (
        "Start",
        &[
            ("demo", "try a sample project"),
            ("init", "set up this project"),
            ("check", "run the checks"),
            ("doctor", "check the setup"),
            ("agents", "list and test agents"),
        ],
    ),
    (
        "Work",
        &[
            ("add", "add tasks"),
            ("list", "list tasks"),
            ("show", "show one task"),
            ("edit", "change a task"),
            ("run", "work on the backlog"),
            ("stop", "stop the run or a task"),
        ],
    ),
    (
        "Watch",
        &[
            ("status", "what runs and waits"),
            ("top", "full-screen view"),
            ("why", "explain a task's state"),
            ("log", "what happened"),
            ("report", "report of a run"),
            ("stats", "statistics"),
            ("serve", "web pages and API"),
        ],
    ),
    (
        "Decide",
        &[
            ("inbox", "what waits for you"),
            ("answer", "answer a question"),
            ("review", "approve or reject"),
            ("retry", "start a task again"),
            ("cancel", "cancel tasks"),
        ],
    ),
    (
        "Land",
        &[
            ("queue", "the landing queue"),
            ("diff", "what a task changes"),
            ("certificate", "proof of a landing"),
            ("rollback", "undo a landing"),
        ],
    ),
    ("Issues", &[("issue", "create, show, change"), ("auto", "work on issues")]),
    ("Help", &[("help", "this page; --all: more"), ("completions", "for your shell")]),
];

const OPTIONS: &str = "\
Options: -C <DIR>         Run as if started in DIR
         --base <BRANCH>  Use BRANCH as the base branch
         --json           Print answers and errors as JSON";

const EXAMPLES: &str = "\
Examples: landfall init                    landfall add \"Fix the parser\"
          landfall run                     landfall help run";

/// The page that `landfall --help` shows: one screen of 80 columns.
pub fn render_first_page() -> String {
    let mut page = String::from(
        "Run your coding agents on a backlog, and land only work that passes verification\n\n\
         Usage: landfall [OPTIONS] <COMMAND>\n\n",
    );
    for (group, commands) in GROUPS {
        for (at, pair) in commands.chunks(2).enumerate() {
            let heading = if at == 0 { group } else { "" };
            let mut line = format!("{heading:<7}");
            for (name, label) in pair {
                line += &format!(" {name:<12}{label:<23}");
            }
            page += line.trim_end();
            page.push('\n');
        }
    }
    page + "\n" + OPTIONS + "\n" + EXAMPLES + "\n"
}

/// Every command with its subcommands, a line each.
fn render_all_commands() -> String {
    let mut cli = super::build_cli();
    cli.build();
    let mut page = String::new();
    let mut listed = Vec::new();
    for (group, commands) in GROUPS {
        page += &format!("{group}\n");
        for (name, _) in commands {
            listed.push(*name);
            page += &command_lines(cli.find_subcommand(name).expect("a test finds each"), "");
        }
    }
    page += "More\n";
    let further = |command: &&clap::Command| !command.is_hide_set() && !listed.contains(&command.get_name());
    for command in cli.get_subcommands().filter(further) {
        page += &command_lines(command, "");
    }
    page + "\n"
        + OPTIONS
        + "\n\nShow more about a command with `landfall help COMMAND`.\n\
            Exit codes: docs/reference/exit-codes.md. JSON: docs/reference/json.md.\n"
}

fn command_lines(command: &clap::Command, above: &str) -> String {
    let name = format!("{above}{}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = match name.len() {
        0..=22 => format!("  {name:<22} {about}\n"),
        _ => format!("  {name}\n  {:<22} {about}\n", ""),
    };
    let shown = |below: &&clap::Command| !below.is_hide_set() && below.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        text += &command_lines(below, &format!("{name} "));
    }
    text
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if let Some(folder) = args.man {
        let folder = context.path(&folder);
        let failed = |error| {
            CommandFailure::new(
                CliExit::Machine,
                format!("write man pages to `{}`: {error}", folder.display()),
            )
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(super::build_cli(), &folder).map_err(failed)?;
        print_message(&format!(
            "man pages are in {}; read one with `man -M`, or `man -l landfall.1` there",
            folder.display()
        ));
        return Ok(CliExit::Ok);
    }
    if args.all {
        print_data(&render_all_commands())?;
        return Ok(CliExit::Ok);
    }
    let mut cli = super::build_cli();
    cli.build();
    let mut command = &mut cli;
    for (at, word) in args.command.iter().enumerate() {
        command = command.find_subcommand_mut(word).ok_or_else(|| {
            let words = args.command[..=at].join(" ");
            CommandFailure::usage_error(format!("unknown command `{words}`"))
                .with_hint("`landfall help --all` lists all commands")
        })?;
    }
    let text = command.render_long_help().to_string();
    print_data(&text)?;
    Ok(CliExit::Ok)
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, render_first_page};

    #[test]
    fn the_first_page_fits_one_screen() {
        let page = render_first_page();
        assert!(page.lines().count() <= 30, "{} lines:\n{page}", page.lines().count());
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn the_first_page_lists_commands_that_exist_and_are_not_hidden() {
        let cli = super::super::build_cli();
        for (_, commands) in GROUPS {
            for (name, _) in commands {
                let command = cli.find_subcommand(name);
                assert!(command.is_some_and(|command| !command.is_hide_set()), "{name}");
            }
        }
    }
}
