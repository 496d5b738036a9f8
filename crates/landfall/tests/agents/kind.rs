//! What differs between the agents: how each is pointed at our model, and how its provider words a refusal.

use std::time::{SystemTime, UNIX_EPOCH};

use landfall_testkit::{PlayTurn, ScratchProject};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Claude,
    Codex,
    Gemini,
    Opencode,
    /// Claude behind an adapter for the Agent Client Protocol.
    AcpClaude,
    /// Gemini, which speaks that protocol itself.
    AcpGemini,
}

impl Kind {
    /// Its name in settings, and its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::AcpClaude | Self::AcpGemini => "acp",
        }
    }

    /// The names of its processes.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["claude", "claude.exe"],
            Self::Codex => &["codex"],
            Self::Gemini | Self::AcpGemini => &["gemini"],
            Self::Opencode => &["opencode", "opencode.exe"],
            Self::AcpClaude => &["claude-agent-acp"],
        }
    }

    /// The lines of a profile that uses the model at `url`. Retries of the agent itself are few: those of Landfall are
    /// what is tested.
    pub fn profile(self, url: &str) -> String {
        match self {
            Self::Claude => format!(
                "model = \"claude-sonnet-5-5\"\n\
                 env = {{ ANTHROPIC_API_KEY = \"dummy\", ANTHROPIC_BASE_URL = \"{url}\", \
                 CLAUDE_CODE_MAX_RETRIES = \"1\" }}"
            ),
            Self::Codex => format!(
                "model = \"gpt-5.5\"\n\
                 env = {{ FAKE_KEY = \"dummy\" }}\n\
                 flags = [\"-c\", \"model_provider=fake\", \"-c\", '{}']",
                format_args!(
                    "model_providers.fake={{name=\"fake\",base_url=\"{url}/v1\",env_key=\"FAKE_KEY\",\
                     wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}"
                )
            ),
            Self::Gemini => format!(
                "model = \"gemini-2.5-pro\"\n\
                 env = {{ GEMINI_API_KEY = \"dummy\", GOOGLE_GEMINI_BASE_URL = \"{url}\" }}"
            ),
            Self::Opencode => "model = \"fake/fake-1\"".to_owned(),
            Self::AcpClaude => format!(
                "run = \"claude-agent-acp\"\n\
                 env = {{ ANTHROPIC_API_KEY = \"dummy\", ANTHROPIC_BASE_URL = \"{url}\", IS_SANDBOX = \"1\", \
                 CLAUDE_CODE_MAX_RETRIES = \"1\", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\" }}"
            ),
            Self::AcpGemini => format!(
                "run = \"gemini --acp --skip-trust -m gemini-2.5-pro\"\n\
                 env = {{ GEMINI_API_KEY = \"dummy\", GOOGLE_GEMINI_BASE_URL = \"{url}\" }}"
            ),
        }
    }

    /// Puts into the home folder what a person would have there.
    pub fn move_in(self, scratch: &ScratchProject, url: &str) {
        let home = scratch.root().join("home");
        let write = |path: &str, value: &Value| {
            let path = home.join(path);
            std::fs::create_dir_all(path.parent().expect("below the home")).expect("a folder can be made");
            std::fs::write(path, value.to_string()).expect("a file can be written");
        };
        match self {
            Self::Claude | Self::Codex | Self::AcpClaude => {}
            Self::Gemini | Self::AcpGemini => write(
                ".gemini/settings.json",
                &json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" } },
                    "general": { "maxAttempts": 1 },
                }),
            ),
            Self::Opencode => write(
                ".config/opencode/opencode.json",
                &json!({
                    "provider": { "fake": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": { "baseURL": format!("{url}/v1"), "apiKey": "dummy" },
                        "models": { "fake-1": {
                            "cost": { "input": 3, "output": 15, "cache_read": 0.3 },
                            "limit": { "context": 128_000, "output": 8000 },
                        } },
                    } },
                }),
            ),
        }
    }

    /// Makes the folders that it makes itself when it is first used.
    pub fn settle(self, scratch: &ScratchProject) {
        let folders: &[&str] = match self {
            Self::Claude | Self::AcpClaude => &[".claude"],
            Self::Codex => &[".codex"],
            Self::Gemini | Self::AcpGemini => &[".gemini"],
            Self::Opencode => {
                &[".local/share/opencode", ".config/opencode", ".cache/opencode", ".local/state/opencode"]
            }
        };
        for folder in folders {
            std::fs::create_dir_all(scratch.root().join("home").join(folder)).expect("a folder can be made");
        }
    }

    /// What a person has to say of the sandbox: of an agent of that protocol nobody knows where it keeps its state.
    pub fn sandbox(self) -> &'static str {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode => "",
            Self::AcpClaude => "sandbox_write = [\"~/.claude\"]\n",
            Self::AcpGemini => "sandbox_write = [\"~/.gemini\"]\n",
        }
    }

    /// A refusal in the words of its provider.
    pub fn refusal(self, status: u16) -> PlayTurn {
        let (anthropic, openai, gemini) = match status {
            401 => ("authentication_error", "invalid_api_key", "UNAUTHENTICATED"),
            429 => ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
            500 => ("api_error", "server_error", "INTERNAL"),
            503 | 529 => ("overloaded_error", "server_is_overloaded", "UNAVAILABLE"),
            _ => panic!("no words for {status}"),
        };
        let word = match self {
            Self::Claude | Self::AcpClaude => anthropic,
            Self::Codex | Self::Opencode => openai,
            Self::Gemini | Self::AcpGemini => gemini,
        };
        // One of them tries again by itself, often; this makes it quick.
        PlayTurn::error(status, word, "not now").header("retry-after-ms", "20")
    }

    /// Passing errors of its provider, each in its turn.
    pub fn troubles(self) -> &'static [u16] {
        match self {
            Self::Claude => &[529, 500, 429],
            // Behind the adapter, too many requests look like a limit of the account.
            Self::AcpClaude => &[529, 500],
            Self::Codex | Self::Gemini | Self::Opencode | Self::AcpGemini => &[503, 500, 429],
        }
    }

    /// Where it keeps its sessions, below the home folder.
    pub fn sessions(self) -> &'static str {
        match self {
            Self::Claude | Self::AcpClaude => ".claude/projects",
            Self::Codex => ".codex/sessions",
            Self::Gemini | Self::AcpGemini => ".gemini/tmp",
            Self::Opencode => ".local/share/opencode",
        }
    }

    /// The account is used up until the moment `reset`, in seconds since 1970.
    pub fn limit(self, reset: u64) -> PlayTurn {
        let at = reset.to_string();
        match self {
            Self::Claude | Self::AcpClaude => {
                PlayTurn::error(429, "rate_limit_error", "This would exceed your account's limit.")
                    .header("anthropic-ratelimit-unified-status", "rejected")
                    .header("anthropic-ratelimit-unified-reset", &at)
                    .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
                    .header("anthropic-ratelimit-unified-5h-status", "rejected")
                    .header("anthropic-ratelimit-unified-5h-reset", &at)
                    .header("anthropic-ratelimit-unified-5h-utilization", "1.0")
                    .header("retry-after", "7200")
            }
            Self::Codex => {
                let error = json!({
                    "type": "usage_limit_reached",
                    "message": "The usage limit has been reached",
                    "plan_type": "plus",
                    "resets_at": reset,
                });
                PlayTurn::refuse(429, json!({ "error": error }))
                    .header("x-codex-primary-used-percent", "100")
                    .header("x-codex-primary-window-minutes", "300")
                    .header("x-codex-primary-reset-at", &at)
            }
            Self::Gemini | Self::AcpGemini => {
                let violation =
                    json!({ "quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "1" });
                let failure = json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation] });
                PlayTurn::refuse(
                    429,
                    json!({ "error": {
                        "code": 429,
                        "message": "You exceeded your current quota.",
                        "status": "RESOURCE_EXHAUSTED",
                        "details": [failure],
                    } }),
                )
            }
            Self::Opencode => panic!("it tells nothing of limits"),
        }
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
