//! Typing the steps of a loop into one terminal: the agent finishes a step, says by its signal what comes next, and is told
//! to do that when it waits at its input. Whether it does is seen by the bridge, which holds the terminal.

use std::path::{Path, PathBuf};

use landfall_agents::tmux::{NEXT, NextInput};
use landfall_host::crash;
use landfall_host::git::ExchangeFolder;
use landfall_model::{Digest, LoopStep, Task};

use crate::agent_run::DISPATCH;
use crate::confine;
use crate::host_context::HostContext;
use crate::module;
use crate::prompts::PromptContext;
use crate::run_folder::write_private;

/// What was typed last, in the folder of the run: an engine that adopts it goes on from there.
const RECORD: &str = "dispatch.json";
/// How long a terminal may wait without a signal before the agent is told to continue: the file may come a little later.
const NUDGE_MS: u64 = 3_000;
/// How often it is told so without a step in between.
const NUDGES_MAX: u32 = 3;

/// The terminal of one run.
pub(crate) struct TerminalDispatch {
    dir: PathBuf,
    /// How many commands were typed after the prompt.
    count: u32,
    /// The last step that was known then, and the state of the module.
    mark: Option<String>,
    revision: Option<Digest>,
    nudges: u32,
    /// Whether the agent waits, and since when.
    waits: Option<Option<u64>>,
    /// A step that it has finished since, and the state of the module when it said so.
    finished: Option<(String, Option<Digest>)>,
    /// What is decided and not told to the terminal yet.
    pending: Option<NextInput>,
}

impl TerminalDispatch {
    /// Of a run that begins. Whatever step is known now is from before.
    pub fn for_new_run(task: &Task, workspace: &Path, dir: &Path) -> Self {
        let it = Self {
            dir: dir.to_owned(),
            count: 0,
            mark: task.stride.as_ref().map(|stride| stride.mark.clone()),
            revision: module::module_revision(task, workspace),
            nudges: 0,
            waits: None,
            finished: None,
            pending: None,
        };
        it.save_record();
        it
    }

    /// Of a run that another engine began. It may have ended between deciding on a command and telling it, so the last one
    /// is told again: the terminal knows by its number whether it was typed.
    pub fn for_adopted_run(dir: &Path) -> Self {
        let text = std::fs::read(dir.join(RECORD)).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let word = |name: &str| record[name].as_str().map(str::to_owned);
        let count = record["count"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        Self {
            dir: dir.to_owned(),
            count,
            mark: word("mark"),
            revision: word("revision").map(|word| Digest::new(&word)),
            nudges: 0,
            waits: None,
            finished: None,
            pending: (count > 0).then(|| NextInput { count, text: word("text") }),
        }
    }

    /// The agent has done the command of this number.
    pub fn note_waiting(&mut self, count: u32) {
        self.waits = (count == self.count).then_some(None);
    }

    /// Tells the next step, if the agent waits for one. What it named itself counts only in the state that it was named in, and
    /// without a signal it is told to continue only from the state that its command was given in: of a module that was
    /// changed meanwhile, the status says what comes next, and the agent is told to read it anew.
    pub fn send_next_step(
        &mut self,
        site: &HostContext,
        task: &Task,
        last: Option<&LoopStep>,
        leaves: bool,
        now: u64,
    ) {
        let workspace = site.pool.find_workspace(&task.id.to_string());
        let path = workspace.as_ref().map(|it| it.path());
        let revision = || path.and_then(|path| module::module_revision(task, path));
        let stride = last.filter(|last| self.mark.as_ref() != Some(&last.mark));
        if let Some(stride) = stride
            && self.finished.as_ref().is_none_or(|(mark, _)| *mark != stride.mark)
        {
            self.finished = Some((stride.mark.clone(), revision()));
        }
        if let Some(since) = &mut self.waits {
            let since = *since.get_or_insert(now);
            let revision = revision();
            let entry = || path.map_or("plan", |path| module::entry_step(task, path)).to_owned();
            let next = match stride {
                _ if leaves => None,
                Some(stride) if stride.next.is_empty() || stride.next.starts_with('(') => None,
                Some(stride) => {
                    self.nudges = 0;
                    let moved = self.finished.as_ref().is_some_and(|(_, then)| *then != revision);
                    Some((if moved { entry() } else { stride.next.clone() }, moved))
                }
                None if now.saturating_sub(since) < NUDGE_MS => return,
                None if self.nudges >= NUDGES_MAX => None,
                None => {
                    self.nudges += 1;
                    let moved = self.revision != revision;
                    Some((if moved { entry() } else { "continue".to_owned() }, moved))
                }
            };
            let text = next.and_then(|(next, moved)| {
                let context = PromptContext {
                    task: task.id.to_string(),
                    title: task.spec.title.clone(),
                    step: task.step().map(ToString::to_string).unwrap_or_default(),
                    module: module::path_of(task).to_owned(),
                    next: Some(next),
                    resumed: true,
                    moved,
                    ..PromptContext::default()
                };
                site.prompts.render(DISPATCH, &context).ok()
            });
            self.count += 1;
            self.mark = last.map(|last| last.mark.clone());
            self.revision = revision;
            self.waits = None;
            self.pending = Some(NextInput { count: self.count, text });
            self.save_record();
            crash::pass_point("dispatch.decided");
        }
        if let Some(next) = &self.pending
            && self.write_next_step(next).is_ok()
        {
            self.pending = None; // else at the next look
        }
    }

    fn write_next_step(&self, next: &NextInput) -> std::io::Result<()> {
        let tmp = confine::private_tmp(&self.dir).unwrap_or_default();
        let (Some(parent), Some(name)) = (tmp.parent(), tmp.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(()); // nobody could read it there
        };
        ExchangeFolder::open(parent, name)?.write(NEXT, &next.to_json())
    }

    fn save_record(&self) {
        let record = serde_json::json!({
            "count": self.count,
            "mark": self.mark,
            "revision": self.revision.as_ref().map(Digest::as_str),
            "text": self.pending.as_ref().and_then(|next| next.text.as_ref()),
        });
        let _ = write_private(&self.dir.join(RECORD), record.to_string().as_bytes()); // only for who adopts it
    }
}
