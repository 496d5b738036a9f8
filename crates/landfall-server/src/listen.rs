//! Connections: who is on the other side, how many there may be, and how they end.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use landfall_api::socket::PeerProcess;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use crate::connections::{ConnectionLimits, ConnectionPermit, ConnectionSource, Connections};
use crate::door::{self, Peer, ServerState};
use crate::patient::WriteTimeoutStream;
use crate::{LAST_WORDS, events, kept, router};

/// How many connections are held at once: each viewer holds one or two. All viewers may come by one proxy, so one address may
/// have all of them; those that have shown no token yet are at most half, as many may come at once after a restart.
const ADDRESS_LIMITS: ConnectionLimits =
    ConnectionLimits { total_max: 1024, source_max: 1024, unproven_max: 512 };
/// The same for the socket, where a source is a process.
const SOCKET_LIMITS: ConnectionLimits = ConnectionLimits { total_max: 128, source_max: 64, unproven_max: 32 };
/// For how many processes at once the engine finds out whose they are. Each takes a thread, and requests need most of those.
const LOOKUPS_MAX: usize = 8;
/// How long the head of a request may take to arrive.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the other side may take nothing of an answer.
const STALL_MAX: Duration = Duration::from_secs(60);
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;

/// Where guests come from. Whatever cannot be listened on is said before anything is served.
pub(crate) struct ServerListeners {
    socket: Option<tokio::net::UnixListener>,
    addresses: Vec<tokio::net::TcpListener>,
}

impl ServerListeners {
    /// To be called within the runtime that serves.
    pub(crate) fn new(socket: Option<UnixListener>, addresses: Vec<TcpListener>) -> io::Result<Self> {
        let socket = socket.map(|it| {
            it.set_nonblocking(true)?;
            tokio::net::UnixListener::from_std(it)
        });
        let addresses = addresses.into_iter().map(|it| {
            it.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(it)
        });
        Ok(Self { socket: socket.transpose()?, addresses: addresses.collect::<Result<_, _>>()? })
    }
}

/// Takes connections until `stopping` is closed, then lets those under way finish.
pub(crate) async fn run_listener(
    guests: ServerListeners,
    shared: Arc<ServerState>,
    stopping: watch::Receiver<bool>,
) {
    let router = router::router(Arc::clone(&shared));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(events::run_event_pump(Arc::clone(&shared), stopping.clone()));
    tasks.spawn(kept::run_refresher(Arc::clone(&shared), stopping.clone()));
    let host = ServeContext { shared, router, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)), stopping };
    if let Some(listener) = guests.socket {
        // A room of its own: however many browsers come, `landfall stop` gets in.
        let room = Connections::new(SOCKET_LIMITS);
        let host = host.clone();
        tasks.spawn(async move { take(&LocalListener(listener), &room, &host).await });
    }
    let room = Connections::new(ADDRESS_LIMITS);
    for listener in guests.addresses {
        let (room, host) = (Arc::clone(&room), host.clone());
        tasks.spawn(async move { take(&RemoteListener(listener), &room, &host).await });
    }
    while tasks.join_next().await.is_some() {}
}

/// Where connections come from.
trait ConnectionListener {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// The next connection; none where whoever came is nobody we talk to.
    async fn next(&self) -> io::Result<Option<(Self::Stream, ConnectionSource, Peer)>>;
}

struct LocalListener(tokio::net::UnixListener);
struct RemoteListener(tokio::net::TcpListener);

impl ConnectionListener for LocalListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self) -> io::Result<Option<(Self::Stream, ConnectionSource, Peer)>> {
        let (stream, _) = self.0.accept().await?;
        // A handle, not an id: whoever connected may have ended, and its id be another's. Where the kernel gives no handle,
        // nobody is talked to.
        let Ok(process) = PeerProcess::from_stream(&stream) else { return Ok(None) };
        if process.has_ended() {
            return Ok(None);
        }
        Ok(Some((stream, ConnectionSource::Process(process.id()), Peer::Local(Arc::new(process)))))
    }
}

impl ConnectionListener for RemoteListener {
    type Stream = tokio::net::TcpStream;

    async fn next(&self) -> io::Result<Option<(Self::Stream, ConnectionSource, Peer)>> {
        let (stream, address) = self.0.accept().await?;
        let _ = stream.set_nodelay(true); // it is only slower without
        let source = ConnectionSource::from_address(address.ip());
        Ok(Some((stream, source, Peer::Remote(source))))
    }
}

/// Takes connections of one listener. Nobody waits for room: who is there without proof gives way, or who comes is turned away.
async fn take<L: ConnectionListener>(listener: &L, room: &Arc<Connections>, host: &ServeContext) {
    let mut guests = tokio::task::JoinSet::new();
    loop {
        let mut over = host.stopping.clone();
        let taken = tokio::select! {
            taken = listener.next() => taken,
            _ = over.changed() => break,
        };
        let (stream, source, peer) = match taken {
            Ok(Some(guest)) => guest,
            Ok(None) => continue,
            Err(_) => {
                pause_briefly().await; // out of descriptors, or it has left already
                continue;
            }
        };
        let Some(taken) = room.take(source) else { continue };
        let host = host.clone();
        guests.spawn(async move {
            let Some(peer) = host.admit_peer(&taken, peer).await else { return };
            host.serve_connection(TokioIo::new(WriteTimeoutStream::new(stream, STALL_MAX)), peer, &taken)
                .await;
        });
        while guests.try_join_next().is_some() {}
    }
    while guests.join_next().await.is_some() {}
}

/// A short pause keeps a loop that cannot take anybody from spinning.
async fn pause_briefly() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// What every connection is served with.
#[derive(Clone)]
struct ServeContext {
    shared: Arc<ServerState>,
    router: axum::Router,
    /// SessionExpiry to find out whose process a peer is.
    lookups: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl ServeContext {
    /// Finds out whether the process on the other side is an agent's. It is told so, if there is room for one more of them.
    /// A connection that gives way to another one is given up at once, so that those which an agent opens do not add up.
    async fn admit_peer(&self, taken: &ConnectionPermit, peer: Peer) -> Option<Peer> {
        let Peer::Local(process) = &peer else { return Some(peer) };
        let admitted = tokio::select! {
            admitted = door::check_peer_process(&self.shared, &self.lookups, process) => admitted,
            () = taken.connection.wait_until_closed() => return None,
        };
        match admitted {
            Ok(()) => Some(peer),
            Err(problem) => taken.confine_source().then_some(Peer::Barred(problem)),
        }
    }

    /// Serves one connection.
    async fn serve_connection<S>(self, stream: S, peer: Peer, taken: &ConnectionPermit)
    where
        S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let Self { shared, router, mut stopping, lookups: _ } = self;
        let connection = Arc::clone(&taken.connection);
        let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (shared, router, peer) = (Arc::clone(&shared), router.clone(), peer.clone());
            let connection = Arc::clone(&connection);
            async move {
                let request = request.map(axum::body::Body::new);
                Ok::<_, Infallible>(router::answer(&shared, &peer, &connection, router, request).await)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(stream, answer);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => drop(ended), // it has left, or said something that is no HTTP
            () = taken.connection.wait_until_closed() => {} // it gives way to another one
            _ = stopping.changed() => {
                connection.as_mut().graceful_shutdown();
                // The same; and who sends a request for ever does not keep the server from ending.
                let _ = tokio::time::timeout(LAST_WORDS, connection).await; // it is closed either way
            }
        }
    }
}
