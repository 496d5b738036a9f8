//! The engine is ended at every named point, and at random instants; started again, it loses nothing and does
//! nothing twice.

use std::collections::BTreeSet;
use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::{open, open_folder};

/// Two tasks: one says nothing at first, then lies, then works; one is plain. Every run of an agent leaves a line in a file
/// outside its workspace.
fn backlog() -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    let count = open(&scratch).join("runs");
    let count = count.display();
    let halting = format!(
        r#"
run = ["sh", "-c", "echo one >> {count}"]
[[iteration]]
say = "thinking"
[[iteration]]
signal = "complete"
[[iteration.write]]
path = "b.txt.want"
text = "right\n"
[[iteration.write]]
path = "b.txt"
text = "wrong\n"
[[iteration]]
signal = "complete"
[[iteration.write]]
path = "b.txt"
text = "right\n"
"#
    );
    scratch.task("Halting", &halting, &[]);
    let plain = format!(
        r#"
run = ["sh", "-c", "echo two >> {count}"]
signal = "complete"
[[write]]
path = "c.txt"
text = "plain\n"
"#
    );
    scratch.task("Plain", &plain, &["--needs", "T1"]);
    scratch
}

/// Everything that must hold once the run is over, whatever happened before.
#[track_caller]
fn check_whole(scratch: &ScratchProject, story: &str) {
    let log = scratch.log();
    let subjects = scratch.git(&["log", "--first-parent", "--format=%s", "main"]);
    for (task, runs) in [("T1", 3), ("T2", 1)] {
        assert_eq!(scratch.status(task), "done", "{story}: {}", scratch.why(task));
        let of = |kind: &str| log.iter().filter(|it| it["task"] == task && it["kind"] == kind).count();
        assert_eq!(of("landed"), 1, "{story}: {task} landed once in the journal");
        assert_eq!(of("iteration-ended"), runs, "{story}: {task} has every iteration once");
        let landed = subjects.lines().filter(|line| line.contains(&format!("({task})"))).count();
        assert_eq!(landed, 1, "{story}: {task} is on main once:\n{subjects}");
    }
    let runs = std::fs::read_to_string(open_folder(scratch).join("runs")).expect("the agents ran");
    assert_eq!(runs.matches("one").count(), 3, "{story}: no iteration was run twice");
    assert_eq!(runs.matches("two").count(), 1, "{story}: no iteration was run twice");
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "right", "{story}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{story}: the checkout is clean");
    scratch.git(&["fsck", "--connectivity-only"]);
    let seqs: Vec<u64> = log.iter().map(|it| it["seq"].as_u64().expect("a number")).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{story}: the journal is dense");
    assert_eq!(scratch.left_behind(), [], "{story}");
}

/// The names of the points that the backlog passes.
fn points() -> BTreeSet<String> {
    let mut scratch = backlog();
    let list = scratch.root().join("points");
    scratch.set("LANDFALL_CRASH_LIST", &list.display().to_string());
    scratch.landfall(&["run"]).ok();
    check_whole(&scratch, "without a crash");
    let passed = std::fs::read_to_string(list).expect("points were passed");
    // A sitter has points of its own: when one of those ends, the engine sees an agent that vanished. Starting one is ours.
    let ours = |point: &&str| !point.starts_with("sitter.") || point.starts_with("sitter.start.");
    passed.lines().filter(ours).map(str::to_owned).collect()
}

/// Ends the engine at `point`, then lets it finish.
fn crash_at(point: &str) {
    let mut scratch = backlog();
    scratch.set("LANDFALL_CRASH", point);
    let crashed = scratch.landfall(&["run", "--slots", "2"]);
    let story = format!("crash at {point}");
    assert!(crashed.code.is_none(), "{story}: it was passed and ended the engine: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    let again = scratch.landfall(&["run"]);
    assert_eq!(again.code, Some(0), "{story}: {}\n{}", again.out, again.err);
    check_whole(&scratch, &story);
}

/// A share of the points, so that the shares run side by side. A point belongs to its share by name: which points are
/// passed differs a little from run to run, and none may fall between two shares.
fn sweep(share: usize, of: usize) {
    let number =
        |point: &str| point.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31) + usize::from(byte));
    for point in points().iter().filter(|point| number(point) % of == share) {
        crash_at(point);
    }
}

