//! Which runs left a folder, by task. The folder of all of them is listed when it has changed, and not for each who asks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use landfall_engine::model::TaskId;

/// A change right after a list was made may bear the same moment as the one before it: disks count in ticks.
const SETTLED: Duration = Duration::from_millis(100);
const FOLDERS_MAX: usize = 8; // projects that one process answers for

/// The lists, by folder.
#[derive(Default)]
pub(crate) struct RunFolders(Mutex<BTreeMap<PathBuf, Arc<RunFolderListing>>>);

impl RunFolders {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<RunFolderListing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RunFolderListing {
    /// When the folder had changed last; none if that may have been too near to be told from the next change.
    changed: Option<SystemTime>,
    names: BTreeMap<TaskId, Vec<String>>,
}

/// The names of the folders of a task's runs, in no order.
pub(crate) fn run_folder_names(lists: &RunFolders, folder: &Path, task: TaskId) -> Vec<String> {
    let mut all = lists.lock();
    let changed = std::fs::metadata(folder).and_then(|meta| meta.modified()).ok();
    let listed = match all.get(folder) {
        Some(listed) if changed.is_some() && listed.changed == changed => listed.clone(),
        Some(_) | None => {
            if all.len() >= FOLDERS_MAX {
                all.clear();
            }
            let listed = Arc::new(list_run_folders(folder, changed));
            all.insert(folder.to_owned(), listed.clone());
            listed
        }
    };
    listed.names.get(&task).cloned().unwrap_or_default()
}

/// Whether a run of this task left a folder of this name.
pub(crate) fn is_one(folder: &Path, task: TaskId, name: &str) -> bool {
    parse_folder_task(name) == Some(task)
        && !name.contains(['/', '\0'])
        && std::fs::symlink_metadata(folder.join(name)).is_ok_and(|meta| meta.is_dir())
}

fn list_run_folders(folder: &Path, changed: Option<SystemTime>) -> RunFolderListing {
    let now = SystemTime::now();
    let changed = changed.filter(|at| now.duration_since(*at).is_ok_and(|age| age > SETTLED));
    let mut names: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some(task) = parse_folder_task(&name) else { continue };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.entry(task).or_default().push(name);
        }
    }
    RunFolderListing { changed, names }
}

/// The task whose run has a folder of this name: `T7` of `T7-a3-i5`.
fn parse_folder_task(name: &str) -> Option<TaskId> {
    let digits = name.split_once('-')?.0.strip_prefix('T')?;
    digits.parse().ok().filter(|_| !digits.starts_with(['0', '+'])).map(TaskId)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{RunFolders, is_one, run_folder_names};
    use landfall_engine::model::TaskId;

    #[test]
    fn a_folder_that_has_just_come_is_listed_and_one_that_is_gone_is_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let lists = RunFolders::default();
        let make = |name: &str| std::fs::create_dir(dir.path().join(name)).expect("it is made");
        for number in 0..200 {
            let name = format!("T7-a1-i{number}");
            make(&name);
            assert!(run_folder_names(&lists, dir.path(), TaskId(7)).contains(&name), "{name}");
        }
        make("T77-a1-i1");
        assert_eq!(run_folder_names(&lists, dir.path(), TaskId(77)), ["T77-a1-i1"]);
        std::fs::remove_dir(dir.path().join("T77-a1-i1")).expect("it is removed");
        assert!(run_folder_names(&lists, dir.path(), TaskId(77)).is_empty());

        // Once it has been still for a while the list is kept, and even then a change is seen at once.
        let is_kept = || lists.lock().get(dir.path()).is_some_and(|it| it.changed.is_some());
        let until = Instant::now() + Duration::from_secs(20);
        while !is_kept() {
            assert!(Instant::now() < until, "the list is never kept");
            run_folder_names(&lists, dir.path(), TaskId(7));
        }
        make("T78-a1-i1");
        assert_eq!(run_folder_names(&lists, dir.path(), TaskId(78)), ["T78-a1-i1"]);
    }

    #[test]
    fn only_a_folder_of_the_task_itself_is_one() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("T7-a1-i1/T7-inner")).expect("it is made");
        std::fs::write(dir.path().join("T7-file"), "").expect("it is written");
        std::os::unix::fs::symlink("T7-a1-i1", dir.path().join("T7-link")).expect("it is linked");
        let one = |task, name| is_one(dir.path(), TaskId(task), name);
        assert!(one(7, "T7-a1-i1"));
        assert!(!one(8, "T7-a1-i1"));
        for name in [
            "T7-file",
            "T7-link",
            "T7-a1-i1/T7-inner",
            "T7-x/../T7-a1-i1",
            "T7-none",
            "../T7-a1-i1",
            "t7-a1-i1",
            "T07-a1-i1",
            "",
        ] {
            assert!(!one(7, name), "{name}");
        }
    }
}
