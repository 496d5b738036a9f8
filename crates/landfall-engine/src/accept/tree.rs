//! The files a criterion may look at: those of a commit, or of a checkout. Every path is walked part by part, and a link is
//! followed only as long as it stays inside.

use std::path::{Path, PathBuf};

use landfall_host::git::{CommitTree, TreeEntryKind};

/// What criteria look at.
pub enum AcceptanceTree {
    /// A commit, without a checkout.
    Commit(CommitTree),
    /// A checkout, and the commit it was made from if there is one.
    Folder {
        /// The root.
        root: PathBuf,
        /// What git knows of it.
        committed: Option<CommitTree>,
    },
}

/// What a path leads to.
pub(super) enum TreePathContent {
    /// Nothing.
    Nothing,
    /// A file, at this path once links are followed.
    File(String),
    /// A folder.
    Folder,
    /// Something else: a socket, another repository.
    Other,
}

const HOPS_MAX: usize = 16; // links on the way; more is a circle
/// A file larger than this is not read.
pub(super) const FILE_BYTES_MAX: u64 = 8 << 20;
const FILES_MAX: usize = 200_000; // of a checkout; a commit lists its own

impl AcceptanceTree {
    /// The commit it stands for, if it is known.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Commit(tree) => Some(tree.commit().as_str()),
            Self::Folder { committed, .. } => committed.as_ref().map(|tree| tree.commit().as_str()),
        }
    }

    /// Whether git knows the path: a file, a link, or a folder with something in it.
    pub(super) fn is_committed(&self, path: &str) -> Result<bool, String> {
        match self {
            Self::Commit(tree) | Self::Folder { committed: Some(tree), .. } => {
                Ok(tree.kind_at(path).is_some())
            }
            Self::Folder { committed: None, .. } => Err("the folder belongs to no commit".to_owned()),
        }
    }

    /// What stands at exactly this path, links not followed.
    fn read_entry_kind(&self, path: &str) -> Result<Option<TreeEntryKind>, String> {
        match self {
            Self::Commit(tree) => Ok(tree.kind_at(path)),
            Self::Folder { root, .. } => match std::fs::symlink_metadata(root.join(path)) {
                Ok(meta) if meta.is_symlink() => Ok(Some(TreeEntryKind::Link)),
                Ok(meta) if meta.is_dir() => Ok(Some(TreeEntryKind::Folder)),
                Ok(meta) if meta.is_file() => Ok(Some(TreeEntryKind::File)),
                Ok(_) => Ok(Some(TreeEntryKind::Module)),
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                    ) =>
                {
                    Ok(None)
                }
                Err(error) => Err(format!("look at `{path}`: {error}")),
            },
        }
    }

    /// Where the link at exactly this path leads; none if it is no link.
    pub(super) fn read_link_target(&self, path: &str) -> Result<Option<String>, String> {
        // Only the last part may be a link.
        if let Some((above, _)) = path.rsplit_once('/')
            && !matches!(self.resolve_path(above)?, TreePathContent::Folder)
        {
            return Ok(None);
        }
        if self.read_entry_kind(path)? != Some(TreeEntryKind::Link) {
            return Ok(None);
        }
        self.read_raw_target(path).map(Some)
    }

    fn read_raw_target(&self, path: &str) -> Result<String, String> {
        let bytes = match self {
            Self::Commit(tree) => {
                tree.read_content(path, 4096).map_err(|error| error.full_message())?.unwrap_or_default()
            }
            Self::Folder { root, .. } => {
                use std::os::unix::ffi::OsStringExt as _;
                let target = std::fs::read_link(root.join(path));
                target
                    .map_err(|error| format!("read the link `{path}`: {error}"))?
                    .into_os_string()
                    .into_vec()
            }
        };
        String::from_utf8(bytes).map_err(|_| format!("the link `{path}` leads to a name that is no text"))
    }

    /// What a path leads to, links followed. An error says that it leads out, or cannot be looked at.
    pub(super) fn resolve_path(&self, path: &str) -> Result<TreePathContent, String> {
        let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        let mut hops = 0;
        while let Some(part) = left.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => match at.pop() {
                    Some(_) => continue,
                    None => return Err(format!("`{path}` leads out of the tree")),
                },
                _ => at.push(part),
            }
            let here = at.join("/");
            match self.read_entry_kind(&here)? {
                None => return Ok(TreePathContent::Nothing),
                Some(TreeEntryKind::Folder) => {}
                Some(TreeEntryKind::File) if left.iter().all(|part| part.is_empty() || part == ".") => {
                    return Ok(TreePathContent::File(here));
                }
                Some(TreeEntryKind::File) => return Ok(TreePathContent::Nothing),
                Some(TreeEntryKind::Module) => return Ok(TreePathContent::Other),
                Some(TreeEntryKind::Link) => {
                    hops += 1;
                    let target = self.read_raw_target(&here)?;
                    if hops > HOPS_MAX || target.starts_with('/') {
                        return Err(format!("`{path}` leads out of the tree, by the link `{here}`"));
                    }
                    at.pop();
                    left.extend(target.split('/').rev().map(str::to_owned));
                }
            }
        }
        Ok(TreePathContent::Folder)
    }

    /// The text of a file; none if there is no such file.
    pub(super) fn read_text(&self, path: &str) -> Result<Option<String>, String> {
        Ok(self.read_bytes(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The bytes of a file; none if there is no such file.
    pub(super) fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let TreePathContent::File(real) = self.resolve_path(path)? else { return Ok(None) };
        let large = || format!("`{path}` is larger than {} MiB and is not read", FILE_BYTES_MAX >> 20);
        match self {
            Self::Commit(tree) => {
                let read = tree.read_content(&real, FILE_BYTES_MAX).map_err(|error| error.full_message())?;
                read.ok_or_else(large).map(Some)
            }
            Self::Folder { root, .. } => {
                read_file(&root.join(&real), &large).map(Some).map_err(|why| format!("read `{path}`: {why}"))
            }
        }
    }

    /// The paths of all files, but for git's own.
    pub(super) fn list_files(&self) -> Result<Vec<String>, String> {
        match self {
            Self::Commit(tree) => Ok(tree.file_paths().map(str::to_owned).collect()),
            Self::Folder { root, .. } => {
                let (mut files, mut open) = (Vec::new(), vec![String::new()]);
                while let Some(folder) = open.pop() {
                    let entries = std::fs::read_dir(root.join(&folder));
                    for entry in entries.map_err(|error| format!("list `{folder}`: {error}"))? {
                        let entry = entry.map_err(|error| format!("list `{folder}`: {error}"))?;
                        let Ok(name) = entry.file_name().into_string() else { continue };
                        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                        let kind = entry.file_type().map_err(|error| format!("look at `{path}`: {error}"))?;
                        if kind.is_dir() && name != ".git" {
                            open.push(path);
                        } else if kind.is_file() {
                            files.push(path);
                        }
                        if files.len() > FILES_MAX {
                            return Err(format!("there are more than {FILES_MAX} files"));
                        }
                    }
                }
                files.sort();
                Ok(files)
            }
        }
    }

    /// The names in a folder; none if there is no such folder.
    pub(super) fn list_names(&self, folder: &str) -> Result<Vec<String>, String> {
        match self {
            Self::Commit(tree) => {
                let inside = |path: &str| {
                    let name = path.strip_prefix(folder)?.strip_prefix('/')?;
                    (!name.contains('/')).then(|| name.to_owned())
                };
                Ok(tree.file_paths().filter_map(inside).collect())
            }
            Self::Folder { root, .. } => {
                let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Ok(Vec::new()) };
                let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                let mut names: Vec<String> = names.collect();
                names.sort();
                Ok(names)
            }
        }
    }
}

