//! Looks at the acceptance criteria of an issue, and carries out what follows from them.

use std::cell::RefCell;

use landfall_api::{CriterionSeen, IssueVerified, Problem, ProblemCode, VerifyAsked};
use landfall_engine::accept::{
    self, AcceptanceContext, AcceptanceSettlement, AcceptanceTree, CommandCheckout, CriterionResult,
    IssueText, JudgeAgent, ShellContext, settle_acceptance, tick_boxes,
};
use landfall_engine::engine;
use landfall_engine::exchange::{branch_of, landed_base, read_idle_sub_issues};
use landfall_engine::host::git::{BranchName, Git, Oid, Repo, Store};
use landfall_engine::model::acceptance::{
    AcceptanceMode, AcceptanceReason, AcceptanceStage, BaseUrls, Criteria, Criterion, DeploymentKind,
    VerifyKind, VerifyOutcome, VerifyResult, gains_from_full_mode, handler_names, outcome_headline,
};
use landfall_engine::model::issue::{IssuePhase, count_parts_left, is_begun};
use landfall_engine::model::{AgentUsage, Spending};
use landfall_engine::settings::{ProfileSettings, Settings};
use landfall_engine::tracker::{self, TrackerEnv};
use landfall_trackers::tracker::{
    CloseReason, Issue, IssueNumber, PHASE_FAMILY, PrNumber, PrState, PullRequest, Tracker, TrackerIssueState,
};

use crate::command::{follow_issues, reconcile};
use crate::project::engine_at::EngineLocation;
use crate::project::open_engine;
use crate::project::place::ProjectLocation;
use crate::project::{problems, trust};
use crate::query::issues::tracker_problem;
use crate::query::start_blockers::StartBlockers;
use crate::query::{agents, extra_usage};

const AUTHOR: &str = "landfall";
const DIFF_BYTES_MAX: usize = 512 << 10; // a judge is shown less

