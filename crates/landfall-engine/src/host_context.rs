//! What performing an order needs on any machine: folders, the store, workspaces, settings, prompts, lanes, and a way to tell the
//! engine what came of it. What only an engine has is in `engine_context`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};

use landfall_host::clock::Clock;
use landfall_host::git::{BranchName, Repo, Store, WorkspacePool};
use landfall_model::queue::QueueNews;
use landfall_model::recovery::Pattern;
use landfall_model::resource;
use landfall_model::{Attempt, News, TaskId, Timestamp};

use crate::active_work::ActiveWork;
use crate::folder::StateFolder;
use crate::interrupt::Interrupt;
use crate::lane_pool::LanePool;
use crate::mail::EngineMessage;
use crate::measured::Measurements;
use crate::output_text::read_text_tail;
use crate::prompts::Prompts;
use crate::settings::Settings;
use crate::shortage::Shortages;

/// The context of every order that is performed on this machine. The threads that perform share it.
pub struct HostContext {
    /// Where the state is.
    pub folder: StateFolder,
    /// The person's repository.
    pub repo: Repo,
    /// The branch work lands on.
    pub branch: BranchName,
    /// The engine's own repository.
    pub store: Store,
    /// The workspaces.
    pub pool: WorkspacePool,
    /// What the person set.
    pub settings: Settings,
    /// The prompt templates.
    pub prompts: Prompts,
    /// The id of its journal, which every run folder carries.
    pub journal_id: String,
    /// Where its journal ends.
    pub end: Arc<landfall_store::JournalEnd>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Our own executable: the sitter and the scripted agent are part of it.
    pub program: PathBuf,
    /// The environment agents and checks get.
    pub env: Vec<(OsString, OsString)>,
    /// The engine's own environment, of which a profile may name more.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What failures of a step look like, and what is done about them.
    pub(crate) catalogue: Vec<Pattern>,
    /// Where news goes.
    pub(crate) mail: Sender<EngineMessage>,
    /// What was read and measured of commits.
    pub(crate) measured: Mutex<Measurements>,
    /// Where verifications check work out.
    pub(crate) lanes: LanePool,
    /// What is under way, and what is to end.
    pub(crate) active: ActiveWork,
    /// The engine is stopping now: what a check came to no longer counts.
    pub(crate) interrupted: Arc<Interrupt>,
    /// Who reads in the room of a task: the attempt it was made for, and the iteration once one is in it. Whoever has left gives
    /// up no room of the next.
    pub(crate) reading: Mutex<BTreeMap<TaskId, (Attempt, Option<u32>)>>,
    /// Whether names of the user's checkout are the same in large and small letters, once that was looked up.
    pub(crate) ignores_case: OnceLock<bool>,
    /// What this machine has run out of, and what waits for it.
    pub(crate) shortages: Shortages,
}

impl AsRef<Self> for HostContext {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// A check that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCheck {
    /// What it verifies: `T7`, `B3`, `base`.
    pub of: String,
    /// What it is called.
    pub check: String,
    /// How long it has run.
    pub elapsed_ms: u64,
    /// How long it may.
    pub limit_ms: u64,
    /// The last line that it wrote.
    pub last_line: String,
}

impl HostContext {
    /// The checks that run now, and how far they are. None once the engine was told to stop at once: what they come to no
    /// longer counts.
    pub fn running_checks(&self) -> Vec<RunningCheck> {
        if self.interrupted.is_set() {
            return Vec::new();
        }
        let begun = self.active.running_checks();
        let now = self.clock.mono_ms();
        let running = begun.into_iter().map(|(dir, begun)| RunningCheck {
            of: begun.name.split('-').next().unwrap_or_default().to_owned(),
            check: begun.check,
            elapsed_ms: now.saturating_sub(begun.began_mono_ms),
            limit_ms: begun.limit_ms,
            last_line: last_line(&dir),
        });
        running.collect()
    }
}

/// The last line that a check wrote, to either stream: the one that was written to later.
fn last_line(dir: &Path) -> String {
    const TAIL_BYTES: u64 = 2_048;
    let written = |name: &str| {
        let path = dir.join(name);
        let meta = std::fs::metadata(&path).ok().filter(|meta| meta.len() > 0)?;
        Some((meta.modified().ok()?, path))
    };
    let newest = ["out.log", "err.log"].into_iter().filter_map(written).max();
    let text = newest.map(|(_, path)| read_text_tail(&path, TAIL_BYTES)).unwrap_or_default();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

impl HostContext {
    /// The wall clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.now_ms())
    }

    /// Whether a person wants the agent of this attempt to end.
    pub(crate) fn is_stopped(&self, task: TaskId, attempt: Attempt) -> bool {
        self.active.stop_mode(task, attempt).is_some()
    }

    /// Sends news of the landing queue to the engine.
    pub(crate) fn tell_queue(&self, news: QueueNews) {
        let failure = match &news {
            QueueNews::Failed { detail, .. } => self.shortages.note_and_try(detail),
            _ => None,
        };
        let news = match failure {
            Some(failure) => resource::to_queue_resource_news(news, failure),
            None => news,
        };
        let _ = self.mail.send(EngineMessage::Queue(Box::new(news))); // the engine has left: recovery finds it out again
    }

    /// What was being done about a task was cut short by a stop: this run waits for it no longer, and the next one does it again.
    pub(crate) fn note_cut_short(&self, task: TaskId) {
        let _ = self.mail.send(EngineMessage::CutShort(task)); // the engine has left: the journal expects it anyway
    }

    /// Sends news of a task to the engine.
    pub(crate) fn send_news(&self, task: TaskId, news: News) {
        let failure = resource::failure_text(&news).and_then(|detail| self.shortages.note_and_try(detail));
        let news = match failure {
            Some(failure) => resource::to_resource_news(news, failure),
            None => news,
        };
        let _ = self.mail.send(EngineMessage::News(task, Box::new(news))); // the engine has left: recovery finds it out again
    }
}
