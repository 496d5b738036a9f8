//! The folders of modules: they show how their tasks stand, and what a person changes in them is news (design 0009).
//!
//! A thread of its own looks at them, so that the engine never waits for a disk. Looks are paced: a folder is looked at when
//! its task changed and now and then while it is open, never twice within a few seconds. When a run is over the engine looks
//! once more itself: what it returns with is what the folders show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landfall_host::disk;
use landfall_host::git::{CheckoutHead, Git, Repo};
use landfall_model::annotate::{self, AnnotationImpact, AnnotationResumePoint};
use landfall_model::plan::PlanOutline;
use landfall_model::staged::PLAN;
use landfall_model::{AnnotatedDocument, AttemptPhase, Digest, News, Task, TaskState, Timestamp};
use landfall_trackers::modules::annotation::{self, AnnotationRequest};
use landfall_trackers::modules::entry::{EntryFolder, EntryName};
use landfall_trackers::modules::folder::{self, ModuleKind, ModuleLocation, TARGET, find_at};
use landfall_trackers::modules::lock::Lock;
use landfall_trackers::modules::mend::{self, RepairOrigin};
use landfall_trackers::modules::project::DatedEntry;
use landfall_trackers::modules::refinement::Refinements;
use landfall_trackers::modules::signal::SIGNAL_FILE;
use landfall_trackers::modules::text::{format_day, plain_line};
use landfall_trackers::modules::type_profile::TYPE_PROFILE;
use landfall_trackers::modules::write::{
    ExpectedFile, FILE_BYTES_MAX, ModuleWrite, digest_bytes, read_below, remove_file_below,
};
use landfall_trackers::modules::{
    ModuleChange, ModuleFolderSnapshot, ModuleStatus, WriteLog, find_changes, plan_projection, read,
    read_wanted_task,
};
use serde::{Deserialize, Serialize};

use crate::ask::{AskError, AskResult, EngineReply, EngineRequest};
use crate::engine_context::EngineContext;
use crate::mail::EngineMessage;

mod picture;

/// The session by which our lock of a folder is known.
const SESSION: &str = "landfall";
const PACE: Duration = Duration::from_secs(2); // a person who looks sees no difference
const WATCH: Duration = Duration::from_secs(3); // how soon an edit of an open module is noticed
const TICK: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 32; // folders of one round: a project with a thousand is gone through in rounds

/// The folder of a task, below the project; none: it is of no module.
pub(crate) fn path_of(task: &Task) -> Option<&str> {
    task.spec.source.strip_prefix("module:").map(|path| path.trim_end_matches('/'))
}

/// Keeps the folders of a project up to date.
#[derive(Default)]
pub(crate) struct Folders {
    line: Arc<FolderQueue>,
    thread: Option<JoinHandle<()>>,
    /// Whether a run is under way, in which a thread may be started.
    site: Option<Arc<EngineContext>>,
}

#[derive(Default)]
struct FolderQueue {
    open: Mutex<FolderQueueState>,
    bell: Condvar,
}

#[derive(Default)]
struct FolderQueueState {
    /// The latest task of each folder.
    tasks: BTreeMap<String, Arc<Task>>,
    changed: BTreeSet<String>,
    closing: bool,
}

impl Folders {
    /// For a run: folders are looked at from now on.
    pub fn start(site: Arc<EngineContext>) -> Self {
        Self { line: Arc::default(), thread: None, site: Some(site) }
    }

    /// These tasks are as they are now. Returns at once.
    pub fn queue_tasks<'a>(&mut self, tasks: impl Iterator<Item = &'a Arc<Task>>) {
        let Some(site) = &self.site else { return };
        let mut any = false;
        for task in tasks {
            let Some(path) = path_of(task) else { continue };
            let mut open = self.line.open.lock().expect("no thread panics while it holds it");
            if open.tasks.get(path).is_some_and(|known| known.id > task.id) {
                continue; // the module was imported again: the newer task is the one it shows
            }
            open.tasks.insert(path.to_owned(), task.clone());
            open.changed.insert(path.to_owned());
            site.live.lock().modules.insert(path.to_owned());
            any = true;
        }
        let is_waiting =
            || !self.line.open.lock().expect("no thread panics while it holds it").tasks.is_empty();
        if self.thread.is_none() && (any || is_waiting()) {
            let (theirs, line) = (site.clone(), self.line.clone());
            let started = std::thread::Builder::new()
                .name("folders".to_owned())
                .spawn(move || watch_folders(&theirs, &line));
            // Tried again with the next facts: there are some as soon as the shortage is over.
            self.thread = started
                .map_err(|error| site.shortages.note_failure(&format!("start a thread: {error}")))
                .ok();
        }
        if any {
            self.line.bell.notify_one();
        }
    }

    /// Looks no more. The look under way is finished.
    pub fn finish_and_join(&mut self) {
        self.line.open.lock().expect("no thread panics while it holds it").closing = true;
        self.line.bell.notify_all();
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.finish_and_join();
        }
    }
}

