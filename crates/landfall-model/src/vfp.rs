//! Work that begins with its proof: every step of a plan has a stub, a test that fails until the step is done.
//!
//! Here is what follows from the exit codes of stubs; running them, and writing them, is left to others.

/// What a stub says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Colour {
    /// It fails, as it should until its step is done.
    Red,
    /// It passes.
    Green,
    /// It could not be run: that says nothing about the work.
    Broken,
}

impl Colour {
    /// What an exit code means. A stub that was killed has none.
    #[must_use]
    pub fn of(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Green,
            Some(1) => Self::Red,
            Some(_) | None => Self::Broken,
        }
    }
}

/// Who says what colour a stub has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A command that is run.
    Executable,
    /// A judge who reads the result.
    Inspectable,
    /// A person who approves of it.
    Human,
}

/// What a person said about a step that only a person can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Approval {
    /// It is good; what they saw is kept.
    Given,
    /// It is not.
    Refused,
    /// They have not answered yet.
    Pending,
    /// They did not answer in time.
    TimedOut,
}

/// What follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The step has this colour now.
    Is(Colour),
    /// The task waits for the person.
    Wait,
    /// A judge looks instead, and the report says that no person did.
    Fallback(Mode),
}

impl Approval {
    /// What follows from it.
    #[must_use]
    pub fn means(self) -> Asked {
        match self {
            Self::Given => Asked::Is(Colour::Green),
            Self::Refused => Asked::Is(Colour::Red),
            Self::Pending => Asked::Wait,
            Self::TimedOut => Asked::Fallback(Mode::Inspectable),
        }
    }
}

/// Where one step of the plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Cycle {
    /// Its stub has not been seen failing.
    #[default]
    Unproved,
    /// Its stub failed: now it can be done.
    Red,
    /// Its stub passes; what was done before it is looked at again.
    Green,
    /// It passes and so does everything before it.
    Done,
    /// It was done, and a later step broke it.
    Lost,
    /// It was done although its stub was never seen failing.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    cycle: Cycle,
    /// Its stub could not be run the last time.
    broken: bool,
    /// It was mended once after a later step broke it.
    repaired: bool,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Do the step.
    Implement,
    /// The stub passes although nothing was done: it proves nothing and is written anew.
    RewriteStub,
    /// Run it again: it could not be run.
    RunAgain,
    /// Run the stubs of all these steps: they passed before.
    Rerun(Vec<usize>),
    /// Mend these steps, which passed before this one.
    Repair(Vec<usize>),
    /// The step is done.
    Consolidate,
    /// A check on the way: something is wrong that more work will not mend.
    MidExec(Trouble),
}

/// Why a check on the way is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// A stub cannot be run, twice in a row.
    Infrastructure,
    /// A step broke an earlier one again after it was mended.
    Regression,
    /// Several steps went by and no stub turned from red to green.
    NoTransition,
    /// Fewer stubs pass than before.
    Shrinking,
}

impl Trouble {
    /// In words, for whoever judges.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Infrastructure => "a stub cannot be run",
            Self::Regression => "a step that was mended is broken again",
            Self::NoTransition => "three steps went by and no stub turned from red to green",
            Self::Shrinking => "fewer stubs pass than before",
        }
    }
}

/// How well a plan was followed proof first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compliance {
    /// Less than half of the steps: the work goes back.
    Low,
    /// At least half.
    Partial,
    /// Four fifths or more.
    Full,
}

impl Compliance {
    /// Of so many steps with so many proofs; nothing to prove is no compliance either way.
    #[must_use]
    pub fn of(proved: usize, steps: usize) -> Option<Self> {
        let percent = proved.checked_mul(100)?.checked_div(steps)?;
        Some(match percent {
            80.. => Self::Full,
            50..80 => Self::Partial,
            _ => Self::Low,
        })
    }

    /// The word people and reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }

    /// Whether the work goes back to be fixed.
    #[must_use]
    pub fn needs_fix(self) -> bool {
        self == Self::Low
    }
}

const IDLE_STEPS_MAX: u32 = 3; // steps without a stub that turned from red to green

/// The steps of one plan, each with its stub. Steps are numbered from 1, as plans do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycles {
    steps: Vec<Step>,
    watch: Watch,
}

