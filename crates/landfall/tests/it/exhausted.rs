//! Exhausted resources: the engine does not panic, starts nothing new, names the resource, loses nothing, and continues by
//! itself once the resource is back.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landfall_testkit::{BackgroundCommand, ScratchProject, skip_test};

use crate::LANDFALL;
use crate::sandbox::open;

const SETTINGS: &str = "[agent.default]\nkind = \"script\"\n[disk]\nwarn = \"0MB\"\npause = \"0MB\"\nstop = \"0MB\"\n\
    [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\ntimeout = \"60s\"\n";

fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}.txt\"\ntext = \"{name}\\n\"\n")
}

/// The first task waits for a file, so that the fault comes while the engine is at work.
fn waits(folder: &Path, name: &str) -> String {
    let (began, go) = (folder.join("began"), folder.join("go"));
    let wait = format!("touch {}; while [ ! -e {} ]; do sleep 0.02; done", began.display(), go.display());
    format!("run = [\"sh\", \"-c\", {wait:?}]\n{}", writes(name))
}

/// A small file system in memory; unmounted when dropped.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(options: &str) -> Option<Self> {
        let folder =
            tempfile::Builder::new().prefix("landfall-small-").tempdir().expect("a folder can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "landfall-test"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        if !mounted {
            skip_test("a small file system needs the right to mount");
        }
        mounted.then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status(); // it is in memory, and gone with the last user
    }
}

/// A control group that limits whoever is put into it; gone when dropped.
struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    fn make(controller: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let point = mounts.lines().find_map(|line| {
            let (mount, source) = line.split_once(" - ")?;
            let counts =
                source.starts_with("cgroup ") && source.split([' ', ',']).any(|word| word == controller);
            counts.then(|| PathBuf::from(mount.split(' ').nth(4).unwrap_or_default()))
        });
        let path = point.map(|point| point.join(format!("landfall-test-{}", std::process::id())));
        let made = path.filter(|path| std::fs::create_dir(path).is_ok()).map(|path| Self { path });
        if made.is_none() {
            skip_test(&format!(
                "limiting the {controller} of a process needs root and a control group (version 1)"
            ));
        }
        made
    }

    fn set(&self, name: &str, limit: &str) {
        std::fs::write(self.path.join(name), limit).expect("a group of ours");
    }

    fn take(&self, pid: i32) {
        std::fs::write(self.path.join("cgroup.procs"), pid.to_string()).expect("a group of ours");
    }

    fn oom_kills(&self) -> u64 {
        let text = std::fs::read_to_string(self.path.join("memory.oom_control")).expect("a group of ours");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.parse().ok()).expect("a number")
    }

    fn count(&self) -> u64 {
        let text = std::fs::read_to_string(self.path.join("pids.current")).expect("a group of ours");
        text.trim().parse().expect("a number")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50)); // its last process is being counted out
        }
    }
}

/// Waits until the status names what is missing.
#[track_caller]
fn names(scratch: &ScratchProject, run: &mut BackgroundCommand, words: &str) {
    let mut last = String::new();
    scratch.eventually(&format!("`{words}` in the status"), || {
        assert!(!run.is_over(), "the engine ended: {}", scratch.heard());
        last = scratch.landfall(&["--json", "status"]).out;
        last.contains(words)
    });
}

