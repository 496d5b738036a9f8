//! Walking the machine's processes: who descends from whom.

use super::identity::{self, ProcessStat};
use rustix::process::Signal;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

/// Everything that runs, as the kernel lists it: by rising id. What ends while we look is left out. What cannot be
/// looked at is an error: a caller that hunts processes must not take it for gone.
pub(super) fn list_processes() -> io::Result<impl Iterator<Item = io::Result<ProcessStat>>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        ProcessStat::read_process(pid).transpose()
    }))
}

/// All living processes below `roots`, the roots left out. A parent is only believed if it is in the same look, so an id
/// that was used again does not lead to a stranger's children.
pub(super) fn find_descendants(all: &[ProcessStat], roots: &[i32]) -> Vec<ProcessStat> {
    let mut below: HashMap<i32, Vec<&ProcessStat>> = HashMap::new();
    for stat in all {
        below.entry(stat.parent).or_default().push(stat);
    }
    let mut seen: HashSet<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    let mut open = roots.to_vec();
    while let Some(parent) = open.pop() {
        for stat in below.get(&parent).into_iter().flatten().filter(|stat| seen.insert(stat.pid)) {
            open.push(stat.pid);
            if !stat.is_dead() {
                found.push(**stat);
            }
        }
    }
    found
}

/// Asks every descendant of `root` to end; a stopped one is woken so that it can hear it.
pub(super) fn ask_descendants_to_end(root: i32) -> io::Result<()> {
    let all: Vec<ProcessStat> = list_processes()?.collect::<io::Result<_>>()?;
    for stat in find_descendants(&all, &[root]) {
        identity::signal_process(stat.pid, stat.started, Signal::TERM);
        identity::signal_process(stat.pid, stat.started, Signal::CONT);
    }
    Ok(())
}

/// A hunt for everything below one process, against things that multiply while they are hunted.
///
/// First all are stopped, again and again until a look shows nobody new: what is stopped cannot fork. Then all are
/// killed. A direct child of ours, and every orphan becomes one, is stopped the moment it is seen and not after the
/// look, so that a chain of short-lived processes is caught between two links.
pub(super) struct ProcessTreeKiller {
    root: i32,
    stopped: HashSet<(i32, u64)>,
    rounds: u32,
}

impl ProcessTreeKiller {
    pub(super) fn new(root: i32) -> ProcessTreeKiller {
        ProcessTreeKiller { root, stopped: HashSet::new(), rounds: 0 }
    }

    /// One round; returns how many are still there.
    pub(super) fn run_round(&mut self) -> io::Result<usize> {
        const STOP_ROUNDS: u32 = 32; // whoever is still multiplying after that is killed as far as seen, and hunted on
        let mut fresh = false;
        let mut stop = |stat: &ProcessStat| {
            if self.stopped.insert((stat.pid, stat.started)) {
                fresh = true;
                identity::signal_process(stat.pid, stat.started, Signal::STOP);
            }
        };
        let root = self.root;
        let all: Vec<ProcessStat> = list_processes()?
            .inspect(|seen| {
                if let Ok(stat) = seen
                    && stat.parent == root
                    && !stat.is_dead()
                {
                    stop(stat)
                }
            })
            .collect::<io::Result<_>>()?;
        let found = find_descendants(&all, &[root]);
        found.iter().for_each(&mut stop);
        self.rounds += 1;
        if !fresh || self.rounds.is_multiple_of(STOP_ROUNDS) {
            for stat in &found {
                identity::signal_process(stat.pid, stat.started, Signal::KILL);
            }
        }
        Ok(found.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_stat(pid: i32, parent: i32) -> ProcessStat {
        ProcessStat { pid, state: b'S', parent, started: 1 }
    }

    #[test]
    fn descent_goes_through_dead_parents_and_smaller_ids_and_never_upwards() {
        let dead = ProcessStat { state: b'Z', ..make_stat(20, 10) };
        let all = [
            make_stat(1, 0),
            make_stat(5, 20),
            make_stat(10, 1),
            dead,
            make_stat(21, 10),
            make_stat(30, 1),
            make_stat(31, 30),
        ];
        let mut found: Vec<i32> = find_descendants(&all, &[10]).iter().map(|stat| stat.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [5, 21]);
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(find_descendants(&[make_stat(2, 3), make_stat(3, 2)], &[2]).len(), 1);
    }
}
