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
    AgentProtocol, EventRecognition, JsonLines, brief as shorten, count, detail, micro_usd, moment, words,
};
use crate::mcp;
use crate::provider::trouble;
use crate::voice::MessageParser;

/// The adapter.
pub(crate) struct Opencode;

const PROGRAM: &str = "opencode";

const ENV: [(&str, &str); 1] = [("OPENCODE_DISABLE_AUTOUPDATE", "1")];

/// The variable that holds settings which go over those in files.
const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

impl Agent for Opencode {
    fn check(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        profile.program_words(PROGRAM).map(drop)
    }

    fn launch(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        let profile = &brief.profile;
        self.check(profile)?;
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
        env.push((CONFIG.into(), config(brief).into()));
        Ok(LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env,
            stdin: Some(brief.prompt_file.clone()),
            files: Vec::new(),
        })
    }

    fn parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(JsonLines::new(OpencodeEvents::new(ear)))
    }

    fn needs(&self, profile: &LaunchProfile) -> AgentRequirements {
        let place = |variable: &str, usual: &str| match profile.env.get(variable) {
            Some(folder) => format!("{folder}/opencode"),
            None => format!("~/{usual}/opencode"),
        };
        AgentRequirements {
            program: profile.program(PROGRAM),
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

    fn closes(&self) -> bool {
        true
    }
}

/// Our settings, and over them what the profile says in the same variable.
fn config(brief: &LaunchRequest) -> String {
    let mut config = json!({"autoupdate": false, "share": "disabled"});
    if let Some(program) = mcp::program(brief) {
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
                lay_over(&mut config, theirs);
                config.to_string()
            }
            // It may have comments, which are none of our business.
            Ok(_) | Err(_) => theirs.clone(),
        },
    }
}

fn lay_over(ours: &mut Value, theirs: Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                lay_over(ours.entry(key).or_insert(Value::Null), value);
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

    fn step(&mut self, part: &Value, signals: &mut Vec<Signal>) {
        let tokens = &part["tokens"];
        let cached = count(&tokens["cache"]["read"]);
        let tokens_in =
            count(&tokens["input"]).saturating_add(count(&tokens["cache"]["write"])).saturating_add(cached);
        signals.push(Signal::Usage(AgentUsage {
            tokens_in,
            tokens_cached: cached,
            tokens_out: count(&tokens["output"]).saturating_add(count(&tokens["reasoning"])),
            turns: 1,
            ..AgentUsage::default()
        }));
        // 0 is also what it says of a model whose price it does not know: then the table of prices has to say it.
        self.micro_usd = self.micro_usd.saturating_add(micro_usd(&part["cost"]));
        if self.micro_usd > 0 {
            signals.push(Signal::Cost(self.micro_usd));
        }
        let how = match words(&part["reason"]) {
            "stop" | "end_turn" => AgentFinish::Success,
            "length" => AgentFinish::Limit,
            "tool-calls" => return, // it goes on
            _ => AgentFinish::Error,
        };
        self.closing = Some((how, self.last_words.clone()));
    }

    fn error(&mut self, error: &Value, signals: &mut Vec<Signal>) {
        let data = &error["data"];
        let name = words(&error["name"]);
        let message = match words(&data["message"]) {
            "" => name,
            message => message,
        };
        let how = match name {
            "MessageAbortedError" => AgentFinish::Interrupted,
            "MessageOutputLengthError" => AgentFinish::Limit,
            _ => AgentFinish::Error,
        };
        if how == AgentFinish::Error {
            signals.extend(meaning(name, data, shorten(message)));
        }
        self.closing = Some((how, message.to_owned()));
    }
}

impl AgentProtocol for OpencodeEvents {
    fn event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        if let Some(session) = event["sessionID"].as_str().filter(|_| !self.started) {
            self.started = true;
            signals.push(Signal::Started { session: Some(session.to_owned()), model: None });
        }
        let part = &event["part"];
        match words(&event["type"]) {
            "step_start" => self.closing = None,
            "text" => {
                let text = words(&part["text"]);
                self.last_words = text.to_owned();
                self.voice.message(text, signals);
            }
            "tool_use" => {
                // It is told when it is over.
                let name = shorten(words(&part["tool"]));
                signals.push(Signal::ToolUse { name, detail: detail(&part["state"]["input"]) });
                signals.push(Signal::ToolDone);
            }
            "step_finish" => self.step(part, signals),
            "error" => self.error(&event["error"], signals),
            "reasoning" => {}
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn complaint(&mut self, line: &str, signals: &mut Vec<Signal>) {
        // The line is coloured.
        if self.resumed && !self.started && line.contains("Error:") && line.ends_with("Session not found") {
            self.started = true; // said once is enough
            signals.push(Signal::SessionGone);
        }
    }

    fn end(&mut self, signals: &mut Vec<Signal>) {
        if let Some((how, text)) = self.closing.take() {
            signals.push(Signal::Finished { how, text });
        }
    }
}

/// What an error means, by its name, the status, and what the provider answered.
fn meaning(name: &str, data: &Value, detail: String) -> Option<Signal> {
    if name == "ProviderAuthError" {
        return Some(Signal::Unauthorized { detail });
    }
    if name != "APIError" {
        return None;
    }
    let headers = &data["responseHeaders"];
    if words(&headers["anthropic-ratelimit-unified-status"]) == "rejected" {
        let reset = words(&headers["anthropic-ratelimit-unified-reset"]).parse::<u64>();
        return Some(Signal::Quota { until: reset.ok().and_then(|reset| moment(&json!(reset))) });
    }
    let body: Value = serde_json::from_str(words(&data["responseBody"])).unwrap_or_default();
    let (kind, code) = (words(&body["error"]["type"]), words(&body["error"]["code"]));
    if kind == "usage_limit_reached" {
        return Some(Signal::Quota { until: moment(&body["error"]["resets_at"]) });
    }
    if kind == "insufficient_quota" || code == "insufficient_quota" {
        return Some(Signal::Unauthorized { detail }); // a matter of money, not of time
    }
    match data["statusCode"].as_u64() {
        Some(status) => trouble(status, detail),
        // The connection broke before there was an answer.
        None => data["isRetryable"].as_bool().unwrap_or(false).then_some(Signal::Transient { detail }),
    }
}
