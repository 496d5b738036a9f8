//! Verification: the work is brought in, merged with the base, and checked on a clean checkout of exactly that.
//!
//! The commands come from the base branch, never from the work. What they come to is weighed by the model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use landfall_host::crash;
use landfall_host::git::{
    ChangedPath, CollectError, CollectOptions, ConflictedPath, DiffOptions, GitError, IgnoredFilesPolicy,
    Lane, LeftoverCommit, LostHeadPolicy, MergeResult, Oid, Signature,
};
use landfall_host::sitter::{self, EndCause, SitterSpec, SitterState, StartError};
use landfall_model::audit::ChangeSize;
use landfall_model::case_collision::{CaseCollision, find_case_collision};
use landfall_model::denial::SandboxDenial;
use landfall_model::gaming;
use landfall_model::gate::{
    CheckOutcome, CommandExit, CommandResult, GateReport, compute_check_outcome, count_tests,
};
use landfall_model::proof;
use landfall_model::resource::{
    MachineResource, resource_behind_oom_kills, resource_behind_red_check, resource_for_errno,
};
use landfall_model::{Attempt, Commit, Digest, EngineEvent, News, Task, Tree};

use crate::active_work::ActiveCheck;
use crate::commit_message::{commit_headline, commit_subject, issue_trailers};
use crate::confine::{self, ConfinementScope};
use crate::digests::{digest_text, environment_of};
use crate::engine_context::EngineContext;
use crate::environment::extend_environment;
use crate::git_refs::{collect_detail, task_ref};
use crate::hook_scripts::sensitive_in_commit;
use crate::host_context::HostContext;
use crate::ids;
use crate::installations;
use crate::journal_link;
use crate::land;
use crate::lane_pool::LaneHold;
use crate::mail::EngineMessage;
use crate::measured::BaselineEntry;
use crate::module;
use crate::output_text::{TESTS_TAIL, excerpt_output, read_text_tail};
use crate::papers;
use crate::patience::{KillAction, KillEscalation, abandon_run, wait_for_end};
use crate::premerge::{PremergeResult, resolve_conflicts, to_clashes};
use crate::run_folder::{run_marker, wait_until_settled};
use crate::settings::{Confinement, VerifyCommand, VerifySettings};
use crate::settings_file::settings_in;
use crate::shortage;
use crate::test_evidence;
use crate::trust::{TrustStore, TrustVerdict};
use crate::warm_caches;

/// Brings the work in, merges it and verifies the result. Each part repeats safely: objects are added, refs of ours are
/// moved, a lane is made clean before it is used.
pub(crate) fn check_task(site: &Arc<EngineContext>, task: &Task, attempt: Attempt, head: Option<Commit>) {
    match try_check(site, task, attempt, head) {
        _ if is_interrupted(site) => {}
        Ok(Some(news)) => site.send_news(task.id, news),
        Ok(None) => {}
        Err(detail) => site.send_news(task.id, News::MachineFailed { attempt, detail, hopeless: false }),
    }
}

fn is_interrupted(site: &HostContext) -> bool {
    site.interrupted.is_set()
}

/// Ends the checks under way without believing what they come to: they are done again by the next run.
pub(crate) fn interrupt_checks(site: &HostContext) {
    site.interrupted.set();
    let is_short = site.shortages.current_shortage().is_some();
    for dir in site.active.running_checks().keys() {
        match is_short {
            // Its end may not be seen for as long as the shortage lasts.
            true => tell_to_end(dir),
            false => end_check(site, dir),
        }
    }
    let most = if is_short { INTERRUPT_SHORT_MAX } else { INTERRUPT_MAX };
    // A check that was just being started is ended by its own thread, which looks after the start. Once none is on
    // record none can begin, and the process may go. The bound is for a sitter that is stuck in the kernel.
    site.active.wait_for_checks(most);
}

/// Ends the checks whose name begins so.
pub(crate) fn end_checks(site: &HostContext, name: &str) {
    let checking = site.active.running_checks();
    let named = |dir: &&PathBuf| dir.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
    for dir in checking.keys().filter(named) {
        end_check(site, dir);
    }
}

const INTERRUPT_MAX: Duration = Duration::from_secs(30);
const INTERRUPT_SHORT_MAX: Duration = Duration::from_secs(2); // the next run ends what this one cannot

fn tell_to_end(dir: &Path) {
    if let Ok(SitterState::Running(sitting)) = sitter::find_sitter(dir) {
        let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // gone already is as good
    }
}

/// Ends the check in `dir`, if it runs, and waits until nothing of it is left.
pub(crate) fn end_check(site: &HostContext, dir: &Path) {
    match wait_until_settled(dir) {
        Ok(SitterState::Running(sitting)) => {
            let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // gone already is as good
            let _ = wait_for_check(
                site,
                dir,
                &sitting,
                KillEscalation::after_immediate_request(site.clock.mono_ms()),
            ); // only its end matters
        }
        Ok(SitterState::Starting | SitterState::Vanished) | Err(_) => {
            abandon_run(dir, &run_marker(site, dir))
        }
        Ok(SitterState::Never | SitterState::Ended(_)) => {}
    }
}

