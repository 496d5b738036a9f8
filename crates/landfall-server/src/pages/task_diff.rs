//! What a task changes: its files, their lines with colours, one below the other or side by side, and comments on them.

use std::ops::Range;

use askama::Template;
use landfall_api::{Diff, DiffAsked, Problem, ProblemCode, Status, TypedService as _, WireTaskId};

use super::colours::{ColourSpan, DiffVersion, SyntaxHighlighter};
use super::diff::{self, DiffFile, DiffLine, DiffLineKind, DiffLinePair, HighlightedLine, ParsedDiff};
use super::markup::Markup;
use super::task::{self, TaskPageHead};
use super::{PageContext, RenderedPage, words};

const LINES_MAX: usize = 5_000; // rows on a page; files beyond are shown one at a time
const FILE_LINES_MAX: usize = 20_000; // rows of a file that is shown alone
const COLOURED_LINES_MAX: usize = 2_000; // a longer file stays plain
const COLOURED_BYTES_MAX: usize = 200_000;
const COLOURED_PAGE_MAX: usize = 4_000; // lines with colours on a page
const OPEN_FILES_MAX: usize = 20; // more are read one by one
const FILES_MAX: usize = 500; // files in the list
const LINE_MAX: usize = 4_000; // letters of a line

#[derive(Template)]
#[template(path = "task_diff.html")]
struct DiffPage<'a> {
    head: &'a TaskPageHead,
    choice: DiffViewOptions,
    shown: Option<RenderedDiff>,
    trouble: Option<String>,
    /// The commit of the work as it is now.
    now: String,
    /// The work that was last verified: another one means that this page is old.
    seen: String,
    in_review: bool,
    /// Only the head is wanted: the rest stays as the browser has it.
    bare: bool,
}

/// How the diff is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DiffViewOptions {
    split: bool,
    blanks: bool,
    since: Option<String>,
    file: Option<usize>,
}

impl DiffViewOptions {
    /// The address of the same page with one thing else.
    fn link_with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = self.clone();
        change(&mut other);
        let mut pairs: Vec<(&str, String)> = Vec::new();
        if other.split {
            pairs.push(("view", "split".to_owned()));
        }
        if other.blanks {
            pairs.push(("blanks", "1".to_owned()));
        }
        pairs.extend(other.since.map(|since| ("since", since)));
        pairs.extend(other.file.map(|file| ("file", file.to_string())));
        format!("?{}", serde_html_form::to_string(&pairs).unwrap_or_default()) // pairs of texts always can be written
    }

    fn same_link(&self) -> String {
        self.link_with(|_| {})
    }

    fn unified_link(&self) -> String {
        self.link_with(|it| it.split = false)
    }

    fn split_link(&self) -> String {
        self.link_with(|it| it.split = true)
    }

    fn blanks_link(&self) -> String {
        self.link_with(|it| it.blanks = !it.blanks)
    }

    fn base_link(&self) -> String {
        self.link_with(|it| it.since = None)
    }

    fn all_link(&self) -> String {
        self.link_with(|it| it.file = None)
    }

    fn since_link(&self, commit: &str) -> String {
        self.link_with(|it| (it.since, it.file) = (Some(commit.to_owned()), None))
    }
}

struct RenderedDiff {
    from: String,
    to: String,
    files: Vec<RenderedDiffFile>,
    files_more: usize,
    added: usize,
    removed: usize,
    count: usize,
    before: Vec<String>,
}

struct RenderedDiffFile {
    number: usize,
    name: String,
    /// As it is, to be sent back.
    path: String,
    change: Vec<String>,
    added: usize,
    removed: usize,
    body: DiffFileBody,
}

enum DiffFileBody {
    Rows(Markup),
    /// Nothing to show line by line.
    Nothing,
    /// Too much for this page: where it is, and how many rows it has.
    Elsewhere(String, usize),
}