/// Looks, and does what follows, until `is_stopped` says that nobody waits for it. `tell` hears how it goes.
pub(crate) fn verify_issue(
    place: &ProjectLocation,
    asked: &VerifyAsked,
    is_stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(&str),
) -> Result<IssueVerified, Problem> {
    let settings = engine::load_settings(&place.root).map_err(|error| problems::open(&error))?;
    trust::check_trust(place, &settings)?;
    let environment = place.engine_environment();
    let around =
        TrackerEnv { root: &place.root, folder: &place.folder, environment: &environment, author: AUTHOR };
    let tracker = tracker::open_tracker(&settings, &around).map_err(|error| tracker_problem(&error))?;
    let number = IssueNumber::new(asked.issue.0).ok_or_else(|| zero_number_problem("issue"))?;
    let issue = tracker.read_issue(number).map_err(|error| tracker_problem(&error))?;
    refuse_unplanned(&issue, asked.dry_run)?;
    let pull = match asked.pr {
        None => None,
        Some(pr) => {
            let pr = PrNumber::new(pr.0).ok_or_else(|| zero_number_problem("pull request"))?;
            Some(tracker.pull_request(pr).map_err(|error| tracker_problem(&error))?)
        }
    };
    let begun = match &pull {
        Some(_) => true,
        None => {
            refuse_active_work(place, &*tracker, &issue)?;
            follow_issues::check_other_base(place, &*tracker, number)?;
            let verified = accept::was_verified(&*tracker, number, place.folder.side_name())
                .map_err(|error| tracker_problem(&error))?;
            is_begun(&reconcile::take_issue_snapshot(place, asked.issue.0, None)?, verified)
        }
    };
    // What nobody worked on is looked at, and stays where it is.
    let only_look = asked.dry_run || !begun;
    let sight = VerifyTarget::for_pull_request(place, &*tracker, pull.as_ref())?;
    let tree = sight.tree_at(&sight.commit)?;
    let base = sight.tree_at(&sight.base)?;
    let (handlers, mut notes) = accept::find_verify_handlers(&base);
    let customs = handler_names(&handlers);
    let criteria = Criteria::from_body(&issue.body, &customs);
    if criteria.items.is_empty() {
        let message = format!("issue {number} has no acceptance criteria: nothing would be verified");
        return Err(Problem::new(ProblemCode::NotNow, message).with_hint(
            "write boxes such as `- [ ] <!-- verify: file_exists \"README.md\" --> there is a README`",
        ));
    }
    let warning = find_suspicious_boxes(&criteria, pull.is_some());
    notes.extend(warning);
    let merged = sight.merged;
    let urls = BaseUrls {
        local: settings.tracker.local_url.clone(),
        preview: settings.tracker.preview_url.clone(),
        production: settings.tracker.production_url.clone(),
    };
    let diff = sight.pull_request_diff(pull.as_ref());
    let program = open_engine::own_executable();
    let shell = ShellContext {
        settings: &settings.run,
        folder: &place.folder,
        program: &program,
        environment: &environment,
        root: &place.root,
        checkout: CommandCheckout::Of(&sight.repo, &sight.commit),
    };
    let profile = judge(&settings, asked)?;
    let asking = match profile {
        None => None,
        Some((_, profile)) => Some(JudgeAgent {
            settings: &settings,
            profile,
            root: &place.root,
            folder: &place.folder,
            program: &program,
            environment: &environment,
            today: spending_today(place)?,
            is_stopped,
            used: RefCell::default(),
        }),
    };
    let happened = accept::find_observed_events(&*tracker, number, &criteria)
        .map_err(|error| tracker_problem(&error))?;
    let ground = AcceptanceContext {
        tree: &tree,
        issue: IssueText { title: &issue.title, body: &issue.body },
        mode: if asked.full { AcceptanceMode::Full } else { AcceptanceMode::Safe },
        merged,
        leave: asked.full, // whoever says `--full` gives it
        occasion: AcceptanceReason::Verify,
        happened: &happened,
        base_url: urls.for_deployment(if merged {
            DeploymentKind::Production
        } else {
            DeploymentKind::Preview
        }),
        allow_localhost: asked.allow_localhost,
        handlers: &handlers,
        tracker: Some(&*tracker),
        pr: pull.as_ref().map(|pull| pull.number),
        head: pull.as_ref().filter(|_| !merged).map(|pull| pull.head_sha.clone()),
        diff: diff.as_deref(),
        spec_folder: &settings.tracker.spec_path,
        judge: asking.as_ref().map(|it| it as &dyn accept::Judge),
        shell: Some(&shell),
    };
    let (checked, early) = verify_criteria(&*tracker, &issue, &criteria, &ground, &customs, only_look, tell);
    if let (Some(asking), Some((name, _))) = (&asking, profile) {
        let used = *asking.used.borrow();
        note_judge_usage(place, name, used, tell);
    }
    // A whole is no further than the issues it is made of, whoever looks at it.
    let parts = read_idle_sub_issues(&*tracker, number).map_err(reconcile::exchange_problem)?;
    let left = count_parts_left(&parts);
    let settling = AcceptanceSettlement {
        tracker: &*tracker,
        issue: number,
        criteria: &criteria,
        checked: &checked,
        customs: &customs,
        commit: sight.commit.as_str(),
        iterations_max: settings.tracker.verify_iterations_max,
        open_pr: pull.as_ref().filter(|_| !merged).map(|pull| pull.number),
        left,
        was_done: false,
        side: place.folder.side_name(),
    };
    let (outcome, ticked, told, stays, shown) = if only_look {
        let seen = || {
            let (outcome, checked) = settling.compute_outcome()?;
            Ok((outcome, 0, false, settling.stays_done(outcome)?, checked))
        };
        seen().map_err(|error| tracker_problem(&error))?
    } else {
        let settled = settle_acceptance(&settling).map_err(|error| tracker_problem(&error))?;
        if settled.known {
            notes.push("the same was found of the same commit before: nothing was changed".to_owned());
        }
        (settled.outcome, settled.ticked + early, settled.told, settled.stays, settled.checked)
    };
    notes.extend(match (begun, stays) {
        (false, _) => Some(not_begun_text(number)),
        (true, true) => {
            Some(format!("{number} is done and stays so: nothing that was looked at speaks against it"))
        }
        (true, false) => closed_issue_note(&issue, &criteria, outcome),
    });
    notes.extend((!asked.full).then(|| unchecked_note(number, &criteria, &checked)).flatten());
    let holding = checked.iter().filter(|it| it.result == VerifyResult::Pass).count();
    let (word, text) = match begun {
        true => (outcome.word(), outcome_headline(outcome)),
        false => ("not-begun", format!("nobody has worked on it yet; {holding} of {} hold", checked.len())),
    };
    Ok(IssueVerified {
        issue: asked.issue.0,
        pr: asked.pr.map(|pr| pr.0),
        commit: sight.commit.to_string(),
        mode: if asked.full { "full" } else { "safe" }.to_owned(),
        outcome: word.to_owned(),
        text,
        iteration: outcome.iteration().filter(|_| begun),
        ticked: ticked as u64,
        told,
        dry_run: asked.dry_run,
        criteria: criteria
            .items
            .iter()
            .zip(&shown)
            .map(|(criterion, it)| to_criterion_seen(criterion, it))
            .collect(),
        notes,
    })
}

