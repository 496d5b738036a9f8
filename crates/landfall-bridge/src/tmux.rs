//! The bridge to agents that want a terminal: one prompt typed, what is asked answered by the table, one end.
//!
//! The terminal belongs to a tmux server of this run alone. A person may attach and type at any time. We look at the screen in
//! the interval of the order, and press a key only when the table of `landfall-agents` names one, the same question has
//! stood there for two looks, and nothing but the agent has the keyboard. Every key is told.

mod front;
mod server;
mod stop_signal;
mod watch;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use landfall_agents::tmux::{
    NEXT, NextInput, POLL_MS, ScreenKey, ScreenState, TerminalScreen, TmuxNote, TmuxOrder, read_screen,
    visible_messages,
};

use crate::say;
use front::{ForegroundProgram, foreground_program};
use server::{Server, TerminalCapture};
use stop_signal::StopSignal;
use watch::ScreenWatch;

/// The pauses of the bridge. They scale with the interval between two looks; limits on how long a program may take do not.
#[derive(Debug, Clone, Copy)]
struct BridgePauses {
    look: Duration,
}

impl BridgePauses {
    fn new(order: &TmuxOrder) -> Self {
        Self { look: Duration::from_millis(order.poll_ms.max(1)) }
    }

    /// A pause that is so long where the interval is the default.
    fn scale_pause(self, ms_at_default: u32) -> Duration {
        self.look * ms_at_default / u32::try_from(POLL_MS).expect("less than a second")
    }

    /// Between a pasted text and Enter: without it some programs take Enter for a part of the text.
    fn after_paste(self) -> Duration {
        self.scale_pause(500)
    }

    /// Between two keys that ask a program to leave.
    fn between_keys(self) -> Duration {
        self.scale_pause(300)
    }

    /// Between two looks whether a program has left.
    fn leave_poll_interval(self) -> Duration {
        self.scale_pause(100)
    }

    fn new_backoff(self) -> BackOff {
        BackOff { next: self.scale_pause(1_000), max: self.scale_pause(30_000) }
    }
}

/// The pauses between looks at a program that is not ready: doubled each time up to a maximum.
#[derive(Debug, Clone, Copy)]
struct BackOff {
    next: Duration,
    max: Duration,
}

impl BackOff {
    fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.max);
        wait
    }
}

/// How long a program may take until it can be typed to, questions to a person not counted.
const READY_MAX: Duration = Duration::from_secs(300);
/// In how many looks in a row a program must be idle before it is typed to: some draw their input before a dialog.
const IDLE_LOOKS: u32 = 3;
/// In how many further looks an idle screen must be unchanged before we believe that the work is done.
const SETTLED_LOOKS: u32 = 5;
/// How long a program may go without a sign that it has taken the prompt before Enter is pressed again.
const TAKEN: Duration = Duration::from_secs(15);
/// How often Enter is pressed again.
const ENTER_MAX: u32 = 2;
/// How long a program may take to leave when asked to.
const LEAVE_MAX: Duration = Duration::from_secs(4);

const DONE: u8 = 0;
const FAILED: u8 = 1;

/// Drives the agent that stdin orders. Returns the exit code.
#[must_use]
pub fn run() -> u8 {
    let order = match crate::order(TmuxOrder::read) {
        Ok(order) => order,
        Err(code) => return code,
    };
    let stop = match StopSignal::listen() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("listen for signals: {error}");
            return FAILED;
        }
    };
    let mut server = match Server::start(&order) {
        Ok(server) => server,
        Err(problem) => {
            print_note(&TmuxNote::Failed { why: problem });
            print_note(&TmuxNote::Ended { how: "not started".to_owned() });
            return FAILED;
        }
    };
    let end = Bridge::new(&order, &mut server, &stop).drive_terminal();
    let code = match &end {
        TerminalDriveEnd::Done => {
            print_note(&TmuxNote::Done);
            DONE
        }
        TerminalDriveEnd::Stopped => {
            print_note(&TmuxNote::Stopping);
            DONE
        }
        TerminalDriveEnd::Failed(why) => {
            print_note(&TmuxNote::Failed { why: why.clone() });
            FAILED
        }
    };
    let how = let_program_leave(&order, &mut server, &stop, &end);
    server.kill_server();
    print_note(&TmuxNote::Ended { how });
    code
}

