//! What agents found out, gathered from the facts of all tasks, for those who come later.
//!
//! A local discovery is for later runs of the same task, a global one for every task. The same words, but for case and
//! space, are one discovery: it is as new as it was said last.

use std::collections::HashMap;

use crate::staged::StagedEvent;
use crate::{EdgeTarget, EndKind, Ending, Event, TaskId, Timestamp, Warning};

/// Something an agent found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// Its number, in the order of being found. It is never given to another.
    pub number: u32,
    /// The task whose agent said it first.
    pub task: TaskId,
    /// Whether it is for every task.
    pub global: bool,
    /// How much it matters, in the agent's own view.
    pub impact: DiscoveryImpact,
    /// What, in the agent's words.
    pub text: String,
    /// When it was said first.
    pub at: Timestamp,
    /// When it was said last.
    pub seen: Timestamp,
    /// How often it was said.
    pub times: u32,
    /// Whether it is of no use any more: it is local and its task is over, or it was withdrawn.
    pub archived: bool,
    /// Whether a person withdrew it. Said again, it stays so.
    pub withdrawn: bool,
}

/// How much a discovery matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiscoveryImpact {
    /// Nice to know.
    Low,
    /// The usual.
    Medium,
    /// It saves much.
    High,
    /// Without it work goes wrong.
    Critical,
}

impl DiscoveryImpact {
    /// Every impact there is.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The word people, files and agents use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

const TEXT_MAX: usize = 2_000; // bytes of one: a few sentences
const LOCAL_MAX: usize = 50; // per task; an agent that finds more is not telling, it is logging
const GLOBAL_MAX: usize = 500; // many times what fits in a prompt; the oldest go first
const GONE_MAX: usize = 1_000; // archived ones, for a person to look at

/// All discoveries: a fold of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discoveries {
    all: Vec<Discovery>,
    /// By words: globals under no task.
    by_words: HashMap<(Option<TaskId>, String), u32>,
    last: u32,
}

impl Discoveries {
    /// Takes an event of a task in.
    pub fn note(&mut self, task: TaskId, at: Timestamp, event: &Event) {
        match event {
            Event::Warned(Warning::Discovery { global, text }) => self.add_discovery(task, *global, text, at),
            // What one task tried in vain, the next need not try.
            Event::Staged(StagedEvent::GivenUp { exclusion }) => {
                let text = format!("a way that led nowhere: {} ({})", exclusion.direction, exclusion.reason);
                self.add_discovery(task, true, &text, at);
            }
            // Done and cancelled are final; whoever is tried again finds what it knew.
            Event::Left { to: EdgeTarget::End, .. }
            | Event::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) => {
                self.set_archived(task, true);
            }
            Event::Retried { .. } => self.set_archived(task, false),
            _ => {} // every other fact is about the work, not about what was learnt
        }
    }

    /// Those that are of use, in the order of being found; with `archived` all that are still known.
    pub fn list_discoveries(&self, archived: bool) -> impl Iterator<Item = &Discovery> {
        self.all.iter().filter(move |it| archived || !it.archived)
    }

    /// What an agent that works on `task` should hear of: its own and those for everyone. What matters most comes first,
    /// then what was said last.
    #[must_use]
    pub fn offered_to_task(&self, task: TaskId) -> Vec<&Discovery> {
        let mut offered: Vec<&Discovery> =
            self.all.iter().filter(|it| !it.archived && (it.global || it.task == task)).collect();
        let critical = |it: &Discovery| it.impact == DiscoveryImpact::Critical;
        offered.sort_by_key(|it| std::cmp::Reverse((critical(it), it.seen, it.number)));
        offered
    }

    /// The one with this number, whether it is of use or not.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Discovery> {
        self.all.iter().find(|it| it.number == number)
    }

    /// A person withdrew one: nobody is told of it any more.
    pub fn withdraw_discovery(&mut self, number: u32) {
        if let Some(it) = self.all.iter_mut().find(|it| it.number == number) {
            (it.withdrawn, it.archived) = (true, true);
        }
        self.drop_oldest(GONE_MAX, |it| it.archived);
    }

    fn add_discovery(&mut self, task: TaskId, global: bool, said: &str, at: Timestamp) {
        let (impact, text) = impact_of(said.trim());
        if text.is_empty() {
            return;
        }
        let text = &text[..text.floor_char_boundary(TEXT_MAX)];
        let words = comparable_text(text);
        let known = |scope: Option<TaskId>| self.by_words.get(&(scope, words.clone())).copied();
        // What everyone knows need not be said again for one; what one knew may become known to everyone.
        let number = known(None).or_else(|| known(Some(task)));
        if let Some(number) = number
            && let Some(it) = self.all.iter_mut().find(|it| it.number == number)
        {
            it.seen = it.seen.max(at);
            it.times = it.times.saturating_add(1);
            it.impact = it.impact.max(impact);
            it.archived = it.withdrawn;
            if global && !it.global {
                it.global = true;
                self.by_words.remove(&(Some(task), words.clone()));
                self.by_words.insert((None, words), number);
            }
            return;
        }
        self.last += 1;
        let number = self.last;
        self.all.push(Discovery {
            number,
            task,
            global,
            impact,
            text: text.to_owned(),
            at,
            seen: at,
            times: 1,
            archived: false,
            withdrawn: false,
        });
        self.by_words.insert((if global { None } else { Some(task) }, words), number);
        if global {
            self.drop_oldest(GLOBAL_MAX, |it| it.global);
        } else {
            self.drop_oldest(LOCAL_MAX, |it| !it.global && !it.archived && it.task == task);
        }
    }

    fn set_archived(&mut self, task: TaskId, archived: bool) {
        for it in self.all.iter_mut().filter(|it| it.task == task && !it.global) {
            it.archived = archived || it.withdrawn;
        }
        self.drop_oldest(GONE_MAX, |it| it.archived);
    }

    /// Drops the oldest of a kind while there are too many: by when they were said last.
    fn drop_oldest(&mut self, max: usize, kind: impl Fn(&Discovery) -> bool) {
        while self.all.iter().filter(|it| kind(it)).count() > max {
            let oldest = self.all.iter().filter(|it| kind(it)).min_by_key(|it| (it.seen, it.number));
            let Some(number) = oldest.map(|it| it.number) else { return };
            self.all.retain(|it| it.number != number);
            self.by_words.retain(|_, known| *known != number);
        }
    }
}

