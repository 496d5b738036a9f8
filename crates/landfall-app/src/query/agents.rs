//! The agents there are: which programs are installed, what each profile would run, and whether it answers.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landfall_agents::registry::{self, AGENTS};
use landfall_agents::{AgentRequirements, LaunchRequest};
use landfall_api::{
    AgentKind, AgentProfile, AgentsAsked, AgentsFound, ProbeAnswer, Probed, Problem, ProblemCode,
    nearest_word,
};
use landfall_engine::host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_engine::host::wait::wait_for_child;
use landfall_engine::model::Verdict;
use landfall_engine::secrets::is_secret;
use landfall_engine::settings::{ProfileSettings, Settings};
use landfall_engine::{ProbeRequest, TerminalError, agent_profile, check_terminal, engine};
use rustix::process::{Pid, Signal};

use landfall_text::quote_shell_word;

use crate::project::engine_at::EngineLocation;
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems, trust};
use crate::query::extra_usage;
use crate::query::start_blockers::StartBlockers;

/// Every kind, and what each profile of the project would run.
pub(crate) fn find_agents(
    place: &ProjectLocation,
    asked: &AgentsAsked,
    probe: bool,
) -> Result<AgentsFound, Problem> {
    let settings = engine::load_settings(&place.root).map_err(|error| problems::open(&error))?;
    if let Some(name) = &asked.profile
        && !settings.agents.contains_key(name)
    {
        return Err(unknown_profile_problem(&settings, name));
    }
    if probe {
        trust::check_trust(place, &settings)?; // it starts them
    }
    let kinds = list_agent_kinds();
    let wanted = |name: &str| asked.profile.as_deref().is_none_or(|only| only == name);
    let profiles: Vec<&ProfileSettings> = settings.agents.values().filter(|it| wanted(&it.name)).collect();
    // Each probe is a process that mostly waits, so they wait together.
    let found = std::thread::scope(|scope| {
        let looks: Vec<_> = profiles
            .iter()
            .map(|profile| scope.spawn(|| inspect_profile(place, &settings, profile, probe)))
            .collect();
        looks.into_iter().map(|look| look.join().expect("looking does not panic")).collect()
    });
    Ok(AgentsFound { kinds, profiles: found })
}

pub(crate) fn unknown_profile_problem(settings: &Settings, name: &str) -> Problem {
    let known: Vec<&str> = settings.agents.keys().map(String::as_str).collect();
    let hint = match (known.is_empty(), nearest_word(&known, name)) {
        (true, _) => "add an `[agent.default]` section to landfall.toml".to_owned(),
        (false, Some(near)) => format!("did you mean `{near}`?"),
        (false, None) => format!("known: {}", known.join(", ")),
    };
    Problem::new(ProblemCode::AgentMissing, format!("landfall.toml has no agent profile `{name}`"))
        .with_hint(hint)
}

/// Every kind there is, with what is installed of it.
pub(crate) fn list_agent_kinds() -> Vec<AgentKind> {
    std::thread::scope(|scope| {
        let looks: Vec<_> = AGENTS.iter().map(|entry| scope.spawn(|| kind(entry))).collect();
        looks.into_iter().map(|look| look.join().expect("looking does not panic")).collect()
    })
}

fn kind(entry: &registry::AgentEntry) -> AgentKind {
    let profile = landfall_agents::LaunchProfile {
        name: entry.name.to_owned(),
        kind: entry.name.to_owned(),
        ..landfall_agents::LaunchProfile::default()
    };
    let AgentRequirements { program, version_args, install, login, .. } =
        entry.create_agent().list_requirements(&profile);
    let path = program.as_deref().and_then(find_on_path);
    let (version, problem) = match (&path, version_args) {
        (None, _) | (_, []) => (None, None),
        (Some(path), args) => match read_version(path, args) {
            Ok(version) => (Some(version), None),
            Err(problem) => (None, Some(problem)),
        },
    };
    AgentKind {
        kind: entry.name.to_owned(),
        about: entry.about.to_owned(),
        program,
        path: path.map(|path| path.display().to_string()),
        version,
        problem,
        install: install.to_owned(),
        login: login.to_owned(),
    }
}

