//! `landfall verify`: the criteria of an issue, from outside, on the tracker of files.

use landfall_testkit::Scratch;

use crate::LANDFALL;

const BODY: &str = "### Pre-merge (auto-verified)\n\n\
- [ ] <!-- verify: file_contains \"shop.txt\" \"open\" --> the shop is open\n\
- [ ] <!-- verify: command \"test -f shop.txt\" --> it is there\n\n\
### Post-merge\n\n\
- [ ] a person likes it\n";

fn issue(scratch: &Scratch, body: &str) {
    use landfall_trackers::local::Local;
    use landfall_trackers::tracker::{Clock, Marker, NewIssue, Title, Tracker as _};
    struct Then;
    impl Clock for Then {
        fn now(&self) -> landfall_engine::model::Timestamp {
            landfall_engine::model::Timestamp(1_800_000_000_000)
        }
        fn wait(&self, _: u64) {}
    }
    let local = Local::new(&scratch.project().join("issues"), "landfall", std::sync::Arc::new(Then));
    let new = NewIssue {
        marker: Marker::new("test/shop").expect("a key"),
        title: Title::of("Open the shop"),
        body: body.to_owned(),
        labels: [].into(),
    };
    local.create_issue(&new).expect("it can be made");
}

fn scratch() -> Scratch {
    let scratch = Scratch::new(LANDFALL);
    scratch.more_settings("[tracker]\nkind = \"local\"\nfolder = \"issues\"\n");
    scratch
}

/// Everything that is written about issues.
fn words(scratch: &Scratch) -> String {
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
