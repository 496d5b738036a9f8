//! `landfall project import`: lists of other tools become tasks, all or none, and not twice.

use landfall_testkit::{CommandOutput, ScratchProject};
use serde_json::Value;

use crate::LANDFALL;

fn titles(scratch: &ScratchProject) -> Vec<String> {
    let page = scratch.landfall(&["--json", "list"]).json();
    let tasks = page["tasks"].as_array().expect("a list").iter();
    tasks.map(|task| task["title"].as_str().expect("text").to_owned()).collect()
}

#[track_caller]
fn refused(said: &CommandOutput, words: &[&str]) {
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
    for word in words {
        assert!(said.err.contains(word), "`{word}` is not in: {}", said.err);
    }
}

const CHECKLIST: &str = "# Plan\n\n## Next\n- [ ] Greet\n  - [ ] by name\n    The name is in `$1`.\n  - [ ] politely\n- [x] Begin\n";

#[test]
fn a_checklist_is_imported_and_grows() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("TODO.md", CHECKLIST);
    let look = scratch.landfall(&["import", "TODO.md", "--dry-run"]);
    assert_eq!(look.out, "#1 Greet  (next)\n  #2 by name  (next)\n  #3 politely  (next)\n", "{}", look.err);
    assert!(look.err.contains("TODO.md is read as a Markdown checklist (markdown)"), "{}", look.err);
    assert!(look.err.contains("left out: item that is ticked (1)"), "{}", look.err);
    assert!(
        look.err.contains("3 tasks would be added, 1 of them drafts that hold others together"),
        "{}",
        look.err
    );
    assert_eq!(titles(&scratch), Vec::<String>::new(), "a look changes nothing");

    let said = scratch.landfall(&["import", "TODO.md"]);
    assert_eq!(said.clone().ok(), "T1 Greet\nT2 by name\nT3 politely\n");
    assert!(said.err.contains("3 tasks added"), "{}", said.err);
    let part = scratch.landfall(&["--json", "show", "T2"]).json();
    assert_eq!(
        (&part["parent"], &part["status"], &part["tags"][0]),
        (&"T1".into(), &"ready".into(), &"next".into())
    );
    assert!(part["body"].as_str().is_some_and(|it| it.starts_with("The name is in `$1`.")), "{part}");
    assert!(
        part["source"].as_str().is_some_and(|it| it.starts_with("import:markdown:TODO.md#next/greet-")),
        "{part}"
    );
    assert_eq!(scratch.status("T1"), "draft", "nobody works on a group");

    scratch.file("TODO.md", &format!("{CHECKLIST}- [ ] Sing\n"));
    let again = scratch.landfall(&["--json", "import", "TODO.md"]).json();
    assert_eq!(again["added"].as_array().map(Vec::len), Some(1), "{again}");
    assert_eq!((&again["added"][0]["id"], &again["format"]), (&"T4".into(), &"markdown".into()));
    assert_eq!(again["there"].as_array().map(Vec::len), Some(3), "{again}");
    let once_more = scratch.landfall(&["import", "TODO.md"]);
    assert_eq!((once_more.code, once_more.out.as_str()), (Some(0), ""), "{}", once_more.err);
    for words in ["there already: T2 by name", "nothing new to add", "`--again` adds once more"] {
        assert!(once_more.err.contains(words), "{}", once_more.err);
    }
    scratch.landfall(&["import", "TODO.md", "--again"]).ok();
    assert_eq!(titles(&scratch).len(), 8);
}

