//! Unified diffs, read so that nothing is lost: every line of the text is in exactly one place, whatever the text is.
//!
//! It only reads and pairs lines; colours are in `colours`, drawing in `task_diff`.

use std::ops::Range;

/// A diff.
#[derive(Debug, Default)]
pub(crate) struct ParsedDiff<'a> {
    /// Lines before the first file.
    pub(crate) before: Vec<&'a str>,
    pub(crate) files: Vec<DiffFile<'a>>,
}

/// What is done to one file.
#[derive(Debug, Default)]
pub(crate) struct DiffFile<'a> {
    /// Its lines before the first hunk, as they are.
    pub(crate) head: Vec<&'a str>,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
    pub(crate) old_mode: Option<&'a str>,
    pub(crate) new_mode: Option<&'a str>,
    pub(crate) added: bool,
    pub(crate) deleted: bool,
    pub(crate) copied: bool,
    pub(crate) renamed: bool,
    pub(crate) binary: bool,
    pub(crate) hunks: Vec<DiffHunk<'a>>,
}

/// Lines that belong together.
#[derive(Debug)]
pub(crate) struct DiffHunk<'a> {
    /// The line with its places.
    pub(crate) head: &'a str,
    /// What it is in, as git says: often a function.
    pub(crate) section: &'a str,
    pub(crate) lines: Vec<DiffLine<'a>>,
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiffLine<'a> {
    pub(crate) kind: DiffLineKind,
    /// Without the sign before it.
    pub(crate) text: &'a str,
    /// Its number before.
    pub(crate) old: Option<u32>,
    /// Its number after.
    pub(crate) new: Option<u32>,
    /// As it stands in the diff.
    raw: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffLineKind {
    /// In both.
    Same,
    /// Only before.
    Gone,
    /// Only after.
    New,
    /// A remark of git's, or a line that does not belong in a diff.
    Note,
}

impl DiffFile<'_> {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        self.new
            .as_deref()
            .filter(|_| !self.deleted)
            .or(self.old.as_deref())
            .unwrap_or("(a file without a name)")
    }

    /// How many lines came, and how many went.
    pub(crate) fn count_lines(&self) -> (usize, usize) {
        let lines = || self.hunks.iter().flat_map(|hunk| &hunk.lines);
        (
            lines().filter(|line| line.kind == DiffLineKind::New).count(),
            lines().filter(|line| line.kind == DiffLineKind::Gone).count(),
        )
    }

    /// How many lines it has here.
    pub(crate) fn len(&self) -> usize {
        self.hunks.iter().map(|hunk| hunk.lines.len() + 1).sum()
    }

    /// How many bytes it has here.
    pub(crate) fn bytes(&self) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.raw.len() + 1).sum()
    }

    /// What was done to it, in words.
    pub(crate) fn describe_change(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (is, word) in [(self.added, "new file"), (self.deleted, "deleted"), (self.binary, "binary")] {
            if is {
                words.push(word.to_owned());
            }
        }
        if let (true, Some(old)) = (self.renamed || self.copied, &self.old) {
            words.push(format!("{} from {old}", if self.copied { "copied" } else { "renamed" }));
        }
        match (self.old_mode, self.new_mode) {
            (Some(old), Some(new)) => words.push(format!("mode {} → {}", mode_label(old), mode_label(new))),
            (None, Some(new)) if self.added && new != "100644" => words.push(mode_label(new)),
            (Some(_) | None, _) => {}
        }
        words
    }
}

fn mode_label(mode: &str) -> String {
    match mode.trim() {
        "100644" => "file".to_owned(),
        "100755" => "executable".to_owned(),
        "120000" => "symbolic link".to_owned(),
        "160000" => "submodule".to_owned(),
        other => other.chars().take(12).collect(),
    }
}

/// Where the reader is within a hunk.
#[derive(Default)]
struct HunkPosition {
    old: u32,
    new: u32,
    old_at: u32,
    new_at: u32,
}

