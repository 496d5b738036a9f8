//! What the checks of the base downloaded, for the verifications after it: a lane begins with it instead of with nothing.
//!
//! Only the base fills it. Its code has landed, and is part of every candidate anyway; no candidate changes what another one gets.
//! It is kept like a lane, so it goes with the lanes after a power cut.

use std::io;
use std::path::Path;

use landfall_host::disk::remove_tree;
use landfall_host::git::{Lane, Store};
use landfall_host::tree_copy::{TreeSize, can_clone, copy_tree, measure_tree};
use landfall_model::cache::CACHE_COPY_MAX;

const NAME: &str = "warm";
/// Of an overlay; the kernel wants it empty.
const WORK: &str = "work";

/// Keeps the changes to caches that passing checks of the base made in `lane`. Without room for a copy nothing is kept.
pub(crate) fn keep_cache_changes(store: &Store, lanes: &Path, lane: &Lane) {
    let Ok(warm) = Lane::open_lane(store, &lanes.join(NAME)) else { return };
    let (from, to) = (lane.caches_path(), warm.caches_path());
    if !from.is_dir() {
        return;
    }
    let new = to.with_extension("new");
    let old = to.with_extension("old");
    let swap = || -> io::Result<()> {
        for left in [&new, &old] {
            remove_tree(left)?;
        }
        copy_all_caches(&from, &new)?;
        if to.exists() {
            std::fs::rename(&to, &old)?;
        }
        std::fs::rename(&new, &to)?;
        remove_tree(&old)
    };
    let _ = swap(); // the next verification downloads again
}

/// Lets the checks in `lane` begin with what was kept, unless they have changes of their own already.
pub(crate) fn give_cache_changes(store: &Store, lanes: &Path, lane: &Lane) {
    let to = lane.caches_path();
    if to.exists() || !lanes.join(NAME).is_dir() {
        return;
    }
    let Ok(warm) = Lane::open_lane(store, &lanes.join(NAME)) else { return };
    let from = warm.caches_path();
    if from.is_dir() && copy_all_caches(&from, &to).is_err() {
        let _ = remove_tree(&to); // half of it is worse than nothing
    }
}

/// Copies the changes to all caches of a room.
fn copy_all_caches(from: &Path, to: &Path) -> io::Result<()> {
    let max = TreeSize { files: CACHE_COPY_MAX.files, bytes: CACHE_COPY_MAX.bytes };
    let size = measure_tree(from, &[], max);
    std::fs::create_dir_all(to)?;
    let is_large = size.files > max.files || size.bytes > max.bytes;
    if is_large && !can_clone(from, to) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    for cache in std::fs::read_dir(from)?.flatten() {
        let target = to.join(cache.file_name());
        if cache.file_type()?.is_dir() {
            copy_tree(&cache.path(), &target, &[WORK])?;
            if cache.path().join(WORK).is_dir() {
                std::fs::create_dir(target.join(WORK))?;
            }
        } else {
            std::fs::copy(cache.path(), target)?;
        }
    }
    Ok(())
}
