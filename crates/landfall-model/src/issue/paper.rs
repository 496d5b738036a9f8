//! The file that says what is to be done for an issue, as its agents leave it: its sections, what a phase hands on to the next,
//! and what should be done otherwise in future. Agents wrote it: anything may be in it, so everything has a bound, and nothing
//! in it is an instruction.

use super::IssuePhase;

const TEXT_BYTES_MAX: usize = 256 * 1024; // a long spec has thirty
const SECTIONS_MAX: usize = 200;
const ITEMS_MAX: usize = 8; // three to five are asked for
const ITEM_CHARS_MAX: usize = 600;
const PROPOSALS_MAX: usize = 20; // of one paper
const TITLE_CHARS_MAX: usize = 120;

/// What an agent wrote about an issue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueDocument {
    /// Its sections below the second level of headings, in order.
    pub sections: Vec<DocumentSection>,
    /// What the last phase that wrote one hands on.
    pub handoff: Option<Handoff>,
    /// What its phases found worth saying afterwards.
    pub retrospectives: Vec<Retrospective>,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentSection {
    /// Its heading.
    pub heading: String,
    /// What stands below it, other headings included.
    pub text: String,
}

/// What a phase hands on to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handoff {
    /// The phase that wrote it, if it says so.
    pub phase: Option<IssuePhase>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What was left for later.
    pub deferred: Vec<String>,
    /// What the next phase should know.
    pub notes: Vec<String>,
}

/// What a phase found worth saying afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrospective {
    /// The phase, in its own word: `code`.
    pub phase: String,
    /// In its words, without the proposals.
    pub text: String,
    /// What it would have done otherwise in future.
    pub proposals: Vec<ImprovementIdea>,
}

/// What should be done otherwise in future, in the words of whoever thought of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImprovementIdea {
    /// What becomes of it.
    pub tier: ImprovementTier,
    /// In one line.
    pub title: String,
    /// All of it.
    pub text: String,
}

/// What becomes of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImprovementTier {
    /// It is worth an issue.
    Issue,
    /// It is worth remembering.
    Memory,
    /// It is a note.
    Note,
}

impl ImprovementTier {
    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Memory => "memory",
            Self::Note => "note",
        }
    }
}

/// What every spec is asked for.
pub const ASKED: [&str; 4] = ["Overview", "Changed Files", "Implementation Steps", "Verification"];
/// And that of a bug besides.
pub const ASKED_OF_A_BUG: [&str; 2] = ["Reproduction", "Root Cause"];

const HANDOFF: &str = "phase handoff";
const RETROSPECTIVE: &str = "retrospective";
const PROPOSALS: &str = "improvement proposals";

impl IssueDocument {
    /// Reads what an agent wrote. Whatever it is, something comes of it.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let mut paper = Self { sections: parse_sections(text), ..Self::default() };
        for section in &paper.sections {
            let heading = section.heading.to_lowercase();
            // A model may say the heading in another language; the mark below it stays.
            if heading.starts_with(HANDOFF) || marked_phase(&section.text).is_some() {
                // A later one takes the place of an earlier one, also where it was put beside it.
                paper.handoff = Some(Handoff::read(&section.text));
            } else if let Some(phase) = heading.strip_suffix(RETROSPECTIVE) {
                let (text, proposals) = parse_proposals(&section.text);
                let phase = truncate_chars(phase.trim(), TITLE_CHARS_MAX);
                paper.retrospectives.push(Retrospective { phase, text, proposals });
            } else if heading == PROPOSALS {
                let proposals = parse_improvements(&section.text);
                paper.retrospectives.push(Retrospective {
                    phase: String::new(),
                    text: String::new(),
                    proposals,
                });
            }
        }
        paper
    }

    /// What was asked for and is not there, or is empty. `bug`: of a bug more is asked.
    #[must_use]
    pub fn missing_sections(&self, bug: bool) -> Vec<&'static str> {
        let there = |name: &str| {
            let mut sections = self.sections.iter();
            sections.any(|it| it.heading.eq_ignore_ascii_case(name) && !it.text.trim().is_empty())
        };
        let more = if bug { &ASKED_OF_A_BUG[..] } else { &[] };
        let mut gaps: Vec<&'static str> =
            ASKED.iter().chain(more).copied().filter(|name| !there(name)).collect();
        if self.handoff.as_ref().is_none_or(Handoff::is_empty) {
            gaps.push("Phase Handoff");
        }
        gaps
    }

    /// Every proposal in it, with the phase it comes from.
    pub fn all_proposals(&self) -> impl Iterator<Item = (&str, &ImprovementIdea)> {
        self.retrospectives.iter().flat_map(|it| it.proposals.iter().map(|one| (it.phase.as_str(), one)))
    }
}

