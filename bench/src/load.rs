//! B9: the server under load. Viewers watch, agents print, people read; beside it, under the same load and asked in turn, a
//! server that knows its answers.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::http::Server;
use super::lab::{Lab, Project};
use super::scale::{lines, pid_of, rss_mb, stop, wait_until};
use super::table::{Amount, Row, Target};
use super::times::{p50, quantile};
use super::trivial::Trivial;
use super::viewers::{Viewers, now_ms};

const TASKS: u32 = 10_000;
const AGENTS: u32 = 50;
const EACH_BYTES: u64 = 400_000; // a second: 20 MB/s together
const ITERATION_S: u64 = 8; // then the next begins, so that there is always something to tell
const VIEWERS: usize = 200;
const READERS: u32 = 4;
const EVERY: Duration = Duration::from_millis(100); // how often each reader asks one thing of both servers
const BURST: u64 = 2_000;
const READ_MAX: f64 = 3.0;
const LAG_MAX_MS: f64 = 500.0;
const GROWTH_MAX: f64 = 1.15;
const BURST_MIN: f64 = 0.2;
const TICKS_PER_SECOND: f64 = 100.0; // of `/proc`, on every Linux there is

/// What is read, as it is called and where it is.
const READS: [(&str, &str); 6] = [
    ("status", "/api/v1/status"),
    ("board", "/api/v1/board"),
    ("list", "/api/v1/tasks?limit=100"),
    ("task", "/api/v1/tasks/T7"),
    ("output", "/api/v1/tasks/T7/output?backward=true&lines=200"),
    ("Now page", "/"),
];

pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let log = lab.folder()?;
    let file = log.path().join("log");
    let settings = format!(
        "[run]\nslots = {AGENTS}\niterations_max = 200\nstuck_after = 1000\ngrace = \"1s\"\nsandbox_write = [\"{}\"]\n\
         [agent.default]\nkind = \"command\"\nrun = \"{}\"\nenv = {{ BENCH_LOG = \"{}\" }}\n",
        log.path().display(),
        lab.agent_line(&format!("chat {EACH_BYTES} {ITERATION_S}")),
        file.display()
    );
    let project = lab.project(AGENTS, &settings)?;
    project.add(TASKS)?;
    let (mut engine, server) = serve(&project, &["--run"])?;
    let up = || Ok(lines(&file) >= AGENTS as usize);
    let measured = wait_until("every agent has printed for a while", up, &mut engine, &project)
        .and_then(|()| under_load(lab, &server, &file, pid_of(&engine)));
    stop(&mut engine)?;
    measured
}

