//! Kind `codex`: `codex exec` with a stream of JSON events.
//!
//! What surprises: `error` is also what it says before it tries again; the stream has no figures until the turn is
//! complete, and none when it fails; its totals go over the whole session once it is resumed; when a limit resets
//! stands only in the file it keeps of the session, which is read as the aside.

use landfall_model::{AgentFinish, AgentUsage, Signal, Timestamp};
use serde_json::Value;

use crate::agent::{
    Agent, AgentRequirements, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest, OutputParser,
    ParserContext, SideFile,
};
use crate::json::{
    AgentProtocol, EventRecognition, JsonLines, count_or_zero, describe_tool_input, text_or_empty,
    timestamp_from_seconds, truncate_text as shorten,
};
use crate::mcp;
use crate::provider::classify_http_status;
use crate::voice::MessageParser;

/// The adapter.
pub(crate) struct Codex;

const PROGRAM: &str = "codex";

impl Agent for Codex {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        profile.program_words(PROGRAM).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        let profile = &brief.profile;
        self.check_profile(profile)?;
        let mut argv = profile.program_words(PROGRAM)?;
        argv.extend(
            [
                "exec",
                "--json",
                // Its own sandbox would keep it from committing. Ours is around it.
                "--dangerously-bypass-approvals-and-sandbox",
                // They are fetched from outside at every start.
                "--disable",
                "plugins",
                "--skip-git-repo-check",
            ]
            .map(str::to_owned),
        );
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        option("-c", "check_for_update_on_startup=false".to_owned());
        option("-c", "analytics.enabled=false".to_owned());
        if let Some(model) = &profile.model {
            option("-m", model.clone());
        }
        if let Some(effort) = &profile.effort {
            option("-c", format!("model_reasoning_effort={}", to_toml_string(effort)));
        }
        if let Some(program) = mcp::mcp_program(brief) {
            let list =
                |words: &[&str]| words.iter().map(|word| to_toml_string(word)).collect::<Vec<_>>().join(",");
            let server = format!("mcp_servers.{}", mcp::NAME);
            option("-c", format!("{server}.command={}", to_toml_string(program)));
            option("-c", format!("{server}.args=[{}]", list(&mcp::ARGS)));
            // By name: it passes on the values it finds in its own environment.
            option("-c", format!("{server}.env_vars=[{}]", list(&mcp::ENV)));
        }
        argv.extend(profile.flags.iter().cloned());
        if let Some(session) = &brief.resume {
            argv.extend(["resume".to_owned(), session.clone()]);
        }
        argv.push("-".to_owned());
        Ok(LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env: brief.agent_environment(),
            stdin: Some(brief.prompt_file.clone()),
            files: Vec::new(),
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(JsonLines::new(CodexEvents::new(ear)))
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: profile.program_name(PROGRAM),
            version_args: &["--version"],
            install: "npm install -g @openai/codex",
            login: "run `codex login`, or export CODEX_API_KEY and write `pass_env = [\"CODEX_API_KEY\"]` in the profile",
            state: vec![codex_home(profile)],
            terminal: false,
        }
    }

    fn calls_model(&self) -> bool {
        true
    }

    fn has_closing_message(&self) -> bool {
        true
    }

    fn session_side_file(&self, profile: &LaunchProfile, session: &str) -> Option<SideFile> {
        Some(SideFile {
            root: format!("{}/sessions", codex_home(profile)),
            suffix: format!("-{session}.jsonl"),
        })
    }
}

fn codex_home(profile: &LaunchProfile) -> String {
    profile.env.get("CODEX_HOME").cloned().unwrap_or_else(|| "~/.codex".to_owned())
}

/// A text as TOML writes it.
fn to_toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

struct CodexEvents {
    voice: MessageParser,
    resumed: bool,
    before: AgentUsage,
    started: bool,
    /// Whether the model is in the middle of an answer: what follows the result of a tool is a new one.
    answering: bool,
    told: AgentUsage,
    /// Tools under way, by the id of their item.
    tools: Vec<String>,
    last_words: String,
    /// The last error that was made something of.
    error: String,
    compactions: u64,
    kept: CodexSessionData,
}

