//! Who picks tasks, and pauses, from outside: nobody who is not there is waited for, and whoever is there has the say.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landfall_testkit::ScratchProject;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::LANDFALL;
use crate::hold_file::HoldFile;

/// A script that writes one file and is done.
pub fn writes(path: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"x\\n\"\n")
}

/// The program with a terminal around it, as a person has one.
pub struct OnTerminal {
    child: Child,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    pub fn start(scratch: &ScratchProject, args: &[&str], more: &[(&str, &str)]) -> Self {
        Self::start_with_columns(scratch, args, more, 0) // as one that does not say how wide it is
    }

    /// The same on a terminal with so many columns.
    pub fn start_with_columns(
        scratch: &ScratchProject,
        args: &[&str],
        more: &[(&str, &str)],
        columns: u16,
    ) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        if columns > 0 {
            let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&master, size).expect("a size");
        }
        let name = ptsname(&master, Vec::new()).expect("a name");
        let open = || {
            let end = rustix::fs::open(
                name.as_c_str(),
                OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
                Mode::empty(),
            );
            Stdio::from(end.expect("the other end"))
        };
        let mut command = Command::new(LANDFALL);
        command.env_clear().current_dir(scratch.project()).args(args);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", scratch.root().join("home")).env("TMPDIR", scratch.root().join("tmp"));
        command.env("LANDFALL_STATE", scratch.state()).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm").envs(more.iter().copied());
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().expect("the program runs");
        drop(command); // it holds the other end open
        let screen = Arc::new(Mutex::new(Vec::new()));
        let seen = screen.clone();
        let mut master = std::fs::File::from(master);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last end closed is an error here, and the end.
            while let Ok(count @ 1..) = master.read(&mut bytes) {
                seen.lock().expect("nobody panics with it").extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, screen }
    }

    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("nobody panics with it")).into_owned()
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("waitable").is_some()
    }

    #[track_caller]
    pub fn end(&mut self, scratch: &ScratchProject) -> Option<i32> {
        scratch.eventually("the run to end", || self.is_over());
        self.child.wait().expect("waitable").code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended already
        let _ = self.child.wait(); // reaped
    }
}

fn landed(scratch: &ScratchProject) -> usize {
    scratch.landfall(&["--json", "list", "--status", "done"]).json()["tasks"].as_array().map_or(0, Vec::len)
}

fn phase(scratch: &ScratchProject) -> String {
    scratch.landfall(&["--json", "auto"]).json()["phase"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_semi_automatic_run_that_nobody_attends_does_one_task() {
    let mut scratch = ScratchProject::new(LANDFALL);
    for number in 1..=3 {
        scratch.task(&format!("Task {number}"), &writes(&format!("{number}.txt")), &[]);
    }
    let said = scratch.landfall(&["--json", "run", "--mode", "semi-auto"]);
    assert_eq!((said.code, said.json()["ended"].as_str()), (Some(0), Some("one-done")), "{}", said.err);
    assert_eq!(landed(&scratch), 1);
    // The environment stands in for the option, and the option goes before it.
    scratch.set("LANDFALL_MODE", "semi-auto");
    let said = scratch.landfall(&["run", "T3"]);
    assert_eq!(
        (said.code, scratch.status("T3").as_str(), landed(&scratch)),
        (Some(0), "done", 2),
        "{}",
        said.err
    );
    scratch.landfall(&["run", "--mode", "autopilot"]).ok();
    assert_eq!(landed(&scratch), 3);
    scratch.set("LANDFALL_MODE", "fast");
    let said = scratch.landfall(&["run"]);
    assert!(
        said.code == Some(2) && said.err.contains("LANDFALL_MODE") && said.err.contains("semi-auto"),
        "{said:?}"
    );
}

#[test]
fn three_failures_in_a_row_pause_a_run_and_end_it_where_nobody_is() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0");
    for number in 1..=3 {
        scratch.task(&format!("Bad {number}"), "exit = 3", &[]);
    }
    scratch.task("Good", &writes("good.txt"), &[]);
    let said = scratch.landfall(&["--json", "run"]);
    assert_eq!(said.code, Some(9), "{}", said.err);
    let reason = said.json()["ended"]["paused"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("3 tasks in a row") && reason.contains("T1, T2, T3"), "{reason}");
    assert!(said.err.contains("paused: 3 tasks in a row"), "told while it runs: {}", said.err);
    assert_eq!(scratch.status("T4"), "ready", "nothing began after the pause");
    let again = scratch.landfall(&["run"]);
    assert_eq!((again.code, scratch.status("T4").as_str()), (Some(0), "done"), "{}", again.err);
}

#[test]
fn a_person_picks_pauses_and_lets_go() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[hooks]\non-pause = 'echo \"$LANDFALL_REASON\" > \"$HOME/paused.txt\"'");
    for number in 1..=4 {
        scratch.task(&format!("Task {number}"), &writes(&format!("{number}.txt")), &[]);
    }
    let mut run = OnTerminal::start(&scratch, &["run", "--mode", "semi-auto", "--slots", "2"], &[]);
    scratch.eventually("its turn to pick", || run.screen().contains("you pick: `landfall run next`"));
    assert_eq!(landed(&scratch), 0, "nothing begins by itself");
    assert!(scratch.why("T2").contains("`landfall run next T2` takes it"), "{}", scratch.why("T2"));

    let said = scratch.landfall(&["next", "T2"]).ok();
    assert!(said.contains("T2 is next: Task 2"), "{said}");
    scratch.eventually("what was picked", || scratch.status("T2") == "done");
    scratch.eventually("its turn again", || phase(&scratch) == "waiting for you");
    assert_eq!(landed(&scratch), 1, "one task, then it waits");

    let said = scratch.landfall(&["--json", "pause", "--reason", "lunch"]).json();
    assert_eq!((said["phase"].as_str(), said["pause"]["reason"].as_str()), (Some("paused"), Some("lunch")));
    scratch.eventually("the alert", || run.screen().contains("!! PAUSED: lunch !!"));
    assert!(scratch.landfall(&["status"]).ok().contains("paused since"), "status says so");
    assert!(scratch.why("T1").contains("the run is paused: lunch"), "{}", scratch.why("T1"));
    let heard = || std::fs::read_to_string(scratch.root().join("home/paused.txt")).unwrap_or_default();
    scratch.eventually("the hook to hear the reason", || heard() == "lunch\n");
    let twice = scratch.landfall(&["pause"]);
    assert!(twice.code == Some(6) && twice.err.contains("landfall run resume"), "{twice:?}");
    scratch.landfall(&["auto", "on"]).ok();
    assert_eq!(landed(&scratch), 1, "a pause is a pause, whoever picks");

    let said = scratch.landfall(&["resume"]).ok();
    assert!(said.contains("autopilot"), "{said}");
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(landed(&scratch), 4, "and it ends by itself when nothing is left");
    assert!(scratch.left_behind().is_empty());
}

