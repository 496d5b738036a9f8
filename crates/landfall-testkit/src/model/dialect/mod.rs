//! The protocols the model speaks. Each one reads what is asked and writes an answer; none of them decides anything.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value, json};

use super::play::Tokens;

/// One of the protocols, told from the path of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Responses API of OpenAI.
    Responses,
    /// Chat completions, as many providers offer them.
    Chat,
    /// `generateContent` of Gemini.
    Gemini,
}

/// What a request asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelRequestSpec {
    pub model: String,
    pub stream: bool,
    /// Tools that take JSON.
    pub tools: Vec<String>,
    /// Tools that take plain text.
    pub tools_plain: Vec<String>,
}

/// What the model answers.
#[derive(Debug, Clone)]
pub(super) struct ModelReply {
    /// Makes the ids in it unlike those of other replies.
    pub number: u64,
    pub text: String,
    pub call: Option<ToolCall>,
    pub too_long: bool,
    pub tokens: Tokens,
    /// Thoughts before the text, in pieces.
    pub thoughts: Vec<String>,
}

/// The use of a tool.
#[derive(Debug, Clone)]
pub(super) struct ToolCall {
    pub tool: String,
    /// The group it is offered in.
    pub group: Option<String>,
    pub input: ModelToolInput,
}

#[derive(Debug, Clone)]
pub(super) enum ModelToolInput {
    Json(Value),
    Plain(String),
}

/// One event of a stream: its name, where the dialect names them, and its data.
pub(super) type StreamEvent = (Option<String>, String);

impl Dialect {
    /// Which protocol a path belongs to.
    pub(super) fn of(path: &str) -> Option<Self> {
        let plain = path.split('?').next().unwrap_or_default();
        let ends = |end: &str| plain.ends_with(end);
        if ends("/messages") {
            Some(Self::Anthropic)
        } else if ends("/responses") {
            Some(Self::Responses)
        } else if ends("/chat/completions") {
            Some(Self::Chat)
        } else if ends(":generateContent") || ends(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    pub(super) fn wanted(self, path: &str, body: &Value) -> ModelRequestSpec {
        match self {
            Self::Anthropic => anthropic::wanted(body),
            Self::Responses => responses::wanted(body),
            Self::Chat => chat::wanted(body),
            Self::Gemini => gemini::wanted(path, body),
        }
    }

    /// The answer in one piece.
    pub(super) fn whole(self, wanted: &ModelRequestSpec, reply: &ModelReply) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(wanted, reply),
            Self::Responses => responses::whole(wanted, reply),
            Self::Chat => chat::whole(wanted, reply),
            Self::Gemini => gemini::whole(wanted, reply),
        }
    }

    /// The answer as a stream.
    pub(super) fn events(self, wanted: &ModelRequestSpec, reply: &ModelReply) -> Vec<StreamEvent> {
        match self {
            Self::Anthropic => anthropic::events(wanted, reply),
            Self::Responses => responses::events(wanted, reply),
            Self::Chat => chat::events(wanted, reply),
            Self::Gemini => gemini::events(wanted, reply),
        }
    }

    /// How a refusal is worded.
    pub(super) fn error(self, status: u16, kind: &str, message: &str) -> Value {
        match self {
            Self::Anthropic => json!({
                "type": "error",
                "error": { "type": kind, "message": message },
                "request_id": "req_fake",
            }),
            Self::Responses | Self::Chat => json!({
                "error": { "type": kind, "code": kind, "message": message, "param": null },
            }),
            Self::Gemini => json!({ "error": { "code": status, "message": message, "status": kind } }),
        }
    }
}

/// The use of the shell tool that is offered, in the words of that tool.
pub(super) fn shell(wanted: &ModelRequestSpec, command: &str) -> Option<ToolCall> {
    let json = |tool: &str, input: Value| ToolCall {
        tool: tool.to_owned(),
        group: None,
        input: ModelToolInput::Json(input),
    };
    for tool in &wanted.tools {
        match tool.as_str() {
            "Bash" | "bash" | "run_shell_command" => {
                return Some(json(tool, json!({ "command": command, "description": "work" })));
            }
            "exec_command" => return Some(json(tool, json!({ "cmd": command }))),
            "shell_command" => return Some(json(tool, json!({ "command": command }))),
            "shell" => return Some(json(tool, json!({ "command": ["sh", "-c", command] }))),
            _ => {}
        }
    }
    // A model that writes code for its tools: the command is one call of a function.
    wanted.tools_plain.iter().find(|tool| *tool == "exec").map(|tool| ToolCall {
        tool: tool.clone(),
        group: None,
        input: ModelToolInput::Plain(format!(
            "const done = await tools.exec_command({}); text(done.output ?? done);",
            json!({ "cmd": command })
        )),
    })
}

/// The use of a tool of an MCP server, as the agents that speak this dialect call it.
pub(super) fn tool(dialect: Dialect, server: &str, name: &str, input: &Value) -> ToolCall {
    let (tool, group) = match dialect {
        Dialect::Anthropic => (format!("mcp__{server}__{name}"), None),
        Dialect::Responses => (name.to_owned(), Some(format!("mcp__{server}"))),
        Dialect::Chat => (format!("{server}_{name}"), None),
        Dialect::Gemini => (format!("mcp_{server}_{name}"), None),
    };
    ToolCall { tool, group, input: ModelToolInput::Json(input.clone()) }
}

/// A text in two parts, as a stream would bring it.
fn parts(text: &str) -> Vec<&str> {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (one, two) = text.split_at(middle);
    [one, two].into_iter().filter(|part| !part.is_empty()).collect()
}

/// The names in a list of tools.
fn names(tools: &Value, name: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| name(tool).map(str::to_owned)).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
