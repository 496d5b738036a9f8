//! Acceptance criteria as a fuzzer found them.

use std::collections::BTreeSet;

use landfall_model::acceptance::{Criteria, tick_boxes};

/// The corpus of the fuzzer, replayed: each of its bodies holds something, and ticking changes boxes alone.
#[test]
fn the_corpus_of_the_fuzzer_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/criteria");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let body = std::fs::read_to_string(entry.expect("readable").path()).expect("text");
        let criteria = Criteria::from_body(&body, &BTreeSet::new());
        let ticked = tick_boxes(&body, &criteria.items.iter().map(|it| it.line).collect());
        let pairs = body.bytes().zip(ticked.bytes()).filter(|(before, after)| before != after);
        assert!(body.len() == ticked.len() && pairs.into_iter().all(|pair| pair == (b' ', b'x')), "{body}");
        assert!(Criteria::from_body(&ticked, &BTreeSet::new()).items.iter().all(|it| it.ticked), "{body}");
        seen += criteria.items.len();
    }
    assert!(seen > 5, "{seen} criteria");
}
