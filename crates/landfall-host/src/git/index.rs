//! Reads an index file that git wrote for us: which paths it tracks, and which tree it stands for.
//!
//! Only for an index in the engine's own folder. An agent's index is never read.

use std::collections::HashSet;
use std::path::Path;

use super::names::Oid;

/// One tracked path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub mode: u32,
    pub oid: Oid,
    pub path: Vec<u8>,
    /// Where its bytes are in the file, for copying it unchanged.
    span: (usize, usize),
}

/// A change to an index: an entry without file times, so that git will look at the file itself, or none.
#[derive(Debug)]
pub(crate) struct Put {
    pub path: Vec<u8>,
    pub entry: Option<(u32, Oid)>,
}

/// A parsed index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    pub entries: Vec<Entry>,
    /// The tree that the whole index stands for, if git has noted it.
    pub tree: Option<Oid>,
}

impl Index {
    /// Reads an index; a missing file is an empty index.
    pub fn read(path: &Path, oid_bytes: usize) -> std::io::Result<Index> {
        match std::fs::read(path) {
            Ok(bytes) => Index::parse(bytes, oid_bytes)
                .ok_or_else(|| std::io::Error::other("not an index we can read")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Index::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: Vec<u8>, oid_bytes: usize) -> Option<Index> {
        if bytes.len() < 12 + oid_bytes || &bytes[..4] != b"DIRC" {
            return None;
        }
        let version = be32(&bytes, 4)?;
        if version != 2 && version != 3 {
            return None;
        }
        let count = be32(&bytes, 8)? as usize;
        let mut entries = Vec::with_capacity(count.min(1 << 20));
        let mut at = 12;
        for _ in 0..count {
            let start = at;
            let mode = be32(&bytes, at + 24)?;
            let oid = Oid::from_raw(bytes.get(at + 40..at + 40 + oid_bytes)?);
            let flags_at = at + 40 + oid_bytes;
            let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
            let extended = version == 3 && flags & 0x4000 != 0;
            let name_at = flags_at + if extended { 4 } else { 2 };
            let length = bytes.get(name_at..)?.iter().position(|byte| *byte == 0)?;
            let path = bytes[name_at..name_at + length].to_vec();
            at = start + (name_at + length - start + 8) / 8 * 8;
            entries.push(Entry { mode, oid, path, span: (start, at) });
        }
        let end = bytes.len() - oid_bytes;
        let mut tree = None;
        while at + 8 <= end {
            let size = be32(&bytes, at + 4)? as usize;
            let body = bytes.get(at + 8..at + 8 + size)?;
            if &bytes[at..at + 4] == b"TREE" {
                tree = root_of(body, oid_bytes);
            }
            at += 8 + size;
        }
        Some(Index { bytes, entries, tree })
    }

    /// The tracked paths, and every folder that leads to one.
    pub fn paths(&self) -> Tracked<'_> {
        let mut tracked = Tracked::default();
        for entry in &self.entries {
            tracked.files.insert(&entry.path);
            for (at, byte) in entry.path.iter().enumerate().rev() {
                if *byte == b'/' && !tracked.folders.insert(&entry.path[..at]) {
                    break; // the rest was added with an earlier path
                }
            }
        }
        tracked
    }

    /// The attribute files and their contents: if they change, unchanged files may have to look different.
    pub fn attributes(&self) -> Vec<(Vec<u8>, Oid)> {
        self.entries
            .iter()
            .filter(|entry| entry.path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes"))
            .map(|entry| (entry.path.clone(), entry.oid.clone()))
            .collect()
    }

    /// The bytes of the same index with some paths replaced. `changes` must be sorted by path.
    pub fn with(&self, changes: &[Put], oid_bytes: usize) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.bytes.len() + changes.len() * 100);
        let mut count: u32 = 0;
        let mut old = self.entries.iter().peekable();
        for Put { path, entry } in changes {
            while let Some(entry) = old.next_if(|entry| entry.path < *path) {
                body.extend_from_slice(&self.bytes[entry.span.0..entry.span.1]);
                count += 1;
            }
            while old.next_if(|entry| entry.path == *path).is_some() {}
            if let Some((mode, oid)) = entry {
                let start = body.len();
                body.resize(start + 24, 0);
                body.extend_from_slice(&mode.to_be_bytes());
                body.resize(start + 40, 0);
                body.extend_from_slice(&oid.raw());
                body.extend_from_slice(&(path.len().min(0xfff) as u16).to_be_bytes());
                body.extend_from_slice(path);
                let length = body.len() - start;
                body.resize(start + (length + 8) / 8 * 8, 0);
                count += 1;
            }
        }
        for entry in old {
            body.extend_from_slice(&self.bytes[entry.span.0..entry.span.1]);
            count += 1;
        }
        let mut whole = Vec::with_capacity(body.len() + 12 + oid_bytes);
        whole.extend_from_slice(b"DIRC");
        whole.extend_from_slice(&(if self.version() == 3 { 3_u32 } else { 2 }).to_be_bytes());
        whole.extend_from_slice(&count.to_be_bytes());
        whole.extend_from_slice(&body);
        // A checksum of zeros means "not computed"; git checks it in fsck only.
        whole.resize(whole.len() + oid_bytes, 0);
        whole
    }

    fn version(&self) -> u32 {
        be32(&self.bytes, 4).unwrap_or(2)
    }
}

/// What an index tracks, for asking about one path at a time.
#[derive(Debug, Default)]
pub(crate) struct Tracked<'i> {
    pub files: HashSet<&'i [u8]>,
    pub folders: HashSet<&'i [u8]>,
}

fn root_of(body: &[u8], oid_bytes: usize) -> Option<Oid> {
    // The first record is the root: an empty name, NUL, "<entries> <subtrees>\n", id if entries >= 0.
    let rest = body.strip_prefix(b"\0")?;
    let line_end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&rest[..line_end]).ok()?;
    let entries: i64 = line.split(' ').next()?.parse().ok()?;
    if entries < 0 {
        return None;
    }
    Some(Oid::from_raw(rest.get(line_end + 1..line_end + 1 + oid_bytes)?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
