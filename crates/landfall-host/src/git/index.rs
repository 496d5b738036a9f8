//! Reads an index file that git wrote for us: which paths it tracks, and which tree it stands for.
//!
//! Only for an index in the engine's own folder. An agent's index is never read.

use std::collections::HashSet;
use std::path::Path;

use super::names::Oid;

/// One tracked path. It is read in place: an index has as many entries as the project has files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry<'i> {
    pub mode: u32,
    pub path: &'i [u8],
    oid: &'i [u8],
    /// All its bytes, for copying it unchanged.
    whole: &'i [u8],
}

impl IndexEntry<'_> {
    /// Whether this is the very file that git wrote: the same inode, not touched since, under no other name. Git itself
    /// compares whole seconds only, and does not look at names.
    pub fn is_as_checked_out(&self, meta: &std::fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let number = |at| read_be32(self.whole, at).map(i64::from);
        let low = |number: i64| number & 0xffff_ffff; // an entry has 32 bits for each
        let is_same_time = number(0) == Some(low(meta.ctime()))
            // A git that does not know parts of seconds writes none.
            && matches!(number(4), Some(parts) if parts == 0 || parts == meta.ctime_nsec());
        let is_same_inode = number(20) == Some(low(meta.ino().cast_signed()));
        is_same_time && is_same_inode && meta.nlink() == 1
    }

    pub fn oid(&self) -> Oid {
        Oid::from_raw(self.oid)
    }
}

/// Where an entry is in the file.
#[derive(Debug, Clone, Copy)]
struct IndexEntrySpan {
    start: usize,
    name: usize,
    name_end: usize,
    end: usize,
}

/// A change to an index: an entry without file times, so that git will look at the file itself, or none.
#[derive(Debug)]
pub(crate) struct IndexEdit {
    pub path: Vec<u8>,
    pub entry: Option<(u32, Oid)>,
}

/// A parsed index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    oid_bytes: usize,
    places: Vec<IndexEntrySpan>,
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
        let version = read_be32(&bytes, 4)?;
        if version != 2 && version != 3 {
            return None;
        }
        let count = read_be32(&bytes, 8)? as usize;
        let mut places = Vec::with_capacity(count.min(1 << 20));
        let mut at = 12;
        for _ in 0..count {
            let start = at;
            let flags_at = at + 40 + oid_bytes;
            let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
            let extended = version == 3 && flags & 0x4000 != 0;
            let name_at = flags_at + if extended { 4 } else { 2 };
            let length = bytes.get(name_at..)?.iter().position(|byte| *byte == 0)?;
            let name_end = name_at + length;
            at = start + (name_end - start + 8) / 8 * 8;
            places.push(IndexEntrySpan { start, name: name_at, name_end, end: at });
        }
        if at > bytes.len() - oid_bytes {
            return None;
        }
        let end = bytes.len() - oid_bytes;
        let mut tree = None;
        while at + 8 <= end {
            let size = read_be32(&bytes, at + 4)? as usize;
            let body = bytes.get(at + 8..at + 8 + size)?;
            if &bytes[at..at + 4] == b"TREE" {
                tree = root_of(body, oid_bytes);
            }
            at += 8 + size;
        }
        Some(Index { bytes, oid_bytes, places, tree })
    }

    /// The tracked paths in order.
    pub fn entries(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        self.places.iter().map(|place| IndexEntry {
            mode: read_be32(&self.bytes, place.start + 24).expect("checked when it was read"),
            path: &self.bytes[place.name..place.name_end],
            oid: &self.bytes[place.start + 40..place.start + 40 + self.oid_bytes],
            whole: &self.bytes[place.start..place.end],
        })
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The tracked paths, and every folder that leads to one.
    pub fn paths(&self) -> TrackedPaths<'_> {
        let mut tracked = TrackedPaths::default();
        for entry in self.entries() {
            tracked.files.insert(entry.path);
            for (at, byte) in entry.path.iter().enumerate().rev() {
                if *byte == b'/' && !tracked.folders.insert(&entry.path[..at]) {
                    break; // the rest was added with an earlier path
                }
            }
        }
        tracked
    }

    /// The attribute files and their contents: if they change, unchanged files may have to look different.
    pub fn attribute_files(&self) -> Vec<(Vec<u8>, Oid)> {
        self.entries()
            .filter(|entry| entry.path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes"))
            .map(|entry| (entry.path.to_vec(), entry.oid()))
            .collect()
    }

    /// The bytes of the same index with some paths replaced. `changes` must be sorted by path.
    pub fn with_edits(&self, changes: &[IndexEdit], oid_bytes: usize) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.bytes.len() + changes.len() * 100);
        let mut count: u32 = 0;
        let mut old = self.entries().peekable();
        for IndexEdit { path, entry } in changes {
            while let Some(entry) = old.next_if(|entry| entry.path < path.as_slice()) {
                body.extend_from_slice(entry.whole);
                count += 1;
            }
            while old.next_if(|entry| entry.path == path).is_some() {}
            if let Some((mode, oid)) = entry {
                let start = body.len();
                body.resize(start + 24, 0);
                body.extend_from_slice(&mode.to_be_bytes());
                body.resize(start + 40, 0);
                body.extend_from_slice(&oid.to_raw_bytes());
                body.extend_from_slice(&(path.len().min(0xfff) as u16).to_be_bytes());
                body.extend_from_slice(path);
                let length = body.len() - start;
                body.resize(start + (length + 8) / 8 * 8, 0);
                count += 1;
            }
        }
        for entry in old {
            body.extend_from_slice(entry.whole);
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
        read_be32(&self.bytes, 4).unwrap_or(2)
    }
}

/// What an index tracks, for asking about one path at a time.
#[derive(Debug, Default)]
pub(crate) struct TrackedPaths<'i> {
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

fn read_be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
