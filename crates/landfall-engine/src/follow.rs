//! Following agents at work: one thread for all of them. It reads what they write, shows it, and tells the engine when
//! one has ended. It decides nothing but silence, by the limit a person set.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use landfall_agents::Parse;
use landfall_host::sitter::{self, Cause, Follow, Found, Sitting, Stream, Waker, Watch};
use landfall_model::{Attempt, EndedRun, Evidence, Exit, News, Said, Signal, StepKind, Task, TaskId, Usage};

use crate::launch::{head_of, marker};
use crate::patience::{Patience, Press, abandon};
use crate::perform::{Fuse, go};
use crate::site::{Live, Site};

/// An agent to follow.
pub(crate) struct Followed {
    /// Its task, as it was when the run began.
    pub task: Arc<Task>,
    /// Within this attempt.
    pub attempt: Attempt,
    /// Which run.
    pub iteration: u32,
    /// The folder of the run.
    pub dir: PathBuf,
    /// Who sits with it, if it was just started; else the folder is looked at.
    pub sitting: Option<Sitting>,
    /// The hard limit its sitter keeps.
    pub deadline_ms: u64,
    /// What understands it.
    pub parser: Box<dyn Parse + Send>,
}

enum Order {
    Follow(Box<Followed>),
    End,
}

/// The thread that follows agents. Clones share it.
#[derive(Clone)]
pub(crate) struct Follower {
    orders: Sender<Order>,
    waker: Waker,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Follower {
    /// Starts the thread.
    pub fn start(site: Arc<Site>) -> Self {
        let (orders, inbox) = mpsc::channel();
        let watch = Watch::new().expect("the kernel gives an epoll");
        let waker = watch.waker();
        let thread = std::thread::Builder::new()
            .name("follow".to_owned())
            .spawn(move || {
                let _fuse = Fuse;
                Desk { site, watch, inbox, next: 0, open: HashMap::new() }.run();
            })
            .expect("one more thread can be had");
        Self { orders, waker, thread: Arc::new(Mutex::new(Some(thread))) }
    }

    /// Follows one more agent, or reports its end if it is over.
    pub fn follow(&self, followed: Followed) {
        drop(self.orders.send(Order::Follow(Box::new(followed)))); // the run is over: recovery follows it next time
        self.waker.wake();
    }

    /// Ends the thread. Agents that still run go on.
    pub fn end(&self) {
        drop(self.orders.send(Order::End)); // it has ended already
        self.waker.wake();
        let thread = self.thread.lock().expect("held only here").take();
        if let Some(thread) = thread {
            drop(thread.join()); // a panic there has ended the process
        }
    }
}

struct Open {
    followed: Followed,
    out: Follow,
    err: Follow,
    sitting: Option<Sitting>,
    seen: Vec<Signal>,
    live: Live,
    heard_ms: u64,
    ticks: u64,
    /// How long its sitter is trusted to keep the limits.
    patience: Patience,
    asked: Option<Asked>,
}

/// Why the follower asked a run to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A person wants it to end.
    Stopped,
    /// Nothing was heard of it for too long.
    Silent,
    /// Its sitter did not end it in time.
    Overdue,
}

struct Desk {
    site: Arc<Site>,
    watch: Watch,
    inbox: Receiver<Order>,
    next: u64,
    open: HashMap<u64, Open>,
}

const TICK: Duration = Duration::from_millis(120); // often enough for a person's eye
const READ_MAX: usize = 256 * 1024; // one agent must not keep the others waiting
const SEEN_MAX: usize = 10_000; // control words of one run; an agent that says more repeats itself
const WORDS_MAX: usize = 200;
const BUSY_MS_PER_TICK: u64 = 500; // a fiftieth of a core: more than timers and garbage collection, less than any build

impl Desk {
    fn run(mut self) {
        loop {
            let pause = if self.open.is_empty() { None } else { Some(TICK) };
            let ended = self.watch.wait(pause).unwrap_or_default();
            for id in ended {
                self.end(id);
            }
            loop {
                match self.inbox.try_recv() {
                    Ok(Order::Follow(followed)) => self.take(*followed),
                    Ok(Order::End) => return,
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return,
                }
            }
            self.tick();
        }
    }

