//! The landing queue from outside: who lands together, what is verified of it, and who is at fault when it is red.
//!
//! To have several tasks in line at once, the queue is held while they are made and verified. What the check is asked to
//! look at is counted by the check itself, in a file outside of its sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::sandbox::open;

/// A script that writes `name` and is done.
fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}\"\ntext = \"{name}\\n\"\n")
}

/// The same, and gives up when it is asked again: whoever is sent back stays out.
fn writes_once(name: &str) -> String {
    format!(
        "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"{name}\"\ntext = \"{name}\\n\"\n\
         [[iteration]]\nsignal = \"blocked:I do not know better\"\n"
    )
}

/// A project with these settings of the queue, whose check counts its runs and then does `check`. The queue is held.
pub fn held(land: &str, check: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(
        "test.sh",
        &format!("echo \"$(ls | tr '\\n' ' ')\" >> ~/open/runs\n{check}\necho '1 passed, 0 failed'\n"),
    );
    scratch.more_settings(&format!("[land]\n{land}"));
    open(&scratch);
    scratch.landfall(&["queue", "pause", "--reason", "until all are there"]).ok();
    scratch
}

/// Lets agents work one after the other, until all of these stand in line.
#[track_caller]
pub fn fill(scratch: &ScratchProject, tasks: &[&str]) {
    let run = scratch.landfall(&["run", "--slots", "1"]);
    assert_eq!(run.code, Some(9), "a held queue needs you: {}\n{}", run.out, run.err);
    assert_eq!(line(scratch), tasks);
}

/// Who stands in line.
fn line(scratch: &ScratchProject) -> Vec<String> {
    let line = scratch.landfall(&["--json", "queue"]).json()["line"].clone();
    line.as_array()
        .expect("a list")
        .iter()
        .map(|it| it["task"].as_str().expect("a task").to_owned())
        .collect()
}

/// What became of a batch: who was in it, how many were looked at and whether that was green, and who made it red.
type Past = (String, Vec<(u64, bool)>, Option<String>);

/// What became of the batches, oldest first.
fn past(scratch: &ScratchProject) -> Vec<Past> {
    let past = scratch.landfall(&["--json", "queue"]).json()["past"].clone();
    let mut past = past.as_array().expect("a list").clone();
    past.sort_by_key(|it| it["batch"].as_str().and_then(|it| it[1..].parse::<u32>().ok()));
    let green = |look: &Value| matches!(look["outcome"].as_str(), Some("pass" | "flaky"));
    past.iter()
        .map(|it| {
            let members: Vec<&str> =
                it["members"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            let looks = it["looks"].as_array().expect("a list").iter();
            let looks = looks.map(|look| (look["count"].as_u64().expect("a number"), green(look))).collect();
            (members.join(" "), looks, it["culprit"].as_str().map(str::to_owned))
        })
        .collect()
}

/// Forgets what was looked at so far; counts from here.
fn count_anew(scratch: &ScratchProject) -> PathBuf {
    let runs = scratch.root().join("home/open/runs");
    std::fs::remove_file(&runs).ok(); // nothing was verified so far
    runs
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[track_caller]
fn done(scratch: &ScratchProject, tasks: &[&str]) {
    for task in tasks {
        assert_eq!(scratch.status(task), "done", "{}", scratch.why(task));
    }
}

/// Every first-parent commit of `main` passes `sh test.sh`, in a plain checkout, with a home of its own.
#[track_caller]
pub fn all_green(scratch: &ScratchProject) {
    let place = scratch.root().join("plain");
    let home = scratch.root().join("plain-home");
    std::fs::create_dir_all(home.join("open")).expect("ours");
    scratch.git(&["clone", "--quiet", ".", &place.display().to_string()]);
    for commit in scratch.git(&["rev-list", "--first-parent", "main"]).lines() {
        let git =
            |args: &[&str]| Command::new("git").arg("-C").arg(&place).args(args).status().expect("git runs");
        assert!(git(&["checkout", "--quiet", commit]).success());
        let check = Command::new("sh")
            .arg("test.sh")
            .current_dir(&place)
            .env("HOME", &home)
            .output()
            .expect("sh runs");
        assert!(check.status.success(), "{commit}: {}", String::from_utf8_lossy(&check.stdout));
    }
    std::fs::remove_dir_all(place).expect("ours");
}

/// The commits that landed each of these tasks, as the first-parent history of `main` tells.
fn landings(scratch: &ScratchProject, tasks: &[&str]) -> Vec<Vec<String>> {
    let log = scratch.git(&[
        "log",
        "--first-parent",
        "--format=%h %(trailers:key=Landfall-Task,valueonly,separator=%x20) ",
        "main",
    ]);
    let of = |task: &&str| {
        let has = |line: &&str| line.split(' ').skip(1).any(|it| it == *task);
        log.lines().filter(has).filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    tasks.iter().map(of).collect()
}

const FIVE: [&str; 5] = ["T1", "T2", "T3", "T4", "T5"];

#[test]
fn five_that_go_together_land_as_one_commit_that_was_verified_once() {
    let scratch = held("batch = 5", "");
    for name in ["f1", "f2", "f3", "f4", "f5"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &FIVE);
    let before = scratch.git(&["rev-parse", "main"]);
    let runs = count_anew(&scratch);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &FIVE);
    assert_eq!(lines(&runs).len(), 1, "{:?}", lines(&runs));
    assert_eq!(past(&scratch), [("T1 T2 T3 T4 T5".to_owned(), vec![(5, true)], None)]);
    let parents = scratch.git(&["rev-parse", "main^@"]);
    let parents: Vec<&str> = parents.lines().collect();
    assert_eq!(
        (parents.len(), parents[0]),
        (6, before.as_str()),
        "one merge of all five onto what was there"
    );
    let tree = scratch.git(&["rev-parse", "main^{tree}"]);
    for (place, task) in FIVE.iter().enumerate() {
        let certificate = scratch.landfall(&["certificate", task]).json();
        assert_eq!(certificate["landing"]["commit"], scratch.git(&["rev-parse", "main"]));
        assert_eq!(certificate["verification"]["tree"], tree, "what was tested is what landed");
        assert_eq!(certificate["work"]["head"], parents[place + 1], "{task} with its own work");
    }
    all_green(&scratch);
}

#[test]
fn a_batch_of_one_lands_each_alone() {
    let scratch = held("batch = 1\nspeculate = 0", "");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes(name), &[]);
    }
    // A held queue takes no more than it could land at once.
    while line(&scratch).len() < 3 {
        let before = line(&scratch).len();
        scratch.landfall(&["run", "--slots", "3"]);
        assert!(line(&scratch).len() > before, "{:?}", line(&scratch));
    }
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    let mut commits: Vec<Vec<String>> = landings(&scratch, &["T1", "T2", "T3"]);
    commits.dedup();
    assert_eq!(commits.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1], "{commits:?}");
    all_green(&scratch);
}