fn try_check(
    site: &EngineContext,
    task: &Task,
    attempt: Attempt,
    head: Option<Commit>,
) -> Result<Option<News>, String> {
    let git = |error: GitError| error.full_message();
    let (head, leftovers) = match head {
        Some(head) => (ids::commit_to_oid(&head), false),
        None if is_rebuilt(site, task) => {
            // What this attempt has collected is whole. Anything else is less than what the agent called complete.
            let pin = task_ref("tasks", task.id, &attempt.to_string());
            match site.store.resolve_ref(&pin).map_err(git)? {
                Some(collected) => (collected, false),
                None => return Ok(Some(News::WorkspaceRebuilt { attempt })),
            }
        }
        None => match collect_work(site, task, attempt) {
            Ok(collected) => collected,
            Err(error @ CollectError::TooManyPaths { .. }) => {
                return refuse_paths(site, attempt, &error).map(Some).map_err(git);
            }
            Err(error) => return Err(collect_detail(&error)),
        },
    };
    crash::pass_point("check.collected");
    site.landing.wait_until_free();
    // What others push to a forge while an issue is worked on is met here, before anybody reads the work.
    let base = match task.issue {
        Some(_) => land::observe_remote(site, 0).map_err(git)?.ours,
        None => land::sync_base(site).map_err(git)?,
    };
    let by = Signature::for_engine(site.clock.now_ms());
    let conflict = |head: &Oid, paths: &[ConflictedPath]| {
        let (head, base) = (ids::oid_to_commit(head), ids::oid_to_commit(&base));
        Ok(Some(News::MergeConflict { attempt, head, base, clashes: to_clashes(paths) }))
    };
    let head = match resolve_conflicts(site, &base, &head, &by).map_err(git)? {
        PremergeResult::AsItIs => head,
        PremergeResult::Anew(settled) => {
            let pin = task_ref("tasks", task.id, &format!("{attempt}-merged"));
            site.store.pin_commit(&pin, &settled).map_err(git)?;
            settled
        }
        PremergeResult::Conflict(paths) => return conflict(&head, &paths),
    };
    let tree = match site.store.merge_commits(&base, &head).map_err(git)? {
        MergeResult::Clean { tree } => tree,
        MergeResult::Conflict { paths, .. } => return conflict(&head, &paths),
    };
    if tree == site.store.tree_of(&base).map_err(git)? {
        return Ok(Some(News::NothingChanged { attempt }));
    }
    let message = merge_message(task, attempt);
    let merged =
        site.store.create_commit(&tree, &[base.clone(), head.clone()], &message, &by, &by).map_err(git)?;
    crash::pass_point("check.merged");
    let name = format!("{}-{attempt}", task.id);
    let Some(report) = verify_merge(site, &name, &base, &head, &merged).map_err(git)? else {
        return Ok(None);
    };
    crash::pass_point("check.verified");
    let proofs = match report.outcome().is_green() {
        true => match run_proofs(site, task, &name, &base, &merged).map_err(git)? {
            Some(proofs) => proofs,
            None => return Ok(None),
        },
        false => Vec::new(), // the agent needs the first failure, not all of them
    };
    let extent = match papers::has_any(task) {
        true => Some(measure_extent(site, &stage_start(task, &base), &merged).map_err(git)?),
        false => None,
    };
    let (concerns, evidence) = match report.outcome().is_green() {
        true => match test_evidence::collect_test_evidence(site, task, &name, &base, &report).map_err(git)? {
            Some((concerns, evidence)) => (concerns, Some(evidence)),
            None => return Ok(None),
        },
        false => (Vec::new(), None),
    };
    Ok(Some(News::Checked {
        attempt,
        head: ids::oid_to_commit(&head),
        leftovers,
        report,
        concerns,
        evidence,
        proofs,
        extent,
    }))
}

/// Whether the workspace was made again after an unclean end and no agent has been started in it since. Where no agent ever
/// works, as in a rollback, nothing of it was lost.
pub(crate) fn is_rebuilt(site: &HostContext, task: &Task) -> bool {
    if !task.flow.as_ref().is_some_and(|flow| flow.has_agent()) {
        return false;
    }
    let workspace = site.pool.find_workspace(&task.id.to_string());
    workspace.is_some_and(|workspace| workspace.unannounced_rebuild().is_some())
}

fn collect_work(site: &HostContext, task: &Task, attempt: Attempt) -> Result<(Oid, bool), CollectError> {
    let workspace = site.pool.find_workspace(&task.id.to_string()).ok_or(CollectError::WorkspaceGone)?;
    let leftovers = site.settings.land.commit_leftovers.then(|| LeftoverCommit {
        message: format!(
            "{} ({}): what the agent left uncommitted\n",
            commit_subject(&task.spec.title),
            task.id
        ),
        signature: Signature::for_engine(site.clock.now_ms()),
    });
    let options = CollectOptions {
        pin: Some(task_ref("tasks", task.id, &attempt.to_string())),
        commit_leftovers: leftovers,
        lost_head: LostHeadPolicy::UseBase,
        aside: module::bookkeeping_prefix(task),
        paths_max: site.settings.land.paths_max,
    };
    let collected = site.store.collect_work(&workspace, &options)?;
    Ok((collected.head, collected.leftovers))
}

fn merge_message(task: &Task, attempt: Attempt) -> String {
    let (title, id) = (commit_headline(task), task.id);
    format!("{title} ({id})\n\n{}Landfall-Task: {id}\nLandfall-Attempt: {attempt}\n", issue_trailers(task))
}

/// The verify section as it stands on the base. A base without settings is judged by the person's own, which no agent
/// can write.
pub(crate) fn verify_section(
    site: &HostContext,
    base: &Oid,
) -> Result<Result<VerifySettings, String>, GitError> {
    const SETTINGS_MAX: u64 = 1 << 20;
    const SECTIONS_MAX: usize = 64; // bases that tasks at work still stand on
    let measured = || site.measured.lock().expect("no thread panics while it holds it");
    if let Some(known) = measured().sections.get(base) {
        return Ok(known.clone());
    }
    let section = match site.store.read_blob(base, b"landfall.toml", SETTINGS_MAX)? {
        None => Ok(site.settings.verify.clone()),
        Some(bytes) => {
            VerifySettings::from_base(&String::from_utf8_lossy(&bytes)).map_err(|problem| problem.to_string())
        }
    };
    if let Ok(section) = &section
        && !may_run_unconfined(site, base, section)
    {
        // Not kept: the person may trust it while the engine runs.
        return Ok(Err(format!(
            "the checks of base commit {} are not those that you trusted, and `run.sandbox` is \"off\"; check out the base \
             and run `landfall trust`",
            base.short()
        )));
    }
    let sections = &mut measured().sections;
    if sections.len() >= SECTIONS_MAX {
        sections.clear();
    }
    sections.insert(base.clone(), section.clone());
    Ok(section)
}

