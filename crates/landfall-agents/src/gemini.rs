//! Kind `gemini`: Gemini CLI without a terminal, with a stream of JSON events.
//!
//! What surprises: messages come in pieces; an error of the provider is a sentence with the provider's JSON inside;
//! "loop detected" ends a run as a success. A limit of turns and the MCP server can only be told by a file of
//! settings, which it takes from a place that nobody but root can write to, and silently leaves out otherwise.

use landfall_model::{AgentFinish, AgentUsage, Signal};
use serde_json::{Map, Value, json};

use crate::agent::{
    Agent, AgentRequirements, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest, OutputParser,
    ParserContext,
};
use crate::json::{
    AgentProtocol, EventRecognition, JsonLines, count_or_zero, describe_tool_input, text_or_empty,
    truncate_text as shorten,
};
use crate::mcp;
use crate::provider::classify_http_status;
use crate::voice::MessageParser;

/// The adapter.
pub(crate) struct Gemini;

const PROGRAM: &str = "gemini";

const ENV: [(&str, &str); 2] = [
    // Otherwise it starts itself once more, and signals reach the wrong process.
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
];

impl Agent for Gemini {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        profile.program_words(PROGRAM).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        let profile = &brief.profile;
        self.check_profile(profile)?;
        let mut argv = profile.program_words(PROGRAM)?;
        argv.extend(
            ["--skip-trust", "--approval-mode", "yolo", "--output-format", "stream-json"].map(str::to_owned),
        );
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        if let Some(model) = &profile.model {
            option("--model", model.clone());
        }
        match &brief.resume {
            Some(session) => option("--resume", session.clone()),
            None => option("--session-id", brief.session.clone()),
        }
        argv.extend(profile.flags.iter().cloned());
        let file = brief.attempt_dir.join("gemini-settings.json");
        // The place of defaults, not of rules: what a person or an administrator has set wins over it.
        let defaults = ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH".into(), file.clone().into_os_string());
        Ok(LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env: std::iter::once(defaults).chain(brief.env_after(&ENV)).collect(),
            stdin: Some(brief.prompt_file.clone()),
            files: vec![(file, build_settings(brief).to_string().into_bytes())],
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(JsonLines::new(GeminiEvents::new(ear)))
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: profile.program_name(PROGRAM),
            version_args: &["--version"],
            install: "npm install -g @google/gemini-cli",
            login: "run `gemini` once and log in, or export GEMINI_API_KEY and write `pass_env = [\"GEMINI_API_KEY\"]` in the profile",
            state: vec![match profile.env.get("GEMINI_CLI_HOME") {
                Some(home) => format!("{home}/.gemini"),
                None => "~/.gemini".to_owned(),
            }],
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

fn build_settings(brief: &LaunchRequest) -> Value {
    let mut settings = json!({
        "general": {
            "enableAutoUpdate": false,
            "maxAttempts": 3, // Landfall waits out a trouble of the provider
        },
        "privacy": {"usageStatisticsEnabled": false},
    });
    if let Some(turns) = brief.profile.turns_max {
        settings["model"] = json!({"maxSessionTurns": turns});
    }
    if let Some(program) = mcp::mcp_program(brief) {
        // It takes everything that looks like a secret from the environment of a server unless it is named here, and
        // fills in `${NAME}` itself.
        let env: Map<String, Value> =
            mcp::ENV.iter().map(|name| ((*name).to_owned(), json!(format!("${{{name}}}")))).collect();
        settings["mcpServers"] =
            json!({mcp::NAME: {"command": program, "args": mcp::ARGS, "env": env, "trust": true}});
    }
    settings
}

struct GeminiEvents {
    voice: MessageParser,
    resumed: bool,
    started: bool,
    /// Whether the model is in the middle of an answer: what follows the result of a tool is a new one.
    answering: bool,
    told: AgentUsage,
    /// The message that is being said, for the closing word.
    last_words: String,
    /// Whether it stopped itself.
    limit: bool,
}

/// Bytes kept of the last message for the closing word; all of it has been told as text.
const CLOSING_MAX: usize = 16 << 10;

impl GeminiEvents {
    fn new(ear: &ParserContext) -> Self {
        Self {
            voice: MessageParser::new(&ear.nonce),
            resumed: ear.resumed,
            started: false,
            answering: false,
            told: AgentUsage::default(),
            last_words: String::new(),
            limit: false,
        }
    }

    fn report_usage(&mut self, usage: AgentUsage, signals: &mut Vec<Signal>) {
        if usage != AgentUsage::default() {
            self.told = self.told.plus(usage);
            signals.push(Signal::Usage(usage));
        }
    }

    fn begin_answer(&mut self, signals: &mut Vec<Signal>) {
        if !self.answering {
            self.answering = true;
            self.last_words.clear();
            self.report_usage(AgentUsage { turns: 1, ..AgentUsage::default() }, signals);
        }
    }

    fn handle_message(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        if text_or_empty(&event["role"]) != "assistant" {
            return; // the prompt, played back
        }
        self.begin_answer(signals);
        let text = text_or_empty(&event["content"]);
        let room = CLOSING_MAX.saturating_sub(self.last_words.len());
        self.last_words.push_str(&text[..text.floor_char_boundary(room)]);
        self.voice.push_piece(text);
        if event["delta"].as_bool() != Some(true) {
            self.voice.end_message(signals);
        }
    }

    fn handle_result(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        let stats = &event["stats"];
        let (read, written) = (count_or_zero(&stats["input_tokens"]), count_or_zero(&stats["output_tokens"]));
        // Thoughts are in the total alone.
        let written = written.max(count_or_zero(&stats["total_tokens"]).saturating_sub(read));
        let run = AgentUsage {
            tokens_in: read,
            tokens_cached: count_or_zero(&stats["cached"]),
            tokens_out: written,
            ..AgentUsage::default()
        };
        self.report_usage(run.difference_from(self.told), signals);
        let error = &event["error"];
        let message = text_or_empty(&error["message"]);
        let how = match (text_or_empty(&event["status"]), text_or_empty(&error["type"])) {
            (_, "FatalTurnLimitedError") => AgentFinish::Limit,
            (_, "FatalCancellationError") => AgentFinish::Interrupted,
            ("success", _) if self.limit => AgentFinish::Limit,
            ("success", _) if error.is_null() => AgentFinish::Success,
            _ => AgentFinish::Error,
        };
        if how == AgentFinish::Error {
            signals.extend(classify_error(text_or_empty(&error["type"]), message));
        }
        let last_words = std::mem::take(&mut self.last_words);
        let text = if message.is_empty() { last_words } else { message.to_owned() };
        signals.push(Signal::Finished { how, text });
    }
}

impl AgentProtocol for GeminiEvents {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        let kind = text_or_empty(&event["type"]);
        if kind != "message" {
            self.voice.end_message(signals);
        }
        match kind {
            "init" => {
                self.started = true;
                signals.push(Signal::Started {
                    session: event["session_id"].as_str().map(str::to_owned),
                    model: event["model"].as_str().map(str::to_owned),
                });
            }
            "message" => self.handle_message(event, signals),
            "tool_use" => {
                self.begin_answer(signals);
                let name = shorten(text_or_empty(&event["tool_name"]));
                signals.push(Signal::ToolUse { name, detail: describe_tool_input(&event["parameters"]) });
            }
            "tool_result" => {
                self.answering = false;
                signals.push(Signal::ToolDone);
            }
            "error" => {
                let stopped = ["Loop detected, stopping execution", "Maximum session turns exceeded"];
                self.limit |= stopped.contains(&text_or_empty(&event["message"]));
                return EventRecognition::Status;
            }
            "result" => self.handle_result(event, signals),
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_stderr_line(&mut self, line: &str, signals: &mut Vec<Signal>) {
        if self.started {
            return;
        }
        let signal = if self.resumed && line.starts_with("Error resuming session:") {
            Signal::SessionGone
        } else if line.starts_with("Please set an Auth method") || line == "Invalid auth method selected." {
            Signal::Unauthorized { detail: shorten(line) }
        } else {
            return;
        };
        self.started = true; // said once is enough
        signals.push(signal);
    }

    fn end_stream(&mut self, signals: &mut Vec<Signal>) {
        self.voice.end_message(signals);
    }
}

/// What the error of a result means. The provider's own answer stands in it where it was not understood; what was
/// understood, a limit or an overload, is told by its text alone.
fn classify_error(kind: &str, message: &str) -> Option<Signal> {
    let detail = shorten(message);
    if kind.starts_with("FatalAuthentication") {
        return Some(Signal::Unauthorized { detail });
    }
    let api = message.strip_prefix("[API Error: ")?;
    if api.starts_with("You have exhausted your daily quota on this model.") {
        return Some(Signal::Quota { until: None });
    }
    // What follows the object is the program's own advice.
    let answer = serde_json::Deserializer::from_str(api).into_iter::<Value>().next().and_then(Result::ok);
    let Some(error) = answer.filter(Value::is_object).map(|answer| answer["error"].clone()) else {
        return Some(Signal::Transient { detail });
    };
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    if details.iter().any(|detail| text_or_empty(&detail["reason"]) == "API_KEY_INVALID") {
        return Some(Signal::Unauthorized { detail });
    }
    classify_http_status(count_or_zero(&error["code"]), detail)
}
