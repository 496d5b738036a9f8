//! What a task is for, worked out in a dialogue: items, each split into requirements that can be checked, confirmed once.

pub use landfall_facts::objective::{ObjectiveItem, Requirement, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// The most requirements one objective may have.
pub const REQUIREMENTS_MAX: usize = 30;

/// What a task is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Objective {
    /// Its parts.
    pub items: Vec<ObjectiveItem>,
    /// What holds for all of them.
    pub constraints: Vec<String>,
    /// Counts the changes.
    pub revision: u32,
    /// The revision a person was last asked about.
    pub shown: Option<u32>,
    /// The revision a person said yes to.
    pub confirmed: Option<u32>,
}

impl Objective {
    /// All requirements, in order.
    #[must_use]
    pub fn requirements(&self) -> Vec<Requirement> {
        self.items.iter().flat_map(|item| item.requirements.iter().cloned()).collect()
    }

    /// Whether a person said yes to it as it is.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.confirmed == Some(self.revision)
    }

    /// Whether a yes would count now: it was shown as it is.
    #[must_use]
    pub fn needs_approval(&self) -> bool {
        self.shown == Some(self.revision) && !self.is_confirmed()
    }
}

/// What an agent made of a person's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectiveSplit {
    /// The parts; requirements carry no numbers yet.
    pub items: Vec<ObjectiveItem>,
    /// What holds for all of them.
    pub constraints: Vec<String>,
    /// The known items, counted from 1, that parts replace, by the place of the part.
    pub replaces: BTreeMap<usize, usize>,
    /// Something it has to know first.
    pub ask: Option<String>,
}

/// What a person's words ask to be done with the items that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemWish {
    /// More is wanted: every known item stays.
    Add,
    /// They do not say. Only an item that is named by its number is replaced.
    Unsaid,
    /// Something is to become otherwise: an item may replace the one it speaks of.
    Change,
}

/// Words that ask for something in the place of something else, whatever stands beside them.
const CHANGING: [&str; 16] = [
    "change", "changes", "changed", "replace", "replaces", "replaced", "instead", "rather", "rename",
    "reword", "rewrite", "swap", "switch", "modify", "become", "becomes",
];
/// Words that correct something, unless others beside them ask for more.
const CORRECTING: [&str; 4] = ["not", "don't", "only", "just"];
const ADDING: [&str; 9] =
    ["also", "additionally", "addition", "besides", "another", "plus", "moreover", "furthermore", "well"];
/// Words before the number of an item.
const NAMING: [&str; 4] = ["item", "number", "point", "no"];
const CHANGING_SIGNS: [&str; 3] = ["改", "换", "替"];
const ADDING_SIGNS: [&str; 3] = ["还", "另外", "也"];

impl ItemWish {
    /// Reads it out of a person's words about an objective with so many items.
    #[must_use]
    pub fn from_words(words: &str, items: usize) -> Self {
        let lower = words.to_lowercase();
        let tokens: Vec<&str> =
            lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|it| !it.is_empty()).collect();
        let has = |known: &[&str]| tokens.iter().any(|token| known.contains(token));
        let has_sign = |known: &[&str]| known.iter().any(|sign| lower.contains(sign));
        let is_item = |token: &str| token.parse().is_ok_and(|number: usize| (1..=items).contains(&number));
        let names_item = tokens.windows(2).any(|pair| NAMING.contains(&pair[0]) && is_item(pair[1]))
            || lower.split_whitespace().any(|word| word.strip_prefix('#').is_some_and(is_item));
        // The number may as well be that of a list of wishes.
        let begins_with_number =
            |line: &str| line.trim().split_once(['.', ':', ')']).is_some_and(|it| is_item(it.0));
        let corrects = has(&CORRECTING) || lower.lines().any(begins_with_number);
        match has(&ADDING) || has_sign(&ADDING_SIGNS) {
            _ if names_item || has(&CHANGING) || has_sign(&CHANGING_SIGNS) => Self::Change,
            true => Self::Add,
            false if corrects => Self::Change,
            false => Self::Unsaid,
        }
    }
}