/// What the file of the session says of this run.
#[derive(Default)]
struct CodexSessionData {
    usage: AgentUsage,
    context: Option<(u64, u64)>,
    limits: Option<Value>,
    failure: Option<Value>,
    compactions: u64,
}

/// Tools told apart at a time: an agent that never ends one must not fill us up.
const TOOLS_MAX: usize = 256;

impl CodexEvents {
    fn new(ear: &ParserContext) -> Self {
        Self {
            voice: MessageParser::new(&ear.nonce),
            resumed: ear.resumed,
            before: if ear.resumed { ear.before } else { AgentUsage::default() },
            started: false,
            answering: false,
            told: AgentUsage::default(),
            tools: Vec::new(),
            last_words: String::new(),
            error: String::new(),
            compactions: 0,
            kept: CodexSessionData::default(),
        }
    }

    /// The model says or does something: the first thing after the result of a tool is a new answer.
    fn begin_answer(&mut self, signals: &mut Vec<Signal>) {
        if !self.answering {
            self.answering = true;
            self.report_usage(AgentUsage { turns: 1, ..AgentUsage::default() }, signals);
        }
    }

    fn report_usage(&mut self, usage: AgentUsage, signals: &mut Vec<Signal>) {
        if usage != AgentUsage::default() {
            self.told = self.told.plus(usage);
            signals.push(Signal::Usage(usage));
        }
    }

    fn handle_item(&mut self, phase: &str, item: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        let (name, detail) = match text_or_empty(&item["type"]) {
            "agent_message" => {
                if phase == "item.completed" {
                    self.begin_answer(signals);
                    let text = text_or_empty(&item["text"]);
                    self.last_words = text.to_owned();
                    self.voice.push_message(text, signals);
                }
                return EventRecognition::Yes;
            }
            "context_compaction" => {
                if phase == "item.completed" {
                    self.compactions += 1;
                    signals.push(Signal::Compacted);
                }
                return EventRecognition::Yes;
            }
            "reasoning" => {
                self.begin_answer(signals);
                return EventRecognition::Yes;
            }
            // A list for a person, and warnings of the program itself.
            "todo_list" | "error" => return EventRecognition::Yes,
            "command_execution" => ("shell".to_owned(), shorten(text_or_empty(&item["command"]))),
            "file_change" => {
                let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let paths: Vec<&str> = changes.iter().map(|change| text_or_empty(&change["path"])).collect();
                // What is written is not told, so two changes of a file are taken for different ones.
                ("edit".to_owned(), format!("{} {}", shorten(&paths.join(" ")), text_or_empty(&item["id"])))
            }
            "mcp_tool_call" => {
                let name = format!("{}.{}", text_or_empty(&item["server"]), text_or_empty(&item["tool"]));
                (shorten(&name), describe_tool_input(&item["arguments"]))
            }
            "web_search" => ("web_search".to_owned(), shorten(text_or_empty(&item["query"]))),
            "collab_tool_call" => {
                (shorten(text_or_empty(&item["tool"])), shorten(text_or_empty(&item["prompt"])))
            }
            _ => return EventRecognition::No,
        };
        let id = text_or_empty(&item["id"]);
        let under_way = self.tools.iter().position(|tool| tool == id);
        if under_way.is_none() && phase != "item.updated" {
            self.begin_answer(signals);
            signals.push(Signal::ToolUse { name, detail });
            if phase == "item.started" {
                self.tools.push(id.to_owned());
                if self.tools.len() > TOOLS_MAX {
                    self.tools.remove(0);
                }
            }
        }
        if phase == "item.completed" {
            if let Some(at) = under_way {
                self.tools.remove(at);
            }
            self.answering = false;
            signals.push(Signal::ToolDone);
        }
        EventRecognition::Yes
    }

    /// An error of the protocol. The program says it once as an event and once as the end of the turn.
    fn report_error(&mut self, message: &str, signals: &mut Vec<Signal>) {
        if let Some(why) = message.strip_prefix("Reconnecting...") {
            // It tries again by itself. If that helps, what follows takes this back.
            signals.push(Signal::Transient { detail: shorten(why.trim()) });
        } else if self.error != message {
            self.error = message.to_owned();
            signals.extend(classify_error(message));
        }
    }

