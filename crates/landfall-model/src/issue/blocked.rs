//! Which issues an issue waits for, by its text. Trackers have a relation for that; people write it down all the same.

use std::collections::BTreeSet;

/// The most blockers that are read out of one text: more is a list of issues, not of blockers.
const BLOCKERS_MAX: usize = 20;

/// Words before `blocked by` that say that nothing is waited for now.
const NEGATIONS: [&str; 5] = ["not", "no longer", "was", "isn't", "isn’t"];

/// The numbers that follow `blocked by` in a text, such as in `Blocked by #3, #4 and #5`. Code is left out, and so is an issue
/// of another repository. `No longer blocked by #3` names no blocker.
#[must_use]
pub fn blockers_in(body: &str) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut fenced = false;
    for line in body.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced || line.starts_with('>') {
            continue;
        }
        // Between two backticks stands code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let lower = prose.to_lowercase().replace("blocked-by", "blocked by").replace("**", "");
        for (start, phrase) in lower.match_indices("blocked by") {
            if !is_negated(&lower[..start]) {
                found.extend(listed(&lower[start + phrase.len()..]));
            }
        }
    }
    found.into_iter().take(BLOCKERS_MAX).collect()
}

/// Whether the text before `blocked by` ends with words that take it back.
fn is_negated(before: &str) -> bool {
    let words: Vec<&str> = before.split_whitespace().collect();
    NEGATIONS.iter().any(|negation| {
        let negation: Vec<&str> = negation.split(' ').collect();
        words.ends_with(&negation)
    })
}

/// The numbers at the beginning of a text, with nothing but commas and `and` between them.
fn listed(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    let words = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | ';' | '&'))
        .filter(|it| !it.is_empty());
    for word in words {
        let bare = word.trim_end_matches(['.', ')', ']', '!']).trim_start_matches(['(', '[']);
        match bare.strip_prefix('#').map(str::parse) {
            Some(Ok(number)) => numbers.push(number),
            Some(Err(_)) => break,
            None if matches!(bare, "and" | "issue" | "issues" | "") => {}
            None => break,
        }
        if word.ends_with('.') {
            break; // the sentence is over
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_its_blockers() {
        let found = |text: &str| blockers_in(text).into_iter().collect::<Vec<u64>>();
        assert_eq!(found("Blocked by #3"), [3]);
        assert_eq!(found("It is blocked by: #3, #4 and #5. See #6."), [3, 4, 5]);
        assert_eq!(found("- **Blocked by** #12\n- blocked-by #13 (the parser)"), [12, 13]);
        assert_eq!(found("Blocked by issue #7"), [7]);
        assert_eq!(found("Knot blocked by #8"), [8], "only whole words take it back");
        assert_eq!(found("Not blocked by #8, but blocked by #9"), [9]);
    }

    #[test]
    fn other_numbers_are_no_blockers() {
        for text in [
            "blocks #3",
            "see #3",
            "blocked by the parser of #3",
            "blocked by owner/name#3",
            "`blocked by #3`",
            "```\nblocked by #3\n```",
            "> blocked by #3",
            "blocked by #",
            "Not blocked by #3",
            "**No longer** blocked by #3",
            "It was blocked by #3, #4 and #5.",
            "It isn't blocked by #3",
            "It isn’t blocked-by #3",
        ] {
            assert!(blockers_in(text).is_empty(), "{text}");
        }
    }
}
