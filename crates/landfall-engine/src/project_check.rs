//! Runs the checks of a project without an engine and without an agent, as verification does: one after the other, on a clean
//! checkout, in the sandbox. What they write is passed on while they run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::disk::remove_tree;
use landfall_host::git::{GitError, IgnoredFilesPolicy, Lane, Oid, Signature, Store};
use landfall_host::lock::{LockHolder, StateLock, StateLockError};
use landfall_host::sitter::{self, EndCause, SitterSpec, SitterState};
use landfall_model::gate::{
    CheckOutcome, CommandExit, CommandResult, GateReport, compute_check_outcome, count_tests,
};
use landfall_model::{Commit, Tree};
use thiserror::Error;

use crate::confine::{self, ConfinementScope};
use crate::digests::{digest_text, environment_of};
use crate::environment::{extend_environment, safe_environment};
use crate::errand::{self, error_chain};
use crate::folder::StateFolder;
use crate::ids;
use crate::output_text::{TESTS_TAIL, excerpt_output, read_text_tail};
use crate::patience::{KillAction, KillEscalation, abandon_run, wait_for_end};
use crate::settings::{Confinement, Settings, VerifyCommand, VerifySettings};
use crate::warm_caches;

/// What to check, and how.
pub struct CheckRequest<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// Its root.
    pub root: &'a Path,
    /// Its state.
    pub folder: &'a StateFolder,
    /// Its store, which has the commits.
    pub store: &'a Store,
    /// Our own executable.
    pub program: &'a Path,
    /// Every environment variable. Only those that hold nothing secret are handed on.
    pub environment: &'a [(OsString, OsString)],
    /// The commit whose rules count.
    pub base: &'a Oid,
    /// The commit that is checked.
    pub commit: &'a Oid,
    /// Whether the user asked for no sandbox.
    pub is_unconfined: bool,
    /// How long all commands together may take, besides their own limits.
    pub limit: Option<Duration>,
}

/// Who watches the checks run.
pub trait CheckWatcher {
    /// A command begins.
    fn command_started(&mut self, command: &VerifyCommand);
    /// It has written this line.
    fn line_written(&mut self, line: &str);
    /// It has ended.
    fn command_ended(&mut self, result: &CommandResult);
    /// Whether the user wants no more of it.
    fn is_stopped(&self) -> bool;
}

