//! A control group of one run's own, where the system lets us make one: then the kernel kills the tree as a whole.

use crate::wait::retry_until;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The control group (v2) that this process is in, as a folder. None where there is no such hierarchy.
pub(super) fn own_cgroup() -> Option<PathBuf> {
    own_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, &fs::read_to_string("/proc/self/cgroup").ok()?)
}

fn own_in(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = group_in(groups)?;
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        if source.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // In a container only a part of the hierarchy may be mounted; our group is then named from the real root.
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

/// The control group (v2) of a process, by its `/proc/PID/cgroup`.
pub(super) fn group_in(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Whether a process in the group `theirs` is in the group of a run, as seen from a process in the group `own`. A group that
/// both are in does not count.
pub(super) fn is_of_run(own: &str, theirs: &str) -> bool {
    let (mut own, mut theirs) = (own.split('/').peekable(), theirs.split('/').peekable());
    while own.peek().is_some() && own.peek() == theirs.peek() {
        own.next();
        theirs.next();
    }
    theirs.any(is_name_of_run)
}

/// Whether a group has the name that [`Cgroup::make`] gives.
fn is_name_of_run(name: &str) -> bool {
    let mut parts = name.split('.');
    let (first, hash, sitter) = (parts.next(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    first == Some("landfall")
        && hash.len() == 16
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !sitter.is_empty()
        && sitter.bytes().all(|byte| byte.is_ascii_digit())
        && parts.next().is_none()
}

/// The control group (v1) that counts the processes of this one, as a folder. None where version 2 counts them, or nobody.
fn own_pids() -> Option<PathBuf> {
    let (mounts, groups) =
        (fs::read_to_string("/proc/self/mountinfo").ok()?, fs::read_to_string("/proc/self/cgroup").ok()?);
    pids_in(&mounts, &groups)
}

fn pids_in(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "pids").then_some(group)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let (kind, options) = (source.next()?, source.nth(1)?);
        if kind != "cgroup" || !options.split(',').any(|option| option == "pids") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(Path::new(group).strip_prefix(root).ok()?))
    })
}

/// A control group (v1) that bounds the processes of one run, where version 2 does not. It contains them as well: whatever a
/// run started is found in it.
#[derive(Debug)]
pub(super) struct ProcessLimitGroup {
    path: PathBuf,
    procs: File,
}

impl ProcessLimitGroup {
    /// None if there is none to be had: another version, or no right to make one.
    pub(super) fn create_for_run(marker: &str, sitter: i32) -> Option<ProcessLimitGroup> {
        let parent = own_pids()?;
        let path = parent.join(format!("{}{sitter}", group_prefix(marker)));
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let _ = empty_group(&path); // if that fails, so does the next line
                fs::create_dir(&path).ok()?;
            }
            Err(_) => return None,
        }
        limit_processes(&parent, &path);
        match OpenOptions::new().write(true).open(path.join("cgroup.procs")) {
            Ok(procs) => Some(ProcessLimitGroup { path, procs }),
            Err(_) => {
                let _ = fs::remove_dir(&path); // nothing was in it
                None
            }
        }
    }

    /// Where a process moves itself into it.
    pub(super) fn procs_file(&self) -> &File {
        &self.procs
    }

    /// Removes it, with what is left in it.
    pub(super) fn remove(self) {
        let _ = empty_group(&self.path); // it stays behind; `sweep` looks again
    }
}

/// A control group for one child's tree. Made empty, emptied by `kill`, removed by `remove`.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    folder: File,
}

