//! A tmux server of our own, with one terminal in it.
//!
//! All commands run in the folder of the socket and name it without a path: a socket's address is short, and state
//! folders lie deep. The server puts itself into the background; it stays in the sitter's tree, and we end it.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use landfall_agents::tmux::{SOCKET, TerminalScreen, TmuxOrder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Narrow enough that no program puts a second column beside its words, high enough for most messages.
const COLUMNS: &str = "120";
const ROWS: &str = "60";
/// How long the server may take to end.
const END_MAX: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

pub(super) struct Server {
    folder: PathBuf,
    name: String,
    /// The server's process, and nobody who has its process id after it.
    server: Option<OwnedFd>,
    pane: i32,
}

/// One look at the terminal.
pub(super) struct TerminalCapture {
    pub(super) screen: TerminalScreen,
    /// How the program ended, if it has.
    pub(super) dead: Option<String>,
}

/// A program ended, and tmux does not say how.
const UNTOLD: &str = "it left";

impl Server {
    /// Starts the server and the agent in it.
    pub(super) fn start(order: &TmuxOrder) -> Result<Self, String> {
        let cwd = std::env::current_dir().map_err(|error| format!("find the current folder: {error}"))?;
        let cwd = cwd.to_str().ok_or("the path of the workspace is no text")?.to_owned();
        let mut it = Self { folder: order.folder.clone(), name: order.name.clone(), server: None, pane: 0 };
        // The server stays when its last program ends, so that we can see how that was.
        let mut words: Vec<&str> = vec!["start-server"];
        for option in [
            ["-s", "exit-empty", "off"],
            ["-s", "escape-time", "0"],
            ["-g", "remain-on-exit", "on"],
            ["-g", "history-limit", "5000"],
            ["-g", "allow-rename", "off"],
            ["-g", "update-environment", ""],
            // Nothing that the agent says may run on the side of a person who attaches.
            ["-g", "lock-command", "true"],
            ["-g", "status-left", "#{session_name} "],
            ["-g", "status-right", "leave with C-b d"],
        ] {
            words.extend([";", "set-option"]);
            words.extend(option);
        }
        // All in one: a server with nothing in it is gone before the next command comes.
        words.extend([";", "new-session", "-d", "-P", "-F", "#{pid} #{pane_pid}", "-s", &order.name]);
        words.extend(["-x", COLUMNS, "-y", ROWS, "-c", &cwd]);
        // Where its terminal is served from is no business of the agent.
        words.extend(["--", "env", "-u", "TMUX", "-u", "TMUX_PANE"]);
        let argv: Vec<String> = order.argv.iter().map(|word| escape_argument(word)).collect();
        words.extend(argv.iter().map(String::as_str));
        let told = it.run_tmux(&words)?;
        // A person who attaches with a smaller window sees a part, and the agent does not have to draw anew.
        it.run_tmux(&["resize-window", "-t", &order.name, "-x", COLUMNS, "-y", ROWS])?;
        let mut ids = told.split_whitespace().map(|id| id.parse().unwrap_or(0));
        let pid = ids.next().and_then(Pid::from_raw);
        it.server = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        it.pane = ids.next().unwrap_or(0);
        Ok(it)
    }

    /// The agent's process.
    pub(super) fn pane(&self) -> i32 {
        self.pane
    }

    /// Looks at the terminal. How a program ended is known a moment after its end: the terminal closes first. A server
    /// that has just started may miss that its child is gone; it is told, and then looks.
    pub(super) fn capture_screen(&self) -> Result<TerminalCapture, String> {
        const TRIES: u32 = 20;
        const PAUSE: Duration = Duration::from_millis(50);
        for _ in 0..TRIES {
            let shot = self.capture_screen_once()?;
            if shot.dead.as_deref() != Some(UNTOLD) {
                return Ok(shot);
            }
            if let Some(server) = &self.server {
                pidfd_send_signal(server, Signal::CHILD).ok(); // a server that is gone shows at the next look
            }
            std::thread::sleep(PAUSE);
        }
        self.capture_screen_once()
    }

    fn capture_screen_once(&self) -> Result<TerminalCapture, String> {
        const FORMAT: &str = "#{pane_dead};#{pane_dead_status};#{pane_dead_signal};#{cursor_y};#{pane_title}";
        let told = self.run_tmux(&[
            "display-message",
            "-p",
            "-t",
            &self.name,
            FORMAT,
            ";",
            "capture-pane",
            "-p",
            "-t",
            &self.name,
        ])?;
        let (head, text) = told.split_once('\n').ok_or("tmux says nothing of its terminal")?;
        let mut fields = head.splitn(5, ';');
        let mut field = || fields.next().unwrap_or_default();
        let (dead, status, signal, cursor, title) = (field(), field(), field(), field(), field());
        let dead = (dead == "1").then(|| match (status, signal) {
            (_, signal) if !signal.is_empty() => format!("signal {signal}"),
            ("", _) => UNTOLD.to_owned(),
            (status, _) => format!("exit status {status}"),
        });
        Ok(TerminalCapture {
            screen: TerminalScreen::new(text, cursor.parse().unwrap_or(usize::MAX), title),
            dead,
        })
    }

    /// Presses a key, or types a word.
    pub(super) fn press_key(&self, key: &str) {
        let _ = self.run_tmux(&["send-keys", "-t", &self.name, key]); // a terminal that is gone shows at the next look
    }

    /// Types a text of many lines as one.
    pub(super) fn paste_text(&self, text: &str) -> Result<(), String> {
        let mut child = self
            .tmux_command(&["load-buffer", "-b", "prompt", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| format!("run tmux: {error}"))?;
        let written = child.stdin.take().expect("piped").write_all(text.trim_end().as_bytes());
        let status = child.wait().map_err(|error| format!("wait for tmux: {error}"))?;
        written.map_err(|error| format!("hand the prompt to tmux: {error}"))?;
        if !status.success() {
            return Err("tmux does not take the prompt".to_owned());
        }
        self.run_tmux(&["paste-buffer", "-p", "-d", "-b", "prompt", "-t", &self.name]).map(drop)
    }

    /// Ends the server with all that is in it.
    pub(super) fn kill_server(&mut self) {
        let _ = self.run_tmux(&["kill-server"]); // it may have ended by itself
        let Some(server) = self.server.take() else { return };
        let ended = poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&END_MAX));
        if ended.unwrap_or(0) == 0 {
            pidfd_send_signal(&server, Signal::KILL).ok(); // it has ended this moment
        }
        let _ = std::fs::remove_file(self.folder.join(SOCKET)); // gone with the server, mostly
    }

    fn tmux_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-f", "/dev/null", "-S", SOCKET])
            .args(words)
            .current_dir(&self.folder)
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run_tmux(&self, words: &[&str]) -> Result<String, String> {
        let output = self.tmux_command(words).output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "tmux is not installed".to_owned(),
            _ => format!("run tmux: {error}"),
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("tmux {}: {}", words.first().unwrap_or(&""), said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A word as tmux takes it: one that ends with a semicolon would end the command.
fn escape_argument(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => word.to_owned(),
    }
}
