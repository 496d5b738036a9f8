//! Room on the disk: how it stands, what may be given back, and giving it back.
//!
//! Something goes only when it is proved that nothing is lost with it; unsure is not proof. What `landfall project reclaim` lists
//! and removes, and what the engine removes by itself when room is short, come from the same plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use landfall_host::git::{RefName, Signature};
use landfall_host::sitter::{self, SitterState};
use landfall_model::disk::{DiskLevel, Thresholds, next_disk_level};
use landfall_model::{
    AttemptPhase, Commit, EndKind, Ending, News, Task, TaskId, TaskState, Timestamp, World,
};

use crate::confine;
use crate::effect_thread::start_effect_thread;
use crate::engine_context::EngineContext;
use crate::folder::StateFolder;
use crate::git_refs::task_ref_name;
use crate::host_context::HostContext;
use crate::occasions::{HookPoint, NotificationEvent, NotificationTopic};
use crate::perform::is_tidying;
use crate::settings::{self, RetentionSettings};
use crate::workspace;

/// One thing that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskItem {
    /// What it is.
    pub kind: DiskItemKind,
    /// Where it is.
    pub path: PathBuf,
    /// How much room it takes.
    pub bytes: u64,
    /// Why nothing is lost with it.
    pub why_safe: String,
}

/// The kinds of things that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskItemKind {
    /// The workspace of a task that is over.
    Workspace(TaskId),
    /// The record of a run of an agent, a check or a command.
    Record,
    /// Temporary files of a run that has ended.
    Temporary,
    /// Clean checkouts that wait for the next task.
    Warm,
    /// A checkout for checks, with what they built.
    Lane,
}

impl DiskItemKind {
    /// What people call it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Record => "record",
            Self::Temporary => "temporary files",
            Self::Warm => "clean checkouts",
            Self::Lane => "lane",
        }
    }
}

/// How far a plan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimScope {
    /// The project is at rest, under the lock: everything that is not needed.
    AtRest,
    /// Work goes on: only what no task can want back, and what no thread may be using.
    UnderWay,
}

/// What a plan is made from.
pub struct Inventory<'a> {
    /// The state of the project.
    pub folder: &'a StateFolder,
    /// How long things are kept.
    pub keep: &'a RetentionSettings,
    /// The time.
    pub now: Timestamp,
    /// How far it goes.
    pub reach: ReclaimScope,
}

