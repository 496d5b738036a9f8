//! A command of the person's, run to its end: a hook, a message, something to do in a workspace.
//!
//! It runs under a sitter of its own, so that it keeps to its time, leaves no process behind, and cannot fill the disk
//! with what it says. Nothing is decided here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::sandbox::Sandbox;
use landfall_host::sitter::{self, EndCause, SitterProcess, SitterSpec, SitterState};

use crate::patience::{KillAction, KillEscalation, abandon_run, wait_for_end};
use crate::run_folder::random_bytes;

/// What to run.
#[derive(Debug, Clone)]
pub struct UserCommand {
    /// The program and its arguments; [`sh_arguments`] makes them of a command line.
    pub argv: Vec<OsString>,
    /// Where.
    pub cwd: PathBuf,
    /// With this environment and no other.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// What it may touch; none is everything that the person may.
    pub sandbox: Option<Sandbox>,
    /// How long it may take.
    pub limit_ms: u64,
    /// How long it may go on after being asked to end.
    pub grace_ms: u64,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommandResult {
    /// Its exit code; a signal is 128 and its number, as a shell says it. None if it never ran.
    pub exit: Option<i32>,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
    /// How long it took.
    pub took_ms: u64,
    /// The end of what it said, both outputs, cut.
    pub said: String,
    /// How many processes it left behind, which were killed.
    pub swept: u32,
    /// Whether all its processes have ended.
    pub is_over: bool,
}

impl UserCommandResult {
    /// Whether it ended well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.exit == Some(0) && !self.timed_out
    }

    /// Why it did not, in a sentence.
    #[must_use]
    pub fn describe_failure(&self) -> String {
        let what = match (self.timed_out, self.exit) {
            (true, _) => "took too long and was ended".to_owned(),
            (false, Some(code)) => format!("ended with code {code}"),
            (false, None) => "could not be run".to_owned(),
        };
        match self.said.trim().lines().last() {
            Some(line) => format!("{what}: {line}"),
            None => what,
        }
    }
}

/// A command line a person wrote, for the shell.
#[must_use]
pub fn sh_arguments(line: &str) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), line.into()]
}

/// A command line of an issue, for the shell that its author knows. Only where the project allows that, and in the sandbox.
#[must_use]
pub(crate) fn bash_arguments(line: &str) -> Vec<OsString> {
    vec!["bash".into(), "-c".into(), line.into()]
}

const OUT_CAP: u64 = 64 << 10; // what is shown is less; the rest is for whoever looks while it runs
const SAID_MAX: usize = 2_000; // what a person reads of it in a log

/// Runs it in the folder `dir`, which is made, and waits. `program` is our own executable. The folder stays as the
/// record of the run; [`run_in_temporary_folder`] removes it. If it was begun there already, by an engine that died, it is not
/// begun again: its end is waited for, or read.
///
/// # Errors
/// Why it could not be started, or was lost.
pub fn run_user_command(
    program: &Path,
    dir: &Path,
    errand: &UserCommand,
) -> Result<UserCommandResult, String> {
    run_with_output_cap(program, dir, errand, OUT_CAP)
}

/// The same, with so many bytes of each output kept in the folder: `out.log` and `err.log`.
pub(crate) fn run_with_output_cap(
    program: &Path,
    dir: &Path,
    errand: &UserCommand,
    out_cap: u64,
) -> Result<UserCommandResult, String> {
    let lost = |_| "it was killed from outside".to_owned();
    match crate::run_folder::wait_until_settled(dir).map_err(|error| error_chain(&error))? {
        SitterState::Never => {}
        SitterState::Running(sitting) => return wait_for_command(dir, &sitting, errand).map_err(lost),
        SitterState::Ended(ended) => return Ok(result_of_run(dir, &ended)),
        SitterState::Starting | SitterState::Vanished => {
            abandon_run(dir, &command_marker(dir));
            return Err(lost(LostCommand));
        }
    }
    if let Some(above) = dir.parent() {
        make_private(above).map_err(|error| format!("make {}: {error}", above.display()))?;
    }
    make_private(dir).map_err(|error| format!("make {}: {error}", dir.display()))?;
    let stdin = dir.join("stdin");
    crate::run_folder::write_private(&stdin, &errand.stdin)
        .map_err(|error| format!("write its stdin: {error}"))?;
    let spec = SitterSpec {
        argv: errand.argv.clone(),
        cwd: errand.cwd.clone(),
        env: errand.env.clone(),
        stdin: Some(stdin),
        deadline_ms: errand.limit_ms,
        grace_ms: errand.grace_ms,
        out_cap,
        marker: command_marker(dir),
        sandbox: errand.sandbox.clone(),
        signal: None,
    };
    let sitting = sitter::start_sitter(program, dir, &spec).map_err(|error| error_chain(&error))?;
    wait_for_command(dir, &sitting, errand).map_err(lost)
}

