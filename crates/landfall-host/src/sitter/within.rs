//! Whose child a process is: for a service that must not be used by the agents it serves.

use super::identity::Stat;
use super::sitting::Sitting;
use std::collections::HashSet;

/// Whether the process `pid` belongs to the tree of one of these sitters, or is one of them. None if there is no such
/// process, or its line is cut by one that ends as we look: then nothing can be said, and nothing should be allowed.
///
/// No process gets out of its tree: whoever loses its parent becomes the sitter's own child.
pub fn is_within(sittings: &[Sitting], pid: i32) -> Option<bool> {
    let sitters: HashSet<(i32, u64)> = sittings.iter().map(|it| (it.pid, it.started)).collect();
    let mut seen = HashSet::new();
    let mut next = pid;
    while next > 0 && seen.insert(next) {
        let stat = Stat::of(next)?;
        if sitters.contains(&(stat.pid, stat.started)) {
            return Some(true);
        }
        next = stat.parent;
    }
    Some(false)
}
