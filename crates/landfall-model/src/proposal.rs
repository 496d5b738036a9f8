//! A graph of tasks that an agent proposes: whether it can be worked on as it is.
//!
//! What is wrong in a mechanical way is mended here and told. What takes thought goes back to whoever proposed it. A
//! group holds tasks together and is itself never worked on.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::spec::PRIORITY_MAX;
use crate::{PathPattern, Tag, TaskId, TaskSize, graph};

/// What was proposed, as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskProposal {
    /// What holds tasks together.
    pub groups: Vec<ProposalGroup>,
    /// What is to be done.
    pub tasks: Vec<ProposedTask>,
}

/// Holds a few tasks together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalGroup {
    /// What the proposal calls it.
    pub id: String,
    /// In one line.
    pub title: String,
    /// What it is about.
    pub body: String,
}

/// One task of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposedTask {
    /// What the proposal calls it.
    pub id: String,
    /// In one line.
    pub title: String,
    /// What is wanted.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How much work it is.
    pub size: Option<TaskSize>,
    /// Words on it.
    pub tags: Vec<String>,
    /// 0 is the most urgent.
    pub priority: Option<u8>,
    /// What must land first: ids of the proposal, or tasks that are there.
    pub needs: Vec<String>,
    /// What it will change, as far as anyone can tell.
    pub touches: Vec<String>,
    /// The group it is in.
    pub group: Option<String>,
}

/// A task that is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingTask {
    /// Which.
    pub id: TaskId,
    /// In one line.
    pub title: String,
    /// Where it is.
    pub standing: ExistingTaskState,
}

/// Whether a task that is there can be built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTaskState {
    /// It is still to be done.
    Open,
    /// It has landed.
    Landed,
    /// Nobody goes on with it.
    Over,
}

/// A proposal that holds together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalPlan {
    /// What holds tasks together; each has at least one.
    pub groups: Vec<ProposalGroup>,
    /// What is to be done, in the order of the proposal.
    pub tasks: Vec<PlannedTask>,
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTask {
    /// Its words.
    pub part: ProposedTask,
    /// What must land first.
    pub needs: BTreeSet<ProposalDependency>,
    /// The place of its group.
    pub group: Option<usize>,
}

/// What must land first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProposalDependency {
    /// The task at this place of the plan.
    Here(usize),
    /// A task that is there already.
    There(TaskId),
}

/// What was mended without asking.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProposalFix {
    /// Proposed twice.
    #[error("`{id}` has the same title as `{kept}` and was left out")]
    Twin {
        /// What was left out.
        id: String,
        /// What stands for it.
        kept: String,
    },
    /// Proposed although it is there.
    #[error("`{id}` is there already as {task} and was left out")]
    There {
        /// What was left out.
        id: String,
        /// What stands for it.
        task: TaskId,
    },
    /// Needs itself.
    #[error("`{0}` needed itself; that was taken out")]
    SelfNeed(String),
    /// Needs something twice.
    #[error("`{id}` named `{need}` twice")]
    DoubleNeed {
        /// Who.
        id: String,
        /// What.
        need: String,
    },
    /// Needs something nobody knows.
    #[error("`{id}` needed `{need}`, which there is not; that was taken out")]
    UnknownNeed {
        /// Who.
        id: String,
        /// What.
        need: String,
    },
    /// Needs a group.
    #[error("`{id}` needed the group `{group}`; it needs the tasks of the group instead")]
    GroupNeed {
        /// Who.
        id: String,
        /// Which.
        group: String,
    },
    /// Is in a group nobody knows.
    #[error("`{id}` was in the group `{group}`, which there is not; it is in none")]
    UnknownGroup {
        /// Who.
        id: String,
        /// Which.
        group: String,
    },
    /// A group without tasks.
    #[error("the group `{0}` had no tasks and was left out")]
    EmptyGroup(String),
    /// A criterion that is empty or said twice.
    #[error("`{0}` had a criterion that was empty or there twice")]
    Criterion(String),
    /// Not a tag.
    #[error("`{id}` had `{tag}` as a tag, which cannot be one")]
    Tag {
        /// Who.
        id: String,
        /// What.
        tag: String,
    },
    /// Not a path of the project.
    #[error("`{id}` was to touch `{path}`, which cannot be a path of the project")]
    Touch {
        /// Who.
        id: String,
        /// What.
        path: String,
    },
    /// Not a priority.
    #[error("`{0}` had a priority that is out of range")]
    Priority(String),
}

