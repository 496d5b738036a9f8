//! The sandbox from outside. Agents and checks may write little and signal nobody, so a test that meets them half-way
//! opens a folder for that, and a test of the second line of defence switches the sandbox off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landfall_testkit::{ScratchProject, has_tmux, skip_test};
use serde_json::Value;

use crate::LANDFALL;

/// The folder that agents and checks may write once the settings open it.
pub fn open_folder(scratch: &ScratchProject) -> PathBuf {
    let folder = scratch.root().join("home/open");
    std::fs::create_dir_all(&folder).expect("the scratch folder can be written");
    folder
}

/// Opens that folder to agents and checks. Called once the other settings stand.
pub fn open(scratch: &ScratchProject) -> PathBuf {
    run_setting(scratch, "sandbox_write = [\"~/open\"]");
    open_folder(scratch)
}

/// Switches the sandbox off, for agents and for checks. Called once the other settings stand.
pub fn off(scratch: &ScratchProject) {
    run_setting(scratch, "sandbox = \"off\"");
}

/// Adds a line to the `[run]` section, which may not be there yet.
pub fn run_setting(scratch: &ScratchProject, line: &str) {
    let path = scratch.project().join("landfall.toml");
    let before = std::fs::read_to_string(path).expect("the settings can be read");
    let after = if before.contains("[run]\n") {
        before.replacen("[run]\n", &format!("[run]\n{line}\n"), 1)
    } else {
        format!("{before}\n[run]\n{line}\n")
    };
    scratch.settings(&after);
}

/// What an agent, or the code of it that a check runs, could try outside its workspace. Each undoes itself where the
/// rest of the story could not go on otherwise.
const TRIES: [(&str, &str); 17] = [
    ("write a new file into the project", "echo x > PROJECT/new.txt"),
    ("write to a file of the project", "echo x >> PROJECT/a.txt"),
    ("delete a file of the project", "rm PROJECT/test.sh"),
    ("take a file of the project away", "mv PROJECT/taken.txt ."),
    ("get a second name for a file of the project", "ln PROJECT/a.txt linked.txt"),
    ("make a branch for the person", "git -C PROJECT branch evil main"),
    ("move a branch of the person", "git -C PROJECT update-ref refs/heads/mine main~1"),
    (
        "plant a hook for the person",
        "mkdir -p PROJECT/.git/hooks && echo true > PROJECT/.git/hooks/pre-commit",
    ),
    ("write into the home folder", "echo x > HOME/.profile"),
    ("write beside the project", "echo x > ROOT/beside"),
    ("read a secret", "cat HOME/.ssh/id_ed25519"),
    ("read the journal", "cat STATE/journal.db"),
    ("move the base of the store", "git --git-dir=STATE/store.git update-ref refs/landfall/base SEEN"),
    (
        "move a workspace",
        "mv STATE/workspaces/T1 STATE/workspaces/T2 && mv STATE/workspaces/T2 STATE/workspaces/T1",
    ),
    ("write into the record of a run", "for it in STATE/attempts/*; do echo x > $it/forged; done"),
    ("stop the sitter", "kill -STOP $sitter && kill -CONT $sitter"),
    ("stop the engine", "kill -STOP $engine && kill -CONT $engine"),
];

/// Who tries.
#[derive(Debug, Clone, Copy)]
enum Who {
    Agent,
    Check,
}

/// A person's project with something to lose, in which an agent or a check tries everything; what came of each try.
fn tried(who: Who, settings: &str) -> (ScratchProject, Vec<String>) {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open_folder(&scratch);
    let home = scratch.root().join("home");
    std::fs::create_dir(home.join(".ssh")).expect("ours");
    std::fs::write(home.join(".ssh/id_ed25519"), "secret\n").expect("ours");
    scratch.file("taken.txt", "mine\n");
    scratch.file("tries.sh", &tries(&scratch));
    let tells = |sitter: &str, needs: &str| {
        format!(
            "engine={0}/engine marks={0}/marks sitter={sitter} needs={needs} sh tries.sh",
            folder.display()
        )
    };
    let (script, check) = match who {
        Who::Agent => {
            let command = tells("$(cut -d' ' -f4 /proc/$PPID/stat)", "tries.sh");
            let script = format!("run = [\"sh\", \"-c\", \"{command}\"]\nsignal = \"blocked:enough\"\n");
            (script, "true".to_owned())
        }
        Who::Check => {
            let script = "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n".to_owned();
            (script, format!("{}; test ! -e b.txt", tells("$PPID", "b.txt"))) // so that it does not land
        }
    };
    scratch.settings(&format!(
        "[agent.default]\nkind = \"script\"\n[run]\niterations_max = 1\nsandbox_write = [\"~/open\"]\n{settings}\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"{check}\"\n"
    ));
    scratch.git(&["branch", "mine"]);
    scratch.task("Tries", &script, &[]);
    let before = [all_of(&scratch.project()), all_of(&home)];
    let mut run = scratch.start(&["run"]);
    std::fs::write(folder.join("engine"), run.pid().to_string()).expect("ours");
    run.wait(Duration::from_secs(60));
    let marks = std::fs::read_to_string(folder.join("marks")).unwrap_or_default();
    if settings.is_empty() {
        assert_eq!(
            before,
            [all_of(&scratch.project()), all_of(&home)],
            "{who:?}: nothing of the person changed"
        );
    }
    (scratch, marks.lines().map(str::to_owned).collect())
}

