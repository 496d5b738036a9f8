//! What went wrong below, as problems of the wire: a code, a sentence, and what to do about it.

use std::error::Error;
use std::io::ErrorKind;

use landfall_api::secret_file::SecretFileError;
use landfall_api::{Problem, ProblemCode, nearest_word};
use landfall_engine::host::git::{GitError, GitErrorKind, RepoProblem};
use landfall_engine::host::lock::StateLockError;
use landfall_engine::model::auto::{AgentLoop, LoopState};
use landfall_engine::model::{NewsRefusal, SpecError, TaskId};
use landfall_engine::settings::SettingsProblem;
use landfall_engine::store::StoreError;
use landfall_engine::{AskError, OpenError, flows};
use landfall_text::quote_shell_word;
use serde_json::json;

use crate::project::{clock, conversions, place};

const ROOM: &str =
    "make room on the disk; `landfall project reclaim --dry-run` shows what Landfall itself can give back";
const RIGHTS: &str =
    "check the owner and the mode of the state folder, or set LANDFALL_STATE to another place";

/// What a branch is called here, as a shell takes it: people name it as its remote or git itself does.
fn local_branch_name(name: &str) -> String {
    let plain = name.strip_prefix("refs/heads/").unwrap_or(name);
    quote_shell_word(plain.strip_prefix("origin/").unwrap_or(plain))
}

/// Why a project could not be opened.
pub(crate) fn open(error: &OpenError) -> Problem {
    match error {
        OpenError::Repo(error) => repo_problem(error),
        OpenError::Unborn(branch) => no_commits(branch),
        OpenError::Detached => detached_head(),
        OpenError::NoBranch(name) => {
            Problem::new(ProblemCode::SettingsBroken, error.to_string()).with_hint(format!(
                "`project.base` in landfall.toml or `--base` must name a local branch; `git branch {0} origin/{0}` creates one of the remote's, `git branch {0}` a new one",
                local_branch_name(name)
            ))
        }
        OpenError::Settings(problem) => from_settings_problem(problem),
        OpenError::Flows(errors) => from_flow_errors(errors),
        OpenError::NoFlow { name, known } => {
            unknown_flow(ProblemCode::UnknownFlow, error.to_string(), name, known)
        }
        OpenError::Catalogue(problem) => Problem::new(ProblemCode::SettingsBroken, problem.to_string())
            .with_hint("mend `.landfall/recoveries.toml`, or take it out to use the built-in catalogue alone"),
        OpenError::Prompts(problem) => Problem::new(ProblemCode::SettingsBroken, problem.to_string())
            .with_hint("mend the template in `.landfall/prompts/`, or take it out to use the built-in one"),
        OpenError::NoHome => Problem::new(ProblemCode::Internal, error.to_string())
            .with_hint("set LANDFALL_STATE to a folder of your own"),
        OpenError::SettingsFile { .. } => Problem::new(ProblemCode::SettingsBroken, error.to_string()),
        OpenError::Folder { path, source } => {
            let problem = folder_io_problem(error.to_string(), path, source);
            match problem.code {
                ProblemCode::DiskFull => problem,
                _ => problem.with_hint(RIGHTS),
            }
        }
        OpenError::ForeignJournal(_) => Problem::new(ProblemCode::Corrupt, error.to_string())
            .with_hint("restore the journal that was in this folder before; `landfall doctor` shows what the state folder contains"),
        OpenError::NetworkFolder(_) => Problem::new(ProblemCode::ReadOnly, error.to_string())
            .with_hint("set LANDFALL_STATE to a folder on a local disk"),
        OpenError::Lock(error) => lock(error),
        OpenError::Store(error) => from_store_error(error),
        OpenError::Git(error) => from_git_error(error),
    }
}

/// The folder is no project.
pub(crate) fn from_repo_problem(error: RepoProblem) -> Problem {
    repo_problem(&error)
}

