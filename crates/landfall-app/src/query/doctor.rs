//! Whether everything Landfall needs is there and whole. Looking changes nothing; only `--rebuild` writes, and only
//! the tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use landfall_agents::registry::{self, UsageReport};
use landfall_agents::tmux::TERMINAL_PROGRAM;
use landfall_api::{Check, CheckState, Health, Problem, ProblemCode, nearest_word};
use landfall_engine::engine::load_settings;
use landfall_engine::flows;
use landfall_engine::host::disk;
use landfall_engine::host::git::{BranchName, CheckoutHead, Git, Oid, Repo, Store, StoredWork};
use landfall_engine::host::lock::{LockHolder, StateLock};
use landfall_engine::host::sandbox::{self, SandboxSupport};
use landfall_engine::host::sitter::{self, SitterState};
use landfall_engine::journal_link;
use landfall_engine::model::TaskId;
use landfall_engine::model::cache::PackageCache;
use landfall_engine::settings::{Confinement, Settings, VerifySettings};
use landfall_engine::store::{self, Seq, Sqlite, StoreReader};
use landfall_engine::tracker::TrackerDescription;
use landfall_engine::{CacheNotice, cache_notices};
use landfall_text::{format_bytes, pluralize};

use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{clock, problems, trust};
use crate::query::interrupted_publish::{self, Cleanup};
use crate::query::{agents, issues};

/// Looks at everything.
pub(crate) fn examine_project(look: &Query<'_>) -> Result<Health, Problem> {
    let place = look.place;
    let mut visit = DoctorRun { checks: Vec::new() };
    let repo = visit.check_repository(place);
    let settings = visit.check_settings(place);
    if let Some(settings) = &settings {
        visit.check_agents(settings);
        visit.check_sandbox(place, settings);
        visit.check_budgets(settings);
        visit.check_tracker(place, settings);
    }
    visit.check_flows(place, settings.as_ref());
    if let (Some(repo), Some(settings)) = (&repo, &settings) {
        visit.check_base(place, repo, settings);
    }
    visit.check_state_folder(place, settings.as_ref());
    match place.open_reader() {
        Ok(Some(reader)) => {
            visit.check_journal(place, &reader);
            visit.check_stale_journal(place);
            visit.check_published(look, &reader);
            visit.check_workspaces(place, &reader);
            visit.check_sitters(look, &reader);
        }
        Ok(None) if journal_link::is_journal_lost(&place.folder) => visit.check_lost_journal(place),
        Ok(None) => visit.note_ok("journal", "not begun: no task was added yet"),
        Err(problem) => visit.note_damaged_journal(problem),
    }
    if let Some(repo) = &repo {
        visit.check_interrupted_publish(place, repo);
        visit.check_older_journals(place, repo);
        visit.check_store(place, repo);
    }
    visit.check_repairs(place);
    Ok(Health { checks: visit.checks })
}

/// Makes the tables again from the journal, then looks at everything.
pub(crate) fn rebuild_tables(place: &ProjectLocation) -> Result<Health, Problem> {
    if let Some(reader) = place.open_reader()? {
        drop(reader); // only asked whether there is a journal at all
        let _lock = match &place.lock {
            Some(lock) => Arc::clone(lock),
            None => {
                let me = LockHolder::this_process("landfall doctor --rebuild", clock::now_ms());
                Arc::new(
                    StateLock::acquire(place.folder.root(), &me).map_err(|error| problems::lock(&error))?,
                )
            }
        };
        let (journal, _) = Sqlite::open(&place.folder.journal_path(), store::JournalOptions::default())
            .map_err(|error| problems::from_store_error(&error))?;
        journal.rebuild_tables().map_err(|error| problems::from_store_error(&error))?;
    }
    let engine = crate::project::engine_at::EngineLocation::Nowhere;
    let mut health = examine_project(&Query { place, engine: &engine })?;
    let detail = "rebuilt from the journal".to_owned();
    health.checks.push(Check { name: "tables".to_owned(), state: CheckState::Ok, detail, hint: None });
    Ok(health)
}

struct DoctorRun {
    checks: Vec<Check>,
}

