//! `landfall top` in a real terminal: what a person sees and presses, and what becomes of it in the journal. Skipped, with
//! a line that says so, where tmux is not installed.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use landfall_testkit::{ScratchProject, has_tmux};

use crate::LANDFALL;
use crate::autopilot::{OnTerminal, writes};

const SOON: Duration = Duration::from_secs(40);

/// A shell in a terminal of its own, with a server of its own, ended with the test.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// None where there is no tmux.
    fn open(scratch: &ScratchProject, columns: u16, rows: u16, more: &[(&str, &str)]) -> Option<Self> {
        if !has_tmux() {
            return None;
        }
        let terminal = Self { socket: scratch.root().join("tmux.sock") };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut command = terminal.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", &columns, "-y", &rows]);
        command.env("HOME", scratch.root().join("home")).env("TMPDIR", scratch.root().join("tmp"));
        command.env("LANDFALL_STATE", scratch.state()).env("TZ", "UTC").env("PS1", "% ").env("TERM", "xterm");
        command.env("BIN", LANDFALL).envs(more.iter().copied()).current_dir(scratch.project());
        let said = command.arg("sh").output().expect("tmux");
        assert!(said.status.success(), "{said:?}");
        Some(terminal)
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(&self.socket);
        command
    }

    fn ask(&self, args: &[&str]) -> String {
        let said = self.tmux().args(args).output().expect("tmux");
        assert!(said.status.success(), "{args:?}: {said:?}");
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// Presses keys by their names.
    fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys", "-t", "top"], keys].concat());
    }

    /// Presses Esc and waits until this is gone. A key right behind it would be taken for one with Alt.
    #[track_caller]
    fn escape(&self, words: &str) {
        self.press(&["Escape"]);
        self.until(&format!("no {words}"), |screen| !screen.contains(words));
    }

    /// Types letters as they are.
    fn types(&self, text: &str) {
        self.ask(&["send-keys", "-t", "top", "-l", text]);
    }

    fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.ask(&["resize-window", "-t", "top", "-x", &columns, "-y", &rows]);
    }

    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p", "-t", "top"])
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "not within {SOON:?}: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    #[track_caller]
    fn shows(&self, words: &[&str]) -> String {
        self.until(&format!("{words:?}"), |screen| words.iter().all(|word| screen.contains(word)))
    }

    /// Opens the view and waits for it.
    #[track_caller]
    fn top(&self) {
        self.types("\"$BIN\" top; echo \"left with $?\"; stty -a | grep -o ' icanon\\| echo '");
        self.press(&["Enter"]);
        self.shows(&["Slots", "? keys"]);
    }

    /// The terminal is as it was before.
    #[track_caller]
    fn is_restored(&self, code: i32) {
        self.shows(&[&format!("left with {code}"), " icanon", " echo"]);
        let flags = self.ask(&["display-message", "-p", "-t", "top", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(flags.trim(), "0 1", "not the other screen, and a cursor");
    }

    /// The process of the view.
    fn pid(&self) -> String {
        let shell = self.ask(&["display-message", "-p", "-t", "top", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).expect("a shell with a child").trim().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output(); // it never started
    }
}

/// A script that works until it is ended.
const LONG: &str = "signal = \"complete\"\n[[say]]\ntext = \"reading the tests\"\n[[say]]\ntext = \"done\"\npause = \"10m\"\n";

#[test]
fn a_person_answers_approves_and_stops_and_the_journal_has_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let Some(terminal) = Terminal::open(&scratch, 80, 24, &[]) else { return };
    scratch.more_settings("[review.tags]\ncareful = \"per-task\"");
    let asks = format!(
        "[[iteration]]\nsignal = \"pending:Tabs or spaces?\"\n[[iteration]]\n{}",
        writes("b.txt").replace("[[write]]", "[[iteration.write]]")
    );
    scratch.task("Asks first", &asks, &[]);
    scratch.task("Wants a look", &writes("c.txt"), &["--tag", "careful"]);
    scratch.task("Takes long", LONG, &[]);
    let mut run = scratch.start(&["run", "--slots", "3"]);

    terminal.top();
    let screen = terminal.shows(&["● autopilot", "T3", "Takes long", "slots 1/3", "Inbox 2", "R1"]);
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");

    // What the agent prints.
    terminal.types("o");
    terminal.shows(&["[Output]", "reading the tests"]);
    terminal.escape("[Output]");

    // A question.
    terminal.press(&["Tab"]);
    terminal.shows(&["T1", "question", "Tabs or spaces?", "T2", "review"]);
    terminal.types("a");
    terminal.shows(&["Answer T1", "Enter sends"]);
    terminal.types("spacez");
    terminal.press(&["BSpace"]);
    // A paste with two lines, as terminals send it.
    terminal.ask(&["set-buffer", "s,\n日本 please"]);
    terminal.ask(&["paste-buffer", "-p", "-t", "top"]);
    terminal.shows(&["> spaces,", "日本 please"]);
    terminal.press(&["Enter"]);
    scratch.eventually("the answer to land", || scratch.status("T1") == "done");
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains("spaces,") && prompts[1].contains("日本 please"), "{}", prompts[1]);

    // A review.
    terminal.until("only the review is left", |screen| screen.contains("Inbox 1") && !screen.contains("T1 "));
    terminal.types("D");
    terminal.shows(&["[Diff]", "c.txt", "+x"]);
    terminal.types("a");
    terminal.shows(&["Approve T2"]);
    terminal.types("fine");
    terminal.press(&["Enter"]);
    scratch.eventually("the approved work to land", || scratch.status("T2") == "done");
    terminal.escape("[Diff]");
    terminal.shows(&["Inbox 0", "nothing waits for you"]);

    // Larger: everything at once. And small again.
    terminal.resize(200, 60);
    let screen = terminal.shows(&["Slots 1", "Inbox 0", "Queue", "Log", "Backlog 3", "✓ done", "landed"]);
    assert!(screen.lines().count() <= 60, "{screen}");
    terminal.resize(80, 24);
    terminal.until("one panel at a time", |screen| {
        screen.lines().count() <= 24 && screen.contains("Backlog 3") && !screen.contains("✓ done")
    });

    // A word to the agent.
    terminal.press(&["BTab"]);
    terminal.shows(&["T3", "Takes long"]);
    terminal.types("m");
    terminal.shows(&["Say to the agent of T3", "[ ] now"]);
    terminal.types("mind the names");
    terminal.press(&["Enter"]);
    terminal.until("it was taken", |screen| !screen.contains("Say to the agent"));

    // A stop, which asks first.
    terminal.types("x");
    terminal.shows(&["Stop T3?", "[n] now"]);
    terminal.escape("Stop T3?");
    terminal.types("x");
    terminal.shows(&["Stop T3?"]);
    terminal.types("n");
    run.wait(SOON);
    assert_eq!(scratch.status("T3"), "waiting", "{}", scratch.why("T3"));
    terminal.shows(&["no engine", "no run is under way"]);

    terminal.types("q");
    terminal.is_restored(0);
    let log: Vec<String> = scratch.log().iter().map(ToString::to_string).collect();
    for words in ["日本 please", "fine", "mind the names"] {
        assert!(log.iter().any(|entry| entry.contains(words)), "{words} is not in {log:#?}");
    }
    assert_eq!(
        scratch.left_behind().iter().filter(|it| !it.command.contains("tmux") && it.command != "sh").count(),
        0
    );
}

