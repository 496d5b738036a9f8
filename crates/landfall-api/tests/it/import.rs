//! Task lists of other tools: what is read of each, what is refused, and what is not added twice.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use landfall_api::import::{Format, Imported, guess_format, read, resolve_import};
use landfall_api::taskfile::TaskFileSource;
use landfall_api::{NewTask, TaskRef, WireTaskId};

/// A task in a line or two: `1 Title [tags] p2 M needs #1 in #2 draft | criteria | body <- source`.
fn line(number: usize, task: &NewTask) -> String {
    let refs = |refs: &[TaskRef]| refs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut line = format!("{number} {}", task.title);
    if !task.tags.is_empty() {
        line += &format!(" [{}]", task.tags.join(","));
    }
    line += &task.priority.map(|it| format!(" p{it}")).unwrap_or_default();
    line += &task.size.map(|it| format!(" {it}")).unwrap_or_default();
    if !task.needs.is_empty() {
        line += &format!(" needs {}", refs(&task.needs));
    }
    line += &task.parent.map(|it| format!(" in {it}")).unwrap_or_default();
    if task.draft {
        line += " draft";
    }
    for criterion in &task.criteria {
        line += &format!(" | {criterion}");
    }
    for text in task.body.lines() {
        line += &format!("\n    > {text}");
    }
    line + &format!("\n    <- {}", task.source)
}

