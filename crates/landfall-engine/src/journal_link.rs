//! The tie between a journal and the state around it: the state folder, the store and every run folder carry its id. The
//! state folder also carries how far the journal was, so that an older copy in its place is noticed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_host::disk;
use landfall_host::sitter::{self, SitterState};
use landfall_host::wait;
use landfall_model::journal_claim::{JournalClaim, JournalObservation, StateTraces, decide_journal};
use landfall_store::{JournalHead, Seq, StoreError, StoreReader};

use crate::errand::error_chain;
use crate::folder::StateFolder;

/// The file that holds the id, in the state folder, the store and each run folder.
const ID_FILE: &str = "journal-id";

/// The file in the state folder that says how far the journal was: number and hash of a fact, never of one that is not
/// durable yet.
const HEAD_FILE: &str = "journal-head";

/// What runs leave, apart from the store.
const RUN_PARTS: [&str; 4] = ["workspaces", "lanes", "attempts", "errands"];

/// The refs of the store that are named after tasks.
const TASK_REFS: [&str; 4] = ["tasks", "done", "kept", "landed"];

/// What belongs to the tasks of one journal. The rest of a state folder belongs to the project or the machine.
const PARTS: [&str; 11] = [
    HEAD_FILE,
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "workspaces",
    "lanes",
    "attempts",
    "papers",
    "modules",
    "errands",
    "store.git",
];

/// How long processes of an older journal may take to end.
const END_MAX: Duration = Duration::from_secs(30);

/// What is at the place of the journal, without changing it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JournalProbe {
    id: Option<String>,
    has_facts: bool,
    is_behind: bool,
}

impl JournalProbe {
    const EMPTY: Self = Self { id: None, has_facts: false, is_behind: false };
}

/// None: it cannot be read. Whoever opens it to write says why, or brings it up to date.
fn look_at_journal(folder: &StateFolder) -> Option<JournalProbe> {
    let path = folder.journal_path();
    let is_empty = std::fs::metadata(&path).map_or(true, |meta| meta.len() == 0);
    if is_empty {
        return Some(JournalProbe::EMPTY);
    }
    let look = |reader: StoreReader| {
        let is_behind = match read_head(folder) {
            Some((seq, hash)) => reader.hash_at(seq)?.is_none_or(|found| found.to_string() != hash),
            None => false,
        };
        let has_facts = reader.head()?.seq >= Seq::FIRST;
        Ok(JournalProbe { id: reader.journal_id()?, has_facts, is_behind })
    };
    match StoreReader::open(&path).and_then(look) {
        Ok(seen) => Some(seen),
        Err(StoreError::Missing { .. }) => Some(JournalProbe::EMPTY),
        Err(_) => None,
    }
}

/// Number and hash of a fact that the journal had. None: nothing is noted, or a power cut took it.
fn read_head(folder: &StateFolder) -> Option<(Seq, String)> {
    let text = std::fs::read_to_string(folder.root().join(HEAD_FILE)).ok()?;
    let (seq, hash) = text.strip_suffix('\n')?.split_once(':')?;
    Some((Seq(seq.parse().ok()?), hash.to_owned()))
}

/// Notes how far the journal is. Not synced: after a power cut it may say less than there is, never more.
pub(crate) fn note_head(folder: &StateFolder, head: JournalHead) {
    if head.seq < Seq::FIRST {
        return;
    }
    let thread = std::thread::current().id();
    let draft = folder.root().join(format!(".{HEAD_FILE}-{}-{thread:?}", std::process::id()));
    let text = format!("{}:{}\n", head.seq, head.hash);
    let written =
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, folder.root().join(HEAD_FILE)));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft); // an older note is as true
    }
}

/// The id that the state around the journal carries, if it carries one.
fn id_of_state(folder: &StateFolder) -> Option<String> {
    let runs =
        std::fs::read_dir(folder.attempts_path()).into_iter().flatten().flatten().map(|run| run.path());
    [folder.root().to_owned(), folder.store_path()].into_iter().chain(runs).find_map(|place| read_id(&place))
}

