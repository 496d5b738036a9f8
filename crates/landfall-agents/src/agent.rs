//! What every adapter offers, and what it is given.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use landfall_model::{AgentUsage, Signal};
use thiserror::Error;

use crate::script::ScriptError;
use crate::words::{CommandLineError, split};

/// How one kind of agent is started and understood.
pub trait Agent: Send {
    /// Refuses a profile that could never be launched, so that settings are checked before any work begins.
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError>;

    /// What to run for this brief. The prompt travels by file or stdin, never in argv.
    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError>;

    /// A fresh ear for one run of the agent.
    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send>;

    /// What this agent needs on the machine.
    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements;

    /// Whether its protocol has a closing word. Without one from such an agent, a run did not end well, whatever its
    /// exit code.
    fn has_closing_message(&self) -> bool;

    /// Whether it calls a model itself and shows what the model says and does. Then only that is a sign of life, not what its
    /// program does while it waits; and when there is none, its provider does not answer.
    fn calls_model(&self) -> bool {
        false
    }

    /// A file the agent keeps of a session, beside what it writes out; it is read when the run is over and fed to the
    /// parser as [`AgentStream::Aside`], before [`OutputParser::finish`].
    fn session_side_file(&self, profile: &LaunchProfile, session: &str) -> Option<SideFile> {
        let _ = (profile, session);
        None
    }
}

/// What an agent needs on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentRequirements {
    /// The program to look for in `PATH`; none when it is part of Landfall.
    pub program: Option<String>,
    /// Arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// How a person installs it, in a sentence or a command.
    pub install: &'static str,
    /// How a person logs in, in a sentence or a command.
    pub login: &'static str,
    /// Files and folders the agent keeps its own state in and must be able to write. `~` is the home folder.
    pub state: Vec<String>,
    /// Whether it works in a terminal, which not every level of the sandbox has.
    pub terminal: bool,
}

/// What a parser has to know about the run beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParserContext {
    /// The key of this run: a tag of a model must carry it, so that text the model only quotes says nothing.
    pub nonce: String,
    /// Whether a session is resumed.
    pub resumed: bool,
    /// What that session had used before: some agents report totals over the whole session.
    pub before: AgentUsage,
}

/// Where to find a file of the agent: the newest below `root` whose name ends with `suffix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// The folder; `~` is the home folder.
    pub root: String,
    /// How the name ends.
    pub suffix: String,
}

/// Makes signals of what one run of an agent writes. Nothing an agent can write is an error: what is not
/// understood is kept as text and counted.
pub trait OutputParser {
    /// Takes the next bytes of one of the two outputs. How they are cut into calls makes no difference.
    fn feed(&mut self, stream: AgentStream, bytes: &[u8]) -> Vec<Signal>;

    /// Whether the last bytes held nothing but what the program itself has to say: no word of its model or of a tool.
    fn was_only_status(&self) -> bool {
        false
    }

    /// The outputs have ended: a last line without a newline is heard now.
    fn finish(&mut self) -> Vec<Signal>;

    /// Lines that looked like the agent's protocol and were not understood.
    fn raw_lines_unknown(&self) -> u64;

    /// Lines longer than [`LINE_MAX`](crate::LINE_MAX), of which only the beginning was kept.
    fn lines_cut(&self) -> u64;
}

/// Where bytes of a run come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A file the agent keeps of the session, read after the end: see [`Agent::session_side_file`].
    Aside,
}

/// An agent with its model, flags and environment, as settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchProfile {
    /// What settings call it.
    pub name: String,
    /// Which agent it is: a name in the registry.
    pub kind: String,
    /// The command line of a `command` agent.
    pub run: Option<String>,
    /// The file of a `script` agent. Its text arrives in [`LaunchRequest::script_text`].
    pub script: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// How hard the model is to think, in the agent's own word.
    pub effort: Option<String>,
    /// How many turns the model may take in one run, where the agent can be told.
    pub turns_max: Option<u32>,
    /// More arguments, as they are.
    pub flags: Vec<String>,
    /// More environment.
    pub env: BTreeMap<String, String>,
    /// Whether the agent is given Landfall's MCP server, where it can be told of one.
    pub mcp: bool,
    /// The time between two looks at the agent's terminal, where it has one.
    pub terminal_poll_ms: u64,
}

impl Default for LaunchProfile {
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: String::new(),
            run: None,
            script: None,
            model: None,
            effort: None,
            turns_max: None,
            flags: Vec::new(),
            env: BTreeMap::new(),
            mcp: true, // the surest way for a model to say a word, so it is there unless someone turns it off
            terminal_poll_ms: crate::tmux::POLL_MS,
        }
    }
}

