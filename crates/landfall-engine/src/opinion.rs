//! What reviewers, judges and those who split an objective said, read from the JSON block their words end with. What
//! cannot be read is no opinion.

use landfall_model::StepResult;
use landfall_model::objective::{ObjectiveItem, ObjectiveSplit, Requirement, Weight};
use landfall_model::review::{FindingSeverity, ReviewOpinion, ReviewerFinding};
use landfall_model::score::{Judgement, RefinementImpact, RequirementCoverage, Scores};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct OpinionBlock {
    findings: Vec<OpinionFinding>,
    #[serde(default)]
    resolved: Vec<String>,
}

#[derive(Deserialize)]
struct OpinionFinding {
    #[serde(default)]
    id: Option<String>,
    severity: String,
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    test: Option<FindingTest>,
}

const TITLE_CHARS_MAX: usize = 200; // a line
const DETAIL_CHARS_MAX: usize = 4_000; // a page
const COMMAND_CHARS_MAX: usize = 1_000; // a line of shell
const BLOCKS_MAX: usize = 200; // beginnings of a block that are tried

/// The last block of these words that reads as a `T` and means something.
fn parse_last_block<T: DeserializeOwned, R>(words: &str, meant: impl Fn(T) -> Option<R>) -> Option<R> {
    let starts = words.rmatch_indices('{').map(|(at, _)| at).take(BLOCKS_MAX);
    let mut blocks = starts.filter_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&words[at..]).into_iter::<T>();
        stream.next()?.ok()
    });
    // A part of a block is none, so the first that fits is the whole of it.
    blocks.find_map(meant)
}

/// A reviewer's opinion in these words.
pub(crate) fn parse_review_opinion(words: &str) -> Option<ReviewOpinion> {
    parse_last_block(words, opinion_from_block)
}

fn opinion_from_block(block: OpinionBlock) -> Option<ReviewOpinion> {
    let findings =
        block.findings.into_iter().map(finding_from_block).collect::<Option<Vec<ReviewerFinding>>>()?;
    Some(ReviewOpinion { findings, resolved: block.resolved })
}

fn cut_to_chars(text: &str, max: usize) -> String {
    text.trim().chars().take(max).collect()
}

fn finding_from_block(found: OpinionFinding) -> Option<ReviewerFinding> {
    let word = found.severity.trim().to_ascii_lowercase();
    let severity = FindingSeverity::ALL.into_iter().find(|severity| severity.word() == word)?;
    let place = match (found.file.trim(), found.line) {
        (file, Some(line)) if !file.is_empty() => format!("{}:{line}", cut_to_chars(file, TITLE_CHARS_MAX)),
        (file, _) => cut_to_chars(file, TITLE_CHARS_MAX),
    };
    let title = to_title_line(&found.title);
    let id = found.id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    let mut detail = cut_to_chars(&found.detail, DETAIL_CHARS_MAX);
    if let Some(test) = &found.test {
        detail.push_str(&test.to_lines());
    }
    let test = found.test.map(|test| test.command.trim().to_owned());
    let test = test.filter(|it| !it.is_empty() && it.chars().count() <= COMMAND_CHARS_MAX);
    (!title.is_empty()).then_some(ReviewerFinding { id, severity, title, detail, place, test })
}

fn to_title_line(text: &str) -> String {
    cut_to_chars(&text.replace(char::is_control, " "), TITLE_CHARS_MAX)
}

/// The test a finding asks for: it must be red before the mend and green after it.
#[derive(Deserialize)]
struct FindingTest {
    #[serde(default)]
    category: String,
    #[serde(default)]
    approach: String,
    #[serde(default)]
    red: String,
    #[serde(default)]
    green: String,
    /// Runs it; then the engine sees for itself.
    #[serde(default)]
    command: String,
}

impl FindingTest {
    fn to_lines(&self) -> String {
        let parts = [
            ("Test", &self.category),
            ("How", &self.approach),
            ("Red before the mend", &self.red),
            ("Green after it", &self.green),
            ("Run by", &self.command),
        ];
        let told = parts.iter().filter(|(_, text)| !text.trim().is_empty());
        told.map(|(name, text)| format!("\n{name}: {}", cut_to_chars(text, TITLE_CHARS_MAX))).collect()
    }
}