/// It is gone without a word. Nothing of it is left.
struct LostCommand;

/// Waits for its end, no longer than there is patience with it.
fn wait_for_command(
    dir: &Path,
    sitting: &SitterProcess,
    errand: &UserCommand,
) -> Result<UserCommandResult, LostCommand> {
    let clock = SystemClock;
    let mut patience = KillEscalation::with_limit(clock.mono_ms(), errand.limit_ms, errand.grace_ms);
    let mut watch = None;
    loop {
        match sitter::find_sitter(dir) {
            Ok(SitterState::Ended(ended)) => return Ok(result_of_run(dir, &ended)),
            Ok(SitterState::Vanished | SitterState::Never) => break,
            // A folder that cannot be read right now, for want of descriptors perhaps, says nothing about the command.
            Ok(SitterState::Running(_) | SitterState::Starting) | Err(_) => {
                wait_for_end(&mut watch, sitting, LOOK)
            }
        }
        match patience.escalate_if_due(clock.mono_ms(), sitting) {
            KillAction::Wait | KillAction::Told => {}
            KillAction::Abandon => break,
        }
    }
    abandon_run(dir, &command_marker(dir));
    Err(LostCommand)
}

/// An error with its cause.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

const LOOK: Duration = Duration::from_secs(1); // an end is heard at once; this is for patience

/// Runs it in a folder of its own below `place`, and removes the folder.
///
/// # Errors
/// Why it could not be started.
pub fn run_in_temporary_folder(
    program: &Path,
    place: &Path,
    errand: &UserCommand,
) -> Result<UserCommandResult, String> {
    let dir = make_free_folder(place).map_err(|error| format!("make {}: {error}", place.display()))?;
    let ended = run_user_command(program, &dir, errand);
    let _ = std::fs::remove_dir_all(&dir); // what stays is removed at the next start
    ended
}

/// Makes a folder below `place` that no other errand has had: a name that comes again would meet the end of an earlier one.
fn make_free_folder(place: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    make_private(place)?;
    let name: String = random_bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let dir = place.join(format!("e{name}"));
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}

/// Removes what runs of an earlier engine left in `place`. One that is still under way stays: it ends by itself.
pub fn remove_ended_runs(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let dir = entry.path();
        match sitter::find_sitter(&dir) {
            Ok(SitterState::Running(_) | SitterState::Starting) | Err(_) => {}
            Ok(SitterState::Vanished) => {
                abandon_run(&dir, &command_marker(&dir));
                let _ = std::fs::remove_dir_all(&dir); // tried again at the next start
            }
            Ok(SitterState::Never | SitterState::Ended(_)) => {
                let _ = std::fs::remove_dir_all(&dir); // as above
            }
        }
    }
}

fn result_of_run(dir: &Path, ended: &sitter::SitterEnd) -> UserCommandResult {
    let exit = match &ended.exit {
        sitter::ChildExit::Code(code) => Some(*code),
        sitter::ChildExit::Signal(signal) => Some(128 + *signal),
        sitter::ChildExit::NotStarted { .. } => None,
    };
    let said = match &ended.exit {
        sitter::ChildExit::NotStarted { message, .. } => message.clone(),
        sitter::ChildExit::Code(_) | sitter::ChildExit::Signal(_) => {
            let both = [read_shown_tail(&dir.join("out.log")), read_shown_tail(&dir.join("err.log"))];
            let both: Vec<&str> =
                both.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
            let both = both.join("\n");
            both[both.ceil_char_boundary(both.len().saturating_sub(SAID_MAX))..].to_owned()
        }
    };
    UserCommandResult {
        exit,
        timed_out: ended.cause == EndCause::Deadline,
        took_ms: u64::try_from(ended.ended_ms - ended.began_ms).unwrap_or(0),
        said,
        swept: ended.swept,
        is_over: ended.left == 0,
    }
}

/// The end of a file, as text that can be shown.
fn read_shown_tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default(); // capped by the sitter
    let text = String::from_utf8_lossy(&bytes);
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(SAID_MAX))..];
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Names every process of the run, so that what a dead sitter leaves behind can be found.
fn command_marker(dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    format!("errand/{}", &blake3::hash(dir.as_os_str().as_bytes()).to_hex().as_str()[..16])
}

fn make_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