/// A shell script that tries everything once and writes down what came of it. On the base, without `$needs`, it does nothing.
fn tries(scratch: &ScratchProject) -> String {
    let seen = scratch.git(&["rev-parse", "main"]);
    let mut script =
        "[ ! -e $marks ] || exit 0\n[ -e $needs ] || exit 0\nwhile [ ! -s $engine ]; do sleep 0.02; done\nengine=$(cat $engine)\n"
            .to_owned();
    for (what, how) in TRIES {
        let how = how
            .replace("PROJECT", &scratch.project().display().to_string())
            .replace("HOME", &scratch.root().join("home").display().to_string())
            .replace("STATE", &scratch.state().display().to_string())
            .replace("ROOT", &scratch.root().display().to_string())
            .replace("SEEN", &seen);
        script.push_str(&format!("if ( {how} ) > /dev/null 2>&1; then echo '{what}: done'; else echo '{what}: refused'; fi >> $marks\n"));
    }
    script
}

/// Every file below a folder with its bytes, apart from the open folder.
fn all_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("readable").flatten() {
            let kind = entry.file_type().expect("readable");
            if kind.is_dir() && entry.file_name() == "open" {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let bytes =
                if kind.is_file() { std::fs::read(entry.path()).expect("readable") } else { Vec::new() };
            all.insert(entry.path(), bytes);
        }
    }
    all
}

fn expected(outcome: &str) -> Vec<String> {
    TRIES.iter().map(|(what, _)| format!("{what}: {outcome}")).collect()
}

#[test]
fn nothing_that_an_agent_or_a_check_tries_outside_its_workspace_has_any_effect() {
    for (who, status) in [(Who::Agent, "blocked"), (Who::Check, "failed")] {
        let (scratch, came) = tried(who, "");
        assert_eq!(came, expected("refused"), "{who:?}: {}", scratch.heard());
        assert_eq!(scratch.status("T1"), status, "{who:?}: {}", scratch.why("T1"));
        let base = scratch.store(&["rev-parse", "refs/landfall/base"]);
        assert_eq!(base, Some(scratch.git(&["rev-parse", "main"])), "{who:?}");
        assert!(!scratch.root().join("beside").exists(), "{who:?}");
        let records = std::fs::read_dir(scratch.state().join("attempts")).expect("there are records");
        assert!(records.flatten().all(|it| !it.path().join("forged").exists()), "{who:?}");
        assert_eq!(scratch.left_behind(), [], "{who:?}");
    }
}

/// A try that fails for another reason would prove nothing above.
#[test]
fn without_the_sandbox_each_of_these_tries_bites() {
    for who in [Who::Agent, Who::Check] {
        let (scratch, came) = tried(who, "sandbox = \"off\"");
        assert_eq!(came, expected("done"), "{who:?}: {}", scratch.heard());
        assert_eq!(scratch.left_behind(), [], "{who:?}");
    }
}

/// An agent that asks the engine which drives it: its state folder cannot be read, but a socket is reached by its path.
#[test]
fn an_agent_at_work_cannot_ask_the_engine_with_or_without_the_sandbox() {
    for setting in ["sandbox = \"write\"", "sandbox = \"off\""] {
        let scratch = ScratchProject::new(LANDFALL);
        run_setting(&scratch, setting);
        let ask = format!(
            "cd {}; LANDFALL_STATE={} {LANDFALL} add planted >said.txt 2>&1; cat said.txt",
            scratch.project().display(),
            scratch.state().display(),
        )
        .replace("said.txt", "$LANDFALL_WORK/said.txt");
        let ask = format!("LANDFALL_WORK=$PWD; {ask}");
        let run = format!("run = [\"sh\", \"-c\", {ask:?}]");
        let script =
            format!("{run}\nsignal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n");
        scratch.task("Asks", &script, &[]);
        scratch.landfall(&["run"]);
        let said = scratch.git(&["show", "main:said.txt"]);
        assert!(said.contains("an agent at work may not ask the engine"), "{setting}: {said}");
        let listed = scratch.landfall(&["--json", "list"]).json();
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "{setting}: {listed}");
    }
}

