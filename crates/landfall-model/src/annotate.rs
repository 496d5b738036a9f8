//! Annotations: what a person writes into the margin of a plan or another paper of a task, and what becomes of it.
//!
//! An annotation knows its place by a line and by the few characters around it. Files change under it, so the characters
//! count and the line only decides between places that look alike. A place that cannot be told is refused, and then
//! nothing is changed: half of what a person meant is worse than nothing.

pub use landfall_facts::annotate::AnnotationImpact;
use std::fmt;

/// So many characters on each side of a place are looked at.
pub const CONTEXT_MAX: usize = 20;
const NEWLINE: char = '↵'; // how a line break is shown in a context

/// One thing a person wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    place: TextAnchor,
    change: AnnotationChange,
}

/// Where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextAnchor {
    /// The line it began in when it was written, from 1.
    line: usize,
    /// The characters before it; empty means the beginning of a line.
    before: Vec<char>,
    /// What it is about.
    selected: Vec<char>,
    /// The characters behind it; empty means the end of a line.
    after: Vec<char>,
}

/// What it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationChange {
    /// Adds this.
    Insert(String),
    /// Takes the selected text away.
    Delete,
    /// Puts this where the selected text is.
    Replace(String),
    /// Says this about the selected text, and changes nothing of it.
    Comment(CommentKind, String),
}

impl AnnotationChange {
    /// The word people and files use.
    #[must_use]
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Delete => "delete",
            Self::Replace(_) => "replace",
            Self::Comment(..) => "comment",
        }
    }
}

/// What a comment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommentKind {
    /// The answer to a question.
    Answer,
    /// A note.
    Note,
}

impl CommentKind {
    fn marker_char(self) -> char {
        match self {
            Self::Answer => '💬',
            Self::Note => '📝',
        }
    }
}

/// Why something is no annotation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// The place does not begin with a line.
    #[error(
        "`{0}` names no place: it begins with `Line` and a number from 1, as in `Line12:...the text before`"
    )]
    Place(String),
    /// Nothing is selected to be taken away or replaced.
    #[error("nothing is selected to {0}")]
    NothingSelected(&'static str),
    /// Nothing is said.
    #[error("there is nothing to {0}")]
    NothingSaid(&'static str),
}

impl Annotation {
    /// Text to add between two contexts: `Line12:...text before`, `text behind...`.
    pub fn insert(before: &str, text: &str, after: &str) -> Result<Self, AnnotationError> {
        let place = TextAnchor::parse(before, "", after)?;
        if text.is_empty() {
            return Err(AnnotationError::NothingSaid("insert"));
        }
        Ok(Self { place, change: AnnotationChange::Insert(text.to_owned()) })
    }

    /// Text to take away.
    pub fn new_deletion(before: &str, selected: &str, after: &str) -> Result<Self, AnnotationError> {
        let place = TextAnchor::parse(before, selected, after)?;
        if selected.is_empty() {
            return Err(AnnotationError::NothingSelected("delete"));
        }
        Ok(Self { place, change: AnnotationChange::Delete })
    }

    /// Text to put in place of another.
    pub fn replace(before: &str, selected: &str, text: &str, after: &str) -> Result<Self, AnnotationError> {
        let place = TextAnchor::parse(before, selected, after)?;
        if selected.is_empty() {
            return Err(AnnotationError::NothingSelected("replace"));
        }
        Ok(Self { place, change: AnnotationChange::Replace(text.to_owned()) })
    }

    /// Something to say about a text.
    pub fn new_comment(
        mark: CommentKind,
        before: &str,
        selected: &str,
        text: &str,
        after: &str,
    ) -> Result<Self, AnnotationError> {
        let place = TextAnchor::parse(before, selected, after)?;
        if text.trim().is_empty() {
            return Err(AnnotationError::NothingSaid("say"));
        }
        Ok(Self { place, change: AnnotationChange::Comment(mark, text.to_owned()) })
    }

    /// What it does.
    #[must_use]
    pub fn change(&self) -> &AnnotationChange {
        &self.change
    }
}

impl TextAnchor {
    fn parse(before: &str, selected: &str, after: &str) -> Result<Self, AnnotationError> {
        let wrong = || AnnotationError::Place(before.to_owned());
        let (line, before) =
            before.strip_prefix("Line").and_then(|it| it.split_once(':')).ok_or_else(wrong)?;
        let line = line.trim().parse().ok().filter(|line| *line > 0).ok_or_else(wrong)?;
        let before = before.strip_prefix("...").or(before.strip_prefix('…')).unwrap_or(before);
        let after = after.strip_suffix("...").or(after.strip_suffix('…')).unwrap_or(after);
        // Whoever counts characters differently may write a few more; the nearest ones are kept.
        let (before, after) = (to_context_chars(before), to_context_chars(after));
        Ok(Self {
            line,
            before: before[before.len().saturating_sub(CONTEXT_MAX)..].to_vec(),
            selected: to_context_chars(selected),
            after: after.into_iter().take(CONTEXT_MAX).collect(),
        })
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}", self.change.wire_name(), self.place.line)
    }
}

