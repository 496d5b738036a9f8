//! What a script says, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landfall_model::AgentUsage;

use super::error::ScriptError;
use super::read::read;
use crate::agent::AgentStream;

/// A script: what the agent does at each of its runs for a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    turns: Vec<ScriptTurn>,
    otherwise: Option<ScriptTurn>,
    steps: BTreeMap<String, Vec<ScriptTurn>>,
}

/// What the agent does in one run, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScriptTurn {
    /// The session it says it has.
    pub session: Option<String>,
    /// How long it thinks first.
    pub sleep_ms: u64,
    /// Files it writes.
    pub writes: Vec<ScriptWrite>,
    /// Files and folders it deletes.
    pub deletes: Vec<PathBuf>,
    /// Files it changes.
    pub edits: Vec<ScriptEdit>,
    /// Whether it commits.
    pub commit: ScriptCommit,
    /// A command it runs, if not empty.
    pub run: Vec<String>,
    /// What it says.
    pub says: Vec<ScriptMessage>,
    /// What it has used up.
    pub usage: Option<AgentUsage>,
    /// How it misbehaves.
    pub mode: ScriptMisbehavior,
    /// The control words it ends with, each a whole line.
    pub signals: Vec<String>,
    /// Its exit code.
    pub exit: u8,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptWrite {
    /// Relative to the workspace, and inside it.
    pub path: PathBuf,
    /// What to write.
    pub content: FileContent,
    /// Whether it can be run.
    pub executable: bool,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Exactly this.
    Whole(Vec<u8>),
    /// What it was, and this after it.
    Append(String),
}

/// A change in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEdit {
    /// Relative to the workspace, and inside it.
    pub path: PathBuf,
    /// What must be there.
    pub find: String,
    /// What stands there afterwards, at every place.
    pub replace: String,
}

/// Whether the agent commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScriptCommit {
    /// Yes, if it wrote, deleted or edited something.
    #[default]
    IfChanged,
    /// Yes; with a message of its own making if there is none.
    Always(Option<String>),
    /// No: it forgets.
    Never,
}

/// Something the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptMessage {
    /// Its words; the newline at the end is added.
    pub text: String,
    /// Where it says them.
    pub stream: AgentStream,
    /// How long it waits before.
    pub pause_ms: u64,
}

/// How the agent misbehaves, once its work and words are done and before it signals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScriptMisbehavior {
    /// Not at all.
    #[default]
    Ok,
    /// Exits with 1 at once, without a word.
    Fail,
    /// Exits with 0 at once, without a word.
    NoOp,
    /// Never ends and never says anything.
    Hang,
    /// The same, and does not heed SIGTERM.
    IgnoreTerm,
    /// Ends by a signal.
    Crash,
    /// Writes this much as fast as it can, in lines.
    Flood {
        /// How much.
        bytes: u64,
    },
    /// Writes this much without a newline.
    HugeLine {
        /// How much.
        bytes: u64,
    },
    /// Writes one byte every 20 ms.
    SlowDrip {
        /// For how long.
        for_ms: u64,
    },
    /// Writes bytes that are no text, and terminal sequences.
    Garbage,
    /// Processes that replace themselves again and again.
    ForkBomb {
        /// How many at a time.
        count: u16,
        /// Until they give up.
        for_ms: u64,
    },
    /// Leaves a process behind in a session of its own that goes on writing to a file.
    Setsid {
        /// The file, in the workspace.
        target: PathBuf,
        /// Until it gives up.
        for_ms: u64,
    },
    /// Leaves a process behind that holds the output open.
    Orphan {
        /// Until it gives up.
        for_ms: u64,
    },
    /// Says it is done; the work is whatever the script says, and not enough.
    Lie,
    /// Does not commit and says it is done.
    ForgetCommit,
    /// Makes a test pass by breaking the test, and says it is done.
    WeakenTest {
        /// The test file.
        target: PathBuf,
        /// In which way.
        how: TestWeakening,
    },
    /// The account is used up.
    Quota {
        /// How long from now until it resets, if it says.
        until_ms: Option<u64>,
    },
    /// The provider has a passing trouble.
    Transient {
        /// Its words.
        detail: String,
    },
    /// Asks a yes/no question on the terminal and waits for the answer.
    Prompt,
    /// Attacks the repository of the person.
    MoveMain {
        /// In which way.
        attack: RepoAttack,
        /// The file that is created if anything runs what was planted.
        canary: Option<PathBuf>,
    },
}

/// A way to weaken a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestWeakening {
    /// Deletes the file.
    Delete,
    /// Marks its tests as skipped.
    Skip,
    /// Puts a test in its place that always passes.
    Trivial,
}

/// An attack on the person's repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoAttack {
    /// Moves and pushes branches.
    Branches,
    /// Hooks in the workspace's `.git`.
    Hooks,
    /// Clean and smudge filters.
    Filter,
    /// A file system monitor.
    Fsmonitor,
    /// `.git` becomes a file that points to a prepared folder.
    Gitfile,
    /// A folder of the tree that is a bare repository.
    NestedBare,
    /// Alternate objects, with a command to list their refs.
    Alternates,
    /// Diff, textconv and merge drivers.
    Attributes,
    /// A configuration that includes another, full of programs to run.
    ConfigInclude,
}

impl Script {
    /// Reads and checks a script. Nothing unknown is accepted.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        read(text)
    }

    pub(super) fn new(
        turns: Vec<ScriptTurn>,
        otherwise: Option<ScriptTurn>,
        steps: BTreeMap<String, Vec<ScriptTurn>>,
    ) -> Self {
        assert!(!turns.is_empty(), "a script without iterations has the one made of its defaults");
        Self { turns, otherwise, steps }
    }

    /// What to do in a step that has turns of its own, in the run of this number within that step, from 1. Past the end
    /// it is the last one again. None: the step has none, so that [`Script::turn_for_iteration`] says it.
    #[must_use]
    pub fn step_turn(&self, step: &str, run: u32) -> Option<&ScriptTurn> {
        let turns = self.steps.get(step)?;
        let index = usize::try_from(run.max(1) - 1).unwrap_or(usize::MAX);
        turns.get(index).or(turns.last())
    }

    /// What to do in the run of this number, from 1. Past the end it is `[otherwise]`, else the last one again.
    #[must_use]
    pub fn turn_for_iteration(&self, iteration: u32) -> &ScriptTurn {
        let index = usize::try_from(iteration.max(1) - 1).unwrap_or(usize::MAX);
        let last = self.turns.last().expect("never empty");
        self.turns.get(index).or(self.otherwise.as_ref()).unwrap_or(last)
    }
}

impl ScriptTurn {
    /// Whether the script itself changes files.
    #[must_use]
    pub fn changes_files(&self) -> bool {
        !(self.writes.is_empty() && self.deletes.is_empty() && self.edits.is_empty())
    }
}
