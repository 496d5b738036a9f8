//! The graph of needs: no edge may close a cycle.

use std::collections::{BTreeMap, BTreeSet};

use crate::TaskId;

/// A cycle that `needs` of `task` would close, as a path that begins and ends with `task`.
#[must_use]
pub fn find_cycle(
    task: TaskId,
    needs: &BTreeSet<TaskId>,
    needs_of: &dyn Fn(TaskId) -> Vec<TaskId>,
) -> Option<Vec<TaskId>> {
    let mut came: BTreeMap<TaskId, TaskId> = BTreeMap::new();
    let mut open: Vec<TaskId> = Vec::new();
    for need in needs {
        if *need == task {
            return Some(vec![task, task]);
        }
        if came.insert(*need, task).is_none() {
            open.push(*need);
        }
    }
    while let Some(at) = open.pop() {
        for next in needs_of(at) {
            if next == task {
                let mut path = vec![task, at];
                let mut back = at;
                while let Some(before) = came.get(&back) {
                    path.push(*before);
                    if *before == task {
                        break;
                    }
                    back = *before;
                }
                path.reverse();
                return Some(path);
            }
            if let std::collections::btree_map::Entry::Vacant(slot) = came.entry(next) {
                slot.insert(at);
                open.push(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::find_cycle;
    use crate::TaskId;

    fn check(edges: &[(u32, u32)], task: u32, needs: &[u32], expect: Option<&str>) {
        let of = |id: TaskId| edges.iter().filter(|e| e.0 == id.0).map(|e| TaskId(e.1)).collect();
        let needs = needs.iter().map(|n| TaskId(*n)).collect();
        let found = find_cycle(TaskId(task), &needs, &of)
            .map(|path| path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → "));
        assert_eq!(found.as_deref(), expect);
    }

    #[test]
    fn an_edge_that_closes_a_cycle_is_found_and_shown() {
        check(&[], 1, &[2], None);
        check(&[], 1, &[1], Some("T1 → T1"));
        check(&[(2, 1)], 1, &[2], Some("T1 → T2 → T1"));
        check(&[(2, 3), (3, 4), (4, 1)], 1, &[2], Some("T1 → T2 → T3 → T4 → T1"));
        check(&[(2, 3), (3, 4)], 1, &[2, 4], None);
    }
}
