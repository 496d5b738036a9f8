//! Starting an agent: its prompt, its environment, its sitter. Or adopting one that already runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use landfall_agents::registry::{self, UnknownAgent};
use landfall_agents::{AgentRequirements, LaunchCommand, LaunchError, LaunchRequest, ParserContext};
use landfall_host::crash;
use landfall_host::git::Workspace;
use landfall_host::sandbox::can_isolate;
use landfall_host::sitter::{
    self, FindError, SignalSpec, SitterProcess, SitterSpec, SitterState, StartError, is_shortage,
};
use landfall_host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_model::audit;
use landfall_model::issue::IssueRef;
use landfall_model::objective::{Refinement, RefinementStatus};
use landfall_model::proof::Proof;
use landfall_model::{
    AgentExit, AgentRunEvidence, AgentRunTraces, AgentUsage, Attempt, EndedRun, News, PastRun, SessionStart,
    StepKind, StepName, Task, Verdict,
};

use crate::agent_run::{
    DISPATCH, head_of, is_dispatched, is_reader_run, profile_name, profile_of, runs_own_loop,
    sitter_limit_ms, workspace_name,
};
use crate::confine::{self, ConfinementScope};
use crate::environment::{add_program_to_path, extend_environment};
use crate::errand::error_chain;
use crate::exchange::{SPEC, spec_of};
use crate::follow::{FollowTarget, Follower};
use crate::gate;
use crate::guard::{self, ConfigFingerprints};
use crate::handover;
use crate::host_context::HostContext;
use crate::journal_link;
use crate::module;
use crate::papers;
use crate::patience::abandon_run;
use crate::ports;
use crate::prompts::PromptContext;
use crate::reader_workspace::{BaseFinder, take_room};
use crate::recovering;
use crate::run_folder::{key_and_session, run_marker, wait_until_settled, write_private};
use crate::settings::Confinement;
use crate::step_outputs::missing_outputs;

/// One run of an agent.
pub(crate) struct AgentLaunch<'a> {
    /// Within this attempt.
    pub attempt: Attempt,
    /// Which.
    pub iteration: u32,
    /// Of this step.
    pub step: StepName,
    /// The hard limit.
    pub deadline_ms: u64,
    /// What it begins with.
    pub talk: SessionStart,
    /// For the workspace of a reader.
    pub find_base: BaseFinder<'a>,
}

/// Starts the agent, or adopts it. The folder of the run is the fence: there is never a second sitter in it.
pub(crate) fn launch_agent(site: &HostContext, follower: &Follower, task: &Arc<Task>, run: &AgentLaunch<'_>) {
    let dir = site.folder.iteration_path(task.id, run.attempt, run.iteration);
    let marker = run_marker(site, &dir);
    if let Err(error) = journal_link::set_foreign_run_aside(&site.folder, &dir, &site.journal_id) {
        return report_launch_failure(
            site,
            task,
            run,
            format!("move a run of an older journal aside: {error}"),
        );
    }
    let Some(mut found) = settled_when_readable(site, &dir) else { return }; // the engine ends: the next one looks again
    if !matches!(found, Ok(SitterState::Never)) && !is_reader_run(task) && gate::is_rebuilt(site, task) {
        // Whatever this run called done was done in a folder that is no more.
        abandon_run(&dir, &marker);
        return report_run_end(site, task, run, AgentExit::Lost);
    }
    if matches!(found, Ok(SitterState::Never)) {
        if site.is_stopped(task.id, run.attempt) {
            return report_run_end(site, task, run, AgentExit::Asked);
        }
        match begin_agent_run(site, task, run, &dir, &marker) {
            Ok(Some(sitting)) => {
                crash::pass_point("spawn.found");
                return follow_when_readable(site, follower, task, run, &dir, Some(sitting));
            }
            Ok(None) => match settled_when_readable(site, &dir) {
                Some(settled) => found = settled,
                None => return, // as above
            },
            Err(LaunchFailure::Hopeless(detail)) => {
                return report_run_end(site, task, run, AgentExit::NotStarted { detail, hopeless: true });
            }
            Err(LaunchFailure::Stopped) => return report_run_end(site, task, run, AgentExit::Asked),
            // What failed was ended with it.
            Err(LaunchFailure::Machine(_)) if site.is_stopped(task.id, run.attempt) => {
                return report_run_end(site, task, run, AgentExit::Asked);
            }
            Err(LaunchFailure::Machine(detail)) => return report_launch_failure(site, task, run, detail),
        }
    }
    match found {
        Ok(SitterState::Running(_) | SitterState::Ended(_)) => {
            crash::pass_point("spawn.found");
            follow_when_readable(site, follower, task, run, &dir, None);
        }
        Ok(SitterState::Never | SitterState::Starting | SitterState::Vanished) => {
            abandon_run(&dir, &marker);
            report_run_end(site, task, run, AgentExit::Lost);
        }
        Err(error) => {
            // The next attempt works in the same workspace, so whoever is in this folder must not go on.
            abandon_run(&dir, &marker);
            report_launch_failure(site, task, run, error_chain(&error));
        }
    }
}

