//! The faults, and the recovery from them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use super::FaultKind;
use super::mounts::RoundMount;
use super::project::{ChaosProject, describe, fill_bytes, signal};
use super::random::Random;

/// Injects the fault of the round while the engine drives the project, and takes it back. Returns what was done.
pub fn inject(
    project: &mut ChaosProject,
    mount: &RoundMount,
    kind: FaultKind,
    random: &mut Random,
    findings: &mut Vec<String>,
) -> Result<String> {
    project.start_engine()?;
    let what = match kind {
        FaultKind::Engine => kill_engine(project, random, false)?,
        FaultKind::Both => kill_engine(project, random, true)?,
        FaultKind::Sitter => kill_sitters(project, random, |name| name.contains("-i"))?,
        FaultKind::CheckSitter => kill_sitters(project, random, |name| name.contains("-v"))?,
        FaultKind::Stop => stop_and_continue(project, random)?,
        FaultKind::Power => cut_power(project, mount, random)?,
        FaultKind::Disk => fill_disk(project, random)?,
        FaultKind::Inodes => fill_inodes(project, random)?,
        FaultKind::Pids => exhaust_pids(project, random)?,
        FaultKind::Files => exhaust_files(project, random)?,
        FaultKind::Clock => move_clock(project, random)?,
    };
    // What is added once the fault is over must be acknowledged.
    project.start_engine()?;
    if !project.add_task(random)? && !project.add_task(random)? {
        findings.push("a task could not be added after the fault was over".to_owned());
    }
    Ok(what)
}

/// Lets Landfall finish: the engine is started as often as it ends with something left to do.
pub fn recover(project: &mut ChaosProject, findings: &mut Vec<String>) -> Result<()> {
    const RUNS_MAX: u32 = 4;
    const RUN_MAX: Duration = Duration::from_secs(150); // on a machine with ten times its load
    for _ in 0..RUNS_MAX {
        project.start_engine()?;
        let Some(status) = project.wait_engine(RUN_MAX)? else {
            findings.push(format!("the run did not end within {} s after the fault", RUN_MAX.as_secs()));
            project.kill_engine();
            return Ok(());
        };
        match status.code() {
            Some(0) if is_all_done(project)? => return Ok(()),
            // Such an end is named: exit codes of the program, never of a panic.
            Some(101) | None => findings.push(format!("the engine ended with {}", describe(status))),
            Some(_) => {}
        }
    }
    Ok(())
}

