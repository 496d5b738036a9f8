//! B12: how much of the slots is in use while there is work for them.
//!
//! The journal says it all: who was ready, who had a slot, whose agent was at work, and whether agents were held back
//! because enough work waited to be verified. Between two facts nothing changes, so the shares are sums over the spans.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::lab::{Lab, Project, git, output, repository};
use super::table::{Amount, Row, Target};
use super::times::{ms, p50, timed};

const SLOTS: u32 = 8;
const BUSY_MIN: f64 = 95.0; // per cent
const FILES: u32 = 400; // more than tasks: each has a file of its own
const WIDTH: u32 = 40; // how many tasks need nothing; as many are ready most of the time
const THINKS_MS: (u32, u32) = (1_000, 2_000);

/// A backlog with needs, from its first agent to its last.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let tasks = lab.pick(120, 48);
    let think = format!("think {} {} {FILES}", THINKS_MS.0, THINKS_MS.1);
    let settings = format!(
        "[verify]\ncommand = [\"true\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\n",
        lab.agent_line(&think)
    );
    let project = lab.project(FILES, &settings)?;
    // The first workspaces of a project are made from nothing; a long run does not notice.
    project.add(2 * SLOTS)?;
    project.run_to_end(SLOTS)?;
    let cold = Shares::read(&project)?;
    let floor = floor(lab, tasks, &think)?;
    project.add_text(&backlog(tasks))?;
    project.run_to_end(SLOTS)?;
    let landed = project.count("SELECT count(*) FROM task WHERE status = 'done'")?;
    ensure!(landed == i64::from(tasks + 2 * SLOTS), "{landed} tasks landed:\n{}", project.log());
    let shares = Shares::read(&project)?;
    let percent = |value: f64| Amount { value: value * 100.0, unit: "%" };
    let row = |what: &str, product: Amount, note: &str| Row {
        id: "B12",
        what: what.to_owned(),
        floor: None,
        product,
        target: Target::None,
        note: note.to_owned(),
    };
    let ms = |of: Vec<f64>| Amount { value: p50(of), unit: "ms" };
    Ok(vec![
        Row {
            id: "B12",
            what: format!("slots busy while work is ready, {tasks} tasks, {SLOTS} slots"),
            floor: Some(percent(floor)),
            product: percent(shares.at_work / shares.offered),
            target: Target::Min(BUSY_MIN),
            note: "time of agents at work (`iteration-began` to `iteration-ended`) over the time of slots that had a task \
                   or could have had one; an agent takes 1 to 2 s, so a start of 75 ms is 5 %; floor: 8 standing \
                   worktrees, reset, agent, and nothing else"
                .to_owned(),
        },
        row(
            "the same, a slot being in use as soon as it is granted",
            percent(shares.held / shares.offered),
            "the difference is workspaces being made and sitters started",
        ),
        row("from the grant of a slot to its agent at work", ms(shares.starts_ms), "with a warm pool"),
        row(
            "the same, the first agents of a project",
            ms(cold.starts_ms.into_iter().take(SLOTS as usize).collect()),
            "eight workspaces made at once, from nothing",
        ),
        row(
            "slots empty because enough waits to be verified",
            percent(shares.paced / shares.all),
            "of all slot-time, left out above: agents that run further ahead land nothing sooner",
        ),
        row(
            "slots empty because nothing is ready",
            percent(shares.nothing_ready / shares.all),
            "of all slot-time, the end of the run included; left out above",
        ),
    ])
}

/// The share of time in which an agent is at work, when all there is besides is a checkout to be reset.
fn floor(lab: &Lab, tasks: u32, think: &str) -> Result<f64> {
    let dir = lab.folder()?;
    let root = dir.path().join("project");
    repository(&root, FILES, "")?;
    let seats: Vec<PathBuf> = (0..SLOTS).map(|seat| dir.path().join(format!("seat{seat}"))).collect();
    for seat in &seats {
        git(&root, &["worktree", "add", "-q", "--detach", &seat.to_string_lossy(), "main"])?;
    }
    let (last, agent) = (AtomicU32::new(0), &lab.agent);
    let work = |seat: &Path| -> Result<(f64, f64)> {
        let (mut at_work, began) = (0.0, Instant::now());
        loop {
            let number = last.fetch_add(1, Ordering::SeqCst) + 1;
            if number > tasks {
                return Ok((at_work, ms(began.elapsed())));
            }
            git(seat, &["reset", "-q", "--hard", "main"])?;
            let mut agent = Command::new(agent);
            agent.args(think.split(' ')).current_dir(seat).env("LANDFALL_TASK", format!("T{number}"));
            agent.stdin(Stdio::null());
            at_work += timed(|| output(agent))?.0;
        }
    };
    let seats: Vec<(f64, f64)> = std::thread::scope(|scope| {
        let workers: Vec<_> = seats.iter().map(|seat| scope.spawn(|| work(seat))).collect();
        workers.into_iter().map(|it| it.join().expect("no thread of ours panics")).collect::<Result<_>>()
    })?;
    let sum = |of: fn(&(f64, f64)) -> f64| seats.iter().map(of).sum::<f64>();
    Ok(sum(|seat| seat.0) / sum(|seat| seat.1))
}

/// Tasks as a file: each but the first ones needs two that came before it.
fn backlog(tasks: u32) -> String {
    (1..=tasks)
        .map(|number| {
            let needs = match number.checked_sub(WIDTH) {
                None | Some(0) => String::new(),
                Some(one) => format!("needs = [\"#{one}\", \"#{}\"]\n", (one + 3).min(number - 1)),
            };
            format!("+++\ntitle = \"Change a file, number {number}\"\n{needs}+++\n\n")
        })
        .collect()
}

