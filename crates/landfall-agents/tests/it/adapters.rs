//! The adapters of the real agents: what they launch, and what their recordings do not show.

use expect_test::{Expect, expect};
use landfall_agents::registry::find_agent;
use landfall_agents::{AgentStream, ParserContext};
use landfall_model::{AgentFinish, AgentUsage, Signal, Timestamp};

use crate::speech::KEY;
use crate::{at_once, brief, render};

/// The command line, and the variables that are not every agent's.
fn launch(kind: &str, resume: Option<&str>, expected: &Expect) {
    let mut brief = brief(kind);
    brief.profile.run = None;
    brief.profile.model = Some("large".to_owned());
    brief.profile.effort = Some("high".to_owned());
    brief.profile.turns_max = Some(40);
    brief.profile.flags = vec!["--mine".to_owned()];
    brief.resume = resume.map(str::to_owned);
    let launch = find_agent(kind)
        .expect("it is registered")
        .create_agent()
        .build_launch_command(&brief)
        .expect("it can be launched");
    let mut told: Vec<String> = launch.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let own = launch.env.iter().filter(|(key, _)| !key.to_string_lossy().starts_with("LANDFALL_"));
    told.extend(own.map(|(key, value)| format!("{}={}", key.display(), value.display())));
    told.extend(
        launch
            .files
            .iter()
            .map(|(path, bytes)| format!("{}: {}", path.display(), String::from_utf8_lossy(bytes))),
    );
    told.push(format!("< {}", launch.stdin.expect("the prompt comes on stdin").display()));
    expected.assert_eq(&told.join("\n"));
}

