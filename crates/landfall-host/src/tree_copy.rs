//! Copies of folders that somebody else may be changing meanwhile, such as the cache of a package manager.
//!
//! What vanishes or cannot be read while we look is left out. Links are copied as links and never followed.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How much there is in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeSize {
    /// Files, folders and links.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

impl TreeSize {
    fn add(&mut self, meta: &Metadata) {
        self.files += 1;
        self.bytes += if meta.is_file() { meta.len() } else { 0 };
    }

    fn is_over(self, max: TreeSize) -> bool {
        self.files > max.files || self.bytes > max.bytes
    }
}

/// How much there is in `folder`, without the folders of these names at its top. Stops looking above `max`.
#[must_use]
pub fn measure_tree(folder: &Path, without: &[&str], max: TreeSize) -> TreeSize {
    let mut size = TreeSize::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for (path, meta) in list_entries(&next) {
            if is_left_out(folder, &path, without) {
                continue;
            }
            size.add(&meta);
            if size.is_over(max) {
                return size;
            }
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    size
}

/// Whether files of another user or group are found near the top of `folder`. Not all of it is looked at: folders whose files
/// go to another group, and those that another user has filled, show it there.
#[must_use]
pub fn has_foreign_files(folder: &Path) -> bool {
    const ENTRIES_MAX: usize = 2_000;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let is_foreign = |meta: &Metadata| (meta.uid(), meta.gid()) != (user, group);
    if fs::metadata(folder).is_ok_and(|meta| is_foreign(&meta)) {
        return true;
    }
    // One level after the other, so that the bound is not used up by one deep branch.
    let mut folders = std::collections::VecDeque::from([folder.to_owned()]);
    let mut looked_at = 0;
    while let Some(next) = folders.pop_front() {
        for (path, meta) in list_entries(&next) {
            looked_at += 1;
            if is_foreign(&meta) {
                return true;
            }
            if looked_at >= ENTRIES_MAX {
                return false;
            }
            if meta.is_dir() {
                folders.push_back(path);
            }
        }
    }
    false
}

/// Whether a copy in `to` shares its content with a file of `from` until one of them changes, by trying.
#[must_use]
pub fn can_clone(from: &Path, to: &Path) -> bool {
    const FOLDERS_MAX: usize = 100;
    if std::env::var_os("LANDFALL_SANDBOX_BREAK").is_some_and(|part| part == "reflink") {
        return false;
    }
    let mut folders = vec![from.to_owned()];
    for _ in 0..FOLDERS_MAX {
        let Some(next) = folders.pop() else { break };
        for (path, meta) in list_entries(&next) {
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() && meta.len() > 0 {
                let trial = to.join(format!(".clone-{}", std::process::id()));
                let cloned = try_clone(&path, &trial).is_ok();
                let _ = fs::remove_file(&trial); // it may never have come to be
                return cloned;
            }
        }
    }
    false
}

fn try_clone(from: &Path, to: &Path) -> io::Result<()> {
    let from = open_plain(from)?;
    let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    clone(&to, &from)
}

#[cfg(target_os = "linux")]
fn clone(to: &File, from: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
fn clone(_to: &File, _from: &File) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// The links in `folder`, each with where it leads.
#[must_use]
pub fn list_links(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for (path, meta) in list_entries(&next) {
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_symlink()
                && let Ok(target) = fs::read_link(&path)
            {
                links.push((path, target));
            }
        }
    }
    links
}

/// Copies what is in `from` to the new folder `to`, without the folders of these names at its top.
///
/// # Errors
/// When something cannot be written. What has been copied until then stays.
pub fn copy_tree(from: &Path, to: &Path, without: &[&str]) -> io::Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    let mut modes = Vec::new();
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    while let Some((source, target)) = folders.pop() {
        for (path, meta) in list_entries(&source) {
            if is_left_out(from, &path, without) {
                continue;
            }
            let target = target.join(path.file_name().expect("an entry of a folder has a name"));
            if meta.is_dir() {
                DirBuilder::new().mode(0o700).create(&target)?;
                modes.push((target.clone(), meta.mode()));
                folders.push((path, target));
            } else if meta.is_symlink() {
                match fs::read_link(&path) {
                    Ok(link) => std::os::unix::fs::symlink(link, &target)?,
                    Err(_) => continue, // it vanished
                }
            } else if meta.is_file() {
                copy_file(&path, &meta, &target)?;
            }
        }
    }
    // Afterwards, from the inside out: some folders are read-only.
    for (folder, mode) in modes.into_iter().rev() {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode & 0o777))?;
    }
    Ok(())
}

