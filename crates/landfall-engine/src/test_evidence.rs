//! What is known of the tests of a green change besides that they passed: which protected inputs it touches, what its tests
//! assert, and whether the tests of the base still pass.
//!
//! The facts are collected here; what follows from them is decided by `gaming` of the model.

use std::collections::BTreeMap;

use landfall_host::git::{
    ChangedPath, DiffOptions, GitError, IgnoredFilesPolicy, Lane, Oid, PathContent, Signature, TreeChange,
};
use landfall_model::gaming::{
    self, BaseTestMode, BaseTestRun, ChangedFile, InputScope, InputTrace, Mutation, MutationBudget,
    MutationMode, MutationOutcome, MutationRun, MutationTrial, ProtectedInput, TestEvidence, TestRestoration,
    base_test_run,
};
use landfall_model::gate::{CheckOutcome, GateReport, compute_check_outcome};
use landfall_model::{ChangeConcern, Commit, ConcernCode, Digest, Task};

use crate::digests::digest_text;
use crate::engine_context::EngineContext;
use crate::gate::{BorrowedLane, DIFF_MAX, VerificationRun, changed_lines, tests_on_base, verify_section};
use crate::hook_scripts::within_project;
use crate::host_context::HostContext;
use crate::ids;
use crate::installations::copy_installation;
use crate::pass_cache::RunsByWork;
use crate::settings::{VerifyCommand, VerifySettings};

const PATHS_BYTES_MAX: usize = 256 << 10; // of paths on a command line; systems take a few times that
const TEXT_MAX: u64 = 512 << 10; // a larger file is no test that a person wrote
const TEXTS_MAX: usize = 2_000; // files whose text is read; a change of more is looked at by a person
const RUNS_KEPT: usize = 256; // tasks at work ask again when the base moves

fn cache_run<R: Clone>(runs: &mut RunsByWork<R>, key: (Commit, Digest), run: &R) {
    if runs.len() >= RUNS_KEPT {
        runs.clear();
    }
    runs.insert(key, run.clone());
}

/// What a person should look at before this lands, and the evidence for the certificate. None: the engine was told to stop.
pub(crate) fn collect_test_evidence(
    site: &EngineContext,
    task: &Task,
    name: &str,
    base: &Oid,
    report: &GateReport,
) -> Result<Option<(Vec<ChangeConcern>, TestEvidence)>, GitError> {
    let merged = ids::commit_to_oid(&report.commit);
    let section = verify_section(site, base)?.unwrap_or_else(|_| site.settings.verify.clone());
    let CheckInputs { mut inputs, sources_tests } = check_inputs(site, base, &section)?;
    // First, as the first one of a path counts: what runs outside of the sandbox is judged more strictly.
    inputs.splice(0..0, unconfined_inputs(site, base)?);
    let names = site.store.diff_names(base, &merged)?;
    let (files, is_cut) = changed_files(site, base, &merged, &names, &inputs)?;
    let on_base = tests_on_base(site, name, base)?;
    let mut evidence = TestEvidence {
        protected: gaming::protected_changes(&files, &inputs),
        base_tests: None,
        tests_run_on_base: on_base,
        counts: gaming::count_changed(&files),
        mutations: None,
    };
    let mut of_base = Vec::new();
    // What a person asked to be taken back was made by no agent, and is meant to fail newer tests.
    let is_judged = task.is_made_by_an_agent() && !section.commands.is_empty();
    if section.base_tests != BaseTestMode::Off && is_judged {
        let raw: BTreeMap<String, &ChangedPath> =
            names.iter().map(|name| (String::from_utf8_lossy(&name.path).into_owned(), name)).collect();
        let run = BaseTests { site, name, section: &section, base, merged: &merged, report, raw: &raw };
        of_base.extend(gaming::unrestored_tests(&files, section.base_tests));
        match run.run_base_tests(&files, sources_tests)? {
            BaseTestsResult::NoneChanged => {}
            BaseTestsResult::Interrupted => return Ok(None),
            BaseTestsResult::Ran(run) => {
                of_base.extend(section.base_tests.to_concern(&run));
                evidence.base_tests = Some(run);
            }
        }
    }
    if section.mutation != MutationMode::Off && is_judged {
        let mutations = MutationRunner { site, name, section: &section, base, merged: &merged, report };
        match mutations.run_mutations(&files, &inputs)? {
            MutationsResult::NothingToTry => {}
            MutationsResult::Interrupted => return Ok(None),
            MutationsResult::Ran(run) => {
                of_base.extend(section.mutation.to_concern(&run));
                evidence.mutations = Some(run);
            }
        }
    }
    let base_tests = evidence.base_tests.as_ref();
    let mut concerns = gaming::find_concerns(&files, &inputs, report.test_count(), on_base, base_tests);
    if is_cut {
        let detail = "perhaps: the change is too large to look through".to_owned();
        concerns.push(ChangeConcern { code: ConcernCode::TestRemoved, detail });
    }
    concerns.extend(of_base);
    Ok(Some((concerns, evidence)))
}