/// [`settled`], asked again while this process is short of what looking takes. A run that cannot be looked at is not gone:
/// to give it up would end a live agent. None: the engine ends before it can look.
fn settled_when_readable(site: &HostContext, dir: &Path) -> Option<Result<SitterState, FindError>> {
    loop {
        match wait_until_settled(dir) {
            Err(error) if error.is_shortage() => {
                site.shortages.note_failure(&error_chain(&error));
                if site.interrupted.wait(SHORTAGE_PAUSE) {
                    return None;
                }
            }
            settled => return Some(settled),
        }
    }
}

/// Follows a run as soon as its record can be read. Without the record its signals would not be understood.
fn follow_when_readable(
    site: &HostContext,
    follower: &Follower,
    task: &Arc<Task>,
    run: &AgentLaunch<'_>,
    dir: &Path,
    sitting: Option<SitterProcess>,
) {
    loop {
        match LaunchRecord::read(dir) {
            Err(error) if is_shortage(&error) => {
                site.shortages.note_failure(&format!("read the record of a run: {error}"));
                if site.interrupted.wait(SHORTAGE_PAUSE) {
                    return; // the engine ends: the next one adopts the run
                }
            }
            record => {
                let record = record.ok().flatten();
                return match prepare_follow_target(site, task, run, dir, sitting, record) {
                    Ok(followed) => follower.follow_agent(followed),
                    Err(unknown) => {
                        // What it writes cannot be read: nothing that it does may count.
                        abandon_run(dir, &run_marker(site, dir));
                        let detail = match unknown.given.as_str() {
                            "" => "the record of the run is gone, and so is its profile".to_owned(),
                            _ => format!("{unknown}; {}", unknown.hint()),
                        };
                        report_run_end(site, task, run, AgentExit::NotStarted { detail, hopeless: true });
                    }
                };
            }
        }
    }
}

/// How long to wait before a run is looked at again that could not be looked at for lack of a resource.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);

fn report_launch_failure(site: &HostContext, task: &Task, run: &AgentLaunch<'_>, detail: String) {
    confine::remove_tmp(&site.folder.iteration_path(task.id, run.attempt, run.iteration));
    site.send_news(task.id, News::MachineFailed { attempt: run.attempt, detail, hopeless: false });
}

fn report_run_end(site: &HostContext, task: &Task, run: &AgentLaunch<'_>, exit: AgentExit) {
    confine::remove_tmp(&site.folder.iteration_path(task.id, run.attempt, run.iteration));
    let head_after = head_of(site, task);
    // Nothing was written in a run that nobody saw.
    let missing = missing_outputs(site, task, i64::MAX);
    let evidence = AgentRunEvidence {
        head_before: task.seen_head.clone(),
        head_after,
        missing,
        ..AgentRunEvidence::default()
    };
    let news = EndedRun {
        attempt: run.attempt,
        iteration: run.iteration,
        exit,
        seen: Vec::new(),
        evidence,
        took_ms: 0,
        usage: AgentUsage::default(),
        traces: AgentRunTraces::default(),
        climbed: None,
    };
    site.send_news(task.id, News::AgentEnded(recovering::attach_recovery(site, task, news)));
}