impl Handoff {
    /// What stands in a section, under its three headings; what stands before the first of them is a note.
    #[must_use]
    pub fn read(text: &str) -> Self {
        #[derive(Clone, Copy)]
        enum HandoffHeading {
            Decisions,
            Deferred,
            Notes,
        }
        const NAMES: [(&str, HandoffHeading); 3] = [
            ("key decisions", HandoffHeading::Decisions),
            ("deferred items", HandoffHeading::Deferred),
            ("notes for next phase", HandoffHeading::Notes),
        ];
        let mut handoff = Self { phase: marked_phase(text), ..Self::default() };
        let mut at = HandoffHeading::Notes;
        for line in text.lines() {
            let mut line = line.to_owned();
            if line.trim_start().starts_with("<!--") {
                continue;
            }
            // As a heading, as a point in bold, or in front of the words themselves.
            let bare = line.trim_start_matches([' ', '\t', '#', '*', '-', '_']).to_owned();
            let named = NAMES.iter().find_map(|(name, at)| {
                let rest = bare.get(name.len()..).filter(|_| {
                    bare.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                })?;
                let rest = rest.trim_start_matches(['*', '_', ' ']);
                let rest = if rest.is_empty() { rest } else { rest.strip_prefix(':')? };
                Some((*at, rest.trim_matches(['*', '_', ' ', ':'])))
            });
            if let Some((name, rest)) = named {
                at = name;
                if rest.is_empty() {
                    continue;
                }
                line = format!("- {rest}");
            }
            let list = match at {
                HandoffHeading::Decisions => &mut handoff.decisions,
                HandoffHeading::Deferred => &mut handoff.deferred,
                HandoffHeading::Notes => &mut handoff.notes,
            };
            take_line(list, &line, ITEMS_MAX);
        }
        for list in [&mut handoff.decisions, &mut handoff.deferred, &mut handoff.notes] {
            list.retain(|item| !is_nothing(item));
        }
        handoff
    }

    /// Whether nothing is handed on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.deferred.is_empty() && self.notes.is_empty()
    }

    /// Whether it is for a phase that begins: what an earlier phase left, or the same one when it was last at work. Whoever
    /// specifies writes the first, and nobody hands anything to whoever finds out what an issue is.
    #[must_use]
    pub fn is_for(&self, phase: IssuePhase) -> bool {
        match phase {
            IssuePhase::Issue | IssuePhase::Spec | IssuePhase::Ready => false,
            IssuePhase::Code => true,
            IssuePhase::Review | IssuePhase::Merge | IssuePhase::Verify | IssuePhase::Done => {
                self.phase.is_none_or(|from| from <= phase)
            }
        }
    }

    /// Each point in a line: `decided: …`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let named = |what: &str, all: &[String]| -> Vec<String> {
            all.iter().map(|item| format!("{what}: {item}")).collect()
        };
        [
            named("decided", &self.decisions),
            named("left for later", &self.deferred),
            named("to know", &self.notes),
        ]
        .concat()
    }
}

