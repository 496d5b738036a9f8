//! The folder of a module, in the workspace of its task: what an agent with a loop of its own writes there, and the file
//! by which it is asked to stop. What the files mean is read by `landfall-agents`; when to stop is decided by the model.

use std::path::{Path, PathBuf};

use landfall_agents::files::{self, LoopFileKind, LoopFileParser};
use landfall_host::git::{ExchangeFolder, Workspace};
use landfall_model::{AttemptPhase, Digest, Signal, StopReason, Task, TaskState, Timestamp};
use landfall_trackers::modules::folder::{ModuleKind, ModuleLocation, read as read_module};
use landfall_trackers::modules::signal::StopOrder;

use crate::run_folder::write_private;

/// The folder of a task that came from no module.
const OWN: &str = ".landfall/task";
/// What the status of the module was when the run began, in the folder of the run: its name, a line end, its bytes.
const BEFORE: &str = "module-status";
/// The stop file that we wrote last, in the folder of the run.
const ASKED: &str = "auto-stop.json";
/// What of a module is never a part of the work.
const ASIDE: [&str; 5] =
    ["/.landfall/task/", ".auto-signal", ".auto-signal.tmp", ".auto-stop", ".auto-stop.new-*"];

/// Where in its workspace the module of a task is.
pub(crate) fn path_of(task: &Task) -> &str {
    let plain = |path: &&str| path.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"));
    task.spec
        .source
        .strip_prefix("module:")
        .map(|path| path.trim_end_matches('/'))
        .filter(plain)
        .unwrap_or(OWN)
}

/// How the paths begin that a loop of its own keeps its books under, where it has a module of the project: none of that is
/// work. What the project's own folder shows of it is written from the journal.
pub(crate) fn bookkeeping_prefix(task: &Task) -> Option<Vec<u8>> {
    let path = path_of(task);
    (task.runs_own_loop() && path != OWN).then(|| format!("{path}/.").into_bytes())
}

/// The same as a line of an exclude file: what is not tracked is not committed by the agent either.
fn exclude_line(path: &str) -> String {
    let mut line = "/".to_owned();
    for letter in path.chars() {
        if matches!(letter, '\\' | '*' | '?' | '[') {
            line.push('\\');
        }
        line.push(letter);
    }
    line + "/.*"
}

/// Makes the folder ready for a run. Whatever stop or signal lies there is from before: a stop that a person asked for is in
/// the journal, and keeps the run from beginning at all.
pub(crate) fn prepare_module(task: &Task, workspace: &Workspace, dir: &Path) -> std::io::Result<()> {
    workspace.set_aside(&ASIDE)?;
    if bookkeeping_prefix(task).is_some() {
        workspace.set_aside(&[&exclude_line(path_of(task))])?;
    }
    let nook = ExchangeFolder::open_or_create(workspace.path(), path_of(task))?;
    for name in [files::STOP, files::SIGNAL, files::SIGNAL_TMP] {
        nook.remove(name)?;
    }
    let mut before = Vec::new();
    if let Some((name, bytes)) = read_status_file(&nook) {
        before = [name.as_bytes(), b"\n", bytes.as_slice()].concat();
    }
    write_private(&dir.join(BEFORE), &before)
}

/// The status file that counts.
fn read_status_file(nook: &ExchangeFolder) -> Option<(&'static str, Vec<u8>)> {
    files::STATUSES.iter().find_map(|name| Some((*name, nook.read(name, files::BYTES_MAX).ok()??)))
}

/// The step that a loop begins with, as the status of the module says.
pub(crate) fn entry_step(task: &Task, workspace: &Path) -> &'static str {
    let nook = ExchangeFolder::open(workspace, path_of(task)).ok();
    let found = nook.as_ref().and_then(read_status_file);
    found.map_or("plan", |(name, bytes)| files::loop_entry_step(LoopFileKind::for_status_file(name), &bytes))
}

/// The section of the prompt that points a step which carries the plan out to the newest entry about what is wrong.
pub(crate) fn guidance_for_step(
    task: &Task,
    workspace: &Path,
    step: Option<&str>,
) -> Option<(String, String)> {
    step.filter(|step| *step == "exec").and_then(|_| guidance(task, workspace))
}

fn guidance(task: &Task, workspace: &Path) -> Option<(String, String)> {
    let path = path_of(task);
    let place = ModuleLocation {
        root: workspace.to_owned(),
        path: path.into(),
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        sort: ModuleKind::AiTasks,
    };
    let entry = read_module(&place).ok()?.latest_guidance()?;
    Some((
        "How to mend the work".to_owned(),
        format!("Go by `{path}/{entry}`: it is the newest entry about what is wrong."),
    ))
}

/// A name for the state of a module as it stands; none if there is nothing. Compared before the engine says `go on`: a second
/// on a clock tells less.
pub(crate) fn module_revision(task: &Task, workspace: &Path) -> Option<Digest> {
    let nook = ExchangeFolder::open(workspace, path_of(task)).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut any = false;
    for name in files::STATUSES.iter().chain(&files::PAPERS) {
        if let Ok(Some(bytes)) = nook.read(name, files::BYTES_MAX) {
            any = true;
            hasher.update(name.as_bytes()).update(&bytes.len().to_le_bytes()).update(&bytes);
        }
    }
    any.then(|| Digest::new(&hasher.finalize().to_hex()[..32]))
}