fn prepare_follow_target(
    site: &HostContext,
    task: &Arc<Task>,
    run: &AgentLaunch<'_>,
    dir: &Path,
    sitting: Option<SitterProcess>,
    record: Option<LaunchRecord>,
) -> Result<FollowTarget, UnknownAgent> {
    let profile = profile_of(site, task).unwrap_or_default();
    let known = record.is_some();
    let LaunchRecord { kind, ear, sandbox, mut guard } = record.unwrap_or_else(|| LaunchRecord {
        kind: profile.kind.clone(),
        ear: ParserContext::default(),
        sandbox: Confinement::Off,
        guard: ConfigFingerprints::new(),
    });
    let agent = registry::find_agent(&kind)?.create_agent();
    if !known {
        guard =
            guard::fingerprint_configs(&confine::own_state(site, &agent.list_requirements(&profile).state));
    }
    Ok(FollowTarget {
        task: task.clone(),
        attempt: run.attempt,
        iteration: run.iteration,
        dir: dir.to_owned(),
        sitting,
        deadline_ms: run.deadline_ms,
        parser: agent.create_parser(&ear),
        agent,
        profile,
        sandbox,
        guard,
    })
}

/// What has to be known of a run when it is adopted: the first engine wrote it beside the prompt.
struct LaunchRecord {
    kind: String,
    ear: ParserContext,
    sandbox: Confinement,
    /// The agent's own settings as they were.
    guard: ConfigFingerprints,
}

const RECORD: &str = "run.json";

impl LaunchRecord {
    fn write(&self, dir: &Path) -> std::io::Result<()> {
        let ParserContext { nonce, resumed, before } = &self.ear;
        let record = serde_json::json!({
            "version": 1,
            "kind": self.kind,
            "key": nonce,
            "resumed": resumed,
            "before": {
                "tokens_in": before.tokens_in,
                "tokens_cached": before.tokens_cached,
                "tokens_out": before.tokens_out,
                "turns": before.turns,
                "micro_usd": before.micro_usd,
                "micro_usd_priced": before.micro_usd_priced,
            },
            "sandbox": self.sandbox.word(),
            "guard": self.guard,
        });
        write_private(&dir.join(RECORD), record.to_string().as_bytes())
    }

    /// None: there is no record that can be understood. An error: it cannot be read now.
    fn read(dir: &Path) -> std::io::Result<Option<Self>> {
        match std::fs::read_to_string(dir.join(RECORD)) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let record: serde_json::Value = serde_json::from_str(text).ok()?;
        let figure = |name: &str| record["before"][name].as_u64().unwrap_or(0);
        Some(Self {
            kind: record["kind"].as_str()?.to_owned(),
            ear: ParserContext {
                nonce: record["key"].as_str()?.to_owned(),
                resumed: record["resumed"].as_bool()?,
                before: AgentUsage {
                    tokens_in: figure("tokens_in"),
                    tokens_cached: figure("tokens_cached"),
                    tokens_out: figure("tokens_out"),
                    turns: figure("turns"),
                    micro_usd: figure("micro_usd"),
                    micro_usd_priced: figure("micro_usd_priced"),
                    ..AgentUsage::default()
                },
            },
            sandbox: Confinement::from_word(record["sandbox"].as_str()?)?,
            guard: serde_json::from_value(record["guard"].clone()).unwrap_or_default(),
        })
    }
}

enum LaunchFailure {
    /// A person has to change something.
    Hopeless(String),
    /// It may pass.
    Machine(String),
    /// A person wants it to end before it has begun.
    Stopped,
}

impl From<LaunchError> for LaunchFailure {
    fn from(error: LaunchError) -> Self {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self::Hopeless(format!("{error}{hint}"))
    }
}

/// Why an agent cannot have the terminal that it works in.
#[derive(Debug)]
pub struct TerminalError {
    /// What is wrong.
    pub problem: String,
    /// What the user can do.
    pub hint: &'static str,
}

