//! Recorded facts: what the first encoder of format 1 wrote for random facts of every kind. Lines may be added at the
//! end; a line that is there is never changed, because journals like it are out there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use landfall_facts::Fact;

use super::random::Random;
use super::sample::{all_kinds, parse, write};
use super::{FlowCache, RawRow, decode_entry, encode_entry};
use crate::chain::HashChain;
use crate::{Hash, Seq};

/// Facts of each kind.
const EACH: usize = 40;

fn recording_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/v1-recording.jsonl.gz")
}

fn read_recording() -> String {
    let packed = std::fs::read(recording_path()).expect("the recording is kept");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("it is packed text");
    text
}

#[test]
fn recorded_facts_read_and_write_back_to_the_same_bytes() {
    let (mut flows, mut inlined) = (FlowCache::default(), BTreeSet::new());
    let (mut count, mut recorded, mut differences) = (0, BTreeSet::new(), Vec::new());
    let text = read_recording();
    for line in text.lines() {
        let raw = parse(line);
        count += 1;
        recorded.insert(raw.kind);
        match decode_entry(raw, &mut flows) {
            Ok(entry) => {
                let written = write(raw.seq, &encode_entry(&entry), &mut inlined);
                if written != line {
                    differences.push(format!("{line}\n  is now {written}"));
                }
            }
            Err(error) => differences.push(format!("{line}\n  is not read: {error}")),
        }
    }
    println!("{count} recorded events of {} kinds: {} differences", recorded.len(), differences.len());
    assert!(differences.is_empty(), "{:#?}", differences.iter().take(20).collect::<Vec<_>>());
    let missing: Vec<&str> = all_kinds().into_iter().filter(|kind| !recorded.contains(kind)).collect();
    assert_eq!(missing, [] as [&str; 0], "add them with the test `write_the_recording`");
}

/// The first lines, so that lines can be added.
#[test]
fn the_chain_of_recorded_facts_ends_in_the_same_hash() {
    let (mut chain, mut hash, mut flows) = (HashChain::default(), Hash::NONE, FlowCache::default());
    let mut inlined = BTreeSet::new();
    for line in read_recording().lines().take(1_000) {
        let raw = parse(line);
        let entry = decode_entry(raw, &mut flows).expect("it reads");
        let line = write(raw.seq, &encode_entry(&entry), &mut inlined);
        hash = chain.link_row(&hash, parse(&line));
    }
    assert_eq!(hash.to_string(), "42e81afbbed5039d3468cfccdaa6234aa1f6302d01bce0c4b59c12999fc71e4b");
}

#[test]
fn random_facts_are_read_as_they_were_written() {
    let mut random = Random::new(18);
    for _ in 0..5_000 {
        let entry = random.random_entry();
        let written = encode_entry(&entry);
        if let Fact::Task(_, event) = &entry.fact {
            assert_eq!(event.name(), written.kind);
        }
        let body =
            written.flow.as_ref().map_or_else(|| written.short.clone(), |flow| written.body_with_flow(flow));
        let raw =
            RawRow { seq: Seq(1), at_ms: written.at_ms, task: written.task, kind: written.kind, body: &body };
        let read =
            decode_entry(raw, &mut FlowCache::default()).unwrap_or_else(|error| panic!("{error}: {body}"));
        // Whose turn it is follows from the other tasks and is not written; so texts are compared.
        assert_eq!(encode_entry(&read).short, written.short, "{entry:?}");
    }
}

/// Adds facts of kinds that are not recorded yet. Run it by hand after a kind was added.
#[test]
#[ignore = "adds to the recording; run by hand when a kind is added"]
fn write_the_recording() {
    let mut text = if recording_path().exists() { read_recording() } else { String::new() };
    let recorded: BTreeSet<String> = text.lines().map(|line| parse(line).kind.to_owned()).collect();
    let mut inlined = BTreeSet::new();
    let mut left: BTreeMap<&str, usize> =
        all_kinds().into_iter().filter(|kind| !recorded.contains(*kind)).map(|kind| (kind, EACH)).collect();
    let mut seq = Seq(text.lines().count() as u64);
    let mut random = Random::new(seq.0);
    while !left.is_empty() {
        let written = encode_entry(&random.random_entry());
        if let Some(count) = left.get_mut(written.kind) {
            *count -= 1;
            if *count == 0 {
                left.remove(written.kind);
            }
            seq = seq.next();
            text += &write(seq, &written, &mut inlined);
            text.push('\n');
        }
    }
    let packed = Vec::new();
    let mut packer = flate2::write::GzEncoder::new(packed, flate2::Compression::best());
    packer.write_all(text.as_bytes()).expect("memory takes it");
    std::fs::write(recording_path(), packer.finish().expect("memory takes it")).expect("it can be written");
}
