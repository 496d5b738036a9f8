//! Records what the real agents write, for the transcripts that their parsers are tested with.
//!
//! `cargo run -p landfall-testkit --example record -- OUT [KIND [CASE]]`: the agents are those in `PATH`, `OUT` gets
//! `<kind>/<case>.out`. Paths, ports and session names are made stable; everything else stays as it came.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landfall_testkit::{ModelServer, PlayGate, PlayTurn, Tokens};
use serde_json::json;

/// A recording: one agent, one story.
struct Case {
    kind: &'static str,
    name: &'static str,
    play: Vec<PlayTurn>,
    way: Way,
    env: &'static [(&'static str, &'static str)],
}

/// How the agent is driven.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Once, to its end.
    Once,
    /// With a limit of two turns.
    MaxTurns,
    /// Twice: the second run resumes the session of the first and is the one recorded.
    Resumed,
    /// To resume a session that is not there.
    SessionGone,
    /// Ended by a signal while it waits for its model.
    Terminated,
}

/// A reset that is the same in every recording: the first moment of 2030.
const RESET: &str = "1893456000";

const CLAUDE: &str = "claude";
const CODEX: &str = "codex";
const GEMINI: &str = "gemini";
const OPENCODE: &str = "opencode";

fn works() -> Vec<PlayTurn> {
    let price = Tokens { fresh: 1200, cached: 300, out: 40 };
    vec![
        PlayTurn::shell("echo hello > hello.txt && git add hello.txt && git commit -qm 'add hello' && git log --oneline | wc -l")
            .with_words("I add the file.")
            .tokens(price),
        PlayTurn::say("The file is there.\n\n<landfall>COMPLETE</landfall>").tokens(Tokens { out: 20, ..price }),
    ]
}

fn goes_on() -> Vec<PlayTurn> {
    let mut play = works();
    play.push(PlayTurn::shell("echo more >> hello.txt && git commit -qam 'more'"));
    play.push(PlayTurn::say("More of it.\n\n<landfall>COMPLETE</landfall>"));
    play
}

fn then_works(first: PlayTurn) -> Vec<PlayTurn> {
    let mut play = vec![first];
    play.extend(works());
    play
}

fn circles() -> Vec<PlayTurn> {
    vec![PlayTurn::shell("git status --short | wc -l").always()]
}

fn waits() -> Vec<PlayTurn> {
    vec![PlayTurn::shell("echo begun > begun.txt"), PlayTurn::say("never").behind(&PlayGate::new())]
}