fn repo_problem(error: &RepoProblem) -> Problem {
    match error {
        RepoProblem::NotARepository { .. } => Problem::new(ProblemCode::NotARepository, error.to_string())
            .with_hint("go to your project, or make it a repository with `git init` and a first commit"),
        RepoProblem::Bare { path } => place::bare_repository_problem(path),
        RepoProblem::OtherOwner { path, .. } => {
            Problem::new(ProblemCode::NotARepository, format!("{error}, so its settings are not trusted"))
                .with_hint(format!(
                    "run as the owner of `{}`, or work in a clone of your own",
                    path.display()
                ))
        }
        RepoProblem::NoCommits => no_commits("HEAD"),
        RepoProblem::Git(error) => from_git_error(error),
    }
}

/// There is nothing to build on yet.
pub(crate) fn no_commits(branch: &str) -> Problem {
    Problem::new(
        ProblemCode::NoCommits,
        format!("branch `{branch}` has no commit yet, so there is nothing to build on"),
    )
    .with_hint("make a first commit; an empty one will do: `git commit --allow-empty -m \"First commit\"`")
}

/// There is no branch to land on.
pub(crate) fn detached_head() -> Problem {
    Problem::new(ProblemCode::DetachedHead, "no branch is checked out, so there is no base to land on")
        .with_hint("check out a branch, or name one as `base` under `[project]` in landfall.toml")
}

/// `landfall.toml` cannot be used.
pub(crate) fn from_settings_problem(error: &SettingsProblem) -> Problem {
    let problem = Problem::new(ProblemCode::SettingsBroken, error.to_string())
        .with_context(json!({ "file": error.file, "line": error.line, "column": error.column }));
    match &error.hint {
        Some(hint) => problem.with_hint(hint.clone()),
        None => problem.with_hint("`docs/reference/settings.md` lists every key"),
    }
}

/// A flow file cannot be used.
pub(crate) fn from_flow_errors(errors: &[flows::FlowError]) -> Problem {
    let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let hint = errors.iter().find_map(|error| error.hint.clone());
    Problem::new(ProblemCode::FlowBroken, message)
        .with_hint(hint.unwrap_or_else(|| "`landfall project flow check FILE` says more".to_owned()))
}

/// The lock is held, or cannot be had.
pub(crate) fn lock(error: &StateLockError) -> Problem {
    match error {
        StateLockError::Held { holder, .. } => {
            let since = clock::format_when(holder.since_ms);
            let message = format!(
                "the project is held by process {} (`{}`) on {}, since {since}",
                holder.pid, holder.command, holder.host
            );
            Problem::new(ProblemCode::EngineBusy, message)
                .with_hint("wait until it is done, or stop it with `landfall stop`; only one engine may drive a project")
                .with_context(json!({
                    "pid": holder.pid, "command": holder.command, "host": holder.host, "since_ms": holder.since_ms,
                }))
        }
        StateLockError::HeldByUnknown { .. } => Problem::new(ProblemCode::EngineBusy, error.to_string())
            .with_hint("only one engine may drive a project; try again in a moment"),
        StateLockError::Missing { .. } => {
            Problem::new(ProblemCode::ReadOnly, error.to_string()).with_hint(RIGHTS)
        }
        StateLockError::ReadOnly { .. } => {
            Problem::new(ProblemCode::ReadOnly, error_chain(error)).with_hint(RIGHTS)
        }
        StateLockError::Io { path, source } => folder_io_problem(error_chain(error), path, source),
    }
}

/// The journal or its tables cannot be used.
pub(crate) fn from_store_error(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::Full => ProblemCode::DiskFull,
        StoreError::ReadOnly { .. } => ProblemCode::ReadOnly,
        StoreError::Busy | StoreError::TwoWriters { .. } => ProblemCode::EngineBusy,
        StoreError::NotOurs { .. }
        | StoreError::Newer { .. }
        | StoreError::Older { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Format(_)
        | StoreError::Illegal { .. }
        | StoreError::Replaced { .. } => ProblemCode::Corrupt,
        StoreError::Io { .. } | StoreError::Sql { .. } => ProblemCode::Corrupt,
        StoreError::Missing { .. }
        | StoreError::Unfolded { .. }
        | StoreError::Closed
        | StoreError::OldSqlite { .. } => ProblemCode::Internal,
    };
    let hint = match code {
        ProblemCode::DiskFull => Some(ROOM),
        ProblemCode::ReadOnly => Some(RIGHTS),
        _ => error.hint(),
    };
    let problem = Problem::new(code, error_chain(error));
    match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem.with_hint("`landfall doctor` says more"),
    }
}

