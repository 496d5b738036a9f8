//! B13: landings an hour, against a plain shell script that merges and verifies one change after the other.
//!
//! The script is what a careful person would write: it verifies every merge before the branch moves, and nothing else. Where
//! every change also changes a test, it runs the check once more with the tests of the branch, as Landfall does.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use tempfile::TempDir;

use super::lab::{Lab, Project, git, output, repository};
use super::table::{Amount, Row, Target};
use super::times::timed;

const FILES: u32 = 100;
const SLOTS: u32 = 8;
const BATCH: u32 = 4;
const WARM_UP: u32 = 2; // tasks, before it counts
const LANDINGS_MIN: f64 = 2.0; // four land together; half of that is for everything else
const PER_HOUR_MIN: f64 = 200.0;

const SCRIPT: &str = r#"set -e
cd "$1"; shift
check=$1; shift
base_tests=$1; shift
for branch; do
    git checkout -q --detach main
    git merge -q --no-ff --no-edit "$branch"
    git clean -q -ffdx
    sh -c "$check"
    if [ "$base_tests" = 1 ]; then
        git checkout -q main -- tests
        sh -c "$check"
        git checkout -q HEAD -- tests
    fi
    git update-ref refs/heads/main HEAD
done
"#;

/// What is landed and how it is checked.
#[derive(Clone, Copy)]
struct Work {
    changes: u32,
    check: &'static str,
    /// Batches verified on top of one that has not landed.
    speculate: u32,
    lanes: u32,
    /// Whether every change also changes a test, so that the tests of the base are run against it.
    changes_tests: bool,
}

/// What it came to.
struct Came {
    per_hour: f64,
    /// Checks that were run while it was timed.
    checks: i64,
}

/// The queue by itself, then everything from the agent to the landing, then a slow check.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let changes = lab.pick(24, 12);
    let quick = Work { changes, check: "sleep 1", speculate: 0, lanes: 1, changes_tests: false };
    let script = by_script(lab, quick)?;
    let with_tests = Work { changes_tests: true, ..quick };
    let script_with_tests = by_script(lab, with_tests)?;
    let singly = by_queue(lab, quick)?;
    let ahead = by_queue(lab, Work { speculate: 1, ..quick })?;
    let whole = by_engine(lab, Work { speculate: 1, ..with_tests })?;
    let wide = by_engine(lab, Work { speculate: 1, lanes: 4, ..with_tests })?;
    let slow =
        Work { changes: lab.pick(12, 6), check: "sleep 5", speculate: 1, lanes: 1, changes_tests: true };
    let slow_came = by_engine(lab, slow)?;
    let row = |what: String, floor: &Came, came: &Came, target: Target, note: &str| Row {
        id: "B13",
        what,
        floor: Some(floor.amount()),
        product: came.amount(),
        target,
        note: format!("{} verifications, the script {}; {note}", came.checks, floor.checks),
    };
    Ok(vec![
        row(
            format!("{changes} verified changes landed, one check at a time"),
            &script,
            &singly,
            Target::RatioMin(LANDINGS_MIN),
            "batches of 4, a check of 1 s; floor: a shell script that merges, verifies and moves the branch, one by one",
        ),
        row(
            "the same, one batch ahead".to_owned(),
            &script,
            &ahead,
            Target::RatioMin(LANDINGS_MIN),
            "the next batch is verified on top of the one before it; the check sleeps, so two at once cost no more than one",
        ),
        row(
            format!("{changes} tasks from agent to landing with the tests of the base, one lane"),
            &script_with_tests,
            &whole,
            Target::None,
            "each change also changes a test, and product and script run the check once more with the test of the base; each task is verified alone before it stands in line, which the script does not do: its changes are there already",
        ),
        row("the same, four lanes".to_owned(), &script_with_tests, &wide, Target::None, "`run.lanes = 4`"),
        Row {
            id: "B13",
            what: format!(
                "{} tasks from agent to landing with the tests of the base, a check of 5 s",
                slow.changes
            ),
            floor: None,
            product: slow_came.amount(),
            target: Target::Min(PER_HOUR_MIN),
            note: format!("{} verifications, batches of 4, one lane", slow_came.checks),
        },
    ])
}

impl Came {
    fn new(changes: u32, ms: f64, checks: i64) -> Self {
        Self { per_hour: f64::from(changes) / ms * 3_600_000.0, checks }
    }

    fn amount(&self) -> Amount {
        Amount { value: self.per_hour, unit: "/h" }
    }
}

/// The floor.
fn by_script(lab: &Lab, work: Work) -> Result<Came> {
    let dir = lab.folder()?;
    let root = dir.path().join("project");
    let branches = candidates(&dir, work)?;
    let base_tests = if work.changes_tests { "1" } else { "0" };
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(&root).arg(counted(&dir, work.check)).arg(base_tests);
    command.args(&branches);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Bench"),
        ("GIT_AUTHOR_EMAIL", "bench@example.com"),
        ("GIT_COMMITTER_NAME", "Bench"),
        ("GIT_COMMITTER_EMAIL", "bench@example.com"),
    ] {
        command.env(name, value);
    }
    let (ms, _) = timed(|| output(command))?;
    let landed = git(&root, &["rev-list", "--count", "--first-parent", "main"])?;
    ensure!(
        landed == (work.changes + 1 + u32::from(work.changes_tests)).to_string(),
        "the script landed {landed} commits"
    );
    let checks = std::fs::read(dir.path().join("checks"))?.len();
    Ok(Came::new(work.changes, ms, i64::try_from(checks)?))
}

