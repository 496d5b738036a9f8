//! What the agents of an issue leave for each other: read out of the spec in a workspace, or out of the paper that takes its
//! place where there is none. It reaches the next prompt as data, and only as much of it as the model lets through.

use std::path::Path;

use landfall_host::git::ExchangeFolder;
use landfall_model::Task;
use landfall_model::flow::{FlowStep, StepKind};
use landfall_model::issue::{IssueDocument, IssuePhase, IssueRef, later_handoff};
use landfall_trackers::tracker::IssueNumber;

use crate::exchange::{is_spec, spec_of};
use crate::host_context::HostContext;
use crate::papers;

/// The paper by which work without a spec is handed on.
pub(crate) const PAPER: &str = "handoff.md";

const BYTES_MAX: usize = 256 * 1024; // what the model reads of it

/// What is handed to whoever begins.
#[derive(Debug, Default)]
pub(crate) struct PhaseHandover {
    /// Each point, in the words of the agent before.
    pub points: Vec<String>,
    /// The phase that wrote them.
    pub phase: Option<IssuePhase>,
    /// What the spec was asked for and does not say.
    pub gaps: Vec<String>,
    /// Where to leave what the next phase should know; empty if nothing is to be left.
    pub to: String,
}

impl PhaseHandover {
    /// The phase that wrote the points, in a word.
    pub fn author_phase(&self) -> String {
        self.phase.map(|phase| phase.word().to_owned()).unwrap_or_default()
    }
}

/// What is handed to the agent of `step`, which begins in `workspace`.
pub(crate) fn build_handover(
    site: &HostContext,
    task: &Task,
    step: Option<&FlowStep>,
    workspace: &Path,
) -> PhaseHandover {
    let phase = step.and_then(|step| IssuePhase::from_word(&step.phase));
    let (Some(issue), Some(step), Some(phase)) = (&task.issue, step, phase) else {
        return PhaseHandover::default();
    };
    let spec = read_spec(site, task, workspace);
    let paper = paper_of(&site.folder.papers_path(), task);
    let bug = issue.seen.as_ref().is_some_and(|seen| seen.kind.as_deref() == Some("bug"));
    let works = phase == IssuePhase::Code && matches!(step.kind, StepKind::Agent { .. });
    // A spec that was written is held against what was asked for; one that nobody was to write is nobody's lack.
    let gaps = spec.as_ref().filter(|_| works && issue.routed.is_some_and(|routed| routed.spec));
    let gaps = gaps.map(|spec| spec.missing_sections(bug)).unwrap_or_default();
    let to = match &spec {
        _ if !works => String::new(),
        Some(_) => spec_of(site, task).unwrap_or_default(),
        None => format!("{}/{PAPER}", papers::FOLDER),
    };
    let handoff = later_handoff(spec.and_then(|it| it.handoff), paper.and_then(|it| it.handoff));
    let handoff = handoff.filter(|it| it.is_for(phase)).unwrap_or_default();
    PhaseHandover {
        points: handoff.lines(),
        phase: handoff.phase,
        gaps: gaps.into_iter().map(ToOwned::to_owned).collect(),
        to,
    }
}

/// The spec of the issue of a task, as it is in a workspace. No link is followed on the way to it.
fn read_spec(site: &HostContext, task: &Task, workspace: &Path) -> Option<IssueDocument> {
    let number = IssueNumber::new(IssueRef::from_source(&task.spec.source)?.number)?;
    let folder = &site.settings.tracker.spec_path;
    let names = std::fs::read_dir(workspace.join(folder)).ok()?.flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_spec(name, number));
    names.sort();
    let wanted = spec_of(site, task);
    let named = |name: &&String| wanted.as_deref() == Some(format!("{folder}/{name}").as_str());
    let name = names.iter().find(named).or(names.first())?;
    let bytes = ExchangeFolder::open(workspace, folder).ok()?.read(name, BYTES_MAX).ok()??;
    Some(IssueDocument::read(&String::from_utf8_lossy(&bytes)))
}

/// The paper that takes the place of a spec, as the journal knows it.
pub(crate) fn paper_of(papers: &Path, task: &Task) -> Option<IssueDocument> {
    let text = papers::read_paper(papers, task.staged.papers.get(PAPER)?).ok()?;
    Some(IssueDocument::read(&text))
}
