//! What a submission is checked by. It needs a Rust toolchain, git and a C compiler, and nothing else: cargo-nextest,
//! cargo-deny and a browser are used where they are installed.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::agents::{self, Agents};
use crate::github::{self, Description};
use crate::schemathesis::{self, Schemathesis};
use crate::web;

/// Format, lints, every test, the documentation.
pub fn all() -> Result<()> {
    needs("git", &["--version"], "git 2.38 or newer")?;
    needs("cc", &["--version"], "a C compiler: SQLite is built from source")?;
    step("format", cargo(&["fmt", "--all", "--check"]))?;
    step("lints", cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    tests()?;
    schemathesis()?;
    github()?;
    web::as_part()?;
    find_seeded_bugs(None)?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    // A sentence may point at a private item for whoever reads the source.
    doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
    step("documentation", doc)?;
    if installed("cargo-deny") {
        // Advisories need a download; licences, sources and bans do not.
        step("dependencies", cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    } else {
        eprintln!("── dependencies: skipped, cargo-deny is not installed");
    }
    Ok(())
}

/// Every test, and the examples in the documentation.
pub fn tests() -> Result<()> {
    if installed("cargo-nextest") {
        step("tests", cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]))?;
        step("examples in the documentation", cargo(&["test", "--workspace", "--doc"]))
    } else {
        step("tests", cargo(&["test", "--workspace", "--no-fail-fast"]))
    }
}

/// Lets the simulation look for every seeded bug, or for one.
pub fn find_seeded_bugs(bug: Option<&str>) -> Result<()> {
    let mut command =
        cargo(&["test", "--package", "landfall-engine", "--features", "seeded-bugs", "--test", "it"]);
    command.args(["--", "--exact", "sim::every_seeded_bug_is_found", "--nocapture"]);
    if let Some(bug) = bug {
        command.env("LANDFALL_SEEDED_BUG", bug);
    }
    step("seeded bugs", command)
}

/// A server is asked everything its reference says, and more. Where schemathesis cannot be had, a line says so.
pub fn schemathesis() -> Result<()> {
    let python = match schemathesis::install()? {
        Schemathesis::Here(python) => python,
        Schemathesis::Skipped(why) => {
            eprintln!("── schemathesis: skipped, {why}");
            return Ok(());
        }
    };
    let mut command = cargo(&["test", "--package", "landfall", "--test", "it"]);
    command.args([
        "--",
        "--exact",
        "schemathesis::the_server_answers_as_its_reference_says",
        "--ignored",
        "--nocapture",
    ]);
    command.env(schemathesis::VARIABLE, python);
    step("schemathesis", command)
}

/// What is sent to GitHub, and what is read of it, against its own description. Where that cannot be had, a line says so.
pub fn github() -> Result<()> {
    let file = match github::fetch()? {
        Description::Here(file) => file,
        Description::Skipped(why) => {
            eprintln!("── github: skipped, {why}");
            return Ok(());
        }
    };
    let mut command = cargo(&["test", "--package", "landfall-trackers", "--test", "it"]);
    command.args(["--", "github_schema::", "--ignored", "--nocapture"]);
    command.env(github::VARIABLE, file);
    step("github", command)
}

/// The tests that drive the real agents. Where they cannot be had, a line says so.
pub fn agents() -> Result<()> {
    let began = Instant::now();
    let folders = match agents::install()? {
        Agents::Here(folders) => folders,
        Agents::Skipped(why) => {
            eprintln!("── agents: skipped, {why}");
            return Ok(());
        }
    };
    eprintln!("── agents: there after {:.0} s: {}", began.elapsed().as_secs_f64(), folders.to_string_lossy());
    let mut command = if installed("cargo-nextest") {
        cargo(&["nextest", "run", "--package", "landfall", "--test", "agents", "--no-fail-fast"])
    } else {
        // Few at a time: each of them is a program of several hundred MB.
        cargo(&[
            "test",
            "--package",
            "landfall",
            "--test",
            "agents",
            "--no-fail-fast",
            "--",
            "--test-threads=2",
        ])
    };
    command.env(agents::VARIABLE, folders);
    step("agents", command)
}

pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

pub fn step(name: &str, mut command: Command) -> Result<()> {
    eprintln!("── {name}");
    let began = Instant::now();
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    eprintln!("── {name}: {:.0} s", began.elapsed().as_secs_f64());
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

fn installed(program: &str) -> bool {
    runs(program, &["--version"])
}

fn needs(program: &str, args: &[&str], what: &str) -> Result<()> {
    if !runs(program, args) {
        bail!("`{program}` is missing; the tests need {what}");
    }
    Ok(())
}

pub fn runs(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