#[derive(Deserialize)]
struct JudgementBlock {
    #[serde(default)]
    scores: Option<ScoresBlock>,
    #[serde(default)]
    verdict: Option<String>,
    #[serde(default)]
    findings: Vec<OpinionFinding>,
    #[serde(default)]
    coverage: Vec<CoveredBlock>,
    #[serde(default)]
    refinements: Vec<ImpactBlock>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct ScoresBlock {
    d1: f64,
    d2: f64,
    d3: f64,
    d4: f64,
    d5: f64,
    d6: f64,
}

#[derive(Deserialize)]
struct CoveredBlock {
    r: RequirementNumber,
    coverage: f64,
    #[serde(default)]
    why: String,
}

/// A requirement as judges write it: `3` or `"R3"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum RequirementNumber {
    Plain(u32),
    Named(String),
}

impl RequirementNumber {
    fn get(&self) -> Option<u32> {
        match self {
            Self::Plain(number) => Some(*number),
            Self::Named(name) => name.trim().trim_start_matches(['R', 'r']).parse().ok(),
        }
    }
}

#[derive(Deserialize)]
struct ImpactBlock {
    n: u32,
    impact: String,
}

/// A score from 0 to 1 in thousandths; none if it is out of range.
fn score_to_thousandths(score: f64) -> Option<u32> {
    (0.0..=1.0).contains(&score).then_some((score * 1000.0).round() as u32)
}

/// A judge's word in these words.
pub(crate) fn parse_judgement(words: &str) -> Option<Judgement> {
    parse_last_block(words, judgement_from_block)
}

fn judgement_from_block(block: JudgementBlock) -> Option<Judgement> {
    let word = match block.verdict.as_deref().map(str::trim) {
        None | Some("") => None,
        Some(word) => Some(StepResult::from_word(&word.to_ascii_uppercase())?),
    };
    let scores = match block.scores {
        Some(ScoresBlock { d1, d2, d3, d4, d5, d6 }) => {
            let all = [d1, d2, d3, d4, d5, d6].map(score_to_thousandths);
            let mut known = [0; 6];
            for (at, score) in all.into_iter().enumerate() {
                known[at] = score?;
            }
            Some(Scores::new(known)?)
        }
        None => None,
    };
    if scores.is_none() && word.is_none() {
        return None;
    }
    let covered = |it: CoveredBlock| {
        Some(RequirementCoverage {
            number: it.r.get()?,
            coverage: score_to_thousandths(it.coverage)?,
            why: cut_to_chars(&it.why, DETAIL_CHARS_MAX),
        })
    };
    let impact =
        |it: ImpactBlock| Some((it.n, RefinementImpact::from_word(&it.impact.trim().to_ascii_lowercase())?));
    Some(Judgement {
        scores,
        word,
        findings: block.findings.into_iter().map(finding_from_block).collect::<Option<_>>()?,
        coverage: block.coverage.into_iter().map(covered).collect::<Option<_>>()?,
        impacts: block.refinements.into_iter().map(impact).collect::<Option<_>>()?,
        reason: cut_to_chars(&block.reason, DETAIL_CHARS_MAX),
    })
}

#[derive(Deserialize)]
struct SplitBlock {
    items: Vec<ItemBlock>,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    ask: Option<String>,
}

#[derive(Deserialize)]
struct ItemBlock {
    text: String,
    requirements: Vec<RequirementBlock>,
    /// The number of the known item that it replaces.
    #[serde(default)]
    replaces: Option<usize>,
}

#[derive(Deserialize)]
struct RequirementBlock {
    text: String,
    #[serde(default)]
    criteria: String,
    #[serde(default)]
    weight: Option<String>,
}