/// What decides what the verify commands do.
struct CheckInputs {
    inputs: Vec<ProtectedInput>,
    /// Whether a script of the check reads files into its own shell whose names cannot be told.
    sources_tests: bool,
}

/// The files of the base that decide what these commands do.
pub(crate) fn inputs_of<'a>(
    site: &HostContext,
    base: &Oid,
    commands: impl IntoIterator<Item = &'a VerifyCommand>,
) -> Result<Vec<ProtectedInput>, GitError> {
    let mut trace = InputTrace::new(commands.into_iter().map(|command| command.run.as_str()));
    read_inputs(site, base, &mut trace)?;
    Ok(trace.into_inputs())
}

/// The files of the base that decide what the verify commands do.
fn check_inputs(site: &HostContext, base: &Oid, section: &VerifySettings) -> Result<CheckInputs, GitError> {
    let mut trace = InputTrace::new(section.commands.iter().map(|command| command.run.as_str()));
    read_inputs(site, base, &mut trace)?;
    let sources_tests = trace.sources_tests();
    let mut inputs = trace.into_inputs();
    // A folder of the name of a target keeps `make` from making it, as a file does; one that the base has changes nothing.
    let targets: Vec<ProtectedInput> =
        inputs.iter().filter(|input| input.scope == InputScope::Absent).cloned().collect();
    for target in targets {
        if site.store.names_in(base, &target.path)?.is_empty() {
            inputs.push(ProtectedInput { path: format!("{}/*", target.path), ..target });
        }
    }
    for path in gaming::SETTINGS_PATHS {
        if let Some((link, target)) = find_link_on_path(site, base, path)? {
            inputs.extend(gaming::linked_settings(&link, &target));
        }
    }
    Ok(CheckInputs { inputs, sources_tests })
}

/// The files of the base that commands outside of the sandbox may run or read. Work that changes one of them would decide what
/// runs as the person.
fn unconfined_inputs(site: &HostContext, base: &Oid) -> Result<Vec<ProtectedInput>, GitError> {
    let mut inputs = Vec::new();
    for (setting, line) in site.settings.unconfined_commands() {
        let mut trace =
            InputTrace::from_unconfined_command(&setting, &within_project(&line, site.repo.root()));
        read_inputs(site, base, &mut trace)?;
        inputs.extend(trace.into_inputs());
    }
    Ok(inputs)
}

/// Reads from the base what the trace asks for.
fn read_inputs(site: &HostContext, base: &Oid, trace: &mut InputTrace) -> Result<(), GitError> {
    while let Some(path) = trace.next_path() {
        let bytes = site.store.read_small_blob(base, path.as_bytes(), gaming::INPUT_BYTES_MAX)?;
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let link = if text.is_none() { find_link_on_path(site, base, &path)? } else { None };
        match link {
            Some((link, target)) => trace.provide_link(&path, &link, &target),
            None => trace.provide_file(&path, text),
        }
    }
    Ok(())
}

/// The first link on the way to a path, with where it leads.
fn find_link_on_path(
    site: &HostContext,
    base: &Oid,
    path: &str,
) -> Result<Option<(String, String)>, GitError> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    for end in ends {
        if let Some(target) = site.store.read_link(base, &path.as_bytes()[..end])? {
            return Ok(Some((path[..end].to_owned(), String::from_utf8_lossy(&target).into_owned())));
        }
    }
    Ok(None)
}