fn watch_folders(site: &Arc<EngineContext>, line: &Arc<FolderQueue>) {
    let mut looked: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        let mut open = line.open.lock().expect("no thread panics while it holds it");
        if open.closing {
            return;
        }
        let due = |path: &String, pace: Duration| looked.get(path).is_none_or(|at| at.elapsed() >= pace);
        let mut round: Vec<String> = open.changed.iter().filter(|path| due(path, PACE)).cloned().collect();
        let watched = open.tasks.iter().filter(|(_, task)| !task.is_over() && picture::has_begun(task));
        round.extend(watched.map(|(path, _)| path).filter(|path| due(path, WATCH)).cloned());
        round.truncate(AT_ONCE);
        if round.is_empty() {
            let (next, _) = line.bell.wait_timeout(open, TICK).expect("no thread panics while it holds it");
            drop(next);
            continue;
        }
        let round: Vec<Arc<Task>> = round
            .iter()
            .filter_map(|path| {
                open.changed.remove(path);
                open.tasks.get(path).cloned()
            })
            .collect();
        drop(open);
        for task in round {
            let path = path_of(&task).expect("it is in the line").to_owned();
            let again = !matches!(
                visit_folder(site, &task, &mut |ask| ask_engine(site, line, ask)),
                FolderVisitResult::Shown
            );
            looked.insert(path.clone(), Instant::now());
            if again {
                line.open.lock().expect("no thread panics while it holds it").changed.insert(path);
            }
        }
    }
}

/// Asks the engine as a person would. When it has stopped to listen, the question is left for the next time.
fn ask_engine(site: &EngineContext, line: &FolderQueue, ask: EngineRequest) -> AskResult {
    const PAUSE: Duration = Duration::from_millis(50);
    let (send, receive) = mpsc::channel();
    site.mail.send(EngineMessage::Ask(ask, send)).map_err(|_| AskError::Gone)?;
    loop {
        match receive.recv_timeout(PAUSE) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return Err(AskError::Gone),
            Err(RecvTimeoutError::Timeout) => {
                if line.open.lock().expect("no thread panics while it holds it").closing {
                    return Err(AskError::Gone);
                }
            }
        }
    }
}

/// What we know of a folder: what we wrote there, and what was told of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct FolderRecord {
    written: WriteLog,
    /// Sentences that were told: what stays as it is, is told once.
    #[serde(default)]
    told: BTreeSet<String>,
    /// The signal that was written last, but for its time. Whoever watches takes the file away, and it is not written twice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    signal: String,
    /// The annotations of the file in the folder that were taken over. The file may outlive them for a while.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    annotations_taken: BTreeSet<Digest>,
}

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderVisitResult {
    /// The folder shows its task, or there is none.
    Shown,
    /// Somebody was in the way; another look may show it.
    InTheWay,
}

/// Looks at the folder of a task: what a person changed is told to the engine by `tell`, then the folder shows the task. Trouble
/// with the disk is no trouble of the task: the folder is left as it is, and the next look tries again.
pub(crate) fn visit_folder(
    site: &EngineContext,
    task: &Arc<Task>,
    tell: &mut dyn FnMut(EngineRequest) -> AskResult,
) -> FolderVisitResult {
    let desk = FolderContext {
        root: site.repo.root(),
        records: &site.folder.modules_path(),
        papers: &site.folder.papers_path(),
        now: site.now(),
    };
    visit_folder_in(&desk, task, tell)
}

/// What a look needs to know of the place it works in.
struct FolderContext<'a> {
    /// The root of the project.
    root: &'a Path,
    /// Where it is kept what we wrote.
    records: &'a Path,
    /// The papers of the journal.
    papers: &'a Path,
    now: Timestamp,
}

