//! Faults tried from outside: `cargo xtask chaos` drives real projects, injects one kind of fault per round, lets Landfall
//! recover, and then judges the result with git and the file system alone.
//!
//! A round depends only on its seed and its kind. Round `r` of seed `s` is round 0 of seed `s + r`, so that every finding
//! can be repeated alone. The order of events inside a round still depends on the scheduler.

mod faults;
mod judge;
mod mounts;
mod project;
mod random;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use self::project::ChaosProject;
use self::random::Random;

/// What is done to a project in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The engine is killed.
    Engine,
    /// The sitter of an agent is killed.
    Sitter,
    /// The sitter of a check is killed.
    CheckSitter,
    /// The engine and every sitter are killed at once.
    Both,
    /// The engine or a sitter is stopped for a while and continued.
    Stop,
    /// The file system of state and repository loses everything that was not synced.
    Power,
    /// The disk is full for a while.
    Disk,
    /// There are no inodes left for a while.
    Inodes,
    /// No process can be started for a while.
    Pids,
    /// No file can be opened for a while.
    Files,
    /// The wall clock jumps.
    Clock,
}

impl FaultKind {
    const ALL: [Self; 11] = [
        Self::Engine,
        Self::Sitter,
        Self::CheckSitter,
        Self::Both,
        Self::Stop,
        Self::Power,
        Self::Disk,
        Self::Inodes,
        Self::Pids,
        Self::Files,
        Self::Clock,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Sitter => "sitter",
            Self::CheckSitter => "check-sitter",
            Self::Both => "both",
            Self::Stop => "stop",
            Self::Power => "power",
            Self::Disk => "disk",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
            Self::Files => "files",
            Self::Clock => "clock",
        }
    }

    fn from_word(word: &str) -> Result<Self> {
        let known = || Self::ALL.map(Self::word).join(", ");
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.with_context(|| format!("there is no kind of fault `{word}`; known: {}", known()))
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What was asked for.
#[derive(Debug)]
struct Args {
    rounds: u64,
    seed: u64,
    kinds: Vec<FaultKind>,
    resume: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut args = Self { rounds: 20, seed: 1, kinds: FaultKind::ALL.to_vec(), resume: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            let number = |text: &str| text.parse::<u64>().with_context(|| format!("`{text}` is no number"));
            match *word {
                "--rounds" => args.rounds = number(value()?)?,
                "--seed" => args.seed = number(value()?)?,
                "--kinds" => {
                    args.kinds = value()?.split(',').map(FaultKind::from_word).collect::<Result<_>>()?
                }
                "--resume" => args.resume = true,
                other => bail!("unknown argument `{other}`; expected --rounds, --seed, --kinds or --resume"),
            }
        }
        ensure!(args.rounds > 0, "--rounds must be at least 1");
        Ok(args)
    }
}

/// What every round needs.
pub struct ChaosLab {
    /// The program under test, as the workspace builds it.
    landfall: PathBuf,
    /// The folder of all rounds.
    folder: PathBuf,
    /// A library that moves the wall clock of a process, if it could be built.
    clock: Option<PathBuf>,
}

impl ChaosLab {
    fn open() -> Result<Self> {
        let me = std::env::current_exe().context("find our own program")?;
        let target = me.ancestors().nth(2).context("our program is in the target folder")?.to_owned();
        let folder = target.join("chaos");
        std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let clock = build_clock(&folder).ok();
        if let Some(program) = std::env::var_os("LANDFALL_CHAOS_PROGRAM") {
            return Ok(Self { landfall: PathBuf::from(program), folder, clock }); // another build, to compare with
        }
        let mut cargo =
            std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--package", "landfall", "--bin", "landfall"]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let built = cargo.current_dir(root).status().context("start cargo build")?;
        ensure!(built.success(), "cargo build ended with {built}");
        let landfall = target.join("debug/landfall");
        ensure!(landfall.is_file(), "{} is not there after `cargo build`", landfall.display());
        Ok(Self { landfall, folder, clock })
    }

    /// Why a kind cannot be had on this machine.
    fn missing(&self, kind: FaultKind) -> Option<String> {
        match kind {
            FaultKind::Engine
            | FaultKind::Sitter
            | FaultKind::CheckSitter
            | FaultKind::Both
            | FaultKind::Stop
            | FaultKind::Files => None,
            FaultKind::Power => mounts::try_loop(&self.folder)
                .err()
                .map(|error| format!("power cuts need root and a loop device: {error:#}")),
            FaultKind::Disk | FaultKind::Inodes => {
                let missing = mounts::try_small(&self.folder).err();
                missing.map(|error| format!("a small file system needs the right to mount: {error:#}"))
            }
            FaultKind::Pids => faults::pids_missing(),
            FaultKind::Clock if self.clock.is_none() => {
                Some("the library that moves the clock could not be built".to_owned())
            }
            FaultKind::Clock => None,
        }
    }
}

