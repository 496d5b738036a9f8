//! Proofs: checks that a plan or a judge names. Each must fail before the work and pass after it.
//!
//! Running them is left to the engine; here is what the runs mean. A proof holds work back and never lets it through: the
//! checks of the project are apart from them.

pub use landfall_facts::proof::{ProofAuthor, ProofColour, ProofRun, ProofSubject, RequiredProof};

/// A proof and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// What is owed.
    pub promise: RequiredProof,
    /// What it said on the state before the work.
    pub before: Option<ProofColour>,
    /// What it said last.
    pub now: Option<ProofColour>,
    /// How often it passed and then did not any more.
    pub lost: u32,
}

/// How a proof stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofState {
    /// It has not been run.
    Owed,
    /// It passes on the state before the work as well: it proves nothing.
    Void,
    /// It does not pass.
    Open,
    /// It passed and does not any more.
    Lost,
    /// It did not pass before the work and does now.
    Proved,
}

impl ProofState {
    /// The word people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Owed => "owed",
            Self::Void => "void",
            Self::Open => "open",
            Self::Lost => "lost",
            Self::Proved => "proved",
        }
    }
}

impl Proof {
    /// How it stands. A check that cannot be run before the work, because the work brings its test along, is as good as
    /// one that fails there: what counts is that it does not pass.
    #[must_use]
    pub fn proof_state(&self) -> ProofState {
        match (self.before, self.now) {
            (_, None) => ProofState::Owed,
            (Some(ProofColour::Green), Some(_)) => ProofState::Void,
            (_, Some(ProofColour::Red | ProofColour::Broken)) if self.lost > 0 => ProofState::Lost,
            (_, Some(ProofColour::Red | ProofColour::Broken)) => ProofState::Open,
            (None | Some(ProofColour::Red | ProofColour::Broken), Some(ProofColour::Green)) => {
                ProofState::Proved
            }
        }
    }

    /// Whether the work goes back because of it.
    #[must_use]
    pub fn sends_work_back(&self) -> bool {
        matches!(self.proof_state(), ProofState::Open | ProofState::Lost)
    }

    /// In a line, for whoever reads where a task stands.
    #[must_use]
    pub fn line(&self) -> String {
        let RequiredProof { of, about, command, .. } = &self.promise;
        let what = match self.proof_state() {
            ProofState::Owed => "not run yet",
            ProofState::Void => "void: it passes on the state before the work as well, so it proves nothing",
            ProofState::Open => "open: it does not pass",
            ProofState::Lost => "lost: it passed and does not any more",
            ProofState::Proved => "proved: it did not pass before the work and does now",
        };
        format!("{of} ({about}): `{command}` is {what}")
    }
}

/// The proofs of the stage under way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proofs {
    /// All of them, those of the plan first.
    pub all: Vec<Proof>,
    /// How often one that passed did not any more.
    pub anomalies: u32,
}

/// So many are kept of one author. A plan with more checks than that would take a day to verify.
pub const PROOFS_MAX: usize = 40;

impl Proofs {
    /// Those to run when so many steps of the plan are done: all that should pass by now.
    pub fn due_proofs(&self, steps_done: u32) -> impl Iterator<Item = &Proof> {
        self.all.iter().filter(move |proof| match proof.promise.of {
            ProofSubject::Step(number) => number <= steps_done,
            ProofSubject::Finding(_) => true,
        })
    }

    /// How many are proved, and how many there are.
    #[must_use]
    pub fn count_proved(&self) -> (usize, usize) {
        (self.count_in_state(ProofState::Proved), self.all.len())
    }

    /// The number the next finding has.
    #[must_use]
    pub fn next_finding(&self) -> u32 {
        let numbers = self.all.iter().map(|proof| match proof.promise.of {
            ProofSubject::Finding(number) => number,
            ProofSubject::Step(_) => 0,
        });
        numbers.max().unwrap_or(0) + 1
    }

    /// The proofs of the plan that were run and how many of them prove something, if that is less than half: then the plan
    /// was not worked off proof first.
    #[must_use]
    pub fn too_few_proofs(&self) -> Option<(usize, usize)> {
        let steps = || {
            self.all.iter().filter(|it| matches!(it.promise.of, ProofSubject::Step(_)) && it.now.is_some())
        };
        let proved = steps().filter(|it| it.proof_state() == ProofState::Proved).count();
        let all = steps().count();
        (proved * 2 < all).then_some((proved, all))
    }

    fn count_in_state(&self, standing: ProofState) -> usize {
        self.all.iter().filter(|proof| proof.proof_state() == standing).count()
    }

    /// Somebody named proofs. A plan that names the same check again keeps what is known of it. A judge who looks again
    /// takes back what is not proved: they were told how it stands.
    pub(crate) fn add_promises(&mut self, by: ProofAuthor, promises: &[RequiredProof]) {
        let before = std::mem::take(&mut self.all);
        let (steps, findings): (Vec<Proof>, Vec<Proof>) =
            before.into_iter().partition(|it| matches!(it.promise.of, ProofSubject::Step(_)));
        let fresh = |promise: &RequiredProof| {
            let same = steps.iter().find(|it| it.promise == *promise).cloned();
            same.unwrap_or_else(|| Proof { promise: promise.clone(), before: None, now: None, lost: 0 })
        };
        let named: Vec<Proof> = promises.iter().map(fresh).collect();
        self.all = match by {
            ProofAuthor::Planner => [named, findings].concat(),
            ProofAuthor::Judge => {
                let kept =
                    findings.into_iter().filter(|it| it.proof_state() == ProofState::Proved || it.lost > 0);
                [steps, kept.collect(), named].concat()
            }
        };
    }

