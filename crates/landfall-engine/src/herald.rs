//! The herald hears the facts the engine has written and tells those who want to know: hooks run, messages go out, traces are sent.
//!
//! It never holds the engine up and never changes what it decides. [`Notifier::process_entries`] only puts things in line; when a line
//! is full, what matters least is left out, and the log says so. What was in line when the engine died is not told: a
//! hook is run at most once for a fact.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use landfall_model::{JournalEntry, World};

use crate::environment::safe_environment;
use crate::errand;
use crate::folder::StateFolder;
use crate::hook_scripts::HookTrust;
use crate::hooks::HookRunner;
use crate::notify::{NotificationSender, NotificationTiming};
use crate::occasions::{NotificationEvent, Priority, find_notification};
use crate::settings::Settings;
use crate::traces::TraceExporter;

/// What the herald needs to know of the place it works in.
#[derive(Debug, Clone)]
pub struct NotifierContext {
    /// Our own executable: the sitter is part of it.
    pub program: PathBuf,
    /// The root of the project.
    pub root: PathBuf,
    /// The branch that work lands on.
    pub base: String,
    /// Where the state is.
    pub folder: StateFolder,
    /// The engine's own environment, of which hooks get what is safe and what settings name.
    pub environment: Vec<(OsString, OsString)>,
    /// What the person has trusted, to be compared with what their commands would run; none: nothing is compared.
    pub trust: Option<Arc<HookTrust>>,
}

impl NotifierContext {
    /// Whether the person still trusts what their commands run.
    pub(crate) fn check_trust(&self) -> Result<(), String> {
        self.trust.as_ref().map_or(Ok(()), |trust| trust.check_trusted())
    }

    /// A variable of the environment.
    pub(crate) fn env_variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned).filter(|value| !value.is_empty())
    }

    /// What commands of the person's get of it: what agents get, and these.
    pub(crate) fn command_environment(&self, named: &[String]) -> Vec<(OsString, OsString)> {
        let state = "LANDFALL_STATE".to_owned(); // so that `landfall` in a hook finds the same project
        let named: Vec<String> = named.iter().cloned().chain([state]).collect();
        let mut env = safe_environment(&self.environment, &named);
        env.retain(|(key, _)| key != "CI"); // a hook is not a build
        env
    }

    /// What people call the project.
    pub(crate) fn project_label(&self) -> String {
        let name = self.root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if self.folder.side_name().is_some() { format!("{name} ({})", self.base) } else { name }
    }
}

/// Tells of what happened.
#[derive(Debug, Default)]
pub struct Notifier {
    hooks: Option<HookRunner>,
    posts: Vec<NotificationSender>,
    traces: Option<TraceExporter>,
    watchers: Arc<AtomicUsize>,
}

impl Notifier {
    /// A herald for the project at `ground`. What is not set costs nothing: no thread, no file.
    #[must_use]
    pub fn start(ground: &NotifierContext, settings: &Settings) -> Self {
        Self::with_timing(ground, settings, &NotificationTiming::default())
    }

    /// The same with other times; for tests.
    #[must_use]
    pub fn with_timing(ground: &NotifierContext, settings: &Settings, timing: &NotificationTiming) -> Self {
        let hooks = (!settings.hooks.commands.is_empty())
            .then(|| HookRunner::start(ground.clone(), settings.hooks.clone(), timing.hook_grace_ms));
        let post =
            |channel: &_| NotificationSender::start(ground.clone(), Clone::clone(channel), timing.clone());
        let posts: Vec<NotificationSender> = settings.notify.iter().map(post).collect();
        if hooks.is_some() || !posts.is_empty() {
            errand::remove_ended_runs(&ground.folder.errands_path());
        }
        let traces =
            settings.telemetry.as_deref().map(|otlp| TraceExporter::start(ground.clone(), otlp, timing));
        Self { hooks, posts, traces, watchers: Arc::default() }
    }

    /// Whether nobody wants to be told anything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.hooks.is_none() && self.posts.is_empty() && self.traces.is_none()
    }

    /// Hears facts that are in the journal. `world` is as it is after them. Returns at once.
    pub fn process_entries(&self, entries: &[JournalEntry], world: &World) {
        if self.is_idle() {
            return;
        }
        if let Some(traces) = &self.traces {
            traces.record_entries(entries, world);
        }
        for heard in entries.iter().filter_map(|entry| find_notification(entry, world)) {
            self.send_event(heard);
        }
    }

    /// Tells of something that is not a fact of the journal: the disk, say.
    pub fn send_event(&self, heard: NotificationEvent) {
        if let (Some(line), Some(_)) = (&self.hooks, heard.hook) {
            line.enqueue_hook(heard.clone());
        }
        let Some(topic) = heard.topic else { return };
        let quiet = self.watchers.load(Ordering::SeqCst) > 0 && topic.priority() < Priority::High;
        for post in self.posts.iter().filter(|_| !quiet) {
            post.enqueue_event(&heard);
        }
    }

    /// Someone begins to look on, or leaves: while anyone does, only what waits for a person is sent.
    pub fn note_watcher(&self, yes: bool) {
        let change = |now: usize| Some(if yes { now + 1 } else { now.saturating_sub(1) });
        let changed = self.watchers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        changed.expect("it always changes");
    }

    /// Lets what is in line be told, for as long as that takes but no longer than `most`. Hooks that still run then end
    /// at their own limit, watched by their sitters. Nothing is taken in any more.
    pub fn finish_deliveries(&mut self, most: Duration) {
        let deadline = Instant::now() + most;
        for post in &self.posts {
            post.close();
        }
        if let Some(line) = &self.hooks {
            line.wait_until_idle(deadline);
        }
        for post in &mut self.posts {
            post.wait_until_sent(deadline);
        }
        if let Some(traces) = &mut self.traces {
            traces.finish_export(deadline);
        }
    }
}