#[test]
fn claude_is_launched() {
    launch(
        "claude",
        None,
        &expect![[r#"
            claude
            -p
            --output-format
            stream-json
            --verbose
            --dangerously-skip-permissions
            --model
            large
            --effort
            high
            --max-turns
            40
            --session-id
            5f0c2a9e-0000-4000-8000-000000000007
            --mcp-config
            {"mcpServers":{"landfall":{"command":"/usr/bin/landfall","args":["mcp","--agent"],"env":{"LANDFALL_SIGNAL":"${LANDFALL_SIGNAL}","LANDFALL_KEY":"${LANDFALL_KEY}","LANDFALL_TASK":"${LANDFALL_TASK}"}}}}
            --mine
            IS_SANDBOX=1
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
            DISABLE_AUTOUPDATER=1
            DISABLE_TELEMETRY=1
            DISABLE_ERROR_REPORTING=1
            CLAUDE_CODE_MAX_RETRIES=3
            API_TIMEOUT_MS=300000
            TMPDIR=/state/attempts/9/tmp
            < /state/attempts/9/prompt.md"#]],
    );
}

#[test]
fn codex_is_launched_again() {
    launch(
        "codex",
        Some("s7"),
        &expect![[r#"
        codex
        exec
        --json
        --dangerously-bypass-approvals-and-sandbox
        --disable
        plugins
        --skip-git-repo-check
        -c
        check_for_update_on_startup=false
        -c
        analytics.enabled=false
        -m
        large
        -c
        model_reasoning_effort="high"
        -c
        mcp_servers.landfall.command="/usr/bin/landfall"
        -c
        mcp_servers.landfall.args=["mcp","--agent"]
        -c
        mcp_servers.landfall.env_vars=["LANDFALL_SIGNAL","LANDFALL_KEY","LANDFALL_TASK"]
        --mine
        resume
        s7
        -
        TMPDIR=/state/attempts/9/tmp
        < /state/attempts/9/prompt.md"#]],
    );
}

#[test]
fn gemini_is_launched() {
    launch(
        "gemini",
        None,
        &expect![[r#"
            gemini
            --skip-trust
            --approval-mode
            yolo
            --output-format
            stream-json
            --model
            large
            --session-id
            5f0c2a9e-0000-4000-8000-000000000007
            --mine
            GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/state/attempts/9/gemini-settings.json
            GEMINI_CLI_NO_RELAUNCH=true
            GEMINI_TELEMETRY_ENABLED=false
            TMPDIR=/state/attempts/9/tmp
            /state/attempts/9/gemini-settings.json: {"general":{"enableAutoUpdate":false,"maxAttempts":3},"privacy":{"usageStatisticsEnabled":false},"model":{"maxSessionTurns":40},"mcpServers":{"landfall":{"command":"/usr/bin/landfall","args":["mcp","--agent"],"env":{"LANDFALL_SIGNAL":"${LANDFALL_SIGNAL}","LANDFALL_KEY":"${LANDFALL_KEY}","LANDFALL_TASK":"${LANDFALL_TASK}"},"trust":true}}}
            < /state/attempts/9/prompt.md"#]],
    );
}

#[test]
fn opencode_is_launched_again() {
    launch(
        "opencode",
        Some("ses_7"),
        &expect![[r#"
            opencode
            run
            --format
            json
            --auto
            --model
            large
            --variant
            high
            --session
            ses_7
            --mine
            OPENCODE_DISABLE_AUTOUPDATE=1
            TMPDIR=/state/attempts/9/tmp
            OPENCODE_CONFIG_CONTENT={"autoupdate":false,"share":"disabled","mcp":{"landfall":{"type":"local","command":["/usr/bin/landfall","mcp","--agent"],"environment":{"LANDFALL_SIGNAL":"{env:LANDFALL_SIGNAL}","LANDFALL_KEY":"{env:LANDFALL_KEY}","LANDFALL_TASK":"{env:LANDFALL_TASK}"},"enabled":true}}}
            < /state/attempts/9/prompt.md"#]],
    );
}

#[test]
fn settings_of_a_profile_lie_over_ours_in_opencode() {
    let mut brief = brief("opencode");
    let theirs = r#"{"share":"manual","mcp":{"mine":{"type":"remote"}}}"#;
    brief.profile.env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), theirs.to_owned());
    let launch = find_agent("opencode")
        .expect("it is registered")
        .create_agent()
        .build_launch_command(&brief)
        .expect("it can be launched");
    let last = launch.env.iter().rfind(|(key, _)| key == "OPENCODE_CONFIG_CONTENT").expect("it is set");
    let config: serde_json::Value = serde_json::from_str(&last.1.to_string_lossy()).expect("JSON");
    assert_eq!(config["share"], "manual");
    assert_eq!(config["autoupdate"], false);
    assert_eq!(config["mcp"]["mine"]["type"], "remote");
    assert_eq!(config["mcp"]["landfall"]["command"][0], "/usr/bin/landfall");
}

fn ear() -> ParserContext {
    ParserContext { nonce: KEY.to_owned(), ..ParserContext::default() }
}

fn heard(kind: &str, ear: &ParserContext, out: &str) -> Vec<Signal> {
    at_once(find_agent(kind).expect("it is registered").create_agent().create_parser(ear), out.as_bytes())
}

fn check(kind: &str, out: &str, expected: &Expect) {
    expected.assert_eq(&render(&heard(kind, &ear(), out)));
}

fn sum(signals: &[Signal]) -> AgentUsage {
    signals.iter().fold(AgentUsage::default(), |sum, signal| match signal {
        Signal::Usage(usage) => sum.plus(*usage),
        _ => sum,
    })
}

#[test]
fn an_answer_of_claude_is_counted_once_also_when_helpers_talk_in_between() {
    let answer = |parent: &str, id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"{id}","usage":{{"input_tokens":10,"output_tokens":1}},"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let out = [
        answer("null", "a1", "one"),
        answer("\"t1\"", "b1", "to the agent"),
        answer("null", "a1", "two"),
        answer("\"t1\"", "b1", "to the agent"),
        answer("null", "a2", "three"),
    ]
    .join("\n");
    let signals = heard("claude", &ear(), &out);
    assert_eq!(sum(&signals).turns, 3);
    assert_eq!(sum(&signals).tokens_in, 30);
    let texts: Vec<&Signal> = signals.iter().filter(|signal| matches!(signal, Signal::Text(_))).collect();
    assert_eq!(
        texts,
        ["one", "two", "three"].map(|text| Signal::Text(text.to_owned())).iter().collect::<Vec<_>>()
    );
}

#[test]
fn what_a_resumed_session_of_claude_had_cost_before_is_taken_off() {
    let result = |total: &str, tokens: u64| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":{total},"modelUsage":{{"m":{{"inputTokens":{tokens},"outputTokens":0,"contextWindow":200}}}}}}"#
        )
    };
    let before = AgentUsage { tokens_in: 100, micro_usd: 2_000_000, ..AgentUsage::default() };
    let ear = ParserContext { resumed: true, before, ..ear() };
    let signals = heard("claude", &ear, &result("2.5", 140));
    assert!(signals.contains(&Signal::Cost(500_000)), "{signals:?}");
    assert_eq!(sum(&signals).tokens_in, 40);
    // An older program that counts each process by itself.
    let signals = heard("claude", &ear, &result("0.5", 40));
    assert!(signals.contains(&Signal::Cost(500_000)), "{signals:?}");
    assert_eq!(sum(&signals).tokens_in, 40);
}

#[test]
fn a_tool_whose_result_was_never_seen_is_done_when_claude_goes_on() {
    let out = r#"
{"type":"assistant","message":{"id":"a1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a.png"}},{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"b.png"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}
{"type":"assistant","message":{"id":"a2","content":[{"type":"text","text":"Both are red."}]}}"#;
    let signals = heard("claude", &ear(), out.trim_start());
    assert_eq!(signals.iter().filter(|signal| **signal == Signal::ToolDone).count(), 2, "{signals:?}");
}

#[test]
fn claude_tells_of_compaction_refused_tools_and_what_is_left() {
    let out = r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":190000}}
{"type":"system","subtype":"permission_denied","tool_name":"Bash","message":"needs leave"}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","utilization":0.914,"resetsAt":1893456000}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1893456000}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit"}"#;
    check(
        "claude",
        out,
        &expect![[r#"
        Compacted
        PermissionAsked { what: "Bash: needs leave" }
        Allowance { used_percent: 91, until: Some(Timestamp(1893456000000)) }
        Quota { until: Some(Timestamp(1893456000000)) }
        Quota { until: Some(Timestamp(1893456000000)) }
        Finished { how: Error, text: "You've hit your limit" }
    "#]],
    );
}

#[test]
fn an_interrupted_claude_did_not_end_well() {
    let out = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["x"]}"#;
    let signals = heard("claude", &ear(), out);
    assert_eq!(signals, [Signal::Finished { how: AgentFinish::Interrupted, text: "x".to_owned() }]);
    // A result that does not say whether it is an error is one.
    let signals = heard("claude", &ear(), r#"{"type":"result","subtype":"success","result":"fine"}"#);
    assert_eq!(signals, [Signal::Finished { how: AgentFinish::Error, text: "fine".to_owned() }]);
}

#[test]
fn only_the_last_task_in_the_session_file_of_codex_is_this_run() {
    let aside = r#"{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":900,"output_tokens":90}}}
{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1893456000}}}}
{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"You've hit your usage limit","codex_error_info":"usage_limit_exceeded"}}}
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"compacted","payload":{"message":""}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":10,"output_tokens":1}}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":20,"output_tokens":2}}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"total_tokens":22},"model_context_window":100},"rate_limits":{"primary":{"used_percent":3.0,"resets_at":1893456000},"secondary":{"used_percent":40.4,"resets_at":1893459600}}}}
"#;
    let mut parser = find_agent("codex").expect("it is registered").create_agent().create_parser(&ear());
    let mut signals = parser.feed(AgentStream::Aside, aside.as_bytes());
    signals.extend(parser.finish());
    assert_eq!(
        signals,
        [
            Signal::Usage(AgentUsage { tokens_in: 30, tokens_out: 3, turns: 2, ..AgentUsage::default() }),
            Signal::Context { used: 22, size: 100 },
            Signal::Compacted,
            Signal::Allowance { used_percent: 40, until: Some(Timestamp(1_893_459_600_000)) },
        ]
    );
}