    fn take(&mut self, followed: Followed) {
        let id = self.next;
        self.next += 1;
        let sitting = match &followed.sitting {
            Some(sitting) => Some(sitting.clone()),
            None => match sitter::find(&followed.dir) {
                Ok(Found::Running(sitting)) => Some(sitting),
                _ => None,
            },
        };
        let out = Follow::new(&followed.dir, Stream::Out, 0);
        let err = Follow::new(&followed.dir, Stream::Err, 0);
        let heard_ms = self.site.clock.mono_ms();
        let live = Live::default();
        let grace_ms = self.site.settings.run.grace_ms;
        let patience = Patience::with_limit(heard_ms, followed.deadline_ms, grace_ms);
        let open = Open {
            followed,
            out,
            err,
            sitting: sitting.clone(),
            seen: Vec::new(),
            live,
            heard_ms,
            ticks: 0,
            patience,
            asked: None,
        };
        self.open.insert(id, open);
        let watched = sitting.is_some_and(|sitting| self.watch.add(id, &sitting).is_ok());
        if !watched {
            self.end(id);
        }
    }

    fn tick(&mut self) {
        let now = self.site.clock.mono_ms();
        let settings = &self.site.settings.run;
        for open in self.open.values_mut() {
            if open.read(READ_MAX) > 0 {
                open.heard_ms = now;
            }
            self.site.show(open.followed.task.id, &open.live);
            if open.asked.is_none() {
                if self.site.is_stopped(open.followed.task.id, open.followed.attempt) {
                    open.ask(Asked::Stopped, now, settings.grace_ms);
                } else if now.saturating_sub(open.heard_ms) >= settings.silence_ms
                    && !open.is_at_work(now, settings.silence_ms)
                {
                    open.ask(Asked::Silent, now, settings.grace_ms);
                }
            }
            open.press(&self.site, now);
        }
    }

    /// The sitter is gone: read the rest and tell the engine.
    fn end(&mut self, id: u64) {
        self.watch.remove(id);
        let Some(mut open) = self.open.remove(&id) else { return };
        while open.read(READ_MAX) > 0 {}
        let rest = open.followed.parser.finish();
        open.hear(rest);
        let site = &self.site;
        site.view
            .lock()
            .expect("no thread panics while it holds the view")
            .live
            .remove(&open.followed.task.id);
        let (exit, took_ms, began_ms) = match sitter::find(&open.followed.dir) {
            Ok(Found::Ended(ended)) => {
                let took = u64::try_from(ended.ended_ms - ended.began_ms).unwrap_or(0);
                (exit_of(&ended, open.asked), took, ended.began_ms)
            }
            Ok(Found::Never | Found::Starting | Found::Running(_) | Found::Vanished) | Err(_) => {
                let dir = &open.followed.dir;
                abandon(dir, &marker(site, dir)); // the next attempt works in the same workspace
                match open.asked {
                    Some(Asked::Overdue) => (Exit::Deadline, open.followed.deadline_ms, 0),
                    Some(Asked::Silent) => (Exit::Silent, 0, 0),
                    Some(Asked::Stopped) | None => (Exit::Lost, 0, 0),
                }
            }
        };
        let Followed { task, attempt, iteration, .. } = open.followed;
        let evidence = Evidence {
            head_before: task.seen_head.clone(),
            head_after: head_of(site, &task),
            missing: missing_outputs(site, &task, began_ms),
            closes: false,
        };
        let run = EndedRun { attempt, iteration, exit, seen: open.seen, evidence, took_ms };
        site.tell(task.id, News::AgentEnded(run));
    }
}

impl Open {
    /// Reads what is new; how many bytes that was.
    fn read(&mut self, max: usize) -> usize {
        let mut read = 0;
        for stream in [Stream::Out, Stream::Err] {
            let (follow, as_agent) = match stream {
                Stream::Out => (&mut self.out, landfall_agents::Stream::Out),
                Stream::Err => (&mut self.err, landfall_agents::Stream::Err),
            };
            let bytes = follow.read(max).unwrap_or_default();
            if bytes.is_empty() {
                continue;
            }
            read += bytes.len();
            let signals = self.followed.parser.feed(as_agent, &bytes);
            self.hear(signals);
        }
        self.live.bytes += read as u64;
        read
    }

    /// Whether it is hard at work all the same: a silent build is not a stall. One without a sitter is at its end.
    fn is_at_work(&mut self, now: u64, silence: u64) -> bool {
        let Some(sitting) = &self.sitting else { return true };
        let ticks = sitter::cpu_ticks(sitting);
        let at_work = ticks.saturating_sub(self.ticks) > silence / BUSY_MS_PER_TICK;
        self.ticks = ticks;
        if at_work {
            self.heard_ms = now;
        }
        at_work
    }