fn build_clock(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("clock.rs"), folder.join("libclock.so"));
    std::fs::write(&source, include_str!("chaos/programs/clock.rs"))?;
    let mut rustc = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-C", "panic=abort", "-o"]);
    let done = rustc.arg(&library).arg(&source).output().context("start rustc")?;
    ensure!(done.status.success(), "rustc: {}", String::from_utf8_lossy(&done.stderr));
    Ok(library)
}

/// How far an earlier call came, so that `--resume` continues there.
struct RoundProgress {
    path: PathBuf,
    done: u64,
    findings: u64,
}

impl RoundProgress {
    fn open(folder: &Path, args: &Args) -> Self {
        let kinds = args.kinds.iter().map(|kind| kind.word()).collect::<Vec<_>>().join("-");
        let kinds = if args.kinds.len() == FaultKind::ALL.len() { "all".to_owned() } else { kinds };
        let path = folder.join(format!("progress-{}-{kinds}", args.seed));
        let text =
            if args.resume { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let (done, findings) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { path, done, findings }
    }

    fn note(&mut self, findings: usize) -> Result<()> {
        self.done += 1;
        self.findings += findings as u64;
        std::fs::write(&self.path, format!("{} {}\n", self.done, self.findings)).context("note the progress")
    }
}

/// Runs the rounds and prints a line for each. Findings are an error.
pub fn run(words: &[&str]) -> Result<()> {
    let args = Args::parse(words)?;
    mounts::enter_own_namespace(words)?;
    let lab = ChaosLab::open()?;
    let mut kinds = Vec::new();
    for kind in &args.kinds {
        match lab.missing(*kind) {
            None => kinds.push(*kind),
            Some(reason) => eprintln!("landfall-skip: chaos {kind}: {reason}"),
        }
    }
    ensure!(!kinds.is_empty(), "none of these kinds of faults can be had on this machine");
    Random::new(args.seed).shuffle(&mut kinds);
    let mut progress = RoundProgress::open(&lab.folder, &args);
    let mut by_kind: BTreeMap<FaultKind, (u64, u64)> = BTreeMap::new();
    while progress.done < args.rounds {
        let round = progress.done;
        let kind = kinds[usize::try_from(round).unwrap_or(0) % kinds.len()];
        let seed = args.seed.wrapping_add(round);
        let began = Instant::now();
        let (summary, findings) = one_round(&lab, kind, seed)?;
        let took = began.elapsed().as_secs_f64();
        let word = if findings.is_empty() { "ok" } else { "FINDING" };
        println!("round {} seed {seed} {kind}: {word}, {summary}, {took:.1} s", round + 1);
        for finding in &findings {
            println!("  {finding}");
        }
        if !findings.is_empty() {
            println!("  repeat: cargo xtask chaos --rounds 1 --seed {seed} --kinds {kind}");
        }
        let tally = by_kind.entry(kind).or_default();
        tally.0 += 1;
        tally.1 += findings.len() as u64;
        progress.note(findings.len())?;
    }
    for (kind, (rounds, findings)) in &by_kind {
        println!("{kind}: {rounds} rounds, {findings} findings");
    }
    println!("{} rounds, {} findings", progress.done, progress.findings);
    ensure!(progress.findings == 0, "{} findings", progress.findings);
    Ok(())
}

/// One round: a project, a fault, a recovery, a judgement. The folder of a round with findings is kept.
fn one_round(lab: &ChaosLab, kind: FaultKind, seed: u64) -> Result<(String, Vec<String>)> {
    let mut random = Random::new(seed);
    let folder = lab.folder.join(format!("round-{seed}-{kind}"));
    mounts::clear(&folder)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let mount = mounts::RoundMount::for_kind(&folder, kind)?;
    let mut project = ChaosProject::make(lab, mount.path(), kind, &mut random)?;
    let mut findings = Vec::new();
    let what = faults::inject(&mut project, &mount, kind, &mut random, &mut findings)?;
    faults::recover(&mut project, &mut findings)?;
    judge::judge(&project, kind, &mut findings)?;
    let summary = format!("{what}; {} tasks", project.acknowledged.len());
    project.end_processes();
    if findings.is_empty() {
        drop(project);
        drop(mount);
        mounts::clear(&folder)?;
    } else {
        findings.push(format!("the project is kept in {}", mount.keep()?.display()));
    }
    Ok((summary, findings))
}