/// The run ends well, every task landed once, and nothing panicked.
#[track_caller]
fn all_landed(scratch: &ScratchProject, run: &mut BackgroundCommand, tasks: &[&str]) {
    let code = run.wait(Duration::from_secs(120));
    for task in tasks {
        assert_eq!(scratch.status(task), "done", "{}\n{}", scratch.why(task), scratch.heard());
        assert_eq!(scratch.facts(task, "landed").len(), 1, "{task}");
    }
    assert_eq!(code, Some(0), "{}", scratch.heard());
    assert!(!scratch.heard().contains("panicked"), "{}", scratch.heard());
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn without_processes_nothing_is_started_and_the_run_continues_when_they_are_back() {
    let Some(group) = ControlGroup::make("pids") else { return };
    // None is left, or a few: enough for a thread, not for an agent.
    for left in [0, 2] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.settings(&format!("{SETTINGS}[run]\nslots = 1\n"));
        let folder = open(&scratch);
        scratch.task("First", &waits(&folder, "one"), &[]);
        scratch.task("Second", &writes("two"), &[]);
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the first agent", || folder.join("began").exists());
        group.take(run.pid());
        group.set("pids.max", &(group.count() + left).to_string());
        // Its agent ends: the check cannot be started, nor can the next agent.
        std::fs::write(folder.join("go"), "").expect("ours");
        names(&scratch, &mut run, "out of processes");
        scratch.task("Third", &writes("three"), &[]); // what is asked of the engine is answered all the same
        group.set("pids.max", "max");
        all_landed(&scratch, &mut run, &["T1", "T2", "T3"]);
        for task in ["T2", "T3"] {
            assert_eq!(scratch.detail(task)["iterations"], 1, "no try was counted");
        }
    }
}

/// Waits until the engine says that it is out of open files. A client needs a few of them to be answered, and the start of an
/// agent many: the limit is raised one by one until there are enough to answer.
#[track_caller]
fn names_open_files(
    scratch: &ScratchProject,
    run: &mut BackgroundCommand,
    open_now: usize,
    meanwhile: impl Fn(),
) {
    let pid = run.pid().to_string();
    for spare in 3..20 {
        limit_files(&pid, &format!("{}:", open_now + spare)).expect("it could be set before");
        for _ in 0..5 {
            assert!(!run.is_over(), "the engine ended: {}", scratch.heard());
            meanwhile();
            if scratch.landfall(&["--json", "status"]).out.contains("out of open files") {
                return;
            }
        }
    }
    panic!("the limit was not met: {}\n{}", scratch.heard(), scratch.landfall(&["status"]).out);
}

#[test]
fn without_open_files_nothing_is_started_and_the_run_continues_when_they_are_back() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(SETTINGS);
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    let pid = run.pid().to_string();
    let usual = files_limit(&pid);
    scratch.task("Second", &writes("two"), &["--draft"]);
    let open_now = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("ours").count();
    if limit_files(&pid, &format!("{}:", open_now + 3)).is_none() {
        return;
    }
    names_open_files(&scratch, &mut run, open_now, || drop(scratch.landfall(&["edit", "T2", "--ready"])));
    limit_files(&pid, &format!("{usual}:")).expect("raised again");
    scratch.landfall(&["edit", "T2", "--ready"]); // it was refused, or is so already
    std::fs::write(folder.join("go"), "").expect("ours");
    all_landed(&scratch, &mut run, &["T1", "T2"]);
}

/// Sets the limits on open files of a process, `soft:hard`. None: that cannot be done here.
fn limit_files(pid: &str, limits: &str) -> Option<()> {
    let set = format!("--nofile={limits}");
    let done = Command::new("prlimit").args(["--pid", pid, &set]).output();
    let problem = match done {
        Ok(done) if done.status.success() => return Some(()),
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skip_test(&format!("open files cannot be limited: {}", problem.trim()));
    None
}

/// The soft limit on open files of a process.
fn files_limit(pid: &str) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("ours");
    let usual = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("it is limited");
    usual.split_whitespace().next().expect("a number").to_owned()
}

#[test]
fn an_agent_that_ends_while_few_files_can_be_opened_is_not_lost() {
    // None, or too few for all that its end is judged by.
    for left in [None, Some(1), Some(3), Some(6)] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.settings(SETTINGS);
        let folder = open(&scratch);
        scratch.task("First", &waits(&folder, "one"), &[]);
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the first agent", || folder.join("began").exists());
        let pid = run.pid().to_string();
        let usual = files_limit(&pid);
        let open_now = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("ours").count();
        // Fewer than are open: whatever the engine tries to open, it cannot.
        let limit = left.map_or(8, |left| open_now + left);
        if limit_files(&pid, &format!("{limit}:")).is_none() {
            return;
        }
        std::fs::write(folder.join("go"), "").expect("ours");
        let ended = scratch.state().join("attempts/T1-a1-i1/exit.json");
        scratch.eventually("the end of the agent", || ended.exists());
        names_open_files(&scratch, &mut run, open_now, || {});
        limit_files(&pid, &format!("{usual}:")).expect("raised again");
        all_landed(&scratch, &mut run, &["T1"]);
        assert_eq!(scratch.prompts("T1").len(), 1, "{left:?}: one run of the agent: {}", scratch.heard());
    }
}

