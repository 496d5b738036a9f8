//! The client: operations over HTTP, by the socket of an engine or by the address of a server.
//!
//! It blocks: whoever calls it wants one answer. The connection is kept, and made again when the other side has
//! closed it between two requests.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::http::{self, ProblemBody, WireRequest};
use crate::secret_file::SecretFileError;
use crate::{Problem, ProblemCode, Request, Response, Service, SocketKey, VERSION, socket};

/// The longest answer, in bytes: a diff of a large change fits, a flood does not.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const GREETING_TIME_MAX: Duration = Duration::from_secs(30); // an engine that is there greets at once
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600); // a rebuild of a long journal is the slowest

/// Where an engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineAddress {
    /// A socket on this machine: the key beside it proves who asks.
    Socket(PathBuf),
    /// A server, and the token that opens it.
    Server {
        /// Where.
        at: SocketAddr,
        /// What it is called: the `Host` of the request.
        host: String,
        /// The token.
        token: String,
    },
}

/// A client of a running engine.
#[derive(Debug)]
pub struct EngineClient {
    address: EngineAddress,
    engine: EngineIdentity,
    runtime: Runtime,
    line: Mutex<Option<PooledConnection>>,
}

/// A connection that is kept, and what proves who we are on it.
#[derive(Debug)]
struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
    /// None by an address, where a token does, and for an engine that made no key.
    key: Option<SocketKey>,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineIdentity {
    /// The version of the engine.
    pub engine: String,
    /// The process of the engine.
    pub pid: u32,
}

