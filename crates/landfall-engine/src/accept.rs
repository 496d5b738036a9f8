//! Acceptance criteria are looked at: each check of the catalogue, by files, commands, pages, the forge or a judge. What may be done
//! at all is the model's to say; what comes of it all is [`settle`]'s.
//!
//! Regular expressions are those of the `regex` crate: the extended ones of POSIX with their classes, and without references back.

mod asking;
mod browser;
mod files;
mod forge;
mod html;
mod json_path;
mod rubric;
mod settle;
mod shell;
mod stamp;
mod tree;
mod web;
mod workflow;

use std::time::Instant;

use landfall_model::acceptance::{
    AcceptanceMode, AcceptanceReason, AcceptanceStage, Criteria, Criterion, CriterionCheck, CriterionContext,
    CriterionPlan, CustomVerifyCommand, HANDLER_FOLDERS, ObservationKind, VerifyHint, VerifyKind,
    VerifyResult, WebAddress, plan,
};
use landfall_trackers::tracker::{
    Comment, CommentThread, CommitSha, IssueNumber, PrNumber, Tracker, TrackerResult,
};

pub use asking::JudgeAgent;
pub use rubric::{Judge, JudgeQuestion};
pub use settle::{
    AcceptanceReport, AcceptanceSettlement, is_of_another_base, settle_acceptance, tick_boxes, was_verified,
};
pub use shell::{CommandCheckout, ShellContext};
pub use tree::AcceptanceTree;

use shell::ShellWorkspace;
use web::{BodyOption, ReachableHosts};

/// What criteria are looked at on, and with what.
pub struct AcceptanceContext<'a> {
    /// The files.
    pub tree: &'a AcceptanceTree,
    /// The issue they are of.
    pub issue: IssueText<'a>,
    /// What may be set going.
    pub mode: AcceptanceMode,
    /// Whether the work is merged.
    pub merged: bool,
    /// Whether commands that need leave have it.
    pub leave: bool,
    /// Why it is looked.
    pub occasion: AcceptanceReason,
    /// What has happened that criteria wait for: see [`find_observed_events`].
    pub happened: &'a [ObservationKind],
    /// Where `{{base_url}}` leads.
    pub base_url: Option<&'a WebAddress>,
    /// Whether a person said that this machine may be asked.
    pub allow_localhost: bool,
    /// The commands of the project's own: see [`find_verify_handlers`].
    pub handlers: &'a [CustomVerifyCommand],
    /// Who knows issues, pull requests and checks.
    pub tracker: Option<&'a dyn Tracker>,
    /// The pull request with the work.
    pub pr: Option<PrNumber>,
    /// The commit whose checks count; that of the tree if none is named.
    pub head: Option<CommitSha>,
    /// What the work changed.
    pub diff: Option<&'a str>,
    /// Where plans are: no judge sees them.
    pub spec_folder: &'a str,
    /// Who judges.
    pub judge: Option<&'a dyn Judge>,
    /// What it takes to run something; without it nothing is run.
    pub shell: Option<&'a ShellContext<'a>>,
}

/// The words of an issue.
#[derive(Debug, Clone, Copy)]
pub struct IssueText<'a> {
    /// Its title.
    pub title: &'a str,
    /// Its body.
    pub body: &'a str,
}

/// A criterion that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriterionResult {
    /// What came of it.
    pub result: VerifyResult,
    /// What was seen, in a sentence.
    pub evidence: String,
    /// How long it took.
    pub took_ms: u64,
}

/// What a check saw.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckEvidence {
    result: VerifyResult,
    evidence: String,
}

fn make_evidence(result: VerifyResult, evidence: String) -> CheckEvidence {
    CheckEvidence { result, evidence }
}

fn pass_with_evidence(evidence: String) -> CheckEvidence {
    make_evidence(VerifyResult::Pass, evidence)
}

fn fail_with_evidence(evidence: String) -> CheckEvidence {
    make_evidence(VerifyResult::Fail, evidence)
}

fn uncertain_because(why: String) -> CheckEvidence {
    make_evidence(VerifyResult::Uncertain, why)
}

