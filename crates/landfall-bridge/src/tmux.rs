//! The bridge to agents that want a terminal: one prompt typed, what is asked answered by the table, one end.
//!
//! The terminal belongs to a tmux server of this run alone. A person may attach and type at any time; we look about once
//! a second and press a key only when the table of `landfall-agents` names one, the same question has stood there
//! for two looks, and nothing but the agent has the keyboard. Every key is told.

mod front;
mod server;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landfall_agents::tmux::{Cli, Key, NEXT, Next, Note, Order, Screen, Seen, look, messages};

use crate::say;
use front::{Front, front};
use server::{Server, Shot};
use watch::Watch;

/// Between two looks while something happens.
const LOOK: Duration = Duration::from_millis(700);
/// Between two looks at a program that is not ready: doubled each time up to the second.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How long is waited before the next look at what is not ready.
#[derive(Debug, Clone, Copy)]
struct BackOff(Duration);

impl BackOff {
    const fn new() -> Self {
        Self(WAIT_MIN)
    }

    /// This time so long; the next time twice that.
    fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(WAIT_MAX);
        wait
    }
}

/// How long a program may take until it can be typed to, questions to a person not counted.
const READY_MAX: Duration = Duration::from_secs(300);
/// In how many looks in a row a program must be idle before it is typed to: some draw their input before a dialog.
const IDLE_LOOKS: u32 = 3;
/// How long an idle screen must stay as it is before we believe that the work is done.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a program may go without a sign that it has taken the prompt before Enter is pressed again.
const TAKEN: Duration = Duration::from_secs(15);
/// How often Enter is pressed again.
const ENTER_MAX: u32 = 2;
/// Between a pasted text and Enter: without it some programs take Enter for a part of the text.
const BREATH: Duration = Duration::from_millis(500);
/// How long a program may take to leave when asked to.
const LEAVE_MAX: Duration = Duration::from_secs(4);

const DONE: u8 = 0;
const FAILED: u8 = 1;

/// Drives the agent that stdin orders. Returns the exit code.
#[must_use]
pub fn run() -> u8 {
    let order = match crate::order(Order::read) {
        Ok(order) => order,
        Err(code) => return code,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            eprintln!("listen for signals: {error}");
            return FAILED;
        }
    }
    let mut server = match Server::start(&order) {
        Ok(server) => server,
        Err(problem) => {
            note(&Note::Failed { why: problem });
            note(&Note::Ended { how: "not started".to_owned() });
            return FAILED;
        }
    };
    let end = Bridge::new(&order, &mut server, stop).drive();
    let code = match &end {
        End::Done => {
            note(&Note::Done);
            DONE
        }
        End::Stopped => {
            note(&Note::Stopping);
            DONE
        }
        End::Failed(why) => {
            note(&Note::Failed { why: why.clone() });
            FAILED
        }
    };
    let how = leave(&order, &mut server, &end);
    server.kill();
    note(&Note::Ended { how });
    code
}

fn note(note: &Note) {
    say::line(&note.line());
}

/// How a drive ends.
enum End {
    /// The agent has done what it was asked, and waits.
    Done,
    /// We were told to stop.
    Stopped,
    /// It did not come to that.
    Failed(String),
}

/// Where we are with it.
enum Phase {
    /// It is not ready to be typed to.
    Starting,
    /// The prompt is typed; nothing shows yet that it was taken.
    Typed { at: Instant, enters: u32, typed: Screen },
    /// It works, or has worked.
    Working,
    /// It has done what it was told, and the next step is waited for: looked for again then, after this span.
    Between { due: Instant, wait: BackOff },
}

/// What was seen, on which screen, since when the screen is so, and in how many looks in a row.
struct Last {
    seen: Seen,
    screen: Screen,
    since: Instant,
    times: u32,
}

struct Bridge<'a> {
    order: &'a Order,
    server: &'a mut Server,
    stop: Arc<AtomicBool>,
    phase: Phase,
    /// How many commands were typed after the prompt.
    typed: u32,
    /// The last look.
    last: Option<Last>,
    /// Questions for a person that were told already.
    asked: VecDeque<String>,
    held: Option<String>,
    watch: Watch,
}

impl<'a> Bridge<'a> {
    fn new(order: &'a Order, server: &'a mut Server, stop: Arc<AtomicBool>) -> Self {
        note(&Note::Started {
            program: order.argv.first().cloned().unwrap_or_default(),
            pid: server.pane(),
            session: order.session.clone(),
        });
        Self {
            order,
            server,
            stop,
            phase: Phase::Starting,
            typed: 0,
            last: None,
            asked: VecDeque::new(),
            held: None,
            watch: Watch::new(order.cli),
        }
    }

