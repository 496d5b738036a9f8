//! `landfall top`: the run on a terminal, and what a person says to it.
//!
//! `state` decides, from keys and answers, what is shown and what is asked; `worker` asks, `draw` draws, `screen` holds the
//! terminal. This file joins them: one channel in, one drawing for whatever came in meanwhile.

mod draw;
mod header;
mod inbox;
mod keys;
mod line;
mod polls;
#[cfg(test)]
mod sample;
mod screen;
mod state;
mod theme;
mod views;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crossterm::event::{Event, read};
use landfall_app::clock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Failure};
use screen::Screen;
use state::{About, Action, News, State};
use worker::{Door, Worker};

/// Shows a project until the person leaves.
pub fn top(at: &landfall_app::ProjectLocator) -> Result<Exit, Failure> {
    let fail = |error: io::Error| Failure::new(Exit::Internal, format!("show the run: {error}"));
    let (news, heard) = channel();
    let here = at.clone();
    let door: Arc<Door> = Arc::new(move || landfall_app::service(&here));
    door()?; // a folder that is no project is said so before the terminal changes
    // Two, so that a look at the project never waits behind an order, nor an order behind a large diff.
    let looks = Worker::start("looks", door.clone(), news.clone()).map_err(fail)?;
    let orders = Worker::start("orders", door, news.clone()).map_err(fail)?;
    let signals = hear_signals(news.clone()).map_err(fail)?;
    let mut screen = Screen::open().map_err(fail)?;
    hear_terminal(news).map_err(fail)?;
    let left = drive(&mut screen, &heard, &looks, &orders);
    drop(screen);
    signals.close();
    match left.map_err(fail)? {
        Left::Quit => Ok(Exit::Ok),
        Left::Signal => Ok(Exit::Interrupted),
    }
}

/// How it ended.
enum Left {
    Quit,
    Signal,
}

fn drive(screen: &mut Screen, heard: &Receiver<News>, looks: &Worker, orders: &Worker) -> io::Result<Left> {
    let mut state = State::new(screen.size()?, clock::now_ms());
    let mut next = Some(News::Tick);
    loop {
        // Everything that came in is taken before it is drawn: a burst costs one drawing.
        while let Some(news) = next {
            let left = if matches!(news, News::Leave) { Left::Signal } else { Left::Quit };
            for action in state.update(news, clock::now_ms()) {
                match action {
                    Action::Quit => return Ok(left),
                    Action::Suspend => {
                        screen.suspend()?;
                        let (columns, rows) = screen.size()?;
                        state.update(News::Resized(columns, rows), clock::now_ms());
                    }
                    Action::Call(about @ (About::Poll(_) | About::Page(_)), request) => {
                        looks.ask(about, request)
                    }
                    Action::Call(about @ (About::Screen | About::Order), request) => {
                        orders.ask(about, request)
                    }
                }
            }
            next = heard.try_recv().ok();
        }
        if state.take_stale() {
            screen.draw(&state)?;
        }
        if looks.is_gone() || orders.is_gone() {
            return Err(io::Error::other("a thread that asks the engine has ended"));
        }
        const SLEEP_MAX_MS: i64 = 60_000;
        let sleep_ms = (state.wake_ms() - clock::now_ms()).clamp(1, SLEEP_MAX_MS);
        next = match heard.recv_timeout(Duration::from_millis(sleep_ms.unsigned_abs())) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => Some(News::Tick),
            Err(RecvTimeoutError::Disconnected) => return Ok(Left::Signal), // nobody is left to say anything
        };
    }
}

/// Keys, pastes and sizes, as they come. The thread waits in the terminal's own read, which nothing interrupts; it ends
/// with the process.
fn hear_terminal(news: Sender<News>) -> io::Result<()> {
    let hear = move || {
        loop {
            let heard = match read() {
                Ok(Event::Key(key)) => News::Key(key),
                Ok(Event::Paste(text)) => News::Paste(text),
                Ok(Event::Resize(columns, rows)) => News::Resized(columns, rows),
                Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_)) => continue,
                Err(_) => News::Leave, // the terminal is gone
            };
            let is_last = matches!(heard, News::Leave);
            if news.send(heard).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(hear)?;
    Ok(())
}

fn hear_signals(news: Sender<News>) -> io::Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let hear = move || {
        for _ in &mut signals {
            if news.send(News::Leave).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(hear)?;
    Ok(handle)
}
