//! `cargo xtask metrics`: figures of the code that ARCHITECTURE.md and the review of names speak of, for this tree and, to compare,
//! for another commit. A test holds the gates among them: they may fall and never rise.

mod reachability;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use reachability::Unreached;
use source::{ItemKind, SourceFile, read_tree};

/// Print the figures of the code base, its gates first
#[derive(Debug, clap::Args)]
pub struct MetricsArgs {
    /// A commit to compare with
    #[arg(long)]
    against: Option<String>,
    /// List what each figure is made of: names, places, items that only tests reach
    #[arg(long)]
    list: bool,
}

/// Where a text that is compared is a word of somebody else: these files read formats that we do not define, each at its border, and what
/// leaves them is typed. The words of agents, build tools, git, HTTP and the kernel change without us, and an enum of them would be a
/// second list of the same literals.
const FOREIGN_FORMATS: [(&str, &str); 23] = [
    ("crates/landfall-agents/src/acp/", "messages of the agent client protocol"),
    ("crates/landfall-agents/src/claude.rs", "events of an agent"),
    ("crates/landfall-agents/src/codex.rs", "events of an agent"),
    ("crates/landfall-agents/src/gemini.rs", "events of an agent"),
    ("crates/landfall-agents/src/opencode.rs", "events of an agent"),
    ("crates/landfall-agents/src/json.rs", "input of the tools of agents"),
    ("crates/landfall-agents/src/tmux/", "screens and commands of agents"),
    ("crates/landfall-app/src/query/output/render.rs", "logs of agents"),
    ("crates/landfall-bridge/src/acp.rs", "messages of the agent client protocol"),
    ("crates/landfall-bridge/src/acp/", "messages of the agent client protocol"),
    ("crates/landfall-api/src/openapi.rs", "JSON Schema"),
    ("crates/landfall-bridge/src/person.rs", "JSON Schema"),
    ("crates/landfall-engine/src/settings/reference.rs", "JSON Schema"),
    ("crates/landfall-server/src/pages/reference.rs", "JSON Schema"),
    ("crates/landfall-engine/src/accept/", "commands, workflows, CSS and JSON paths of checks"),
    ("crates/landfall-host/src/git/", "output, names and folders of git"),
    ("crates/landfall-host/src/memory.rs", "control groups of the kernel"),
    ("crates/landfall-host/src/sitter/cgroup.rs", "control groups of the kernel"),
    ("crates/landfall-model/src/gaming/", "build files, shell text and test code of each ecosystem"),
    ("crates/landfall-model/src/gaming.rs", "file names of test code"),
    ("crates/landfall-model/src/gate/count.rs", "output of test runners"),
    ("crates/landfall-server/src/pages/diff.rs", "patches of git"),
    ("crates/landfall-trackers/src/github", "answers and deliveries of a forge"),
];

/// Where a sleep is what the program is for: the scripted agent plays agents that sleep, hang and linger.
const PLAYED_SLEEPS: &str = "crates/landfall/src/player/";

/// What only tests call, and why it stays. What these call counts as reached.
const CALLED_BY_TESTS: [(&str, &str); 8] = [
    (
        "served_routes",
        "tests of the server attack every route; the program only needs the router that they are in",
    ),
    (
        "openapi_document",
        "a test generates the description of the API in the reference and compares answers with it",
    ),
    ("render_reference", "a test generates the reference of the settings"),
    ("editor_schema", "a test generates the schema of the settings that editors read"),
    ("MemoryJournal", "simulations and the contract of journals use a journal without a disk"),
    ("spawned_count", "tests and benchmarks count the git processes that an operation starts"),
    ("drive_mode", "an invariant of the simulation compares it with what runs"),
    ("observed_files", "invariants of the scheduler build the world again and compare it"),
];

/// A figure that may not rise.
struct Gate {
    name: &'static str,
    /// What it is now. Lower it when the figure falls.
    limit: f64,
    /// What it is to become.
    target: f64,
    measure: fn(&Figures) -> f64,
}