pub(super) fn draw_diff_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "diff")?;
    let choice = DiffViewOptions {
        split: visit.query_value("view") == Some("split"),
        blanks: visit.query_value("blanks") == Some("1"),
        since: visit.query_value("since").map(|it| it.chars().take(80).collect()),
        file: visit.parse_query_value("file"),
    };
    let bare = visit.query_value("bare").is_some();
    let answer = match bare {
        true => None,
        false => Some(visit.diff(DiffAsked { task: head.id, from: choice.since.clone() })),
    };
    let (mut shown, mut trouble, mut now) = (None, None, String::new());
    match answer {
        None => {}
        Some(Ok(diff)) => {
            now = compared_tip(&head, &diff);
            let bytes =
                diff.diff.bytes().map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
            shown = Some(render_diff(&diff, &diff::parse(&String::from_utf8_lossy(&bytes)), &choice));
        }
        Some(Err(problem)) => {
            let hint = problem.hint.map(|hint| format!(" {}", words::sentence(&hint))).unwrap_or_default();
            trouble = Some(format!("{}{hint}", words::sentence(&problem.message)));
        }
    }
    let page = DiffPage {
        choice,
        shown,
        trouble,
        now,
        seen: head.detail.gate.as_ref().map(|gate| gate.head.clone()).unwrap_or_default(),
        in_review: head.detail.line.status == Status::Review,
        bare,
        head: &head,
    };
    head.render_page("diff", &page)
}

/// The commit to compare with next time: the work itself, not its merge with the base.
fn compared_tip(head: &TaskPageHead, diff: &Diff) -> String {
    match &head.detail.gate {
        Some(gate) if gate.commit == diff.to => gate.head.clone(),
        Some(_) | None => diff.to.clone(),
    }
}

fn render_diff(diff: &Diff, patch: &ParsedDiff<'_>, choice: &DiffViewOptions) -> RenderedDiff {
    let mut rows_left = LINES_MAX;
    let mut coloured_left = COLOURED_PAGE_MAX;
    let mut files = Vec::new();
    let (mut added, mut removed) = (0, 0);
    for (number, file) in patch.files.iter().enumerate() {
        let counts = file.count_lines();
        (added, removed) = (added + counts.0, removed + counts.1);
        let wanted = choice.file.is_none_or(|only| only == number);
        if !wanted || files.len() >= FILES_MAX {
            continue;
        }
        let alone = choice.file.is_some();
        let body = match file.len() {
            0 => DiffFileBody::Nothing,
            rows if rows > (if alone { FILE_LINES_MAX } else { rows_left }) => {
                DiffFileBody::Elsewhere(choice.link_with(|it| it.file = Some(number)), rows)
            }
            rows => {
                rows_left = rows_left.saturating_sub(rows);
                let small =
                    rows <= COLOURED_LINES_MAX && file.bytes() <= COLOURED_BYTES_MAX && rows <= coloured_left;
                let painter = small.then(|| SyntaxHighlighter::for_file(file.name())).flatten();
                coloured_left -= if painter.is_some() { rows } else { 0 };
                DiffFileBody::Rows(render_file_rows(file, painter, choice))
            }
        };
        files.push(RenderedDiffFile {
            number,
            name: words::line(file.name()),
            path: file.name().to_owned(),
            change: file.describe_change().iter().map(|it| words::line(it)).collect(),
            added: counts.0,
            removed: counts.1,
            body,
        });
    }
    RenderedDiff {
        from: task::short_commit(&diff.from),
        to: task::short_commit(&diff.to),
        files_more: if choice.file.is_some() { 0 } else { patch.files.len() - files.len() },
        files,
        added,
        removed,
        count: patch.files.len(),
        before: patch.before.iter().take(100).map(|it| words::visible(it)).collect(),
    }
}

/// What a task changes, in short: for whoever decides about it on another page.
pub(super) struct DiffPreview {
    pub(super) count: u64,
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) files: Vec<PreviewFile>,
    /// Whether more is changed than is shown.
    pub(super) is_cut: bool,
}

