//! The frame of the store: the files and folders that git needs before it looks at any object or ref.
//!
//! All of it can be written again without a loss. Refs that hold nothing are put aside, and whoever knows where they were
//! sets them again.

use std::path::{Path, PathBuf};

use super::files;
use super::names::Oid;
use super::repo::ObjectFormat;
use super::run::{Git, GitError};
use super::store::BASE_REF;

/// HEAD points to a branch that never exists: nothing may depend on it.
const HEAD: &str = "ref: refs/heads/none\n";

/// Whatever an attribute file says, no driver or filter applies in the store.
const ATTRIBUTES: &str = "* !filter !merge !diff !conflict-marker-size\n";

/// Parents before children.
const FOLDERS: [&str; 7] =
    ["objects", "objects/info", "objects/pack", "refs", "refs/heads", "info", "refs/landfall"];

/// Where damaged files go that may still be of use to a person.
pub(super) const ASIDE: &str = "damaged";

/// Work in the store that the base does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWork {
    /// The ref that keeps it.
    pub name: String,
    /// The commit.
    pub commit: Oid,
    /// The first line of its message.
    pub subject: String,
}

/// Lists the base of the store in `dir` and the work of tasks that it does not have. Changes nothing.
pub(super) fn list_work(git: &Git, dir: &Path) -> Result<Vec<StoredWork>, GitError> {
    let list = |flags: &[&str], patterns: &[&str]| {
        let call = git.prepare_call(format!("list the work in `{}`", dir.display())).git_dir(dir);
        call.args(["for-each-ref", "--format=%(objectname) %(refname) %(contents:subject)"])
            .args(flags)
            .args(patterns)
            .output_text()
    };
    let base = list(&[], &[BASE_REF])?;
    let not_landed = format!("--no-merged={BASE_REF}");
    let flags: &[&str] = if base.trim().is_empty() { &[] } else { &[&not_landed] };
    let work = list(flags, &["refs/landfall/tasks", "refs/landfall/kept", "refs/landfall/done"])?;
    let parse = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let commit = parts.next()?.parse().ok()?;
        let (name, subject) = (parts.next()?.to_owned(), parts.next().unwrap_or_default().to_owned());
        Some(StoredWork { name, commit, subject })
    };
    Ok(base.lines().chain(work.lines()).filter_map(parse).collect())
}

/// Makes an empty store in `dir`, durably: a power cut leaves a whole one or none.
pub(super) fn create_store(dir: &Path, format: ObjectFormat) -> std::io::Result<()> {
    let parent = dir.parent().ok_or_else(|| std::io::Error::other("the store needs a folder around it"))?;
    std::fs::create_dir_all(parent)?;
    let mut draft = dir.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    files::remove_path(&draft)?;
    fill_store(&draft, format)?;
    for file in ["HEAD", "config", "info/attributes"] {
        std::fs::File::open(draft.join(file))?.sync_all()?;
    }
    for folder in FOLDERS.iter().rev() {
        files::sync_folder(&draft.join(folder))?;
    }
    files::sync_folder(&draft)?;
    std::fs::rename(&draft, dir)?;
    files::sync_folder(parent)
}

/// Writes what an empty repository needs.
pub(super) fn fill_store(dir: &Path, format: ObjectFormat) -> std::io::Result<()> {
    for folder in FOLDERS {
        std::fs::create_dir_all(dir.join(folder))?;
    }
    std::fs::write(dir.join("HEAD"), HEAD)?;
    std::fs::write(dir.join("config"), config_text(format))?;
    std::fs::write(dir.join("info/attributes"), ATTRIBUTES)
}

pub(super) fn config_text(format: ObjectFormat) -> String {
    format!(
        "{}\tbare = true\n\tfilemode = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        format.config_lines()
    )
}

/// One thing that is wrong with the frame of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreDamage {
    /// A folder is not there.
    NoFolder(&'static str),
    /// A file that is always the same is missing, empty or changed.
    File { name: &'static str, state: &'static str },
    /// A ref, or the list of packed refs, holds no object id.
    Refs(PathBuf),
}

impl StoreDamage {
    /// In words for a person.
    pub fn to_sentence(&self) -> String {
        match self {
            StoreDamage::NoFolder(name) => format!("the folder `{name}` is missing"),
            StoreDamage::File { name, state } => format!("`{name}` is {state}"),
            StoreDamage::Refs(name) => format!("`{}` holds no object id", name.display()),
        }
    }
}