/// The impact an agent put before its words, as in `[critical] the tests need a database`, and the words.
fn impact_of(said: &str) -> (DiscoveryImpact, &str) {
    let marked = said.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let known = marked.and_then(|(word, rest)| {
        let word = word.trim();
        let impact =
            DiscoveryImpact::ALL.into_iter().find(|impact| impact.wire_name().eq_ignore_ascii_case(word))?;
        Some((impact, rest.trim_start()))
    });
    known.unwrap_or((DiscoveryImpact::Medium, said))
}

/// What two texts that say the same have in common.
fn comparable_text(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Discoveries, DiscoveryImpact, GLOBAL_MAX, LOCAL_MAX};
    use crate::{
        Attempt, EdgeTarget, EndCode, EndKind, Ending, Event, StepName, StepResult, TaskId, Timestamp,
        Warning,
    };

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);

    fn told(list: &mut Discoveries, task: TaskId, at: i64, global: bool, text: &str) {
        let event = Event::Warned(Warning::Discovery { global, text: text.to_owned() });
        list.note(task, Timestamp(at), &event);
    }

    fn ended(list: &mut Discoveries, task: TaskId, kind: EndKind) {
        let ending = Ending { kind, code: EndCode::Person, detail: String::new() };
        list.note(task, Timestamp(99), &Event::Ended(ending));
    }

    fn texts(list: &Discoveries, task: TaskId) -> Vec<String> {
        list.offered_to_task(task).iter().map(|it| it.text.clone()).collect()
    }

    #[test]
    fn the_same_words_are_one_discovery() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, true, "The tests need a database");
        told(&mut list, B, 2, true, "  the TESTS need  a database\n");
        told(&mut list, B, 3, false, "the tests need a database");
        assert_eq!(list.list_discoveries(true).count(), 1);
        let it = list.list_discoveries(false).next().expect("one");
        assert_eq!((it.task, it.times, it.seen), (A, 3, Timestamp(3)));
    }

    #[test]
    fn local_ones_are_for_their_task_and_global_ones_for_all() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, false, "mine");
        told(&mut list, B, 2, false, "mine");
        told(&mut list, A, 3, true, "ours");
        assert_eq!(texts(&list, A), ["ours", "mine"]);
        assert_eq!(texts(&list, B), ["ours", "mine"]);
        assert_eq!(texts(&list, TaskId(3)), ["ours"]);
        told(&mut list, A, 4, true, "mine");
        assert_eq!(texts(&list, TaskId(3)), ["mine", "ours"]);
    }

    #[test]
    fn what_is_critical_comes_first_then_what_was_said_last() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, true, "[Critical] use port 0");
        told(&mut list, A, 2, true, "[low] it rains");
        told(&mut list, A, 3, true, "[sic] as it stands");
        assert_eq!(texts(&list, B), ["use port 0", "[sic] as it stands", "it rains"]);
        assert_eq!(list.offered_to_task(B)[0].impact, DiscoveryImpact::Critical);
        told(&mut list, A, 4, true, "[critical]");
        assert_eq!(list.list_discoveries(true).count(), 3);
    }

    #[test]
    fn a_local_one_is_archived_with_its_task_and_comes_back_with_it() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, false, "mine");
        told(&mut list, A, 1, true, "ours");
        ended(&mut list, A, EndKind::Failed);
        assert_eq!(texts(&list, A).len(), 2, "a failed task may be tried again");
        let left = |to| Event::Left {
            attempt: Attempt(1),
            step: StepName::new("report"),
            result: StepResult::Done,
            to,
            feedback: None,
        };
        list.note(A, Timestamp(99), &left(EdgeTarget::Stop));
        assert_eq!(texts(&list, A).len(), 2, "a blocked one, too");
        list.note(A, Timestamp(99), &left(EdgeTarget::End));
        assert_eq!(texts(&list, A), ["ours"]);
        assert_eq!(list.list_discoveries(true).count(), 2);
        list.note(A, Timestamp(100), &Event::Retried { fresh: false, feedback: None });
        assert_eq!(texts(&list, A).len(), 2);
    }

    #[test]
    fn a_direction_that_led_nowhere_is_told_to_later_tasks() {
        let exclusion = crate::convergence::Exclusion {
            stage: 2,
            focus: vec![1],
            direction: "stage 2 for R1: cache it; read the cache".to_owned(),
            reason: "convergence went from 0.5000 to 0.2500".to_owned(),
            abandoned: crate::Commit::new("1111111111111111111111111111111111111111"),
            from: 5_000,
            to: 2_500,
        };
        let mut list = Discoveries::default();
        list.note(A, Timestamp(1), &Event::Staged(crate::staged::StagedEvent::GivenUp { exclusion }));
        ended(&mut list, A, EndKind::Done);
        let [told] = &texts(&list, B)[..] else { panic!("{:?}", texts(&list, B)) };
        assert!(told.contains("cache it; read the cache") && told.contains("0.2500"), "{told}");
    }

    #[test]
    fn what_was_withdrawn_is_offered_to_nobody_however_often_it_is_said() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, true, "ours");
        told(&mut list, A, 1, false, "mine");
        list.withdraw_discovery(1);
        list.withdraw_discovery(2);
        list.withdraw_discovery(7);
        assert_eq!(texts(&list, A), [""; 0]);
        told(&mut list, B, 2, true, "Ours");
        list.note(A, Timestamp(3), &Event::Retried { fresh: false, feedback: None });
        assert_eq!(
            (texts(&list, A), list.list_discoveries(false).count(), list.list_discoveries(true).count()),
            (Vec::new(), 0, 2)
        );
        assert!(list.get(1).is_some_and(|it| it.withdrawn && it.times == 2) && list.get(7).is_none());
    }

    #[test]
    fn there_are_never_too_many_and_the_oldest_go() {
        let mut list = Discoveries::default();
        for n in 0..2 * GLOBAL_MAX {
            told(&mut list, A, i64::try_from(n).expect("small"), true, &format!("fact {n}"));
        }
        for n in 0..2 * LOCAL_MAX {
            told(&mut list, A, i64::try_from(n).expect("small"), false, &format!("own {n}"));
        }
        assert_eq!(list.list_discoveries(true).count(), GLOBAL_MAX + LOCAL_MAX);
        assert!(list.list_discoveries(true).all(|it| it.text != "fact 0" && it.text != "own 0"));
        told(&mut list, A, 5_000, true, "fact 0");
        assert_eq!(list.offered_to_task(B)[0].text, "fact 0", "a dropped one may be found again");
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let mut list = Discoveries::default();
        told(&mut list, A, 1, true, &"ä".repeat(5_000));
        assert_eq!(list.list_discoveries(true).next().expect("one").text.len(), 2_000);
    }
}
