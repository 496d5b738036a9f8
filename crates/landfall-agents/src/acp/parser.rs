//! The bridge's lines into signals.

use std::collections::BTreeMap;

use landfall_model::{AgentFinish, AgentUsage, Signal};
use serde_json::Value;

use super::note::{AcpError, AcpNote};
use crate::agent::{OutputParser, ParserContext};
use crate::json::{
    AgentProtocol, EventRecognition, JsonLines, count_or_zero, describe_tool_input, micro_usd, text_or_empty,
};
use crate::provider::classify_http_status;
use crate::voice::MessageParser;

/// Tools told apart at a time. More than any agent has under way; an agent that never ends one must not fill us up.
const TOOLS_MAX: usize = 256;
/// Bytes kept of the last message, for the closing word.
const CLOSING_MAX: usize = 16 << 10;

/// The ear for one conversation.
pub(super) fn conversation_parser(ear: &ParserContext) -> Box<dyn OutputParser + Send> {
    Box::new(JsonLines::new(Conversation {
        voice: MessageParser::new(&ear.nonce),
        message: None,
        last_words: String::new(),
        prompted: false,
        answering: false,
        tools: BTreeMap::new(),
        cost_before: if ear.resumed { ear.before.micro_usd } else { 0 },
        close: None,
    }))
}

struct Conversation {
    voice: MessageParser,
    /// The name of the message that is being said; empty where the agent gives it none.
    message: Option<String>,
    last_words: String,
    /// What comes before the prompt is an old conversation played again.
    prompted: bool,
    /// Whether the model is in the middle of an answer: one that follows the result of a tool is a new one.
    answering: bool,
    tools: BTreeMap<String, OpenToolCall>,
    /// What the session had cost before this run.
    cost_before: u64,
    /// How the prompt was answered. It is the closing word once the bridge has ended the agent too.
    close: Option<(AgentFinish, String)>,
}

/// A tool call that has not ended.
#[derive(Default)]
struct OpenToolCall {
    name: String,
    detail: String,
    told: bool,
}

impl AgentProtocol for Conversation {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        if let Some(message) = event.get("acp") {
            return self.handle_message(message, signals);
        }
        match AcpNote::deserialize(event) {
            Some(note) => self.handle_note(note, signals),
            None => EventRecognition::No,
        }
    }

    fn end_stream(&mut self, signals: &mut Vec<Signal>) {
        self.end_message(signals);
    }
}

