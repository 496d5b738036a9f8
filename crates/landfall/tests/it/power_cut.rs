//! The power is cut in mid-run: content that was never synced is lost. Nothing of that lands.

use std::process::Command;

use landfall_testkit::{LoopDisk, ScratchProject};

use crate::LANDFALL;
use crate::sandbox::open;

const DISK_MIB: u64 = 8 << 10; // sparse; less would hold agents back for lack of room

/// Twenty files of 4 KB each, which nobody syncs.
const WORK: &str = r#"
run = ["sh", "-c", "for n in $(seq 20); do seq 1000 > f$n.txt; done"]
signal = "complete"
"#;

/// A project on a disk whose power can be cut. One task has landed, and all of that is synced.
fn project(disk: &LoopDisk) -> ScratchProject {
    let scratch = ScratchProject::within(&disk.path(), LANDFALL);
    scratch.task(
        "First",
        "signal = \"complete\"\n[[write]]\npath = \"first.txt\"\ntext = \"first\\n\"\n",
        &[],
    );
    scratch.landfall(&["run"]).ok();
    disk.sync();
    scratch
}

/// Every file that landed has the content that an agent gave it, and all the work of WORK is there.
#[track_caller]
fn check_landed(scratch: &ScratchProject, task: &str, story: &str) {
    let list = scratch.store(&["ls-tree", "-r", "-l", "refs/landfall/base"]).expect("there is a base");
    let emptied: Vec<&str> = list.lines().filter(|line| line.contains(" 0\t")).collect();
    assert_eq!(emptied, Vec::<&str>::new(), "{story}: no file that landed is empty");
    let work: Vec<&str> = list.lines().filter(|line| line.contains(".txt") && line.contains("\tf")).collect();
    let whole = work.iter().filter(|line| line.contains(" 3893\t")).count();
    assert_eq!(scratch.status(task), "done", "{story}: {}", scratch.why(task));
    assert_eq!(whole, 20, "{story}: {list}");
    assert_eq!(scratch.facts(task, "landed").len(), 1, "{story}: it landed once");
    assert!(scratch.store(&["fsck", "--connectivity-only"]).is_some(), "{story}: the store is whole");
}

/// Lets the engine go on until `point`, cuts the power there, and lets the next engine finish.
fn cut_at(point: &str) -> Option<(LoopDisk, ScratchProject)> {
    let disk = LoopDisk::create(DISK_MIB)?;
    let mut scratch = project(&disk);
    scratch.task("Work", WORK, &[]);
    scratch.set("LANDFALL_CRASH", point);
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "the engine passed {point}: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    disk.cut_power();
    scratch.landfall(&["run"]);
    check_landed(&scratch, "T2", &format!("cut at {point}"));
    Some((disk, scratch))
}

#[test]
fn a_power_cut_before_work_is_collected_lands_no_emptied_file() {
    let Some((_disk, scratch)) = cut_at("effect.check.before") else { return };
    let prompts = scratch.prompts("T2");
    let last = prompts.last().expect("it was run again");
    assert!(last.contains("Landfall rebuilt your working folder"), "its agent was told: {last}");
    let told = scratch.landfall(&["doctor"]).out;
    assert!(told.contains("workspace T2: rebuilt from"), "{told}");
    let leftovers = scratch.log().iter().filter(|it| it["kind"] == "collected" && it["task"] == "T2").count();
    assert_eq!(leftovers, 1, "only what the second run left was collected");
}