fn visit_folder_in(
    desk: &FolderContext<'_>,
    task: &Arc<Task>,
    tell: &mut dyn FnMut(EngineRequest) -> AskResult,
) -> FolderVisitResult {
    let Some(path) = path_of(task) else { return FolderVisitResult::Shown };
    let root = desk.root;
    // A folder that was taken away is not made again.
    let Ok(found) = find_at(root, &root.join(path)) else { return FolderVisitResult::Shown };
    let Some(place) = found.modules.into_iter().next() else { return FolderVisitResult::Shown };
    let Ok(seen) = read(&place) else { return FolderVisitResult::InTheWay };
    let file = desk.records.join(format!("{}.json", task.id));
    let known: Option<FolderRecord> =
        std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let first = known.is_none();
    let record = known.unwrap_or_else(|| FolderRecord {
        written: WriteLog::from_snapshot(&seen),
        ..FolderRecord::default()
    });
    let before = (!first).then(|| record.clone());
    let mut visit = FolderVisit {
        desk,
        place,
        seen,
        task: task.clone(),
        record,
        left: BTreeSet::new(),
        by_hand: BTreeSet::new(),
        tell,
    };
    let looked = visit.run_visit(&file);
    if before.as_ref() != Some(&visit.record) {
        visit.save_record(&file);
    }
    looked
}

/// One look at one folder.
struct FolderVisit<'a> {
    desk: &'a FolderContext<'a>,
    place: ModuleLocation,
    seen: ModuleFolderSnapshot,
    task: Arc<Task>,
    record: FolderRecord,
    /// What somebody changed and nobody has taken over: it is not written to.
    left: BTreeSet<String>,
    /// What somebody changed that will be written over: a copy is kept.
    by_hand: BTreeSet<String>,
    tell: &'a mut dyn FnMut(EngineRequest) -> AskResult,
}

