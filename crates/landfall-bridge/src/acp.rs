//! The bridge to agents that speak the Agent Client Protocol: one session, one prompt, one answer.
//!
//! All that the agent sends is printed as it comes, and so is what we make of it ([`AcpNote`]). The engine reads these lines
//! through the adapter; nothing is decided here but what the protocol wants decided at once: leave that the agent asks
//! for is given (it works unattended, and what bounds it is the sandbox), what it asks for beyond that is refused.

mod lines;
mod offers;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, EnvVariable, Implementation, InitializeRequest,
    LoadSessionRequest, McpServer, McpServerStdio, NewSessionRequest, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    SelectedPermissionOutcome, SetSessionConfigOptionRequest, SetSessionModeRequest, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Dispatch};
use agent_client_protocol::{Agent, Client, Error, Lines, UntypedMessage};
use landfall_agents::acp::{AcpError, AcpNote, AcpOrder};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::say;
use offers::SessionOffers;

/// How long an agent may take to come up, and to make a session: the slowest takes 25 s on a busy machine.
const SETUP_MAX: Duration = Duration::from_secs(180);
/// How long to play an old session again: it may be long.
const LOAD_MAX: Duration = Duration::from_secs(600);
/// How long an agent may take to answer after it was told to cancel.
const CANCEL_MAX: Duration = Duration::from_secs(3);
/// How long it may take to end once its stdin is closed, and again once it is asked to.
const END_MAX: Duration = Duration::from_secs(2);

const ANSWERED: u8 = 0;
const FAILED: u8 = 1;

/// Holds the conversation that stdin orders. Returns the exit code.
#[must_use]
pub fn run() -> u8 {
    let order = match crate::order(AcpOrder::read) {
        Ok(order) => order,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("start the runtime: {error}");
            return FAILED;
        }
    };
    let code = match runtime.block_on(run_conversation(order)) {
        Ok(how) => {
            note(&AcpNote::Ended { how });
            ANSWERED
        }
        Err(AcpFailure { fault, how }) => {
            note(&AcpNote::Failed(fault));
            note(&AcpNote::Ended { how });
            FAILED
        }
    };
    runtime.shutdown_background(); // a thread that reads what nobody writes is no reason to stay
    code
}

fn note(note: &AcpNote) {
    say::line(&note.line());
}

fn fault(at: &str, message: impl Into<String>) -> AcpError {
    AcpError { at: at.to_owned(), code: None, message: message.into(), data: Value::Null }
}

/// Why there is no answer to the prompt.
enum PromptFailure {
    /// The agent refused, or could not.
    Fault(AcpError),
    /// The agent has closed its output.
    Closed {
        /// What we were about.
        at: &'static str,
    },
    /// We were told to stop.
    Stopped,
}

/// What went wrong, and how the agent's process ended.
struct AcpFailure {
    fault: AcpError,
    how: String,
}

