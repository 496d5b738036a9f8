//! Who may go on now: every task with its place in line, kept in order as tasks change.
//!
//! [`World::put`] costs the logarithm of the backlog and the number of tasks it touches; [`plan`] reads the front
//! of four lines. So the cost of a grant does not grow with the backlog.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::account::{AccountState, Accounts, Leave};
use crate::budget::Spent;
use crate::flow::{Flow, StepKind};
use crate::recover::may_land;
use crate::status::Wait;
use crate::task::{Doing, State, Task};
use crate::{TaskId, Timestamp};

/// What a task needs in order to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The right to move the base.
    Landing,
    /// Nothing that is scarce.
    Free,
    /// A checkout to verify in.
    Lane,
    /// Leave to run an agent.
    Slot,
}

impl Standing {
    /// Every kind, in the order they are served: what is nearest to landed goes first.
    pub const ALL: [Self; 4] = [Self::Landing, Self::Free, Self::Lane, Self::Slot];
}

/// How much of each there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Agents at once.
    pub slots: u32,
    /// Verifications at once.
    pub lanes: u32,
    /// The moment it is asked for: accounts open by the clock.
    pub now: Timestamp,
    /// A budget that is used up: no agent starts.
    pub spent: Option<Spent>,
}

impl Limits {
    fn of(&self, standing: Standing) -> u32 {
        match standing {
            Standing::Landing => 1, // the base has one tip
            Standing::Free => u32::MAX,
            Standing::Lane => self.lanes,
            Standing::Slot => self.slots,
        }
    }
}

/// Leave for one task to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// This task.
    pub task: TaskId,
    /// With this.
    pub standing: Standing,
    /// By this profile: its own, or the one that takes over.
    pub profile: String,
}

/// Where a profile leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The account it works on.
    pub account: String,
    /// The profile that takes over while that account is shut.
    pub failover: Option<String>,
}

/// A place in line. Less is sooner: 1. the higher score, 2. the older task.
type Rank = (Reverse<i64>, TaskId);

/// All tasks, and who stands where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// By number: numbers are dense, because they are given in order and never used again.
    seats: Vec<Seat>,
    flows: BTreeMap<String, Arc<Flow>>,
    default_flow: String,
    only: Option<BTreeSet<TaskId>>,
    dependents: BTreeMap<TaskId, BTreeSet<TaskId>>,
    families: BTreeMap<TaskId, Family>,
    /// Where profiles lead; one that is not here has an account of its own name.
    routes: BTreeMap<String, Route>,
    accounts: Accounts,
    lines: [BTreeSet<Rank>; 4],
    /// The line for slots, by profile.
    by_profile: BTreeMap<String, BTreeSet<Rank>>,
    holding: [BTreeSet<TaskId>; 4],
    due: BTreeSet<(Timestamp, TaskId)>,
    gate_waits: BTreeSet<TaskId>,
    /// Tasks that wait for an account: its reset, or a login.
    account_waits: BTreeSet<TaskId>,
}

/// A task and what it has.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seat {
    task: Option<Arc<Task>>,
    /// Its place in line.
    place: Option<(Standing, Rank)>,
    /// The profile it stands in line with, if it is for a slot.
    profile: Option<String>,
    /// What it holds.
    held: Option<Standing>,
}

/// The parts of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Family {
    members: BTreeSet<TaskId>,
    done: usize,
}

impl Family {
    /// Whether the rest should be finished: more than half are done.
    fn is_mostly_done(&self) -> bool {
        self.done * 2 > self.members.len()
    }
}

impl World {
    /// An empty world with these flows.
    #[must_use]
    pub fn new(flows: BTreeMap<String, Arc<Flow>>, default_flow: &str) -> Self {
        Self { flows, default_flow: default_flow.to_owned(), ..Self::default() }
    }

