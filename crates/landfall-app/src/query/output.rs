//! What agents and checks printed, from the files their sitters keep: which there are, and a page of one.

mod render;
mod spool;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use landfall_api::{self as api, OutputKind, Problem, ProblemCode};
use landfall_engine::host::sitter::{self, SitterState};
use landfall_engine::model::TaskId;
use landfall_engine::model::gate::GateReport;
use landfall_engine::store::{StoreReader, TaskRow};

use crate::project::query_context::Query;
use crate::project::reader_pool::PooledReader;
use crate::project::run_folders;
use crate::project::{conversions, problems, task_cache as kept};
use render::LineFormat;
use spool::{PageDirection, SpoolFile, SpoolPage, SpoolPageRequest};

const LINES: u32 = 500;
const LINES_MAX: u32 = 5_000;
const BYTES_MAX: u32 = 1 << 20;

/// The outputs of a task.
pub(crate) fn list_outputs(look: &Query<'_>, id: TaskId) -> Result<api::OutputList, Problem> {
    let (reader, row) = find_task_row(look, id)?;
    Ok(api::OutputList {
        task: conversions::task_id(id),
        outputs: RunRecords::read(look, &reader, &row)?.list_output_lines(),
    })
}

/// A page of one.
pub(crate) fn output_page(look: &Query<'_>, asked: &api::OutputAsked) -> Result<Box<api::Output>, Problem> {
    let id = conversions::model_task(asked.of.task);
    let (reader, row) = find_task_row(look, id)?;
    let line = find_output(look, &reader, &row, &asked.of)?;
    let mut spool = open(look, &line, asked.of.stderr)?;
    let voice = match (asked.raw, line.kind) {
        (true, _) => LineFormat::Raw,
        (false, OutputKind::Agent) if !asked.of.stderr => {
            LineFormat::for_profile(look, line.profile.as_deref())
        }
        (false, OutputKind::Agent | OutputKind::Check | OutputKind::Hook) => LineFormat::Plain,
    };
    let wish = SpoolPageRequest {
        way: if asked.backward { PageDirection::Backward } else { PageDirection::Forward },
        at: asked.at.unwrap_or(if asked.backward { u64::MAX } else { 0 }),
        lines: if asked.lines == 0 { LINES } else { asked.lines.min(LINES_MAX) } as usize,
        grows: line.grows,
    };
    let wanted = render::LineFilter::new(&asked.search, &asked.levels);
    let read = spool.read_page(&wish, &mut |line| {
        voice.render_line(line).into_iter().filter(|it| wanted.matches_filter(it)).collect()
    });
    let SpoolPage { lines, from, next, first, last } =
        read.map_err(|error| unreadable_output_problem(&line.key, &error))?;
    Ok(Box::new(api::Output { output: line, lines, from, next, first, last, total_bytes: spool.len() }))
}

/// The bytes of one, as they are.
pub(crate) fn output_bytes(look: &Query<'_>, asked: &api::OutputRange) -> Result<api::OutputBytes, Problem> {
    let id = conversions::model_task(asked.of.task);
    let (reader, row) = find_task_row(look, id)?;
    let line = find_output(look, &reader, &row, &asked.of)?;
    let spool = open(look, &line, asked.of.stderr)?;
    let many = if asked.bytes == 0 { BYTES_MAX } else { asked.bytes.min(BYTES_MAX) };
    let at = asked.at.min(spool.len());
    let content =
        spool.read(at, many as usize).map_err(|error| unreadable_output_problem(&line.key, &error))?;
    let stream = if asked.of.stderr { "err" } else { "out" };
    Ok(api::OutputBytes {
        name: format!("{}.{stream}.log", line.key),
        at,
        next: at + content.len() as u64,
        total_bytes: spool.len(),
        grows: line.grows,
        content: api::Blob::new(content),
    })
}

fn find_task_row(look: &Query<'_>, id: TaskId) -> Result<(PooledReader, TaskRow), Problem> {
    let reader = look.place.open_reader()?.ok_or_else(|| problems::unknown_task(id))?;
    match reader.row(id).map_err(|error| problems::from_store_error(&error))? {
        Some(row) => Ok((reader, row)),
        None => Err(problems::unknown_task(id)),
    }
}