/// What is wrong with a split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// Nothing to do.
    #[error("it names no requirement")]
    Empty,
    /// An item without any.
    #[error("the item `{0}` has no requirement")]
    Bare(String),
    /// More than can be converged to.
    #[error(
        "it names {0} requirements; at most {REQUIREMENTS_MAX} can be followed (join some, or split the task)"
    )]
    TooMany(usize),
    /// It replaces what is not there.
    #[error("it replaces item {0}, which is not there")]
    Unknown(usize),
}

/// The items after one more round. An item with the words of a known one replaces it. One that the person asked to be changed is
/// replaced by the item that names its number, else by the one that shares half of its words. Anything else is new. Numbers
/// are counted anew through all of them.
///
/// # Errors
/// When what comes out cannot be followed.
pub fn merge_items(
    known: &[ObjectiveItem],
    split: &ObjectiveSplit,
    wish: ItemWish,
) -> Result<Vec<ObjectiveItem>, SplitError> {
    let mut all: Vec<ObjectiveItem> = known.to_vec();
    let mut taken = BTreeSet::new();
    for (place, item) in split.items.iter().enumerate() {
        let free = |at: &usize| !taken.contains(at);
        let same = (0..known.len())
            .filter(free)
            .find(|at| normalize_text(&known[*at].text) == normalize_text(&item.text));
        let named = match split.replaces.get(&place) {
            Some(number) if !(1..=known.len()).contains(number) => return Err(SplitError::Unknown(*number)),
            Some(number) if wish != ItemWish::Add => Some(number - 1).filter(free),
            Some(_) | None => None,
        };
        let near = || {
            let shared = |at: &usize| keyword_overlap_percent(&known[*at].text, &item.text);
            let mut found: Vec<usize> = (0..known.len()).filter(free).filter(|at| shared(at) >= 50).collect();
            found.sort_by_key(|at| std::cmp::Reverse(shared(at)));
            found.first().copied().filter(|_| wish == ItemWish::Change)
        };
        match same.or(named).or_else(near) {
            Some(at) => {
                taken.insert(at);
                all[at] = item.clone();
            }
            None => all.push(item.clone()),
        }
    }
    let mut number = 0;
    for item in &mut all {
        if item.requirements.is_empty() {
            return Err(SplitError::Bare(item.text.clone()));
        }
        for requirement in &mut item.requirements {
            number += 1;
            requirement.number = number;
        }
    }
    let count = all.iter().map(|item| item.requirements.len()).sum::<usize>();
    match count {
        0 => Err(SplitError::Empty),
        count if count > REQUIREMENTS_MAX => Err(SplitError::TooMany(count)),
        _ => Ok(all),
    }
}

fn normalize_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn extract_keywords(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 2)
        .map(str::to_lowercase)
        .collect()
}

/// How many of the smaller text's words the other has, in per cent.
fn keyword_overlap_percent(one: &str, other: &str) -> usize {
    let (one, other) = (extract_keywords(one), extract_keywords(other));
    let least = one.len().min(other.len());
    if least == 0 {
        return 0;
    }
    one.intersection(&other).count() * 100 / least
}

/// The question that is put to a person, the same each time but for what it is about.
#[must_use]
pub fn prompt(objective: &Objective) -> String {
    let all = objective.requirements().len();
    let mut text =
        format!("---\n📋 Objectives extracted — {} items, {all} requirements:\n\n", objective.items.len());
    for (at, item) in objective.items.iter().enumerate() {
        text.push_str(&format!("{}. {} (R: {})\n", at + 1, item.text, item.requirements.len()));
    }
    text.push_str(
        "\n→ Reply \"OK\" or \"confirmed\" to start. From then on it runs by itself.\n\
         → To adjust, say what to change, add or leave out.\n---",
    );
    text
}

const YES: [&str; 14] = [
    "ok",
    "okay",
    "ok.",
    "yes",
    "confirmed",
    "confirm",
    "looks good",
    "ok looks good",
    "ok, looks good",
    "start",
    "go",
    "好",
    "确认",
    "可以",
];

