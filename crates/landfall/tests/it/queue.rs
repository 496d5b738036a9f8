//! The landing queue from outside: a red batch is searched for its culprit, the others land, and a person sees how.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::autopilot::writes;

/// Two files that are fine alone and not together.
const CLASH: &str = "if [ -e one.txt ] && [ -e clash.txt ]; then echo '0 passed, 1 failed'; exit 1; fi\n\
                     echo '1 passed, 0 failed'\n";

/// Five verified tasks in line, of which the fourth does not fit to the first.
fn five_in_line(scratch: &ScratchProject) {
    scratch.file("test.sh", CLASH);
    scratch.more_settings("[run]\nslots = 5\n[land]\nbatch = 5");
    for (number, file) in [(1, "one.txt"), (2, "two.txt"), (3, "three.txt"), (5, "five.txt")] {
        scratch.task(&format!("Task {number}"), &writes(file), &["--priority", &number.to_string()]);
    }
    let mends = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"clash.txt\"\ntext = \"x\\n\"\n\
                 [[iteration]]\nsignal = \"complete\"\ndelete = [\"clash.txt\"]\n[[iteration.write]]\npath = \"four.txt\"\ntext = \"x\\n\"\n";
    scratch.task("Clashes", mends, &["--priority", "4"]);
    scratch.landfall(&["queue", "pause", "--reason", "until all stand in line"]).ok();
    let said = scratch.landfall(&["run"]);
    assert_eq!(said.code, Some(9), "a held queue wants a person: {}", said.err);
    assert!(said.out.contains("landfall queue resume"), "{}", said.out);
}

#[test]
fn a_red_batch_is_searched_and_the_search_is_drawn() {
    let scratch = ScratchProject::new(LANDFALL);
    five_in_line(&scratch);
    let report = scratch.landfall(&["--json", "queue"]).json();
    let line: Vec<&str> =
        report["line"].as_array().expect("a list").iter().filter_map(|it| it["task"].as_str()).collect();
    assert_eq!(line, ["T1", "T2", "T3", "T5", "T4"], "by urgency");
    assert_eq!(report["hold"]["why"], "person");
    let why = scratch.landfall(&["why", "T5"]).ok();
    assert!(
        why.contains("the queue is held: until all stand in line") && why.contains("queue resume"),
        "{why}"
    );

    scratch.landfall(&["queue", "resume"]).ok();
    let said = scratch.landfall(&["run"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("T5 sent back out of B1"), "{}", said.err);
    let text = scratch.landfall(&["queue"]).ok();
    let drawn = text.lines().find(|line| line.contains("B1 ")).expect("the batch").to_owned();
    assert!(drawn.contains("T1 T2 T3 T5 T4   5 ✗ → ") && drawn.contains("T5 made it red"), "{drawn}");
    assert!(drawn.contains("the first 3 landed as "), "{drawn}");
    let past = scratch.landfall(&["--json", "queue"]).json()["past"].clone();
    let first = past.as_array().expect("a list").iter().find(|it| it["batch"] == "B1").expect("B1").clone();
    let looks = first["looks"].as_array().map_or(0, Vec::len);
    assert!(looks <= 7, "at most 1 + 2·⌈log₂ 5⌉: {first}");
    assert_eq!(first["culprit"], "T5");
    // Whoever was sent back mended it, and landed after the others.
    assert_eq!(scratch.status("T5"), "done");
    assert_eq!(scratch.prompts("T5").len(), 2, "it heard why");
    assert!(scratch.left_behind().is_empty());
}

#[test]
fn a_task_is_taken_out_of_the_line_and_put_back() {
    let scratch = ScratchProject::new(LANDFALL);
    five_in_line(&scratch);
    let said = scratch.landfall(&["queue", "eject", "T5"]).ok();
    assert!(said.contains("T5 was taken out") && said.contains("landfall retry T5"), "{said}");
    let twice = scratch.landfall(&["queue", "eject", "T5"]);
    assert!(twice.code == Some(6) && twice.err.contains("does not stand in the landing queue"), "{twice:?}");
    scratch.landfall(&["queue", "resume"]).ok();
    let said = scratch.landfall(&["run"]);
    assert_eq!((said.code, scratch.status("T5").as_str()), (Some(9), "waiting"), "{}", said.err);
    let past = scratch.landfall(&["--json", "queue"]).json()["past"].clone();
    assert_eq!(past[0]["doing"], "landed", "all four at once: {past}");
    assert_eq!(past[0]["members"].as_array().map(Vec::len), Some(4));
    let commit = scratch.detail("T1")["landed"].clone();
    assert_eq!(scratch.detail("T4")["landed"], commit, "as one commit");
    let again = scratch.landfall(&["queue", "resume"]);
    assert!(again.code == Some(6) && again.err.contains("is not held"), "{again:?}");
    scratch.landfall(&["retry", "T5"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T5"), "done");
}

#[test]
fn an_empty_queue_says_so() {
    let scratch = ScratchProject::new(LANDFALL);
    assert_eq!(scratch.landfall(&["queue"]).ok(), "the landing queue is empty\n");
    assert_eq!(scratch.landfall(&["queue", "show", "--json"]).json()["line"], serde_json::json!([]));
    let said = scratch.landfall(&["queue", "eject", "T1"]);
    assert_eq!(said.code, Some(5), "{said:?}");
}

#[test]
fn works_under_way_that_do_not_fit_together_are_shown() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 2\n");
    let both = |text: &str| {
        format!(
            "[[iteration]]\nrun = [\"sh\", \"-c\", \"echo {text} > both.txt; git add both.txt; git commit -qm x; sleep 120\"]\n"
        )
    };
    scratch.task("One", &both("one"), &[]);
    scratch.task("Other", &both("other"), &[]);
    let mut run = scratch.start(&["run"]);
    let status = || scratch.landfall(&["--json", "status"]).json()["clashes"][0].clone();
    scratch.eventually("a look at the work under way", || !status().is_null());
    let clash = status();
    assert_eq!(
        (&clash["task"], &clash["with"], &clash["files"][0]),
        (&"T1".into(), &"T2".into(), &"both.txt".into())
    );
    let text = scratch.landfall(&["status"]).ok();
    assert!(text.contains("clash   T1 and T2 (both.txt) do not fit together as they stand\n"), "{text}");
    let why = scratch.landfall(&["why", "T2"]).ok();
    assert!(why.contains("it does not fit together with T1: both.txt"), "{why}");
    assert_eq!(scratch.landfall(&["--json", "why", "T2"]).json()["clashes"][0]["with"], "T1");
    scratch.landfall(&["stop", "--now"]).ok();
    run.wait(std::time::Duration::from_secs(60));
}
