//! One prompt through a profile, outside of any task: a question to an agent. It runs as any agent does, by a sitter and
//! in the sandbox, on ground that is thrown away afterwards, and within what may be spent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_agents::{Agent, LaunchCommand, LaunchRequest, OutputParser, ParserContext, SideFile, registry};
use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::git::{Git, Oid, Repo, Signature, Store, WorkspacePool};
use landfall_host::sitter::{
    self, EndCause, SignalSpec, SitterProcess, SitterSpec, SitterState, SitterStream, SpoolReader,
};
use landfall_host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_model::liveness::{self, AgentActivity, LivenessLimits, LivenessSample, RepetitionDetector};
use landfall_model::{
    AgentExit, AgentRunEvidence, AgentUsage, Budget, BudgetScope, BudgetUse as _, Signal, Spending,
    UsageCounter, Verdict, judge,
};

use crate::agent_run::agent_profile;
use crate::caches::CacheAccess;
use crate::confine::{self, ConfinementScope};
use crate::environment::{extend_environment, safe_environment, variable};
use crate::folder::StateFolder;
use crate::patience::{abandon_run, wait_for_end};
use crate::run_folder::{key_and_session, write_private};
use crate::settings::{ProfileSettings, Settings};
use crate::vitals::{AgentState, AgentVitals};

/// What to ask, and where.
pub(crate) struct ConsultRequest<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// The profile.
    pub profile: &'a ProfileSettings,
    /// The root of the project.
    pub root: &'a Path,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: &'a Path,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// What the agent works on.
    pub ground: ConsultWorkspace<'a>,
    /// What it is for, in a word.
    pub about: &'a str,
    /// Which time it is asked, from 1.
    pub round: u32,
    /// How long it may take.
    pub limit: Duration,
    /// What it may spend; `None` of a bound is no bound.
    pub budgets: Vec<(BudgetScope, Budget, Spending)>,
    /// How many bytes of its output are kept.
    pub out_cap: u64,
    /// Whether whoever asked has left.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// What the agent works on. Nothing it does there is kept.
#[derive(Clone, Copy)]
pub(crate) enum ConsultWorkspace<'a> {
    /// A repository with nothing in it: some agents will not work elsewhere.
    Empty,
    /// A checkout of this commit.
    Checkout(&'a Repo, &'a Oid),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConsultReply {
    /// What we make of it.
    pub verdict: Verdict,
    /// What it said, a message or a line each; the last, if it was too much.
    pub texts: Vec<String>,
    /// The last it said.
    pub words: String,
    /// The last line of its errors.
    pub complaint: String,
    /// The model it used.
    pub model: Option<String>,
    /// What it used.
    pub usage: AgentUsage,
    /// How long it took.
    pub took_ms: u64,
}

const MARGIN: Duration = Duration::from_secs(20); // for a sitter to hunt down what the agent left
const LOOK: Duration = Duration::from_millis(30);
const READ_MAX: usize = 1 << 20; // of each output at a look
const TEXTS_BYTES_MAX: usize = 4 << 20; // far more than any answer
const COMPLAINT_CHARS_MAX: usize = 300; // a line or two for a person

/// Asks. `prompt` makes the prompt, told where the agent works.
///
/// # Errors
/// Why it could not even be tried.
pub(crate) fn consult_agent(
    question: &ConsultRequest<'_>,
    prompt: &dyn Fn(&Path) -> Result<String, String>,
) -> Result<ConsultReply, String> {
    let scratch = ScratchFolder::create().map_err(|error| format!("make a scratch folder: {error}"))?;
    let PreparedConsultation { spec, agent, profile, ear } =
        prepare_consultation(question, &scratch, prompt)?;
    let dir = scratch.run_path();
    let sitting = sitter::start_sitter(question.program, &dir, &spec).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })?;
    let mut listener = ConsultListener::new(&dir, &*agent, &ear, profile.model.clone());
    let exit = wait_for_agent(question, &dir, &spec, &sitting, &mut listener);
    listener.read_rest(&spec, &*agent, &profile);
    let unanswered = listener.unanswered_ms.is_some();
    let model_wait_ms =
        listener.unanswered_ms.unwrap_or_else(|| liveness::lifeless_ms(&listener.current_pulse()));
    let evidence = AgentRunEvidence {
        closes: agent.has_closing_message(),
        unanswered,
        model_wait_ms,
        ..AgentRunEvidence::default()
    };
    Ok(ConsultReply {
        verdict: judge(&listener.seen, &exit, &evidence),
        words: listener.tally.last_words().to_owned(),
        complaint: listener.last_error_line(),
        model: listener.tally.model().map(str::to_owned),
        usage: AgentUsage {
            at_least: listener.calls_model && !listener.has_finished(),
            ..listener.tally.total_usage(&question.settings.prices)
        },
        took_ms: listener.took_ms(),
        texts: listener.texts,
    })
}

