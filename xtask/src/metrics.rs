//! `cargo xtask metrics`: figures of the code that ARCHITECTURE.md and the review of names speak of, for this tree and, to compare,
//! for another commit. A test holds the gates among them: they may fall and never rise.

mod reachability;
mod source;

use std::collections::BTreeMap;
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
        limit: 286.0,
        target: 20.0,
        measure: |figures| count(figures.repeated_types.len()),
    },
    Gate {
        name: "string comparisons per 1,000 lines",
        limit: 2.2,
        target: 0.6,
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
        limit: 16.0,
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
        limit: 23.0,
        target: 10.0,
        measure: |figures| count(figures.sleeps.len()),
    },
    Gate {
        name: "items that only tests reach",
        limit: 11.0,
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
        let mut figures = Self { unreached: reachability::find_unreached(&tree), ..Self::default() };
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
        self.text_comparisons.extend(file.text_comparisons.iter().map(|line| file.place(*line)));
        self.dropped_calls += file.dropped_calls;
        for (owner, locks) in &file.locks_by_owner {
            *self.locks_by_owner.entry(format!("{owner} ({})", file.path)).or_default() += locks;
        }
        self.mutable_statics.extend(
            file.mutable_statics.iter().map(|(name, line)| format!("{name} ({})", file.place(*line))),
        );
        self.sleeps.extend(file.sleeps.iter().map(|line| file.place(*line)));
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
    let [files, large] = history(root).map(|figures| figures.map(cell)).unwrap_or_else(|error| {
        eprintln!("xtask: the history cannot be read: {error:#}");
        ["?".to_owned(), "?".to_owned()]
    });
    println!(
        "| files changed with a new kind of event, median of 20, without tests | {empty}{files} | – | ≤ 5 |"
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

/// The median of files that commits with a new kind of event changed, and the share of large commits.
fn history(root: &Path) -> Result<[f64; 2]> {
    const EVENTS: &str = "crates/landfall-facts/src/event.rs";
    const COMMITS: usize = 20;
    let log = git(root, &["log", "--no-merges", "--format=%H", "-150", "--", EVENTS])?;
    let mut files = Vec::new();
    for commit in log.lines() {
        if files.len() == COMMITS {
            break;
        }
        let text = |commit: &str| git(root, &["show", &format!("{commit}:{EVENTS}")]).unwrap_or_default();
        let (before, after) = (text(&format!("{commit}^")), text(commit));
        let variants = |text: &str| source::variants(text, &["Event", "EngineEvent"]);
        if before.is_empty() || variants(&after).is_subset(&variants(&before)) {
            continue;
        }
        let names = git(root, &["show", "--format=", "--name-only", commit])?;
        let is_code = |name: &&str| name.ends_with(".rs") && !name.contains("/tests/");
        files.push(names.lines().filter(is_code).count());
    }
    files.sort_unstable();
    let median = files.get(files.len() / 2).copied().unwrap_or(0);
    let log = git(root, &["log", "--no-merges", "-200", "--format=%H", "--shortstat"])?;
    let changes = |line: &str| -> usize {
        let numbers =
            line.split(", ").skip(1).filter_map(|part| part.split(' ').next()?.parse::<usize>().ok());
        numbers.sum()
    };
    let commits: Vec<usize> = log.lines().filter(|line| line.contains(" changed")).map(changes).collect();
    let large = commits.iter().filter(|lines| **lines > 500).count();
    Ok([count(median), count(large) * 100.0 / count(commits.len().max(1))])
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
}