/// Where a task is, as far as slots are concerned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Its needs have not landed.
    Held,
    /// It could have a slot.
    Ready,
    /// It has a slot, and its agent is not at work: a workspace is made, an agent started.
    Granted,
    /// Its agent is at work.
    AtWork,
    /// It waits to be verified, or stands in the landing queue: enough of these hold agents back.
    InLine,
    /// It is being verified or landed, or it is over.
    Beyond,
}

/// Slot-time, in milliseconds.
#[derive(Default)]
struct Shares {
    /// All of it.
    all: f64,
    /// Slots that had a task, or could have had one.
    offered: f64,
    /// Slots that had a task.
    held: f64,
    /// Slots whose agent was at work.
    at_work: f64,
    /// Slots left empty although work was ready, because enough waited to be verified.
    paced: f64,
    /// Slots for which nothing was ready.
    nothing_ready: f64,
    /// From each grant to the agent at work.
    starts_ms: Vec<f64>,
}

impl Shares {
    /// Of the latest run, until there is nothing more for a slot.
    fn read(project: &Project) -> Result<Self> {
        let journal = project.journal()?;
        let mut question = journal.prepare("SELECT at_ms, task, kind, body FROM event ORDER BY seq")?;
        let mut facts = question.query([])?;
        let (mut floor, mut shares) = (Floor::default(), Self::default());
        let mut before = None;
        while let Some(fact) = facts.next()? {
            let (at_ms, task, kind) = (fact.get::<_, i64>(0)?, fact.get(1)?, fact.get::<_, String>(2)?);
            if kind == "run-started" {
                (before, shares) = (Some(at_ms), Self::default());
            }
            let Some(task) = task else { continue };
            if let Some(before) = before.filter(|_| floor.has_more()) {
                shares.pass(span_ms(before, at_ms), &floor);
            }
            before = before.map(|_| at_ms);
            if kind == "iteration-began"
                && let Some(granted_at) = floor.granted_at.remove(&task)
            {
                shares.starts_ms.push(span_ms(granted_at, at_ms));
            }
            let body: Value = serde_json::from_str(&fact.get::<_, String>(3)?)?;
            floor.hear(at_ms, task, &kind, &body)?;
        }
        ensure!(shares.offered > 0.0 && !shares.starts_ms.is_empty(), "the journal tells of no agent");
        Ok(shares)
    }

    /// So much time in which nothing changed.
    fn pass(&mut self, ms: f64, floor: &Floor) {
        let at_work = floor.count(Place::AtWork);
        let held = at_work + floor.count(Place::Granted);
        let usable = (held + floor.count(Place::Ready)).min(SLOTS);
        let offered = if floor.is_paced() { held } else { usable };
        let slots = |count: u32| f64::from(count) * ms;
        self.all += slots(SLOTS);
        self.offered += slots(offered);
        self.held += slots(held);
        self.at_work += slots(at_work);
        self.paced += slots(usable - offered);
        self.nothing_ready += slots(SLOTS - usable);
    }
}

/// Where every task is.
#[derive(Default)]
struct Floor {
    places: BTreeMap<i64, Place>,
    counts: BTreeMap<Place, u32>,
    needs: BTreeMap<i64, BTreeSet<i64>>,
    /// When whoever has a slot, and no agent yet, got it.
    granted_at: BTreeMap<i64, i64>,
}

impl Floor {
    fn count(&self, place: Place) -> u32 {
        self.counts.get(&place).copied().unwrap_or(0)
    }

    /// Whether there is, or will be, something for a slot.
    fn has_more(&self) -> bool {
        [Place::Held, Place::Ready, Place::Granted, Place::AtWork].iter().any(|place| self.count(*place) > 0)
    }

    /// As the engine holds agents back: as much waits to be verified or landed as there are slots.
    fn is_paced(&self) -> bool {
        self.count(Place::InLine) >= SLOTS
    }

    fn put(&mut self, task: i64, place: Place) {
        if let Some(before) = self.places.insert(task, place) {
            *self.counts.entry(before).or_default() -= 1;
        }
        *self.counts.entry(place).or_default() += 1;
    }

    fn hear(&mut self, at_ms: i64, task: i64, kind: &str, body: &Value) -> Result<()> {
        match (kind, body["step"].as_str()) {
            ("added", _) => {
                let needs = body["spec"]["needs"].as_array().into_iter().flatten();
                let needs: BTreeSet<i64> =
                    needs.map(|need| need.as_i64().context("a need is a number")).collect::<Result<_>>()?;
                self.put(task, if needs.is_empty() { Place::Ready } else { Place::Held });
                self.needs.insert(task, needs);
            }
            ("entered", Some("work")) => {
                self.put(task, Place::Granted);
                self.granted_at.insert(task, at_ms);
            }
            ("iteration-began", _) => self.put(task, Place::AtWork),
            ("iteration-ended", _) => self.put(task, Place::Granted),
            ("left", Some("work" | "verify")) => match body["to"]["step"].as_str() {
                Some("work") => self.put(task, Place::Ready),
                _ => self.put(task, Place::InLine),
            },
            ("entered", Some("verify")) | ("landing-began", _) => self.put(task, Place::Beyond),
            ("entered", Some("land")) => self.put(task, Place::InLine),
            ("landed", _) => self.landed(task),
            _ => {}
        }
        Ok(())
    }

    fn landed(&mut self, task: i64) {
        self.put(task, Place::Beyond);
        let mut ready = Vec::new();
        for (id, needs) in &mut self.needs {
            if needs.remove(&task) && needs.is_empty() {
                ready.push(*id);
            }
        }
        for id in ready {
            self.put(id, Place::Ready);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a run is far below 2^52 milliseconds")]
fn span_ms(from: i64, to: i64) -> f64 {
    (to - from).max(0) as f64
}
