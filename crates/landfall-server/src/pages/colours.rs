//! Colours for code: what a piece of a line is, as a class. The style sheet knows the colours.

use std::ops::Range;
use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// What scopes mean to us; the innermost that is named here wins.
static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    const NAMES: &[(&str, &str)] = &[
        ("comment", "c-comment"),
        ("punctuation.definition.comment", "c-comment"),
        ("string", "c-string"),
        ("punctuation.definition.string", "c-string"),
        ("constant.character.escape", "c-escape"),
        ("constant.numeric", "c-number"),
        ("constant", "c-constant"),
        ("keyword.operator", "c-operator"),
        ("keyword", "c-keyword"),
        ("storage", "c-keyword"),
        ("entity.name.function", "c-function"),
        ("support.function", "c-function"),
        ("variable.function", "c-function"),
        ("entity.name.tag", "c-tag"),
        ("entity.other.attribute-name", "c-attribute"),
        ("entity.name", "c-type"),
        ("support.type", "c-type"),
        ("support.class", "c-type"),
        ("markup.heading", "c-keyword"),
        ("variable.language", "c-keyword"),
        ("variable.parameter", "c-variable"),
    ];
    let mut classes: Vec<(Scope, &'static str)> =
        NAMES.iter().filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class))).collect();
    classes.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len())); // the nearest name first
    classes
});

const LINE_MAX: usize = 1_000; // longer lines are not written by people

/// Colours the lines of one file, in order.
pub(super) struct SyntaxHighlighter {
    syntax: &'static SyntaxReference,
    old: Option<HighlightState>,
    new: Option<HighlightState>,
}

struct HighlightState {
    state: ParseState,
    stack: ScopeStack,
}

/// Which of both texts a line is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffVersion {
    Old,
    New,
    Both,
}

/// A piece of a line and what it is.
pub(super) type ColourSpan = (Range<usize>, &'static str);

impl SyntaxHighlighter {
    /// For a file of this name; none if nothing is known about such files.
    pub(super) fn for_file(name: &str) -> Option<Self> {
        let file = name.rsplit('/').next().unwrap_or(name);
        let ending = file.rsplit_once('.').map_or(file, |(_, ending)| ending).to_ascii_lowercase();
        let ending = match ending.as_str() {
            "ts" | "tsx" | "mts" | "cts" | "jsx" | "mjs" | "cjs" => "js",
            "htm" | "vue" | "svelte" => "html",
            "kt" | "kts" => "java",
            "zsh" | "bats" => "sh",
            "jsonc" | "json5" => "json",
            "scss" | "less" => "css",
            other => other,
        };
        let syntax =
            SYNTAXES.find_syntax_by_extension(file).or_else(|| SYNTAXES.find_syntax_by_extension(ending))?;
        (syntax.name != "Plain Text").then(|| {
            let mut painter = Self { syntax, old: None, new: None };
            painter.start_hunk();
            painter
        })
    }

    /// A new hunk begins: what was open before is not known any more.
    pub(super) fn start_hunk(&mut self) {
        let side = || Some(HighlightState { state: ParseState::new(self.syntax), stack: ScopeStack::new() });
        (self.old, self.new) = (side(), side());
    }

    /// The pieces of the next line, in order. A line we cannot read has none, and neither has what follows it in the hunk.
    pub(super) fn highlight_line(&mut self, within: DiffVersion, text: &str) -> Vec<ColourSpan> {
        let mut pieces = Vec::new();
        if within != DiffVersion::New {
            pieces = Self::read(&mut self.old, text);
        }
        if within != DiffVersion::Old {
            pieces = Self::read(&mut self.new, text);
        }
        pieces
    }

    fn read(side: &mut Option<HighlightState>, text: &str) -> Vec<ColourSpan> {
        let Some(open) = side else { return Vec::new() };
        let pieces = if text.len() > LINE_MAX { None } else { open.read(text) };
        if pieces.is_none() {
            *side = None;
        }
        pieces.unwrap_or_default()
    }
}

impl HighlightState {
    fn read(&mut self, text: &str) -> Option<Vec<ColourSpan>> {
        let line = format!("{text}\n");
        let changes = self.state.parse_line(&line, &SYNTAXES).ok()?;
        let mut pieces: Vec<ColourSpan> = Vec::new();
        let mut from = 0;
        for (at, change) in &changes {
            self.push(from..(*at).min(text.len()), &mut pieces);
            from = (*at).min(text.len());
            self.stack.apply(change).ok()?;
        }
        self.push(from..text.len(), &mut pieces);
        Some(pieces)
    }

    fn push(&self, range: Range<usize>, pieces: &mut Vec<ColourSpan>) {
        if range.is_empty() {
            return;
        }
        let class = self.stack.scopes.iter().rev().find_map(|scope| {
            CLASSES.iter().find(|(known, _)| known.is_prefix_of(*scope)).map(|(_, class)| *class)
        });
        let Some(class) = class else { return };
        match pieces.last_mut() {
            Some((last, same)) if last.end == range.start && *same == class => last.end = range.end,
            Some(_) | None => pieces.push((range, class)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_apart() {
        let mut painter = SyntaxHighlighter::for_file("src/main.rs").expect("Rust is known");
        let text = "let a = \"x\"; // why";
        let pieces = painter.highlight_line(DiffVersion::New, text);
        let told: Vec<(&str, &str)> =
            pieces.iter().map(|(range, class)| (&text[range.clone()], *class)).collect();
        assert!(told.contains(&("let", "c-keyword")), "{told:?}");
        assert!(told.contains(&("\"x\"", "c-string")), "{told:?}");
        assert!(told.iter().any(|(text, class)| text.starts_with("//") && *class == "c-comment"), "{told:?}");
    }

    #[test]
    fn a_comment_stays_open_on_its_own_side() {
        let mut painter = SyntaxHighlighter::for_file("a.c").expect("C is known");
        painter.highlight_line(DiffVersion::New, "/* open");
        assert_eq!(painter.highlight_line(DiffVersion::New, "int a;"), [(0..6, "c-comment")]);
        assert!(
            painter.highlight_line(DiffVersion::Old, "int a;").iter().all(|(_, class)| *class != "c-comment")
        );
    }

    #[test]
    fn unknown_files_and_endless_lines_are_plain() {
        assert!(SyntaxHighlighter::for_file("notes.xyz").is_none());
        assert!(SyntaxHighlighter::for_file("").is_none());
        let mut painter = SyntaxHighlighter::for_file("a.js").expect("JavaScript is known");
        assert!(painter.highlight_line(DiffVersion::New, &"x(".repeat(4_000)).is_empty());
    }
}
