//! What a folder should hold for a state of the journal.
//!
//! Only what differs is written, and only over what was seen: each write names the digest it replaces. The metadata
//! comes last, so a folder never says more than its papers hold.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::Timestamp;

use super::entry::{EntryFolder, EntryName};
use super::folder::{ModuleFolderSnapshot, PLAN, TARGET};
use super::metadata::Metadata;
use super::record::ModuleRecord;
use super::text::{format_day, format_timestamp};
use super::write::{ExpectedFile, ModuleWrite};

/// A dated entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedEntry {
    /// Where it lies.
    pub shelf: EntryFolder,
    /// What it is called.
    pub name: EntryName,
    /// All of it.
    pub text: String,
}

/// The papers of a task as the journal has them. What is `None` is not touched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleDocuments {
    /// What is wanted.
    pub target: Option<String>,
    /// The plan that counts.
    pub plan: Option<String>,
    /// Plans that were given up, the oldest first. Each is kept, though nobody saw it while it counted.
    pub superseded: Vec<String>,
    /// What stages are measured against.
    pub baseline: Option<String>,
    /// What a person said on the way.
    pub refinements: Option<String>,
    /// Where it stands.
    pub summary: Option<String>,
    /// What came of it.
    pub report: Option<String>,
    /// What happened when.
    pub timeline: Option<String>,
    /// What later stages must not try again.
    pub exclusions: Option<String>,
    /// Entries that must be there. Entries are only ever added.
    pub entries: Vec<DatedEntry>,
    /// The summary of each shelf.
    pub shelf_summaries: BTreeMap<EntryFolder, String>,
    /// Stages that are over: their plan, analysis and tests lie apart.
    pub closed_stages: BTreeSet<u32>,
}

/// The writes that make the folder show `module` and `papers`, paths below the folder. None when it shows them already.
///
/// `updated` and `revision` move only when the module came forward; a summary or a refinement alone moves neither.
#[must_use]
pub fn plan_projection(
    module: &ModuleRecord,
    papers: &ModuleDocuments,
    seen: &ModuleFolderSnapshot,
    now: Timestamp,
) -> Vec<ModuleWrite> {
    let mut page =
        ProjectPageWriter { seen, writes: Vec::new(), taken: seen.files.keys().cloned().collect() };
    page.close_stages(&papers.closed_stages);
    for plan in &papers.superseded {
        page.keep_plan(plan.as_bytes());
    }
    page.plan(papers.plan.as_deref());
    for (path, text) in [
        (TARGET, &papers.target),
        (".convergence-baseline.md", &papers.baseline),
        (".pending-refinements.md", &papers.refinements),
        (".exclusions.md", &papers.exclusions),
    ] {
        page.put_document(path, text.as_deref());
    }
    for entry in &papers.entries {
        page.put_entry(entry);
    }
    for (shelf, text) in &papers.shelf_summaries {
        page.put_document(&format!("{shelf}/.summary.md"), Some(text));
    }
    for (path, text) in [
        (".summary.md", &papers.summary),
        (".auto-timeline.md", &papers.timeline),
        (".report.md", &papers.report),
    ] {
        page.put_document(path, text.as_deref());
    }
    page.put_metadata(module, now);
    page.writes
}

struct ProjectPageWriter<'a> {
    seen: &'a ModuleFolderSnapshot,
    writes: Vec<ModuleWrite>,
    /// Paths that hold something, or will.
    taken: BTreeSet<String>,
}