#[test]
fn a_checkout_that_can_neither_be_replaced_nor_moved_stops_the_run() {
    let Some(disk) = LoopDisk::create(DISK_MIB) else { return };
    let mut scratch = project(&disk);
    scratch.task("Work", WORK, &[]);
    scratch.set("LANDFALL_CRASH", "effect.check.before");
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "{crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    disk.cut_power();
    let workspace = scratch.workspace("T2");
    let chattr = |flag: &str| {
        Command::new("chattr").arg(flag).arg(&workspace).status().is_ok_and(|status| status.success())
    };
    if !chattr("+i") {
        return landfall_testkit::skip_test("making a folder immutable needs root and chattr");
    }
    let refused = scratch.landfall(&["run"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("can neither replace nor move it"), "{}", refused.err);
    assert!(refused.err.contains("landfall doctor"), "it says what to do: {}", refused.err);
    assert_eq!(scratch.prompts("T2").len(), 1, "nothing is begun in it");
    assert!(chattr("-i"), "it can be changed again");
    scratch.landfall(&["run"]);
    check_landed(&scratch, "T2", "once the folder can be changed");
}

#[test]
fn a_power_cut_after_work_is_collected_lands_just_that() {
    let Some((_disk, scratch)) = cut_at("check.collected") else { return };
    assert_eq!(scratch.prompts("T2").len(), 1, "its agent need not do it again");
}

#[test]
fn a_power_cut_after_a_landing_leaves_no_damaged_checkout_behind() {
    let Some(disk) = LoopDisk::create(DISK_MIB) else { return };
    let mut scratch = project(&disk);
    scratch.task("Work", WORK, &[]);
    scratch.set("LANDFALL_CRASH", "git.release.clean");
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "{crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    disk.cut_power();
    scratch.task("Next", "signal = \"complete\"\n[[write]]\npath = \"next.txt\"\ntext = \"next\\n\"\n", &[]);
    scratch.landfall(&["run"]);
    check_landed(&scratch, "T2", "cut after the landing");
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
    let changed = scratch.store(&["diff", "--name-only", "refs/landfall/base^", "refs/landfall/base"]);
    assert_eq!(changed.as_deref(), Some("next.txt"), "the next task found whole files");
}

#[test]
fn a_power_cut_while_an_agent_works_keeps_its_commits_and_shows_it_the_rest() {
    let Some(disk) = LoopDisk::create(DISK_MIB) else { return };
    let scratch = project(&disk);
    let begun = open(&scratch).join("begun");
    // The first run is cut in the middle; the second finds the commit and finishes.
    let script = format!(
        r#"
[[iteration]]
run = ["sh", "-c", "for n in $(seq 10); do seq 1000 > f$n.txt; done; git add -A; git commit -qm half; sync -f .; echo open > open.txt; for n in $(seq 11 20); do seq 1000 > f$n.txt; done; touch names; sync names; touch {begun}; sleep 600"]
[[iteration]]
signal = "complete"
run = ["sh", "-c", "git log --format=%s -1; for n in $(seq 11 20); do seq 1000 > f$n.txt; done"]
"#,
        begun = begun.display()
    );
    scratch.task("Work", &script, &[]);
    let mut engine = scratch.start(&["run"]);
    scratch.eventually("the agent to be in the middle", || begun.exists());
    engine.kill();
    disk.cut_power();
    scratch.landfall(&["run"]);
    check_landed(&scratch, "T2", "cut in mid-run");
    assert!(scratch.store(&["log", "--format=%s", "refs/landfall/base"]).expect("a log").contains("half"));
    let kept = scratch.store(&["for-each-ref", "--format=%(refname)", "refs/landfall/kept"]).expect("listed");
    assert!(kept.contains("refs/landfall/kept/t2/unclean-end-1"), "{kept}");
    let prompt = scratch.prompts("T2").last().cloned().expect("it was run again");
    assert!(prompt.contains("kept your uncommitted changes as commit"), "{prompt}");
}

#[test]
fn a_power_cut_in_the_first_seconds_leaves_a_store_that_can_be_used() {
    for point in ["journal.append.after", "effect.prepare.before", "effect.check.before"] {
        let Some(disk) = LoopDisk::create(DISK_MIB) else { return };
        let mut scratch = ScratchProject::within(&disk.path(), LANDFALL);
        disk.sync();
        scratch.task("Work", WORK, &[]);
        scratch.set("LANDFALL_CRASH", point);
        let crashed = scratch.landfall(&["run"]);
        assert!(crashed.code.is_none(), "{point}: {crashed:?}");
        scratch.unset("LANDFALL_CRASH");
        disk.cut_power();
        scratch.landfall(&["run"]);
        check_landed(&scratch, "T1", &format!("cut at {point} of the first run"));
    }
}

#[test]
fn a_run_that_ended_in_order_leaves_checkouts_that_are_trusted_after_a_power_cut() {
    let Some(disk) = LoopDisk::create(DISK_MIB) else { return };
    let scratch = ScratchProject::within(&disk.path(), LANDFALL);
    disk.sync();
    scratch.task("Work", WORK, &[]);
    scratch.landfall(&["run"]).ok();
    let warm = scratch.state().join("workspaces/.engine/warm");
    let count = || std::fs::read_dir(&warm).map_or(0, Iterator::count);
    assert!(count() > 0 && scratch.state().join("lanes/0").exists(), "there is something to trust");
    disk.sync(); // as a machine does that is shut down
    disk.cut_power();
    scratch.task("Next", "signal = \"complete\"\n[[write]]\npath = \"next.txt\"\ntext = \"next\\n\"\n", &[]);
    scratch.landfall(&["run"]).ok();
    check_landed(&scratch, "T1", "after an end in order");
    assert!(!scratch.state().join("repairs.jsonl").exists(), "nothing had to be replaced");
}