/// Checks that an agent that works in a terminal has one at this level of the sandbox.
///
/// # Errors
/// The level has no terminals.
pub fn check_terminal(
    profile: &str,
    needs: &AgentRequirements,
    level: Confinement,
) -> Result<(), TerminalError> {
    if !needs.terminal || level.has_terminals() {
        return Ok(());
    }
    let problem = format!(
        "the agent profile `{profile}` works in a terminal, and the sandbox level `{}` has no terminals",
        level.word()
    );
    let hint = if can_isolate() {
        "remove `sandbox = \"write\"`: at level `isolated` the agent has a terminal of its own"
    } else {
        "allow user namespaces on this machine, so that the level is `isolated`, or use a kind of agent that needs no terminal; \
         `landfall doctor` says what is missing"
    };
    Err(TerminalError { problem, hint })
}

/// Starts the sitter and says who it is; none if there is one in the folder already.
fn begin_agent_run(
    site: &HostContext,
    task: &Task,
    run: &AgentLaunch<'_>,
    dir: &Path,
    marker: &str,
) -> Result<Option<SitterProcess>, LaunchFailure> {
    let io = |what: &str, error: std::io::Error| LaunchFailure::Machine(format!("{what}: {error}"));
    let profile = profile_of(site, task).ok_or_else(|| {
        let name = profile_name(task);
        LaunchFailure::Hopeless(format!(
            "no agent profile `{name}` in landfall.toml: add an [agent.{name}] section"
        ))
    })?;
    let workspace = match is_reader_run(task) {
        true => take_room(site, task, run.attempt, run.iteration, run.find_base)
            .map_err(LaunchFailure::Machine)?,
        false => site
            .pool
            .find_workspace(&workspace_name(task))
            .ok_or_else(|| LaunchFailure::Machine("the workspace is gone".to_owned()))?,
    };
    // Whoever worked here before has ended, perhaps in the middle of a git command.
    workspace.heal_locks().map_err(|error| io("remove stale locks of the workspace", error))?;
    let (key, session) = key_and_session().map_err(|error| io("make a key", error))?;
    let agent = registry::find_agent(&profile.kind)
        .map_err(|error| LaunchFailure::Hopeless(format!("{error} ({})", error.hint())))?
        .create_agent();
    let level = site.settings.agents[profile_name(task)].sandbox;
    check_terminal(&profile.name, &agent.list_requirements(&profile), level)
        .map_err(|TerminalError { problem, hint }| LaunchFailure::Hopeless(format!("{problem} ({hint})")))?;
    let tag_key = agent.has_closing_message().then_some(key.as_str());
    let prompt = build_prompt(site, task, run, &workspace, tag_key).map_err(LaunchFailure::Hopeless)?;
    std::fs::create_dir_all(dir).map_err(|error| io("make the folder of the run", error))?;
    journal_link::note_head(&site.folder, site.end.head());
    journal_link::mark_run(dir, &site.journal_id).map_err(|error| io("mark the folder of the run", error))?;
    let prompt_file = dir.join("prompt.md");
    write_private(&prompt_file, prompt.as_bytes()).map_err(|error| io("write the prompt", error))?;
    let tmp = confine::make_tmp(dir).map_err(|error| io("make a folder for temporary files", error))?;
    let script_text = match &profile.script {
        Some(path) => {
            Some(read_user_text(&site.repo.root().join(path), USER_FILE_BYTES_MAX).map_err(|error| {
                LaunchFailure::Hopeless(format!(
                    "read the script `{path}` of profile `{}`: {error}",
                    profile.name
                ))
            })?)
        }
        None => None,
    };
    let resume = match &run.talk {
        SessionStart::New => None,
        SessionStart::Resumed { session, .. } => Some(session.clone()),
    };
    let settings = &site.settings.agents[profile_name(task)];
    let before = task.session.as_ref().filter(|_| resume.is_some()).map(|it| it.usage).unwrap_or_default();
    let ear = ParserContext { nonce: key.clone(), resumed: resume.is_some(), before };
    let guard =
        guard::fingerprint_configs(&confine::own_state(site, &agent.list_requirements(&profile).state));
    let record = LaunchRecord { kind: profile.kind.clone(), ear, sandbox: settings.sandbox, guard };
    record.write(dir).map_err(|error| io("write the record of the run", error))?;
    let passed: Vec<_> = site
        .environment
        .iter()
        .filter(|(name, _)| settings.pass_env.iter().any(|it| *name == **it))
        .cloned()
        .collect();
    let passed = extend_environment(&site.env, passed);
    let (run_settings, room) = (&site.settings.run, workspace.caches_path());
    let caches = confine::prepare_run_caches(run_settings, &site.folder, &passed, settings.sandbox, &room)
        .map_err(|error| io("make the caches of the workspace ready", error))?;
    confine::log_cache_notices(site, &caches);
    let cache_env = caches.env.clone();
    let mut reach = ConfinementScope {
        confinement: settings.sandbox,
        checkout: confine::checkout_of(&site.repo),
        work: workspace.path().to_owned(),
        tmp: tmp.clone(),
        own: agent.list_requirements(&profile).state,
        read: vec![prompt_file.clone()],
        caches,
    };
    let socket = dir.join("signal.sock");
    let brief = LaunchRequest {
        task: task.id.to_string(),
        title: task.spec.title.clone(),
        body: task.spec.body.clone(),
        iteration: task.counters.runs,
        attempt: run.attempt.0,
        step: run.step.to_string(),
        step_run: task.counters.step_runs.get(&run.step).copied().unwrap_or(1),
        prompt,
        workspace: workspace.path().to_owned(),
        prompt_file,
        attempt_dir: dir.to_owned(),
        nonce: key.clone(),
        signal_socket: socket.clone(),
        dispatched: is_dispatched(task),
        resume,
        session,
        tmp,
        profile,
        script_text,
        program: site.program.clone(),
    };
    confine::make_state(confine::agent_home(site).as_deref(), &reach.own);
    let LaunchCommand { argv, mut env, stdin, files } = agent.build_launch_command(&brief)?;
    env.push(("PWD".into(), workspace.path().as_os_str().to_owned())); // some trust it over where they are
    env.extend(ports::port_variables(site, task.id).map_err(LaunchFailure::Machine)?);
    for (path, bytes) in files {
        reach.read.push(path.clone());
        std::fs::write(&path, bytes).map_err(|error| io("write a file of the run", error))?;
    }
    let settings = &site.settings.run;
    let spec = SitterSpec {
        argv,
        cwd: workspace.path().to_owned(),
        // Caches last: a variable of the profile must not lead past the changes of its own.
        env: add_program_to_path(
            &site.program,
            extend_environment(&extend_environment(&passed, env), cache_env),
        ),
        stdin,
        sandbox: confine::build_sandbox(site, &reach),
        signal: Some(SignalSpec { socket, key }),
        deadline_ms: sitter_limit_ms(site, task, agent.calls_model(), run.deadline_ms),
        grace_ms: settings.grace_ms,
        out_cap: settings.output_cap,
        marker: marker.to_owned(),
    };
    if !is_reader_run(task) {
        papers::put_papers(site, task, &workspace).map_err(LaunchFailure::Machine)?;
    }
    if runs_own_loop(task) {
        module::prepare_module(task, &workspace, dir)
            .map_err(|error| io("make the folder of its module ready", error))?;
    }
    crate::workspace::before_run(site, task, run.attempt, run.iteration, &workspace)
        .map_err(LaunchFailure::Machine)?;
    if site.is_stopped(task.id, run.attempt) {
        return Err(LaunchFailure::Stopped);
    }
    let may_hand_out = confine::may_hand_out(settings, &reach);
    workspace
        .note_occupant(marker, may_hand_out)
        .map_err(|error| LaunchFailure::Machine(error.full_message()))?;
    // Before it is started: a run that is found later was told.
    workspace.announce_rebuild().map_err(|error| LaunchFailure::Machine(error.full_message()))?;
    crash::pass_point("spawn.before");
    let sitting = match sitter::start_sitter(&site.program, dir, &spec) {
        Ok(sitting) => Some(sitting),
        Err(StartError::AlreadyStarted { .. }) => None,
        Err(StartError::Spec { problem }) => return Err(LaunchFailure::Hopeless(problem.to_owned())),
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            return Err(LaunchFailure::Machine(format!("{error}{cause}")));
        }
    };
    crash::pass_point("spawn.after");
    Ok(sitting)
}