/// Whether the checks of a base may run. Only checks without a sandbox need trust: they come from a commit that somebody else
/// may have made, and the person has trusted those of the checkout.
fn may_run_unconfined(site: &HostContext, base: &Oid, section: &VerifySettings) -> bool {
    let commands =
        |verify: &VerifySettings| verify.commands.iter().map(|check| check.run.clone()).collect::<Vec<_>>();
    let sandbox = site.settings.run.sandbox;
    if sandbox != Confinement::Off || commands(section) == commands(&site.settings.verify) {
        return true;
    }
    let Ok(mut settings) = settings_in(&site.store, &ids::oid_to_commit(base)) else { return false };
    settings.run.sandbox = sandbox; // that is what they would run with
    let Ok(sensitive) = sensitive_in_commit(&settings, site.repo.root(), &site.store, base) else {
        return false;
    };
    let store = TrustStore::for_repository(&site.folder, site.repo.root());
    matches!(store.judge(&sensitive), Ok(TrustVerdict::Trusted))
}

/// Verifies `merged`, the merge of `head` into `base`, or takes over a pass of the same tree. None: the engine was
/// told to stop, and nothing is known.
pub(crate) fn verify_merge(
    site: &EngineContext,
    name: &str,
    base: &Oid,
    head: &Oid,
    merged: &Oid,
) -> Result<Option<GateReport>, GitError> {
    let tree = Tree::new(site.store.tree_of(merged)?.as_str());
    let environment = environment_digest(site);
    let (base_c, head_c, commit) =
        (ids::oid_to_commit(base), ids::oid_to_commit(head), ids::oid_to_commit(merged));
    let blank = |config: &str, required: bool| GateReport {
        base: base_c.clone(),
        head: head_c.clone(),
        commit: commit.clone(),
        tree: tree.clone(),
        config: digest_text(config),
        environment: environment.clone(),
        commands: Vec::new(),
        took_ms: 0,
        reused: false,
        required,
        sandbox: Some(site.settings.run.sandbox),
    };
    let section = match verify_section(site, base)? {
        Ok(section) => section,
        Err(problem) => {
            let mut report = blank(&problem, true);
            report.commands.push(broken_settings_result(&problem));
            return Ok(Some(report));
        }
    };
    let mut report = blank(&section.canonical_text(), section.required);
    // Also if a pass is taken over: it is about the tree, and a push sends the commits as well.
    if let Some(refusal) = site.store.remote_refusal(merged, base)? {
        let excerpt = format!(
            "a remote that checks what is pushed to it (`transfer.fsckObjects`) refuses these commits:\n{refusal}"
        );
        report.commands.push(failed_check_result("objects", "check the objects as a remote does", excerpt));
        return Ok(Some(report));
    }
    if let Some(refusal) = case_collision(site, base, merged)? {
        report.commands.push(failed_check_result(
            "names",
            "compare the names as the disk of your checkout does",
            refusal,
        ));
        return Ok(Some(report));
    }
    let key = (report.tree.clone(), report.config.clone(), report.environment.clone());
    let known = site.passes.lock().passes.get(&key).cloned();
    if let Some(known) = known {
        report.commands = known.commands;
        report.sandbox = known.sandbox; // as it was when they ran
        report.reused = true;
        return Ok(Some(report));
    }
    if section.commands.is_empty() {
        return Ok(Some(report));
    }
    let began = site.clock.mono_ms();
    // The base is checked out where no candidate ever was: what one leaves behind must not make the base red.
    let lane = if base == merged { BorrowedLane::base_lane(site)? } else { BorrowedLane::borrow_lane(site)? };
    let gate = VerificationRun {
        site,
        name,
        lane: &lane.lane,
        section: &section,
        base,
        merged,
        config: &report.config,
    };
    let Some(copied) = installations::copy_installation(&gate)? else { return Ok(None) };
    for (place, command) in section.commands.iter().enumerate() {
        if place < copied.commands {
            report.commands.push(installations::copied_result(command));
            continue;
        }
        let Some(result) = gate.run_command(place, command)? else { return Ok(None) };
        let stop = result.required && !result.outcome.is_green();
        report.commands.push(result);
        if stop {
            break; // the agent needs the first failure, not all of them
        }
    }
    report.took_ms = site.clock.mono_ms() - began;
    if base == merged && report.outcome().is_green() {
        warm_caches::keep_cache_changes(&site.store, &site.folder.lanes_path(), &lane.lane);
    }
    Ok(Some(report))
}

/// Why a tree cannot be checked out on the disk of the user's checkout, if that folds case.
fn case_collision(site: &HostContext, base: &Oid, merged: &Oid) -> Result<Option<String>, GitError> {
    let ignores_case = match site.ignores_case.get() {
        Some(known) => *known,
        None => {
            let looked_up = site.repo.ignores_case()?;
            *site.ignores_case.get_or_init(|| looked_up)
        }
    };
    if !ignores_case {
        return Ok(None);
    }
    let changed = site.store.diff_names(base, merged)?;
    let changed: Vec<String> =
        changed.iter().map(|change| String::from_utf8_lossy(&change.path).into_owned()).collect();
    let all = site.store.paths_of(merged)?;
    let in_tree: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    let changed = changed.iter().map(String::as_str).filter(|path| in_tree.contains(path));
    Ok(find_case_collision(changed, in_tree.iter().copied()).map(|CaseCollision { path, other }| {
        format!(
            "`{path}` and `{other}` differ in case only, and are one file where the user's checkout is \
             (`core.ignoreCase`): rename one of them"
        )
    }))
}

/// The state before the stage under way.
fn stage_start(task: &Task, base: &Oid) -> Oid {
    task.staged.stage_before().map_or_else(|| base.clone(), |stage| ids::commit_to_oid(&stage.commit))
}

/// How large a change is. Of a diff that is cut, the lines that are there count.
fn measure_extent(site: &HostContext, from: &Oid, to: &Oid) -> Result<ChangeSize, GitError> {
    let names = site.store.diff_names(from, to)?;
    let parent =
        |it: &ChangedPath| it.path.iter().rposition(|byte| *byte == b'/').map(|at| it.path[..at].to_vec());
    let dirs: BTreeSet<Option<Vec<u8>>> = names.iter().map(parent).collect();
    let options =
        DiffOptions { context: 0, renames: false, text: false, bytes_max: DIFF_MAX, paths: Vec::new() };
    let diff = site.store.diff_commits(from, to, &options)?.bytes;
    let lines = changed_lines(&String::from_utf8_lossy(&diff));
    let lines = lines.values().map(|(added, removed)| added.len() + removed.len()).sum::<usize>();
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(ChangeSize { files: small(names.len()), lines: small(lines), dirs: small(dirs.len()) })
}