/// An objective, split, in these words.
pub(crate) fn parse_objective_split(words: &str) -> Option<ObjectiveSplit> {
    parse_last_block(words, |block: SplitBlock| {
        let requirement = |it: RequirementBlock| {
            let weight = match it.weight {
                Some(word) => Weight::from_word(&word.trim().to_ascii_lowercase())?,
                None => Weight::default(),
            };
            let text = to_title_line(&it.text);
            (!text.is_empty()).then(|| Requirement::new(0, &text, &to_title_line(&it.criteria), weight))
        };
        let item = |it: ItemBlock| {
            let requirements = it.requirements.into_iter().map(requirement).collect::<Option<Vec<_>>>()?;
            let text = to_title_line(&it.text);
            (!text.is_empty()).then_some(ObjectiveItem { text, requirements })
        };
        let replaces = block.items.iter().enumerate();
        let replaces = replaces.filter_map(|(place, it)| Some((place, it.replaces?))).collect();
        Some(ObjectiveSplit {
            replaces,
            items: block.items.into_iter().map(item).collect::<Option<_>>()?,
            constraints: block
                .constraints
                .iter()
                .map(|text| to_title_line(text))
                .filter(|text| !text.is_empty())
                .collect(),
            ask: block.ask.map(|text| cut_to_chars(&text, DETAIL_CHARS_MAX)).filter(|text| !text.is_empty()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_of_the_words_is_the_opinion() {
        let words = "I looked at it. {\"findings\": []} was my first thought, but:\n```json\n{\"findings\": \
                     [{\"id\": \"F2\", \"severity\": \"Major\", \"title\": \"no test\", \"file\": \"a.rs\", \"line\": 7}], \
                     \"resolved\": [\"F1\"]}\n```\nThat is all.";
        let opinion = parse_review_opinion(words).expect("there is one");
        assert_eq!(opinion.resolved, ["F1"]);
        let [said] = opinion.findings.as_slice() else { panic!("one finding: {opinion:?}") };
        assert_eq!((said.severity, said.place.as_str()), (FindingSeverity::Major, "a.rs:7"));
        assert_eq!(said.id.as_deref(), Some("F2"));
    }

    #[test]
    fn what_is_no_block_is_no_opinion() {
        let unknown = "{\"findings\": [{\"severity\": \"awful\", \"title\": \"x\"}]}";
        for words in ["", "It is fine.", "{\"verdict\": \"ok\"}", "{\"findings\": [", unknown] {
            assert_eq!(parse_review_opinion(words), None, "{words}");
        }
    }

    #[test]
    fn an_empty_list_is_an_opinion() {
        assert_eq!(parse_review_opinion("{\"findings\":[]}"), Some(ReviewOpinion::default()));
    }

    #[test]
    fn a_judgement_has_six_scores_or_a_word_and_nothing_out_of_range() {
        let scores = "\"scores\":{\"d1\":0.9,\"d2\":0.8,\"d3\":1,\"d4\":0,\"d5\":0.5,\"d6\":0.755}";
        let words = format!(
            "Well. {{{scores},\"verdict\":\"needs_fix\",\"coverage\":[{{\"r\":\"R2\",\"coverage\":0.5}}]}}"
        );
        let read = parse_judgement(&words).expect("it is one");
        assert_eq!(read.scores.expect("six").to_array(), [900, 800, 1000, 0, 500, 755]);
        assert_eq!(read.word, Some(StepResult::NeedsFix));
        assert_eq!((read.coverage[0].number, read.coverage[0].coverage), (2, 500));
        assert!(parse_judgement("{\"verdict\":\"BLOCKED\"}").is_some(), "a word alone is one");
        for bad in [
            "{\"scores\":{\"d1\":0.9}}".to_owned(),
            format!("{{{}}}", scores.replace("0.9", "1.9")),
            format!("{{{scores},\"verdict\":\"GREAT\"}}"),
            "{}".to_owned(),
            "nothing".to_owned(),
        ] {
            assert_eq!(parse_judgement(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_split_names_items_with_requirements() {
        let words = "{\"items\":[{\"text\":\"Log in\",\"requirements\":[{\"text\":\"by name\",\"weight\":\"critical\"}]}]}";
        let read = parse_objective_split(words).expect("it is one");
        assert_eq!(read.items[0].requirements[0].weight, Weight::Critical);
        assert_eq!(
            parse_objective_split(
                "{\"items\":[{\"text\":\"x\",\"requirements\":[{\"text\":\"y\",\"weight\":\"huge\"}]}]}"
            ),
            None
        );
    }
}