/// Starts the server of a project, and learns where it is.
pub fn serve(project: &Project, more: &[&str]) -> Result<(Child, Server)> {
    let told = project.beside("run.log");
    let log = std::fs::File::create(&told).context("make the log of the server")?;
    let mut command = project.landfall(["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.args(more).stdout(log.try_clone()?).stderr(log);
    let mut child = command.spawn().context("start landfall serve")?;
    let served = || -> Option<serde_json::Value> {
        let text = std::fs::read_to_string(&told).ok()?;
        text.lines().find_map(|line| serde_json::from_str(line).ok())
    };
    let found = wait_until("it serves", || Ok(served().is_some()), &mut child, project).and_then(|()| {
        let served = served().context("just seen")?;
        let at = served["addresses"][0].as_str().and_then(|it| it.strip_prefix("http://"));
        let at = at.context("an address")?.parse()?;
        let token = super::lab::output(project.landfall(["token"]))?.trim().to_owned();
        Ok(Server { at, token })
    });
    match found {
        Ok(server) => Ok((child, server)),
        Err(error) => {
            stop(&mut child)?;
            Err(error)
        }
    }
}

fn under_load(lab: &Lab, server: &Server, log: &Path, pid: i32) -> Result<Vec<Row>> {
    let sizes = READS.map(|(_, path)| server.call()?.get(path).map(|(_, body)| body.len()));
    let sizes: Vec<usize> = sizes.into_iter().collect::<Result<_>>()?;
    let trivial = Trivial::start(&sizes)?;
    let viewers = Viewers::watch(server, "/api/v1/events", VIEWERS)?;
    let began = Instant::now();
    let until = began + Duration::from_secs(lab.pick(60, 30));
    let (logged, cpu, told) = (lines(log), cpu_s(pid)?, viewers.told());
    viewers.note(true);
    let (reads, memory) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let trivial = &trivial.server;
                scope.spawn(move || read(server, trivial, number, until))
            })
            .collect();
        let mut memory = Vec::new();
        while Instant::now() < until {
            memory.push(rss_mb(pid)?);
            std::thread::sleep(Duration::from_millis(250));
        }
        let mut reads = Vec::new();
        for reader in readers {
            reads.extend(reader.join().expect("no thread of ours panics")?);
        }
        Ok::<_, anyhow::Error>((reads, memory))
    })?;
    viewers.note(false);
    let seconds = began.elapsed().as_secs_f64();
    let busy = (cpu_s(pid)? - cpu) / seconds;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let told = (viewers.told() - told) as f64 / VIEWERS as f64 / seconds;
    let lags = viewers.lags_ms();
    ensure!(!lags.is_empty(), "nothing happened that could be told");
    let printed = printed_mb_s(log, logged)?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();

    let mut rows = Vec::new();
    let all = |of: fn(&Read) -> f64| -> Vec<f64> { reads.iter().map(of).collect() };
    let row = |what: String, floor: Vec<f64>, product: Vec<f64>, q: f64, target| Row {
        id: "B9",
        what,
        floor: Some(Amount { value: quantile(floor, q), unit: "ms" }),
        product: Amount { value: quantile(product, q), unit: "ms" },
        target,
        note: String::new(),
    };
    rows.push(Row {
        note: format!(
            "{} reads of each server in turn, {seconds:.0} s, {VIEWERS} viewers, {AGENTS} agents that print {printed:.1} MB/s, {TASKS} tasks, load {load}",
            reads.len()
        ),
        ..row("all reads, p99".to_owned(), all(|it| it.floor), all(|it| it.product), 0.99, Target::RatioMax(READ_MAX))
    });
    rows.push(row("all reads, p50".to_owned(), all(|it| it.floor), all(|it| it.product), 0.5, Target::None));
    #[expect(clippy::cast_precision_loss, reason = "a page is small")]
    let kb = |place: usize| sizes[place] as f64 / 1000.0;
    for (place, (name, _)) in READS.iter().enumerate() {
        let of =
            |of: fn(&Read) -> f64| reads.iter().filter(|it| it.place == place).map(of).collect::<Vec<f64>>();
        for (word, q) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("{name}, {:.0} kB, {word}", kb(place));
            rows.push(row(what, of(|it| it.floor), of(|it| it.product), q, Target::None));
        }
    }
    let alone = |what: String, value: f64, unit, target, note: String| Row {
        id: "B9",
        what,
        floor: None,
        product: Amount { value, unit },
        target,
        note,
    };
    rows.push(alone(
        "lag of events, p99".to_owned(),
        quantile(lags.clone(), 0.99),
        "ms",
        Target::Max(LAG_MAX_MS),
        format!("from the moment the journal gives it to the moment a viewer has it; {told:.0} events a second to each viewer, {} viewers lost or with a gap", viewers.broken()),
    ));
    rows.push(alone("lag of events, p50".to_owned(), p50(lags), "ms", Target::None, String::new()));
    let third = memory.len() / 3;
    let (first, middle, last) = (
        p50(memory[..third].to_vec()),
        p50(memory[third..2 * third].to_vec()),
        p50(memory[2 * third..].to_vec()),
    );
    rows.push(Row {
        id: "B9",
        what: "memory of the engine, last third against the middle one".to_owned(),
        floor: Some(Amount { value: middle, unit: "MB" }),
        product: Amount { value: last, unit: "MB" },
        target: Target::RatioMax(GROWTH_MAX),
        note: format!("{first:.1} MB in the first third"),
    });
    rows.push(alone("processors the engine uses".to_owned(), busy, "of them", Target::None, String::new()));
    ensure!(viewers.broken() == 0, "{} viewers were hung up on, or saw a gap", viewers.broken());
    rows.push(burst(server, &trivial.server, &viewers)?);
    Ok(rows)
}

/// One question, as both servers answered it.
struct Read {
    place: usize,
    product: f64,
    floor: f64,
}