/// What takes thought.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProposalProblem {
    /// Nothing to do.
    #[error("there are no tasks in it")]
    Empty,
    /// Everything is there already.
    #[error("every task in it is there already")]
    NothingNew,
    /// More than was asked for.
    #[error("it has {count} tasks; at most {max} are wanted")]
    TooMany {
        /// So many.
        count: usize,
        /// At most.
        max: usize,
    },
    /// Nothing to call it by.
    #[error("{0} has no id")]
    NoId(String),
    /// Two with one name.
    #[error("two things have the id `{0}`")]
    SameId(String),
    /// No title.
    #[error("`{0}` has no title")]
    NoTitle(String),
    /// Not a line.
    #[error("the title of `{id}` has {chars} characters; at most {TITLE_CHARS_MAX} make a line")]
    LongTitle {
        /// Who.
        id: String,
        /// So many.
        chars: usize,
    },
    /// More than one thing.
    #[error("`{id}` is about more than one thing (`{word}` in its title): make a task of each")]
    TwoConcerns {
        /// Who.
        id: String,
        /// What gave it away.
        word: &'static str,
    },
    /// Nothing to go by.
    #[error("`{0}` has no body: say what is wanted and where in the project")]
    NoBody(String),
    /// Too much for one task.
    #[error("the body of `{id}` has {bytes} bytes; at most {BODY_BYTES_MAX} fit one task")]
    LongBody {
        /// Who.
        id: String,
        /// So many.
        bytes: usize,
    },
    /// Nobody knows how big it is.
    #[error("`{0}` has no size: XS, S, M or L")]
    NoSize(String),
    /// Too big.
    #[error("`{0}` is XL: split it into tasks that one run can finish")]
    TooBig(String),
    /// Nobody can tell when it is done.
    #[error("`{0}` has no criteria: say what can be checked when it is done")]
    NoCriteria(String),
    /// Too much for one task.
    #[error("`{id}` has {count} criteria; with more than {CRITERIA_MAX} it is more than one task")]
    ManyCriteria {
        /// Who.
        id: String,
        /// So many.
        count: usize,
    },
    /// Cannot be checked.
    #[error("a criterion of `{id}` cannot be checked: `{text}`; say what is seen when it holds")]
    Vague {
        /// Who.
        id: String,
        /// What it says.
        text: String,
    },
    /// Too many in one group.
    #[error("the group `{group}` has {count} tasks; at most {GROUP_TASKS_MAX} belong together")]
    BigGroup {
        /// Which.
        group: String,
        /// So many.
        count: usize,
    },
    /// Nobody could begin.
    #[error("the needs go in a circle: {}", .0.join(" → "))]
    Circle(Vec<String>),
    /// Would wait for ever.
    #[error("`{id}` needs {task}, which nobody goes on with")]
    NeedsOver {
        /// Who.
        id: String,
        /// What.
        task: TaskId,
    },
}

/// The longest title.
pub const TITLE_CHARS_MAX: usize = 120; // a line of a list
/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 20_000; // a few pages; more does not fit one head
/// The most criteria of one task.
pub const CRITERIA_MAX: usize = 10;
/// The most tasks of one group.
pub const GROUP_TASKS_MAX: usize = 5;

/// What came of a look at a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalCheck {
    /// What stands, if there is no problem.
    pub plan: ProposalPlan,
    /// What was mended on the way.
    pub mended: Vec<ProposalFix>,
    /// What takes thought.
    pub problems: Vec<ProposalProblem>,
}

/// Looks at a proposal. At most `max` tasks are wanted; `known` are the tasks that are there.
#[must_use]
pub fn check_proposal(proposal: TaskProposal, max: usize, known: &[ExistingTask]) -> ProposalCheck {
    let mut desk = ProposalChecker { checked: ProposalCheck::default(), known };
    desk.check_tasks(proposal, max);
    desk.checked
}

/// What an id of the proposal stands for.
#[derive(Clone, Copy)]
enum ProposalIdTarget {
    Task(usize),
    Group(usize),
    There(usize),
}

struct ProposalChecker<'a> {
    checked: ProposalCheck,
    known: &'a [ExistingTask],
}

