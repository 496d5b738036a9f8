//! The engine's faces for others: HTTP operations, one stream of events, and web pages.
//!
//! Everything here is a client of [`landfall_api::Service`]; nothing knows the engine. Every request passes the [`door`]
//! before any route is looked for, so a route cannot forget to be guarded. [`api`] turns the table of operations into
//! routes, [`events`] is the stream, [`pages`] draws what people see.

#![cfg_attr(test, recursion_limit = "256")]

mod access;
mod answer;
mod api;
mod assets;
mod comments;
mod connections;
mod door;
mod downloads;
mod events;
mod forms;
mod guess_limit;
mod hooks;
mod kept;
mod keys;
mod leave;
mod listen;
mod mask;
mod metrics;
mod pages;
mod patient;
mod router;
mod streams;
mod task_auto;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use landfall_api::Service;
use landfall_api::socket::EngineSocket;

pub use api::OPENAPI;
pub use door::is_origin;
pub use keys::{AccessKeys, KeysProblem};
pub use router::{Guard, ServedRoute, served_routes};

/// What is served, and where.
pub struct ServerOptions {
    /// The socket of the engine, for processes that know its key.
    pub socket: Option<EngineSocket>,
    /// Addresses for browsers and other programs; each asks for a token.
    pub addresses: Vec<TcpListener>,
    /// Names by which browsers may come, besides the addresses themselves: `build-box:7878`.
    pub hosts: Vec<String>,
    /// Where browsers find us behind a proxy of somebody's own: `https://build.example`.
    pub origins: Vec<String>,
    /// The folder that holds the token and the sessions.
    pub folder: PathBuf,
    /// What the project is called on its pages.
    pub project: String,
}

/// A server at work. Dropping it stops it: nobody new is let in, and requests under way end.
pub struct RunningServer {
    stop: Option<tokio::sync::watch::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    links: Vec<String>,
}

impl RunningServer {
    /// Where browsers find it.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where its pages are.
    #[must_use]
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// Lets nobody in any more, and waits for requests under way.
    pub fn stop(mut self) {
        self.stop_and_join();
    }

    fn stop_and_join(&mut self) {
        let _ = self.stop.take(); // everybody who listens hears of it
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there was reported by the panic hook
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}

/// Serves until the handle is stopped or dropped.
///
/// # Errors
/// When a listener, the token or a thread cannot be had.
pub fn serve(
    options: ServerOptions,
    service: Arc<dyn Service + Send + Sync>,
) -> Result<RunningServer, ServeError> {
    let addresses: Vec<SocketAddr> =
        options.addresses.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    let keys = match addresses.is_empty() {
        true => None, // only the socket, which has a key of its own
        false => Some(AccessKeys::open(&options.folder)?),
    };
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let (listener, socket_key) = match options.socket {
        Some(socket) => (Some(socket.listener), Some(socket.key)),
        None => (None, None),
    };
    let mut shared =
        door::ServerState::new(service, keys, &addresses, options.hosts, &options.origins, options.project);
    shared.socket_key = socket_key;
    shared.stopping = Some(stopping.clone());
    let links = shared.links.clone();
    let shared = Arc::new(shared);
    try_threads(THREADS_FIRST)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_MAX)
        // One that waits for the engine or the disk stays for good: where no more threads can be had, requests are
        // answered by it, one after the other.
        .thread_keep_alive(std::time::Duration::from_secs(u64::from(u32::MAX)))
        .thread_name("server")
        .enable_all()
        .build()?;
    drop(runtime.spawn_blocking(|| {})); // that one
    let guests = runtime.block_on(async { listen::ServerListeners::new(listener, options.addresses) })?;
    let thread = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        runtime.block_on(listen::run_listener(guests, shared, stopping));
        runtime.shutdown_timeout(LAST_WORDS);
    })?;
    Ok(RunningServer { stop: Some(stop), thread: Some(thread), addresses, links })
}

/// The threads that serving begins with.
const THREADS_FIRST: usize = 4;

/// Finds out whether so many threads can be had: the runtime panics where one of its first cannot be.
fn try_threads(count: usize) -> io::Result<()> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let start = |_| {
        let held = held.clone();
        std::thread::Builder::new().spawn(move || {
            let _ = held.lock().map(|held| held.recv()); // until all have started
        })
    };
    let started: Vec<io::Result<std::thread::JoinHandle<()>>> = (0..count).map(start).collect();
    drop(hold);
    for thread in started {
        let _ = thread?.join(); // it only waited
    }
    Ok(())
}

/// Requests that wait for the engine or the disk at once: the engine answers one after the other anyway.
const BLOCKING_MAX: usize = 32;
/// How long a request under way may take when the server ends.
pub(crate) const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(5);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The token or the sessions cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysProblem),
    /// The machine says no.
    #[error("start the server")]
    Io(#[from] io::Error),
}
