//! `landfall auto`: issues from the tracker onto the base, alone and as batches, by the scripted agent.

use std::time::Duration;

use landfall_testkit::{CommandOutput, ScratchProject};
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::both::{World, on_both};
use crate::hold_file::HoldFile;
use crate::serve::Served;

const LIMIT: Duration = Duration::from_secs(180); // GitHub lets a client change one thing a second

/// A step in which the agent writes a file.
fn writes(step: &str, path: &str, text: &str) -> String {
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\n[[step.{step}.write]]\npath = {path:?}\ntext = {text:?}\n"
    )
}

/// What a reader says who finds nothing.
const CONTENT: &str = "[[step.review]]\nsay = ['{\"findings\": []}']\nsignal = \"complete\"\n";

/// A script that gets an issue from nothing to something that passes: it writes `file`.
fn good(number: u64, file: &str) -> String {
    let spec = format!("docs/spec/issue-{number}-x.md");
    [writes("spec", &spec, "# what\n"), writes("code", file, "x\n"), CONTENT.to_owned()].concat()
}

/// Makes an issue whose text is a script.
fn issue(scratch: &ScratchProject, title: &str, criteria: &str, script: &str, more: &[&str]) {
    let body = format!("{criteria}\n```landfall-script\n{script}```\n");
    scratch.landfall(&[&["issue", "new", title, "--body", &body, "--label", "triaged"], more].concat()).ok();
}

fn auto(scratch: &ScratchProject, args: &[&str]) -> CommandOutput {
    scratch.landfall(&[&["auto"], args].concat())
}

fn report(scratch: &ScratchProject, args: &[&str]) -> Value {
    scratch.landfall(&[&["--json", "auto"], args].concat()).json()
}

fn phases(issue: &Value) -> Vec<String> {
    let all = issue["phases"].as_array().expect("phases").iter();
    all.map(|it| format!("{} {}", it["phase"].as_str().unwrap_or(""), it["result"].as_str().unwrap_or("")))
        .collect()
}

on_both!(
    behaviour_28_the_size_says_the_way_and_flags_win,
    behaviour_28_an_issue_that_turns_out_smaller_while_its_spec_is_written_takes_another_way,
    behaviour_30_c31_a_blocked_issue_stays_in_its_batch_until_it_is_free,
);

fn behaviour_28_the_size_says_the_way_and_flags_win(world: &World) {
    let sizes = [Some("XS"), Some("S"), Some("M"), Some("L"), None, Some("XL")];
    for (number, size) in (1..).zip(sizes) {
        let more = size.map(|size| vec!["--size", size]).unwrap_or_default();
        issue(world, &format!("Issue {number}"), "", &good(number, &format!("{number}.txt")), &more);
    }
    let ways: Vec<Value> = (1..=6)
        .map(|number| report(world, &[&number.to_string(), "--dry-run"])["issues"][0]["way"].clone())
        .collect();
    assert_eq!(
        ways,
        [
            "XS: patch",
            "S: patch, spec first",
            "M: pull request, light review, spec first",
            "L: pull request, full review, spec first",
            "no size: pull request, light review, spec first",
            "XL: sub-issues"
        ]
    );
    let forced = |args: &[&str]| report(world, &[args, &["--dry-run"]].concat())["issues"][0]["way"].clone();
    assert_eq!(forced(&["4", "--patch"]), "L: patch, spec first");
    assert_eq!(forced(&["1", "--pr"]), "XS: pull request, light review");
    assert_eq!(forced(&["1", "--review=full"]), "XS: pull request, full review");
    assert_eq!(world.landfall(&["list"]).ok(), "", "whoever only looks adds no task");

    for (number, expect) in [
        (1, vec!["code done", "verify done"]),
        (2, vec!["spec done", "code done", "verify done"]),
        (3, vec!["spec done", "code done", "review done", "merge done", "verify done"]),
        (5, vec!["spec done", "code done", "review done", "merge done", "verify done"]),
    ] {
        let done = report(world, &[&number.to_string()]);
        let issue = &done["issues"][0];
        assert_eq!(
            (phases(issue), &issue["stand"]),
            (expect.iter().map(|it| (*it).to_owned()).collect(), &json!("complete")),
            "{done}"
        );
        assert_eq!(world.landed(&format!("{number}.txt")), "x");
        assert_eq!(issue["pr"].is_u64(), number > 2, "{done}");
    }
    let patched = auto(world, &["4", "--patch"]);
    assert!(patched.out.starts_with("auto #4 complete\nL: patch, spec first\n"), "{}", patched.out);
    assert!(
        patched.err.contains("#4 [1/3] spec") && patched.err.contains("#4 [2/3] code → done"),
        "{}",
        patched.err
    );
    let again = auto(world, &["4"]);
    assert!(again.err.contains("#4 is done already (T5)"), "{}", again.err);
    assert!(again.ok().starts_with("auto #4 complete\n"), "nothing is run for it");
}