/// A text as contexts show it: every line break is one sign.
fn to_context_chars(text: &str) -> Vec<char> {
    text.replace("\r\n", "\n").chars().map(|c| if c == '\n' { NEWLINE } else { c }).collect()
}

/// Why annotations are refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationRefusal {
    /// The text around its place is not there any more.
    #[error("{0}: the text around it is not there any more")]
    Gone(String),
    /// Several places look like it.
    #[error("{0}: {1} places look like it, at the lines {2}")]
    Ambiguous(String, usize, String),
    /// Two of them change the same text.
    #[error("{0} and {1} change the same text")]
    Overlap(String, String),
}

/// The text with all annotations worked in; all places are those of the text as it is given.
pub fn apply(text: &str, annotations: &[Annotation]) -> Result<String, AnnotationRefusal> {
    let page = SearchableText::read(text);
    let mut edits = Vec::new();
    for annotation in annotations {
        edits.push(page.make_edit(annotation)?);
    }
    // A stable order: what was written first comes first where both are put in the same place.
    edits.sort_by_key(|edit| (edit.from, edit.to));
    if let Some([one, other]) = edits.array_windows().find(|[one, other]| other.from < one.to) {
        return Err(AnnotationRefusal::Overlap(one.by.to_string(), other.by.to_string()));
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &edits {
        out.push_str(&text[at..edit.from]);
        out.push_str(&edit.text);
        at = edit.to;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

struct TextEdit<'a> {
    from: usize,
    to: usize,
    text: String,
    by: &'a Annotation,
}

/// A text that places are looked up in.
struct SearchableText<'a> {
    text: &'a str,
    shown: Vec<char>,
    /// Where each of them begins in the text, and the end.
    offsets: Vec<usize>,
    crlf: bool,
}

impl<'a> SearchableText<'a> {
    fn read(text: &'a str) -> Self {
        let (mut shown, mut offsets) = (Vec::new(), Vec::new());
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let breaks = c == '\n' || (c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some());
            shown.push(if breaks { NEWLINE } else { c });
            offsets.push(at);
        }
        offsets.push(text.len());
        Self { text, shown, offsets, crlf: text.contains("\r\n") }
    }

    fn make_edit<'b>(&self, annotation: &'b Annotation) -> Result<TextEdit<'b>, AnnotationRefusal> {
        let place = &annotation.place;
        let at = self.find_anchor(annotation)?;
        let (from, to) = (self.offsets[at], self.offsets[at + place.selected.len()]);
        let (from, to, text) = match &annotation.change {
            AnnotationChange::Insert(text) => (from, from, text.clone()),
            AnnotationChange::Delete => (from, to, String::new()),
            AnnotationChange::Replace(text) => (from, to, text.clone()),
            AnnotationChange::Comment(mark, text) => {
                let (below, text) = self.place_comment(to.max(from), *mark, text, to > from);
                (below, below, text)
            }
        };
        let text = if self.crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
        Ok(TextEdit { from, to, text, by: annotation })
    }

    /// Where it belongs, as an index into what is shown.
    fn find_anchor(&self, annotation: &Annotation) -> Result<usize, AnnotationRefusal> {
        let TextAnchor { line, before, selected, after } = &annotation.place;
        let fits = |at: &usize| {
            let (head, tail) = self.shown.split_at(*at);
            let Some(rest) = tail.strip_prefix(selected.as_slice()) else { return false };
            let begins = if before.is_empty() {
                head.last().is_none_or(|c| *c == NEWLINE)
            } else {
                head.ends_with(before)
            };
            let ends = if after.is_empty() {
                rest.first().is_none_or(|c| *c == NEWLINE)
            } else {
                rest.starts_with(after)
            };
            begins && ends
        };
        let mut found: Vec<(usize, usize)> = Vec::new();
        let mut at_line = 1;
        for at in 0..=self.shown.len() {
            if fits(&at) {
                found.push((at, at_line));
            }
            at_line += usize::from(self.shown.get(at) == Some(&NEWLINE));
        }
        let mut there = found.iter().filter(|it| it.1 == *line);
        match (there.next(), there.next(), found.as_slice()) {
            (Some((at, _)), None, _) | (None, _, [(at, _)]) => Ok(*at),
            (None, _, []) => Err(AnnotationRefusal::Gone(annotation.to_string())),
            _ => {
                let lines: Vec<String> = found.iter().map(|it| it.1.to_string()).collect();
                Err(AnnotationRefusal::Ambiguous(annotation.to_string(), found.len(), lines.join(", ")))
            }
        }
    }

    /// Where a comment about what ends at `at` goes, and how it is written: below that line, or below the table or the
    /// code it is in, which it would tear apart.
    fn place_comment(&self, at: usize, mark: CommentKind, text: &str, selects: bool) -> (usize, String) {
        // What is selected with its line break ends in the line before that break.
        let at = if selects && self.text[..at].ends_with('\n') { at - 1 } else { at };
        let mut lines: Vec<(usize, &str)> = Vec::new();
        let mut from = 0;
        for line in self.text.split('\n') {
            lines.push((from, line.strip_suffix('\r').unwrap_or(line)));
            from += line.len() + 1;
        }
        let fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        let in_table = |line: &str| line.trim_start().starts_with('|');
        let mut own = lines.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        let fences = lines[..=own].iter().filter(|(_, line)| fence(line)).count();
        if fences % 2 == 1 {
            let end = lines[own + 1..].iter().position(|(_, line)| fence(line));
            own = end.map_or(lines.len() - 1, |more| own + 1 + more);
        } else if in_table(lines[own].1) {
            own += lines[own + 1..].iter().take_while(|(_, line)| in_table(line)).count();
        }
        let (from, line) = lines[own];
        let next_is_blank = lines.get(own + 1).is_none_or(|(_, next)| next.trim().is_empty());
        let mut words = text.trim().lines().map(str::trim_end);
        let first = words.next().unwrap_or_default();
        let mut out = match (line.trim().is_empty(), own) {
            (true, 0) => String::new(),
            (true, _) => "\n".to_owned(),
            (false, _) => "\n\n".to_owned(),
        };
        out.push_str(&format!("> {} {first}", mark.marker_char()));
        for more in words {
            out.push_str(format!("\n> {more}").trim_end());
        }
        if !next_is_blank {
            out.push('\n');
        }
        (from + line.len(), out)
    }
}

