//! What is written is read back, and what cannot be understood is named with its place.

use expect_test::{Expect, expect};
use landfall_api::taskfile::{self, TaskFileSource};
use landfall_api::{NewTask, Size, TaskRef, WireTaskId};

fn read(text: &str) -> Result<Vec<NewTask>, taskfile::TaskFileError> {
    taskfile::read(&[TaskFileSource { name: "a.md", text }])
}

fn refuses(text: &str, expected: Expect) {
    let error = read(text).expect_err("refused");
    let hint = error.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    expected.assert_eq(&format!("{error}{hint}"));
}

#[test]
fn a_file_in_toml_and_the_same_in_yaml_are_the_same_task() {
    let toml = "+++\ntitle = \"Fix the parser\"\nsize = \"M\"\ntags = [\"quick-win\", \"next\"]\npriority = 2\n\
                needs = [\"T1\", \"T2\"]\ntouches = [\"src/parse.rs\", \"docs/\"]\ncriteria = [\"it parses, always\", \"tests pass\"]\nflow = \"loop\"\ndraft = true\n+++\n\nBody.\n\n---\n\nMore.\n";
    let yaml = "---\ntitle: Fix the parser # really\nsize: m\ntags: [quick-win, 'next']\npriority: 2\n\
                needs: T1, t2\ntouches: src/parse.rs, docs/\ncriteria:\n  - \"it parses, always\"\n  - tests pass\nflow: loop\ndraft: true\n---\nBody.\n\n---\n\nMore.\n";
    let task = NewTask {
        title: "Fix the parser".to_owned(),
        body: "Body.\n\n---\n\nMore.".to_owned(),
        criteria: vec!["it parses, always".to_owned(), "tests pass".to_owned()],
        size: Some(Size::M),
        tags: vec!["quick-win".to_owned(), "next".to_owned()],
        priority: Some(2),
        needs: vec![TaskRef::Task(WireTaskId(1)), TaskRef::Task(WireTaskId(2))],
        touches: vec!["src/parse.rs".to_owned(), "docs/".to_owned()],
        parent: None,
        flow: Some("loop".to_owned()),
        agent: None,
        draft: true,
        source: "file:a.md".to_owned(),
    };
    assert_eq!(read(toml), Ok(vec![task.clone()]));
    assert_eq!(read(yaml), Ok(vec![task]));
}

#[test]
fn a_file_without_front_matter_has_its_title_in_the_heading() {
    let tasks = read("\n# A title\n\nIts body.\n").expect("read");
    assert_eq!((tasks[0].title.as_str(), tasks[0].body.as_str()), ("A title", "Its body."));
}

#[test]
fn several_tasks_in_a_file_need_each_other_by_name() {
    let text = "+++\nid = \"ground\"\ntitle = \"one\"\n+++\n```\n+++\nnot front matter\n```\n+++\ntitle = \"two\"\nneeds = [\"ground\", \"T9\", \"#1\"]\nparent = \"ground\"\n+++\n";
    let tasks = read(text).expect("read");
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].body, "```\n+++\nnot front matter\n```");
    assert_eq!(tasks[1].needs, [TaskRef::Batch(1), TaskRef::Task(WireTaskId(9)), TaskRef::Batch(1)]);
    assert_eq!(tasks[1].parent, Some(TaskRef::Batch(1)));

    let yaml = "---\ntitle: one\n---\nbody\n---\ntitle: two\n---\n";
    let titles: Vec<String> = read(yaml).expect("read").into_iter().map(|task| task.title).collect();
    assert_eq!(titles, ["one", "two"]);
}

#[test]
fn files_of_an_export_find_each_other_under_their_old_ids() {
    let first =
        taskfile::write(Some(WireTaskId(41)), &NewTask { title: "one".to_owned(), ..NewTask::default() });
    let needs = vec![TaskRef::Task(WireTaskId(41)), TaskRef::Task(WireTaskId(3))];
    let second = taskfile::write(
        Some(WireTaskId(42)),
        &NewTask { title: "two".to_owned(), needs, ..NewTask::default() },
    );
    let sources =
        [TaskFileSource { name: "T42.md", text: &second }, TaskFileSource { name: "T41.md", text: &first }];
    let tasks = taskfile::read(&sources).expect("read");
    assert_eq!(tasks[0].needs, [TaskRef::Batch(2), TaskRef::Task(WireTaskId(3))]);
}

