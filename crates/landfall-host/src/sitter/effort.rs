//! How hard a run is at work, told by the kernel and not by what it prints.

use super::sitting::Sitting;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Signs of life of a run's processes. Only growth means something: a build that is silent grows, a hung agent does not.
/// A sum can also shrink, when a process ends that nobody waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// CPU time, in the kernel's ticks (a hundredth of a second on almost every machine).
    pub cpu_ticks: u64,
    /// Bytes that went through reads and writes: of files and pipes, and of sockets if the program treats them as files
    /// (Node does; Rust and Bun do not).
    pub io_bytes: u64,
    /// Processes besides the program itself: commands it runs.
    pub processes: u32,
}

/// The signs of life of the processes of this run that are alive, and of those they have waited for.
pub fn pulse(sitting: &Sitting) -> Pulse {
    pulses(std::slice::from_ref(sitting)).first().copied().unwrap_or_default()
}

/// The same for many runs. Only their own processes are looked at, where the kernel tells who they are; else there is one
/// look at the whole machine for all of them.
pub fn pulses(sittings: &[Sitting]) -> Vec<Pulse> {
    if sittings.is_empty() {
        return Vec::new(); // a look at a busy machine takes tens of milliseconds
    }
    if tells_children() {
        return sittings.iter().map(|sitting| of_tree(sitting.pid, &below(sitting.pid))).collect();
    }
    let mut children: HashMap<i32, Vec<(i32, u64)>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((parent, ticks)) = parse(&stat) else { continue };
        children.entry(parent).or_default().push((pid, ticks));
    }
    sittings.iter().map(|sitting| of_tree(sitting.pid, &children)).collect()
}

/// Whether this kernel lists the children of a process.
fn tells_children() -> bool {
    static TELLS: OnceLock<bool> = OnceLock::new();
    *TELLS.get_or_init(|| {
        let own = std::process::id();
        Path::new(&format!("/proc/{own}/task/{own}/children")).exists()
    })
}

/// The processes below a sitter, by parent. The list may leave out one whose neighbour ends as we look: for signs of life that
/// does not matter, the next look sees it.
fn below(sitter: i32) -> HashMap<i32, Vec<(i32, u64)>> {
    const TREE_MAX: usize = 4_096; // more processes than any build starts; one that forks without end is not followed
    let mut children: HashMap<i32, Vec<(i32, u64)>> = HashMap::new();
    let (mut open, mut count) = (vec![sitter], 0);
    while let Some(pid) = open.pop() {
        for child in children_of(pid) {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok();
            // Its number may be another's by now: then it has another parent.
            let Some((_, ticks)) = stat.as_deref().and_then(parse).filter(|(parent, _)| *parent == pid)
            else {
                continue;
            };
            children.entry(pid).or_default().push((child, ticks));
            count += 1;
            if count < TREE_MAX {
                open.push(child);
            }
        }
    }
    children
}

/// The children that the threads of a process have started or adopted.
fn children_of(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

/// CPU time used by the processes of this run, see [`Pulse::cpu_ticks`].
pub fn cpu_ticks(sitting: &Sitting) -> u64 {
    pulse(sitting).cpu_ticks
}

fn of_tree(sitter: i32, children: &HashMap<i32, Vec<(i32, u64)>>) -> Pulse {
    let mut sum = Pulse::default();
    let mut open = vec![sitter];
    let mut count = 0u32;
    while let Some(pid) = open.pop() {
        for (child, ticks) in children.get(&pid).into_iter().flatten() {
            sum.cpu_ticks += ticks;
            sum.io_bytes += io_bytes(*child);
            count += 1;
            open.push(*child);
        }
    }
    sum.processes = count.saturating_sub(1);
    sum
}

/// The parent, and the time used by the process and by children it has waited for.
fn parse(stat: &str) -> Option<(i32, u64)> {
    // The name in parentheses may hold anything, so fields are counted from the last one.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

/// What the process and the children it has waited for read and wrote; 0 if it is not ours to know.
fn io_bytes(pid: i32) -> u64 {
    sum_io(&fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default())
}

fn sum_io(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("rchar: ").or_else(|| line.strip_prefix("wchar: ")))
        .filter_map(|number| number.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        let stat = "42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        assert_eq!(parse(stat), Some((7, 100)));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn a_tree_is_walked_through_grandchildren() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60 & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let mut line = [0];
        child.stdout.take().expect("piped").read_exact(&mut line).expect("both were started");
        let own = i32::try_from(std::process::id()).expect("small");
        let pid = i32::try_from(child.id()).expect("small");
        if tells_children() {
            assert!(below(own)[&own].iter().any(|(it, _)| *it == pid));
            assert_eq!(below(own).get(&pid).map(Vec::len), Some(2));
            assert_eq!(of_tree(pid, &below(pid)).processes, 1, "two, the first of which is the program");
        }
        let group = rustix::process::Pid::from_raw(pid).expect("it runs");
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("ours");
        child.wait().expect("ours");
        assert_eq!(below(pid).len(), 0);
    }

    #[test]
    fn bytes_are_those_read_and_those_written() {
        let text = "rchar: 100\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n";
        assert_eq!(sum_io(text), 120);
        assert_eq!(sum_io(""), 0);
    }

    #[test]
    fn a_tree_is_summed_without_its_sitter_and_counted_without_its_first() {
        let tree = HashMap::from([
            (i32::MAX - 1, vec![(i32::MAX - 2, 3)]),
            (i32::MAX - 2, vec![(i32::MAX - 3, 4), (i32::MAX - 4, 5)]),
        ]);
        assert_eq!(of_tree(i32::MAX - 1, &tree), Pulse { cpu_ticks: 12, io_bytes: 0, processes: 2 });
        assert_eq!(of_tree(i32::MAX - 9, &tree), Pulse::default());
    }
}
