//! Threads that ask the service, so that neither drawing nor typing ever waits for an answer.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use landfall_api::{Problem, Request, Response, Service};

use super::state::{RequestSubject, TuiEvent};

/// Gives whoever answers now. Asked for every request: engines come and go.
pub type ServiceConnector = dyn Fn() -> Result<Box<dyn Service>, Problem> + Send + Sync;

/// A thread that asks one thing after the other.
pub struct Worker {
    requests: Sender<(RequestSubject, Request)>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Its answers go to `news`.
    pub fn start(
        name: &str,
        door: std::sync::Arc<ServiceConnector>,
        news: Sender<TuiEvent>,
    ) -> std::io::Result<Self> {
        let (requests, asked) = channel();
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || run_worker(&asked, &*door, &news))?;
        Ok(Self { requests, thread })
    }

    /// Asks this when what was asked before is answered.
    pub fn send_request(&self, about: RequestSubject, request: Request) {
        let _ = self.requests.send((about, request)); // the thread is gone, which `is_gone` tells
    }

    /// Whether it died. Only a bug does that.
    pub fn is_gone(&self) -> bool {
        self.thread.is_finished()
    }
}

fn run_worker(asked: &Receiver<(RequestSubject, Request)>, door: &ServiceConnector, news: &Sender<TuiEvent>) {
    while let Ok((about, request)) = asked.recv() {
        let began = Instant::now();
        let result: Result<Response, Problem> = door().and_then(|service| service.call(request));
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if news.send(TuiEvent::Answered { about, result: Box::new(result), took_ms }).is_err() {
            return; // the screen is closed
        }
    }
}