fn print_note(note: &TmuxNote) {
    say::line(&note.line());
}

/// How a drive ends.
enum TerminalDriveEnd {
    /// The agent has done what it was asked, and waits.
    Done,
    /// We were told to stop.
    Stopped,
    /// It did not come to that.
    Failed(String),
}

/// Where we are with it.
enum TmuxPhase {
    /// It is not ready to be typed to.
    Starting,
    /// The prompt is typed; nothing shows yet that it was taken.
    Typed { at: Instant, enters: u32, before: TerminalScreen, typed: TerminalScreen },
    /// It works, or has worked.
    Working,
    /// It has done what it was told, and the next step is waited for: looked for again then, after this span.
    Between { due: Instant, wait: BackOff },
}

/// The last look.
struct LastScreen {
    seen: ScreenState,
    screen: TerminalScreen,
    /// In how many looks in a row the same was seen, this one included.
    times: u32,
    /// In how many of them before this one the whole screen was the same.
    unchanged: u32,
}

struct Bridge<'a> {
    order: &'a TmuxOrder,
    server: &'a mut Server,
    stop: &'a StopSignal,
    pace: BridgePauses,
    phase: TmuxPhase,
    /// How many commands were typed after the prompt.
    typed: u32,
    /// The last look.
    last: Option<LastScreen>,
    /// Questions for a person that were told already.
    asked: VecDeque<String>,
    held: Option<String>,
    watch: ScreenWatch,
}

impl<'a> Bridge<'a> {
    fn new(order: &'a TmuxOrder, server: &'a mut Server, stop: &'a StopSignal) -> Self {
        print_note(&TmuxNote::Started {
            program: order.argv.first().cloned().unwrap_or_default(),
            pid: server.pane(),
            session: order.session.clone(),
        });
        Self {
            order,
            server,
            stop,
            pace: BridgePauses::new(order),
            phase: TmuxPhase::Starting,
            typed: 0,
            last: None,
            asked: VecDeque::new(),
            held: None,
            watch: ScreenWatch::new(order.cli),
        }
    }

