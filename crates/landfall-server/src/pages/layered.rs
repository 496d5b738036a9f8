//! Places for a graph in which everything stands right of what it needs. Small, and the same every time.
//!
//! Each node gets the column after the last it needs; an edge over several columns gets a joint in each. A few sweeps put
//! every column in the order of what it is joined to, so that few edges cross. Then each is put level with its
//! neighbours, as far as there is room.

use std::collections::BTreeMap;

const SWEEPS: usize = 6; // more hardly change anything on graphs that a person can read
const LEVELLINGS: usize = 4;

/// Where everything is. Columns and heights are counted from 0; a height is in units of one node with its gap.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// The column and the height of each node, by its number.
    pub(super) nodes: Vec<(usize, f64)>,
    /// Each edge that could be drawn: its number, and the places it leads through, both ends included.
    pub(super) edges: Vec<(usize, Vec<(usize, f64)>)>,
    /// How many columns there are.
    pub(super) columns: usize,
    /// How much height is needed.
    pub(super) height: f64,
}

/// Finds places for `nodes` nodes with these edges, each from what comes first to what needs it. Edges to nowhere, to
/// themselves, and those that would close a circle are left out.
pub(super) fn layout_graph(nodes: usize, edges: &[(usize, usize)]) -> Layout {
    let column_of = assign_columns(nodes, edges);
    let drawn: Vec<(usize, usize, usize)> = edges
        .iter()
        .enumerate()
        .filter(|(_, (from, to))| *from < nodes && *to < nodes && column_of.get(*from) < column_of.get(*to))
        .map(|(number, (from, to))| (number, *from, *to))
        .collect();
    // Joints come after the nodes, in the order of the edges.
    let mut column: Vec<usize> = column_of.clone();
    let mut chains: Vec<(usize, Vec<usize>)> = Vec::new();
    for (number, from, to) in &drawn {
        let mut chain = vec![*from];
        for place in column_of[*from] + 1..column_of[*to] {
            chain.push(column.len());
            column.push(place);
        }
        chain.push(*to);
        chains.push((*number, chain));
    }
    let many = column.iter().max().map_or(0, |last| last + 1);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); column.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); column.len()];
    for (_, chain) in &chains {
        for pair in chain.windows(2) {
            after[pair[0]].push(pair[1]);
            before[pair[1]].push(pair[0]);
        }
    }
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); many];
    for (each, place) in column.iter().enumerate() {
        order[*place].push(each);
    }
    let mut best = (count_crossings(&order, &after), order.clone());
    for sweep in 0..SWEEPS {
        match sweep % 2 {
            0 => (1..many).for_each(|place| sort_column(&mut order, place, &before)),
            _ => (0..many.saturating_sub(1)).rev().for_each(|place| sort_column(&mut order, place, &after)),
        }
        let crossed = count_crossings(&order, &after);
        if crossed < best.0 {
            best = (crossed, order.clone());
        }
    }
    let level = level_heights(&best.1, &before, &after, column.len());
    let place = |each: usize| (column[each], level[each]);
    Layout {
        nodes: (0..nodes).map(place).collect(),
        edges: chains
            .into_iter()
            .map(|(number, chain)| (number, chain.into_iter().map(place).collect()))
            .collect(),
        columns: many,
        height: level.iter().copied().fold(0.0, f64::max) + if nodes == 0 { 0.0 } else { 1.0 },
    }
}