/// The whole conversation. Returns how the agent's process ended.
async fn run_conversation(order: AcpOrder) -> Result<String, AcpFailure> {
    let unstarted = |fault| AcpFailure { fault, how: "not started".to_owned() };
    let stop =
        stop_signal().map_err(|error| unstarted(fault("start", format!("listen for signals: {error}"))))?;
    let (program, args) =
        order.argv.split_first().ok_or_else(|| unstarted(fault("start", "the command line is empty")))?;
    let mut child = spawn(program, args)
        .map_err(|error| unstarted(fault("start", format!("run `{program}`: {error}"))))?;
    note(&AcpNote::Started { program: program.clone(), pid: child.id().unwrap_or(0) });
    let stdin = child.stdin.take().expect("piped");
    let stdout = child.stdout.take().expect("piped");

    // What we are told comes out of the connection by this, because its errors are the protocol's and not ours.
    let outcome: Arc<Mutex<Option<Result<(), PromptFailure>>>> = Arc::default();
    let told = Arc::clone(&outcome);
    let conversation = Client
        .v1()
        .name("landfall")
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                responder.respond(RequestPermissionResponse::new(permit(&request)))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_dispatch(
            async move |message: Dispatch, _| match message {
                Dispatch::Request(request, responder) => {
                    note(&AcpNote::Unsupported { method: request.method });
                    responder.respond_with_error(Error::method_not_found())
                }
                Dispatch::Notification(_) => Ok(()),
                Dispatch::Response(result, router) => router.route_with_result(result),
            },
            agent_client_protocol::on_receive_dispatch!(),
        )
        .connect_with(
            Lines::new(lines::outgoing(stdin), lines::incoming(stdout)),
            async move |connection: ConnectionTo<Agent>| {
                let result = prompt(&connection, &order, stop).await;
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                Ok(())
            },
        );
    let ended = tokio::select! {
        ended = conversation => ended,
        () = gone(&mut child) => Ok(()),
    };
    // The connection is gone, and with it the agent's stdin: it knows that nothing more comes.
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let how = end(child).await;
    let fault = match (outcome, ended) {
        (Some(Ok(()) | Err(PromptFailure::Stopped)), _) => return Ok(how),
        (Some(Err(PromptFailure::Fault(fault))), _) => fault,
        (Some(Err(PromptFailure::Closed { at })), _) => {
            fault(at, format!("the agent ended in the middle: {how}"))
        }
        (None, Err(error)) => fault("conversation", error.message),
        (None, Ok(())) => fault("conversation", format!("the agent ended in the middle: {how}")),
    };
    Err(AcpFailure { fault, how })
}

/// One value that turns true when somebody wants us to end.
fn stop_signal() -> io::Result<watch::Receiver<bool>> {
    let (tell, stop) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tell.send(true).ok(); // whoever would listen has left already
    });
    Ok(stop)
}

async fn wait_until_stopped(stop: &mut watch::Receiver<bool>) {
    // The sender goes only after it has spoken.
    let _ = stop.wait_for(|stop| *stop).await; // a sender that is gone stops it too
}

fn spawn(program: &str, args: &[String]) -> io::Result<Child> {
    Command::new(OsStr::new(program))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
}

/// The agent itself has ended, and what it left behind holds its output open: nobody is there to answer any more.
async fn gone(child: &mut Child) {
    let _ = child.wait().await; // however it ended
    tokio::time::sleep(END_MAX).await; // its last words may be on the way
}

/// Gives the agent time to end by itself, then asks, then makes it. Says how it ended.
async fn end(mut child: Child) -> String {
    if let Ok(Ok(status)) = timeout(END_MAX, child.wait()).await {
        return status.to_string();
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Not yet waited for, so nobody else can have this id.
        rustix::process::kill_process(pid, Signal::TERM).ok(); // it may have ended this moment
    }
    if let Ok(Ok(status)) = timeout(END_MAX, child.wait()).await {
        return format!("{status}, asked to");
    }
    match child.kill().await {
        Ok(()) => "killed: it did not end when asked to".to_owned(),
        Err(error) => format!("could not be killed: {error}"),
    }
}

/// Everything we say to the agent, in order.
async fn prompt(
    connection: &ConnectionTo<Agent>,
    order: &AcpOrder,
    mut stop: watch::Receiver<bool>,
) -> Result<(), PromptFailure> {
    let mut halt = stop.clone();
    let session = tokio::select! {
        session = set_up(connection, order) => session?,
        () = wait_until_stopped(&mut halt) => {
            note(&AcpNote::Stopping);
            return Err(PromptFailure::Stopped);
        }
    };
    note(&AcpNote::Prompted);
    let blocks = vec![ContentBlock::Text(TextContent::new(order.prompt.clone()))];
    let answer =
        send_request(connection, "session/prompt", PromptRequest::new(session.clone(), blocks), None);
    tokio::pin!(answer);
    let answer = tokio::select! {
        answer = &mut answer => answer,
        () = wait_until_stopped(&mut stop) => {
            note(&AcpNote::Stopping);
            let _ = connection.send_notification(CancelNotification::new(session)); // gone already: the same
            timeout(CANCEL_MAX, answer).await.map_err(|_| PromptFailure::Stopped)?
        }
    };
    match answer {
        Ok(result) => {
            note(&AcpNote::Answered { result });
            Ok(())
        }
        // An agent that dies of being told to stop has done what it was told.
        Err(PromptFailure::Closed { .. }) if *stop.borrow() => Err(PromptFailure::Stopped),
        Err(broken) => Err(broken),
    }
}

