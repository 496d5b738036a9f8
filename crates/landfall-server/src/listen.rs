//! Connections: who is on the other side, how many there may be, and how they end.

use std::convert::Infallible;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use crate::door::{Peer, Shared};
use crate::patient::Patient;
use crate::{LAST_WORDS, events, kept, router};

/// Where `landfall serve` listens unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:7878";

/// How many connections are held at once: each viewer holds one or two.
const CONNECTIONS_MAX: usize = 1024;
const SOCKET_CONNECTIONS_MAX: usize = 128;
/// How long the head of a request may take to arrive.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the other side may take nothing of an answer.
const STALL_MAX: Duration = Duration::from_secs(60);
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;

/// Takes connections until `stopping` is closed, then lets those under way finish.
pub(crate) async fn listen(
    socket: Option<UnixListener>,
    addresses: Vec<TcpListener>,
    shared: Arc<Shared>,
    stopping: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let router = router::router(Arc::clone(&shared));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(events::pump(Arc::clone(&shared), stopping.clone()));
    tasks.spawn(kept::make_ahead(Arc::clone(&shared), stopping.clone()));
    if let Some(listener) = socket.and_then(|it| {
        it.set_nonblocking(true).ok()?;
        tokio::net::UnixListener::from_std(it).ok()
    }) {
        // A room of its own: however many browsers come, `landfall stop` gets in.
        let room = Arc::new(Semaphore::new(SOCKET_CONNECTIONS_MAX));
        let (shared, router, stopping) = (Arc::clone(&shared), router.clone(), stopping.clone());
        tasks.spawn(async move {
            let mut guests = tokio::task::JoinSet::new();
            loop {
                let mut over = stopping.clone();
                let (stream, _) = tokio::select! {
                    taken = listener.accept() => match taken {
                        Ok(taken) => taken,
                        Err(_) => { breathe().await; continue } // out of descriptors, or it has left already
                    },
                    _ = over.changed() => break,
                };
                let Ok(pid) = landfall_api::socket::check_peer(&stream) else { continue };
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { break };
                let guest = host(
                    TokioIo::new(Patient::new(stream, STALL_MAX)),
                    Peer::Local(pid),
                    Arc::clone(&shared),
                    router.clone(),
                    stopping.clone(),
                );
                guests.spawn(async move {
                    guest.await;
                    drop(permit)
                });
                while guests.try_join_next().is_some() {}
            }
            while guests.join_next().await.is_some() {}
        });
    }
    for listener in addresses {
        let Ok(()) = listener.set_nonblocking(true) else { continue };
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
        let (shared, room, router, stopping) =
            (Arc::clone(&shared), Arc::clone(&room), router.clone(), stopping.clone());
        tasks.spawn(async move {
            let mut guests = tokio::task::JoinSet::new();
            loop {
                let mut over = stopping.clone();
                let (stream, _) = tokio::select! {
                    taken = listener.accept() => match taken {
                        Ok(taken) => taken,
                        Err(_) => { breathe().await; continue } // out of descriptors, or it has left already
                    },
                    _ = over.changed() => break,
                };
                drop(stream.set_nodelay(true)); // it is only slower without
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { break };
                let guest = host(
                    TokioIo::new(Patient::new(stream, STALL_MAX)),
                    Peer::Remote,
                    Arc::clone(&shared),
                    router.clone(),
                    stopping.clone(),
                );
                guests.spawn(async move {
                    guest.await;
                    drop(permit)
                });
                while guests.try_join_next().is_some() {}
            }
            while guests.join_next().await.is_some() {}
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// A short pause keeps a loop that cannot take anybody from spinning.
async fn breathe() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Serves one connection.
async fn host<S>(
    stream: S,
    peer: Peer,
    shared: Arc<Shared>,
    router: axum::Router,
    mut stopping: watch::Receiver<bool>,
) where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (shared, router, peer) = (Arc::clone(&shared), router.clone(), peer.clone());
        async move {
            Ok::<_, Infallible>(
                router::answer(&shared, &peer, router, request.map(axum::body::Body::new)).await,
            )
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
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            // The same; and who sends a request for ever does not keep the server from ending.
            drop(tokio::time::timeout(LAST_WORDS, connection).await);
        }
    }
}
