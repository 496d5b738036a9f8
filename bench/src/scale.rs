//! B6 and B7: a thousand tasks at work, a hundred thousand on record. What that costs in memory, and how soon an engine
//! that was killed has all of them back.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::inside;
use super::lab::{Lab, Project};
use super::table::{Amount, Row, Target};
use super::times::{ms, p50};

const BACK_MAX_MS: f64 = 2_000.0;
const RUNNING_MAX_MB: f64 = 60.0;
const STORED_MAX_MB: f64 = 200.0;
const SITTER_MAX_MB: f64 = 2.0;
const PATIENCE: Duration = Duration::from_secs(240); // a thousand workspaces on a small machine
const LOOK: Duration = Duration::from_millis(2);

/// B6: replay, and a thousand live tasks back.
pub fn recovery(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = inside::replay(lab)?;
    let crowd = Crowd::gather(lab)?;
    let mut took = Vec::new();
    let mut crowd = crowd;
    for _ in 0..lab.pick(3, 1) {
        crowd.kill()?;
        took.push(crowd.back()?);
    }
    let many = crowd.many;
    crowd.end()?;
    rows.push(Row {
        id: "B6",
        what: format!("{many} live tasks back after a crash"),
        floor: None,
        product: Amount { value: p50(took), unit: "ms" },
        target: Target::Max(BACK_MAX_MS),
        note: "from the start of `landfall run` until every agent is adopted; none is started again"
            .to_owned(),
    });
    Ok(rows)
}

/// B7: memory of the engine and of a sitter.
pub fn memory(lab: &Lab) -> Result<Vec<Row>> {
    let crowd = Crowd::gather(lab)?;
    let (engine, sitters) = (crowd.engine_pid()?, crowd.sitters()?);
    let running = rss_mb(engine)?;
    let private = p50(sitters.iter().filter_map(|pid| private_mb(*pid).ok()).collect());
    let many = crowd.many;
    crowd.end()?;
    let stored = lab.pick(100_000, 10_000);
    let with_stored = with_backlog(lab, stored)?;
    let mb = |value: f64| Amount { value, unit: "MB" };
    let row = |what: String, value: f64, most: f64, note: &str| Row {
        id: "B7",
        what,
        floor: None,
        product: mb(value),
        target: Target::Max(most),
        note: note.to_owned(),
    };
    Ok(vec![
        row(
            format!("engine, {many} tasks running"),
            running,
            RUNNING_MAX_MB,
            "resident, its program included",
        ),
        row(
            format!("engine, {stored} tasks on record"),
            with_stored,
            STORED_MAX_MB,
            "resident, its program included",
        ),
        row("one sitter".to_owned(), private, SITTER_MAX_MB, "private pages: what one more sitter costs"),
    ])
}

/// Resident memory of an engine that knows so many tasks and works on one.
fn with_backlog(lab: &Lab, stored: u32) -> Result<f64> {
    let (project, log) = sleepers(lab)?;
    project.add(stored)?;
    let mut engine = project.run(1)?;
    wait_until("the agent is up", || Ok(lines(&log) >= 1), &mut engine, &project)?;
    let mb = rss_mb(pid_of(&engine))?;
    stop(&mut engine)?;
    Ok(mb)
}

fn sleepers(lab: &Lab) -> Result<(Project, std::path::PathBuf)> {
    let folder = lab.folder()?.keep();
    let log = folder.join("log");
    let settings = format!(
        "[run]\ngrace = \"1s\"\nsandbox_write = [\"{}\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\nenv = {{ BENCH_LOG = \"{}\" }}\n",
        folder.display(),
        lab.agent_line("sleep 600"),
        log.display()
    );
    Ok((lab.project(5, &settings)?, log))
}

/// An engine with many agents that sleep.
struct Crowd {
    many: u32,
    project: Project,
    engine: Child,
}

impl Crowd {
    fn gather(lab: &Lab) -> Result<Self> {
        let many = lab.pick(1_000, 100);
        let (project, log) = sleepers(lab)?;
        project.add(many)?;
        let mut engine = project.run(many)?;
        let all = || Ok(lines(&log) >= many as usize);
        if let Err(error) = wait_until("every agent is up", all, &mut engine, &project) {
            stop(&mut engine)?;
            return Err(error);
        }
        let mut crowd = Self { many, project, engine };
        crowd.wait_for_all()?;
        Ok(crowd)
    }

