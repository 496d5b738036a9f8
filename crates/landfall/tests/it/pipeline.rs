//! Issues from their tracker to landed and verified, by the scripted agent: patch, pull request, rework, parts, and a night's
//! batch that is killed on the way.

use std::time::Duration;

use landfall_testkit::{CommandOutput, FakeRepository as Forge, GithubFault, ScratchProject};

use crate::both::{World, labels, on_both};
use crate::hold_file::HoldFile;
use crate::lifecycle::{says, works};
use crate::sandbox::open;

/// A reviewer who finds nothing.
const FINE: &str = r#"{"findings": [], "resolved": []}"#;

/// The script of an agent, as an issue carries it.
pub fn script(turns: &[String]) -> String {
    format!("```landfall-script\n{}\n```\n", turns.concat())
}

/// A step in which it writes a file with these words.
pub fn writes(step: &str, path: &str, text: &str) -> String {
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\n[[step.{step}.write]]\npath = {path:?}\ntext = {text:?}\n"
    )
}

/// A step in which it leaves a paper and commits nothing.
fn leaves(step: &str, path: &str, text: &str) -> String {
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\ncommit = false\n[[step.{step}.write]]\npath = {path:?}\ntext = {text:?}\n"
    )
}

/// A criterion that a file is there.
pub fn there(path: &str) -> String {
    format!("- [ ] <!-- verify: file_exists \"{path}\" --> there is {path}\n")
}

pub fn issue(scratch: &ScratchProject, title: &str, body: &str, more: &[&str]) -> u64 {
    let args = [&["--json", "issue", "new", title, "--body", body], more].concat();
    scratch.landfall(&args).json()["issue"]["number"].as_u64().expect("a number")
}

pub fn auto(scratch: &ScratchProject, args: &[&str]) -> CommandOutput {
    scratch.landfall(&[&["auto"], args].concat())
}

on_both!(
    a_small_issue_goes_straight_onto_the_base_is_accepted_and_closed,
    an_issue_nobody_looked_at_is_triaged_specified_reviewed_and_merged,
    behaviour_32_what_does_not_hold_is_opened_again_and_at_last_shown_as_needing_a_person,
    behaviour_29_a_part_that_fails_leaves_out_what_waits_for_it_and_the_rest_goes_on,
    an_issue_that_a_person_closes_on_the_way_stops_keeps_its_work_and_goes_on_when_it_is_opened_again,
);

