//! What newcomers stumble over when they use issues from the command line, each from outside on the tracker of files.

use std::time::Duration;

use landfall_testkit::{CommandOutput, ScratchProject};
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::hold_file::HoldFile;

const LIMIT: Duration = Duration::from_secs(60);

/// A step in which the agent writes a file.
fn writes(step: &str, path: &str, text: &str) -> String {
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\n[[step.{step}.write]]\npath = {path:?}\ntext = {text:?}\n"
    )
}

/// Makes an issue whose text is a script.
fn issue(scratch: &ScratchProject, title: &str, criteria: &str, script: &str, more: &[&str]) {
    let body = format!("{criteria}\n```landfall-script\n{script}```\n");
    scratch.landfall(&[&["issue", "new", title, "--body", &body], more].concat()).ok();
}

fn small(scratch: &ScratchProject, title: &str, file: &str, more: &[&str]) {
    let more = [&["--size", "XS", "--label", "triaged"], more].concat();
    issue(scratch, title, "", &writes("code", file, "x\n"), &more);
}

fn auto(scratch: &ScratchProject, args: &[&str]) -> CommandOutput {
    scratch.landfall(&[&["auto"], args].concat())
}

fn shown(scratch: &ScratchProject, number: u64) -> Value {
    scratch.landfall(&["--json", "issue", "show", &number.to_string()]).json()
}

fn has_label(scratch: &ScratchProject, number: u64, label: &str) -> bool {
    shown(scratch, number)["issue"]["labels"].as_array().is_some_and(|all| all.contains(&json!(label)))
}

#[test]
fn a_task_is_found_by_the_number_of_its_issue_and_a_bare_number_says_what_it_means() {
    let scratch = ScratchProject::new(LANDFALL);
    for number in 1..=2 {
        small(&scratch, &format!("Issue {number}"), &format!("{number}.txt"), &[]);
    }
    scratch.task("By hand", "signal = \"complete\"\n", &[]);
    auto(&scratch, &["2"]).ok();
    for name in ["#2", "issue:2", "issue:#2"] {
        let why = scratch.landfall(&["why", name]);
        assert!(why.out.starts_with("T2 "), "{name}: {} {}", why.out, why.err);
    }
    assert_eq!(scratch.landfall(&["--json", "show", "#2"]).json()["id"], "T2");
    let both = scratch.landfall(&["why", "2"]);
    assert!(both.out.starts_with("T2 ") && both.err.is_empty(), "both are one: {}", both.err);
    // T1 is the one by hand; issue 1 is followed by T3.
    auto(&scratch, &["1"]).ok();
    let bare = scratch.landfall(&["why", "1"]);
    assert!(bare.out.starts_with("T1 "), "{}", bare.out);
    assert!(bare.err.contains("issue #1 is followed by T3: write '#1' for it"), "{}", bare.err);
    assert!(scratch.landfall(&["why", "T1"]).err.is_empty(), "a task by its own name is no question");
    assert!(scratch.landfall(&["why", "#1"]).out.starts_with("T3 "));
    small(&scratch, "Issue 3", "3.txt", &[]);
    let none = scratch.landfall(&["why", "#3"]);
    assert_eq!(none.code, Some(5), "{}", none.err);
    for words in ["no task follows issue #3", "`landfall auto 3` starts one"] {
        assert!(none.err.contains(words), "{words}: {}", none.err);
    }
    let nothing = scratch.landfall(&["why", "#9"]);
    assert_eq!(nothing.code, Some(5), "{}", nothing.err);
    assert!(nothing.err.contains("landfall issue list --all"), "{}", nothing.err);
    assert!(!nothing.err.contains("landfall auto"), "nobody can begin it: {}", nothing.err);
    let report = scratch.landfall(&["report", "#1"]).ok();
    assert_eq!(report, scratch.landfall(&["report", "T3"]).ok(), "a report goes by the same names");
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a folder");
    let mut from = scratch.command(&["-C", scratch.project().to_str().expect("text"), "why", "#1"]);
    let said = from.current_dir(&elsewhere).output().expect("it runs");
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("T3 "), "{said:?}");
}

