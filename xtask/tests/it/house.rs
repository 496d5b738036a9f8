//! Who may know whom, and what must be absent where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the house").to_owned()
}

/// The edges of the design: each crate and the crates of ours it may depend on.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("landfall-facts", &[] as &[_]),
        ("landfall-model", &["landfall-facts"]),
        ("landfall-host", &[]),
        ("landfall-api", &["landfall-facts"]),
        ("landfall-agents", &["landfall-facts", "landfall-model"]),
        ("landfall-store", &["landfall-facts", "landfall-model"]),
        ("landfall-trackers", &["landfall-facts", "landfall-model"]),
        (
            "landfall-engine",
            &["landfall-model", "landfall-agents", "landfall-host", "landfall-store", "landfall-trackers"],
        ),
        // What needs an async runtime: agents that want to be talked with, and the tools agents are given.
        // The tools of a person's assistant are operations, asked as every client asks them.
        ("landfall-bridge", &["landfall-agents", "landfall-api"]),
        // The scripted agent is played by the binary; its script is understood by landfall-agents.
        (
            "landfall",
            &["landfall-app", "landfall-api", "landfall-agents", "landfall-bridge", "landfall-text"],
        ),
        // Answers operations. Above the engine and the server, below the command line.
        (
            "landfall-app",
            &[
                "landfall-engine",
                "landfall-api",
                "landfall-agents",
                "landfall-server",
                "landfall-text",
                "landfall-trackers",
            ],
        ),
        // Drawn from answers of operations alone: the service behind them is a trait.
        ("landfall-server", &["landfall-api", "landfall-text"]),
        ("landfall-text", &[]),
        ("landfall-testkit", &["landfall-api", "landfall-model"]),
    ])
}

/// Our crates among the dependencies of a manifest, without those that only tests use.
fn edges(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            counts = line == "[dependencies]" || line == "[build-dependencies]";
        } else if counts && line.starts_with("landfall") {
            let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            found.insert(name);
        }
    }
    found
}

#[test]
fn crates_know_only_whom_the_design_lets_them_know() {
    let allowed = allowed();
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates are there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a crate has a manifest");
        let may: BTreeSet<String> = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("`{name}` is a new crate: say in this test whom it may know"))
            .iter()
            .map(ToString::to_string)
            .collect();
        let strangers: Vec<String> = edges(&manifest).difference(&may).cloned().collect();
        assert!(strangers.is_empty(), "`{name}` must not know {strangers:?}");
        seen += 1;
    }
    assert_eq!(seen, allowed.len(), "every crate of the table is there");
}

/// Every Rust file below `folder`, with its text without comments and tests.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).expect("Rust is UTF-8");
                let code = text
                    .split("#[cfg(test)]")
                    .next()
                    .unwrap_or_default()
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .collect::<Vec<_>>()
                    .join("\n");
                found.push((path, code));
            }
        }
    }
    assert!(!found.is_empty(), "{} has no Rust in it", folder.display());
    found
}

