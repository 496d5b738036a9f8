//! Starting an agent: its prompt, its environment, its sitter. Or adopting one that already runs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use landfall_agents::{Brief, Ear, Launch, LaunchError, Profile, registry};
use landfall_host::crash;
use landfall_host::git::Workspace;
use landfall_host::sitter::{self, FindError, Found, Sitting, Spec, StartError};
use landfall_model::{Attempt, EndedRun, Evidence, Exit, News, StepKind, StepName, Task};

use crate::follow::{Followed, Follower};
use crate::gate;
use crate::patience::abandon;
use crate::perform::lower;
use crate::prompts::PromptContext;
use crate::site::{self, Site};

/// One run of an agent.
pub(crate) struct Run {
    /// Within this attempt.
    pub attempt: Attempt,
    /// Which.
    pub iteration: u32,
    /// Of this step.
    pub step: StepName,
    /// The hard limit.
    pub deadline_ms: u64,
}

/// Starts the agent, or adopts it. The folder of the run is the fence: there is never a second sitter in it.
pub(crate) fn launch(site: &Arc<Site>, follower: &Follower, task: &Arc<Task>, run: &Run) {
    let dir = site.folder.iteration(task.id, run.attempt, run.iteration);
    let marker = marker(site, &dir);
    let mut found = settled(&dir);
    if matches!(found, Ok(Found::Never)) {
        if site.is_stopped(task.id, run.attempt) {
            return ended(site, task, run, Exit::Asked);
        }
        match begin(site, task, run, &dir, &marker) {
            Ok(Some(sitting)) => {
                crash::point("spawn.found");
                return follower.follow(followed(site, task, run, &dir, Some(sitting)));
            }
            Ok(None) => found = settled(&dir),
            Err(Unlaunched::Hopeless(detail)) => {
                return ended(site, task, run, Exit::NotStarted { detail, hopeless: true });
            }
            Err(Unlaunched::Machine(detail)) => return failed(site, task, run, detail),
        }
    }
    match found {
        Ok(Found::Running(_) | Found::Ended(_)) => {
            crash::point("spawn.found");
            follower.follow(followed(site, task, run, &dir, None));
        }
        Ok(Found::Never | Found::Starting | Found::Vanished) => {
            abandon(&dir, &marker);
            ended(site, task, run, Exit::Lost);
        }
        Err(error) => {
            // The next attempt works in the same workspace, so whoever is in this folder must not go on.
            abandon(&dir, &marker);
            failed(site, task, run, error.to_string());
        }
    }
}

/// What became of the sitter of `dir`, once it has had the time to say who it is.
pub(crate) fn settled(dir: &Path) -> Result<Found, FindError> {
    const TRIES: u32 = 400; // ten seconds: each look takes twenty milliseconds of its own
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 0..TRIES {
        match sitter::find(dir)? {
            Found::Starting => std::thread::sleep(PAUSE),
            found => return Ok(found),
        }
    }
    Ok(Found::Starting)
}

fn failed(site: &Site, task: &Task, run: &Run, detail: String) {
    site.tell(task.id, News::MachineFailed { attempt: run.attempt, detail, hopeless: false });
}

fn ended(site: &Site, task: &Task, run: &Run, exit: Exit) {
    let head_after = head_of(site, task);
    let evidence = Evidence { head_before: task.seen_head.clone(), head_after, ..Evidence::default() };
    let news = EndedRun {
        attempt: run.attempt,
        iteration: run.iteration,
        exit,
        seen: Vec::new(),
        evidence,
        took_ms: 0,
    };
    site.tell(task.id, News::AgentEnded(news));
}

/// Where the task's branch stands; for evidence, read without a process.
pub(crate) fn head_of(site: &Site, task: &Task) -> Option<landfall_model::Commit> {
    let workspace = site.pool.existing(&task.id.to_string())?;
    site.store.workspace_head(&workspace).map(|oid| site::commit(&oid))
}

fn followed(site: &Site, task: &Arc<Task>, run: &Run, dir: &Path, sitting: Option<Sitting>) -> Followed {
    let profile = profile_of(site, task);
    let kind = profile.as_ref().map_or("command", |profile| profile.kind.as_str());
    let agent = registry::find(kind)
        .or_else(|_| registry::find("command"))
        .expect("`command` is always there")
        .agent();
    Followed {
        task: task.clone(),
        attempt: run.attempt,
        iteration: run.iteration,
        dir: dir.to_owned(),
        sitting,
        deadline_ms: run.deadline_ms,
        parser: agent.parser(&Ear::default()),
    }
}

enum Unlaunched {
    /// A person has to change something.
    Hopeless(String),
    /// It may pass.
    Machine(String),
}

impl From<LaunchError> for Unlaunched {
    fn from(error: LaunchError) -> Self {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self::Hopeless(format!("{error}{hint}"))
    }
}

/// The profile a task is worked on with.
pub(crate) fn profile_of(site: &Site, task: &Task) -> Option<Profile> {
    let name = task.spec.agent.as_deref().unwrap_or("default");
    let profile = site.settings.agents.get(name)?;
    Some(Profile {
        name: name.to_owned(),
        kind: profile.kind.clone(),
        run: profile.run.clone(),
        script: profile.script.as_ref().map(|path| path.to_string_lossy().into_owned()),
        model: profile.model.clone(),
        effort: None,
        turns_max: None,
        flags: profile.flags.clone(),
        env: profile.env.clone(),
    })
}

