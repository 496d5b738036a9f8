//! `landfall issue verify`: the criteria of an issue, from outside, on the tracker of files.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::hold_file::HoldFile;
use crate::lifecycle::works;
use crate::pipeline::{script, there};

const BODY: &str = "### Pre-merge (auto-verified)\n\n\
- [ ] <!-- verify: file_contains \"shop.txt\" \"open\" --> the shop is open\n\
- [ ] <!-- verify: command \"test -f shop.txt\" --> it is there\n\n\
### Post-merge\n\n\
- [ ] a person likes it\n";

fn issue(scratch: &ScratchProject, body: &str) {
    use landfall_trackers::local::LocalTracker;
    use landfall_trackers::tracker::{Marker, NewIssue, Title, Tracker as _, TrackerClock, WaitEnd};
    struct Then;
    impl TrackerClock for Then {
        fn now(&self) -> landfall_engine::model::Timestamp {
            landfall_engine::model::Timestamp(1_800_000_000_000)
        }
        fn wait(&self, _: u64) -> WaitEnd {
            WaitEnd::Elapsed
        }
    }
    let local = LocalTracker::new(&scratch.project().join("issues"), "landfall", std::sync::Arc::new(Then));
    let new = NewIssue {
        marker: Marker::new("test/shop").expect("a key"),
        title: Title::from_text("Open the shop"),
        body: body.to_owned(),
        labels: [].into(),
    };
    local.create_issue(&new).expect("it can be made");
}

fn scratch() -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[tracker]\nkind = \"local\"\nfolder = \"issues\"\n");
    scratch
}

/// Everything that is written about issues.
fn words(scratch: &ScratchProject) -> String {
    let (mut all, mut open) = (Vec::new(), vec![scratch.project().join("issues")]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("the issues") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                all.push((std::fs::read_to_string(&path).unwrap_or_default(), path));
            }
        }
    }
    all.sort_by(|one, two| one.1.cmp(&two.1));
    all.into_iter().map(|(text, _)| text).collect()
}

