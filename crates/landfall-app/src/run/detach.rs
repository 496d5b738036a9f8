//! Begins a run that goes on without whoever asked for it: in the server that keeps the project, else in a process of its own.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use landfall_api::client::{ConnectError, EngineClient};
use landfall_api::{Nothing, Problem, ProblemCode, RunAsked, TypedService as _, WireRunId};
use landfall_engine::host::wait::wait_for_child;
use serde::Serialize;

use crate::project::place::ProjectLocation;
use crate::project::problems;

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DetachedRun {
    /// Which; none when it was over before it could be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRunId>,
    /// The process that drives it; none when it is over already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How it stands and where to look, in one sentence.
    pub text: String,
}

/// An engine opens a long journal in seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// What a run without a terminal says goes here, below the state folder; the next one begins it anew.
const HEARD: &str = "detached.log";
const HEARD_MAX: u64 = 1 << 20; // an error is one line

pub(crate) fn start(place: &ProjectLocation, asked: &RunAsked) -> Result<DetachedRun, Problem> {
    match EngineClient::connect(&place.folder.socket_path()) {
        Ok(client) => {
            client.run_start(asked.clone())?;
            Ok(find_active_run(&client).unwrap_or_else(|| ended_run(None)))
        }
        Err(ConnectError::Nobody(_) | ConnectError::Broken { .. }) => spawn_detached(place, asked),
        Err(ConnectError::Refused(problem)) => Err(problem),
        Err(error @ ConnectError::Version { .. }) => {
            Err(Problem::new(ProblemCode::EngineBusy, error.to_string())
                .with_hint("use the `landfall` that started it, or wait until its run is over"))
        }
    }
}

/// Starts this program once more, and waits until it drives, or has ended.
fn spawn_detached(place: &ProjectLocation, asked: &RunAsked) -> Result<DetachedRun, Problem> {
    let root = place.folder.root();
    let path = root.join(HEARD);
    place.folder.create_folders().map_err(|error| problems::from_io_error("make", root, &error))?;
    let heard = |error: std::io::Error| problems::from_io_error("write", &path, &error);
    let mut log =
        File::options().create(true).truncate(true).read(true).write(true).open(&path).map_err(heard)?;
    let program = std::env::current_exe();
    let unable = |error: std::io::Error| {
        Problem::new(ProblemCode::Internal, format!("start a process that drives: {error}"))
            .with_hint("`landfall run` drives in this one")
    };
    let mut command = Command::new(program.map_err(unable)?);
    command.arg("-C").arg(&place.root).args(place.base.iter().map(|base| format!("--base={base}")));
    command.args(["--json", "run", "--own-session"]);
    command.args(asked.slots.iter().map(|slots| format!("--slots={slots}")));
    command.args(asked.mode.iter().map(|mode| format!("--mode={mode}")));
    command.args(asked.tasks.iter().map(ToString::to_string));
    command.env_clear().envs(place.engine_environment());
    command.stdin(Stdio::null());
    command.stdout(log.try_clone().map_err(heard)?).stderr(log.try_clone().map_err(heard)?);
    let mut child = command.spawn().map_err(unable)?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = wait_for_child(&mut child, Instant::now() + LOOK).map_err(unable)? {
            let mut text = String::new();
            let _ = log.seek(SeekFrom::Start(0)); // then there is nothing to read
            let _ = (&log).take(HEARD_MAX).read_to_string(&mut text); // as much as can be read
            return match parse_reported_problem(&text) {
                Some(problem) => Err(problem),
                None => Ok(ended_run(status.code())),
            };
        }
        let client = EngineClient::connect(&place.folder.socket_path())
            .ok()
            .filter(|it| it.engine().pid == child.id());
        if let Some(begun) = client.and_then(|client| find_active_run(&client)) {
            reap_child(child);
            return Ok(begun);
        }
        if Instant::now() > until {
            let pid = child.id();
            reap_child(child);
            let what = format!("process {pid} was started to drive, and does not answer yet");
            let hint = format!("`landfall status` shows when it does; what it says is in {}", path.display());
            return Err(Problem::new(ProblemCode::Internal, what).with_hint(hint));
        }
    }
}

/// The run that an engine drives now.
fn find_active_run(client: &EngineClient) -> Option<DetachedRun> {
    let run = client.status(Nothing {}).ok()?.run?.run;
    let pid = client.engine().pid;
    let text =
        format!("{run} is under way in process {pid}; `landfall status` shows it, `landfall stop` ends it");
    Some(DetachedRun { run: Some(run), pid: Some(pid), text })
}

fn ended_run(code: Option<i32>) -> DetachedRun {
    let how = match code {
        None | Some(0) => String::new(),
        Some(code) => format!(" with exit code {code}"),
    };
    let text = format!("the run is over already{how}; `landfall report` says what became of it");
    DetachedRun { run: None, pid: None, text }
}

/// The error that a run has ended with, if it could not begin.
fn parse_reported_problem(text: &str) -> Option<Problem> {
    let error = text.lines().rev().find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line.get("error").cloned()
    })?;
    let words = |key: &str| error.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    let code = error.get("problem").and_then(|code| serde_json::from_value(code.clone()).ok());
    let mut problem =
        Problem::new(code.unwrap_or(ProblemCode::Internal), words("message").unwrap_or_default());
    problem.hint = words("hint");
    Some(problem)
}

/// Whoever started a process buries it. If we end first, somebody else does.
fn reap_child(mut child: Child) {
    std::thread::spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use landfall_api::ProblemCode;

    use super::parse_reported_problem;

    #[test]
    fn what_a_run_complains_of_is_understood() {
        let said = "talk\n{\"error\":{\"exit\":7,\"word\":\"busy\",\"problem\":\"engine-busy\",\"message\":\"held\",\"hint\":\"wait\"}}\n";
        let problem = parse_reported_problem(said).expect("it complains");
        assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::EngineBusy, "held"));
        assert_eq!(problem.hint.as_deref(), Some("wait"));
        assert_eq!(parse_reported_problem("{\"run\":\"R1\"}\nwords\n"), None);
    }
}
