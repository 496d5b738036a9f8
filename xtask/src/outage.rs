//! `cargo xtask outage`: what becomes of a task while its provider is in trouble, with the real agent CLIs and the model server
//! of the test kit. The stories are tests of the package `landfall`; this runs them and prints what each reported.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::test::{cargo, target_folder};
use crate::tools::install_agents;

#[derive(Debug, clap::Args)]
pub struct OutageArgs {
    /// The agent CLI, or `all`
    #[arg(long, default_value = "all", value_parser = ["all", "claude", "codex", "gemini", "opencode"])]
    cli: String,
    /// What divides all times: at 60, a silence of ten minutes takes ten seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=120))]
    scale: u32,
}

const SITUATIONS: usize = 7;
const CLIS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];
const COLUMNS: [&str; 7] = ["cli", "situation", "status", "reason", "clock", "tries", "processes left"];

/// Runs the stories and prints a line for each. An error: one of them is not as promised.
pub fn run(args: &OutageArgs) -> Result<()> {
    let began = Instant::now();
    let variables = install_agents()?;
    let report: PathBuf = target_folder()?.join(format!("outage-{}.tsv", std::process::id()));
    let mut tests = cargo(&["test", "--package", "landfall", "--test", "agents", "--"]);
    tests.args(["--include-ignored", "--test-threads", "2"]);
    match args.cli.as_str() {
        "all" => tests.arg("outage_"),
        cli => tests.arg(format!("outage_{cli}::")),
    };
    tests.envs(variables);
    tests.env("LANDFALL_OUTAGE_SCALE", args.scale.to_string()).env("LANDFALL_OUTAGE_REPORT", &report);
    let status = tests.status().context("start the stories")?;
    let text = std::fs::read_to_string(&report).unwrap_or_default(); // none of them came to its end
    let _ = std::fs::remove_file(&report); // it is not there then
    let mut rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    rows.sort();
    println!("{}", COLUMNS.join(" | "));
    for row in &rows {
        println!("{}", row.join(" | "));
    }
    let clis = if args.cli == "all" { CLIS.len() } else { 1 };
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("{} of {} as promised, in {minutes:.1} min", rows.len(), clis * SITUATIONS);
    if !status.success() || rows.len() != clis * SITUATIONS {
        bail!("not every outage ended as promised; what differs is said above");
    }
    Ok(())
}