fn copy_file(from: &Path, meta: &Metadata, to: &Path) -> io::Result<()> {
    let mut source = match open_plain(from) {
        Ok(source) => source,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    if clone(&target, &source).is_err() {
        io::copy(&mut source, &mut target)?;
    }
    // Some tools judge by the time whether what they unpacked is current.
    if let Ok(modified) = meta.modified() {
        target.set_modified(modified)?;
    }
    target.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o777))
}

/// Opens what was a plain file a moment ago, and nothing that took its place.
fn open_plain(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
}

fn is_left_out(top: &Path, path: &Path, without: &[&str]) -> bool {
    path.parent() == Some(top) && without.iter().any(|name| path.ends_with(name))
}

/// What is in a folder, as far as it can be seen.
fn list_entries(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: TreeSize = TreeSize { files: 100, bytes: 1_000 };

    fn make_cache() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("cache");
        for inner in ["src/deep", "index"] {
            fs::create_dir_all(cache.join(inner)).expect("ours");
        }
        for (name, text) in [("src/deep/code", "rebuilt"), ("index/a", "12345"), ("index/read-only", "678")] {
            fs::write(cache.join(name), text).expect("ours");
        }
        std::os::unix::fs::symlink("index/a", cache.join("link")).expect("ours");
        fs::set_permissions(cache.join("index/read-only"), fs::Permissions::from_mode(0o444)).expect("ours");
        fs::set_permissions(cache.join("index"), fs::Permissions::from_mode(0o555)).expect("ours");
        (folder, cache)
    }

    #[test]
    fn a_copy_has_the_same_files_modes_and_times_but_for_what_is_left_out() {
        let (folder, cache) = make_cache();
        let copy = folder.path().join("copy");
        copy_tree(&cache, &copy, &["src"]).expect("there is room");
        assert_eq!(fs::read_to_string(copy.join("index/a")).expect("copied"), "12345");
        assert_eq!(fs::read_link(copy.join("link")).expect("copied"), Path::new("index/a"));
        assert!(!copy.join("src").exists());
        for name in ["index", "index/read-only"] {
            let meta = |top: &Path| fs::metadata(top.join(name)).expect("there");
            assert_eq!(meta(&copy).mode(), meta(&cache).mode(), "{name}");
            assert_ne!(meta(&copy).ino(), meta(&cache).ino(), "{name}");
        }
        let time =
            |top: &Path| fs::metadata(top.join("index/a")).and_then(|meta| meta.modified()).expect("there");
        assert_eq!(time(&copy), time(&cache));
    }

    #[test]
    fn a_tree_is_measured_up_to_a_bound() {
        let (_folder, cache) = make_cache();
        assert_eq!(measure_tree(&cache, &["src"], MAX), TreeSize { files: 4, bytes: 8 });
        assert_eq!(measure_tree(&cache, &[], MAX), TreeSize { files: 7, bytes: 15 });
        let few = TreeSize { files: 2, bytes: 1_000 };
        assert_eq!(measure_tree(&cache, &[], few).files, 3);
        assert_eq!(measure_tree(&cache.join("gone"), &[], MAX), TreeSize::default());
    }

    #[test]
    fn files_of_another_user_are_noticed() {
        let (_folder, cache) = make_cache();
        assert!(!has_foreign_files(&cache));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(cache.join("index/a"), Some(65_534), None).expect("we are root");
            assert!(has_foreign_files(&cache));
        }
    }
}