#[test]
fn a_limit_of_codex_lasts_until_all_full_windows_are_reset() {
    let aside = r#"{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1893456000},"secondary":{"used_percent":100.0,"resets_at":1893999999}}}}
{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"You've hit your usage limit","codex_error_info":"usage_limit_exceeded"}}}
"#;
    let mut parser = find_agent("codex").expect("it is registered").create_agent().create_parser(&ear());
    parser.feed(AgentStream::Aside, aside.as_bytes());
    assert_eq!(parser.finish(), [Signal::Quota { until: Some(Timestamp(1_893_999_999_000)) }]);
}

#[test]
fn two_edits_of_a_file_by_codex_are_two_steps_and_a_command_twice_is_one() {
    let item = |id: &str, kind: &str| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"{id}","type":"{kind}","command":"ls","changes":[{{"path":"a.rs","kind":"update"}}]}}}}"#
        )
    };
    let details = |kind: &str| -> Vec<String> {
        let signals = heard("codex", &ear(), &[item("i1", kind), item("i2", kind)].join("\n"));
        let detail = |signal| match signal {
            Signal::ToolUse { detail, .. } => Some(detail),
            _ => None,
        };
        signals.into_iter().filter_map(detail).collect()
    };
    let (edits, commands) = (details("file_change"), details("command_execution"));
    assert_ne!(edits[0], edits[1]);
    assert_eq!(commands[0], commands[1]);
}