fn case(kind: &'static str, name: &'static str, way: Way, play: Vec<PlayTurn>) -> Case {
    Case { kind, name, play, way, env: &[] }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case {
            env: &[("CLAUDE_CODE_OAUTH_TOKEN", "dummy"), ("ANTHROPIC_API_KEY", "")],
            ..case(CLAUDE, "usage-limit", Way::Once, vec![claude_limit("rejected").always()])
        },
        Case {
            env: &[("CLAUDE_CODE_OAUTH_TOKEN", "dummy"), ("ANTHROPIC_API_KEY", "")],
            ..case(CLAUDE, "limit-near", Way::Once, vec![claude_limit("allowed_warning")])
        },
        case(CLAUDE, "max-turns", Way::MaxTurns, circles()),
        case(
            CLAUDE,
            "max-tokens",
            Way::Once,
            vec![PlayTurn::too_long("It grows and"), PlayTurn::say("ends.")],
        ),
        case(CODEX, "usage-limit", Way::Once, vec![codex_limit()]),
        case(CODEX, "limit-near", Way::Once, vec![codex_near()]),
        case(
            CODEX,
            "quota-exceeded",
            Way::Once,
            vec![PlayTurn::error(429, "insufficient_quota", "You exceeded your current quota.").always()],
        ),
        case(CODEX, "max-tokens", Way::Once, vec![PlayTurn::too_long("It grows and").always()]),
        Case { env: &[("RECORD_MODEL", "gpt-6-sol")], ..case(CODEX, "code-mode", Way::Once, works()) },
        case(GEMINI, "daily-quota", Way::Once, vec![gemini_quota()]),
        case(GEMINI, "key-invalid", Way::Once, vec![gemini_key()]),
        case(GEMINI, "max-turns", Way::MaxTurns, circles()),
        case(GEMINI, "loop-detected", Way::Once, circles()),
        case(OPENCODE, "max-tokens", Way::Once, vec![PlayTurn::too_long("It grows and")]),
    ];
    for kind in [CLAUDE, CODEX, GEMINI, OPENCODE] {
        let slow = || troubled(kind, 429).header("retry-after", "1");
        cases.push(case(kind, "success", Way::Once, works()));
        cases.push(case(kind, "resumed", Way::Resumed, goes_on()));
        cases.push(case(kind, "session-gone", Way::SessionGone, works()));
        cases.push(case(kind, "sigterm", Way::Terminated, waits()));
        cases.push(case(kind, "rate-limit-then-fine", Way::Once, then_works(slow().times(2))));
        cases.push(case(kind, "rate-limit", Way::Once, vec![slow().always()]));
        cases.push(case(kind, "unauthorized", Way::Once, vec![troubled(kind, 401).always()]));
        cases.push(case(kind, "forbidden", Way::Once, vec![troubled(kind, 403).always()]));
        cases.push(case(kind, "server-error", Way::Once, vec![troubled(kind, 500).always()]));
        let overloaded = if kind == CLAUDE { 529 } else { 503 };
        cases.push(case(kind, "overloaded", Way::Once, vec![troubled(kind, overloaded).always()]));
        cases.push(case(kind, "cut", Way::Once, vec![PlayTurn::cut("It begins and").always()]));
    }
    cases
}

/// A refusal in the words of the provider that each agent expects.
fn troubled(kind: &str, status: u16) -> PlayTurn {
    let (anthropic, openai, gemini, message) = match status {
        401 => ("authentication_error", "invalid_api_key", "UNAUTHENTICATED", "The key is not valid."),
        403 => ("permission_error", "forbidden", "PERMISSION_DENIED", "This account may not do that."),
        429 => ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", "Too many requests."),
        500 => ("api_error", "server_error", "INTERNAL", "Something went wrong."),
        _ => ("overloaded_error", "server_is_overloaded", "UNAVAILABLE", "Overloaded."),
    };
    let word = match kind {
        CLAUDE => anthropic,
        GEMINI => gemini,
        _ => openai,
    };
    PlayTurn::error(status, word, message)
}

fn claude_limit(status: &str) -> PlayTurn {
    let used = if status == "rejected" { "1.0" } else { "0.91" };
    let turn = if status == "rejected" {
        PlayTurn::error(429, "rate_limit_error", "This request would exceed your account's rate limit.")
            .header("retry-after", "7200")
            .header("x-should-retry", "true")
    } else {
        PlayTurn::say("Near the limit.").header("anthropic-ratelimit-unified-5h-surpassed-threshold", "0.9")
    };
    turn.header("anthropic-ratelimit-unified-status", status)
        .header("anthropic-ratelimit-unified-reset", RESET)
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("anthropic-ratelimit-unified-5h-status", status)
        .header("anthropic-ratelimit-unified-5h-reset", RESET)
        .header("anthropic-ratelimit-unified-5h-utilization", used)
        .header("anthropic-ratelimit-unified-7d-status", "allowed")
        .header("anthropic-ratelimit-unified-7d-reset", RESET)
        .header("anthropic-ratelimit-unified-7d-utilization", "0.5")
        .header("anthropic-ratelimit-unified-overage-status", "rejected")
        .header("anthropic-ratelimit-unified-overage-disabled-reason", "org_level_disabled")
}

fn codex_limit() -> PlayTurn {
    let body = json!({ "error": {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": RESET.parse::<u64>().expect("a number"),
        "resets_in_seconds": 7200,
    } });
    codex_headers(PlayTurn::refuse(429, body), "100").always()
}

fn codex_near() -> PlayTurn {
    codex_headers(PlayTurn::say("Near the limit."), "87.5")
}

