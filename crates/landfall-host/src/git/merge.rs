//! Merging two commits without a checkout, and what is in dispute if they do not fit.
//!
//! Only facts are told here: which paths, in which way, how many lines. What follows from them is decided elsewhere.

use std::collections::{HashMap, HashSet};

use super::names::Oid;
use super::objects::TreeEntry;
use super::run::GitError;
use super::store::Store;
use super::threeway::{self, ThreewayMerge};

/// Files above this size are not compared line by line.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// How much of a file git looks at for a NUL before it calls it binary.
const BINARY_LOOK: usize = 8000;

/// What a trial merge gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    /// Both sides fit together.
    Clean {
        /// The merged tree.
        tree: Oid,
    },
    /// They do not.
    Conflict {
        /// The paths in question.
        paths: Vec<ConflictedPath>,
        /// git's own words, for the agent.
        detail: String,
    },
}

/// A path that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictedPath {
    /// The path.
    pub path: Vec<u8>,
    /// Present in the common ancestor, in ours, in theirs.
    pub stages: [bool; 3],
    /// In which way it is in dispute.
    pub kind: ConflictKind,
    /// How many lines are in dispute: of each such place the larger side. 0 if it is not about lines, the largest
    /// number if the file is too large to look.
    pub lines: u32,
}

/// In which way a path is in dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictKind {
    /// Both sides changed the same lines.
    Content,
    /// Both sides added it, with other content.
    AddAdd,
    /// Both sides changed a file that is not text.
    Binary,
    /// One side deleted what the other changed.
    ModifyDelete {
        /// Whether the side that is merged into deleted it.
        by_ours: bool,
    },
    /// A side renamed it, or a folder above it, and the other did not go along.
    Rename,
    /// A file on one side is a folder on the other.
    FileFolder,
    /// An embedded repository.
    Submodule,
    /// A symbolic link on at least one side.
    Symlink,
    /// The sides do not agree on the mode.
    Mode,
}

/// The three stages of a path in dispute, as git tells them: common ancestor, ours, theirs.
type ConflictStages = [Option<(u32, Oid)>; 3];

/// What `merge-tree` said.
struct MergeTreeOutput {
    /// The merged tree; where the sides dispute, with marks in the files.
    tree: Oid,
    disputed: Vec<(Vec<u8>, ConflictStages)>,
    /// Kinds of messages, by path: words that git promises not to change.
    kinds: HashMap<Vec<u8>, HashSet<String>>,
    detail: String,
}

impl Store {
    /// Merges two commits without a checkout. No merge driver runs: the store reads no attributes.
    pub fn merge_commits(&self, ours: &Oid, theirs: &Oid) -> Result<MergeResult, GitError> {
        match self.try_merge(ours, theirs)? {
            Ok(tree) => Ok(MergeResult::Clean { tree }),
            Err(told) => {
                let detail = told.detail.clone();
                let paths = self.describe_conflicts(told)?;
                Ok(MergeResult::Conflict { paths, detail })
            }
        }
    }

    /// Merges two commits that do not fit by git's rules, if every place in dispute has only one reading: changes
    /// that touch but do not overlap are both kept, and white space that means nothing gives way. `None` if one
    /// place is left. The tree is that of a plain merge if there is no dispute at all.
    pub fn merge_simple(&self, base: &Oid, head: &Oid) -> Result<Option<Oid>, GitError> {
        let told = match self.try_merge(base, head)? {
            Ok(tree) => return Ok(Some(tree)),
            Err(told) => told,
        };
        let tree = told.tree.clone();
        let mut settled = Vec::with_capacity(told.disputed.len());
        for (path, stages) in &told.disputed {
            if kind_of(&told, path, stages) != ConflictKind::Content {
                return Ok(None);
            }
            match self.compare_stages(stages)? {
                ContentComparison::Text(ThreewayMerge { settled: Some(text), .. }) => {
                    settled.push((path.clone(), text))
                }
                ContentComparison::Text(ThreewayMerge { settled: None, .. })
                | ContentComparison::Binary
                | ContentComparison::TooLarge => {
                    return Ok(None);
                }
            }
        }
        // A dispute without a path in it would be lost here.
        if settled.is_empty() {
            return Ok(None);
        }
        let mut blobs = Vec::with_capacity(settled.len());
        for (path, text) in settled {
            blobs.push((path, self.write_blob(text)?));
        }
        let replaced: Vec<(&[u8], &Oid)> = blobs.iter().map(|(path, oid)| (path.as_slice(), oid)).collect();
        self.replace_blobs(&tree, &replaced).map(Some)
    }