fn behaviour_28_an_issue_that_turns_out_smaller_while_its_spec_is_written_takes_another_way(world: &World) {
    let hold = HoldFile::new(world, "spec");
    issue(world, "Big", "", &hold.in_step("spec", &good(1, "one.txt")), &["--size", "L"]);
    let mut started = world.start(&["auto", "1"]);
    world.eventually("its spec is begun", || {
        world.landfall(&["issue", "show", "1"]).ok().contains("phase/spec")
    });
    world.landfall(&["issue", "size", "1", "S"]).ok();
    hold.release();
    assert_eq!(started.wait(LIMIT), Some(0));
    let said = std::fs::read_to_string(world.root().join("started.log")).expect("what it said");
    assert!(said.contains("#1 its way changes: L → S: patch, spec first"), "{said}");
    assert!(said.contains("auto #1 complete\nS: patch, spec first\n"), "{said}");
    assert!(said.contains("spec    done    L → S: patch, spec first\n"), "it stands in the table: {said}");
    assert!(!said.contains("PR #"), "no pull request is made for it: {said}");
    assert_eq!(world.landed("one.txt"), "x");
}

fn behaviour_30_c31_a_blocked_issue_stays_in_its_batch_until_it_is_free(world: &World) {
    issue(world, "Elsewhere", "", "", &["--size", "XS"]);
    issue(world, "Second", "", &good(2, "two.txt"), &["--size", "XS"]);
    issue(world, "Third", "", &good(3, "three.txt"), &["--size", "XS", "--blocked-by", "1"]);
    let said = auto(world, &["--batch", "3", "2"]);
    assert!(
        said.err.contains("H1: 2 issues") && said.err.contains("#3 is followed by T1; it waits for #1"),
        "{}",
        said.err
    );
    assert!(said.out.contains("auto #3 waits for #1"), "{}", said.out);
    assert!(
        said.out.contains("H1: 1 complete, 1 left of 2 issues") && said.out.contains("--batch --resume H1"),
        "{}",
        said.out
    );
    assert_eq!(world.landed("two.txt"), "x");
    let list = world.landfall(&["--json", "auto", "--list"]).json();
    assert_eq!(
        (&list["batches"][0]["remaining"], &list["batches"][0]["completed"], &list["batches"][0]["id"]),
        (&json!([3]), &json!([2]), &json!("H1"))
    );
    assert!(auto(world, &["--list"]).ok().contains("H1"));

    world.landfall(&["issue", "close", "1"]).ok();
    let said = auto(world, &["--batch", "--resume"]);
    assert!(said.err.contains("H1: 1 of 2 left"), "{}", said.err);
    assert!(said.out.contains("H1: 1 complete of 1 issue"), "{}", said.out);
    assert_eq!(world.landed("three.txt"), "x");
    assert_eq!(auto(world, &["--list"]).ok(), "", "nothing is left of it");
    let over = auto(world, &["--batch", "--resume"]);
    assert_eq!(over.code, Some(6), "{}", over.err);
}