#[test]
fn the_order_of_a_list_holds_when_it_is_worked_through() {
    let scratch = ScratchProject::new(LANDFALL);
    let body = |name: &str| {
        format!(
            "```landfall-script\nsignal = \"complete\"\n[[write]]\npath = \"log\"\nappend = \"{name}\\n\"\n```"
        )
    };
    let task = |id: u32, name: &str, more: &str| {
        format!("{{\"id\": {id}, \"title\": \"{name}\", \"description\": {}{more}}}", Value::from(body(name)))
    };
    let parts = [task(1, "second", ", \"dependencies\": [2]"), task(2, "first", "")].join(",");
    let whole =
        format!("{{\"id\": 2, \"title\": \"whole\", \"dependencies\": [3], \"subtasks\": [{parts}]}}");
    let tasks = [task(1, "last", ", \"dependencies\": [2]"), whole, task(3, "begin", "")].join(",");
    let list = format!("{{\"master\": {{\"tasks\": [{tasks}]}}}}");
    scratch.file("tasks.json", &list);
    scratch.landfall(&["import", "tasks.json"]).ok();
    scratch.landfall(&["run"]).ok();
    let log = scratch.git(&["show", "main:log"]);
    assert_eq!(log, "begin\nfirst\nsecond\nlast");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn every_format_is_known_by_what_is_in_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("issues.jsonl", "{\"id\":\"bd-1\",\"title\":\"one\",\"status\":\"open\",\"priority\":0}\n{\"id\":\"bd-2\",\"title\":\"two\",\"status\":\"closed\",\"x\":1}\n");
    scratch.file("prd.json", r#"{"branchName":"b","userStories":[{"id":"US-1","title":"s1","acceptanceCriteria":["c"],"passes":false,"priority":1},{"id":"US-2","title":"s2","passes":false,"priority":2}]}"#);
    let beads = scratch.landfall(&["import", "issues.jsonl"]);
    assert!(beads.err.contains("issues of beads"), "{}", beads.err);
    let prd = scratch.landfall(&["--json", "import", "prd.json"]);
    assert_eq!(
        (prd.err.as_str(), &prd.json()["format"]),
        ("", &"prd".into()),
        "a program hears nothing but the answer"
    );
    assert_eq!(prd.json()["added"][1]["needs"][0], "T2");
    assert_eq!(scratch.landfall(&["--json", "show", "T1"]).json()["source"], "import:beads:bd-1");
    let stdin = scratch.landfall_with(&["import", "-"], b"- [ ] three\n");
    assert_eq!(stdin.ok(), "T4 three\n");
    assert_eq!(titles(&scratch), ["one", "s1", "s2", "three"]);
}

#[test]
fn what_cannot_be_read_is_named_with_its_place_and_nothing_is_added() {
    let scratch = ScratchProject::new(LANDFALL);
    let circle = r#"{"tasks": [{"id": 1, "title": "a", "dependencies": [2]}, {"id": 2, "title": "b", "dependencies": [1]}]}"#;
    scratch.file("tasks.json", circle);
    refused(
        &scratch.landfall(&["import", "tasks.json"]),
        &["tasks.json: tasks[0]: the needs go in a circle: master/1 → master/2 → master/1", "hint: "],
    );
    scratch.file(
        "tasks.json",
        r#"{"tasks": [{"id": 1, "title": "a"}, {"id": 2, "title": "b", "status": "soon"}]}"#,
    );
    refused(
        &scratch.landfall(&["import", "tasks.json"]),
        &["tasks[1].status: `soon` is not a status of Task Master", "known: pending"],
    );
    refused(
        &scratch.landfall(&["import", "tasks.json", "--format", "beads"]),
        &["tasks.json:1: there is no `id`"],
    );
    refused(
        &scratch.landfall(&["import", "tasks.json", "--format", "jira"]),
        &["`jira` is not a format", "markdown, beads, taskmaster, prd"],
    );
    scratch.file("notes.md", "no list\n");
    refused(
        &scratch.landfall(&["import", "notes.md"]),
        &["notes.md: this looks like no task list", "--format"],
    );
    refused(&scratch.landfall(&["import", "nowhere.md"]), &["read `nowhere.md`"]);
    // Words that only the engine can refuse: one bad task, and the good ones stay out as well.
    scratch.file("long.md", &format!("- [ ] fine\n- [ ] {}\n", "x".repeat(20_000)));
    refused(&scratch.landfall(&["import", "long.md"]), &["the title has 20000 bytes"]);
    assert_eq!(titles(&scratch), Vec::<String>::new());
}