/// Looks at each. The boxes of what holds before the merge are ticked before the rest is looked at.
fn verify_criteria(
    tracker: &dyn Tracker,
    issue: &Issue,
    criteria: &Criteria,
    ground: &AcceptanceContext<'_>,
    customs: &std::collections::BTreeSet<String>,
    only_look: bool,
    tell: &mut dyn FnMut(&str),
) -> (Vec<CriterionResult>, usize) {
    let before = |it: &&Criterion| it.section == AcceptanceStage::PreMerge;
    let (mut left, later) = (criteria.items.iter().filter(before).count(), criteria.items.len());
    let later = later > left;
    let (mut holding, mut ticked): (Vec<&Criterion>, usize) = (Vec::new(), 0);
    let checked = accept::check_and_report_criteria(criteria, ground, &mut |place, it| {
        let criterion = &criteria.items[place];
        tell(&format!("{} {}", it.result.word(), criterion.text));
        if criterion.section == AcceptanceStage::PostMerge {
            return;
        }
        if it.result == VerifyResult::Pass {
            holding.push(criterion);
        }
        left -= 1;
        if left == 0 && later && !only_look {
            match tick_boxes(tracker, issue.number, &holding, customs) {
                Ok(count) => ticked = count,
                Err(error) => tell(&format!("boxes are not ticked yet: {error}")), // tried again in the end
            }
        }
    });
    (checked, ticked)
}

fn to_criterion_seen(criterion: &Criterion, it: &CriterionResult) -> CriterionSeen {
    let section = match criterion.section {
        AcceptanceStage::PreMerge => "pre-merge",
        AcceptanceStage::PostMerge => "post-merge",
    };
    CriterionSeen {
        text: criterion.text.clone(),
        section: section.to_owned(),
        result: it.result.word().to_owned(),
        evidence: it.evidence.clone(),
        took_ms: it.took_ms,
    }
}

/// What is looked at.
struct VerifyTarget {
    repo: Repo,
    commit: Oid,
    base: Oid,
    merged: bool,
}

