//! Tasks go in and come out as they were, whatever their words.

use landfall_api::{Added, Changed, Exported, LogPage, Status, StatusReport, TaskDetail, TaskPage, Why};

use crate::support::{TestEnvironment, is_there};

#[test]
fn titles_are_words_and_nothing_else() {
    let place = TestEnvironment::new();
    let emoji = "😀".repeat(2_560); // 10 kB
    let titles = ["$(id)", "--help", "../../x", "`touch pwned`; touch pwned", "-", "*", "T1", emoji.as_str()];
    for title in titles {
        let said = if title == "-" {
            place.landfall_with(&["add", "-"], "-\n")
        } else {
            place.landfall(&["add", "--", title])
        };
        said.works();
    }
    assert_eq!(place.titles(), titles);
    for number in 1..=titles.len() {
        let id = format!("T{number}");
        place.landfall(&["show", &id]).works();
        place.landfall(&["why", &id]).works();
    }
    place.landfall(&["list"]).works();
    assert!(!is_there(&place.project().join("pwned")));
    // Out as files and in again, they are still the same.
    let said = place.landfall(&["export", "--dir", "out"]).works();
    assert!(said.err.contains("wrote 8 files"), "{said:?}");
    let exported: Exported = place.json(&["export"]);
    assert!(exported.files.iter().all(|file| is_there(&place.project().join("out").join(&file.name))));
    let text = place.landfall(&["export"]).works().out;
    place.landfall_with(&["add", "-"], &text).works();
    assert_eq!(place.titles(), [&titles[..], &titles[..]].concat());
}

#[test]
fn all_words_of_a_task_are_kept() {
    let place = TestEnvironment::new();
    place.write("body.md", "From a file.\n");
    place.add(&["ground", "second"]);
    let args = [
        "full",
        "--body-file",
        "body.md",
        "--criterion",
        "it works, always",
        "--criterion",
        "tests pass",
        "--needs",
        "T1,t2",
        "--size",
        "m",
        "--tag",
        "quick-win",
        "--tag",
        "parser",
        "--priority",
        "2",
        "--touches",
        "./src/parse.rs,docs/",
        "--parent",
        "T1",
        "--flow",
        "loop",
        "--draft",
    ];
    assert_eq!(place.add(&args), ["T3"]);
    let task: TaskDetail = place.json(&["show", "T3"]);
    assert_eq!(task.line.status, Status::Draft);
    assert_eq!(task.body.trim_end(), "From a file.");
    assert_eq!(task.criteria, ["it works, always", "tests pass"]);
    assert_eq!(task.line.needs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["T1", "T2"]);
    assert_eq!(task.line.size.map(|size| size.to_string()).as_deref(), Some("M"));
    assert_eq!(task.line.tags.len(), 2);
    assert_eq!(task.touches, ["docs/", "src/parse.rs"]);
    assert_eq!((task.line.priority, task.flow.as_str()), (2, "loop"));
    assert_eq!(task.line.parent.map(|parent| parent.to_string()).as_deref(), Some("T1"));

    let changed: Changed =
        place.json(&["edit", "T3", "--title", "fuller", "--unset", "size,needs,touches", "--ready"]);
    assert_eq!(changed.tasks.len(), 1);
    let task: TaskDetail = place.json(&["show", "T3"]);
    assert_eq!((task.line.title.as_str(), task.line.size, task.line.status), ("fuller", None, Status::Ready));
    assert!(task.line.needs.is_empty() && task.touches.is_empty());
    assert_eq!(task.criteria.len(), 2, "what is left out stays");
}

#[test]
fn many_at_once_come_from_words_files_and_stdin_together() {
    let place = TestEnvironment::new();
    place.write("a.md", "---\nid: ground\ntitle: from yaml\ntags: [later]\n---\nBody.\n");
    place.write("b.md", "+++\ntitle = \"from toml\"\nneeds = [\"ground\"]\n+++\n");
    let said = place.landfall_with(
        &["--json", "add", "word", "-f", "a.md", "-f", "b.md", "-", "--tag", "next"],
        "line one\n\n  line two  \n",
    );
    let added: Added = serde_json::from_str(&said.works().out).expect("JSON");
    let titles: Vec<&str> = added.tasks.iter().map(|task| task.title.as_str()).collect();
    assert_eq!(titles, ["word", "line one", "line two", "from yaml", "from toml"]);
    assert_eq!(added.tasks[4].needs, [added.tasks[3].id], "named by its id in another file");
    assert_eq!(added.tasks[3].tags, ["later"], "what a task says itself holds");
    assert_eq!(added.tasks[0].tags, ["next"]);
}

#[test]
fn lists_are_filtered_and_come_in_pages() {
    let place = TestEnvironment::new();
    let lines: String = (1..=30).map(|n| format!("task number {n}\n")).collect();
    place.landfall_with(&["add", "-", "--tag", "odd"], &lines).works();
    place.add(&["other", "--draft"]);
    let first: TaskPage = place.json(&["list", "--limit", "20", "--tag", "odd"]);
    assert_eq!(first.tasks.len(), 20);
    let next = first.next.expect("there is more").to_string();
    let second: TaskPage = place.json(&["list", "--limit", "20", "--tag", "odd", "--after", &next]);
    assert_eq!((second.tasks.len(), second.next), (10, None));
    let drafts: TaskPage = place.json(&["list", "--status", "draft"]);
    assert_eq!(drafts.tasks.len(), 1);
    let found: TaskPage = place.json(&["list", "--text", "NUMBER 17"]);
    assert_eq!(found.tasks.len(), 1);
    let said = place.landfall(&["list", "--limit", "5"]).works();
    assert!(said.err.contains("--after T5"), "{said:?}");
}

#[test]
fn why_and_status_answer_without_an_engine() {
    let place = TestEnvironment::new();
    place.add(&["one", "two"]);
    place.add(&["three", "--needs", "T1"]);
    let why: Why = place.json(&["why", "T3"]);
    assert_eq!(why.sentence, "T3 waits for T1 to land first.");
    let said = place.landfall(&["why", "T1"]).works();
    assert!(said.out.starts_with("T1 is ready"), "{said:?}");
    let status: StatusReport = place.json(&["status"]);
    assert!(status.run.is_none() && status.active.is_empty());
    assert_eq!(status.counts.values().sum::<u64>(), 3);
    assert_eq!(status.base.branch, "main");
    place.landfall(&["status"]).works();
    let log: LogPage = place.json(&["log"]);
    assert!(log.entries.len() >= 3 && !log.more, "{log:?}");
    let later: LogPage = place.json(&["log", "--after", &log.next.to_string()]);
    assert!(later.entries.is_empty(), "{later:?}");
    let one: LogPage = place.json(&["log", "T3"]);
    assert!(
        !one.entries.is_empty() && one.entries.iter().all(|it| it.task.is_some_and(|id| id.0 == 3)),
        "{one:?}"
    );
}

#[test]
fn cancelled_tasks_start_again_when_asked() {
    let place = TestEnvironment::new();
    place.add(&["one", "two"]);
    let changed: Changed = place.json(&["cancel", "T1", "T2", "--reason", "not now"]);
    assert!(changed.tasks.iter().all(|task| task.status == Status::Cancelled), "{changed:?}");
    let why: Why = place.json(&["why", "T1"]);
    assert!(why.sentence.contains("not now"), "{why:?}");
}