/// The column of each node: one after the last it needs. What is in a circle, or needs it, gets columns as if the
/// circle were cut where it comes to its first node.
fn assign_columns(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut open: Vec<usize> = vec![0; nodes];
    for (from, to) in edges.iter().filter(|(from, to)| from != to && *from < nodes && *to < nodes) {
        after[*from].push(*to);
        open[*to] += 1;
    }
    let mut column = vec![0; nodes];
    let mut over = vec![false; nodes];
    let mut ready: Vec<usize> = (0..nodes).rev().filter(|each| open[*each] == 0).collect();
    let mut left = 0; // nodes before this one are over
    loop {
        while let Some(each) = ready.pop() {
            over[each] = true;
            for next in &after[each] {
                if over[*next] {
                    continue; // a circle was cut here
                }
                column[*next] = column[*next].max(column[each] + 1);
                open[*next] = open[*next].saturating_sub(1);
                if open[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        while left < nodes && over[left] {
            left += 1;
        }
        match left < nodes {
            true => ready.push(left),
            false => return column,
        }
    }
}

/// Puts a column in the order of the middle of what each is joined to.
fn sort_column(order: &mut [Vec<usize>], column: usize, joined: &[Vec<usize>]) {
    let mut height: BTreeMap<usize, usize> = BTreeMap::new();
    for beside in [column.checked_sub(1), Some(column + 1)].into_iter().flatten() {
        if let Some(nodes) = order.get(beside) {
            height.extend(nodes.iter().enumerate().map(|(place, each)| (*each, place)));
        }
    }
    let middles: BTreeMap<usize, f64> = order[column]
        .iter()
        .enumerate()
        .map(|(place, each)| {
            let heights: Vec<f64> =
                joined[*each].iter().filter_map(|it| height.get(it)).map(|it| count_to_f64(*it)).collect();
            (*each, mean_of(&heights).unwrap_or(count_to_f64(place)))
        })
        .collect();
    order[column].sort_by(|a, b| middles[a].total_cmp(&middles[b]).then(a.cmp(b)));
}

/// How many edges cross.
fn count_crossings(order: &[Vec<usize>], after: &[Vec<usize>]) -> usize {
    let mut crossed = 0;
    for pair in order.windows(2) {
        let height: BTreeMap<usize, usize> =
            pair[1].iter().enumerate().map(|(place, each)| (*each, place)).collect();
        // Edges by where they begin: each crosses those before it that end further down. A tree of counts finds them.
        let mut counts = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for each in &pair[0] {
            let mut ends: Vec<usize> = after[*each].iter().filter_map(|it| height.get(it).copied()).collect();
            ends.sort_unstable();
            for end in &ends {
                let (mut at, mut not_below) = (end + 1, 0);
                while at > 0 {
                    not_below += counts[at];
                    at &= at - 1;
                }
                crossed += seen - not_below;
            }
            for end in ends {
                let mut at = end + 1;
                while at < counts.len() {
                    counts[at] += 1;
                    at += at & at.wrapping_neg();
                }
                seen += 1;
            }
        }
    }
    crossed
}

/// The height of everything: in the order of its column, level with its neighbours as far as there is room.
fn level_heights(order: &[Vec<usize>], before: &[Vec<usize>], after: &[Vec<usize>], many: usize) -> Vec<f64> {
    let mut level = vec![0.0; many];
    for column in order {
        for (place, each) in column.iter().enumerate() {
            level[*each] = count_to_f64(place);
        }
    }
    for pass in 0..LEVELLINGS {
        let joined = if pass % 2 == 0 { before } else { after };
        for column in order {
            let mut wanted: Vec<f64> = Vec::new();
            for each in column {
                let beside: Vec<f64> = joined[*each].iter().map(|it| level[*it]).collect();
                wanted.push(mean_of(&beside).unwrap_or(level[*each]));
            }
            for (each, height) in column.iter().zip(space_out(&wanted)) {
                level[*each] = height;
            }
        }
    }
    let top = level.iter().copied().fold(f64::INFINITY, f64::min);
    level.iter_mut().for_each(|it| *it -= top);
    level
}

/// Heights in the same order, at least one apart, as near to those wanted as can be: neighbours that are too near to each
/// other are moved together, around their middle.
fn space_out(wanted: &[f64]) -> Vec<f64> {
    let mut groups: Vec<(f64, f64)> = Vec::new(); // the sum of what the members want for the first of them, and their number
    for each in wanted {
        let mut group = (*each, 1.0);
        while let Some((sum, many)) = groups.last().copied() {
            if sum / many + many <= group.0 / group.1 {
                break;
            }
            groups.pop();
            group = (sum + group.0 - many * group.1, many + group.1);
        }
        groups.push(group);
    }
    let mut heights = Vec::with_capacity(wanted.len());
    for (sum, many) in groups {
        let mut at = sum / many;
        let mut left = many;
        while left > 0.5 {
            heights.push(at);
            at += 1.0;
            left -= 1.0;
        }
    }
    heights
}

fn mean_of(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count_to_f64(numbers.len()))
}

fn count_to_f64(many: usize) -> f64 {
    u32::try_from(many).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look as if by chance, and are the same every time.
    struct LayoutRng(u64);

    impl LayoutRng {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap_or(0) % sides.max(1)
        }
    }

    fn check(seed: u64, nodes: usize, edges: &[(usize, usize)]) {
        let drawn = layout_graph(nodes, edges);
        assert_eq!(drawn.nodes.len(), nodes, "seed {seed}: everything has a place");
        for (number, path) in &drawn.edges {
            let (from, to) = edges[*number];
            assert_eq!((path[0], path[path.len() - 1]), (drawn.nodes[from], drawn.nodes[to]), "seed {seed}");
            for pair in path.windows(2) {
                assert_eq!(pair[0].0 + 1, pair[1].0, "seed {seed}: an edge leads one column on");
            }
        }
        let mut places: Vec<(usize, f64)> = drawn.nodes.clone();
        let joints = drawn.edges.iter().flat_map(|(_, path)| &path[1..path.len() - 1]);
        places.extend(joints);
        places.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for pair in places.windows(2) {
            let apart = pair[0].0 != pair[1].0 || pair[1].1 - pair[0].1 > 0.99;
            assert!(apart, "seed {seed}: {pair:?} stand on each other");
        }
        for (column, height) in &places {
            assert!(*column < drawn.columns && *height >= -0.001 && *height <= drawn.height, "seed {seed}");
        }
        assert_eq!(drawn, layout_graph(nodes, edges), "seed {seed}: the same again");
    }

    #[test]
    fn everything_stands_right_of_what_it_needs() {
        for seed in 0..300 {
            let mut dice = LayoutRng(seed);
            let nodes = dice.roll(40) + 1;
            let edges: Vec<(usize, usize)> = (0..dice.roll(80))
                .map(|_| (dice.roll(nodes), dice.roll(nodes)))
                .filter(|(from, to)| from < to)
                .collect();
            let drawn = layout_graph(nodes, &edges);
            assert_eq!(drawn.edges.len(), edges.len(), "seed {seed}: without circles every edge is drawn");
            check(seed, nodes, &edges);
        }
    }

    #[test]
    fn circles_and_edges_to_nowhere_do_no_harm() {
        check(0, 0, &[]);
        check(0, 1, &[(0, 0), (0, 7), (9, 0)]);
        check(0, 3, &[(0, 1), (1, 2), (2, 0)]);
        for seed in 0..300 {
            let mut dice = LayoutRng(seed);
            let nodes = dice.roll(25) + 1;
            let edges: Vec<_> =
                (0..dice.roll(60)).map(|_| (dice.roll(nodes + 2), dice.roll(nodes + 2))).collect();
            check(seed, nodes, &edges);
        }
    }

    #[test]
    fn edges_are_untangled() {
        // Three chains that are told crosswise.
        let edges = [(0, 5), (1, 4), (2, 3), (5, 6), (4, 7), (3, 8)];
        let drawn = layout_graph(9, &edges);
        let cross = |a: &Vec<(usize, f64)>, b: &Vec<(usize, f64)>| {
            let same = a[0].0 == b[0].0;
            same && (a[0].1 - b[0].1) * (a[1].1 - b[1].1) < 0.0
        };
        for (at, (_, a)) in drawn.edges.iter().enumerate() {
            for (_, b) in &drawn.edges[at + 1..] {
                assert!(!cross(a, b), "{a:?} crosses {b:?}");
            }
        }
        assert_eq!(drawn.columns, 3);
    }

    #[test]
    fn a_large_graph_is_quick() {
        let mut dice = LayoutRng(7);
        let nodes = 2_000;
        let edges: Vec<_> = (0..4_000)
            .map(|_| (dice.roll(nodes), dice.roll(nodes)))
            .filter(|(from, to)| from < to && to - from < 60)
            .collect();
        let began = std::time::Instant::now();
        let drawn = layout_graph(nodes, &edges);
        assert!(drawn.columns > 1 && began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
