//! The corpora of the fuzz targets, replayed: what was ever found stays found, without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use crate::check;

/// The inputs of a target.
fn inputs(target: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(target).expect("a corpus can be listed");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

#[test]
fn every_input_of_every_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut replayed = 0;
    for target in inputs(&folder) {
        let name = target.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
        for input in inputs(&target) {
            let data = fs::read(&input).expect("a listed file can be read");
            let held = std::panic::catch_unwind(|| match name.as_str() {
                "files" => check::files(&data),
                "tags" => check::tags(&data),
                "tmux_screen" => check::screen(&data),
                kind => check::parser(kind, &data),
            });
            assert!(held.is_ok(), "{}", input.display());
            replayed += 1;
        }
    }
    assert!(replayed >= 100, "only {replayed} inputs");
}