#[test]
fn a_batch_begins_with_what_others_wait_for_and_leaves_out_who_waits_for_a_failure() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "Last", "", &good(1, "one.txt"), &["--size", "XS"]);
    issue(&scratch, "First", "", &good(2, "two.txt"), &["--size", "XS"]);
    issue(&scratch, "Fails", "", "signal = \"blocked:no idea\"\n", &["--size", "XS"]);
    issue(&scratch, "Waits", "", &good(4, "four.txt"), &["--size", "XS", "--blocked-by", "3"]);
    let said = auto(&scratch, &["--batch", "4", "3", "1"]);
    assert!(said.err.contains("those that others wait for first"), "{}", said.err);
    assert_eq!(said.code, Some(8), "{} {}", said.out, said.err);
    assert!(
        said.out.contains("auto #3 stopped at code") && said.out.contains("why: no idea"),
        "{}",
        said.out
    );
    assert!(said.out.contains("auto #4 waits for #3"), "{}", said.out);
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "x");
    assert!(!scratch.git(&["ls-tree", "--name-only", "main"]).contains("four.txt"));
}

#[test]
fn c32_a_batch_with_one_number_takes_so_many_of_the_newest_small_ones() {
    let scratch = ScratchProject::new(LANDFALL);
    for (number, size) in (1..).zip(["XS", "S", "M", "XS", "XL"]) {
        issue(
            &scratch,
            &format!("Issue {number}"),
            "",
            &good(number, &format!("{number}.txt")),
            &["--size", size],
        );
    }
    scratch.landfall(&["issue", "new", "Nobody looked at it"]).ok();
    let said = report(&scratch, &["--batch", "2", "--dry-run"]);
    let numbers: Vec<&Value> =
        said["issues"].as_array().expect("issues").iter().map(|it| &it["number"]).collect();
    assert_eq!(
        (numbers, &said["text"]),
        (
            vec![&json!(4), &json!(2)],
            &json!("the 2 newest open issues that are triaged and of size XS, S or none")
        )
    );
    let said = auto(&scratch, &["--batch", "5"]);
    assert!(
        said.err.contains(
            "H1: the 3 open issues that are triaged and of size XS, S or none there are (5 were asked for)"
        ),
        "{}",
        said.err
    );
    assert!(said.ok().contains("H1: 3 complete of 3 issues"));
    assert!(!scratch.landfall(&["list"]).ok().contains("Issue 5"), "`--batch 5` is not issue 5");
    let none = auto(&scratch, &["--batch", "5"]);
    assert!(none.code == Some(6) && none.err.contains("there are no open issues"), "{}", none.err);
    // The only one that is left may be in a file that cannot be read.
    std::fs::write(scratch.state().join("issues/9.md"), "triaged, I think\n").expect("a file of the tracker");
    let damaged = auto(&scratch, &["--batch", "5"]);
    let is_named = damaged.err.contains("there are no open issues") && damaged.err.contains("9.md");
    assert!(damaged.code == Some(6) && is_named, "{}", damaged.err);
}

#[test]
fn c45_what_does_not_hold_at_last_needs_a_person() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[tracker]\nverify_iterations_max = 1\n");
    let criteria =
        "## Acceptance Criteria\n\n- [ ] <!-- verify: file_exists \"other.txt\" --> there is another file\n";
    issue(&scratch, "Promises", criteria, &good(1, "one.txt"), &["--size", "XS"]);
    let said = auto(&scratch, &["1"]);
    assert_eq!(said.code, Some(8), "{} {}", said.out, said.err);
    assert!(said.out.starts_with("auto #1 stopped at verify: needs a person\n"), "{}", said.out);
    assert!(
        said.out.contains("why: MAX_ITERATIONS_REACHED") && !said.out.contains("complete"),
        "{}",
        said.out
    );
    assert!(said.out.contains("pending: there is another file (FAIL)"), "{}", said.out);
    let report = report(&scratch, &["1", "--dry-run"]);
    assert!(
        report["issues"][0]["text"].as_str().is_some_and(|it| it.contains("is tried again by T1")),
        "{report}"
    );
}