#[test]
fn an_engine_that_starts_without_open_files_does_not_end_a_live_agent() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(SETTINGS);
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    run.kill();
    let sitter = std::fs::read(scratch.state().join("attempts/T1-a1-i1/sitter.json")).expect("it runs");
    let sitter: serde_json::Value = serde_json::from_slice(&sitter).expect("JSON");
    let is_alive = || Path::new(&format!("/proc/{}/stat", sitter["pid"])).exists();
    let starts = |scratch: &ScratchProject| {
        scratch.log().iter().filter(|fact| fact["kind"] == "engine-started").count()
    };
    let before = starts(&scratch);
    // From too few to open the journal up to enough to begin. With fewer not even a thread pool can be made.
    let mut refused = 0;
    for files_max in 20..200 {
        run = scratch.start_with_files_max(files_max, &["run"]);
        scratch.eventually("the engine to start or to end", || run.is_over() || starts(&scratch) > before);
        if starts(&scratch) > before {
            break;
        }
        refused += 1;
        let heard = scratch.heard();
        assert!(heard.contains("open files"), "with {files_max} files it says why it ends: {heard}");
        assert!(!heard.contains("panicked"), "{heard}");
        assert!(is_alive(), "the agent lives, with {files_max} files");
    }
    assert!(refused > 0, "the limit was met");
    // The limit cannot be raised again without a capability that containers lack: another engine takes over.
    let files = format!("/proc/{}/fd", run.pid());
    let follows = || {
        let open = std::fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|file| std::fs::read_link(file.path()).ok())
            .any(|path| path.to_string_lossy().contains("T1-a1-i1"))
    };
    scratch.eventually("the engine to follow its agent, or to say what it lacks", || {
        run.is_over() || follows() || scratch.heard().contains("open files")
    });
    assert!(is_alive(), "the agent lives: {}", scratch.heard());
    run.kill();
    run = scratch.start(&["run"]);
    std::fs::write(folder.join("go"), "").expect("ours");
    all_landed(&scratch, &mut run, &["T1"]);
    assert_eq!(scratch.prompts("T1").len(), 1, "one run of the agent: {}", scratch.heard());
}

#[test]
fn a_stop_without_open_files_takes_seconds_and_the_next_run_continues() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(SETTINGS);
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    let pid = run.pid().to_string();
    let open_now = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("ours").count();
    if limit_files(&pid, &format!("{}:", open_now + 6)).is_none() {
        return;
    }
    // Its agent ends, and that cannot be read.
    std::fs::write(folder.join("go"), "").expect("ours");
    names_open_files(&scratch, &mut run, open_now, || {});
    let told = std::time::Instant::now();
    run.signal("TERM");
    const ENOUGH: Duration = Duration::from_secs(300); // six seconds where nothing else runs
    run.wait(ENOUGH);
    let heard = scratch.heard();
    assert!(told.elapsed() < ENOUGH, "{heard}");
    assert!(heard.contains("out of open files"), "it says why: {heard}");
    assert!(!heard.contains("panicked"), "{heard}");
    let mut run = scratch.start(&["run"]);
    all_landed(&scratch, &mut run, &["T1"]);
}

