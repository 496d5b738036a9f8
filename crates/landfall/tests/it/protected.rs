//! A base that nobody may push: landed work is offered as a pull request, and the forge merges it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_testkit::{FakeCheck, ScratchProject};

use crate::LANDFALL;
use crate::both::World;
use crate::lifecycle::{says, works};

/// A project whose `origin` refuses whatever is pushed to `main`, and that repository.
fn protected(publish: &str) -> (World, PathBuf) {
    let world = World::github();
    if publish != "push" {
        world.change_settings(|settings| {
            settings.replace("publish = \"push\"", &format!("publish = \"{publish}\""))
        });
    }
    let bare = world.root().join("forge.git");
    let hook = bare.join("hooks/update");
    std::fs::write(
        &hook,
        "#!/bin/sh\nif [ \"$1\" = refs/heads/main ]; then echo 'GH006: Protected branch update failed' >&2; exit 1; fi\n",
    )
    .expect("a hook can be written");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    (world, bare)
}

fn adds(file: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{file}\"\ntext = \"x\\n\"\n")
}

fn green() -> FakeCheck {
    FakeCheck::over("ci", "success")
}

/// A forge that looks at it is waited for as long as a test may take on a slow machine.
fn running() -> FakeCheck {
    FakeCheck { name: "ci".to_owned(), status: "in_progress".to_owned(), conclusion: None }
}

fn git_at(bare: &Path, args: &[&str]) -> String {
    let said = std::process::Command::new("git")
        .arg(format!("--git-dir={}", bare.display()))
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
        .args(args)
        .output()
        .expect("git can be run");
    String::from_utf8(said.stdout).expect("text").trim().to_owned()
}

/// What is offered and not merged yet, the newest of it; empty if nothing is.
fn offered(world: &World) -> String {
    world.forge().world(|forge| {
        forge.see_pushes();
        let open = forge.pulls.values().rev().find(|it| it.head.starts_with("landfall/land-") && !it.closed);
        open.and_then(|pull| forge.branches.get(&pull.head).cloned()).unwrap_or_default()
    })
}

/// Has the forge say of what is offered how its check stands.
fn checked(world: &World, check: FakeCheck) {
    let head = offered(world);
    world.forge().world(|forge| forge.checks.insert(head, vec![check]));
}

fn on_main(scratch: &ScratchProject) -> String {
    scratch.git(&["fetch", "--quiet", "origin"]);
    scratch.git(&["ls-tree", "--name-only", "origin/main"])
}

