//! What a folder should hold, and what somebody changed in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use landfall_trackers::modules::entry::{EntryFolder, EntryName};
use landfall_trackers::modules::project::DatedEntry;
use landfall_trackers::modules::{
    MetadataFormat, ModuleChange, ModuleDocuments, ModuleFolderSnapshot, ModuleLocation, ModulePhase,
    ModuleRecord, ModuleStatus, ModuleWrite, WriteLog, find_changes, plan_projection, read,
};

use super::{FORMS, NOW, fixture, module};

struct World {
    _project: tempfile::TempDir,
    place: ModuleLocation,
    written: WriteLog,
}

impl World {
    fn new(form: MetadataFormat, metadata: &str) -> Self {
        let project = tempfile::tempdir().expect("a scratch folder");
        let place = module(project.path(), form, metadata.as_bytes());
        let written = WriteLog::from_snapshot(&read(&place).expect("read"));
        Self { _project: project, place, written }
    }

    fn seen(&self) -> ModuleFolderSnapshot {
        read(&self.place).expect("it can be read")
    }

    fn module(&self) -> ModuleRecord {
        self.seen().metadata.expect("there").expect("valid").module
    }

    fn plan(&self, module: &ModuleRecord, papers: &ModuleDocuments) -> Vec<ModuleWrite> {
        plan_projection(module, papers, &self.seen(), NOW)
    }

