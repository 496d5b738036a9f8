//! What a reviewer said, read from the JSON block their words end with. What cannot be read is no opinion.

use landfall_model::review::{Opinion, Said, Severity};
use serde::Deserialize;

#[derive(Deserialize)]
struct Block {
    findings: Vec<Found>,
    #[serde(default)]
    resolved: Vec<String>,
}

#[derive(Deserialize)]
struct Found {
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
}

const TITLE_CHARS_MAX: usize = 200; // a line
const DETAIL_CHARS_MAX: usize = 4_000; // a page
const BLOCKS_MAX: usize = 200; // beginnings of a block that are tried

/// The opinion in these words: the last block that is one.
pub(crate) fn read(words: &str) -> Option<Opinion> {
    let starts = words.rmatch_indices('{').map(|(at, _)| at).take(BLOCKS_MAX);
    let blocks = starts.filter_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&words[at..]).into_iter::<Block>();
        stream.next()?.ok()
    });
    // A finding is no block, so the first that fits is the whole of it.
    blocks.into_iter().find_map(opinion)
}

fn opinion(block: Block) -> Option<Opinion> {
    let cut = |text: &str, max: usize| text.trim().chars().take(max).collect::<String>();
    let said = |found: Found| {
        let word = found.severity.trim().to_ascii_lowercase();
        let severity = Severity::ALL.into_iter().find(|severity| severity.word() == word)?;
        let place = match (found.file.trim(), found.line) {
            (file, Some(line)) if !file.is_empty() => format!("{}:{line}", cut(file, TITLE_CHARS_MAX)),
            (file, _) => cut(file, TITLE_CHARS_MAX),
        };
        let title = cut(&found.title.replace(char::is_control, " "), TITLE_CHARS_MAX);
        let id = found.id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        (!title.is_empty()).then(|| Said {
            id,
            severity,
            title,
            detail: cut(&found.detail, DETAIL_CHARS_MAX),
            place,
        })
    };
    let findings = block.findings.into_iter().map(said).collect::<Option<Vec<Said>>>()?;
    Some(Opinion { findings, resolved: block.resolved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_of_the_words_is_the_opinion() {
        let words = "I looked at it. {\"findings\": []} was my first thought, but:\n```json\n{\"findings\": \
                     [{\"id\": \"F2\", \"severity\": \"Major\", \"title\": \"no test\", \"file\": \"a.rs\", \"line\": 7}], \
                     \"resolved\": [\"F1\"]}\n```\nThat is all.";
        let opinion = read(words).expect("there is one");
        assert_eq!(opinion.resolved, ["F1"]);
        let [said] = opinion.findings.as_slice() else { panic!("one finding: {opinion:?}") };
        assert_eq!((said.severity, said.place.as_str()), (Severity::Major, "a.rs:7"));
        assert_eq!(said.id.as_deref(), Some("F2"));
    }

    #[test]
    fn what_is_no_block_is_no_opinion() {
        let unknown = "{\"findings\": [{\"severity\": \"awful\", \"title\": \"x\"}]}";
        for words in ["", "It is fine.", "{\"verdict\": \"ok\"}", "{\"findings\": [", unknown] {
            assert_eq!(read(words), None, "{words}");
        }
    }

    #[test]
    fn an_empty_list_is_an_opinion() {
        assert_eq!(read("{\"findings\":[]}"), Some(Opinion::default()));
    }
}