/// What a paper of a task is about, which says where the task goes on once it was annotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentSubject {
    /// Something to know: notes, summaries, reports, what is archived.
    Information,
    /// How work is judged: analyses, tests, the baseline.
    Evaluation,
    /// How work of this type is done.
    Methodology,
    /// What will be done.
    Planning,
    /// What is wanted.
    Requirement,
}

impl DocumentSubject {
    /// Every layer, the outermost first.
    pub const ALL: [Self; 5] =
        [Self::Requirement, Self::Planning, Self::Evaluation, Self::Methodology, Self::Information];

    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Requirement => "requirement",
            Self::Planning => "planning",
            Self::Evaluation => "evaluation",
            Self::Methodology => "methodology",
            Self::Information => "information",
        }
    }

    /// The layer of a paper, by its path. A dot before a name says nothing; an archived plan or analysis is information.
    #[must_use]
    pub fn from_path(path: &str) -> Self {
        let mut parts = path.rsplit(['/', '\\']).map(|part| part.trim_start_matches('.'));
        match parts.next().unwrap_or_default() {
            "target.md" => return Self::Requirement,
            "plan.md" => return Self::Planning,
            "baseline.md" | "convergence-baseline.md" => return Self::Evaluation,
            "type-profile.md" => return Self::Methodology,
            _ => {}
        }
        let folder = |part| match part {
            "analysis" | "test" | "bugfix" => Some(Self::Evaluation),
            "type-profiles" | "thinking" => Some(Self::Methodology),
            _ => None,
        };
        parts.find_map(folder).unwrap_or(Self::Information)
    }

    /// Where the task goes on.
    #[must_use]
    pub fn resume_point(self) -> AnnotationResumePoint {
        match self {
            Self::Requirement => AnnotationResumePoint::Target,
            Self::Planning => AnnotationResumePoint::CheckPlan,
            Self::Evaluation => AnnotationResumePoint::Check,
            Self::Methodology => AnnotationResumePoint::Plan,
            Self::Information => AnnotationResumePoint::GoOn,
        }
    }
}

