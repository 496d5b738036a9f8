//! Words of foreign lists as tasks have them: tags, criteria, bodies.

/// A text as it is shown in a message.
pub(super) fn shorten_for_message(text: &str) -> String {
    const CHARS_MAX: usize = 60; // one line of a message holds two of them
    let line = one_line(text);
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The text on one line.
pub(super) fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The letters and digits of a text in small, joined by dashes; none when there are none.
pub(super) fn to_slug(text: &str, bytes_max: usize) -> Option<String> {
    let mut slug = String::new();
    let mut gap = false;
    for c in text.chars().flat_map(char::to_lowercase) {
        if !c.is_alphanumeric() {
            gap = !slug.is_empty();
            continue;
        }
        if slug.len() + c.len_utf8() + usize::from(gap) > bytes_max {
            break;
        }
        if std::mem::take(&mut gap) {
            slug.push('-');
        }
        slug.push(c);
    }
    (!slug.is_empty()).then_some(slug)
}

const TAG_BYTES_MAX: usize = 64; // as long as a tag may be

/// The text as a tag: as it is where that is one, else its letters and digits.
pub(super) fn to_tag(text: &str) -> Option<String> {
    let text = text.trim();
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':');
    if !text.is_empty() && text.len() <= TAG_BYTES_MAX && text.chars().all(legal) {
        return Some(text.to_owned());
    }
    to_slug(text, TAG_BYTES_MAX)
}

/// Criteria that stand in one text, a line each; marks of lists are layout.
pub(super) fn split_criteria(text: &str) -> Vec<String> {
    text.lines().map(|line| one_line(strip_list_mark(line))).filter(|line| !line.is_empty()).collect()
}

/// A line without the mark of a list item or a check box.
fn strip_list_mark(line: &str) -> &str {
    let line = line.trim();
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = match line.chars().next() {
        Some('-' | '*' | '+' | '•') => line.strip_prefix(['-', '*', '+', '•']),
        Some(_) if digits > 0 => line[digits..].strip_prefix(['.', ')']),
        Some(_) | None => None,
    };
    let rest = rest.filter(|rest| rest.starts_with([' ', '\t'])).unwrap_or(line).trim_start();
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest)
}

/// Parts of a body under headings; those without words are left out.
pub(super) fn join_sections(parts: &[(&str, &str)]) -> String {
    let told = parts.iter().filter(|(_, text)| !text.trim().is_empty());
    let shown = told.map(|(heading, text)| match *heading {
        "" => text.trim().to_owned(),
        heading => format!("## {heading}\n\n{}", text.trim()),
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::{split_criteria, to_slug, to_tag};

    #[test]
    fn tags_and_criteria_are_made_of_what_people_wrote() {
        assert_eq!(to_tag("area:ui").as_deref(), Some("area:ui"));
        assert_eq!(to_tag("needs love, soon!").as_deref(), Some("needs-love-soon"));
        assert_eq!(to_tag("→").as_deref(), None);
        assert_eq!(to_slug("Größe prüfen", 64).as_deref(), Some("größe-prüfen"));
        assert!(to_slug(&"ä".repeat(100), 64).is_some_and(|it| it.len() <= 64));
        assert_eq!(
            split_criteria("- one\n* [ ] two\n\n1. three\n2) four\n-five\n[x] six\n"),
            ["one", "two", "three", "four", "-five", "six"]
        );
    }
}
