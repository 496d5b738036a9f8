//! What kind of work an issue is, and what its commits say of it.

use super::IssueRef;

/// What kind of work an issue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueKind {
    /// Something does not do what it should.
    Bug,
    /// Something new.
    Feature,
    /// Something that has to be done.
    Task,
}

impl IssueKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bug, Self::Feature, Self::Task];

    /// The word of its label.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Bug => "bug",
            Self::Feature => "feature",
            Self::Task => "task",
        }
    }

    /// The kind this word means, in whatever case, or as forges call it.
    #[must_use]
    pub fn from_wire_name(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "bug" => Some(Self::Bug),
            "feature" | "enhancement" => Some(Self::Feature),
            "task" | "chore" => Some(Self::Task),
            _ => None,
        }
    }

    /// The kind that labels say: `type/bug` before `bug`, which people and forges write. Two that differ say nothing.
    #[must_use]
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = &'a str> + Clone) -> Option<Self> {
        let typed = |label: &str| {
            label
                .split_once('/')
                .filter(|(family, _)| family.eq_ignore_ascii_case("type"))
                .map(|(_, word)| word.to_owned())
        };
        let said: Vec<Self> =
            labels.clone().into_iter().filter_map(|label| Self::from_wire_name(&typed(label)?)).collect();
        let said = if said.is_empty() {
            labels.into_iter().filter_map(Self::from_wire_name).collect()
        } else {
            said
        };
        let first = said.first().copied()?;
        said.iter().all(|kind| *kind == first).then_some(first)
    }
}

/// The first line of what lands of an issue: what kind of work it is, and its title. A number behind `#` in the title would be an
/// order to close another issue, so it loses its `#`.
#[must_use]
pub fn issue_headline(kind: Option<IssueKind>, title: &str) -> String {
    let prefix = match kind {
        Some(IssueKind::Bug) => "fix",
        Some(IssueKind::Feature) => "feat",
        Some(IssueKind::Task) => "chore",
        None => "patch",
    };
    let harmless: String = title
        .char_indices()
        .filter(|(at, c)| *c != '#' || !title[at + 1..].starts_with(|next: char| next.is_ascii_digit()))
        .map(|(_, c)| c)
        .collect();
    format!("{prefix}: {harmless}")
}

/// What a commit or a pull request says about the issue it is for. Whoever reads the words that close an issue would close the one
/// of that number in the repository they are pushed to: they are said only of that tracker (`is_read_there`), and only on the
/// branch it reads.
#[must_use]
pub fn closing_words(source: &IssueRef, is_read_there: bool, side_base: bool) -> Option<String> {
    (!side_base && is_read_there).then(|| format!("Closes #{}", source.number))
}
