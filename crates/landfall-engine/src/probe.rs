//! One tiny prompt through a profile, for real: whether its agent answers. It runs as any agent does, by a sitter and in
//! the sandbox, in a scratch folder and without a task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_agents::{Aside, Brief, Ear, Launch, registry};
use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::git::{Git, Repo, Signature};
use landfall_host::sitter::{self, Cause, Follow, Found, SignalSpec, Spec, Stream};
use landfall_model::{Evidence, Exit, Signal, Tally, Usage, Verdict, judge};

use crate::confine::{self, Reach};
use crate::folder::StateFolder;
use crate::launch::{agent_profile, key_and_session, safe_environment, with, write_private};
use crate::patience::abandon;
use crate::settings::{Profile, Settings};

/// What to probe, and where.
pub struct ProbeAsked<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// The profile.
    pub profile: &'a Profile,
    /// The root of the project.
    pub root: &'a Path,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: PathBuf,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// How long it may take.
    pub limit: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// What we make of it: [`Verdict::Continue`] is an answer.
    pub verdict: Verdict,
    /// The last it said.
    pub words: String,
    /// The last line of its errors.
    pub complaint: String,
    /// The model it used.
    pub model: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// How long it took.
    pub took_ms: u64,
}

/// What it is asked.
const PROMPT: &str = "Answer with the word landfall and nothing else. Use no tools, change no files.\n";

const OUT_CAP: u64 = 4 << 20; // a word and what a protocol says around it
const MARGIN: Duration = Duration::from_secs(20); // for a sitter to hunt down what the agent left
const LOOK: Duration = Duration::from_millis(30);

/// Runs the tiny prompt.
///
/// # Errors
/// Why it could not even be tried.
pub fn probe(asked: &ProbeAsked<'_>) -> Result<Probed, String> {
    let scratch = Scratch::make().map_err(|error| format!("make a scratch folder: {error}"))?;
    let prepared = prepare(asked, &scratch)?;
    let began = Instant::now();
    let dir = scratch.run();
    sitter::start(&asked.program, &dir, &prepared.spec).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })?;
    let exit = wait(&dir, &prepared.spec, asked.limit);
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(heard(asked, prepared, &dir, &exit, took_ms))
}

/// A folder of its own, given up at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let (name, _) = key_and_session()?;
        confine::make_own(&confine::tmp_root())?;
        let folder = confine::tmp_root().join(&name[..16]);
        let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        make(&folder)?;
        let scratch = Self(folder);
        for folder in [scratch.run(), scratch.work(), scratch.tmp()] {
            make(&folder)?;
        }
        Ok(scratch)
    }

    fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    fn tmp(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0)); // what is left is in the folder for temporary files
    }
}

struct Prepared {
    spec: Spec,
    agent: Box<dyn landfall_agents::Agent>,
    profile: landfall_agents::Profile,
    ear: Ear,
}

fn prepare(asked: &ProbeAsked<'_>, scratch: &Scratch) -> Result<Prepared, String> {
    let io = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let profile = agent_profile(asked.profile);
    let agent = registry::find(&profile.kind).map_err(|error| error.to_string())?.agent();
    let (key, session) = key_and_session().map_err(|error| io("make a key", error))?;
    let (dir, work, tmp) = (scratch.run(), scratch.work(), scratch.tmp());
    let env = safe_environment(asked.environment, &asked.settings.run.env);
    repository(&work)?;
    let prompt_file = dir.join("prompt.md");
    write_private(&prompt_file, PROMPT.as_bytes()).map_err(|error| io("write the prompt", error))?;
    let script_text = match &profile.script {
        Some(path) => Some(
            std::fs::read_to_string(asked.root.join(path))
                .map_err(|error| format!("read the script `{path}`: {error}"))?,
        ),
        None => None,
    };
    let socket = dir.join("signal.sock");
    let brief = Brief {
        task: "T0".to_owned(),
        title: "A probe".to_owned(),
        body: String::new(),
        iteration: 1,
        attempt: 1,
        step: "probe".to_owned(),
        prompt: PROMPT.to_owned(),
        workspace: work.clone(),
        prompt_file: prompt_file.clone(),
        attempt_dir: dir.clone(),
        nonce: key.clone(),
        signal_socket: socket.clone(),
        resume: None,
        session,
        tmp: tmp.clone(),
        profile: profile.clone(),
        script_text,
        program: asked.program.clone(),
    };
    let named = |name: &OsString| asked.profile.pass_env.iter().any(|it| *name == **it);
    let passed = asked.environment.iter().filter(|(name, _)| named(name)).cloned().collect();
    let home = env.iter().find(|(key, _)| key == "HOME").map(|(_, home)| PathBuf::from(home));
    let mut reach = Reach {
        confinement: asked.profile.sandbox,
        work: work.clone(),
        tmp,
        own: agent.needs(&profile).state,
        read: vec![prompt_file],
    };
    confine::make_state(home.as_deref(), &reach.own);
    let Launch { argv, env: mut own, stdin, files } =
        agent.launch(&brief).map_err(|error| error.to_string())?;
    own.push(("PWD".into(), work.as_os_str().to_owned()));
    for (path, bytes) in files {
        std::fs::write(&path, bytes).map_err(|error| io("write a file of the probe", error))?;
        reach.read.push(path);
    }
    let spec = Spec {
        argv,
        cwd: work,
        env: with(&with(&env, passed), own),
        stdin,
        sandbox: confine::around(&asked.settings.run, asked.folder, home.as_deref(), &reach),
        signal: Some(SignalSpec { socket, key: key.clone() }),
        deadline_ms: u64::try_from(asked.limit.as_millis()).unwrap_or(u64::MAX),
        grace_ms: asked.settings.run.grace_ms.min(3_000),
        out_cap: OUT_CAP,
        marker: format!("probe/{}", &key[..16]),
    };
    Ok(Prepared { spec, agent, profile, ear: Ear { nonce: key, ..Ear::default() } })
}

