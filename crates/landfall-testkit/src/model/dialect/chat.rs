//! Chat completions.

use serde_json::{Value, json};

use super::{ModelReply, ModelRequestSpec, ModelToolInput, StreamEvent, names, parts, text_of};

pub(super) fn wanted(body: &Value) -> ModelRequestSpec {
    ModelRequestSpec {
        model: text_of(&body["model"]),
        stream: body["stream"] == true,
        tools: names(&body["tools"], |tool| tool["function"]["name"].as_str()),
        ..ModelRequestSpec::default()
    }
}

pub(super) fn whole(wanted: &ModelRequestSpec, reply: &ModelReply) -> Value {
    let text = if reply.text.is_empty() { Value::Null } else { json!(reply.text) };
    let mut message = json!({ "role": "assistant", "content": text });
    if let Some(calls) = calls(reply) {
        message["tool_calls"] = calls;
    }
    let mut whole = shell_of(wanted, reply, "chat.completion");
    whole["choices"] = json!([{ "index": 0, "message": message, "finish_reason": stop(reply) }]);
    whole["usage"] = usage(reply);
    whole
}

pub(super) fn events(wanted: &ModelRequestSpec, reply: &ModelReply) -> Vec<StreamEvent> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    deltas.extend(reply.thoughts.iter().map(|part| json!({ "reasoning_content": part })));
    deltas.extend(parts(&reply.text).into_iter().map(|part| json!({ "content": part })));
    if let Some(calls) = calls(reply) {
        deltas.push(json!({ "tool_calls": calls }));
    }
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = shell_of(wanted, reply, "chat.completion.chunk");
        chunk["choices"] = choices;
        chunk["usage"] = usage;
        (None, chunk.to_string())
    };
    let mut events: Vec<StreamEvent> = deltas
        .into_iter()
        .map(|delta| chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), Value::Null))
        .collect();
    events.push(chunk(json!([{ "index": 0, "delta": {}, "finish_reason": stop(reply) }]), Value::Null));
    events.push(chunk(json!([]), usage(reply)));
    events.push((None, "[DONE]".to_owned()));
    events
}

fn shell_of(wanted: &ModelRequestSpec, reply: &ModelReply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{:020}", reply.number),
        "object": object,
        "created": 1_700_000_000,
        "model": wanted.model,
    })
}

fn calls(reply: &ModelReply) -> Option<Value> {
    let call = reply.call.as_ref()?;
    let arguments = match &call.input {
        ModelToolInput::Json(input) => input.to_string(),
        ModelToolInput::Plain(text) => json!({ "input": text }).to_string(),
    };
    Some(json!([{
        "index": 0,
        "id": format!("call_{:020}", reply.number),
        "type": "function",
        "function": { "name": call.tool, "arguments": arguments },
    }]))
}

fn stop(reply: &ModelReply) -> &'static str {
    match (&reply.call, reply.too_long) {
        (_, true) => "length",
        (Some(_), false) => "tool_calls",
        (None, false) => "stop",
    }
}

fn usage(reply: &ModelReply) -> Value {
    let read = reply.tokens.fresh + reply.tokens.cached;
    json!({
        "prompt_tokens": read,
        "completion_tokens": reply.tokens.out,
        "total_tokens": read + reply.tokens.out,
        "prompt_tokens_details": { "cached_tokens": reply.tokens.cached },
    })
}