#[test]
fn there_are_at_least_forty_crash_points() {
    let points = points();
    assert!(points.len() >= 40, "{}: {points:?}", points.len());
}

#[test]
fn a_crash_at_any_point_loses_nothing_and_repeats_nothing_share_1() {
    sweep(0, 4);
}

#[test]
fn a_crash_at_any_point_loses_nothing_and_repeats_nothing_share_2() {
    sweep(1, 4);
}

#[test]
fn a_crash_at_any_point_loses_nothing_and_repeats_nothing_share_3() {
    sweep(2, 4);
}

#[test]
fn a_crash_at_any_point_loses_nothing_and_repeats_nothing_share_4() {
    sweep(3, 4);
}

#[test]
fn a_crash_at_a_later_passing_loses_nothing() {
    for point in
        ["journal.append.before:9", "journal.append.after:12", "effect.check.after:2", "spawn.after:2"]
    {
        crash_at(point);
    }
}

#[test]
fn a_crash_during_recovery_loses_nothing() {
    let pairs = [
        ("spawn.after", "spawn.found"),
        ("land.swap.after", "effect.land.before"),
        ("effect.check.before", "check.merged"),
        ("journal.append.after:5", "journal.append.after:1"),
        ("land.swap.after", "land.proved"),
        ("publish.before", "publish.before"),
    ];
    for (first, second) in pairs {
        let mut scratch = backlog();
        for point in [first, second] {
            scratch.set("LANDFALL_CRASH", point);
            let crashed = scratch.landfall(&["run"]);
            assert!(crashed.code.is_none(), "{point} after {first}: {crashed:?}");
        }
        scratch.unset("LANDFALL_CRASH");
        scratch.landfall(&["run"]).ok();
        check_whole(&scratch, &format!("{first}, then {second}"));
    }
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
fn kill_9_at_fifty_random_instants_loses_nothing() {
    let mut dice = Dice(0x5EED_1A4D_FA11);
    let mut kills = 0;
    while kills < 50 {
        let scratch = backlog();
        for _ in 0..200 {
            let mut run = scratch.start(&["run"]);
            std::thread::sleep(Duration::from_millis(dice.below(250))); // the instant is the point of this test
            run.kill();
            kills += 1;
            if scratch.status("T2") == "done" {
                break;
            }
        }
        scratch.landfall(&["run"]).ok();
        check_whole(&scratch, &format!("after {kills} kills"));
    }
}

#[test]
fn an_agent_that_was_running_is_adopted_not_restarted() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, ran) = (folder.join("go"), folder.join("ran"));
    let script = format!(
        r#"
run = ["sh", "-c", "echo x >> {ran}; while [ ! -e {go} ]; do sleep 0.05; done"]
signal = "complete"
[[write]]
path = "b.txt"
text = "b\n"
"#,
        ran = ran.display(),
        go = go.display()
    );
    scratch.task("Long", &script, &[]);
    let mut first = scratch.start(&["run"]);
    scratch.eventually("the agent to run", || ran.exists());
    first.kill();
    assert_ne!(scratch.left_behind(), [], "the agent goes on without the engine");
    let mut second = scratch.start(&["run"]);
    scratch.eventually("the second engine", || {
        scratch.landfall(&["--json", "status"]).json()["engine"].is_object()
    });
    std::fs::write(&go, "").expect("a file can be written");
    assert_eq!(second.wait(Duration::from_secs(30)), Some(0));
    assert_eq!(std::fs::read_to_string(&ran).expect("it ran"), "x\n", "it ran once");
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn the_next_command_cleans_up_after_a_publishing_that_was_cut_off() {
    for command in [&["doctor"][..], &["status"], &["add", "Another task"]] {
        let mut scratch = ScratchProject::new(LANDFALL);
        scratch.task("One", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n", &[]);
        scratch.set("LANDFALL_CRASH", "git.publish.put");
        let crashed = scratch.landfall(&["run"]);
        assert!(crashed.code.is_none(), "it was ended there: {crashed:?}");
        scratch.unset("LANDFALL_CRASH");
        let lock = scratch.project().join(".git/index.lock");
        assert!(lock.exists(), "no git command of the person can change the index");
        let told = scratch.landfall(command).out;
        let is_told = told.contains("after a publishing that was cut off");
        assert!(is_told || command[0] == "add", "{command:?}: {told}");
        assert!(!lock.exists(), "{command:?}: {told}");
        let again = scratch.landfall(&["doctor"]).out + &scratch.landfall(&["status"]).out;
        assert!(!again.contains("cut off"), "said once: {again}");
        if command[0] != "add" {
            scratch.landfall(&["run"]).ok();
            assert_eq!(scratch.status("T1"), "done");
            assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
        }
    }
}

/// An agent without a sandbox can reach the folder of its run. What it does to its output costs it that output, no more.
#[test]
fn an_agent_that_replaces_its_output_file_ends_with_its_own_exit_code() {
    for replace in ["mkdir", "mkfifo"] {
        let scratch = ScratchProject::new(LANDFALL);
        crate::sandbox::off(&scratch);
        let (go, ran) = (scratch.root().join("go"), scratch.root().join("ran"));
        let out = scratch.state().join("attempts/T1-a1-i1/out.log");
        let run = format!(
            "rm {out} && {replace} {out} && {LANDFALL} signal complete; touch {ran}; \
             while [ ! -e {go} ]; do sleep 0.05; done",
            out = out.display(),
            ran = ran.display(),
            go = go.display()
        );
        let script =
            format!("run = [\"sh\", \"-c\", {run:?}]\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n");
        scratch.task("Replaces its output", &script, &[]);
        let mut first = scratch.start(&["run"]);
        scratch.eventually("the agent to run", || ran.exists());
        first.kill(); // the next engine opens what is at the place of the output
        let mut second = scratch.start(&["run"]);
        scratch.eventually("the second engine", || {
            scratch.landfall(&["--json", "status"]).json()["engine"].is_object()
        });
        std::fs::write(&go, "").expect("a file can be written");
        assert_eq!(second.wait(Duration::from_secs(60)), Some(0), "{replace}: {}", scratch.heard());
        assert_eq!(scratch.prompts("T1").len(), 1, "{replace}: one run of the agent");
        assert_eq!(scratch.status("T1"), "done", "{replace}");
        assert_eq!(scratch.left_behind(), []);
    }
}

/// Ends the engine at `point`, which must be passed, and lets it finish.
fn end_at(scratch: &mut ScratchProject, point: &str) {
    scratch.set("LANDFALL_CRASH", point);
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "{point} was passed and ended the engine: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    let again = scratch.landfall(&["run"]);
    assert_eq!(again.code, Some(0), "{point}: {}\n{}", again.out, again.err);
    assert_eq!(scratch.left_behind(), [], "{point}");
}

const WRITES: &str = "signal = \"complete\"\n[[write]]\npath = \"c.txt\"\ntext = \"c\\n\"";

#[test]
fn a_crash_while_an_old_workspace_is_given_up_keeps_its_work() {
    for point in ["git.remove.kept", "workspace.removed"] {
        let mut scratch = ScratchProject::new(LANDFALL);
        let script = "[[iteration]]\nsignal = \"blocked:stuck\"\n[[iteration.write]]\npath = \"old.txt\"\n\
                      text = \"old\\n\"\n[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\n\
                      path = \"c.txt\"\ntext = \"c\\n\"";
        scratch.task("Blocked at first", script, &[]);
        scratch.landfall(&["run"]);
        assert_eq!(scratch.status("T1"), "blocked");
        scratch.landfall(&["retry", "T1", "--fresh"]).ok();
        end_at(&mut scratch, point);
        assert_eq!(scratch.status("T1"), "done", "{point}: {}", scratch.why("T1"));
        assert_ne!(scratch.kept("T1", "old.txt", "old\n"), [""; 0], "{point}: the old work is under a ref");
    }
}

#[test]
fn a_crash_while_the_base_follows_a_person_loses_nothing() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"", &[]);
    scratch.landfall(&["run"]).ok();
    scratch.file("mine.txt", "mine\n");
    scratch.commit("mine");
    scratch.task("Second", WRITES, &[]);
    end_at(&mut scratch, "base.follow");
    for file in ["main:b.txt", "main:mine.txt", "main:c.txt"] {
        scratch.git(&["show", file]);
    }
}