/// Two members that are green with everybody else, and red together.
const TWO_AND_FOUR: &str = "if [ -e f2 ] && [ -e f4 ]; then echo 'f2 and f4 do not go together'; exit 1; fi";

#[test]
fn a_red_batch_of_five_lands_four_and_sends_the_culprit_back_with_the_reason() {
    let scratch = held("batch = 5", TWO_AND_FOUR);
    for name in ["f1", "f2", "f3", "f4", "f5"] {
        scratch.task(name, &writes_once(name), &[]);
    }
    fill(&scratch, &FIVE);
    let runs = count_anew(&scratch);
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    done(&scratch, &["T1", "T2", "T3", "T5"]);
    assert_eq!(scratch.status("T4"), "blocked", "{}", scratch.why("T4"));
    let past = past(&scratch);
    assert_eq!(past[0].0, "T1 T2 T3 T4 T5");
    assert_eq!(past[0].2.as_deref(), Some("T4"), "{past:?}");
    assert_eq!(past[0].1, [(5, false), (2, true), (3, true), (4, false)], "by halves, from the front");
    let looks: usize = past.iter().map(|it| it.1.len()).sum();
    assert!(looks <= 7, "1 + 2·⌈log₂ 5⌉ verifications at most: {past:?}");
    // A red run is made sure of once; whether the base is at fault is looked at once.
    assert!(lines(&runs).len() <= 7 + 3, "{:?}", lines(&runs));

    // The agent, the journal and the person are told why.
    let prompts = scratch.prompts("T4");
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("f2 and f4 do not go together"), "{}", prompts[1]);
    let ejected = scratch.facts("T4", "ejected");
    assert_eq!(ejected.len(), 1);
    assert!(ejected[0]["text"].as_str().is_some_and(|text| text.contains("B1")), "{ejected:?}");
    for task in ["T1", "T2", "T3", "T5"] {
        assert_eq!(scratch.prompts(task).len(), 1, "the agent of {task} is not bothered");
        assert_eq!(scratch.facts(task, "ejected").len(), 0);
    }
    let log = scratch.landfall(&["log"]).ok();
    assert!(log.contains("T4   sent back out of B1"), "{log}");
    assert_eq!(landings(&scratch, &FIVE).iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 0, 1]);
    all_green(&scratch);
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn why_a_culprit_was_sent_back_is_told_while_its_agent_is_at_it_again() {
    let scratch = held(
        "batch = 3",
        "if [ -e f1 ] && [ -e f2 ] && [ ! -e both ]; then echo 'no two without both'; exit 1; fi",
    );
    scratch.task("f1", &writes("f1"), &[]);
    let second = format!(
        "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"f2\"\ntext = \"f2\\n\"\n\
         [[iteration]]\nsignal = \"pending:shall I make both?\"\n[[iteration]]\n{}",
        "signal = \"complete\"\n[[iteration.write]]\npath = \"both\"\ntext = \"both\\n\"\n"
    );
    scratch.task("f2", &second, &[]);
    scratch.task("f3", &writes("f3"), &[]);
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    done(&scratch, &["T1", "T3"]);
    let told = scratch.landfall(&["show", "T2"]).ok() + &scratch.landfall(&["log", "--task", "T2"]).out;
    assert!(told.contains("no two without both"), "{told}");
    scratch.landfall(&["answer", "T2", "yes"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T2"]);
    assert_eq!(scratch.git(&["show", "main:both"]), "both");
    all_green(&scratch);
}

#[test]
fn a_flaky_batch_is_run_once_more_and_lands() {
    let flaky = "if [ -e f1 ] && [ -e f2 ] && [ ! -e ~/open/flaked ]; then touch ~/open/flaked; echo 'a hiccup'; exit 1; fi";
    let scratch = held("batch = 3", flaky);
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    let runs = count_anew(&scratch);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T1", "T2", "T3"]);
    assert_eq!(past(&scratch), [("T1 T2 T3".to_owned(), vec![(3, true)], None)], "nobody was searched for");
    let with_work = lines(&runs).iter().filter(|files| files.contains("f1")).count();
    assert_eq!(with_work, 2, "{:?}", lines(&runs));
    let flakes = scratch.landfall(&["--json", "queue"]).json()["flakes"].clone();
    assert_eq!((&flakes[0]["check"], &flakes[0]["flakes"]), (&"tests".into(), &1.into()), "{flakes}");
}

#[test]
fn a_single_that_is_red_with_a_new_base_goes_back_without_a_search() {
    let scratch =
        held("batch = 4", "if [ -e f1 ] && [ -e mine ]; then echo 'f1 is not wanted any more'; exit 1; fi");
    scratch.task("f1", &writes_once("f1"), &[]);
    fill(&scratch, &["T1"]);
    scratch.file("mine", "mine\n");
    scratch.commit("mine");
    let mine = scratch.git(&["rev-parse", "main"]);
    let runs = count_anew(&scratch);
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    assert_eq!(past(&scratch), [("T1".to_owned(), vec![(1, false)], Some("T1".to_owned()))]);
    let with_work = lines(&runs).iter().filter(|files| files.contains("f1")).count();
    assert_eq!(with_work, 2, "once, and once more to be sure: {:?}", lines(&runs));
    assert!(scratch.prompts("T1")[1].contains("f1 is not wanted any more"));
    assert_eq!(scratch.git(&["rev-parse", "main"]), mine);
}

#[test]
fn the_next_batch_is_verified_on_top_of_the_one_before_it_lands() {
    // The check of the first batch waits until the second is being checked, too.
    let meet = "if [ -e f3 ]; then touch ~/open/second; \
                elif [ -e f1 ] && [ -e f2 ]; then while [ ! -e ~/open/second ]; do sleep 0.02; done; fi";
    let scratch = held("batch = 2\nspeculate = 1", "");
    for name in ["f1", "f2", "f3", "f4"] {
        scratch.task(name, &writes(name), &[]);
    }
    while line(&scratch).len() < 4 {
        let before = line(&scratch).len();
        scratch.landfall(&["run", "--slots", "4"]);
        assert!(line(&scratch).len() > before, "{:?}", line(&scratch));
    }
    // Only now, so that nothing else waits; the new base has all of it verified again.
    let names: Vec<String> = line(&scratch).iter().map(|task| format!("f{}", &task[1..])).collect();
    let meet = meet.replace("f1", &names[0]).replace("f2", &names[1]).replace("f3", &names[2]);
    let check = std::fs::read_to_string(scratch.project().join("test.sh")).expect("ours");
    scratch.file("test.sh", &format!("{meet}\n{check}"));
    scratch.commit("the second meets the first");
    scratch.landfall(&["queue", "resume"]).ok();
    let mut run = scratch.start(&["run"]);
    assert_eq!(run.wait(Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    done(&scratch, &["T1", "T2", "T3", "T4"]);
    assert_eq!(past(&scratch).len(), 2, "{:?}", past(&scratch));
    assert!(
        past(&scratch).iter().all(|it| it.1 == [(2, true)]),
        "each was verified once: {:?}",
        past(&scratch)
    );
    all_green(&scratch);
}

#[test]
fn a_task_that_needs_another_in_line_lands_after_it() {
    let scratch = held("batch = 4", "");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["edit", "T1", "--needs", "T3"]).ok();
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T1", "T2", "T3"]);
    let order: Vec<String> = past(&scratch).into_iter().map(|it| it.0).collect();
    assert_eq!(order, ["T2 T3", "T1"]);
}

#[test]
fn a_task_taken_out_of_the_line_stays_out_until_it_is_asked_for() {
    let scratch = held("batch = 4", "");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "eject", "T2"]).ok();
    assert_eq!(line(&scratch), ["T1", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]);
    done(&scratch, &["T1", "T3"]);
    assert_eq!(landings(&scratch, &["T2"]), [vec![""; 0]]);
    scratch.landfall(&["retry", "T2"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T2"]);
    assert_eq!(scratch.prompts("T2").len(), 1, "its work was done");
}

#[test]
fn a_rollback_takes_back_one_member_of_a_batch_and_leaves_the_others() {
    let scratch = held("batch = 3", "");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(past(&scratch).len(), 1);
    scratch.file("later", "later\n");
    scratch.commit("later");
    scratch.landfall(&["rollback", "T2"]).ok();
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T4"]);
    let there = |name: &str| scratch.project().join(name).exists();
    assert_eq!(["f1", "f2", "f3", "later"].map(there), [true, false, true, true]);
    all_green(&scratch);
}

#[test]
fn verifications_without_end_are_stopped_with_a_reason() {
    // Whatever stands in line together is red; nobody alone is.
    let scratch = held("batch = 4\nrunaway = 2", "if [ -e mine ]; then echo 'never again'; exit 1; fi");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes_once(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.file("test.sh", "if [ -e f1 ] || [ -e f2 ] || [ -e f3 ]; then echo 'never again'; exit 1; fi; echo '1 passed, 0 failed'\n");
    scratch.commit("no more files");
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    let hold = scratch.landfall(&["--json", "queue"]).json()["hold"].clone();
    assert_eq!(hold["why"], "runaway", "{hold}");
    assert!(hold["reason"].as_str().is_some_and(|reason| reason.contains("nothing landed")), "{hold}");
    assert_ne!(line(&scratch), [""; 0], "whoever was not looked at stands in line still");
    // A person looks at it, and lets it go on: every culprit is found in the end.
    for _ in 0..3 {
        if scratch.landfall(&["queue", "resume"]).code == Some(0) {
            scratch.landfall(&["run"]);
        }
    }
    for task in ["T1", "T2", "T3"] {
        assert_eq!(scratch.status(task), "blocked", "{}", scratch.why(task));
    }
}

#[test]
fn a_gate_that_breaks_holds_the_queue_and_a_mended_one_lets_it_go_on() {
    let scratch = held("batch = 4", "");
    for name in ["f1", "f2"] {
        scratch.task(name, &writes(name), &[]);
    }
    fill(&scratch, &["T1", "T2"]);
    let check = std::fs::read_to_string(scratch.project().join("test.sh")).expect("ours");
    scratch.file("test.sh", "exit 1\n");
    scratch.commit("broken");
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    let hold = scratch.landfall(&["--json", "queue"]).json()["hold"].clone();
    assert_eq!(hold["why"], "gate", "{hold}");
    assert_eq!(line(&scratch), ["T1", "T2"], "nobody is at fault");
    scratch.file("test.sh", &check);
    scratch.commit("mended");
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    done(&scratch, &["T1", "T2"]);
    assert_eq!(scratch.prompts("T1").len() + scratch.prompts("T2").len(), 2);
}

// The engine ends while a batch is on its way.

/// Three that stand in line, of which the second does not go with the first.
fn three() -> ScratchProject {
    let scratch = held("batch = 3", "if [ -e f1 ] && [ -e f2 ]; then echo 'not these two'; exit 1; fi");
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes_once(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch
}

#[track_caller]
fn three_as_ever(scratch: &ScratchProject, story: &str) {
    for (task, status) in [("T1", "done"), ("T2", "blocked"), ("T3", "done")] {
        assert_eq!(scratch.status(task), status, "{story}: {}", scratch.why(task));
        assert_eq!(scratch.facts(task, "landed").len(), usize::from(status == "done"), "{story}: {task}");
    }
    let landings = landings(scratch, &["T1", "T2", "T3"]);
    assert_eq!(landings.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1], "{story}: once each");
    assert_eq!(scratch.facts("T2", "ejected").len(), 1, "{story}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{story}");
    assert_eq!(scratch.left_behind(), [], "{story}");
    all_green(scratch);
}

/// Ends the engine when it passes `point`, then lets it finish.
fn crash_at(point: &str) {
    let mut scratch = three();
    scratch.set("LANDFALL_CRASH", point);
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "{point} was passed and ended the engine: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    let again = scratch.landfall(&["run"]);
    // Whoever was sent back may have given up before the crash already.
    assert!(matches!(again.code, Some(0 | 8)), "{point}: {}\n{}", again.out, again.err);
    three_as_ever(&scratch, point);
}

#[test]
fn a_crash_while_a_batch_is_built_or_verified_changes_nothing_about_its_end() {
    for point in ["queue.build.before", "queue.build.after", "queue.checked"] {
        crash_at(point);
    }
}

#[test]
fn a_crash_while_a_batch_lands_changes_nothing_about_its_end() {
    for point in ["land.swap.before", "land.swap.after", "land.proved"] {
        crash_at(point);
    }
}

#[test]
fn kill_9_while_a_batch_is_being_verified_and_again_while_it_is_searched() {
    let scratch = held(
        "batch = 3",
        "if [ -e f1 ] && [ -e f2 ]; then touch ~/open/began; while [ ! -e ~/open/go ]; do sleep 0.02; done; \
         echo 'not these two'; exit 1; fi",
    );
    for name in ["f1", "f2", "f3"] {
        scratch.task(name, &writes_once(name), &[]);
    }
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    let began = scratch.root().join("home/open/began");
    for _ in 0..2 {
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the check of the batch", || began.exists());
        run.kill();
        std::fs::remove_file(&began).ok(); // the check itself goes on without the engine
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the second engine", || {
            scratch.landfall(&["--json", "status"]).json()["engine"].is_object()
        });
        run.kill();
        if began.exists() {
            break;
        }
        std::fs::write(&began, "").expect("ours");
    }
    std::fs::write(scratch.root().join("home/open/go"), "").expect("ours");
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    three_as_ever(&scratch, "killed while it was verified");
}

/// A small generator: the instants are random, and the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn kill_9_at_random_instants_of_a_busy_queue_lands_everybody_once() {
    // Of each pair only one may be there, unless the other has made up for it.
    let check = "for n in 1 3 5; do if [ -e f$n ] && [ -e f$((n + 1)) ] && [ ! -e both$n ]; then \
                 echo \"f$n and f$((n + 1)) do not go together\"; exit 1; fi; done";
    let scratch = held("batch = 3\nspeculate = 1", check);
    let mut tasks = Vec::new();
    for number in 1..=8 {
        let (name, pair) = (format!("f{number}"), number - (number + 1) % 2);
        let script = format!(
            "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"{name}\"\ntext = \"{name}\\n\"\n\
             [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"both{pair}\"\ntext = \"{name}\\n\"\n"
        );
        tasks.push(scratch.task(&name, &script, &[]));
    }
    scratch.landfall(&["run", "--slots", "8"]);
    scratch.landfall(&["queue", "resume"]).ok();
    let mut dice = Dice(0xBA7C_4E5D);
    for _ in 0..25 {
        let mut run = scratch.start(&["run", "--slots", "4"]);
        std::thread::sleep(Duration::from_millis(20 + dice.below(500))); // the instant is the point of this test
        run.kill();
    }
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    done(&scratch, &tasks);
    let landings = landings(&scratch, &tasks);
    assert!(landings.iter().all(|commits| commits.len() == 1), "each once: {landings:?}");
    for task in &tasks {
        assert_eq!(scratch.facts(task, "landed").len(), 1, "{task}");
    }
    all_green(&scratch);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    assert_eq!(scratch.left_behind(), []);
    scratch.git(&["fsck", "--connectivity-only"]);
}