/// A folder of its own, given up at the end.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(crate) fn create() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let (name, _) = key_and_session()?;
        let folder = confine::tmp_root()?.join(&name[..16]);
        let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        make(&folder)?;
        let scratch = Self(folder);
        for folder in [scratch.run_path(), scratch.tmp_path()] {
            make(&folder)?;
        }
        Ok(scratch)
    }

    pub(crate) fn run_path(&self) -> PathBuf {
        self.0.join("run")
    }

    pub(crate) fn tmp_path(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Makes the ground: where the agent works, and what it must be able to read besides.
    pub(crate) fn prepare_work_folder(
        &self,
        ground: ConsultWorkspace<'_>,
    ) -> Result<(PathBuf, Vec<PathBuf>), String> {
        let git = Git::find_installed().map_err(|error| error.full_message())?;
        match ground {
            ConsultWorkspace::Empty => {
                let work = self.0.join("work");
                std::fs::create_dir(&work).map_err(|error| format!("make a scratch folder: {error}"))?;
                let branch = "main".parse().expect("a good name");
                let by = Signature::for_engine(SystemClock.now_ms());
                Repo::create(&git, &work, &branch, "Nothing yet", &by).map_err(|error| error.to_string())?;
                Ok((work, Vec::new()))
            }
            ConsultWorkspace::Checkout(repo, commit) => {
                let store = self.borrowing_store(&git, repo)?;
                // It borrows from the user's repository, which is hidden but for this folder.
                let objects = [store.dir(), repo.common_dir()].map(|dir| dir.join("objects")).to_vec();
                let pool = WorkspacePool::open(&store, &self.0.join("work"))
                    .map_err(|error| error.full_message())?;
                let workspace =
                    pool.prepare_workspace("look", commit, "look").map_err(|error| error.full_message())?;
                Ok((workspace.path().to_owned(), objects))
            }
        }
    }

    /// A store of its own that borrows the person's objects: nothing is copied, and the project's store is not touched.
    fn borrowing_store(&self, git: &Git, repo: &Repo) -> Result<Store, String> {
        use std::os::unix::ffi::OsStrExt as _;
        let store =
            Store::open(git, &self.0.join("store.git"), repo).map_err(|error| error.full_message())?;
        let theirs = repo.common_dir().join("objects");
        let mut alternates = theirs.as_os_str().as_bytes().to_vec();
        if alternates.contains(&b'\n') {
            return Err(format!("git cannot borrow from `{}`", theirs.display()));
        }
        alternates.push(b'\n');
        let info = store.dir().join("objects/info");
        let lend = || -> std::io::Result<()> {
            std::fs::create_dir_all(&info)?;
            std::fs::write(info.join("alternates"), &alternates)?;
            match std::fs::read(repo.common_dir().join("shallow")) {
                Ok(bytes) => std::fs::write(store.dir().join("shallow"), bytes),
                Err(_) => Ok(()), // it is whole
            }
        };
        lend().map_err(|error| format!("borrow from `{}`: {error}", theirs.display()))?;
        Ok(store)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what is left is in the folder for temporary files
    }
}

struct PreparedConsultation {
    spec: SitterSpec,
    agent: Box<dyn Agent>,
    profile: landfall_agents::LaunchProfile,
    ear: ParserContext,
}