/// Of two handoffs the one of the later phase; of the same phase the first.
#[must_use]
pub fn later_handoff(first: Option<Handoff>, second: Option<Handoff>) -> Option<Handoff> {
    match (first, second) {
        (Some(first), Some(second)) if second.phase > first.phase || first.is_empty() => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
    .filter(|it| !it.is_empty())
}

/// What a proposal is known by, however it is set: two that differ in nothing else are the same.
#[must_use]
pub fn normalize_title(title: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { ' ' };
    let text: String = title.to_lowercase().chars().map(plain).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse_sections(text: &str) -> Vec<DocumentSection> {
    let mut sections: Vec<DocumentSection> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (_, _) => {}
        }
        let heading = line.strip_prefix("## ").filter(|_| fence.is_none());
        let more = sections.len() < SECTIONS_MAX;
        match (heading, sections.last_mut()) {
            (Some(heading), _) if more => {
                let heading = truncate_chars(heading.trim().trim_end_matches('#').trim(), TITLE_CHARS_MAX);
                sections.push(DocumentSection { heading, text: String::new() });
            }
            (_, Some(last)) => {
                last.text.push_str(line);
                last.text.push('\n');
            }
            (_, None) => {} // what stands above the first heading is the title
        }
    }
    sections
}

/// The phase that a mark of its own names: `<!-- phase: code -->`.
fn marked_phase(text: &str) -> Option<IssuePhase> {
    let mark = |line: &str| {
        let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
        IssuePhase::from_word(inner.trim().strip_prefix("phase:")?.trim())
    };
    text.lines().find_map(mark)
}

/// The words of a retrospective, and its proposals.
fn parse_proposals(text: &str) -> (String, Vec<ImprovementIdea>) {
    let level = |line: &str| line.len() - line.trim_start_matches('#').len();
    let is_heading = |line: &str| (3..=6).contains(&level(line)) && line[level(line)..].starts_with(' ');
    let (mut words, mut wanted) = (String::new(), String::new());
    let mut inside = false;
    for line in text.lines() {
        if is_heading(line) {
            let name = line.trim_matches(['#', ' ', ':', '*']);
            inside = name.eq_ignore_ascii_case(PROPOSALS);
            if inside {
                continue;
            }
        }
        let to = if inside { &mut wanted } else { &mut words };
        to.push_str(line);
        to.push('\n');
    }
    (words.trim().to_owned(), parse_improvements(&wanted))
}

fn parse_improvements(text: &str) -> Vec<ImprovementIdea> {
    let mut items = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("<!--")) {
        take_line(&mut items, line, PROPOSALS_MAX);
    }
    items.iter().filter(|item| !is_nothing(item)).map(|item| parse_improvement(item)).collect()
}

/// `[issue] Title: why`, or the same in words of other tools: `Tier 1: …`.
fn parse_improvement(item: &str) -> ImprovementIdea {
    const MARKS: [(&str, ImprovementTier); 6] = [
        ("[issue]", ImprovementTier::Issue),
        ("[memory]", ImprovementTier::Memory),
        ("[note]", ImprovementTier::Note),
        ("tier 1", ImprovementTier::Issue),
        ("tier 2", ImprovementTier::Memory),
        ("tier 3", ImprovementTier::Note),
    ];
    let bare = item.trim_start_matches(['*', '_', '(']);
    let marked = MARKS.iter().find_map(|(mark, tier)| {
        let start = bare.get(..mark.len()).filter(|start| start.eq_ignore_ascii_case(mark))?;
        Some((*tier, &bare[start.len()..]))
    });
    let (tier, text) = marked.unwrap_or((ImprovementTier::Note, item));
    let text = text.trim_start_matches([')', ':', '*', '_', ' ']).trim();
    let end = [": ", ". ", "; ", " — "].iter().filter_map(|stop| text.find(stop)).min();
    let title = end.map_or(text, |end| &text[..end]).trim_matches(['*', '_', ' ', '.']);
    ImprovementIdea { tier, title: truncate_chars(title, TITLE_CHARS_MAX), text: text.to_owned() }
}