impl DoctorRun {
    fn note_check(&mut self, name: &str, state: CheckState, detail: impl Into<String>, hint: Option<String>) {
        self.checks.push(Check { name: name.to_owned(), state, detail: detail.into(), hint });
    }

    fn note_ok(&mut self, name: &str, detail: impl Into<String>) {
        self.note_check(name, CheckState::Ok, detail, None);
    }

    fn note_warning(&mut self, name: &str, detail: impl Into<String>, hint: impl Into<String>) {
        self.note_check(name, CheckState::Warn, detail, Some(hint.into()));
    }

    fn note_bad(&mut self, name: &str, detail: impl Into<String>, hint: impl Into<String>) {
        self.note_check(name, CheckState::Bad, detail, Some(hint.into()));
    }

    fn note_problem(&mut self, name: &str, problem: Problem) {
        self.note_check(name, CheckState::Bad, problem.message, problem.hint);
    }

    /// A journal that cannot be read. Nothing here mends it: what is left of it may be all there is.
    fn note_damaged_journal(&mut self, problem: Problem) {
        let hint = match problem.code {
            ProblemCode::Corrupt => "put a copy of the state folder aside before anything else".to_owned(),
            _ => problem.hint.unwrap_or_default(),
        };
        self.note_bad("journal", problem.message, hint);
    }

    fn check_repository(&mut self, place: &ProjectLocation) -> Option<Repo> {
        let git = match Git::find_installed() {
            Ok(git) => git,
            Err(error) => {
                self.note_problem("git", problems::from_git_error(&error));
                return None;
            }
        };
        self.note_ok("git", format!("version {} ({})", git.version(), git.program().display()));
        match Repo::discover(&git, &place.root) {
            Ok(repo) => {
                self.note_ok("repository", place.root.display().to_string());
                Some(repo)
            }
            Err(error) => {
                self.note_problem("repository", problems::from_repo_problem(error));
                None
            }
        }
    }

    /// While an engine has the state, that is left to the engine.
    fn check_interrupted_publish(&mut self, place: &ProjectLocation, repo: &Repo) {
        match interrupted_publish::clean_up(place, repo) {
            Cleanup::Nothing => {}
            Cleanup::Done => self.note_ok("publishing", Cleanup::DONE),
            Cleanup::Failed(why) => self.note_warning("publishing", why, Cleanup::HINT),
        }
    }

    fn check_settings(&mut self, place: &ProjectLocation) -> Option<Settings> {
        if place.settings_text().is_none() {
            self.note_warning(
                "settings",
                "there is no landfall.toml, so no agent and no check is set",
                "`landfall init` writes one with what it finds out",
            );
            return load_settings(&place.root).ok();
        }
        match load_settings(&place.root) {
            Ok(settings) => {
                self.note_ok("settings", "landfall.toml is in order");
                Some(settings)
            }
            Err(error) => {
                self.note_problem("settings", problems::open(&error));
                None
            }
        }
    }

    /// Where issues are, and what was taken over from another tool for them. A tracker that is
    /// elsewhere is not asked; files are read.
    fn check_tracker(&mut self, place: &ProjectLocation, settings: &Settings) {
        let name = "tracker";
        if let Err(problem) = trust::check_trust(place, settings) {
            return self.note_problem("trust", problem); // nobody asks a tracker by such settings
        }
        match issues::describe_tracker(place) {
            Ok(None) => self.note_ok(name, "none is wanted"),
            Ok(Some(TrackerDescription { kind, place: at, token: None, .. })) => {
                match issues::list_unreadable_files(place) {
                    Ok(unread) if unread.is_empty() => self.note_ok(name, format!("{kind}: {at}")),
                    Ok(unread) => self.note_warning(
                        name,
                        format!("{kind}: {at}, where this cannot be read: {}", unread.join("; ")),
                        "mend the file; the other issues are taken on all the same",
                    ),
                    Err(problem) => self.note_problem(name, problem),
                }
            }
            Ok(Some(TrackerDescription { kind, place, token: Some(Ok(from)), .. })) => self.note_check(
                name,
                CheckState::Ok,
                format!("{kind}: {place}, with the token of {from}"),
                Some(
                    "whether the token is taken shows only when it is tried: `landfall issue list`"
                        .to_owned(),
                ),
            ),
            Ok(Some(TrackerDescription { kind, place, token: Some(Err(why)), .. })) => self.note_bad(
                name,
                format!("{kind}: {place}, but there is no token: {why}"),
                "log in with `gh auth login`, set the variable, or name a `token_file` under [tracker]",
            ),
            Err(problem) => self.note_problem(name, problem),
        }
        for line in &settings.mapped {
            let name = "settings of another tool";
            // What is wrong is said with its line: `FILE:3: …`.
            let wrong = line.split_once(':').is_some_and(|(_, rest)| !rest.starts_with(' '));
            match wrong {
                true => self.note_warning(name, line.clone(), "mend it, or say the same in landfall.toml"),
                false => self.note_ok(name, line.clone()),
            }
        }
    }

