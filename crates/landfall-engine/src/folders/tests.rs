//! Whatever a person adds to a folder, in whatever order, while its task goes on: not a word of it is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use landfall_model::score::GatePoint;
use landfall_model::staged::{JudgeResult, StagedEvent};
use landfall_model::{
    Attempt, AttemptStart, EndKind, Ending, Event, Flow, IntakeState, POLL_MS, RunId, StepName, StepResult,
    TaskId, TaskInput, TaskSpec,
};

use super::*;

/// Small and repeatable: the seed is in every message.
struct Dice(u64);

impl Dice {
    fn roll_number(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides.max(1)
    }
}

const SEEDS: u64 = 6; // each flushes hundreds of files
const HALF_DAY_MS: u64 = 43_200_000;

struct World {
    root: tempfile::TempDir,
    task: Arc<Task>,
    now: Timestamp,
    /// Every word a person wrote.
    words: Vec<String>,
}

impl World {
    fn new(sort: &str, file: &str, metadata: &str) -> Self {
        let root = tempfile::tempdir().expect("a scratch folder");
        let folder = root.path().join(sort);
        for path in [&folder, &root.path().join("records"), &root.path().join("papers")] {
            fs::create_dir_all(path).expect("ours");
        }
        fs::write(folder.join(file), metadata).expect("ours");
        fs::write(folder.join(".target.md"), "# T\n\n## Objective\n\nIt works.\n").expect("ours");
        let mut spec = TaskSpec::new("One").expect("a title");
        spec.body = "# T\n\n## Objective\n\nIt works.".to_owned();
        spec.source = format!("module:{sort}");
        let task = Arc::new(Task::from_spec(TaskId(1), spec, Timestamp(1_773_144_000_000)));
        let mut world = Self { root, task, now: Timestamp(1_773_144_000_000), words: Vec::new() };
        world.visit_once(true);
        world
    }

    fn module_folder(&self) -> PathBuf {
        self.root.path().join(path_of(&self.task).expect("a module"))
    }

    /// A look in which the engine says yes, or has no time.
    fn visit_once(&mut self, listens: bool) -> FolderVisitResult {
        let (records, papers) = (self.root.path().join("records"), self.root.path().join("papers"));
        let desk =
            FolderContext { root: self.root.path(), records: &records, papers: &papers, now: self.now };
        let before = self.task.clone();
        let task = &mut self.task;
        let now = self.now;
        visit_folder_in(&desk, &before, &mut |ask| {
            if !listens {
                return Err(AskError::Gone);
            }
            let news = match ask {
                EngineRequest::Edit(_, spec) => News::Edit { spec: *spec, flows: None },
                EngineRequest::Tell(_, news) => *news,
                other => panic!("{other:?}"),
            };
            let input = TaskInput {
                at: now,
                drive: IntakeState::Running,
                spent: None,
                attended: false,
                poll_ms: POLL_MS,
                news,
            };
            *task = Arc::new(landfall_model::decide_and_apply(task, &input)?.0);
            Ok(EngineReply::Tasks(vec![task.clone()]))
        })
    }

    fn apply_event(&mut self, event: Event) {
        let after = landfall_model::apply(Some((*self.task).clone()), self.task.id, self.now, &event);
        if let Ok(after) = after {
            self.task = Arc::new(after);
        }
    }

    /// The work goes on in some way.
    fn advance_task(&mut self, dice: &mut Dice) {
        let attempt = self.task.attempt;
        let papers = self.root.path().join("papers");
        let event = match dice.roll_number(6) {
            0 => {
                let steps = u32::try_from(1 + dice.roll_number(4)).expect("few");
                let plan: String =
                    (1..=steps).map(|n| format!("## Step {n}: {}\n", dice.roll_number(9))).collect();
                let paper = crate::papers::store_paper(&papers, &plan).expect("ours");
                Event::Staged(StagedEvent::Planned {
                    attempt,
                    paper,
                    steps,
                    covers: Vec::new(),
                    approach: String::new(),
                })
            }
            1 => Event::Staged(StagedEvent::Advanced { attempt, done: self.task.staged.plan.done + 1 }),
            2 => {
                let judged = JudgeResult {
                    checkpoint: GatePoint::PostPlan,
                    stage: None,
                    head: None,
                    scores: None,
                    composite: None,
                    result: StepResult::NeedsRevision,
                    reasons: vec![format!("reason {}", dice.roll_number(3))],
                    coverage: std::collections::BTreeMap::new(),
                    findings: vec![format!("major: finding {}", dice.roll_number(3))],
                    at: self.now,
                };
                Event::Staged(StagedEvent::Judged { attempt, judged })
            }
            3 => {
                let text = format!("# Report {}\n", dice.roll_number(9));
                let report = crate::papers::store_paper(&papers, &text).expect("ours");
                Event::Reported { attempt, report, certificate: None }
            }
            4 => {
                let mut spec = self.task.spec.clone();
                spec.title = format!("Title {}", dice.roll_number(5));
                Event::Edited { spec }
            }
            _ => Event::Warned(landfall_model::Warning::LeftoversCommitted),
        };
        self.apply_event(event);
        self.now = self.now.plus_ms(1 + u64::try_from(dice.roll_number(3)).expect("few") * HALF_DAY_MS);
    }