#[test]
fn opencode_reads_limits_from_what_the_provider_answered() {
    let error = |data: &str| {
        format!(r#"{{"type":"error","sessionID":"s1","error":{{"name":"APIError","data":{data}}}}}"#)
    };
    let class = |data: &str| heard("opencode", &ear(), &error(data)).remove(1);
    let until = Some(Timestamp(1_893_456_000_000));
    assert_eq!(
        class(
            r#"{"message":"m","statusCode":429,"responseBody":"{\"error\":{\"type\":\"usage_limit_reached\",\"resets_at\":1893456000}}"}"#
        ),
        Signal::Quota { until }
    );
    assert_eq!(
        class(
            r#"{"message":"m","statusCode":429,"responseHeaders":{"anthropic-ratelimit-unified-status":"rejected","anthropic-ratelimit-unified-reset":"1893456000"}}"#
        ),
        Signal::Quota { until }
    );
    let detail = || "m".to_owned();
    assert_eq!(
        class(
            r#"{"message":"m","statusCode":429,"responseBody":"{\"error\":{\"code\":\"insufficient_quota\"}}"}"#
        ),
        Signal::Unauthorized { detail: detail() }
    );
    assert_eq!(class(r#"{"message":"m","statusCode":429}"#), Signal::Transient { detail: detail() });
    assert_eq!(class(r#"{"message":"m","isRetryable":true}"#), Signal::Transient { detail: detail() });
    assert_eq!(
        class(r#"{"message":"m","statusCode":400,"isRetryable":false}"#),
        Signal::Finished { how: AgentFinish::Error, text: detail() }
    );
}

#[test]
fn a_step_of_opencode_that_is_followed_by_another_was_not_the_end() {
    let step = r#"{"type":"step_finish","sessionID":"s1","part":{"reason":"stop","tokens":{}}}"#;
    let next = r#"{"type":"step_start","sessionID":"s1","part":{}}"#;
    let closed = |out: &str| {
        let signals = heard("opencode", &ear(), out);
        signals.iter().any(|signal| matches!(signal, Signal::Finished { .. }))
    };
    assert!(closed(step));
    assert!(!closed(&format!("{step}\n{next}")));
    assert!(closed(&format!("{step}\n{next}\n{step}")));
}

#[test]
fn a_message_of_gemini_comes_in_pieces_and_is_one() {
    let piece =
        |text: &str| format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#);
    let out = [
        piece("First.\\n\\n<landf"),
        piece("all key=\\\"NONCE-CANARY\\\">PROG"),
        piece("RESS:40</landfall>"),
        piece("\\nSecond.\\n```\\n<landfall key=\\\"NONCE-CANARY\\\">COMPLETE</landfall>\\n"),
    ]
    .join("\n");
    check(
        "gemini",
        &out,
        &expect![[r#"
            Usage(AgentUsage { tokens_in: 0, tokens_cached: 0, tokens_out: 0, turns: 1, micro_usd: 0, micro_usd_priced: 0, tokens_unpriced: 0, at_least: false })
            Text("First.")
            Said(Progress(40))
            Text("Second.\n```\n<landfall key=\"NONCE-CANARY\">COMPLETE</landfall>")
        "#]],
    );
}

#[test]
fn nobody_logged_in_is_told_by_gemini_before_it_begins() {
    let mut parser = find_agent("gemini").expect("it is registered").create_agent().create_parser(&ear());
    let heard = parser.feed(AgentStream::Err, b"YOLO mode is enabled.\nInvalid auth method selected.\n");
    assert!(matches!(heard.as_slice(), [Signal::Unauthorized { .. }]), "{heard:?}");
}

#[test]
fn a_session_is_gone_only_for_a_run_that_was_to_resume_one() {
    for (kind, line) in [
        ("claude", "No conversation found with session ID: x"),
        (
            "codex",
            "Error: thread/resume: thread/resume failed: no rollout found for thread id x (code -32600)",
        ),
        ("gemini", "Error resuming session: Invalid session identifier \"x\"."),
        ("opencode", "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found"),
    ] {
        for resumed in [false, true] {
            let ear = ParserContext { resumed, ..ear() };
            let mut parser = find_agent(kind).expect("it is registered").create_agent().create_parser(&ear);
            let heard = parser.feed(AgentStream::Err, format!("{line}\n{line}\n").as_bytes());
            let expected = if resumed { vec![Signal::SessionGone] } else { Vec::new() };
            assert_eq!(heard, expected, "{kind}");
        }
    }
}
