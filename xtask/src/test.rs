//! `cargo xtask test`: what a submission is checked by.
//!
//! One build serves everything that runs: unit tests, tests that drive the program, seeded bugs, the API against its reference,
//! the real agent CLIs and the browser. The tools that need a download are installed while it is compiled. The steps go on
//! after a failure, so that one run shows everything that is wrong; the summary comes last.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};

use crate::load::Load;
use crate::report::{SKIP_MARK, TestReport};
use crate::test_folders::TestFolders;
use crate::tools::{self, TestTools, Tool, find_program};
use crate::{agents, changed, dependencies, web};

/// The seeded bugs are compiled into every test build; only the test that looks for them switches one on.
const SEEDED_BUGS: &str = "landfall-engine/seeded-bugs";

/// When `.ci/run` began, in seconds since 1970: before this program itself was compiled.
const STARTED: &str = "LANDFALL_CI_STARTED";

#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Also drive the real agent CLIs; npm installs them into a cache folder
    #[arg(long)]
    agents: bool,
    /// Run the tests alone: no format check, lints, browser, documentation or dependency check
    #[arg(long)]
    fast: bool,
    /// Fail if a test was skipped, for example because a tool is missing
    #[arg(long)]
    strict: bool,
    /// Keep N threads per core busy beside the tests
    #[arg(long, value_name = "N")]
    load: Option<usize>,
    /// Run each test N times
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Run only the tests in files that changed since BASE
    #[arg(long, value_name = "BASE")]
    changed: Option<String>,
    /// Run only tests whose name contains one of these
    filter: Vec<String>,
}

impl TestArgs {
    /// The tests with the real agent CLIs alone.
    pub fn agents_alone() -> Self {
        let filter = vec!["binary(agents)".to_owned()];
        Self { agents: true, fast: true, strict: true, load: None, repeat: 1, changed: None, filter }
    }

    /// Whoever selects tests wants those and nothing else.
    fn selects_tests(&self) -> bool {
        self.fast
            || !self.filter.is_empty()
            || self.changed.is_some()
            || self.load.is_some()
            || self.repeat > 1
    }

    /// The selection as a nextest filter expression; none for all tests.
    fn filter_expression(&self) -> Result<Option<String>> {
        let mut parts: Vec<String> = Vec::new();
        for word in &self.filter {
            let is_expression = word.contains('(');
            parts.push(if is_expression { word.clone() } else { format!("test({word})") });
        }
        if let Some(base) = &self.changed {
            parts.extend(changed::test_filters(base)?);
            if parts.is_empty() {
                bail!("no test file changed since {base}");
            }
        }
        Ok((!parts.is_empty()).then(|| parts.join(" + ")))
    }
}

/// The steps of a run, how long each took, and which failed.
struct Steps {
    began: Instant,
    /// How long ago CI began when we were started.
    earlier: Duration,
    times: Vec<(&'static str, Duration)>,
    failed: Vec<String>,
}

impl Steps {
    fn new() -> Self {
        let started = std::env::var(STARTED).ok().and_then(|text| text.parse().ok());
        let started =
            started.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        let earlier = started.and_then(|started| started.elapsed().ok()).unwrap_or_default();
        Self { began: Instant::now(), earlier, times: Vec::new(), failed: Vec::new() }
    }

    /// Runs a step and adds its time to this part of the summary. True if it succeeded.
    fn run(&mut self, part: &'static str, name: &str, step: impl FnOnce() -> Result<()>) -> bool {
        let began = Instant::now();
        let done = step();
        let took = began.elapsed();
        match self.times.iter_mut().find(|(known, _)| *known == part) {
            Some((_, time)) => *time += took,
            None => self.times.push((part, took)),
        }
        if let Err(error) = &done {
            eprintln!("── {name}: {error:#}");
            self.failed.push(name.to_owned());
        }
        done.is_ok()
    }