    /// The task, if it exists.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.seats.get(id.0 as usize)?.task.as_ref()
    }

    /// Every task, oldest first.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.seats.iter().filter_map(|seat| seat.task.as_ref())
    }

    /// The number the next task gets. Numbers are never used again.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        TaskId(u32::try_from(self.seats.len()).expect("numbers are 32 bits").max(1))
    }

    /// Restricts new starts to these tasks, or lifts that.
    pub fn set_only(&mut self, only: Option<BTreeSet<TaskId>>) {
        self.only = only;
        for id in self.tasks().map(|task| task.id).collect::<Vec<_>>() {
            self.place(id);
        }
    }

    /// The flow a task follows, or would follow.
    #[must_use]
    pub fn flow_of(&self, task: &Task) -> Option<Arc<Flow>> {
        self.flow_ref(task).cloned()
    }

    fn flow_ref<'a>(&'a self, task: &'a Task) -> Option<&'a Arc<Flow>> {
        task.flow.as_ref().or_else(|| {
            let name = task.spec.flow.as_deref().unwrap_or(&self.default_flow);
            self.flows.get(name)
        })
    }

    /// The needs of a task that do not let it start yet.
    #[must_use]
    pub fn unmet(&self, task: &Task) -> Vec<TaskId> {
        task.spec.needs.iter().filter(|id| !self.is_met(**id)).copied().collect()
    }

    fn is_met(&self, need: TaskId) -> bool {
        self.get(need).is_some_and(|need| need.unblocks())
    }

    /// Tasks that need this one and are not over.
    #[must_use]
    pub fn dependents(&self, id: TaskId) -> Vec<TaskId> {
        self.dependents.get(&id).into_iter().flatten().copied().collect()
    }

    /// How many tasks hold this.
    #[must_use]
    pub fn holding(&self, standing: Standing) -> usize {
        self.holding[standing as usize].len()
    }

    /// Tasks with something under way.
    pub fn active(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.holding.iter().flatten().filter_map(|id| self.get(*id))
    }

    /// How many stand in line for this.
    #[must_use]
    pub fn waiting_for(&self, standing: Standing) -> usize {
        self.lines[standing as usize].len()
    }

    /// Says where profiles lead.
    pub fn set_routes(&mut self, routes: BTreeMap<String, Route>) {
        self.routes = routes;
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Notes how an account stands.
    pub fn set_account(&mut self, account: &str, state: AccountState) {
        self.accounts.set(account, state);
    }

    /// The profile a task asks for.
    #[must_use]
    pub fn profile_of(task: &Task) -> &str {
        task.spec.agent.as_deref().unwrap_or("default")
    }

    /// The account a profile works on.
    #[must_use]
    pub fn account_of<'a>(&'a self, profile: &'a str) -> &'a str {
        self.routes.get(profile).map_or(profile, |route| route.account.as_str())
    }

    /// The profile that may start now for `profile`: itself, or whichever takes over; or else what is in the way.
    ///
    /// # Errors
    /// What the profile itself waits for.
    pub fn open_route<'a>(&'a self, profile: &'a str, now: Timestamp) -> Result<&'a str, Wait> {
        let mut first = None;
        for at in self.chain(profile) {
            let account = self.account_of(at);
            let state = self.accounts.get(account);
            let shut = |until: Timestamp| match state {
                AccountState::Troubled { .. } => {
                    Wait::Backoff { until, cause: format!("passing errors of the provider of `{account}`") }
                }
                AccountState::Open | AccountState::UsedUp { .. } | AccountState::LoggedOut { .. } => {
                    Wait::Quota { until }
                }
            };
            let in_the_way = match self.leave(account, now) {
                Leave::Free => return Ok(at),
                Leave::One if self.at_work_on(account) == 0 => return Ok(at),
                Leave::One => shut(now),
                Leave::Never { until: Some(until) } => shut(until),
                Leave::Never { until: None } => {
                    let AccountState::LoggedOut { task: asker } = state else {
                        unreachable!("only a person ends such a wait");
                    };
                    Wait::Login { account: account.to_owned(), detail: String::new(), asker: *asker }
                }
            };
            first.get_or_insert(in_the_way);
        }
        Err(first.expect("a chain has a beginning"))
    }

    /// What may be done on an account now.
    #[must_use]
    pub fn leave(&self, account: &str, now: Timestamp) -> Leave {
        let asks = |id: TaskId| {
            let state = self.get(id).map(|task| &task.state);
            matches!(state, Some(State::Waiting { wait: Wait::Login { .. }, .. }))
        };
        match self.accounts.get(account) {
            // Whoever asked has gone on, and the journal was cut before it said so: one agent finds out.
            AccountState::LoggedOut { task } if !asks(*task) => Leave::One,
            state => state.leave(now),
        }
    }

    fn at_work_on(&self, account: &str) -> usize {
        let slots = self.holding[Standing::Slot as usize].iter().filter_map(|id| self.get(*id));
        slots.filter(|task| task.driving.as_ref().is_some_and(|it| it.account == account)).count()
    }

    /// What keeps a task that stands in line from going on, if anything does.
    #[must_use]
    pub fn held(&self, id: TaskId, limits: &Limits) -> Option<Wait> {
        let seat = self.seats.get(id.0 as usize)?;
        let (standing, _) = seat.place?;
        if let (Standing::Slot, Some(profile)) = (standing, &seat.profile) {
            if let Some(Spent { what, until, .. }) = &limits.spent {
                return Some(Wait::Budget { what: what.clone(), until: *until });
            }
            if let Err(wait) = self.open_route(profile, limits.now) {
                return Some(wait);
            }
        }
        self.is_full(standing, limits).then_some(Wait::Slot)
    }

    fn is_full(&self, standing: Standing, limits: &Limits) -> bool {
        u32::try_from(self.holding(standing)).unwrap_or(u32::MAX) >= limits.of(standing)
    }

    /// The next moment some task waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<(Timestamp, TaskId)> {
        self.due.first().copied()
    }

    /// The next moment an account opens that tasks stand in line for.
    #[must_use]
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        let shut = self.by_profile.keys().filter(|profile| self.open_route(profile, now).is_err());
        shut.flat_map(|profile| self.chain(profile))
            .filter_map(|at| match self.leave(self.account_of(at), now) {
                Leave::Never { until } => until,
                Leave::Free | Leave::One => None,
            })
            .min()
    }

    /// A profile and those that take over from it.
    fn chain<'a>(&'a self, profile: &'a str) -> impl Iterator<Item = &'a str> {
        let next = |at: &&'a str| self.routes.get(*at).and_then(|route| route.failover.as_deref());
        std::iter::successors(Some(profile), next).take(FAILOVERS_MAX)
    }

    /// A task that waits for an account although it, or one that takes over, can be worked on.
    #[must_use]
    pub fn rescued(&self, now: Timestamp) -> Option<TaskId> {
        self.account_waits.iter().copied().find(|id| {
            let route = self.get(*id).map(|task| self.open_route(Self::profile_of(task), now));
            // At the reset each is woken by its own time; before that, only where somebody else takes over or it is open.
            match (route, self.get(*id)) {
                (Some(Ok(profile)), Some(task)) => {
                    let account = task.driving.as_ref().map(|driving| driving.account.as_str());
                    let same = account == Some(self.account_of(profile));
                    // Whoever asks for a login goes on asking when another could take over: else nobody would hear of it.
                    let asks = matches!(task.state, State::Waiting { wait: Wait::Login { .. }, .. });
                    let own = profile == Self::profile_of(task);
                    let open = *self.accounts.get(self.account_of(profile)) == AccountState::Open;
                    (own || !asks) && (open || !same)
                }
                _ => false,
            }
        })
    }

    /// Tasks that wait for a gate to be mended.
    #[must_use]
    pub fn gate_waits(&self) -> Vec<TaskId> {
        self.gate_waits.iter().copied().collect()
    }

    /// Takes a task in, new or changed, and moves whoever it affects.
    pub fn put(&mut self, task: Task) {
        let id = task.id;
        let at = id.0 as usize;
        if self.seats.len() <= at {
            self.seats.resize_with(at + 1, Seat::default);
        }
        let after = Arc::new(task);
        let before = self.seats[at].task.replace(after.clone());

        if let Some(due) = before.as_ref().and_then(|task| task.due()) {
            self.due.remove(&(due, id));
        }
        if let Some(due) = after.due() {
            self.due.insert((due, id));
        }
        match &after.state {
            State::Waiting { wait: crate::Wait::GateBroken { .. }, .. } => self.gate_waits.insert(id),
            _ => self.gate_waits.remove(&id),
        };
        match &after.state {
            State::Waiting { wait: Wait::Quota { .. } | Wait::Login { .. }, .. } => {
                self.account_waits.insert(id)
            }
            _ => self.account_waits.remove(&id),
        };
        self.hold(&after);
        self.place(id);
        self.join_needs(before.as_deref(), &after);
        self.join_family(before.as_deref(), &after);
        if before.is_some_and(|task| task.unblocks()) != after.unblocks() {
            for dependent in self.dependents(id) {
                self.place(dependent);
            }
        }
    }

    /// Notes whom the task needs. How many a task unblocks is part of its score, so those move too.
    fn join_needs(&mut self, before: Option<&Task>, after: &Task) {
        let open = |task: &Task| !task.is_over() && !task.spec.needs.is_empty();
        let same =
            before.is_some_and(|task| task.spec.needs == after.spec.needs && open(task) == open(after));
        if same {
            return;
        }
        if let Some(before) = before.filter(|task| open(task)) {
            for need in &before.spec.needs {
                if let Some(dependents) = self.dependents.get_mut(need) {
                    dependents.remove(&after.id);
                    if dependents.is_empty() {
                        self.dependents.remove(need);
                    }
                }
            }
        }
        if open(after) {
            for need in &after.spec.needs {
                self.dependents.entry(*need).or_default().insert(after.id);
            }
        }
        for need in before.into_iter().flat_map(|task| &task.spec.needs).chain(&after.spec.needs) {
            self.place(*need);
        }
    }

    /// Notes whose part the task is. Its siblings move only when that tips the scale.
    fn join_family(&mut self, before: Option<&Task>, after: &Task) {
        let part = |task: &Task| task.spec.parent.map(|parent| (parent, task.unblocks()));
        let (was, is) = (before.and_then(part), part(after));
        if was == is {
            return;
        }
        for parent in [was, is].into_iter().flatten().map(|(parent, _)| parent).collect::<BTreeSet<_>>() {
            let family = self.families.entry(parent).or_default();
            let tipped = family.is_mostly_done();
            if let Some((_, done)) = was.filter(|(old, _)| *old == parent) {
                family.members.remove(&after.id);
                family.done -= usize::from(done);
            }
            if let Some((_, done)) = is.filter(|(new, _)| *new == parent) {
                family.members.insert(after.id);
                family.done += usize::from(done);
            }
            let moved = match family.is_mostly_done() == tipped {
                true => Vec::new(),
                false => family.members.iter().copied().collect(),
            };
            if family.members.is_empty() {
                self.families.remove(&parent);
            }
            for sibling in moved {
                self.place(sibling);
            }
        }
        self.place(after.id);
    }

    /// Notes what an active task holds.
    fn hold(&mut self, task: &Task) {
        let held = match &task.state {
            State::Active { doing, .. } => match doing {
                Doing::Queued { .. } => None, // it waits for others; the landing queue knows it
                Doing::Landing => Some(Standing::Landing),
                Doing::Checking { .. } => Some(Standing::Lane),
                Doing::Reporting => Some(Standing::Free),
                Doing::Preparing { .. } | Doing::Running { .. } => Some(Standing::Slot),
            },
            State::Draft
            | State::Ready { .. }
            | State::Waiting { .. }
            | State::Review { .. }
            | State::Ended(_) => None,
        };
        let seat = &mut self.seats[task.id.0 as usize];
        if let Some(old) = std::mem::replace(&mut seat.held, held) {
            self.holding[old as usize].remove(&task.id);
        }
        if let Some(standing) = held {
            self.holding[standing as usize].insert(task.id);
        }
    }

    /// Puts a task where it belongs: into one line, or into none.
    fn place(&mut self, id: TaskId) {
        let Some(task) = self.get(id) else { return };
        let place = self.wants(task).map(|standing| (standing, (Reverse(score(self, task)), id)));
        let for_slot = matches!(place, Some((Standing::Slot, _)));
        let same_profile = |seat: &Seat| match for_slot {
            true => seat.profile.as_deref() == Some(Self::profile_of(task)),
            false => seat.profile.is_none(),
        };
        if self.seats[id.0 as usize].place == place && same_profile(&self.seats[id.0 as usize]) {
            return;
        }
        let profile = for_slot.then(|| Self::profile_of(task).to_owned());
        let seat = &mut self.seats[id.0 as usize];
        let profile_before = std::mem::replace(&mut seat.profile, profile.clone());
        if let Some((standing, rank)) = std::mem::replace(&mut seat.place, place) {
            self.lines[standing as usize].remove(&rank);
            if let Some(profile) = profile_before
                && let Some(line) = self.by_profile.get_mut(&profile)
            {
                line.remove(&rank);
                if line.is_empty() {
                    self.by_profile.remove(&profile);
                }
            }
        }
        if let Some((standing, rank)) = place {
            self.lines[standing as usize].insert(rank);
            if let Some(profile) = profile {
                self.by_profile.entry(profile).or_default().insert(rank);
            }
        }
    }

    /// What a task stands in line for, if it may go on at all.
    fn wants(&self, task: &Task) -> Option<Standing> {
        let State::Ready { .. } = &task.state else { return None };
        let chosen = self.only.as_ref().is_none_or(|only| only.contains(&task.id));
        if !chosen || !task.spec.needs.iter().all(|need| self.is_met(*need)) {
            return None;
        }
        let flow = self.flow_ref(task)?;
        let step = flow.step(task.next_step(flow))?;
        Some(match &step.kind {
            StepKind::Agent { .. } => Standing::Slot,
            StepKind::Verify => Standing::Lane,
            StepKind::Land if may_land(task) => Standing::Free, // it stands in the landing queue
            StepKind::Land => Standing::Lane,
            StepKind::Report | StepKind::Ask { .. } => Standing::Free,
            StepKind::Check { .. }
            | StepKind::Review
            | StepKind::Split
            | StepKind::Target
            | StepKind::Converge => Standing::Free, // granted only to be told that it is not performed
        })
    }
}

