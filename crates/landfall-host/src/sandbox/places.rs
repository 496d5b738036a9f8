//! Where the lists of a sandbox lead: real paths, checked against each other.

use super::setup::Refusal;
use super::words::Sandbox;
use std::path::{Path, PathBuf};

/// The lists with every link followed. `write` and `read` exist; what is hidden need not.
pub(super) struct Places {
    pub(super) write: Vec<PathBuf>,
    pub(super) read: Vec<PathBuf>,
    pub(super) hide: Vec<PathBuf>,
}

impl Places {
    /// Refuses lists that contradict each other: a rule cannot take back part of what another one gives.
    pub(super) fn new(sandbox: &Sandbox, run: &Path) -> Result<Places, Refusal> {
        let hide: Vec<PathBuf> = sandbox.hide.iter().map(|path| real(path)).collect();
        let is_hidden =
            |path: &Path, hidden: &[PathBuf]| hidden.iter().any(|hidden| path.starts_with(hidden));
        let open = |paths: &[PathBuf]| -> Result<Vec<PathBuf>, Refusal> {
            let mut found = Vec::with_capacity(paths.len());
            for named in paths {
                let Ok(path) = named.canonicalize() else { continue };
                // Whoever could put a link in its place must not get at what is hidden.
                let meant = is_hidden(named, &sandbox.hide) || is_hidden(named, &hide);
                if is_hidden(&path, &hide) && !meant {
                    return Err(Refusal::Places(format!(
                        "`{}` leads to `{}`, which is hidden",
                        named.display(),
                        path.display()
                    )));
                }
                if let Some(hidden) = hide.iter().find(|hidden| hidden.starts_with(&path)) {
                    return Err(Refusal::Places(format!(
                        "`{}` is hidden and cannot be, as `{}` is open to the agent",
                        hidden.display(),
                        path.display()
                    )));
                }
                found.push(path);
            }
            Ok(found)
        };
        let (write, read) = (open(&sandbox.write)?, open(&sandbox.read)?);
        let run = real(run);
        if let Some(path) = write.iter().find(|path| run.starts_with(path)) {
            return Err(Refusal::Places(format!(
                "the run's own folder `{}` lies in `{}`, which the agent may change",
                run.display(),
                path.display()
            )));
        }
        Ok(Places { write, read, hide })
    }
}

/// Where a path leads, as far as there is anything; the rest as it is named.
pub(super) fn real(path: &Path) -> PathBuf {
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
    use crate::sandbox::{Level, Limits};

    fn places(write: &[&Path], hide: &[&Path], run: &Path) -> Result<Places, String> {
        let list = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        let sandbox = Sandbox {
            level: Level::Write,
            write: list(write),
            hide: list(hide),
            read: vec![],
            limits: Limits::default(),
        };
        Places::new(&sandbox, run).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn lists_that_contradict_each_other_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("it is there");
        let (state, work, run) = (top.join("state"), top.join("state/work"), top.join("state/runs/1"));
        for path in [&work, &run] {
            std::fs::create_dir_all(path).expect("writable");
        }
        assert_eq!(places(&[&work], &[&state], &run).expect("sound").write, std::slice::from_ref(&work));
        let refused = |write: &Path, hide: &Path| places(&[write], &[hide], &run).err().expect("refused");
        assert!(refused(&top, &state).contains("cannot be"), "hidden below writable");
        assert!(
            refused(&top.join("state/runs"), &top.join("x")).contains("own folder"),
            "the run is writable"
        );
        let link = top.join("link");
        std::os::unix::fs::symlink(&work, &link).expect("writable");
        assert!(refused(&link, &state).contains("leads to"), "a link into what is hidden");
        let gone = places(&[&top.join("gone")], &[&top.join("later/secret")], &run).expect("sound");
        assert_eq!((gone.write, gone.hide), (vec![], vec![top.join("later/secret")]));
    }
}