fn prepare_consultation(
    question: &ConsultRequest<'_>,
    scratch: &ScratchFolder,
    prompt: &dyn Fn(&Path) -> Result<String, String>,
) -> Result<PreparedConsultation, String> {
    let io = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let profile = agent_profile(question.profile);
    let agent = registry::find_agent(&profile.kind).map_err(|error| error.to_string())?.create_agent();
    let (key, session) = key_and_session().map_err(|error| io("make a key", error))?;
    let (dir, tmp) = (scratch.run_path(), scratch.tmp_path());
    let (work, objects) = scratch.prepare_work_folder(question.ground)?;
    let prompt = prompt(&work)?;
    let env = safe_environment(question.environment, &question.settings.run.env);
    let prompt_file = dir.join("prompt.md");
    write_private(&prompt_file, prompt.as_bytes()).map_err(|error| io("write the prompt", error))?;
    let script_text = match &profile.script {
        Some(path) => Some(
            read_user_text(&question.root.join(path), USER_FILE_BYTES_MAX)
                .map_err(|error| format!("read the script `{path}`: {error}"))?,
        ),
        None => None,
    };
    let socket = dir.join("signal.sock");
    let brief = LaunchRequest {
        task: "T0".to_owned(),
        title: format!("A {}", question.about),
        body: String::new(),
        iteration: question.round,
        attempt: 1,
        step: question.about.to_owned(),
        step_run: question.round,
        prompt,
        workspace: work.clone(),
        prompt_file: prompt_file.clone(),
        attempt_dir: dir.clone(),
        nonce: key.clone(),
        signal_socket: socket.clone(),
        dispatched: false,
        resume: None,
        session,
        tmp: tmp.clone(),
        profile: profile.clone(),
        script_text,
        program: question.program.to_owned(),
    };
    let named = |name: &OsString| question.profile.pass_env.iter().any(|it| *name == **it);
    let passed = question.environment.iter().filter(|(name, _)| named(name)).cloned().collect();
    let home = variable(&env, "HOME").map(PathBuf::from);
    let mut reach = ConfinementScope {
        confinement: question.profile.sandbox,
        // The shared git folder as well: only its objects, which hold the history, are opened below.
        checkout: confine::checkout_at(question.root),
        work: work.clone(),
        tmp,
        own: agent.list_requirements(&profile).state,
        read: vec![prompt_file],
        caches: CacheAccess::default(), // it looks and answers, and builds nothing
    };
    reach.read.extend(objects);
    confine::make_state(home.as_deref(), &reach.own);
    let LaunchCommand { argv, env: mut own, stdin, files } =
        agent.build_launch_command(&brief).map_err(|error| error.to_string())?;
    own.push(("PWD".into(), work.as_os_str().to_owned()));
    for (path, bytes) in files {
        std::fs::write(&path, bytes).map_err(|error| io("write a file of the run", error))?;
        reach.read.push(path);
    }
    let spec = SitterSpec {
        argv,
        cwd: work,
        env: extend_environment(&extend_environment(&env, passed), own),
        stdin,
        sandbox: confine::build_sandbox_from_settings(
            &question.settings.run,
            question.folder,
            question.environment,
            &reach,
        ),
        signal: Some(SignalSpec { socket, key: key.clone() }),
        deadline_ms: u64::try_from(question.limit.as_millis()).unwrap_or(u64::MAX),
        grace_ms: question.settings.run.grace_ms.min(3_000),
        out_cap: question.out_cap,
        marker: format!("{}/{}", question.about, &key[..16]),
    };
    Ok(PreparedConsultation {
        spec,
        agent,
        profile,
        ear: ParserContext { nonce: key, ..ParserContext::default() },
    })
}