impl ProposalChecker<'_> {
    fn check_tasks(&mut self, proposal: TaskProposal, max: usize) {
        let TaskProposal { groups, tasks } = proposal;
        if tasks.is_empty() {
            return self.add_problem(ProposalProblem::Empty);
        }
        if tasks.len() > max {
            self.add_problem(ProposalProblem::TooMany { count: tasks.len(), max });
        }
        let ids = tasks.iter().map(|it| ("task", &it.id)).chain(groups.iter().map(|it| ("group", &it.id)));
        if let Some(problem) = find_bad_name(ids) {
            return self.add_problem(problem); // without names nothing else can be said about anything
        }
        let mut meant: BTreeMap<String, ProposalIdTarget> = BTreeMap::new();
        for (place, group) in groups.iter().enumerate() {
            meant.insert(group.id.clone(), ProposalIdTarget::Group(place));
        }
        let tasks = self.without_twins(tasks, &mut meant);
        if tasks.is_empty() {
            return self.add_problem(ProposalProblem::NothingNew);
        }
        let tasks: Vec<ProposedTask> = tasks.into_iter().map(|part| self.check_wording(part)).collect();
        let homes: Vec<Option<usize>> = tasks.iter().map(|part| self.resolve_group(part, &meant)).collect();
        let needs: Vec<_> =
            (0..tasks.len()).map(|place| self.resolve_needs(place, &tasks, &homes, &meant)).collect();
        self.check_cycles(&tasks, &needs);
        let tasks = tasks.into_iter().zip(needs).zip(homes);
        self.checked.plan.tasks =
            tasks.map(|((part, needs), group)| PlannedTask { part, needs, group }).collect();
        self.fill_groups(groups);
    }

    fn add_problem(&mut self, problem: ProposalProblem) {
        self.checked.problems.push(problem);
    }

    fn add_fix(&mut self, mended: ProposalFix) {
        self.checked.mended.push(mended);
    }

    /// The tasks that are new, with what stands for the others.
    fn without_twins(
        &mut self,
        tasks: Vec<ProposedTask>,
        meant: &mut BTreeMap<String, ProposalIdTarget>,
    ) -> Vec<ProposedTask> {
        let there: BTreeMap<String, usize> = self
            .known
            .iter()
            .enumerate()
            .rev()
            .map(|(at, known)| (comparable_title(&known.title), at))
            .collect();
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        let mut kept: Vec<ProposedTask> = Vec::new();
        for part in tasks {
            let title = comparable_title(&part.title);
            let is_there =
                there.get(&title).copied().filter(|at| self.known[*at].standing != ExistingTaskState::Over);
            match (first.get(&title), is_there) {
                _ if title.is_empty() => {
                    meant.insert(part.id.clone(), ProposalIdTarget::Task(kept.len())); // told below
                }
                (Some(twin), _) => {
                    let stands = kept[*twin].id.clone();
                    meant.insert(part.id.clone(), ProposalIdTarget::Task(*twin));
                    self.add_fix(ProposalFix::Twin { id: part.id, kept: stands });
                    continue;
                }
                (None, Some(at)) => {
                    meant.insert(part.id.clone(), ProposalIdTarget::There(at));
                    self.add_fix(ProposalFix::There { id: part.id, task: self.known[at].id });
                    continue;
                }
                (None, None) => {
                    meant.insert(part.id.clone(), ProposalIdTarget::Task(kept.len()));
                    first.insert(title, kept.len());
                }
            }
            kept.push(part);
        }
        kept
    }

    /// One concern, small enough, and something to check.
    fn check_wording(&mut self, mut part: ProposedTask) -> ProposedTask {
        let id = part.id.clone();
        part.title = part.title.split_whitespace().collect::<Vec<_>>().join(" ");
        part.body = part.body.trim().to_owned();
        let chars = part.title.chars().count();
        if part.title.is_empty() {
            self.add_problem(ProposalProblem::NoTitle(id.clone()));
        }
        if chars > TITLE_CHARS_MAX {
            self.add_problem(ProposalProblem::LongTitle { id: id.clone(), chars });
        }
        if let Some(word) = find_joining_word(&part.title) {
            self.add_problem(ProposalProblem::TwoConcerns { id: id.clone(), word });
        }
        if part.body.is_empty() {
            self.add_problem(ProposalProblem::NoBody(id.clone()));
        }
        if part.body.len() > BODY_BYTES_MAX {
            self.add_problem(ProposalProblem::LongBody { id: id.clone(), bytes: part.body.len() });
        }
        match part.size {
            None => self.add_problem(ProposalProblem::NoSize(id.clone())),
            Some(TaskSize::XL) => self.add_problem(ProposalProblem::TooBig(id.clone())),
            Some(TaskSize::XS | TaskSize::S | TaskSize::M | TaskSize::L) => {}
        }
        self.check_criteria(&mut part);
        for tag in std::mem::take(&mut part.tags) {
            match tag.parse::<Tag>() {
                Ok(tag) => part.tags.push(tag.as_str().to_owned()),
                Err(_) => self.add_fix(ProposalFix::Tag { id: id.clone(), tag: shorten_title(&tag) }),
            }
        }
        for path in std::mem::take(&mut part.touches) {
            match path.parse::<PathPattern>() {
                Ok(touch) => part.touches.push(touch.as_str().to_owned()),
                Err(_) => self.add_fix(ProposalFix::Touch { id: id.clone(), path: shorten_title(&path) }),
            }
        }
        if part.priority.is_some_and(|it| it > PRIORITY_MAX) {
            part.priority = None;
            self.add_fix(ProposalFix::Priority(id));
        }
        part
    }

    fn check_criteria(&mut self, part: &mut ProposedTask) {
        let mut seen = BTreeSet::new();
        let before = part.criteria.len();
        part.criteria = std::mem::take(&mut part.criteria)
            .into_iter()
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|text| !text.is_empty() && seen.insert(comparable_title(text)))
            .collect();
        if part.criteria.len() < before && !part.criteria.is_empty() {
            self.add_fix(ProposalFix::Criterion(part.id.clone()));
        }
        match part.criteria.len() {
            0 => self.add_problem(ProposalProblem::NoCriteria(part.id.clone())),
            1..=CRITERIA_MAX => {}
            count => self.add_problem(ProposalProblem::ManyCriteria { id: part.id.clone(), count }),
        }
        for text in part.criteria.iter().filter(|text| VAGUE.contains(&comparable_title(text).as_str())) {
            self.checked
                .problems
                .push(ProposalProblem::Vague { id: part.id.clone(), text: shorten_title(text) });
        }
    }

    fn resolve_group(
        &mut self,
        part: &ProposedTask,
        meant: &BTreeMap<String, ProposalIdTarget>,
    ) -> Option<usize> {
        let group = part.group.as_ref()?;
        match meant.get(group) {
            Some(ProposalIdTarget::Group(place)) => Some(*place),
            Some(ProposalIdTarget::Task(_) | ProposalIdTarget::There(_)) | None => {
                self.add_fix(ProposalFix::UnknownGroup { id: part.id.clone(), group: shorten_title(group) });
                None
            }
        }
    }

    fn resolve_needs(
        &mut self,
        place: usize,
        tasks: &[ProposedTask],
        homes: &[Option<usize>],
        meant: &BTreeMap<String, ProposalIdTarget>,
    ) -> BTreeSet<ProposalDependency> {
        let id = &tasks[place].id;
        let mut needs = BTreeSet::new();
        for word in &tasks[place].needs {
            let need = word.trim();
            let there = || {
                let at = self.known.iter().position(|known| known.id.to_string().eq_ignore_ascii_case(need));
                at.map(ProposalIdTarget::There)
            };
            match meant.get(need).copied().or_else(there) {
                None => self.add_fix(ProposalFix::UnknownNeed { id: id.clone(), need: shorten_title(need) }),
                Some(ProposalIdTarget::Task(other)) if other == place => {
                    self.add_fix(ProposalFix::SelfNeed(id.clone()))
                }
                Some(ProposalIdTarget::Task(other)) => {
                    if !needs.insert(ProposalDependency::Here(other)) {
                        self.add_fix(ProposalFix::DoubleNeed { id: id.clone(), need: shorten_title(need) });
                    }
                }
                Some(ProposalIdTarget::Group(group)) => {
                    let in_group = |it: &usize| homes[*it] == Some(group) && *it != place;
                    needs.extend((0..tasks.len()).filter(in_group).map(ProposalDependency::Here));
                    self.add_fix(ProposalFix::GroupNeed { id: id.clone(), group: shorten_title(need) });
                }
                Some(ProposalIdTarget::There(at)) => match self.known[at].standing {
                    ExistingTaskState::Landed => {}
                    ExistingTaskState::Open => {
                        needs.insert(ProposalDependency::There(self.known[at].id)); // named twice is needed once
                    }
                    ExistingTaskState::Over => {
                        self.add_problem(ProposalProblem::NeedsOver {
                            id: id.clone(),
                            task: self.known[at].id,
                        });
                    }
                },
            }
        }
        needs
    }

    fn check_cycles(&mut self, tasks: &[ProposedTask], needs: &[BTreeSet<ProposalDependency>]) {
        let number = |place: usize| TaskId(u32::try_from(place).expect("a proposal is small"));
        let place = |id: TaskId| id.0 as usize;
        let here = |of: TaskId| -> BTreeSet<TaskId> {
            let here = |need: &ProposalDependency| match need {
                ProposalDependency::Here(other) => Some(number(*other)),
                ProposalDependency::There(_) => None,
            };
            needs[place(of)].iter().filter_map(here).collect()
        };
        let mut told: BTreeSet<BTreeSet<TaskId>> = BTreeSet::new();
        for start in (0..tasks.len()).map(number) {
            let Some(path) = graph::find_cycle(start, &here(start), &|of| here(of).into_iter().collect())
            else {
                continue;
            };
            // Each circle is found from each of its members.
            if told.insert(path.iter().copied().collect()) {
                let names = path.iter().map(|id| tasks[place(*id)].id.clone()).collect();
                self.add_problem(ProposalProblem::Circle(names));
            }
        }
    }

    /// Groups with tasks in them, and the places of the tasks' groups among those.
    fn fill_groups(&mut self, groups: Vec<ProposalGroup>) {
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, mut group) in groups.into_iter().enumerate() {
            let count = self.checked.plan.tasks.iter().filter(|it| it.group == Some(place)).count();
            match count {
                0 => {
                    self.add_fix(ProposalFix::EmptyGroup(group.id));
                    continue;
                }
                1..=GROUP_TASKS_MAX => {}
                count => self.add_problem(ProposalProblem::BigGroup { group: group.id.clone(), count }),
            }
            group.title = group.title.split_whitespace().collect::<Vec<_>>().join(" ");
            if group.title.is_empty() {
                self.add_problem(ProposalProblem::NoTitle(group.id.clone()));
            }
            places.insert(place, self.checked.plan.groups.len());
            self.checked.plan.groups.push(group);
        }
        for task in &mut self.checked.plan.tasks {
            task.group = task.group.map(|place| places[&place]);
        }
    }
}

