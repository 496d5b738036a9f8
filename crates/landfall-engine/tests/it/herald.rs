//! Hooks, by real processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_engine::StateFolder;
use landfall_engine::herald::{Notifier, NotifierContext};
use landfall_engine::model::{
    Attempt, AttemptStart, Commit, EndCode, EndKind, Ending, Event, Fact, JournalEntry, RunId, StepName,
    Task, TaskId, TaskSpec, Timestamp, Tree, Warning, World,
};
use landfall_engine::notify::NotificationTiming;
use landfall_engine::settings::Settings;

/// A project and its state, in a folder of their own.
pub struct Scene {
    folder: tempfile::TempDir,
    pub world: World,
    pub environment: Vec<(String, String)>,
}

impl Scene {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["shop", "state"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mut world = World::new(BTreeMap::new(), "loop");
        for number in 1..=50 {
            let spec = TaskSpec::new(&format!("Title {number}")).expect("a title");
            world.put_task(Task::from_spec(TaskId(number), spec, Timestamp(1)));
        }
        let path = std::env::var("PATH").expect("there is one");
        Self { folder, world, environment: vec![("PATH".to_owned(), path)] }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("shop").canonicalize().expect("it is there")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn herald(&self, settings: &str) -> Notifier {
        self.herald_with(
            settings,
            &NotificationTiming { hook_grace_ms: 200, ..NotificationTiming::default() },
        )
    }

    pub fn herald_with(&self, settings: &str, timing: &NotificationTiming) -> Notifier {
        let settings = Settings::parse(settings, "landfall.toml").expect("good settings");
        let ground = NotifierContext {
            program: env!("CARGO_BIN_EXE_landfall-engine-probe").into(),
            root: self.root(),
            base: "main".to_owned(),
            folder: StateFolder::at_root(self.state()),
            environment: self.environment.iter().map(|(key, value)| (key.into(), value.into())).collect(),
            trust: None,
        };
        Notifier::with_timing(&ground, &settings, timing)
    }

    /// A log, line by line.
    pub fn log(&self, name: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.state().join(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// What hooks wrote into a file of the project.
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap_or_default()
    }
}

pub const LONG: Duration = Duration::from_secs(60); // far more than any of this takes

pub fn fact(task: u32, event: Event) -> JournalEntry {
    JournalEntry { at: Timestamp(1_000), fact: Fact::Task(TaskId(task), event) }
}

pub fn landed(task: u32, commit: &str) -> JournalEntry {
    fact(
        task,
        Event::Landed {
            attempt: Attempt(1),
            commit: Commit::new(commit),
            base_before: Commit::new("0"),
            tree: Tree::new("0"),
            proof: String::new(),
        },
    )
}

pub fn failed(task: u32, detail: &str) -> JournalEntry {
    let (kind, code) = (EndKind::Failed, EndCode::AgentCrashed);
    fact(task, Event::Ended(Ending { kind, code, detail: detail.to_owned() }))
}

fn started(task: u32) -> JournalEntry {
    let opening = AttemptStart::Workspace;
    let step = StepName::new("work");
    fact(task, Event::Entered { attempt: Attempt(1), step, run: RunId(1), opening })
}

/// How many processes have this word among their words.
fn processes_with(word: &str) -> usize {
    let has = |pid: &Path| {
        let words = std::fs::read(pid.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|it| it == word.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("it is there").flatten();
    entries.filter(|entry| has(&entry.path())).count()
}

#[test]
fn a_hook_gets_what_happened_and_runs_in_the_project() {
    let mut scene = Scene::new();
    scene.environment.push(("MY_TOKEN".to_owned(), "sesame".to_owned()));
    scene.environment.push(("OTHER_TOKEN".to_owned(), "closed".to_owned()));
    let mut herald = scene.herald(
        r#"
        [hooks]
        env = ["MY_TOKEN"]
        post-merge = "pwd > where; env | sort > env; cat > stdin; echo told"
        "#,
    );
    herald.process_entries(&[started(1), landed(2, "c0ffee"), failed(3, "x")], &scene.world);
    herald.finish_deliveries(LONG);
    assert_eq!(scene.file("where").trim(), scene.root().to_string_lossy());
    let env = scene.file("env");
    for wanted in [
        "LANDFALL_HOOK=post-merge\n",
        "LANDFALL_TASK=T2\n",
        "LANDFALL_TITLE=Title 2\n",
        "LANDFALL_COMMIT=c0ffee\n",
        "AXIOM_EVENT=post-merge\n",
        "AXIOM_TASK_ID=T2\n",
        "MY_TOKEN=sesame\n",
    ] {
        assert!(env.contains(wanted), "{wanted} in {env}");
    }
    assert!(!env.contains("OTHER_TOKEN"), "{env}");
    let stdin: serde_json::Value = serde_json::from_str(&scene.file("stdin")).expect("JSON");
    assert_eq!((&stdin["task"], &stdin["what"]), (&"T2".into(), &"T2 landed".into()));
    let log = scene.log("hooks.jsonl");
    assert_eq!(log.len(), 1, "only this hook is set: {log:?}");
    assert_eq!((&log[0]["hook"], &log[0]["exit"]), (&"post-merge".into(), &0.into()));
    assert_eq!(log[0]["said"], "told");
    let left = std::fs::read_dir(scene.state().join("errands")).expect("there").count();
    assert_eq!(left, 0, "the folder of the run is gone");
}

#[test]
fn a_hook_that_hangs_is_killed_with_all_it_started() {
    let scene = Scene::new();
    // One child in a session of its own, and all deaf to being asked.
    let mut herald = scene.herald(
        r#"
        [hooks]
        timeout = "400ms"
        on-error = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 86399.0425; sleep 86399.0425' & echo up; sleep 86399.0425; sleep 86399.0425"
        "#,
    );
    let began = Instant::now();
    herald.process_entries(&[failed(1, "x")], &scene.world);
    herald.finish_deliveries(LONG);
    assert!(began.elapsed() >= Duration::from_millis(600), "it had its time and its grace");
    assert_eq!(processes_with("86399.0425"), 0);
    let log = scene.log("hooks.jsonl");
    assert_eq!((&log[0]["timed_out"], &log[0]["said"]), (&true.into(), &"up".into()), "{log:?}");
}

#[test]
fn hooks_of_one_task_keep_their_order_and_do_not_wait_for_those_of_others() {
    let scene = Scene::new();
    // The first of T1 waits until one of T2 has been run.
    let mut herald = scene.herald(
        r#"
        [hooks]
        post-merge = "if [ $LANDFALL_COMMIT = first ]; then while ! grep -q T2 told; do sleep 0.02; done; fi; echo $LANDFALL_TASK $LANDFALL_COMMIT >> told"
        "#,
    );
    herald.process_entries(
        &[landed(1, "first"), landed(1, "second"), landed(1, "third"), landed(2, "other")],
        &scene.world,
    );
    herald.finish_deliveries(LONG);
    assert_eq!(scene.file("told"), "T2 other\nT1 first\nT1 second\nT1 third\n");
}

#[test]
fn the_engine_never_waits_and_what_matters_least_is_left_out() {
    let scene = Scene::new();
    let mut herald = scene.herald(
        r#"
        [hooks]
        on-discovery = "while [ ! -e go ]; do sleep 0.02; done; echo $LANDFALL_REASON >> told"
        on-error = "echo failed >> told"
        "#,
    );
    let found = |number: u32| {
        fact(1, Event::Warned(Warning::Discovery { global: true, text: format!("fact-{number}") }))
    };
    let facts: Vec<JournalEntry> = [failed(1, "x")].into_iter().chain((0..1_500).map(found)).collect();
    let began = Instant::now();
    herald.process_entries(&facts, &scene.world);
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    std::fs::write(scene.root().join("go"), "").expect("a file");
    // Running the thousand that are left takes a while; the first few show the rest.
    let deadline = Instant::now() + LONG;
    while scene.file("told").lines().count() < 3 {
        assert!(Instant::now() < deadline, "{}", scene.file("told"));
        std::thread::sleep(Duration::from_millis(20));
    }
    herald.finish_deliveries(Duration::ZERO);
    herald.finish_deliveries(LONG); // the one that ran
    let told = scene.file("told");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "failed", "it was first in line and is never left out: {told}");
    assert!(lines.contains(&"fact-501") || lines.contains(&"fact-500"), "the oldest are left out: {told}");
    let left_out =
        || -> u64 { scene.log("hooks.jsonl").iter().filter_map(|it| it["left_out"].as_u64()).sum() };
    assert!(left_out() >= 500, "{}", left_out());
}

#[test]
fn nothing_is_made_when_nothing_is_set() {
    let scene = Scene::new();
    let mut herald = scene.herald("");
    herald.process_entries(&[landed(1, "a"), failed(2, "x")], &scene.world);
    herald.finish_deliveries(LONG);
    assert_eq!(std::fs::read_dir(scene.state()).expect("there").count(), 0);
}

#[test]
fn a_hook_that_fails_is_a_line_in_the_log_and_no_more() {
    let scene = Scene::new();
    let mut herald = scene.herald("[hooks]\npost-merge = \"echo no such luck >&2; exit 7\"\n");
    herald.process_entries(&[landed(1, "a"), landed(1, "b")], &scene.world);
    herald.finish_deliveries(LONG);
    let log = scene.log("hooks.jsonl");
    assert_eq!(log.len(), 2);
    assert_eq!((&log[0]["exit"], &log[0]["said"]), (&7.into(), &"no such luck".into()));
}