/// Whether a person's words are a plain yes. "OK, but …" is not.
#[must_use]
pub fn is_yes(text: &str) -> bool {
    let text = normalize_text(text);
    let bare = text.trim_end_matches(['.', '!', '。', '！']);
    YES.contains(&text.as_str()) || YES.contains(&bare)
}

/// Whether a person's words say nothing of the objective and only that it should go on. They confirm nothing.
#[must_use]
pub fn is_continue(text: &str) -> bool {
    let text = normalize_text(text);
    let bare = text.trim_end_matches(['.', '!', '…', '。', '！']);
    matches!(bare, "" | "continue" | "go on" | "proceed" | "carry on" | "继续" | "auto" | "start auto")
}

/// Whether a person asks to have something found out before the objective is settled.
#[must_use]
pub fn wants_research(text: &str) -> bool {
    let lower = text.to_lowercase();
    let asks = ["help me research", "do some research", "research this", "research it", "please research"];
    lower.trim_start().starts_with("research")
        || asks.iter().any(|words| lower.contains(words))
        || ["调研", "研究一下", "帮我研究"].iter().any(|words| lower.contains(words))
}

/// What an agent does that is asked for research: three passes, each of which builds on the one before.
pub const RESEARCH: &str = "Research it in three passes before you answer.\n\
    - O1: collect what the project already has for it, with the files.\n\
    - O2: compare the ways it can be done, with what each costs and risks.\n\
    - O3: derive the items and requirements that follow, and say for each which finding it rests on.\n\
    Put the findings into `constraints` where they bind the work, and into the acceptance criteria of the requirements.";

/// Whether a task's words say anything to work from: headings and placeholders alone do not.
#[must_use]
pub fn is_substantive(text: &str) -> bool {
    let said = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', '>']).trim();
        let empty =
            line.is_empty() || line.starts_with('#') || line.starts_with("<!--") || line.starts_with("|--");
        let placeholder =
            (line.starts_with('(') && line.ends_with(')')) || (line.starts_with('[') && line.ends_with(']'));
        !empty && !placeholder && line.chars().filter(|c| c.is_alphanumeric()).count() >= 3
    };
    text.lines().any(said)
}

/// A person's change of mind while work is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refinement {
    /// By this number it is spoken of.
    pub number: u32,
    /// When it was said.
    pub at: crate::Timestamp,
    /// In their words.
    pub text: String,
    /// What became of it.
    pub state: RefinementStatus,
}