fn read_file(path: &Path, large: &dyn Fn() -> String) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let file = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    );
    let file = std::fs::File::from(file.map_err(|error| error.to_string())?);
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(large());
    }
    Ok(bytes)
}

/// Whether a path matches a pattern: `*` and `?` within a part, `**` over parts, `[ab]`, `{a,b}`.
pub(super) fn glob_matches(pattern: &regex::Regex, path: &str) -> bool {
    pattern.is_match(path)
}

/// The pattern as a regular expression.
pub(super) fn glob_to_regex(pattern: &str) -> Result<regex::Regex, String> {
    let mut text = String::from("^");
    let (mut rest, mut depth) = (pattern, 0_u32);
    while let Some(c) = rest.chars().next() {
        let mut skip = c.len_utf8();
        match c {
            '*' if rest.starts_with("**/") => {
                text.push_str("(?:.*/)?");
                skip = 3;
            }
            '*' if rest.starts_with("**") => {
                text.push_str(".*");
                skip = 2;
            }
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '{' => {
                depth += 1;
                text.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                text.push(')');
            }
            ',' if depth > 0 => text.push('|'),
            '[' => {
                let end = rest[1..].find(']').map(|at| at + 1).filter(|at| *at > 1);
                let Some(end) = end else { return Err(format!("`[` is not closed in `{pattern}`")) };
                let inner = &rest[1..end];
                let (not, inner) = inner.strip_prefix('!').map_or(("", inner), |inner| ("^", inner));
                let inner: String = inner
                    .chars()
                    .flat_map(
                        |c| if matches!(c, '\\' | '[' | '^' | '&' | '~') { vec!['\\', c] } else { vec![c] },
                    )
                    .collect();
                text.push_str(&format!("[{not}{inner}]"));
                skip = end + 1;
            }
            c => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[skip..];
    }
    if depth > 0 {
        return Err(format!("`{{` is not closed in `{pattern}`"));
    }
    text.push('$');
    super::files::compile_pattern(&text)
        .map_err(|why| format!("the pattern `{pattern}` makes no sense: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{glob_matches, glob_to_regex};

    #[test]
    fn patterns_match_as_in_a_shell() {
        let matches = |pattern: &str, path: &str| glob_matches(&glob_to_regex(pattern).expect(pattern), path);
        for (pattern, path) in [
            ("src/**/*.rs", "src/a.rs"),
            ("src/**/*.rs", "src/a/b/c.rs"),
            ("*.{md,txt}", "a.md"),
            ("a?c", "abc"),
            ("[a-c].x", "b.x"),
            ("[!a].x", "b.x"),
            ("**", "a/b"),
            ("a.b+c(d)", "a.b+c(d)"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.rs", "a/b.rs"),
            ("src/*.rs", "src/a/b.rs"),
            ("a.b", "axb"),
            ("[!a].x", "a.x"),
            ("a?c", "a/c"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
        assert!(glob_to_regex("[a").is_err() && glob_to_regex("{a").is_err() && glob_to_regex("[]").is_err());
    }
}