/// Reads a diff.
pub(crate) fn parse(text: &str) -> ParsedDiff<'_> {
    let mut patch = ParsedDiff::default();
    let mut left = HunkPosition::default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return patch;
    }
    for raw in text.split('\n') {
        let in_hunk = left.old > 0 || left.new > 0;
        if let Some(hunk) = patch.files.last_mut().and_then(|file| file.hunks.last_mut()) {
            let line = in_hunk.then(|| left.take(raw)).flatten();
            // A remark may follow the last line of a hunk.
            let line = line.or_else(|| raw.starts_with('\\').then(|| DiffLine::note_line(raw)));
            if let Some(line) = line {
                hunk.lines.push(line);
                continue;
            }
        }
        left = HunkPosition::default();
        if let Some(names) = raw.strip_prefix("diff --git ") {
            let mut file = DiffFile { head: vec![raw], ..DiffFile::default() };
            (file.old, file.new) = parse_both_names(names);
            patch.files.push(file);
            continue;
        }
        let fresh_pair =
            raw.starts_with("--- ") && patch.files.last().is_none_or(|file| !file.hunks.is_empty());
        if fresh_pair {
            patch.files.push(DiffFile::default()); // a diff without the lines of git
        }
        let Some(file) = patch.files.last_mut() else {
            patch.before.push(raw);
            continue;
        };
        match parse_hunk_header(raw) {
            Some((at, section)) => {
                left = at;
                file.hunks.push(DiffHunk { head: raw, section, lines: Vec::new() });
            }
            None => match file.hunks.last_mut() {
                Some(hunk) => hunk.lines.push(DiffLine::note_line(raw)),
                None => file.read_head_line(raw),
            },
        }
    }
    patch
}

impl<'a> DiffLine<'a> {
    fn note_line(raw: &'a str) -> Self {
        DiffLine { kind: DiffLineKind::Note, text: raw, old: None, new: None, raw }
    }
}

impl HunkPosition {
    /// The next line of a hunk; none if it cannot belong to it.
    fn take<'a>(&mut self, raw: &'a str) -> Option<DiffLine<'a>> {
        let (sign, text) = match raw.as_bytes().first() {
            Some(sign @ (b' ' | b'+' | b'-')) => (*sign, &raw[1..]),
            None => (b' ', raw), // some programs cut the blank that stands for an empty line
            Some(_) => return None,
        };
        let (kind, old, new) = match sign {
            b'-' if self.old > 0 => (DiffLineKind::Gone, true, false),
            b'+' if self.new > 0 => (DiffLineKind::New, false, true),
            b' ' if self.old > 0 && self.new > 0 => (DiffLineKind::Same, true, true),
            _ => return None,
        };
        let line =
            DiffLine { kind, text, old: old.then_some(self.old_at), new: new.then_some(self.new_at), raw };
        if old {
            self.old -= 1;
            self.old_at = self.old_at.saturating_add(1);
        }
        if new {
            self.new -= 1;
            self.new_at = self.new_at.saturating_add(1);
        }
        Some(line)
    }
}

impl<'a> DiffFile<'a> {
    fn read_head_line(&mut self, raw: &'a str) {
        self.head.push(raw);
        if let Some(name) = raw.strip_prefix("--- ") {
            self.old = parse_file_name(name).or(self.old.take());
        } else if let Some(name) = raw.strip_prefix("+++ ") {
            self.new = parse_file_name(name).or(self.new.take());
        } else if let Some(name) = raw.strip_prefix("rename from ") {
            (self.old, self.renamed) = (Some(unquote_path(name)), true);
        } else if let Some(name) = raw.strip_prefix("rename to ") {
            (self.new, self.renamed) = (Some(unquote_path(name)), true);
        } else if let Some(name) = raw.strip_prefix("copy from ") {
            (self.old, self.copied) = (Some(unquote_path(name)), true);
        } else if let Some(name) = raw.strip_prefix("copy to ") {
            (self.new, self.copied) = (Some(unquote_path(name)), true);
        } else if let Some(mode) = raw.strip_prefix("new file mode ") {
            (self.new_mode, self.added) = (Some(mode), true);
        } else if raw.starts_with("deleted file mode ") {
            self.deleted = true;
        } else if let Some(mode) = raw.strip_prefix("old mode ") {
            self.old_mode = Some(mode);
        } else if let Some(mode) = raw.strip_prefix("new mode ") {
            self.new_mode = Some(mode);
        } else if raw.starts_with("Binary files ") || raw.starts_with("GIT binary patch") {
            self.binary = true;
        }
    }
}