/// Where a program is, if it is there and can be run.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    let path = std::env::var_os("PATH")?;
    // A relative entry, an empty one included, would take a program of the repository for one of the user's.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|path| runs(path))
}

const VERSION_TIME_MAX: Duration = Duration::from_secs(30); // the slowest of them takes two, and ten times that under load
const VERSION_BYTES_MAX: u64 = 16 * 1024;
const VERSION_CHARS_MAX: usize = 80;

/// What a program says its version is: the first line it writes.
fn read_version(program: &Path, args: &[&str]) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/") // programs read settings where they are started, and those of a checkout may be somebody else's
        .process_group(0) // a wrapper may start another program, which has to end with it
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let group = Pid::from_child(&child);
    let out = child.stdout.take().expect("piped");
    let (send, receive) = mpsc::channel();
    // Not joined: what escapes from the group could hold the pipe open for ever.
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = out.take(VERSION_BYTES_MAX).read_to_end(&mut text); // what was read counts
        let _ = send.send(text); // nobody waits any more
    });
    let text = receive.recv_timeout(VERSION_TIME_MAX);
    if text.is_ok() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let _ = wait_for_child(&mut child, deadline); // it is killed in a moment
    }
    rustix::process::kill_process_group(group, Signal::KILL).ok(); // gone already is as good
    let _ = child.wait(); // it was killed
    let text = text.map_err(|_| format!("no answer within {} s", VERSION_TIME_MAX.as_secs()))?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.ok_or_else(|| "it says nothing when asked for its version".to_owned())?;
    Ok(line.chars().take(VERSION_CHARS_MAX).collect())
}

fn inspect_profile(
    place: &ProjectLocation,
    settings: &Settings,
    profile: &ProfileSettings,
    probe: bool,
) -> AgentProfile {
    let mut found = AgentProfile {
        profile: profile.name.clone(),
        kind: profile.kind.clone(),
        model: profile.model.clone(),
        effort: profile.effort.clone(),
        style: profile.style.word().to_owned(),
        account: profile.account.clone(),
        failover: profile.failover.clone(),
        sandbox: profile.sandbox.word().to_owned(),
        path: None,
        command: None,
        problem: None,
        hint: None,
        probe: None,
    };
    match check_profile(profile) {
        Ok(path) => found.path = path.map(|path| path.display().to_string()),
        Err(ProfileProblem { problem, hint }) => (found.problem, found.hint) = (Some(problem), Some(hint)),
    }
    match profile_command_line(place, profile) {
        Ok(command) => found.command = Some(command),
        Err(ProfileProblem { problem, hint }) => {
            found.hint.get_or_insert(hint);
            found.problem.get_or_insert(problem);
        }
    }
    if probe && found.problem.is_none() {
        found.probe = Some(probe_profile(place, settings, profile));
    }
    found
}

/// Why a profile cannot work, and what to do about it.
pub(crate) struct ProfileProblem {
    pub problem: String,
    pub hint: String,
}

/// Whether a profile could work, as far as that is known without trying, and where its program is.
pub(crate) fn check_profile(profile: &ProfileSettings) -> Result<Option<PathBuf>, ProfileProblem> {
    let name = &profile.name;
    let entry = registry::find_agent(&profile.kind)
        .map_err(|unknown| ProfileProblem { problem: unknown.to_string(), hint: unknown.hint() })?;
    let brief = agent_profile(profile);
    let agent = entry.create_agent();
    agent.check_profile(&brief).map_err(|error| ProfileProblem {
        problem: error.to_string(),
        hint: error.hint().unwrap_or_else(|| format!("mend `[agent.{name}]` in landfall.toml")),
    })?;
    let needs = agent.list_requirements(&brief);
    check_terminal(name, &needs, profile.sandbox)
        .map_err(|TerminalError { problem, hint }| ProfileProblem { problem, hint: hint.to_owned() })?;
    let Some(program) = needs.program else { return Ok(None) };
    match find_on_path(&program) {
        Some(path) => Ok(Some(path)),
        None => Err(ProfileProblem {
            problem: format!("`{program}` is not on the PATH"),
            hint: format!("to install it: {}; or change `[agent.{name}]`", needs.install),
        }),
    }
}