    fn engine_pid(&self) -> Result<i32> {
        Ok(pid_of(&self.engine))
    }

    fn sitters(&self) -> Result<Vec<i32>> {
        sitters(&self.project)
    }

    fn kill(&mut self) -> Result<()> {
        self.engine.kill().context("kill the engine")?;
        self.engine.wait().context("wait for the engine")?;
        Ok(())
    }

    /// How long a new engine takes until it has every agent back.
    fn back(&mut self) -> Result<f64> {
        let began = Instant::now();
        self.engine = self.project.run(self.many)?;
        self.wait_for_all()?;
        let took = ms(began.elapsed());
        let restarted = self.project.count("SELECT count(*) FROM event WHERE kind = 'iteration-began'")?;
        ensure!(restarted == i64::from(self.many), "{restarted} agents were started for {} tasks", self.many);
        Ok(took)
    }

    /// Waits until the engine holds a handle on every sitter.
    fn wait_for_all(&mut self) -> Result<()> {
        let (many, pid) = (self.many as usize, pid_of(&self.engine));
        let result = wait_until(
            "every agent is followed",
            || Ok(handles(pid) >= many),
            &mut self.engine,
            &self.project,
        );
        if result.is_err() {
            stop(&mut self.engine)?;
        }
        result
    }

    fn end(mut self) -> Result<()> {
        stop(&mut self.engine)
    }
}

/// The processes that own the agents, or owned them.
pub(super) fn sitters(project: &Project) -> Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir(project.state.join("attempts"))? {
        // One that is just being made has not said who it is.
        let Ok(text) = std::fs::read_to_string(entry?.path().join("sitter.json")) else { continue };
        let who: serde_json::Value = serde_json::from_str(&text)?;
        pids.push(i32::try_from(who["pid"].as_i64().context("a pid")?)?);
    }
    Ok(pids)
}

/// How many processes an engine holds a handle on.
fn handles(pid: i32) -> usize {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter(|target| target.to_string_lossy().contains("pidfd"))
        .count()
}

/// Stops a run now, as a person does: Ctrl-C twice.
pub(super) fn stop(engine: &mut Child) -> Result<()> {
    let pid = Pid::from_child(engine);
    for _ in 0..2 {
        kill_process(pid, Signal::INT).ok(); // it has ended already
        std::thread::sleep(Duration::from_millis(300));
    }
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if engine.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    engine.kill()?;
    engine.wait()?;
    bail!("the engine did not stop; its agents may still run")
}

pub(super) fn wait_until(
    what: &str,
    holds: impl Fn() -> Result<bool>,
    engine: &mut Child,
    project: &Project,
) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !holds()? {
        if let Some(status) = engine.try_wait()? {
            bail!("the engine ended with {status} before {what}:\n{}", project.log());
        }
        ensure!(Instant::now() < until, "waited too long until {what}:\n{}", project.log());
        std::thread::sleep(LOOK);
    }
    Ok(())
}

pub(super) fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}

pub(super) fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("process ids are small")
}

/// Resident memory of a process.
pub(super) fn rss_mb(pid: i32) -> Result<f64> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/status")).context("read the memory of the engine")?;
    kilobytes(&text, &["VmRSS:"]).context("no VmRSS")
}

/// The most that a process ever had.
pub(super) fn peak_mb(pid: i32) -> Result<f64> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/status")).context("read the memory of the engine")?;
    kilobytes(&text, &["VmHWM:"]).context("no VmHWM")
}

/// Memory that only this process has.
pub(super) fn private_mb(pid: i32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    kilobytes(&text, &["Private_Clean:", "Private_Dirty:"]).context("no private pages")
}

/// The sum of these lines, in MB.
fn kilobytes(text: &str, names: &[&str]) -> Option<f64> {
    let of = |name: &&str| -> Option<f64> {
        let line = text.lines().find(|line| line.starts_with(*name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    names.iter().map(of).sum::<Option<f64>>().map(|kb| kb * 1024.0 / 1e6)
}