fn pending_because(why: String) -> CheckEvidence {
    make_evidence(VerifyResult::Pending, why)
}

fn pass_or_fail(holds: bool, evidence: String) -> CheckEvidence {
    if holds { pass_with_evidence(evidence) } else { fail_with_evidence(evidence) }
}

/// Looks at all criteria. One result for each, in their order.
#[must_use]
pub fn check_criteria(criteria: &Criteria, ground: &AcceptanceContext<'_>) -> Vec<CriterionResult> {
    check_and_report_criteria(criteria, ground, &mut |_, _| {})
}

/// The same; `tell` hears of each as soon as it is known. Those before the merge come first, so that their boxes can be ticked
/// whatever the others take.
pub fn check_and_report_criteria(
    criteria: &Criteria,
    ground: &AcceptanceContext<'_>,
    tell: &mut dyn FnMut(usize, &CriterionResult),
) -> Vec<CriterionResult> {
    let shop = ground.shell.map(ShellWorkspace::new);
    let mut checked: Vec<Option<CriterionResult>> = vec![None; criteria.items.len()];
    for section in [AcceptanceStage::PreMerge, AcceptanceStage::PostMerge] {
        for (place, criterion) in criteria.items.iter().enumerate().filter(|(_, it)| it.section == section) {
            let began = Instant::now();
            let CheckEvidence { result, evidence } = check_criterion(ground, shop.as_ref(), criterion);
            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let one = CriterionResult { result, evidence, took_ms };
            tell(place, &one);
            checked[place] = Some(one);
        }
    }
    checked.into_iter().map(|it| it.expect("each is in one of two sections")).collect()
}

fn check_criterion(
    ground: &AcceptanceContext<'_>,
    shop: Option<&ShellWorkspace<'_>>,
    criterion: &Criterion,
) -> CheckEvidence {
    let standing = CriterionContext {
        mode: ground.mode,
        merged: ground.merged,
        leave: ground.leave,
        base_url: ground.base_url,
        allow_localhost: ground.allow_localhost,
        handlers: ground.handlers,
        occasion: ground.occasion,
        happened: ground.happened,
    };
    let (verify, address) = match plan(criterion, standing) {
        CriterionPlan::Known(result, why) => return make_evidence(result, why),
        CriterionPlan::AskChecks(line) => return forge::check_command_on_forge(ground, line),
        CriterionPlan::Run(verify, address) => (verify, address),
    };
    if let Some(when) = &verify.when {
        let Some(shop) = shop else { return uncertain_without_shell() };
        if !shell::condition_holds(shop, when) {
            return make_evidence(VerifyResult::Skipped, "its condition does not hold".to_owned());
        }
    }
    match address {
        Some(address) => check_at_address(ground, shop, verify, &address),
        None => check_without_address(ground, shop, verify, &criterion.text),
    }
}

fn uncertain_without_shell() -> CheckEvidence {
    uncertain_because("nothing can be run here".to_owned())
}