    fn finish(self, report: &TestReport, strict: bool) -> Result<()> {
        println!("── summary\n{}", report.summary());
        for (part, time) in [("total", self.earlier + self.began.elapsed())].iter().chain(&self.times) {
            println!("{part:<14}{}", minutes(*time));
        }
        let mut failed = self.failed;
        if strict && report.skips_any() {
            failed.push("tests were skipped".to_owned());
        }
        println!("{}", report.counts());
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

fn minutes(time: Duration) -> String {
    format!("{:>3} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

pub fn run(args: &TestArgs) -> Result<()> {
    require_program("git", "git 2.38 or newer")?;
    require_program("cc", "a C compiler: SQLite is built from source")?;
    let mut steps = Steps::new();
    let mut report = TestReport::default();
    let only_tests = args.selects_tests();
    let filter = args.filter_expression()?;

    // Downloads mostly wait, so they go beside the build.
    let with_agents = args.agents;
    let installing = std::thread::spawn(move || tools::install_all(with_agents));
    if !only_tests {
        steps.run("lints", "format", check_format);
        steps.run("lints", "dependencies", dependencies::check);
    }
    let is_built = steps.run("build", "build", || run_step("build", nextest(&["--no-run"])?));
    if !only_tests {
        let clippy =
            &["clippy", "--workspace", "--all-targets", "--features", SEEDED_BUGS, "--", "-D", "warnings"];
        steps.run("lints", "lints", || run_step("lints", cargo(clippy)));
    }
    let tools = installing.join().expect("the installer does not panic")?;
    tools.missing.iter().for_each(|reason| report.add_missing_tool(reason));
    let folders = TestFolders::new()?;
    if is_built {
        // Its rounds mostly wait, so they go beside the tests.
        let chaos = (!only_tests).then(|| ChaosRun::start(&folders)).transpose()?;
        let tested = || run_tests(args, filter.as_deref(), &tools, !only_tests, &folders, &mut report);
        steps.run("tests", "tests", tested);
        if let Some(chaos) = chaos {
            steps.run("tests", "chaos", || chaos.finish(&mut report));
        }
    }
    drop(folders);
    if !only_tests {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
        // A comment may link to a private item, for readers of the source.
        doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
        steps.run("documentation", "documentation", || run_step("documentation", doc));
    }
    steps.finish(&report, args.strict)
}

/// Checks every file that git tracks. `cargo fmt` would leave out modules that a macro declares, and the fuzz targets.
fn check_format() -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z", "*.rs"]).output().context("list the files")?;
    let listed = String::from_utf8(listed.stdout).context("a Rust file with a name that is not UTF-8")?;
    let mut check = Command::new("rustfmt");
    check.args(["--check", "--edition", "2024"]).args(listed.split_terminator('\0'));
    run_step("format", check)
}

/// Runs nextest, and the browser tests beside it: those mostly wait for the browser.
fn run_tests(
    args: &TestArgs,
    filter: Option<&str>,
    tools: &TestTools,
    with_browser: bool,
    folders: &TestFolders,
    report: &mut TestReport,
) -> Result<()> {
    let browser = match &tools.browser {
        Tool::Ready(browser) if with_browser => {
            web::check_types(browser)?;
            Some(web::start(browser, folders)?)
        }
        Tool::Ready(_) | Tool::Missing(_) => None,
    };
    let mut command = nextest(&["--no-fail-fast"])?;
    command.envs(tools.variables.iter().map(|(name, value)| (name, value)));
    command.env("TMPDIR", folders.temporary());
    match filter {
        Some(filter) => command.args(["--filterset", filter]),
        // Whoever does not ask for the agents does not want to hear that they are missing.
        None if !args.agents => command.args(["--filterset", "not binary(agents)"]),
        None => &mut command,
    };
    if args.repeat > 1 {
        command.arg(format!("--stress-count={}", args.repeat));
    }
    let junit = target_folder()?.join("../nextest/xtask/junit.xml");
    let _ = fs::remove_file(&junit); // that of an earlier run, if there was one
    let load = args.load.map(Load::start);
    let tested = run_step("tests", folders.keep_projects_in_memory(command));
    drop(load);
    let browsed = browser.map(web::BrowserRun::finish).transpose()?;
    report.add_junit(&junit)?;
    let Some(browsed) = browsed else { return tested };
    report.add_junit(&browsed.junit)?;
    report.add_flaky(browsed.flaky);
    tested?;
    if !browsed.is_success {
        bail!("browser tests failed");
    }
    Ok(())
}

/// A few rounds of `cargo xtask chaos` with the program that is tested, each with another kind of fault.
struct ChaosRun {
    child: Child,
    log: PathBuf,
}

impl ChaosRun {
    /// Starts it. Its output goes to a file, because the tests print at the same time.
    fn start(folders: &TestFolders) -> Result<Self> {
        // The build has replaced the program that runs now, so it is named by its place.
        let mut chaos = Command::new(target_folder()?.join("xtask"));
        chaos.args(["chaos", "--rounds", "5", "--seed", "7"]);
        chaos.env("LANDFALL_CHAOS_PROGRAM", target_folder()?.join("landfall"));
        chaos.env("TMPDIR", folders.temporary());
        let log = folders.temporary().join("chaos.log");
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        chaos.stdout(file.try_clone().context("share the log")?).stderr(file);
        Ok(Self { child: chaos.spawn().context("start chaos")?, log })
    }

    /// Waits for the end and prints what it printed.
    fn finish(mut self, report: &mut TestReport) -> Result<()> {
        let status = self.child.wait().context("wait for chaos")?;
        let output = fs::read_to_string(&self.log).with_context(|| format!("read {}", self.log.display()))?;
        eprintln!("── chaos\n{output}");
        output
            .lines()
            .filter_map(|line| line.strip_prefix(SKIP_MARK))
            .for_each(|reason| report.add_missing_tool(reason));
        if !status.success() {
            bail!("chaos failed ({status})");
        }
        Ok(())
    }
}

/// Lets the simulation look for every seeded bug, or for one.
pub fn find_seeded_bugs(bug: Option<&str>) -> Result<()> {
    let mut command = nextest(&["--filterset", "test(every_seeded_bug_is_found)", "--no-capture"])?;
    if let Some(bug) = bug {
        command.env("LANDFALL_SEEDED_BUG", bug);
    }
    run_step("seeded bugs", command)
}

/// `cargo nextest run` over the workspace, always with the same features: nothing is built twice.
fn nextest(args: &[&str]) -> Result<Command> {
    let mut command = match find_program(&["cargo-nextest"]) {
        Some(_) => cargo(&[]),
        None => {
            let mut command = cargo(&[]);
            command.env("PATH", path_with(&install_nextest()?)?);
            command
        }
    };
    // The benchmarks have no tests; the lints compile them.
    command
        .args(["nextest", "run", "--profile", "xtask", "--workspace", "--exclude", "landfall-bench"])
        .args(["--features", SEEDED_BUGS])
        .args(args);
    Ok(command)
}

/// Compiles nextest into the cache folder, once. Returns the folder of the program.
fn install_nextest() -> Result<PathBuf> {
    let root = agents::cache_folder().join("nextest");
    let folder = root.join("bin");
    if !folder.join("cargo-nextest").exists() {
        let mut install = cargo(&["install", "cargo-nextest", "--locked", "--root"]);
        install.arg(&root);
        run_step("install cargo-nextest", install)?;
    }
    Ok(folder)
}

/// `PATH` with one more folder: cargo finds its subcommands there.
fn path_with(folder: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder with a colon in its name")
}

/// The folder of the programs that were built together with this one.
pub fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find our own program")?;
    Ok(program.parent().context("our program is in a folder")?.to_owned())
}

pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo run` describes this package to us. Build scripts that look at these variables would run again, and what
    // depends on them would be compiled again, whenever somebody calls cargo without us.
    for (name, _) in std::env::vars_os() {
        let is_about_us = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME"
        });
        if is_about_us {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

pub fn run_step(name: &str, mut command: Command) -> Result<()> {
    eprintln!("── {name}");
    let began = Instant::now();
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    eprintln!("── {name}: {:.0} s", began.elapsed().as_secs_f64());
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

fn require_program(program: &str, purpose: &str) -> Result<()> {
    if find_program(&[program]).is_none() {
        bail!("`{program}` is missing; the tests need {purpose}");
    }
    Ok(())
}