impl VerifyTarget {
    fn for_pull_request(
        place: &ProjectLocation,
        tracker: &dyn Tracker,
        pull: Option<&PullRequest>,
    ) -> Result<Self, Problem> {
        let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
        let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
        let branch = BranchName::new(&place.base_branch_or_empty()).map_err(|_| problems::detached_head())?;
        let of = |error| problems::from_git_error(&error);
        let store = Store::open(&git, &place.folder.store_path(), &repo).map_err(of)?;
        // A forge merges there; what was last fetched from it is newer than a branch nobody pulled into.
        let fetched = match tracker.keeps_branches() {
            true => repo.fetched_tip("origin", &branch).map_err(of)?,
            false => None,
        };
        let theirs = match fetched {
            Some(fetched) => fetched,
            None => {
                repo.branch_tip(&branch).map_err(of)?.ok_or_else(|| problems::no_commits(branch.as_str()))?;
                store.import_branch(&repo, &branch).map_err(of)?
            }
        };
        // Work that has landed counts, too, while it waits to come into the branch: a checkout with changes keeps it out.
        let base = landed_base(&store, theirs).map_err(of)?;
        store.lend_commit(&repo, &base).map_err(of)?;
        let Some(pull) = pull else {
            return Ok(Self { repo, commit: base.clone(), base, merged: true });
        };
        let wanted = match &pull.state {
            PrState::Draft | PrState::Open => Some(&pull.head_sha),
            PrState::Merged { commit } => commit.as_ref(),
            PrState::Closed => {
                let message = format!("pull request {} was closed without being merged", pull.number);
                return Err(Problem::new(ProblemCode::NotNow, message)
                    .with_hint("leave `--pr` out to look at what is on the base branch"));
            }
        };
        let wanted = wanted.and_then(|sha| sha.as_str().parse::<Oid>().ok());
        if let Some(wanted) = &wanted
            && !repo.has_commit(wanted).map_err(of)?
        {
            let message = format!("commit {} of pull request {} is not here", wanted.short(), pull.number);
            return Err(Problem::new(ProblemCode::NotNow, message).with_hint("`git fetch` brings it here"));
        }
        let merged = !pull.state.is_open();
        let commit = wanted.filter(|_| !merged).unwrap_or_else(|| base.clone());
        Ok(Self { repo, commit, base, merged })
    }

    fn tree_at(&self, commit: &Oid) -> Result<AcceptanceTree, Problem> {
        self.repo
            .tree_at(commit)
            .map(AcceptanceTree::Commit)
            .map_err(|error| problems::from_git_error(&error))
    }

    /// What the pull request changed, as far as it is here.
    fn pull_request_diff(&self, pull: Option<&PullRequest>) -> Option<String> {
        let head: Oid = pull?.head_sha.as_str().parse().ok()?;
        let bytes = self.repo.diff_since(&self.base, &head, DIFF_BYTES_MAX).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|diff| !diff.trim().is_empty())
    }
}

/// Who judges: whom the person names, else whom the settings do.
fn judge<'a>(
    settings: &'a Settings,
    asked: &'a VerifyAsked,
) -> Result<Option<(&'a str, &'a ProfileSettings)>, Problem> {
    let Some(name) = asked.judge.as_deref().or(settings.judge.as_deref()) else { return Ok(None) };
    match settings.agents.get(name) {
        Some(profile) => Ok(Some((name, profile))),
        None => Err(agents::unknown_profile_problem(settings, name)),
    }
}

fn spending_today(place: &ProjectLocation) -> Result<Spending, Problem> {
    match place.open_reader()? {
        Some(reader) => {
            Ok(StartBlockers::load_current(place, &EngineLocation::locate(place), &reader)?.spending_today())
        }
        None => Ok(Spending::default()),
    }
}

fn note_judge_usage(place: &ProjectLocation, profile: &str, used: Spending, tell: &mut dyn FnMut(&str)) {
    if used.time_ms == 0 && used.usage == AgentUsage::default() {
        return;
    }
    if let Err(problem) = extra_usage::note_extra_usage(place, ("verdict", profile), used.usage, used.time_ms)
    {
        tell(&format!("what the judge used is not in the ledger of the day: {}", problem.message));
    }
}

fn not_begun_text(number: IssueNumber) -> String {
    format!(
        "nothing was changed: nobody has worked on {number}, as far as can be seen. `landfall auto {0}` does; if it was done by \
         hand, `landfall issue close {0}` and verify it again",
        number.get()
    )
}

/// What was not looked at because nothing was run, and how it is.
fn unchecked_note(number: IssueNumber, criteria: &Criteria, checked: &[CriterionResult]) -> Option<String> {
    let unsaid = |(criterion, it): &(&Criterion, &CriterionResult)| {
        it.result == VerifyResult::Uncertain && gains_from_full_mode(criterion)
    };
    let unsaid: Vec<String> = criteria
        .items
        .iter()
        .zip(checked)
        .filter(unsaid)
        .map(|(it, _)| format!("{} ({})", it.text, if it.ticked { "its box is ticked" } else { "open" }))
        .collect();
    (!unsaid.is_empty()).then(|| {
        format!(
            "not looked at, for nothing is run without your leave: {}. `landfall issue verify {} --full` gives it",
            unsaid.join("; "),
            number.get()
        )
    })
}