#[test]
fn a_crash_while_landed_work_and_a_persons_commits_are_brought_together_loses_nothing() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.task("Lands", WRITES, &[]);
    scratch.file("a.txt", "dirty\n");
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done");
    scratch.commit("mine after all");
    end_at(&mut scratch, "rebuild.swap.before");
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "dirty");
    assert_eq!(scratch.git(&["show", "main:c.txt"]), "c");
}

#[test]
fn edge_04_a_crash_while_an_agent_is_being_stopped_still_stops_it() {
    for point in ["effect.kill.before", "effect.kill.after"] {
        let mut scratch = ScratchProject::new(LANDFALL);
        let ran = open(&scratch).join("ran");
        let script = format!("run = [\"sh\", \"-c\", \"echo x >> {}; sleep 60\"]", ran.display());
        scratch.task("Long", &script, &[]);
        scratch.set("LANDFALL_CRASH", point);
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the agent to run", || ran.exists());
        scratch.landfall(&["stop", "T1"]);
        assert_eq!(run.wait(Duration::from_secs(20)), None, "{point} ended the engine");
        scratch.unset("LANDFALL_CRASH");
        scratch.landfall(&["run"]);
        assert_eq!(scratch.wait_of("T1"), "pause", "{point}: {}", scratch.why("T1"));
        assert_eq!(scratch.left_behind(), [], "{point}");
    }
}