    fn drive(mut self) -> End {
        let mut wait = BackOff::new();
        let mut ready_by = Instant::now() + READY_MAX;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return End::Stopped;
            }
            let shot = match self.server.look() {
                Ok(shot) => shot,
                Err(_) if self.stop.load(Ordering::Relaxed) => return End::Stopped,
                Err(problem) => return End::Failed(problem),
            };
            let Shot { screen, dead } = shot;
            if let Some(how) = dead {
                return End::Failed(format!("the agent ended by itself: {how}"));
            }
            let seen = look(self.order.cli, &screen);
            let (settled, times) = self.remember(&seen, &screen);
            let twice = times >= 2;
            if !matches!(self.phase, Phase::Starting) {
                self.watch.see(&seen, &screen);
            }
            match &seen {
                Seen::Limit(text) => {
                    note(&Note::Limit { text: text.clone() });
                    return End::Failed("the account is used up".to_owned());
                }
                Seen::Login(text) if twice => {
                    note(&Note::Login { text: text.clone() });
                    return End::Failed("the agent wants a login".to_owned());
                }
                Seen::Ask(ask) if twice => {
                    match ask.key {
                        Some(key) => self.press(key, ask.why.word()),
                        None => self.ask_person(ask.why.word(), &ask.text),
                    }
                    // While a person is waited for, nobody is late.
                    ready_by = Instant::now() + READY_MAX;
                    wait = BackOff::new();
                }
                Seen::Ask(_) | Seen::Login(_) | Seen::Idle | Seen::Busy | Seen::Unknown => {}
            }
            let now = Instant::now();
            let nap = match &mut self.phase {
                Phase::Starting => match seen {
                    Seen::Idle if times >= IDLE_LOOKS => {
                        let prompt = self.order.prompt.clone();
                        self.prompt(&prompt, &screen);
                        LOOK
                    }
                    Seen::Idle | Seen::Ask(_) | Seen::Login(_) => LOOK,
                    Seen::Unknown | Seen::Busy | Seen::Limit(_) => {
                        if now > ready_by {
                            return End::Failed(format!("not ready within {} s", READY_MAX.as_secs()));
                        }
                        wait.next()
                    }
                },
                Phase::Typed { at, enters, typed } => {
                    let began = match self.order.cli {
                        Cli::Claude | Cli::Codex => {
                            matches!(seen, Seen::Busy | Seen::Ask(_)) || self.watch.has_heard()
                        }
                        // What we do not know shows no work; only that it has done something.
                        Cli::Other => screen != *typed || matches!(seen, Seen::Ask(_)),
                    };
                    if began {
                        self.phase = Phase::Working;
                    } else if now.duration_since(*at) > TAKEN {
                        if *enters >= ENTER_MAX {
                            return End::Failed("the prompt was not taken".to_owned());
                        }
                        *enters += 1;
                        *at = now;
                        self.press(Key::Enter, "prompt");
                    }
                    LOOK
                }
                Phase::Working => {
                    let ready = seen == Seen::Idle && settled;
                    if ready && (!self.order.dispatched || self.has_keyboard()) {
                        self.watch.close(&screen);
                        if !self.order.dispatched {
                            return End::Done;
                        }
                        note(&Note::Waiting { count: self.typed });
                        self.phase = Phase::Between { due: now, wait: BackOff::new() };
                    }
                    LOOK
                }
                Phase::Between { due, wait } => {
                    let (due, mut wait) = (*due, *wait);
                    let next = if now < due { None } else { self.next() };
                    if let Some(Next { count, text }) = next {
                        let Some(text) = text else { return End::Done };
                        // Ready is an agent, or a shell, that waits at its own input: not a child of it, and not words that
                        // happen to end like a prompt.
                        if seen == Seen::Idle && times >= IDLE_LOOKS && self.prompt(&text, &screen) {
                            self.typed = count;
                        } else {
                            self.phase = Phase::Between { due: now + wait.next(), wait };
                        }
                    }
                    LOOK
                }
            };
            self.sleep(nap);
        }
    }

    /// What is to be typed that was not typed yet.
    fn next(&self) -> Option<Next> {
        let text = std::fs::read(self.order.folder.join(NEXT)).ok()?;
        Next::read(&text).ok().filter(|next| next.count > self.typed)
    }

    /// Keeps the look. Says whether the screen has stood still for long, and how often the same was seen in a row.
    fn remember(&mut self, seen: &Seen, screen: &Screen) -> (bool, u32) {
        let now = Instant::now();
        let (since, times) = match &self.last {
            Some(last) if last.seen == *seen && last.screen == *screen => (last.since, last.times + 1),
            Some(last) if last.seen == *seen => (now, last.times + 1),
            Some(_) | None => (now, 1),
        };
        if self.last.as_ref().is_none_or(|last| last.seen.word() != seen.word()) {
            note(&Note::Screen { seen: seen.word().to_owned() });
        }
        self.last = Some(Last { seen: seen.clone(), screen: screen.clone(), since, times });
        (now.duration_since(since) >= SETTLED, times)
    }

    /// Whether it is the agent that reads what we type.
    fn has_keyboard(&mut self) -> bool {
        match front(self.server.pane(), &self.order.argv) {
            Front::Agent => {
                self.held = None;
                true
            }
            Front::Other(by) => {
                if self.held.as_ref() != Some(&by) {
                    note(&Note::Held { by: by.clone() });
                    self.held = Some(by);
                }
                false
            }
        }
    }

    fn press(&mut self, key: Key, why: &str) {
        if !self.has_keyboard() {
            return;
        }
        let keys: &[&str] = match key {
            Key::Enter => &["Enter"],
            Key::Up => &["Up"],
            Key::Down => &["Down"],
            Key::Line(word) => &[word, "Enter"],
        };
        note(&Note::Key { keys: keys.join(" "), why: why.to_owned() });
        for key in keys {
            self.server.press(key);
        }
        self.last = None; // whatever stood there is answered: a new look, twice again
    }

    fn ask_person(&mut self, why: &str, text: &str) {
        const ASKED_MAX: usize = 32; // the same question is drawn anew each second
        if self.asked.iter().any(|it| it == text) {
            return;
        }
        note(&Note::Asked { why: why.to_owned(), text: text.to_owned() });
        if self.asked.len() >= ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(text.to_owned());
    }

    /// Types this; whether it could be.
    fn prompt(&mut self, text: &str, screen: &Screen) -> bool {
        if !self.has_keyboard() {
            return false;
        }
        // What stands there now is from before.
        self.watch.begin(screen, messages(self.order.cli, screen));
        note(&Note::Key { keys: "the prompt, Enter".to_owned(), why: "prompt".to_owned() });
        if let Err(problem) = self.server.paste(text) {
            note(&Note::Lines { lines: vec![problem] });
            return false;
        }
        self.sleep(BREATH);
        self.server.press("Enter");
        self.sleep(BREATH);
        note(&Note::Prompted);
        let typed = self.server.look().map(|shot| shot.screen).unwrap_or_default();
        self.phase = Phase::Typed { at: Instant::now(), enters: 0, typed };
        self.last = None;
        true
    }

    /// In small pieces, so that we hear at once when we are to stop.
    fn sleep(&self, span: Duration) {
        const PIECE: Duration = Duration::from_millis(50);
        let until = Instant::now() + span;
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(PIECE.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// Lets the program leave by itself if it is in a state to. Says how its process ended.
fn leave(order: &Order, server: &mut Server, end: &End) -> String {
    let ended = |server: &mut Server| match server.look() {
        Ok(Shot { dead, .. }) => dead,
        Err(_) => Some("with its terminal".to_owned()),
    };
    if let Some(how) = ended(server) {
        return how;
    }
    if matches!(end, End::Done) && front(server.pane(), &order.argv) == Front::Agent {
        let keys: &[&str] = match order.cli {
            Cli::Claude => &["C-c", "C-c"],
            Cli::Codex => &["C-c"],
            Cli::Other => &["C-c", "C-d"],
        };
        for key in keys {
            note(&Note::Key { keys: (*key).to_owned(), why: "leave".to_owned() });
            server.press(key);
            std::thread::sleep(Duration::from_millis(300));
        }
        let until = Instant::now() + LEAVE_MAX;
        while Instant::now() < until {
            if let Some(how) = ended(server) {
                return how;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    "with its terminal".to_owned()
}

#[cfg(test)]
mod tests {
    use super::BackOff;

    #[test]
    fn a_terminal_that_is_not_ready_is_looked_at_after_twice_as_long_each_time_up_to_half_a_minute() {
        let mut wait = BackOff::new();
        let waits: Vec<u64> = std::iter::repeat_with(|| wait.next().as_secs()).take(8).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
