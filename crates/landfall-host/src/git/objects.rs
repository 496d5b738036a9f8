//! Reading objects of the store through one long-lived `cat-file`: commits, trees, differences of trees.
//!
//! A process costs 2 ms, a question to a running one 0.05 ms. Only object ids are ever asked for, so
//! nothing in a question can be an option, a path or a rev expression.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use super::names::Oid;
use super::run::{Git, GitError, GitErrorKind, QUICK, kill_group, read_some_until};

/// The largest object that is read into memory.
const OBJECT_MAX: u64 = 64 << 20;

/// How many commits are remembered: enough for all tasks at work, a few hundred kilobytes.
const COMMITS_MAX: usize = 1_000;

/// The longest first line of an answer: an id, a kind and a size.
const LINE_MAX: usize = 300;

/// How much is read at once; most answers are smaller.
const CHUNK: usize = 16 << 10;

/// How deep folders may be nested; git has the same limit.
const TREE_DEPTH_MAX: usize = 2_000;

fn too_deep_error() -> GitError {
    GitError::unexpected_output("compare trees", format!("folders nested deeper than {TREE_DEPTH_MAX}"))
}

/// The reader of one repository's objects.
#[derive(Debug)]
pub(crate) struct Objects {
    git: Git,
    git_dir: PathBuf,
    running: Mutex<Option<ObjectReaderProcess>>,
    /// Commits that were read: what an id stands for never changes.
    commits: Mutex<HashMap<Oid, CommitObject>>,
}

#[derive(Debug)]
struct ObjectReaderProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// What was read and not yet used: an answer comes in one or two reads, not byte by byte.
    read: Vec<u8>,
}

impl Drop for ObjectReaderProcess {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

/// An object as it was read.
#[derive(Debug)]
pub(crate) struct Object {
    pub kind: String,
    pub size: u64,
    /// Empty if the object is larger than asked for.
    pub bytes: Vec<u8>,
}

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitObject {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    /// When it was committed, in seconds since 1970; 0 if it does not say so in a way that git writes.
    pub at_s: i64,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub mode: u32,
    pub name: Vec<u8>,
    pub oid: Oid,
}

impl TreeEntry {
    pub fn is_tree(&self) -> bool {
        self.mode == 0o040000
    }
}

/// One path that two trees do not agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub path: Vec<u8>,
    pub old: Option<(u32, Oid)>,
    pub new: Option<(u32, Oid)>,
}

impl Objects {
    pub fn new(git: &Git, git_dir: &Path) -> Objects {
        let (running, commits) = (Mutex::new(None), Mutex::default());
        Objects { git: git.clone(), git_dir: git_dir.to_owned(), running, commits }
    }

    /// Kind and size of an object; `None` if it is not there.
    pub fn object_info(&self, oid: &Oid) -> Result<Option<(String, u64)>, GitError> {
        Ok(self.ask_reader("info", oid, 0)?.map(|object| (object.kind, object.size)))
    }

    /// An object with its bytes, if it is not larger than `max`.
    pub fn read_object(&self, oid: &Oid, max: u64) -> Result<Option<Object>, GitError> {
        match self.ask_reader("info", oid, 0)? {
            None => Ok(None),
            Some(object) if object.size > max.min(OBJECT_MAX) => Ok(Some(object)),
            Some(_) => self.ask_reader("contents", oid, OBJECT_MAX),
        }
    }

    /// A commit; an error if it is missing or something else.
    pub fn read_commit(&self, oid: &Oid) -> Result<CommitObject, GitError> {
        let remembered = || self.commits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(commit) = remembered().get(oid) {
            return Ok(commit.clone());
        }
        let bytes = self.read_expected(oid, "commit")?;
        let commit = parse_commit(&bytes)
            .ok_or_else(|| GitError::unexpected_output(format!("read commit {oid}"), "not a commit"))?;
        let mut remembered = remembered();
        if remembered.len() >= COMMITS_MAX {
            remembered.clear(); // rarely; what is needed is read again
        }
        remembered.insert(oid.clone(), commit.clone());
        Ok(commit)
    }

    /// The entries of a tree; an error if it is missing or something else.
    pub fn read_tree(&self, oid: &Oid) -> Result<Vec<TreeEntry>, GitError> {
        let bytes = self.read_expected(oid, "tree")?;
        parse_tree(&bytes, oid.as_str().len() / 2)
            .ok_or_else(|| GitError::unexpected_output(format!("read tree {oid}"), "not a tree"))
    }

    fn read_expected(&self, oid: &Oid, kind: &str) -> Result<Vec<u8>, GitError> {
        let doing = || format!("read {kind} {oid}");
        match self.ask_reader("contents", oid, OBJECT_MAX)? {
            Some(object) if object.kind == kind => Ok(object.bytes),
            Some(object) => Err(GitError::unexpected_output(doing(), format!("it is a {}", object.kind))),
            None => Err(GitError::unexpected_output(doing(), "it is missing")),
        }
    }

