//! `.pending-refinements.md`: what a person said while work was going on, one line each.

/// Something a person said on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRefinement {
    /// When, as it was written; empty when the line has no date.
    pub at: String,
    /// What.
    pub text: String,
}

/// The refinements that wait, with the text they stand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refinements {
    text: String,
    /// In the order of the file.
    pub pending: Vec<PendingRefinement>,
}

impl Refinements {
    /// Reads the file. Lines that are no list items are kept and mean nothing.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self { text: text.to_owned(), pending: text.lines().filter_map(parse_entry).collect() }
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same with one more; `at` is `YYYY-MM-DD HH:MM`.
    #[must_use]
    pub fn with_entry(&self, at: &str, text: &str) -> Self {
        let mut all = self.text.clone();
        if all.is_empty() {
            all.push_str("# Pending Refinements\n\n");
        } else if !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(&format!("- [{at}] {}\n", super::text::plain_line(text)));
        Self::read(&all)
    }
}

fn parse_entry(line: &str) -> Option<PendingRefinement> {
    let rest = line.trim_end().strip_prefix("- ")?.trim();
    let dated = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .filter(|(at, _)| at.starts_with(|c: char| c.is_ascii_digit()));
    let (at, text) = dated.unwrap_or(("", rest));
    (!text.trim().is_empty()).then(|| PendingRefinement { at: at.to_owned(), text: text.trim().to_owned() })
}