/// The files of a change with what is needed to judge them; whether the lines of some of them were left out.
fn changed_files(
    site: &HostContext,
    base: &Oid,
    merged: &Oid,
    names: &[ChangedPath],
    inputs: &[ProtectedInput],
) -> Result<(Vec<ChangedFile>, bool), GitError> {
    // Pictures and data cannot hide what matters by their size: they are not asked for.
    let is_telling = |name: &ChangedPath| gaming::needs_text(&String::from_utf8_lossy(&name.path), inputs);
    let telling: Vec<&ChangedPath> = names.iter().filter(|name| is_telling(name)).collect();
    let mut paths: Vec<Vec<u8>> = telling.iter().map(|name| name.path.clone()).collect();
    let is_silent = paths.is_empty();
    if paths.iter().map(Vec::len).sum::<usize>() > PATHS_BYTES_MAX {
        paths.clear(); // all of them
    }
    let options = DiffOptions { context: 0, renames: false, text: true, bytes_max: DIFF_MAX, paths };
    let (diff, is_cut) = match is_silent {
        true => (Vec::new(), false),
        false => site.store.diff_commits(base, merged, &options).map(|diff| (diff.bytes, diff.cut))?,
    };
    let mut lines = changed_lines(&String::from_utf8_lossy(&diff));
    let text = |commit: &Oid, path: &[u8]| -> Result<Option<String>, GitError> {
        let bytes = site.store.read_small_blob(commit, path, TEXT_MAX)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let mut texts = 0;
    let mut is_cut = is_cut;
    let mut files = Vec::new();
    for name in names {
        let path = String::from_utf8_lossy(&name.path).into_owned();
        let (added, removed) = lines.remove(&path).unwrap_or_default();
        let (created, deleted) = (name.status == TreeChange::Added, name.status == TreeChange::Deleted);
        let (mut before, mut after) = (None, None);
        if is_telling(name) {
            texts += 1;
            if texts <= TEXTS_MAX {
                before = if created { None } else { text(base, &name.path)? };
                after = if deleted { None } else { text(merged, &name.path)? };
            }
            // What is not read hides its tests: many files, or a large one.
            let is_unread = (!created && before.is_none()) || (!deleted && after.is_none());
            is_cut |= is_unread && gaming::is_code(&path);
        }
        files.push(ChangedFile { path, created, deleted, added, removed, before, after });
    }
    Ok((files, is_cut))
}

/// One run of the tests of the base against the work.
struct BaseTests<'a> {
    site: &'a EngineContext,
    name: &'a str,
    section: &'a VerifySettings,
    base: &'a Oid,
    merged: &'a Oid,
    report: &'a GateReport,
    /// The changed paths as git has them.
    raw: &'a BTreeMap<String, &'a ChangedPath>,
}

type BaseCommandsResult = (CheckOutcome, Vec<String>, Option<u64>, u64);

enum BaseTestsResult {
    NoneChanged,
    Interrupted,
    Ran(BaseTestRun),
}