/// What became of a refinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefinementStatus {
    /// Nobody has looked at it.
    Pending,
    /// A judge has: it matters this much, and is to be dealt with.
    Weighed(crate::score::RefinementImpact),
    /// It is in the plan, or in the work.
    TakenIn,
    /// The person took it back.
    Withdrawn,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str, requirements: &[&str]) -> ObjectiveItem {
        let requirements =
            requirements.iter().map(|text| Requirement::new(0, text, "", Weight::Important)).collect();
        ObjectiveItem { text: text.to_owned(), requirements }
    }

    fn split(items: Vec<ObjectiveItem>) -> ObjectiveSplit {
        ObjectiveSplit { items, ..ObjectiveSplit::default() }
    }

    #[test]
    fn requirements_are_counted_through_all_items_and_anew_after_each_change() {
        let first = merge_items(
            &[],
            &split(vec![item("Log in", &["a", "b"]), item("Export", &["c"])]),
            ItemWish::Unsaid,
        )
        .expect("fits");
        let numbers = |items: &[ObjectiveItem]| {
            items.iter().flat_map(|it| it.requirements.iter().map(|r| r.number)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&first), [1, 2, 3]);
        let more = merge_items(
            &first,
            &split(vec![item("log  in", &["a", "b", "d"]), item("Send mail", &["e"])]),
            ItemWish::Add,
        )
        .expect("fits");
        assert_eq!(more.len(), 3, "the first was replaced, the last is new");
        assert_eq!(numbers(&more), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn also_adds_an_item_and_only_a_word_or_a_number_replaces_one() {
        let known = [item("Log in", &["a"]), item("Export a report as CSV", &["b"])];
        let pdf = || split(vec![item("Export the report as PDF", &["c"])]);
        let texts = |split: &ObjectiveSplit, words: &str| {
            let items = merge_items(&known, split, ItemWish::from_words(words, known.len())).expect("fits");
            items.iter().map(|it| it.text.clone()).collect::<Vec<_>>()
        };
        for adds in [
            "Also export the report as PDF",
            "and the report as PDF",
            "another report, as PDF",
            "the last 2 as PDF",
        ] {
            assert_eq!(
                texts(&pdf(), adds),
                ["Log in", "Export a report as CSV", "Export the report as PDF"],
                "{adds}"
            );
        }
        for changes in [
            "Export it as PDF instead",
            "Also change the export to PDF",
            "PDF, not CSV",
            "item 2 as PDF",
            "#2 is to be a PDF",
            "2: export as PDF",
        ] {
            assert_eq!(texts(&pdf(), changes), ["Log in", "Export the report as PDF"], "{changes}");
        }
        // An item that shares no word with the one it replaces names its number.
        let mail =
            ObjectiveSplit { replaces: BTreeMap::from([(0, 2)]), ..split(vec![item("Send mail", &["d"])]) };
        assert_eq!(texts(&mail, "mail it"), ["Log in", "Send mail"]);
        assert_eq!(texts(&mail, "also mail it"), ["Log in", "Export a report as CSV", "Send mail"]);
        let missing = ObjectiveSplit { replaces: BTreeMap::from([(0, 3)]), ..mail };
        assert_eq!(merge_items(&known, &missing, ItemWish::Unsaid), Err(SplitError::Unknown(3)));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        assert_eq!(merge_items(&[], &ObjectiveSplit::default(), ItemWish::Unsaid), Err(SplitError::Empty));
        assert_eq!(
            merge_items(&[], &split(vec![item("x", &[])]), ItemWish::Unsaid),
            Err(SplitError::Bare("x".to_owned()))
        );
        let many = vec!["r"; 31];
        assert_eq!(
            merge_items(&[], &split(vec![item("x", &many)]), ItemWish::Unsaid),
            Err(SplitError::TooMany(31))
        );
    }

    #[test]
    fn behaviour_20_the_question_is_the_same_each_time() {
        let items = merge_items(
            &[],
            &split(vec![item("Log in", &["a", "b"]), item("Log out", &["c"])]),
            ItemWish::Unsaid,
        )
        .expect("fits");
        let objective = Objective { items, ..Objective::default() };
        let wanted = "---\n📋 Objectives extracted — 2 items, 3 requirements:\n\n1. Log in (R: 2)\n2. Log out (R: 1)\n\n\
                      → Reply \"OK\" or \"confirmed\" to start. From then on it runs by itself.\n\
                      → To adjust, say what to change, add or leave out.\n---";
        assert_eq!(prompt(&objective), wanted);
    }

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        for yes in ["OK", " ok. ", "Confirmed!", "OK looks good", "确认"] {
            assert!(is_yes(yes), "{yes}");
        }
        for no in ["ok, but add a test", "", "no", "continue", "looks good except the last"] {
            assert!(!is_yes(no), "{no}");
        }
    }

    #[test]
    fn edge_23_a_yes_counts_only_after_it_was_shown_and_unchanged() {
        let mut objective = Objective { revision: 2, ..Objective::default() };
        assert!(!objective.needs_approval());
        objective.shown = Some(1);
        assert!(!objective.needs_approval(), "it changed since");
        objective.shown = Some(2);
        assert!(objective.needs_approval());
    }

    #[test]
    fn a_template_is_not_substantive() {
        assert!(!is_substantive(
            "# Objective\n\n(what is wanted)\n\n## Requirements\n- \n<!-- fill in -->\n"
        ));
        assert!(is_substantive("# Objective\n\nGreet by name\n"));
        assert!(!is_substantive(""));
    }
}
