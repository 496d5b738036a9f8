//! Which lines differ between two texts.

use std::collections::BTreeSet;

/// A line that is in one of two texts only, by its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineChange {
    Removed(usize),
    Added(usize),
}

const CELLS_MAX: usize = 250_000; // of the table; a larger difference is taken as a whole

/// The lines of both that are not in common, in order.
pub(super) fn diff_lines<L: PartialEq>(old_lines: &[L], new_lines: &[L]) -> Vec<LineChange> {
    // What both begin and end with is the same; in between is the change.
    let pairs = old_lines.iter().zip(new_lines);
    let begin = pairs.take_while(|(old, new)| old == new).count();
    let most = old_lines.len().min(new_lines.len()) - begin;
    let pairs = old_lines.iter().rev().zip(new_lines.iter().rev());
    let same_end = pairs.take(most).take_while(|(old, new)| old == new).count();
    let removed = &old_lines[begin..old_lines.len() - same_end];
    let added = &new_lines[begin..new_lines.len() - same_end];
    let width = added.len() + 1;
    let mut changes = Vec::new();
    let (mut old, mut new) = (0, 0);
    if (removed.len() + 1) * width <= CELLS_MAX {
        // How many lines are in common from here on: the usual table of the longest common subsequence.
        let mut common = vec![0usize; (removed.len() + 1) * width];
        for at in (0..removed.len()).rev() {
            for place in (0..added.len()).rev() {
                common[at * width + place] = match removed[at] == added[place] {
                    true => common[(at + 1) * width + place + 1] + 1,
                    false => common[(at + 1) * width + place].max(common[at * width + place + 1]),
                };
            }
        }
        while old < removed.len() && new < added.len() {
            if removed[old] == added[new] {
                (old, new) = (old + 1, new + 1);
            } else if common[(old + 1) * width + new] >= common[old * width + new + 1] {
                changes.push(LineChange::Removed(begin + old));
                old += 1;
            } else {
                changes.push(LineChange::Added(begin + new));
                new += 1;
            }
        }
    }
    changes.extend((old..removed.len()).map(|at| LineChange::Removed(begin + at)));
    changes.extend((new..added.len()).map(|at| LineChange::Added(begin + at)));
    changes
}

/// The places of the lines that only the new text has.
pub(super) fn added_lines(before: &str, after: &str) -> BTreeSet<usize> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let added = diff_lines(&old, &new).into_iter().filter_map(|change| match change {
        LineChange::Added(at) => Some(at),
        LineChange::Removed(_) => None,
    });
    added.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_are_found_between_common_ones() {
        let check = |before: &str, after: &str, expected: &[usize]| {
            let found: Vec<usize> = added_lines(before, after).into_iter().collect();
            assert_eq!(found, expected, "{before:?} {after:?}");
        };
        check("a\nb\nc", "a\nx\nb\nc\ny", &[1, 4]);
        check("", "a\nb", &[0, 1]);
        check("a\nb", "a\nb", &[]);
        check("a\na\nb", "a\nb", &[]);
        check("a\nb", "b\na", &[1]);
    }
}