#[test]
fn landed_work_reaches_a_base_that_nobody_may_push_with_the_tree_that_was_verified() {
    let (scratch, _) = protected("pull-request");
    for (task, file) in [("T1", "one.txt"), ("T2", "two.txt")] {
        scratch.task(&format!("Add {file}"), &adds(file), &[]);
        let said = scratch.landfall(&["run"]);
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        assert!(on_main(&scratch).contains(file), "{}\n{}", said.out, said.err);
        let certificate = scratch.landfall(&["certificate", task]).json();
        let landed = certificate["landing"]["commit"].as_str().expect("it landed").to_owned();
        let tree = |of: &str| scratch.git(&["rev-parse", &format!("{of}^{{tree}}")]);
        assert_eq!(tree("origin/main"), tree(&landed), "what is there is what was verified");
        assert_eq!(scratch.git(&["merge-base", &landed, "origin/main"]), landed, "with its own commits");
    }
    scratch.forge().world(|world| {
        let lands: Vec<_> = world.pulls.values().filter(|it| it.head.starts_with("landfall/land-")).collect();
        assert_eq!(lands.len(), 2, "one for each landing: {lands:?}");
        assert!(lands.iter().all(|it| it.merged.is_some()), "{lands:?}");
        assert!(
            lands[0].title.contains("Add one.txt") && lands[1].title.contains("Add two.txt"),
            "{lands:?}"
        );
    });
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn an_issue_is_merged_with_the_landing_that_the_forge_merges() {
    let (scratch, _) = protected("pull-request");
    let turns = [
        "[[step.spec]]\nsignal = \"complete\"\n[[step.spec.write]]\npath = \"docs/spec/issue-1-greet.md\"\ntext = \"# Greet\\n\"\n".to_owned(),
        works("code", "greet.txt", "\"complete\""),
        says("review", r#"{"findings": [], "resolved": []}"#),
    ];
    let body = format!(
        "- [ ] <!-- verify: file_exists \"greet.txt\" --> it is there\n```landfall-script\n{}\n```\n",
        turns.concat()
    );
    let number =
        scratch.forge().world(|world| world.opened("Greet", &body, &["triaged", "size/M", "type/bug"]));
    let said = scratch.landfall(&["auto", &number.to_string()]);
    let log = scratch.landfall(&["log", "T1"]).out;
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(on_main(&scratch).contains("greet.txt"));
    scratch.forge().world(|world| {
        world.see_pushes();
        let merged =
            |head: &str| world.pulls.values().any(|it| it.head.starts_with(head) && it.merged.is_some());
        assert!(merged("landfall/land-") && merged("landfall/issue-1"), "{:?}", world.pulls);
        assert!(world.issues[&number].closed.is_some(), "{:?}", world.issues[&number]);
    });
}

#[test]
fn what_the_forge_looks_at_first_is_merged_when_its_checks_are_green() {
    let (scratch, _) = protected("pull-request");
    scratch.forge().world(|world| world.needs_checks = true);
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the landing to be offered", || !offered(&scratch).is_empty());
    checked(&scratch, running());
    let asked = scratch.forge().count("PUT", "/merge");
    scratch.eventually("it to be asked twice more", || scratch.forge().count("PUT", "/merge") >= asked + 2);
    assert!(!run.is_over(), "{}", scratch.landfall(&["log", "T1"]).out);
    assert!(!on_main(&scratch).contains("one.txt"));
    checked(&scratch, green());
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0));
    assert!(on_main(&scratch).contains("one.txt"));
}

#[test]
fn a_forge_that_merges_nothing_is_told_of_and_the_next_run_goes_on() {
    let (scratch, _) = protected("pull-request");
    let why = "At least 1 approving review is required by reviewers with write access.";
    scratch.forge().world(|world| world.merges_none = Some(why.to_owned()));
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    let said = scratch.landfall(&["run"]);
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("approving review") && told.contains("pull request #"), "{told}");
    assert!(!on_main(&scratch).contains("one.txt"), "nothing was forced");
    scratch.forge().world(|world| world.merges_none = None);
    scratch.landfall(&["run"]).ok();
    assert!(on_main(&scratch).contains("one.txt"));
    scratch
        .forge()
        .world(|world| assert_eq!(world.pulls.len(), 1, "it is the same pull request: {:?}", world.pulls));
}

#[test]
fn others_who_merge_meanwhile_are_verified_with_it_first() {
    let (scratch, bare) = protected("pull-request");
    scratch.forge().world(|world| world.needs_checks = true);
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    let mut run = scratch.start(&["run"]);
    let git = |args: &[&str]| git_at(&bare, args);
    scratch.eventually("the landing to be offered", || !offered(&scratch).is_empty());
    let first = offered(&scratch);
    checked(&scratch, running());
    let (main, tree) = (git(&["rev-parse", "main"]), git(&["rev-parse", "main^{tree}"]));
    let theirs = git(&["commit-tree", &tree, "-p", &main, "-m", "Somebody else's"]);
    git(&["update-ref", "refs/heads/main", &theirs]);
    scratch.eventually("theirs to be taken in", || offered(&scratch) != first);
    checked(&scratch, green());
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0));
    assert!(on_main(&scratch).contains("one.txt"));
    assert_eq!(scratch.git(&["merge-base", &theirs, "origin/main"]), theirs);
    let merged = scratch.git(&["rev-parse", "origin/main^2"]);
    assert_eq!(scratch.git(&["merge-base", &theirs, &merged]), theirs, "what was merged held theirs");
}

