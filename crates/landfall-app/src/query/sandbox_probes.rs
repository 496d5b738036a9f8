//! `landfall doctor --sandbox`: what each level of the sandbox allows, by trying.

use std::ffi::OsString;
use std::path::Path;

use landfall_api::{Problem, SandboxReport};

/// Tries everything at every level that this machine supports, and says which of them the project uses.
#[cfg(target_os = "linux")]
pub fn sandbox_report(root: &Path) -> Result<SandboxReport, Problem> {
    use landfall_api::{ProblemCode, SandboxProbe};
    use landfall_engine::host::sandbox::{SandboxSupport, cached_probe};
    use landfall_engine::sandbox_probe::{probe_all, supported_levels};
    let failed = |detail: String| Problem::new(ProblemCode::Internal, format!("probe the sandbox: {detail}"));
    let program = std::env::current_exe().map_err(|error| failed(format!("find this program: {error}")))?;
    let began = std::time::Instant::now();
    let probes = probe_all(&program, &serve_engine).map_err(failed)?;
    let level = crate::sandbox_level(root);
    let probes = probes.into_iter().map(|probe| SandboxProbe {
        name: probe.name,
        what: probe.what,
        outcomes: probe
            .outcomes
            .into_iter()
            .map(|(level, outcome)| (level.word().to_owned(), outcome.wire_name().to_owned()))
            .collect(),
    });
    Ok(SandboxReport {
        level: level.word().to_owned(),
        leaves_open: level.leaves_open().iter().map(|&open| open.to_owned()).collect(),
        landlock: cached_probe().as_ref().map_or(0, |SandboxSupport { landlock, .. }| *landlock),
        supported: supported_levels().into_iter().map(|level| level.word().to_owned()).collect(),
        probes: probes.collect(),
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// An engine that answers its user and does nothing.
#[cfg(target_os = "linux")]
struct IdleEngine;

#[cfg(target_os = "linux")]
impl landfall_api::Service for IdleEngine {
    fn call(&self, _request: landfall_api::Request) -> Result<landfall_api::Response, Problem> {
        Err(Problem::new(landfall_api::ProblemCode::NotNow, "this engine serves the probes of the sandbox"))
    }

    fn admit_peer(&self, peer: &landfall_api::socket::PeerProcess) -> Result<(), Problem> {
        crate::project::open_engine::check_no_agent(peer)
    }
}

/// Serves the socket of an engine in the scene of the probes, with the server of every engine.
#[cfg(target_os = "linux")]
fn serve_engine(socket: &Path) -> Result<Box<dyn std::any::Any>, String> {
    let bound =
        landfall_api::socket::bind_socket(socket).map_err(|error| format!("make its socket: {error}"))?;
    let options = landfall_server::ServerOptions {
        socket: Some(bound),
        addresses: Vec::new(),
        hosts: Vec::new(),
        origins: Vec::new(),
        folder: socket.parent().unwrap_or(socket).to_owned(),
        project: "probe".to_owned(),
    };
    let serving = landfall_server::serve(options, std::sync::Arc::new(IdleEngine));
    Ok(Box::new(serving.map_err(|error| error.to_string())?))
}

/// There is no sandbox to probe.
#[cfg(not(target_os = "linux"))]
pub fn sandbox_report(_root: &Path) -> Result<SandboxReport, Problem> {
    use landfall_api::ProblemCode;
    Err(Problem::new(ProblemCode::Internal, "probe the sandbox: only Linux has one"))
}

/// The program inside the sandbox: returns the result of each probe as text to print. None: the arguments are wrong.
#[cfg(target_os = "linux")]
pub fn run_sandbox_attempts(args: impl Iterator<Item = OsString>) -> Option<String> {
    use landfall_engine::host::sandbox::attempts::{AttemptScene, try_all};
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let [root, engine, port, terminal, secrets @ ..] = args.as_slice() else { return None };
    let (Ok(engine), Ok(port)) = (engine.parse(), port.parse()) else { return None };
    let scene = AttemptScene { root: root.into(), engine, port, terminal: terminal.into() };
    Some(try_all(&scene, secrets))
}

/// There is no sandbox to try.
#[cfg(not(target_os = "linux"))]
pub fn run_sandbox_attempts(_args: impl Iterator<Item = OsString>) -> Option<String> {
    None
}
