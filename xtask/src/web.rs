//! The browser tests: the pages in `browser/`, in a real Chromium, against the program as it was just built.
//!
//! npm installs the packages into the cache folder; the browser comes from the system. The tests leave their screenshots in
//! the cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context as _, Result, bail};

use crate::agents;
use crate::test::{cargo, run_step, target_folder};
use crate::test_folders::TestFolders;
use crate::tools::{BrowserTools, Tool, install_browser_tools};

/// Runs the browser tests alone: all of them, or those whose file or name contains one of these.
pub fn run_alone(names: &[String]) -> Result<()> {
    let tools = build_for_browser()?;
    let (mut tests, output) = playwright(&tools, names)?;
    tests.env("LANDFALL_WEB_JUNIT", output.join("junit.xml"));
    let done = run_step("web", tests);
    eprintln!("── web: screenshots are in {}", output.display());
    done
}

/// Makes the contact sheets of the pages and the file with their figures.
pub fn take_shots() -> Result<()> {
    let tools = build_for_browser()?;
    let (mut shots, output) = playwright(&tools, &["shots".to_owned()])?;
    shots.env("LANDFALL_WEB_SHOTS", "1");
    let done = run_step("pages", shots);
    eprintln!("── pages: contact sheets and figures.json are in {}", output.join("shots").display());
    done
}

/// Builds the program and installs what a browser needs.
fn build_for_browser() -> Result<BrowserTools> {
    match install_browser_tools()? {
        Tool::Ready(tools) => {
            run_step("web: build", cargo(&["build", "--package", "landfall"]))?;
            check_types(&tools)?;
            Ok(tools)
        }
        Tool::Missing(reason) => bail!("cannot run the browser tests: {reason}"),
    }
}

/// The browser tests running beside the other tests.
pub struct BrowserRun {
    child: Child,
    log: PathBuf,
    junit: PathBuf,
}

pub struct BrowserResult {
    pub is_success: bool,
    /// Tests that passed at the second try; Playwright's JUnit report does not tell them from others.
    pub flaky: Vec<String>,
    pub junit: PathBuf,
}

/// Starts the browser tests. Their output goes to a file, because the other tests print at the same time.
pub fn start(tools: &BrowserTools, folders: &TestFolders) -> Result<BrowserRun> {
    let (mut tests, output) = playwright(tools, &[])?;
    let (log, junit) = (output.join("output.log"), output.join("junit.xml"));
    let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
    tests.env("TMPDIR", folders.temporary());
    tests.env("LANDFALL_WEB_JUNIT", &junit).stdout(file.try_clone().context("share the log")?).stderr(file);
    let child = tests.spawn().with_context(|| format!("start {tests:?}"))?;
    Ok(BrowserRun { child, log, junit })
}

impl BrowserRun {
    /// Waits for the end and prints what the tests printed.
    pub fn finish(mut self) -> Result<BrowserResult> {
        let status = self.child.wait().context("wait for the browser tests")?;
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        eprintln!("── web\n{output}");
        Ok(BrowserResult { is_success: status.success(), flaky: flaky_tests(&output), junit: self.junit })
    }
}

/// The tests that Playwright lists below a line like `2 flaky`.
fn flaky_tests(output: &str) -> Vec<String> {
    let mut lines = output.lines().map(str::trim).skip_while(|line| !is_flaky_count(line)).skip(1);
    let is_test = |line: &&str| line.contains('›');
    lines.by_ref().take_while(is_test).map(|line| line.trim_end_matches(['─', ' ']).to_owned()).collect()
}

fn is_flaky_count(line: &str) -> bool {
    line.strip_suffix(" flaky").is_some_and(|count| count.parse::<u32>().is_ok())
}

/// Checks the types of the scripts in the pages and of the tests.
pub fn check_types(tools: &BrowserTools) -> Result<()> {
    let root = root()?;
    let mut scripts = node_program(tools, "tsc");
    scripts.arg("--project").arg(root.join("crates/landfall-server/tsconfig.json"));
    run_step("web: types of the scripts", scripts)?;
    let mut tests = node_program(tools, "tsc");
    tests.arg("--project").arg(write_test_tsconfig(&tools.playwright, &root)?);
    run_step("web: types of the tests", tests)
}

/// The command that runs the tests, and the folder it writes to.
fn playwright(tools: &BrowserTools, names: &[String]) -> Result<(Command, PathBuf)> {
    let output = agents::cache_folder().join("web");
    agents::clear(&output)?;
    fs::create_dir_all(&output).with_context(|| format!("create {}", output.display()))?;
    let mut tests = node_program(tools, "playwright");
    tests.arg("test").args(names).current_dir(root()?.join("browser"));
    tests.env("LANDFALL_BIN", target_folder()?.join("landfall")).env("LANDFALL_CHROMIUM", &tools.chromium);
    tests.env("LANDFALL_WEB_OUT", &output);
    Ok((tests, output))
}

fn node_program(tools: &BrowserTools, program: &str) -> Command {
    let mut command = Command::new(tools.playwright.join(agents::PROGRAMS).join(program));
    // The packages are not beside the tests; this is the other place where node looks for them.
    command.env("NODE_PATH", tools.playwright.join("node_modules"));
    command
}

/// Tells the type checker where the packages are: it does not look where node does.
fn write_test_tsconfig(home: &Path, root: &Path) -> Result<PathBuf> {
    let packages = home.join("node_modules");
    let settings = serde_json::json!({
        "extends": root.join("browser/tsconfig.json"),
        "include": [root.join("browser/**/*.ts")],
        "compilerOptions": { "typeRoots": [packages.join("@types")], "paths": { "*": [packages.join("*")] } },
    });
    let path = home.join("tsconfig.json");
    fs::write(&path, settings.to_string()).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The root of the repository.
pub fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask is in the repository")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::flaky_tests;

    #[test]
    fn tests_that_passed_at_the_second_try_are_named() {
        let output = "Running 3 tests\n  ok 1 a.spec.ts:1:1 › one\n  1 flaky\n    b.spec.ts:3:1 › two ─────\n  2 passed (1.0m)\n";
        assert_eq!(flaky_tests(output), ["b.spec.ts:3:1 › two"]);
        assert_eq!(flaky_tests("  3 passed (2.0m)\n"), [] as [&str; 0]);
    }
}