/// The module of a run, as it is watched.
pub(crate) struct WatchedModule {
    workspace: PathBuf,
    path: String,
    dir: PathBuf,
    ear: LoopFileParser,
}

impl WatchedModule {
    /// Of a run that has just begun, or is adopted.
    pub fn for_run(task: &Task, workspace: &Path, dir: &Path) -> Self {
        let mut ear = LoopFileParser::default();
        let before = std::fs::read(dir.join(BEFORE)).unwrap_or_default();
        if let Some(end) = before.iter().position(|byte| *byte == b'\n')
            && let Ok(name) = std::str::from_utf8(&before[..end])
        {
            ear.note_initial_file(LoopFileKind::for_status_file(name), &before[end + 1..]);
        }
        Self { workspace: workspace.to_owned(), path: path_of(task).to_owned(), dir: dir.to_owned(), ear }
    }

    /// Of a run that another engine began. A stop that it asked for because of a limit is taken back: whether the limit still
    /// holds is seen anew. A person's stop is not ours to take back, nor is a file that somebody else put there.
    pub fn adopt_run(&self, task: &Task) {
        let asked = matches!(
            &task.state,
            TaskState::Active { doing: AttemptPhase::Running { stop: Some(_), .. }, .. }
        );
        let (Ok(ours), Ok(nook)) = (std::fs::read(self.dir.join(ASKED)), self.open_folder()) else { return };
        let theirs = nook.read(files::STOP, files::BYTES_MAX).ok().flatten();
        if !asked && theirs.as_ref() == Some(&ours) {
            let _ = nook.remove(files::STOP); // one that stays is heeded: the run ends early and goes on anew
        }
    }

    /// Looks at the files; what is new in them.
    pub fn scan_files(&mut self) -> Vec<Signal> {
        let Ok(nook) = self.open_folder() else { return Vec::new() };
        let mut heard = Vec::new();
        // The status first: a loop that stops has written it before it says so.
        if let Some((name, bytes)) = read_status_file(&nook) {
            heard.extend(self.ear.feed(LoopFileKind::for_status_file(name), &bytes));
        }
        if let Ok(Some(bytes)) = nook.read(files::SIGNAL, files::BYTES_MAX) {
            heard.extend(self.ear.feed(LoopFileKind::Signal, &bytes));
        }
        heard
    }

    /// The run is over: what is left to hear. Nothing of it stays behind for the next.
    pub fn finish_run(&mut self) -> Vec<Signal> {
        let mut heard = self.scan_files();
        heard.extend(self.ear.finish());
        if let Ok(nook) = self.open_folder() {
            for name in [files::STOP, files::SIGNAL, files::SIGNAL_TMP] {
                let _ = nook.remove(name); // the next run begins with taking it away
            }
        }
        heard
    }

    /// Asks the agent to end its loop before its next step; whether that could be said.
    pub fn ask_to_stop(&self, reason: StopReason, at: Timestamp) -> bool {
        self.open_folder().is_ok_and(|nook| ask_to_stop(&nook, &self.dir, reason, at))
    }

    fn open_folder(&self) -> std::io::Result<ExchangeFolder> {
        ExchangeFolder::open(&self.workspace, &self.path)
    }
}

fn ask_to_stop(nook: &ExchangeFolder, dir: &Path, reason: StopReason, at: Timestamp) -> bool {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let stop = StopOrder { reason: reason.wire_name().to_owned(), timestamp: moment.to_string() }.to_text();
    // First what we know of it, then the file: what is there and unknown is somebody else's.
    let _ = write_private(&dir.join(ASKED), stop.as_bytes()); // without it, it is not taken back
    nook.write(files::STOP, stop.as_bytes()).is_ok()
}

/// Asks for a person's stop where no engine follows the run.
pub(crate) fn request_user_stop(task: &Task, workspace: &Path, dir: &Path, at: Timestamp) -> bool {
    ExchangeFolder::open(workspace, path_of(task))
        .is_ok_and(|nook| ask_to_stop(&nook, dir, StopReason::UserStop, at))
}

#[cfg(test)]
mod tests {
    use landfall_model::TaskSpec;

    use super::*;

    #[test]
    fn a_step_that_executes_is_pointed_to_the_newest_entry() {
        let workspace = tempfile::tempdir().expect("a folder");
        let spec =
            TaskSpec { source: "module:AiTasks/auth".to_owned(), ..TaskSpec::new("auth").expect("a title") };
        let task = Task::from_spec(landfall_model::TaskId(1), spec, Timestamp(0));
        let section = |step: &str| guidance_for_step(&task, workspace.path(), Some(step));
        let put = |path: &str, text: &str| {
            let path = workspace.path().join("AiTasks/auth").join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        put(".index.json", "{}");
        assert_eq!(section("exec"), None, "nothing is there");

        put(".analysis/2026-03-01-post-exec-needs-fix.md", "a\n");
        put(".bugfix/2026-03-02-tests-red.md", "b\n");
        let (_, text) = section("exec").expect("a section");
        assert!(text.contains("`AiTasks/auth/.bugfix/2026-03-02-tests-red.md`"), "{text}");
        assert_eq!((section("plan"), section("check")), (None, None), "other steps judge for themselves");
    }
}
