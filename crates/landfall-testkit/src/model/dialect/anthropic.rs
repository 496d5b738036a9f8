//! The Messages API of Anthropic.

use serde_json::{Value, json};

use super::{ModelReply, ModelRequestSpec, ModelToolInput, StreamEvent, names, parts, text_of};

pub(super) fn wanted(body: &Value) -> ModelRequestSpec {
    ModelRequestSpec {
        model: text_of(&body["model"]),
        stream: body["stream"] == true,
        tools: names(&body["tools"], |tool| tool["name"].as_str()),
        ..ModelRequestSpec::default()
    }
}

pub(super) fn whole(wanted: &ModelRequestSpec, reply: &ModelReply) -> Value {
    json!({
        "id": id(reply),
        "type": "message",
        "role": "assistant",
        "model": wanted.model,
        "content": blocks(reply),
        "stop_reason": stop(reply),
        "stop_sequence": null,
        "usage": usage(reply, reply.tokens.out),
    })
}

pub(super) fn events(wanted: &ModelRequestSpec, reply: &ModelReply) -> Vec<StreamEvent> {
    let mut begin = whole(wanted, reply);
    begin["content"] = json!([]);
    begin["stop_reason"] = Value::Null;
    begin["usage"] = usage(reply, 1);
    let mut events = vec![json!({ "type": "message_start", "message": begin })];
    for (index, block) in blocks(reply).into_iter().enumerate() {
        let (empty, deltas) = match block["type"] == "thinking" {
            true => thoughts(reply),
            false => opened(&block),
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        for delta in deltas {
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop(reply), "stop_sequence": null },
        "usage": usage(reply, reply.tokens.out),
    }));
    events.push(json!({ "type": "message_stop" }));
    events.into_iter().map(|event| (event["type"].as_str().map(str::to_owned), event.to_string())).collect()
}

/// The block of thoughts as it begins, and what fills it.
fn thoughts(reply: &ModelReply) -> (Value, Vec<Value>) {
    let empty = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let thoughts = reply.thoughts.iter().map(|part| json!({ "type": "thinking_delta", "thinking": part }));
    let signature = json!({ "type": "signature_delta", "signature": "c2lnbmVk" });
    (empty, thoughts.chain([signature]).collect())
}

/// A block as it begins, and what fills it.
fn opened(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    if let Some(text) = block["text"].as_str() {
        empty["text"] = json!("");
        let deltas = parts(text).into_iter().map(|part| json!({ "type": "text_delta", "text": part }));
        return (empty, deltas.collect());
    }
    empty["input"] = json!({});
    let input = block["input"].to_string();
    let deltas =
        parts(&input).into_iter().map(|part| json!({ "type": "input_json_delta", "partial_json": part }));
    (empty, deltas.collect())
}

fn blocks(reply: &ModelReply) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !reply.thoughts.is_empty() {
        let thoughts = reply.thoughts.concat();
        blocks.push(json!({ "type": "thinking", "thinking": thoughts, "signature": "c2lnbmVk" }));
    }
    if !reply.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": reply.text }));
    }
    if let Some(call) = &reply.call {
        let input = match &call.input {
            ModelToolInput::Json(input) => input.clone(),
            ModelToolInput::Plain(text) => json!({ "input": text }),
        };
        let id = format!("toolu_{:020}", reply.number);
        blocks.push(json!({ "type": "tool_use", "id": id, "name": call.tool, "input": input }));
    }
    blocks
}

fn stop(reply: &ModelReply) -> &'static str {
    match (&reply.call, reply.too_long) {
        (_, true) => "max_tokens",
        (Some(_), false) => "tool_use",
        (None, false) => "end_turn",
    }
}

fn usage(reply: &ModelReply, out: u64) -> Value {
    json!({
        "input_tokens": reply.tokens.fresh,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.tokens.cached,
        "output_tokens": out,
    })
}

fn id(reply: &ModelReply) -> String {
    format!("msg_{:020}", reply.number)
}