fn codex_headers(turn: PlayTurn, used: &str) -> PlayTurn {
    turn.header("x-codex-primary-used-percent", used)
        .header("x-codex-primary-window-minutes", "300")
        .header("x-codex-primary-reset-at", RESET)
        .header("x-codex-secondary-used-percent", "40")
        .header("x-codex-secondary-window-minutes", "10080")
        .header("x-codex-secondary-reset-at", RESET)
}

fn gemini_quota() -> PlayTurn {
    let body = json!({ "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_paid_tier_requests",
                "quotaId": "GenerateRequestsPerDayPerProjectPerModel",
                "quotaValue": "100",
            }],
        }],
    } });
    PlayTurn::refuse(429, body).always()
}

/// A wrong key is no 401 there.
fn gemini_key() -> PlayTurn {
    let body = json!({ "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": { "service": "generativelanguage.googleapis.com" },
        }],
    } });
    PlayTurn::refuse(400, body).always()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [out, rest @ ..] = args.as_slice() else {
        eprintln!("usage: record OUT [KIND [CASE]]");
        std::process::exit(2);
    };
    for case in cases() {
        let named = rest.first().is_none_or(|kind| kind == case.kind);
        if named && rest.get(1).is_none_or(|name| name == case.name) {
            record(Path::new(out), &case);
        }
    }
}

/// One agent in a home of its own.
struct Studio {
    folder: tempfile::TempDir,
    program: PathBuf,
    url: String,
}

fn record(out: &Path, case: &Case) {
    let began = Instant::now();
    let server = ModelServer::start();
    let url = server.play(case.kind, case.play.clone());
    let studio = Studio::new(case.kind, &url);
    let mut run = studio.run(&server, case, None);
    if case.way == Way::Resumed {
        let session = session(&run.out).expect("a session to resume");
        run = studio.run(&server, case, Some(&session));
    }
    let folder = out.join(case.kind);
    fs::create_dir_all(&folder).expect("a folder can be made");
    let mut stable = Stable::new(&studio);
    fs::write(folder.join(format!("{}.out", case.name)), stable.text(&run.out)).expect("written");
    if case.way == Way::SessionGone {
        // The one case that some of them tell on stderr alone.
        fs::write(folder.join(format!("{}.err", case.name)), stable.text(&run.err)).expect("written");
    }
    if let Some(aside) = studio.aside(case) {
        fs::write(folder.join(format!("{}.aside", case.name)), stable.text(&aside)).expect("written");
    }
    println!(
        "{:8} {:22} code {:4} {:6} bytes {:3} requests {:5.1} s",
        case.kind,
        case.name,
        run.code,
        run.out.len(),
        server.asked(case.kind).len(),
        began.elapsed().as_secs_f64()
    );
    for stray in server.strays() {
        println!("         stray: {stray}");
    }
}

struct Ran {
    code: String,
    out: String,
    err: String,
}