/// Runs the checks that the plan and judges named, each on a clean checkout of the work, and once on the state before it.
/// They were written by agents, as the tests of the work were: they can hold it back and never let it through. None: the
/// engine was told to stop.
fn run_proofs(
    site: &HostContext,
    task: &Task,
    name: &str,
    base: &Oid,
    merged: &Oid,
) -> Result<Option<Vec<(proof::ProofRun, String)>>, GitError> {
    const LIMIT_MS: u64 = 600_000; // for projects whose own checks name none
    let staged = &task.staged;
    let due: Vec<&proof::Proof> = staged.proofs.due_proofs(staged.plan.done).collect();
    if due.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let section = verify_section(site, base)?.unwrap_or_else(|_| site.settings.verify.clone());
    let config = digest_text(&section.canonical_text());
    let timeout_ms = section.commands.iter().map(|command| command.timeout_ms).max().unwrap_or(LIMIT_MS);
    let began = stage_start(task, base);
    let lane = BorrowedLane::borrow_lane(site)?;
    let gate =
        VerificationRun { site, name, lane: &lane.lane, section: &section, base, merged, config: &config };
    let mut runs = Vec::new();
    for (place, proof) in due.into_iter().enumerate() {
        let promise = &proof.promise;
        let command = VerifyCommand {
            name: promise.of.to_string(),
            run: promise.command.clone(),
            timeout_ms,
            required: true,
            caps: None,
            installs: None,
        };
        let shown = |commit: &Oid, name: String| {
            let shown = gate.run_on_commit(commit, gate.ignored_policy(), &command, &name)?;
            Ok(shown.map(|shown| {
                (proof::ProofColour::from(compute_check_outcome(&shown.seen, None, None)), shown.excerpt)
            }))
        };
        let mut before = None;
        if proof.before.is_none() {
            let on = promise.before.as_ref().map_or_else(|| began.clone(), ids::commit_to_oid);
            let Some((colour, _)) = shown(&on, format!("{name}-p{place}-before"))? else { return Ok(None) };
            before = Some(colour);
        }
        let Some((mut now, mut excerpt)) = shown(merged, format!("{name}-p{place}"))? else {
            return Ok(None);
        };
        if now != proof::ProofColour::Green {
            // What fails by chance is no reason to send work back.
            let again = shown(merged, format!("{name}-p{place}-again"))?;
            let Some(again) = again else { return Ok(None) };
            (now, excerpt) = again;
        }
        if now == proof::ProofColour::Green {
            excerpt.clear();
        }
        runs.push((proof::ProofRun { of: promise.of, before, now }, excerpt));
    }
    Ok(Some(runs))
}

/// The answer to work that changes too many paths: the agent is told, and nothing else is looked at.
fn refuse_paths(site: &EngineContext, attempt: Attempt, error: &CollectError) -> Result<News, GitError> {
    let CollectError::TooManyPaths { head, .. } = error else { unreachable!("asked for no other error") };
    let commit = ids::oid_to_commit(head);
    let excerpt =
        format!("{error}. Remove the paths that do not belong to the task, or add them to `.gitignore`.");
    let report = GateReport {
        base: ids::oid_to_commit(&land::sync_base(site)?),
        head: commit.clone(),
        commit: commit.clone(),
        tree: Tree::new(site.store.tree_of(head)?.as_str()),
        config: digest_text(""),
        environment: environment_digest(site),
        commands: vec![failed_check_result("paths", "count the paths that the work changes", excerpt)],
        took_ms: 0,
        reused: false,
        required: true,
        sandbox: Some(site.settings.run.sandbox),
    };
    Ok(News::Checked {
        attempt,
        head: commit,
        leftovers: false,
        report,
        concerns: Vec::new(),
        evidence: None,
        proofs: Vec::new(),
        extent: None,
    })
}

/// A check of ours that the work did not pass.
fn failed_check_result(name: &str, command: &str, excerpt: String) -> CommandResult {
    CommandResult {
        name: name.to_owned(),
        command: command.to_owned(),
        required: true,
        outcome: CheckOutcome::Fail,
        exit: None,
        took_ms: 0,
        limit_ms: 0,
        tests: None,
        excerpt,
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    }
}

fn broken_settings_result(problem: &str) -> CommandResult {
    CommandResult {
        name: "landfall.toml".to_owned(),
        command: "read the verify section on the base".to_owned(),
        required: true,
        outcome: CheckOutcome::Broken,
        exit: None,
        took_ms: 0,
        limit_ms: 0,
        tests: None,
        excerpt: problem.to_owned(),
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    }
}

/// A lane that is ours until it is dropped.
pub(crate) struct BorrowedLane<'s> {
    pub lane: Lane,
    _hold: LaneHold<'s>,
}

impl<'s> BorrowedLane<'s> {
    pub(crate) fn borrow_lane(site: &'s HostContext) -> Result<Self, GitError> {
        // There is a lane for every verification that may run, and one for the landing; a rebuild may have to wait.
        let (number, hold) = site.lanes.take_numbered();
        let lane = Lane::open_lane(&site.store, &site.folder.lanes_path().join(number.to_string()))?;
        Ok(Self { lane, _hold: hold })
    }

    /// The lane in which only the base is ever checked out. Whoever comes second waits, and then finds what the first
    /// one measured.
    fn base_lane(site: &'s HostContext) -> Result<Self, GitError> {
        let hold = site.lanes.take_base();
        let lane = Lane::open_lane(&site.store, &site.folder.lanes_path().join("base"))?;
        Ok(Self { lane, _hold: hold })
    }
}

/// A check that runs in a lane, on record while it does: an engine that comes after a crash ends it before it uses the
/// lane.
struct LaneRunRecord<'s> {
    site: &'s HostContext,
    dir: PathBuf,
    note: PathBuf,
}