/// The levels, most closed first, as the guide shows them.
const LEVELS: [&str; 4] = ["strict", "isolated", "write", "off"];

/// The table of the guide, made of what the probes say. The secrets are one row.
fn table(report: &Value) -> String {
    let probes = report["probes"].as_array().expect("a list");
    let is_secret = |probe: &&Value| probe["name"].as_str().is_some_and(|name| name.starts_with("secret:"));
    let mut text = format!(
        "| an agent tries to | {} |\n|---|---|---|---|---|\n",
        LEVELS.map(|level| format!("`{level}`")).join(" | ")
    );
    for probe in probes.iter().filter(|probe| !is_secret(probe)) {
        let outcomes = LEVELS.map(|level| probe["outcomes"][level].as_str().expect("each level was tried"));
        text += &format!("| {} | {} |\n", probe["what"].as_str().expect("text"), outcomes.join(" | "));
    }
    let secrets: Vec<&Value> = probes.iter().filter(is_secret).collect();
    let counts = LEVELS.map(|level| {
        let open = secrets.iter().filter(|probe| probe["outcomes"][level] == "allowed").count();
        format!("{open} readable")
    });
    text + &format!(
        "| read {} usual places of secrets in the home folder | {} |\n",
        secrets.len(),
        counts.join(" | ")
    )
}

/// `LANDFALL_BLESS=1` writes the table again.
#[test]
fn the_table_of_the_guide_is_what_the_probes_say() {
    const BEGIN: &str = "<!-- Made by `landfall doctor --sandbox`; LANDFALL_BLESS=1 writes it again. -->\n";
    const END: &str = "<!-- End of the table. -->";
    let scratch = ScratchProject::new(LANDFALL);
    let report = scratch.landfall(&["--json", "doctor", "--sandbox"]).json();
    let supported = report["supported"].as_array().map_or(0, Vec::len);
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if supported < LEVELS.len() || !is_root {
        return skip_test("this machine does not support every level of the sandbox, or we are not root");
    }
    assert_eq!(report["level"], "isolated", "{report}");
    assert!(report["probes"].as_array().is_some_and(|probes| probes.len() >= 30), "{report}");
    assert!(report["took_ms"].as_u64().is_some_and(|took| took <= 30_000), "{report}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/safety.md");
    let text = std::fs::read_to_string(&page).expect("the guide");
    let begin = text.find(BEGIN).expect("the table begins") + BEGIN.len();
    let end = begin + text[begin..].find(END).expect("the table ends");
    let made = table(&report);
    if std::env::var_os("LANDFALL_BLESS").is_some() {
        std::fs::write(&page, format!("{}{made}{}", &text[..begin], &text[end..])).expect("writable");
        return;
    }
    assert_eq!(
        text[begin..end],
        made,
        "docs/guide/safety.md is out of date; run this test with LANDFALL_BLESS=1"
    );
}