/// What nobody will do is not verified: a person has decided that.
fn refuse_unplanned(issue: &Issue, dry_run: bool) -> Result<(), Problem> {
    match issue.state {
        TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. } if !dry_run => {
            Err(unplanned_issue_problem(issue.number))
        }
        TrackerIssueState::Closed { .. } | TrackerIssueState::Open => Ok(()),
    }
}

/// What is said about an issue that nobody is to do.
pub(crate) fn unplanned_issue_problem(number: IssueNumber) -> Problem {
    Problem::new(ProblemCode::NotNow, format!("{number} is closed as not planned: it is left alone"))
        .with_hint(format!("`landfall issue reopen {}` opens it again, if it is to be done", number.get()))
}

/// What is worth knowing about an issue that somebody closed before it was verified.
fn closed_issue_note(issue: &Issue, criteria: &Criteria, outcome: VerifyOutcome) -> Option<String> {
    if issue.state.is_open() {
        return None;
    }
    let left: Vec<&str> = criteria
        .items
        .iter()
        .filter(|it| !it.ticked && it.kind != VerifyKind::Auto)
        .map(|it| it.text.as_str())
        .collect();
    match outcome {
        VerifyOutcome::Done if !left.is_empty() => {
            Some(format!("a person closed it, so what only a person can look at holds: {}", left.join("; ")))
        }
        VerifyOutcome::LeftOver(_) | VerifyOutcome::Waiting | VerifyOutcome::Unsure => {
            let tick = match criteria.items.iter().all(|it| it.ticked) {
                true => String::new(), // it is not a tick that is missing
                false => format!(
                    "; `landfall issue tick {} BOX` ticks what you have seen, then verify it again",
                    issue.number.get()
                ),
            };
            Some(format!("it is closed and stays in phase/verify until all holds{tick}"))
        }
        VerifyOutcome::Done | VerifyOutcome::Reopen { .. } | VerifyOutcome::Exhausted { .. } => None,
    }
}

/// What is being worked on is not held against the base: it would fail there, and that counts.
fn refuse_active_work(place: &ProjectLocation, tracker: &dyn Tracker, issue: &Issue) -> Result<(), Problem> {
    let number = issue.number;
    let phases =
        issue.labels.iter().filter_map(|label| IssuePhase::from_word(label.name_within(PHASE_FAMILY)?));
    if let Some(phase) =
        phases.max().filter(|phase| *phase < IssuePhase::Verify && *phase > IssuePhase::Issue)
    {
        let message = format!("{number} is being worked on: it is in phase/{}", phase.word());
        return Err(Problem::new(ProblemCode::NotNow, message)
            .with_hint(format!("`landfall auto {}` continues it and verifies what lands", number.get())));
    }
    let pulls = tracker
        .pull_requests_of(&branch_of(number, place.folder.side_name()))
        .map_err(|error| tracker_problem(&error))?;
    match pulls.iter().find(|pull| pull.state.is_open()) {
        None => Ok(()),
        Some(pull) => {
            let message = format!("{number} has an open pull request, {}", pull.number);
            let hint =
                format!("`landfall issue verify {} --pr {}` looks at that", number.get(), pull.number.get());
            Err(Problem::new(ProblemCode::NotNow, message).with_hint(hint))
        }
    }
}

/// Boxes that were all ticked before anybody looked.
fn find_suspicious_boxes(criteria: &Criteria, has_pr: bool) -> Option<String> {
    let all = criteria.items.iter().all(|it| it.ticked);
    (all && !has_pr && !criteria.metadata_only)
        .then(|| "all boxes were ticked before this look, and no pull request is named".to_owned())
}

fn zero_number_problem(what: &str) -> Problem {
    Problem::new(ProblemCode::BadInput, format!("0 is no number of an {what}").replace("an pull", "a pull"))
        .with_hint("numbers begin at 1")
}
