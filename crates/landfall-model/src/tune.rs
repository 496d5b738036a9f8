//! How strict the checks of a task are: thresholds, retries, intervals and weights by the type of the task, and what
//! earlier runs teach about them. Scores and verdicts are made elsewhere; here are only the numbers they are made with.

use crate::TaskSpec;
use crate::score::{GatePoint, WEIGHTS};
use crate::task::{EndKind, Ending, Task, TaskState};
pub use landfall_facts::tune::{GateParams, GatePointValues};

/// The numbers for a task of these types. Each may be one word or several with `|` between them. A type that is not
/// known has the default numbers. Of several types the stricter number counts, each by itself: the higher
/// threshold, fewer retries, the shorter interval, the emptier context.
#[must_use]
pub fn params_for_types(types: &[&str]) -> GateParams {
    let each = split_types(types).into_iter().map(built_in_params);
    each.reduce(stricter_params).unwrap_or(GateParams::DEFAULT)
}

fn stricter_params(mine: GateParams, other: GateParams) -> GateParams {
    GateParams {
        thresholds: mine.thresholds.zip_with(other.thresholds, u32::max),
        ..mine.combine_each(other, u32::min)
    }
}

/// The built-in numbers of one type.
///
/// A small fix may be judged mildly, and a second new plan for it is one too many. What everything else will stand on
/// is judged harshly, and may try once more to get there. In a pipeline a mistake on the way spoils all that follows,
/// so the check on the way is the strict one, and there is more room to mend.
fn built_in_params(word: &str) -> GateParams {
    let mut params = GateParams::DEFAULT;
    let GatePointValues { post_plan, mid_exec, post_exec } = &mut params.thresholds;
    match word.to_ascii_lowercase().as_str() {
        "bug-fix" | "bugfix" => {
            (*post_plan, *post_exec) = (600, 650);
            params.retries.post_plan = 2;
        }
        "architecture" => {
            (*post_plan, *post_exec) = (750, 800);
            params.retries.post_exec = 4;
        }
        "data-pipeline" => {
            *mid_exec = 700;
            params.retries.mid_exec = 3;
            params.retries.post_exec = 4;
        }
        _ => {}
    }
    params
}

/// The words of types: `software|ml` is two. Words are whole, and each counts once, in whatever case it is written.
#[must_use]
pub fn split_types<'a>(types: &[&'a str]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for word in types.iter().flat_map(|types| types.split('|')).map(str::trim) {
        if !word.is_empty() && !found.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            found.push(word);
        }
    }
    found
}

/// What one run of a task was like.
///
/// Iterations and durations are kept for people who compare runs; [`learn_params`] does not read them, because they grow with
/// the task and not with how well its checks are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunObservation {
    /// How often the work went back from each checkpoint.
    pub retries: GatePointValues,
    /// Runs of agents.
    pub iterations: u32,
    /// Checks on the way.
    pub mid_exec_checks: u32,
    /// How often a context was summed up.
    pub compactions: u32,
    /// How long each phase took.
    pub took: Phases,
}

/// How long each phase of a run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Until the objective was confirmed.
    pub target_ms: u64,
    /// Until the plan passed, all plans together.
    pub planning_ms: u64,
    /// The work.
    pub execution_ms: u64,
    /// From the accepted work to the end.
    pub acceptance_ms: u64,
}

/// Fewer runs than this teach nothing.
pub const RUNS_MIN: usize = 5;
/// Only so many runs count, the latest: agents and projects change.
pub const RUNS_MAX: usize = 20;
/// Learning lowers a threshold by this at most, in thousandths.
pub const LOOSEN_MAX: u32 = 20;
/// Learning raises a threshold by this at most, in thousandths.
pub const TIGHTEN_MAX: u32 = 10;
const SOONER_PERCENT: u32 = 4; // 82 becomes 78, which suits long work
const LATER_PERCENT: u32 = 3; // 82 becomes 85, which suits short work

