//! Where the lists of a sandbox lead: real paths, checked against each other.

use super::aliases::{MountList, is_same_file};
use super::setup::SandboxError;
use super::words::{CacheLayer, Sandbox, SandboxLevel};
use std::path::{Path, PathBuf};

/// The lists with every link followed. What is in none of them can be read and not changed; what is in several goes by the
/// nearest entry above it. All exist, but what is hidden need not.
#[derive(Default)]
pub(super) struct SandboxPaths {
    pub(super) write: Vec<PathBuf>,
    pub(super) read: Vec<PathBuf>,
    pub(super) hide: Vec<PathBuf>,
    pub(super) private: Vec<PathBuf>,
    /// Those of `write` in which files may be linked and moved.
    pub(super) exclusive: Vec<PathBuf>,
    pub(super) layers: Vec<CacheLayer>,
}

/// What the lists say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathAccess {
    /// Its content cannot be seen.
    Hidden,
    /// It is replaced by an empty folder of the run's own.
    Private,
    /// It can be read.
    Read,
    /// It can be changed, and outside it stays as it is.
    Layer,
    /// It can be changed.
    Write,
}

impl SandboxPaths {
    /// Refuses lists that contradict each other.
    pub(super) fn new(sandbox: &Sandbox, run: &Path) -> Result<SandboxPaths, SandboxError> {
        let mut hide: Vec<PathBuf> = sandbox.hide.iter().map(|path| resolve_existing(path)).collect();
        let is_hidden =
            |path: &Path, hidden: &[PathBuf]| hidden.iter().any(|hidden| path.starts_with(hidden));
        // Without mounts a rule cannot take back part of what another one gives.
        let has_mounts = sandbox.level.has_mounts();
        let open = |paths: &[PathBuf], can_be_changed: bool| -> Result<Vec<PathBuf>, SandboxError> {
            let mut found = Vec::with_capacity(paths.len());
            for named in paths {
                let Ok(path) = named.canonicalize() else { continue };
                // Whoever could put a link in its place must not get at what is hidden.
                let meant = is_hidden(named, &sandbox.hide) || is_hidden(named, &hide);
                if is_hidden(&path, &hide) && !meant {
                    return Err(SandboxError::Places(format!(
                        "`{}` leads to `{}`, which is hidden",
                        named.display(),
                        path.display()
                    )));
                }
                let below = hide.iter().find(|hidden| hidden.starts_with(&path));
                if let Some(hidden) = below.filter(|_| can_be_changed && !has_mounts) {
                    return Err(SandboxError::Places(format!(
                        "`{}` is hidden and cannot be, as `{}` is open to the agent",
                        hidden.display(),
                        path.display()
                    )));
                }
                found.push(path);
            }
            Ok(found)
        };
        let (write, read) = (open(&sandbox.write, true)?, open(&sandbox.read, false)?);
        let mut layers = Vec::new();
        for CacheLayer { path, changes } in sandbox.layers.iter().filter(|_| has_mounts) {
            let path = open(std::slice::from_ref(path), true)?.pop().filter(|path| path.is_dir());
            layers.extend(path.map(|path| CacheLayer { path, changes: changes.clone() }));
        }
        // A place that is both is open: whoever made the lists named it on purpose.
        let is_layer = |path: &PathBuf| layers.iter().any(|layer| layer.path == *path);
        hide.retain(|path| !write.contains(path) && !read.contains(path) && !is_layer(path));
        let run = resolve_existing(run);
        if let Some(path) = write.iter().find(|path| run.starts_with(path)) {
            return Err(SandboxError::Places(format!(
                "the run's own folder `{}` lies in `{}`, which the agent may change",
                run.display(),
                path.display()
            )));
        }
        let mounts = MountList::read()
            .map_err(|error| SandboxError::Places(format!("read the list of mounts: {error}")))?;
        let aliases: Vec<PathBuf> = hide.iter().flat_map(|path| mounts.find_aliases(path)).collect();
        // One that is opened under its other name is open under this one as well.
        let open_paths = || write.iter().chain(&read).chain(layers.iter().map(|layer| &layer.path));
        let is_open = |alias: &PathBuf| open_paths().any(|open| is_same_file(open, alias));
        hide.extend(aliases.into_iter().filter(|alias| !is_open(alias)));
        hide.sort();
        hide.dedup();
        let private = if has_mounts { &sandbox.private[..] } else { &[] };
        let private = private.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let exclusive = sandbox.exclusive.iter().filter_map(|path| path.canonicalize().ok());
        let exclusive = exclusive.filter(|path| write.contains(path)).collect();
        Ok(SandboxPaths { write, read, hide, private, exclusive, layers })
    }

    /// Every entry with what it says.
    pub(super) fn all_entries(&self) -> impl Iterator<Item = (&PathBuf, PathAccess)> {
        let of = |paths, access| std::iter::zip(paths, std::iter::repeat(access));
        let (hide, private) = (of(&self.hide, PathAccess::Hidden), of(&self.private, PathAccess::Private));
        let layers = self.layers.iter().map(|layer| (&layer.path, PathAccess::Layer));
        let open = of(&self.read, PathAccess::Read).chain(layers).chain(of(&self.write, PathAccess::Write));
        hide.chain(private).chain(open)
    }

