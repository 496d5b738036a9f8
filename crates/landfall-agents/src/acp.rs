//! Kind `acp`: any agent that speaks the Agent Client Protocol, version 1.
//!
//! Such an agent wants a conversation, so it is not started by itself: our own program is, as a bridge, and holds the
//! conversation. What the bridge is told is an [`AcpOrder`]; what it says are [`AcpNote`]s and the agent's own messages, each
//! in an envelope, so that neither can pass for the other.

mod note;
mod order;
mod parser;

pub use note::{AcpError, AcpNote};
pub use order::{AcpOrder, McpServer};

use crate::agent::{
    Agent, AgentRequirements, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest, OutputParser,
    ParserContext,
};
use crate::family;
use crate::mcp;
use crate::words::split;

/// The adapter.
pub(crate) struct Acp;

/// Modes in which an agent does not ask, in the words of the agents that have one. The first that is offered is taken;
/// where none is, the bridge answers what it is asked.
const MODES: [&str; 5] =
    ["bypassPermissions", "yolo", "agent-full-access", "full-access", "danger-full-access"];

impl Agent for Acp {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        command_line(profile).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        self.check_profile(&brief.profile)?;
        let order = AcpOrder {
            argv: command_line(&brief.profile)?,
            prompt: brief.prompt.clone(),
            resume: brief.resume.clone(),
            modes: MODES.map(str::to_owned).to_vec(),
            model: brief.profile.model.clone(),
            effort: brief.profile.effort.clone(),
            mcp: mcp::mcp_program(brief).map(|program| McpServer {
                name: mcp::NAME.to_owned(),
                command: program.to_owned(),
                args: mcp::ARGS.map(str::to_owned).to_vec(),
                env: mcp::ENV.map(str::to_owned).to_vec(),
            }),
        };
        let file = brief.attempt_dir.join("bridge.json");
        Ok(LaunchCommand {
            argv: vec![brief.program.clone().into(), "bridge".into(), "acp".into()],
            env: brief.agent_environment(),
            // By stdin: whatever the agent may not read, it has been opened before.
            stdin: Some(file.clone()),
            files: vec![(file, order.json())],
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        parser::conversation_parser(ear)
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: command_line(profile).ok().and_then(|words| words.into_iter().next()),
            version_args: &[],
            install: "install the agent that `run` names; it must speak the Agent Client Protocol on stdio",
            login: "log in as that agent wants it, once, in a terminal",
            state: command_line(profile)
                .map(|words| family::state_paths(&words, profile))
                .unwrap_or_default(),
            terminal: false,
        }
    }

    fn calls_model(&self) -> bool {
        true
    }

    fn has_closing_message(&self) -> bool {
        true // the answer to the prompt
    }
}

/// The words of `run`, then the flags.
fn command_line(profile: &LaunchProfile) -> Result<Vec<String>, LaunchError> {
    let missing = || LaunchError::Missing { profile: profile.name.clone(), kind: "acp", key: "run" };
    let run = profile.run.as_deref().ok_or_else(missing)?;
    let words =
        split(run).map_err(|problem| LaunchError::Words { profile: profile.name.clone(), problem })?;
    Ok(words.into_iter().chain(profile.flags.iter().cloned()).collect())
}
