//! Kind `tmux`: an interactive agent in a terminal that a person can attach to.
//!
//! Our own program is started as a bridge. It gives the agent a terminal, types the prompt, and looks at the screen. What a
//! screen means is said here, by tables and without any IO ([`look`]); the bridge only carries it out. What it is told
//! is a [`TmuxOrder`], what it says are [`TmuxNote`]s.

mod blocks;
mod deny;
mod look;
mod note;
mod order;
mod parser;
mod screen;
#[cfg(test)]
mod tests;

pub use blocks::visible_messages;
pub use deny::is_destructive;
pub use look::{ScreenKey, ScreenPrompt, ScreenPromptKind, ScreenState, read_screen};
pub use note::TmuxNote;
pub use order::{AttachTarget, NEXT, NextInput, POLL_MS, SOCKET, TERMINAL, TmuxOrder};
pub use screen::TerminalScreen;

use serde::{Deserialize, Serialize};

use crate::agent::{
    Agent, AgentRequirements, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest, OutputParser,
    ParserContext,
};
use crate::claude;
use crate::family;
use crate::mcp;
use crate::words::split;

/// The adapter.
pub(crate) struct Tmux;

/// The program that gives an agent its terminal.
pub const TERMINAL_PROGRAM: &str = "tmux";

/// The programs whose screens we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminalAgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Any other: only what most terminals have in common is understood.
    Other,
}

impl TerminalAgentKind {
    /// The one that this program is.
    #[must_use]
    pub fn of(program: &str) -> Self {
        match program.rsplit('/').next() {
            Some("claude") => Self::Claude,
            Some("codex") => Self::Codex,
            Some(_) | None => Self::Other,
        }
    }

    /// Whether its screen shows when it works. Of a program that we do not know, only changes of the screen are understood.
    #[must_use]
    pub fn shows_its_work(self) -> bool {
        match self {
            Self::Claude | Self::Codex => true,
            Self::Other => false,
        }
    }

    /// The keys that make it leave its terminal.
    #[must_use]
    pub fn leave_keys(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["C-c", "C-c"],
            Self::Codex => &["C-c"],
            Self::Other => &["C-c", "C-d"],
        }
    }
}

impl Agent for Tmux {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        command_line(profile).map(drop)
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        self.check_profile(&brief.profile)?;
        let (cli, argv) = argv(brief)?;
        let order = TmuxOrder {
            argv,
            cli,
            prompt: brief.prompt.clone(),
            name: format!("landfall-{}", brief.task),
            folder: brief.tmp.clone(),
            dispatched: brief.dispatched,
            poll_ms: brief.profile.terminal_poll_ms,
            session: (cli == TerminalAgentKind::Claude)
                .then(|| brief.resume.clone().unwrap_or_else(|| brief.session.clone())),
        };
        let terminal =
            AttachTarget { folder: brief.tmp.clone(), socket: SOCKET.to_owned(), name: order.name.clone() };
        let file = brief.attempt_dir.join("bridge.json");
        Ok(LaunchCommand {
            argv: vec![brief.program.clone().into(), "bridge".into(), "tmux".into()],
            env: brief.env_after(&ENV),
            // By stdin: whatever the agent may not read, it has been opened before.
            stdin: Some(file.clone()),
            // Where a person attaches is written by us, before the agent runs: it must not send them elsewhere.
            files: vec![(file, order.json()?), (brief.attempt_dir.join(TERMINAL), terminal.to_json()?)],
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        parser::terminal_parser(ear)
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: command_line(profile).ok().and_then(|words| words.into_iter().next()),
            version_args: &[],
            install: "install tmux and the agent that `run` names",
            login: "log in as that agent wants it, once, in a terminal",
            state: command_line(profile)
                .map(|words| family::state_paths(&words, profile))
                .unwrap_or_default(),
            terminal: true,
        }
    }

    fn has_closing_message(&self) -> bool {
        true // the bridge says how it ended
    }
}

/// As for the same agents without a terminal: no noise, no updates, and the word that they are confined.
const ENV: [(&str, &str); 3] =
    [("IS_SANDBOX", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")];

/// The words of `run`.
fn command_line(profile: &LaunchProfile) -> Result<Vec<String>, LaunchError> {
    let missing = || LaunchError::Missing { profile: profile.name.clone(), kind: "tmux", key: "run" };
    let run = profile.run.as_deref().ok_or_else(missing)?;
    split(run).map_err(|problem| LaunchError::Words { profile: profile.name.clone(), problem })
}

/// The whole command line: `run`, what the brief asks for, and the flags.
fn argv(brief: &LaunchRequest) -> Result<(TerminalAgentKind, Vec<String>), LaunchError> {
    let profile = &brief.profile;
    let mut argv = command_line(profile)?;
    let cli = argv.first().map_or(TerminalAgentKind::Other, |program| TerminalAgentKind::of(program));
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(model) = &profile.model {
        option("--model", model.clone());
    }
    match cli {
        TerminalAgentKind::Claude => {
            if let Some(effort) = &profile.effort {
                option("--effort", effort.clone());
            }
            match &brief.resume {
                Some(session) => option("--resume", session.clone()),
                None => option("--session-id", brief.session.clone()),
            }
            if let Some(program) = mcp::mcp_program(brief) {
                option("--mcp-config", claude::mcp_config(program).to_string());
            }
        }
        TerminalAgentKind::Codex => {
            if let Some(session) = &brief.resume {
                argv.extend(["resume".to_owned(), session.clone()]);
            }
        }
        TerminalAgentKind::Other => {
            if let Some(session) = &brief.resume {
                option("--resume", session.clone());
            }
        }
    }
    argv.extend(words);
    argv.extend(profile.flags.iter().cloned());
    Ok((cli, argv))
}