const GATES: [Gate; 8] = [
    Gate {
        name: "type names declared more than once",
        limit: 0.0,
        target: 0.0,
        measure: |figures| count(figures.repeated_types.len()),
    },
    Gate {
        name: "string comparisons per 1,000 lines",
        limit: 0.55,
        target: 0.55,
        measure: |figures| figures.per_thousand(figures.text_comparisons.len()),
    },
    Gate { name: "Mutex and RwLock", limit: 54.0, target: 25.0, measure: |figures| count(figures.locks()) },
    Gate {
        name: "locks in one struct, at most",
        limit: 3.0,
        target: 3.0,
        measure: |figures| count(figures.locks_by_owner.values().copied().max().unwrap_or(0)),
    },
    Gate {
        name: "mutable process-wide statics",
        limit: 0.0,
        target: 0.0,
        measure: |figures| count(figures.mutable_statics.len()),
    },
    Gate {
        name: "`drop(call())`",
        limit: 10.0,
        target: 20.0,
        measure: |figures| count(figures.dropped_calls),
    },
    Gate {
        name: "sleeps in production code",
        limit: 10.0,
        target: 10.0,
        measure: |figures| count(figures.sleeps.len()),
    },
    Gate {
        name: "items that only tests reach",
        limit: 0.0,
        target: 0.0,
        measure: |figures| count(figures.unreached.by_tests.len()),
    },
];