/// One file of it.
pub(super) struct PreviewFile {
    pub(super) name: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// None if it has no lines to show here.
    pub(super) rows: Option<Markup>,
}

/// The changes of a task in at most so many lines; none if they cannot be had.
pub(super) fn preview_diff(
    visit: &PageContext<'_>,
    task: WireTaskId,
    lines_max: usize,
) -> Option<DiffPreview> {
    const PREVIEW_FILES_MAX: usize = 20;
    let diff = visit.diff(DiffAsked { task, from: None }).ok()?;
    let bytes = diff.diff.bytes().ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let patch = diff::parse(&text);
    let mut lines_left = lines_max;
    let mut made = DiffPreview {
        count: patch.files.len() as u64,
        added: 0,
        removed: 0,
        files: Vec::new(),
        is_cut: false,
    };
    for file in &patch.files {
        let (added, removed) = file.count_lines();
        (made.added, made.removed) = (made.added + added, made.removed + removed);
        if made.files.len() >= PREVIEW_FILES_MAX {
            made.is_cut = true;
            continue;
        }
        let fits = file.len() <= lines_left;
        made.is_cut |= !fits;
        lines_left -= if fits { file.len() } else { 0 };
        let rows = (fits && file.len() > 0).then(|| {
            render_file_rows(file, SyntaxHighlighter::for_file(file.name()), &DiffViewOptions::default())
        });
        made.files.push(PreviewFile { name: words::line(file.name()), added, removed, rows });
    }
    Some(made)
}

/// The rows of a table for one file.
fn render_file_rows(
    file: &DiffFile<'_>,
    mut painter: Option<SyntaxHighlighter>,
    choice: &DiffViewOptions,
) -> Markup {
    let mut html = Markup::default();
    for hunk in &file.hunks {
        if let Some(painter) = &mut painter {
            painter.start_hunk();
        }
        html.push_tag("<tr class=\"d-hunk\"><td class=\"d-num\" aria-hidden=\"true\">⋯</td>");
        html.push_tag(if choice.split { "<td colspan=\"3\">" } else { "<td class=\"d-num\"></td><td>" });
        html.text(hunk.head.strip_suffix(hunk.section).unwrap_or(hunk.head))
            .push_tag(" <span class=\"muted\">");
        html.text(hunk.section).push_tag("</span></td></tr>");
        let pairs = diff::pair_hunk_lines(hunk, choice.blanks);
        if choice.split {
            render_split(&pairs, &mut painter, &mut html)
        } else {
            render_unified(&pairs, &mut painter, &mut html)
        }
    }
    html
}

/// One below the other: what went, then what came for it.
fn render_unified(pairs: &[DiffLinePair<'_>], painter: &mut Option<SyntaxHighlighter>, html: &mut Markup) {
    let mut rest = pairs;
    while !rest.is_empty() {
        let changed = |pair: &DiffLinePair<'_>| {
            let kind = |side: &Option<HighlightedLine<'_>>| side.as_ref().map(|it| it.line.kind);
            !matches!(kind(&pair.left).or(kind(&pair.right)), Some(DiffLineKind::Same | DiffLineKind::Note))
        };
        let block = rest.iter().take_while(|pair| changed(pair)).count();
        let (block, after) = rest.split_at(block);
        for shown in block.iter().filter_map(|pair| pair.left.as_ref()) {
            render_unified_line(shown, painter, html);
        }
        for shown in block.iter().filter_map(|pair| pair.right.as_ref()) {
            render_unified_line(shown, painter, html);
        }
        rest = after;
        if let Some((pair, after)) = rest.split_first() {
            if let Some(shown) = &pair.right {
                render_unified_line(shown, painter, html);
            }
            rest = after;
        }
    }
}

fn render_unified_line(
    shown: &HighlightedLine<'_>,
    painter: &mut Option<SyntaxHighlighter>,
    html: &mut Markup,
) {
    let line = &shown.line;
    html.push_tag("<tr class=\"").push_tag(line_class(line.kind)).push_tag("\"");
    write_line_place(line, html);
    html.push_tag(">");
    write_line_number(line.old, html);
    write_line_number(line.new, html);
    html.push_tag("<td class=\"d-code\">");
    write_code(shown, painter, html);
    html.push_tag("</td></tr>");
}