fn build_prompt(
    site: &HostContext,
    task: &Task,
    run: &AgentLaunch<'_>,
    workspace: &Workspace,
    key: Option<&str>,
) -> Result<String, String> {
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(&run.step));
    let (name, outputs) = match step.map(|step| &step.kind) {
        Some(StepKind::Agent { output, .. }) if is_dispatched(task) => (DISPATCH, output.clone()),
        Some(StepKind::Agent { prompt, output, .. }) => (prompt.as_str(), output.clone()),
        Some(StepKind::Review) => ("review", Vec::new()),
        Some(StepKind::Check { .. }) => ("check", Vec::new()),
        Some(StepKind::Target) => ("target", Vec::new()),
        _ => return Err(format!("step `{}` has no prompt", run.step)),
    };
    // The agent is told the checks it will be judged by. A section that cannot be read is the gate's to tell.
    let verify = match gate::verify_section(site, workspace.base()) {
        Ok(Ok(section)) => section.commands.iter().map(|it| it.run.clone()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let reply = task.reply.clone().filter(|_| is_reader_run(task));
    let handed = handover::build_handover(site, task, step, workspace.path());
    let spec = spec_of(site, task).unwrap_or_default();
    let next = next_loop_step(task, workspace)
        .or_else(|| is_dispatched(task).then(|| module::entry_step(task, workspace.path()).to_owned()));
    let named = |output: String| if output == SPEC { spec.clone() } else { output };
    let outputs = outputs.into_iter().map(named).collect();
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
        branch: workspace.branch().to_owned(),
        base: site.branch.as_str().to_owned(),
        feedback: task
            .feedback
            .iter()
            .map(|it| (it.about.clone(), it.text.clone()))
            .chain(task.carried.iter().map(|text| (MESSAGE.to_owned(), text.clone())))
            .chain(reply.map(|text| ("What the author says to the findings".to_owned(), text)))
            .chain(module::guidance_for_step(task, workspace.path(), next.as_deref()))
            .collect(),
        verify_commands: verify,
        outputs,
        key: key.map(ToOwned::to_owned),
        source: task.spec.source.clone(),
        past: task.past.iter().map(format_past_run).collect(),
        discoveries: site.prompts.offered_discoveries(task.id),
        resumed: run.talk != SessionStart::New,
        compact: matches!(run.talk, SessionStart::Resumed { compact: true, .. }),
        findings: task.findings.iter().filter(|it| !it.resolved).map(ToString::to_string).collect(),
        module: module::path_of(task).to_owned(),
        next,
        moved: has_module_changed(task, workspace),
        since: task.reviewed_head.as_ref().map(ToString::to_string),
        papers: papers::FOLDER.to_owned(),
        has_papers: papers::has_any(task),
        checkpoint: match step.map(|step| &step.kind) {
            Some(StepKind::Check { checkpoint, .. }) => checkpoint.word().to_owned(),
            _ => String::new(),
        },
        stage: task.staged.focus.as_ref().map_or(0, |focus| focus.number),
        requirements: list_requirements(task),
        refinements: list_refinements(task),
        steps: task.staged.plan.steps,
        steps_done: task.staged.plan.done,
        proofs: task.staged.proofs.all.iter().map(Proof::line).chain(task.staged.proof_anomaly()).collect(),
        rounds: audit::rounds_of(task),
        every: match step.map(|step| &step.kind) {
            Some(StepKind::Agent { every, .. }) => *every,
            _ => 0,
        },
        red: task.gate.as_ref().is_some_and(|gate| !gate.outcome().is_green()),
        issue: IssueRef::from_source(&task.spec.source)
            .map(|source| format!("#{}", source.number))
            .unwrap_or_default(),
        spec,
        handed_by: handed.author_phase(),
        handoff: handed.points,
        gaps: handed.gaps,
        hand_on: handed.to,
        lens: review_focus(task).to_owned(),
        fork: task.workspace.as_ref().map_or_else(|| workspace.base().to_string(), ToString::to_string),
        ..PromptContext::default()
    };
    site.prompts.render(name, &context).map_err(|error| error.to_string())
}

