//! `landfall serve`: keeps the project, with its door open for commands, programs and browsers.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use landfall_api::client::EngineClient;
use landfall_api::{PairAsked, Pairing, Problem, ProblemCode, RunAsked, TypedService as _};

use crate::loop_console::LoopConsole;
use crate::project::place::ProjectLocation;
use crate::project::problems;
use crate::run::RunSocket;
use crate::service::ProjectService;
use crate::service::served_project::ServedProject;

/// How a project is to be served.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The address on this machine.
    pub listen: String,
    /// Further addresses, which others can reach.
    pub bind: Vec<String>,
    /// Names by which browsers may come.
    pub hosts: Vec<String>,
    /// Where browsers find it behind a proxy of the person's own: `https://build.example`.
    pub origins: Vec<String>,
    /// Begins a run at once.
    pub run: Option<RunAsked>,
}

/// A project that is served.
pub struct ProjectServer {
    keeper: Arc<ServedProject>,
    door: Option<RunSocket>,
    addresses: Vec<SocketAddr>,
    console: LoopConsole,
}

pub(crate) fn start(place: ProjectLocation, asked: ServeOptions) -> Result<ProjectServer, Problem> {
    let mut listeners = vec![bind_listener(&asked.listen, true)?];
    if let Some(other) = asked.origins.iter().find(|it| !landfall_server::is_origin(it)) {
        return Err(Problem::new(ProblemCode::BadInput, format!("`--origin {other}` is no origin")).with_hint(
            "an origin is what a browser shows before the path, in small letters: `https://build.example`",
        ));
    }
    if asked.hosts.is_empty()
        && asked.origins.is_empty()
        && let Some(all) = asked.bind.iter().find(|it| it.starts_with("0.0.0.0:") || it.starts_with("[::]:"))
    {
        return Err(Problem::new(
            ProblemCode::BadInput,
            format!("`--bind {all}` says no name by which browsers may come"),
        )
        .with_hint("add `--host NAME:PORT`, or bind the address of this machine in the network"));
    }
    for address in &asked.bind {
        listeners.push(bind_listener(address, false)?);
    }
    let addresses = listeners.iter().filter_map(|it| it.local_addr().ok()).collect();
    let keeper = Arc::new(ServedProject::acquire(place)?);
    let desk = Arc::new(ProjectService::for_served_project(keeper.place().clone(), Arc::clone(&keeper)));
    let door = RunSocket::start_with_server(keeper.place(), desk, listeners, asked.hosts, asked.origins)?;
    if let Some(run) = &asked.run {
        keeper.start(run)?;
    }
    let console = LoopConsole::new(keeper.place());
    Ok(ProjectServer { keeper, door: Some(door), addresses, console })
}

fn bind_listener(address: &str, local: bool) -> Result<TcpListener, Problem> {
    let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
    let found: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| {
            bad(format!("`{address}` is no address to listen on: {error}"))
                .with_hint("an address is `127.0.0.1:7878`")
        })?
        .collect();
    let Some(at) = found.first().copied() else {
        return Err(bad(format!("`{address}` is no address to listen on")));
    };
    if local && !at.ip().is_loopback() {
        return Err(bad(format!("`{address}` can be reached from other machines")).with_hint(format!(
            "`--bind {address}` says that this is meant; everything travels unencrypted there"
        )));
    }
    TcpListener::bind(at).map_err(|error| {
        Problem::new(ProblemCode::NotNow, format!("listen on `{at}`: {error}"))
            .with_hint("`--listen 127.0.0.1:0` takes a port that is free")
    })
}

impl ProjectServer {
    /// Where browsers find it.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// A link that lets one browser in.
    pub fn create_pairing(&self) -> Result<Pairing, Problem> {
        let client = EngineClient::connect(&self.keeper.place().folder.socket_path())
            .map_err(|error| Problem::new(ProblemCode::Internal, format!("reach the door: {error}")))?;
        client.pair(PairAsked { label: "the browser of this machine".to_owned() })
    }

    /// Looks after what goes on by itself. Called again and again. Returns the lines for the console.
    pub fn maintain_loops(&mut self) -> Vec<String> {
        self.keeper.resume_loops();
        self.console.news(self.keeper.place())
    }

    /// Whether a run is under way.
    pub fn is_running(&self) -> bool {
        self.keeper.is_running()
    }

    /// Asks the run under way to end.
    pub fn stop(&self, now: bool) {
        self.keeper.stop(now);
    }

    /// Ends: the run under way first, within `patience`, then the door.
    pub fn shut_down(mut self, patience: Duration) {
        let until = Instant::now() + patience;
        self.keeper.proposals().stop();
        self.keeper.wait_until_idle(patience);
        self.keeper.proposals().wait_until_idle(until.saturating_duration_since(Instant::now()));
        self.door = None;
    }
}

/// The token of a project.
pub(crate) fn access_token(place: &ProjectLocation, renew: bool) -> Result<String, Problem> {
    let root = place.folder.root();
    place.folder.create_folders().map_err(|error| problems::from_io_error("make", root, &error))?;
    let token = if renew {
        landfall_server::AccessKeys::renew_token(root)
    } else {
        landfall_server::AccessKeys::read_or_create_token(root)
    };
    token.map_err(|error| problems::keys(&error))
}