/// How soon a task should go on; more is sooner.
///
/// 1. What was begun is finished first. 2. Priority, a hundred a level. 3. `next` and `later`. 4. `critical` 50,
///    `quick-win` 30. 5. Ten for each task it unblocks. 6. Twenty when more than half of its siblings are done.
/// 7. Fifteen less for each retry.
#[must_use]
pub fn score(world: &World, task: &Task) -> i64 {
    let mut score = 0;
    if task.attempt.0 > 0 {
        score += 10_000;
    }
    score += (5 - i64::from(task.spec.priority)) * 100;
    for tag in &task.spec.tags {
        score += match tag.as_str() {
            "next" => 200,
            "later" => -200,
            "critical" => 50,
            "quick-win" => 30,
            _ => 0,
        };
    }
    score +=
        10 * i64::try_from(world.dependents.get(&task.id).map_or(0, BTreeSet::len)).unwrap_or(i64::MAX / 20);
    if task.spec.parent.and_then(|parent| world.families.get(&parent)).is_some_and(Family::is_mostly_done) {
        score += 20;
    }
    score - 15 * i64::from(task.counters.retries)
}

/// Who may go on next, if anyone may.
#[must_use]
pub fn plan(world: &World, limits: &Limits) -> Option<Grant> {
    Standing::ALL.into_iter().find_map(|standing| {
        if world.is_full(standing, limits) {
            return None;
        }
        if standing == Standing::Slot {
            return slot(world, limits);
        }
        let (_, task) = world.lines[standing as usize].first()?;
        let profile = World::profile_of(world.get(*task)?).to_owned();
        Some(Grant { task: *task, standing, profile })
    })
}

/// Who may run an agent next: the first in line whose account, or one that takes over, is open.
fn slot(world: &World, limits: &Limits) -> Option<Grant> {
    if limits.spent.is_some() {
        return None;
    }
    let fronts = world.by_profile.iter().filter_map(|(profile, line)| {
        let route = world.open_route(profile, limits.now).ok()?;
        Some((line.first()?, route))
    });
    let ((_, task), profile) = fronts.min_by_key(|(rank, _)| **rank)?;
    Some(Grant { task: *task, standing: Standing::Slot, profile: profile.to_owned() })
}

const FAILOVERS_MAX: usize = 8; // profiles that lead round in a circle must not hang the engine