/// Why the checks did not run.
#[derive(Debug, Error)]
pub enum CheckError {
    /// Other checks run.
    #[error(transparent)]
    Busy(#[from] StateLockError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The rules on the base cannot be read.
    #[error("{0}")]
    Rules(String),
    /// The user ended them.
    #[error("stopped")]
    Stopped,
    /// This machine could not run them.
    #[error("{doing}: {detail}")]
    Machine {
        /// What was done.
        doing: String,
        /// What went wrong.
        detail: String,
    },
}

fn machine_error(doing: &str, error: &dyn std::error::Error) -> CheckError {
    CheckError::Machine { doing: doing.to_owned(), detail: error_chain(error) }
}

/// The rules by which work on `base` is verified.
///
/// # Errors
/// When they cannot be read.
pub fn read_rules_on_base(
    settings: &Settings,
    store: &Store,
    base: &Oid,
) -> Result<VerifySettings, CheckError> {
    const SETTINGS_MAX: u64 = 1 << 20;
    match store.read_blob(base, b"landfall.toml", SETTINGS_MAX)? {
        None => Ok(settings.verify.clone()),
        Some(bytes) => VerifySettings::from_base(&String::from_utf8_lossy(&bytes))
            .map_err(|problem| CheckError::Rules(problem.to_string())),
    }
}

/// A report without commands for this request.
fn blank_report(request: &CheckRequest<'_>, rules: &VerifySettings) -> Result<GateReport, CheckError> {
    let env = safe_environment(request.environment, &request.settings.run.env);
    let level = if request.is_unconfined { Confinement::Off } else { request.settings.run.sandbox };
    Ok(GateReport {
        base: ids::oid_to_commit(request.base),
        head: ids::oid_to_commit(request.commit),
        commit: ids::oid_to_commit(request.commit),
        tree: Tree::new(request.store.tree_of(request.commit)?.as_str()),
        config: digest_text(&rules.canonical_text()),
        environment: environment_of(&env),
        commands: Vec::new(),
        took_ms: 0,
        reused: false,
        required: rules.required,
        sandbox: Some(level),
    })
}

/// What a pass of this request would be known by: without running anything.
///
/// # Errors
/// When git or the rules cannot be read.
pub fn expected_report(request: &CheckRequest<'_>) -> Result<GateReport, CheckError> {
    blank_report(request, &read_rules_on_base(request.settings, request.store, request.base)?)
}

/// A commit of `base` with one file more, or another content of it: what it will be once the user has committed that file.
///
/// # Errors
/// When git fails.
pub fn commit_with_file(store: &Store, base: &Oid, name: &str, text: &str) -> Result<Commit, GitError> {
    let by = Signature::for_engine(SystemClock.now_ms());
    let tree = store.tree_with_file(base, name, text.as_bytes())?;
    let commit =
        store.create_commit(&tree, std::slice::from_ref(base), &format!("Add {name}\n"), &by, &by)?;
    Ok(ids::oid_to_commit(&commit))
}

/// Runs the checks. The first required one that does not pass is the last one that runs.
///
/// # Errors
/// Why nothing can be said about the checks.
pub fn run_checks(
    request: &CheckRequest<'_>,
    watcher: &mut dyn CheckWatcher,
) -> Result<GateReport, CheckError> {
    let rules = read_rules_on_base(request.settings, request.store, request.base)?;
    let mut report = blank_report(request, &rules)?;
    let room = request.folder.own_checks();
    make_private(&room).map_err(|error| machine_error("make a folder for checks", &error))?;
    let now_ms = SystemClock.now_ms();
    let _lock = StateLock::acquire(&room, &LockHolder::this_process("landfall check", now_ms))?;
    // Nothing of an earlier check is used again: not even a power cut leaves something to believe in.
    for old in [room.join("lane"), room.join("runs")] {
        remove_tree(&old).map_err(|error| machine_error("remove what an earlier check left", &error))?;
    }
    make_private(&room.join("runs")).map_err(|error| machine_error("make a folder for checks", &error))?;
    let lane = Lane::open_lane(request.store, &room.join("lane"))?;
    let began_ms = SystemClock.mono_ms();
    for (place, command) in rules.commands.iter().enumerate() {
        let spent = Duration::from_millis(SystemClock.mono_ms() - began_ms);
        let left = request.limit.map(|limit| limit.saturating_sub(spent));
        let run = ProjectCheckCommand { request, lane: &lane, command, place, left };
        watcher.command_started(command);
        let result = run.run(&room.join("runs").join(place.to_string()), watcher)?;
        watcher.command_ended(&result);
        let is_last = result.required && !result.outcome.is_green();
        report.commands.push(result);
        if is_last {
            break;
        }
    }
    report.took_ms = SystemClock.mono_ms() - began_ms;
    if request.base == request.commit && !request.is_unconfined && report.outcome().is_green() {
        warm_caches::keep_cache_changes(request.store, &request.folder.lanes_path(), &lane);
    }
    drop(lane);
    let _ = remove_tree(&room.join("lane")); // the next check removes what is left
    Ok(report)
}

/// One command of a request.
struct ProjectCheckCommand<'a> {
    request: &'a CheckRequest<'a>,
    lane: &'a Lane,
    command: &'a VerifyCommand,
    place: usize,
    left: Option<Duration>,
}