#[test]
fn a_pause_lets_iterations_finish_and_begins_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "first");
    for number in 1..=3 {
        let script = writes(&format!("{number}.txt"));
        scratch.task(&format!("Task {number}"), &format!("{}{script}", hold.line()), &[]);
    }
    let mut run = OnTerminal::start(&scratch, &["run", "--slots", "1"], &[]);
    scratch.eventually("an agent at work", || !scratch.facts("T1", "iteration-began").is_empty());
    scratch.landfall(&["pause"]).ok();
    hold.release();
    scratch.eventually("the iteration to end", || !scratch.facts("T1", "iteration-ended").is_empty());
    scratch.eventually("what was begun to rest", || scratch.status("T1") != "active");
    assert!(scratch.facts("T2", "entered").is_empty(), "nothing new begins");
    assert!(!run.is_over(), "somebody is there, so it waits");
    scratch.landfall(&["resume"]).ok();
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(landed(&scratch), 3);
}

#[test]
fn on_a_terminal_of_a_build_server_nobody_is_there() {
    for more in [&[("CI", "true")][..], &[("JENKINS_URL", "x")], &[("LANDFALL_NON_INTERACTIVE", "1")]] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0\nfailures_max = 1");
        scratch.task("Bad", "exit = 3", &[]);
        scratch.task("Good", &writes("good.txt"), &[]);
        let mut run = OnTerminal::start(&scratch, &["run"], more);
        assert_eq!(run.end(&scratch), Some(9), "{more:?}: {}", run.screen());
        scratch.eventually("the reason", || run.screen().contains("PAUSED: a task failed or ran out"));
        assert_eq!(scratch.status("T2"), "ready");
    }
}

#[test]
fn without_a_run_there_is_nothing_to_pause_or_pick() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("a.txt"), &[]);
    for args in [&["pause"][..], &["resume"], &["next"], &["auto", "on"], &["sprint", "pause"]] {
        let said = scratch.landfall(args);
        let refused =
            said.code == Some(6) && said.err.contains("no run is under way") && said.err.contains("hint:");
        assert!(refused, "{args:?}: {said:?}");
    }
    let said = scratch.landfall(&["--json", "auto", "status"]).json();
    assert_eq!((said["mode"].as_str(), said["ready"].as_u64()), (Some("autopilot"), Some(1)));
    let mut started = scratch.start(&["run", "--non-interactive"]);
    assert_eq!(started.wait(Duration::from_secs(30)), Some(0));
}

#[test]
fn a_run_that_ended_paused_is_told_of_afterwards() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nfailures_max = 1\niterations_max = 1\n");
    scratch.task("Never done", "say = \"hm\"\n", &[]);
    scratch.task("Waits", &writes("b.txt"), &["--needs", "T1"]);
    let run = scratch.landfall(&["run", "--non-interactive"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    let status = scratch.landfall(&["status"]).ok();
    assert!(
        status.contains("warning R1 ended paused: a task failed or ran out: T1; `landfall run` continues"),
        "{status}"
    );
}

#[test]
fn a_run_nobody_attends_fails_when_too_many_tasks_are_put_aside() {
    for (many, code) in [(10, 9), (11, 11)] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings("[run]\nslots = 6\n");
        for number in 0..many {
            scratch.task(&format!("Asks {number}"), "signal = \"pending:which one?\"\n", &[]);
        }
        let run = scratch.landfall(&["run", "--non-interactive"]);
        assert_eq!(run.code, Some(code), "{many}: {}\n{}", run.out, run.err);
        assert_eq!(run.out.contains("11 tasks were put aside for a person"), many == 11, "{}", run.out);
    }
}