impl<'s> LaneRunRecord<'s> {
    fn begin_check(site: &'s HostContext, lane: &Lane, dir: &Path, begun: ActiveCheck) -> Self {
        let note = note_of(lane);
        let _ = std::fs::write(&note, dir.as_os_str().as_encoded_bytes()); // without it the sweep by marker remains
        site.active.begin_check(dir, begun);
        Self { site, dir: dir.to_owned(), note }
    }
}

impl Drop for LaneRunRecord<'_> {
    fn drop(&mut self) {
        self.site.active.end_check(&self.dir);
        let _ = std::fs::remove_file(&self.note); // a note that stays names a check that has ended
    }
}

fn note_of(lane: &Lane) -> PathBuf {
    lane.path().with_file_name("running")
}

/// One verification at work.
#[derive(Clone, Copy)]
pub(crate) struct VerificationRun<'a> {
    pub site: &'a HostContext,
    pub name: &'a str,
    pub lane: &'a Lane,
    pub section: &'a VerifySettings,
    pub base: &'a Oid,
    pub merged: &'a Oid,
    pub config: &'a Digest,
}

/// What one run of a command showed, and the end of what it wrote.
pub(crate) struct CommandRunReport {
    pub seen: CommandExit,
    pub took_ms: u64,
    pub excerpt: String,
    /// The tests that failed, where its output names them.
    pub failing: Vec<String>,
    /// What the sandbox denied to it, if it did not pass.
    pub denied: Vec<SandboxDenial>,
}