#[test]
fn what_is_left_for_people_is_listed_and_nobody_there_leaves_acceptance_to_them() {
    let scratch = ScratchProject::new(LANDFALL);
    let manual = |number: u32| format!("- [ ] people like part {number} <!-- verify-type: manual -->\n");
    let criteria = format!("## Acceptance Criteria\n\n{}", (1..=7).map(manual).collect::<String>());
    issue(&scratch, "For people", &criteria, &good(1, "one.txt"), &["--size", "XS"]);
    let said = auto(&scratch, &["1", "--non-interactive"]).ok();
    assert!(said.starts_with("auto #1 partial success: opportunistic pending\n"), "{said}");
    assert!(
        said.contains("verify  left") && said.contains("`landfall auto 1` looks at its acceptance"),
        "{said}"
    );
    let shown = scratch.landfall(&["--json", "issue", "show", "1"]).json();
    assert!(
        shown["issue"]["labels"].as_array().is_some_and(|it| it.contains(&json!("phase/verify"))),
        "{shown}"
    );
    let said = auto(&scratch, &["1"]).ok();
    assert!(said.contains("pending: people like part 5 (SKIPPED)\n… and 2 more\n"), "{said}");
    assert!(!said.contains("part 6"), "{said}");
    assert!(said.contains("verify  pending"), "{said}");
}

#[test]
fn words_that_could_mean_two_things_are_refused_and_change_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "One", "", &good(1, "one.txt"), &["--size", "XS"]);
    for args in [
        &["--batch", "5", "--resume"][..],
        &["--resume"],
        &["1", "--patch", "--pr"],
        &["1", "--patch", "--review=light"],
        &["1", "--review=deep"],
        &["1", "--fast"],
        &["1", "2"],
        &["1", "--base", "other"],
        &["--batch"],
    ] {
        let refused = auto(&scratch, args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.err);
        assert!(refused.err.contains("hint:"), "{args:?}: {}", refused.err);
    }
    assert_eq!(auto(&scratch, &["99"]).code, Some(5));
    assert_eq!(scratch.landfall(&["list"]).ok(), "");
    auto(&scratch, &["1", "--base", "main", "--dry-run"]).ok();
    assert!(
        auto(&scratch, &["status"]).ok().contains("no run"),
        "the run is asked about in the same words as before"
    );
}

#[test]
fn reconcile_says_what_can_be_seen_of_a_phase() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "One", "", &good(1, "one.txt"), &["--size", "M"]);
    let of = |phase: &str| scratch.landfall(&["--json", "reconcile", "1", "--phase", phase]);
    let before = of("code-pr").json();
    assert_eq!((&before["schema_version"], &before["matches_expected"]), (&json!("v1"), &json!(false)));
    assert_eq!(before["actual"]["pr_state"], Value::Null);
    assert_eq!(before["diagnosis"], "there is no pull request of its branch");
    assert_eq!(of("issue").json()["matches_expected"], true, "it is triaged");
    auto(&scratch, &["1"]).ok();
    let merged = of("merge").json();
    assert_eq!(
        (
            &merged["matches_expected"],
            &merged["actual"]["pr_state"],
            &merged["actual"]["commits_found"],
            &merged["actual"]["issue_state"]
        ),
        (&json!(true), &json!("MERGED"), &json!(true), &json!("CLOSED"))
    );
    assert_eq!(merged["actual"]["spec_file"], "docs/spec/issue-1-x.md");
    let code = |args: &[&str]| scratch.landfall(&[&["reconcile"], args].concat()).code;
    assert_eq!(code(&["1", "--phase", "code-pr"]), Some(0), "it only warns");
    let offered = of("code-pr").json();
    assert_eq!(
        (&offered["matches_expected"], &offered["diagnosis"]),
        (&json!(true), &json!("pull request #2 is MERGED")),
        "what is merged was offered"
    );
    assert_eq!(code(&["1", "--phase", "code-pr", "--strict"]), Some(0));
    assert_eq!(
        code(&["1", "--phase", "code-pr", "--before", "--strict"]),
        Some(1),
        "it cannot begin any more"
    );
    assert_eq!(code(&["1", "--phase", "verify", "--strict"]), Some(0));
    assert_eq!(code(&["99", "--phase", "verify"]), Some(2));
    assert_eq!(code(&["1", "--phase", "lunch"]), Some(2));
}

