//! Work that lands on another branch than the base of the project: `--base`.

use crate::both::{World, on_both};
use crate::hold_file::HoldFile;
use crate::lifecycle::{says, works};
use crate::pipeline::{issue, script, there, writes};

const BASE: &str = "release/1.2";

on_both!(
    edge_41_a_patch_lands_on_another_base_is_confirmed_there_and_closed_by_us,
    a_pull_request_of_another_base_is_offered_for_it_and_merged_into_it,
    the_same_issue_lands_on_two_bases_and_neither_takes_the_others_words_for_its_own,
);

/// A project with a release of its own, one commit behind.
fn released(world: &World) {
    world.change_settings(|settings| settings + "[project]\nbase = \"main\"\n");
    world.git(&["branch", BASE]);
    if world.tracker == "github" {
        world.git(&["push", "--quiet", "origin", BASE]);
    }
    world.file("newer.txt", "x\n");
    world.git(&["add", "newer.txt"]);
    world.git(&["commit", "--quiet", "-m", "Something newer"]);
    world.publish();
}

/// The files of a branch as it was published.
fn files(world: &World, branch: &str) -> String {
    if world.tracker == "local" {
        return world.git(&["ls-tree", "--name-only", branch]);
    }
    world.git(&["fetch", "--quiet", "origin"]);
    world.git(&["ls-tree", "--name-only", &format!("origin/{branch}")])
}

fn patch(world: &World, title: &str, file: &str) -> String {
    let body = format!("{}\n{}", there(file), script(&[works("code", file, "\"complete\"")]));
    issue(world, title, &body, &["--size", "XS", "--label", "triaged"]).to_string()
}