#[test]
fn an_ordinary_user_is_refused_what_root_is_refused() {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    let scratch = ScratchProject::new(LANDFALL);
    let of_root = scratch.landfall(&["--json", "doctor", "--sandbox"]).json();
    let owner = format!("{NOBODY}:{NOBODY}");
    let chown = Command::new("chown").args(["-R", &owner]).arg(scratch.root()).output();
    let mut doctor = scratch.command(&["--json", "doctor", "--sandbox"]);
    let said = doctor.uid(NOBODY).gid(NOBODY).output();
    let (true, Ok(said)) = (chown.is_ok_and(|done| done.status.success()), said) else {
        return skip_test("running as another user needs root, and a program that they can read");
    };
    let words = String::from_utf8_lossy(&said.stderr);
    let of_user: Value =
        serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {words}"));
    for level in ["strict", "isolated", "write"] {
        let supports =
            |report: &Value| report["supported"].as_array().is_some_and(|all| all.contains(&level.into()));
        if !supports(&of_root) || !supports(&of_user) {
            skip_test(&format!("the level {level} is not supported for root and for an ordinary user"));
            continue;
        }
        let outcomes = |report: &Value| -> BTreeMap<String, String> {
            let probes = report["probes"].as_array().expect("a list").iter();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            probes.map(|probe| (text(&probe["name"]), text(&probe["outcomes"][level]))).collect()
        };
        let mut of_root = outcomes(&of_root);
        let of_user = outcomes(&of_user);
        if of_user.get("alias-mount") != of_root.get("alias-mount") {
            of_root.remove("alias-mount"); // only root can make a mount for an agent to try
        }
        let refused = |outcomes: &BTreeMap<String, String>| -> Vec<String> {
            let refused = outcomes.iter().filter(|(_, outcome)| *outcome == "refused");
            refused.map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(refused(&of_user), refused(&of_root), "{level}");
    }
}

/// As on a machine whose kernel or container forbids namespaces.
#[test]
fn where_isolation_is_missing_the_level_is_write_and_everybody_says_so() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.set("LANDFALL_SANDBOX_BREAK", "namespaces");
    let open = "sockets of local services, by their path";
    scratch.task("Works", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let certificate: Value =
        serde_json::from_str(&scratch.landfall(&["certificate", "T1"]).ok()).expect("JSON");
    for (whose, sandbox) in [
        ("the checks", &certificate["verification"]["sandbox"]),
        ("the agent", &certificate["work"]["sandbox"]),
    ] {
        assert_eq!(sandbox["level"], "write", "{whose}: {certificate}");
        assert!(sandbox["leaves_open"].as_array().is_some_and(|list| list.contains(&open.into())), "{whose}");
    }
    let status = scratch.landfall(&["status"]).ok();
    assert!(status.contains("level `write`") && status.contains(open), "{status}");
    let doctor = scratch.landfall(&["doctor"]).out;
    let line = doctor.lines().find(|line| line.contains("sandbox: ")).unwrap_or_default();
    assert!(line.starts_with("warn") && line.contains("level `write`") && line.contains(open), "{doctor}");
    std::fs::remove_file(scratch.project().join("landfall.toml")).expect("ours");
    let init = scratch.landfall(&["init"]).ok();
    assert!(init.contains("level write") && init.contains(open), "{init}");
}

/// A container in which namespaces can be made no more, as root in it and as an ordinary user outside of it.
#[test]
fn in_a_namespace_that_forbids_others_the_probes_run_at_write() {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    const INSIDE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces \
         && exec \"$@\"";
    let scratch = ScratchProject::new(LANDFALL);
    let of_root = scratch.landfall(&["--json", "doctor", "--sandbox"]).json();
    for is_root in [true, false] {
        let owner = format!("{NOBODY}:{NOBODY}");
        let inner = scratch.command(&["--json", "doctor", "--sandbox"]);
        let mut doctor = Command::new("unshare");
        doctor.args(["--user", "--map-root-user", "sh", "-c", INSIDE, "sh"]).arg(inner.get_program());
        doctor.args(inner.get_args()).env_clear().current_dir(scratch.project());
        doctor.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if !is_root {
            let chown = Command::new("chown").args(["-R", &owner]).arg(scratch.root()).status();
            if !chown.is_ok_and(|status| status.success()) {
                return skip_test("running as another user needs root");
            }
            doctor.uid(NOBODY).gid(NOBODY);
        }
        let Ok(said) = doctor.output() else { return skip_test("`unshare` is not installed") };
        let words = String::from_utf8_lossy(&said.stderr).into_owned();
        if words.contains("unshare: ") {
            return skip_test("this machine has no user namespaces");
        }
        let report: Value =
            serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {words}"));
        assert_eq!(report["level"], "write", "{report}");
        assert_eq!(report["supported"], serde_json::json!(["off", "write"]), "{words}");
        assert!(report["leaves_open"].as_array().is_some_and(|open| !open.is_empty()));
        assert!(report["took_ms"].as_u64().is_some_and(|took| took <= 30_000), "{report}");
        let refused = |report: &Value| -> Vec<String> {
            let probes = report["probes"].as_array().expect("a list").iter();
            let refused = probes.filter(|probe| probe["outcomes"]["write"] == "refused");
            let names = refused.filter_map(|probe| probe["name"].as_str()).map(str::to_owned);
            names.filter(|name| name != "alias-mount").collect() // not everybody can make a mount to try
        };
        assert!(refused(&report).len() >= 30, "{report}");
        assert_eq!(refused(&report), refused(&of_root), "{is_root}");
    }
}

/// Behind a proxy that opens TLS, nothing can be downloaded without both.
#[test]
fn proxies_and_certificates_reach_agents_and_checks() {
    let mut scratch = ScratchProject::new(LANDFALL);
    let certificates = scratch.root().join("home/company.pem");
    std::fs::write(&certificates, "certificates\n").expect("ours");
    scratch.set("https_proxy", "http://127.0.0.1:9");
    scratch.set("NO_PROXY", "localhost");
    scratch.set("NODE_EXTRA_CA_CERTS", certificates.to_str().expect("plain"));
    scratch.file(
        "look.sh",
        "test -n \"$https_proxy\" && test -n \"$NO_PROXY\" && grep cert \"$NODE_EXTRA_CA_CERTS\"\n",
    );
    scratch.more_settings("[[verify.command]]\nname = \"sees\"\nrun = \"sh look.sh\"\n");
    let script = "run = [\"sh\", \"-c\", \"sh look.sh >seen.txt\"]\nsignal = \"complete\"\n";
    scratch.task("Looks", script, &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:seen.txt"]).trim(), "certificates");
}

/// Required is required: by the settings alone, and on a machine that has not got it.
#[test]
fn a_required_level_is_never_lowered() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[sandbox]\nrequire = \"isolated\"");
    scratch.set("LANDFALL_SANDBOX_BREAK", "namespaces");
    scratch.task("Works", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_ne!(scratch.status("T1"), "done");
    let why = scratch.why("T1");
    assert!(why.contains("`isolated`") && why.contains("namespaces"), "{why}");
    for setting in ["sandbox = \"write\"", "sandbox = \"off\""] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings("[sandbox]\nrequire = \"isolated\"");
        run_setting(&scratch, setting);
        let refused = scratch.landfall(&["run"]);
        assert!(
            refused.code != Some(0) && refused.err.contains("`sandbox.require` is \"isolated\""),
            "{refused:?}"
        );
    }
}

