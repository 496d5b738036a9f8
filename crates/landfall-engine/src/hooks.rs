//! The person's own commands, run on their occasions: a few at once, those of one task in order.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landfall_model::TaskId;
use serde_json::json;

use crate::errand::{self, UserCommand};
use crate::herald::NotifierContext;
use crate::logfile::LogFile;
use crate::occasions::{HookPoint, NotificationEvent};
use crate::settings::HookSettings;

const AT_ONCE: usize = 4; // hooks are small; the machine is for agents and checks
const LINE_MAX: usize = 1_000; // a busy minute of many agents; beyond it what matters least is left out
const VALUE_MAX: usize = 4_000; // bytes of one variable: a reason may be a whole log

/// The hooks that wait and those that run.
#[derive(Debug)]
pub(crate) struct HookRunner {
    shared: Arc<HookQueue>,
}

#[derive(Debug)]
struct HookQueue {
    ground: NotifierContext,
    hooks: HookSettings,
    grace_ms: u64,
    log: LogFile,
    state: Mutex<HookQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HookQueueState {
    waiting: VecDeque<NotificationEvent>,
    /// What each hook that runs is about.
    running: Vec<Option<TaskId>>,
    /// How many were left out since it was last said.
    left_out: u64,
    ending: bool,
}

impl HookRunner {
    pub(crate) fn start(ground: NotifierContext, hooks: HookSettings, grace_ms: u64) -> Self {
        let log = LogFile::at_path(ground.folder.hooks_log());
        let state = Mutex::default();
        let shared = Arc::new(HookQueue { ground, hooks, grace_ms, log, state, changed: Condvar::new() });
        for _ in 0..AT_ONCE {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("hooks".to_owned());
            // Without a thread there are no hooks, and nothing else is the worse for it.
            let _ = thread.spawn(move || shared.run_queue());
        }
        Self { shared }
    }

