//! B8: agents that write a lot. Nobody who writes is held up, and the engine does not grow.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::lab::{Lab, Project};
use super::scale::{pid_of, rss_mb};
use super::table::{Amount, Row, Target};

const AGENTS: u32 = 50;
const EACH_BYTES: u64 = 2_000_000; // a second
const STALL_MAX_MS: f64 = 100.0;
const GROWTH_MAX_MB: f64 = 16.0; // what an allocator may keep; a buffer that follows the output would be far more
const LOOK: Duration = Duration::from_millis(50);

/// Fifty that write evenly, then one that writes as much as it can.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = even(lab)?;
    rows.extend(flood(lab)?);
    Ok(rows)
}

/// What the writers saw.
struct Seen {
    bytes_per_s: f64,
    longest_ms: f64,
}

fn even(lab: &Lab) -> Result<Vec<Row>> {
    let words = format!("write {EACH_BYTES} {}", lab.pick(5, 3));
    let floor = even_floor(lab, &words)?;
    let (project, log) = project(lab, &words)?;
    project.add(AGENTS)?;
    let growth = grow(project.run(AGENTS)?)?;
    let product = seen(&log)?;
    let mb = |seen: &Seen| Amount { value: seen.bytes_per_s / 1e6, unit: "MB/s" };
    let stall = |seen: &Seen| Amount { value: seen.longest_ms, unit: "ms" };
    Ok(vec![
        Row {
            id: "B8",
            what: format!("output of {AGENTS} agents at once"),
            floor: Some(mb(&floor)),
            product: mb(&product),
            target: Target::Min(f64::from(AGENTS) * 2.0 * 0.95),
            note: "the agents write 2 MB/s each; floor: the same agents, their pipes copied to files"
                .to_owned(),
        },
        Row {
            id: "B8",
            what: "the longest that a write was held up".to_owned(),
            floor: Some(stall(&floor)),
            product: stall(&product),
            target: Target::Max(STALL_MAX_MS),
            note: "as the writers see it, so it holds the time they were not given a processor".to_owned(),
        },
        growth_row("growth of the engine meanwhile", growth),
    ])
}

/// The same agents, each with a thread that copies its pipe into a file.
fn even_floor(lab: &Lab, words: &str) -> Result<Seen> {
    let dir = lab.folder()?;
    let log = dir.path().join("log");
    std::thread::scope(|scope| {
        let copiers: Vec<_> = (0..AGENTS)
            .map(|number| {
                let (file, log, agent) = (dir.path().join(format!("out{number}")), &log, &lab.agent);
                scope.spawn(move || copy(agent, words, log, std::fs::File::create(file)?))
            })
            .collect();
        copiers.into_iter().try_for_each(|it| it.join().expect("no thread of ours panics"))
    })?;
    seen(&log)
}

fn copy(agent: &Path, words: &str, log: &Path, mut to: impl std::io::Write) -> Result<()> {
    let mut agent = Command::new(agent)
        .args(words.split(' '))
        .env("BENCH_LOG", log)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start an agent")?;
    let mut out = agent.stdout.take().context("its output")?;
    std::io::copy(&mut out, &mut to)?;
    to.flush()?;
    ensure!(agent.wait()?.success(), "an agent failed");
    Ok(())
}

fn flood(lab: &Lab) -> Result<Vec<Row>> {
    let gigabytes: u64 = lab.pick(10, 1);
    let words = format!("flood {}", gigabytes * 1_000_000_000);
    let dir = lab.folder()?;
    let log = dir.path().join("log");
    copy(&lab.agent, &words, &log, std::io::sink())?;
    let floor = flood_rate(&log)?;
    let (project, log) = project(lab, &words)?;
    project.add(1)?;
    let growth = grow(project.run(1)?)?;
    let product = flood_rate(&log)?;
    let mb = |value: f64| Amount { value: value / 1e6, unit: "MB/s" };
    let kept = folder_bytes(&project.state.join("attempts"))?;
    Ok(vec![
        Row {
            id: "B8",
            what: format!("a flood of {gigabytes} GB"),
            floor: Some(mb(floor)),
            product: mb(product),
            target: Target::None,
            note: format!(
                "floor: read and dropped; the product keeps {:.0} MB of it and marks the cut",
                kept / 1e6
            ),
        },
        growth_row("growth of the engine in a flood", growth),
    ])
}

fn growth_row(what: &str, growth: f64) -> Row {
    Row {
        id: "B8",
        what: what.to_owned(),
        floor: None,
        product: Amount { value: growth, unit: "MB" },
        target: Target::Max(GROWTH_MAX_MB),
        note: String::new(),
    }
}

/// The agents end as blocked: there is nothing to land.
fn project(lab: &Lab, words: &str) -> Result<(Project, std::path::PathBuf)> {
    let folder = lab.folder()?.keep();
    let log = folder.join("log");
    let settings = format!(
        "[run]\nsandbox_write = [\"{}\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\nenv = {{ BENCH_LOG = \"{}\" }}\n",
        folder.display(),
        lab.agent_line(words),
        log.display()
    );
    Ok((lab.project(5, &settings)?, log))
}

/// How much an engine grows between its first second and its end, in MB.
fn grow(mut engine: Child) -> Result<f64> {
    let pid = pid_of(&engine);
    std::thread::sleep(Duration::from_secs(1)); // opened, and its agents at work
    let mut first = None;
    let mut most = 0.0_f64;
    while engine.try_wait()?.is_none() {
        // Gone between two looks is no news: the loop ends.
        if let Ok(now) = rss_mb(pid) {
            first.get_or_insert(now);
            most = most.max(now);
        }
        std::thread::sleep(LOOK);
    }
    Ok(first.map_or(0.0, |first| most - first))
}

/// Lines of `write`: bytes, the longest write in µs, milliseconds in all.
fn seen(log: &Path) -> Result<Seen> {
    let mut seen = Seen { bytes_per_s: 0.0, longest_ms: 0.0 };
    let mut agents = 0;
    for [bytes, longest_us, took_ms] in numbers(log)? {
        seen.bytes_per_s += bytes / took_ms * 1000.0;
        seen.longest_ms = seen.longest_ms.max(longest_us / 1000.0);
        agents += 1;
    }
    ensure!(agents == AGENTS, "{agents} of {AGENTS} agents wrote to their end");
    Ok(seen)
}

/// The line of `flood`: bytes, milliseconds.
fn flood_rate(log: &Path) -> Result<f64> {
    let [[bytes, took_ms]] = numbers(log)?[..] else { anyhow::bail!("one agent floods") };
    Ok(bytes / took_ms * 1000.0)
}

fn numbers<const N: usize>(log: &Path) -> Result<Vec<[f64; N]>> {
    let text = std::fs::read_to_string(log).context("read the log of the agents")?;
    text.lines()
        .map(|line| {
            let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            numbers.try_into().ok().with_context(|| format!("`{line}` has not {N} numbers"))
        })
        .collect()
}

fn folder_bytes(folder: &Path) -> Result<f64> {
    let mut total = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        #[expect(clippy::cast_precision_loss, reason = "a file is far below 2^52 bytes")]
        let here = meta.len() as f64;
        total += if meta.is_dir() { folder_bytes(&entry.path())? } else { here };
    }
    Ok(total)
}
