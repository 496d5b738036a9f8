//! A project, an agent and its model.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_testkit::{BackgroundCommand, ModelServer, PlayTurn, ScratchProject, skip_test};

use crate::LANDFALL;
use crate::kind::Kind;

/// The variable that says where the agents are: folders as in `PATH`.
const VARIABLE: &str = "LANDFALL_AGENTS";

/// Long enough for the slowest of them on a busy machine; no story needs a quarter of it on a quiet one.
pub const LIMIT: Duration = Duration::from_secs(300);

pub struct Stage {
    pub scratch: ScratchProject,
    pub server: ModelServer,
}

/// The agent's name on the model's server.
const PLAYER: &str = "agent";

impl Stage {
    /// A project whose agent is of this kind and has been used before, with more lines for its profile and for the
    /// section `[run]`; none when the agents are not there.
    pub fn new(kind: Kind, profile: &str, run: &str) -> Option<Self> {
        let stage = Self::unused(kind, profile, run)?;
        kind.settle(&stage.scratch);
        Some(stage)
    }

    /// The same with an agent that was never started in this home.
    pub fn unused(kind: Kind, profile: &str, run: &str) -> Option<Self> {
        let Some(folders) = std::env::var_os(VARIABLE) else {
            skip_test("the agent CLIs are not installed; `cargo xtask agents` installs them");
            return None;
        };
        let server = ModelServer::start();
        let url = server.url(PLAYER);
        let mut scratch =
            ScratchProject::within(&private_folder().unwrap_or_else(std::env::temp_dir), LANDFALL);
        scratch.be_patient(LIMIT);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::env::split_paths(&folders).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(all).expect("they were joined before");
        scratch.set("PATH", path.to_str().expect("plain folders"));
        kind.move_in(&scratch, &url);
        let (name, usual, sandbox) = (kind.name(), kind.profile(&url), kind.sandbox());
        scratch.settings(&format!(
            "[agent.default]\nkind = \"{name}\"\n{usual}\n{profile}\n\n[run]\n{sandbox}{run}\n\
             [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\ntimeout = \"20s\"\n"
        ));
        let added = scratch.landfall(&["add", "Add a greeting", "--body", "Write hello into hello.txt."]);
        assert_eq!(added.code, Some(0), "{}", added.err);
        Some(Self { scratch, server })
    }

    /// The folders where programs are found, as in `PATH`.
    pub fn path(&self) -> String {
        let command = self.scratch.command::<&str>(&[]);
        let mut variables = command.get_envs().filter(|(key, _)| *key == "PATH");
        let path = variables.next().and_then(|(_, value)| value?.to_str());
        path.expect("it was set").to_owned()
    }

    /// Claude works with a login in place of a key.
    pub fn log_in(&self) {
        let settings =
            std::fs::read_to_string(self.scratch.project().join("landfall.toml")).expect("written");
        let login = "CLAUDE_CODE_OAUTH_TOKEN = \"dummy\"";
        self.scratch.settings(&settings.replace("ANTHROPIC_API_KEY = \"dummy\"", login));
    }

    /// Begins a play anew.
    pub fn play(&self, turns: impl IntoIterator<Item = PlayTurn>) {
        self.server.play(PLAYER, turns);
    }

    /// Starts the engine.
    pub fn run(&self) -> BackgroundCommand {
        self.scratch.start(&["run"])
    }

    /// Starts the engine for one task.
    pub fn run_only(&self, task: &str) -> BackgroundCommand {
        self.scratch.start(&["run", task])
    }

    /// How often the model was asked.
    pub fn asked(&self) -> usize {
        self.server.asked(PLAYER).len()
    }

    /// The bodies of what the model was asked.
    pub fn bodies(&self) -> Vec<landfall_testkit::ModelRequest> {
        self.server.asked(PLAYER)
    }

    /// Waits until the model was asked so often.
    #[track_caller]
    pub fn until_asked(&self, count: usize) {
        self.until(&format!("{count} requests"), || self.asked() >= count);
    }

    /// One of the counters of the task.
    #[track_caller]
    pub fn counter(&self, name: &str) -> u64 {
        let detail = self.scratch.detail("T1");
        let counters = detail["counters"].as_array().expect("a list");
        let found = counters.iter().find(|it| it["name"] == name).and_then(|it| it["used"].as_u64());
        found.unwrap_or_else(|| panic!("no counter `{name}` in {counters:?}"))
    }

