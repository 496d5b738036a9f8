//! Answers we have, with the tags GitHub gave them. Asked with its tag, an answer that has not changed is sent as "not changed",
//! and that costs nothing of the budget.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// An answer that may be used again.
#[derive(Debug, Clone)]
pub(super) struct EtagEntry {
    pub etag: String,
    pub body: Arc<[u8]>,
    pub link: Option<String>,
}

/// Bounded: the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Etags {
    kept: HashMap<String, EtagEntry>,
    order: VecDeque<String>,
    bytes: usize,
}

/// What a large repository's issues come to in a poll, several times over.
const BYTES_MAX: usize = 32 << 20;
const KEPT_MAX: usize = 2_000;

impl Etags {
    pub(super) fn get(&self, url: &str) -> Option<EtagEntry> {
        self.kept.get(url).cloned()
    }

    pub(super) fn store_entry(&mut self, url: &str, kept: EtagEntry) {
        self.remove_entry(url);
        self.bytes += kept.body.len();
        self.order.push_back(url.to_owned());
        self.kept.insert(url.to_owned(), kept);
        while self.bytes > BYTES_MAX || self.kept.len() > KEPT_MAX {
            let Some(oldest) = self.order.front().cloned() else { break };
            self.remove_entry(&oldest);
        }
    }

    fn remove_entry(&mut self, url: &str) {
        if let Some(kept) = self.kept.remove(url) {
            self.bytes -= kept.body.len();
            self.order.retain(|it| it != url);
        }
    }

    /// Another token may see other things.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: usize) -> EtagEntry {
        EtagEntry { etag: "\"1\"".to_owned(), body: vec![0; bytes].into(), link: None }
    }

    #[test]
    fn the_oldest_go_first() {
        let mut etags = Etags::default();
        for index in 0..=KEPT_MAX {
            etags.store_entry(&index.to_string(), kept(1));
        }
        assert!(etags.get("0").is_none() && etags.get("1").is_some());
        etags.store_entry("big", kept(BYTES_MAX));
        assert_eq!((etags.kept.len(), etags.bytes), (1, BYTES_MAX));
        etags.store_entry("too big", kept(BYTES_MAX + 1));
        assert_eq!((etags.kept.len(), etags.bytes, etags.order.len()), (0, 0, 0));
    }
}