#[test]
fn any_title_and_body_come_back_as_they_were() {
    let titles =
        ["$(id)", "--help", "../../x", "\"quoted\" \\ 'both'", "# heading", "+++", "😀\u{202e}", "a\tb"];
    let bodies = [
        "",
        "plain",
        "+++",
        "a\n+++\nb",
        "---\ntitle: not another task\n---",
        "\n\nspace around\n\n",
        "```\nunclosed",
        "trailing  ",
        "crlf\r\nhere",
        "'''\n\"\"\"\n\\",
        "\u{1b}[31m",
    ];
    for title in titles {
        for body in bodies {
            let task = NewTask {
                title: title.to_owned(),
                body: body.to_owned(),
                criteria: vec![title.to_owned(), body.to_owned()],
                touches: vec![body.to_owned(), "src/**/*.rs".to_owned()],
                source: "file:a.md".to_owned(),
                ..NewTask::default()
            };
            let text = taskfile::write(None, &task);
            assert_eq!(read(&text), Ok(vec![task]), "{text}");
        }
    }
}

#[test]
fn what_cannot_be_understood_is_named_with_its_place() {
    refuses("  \n", expect!["a.md:1: the file is empty"]);
    refuses(
        "just text",
        expect![[
            r#"a.md:1: the task has no title (write `title = "…"` into the front matter, or begin with `# Title`)"#
        ]],
    );
    refuses(
        "+++\ntitle = \"x\"\n",
        expect!["a.md:1: the front matter is not closed (close it with the same line that opened it)"],
    );
    refuses(
        "+++\ntitle = \"x\"\npiority = 3\n+++\n",
        expect!["a.md:3: unknown key `piority` (did you mean `priority`?)"],
    );
    refuses(
        "+++\ntitle = \"x\"\nassignee = \"me\"\n+++\n",
        expect![
            "a.md:3: unknown key `assignee` (known: id, title, body, criteria, size, tags, priority, needs, touches, parent, flow, agent, draft)"
        ],
    );
    refuses(
        "+++\ntitle = \"x\"\nsize = \"huge\"\n+++\n",
        expect!["a.md:3: size: `huge` is not a size; known: XS, S, M, L, XL"],
    );
    refuses(
        "+++\ntitle = \"x\"\npriority = 10\n+++\n",
        expect!["a.md:3: priority is 10, not a number from 0 (most urgent) to 9"],
    );
    refuses(
        "+++\ntitle = \"x\"\nneeds = [\"soon\"]\n+++\n",
        expect!["a.md:1: needs: `soon` is not a task id such as T7, or #2 for the second task of this batch"],
    );
    refuses("+++\ntitle = \"x\nsize = 1\n+++\n", expect!["a.md:2: invalid basic string, expected `\"`"]);
    refuses(
        "---\ntitle: x\nmeta:\n  deep: 1\n---\n",
        expect![
            "a.md:4: keys inside keys are not understood (for more than `key: value` and lists, write TOML between `+++` lines)"
        ],
    );
    refuses(
        "---\ntitle: x\nbody: |\n  text\n---\n",
        expect![
            "a.md:3: `body`: text over several lines is not understood here (for more than `key: value` and lists, write TOML between `+++` lines)"
        ],
    );
    refuses(
        "+++\nid = \"a\"\ntitle = \"x\"\n+++\n+++\nid = \"a\"\ntitle = \"y\"\n+++\n",
        expect!["a.md:5: two tasks have the id `a`"],
    );
}

#[test]
fn a_file_name_is_plain_whatever_the_title() {
    let name = |title: &str| taskfile::file_name(WireTaskId(7), title);
    assert_eq!(name("Fix the parser"), "T7-fix-the-parser.md");
    assert_eq!(name("../../x"), "T7-x.md");
    assert_eq!(name("😀😀"), "T7.md");
    assert_eq!(name(&"long ".repeat(100)), "T7-long-long-long-long-long-long-long-lo.md");
}
