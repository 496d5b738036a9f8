//! The Responses API of OpenAI.

use serde_json::{Value, json};

use super::{ModelReply, ModelRequestSpec, ModelToolInput, StreamEvent, parts, text_of};

pub(super) fn wanted(body: &Value) -> ModelRequestSpec {
    let mut wanted = ModelRequestSpec {
        model: text_of(&body["model"]),
        stream: body["stream"] == true,
        ..ModelRequestSpec::default()
    };
    offered(&body["tools"], &mut wanted);
    // Newer models get their tools inside the input, in groups.
    for item in body["input"].as_array().into_iter().flatten() {
        if item["type"] == "additional_tools" {
            offered(&item["tools"], &mut wanted);
        }
    }
    wanted
}

fn offered(tools: &Value, wanted: &mut ModelRequestSpec) {
    for tool in tools.as_array().into_iter().flatten() {
        if tool["tools"].is_array() {
            offered(&tool["tools"], wanted);
            continue;
        }
        let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default().to_owned();
        if tool["type"] == "custom" { wanted.tools_plain.push(name) } else { wanted.tools.push(name) }
    }
}

pub(super) fn whole(wanted: &ModelRequestSpec, reply: &ModelReply) -> Value {
    let (read, cached, out) =
        (reply.tokens.fresh + reply.tokens.cached, reply.tokens.cached, reply.tokens.out);
    let mut whole = json!({
        "id": format!("resp_{:020}", reply.number),
        "object": "response",
        "created_at": 1_700_000_000,
        "status": if reply.too_long { "incomplete" } else { "completed" },
        "model": wanted.model,
        "output": items(reply),
        "usage": {
            "input_tokens": read,
            "input_tokens_details": { "cached_tokens": cached },
            "output_tokens": out,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": read + out,
        },
    });
    if reply.too_long {
        whole["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    }
    whole
}

pub(super) fn events(wanted: &ModelRequestSpec, reply: &ModelReply) -> Vec<StreamEvent> {
    let whole = whole(wanted, reply);
    let mut begin = whole.clone();
    begin["status"] = json!("in_progress");
    begin["output"] = json!([]);
    begin["usage"] = Value::Null;
    let mut events = vec![json!({ "type": "response.created", "response": begin })];
    for (index, item) in items(reply).into_iter().enumerate() {
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        if item["type"] == "message" {
            empty["content"] = json!([]);
        }
        if item["type"] == "reasoning" {
            empty["summary"] = json!([]);
            empty["status"] = Value::Null;
        }
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": empty }));
        if item["type"] == "reasoning" {
            for part in &reply.thoughts {
                events.push(json!({
                    "type": "response.reasoning_summary_text.delta",
                    "item_id": item["id"],
                    "output_index": index,
                    "summary_index": 0,
                    "delta": part,
                }));
            }
        }
        if item["type"] == "message" {
            for part in parts(&reply.text) {
                events.push(json!({
                    "type": "response.output_text.delta",
                    "item_id": item["id"],
                    "output_index": index,
                    "content_index": 0,
                    "delta": part,
                }));
            }
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    let end = format!("response.{}", whole["status"].as_str().unwrap_or_default());
    events.push(json!({ "type": end, "response": whole }));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        (event["type"].as_str().map(str::to_owned), event.to_string())
    });
    numbered.collect()
}

fn items(reply: &ModelReply) -> Vec<Value> {
    let mut items = Vec::new();
    if !reply.thoughts.is_empty() {
        items.push(json!({
            "type": "reasoning",
            "id": format!("rs_{:020}", reply.number),
            "summary": [{ "type": "summary_text", "text": reply.thoughts.concat() }],
        }));
    }
    if !reply.text.is_empty() {
        items.push(json!({
            "type": "message",
            "id": format!("msg_{:020}", reply.number),
            "status": "completed",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": reply.text, "annotations": [] }],
        }));
    }
    if let Some(call) = &reply.call {
        let id = format!("call_{:020}", reply.number);
        let mut item = match &call.input {
            ModelToolInput::Json(input) => json!({
                "type": "function_call",
                "id": format!("fc_{:020}", reply.number),
                "call_id": id,
                "name": call.tool,
                "arguments": input.to_string(),
                "status": "completed",
            }),
            ModelToolInput::Plain(text) => json!({
                "type": "custom_tool_call",
                "id": format!("ctc_{:020}", reply.number),
                "call_id": id,
                "name": call.tool,
                "input": text,
                "status": "completed",
            }),
        };
        if let Some(group) = &call.group {
            item["namespace"] = json!(group);
        }
        items.push(item);
    }
    items
}