impl Studio {
    fn new(kind: &str, url: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("record-").tempdir().expect("a folder can be made");
        let studio = Self { folder, program: program(kind), url: url.to_owned() };
        for part in ["home", "project", "tmp"] {
            fs::create_dir(studio.folder.path().join(part)).expect("a folder can be made");
        }
        for args in [
            &["init", "-q", "-b", "main", "."][..],
            &["config", "user.name", "Agent"],
            &["config", "user.email", "agent@example.invalid"],
            &["commit", "-q", "--allow-empty", "-m", "begin"],
        ] {
            let status = studio.sealed("git").args(args).status().expect("git runs");
            assert!(status.success(), "git {args:?}");
        }
        let home = studio.folder.path().join("home");
        if kind == GEMINI {
            let settings = json!({
                "security": { "auth": { "selectedType": "gemini-api-key" } },
                "privacy": { "usageStatisticsEnabled": false },
                "general": { "enableAutoUpdate": false, "maxAttempts": 3 },
            });
            write(&home.join(".gemini/settings.json"), &settings.to_string());
        }
        if kind == OPENCODE {
            let settings = json!({
                "autoupdate": false,
                "share": "disabled",
                "model": "fake/fake-1",
                "provider": { "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": { "baseURL": format!("{url}/v1"), "apiKey": "dummy" },
                    "models": { "fake-1": { "cost": { "input": 3, "output": 15, "cache_read": 0.3 },
                                            "limit": { "context": 128_000, "output": 8000 } } },
                } },
            });
            write(&home.join(".config/opencode/opencode.json"), &settings.to_string());
        }
        studio
    }

    fn sealed(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder.path().join("project")).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path().join("home")).env("TMPDIR", self.folder.path().join("tmp"));
        command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command
    }

    fn run(&self, server: &ModelServer, case: &Case, resume: Option<&str>) -> Ran {
        let gone = "11111111-2222-4333-8444-555555555555";
        let resume = if case.way == Way::SessionGone { Some(gone) } else { resume };
        let mut command = self.sealed(&self.program);
        let model = case.env.iter().find(|(key, _)| *key == "RECORD_MODEL").map(|(_, value)| *value);
        let prompt = if resume.is_some() { "Add more to it." } else { "Add hello.txt." };
        match case.kind {
            CLAUDE => {
                command.envs([
                    ("IS_SANDBOX", "1"),
                    ("ANTHROPIC_API_KEY", "dummy"),
                    ("ANTHROPIC_BASE_URL", &self.url),
                    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                    ("DISABLE_AUTOUPDATER", "1"),
                    ("CLAUDE_CODE_MAX_RETRIES", "2"),
                ]);
                command.args(["-p", "--output-format", "stream-json", "--verbose"]);
                command.arg("--dangerously-skip-permissions");
                if case.way == Way::MaxTurns {
                    command.args(["--max-turns", "2"]);
                }
                if let Some(session) = resume {
                    command.args(["--resume", session]);
                }
                command.stdin(self.stdin(prompt));
            }
            CODEX => {
                command.env("FAKE_KEY", "dummy");
                command.args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox"]);
                command.args(["--disable", "plugins", "-c", "model_provider=fake", "-c"]);
                command.arg(format!("model={}", model.unwrap_or("gpt-5.5")));
                command.args([
                    "-c",
                    &format!(
                        "model_providers.fake={{name=\"fake\",base_url=\"{}/v1\",env_key=\"FAKE_KEY\",\
                         wire_api=\"responses\",request_max_retries=2,stream_max_retries=2}}",
                        self.url
                    ),
                ]);
                if let Some(session) = resume {
                    command.args(["resume", session]);
                }
                command.arg("-").stdin(self.stdin(prompt));
            }
            GEMINI => {
                command.envs([
                    ("GEMINI_API_KEY", "dummy"),
                    ("GOOGLE_GEMINI_BASE_URL", &self.url),
                    ("GEMINI_CLI_NO_RELAUNCH", "true"),
                ]);
                if case.way == Way::MaxTurns {
                    let path = self.folder.path().join("home/.gemini/settings.json");
                    let text = fs::read_to_string(&path).expect("it was written");
                    let mut settings: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                    settings["model"] = json!({ "maxSessionTurns": 2 });
                    write(&path, &settings.to_string());
                }
                command.args(["--skip-trust", "--approval-mode", "yolo", "-o", "stream-json"]);
                command.args(["-m", "gemini-2.5-pro"]);
                if let Some(session) = resume {
                    command.args(["--resume", session]);
                }
                command.stdin(self.stdin(prompt));
            }
            _ => {
                command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
                command.args(["run", "--format", "json", "--auto"]);
                if let Some(session) = resume {
                    let session = if session == gone { "ses_11111111222233334444555555" } else { session };
                    command.args(["--session", session]);
                }
                command.stdin(self.stdin(prompt));
            }
        }
        for (key, value) in case.env {
            if value.is_empty() {
                command.env_remove(key)
            } else {
                command.env(key, value)
            };
        }
        let path = |name: &str| self.folder.path().join(name);
        command.stdout(fs::File::create(path("out")).expect("a file can be made"));
        command.stderr(fs::File::create(path("err")).expect("a file can be made"));
        let mut child = command.spawn().expect("the agent runs");
        if case.way == Way::Terminated {
            server.wait(case.kind, 2, Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(500)); // it must be at rest; any moment is a fair one
            let _ = Command::new("kill").arg(child.id().to_string()).status(); // it has ended just now
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(5) && child.try_wait().expect("waitable").is_none() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill(); // some do not listen
        }
        let began = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().expect("waitable") {
                break status.to_string();
            }
            if began.elapsed() > Duration::from_secs(180) {
                child.kill().expect("our own child");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |name| String::from_utf8_lossy(&fs::read(path(name)).expect("it was made")).into_owned();
        Ran { code, out: read("out"), err: read("err") }
    }

    fn stdin(&self, prompt: &str) -> Stdio {
        let path = self.folder.path().join("prompt.md");
        write(&path, prompt);
        fs::File::open(path).expect("just written").into()
    }

    /// What the agent keeps of its session, where a parser has a use for it: the last lines of it.
    fn aside(&self, case: &Case) -> Option<String> {
        if case.kind != CODEX || !case.name.contains("limit-near") && !case.name.contains("usage-limit") {
            return None;
        }
        let mut open = vec![self.folder.path().join("home/.codex/sessions")];
        while let Some(at) = open.pop() {
            for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else if entry.path().extension().is_some_and(|it| it == "jsonl") {
                    let text = fs::read_to_string(entry.path()).expect("readable");
                    let lines: Vec<&str> = text.lines().collect();
                    let tail = &lines[lines.len().saturating_sub(8)..];
                    return Some(tail.join("\n") + "\n");
                }
            }
        }
        None
    }
}