fn read_id(place: &Path) -> Option<String> {
    let text = std::fs::read_to_string(place.join(ID_FILE)).ok()?;
    let id = text.trim_end();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// Whether tasks have left anything in the state folder.
fn has_traces(folder: &StateFolder) -> bool {
    let has_entries =
        |path: PathBuf| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    let workspaces = folder.workspaces_path();
    has_task_refs(&folder.store_path())
        || has_entries(folder.attempts_path())
        || has_entries(workspaces.join(".engine/rooms"))
}

/// Whether work of tasks, or a base, was ever brought into the store. Every version makes an empty store when it opens.
fn has_task_refs(store: &Path) -> bool {
    let packed = std::fs::read_to_string(store.join("packed-refs")).unwrap_or_default();
    packed.contains("refs/landfall/")
        || ["base", "tasks", "kept", "done"]
            .iter()
            .any(|name| store.join("refs/landfall").join(name).exists())
}

/// Whether the journal and the state around it belong together.
pub(crate) fn claim_journal(folder: &StateFolder) -> JournalClaim {
    let Some(journal) = look_at_journal(folder) else { return JournalClaim::Open };
    let id = id_of_state(folder);
    let traces = match &id {
        Some(id) => StateTraces::Of(id),
        None if has_traces(folder) => StateTraces::Unnamed,
        None => StateTraces::None,
    };
    let JournalProbe { id, has_facts, is_behind } = journal;
    decide_journal(JournalObservation { id: id.as_deref(), has_facts, is_behind }, traces)
}

/// Whether the state folder holds work whose journal is missing or empty.
#[must_use]
pub fn is_journal_lost(folder: &StateFolder) -> bool {
    claim_journal(folder) == JournalClaim::SetAside
}

/// Whether the journal is an older copy of the one that the state folder belongs to.
#[must_use]
pub fn is_journal_behind(folder: &StateFolder) -> bool {
    claim_journal(folder) == JournalClaim::SetRunsAside
}

/// The state of older journals that was set aside, oldest first.
#[must_use]
pub fn older_states(folder: &StateFolder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.older_path()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Moves everything that belongs to the tasks of a lost journal aside, as it is, and ends the processes that still work for
/// them. Repeats safely: what is left moves the next time.
pub(crate) fn set_aside(folder: &StateFolder) -> std::io::Result<PathBuf> {
    end_runs(&folder.attempts_path())?;
    let to = make_older(folder)?;
    // The id last: until it is gone, the rest is known to be of a lost journal.
    move_parts(folder, PARTS.iter().chain([&ID_FILE]), &to)?;
    Ok(to)
}

/// Moves what runs have left aside, for a journal that lacks the last facts about them, and ends the processes that still
/// work. The store stays, because the journal knows commits of it; a copy of it is set aside, and refs of tasks that the
/// journal does not know go. Repeats safely.
pub(crate) fn set_runs_aside(folder: &StateFolder) -> Result<PathBuf, SetAsideError> {
    end_runs(&folder.attempts_path())?;
    let last = StoreReader::open(&folder.journal_path())?.max_task_id()?.map_or(0, |task| task.0);
    let to = make_older(folder)?;
    let store = folder.store_path();
    if store.exists() {
        link_tree(&store, &to.join("store.git"))?;
    }
    for kind in TASK_REFS {
        let Ok(tasks) = std::fs::read_dir(store.join("refs/landfall").join(kind)) else { continue };
        for task in tasks {
            let task = task?;
            let name = task.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix('t')?.parse::<u64>().ok());
            if number.is_some_and(|number| number > last.into()) {
                std::fs::remove_dir_all(task.path())?;
            }
        }
    }
    // The note last: until it is gone, the journal is known to be an older copy.
    move_parts(folder, RUN_PARTS.iter().chain([&HEAD_FILE]), &to)?;
    Ok(to)
}

/// Why what runs have left could not be set aside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetAsideError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] StoreError),
    /// Something could not be moved.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A new folder for state that is set aside.
fn make_older(folder: &StateFolder) -> std::io::Result<PathBuf> {
    let id = id_of_state(folder);
    let name = id.as_deref().map_or("unnamed", |id| &id[..12]);
    let to = (1_u32..)
        .map(|number| folder.older_path().join(format!("{name}-{number}")))
        .find(|path| !path.exists())
        .expect("there are more numbers than folders");
    std::fs::create_dir_all(&to)?;
    Ok(to)
}

fn move_parts<'p>(
    folder: &StateFolder,
    parts: impl Iterator<Item = &'p &'static str>,
    to: &Path,
) -> std::io::Result<()> {
    for part in parts {
        match std::fs::rename(folder.root().join(part), to.join(part)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    disk::sync_dir(to)?;
    disk::sync_dir(folder.root())
}

/// A second folder with the same files. For a store, whose files are replaced and never written again.
fn link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if std::fs::hard_link(entry.path(), &target).is_err() {
            std::fs::copy(entry.path(), &target)?; // a file system without links
        }
    }
    Ok(())
}