#[test]
fn a_run_is_paused_and_stopped_and_an_engine_that_goes_away_is_noticed() {
    let scratch = ScratchProject::new(LANDFALL);
    let Some(terminal) = Terminal::open(&scratch, 100, 30, &[]) else { return };
    scratch.task("Takes long", LONG, &[]);
    // Somebody must be there, or a pause ends the run.
    let first = OnTerminal::start(&scratch, &["run"], &[]);
    terminal.top();
    terminal.shows(&["● autopilot", "T1", "Takes long"]);
    terminal.types("p");
    terminal.shows(&["‖ paused", "PAUSED"]);
    terminal.types("p");
    terminal.shows(&["● autopilot"]);

    // As a power cut would. The view stays, says so, and finds the next engine.
    drop(first);
    terminal.shows(&["no engine drives the project any more", "no engine runs"]);
    let mut second = scratch.start(&["run"]);
    terminal.shows(&["an engine drives the project now", "● autopilot", "T1"]);

    terminal.types("s");
    terminal.shows(&["Stop R2?", "[y]", "[n]"]);
    terminal.types("n");
    second.wait(SOON);
    terminal.shows(&["no engine runs", "Slots 0"]);

    // The list of keys, and a filter in the last line.
    terminal.types("?");
    terminal.shows(&["Keys", "autopilot on or off"]);
    terminal.escape("autopilot on or off");
    terminal.types("/nothing");
    terminal.shows(&["filter the backlog: nothing", "no task has these words"]);
    terminal.press(&["Escape"]);
    terminal.shows(&["Takes long"]);
    terminal.press(&["C-c"]);
    terminal.is_restored(0);
}