    fn check_agents(&mut self, settings: &Settings) {
        let mut fit = false;
        for (name, profile) in &settings.agents {
            let label = format!("agent {name}");
            let path = match agents::check_profile(profile) {
                Ok(path) => path,
                Err(unfit) => {
                    self.note_bad(&label, unfit.problem, unfit.hint);
                    continue;
                }
            };
            fit = true;
            let entry = registry::find_agent(&profile.kind).expect("it fits");
            let Some(path) = path else {
                self.note_ok(&label, entry.about);
                continue;
            };
            let login =
                entry.create_agent().list_requirements(&landfall_engine::agent_profile(profile)).login;
            let hint = format!(
                "whether it is logged in shows only when it is tried: `landfall agents --probe {name}`; to log in: {login}"
            );
            self.note_check(
                &label,
                CheckState::Ok,
                format!("{} ({})", entry.about, path.display()),
                Some(hint),
            );
        }
        if settings.agents.is_empty() {
            self.note_warning("agents", "no agent profile is set, so nobody can work", suggest_agent());
        } else if !fit {
            self.note_warning("agents", "no agent profile can work", suggest_agent());
        } else if !settings.agents.contains_key("default") {
            self.note_warning(
                "agents",
                "there is no profile `default`; only tasks that name a profile can start",
                "call one of the profiles `default`",
            );
        }
        let terminal = settings.agents.values().find(|profile| {
            let needs = |agent: &registry::AgentEntry| {
                agent.create_agent().list_requirements(&landfall_engine::agent_profile(profile))
            };
            registry::find_agent(&profile.kind).is_ok_and(|agent| needs(agent).terminal)
        });
        if let Some(profile) = terminal.filter(|_| agents::find_on_path(TERMINAL_PROGRAM).is_none()) {
            self.note_bad(
                TERMINAL_PROGRAM,
                format!("the profile `{}` works in a terminal of tmux, which is not installed", profile.name),
                "install tmux with the package manager of your system",
            );
        }
    }

