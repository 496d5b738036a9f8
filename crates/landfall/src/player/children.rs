//! The processes the agent starts when it misbehaves, and what they do with their lives.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Child as Process, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::args::RogueProcess;

/// How long each process of a fork bomb lives. Shorter would be worse, and two cores would do nothing else.
const GENERATION: Duration = Duration::from_millis(150);
const SCRIBBLE: Duration = Duration::from_millis(50);

/// Whether a child keeps what ties it to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildTies {
    /// It holds the agent's outputs open.
    Kept,
    /// It has no outputs and no environment to be known by.
    Cut,
}

/// Starts a process of the agent's.
pub(super) fn start(ties: ChildTies, child: &RogueProcess) -> io::Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(child.to_args()).stdin(Stdio::null());
    match ties {
        ChildTies::Kept => {}
        ChildTies::Cut => {
            command.stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
        }
    }
    command.spawn()
}

/// Lives the life of such a process, and returns its exit code.
pub(super) fn run_rogue_process(child: &RogueProcess) -> u8 {
    match child {
        RogueProcess::Bomb { until_ms } => {
            sleep(GENERATION);
            // Without room for another it tries again: that is what makes it a bomb.
            while now_ms() < *until_ms && start(ChildTies::Cut, child).is_err() {
                sleep(GENERATION);
            }
            0
        }
        RogueProcess::Detach { file, until_ms } => {
            let scribble = RogueProcess::Scribble { file: file.clone(), until_ms: *until_ms };
            let detached = rustix::process::setsid()
                .map_err(io::Error::from)
                .and_then(|_| start(ChildTies::Cut, &scribble));
            u8::from(detached.is_err())
        }
        RogueProcess::Scribble { file, until_ms } => {
            let pid = std::process::id();
            for count in 0u64.. {
                let opened = OpenOptions::new().append(true).create(true).open(file);
                let written = opened.and_then(|mut file| writeln!(file, "{pid} {count}"));
                if now_ms() >= *until_ms || written.is_err() {
                    break;
                }
                sleep(SCRIBBLE);
            }
            0
        }
        RogueProcess::Linger { until_ms } => {
            sleep(Duration::from_millis(until_ms.saturating_sub(now_ms())));
            0
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