    /// All paths on which two trees differ, files only, sorted as git sorts an index. Renames are a
    /// removal and an addition. `max` bounds the answer; beyond it, an error.
    pub fn list_differences(&self, old: &Oid, new: &Oid, max: usize) -> Result<Vec<Difference>, GitError> {
        let mut found = Vec::new();
        self.walk_trees(Some(old), Some(new), &mut Vec::new(), max, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// How many files and folders `new` has that `old` does not have as they are. Every pair of trees is read once,
    /// however often it occurs: a few small trees can stand for a million paths.
    pub fn count_changed_paths(&self, old: &Oid, new: &Oid) -> Result<u64, GitError> {
        self.count_pair(Some(old), new, 0, &mut HashMap::new())
    }

    fn count_pair(
        &self,
        old: Option<&Oid>,
        new: &Oid,
        depth: usize,
        known: &mut HashMap<(Option<Oid>, Oid), u64>,
    ) -> Result<u64, GitError> {
        if old == Some(new) {
            return Ok(0);
        }
        let key = (old.cloned(), new.clone());
        if let Some(count) = known.get(&key) {
            return Ok(*count);
        }
        if depth > TREE_DEPTH_MAX {
            return Err(too_deep_error());
        }
        let before: HashMap<Vec<u8>, TreeEntry> = match old {
            Some(old) => self.read_tree(old)?.into_iter().map(|entry| (entry.name.clone(), entry)).collect(),
            None => HashMap::new(),
        };
        let mut count: u64 = 0;
        for entry in self.read_tree(new)? {
            let was = before.get(&entry.name);
            if was.is_some_and(|was| (was.mode, &was.oid) == (entry.mode, &entry.oid)) {
                continue;
            }
            count = count.saturating_add(1);
            if entry.is_tree() {
                let was = was.filter(|was| was.is_tree()).map(|was| &was.oid);
                count = count.saturating_add(self.count_pair(was, &entry.oid, depth + 1, known)?);
            }
        }
        known.insert(key, count);
        Ok(count)
    }

    fn walk_trees(
        &self,
        old: Option<&Oid>,
        new: Option<&Oid>,
        prefix: &mut Vec<u8>,
        max: usize,
        found: &mut Vec<Difference>,
    ) -> Result<(), GitError> {
        if old == new {
            return Ok(());
        }
        if prefix.iter().filter(|byte| **byte == b'/').count() > TREE_DEPTH_MAX {
            return Err(too_deep_error());
        }
        let old = old.map(|oid| self.read_tree(oid)).transpose()?.unwrap_or_default();
        let new = new.map(|oid| self.read_tree(oid)).transpose()?.unwrap_or_default();
        let mut by_name: std::collections::BTreeMap<&[u8], (Option<&TreeEntry>, Option<&TreeEntry>)> =
            std::collections::BTreeMap::new();
        for entry in &old {
            by_name.entry(&entry.name).or_default().0 = Some(entry);
        }
        for entry in &new {
            by_name.entry(&entry.name).or_default().1 = Some(entry);
        }
        for (name, (old, new)) in by_name {
            if old.map(|entry| (entry.mode, &entry.oid)) == new.map(|entry| (entry.mode, &entry.oid)) {
                continue;
            }
            let length = prefix.len();
            prefix.extend_from_slice(name);
            let file = |entry: Option<&TreeEntry>| {
                entry.filter(|entry| !entry.is_tree()).map(|entry| (entry.mode, entry.oid.clone()))
            };
            let (old_file, new_file) = (file(old), file(new));
            if old_file.is_some() || new_file.is_some() {
                if found.len() >= max {
                    return Err(GitError::unexpected_output(
                        "compare trees",
                        format!("more than {max} paths differ"),
                    ));
                }
                found.push(Difference { path: prefix.clone(), old: old_file, new: new_file });
            }
            let old_tree = old.filter(|entry| entry.is_tree()).map(|entry| &entry.oid);
            let new_tree = new.filter(|entry| entry.is_tree()).map(|entry| &entry.oid);
            if old_tree.is_some() || new_tree.is_some() {
                prefix.push(b'/');
                self.walk_trees(old_tree, new_tree, prefix, max, found)?;
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    /// The entry at a path of a tree, found part by part.
    pub fn at_path(&self, tree: &Oid, path: &[u8]) -> Result<Option<TreeEntry>, GitError> {
        let mut at = tree.clone();
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let Some(entry) = self.read_tree(&at)?.into_iter().find(|entry| entry.name == part) else {
                return Ok(None);
            };
            if parts.peek().is_none() {
                return Ok(Some(entry));
            }
            if !entry.is_tree() {
                return Ok(None);
            }
            at = entry.oid;
        }
        Ok(None)
    }

    fn ask_reader(&self, verb: &str, oid: &Oid, max: u64) -> Result<Option<Object>, GitError> {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A reader that died between two questions is started again; one that dies on a question is an error.
        if let Some(reader) = running.as_mut()
            && reader.child.try_wait().is_ok_and(|status| status.is_some())
        {
            *running = None;
        }
        let reader = match running.as_mut() {
            Some(reader) => reader,
            None => running.insert(self.start_reader()?),
        };
        let answer = request_object(reader, verb, oid, max);
        if answer.is_err() {
            *running = None; // half an answer may still be in the pipe
        }
        answer.map_err(|kind| GitError { doing: format!("read object {oid}"), kind })
    }

    fn start_reader(&self) -> Result<ObjectReaderProcess, GitError> {
        let call = self.git.prepare_call("start the object reader").git_dir(&self.git_dir).args([
            "cat-file",
            "--batch-command",
            "-z",
        ]);
        let mut child = call.spawn(Stdio::piped())?;
        let _ = child.stderr.take(); // it is a bystander: a complaint shows as a missing answer
        let stdin = child.stdin.take().expect("it was started with a pipe");
        let stdout = child.stdout.take().expect("it was started with a pipe");
        Ok(ObjectReaderProcess { child, stdin, stdout, read: Vec::new() })
    }
}

fn request_object(
    reader: &mut ObjectReaderProcess,
    verb: &str,
    oid: &Oid,
    max: u64,
) -> Result<Option<Object>, GitErrorKind> {
    let nonsense = |line: &str| GitErrorKind::Output(format!("`{}`", line.escape_debug()));
    reader.stdin.write_all(format!("{verb} {oid}\0").as_bytes()).map_err(GitErrorKind::Io)?;
    let deadline = Instant::now() + QUICK;
    // The answer's first line, then as many bytes as it says.
    let end = loop {
        match reader.read.iter().position(|byte| *byte == b'\n') {
            Some(end) => break end,
            None if reader.read.len() > LINE_MAX => {
                return Err(nonsense(&String::from_utf8_lossy(&reader.read)));
            }
            None => read_more(reader, deadline)?,
        }
    };
    let line: Vec<u8> = reader.read.drain(..=end).collect();
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    let mut words = line.split(' ');
    if words.next() != Some(oid.as_str()) {
        return Err(nonsense(&line));
    }
    let kind = match words.next() {
        Some("missing") => return Ok(None),
        Some(kind @ ("commit" | "tree" | "blob" | "tag")) => kind.to_owned(),
        _ => return Err(nonsense(&line)),
    };
    let size: u64 = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| nonsense(&line))?;
    if verb == "info" {
        return Ok(Some(Object { kind, size, bytes: Vec::new() }));
    }
    if size > max {
        return Err(GitErrorKind::Output(format!("the object has {size} bytes")));
    }
    let whole = size as usize + 1;
    while reader.read.len() < whole {
        read_more(reader, deadline)?;
    }
    let mut bytes: Vec<u8> = reader.read.drain(..whole).collect();
    reader.read.shrink_to(CHUNK); // one large object must not be paid for ever after
    if bytes.pop() != Some(b'\n') {
        return Err(nonsense(&line));
    }
    Ok(Some(Object { kind, size, bytes }))
}

/// Reads what has come, at least something.
fn read_more(reader: &mut ObjectReaderProcess, deadline: Instant) -> Result<(), GitErrorKind> {
    let mut chunk = [0; CHUNK];
    match read_some_until(reader.stdout.as_fd(), &mut chunk, deadline) {
        Ok(0) => Err(GitErrorKind::Output("the object reader ended".to_owned())),
        Ok(count) => {
            reader.read.extend_from_slice(&chunk[..count]);
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Err(GitErrorKind::Timeout { after_s: QUICK.as_secs() })
        }
        Err(error) => Err(GitErrorKind::Io(error)),
    }
}

fn parse_commit(bytes: &[u8]) -> Option<CommitObject> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let tree = Oid::from_line(lines.next()?.strip_prefix(b"tree ")?)?;
    let mut lines = lines.take_while(|line| !line.is_empty()).peekable(); // then the message, which may say anything
    let mut parents = Vec::new();
    while let Some(parent) = lines.peek().and_then(|line| line.strip_prefix(b"parent ")) {
        parents.push(Oid::from_line(parent)?);
        lines.next();
    }
    let at_s = lines.find_map(|line| seconds_of(line.strip_prefix(b"committer ")?)).unwrap_or(0);
    Some(CommitObject { tree, parents, at_s })
}

/// The time in `Name <mail> 1700000000 +0000`.
fn seconds_of(committer: &[u8]) -> Option<i64> {
    let end = committer.iter().rposition(|byte| *byte == b'>')?;
    let text = std::str::from_utf8(&committer[end + 1..]).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn parse_tree(bytes: &[u8], oid_bytes: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&rest[..space]).ok()?, 8).ok()?;
        let nul = rest.iter().position(|byte| *byte == 0)?;
        let name = rest.get(space + 1..nul)?.to_vec();
        let oid = Oid::from_raw(rest.get(nul + 1..nul + 1 + oid_bytes)?);
        entries.push(TreeEntry { mode, name, oid });
        rest = &rest[nul + 1 + oid_bytes..];
    }
    Some(entries)
}