    /// Waits until the task waits for this.
    #[track_caller]
    pub fn until_waits_for(&self, what: &str) {
        self.until(&format!("the task to wait for {what}"), || self.scratch.wait_of("T1") == what);
    }

    /// Waits until something holds; what is known is shown when it does not.
    #[track_caller]
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < LIMIT, "waited {LIMIT:?} for {what}\n{}", self.story());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the end of the run, which must be a good one.
    #[track_caller]
    pub fn until_over(&self, run: &mut BackgroundCommand) {
        self.until("the run to end", || run.is_over());
        let code = run.wait(Duration::from_secs(1));
        assert_eq!(code, Some(0), "{}", self.story());
    }

    /// The work is on main, once, and nothing is left behind.
    #[track_caller]
    pub fn check_landed(&self) {
        let scratch = &self.scratch;
        assert_eq!(scratch.status("T1"), "done", "{}", self.story());
        assert_eq!(scratch.facts("T1", "landed").len(), 1, "{}", self.story());
        let subjects = scratch.git(&["log", "--first-parent", "--format=%s", "main"]);
        let landed = subjects.lines().filter(|line| line.contains("(T1)")).count();
        assert_eq!(landed, 1, "it is on main once:\n{subjects}");
        assert_eq!(scratch.git(&["show", "main:hello.txt"]).lines().next(), Some("hello"));
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "the checkout is clean");
        let warnings = scratch.detail("T1")["warnings"].to_string();
        assert!(!warnings.contains("AGENT_SETTINGS_CHANGED"), "no false alarm: {warnings}");
        assert_eq!(scratch.left_behind(), [], "no process is left");
        assert_eq!(self.server.strays(), [""; 0], "nothing was asked that the model does not know");
    }

    /// What every run of the agent has written, oldest first.
    pub fn outputs(&self) -> Vec<String> {
        self.files("out.log")
    }

    /// How every run of the agent ended, as its sitter wrote it down.
    pub fn ends(&self) -> Vec<serde_json::Value> {
        self.files("exit.json").iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
    }

    fn files(&self, name: &str) -> Vec<String> {
        let mut runs: Vec<PathBuf> = std::fs::read_dir(self.scratch.state().join("attempts"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("-i"))) // not a check
            .collect();
        runs.sort();
        let read = |run: &PathBuf| std::fs::read(run.join(name)).unwrap_or_default();
        runs.iter().map(|run| String::from_utf8_lossy(&read(run)).into_owned()).collect()
    }

    /// All that helps to see why a test failed.
    pub fn story(&self) -> String {
        let mut story = format!("engine:\n{}\njournal:\n", self.scratch.heard());
        for fact in self.scratch.log() {
            story += &format!(
                "  {} {}\n",
                fact["kind"].as_str().unwrap_or("?"),
                fact["text"].as_str().unwrap_or("?")
            );
        }
        let all = self.outputs().into_iter().zip(self.files("err.log"));
        for (number, (output, err)) in all.enumerate() {
            let end: Vec<&str> = err.lines().rev().take(4).chain(output.lines().rev().take(6)).collect();
            story += &format!("run {number} ends with:\n");
            for line in end.iter().rev() {
                story += &format!("  {}\n", line.chars().take(700).collect::<String>());
            }
        }
        story += "model:\n";
        for asked in self.server.asked_all() {
            story +=
                &format!("  {:?} {} side {} turn {:?}\n", asked.dialect, asked.model, asked.side, asked.turn);
        }
        story + &format!("strays: {:?}\n", self.server.strays())
    }
}

/// A folder that nobody else can write to, nor to any of its parents: Gemini CLI reads our settings in no other place. That is
/// the target folder, or a folder in the cache of `cargo xtask`.
pub fn private_folder() -> Option<PathBuf> {
    let is_private = |folder: &Path| {
        folder.metadata().is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o022 == 0)
    };
    let cached = std::env::var_os("LANDFALL_PRIVATE_FOLDER").map(PathBuf::from);
    let candidates = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), cached];
    candidates.into_iter().flatten().find(|folder| folder.ancestors().all(is_private))
}