/// Reads `@@ -1,2 +3,4 @@ section`.
fn parse_hunk_header(raw: &str) -> Option<(HunkPosition, &str)> {
    let (places, section) = raw.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = places.split_once(" +")?;
    let place = |text: &str| -> Option<(u32, u32)> {
        let (at, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((at.parse().ok()?, count.parse().ok()?))
    };
    let ((old_at, old), (new_at, new)) = (place(old)?, place(new)?);
    Some((HunkPosition { old, new, old_at, new_at }, section.trim_start()))
}

/// A name after `---` or `+++`; none for a file that is not there.
fn parse_file_name(text: &str) -> Option<String> {
    let text = text.split_once('\t').map_or(text, |(name, _)| name);
    if text == "/dev/null" {
        return None;
    }
    let name = unquote_path(text);
    Some(name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).map_or(name.clone(), str::to_owned))
}

/// Both names after `diff --git`, where they can be told apart.
fn parse_both_names(text: &str) -> (Option<String>, Option<String>) {
    let strip = |name: &str, prefix: &str| name.strip_prefix(prefix).map(str::to_owned);
    if let Some(inner) = text.strip_prefix('"') {
        let end = inner.char_indices().scan(false, |escaped, (at, char)| {
            let was = std::mem::replace(escaped, char == '\\' && !*escaped);
            Some((at, char == '"' && !was))
        });
        let Some(end) = end.filter(|(_, ends)| *ends).map(|(at, _)| at).next() else { return (None, None) };
        let old = unquote_path(&text[..end + 2]);
        let new = unquote_path(text[end + 2..].trim_start());
        return (strip(&old, "a/"), strip(&new, "b/"));
    }
    // Both are the same unless the lines that follow say otherwise: `a/x b/x`.
    let half = text.len() / 2;
    if text.len() % 2 == 1 && text.is_char_boundary(half) && text.as_bytes()[half] == b' ' {
        let (old, new) = (strip(&text[..half], "a/"), strip(&text[half + 1..], "b/"));
        if old == new {
            return (old, new);
        }
    }
    match text.split_once(" b/") {
        Some((old, new)) => (strip(old, "a/"), Some(new.to_owned())),
        None => (None, None),
    }
}

/// A name as it is, from the way git writes odd ones: in quotes, with escapes.
fn unquote_path(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'v') => bytes.push(11),
            Some(digit @ b'0'..=b'3') => {
                let mut code = digit - b'0';
                for _ in 0..2 {
                    match rest.next_if(|it| matches!(it, b'0'..=b'7')) {
                        Some(digit) => code = code.wrapping_mul(8).wrapping_add(digit - b'0'),
                        None => break,
                    }
                }
                bytes.push(code);
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line as it is shown: with the words in it that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightedLine<'a> {
    pub(crate) line: DiffLine<'a>,
    /// Changed parts of the text, in order.
    pub(crate) changed: Vec<Range<usize>>,
}

/// Lines beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLinePair<'a> {
    pub(crate) left: Option<HighlightedLine<'a>>,
    pub(crate) right: Option<HighlightedLine<'a>>,
}

/// The lines of a hunk in pairs: what is in both beside itself, what went beside what came for it.
pub(crate) fn pair_hunk_lines<'a>(hunk: &DiffHunk<'a>, ignore_blanks: bool) -> Vec<DiffLinePair<'a>> {
    let mut pairs = Vec::with_capacity(hunk.lines.len());
    let mut rest = hunk.lines.as_slice();
    while let Some(line) = rest.first() {
        let gone = rest.iter().take_while(|it| it.kind == DiffLineKind::Gone).count();
        // A remark about a missing newline may stand between both.
        let notes = rest[gone..].iter().take_while(|it| it.kind == DiffLineKind::Note).count();
        let new = rest[gone + notes..].iter().take_while(|it| it.kind == DiffLineKind::New).count();
        if gone + new == 0 {
            let shown = HighlightedLine { line: *line, changed: Vec::new() };
            pairs.push(DiffLinePair { left: Some(shown.clone()), right: Some(shown) });
            rest = &rest[1..];
            continue;
        }
        let (block, after) = rest.split_at(gone + notes + new);
        let (gone, others) = block.split_at(gone);
        let (notes, new) = others.split_at(notes);
        change_pairs(gone, new, ignore_blanks, &mut pairs);
        for note in notes {
            let shown = HighlightedLine { line: *note, changed: Vec::new() };
            pairs.push(DiffLinePair { left: Some(shown.clone()), right: Some(shown) });
        }
        rest = after;
    }
    pairs
}