/// Where a task goes on after it was annotated, the farthest back last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnnotationResumePoint {
    /// Where it was.
    GoOn,
    /// The work is verified and judged again.
    Check,
    /// The plan is judged again.
    CheckPlan,
    /// It is planned anew.
    Plan,
    /// What is wanted is split and confirmed again.
    Target,
}

/// The impact of one annotation in a paper of this layer. A comment changes nothing; other spacing is no other requirement.
fn impact_of(layer: DocumentSubject, annotation: &Annotation) -> AnnotationImpact {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let selected: String =
        annotation.place.selected.iter().map(|c| if *c == NEWLINE { '\n' } else { *c }).collect();
    let only_space = match &annotation.change {
        AnnotationChange::Comment(..) => return AnnotationImpact::None,
        AnnotationChange::Insert(text) => text.trim().is_empty(),
        AnnotationChange::Delete => selected.trim().is_empty(),
        AnnotationChange::Replace(text) => words(text) == words(&selected),
    };
    match layer {
        _ if only_space => AnnotationImpact::Low,
        DocumentSubject::Information => AnnotationImpact::Low,
        DocumentSubject::Planning | DocumentSubject::Evaluation | DocumentSubject::Methodology => {
            AnnotationImpact::Medium
        }
        DocumentSubject::Requirement => AnnotationImpact::High,
    }
}

/// What annotations in several papers together mean: how much they matter, and where the task goes on. Those that change
/// nothing anyone follows leave it where it is.
#[must_use]
pub fn assess_annotations<'a>(
    annotated: impl IntoIterator<Item = (DocumentSubject, &'a Annotation)>,
) -> (AnnotationImpact, AnnotationResumePoint) {
    let each = annotated.into_iter().map(|(layer, annotation)| {
        let impact = impact_of(layer, annotation);
        (
            impact,
            if impact >= AnnotationImpact::Medium {
                layer.resume_point()
            } else {
                AnnotationResumePoint::GoOn
            },
        )
    });
    each.fold((AnnotationImpact::None, AnnotationResumePoint::GoOn), |all, one| {
        (all.0.max(one.0), all.1.max(one.1))
    })
}

/// Why a task takes no annotations now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationBlocker {
    /// An agent is at work on it.
    #[error("an agent is at work on it")]
    AtWork,
    /// It is over.
    #[error("it is over")]
    Over,
    /// It has reached its stage: it takes comments, and changes come as refinements.
    #[error("its stage is accepted: it takes comments only, refine it instead")]
    Accepted,
}