impl Conversation {
    /// A message of the agent. Answers are not looked at here: the bridge knows what they answer.
    fn handle_message(&mut self, message: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        if text_or_empty(&message["method"]) != "session/update" || !self.prompted {
            return EventRecognition::Yes;
        }
        let update = &message["params"]["update"];
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => self.handle_chunk(update, signals),
            Some("tool_call" | "tool_call_update") => return self.handle_tool_call(update, signals),
            Some("usage_update") => self.handle_usage(update, signals),
            // Thoughts, plans, commands and titles are for a person at an editor.
            Some(_) => {}
            None => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_chunk(&mut self, update: &Value, signals: &mut Vec<Signal>) {
        self.count_turn(signals);
        let id = text_or_empty(&update["messageId"]);
        if self.message.as_deref() != Some(id) {
            self.end_message(signals);
            self.message = Some(id.to_owned());
            self.last_words.clear();
        }
        let text = text_or_empty(&update["content"]["text"]);
        let room = CLOSING_MAX.saturating_sub(self.last_words.len());
        self.last_words.push_str(&text[..text.floor_char_boundary(room)]);
        self.voice.push_piece(text);
    }

    fn end_message(&mut self, signals: &mut Vec<Signal>) {
        if self.message.take().is_some() {
            self.voice.end_message(signals);
        }
    }

    /// The model has begun an answer, if it was not in the middle of one.
    fn count_turn(&mut self, signals: &mut Vec<Signal>) {
        if !std::mem::replace(&mut self.answering, true) {
            signals.push(Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() }));
        }
    }

    fn handle_tool_call(&mut self, update: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        let Some(id) = update["toolCallId"].as_str() else { return EventRecognition::No };
        let status = text_or_empty(&update["status"]);
        let done = ["completed", "failed"].contains(&status);
        if !self.tools.contains_key(id) {
            // Many agents send one more word about a tool that is done.
            let late = text_or_empty(&update["sessionUpdate"]) == "tool_call_update" && !done;
            if late || self.tools.len() >= TOOLS_MAX {
                return EventRecognition::Yes;
            }
            self.end_message(signals);
            self.count_turn(signals);
        }
        let tool = self.tools.entry(id.to_owned()).or_default();
        match (text_or_empty(&update["name"]), text_or_empty(&update["kind"])) {
            ("", kind) if tool.name.is_empty() => kind.clone_into(&mut tool.name),
            ("", _) => {}
            (name, _) => name.clone_into(&mut tool.name),
        }
        let input = describe_tool_input(&update["rawInput"]);
        let known = !input.is_empty();
        if known {
            tool.detail = input;
        } else if tool.detail.is_empty() || !tool.told {
            let title: Vec<&str> = text_or_empty(&update["title"]).split_whitespace().collect();
            if !title.is_empty() {
                tool.detail = crate::json::truncate_text(&title.join(" "));
            }
        }
        // The first word about a tool often comes before its input; it is told once it says something.
        if !tool.told && (known && status != "pending" || done || status == "in_progress") {
            tool.told = true;
            let name = if tool.name.is_empty() { "tool" } else { &tool.name };
            signals.push(Signal::ToolUse { name: name.to_owned(), detail: tool.detail.clone() });
        }
        if done {
            self.tools.remove(id);
            self.answering = false;
            signals.push(Signal::ToolDone);
        }
        EventRecognition::Yes
    }

    fn handle_usage(&mut self, update: &Value, signals: &mut Vec<Signal>) {
        if let (Some(used), Some(size)) = (update["used"].as_u64(), update["size"].as_u64()) {
            signals.push(Signal::Context { used, size });
        }
        // Cost is told over the whole session. In other money it only stands in the log.
        let cost = &update["cost"];
        if cost["amount"].is_number() && text_or_empty(&cost["currency"]) == "USD" {
            signals.push(Signal::Cost(micro_usd(&cost["amount"]).saturating_sub(self.cost_before)));
        }
    }

    fn handle_note(&mut self, note: AcpNote, signals: &mut Vec<Signal>) -> EventRecognition {
        match note {
            AcpNote::Session { id, model, .. } => {
                signals.push(Signal::Started { session: Some(id), model });
            }
            AcpNote::SessionGone { .. } => signals.push(Signal::SessionGone),
            AcpNote::Prompted => self.prompted = true,
            AcpNote::Asked { what, chosen: None } => signals.push(Signal::PermissionAsked { what }),
            AcpNote::Answered { result } => self.handle_answer(&result, signals),
            AcpNote::Failed(fault) => {
                self.end_message(signals);
                signals.extend(classify_fault(&fault));
                self.close = Some((AgentFinish::Error, fault.message));
            }
            AcpNote::Raw { .. } => return EventRecognition::No,
            AcpNote::Ended { .. } => {
                self.end_message(signals);
                let (how, text) = self.close.take().unwrap_or((AgentFinish::Interrupted, String::new()));
                signals.push(Signal::Finished { how, text });
            }
            AcpNote::Started { .. }
            | AcpNote::Set { .. }
            | AcpNote::Asked { chosen: Some(_), .. }
            | AcpNote::Unsupported { .. }
            | AcpNote::Stopping => {}
        }
        EventRecognition::Yes
    }

    fn handle_answer(&mut self, result: &Value, signals: &mut Vec<Signal>) {
        self.end_message(signals);
        signals.extend(read_usage(result).map(Signal::Usage));
        let how = match text_or_empty(&result["stopReason"]) {
            "end_turn" => AgentFinish::Success,
            "max_tokens" | "max_turn_requests" => AgentFinish::Limit,
            "cancelled" => AgentFinish::Interrupted,
            _ => AgentFinish::Error, // a refusal, or a reason we do not know: not a success
        };
        self.close = Some((how, std::mem::take(&mut self.last_words)));
    }
}

/// What kind of trouble it is, by its fields alone.
fn classify_fault(fault: &AcpError) -> Option<Signal> {
    const AUTH_REQUIRED: i64 = -32_000;
    let detail = || fault.message.clone();
    if fault.code == Some(AUTH_REQUIRED) {
        return Some(Signal::Unauthorized { detail: detail() });
    }
    // Some pass on what the provider said to them.
    if let Some(trouble) = fault
        .code
        .and_then(|code| u64::try_from(code).ok())
        .and_then(|code| classify_http_status(code, detail()))
    {
        return Some(trouble);
    }
    let info = &fault.data["codexErrorInfo"];
    // A kind with more to say is an object with the kind as its only key.
    let codex = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str));
    match fault.data["errorKind"].as_str().or(codex)? {
        "rate_limit" | "usageLimitExceeded" | "billing_error" => Some(Signal::Quota { until: None }),
        "authentication_failed" | "oauth_org_not_allowed" | "unauthorized" | "account_on_hold" => {
            Some(Signal::Unauthorized { detail: detail() })
        }
        "overloaded"
        | "server_error"
        | "serverOverloaded"
        | "internalServerError"
        | "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => Some(Signal::Transient { detail: detail() }),
        _ => None,
    }
}

/// The tokens of a prompt's answer: where the protocol puts them, else where some agents do.
fn read_usage(result: &Value) -> Option<AgentUsage> {
    let usage = &result["usage"];
    if usage.is_object() {
        let cached = count_or_zero(&usage["cachedReadTokens"]);
        let read =
            count_or_zero(&usage["inputTokens"]).saturating_add(count_or_zero(&usage["cachedWriteTokens"]));
        return Some(AgentUsage {
            tokens_in: read.saturating_add(cached),
            tokens_cached: cached,
            tokens_out: count_or_zero(&usage["outputTokens"]),
            ..AgentUsage::default()
        });
    }
    let told = &result["_meta"]["quota"]["token_count"];
    told.is_object().then(|| AgentUsage {
        tokens_in: count_or_zero(&told["input_tokens"]),
        tokens_out: count_or_zero(&told["output_tokens"]),
        ..AgentUsage::default()
    })
}