    fn complete_turn(&mut self, usage: &Value, signals: &mut Vec<Signal>) {
        let session = read_usage(usage);
        // Where the total is less than what was used before, it is no total of the session.
        let run = if session.total_tokens() < self.before.total_tokens() {
            session
        } else {
            session.difference_from(self.before)
        };
        self.report_remaining_usage(AgentUsage { turns: 0, ..run }, signals);
        let text = std::mem::take(&mut self.last_words);
        signals.push(Signal::Finished { how: AgentFinish::Success, text });
    }

    /// Tells what of this run's usage has not been told.
    fn report_remaining_usage(&mut self, run: AgentUsage, signals: &mut Vec<Signal>) {
        self.report_usage(run.difference_from(self.told), signals);
    }

    fn fail_turn(&mut self, message: &str, signals: &mut Vec<Signal>) {
        self.report_error(message, signals);
        let how = if message.starts_with("Incomplete response returned, reason: max_output_tokens") {
            AgentFinish::Limit
        } else {
            AgentFinish::Error
        };
        signals.push(Signal::Finished { how, text: message.to_owned() });
    }
}

impl AgentProtocol for CodexEvents {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        match text_or_empty(&event["type"]) {
            "thread.started" => {
                self.started = true;
                let session = event["thread_id"].as_str().map(str::to_owned);
                signals.push(Signal::Started { session, model: None });
            }
            "turn.started" => {}
            phase @ ("item.started" | "item.updated" | "item.completed") => {
                return self.handle_item(phase, &event["item"], signals);
            }
            "error" => {
                self.report_error(text_or_empty(&event["message"]), signals);
                return EventRecognition::Status;
            }
            "turn.completed" => self.complete_turn(&event["usage"], signals),
            "turn.failed" => self.fail_turn(text_or_empty(&event["error"]["message"]), signals),
            _ => return EventRecognition::No,
        }
        EventRecognition::Yes
    }

    fn handle_stderr_line(&mut self, line: &str, signals: &mut Vec<Signal>) {
        let gone = line.starts_with("Error:") && line.contains("no rollout found for thread id");
        if gone && self.resumed && !self.started {
            self.started = true; // said once is enough
            signals.push(Signal::SessionGone);
        }
    }

    fn handle_side_record(&mut self, record: &Value) {
        let payload = &record["payload"];
        match (text_or_empty(&record["type"]), text_or_empty(&payload["type"])) {
            // Each run is a task of the session, and the last one is ours.
            ("event_msg", "task_started") => self.kept = CodexSessionData::default(),
            ("event_msg", "task_complete") => self.kept.failure = Some(payload["error"].clone()),
            ("event_msg", "token_count") => {
                if payload["rate_limits"].is_object() {
                    self.kept.limits = Some(payload["rate_limits"].clone());
                }
                let used = count_or_zero(&payload["info"]["last_token_usage"]["total_tokens"]);
                let size = count_or_zero(&payload["info"]["model_context_window"]);
                if used > 0 && size > 0 {
                    self.kept.context = Some((used, size));
                }
            }
            ("token_usage_record", _) => {
                let answer = AgentUsage { turns: 1, ..read_usage(&payload["usage"]) };
                self.kept.usage = self.kept.usage.plus(answer);
            }
            ("compacted", _) => self.kept.compactions += 1,
            _ => {}
        }
    }

    fn end_stream(&mut self, signals: &mut Vec<Signal>) {
        let kept = std::mem::take(&mut self.kept);
        self.report_remaining_usage(kept.usage, signals);
        if let Some((used, size)) = kept.context {
            signals.push(Signal::Context { used, size });
        }
        // An agent can write what it likes into that file; no run drops its context a hundred times.
        for _ in self.compactions..kept.compactions.min(100) {
            signals.push(Signal::Compacted);
        }
        let failure = kept.failure.filter(Value::is_object).unwrap_or_default();
        let limits = kept.limits.unwrap_or_default();
        match failure_signal(&failure) {
            Some(Signal::Quota { .. }) => signals.push(Signal::Quota { until: limits_reset_at(&limits) }),
            Some(signal) if self.error.is_empty() => signals.push(signal),
            Some(_) => {}
            None => signals.extend(fullest_window(&limits)),
        }
    }
}

