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

use crate::exit::{CliExit, CommandFailure};
use screen::TerminalSession;
use state::{RequestSubject, TuiAction, TuiEvent, TuiState};
use worker::{ServiceConnector, Worker};

/// Shows a project until the person leaves.
pub fn top(at: &landfall_app::ProjectLocator) -> Result<CliExit, CommandFailure> {
    let fail = |error: io::Error| CommandFailure::new(CliExit::Internal, format!("show the run: {error}"));
    let (news, heard) = channel();
    let here = at.clone();
    let door: Arc<ServiceConnector> = Arc::new(move || landfall_app::open_service(&here));
    door()?; // a folder that is no project is said so before the terminal changes
    // Two, so that a look at the project never waits behind an order, nor an order behind a large diff.
    let looks = Worker::start("looks", door.clone(), news.clone()).map_err(fail)?;
    let orders = Worker::start("orders", door, news.clone()).map_err(fail)?;
    let signals = listen_to_signals(news.clone()).map_err(fail)?;
    let mut screen = TerminalSession::open().map_err(fail)?;
    listen_to_terminal(news).map_err(fail)?;
    let left = drive(&mut screen, &heard, &looks, &orders);
    drop(screen);
    signals.close();
    match left.map_err(fail)? {
        TuiExit::Quit => Ok(CliExit::Ok),
        TuiExit::Signal => Ok(CliExit::Interrupted),
    }
}

/// How it ended.
enum TuiExit {
    Quit,
    Signal,
}

fn drive(
    screen: &mut TerminalSession,
    heard: &Receiver<TuiEvent>,
    looks: &Worker,
    orders: &Worker,
) -> io::Result<TuiExit> {
    let mut state = TuiState::new(screen.size()?, clock::now_ms());
    let mut next = Some(TuiEvent::Tick);
    loop {
        // Everything that came in is taken before it is drawn: a burst costs one drawing.
        while let Some(news) = next {
            let left = if matches!(news, TuiEvent::Leave) { TuiExit::Signal } else { TuiExit::Quit };
            for action in state.handle_event(news, clock::now_ms()) {
                match action {
                    TuiAction::Quit => return Ok(left),
                    TuiAction::Suspend => {
                        screen.suspend_program()?;
                        let (columns, rows) = screen.size()?;
                        state.handle_event(TuiEvent::Resized(columns, rows), clock::now_ms());
                    }
                    TuiAction::Call(about @ (RequestSubject::Poll(_) | RequestSubject::Page(_)), request) => {
                        looks.send_request(about, request)
                    }
                    TuiAction::Call(about @ (RequestSubject::Screen | RequestSubject::Order), request) => {
                        orders.send_request(about, request)
                    }
                }
            }
            next = heard.try_recv().ok();
        }
        if state.take_stale() {
            screen.draw_state(&state)?;
        }
        if looks.is_gone() || orders.is_gone() {
            return Err(io::Error::other("a thread that asks the engine has ended"));
        }
        const SLEEP_MAX_MS: i64 = 60_000;
        let sleep_ms = (state.wake_ms() - clock::now_ms()).clamp(1, SLEEP_MAX_MS);
        next = match heard.recv_timeout(Duration::from_millis(sleep_ms.unsigned_abs())) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => Some(TuiEvent::Tick),
            Err(RecvTimeoutError::Disconnected) => return Ok(TuiExit::Signal), // nobody is left to say anything
        };
    }
}

/// Keys, pastes and sizes, as they come. The thread waits in the terminal's own read, which nothing interrupts; it ends
/// with the process.
fn listen_to_terminal(news: Sender<TuiEvent>) -> io::Result<()> {
    let hear = move || {
        loop {
            let heard = match read() {
                Ok(Event::Key(key)) => TuiEvent::Key(key),
                Ok(Event::Paste(text)) => TuiEvent::Paste(text),
                Ok(Event::Resize(columns, rows)) => TuiEvent::Resized(columns, rows),
                Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_)) => continue,
                Err(_) => TuiEvent::Leave, // the terminal is gone
            };
            let is_last = matches!(heard, TuiEvent::Leave);
            if news.send(heard).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(hear)?;
    Ok(())
}

fn listen_to_signals(news: Sender<TuiEvent>) -> io::Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let hear = move || {
        for _ in &mut signals {
            if news.send(TuiEvent::Leave).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(hear)?;
    Ok(handle)
}
