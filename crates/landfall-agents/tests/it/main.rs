//! The tests of the agents, all without a process.

mod adapters;
#[path = "../../../../fuzz/src/check.rs"]
mod check;
mod command;
mod conformance;
mod corpus;
mod files;
mod lookalikes;
mod reference;
mod script;
mod speech;
mod tags;

use std::fmt::Write as _;
use std::path::PathBuf;

use landfall_agents::{AgentStream, LaunchProfile, LaunchRequest, OutputParser};
use landfall_model::Signal;

/// A brief that every agent can be launched for.
fn brief(kind: &str) -> LaunchRequest {
    LaunchRequest {
        task: "T7".to_owned(),
        title: "Greet by name".to_owned(),
        body: "Say hello to the person by name.".to_owned(),
        iteration: 2,
        attempt: 3,
        step: "implement".to_owned(),
        step_run: 1,
        prompt: "PROMPT-CANARY: say hello to the person by name".to_owned(),
        workspace: PathBuf::from("/state/workspaces/T7"),
        prompt_file: PathBuf::from("/state/attempts/9/prompt.md"),
        attempt_dir: PathBuf::from("/state/attempts/9"),
        nonce: "NONCE-CANARY".to_owned(),
        profile: LaunchProfile {
            name: "main".to_owned(),
            kind: kind.to_owned(),
            run: Some("my-agent --unattended".to_owned()),
            ..LaunchProfile::default()
        },
        signal_socket: PathBuf::from("/state/attempts/9/signal.sock"),
        dispatched: false,
        resume: None,
        session: "5f0c2a9e-0000-4000-8000-000000000007".to_owned(),
        tmp: PathBuf::from("/state/attempts/9/tmp"),
        script_text: None,
        program: PathBuf::from("/usr/bin/landfall"),
    }
}

/// All that is heard in an output that comes in one piece.
fn at_once(mut parser: Box<dyn OutputParser + Send>, output: &[u8]) -> Vec<Signal> {
    let mut signals = parser.feed(AgentStream::Out, output);
    signals.extend(parser.finish());
    signals
}

/// Signals for a snapshot: one line each, without line ends in them.
fn render(signals: &[Signal]) -> String {
    signals.iter().fold(String::new(), |mut text, signal| {
        writeln!(text, "{signal:?}").expect("a string takes everything");
        text
    })
}
