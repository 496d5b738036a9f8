//! The floor of B9: a server that knows its answers. A constant body each, for anybody, and a stream of constant events.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use futures::stream::{self, Stream};
use tokio::sync::broadcast;

use super::http::Server;

/// What it knows.
#[derive(Clone)]
struct Known {
    bodies: Vec<axum::body::Bytes>,
    events: broadcast::Sender<(u64, axum::body::Bytes)>,
}

const LINE_MAX: usize = 65_536; // nobody is hung up on: the floor is to deliver

/// The server in a process of its own, as the product is.
pub struct Trivial {
    pub server: Server,
    child: Child,
}

impl Trivial {
    /// Starts one that answers `/0`, `/1` … with bodies of these sizes.
    pub fn start(sizes: &[usize]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("trivial").args(sizes.iter().map(ToString::to_string));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the trivial server")?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("its stdout")?).read_line(&mut line)?;
        let at = line.trim().parse().with_context(|| format!("the trivial server said `{line}`"))?;
        Ok(Self { server: Server { at, token: String::new() }, child })
    }
}

impl Drop for Trivial {
    fn drop(&mut self) {
        self.child.stdin = None; // it ends with it
        let _ = self.child.wait(); // nothing is to be told
    }
}

/// The server itself. It ends when its stdin does.
pub fn serve(sizes: &[&str]) -> Result<()> {
    let sizes: Vec<usize> = sizes.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
    let bodies = sizes.iter().map(|size| vec![b'x'; *size].into()).collect();
    let known = Known { bodies, events: broadcast::channel(LINE_MAX).0 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let router = Router::new()
            .route("/{place}", get(body))
            .route("/events", get(events))
            .route("/burst/{many}/{bytes}", post(burst))
            .with_state(known);
        axum::serve(axum::serve::ListenerExt::tap_io(listener, |io| drop(io.set_nodelay(true))), router).await
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

async fn body(State(known): State<Known>, Path(place): Path<usize>) -> axum::body::Bytes {
    known.bodies.get(place).cloned().unwrap_or_default()
}

async fn events(State(known): State<Known>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let line = known.events.subscribe();
    Sse::new(stream::unfold(line, async |mut line| {
        let (id, data) = line.recv().await.ok()?;
        let text = str::from_utf8(&data).unwrap_or_default().to_owned();
        Some((Ok(Event::default().id(id.to_string()).data(text)), line))
    }))
}

async fn burst(State(known): State<Known>, Path((many, bytes)): Path<(u64, usize)>) -> &'static str {
    let data = axum::body::Bytes::from(vec![b'x'; bytes]);
    for id in 1..=many {
        let _ = known.events.send((id, data.clone())); // nobody watches
    }
    "{}"
}