#[test]
fn landings_that_come_while_the_forge_looks_are_for_the_next_offer() {
    let (scratch, _) = protected("pull-request");
    scratch.forge().world(|world| world.needs_checks = true);
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the landing to be offered", || !offered(&scratch).is_empty());
    let first = offered(&scratch);
    checked(&scratch, running());
    scratch.task("Add two.txt", &adds("two.txt"), &[]);
    scratch.eventually("the second to land", || scratch.status("T2") == "done");
    assert_eq!(offered(&scratch), first, "the forge goes on with what it looks at");
    checked(&scratch, green());
    scratch.eventually("the next offer", || ![first.clone(), String::new()].contains(&offered(&scratch)));
    assert!(on_main(&scratch).contains("one.txt"));
    checked(&scratch, green());
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0));
    assert!(on_main(&scratch).contains("two.txt"));
}

#[test]
fn an_offer_that_somebody_closed_is_not_made_again() {
    let (scratch, _) = protected("pull-request");
    scratch
        .forge()
        .world(|world| world.merges_none = Some("At least 1 approving review is required.".to_owned()));
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    scratch.landfall(&["run"]);
    assert!(!offered(&scratch).is_empty());
    scratch.forge().world(|world| {
        world.merges_none = None;
        world.pulls.values_mut().for_each(|pull| pull.closed = true);
    });
    let said = scratch.landfall(&["run"]);
    let told = format!("{}{}", said.out, said.err);
    assert!(
        told.contains("somebody closed pull request #1") && told.contains("`landfall rollback`"),
        "{told}"
    );
    assert!(!on_main(&scratch).contains("one.txt"));
    scratch.forge().world(|world| assert_eq!(world.pulls.len(), 1, "{:?}", world.pulls));
}

#[test]
fn what_the_forge_merged_is_known_to_have_landed() {
    let (scratch, _) = protected("pull-request");
    let body = format!("```landfall-script\n{}\n```\n", works("code", "small.txt", "\"complete\""));
    let number =
        scratch.forge().world(|world| world.opened("Small", &body, &["triaged", "size/XS"])).to_string();
    let said = scratch.landfall(&["auto", &number]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let seen = scratch.landfall(&["--json", "reconcile", &number, "--phase", "code-patch"]).json();
    assert_eq!(seen["matches_expected"], true, "{seen}");
    assert_eq!(seen["actual"]["commits_found"], true, "{seen}");
}

#[test]
fn an_engine_that_ends_around_the_merge_lands_once() {
    for point in ["publish.merge.before", "publish.merge.after"] {
        let (mut scratch, _) = protected("pull-request");
        scratch.task("Add one.txt", &adds("one.txt"), &[]);
        scratch.set("LANDFALL_CRASH", point);
        let crashed = scratch.landfall(&["run"]);
        assert!(crashed.code.is_none(), "{point} was passed and ended the engine: {crashed:?}");
        scratch.unset("LANDFALL_CRASH");
        scratch.landfall(&["run"]).ok();
        assert!(on_main(&scratch).contains("one.txt"), "{point}");
        scratch.forge().world(|world| assert_eq!(world.pulls.len(), 1, "{point}: {:?}", world.pulls));
        let merges =
            scratch.git(&["log", "--merges", "--format=%s", "--grep=^Merge landfall/land-", "origin/main"]);
        assert_eq!(merges.lines().count(), 1, "{point}: {merges}");
    }
}

#[test]
fn a_branch_that_cannot_be_pushed_is_named_with_the_way_out() {
    let (scratch, _) = protected("push");
    scratch.task("Add one.txt", &adds("one.txt"), &[]);
    let said = scratch.landfall(&["run"]);
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("Protected branch") && told.contains("land.publish = \"pull-request\""), "{told}");
}

#[test]
fn without_a_forge_nobody_merges_a_pull_request() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[land]\npublish = \"pull-request\"\n");
    let said = scratch.landfall(&["run"]);
    assert_ne!(said.code, Some(0));
    assert!(said.err.contains("merges none") && said.err.contains("tracker.kind"), "{}", said.err);
}
