//! What must hold for the spec of an issue, whatever an agent wrote there.

use landfall_model::issue::{Paper, Phase, normalised};

/// So many characters of one point, and a little for its name.
const LINE_CHARS_MAX: usize = 640;

/// Reads a paper, and holds what is handed on and proposed to its bounds.
pub fn papers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let paper = Paper::read(&text);
    assert_eq!(paper, Paper::read(&text), "the same text says the same");
    assert!(paper.gaps(true).len() >= paper.gaps(false).len());
    let handoff = paper.handoff.clone().unwrap_or_default();
    assert!(
        handoff.lines().len() <= 24
            && handoff.lines().iter().all(|line| line.chars().count() <= LINE_CHARS_MAX)
    );
    assert!(!handoff.is_for(Phase::Spec), "nobody hands anything to whoever specifies");
    for (_, proposal) in paper.proposals() {
        assert!(proposal.title.chars().count() <= 121 && proposal.text.chars().count() <= LINE_CHARS_MAX);
        assert_eq!(normalised(&proposal.title), normalised(&normalised(&proposal.title)));
    }
}
