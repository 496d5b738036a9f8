//! What agents would have done otherwise in future: found in the specs that landed, in the papers of work without one, and in
//! what was recovered from again and again. They are listed for a person; an issue is made of one only if somebody wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use landfall_host::git::{GitError, Oid, Store};
use landfall_model::issue::{IssueDocument, IssueRef, ProposalTier, normalize_title};
use landfall_model::{Task, TaskId, TaskState};
use landfall_trackers::tracker::{
    CreateOutcome, IssueFilter, IssueNumber, Label, LabelSpec, Marker, NewIssue, Title, Tracker,
    TrackerResult,
};

use crate::digests::digest_text;
use crate::handover::paper_of;

const BYTES_MAX: u64 = 256 * 1024; // what the model reads of a spec
const SPECS_MAX: usize = 2_000;
const OPEN_MAX: usize = 500; // open issues that are looked through for the same
const RECOVERY: &str = "recovery:";

/// Something that should be done otherwise in future.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImprovementProposal {
    /// What it is known by: the same for the same title, however it is set.
    pub id: String,
    /// What whoever proposed it would have become of it.
    pub tier: ProposalTier,
    /// In one line.
    pub title: String,
    /// All of it.
    pub text: String,
    /// Where it comes from.
    pub origin: ProposalOrigin,
}

/// Where a proposal comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProposalOrigin {
    /// The spec of an issue, by the retrospective of a phase.
    Spec {
        /// The issue.
        issue: u64,
        /// The phase; empty if it does not say.
        phase: String,
    },
    /// A paper of a task.
    Paper {
        /// The task.
        task: TaskId,
        /// The phase; empty if it does not say.
        phase: String,
    },
    /// What was recovered from again and again: a draft stands there for it.
    Recovery {
        /// The draft.
        draft: TaskId,
    },
}

impl ImprovementProposal {
    fn new(tier: ProposalTier, title: &str, text: &str, origin: ProposalOrigin) -> Self {
        Self { id: id_of(title), tier, title: title.to_owned(), text: text.to_owned(), origin }
    }

    /// Where it comes from, in words.
    #[must_use]
    pub fn from(&self) -> String {
        let of = |phase: &str| if phase.is_empty() { String::new() } else { format!(", {phase}") };
        match &self.origin {
            ProposalOrigin::Spec { issue, phase } => format!("the spec of #{issue}{}", of(phase)),
            ProposalOrigin::Paper { task, phase } => format!("{task}{}", of(phase)),
            ProposalOrigin::Recovery { draft } => format!("recoveries ({draft})"),
        }
    }

    fn issue_marker(&self) -> Marker {
        Marker::new(&format!("proposal/{}", self.id)).expect("hexadecimal digits are a key")
    }
}

fn id_of(title: &str) -> String {
    digest_text(&normalize_title(title)).to_string().chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// Those in the specs on `base`.
///
/// # Errors
/// Why they could not be read.
pub fn proposals_in_specs(
    store: &Store,
    base: &Oid,
    folder: &str,
) -> Result<Vec<ImprovementProposal>, GitError> {
    let mut all = Vec::new();
    for name in store.names_in(base, folder)?.into_iter().take(SPECS_MAX) {
        let Some(issue) = issue_of(&name) else { continue };
        if let Some(paper) = read_spec_file(store, base, &format!("{folder}/{name}")) {
            all.extend(proposals_of_paper(&paper, &|phase| ProposalOrigin::Spec { issue, phase }));
        }
    }
    Ok(all)
}

/// Those in the papers of tasks, and those about what their recoveries have in common.
#[must_use]
pub fn proposals_of_tasks<'a>(
    papers: &Path,
    tasks: impl IntoIterator<Item = &'a Task>,
) -> Vec<ImprovementProposal> {
    let mut all = Vec::new();
    for task in tasks {
        if let Some(paper) = paper_of(papers, task) {
            all.extend(proposals_of_paper(&paper, &|phase| ProposalOrigin::Paper { task: task.id, phase }));
        }
        if task.spec.source.starts_with(RECOVERY) && task.state == TaskState::Draft {
            let origin = ProposalOrigin::Recovery { draft: task.id };
            all.push(ImprovementProposal::new(
                ProposalTier::Issue,
                &task.spec.title,
                &task.spec.body,
                origin,
            ));
        }
    }
    all
}

/// Each once, those that are worth an issue first.
#[must_use]
pub fn merge_proposals(all: Vec<ImprovementProposal>) -> Vec<ImprovementProposal> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut once: Vec<ImprovementProposal> = Vec::new();
    for proposal in all {
        match known.get(&proposal.id) {
            Some(at) => once[*at].tier = once[*at].tier.min(proposal.tier),
            None => {
                known.insert(proposal.id.clone(), once.len());
                once.push(proposal);
            }
        }
    }
    once.sort_by_key(|it| it.tier);
    once
}