impl FolderVisit<'_> {
    fn run_visit(&mut self, file: &Path) -> FolderVisitResult {
        if !self.seen.problems().is_empty() && !self.repair_metadata() {
            return FolderVisitResult::InTheWay;
        }
        for change in find_changes(&self.record.written, &self.seen) {
            self.apply_change(&change);
        }
        self.take_annotations(file);
        self.mark_seen_accepted();
        let looked = self.write_folder(file);
        self.signal();
        looked
    }

    /// Tells whoever watches the folder which step ended, as the step itself does in a session of an agent. The file goes away when
    /// the task is over.
    fn signal(&mut self) {
        let path = format!("{}/{SIGNAL_FILE}", self.place.shown_path());
        let root = &self.place.root;
        if self.task.is_over() {
            if !std::mem::take(&mut self.record.signal).is_empty() {
                let _ = remove_file_below(root, &path); // a stale signal misleads nobody: the status says that it is over
            }
            return;
        }
        let Some(signal) = picture::signal(&self.task) else { return };
        let judged = self.task.staged.judged.len();
        let mark = format!(
            "{} {} {} {} {judged} {}",
            signal.step,
            signal.result,
            signal.next,
            signal.checkpoint,
            self.task.stride.as_ref().map_or("", |stride| &stride.mark)
        );
        if mark == self.record.signal {
            return;
        }
        let expect = match read_below(root, &path) {
            Ok(Some(bytes)) => ExpectedFile::Digest(digest_bytes(&bytes)),
            Ok(None) => ExpectedFile::Absent,
            Err(_) => return, // a link, or a folder: not ours to write to
        };
        let bytes = signal.to_text().into_bytes();
        let write = ModuleWrite::Put { path: SIGNAL_FILE.to_owned(), bytes, expect };
        if self.place.apply(&[write]).is_ok_and(|applied| applied.refused.is_empty()) {
            self.record.signal = mark;
        }
    }

    /// Annotations that a person left in `.tmp-annotations.json`: those of the plan change it, and the others, or all while there is
    /// no plan, reach the agent in its next prompt.
    fn take_annotations(&mut self, record_file: &Path) {
        let Some(seen) = self.seen.files.get(annotation::FILE).cloned() else {
            self.record.annotations_taken.clear(); // the same words in a new file count again
            return;
        };
        if self.task.is_over() {
            return;
        }
        let path = format!("{}/{}", self.place.shown_path(), annotation::FILE);
        // An agent may have landed it: only what a person leaves beside the commits is a person's word.
        if read_committed_file(self.desk.root, &self.place, &path).as_ref() == Some(&seen.bytes) {
            return self
                .warn_once(format!("`{}` is committed; its annotations are ignored", annotation::FILE));
        }
        let text = seen.lossy_text().into_owned();
        let all = match annotation::read_annotations(&text) {
            Ok(all) => all,
            Err(error) => return self.warn_once(format!("{error}; the annotations are not taken over")),
        };
        let has_plan = self.task.staged.papers.contains_key(PLAN);
        let (of_plan, others): (Vec<_>, Vec<_>) = all
            .iter()
            .filter(|note| !self.record.annotations_taken.contains(&digest_annotation(note)))
            .partition(|of| has_plan && (of.file.is_empty() || of.file.ends_with("plan.md")));
        if !of_plan.is_empty() {
            if !self.annotate_plan(&of_plan) {
                return;
            }
            self.note_annotations_taken(&of_plan, record_file);
        }
        if !others.is_empty() {
            let lines: String =
                others.iter().map(|annotation| format!("- {}\n", annotation.describe())).collect();
            let text =
                format!("A person annotated the documents of this module. Take it into account:\n{lines}");
            if let Err(error) = self.send_news(News::Message { text, now: false }) {
                if !matches!(error, AskError::Gone) {
                    self.warn_once(format!("the annotations are not taken over: {error}"));
                }
                return;
            }
            self.note_annotations_taken(&others, record_file);
        }
        // Somebody may have written more meanwhile: the next look takes that over.
        match read_below(&self.place.root, &path) {
            Ok(Some(bytes)) if digest_bytes(&bytes) != seen.digest => return,
            Ok(_) | Err(_) => {}
        }
        match remove_file_below(&self.place.root, &path) {
            Ok(()) => {
                self.seen.files.remove(annotation::FILE);
                self.record.annotations_taken.clear();
                self.warn_once(format!(
                    "{} annotations of `{}` were taken over",
                    all.len(),
                    annotation::FILE
                ));
            }
            Err(error) => self.warn_once(format!("the annotations were taken over, but {error}")),
        }
    }

    /// Keeps that these annotations were taken over, before anything else can fail: they are not taken over twice.
    fn note_annotations_taken(&mut self, notes: &[&annotation::ModuleAnnotation], record_file: &Path) {
        self.record.annotations_taken.extend(notes.iter().map(|note| digest_annotation(note)));
        self.save_record(record_file); // if the disk refuses, the removal of the file still ends them
    }

    /// Whether these annotations changed the plan.
    fn annotate_plan(&mut self, of_plan: &[&annotation::ModuleAnnotation]) -> bool {
        let Some(of) = self.task.staged.papers.get(PLAN).cloned() else { return false };
        let Ok(text) = crate::papers::read_paper(self.desk.papers, &of) else { return false };
        let notes: Result<Vec<_>, _> = of_plan.iter().map(|of| placed_annotation(of)).collect();
        let notes = match notes {
            Ok(notes) => notes,
            Err(error) => {
                self.warn_once(format!("an annotation of the plan is not taken over: {error}"));
                return false;
            }
        };
        let at_work = matches!(
            self.task.state,
            TaskState::Active { doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, .. }
        );
        match annotate::check_annotations_allowed(&self.task.phase_word(), at_work, &notes) {
            Ok(()) => {}
            Err(annotate::AnnotationBlocker::AtWork) => return false, // they wait for the end of the run
            Err(closed) => {
                self.warn_once(format!("the annotations of the plan are not taken over: {closed}"));
                return false;
            }
        }
        let after = match annotate::apply(&text, &notes) {
            Ok(after) => after,
            Err(refused) => {
                self.warn_once(format!("the annotations of the plan are not taken over: {refused}"));
                return false;
            }
        };
        let layer = annotate::DocumentSubject::from_path(PLAN);
        let (impact, onward) = annotate::assess_annotations(notes.iter().map(|note| (layer, note)));
        let Ok(paper) = crate::papers::store_paper(self.desk.papers, &after) else { return false };
        let outline = Some(PlanOutline::read(&after));
        let annotated = AnnotatedDocument { name: PLAN.to_owned(), of, paper, outline, impact, onward };
        match self.send_news(News::Annotate(annotated)) {
            Ok(()) => true,
            Err(AskError::Gone) => false,
            Err(error) => {
                self.warn_once(format!("the annotations of the plan are not taken over: {error}"));
                false
            }
        }
    }

    /// Metadata that cannot be used is mended, and that is told.
    fn repair_metadata(&mut self) -> bool {
        let now = self.desk.now;
        let Ok(_lock) = Lock::take_over(&self.place.to_path(), SESSION, now) else { return false };
        let wrong = self.seen.problems().first().map(ToString::to_string).unwrap_or_default();
        let (root, place) = (self.desk.root, &self.place);
        let Ok(mended) =
            mend::repair_folder_metadata(&self.seen, |path| read_committed_file(root, place, path), now)
        else {
            return false;
        };
        let Ok(seen) = read(&self.place) else { return false };
        self.seen = seen;
        let Some(mended) = mended else { return true };
        let done = match &mended.origin {
            RepairOrigin::Fields(fields) => format!("mended {}", fields.join(", ")),
            RepairOrigin::Head => "restored from the last commit".to_owned(),
            RepairOrigin::Rebuilt(_) => "built anew".to_owned(),
        };
        self.warn_once(format!(
            "{wrong}; the file was {done}, and the broken one is kept as `{}`",
            mended.copy
        ));
        // What was mended is ours; what the journal says of it is shown next.
        let index = self.seen.form.file_name();
        let ours = WriteLog::from_snapshot(&self.seen);
        self.record.written.metadata = ours.metadata;
        let digests = ours.files.get(index).cloned().unwrap_or_default();
        self.record.written.files.insert(index.to_owned(), digests);
        true
    }

    fn apply_change(&mut self, change: &ModuleChange) {
        match change {
            ModuleChange::Field { name: "status", to, .. } => self.apply_status(to),
            ModuleChange::Field { name: "title" | "tags", .. } => self.apply_wording(None),
            ModuleChange::Field { name: name @ ("phase" | "completed_steps" | "stage"), from, to } => {
                self.warn_once(format!(
                    "`{name}` was changed by hand from `{}` to `{}`; the journal counts, and the folder shows that again",
                    plain_line(from),
                    plain_line(to)
                ));
            }
            ModuleChange::Field { name: "depends_on", .. } => {
                self.warn_once(
                    "`depends_on` was changed by hand; `landfall edit` changes what a task needs".to_owned(),
                );
            }
            ModuleChange::Field { .. } => {} // the journal knows nothing of it: it stays as it is
            ModuleChange::Broken(_) => {}    // mended before
            ModuleChange::NoMetadata => {
                let file = self.seen.form.file_name();
                self.warn_once(format!("`{file}` was taken away; the folder shows the task in a new one"));
            }
            ModuleChange::Added(path) | ModuleChange::Edited(path)
                if path == TARGET || path == TYPE_PROFILE =>
            {
                self.apply_wording(Some(path))
            }
            ModuleChange::Added(path) | ModuleChange::Edited(path) if path == folder::PLAN => {
                self.apply_plan_change()
            }
            ModuleChange::Added(path) | ModuleChange::Edited(path) if path == picture::REFINEMENTS => {
                self.apply_refinements()
            }
            ModuleChange::Added(path) | ModuleChange::Edited(path) if path == annotation::FILE => {} // taken over afterwards
            ModuleChange::Added(path) | ModuleChange::Edited(path) => {
                self.by_hand.insert(path.clone()); // one copy of it
            }
            ModuleChange::Removed(_) => {} // what should be there is written again
        }
    }

    fn apply_status(&mut self, to: &str) {
        let wanted: Option<ModuleStatus> = to.parse().ok();
        let here = picture::build_module(&self.task, &self.seen, self.desk.now).status;
        if wanted == Some(here) && picture::has_begun(&self.task) {
            return;
        }
        if wanted == Some(ModuleStatus::Cancelled) {
            let reason = format!("`{}` was set to cancelled by hand", self.place.shown_path());
            match self.send_news(News::Cancel { reason }) {
                Ok(()) | Err(AskError::Gone) => {}
                Err(error) => self.warn_once(format!("`status` was set to cancelled by hand: {error}")),
            }
            return;
        }
        self.warn_once(format!(
            "`status` was set to `{}` by hand; the journal counts, and the folder shows that again",
            plain_line(to)
        ));
    }

    /// Somebody changed what is wanted.
    fn apply_wording(&mut self, path: Option<&str>) {
        let Ok(wanted) = read_wanted_task(&self.seen) else { return };
        let mut spec = self.task.spec.clone();
        (spec.title, spec.body, spec.criteria) = (wanted.spec.title, wanted.spec.body, wanted.spec.criteria);
        spec.tags = wanted.spec.tags;
        if spec == self.task.spec {
            return;
        }
        let answer = (self.tell)(EngineRequest::Edit(self.task.id, Box::new(spec)));
        if let Err(error) = self.accept_reply(answer) {
            self.left.extend(path.map(str::to_owned));
            if !matches!(error, AskError::Gone) {
                let what = path.unwrap_or("title");
                self.warn_once(format!("`{what}` was changed by hand and is not taken over: {error}"));
            }
        }
    }

    /// Somebody wrote into the plan: it is judged again.
    fn apply_plan_change(&mut self) {
        let Some(of) = self.task.staged.papers.get(PLAN).cloned() else { return };
        let text = self.seen.file_text(folder::PLAN).unwrap_or_default();
        if text.trim().is_empty() {
            return;
        }
        let Ok(paper) = crate::papers::store_paper(self.desk.papers, &text) else {
            self.left.insert(folder::PLAN.to_owned());
            return;
        };
        if paper == of {
            return;
        }
        let outline = Some(PlanOutline::read(&text));
        let (impact, onward) = (AnnotationImpact::Medium, AnnotationResumePoint::CheckPlan);
        let annotated = AnnotatedDocument { name: PLAN.to_owned(), of, paper, outline, impact, onward };
        if let Err(error) = self.send_news(News::Annotate(annotated)) {
            self.left.insert(folder::PLAN.to_owned());
            let at_work = matches!(
                self.task.state,
                TaskState::Active {
                    doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                    ..
                }
            );
            // An agent at work reads the old one: the edit waits for its end.
            if !at_work && !matches!(error, AskError::Gone) {
                self.warn_once(format!("`.plan.md` was changed by hand and is not taken over: {error}"));
            }
        }
    }

    /// Somebody wants something otherwise.
    fn apply_refinements(&mut self) {
        let all = Refinements::read(&self.seen.file_text(picture::REFINEMENTS).unwrap_or_default());
        for pending in all.pending {
            let text = plain_line(&pending.text);
            if self.task.staged.refinements.iter().any(|it| plain_line(&it.text) == text) {
                continue;
            }
            if let Err(error) = self.send_news(News::Refine { text: text.clone() }) {
                self.left.insert(picture::REFINEMENTS.to_owned());
                if !matches!(error, AskError::Gone) {
                    self.warn_once(format!("the refinement `{text}` is not taken over: {error}"));
                }
            }
        }
    }

    fn send_news(&mut self, news: News) -> Result<(), AskError> {
        let answer = (self.tell)(EngineRequest::Tell(vec![self.task.id], Box::new(news)));
        self.accept_reply(answer)
    }

    /// The task is as the answer says.
    fn accept_reply(&mut self, answer: AskResult) -> Result<(), AskError> {
        if let EngineReply::Tasks(tasks) = answer?
            && let Some(task) = tasks.into_iter().find(|task| task.id == self.task.id)
        {
            self.task = task;
        }
        Ok(())
    }

    fn warn_once(&mut self, what: String) {
        let what = format!("{}: {what}", self.place.shown_path());
        if self.record.told.contains(&what) {
            return;
        }
        if self.send_news(News::FolderChanged { what: what.clone() }).is_ok() {
            self.record.told.insert(what);
        }
    }

    /// Everything that was looked at is known from now on, but for what waits to be taken over.
    fn mark_seen_accepted(&mut self) {
        let mut written = WriteLog::from_snapshot(&self.seen);
        for path in &self.left {
            match self.record.written.files.get(path) {
                Some(digests) => {
                    written.files.insert(path.clone(), digests.clone()); // as it was
                }
                None => {
                    written.files.remove(path); // as it was
                }
            }
        }
        self.record.written = written;
    }

    fn write_folder(&mut self, file: &Path) -> FolderVisitResult {
        let now = self.desk.now;
        let paper = |digest: &Digest| crate::papers::read_paper(self.desk.papers, digest).ok();
        let module = picture::build_module(&self.task, &self.seen, now);
        let mut papers = picture::build_papers(&self.task, &module, &self.seen, &paper);
        let left = |path: &str| self.left.contains(path);
        if left(TARGET) {
            papers.target = None;
        }
        if left(folder::PLAN) {
            (papers.plan, papers.closed_stages) = (None, BTreeSet::new());
        }
        if left(picture::REFINEMENTS) {
            papers.refinements = None;
        }
        let mut copies = self.by_hand.clone();
        let replaces = papers.target.is_some() && picture::replaces_words(&self.task, &self.seen);
        copies.extend(replaces.then(|| TARGET.to_owned()));
        let writes = plan_projection(&module, &papers, &self.seen, now);
        let kept = copies.iter().filter(|path| writes.iter().any(|write| write.path() == path.as_str()));
        let kept = kept.filter_map(|path| {
            let text = self.seen.file_text(path).filter(|text| !text.trim().is_empty())?;
            let about = format!("{}-by-hand", path.trim_end_matches(".md").replace(['.', '/'], "-"));
            Some(DatedEntry {
                shelf: EntryFolder::Notes,
                name: EntryName::new(&format_day(now), &about),
                text,
            })
        });
        let kept: Vec<DatedEntry> = kept.collect();
        let writes = if kept.is_empty() {
            writes
        } else {
            papers.entries.splice(0..0, kept); // before anything is written over
            plan_projection(&module, &papers, &self.seen, now)
        };
        if writes.is_empty() {
            return FolderVisitResult::Shown;
        }
        let Ok(_lock) = Lock::take_over(&self.place.to_path(), SESSION, now) else {
            return FolderVisitResult::InTheWay;
        };
        self.record.written = self.record.written.clone().with_planned(&writes);
        if !self.save_record(file) {
            return FolderVisitResult::InTheWay; // what is not known as ours would be taken for a person's
        }
        let Ok(applied) = self.place.apply(&writes) else { return FolderVisitResult::InTheWay };
        self.record.written = self.record.written.clone().with_applied(self.seen.form, &writes, &applied);
        if applied.refused.is_empty() { FolderVisitResult::Shown } else { FolderVisitResult::InTheWay }
    }

    fn save_record(&self, file: &Path) -> bool {
        let bytes = serde_json::to_vec(&self.record).expect("a record of ours is JSON");
        disk::write_atomic(file, &bytes).is_ok()
    }
}