    /// Puts a hook in line, if there is one for the occasion.
    pub(crate) fn enqueue_hook(&self, heard: NotificationEvent) {
        let Some(occasion) = heard.hook else { return };
        if !self.shared.hooks.commands.contains_key(&occasion) {
            return;
        }
        let mut state = self.shared.lock_state();
        if state.ending {
            return;
        }
        state.waiting.push_back(heard);
        if state.waiting.len() > LINE_MAX {
            let matters = |it: &NotificationEvent| it.hook.map(HookPoint::priority);
            let least = state.waiting.iter().map(matters).min().expect("there are many");
            let oldest = state.waiting.iter().position(|it| matters(it) == least).expect("one is the least");
            state.waiting.remove(oldest);
            state.left_out += 1;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until nothing is in line and nothing runs, at most until then.
    pub(crate) fn wait_until_idle(&self, deadline: Instant) {
        let mut state = self.shared.lock_state();
        state.ending = true;
        self.shared.changed.notify_all();
        while !state.waiting.is_empty() || !state.running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.left_out += state.waiting.len() as u64;
                state.waiting.clear();
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let left_out = std::mem::take(&mut state.left_out);
        drop(state);
        self.shared.log_left_out(left_out);
    }
}

impl Drop for HookRunner {
    fn drop(&mut self) {
        let mut state = self.shared.lock_state();
        state.ending = true;
        state.waiting.clear();
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// Held while a hook runs: whatever becomes of it, the next one of its task gets its turn.
struct HookTurnGuard<'a>(&'a HookQueue, Option<TaskId>);

impl Drop for HookTurnGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        if let Some(place) = state.running.iter().position(|task| *task == self.1) {
            state.running.swap_remove(place);
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl HookQueue {
    fn lock_state(&self) -> MutexGuard<'_, HookQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_queue(&self) {
        while let Some((heard, left_out)) = self.next() {
            let _turn = HookTurnGuard(self, heard.task);
            self.log_left_out(left_out);
            self.run_hook(&heard);
        }
    }

    /// The first in line of whose task no hook runs, and how many were left out; none at the end.
    fn next(&self) -> Option<(NotificationEvent, u64)> {
        let mut state = self.lock_state();
        loop {
            let HookQueueState { waiting, running, .. } = &*state;
            let place = waiting.iter().position(|heard| !running.contains(&heard.task));
            if let Some(heard) = place.and_then(|place| state.waiting.remove(place)) {
                state.running.push(heard.task);
                return Some((heard, std::mem::take(&mut state.left_out)));
            }
            if state.ending && state.waiting.is_empty() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn log_left_out(&self, left_out: u64) {
        if left_out > 0 {
            self.log.append_line(&json!({ "left_out": left_out, "why": "there were too many at once" }));
        }
    }

    fn run_hook(&self, heard: &NotificationEvent) {
        let Some(occasion) = heard.hook else { return };
        let Some(line) = self.hooks.commands.get(&occasion) else { return };
        let mut env = self.ground.command_environment(&self.hooks.env);
        env.extend(event_variables(&self.ground, heard));
        let errand = UserCommand {
            argv: errand::sh_arguments(line),
            cwd: self.ground.root.clone(),
            env,
            stdin: format!("{}\n", event_to_json(&self.ground, heard)).into_bytes(),
            sandbox: None, // it is the person's own command, in their own project
            limit_ms: self.hooks.limit_ms,
            grace_ms: self.grace_ms,
        };
        let ended = self.ground.check_trust().and_then(|()| {
            errand::run_in_temporary_folder(&self.ground.program, &self.ground.folder.errands_path(), &errand)
        });
        let mut entry = json!({
            "at_ms": heard.at.0,
            "hook": occasion.wire_name(),
            "task": heard.task.map(|task| task.to_string()),
        });
        match ended {
            Ok(ended) => {
                entry["exit"] = json!(ended.exit);
                entry["timed_out"] = json!(ended.timed_out);
                entry["took_ms"] = json!(ended.took_ms);
                entry["killed"] = json!(ended.swept);
                entry["said"] = json!(ended.said);
            }
            Err(error) => entry["error"] = json!(error),
        }
        self.log.append_line(&entry);
    }
}

/// What happened, as a hook and a command that tells read it on stdin.
pub(crate) fn event_to_json(ground: &NotifierContext, heard: &NotificationEvent) -> serde_json::Value {
    json!({
        "version": 1,
        "hook": heard.hook.map(HookPoint::wire_name),
        "event": heard.topic.map(|topic| topic.wire_name()),
        "at_ms": heard.at.0,
        "project": ground.root.to_string_lossy(),
        "base": ground.base,
        "task": heard.task.map(|task| task.to_string()),
        "title": heard.title,
        "status": heard.status,
        "commit": heard.commit,
        "what": heard.what,
        "reason": heard.reason,
    })
}

/// The same as variables, under our names and under those that hooks of others know.
fn event_variables(ground: &NotifierContext, heard: &NotificationEvent) -> Vec<(OsString, OsString)> {
    let hook = heard.hook.map(HookPoint::wire_name).unwrap_or_default();
    let task = heard.task.map(|task| task.to_string()).unwrap_or_default();
    let commit = heard.commit.as_deref().unwrap_or_default();
    let root = ground.root.to_string_lossy();
    let variables = [
        (["LANDFALL_HOOK", "AXIOM_EVENT"], hook),
        (["LANDFALL_TASK", "AXIOM_TASK_ID"], &task),
        (["LANDFALL_TITLE", "AXIOM_TASK_TITLE"], &heard.title),
        (["LANDFALL_STATUS", "AXIOM_TASK_STATUS"], &heard.status),
        (["LANDFALL_COMMIT", "AXIOM_COMMIT"], commit),
        (["LANDFALL_WHAT", "AXIOM_MESSAGE"], &heard.what),
        (["LANDFALL_REASON", "AXIOM_REASON"], &heard.reason),
        (["LANDFALL_PROJECT", "AXIOM_PROJECT_ROOT"], &root),
        (["LANDFALL_BASE", "AXIOM_BASE"], &ground.base),
    ];
    let pairs = variables
        .into_iter()
        .flat_map(|(names, value)| names.map(|name| (name.into(), fit_env_value(value).into())));
    pairs.collect()
}

/// A value that fits into an environment.
pub(crate) fn fit_env_value(value: &str) -> String {
    value[..value.floor_char_boundary(VALUE_MAX)].replace('\0', "")
}