/// The numbers that earlier runs of such tasks suggest, the latest run last.
///
/// `params` are those of the profile, never what an earlier call gave: the same history gives the same numbers, and
/// however long it grows, they stay one small step from the profile. The steps are:
///
/// * A checkpoint where no run went back: its threshold rises by [`TIGHTEN_MAX`]. One where at least half of the runs
///   used up all retries: its threshold falls by [`LOOSEN_MAX`], and there is one retry more.
/// * Checks on the way of which none found anything: the interval grows by one step. Checks of which at least half sent
///   the work back: it shrinks by one.
/// * No run summed up its context: it may be 3 % fuller. Once or more per run: it is summed up 4 % sooner.
///
/// With fewer than [`RUNS_MIN`] runs nothing moves, and of more than [`RUNS_MAX`] only the latest count. Everything stays
/// within the bounds of [`GateParams`]. More trouble never makes a check stricter, nor less trouble a milder one.
#[must_use]
pub fn learn_params(params: GateParams, runs: &[RunObservation]) -> GateParams {
    let params = params.within_bounds();
    let runs = &runs[runs.len().saturating_sub(RUNS_MAX)..];
    if runs.len() < RUNS_MIN {
        return params;
    }
    let one = |number: fn(&GatePointValues) -> u32| {
        let limit = number(&params.retries);
        let seen: Vec<u32> = runs.iter().map(|run| number(&run.retries)).collect();
        let used_up = seen.iter().filter(|retries| **retries >= limit).count();
        let threshold = number(&params.thresholds);
        if used_up * 2 >= runs.len() {
            return (threshold.saturating_sub(LOOSEN_MAX), limit + 1);
        }
        let smooth = seen.iter().all(|retries| *retries == 0);
        (if smooth { threshold + TIGHTEN_MAX } else { threshold }, limit)
    };
    let (plan, mid, end) = (one(|it| it.post_plan), one(|it| it.mid_exec), one(|it| it.post_exec));

    let sum = |number: fn(&RunObservation) -> u32| runs.iter().map(|run| u64::from(number(run))).sum::<u64>();
    let (checks, fixes) = (sum(|run| run.mid_exec_checks), sum(|run| run.retries.mid_exec));
    let mid_exec_interval = match fixes {
        _ if checks == 0 => params.mid_exec_interval,
        0 => params.mid_exec_interval + 1,
        fixes if fixes.saturating_mul(2) >= checks => params.mid_exec_interval.saturating_sub(1),
        _ => params.mid_exec_interval,
    };
    let compact_percent = match sum(|run| run.compactions) {
        0 => params.compact_percent + LATER_PERCENT,
        many if many >= runs.len() as u64 => params.compact_percent.saturating_sub(SOONER_PERCENT),
        _ => params.compact_percent,
    };
    GateParams {
        thresholds: GatePointValues { post_plan: plan.0, mid_exec: mid.0, post_exec: end.0 },
        retries: GatePointValues { post_plan: plan.1, mid_exec: mid.1, post_exec: end.1 },
        mid_exec_interval,
        compact_percent,
    }
    .within_bounds()
}

/// The kinds of work a task is, by its tags `type:…`.
#[must_use]
pub fn task_types(spec: &TaskSpec) -> Vec<&str> {
    spec.tags.iter().filter_map(|tag| tag.as_str().strip_prefix("type:")).collect()
}

/// What the checks of one task were like.
#[must_use]
pub fn observe_task(task: &Task) -> RunObservation {
    let judged = &task.staged.judged;
    let sent_back = |at: GatePoint| {
        let back = judged.iter().filter(|it| it.checkpoint == at && it.result != at.pass_result()).count();
        u32::try_from(back).unwrap_or(u32::MAX)
    };
    let on_the_way = judged.iter().filter(|it| it.checkpoint == GatePoint::MidExec).count();
    RunObservation {
        retries: GatePointValues {
            post_plan: sent_back(GatePoint::PostPlan),
            mid_exec: sent_back(GatePoint::MidExec),
            post_exec: sent_back(GatePoint::PostExec),
        },
        iterations: task.counters.iterations,
        mid_exec_checks: u32::try_from(on_the_way).unwrap_or(u32::MAX),
        compactions: u32::from(task.session.as_ref().is_some_and(|session| session.compacted)),
        took: Phases::default(),
    }
}