    /// A person adds a word somewhere. They take none away.
    fn write_word(&mut self, dice: &mut Dice, index: &str) {
        let word = format!("word{}", self.words.len());
        let file = match dice.roll_number(9) {
            0 => ".target.md",
            1 => ".plan.md",
            2 => ".summary.md",
            3 => ".report.md",
            4 => ".notes/mine.md",
            5 => ".analysis/2026-03-10-post-plan-needs-revision.md",
            6 => ".pending-refinements.md",
            7 => ".plan-superseded.md",
            _ => index,
        };
        let path = self.module_folder().join(file);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let text = match file {
            ".pending-refinements.md" => format!("{text}- {word}\n"),
            ".index.json" | ".status.json" => {
                let end = text.rfind('}').expect("an object");
                format!("{}, \"{word}\": 1}}\n", text[..end].trim_end())
            }
            ".index.md" => format!("{text}{word}\n"),
            _ => format!("{text}{word}\n"),
        };
        fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        fs::write(path, text).expect("ours");
        self.words.push(word);
    }

    /// The words that are nowhere: not in the folder, and not in what the journal knows.
    fn find_lost_words(&self) -> Vec<String> {
        fn append_texts(dir: &Path, all: &mut String) {
            for entry in fs::read_dir(dir).expect("ours").flatten() {
                match entry.path().is_dir() {
                    true => append_texts(&entry.path(), all),
                    false => all.push_str(&(fs::read_to_string(entry.path()).expect("text") + "\n")),
                }
            }
        }
        let mut all = String::new();
        append_texts(&self.module_folder(), &mut all);
        let there: BTreeSet<&str> = all.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        self.words.iter().filter(|word| !there.contains(word.as_str())).cloned().collect()
    }
}

#[test]
fn nothing_a_person_adds_between_two_looks_is_lost() {
    for (sort, file, metadata) in [
        ("AiTasks/m", ".index.json", "{\"title\": \"One\", \"status\": \"draft\"}\n"),
        ("TASK/m", ".index.md", "---\ntitle: One\nstatus: draft\n---\n"),
        (".worktrees/task-m/.working", ".status.json", "{\"title\": \"One\", \"status\": \"draft\"}\n"),
    ] {
        for seed in 0..SEEDS {
            let mut dice = Dice(seed);
            let mut world = World::new(sort, file, metadata);
            let flow: Arc<Flow> = crate::flows::load_flows(None).flows["lifecycle"].clone();
            let driving = landfall_model::AgentAssignment {
                profile: "default".to_owned(),
                account: "x".to_owned(),
                style: landfall_model::AgentDriveStyle::Fresh,
            };
            world.apply_event(Event::Bound { flow, limits: landfall_model::TaskLimits::default(), driving });
            world.apply_event(Event::Entered {
                attempt: Attempt(1),
                step: StepName::new("verify"),
                run: RunId(1),
                opening: AttemptStart::Check,
            });
            for _ in 0..12 {
                for _ in 0..dice.roll_number(3) {
                    world.advance_task(&mut dice);
                }
                for _ in 0..dice.roll_number(3) {
                    world.write_word(&mut dice, file);
                }
                let listens = dice.roll_number(4) > 0;
                world.visit_once(listens);
                assert_eq!(world.find_lost_words(), Vec::<String>::new(), "{sort}, seed {seed}");
            }
            let kind = if dice.roll_number(2) == 0 { EndKind::Done } else { EndKind::Cancelled };
            let code = landfall_model::EndCode::Person;
            world.apply_event(Event::Ended(Ending { kind, code, detail: String::new() }));
            world.visit_once(true);
            assert_eq!(
                world.visit_once(true),
                FolderVisitResult::Shown,
                "{sort}, seed {seed}: it comes to rest"
            );
            assert_eq!(world.find_lost_words(), Vec::<String>::new(), "{sort}, seed {seed}, at the end");
        }
    }
}

/// Looks with an engine that answers as `tell` does, and returns the texts of the messages that it got.
fn visit_with_reply(world: &World, reply: &mut dyn FnMut() -> Result<(), AskError>) -> Vec<String> {
    let (records, papers) = (world.root.path().join("records"), world.root.path().join("papers"));
    let desk = FolderContext { root: world.root.path(), records: &records, papers: &papers, now: world.now };
    let mut messages = Vec::new();
    visit_folder_in(&desk, &world.task, &mut |ask| {
        if let EngineRequest::Tell(_, news) = ask
            && let News::Message { text, .. } = *news
        {
            messages.push(text);
            reply()?;
        }
        Ok(EngineReply::Tasks(vec![world.task.clone()]))
    });
    messages
}