fn shown(name: &str, text: &str, known: &BTreeMap<String, WireTaskId>) -> String {
    let file = TaskFileSource { name, text };
    let settled = guess_format(&file)
        .and_then(|format| Ok((format, read(&file, format, None)?)))
        .and_then(|(format, list)| Ok((format, resolve_import(list, known, false)?)));
    match settled {
        Err(error) => match &error.hint {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
        Ok((format, settled)) => {
            let mut lines = vec![format.to_string()];
            lines.extend((1..).zip(&settled.tasks).map(|(number, task)| line(number, task)));
            lines.extend(settled.there.iter().map(|it| format!("there: {} {}", it.id, it.title)));
            lines.extend(settled.left_out.iter().map(|it| format!("left out: {} ({})", it.what, it.count)));
            lines.join("\n")
        }
    }
}

fn check(name: &str, text: &str, expected: Expect) {
    expected.assert_eq(&shown(name, text, &BTreeMap::new()));
}

#[test]
fn a_markdown_checklist_gives_tasks_parts_bodies_and_tags() {
    check(
        "docs/TODO.md",
        "\u{feff}# The plan\n\nSome words.\n\n- [ ] Read the configuration\n  From `app.toml`, with\n  defaults.\n\n  ```sh\n  - [ ] not an item\n  ```\n\
         - [x] Make the repository\n  it is made\n\n## Next\n\n1. [ ] Greet\n   - [ ] by name\n     * plain point\n   - [X] at all\n   - [ ] politely\n\n   More about greeting.\n\n\
         A paragraph of its own.\n- plain\n* [-] Sing\n+ [/] [Link](x) in work\n- [1] a reference\n- [docs](x)\n",
        expect![[r#"
            markdown
            1 Read the configuration
                > From `app.toml`, with
                > defaults.
                > 
                > ```sh
                > - [ ] not an item
                > ```
                <- import:markdown:TODO.md#/read-the-configuration-6d0a
            2 Greet [next] draft
                > More about greeting.
                <- import:markdown:TODO.md#next/greet-fff0
            3 by name [next] in #2
                > * plain point
                > 
                > ## What it is a part of
                > 
                > Greet
                > 
                > More about greeting.
                <- import:markdown:TODO.md#next/greet-fff0/by-name-22a8
            4 politely [next] in #2
                > ## What it is a part of
                > 
                > Greet
                > 
                > More about greeting.
                <- import:markdown:TODO.md#next/greet-fff0/politely-f71a
            5 [Link](x) in work [next]
                <- import:markdown:TODO.md#next/link-x-in-work-2bdf
            left out: item that is ticked (2)
            left out: item that is dropped (1)"#]],
    );
}

#[test]
fn a_markdown_checklist_that_makes_no_sense_is_refused_with_its_line() {
    check(
        "a.md",
        "- [ ] one\n- [?] two\n",
        expect![[r#"
        a.md:2: nobody can tell what `[?]` means
        hint: `[ ]`, `[/]` and `[~]` are open, `[x]` is done, `[-]` is dropped"#]],
    );
    check(
        "a.md",
        "- [ ] one\n- [ ]\n",
        expect![[r#"
        a.md:2: the item is empty
        hint: say in one line what is wanted"#]],
    );
    check(
        "a.md",
        "just words\n",
        expect![[r#"
            a.md: this looks like no task list that is known
            hint: `--format` says what it is: markdown (a Markdown checklist), beads (issues of beads, a line each), taskmaster (the tasks.json of Task Master), prd (a prd.json with user stories), modules (a folder of task modules)"#]],
    );
    check(
        "a.md",
        "",
        expect![[r#"
            a.md: this looks like no task list that is known
            hint: `--format` says what it is: markdown (a Markdown checklist), beads (issues of beads, a line each), taskmaster (the tasks.json of Task Master), prd (a prd.json with user stories), modules (a folder of task modules)"#]],
    );
    let toml =
        guess_format(&TaskFileSource { name: "landfall.toml", text: "[[verify.command]]\nname = \"t\"\n" });
    assert_eq!(
        toml.expect_err("no list").to_string(),
        "landfall.toml: this looks like no task list that is known"
    );
    let list = read(&TaskFileSource { name: "a.md", text: "just words\n" }, Format::Markdown, None);
    assert_eq!(list.expect_err("no item").to_string(), "a.md: there is no item with a check box");
}

const BEADS: &str = concat!(
    r#"{"id":"bd-1","title":"The parser","description":"All of it.","status":"open","priority":1,"issue_type":"epic","created_at":"2026-01-01T00:00:00Z"}"#,
    "\n",
    r#"{"id":"bd-2","title":"Tokens","status":"closed","priority":2,"issue_type":"task","dependencies":[{"issue_id":"bd-2","depends_on_id":"bd-1","type":"parent-child"}]}"#,
    "\n\n",
    r#"{"id":"bd-3","title":"Trees","description":"Build them.","design":"Top down.","notes":"Soon.","acceptance_criteria":"- [ ] parses `1+2`\n- keeps spans","status":"in_progress","priority":0,"issue_type":"feature","estimated_minutes":200,"labels":["area/parse","needs love"],"assignee":"ann","dependencies":[{"issue_id":"bd-3","depends_on_id":"bd-1","type":"parent-child"},{"issue_id":"bd-3","depends_on_id":"bd-2","type":"blocks"},{"issue_id":"bd-3","depends_on_id":"bd-5","type":"related"}]}"#,
    "\n",
    r#"{"id":"bd-4","title":"Print trees","status":"blocked","priority":4,"issue_type":"task","dependencies":[{"issue_id":"bd-4","depends_on_id":"bd-1","type":"blocks"},{"issue_id":"bd-4","depends_on_id":"bd-3","type":"discovered-from"}]}"#,
    "\n",
    r#"{"id":"bd-5","title":"Some day","status":"deferred","priority":2,"issue_type":"bug"}"#,
    "\n",
    r#"{"id":"bd-6","title":"hello","status":"open","priority":2,"issue_type":"message"}"#,
    "\n",
    r#"{"_type":"memory","key":"k","value":"v"}"#,
    "\n",
);

#[test]
fn issues_of_beads_keep_their_order_and_their_words() {
    check(
        "issues.jsonl",
        BEADS,
        expect![[r#"
            beads
            1 The parser p2 draft
                > All of it.
                <- import:beads:bd-1
            2 Trees [area/parse,needs-love,feature] p0 M in #1 | parses `1+2` | keeps spans
                > Build them.
                > 
                > ## Design
                > 
                > Top down.
                > 
                > ## Notes
                > 
                > Soon.
                > 
                > ## What it is a part of
                > 
                > The parser
                > 
                > All of it.
                <- import:beads:bd-3
            3 Print trees p9 needs #2
                <- import:beads:bd-4
            4 Some day [bug] p5 draft
                <- import:beads:bd-5
            left out: closed issue (1)
            left out: field `assignee` (1)
            left out: link of type `related` (1)
            left out: link of type `discovered-from` (1)
            left out: issue that is no work (1)
            left out: line of type `memory` (1)
            left out: need that is done already (1)"#]],
    );
}

#[test]
fn issues_of_beads_that_make_no_sense_are_refused_with_their_line() {
    let issue = |more: &str| format!("{{\"id\":\"bd-1\",\"title\":\"one\"{more}}}\n");
    check(
        "i.jsonl",
        &(issue("") + "{\"id\":\n"),
        expect![[r#"
        i.jsonl:2: this is not JSON: EOF while parsing a value (column 6)
        hint: an export of beads has one JSON object on each line"#]],
    );
    check(
        "i.jsonl",
        &issue(",\"status\":\"nearly\""),
        expect![[r#"
        i.jsonl:1: status: `nearly` is not a status of beads
        hint: known: open, in_progress, blocked, hooked, deferred, closed, tombstone, pinned"#]],
    );
    check(
        "i.jsonl",
        &issue(",\"priority\":7"),
        expect![[r#"
        i.jsonl:1: priority: priority 7 is out of range
        hint: beads has 0 (critical) to 4"#]],
    );
    check("i.jsonl", &issue(",\"labels\":\"one\""), expect!["i.jsonl:1: labels: this is text, not a list"]);
    check(
        "i.jsonl",
        &issue(",\"dependencies\":[{\"depends_on_id\":\"bd-9\",\"type\":\"blocks\"}]"),
        expect![[r#"
            i.jsonl:1: dependencies[0].depends_on_id: `bd-9` is not in the file
            hint: write it into the file, or take the reference out"#]],
    );
    check(
        "i.jsonl",
        &(issue("") + &issue("")),
        expect![[r#"
        i.jsonl:2: two items are called `bd-1`
        hint: give one of them another name; nothing was added"#]],
    );
    check("i.jsonl", "{\"id\":\"bd-1\",\"title\":\" \"}", expect!["i.jsonl:1: title: the title is empty"]);
}

const TASKS: &str = r#"{
  "master": {
    "tasks": [
      {"id": 1, "title": "Set up", "description": "d", "status": "done", "dependencies": [], "priority": "high",
       "subtasks": [{"id": 1, "title": "forgotten", "status": "pending"}]},
      {"id": 2, "title": "Serve", "description": "Answer requests.", "details": "With threads.", "testStrategy": "curl says 200",
       "status": "pending", "dependencies": [1], "priority": "high", "complexity": 7,
       "subtasks": [
         {"id": 1, "title": "Listen", "description": "", "status": "done", "dependencies": []},
         {"id": 2, "title": "Route", "status": "pending", "dependencies": [1], "acceptanceCriteria": ["404 for the rest"]},
         {"id": 3, "title": "Answer", "status": "in-progress", "dependencies": ["2.2", 2], "parentTaskId": 2}
       ]},
      {"id": "3", "title": "Ship", "status": "deferred", "dependencies": ["2", "1.1"], "priority": "low", "subtasks": []}
    ],
    "metadata": {"created": "2026-01-01"}
  },
  "ideas": {"tasks": [{"id": 1, "title": "Sing", "status": "review"}]}
}"#;

#[test]
fn tasks_of_task_master_keep_their_parts_and_their_order() {
    check(
        "tasks.json",
        TASKS,
        expect![[r#"
            taskmaster
            1 Serve p2 draft | curl says 200
                > Answer requests.
                > 
                > ## Details
                > 
                > With threads.
                <- import:taskmaster:master/2
            2 Route p2 in #1 | 404 for the rest
                > ## What it is a part of
                > 
                > Serve
                > 
                > Answer requests.
                > 
                > ## Details
                > 
                > With threads.
                > 
                > - curl says 200
                <- import:taskmaster:master/2.2
            3 Answer p2 needs #2 in #1
                > ## What it is a part of
                > 
                > Serve
                > 
                > Answer requests.
                > 
                > ## Details
                > 
                > With threads.
                > 
                > - curl says 200
                <- import:taskmaster:master/2.3
            4 Ship p8 needs #2,#3 draft
                <- import:taskmaster:master/3
            5 Sing [ideas] draft
                <- import:taskmaster:ideas/1
            left out: task that is done or cancelled (1)
            left out: field `complexity` (1)
            left out: subtask that is done or cancelled (1)
            left out: need that is done already (3)"#]],
    );
    let old = r#"{"tasks": [{"id": 1, "title": "one"}, {"id": 2, "title": "two", "dependencies": [1]}], "metadata": {}}"#;
    check(
        "tasks.json",
        old,
        expect![[r#"
        taskmaster
        1 one
            <- import:taskmaster:master/1
        2 two needs #1
            <- import:taskmaster:master/2"#]],
    );
}

#[test]
fn one_list_of_several_can_be_picked() {
    let file = TaskFileSource { name: "tasks.json", text: TASKS };
    let list = read(&file, Format::Taskmaster, Some("ideas")).expect("it is there");
    assert_eq!(list.items.len(), 1);
    let error = read(&file, Format::Taskmaster, Some("idea")).expect_err("it is not there");
    assert_eq!(
        (error.to_string().as_str(), error.hint.as_deref()),
        ("tasks.json: there is no list `idea`", Some("did you mean `ideas`?"))
    );
}

#[test]
fn tasks_of_task_master_that_make_no_sense_are_refused_with_their_place() {
    let tasks = |tasks: &str| format!("{{\"tasks\": [{tasks}]}}");
    check(
        "t.json",
        "{\"tasks\": [\n  {\"id\": 1,\n}",
        expect![[r#"
            t.json:3: this is not JSON: trailing comma (column 1)
            hint: mend it; or `--format` says what it is"#]],
    );
    check(
        "t.json",
        &tasks(r#"{"id": 1, "title": "x", "status": "soon"}"#),
        expect![[r#"
        t.json: tasks[0].status: `soon` is not a status of Task Master
        hint: known: pending, in-progress, blocked, deferred, review, done, completed, cancelled"#]],
    );
    check(
        "t.json",
        &tasks(r#"{"id": 1, "title": "x", "subtasks": [{"title": "y"}]}"#),
        expect!["t.json: tasks[0].subtasks[0]: there is no `id`"],
    );
    check(
        "t.json",
        &tasks(r#"{"id": 1, "title": "x", "dependencies": [[2]]}"#),
        expect!["t.json: tasks[0].dependencies[0]: this is a list, not a name or a number"],
    );
    check(
        "t.json",
        &tasks(r#"{"id": 1, "title": "x", "dependencies": [9]}"#),
        expect![[r#"
        t.json: tasks[0].dependencies[0]: `master/9` is not in the file
        hint: write it into the file, or take the reference out"#]],
    );
    check(
        "t.json",
        r#"{"master": {"tasks": {}}}"#,
        expect![[r#"
            t.json: this looks like no task list that is known
            hint: `--format` says what it is: markdown (a Markdown checklist), beads (issues of beads, a line each), taskmaster (the tasks.json of Task Master), prd (a prd.json with user stories), modules (a folder of task modules)"#]],
    );
}

#[test]
fn a_circle_of_needs_is_shown_also_through_a_group() {
    let two = r#"{"tasks": [{"id": 1, "title": "a", "dependencies": [2]}, {"id": 2, "title": "b", "dependencies": [1]}]}"#;
    check(
        "t.json",
        two,
        expect![[r#"
        t.json: tasks[0]: the needs go in a circle: master/1 → master/2 → master/1
        hint: take one of these references out of the file; nothing was added"#]],
    );
    let own = r#"{"tasks": [{"id": 1, "title": "a", "dependencies": [1]}]}"#;
    check(
        "t.json",
        own,
        expect![[r#"
        t.json: tasks[0]: the needs go in a circle: master/1 → master/1
        hint: take one of these references out of the file; nothing was added"#]],
    );
    let group = r#"{"tasks": [{"id": 1, "title": "a", "dependencies": [2], "subtasks": [{"id": 1, "title": "part"}]},
        {"id": 2, "title": "b", "dependencies": ["1.1"]}]}"#;
    check(
        "t.json",
        group,
        expect![[r#"
        t.json: tasks[0].subtasks[0]: the needs go in a circle: master/1.1 → master/2 → master/1.1
        hint: take one of these references out of the file; nothing was added"#]],
    );
    let nested =
        "{\"id\":\"a\",\"title\":\"a\",\"parent\":\"b\"}\n{\"id\":\"b\",\"title\":\"b\",\"parent\":\"a\"}\n";
    check(
        "i.jsonl",
        nested,
        expect![[r#"
        i.jsonl:1: the parts go in a circle: a → b → a
        hint: take one of these references out of the file; nothing was added"#]],
    );
}

#[test]
fn a_part_that_needs_its_whole_and_a_whole_that_needs_its_part_do_not_lock_each_other() {
    let tasks = r#"{"tasks": [{"id": 1, "title": "a", "dependencies": ["1.1"], "subtasks": [
        {"id": 1, "title": "part"}, {"id": 3, "title": "other", "dependencies": ["1"]}]}]}"#;
    // `1` beside a subtask 1 is that subtask.
    check(
        "t.json",
        tasks,
        expect![[r#"
            taskmaster
            1 a draft
                <- import:taskmaster:master/1
            2 part in #1
                > ## What it is a part of
                > 
                > a
                <- import:taskmaster:master/1.1
            3 other needs #2 in #1
                > ## What it is a part of
                > 
                > a
                <- import:taskmaster:master/1.3
            left out: need of a whole on its part (1)"#]],
    );
    let whole = "{\"id\":\"a\",\"title\":\"a\"}\n{\"id\":\"b\",\"title\":\"b\",\"parent\":\"a\",\"dependencies\":[{\"depends_on_id\":\"a\",\"type\":\"blocks\"}]}\n";
    check(
        "i.jsonl",
        whole,
        expect![[r#"
            beads
            1 a draft
                <- import:beads:a
            2 b in #1
                > ## What it is a part of
                > 
                > a
                <- import:beads:b
            left out: need of a part on its whole (1)"#]],
    );
}

const STORIES: &str = r#"{"project": "App", "branchName": "ralph/priority", "description": "Priorities for tasks",
  "userStories": [
    {"id": "US-002", "title": "Show it", "description": "As a user…", "acceptanceCriteria": ["a badge", " "], "priority": 2, "passes": false, "notes": ""},
    {"id": "US-001", "title": "Store it", "description": "As a developer…", "acceptanceCriteria": ["a column"], "priority": 1, "passes": false, "notes": "see docs"},
    {"id": "US-000", "title": "Begin", "passes": true},
    {"id": "US-003", "title": "Filter", "acceptanceCriteria": "- one\n- two", "priority": 3, "passes": false, "validationScenario": {"type": "api"}}
  ]}"#;

#[test]
fn user_stories_are_done_one_after_the_other() {
    check(
        "prd.json",
        STORIES,
        expect![[r#"
            prd
            1 Store it | a column
                > As a developer…
                > 
                > ## Notes
                > 
                > see docs
                > 
                > This is a part of: Priorities for tasks
                <- import:prd:ralph/priority/US-001
            2 Show it needs #1 | a badge
                > As a user…
                > 
                > This is a part of: Priorities for tasks
                <- import:prd:ralph/priority/US-002
            3 Filter needs #2 | one | two
                > This is a part of: Priorities for tasks
                <- import:prd:ralph/priority/US-003
            left out: story that passes (1)
            left out: field `validationScenario` (1)"#]],
    );
}

#[test]
fn user_stories_with_dependencies_of_their_own_keep_those() {
    check(
        "prd.json",
        r#"{"userStories": [{"id": 1, "title": "a"}, {"id": 2, "title": "b", "dependsOn": [1], "priority": "high", "status": "todo"},
            {"id": 3, "description": "c does it", "category": "functional", "dependsOn": []}]}"#,
        expect![[r#"
            prd
            1 a
                <- import:prd:1
            2 b p2 needs #1
                <- import:prd:2
            3 c does it [functional]
                > c does it
                <- import:prd:3"#]],
    );
    check(
        "prd.json",
        r#"[{"category": "ui", "description": "New chat", "steps": ["open", "click"], "passes": false}]"#,
        expect![[r#"
            prd
            1 New chat [ui] | open | click
                > New chat
                <- import:prd:1"#]],
    );
    check(
        "prd.json",
        r#"{"userStories": [{"id": 1, "title": "a", "passes": "no"}]}"#,
        expect!["prd.json: userStories[0].passes: this is text, not true or false"],
    );
    check("prd.json", r#"{"userStories": []}"#, expect!["prd"]);
}

#[test]
fn what_was_imported_before_is_not_added_again_but_can_be_referred_to() {
    let known = BTreeMap::from([
        ("import:beads:bd-1".to_owned(), WireTaskId(7)),
        ("import:beads:bd-3".to_owned(), WireTaskId(8)),
        ("import:prd:bd-4".to_owned(), WireTaskId(9)),
    ]);
    expect![[r#"
        beads
        1 Print trees p9 needs T8
            <- import:beads:bd-4
        2 Some day [bug] p5 draft
            <- import:beads:bd-5
        there: T7 The parser
        there: T8 Trees
        left out: closed issue (1)
        left out: field `assignee` (1)
        left out: link of type `related` (1)
        left out: link of type `discovered-from` (1)
        left out: issue that is no work (1)
        left out: line of type `memory` (1)
        left out: need that is done already (1)"#]]
    .assert_eq(&shown("issues.jsonl", BEADS, &known));
    let file = TaskFileSource { name: "issues.jsonl", text: BEADS };
    let list = read(&file, Format::Beads, None).expect("good");
    let again = resolve_import(list, &known, true).expect("good");
    assert_eq!((again.tasks.len(), again.there.len()), (4, 0));
}

#[test]
fn an_item_keeps_its_name_when_the_list_around_it_changes() {
    let sources = |text: &str| {
        let list = read(&TaskFileSource { name: "x/TODO.md", text }, Format::Markdown, None).expect("good");
        resolve_import(list, &BTreeMap::new(), false)
            .expect("good")
            .tasks
            .into_iter()
            .map(|it| it.source)
            .collect::<Vec<_>>()
    };
    let before = sources("## Soon\n- [ ] one\n- [ ] two\n- [ ] two\n");
    let after = sources("words\n\n## Soon\n\n- [x] zero\n- [ ] two\n  more\n- [ ] one\n- [ ] two\n");
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(before.clone()), sorted(after));
    assert_eq!(before.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    let shouted = sources("## Soon\n- [ ] c++\n- [ ] c--\n");
    assert_ne!(shouted[0], shouted[1], "letters alone do not tell them apart");
    let long = format!("- [ ] {}\n", "word ".repeat(500));
    assert!(sources(&long)[0].len() < 400);
}

#[test]
fn the_answer_survives_the_wire() {
    let list = read(&TaskFileSource { name: "prd.json", text: STORIES }, Format::Prd, None).expect("good");
    let settled = resolve_import(list, &BTreeMap::new(), false).expect("good");
    let imported = Imported {
        format: Format::Prd,
        dry_run: true,
        tasks: settled.tasks,
        added: Vec::new(),
        there: settled.there,
        left_out: settled.left_out,
    };
    let text = serde_json::to_string(&imported).expect("JSON");
    assert_eq!(serde_json::from_str::<Imported>(&text).expect("the same"), imported);
}
