//! Plans, judges, objectives and stages in words.

use landfall_engine::model::convergence::{StageProgress, format_share};
use landfall_engine::model::proof::{ProofAuthor, ProofRun};
use landfall_engine::model::staged::StagedEvent;
use landfall_engine::papers::judged_line;
use landfall_text::pluralize;

use crate::project::sentences::one_line;

/// What happened, in one line.
pub(crate) fn staged_event_sentence(event: &StagedEvent) -> String {
    match event {
        StagedEvent::Planned { steps, covers, .. } => match covers.as_slice() {
            [] => format!("a plan of {} is written", pluralize(u64::from(*steps), "step")),
            some => {
                format!(
                    "a plan of {} is written, for {}",
                    pluralize(u64::from(*steps), "step"),
                    join_requirement_numbers(some)
                )
            }
        },
        StagedEvent::PapersKept { papers, .. } => {
            let all: Vec<&str> = papers.iter().map(|(name, _)| name.as_str()).collect();
            format!("its agent left {}", all.join(", "))
        }
        StagedEvent::Advanced { done, .. } => format!("step {done} of its plan is done, says its agent"),
        StagedEvent::Judged { judged, .. } => {
            let found = match judged.findings.as_slice() {
                [] => String::new(),
                some => format!("; it found: {}", one_line(&some.join("; "))),
            };
            format!("judged, {}{found}", one_line(&judged_line(judged)))
        }
        StagedEvent::ObjectiveSet { items, .. } => {
            let all: usize = items.iter().map(|item| item.requirements.len()).sum();
            let (items, all) = (pluralize(items.len() as u64, "item"), pluralize(all as u64, "requirement"));
            format!("its objective has {items} and {all}")
        }
        StagedEvent::ObjectiveShown => "you are asked whether that is the objective".to_owned(),
        StagedEvent::ObjectiveConfirmed => "you confirmed the objective".to_owned(),
        StagedEvent::StageBegan { number, focus } => {
            format!("stage {number} begins, for {}", join_requirement_numbers(focus))
        }
        StagedEvent::Converged { previous, current, progress, .. } => {
            let from = previous.map_or_else(|| "nothing".to_owned(), format_share);
            let what = match progress {
                StageProgress::Satisfied => "the objective is met",
                StageProgress::Closer => "another stage follows",
                StageProgress::NoCloser => "the stage is rolled back",
                StageProgress::Stuck => "the stage is to be mended",
            };
            format!("convergence went from {from} to {}: {what}", format_share(*current))
        }
        StagedEvent::GivenUp { exclusion } => {
            let kept = exclusion.abandoned.short_hash();
            format!(
                "{} is given up ({}); its work is kept as {kept}",
                exclusion.direction,
                one_line(&exclusion.reason)
            )
        }
        StagedEvent::Refined { number, text } => format!("you refined it ({number}): {}", one_line(text)),
        StagedEvent::RefinementWeighed { number, impact } => {
            format!("refinement {number} has {} impact", impact.word())
        }
        StagedEvent::RefinementsTaken { numbers } => {
            let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            format!("refinement {} goes to whoever works on it next", all.join(", "))
        }
        StagedEvent::RefinementWithdrawn { number } => format!("you took refinement {number} back"),
        StagedEvent::Annotated { name, impact, .. } => {
            format!("you annotated {} ({} impact)", one_line(name), impact.word())
        }
        StagedEvent::Promised { by, promises } => {
            let checks = pluralize(promises.len() as u64, "check");
            match by {
                ProofAuthor::Planner => format!("its plan names {checks} that must turn from red to green"),
                ProofAuthor::Judge => format!("the judge names {checks} that must turn from red to green"),
            }
        }
        StagedEvent::Measured { extent, .. } => {
            let (files, lines) =
                (pluralize(u64::from(extent.files), "file"), pluralize(u64::from(extent.lines), "line"));
            format!("its change is {files} and {lines} in {}", pluralize(u64::from(extent.dirs), "folder"))
        }
        StagedEvent::Proved { runs, .. } => {
            let run = |run: &ProofRun| match run.before {
                Some(before) => format!("{} {} → {}", run.of, before.word(), run.now.word()),
                None => format!("{} {}", run.of, run.now.word()),
            };
            let all: Vec<String> = runs.iter().map(run).collect();
            format!("checks that were named: {}", all.join(", "))
        }
    }
}

fn join_requirement_numbers(numbers: &[u32]) -> String {
    numbers.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ")
}