/// Waits for the end, which the sitter brings about; should that fail, we do. An agent that has spent what there was, or
/// that nobody waits for any more, is ended.
fn wait_for_agent(
    question: &ConsultRequest<'_>,
    dir: &Path,
    spec: &SitterSpec,
    sitting: &SitterProcess,
    listener: &mut ConsultListener,
) -> AgentExit {
    let mut deadline = Instant::now() + question.limit + Duration::from_millis(spec.grace_ms) + MARGIN;
    let mut told: Option<AgentExit> = None;
    let mut watch = None;
    loop {
        match sitter::find_sitter(dir) {
            Ok(SitterState::Ended(ended)) => {
                return match (ended.cause, ended.exit) {
                    (_, sitter::ChildExit::NotStarted { message, denied, .. }) => {
                        AgentExit::NotStarted { detail: message, hopeless: denied }
                    }
                    (EndCause::Asked, _) => told.unwrap_or(AgentExit::Asked),
                    (EndCause::Deadline, _) => AgentExit::Silent,
                    (EndCause::Own, sitter::ChildExit::Code(code)) => AgentExit::Code(code),
                    (EndCause::Own, sitter::ChildExit::Signal(signal)) => AgentExit::Signal(signal),
                };
            }
            Ok(SitterState::Starting | SitterState::Running(_)) if Instant::now() < deadline => {
                listener.read_output();
                listener.check_vitals(sitting, &question.settings.run.watch);
                let enough = match (listener.find_exhausted_budget(question), listener.class) {
                    (Some((scope, what)), _) => Some(AgentExit::OverBudget { scope, what }),
                    (None, _) if (question.is_stopped)() => Some(AgentExit::Asked),
                    (None, Some(AgentActivity::Dead | AgentActivity::Unanswered)) => Some(AgentExit::Silent),
                    (None, Some(AgentActivity::Looping)) => Some(AgentExit::Looping),
                    (None, Some(_) | None) => None,
                };
                if let (None, Some(enough)) = (&told, enough) {
                    // What it does while it ends is no sign of life.
                    let watch = &question.settings.run.watch;
                    let wait_ms = liveness::model_wait_ms(&listener.current_pulse(), watch);
                    let is_unanswered =
                        enough == AgentExit::Silent && listener.class == Some(AgentActivity::Unanswered);
                    listener.unanswered_ms = Some(wait_ms).filter(|_| is_unanswered);
                    told = Some(enough);
                    deadline = Instant::now() + Duration::from_millis(spec.grace_ms) + MARGIN;
                    let _ = sitter::stop_sitter(sitting, sitter::StopMode::Gently); // gone already is as good; else it is abandoned
                }
                wait_for_end(&mut watch, sitting, LOOK); // its end is heard at once; what it writes is looked for
            }
            // A folder that cannot be read right now says nothing about the agent.
            Err(error) if error.is_shortage() && Instant::now() < deadline => {
                wait_for_end(&mut watch, sitting, LOOK);
            }
            Ok(
                SitterState::Never | SitterState::Vanished | SitterState::Starting | SitterState::Running(_),
            )
            | Err(_) => {
                abandon_run(dir, &spec.marker);
                return AgentExit::Lost;
            }
        }
    }
}

/// Hears what the agent writes while it writes it.
struct ConsultListener {
    began: Instant,
    clock: SystemClock,
    vitals: AgentVitals,
    calls_model: bool,
    closes: bool,
    echo: RepetitionDetector,
    asking: bool,
    /// What it was at when it was last looked at.
    class: Option<AgentActivity>,
    /// How long it had waited for its model when it was ended for that.
    unanswered_ms: Option<u64>,
    out: SpoolReader,
    err: SpoolReader,
    parser: Box<dyn OutputParser + Send>,
    tally: UsageCounter,
    seen: Vec<Signal>,
    texts: Vec<String>,
    texts_bytes: usize,
    errors: Vec<u8>,
}

impl ConsultListener {
    fn new(dir: &Path, agent: &dyn Agent, ear: &ParserContext, model: Option<String>) -> Self {
        let mut tally = UsageCounter::default();
        tally.hear(&Signal::Started { session: None, model });
        let follow = |stream| SpoolReader::new(dir, stream, 0);
        let calls_model = agent.calls_model();
        Self {
            began: Instant::now(),
            clock: SystemClock,
            vitals: AgentVitals::for_new_run(SystemClock.mono_ms(), calls_model),
            calls_model,
            closes: agent.has_closing_message(),
            echo: RepetitionDetector::default(),
            asking: false,
            class: None,
            unanswered_ms: None,
            out: follow(SitterStream::Out),
            err: follow(SitterStream::Err),
            parser: agent.create_parser(ear),
            tally,
            seen: Vec::new(),
            texts: Vec::new(),
            texts_bytes: 0,
            errors: Vec::new(),
        }
    }