/// What the person wants otherwise. Where a judge weighs it, it is dealt with once; elsewhere every run is told, since a new one
/// knows nothing of what another was told.
fn list_refinements(task: &Task) -> Vec<String> {
    let judged = task.flow.as_ref().is_none_or(|flow| flow.has_judge());
    let told = |it: &&Refinement| match it.state {
        RefinementStatus::Pending | RefinementStatus::Weighed(_) => true,
        RefinementStatus::TakenIn => !judged,
        RefinementStatus::Withdrawn => false,
    };
    let all = task.staged.refinements.iter().filter(told);
    all.map(|it| format!("{}. {}", it.number, it.text)).collect()
}

/// The requirements a judge speaks of, one line each.
fn list_requirements(task: &Task) -> Vec<String> {
    let all = task.staged.baseline_requirements();
    all.iter().map(|it| format!("R{} ({}): {}", it.number, it.weight.word(), it.text)).collect()
}

/// What stands above the words of a person.
const MESSAGE: &str = "A message from the person you work for";

/// Whether somebody else changed the state of its module since the last run left it.
fn has_module_changed(task: &Task, workspace: &Workspace) -> bool {
    task.revision.is_some() && task.revision != module::module_revision(task, workspace.path())
}

/// The step that a loop of the agent's own is to go on with. It is said only while the state is the one that the step followed
/// from: what a person did meanwhile outweighs it.
fn next_loop_step(task: &Task, workspace: &Workspace) -> Option<String> {
    let next = &task.stride.as_ref()?.next;
    let goes_on = !next.is_empty() && !next.starts_with('(');
    (goes_on && task.revision.is_some() && !has_module_changed(task, workspace)).then(|| next.clone())
}