impl Inventory<'_> {
    /// What may go. `task` looks a task up.
    ///
    /// # Errors
    /// What looking a task up came to.
    pub fn plan_removal<E>(
        &self,
        task: &dyn Fn(TaskId) -> Result<Option<Arc<Task>>, E>,
    ) -> Result<Vec<DiskItem>, E> {
        let mut items = Vec::new();
        for name in list_folders(&self.folder.workspaces_path()) {
            let Ok(id) = name.parse::<TaskId>() else { continue }; // not one of ours: not ours to judge
            let Some(task) = task(id)? else { continue };
            let Some(why_safe) = self.reason_to_remove(&task) else { continue };
            if !self.may_still_work(&name) {
                // What its agents changed in caches is kept beside the checkout and goes with it.
                let caches = self.folder.workspaces_path().join(".engine/rooms").join(&name).join("caches");
                let of_caches = landfall_host::disk::dir_size(&caches).unwrap_or(0); // most have none
                let mut workspace = measure_item(
                    DiskItemKind::Workspace(id),
                    self.folder.workspaces_path().join(&name),
                    why_safe,
                );
                workspace.bytes += of_caches;
                if of_caches > 0 {
                    let mib = of_caches.div_ceil(1 << 20);
                    workspace.why_safe.push_str(&format!("; {mib} MiB of it are changes to caches"));
                }
                items.push(workspace);
            }
        }
        for name in list_folders(&self.folder.attempts_path()) {
            let path = self.folder.attempts_path().join(&name);
            if !is_over(&path) {
                continue;
            }
            // One whose sitter vanished may have left someone behind whom the engine has yet to end.
            let ended = matches!(sitter::find_sitter(&path), Ok(SitterState::Ended(_)));
            if ended && let Some(tmp) = confine::private_tmp(&path) {
                let why_safe = "the run they belong to has ended, and nobody else can see them".to_owned();
                items.push(measure_item(DiskItemKind::Temporary, tmp, why_safe));
            }
            let of_task = name.split('-').next().unwrap_or_default().parse::<TaskId>();
            let over = match of_task {
                Ok(id) => task(id)?.is_some_and(|task| task.is_over()),
                Err(_) => true, // a check of the base: nobody goes on from it
            };
            if over && self.is_old(&path) {
                let limit = format_duration(self.keep.attempts_ms);
                let why_safe = format!(
                    "its task is over and it is older than {limit} (`keep.attempts`); what happened is in the journal"
                );
                items.push(measure_item(DiskItemKind::Record, path, why_safe));
            }
        }
        let warm = self.folder.workspaces_path().join(".engine/warm");
        let many = list_folders(&warm).len();
        if many > 0 {
            let word = if many == 1 { "checkout" } else { "checkouts" };
            let why_safe = format!("{many} {word} without any work in them; they only save time");
            items.push(measure_item(DiskItemKind::Warm, warm, why_safe));
        }
        if self.reach == ReclaimScope::AtRest {
            for name in list_folders(&self.folder.lanes_path()) {
                let path = self.folder.lanes_path().join(&name);
                if !self.may_have_running_check(&path) {
                    let why_safe =
                        "a checkout of what is in the store, and what checks built there; Landfall makes it again when it needs it"
                            .to_owned();
                    items.push(measure_item(DiskItemKind::Lane, path, why_safe));
                }
            }
        }
        Ok(items)
    }

    /// Why the workspace of a task may go, if it may.
    fn reason_to_remove(&self, task: &Task) -> Option<String> {
        let TaskState::Ended(Ending { kind, .. }) = &task.state else { return None };
        let kept = format!("unmerged work in it is kept under {} first", kept_ref(task));
        match (kind, &task.landed) {
            (EndKind::Done, Some(landed)) => {
                Some(format!("{} landed as {}; {kept}", task.id, landed.commit.short_hash()))
            }
            (EndKind::Done, None) => Some(format!("{} is done; {kept}", task.id)),
            (EndKind::Cancelled, _) => Some(format!("{} was cancelled; {kept}", task.id)),
            (EndKind::Failed | EndKind::Timeout | EndKind::Blocked, _) => {
                // A person may take it up again at any moment, and goes on in its workspace.
                let may =
                    self.reach == ReclaimScope::AtRest && self.age_ms(task.changed.0) > self.keep.failed_ms;
                let limit = format_duration(self.keep.failed_ms);
                may.then(|| format!("{} ended more than {limit} ago (`keep.failed`); {kept}", task.id))
            }
        }
    }

    /// Whether a process of the task may still work. Unsure counts as yes. What a sitter that vanished left behind was
    /// ended by the engine before it took the attempt for lost.
    fn may_still_work(&self, task: &str) -> bool {
        let attempts = self.folder.attempts_path();
        let of_task = list_folders(&attempts).into_iter().filter(|name| name.split('-').next() == Some(task));
        of_task.map(|name| attempts.join(name)).any(|dir| !is_over(&dir))
    }

    /// Whether a check may still run in a lane, by the note an engine leaves there. Unsure counts as yes.
    fn may_have_running_check(&self, lane: &Path) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        match std::fs::read(lane.join("running")) {
            Ok(bytes) => !is_over(Path::new(std::ffi::OsStr::from_bytes(&bytes))),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Whether a record is older than records are kept.
    fn is_old(&self, path: &Path) -> bool {
        let written = path.metadata().and_then(|meta| meta.modified()).ok();
        let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let since_ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
        since_ms.is_some_and(|since_ms| self.age_ms(since_ms) > self.keep.attempts_ms)
    }

    fn age_ms(&self, since_ms: i64) -> u64 {
        u64::try_from(self.now.0 - since_ms).unwrap_or(0)
    }
}

/// Whether the run in `dir` is over for certain, or never was.
fn is_over(dir: &Path) -> bool {
    matches!(sitter::find_sitter(dir), Ok(SitterState::Never | SitterState::Ended(_) | SitterState::Vanished))
}

