//! The git that the agent runs, as agents do: the ordinary program with the ordinary configuration.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::perform::ScriptFailure;
use super::voice::PlayerOutput;

/// Commits everything in the workspace, if there is anything.
pub(super) fn commit_all(voice: &mut PlayerOutput, message: &str) -> Result<(), ScriptFailure> {
    git_output(&["add", "-A"])?;
    if run_git(&["diff", "--cached", "--quiet"])?.status.success() {
        voice.print_line("nothing to commit");
        return Ok(());
    }
    let mut words = vec!["-c", "commit.gpgsign=false"];
    // Only when nobody else has said who commits here.
    if !run_git(&["config", "user.email"])?.status.success() && std::env::var_os("GIT_AUTHOR_EMAIL").is_none()
    {
        words.extend(["-c", "user.name=Scripted Agent", "-c", "user.email=script@landfall.invalid"]);
    }
    words.extend(["commit", "-q", "-m", message]);
    git_output(&words)?;
    let id = git_output(&["rev-parse", "--short", "HEAD"])?;
    voice.print_line(&format!("committed {id}: {}", message.lines().next().unwrap_or_default()));
    Ok(())
}

/// The folder git keeps its things in.
pub(super) fn git_dir() -> Result<PathBuf, ScriptFailure> {
    git_output(&["rev-parse", "--absolute-git-dir"]).map(PathBuf::from)
}

/// What git answers; an error if it says no.
pub(super) fn git_output(words: &[&str]) -> Result<String, ScriptFailure> {
    let output = run_git(words)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Err(ScriptFailure::Git { command: words.join(" "), said })
    }
}

fn run_git(words: &[&str]) -> Result<Output, ScriptFailure> {
    let start = |source| ScriptFailure::Start { program: "git".to_owned(), source };
    Command::new("git").args(words).stdin(Stdio::null()).output().map_err(start)
}