    /// Takes in what is new; whether there may be more.
    fn read_output(&mut self) -> bool {
        let out = self.out.read(READ_MAX).unwrap_or_default();
        let err = self.err.read(READ_MAX).unwrap_or_default();
        let more = !out.is_empty() || !err.is_empty();
        let now = self.clock.mono_ms();
        let signals = self.parser.feed(landfall_agents::AgentStream::Out, &out);
        let is_life = match self.calls_model {
            true => !self.parser.was_only_status() && liveness::is_answer(&signals),
            false => liveness::is_life(&signals),
        };
        if !out.is_empty() && is_life {
            self.vitals.note_output(now);
        }
        self.note_signals(signals);
        let signals = self.parser.feed(landfall_agents::AgentStream::Err, &err);
        if !err.is_empty() && !self.calls_model && liveness::is_life(&signals) {
            self.vitals.note_output(now);
        }
        self.note_signals(signals);
        let keep = self.errors.len().saturating_sub(COMPLAINT_CHARS_MAX * 16);
        self.errors.drain(..keep);
        self.errors.extend(err);
        more
    }

    fn note_signals(&mut self, signals: Vec<Signal>) {
        for signal in signals {
            self.tally.hear(&signal);
            self.echo.hear(&signal);
            self.asking = match &signal {
                Signal::PermissionAsked { .. } | Signal::Question(_) => true,
                Signal::ToolUse { .. } | Signal::ToolDone | Signal::Text(_) => false,
                _ => self.asking,
            };
            match signal {
                Signal::Text(text) => self.push_text(text),
                // Its text is kept with the other texts, and not twice.
                Signal::Finished { how, text } => {
                    self.push_text(text);
                    self.seen.push(Signal::Finished { how, text: String::new() });
                }
                other => self.seen.push(other),
            }
        }
    }

    fn push_text(&mut self, text: String) {
        self.texts_bytes += text.len();
        self.texts.push(text);
        while self.texts_bytes > TEXTS_BYTES_MAX && self.texts.len() > 1 {
            self.texts_bytes -= self.texts.remove(0).len();
        }
    }

    /// Whether it said its closing word, in which all that it used is reported.
    fn has_finished(&self) -> bool {
        self.seen.iter().any(|signal| matches!(signal, Signal::Finished { .. }))
    }

    /// Looks for signs of life, if it is time. Its checkout is thrown away, so changes there are none.
    fn check_vitals(&mut self, sitting: &SitterProcess, watch: &LivenessLimits) {
        let now = self.clock.mono_ms();
        if self.vitals.is_due(now, watch) {
            self.vitals.note_activity(now, sitter::measure_activity(sitting), 0, watch);
            self.class = Some(liveness::classify_activity(&self.current_pulse(), watch));
        }
    }

    fn current_pulse(&self) -> LivenessSample {
        let agent = AgentState {
            tools_open: self.tally.tools_open(),
            asking: self.asking,
            echoes: if self.closes { self.echo.repeat_count() } else { 0 },
        };
        self.vitals.current_pulse(self.clock.mono_ms(), agent)
    }

    /// The agent has ended: the rest is heard.
    fn read_rest(&mut self, spec: &SitterSpec, agent: &dyn Agent, profile: &landfall_agents::LaunchProfile) {
        while self.read_output() {}
        let session = self.seen.iter().rev().find_map(|signal| match signal {
            Signal::Started { session, .. } => session.clone(),
            _ => None,
        });
        if let Some(SideFile { root, suffix }) = session.and_then(|id| agent.session_side_file(profile, &id))
        {
            let home = variable(&spec.env, "HOME").map(PathBuf::from);
            let bytes = confine::expand_home(home.as_deref(), &root)
                .and_then(|root| crate::session_file::read_newest_tail(&root, &suffix));
            let signals = self.parser.feed(landfall_agents::AgentStream::Aside, &bytes.unwrap_or_default());
            self.note_signals(signals);
        }
        let signals = self.parser.finish();
        self.note_signals(signals);
    }

    /// The budget that is used up, and how much of how much.
    fn find_exhausted_budget(&self, question: &ConsultRequest<'_>) -> Option<(BudgetScope, String)> {
        let usage = self.tally.total_usage(&question.settings.prices);
        question.budgets.iter().find_map(|(scope, budget, before)| {
            let spent = before.plus(Spending { usage, time_ms: self.took_ms() });
            Some((*scope, budget.describe_used_up(spent)?))
        })
    }

    fn took_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn last_error_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.errors);
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.trim().chars().take(COMPLAINT_CHARS_MAX).collect()
    }
}