/// Sends a request and waits for the answer, as it comes.
async fn send_request(
    connection: &ConnectionTo<Agent>,
    method: &'static str,
    params: impl serde::Serialize,
    within: Option<Duration>,
) -> Result<Value, PromptFailure> {
    let message = UntypedMessage::new(method, params)
        .map_err(|error| PromptFailure::Fault(fault(method, error.message)))?;
    let answer = connection.send_request(message).block_task();
    let answer = match within {
        None => answer.await,
        Some(within) => timeout(within, answer).await.map_err(|_| {
            PromptFailure::Fault(fault(method, format!("no answer within {} s", within.as_secs())))
        })?,
    };
    answer.map_err(|error| to_broken(method, error))
}

fn to_broken(at: &'static str, error: Error) -> PromptFailure {
    if agent_client_protocol::is_incoming_transport_closed(&error)
        || agent_client_protocol::is_connection_terminated(&error)
    {
        return PromptFailure::Closed { at };
    }
    PromptFailure::Fault(AcpError {
        at: at.to_owned(),
        code: Some(i64::from(i32::from(error.code))),
        message: error.message,
        data: error.data.unwrap_or_default(),
    })
}

/// Up to the session with all that is to be set in it. Returns its name.
async fn set_up(connection: &ConnectionTo<Agent>, order: &AcpOrder) -> Result<String, PromptFailure> {
    let hello = InitializeRequest::new(ProtocolVersion::V1)
        // No files and no terminals of ours: the agent has its own, inside the sandbox.
        .client_capabilities(ClientCapabilities::new())
        .client_info(Implementation::new("landfall", env!("CARGO_PKG_VERSION")));
    let can = timeout(SETUP_MAX, connection.send_request(hello).block_task())
        .await
        .map_err(|_| {
            PromptFailure::Fault(fault("initialize", format!("no answer within {} s", SETUP_MAX.as_secs())))
        })?
        .map_err(|error| to_broken("initialize", error))?
        .agent_capabilities;
    let cwd = std::env::current_dir().map_err(|error| {
        PromptFailure::Fault(fault("session", format!("find the current folder: {error}")))
    })?;
    let can =
        SessionCapabilities { resume: can.session_capabilities.resume.is_some(), load: can.load_session };
    let (session, offers, resumed) = open_session(connection, order, can, &cwd).await?;
    note(&AcpNote::Session { id: session.clone(), resumed, model: offers.current_model() });
    set_mode(connection, order, &session, &offers).await?;
    if let Some(model) = &order.model {
        set_option(connection, &session, &offers, "model", model).await?;
    }
    if let Some(effort) = &order.effort {
        set_option(connection, &session, &offers, "thought_level", effort).await?;
    }
    Ok(session)
}

/// Ways to go on with an old session.
struct SessionCapabilities {
    /// Without playing it again.
    resume: bool,
    /// All of it played again.
    load: bool,
}