    /// They were run. True: one of them is proved that was not.
    pub(crate) fn note_runs(&mut self, runs: &[ProofRun]) -> bool {
        let mut turned = false;
        for run in runs {
            let Some(proof) = self.all.iter_mut().find(|it| it.promise.of == run.of) else { continue };
            let was = proof.proof_state();
            proof.before = run.before.or(proof.before);
            if proof.now == Some(ProofColour::Green) && run.now != ProofColour::Green {
                proof.lost += 1;
                self.anomalies += 1;
            }
            proof.now = Some(run.now);
            turned |= was != ProofState::Proved && proof.proof_state() == ProofState::Proved;
        }
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProofColour::{Broken, Green, Red};

    fn promise(of: ProofSubject, command: &str) -> RequiredProof {
        RequiredProof { of, about: "it".to_owned(), command: command.to_owned(), before: None }
    }

    fn plan(commands: &[&str]) -> Proofs {
        let mut proofs = Proofs::default();
        let all: Vec<_> = (1..).zip(commands).map(|(at, it)| promise(ProofSubject::Step(at), it)).collect();
        proofs.add_promises(ProofAuthor::Planner, &all);
        proofs
    }

    fn run(of: ProofSubject, before: Option<ProofColour>, now: ProofColour) -> ProofRun {
        ProofRun { of, before, now }
    }

    fn standings(proofs: &Proofs) -> Vec<&'static str> {
        proofs.all.iter().map(|proof| proof.proof_state().label()).collect()
    }

    #[test]
    fn red_before_and_green_after_is_a_proof_and_nothing_else_is() {
        let mut proofs = plan(&["a", "b", "c", "d"]);
        assert_eq!(standings(&proofs), ["owed"; 4]);
        proofs.note_runs(&[
            run(ProofSubject::Step(1), Some(Red), Green),
            run(ProofSubject::Step(2), Some(Broken), Green),
            run(ProofSubject::Step(3), Some(Green), Green),
            run(ProofSubject::Step(4), Some(Red), Red),
        ]);
        assert_eq!(standings(&proofs), ["proved", "proved", "void", "open"]);
        assert_eq!(proofs.count_proved(), (2, 4));
        assert_eq!(
            proofs.all.iter().filter(|it| it.sends_work_back()).count(),
            1,
            "a void one is for the judge to see"
        );
    }

    #[test]
    fn what_passed_has_to_pass_still() {
        let mut proofs = plan(&["a", "b"]);
        proofs.note_runs(&[run(ProofSubject::Step(1), Some(Red), Green)]);
        proofs.note_runs(&[
            run(ProofSubject::Step(1), None, Broken),
            run(ProofSubject::Step(2), Some(Red), Green),
        ]);
        assert_eq!((standings(&proofs), proofs.anomalies), (vec!["lost", "proved"], 1));
        proofs.note_runs(&[run(ProofSubject::Step(1), None, Red)]);
        assert_eq!(proofs.anomalies, 1, "it is lost once");
        proofs.note_runs(&[run(ProofSubject::Step(1), None, Green)]);
        assert_eq!((standings(&proofs), proofs.anomalies), (vec!["proved", "proved"], 1));
    }

    #[test]
    fn only_the_steps_that_are_done_are_due() {
        let mut proofs = plan(&["a", "b", "c"]);
        proofs.add_promises(ProofAuthor::Judge, &[promise(ProofSubject::Finding(1), "f")]);
        let due = |done| proofs.due_proofs(done).map(|it| it.promise.of.to_string()).collect::<Vec<_>>();
        assert_eq!(due(0), ["finding 1"]);
        assert_eq!(due(2), ["step 1", "step 2", "finding 1"]);
    }

    #[test]
    fn a_plan_keeps_what_is_known_of_a_check_that_it_names_again() {
        let mut proofs = plan(&["a", "b"]);
        proofs.note_runs(&[
            run(ProofSubject::Step(1), Some(Red), Green),
            run(ProofSubject::Step(2), Some(Green), Green),
        ]);
        let all = [promise(ProofSubject::Step(1), "a"), promise(ProofSubject::Step(2), "better")];
        proofs.add_promises(ProofAuthor::Planner, &all);
        assert_eq!(standings(&proofs), ["proved", "owed"]);
    }

    #[test]
    fn a_judge_who_looks_again_takes_back_what_is_not_proved() {
        let mut proofs = plan(&["a"]);
        let all = [promise(ProofSubject::Finding(1), "x"), promise(ProofSubject::Finding(2), "y")];
        proofs.add_promises(ProofAuthor::Judge, &all);
        proofs.note_runs(&[
            run(ProofSubject::Finding(1), Some(Red), Green),
            run(ProofSubject::Finding(2), Some(Green), Green),
        ]);
        assert_eq!(standings(&proofs), ["owed", "proved", "void"]);
        assert_eq!(proofs.next_finding(), 3);
        proofs.add_promises(ProofAuthor::Judge, &[promise(ProofSubject::Finding(3), "z")]);
        assert_eq!(standings(&proofs), ["owed", "proved", "owed"]);
    }

    #[test]
    fn less_than_half_is_too_few() {
        let mut proofs = plan(&["a", "b", "c"]);
        assert_eq!(proofs.too_few_proofs(), None, "nothing was run");
        proofs.note_runs(&[
            run(ProofSubject::Step(1), Some(Red), Green),
            run(ProofSubject::Step(2), Some(Green), Green),
        ]);
        assert_eq!(proofs.too_few_proofs(), None, "half is enough");
        proofs.note_runs(&[run(ProofSubject::Step(3), Some(Green), Green)]);
        assert_eq!(proofs.too_few_proofs(), Some((1, 3)));
    }
}