fn change_pairs<'a>(
    gone: &[DiffLine<'a>],
    new: &[DiffLine<'a>],
    ignore_blanks: bool,
    pairs: &mut Vec<DiffLinePair<'a>>,
) {
    if ignore_blanks {
        let matches = match_ignoring_blanks(gone, new);
        let (mut from_gone, mut from_new) = (0, 0);
        for (old_at, new_at) in matches.into_iter().chain([(gone.len(), new.len())]) {
            pair_changed_lines(&gone[from_gone..old_at], &new[from_new..new_at], pairs);
            if let (Some(old), Some(new)) = (gone.get(old_at), new.get(new_at)) {
                let line = DiffLine { kind: DiffLineKind::Same, old: old.old, ..*new };
                let shown = HighlightedLine { line, changed: Vec::new() };
                pairs.push(DiffLinePair { left: Some(shown.clone()), right: Some(shown) });
            }
            (from_gone, from_new) = (old_at + 1, new_at + 1);
        }
        return;
    }
    pair_changed_lines(gone, new, pairs);
}

fn pair_changed_lines<'a>(gone: &[DiffLine<'a>], new: &[DiffLine<'a>], pairs: &mut Vec<DiffLinePair<'a>>) {
    for at in 0..gone.len().max(new.len()) {
        let (changed_old, changed_new) = match (gone.get(at), new.get(at)) {
            (Some(old), Some(new)) => changed_word_ranges(old.text, new.text),
            (Some(_), None) | (None, _) => (Vec::new(), Vec::new()),
        };
        pairs.push(DiffLinePair {
            left: gone.get(at).map(|line| HighlightedLine { line: *line, changed: changed_old }),
            right: new.get(at).map(|line| HighlightedLine { line: *line, changed: changed_new }),
        });
    }
}

const COMPARED_MAX: usize = 250_000; // steps of one comparison: a block of 500 by 500 lines, or words

/// Pairs of places whose lines differ in blanks only.
fn match_ignoring_blanks(gone: &[DiffLine<'_>], new: &[DiffLine<'_>]) -> Vec<(usize, usize)> {
    let bare = |lines: &[DiffLine<'_>]| -> Vec<String> {
        lines.iter().map(|line| line.text.chars().filter(|char| !char.is_whitespace()).collect()).collect()
    };
    longest_common_subsequence(&bare(gone), &bare(new)).unwrap_or_default()
}