/// The command line of a profile, as a shell would read it. What differs from run to run is written in capitals.
fn profile_command_line(
    place: &ProjectLocation,
    profile: &ProfileSettings,
) -> Result<String, ProfileProblem> {
    let unfit = |problem: String, hint: Option<String>| ProfileProblem {
        problem,
        hint: hint.unwrap_or_else(|| format!("mend `[agent.{}]` in landfall.toml", profile.name)),
    };
    let entry =
        registry::find_agent(&profile.kind).map_err(|error| unfit(error.to_string(), Some(error.hint())))?;
    let script_text = match &profile.script {
        Some(path) => Some(
            read_user_text(&place.root.join(path), USER_FILE_BYTES_MAX)
                .map_err(|error| unfit(format!("read the script `{}`: {error}", path.display()), None))?,
        ),
        None => None,
    };
    let brief = LaunchRequest {
        task: "TASK".to_owned(),
        title: "TITLE".to_owned(),
        body: String::new(),
        iteration: 1,
        attempt: 1,
        step: "STEP".to_owned(),
        step_run: 1,
        prompt: "PROMPT".to_owned(),
        workspace: "WORKSPACE".into(),
        prompt_file: "PROMPT_FILE".into(),
        attempt_dir: "RUN".into(),
        nonce: "KEY".to_owned(),
        signal_socket: "SOCKET".into(),
        dispatched: false,
        resume: None,
        session: "SESSION".to_owned(),
        tmp: "TMP".into(),
        profile: agent_profile(profile),
        script_text,
        program: "landfall".into(),
    };
    let launch = entry
        .create_agent()
        .build_launch_command(&brief)
        .map_err(|error| unfit(error.to_string(), error.hint()))?;
    let secrets: BTreeSet<&str> =
        profile.env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.as_str()).collect();
    let mut words: Vec<String> = Vec::new();
    // Whole configurations are handed on in variables, keys included: no value is shown.
    words.extend(profile.env.keys().map(|name| format!("{name}={HIDDEN}")));
    let mut hide_next = false;
    for word in &launch.argv {
        let word = format_argument(word, &secrets, std::mem::take(&mut hide_next));
        hide_next = word.starts_with('-') && !word.contains('=') && is_secret(&word);
        words.push(word);
    }
    if let Some(stdin) = &launch.stdin {
        words.push(format!("< {}", quote_shell_word(&stdin.to_string_lossy())));
    }
    Ok(words.join(" "))
}

const HIDDEN: &str = "…";

/// An argument for a shell, without what nobody should read over a shoulder.
fn format_argument(word: &OsStr, secrets: &BTreeSet<&str>, hide: bool) -> String {
    if hide {
        return HIDDEN.to_owned();
    }
    let mut text = word.to_string_lossy().into_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, HIDDEN);
    }
    match text.split_once('=') {
        Some((name, _)) if name.starts_with('-') && is_secret(name) => format!("{name}={HIDDEN}"),
        Some(_) | None => quote_shell_word(&text),
    }
}

const PROBE_TIME_MAX: Duration = Duration::from_secs(60); // a slow model takes ten, a slow start another ten

/// What of the day's budget is used up. A journal that cannot be read is no leave to spend.
fn exhausted_budget(place: &ProjectLocation) -> Option<String> {
    let holds = match place.open_reader() {
        Ok(Some(reader)) => StartBlockers::load_current(place, &EngineLocation::locate(place), &reader),
        Ok(None) => return None,
        Err(problem) => Err(problem),
    };
    match holds {
        Ok(holds) => holds.spent.map(|spent| spent.what),
        Err(problem) => Some(problem.to_string()),
    }
}

