//! Reviews from outside: what waits for a look, what a person says of it, and what becomes of that.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::autopilot::writes;

/// Writes `one`, and something else each time it is sent back.
const THRICE: &str = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"one\\n\"\n\
                      [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"two\\n\"\n\
                      [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"c.txt\"\ntext = \"three\\n\"\n";

fn before(scratch: &ScratchProject) -> Vec<String> {
    let list = scratch.landfall(&["--json", "review"]).json();
    let lines = list["before"].as_array().expect("a list");
    lines.iter().map(|it| it["task"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn work_is_sent_back_goes_back_to_an_earlier_attempt_and_lands_when_approved() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[review]\nmode = \"per-task\"");
    scratch.task("First", THRICE, &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    assert_eq!(before(&scratch), ["T1"]);
    let text = scratch.landfall(&["review"]).ok();
    assert!(
        text.contains("does not land before somebody has looked") && text.contains("performance"),
        "{text}"
    );

    let empty = scratch.landfall(&["review", "T1", "changes"]);
    assert!(empty.code == Some(2) && empty.err.contains("--issue tests"), "{empty:?}");
    let said = scratch
        .landfall(&["review", "T1", "changes", "--issue", "tests", "--hint", "next", "and mind the names"])
        .ok();
    assert!(said.contains("T1 goes back to its agent"), "{said}");
    assert_eq!(scratch.detail("T1")["tags"], serde_json::json!(["next"]));
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    let prompts = scratch.prompts("T1");
    let told = prompts.last().expect("it ran again");
    assert!(told.contains("There are no tests for it") && told.contains("mind the names"), "{told}");

    // Back to what the first attempt left: what the second wrote is gone, and kept.
    let kept = scratch.landfall(&["--json", "review"]).json()["before"][0]["attempts"].clone();
    let first = kept[0].as_u64().expect("an attempt");
    let wrong = scratch.landfall(&["review", "T1", "changes", "--from", "a99", "again"]);
    assert!(wrong.code == Some(2) && wrong.err.contains(&format!("a{first}")), "{wrong:?}");
    scratch
        .landfall(&["review", "T1", "changes", "--from", &format!("a{first}"), "the first was better"])
        .ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.landfall(&["review", "T1", "approve", "good", "now"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "one");
    assert_eq!(scratch.git(&["show", "main:c.txt"]), "three");
    assert!(before(&scratch).is_empty());
}

#[test]
fn landed_work_is_owed_a_look_and_what_is_said_of_it_becomes_tasks() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[review]\nmode = \"batch\"");
    for number in 1..=4 {
        scratch.task(&format!("Task {number}"), &writes(&format!("{number}.txt")), &[]);
    }
    let said = scratch.landfall(&["run"]);
    assert_eq!(said.code, Some(0), "nothing waits for it: {}", said.err);
    assert!(said.out.contains("4 landed tasks to look at"), "{}", said.out);
    let owed = || scratch.landfall(&["--json", "review"]).json()["after"].as_array().map_or(0, Vec::len);
    assert_eq!(owed(), 4);
    assert!(scratch.landfall(&["status"]).ok().contains("4 landed tasks to look at"));

    scratch.landfall(&["review", "T1,T2", "approve"]).ok();
    scratch.landfall(&["review", "T3", "defer"]).ok();
    assert_eq!(owed(), 2, "what is put off stays on the list");
    let said = scratch.landfall(&["--json", "review", "T3", "changes", "--issue", "docs"]).json();
    assert_eq!(said["tasks"][1]["id"], "T5", "a task of its own brings the changes: {said}");
    assert!(scratch.detail("T5")["body"].as_str().is_some_and(|body| body.contains("documentation")));
    scratch.landfall(&["cancel", "T5"]).ok();
    let said = scratch.landfall(&["review", "T4", "reject", "not", "wanted"]).ok();
    assert!(said.contains("T4 is rejected") && said.contains("T6 takes it back"), "{said}");
    scratch.landfall(&["run"]).ok();
    assert!(!scratch.project().join("4.txt").exists(), "taken back by a commit of its own");
    assert_eq!(owed(), 0);
}

#[test]
fn rejected_work_does_not_land_and_skipped_work_does() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[review.tags]\ncareful = \"per-task\"");
    scratch.task("First", &writes("1.txt"), &["--tag", "careful"]);
    scratch.task("Second", &writes("2.txt"), &["--tag", "careful"]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    let none = scratch.landfall(&["review", "T9", "skip"]);
    assert_eq!(none.code, Some(5), "{none:?}");
    scratch.landfall(&["review", "T1", "reject", "not", "like", "this"]).ok();
    scratch.landfall(&["review", "T2", "skip"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T2"), "done");
    assert!(!scratch.project().join("1.txt").exists());
    assert!(scratch.why("T1").contains("not like this"), "{}", scratch.why("T1"));
    let over = scratch.landfall(&["review", "T1", "approve"]);
    assert_eq!(over.code, Some(6), "{over:?}");
}

#[test]
fn the_room_of_a_reviewer_of_a_task_that_failed_is_given_up() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\niterations_max = 1\n");
    scratch.task("Never done", "say = \"hm\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed");
    let own = scratch.detail("T1")["workspace"].as_str().map(std::path::PathBuf::from).expect("it is kept");
    let room = own.with_file_name("T1-review");
    let rooms = own.with_file_name(".engine").join("rooms");
    for (from, to) in [(&own, &room), (&rooms.join("T1"), &rooms.join("T1-review"))] {
        let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
        assert!(copied.success(), "{}", from.display());
    }
    scratch.task("Lands", "signal = \"complete\"\n[[write]]\npath = \"b\"\ntext = \"b\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert!(!room.exists() && own.exists(), "only the room goes");
}