impl Cgroup {
    /// Makes one below `parent`. Any failure means that there is none to be had: not our hierarchy, an old kernel.
    pub(super) fn create_below(parent: &Path, marker: &str, sitter: i32) -> io::Result<Cgroup> {
        let path = parent.join(format!("{}{sitter}", group_prefix(marker)));
        match fs::create_dir(&path) {
            Ok(()) => {}
            // A sitter with our id and marker died here before us: what it left is the same run's, and has no owner.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let _ = empty_group(&path); // if that fails, so does the next line
                fs::create_dir(&path)?;
            }
            Err(error) => return Err(error),
        }
        let folder = File::open(&path).and_then(|folder| {
            // Without this file (before Linux 5.14) a group would contain but not kill; then we rather do without.
            fs::metadata(path.join("cgroup.kill"))?;
            Ok(folder)
        });
        match folder {
            Ok(folder) => {
                limit_processes(parent, &path);
                Ok(Cgroup { path, folder })
            }
            Err(error) => {
                let _ = fs::remove_dir(&path); // nothing was in it
                Err(error)
            }
        }
    }

    /// Whether it bounds the number of processes.
    pub(super) fn limits_processes(&self) -> bool {
        self.path.join("pids.max").exists()
    }

    /// Where a new process is born into it.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Where a running process moves itself into it.
    pub(super) fn open_procs(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))
    }

    /// Kills all that is in it, and all that those are about to fork.
    pub(super) fn kill_all(&self) -> io::Result<()> {
        kill_group(&self.path)
    }

    /// Removes it. The processes are gone by now, but the kernel may need a moment to count them out.
    pub(super) fn remove(self) {
        let _ = remove_group(&self.path); // it stays behind empty; `sweep` looks again
    }
}

/// Limits the processes of a run, where the hierarchy counts them. Without that the limit of the user remains.
fn limit_processes(parent: &Path, path: &Path) {
    let limit = path.join("pids.max");
    if limit.exists() {
        let _ = fs::write(limit, processes_max(outer_limit(parent)).to_string()); // as good as no such file
    }
}

/// The lowest limit of a group and of those around it.
fn outer_limit(group: &Path) -> Option<u64> {
    let limits = group.ancestors().map_while(|group| {
        group.join("cgroup.procs").exists().then(|| fs::read_to_string(group.join("pids.max")).ok())
    });
    limits.flatten().filter_map(|limit| limit.trim().parse().ok()).min()
}

/// How many processes one run may have, by the limit of the groups around it: the engine and the other runs need theirs.
fn processes_max(outer: Option<u64>) -> u64 {
    const MOST: u64 = 32_768;
    const LEAST: u64 = 16; // less is no agent
    outer.map_or(MOST, |outer| outer / 2).clamp(LEAST, MOST)
}

/// Finds the groups that sitters with this marker left behind, kills what is in them and removes them. Returns how many
/// processes there were.
pub(super) fn sweep_groups(marker: &str) -> u32 {
    // The dead sitter was started from another session perhaps, so from another group: look through all of them.
    let top = |own: PathBuf| {
        let above = own.ancestors().take_while(|path| path.join("cgroup.procs").exists());
        above.last().map(Path::to_owned)
    };
    let mut count = 0;
    let mut folders: Vec<PathBuf> =
        [own_cgroup(), own_pids()].into_iter().flatten().filter_map(top).collect();
    let prefix = group_prefix(marker);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
            if is_ours {
                count += empty_group(&entry.path()).unwrap_or(0);
            } else {
                folders.push(entry.path());
            }
        }
    }
    count
}

/// Kills all that is in a group, removes it, and says how many processes that were.
fn empty_group(path: &Path) -> io::Result<u32> {
    let procs = fs::read_to_string(path.join("cgroup.procs"))?;
    let count = u32::try_from(procs.lines().count()).unwrap_or(u32::MAX);
    kill_group(path)?;
    remove_group(path)?;
    Ok(count)
}

