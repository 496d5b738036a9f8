//! The judgement, from outside: git, the file system and the program's own answers, never its state.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::FaultKind;
use super::project::ChaosProject;

/// Adds what does not hold to the findings.
pub fn judge(project: &ChaosProject, kind: FaultKind, findings: &mut Vec<String>) -> Result<()> {
    judge_tasks(project, findings);
    judge_history(project, kind, findings)?;
    judge_user_files(project, findings)?;
    judge_processes(project, findings);
    let logs = project.logs();
    for line in
        logs.lines().filter(|line| line.contains("panicked at") || line.contains("overflowed its stack"))
    {
        findings.push(format!("the engine panicked: {line}"));
    }
    Ok(())
}

/// Every acknowledged task is there and done; the journal has no gap.
fn judge_tasks(project: &ChaosProject, findings: &mut Vec<String>) {
    for task in &project.acknowledged {
        match project.ask(&["why", &task.id]) {
            Ok(why) if why["status"] == "done" => {}
            Ok(why) => findings.push(format!("{} is {}: {}", task.id, why["status"], why["sentence"])),
            Err(error) => findings.push(format!("{} was acknowledged and is missing: {error:#}", task.id)),
        }
    }
    let mut after = 0;
    loop {
        let page = match project.ask(&["log", "--after", &after.to_string()]) {
            Ok(page) => page,
            Err(error) => return findings.push(format!("the journal cannot be read: {error:#}")),
        };
        for entry in page["entries"].as_array().into_iter().flatten() {
            let seq = entry["seq"].as_u64().unwrap_or(0);
            if seq != after + 1 {
                findings.push(format!("the journal has no entry between {after} and {seq}"));
            }
            after = seq;
        }
        if page["more"].as_bool() != Some(true) {
            return;
        }
    }
}

/// Each task landed once, with the files it was to bring; each landed commit is green in a clean checkout.
fn judge_history(project: &ChaosProject, kind: FaultKind, findings: &mut Vec<String>) -> Result<()> {
    let store = project.state().join("store.git");
    let base = match project.git_in(&store, &["rev-parse", "refs/landfall/base"]) {
        Ok(base) => base,
        Err(error) => {
            findings.push(format!("the store has no base: {error:#}"));
            return Ok(());
        }
    };
    for (name, folder) in [("the repository", project.project()), ("the store", store.clone())] {
        if let Err(error) = project.git_in(&folder, &["fsck", "--no-dangling", "--no-progress"]) {
            findings.push(format!("{name} is damaged: {error:#}"));
        }
    }
    let main = project.git(&["rev-parse", "main"])?;
    // After a power cut the user may have to look at the checkout first. What landed is in the store all the same.
    if main != base && kind != FaultKind::Power && !project.has_own_change {
        findings.push(format!("main is at {main}, the landed work at {base}"));
    }
    if project.git(&["merge-base", "--is-ancestor", &project.begin, "main"]).is_err()
        || project.git_in(&store, &["merge-base", "--is-ancestor", &main, &base]).is_err()
    {
        findings.push(format!("main was moved to {main}, which is not on the way to {base}"));
    }
    let range = format!("{}..{base}", project.begin);
    let log = project.git_in(&store, &["log", "--reverse", "--first-parent", "--format=%H", &range])?;
    let bodies = project.git_in(&store, &["log", "--first-parent", "--format=%B", &range])?;
    let mut landings: BTreeMap<&str, u32> = BTreeMap::new();
    for line in bodies.lines() {
        if let Some(task) = line.strip_prefix("Landfall-Task: ") {
            *landings.entry(task.trim()).or_default() += 1;
        }
    }
    for task in &project.acknowledged {
        match landings.get(task.id.as_str()).copied().unwrap_or(0) {
            1 => {}
            0 => findings.push(format!("{} did not land", task.id)),
            times => findings.push(format!("{} landed {times} times", task.id)),
        }
    }
    let checkout = project.root().join("judge");
    let (from, to) = (store.to_string_lossy().into_owned(), checkout.to_string_lossy().into_owned());
    project.git_in(project.root(), &["clone", "--quiet", "--shared", "--no-checkout", &from, &to])?;
    for commit in log.lines() {
        judge_commit(project, &checkout, commit, findings)?;
    }
    for task in project.acknowledged.iter().filter(|task| landings.contains_key(task.id.as_str())) {
        for (path, text) in &task.files {
            let landed = std::fs::read_to_string(checkout.join(path)).unwrap_or_default();
            if landed != *text {
                findings.push(format!("{}: `{path}` landed as {landed:?}", task.id));
            }
        }
    }
    std::fs::remove_dir_all(&checkout)?;
    Ok(())
}

fn judge_commit(
    project: &ChaosProject,
    checkout: &Path,
    commit: &str,
    findings: &mut Vec<String>,
) -> Result<()> {
    if let Err(error) = project.git_in(checkout, &["checkout", "--quiet", "--detach", commit]) {
        findings.push(format!("{commit} cannot be checked out: {error:#}"));
        return Ok(());
    }
    project.git_in(checkout, &["clean", "-fdxq"])?;
    let (is_green, output) = project.shell(checkout, "sh test.sh")?;
    if !is_green {
        findings
            .push(format!("{commit} landed red: {}", output.lines().take(3).collect::<Vec<_>>().join(" / ")));
    }
    Ok(())
}

/// What the user had is byte for byte what it was; nothing else of theirs changed.
fn judge_user_files(project: &ChaosProject, findings: &mut Vec<String>) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for (path, (bytes, mode)) in &project.user_files {
        let at = project.project().join(path);
        let now = std::fs::read(&at).ok();
        if now.as_ref() != Some(bytes) {
            let now = now.map_or_else(|| "is gone".to_owned(), |now| format!("has {} bytes", now.len()));
            findings.push(format!("the user's file `{}` {now}, it had {}", path.display(), bytes.len()));
            continue;
        }
        let mode_now = std::fs::symlink_metadata(&at)?.permissions().mode() & 0o777;
        if mode_now != *mode {
            findings
                .push(format!("the user's file `{}` has mode {mode_now:o}, it had {mode:o}", path.display()));
        }
    }
    if project.kind == FaultKind::Power {
        return Ok(()); // what was checked out shortly before a cut may be damaged; Landfall says so, and changes nothing
    }
    let status = project.git(&["status", "--porcelain", "--untracked-files=all"])?;
    let known = |line: &str| {
        let path = line.get(3..).unwrap_or_default();
        project.user_files.keys().any(|file| Path::new(path.trim_matches('"')) == file)
    };
    for line in status.lines().filter(|line| !known(line)) {
        findings.push(format!("the checkout of the user differs: `{line}`"));
    }
    Ok(())
}

/// Nothing runs once the run is over.
fn judge_processes(project: &ChaosProject, findings: &mut Vec<String>) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let left = project.processes();
        if left.is_empty() {
            return;
        }
        if Instant::now() >= until {
            let names: Vec<String> =
                left.iter().map(|(pid, name)| format!("{pid} {}", name.replace('\0', " "))).collect();
            return findings.push(format!("processes are left: {}", names.join("; ")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