/// What is measured of one tree.
#[derive(Debug, Default)]
struct Figures {
    code_lines: usize,
    /// Names of types with the files that declare them.
    repeated_types: BTreeMap<String, Vec<String>>,
    functions: usize,
    one_word_functions: usize,
    closures_over_it: usize,
    text_comparisons: Vec<String>,
    foreign_comparisons: usize,
    thread_locals: usize,
    comments: usize,
    short_docs: usize,
    locks_by_owner: BTreeMap<String, usize>,
    mutable_statics: Vec<String>,
    dropped_calls: usize,
    sleeps: Vec<String>,
    unreached: Unreached,
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Figures {
    /// Of the tree at `root`.
    fn measure(root: &Path) -> Result<Self> {
        let tree = read_tree(root)?;
        let called_by_tests: Vec<&str> = CALLED_BY_TESTS.iter().map(|(name, _)| *name).collect();
        let unreached = reachability::find_unreached(&tree, &called_by_tests);
        let mut figures = Self { unreached, ..Self::default() };
        let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in tree.production() {
            figures.add(file);
            for item in file.items.iter().filter(|item| item.kind == ItemKind::Type) {
                types.entry(item.name.clone()).or_default().push(file.place(item.line));
            }
        }
        // `clap` and errors of a module have their names by convention.
        types.retain(|name, places| places.len() > 1 && !matches!(name.as_str(), "Args" | "Error"));
        figures.repeated_types = types;
        Ok(figures)
    }

    fn add(&mut self, file: &SourceFile) {
        let functions = || file.items.iter().filter(|item| item.kind == ItemKind::Function);
        let is_one_word = |name: &str| !name.trim_start_matches('_').contains('_');
        self.code_lines += file.code_lines;
        self.comments += file.comments;
        self.short_docs += file.short_docs;
        self.functions += functions().count();
        self.one_word_functions += functions().filter(|item| is_one_word(&item.name)).count();
        self.closures_over_it += file.closures_over_it;
        let is_foreign = FOREIGN_FORMATS.iter().any(|(place, _)| file.path.starts_with(place));
        let comparisons = file.text_comparisons.iter().map(|line| file.place(*line));
        match is_foreign {
            true => self.foreign_comparisons += comparisons.count(),
            false => self.text_comparisons.extend(comparisons),
        }
        self.thread_locals += file.thread_locals.len();
        self.dropped_calls += file.dropped_calls;
        for (owner, locks) in &file.locks_by_owner {
            *self.locks_by_owner.entry(format!("{owner} ({})", file.path)).or_default() += locks;
        }
        self.mutable_statics.extend(
            file.mutable_statics.iter().map(|(name, line)| format!("{name} ({})", file.place(*line))),
        );
        let is_played = file.path.starts_with(PLAYED_SLEEPS);
        self.sleeps.extend(file.sleeps.iter().filter(|_| !is_played).map(|line| file.place(*line)));
    }

    fn locks(&self) -> usize {
        self.locks_by_owner.values().sum()
    }

    fn per_thousand(&self, number: usize) -> f64 {
        count(number) * 1_000.0 / count(self.code_lines.max(1))
    }

    /// The figures that are reported and judged by a reader, each with its target.
    fn reported(&self) -> Vec<(&'static str, f64, &'static str)> {
        let share = count(self.one_word_functions) * 100.0 / count(self.functions.max(1));
        vec![
            ("production code lines", count(self.code_lines), "15,000 fewer"),
            ("one-word function names, %", share, "≤ 35"),
            ("closures over `it` per 1,000 lines", self.per_thousand(self.closures_over_it), "0"),
            ("own-line comments in bodies per 1,000 lines", self.per_thousand(self.comments), "≥ 30"),
            ("field and variant docs of five words or fewer", count(self.short_docs), "≤ 200"),
            ("string comparisons in readers of foreign formats", count(self.foreign_comparisons), "–"),
            ("mutable statics of a thread", count(self.thread_locals), "–"),
            ("items that nothing reaches", count(self.unreached.by_nothing.len()), "0"),
        ]
    }
}

pub fn run(args: &MetricsArgs) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the repository")?;
    let now = Figures::measure(root)?;
    let then = args.against.as_deref().map(|commit| measure_commit(root, commit)).transpose()?;
    println!("| figure | {}now | limit | target |", if then.is_some() { "then | " } else { "" });
    println!("|---|{}---|---|---|", if then.is_some() { "---|" } else { "" });
    let cell = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_owned();
    let before = |value: Option<f64>| value.map(|value| format!("{} | ", cell(value))).unwrap_or_default();
    for gate in &GATES {
        let (value, old) = ((gate.measure)(&now), then.as_ref().map(gate.measure));
        let (limit, target) = (cell(gate.limit), cell(gate.target));
        println!("| **gate:** {} | {}{} | {limit} | ≤ {target} |", gate.name, before(old), cell(value));
    }
    let old = then.as_ref().map(Figures::reported).unwrap_or_default();
    for (place, (name, value, target)) in now.reported().into_iter().enumerate() {
        let old = old.get(place).map(|(_, value, _)| *value);
        println!("| {name} | {}{} | – | {target} |", before(old), cell(value));
    }
    let empty = before(then.as_ref().map(|_| 0.0)).replace('0', "–");
    let history = HistoryFigures::read(root).unwrap_or_else(|error| {
        eprintln!("xtask: the history cannot be read: {error:#}");
        HistoryFigures::default()
    });
    let shown = |value: Option<f64>| value.map_or("?".to_owned(), cell);
    let (files, large) = (shown(history.event_files), shown(history.large_commits));
    let files_of = format!("median of {}", plural(history.event_commits, "commit"));
    println!(
        "| files changed with a new kind of event, without tests: {files_of} | {empty}{files} | – | ≤ 5 |"
    );
    println!("| commits of more than 500 lines, % of the last 200 | {empty}{large} | – | ≤ 5 |");
    println!("\nNot measured: types that a task passes through, sleeps on the engine's thread.");
    if args.list {
        list(&now);
    }
    Ok(())
}

fn list(figures: &Figures) {
    let print = |title: &str, lines: Vec<String>| {
        println!("\n## {title} ({})\n", lines.len());
        lines.iter().for_each(|line| println!("- {line}"));
    };
    let repeated =
        figures.repeated_types.iter().map(|(name, places)| format!("{name}: {}", places.join(", ")));
    print("Type names declared more than once", repeated.collect());
    print("String comparisons", figures.text_comparisons.clone());
    let locks = figures.locks_by_owner.iter().map(|(owner, locks)| format!("{owner}: {locks}"));
    print("Locks", locks.collect());
    print("Mutable statics", figures.mutable_statics.clone());
    print("Sleeps", figures.sleeps.clone());
    print("Items that only tests reach", figures.unreached.by_tests.clone());
    print("Items that nothing reaches", figures.unreached.by_nothing.clone());
}

/// A folder that is removed when dropped.
struct CheckoutFolder(PathBuf);

impl Drop for CheckoutFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what stays is in the folder for temporary files
    }
}