    fn try_merge(&self, ours: &Oid, theirs: &Oid) -> Result<Result<Oid, MergeTreeOutput>, GitError> {
        if let Some(tree) = self.known_merge(ours, theirs)? {
            return Ok(Ok(tree));
        }
        let doing = format!("merge {theirs} into {ours}");
        let said = self
            .write_call(&doing)
            .args(["merge-tree", "--write-tree", "-z", "--messages", "--allow-unrelated-histories"])
            .args(["--end-of-options", ours.as_str(), theirs.as_str()])
            .timeout(self.merge_time())
            .run()?;
        let nonsense = || GitError::unexpected_output(&doing, "not the output of merge-tree");
        match said.code {
            0 => {
                let tree = said.stdout.split(|byte| *byte == 0).next().and_then(Oid::from_line);
                let tree = tree.ok_or_else(nonsense)?;
                self.remember_merge(ours, theirs, &tree);
                Ok(Ok(tree))
            }
            // The same code says that a commit is missing; then it says nothing else.
            1 if !said.stdout.is_empty() => parse_merge_output(&said.stdout).map(Err).ok_or_else(nonsense),
            _ => Err(said.into_error()),
        }
    }

    fn describe_conflicts(&self, told: MergeTreeOutput) -> Result<Vec<ConflictedPath>, GitError> {
        let mut paths = Vec::with_capacity(told.disputed.len());
        for (path, stages) in &told.disputed {
            let mut kind = kind_of(&told, path, stages);
            let mut lines = 0;
            if matches!(kind, ConflictKind::Content | ConflictKind::AddAdd) {
                match self.compare_stages(stages)? {
                    ContentComparison::Text(threeway) => lines = threeway.lines,
                    ContentComparison::Binary => kind = ConflictKind::Binary,
                    ContentComparison::TooLarge => lines = u32::MAX,
                }
            }
            let stages = stages.each_ref().map(Option::is_some);
            paths.push(ConflictedPath { path: path.clone(), stages, kind, lines });
        }
        Ok(paths)
    }

    fn compare_stages(&self, stages: &ConflictStages) -> Result<ContentComparison, GitError> {
        let mut texts: [Option<Vec<u8>>; 3] = [None, None, None];
        for (stage, text) in stages.iter().zip(&mut texts) {
            let Some((_, oid)) = stage else { continue };
            let object = self.objects().read_object(oid, TEXT_BYTES_MAX)?.ok_or_else(|| {
                GitError::unexpected_output(format!("read {oid}"), "its content is missing")
            })?;
            if object.size > TEXT_BYTES_MAX {
                return Ok(ContentComparison::TooLarge);
            }
            if object.bytes.iter().take(BINARY_LOOK).any(|byte| *byte == 0) {
                return Ok(ContentComparison::Binary);
            }
            *text = Some(object.bytes);
        }
        let [base, ours, theirs] = texts;
        let (ours, theirs) = (ours.unwrap_or_default(), theirs.unwrap_or_default());
        Ok(ContentComparison::Text(match base {
            Some(base) => threeway::merge_texts(&base, &ours, &theirs),
            None => ThreewayMerge { lines: threeway::count_disputed_between(&ours, &theirs), settled: None },
        }))
    }

    pub(super) fn write_blob(&self, bytes: Vec<u8>) -> Result<Oid, GitError> {
        let doing = "store a merged file";
        let said = self.write_call(doing).args(["hash-object", "-w", "--stdin"]).input(bytes).output()?;
        Oid::from_line(&said).ok_or_else(|| GitError::unexpected_output(doing, "not an object id"))
    }

    /// A tree with other contents in files that it has: one process for each folder above one.
    fn replace_blobs(&self, tree: &Oid, blobs: &[(&[u8], &Oid)]) -> Result<Oid, GitError> {
        let doing = || format!("put merged files into tree {tree}");
        let mut entries = self.objects().read_tree(tree)?;
        let mut below: HashMap<&[u8], Vec<(&[u8], &Oid)>> = HashMap::new();
        for (path, blob) in blobs {
            match path.iter().position(|byte| *byte == b'/') {
                Some(slash) => below.entry(&path[..slash]).or_default().push((&path[slash + 1..], blob)),
                None => match entries.iter_mut().find(|entry| entry.name == *path && is_file(entry)) {
                    Some(entry) => entry.oid = (*blob).clone(),
                    None => {
                        return Err(GitError::unexpected_output(
                            doing(),
                            "a file is not where it was in dispute",
                        ));
                    }
                },
            }
        }
        for (folder, blobs) in below {
            match entries.iter_mut().find(|entry| entry.name == folder && entry.is_tree()) {
                Some(entry) => entry.oid = self.replace_blobs(&entry.oid, &blobs)?,
                None => {
                    return Err(GitError::unexpected_output(
                        doing(),
                        "a folder is not where it was in dispute",
                    ));
                }
            }
        }
        let mut listing = Vec::new();
        for entry in &entries {
            let kind = match entry.mode {
                0o040000 => "tree",
                0o160000 => "commit",
                _ => "blob",
            };
            listing.extend_from_slice(format!("{:06o} {kind} {}\t", entry.mode, entry.oid).as_bytes());
            listing.extend_from_slice(&entry.name);
            listing.push(0);
        }
        let said = self.write_call(doing()).args(["mktree", "-z"]).input(listing).output()?;
        Oid::from_line(&said).ok_or_else(|| GitError::unexpected_output(doing(), "not an object id"))
    }
}