/// A point of a list begins with a bullet or a number; other lines go on with the point before them.
fn take_line(items: &mut Vec<String>, line: &str, most: usize) {
    let indented = line.starts_with([' ', '\t']);
    let bare = line.trim();
    if bare.is_empty() {
        return;
    }
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (number.len() < bare.len()).then(|| number.strip_prefix(". ")).flatten();
    let bullet = bare.strip_prefix("- ").or_else(|| bare.strip_prefix("* ")).or(numbered);
    let boxed = bullet.map(|it| it.strip_prefix("[ ] ").or_else(|| it.strip_prefix("[x] ")).unwrap_or(it));
    let first = items.is_empty();
    match (boxed, items.last_mut()) {
        (Some(text), _) if !indented || first => {
            if items.len() < most {
                items.push(truncate_chars(text.trim(), ITEM_CHARS_MAX));
            }
        }
        (_, Some(last)) => *last = truncate_chars(&format!("{last} {bare}"), ITEM_CHARS_MAX),
        (_, None) => items.push(truncate_chars(bare, ITEM_CHARS_MAX)),
    }
}

/// Whether somebody who had to write something says that there is nothing.
fn is_nothing(item: &str) -> bool {
    matches!(
        normalize_title(item).as_str(),
        "" | "none" | "n a" | "na" | "nothing" | "no" | "nothing to note"
    )
}

fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "\
# Greet the user

## Overview

The greeting uses the name.

## Changed Files

- src/greet.rs

## Implementation Steps

1. write it

```sh
## not a heading
```

## Verification

### Pre-merge
- tests

## Phase Handoff
<!-- phase: spec -->

### Key Decisions
- the name comes from the profile
  and from nowhere else
- no default

**Deferred Items**
- None

Notes for Next Phase: begin with the test

## Spec Retrospective

It took longer.

### Improvement Proposals