    fn drive_terminal(mut self) -> TerminalDriveEnd {
        let mut wait = self.pace.new_backoff();
        let mut ready_by = Instant::now() + READY_MAX;
        loop {
            if self.stop.is_asked() {
                return TerminalDriveEnd::Stopped;
            }
            let shot = match self.server.capture_screen() {
                Ok(shot) => shot,
                Err(_) if self.stop.is_asked() => return TerminalDriveEnd::Stopped,
                Err(problem) => return TerminalDriveEnd::Failed(problem),
            };
            let TerminalCapture { screen, dead } = shot;
            if let Some(how) = dead {
                return TerminalDriveEnd::Failed(format!("the agent ended by itself: {how}"));
            }
            let seen = read_screen(self.order.cli, &screen);
            let (settled, times) = self.remember_screen(&seen, &screen);
            let twice = times >= 2;
            if !matches!(self.phase, TmuxPhase::Starting) {
                self.watch.observe_screen(&seen, &screen);
            }
            match &seen {
                ScreenState::Limit(text) => {
                    print_note(&TmuxNote::Limit { text: text.clone() });
                    return TerminalDriveEnd::Failed("the account is used up".to_owned());
                }
                ScreenState::Login(text) if twice => {
                    print_note(&TmuxNote::Login { text: text.clone() });
                    return TerminalDriveEnd::Failed("the agent wants a login".to_owned());
                }
                ScreenState::Ask(ask) if twice => {
                    match ask.key {
                        Some(key) => self.press_key(key, ask.why.wire_name()),
                        None => self.ask_person(ask.why.wire_name(), &ask.text),
                    }
                    // While a person is waited for, nobody is late.
                    ready_by = Instant::now() + READY_MAX;
                    wait = self.pace.new_backoff();
                }
                ScreenState::Ask(_)
                | ScreenState::Login(_)
                | ScreenState::Idle
                | ScreenState::Busy
                | ScreenState::Unknown => {}
            }
            let now = Instant::now();
            let nap = match &mut self.phase {
                TmuxPhase::Starting => match seen {
                    ScreenState::Idle if times >= IDLE_LOOKS => {
                        let prompt = self.order.prompt.clone();
                        self.type_prompt(&prompt, &screen);
                        self.pace.look
                    }
                    ScreenState::Idle | ScreenState::Ask(_) | ScreenState::Login(_) => self.pace.look,
                    ScreenState::Unknown | ScreenState::Busy | ScreenState::Limit(_) => {
                        if now > ready_by {
                            return TerminalDriveEnd::Failed(format!(
                                "not ready within {} s",
                                READY_MAX.as_secs()
                            ));
                        }
                        wait.next()
                    }
                },
                TmuxPhase::Typed { at, enters, before, typed } => {
                    let began = match self.order.cli.shows_its_work() {
                        true => {
                            matches!(seen, ScreenState::Busy | ScreenState::Ask(_)) || self.watch.has_heard()
                        }
                        // What we do not know shows no work; only that it has done something. One that was done before we
                        // looked has an empty input again, below something new.
                        false => {
                            screen != *typed
                                || matches!(seen, ScreenState::Ask(_))
                                || (seen == ScreenState::Idle && screen != *before)
                        }
                    };
                    if began {
                        self.phase = TmuxPhase::Working;
                    } else if now.duration_since(*at) > TAKEN {
                        if *enters >= ENTER_MAX {
                            return TerminalDriveEnd::Failed("the prompt was not taken".to_owned());
                        }
                        *enters += 1;
                        *at = now;
                        self.press_key(ScreenKey::Enter, "prompt");
                    }
                    self.pace.look
                }
                TmuxPhase::Working => {
                    let ready = seen == ScreenState::Idle && settled;
                    if ready && (!self.order.dispatched || self.has_keyboard()) {
                        self.watch.close(&screen);
                        if !self.order.dispatched {
                            return TerminalDriveEnd::Done;
                        }
                        print_note(&TmuxNote::Waiting { count: self.typed });
                        self.phase = TmuxPhase::Between { due: now, wait: self.pace.new_backoff() };
                    }
                    self.pace.look
                }
                TmuxPhase::Between { due, wait } => {
                    let (due, mut wait) = (*due, *wait);
                    let next = if now < due { None } else { self.next() };
                    if let Some(NextInput { count, text }) = next {
                        let Some(text) = text else { return TerminalDriveEnd::Done };
                        // Ready is an agent, or a shell, that waits at its own input: not a child of it, and not words that
                        // happen to end like a prompt.
                        if seen == ScreenState::Idle
                            && times >= IDLE_LOOKS
                            && self.type_prompt(&text, &screen)
                        {
                            self.typed = count;
                        } else {
                            self.phase = TmuxPhase::Between { due: now + wait.next(), wait };
                        }
                    }
                    self.pace.look
                }
            };
            self.stop.wait(nap);
        }
    }

    /// What is to be typed that was not typed yet.
    fn next(&self) -> Option<NextInput> {
        let text = std::fs::read(self.order.folder.join(NEXT)).ok()?;
        NextInput::read(&text).ok().filter(|next| next.count > self.typed)
    }

    /// Keeps the look. Says whether the screen has stood still for long, and how often the same was seen in a row.
    fn remember_screen(&mut self, seen: &ScreenState, screen: &TerminalScreen) -> (bool, u32) {
        let (unchanged, times) = match &self.last {
            Some(last) if last.seen == *seen && last.screen == *screen => {
                (last.unchanged + 1, last.times + 1)
            }
            Some(last) if last.seen == *seen => (0, last.times + 1),
            Some(_) | None => (0, 1),
        };
        if self.last.as_ref().is_none_or(|last| last.seen.wire_name() != seen.wire_name()) {
            print_note(&TmuxNote::Screen { seen: seen.wire_name().to_owned() });
        }
        self.last = Some(LastScreen { seen: seen.clone(), screen: screen.clone(), times, unchanged });
        (unchanged >= SETTLED_LOOKS, times)
    }

    /// Whether it is the agent that reads what we type.
    fn has_keyboard(&mut self) -> bool {
        match foreground_program(self.server.pane(), &self.order.argv) {
            ForegroundProgram::Agent => {
                self.held = None;
                true
            }
            ForegroundProgram::Other(by) => {
                if self.held.as_ref() != Some(&by) {
                    print_note(&TmuxNote::Held { by: by.clone() });
                    self.held = Some(by);
                }
                false
            }
        }
    }

