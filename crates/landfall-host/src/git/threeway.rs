//! Three texts, line by line: where two sides of a merge meet, how much of it they dispute, and which of it
//! has only one reading. Pure: no git, no files.
//!
//! git gives up where two changes touch. Here a place is settled if both changes can be kept as they are and
//! only one order is possible, or if one side changed nothing but white space that means nothing. Indentation
//! means something in half of all languages, so it is never settled here.

use std::collections::HashMap;
use std::ops::Range;

/// Texts that differ in more lines than this are one large difference: the search takes the square of it.
const EDITS_MAX: usize = 1_000;

/// What a merge of three texts comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreewayMerge {
    /// How many lines are in dispute: of each such place the larger side.
    pub lines: u32,
    /// The merged text, if every place in dispute has only one reading.
    pub settled: Option<Vec<u8>>,
}

/// Merges two texts that come from a third.
pub(crate) fn merge_texts(base: &[u8], ours: &[u8], theirs: &[u8]) -> ThreewayMerge {
    let (base, ours, theirs) = (split_lines(base), split_lines(ours), split_lines(theirs));
    let mut names = LineInterner::default();
    let (base_ids, ours_ids, theirs_ids) =
        (names.intern_lines(&base), names.intern_lines(&ours), names.intern_lines(&theirs));
    let sides = [
        MergeSide { text: &ours, hunks: find_hunks(&base_ids, &ours_ids) },
        MergeSide { text: &theirs, hunks: find_hunks(&base_ids, &theirs_ids) },
    ];
    let mut merged: Vec<&[u8]> = Vec::new();
    let mut disputed = 0;
    let mut settled = true;
    let mut at = 0;
    for place in find_regions(&sides) {
        merged.extend(&base[at..place.base.start]);
        at = place.base.end;
        let [ours, theirs] = [place.side_lines(&sides[0], 0), place.side_lines(&sides[1], 1)];
        if place.hunks[1].is_empty() || ours == theirs {
            merged.extend(ours);
        } else if place.hunks[0].is_empty() {
            merged.extend(theirs);
        } else {
            disputed += count_disputed_lines(&mut names, ours, theirs);
            match interleave_changes(&place, &sides, &base)
                .or_else(|| merge_white_space(&place, &sides, &base))
            {
                Some(text) => merged.extend(text),
                None => settled = false,
            }
        }
    }
    merged.extend(&base[at..]);
    // A last line without an end must stay the last.
    let glued = merged.iter().rev().skip(1).any(|line| !line.ends_with(b"\n"));
    ThreewayMerge { lines: disputed, settled: (settled && !glued).then(|| merged.concat()) }
}

/// How many lines two texts dispute that come from nothing in common.
pub(crate) fn count_disputed_between(ours: &[u8], theirs: &[u8]) -> u32 {
    count_disputed_lines(&mut LineInterner::default(), &split_lines(ours), &split_lines(theirs))
}

fn count_disputed_lines<'t>(names: &mut LineInterner<'t>, ours: &[&'t [u8]], theirs: &[&'t [u8]]) -> u32 {
    let (ours, theirs) = (names.intern_lines(ours), names.intern_lines(theirs));
    let larger = |hunk: &MergeHunk| hunk.base.len().max(hunk.side.len());
    u32::try_from(find_hunks(&ours, &theirs).iter().map(larger).sum::<usize>()).unwrap_or(u32::MAX)
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Numbers for lines, so that comparing two is comparing two numbers.
#[derive(Default)]
struct LineInterner<'t> {
    known: HashMap<&'t [u8], u32>,
}

impl<'t> LineInterner<'t> {
    fn intern_lines(&mut self, lines: &[&'t [u8]]) -> Vec<u32> {
        let mut name = |line: &&'t [u8]| {
            let next =
                u32::try_from(self.known.len()).expect("fewer lines than bytes, and those are bounded");
            *self.known.entry(*line).or_insert(next)
        };
        lines.iter().map(&mut name).collect()
    }
}

/// One side of a merge: its lines, and where they are not those of the base.
struct MergeSide<'a, 't> {
    text: &'a [&'t [u8]],
    hunks: Vec<MergeHunk>,
}

/// Lines of the base that became other lines; one of the two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MergeHunk {
    base: Range<usize>,
    side: Range<usize>,
}

/// A stretch of the base that is changed without a gap, and the hunks of each side in it.
struct MergeRegion {
    base: Range<usize>,
    hunks: [Range<usize>; 2],
}