    /// What holds at `path`; none if nothing is said about it.
    pub(super) fn access_at(&self, path: &Path) -> Option<PathAccess> {
        nearest_entry(self.all_entries(), path).map(|(_, access)| access)
    }

    /// Whether something below `path` is open.
    pub(super) fn has_open_below(&self, path: &Path) -> bool {
        let layers = self.layers.iter().map(|layer| &layer.path);
        self.read.iter().chain(&self.write).chain(layers).any(|open| open.starts_with(path))
    }

    /// Whether a file in the folder `path` is open for writing by itself.
    pub(super) fn has_own_file_in(&self, path: &Path) -> bool {
        self.write.iter().any(|own| own.parent() == Some(path) && own.is_file())
    }

    /// Whether `path` lies in a hidden folder in which the program may make files, as it has a file of its own there.
    pub(super) fn is_scratch(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|above| self.hide.iter().any(|hidden| hidden == above) && self.has_own_file_in(above))
    }

    /// What holds around `path`, its own entry aside.
    pub(super) fn access_around(&self, path: &Path) -> Option<(&Path, PathAccess)> {
        let others = self.all_entries().filter(|(entry, _)| entry.as_path() != path);
        nearest_entry(others, path).map(|(entry, access)| (entry.as_path(), access))
    }
}

/// The entry nearest to `path`; of two with the same path, the one that opens more.
fn nearest_entry<'a>(
    entries: impl Iterator<Item = (&'a PathBuf, PathAccess)>,
    path: &Path,
) -> Option<(&'a PathBuf, PathAccess)> {
    let above = entries.filter(|(entry, _)| path.starts_with(entry));
    above.max_by_key(|(entry, access)| (entry.components().count(), *access))
}

impl SandboxLevel {
    /// Whether the level has a view of the files of its own.
    pub(super) fn has_mounts(self) -> bool {
        match self {
            SandboxLevel::Write => false,
            SandboxLevel::Isolated | SandboxLevel::Strict => true,
        }
    }
}

/// Where a path leads, as far as there is anything; the rest as it is named.
pub(super) fn resolve_existing(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let Ok(real) = there.canonicalize() {
            let rest = path.strip_prefix(there).expect("an ancestor of it");
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{LayerChanges, ProcessLimits};

    fn places_at(
        level: SandboxLevel,
        write: &[&Path],
        hide: &[&Path],
        run: &Path,
    ) -> Result<SandboxPaths, String> {
        let list = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        let sandbox = Sandbox {
            level,
            write: list(write),
            hide: list(hide),
            read: vec![],
            private: vec![],
            exclusive: vec![],
            layers: vec![],
            limits: ProcessLimits::default(),
        };
        SandboxPaths::new(&sandbox, run).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn lists_that_contradict_each_other_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("it is there");
        let (state, work, run) = (top.join("state"), top.join("state/work"), top.join("state/runs/1"));
        for path in [&work, &run] {
            std::fs::create_dir_all(path).expect("writable");
        }
        let places = |write: &[&Path], hide: &[&Path]| places_at(SandboxLevel::Write, write, hide, &run);
        assert_eq!(places(&[&work], &[&state]).expect("sound").write, std::slice::from_ref(&work));
        let refused = |write: &Path, hide: &Path| places(&[write], &[hide]).err().expect("refused");
        assert!(refused(&top, &state).contains("cannot be"), "hidden below writable");
        assert!(
            refused(&top.join("state/runs"), &top.join("x")).contains("own folder"),
            "the run is writable"
        );
        let link = top.join("link");
        std::os::unix::fs::symlink(&work, &link).expect("writable");
        assert!(refused(&link, &state).contains("leads to"), "a link into what is hidden");
        let gone = places(&[&top.join("gone")], &[&top.join("later/secret")]).expect("sound");
        assert_eq!((gone.write, gone.hide), (vec![], vec![top.join("later/secret")]));
        let mounted =
            places_at(SandboxLevel::Isolated, &[&work], &[&work.join("secret")], &run).expect("sound");
        assert_eq!(mounted.access_at(&work.join("secret")), Some(PathAccess::Hidden));
    }

    #[test]
    fn the_nearest_entry_decides() {
        let list = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let places = SandboxPaths {
            write: list(&["/home/me/.cargo/registry", "/tmp/run/tmp"]),
            read: list(&["/home/me/.cargo"]),
            hide: list(&["/home/me", "/home/me/.cargo/credentials.toml"]),
            private: list(&["/tmp"]),
            exclusive: vec![],
            layers: vec![CacheLayer {
                path: "/home/me/.npm".into(),
                changes: LayerChanges::Copy("/state/npm".into()),
            }],
        };
        let of = |path: &str| places.access_at(Path::new(path));
        assert_eq!(of("/usr/bin"), None);
        assert_eq!(of("/home/me/.ssh/id"), Some(PathAccess::Hidden));
        assert_eq!(of("/home/me/.cargo/bin/cargo"), Some(PathAccess::Read));
        assert_eq!(of("/home/me/.cargo/credentials.toml"), Some(PathAccess::Hidden));
        assert_eq!(of("/home/me/.cargo/registry/x"), Some(PathAccess::Write));
        assert_eq!(of("/home/me/.npm/_cacache"), Some(PathAccess::Layer));
        assert_eq!(of("/tmp/other"), Some(PathAccess::Private));
        assert_eq!(of("/tmp/run/tmp/x"), Some(PathAccess::Write));
    }
}