/// A number of the checks that a tag of the task sets: `threshold:post-plan:0.65`, `retries:post-exec:4`, `interval:2` or
/// `compaction:85`. The type profile of a module becomes such tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptation {
    /// The composite that passes a checkpoint, in thousandths.
    Threshold(GatePoint, u32),
    /// How often work may go back from a checkpoint.
    Retries(GatePoint, u32),
    /// Steps of a plan from one check on the way to the next.
    Interval(u32),
    /// How full a context may be, in per cent.
    Compaction(u32),
}

impl Adaptation {
    /// Reads a tag; none if it is another kind of tag, or its number cannot be read.
    #[must_use]
    pub fn read(tag: &str) -> Option<Self> {
        let (key, rest) = tag.split_once(':')?;
        let of_checkpoint = || {
            let (checkpoint, number) = rest.split_once(':')?;
            Some((GatePoint::ALL.into_iter().find(|it| it.word() == checkpoint)?, number))
        };
        match key {
            "threshold" => {
                let (checkpoint, number) = of_checkpoint()?;
                Some(Self::Threshold(checkpoint, thousandths(number)?))
            }
            "retries" => {
                let (checkpoint, number) = of_checkpoint()?;
                Some(Self::Retries(checkpoint, number.parse().ok()?))
            }
            "interval" => rest.parse().ok().map(Self::Interval),
            "compaction" => rest.parse().ok().map(Self::Compaction),
            _ => None,
        }
    }

    /// The tag that says it.
    #[must_use]
    pub fn tag(self) -> String {
        match self {
            Self::Threshold(checkpoint, number) => {
                format!("threshold:{}:{}.{:03}", checkpoint.word(), number / 1000, number % 1000)
            }
            Self::Retries(checkpoint, number) => format!("retries:{}:{number}", checkpoint.word()),
            Self::Interval(steps) => format!("interval:{steps}"),
            Self::Compaction(percent) => format!("compaction:{percent}"),
        }
    }

    fn set(self, params: &mut GateParams) {
        let set = |per: &mut GatePointValues, checkpoint, number| match checkpoint {
            GatePoint::PostPlan => per.post_plan = number,
            GatePoint::MidExec => per.mid_exec = number,
            GatePoint::PostExec => per.post_exec = number,
        };
        match self {
            Self::Threshold(checkpoint, number) => set(&mut params.thresholds, checkpoint, number),
            Self::Retries(checkpoint, number) => set(&mut params.retries, checkpoint, number),
            Self::Interval(steps) => params.mid_exec_interval = steps,
            Self::Compaction(percent) => params.compact_percent = percent,
        }
    }
}

/// A share such as `0.65`, `1` or `.7`, in thousandths.
fn thousandths(text: &str) -> Option<u32> {
    let share: f64 = text.parse().ok()?;
    // In range, so neither sign nor size is lost.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
    (0.0..=1.0).contains(&share).then(|| (share * 1000.0).round() as u32)
}

/// The numbers that the tags of a task set.
fn adaptations(spec: &TaskSpec) -> Vec<Adaptation> {
    spec.tags.iter().filter_map(|tag| Adaptation::read(tag.as_str())).collect()
}