impl Cycles {
    /// A plan with so many steps, none begun.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        Self { steps: vec![Step::default(); steps], watch: Watch::default() }
    }

    /// The stub of a step was run. None if the plan has no such step.
    ///
    /// Before the step is done it has to be red; after it, green. A stub that cannot be run is run once more, and then
    /// someone has to look.
    pub fn ran(&mut self, step: usize, colour: Colour) -> Option<Next> {
        let earlier = self.passed_before(step);
        let it = self.at_mut(step)?;
        let was_broken = std::mem::replace(&mut it.broken, colour == Colour::Broken);
        Some(match (it.cycle, colour) {
            (_, Colour::Broken) if was_broken => Next::MidExec(Trouble::Infrastructure),
            (_, Colour::Broken) => Next::RunAgain,
            (Cycle::Unproved, Colour::Green) => Next::RewriteStub,
            (Cycle::Unproved | Cycle::Red, Colour::Red) => {
                it.cycle = Cycle::Red;
                Next::Implement
            }
            (Cycle::Red | Cycle::Green, Colour::Green) => {
                it.cycle = Cycle::Green;
                if earlier.is_empty() { self.settle(step) } else { Next::Rerun(earlier) }
            }
            // It passed a moment ago: it is not done after all.
            (Cycle::Green, Colour::Red) => {
                it.cycle = Cycle::Red;
                Next::Implement
            }
            (Cycle::Done | Cycle::Lost, Colour::Green) => {
                it.cycle = Cycle::Done;
                Next::Consolidate
            }
            (Cycle::Done | Cycle::Lost, Colour::Red) => self.broke(&[step]),
            (Cycle::Skipped, Colour::Green) => Next::Consolidate,
            // It was said to be done and is not; so at least its stub is proved now.
            (Cycle::Skipped, Colour::Red) => {
                it.cycle = Cycle::Red;
                Next::Implement
            }
        })
    }

    /// The stubs of all earlier steps were run after `step` turned green. Only when every one of them passes, the step
    /// is done. None if the plan has no such step, or it has not turned green.
    pub fn reran(&mut self, step: usize, colours: &[(usize, Colour)]) -> Option<Next> {
        if self.at(step)?.cycle != Cycle::Green {
            return None;
        }
        let with =
            |colour| colours.iter().filter(move |it| it.1 == colour).map(|it| it.0).collect::<Vec<_>>();
        let (red, broken) = (with(Colour::Red), with(Colour::Broken));
        for green in with(Colour::Green) {
            if let Some(it) = self.at_mut(green) {
                it.broken = false;
                if it.cycle == Cycle::Lost {
                    it.cycle = Cycle::Done;
                }
            }
        }
        if !red.is_empty() {
            return Some(self.broke(&red));
        }
        let mut twice = false;
        for place in &broken {
            let it = self.at_mut(*place)?;
            twice |= std::mem::replace(&mut it.broken, true);
        }
        if twice {
            return Some(Next::MidExec(Trouble::Infrastructure));
        }
        if !broken.is_empty() {
            return Some(Next::Rerun(broken));
        }
        // Who leaves out an earlier step has not shown that it still passes.
        let seen = |earlier: &usize| colours.iter().any(|it| it.0 == *earlier);
        let left: Vec<usize> = self.passed_before(step).into_iter().filter(|it| !seen(it)).collect();
        Some(if left.is_empty() { self.settle(step) } else { Next::Rerun(left) })
    }

    /// The step was done without a stub that was seen failing.
    pub fn skipped(&mut self, step: usize) -> Option<Next> {
        let it = self.at_mut(step)?;
        match it.cycle {
            Cycle::Unproved | Cycle::Red | Cycle::Green => it.cycle = Cycle::Skipped,
            Cycle::Done | Cycle::Lost | Cycle::Skipped => return Some(Next::Consolidate),
        }
        let greens = self.greens();
        Some(self.watch.step(false, greens).map_or(Next::Consolidate, Next::MidExec))
    }

    /// Steps whose stub turned from red to green and stayed so, and all there are.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.greens(), self.steps.len())
    }

    /// How well the plan was followed so far, by the steps that were done.
    #[must_use]
    pub fn compliance(&self) -> Option<Compliance> {
        let ended = self
            .steps
            .iter()
            .filter(|it| matches!(it.cycle, Cycle::Done | Cycle::Lost | Cycle::Skipped))
            .count();
        Compliance::of(self.greens(), ended)
    }

    fn greens(&self) -> usize {
        self.steps.iter().filter(|it| it.cycle == Cycle::Done).count()
    }

    /// The steps before this one that passed once, and so have to pass still.
    fn passed_before(&self, step: usize) -> Vec<usize> {
        let passed = |it: &Step| matches!(it.cycle, Cycle::Done | Cycle::Lost);
        (1..step).filter(|earlier| self.at(*earlier).is_some_and(passed)).collect()
    }

    fn at(&self, step: usize) -> Option<&Step> {
        self.steps.get(step.checked_sub(1)?)
    }

    fn at_mut(&mut self, step: usize) -> Option<&mut Step> {
        self.steps.get_mut(step.checked_sub(1)?)
    }

    fn settle(&mut self, step: usize) -> Next {
        if let Some(it) = self.at_mut(step) {
            it.cycle = Cycle::Done;
        }
        let greens = self.greens();
        self.watch.step(true, greens).map_or(Next::Consolidate, Next::MidExec)
    }

    /// Steps that passed do not any more. Each may be mended once.
    fn broke(&mut self, steps: &[usize]) -> Next {
        let mut again = false;
        for step in steps {
            if let Some(it) = self.at_mut(*step) {
                if it.cycle == Cycle::Done {
                    it.cycle = Cycle::Lost;
                }
                again |= std::mem::replace(&mut it.repaired, true);
            }
        }
        if again { Next::MidExec(Trouble::Regression) } else { Next::Repair(steps.to_vec()) }
    }
}