/// Starts the sitter and says who it is; none if there is one in the folder already.
fn begin(
    site: &Site,
    task: &Task,
    run: &Run,
    dir: &Path,
    marker: &str,
) -> Result<Option<Sitting>, Unlaunched> {
    let io = |what: &str, error: std::io::Error| Unlaunched::Machine(format!("{what}: {error}"));
    let profile = profile_of(site, task).ok_or_else(|| {
        let name = task.spec.agent.as_deref().unwrap_or("default");
        Unlaunched::Hopeless(format!(
            "no agent profile `{name}` in landfall.toml: add an [agent.{name}] section"
        ))
    })?;
    let workspace = site
        .pool
        .existing(&task.id.to_string())
        .ok_or_else(|| Unlaunched::Machine("the workspace is gone".to_owned()))?;
    let prompt = prompt(site, task, run, &workspace).map_err(Unlaunched::Hopeless)?;
    std::fs::create_dir_all(dir).map_err(|error| io("make the folder of the run", error))?;
    let prompt_file = dir.join("prompt.md");
    std::fs::write(&prompt_file, &prompt).map_err(|error| io("write the prompt", error))?;
    let script_text = match &profile.script {
        Some(path) => Some(std::fs::read_to_string(site.repo.root().join(path)).map_err(|error| {
            Unlaunched::Hopeless(format!("read the script `{path}` of profile `{}`: {error}", profile.name))
        })?),
        None => None,
    };
    let agent = registry::find(&profile.kind)
        .map_err(|error| Unlaunched::Hopeless(format!("{error} ({})", error.hint())))?
        .agent();
    let brief = Brief {
        task: task.id.to_string(),
        title: task.spec.title.clone(),
        body: task.spec.body.clone(),
        iteration: task.counters.runs,
        attempt: run.attempt.0,
        step: run.step.to_string(),
        prompt,
        workspace: workspace.path().to_owned(),
        prompt_file,
        attempt_dir: dir.to_owned(),
        nonce: marker.to_owned(),
        signal_socket: dir.join("signal.sock"),
        resume: None,
        session: String::new(),
        tmp: std::env::temp_dir(),
        profile,
        script_text,
        program: site.program.clone(),
    };
    let Launch { argv, env, stdin, files } = agent.launch(&brief)?;
    for (path, bytes) in files {
        std::fs::write(&path, bytes).map_err(|error| io("write a file of the run", error))?;
    }
    let settings = &site.settings.run;
    let spec = Spec {
        argv,
        cwd: workspace.path().to_owned(),
        env: with(&site.env, env),
        stdin,
        deadline_ms: run.deadline_ms,
        grace_ms: settings.grace_ms,
        out_cap: settings.output_cap,
        marker: marker.to_owned(),
    };
    crash::point("spawn.before");
    let sitting = match sitter::start(&site.program, dir, &spec) {
        Ok(sitting) => Some(sitting),
        Err(StartError::AlreadyStarted { .. }) => None,
        Err(StartError::Spec { problem }) => return Err(Unlaunched::Hopeless(problem.to_owned())),
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            return Err(Unlaunched::Machine(format!("{error}{cause}")));
        }
    };
    crash::point("spawn.after");
    Ok(sitting)
}

fn prompt(site: &Site, task: &Task, run: &Run, workspace: &Workspace) -> Result<String, String> {
    let step = task.flow.as_ref().and_then(|flow| flow.step(&run.step));
    let (name, outputs) = match step.map(|step| &step.kind) {
        Some(StepKind::Agent { prompt, output, .. }) => (prompt.as_str(), output.clone()),
        _ => return Err(format!("step `{}` has no prompt", run.step)),
    };
    // The agent is told the checks it will be judged by. A section that cannot be read is the gate's to tell.
    let verify = match gate::verify_section(site, workspace.base()) {
        Ok(Ok(section)) => section.commands.iter().map(|it| it.run.clone()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let context = PromptContext {
        task: task.id.to_string(),
        title: task.spec.title.clone(),
        body: task.spec.body.clone(),
        criteria: task.spec.criteria.clone(),
        iteration: run.iteration,
        iterations_max: task.limits.iterations_max,
        attempt: run.attempt.0,
        step: run.step.to_string(),
        workspace: workspace.path().to_string_lossy().into_owned(),
        branch: format!("landfall/{}", lower(task.id)),
        base: site.branch.as_str().to_owned(),
        feedback: task.feedback.iter().map(|it| (it.about.clone(), it.text.clone())).collect(),
        verify_commands: verify,
        outputs,
    };
    site.prompts.render(name, &context).map_err(|error| error.to_string())
}

/// Names every process of a run, so that what a dead sitter leaves behind can be found.
pub(crate) fn marker(site: &Site, dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = blake3::hash(site.folder.root().as_os_str().as_bytes()).to_hex();
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    format!("{}/{name}", &folder.as_str()[..12])
}

/// The variables an agent or a check may have, besides those a person names. Credentials are not among them.
const SAFE: [&str; 19] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "JAVA_HOME",
    "NODE_PATH",
];

/// Picks from the engine's environment what agents and checks may have.
pub(crate) fn safe_environment(all: &[(OsString, OsString)], named: &[String]) -> Vec<(OsString, OsString)> {
    let allowed = |key: &OsStr| {
        key.to_str().is_some_and(|key| {
            SAFE.contains(&key) || key.starts_with("LC_") || named.iter().any(|name| name == key)
        })
    };
    let mut env: Vec<_> = all.iter().filter(|(key, _)| allowed(key)).cloned().collect();
    env.push(("TERM".into(), "dumb".into()));
    env.push(("CI".into(), "true".into()));
    env
}

/// The environment with these added; the later one of a name wins.
pub(crate) fn with(
    env: &[(OsString, OsString)],
    more: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> =
        env.iter().filter(|(key, _)| !more.iter().any(|(name, _)| name == key)).cloned().collect();
    all.extend(more);
    all
}
