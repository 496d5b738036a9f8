//! How hard a run is at work, told by the kernel and not by what it prints.

use super::sitting::SitterProcess;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Signs of life of a run's processes. Only growth means something: a build that is silent grows, a hung agent does not.
/// A sum can also shrink, when a process ends that nobody waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessActivity {
    /// CPU time, in the kernel's ticks (a hundredth of a second on almost every machine).
    pub cpu_ticks: u64,
    /// Bytes that went through reads and writes: of files and pipes, and of sockets if the program treats them as files
    /// (Node does; Rust and Bun do not).
    pub io_bytes: u64,
    /// Of the CPU time, that of commands: processes outside of the program's own session, and those it has waited for.
    /// Every agent we know gives each command a session, and keeps its own helpers in its own.
    pub command_ticks: u64,
    /// Of the bytes, those of commands.
    pub command_bytes: u64,
    /// Processes besides the program itself: commands it runs.
    pub processes: u32,
    /// The TCP connections of all its processes; none if that could not be found out.
    pub connections: Option<Vec<TcpConnection>>,
}

/// A TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    /// The kernel's name for it, which no other ever has.
    pub cookie: u64,
    /// Bytes received so far.
    pub received: u64,
}

/// The signs of life of the processes of this run that are alive, and of those they have waited for.
pub fn measure_activity(sitting: &SitterProcess) -> ProcessActivity {
    measure_activities(std::slice::from_ref(sitting)).pop().unwrap_or_default()
}

/// The same for many runs. Only their own processes are looked at, where the kernel tells who they are; else there is one
/// look at the whole machine for all of them.
pub fn measure_activities(sittings: &[SitterProcess]) -> Vec<ProcessActivity> {
    if sittings.is_empty() {
        return Vec::new(); // a look at a busy machine takes tens of milliseconds
    }
    let open = open_connections();
    if tells_children() {
        let of = |sitting: &SitterProcess| of_tree(sitting.pid, &processes_below(sitting.pid), open.as_ref());
        return sittings.iter().map(of).collect();
    }
    let mut children: HashMap<i32, Vec<TreeProcess>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((parent, member)) = parse_stat(pid, &stat) else { continue };
        children.entry(parent).or_default().push(member);
    }
    sittings.iter().map(|sitting| of_tree(sitting.pid, &children, open.as_ref())).collect()
}

/// A process of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeProcess {
    pid: i32,
    session: i32,
    /// CPU time of its own, and of children it has waited for.
    own_ticks: u64,
    waited_ticks: u64,
}

#[cfg(target_os = "linux")]
fn open_connections() -> Option<HashMap<u64, TcpConnection>> {
    super::connections::list_connections().ok() // a kernel without it: nothing is known then
}

#[cfg(not(target_os = "linux"))]
fn open_connections() -> Option<HashMap<u64, TcpConnection>> {
    None
}