/// Watches over many steps whether anything moves. One trouble is told once: it is told again only after things had
/// moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    idle: u32,
    most: usize,
    told: bool,
}

impl Watch {
    /// A step ended: whether a stub turned from red to green in it, and how many pass now.
    pub fn step(&mut self, turned: bool, greens: usize) -> Option<Trouble> {
        let shrinking = greens < self.most;
        self.idle = if turned { 0 } else { self.idle.saturating_add(1) };
        self.most = self.most.max(greens);
        let trouble = match (shrinking, self.idle) {
            (true, _) => Trouble::Shrinking,
            (false, IDLE_STEPS_MAX..) => Trouble::NoTransition,
            (false, _) => {
                self.told = false;
                return None;
            }
        };
        (!std::mem::replace(&mut self.told, true)).then_some(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Colour::{Broken, Green, Red};

    /// A step that is done as it should be.
    fn done(cycles: &mut Cycles, step: usize) -> Option<Next> {
        assert_eq!(cycles.ran(step, Red), Some(Next::Implement));
        let next = cycles.ran(step, Green);
        let Some(Next::Rerun(earlier)) = &next else { return next };
        let all: Vec<_> = earlier.iter().map(|it| (*it, Green)).collect();
        cycles.reran(step, &all)
    }

    #[test]
    fn an_exit_code_says_green_red_or_nothing() {
        assert_eq!(
            [Some(0), Some(1), Some(2), Some(127), Some(-1), None].map(Colour::of),
            [Green, Red, Broken, Broken, Broken, Broken]
        );
    }

    #[test]
    fn red_then_work_then_green_then_everything_before() {
        let mut cycles = Cycles::new(3);
        assert_eq!(cycles.ran(1, Red), Some(Next::Implement));
        assert_eq!(cycles.ran(1, Red), Some(Next::Implement), "not there yet");
        assert_eq!(cycles.ran(1, Green), Some(Next::Consolidate));
        assert_eq!(cycles.progress(), (1, 3));
        assert_eq!(done(&mut cycles, 2), Some(Next::Consolidate));
        assert_eq!(cycles.ran(3, Red), Some(Next::Implement));
        assert_eq!(cycles.ran(3, Green), Some(Next::Rerun(vec![1, 2])));
        assert_eq!(cycles.reran(3, &[(2, Green)]), Some(Next::Rerun(vec![1])), "all of them");
        assert_eq!(cycles.progress(), (2, 3), "not before the others are seen");
        assert_eq!(cycles.reran(3, &[(1, Green), (2, Green)]), Some(Next::Consolidate));
        assert_eq!(cycles.progress(), (3, 3));
        assert_eq!(cycles.compliance(), Some(Compliance::Full));
    }

    #[test]
    fn a_stub_that_passes_before_the_work_is_wrong() {
        let mut cycles = Cycles::new(1);
        assert_eq!(cycles.ran(1, Green), Some(Next::RewriteStub));
        assert_eq!(cycles.progress(), (0, 1));
        assert_eq!(done(&mut cycles, 1), Some(Next::Consolidate));
    }

    #[test]
    fn a_stub_that_cannot_be_run_is_run_once_more() {
        let mut cycles = Cycles::new(2);
        assert_eq!(cycles.ran(1, Broken), Some(Next::RunAgain));
        assert_eq!(cycles.ran(1, Broken), Some(Next::MidExec(Trouble::Infrastructure)));
        let mut cycles = Cycles::new(2);
        assert_eq!(cycles.ran(1, Broken), Some(Next::RunAgain));
        assert_eq!(done(&mut cycles, 1), Some(Next::Consolidate));
        assert_eq!(cycles.ran(2, Red), Some(Next::Implement));
        assert_eq!(cycles.ran(2, Green), Some(Next::Rerun(vec![1])));
        assert_eq!(cycles.reran(2, &[(1, Broken)]), Some(Next::Rerun(vec![1])));
        assert_eq!(cycles.reran(2, &[(1, Broken)]), Some(Next::MidExec(Trouble::Infrastructure)));
    }

    #[test]
    fn a_regression_is_mended_once() {
        let mut cycles = Cycles::new(3);
        done(&mut cycles, 1);
        cycles.ran(2, Red);
        cycles.ran(2, Green);
        assert_eq!(cycles.reran(2, &[(1, Red)]), Some(Next::Repair(vec![1])));
        assert_eq!(cycles.reran(2, &[(1, Green)]), Some(Next::Consolidate));
        cycles.ran(3, Red);
        cycles.ran(3, Green);
        assert_eq!(cycles.reran(3, &[(1, Green), (2, Red)]), Some(Next::Repair(vec![2])), "another one");
        assert_eq!(cycles.reran(3, &[(1, Red), (2, Green)]), Some(Next::MidExec(Trouble::Regression)));
    }

    #[test]
    fn compliance_has_its_borders() {
        let of = |proved| Compliance::of(proved, 100);
        assert_eq!(
            [of(0), of(49), of(50), of(79), of(80), of(100)].map(Option::unwrap),
            [
                Compliance::Low,
                Compliance::Low,
                Compliance::Partial,
                Compliance::Partial,
                Compliance::Full,
                Compliance::Full
            ]
        );
        assert_eq!(Compliance::of(159, 200), Some(Compliance::Partial), "79.5 % is not 80");
        assert_eq!(Compliance::of(0, 0), None);
        assert!(Compliance::Low.needs_fix() && !Compliance::Partial.needs_fix());
    }

    #[test]
    fn three_steps_without_a_transition_want_one_check() {
        let mut cycles = Cycles::new(8);
        done(&mut cycles, 1);
        let next: Vec<_> = (2..=6).map(|step| cycles.skipped(step).expect("a step of it")).collect();
        let trouble = Next::MidExec(Trouble::NoTransition);
        assert_eq!(
            next,
            [Next::Consolidate, Next::Consolidate, trouble, Next::Consolidate, Next::Consolidate]
        );
        assert_eq!(cycles.compliance(), Some(Compliance::Low));
        assert_eq!(done(&mut cycles, 7), Some(Next::Consolidate));
    }

    #[test]
    fn a_shrinking_green_total_wants_one_check() {
        let mut watch = Watch::default();
        let seen = [(true, 1), (true, 2), (false, 1), (false, 1), (true, 2), (true, 3), (false, 2)];
        let told: Vec<_> = seen.into_iter().map(|(turned, greens)| watch.step(turned, greens)).collect();
        let shrinking = Some(Trouble::Shrinking);
        let mut cycles = Cycles::new(3);
        done(&mut cycles, 1);
        assert_eq!(cycles.ran(1, Red), Some(Next::Repair(vec![1])));
        assert_eq!(cycles.progress(), (0, 3));
        assert_eq!(cycles.skipped(2), Some(Next::MidExec(Trouble::Shrinking)));
        assert_eq!(cycles.skipped(3), Some(Next::Consolidate), "told once");
        assert_eq!(cycles.ran(1, Green), Some(Next::Consolidate));
        assert_eq!(cycles.progress(), (1, 3));
        assert_eq!(told, [None, None, shrinking, None, None, None, shrinking]);
    }

    #[test]
    fn a_person_approves_waits_or_is_stood_in_for() {
        assert_eq!(Approval::Given.means(), Asked::Is(Green));
        assert_eq!(Approval::Refused.means(), Asked::Is(Red));
        assert_eq!(Approval::Pending.means(), Asked::Wait);
        assert_eq!(Approval::TimedOut.means(), Asked::Fallback(Mode::Inspectable));
    }

    #[test]
    fn a_step_that_is_not_in_the_plan_is_refused() {
        let mut cycles = Cycles::new(1);
        assert_eq!(cycles.ran(0, Green), None);
        assert_eq!(cycles.ran(2, Red), None);
        assert_eq!(cycles.skipped(2), None);
        assert_eq!(cycles.reran(1, &[]), None, "it has not turned green");
    }
}
