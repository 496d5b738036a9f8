//! One iteration of a script, from its first word to its exit code.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use landfall_agents::AgentStream;
use landfall_agents::script::{Script, ScriptCommit, ScriptError, ScriptMisbehavior, ScriptNote, ScriptTurn};
use landfall_app::{USER_FILE_BYTES_MAX, read_user_text};
use thiserror::Error;

use super::args::{PlayerRole, read};
use super::misbehave::{ScriptContinuation, apply_misbehavior};
use super::voice::PlayerOutput;
use super::{children, git, weaken, work};

/// The exit code when the script asks for something that cannot be done: not 1, which is what agents fail with.
const CANNOT: u8 = 70;
/// The exit code when the arguments are not understood.
const USAGE: u8 = 64;

/// Plays the part that the arguments after `play` ask for, and returns the exit code.
pub fn play_role(args: impl Iterator<Item = OsString>) -> u8 {
    let mut voice = PlayerOutput::new();
    match read(args) {
        Some(PlayerRole::Agent { script, iteration, step }) => {
            match play_agent(&mut voice, &script, iteration, step) {
                Ok(code) => code,
                Err(trouble) => {
                    voice.print_error_line(&format!(
                        "play: {trouble}{}",
                        trouble.find_hint().unwrap_or_default()
                    ));
                    CANNOT
                }
            }
        }
        Some(PlayerRole::Child(child)) => children::run_rogue_process(&child),
        None => {
            voice.print_error_line(
                "usage: landfall play <script.toml> [--iteration N] [--step NAME --step-run N]",
            );
            USAGE
        }
    }
}

/// Why a script cannot be played to its end.
#[derive(Debug, Error)]
pub(super) enum ScriptFailure {
    /// The script is not one.
    #[error("{}: {problem}", file.display())]
    Script {
        /// Where it is.
        file: PathBuf,
        /// What is wrong with it.
        problem: ScriptError,
    },
    /// A file could not be read, written or deleted.
    #[error("{what} `{}`: {source}", path.display())]
    File {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A path leads out of the workspace, by a link.
    #[error("`{}` leads out of the workspace", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// What should be edited is not there.
    #[error("`{}` does not hold `{find}`", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        find: String,
    },
    /// A program could not be started.
    #[error("start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Git said no.
    #[error("git {command}: {said}")]
    Git {
        /// What it was asked.
        command: String,
        /// What it said.
        said: String,
    },
}

impl ScriptFailure {
    fn find_hint(&self) -> Option<String> {
        match self {
            Self::Script { problem, .. } => problem.hint().map(|hint| format!(" ({hint})")),
            Self::File { .. }
            | Self::Outside { .. }
            | Self::NotFound { .. }
            | Self::Start { .. }
            | Self::Git { .. } => None,
        }
    }
}

fn play_agent(
    voice: &mut PlayerOutput,
    file: &Path,
    iteration: u32,
    step: Option<(String, u32)>,
) -> Result<u8, ScriptFailure> {
    let text = read_user_text(file, USER_FILE_BYTES_MAX).map_err(|source| ScriptFailure::File {
        what: "read",
        path: file.into(),
        source,
    })?;
    let script =
        Script::parse(&text).map_err(|problem| ScriptFailure::Script { file: file.into(), problem })?;
    let of_step = step.and_then(|(step, run)| script.step_turn(&step, run));
    let turn = of_step.unwrap_or_else(|| script.turn_for_iteration(iteration));
    if turn.mode == ScriptMisbehavior::Fail {
        return Ok(1);
    }
    if turn.mode == ScriptMisbehavior::NoOp {
        return Ok(0);
    }
    perform_turn(voice, iteration, turn)
}

fn perform_turn(voice: &mut PlayerOutput, iteration: u32, turn: &ScriptTurn) -> Result<u8, ScriptFailure> {
    if let Some(id) = &turn.session {
        voice.report_note(&ScriptNote::Session { id: id.clone() });
    }
    wait(turn.sleep_ms);
    work::apply_changes(voice, turn)?;
    if let ScriptMisbehavior::WeakenTest { target, how } = &turn.mode {
        weaken::weaken_test(voice, *how, target)?;
    }
    if let Some(message) = commit_message(turn, iteration) {
        git::commit_all(voice, &message)?;
    }
    if let Some((program, args)) = turn.run.split_first() {
        run(voice, program, args)?;
    }
    for say in &turn.says {
        wait(say.pause_ms);
        match say.stream {
            AgentStream::Out => voice.print_line(&say.text),
            AgentStream::Err | AgentStream::Aside => voice.print_error_line(&say.text),
        }
    }
    if let Some(usage) = turn.usage {
        let (tokens_in, tokens_out, micro_usd) = (usage.tokens_in, usage.tokens_out, usage.micro_usd);
        voice.report_note(&ScriptNote::Usage { tokens_in, tokens_out, micro_usd });
    }
    match apply_misbehavior(voice, &turn.mode)? {
        // A script may choose another code for these ends, but not that of success.
        ScriptContinuation::Fail => return Ok(turn.exit.max(1)),
        ScriptContinuation::GoOn => {}
    }
    for signal in &turn.signals {
        voice.print_line(signal);
    }
    Ok(turn.exit)
}

fn commit_message(turn: &ScriptTurn, iteration: u32) -> Option<String> {
    let own = || {
        let task = std::env::var("LANDFALL_TASK").unwrap_or_else(|_| "script".to_owned());
        format!("{task}: iteration {iteration}")
    };
    let weakens = matches!(turn.mode, ScriptMisbehavior::WeakenTest { .. });
    match &turn.commit {
        _ if turn.mode == ScriptMisbehavior::ForgetCommit => None,
        ScriptCommit::Never => None,
        ScriptCommit::Always(message) => Some(message.clone().unwrap_or_else(own)),
        ScriptCommit::IfChanged => (turn.changes_files() || weakens).then(own),
    }
}

/// Runs a command in the workspace with the prompt on stdin. What it prints is not what the agent says, so it goes to stderr.
fn run(voice: &mut PlayerOutput, program: &str, args: &[String]) -> Result<(), ScriptFailure> {
    let start = |source| ScriptFailure::Start { program: program.to_owned(), source };
    let stderr = io::stderr();
    let out = std::os::fd::AsFd::as_fd(&stderr).try_clone_to_owned().map_err(start)?;
    let mut command = Command::new(program);
    let status = command.args(args).stdout(out).status().map_err(start)?;
    voice.print_line(&format!("ran {program}: {status}"));
    Ok(())
}

fn wait(ms: u64) {
    if ms > 0 {
        sleep(Duration::from_millis(ms));
    }
}