/// Tokens of an object of usage. Those from the cache are among those read.
fn read_usage(usage: &Value) -> AgentUsage {
    AgentUsage {
        tokens_in: count_or_zero(&usage["input_tokens"]),
        tokens_cached: count_or_zero(&usage["cached_input_tokens"]),
        tokens_out: count_or_zero(&usage["output_tokens"]),
        ..AgentUsage::default()
    }
}

const QUOTA: &str = "ve hit your usage limit";
/// A budget of a person's own making is used up: waiting does not help.
const BILLING: &str = "Quota exceeded. Check your plan and billing details.";

/// What an error event means. The stream has no field for it, but its sentences are fixed and the program's own.
fn classify_error(message: &str) -> Option<Signal> {
    let detail = shorten(message);
    let number = |text: &str| text.split([' ', ':']).next().and_then(|word| word.parse().ok());
    let status = message
        .strip_prefix("unexpected status ")
        .or_else(|| message.strip_prefix("exceeded retry limit, last status: "))
        .and_then(number);
    if let Some(status) = status {
        return classify_http_status(status, detail);
    }
    let starts = |words: &[&str]| words.iter().any(|words| message.starts_with(words));
    // The apostrophe comes in two forms.
    let you = message.strip_prefix("You").map(|rest| rest.trim_start_matches(['\'', '’']));
    if you.is_some_and(|rest| rest.starts_with(QUOTA)) {
        Some(Signal::Quota { until: None })
    } else if starts(&[
        BILLING,
        "Missing environment variable:",
        "Your access token could not be refreshed",
        "Your authentication session could not be refreshed",
    ]) {
        Some(Signal::Unauthorized { detail })
    } else if starts(&[
        "stream disconnected before completion",
        "Connection failed:",
        "error sending request",
        "request timed out",
        "timeout waiting",
        "Selected model is at capacity",
        "We’re currently experiencing high demand",
        "We're currently experiencing high demand",
    ]) {
        Some(Signal::Transient { detail })
    } else {
        None
    }
}

/// What the file says of the error of a task.
fn failure_signal(failure: &Value) -> Option<Signal> {
    let detail = shorten(text_or_empty(&failure["message"]));
    match &failure["codex_error_info"] {
        Value::String(kind) => match kind.as_str() {
            "usage_limit_exceeded" if detail == BILLING => Some(Signal::Unauthorized { detail }),
            "usage_limit_exceeded" => Some(Signal::Quota { until: None }),
            "unauthorized" => Some(Signal::Unauthorized { detail }),
            "internal_server_error" | "server_overloaded" => Some(Signal::Transient { detail }),
            _ => None,
        },
        Value::Object(kinds) => {
            let status = kinds.values().find_map(|kind| kind["http_status_code"].as_u64());
            match status {
                Some(status) => classify_http_status(status, detail),
                // The connection broke before there was an answer.
                None => Some(Signal::Transient { detail }),
            }
        }
        _ => None,
    }
}

/// When the windows that are used up have all been reset.
fn limits_reset_at(limits: &Value) -> Option<Timestamp> {
    let windows = ["primary", "secondary"].map(|name| &limits[name]);
    let full = windows.iter().filter(|window| window["used_percent"].as_f64() >= Some(100.0));
    full.filter_map(|window| timestamp_from_seconds(&window["resets_at"]))
        .max()
        .or_else(|| timestamp_from_seconds(&limits["primary"]["resets_at"]))
}

/// The fullest window.
fn fullest_window(limits: &Value) -> Option<Signal> {
    let windows = ["primary", "secondary"].map(|name| &limits[name]);
    let used =
        |window: &&Value| window["used_percent"].as_f64().map(|used| used.round().clamp(0.0, 100.0) as u8);
    let window = windows.into_iter().filter(|window| used(window).is_some()).max_by_key(used)?;
    Some(Signal::Allowance {
        used_percent: used(&window)?,
        until: timestamp_from_seconds(&window["resets_at"]),
    })
}
