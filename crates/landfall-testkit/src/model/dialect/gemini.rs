//! `generateContent` and `streamGenerateContent` of Gemini.

use serde_json::{Value, json};

use super::{ModelReply, ModelRequestSpec, ModelToolInput, StreamEvent, names, parts};

pub(super) fn wanted(path: &str, body: &Value) -> ModelRequestSpec {
    let model = path.split("/models/").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();
    let groups = body["tools"].as_array().into_iter().flatten();
    ModelRequestSpec {
        model: model.to_owned(),
        stream: path.contains(":streamGenerateContent"),
        tools: groups
            .flat_map(|group| names(&group["functionDeclarations"], |tool| tool["name"].as_str()))
            .collect(),
        ..ModelRequestSpec::default()
    }
}

pub(super) fn whole(wanted: &ModelRequestSpec, reply: &ModelReply) -> Value {
    let mut said = Vec::new();
    if !reply.text.is_empty() {
        said.push(json!({ "text": reply.text }));
    }
    piece(wanted, reply, said, true)
}

pub(super) fn events(wanted: &ModelRequestSpec, reply: &ModelReply) -> Vec<StreamEvent> {
    let texts: Vec<Value> = parts(&reply.text).into_iter().map(|part| json!({ "text": part })).collect();
    let mut events = Vec::new();
    for part in &reply.thoughts {
        let thought = json!({ "text": part, "thought": true });
        events.push((None, piece(wanted, reply, vec![thought], false).to_string()));
    }
    let mut texts = texts.into_iter().peekable();
    while let Some(text) = texts.next() {
        let last = texts.peek().is_none();
        events.push((None, piece(wanted, reply, vec![text], last).to_string()));
    }
    if reply.text.is_empty() {
        events.push((None, piece(wanted, reply, Vec::new(), true).to_string()));
    }
    events
}

/// One part of an answer; the last one has the call, the reason for the end and the figures.
fn piece(wanted: &ModelRequestSpec, reply: &ModelReply, mut said: Vec<Value>, last: bool) -> Value {
    if let (Some(call), true) = (&reply.call, last) {
        let input = match &call.input {
            ModelToolInput::Json(input) => input.clone(),
            ModelToolInput::Plain(text) => json!({ "input": text }),
        };
        let id = format!("call_{:020}", reply.number);
        said.push(json!({ "functionCall": { "id": id, "name": call.tool, "args": input } }));
    }
    let mut candidate = json!({ "content": { "role": "model", "parts": said }, "index": 0 });
    let mut piece = json!({
        "modelVersion": wanted.model,
        "responseId": format!("resp{:020}", reply.number),
    });
    if last {
        candidate["finishReason"] = json!(if reply.too_long { "MAX_TOKENS" } else { "STOP" });
        let read = reply.tokens.fresh + reply.tokens.cached;
        piece["usageMetadata"] = json!({
            "promptTokenCount": read,
            "candidatesTokenCount": reply.tokens.out,
            "cachedContentTokenCount": reply.tokens.cached,
            "totalTokenCount": read + reply.tokens.out,
        });
    }
    piece["candidates"] = json!([candidate]);
    piece
}