    /// What the settings ask of the sandbox, and whether this machine has it.
    fn check_sandbox(&mut self, place: &ProjectLocation, settings: &Settings) {
        let name = "sandbox";
        let wanted = |level: Confinement| {
            let profiles = settings.agents.values().filter(move |profile| profile.sandbox == level);
            profiles.map(|profile| profile.name.as_str()).collect::<Vec<_>>()
        };
        let off = wanted(Confinement::Off);
        let asked: BTreeSet<Confinement> =
            settings.agents.values().map(|profile| profile.sandbox).chain([settings.run.sandbox]).collect();
        let highest = asked.last().copied().unwrap_or(Confinement::Off);
        let found = sandbox::cached_probe();
        let missing = match (found, highest) {
            (Err(missing), _) => Some(missing),
            (Ok(SandboxSupport { strict, .. }), Confinement::Strict) => strict.as_ref(),
            (Ok(SandboxSupport { isolated, .. }), Confinement::Isolated) => isolated.as_ref(),
            (Ok(_), Confinement::Write | Confinement::Off) => None,
        };
        match (found, missing) {
            (_, Some(missing)) if highest > Confinement::Off => {
                self.note_bad(name, missing.to_string(), missing.hint());
            }
            (Err(missing), _) => self.note_warning(name, format!("off; {missing}"), missing.hint()),
            (Ok(SandboxSupport { landlock, isolated, .. }), _) => {
                let level = settings.run.sandbox;
                let open = level.leaves_open().join("; ");
                let detail =
                    format!("level `{}` with Landlock {landlock}; it leaves open: {open}", level.word());
                match isolated {
                    Some(missing) if settings.run.is_sandbox_lowered => self.note_warning(
                        name,
                        format!("{detail}. `isolated` is not supported here: {}", missing.feature),
                        "enable user namespaces, or set `sandbox.require = \"isolated\"` to start nothing without it",
                    ),
                    _ => self.note_ok(name, detail),
                }
            }
        }
        for CacheNotice { cache, what } in
            cache_notices(&settings.run, &place.folder, &place.engine_environment())
        {
            let hint = "the chapter on caches in docs/guide/safety.md says what a run gets instead";
            self.note_warning("caches", format!("`{cache}`: {what}"), hint);
        }
        let shared: Vec<&str> = settings.run.sandbox_write.iter().map(String::as_str).collect();
        let shared: Vec<&str> =
            shared.into_iter().filter(|path| PackageCache::find_by_path(path).is_some()).collect();
        if !shared.is_empty() {
            let (all, list) = (shared.join(", "), shared.iter().map(|path| format!("{path:?}")));
            self.note_warning(
                "caches",
                format!("`run.sandbox_write` lets every agent and check change {all}, and what they leave there runs in your own builds"),
                format!("set `caches = [{}]` in [run] in place of them", list.collect::<Vec<_>>().join(", ")),
            );
        }
        if settings.run.sandbox == Confinement::Off {
            self.note_warning(
                name,
                "`run.sandbox` is off: checks, and agents that do not say otherwise, can change whatever you can change",
                "take it out of landfall.toml, and open what they need with `sandbox_write`",
            );
        } else if !off.is_empty() {
            self.note_warning(
                name,
                format!("off for {}: it can change whatever you can change", off.join(", ")),
                "take `sandbox` out of the profile, and open what it needs with `sandbox_write`",
            );
        }
    }

    /// Budgets that some agent can never reach, because nobody counts what it uses.
    fn check_budgets(&mut self, settings: &Settings) {
        let Settings { attempt_budget, task_budget, purse, .. } = settings;
        let all = [attempt_budget, task_budget, &purse.run, &purse.day];
        let usd = all.iter().any(|budget| budget.micro_usd.is_some());
        let counted = all.iter().any(|budget| budget.tokens.is_some() || budget.turns.is_some());
        for (name, profile) in &settings.agents {
            let usage = registry::find_agent(&profile.kind).map_or(UsageReport::Money, |entry| entry.usage);
            let model = profile.model.as_deref();
            let priced = model.is_some_and(|model| settings.prices.for_model(model).is_some());
            let label = format!("budget of {name}");
            match usage {
                UsageReport::Nothing if usd || counted => self.note_warning(
                    &label,
                    format!(
                        "an agent of kind `{}` does not say what it uses, so a budget of money, tokens or turns never \
                         stops it",
                        profile.kind
                    ),
                    "bound it by time: `day_time`, `task_time` under [budget]",
                ),
                UsageReport::Tokens if usd && !priced => {
                    let why = match model {
                        Some(model) => format!("the model `{model}` has no price"),
                        None => "the profile names no model".to_owned(),
                    };
                    self.note_warning(
                        &label,
                        format!("`{}` does not say what it costs, and {why}", profile.kind),
                        match model {
                            Some(model) => format!("add [price.{model:?}] with `input` and `output`"),
                            None => format!("name the `model` in [agent.{name}]"),
                        },
                    );
                }
                UsageReport::Nothing | UsageReport::Tokens | UsageReport::Money => {}
            }
        }
    }