fn program(kind: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(kind)).find(|program| program.exists());
    found.unwrap_or_else(|| panic!("`{kind}` is not in PATH"))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

/// The session an agent names in its output.
fn session(out: &str) -> Option<String> {
    out.lines().find_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).ok()?;
        let id = ["session_id", "thread_id", "sessionID"].into_iter().find_map(|key| event[key].as_str());
        id.map(str::to_owned)
    })
}

/// Makes what differs from run to run the same in every recording.
struct Stable {
    words: Vec<(String, String)>,
    ids: BTreeMap<String, String>,
}

impl Stable {
    fn new(studio: &Studio) -> Self {
        let root = studio.folder.path().display().to_string();
        let bin = studio.program.parent().expect("in a folder").display().to_string();
        let modules = studio.program.ancestors().nth(2).expect("in node_modules").display().to_string();
        let port =
            studio.url.split("/s/").next().unwrap_or_default().trim_start_matches("http://").to_owned();
        let mut words = vec![
            (format!("{root}/project"), "/home/person/project".to_owned()),
            (format!("{root}/home"), "/home/person".to_owned()),
            (format!("{root}/tmp"), "/home/person/tmp".to_owned()),
            (root.clone(), "/home/person".to_owned()),
            (bin, "/usr/local/bin".to_owned()),
            (modules, "/usr/local/lib/node_modules".to_owned()),
            (port, "127.0.0.1:4000".to_owned()),
        ];
        // A path as part of a folder's name.
        for (from, to) in words.clone() {
            words.push((from.replace(['/', '.'], "-"), to.replace(['/', '.'], "-")));
        }
        Self { words, ids: BTreeMap::new() }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.words {
            text = text.replace(from, to);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            if let Some(id) = rest.get(..36).filter(|id| is_uuid(id)) {
                let next = format!("00000000-0000-4000-8000-{:012}", self.ids.len() + 1);
                out += self.ids.entry(id.to_owned()).or_insert(next);
                rest = &rest[36..];
            } else if let Some(id) = rest.get(..30).filter(|id| is_opencode_id(id)) {
                let next = format!("{}{:026}", &id[..4], self.ids.len() + 1);
                out += self.ids.entry(id.to_owned()).or_insert(next);
                rest = &rest[30..];
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

fn is_opencode_id(text: &str) -> bool {
    ["ses_", "msg_", "prt_"].iter().any(|kind| text.starts_with(kind))
        && text[4..].bytes().all(|byte| byte.is_ascii_alphanumeric())
}