/// Beside each other.
fn render_split(pairs: &[DiffLinePair<'_>], painter: &mut Option<SyntaxHighlighter>, html: &mut Markup) {
    for pair in pairs {
        let line = pair.right.as_ref().or(pair.left.as_ref()).map(|it| it.line);
        html.push_tag("<tr");
        if let Some(line) = &line {
            write_line_place(line, html);
        }
        html.push_tag(">");
        if let Some(DiffLine { kind: DiffLineKind::Note, text, .. }) = line {
            html.push_tag("<td class=\"d-num\"></td><td class=\"d-note\" colspan=\"3\">")
                .text(text)
                .push_tag("</td></tr>");
            continue;
        }
        for (side, old) in [(&pair.left, true), (&pair.right, false)] {
            match side {
                Some(shown) => {
                    write_line_number(if old { shown.line.old } else { shown.line.new }, html);
                    html.push_tag("<td class=\"d-code ")
                        .push_tag(line_class(shown.line.kind))
                        .push_tag("\">");
                    match (old, shown.line.kind) {
                        // Read on the other side once more, which must not move the colours on.
                        (true, DiffLineKind::Same) => write_code(shown, &mut None, html),
                        (true | false, _) => write_code(shown, painter, html),
                    }
                    html.push_tag("</td>");
                }
                None => {
                    html.push_tag("<td class=\"d-num\"></td><td class=\"d-none\"></td>");
                }
            }
        }
        html.push_tag("</tr>");
    }
}

fn line_class(kind: DiffLineKind) -> &'static str {
    match kind {
        DiffLineKind::Same => "d-same",
        DiffLineKind::Gone => "d-del",
        DiffLineKind::New => "d-add",
        DiffLineKind::Note => "d-note",
    }
}

/// Where a line is, for comments on it.
fn write_line_place(line: &DiffLine<'_>, html: &mut Markup) {
    match (line.new, line.old) {
        (Some(new), _) => {
            html.push_tag(" data-line=\"").number(new).push_tag("\"");
        }
        (None, Some(old)) => {
            html.push_tag(" data-line=\"").number(old).push_tag("\" data-old");
        }
        (None, None) => {}
    }
}

fn write_line_number(number: Option<u32>, html: &mut Markup) {
    html.push_tag("<td class=\"d-num\">");
    if let Some(number) = number {
        html.number(number);
    }
    html.push_tag("</td>");
}

/// The text of a line, with its colours and its changed words.
fn write_code(shown: &HighlightedLine<'_>, painter: &mut Option<SyntaxHighlighter>, html: &mut Markup) {
    let line = &shown.line;
    let (sign, within) = match line.kind {
        DiffLineKind::Same => (" ", Some(DiffVersion::Both)),
        DiffLineKind::Gone => ("-", Some(DiffVersion::Old)),
        DiffLineKind::New => ("+", Some(DiffVersion::New)),
        DiffLineKind::Note => ("", None),
    };
    if !sign.is_empty() {
        html.push_tag("<span class=\"d-sign\">").push_tag(sign).push_tag("</span>");
    }
    let pieces = match (painter, within) {
        (Some(painter), Some(within)) => painter.highlight_line(within, line.text),
        (Some(_) | None, _) => Vec::new(),
    };
    let end = line.text.char_indices().nth(LINE_MAX).map_or(line.text.len(), |(end, _)| end);
    paint_text(&line.text[..end], &pieces, &shown.changed, html);
    if end < line.text.len() {
        html.push_tag("<span class=\"muted\"> … (longer in the file)</span>");
    }
}