/// Why no engine could be reached.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No engine listens there. That is an answer: a client may open the project itself.
    #[error("no engine listens on `{0}`")]
    Nobody(String),
    /// The engine speaks another version of the wire.
    #[error(
        "the engine (version {engine}, process {pid}) speaks version {theirs} of the wire, not {VERSION}"
    )]
    Version {
        /// Its version of the wire.
        theirs: u32,
        /// Its version.
        engine: String,
        /// Its process.
        pid: u32,
    },
    /// It does not let us in.
    #[error(transparent)]
    Refused(Problem),
    /// The way there is broken.
    #[error("reach the engine on `{place}`")]
    Broken {
        /// Where it should listen.
        place: String,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

impl EngineClient {
    /// Reaches the engine behind a socket, and checks its version.
    ///
    /// # Errors
    /// [`ConnectError::Nobody`] when no engine listens; the others when one does and cannot be talked to.
    pub fn connect(path: &Path) -> Result<Self, ConnectError> {
        Self::connect_to(EngineAddress::Socket(path.to_owned()))
    }

    /// Reaches an engine, and checks its version.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(address: EngineAddress) -> Result<Self, ConnectError> {
        let place = address.place();
        let broken = |source| ConnectError::Broken { place: place.clone(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
        let mut line = match runtime.block_on(open(&address)) {
            Ok(line) => line,
            Err(ConnectionFailure::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                return Err(ConnectError::Nobody(place));
            }
            Err(ConnectionFailure::Io(error)) => return Err(broken(error)),
            Err(ConnectionFailure::Key(error)) => {
                return Err(ConnectError::Refused(socket_key_problem(&error)));
            }
        };
        let hello = WireRequest {
            method: crate::HttpMethod::Get,
            target: format!("{}/hello", http::ROOT),
            body: None,
        };
        let asked = runtime.block_on(async {
            tokio::time::timeout(GREETING_TIME_MAX, exchange_messages(&mut line, &address, &hello)).await
        });
        let answer = match asked {
            Ok(answer) => answer.map_err(|error| broken(io::Error::other(error)))?,
            Err(_) => return Err(broken(ErrorKind::TimedOut.into())),
        };
        let header =
            |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let engine = EngineIdentity {
            engine: header(http::ENGINE_HEADER).to_owned(),
            pid: header(http::PID_HEADER).parse().unwrap_or_default(),
        };
        match header(http::VERSION_HEADER).parse::<u32>() {
            Ok(VERSION) => {}
            Ok(theirs) => {
                return Err(ConnectError::Version { theirs, engine: engine.engine, pid: engine.pid });
            }
            Err(_) => return Err(broken(io::Error::other("what answers there is no engine of Landfall"))),
        }
        if answer.status != 200 {
            return Err(ConnectError::Refused(answer.read_problem()));
        }
        Ok(Self { address, engine, runtime, line: Mutex::new(Some(line)) })
    }

    /// Who answers.
    #[must_use]
    pub fn engine(&self) -> &EngineIdentity {
        &self.engine
    }

    fn lost_connection_problem(&self, what: &str, error: &dyn std::fmt::Display) -> Problem {
        let pid = self.engine.pid;
        Problem::new(ProblemCode::Internal, format!("{what} the engine (process {pid}): {error}"))
            .with_hint("`landfall status` shows whether the engine still runs and what became of the request")
    }
}

impl Service for EngineClient {
    fn call(&self, request: Request) -> Result<Response, Problem> {
        let name = request.name();
        let written =
            http::write(&request).map_err(|error| self.lost_connection_problem("write to", &error))?;
        if let Some(body) = written.body.as_ref().filter(|body| body.len() > http::BODY_BYTES_MAX) {
            let message =
                format!("the request has {} bytes; at most {} are taken", body.len(), http::BODY_BYTES_MAX);
            return Err(Problem::new(ProblemCode::TooLarge, message));
        }
        let mut kept = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.runtime.block_on(async {
            let mut line = match kept.take().filter(|line| !line.sender.is_closed()) {
                Some(line) => line,
                None => open(&self.address).await.map_err(|error| error.to_string())?,
            };
            let asked =
                tokio::time::timeout(ANSWER_TIME_MAX, exchange_messages(&mut line, &self.address, &written));
            let answer = asked.await.map_err(|_| "it does not answer".to_owned())?;
            *kept = Some(line);
            answer
        });
        let answer = answer.map_err(|error| self.lost_connection_problem("talk to", &error))?;
        if answer.status != 200 {
            return Err(answer.read_problem());
        }
        match Response::of_json(name, &answer.body) {
            Ok(Some(response)) => Ok(response),
            Ok(None) => Err(self.lost_connection_problem("understand", &"the operation is not known")),
            Err(error) => Err(self.lost_connection_problem("understand", &error)),
        }
    }
}

impl EngineAddress {
    fn place(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Server { host, .. } => host.clone(),
        }
    }
}

/// What came back.
struct ClientResponse {
    status: u16,
    headers: hyper::HeaderMap,
    body: Bytes,
}

impl ClientResponse {
    fn read_problem(&self) -> Problem {
        match serde_json::from_slice::<ProblemBody>(&self.body) {
            Ok(body) => body.into(),
            Err(_) => Problem::new(
                ProblemCode::Internal,
                format!("the engine answered with status {}", self.status),
            ),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
enum ConnectionFailure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Key(#[from] SecretFileError),
}

/// What to do about a key that cannot be used.
fn socket_key_problem(error: &SecretFileError) -> Problem {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let hint = match error {
        SecretFileError::Io { path, .. } => format!("`ls -l {}` shows who may read it", path.display()),
        SecretFileError::Unsafe { path, .. } => format!(
            "it must be a regular file of yours with mode 600 (`ls -l {}` shows it); the next engine makes a new one",
            path.display()
        ),
        SecretFileError::Random(_) => "look at the system's log".to_owned(),
    };
    Problem::new(ProblemCode::Unauthorized, format!("{error}{cause}")).with_hint(hint)
}

async fn open(address: &EngineAddress) -> Result<PooledConnection, ConnectionFailure> {
    match address {
        EngineAddress::Socket(path) => {
            let stream = socket::connect_to_socket(path)?;
            // After the connection, so that it is the key of the engine on the other side. Who may not read it asks without: the
            // engine knows its agents, and says why it refuses them.
            let key = match SocketKey::read(path) {
                Err(SecretFileError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                    None
                }
                key => key?,
            };
            stream.set_nonblocking(true)?;
            let sender = shake_hands(TokioIo::new(tokio::net::UnixStream::from_std(stream)?)).await?;
            Ok(PooledConnection { sender, key })
        }
        EngineAddress::Server { at, .. } => {
            let sender = shake_hands(TokioIo::new(tokio::net::TcpStream::connect(at).await?)).await?;
            Ok(PooledConnection { sender, key: None })
        }
    }
}

async fn shake_hands<S>(stream: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let (line, connection) = handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        drop(connection.await); // whoever waits for an answer hears of it
    });
    Ok(line)
}

async fn exchange_messages(
    line: &mut PooledConnection,
    address: &EngineAddress,
    written: &WireRequest,
) -> Result<ClientResponse, String> {
    let text = |error: hyper::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    };
    line.sender.ready().await.map_err(text)?;
    let mut request = hyper::Request::builder()
        .method(written.method.word())
        .uri(&written.target)
        .header(http::VERSION_HEADER, VERSION);
    request = match address {
        EngineAddress::Socket(_) => {
            let request = request.header(hyper::header::HOST, http::SOCKET_HOST);
            match &line.key {
                Some(key) => request.header(http::KEY_HEADER, key.expose()),
                None => request,
            }
        }
        EngineAddress::Server { host, token, .. } => request
            .header(hyper::header::HOST, host)
            .header(hyper::header::AUTHORIZATION, format!("Bearer {token}")),
    };
    if written.body.is_some() {
        request = request.header(hyper::header::CONTENT_TYPE, "application/json");
    }
    let body = Full::new(Bytes::from(written.body.clone().unwrap_or_default()));
    let request = request.body(body).map_err(|error| error.to_string())?;
    let (parts, body) = line.sender.send_request(request).await.map_err(text)?.into_parts();
    let body =
        Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok(ClientResponse { status: parts.status.as_u16(), headers: parts.headers, body })
}