/// git said no, or could not be asked.
pub(crate) fn from_git_error(error: &GitError) -> Problem {
    let message = error.full_message();
    match &error.kind {
        GitErrorKind::Spawn(_) | GitErrorKind::Version { .. } => {
            Problem::new(ProblemCode::GitFailed, message)
                .with_hint("install git 2.38 or newer and put it on the PATH")
        }
        GitErrorKind::Io(source) if is_full(source.kind()) => {
            Problem::new(ProblemCode::DiskFull, message).with_hint(ROOM)
        }
        GitErrorKind::Io(source) if is_read_only(source.kind()) => {
            Problem::new(ProblemCode::ReadOnly, message).with_hint(RIGHTS)
        }
        GitErrorKind::Failed { stderr, .. } if stderr.contains("No space left on device") => {
            Problem::new(ProblemCode::DiskFull, message).with_hint(ROOM)
        }
        GitErrorKind::Io(_)
        | GitErrorKind::Failed { .. }
        | GitErrorKind::Timeout { .. }
        | GitErrorKind::Output(_) => Problem::new(ProblemCode::GitFailed, message)
            .with_hint("`landfall doctor` looks at git and the store"),
    }
}

/// A file of ours could not be read or written.
/// Why nothing can be served.
pub(crate) fn from_serve_error(error: &landfall_server::ServeError) -> Problem {
    match error {
        landfall_server::ServeError::Keys(error) => keys(error),
        landfall_server::ServeError::Io(error) => {
            Problem::new(ProblemCode::Internal, format!("start the server: {error}"))
        }
    }
}

/// Why the token or the sessions cannot be used.
pub(crate) fn keys(error: &landfall_server::KeysProblem) -> Problem {
    match error {
        landfall_server::KeysProblem::File(SecretFileError::Io { path, source }) => {
            from_io_error("use", path, source)
        }
        landfall_server::KeysProblem::File(SecretFileError::Unsafe { .. } | SecretFileError::Random(_)) => {
            Problem::new(ProblemCode::Corrupt, error.to_string())
        }
        landfall_server::KeysProblem::Full => Problem::new(ProblemCode::TooMany, error.to_string()),
    }
}