    fn check_flows(&mut self, place: &ProjectLocation, settings: Option<&Settings>) {
        let loaded = flows::load_flows(Some(&place.root.join(".landfall/flows")));
        for error in &loaded.errors {
            let hint = error
                .hint
                .clone()
                .unwrap_or_else(|| format!("`landfall project flow check {}` says more", error.file));
            self.note_bad("flows", error.to_string(), hint);
        }
        let known: Vec<&str> = loaded.flows.keys().map(String::as_str).collect();
        if let Some(settings) = settings
            && !known.contains(&settings.project.flow.as_str())
        {
            let name = &settings.project.flow;
            let hint = match nearest_word(&known, name) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("known: {}", known.join(", ")),
            };
            self.note_bad("flows", format!("`project.flow` is `{name}`, which is not a flow"), hint);
        }
        if loaded.errors.is_empty() {
            self.note_ok("flows", known.join(", "));
        }
    }

    /// The branch, and whether the checks a person sees are the ones that count.
    fn check_base(&mut self, place: &ProjectLocation, repo: &Repo, settings: &Settings) {
        let named = place.base.as_ref().or(settings.project.base.as_ref());
        let branch = match (named, repo.read_head()) {
            (Some(base), _) => base.clone(),
            (None, Ok(CheckoutHead::Branch { name, .. })) => name.as_str().to_owned(),
            (None, Ok(CheckoutHead::Unborn { branch })) => {
                return self.note_problem("base", problems::no_commits(&branch));
            }
            (None, Ok(CheckoutHead::Detached { .. })) => {
                return self.note_problem("base", problems::detached_head());
            }
            (None, Err(error)) => return self.note_problem("base", problems::from_git_error(&error)),
        };
        let tip = branch.parse::<BranchName>().ok().and_then(|name| repo.branch_tip(&name).ok().flatten());
        let Some(tip) = tip else {
            return self.note_bad(
                "base",
                format!("the base branch `{branch}` does not exist"),
                "`project.base` in landfall.toml must name a local branch",
            );
        };
        self.note_ok("base", format!("`{branch}` at {}", tip.short()));
        self.check_verification(place, repo, settings, &branch, &tip);
    }

    fn check_verification(
        &mut self,
        place: &ProjectLocation,
        repo: &Repo,
        settings: &Settings,
        branch: &str,
        tip: &Oid,
    ) {
        const SETTINGS_MAX: usize = 1 << 20;
        let name = "verification";
        let on_base = match repo.read_file(tip, "landfall.toml", SETTINGS_MAX) {
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(None) if place.settings_text().is_none() => String::new(),
            Ok(None) => {
                return self.note_warning(
                    name,
                    format!("landfall.toml is not committed on `{branch}`: the one in your checkout counts for now"),
                    "commit it, so that no change can loosen the checks it is judged by",
                );
            }
            Err(error) => return self.note_problem(name, problems::from_git_error(&error)),
        };
        let section = match VerifySettings::from_base(&on_base) {
            Ok(section) => section,
            Err(error) => {
                let found = problems::from_settings_problem(&error);
                let detail = format!("on `{branch}`: {}", found.message);
                return self.note_bad(
                    name,
                    detail,
                    "commit a landfall.toml that is in order; until then nothing can land",
                );
            }
        };
        if section.canonical_text() != settings.verify.canonical_text() {
            return self.note_warning(
                name,
                format!(
                    "the `[verify]` section in your checkout differs from the one on `{branch}`, which counts"
                ),
                "commit your change to landfall.toml",
            );
        }
        match section.commands.len() {
            0 if section.required => self.note_bad(
                name,
                "`verify.required` is set, but there is no command: nothing can land",
                "add a `[[verify.command]]` to landfall.toml",
            ),
            0 => self.note_warning(
                name,
                "VERIFICATION_EMPTY: no command is set, so work lands unproved",
                "add a `[[verify.command]]` that runs your tests",
            ),
            _ => {
                let names: Vec<&str> = section.commands.iter().map(|it| it.name.as_str()).collect();
                self.note_ok(name, format!("{} (from `{branch}`)", names.join(", ")));
            }
        }
    }

    fn check_state_folder(&mut self, place: &ProjectLocation, settings: Option<&Settings>) {
        let root = place.folder.root();
        let name = "state folder";
        match nearest_existing_folder(root) {
            Some(path) if path == root => match probe_writable(root) {
                Ok(()) => self.note_ok(name, root.display().to_string()),
                Err(error) => self.note_problem(name, problems::from_io_error("write to", root, &error)),
            },
            Some(_) | None => {
                self.note_ok(name, format!("{} (made when the first task is added)", root.display()))
            }
        }
        let Some(existing) = nearest_existing_folder(root) else { return };
        match disk::is_network_fs(existing) {
            Ok(false) => {}
            Ok(true) => self.note_bad(
                name,
                "it is on a network file system, where the journal would not be safe",
                "set LANDFALL_STATE to a folder on a local disk",
            ),
            Err(error) => self.note_warning(
                name,
                format!("its file system could not be looked at: {error}"),
                "check the mount",
            ),
        }
        if let Some((problem, instead)) = landfall_engine::tmp_problem() {
            let instead = instead.map_or_else(
                || "the state folder is used instead".to_owned(),
                |folder| format!("`{}` is used instead", folder.display()),
            );
            let hint = "no action is needed; the owner of that folder can tell what it is for";
            self.note_warning("temporary files", format!("{problem}; {instead}"), hint);
        }
        let Ok(free) = disk::free_bytes(existing) else { return };
        let left = format!("{} are left", format_bytes(free));
        let hint = "`landfall project reclaim --dry-run` shows what can be given back";
        match settings.map(|settings| &settings.disk) {
            Some(disk) if free < disk.pause_bytes => {
                self.note_bad(
                    "disk",
                    format!("{left}: no agent is started below {}", format_bytes(disk.pause_bytes)),
                    hint,
                );
            }
            Some(disk) if free < disk.warn_bytes => self.note_warning("disk", left, hint),
            Some(_) | None => self.note_ok("disk", left),
        }
    }

    fn check_journal(&mut self, place: &ProjectLocation, reader: &StoreReader) {
        let whole = reader.replay(Seq::FIRST, &mut |_, _| Ok(()));
        let read = match whole {
            Ok(read) => read,
            Err(error) => return self.note_damaged_journal(problems::from_store_error(&error)),
        };
        let size = std::fs::metadata(place.folder.journal_path()).map_or(0, |meta| meta.len());
        let events = pluralize(read.events, "event");
        self.note_ok(
            "journal",
            format!("{events}, every one linked to the one before ({})", format_bytes(size)),
        );
        let counted = reader.counts().and_then(|counts| Ok((counts.total(), reader.max_task_id()?)));
        match counted {
            Ok((total, last)) if total == u64::from(last.map_or(0, |id| id.0)) => {
                self.note_ok("tables", pluralize(total, "task"));
            }
            Ok((total, last)) => self.note_bad(
                "tables",
                format!(
                    "{total} tasks are in the tables, but the last one is T{}",
                    last.map_or(0, |id| id.0)
                ),
                "`landfall doctor --rebuild` makes the tables again from the journal",
            ),
            Err(error) => {
                let found = problems::from_store_error(&error);
                self.note_bad(
                    "tables",
                    found.message,
                    "`landfall doctor --rebuild` makes them again from the journal",
                );
            }
        }
    }

    /// A journal that lacks its last facts.
    fn check_stale_journal(&mut self, place: &ProjectLocation) {
        if journal_link::is_journal_behind(&place.folder) {
            self.note_bad(
                "journal",
                format!(
                    "`{}` is an older copy: the state folder contains work that it does not record",
                    place.folder.journal_path().display()
                ),
                "restore a later copy of the journal if you have one. Otherwise use `landfall run`: it continues with this journal, \
                 and moves what it does not record to the folder `older`. Work that landed is kept; `landfall doctor` then lists \
                 work that can be recovered",
            );
        }
    }

    /// A journal that is missing or empty, with state around it. Nothing of that is lost.
    fn check_lost_journal(&mut self, place: &ProjectLocation) {
        let path = place.folder.journal_path();
        let state = if path.exists() { "empty" } else { "missing" };
        self.note_bad(
            "journal",
            format!("`{}` is {state}, but the state folder contains work that it recorded", path.display()),
            "restore the journal from a copy if you have one. Otherwise use `landfall add`: it starts a new journal and moves \
             the old state to the folder `older`. Work that can be recovered is listed below",
        );
    }

    /// The work of journals that are lost: in the store that is still in its place, and in those that were set aside.
    fn check_older_journals(&mut self, place: &ProjectLocation, repo: &Repo) {
        let mut stores = Vec::new();
        if journal_link::is_journal_lost(&place.folder) {
            stores.push(place.folder.store_path());
        }
        stores.extend(journal_link::older_states(&place.folder).iter().map(|state| state.join("store.git")));
        for dir in stores.iter().filter(|dir| dir.exists()) {
            match Git::find_installed().and_then(|git| Store::list_work(&git, dir)) {
                Ok(work) => self.check_recoverable_work(repo, dir, &work),
                Err(error) => self.note_problem("recovery", problems::from_git_error(&error)),
            }
        }
    }

    fn check_recoverable_work(&mut self, repo: &Repo, dir: &Path, work: &[StoredWork]) {
        const LISTED_MAX: usize = 50; // more than a person looks at
        let name = "recovery";
        let missing = |work: &&StoredWork| !repo.has_commit(&work.commit).unwrap_or(false);
        let mut seen = BTreeSet::new();
        let wanted: Vec<&StoredWork> =
            work.iter().filter(missing).filter(|work| seen.insert(&work.commit)).collect();
        for StoredWork { name: kept, commit, subject } in wanted.iter().take(LISTED_MAX) {
            let branch = kept.strip_prefix("refs/landfall/").unwrap_or(kept).replace('/', "-");
            self.note_warning(
                name,
                format!("{}: {subject} ({kept} of `{}`)", commit.short(), dir.display()),
                format!(
                    "`git fetch '{}' {kept}:refs/heads/recovered/{branch}` makes a branch of it",
                    dir.display()
                ),
            );
        }
        match wanted.len() {
            0 => self.note_ok(name, format!("your repository has all the work of `{}`", dir.display())),
            count if count > LISTED_MAX => self.note_warning(
                name,
                format!("{} more in `{}`", count - LISTED_MAX, dir.display()),
                format!("`git --git-dir='{}' for-each-ref` lists all of it", dir.display()),
            ),
            _ => {}
        }
    }

    /// What was repaired or replaced at earlier starts, the latest of it.
    fn check_repairs(&mut self, place: &ProjectLocation) {
        const SHOWN_MAX: usize = 5;
        let log = std::fs::read_to_string(place.folder.repairs_log()).unwrap_or_default();
        let lines: Vec<serde_json::Value> =
            log.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(SHOWN_MAX).collect();
        for line in lines.iter().rev() {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let at = line["at_ms"].as_i64().unwrap_or_default();
            self.note_ok(
                "repaired earlier",
                format!("{} {}: {}", clock::format_when(at), text("about"), text("what")),
            );
        }
    }

    fn check_published(&mut self, look: &Query<'_>, reader: &StoreReader) {
        let Ok(base) = look.base_status(reader) else { return };
        match base.held {
            Some(reason) => self.note_warning(
                "publishing",
                format!("landed work is not in `{}` yet: {reason}", base.branch),
                "once that is out of the way, `landfall run` publishes it",
            ),
            None if !base.published => {
                self.note_warning(
                    "publishing",
                    "landed work is not in your branch yet",
                    "`landfall run` publishes it",
                );
            }
            None => self.note_ok("publishing", format!("`{}` has all that landed", base.branch)),
        }
    }

    fn check_workspaces(&mut self, place: &ProjectLocation, reader: &StoreReader) {
        let name = "workspaces";
        let found = list_folder_names(&place.folder.workspaces_path());
        let mut strange = Vec::new();
        for folder in &found {
            let task = folder.parse::<TaskId>().ok().and_then(|id| reader.task(id).ok().flatten());
            // The folder of a task that begins afresh is kept until then.
            if !task.is_some_and(|task| task.workspace.is_some() || !task.is_over()) {
                strange.push(folder.clone());
            }
        }
        let attic = list_folder_names(&place.folder.workspaces_path().join(".engine/attic"));
        if !attic.is_empty() {
            let path = place.folder.workspaces_path().join(".engine/attic");
            self.note_warning(
                name,
                format!(
                    "{} put aside because nobody knew them: {}",
                    pluralize(attic.len() as u64, "folder"),
                    path.display()
                ),
                "look whether something in there is yours",
            );
        }
        if strange.is_empty() {
            self.note_ok(name, format!("{} on disk, as the journal says", found.len()));
        } else {
            self.note_warning(
                name,
                format!("the journal does not know of {}", strange.join(", ")),
                "`landfall project reclaim --dry-run` shows what can be given back; the next start of the task moves others aside",
            );
        }
    }

    fn check_sitters(&mut self, look: &Query<'_>, reader: &StoreReader) {
        let place = look.place;
        let expected: BTreeSet<String> = match crate::query::orphans::tasks_with_running_agents(place, reader)
        {
            Ok(tasks) => tasks.iter().map(ToString::to_string).collect(),
            Err(problem) => return self.note_problem("agents at work", problem),
        };
        let mut strays = Vec::new();
        for folder in list_folder_names(&place.folder.attempts_path()) {
            let task = folder.split('-').next().unwrap_or_default().to_owned();
            let alive = matches!(
                sitter::find_sitter(&place.folder.attempts_path().join(&folder)),
                Ok(SitterState::Running(_))
            );
            if alive && !expected.contains(&task) && !look.engine.is_alive() {
                strays.push(folder);
            }
        }
        let name = "agents at work";
        if !strays.is_empty() {
            self.note_warning(
                name,
                format!("processes of ended attempts still run: {}", strays.join(", ")),
                "they end by themselves at their limit; `landfall run` takes care of those of open tasks",
            );
        } else if !expected.is_empty() && !look.engine.is_alive() {
            let list = expected.into_iter().collect::<Vec<_>>().join(", ");
            self.note_warning(
                name,
                format!("no engine watches the agents of {list}"),
                "`landfall run` adopts them",
            );
        } else {
            self.note_ok(name, expected.len().to_string());
        }
    }

    fn check_store(&mut self, place: &ProjectLocation, repo: &Repo) {
        let dir = place.folder.store_path();
        if !dir.exists() {
            return;
        }
        match Store::find_damage(&dir) {
            Ok(damage) if damage.is_empty() => {}
            Ok(damage) => {
                return self.note_bad(
                    "store",
                    damage.join("; "),
                    "`landfall run` repairs it from the journal and the objects; what is damaged is kept in its folder `damaged`",
                );
            }
            Err(error) => return self.note_problem("store", problems::from_git_error(&error)),
        }
        let checked = Git::find_installed()
            .and_then(|git| Store::open(&git, &dir, repo))
            .and_then(|store| store.run_fsck());
        match checked {
            Ok(health) if health.problems.is_empty() => {
                self.note_ok("store", "every object that is needed is there")
            }
            Ok(health) => self.note_bad(
                "store",
                health.problems.join("; "),
                "put a copy of the state folder aside; after that, `landfall run` restores what your repository or a workspace has",
            ),
            Err(error) => self.note_problem("store", problems::from_git_error(&error)),
        }
    }
}