/// Those of a process; none if it is not ours to know.
#[cfg(target_os = "linux")]
fn connections_of(pid: i32, open: &HashMap<u64, TcpConnection>) -> Option<Vec<TcpConnection>> {
    match super::connections::sockets_of(pid) {
        Ok(inodes) => Some(inodes.iter().filter_map(|inode| open.get(inode).copied()).collect()),
        // It has ended as we looked.
        Err(_) if !Path::new(&format!("/proc/{pid}/exe")).is_symlink() => Some(Vec::new()),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn connections_of(_pid: i32, _open: &HashMap<u64, TcpConnection>) -> Option<Vec<TcpConnection>> {
    None
}

/// Whether this kernel lists the children of a process.
fn tells_children() -> bool {
    static TELLS: LazyLock<bool> = LazyLock::new(|| {
        let own = std::process::id();
        Path::new(&format!("/proc/{own}/task/{own}/children")).exists()
    });
    *TELLS
}

/// The processes below a sitter, by parent. The list may leave out one whose neighbour ends as we look: for signs of life that
/// does not matter, the next look sees it.
fn processes_below(sitter: i32) -> HashMap<i32, Vec<TreeProcess>> {
    const TREE_MAX: usize = 4_096; // more processes than any build starts; one that forks without end is not followed
    let mut children: HashMap<i32, Vec<TreeProcess>> = HashMap::new();
    let (mut open, mut count) = (vec![sitter], 0);
    while let Some(pid) = open.pop() {
        for child in children_of(pid) {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok();
            // Its number may be another's by now: then it has another parent.
            let known = stat.as_deref().and_then(|stat| parse_stat(child, stat));
            let Some((_, member)) = known.filter(|(parent, _)| *parent == pid) else { continue };
            children.entry(pid).or_default().push(member);
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

/// CPU time used by the processes of this run, see [`ProcessActivity::cpu_ticks`].
pub fn cpu_ticks(sitting: &SitterProcess) -> u64 {
    measure_activity(sitting).cpu_ticks
}

fn of_tree(
    sitter: i32,
    children: &HashMap<i32, Vec<TreeProcess>>,
    open: Option<&HashMap<u64, TcpConnection>>,
) -> ProcessActivity {
    let mut sum = ProcessActivity { connections: open.map(|_| Vec::new()), ..ProcessActivity::default() };
    let program = children.get(&sitter).and_then(|children| children.first()).map(|first| first.session);
    let mut next = vec![sitter];
    let mut count = 0u32;
    while let Some(pid) = next.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            let bytes = io_bytes(child.pid);
            let is_command = Some(child.session) != program;
            sum.cpu_ticks += child.own_ticks + child.waited_ticks;
            sum.io_bytes += bytes;
            sum.command_ticks += child.waited_ticks + if is_command { child.own_ticks } else { 0 };
            sum.command_bytes += if is_command { bytes } else { 0 };
            sum.connections = sum.connections.zip(open).and_then(|(mut sum, open)| {
                sum.extend(connections_of(child.pid, open)?);
                Some(sum)
            });
            count += 1;
            next.push(child.pid);
        }
    }
    sum.processes = count.saturating_sub(1);
    sum
}

/// The parent, and what is known of the process itself.
fn parse_stat(pid: i32, stat: &str) -> Option<(i32, TreeProcess)> {
    // The name in parentheses may hold anything, so fields are counted from the last one.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |from: usize| -> Option<u64> {
        Some(fields.get(from..from + 2)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    let session = fields.get(3)?.parse().ok()?;
    let member = TreeProcess { pid, session, own_ticks: ticks(11)?, waited_ticks: ticks(13)? };
    Some((fields.get(1)?.parse().ok()?, member))
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
        let stat = "42 (a) b (c) S 7 1 5 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        let member = TreeProcess { pid: 42, session: 5, own_ticks: 30, waited_ticks: 70 };
        assert_eq!(parse_stat(42, stat), Some((7, member)));
        assert_eq!(parse_stat(42, "nonsense"), None);
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
            assert!(processes_below(own)[&own].iter().any(|it| it.pid == pid));
            assert_eq!(processes_below(own).get(&pid).map(Vec::len), Some(2));
            assert_eq!(
                of_tree(pid, &processes_below(pid), None).processes,
                1,
                "two, the first of which is the program"
            );
        }
        let group = rustix::process::Pid::from_raw(pid).expect("it runs");
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("ours");
        child.wait().expect("ours");
        assert_eq!(processes_below(pid).len(), 0);
    }

    #[test]
    fn bytes_are_those_read_and_those_written() {
        let text = "rchar: 100\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n";
        assert_eq!(sum_io(text), 120);
        assert_eq!(sum_io(""), 0);
    }

    #[test]
    fn a_tree_is_summed_without_its_sitter_and_counted_without_its_first() {
        // Numbers that no process has, so that nothing is read of them.
        let member = |down: i32, session, own_ticks, waited_ticks| TreeProcess {
            pid: i32::MAX - down,
            session,
            own_ticks,
            waited_ticks,
        };
        let tree = HashMap::from([
            (i32::MAX - 1, vec![member(2, 7, 3, 100)]),
            (i32::MAX - 2, vec![member(3, 7, 4, 0), member(4, 8, 5, 1)]),
        ]);
        let sum = of_tree(i32::MAX - 1, &tree, None);
        // The helper in the program's own session is no command; what the program waited for was one.
        let expected = ProcessActivity {
            cpu_ticks: 113,
            command_ticks: 106,
            processes: 2,
            ..ProcessActivity::default()
        };
        assert_eq!(sum, expected);
        assert_eq!(of_tree(i32::MAX - 9, &tree, None), ProcessActivity::default());
    }
}