fn edge_41_a_patch_lands_on_another_base_is_confirmed_there_and_closed_by_us(world: &World) {
    released(world);
    let number = patch(world, "Mend the release", "mended.txt");
    let said = world.landfall(&["auto", &number, "--base", BASE]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(said.err.contains("say `--base release/1.2` with each command"), "{}", said.err);
    let there = files(world, BASE);
    assert!(there.contains("mended.txt") && !there.contains("newer.txt"), "{there}");
    assert!(!files(world, "main").contains("mended.txt"));
    let words = world.git(&["log", "--format=%B", BASE]);
    assert!(!words.contains("Closes #"), "a forge closes by what lands on its default branch alone: {words}");
    assert_eq!(world.shown(1)["issue"]["state"], "done");

    let complete = |args: &[&str]| {
        let asked = ["--json", "reconcile", &number, "--phase", "code-patch"];
        world.landfall(&[args, &asked].concat()).json()["matches_expected"].clone()
    };
    assert_eq!(complete(&["--base", BASE]), true);

    // What is done there is neither begun nor judged here.
    for words in [&["auto", number.as_str()][..], &["verify", &number]] {
        let refused = world.landfall(words);
        assert_eq!(refused.code, Some(6), "{words:?}: {}\n{}", refused.out, refused.err);
        assert!(refused.err.contains("on `release/1.2`"), "{words:?}: {}", refused.err);
    }
    assert_eq!(world.shown(1)["issue"]["state"], "done");
    let why = world.landfall(&["why", &format!("#{number}")]);
    assert!(why.err.contains("`landfall --base release/1.2 why '#1'`"), "{}", why.err);

    // The tasks of the one are nothing to the other, and each says that there is the other.
    let none = world.landfall(&["--json", "list"]).json();
    assert_eq!(none["tasks"], serde_json::json!([]), "{none}");
    let why = world.landfall(&["--base", BASE, "why", &format!("#{number}")]).ok();
    assert!(why.contains("landed"), "{why}");
    let status = world.landfall(&["status"]).out;
    assert!(status.contains("`landfall --base release/1.2 status`"), "{status}");
    assert!(!world.landfall(&["status", "--base", BASE]).out.contains("lands on `release/1.2` too"));
    assert!(world.left_behind().is_empty());
}

fn a_pull_request_of_another_base_is_offered_for_it_and_merged_into_it(world: &World) {
    released(world);
    let turns = [
        writes("spec", "docs/spec/issue-1-greet.md", "# Greet\n"),
        works("code", "greet.txt", "\"complete\""),
        says("review", r#"{"findings": [], "resolved": []}"#),
    ];
    let body = format!("{}\n{}", there("greet.txt"), script(&turns));
    let number = issue(world, "Greet", &body, &["--size", "M", "--label", "triaged", "--label", "type/bug"]);
    let said = world.landfall(&["auto", &number.to_string(), "--base", BASE]);
    let log = world.landfall(&["--base", BASE, "log", "T1"]).out;
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(files(world, BASE).contains("greet.txt"));
    assert!(!files(world, "main").contains("greet.txt"));
    let pull = world.landfall(&["--json", "--base", BASE, "issue", "pr", &number.to_string()]).json();
    let text = pull.to_string();
    assert!(text.contains("landfall/issue-1-on-release-1-2-"), "{text}");
    assert!(text.contains(BASE) && text.contains("merged"), "{text}");
}

fn the_same_issue_lands_on_two_bases_and_neither_takes_the_others_words_for_its_own(world: &World) {
    released(world);
    let number = patch(world, "Mend both", "mended.txt");
    for (args, branch) in [(&["--base", BASE][..], BASE), (&["--base", "main"], "main")] {
        let said = world.landfall(&[&["auto", number.as_str()], args].concat());
        assert_eq!(said.code, Some(0), "{branch}: {}\n{}", said.out, said.err);
        assert!(files(world, branch).contains("mended.txt"), "{branch}");
        if branch == BASE {
            world.landfall(&["issue", "reopen", &number]).ok();
        }
    }
    let comments = world.shown(1)["comments"].to_string();
    assert_eq!(comments.matches("It landed as").count(), 2, "one for each: {comments}");
    // The base of the project is meant by its name as well, and that is no other one.
    assert_eq!(world.landfall(&["--json", "list"]).json()["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_run_on_another_base_goes_on_without_whoever_began_it_beside_one_of_the_project() {
    let world = World::local();
    world.change_settings(|settings| settings + "[workspace]\nports = \"23400-23459\"\nports_each = 10\n");
    released(&world);
    let writes = |file: &str| format!("signal = \"complete\"\n[[write]]\npath = {file:?}\ntext = \"x\\n\"\n");
    let hold = HoldFile::new(&world, "main");
    world.task("Slow on main", &format!("{}{}", hold.line(), writes("slow.txt")), &[]);
    world.task("On the side", &writes("side.txt"), &["--base", BASE]);
    let mut run = world.start(&["run"]);
    world.eventually("the agent on main to be at work", || !world.facts("T1", "iteration-began").is_empty());
    world.landfall(&["run", "--base", BASE, "--detach"]).ok();
    let side = || world.git(&["ls-tree", "--name-only", BASE]);
    world.eventually("the work of the side to land", || side().contains("side.txt"));
    hold.release();
    assert_eq!(run.wait(std::time::Duration::from_secs(120)), Some(0));
    let main = world.git(&["ls-tree", "--name-only", "main"]);
    assert!(main.contains("slow.txt") && !main.contains("side.txt") && !side().contains("slow.txt"));
    let ports = std::fs::read_to_string(world.state().join("ports.json")).expect("ports were leased");
    let ports: serde_json::Value = serde_json::from_str(&ports).expect("JSON");
    let leases: Vec<_> = ports["leases"].as_object().expect("by workspace").values().collect();
    assert!(leases.len() == 2 && leases[0] != leases[1], "both at once have ports of their own: {ports}");
    world.eventually("nobody to be left", || world.left_behind().is_empty());
}

#[test]
fn what_waits_for_a_person_on_one_base_is_not_begun_on_another_and_every_hint_says_which_base_is_meant() {
    let world = World::local();
    released(&world);
    let body = format!(
        "{}- [ ] <!-- verify-type: opportunistic --> people like it\n{}",
        there("done.txt"),
        script(&[works("code", "done.txt", "\"complete\"")])
    );
    let number = issue(&world, "Half", &body, &["--size", "XS", "--label", "triaged"]).to_string();
    let said = world.landfall(&["auto", &number, "--base", BASE]);
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("partial success"), "{told}");
    for shown in [told, world.landfall(&["--base", BASE, "inbox"]).out] {
        assert!(shown.contains("`landfall --base release/1.2 issue tick 1"), "{shown}");
        assert!(!shown.contains("`landfall auto") && !shown.contains("`landfall issue"), "{shown}");
    }
    let refused = world.landfall(&["auto", &number]);
    assert_eq!(refused.code, Some(6), "{}\n{}", refused.out, refused.err);
    assert!(refused.err.contains("#1 is followed on `release/1.2`"), "{}", refused.err);
    assert!(!files(&world, "main").contains("done.txt"));
    world.landfall(&["--base", BASE, "issue", "tick", "1", "2"]).ok();
    world.landfall(&["--base", BASE, "auto", &number]).ok();
    assert_eq!(world.shown(1)["issue"]["state"], "done");
}

#[test]
fn an_issue_is_followed_on_one_base_at_a_time() {
    for (first, then, said) in [(BASE, "main", "`release/1.2`"), ("main", BASE, "the base of the project")] {
        let world = World::local();
        released(&world);
        let hold = HoldFile::new(&world, "code");
        let slow = hold.in_step("code", "[[step.code]]\nsignal = \"complete\"\n");
        let body = format!("{}\n{}", there("slow.txt"), script(&[slow]));
        let number = issue(&world, "Slow", &body, &["--size", "XS", "--label", "triaged"]).to_string();
        let mut run = world.start(&["auto", &number, "--base", first]);
        let taken = || world.landfall(&["--json", "--base", first, "list"]).out.contains("Slow");
        world.eventually("it to be taken on there", taken);
        let refused = world.landfall(&["auto", &number, "--base", then]);
        assert_eq!(refused.code, Some(6), "{}\n{}", refused.out, refused.err);
        assert!(refused.err.contains(&format!("is followed on {said}")), "{}", refused.err);
        let way = format!("`landfall --base {first} why '#1'`");
        assert!(refused.err.contains(&way), "the other one is named, whichever is meant: {}", refused.err);
        run.signal("INT");
        hold.release();
        run.wait(std::time::Duration::from_secs(60));
    }
}

#[test]
fn without_a_base_of_the_project_no_other_one_is_known_by_its_name() {
    let world = World::local();
    world.git(&["branch", BASE]);
    let refused = world.landfall(&["status", "--base", BASE]);
    assert!(refused.code == Some(2) && refused.err.contains("base = \"main\""), "{}", refused.err);
    world.landfall(&["status", "--base", "main"]).ok();
}

#[test]
fn a_base_that_is_none_is_refused_and_makes_nothing() {
    let world = World::local();
    world.change_settings(|settings| settings + "[project]\nbase = \"main\"\n");
    for (base, says) in [("no/such", "does not exist"), ("-x..y", "not the name of a branch")] {
        let said = world.landfall(&[&format!("--base={base}"), "status"]);
        assert_ne!(said.code, Some(0), "{base}: {}", said.out);
        assert!(said.err.contains(says) && said.err.contains("hint"), "{base}: {}", said.err);
    }
    assert!(!world.landfall(&["status"]).out.contains("lands on"));
}