impl ProjectCheckCommand<'_> {
    fn run(&self, dir: &Path, watcher: &mut dyn CheckWatcher) -> Result<CommandResult, CheckError> {
        let CheckRequest { settings, folder, .. } = self.request;
        let ignored = if self.place == 0 { IgnoredFilesPolicy::Remove } else { IgnoredFilesPolicy::Keep };
        let checkout = self.lane.check_out_commit(self.request.commit, ignored)?;
        let tmp = confine::make_tmp(dir)
            .map_err(|error| machine_error("make a folder for temporary files", &error))?;
        let level = if self.request.is_unconfined { Confinement::Off } else { settings.run.sandbox };
        let env = safe_environment(self.request.environment, &settings.run.env);
        if level != Confinement::Off {
            warm_caches::give_cache_changes(self.request.store, &folder.lanes_path(), self.lane);
        }
        let caches =
            confine::prepare_run_caches(&settings.run, folder, &env, level, &self.lane.caches_path())
                .map_err(|error| machine_error("make the caches of a check ready", &error))?;
        let env = extend_environment(&env, caches.env.clone());
        let reach = ConfinementScope {
            confinement: level,
            checkout: confine::checkout_at(self.request.root),
            work: checkout.path.clone(),
            tmp: tmp.clone(),
            own: Vec::new(),
            read: Vec::new(),
            caches,
        };
        let ours = [
            ("LANDFALL_TASK", "check".into()),
            ("LANDFALL_CHECK", self.command.name.as_str().into()),
            ("TMPDIR", tmp.into_os_string()),
        ];
        let own_limit = Duration::from_millis(self.command.timeout_ms);
        let limit = self.left.map_or(own_limit, |left| left.min(own_limit)).max(Duration::from_secs(1));
        let spec = SitterSpec {
            argv: errand::sh_arguments(&self.command.run), // a person wrote it in settings
            cwd: checkout.path,
            env: extend_environment(&env, ours.map(|(key, value)| (key.into(), value)).to_vec()),
            sandbox: confine::build_sandbox_from_settings(
                &settings.run,
                folder,
                self.request.environment,
                &reach,
            ),
            signal: None,
            stdin: None,
            deadline_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            grace_ms: settings.run.grace_ms,
            out_cap: settings.run.output_cap,
            marker: check_marker(folder, dir),
        };
        let sitting = sitter::start_sitter(self.request.program, dir, &spec)
            .map_err(|error| machine_error("start a check", &error))?;
        let ended = wait_for_check(dir, &spec, &sitting, watcher);
        confine::remove_tmp(dir);
        let (exit, timed_out, took_ms) = match ended? {
            Some(ended) => {
                let exit = match &ended.exit {
                    sitter::ChildExit::Code(code) => Some(*code),
                    sitter::ChildExit::Signal(signal) => Some(128 + *signal),
                    sitter::ChildExit::NotStarted { message, .. } => {
                        return Err(CheckError::Machine {
                            doing: format!("start the check `{}`", self.command.name),
                            detail: message.clone(),
                        });
                    }
                };
                let took_ms = u64::try_from(ended.ended_ms - ended.began_ms).unwrap_or(0);
                (exit, ended.cause == EndCause::Deadline, took_ms)
            }
            None => (None, true, spec.deadline_ms),
        };
        let (out, err) = (
            read_text_tail(&dir.join("out.log"), TESTS_TAIL),
            read_text_tail(&dir.join("err.log"), TESTS_TAIL),
        );
        let tests = match (count_tests(&out), count_tests(&err)) {
            (None, None) => None,
            (out, err) => Some(out.unwrap_or(0) + err.unwrap_or(0)),
        };
        let seen = CommandExit { exit, timed_out, tests, is_denied: false };
        let outcome = compute_check_outcome(&seen, None, None);
        let denied = match outcome {
            CheckOutcome::Pass => Vec::new(),
            _ => confine::find_denials(spec.sandbox.as_ref(), &spec.env, &format!("{out}\n{err}")),
        };
        Ok(CommandResult {
            name: self.command.name.clone(),
            command: self.command.run.clone(),
            required: self.command.required,
            // The settings are to blame, not the commit.
            outcome: if denied.is_empty() { outcome } else { CheckOutcome::Broken },
            exit,
            took_ms,
            limit_ms: spec.deadline_ms,
            tests,
            excerpt: if outcome == CheckOutcome::Pass { String::new() } else { excerpt_output(&out, &err) },
            caps: self.command.caps,
            denied,
            copied_from_base: false,
        })
    }
}