/// The output that was asked for, or the latest that fits.
fn find_output(
    look: &Query<'_>,
    reader: &StoreReader,
    row: &TaskRow,
    asked: &api::OutputOf,
) -> Result<api::OutputLine, Problem> {
    let id = row.id;
    let records = RunRecords::read(look, reader, row)?;
    let found = match &asked.key {
        Some(key) => records.has_record(key).then(|| records.output_line(key)),
        None => {
            let fits = |line: &api::OutputLine| {
                asked.attempt.is_none_or(|attempt| line.attempt == Some(attempt))
                    && asked
                        .iteration
                        .is_none_or(|it| line.kind == OutputKind::Agent && line.iteration == Some(it))
                    && asked
                        .check
                        .as_ref()
                        .is_none_or(|it| line.kind == OutputKind::Check && line.name.as_ref() == Some(it))
            };
            // The latest first: of the others nothing is looked up.
            records.record_names().iter().rev().map(|name| records.output_line(name)).find(fits)
        }
    };
    found.ok_or_else(|| {
        let what = match (&asked.key, &asked.check, asked.attempt, asked.iteration) {
            (Some(key), ..) => format!("{id} has no output `{}`", key.chars().take(60).collect::<String>()),
            (None, None, None, None) => format!("{id} has printed nothing yet"),
            (None, ..) => format!("{id} has no such output"),
        };
        let keys: Vec<String> = records.record_names().iter().rev().take(5).cloned().collect();
        let hint = match keys.is_empty() {
            true => format!("`landfall why {id}` shows its state"),
            false => format!("the latest are: {}", keys.join(", ")),
        };
        Problem::new(ProblemCode::NotNow, what).with_hint(hint)
    })
}

fn open(look: &Query<'_>, line: &api::OutputLine, stderr: bool) -> Result<SpoolFile, Problem> {
    let name = if stderr { "err.log" } else { "out.log" };
    SpoolFile::open(&look.place.folder.attempts_path(), &line.key, name)
        .map_err(|error| unreadable_output_problem(&line.key, &error))
}

fn unreadable_output_problem(key: &str, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Corrupt, format!("read what `{key}` printed: {error}"))
        .with_hint("`landfall doctor` looks at the state folder")
}

/// The records of a task's runs.
struct RunRecords<'a> {
    look: &'a Query<'a>,
    task: TaskId,
    /// The names of their folders, oldest first; looked up when they are wanted.
    names: OnceCell<Vec<String>>,
    /// When each run of the agent began and ended, and whose it was.
    runs: BTreeMap<u32, (i64, Option<i64>, String)>,
    /// How the task was verified last.
    gate: Option<GateReport>,
    /// What the person calls the checks, in their order; read when one is to be named.
    checks: OnceCell<Vec<String>>,
}

impl<'a> RunRecords<'a> {
    /// What a task's own facts say of its runs is remembered until there is another one: a log is looked at several times a
    /// second, and a task may be old.
    fn read(look: &'a Query<'a>, reader: &StoreReader, row: &TaskRow) -> Result<Self, Problem> {
        let attempts = kept::cached_attempts(look.place, reader, row)?;
        let runs = attempts.iter().flat_map(|attempt| &attempt.runs).map(|run| {
            let ended = run.took_ms.map(|took| run.began_ms.saturating_add_unsigned(took));
            (run.iteration, (run.began_ms, ended, run.profile.clone()))
        });
        let gate = kept::cached_task(look.place, reader, row)?.and_then(|task| task.gate.clone());
        let (names, checks) = (OnceCell::new(), OnceCell::new());
        Ok(Self { look, task: row.id, names, runs: runs.collect(), gate, checks })
    }

    fn record_names(&self) -> &[String] {
        self.names.get_or_init(|| {
            let mut names = run_folders::run_folder_names(
                &self.look.place.caches.run_folders,
                &self.look.place.folder.attempts_path(),
                self.task,
            );
            names.sort_by_cached_key(|name| record_order(name));
            names
        })
    }

    /// Whether there is one of this name.
    fn has_record(&self, name: &str) -> bool {
        run_folders::is_one(&self.look.place.folder.attempts_path(), self.task, name)
    }

    fn check_name(&self, place: usize) -> Option<String> {
        let checks = self.checks.get_or_init(|| match &self.gate {
            Some(gate) => gate.commands.iter().map(|command| command.name.clone()).collect(),
            // Settings that are broken complain elsewhere.
            None => landfall_engine::engine::load_settings(&self.look.place.root)
                .map(|settings| settings.verify.commands.into_iter().map(|command| command.name).collect())
                .unwrap_or_default(),
        });
        checks.get(place).cloned()
    }

    fn list_output_lines(&self) -> Vec<api::OutputLine> {
        self.record_names().iter().map(|name| self.output_line(name)).collect()
    }

