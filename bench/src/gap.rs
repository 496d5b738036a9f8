//! B1: the gap between two iterations of one task, from the end of the agent to its next beginning, as the agent itself
//! sees it.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;

use super::lab::Lab;
use super::table::{Amount, Row, Target};
use super::times::p50;

const DURABLE_MAX: f64 = 2.5;

/// Rounds of floor and product in turn.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let iterations = lab.pick(200, 60);
    let (mut bare, mut durable, mut product, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.pick(3, 2) {
        bare.extend(floor(lab, iterations, false)?);
        durable.extend(floor(lab, iterations, true)?);
        product.extend(through_sitter(lab, iterations, "write")?);
        open.extend(through_sitter(lab, iterations, "off")?);
    }
    let ms = |gaps: Vec<f64>| Amount { value: p50(gaps), unit: "ms" };
    let (bare, durable) = (ms(bare), ms(durable));
    let row = |what: &str, product: Amount, target: Target, note: String| Row {
        id: "B1",
        what: what.to_owned(),
        floor: Some(durable),
        product,
        target,
        note,
    };
    Ok(vec![
        row(
            "gap between two iterations, durable",
            ms(product),
            Target::RatioMax(DURABLE_MAX),
            format!(
                "floor: spawn, pipe, scan, wait and two SQLite transactions with FULL; the same without them {}",
                bare.words()
            ),
        ),
        row("the same, without a sandbox", ms(open), Target::None, "`run.sandbox = \"off\"`".to_owned()),
    ])
}

/// A loop that spawns the agent, reads and scans what it says, and waits for it.
fn floor(lab: &Lab, iterations: u32, durable: bool) -> Result<Vec<f64>> {
    let dir = lab.folder()?;
    super::lab::repository(&dir.path().join("project"), 1, "")?;
    let log = dir.path().join("log");
    let prompt = dir.path().join("prompt.md");
    std::fs::write(&prompt, "Do nothing.\n".repeat(40))?;
    let journal = durable.then(|| journal(&dir.path().join("floor.db"))).transpose()?;
    let note = |what: &str, iteration: u32| -> Result<()> {
        if let Some(journal) = &journal {
            journal.execute("INSERT INTO event (what, iteration) VALUES (?1, ?2)", (what, iteration))?;
        }
        Ok(())
    };
    for iteration in 1..=iterations {
        note("started", iteration)?;
        let done = Command::new(&lab.agent)
            .args(["loop", &iterations.to_string()])
            .current_dir(dir.path().join("project"))
            .env("LANDFALL_ITERATION", iteration.to_string())
            .env("LANDFALL_TASK", "T1")
            .env("BENCH_LOG", &log)
            .stdin(Stdio::from(File::open(&prompt)?))
            .output()
            .context("run the agent")?;
        let complete = done.stdout.windows(8).any(|words| words == b"COMPLETE");
        ensure!(complete == (iteration == iterations), "the agent speaks in its last iteration");
        note("ended", iteration)?;
    }
    gaps(&log, iterations)
}

fn journal(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch(
        "CREATE TABLE event (seq INTEGER PRIMARY KEY, what TEXT NOT NULL, iteration INTEGER NOT NULL) STRICT",
    )?;
    Ok(db)
}

fn through_sitter(lab: &Lab, iterations: u32, sandbox: &str) -> Result<Vec<f64>> {
    let log = lab.folder()?;
    let file = log.path().join("log");
    let settings = format!(
        "[run]\niterations_max = {}\nstuck_after = 1000\nsandbox = \"{sandbox}\"\nsandbox_write = [\"{}\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\n\
         env = {{ BENCH_LOG = \"{}\" }}\n",
        iterations + 1,
        log.path().display(),
        lab.agent_line(&format!("loop {iterations}")),
        file.display()
    );
    let project = lab.project(1, &settings)?;
    project.add(1)?;
    project.run_to_end(1)?;
    gaps(&file, iterations)
}

/// What lies between the lines of the agent's log, in milliseconds.
fn gaps(log: &Path, iterations: u32) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(log).context("read the log of the agent")?;
    let mut times: Vec<(u64, u64)> = Vec::new();
    for line in text.lines() {
        let (began, ended) = line.split_once(' ').context("two numbers a line")?;
        times.push((began.parse()?, ended.parse()?));
    }
    ensure!(times.len() == iterations as usize, "{} iterations of {iterations} were run", times.len());
    #[expect(clippy::cast_precision_loss, reason = "a gap is far below 2^52 nanoseconds")]
    let ms = |ns: u64| ns as f64 / 1e6;
    // The last gap holds the commit of the last iteration only on one side; it counts like any other.
    Ok(times.windows(2).map(|pair| ms(pair[1].0.saturating_sub(pair[0].1))).collect())
}