impl BaseTests<'_> {
    /// Runs them, or takes over what the same tests showed of the same work: a base that moves elsewhere changes nothing.
    fn run_base_tests(
        &self,
        files: &[ChangedFile],
        sources_tests: bool,
    ) -> Result<BaseTestsResult, GitError> {
        let restores = gaming::plan_restorations(files, sources_tests);
        if restores.is_empty() {
            return Ok(BaseTestsResult::NoneChanged);
        }
        let before = |restore: &TestRestoration| {
            let file = files.iter().find(|file| file.path == restore.path());
            format!("{restore:?} {:?}", file.and_then(|file| file.before.as_deref()))
        };
        let tests = digest_text(&restores.iter().map(before).collect::<String>());
        let key = (self.report.head.clone(), tests);
        if let Some(run) = self.site.passes.lock().tests.base_tests.get(&key) {
            return Ok(BaseTestsResult::Ran(run.clone()));
        }
        let Some((outcome, failing, tests, took_ms)) = self.run_commands(&restores)? else {
            return Ok(BaseTestsResult::Interrupted);
        };
        let run = base_test_run(&restores, files, outcome, failing, tests, took_ms);
        cache_run(&mut self.site.passes.lock().tests.base_tests, key, &run);
        Ok(BaseTestsResult::Ran(run))
    }

    /// The required commands that run tests on the work with the tests of the base, up to the first that fails twice: what it
    /// came to, which tests failed, how many ran, and how long it took.
    fn run_commands(&self, restores: &[TestRestoration]) -> Result<Option<BaseCommandsResult>, GitError> {
        let content = |restore: &TestRestoration| {
            let path = self.raw.get(restore.path()).map(|name| name.path.clone());
            let content = match restore {
                TestRestoration::FromBase { .. } => PathContent::Of(self.base.clone()),
                TestRestoration::Remove { .. } => PathContent::Nothing,
                TestRestoration::Text { text, .. } => PathContent::Text(text.clone()),
            };
            Some((path?, content))
        };
        let paths: Vec<(Vec<u8>, PathContent)> = restores.iter().filter_map(content).collect();
        let tree = self.site.store.edit_tree(self.merged, &paths)?;
        let by = Signature::for_engine(self.site.clock.now_ms());
        let message = "The work with the tests of its base\n";
        let commit =
            self.site.store.create_commit(&tree, std::slice::from_ref(self.merged), message, &by, &by)?;
        let lane = BorrowedLane::borrow_lane(self.site)?;
        let gate = VerificationRun {
            site: self.site,
            name: self.name,
            lane: &lane.lane,
            section: self.section,
            base: self.base,
            merged: &commit,
            config: &self.report.config,
        };
        let mut worst = CheckOutcome::Pass;
        let mut took_ms = 0;
        let told = |command: &VerifyCommand| {
            let report = self.report.commands.iter().find(|report| report.name == command.name);
            report.and_then(|report| report.tests)
        };
        let with_tests = gaming::commands_with_tests(self.section.commands.iter().map(told));
        let Some(copied) = copy_installation(&gate)? else { return Ok(None) };
        for (place, command) in self.section.commands.iter().enumerate().skip(copied.commands) {
            let name = format!("{}-t{place}", self.name);
            let Some(first) = gate.run_on_commit(&commit, gate.ignored_policy_at(place), command, &name)?
            else {
                return Ok(None);
            };
            took_ms += first.took_ms;
            if !command.required || compute_check_outcome(&first.seen, None, None) == CheckOutcome::Pass {
                continue;
            }
            // What fails by chance is no reason to ask a person.
            let again =
                gate.run_on_commit(&commit, IgnoredFilesPolicy::Keep, command, &format!("{name}-again"))?;
            let Some(again) = again else { return Ok(None) };
            took_ms += again.took_ms;
            if !with_tests[place] && again.failing.is_empty() {
                continue; // it is not about tests: new code without its own tests, perhaps
            }
            match compute_check_outcome(&first.seen, Some(&again.seen), None) {
                CheckOutcome::Pass | CheckOutcome::Flaky => worst = CheckOutcome::Flaky,
                CheckOutcome::Broken
                    if compute_check_outcome(&again.seen, None, None) == CheckOutcome::Pass =>
                {
                    worst = CheckOutcome::Flaky
                }
                outcome @ (CheckOutcome::PreExisting
                | CheckOutcome::Fail
                | CheckOutcome::Timeout
                | CheckOutcome::Broken) => {
                    return Ok(Some((outcome, again.failing, again.seen.tests, took_ms)));
                }
            }
        }
        Ok(Some((worst, Vec::new(), None, took_ms)))
    }
}

/// Runs of the checks on mutations of the changed lines.
struct MutationRunner<'a> {
    site: &'a EngineContext,
    name: &'a str,
    section: &'a VerifySettings,
    base: &'a Oid,
    merged: &'a Oid,
    report: &'a GateReport,
}

enum MutationsResult {
    NothingToTry,
    Interrupted,
    Ran(MutationRun),
}