fn digest_annotation(note: &annotation::ModuleAnnotation) -> Digest {
    digest_bytes(note.describe().as_bytes())
}

/// An annotation as the model applies it.
fn placed_annotation(
    of: &annotation::ModuleAnnotation,
) -> Result<annotate::Annotation, annotate::AnnotationError> {
    match &of.remark {
        AnnotationRequest::Insert(text) => annotate::Annotation::insert(&of.before, text, &of.after),
        AnnotationRequest::Delete(selected) => {
            annotate::Annotation::new_deletion(&of.before, selected, &of.after)
        }
        AnnotationRequest::Replace { old, new } => {
            annotate::Annotation::replace(&of.before, old, new, &of.after)
        }
        AnnotationRequest::Comment { on, text } => {
            annotate::Annotation::new_comment(annotate::CommentKind::Note, &of.before, on, text, &of.after)
        }
    }
}

/// The bytes of a file in the last commit: of the project, or of the worktree that is a notebook's. Whatever stands in the way:
/// then there is none.
fn read_committed_file(root: &Path, place: &ModuleLocation, path: &str) -> Option<Vec<u8>> {
    let worktree = place.path.parent().filter(|_| place.sort == ModuleKind::Notebook);
    let at = worktree.map_or_else(|| root.to_owned(), |worktree| root.join(worktree));
    let path = match worktree {
        Some(worktree) => Path::new(path).strip_prefix(worktree).ok()?.to_str()?,
        None => path,
    };
    let git = Git::find_installed().ok()?;
    let repo = Repo::discover(&git, &at).ok()?;
    let tip = match repo.read_head().ok()? {
        CheckoutHead::Branch { tip, .. } | CheckoutHead::Detached { tip } => tip,
        CheckoutHead::Unborn { .. } => return None,
    };
    repo.read_file(&tip, path, usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX)).ok()?
}

#[cfg(test)]
mod tests;