    /// Writes as the engine does, and says which paths.
    fn show(&mut self, module: &ModuleRecord, papers: &ModuleDocuments) -> Vec<String> {
        let writes = self.plan(module, papers);
        self.written = self.written.clone().with_planned(&writes);
        let applied = self.place.apply(&writes).expect("it can be written");
        assert_eq!(applied.refused, Vec::<String>::new());
        self.written = self.written.clone().with_applied(self.seen().form, &writes, &applied);
        assert_eq!(find_changes(&self.written, &self.seen()), [], "our own writes are no news");
        assert_eq!(self.plan(module, papers), [], "what is shown is not written again");
        writes.iter().map(|write| write.path().to_owned()).collect()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.place.to_path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn by_hand(&self, path: &str, text: &str) {
        fs::write(self.place.to_path().join(path), text).expect("a person may write");
    }
}

fn papers() -> ModuleDocuments {
    ModuleDocuments {
        plan: Some("1. do it\n".to_owned()),
        summary: Some("fine\n".to_owned()),
        ..ModuleDocuments::default()
    }
}

#[test]
fn a_state_is_shown_in_every_form_and_metadata_comes_last() {
    for (folder, form) in FORMS {
        let name = match form {
            MetadataFormat::IndexMd => "valid-plain.md",
            MetadataFormat::IndexJson => "valid-busy.json",
            MetadataFormat::StatusJson => "valid-stages.json",
        };
        let mut world = World::new(form, &fixture(&format!("{folder}/{name}")));
        let mut module = world.module();
        module.status = ModuleStatus::RePlanning;
        module.phase = ModulePhase::NeedsCheck;
        module.completed_steps = 0;
        assert_eq!(world.show(&module, &papers()), [".plan.md", ".summary.md", form.file_name()]);
        let now = world.module();
        assert_eq!((now.status, now.phase), (ModuleStatus::RePlanning, ModulePhase::NeedsCheck));
        assert_eq!((now.updated.as_str(), now.revision), ("2026-03-10T12:00:00Z", 1));
    }
}

#[test]
fn edge_21_updated_moves_only_when_the_module_came_forward() {
    let mut world = World::new(MetadataFormat::StatusJson, &fixture("status-json/valid-stages.json"));
    let module = world.module();
    let before = world.text(".status.json");
    let mut papers = papers();
    papers.refinements = Some("- [2026-03-10 12:00] more\n".to_owned());
    assert_eq!(world.show(&module, &papers), [".plan.md", ".pending-refinements.md", ".summary.md"]);
    assert_eq!(world.text(".status.json"), before, "a refinement is no progress");
}

#[test]
fn edge_22_two_changes_in_one_second_have_two_revisions() {
    let mut world = World::new(MetadataFormat::StatusJson, &fixture("status-json/valid-satisfied.json"));
    let mut module = world.module();
    for steps in [1, 2] {
        module.completed_steps = steps;
        world.show(&module, &ModuleDocuments::default());
    }
    assert_eq!((world.module().revision, world.module().updated.as_str()), (19, "2026-03-10T12:00:00Z"));
}

#[test]
fn superseded_plans_are_archived_and_never_twice() {
    let mut world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    let module = world.module();
    for (plan, paths) in [
        ("one", vec![".plan.md"]),
        ("two", vec![".plan-superseded.md", ".plan.md"]),
        ("three", vec![".plan-superseded-2.md", ".plan.md"]),
        ("one", vec![".plan-superseded-3.md", ".plan.md"]),
        ("two", vec![".plan.md"]),
    ] {
        let papers = ModuleDocuments { plan: Some(plan.to_owned()), ..ModuleDocuments::default() };
        assert_eq!(world.show(&module, &papers), paths, "{plan}");
    }
    assert_eq!(world.text(".plan-superseded.md"), "one");
    assert_eq!(world.text(".plan-superseded-2.md"), "two");
}

#[test]
fn a_plan_that_nobody_saw_while_it_counted_is_kept_all_the_same() {
    let mut world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    let module = world.module();
    let plans = |superseded: &[&str], plan: &str| ModuleDocuments {
        superseded: superseded.iter().map(|it| (*it).to_owned()).collect(),
        plan: Some(plan.to_owned()),
        ..ModuleDocuments::default()
    };
    world.show(&module, &plans(&[], "one"));
    let shown = world.show(&module, &plans(&["one", "two"], "three"));
    assert_eq!(shown, [".plan-superseded.md", ".plan-superseded-2.md", ".plan.md"]);
    assert_eq!(
        (world.text(".plan-superseded.md"), world.text(".plan-superseded-2.md")),
        ("one".into(), "two".into())
    );
}

#[test]
fn entries_are_only_added_and_their_summary_is_written_over() {
    let mut world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    let module = world.module();
    let entry = |text: &str| DatedEntry {
        shelf: EntryFolder::Analysis,
        name: EntryName::new("2026-03-10", "post-plan-pass"),
        text: text.to_owned(),
    };
    let mut papers = ModuleDocuments { entries: vec![entry("a")], ..ModuleDocuments::default() };
    papers.shelf_summaries = BTreeMap::from([(EntryFolder::Analysis, "one".to_owned())]);
    assert_eq!(
        world.show(&module, &papers),
        [".analysis/2026-03-10-post-plan-pass.md", ".analysis/.summary.md"]
    );
    papers.entries.push(entry("b"));
    papers.shelf_summaries = BTreeMap::from([(EntryFolder::Analysis, "two".to_owned())]);
    assert_eq!(
        world.show(&module, &papers),
        [".analysis/2026-03-10-post-plan-pass-2.md", ".analysis/.summary.md"]
    );
    assert_eq!(world.text(".analysis/2026-03-10-post-plan-pass.md"), "a");
}

#[test]
fn a_closed_stage_lies_apart_and_is_closed_once() {
    let mut world = World::new(MetadataFormat::StatusJson, &fixture("status-json/valid-stages.json"));
    let module = world.module();
    let entry = |about: &str, text: &str| DatedEntry {
        shelf: EntryFolder::Analysis,
        name: EntryName::new("2026-03-10", about),
        text: text.to_owned(),
    };
    let mut papers = papers();
    papers.entries = vec![entry("post-exec-accept", "a")];
    world.show(&module, &papers);
    let next = ModuleDocuments {
        plan: Some("the second stage".to_owned()),
        entries: vec![entry("post-plan-pass", "b")],
        closed_stages: BTreeSet::from([1]),
        ..ModuleDocuments::default()
    };
    world.show(&module, &next);
    assert_eq!(world.text(".plan-stage-1.md"), "1. do it\n");
    assert_eq!(world.text(".analysis-stage-1/2026-03-10-post-exec-accept.md"), "a");
    assert_eq!(world.text(".plan.md"), "the second stage");
    let left: Vec<_> = fs::read_dir(world.place.to_path().join(".analysis")).expect("there").collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn c03_what_a_person_changed_is_news() {
    let mut world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-busy.json"));
    let module = world.module();
    world.show(&module, &papers());
    let text = world.text(".index.json");
    world.by_hand(".index.json", &text.replace("\"executing\"", "\"blocked\"").replace("\"search\", ", ""));
    world.by_hand(".plan.md", "1. do it\n2. and this\n");
    world.by_hand(".target.md", "more");
    fs::remove_file(world.place.to_path().join(".summary.md")).expect("they may");
    let field =
        |name, from: &str, to: &str| ModuleChange::Field { name, from: from.to_owned(), to: to.to_owned() };
    assert_eq!(
        find_changes(&world.written, &world.seen()),
        [
            field("status", "executing", "blocked"),
            field("tags", r#"["search","backend"]"#, r#"["backend"]"#),
            ModuleChange::Edited(".plan.md".to_owned()),
            ModuleChange::Removed(".summary.md".to_owned()),
            ModuleChange::Added(".target.md".to_owned()),
        ]
    );
    assert_eq!(find_changes(&WriteLog::from_snapshot(&world.seen()), &world.seen()), []);
}

#[test]
fn stamps_and_spacing_are_no_news() {
    let world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    let text = world.text(".index.json");
    world.by_hand(
        ".index.json",
        &text.replace("\"updated\": \"2026-01-05T09:00:00Z\"", "\"updated\":   \"2026-01-07T09:00:00Z\""),
    );
    assert_eq!(find_changes(&world.written, &world.seen()), []);
}

#[test]
fn broken_and_missing_metadata_are_news_and_nothing_is_written_over_it() {
    let world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    let module = ModuleRecord { status: ModuleStatus::Complete, ..world.module() };
    world.by_hand(".index.json", "{torn");
    assert!(matches!(find_changes(&world.written, &world.seen()).as_slice(), [ModuleChange::Broken(_)]));
    assert_eq!(world.plan(&module, &ModuleDocuments::default()), []);
    fs::remove_file(world.place.to_path().join(".index.json")).expect("they may");
    assert_eq!(find_changes(&world.written, &world.seen()), [ModuleChange::NoMetadata]);
    assert_eq!(world.plan(&module, &ModuleDocuments::default()).len(), 1);
}

#[test]
fn what_a_person_writes_between_the_look_and_the_write_is_not_lost() {
    let world = World::new(MetadataFormat::IndexJson, &fixture("index-json/valid-new.json"));
    world.by_hand(".summary.md", "before");
    let writes = world.plan(&ModuleRecord { status: ModuleStatus::Planning, ..world.module() }, &papers());
    world.by_hand(".plan.md", "mine");
    world.by_hand(".summary.md", "mine, too");
    let applied = world.place.apply(&writes).expect("it can be written");
    assert_eq!(applied.refused, [".plan.md", ".summary.md"]);
    assert_eq!(
        (world.text(".plan.md"), world.text(".summary.md")),
        ("mine".to_owned(), "mine, too".to_owned())
    );
}

#[test]
fn words_that_were_not_understood_are_kept_before_they_are_written_over() {
    let text = "---\ntitle: T\nstatus: executing\ncompleted_steps: five, says Ann\n---\n";
    let mut world = World::new(MetadataFormat::IndexMd, text);
    let module = ModuleRecord { completed_steps: 2, ..world.module() };
    assert_eq!(
        world.show(&module, &ModuleDocuments::default()),
        [".index.md.corrupt-2026-03-10", ".index.md"]
    );
    assert_eq!(world.text(".index.md.corrupt-2026-03-10"), text);
    let module = ModuleRecord { completed_steps: 3, ..world.module() };
    assert_eq!(world.show(&module, &ModuleDocuments::default()), [".index.md"], "once is enough");
}

/// Killed after any number of writes: what came through is not taken for a person's, and the rest follows.
#[test]
fn a_projection_that_was_cut_short_goes_on() {
    let mut first = papers();
    first.entries = vec![DatedEntry {
        shelf: EntryFolder::Test,
        name: EntryName::new("2026-03-09", "results"),
        text: "t".to_owned(),
    }];
    let second = ModuleDocuments {
        plan: Some("new".to_owned()),
        summary: Some("later".to_owned()),
        closed_stages: BTreeSet::from([1]),
        ..ModuleDocuments::default()
    };
    let many = 5; // two moves, the plan, the summary, the metadata
    for cut in 0..=many {
        let mut world = World::new(MetadataFormat::StatusJson, &fixture("status-json/valid-stages.json"));
        let module = world.module();
        world.show(&module, &first);
        let later = ModuleRecord { status: ModuleStatus::Planning, ..module.clone() };
        let writes = world.plan(&later, &second);
        assert_eq!(writes.len(), many);
        let planned = world.written.clone().with_planned(&writes);
        world.place.apply(&writes[..cut]).expect("written");
        assert_eq!(find_changes(&planned, &world.seen()), [], "cut after {cut}");
        // The engine repeats the writes it had planned.
        let applied = world.place.apply(&writes).expect("written");
        assert_eq!(applied.refused, Vec::<String>::new(), "cut after {cut}");
        assert_eq!(world.text(".plan.md"), "new");
        assert_eq!(world.text(".plan-stage-1.md"), "1. do it\n");
        assert!(!Path::new(&world.place.to_path().join(".test/2026-03-09-results.md")).exists());
    }
}