fn a_small_issue_goes_straight_onto_the_base_is_accepted_and_closed(world: &World) {
    let body = format!("{}\n{}", there("done.txt"), script(&[works("code", "done.txt", "\"complete\"")]));
    let number = issue(world, "Make it so", &body, &["--size", "XS", "--label", "triaged"]);
    let said = auto(world, &[&number.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let main = world.main();
    assert_eq!(world.git(&["show", &format!("{main}:done.txt")]), "x");
    let shown = world.shown(number);
    assert_eq!(shown["issue"]["state"], "done", "{shown}");
    assert!(labels(&shown).contains(&"phase/done".to_owned()), "{shown}");
    assert!(shown["body"].as_str().is_some_and(|body| body.contains("- [x]")), "the box is ticked: {shown}");
    let message = world.git(&["log", "-1", "--format=%B", main]);
    assert!(message.contains(&format!("Landfall-Issue: {}:#{number}", world.tracker)), "{message}");
    let comments = shown["comments"].as_array().map_or(0, Vec::len);
    // Asked for again, nothing is done again.
    auto(world, &[&number.to_string()]);
    assert_eq!(world.shown(number)["comments"].as_array().map_or(0, Vec::len), comments);
}

fn an_issue_nobody_looked_at_is_triaged_specified_reviewed_and_merged(world: &World) {
    let triage = r#"{"size": "M", "type": "feature", "priority": "high", "why": "three files"}"#;
    let turns = [
        leaves("triage", ".landfall/task/triage.json", triage),
        writes("spec", "docs/spec/issue-1-greet.md", "# Greet\n"),
        works("code", "greet.txt", "\"complete\""),
        says("review", FINE),
    ];
    let body = format!("{}\n{}", there("greet.txt"), script(&turns));
    let number = issue(world, "Greet", &body, &[]);
    let said = auto(world, &[&number.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}\n{}", said.out, said.err, world.landfall(&["log", "T1"]).out);
    let shown = world.shown(number);
    for label in ["triaged", "type/feature", "priority/high", "size/M", "phase/done"] {
        assert!(labels(&shown).contains(&label.to_owned()), "{label}: {shown}");
    }
    let main = world.main();
    let message = world.git(&["log", "-1", "--format=%B", main]);
    assert!(message.starts_with("feat: Greet"), "{message}");
    assert_eq!(world.git(&["show", &format!("{main}:docs/spec/issue-1-greet.md")]), "# Greet");
    let log = world.landfall(&["log", "T1"]).ok();
    assert!(log.contains("offered as pull request #"), "{log}");
    let prompts = world.prompts("T1");
    assert!(
        prompts.iter().any(|prompt| prompt.contains("Specify issue #1")),
        "a fresh agent writes the spec"
    );
}

fn behaviour_32_what_does_not_hold_is_opened_again_and_at_last_shown_as_needing_a_person(world: &World) {
    // The second try does what was promised.
    let turns = [works("code", "wrong.txt", "\"complete\""), works("code", "right.txt", "\"complete\"")];
    let body = format!("{}\n{}", there("right.txt"), script(&turns));
    let number = issue(world, "Right", &body, &["--size", "XS", "--label", "triaged"]);
    let said = auto(world, &[&number.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let shown = world.shown(number);
    let comments = shown["comments"].to_string();
    assert_eq!(comments.matches("verify-iteration: 1").count(), 1, "{comments}");
    assert_eq!(shown["issue"]["state"], "done", "{shown}");

    let never = format!(
        "{}\n{}",
        there("never.txt"),
        script(&[
            works("code", "a1.txt", "\"complete\""),
            works("code", "a2.txt", "\"complete\""),
            works("code", "a3.txt", "\"complete\""),
            works("code", "a4.txt", "\"complete\""),
        ])
    );
    let number = issue(world, "Never", &never, &["--size", "XS", "--label", "triaged"]);
    let said = auto(world, &[&number.to_string()]);
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("needs a person"), "{all}");
    assert_eq!(world.status("T2"), "blocked");
    assert!(world.why("T2").contains("MAX_ITERATIONS_REACHED"), "{}", world.why("T2"));
    let shown = world.shown(number);
    assert!(labels(&shown).contains(&"phase/verify".to_owned()), "{shown}");
}

fn an_issue_that_a_person_closes_on_the_way_stops_keeps_its_work_and_goes_on_when_it_is_opened_again(
    world: &World,
) {
    // Straight onto the base, and by a pull request that is being read.
    for (number, size, step) in [(1, "XS", "code"), (2, "M", "review")] {
        let file = format!("{number}.txt");
        let spec = format!("docs/spec/issue-{number}-x.md");
        let turns =
            [writes("spec", &spec, "# X\n"), works("code", &file, "\"complete\""), says("review", FINE)];
        let hold = HoldFile::new(world, step);
        let slow = [hold.in_step(step, &turns.concat())];
        let made =
            issue(world, &format!("Issue {number}"), &script(&slow), &["--size", size, "--label", "triaged"]);
        let (made, task) = (made.to_string(), format!("T{number}"));
        let mut run = world.start(&["auto", &made]);
        let asked = if step == "code" { 1 } else { 3 };
        world.eventually("its agent is at work", || world.prompts(&task).len() == asked);
        world.landfall(&["issue", "close", &made, "--not-planned"]).ok();
        hold.release();
        assert_ne!(run.wait(Duration::from_secs(180)), Some(0), "{}", world.heard());
        assert_eq!(world.status(&task), "blocked");
        let why = world.why(&task);
        assert!(why.contains("was closed as not planned meanwhile; its work is kept"), "{why}");
        assert!(!world.files().contains(&file), "nothing lands against a person's word");
        let shown = world.shown(made.parse().expect("a number"));
        assert_eq!(shown["issue"]["state"], "not-planned", "{shown}");
        // They think better of it: what was made is not made again.
        world.landfall(&["issue", "reopen", &made]).ok();
        let said = auto(world, &[&made]);
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        assert_eq!(world.landed(&file), "x");
    }
}

/// One issue of seven parts in three levels: two that need nothing, three that need one of those, two that need one of these.
/// The second of the first level fails. Gives the whole and its parts.
fn large(scratch: &ScratchProject) -> (u64, Vec<u64>) {
    let body = format!("{}\n", there("p1.txt"));
    let whole = issue(scratch, "Large", &body, &["--size", "XL", "--label", "triaged"]);
    let mut parts: Vec<u64> = Vec::new();
    let needs: [Option<usize>; 7] = [None, None, Some(0), Some(0), Some(1), Some(2), Some(4)];
    for (place, need) in needs.into_iter().enumerate() {
        let turn = match place {
            1 => "[[step.code]]\nsignal = \"blocked:no key\"\ncommit = false\n".to_owned(),
            _ => works("code", &format!("p{}.txt", place + 1), "\"complete\""),
        };
        let body = script(&[turn]);
        let parent = whole.to_string();
        let blocker = need.map(|at| parts[at].to_string());
        let mut more = vec!["--size", "XS", "--label", "triaged", "--parent", &parent];
        if let Some(blocker) = &blocker {
            more.extend(["--blocked-by", blocker]);
        }
        parts.push(issue(scratch, &format!("Part {}", place + 1), &body, &more));
    }
    (whole, parts)
}

fn behaviour_29_a_part_that_fails_leaves_out_what_waits_for_it_and_the_rest_goes_on(world: &World) {
    let (whole, parts) = large(world);
    let said = auto(world, &[&whole.to_string()]);
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let files = world.git(&["ls-tree", "--name-only", world.main()]);
    for (place, landed) in [true, false, true, true, false, true, false].into_iter().enumerate() {
        assert_eq!(files.contains(&format!("p{}.txt", place + 1)), landed, "part {}: {files}", place + 1);
    }
    let shown = world.shown(whole);
    assert_eq!(shown["issue"]["state"], "open", "{shown}");
    let comments = shown["comments"].to_string();
    assert!(comments.contains("4 of 7 sub-issues are done"), "{comments}");
    assert!(comments.contains(&format!("SKIPPED (blocked by #{})", parts[1])), "{comments}");
    assert!(comments.contains(&format!("SKIPPED (blocked by #{})", parts[4])), "{comments}");
    assert!(world.why("T1").contains("parts_failed"), "{}", world.why("T1"));
}

/// It landed, its criteria fail, and by then nobody wants it: it is not opened again.
fn stays_closed(world: &World, number: u64) {
    assert_eq!(world.status("T1"), "blocked");
    let why = world.why("T1");
    assert!(why.contains("was closed as not planned meanwhile; its work has landed as"), "{why}");
    let shown = world.shown(number);
    assert_eq!(shown["issue"]["state"], "not-planned", "{shown}");
    assert!(!shown["comments"].to_string().contains("verify-iteration"), "{shown}");
}

#[test]
fn an_issue_of_files_that_nobody_wants_any_more_is_not_opened_again_by_what_landed() {
    let world = World::local();
    let slow = "- [ ] <!-- verify: command \"touch ~/open/began; until [ -e ~/open/go ]; do sleep 0.02; done; false\" --> it holds\n";
    let body = format!("{slow}\n{}", script(&[works("code", "done.txt", "\"complete\"")]));
    let number = issue(&world, "Landed", &body, &["--size", "XS", "--label", "triaged"]);
    open(&world);
    let mut run = world.start(&["auto", &number.to_string()]);
    let began = world.root().join("home/open/began");
    world.eventually("its criterion is looked at", || began.exists());
    world.landfall(&["issue", "close", &number.to_string(), "--not-planned"]).ok();
    HoldFile::at(&world.root().join("home/open/go")).release();
    assert_ne!(run.wait(Duration::from_secs(120)), Some(0), "{}", world.heard());
    stays_closed(&world, number);
}

#[test]
fn an_issue_of_github_that_nobody_wants_any_more_is_not_opened_again_by_what_landed() {
    let world = World::github();
    let body = format!("{}\n{}", there("never.txt"), script(&[works("code", "done.txt", "\"complete\"")]));
    let number = issue(&world, "Landed", &body, &["--size", "XS", "--label", "triaged"]);
    let closes = move |forge: &mut Forge| {
        let issue = forge.issues.get_mut(&number).expect("it is there");
        if issue.labels.contains(&"phase/verify".to_owned()) {
            issue.closed = Some("not_planned".to_owned());
        }
    };
    let then = GithubFault::Then(std::sync::Arc::new(closes));
    world.forge().fault("POST", &format!("/issues/{number}/labels"), 10, then);
    let said = auto(&world, &[&number.to_string()]);
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    stays_closed(&world, number);
}

#[test]
fn a_stop_waits_for_no_limit_of_github_and_what_was_to_be_said_is_said_by_the_next_run() {
    let world = World::github();
    let body = format!("{}\n{}", there("done.txt"), script(&[works("code", "done.txt", "\"complete\"")]));
    let number = issue(&world, "Landed", &body, &["--size", "XS", "--label", "triaged"]);
    // Where the issue stands is written while its workspace is made, and a run that ends waits for workspaces.
    let labels = format!("/issues/{number}/labels");
    let before = world.forge().count("POST", &labels);
    world.forge().fault("POST", &labels, 1, GithubFault::Secondary(Some(80)));
    let mut run = world.start(&["auto", &number.to_string()]);
    world.eventually("GitHub asks to slow down", || world.forge().count("POST", &labels) > before);
    world.landfall(&["stop", "--now"]).ok();
    run.wait(Duration::from_secs(120));
    assert_eq!(
        world.forge().count("POST", &labels),
        before + 1,
        "the limit was waited for: {}",
        world.heard()
    );
    let said = auto(&world, &["--resume", &number.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert_eq!(world.status("T1"), "done");
    assert_eq!(world.shown(number)["issue"]["state"], "done");
    assert_eq!(world.left_behind(), []);
}

#[test]
fn c33_a_whole_that_is_asked_for_again_tries_the_part_that_failed_and_finishes() {
    let scratch = World::local();
    let whole =
        issue(&scratch, "Large", &there("b.txt"), &["--size", "XL", "--label", "triaged"]).to_string();
    // The key is there the second time.
    let turns = [
        "[[step.code]]\nsignal = \"blocked:no key\"\ncommit = false\n".to_owned(),
        works("code", "a.txt", "\"complete\""),
    ];
    let small = ["--size", "XS", "--label", "triaged", "--parent", &whole];
    let first = issue(&scratch, "First", &script(&turns), &small).to_string();
    let more = [&small[..], &["--blocked-by", &first]].concat();
    issue(&scratch, "Second", &script(&[works("code", "b.txt", "\"complete\"")]), &more);
    assert_ne!(auto(&scratch, &[&whole]).code, Some(0), "a part has failed");
    let said = auto(&scratch, &["--resume", &whole]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let files = scratch.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("a.txt") && files.contains("b.txt"), "{files}");
    assert_eq!(scratch.shown(whole.parse().expect("a number"))["issue"]["state"], "done");
}

#[test]
fn an_issue_of_github_becomes_a_pull_request_is_reviewed_merged_by_pushing_and_accepted() {
    let world = World::github();
    let turns = [
        writes("spec", "docs/spec/issue-1-greet.md", "# Greet\n"),
        works("code", "greet.txt", "\"complete\""),
        says("review", FINE),
    ];
    let body = format!("{}\n{}", there("greet.txt"), script(&turns));
    let number =
        world.forge().world(|forge| forge.opened("Greet", &body, &["triaged", "size/M", "type/bug"]));
    let said = auto(&world, &[&number.to_string()]);
    let log = world.landfall(&["log", "T1"]).out;
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    world.forge().world(|forge| {
        forge.see_pushes();
        let pull = forge.pulls.values().next().expect("a pull request");
        assert!(pull.merged.is_some(), "it is merged by what was pushed: {pull:?}");
        assert_eq!(pull.head, "landfall/issue-1");
        assert!(
            !forge.branches.contains_key("landfall/issue-1"),
            "its branch is taken away: {:?}",
            forge.branches
        );
        assert!(!pull.reviews.is_empty() || !pull.comments.is_empty(), "the review is summed up there");
        let issue = &forge.issues[&number];
        assert!(issue.closed.is_some() && issue.labels.contains(&"phase/done".to_owned()), "{issue:?}");
        assert!(issue.body.as_deref().is_some_and(|body| body.contains("- [x]")), "{issue:?}");
    });
    let message = world.git(&["log", "-1", "--format=%B", world.main()]);
    assert!(message.starts_with("fix: Greet") && message.contains(&format!("Closes #{number}")), "{message}");
}

#[test]
fn what_lands_beside_the_default_branch_says_no_words_that_close_an_issue() {
    let world = World::github();
    world.forge().world(|forge| forge.default_branch = "trunk".to_owned());
    let body = format!("{}\n{}", there("greet.txt"), script(&[works("code", "greet.txt", "\"complete\"")]));
    let number =
        world.forge().world(|forge| forge.opened("Greet", &body, &["triaged", "size/XS", "enhancement"]));
    let said = auto(&world, &[&number.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let message = world.git(&["log", "-1", "--format=%B", world.main()]);
    assert!(message.starts_with("feat: Greet (T1)\n") && !message.contains("Closes"), "{message}");
    assert!(message.contains(&format!("Landfall-Issue: github:#{number}")), "{message}");
}

/// Twelve issues: eleven of sizes XS to L, some of which fail, and one of seven parts. Gives those that are to be done, those
/// that are not, and all of their numbers in order.
fn night(scratch: &ScratchProject) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    let (mut done, mut undone) = (Vec::new(), Vec::new());
    for (place, size) in ["XS", "S", "M", "L", "XS", "S", "M", "XS", "S", "XS", "XS"].into_iter().enumerate()
    {
        let file = format!("night-{place}.txt");
        let spec = format!("docs/spec/issue-{}-night.md", place + 1);
        let mut turns = vec![writes("spec", &spec, "# Night\n"), works("code", &file, "\"complete\"")];
        turns.extend((0..4).map(|_| says("review", FINE)));
        let criterion = match place {
            4 => there("never.txt"), // it does not hold, however often it is mended
            _ => there(&file),
        };
        if place == 4 {
            turns = (0..4).map(|round| works("code", &format!("try-{round}.txt"), "\"complete\"")).collect();
        }
        let body = format!("{criterion}\n{}", script(&turns));
        let number =
            issue(scratch, &format!("Night {place}"), &body, &["--size", size, "--label", "triaged"]);
        if place == 4 { undone.push(number) } else { done.push(number) }
    }
    let (whole, parts) = large(scratch);
    undone.push(whole);
    let mut all: Vec<u64> = done.iter().chain(&undone).copied().collect();
    all.sort_unstable();
    for (place, part) in parts.into_iter().enumerate() {
        if [1, 4, 6].contains(&place) { undone.push(part) } else { done.push(part) }
    }
    (done, undone, all)
}

#[test]
fn a_night_of_twelve_issues_killed_five_times_ends_where_the_tables_say_and_says_nothing_twice() {
    let mut scratch = World::local();
    scratch.be_patient(Duration::from_secs(300));
    let (done, undone, all) = night(&scratch);
    let numbers: Vec<String> = all.iter().map(ToString::to_string).collect();
    let mut args: Vec<&str> = vec!["auto", "--batch"];
    args.extend(numbers.iter().map(String::as_str));
    // Later each time, before or after what it writes down.
    let instants = ["before:5", "after:14", "before:23", "after:37", "after:52"];
    for (place, instant) in instants.into_iter().enumerate() {
        scratch.set("LANDFALL_CRASH", &format!("journal.append.{instant}"));
        let said = match place {
            0 => scratch.landfall(&args),
            _ => scratch.landfall(&["auto", "--batch", "--resume"]),
        };
        assert_eq!(said.code, None, "it is killed at {instant}: {}\n{}", said.out, said.err);
    }
    scratch.unset("LANDFALL_CRASH");
    scratch.landfall(&["auto", "--batch", "--resume"]);
    for number in &done {
        let shown = scratch.shown(*number);
        assert_eq!(shown["issue"]["state"], "done", "#{number}: {shown}");
        assert!(labels(&shown).contains(&"phase/done".to_owned()), "#{number}: {shown}");
    }
    for number in &undone {
        let shown = scratch.shown(*number);
        assert_eq!(shown["issue"]["state"], "open", "#{number}: {shown}");
    }
    for number in done.iter().chain(&undone) {
        let shown = scratch.shown(*number);
        let said: Vec<String> =
            shown["comments"].as_array().into_iter().flatten().map(|it| it["body"].to_string()).collect();
        let distinct: std::collections::BTreeSet<&String> = said.iter().collect();
        assert_eq!(said.len(), distinct.len(), "#{number} says something twice: {said:#?}");
    }
    // Each landed once: as many landings as issues that are done, and those that failed afterwards.
    let landed = scratch.git(&["log", "--format=%(trailers:key=Landfall-Issue,valueonly)", "main"]);
    for number in &done {
        let times = landed.lines().filter(|line| *line == format!("local:#{number}")).count();
        assert_eq!(times, 1, "#{number} landed {times} times:\n{landed}");
    }
    assert!(scratch.left_behind().is_empty(), "{:?}", scratch.left_behind());
}