/// Something without a name, or with the name of another.
fn find_bad_name<'a>(ids: impl Iterator<Item = (&'static str, &'a String)>) -> Option<ProposalProblem> {
    let mut seen = BTreeSet::new();
    for (number, (what, id)) in (1..).zip(ids) {
        if id.trim().is_empty() {
            return Some(ProposalProblem::NoId(format!("{what} number {number}")));
        }
        if !seen.insert(id) {
            return Some(ProposalProblem::SameId(shorten_title(id)));
        }
    }
    None
}

/// The words of a text, whatever their case and what stands between them: two titles with the same are the same.
fn comparable_title(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn shorten_title(text: &str) -> String {
    const CHARS_MAX: usize = 60; // what a message holds
    text.chars().take(CHARS_MAX).collect()
}

/// What joins two concerns in a title. A plain "and" does not: "parse and check the file" may be one thing.
fn find_joining_word(title: &str) -> Option<&'static str> {
    const WORDS: [&str; 6] = ["; ", " and then ", ", then ", " and also ", " as well as ", " plus "];
    let title = title.to_lowercase();
    WORDS.into_iter().find(|word| title.contains(word)).map(str::trim)
}

/// Criteria that anything meets.
const VAGUE: [&str; 14] = [
    "it works",
    "works",
    "works correctly",
    "it works correctly",
    "works as expected",
    "it works as expected",
    "everything works",
    "the code works",
    "code is clean",
    "the code is clean",
    "good quality",
    "it is done",
    "done",
    "no bugs",
];