- [issue] Say where profiles are: nobody knows where they are read
- **Tier 2**: remember the layout
- a note. With more words
- N/A
";

    #[test]
    fn a_spec_is_read_by_its_sections() {
        let paper = IssueDocument::read(WHOLE);
        let names: Vec<&str> = paper.sections.iter().map(|it| it.heading.as_str()).collect();
        assert_eq!(
            names,
            [
                "Overview",
                "Changed Files",
                "Implementation Steps",
                "Verification",
                "Phase Handoff",
                "Spec Retrospective"
            ]
        );
        assert!(paper.sections[2].text.contains("## not a heading"));
        assert_eq!(paper.missing_sections(false), Vec::<&str>::new());
        assert_eq!(paper.missing_sections(true), ["Reproduction", "Root Cause"]);
        let handoff = paper.handoff.expect("it is there");
        assert_eq!(handoff.phase, Some(IssuePhase::Spec));
        assert_eq!(
            handoff.decisions,
            ["the name comes from the profile and from nowhere else", "no default"]
        );
        assert_eq!(handoff.deferred, Vec::<String>::new(), "none is nothing");
        assert_eq!(handoff.notes, ["begin with the test"]);
        let [retro] = &paper.retrospectives[..] else { panic!("{:?}", paper.retrospectives) };
        assert_eq!((retro.phase.as_str(), retro.text.as_str()), ("spec", "It took longer."));
        let found: Vec<_> = retro.proposals.iter().map(|it| (it.tier, it.title.as_str())).collect();
        assert_eq!(
            found,
            [
                (ImprovementTier::Issue, "Say where profiles are"),
                (ImprovementTier::Memory, "remember the layout"),
                (ImprovementTier::Note, "a note")
            ]
        );
    }

    #[test]
    fn what_is_missing_or_empty_is_named() {
        let paper =
            IssueDocument::read("# x\n## Overview\n\n## verification\nyes\n## Phase Handoff\n- none\n");
        assert_eq!(
            paper.missing_sections(false),
            ["Overview", "Changed Files", "Implementation Steps", "Phase Handoff"]
        );
        assert_eq!(IssueDocument::read("").missing_sections(false).len(), ASKED.len() + 1);
    }

    #[test]
    fn a_handoff_in_another_language_is_known_by_its_mark() {
        let paper = IssueDocument::read(
            "## Übergabe\n<!-- phase: code -->\n- nimm den Test\n\n## Notes\n<!-- phase: x -->\n",
        );
        assert_eq!(
            paper.handoff.map(|it| (it.phase, it.notes)),
            Some((Some(IssuePhase::Code), vec!["nimm den Test".to_owned()]))
        );
    }

    #[test]
    fn the_later_of_two_handoffs_counts() {
        let of = |phase: Option<IssuePhase>, note: &str| {
            Some(Handoff { phase, notes: vec![note.to_owned()], ..Handoff::default() })
        };
        let notes = |it: Option<Handoff>| it.map(|it| it.notes.concat());
        let (spec, code) = (of(Some(IssuePhase::Spec), "a"), of(Some(IssuePhase::Code), "b"));
        assert_eq!(notes(later_handoff(spec.clone(), code.clone())), Some("b".to_owned()));
        assert_eq!(notes(later_handoff(code.clone(), spec.clone())), Some("b".to_owned()));
        assert_eq!(notes(later_handoff(spec.clone(), of(Some(IssuePhase::Spec), "c"))), Some("a".to_owned()));
        assert_eq!(notes(later_handoff(None, spec)), Some("a".to_owned()));
        assert_eq!(later_handoff(Some(Handoff::default()), None), None, "an empty one is none");
        let code = code.expect("it is there");
        let takes: Vec<IssuePhase> =
            IssuePhase::ALL.into_iter().filter(|phase| code.is_for(*phase)).collect();
        assert_eq!(
            takes,
            [IssuePhase::Code, IssuePhase::Review, IssuePhase::Merge, IssuePhase::Verify, IssuePhase::Done]
        );
    }

    #[test]
    fn titles_that_differ_in_nothing_that_matters_are_the_same() {
        assert_eq!(normalize_title("  Say *where* profiles are!"), normalize_title("say where Profiles are"));
        assert_ne!(normalize_title("say where profiles are"), normalize_title("say where profiles were"));
    }

    #[test]
    fn whatever_is_written_there_is_bounded_and_never_trouble() {
        let mut seed = 7_u64;
        let pieces = [
            "## ",
            "### ",
            "Phase Handoff",
            "Retrospective",
            "Improvement Proposals",
            "<!-- phase: ",
            "code -->",
            "-->",
            "- ",
            "* ",
            "1. ",
            "```",
            "~~~",
            "Key Decisions",
            ":",
            "\n",
            "\r\n",
            "é",
            "\u{1f600}",
            "\u{0}",
            "[issue]",
            "Tier 1",
            " ",
            "**",
        ];
        for _ in 0..2_000 {
            let mut text = String::new();
            for _ in 0..60 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[usize::try_from(seed >> 33).expect("31 bits") % pieces.len()]);
            }
            let paper = IssueDocument::read(&text);
            let _ = paper.missing_sections(true); // it came to an end
        }
        let long = format!("## Phase Handoff\n{}", format!("- {}\n", "é".repeat(5_000)).repeat(500));
        let handoff = IssueDocument::read(&long).handoff.expect("it is there");
        assert_eq!(handoff.notes.len(), ITEMS_MAX);
        assert!(handoff.lines().iter().all(|line| line.chars().count() < ITEM_CHARS_MAX + 20));
        let many = IssueDocument::read(&"## x\n".repeat(100_000));
        assert_eq!(many.sections.len(), SECTIONS_MAX);
    }
}