/// A project on a small file system, whose first agent waits while `fill` takes what is left.
fn fills_up(small: &SmallDisk, fill: impl Fn(&Path) -> PathBuf, words: &str) {
    let scratch = ScratchProject::within(small.path(), LANDFALL);
    scratch.settings(SETTINGS);
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    scratch.task("Second", &waits(&folder, "two"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    std::fs::write(folder.join("go"), "").expect("ours");
    let ballast = fill(small.path());
    // It waits, or it ends in good order because not even the journal has room; then it says why.
    let mut over = false;
    scratch.eventually("the shortage to be named", || {
        over = run.is_over();
        over || scratch.landfall(&["--json", "status"]).out.contains(words)
    });
    let heard = scratch.heard();
    assert!(!heard.contains("panicked"), "{heard}");
    assert!(!over || heard.contains("disk"), "{heard}");
    if over {
        assert_eq!(scratch.left_behind(), [], "its agents were ended first");
    }
    if ballast.is_dir() {
        std::fs::remove_dir_all(&ballast).expect("ours");
    } else {
        std::fs::remove_file(&ballast).expect("ours");
    }
    // A run that was about to end for want of room does end; the next one continues.
    if run.wait(Duration::from_secs(120)) != Some(0) {
        run = scratch.start(&["run"]);
    }
    all_landed(&scratch, &mut run, &["T1", "T2"]);
}

#[test]
fn a_full_disk_loses_nothing_and_the_work_continues_when_there_is_room() {
    let Some(small) = SmallDisk::mount("size=96m,nr_inodes=20000") else { return };
    let fill = |folder: &Path| {
        let path = folder.join("ballast");
        let mut file = std::fs::File::create(&path).expect("there is room for a name");
        for size in [1 << 20, 1 << 12] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    };
    fills_up(&small, fill, "out of disk space");
}

#[test]
fn a_check_that_fills_the_disk_is_red_and_does_not_stop_the_other_tasks() {
    let Some(small) = SmallDisk::mount("size=96m,nr_inodes=20000") else { return };
    let scratch = ScratchProject::within(small.path(), LANDFALL);
    scratch.file("test.sh", "[ ! -e fill.txt ] || dd if=/dev/zero of=big bs=1M\n");
    scratch.commit("check");
    scratch.settings(SETTINGS);
    // Its second run removes the file that makes the check fill the disk.
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"fill.txt\"\ntext = \"fill\\n\"\n\
        [[iteration]]\nsignal = \"complete\"\nrun = [\"rm\", \"fill.txt\"]\n\
        [[iteration.write]]\npath = \"one.txt\"\ntext = \"one\\n\"\n";
    scratch.task("Fills the disk", script, &[]);
    scratch.task("Other", &writes("two"), &[]);
    let mut run = scratch.start(&["run"]);
    all_landed(&scratch, &mut run, &["T1", "T2"]);
    let verified = scratch.facts("T1", "verified");
    assert!(verified.len() >= 2, "the first verification was red: {verified:?}");
}

/// More than the group of the next tests may have, and at once.
const TAKES_MEMORY: &str = "head -c 900m /dev/zero | tail > /dev/null";

/// A run whose first agent waits, in a group with little memory.
fn short_of_memory(group: &ControlGroup, scratch: &ScratchProject, folder: &Path) -> BackgroundCommand {
    let run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    group.set("memory.limit_in_bytes", "400m");
    group.take(run.pid());
    std::fs::write(folder.join("go"), "").expect("ours");
    run
}

#[test]
fn a_check_that_the_kernel_ended_for_lack_of_memory_is_run_again() {
    let Some(group) = ControlGroup::make("memory") else { return };
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let hungry = folder.join("hungry");
    // The shell survives, and says 1 as a test runner does whose worker was ended.
    let hungry_name = hungry.display();
    // The check of the base comes before memory is short.
    let go = folder.join("go");
    let test = format!(
        "[ -e {} ] && [ ! -e {hungry_name} ] || exit 0\ntouch {hungry_name}\n{TAKES_MEMORY} || exit 1\n",
        go.display()
    );
    scratch.file("test.sh", &test);
    scratch.commit("check");
    scratch.settings(&format!("{SETTINGS}[verify]\nretries = 0\n"));
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    let mut run = short_of_memory(&group, &scratch, &folder);
    all_landed(&scratch, &mut run, &["T1"]);
    assert!(group.oom_kills() > 0, "the check ran out of memory once");
    assert_eq!(
        scratch.facts("T1", "verified").len(),
        1,
        "a check that ran out of memory says nothing about the work"
    );
    assert_eq!(scratch.detail("T1")["iterations"], 1, "the agent heard nothing of it");
}

#[test]
fn an_agent_that_the_kernel_ended_for_lack_of_memory_is_started_again() {
    let Some(group) = ControlGroup::make("memory") else { return };
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&format!("{SETTINGS}[run]\nrestarts_max = 0\n"));
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    // In its first run the agent is the one that takes the memory.
    let take = format!(
        "[ -e {0} ] || {{ touch {0}; {TAKES_MEMORY}; kill -9 $PPID; }}",
        folder.join("hungry").display()
    );
    scratch.task(
        "Second",
        &format!("run = [\"sh\", \"-c\", {take:?}]\n{}", writes("two")),
        &["--needs", "T1"],
    );
    let mut run = short_of_memory(&group, &scratch, &folder);
    all_landed(&scratch, &mut run, &["T1", "T2"]);
    assert!(group.oom_kills() > 0, "the agent ran out of memory once");
    let yielded = scratch.facts("T2", "yielded");
    assert!(yielded.iter().any(|fact| fact.to_string().contains("shortage")), "{yielded:?}");
}

#[test]
fn a_run_with_too_little_memory_for_itself_is_refused_and_not_aborted() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.settings(SETTINGS);
    scratch.task("One", &writes("one"), &[]);
    let limited = scratch.root().join("limited");
    std::fs::write(&limited, format!("#!/bin/sh\nexec prlimit --as=250000000 {LANDFALL} \"$@\"\n"))
        .expect("written");
    std::fs::set_permissions(&limited, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    scratch.upgrade(&limited);
    let refused = scratch.landfall(&["run"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("out of memory") && refused.err.contains("ulimit -v"), "{}", refused.err);
    scratch.upgrade(Path::new(LANDFALL));
    let mut run = scratch.start(&["run"]);
    all_landed(&scratch, &mut run, &["T1"]);
}

#[test]
fn an_engine_that_may_have_been_ended_for_lack_of_memory_says_so_next_time() {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return };
    let Some(group) = ControlGroup::make("memory") else { return };
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(SETTINGS);
    let folder = open(&scratch);
    scratch.task("First", &waits(&folder, "one"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first agent", || folder.join("began").exists());
    let mark = std::fs::read_to_string(scratch.state().join("oom-mark")).expect("the kernel counts");
    assert!(mark.starts_with(boot.trim()), "{mark}");
    run.kill();
    // Somebody is ended for memory meanwhile.
    group.set("memory.limit_in_bytes", "50m");
    let procs = group.path.join("cgroup.procs");
    let script = format!("echo $$ > {} && {TAKES_MEMORY}", procs.display());
    let _ = Command::new("sh").args(["-c", &script]).status().expect("a shell"); // ended, or not
    assert!(group.oom_kills() > 0);
    std::fs::write(folder.join("go"), "").expect("ours");
    let mut run = scratch.start(&["run"]);
    all_landed(&scratch, &mut run, &["T1"]);
    let told = scratch.landfall(&["doctor"]).out;
    assert!(told.contains("out of memory"), "{told}");
    assert!(!scratch.state().join("oom-mark").exists(), "it ended in order");
}

#[test]
fn exhausted_inodes_are_a_wait_and_not_a_failure() {
    let Some(small) = SmallDisk::mount("size=256m,nr_inodes=8000") else { return };
    let fill = |folder: &Path| {
        let path = folder.join("ballast");
        std::fs::create_dir(&path).expect("there is an inode for it");
        let mut count = 0;
        while std::fs::File::create(path.join(count.to_string())).is_ok() {
            count += 1;
        }
        path
    };
    fills_up(&small, fill, "inodes");
}

#[test]
fn the_state_folder_holds_a_reserve_for_the_end_of_a_run() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("One", &writes("one"), &[]);
    scratch.landfall(&["run"]).ok();
    use std::os::unix::fs::MetadataExt as _;
    let reserve = std::fs::metadata(scratch.state().join("reserve")).expect("it is made");
    assert_eq!(reserve.len(), 4 << 20);
    assert!(reserve.blocks() * 512 >= 4 << 20, "its room is really set aside");
}