/// The session to speak in: a new one, or the old one if it is wanted. One that is gone ends the run: the prompt was
/// written for an agent that remembers, and the next run is briefed from the journal.
async fn open_session(
    connection: &ConnectionTo<Agent>,
    order: &AcpOrder,
    can: SessionCapabilities,
    cwd: &Path,
) -> Result<(String, SessionOffers, bool), PromptFailure> {
    if let Some(old) = &order.resume {
        let resumed = if can.resume {
            let request = ResumeSessionRequest::new(old.clone(), cwd).mcp_servers(mcp_servers(order));
            send_request(connection, "session/resume", request, Some(LOAD_MAX)).await
        } else if can.load {
            let request = LoadSessionRequest::new(old.clone(), cwd).mcp_servers(mcp_servers(order));
            send_request(connection, "session/load", request, Some(LOAD_MAX)).await
        } else {
            Err(PromptFailure::Fault(fault("session/load", "the agent cannot go on with a session")))
        };
        const AUTH_REQUIRED: i64 = -32_000;
        match resumed {
            Ok(answer) => return Ok((old.clone(), SessionOffers::new(answer), true)),
            Err(PromptFailure::Fault(fault)) if fault.code != Some(AUTH_REQUIRED) => {
                note(&AcpNote::SessionGone { id: old.clone(), why: fault.message.clone() });
                return Err(PromptFailure::Fault(fault));
            }
            Err(broken) => return Err(broken),
        }
    }
    let request = NewSessionRequest::new(cwd).mcp_servers(mcp_servers(order));
    let answer = send_request(connection, "session/new", request, Some(SETUP_MAX)).await?;
    let id = answer["sessionId"]
        .as_str()
        .ok_or_else(|| PromptFailure::Fault(fault("session/new", "the agent gave the session no name")))?
        .to_owned();
    Ok((id, SessionOffers::new(answer), false))
}

/// Our tools. The agent starts the program, and often with next to nothing of our environment.
fn mcp_servers(order: &AcpOrder) -> Vec<McpServer> {
    let passed = |name: &String| Some(EnvVariable::new(name, std::env::var(name).ok()?));
    let server = order.mcp.iter().map(|server| {
        let stdio = McpServerStdio::new(server.name.clone(), server.command.clone())
            .args(server.args.clone())
            .env(server.env.iter().filter_map(passed).collect());
        McpServer::Stdio(stdio)
    });
    server.collect()
}

/// A mode in which the agent does not ask. Without one it asks, and we answer.
async fn set_mode(
    connection: &ConnectionTo<Agent>,
    order: &AcpOrder,
    session: &str,
    offers: &SessionOffers,
) -> Result<(), PromptFailure> {
    let Some(mode) = order.modes.iter().find(|mode| offers.has_mode(mode)) else { return Ok(()) };
    let request = SetSessionModeRequest::new(session.to_owned(), mode.clone());
    let refused = match send_request(connection, "session/set_mode", request, Some(SETUP_MAX)).await {
        Ok(_) => None,
        Err(PromptFailure::Fault(fault)) => Some(fault.message), // then it asks, and is answered
        Err(broken) => return Err(broken),
    };
    note(&AcpNote::Set { what: "mode".to_owned(), to: mode.clone(), refused });
    Ok(())
}

/// Sets the model, or how hard it thinks. What a person chose is not replaced by something else: it is an error if it
/// cannot be had.
async fn set_option(
    connection: &ConnectionTo<Agent>,
    session: &str,
    offers: &SessionOffers,
    what: &'static str,
    to: &str,
) -> Result<(), PromptFailure> {
    if let Some((option, value)) = offers.find_option(what, to) {
        let request = SetSessionConfigOptionRequest::new(session.to_owned(), option, value.as_str());
        send_request(connection, "session/set_config_option", request, Some(SETUP_MAX)).await?;
    } else if what == "model"
        && let Some(model) = offers.find_model(to)
    {
        let request = serde_json::json!({ "sessionId": session, "modelId": model });
        send_request(connection, "session/set_model", request, Some(SETUP_MAX)).await?;
    } else {
        let known = offers.known_values(what);
        let known = if known.is_empty() {
            "it offers no choice".to_owned()
        } else {
            format!("it offers {}", known.join(", "))
        };
        return Err(PromptFailure::Fault(fault("set", format!("the agent has no {what} `{to}`: {known}"))));
    }
    note(&AcpNote::Set { what: what.to_owned(), to: to.to_owned(), refused: None });
    Ok(())
}

/// The narrowest yes there is.
fn permit(request: &RequestPermissionRequest) -> RequestPermissionOutcome {
    let yes = [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
        .into_iter()
        .find_map(|kind| request.options.iter().find(|option| option.kind == kind));
    let call = &request.tool_call;
    let what = call.fields.title.clone().unwrap_or_else(|| call.tool_call_id.to_string());
    note(&AcpNote::Asked { what, chosen: yes.map(|option| option.name.clone()) });
    match yes {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}
