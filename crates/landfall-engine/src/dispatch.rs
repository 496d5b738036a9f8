//! Typing the steps of a loop into one terminal: the agent finishes a step, says by its signal what comes next, and is told
//! to do that when it waits at its input. Whether it does is seen by the bridge, which holds the terminal.

use std::path::{Path, PathBuf};

use landfall_agents::tmux::{NEXT, Next};
use landfall_host::git::Nook;
use landfall_model::{Digest, Stride, Task};

use crate::confine;
use crate::launch::{DISPATCH, write_private};
use crate::module;
use crate::prompts::PromptContext;
use crate::site::Site;

/// What was typed last, in the folder of the run: an engine that adopts it goes on from there.
const RECORD: &str = "dispatch.json";
/// How long a terminal may wait without a signal before the agent is told to continue: the file may come a little later.
const NUDGE_MS: u64 = 3_000;
/// How often it is told so without a step in between.
const NUDGES_MAX: u32 = 3;

/// The terminal of one run.
pub(crate) struct Dispatch {
    dir: PathBuf,
    /// How many commands were typed after the prompt.
    count: u32,
    /// The last step that was known then, and the state of the module.
    mark: Option<String>,
    revision: Option<Digest>,
    nudges: u32,
    /// Whether the agent waits, and since when.
    waits: Option<Option<u64>>,
}

impl Dispatch {
    /// Of a run that begins. Whatever step is known now is from before.
    pub fn begin(task: &Task, dir: &Path) -> Self {
        let mark = task.stride.as_ref().map(|stride| stride.mark.clone());
        let it = Self { dir: dir.to_owned(), count: 0, mark, revision: None, nudges: 0, waits: None };
        it.record();
        it
    }

    /// Of a run that another engine began.
    pub fn adopt(dir: &Path) -> Self {
        let text = std::fs::read(dir.join(RECORD)).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let word = |name: &str| record[name].as_str().map(str::to_owned);
        Self {
            dir: dir.to_owned(),
            count: record["count"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            mark: word("mark"),
            revision: word("revision").map(|word| Digest::new(&word)),
            nudges: 0,
            waits: None,
        }
    }

    /// The agent has done the command of this number.
    pub fn waits(&mut self, count: u32) {
        self.waits = (count == self.count).then_some(None);
    }

    /// Tells the next step, if the agent waits for one. Without a signal it is told to continue, but only from the state that
    /// its command was given in: what somebody changed meanwhile is to be read first.
    pub fn tell(&mut self, site: &Site, task: &Task, last: Option<&Stride>, leaves: bool, now: u64) {
        let Some(since) = &mut self.waits else { return };
        let since = *since.get_or_insert(now);
        let workspace = site.pool.existing(&task.id.to_string());
        let revision = workspace.and_then(|it| module::revision(task, it.path()));
        let stride = last.filter(|last| self.mark.as_ref() != Some(&last.mark));
        let context = |next: &str, moved: bool| PromptContext {
            task: task.id.to_string(),
            title: task.spec.title.clone(),
            step: task.step().map(ToString::to_string).unwrap_or_default(),
            module: module::path_of(task).to_owned(),
            next: Some(next.to_owned()),
            resumed: true,
            moved,
            ..PromptContext::default()
        };
        let text = match stride {
            _ if leaves => None,
            Some(stride) if stride.next.is_empty() || stride.next.starts_with('(') => None,
            Some(stride) => {
                self.nudges = 0;
                site.prompts.render(DISPATCH, &context(&stride.next, false)).ok()
            }
            None if now.saturating_sub(since) < NUDGE_MS => return,
            None if self.nudges >= NUDGES_MAX => None,
            None => {
                self.nudges += 1;
                let moved = self.count > 0 && self.revision != revision;
                site.prompts.render(DISPATCH, &context("continue", moved)).ok()
            }
        };
        self.count += 1;
        self.mark = last.map(|last| last.mark.clone());
        self.revision = revision;
        self.record();
        let next = Next { count: self.count, text };
        let tmp = confine::private_tmp(&self.dir);
        let (Some(parent), Some(name)) = (tmp.parent(), tmp.file_name().and_then(|name| name.to_str()))
        else {
            return;
        };
        let told = Nook::open(parent, name).and_then(|nook| nook.write(NEXT, &next.json()));
        if told.is_ok() {
            self.waits = None;
        }
    }

    fn record(&self) {
        let record = serde_json::json!({
            "count": self.count,
            "mark": self.mark,
            "revision": self.revision.as_ref().map(Digest::as_str),
        });
        drop(write_private(&self.dir.join(RECORD), record.to_string().as_bytes())); // only for who adopts it
    }
}
