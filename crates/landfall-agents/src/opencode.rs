//! Kind `opencode`: `opencode run` with a stream of JSON events.
//!
//! What surprises: there is no closing event, so a run is over when its last step stopped by itself; nothing is said
//! while it tries again; figures come with each step; it has no limit of turns.

use landfall_model::{AgentFinish, AgentUsage, Signal};
use serde_json::{Map, Value, json};

use crate::agent::{
    Agent, AgentRequirements, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest, OutputParser,
    ParserContext,
};
use crate::json::{
    AgentProtocol, EventRecognition, JsonLines, count_or_zero, describe_tool_input, micro_usd, text_or_empty,
    timestamp_from_seconds, truncate_text as shorten,
};
use crate::mcp;
use crate::provider::classify_http_status;
use crate::voice::MessageParser;

/// The adapter.
pub(crate) struct Opencode;

const PROGRAM: &str = "opencode";

const ENV: [(&str, &str); 1] = [("OPENCODE_DISABLE_AUTOUPDATE", "1")];

/// The variable that holds settings which go over those in files.
const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

impl Agent for Opencode {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        profile.program_words(PROGRAM).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        let profile = &brief.profile;
        self.check_profile(profile)?;
        let mut argv = profile.program_words(PROGRAM)?;
        argv.extend(["run", "--format", "json", "--auto"].map(str::to_owned));
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        if let Some(model) = &profile.model {
            option("--model", model.clone());
        }
        if let Some(effort) = &profile.effort {
            option("--variant", effort.clone());
        }
        if let Some(session) = &brief.resume {
            option("--session", session.clone());
        }
        argv.extend(profile.flags.iter().cloned());
        let mut env = brief.env_after(&ENV);
        env.push((CONFIG.into(), build_config(brief).into()));
        Ok(LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env,
            stdin: Some(brief.prompt_file.clone()),
            files: Vec::new(),
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(JsonLines::new(OpencodeEvents::new(ear)))
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        let place = |variable: &str, usual: &str| match profile.env.get(variable) {
            Some(folder) => format!("{folder}/opencode"),
            None => format!("~/{usual}/opencode"),
        };
        AgentRequirements {
            program: profile.program_name(PROGRAM),
            version_args: &["--version"],
            install: "npm install -g opencode-ai",
            login: "run `opencode auth login`, or export the key of the provider and name it in `pass_env` of the profile",
            state: vec![
                place("XDG_DATA_HOME", ".local/share"),
                place("XDG_CONFIG_HOME", ".config"),
                place("XDG_CACHE_HOME", ".cache"),
                place("XDG_STATE_HOME", ".local/state"),
            ],
            terminal: false,
        }
    }

    fn calls_model(&self) -> bool {
        true
    }

    fn has_closing_message(&self) -> bool {
        true
    }
}

/// Our settings, and over them what the profile says in the same variable.
fn build_config(brief: &LaunchRequest) -> String {
    let mut config = json!({"autoupdate": false, "share": "disabled"});
    if let Some(program) = mcp::mcp_program(brief) {
        let command: Vec<&str> = std::iter::once(program).chain(mcp::ARGS).collect();
        // It fills in `{env:NAME}` itself, so the key stands in no value.
        let env: Map<String, Value> =
            mcp::ENV.iter().map(|name| ((*name).to_owned(), json!(format!("{{env:{name}}}")))).collect();
        config["mcp"] =
            json!({mcp::NAME: {"type": "local", "command": command, "environment": env, "enabled": true}});
    }
    match brief.profile.env.get(CONFIG) {
        None => config.to_string(),
        Some(theirs) => match serde_json::from_str(theirs) {
            Ok(theirs @ Value::Object(_)) => {
                merge_json(&mut config, theirs);
                config.to_string()
            }
            // It may have comments, which are none of our business.
            Ok(_) | Err(_) => theirs.clone(),
        },
    }
}

fn merge_json(ours: &mut Value, theirs: Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                merge_json(ours.entry(key).or_insert(Value::Null), value);
            }
        }
        (ours, theirs) => *ours = theirs,
    }
}

struct OpencodeEvents {
    voice: MessageParser,
    resumed: bool,
    started: bool,
    micro_usd: u64,
    last_words: String,
    /// How the run ended, if this is the end.
    closing: Option<(AgentFinish, String)>,
}

impl OpencodeEvents {
    fn new(ear: &ParserContext) -> Self {
        Self {
            voice: MessageParser::new(&ear.nonce),
            resumed: ear.resumed,
            started: false,
            micro_usd: 0,
            last_words: String::new(),
            closing: None,
        }
    }

