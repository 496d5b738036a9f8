//! How often a judge may send work back, and how many rounds one check reads a change in: more for a large change.

use crate::event::StepResult;
use crate::flow::{Flow, FlowStep, StepKind};
use crate::score::GatePoint;
use crate::task::Task;
use crate::tune::{self, split_types};
pub use landfall_facts::audit::ChangeSize;

/// Fewer rounds than this prove nothing: the second looks at what the first has mended.
pub const ROUNDS_MIN: u32 = 2;
/// More rounds than this find only what the earlier ones broke.
pub const ROUNDS_MAX: u32 = 10;

/// How many rounds a change of this extent has, in a task of these types: one for every five files, two hundred lines
/// and three folders, each begun one counted whole; one more for software, and one more for a task of several types.
#[must_use]
pub fn count_audit_rounds(extent: ChangeSize, types: &[&str]) -> u32 {
    let ChangeSize { files, lines, dirs } = extent;
    let words = split_types(types);
    let software = words.iter().any(|word| word.eq_ignore_ascii_case("software"));
    let bonus = u32::from(software) + u32::from(words.len() > 1);
    let parts = [files.div_ceil(5), lines.div_ceil(200), dirs.div_ceil(3), bonus];
    parts.into_iter().fold(0, u32::saturating_add).clamp(ROUNDS_MIN, ROUNDS_MAX)
}

/// Rounds of a check whose change was not measured.
pub const ROUNDS_DEFAULT: u32 = 3;

/// How many rounds the judge of a task has for one check. The retries of the flow do not depend on it.
#[must_use]
pub fn rounds_of(task: &Task) -> u32 {
    task.staged
        .extent
        .map_or(ROUNDS_DEFAULT, |extent| count_audit_rounds(extent, &tune::task_types(&task.spec)))
}

/// How often the end of the work was sent back by its judge in this stage, and how often it may be: what the flow or the
/// kind of the task says. None where no judge looks at the end.
#[must_use]
pub fn audit_budget(task: &Task, flow: &Flow) -> Option<(u32, u32)> {
    let ends =
        |step: &&FlowStep| matches!(step.kind, StepKind::Check { checkpoint: GatePoint::PostExec, .. });
    let step = flow.steps.iter().find(ends)?;
    let edge = step.on.iter().find(|edge| edge.result == StepResult::NeedsFix)?;
    let taken = task.counters.edges.get(&(step.name.clone(), StepResult::NeedsFix)).copied().unwrap_or(0);
    Some((taken, task.limits.tuning.map_or(edge.max?, |params| params.retries.post_exec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(files: u32, lines: u32, dirs: u32) -> ChangeSize {
        ChangeSize { files, lines, dirs }
    }

    #[test]
    fn the_budget_grows_with_the_change_between_two_and_ten() {
        assert_eq!(count_audit_rounds(extent(0, 0, 0), &[]), 2);
        assert_eq!(count_audit_rounds(extent(1, 1, 1), &[]), 3);
        assert_eq!(count_audit_rounds(extent(5, 200, 3), &[]), 3);
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &[]), 6);
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &["software"]), 7);
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &["ml|dsp"]), 7);
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &["software|ml"]), 8);
        assert_eq!(count_audit_rounds(extent(50, 0, 0), &["software|ml"]), 10);
        assert_eq!(count_audit_rounds(extent(u32::MAX, u32::MAX, u32::MAX), &["software|ml"]), 10);
    }

    #[test]
    fn edge_25_a_type_is_matched_whole() {
        let plain = count_audit_rounds(extent(6, 201, 4), &[]);
        for near in ["software-docs", "nosoftware", "software:web", "hybrid"] {
            assert_eq!(count_audit_rounds(extent(6, 201, 4), &[near]), plain, "{near}");
        }
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &["Software"]), plain + 1);
        assert_eq!(count_audit_rounds(extent(6, 201, 4), &["ml|ML"]), plain, "the same twice is not two");
    }
}