/// One earlier run in a line, for an agent without its memory.
fn format_past_run(past: &PastRun) -> String {
    let PastRun { iteration, verdict, committed } = past;
    let what = match verdict {
        Verdict::Complete => "said it was done".to_owned(),
        Verdict::Blocked { reason } => format!("was blocked: {reason}"),
        Verdict::Pending { question } => format!("asked a person: {question}"),
        Verdict::Checkpoint { reason } => format!("wanted a judge to look: {reason}"),
        Verdict::Continue => "ended without a signal".to_owned(),
        Verdict::Looping => "repeated itself and was stopped".to_owned(),
        Verdict::Stalled => "fell silent and was stopped".to_owned(),
        Verdict::OutOfTime => "ran out of time".to_owned(),
        Verdict::OverBudget { .. } => "ran out of budget".to_owned(),
        Verdict::ContextUsedUp => "ran out of context".to_owned(),
        Verdict::Quota { .. }
        | Verdict::Transient { .. }
        | Verdict::Unauthorized { .. }
        | Verdict::SessionGone
        | Verdict::Crashed { .. }
        | Verdict::Stopped
        | Verdict::NotStarted { .. }
        | Verdict::Lost => "was cut short, through no fault of its own".to_owned(),
    };
    let left = if *committed { "it left commits" } else { "it left no commit" };
    format!("run {iteration} {what}; {left}")
}

/// What a reader of an issue's work is to look for: several readers look for different things.
fn review_focus(task: &Task) -> &'static str {
    let step = task.step().and_then(|name| task.flow.as_ref()?.find_step(name));
    let reviews = step.is_some_and(|step| matches!(step.kind, StepKind::Review));
    let Some(issue) = task.issue.as_ref().filter(|issue| reviews && issue.readers_wanted() > 1) else {
        return "";
    };
    match issue.readers {
        0 => "spec",
        1 => "bugs",
        2 => "limits",
        _ => "verify",
    }
}