/// Waits for the end of a check, and passes on what it writes. None: it did not end when its time was up.
fn wait_for_check(
    dir: &Path,
    spec: &SitterSpec,
    sitting: &sitter::SitterProcess,
    watcher: &mut dyn CheckWatcher,
) -> Result<Option<sitter::SitterEnd>, CheckError> {
    const LOOK: Duration = Duration::from_millis(100); // a person reads no faster; an end is heard at once
    let mut outputs = [CheckOutput::new(dir.join("out.log")), CheckOutput::new(dir.join("err.log"))];
    let mut patience = KillEscalation::with_limit(SystemClock.mono_ms(), spec.deadline_ms, spec.grace_ms);
    let (mut watch, mut is_stopped) = (None, false);
    loop {
        let found = sitter::find_sitter(dir);
        for output in &mut outputs {
            output.forward_lines(watcher);
        }
        match found {
            Ok(SitterState::Ended(ended)) => {
                for output in &mut outputs {
                    output.forward_rest(watcher);
                }
                return if is_stopped { Err(CheckError::Stopped) } else { Ok(Some(ended)) };
            }
            Ok(SitterState::Vanished | SitterState::Never) => break,
            Ok(SitterState::Running(_) | SitterState::Starting) | Err(_) => {
                wait_for_end(&mut watch, sitting, LOOK)
            }
        }
        if watcher.is_stopped() && !is_stopped {
            is_stopped = true;
            let _ = sitter::stop_sitter(sitting, sitter::StopMode::Now); // gone already is as good
            patience = KillEscalation::after_immediate_request(SystemClock.mono_ms());
        }
        match patience.escalate_if_due(SystemClock.mono_ms(), sitting) {
            KillAction::Wait | KillAction::Told => {}
            KillAction::Abandon => break,
        }
    }
    abandon_run(dir, &spec.marker);
    if is_stopped { Err(CheckError::Stopped) } else { Ok(None) }
}

/// One output of a check, read as it grows.
struct CheckOutput {
    path: PathBuf,
    read: u64,
    line: Vec<u8>,
}

impl CheckOutput {
    fn new(path: PathBuf) -> Self {
        Self { path, read: 0, line: Vec::new() }
    }

    fn forward_lines(&mut self, watcher: &mut dyn CheckWatcher) {
        const BYTES_MAX: u64 = 1 << 20; // at a look; the rest comes with the next
        let Ok(mut file) = File::open(&self.path) else { return };
        if file.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        let mut bytes = Vec::new();
        let Ok(count) = file.take(BYTES_MAX).read_to_end(&mut bytes) else { return };
        self.read += count as u64;
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(watcher),
                byte => self.line.push(byte),
            }
        }
    }

    /// What is left, also without an end of the line.
    fn forward_rest(&mut self, watcher: &mut dyn CheckWatcher) {
        loop {
            let before = self.read;
            self.forward_lines(watcher);
            if self.read == before {
                break;
            }
        }
        if !self.line.is_empty() {
            self.end_line(watcher);
        }
    }

    fn end_line(&mut self, watcher: &mut dyn CheckWatcher) {
        let line = std::mem::take(&mut self.line);
        // A bar of progress writes over its own line: its last state counts.
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\r');
        watcher.line_written(text.rsplit('\r').next().unwrap_or(text));
    }
}

fn check_marker(folder: &StateFolder, dir: &Path) -> String {
    let place = digest_text(&format!("{} {}", folder.root().display(), dir.display()));
    format!("check/{}", &place.as_str()[..16])
}

fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