#[test]
fn an_issue_that_does_not_hold_is_told_once_and_one_that_does_is_ticked() {
    let scratch = scratch();
    scratch.file("shop.txt", "closed\n");
    scratch.commit("a shop");
    issue(&scratch, BODY);
    scratch.landfall(&["issue", "label", "1", "--add", "phase/verify"]).ok();

    let before = words(&scratch);
    let dry = scratch.landfall(&["--json", "verify", "1", "--dry-run"]);
    let seen: serde_json::Value = serde_json::from_str(&dry.out).expect("an answer");
    let results = |seen: &serde_json::Value| -> Vec<String> {
        let all = seen["criteria"].as_array().expect("criteria");
        all.iter().map(|it| it["result"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(results(&seen), ["FAIL", "UNCERTAIN", "SKIPPED"], "{}", dry.err);
    assert_eq!(
        (seen["outcome"].as_str(), seen["dry_run"].as_bool(), dry.code),
        (Some("reopened"), Some(true), Some(8))
    );
    assert_eq!(words(&scratch), before, "a dry run changes nothing");

    let first = scratch.landfall(&["verify", "#1", "--full"]);
    assert_eq!(first.code, Some(8), "{}{}", first.out, first.err);
    assert!(first.out.contains("#1: something does not hold (time 1); back to work"), "{}", first.out);
    assert!(first.err.contains("1 box ticked"), "{}", first.err);
    let told = words(&scratch);
    assert_eq!(told.matches("verify-iteration: 1").count(), 1, "{told}");
    assert!(told.contains("- [x] <!-- verify: command"), "{told}");
    let again = scratch.landfall(&["verify", "1", "--full"]);
    assert_eq!(again.code, Some(8));
    assert!(again.err.contains("nothing was changed"), "{}", again.err);
    assert_eq!(words(&scratch), told, "nothing twice");

    scratch.file("shop.txt", "open\n");
    let unseen = scratch.landfall(&["--json", "verify", "1", "--full"]).out;
    assert!(unseen.contains("\"FAIL\""), "what is not committed is not there: {unseen}");
    scratch.commit("open it");
    for _ in 0..2 {
        let mended = scratch.landfall(&["verify", "1", "--full"]);
        assert_eq!(mended.code, Some(0), "{}{}", mended.out, mended.err);
        assert!(mended.out.contains("1 box is left for someone else"), "{}", mended.out);
    }
    let told = words(&scratch);
    assert_eq!(told.matches("verify-of:").count(), 2, "{told}");
    assert!(told.contains("phase/verify") && told.contains("- [ ] a person likes it"), "{told}");
    assert!(scratch.left_behind().is_empty());
}

#[test]
fn an_issue_that_nobody_worked_on_is_only_looked_at() {
    let scratch = scratch();
    scratch.file("shop.txt", "closed\n");
    scratch.commit("a shop");
    issue(&scratch, BODY);
    let before = words(&scratch);
    let seen = scratch.landfall(&["verify", "1", "--full"]);
    assert_eq!(seen.code, Some(8), "{}{}", seen.out, seen.err);
    assert!(seen.out.contains("#1: nobody has worked on it yet; 1 of 3 hold"), "{}", seen.out);
    assert!(
        seen.err.contains("nothing was changed") && seen.err.contains("`landfall auto 1`"),
        "{}",
        seen.err
    );
    assert_eq!(words(&scratch), before, "it stays as it is");
    scratch.file("shop.txt", "open\n");
    scratch.commit("open it");
    let holds = scratch.landfall(&["--json", "verify", "1", "--full"]);
    assert_eq!((holds.code, holds.json()["outcome"].as_str()), (Some(0), Some("not-begun")), "{}", holds.err);
    assert_eq!(words(&scratch), before);
    // Whoever did it by hand closes it: what only they can look at holds by that.
    scratch.landfall(&["issue", "label", "1", "--add", "phase/verify"]).ok();
    scratch.landfall(&["issue", "close", "1"]).ok();
    let closed = scratch.landfall(&["verify", "1", "--full"]);
    assert_eq!(closed.code, Some(0), "{}{}", closed.out, closed.err);
    assert!(
        closed.err.contains("a person closed it") && closed.err.contains("a person likes it"),
        "{}",
        closed.err
    );
    let told = words(&scratch);
    assert!(told.contains("phase/done") && !told.contains("phase/verify"), "{told}");
    assert!(told.contains("state = \"done\""), "{told}");
}

#[test]
fn an_issue_that_was_closed_and_does_not_hold_is_opened_again() {
    let scratch = scratch();
    scratch.file("shop.txt", "closed\n");
    scratch.commit("a shop");
    issue(&scratch, BODY);
    scratch.landfall(&["issue", "close", "1"]).ok();
    let seen = scratch.landfall(&["verify", "1", "--full"]);
    assert_eq!(seen.code, Some(8), "{}{}", seen.out, seen.err);
    assert!(words(&scratch).contains("state = \"open\""), "{}", words(&scratch));
}

#[test]
fn what_cannot_be_verified_is_refused_with_a_hint() {
    let scratch = scratch();
    let none = scratch.landfall(&["verify", "1"]);
    assert_eq!(none.code, Some(5), "{}", none.err);
    issue(&scratch, "No boxes here.\n");
    let empty = scratch.landfall(&["verify", "1"]);
    assert_eq!(empty.code, Some(6), "{}", empty.err);
    assert!(empty.err.contains("no acceptance criteria"), "{}", empty.err);
    for args in [
        &["verify", "0"] as &[_],
        &["verify", "x"],
        &["verify", "1", "--full", "--safe"],
        &["verify", "-1"],
        &["verify"],
    ] {
        assert_eq!(scratch.landfall(args).code, Some(2), "{args:?}");
    }
    let judge = scratch.landfall(&["verify", "1", "--judge", "nobody"]);
    assert_ne!(judge.code, Some(0));
}

/// Makes a small issue whose agent writes `file`; `more` stands at the head of that step.
fn small(scratch: &ScratchProject, criteria: &str, file: &str, more: &str) {
    let turn = format!(
        "[[step.code]]\n{more}signal = \"complete\"\n[[step.code.write]]\npath = {file:?}\ntext = \"x\\n\"\n"
    );
    let body = format!("{criteria}\n```landfall-script\n{turn}```\n");
    let sized = ["--size", "XS", "--label", "triaged"];
    scratch.landfall(&[&["issue", "new", "Small", "--body", &body][..], &sized].concat()).ok();
}

fn shown(scratch: &ScratchProject, number: u64) -> serde_json::Value {
    scratch.landfall(&["--json", "issue", "show", &number.to_string()]).json()
}

/// The state of an issue, and its phase.
fn stands(scratch: &ScratchProject, number: u64) -> (String, String) {
    let issue = &shown(scratch, number)["issue"];
    let labels = issue["labels"].as_array().expect("labels").iter().filter_map(serde_json::Value::as_str);
    let phase = labels.filter(|it| it.starts_with("phase/")).collect::<Vec<_>>().join(" ");
    (issue["state"].as_str().expect("a state").to_owned(), phase)
}

fn done() -> (String, String) {
    ("done".to_owned(), "phase/done".to_owned())
}

#[test]
fn what_has_landed_is_looked_at_while_it_waits_to_come_into_the_branch() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("README.md", "a\n");
    scratch.commit("a readme");
    small(&scratch, "- [ ] <!-- verify: command \"test -f one.txt\" --> it is there\n", "one.txt", "");
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.file("README.md", "dirty\n");
    let run = scratch.landfall(&["auto", "1"]);
    assert!(run.out.starts_with("auto #1 complete"), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "it waits: {}", run.err);
    let seen = scratch.landfall(&["verify", "1", "--full"]);
    assert_eq!(seen.code, Some(0), "{}{}", seen.out, seen.err);
    assert_eq!(stands(&scratch, 1), done());
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md", "the checkout is not touched");
    // They went on meanwhile: what landed is still there, and comes in with the next run.
    scratch.commit("my own");
    scratch.landfall(&["verify", "1", "--full"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "x");
    scratch.landfall(&["verify", "1", "--full"]).ok();
    assert_eq!(stands(&scratch, 1), done());
}

#[test]
fn a_look_that_runs_nothing_takes_nothing_back_and_says_how_to_look_closer() {
    let scratch = ScratchProject::new(LANDFALL);
    let hint = "<!-- verify: command \"test -f one.txt\" -->";
    small(&scratch, &format!("- [ ] {hint} it is there\n"), "one.txt", "");
    scratch.landfall(&["auto", "1"]).ok();
    let before = shown(&scratch, 1);
    for args in [&["verify", "1", "--dry-run"][..], &["verify", "1"]] {
        let seen = scratch.landfall(args);
        assert!(seen.out.contains("taken on trust"), "{}{}", seen.out, seen.err);
        assert!(seen.err.contains("`landfall issue verify 1 --full`"), "{}", seen.err);
        assert!(!seen.err.contains("issue tick") && !seen.err.contains("phase/verify"), "{}", seen.err);
    }
    let after = shown(&scratch, 1);
    assert_eq!((stands(&scratch, 1), &after["body"]), (done(), &before["body"]));
    // What an earlier look or a person ticked does not stand in the way of the last box.
    small(&scratch, &format!("- [ ] {hint} it is there\n- [ ] a person likes it\n"), "two.txt", "");
    let run = scratch.landfall(&["auto", "2"]).ok();
    assert!(run.starts_with("auto #2 partial success"), "{run}");
    scratch.landfall(&["issue", "tick", "2", "2"]).ok();
    let seen = scratch.landfall(&["verify", "2"]);
    assert_eq!(seen.code, Some(0), "{}{}", seen.out, seen.err);
    assert!(
        seen.err.contains("it is there (its box is ticked)"),
        "what was not looked at is named: {}",
        seen.err
    );
    assert_eq!(stands(&scratch, 2), done());
    // Boxes that were ticked before anybody looked say nothing.
    small(&scratch, &format!("- [x] {hint} it is there\n"), "three.txt", "");
    scratch.landfall(&["issue", "label", "3", "--add", "phase/verify"]).ok();
    scratch.landfall(&["verify", "3"]);
    assert_eq!(stands(&scratch, 3), ("open".to_owned(), "phase/verify".to_owned()));
}

#[test]
fn what_is_closed_as_not_planned_is_left_alone_and_goes_on_with_its_work_when_opened_again() {
    let scratch = ScratchProject::new(LANDFALL);
    small(&scratch, "- [ ] <!-- verify: file_exists \"one.txt\" --> it is there\n", "one.txt", "");
    scratch.landfall(&["issue", "close", "1", "--not-planned"]).ok();
    for args in
        [&["auto", "1"][..], &["auto", "--resume", "1"], &["verify", "1"], &["auto", "1", "--dry-run"]]
    {
        let said = scratch.landfall(args);
        assert_eq!(said.code, Some(6), "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("#1 is closed as not planned"), "{args:?}: {}", said.err);
        assert!(said.err.contains("`landfall issue reopen 1`"), "{args:?}: {}", said.err);
    }
    assert_eq!(stands(&scratch, 1), ("not-planned".to_owned(), String::new()));
    assert_eq!(scratch.landfall(&["list"]).ok(), "", "nobody begins it");

    let hold = HoldFile::new(&scratch, "code");
    small(&scratch, "", "two.txt", &hold.line());
    let mut run = scratch.start(&["auto", "2"]);
    scratch.eventually("its agent is at work", || scratch.prompts("T1").len() == 1);
    scratch.landfall(&["issue", "close", "2", "--not-planned"]).ok();
    hold.release();
    assert_ne!(run.wait(std::time::Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "blocked");
    // Tried again while it is closed, by whatever command, it is not over.
    scratch.landfall(&["auto", "--resume", "2"]);
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    scratch.landfall(&["issue", "reopen", "2"]).ok();
    let said = scratch.landfall(&["auto", "2"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(scratch.status("T1"), "done", "{}", said.err);
    let tasks = scratch.landfall(&["--json", "list"]).json();
    assert!(!tasks.to_string().contains("\"T2\""), "the same task goes on: {tasks}");
    assert_eq!(scratch.git(&["show", "main:two.txt"]), "x");
}

#[test]
fn the_same_commit_fails_once_however_it_is_looked_at_and_a_tick_is_no_proof() {
    let scratch = scratch();
    scratch.file("shop.txt", "closed\n");
    scratch.commit("a shop");
    issue(&scratch, BODY);
    scratch.landfall(&["issue", "label", "1", "--add", "phase/verify"]).ok();
    let fails = |args: &[&str]| {
        let seen = scratch.landfall(args);
        assert_eq!(seen.code, Some(8), "{args:?}: {}{}", seen.out, seen.err);
        assert!(seen.out.contains("something does not hold (time 1)"), "{args:?}: {}", seen.out);
    };
    fails(&["verify", "1"]);
    fails(&["verify", "1", "--full"]);
    let ticked = scratch.landfall(&["issue", "tick", "1", "1"]).ok();
    assert!(ticked.contains("is ticked") && ticked.contains("looked at all the same"), "{ticked}");
    let by_hand = scratch.landfall(&["issue", "tick", "1", "likes"]).ok();
    assert!(by_hand.contains("is ticked") && !by_hand.contains("hint"), "{by_hand}");
    fails(&["verify", "1", "--full"]);
    fails(&["verify", "1"]);
    let told = words(&scratch);
    assert!(told.contains("verify-iteration: 1") && !told.contains("verify-iteration: 2"), "{told}");
    scratch.file("shop.txt", "still closed\n");
    scratch.commit("another try");
    let seen = scratch.landfall(&["verify", "1", "--full"]);
    assert!(seen.out.contains("(time 2)"), "another commit is another try: {}", seen.out);
}

/// An issue that wants a file, and an agent that writes these files, one after the other; the last one commits nothing.
fn landed_once_and_sent_back(scratch: &ScratchProject, wanted: &str, files: &[&str]) -> String {
    let mut turns: Vec<String> = files.iter().map(|file| works("code", file, "\"complete\"")).collect();
    turns.push("[[step.code]]\nsignal = \"complete\"\ncommit = false\n".to_owned());
    let body = format!("{}\n{}", there(wanted), script(&turns));
    let args = ["--json", "issue", "new", "Two steps", "--body", &body, "--size", "XS", "--label", "triaged"];
    let number = scratch.landfall(&args).json()["issue"]["number"].as_u64().expect("a number").to_string();
    scratch.landfall(&["auto", &number]);
    number
}

#[test]
fn a_rollback_takes_back_everything_that_landed_of_a_task() {
    let scratch = ScratchProject::new(LANDFALL);
    let number = landed_once_and_sent_back(&scratch, "two.txt", &["one.txt", "two.txt"]);
    let files = || scratch.git(&["ls-tree", "--name-only", "main"]);
    assert!(files().contains("one.txt") && files().contains("two.txt"), "{}", files());
    scratch.file("mine.txt", "x\n");
    scratch.git(&["add", "mine.txt"]);
    scratch.git(&["commit", "--quiet", "-m", "Mine"]);
    let said = scratch.landfall(&["rollback", &format!("#{number}")]).ok();
    assert_eq!(said.matches("commit ").count(), 2, "both are named: {said}");
    scratch.landfall(&["run"]).ok();
    let left = files();
    assert!(!left.contains("one.txt") && !left.contains("two.txt") && left.contains("mine.txt"), "{left}");
}

#[test]
fn work_that_landed_and_holds_after_all_has_its_certificate_and_can_be_taken_back() {
    let scratch = ScratchProject::new(LANDFALL);
    let number = landed_once_and_sent_back(&scratch, "typo.txt", &["one.txt"]);
    let shown = scratch.landfall(&["--json", "issue", "show", &number]).json();
    let body = shown["body"].as_str().expect("a text").replace("typo.txt", "one.txt");
    scratch.landfall(&["issue", "edit", &number, "--body", &body]).ok();
    let said = scratch.landfall(&["auto", &number]);
    assert!(said.out.contains("complete"), "{}\n{}", said.out, said.err);
    let commit = scratch.git(&["log", "-1", "--format=%H", "--", "one.txt"]);
    let landed = scratch.git(&["log", "--merges", "--format=%H", "main"]);
    let certificate = scratch.landfall(&["--json", "certificate", "T1"]).json();
    let of = certificate["landing"]["commit"].as_str().expect("a commit").to_owned();
    assert!(of == commit || landed.contains(&of), "{certificate}");
    assert!(scratch.landfall(&["diff", "T1"]).ok().contains("one.txt"));
    scratch.landfall(&["rollback", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert!(!scratch.git(&["ls-tree", "--name-only", "main"]).contains("one.txt"));
}
