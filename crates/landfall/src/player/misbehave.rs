//! The ways in which agents go wrong, each as bad as it was seen to be.

use std::io::{self, BufRead as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use landfall_agents::script::{ScriptMisbehavior, ScriptNote};
use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::SIGTERM;

use super::args::RogueProcess;
use super::attack::attack_repository;
use super::children::{ChildTies, now_ms, start};
use super::perform::ScriptFailure;
use super::voice::PlayerOutput;

/// How it goes on afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptContinuation {
    /// As if nothing had been.
    GoOn,
    /// Not at all.
    Fail,
}

/// Misbehaves.
pub(super) fn apply_misbehavior(
    voice: &mut PlayerOutput,
    mode: &ScriptMisbehavior,
) -> Result<ScriptContinuation, ScriptFailure> {
    match mode {
        // The first two are over by now; the others are a matter of what was changed, committed and signalled.
        ScriptMisbehavior::Fail
        | ScriptMisbehavior::NoOp
        | ScriptMisbehavior::Ok
        | ScriptMisbehavior::Lie
        | ScriptMisbehavior::ForgetCommit
        | ScriptMisbehavior::WeakenTest { .. } => {}
        ScriptMisbehavior::Hang => hang_forever(),
        ScriptMisbehavior::IgnoreTerm => {
            let heard = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGTERM, heard).map_err(start_failure("signal handler"))?;
            voice.print_line("not listening to SIGTERM");
            hang_forever();
        }
        ScriptMisbehavior::Crash => crash_process(),
        ScriptMisbehavior::Flood { bytes } => {
            flood_output(voice, b"all work and no play makes an agent a dull program; so it says\n", *bytes)
        }
        ScriptMisbehavior::HugeLine { bytes } => {
            flood_output(voice, b"x", *bytes);
            voice.write_raw(b"\n");
        }
        ScriptMisbehavior::SlowDrip { for_ms } => {
            const STEP_MS: u64 = 20;
            for _ in 0..for_ms / STEP_MS {
                voice.write_raw(b".");
                sleep(Duration::from_millis(STEP_MS));
            }
            voice.write_raw(b"\n");
        }
        ScriptMisbehavior::Garbage => voice.write_raw(&garbage_bytes()),
        ScriptMisbehavior::ForkBomb { count, for_ms } => {
            start_process_bomb(voice, *count, now_ms() + for_ms)?;
            return Ok(ScriptContinuation::Fail);
        }
        ScriptMisbehavior::Setsid { target, for_ms } => {
            let child = RogueProcess::Detach { file: target.clone(), until_ms: now_ms() + for_ms };
            let ended = start(ChildTies::Cut, &child).and_then(|mut child| child.wait());
            ended.map_err(start_failure("detached process"))?;
            voice.print_line("left a process behind in a session of its own");
        }
        ScriptMisbehavior::Orphan { for_ms } => {
            let child = RogueProcess::Linger { until_ms: now_ms() + for_ms };
            let child = start(ChildTies::Kept, &child).map_err(start_failure("background process"))?;
            voice.print_line(&format!("left process {} behind", child.id()));
        }
        ScriptMisbehavior::Quota { until_ms } => {
            let until_ms = until_ms.map(|ms| i64::try_from(now_ms() + ms).unwrap_or(i64::MAX));
            voice.report_note(&ScriptNote::Quota { until_ms });
            return Ok(ScriptContinuation::Fail);
        }
        ScriptMisbehavior::Transient { detail } => {
            voice.report_note(&ScriptNote::Transient { detail: detail.clone() });
            return Ok(ScriptContinuation::Fail);
        }
        ScriptMisbehavior::Prompt => return Ok(ask_for_confirmation(voice)),
        ScriptMisbehavior::MoveMain { attack: way, canary } => {
            attack_repository(voice, *way, canary.as_deref())?
        }
    }
    Ok(ScriptContinuation::GoOn)
}

fn start_failure(what: &str) -> impl FnOnce(io::Error) -> ScriptFailure + use<'_> {
    move |source| ScriptFailure::Start { program: what.to_owned(), source }
}

fn hang_forever() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn crash_process() -> ! {
    // The point is the signal; a core file would only lie about in the workspace.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok(); // at worst there is one
    std::process::abort()
}

/// Repeats the pattern until exactly this much is written.
fn flood_output(voice: &mut PlayerOutput, pattern: &[u8], bytes: u64) {
    let block = pattern.repeat((64 << 10) / pattern.len());
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        voice.write_raw(&block[..length]);
        left -= length as u64;
    }
    if pattern.ends_with(b"\n") {
        voice.write_raw(b"\n"); // the last line may have been cut short
    }
}

/// The same bytes each time: terminal sequences, broken UTF-8, NUL, and noise with every byte in it.
fn garbage_bytes() -> Vec<u8> {
    let mut bytes =
        b"\x1b[2J\x1b[31m\x1b]0;title\x07\x1b]52;c;aGVsbG8=\x07\x1bP+q544e\x1b\\\x9b5n\x0e\x0f\r\n".to_vec();
    bytes.extend(b"\0\0\0\xff\xfe\xc0\xaf\xed\xa0\x80\xf8\x88\x80\x80\x80 \xe2\x80\xae\xef\xbf\xbe\n");
    bytes.extend((0..=255u8).filter(|byte| *byte != b'\n'));
    let mut state = 0x2545_f491_u32;
    bytes.extend((0..4096).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    }));
    bytes.push(b'\n');
    bytes
}

fn start_process_bomb(voice: &mut PlayerOutput, count: u16, until_ms: u64) -> Result<(), ScriptFailure> {
    let mut first = Vec::new();
    for _ in 0..count {
        match start(ChildTies::Cut, &RogueProcess::Bomb { until_ms }) {
            Ok(child) => first.push(child),
            Err(_) if !first.is_empty() => break, // the machine's limit is reached: enough of a bomb
            Err(source) => return Err(start_failure("fork bomb")(source)),
        }
    }
    voice.print_line(&format!("started {} processes", first.len()));
    for mut child in first {
        let _ = child.wait(); // it has been replaced by another
    }
    sleep(Duration::from_millis(until_ms.saturating_sub(now_ms())));
    Ok(())
}

/// Asks, and takes only a yes for an answer. The prompt may still be on stdin; it is read past.
fn ask_for_confirmation(voice: &mut PlayerOutput) -> ScriptContinuation {
    voice.write_raw(b"Apply these changes? [y/N] ");
    let mut lines = io::stdin().lock().split(b'\n');
    let yes = lines.any(|line| line.is_ok_and(|line| matches!(line.trim_ascii(), b"y" | b"yes" | b"Y")));
    voice.write_raw(b"\n");
    if yes { ScriptContinuation::GoOn } else { ScriptContinuation::Fail }
}
