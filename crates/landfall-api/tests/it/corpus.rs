//! The corpus of the fuzz target for lists, replayed: what was ever found stays found, without a fuzzer.

#[path = "../../../../fuzz/src/lists.rs"]
mod lists;

use std::path::Path;

#[test]
fn every_list_ever_found_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/lists");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("readable").path();
        println!("{}", path.display()); // shown when the next line fails
        lists::lists(&std::fs::read(path).expect("readable"));
        seen += 1;
    }
    assert!(seen >= 10, "{seen} are too few");
}

/// Cuts and pieces of the corpus, put together as a number says: not a fuzzer, but it runs on every change.
#[test]
fn what_is_made_of_pieces_of_lists_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/lists");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|it| it.expect("readable").path())
        .collect();
    files.sort();
    let samples: Vec<Vec<u8>> = files.iter().map(|it| std::fs::read(it).expect("readable")).collect();
    let mut seed = 0x2545_f491_u32;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed as usize % below.max(1)
    };
    let pieces: [&[u8]; 14] = [
        b"- [ ] ",
        b"\n",
        b"  ",
        b"\t",
        b"```",
        b"[x]",
        b"# ",
        b"\"id\":",
        b"1",
        b",",
        b"\xc3",
        b"\0",
        b"\"tasks\":",
        b"bd-1",
    ];
    for round in 0..3_000 {
        let mut data = samples[next(samples.len())].clone();
        for _ in 0..=next(4) {
            let at = next(data.len());
            let end = (at + next(9)).min(data.len());
            data.splice(at..end, pieces[next(pieces.len())].iter().copied());
        }
        println!("round {round}: {}", String::from_utf8_lossy(&data)); // shown when the next line fails
        lists::lists(&data);
    }
}