    fn handle_step(&mut self, part: &Value, signals: &mut Vec<Signal>) {
        let tokens = &part["tokens"];
        let cached = count_or_zero(&tokens["cache"]["read"]);
        let tokens_in = count_or_zero(&tokens["input"])
            .saturating_add(count_or_zero(&tokens["cache"]["write"]))
            .saturating_add(cached);
        signals.push(Signal::Usage(AgentUsage {
            tokens_in,
            tokens_cached: cached,
            tokens_out: count_or_zero(&tokens["output"]).saturating_add(count_or_zero(&tokens["reasoning"])),
            turns: 1,
            ..AgentUsage::default()
        }));
        // 0 is also what it says of a model whose price it does not know: then the table of prices has to say it.
        self.micro_usd = self.micro_usd.saturating_add(micro_usd(&part["cost"]));
        if self.micro_usd > 0 {
            signals.push(Signal::Cost(self.micro_usd));
        }
        let how = match text_or_empty(&part["reason"]) {
            "stop" | "end_turn" => AgentFinish::Success,
            "length" => AgentFinish::Limit,
            "tool-calls" => return, // it goes on
            _ => AgentFinish::Error,
        };
        self.closing = Some((how, self.last_words.clone()));
    }

    fn handle_error(&mut self, error: &Value, signals: &mut Vec<Signal>) {
        let data = &error["data"];
        let name = text_or_empty(&error["name"]);
        let message = match text_or_empty(&data["message"]) {
            "" => name,
            message => message,
        };
        let how = match name {
            "MessageAbortedError" => AgentFinish::Interrupted,
            "MessageOutputLengthError" => AgentFinish::Limit,
            _ => AgentFinish::Error,
        };
        if how == AgentFinish::Error {
            signals.extend(classify_error(name, data, shorten(message)));
        }
        self.closing = Some((how, message.to_owned()));
    }
}

impl AgentProtocol for OpencodeEvents {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        if let Some(session) = event["sessionID"].as_str().filter(|_| !self.started) {
            self.started = true;
            signals.push(Signal::Started { session: Some(session.to_owned()), model: None });
        }
        let part = &event["part"];
        match text_or_empty(&event["type"]) {
            "step_start" => self.closing = None,
            "text" => {
                let text = text_or_empty(&part["text"]);
                self.last_words = text.to_owned();
                self.voice.push_message(text, signals);
            }
            "tool_use" => {
                // It is told when it is over.
                let name = shorten(text_or_empty(&part["tool"]));
                signals.push(Signal::ToolUse { name, detail: describe_tool_input(&part["state"]["input"]) });
                signals.push(Signal::ToolDone);
            }
            "step_finish" => self.handle_step(part, signals),
            "error" => self.handle_error(&event["error"], signals),
            "reasoning" => {}
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_stderr_line(&mut self, line: &str, signals: &mut Vec<Signal>) {
        // The line is coloured.
        if self.resumed && !self.started && line.contains("Error:") && line.ends_with("Session not found") {
            self.started = true; // said once is enough
            signals.push(Signal::SessionGone);
        }
    }

    fn end_stream(&mut self, signals: &mut Vec<Signal>) {
        if let Some((how, text)) = self.closing.take() {
            signals.push(Signal::Finished { how, text });
        }
    }
}

/// What an error means, by its name, the status, and what the provider answered.
fn classify_error(name: &str, data: &Value, detail: String) -> Option<Signal> {
    if name == "ProviderAuthError" {
        return Some(Signal::Unauthorized { detail });
    }
    if name != "APIError" {
        return None;
    }
    let headers = &data["responseHeaders"];
    if text_or_empty(&headers["anthropic-ratelimit-unified-status"]) == "rejected" {
        let reset = text_or_empty(&headers["anthropic-ratelimit-unified-reset"]).parse::<u64>();
        return Some(Signal::Quota {
            until: reset.ok().and_then(|reset| timestamp_from_seconds(&json!(reset))),
        });
    }
    let body: Value = serde_json::from_str(text_or_empty(&data["responseBody"])).unwrap_or_default();
    let (kind, code) = (text_or_empty(&body["error"]["type"]), text_or_empty(&body["error"]["code"]));
    if kind == "usage_limit_reached" {
        return Some(Signal::Quota { until: timestamp_from_seconds(&body["error"]["resets_at"]) });
    }
    if kind == "insufficient_quota" || code == "insufficient_quota" {
        return Some(Signal::Unauthorized { detail }); // a matter of money, not of time
    }
    match data["statusCode"].as_u64() {
        Some(status) => classify_http_status(status, detail),
        // The connection broke before there was an answer.
        None => data["isRetryable"].as_bool().unwrap_or(false).then_some(Signal::Transient { detail }),
    }
}