/// A server of a terminal multiplexer runs whatever it is asked to, as the user: one in `/tmp` and one in the home folder, each
/// started before the agent and after it.
#[test]
fn a_terminal_server_of_the_user_is_out_of_reach() {
    if !has_tmux() {
        return;
    }
    for (setting, reached) in [("", 0), ("sandbox = \"write\"", 4)] {
        let scratch = ScratchProject::within(&std::env::temp_dir(), LANDFALL); // where such servers have their sockets
        let folder = open_folder(&scratch);
        let places =
            ["tmp/before", "home/before", "tmp/after", "home/after"].map(|name| scratch.root().join(name));
        let servers = places.each_ref().map(|place| TerminalServer(place.clone()));
        servers[..2].iter().for_each(TerminalServer::start);
        let tries = places.each_ref().map(|place| {
            let mark = place.with_extension("reached");
            format!("tmux -S {} run-shell 'touch {}'", place.display(), mark.display())
        });
        let script = format!(
            "touch {0}/ready; while [ ! -e {0}/go ]; do sleep 0.02; done; {1}; true",
            folder.display(),
            tries.join("; ")
        );
        scratch.settings(&format!(
            "[agent.default]\nkind = \"script\"\n[run]\nsandbox_write = [\"~/open\"]\n{setting}\n"
        ));
        let task = format!("run = [\"sh\", \"-c\", {script:?}]\nsignal = \"blocked:enough\"\n");
        scratch.task("Tries", &task, &[]);
        let mut run = scratch.start(&["run"]);
        crate::support::until("the agent is ready", || folder.join("ready").exists());
        servers[2..].iter().for_each(TerminalServer::start);
        std::fs::write(folder.join("go"), "").expect("ours");
        run.wait(Duration::from_secs(60));
        assert_eq!(scratch.status("T1"), "blocked", "{setting}: {}", scratch.why("T1"));
        let found = places.iter().filter(|place| place.with_extension("reached").exists()).count();
        assert_eq!(found, reached, "{setting}");
    }
}

/// A server with one session, by the path of its socket.
struct TerminalServer(PathBuf);

impl TerminalServer {
    fn command(&self, args: &[&str]) -> bool {
        let mut command = std::process::Command::new("tmux");
        command.arg("-S").arg(&self.0).args(["-f", "/dev/null"]).args(args);
        command.env_remove("TMUX").output().is_ok_and(|output| output.status.success())
    }

    fn start(&self) {
        assert!(self.command(&["new-session", "-d", "sleep 600"]), "{}", self.0.display());
    }
}

impl Drop for TerminalServer {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}
