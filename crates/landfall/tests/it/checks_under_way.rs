//! A check that runs: its name, its time, its limit and its last line are shown while it runs, and not after a stop.

use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::open;

const WORKS: &str = "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n";

/// A project whose check is quick on the base, and says two lines and then waits for a file on work.
fn slow_check() -> ScratchProject {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.be_patient(Duration::from_secs(120));
    let go = scratch.root().join("home/open/go");
    let script = format!(
        "[ -e b.txt ] || exit 0\necho compiling\necho running suite 7\nwhile [ ! -e {} ]; do sleep 0.05; done\n",
        go.display()
    );
    scratch.file("slow.sh", &script);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\n[[verify.command]]\nname = \"slow suite\"\nrun = \"sh slow.sh\"\ntimeout = \"7m\"\n",
    );
    open(&scratch);
    scratch.task("Story", WORKS, &[]);
    scratch
}

#[test]
fn a_check_under_way_is_shown_with_its_limit_and_last_line_until_the_run_is_stopped() {
    let scratch = slow_check();
    let mut run = scratch.start(&["run"]);
    let status = || scratch.landfall(&["status"]).ok();
    scratch.eventually("the check to say its second line", || status().contains("running suite 7"));

    let text = status();
    for wanted in ["VERIFYING", "T1", "slow suite", "7m"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let check = scratch.landfall(&["--json", "status"]).json()["checks"][0].clone();
    assert_eq!(check["check"], "slow suite");
    assert_eq!(check["limit_ms"], 7 * 60 * 1_000);
    assert!(check["elapsed_ms"].as_u64().is_some_and(|elapsed| elapsed > 0), "{check}");
    let why = scratch.why("T1");
    for wanted in ["slow suite", "at most 7m", "running suite 7"] {
        assert!(why.contains(wanted), "{wanted}: {why}");
    }

    let said = scratch.landfall(&["stop", "--now"]).ok();
    assert!(said.contains("slow suite"), "it says what it stops: {said}");
    run.wait(Duration::from_secs(120)).expect("the run ends");
    let (text, why) = (status(), scratch.why("T1"));
    for claim in ["VERIFYING", "verifying", "slow suite,"] {
        assert!(!text.contains(claim) && !why.contains(claim), "{claim}: {text}{why}");
    }
}