/// Whether a task in this phase takes these annotations.
pub fn check_annotations_allowed(
    phase: &str,
    at_work: bool,
    annotations: &[Annotation],
) -> Result<(), AnnotationBlocker> {
    let comments_only = annotations.iter().all(|it| matches!(it.change, AnnotationChange::Comment(..)));
    match phase {
        _ if at_work => Err(AnnotationBlocker::AtWork),
        "complete" | "cancelled" => Err(AnnotationBlocker::Over),
        "evolving" | "satisfied" if !comments_only => Err(AnnotationBlocker::Accepted),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Plan\n\n1. Read the file\n2. Parse the file\n3. Print it\n";

    fn only(text: &str, annotation: Result<Annotation, AnnotationError>) -> Result<String, String> {
        let annotation = annotation.expect("it is well written");
        apply(text, &[annotation]).map_err(|refused| refused.to_string())
    }

    #[test]
    fn each_kind_does_what_it_says() {
        let insert = Annotation::insert("Line4:...Parse the file", " with care", "↵3. Print it...");
        assert_eq!(only(PLAN, insert).unwrap(), PLAN.replace("Parse the file", "Parse the file with care"));
        let delete = Annotation::new_deletion("Line3:...↵↵1. ", "Read the file", "↵2. Parse...");
        assert_eq!(only(PLAN, delete).unwrap(), PLAN.replace("Read the file", ""));
        let replace = Annotation::replace("Line5:...he file↵3. ", "Print", "Show", " it↵...");
        assert_eq!(only(PLAN, replace).unwrap(), PLAN.replace("Print", "Show"));
        let comment =
            Annotation::new_comment(CommentKind::Note, "Line5:...↵3. ", "Print it", "On paper?", "↵...");
        assert_eq!(
            only(PLAN, comment).unwrap(),
            format!("{PLAN}\n> 📝 On paper?\n").replace("it\n\n>", "it\n\n>")
        );
    }

    #[test]
    fn a_moved_place_is_found() {
        let moved = format!("Another line.\n\n{PLAN}");
        let replace = || Annotation::replace("Line5:...↵3. ", "Print", "Show", " it↵...");
        assert_eq!(only(&moved, replace()).unwrap(), moved.replace("Print", "Show"));
    }

    #[test]
    fn places_that_look_alike_are_told_apart_by_the_line_or_refused() {
        let text = "- do it\n- do it\n- do it\n";
        let at = |line| Annotation::replace(&format!("Line{line}:...- "), "do", "see", " it...");
        assert_eq!(only(text, at(2)).unwrap(), "- do it\n- see it\n- do it\n");
        assert_eq!(
            only(text, at(9)).unwrap_err(),
            "replace at line 9: 3 places look like it, at the lines 1, 2, 3"
        );
        let twice = Annotation::replace("Line1:...", "a", "b", "...");
        assert!(only("a a", twice).is_err(), "neither begins and ends its line");
        let twice = Annotation::replace("Line1:...x ", "a", "b", " x...");
        assert_eq!(
            only("x a x a x", twice).unwrap_err(),
            "replace at line 1: 2 places look like it, at the lines 1, 1"
        );
    }

    #[test]
    fn what_is_gone_is_refused_and_nothing_changes() {
        let good = Annotation::new_deletion("Line3:...1. ", "Read", " the...").unwrap();
        let gone = Annotation::new_deletion("Line4:...2. ", "Sing", " the...").unwrap();
        let refused = apply(PLAN, &[good, gone]).unwrap_err();
        assert_eq!(refused.to_string(), "delete at line 4: the text around it is not there any more");
    }

    #[test]
    fn several_are_worked_in_at_once_by_the_text_as_it_was() {
        let all = [
            Annotation::replace("Line5:...3. ", "Print", "Show", " it...").unwrap(),
            Annotation::new_deletion("Line3:...↵↵", "1. Read the file\n", "2. Parse...").unwrap(),
            Annotation::insert("Line4:...the file↵", "2a. Check it\n", "3. Print it...").unwrap(),
        ];
        assert_eq!(apply(PLAN, &all).unwrap(), "# Plan\n\n2. Parse the file\n2a. Check it\n3. Show it\n");
    }

    #[test]
    fn two_that_change_the_same_text_are_refused() {
        let one = Annotation::new_deletion("Line4:...2. ", "Parse the file", "↵...").unwrap();
        let other = Annotation::replace("Line4:...2. Parse ", "the", "a", " file...").unwrap();
        let refused = apply(PLAN, &[one, other]).unwrap_err();
        assert_eq!(refused.to_string(), "delete at line 4 and replace at line 4 change the same text");
    }

    #[test]
    fn the_edges_of_a_text_are_places() {
        let insert = |before: &str, after: &str| Annotation::insert(before, "x", after);
        assert_eq!(only("", insert("Line1:...", "...")).unwrap(), "x");
        assert_eq!(only("ab", insert("Line1:...", "ab...")).unwrap(), "xab");
        assert_eq!(only("ab", insert("Line1:...ab", "...")).unwrap(), "abx");
        assert_eq!(only("a\n\nb", insert("Line2:...a↵", "↵b...")).unwrap(), "a\nx\nb");
    }

    #[test]
    fn line_breaks_of_either_kind_are_kept() {
        let text = "one\r\ntwo\r\nthree\r\n";
        let insert = Annotation::insert("Line2:...one↵two", "\nand", "↵three...");
        assert_eq!(only(text, insert).unwrap(), "one\r\ntwo\r\nand\r\nthree\r\n");
        let comment = Annotation::new_comment(CommentKind::Answer, "Line1:...", "one", "yes", "↵two...");
        assert_eq!(only(text, comment).unwrap(), "one\r\n\r\n> 💬 yes\r\n\r\ntwo\r\nthree\r\n");
    }

    /// The annotation that a person makes who selects these bytes of a text.
    fn select_text(text: &str, range: std::ops::Range<usize>, change: AnnotationChange) -> Annotation {
        let before = to_context_chars(&text[..range.start]);
        let place = TextAnchor {
            line: 1 + before.iter().filter(|c| **c == NEWLINE).count(),
            before: before[before.len().saturating_sub(CONTEXT_MAX)..].to_vec(),
            selected: to_context_chars(&text[range.clone()]),
            after: to_context_chars(&text[range.end..]).into_iter().take(CONTEXT_MAX).collect(),
        };
        Annotation { place, change }
    }

    #[test]
    fn comments_only_add() {
        let text = "Some\ntext.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nrun it\n```\nend";
        for (from, to) in [(0, 4), (0, 5), (5, 10), (12, 17), (text.len() - 3, text.len())] {
            let comment = AnnotationChange::Comment(CommentKind::Note, "one\ntwo".to_owned());
            let annotation = select_text(text, from..to, comment);
            let out = apply(text, &[annotation]).expect("it is found");
            let mut old = text.chars().peekable();
            for c in out.chars() {
                old.next_if(|next| *next == c);
            }
            assert_eq!(old.next(), None, "all of the text is still there, in order: {out}");
            assert!(out.contains("> 📝 one\n> two"), "{out}");
        }
    }

    #[test]
    fn a_comment_tears_no_table_and_no_code_apart() {
        let text = "| a | b |\n|---|---|\n| 1 | 2 |\nend\n\n```sh\nrun it\n```\n";
        let comment = |before, selected, after| {
            only(text, Annotation::new_comment(CommentKind::Note, before, selected, "why", after)).unwrap()
        };
        assert_eq!(comment("Line1:...", "| a ", "| b |..."), text.replace("2 |\n", "2 |\n\n> 📝 why\n\n"));
        assert_eq!(
            comment("Line7:...```sh↵", "run", " it..."),
            text.replace("it\n```\n", "it\n```\n\n> 📝 why\n")
        );
    }

    #[test]
    fn a_selection_finds_its_own_place_again() {
        let text = "aaa aaa\naaa aaa\n\nnaïve ↵ sign…\r\nlast";
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for (place, from) in ends.iter().enumerate() {
            for to in &ends[place + 1..] {
                if text[..*to].ends_with('\r') || text[..*from].ends_with('\r') {
                    continue; // nobody selects half of a line break
                }
                let made = select_text(text, *from..*to, AnnotationChange::Replace("X".to_owned()));
                let TextAnchor { line, before, after, .. } = &made.place;
                let before = format!("Line{line}:...{}", before.iter().collect::<String>());
                let after = format!("{}...", after.iter().collect::<String>());
                let read = Annotation::replace(&before, &text[*from..*to], "X", &after).unwrap();
                for annotation in [made, read] {
                    let out = apply(text, &[annotation]).expect("its own text");
                    assert_eq!(out, format!("{}X{}", &text[..*from], &text[*to..]));
                }
            }
        }
    }

    #[test]
    fn what_is_no_annotation_is_said_so() {
        let place = Annotation::insert("12: text", "x", "...").unwrap_err().to_string();
        assert!(place.starts_with("`12: text` names no place"), "{place}");
        assert!(Annotation::insert("Line0:...", "x", "...").is_err());
        assert!(Annotation::insert("Linex:...", "x", "...").is_err());
        assert_eq!(
            Annotation::new_deletion("Line1:...", "", "...").unwrap_err().to_string(),
            "nothing is selected to delete"
        );
        assert!(Annotation::insert("Line1:...", "", "...").is_err());
        assert!(Annotation::new_comment(CommentKind::Note, "Line1:...", "a", " ", "...").is_err());
    }

    #[test]
    fn the_layer_comes_from_the_paper() {
        let cases = [
            (".target.md", DocumentSubject::Requirement),
            ("plan.md", DocumentSubject::Planning),
            ("AiTasks/x/.plan.md", DocumentSubject::Planning),
            (".plan-stage-1.md", DocumentSubject::Information),
            (".analysis/2026-01-01-post-plan-pass.md", DocumentSubject::Evaluation),
            (".analysis-stage-2/x.md", DocumentSubject::Information),
            ("test/a.md", DocumentSubject::Evaluation),
            ("baseline.md", DocumentSubject::Evaluation),
            (".type-profile.md", DocumentSubject::Methodology),
            ("notes/plan.txt", DocumentSubject::Information),
            ("latest.md", DocumentSubject::Information),
        ];
        for (path, layer) in cases {
            assert_eq!(DocumentSubject::from_path(path), layer, "{path}");
        }
    }

    #[test]
    fn the_impact_says_where_the_task_goes_on() {
        let replace = |text: &str| Annotation::replace("Line1:...", "a b", text, "...").unwrap();
        let comment = Annotation::new_comment(CommentKind::Note, "Line1:...", "a b", "why", "...").unwrap();
        let change = replace("c");
        assert_eq!(
            assess_annotations([(DocumentSubject::Requirement, &comment)]),
            (AnnotationImpact::None, AnnotationResumePoint::GoOn)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Requirement, &replace("a  b"))]),
            (AnnotationImpact::Low, AnnotationResumePoint::GoOn)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Information, &change)]),
            (AnnotationImpact::Low, AnnotationResumePoint::GoOn)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Evaluation, &change)]),
            (AnnotationImpact::Medium, AnnotationResumePoint::Check)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Planning, &change)]),
            (AnnotationImpact::Medium, AnnotationResumePoint::CheckPlan)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Methodology, &change)]),
            (AnnotationImpact::Medium, AnnotationResumePoint::Plan)
        );
        assert_eq!(
            assess_annotations([(DocumentSubject::Requirement, &change)]),
            (AnnotationImpact::High, AnnotationResumePoint::Target)
        );
        let all = [
            (DocumentSubject::Planning, &change),
            (DocumentSubject::Requirement, &comment),
            (DocumentSubject::Evaluation, &change),
        ];
        assert_eq!(assess_annotations(all), (AnnotationImpact::Medium, AnnotationResumePoint::CheckPlan));
    }

    #[test]
    fn some_phases_take_no_changes() {
        let comment = [Annotation::new_comment(CommentKind::Note, "Line1:...", "a", "why", "...").unwrap()];
        let change = [Annotation::new_deletion("Line1:...", "a", "...").unwrap()];
        assert_eq!(check_annotations_allowed("executing", false, &change), Ok(()));
        assert_eq!(check_annotations_allowed("executing", true, &comment), Err(AnnotationBlocker::AtWork));
        assert_eq!(check_annotations_allowed("satisfied", false, &comment), Ok(()));
        assert_eq!(check_annotations_allowed("evolving", false, &change), Err(AnnotationBlocker::Accepted));
        assert_eq!(check_annotations_allowed("cancelled", false, &comment), Err(AnnotationBlocker::Over));
    }
}
