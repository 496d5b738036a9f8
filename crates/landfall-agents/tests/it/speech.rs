//! Ordinary output of each agent, made of a text: so that a test can say the same thing in every protocol.

use serde_json::{Value, json};

/// The key of the run in these tests.
pub const KEY: &str = "NONCE-CANARY";

/// A control word as a model has to say it.
pub fn keyed(word: &str) -> String {
    format!("<landfall key=\"{KEY}\">{word}</landfall>")
}

/// Where a text can stand in the output of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// The agent's own words.
    Said,
    /// What a tool gave back: a file that was read, the output of a command.
    ToolOutput,
    /// What a tool was given: a file to write, a command.
    ToolInput,
    /// What the model thinks before it answers.
    Thought,
    /// The prompt, played back.
    Prompt,
}

pub const EVERYWHERE: [Where; 5] =
    [Where::Said, Where::ToolOutput, Where::ToolInput, Where::Thought, Where::Prompt];

/// What comes before anything else.
pub fn opening(kind: &str) -> Vec<u8> {
    match kind {
        "acp" => line(&json!({"bridge": "prompted"})),
        _ => Vec::new(),
    }
}

/// The events in which the agent has this text there; none when its protocol has no such place.
pub fn events(kind: &str, place: Where, text: &str) -> Option<Vec<u8>> {
    let events = match kind {
        "command" | "script" => match place {
            Where::Said => return Some(format!("{text}\n").into_bytes()),
            Where::ToolOutput | Where::ToolInput | Where::Thought | Where::Prompt => return None,
        },
        "claude" => claude(place, text),
        "codex" => codex(place, text)?,
        "gemini" => gemini(place, text)?,
        "opencode" => opencode(place, text)?,
        "acp" => acp(place, text)?,
        _ => return None,
    };
    Some(events.iter().flat_map(line).collect())
}

/// The agent's own words: the whole output.
pub fn said(kind: &str, text: &str) -> Option<Vec<u8>> {
    Some([opening(kind), events(kind, Where::Said, text)?].concat())
}

fn line(event: &Value) -> Vec<u8> {
    format!("{event}\n").into_bytes()
}

fn claude(place: Where, text: &str) -> Vec<Value> {
    let assistant = |id: &str, block: Value| {
        json!({"type": "assistant", "parent_tool_use_id": null, "session_id": "s1", "message": {
            "id": id, "role": "assistant", "model": "m", "content": [block], "usage": {"input_tokens": 1, "output_tokens": 1},
        }})
    };
    let user = |content: Value| json!({"type": "user", "parent_tool_use_id": null, "message": {"role": "user", "content": content}});
    match place {
        Where::Said => vec![assistant("a1", json!({"type": "text", "text": text}))],
        Where::Thought => vec![assistant("a1", json!({"type": "thinking", "thinking": text}))],
        Where::Prompt => vec![user(json!(text)), user(json!([{"type": "text", "text": text}]))],
        Where::ToolInput => vec![
            assistant(
                "a1",
                json!({"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a", "content": text}}),
            ),
            user(json!([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}])),
        ],
        Where::ToolOutput => vec![
            assistant(
                "a1",
                json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat a"}}),
            ),
            json!({"type": "user", "parent_tool_use_id": null, "tool_use_result": {"stdout": text, "stderr": text},
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]}}),
            // A helper of the agent says it to the agent.
            json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "a2", "content": [{"type": "text", "text": text}]}}),
        ],
    }
}

fn codex(place: Where, text: &str) -> Option<Vec<Value>> {
    let item = |phase: &str, item: Value| json!({"type": phase, "item": item});
    let shell = |command: &str, output: &str| json!({"id": "i1", "type": "command_execution", "command": command, "aggregated_output": output, "exit_code": 0, "status": "completed"});
    Some(match place {
        Where::Said => {
            vec![item("item.completed", json!({"id": "i1", "type": "agent_message", "text": text}))]
        }
        Where::Thought => vec![
            item("item.completed", json!({"id": "i1", "type": "reasoning", "text": text})),
            item(
                "item.completed",
                json!({"id": "i2", "type": "todo_list", "items": [{"text": text, "completed": false}]}),
            ),
        ],
        Where::Prompt => return None,
        Where::ToolInput => {
            vec![item("item.started", shell(text, "")), item("item.completed", shell(text, ""))]
        }
        Where::ToolOutput => vec![
            item("item.started", shell("cat a", "")),
            item("item.updated", shell("cat a", text)),
            item("item.completed", shell("cat a", text)),
            item(
                "item.completed",
                json!({"id": "i3", "type": "mcp_tool_call", "server": "s", "tool": "t",
                "arguments": {}, "result": {"content": [{"type": "text", "text": text}]}, "error": null, "status": "completed"}),
            ),
        ],
    })
}

fn gemini(place: Where, text: &str) -> Option<Vec<Value>> {
    let tool = |input: &str, output: &str| {
        vec![
            json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1", "parameters": {"command": input}}),
            json!({"type": "tool_result", "tool_id": "t1", "status": "success", "output": output}),
        ]
    };
    Some(match place {
        Where::Said => {
            let half = text.floor_char_boundary(text.len() / 2);
            let delta =
                |text: &str| json!({"type": "message", "role": "assistant", "content": text, "delta": true});
            vec![delta(&text[..half]), delta(&text[half..])]
        }
        Where::Prompt => vec![json!({"type": "message", "role": "user", "content": text})],
        Where::Thought => return None,
        Where::ToolInput => tool(text, ""),
        Where::ToolOutput => tool("cat a", text),
    })
}

fn opencode(place: Where, text: &str) -> Option<Vec<Value>> {
    let part = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s1", "part": part});
    let tool = |input: &str, output: &str| {
        vec![part(
            "tool_use",
            json!({"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed",
            "input": {"command": input}, "output": output, "metadata": {"output": output, "exit": 0}}}),
        )]
    };
    Some(match place {
        Where::Said => vec![part("text", json!({"type": "text", "text": text}))],
        Where::Thought => vec![part("reasoning", json!({"type": "reasoning", "text": text}))],
        Where::Prompt => return None,
        Where::ToolInput => tool(text, ""),
        Where::ToolOutput => tool("cat a", text),
    })
}

fn acp(place: Where, text: &str) -> Option<Vec<Value>> {
    let update = |update: Value| json!({"acp": {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": update}}});
    let content = json!({"type": "text", "text": text});
    Some(match place {
        Where::Said => vec![
            update(json!({"sessionUpdate": "agent_message_chunk", "content": content})),
            // The next thing ends the message.
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "t9", "title": "ls", "kind": "execute", "status": "completed"}),
            ),
        ],
        Where::Thought => vec![update(json!({"sessionUpdate": "agent_thought_chunk", "content": content}))],
        Where::Prompt => vec![update(json!({"sessionUpdate": "user_message_chunk", "content": content}))],
        Where::ToolInput => {
            vec![update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "write", "kind": "edit",
            "status": "completed", "rawInput": {"content": text}}),
            )]
        }
        Where::ToolOutput => vec![
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "cat a", "kind": "execute", "status": "in_progress"}),
            ),
            update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed",
                "content": [{"type": "content", "content": content}], "rawOutput": text})),
        ],
    })
}