/// The longest row of equal things in both, as pairs of places; none if that is too much work.
fn longest_common_subsequence<T: PartialEq>(a: &[T], b: &[T]) -> Option<Vec<(usize, usize)>> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[start..], &b[start..]);
    let end = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - end], &rest_b[..rest_b.len() - end]);
    if mid_a.len().saturating_mul(mid_b.len()) > COMPARED_MAX {
        return None;
    }
    let mut found: Vec<(usize, usize)> = (0..start).map(|at| (at, at)).collect();
    let width = mid_b.len() + 1;
    let mut best = vec![0_u32; (mid_a.len() + 1) * width];
    for (x, a) in mid_a.iter().enumerate().rev() {
        for (y, b) in mid_b.iter().enumerate().rev() {
            best[x * width + y] = if a == b {
                best[(x + 1) * width + y + 1] + 1
            } else {
                best[(x + 1) * width + y].max(best[x * width + y + 1])
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    while x < mid_a.len() && y < mid_b.len() {
        if mid_a[x] == mid_b[y] {
            found.push((start + x, start + y));
            (x, y) = (x + 1, y + 1);
        } else if best[(x + 1) * width + y] >= best[x * width + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    found.extend((0..end).rev().map(|back| (a.len() - 1 - back, b.len() - 1 - back)));
    Some(found)
}

const WORDS_MAX: usize = 1_500; // letters of a line whose words are compared

/// The parts of two lines that differ; none if nearly everything does, for then it says nothing.
fn changed_word_ranges(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len() > WORDS_MAX || new.len() > WORDS_MAX {
        return (Vec::new(), Vec::new());
    }
    let (a, b) = (split_words(old), split_words(new));
    let texts = |words: &[Range<usize>], of: &str| -> Vec<String> {
        words.iter().map(|range| of[range.clone()].to_owned()).collect()
    };
    let (texts_a, texts_b) = (texts(&a, old), texts(&b, new));
    let Some(same) = longest_common_subsequence(&texts_a, &texts_b) else { return (Vec::new(), Vec::new()) };
    let kept: usize = same.iter().map(|(at, _)| texts_a[*at].trim().len()).sum();
    if kept * 3 < old.trim().len().max(new.trim().len()) {
        return (Vec::new(), Vec::new());
    }
    let changed = |words: &[Range<usize>], same: &mut dyn Iterator<Item = usize>| {
        let mut changed: Vec<Range<usize>> = Vec::new();
        let mut next = same.next();
        for (at, range) in words.iter().enumerate() {
            if next == Some(at) {
                next = same.next();
                continue;
            }
            match changed.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                Some(_) | None => changed.push(range.clone()),
            }
        }
        changed
    };
    (changed(&a, &mut same.iter().map(|(at, _)| *at)), changed(&b, &mut same.iter().map(|(_, at)| *at)))
}

/// The words of a line: letters and digits together, blanks together, every other sign alone.
fn split_words(text: &str) -> Vec<Range<usize>> {
    let class = |char: char| match char {
        _ if char.is_alphanumeric() || char == '_' => 1,
        _ if char.is_whitespace() => 2,
        _ => 0,
    };
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = 0;
    for (at, char) in text.char_indices() {
        let (this, end) = (class(char), at + char.len_utf8());
        match words.last_mut() {
            Some(word) if this != 0 && this == last => word.end = end,
            Some(_) | None => words.push(at..end),
        }
        last = this;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,4 +1,4 @@ fn main()\n one\n-two\n+zwei\n three\n--- four\n@@ -10 +10,2 @@\n-x\n\\ No newline at end of file\n+x\n+y\n";

    /// Every line once, in order.
    fn raw<'a>(patch: &ParsedDiff<'a>) -> Vec<&'a str> {
        let mut lines = patch.before.clone();
        for file in &patch.files {
            lines.extend(&file.head);
            for hunk in &file.hunks {
                lines.push(hunk.head);
                lines.extend(hunk.lines.iter().map(|line| line.raw));
            }
        }
        lines
    }

    #[track_caller]
    fn assert_nothing_lost(text: &str) {
        let bare = text.strip_suffix('\n').unwrap_or(text);
        let expected: Vec<&str> = if bare.is_empty() { Vec::new() } else { bare.split('\n').collect() };
        let patch = parse(text);
        assert_eq!(raw(&patch), expected);
        // Nor by putting lines beside each other.
        for hunk in patch.files.iter().flat_map(|file| &file.hunks) {
            for ignore in [false, true] {
                let pairs = pair_hunk_lines(hunk, ignore);
                let count = |kind| hunk.lines.iter().filter(|line| line.kind == kind).count();
                let sides =
                    |side: fn(&DiffLinePair<'_>) -> bool| pairs.iter().filter(|pair| side(pair)).count();
                let both = count(DiffLineKind::Same) + count(DiffLineKind::Note);
                assert_eq!(sides(|pair| pair.left.is_some()), both + count(DiffLineKind::Gone));
                assert_eq!(sides(|pair| pair.right.is_some()), both + count(DiffLineKind::New));
            }
        }
    }

    #[test]
    fn a_plain_diff_is_read() {
        let patch = parse(PLAIN);
        let file = &patch.files[0];
        assert_eq!((file.name(), file.count_lines(), file.hunks.len()), ("src/a.rs", (3, 3), 2));
        let places: Vec<_> = file.hunks[0].lines.iter().map(|line| (line.old, line.new, line.text)).collect();
        assert_eq!(places[..3], [(Some(1), Some(1), "one"), (Some(2), None, "two"), (None, Some(2), "zwei")]);
        assert_eq!(places[4], (Some(4), None, "-- four"), "a deleted line may look like a head");
        assert_eq!(file.hunks[0].section, "fn main()");
        assert_nothing_lost(PLAIN);
    }

    #[test]
    fn renames_modes_and_binaries_are_told() {
        let text = "diff --git a/old name b/new name\nsimilarity index 97%\nrename from old name\nrename to new name\n\
                    diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
                    diff --git a/p.png b/p.png\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/p.png differ\n\
                    diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let patch = parse(text);
        let told: Vec<(String, String)> = patch
            .files
            .iter()
            .map(|file| (file.name().to_owned(), file.describe_change().join(", ")))
            .collect();
        let told: Vec<(&str, &str)> =
            told.iter().map(|(name, change)| (name.as_str(), change.as_str())).collect();
        assert_eq!(
            told,
            [
                ("new name", "renamed from old name"),
                ("run.sh", "mode file → executable"),
                ("p.png", "new file, binary"),
                ("gone", "deleted"),
            ]
        );
        assert_nothing_lost(text);
    }

    #[test]
    fn quoted_names_are_unquoted() {
        let text = "diff --git \"a/\\303\\244\\n\\\"x\" \"b/\\303\\244\\n\\\"x\"\nnew file mode 100755\n";
        let patch = parse(text);
        assert_eq!(patch.files[0].name(), "ä\n\"x");
        assert_eq!(unquote_path("\"\\777\\"), "\"\\777\\", "not quoted to its end: as it is");
        assert_eq!(unquote_path("\"a\\"), "\"a\\");
    }

    #[test]
    fn hostile_and_odd_texts_lose_nothing() {
        for text in [
            "",
            "\n",
            "\n\n\n",
            "hello",
            "@@ -1 +1 @@\n-a\n+b",
            "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ d\n@@ -1 +1 @@\n-c\n+d",
            "diff --git a/x b/x\n@@ -1,99999999999 +1 @@\n x",
            "diff --git a/x b/x\n@@ -1,4294967295 +4294967295,4294967295 @@\n x\n+y\ndiff --git a/z b/z",
            "diff --git a/x b/x\n@@ -0,0 +1,3 @@\n+a\nrubbish\n+b",
            "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n\n\n\n\n",
            "diff --git \"a/x\ndiff --git \ndiff --git a/x",
            "@@@ -1 -1 +1 @@@\n  x",
            "\\ No newline\n\\ again",
            "diff --git a/x b/x\n@@ -1 +1 @@\n-\u{202e}x\r\n+<svg>\r",
        ] {
            assert_nothing_lost(text);
        }
    }

    #[test]
    fn random_mixtures_lose_nothing() {
        let pieces = [
            "diff --git a/x b/x",
            "--- a/x",
            "+++ b/x",
            "@@ -1,2 +1,3 @@",
            "@@ -1 +1 @@ f",
            "@@ -0,0 +1 @@",
            " same",
            "-gone",
            "+new",
            "",
            "\\ No newline at end of file",
            "Binary files a and b differ",
            "rename from q",
            "-- x",
            "++ y",
            "é",
        ];
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..5_000 {
            let mut lines = Vec::new();
            for _ in 0..seed % 17 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                lines.push(pieces[(seed % pieces.len() as u64) as usize]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert_nothing_lost(&lines.join("\n"));
        }
    }

    #[test]
    fn changed_words_are_found() {
        let (old, new) = changed_word_ranges("let a = foo(1, 2);", "let a = bar(1, 3);");
        assert_eq!((old, new), (vec![8..11, 15..16], vec![8..11, 15..16]));
        assert_eq!(changed_word_ranges("abc", "totally different words"), (vec![], vec![]));
        let (old, new) = changed_word_ranges("größe = 1", "größe = 2");
        assert_eq!(format!("{old:?} {new:?}"), "[10..11] [10..11]");
    }

    #[test]
    fn lines_that_differ_in_blanks_only_are_the_same_when_asked() {
        let text =
            "--- a\n+++ b\n@@ -1,3 +1,4 @@\n-if x {\n-\ty();\n-}\n+if  x {\n+    y();\n+    z();\n+}\n";
        let patch = parse(text);
        let shown = pair_hunk_lines(&patch.files[0].hunks[0], true);
        let kinds: Vec<DiffLineKind> =
            shown.iter().filter_map(|pair| pair.right.as_ref()).map(|it| it.line.kind).collect();
        assert_eq!(kinds, [DiffLineKind::Same, DiffLineKind::Same, DiffLineKind::New, DiffLineKind::Same]);
        assert_eq!(shown[1].right.as_ref().map(|it| (it.line.old, it.line.new)), Some((Some(2), Some(2))));
    }
}