/// Asks both servers at an even pace; who is asked first changes.
fn read(server: &Server, trivial: &Server, number: u32, until: Instant) -> Result<Vec<Read>> {
    let (mut product, mut floor) = (server.call()?, trivial.call()?);
    let mut due = Instant::now() + EVERY * number / READERS;
    let mut reads = Vec::new();
    for turn in number as usize.. {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if Instant::now() >= until {
            break;
        }
        due += EVERY;
        let place = turn % READS.len();
        let mut ours = || product.get(READS[place].1).map(|(took, _)| took);
        let mut theirs = || floor.get(&format!("/{place}")).map(|(took, _)| took);
        let (product, floor) = match turn / READS.len() % 2 {
            0 => (ours()?, theirs()?),
            _ => {
                let floor = theirs()?;
                (ours()?, floor)
            }
        };
        reads.push(Read { place, product, floor });
    }
    Ok(reads)
}

/// Many events at once, to everybody.
fn burst(server: &Server, trivial: &Server, viewers: &Viewers) -> Result<Row> {
    let title = "A task of many that are added at once, to see how soon everybody knows of them";
    let tasks: Vec<_> = (0..BURST).map(|_| serde_json::json!({ "title": title })).collect();
    let body = serde_json::json!({ "tasks": tasks }).to_string();
    let mut caller = server.call()?;
    let before = head(&mut caller)?.0;
    caller.post("/api/v1/tasks", &body)?;
    let (last, ..) = head(&mut caller)?;
    viewers.wait_for(last)?;
    let ended = now_ms();
    let (_, at_ms, bytes) = head_after(&mut caller, before)?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let deliveries = (last - before) as f64 * VIEWERS as f64;
    let product = deliveries / (ended - at_ms) * 1000.0;
    let watching = Viewers::watch(trivial, "/events", VIEWERS)?;
    let began = Instant::now();
    trivial.call()?.post(&format!("/burst/{}/{bytes}", last - before), "")?;
    watching.wait_for(last - before)?;
    let floor = deliveries / began.elapsed().as_secs_f64();
    Ok(Row {
        id: "B9",
        what: format!("deliveries, {} events at once to {VIEWERS} viewers", last - before),
        floor: Some(Amount { value: floor / 1000.0, unit: "k/s" }),
        product: Amount { value: product / 1000.0, unit: "k/s" },
        target: Target::RatioMin(BURST_MIN),
        note: format!(
            "{:.0} ms from the moment of the first event until the last viewer had the last, writing them included",
            ended - at_ms
        ),
    })
}

/// The last event: its place, its moment, its size.
fn head(caller: &mut super::http::Caller) -> Result<(u64, f64, usize)> {
    entry(caller, "/api/v1/journal?limit=1&last=true")
}

/// The first event of a task added after a place.
fn head_after(caller: &mut super::http::Caller, after: u64) -> Result<(u64, f64, usize)> {
    let (_, page) = caller.get(&format!("/api/v1/journal?limit=500&after={after}"))?;
    let page: serde_json::Value = serde_json::from_slice(&page)?;
    let entries = page["entries"].as_array().context("entries")?;
    let added = entries.iter().find(|it| it["kind"] == "added").context("an added task")?;
    read_entry(added)
}

fn entry(caller: &mut super::http::Caller, path: &str) -> Result<(u64, f64, usize)> {
    let (_, page) = caller.get(path)?;
    let page: serde_json::Value = serde_json::from_slice(&page)?;
    read_entry(&page["entries"][0])
}

fn read_entry(entry: &serde_json::Value) -> Result<(u64, f64, usize)> {
    let seq = entry["seq"].as_u64().context("a place")?;
    let at_ms = entry["at_ms"].as_f64().context("a moment")?;
    Ok((seq, at_ms, entry.to_string().len()))
}

/// What the agents printed, by their own notes after the first so many.
fn printed_mb_s(log: &Path, after: usize) -> Result<f64> {
    let text = std::fs::read_to_string(log)?;
    let rate = |line: &str| -> Option<f64> {
        let mut words = line.split(' ');
        let bytes: f64 = words.next()?.parse().ok()?;
        Some(bytes / words.nth(1)?.parse::<f64>().ok()? / 1000.0)
    };
    let rates: Vec<f64> = text.lines().skip(after).filter_map(rate).collect();
    ensure!(!rates.is_empty(), "no agent came to the end of an iteration");
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Ok(mean * f64::from(AGENTS))
}

/// The processor time a process has used.
fn cpu_s(pid: i32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("read the time of the engine")?;
    let rest = text.rsplit_once(')').context("a name in brackets")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / TICKS_PER_SECOND)
}