impl VerificationRun<'_> {
    fn run_command(&self, place: usize, command: &VerifyCommand) -> Result<Option<CommandResult>, GitError> {
        let ignored = self.ignored_policy_at(place);
        let Some(first) =
            self.run_on_commit(self.merged, ignored, command, &format!("{}-v{place}", self.name))?
        else {
            return Ok(None);
        };
        let failed = compute_check_outcome(&first.seen, None, None) != CheckOutcome::Pass;
        let mut again = None;
        let mut on_base = None;
        let is_base = self.site.store.tree_of(self.base)? == self.site.store.tree_of(self.merged)?;
        if failed && is_base && is_worth_another_run(&first) {
            // A base that is red holds everybody up: it is believed only twice.
            let name = format!("{}-v{place}-again", self.name);
            let Some(shown) = self.run_on_commit(self.merged, IgnoredFilesPolicy::Keep, command, &name)?
            else {
                return Ok(None);
            };
            again = Some(shown.seen);
        }
        if failed && !is_base {
            let Some(seen) = self.run_on_base(place)? else { return Ok(None) };
            on_base = Some(seen);
            let alone = compute_check_outcome(&first.seen, None, on_base.as_ref());
            // Where the base is to blame, another run of the work shows nothing more.
            let retries = match alone {
                CheckOutcome::Fail | CheckOutcome::Timeout => self.section.retries,
                CheckOutcome::Pass
                | CheckOutcome::Flaky
                | CheckOutcome::PreExisting
                | CheckOutcome::Broken => 0,
            };
            for try_ in 0..retries {
                let name = format!("{}-v{place}-again{try_}", self.name);
                let Some(shown) =
                    self.run_on_commit(self.merged, IgnoredFilesPolicy::Keep, command, &name)?
                else {
                    return Ok(None);
                };
                let passed = compute_check_outcome(&shown.seen, None, None) == CheckOutcome::Pass;
                again = Some(shown.seen);
                if passed {
                    break;
                }
            }
        }
        let outcome = compute_check_outcome(&first.seen, again.as_ref(), on_base.as_ref());
        // Where only the second run passed, its tests are those that count.
        let counted = match outcome {
            CheckOutcome::Flaky => again.as_ref().unwrap_or(&first.seen),
            CheckOutcome::Pass
            | CheckOutcome::Fail
            | CheckOutcome::Timeout
            | CheckOutcome::Broken
            | CheckOutcome::PreExisting => &first.seen,
        };
        let tests = counted.tests;
        Ok(Some(CommandResult {
            name: command.name.clone(),
            command: command.run.clone(),
            required: command.required,
            outcome,
            exit: first.seen.exit,
            took_ms: first.took_ms,
            limit_ms: command.timeout_ms,
            tests,
            // What passed needs no words; the whole log is in the folder of the run.
            excerpt: if outcome == CheckOutcome::Pass { String::new() } else { first.excerpt },
            caps: command.caps,
            denied: if outcome.is_green() { Vec::new() } else { first.denied },
            copied_from_base: false,
        }))
    }

    /// The same command on the base itself, in a lane that no candidate ever touched.
    fn run_on_base(&self, place: usize) -> Result<Option<CommandExit>, GitError> {
        let tree = Tree::new(self.site.store.tree_of(self.base)?.as_str());
        let key = |command: &VerifyCommand| (tree.clone(), self.config.clone(), command.run.clone());
        let wanted = key(&self.section.commands[place]);
        if let Some(seen) = self.cached_base_run(&wanted) {
            return Ok(Some(seen));
        }
        let lane = BorrowedLane::base_lane(self.site)?;
        if let Some(seen) = self.cached_base_run(&wanted) {
            return Ok(Some(seen)); // measured by whoever had the lane before
        }
        let gate = VerificationRun { lane: &lane.lane, ..*self };
        let mut last = None;
        // The commands before it come first: one installs, the next one tests.
        for (number, command) in self.section.commands.iter().enumerate().take(place + 1) {
            let ignored = gate.ignored_policy_at(number);
            let name = format!("{}-v{number}-base", self.name);
            let Some(mut shown) = gate.run_on_commit(self.base, ignored, command, &name)? else {
                return Ok(None);
            };
            if compute_check_outcome(&shown.seen, None, None) != CheckOutcome::Pass {
                // A base that is red holds everybody up: it is believed only twice.
                let again = gate.run_on_commit(
                    self.base,
                    IgnoredFilesPolicy::Keep,
                    command,
                    &format!("{name}-again"),
                )?;
                let Some(again) = again else { return Ok(None) };
                shown = again;
            }
            let measured = BaselineEntry { seen: shown.seen.clone(), at_ms: self.site.clock.mono_ms() };
            let baseline =
                &mut self.site.measured.lock().expect("no thread panics while it holds it").baseline;
            if baseline.len() >= BASELINE_MAX {
                baseline.clear();
            }
            baseline.insert(key(command), measured);
            last = Some(shown.seen);
        }
        Ok(last)
    }

    /// What was seen of a command on the base. What was not a pass is believed only for a while: its cause may be gone.
    fn cached_base_run(&self, key: &(Tree, Digest, String)) -> Option<CommandExit> {
        let measured = self.site.measured.lock().expect("no thread panics while it holds it");
        let BaselineEntry { seen, at_ms } = measured.baseline.get(key)?;
        let age_ms = self.site.clock.mono_ms().saturating_sub(*at_ms);
        let fresh = compute_check_outcome(seen, None, None) == CheckOutcome::Pass || age_ms < RED_BASE_MS;
        fresh.then(|| seen.clone())
    }

    /// What earlier work left in ignored folders could turn a check green. What the commands of this verification leave
    /// there stays: one installs, the next one tests.
    pub(crate) fn ignored_policy_at(&self, place: usize) -> IgnoredFilesPolicy {
        if place == 0 { self.ignored_policy() } else { IgnoredFilesPolicy::Keep }
    }

    /// What happens to what earlier work left in ignored folders. It stays only if the settings say so and nobody else can
    /// change it any more.
    fn ignored_policy(&self) -> IgnoredFilesPolicy {
        let may_stay = self.section.keep_ignored && !self.lane.may_be_handed_out();
        if may_stay { IgnoredFilesPolicy::KeepWithoutCaches } else { IgnoredFilesPolicy::Remove }
    }

    /// Runs a command on a clean checkout of `commit`. A check whose sitter was killed has shown nothing and is started
    /// again. None: the engine was told to stop.
    pub(crate) fn run_on_commit(
        &self,
        commit: &Oid,
        ignored: IgnoredFilesPolicy,
        command: &VerifyCommand,
        name: &str,
    ) -> Result<Option<CommandRunReport>, GitError> {
        let mut restarts = 0;
        loop {
            match self.run_once(commit, ignored, command, name)? {
                CheckRunEnd::Interrupted => return Ok(None),
                CheckRunEnd::Shown(shown) => return Ok(Some(shown)),
                CheckRunEnd::SitterKilled if restarts < SITTER_RESTARTS_MAX => restarts += 1,
                CheckRunEnd::SitterKilled => {
                    let seen = CommandExit { exit: None, timed_out: false, tests: None, is_denied: false };
                    let excerpt = format!("the check was killed {} times from outside", restarts + 1);
                    return Ok(Some(CommandRunReport {
                        seen,
                        took_ms: 0,
                        excerpt,
                        failing: Vec::new(),
                        denied: Vec::new(),
                    }));
                }
            }
        }
    }

    /// Runs a command once, through a sitter.
    fn run_once(
        &self,
        commit: &Oid,
        ignored: IgnoredFilesPolicy,
        command: &VerifyCommand,
        name: &str,
    ) -> Result<CheckRunEnd, GitError> {
        let checkout = self.lane.check_out_commit(commit, ignored)?;
        crash::pass_point("verify.checked-out");
        let dir = free_folder(self.site, name);
        let tmp = confine::make_tmp(&dir)
            .map_err(|error| GitError::from_io("make a folder for temporary files of a check", error))?;
        let _tmp = CheckTmpFolder(&dir);
        let settings = &self.site.settings.run;
        warm_caches::give_cache_changes(&self.site.store, &self.site.folder.lanes_path(), self.lane);
        let caches = confine::prepare_run_caches(
            settings,
            &self.site.folder,
            &self.site.env,
            settings.sandbox,
            &self.lane.caches_path(),
        )
        .map_err(|error| GitError::from_io("make the caches of a check ready", error))?;
        confine::log_cache_notices(self.site, &caches);
        let env = extend_environment(&self.site.env, caches.env.clone());
        let reach = ConfinementScope {
            confinement: settings.sandbox,
            checkout: confine::checkout_of(&self.site.repo),
            work: checkout.path.clone(),
            tmp: tmp.clone(),
            own: Vec::new(),
            read: Vec::new(),
            caches,
        };
        let ours = [
            ("LANDFALL_TASK", self.name.into()),
            ("LANDFALL_CHECK", command.name.as_str().into()),
            ("TMPDIR", tmp.into_os_string()),
        ];
        let spec = SitterSpec {
            argv: vec!["sh".into(), "-c".into(), command.run.clone().into()], // a person wrote it in settings, or it is a proof: see `prove`
            cwd: checkout.path,
            env: extend_environment(&env, ours.map(|(key, value)| (key.into(), value)).to_vec()),
            sandbox: confine::build_sandbox(self.site, &reach),
            signal: None,
            stdin: None,
            deadline_ms: command.timeout_ms,
            grace_ms: self.site.settings.run.grace_ms,
            out_cap: self.site.settings.run.output_cap,
            marker: run_marker(self.site, &dir),
        };
        self.lane.note_occupant(name, confine::may_hand_out(settings, &reach))?;
        journal_link::note_head(&self.site.folder, self.site.end.head());
        // Without the mark, or the folder, the sitter says what is wrong.
        let _ = std::fs::create_dir(&dir).and_then(|()| journal_link::mark_run(&dir, &self.site.journal_id));
        crash::pass_point("verify.run.before");
        let begun = ActiveCheck {
            name: self.name.to_owned(),
            check: command.name.clone(),
            began_mono_ms: self.site.clock.mono_ms(),
            limit_ms: command.timeout_ms,
        };
        let _noted = LaneRunRecord::begin_check(self.site, self.lane, &dir, begun);
        if is_interrupted(self.site) || self.site.active.is_abandoned(self.name) {
            return Ok(CheckRunEnd::Interrupted);
        }
        let ended = match sitter::start_sitter(&self.site.program, &dir, &spec) {
            Ok(sitting) => {
                let now = self.site.clock.mono_ms();
                let patience = match is_interrupted(self.site) {
                    true => {
                        let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // gone already is as good
                        KillEscalation::after_immediate_request(now)
                    }
                    false => KillEscalation::with_limit(now, spec.deadline_ms, spec.grace_ms),
                };
                wait_for_check(self.site, &dir, &sitting, patience)
            }
            // Nothing was seen of the work: this machine could not start the check.
            Err(error) => return Err(not_started(error)),
        };
        if matches!(&ended, CheckWaitResult::Ended { ended, .. } if ended.left == 0) {
            self.lane.note_vacated(name)?;
        }
        if is_interrupted(self.site) || self.site.active.is_abandoned(self.name) {
            return Ok(CheckRunEnd::Interrupted); // what it came to may be our own doing
        }
        crash::pass_point("verify.run.after");
        if let CheckWaitResult::Ended { ended, .. } = &ended
            && [ended.out, ended.err].iter().any(|spool| spool.left_out > 0 && spool.bytes <= spec.out_cap)
        {
            // Its output is not whole, so neither is what it says of its tests.
            let missing = self.site.shortages.find_missing_resource();
            let afterwards = self.missing_after_cleanup(commit, &dir);
            if missing.is_some() && resource_behind_red_check(missing, afterwards).is_none() {
                let seen = CommandExit { exit: Some(1), timed_out: false, tests: None, is_denied: false };
                let excerpt = "the check filled the disk until its output was cut".to_owned();
                return Ok(CheckRunEnd::Shown(CommandRunReport {
                    seen,
                    took_ms: 0,
                    excerpt,
                    failing: Vec::new(),
                    denied: Vec::new(),
                }));
            }
            let full = shortage::error_of(MachineResource::Disk);
            return Err(GitError::from_io("keep the output of a check", full));
        }
        let (out, err) = (
            read_text_tail(&dir.join("out.log"), TESTS_TAIL),
            read_text_tail(&dir.join("err.log"), TESTS_TAIL),
        );
        let (ended, overdue) = match ended {
            CheckWaitResult::Ended { ended, overdue } => (ended, overdue),
            CheckWaitResult::Lost { overdue: false } => return Ok(CheckRunEnd::SitterKilled),
            CheckWaitResult::Lost { overdue: true } => {
                let seen = CommandExit { exit: None, timed_out: true, tests: None, is_denied: false };
                let excerpt =
                    "the check did not end within its time limit and could not be stopped".to_owned();
                return Ok(CheckRunEnd::Shown(CommandRunReport {
                    seen,
                    took_ms: 0,
                    excerpt,
                    failing: Vec::new(),
                    denied: Vec::new(),
                }));
            }
        };
        let exit = match &ended.exit {
            sitter::ChildExit::Code(code) => Some(*code),
            sitter::ChildExit::Signal(signal) => Some(128 + *signal), // as a shell would say it: the work's own crash
            sitter::ChildExit::NotStarted { errno, message, .. } if resource_for_errno(*errno).is_some() => {
                let doing = format!("start a check: {message}");
                return Err(GitError::from_io(doing, std::io::Error::from_raw_os_error(*errno)));
            }
            sitter::ChildExit::NotStarted { .. } => None,
        };
        let tests = match (count_tests(&out), count_tests(&err)) {
            (None, None) => None,
            (out, err) => Some(out.unwrap_or(0) + err.unwrap_or(0)),
        };
        let timed_out = overdue || ended.cause == EndCause::Deadline;
        let mut seen = CommandExit { exit, timed_out, tests, is_denied: false };
        let took_ms = u64::try_from(ended.ended_ms - ended.began_ms).unwrap_or(0);
        let is_red = compute_check_outcome(&seen, None, None) != CheckOutcome::Pass;
        if is_red && self.is_out_of_memory(commit, command, ended.oom_kills)? {
            let out_of_memory = shortage::error_of(MachineResource::Memory);
            return Err(GitError::from_io(
                "run a check while the kernel ends processes for lack of memory",
                out_of_memory,
            ));
        }
        // A check that fails while this machine is out of something may say nothing about the work.
        if is_red
            && let missing @ Some(_) = self.site.shortages.find_missing_resource()
            && let Some(resource) =
                resource_behind_red_check(missing, self.missing_after_cleanup(commit, &dir))
        {
            let doing = format!("run a check while this machine is out of {resource}");
            return Err(GitError::from_io(doing, shortage::error_of(resource)));
        }
        let (failing, denied) = match compute_check_outcome(&seen, None, None) {
            CheckOutcome::Pass => (Vec::new(), Vec::new()),
            CheckOutcome::Flaky
            | CheckOutcome::PreExisting
            | CheckOutcome::Fail
            | CheckOutcome::Timeout
            | CheckOutcome::Broken => {
                let both = format!("{out}\n{err}");
                let denied = confine::find_denials(spec.sandbox.as_ref(), &spec.env, &both);
                (gaming::failing_tests(&both), denied)
            }
        };
        seen.is_denied = !denied.is_empty();
        let mut excerpt = match &ended.exit {
            // The sandbox could not be set up, for example.
            sitter::ChildExit::NotStarted { message, .. } => message.clone(),
            sitter::ChildExit::Code(_) | sitter::ChildExit::Signal(_) => excerpt_output(&out, &err),
        };
        if is_red && ended.oom_kills > 0 {
            excerpt.push_str("\nthe kernel ended processes of this machine for lack of memory while this ran, again and again");
        }
        Ok(CheckRunEnd::Shown(CommandRunReport { seen, took_ms, excerpt, failing, denied }))
    }

    /// Whether a red check is to be run again, as memory was missing while it ran.
    fn is_out_of_memory(
        &self,
        commit: &Oid,
        command: &VerifyCommand,
        oom_kills: u64,
    ) -> Result<bool, GitError> {
        const KNOWN_MAX: usize = 256; // an older one is run again once more
        self.site.shortages.note_oom_kills(oom_kills);
        if oom_kills == 0 {
            return Ok(false);
        }
        let tree = Tree::new(self.site.store.tree_of(commit)?.as_str());
        let known = &mut self.site.measured.lock().expect("no thread panics while it holds it").oom_checks;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        let earlier = known.entry((tree, command.run.clone())).or_default();
        let is_blamed = resource_behind_oom_kills(oom_kills, *earlier).is_some();
        *earlier += u32::from(is_blamed);
        Ok(is_blamed)
    }

    /// Removes what a check wrote, and finds out what is missing after that.
    fn missing_after_cleanup(&self, commit: &Oid, dir: &Path) -> Option<MachineResource> {
        let _ = self.lane.check_out_commit(commit, IgnoredFilesPolicy::Remove); // if it fails, the shortage is still there
        confine::remove_tmp(dir);
        self.site.shortages.find_missing_resource()
    }
}

