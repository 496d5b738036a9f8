//! B14: memory with a crew at work: fifty agents that come and go, ten thousand tasks behind them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::lab::Lab;
use super::scale::{lines, peak_mb, pid_of, private_mb, rss_mb, sitters, stop, wait_until};
use super::table::{Amount, Row, Target};
use super::times::p50;

const AGENTS: u32 = 50;
const TASKS: u32 = 10_000;
const FILES: u32 = 400; // more than tasks under way at once, so that none meets another
const ENGINE_MAX_MB: f64 = 200.0;
const LOOK: Duration = Duration::from_millis(200);

/// The engine at its peak, while agents end, are verified, land, and others begin.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let log = lab.folder()?;
    let file = log.path().join("log");
    let settings = format!(
        "[run]\ngrace = \"1s\"\nsandbox_write = [\"{}\"]\n[verify]\ncommand = [\"true\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\n\
         env = {{ BENCH_LOG = \"{}\" }}\n",
        log.path().display(),
        lab.agent_line(&format!("think 8000 16000 {FILES}")),
        file.display()
    );
    let project = lab.project(FILES, &settings)?;
    project.add(TASKS)?;
    let mut engine = project.run(AGENTS)?;
    let pid = pid_of(&engine);
    let up = || Ok(lines(&file) >= AGENTS as usize);
    let measured = wait_until("every agent is up", up, &mut engine, &project).and_then(|()| {
        let each = p50(sitters(&project)?.iter().filter_map(|pid| private_mb(*pid).ok()).collect());
        let until = Instant::now() + Duration::from_secs(lab.pick(60, 20));
        while Instant::now() < until {
            ensure!(engine.try_wait()?.is_none(), "the engine ended early:\n{}", project.log());
            std::thread::sleep(LOOK);
        }
        Ok((peak_mb(pid)?, rss_mb(pid)?, each))
    });
    stop(&mut engine)?;
    let (peak, now, each) = measured?;
    let landed = project.count("SELECT count(*) FROM event WHERE kind = 'landed'")?;
    ensure!(landed > 0, "nothing landed meanwhile:\n{}", project.log());
    Ok(vec![Row {
        id: "B14",
        what: format!("engine at its peak, {AGENTS} agents at work, {TASKS} tasks"),
        floor: None,
        product: Amount { value: peak, unit: "MB" },
        target: Target::Max(ENGINE_MAX_MB),
        note: format!(
            "`VmHWM`, its program included, {now:.0} MB at the end; {landed} tasks landed meanwhile; each sitter has \
                 {each:.1} MB of its own, {:.0} MB in all, and is no part of it",
            each * f64::from(AGENTS)
        ),
    }])
}