/// Looks for damage. Reads a few small files and the names and sizes of refs; changes nothing.
pub(super) fn find_damage(dir: &Path) -> std::io::Result<Vec<StoreDamage>> {
    let mut found: Vec<StoreDamage> = FOLDERS
        .iter()
        .take(6)
        .filter(|name| !files::is_folder(&dir.join(name)))
        .map(|name| StoreDamage::NoFolder(name))
        .collect();
    let frame: [(&'static str, ContentCheck); 3] =
        [("HEAD", is_head), ("config", is_config), ("info/attributes", is_attributes)];
    for (name, is_whole) in frame {
        found.extend(state_of(&dir.join(name), is_whole)?.map(|state| StoreDamage::File { name, state }));
    }
    if let Some("empty" | "damaged") = state_of(&dir.join("packed-refs"), is_packed_refs)? {
        found.push(StoreDamage::Refs("packed-refs".into()));
    }
    find_broken_refs(dir, Path::new("refs"), 0, &mut found)?;
    Ok(found)
}

/// Whether the content of a file is what it should be.
type ContentCheck = fn(&[u8]) -> bool;

fn is_head(bytes: &[u8]) -> bool {
    bytes == HEAD.as_bytes()
}

/// Another version may have written other lines; what is needed is written again at every start.
fn is_config(bytes: &[u8]) -> bool {
    bytes.starts_with(b"[") && !bytes.contains(&0)
}

fn is_attributes(bytes: &[u8]) -> bool {
    bytes == ATTRIBUTES.as_bytes()
}

fn is_packed_refs(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').all(is_packed_line)
}

/// In which way a file is damaged. None: it is whole.
fn state_of(path: &Path, is_whole: ContentCheck) -> std::io::Result<Option<&'static str>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some("missing")),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Some("missing")),
        Err(error) => Err(error),
        Ok(bytes) if bytes.is_empty() => Ok(Some("empty")),
        Ok(bytes) if !is_whole(&bytes) => Ok(Some("damaged")),
        Ok(_) => Ok(None),
    }
}

fn is_packed_line(line: &[u8]) -> bool {
    let oid = |bytes: &[u8]| bytes.split(|byte| *byte == b' ').next().and_then(Oid::from_line).is_some();
    match line.first() {
        None | Some(b'#') => true,
        Some(b'^') => oid(&line[1..]),
        Some(_) => oid(line),
    }
}

fn find_broken_refs(
    dir: &Path,
    name: &Path,
    depth: u32,
    found: &mut Vec<StoreDamage>,
) -> std::io::Result<()> {
    const DEPTH_MAX: u32 = 20; // our own names have six parts at most
    let entries = match std::fs::read_dir(dir.join(name)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = name.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            find_broken_refs(dir, &name, depth + 1, found)?;
        } else if kind.is_file() && name.extension().is_none_or(|ending| ending != "lock") {
            // A ref is written once and has one of two sizes. Only another size, or the base, is worth reading the file.
            let is_plain = matches!(entry.metadata()?.len(), 41 | 65) && name != Path::new(BASE_REF);
            if !is_plain && !is_ref(&std::fs::read(dir.join(&name))?) {
                found.push(StoreDamage::Refs(name));
            }
        }
    }
    Ok(())
}

fn is_ref(bytes: &[u8]) -> bool {
    bytes.starts_with(b"ref: ") || Oid::from_line(bytes).is_some_and(|oid| !oid.is_zero())
}

/// Mends what [`find_damage`] found. Nothing is deleted: what cannot be read is put aside.
pub(super) fn repair_damage(dir: &Path, format: ObjectFormat, damage: &[StoreDamage]) -> std::io::Result<()> {
    for damage in damage {
        match damage {
            StoreDamage::NoFolder(name) => std::fs::create_dir_all(dir.join(name))?,
            StoreDamage::File { name, .. } => {
                let path = dir.join(name);
                std::fs::create_dir_all(path.parent().expect("it is in the store"))?;
                let text = match *name {
                    "HEAD" => HEAD.to_owned(),
                    "config" => config_text(format),
                    _ => ATTRIBUTES.to_owned(),
                };
                files::write_whole(&path, text.as_bytes())?;
            }
            StoreDamage::Refs(name) => {
                let aside = dir.join(ASIDE);
                std::fs::create_dir_all(&aside)?;
                let flat = name.to_string_lossy().replace('/', ".");
                let to = (0_u64..).map(|number| aside.join(format!("{flat}.{number}")));
                let to = to
                    .into_iter()
                    .find(|path| !files::path_exists(path))
                    .expect("there are more numbers than files");
                std::fs::rename(dir.join(name), to)?;
            }
        }
    }
    match damage.is_empty() {
        true => Ok(()),
        false => files::sync_folder(dir),
    }
}

/// The object format that the refs of a store speak of, where its settings are lost.
pub(super) fn format_by_refs(dir: &Path) -> Option<ObjectFormat> {
    let base = std::fs::read(dir.join(BASE_REF)).ok().and_then(|bytes| Oid::from_line(&bytes))?;
    match base.as_str().len() {
        64 => Some(ObjectFormat::Sha256),
        _ => Some(ObjectFormat::Sha1),
    }
}