/// Why this machine could not start a check.
fn not_started(error: StartError) -> GitError {
    let doing = format!("start a check: {error}");
    match error {
        StartError::Folder { source, .. } | StartError::Spawn { source, .. } => {
            GitError::from_io(doing, source)
        }
        StartError::AlreadyStarted { .. } | StartError::Spec { .. } => {
            GitError::from_io(doing, std::io::Error::other("it cannot be started like this"))
        }
    }
}

/// Whether a failure on the base may be an accident. A denial, a limit or a missing program is none.
fn is_worth_another_run(shown: &CommandRunReport) -> bool {
    compute_check_outcome(&shown.seen, None, None) == CheckOutcome::Fail && shown.denied.is_empty()
}

/// How one run of a check ended.
enum CheckRunEnd {
    /// It ran to its end, or to its limit.
    Shown(CommandRunReport),
    /// Its sitter was killed, and with it the check: nothing was seen.
    SitterKilled,
    /// The engine was told to stop, or nobody waits for the check.
    Interrupted,
}

const SITTER_RESTARTS_MAX: u32 = 4; // whoever kills that many in a row kills the next one, too
const RED_BASE_MS: u64 = 20_000; // long enough for the tasks that fail together, short enough to see a mended machine
const BASELINE_MAX: usize = 256; // what tasks at work still ask for; the rest is measured again