#[test]
fn a_base_that_followed_a_branch_which_was_rewritten_after_a_crash_is_got_out_of() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"", &[]);
    scratch.landfall(&["run"]).ok();
    scratch.file("mine.txt", "mine\n");
    scratch.commit("mine");
    scratch.task("Second", WRITES, &[]);
    scratch.set("LANDFALL_CRASH", "base.followed");
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "the point was passed: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    // What the base followed is gone, and no fact names it.
    scratch.git(&["commit", "--quiet", "--amend", "--message", "mine, in other words"]);
    let mine = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    let hold = scratch.landfall(&["--json", "queue"]).json()["hold"].clone();
    assert_eq!(hold["why"], "rewritten", "{hold}");
    assert_eq!(scratch.git(&["rev-parse", "main"]), mine, "nothing landed on it");
    let keep = scratch.landfall(&["queue", "resume", "--keep-landed"]);
    assert_ne!(keep.code, Some(0), "what nobody vouches for is not kept: {keep:?}");
    scratch.landfall(&["queue", "resume"]).ok();
    if scratch.status("T2") == "failed" {
        scratch.landfall(&["retry", "T2"]).ok();
    }
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), mine);
    for file in ["main:b.txt", "main:mine.txt", "main:c.txt"] {
        scratch.git(&["show", file]);
    }
    assert_eq!(scratch.left_behind(), []);
}