impl MutationRunner<'_> {
    /// Tries mutations until a check notices one or their time is over, or takes over what the same mutations of the same work
    /// showed.
    fn run_mutations(
        &self,
        files: &[ChangedFile],
        inputs: &[ProtectedInput],
    ) -> Result<MutationsResult, GitError> {
        let required = self.report.commands.iter().filter(|command| command.required);
        let Some(budget) = MutationBudget::from_check_duration(required.map(|command| command.took_ms).sum())
        else {
            return Ok(MutationsResult::NothingToTry);
        };
        let mutations = gaming::choose_mutations(files, inputs);
        if mutations.is_empty() {
            return Ok(MutationsResult::NothingToTry);
        }
        let key = (self.report.head.clone(), digest_text(&format!("{mutations:?}")));
        if let Some(run) = self.site.passes.lock().tests.mutations.get(&key) {
            return Ok(MutationsResult::Ran(run.clone()));
        }
        let lane = BorrowedLane::borrow_lane(self.site)?;
        let began = self.site.clock.mono_ms();
        let spent = || self.site.clock.mono_ms().saturating_sub(began);
        let mut run = MutationRun { tests: gaming::tests_of_change(files), trials: Vec::new(), took_ms: 0 };
        for mutation in mutations {
            if !budget.allows_another(spent()) {
                break;
            }
            let Some(outcome) = self.run_mutation(&lane.lane, &mutation)? else {
                return Ok(MutationsResult::Interrupted);
            };
            let Mutation { path, line, before, after, text: _ } = mutation;
            run.trials.push(MutationTrial { path, line, before, after, outcome });
            if outcome == MutationOutcome::Caught {
                break; // its tests can fail
            }
        }
        run.took_ms = spent();
        cache_run(&mut self.site.passes.lock().tests.mutations, key, &run);
        Ok(MutationsResult::Ran(run))
    }

    /// The required commands up to the last that runs tests, on one mutation.
    fn run_mutation(&self, lane: &Lane, mutation: &Mutation) -> Result<Option<MutationOutcome>, GitError> {
        let content = PathContent::Text(mutation.text.clone());
        let tree =
            self.site.store.edit_tree(self.merged, &[(mutation.path.clone().into_bytes(), content)])?;
        let by = Signature::for_engine(self.site.clock.now_ms());
        let message = "The work with one line altered\n";
        let commit =
            self.site.store.create_commit(&tree, std::slice::from_ref(self.merged), message, &by, &by)?;
        let config = &self.report.config;
        let (site, name, section) = (self.site, self.name, self.section);
        let gate = VerificationRun { site, name, lane, section, base: self.base, merged: &commit, config };
        let seen =
            |command: &VerifyCommand| self.report.commands.iter().find(|report| report.name == command.name);
        let told = |command: &VerifyCommand| seen(command).and_then(|report| report.tests);
        let with_tests = gaming::commands_with_tests(section.commands.iter().map(told));
        let last = with_tests.iter().rposition(|has_tests| *has_tests).unwrap_or(0);
        let Some(copied) = copy_installation(&gate)? else { return Ok(None) };
        for (place, command) in section.commands.iter().enumerate().take(last + 1).skip(copied.commands) {
            if !command.required {
                continue;
            }
            let report = seen(command);
            let usual_ms = report.filter(|report| !report.copied_from_base).map(|report| report.took_ms);
            let timeout_ms = MutationBudget::command_limit_ms(usual_ms, command.timeout_ms);
            let command = VerifyCommand { timeout_ms, ..command.clone() };
            let name = format!("{}-m{place}", self.name);
            let Some(shown) = gate.run_on_commit(&commit, gate.ignored_policy_at(place), &command, &name)?
            else {
                return Ok(None);
            };
            let has_failing = !shown.failing.is_empty();
            // If no command tells of its tests, all may run some, but what installs did not.
            let is_installing = command.installs.is_some() && told(&command).is_none();
            let runs_tests = has_failing || (with_tests[place] && !is_installing);
            let is_unbuilt = !has_failing && gaming::could_not_build(&shown.excerpt);
            let outcome = compute_check_outcome(&shown.seen, None, None);
            if let Some(outcome) = gaming::mutation_outcome(outcome, runs_tests, is_unbuilt) {
                return Ok(Some(outcome));
            }
        }
        Ok(Some(MutationOutcome::Survived))
    }
}