impl ProjectPageWriter<'_> {
    fn put_document(&mut self, path: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        let moved =
            self.writes.iter().any(|write| matches!(write, ModuleWrite::Move { from, .. } if from == path));
        let expect = match self.seen.files.get(path) {
            Some(file) if file.bytes == text.as_bytes() && !moved => return,
            Some(file) if !moved => ExpectedFile::Digest(file.digest.clone()),
            Some(_) | None => ExpectedFile::Absent,
        };
        self.taken.insert(path.to_owned());
        self.writes.push(ModuleWrite::Put { path: path.to_owned(), bytes: text.as_bytes().to_vec(), expect });
    }

    /// A new plan does not wipe out the old one: two plans side by side mislead, none at all forgets.
    fn plan(&mut self, plan: Option<&str>) {
        let Some(plan) = plan else { return };
        let moved =
            self.writes.iter().any(|write| matches!(write, ModuleWrite::Move { from, .. } if from == PLAN));
        if let Some(old) = self.seen.files.get(PLAN)
            && !moved
            && old.bytes != plan.as_bytes()
            && !old.lossy_text().trim().is_empty()
        {
            self.keep_plan(&old.bytes);
        }
        self.put_document(PLAN, Some(plan));
    }

    /// Keeps a plan that is given up, once.
    fn keep_plan(&mut self, plan: &[u8]) {
        let is_one = |path: &str| path.starts_with(".plan-superseded");
        let seen = self.seen.files.iter().any(|(path, file)| is_one(path) && file.bytes == plan);
        let written = self.writes.iter().any(
            |write| matches!(write, ModuleWrite::Put { path, bytes, .. } if is_one(path) && bytes.as_slice() == plan),
        );
        if seen || written {
            return;
        }
        let path = self.free_path(|n| match n {
            1 => ".plan-superseded.md".to_owned(),
            n => format!(".plan-superseded-{n}.md"),
        });
        self.writes.push(ModuleWrite::Put { path, bytes: plan.to_vec(), expect: ExpectedFile::Absent });
    }

    /// An entry is there once, under its own name or, when another has that, with a number.
    fn put_entry(&mut self, entry: &DatedEntry) {
        let path = |n: usize| match n {
            1 => format!("{}/{}", entry.shelf, entry.name.file_name()),
            n => format!("{}/{}-{}-{n}.md", entry.shelf, entry.name.day, entry.name.about),
        };
        let same = |path: &String| {
            self.seen.files.get(path).is_some_and(|file| file.bytes == entry.text.as_bytes())
                || self.writes.iter().any(|write| write.path() == path && write.text() == Some(&entry.text))
        };
        let there = (1..).map(path).take_while(|path| self.taken.contains(path)).any(|path| same(&path));
        if !there {
            let path = self.free_path(path);
            self.writes.push(ModuleWrite::new(&path, &entry.text));
        }
    }

    fn free_path(&mut self, name: impl Fn(usize) -> String) -> String {
        let path = (1..).map(name).find(|path| !self.taken.contains(path)).expect("names do not run out");
        self.taken.insert(path.clone());
        path
    }

    /// Puts the plan, the analysis and the tests of a stage that is over aside, once: what lies there belongs to the
    /// latest stage that was closed.
    fn close_stages(&mut self, closed: &BTreeSet<u32>) {
        let Some(stage) = closed.last() else { return };
        let plan = format!(".plan-stage-{stage}.md");
        let shelves = [EntryFolder::Analysis, EntryFolder::Test];
        let archived = |path: &String| {
            *path == plan
                || shelves.iter().any(|shelf| path.starts_with(&format!("{}/", shelf.archive_name(*stage))))
        };
        // Closed before: what lies there now is of the stage under way.
        if self.seen.files.keys().any(archived) {
            return;
        }
        let mut moves: Vec<(String, String)> = Vec::new();
        if self.seen.files.contains_key(PLAN) {
            moves.push((PLAN.to_owned(), plan.clone()));
        }
        for shelf in shelves {
            let prefix = format!("{shelf}/");
            for path in self.seen.files.keys() {
                if let Some(name) = path.strip_prefix(&prefix) {
                    moves.push((path.clone(), format!("{}/{name}", shelf.archive_name(*stage))));
                }
            }
        }
        for (from, to) in moves {
            self.taken.remove(&from);
            self.taken.insert(to.clone());
            let expect = self.seen.files[&from].digest.clone();
            self.writes.push(ModuleWrite::Move { from, to, expect });
        }
    }

    fn put_metadata(&mut self, module: &ModuleRecord, now: Timestamp) {
        let form = self.seen.form;
        let stamped = |revision: u64| ModuleRecord {
            updated: format_timestamp(now),
            revision: revision + 1,
            ..module.clone()
        };
        let new = match &self.seen.metadata {
            Some(Ok(there)) if module.differs_from(&there.module) => {
                let new = stamped(there.module.revision);
                if there.would_lose(&new) {
                    self.keep_copy_beside(form.file_name(), now);
                }
                there.with_module(&new)
            }
            Some(Ok(_)) => return,
            None => Metadata::new(form, &stamped(module.revision)),
            // What cannot be read is mended first; nothing is written over it here.
            Some(Err(_)) => return,
        };
        self.put_document(form.file_name(), Some(new.text()));
    }

    /// A copy of a file under a name of its own, unless there is one.
    fn keep_copy_beside(&mut self, file: &str, now: Timestamp) {
        let there = &self.seen.files[file];
        let name = |n: usize| match n {
            1 => format!("{file}.corrupt-{}", format_day(now)),
            n => format!("{file}.corrupt-{}-{n}", format_day(now)),
        };
        let path = self.free_path(name);
        self.writes.push(ModuleWrite::Put { path, bytes: there.bytes.clone(), expect: ExpectedFile::Absent });
    }
}