fn measure_item(kind: DiskItemKind, path: PathBuf, why_safe: String) -> DiskItem {
    let bytes = landfall_host::disk::dir_size(&path).unwrap_or(0); // it shrinks while we look; the number is for people
    DiskItem { kind, path, bytes, why_safe }
}

fn kept_ref(task: &Task) -> String {
    format!("refs/landfall/kept/{}/reclaimed-{}", task_ref_name(task.id), task.attempt)
}

/// Gives one thing back. Of a workspace it returns the news that the engine should hear.
///
/// # Errors
/// Why it could not be removed; it was left as it is.
pub fn remove_item(site: &HostContext, item: &DiskItem, task: Option<&Task>) -> Result<Option<News>, String> {
    let io = |error: std::io::Error| format!("remove {}: {error}", item.path.display());
    match item.kind {
        DiskItemKind::Workspace(id) => {
            let Some(workspace) = site.pool.find_workspace(&id.to_string()) else {
                // Never ready: no agent has worked in it. Its next start clears it away by itself.
                return Ok(None);
            };
            let Some(task) = task else { return Err(format!("there is no task {id}")) };
            workspace::before_remove(site, task, &workspace);
            let keep = RefName::new(&kept_ref(task)).expect("made of our own words");
            let by = Signature::for_engine(site.clock.now_ms());
            let kept = site.pool.remove_workspace(workspace, &keep, &by);
            let kept = kept.map_err(|error| crate::git_refs::collect_detail(&error))?;
            let kept = kept.refs.first().map(|(_, oid)| Commit::new(oid.as_str()));
            Ok(Some(News::WorkspaceRemoved { kept }))
        }
        DiskItemKind::Record | DiskItemKind::Temporary | DiskItemKind::Lane => {
            match std::fs::remove_dir_all(&item.path) {
                Ok(()) => Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(io(error)),
            }
        }
        DiskItemKind::Warm => site.pool.drop_warm().map(|_| None).map_err(|error| error.full_message()),
    }
}

/// Watches the disk for a run: says how it stands, and gives room back when it is short.
#[derive(Debug, Default)]
pub struct DiskMonitor {
    disk: DiskLevel,
    cleaning: Arc<AtomicBool>,
    cleaned: Option<Instant>,
}

/// What a look at the disk showed.
#[derive(Debug)]
pub struct DiskReport {
    /// How it stands.
    pub disk: DiskLevel,
    /// What is free, on the fuller of the two disks that agents can fill.
    pub free_bytes: u64,
    /// How many files can still be made there, if those are too few.
    pub few_inodes: Option<u64>,
    /// What people should be told, if it got worse.
    pub news: Option<NotificationEvent>,
}

/// A checkout of a large project has some thousand files; below this the next one may not fit.
pub const INODES_WANTED: u64 = 1_000;

const CLEAN_AGAIN: Duration = Duration::from_secs(300); // looking at everything takes a while, and little has changed

impl DiskMonitor {
    /// Looks at the disk, and has what is not needed removed if agents are paused for want of room. Returns at once:
    /// removing is done by a thread.
    pub fn check_disk(&mut self, site: &Arc<EngineContext>, world: &World) -> DiskReport {
        let free_bytes = free_bytes(site);
        let before = self.disk;
        self.disk = next_disk_level(before, free_bytes, &disk_thresholds(&site.settings.disk));
        // Inodes run out while there is room: agents wait until there are some again.
        let few_inodes = site.shortages.free_inodes().filter(|free| *free < INODES_WANTED);
        if few_inodes.is_some() {
            self.disk = self.disk.max(DiskLevel::Pause);
        }
        let rested = self.cleaned.is_none_or(|at| at.elapsed() > CLEAN_AGAIN);
        if self.disk >= DiskLevel::Pause && rested && !self.cleaning.swap(true, Ordering::SeqCst) {
            self.cleaned = Some(Instant::now());
            start_cleaning(site, world, self.cleaning.clone());
        }
        let left = match few_inodes {
            Some(free) => format!("{free} inodes are free, {INODES_WANTED} are wanted"),
            None => format!("{} MB are free", free_bytes / 1_000_000),
        };
        let news = (self.disk > before).then(|| build_disk_event(site, self.disk, left));
        DiskReport { disk: self.disk, free_bytes, few_inodes, news }
    }

