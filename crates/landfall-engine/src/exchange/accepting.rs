//! Holding what an issue promised against what has landed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landfall_model::acceptance::{Criteria, Mode, Occasion};
use landfall_model::flow::Act;
use landfall_model::issue::{Accepted, unasked};
use landfall_model::recovery;
use landfall_model::{Commit, EngineEvent, Exchanged, Spending, Task};
use landfall_trackers::tracker::{CommitSha, PrNumber};

use super::{Desked, Trouble};
use crate::accept::{self, Asking, Checkout, Ground, IssueText, Judge, Settling, Shell, Tree};
use crate::engine::Mail;
use crate::land;
use crate::site::{self, Site};

const DIFF_BYTES_MAX: usize = 1 << 20;

/// Looks at every criterion on what landed, ticks the boxes, and moves the issue as the outcome says.
pub(super) fn accept(site: &Arc<Site>, task: &Task, at: &Desked) -> Result<Exchanged, Trouble> {
    let issue = at.tracker.issue(at.number)?;
    // What is on the base now: a person may have mended it there since.
    let base = land::base(site)?;
    let commit = match &task.landed {
        Some(landed) if !site.store.is_ancestor(&site::oid(&landed.commit), &base)? => {
            site::oid(&landed.commit)
        }
        Some(_) | None => base,
    };
    site.store.lend(&site.repo, &commit)?;
    let tree = Tree::Commit(site.repo.tree_at(&commit)?);
    // What the work itself says about how it is verified is not asked.
    let before = task.landed.as_ref().map_or_else(|| commit.clone(), |landed| site::oid(&landed.base_before));
    site.store.lend(&site.repo, &before)?;
    let (handlers, _) = accept::handlers(&Tree::Commit(site.repo.tree_at(&before)?));
    let customs: BTreeSet<String> = handlers.iter().map(|handler| handler.name.clone()).collect();
    let criteria = Criteria::of(&issue.body, &customs);
    if criteria.items.is_empty() {
        // Nothing is claimed about what nobody asked for; it is said where the issue is closed.
        let whole = task.issue.as_ref().is_some_and(|issue| issue.ends.is_some());
        let outcome = unasked(task.landed.is_some(), whole);
        let accepted = Accepted { items: Vec::new(), outcome };
        return Ok(Exchanged::Accepted { accepted, climbed: None });
    }
    let diff = task.landed.as_ref().and_then(|landed| changed(site, &landed.base_before, &landed.commit));
    let shell = Shell {
        settings: &site.settings.run,
        folder: &site.folder,
        program: &site.program,
        environment: &site.environment,
        root: site.repo.root(),
        checkout: Checkout::Of(&site.repo, &commit),
    };
    let settings = &site.settings.tracker;
    let is_stopped = || site.interrupted.load(Ordering::SeqCst);
    let judge = site.settings.judge.as_deref().unwrap_or("default");
    let asking = site.settings.agents.get(judge).map(|profile| Asking {
        settings: &site.settings,
        profile,
        root: site.repo.root(),
        folder: &site.folder,
        program: &site.program,
        environment: &site.environment,
        today: site.spending().1,
        is_stopped: &is_stopped,
        used: RefCell::default(),
    });
    let pr = task.issue.as_ref().and_then(|issue| PrNumber::new(issue.pr.as_ref()?.number));
    let ground = Ground {
        tree: &tree,
        issue: IssueText { title: &issue.title, body: &issue.body },
        mode: settings.verify_mode(),
        merged: true,
        leave: settings.verify_mode() == Mode::Full,
        occasion: Occasion::Verify,
        base_url: settings.production_url.as_ref(),
        allow_localhost: false,
        handlers: &handlers,
        tracker: Some(&*at.tracker),
        pr,
        head: Some(CommitSha::new(commit.as_str())?),
        diff: diff.as_deref(),
        spec_folder: &settings.spec_path,
        judge: asking.as_ref().map(|asking| asking as &dyn Judge),
        shell: Some(&shell),
    };
    let checked = accept::run(&criteria, &ground);
    if is_stopped() {
        return Err(Trouble::Interrupted); // what was cut short is not believed
    }
    if let Some(asking) = &asking {
        let used = *asking.used.borrow();
        if used != Spending::default() {
            let fact = EngineEvent::Consulted {
                about: format!("acceptance of {}", at.source),
                profile: judge.to_owned(),
                usage: used.usage,
                took_ms: used.time_ms,
            };
            drop(site.mail.send(Mail::Fact(fact))); // the engine has left: nobody counts any more
        }
    }
    // It took a while: what a person decided meanwhile stands.
    if let Some(closed) = super::closed_meanwhile(task, Some(Act::Accept), at)? {
        return Ok(Exchanged::Closed(closed));
    }
    let settled = accept::settle(&Settling {
        tracker: &*at.tracker,
        issue: at.number,
        criteria: &criteria,
        checked: &checked,
        customs: &customs,
        commit: commit.as_str(),
        iterations_max: settings.verify_iterations_max,
        open_pr: None,
    })?;
    let items = criteria.items.iter().zip(checked);
    let items = items.map(|(criterion, it)| (criterion.text.clone(), it.result, it.evidence)).collect();
    let accepted = Accepted { items, outcome: settled.outcome };
    let climbed = recovery::unmet(&site.catalogue, task, &accepted);
    Ok(Exchanged::Accepted { accepted, climbed })
}

fn changed(site: &Site, before: &Commit, after: &Commit) -> Option<String> {
    let (before, after) = (site::oid(before), site::oid(after));
    let bytes = site.repo.diff_since(&before, &after, DIFF_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