fn is_file(entry: &TreeEntry) -> bool {
    entry.mode & 0o170000 == 0o100000
}

/// What looking at the three contents of a path gave.
enum ContentComparison {
    Text(ThreewayMerge),
    Binary,
    TooLarge,
}

/// What git's words and the modes say; whether a file is text is seen later.
fn kind_of(told: &MergeTreeOutput, path: &[u8], stages: &ConflictStages) -> ConflictKind {
    let said = |word: &str| {
        told.kinds
            .get(path)
            .is_some_and(|kinds| kinds.iter().any(|kind| kind.starts_with("CONFLICT") && kind.contains(word)))
    };
    let any_mode = |mode: u32| stages.iter().flatten().any(|(it, _)| it & 0o170000 == mode);
    let [base, ours, theirs] = stages.each_ref().map(Option::as_ref);
    if any_mode(0o160000) || said("submodule") {
        return ConflictKind::Submodule;
    }
    if said("rename") {
        return ConflictKind::Rename;
    }
    if said("file/directory") {
        return ConflictKind::FileFolder;
    }
    match (base, ours, theirs) {
        (Some(_), None, _) => ConflictKind::ModifyDelete { by_ours: true },
        (Some(_), Some(_), None) => ConflictKind::ModifyDelete { by_ours: false },
        // Only one side is left at this path: it was moved out of the way of the other.
        (None, None, _) | (None, Some(_), None) => ConflictKind::FileFolder,
        (_, Some(_), Some(_)) if any_mode(0o120000) => ConflictKind::Symlink,
        (_, Some((_, ours)), Some((_, theirs))) if ours == theirs => ConflictKind::Mode,
        (_, Some(_), Some(_)) if said("binary") => ConflictKind::Binary,
        (None, Some(_), Some(_)) => ConflictKind::AddAdd,
        (Some(_), Some(_), Some(_)) => ConflictKind::Content,
    }
}

fn parse_merge_output(bytes: &[u8]) -> Option<MergeTreeOutput> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let tree = Oid::from_line(parts.next()?)?;
    let mut disputed: Vec<(Vec<u8>, ConflictStages)> = Vec::new();
    for part in parts.by_ref() {
        if part.is_empty() {
            break;
        }
        // "<mode> <id> <stage>\t<path>"
        let tab = part.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(&part[..tab]).ok()?.split(' ');
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let oid: Oid = words.next()?.parse().ok()?;
        let stage: usize = words.next()?.parse().ok()?;
        let path = &part[tab + 1..];
        if disputed.last().is_none_or(|(last, _)| last != path) {
            disputed.push((path.to_vec(), ConflictStages::default()));
        }
        *disputed.last_mut()?.1.get_mut(stage.checked_sub(1)?)? = Some((mode, oid));
    }
    let mut told = MergeTreeOutput { tree, disputed, kinds: HashMap::new(), detail: String::new() };
    // "<number of paths> <path>… <kind> <message>", all NUL-terminated; the message is what people read.
    while let Some(count) = parts.next() {
        let Some(count) = std::str::from_utf8(count).ok().and_then(|text| text.parse::<usize>().ok()) else {
            break;
        };
        if count > 100_000 {
            break;
        }
        let paths: Vec<&[u8]> = parts.by_ref().take(count).collect();
        let kind = String::from_utf8_lossy(parts.next()?).into_owned();
        for path in paths {
            told.kinds.entry(path.to_vec()).or_default().insert(kind.clone());
        }
        let Some(message) = parts.next() else { break };
        if told.detail.len() < 16 << 10 {
            told.detail.push_str(&String::from_utf8_lossy(message));
            if !told.detail.ends_with('\n') {
                told.detail.push('\n');
            }
        }
    }
    Some(told)
}