#[test]
fn a_batch_that_was_killed_goes_on_where_it_was_and_does_nothing_twice() {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "code");
    let slow = |number: u64| hold.in_step("code", &good(number, &format!("{number}.txt")));
    issue(&scratch, "One", "", &good(1, "1.txt"), &["--size", "XS"]);
    issue(&scratch, "Two", "", &slow(2), &["--size", "M"]);
    issue(&scratch, "Three", "", &slow(3), &["--size", "S"]);
    let mut started = scratch.start(&["auto", "--batch", "1", "2", "3"]);
    scratch.eventually("the first is done and the second at work", || {
        let shown = scratch.landfall(&["--json", "issue", "list", "--all"]).json();
        let of = |number: usize| &shown["issues"][3 - number];
        let labels = of(2)["labels"].as_array().is_some_and(|all| all.contains(&json!("phase/code")));
        of(1)["state"] == "done" && labels
    });
    started.kill();
    hold.release();
    let list = scratch.landfall(&["--json", "auto", "--list"]).json();
    assert_eq!(list["batches"][0]["completed"], json!([1]), "{list}");
    let done = report(&scratch, &["--batch", "--resume"]);
    let stands: Vec<_> =
        done["issues"].as_array().expect("issues").iter().map(|it| (&it["number"], &it["stand"])).collect();
    assert_eq!(stands, [(&json!(2), &json!("complete")), (&json!(3), &json!("complete"))], "{done}");
    for number in 1..=3 {
        assert_eq!(scratch.git(&["show", &format!("main:{number}.txt")]), "x");
        let shown = scratch.landfall(&["--json", "issue", "show", &number.to_string()]).json();
        let comments = shown["comments"].as_array().expect("comments").iter();
        let mut said: Vec<_> = comments.map(|it| it["body"].as_str().unwrap_or_default()).collect();
        let all = said.len();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), all, "no comment is repeated: {shown}");
    }
    let tasks = scratch.landfall(&["--json", "list"]).json();
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(3), "one task each");
}

#[test]
fn issues_that_wait_for_each_other_are_refused_and_shown() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "One", "", &good(1, "one.txt"), &["--size", "XS"]);
    issue(&scratch, "Two", "", &good(2, "two.txt"), &["--size", "XS", "--blocked-by", "1"]);
    let path = scratch.state().join("issues/1.md");
    let text = std::fs::read_to_string(&path).expect("an issue");
    std::fs::write(&path, text.replacen("\nlabels", "\nblocked-by = [2]\nlabels", 1)).expect("written");
    let refused = auto(&scratch, &["--batch", "1", "2"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("#1 is blocked by #2 is blocked by #1"), "{}", refused.err);
    assert_eq!(scratch.landfall(&["list"]).ok(), "");
}

#[test]
fn a_server_that_keeps_the_project_drives_what_is_asked_for() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "One", "", &good(1, "one.txt"), &["--size", "M"]);
    let served = Served::start(&scratch, &[]);
    let said = auto(&scratch, &["1"]);
    assert!(said.err.contains("#1 [2/5] code → done (PR #2)"), "{}", said.err);
    assert!(said.out.starts_with("auto #1 complete\n"), "{}", said.out);
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "x");
    drop(served);
}

#[test]
fn a_run_that_is_under_way_takes_up_what_is_asked_for() {
    let scratch = ScratchProject::new(LANDFALL);
    issue(&scratch, "One", "", &good(1, "one.txt"), &["--size", "XS"]);
    let hold = HoldFile::new(&scratch, "long");
    let writes = "signal = \"complete\"\n[[write]]\npath = \"long.txt\"\ntext = \"x\\n\"\n";
    let first = scratch.task("Long", &format!("{}{writes}", hold.line()), &[]);
    let mut run = scratch.start(&["run", &first]);
    scratch.eventually("it is at work", || scratch.status(&first) == "active");
    let said = auto(&scratch, &["1"]);
    hold.release();
    assert!(said.err.contains("a run is under way already, and takes them up"), "{}", said.err);
    assert_eq!(run.wait(LIMIT), Some(0));
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "x");
}