/// Which agent to set up: one that is installed, or what could be.
fn suggest_agent() -> String {
    let mut there = Vec::new();
    let mut others = Vec::new();
    for entry in registry::AGENTS {
        let profile = landfall_agents::LaunchProfile {
            kind: entry.name.to_owned(),
            ..landfall_agents::LaunchProfile::default()
        };
        let needs = entry.create_agent().list_requirements(&profile);
        match needs.program.as_deref().map(agents::find_on_path) {
            Some(Some(_)) => there.push(entry.name),
            Some(None) => others.push(format!("{}: {}", entry.name, needs.install)),
            None => {}
        }
    }
    match there.first() {
        Some(kind) => format!(
            "installed: {}; add an `[agent.default]` section with `kind = \"{kind}\"` to landfall.toml",
            there.join(", ")
        ),
        None => format!(
            "none of the agents that Landfall knows is installed. Install one ({}), then add an `[agent.default]` section with \
             its `kind` to landfall.toml; or name any program of yours with `kind = \"command\"` and `run`",
            others.join("; ")
        ),
    }
}

/// The nearest folder that is there.
fn nearest_existing_folder(path: &Path) -> Option<&Path> {
    path.ancestors().find(|path| path.exists())
}

/// Whether a folder takes files.
fn probe_writable(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&file, b"")?;
    std::fs::remove_file(&file)
}

/// The names of the folders in a folder; hidden ones are not for people.
pub(crate) fn list_folder_names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}