/// The spec of the issue of a task on `base`, or the paper that takes its place.
#[must_use]
pub fn find_paper(
    store: &Store,
    base: &Oid,
    folder: &str,
    papers: &Path,
    task: &Task,
) -> Option<IssueDocument> {
    let number = IssueRef::from_source(&task.spec.source)?.number;
    let names = store.names_in(base, folder).ok()?;
    let name = names.into_iter().find(|name| issue_of(name) == Some(number));
    let spec = name.and_then(|name| read_spec_file(store, base, &format!("{folder}/{name}")));
    spec.or_else(|| paper_of(papers, task))
}

/// The proposals of one paper.
#[must_use]
pub fn proposals_of_paper(
    paper: &IssueDocument,
    origin: &dyn Fn(String) -> ProposalOrigin,
) -> Vec<ImprovementProposal> {
    let made = paper.all_proposals();
    made.map(|(phase, it)| ImprovementProposal::new(it.tier, &it.title, &it.text, origin(phase.to_owned())))
        .collect()
}

/// What open issues say already: the number of the issue, by the id of a proposal.
///
/// # Errors
/// Why the tracker does not tell.
pub fn open_issues(tracker: &dyn Tracker) -> TrackerResult<BTreeMap<String, u64>> {
    let filter = IssueFilter { only_open: true, labels: BTreeSet::new(), most: OPEN_MAX };
    let mut known = BTreeMap::new();
    for issue in tracker.list_issues(&filter)? {
        let number = issue.number.get();
        known.insert(id_of(&issue.title), number);
        if let Some((marker, _)) = Marker::split_marker(&issue.body)
            && let Some(id) = marker.key().strip_prefix("proposal/")
        {
            known.insert(id.to_owned(), number);
        }
    }
    Ok(known)
}

/// Makes an issue of a proposal, unless there is one: an open one that says the same, or one that was made of it before, whatever
/// became of that.
///
/// # Errors
/// Why the tracker does not take it.
pub fn file_proposal(
    tracker: &dyn Tracker,
    known: &BTreeMap<String, u64>,
    proposal: &ImprovementProposal,
) -> TrackerResult<(u64, bool)> {
    if let Some(number) = known.get(&proposal.id) {
        return Ok((*number, false));
    }
    let phase = match &proposal.origin {
        ProposalOrigin::Spec { phase, .. } | ProposalOrigin::Paper { phase, .. } => phase.as_str(),
        ProposalOrigin::Recovery { .. } => "auto",
    };
    let known_phase = ["issue", "spec", "code", "review", "verify", "auto"].contains(&phase);
    let label = Label::new(&format!("retro/{}", if known_phase { phase } else { "auto" }))?;
    let about = "Proposed by an agent, looking back.".to_owned();
    tracker.ensure_labels(&[LabelSpec { label: label.clone(), colour: [0xc5, 0xde, 0xf5], about }])?;
    // An agent wrote it: nothing in it may be taken for a criterion that is verified by a command.
    let text = proposal.text.replace("<!--", "&lt;!--");
    let body = format!("{text}\n\nProposed by an agent, looking back: {}.", proposal.from());
    let new = NewIssue {
        marker: proposal.issue_marker(),
        title: Title::from_text(&proposal.title),
        body,
        labels: BTreeSet::from([label]),
    };
    Ok(match tracker.create_issue(&new)? {
        CreateOutcome::Made(issue) => (issue.number.get(), true),
        CreateOutcome::Found(issue) => (issue.number.get(), false),
    })
}

/// The issue that a file of the folder of specs is about.
fn issue_of(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("issue-")?.strip_suffix(".md")?;
    let digits = rest.split('-').next().filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()))?;
    IssueNumber::new(digits.parse().ok()?).map(IssueNumber::get)
}

/// A file that is too long to be a spec is none.
fn read_spec_file(store: &Store, commit: &Oid, path: &str) -> Option<IssueDocument> {
    let bytes = store.read_blob(commit, path.as_bytes(), BYTES_MAX).ok()??;
    Some(IssueDocument::read(&String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_proposed_twice_is_one_and_the_stronger_wish_counts() {
        let of = |tier, title: &str, task| {
            ImprovementProposal::new(
                tier,
                title,
                title,
                ProposalOrigin::Paper { task: TaskId(task), phase: String::new() },
            )
        };
        let all = merge_proposals(vec![
            of(ProposalTier::Note, "Name the profiles", 1),
            of(ProposalTier::Note, "Other", 2),
            of(ProposalTier::Issue, "name *the* profiles!", 3),
        ]);
        let shown: Vec<_> = all.iter().map(|it| (it.tier, it.title.as_str(), it.from())).collect();
        assert_eq!(
            shown,
            [
                (ProposalTier::Issue, "Name the profiles", "T1".to_owned()),
                (ProposalTier::Note, "Other", "T2".to_owned())
            ]
        );
        assert_eq!(all[0].id.len(), 8);
    }

    #[test]
    fn a_spec_is_known_by_the_number_in_its_name() {
        assert_eq!(issue_of("issue-7-door.md"), Some(7));
        assert_eq!(issue_of("issue-70.md"), Some(70));
        for other in ["issue-0-x.md", "issue-x.md", "issue-7-door.txt", "notes.md", "issue-.md"] {
            assert_eq!(issue_of(other), None, "{other}");
        }
    }
}