/// One run of an agent: everything an adapter may want to know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRequest {
    /// The task, written `T7`.
    pub task: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Which run of the agent for this task this is, from 1, counted over all its attempts.
    pub iteration: u32,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// The step of the flow.
    pub step: String,
    /// Which run of an agent in this step of the task this is, from 1.
    pub step_run: u32,
    /// What the agent is told. Whoever launches it has written the same text to `prompt_file`.
    pub prompt: String,
    /// Where it works.
    pub workspace: PathBuf,
    /// The file that holds the prompt.
    pub prompt_file: PathBuf,
    /// The folder of this attempt, outside the workspace.
    pub attempt_dir: PathBuf,
    /// The key of this run: what shows that a word comes from this very run, on every channel.
    pub nonce: String,
    /// The socket that takes words from `landfall signal` and the MCP tools.
    pub signal_socket: PathBuf,
    /// Whether it is told more, step by step, once it has done what the prompt says.
    pub dispatched: bool,
    /// The session to go on with.
    pub resume: Option<String>,
    /// A name for a new session (a UUID), for agents that let one be chosen.
    pub session: String,
    /// A folder for short-lived files of this run, outside the workspace and not shared with anyone.
    pub tmp: PathBuf,
    /// The profile to launch.
    pub profile: LaunchProfile,
    /// The text of the file that the profile's `script` names.
    pub script_text: Option<String>,
    /// Our own executable, for agents that are part of it.
    pub program: PathBuf,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchCommand {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Added to the scrubbed environment; later entries win.
    pub env: Vec<(OsString, OsString)>,
    /// What the agent reads on stdin; nothing when absent.
    pub stdin: Option<PathBuf>,
    /// Files to write before it starts.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Why an agent cannot be launched. Trying again would not help: a person has to change something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// The profile lacks what this kind of agent needs.
    #[error("profile `{profile}` of kind `{kind}` has no `{key}`")]
    Missing {
        /// The profile.
        profile: String,
        /// The agent.
        kind: &'static str,
        /// The setting that is not there.
        key: &'static str,
    },
    /// The command line cannot be split into words.
    #[error("read `run` of profile `{profile}`: {problem}")]
    Words {
        /// The profile.
        profile: String,
        /// What is wrong with it.
        #[source]
        problem: CommandLineError,
    },
    /// A placeholder that is not known, or that has no value.
    #[error("`{{{name}}}` in profile `{profile}` {problem}")]
    Placeholder {
        /// The profile.
        profile: String,
        /// The name between the braces.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An environment entry that no program can be given, or that is ours to set.
    #[error("environment entry `{key}` of profile `{profile}` {problem}")]
    Env {
        /// The profile.
        profile: String,
        /// The variable.
        key: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The profile names a script and nobody has read it.
    #[error("the script `{file}` of profile `{profile}` is not there")]
    Unread {
        /// The profile.
        profile: String,
        /// The file it names.
        file: String,
    },
    /// The script cannot be played.
    #[error("{place}: {problem}")]
    Script {
        /// Where the script stands.
        place: String,
        /// What is wrong with it.
        #[source]
        problem: ScriptError,
    },
    /// The task's text holds script blocks that cannot be told apart from each other or from the text.
    #[error("line {line} of the task's body: {problem}")]
    Block {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: &'static str,
    },
}

impl LaunchError {
    /// What a person could do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { kind, key, .. } => {
                Some(format!("agents of kind `{kind}` are told what to run by `{key}` in their profile"))
            }
            Self::Words { .. } => Some("quote words as a shell would; nothing is expanded".to_owned()),
            Self::Placeholder { .. } => Some(
                "known are {model}, {workspace} and {prompt_file}; the prompt itself comes on stdin"
                    .to_owned(),
            ),
            Self::Env { .. } | Self::Unread { .. } => None,
            Self::Script { problem, .. } => problem.hint(),
            Self::Block { .. } => Some("a task has one block that opens with ```landfall-script".to_owned()),
        }
    }
}

impl LaunchProfile {
    /// The words that start the program: those of `run` if the profile names another, else `usual` alone.
    pub(crate) fn program_words(&self, usual: &str) -> Result<Vec<String>, LaunchError> {
        match self.run.as_deref() {
            Some(run) => {
                split(run).map_err(|problem| LaunchError::Words { profile: self.name.clone(), problem })
            }
            None => Ok(vec![usual.to_owned()]),
        }
    }

    /// The program to look for.
    pub(crate) fn program_name(&self, usual: &str) -> Option<String> {
        self.program_words(usual).ok().and_then(|words| words.into_iter().next())
    }

    /// Refuses environment entries that cannot be passed on.
    pub(crate) fn check_env(&self) -> Result<(), LaunchError> {
        for (key, value) in &self.env {
            let problem = if key.is_empty() || key.contains('=') {
                "is not a name"
            } else if key.contains('\0') || value.contains('\0') {
                "holds a NUL byte"
            } else if key.starts_with("LANDFALL_") {
                "belongs to Landfall"
            } else {
                continue;
            };
            return Err(LaunchError::Env { profile: self.name.clone(), key: key.clone(), problem });
        }
        Ok(())
    }
}

impl LaunchRequest {
    /// The environment of an agent that has settings of its own there: `usual`, then what every agent gets. So the
    /// profile has the last word.
    pub(crate) fn env_after(&self, usual: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        usual.iter().map(|(key, value)| (key.into(), value.into())).chain(self.agent_environment()).collect()
    }

    /// The environment every agent gets: what its profile says, then which run this is.
    pub(crate) fn agent_environment(&self) -> Vec<(OsString, OsString)> {
        let profile = self.profile.env.iter().map(|(key, value)| (key.into(), value.into()));
        let ours = [
            ("LANDFALL_TASK", self.task.clone()),
            ("LANDFALL_STEP", self.step.clone()),
            ("LANDFALL_ATTEMPT", self.attempt.to_string()),
            ("LANDFALL_ITERATION", self.iteration.to_string()),
            ("LANDFALL_KEY", self.nonce.clone()),
        ];
        let paths = [
            // What the agent is told, as a file: for tools of the agent that do not see its stdin.
            ("LANDFALL_PROMPT", &self.prompt_file),
            ("LANDFALL_SIGNAL", &self.signal_socket),
            ("TMPDIR", &self.tmp),
        ];
        let paths = paths.map(|(key, path)| (key.into(), path.clone().into_os_string()));
        profile.chain(ours.map(|(key, value)| (key.into(), value.into()))).chain(paths).collect()
    }
}