fn absent(folder: &str, words: &[&str], except: &[&str]) {
    for (path, code) in sources(&root().join(folder)) {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if except.iter().any(|it| name.starts_with(it)) || name.ends_with("/tests.rs") {
            continue;
        }
        // `.await` is an operator, `.awaits_approval()` is a method.
        let goes_on = |at: usize| code[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        for word in words {
            let is_operator = *word == ".await";
            let is_there = code.match_indices(word).any(|(at, _)| !is_operator || !goes_on(at + word.len()));
            assert!(!is_there, "`{word}` in {name}");
        }
    }
}

/// `cargo xtask test` leaves the benchmarks out, so a test there would never run.
#[test]
fn the_benchmarks_have_no_tests() {
    for (path, _) in sources(&root().join("bench")) {
        let text = std::fs::read_to_string(&path).expect("Rust is UTF-8");
        assert!(!text.contains("#[test]"), "{}", path.display());
    }
}

#[test]
fn the_model_has_no_io_clock_thread_or_await() {
    let words = [
        "async fn",
        "async move",
        ".await",
        "std::fs",
        "std::process",
        "std::net",
        "std::thread",
        "std::env",
        "Instant",
        "SystemTime",
        "use tokio",
        "tracing::",
        "println!",
        "serde",
    ];
    absent("crates/landfall-model/src", &words, &[]);
}

/// Facts are data: what follows from them is decided in the model.
#[test]
fn facts_contain_no_policy() {
    let words = [
        "fn decide(",
        "fn judge(",
        "fn apply(",
        "fn plan(",
        "std::fs",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
        "landfall_",
    ];
    absent("crates/landfall-facts/src", &words, &[]);
}

/// The crates of the product but these.
fn product_crates(except: &[&str]) -> Vec<String> {
    let crates = allowed().into_keys().filter(|name| !except.contains(name) && *name != "landfall-testkit");
    crates.map(|name| format!("crates/{name}/src")).collect()
}

#[test]
fn agents_are_named_only_in_their_crate() {
    let words = [
        "\"claude\"",
        "\"codex\"",
        "\"gemini\"",
        "\"opencode\"",
        "\\\"claude\\\"",
        "\\\"codex\\\"",
        "Cli::Claude",
        "Cli::Codex",
        "profile.kind == \"",
        "profile.kind != \"",
    ];
    // Samples hold what facts and answers hold.
    let samples = ["crates/landfall-store/src/format/sample.rs", "crates/landfall/src/top/sample.rs"];
    for folder in product_crates(&["landfall-agents"]) {
        absent(&folder, &words, &samples);
    }
}

#[test]
fn trackers_are_named_only_in_their_crate() {
    let words = ["\"github\"", "tracker == \"", "tracker != \"", "Some(\"local\")"];
    for folder in product_crates(&["landfall-trackers"]) {
        absent(&folder, &words, &[]);
    }
}

#[test]
fn only_git_spawns_git_and_only_the_sitter_spawns_agents() {
    let spawning = ["Command::new", "posix_spawn", "fork("];
    absent("crates/landfall-engine/src", &spawning, &[]);
    absent("crates/landfall-store/src", &spawning, &[]);
    absent("crates/landfall-agents/src", &spawning, &[]);
    absent(
        "crates/landfall-host/src",
        &["Command::new"],
        &["crates/landfall-host/src/git/", "crates/landfall-host/src/sitter/"],
    );
}

/// Sleeping polls. Whoever waits is woken by an event; these places have none, each for its reason.
#[test]
fn production_code_sleeps_only_where_no_event_can_wake_it() {
    let known = [
        "crates/landfall-api/src/operation.rs", // the default of a client that cannot be told of news
        "crates/landfall-bridge/src/acp.rs",    // an agent's last words after it was asked to end
        "crates/landfall-bridge/src/tmux/server.rs", // tmux tells nobody that it has collected its child
        "crates/landfall-host/src/wait.rs",     // the one loop for conditions without an event
        "crates/landfall-server/src/kept.rs",   // the pace of answers that many ask for
        "crates/landfall-server/src/listen.rs", // a listener that is out of descriptors
        "crates/landfall-trackers/src/modules/lock.rs", // a lock file of another program
        "crates/landfall/src/player",           // the scripted agent: scripts ask it to sleep
        "crates/landfall-testkit",
    ];
    let is_sleep = |line: &str| {
        // As an arm of `select!` it is a timeout, and something else wakes the wait.
        (line.contains("thread::sleep(") || line.contains("time::sleep("))
            && !line.contains("() = tokio::time::sleep(")
    };
    let mut sleeps = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates are there") {
        for (path, code) in sources(&entry.expect("readable").path().join("src")) {
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            let count = code.lines().filter(|line| is_sleep(line)).count();
            if count > 0 && !known.iter().any(|known| name.starts_with(known)) {
                sleeps.push(format!("{name}: {count}"));
            }
        }
    }
    assert_eq!(sleeps, [] as [&str; 0], "wait for an event, or say here why there is none");
}

#[test]
fn no_shell_is_used_except_for_commands_a_person_wrote() {
    for folder in ["facts", "model", "agents", "host", "store", "api"] {
        let words = ["\"sh\"", "\"bash\"", "\"-c\".into()"];
        // What no key may be pressed for names shells, and starts none. So does what reads the commands of a person.
        absent(
            &format!("crates/landfall-{folder}/src"),
            &words,
            &["crates/landfall-agents/src/tmux/deny.rs", "crates/landfall-model/src/gaming/"],
        );
    }
    let written = ["crates/landfall-engine/src/gate.rs", "crates/landfall-engine/src/errand.rs"];
    absent("crates/landfall-engine/src", &["\"sh\".into()"], &written);
}

#[test]
fn the_command_line_knows_the_engine_only_through_the_application_layer() {
    absent("crates/landfall/src", &["landfall_engine", "landfall_server", "landfall_trackers"], &[]);
}

/// Requests go from the service to queries and commands, and from these to the project: never back up.
#[test]
fn the_layers_of_the_application_know_only_those_below() {
    let app = "crates/landfall-app/src";
    absent(
        &format!("{app}/project"),
        &["crate::query", "crate::command", "crate::service", "crate::run::"],
        &[],
    );
    // What an agent used outside of any task is noted by the service, because another process may hold the engine.
    let noted = [format!("{app}/query/extra_usage.rs")];
    let noted: Vec<&str> = noted.iter().map(String::as_str).collect();
    absent(
        &format!("{app}/query"),
        &["crate::command", "crate::service", "crate::run::", "crate::serve"],
        &noted,
    );
    absent(&format!("{app}/command"), &["crate::service", "crate::run::", "crate::serve"], &[]);
}

#[test]
fn text_is_rendered_without_clock_or_settings() {
    absent(
        "crates/landfall-text/src",
        &["Timestamp::now", "Zoned::now", "SystemTime", "std::env", "std::fs"],
        &[],
    );
}

#[test]
fn every_document_has_one_title_and_no_dead_link_into_the_tree() {
    let root = root();
    let mut documents =
        vec![root.join("README.md"), root.join("ARCHITECTURE.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs/guide", "docs/design", "docs/reference"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the docs are there") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|it| it == "md") {
                documents.push(path);
            }
        }
    }
    for path in documents {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut fenced = false;
        let titles = text
            .lines()
            .filter(|line| {
                fenced ^= line.starts_with("```");
                !fenced && line.starts_with("# ")
            })
            .count();
        assert_eq!(titles, 1, "{} has {titles} titles", path.display());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let at = path.parent().expect("in a folder").join(target);
            assert!(at.exists(), "{} links to {link}, which is not there", path.display());
        }
    }
}