/// Runs a tiny prompt through a profile.
fn probe_profile(place: &ProjectLocation, settings: &Settings, profile: &ProfileSettings) -> Probed {
    let environment: Vec<(OsString, OsString)> = place.engine_environment();
    let asked = ProbeRequest {
        settings,
        profile,
        root: &place.root,
        folder: &place.folder,
        program: crate::project::open_engine::own_executable(),
        environment: &environment,
        limit: PROBE_TIME_MAX,
    };
    let failed = |detail: String| Probed {
        answer: ProbeAnswer::Failed,
        detail,
        until_ms: None,
        model: None,
        took_ms: 0,
        usage: landfall_api::Usage::default(),
    };
    if let Some(what) = exhausted_budget(place) {
        return failed(format!("the day's budget is used up ({what}), so no agent starts"));
    }
    let probed = match landfall_engine::probe_agent(&asked) {
        Ok(probed) => probed,
        Err(problem) => return failed(problem),
    };
    // The answer is worth telling even where the project has no ledger it could be written to.
    let _ = extra_usage::note_extra_usage(place, ("probe", &profile.name), probed.usage, probed.took_ms);
    let said = |detail: &str| match (probed.words.as_str(), probed.complaint.as_str()) {
        ("", "") => detail.to_owned(),
        ("", complaint) => format!("{detail}: {complaint}"),
        (words, _) => format!("{detail}: {words}"),
    };
    let (answer, detail, until_ms) = match &probed.verdict {
        Verdict::Complete | Verdict::Continue if probed.words.is_empty() => {
            (ProbeAnswer::Failed, said("it ended well without a word"), None)
        }
        Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. } | Verdict::Pending { .. } => {
            (ProbeAnswer::Answers, probed.words.clone(), None)
        }
        Verdict::Blocked { reason } => (ProbeAnswer::Answers, reason.clone(), None),
        Verdict::Quota { until } => (ProbeAnswer::UsedUp, String::new(), until.map(|until| until.0)),
        Verdict::Transient { detail } => (ProbeAnswer::Trouble, detail.clone(), None),
        Verdict::Unauthorized { detail } => (ProbeAnswer::WantsLogin, detail.clone(), None),
        Verdict::Stalled | Verdict::OutOfTime | Verdict::Stopped => {
            let within = format!("it did not end within {} s", PROBE_TIME_MAX.as_secs());
            match probed.words.is_empty() && probed.complaint.is_empty() {
                true => (ProbeAnswer::Silent, within, None),
                false => (ProbeAnswer::Failed, said(&within), None),
            }
        }
        Verdict::Crashed { detail } => (ProbeAnswer::Failed, said(detail), None),
        Verdict::NotStarted { detail, .. } => (ProbeAnswer::Failed, detail.clone(), None),
        Verdict::SessionGone
        | Verdict::Looping
        | Verdict::OverBudget { .. }
        | Verdict::ContextUsedUp
        | Verdict::Lost => (ProbeAnswer::Failed, said("it vanished"), None),
    };
    let usage = conversions::to_api_usage(probed.usage);
    Probed { answer, detail, until_ms, model: probed.model, took_ms: probed.took_ms, usage }
}

#[cfg(test)]
mod tests {
    use super::{format_argument, is_secret};

    #[test]
    fn what_looks_like_a_secret_is_known_by_its_name() {
        for name in
            ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "--api-key", "DB_PASSWORD", "OPENAI_APIKEY", "MY_AUTH"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["MODEL", "KEYBOARD", "TOKENIZER", "MAX_TOKENS", "MONKEY", "--keep", "AUTHOR"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_and_secrets_are_left_out() {
        let secrets = std::collections::BTreeSet::from(["sk-1"]);
        assert_eq!(format_argument("--header=x sk-1".as_ref(), &secrets, false), "'--header=x …'");
        assert_eq!(format_argument("--api-key=abc".as_ref(), &secrets, false), "--api-key=…");
        assert_eq!(format_argument("abc".as_ref(), &secrets, true), "…");
    }
}