fn measure_commit(root: &Path, commit: &str) -> Result<Figures> {
    let folder =
        CheckoutFolder(std::env::temp_dir().join(format!("landfall-metrics-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).context("make a folder for the other commit")?;
    let archive = folder.0.join("tree.tar");
    let out = format!("--output={}", archive.display());
    git(root, &["archive", &out, commit, "--", "crates", "bench", "fuzz"])?;
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder.0).status();
    ensure!(unpacked.context("start tar")?.success(), "tar cannot read the archive of {commit}");
    Figures::measure(&folder.0)
}

fn git(root: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().context("start git")?;
    ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn plural(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Figures of the history. None: there is nothing to measure.
#[derive(Default)]
struct HistoryFigures {
    /// The median of the code files that commits with a new kind of event changed.
    event_files: Option<f64>,
    event_commits: usize,
    /// Commits of more than 500 lines, in percent.
    large_commits: Option<f64>,
}

impl HistoryFigures {
    fn read(root: &Path) -> Result<Self> {
        let mut files = event_files(root)?;
        files.sort_unstable();
        let log = git(root, &["log", "--no-merges", "-200", "--format=%H", "--shortstat"])?;
        let changes = |line: &str| -> usize {
            let numbers =
                line.split(", ").skip(1).filter_map(|part| part.split(' ').next()?.parse::<usize>().ok());
            numbers.sum()
        };
        let commits: Vec<usize> = log.lines().filter(|line| line.contains(" changed")).map(changes).collect();
        let large = commits.iter().filter(|lines| **lines > 500).count();
        Ok(Self {
            event_files: files.get(files.len() / 2).copied().map(count),
            event_commits: files.len(),
            large_commits: (!commits.is_empty()).then(|| count(large) * 100.0 / count(commits.len())),
        })
    }
}

/// How many code files each of the last commits changed that have a new kind of event. The events were declared in the model before
/// they were facts: a kind that only moved from the one file to the other is not new.
fn event_files(root: &Path) -> Result<Vec<usize>> {
    const DECLARED_IN: [&str; 2] =
        ["crates/landfall-facts/src/event.rs", "crates/landfall-model/src/event.rs"];
    const COMMITS: usize = 20;
    let mut arguments = vec!["log", "--no-merges", "--format=%H", "-150", "--"];
    arguments.extend(DECLARED_IN);
    let log = git(root, &arguments)?;
    // A file that a commit does not have declares nothing there.
    let text =
        |commit: &str, path: &str| git(root, &["show", &format!("{commit}:{path}")]).unwrap_or_default();
    let kinds = |commit: &str| -> BTreeSet<String> {
        let of = |path: &&str| source::variants(&text(commit, path), &["Event", "EngineEvent"]);
        DECLARED_IN.iter().flat_map(of).collect()
    };
    let mut files = Vec::new();
    for commit in log.lines() {
        if files.len() == COMMITS {
            break;
        }
        let before = kinds(&format!("{commit}^"));
        if before.is_empty() || kinds(commit).is_subset(&before) {
            continue;
        }
        let names = git(root, &["show", "--format=", "--name-only", commit])?;
        let is_code = |name: &&str| name.ends_with(".rs") && !name.contains("/tests/");
        files.push(names.lines().filter(is_code).count());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gate_rises() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository");
        let figures = Figures::measure(root).expect("the sources are read");
        let risen: Vec<String> = GATES
            .iter()
            .filter(|gate| (gate.measure)(&figures) > gate.limit)
            .map(|gate| format!("{}: {:.2}, at most {}", gate.name, (gate.measure)(&figures), gate.limit))
            .collect();
        assert!(risen.is_empty(), "{risen:#?}; `cargo xtask metrics --list` shows what is counted");
    }

    #[test]
    fn every_item_called_by_tests_is_declared() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository");
        let tree = read_tree(root).expect("the sources are read");
        let declared: BTreeSet<&str> =
            tree.production().flat_map(|file| &file.items).map(|item| item.name.as_str()).collect();
        let gone: Vec<&str> =
            CALLED_BY_TESTS.iter().map(|(name, _)| *name).filter(|name| !declared.contains(name)).collect();
        assert!(gone.is_empty(), "not declared any more: {gone:?}");
    }
}