/// Ends whatever runs in the folders of runs: nobody can make use of its work any more.
///
/// # Errors
/// When it cannot be told, for lack of a resource, whether something runs.
fn end_runs(attempts: &Path) -> std::io::Result<()> {
    let mut left: Vec<PathBuf> = match std::fs::read_dir(attempts) {
        Ok(runs) => runs.map(|run| run.map(|run| run.path())).collect::<Result<_, _>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let running = |dir: &PathBuf| match sitter::find_sitter(dir) {
        Ok(SitterState::Running(sitting)) => Ok(Some(sitting)),
        Err(error) if error.is_shortage() => Err(std::io::Error::other(error_chain(&error))),
        Ok(_) | Err(_) => Ok(None),
    };
    for dir in &left {
        if let Some(sitting) = running(dir)? {
            let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // gone already is as good
        }
    }
    // One that does not end in time keeps the folder it works in, which is moved as it is.
    let ended = wait::retry_until(END_MAX, Duration::from_millis(10), || {
        let mut unknown = None;
        left.retain(|dir| {
            running(dir).map_or_else(
                |error| {
                    unknown = Some(error);
                    true
                },
                |sitting| sitting.is_some(),
            )
        });
        match unknown {
            Some(error) => Some(Err(error)),
            None => left.is_empty().then_some(Ok(())),
        }
    });
    ended.unwrap_or(Ok(()))
}

/// Has the state folder, or the store, carry the id of its journal.
pub(crate) fn write_id(place: &Path, id: &str) -> std::io::Result<()> {
    match read_id(place).as_deref() == Some(id) {
        true => Ok(()),
        false => disk::write_atomic(&place.join(ID_FILE), format!("{id}\n").as_bytes()),
    }
}

/// Has a run folder carry the id. Not synced: a run does not outlive a power cut.
pub(crate) fn mark_run(dir: &Path, id: &str) -> std::io::Result<()> {
    std::fs::write(dir.join(ID_FILE), format!("{id}\n"))
}

/// Moves a run folder aside that belongs to another journal than this one. One without an id was made by an older version.
pub(crate) fn set_foreign_run_aside(folder: &StateFolder, dir: &Path, id: &str) -> std::io::Result<()> {
    let Some(other) = read_id(dir).filter(|other| other != id) else { return Ok(()) };
    let aside = folder.older_path().join(format!("{}-runs", &other[..12]));
    std::fs::create_dir_all(&aside)?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let to = (1_u32..)
        .map(|number| aside.join(format!("{name}.{number}")))
        .find(|path| !path.exists())
        .expect("there are more numbers than folders");
    std::fs::rename(dir, to)
}