const NOTE_ONE: &str = r#"{"comment": [["", "It works.", "remark one", ""]]}"#;
const NOTE_TWO: &str =
    r#"{"comment": [["", "It works.", "remark one", ""], ["", "It works.", "remark two", ""]]}"#;

#[test]
fn an_annotation_written_during_a_look_is_taken_over_by_the_next_one() {
    let world = World::new("AiTasks/m", ".index.json", "{\"title\": \"One\", \"status\": \"draft\"}\n");
    let file = world.module_folder().join(annotation::FILE);
    fs::write(&file, NOTE_ONE).expect("ours");
    let first = visit_with_reply(&world, &mut || {
        fs::write(&file, NOTE_TWO).expect("ours");
        Ok(())
    })
    .concat();
    assert!(first.contains("remark one") && !first.contains("remark two"), "{first}");
    assert!(file.exists(), "nobody has read the second remark");
    let second = visit_with_reply(&world, &mut || Ok(())).concat();
    assert!(second.contains("remark two") && !second.contains("remark one"), "{second}");
    assert!(!file.exists());
    // The same words in a new file are a new wish.
    fs::write(&file, NOTE_ONE).expect("ours");
    assert_eq!(visit_with_reply(&world, &mut || Ok(())).len(), 1);
}

#[test]
fn annotations_that_are_committed_are_no_words_of_a_person() {
    let world = World::new("AiTasks/m", ".index.json", "{\"title\": \"One\", \"status\": \"draft\"}\n");
    let file = world.module_folder().join(annotation::FILE);
    fs::write(&file, NOTE_ONE).expect("ours");
    for words in [
        &["init", "--quiet"][..],
        &["add", "AiTasks"],
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "it"],
    ] {
        let git = std::process::Command::new("git").args(words).current_dir(world.root.path()).status();
        assert!(git.expect("git runs").success(), "{words:?}");
    }
    assert_eq!(visit_with_reply(&world, &mut || Ok(())), Vec::<String>::new());
    assert!(file.exists(), "a tracked file stays");
    fs::write(&file, NOTE_TWO).expect("ours");
    assert_eq!(visit_with_reply(&world, &mut || Ok(())).len(), 1);
}

#[test]
fn annotations_of_the_plan_are_applied_once_while_the_message_is_refused() {
    let mut world = World::new("AiTasks/m", ".index.json", "{\"title\": \"One\", \"status\": \"draft\"}\n");
    let papers = world.root.path().join("papers");
    let paper = crate::papers::store_paper(&papers, "# Plan\n\nRead it.\n").expect("ours");
    Arc::make_mut(&mut world.task).staged.papers.insert(PLAN.to_owned(), paper);
    let file = world.module_folder().join(annotation::FILE);
    let notes = serde_json::json!([
        { "type": "comment", "file": ".plan.md", "before": "Line3:...", "selected": "Read it.", "comment": "twice", "after": "" },
        { "type": "comment", "file": ".target.md", "before": "", "selected": "It works.", "comment": "really", "after": "" },
    ]);
    fs::write(&file, notes.to_string()).expect("ours");
    let records = world.root.path().join("records");
    let mut applied = 0;
    for _ in 0..3 {
        let desk =
            FolderContext { root: world.root.path(), records: &records, papers: &papers, now: world.now };
        visit_folder_in(&desk, &world.task, &mut |ask| {
            if let EngineRequest::Tell(_, news) = ask {
                match *news {
                    News::Annotate(_) => applied += 1,
                    News::Message { .. } => return Err(AskError::Gone),
                    _ => {}
                }
            }
            Ok(EngineReply::Tasks(vec![world.task.clone()]))
        });
    }
    assert_eq!(applied, 1, "the plan changes once");
    assert!(file.exists(), "the message waits");
}

#[test]
fn an_edit_of_the_type_profile_changes_the_numbers_of_the_task() {
    let mut world = World::new("AiTasks/m", ".index.json", "{\"title\": \"One\", \"status\": \"draft\"}\n");
    let file = world.module_folder().join(TYPE_PROFILE);
    fs::write(&file, "## Auto Adaptation\nthresholds: 0.60/0.55/0.65\n").expect("ours");
    world.visit_once(true);
    let tags: Vec<String> = world.task.spec.tags.iter().map(ToString::to_string).collect();
    assert!(tags.iter().any(|tag| tag.starts_with("threshold:post-plan:0.6")), "{tags:?}");
}
