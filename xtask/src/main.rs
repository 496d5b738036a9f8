//! All automation of the repository: `cargo xtask <command>`.

mod agents;
mod changed;
mod chaos;
mod dependencies;
mod first_run;
mod gaming;
mod github;
mod load;
mod metrics;
mod outage;
mod prose;
mod report;
mod rows;
mod schemathesis;
mod test;
mod test_folders;
mod tools;
mod web;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use test::{TestArgs, cargo, run_step};

#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask", about = "Test, check and measure Landfall")]
enum Command {
    /// Check format and lints, run every test, and build the documentation
    Test(TestArgs),
    /// Run the tests with the real agent CLIs alone
    Agents,
    /// Run the browser tests: all, or those whose file or name contains one of these words
    Web { names: Vec<String> },
    /// Make contact sheets of the pages, for each width and theme, and a file with the figures of their layout and weight
    Pages {
        /// Take the pictures (there is nothing else to do yet)
        #[arg(long, required = true)]
        shots: bool,
    },
    /// Let the simulation find every seeded bug, or the one named
    SeededBugs { bug: Option<String> },
    /// Inject faults into real projects and judge the result from outside
    #[command(
        disable_help_flag = true,
        override_usage = "cargo xtask chaos [--rounds N] [--seed S] [--kinds a,b] [--resume]"
    )]
    Chaos {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run dishonest and honest changes and report what lands unseen
    #[command(after_long_help = gaming::HELP)]
    Gaming(gaming::GamingArgs),
    /// Print the figures of the code base, its gates first
    Metrics(metrics::MetricsArgs),
    /// Land a task in a project of each ecosystem, by the commands of the README alone
    FirstRun(first_run::FirstRunArgs),
    /// Compare the encoding of events with the recorded journal of format 1
    JournalDiff,
    /// Let the providers of the real agent CLIs fail and report what becomes of a task
    Outage(outage::OutageArgs),
    /// List sentences that are too long and words to replace, in pages, help, hints and errors
    Prose(prose::ProseArgs),
    /// Show which features of the source systems a test or a decision shows
    Rows(rows::RowsArgs),
    /// Measure floors and product in the same run, and print ratios
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Test(args) => test::run(&args),
        Command::Agents => test::run(&TestArgs::agents_alone()),
        Command::Web { names } => web::run_alone(&names),
        Command::Pages { shots: _ } => web::take_shots(),
        Command::SeededBugs { bug } => test::find_seeded_bugs(bug.as_deref()),
        Command::Chaos { args } => chaos::run(&args.iter().map(String::as_str).collect::<Vec<_>>()),
        Command::Gaming(args) => gaming::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::FirstRun(args) => first_run::run(&args),
        Command::JournalDiff => {
            let mut compare = cargo(&["test", "--quiet", "--package", "landfall-store", "--lib", "--"]);
            compare.args(["format::recording::", "--nocapture"]);
            run_step("journal-diff", compare)
        }
        Command::Outage(args) => outage::run(&args),
        Command::Prose(args) => prose::run(&args),
        Command::Rows(args) => rows::run(&args),
        Command::Bench { args } => {
            let mut bench = cargo(&["run", "--release", "--quiet", "--package", "landfall-bench", "--"]);
            bench.args(args);
            run_step("bench", bench)
        }
    }
}