#[test]
fn an_issue_that_waits_for_a_person_is_looked_at_again_by_the_same_task() {
    let scratch = ScratchProject::new(LANDFALL);
    let criteria = "- [ ] <!-- verify: file_exists \"one.txt\" --> it is there\n- [ ] people like it\n";
    let more = ["--size", "XS", "--label", "triaged"];
    issue(&scratch, "One", criteria, &writes("code", "one.txt", "x\n"), &more);
    let first = auto(&scratch, &["1"]).ok();
    assert!(first.starts_with("auto #1 partial success"), "{first}");
    let why = scratch.landfall(&["why", "#1"]).ok();
    for words in
        ["but issue #1 was left open for this: people like it (SKIPPED)", "`landfall issue tick 1 BOX`"]
    {
        assert!(why.contains(words), "{words} in {why}");
    }
    let landed = scratch.git(&["rev-parse", "main"]);
    let comments = || shown(&scratch, 1)["comments"].as_array().map_or(0, Vec::len);
    let told = comments();
    for _ in 0..2 {
        let again = auto(&scratch, &["1"]);
        assert!(
            again.err.contains("#1 has landed; T1 looks at what is left of its acceptance"),
            "{}",
            again.err
        );
        assert!(again.out.contains("pending: people like it (SKIPPED)"), "{}", again.out);
    }
    let list = scratch.landfall(&["--json", "list"]).json();
    assert_eq!(list["tasks"].as_array().map(Vec::len), Some(1), "no other task is made: {list}");
    assert_eq!(
        (scratch.git(&["rev-parse", "main"]), comments()),
        (landed.clone(), told),
        "and nothing is done twice"
    );
    scratch.landfall(&["issue", "tick", "1", "people like"]).ok();
    let done = auto(&scratch, &["1"]).ok();
    assert!(done.starts_with("auto #1 complete"), "{done}");
    assert_eq!(shown(&scratch, 1)["issue"]["state"], "done");
    assert!(has_label(&scratch, 1, "phase/done"));
    assert_eq!(scratch.git(&["rev-parse", "main"]), landed);
    assert_eq!(scratch.status("T1"), "done");
    // Opened again, it is worked on again, by another.
    scratch.landfall(&["issue", "reopen", "1"]).ok();
    let anew = auto(&scratch, &["1", "--dry-run"]).ok();
    assert!(anew.contains("is open again, and gets another task"), "{anew}");
}

#[test]
fn one_issue_that_cannot_be_read_hides_no_other() {
    let scratch = ScratchProject::new(LANDFALL);
    for title in ["One", "Two", "Three"] {
        scratch.landfall(&["issue", "new", title]).ok();
    }
    let file = scratch.state().join("issues/2.md");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, text.replace("title = \"Two\"", "title = Two")).expect("written");
    let list = scratch.landfall(&["issue", "list"]);
    assert_eq!(list.code, Some(10), "{}", list.err);
    assert!(list.out.contains("One") && list.out.contains("Three"), "the others are shown: {}", list.out);
    assert!(list.err.contains("issues/2.md: line 3: "), "{}", list.err);
    let json = scratch.landfall(&["--json", "issue", "list"]);
    let listed: Value = serde_json::from_str(&json.out).expect("an answer");
    assert_eq!(listed["issues"].as_array().map(Vec::len), Some(2));
    assert!(listed["unreadable"][0]["what"].as_str().is_some_and(|it| it.ends_with("2.md")), "{listed}");
    assert_eq!(scratch.landfall(&["issue", "show", "2"]).code, Some(10));
    scratch.landfall(&["issue", "show", "3"]).ok();
    assert_eq!(scratch.landfall(&["issue", "new", "Four"]).ok(), "#4 Four\n");
    let unknown = scratch.landfall(&["issue", "show", "99"]);
    assert!(
        unknown.err.contains("landfall issue list --all") && !unknown.err.contains("token"),
        "{}",
        unknown.err
    );
}