    /// Asks the run to end.
    fn ask(&mut self, asked: Asked, now: u64, grace_ms: u64) {
        let Some(sitting) = &self.sitting else { return };
        drop(sitter::stop(sitting, sitter::Stop::Gently)); // gone already is as good; its end is news either way
        self.asked = Some(asked);
        self.patience = Patience::asked(now, grace_ms);
    }

    /// Presses a sitter that does not end its run in time, at last by force: in a thread, as that may take seconds.
    fn press(&mut self, site: &Arc<Site>, now: u64) {
        let Some(sitting) = &self.sitting else { return };
        match self.patience.press(now, sitting) {
            Press::Wait => return,
            Press::Told => {}
            Press::Abandon => {
                let (dir, marker) = (self.followed.dir.clone(), marker(site, &self.followed.dir));
                go(site, "abandon", move |_| abandon(&dir, &marker));
            }
        }
        self.asked.get_or_insert(Asked::Overdue);
    }

    /// Keeps what the verdict may need; words are only shown.
    fn hear(&mut self, signals: Vec<Signal>) {
        for signal in signals {
            match &signal {
                Signal::Text(text) => {
                    if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                        self.live.words = line.trim().chars().take(WORDS_MAX).collect();
                    }
                    continue;
                }
                Signal::ToolUse { name, .. } => {
                    self.live.words = format!("[{name}]");
                    continue;
                }
                Signal::Usage(usage) => self.live.usage = Usage::plus(self.live.usage, *usage),
                Signal::Said(Said::Progress(percent)) => self.live.progress = Some(*percent),
                Signal::ToolDone | Signal::Context { .. } => continue,
                Signal::Cost(_)
                | Signal::Compacted
                | Signal::Allowance { .. }
                | Signal::Unauthorized { .. }
                | Signal::SessionGone
                | Signal::Started { .. }
                | Signal::Quota { .. }
                | Signal::Transient { .. }
                | Signal::PermissionAsked { .. }
                | Signal::Question(_)
                | Signal::Said(_)
                | Signal::Malformed { .. }
                | Signal::Finished { .. } => {}
            }
            if self.seen.len() == SEEN_MAX {
                self.seen.remove(0); // the last control word wins
            }
            self.seen.push(signal);
        }
    }
}

impl Site {
    fn show(&self, task: TaskId, live: &Live) {
        let mut view = self.view.lock().expect("no thread panics while it holds the view");
        view.live.insert(task, live.clone());
    }
}

fn exit_of(ended: &sitter::Ended, asked: Option<Asked>) -> Exit {
    match (ended.cause, &ended.exit) {
        (_, sitter::Exit::NotStarted { message, denied, .. }) => {
            Exit::NotStarted { detail: message.clone(), hopeless: *denied }
        }
        (Cause::Deadline, _) => Exit::Deadline,
        (Cause::Asked, _) => match asked {
            Some(Asked::Silent) => Exit::Silent,
            Some(Asked::Overdue) => Exit::Deadline,
            Some(Asked::Stopped) | None => Exit::Asked,
        },
        (Cause::Own, sitter::Exit::Code(code)) => Exit::Code(*code),
        (Cause::Own, sitter::Exit::Signal(signal)) => Exit::Signal(*signal),
    }
}

/// What the step must leave behind and has not: missing, empty, not a plain file, or older than the run.
fn missing_outputs(site: &Site, task: &Task, began_ms: i64) -> Vec<String> {
    let step = task.step().and_then(|name| task.flow.as_ref()?.step(name));
    let Some(StepKind::Agent { output, .. }) = step.map(|step| &step.kind) else { return Vec::new() };
    let Some(workspace) = site.pool.existing(&task.id.to_string()) else { return output.clone() };
    let there = |name: &str| {
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let Ok(meta) = std::fs::symlink_metadata(workspace.path().join(name)) else { return false };
        let written = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let new = written.is_some_and(|at| i64::try_from(at.as_millis()).is_ok_and(|ms| ms >= began_ms));
        plain && meta.is_file() && meta.len() > 0 && new
    };
    output.iter().filter(|name| !there(name)).cloned().collect()
}