fn kill_group(path: &Path) -> io::Result<()> {
    use std::io::Write as _;
    // Not made if it is not there: version 1 has none.
    match OpenOptions::new().write(true).open(path.join("cgroup.kill")) {
        Ok(mut file) => file.write_all(b"1"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => kill_each(path),
        Err(error) => Err(error),
    }
}

/// Kills what is in a group of version 1, one after the other, until nobody new is in it.
fn kill_each(path: &Path) -> io::Result<()> {
    const ROUNDS_MAX: u32 = 1_000; // a group is bounded, so whoever forks meanwhile fails before long
    for _ in 0..ROUNDS_MAX {
        let inside = fs::read_to_string(path.join("cgroup.procs"))?;
        let pids: Vec<i32> = inside.lines().filter_map(|pid| pid.parse().ok()).collect();
        for pid in pids.iter().filter_map(|pid| rustix::process::Pid::from_raw(*pid)) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok(); // gone already
        }
        if pids.is_empty() {
            break;
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn remove_group(path: &Path) -> io::Result<()> {
    const SPAN: Duration = Duration::from_millis(500); // in practice the first or second try does it
    let mut last = Ok(());
    let removed = retry_until(SPAN, Duration::from_millis(1), || match fs::remove_dir(path) {
        Ok(()) => Some(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(()),
        Err(error) => {
            remove_below(path);
            last = Err(error);
            None
        }
    });
    removed.map_or(last, Ok)
}

/// A child that was root may have made groups of its own inside ours.
fn remove_below(path: &Path) {
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_below(&entry.path());
        let _ = fs::remove_dir(entry.path()); // tried again with the group around it
    }
}

/// What the groups of one marker are called, up to the sitter's id.
fn group_prefix(marker: &str) -> String {
    format!("{}.", super::identity::run_name(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_have_half_of_the_processes_of_the_group_around_it() {
        for (outer, expected) in
            [(None, 32_768), (Some(1000), 500), (Some(10), 16), (Some(9_999_999), 32_768)]
        {
            assert_eq!(processes_max(outer), expected, "{outer:?}");
        }
    }

    #[test]
    fn the_lowest_limit_of_all_groups_around_a_run_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).expect("ours");
        for (group, limit) in [("", None), ("a", Some("40\n")), ("a/b", Some("max\n"))] {
            let group = folder.path().join(group);
            fs::write(group.join("cgroup.procs"), "").expect("ours");
            if let Some(limit) = limit {
                fs::write(group.join("pids.max"), limit).expect("ours");
            }
        }
        assert_eq!(outer_limit(&inner), Some(40));
        assert_eq!(outer_limit(folder.path()), None);
    }

    #[test]
    fn the_group_that_counts_processes_is_found_in_version_1() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      33 24 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = pids_in(mounts, "8:pids:/user/a\n4:memory:/b\n0::/\n");
        assert_eq!(found, Some("/sys/fs/cgroup/pids/user/a".into()));
        assert_eq!(pids_in(mounts, "0::/\n"), None);
    }

    #[test]
    fn our_group_is_found_in_every_kind_of_mount() {
        let unified = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            own_in(unified, "0::/user.slice/a.scope\n"),
            Some("/sys/fs/cgroup/user.slice/a.scope".into())
        );
        let hybrid = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_in(hybrid, "2:cpu:/x\n0::/\n"), Some("/sys/fs/cgroup/unified/".into()));
        let part = "31 24 0:27 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_in(part, "0::/docker/c1/x\n"), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(own_in(part, "0::/elsewhere\n"), None);
        assert_eq!(own_in("", "0::/\n"), None);
        assert_eq!(own_in(unified, "2:cpu:/x\n"), None);
    }

    #[test]
    fn the_groups_of_other_runs_are_known_and_our_own_is_not_one() {
        let (run, other) = (format!("{}7", group_prefix("T1")), format!("{}8", group_prefix("T2")));
        let check = |own: &str, theirs: &str, expected: bool| {
            assert_eq!(is_of_run(own, theirs), expected, "{theirs} as seen from {own}");
        };
        check("/", "/", false);
        check("/a/b", "/a", false);
        check("/", &format!("/{run}"), true);
        check("/user/a", &format!("/user/b/{run}"), true);
        check("/", &format!("/{run}/made/by/the/agent"), true);
        check(&format!("/{run}"), &format!("/{run}"), false); // an engine inside an agent
        check(&format!("/{run}"), &format!("/{run}/{other}"), true);
        check(&format!("/{run}"), &format!("/{other}"), true);
        for name in [
            "landfall",
            "landfall.service",
            "landfall.0123456789abcdef.",
            "landfall.0123456789abcdef.x",
            "landfall.0123.7",
        ] {
            check("/", &format!("/{name}"), false);
        }
    }

    #[test]
    fn markers_get_names_that_are_folder_names_and_differ() {
        assert_ne!(group_prefix("T1"), group_prefix("T1.2"));
        assert!(!group_prefix("../../etc").contains('/'));
    }
}