fn check_at_address(
    ground: &AcceptanceContext<'_>,
    shop: Option<&ShellWorkspace<'_>>,
    verify: &VerifyHint,
    address: &WebAddress,
) -> CheckEvidence {
    let reachable = match (ground.mode, ground.allow_localhost) {
        (AcceptanceMode::Full, _) => ReachableHosts::Anything,
        (AcceptanceMode::Safe, true) => ReachableHosts::PublicAndHere,
        (AcceptanceMode::Safe, false) => ReachableHosts::Public,
    };
    let ask = |want, then: &dyn Fn(&web::WebResponse) -> CheckEvidence| match web::fetch_address(
        address, reachable, want,
    ) {
        Ok(answered) => then(&answered),
        Err(saw) => saw,
    };
    let with_shop =
        |then: &dyn Fn(&ShellWorkspace<'_>) -> CheckEvidence| shop.map_or_else(uncertain_without_shell, then);
    match &verify.check {
        CriterionCheck::HttpStatus { code, .. } => ask(BodyOption::Head, &|it| web::check_status(it, *code)),
        CriterionCheck::HttpHeader { header, value, .. } => {
            ask(BodyOption::Head, &|it| web::check_header(it, header, value))
        }
        CriterionCheck::HttpRedirect { to, code, .. } => match to.resolve(ground.base_url) {
            Some(to) => ask(BodyOption::Head, &|it| web::check_redirect(it, address, &to, *code)),
            None => uncertain_because("where `{{base_url}}` leads is not known here".to_owned()),
        },
        CriterionCheck::HtmlCheck { selector, hits, .. } => {
            ask(BodyOption::Body, &|it| web::check_page_elements(it, selector, *hits))
        }
        CriterionCheck::ApiCheck { path, value, .. } => {
            ask(BodyOption::Body, &|it| web::check_api_value(it, path, value))
        }
        CriterionCheck::BrowserCheck { selector, text, .. } => {
            with_shop(&|shop| browser::check_rendered_element(shop, address, selector, text.as_deref()))
        }
        CriterionCheck::BrowserScreenshot { description, .. } => {
            with_shop(&|shop| browser::judge_screenshot(shop, ground.judge, address, description))
        }
        CriterionCheck::VisualDiff { reference, viewports, states, .. } => with_shop(&|shop| {
            let (viewports, states) = (viewports.as_deref(), states.as_deref());
            browser::compare_pages(shop, ground.tree, ground.base_url, reference, address, viewports, states)
        }),
        CriterionCheck::Lighthouse { category, least, .. } => {
            with_shop(&|shop| browser::check_lighthouse_score(shop, address, category, *least))
        }
        CriterionCheck::File { .. }
        | CriterionCheck::Dir { .. }
        | CriterionCheck::GitCommitted(_)
        | CriterionCheck::Contains { .. }
        | CriterionCheck::NoneContains { .. }
        | CriterionCheck::Grep { .. }
        | CriterionCheck::JsonField { .. }
        | CriterionCheck::SectionContains { .. }
        | CriterionCheck::Symlink { .. }
        | CriterionCheck::Command(_)
        | CriterionCheck::BuildSuccess(_)
        | CriterionCheck::McpCall { .. }
        | CriterionCheck::GithubCheck { .. }
        | CriterionCheck::Rubric(_)
        | CriterionCheck::Custom { .. } => {
            unreachable!("none of these has an address: `Verify::address` says so")
        }
    }
}

fn check_without_address(
    ground: &AcceptanceContext<'_>,
    shop: Option<&ShellWorkspace<'_>>,
    verify: &VerifyHint,
    text: &str,
) -> CheckEvidence {
    let tree = ground.tree;
    let limit_ms = verify.command_spec().map_or(60_000, |spec| spec.limit_ms);
    match &verify.check {
        CriterionCheck::File { path, there } => files::check_file_presence(tree, path, *there),
        CriterionCheck::Dir { path, there } => files::check_folder_presence(tree, path, *there),
        CriterionCheck::GitCommitted(path) => files::check_path_committed(tree, path),
        CriterionCheck::Contains { path, text, there } => {
            files::check_file_contains(tree, path, text, *there)
        }
        CriterionCheck::NoneContains { glob, text } => files::none_contains(tree, glob, text),
        CriterionCheck::Grep { pattern, path } => files::check_line_matches(tree, pattern, path),
        CriterionCheck::JsonField { path, field, value } => files::json_field(tree, path, field, value),
        CriterionCheck::SectionContains { path, heading, text, there } => {
            files::check_section_text(tree, path, heading, text, *there)
        }
        CriterionCheck::Symlink { path, target } => files::check_symlink_target(tree, path, target),
        CriterionCheck::Command(line) | CriterionCheck::BuildSuccess(line) => {
            shop.map_or_else(uncertain_without_shell, |shop| shell::check_command(shop, line, limit_ms))
        }
        CriterionCheck::McpCall { tool, .. } => {
            // What limits an agent here is the sandbox; none of them can be held to one tool of one server.
            uncertain_because(format!(
                "no agent can be held to the one tool `{}`: they run with all their tools; look yourself and tick the box, or \
                 let a `command` ask the server",
                files::shorten_to_line(tool)
            ))
        }
        CriterionCheck::GithubCheck { query, value } => forge::check_github_query(ground, shop, query, value),
        CriterionCheck::Rubric(rubric) => match ground.judge {
            None => uncertain_because("there is no judge here".to_owned()),
            Some(judge) => {
                let prompt = rubric::build_rubric_prompt(ground, text, rubric);
                rubric::evaluate_judge_answer(judge.judge(&JudgeQuestion { prompt: &prompt, picture: None }))
            }
        },
        CriterionCheck::Custom { name, given } => {
            let handler = ground.handlers.iter().find(|handler| handler.name == *name);
            match (handler, ground.judge) {
                (None, _) => {
                    uncertain_because(format!("there is no file for `{}`", files::shorten_to_line(name)))
                }
                (Some(_), None) => uncertain_because("there is no judge here".to_owned()),
                (Some(handler), Some(judge)) => {
                    let prompt = rubric::handler_prompt(ground, handler, given, text);
                    rubric::evaluate_judge_answer(
                        judge.judge(&JudgeQuestion { prompt: &prompt, picture: None }),
                    )
                }
            }
        }
        CriterionCheck::HttpStatus { .. }
        | CriterionCheck::HtmlCheck { .. }
        | CriterionCheck::ApiCheck { .. }
        | CriterionCheck::HttpHeader { .. }
        | CriterionCheck::HttpRedirect { .. }
        | CriterionCheck::Lighthouse { .. }
        | CriterionCheck::BrowserCheck { .. }
        | CriterionCheck::BrowserScreenshot { .. }
        | CriterionCheck::VisualDiff { .. } => {
            unreachable!("each of these has an address: `Verify::address` says so")
        }
    }
}

/// What we say it has happened by, under the issue that waits for it.
pub(crate) const OBSERVED_MARKER: &str = "observed/";

/// What has happened that criteria of an issue wait for, by what was said there. Nobody is asked if none of them waits for anything.
///
/// # Errors
/// Why the tracker does not say.
pub fn find_observed_events(
    tracker: &dyn Tracker,
    number: IssueNumber,
    criteria: &Criteria,
) -> TrackerResult<Vec<ObservationKind>> {
    if !criteria.items.iter().any(|it| matches!(it.kind, VerifyKind::Observation(_))) {
        return Ok(Vec::new());
    }
    let comments = tracker.list_comments(CommentThread::Issue(number))?;
    let event = |it: &Comment| {
        let marker = it.marker()?;
        ObservationKind::from_wire_name(marker.key().strip_prefix(OBSERVED_MARKER)?.split('/').next()?)
    };
    Ok(comments.iter().filter_map(event).collect())
}

const HANDLERS_MAX: usize = 100;

/// The verify commands of the project's own in a tree, and what is to be said about them. The tree is that of the base: the work
/// does not say how it is verified.
#[must_use]
pub fn find_verify_handlers(base: &AcceptanceTree) -> (Vec<CustomVerifyCommand>, Vec<String>) {
    let (mut found, mut said): (Vec<CustomVerifyCommand>, Vec<String>) = (Vec::new(), Vec::new());
    for folder in HANDLER_FOLDERS {
        for file in base.list_names(folder).unwrap_or_default() {
            let Some(name) = file.strip_suffix(".md") else { continue };
            let path = format!("{folder}/{file}");
            let Ok(Some(text)) = base.read_text(&path) else { continue };
            match CustomVerifyCommand::parse(name, &text) {
                None => said.push(format!(
                    "`{}` is no name for a verify command; letters, digits, `-` and `_` are",
                    files::shorten_to_line(&path)
                )),
                Some(handler) if handler.is_hidden() => {
                    said.push(format!(
                        "`{path}` is not used: `{name}` is a verify command of Landfall's own"
                    ));
                }
                Some(handler) if found.iter().any(|it| it.name == handler.name) => {
                    said.push(format!("`{path}` is not used: another file is for `{name}` already"));
                }
                Some(handler) if found.len() < HANDLERS_MAX => found.push(handler),
                Some(_) => {}
            }
        }
    }
    (found, said)
}
