//! Memory: how much can still be had, and whether the kernel has ended processes to free some.

use std::fs;
use std::path::{Path, PathBuf};

/// Processes that the kernel's OOM killer has ended since the machine started, in control groups too. None where the kernel
/// does not count them.
#[must_use]
pub fn oom_kills() -> Option<u64> {
    kills_in(Path::new("/proc/vmstat"))
}

/// Counts the processes of this control group, and of those in it, that the kernel ends for lack of memory. Where no group is
/// counted, those of the whole machine.
#[derive(Debug)]
pub struct OomCounter {
    file: PathBuf,
    before: u64,
}

impl OomCounter {
    /// Begins to count. None where the kernel does not.
    #[must_use]
    pub fn start_counting() -> Option<OomCounter> {
        let of_group = memory_groups().into_iter().next().map(|group| {
            let files = ["memory.events", "memory.oom_control"]; // of version 2 and of version 1
            files.map(|file| group.join(file))
        });
        let machine = PathBuf::from("/proc/vmstat");
        of_group.into_iter().flatten().chain([machine]).find_map(Self::of_file)
    }

    fn of_file(file: PathBuf) -> Option<OomCounter> {
        let before = kills_in(&file)?;
        Some(OomCounter { file, before })
    }

    /// How many there were since then.
    #[must_use]
    pub fn count_kills(&self) -> u64 {
        kills_in(&self.file).unwrap_or(self.before).saturating_sub(self.before)
    }
}

fn kills_in(file: &Path) -> Option<u64> {
    parse_field(&fs::read_to_string(file).ok()?, "oom_kill")
}

/// Bytes that can be had before something must be ended: of the machine, and of every control group around this process.
/// None if none of them can be read.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    let of_machine = || {
        let kib = parse_field(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
        kib.checked_mul(1024)
    };
    of_machine().into_iter().chain(memory_groups().iter().filter_map(|group| available_in_group(group))).min()
}

/// The control groups that may limit the memory of this process, the innermost first.
fn memory_groups() -> Vec<PathBuf> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    groups_in(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

fn groups_in(mounts: &str, own: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((mount, source)) = line.split_once(" - ") else { continue };
        let mut source = source.split(' ');
        let (kind, options) = (source.next().unwrap_or_default(), source.nth(1).unwrap_or_default());
        let group = match kind {
            "cgroup2" => own.lines().find_map(|line| line.strip_prefix("0::")),
            "cgroup" if options.split(',').any(|option| option == "memory") => own.lines().find_map(|line| {
                let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|name| name == "memory").then_some(group)
            }),
            _ => None,
        };
        let mut fields = mount.split(' ').skip(3);
        let (Some(group), Some(root), Some(point)) = (group, fields.next(), fields.next()) else { continue };
        // In a container only a part of the hierarchy may be mounted; our group is then named from the real root.
        let Ok(below) = Path::new(group).strip_prefix(root) else { continue };
        let (point, group) = (Path::new(point), Path::new(point).join(below));
        found.extend(group.ancestors().take_while(|above| above.starts_with(point)).map(Path::to_owned));
    }
    found
}

/// What is left in a group below its limit. What the kernel keeps of files can be had as well.
fn available_in_group(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?), // version 1
    };
    let stat = read("memory.stat").unwrap_or_default();
    let of_files = ["total_inactive_file", "inactive_file"].iter().find_map(|name| parse_field(&stat, name));
    Some(limit.saturating_sub(used.saturating_sub(of_files.unwrap_or(0))))
}

/// The number behind a name at the beginning of a line.
fn parse_field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_around_a_process_is_found_in_both_versions() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let v2 = "31 24 0:27 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
        let expected = ["/sys/fs/cgroup/user/a", "/sys/fs/cgroup/user", "/sys/fs/cgroup"];
        assert_eq!(groups_in(v2, "0::/user/a\n"), paths(&expected));
        let v1 = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                  31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let own = "4:memory:/a\n1:cpu:/b\n0::/\n";
        assert_eq!(groups_in(v1, own), paths(&["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]));
        let part = "31 24 0:27 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(groups_in(part, "0::/docker/c1\n"), paths(&["/sys/fs/cgroup/"]));
        assert_eq!(groups_in(part, "0::/elsewhere\n"), paths(&[]));
    }

    #[test]
    fn processes_that_are_ended_are_counted_from_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("memory.oom_control");
        assert!(OomCounter::of_file(file.clone()).is_none());
        let write = |kills: u32| {
            fs::write(&file, format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")).expect("ours");
        };
        write(3);
        let counter = OomCounter::of_file(file.clone()).expect("it counts");
        assert_eq!(counter.count_kills(), 0);
        write(5);
        assert_eq!(counter.count_kills(), 2);
        fs::remove_file(&file).expect("ours");
        assert_eq!(counter.count_kills(), 0, "the group is gone");
    }

    #[test]
    fn the_room_in_a_group_counts_what_is_kept_of_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("ours");
        assert_eq!(available_in_group(folder.path()), None);
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "900\n");
        assert_eq!(available_in_group(folder.path()), Some(100));
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
        assert_eq!(available_in_group(folder.path()), Some(400));
        write("memory.max", "2000\n");
        write("memory.current", "2500\n");
        assert_eq!(available_in_group(folder.path()), Some(0));
        write("memory.max", "max\n");
        assert_eq!(available_in_group(folder.path()), Some(400), "no limit in this version");
    }
}