/// Writes a text with classes on its pieces and marks around its changed parts. Both are in order and do not overlap
/// themselves.
fn paint_text(text: &str, pieces: &[ColourSpan], changed: &[Range<usize>], html: &mut Markup) {
    let mut cuts: Vec<usize> = pieces
        .iter()
        .flat_map(|(range, _)| [range.start, range.end])
        .chain(changed.iter().flat_map(|range| [range.start, range.end]))
        .filter(|cut| *cut < text.len() && text.is_char_boundary(*cut))
        .chain([0, text.len()])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut piece, mut change) = (pieces.iter().peekable(), changed.iter().peekable());
    for window in cuts.windows(2) {
        let [from, to] = *window else { continue };
        while piece.next_if(|(range, _)| range.end <= from).is_some() {}
        while change.next_if(|range| range.end <= from).is_some() {}
        let class = piece.peek().filter(|(range, _)| range.start <= from).map(|(_, class)| *class);
        let changed = change.peek().is_some_and(|range| range.start <= from);
        if changed {
            html.push_tag("<mark>");
        }
        match class {
            Some(class) => {
                html.push_tag("<span class=\"")
                    .push_tag(class)
                    .push_tag("\">")
                    .text(&text[from..to])
                    .push_tag("</span>");
            }
            None => {
                html.text(&text[from..to]);
            }
        }
        if changed {
            html.push_tag("</mark>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str, split: bool) -> String {
        let patch = diff::parse(text);
        let choice = DiffViewOptions { split, ..DiffViewOptions::default() };
        patch
            .files
            .iter()
            .map(|file| render_file_rows(file, SyntaxHighlighter::for_file(file.name()), &choice).to_string())
            .collect()
    }

    const HOSTILE: &str = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,3 @@ <svg>f()\n-let a = \"<img src=x onerror=1>\";\n+let b = \"<img src=y onerror=1>\";\n+// '\"><svg>\u{202e}\n </td></tr>\n\\ No newline <b>\n";

    #[test]
    fn nothing_in_a_diff_becomes_a_tag() {
        for split in [false, true] {
            let html = table(HOSTILE, split);
            for bad in ["<svg", "<img", "<b>", "\u{202e}", "</td></tr>\n"] {
                assert!(!html.contains(bad), "{bad} in {html}");
            }
            assert_eq!(html.matches("<tr").count(), html.matches("</tr>").count());
            assert_eq!(html.matches("<td").count(), html.matches("</td>").count());
            assert_eq!(html.matches("<span").count(), html.matches("</span>").count());
        }
    }

    #[test]
    fn every_line_is_in_the_table_once_whatever_the_view() {
        let text = "--- a/n\n+++ b/n\n@@ -1,4 +1,5 @@\n q1\n-q2\n-q3\n+q4\n+q5\n+q6\n q7\n";
        let html = table(text, false);
        for line in ["q1", "q2", "q3", "q4", "q5", "q6", "q7"] {
            assert_eq!(html.matches(line).count(), 1, "{line}: {html}");
        }
        let html = table(text, true);
        for (line, count) in [("q1", 2), ("q2", 1), ("q3", 1), ("q4", 1), ("q5", 1), ("q6", 1), ("q7", 2)] {
            assert_eq!(html.matches(line).count(), count, "{line}: {html}");
        }
    }

    #[test]
    fn colours_and_changed_words_may_cross() {
        let mut html = Markup::default();
        paint_text("let größe = 1;", &[(0..3, "c-keyword"), (4..11, "c-type")], &[2..6, 14..15], &mut html);
        let plain: String =
            html.as_str().split('<').map(|part| part.rsplit('>').next().unwrap_or(part)).collect();
        assert_eq!(plain, "let größe = 1;");
        assert_eq!(html.as_str().matches("<mark>").count(), html.as_str().matches("</mark>").count());
    }

    #[test]
    fn links_keep_what_was_chosen() {
        let choice =
            DiffViewOptions { split: true, blanks: true, since: Some("ab&c".to_owned()), file: None };
        assert_eq!(choice.unified_link(), "?blanks=1&since=ab%26c");
        assert_eq!(choice.base_link(), "?view=split&blanks=1");
    }
}