impl MergeRegion {
    /// The stretch as a side has it.
    fn side_lines<'a, 't>(&self, side: &MergeSide<'a, 't>, which: usize) -> &'a [&'t [u8]] {
        let hunks = &side.hunks[self.hunks[which].clone()];
        // A side without a hunk here is not asked for its lines.
        let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return &[] };
        let start = first.side.start - (first.base.start - self.base.start);
        let end = last.side.end + (self.base.end - last.base.end);
        &side.text[start..end]
    }
}

/// Hunks that overlap or touch belong to one place, whoever made them.
fn find_regions(sides: &[MergeSide<'_, '_>; 2]) -> Vec<MergeRegion> {
    let mut found: Vec<MergeRegion> = Vec::new();
    let mut next = [0, 0];
    loop {
        let start = |which: usize| sides[which].hunks.get(next[which]).map(|hunk| hunk.base.start);
        let which = match (start(0), start(1)) {
            (None, None) => return found,
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (Some(ours), Some(theirs)) => usize::from(theirs < ours),
        };
        let hunk = &sides[which].hunks[next[which]];
        match found.last_mut() {
            Some(place) if hunk.base.start <= place.base.end => {
                place.base.end = place.base.end.max(hunk.base.end);
                place.hunks[which].end = next[which] + 1;
            }
            _ => {
                let mut hunks = [next[0]..next[0], next[1]..next[1]];
                hunks[which].end += 1;
                found.push(MergeRegion { base: hunk.base.clone(), hunks });
            }
        }
        next[which] += 1;
    }
}

/// Both sides' changes in the order of the base, if none overlaps another and none could stand elsewhere as well.
fn interleave_changes<'t>(
    place: &MergeRegion,
    sides: &[MergeSide<'_, 't>; 2],
    base: &[&'t [u8]],
) -> Option<Vec<&'t [u8]>> {
    let of = |which: usize| sides[which].hunks[place.hunks[which].clone()].iter().map(move |it| (which, it));
    let mut all: Vec<(usize, &MergeHunk)> = of(0).chain(of(1)).collect();
    all.sort_by_key(|(_, hunk)| (hunk.base.start, hunk.base.end));
    let mut text = Vec::new();
    let mut at = place.base.start;
    let mut before: Option<&MergeHunk> = None;
    for (which, hunk) in all {
        let side = sides[which].text;
        // What was put in beside lines that the other side rewrote may belong to the lines that are gone.
        let put_in =
            |it: &&MergeHunk| it.base.end == hunk.base.start && (it.base.is_empty() || hunk.base.is_empty());
        if hunk.base.start < at || before.is_some_and(|it| put_in(&it)) || can_slide(hunk, side, base) {
            return None;
        }
        text.extend(&base[at..hunk.base.start]);
        text.extend(&side[hunk.side.clone()]);
        at = hunk.base.end;
        before = Some(hunk);
    }
    text.extend(&base[at..place.base.end]);
    Some(text)
}

/// Whether the same change could be told with a line more above or below: then nobody knows where it belongs.
fn can_slide(hunk: &MergeHunk, side: &[&[u8]], base: &[&[u8]]) -> bool {
    let moved = match (hunk.base.is_empty(), hunk.side.is_empty()) {
        (true, false) => &side[hunk.side.clone()],
        (false, true) => &base[hunk.base.clone()],
        (true, true) | (false, false) => return false,
    };
    let above = hunk.base.start.checked_sub(1).and_then(|at| base.get(at));
    above == moved.last() || base.get(hunk.base.end) == moved.first()
}

/// The other side's change, if one side changed only white space here; one of them, if that is all they differ in.
fn merge_white_space<'t>(
    place: &MergeRegion,
    sides: &[MergeSide<'_, 't>; 2],
    base: &[&'t [u8]],
) -> Option<Vec<&'t [u8]>> {
    let [ours, theirs] = [place.side_lines(&sides[0], 0), place.side_lines(&sides[1], 1)];
    if same_but_white(ours, theirs) {
        return Some(ours.to_vec());
    }
    let base = &base[place.base.clone()];
    for (which, other) in [(0, 1), (1, 0)] {
        let cosmetic = place.side_lines(&sides[which], which);
        if !same_but_white(cosmetic, base) {
            continue;
        }
        // Line for line as in the base, so the other side's hunks fit it as they fit the base.
        let mut text = Vec::new();
        let mut at = 0;
        for hunk in &sides[other].hunks[place.hunks[other].clone()] {
            text.extend(&cosmetic[at..hunk.base.start - place.base.start]);
            text.extend(&sides[other].text[hunk.side.clone()]);
            at = hunk.base.end - place.base.start;
        }
        text.extend(&cosmetic[at..]);
        return Some(text);
    }
    None
}

fn same_but_white(one: &[&[u8]], other: &[&[u8]]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| normalize_white_space(one) == normalize_white_space(other))
}