/// What the kind of a task asks of its checks, what tasks of just that kind taught that were done before it, and over both what
/// its own tags say. None when nobody said anything of these.
#[must_use]
pub fn for_task<'a>(task: &Task, others: impl Iterator<Item = &'a Task>) -> Option<GateParams> {
    let kind = task_types(&task.spec);
    let adaptations = adaptations(&task.spec);
    if kind.is_empty() && adaptations.is_empty() {
        return None;
    }
    let alike = |other: &&Task| {
        let done = matches!(other.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
        done && other.id != task.id && !other.staged.judged.is_empty() && task_types(&other.spec) == kind
    };
    let mut before: Vec<&Task> = others.filter(|_| !kind.is_empty()).filter(alike).collect();
    before.sort_by_key(|other| (other.changed, other.id));
    let runs: Vec<RunObservation> = before.into_iter().map(observe_task).collect();
    let mut params = learn_params(params_for_types(&kind), &runs);
    for adaptation in adaptations {
        adaptation.set(&mut params);
    }
    Some(params.within_bounds())
}

/// What a type cares about more: a quarter more for each mark, by dimension.
fn dimension_emphasis(word: &str) -> [u32; 6] {
    match word.to_ascii_lowercase().as_str() {
        "software" => [0, 1, 1, 0, 0, 0],
        "infrastructure" => [0, 2, 2, 0, 0, 0],
        "data-pipeline" => [0, 0, 1, 1, 0, 0],
        "documentation" => [1, 0, 0, 0, 0, 1],
        "ml" => [0, 0, 0, 1, 1, 0],
        "dsp" => [1, 0, 0, 1, 0, 0],
        "science" => [2, 0, 1, 0, 0, 0],
        _ => [0; 6],
    }
}

/// What a composite must reach at a checkpoint of this task. What kind of task it is outweighs what the flow says for all.
#[must_use]
pub fn applied_threshold(task: &Task, checkpoint: GatePoint, of_flow: u32) -> u32 {
    task.limits.tuning.map_or(of_flow, |params| params.thresholds.of(checkpoint))
}

/// What the scores of this task weigh, in thousandths.
#[must_use]
pub fn applied_weights(task: &Task) -> [u32; 6] {
    match task_types(&task.spec).as_slice() {
        [] => WEIGHTS,
        types => dimension_weights(types),
    }
}

/// The weights of D1 to D6 for a task of these types, in thousandths. They always add up to 1000.
///
/// What a type emphasises once weighs a quarter more, twice half more; of several types the stronger emphasis counts for
/// each dimension. Then all are scaled back. What rounding leaves over goes to the dimensions that lost most by it.
#[must_use]
pub fn dimension_weights(types: &[&str]) -> [u32; 6] {
    let mut marks = [0; 6];
    for word in split_types(types) {
        for (mark, more) in marks.iter_mut().zip(dimension_emphasis(word)) {
            *mark = more.max(*mark);
        }
    }
    let raised: [u32; 6] = std::array::from_fn(|place| WEIGHTS[place] * (4 + marks[place]));
    let sum: u32 = raised.iter().sum();
    let mut scaled = raised.map(|weight| weight * 1000 / sum);
    let mut by_loss: [usize; 6] = std::array::from_fn(|place| place);
    by_loss.sort_by_key(|place| std::cmp::Reverse(raised[*place] * 1000 % sum));
    let left = 1000 - scaled.iter().sum::<u32>() as usize;
    for place in by_loss.into_iter().take(left) {
        scaled[place] += 1;
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(post_plan: u32, mid_exec: u32, post_exec: u32) -> RunObservation {
        let retries = GatePointValues { post_plan, mid_exec, post_exec };
        RunObservation { retries, mid_exec_checks: 4, compactions: 0, ..RunObservation::default() }
    }

    fn thresholds(params: GateParams) -> [u32; 3] {
        let GatePointValues { post_plan, mid_exec, post_exec } = params.thresholds;
        [post_plan, mid_exec, post_exec]
    }

    fn retries(params: GateParams) -> [u32; 3] {
        let GatePointValues { post_plan, mid_exec, post_exec } = params.retries;
        [post_plan, mid_exec, post_exec]
    }

    #[test]
    fn each_type_has_its_numbers() {
        let shown = |word| (thresholds(params_for_types(&[word])), retries(params_for_types(&[word])));
        assert_eq!(shown("software"), ([700, 600, 750], [3, 2, 3]));
        assert_eq!(shown("bug-fix"), ([600, 600, 650], [2, 2, 3]));
        assert_eq!(shown("architecture"), ([750, 600, 800], [3, 2, 4]));
        assert_eq!(shown("data-pipeline"), ([700, 700, 750], [3, 3, 4]));
        assert_eq!(params_for_types(&["knitting"]), GateParams::DEFAULT);
        assert_eq!(params_for_types(&[]), GateParams::DEFAULT);
        assert_eq!(GateParams::DEFAULT.mid_exec_interval, 3);
        assert_eq!(GateParams::DEFAULT.compact_percent, 82);
    }

    #[test]
    fn of_several_types_the_stricter_number_counts() {
        let both = params_for_types(&["bug-fix|architecture"]);
        assert_eq!((thresholds(both), retries(both)), ([750, 600, 800], [2, 2, 3]));
        assert_eq!(both, params_for_types(&["architecture", "bug-fix"]));
        assert_eq!(
            thresholds(params_for_types(&["bug-fix|knitting"])),
            [700, 600, 750],
            "a stranger is no excuse"
        );
        assert_eq!(thresholds(params_for_types(&["architecture|data-pipeline"])), [750, 700, 800]);
    }

    #[test]
    fn edge_25_a_type_is_matched_whole() {
        for near in ["bug-fixes", "my-bug-fix", "software-architecture", "architecture:web", "data-pipelines"]
        {
            assert_eq!(params_for_types(&[near]), GateParams::DEFAULT, "{near}");
            assert_eq!(dimension_weights(&[near]), WEIGHTS, "{near}");
        }
        assert_eq!(dimension_weights(&["soft"]), WEIGHTS);
        assert_eq!(dimension_weights(&["mlops"]), WEIGHTS);
        assert_ne!(dimension_weights(&[" Software | x"]), WEIGHTS);
        assert_eq!(split_types(&["a|b", "B", "", " | c"]), ["a", "b", "c"]);
    }

    #[test]
    fn c34_the_profile_of_a_type_replaces_the_defaults_within_bounds() {
        for word in ["bug-fix", "architecture", "data-pipeline"] {
            let params = params_for_types(&[word]);
            assert_eq!(params.within_bounds(), params, "{word}");
            assert_ne!(params, GateParams::DEFAULT, "{word}");
        }
        assert_eq!(GateParams::DEFAULT.within_bounds(), GateParams::DEFAULT);
    }

    #[test]
    fn few_runs_teach_nothing_and_old_ones_are_forgotten() {
        assert_eq!(learn_params(GateParams::DEFAULT, &[run(3, 2, 3); 4]), GateParams::DEFAULT);
        let mut runs = vec![run(9, 9, 9); 30];
        runs.extend([run(0, 0, 0); RUNS_MAX]);
        assert_eq!(
            learn_params(GateParams::DEFAULT, &runs),
            learn_params(GateParams::DEFAULT, &[run(0, 0, 0); RUNS_MAX])
        );
    }

    #[test]
    fn smooth_runs_tighten_a_little_and_hard_ones_loosen_a_little() {
        let smooth = learn_params(GateParams::DEFAULT, &[run(0, 0, 0); 5]);
        assert_eq!((thresholds(smooth), retries(smooth)), ([710, 610, 760], [3, 2, 3]));
        assert_eq!((smooth.mid_exec_interval, smooth.compact_percent), (4, 85));
        let mixed = learn_params(
            GateParams::DEFAULT,
            &[run(1, 0, 3), run(0, 1, 3), run(0, 0, 3), run(0, 0, 0), run(0, 0, 0)],
        );
        assert_eq!((thresholds(mixed), retries(mixed)), ([700, 600, 730], [3, 2, 4]));
        assert_eq!(mixed.mid_exec_interval, 3);
        let hard = RunObservation { compactions: 2, ..run(3, 2, 3) };
        let hard = learn_params(GateParams::DEFAULT, &[hard; 5]);
        assert_eq!((thresholds(hard), retries(hard)), ([680, 580, 730], [4, 3, 4]));
        assert_eq!((hard.mid_exec_interval, hard.compact_percent), (2, 78));
    }

    #[test]
    fn learning_stays_within_bounds() {
        let loose = learn_params(GateParams::LEAST, &[run(9, 9, 9); 20]);
        assert_eq!(loose.thresholds, GateParams::LEAST.thresholds);
        let tight = learn_params(GateParams::MOST, &[run(0, 0, 0); 20]);
        assert_eq!(tight.thresholds, GateParams::MOST.thresholds);
        assert_eq!(tight.mid_exec_interval, GateParams::MOST.mid_exec_interval);
    }

    #[test]
    fn more_trouble_never_makes_a_check_stricter() {
        let mut state = 7u64;
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((state >> 33) % below).expect("small")
        };
        for round in 0..5_000 {
            let params =
                [GateParams::DEFAULT, params_for_types(&["bug-fix"]), params_for_types(&["architecture"])]
                    [draw(3) as usize];
            let calm: Vec<RunObservation> = (0..draw(25))
                .map(|_| RunObservation { compactions: draw(3), ..run(draw(5), draw(4), draw(5)) })
                .collect();
            let mut wild = calm.clone();
            for run in &mut wild {
                run.retries.post_plan += draw(2);
                run.retries.mid_exec += draw(2);
                run.retries.post_exec += draw(2);
                run.compactions += draw(2);
            }
            let (calm, wild) = (learn_params(params, &calm), learn_params(params, &wild));
            for (milder, stricter) in thresholds(wild).into_iter().zip(thresholds(calm)) {
                assert!(milder <= stricter, "round {round}: {calm:?} {wild:?}");
            }
            for (before, after) in thresholds(params).into_iter().zip(thresholds(wild)) {
                assert!(
                    after + LOOSEN_MAX >= before && after <= before + TIGHTEN_MAX,
                    "round {round}: {wild:?}"
                );
            }
            for (more, fewer) in retries(wild).into_iter().zip(retries(calm)) {
                assert!(more >= fewer, "round {round}: {calm:?} {wild:?}");
            }
            assert!(wild.mid_exec_interval <= calm.mid_exec_interval, "round {round}: {calm:?} {wild:?}");
            assert!(wild.compact_percent <= calm.compact_percent, "round {round}: {calm:?} {wild:?}");
        }
    }

    #[test]
    fn edge_20_an_arrow_is_a_quarter_and_the_weights_add_up() {
        // By hand: 250+250+250+100+100+150 is 1100, so D1 is 227.27 and D6 136.36; the three left over go where most was cut.
        assert_eq!(dimension_weights(&["software"]), [227, 227, 227, 91, 91, 137]);
        // 250+300+300+100+100+150 is 1200.
        assert_eq!(dimension_weights(&["infrastructure"]), [209, 250, 250, 83, 83, 125]);
        // 375+200+250+100+100+150 is 1175.
        assert_eq!(dimension_weights(&["science"]), [319, 170, 213, 85, 85, 128]);
        assert_eq!(
            dimension_weights(&["software", "infrastructure"]),
            dimension_weights(&["infrastructure"])
        );
    }

    #[test]
    fn c35_emphasis_moves_the_weights_and_never_their_sum() {
        let all =
            ["software", "infrastructure", "data-pipeline", "documentation", "ml", "dsp", "science", "x"];
        for one in all {
            for other in all {
                for third in all {
                    let found = dimension_weights(&[one, other, third]);
                    assert_eq!(found.iter().sum::<u32>(), 1000, "{one} {other} {third}: {found:?}");
                    assert_eq!(found, dimension_weights(&[third, one, other]), "{one} {other} {third}");
                }
            }
        }
    }
}