#[test]
fn a_run_is_started_where_a_server_holds_the_project() {
    let scratch = ScratchProject::new(LANDFALL);
    let Some(terminal) = Terminal::open(&scratch, 80, 24, &[]) else { return };
    scratch.task("Works", &writes("b.txt"), &[]);
    terminal.top();
    terminal.shows(&["Backlog 1"]); // what is asked tells of what was seen by then
    terminal.types("s");
    terminal.shows(&["Start a run?", "1 task ready"]);
    terminal.types("y");
    terminal.shows(&["no server is running for this project", "landfall serve"]);

    let server = scratch.start(&["serve", "--listen", "127.0.0.1:0"]);
    terminal.shows(&["an engine drives the project now", "no run"]);
    terminal.types("s");
    terminal.shows(&["Start a run?"]);
    terminal.types("y");
    scratch.eventually("the work to land", || scratch.status("T1") == "done");
    terminal.press(&["BTab"]);
    terminal.shows(&["✓ done", "Works"]);
    terminal.types("q");
    terminal.is_restored(0);
    drop(server);
}

#[test]
fn the_terminal_is_given_back_when_a_signal_ends_the_view() {
    let scratch = ScratchProject::new(LANDFALL);
    let Some(terminal) = Terminal::open(&scratch, 80, 24, &[("NO_COLOR", "1")]) else { return };
    scratch.task("Fails", "signal = \"blocked:no way\"\n", &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    terminal.top();
    terminal.press(&["Tab"]);
    terminal.shows(&["⊗ blocked"]);
    let drawn = terminal.ask(&["capture-pane", "-p", "-e", "-t", "top"]);
    for colour in ["\u{1b}[3", "\u{1b}[9", "\u{1b}[38", ";3"] {
        let coloured = drawn.match_indices(colour).any(|(at, _)| {
            let rest = &drawn[at + 2..];
            rest[..rest.find('m').unwrap_or(0)]
                .split(';')
                .any(|code| matches!(code, "31" | "32" | "33" | "36" | "38"))
        });
        assert!(!coloured, "{drawn:?}");
    }
    let killed = Command::new("kill").args(["-TERM", &terminal.pid()]).status().expect("kill");
    assert!(killed.success());
    terminal.is_restored(130);

    // A stop of the whole process, and its going on.
    terminal.ask(&["clear-history", "-t", "top"]);
    terminal.types("clear");
    terminal.press(&["Enter"]);
    terminal.until("a clean screen", |screen| !screen.contains("left"));
    terminal.top();
    terminal.press(&["C-z"]);
    terminal.until("the shell is back", |screen| !screen.contains("? keys"));
    terminal.types("fg");
    terminal.press(&["Enter"]);
    terminal.shows(&["Slots", "? keys"]);
    terminal.types("q");
    terminal.until("it has left", |screen| !screen.contains("? keys"));
}

#[test]
fn a_large_backlog_at_rest_costs_next_to_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    let Some(terminal) = Terminal::open(&scratch, 200, 60, &[]) else { return };
    let titles: String = (1..=10_000).map(|number| format!("Task number {number}\n")).collect();
    scratch.landfall_with(&["add", "-"], titles.as_bytes()).ok();
    terminal.top();
    terminal.shows(&["Backlog 10000", "Task number 1 "]);
    terminal.types("/9999");
    terminal.shows(&["Backlog 1 of 10000", "Task number 9999"]);
    terminal.press(&["Escape"]);
    let stat = format!("/proc/{}/stat", terminal.pid());
    let ticks = || {
        let stat = std::fs::read_to_string(&stat).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
    };
    // What it costs can only be seen over a time: three seconds, in which it asks for everything at least twice.
    let before = ticks();
    std::thread::sleep(Duration::from_secs(3));
    let spent = ticks() - before;
    assert!(spent <= 15, "{spent} ticks, a hundredth of a second each, in three seconds at rest");
    terminal.types("q");
    terminal.is_restored(0);
}

#[test]
fn it_wants_a_terminal_and_says_what_programs_use() {
    let scratch = ScratchProject::new(LANDFALL);
    let said = scratch.landfall(&["top"]);
    assert!(said.code == Some(2) && said.err.contains("needs a terminal"), "{said:?}");
    let said = scratch.landfall(&["--json", "top"]);
    assert!(said.code == Some(2) && said.err.contains("status --json"), "{said:?}");
}