pub(crate) fn from_io_error(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Problem {
    folder_io_problem(format!("{doing} `{}`: {error}", path.display()), path, error)
}

fn folder_io_problem(message: String, path: &std::path::Path, source: &std::io::Error) -> Problem {
    let message =
        if message.contains(&source.to_string()) { message } else { format!("{message}: {source}") };
    if is_full(source.kind()) {
        Problem::new(ProblemCode::DiskFull, message).with_hint(ROOM)
    } else if is_read_only(source.kind()) {
        Problem::new(ProblemCode::ReadOnly, message).with_hint(RIGHTS)
    } else {
        Problem::new(ProblemCode::ReadOnly, message).with_hint(format!("look at `{}`", path.display()))
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn is_read_only(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Why the engine changed nothing.
pub(crate) fn from_ask_error(error: &AskError) -> Problem {
    match error {
        AskError::UnknownTask(id) => unknown_task(*id),
        AskError::UnknownFlow { name, known } => {
            unknown_flow(ProblemCode::UnknownFlow, format!("there is no flow `{name}`"), name, known)
        }
        AskError::UnknownAgent { name, known } => {
            let message = format!("there is no agent profile `{name}`");
            let mut problem = unknown_flow(ProblemCode::AgentMissing, message, name, known);
            if known.is_empty() {
                problem.hint = Some(format!("add an `[agent.{name}]` section to landfall.toml"));
            }
            problem
        }
        AskError::FlowMismatch(mismatch) => {
            let flow = match &mismatch.other {
                Some(flow) => format!("choose `--flow {flow}`"),
                None => "write a flow with `style = \"self\"`".to_owned(),
            };
            Problem::new(ProblemCode::BadInput, error.to_string())
                .with_hint(format!("{flow}, or another profile with `--agent`; nothing was changed"))
        }
        AskError::Cycle(path) => {
            let cycle: Vec<String> = path.iter().map(ToString::to_string).collect();
            Problem::new(ProblemCode::Cycle, error.to_string())
                .with_hint("leave one of these needs out; nothing was changed")
                .with_context(json!({ "cycle": cycle }))
        }
        AskError::Spec(spec) => bad_spec(spec),
        AskError::Refused(refusal) => from_refusal(refusal),
        AskError::NotLanded(id) => Problem::new(ProblemCode::NotNow, error.to_string())
            .with_hint(format!("`landfall why {id}` shows its state")),
        AskError::TakenBack { by, .. } => Problem::new(ProblemCode::NotNow, error.to_string())
            .with_hint(format!("`landfall why {by}` says how far that is")),
        AskError::NoRun => Problem::new(ProblemCode::NotNow, "no run is under way")
            .with_hint("`landfall run` starts one; `landfall status` shows how the project stands"),
        AskError::Paused => not_now(error, "`landfall run resume` lets it continue"),
        AskError::NotPaused => {
            not_now(error, "`landfall run pause` pauses it; `landfall status` shows how it stands")
        }
        AskError::NotSemiAuto => {
            not_now(error, "`landfall run autopilot off` lets you pick; what is under way is finished either way")
        }
        AskError::Assigned(task) => not_now(error, &format!("`landfall why {task}` shows its state")),
        AskError::NothingReady => not_now(error, "`landfall status` says what the others wait for"),
        AskError::NotReady(task, _) => not_now(error, &format!("`landfall why {task}` says why")),
        AskError::SprintOpen(sprint) => not_now(
            error,
            &format!(
                "`landfall sprint resume` continues {sprint}, `landfall sprint cancel` ends it; neither loses work"
            ),
        ),
        AskError::SprintMatchesNothing => Problem::new(ProblemCode::NothingMatches, error.to_string())
            .with_hint("`landfall list` shows the tasks with their tags; `landfall sprint start` without a choice takes all"),
        AskError::Group(id) => {
            not_now(error, &format!("`landfall list --parent {id}` shows them; a draft among them starts with `landfall edit`"))
        }
        AskError::NoSprint => not_now(
            error,
            "`landfall sprint start` starts one; `landfall sprint list` shows those there were",
        ),
        AskError::QueueHeld(_) => not_now(error, "`landfall queue resume` lets it move again"),
        AskError::QueueMoves => not_now(error, "`landfall queue` shows the line"),
        AskError::UnknownCheckpoint { name, known } => {
            let message = format!("there is no checkpoint `{name}`");
            let mut problem = unknown_flow(ProblemCode::UnknownCheckpoint, message, name, known);
            if known.is_empty() {
                problem.hint = Some("`landfall checkpoint create NAME` creates one".to_owned());
            }
            problem
        }
        AskError::UnknownDiscovery(_) => {
            not_now(error, "`landfall project discoveries` lists those agents are told, each with its number")
        }
        AskError::CheckpointName(_) => {
            Problem::new(ProblemCode::BadInput, error.to_string()).with_hint("such as `before-refactoring`")
        }
        AskError::NoBase => not_now(error, "`landfall doctor` looks at the repository and the store"),
        AskError::LoopHeld(held) => loop_held(held),
        AskError::NoLoop(_) => Problem::new(ProblemCode::NotFound, error.to_string())
            .with_hint("`POST` begins one; one that is over cannot be stopped"),
        AskError::Machine(detail) => Problem::new(ProblemCode::GitFailed, detail.clone())
            .with_hint("`landfall doctor` looks at git, the disk and the store"),
        AskError::Gone => Problem::new(ProblemCode::EngineBusy, "the engine is just ending")
            .with_hint("try again in a moment; nothing was changed")
            .with_context(json!({ "ending": true })),
    }
}

fn not_now(error: &AskError, hint: &str) -> Problem {
    Problem::new(ProblemCode::NotNow, error.to_string()).with_hint(hint)
}

/// Whether the engine left while it was asked: nothing was changed, and asking again is safe.
pub(crate) fn is_ending(problem: &Problem) -> bool {
    problem.code == ProblemCode::EngineBusy && problem.context.get("ending").is_some()
}

/// No task has this id.
pub(crate) fn unknown_task(id: TaskId) -> Problem {
    Problem::new(ProblemCode::UnknownTask, format!("there is no task {id}"))
        .with_hint("`landfall list` shows the tasks there are")
        .with_context(json!({ "task": conversions::task_id(id) }))
}

/// Words that are out of bounds.
pub(crate) fn bad_spec(error: &SpecError) -> Problem {
    let hint = match error {
        SpecError::NoTitle => "say in one line what is wanted",
        SpecError::LongTitle(_) | SpecError::LongBody(_) => {
            "put long material into a file of the project and name it"
        }
        SpecError::Size(_) => "sizes are XS, S, M, L and XL",
        SpecError::Tag(_) => "one word per tag, such as `quick-win`",
        SpecError::Touch(_) | SpecError::Touches(_) => {
            "name files, folders (`web/`) or patterns (`src/**/*.rs`) as seen from the root of the project"
        }
        SpecError::Priority(_) => "0 is the most urgent, 5 the middle, 9 can wait",
    };
    Problem::new(ProblemCode::BadInput, error.to_string()).with_hint(hint)
}

fn from_refusal(refusal: &NewsRefusal) -> Problem {
    match refusal {
        NewsRefusal::NotNow { task, .. } => Problem::new(ProblemCode::NotNow, refusal.to_string())
            .with_hint(format!("`landfall why {task}` shows its state")),
        NewsRefusal::Stale { task, .. } => Problem::new(ProblemCode::NotNow, refusal.to_string())
            .with_hint(format!("`landfall why {task}` shows its state now")),
        NewsRefusal::NotAllowed { task, phase, allowed, .. } => {
            Problem::new(ProblemCode::NotNow, refusal.to_string())
                .with_hint(format!("`landfall why {task}` shows its state"))
                .with_context(
                    json!({ "task": conversions::task_id(*task), "phase": phase, "allowed": allowed }),
                )
        }
        NewsRefusal::Bug(_) => {
            Problem::new(ProblemCode::Internal, format!("{refusal} (a bug; nothing was changed)"))
                .with_hint("please report it with the output of `landfall log`")
        }
    }
}

fn unknown_flow(code: ProblemCode, message: String, name: &str, known: &str) -> Problem {
    let words: Vec<&str> = known.split(", ").filter(|word| !word.is_empty()).collect();
    let hint = match nearest_word(&words, name) {
        Some(word) => format!("did you mean `{word}`? known: {known}"),
        None => format!("known: {known}"),
    };
    Problem::new(code, message).with_hint(hint).with_context(json!({ "known": words }))
}

/// An error and its causes in one line.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(&format!(": {next}"));
        }
        cause = error.source();
    }
    text
}

/// A session or a module has a loop already.
fn loop_held(held: &AgentLoop) -> Problem {
    let (session, module) = (&held.session, &held.module);
    let status = held.loop_state().wire_name();
    let what = format!("session `{session}` has a loop already: {} of `{module}` is {status}", held.task);
    let hint = match held.loop_state() {
        LoopState::Failed => format!("look at it, and stop the loop of `{session}`: then it can begin anew"),
        LoopState::Stopping => "it ends when the step under way is finished; ask again then".to_owned(),
        LoopState::Running | LoopState::Stopped => {
            format!("stop the loop of `{session}` first, or wait until it is over")
        }
    };
    Problem::new(ProblemCode::NotNow, what).with_hint(hint).with_context(json!({
        "holder": session,
        "module": module,
        "status": status,
    }))
}
