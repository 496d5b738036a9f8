//! `landfall mcp --agent`: the words of `landfall signal` as tools, for an agent at work.
//!
//! Speaks the Model Context Protocol on stdin and stdout and nowhere else. Each call is one word through the run's
//! [`socket`](crate::socket); what the sitter refuses is an answer the model can read, not an error of the protocol.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt as _};
use rmcp::transport::stdio;
use serde_json::{Value, json};

use crate::socket::{SitterConnection, SocketSignal};

const DONE: u8 = 0;
pub(crate) const FAILED: u8 = 1;

/// Serves until stdin ends. Returns the exit code.
#[must_use]
pub fn serve_signal_tools() -> u8 {
    serve_tools(SignalToolServer)
}

/// The same with these tools.
pub(crate) fn serve_tools(tools: impl ServerHandler) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("start the runtime: {error}");
            return FAILED;
        }
    };
    let code = runtime.block_on(async {
        match tools.serve(stdio()).await {
            Ok(running) => {
                running.waiting().await.ok(); // however it ended, stdin is closed
                DONE
            }
            Err(error) => {
                eprintln!("begin the conversation: {error}");
                FAILED
            }
        }
    });
    runtime.shutdown_background(); // a thread may be reading stdin for ever
    code
}

struct SignalToolServer;

impl ServerHandler for SignalToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("landfall", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Tools to tell Landfall, which has started you, how your task stands. Say `signal` with `complete` \
                 when the work is done and committed.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(signal_tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let word = match to_socket_signal(&request.name, &arguments) {
            Ok(word) => word,
            Err(ToolCallError::Tool) => {
                return Err(ErrorData::invalid_params(format!("no tool `{}`", request.name), None));
            }
            Err(ToolCallError::Words(problem)) => return Ok(refusal_response(problem)),
        };
        // The socket is waited for, and other requests must not wait with us.
        let said = tokio::task::spawn_blocking(move || {
            SitterConnection::from_environment().and_then(|line| line.send_signal(&word)).map_err(|error| {
                match error.hint() {
                    Some(hint) => format!("{error} ({hint})"),
                    None => error.to_string(),
                }
            })
        });
        Ok(match said.await {
            Ok(Ok(())) => CallToolResult::success(vec![ContentBlock::text("noted")]).into(),
            Ok(Err(problem)) => refusal_response(problem),
            Err(error) => refusal_response(error.to_string()),
        })
    }
}

fn refusal_response(problem: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(problem)]).into()
}

/// Why a call is no word.
enum ToolCallError {
    /// There is no such tool.
    Tool,
    /// What it was given cannot be said.
    Words(String),
}

fn to_socket_signal(tool: &str, arguments: &JsonObject) -> Result<SocketSignal, ToolCallError> {
    let text = |name: &str| match arguments.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) | None => String::new(),
    };
    let word = match tool {
        "signal" => SocketSignal::new(&text("word"), &text("text")),
        "ask" => SocketSignal::new("ask", &text("question")),
        "discovery" => match text("scope").as_str() {
            "" | "local" => SocketSignal::new("discovery-local", &text("text")),
            "global" => SocketSignal::new("discovery-global", &text("text")),
            other => {
                return Err(ToolCallError::Words(format!("scope is `local` or `global`, not `{other}`")));
            }
        },
        // The title is one line: what follows it is the text.
        "follow_up" => {
            let title = text("title").split_whitespace().collect::<Vec<_>>().join(" ");
            if title.is_empty() {
                return Err(ToolCallError::Words("`follow_up` needs a title".to_owned()));
            }
            SocketSignal::new("follow-up", &format!("{title}\n{}", text("body")))
        }
        _ => return Err(ToolCallError::Tool),
    };
    word.map_err(|error| ToolCallError::Words(format!("{error} ({})", error.hint())))
}

fn signal_tools() -> Vec<Tool> {
    let tool = |name: &'static str, about: &'static str, required: &[&str], properties: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let Value::Object(schema) = schema else { unreachable!("written as an object") };
        Tool::new(name, about, Arc::new(schema))
    };
    let text = |about: &str| json!({"type": "string", "description": about});
    vec![
        tool(
            "signal",
            "Tells Landfall how your task stands: `complete` when the work is done and committed, `blocked` with the \
             reason when you cannot continue, `pending` with what only a person can decide, `progress` with a number \
             from 0 to 100, `resolved` when a conflict is resolved.",
            &["word"],
            json!({
                "word": {"type": "string", "enum": ["complete", "blocked", "pending", "progress", "step", "check", "resolved"]},
                "text": text("The reason, or the number. Not needed for `complete` and `resolved`."),
            }),
        ),
        tool(
            "ask",
            "Asks a person a question. The answer comes with a later prompt, not at once.",
            &["question"],
            json!({"question": text("The question, with all that is needed to answer it.")}),
        ),
        tool(
            "discovery",
            "Keeps something worth knowing: for this task (`local`) or for every task (`global`).",
            &["text"],
            json!({
                "scope": {"type": "string", "enum": ["local", "global"], "default": "local"},
                "text": text("What to know, in a sentence or two."),
            }),
        ),
        tool(
            "follow_up",
            "Files a new task for work that you found and that is not part of yours.",
            &["title"],
            json!({"title": text("The task in a line."), "body": text("What is wanted, and why.")}),
        ),
    ]
}