#[test]
fn an_issue_that_cannot_be_read_is_named_wherever_it_is_left_out() {
    let scratch = ScratchProject::new(LANDFALL);
    for number in 1..=3 {
        small(&scratch, &format!("Issue {number}"), &format!("{number}.txt"), &[]);
    }
    auto(&scratch, &["--batch", "1", "2"]).ok();
    assert!(scratch.landfall(&["doctor"]).out.contains("ok"), "all is well");
    let file = scratch.state().join("issues/2.md");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, text.replace("title = \"Issue 2\"", "title = Two")).expect("written");
    let doctor = scratch.landfall(&["doctor"]);
    assert!(doctor.out.contains("issues/2.md"), "{}", doctor.out);
    let list = auto(&scratch, &["--list"]);
    assert_eq!(list.code, Some(0), "{}", list.err);
    assert!(list.out.contains("H1"), "what is left of it is shown: {}", list.out);
    let dry = auto(&scratch, &["--batch", "1", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    assert!((dry.out + &dry.err).contains("1 file cannot be read"), "it is told");
    let huge = scratch.landfall(&["issue", "label", "3", "--add", "size/HUGE"]);
    assert_eq!(huge.code, Some(2), "{}", huge.err);
    assert!(huge.err.contains("`size/HUGE` is no size") && huge.err.contains("size/XL"), "{}", huge.err);
    scratch.landfall(&["issue", "label", "3", "--remove", "size/HUGE"]).ok();
}

#[test]
fn issues_that_are_asked_for_during_a_run_are_watched_there() {
    let scratch = ScratchProject::new(LANDFALL);
    let (long, short) = (HoldFile::new(&scratch, "long"), HoldFile::new(&scratch, "short"));
    let more = ["--size", "XS", "--label", "triaged"];
    issue(&scratch, "Long", "", &long.in_step("code", &writes("code", "one.txt", "x\n")), &more);
    issue(&scratch, "Short", "", &short.in_step("code", &writes("code", "two.txt", "x\n")), &more);
    issue(&scratch, "Hopeless", "", "signal = \"blocked:no idea\"\n", &more);
    let mut started = scratch.start(&["auto", "1"]);
    scratch.eventually("the first run is under way", || has_label(&scratch, 1, "phase/code"));
    short.release();
    let second = auto(&scratch, &["2"]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(second.err.contains("a run is under way already"), "{}", second.err);
    assert!(second.err.contains("#2 [1/2] code → done"), "the same lines: {}", second.err);
    assert!(second.out.starts_with("auto #2 complete\n"), "the same banner: {}", second.out);
    // The engine of the first command publishes after the landing; the second command does not wait for that.
    scratch.eventually("the work is published", || {
        scratch.git(&["ls-tree", "--name-only", "main"]).contains("two.txt")
    });
    let third = auto(&scratch, &["3"]);
    assert_eq!(third.code, Some(8), "{} {}", third.out, third.err);
    assert!(third.out.contains("auto #3 stopped at code"), "{}", third.out);
    long.release();
    assert!(matches!(started.wait(LIMIT), Some(0 | 8)), "whoever drove ends as before");
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "x");
}

#[test]
fn a_dry_run_says_that_triage_comes_first_and_what_a_large_issue_is_made_of() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.landfall(&["issue", "new", "Nobody looked"]).ok();
    let plain = auto(&scratch, &["1", "--dry-run"]).ok();
    assert!(plain.contains("triage first, which finds out its size"), "{plain}");
    assert_eq!(scratch.landfall(&["--json", "auto", "1", "--dry-run"]).json()["issues"][0]["triage"], true);
    small(&scratch, "Whole", "x", &[]);
    scratch.landfall(&["issue", "size", "2", "XL"]).ok();
    for (title, blocker) in [("Base", None), ("Walls", Some("3")), ("Garden", None), ("Roof", Some("4"))] {
        let blocked = blocker.map(|it| vec!["--blocked-by", it]).unwrap_or_default();
        small(&scratch, title, "x", &[&["--parent", "2"][..], &blocked].concat());
    }
    scratch.landfall(&["issue", "close", "5"]).ok();
    let text = auto(&scratch, &["2", "--dry-run"]).ok();
    for words in [
        "XL: sub-issues",
        "#2: 3 parts in 3 levels",
        "1. #3 Base (XS)",
        "2. #4 Walls (XS, after #3)",
        "3. #6 Roof (XS, after #4)",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(!text.contains("Garden"), "what is done is not begun: {text}");
    assert!(!text.contains("triage"), "{text}");
    assert_eq!(scratch.landfall(&["list"]).ok(), "", "whoever only looks adds no task");
}

#[test]
fn what_lands_says_what_kind_of_work_its_issue_is() {
    let scratch = ScratchProject::new(LANDFALL);
    let fine = "[[step.review]]\nsay = ['{\"findings\": []}']\nsignal = \"complete\"\n";
    for (number, (label, size, subject)) in (1..).zip([
        ("type/bug", "XS", "fix: Work 1 (T1)"),
        ("enhancement", "M", "feat: Work 2 (T2)"),
        ("other", "XS", "patch: Work 4 (T3)"),
    ]) {
        let number = if number == 3 { 4 } else { number }; // a pull request has the third
        let script = [
            writes("spec", &format!("docs/spec/issue-{number}-x.md"), "# what\n"),
            writes("code", &format!("{number}.txt"), "x\n"),
            fine.to_owned(),
        ];
        let more = ["--size", size, "--label", "triaged", "--label", label];
        issue(&scratch, &format!("Work {number}"), "", &script.concat(), &more);
        auto(&scratch, &[&number.to_string()]).ok();
        assert_eq!(scratch.git(&["log", "-1", "--format=%s", "main"]), subject);
    }
    let pr = scratch.landfall(&["issue", "pr", "3"]).ok();
    assert!(pr.starts_with("#3 feat: Work 2\nmerged, as "), "{pr}");
    for words in ["→ main, head ", "reviews\n", "no checks of a forge", "For issue #2"] {
        assert!(pr.contains(words), "{words} in {pr}");
    }
    let same = scratch.landfall(&["--json", "issue", "pr", "2"]).json();
    assert_eq!(
        (&same["number"], &same["state"]),
        (&json!(3), &json!("merged")),
        "an issue means its pull request"
    );
    let wrong = scratch.landfall(&["issue", "show", "3"]);
    assert!(wrong.err.contains("#3 is a pull request: `landfall issue pr 3` shows it"), "{}", wrong.err);
    let none = scratch.landfall(&["issue", "pr", "1"]);
    assert_eq!(none.code, Some(5));
    assert!(none.err.contains("issue #1 has no pull request"), "{}", none.err);
}

#[test]
fn readers_who_come_one_after_another_find_a_room_each() {
    let scratch = ScratchProject::new(LANDFALL);
    let script = [
        writes("spec", "docs/spec/issue-1-x.md", "# what\n"),
        writes("code", "one.txt", "x\n"),
        "[[step.review]]\nsay = ['{\"findings\": []}']\nsignal = \"complete\"\n".to_owned(),
    ];
    issue(&scratch, "Large", "", &script.concat(), &["--size", "L", "--label", "triaged"]);
    let said = auto(&scratch, &["1"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.err.matches("its reviewer found nothing to say against it").count(), 4, "{}", said.err);
    for trouble in ["could not be started", "the workspace is gone"] {
        assert!(!said.err.contains(trouble), "{trouble}: {}", said.err);
    }
}

#[test]
fn a_check_that_stays_red_is_named_and_ends_the_task_when_its_agent_changes_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    let check = "test ! -e one.txt || { echo the door is open; exit 3; }";
    scratch.more_settings(&format!("[[verify.command]]\nname = \"door\"\nrun = {check:?}"));
    let idle = "[[step.code]]\nsignal = \"complete\"\ncommit = false\n".repeat(12);
    let script = writes("code", "one.txt", "x\n") + &idle;
    issue(&scratch, "Red", "", &script, &["--size", "XS", "--label", "triaged"]);
    let said = auto(&scratch, &["1"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    let words = "its agent was told 5 times in a row what is red, and changed nothing: `door` fails (exit 3)";
    assert!(said.out.contains(&format!("why: {words}")), "{}\n{}", said.out, said.err);
    assert!(said.out.contains("the door is open"), "what the check wrote: {}", said.out);
    assert!(said.out.contains("6 red verifications"), "{}", said.out);
    assert!(!said.out.contains("landfall why"), "the why stands just above: {}", said.out);
    let why = scratch.landfall(&["why", "#1"]).ok();
    assert!(why.contains(words) && why.contains("door: the door is open"), "{why}");
    assert!(why.contains("iterations without a commit: 5,"), "no bound is named that is none: {why}");
}

#[test]
fn an_agent_that_does_nothing_is_named_before_what_was_tried_about_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let criteria = "- [ ] <!-- verify: file_exists \"two.txt\" --> the second is there\n";
    let idle = "[[step.code]]\nsignal = \"complete\"\ncommit = false\n".repeat(6);
    let script = writes("code", "one.txt", "x\n") + &idle;
    issue(&scratch, "Half", criteria, &script, &["--size", "XS", "--label", "triaged"]);
    let said = auto(&scratch, &["1"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    let why = scratch.landfall(&["why", "#1"]).ok();
    for text in [&said.out, &why] {
        for words in
            ["its agent committed nothing, ", "it had landed as ", "`the second is there` did not hold"]
        {
            assert!(text.contains(words), "{words} in {text}\n{}", said.err);
        }
    }
    assert!(!said.out.contains("under way"), "nothing goes on: {}", said.out);
}

#[test]
fn what_comes_next_is_said_about_what_is_in_the_way() {
    let scratch = ScratchProject::new(LANDFALL);
    small(&scratch, "First", "one.txt", &[]);
    small(&scratch, "Second", "two.txt", &["--blocked-by", "1"]);
    let alone = auto(&scratch, &["2"]);
    assert!(
        alone.out.contains("next: `landfall auto --batch 1 2` does what it waits for first"),
        "{}",
        alone.out
    );
    let hopeless = "[[step.code]]\nsignal = \"blocked:no idea\"\n".repeat(8);
    issue(&scratch, "Hopeless", "", &hopeless, &["--size", "XS", "--label", "triaged"]);
    small(&scratch, "After", "four.txt", &["--blocked-by", "3"]);
    for args in [&["--batch", "3", "4"][..], &["--batch", "--resume", "H1"]] {
        let both = auto(&scratch, args);
        let next = "next: `landfall auto --batch 3 4` does what is in the way first; ";
        assert!(both.out.contains(next), "{args:?}: {}\n{}", both.out, both.err);
        assert!(
            !both.out.contains("next: `landfall auto --batch --resume"),
            "it would wait again: {}",
            both.out
        );
    }
}