    fn output_line(&self, name: &str) -> api::OutputLine {
        let dir = self.look.place.folder.attempts_path().join(name);
        let parts = RunFolderName::from_name(name);
        let size = |file: &str| match std::fs::symlink_metadata(dir.join(file)) {
            Ok(meta) if meta.is_file() => meta.len(),
            Ok(_) | Err(_) => 0,
        };
        let (mut began_ms, mut ended_ms, grows) = match sitter::find_sitter(&dir) {
            Ok(SitterState::Ended(ended)) => (Some(ended.began_ms), Some(ended.ended_ms), false),
            Ok(SitterState::Running(_) | SitterState::Starting) => (folder_created_ms(&dir), None, true),
            Ok(SitterState::Never | SitterState::Vanished) | Err(_) => (folder_created_ms(&dir), None, false),
        };
        let mut profile = None;
        let kind = match (parts.place, parts.iteration, &parts.hook) {
            (Some(_), _, _) => OutputKind::Check,
            (None, Some(_), None) => OutputKind::Agent,
            (None, _, _) => OutputKind::Hook,
        };
        if let (OutputKind::Agent, Some(run)) = (kind, parts.iteration.and_then(|it| self.runs.get(&it))) {
            began_ms = Some(run.0);
            ended_ms = ended_ms.or(run.1);
            profile = Some(run.2.clone());
        }
        let name_of = match (kind, parts.place) {
            (OutputKind::Check, Some(place)) => self.check_name(place),
            (OutputKind::Check, None) | (OutputKind::Agent, _) => None,
            (OutputKind::Hook, _) => parts.hook,
        };
        api::OutputLine {
            key: name.to_owned(),
            kind,
            attempt: parts.attempt,
            iteration: parts.iteration.filter(|_| kind == OutputKind::Agent),
            name: name_of,
            profile,
            bytes: size("out.log"),
            stderr_bytes: size("err.log"),
            began_ms,
            ended_ms,
            grows,
        }
    }
}

/// When a folder was made, as far as the disk tells.
fn folder_created_ms(dir: &Path) -> Option<i64> {
    let made = std::fs::metadata(dir.join("spec.json")).ok()?.modified().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// What the name of a folder says: `T7-a3-i5` a run of the agent, `T7-a3-v1` a check, `T7-a3-i5-NAME` a hook.
#[derive(Debug, PartialEq, Eq, Default)]
struct RunFolderName {
    attempt: Option<u32>,
    iteration: Option<u32>,
    place: Option<usize>,
    hook: Option<String>,
}

impl RunFolderName {
    fn from_name(name: &str) -> Self {
        let mut parts = Self::default();
        for part in name.split('-').skip(1) {
            let number = |letter: char| part.strip_prefix(letter)?.parse::<u32>().ok();
            match (number('a'), number('i'), number('v')) {
                (Some(attempt), ..) if parts.attempt.is_none() => parts.attempt = Some(attempt),
                (_, Some(iteration), _) if parts.iteration.is_none() => parts.iteration = Some(iteration),
                (_, _, Some(place)) if parts.place.is_none() => parts.place = usize::try_from(place).ok(),
                (..) if parts.place.is_none() => {
                    let hook = parts.hook.get_or_insert_default();
                    if !hook.is_empty() {
                        hook.push('-');
                    }
                    hook.push_str(part);
                }
                (..) => {} // a check that ran again
            }
        }
        parts
    }
}

/// Oldest first: by attempt; the agent before its checks; names with numbers by the numbers.
fn record_order(name: &str) -> (u32, u32, usize, String) {
    let parts = RunFolderName::from_name(name);
    let iteration = if parts.place.is_some() { u32::MAX } else { parts.iteration.unwrap_or(0) };
    (parts.attempt.unwrap_or(0), iteration, parts.place.unwrap_or(0), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{RunFolderName, record_order};

    #[test]
    fn names_of_folders_say_whose_they_are() {
        let agent = RunFolderName::from_name("T7-a3-i5");
        assert_eq!((agent.attempt, agent.iteration, agent.place, agent.hook), (Some(3), Some(5), None, None));
        let check = RunFolderName::from_name("T7-a3-v1-again0");
        assert_eq!((check.attempt, check.place, check.hook), (Some(3), Some(1), None));
        let hook = RunFolderName::from_name("T7-a3-i0-after_create");
        assert_eq!((hook.iteration, hook.hook.as_deref()), (Some(0), Some("after_create")));
    }

    #[test]
    fn the_latest_is_last() {
        let mut names = ["T7-a10-i12", "T7-a2-v0", "T7-a2-i3", "T7-a2-i11", "T7-a2-v1"];
        names.sort_by_key(|name| record_order(name));
        assert_eq!(names, ["T7-a2-i3", "T7-a2-i11", "T7-a2-v0", "T7-a2-v1", "T7-a10-i12"]);
    }
}