/// A workspace is a repository, and some agents will not work elsewhere.
fn repository(work: &Path) -> Result<(), String> {
    let git = Git::find().map_err(|error| error.full())?;
    let branch = "main".parse().expect("a good name");
    let by = Signature::landfall(SystemClock.now_ms());
    Repo::create(&git, work, &branch, "Nothing yet", &by).map(drop).map_err(|error| error.to_string())
}

/// Waits for the end, which the sitter brings about; should that fail, we do.
fn wait(dir: &Path, spec: &Spec, limit: Duration) -> Exit {
    let deadline = Instant::now() + limit + Duration::from_millis(spec.grace_ms) + MARGIN;
    loop {
        match sitter::find(dir) {
            Ok(Found::Ended(ended)) => {
                return match (ended.cause, ended.exit) {
                    (_, sitter::Exit::NotStarted { message, denied, .. }) => {
                        Exit::NotStarted { detail: message, hopeless: denied }
                    }
                    (Cause::Deadline | Cause::Asked, _) => Exit::Silent,
                    (Cause::Own, sitter::Exit::Code(code)) => Exit::Code(code),
                    (Cause::Own, sitter::Exit::Signal(signal)) => Exit::Signal(signal),
                };
            }
            Ok(Found::Starting | Found::Running(_)) if Instant::now() < deadline => {
                std::thread::sleep(LOOK);
            }
            Ok(Found::Never | Found::Vanished | Found::Starting | Found::Running(_)) | Err(_) => {
                abandon(dir, &spec.marker);
                return Exit::Lost;
            }
        }
    }
}

fn heard(asked: &ProbeAsked<'_>, prepared: Prepared, dir: &Path, exit: &Exit, took_ms: u64) -> Probed {
    let Prepared { agent, profile, ear, spec } = prepared;
    let read = |stream| {
        let most = usize::try_from(OUT_CAP).unwrap_or(usize::MAX);
        Follow::new(dir, stream, 0).read(most).unwrap_or_default()
    };
    let (out, err) = (read(Stream::Out), read(Stream::Err));
    let mut parser = agent.parser(&ear);
    let mut seen = parser.feed(landfall_agents::Stream::Out, &out);
    seen.extend(parser.feed(landfall_agents::Stream::Err, &err));
    let session = seen.iter().rev().find_map(|signal| match signal {
        Signal::Started { session, .. } => session.clone(),
        _ => None,
    });
    if let Some(Aside { root, suffix }) = session.and_then(|id| agent.aside(&profile, &id)) {
        let home = spec.env.iter().find(|(key, _)| key == "HOME").map(|(_, home)| PathBuf::from(home));
        let bytes = confine::expand(home.as_deref(), &root)
            .and_then(|root| crate::follow::kept_aside(&root, &suffix));
        seen.extend(parser.feed(landfall_agents::Stream::Aside, &bytes.unwrap_or_default()));
    }
    seen.extend(parser.finish());
    let mut tally = Tally::default();
    tally.hear(&Signal::Started { session: None, model: profile.model });
    seen.iter().for_each(|signal| tally.hear(signal));
    let evidence = Evidence { closes: agent.closes(), ..Evidence::default() };
    let complaint = String::from_utf8_lossy(&err);
    let complaint = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    const WORDS_MAX: usize = 300; // a line or two for a person
    Probed {
        verdict: judge(&seen, exit, &evidence),
        words: tally.words().trim().chars().take(WORDS_MAX).collect(),
        complaint: complaint.trim().chars().take(WORDS_MAX).collect(),
        model: tally.model().map(str::to_owned),
        usage: tally.usage(&asked.settings.prices),
        took_ms,
    }
}