/// What waiting for a check came to.
enum CheckWaitResult {
    /// It ended; `overdue` if only because we made it.
    Ended { ended: sitter::SitterEnd, overdue: bool },
    /// Its sitter is gone without a word, or could not be waited for. Nothing of it is left.
    Lost { overdue: bool },
}

/// Waits for a sitter, no longer than there is patience with it.
fn wait_for_check(
    site: &HostContext,
    dir: &Path,
    sitting: &sitter::SitterProcess,
    mut patience: KillEscalation,
) -> CheckWaitResult {
    const LOOK: Duration = Duration::from_secs(1); // an end is heard at once; this is for patience
    let mut overdue = false;
    let mut watch = None;
    loop {
        match sitter::find_sitter(dir) {
            Ok(SitterState::Ended(ended)) => return CheckWaitResult::Ended { ended, overdue },
            Ok(SitterState::Vanished | SitterState::Never) => break,
            // A folder that cannot be read right now, for want of descriptors perhaps, says nothing about the check.
            Ok(SitterState::Running(_) | SitterState::Starting) | Err(_) => {
                wait_for_end(&mut watch, sitting, LOOK)
            }
        }
        match patience.escalate_if_due(site.clock.mono_ms(), sitting) {
            KillAction::Wait => {}
            KillAction::Told => overdue = true,
            KillAction::Abandon => break,
        }
    }
    abandon_run(dir, &run_marker(site, dir)); // the lane is for the next one
    CheckWaitResult::Lost { overdue }
}

/// A folder for a run of a check that no earlier run has used: after a crash the same check is run anew.
fn free_folder(site: &HostContext, name: &str) -> PathBuf {
    let mut dir = site.folder.check_path(name);
    let mut number = 2;
    while dir.exists() {
        dir = site.folder.check_path(&format!("{name}-{number}"));
        number += 1;
    }
    dir
}

/// What a pass depends on besides the tree and the section.
fn environment_digest(site: &HostContext) -> Digest {
    environment_of(&site.env)
}

pub(crate) const DIFF_MAX: usize = 8 << 20;

/// How many tests run on the base itself, if they tell. A base that a landing made is known; one that a person made is
/// measured once, or else their first task could take tests away unseen.
pub(crate) fn tests_on_base(site: &EngineContext, name: &str, base: &Oid) -> Result<Option<u64>, GitError> {
    let Some(report) = verify_merge(site, &format!("{name}-base"), base, base, base)? else {
        return Ok(None);
    };
    let tests = report.test_count();
    if !report.reused && !report.is_empty() {
        if report.outcome().is_green() {
            site.passes.lock().passes.add_pass(&report);
        }
        let event = EngineEvent::Measured { report };
        let _ = site.mail.send(EngineMessage::Fact(event)); // the engine has left: it is measured again
    }
    Ok(tests)
}

pub(crate) type ChangedLines = (Vec<String>, Vec<String>);

/// The added and removed lines of each file of a unified diff without context.
pub(crate) fn changed_lines(diff: &str) -> std::collections::BTreeMap<String, ChangedLines> {
    let mut files: std::collections::BTreeMap<String, ChangedLines> = std::collections::BTreeMap::new();
    let mut path = String::new();
    let mut in_hunk = false;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            in_hunk = false;
            path.clear();
        } else if !in_hunk && let Some(name) = line.strip_prefix("--- a/") {
            path = name.trim_end_matches('\t').to_owned();
        } else if !in_hunk && let Some(name) = line.strip_prefix("+++ b/") {
            path = name.trim_end_matches('\t').to_owned();
        } else if line.starts_with("@@") {
            in_hunk = true;
        } else if in_hunk && let Some(text) = line.strip_prefix('+') {
            files.entry(path.clone()).or_default().0.push(text.to_owned());
        } else if in_hunk && let Some(text) = line.strip_prefix('-') {
            files.entry(path.clone()).or_default().1.push(text.to_owned());
        }
    }
    files
}

/// The folder for temporary files of one run of a check; given up when dropped.
struct CheckTmpFolder<'a>(&'a Path);

impl Drop for CheckTmpFolder<'_> {
    fn drop(&mut self) {
        confine::remove_tmp(self.0);
    }
}