/// The check, and a byte in a file for each time it was run.
fn counted(dir: &TempDir, check: &str) -> String {
    format!("printf . >>'{}' && {check}", dir.path().join("checks").display())
}

/// A branch for each change, all from the same commit.
fn candidates(dir: &TempDir, work: Work) -> Result<Vec<String>> {
    let root = dir.path().join("project");
    repository(&root, FILES, "")?;
    if work.changes_tests {
        add_tests(&root)?;
    }
    let mut branches = Vec::new();
    for number in 0..work.changes {
        let branch = format!("change-{number}");
        git(&root, &["checkout", "-q", "-b", &branch, "main"])?;
        std::fs::write(root.join(format!("src/d0/f{number}.txt")), format!("change {number}\n"))?;
        if work.changes_tests {
            std::fs::write(root.join(format!("tests/t{number}.txt")), format!("change {number}\n"))?;
        }
        git(&root, &["commit", "-q", "-a", "-m", "Change a file"])?;
        branches.push(branch);
    }
    Ok(branches)
}

/// A test for each file, which the agent changes along with it.
fn add_tests(root: &Path) -> Result<()> {
    std::fs::create_dir_all(root.join("tests"))?;
    for number in 0..FILES {
        std::fs::write(root.join(format!("tests/t{number}.txt")), format!("test {number}\n"))?;
    }
    git(root, &["add", "tests"])?;
    git(root, &["commit", "-q", "-m", "Add tests"])?;
    Ok(())
}

/// Landing alone: the queue is held until every task is verified and stands in line.
fn by_queue(lab: &Lab, work: Work) -> Result<Came> {
    let project = project(lab, Work { lanes: 16, ..work })?;
    project.add(work.changes)?;
    output(project.landfall(["queue", "pause"]))?;
    // A slot for each: with fewer, agents would wait for the queue.
    project.run(work.changes)?.wait()?;
    let verified = project.count("SELECT count(*) FROM event WHERE kind = 'verified'")?;
    ensure!(verified == i64::from(work.changes), "{verified} tasks stand in line:\n{}", project.log());
    let before = checks(&project)?;
    output(project.landfall(["queue", "resume"]))?;
    let (ms, ()) = timed(|| project.run_to_end(SLOTS))?;
    landed(&project, work.changes)?;
    Ok(Came::new(work.changes, ms, checks(&project)? - before))
}

/// Everything: agents that are done at once, each verified alone, then landed. Not the first of their project: those wait
/// for its first workspaces and for the checks of the base as it is.
fn by_engine(lab: &Lab, work: Work) -> Result<Came> {
    let project = project(lab, work)?;
    project.add(WARM_UP)?;
    project.run_to_end(SLOTS)?;
    let before = checks(&project)?;
    project.add(work.changes)?;
    let (ms, ()) = timed(|| project.run_to_end(SLOTS))?;
    landed(&project, WARM_UP + work.changes)?;
    Ok(Came::new(work.changes, ms, checks(&project)? - before))
}

fn landed(project: &Project, changes: u32) -> Result<()> {
    let landed = project.count("SELECT count(*) FROM task WHERE status = 'done'")?;
    ensure!(landed == i64::from(changes), "{landed} of {changes} tasks landed:\n{}", project.log());
    Ok(())
}

/// Verifications that ran something; a pass that was taken over ran nothing. A run of the tests of the base is one, too.
fn checks(project: &Project) -> Result<i64> {
    let base_tests = project.count(
        "SELECT count(DISTINCT task) FROM event WHERE kind = 'verified' \
         AND json_extract(body, '$.evidence.base_tests') IS NOT NULL",
    )?;
    let verifications = project.count(
        "SELECT count(*) FROM event WHERE kind IN ('verified', 'queue-checked', 'measured') \
         AND NOT coalesce(json_extract(body, '$.report.reused'), 0)",
    )?;
    Ok(verifications + base_tests)
}

fn project(lab: &Lab, work: Work) -> Result<Project> {
    let Work { check, speculate, lanes, .. } = work;
    let settings = format!(
        "[verify]\ncommand = [\"{check}\"]\n[run]\nlanes = {lanes}\n[land]\nbatch = {BATCH}\nspeculate = {speculate}\n\
         [agent.default]\nkind = \"command\"\nrun = \"{}\"\n",
        lab.agent_line(&format!("edit {FILES}"))
    );
    let project = lab.project(FILES, &settings)?;
    if work.changes_tests {
        add_tests(&project.root)?;
    }
    Ok(project)
}