    fn press_key(&mut self, key: ScreenKey, why: &str) {
        if !self.has_keyboard() {
            return;
        }
        let keys: &[&str] = match key {
            ScreenKey::Enter => &["Enter"],
            ScreenKey::Up => &["Up"],
            ScreenKey::Down => &["Down"],
            ScreenKey::Line(word) => &[word, "Enter"],
        };
        print_note(&TmuxNote::Key { keys: keys.join(" "), why: why.to_owned() });
        for key in keys {
            self.server.press_key(key);
        }
        self.last = None; // whatever stood there is answered: a new look, twice again
    }

    fn ask_person(&mut self, why: &str, text: &str) {
        const ASKED_MAX: usize = 32; // the same question is drawn anew each second
        if self.asked.iter().any(|it| it == text) {
            return;
        }
        print_note(&TmuxNote::Asked { why: why.to_owned(), text: text.to_owned() });
        if self.asked.len() >= ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(text.to_owned());
    }

    /// Types this; whether it could be.
    fn type_prompt(&mut self, text: &str, screen: &TerminalScreen) -> bool {
        if !self.has_keyboard() {
            return false;
        }
        // What stands there now is from before.
        self.watch.begin_prompt(screen, visible_messages(self.order.cli, screen));
        print_note(&TmuxNote::Key { keys: "the prompt, Enter".to_owned(), why: "prompt".to_owned() });
        if let Err(problem) = self.server.paste_text(text) {
            print_note(&TmuxNote::Lines { lines: vec![problem] });
            return false;
        }
        self.stop.wait(self.pace.after_paste());
        self.server.press_key("Enter");
        self.stop.wait(self.pace.after_paste());
        print_note(&TmuxNote::Prompted);
        let typed = self.server.capture_screen().map(|shot| shot.screen).unwrap_or_default();
        self.phase = TmuxPhase::Typed { at: Instant::now(), enters: 0, before: screen.clone(), typed };
        self.last = None;
        true
    }
}

/// Lets the program leave by itself if it is in a state to. Says how its process ended.
fn let_program_leave(
    order: &TmuxOrder,
    server: &mut Server,
    stop: &StopSignal,
    end: &TerminalDriveEnd,
) -> String {
    let pace = BridgePauses::new(order);
    let ended = |server: &mut Server| match server.capture_screen() {
        Ok(TerminalCapture { dead, .. }) => dead,
        Err(_) => Some("with its terminal".to_owned()),
    };
    if let Some(how) = ended(server) {
        return how;
    }
    if matches!(end, TerminalDriveEnd::Done)
        && foreground_program(server.pane(), &order.argv) == ForegroundProgram::Agent
    {
        for key in order.cli.leave_keys() {
            print_note(&TmuxNote::Key { keys: (*key).to_owned(), why: "leave".to_owned() });
            server.press_key(key);
            stop.wait(pace.between_keys());
        }
        let until = Instant::now() + LEAVE_MAX;
        while Instant::now() < until {
            if let Some(how) = ended(server) {
                return how;
            }
            if stop.wait(pace.leave_poll_interval()) {
                break; // the terminal is ended at once
            }
        }
    }
    "with its terminal".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_is_not_ready_is_looked_at_after_twice_as_long_each_time_up_to_half_a_minute() {
        let check = |poll_ms: u64, expected: [u128; 7]| {
            let mut wait = BridgePauses { look: Duration::from_millis(poll_ms) }.new_backoff();
            let waits: Vec<u128> = std::iter::repeat_with(|| wait.next().as_millis()).take(7).collect();
            assert_eq!(waits, expected, "{poll_ms}");
        };
        check(POLL_MS, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        check(70, [100, 200, 400, 800, 1_600, 3_000, 3_000]);
    }

    #[test]
    fn the_default_pauses_suit_the_command_lines_that_we_know() {
        let pace = BridgePauses { look: Duration::from_millis(POLL_MS) };
        let ms = [pace.look, pace.after_paste(), pace.between_keys(), pace.leave_poll_interval()]
            .map(|it| it.as_millis());
        assert_eq!(ms, [700, 500, 300, 100]);
    }
}