fn is_all_done(project: &ChaosProject) -> Result<bool> {
    for task in &project.acknowledged {
        if project.ask(&["why", &task.id])?["status"] != "done" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds a task in the middle of things; it counts only if it was acknowledged.
fn add_meanwhile(project: &mut ChaosProject, random: &mut Random) -> Result<()> {
    if random.number(0, 1) == 0 {
        project.add_task(random)?;
    }
    Ok(())
}

fn kill_engine(project: &mut ChaosProject, random: &mut Random, sitters: bool) -> Result<String> {
    let count = random.number(1, 3);
    for _ in 0..count {
        std::thread::sleep(random.millis(20, 1_500));
        add_meanwhile(project, random)?;
        project.kill_engine();
        if sitters {
            for (pid, _) in project.sitters() {
                signal(pid, Signal::KILL);
            }
        }
        project.start_engine()?;
    }
    Ok(format!("{count} kills{}", if sitters { " with all sitters" } else { "" }))
}

fn kill_sitters(
    project: &mut ChaosProject,
    random: &mut Random,
    is_victim: impl Fn(&str) -> bool,
) -> Result<String> {
    const LOOK_MAX: Duration = Duration::from_secs(10);
    let (wanted, mut killed) = (random.number(1, 3), 0);
    for _ in 0..wanted {
        let until = Instant::now() + LOOK_MAX;
        while Instant::now() < until && project.engine_pid().is_some() {
            let victims: Vec<_> = project.sitters().into_iter().filter(|(_, name)| is_victim(name)).collect();
            if let Some((pid, _)) = random.pick(&victims) {
                std::thread::sleep(random.millis(0, 60));
                signal(*pid, Signal::KILL);
                killed += 1;
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        add_meanwhile(project, random)?;
    }
    Ok(format!("{killed} kills"))
}

fn stop_and_continue(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    let count = random.number(1, 2);
    let mut stopped = Vec::new();
    for _ in 0..count {
        std::thread::sleep(random.millis(20, 1_000));
        let sitters = project.sitters();
        let engine = project.engine_pid();
        let victim = match random.number(0, 1) {
            0 => engine,
            _ => random.pick(&sitters).map(|(pid, _)| *pid).or(engine),
        };
        let Some(pid) = victim else { continue };
        signal(pid, Signal::STOP);
        std::thread::sleep(random.millis(200, 2_000));
        signal(pid, Signal::CONT);
        stopped.push(if Some(pid) == engine { "engine" } else { "sitter" });
    }
    Ok(format!("stopped {}", stopped.join(" and ")))
}

fn cut_power(project: &mut ChaosProject, mount: &RoundMount, random: &mut Random) -> Result<String> {
    let count = random.number(1, 2);
    for _ in 0..count {
        std::thread::sleep(random.millis(50, 3_000));
        add_meanwhile(project, random)?;
        mount.cut_power()?;
        project.end_processes();
        mount.restore_power()?;
        project.start_engine()?;
    }
    Ok(format!("{count} power cuts"))
}

fn fill_disk(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    std::thread::sleep(random.millis(20, 1_500));
    let ballast = project.root().join("ballast");
    let bytes = fill_bytes(&ballast)?;
    wait_with_fault(project, random)?;
    std::fs::remove_file(&ballast).context("remove the ballast")?;
    Ok(format!("{} MB of ballast", bytes >> 20))
}

fn fill_inodes(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    std::thread::sleep(random.millis(20, 1_500));
    let ballast = project.root().join("ballast");
    std::fs::create_dir(&ballast).context("make a folder for the ballast")?;
    let mut count = 0_u64;
    while std::fs::File::create(ballast.join(count.to_string())).is_ok() {
        count += 1;
    }
    wait_with_fault(project, random)?;
    std::fs::remove_dir_all(&ballast).context("remove the ballast")?;
    Ok(format!("{count} files of ballast"))
}

/// The fault stays for a while, during which somebody adds a task. That may be refused.
fn wait_with_fault(project: &mut ChaosProject, random: &mut Random) -> Result<()> {
    std::thread::sleep(random.millis(200, 1_500));
    add_meanwhile(project, random)?;
    std::thread::sleep(random.millis(200, 1_500));
    Ok(())
}

/// A control group of this process that limits how many processes there are, where one can be had.
struct PidsGroup {
    path: PathBuf,
}

impl PidsGroup {
    fn make() -> Result<Self> {
        let (mounts, groups) =
            (std::fs::read_to_string("/proc/self/mountinfo")?, std::fs::read_to_string("/proc/self/cgroup")?);
        let version_1 = mounts.lines().find_map(|line| {
            let (mount, source) = line.split_once(" - ")?;
            let mut source = source.split(' ');
            let is_pids =
                source.next() == Some("cgroup") && source.nth(1)?.split(',').any(|word| word == "pids");
            is_pids.then(|| PathBuf::from(mount.split(' ').nth(4).unwrap_or_default()))
        });
        let version_2 = || {
            let point = mounts.lines().find_map(|line| {
                let (mount, source) = line.split_once(" - ")?;
                source
                    .starts_with("cgroup2 ")
                    .then(|| PathBuf::from(mount.split(' ').nth(4).unwrap_or_default()))
            })?;
            let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
            Some(point.join(own))
        };
        let parent = version_1.or_else(version_2).context("no control group for processes is mounted")?;
        // The group of an earlier round may still be there: its last process is being counted out.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("landfall-chaos-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        let group = Self { path };
        std::fs::metadata(group.path.join("pids.max")).context("it does not limit processes")?;
        Ok(group)
    }

    fn count(&self) -> Result<u64> {
        Ok(std::fs::read_to_string(self.path.join("pids.current"))?.trim().parse()?)
    }

    fn set(&self, limit: &str) -> Result<()> {
        std::fs::write(self.path.join("pids.max"), limit).context("set the limit of processes")
    }
}

impl Drop for PidsGroup {
    fn drop(&mut self) {
        let _ = self.set("max"); // what still runs in it is not limited
        let parent = self.path.parent().unwrap_or(Path::new("/")).join("cgroup.procs");
        let members = std::fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines() {
            let _ = std::fs::write(&parent, pid); // it has just ended
        }
        for _ in 0..40 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Why processes cannot be exhausted on this machine. A user who is not root has a limit of their own.
pub fn pids_missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    PidsGroup::make().err().map(|error| format!("no control group limits processes: {error:#}"))
}

fn exhaust_pids(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    let Some(engine) = project.engine_pid() else { return Ok("the run was over".to_owned()) };
    let extra = random.number(0, 6);
    if !rustix::process::geteuid().is_root() {
        std::thread::sleep(random.millis(20, 1_000));
        let old = limit_engine(engine, Resource::Nproc, 1)?;
        wait_with_fault(project, random)?;
        restore_limit(engine, Resource::Nproc, old);
        return Ok("no process could be started".to_owned());
    }
    let group = PidsGroup::make()?;
    std::fs::write(group.path.join("cgroup.procs"), engine.to_string()).context("limit the engine")?;
    std::thread::sleep(random.millis(20, 1_000));
    group.set(&(group.count()? + extra).to_string())?;
    wait_with_fault(project, random)?;
    group.set("max")?;
    Ok(format!("{extra} processes were left"))
}

fn exhaust_files(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    std::thread::sleep(random.millis(20, 1_000));
    let Some(engine) = project.engine_pid() else { return Ok("the run was over".to_owned()) };
    let open = std::fs::read_dir(format!("/proc/{engine}/fd")).map_or(0, Iterator::count) as u64;
    let left = open + random.number(0, 4);
    let old = limit_engine(engine, Resource::Nofile, left)?;
    wait_with_fault(project, random)?;
    restore_limit(engine, Resource::Nofile, old);
    Ok(format!("{left} open files were allowed"))
}

fn limit_engine(engine: u32, resource: Resource, limit: u64) -> Result<Rlimit> {
    let pid = i32::try_from(engine).ok().and_then(Pid::from_raw);
    let old = rustix::process::getrlimit(resource);
    // The upper limit stays, so that the lower one can be raised again.
    let new = Rlimit { current: Some(limit), maximum: old.maximum };
    prlimit(pid, resource, new).context("limit the engine")
}

fn restore_limit(engine: u32, resource: Resource, old: Rlimit) {
    let pid = i32::try_from(engine).ok().and_then(Pid::from_raw);
    prlimit(pid, resource, old).ok(); // the engine has ended: the next one has its own limits
}

fn move_clock(project: &mut ChaosProject, random: &mut Random) -> Result<String> {
    const JUMPS: [i64; 6] = [90, -90, 3_600, -3_600, 315_360_000, -315_360_000];
    let mut jumps = Vec::new();
    for _ in 0..random.number(1, 3) {
        std::thread::sleep(random.millis(50, 1_000));
        let jump = *random.pick(&JUMPS).context("there are jumps")?;
        std::fs::write(project.clock_file(), jump.to_string()).context("move the clock")?;
        jumps.push(format!("{jump} s"));
        add_meanwhile(project, random)?;
    }
    Ok(format!("the clock at {}", jumps.join(", ")))
}