/// A line without the white space that means nothing: what stands at its end, and how much stands between two words.
/// Within quotes even that may mean something, so such a line keeps it.
fn normalize_white_space(line: &[u8]) -> Vec<u8> {
    let line = line.trim_ascii_end();
    if line.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`')) {
        return line.to_vec();
    }
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t');
    let indent = line.iter().position(|byte| !is_space(*byte)).unwrap_or(line.len());
    let mut kept = line[..indent].to_vec();
    for byte in &line[indent..] {
        if !is_space(*byte) {
            kept.push(*byte);
        } else if kept.last() != Some(&b' ') {
            kept.push(b' ');
        }
    }
    kept
}

/// Where two texts differ, by the fewest lines taken out and put in (Myers' greedy search).
fn find_hunks(base: &[u32], side: &[u32]) -> Vec<MergeHunk> {
    let head = base.iter().zip(side).take_while(|(one, other)| one == other).count();
    let (base_rest, side_rest) = (&base[head..], &side[head..]);
    let tail =
        base_rest.iter().rev().zip(side_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (base_rest, side_rest) = (&base_rest[..base_rest.len() - tail], &side_rest[..side_rest.len() - tail]);
    if base_rest.is_empty() && side_rest.is_empty() {
        return Vec::new();
    }
    let whole = || vec![(0..base_rest.len(), 0..side_rest.len())];
    let found = if base_rest.is_empty() || side_rest.is_empty() {
        whole()
    } else {
        search_edits(base_rest, side_rest).unwrap_or_else(whole)
    };
    let moved = |range: Range<usize>| range.start + head..range.end + head;
    found.into_iter().map(|(base, side)| MergeHunk { base: moved(base), side: moved(side) }).collect()
}

/// `None` if they differ in too many lines.
fn search_edits(base: &[u32], side: &[u32]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    // `reach[k]` is how far into the base one can come on diagonal `k - middle` with so many edits.
    let edits_max = (base.len() + side.len()).min(EDITS_MAX);
    let middle = edits_max + 1;
    let mut reach = vec![0_usize; 2 * middle + 1];
    let mut history: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=edits_max {
        history.push(reach[middle - edits..=middle + edits].to_vec());
        for diagonal in (middle - edits..=middle + edits).step_by(2) {
            let mut x = furthest_reach(&reach, diagonal, middle, edits);
            let Some(mut y) = (x + middle).checked_sub(diagonal) else { continue };
            while x < base.len() && y < side.len() && base[x] == side[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[diagonal] = x;
            if x >= base.len() && y >= side.len() {
                return Some(trace_edits_back(&history, edits, base.len(), side.len(), middle));
            }
        }
    }
    None
}

/// How far one comes on a diagonal before the lines that agree: from the diagonal below or above, whichever is further.
fn furthest_reach(reach: &[usize], diagonal: usize, middle: usize, edits: usize) -> usize {
    if edits == 0 {
        return 0;
    }
    let down = diagonal == middle - edits
        || (diagonal != middle + edits && reach[diagonal - 1] < reach[diagonal + 1]);
    if down { reach[diagonal + 1] } else { reach[diagonal - 1] + 1 }
}

fn trace_edits_back(
    history: &[Vec<usize>],
    edits: usize,
    base_len: usize,
    side_len: usize,
    middle: usize,
) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let (mut x, mut y) = (base_len, side_len);
    for edits in (1..=edits).rev() {
        // What was reached before this edit, on the diagonals that it could come from.
        let reach = |diagonal: usize| history[edits][diagonal + edits - middle];
        let diagonal = x + middle - y;
        let down = diagonal == middle - edits
            || (diagonal != middle + edits && reach(diagonal - 1) < reach(diagonal + 1));
        let from = if down { diagonal + 1 } else { diagonal - 1 };
        let (from_x, from_y) = (reach(from), reach(from) + middle - from);
        let (base, side) =
            if down { (from_x..from_x, from_y..from_y + 1) } else { (from_x..from_x + 1, from_y..from_y) };
        match found.last_mut() {
            Some((later_base, later_side))
                if later_base.start == base.end && later_side.start == side.end =>
            {
                later_base.start = base.start;
                later_side.start = side.start;
            }
            _ => found.push((base, side)),
        }
        (x, y) = (from_x, from_y);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::{LineInterner, find_hunks, merge_texts, split_lines};

    fn assert_merge(base: &str, ours: &str, theirs: &str, expected: Result<&str, u32>) {
        let found = merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        let found = found.settled.map(|text| String::from_utf8(text).expect("text")).ok_or(found.lines);
        assert_eq!(found.as_deref().map_err(|lines| *lines), expected, "{base:?} {ours:?} {theirs:?}");
        let back = merge_texts(base.as_bytes(), theirs.as_bytes(), ours.as_bytes());
        assert_eq!(back.settled.is_some(), expected.is_ok(), "the other way round");
    }

    #[test]
    fn changes_that_touch_are_both_kept_in_order() {
        assert_merge("a\nb\n", "A\nb\n", "a\nB\n", Ok("A\nB\n"));
        assert_merge("a\nb\nc\n", "a\nc\n", "a\nb\nC\n", Ok("a\nC\n"));
        assert_merge("a\nb\nc\nd\n", "A\nb\nC\nd\n", "a\nB\nc\nD\n", Ok("A\nB\nC\nD\n"));
        assert_merge("p\na", "P\na", "p\na\nb", Ok("P\na\nb"));
    }

    #[test]
    fn what_is_put_in_beside_lines_that_were_rewritten_stays_in_dispute() {
        assert_merge("a\nb\n", "a\nnew\nb\n", "a\nB\n", Err(2));
        assert_merge("a\nb\n", "a\nb\nnew\n", "a\nB\n", Err(2));
        assert_merge("1\n", "1\n2\n3\n", "101\n102\n", Err(3));
    }

    #[test]
    fn changes_that_overlap_or_have_two_orders_stay_in_dispute() {
        assert_merge("a\n", "b\n", "c\n", Err(1));
        assert_merge("a\n", "a\nours\n", "a\ntheirs\n", Err(1));
        assert_merge("a\nb\nc\n", "a\nx\nb\nc\n", "c\n", Err(3));
        assert_merge("a\nb\nc\n", "1\n2\n3\n4\nc\n", "x\nb\nc\n", Err(4));
        assert_merge("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "1\nb\nc\nd\n5\n6\n", Err(3));
        // Where among the equal lines was it put? Nobody can tell.
        assert_merge("x\n}\n", "x\n}\ny\n}\n", "x\n)\n", Err(3));
        assert_merge("", "ours\n", "theirs\n", Err(1));
    }

    #[test]
    fn white_space_that_means_nothing_gives_way_and_indentation_does_not() {
        assert_merge("a\nb\n", "a  \nb\r\n", "A\nb\n", Ok("A\nb\r\n"));
        assert_merge("let x = 1;\n", "let  x  = 1;\n", "let x = 2;\n", Ok("let x = 2;\n"));
        assert_merge("x\n", "y \n", "y\n", Ok("y \n"));
        assert_merge("last", "last\n", "LAST", Ok("LAST"));
        assert_merge("say('a b')\n", "say('a  b')\n", "say(\"a b\")\n", Err(1));
        assert_merge("if x:\n  a\n  b\n", "if x:\n    a\n    b\n", "if x:\n  a\n  B\n", Err(2));
    }

    #[test]
    fn equal_and_separate_changes_are_no_dispute() {
        assert_merge("a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n", Ok("A\nb\nC\n"));
        assert_merge("a\n", "a\n", "b\n", Ok("b\n"));
        assert_merge("a\n", "", "a\n", Ok(""));
        assert_merge("", "", "", Ok(""));
    }

    #[test]
    fn what_differs_is_found_and_put_back_together() {
        // A small generator: the seed is in the message, so a failure can be seen again.
        for seed in 1_u64..2_000 {
            let mut state = seed;
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut text = |_| -> String { (0..next(12)).map(|_| format!("{}\n", next(4))).collect() };
            let (base, side) = (text(0), text(1));
            let (base, side) = (split_lines(base.as_bytes()), split_lines(side.as_bytes()));
            let mut names = LineInterner::default();
            let (base, side) = (names.intern_lines(&base), names.intern_lines(&side));
            let mut rebuilt: Vec<u32> = Vec::new();
            let mut at = 0;
            for hunk in find_hunks(&base, &side) {
                assert!(hunk.base.start >= at, "seed {seed}");
                rebuilt.extend(&base[at..hunk.base.start]);
                rebuilt.extend(&side[hunk.side.clone()]);
                at = hunk.base.end;
            }
            rebuilt.extend(&base[at..]);
            assert_eq!(rebuilt, side, "seed {seed}");
        }
    }

    #[test]
    fn texts_that_have_nothing_in_common_end_soon() {
        let one: String = (0..30_000).map(|n| format!("one {n}\n")).collect();
        let other: String = (0..30_000).map(|n| format!("other {n}\n")).collect();
        let found = merge_texts(b"base\n", one.as_bytes(), other.as_bytes());
        assert_eq!((found.lines, found.settled), (30_000, None));
    }
}