    /// How the disk stood when it was looked at last.
    #[must_use]
    pub fn disk(&self) -> DiskLevel {
        self.disk
    }

    /// Whether room is being given back right now.
    #[must_use]
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.load(Ordering::SeqCst)
    }
}

/// Room on the fuller of the two disks that agents can fill: that of the state, and that of temporary files.
fn free_bytes(site: &HostContext) -> u64 {
    let places = [site.folder.root().to_owned(), std::env::temp_dir()];
    let free = places.iter().filter_map(|place| landfall_host::disk::free_bytes(place).ok());
    free.min().unwrap_or(u64::MAX)
}

fn disk_thresholds(disk: &settings::DiskSettings) -> Thresholds {
    Thresholds { warn: disk.warn_bytes, pause: disk.pause_bytes, stop: disk.stop_bytes }
}

fn build_disk_event(site: &HostContext, disk: DiskLevel, left: String) -> NotificationEvent {
    let (hook, topic, what) = match disk {
        DiskLevel::Fine | DiskLevel::Warn => (None, NotificationTopic::Held, "the disk is filling up"),
        DiskLevel::Pause => (
            Some(HookPoint::OnPause),
            NotificationTopic::Paused,
            "no agent is started: the disk is nearly full",
        ),
        DiskLevel::Stop => {
            (Some(HookPoint::OnPause), NotificationTopic::Paused, "the agents were stopped: the disk is full")
        }
    };
    NotificationEvent {
        hook,
        topic: Some(topic),
        at: site.now(),
        task: None,
        title: String::new(),
        status: String::new(),
        commit: None,
        what: what.to_owned(),
        reason: left,
    }
}

/// Removes what may go while work goes on, in a thread.
fn start_cleaning(site: &Arc<EngineContext>, world: &World, cleaning: Arc<AtomicBool>) {
    // As they are now: an ended task that is final stays so.
    let over: std::collections::BTreeMap<TaskId, Arc<Task>> =
        world.tasks().filter(|task| task.is_over()).map(|task| (task.id, task.clone())).collect();
    let landing =
        |task: &Arc<Task>| matches!(task.state, TaskState::Active { doing: AttemptPhase::Landing, .. });
    let lands = world.active_tasks().any(landing);
    start_effect_thread(site, "clean", move |site| {
        let inventory = Inventory {
            folder: &site.folder,
            keep: &site.settings.keep,
            now: site.now(),
            reach: ReclaimScope::UnderWay,
        };
        let planned = inventory.plan_removal(&|id| Ok::<_, std::convert::Infallible>(over.get(&id).cloned()));
        let Ok(items) = planned;
        for item in &items {
            let task = match item.kind {
                // Who has landed gives its own workspace up; we only see to those that were left.
                DiskItemKind::Workspace(_) if is_tidying(site) => continue,
                DiskItemKind::Workspace(id) => over.get(&id),
                DiskItemKind::Record | DiskItemKind::Temporary | DiskItemKind::Warm | DiskItemKind::Lane => {
                    None
                }
            };
            if let (Ok(Some(news)), Some(task)) = (remove_item(site, item, task.map(AsRef::as_ref)), task) {
                site.send_news(task.id, news);
            }
        }
        if !lands {
            pack_store_if_worthwhile(site);
        }
        cleaning.store(false, Ordering::SeqCst);
    });
}

/// Packs the store if that is worth it, and there is room for the pack beside what it replaces.
fn pack_store_if_worthwhile(site: &HostContext) {
    const WORTH: u64 = 16 << 20; // less is not worth a minute of git
    let Ok(loose) = site.store.count_loose_objects() else { return };
    let room = landfall_host::disk::free_bytes(site.folder.root()).unwrap_or(0);
    if loose.bytes >= WORTH && loose.bytes < room / 2 {
        let _ = site.store.pack_loose_objects(); // nothing is lost when it fails, and nothing gained
    }
}

/// The folders in a folder, by name. Hidden ones are ours.
fn list_folders(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn format_duration(ms: u64) -> String {
    settings::show_millis(ms)
}
