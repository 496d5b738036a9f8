//! Kind `claude`: Claude Code without a terminal, `claude -p`, with a stream of JSON events.
//!
//! What surprises: `result` says `"subtype":"success"` also when the provider failed, with `is_error` beside it; one
//! answer of the model comes as one event for each block, with the same usage in all of them; the totals of money and
//! tokens go over the whole session once it is resumed.

use std::collections::{BTreeSet, VecDeque};

use landfall_model::{AgentFinish, AgentUsage, Signal, Timestamp};
use serde_json::{Value, json};

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
pub(crate) struct Claude;

const PROGRAM: &str = "claude";

const ENV: [(&str, &str); 7] = [
    // It refuses to skip permissions as root unless it is told that it is confined. It is: by us.
    ("IS_SANDBOX", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    // Landfall waits out a trouble of the provider, and frees the slot meanwhile. The agent only gets over a hiccup.
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ("API_TIMEOUT_MS", "300000"),
];

impl Agent for Claude {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        profile.program_words(PROGRAM).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        let profile = &brief.profile;
        self.check_profile(profile)?;
        let mut argv = profile.program_words(PROGRAM)?;
        argv.extend(
            ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
                .map(str::to_owned),
        );
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        if let Some(model) = &profile.model {
            option("--model", model.clone());
        }
        if let Some(effort) = &profile.effort {
            option("--effort", effort.clone());
        }
        if let Some(turns) = profile.turns_max {
            option("--max-turns", turns.to_string());
        }
        match &brief.resume {
            Some(session) => option("--resume", session.clone()),
            None => option("--session-id", brief.session.clone()),
        }
        if let Some(program) = mcp::mcp_program(brief) {
            option("--mcp-config", mcp_config(program).to_string());
        }
        argv.extend(profile.flags.iter().cloned());
        Ok(LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env: brief.env_after(&ENV),
            stdin: Some(brief.prompt_file.clone()),
            files: Vec::new(),
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(JsonLines::new(ClaudeEvents::new(ear)))
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: profile.program_name(PROGRAM),
            version_args: &["--version"],
            install: "npm install -g @anthropic-ai/claude-code",
            login: "run `claude` once and use /login, or export ANTHROPIC_API_KEY and write `pass_env = [\"ANTHROPIC_API_KEY\"]` in the profile",
            state: match profile.env.get("CLAUDE_CONFIG_DIR") {
                Some(dir) => vec![dir.clone()],
                None => vec!["~/.claude".to_owned(), "~/.claude.json".to_owned()],
            },
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

/// Claude fills in `${NAME}` from its own environment, so the key stands in no argument.
pub(crate) fn mcp_config(program: &str) -> Value {
    let env: serde_json::Map<String, Value> =
        mcp::ENV.iter().map(|name| ((*name).to_owned(), json!(format!("${{{name}}}")))).collect();
    json!({"mcpServers": {mcp::NAME: {"command": program, "args": mcp::ARGS, "env": env}}})
}

/// Tools under way that are told apart. Beyond it the oldest are forgotten: an agent must not fill us up.
const TOOLS_MAX: usize = 256;
/// Answers that are remembered: more than an agent has helpers at a time.
const ANSWERS_MAX: usize = 64;

struct ClaudeEvents {
    voice: MessageParser,
    resumed: bool,
    before: AgentUsage,
    started: bool,
    gone: bool,
    /// The last answers that were counted. Those of helpers come in between.
    answers: VecDeque<String>,
    /// Tools of the main conversation under way.
    tools: BTreeSet<String>,
    /// Tokens and money of this run, as its results say.
    run: AgentUsage,
    /// Tokens of this run that have been told.
    told: AgentUsage,
    /// The model that leads.
    model: Option<String>,
    /// Tokens of the last request of the main conversation: how full the context is.
    context: u64,
    /// The account is used up until then, as the last word about it says.
    rejected: Option<Option<Timestamp>>,
    /// The kind of the provider's last error.
    error: String,
}

impl ClaudeEvents {
    fn new(ear: &ParserContext) -> Self {
        Self {
            voice: MessageParser::new(&ear.nonce),
            resumed: ear.resumed,
            before: if ear.resumed { ear.before } else { AgentUsage::default() },
            started: false,
            gone: false,
            answers: VecDeque::new(),
            tools: BTreeSet::new(),
            run: AgentUsage::default(),
            told: AgentUsage::default(),
            model: None,
            context: 0,
            rejected: None,
            error: String::new(),
        }
    }

    fn handle_system(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        match text_or_empty(&event["subtype"]) {
            "init" => {
                self.started = true;
                self.model = event["model"].as_str().map(str::to_owned);
                let session = event["session_id"].as_str().map(str::to_owned);
                signals.push(Signal::Started { session, model: self.model.clone() });
            }
            // It tries again by itself. If that helps, what follows takes this back.
            "api_retry" => signals.push(Signal::Transient {
                detail: match event["error_status"].as_u64() {
                    Some(status) => format!("{} (status {status})", shorten(text_or_empty(&event["error"]))),
                    None => shorten(text_or_empty(&event["error"])),
                },
            }),
            "compact_boundary" => signals.push(Signal::Compacted),
            "permission_denied" => {
                let what =
                    format!("{}: {}", text_or_empty(&event["tool_name"]), text_or_empty(&event["message"]));
                signals.push(Signal::PermissionAsked { what: shorten(&what) });
            }
            // Told again with every new try of a request.
            "status" | "informational" | "notification" | "session_state_changed" | "turn_starting" => {
                return EventRecognition::Status;
            }
            "task_started"
            | "task_progress"
            | "task_updated"
            | "task_notification"
            | "thinking_tokens"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "background_tasks_changed" => {}
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_assistant(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        let message = &event["message"];
        // A helper of the agent has a conversation of its own; its words are for the agent, not for us.
        let main = event["parent_tool_use_id"].is_null();
        if let Some(error) = event["error"].as_str() {
            // A message that the program wrote itself, because the provider gave none.
            self.error = error.to_owned();
            let limit = &event["api_error_params"]["rate_limit_info"];
            if text_or_empty(&limit["status"]) == "rejected" {
                self.rejected = Some(timestamp_from_seconds(&limit["resetsAt"]));
            }
            return;
        }
        self.count_usage(main, message, signals);
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for block in blocks {
            match text_or_empty(&block["type"]) {
                "text" if main => self.voice.push_message(text_or_empty(&block["text"]), signals),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    if main {
                        self.tools.insert(text_or_empty(&block["id"]).to_owned());
                        if self.tools.len() > TOOLS_MAX {
                            self.tools.pop_first();
                        }
                    }
                    signals.push(Signal::ToolUse {
                        name: shorten(text_or_empty(&block["name"])),
                        detail: describe_tool_input(&block["input"]),
                    });
                }
                // Thoughts, and whatever is to come.
                _ => {}
            }
        }
    }

    /// The usage of one answer. Its output is counted while it is being written, so the sum is set right at the end.
    fn count_usage(&mut self, main: bool, message: &Value, signals: &mut Vec<Signal>) {
        let id = text_or_empty(&message["id"]);
        if id.is_empty() || self.answers.iter().any(|answer| answer == id) {
            return;
        }
        self.answers.push_back(id.to_owned());
        if self.answers.len() > ANSWERS_MAX {
            self.answers.pop_front();
        }
        let usage = &message["usage"];
        let cached = count_or_zero(&usage["cache_read_input_tokens"]);
        let tokens_in = count_or_zero(&usage["input_tokens"])
            .saturating_add(count_or_zero(&usage["cache_creation_input_tokens"]))
            .saturating_add(cached);
        let usage = AgentUsage {
            tokens_in,
            tokens_cached: cached,
            tokens_out: count_or_zero(&usage["output_tokens"]),
            turns: 1,
            ..AgentUsage::default()
        };
        if main {
            self.context = usage.total_tokens();
            // It goes on, so whatever it waited for has ended, told or not.
            signals.extend(std::mem::take(&mut self.tools).iter().map(|_| Signal::ToolDone));
        }
        self.told = self.told.plus(AgentUsage { turns: 0, ..usage });
        signals.push(Signal::Usage(usage));
    }

    fn handle_user(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        let blocks = event["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for block in blocks.iter().filter(|block| text_or_empty(&block["type"]) == "tool_result") {
            let main = event["parent_tool_use_id"].is_null();
            if !main || self.tools.remove(text_or_empty(&block["tool_use_id"])) {
                signals.push(Signal::ToolDone);
            }
        }
    }

    fn handle_limit(&mut self, info: &Value, signals: &mut Vec<Signal>) {
        let until = timestamp_from_seconds(&info["resetsAt"]);
        match text_or_empty(&info["status"]) {
            "rejected" => {
                self.rejected = Some(until);
                signals.push(Signal::Quota { until });
            }
            "allowed_warning" | "allowed" => {
                self.rejected = None;
                if let Some(used) = info["utilization"].as_f64() {
                    let used_percent = (used * 100.0).round().clamp(0.0, 100.0) as u8;
                    signals.push(Signal::Allowance { used_percent, until });
                }
            }
            _ => {}
        }
    }

    fn handle_result(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        self.report_totals(event, signals);
        let error = event["is_error"].as_bool().unwrap_or(true);
        let errors = event["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = match event["result"].as_str() {
            Some(text) => text.to_owned(),
            None => errors.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        };
        let how = match (text_or_empty(&event["subtype"]), text_or_empty(&event["terminal_reason"])) {
            ("success", _) if !error => AgentFinish::Success,
            ("error_max_turns" | "error_max_budget_usd", _) | (_, "max_turns" | "budget_exhausted") => {
                AgentFinish::Limit
            }
            (_, reason) if reason.starts_with("aborted") => AgentFinish::Interrupted,
            _ => AgentFinish::Error,
        };
        if how == AgentFinish::Error {
            errors.iter().for_each(|error| self.handle_stderr_line(text_or_empty(error), signals));
            signals.extend(self.classify_error(event, shorten(&text)));
        }
        signals.push(Signal::Finished { how, text });
    }

    /// What was behind an error, by the fields that say so.
    fn classify_error(&self, event: &Value, detail: String) -> Option<Signal> {
        let kind = match text_or_empty(&event["api_error_type"]) {
            "" => self.error.as_str(),
            kind => kind,
        };
        if text_or_empty(&event["api_error"]) == "usage_limit_reached" || self.rejected.is_some() {
            return Some(Signal::Quota { until: self.rejected.flatten() });
        }
        match (kind, event["api_error_status"].as_u64()) {
            (
                "authentication_failed"
                | "authentication_error"
                | "permission_error"
                | "oauth_org_not_allowed"
                | "account_on_hold"
                | "verification_required"
                | "billing_error"
                | "cloud_credential_error",
                _,
            ) => Some(Signal::Unauthorized { detail }),
            (_, Some(status)) => classify_http_status(status, detail),
            // The connection broke before there was an answer.
            ("rate_limit" | "overloaded" | "server_error" | "unknown", None) => {
                Some(Signal::Transient { detail })
            }
            _ => None,
        }
    }

    /// Sets right what was told while answers were being written, and tells what the run has cost.
    fn report_totals(&mut self, event: &Value, signals: &mut Vec<Signal>) {
        self.run = match &event["model_usage_since_last_result"] {
            // Counted by this process alone, so it is right also in a session that was resumed.
            Value::Object(models) => self.run.plus(sum_models(models)),
            _ => match &event["modelUsage"] {
                Value::Object(models) => {
                    let session =
                        AgentUsage { micro_usd: micro_usd(&event["total_cost_usd"]), ..sum_models(models) };
                    usage_since(session, self.before)
                }
                _ => self.run,
            },
        };
        let rest = AgentUsage { turns: 0, micro_usd: 0, ..self.run }.difference_from(self.told);
        if rest != AgentUsage::default() {
            self.told = self.told.plus(rest);
            signals.push(Signal::Usage(rest));
        }
        // 0 is also what it says of a model whose price it does not know: then the table of prices has to say it.
        if self.run.micro_usd > 0 {
            signals.push(Signal::Cost(self.run.micro_usd));
        }
        if let Some(size) = self.context_window_size(event).filter(|_| self.context > 0) {
            signals.push(Signal::Context { used: self.context, size });
        }
    }

    /// The size of the context window of the model that leads.
    fn context_window_size(&self, event: &Value) -> Option<u64> {
        let models = event["modelUsage"].as_object()?;
        let leading = self.model.as_ref().and_then(|model| models.get(model));
        let size = |model: &Value| model["contextWindow"].as_u64().filter(|size| *size > 0);
        match leading {
            Some(model) => size(model),
            None => models.values().filter_map(size).min(),
        }
    }
}

impl AgentProtocol for ClaudeEvents {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        match text_or_empty(&event["type"]) {
            "system" => return self.handle_system(event, signals),
            "assistant" => {
                self.handle_assistant(event, signals);
                if event["error"].is_string() {
                    return EventRecognition::Status; // written by the program, because the provider gave nothing
                }
            }
            "user" => self.handle_user(event, signals),
            "rate_limit_event" => self.handle_limit(&event["rate_limit_info"], signals),
            "result" => self.handle_result(event, signals),
            // Pieces of what comes whole, and what only an editor shows.
            "stream_event" | "tool_progress" | "tool_use_summary" | "auth_status" | "prompt_suggestion" => {}
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_stderr_line(&mut self, line: &str, signals: &mut Vec<Signal>) {
        if self.resumed && !self.started && !self.gone && line.starts_with(SESSION_GONE) {
            self.gone = true;
            signals.push(Signal::SessionGone);
        }
    }
}

/// What it says on stderr, and in `errors`, when there is nothing to resume.
const SESSION_GONE: &str = "No conversation found with session ID";

/// Tokens and money of all models together.
fn sum_models(models: &serde_json::Map<String, Value>) -> AgentUsage {
    models.values().fold(AgentUsage::default(), |sum, model| {
        let cached = count_or_zero(&model["cacheReadInputTokens"]);
        let tokens_in = count_or_zero(&model["inputTokens"])
            .saturating_add(count_or_zero(&model["cacheCreationInputTokens"]))
            .saturating_add(cached);
        sum.plus(AgentUsage {
            tokens_in,
            tokens_cached: cached,
            tokens_out: count_or_zero(&model["outputTokens"]),
            micro_usd: micro_usd(&model["costUSD"]),
            ..AgentUsage::default()
        })
    })
}

/// What a session has used since `before`. Where the total is less than that, it is no total of the session.
fn usage_since(session: AgentUsage, before: AgentUsage) -> AgentUsage {
    if session.total_tokens() < before.total_tokens() || session.micro_usd < before.micro_usd {
        session
    } else {
        session.difference_from(before)
    }
}
