//! Who may go on now: every task with its place in line, kept in order as tasks change.
//!
//! [`World::put`] costs the logarithm of the backlog and the number of tasks it touches; [`plan`] reads the fronts of
//! the lines. There is a line for each pair of a profile and a set of areas, so that who cannot start for a limit never
//! stands before who can: their number follows from the settings. So the cost of a grant does not grow with the backlog.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, btree_set};
use std::sync::Arc;

use thiserror::Error;

use crate::account::{AccountPermit, AccountState, Accounts};
use crate::budget::ExhaustedBudget;
use crate::caps::{ConcurrencyClaim, ConcurrencyLimits, ConcurrencyUsage, RepoAreaSet};
use crate::filter::StartFilter;
use crate::flow::{Flow, StepKind, TrackerOperation};
use crate::recover::may_land;
use crate::recovery::PendingRecovery;
use crate::seeded_bugs::{self, SeededBug};
use crate::status::{TurnBlocker, WaitReason};
use crate::task::{AttemptPhase, Task, TaskState};
use crate::touch::{self, ActiveFileIndex, PathPattern};
use crate::{AgentDriveStyle, TaskId, TaskSpec, Timestamp};

/// What a task needs in order to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrantKind {
    /// The right to move the base.
    Landing,
    /// Nothing that is scarce.
    Free,
    /// A checkout to verify in.
    Lane,
    /// Leave to run an agent.
    Slot,
}

impl GrantKind {
    /// Every kind, in the order they are served: what is nearest to landed goes first.
    pub const ALL: [Self; 4] = [Self::Landing, Self::Free, Self::Lane, Self::Slot];
}

/// How much of each there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleLimits {
    /// Agents at once.
    pub slots: u32,
    /// Verifications at once.
    pub lanes: u32,
    /// The moment it is asked for: accounts open by the clock.
    pub now: Timestamp,
    /// A budget that is used up: no agent starts.
    pub spent: Option<ExhaustedBudget>,
}

impl ScheduleLimits {
    fn limit_for(&self, standing: GrantKind) -> u32 {
        match standing {
            GrantKind::Landing => 1, // the base has one tip
            GrantKind::Free => u32::MAX,
            GrantKind::Lane => self.lanes,
            GrantKind::Slot => self.slots,
        }
    }
}

/// Leave for one task to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// This task.
    pub task: TaskId,
    /// With this.
    pub standing: GrantKind,
    /// By this profile: its own, or the one that takes over.
    pub profile: String,
}

/// Where a profile leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRoute {
    /// The account it works on.
    pub account: String,
    /// The profile that takes over while that account is shut.
    pub failover: Option<String>,
}

/// The built-in flow for agents that run a loop of their own.
const SELF_DRIVEN: &str = "watched";

/// A flow in which an agent that runs a loop of its own would run all of it in each of several steps.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "flow `{flow}` has {agent_steps} steps for agents, and an agent driven in style `{}` does the whole task in each", .style.word()
)]
pub struct FlowMismatch {
    /// The flow.
    pub flow: String,
    /// How the agent's profile drives it.
    pub style: AgentDriveStyle,
    /// Steps of the flow that an agent works in.
    pub agent_steps: usize,
    /// A flow that is made for such agents.
    pub other: Option<String>,
}

/// A place in line. Less is sooner: 1. what was begun, 2. more points, 3. the older task.
///
/// Points are the score and one more for every minute that a task has been ready. All of them age alike, so what counts is
/// the score less the minute a task became ready at: that does not change as time passes, and no line is ever sorted again.
/// A task that became ready later overtakes only by a higher score, and never one that has waited so many minutes longer:
/// nobody starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskRank {
    begun: Reverse<bool>,
    points: Reverse<i64>,
    task: TaskId,
}

/// All tasks, and who stands where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// By number: numbers are dense, because they are given in order and never used again.
    seats: Vec<ScheduledTask>,
    flows: BTreeMap<String, Arc<Flow>>,
    default_flow: String,
    filter: StartFilter,
    dependents: BTreeMap<TaskId, BTreeSet<TaskId>>,
    families: BTreeMap<TaskId, SubtaskGroup>,
    /// Who reads the work of others.
    reviewer: Option<String>,
    judge: Option<String>,
    /// Where profiles lead; one that is not here has an account of its own name.
    routes: BTreeMap<String, ProfileRoute>,
    accounts: Accounts,
    caps: ConcurrencyLimits,
    /// The lines; whoever wants a slot stands in `by_profile` instead.
    lines: [BTreeSet<TaskRank>; 4],
    /// The line for slots, by profile and by the areas that are touched.
    by_profile: BTreeMap<Arc<str>, BTreeMap<RepoAreaSet, BTreeSet<TaskRank>>>,
    /// How many stand in line for a slot.
    wanting_slots: usize,
    /// What agents at work count against.
    charged: ConcurrencyUsage,
    /// Files that were seen to change, of work that has not landed.
    observed: BTreeMap<TaskId, Vec<PathPattern>>,
    /// Files of work under way.
    busy: ActiveFileIndex,
    holding: [BTreeSet<TaskId>; 4],
    due: BTreeSet<(Timestamp, TaskId)>,
    gate_waits: BTreeSet<TaskId>,
    /// Tasks that wait for an account: its reset, or a login.
    account_waits: BTreeSet<TaskId>,
}

/// A task and what it has.
#[derive(Debug, Clone, Default, PartialEq)]
struct ScheduledTask {
    task: Option<Arc<Task>>,
    /// Its place in line.
    place: Option<(GrantKind, TaskRank)>,
    /// The profile and the areas it stands in line with, if it is for a slot.
    line: Option<(Arc<str>, RepoAreaSet)>,
    /// What it holds.
    held: Option<GrantKind>,
    /// What its agent counts against, if one is at work.
    charge: Option<Box<ConcurrencyClaim>>,
    /// The areas it touches.
    areas: RepoAreaSet,
}

/// The parts of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SubtaskGroup {
    members: BTreeSet<TaskId>,
    done: usize,
}

impl SubtaskGroup {
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

    /// Restricts new starts. It looks at every task once.
    pub fn set_filter(&mut self, filter: StartFilter) {
        self.filter = filter;
        for id in self.tasks().map(|task| task.id).collect::<Vec<_>>() {
            self.place_in_line(id);
        }
    }

    /// What restricts new starts.
    #[must_use]
    pub fn filter(&self) -> &StartFilter {
        &self.filter
    }

    /// Limits how many agents may be at work by profile, account and area. It looks at every task once.
    pub fn set_caps(&mut self, caps: ConcurrencyLimits) {
        self.caps = caps;
        for id in self.tasks().map(|task| task.id).collect::<Vec<_>>() {
            self.note_location(id);
        }
    }

    /// How many could start or go on now, or as soon as there is room: ready, with all needs landed, and admitted.
    #[must_use]
    pub fn ready_count(&self) -> usize {
        GrantKind::ALL.iter().map(|standing| self.waiting_for(*standing)).sum()
    }

    /// Notes the files that the work of a task was seen to change, instead of those seen before. They are forgotten when
    /// it lands or is over.
    pub fn set_observed(&mut self, id: TaskId, files: Vec<PathPattern>) {
        let open = self.get(id).is_some_and(|task| !task.is_over() && task.landed.is_none());
        match touch::condense_files(files) {
            files if open && !files.is_empty() => {
                self.observed.insert(id, files);
            }
            _ => {
                self.observed.remove(&id);
            }
        }
        self.note_location(id);
    }

    /// The files that were seen to change, by task.
    pub fn observed_files(&self) -> impl Iterator<Item = (TaskId, &[PathPattern])> {
        self.observed.iter().map(|(id, files)| (*id, files.as_slice()))
    }

    /// The flow a task follows, or would follow.
    #[must_use]
    pub fn flow_of(&self, task: &Task) -> Option<Arc<Flow>> {
        self.flow_ref(task).cloned()
    }

    fn flow_ref<'a>(&'a self, task: &'a Task) -> Option<&'a Arc<Flow>> {
        task.flow.as_ref().or_else(|| self.flow_for(&task.spec))
    }

    /// The flow that a task with these words follows once it starts.
    #[must_use]
    pub fn flow_for(&self, spec: &TaskSpec) -> Option<&Arc<Flow>> {
        self.flows.get(spec.flow.as_deref().unwrap_or(&self.default_flow))
    }

    /// The flow for a task with these words whose profile drives agents in the style `own`, where it is another than they say: a
    /// profile whose agent runs a loop of its own gets a flow that is made for that.
    ///
    /// # Errors
    /// When a person chose a flow (`is_chosen`) in which such an agent would run its whole loop in every step.
    pub fn self_driven_flow(
        &self,
        spec: &TaskSpec,
        own: AgentDriveStyle,
        is_chosen: bool,
    ) -> Result<Option<String>, FlowMismatch> {
        let Some(flow) = self.flow_for(spec) else { return Ok(None) };
        if !flow.style_for(own).runs_own_loop() || flow.is_self_driven() {
            return Ok(None);
        }
        let made_for_it = |name: &str| self.flows.get(name).is_some_and(|flow| flow.is_self_driven());
        let other = [self.default_flow.as_str(), SELF_DRIVEN].into_iter().find(|name| made_for_it(name));
        let other = other.or_else(|| self.flows.keys().map(String::as_str).find(|name| made_for_it(name)));
        match other {
            Some(other) if !is_chosen => Ok(Some(other.to_owned())),
            _ if flow.suits_style(own) => Ok(None),
            other => Err(FlowMismatch {
                flow: flow.name.clone(),
                style: own,
                agent_steps: flow.agent_steps(),
                other: other.map(ToOwned::to_owned),
            }),
        }
    }

    /// The needs of a task that do not let it start yet.
    #[must_use]
    pub fn unmet_needs(&self, task: &Task) -> Vec<TaskId> {
        task.spec.needs.iter().filter(|id| !self.is_met(**id)).copied().collect()
    }

    fn is_met(&self, need: TaskId) -> bool {
        self.get(need).is_some_and(|need| need.unblocks_dependents())
    }

    /// Tasks that need this one and are not over.
    #[must_use]
    pub fn dependents(&self, id: TaskId) -> Vec<TaskId> {
        self.dependents.get(&id).into_iter().flatten().copied().collect()
    }

    /// How many tasks hold this.
    #[must_use]
    pub fn holder_count(&self, standing: GrantKind) -> usize {
        self.holding[standing as usize].len()
    }

    /// Tasks with something under way.
    pub fn active_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.holding.iter().flatten().filter_map(|id| self.get(*id))
    }

    /// How many stand in line for this.
    #[must_use]
    pub fn waiting_for(&self, standing: GrantKind) -> usize {
        match standing {
            GrantKind::Landing | GrantKind::Free | GrantKind::Lane => self.lines[standing as usize].len(),
            GrantKind::Slot => self.wanting_slots,
        }
    }

    /// Says where profiles lead.
    pub fn set_routes(&mut self, routes: BTreeMap<String, ProfileRoute>) {
        self.routes = routes;
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Notes how an account stands.
    pub fn set_account(&mut self, account: &str, state: AccountState) {
        self.accounts.set_state(account, state);
    }

    /// The profile a task asks for.
    #[must_use]
    pub fn profile_of(task: &Task) -> &str {
        task.spec.agent.as_deref().unwrap_or("default")
    }

    /// Says who judges, if not the profile that did the work.
    pub fn set_judge(&mut self, judge: Option<String>) {
        self.judge = judge;
    }

    /// Says who reads the work of others, if not the profile that made it.
    pub fn set_reviewer(&mut self, reviewer: Option<String>) {
        self.reviewer = reviewer;
    }

    /// The profile a task goes on with: its own, its step's, or that of the judge or the reviewer.
    #[must_use]
    pub fn profile_for<'a>(&'a self, task: &'a Task) -> &'a str {
        let step = self.flow_ref(task).and_then(|flow| flow.find_step(task.next_step(flow)));
        match (&self.reviewer, step.map(|step| &step.kind)) {
            (Some(reviewer), Some(StepKind::Review)) => reviewer,
            // By default somebody else judges than did the work.
            (_, Some(StepKind::Check { .. } | StepKind::Target)) if self.judge.is_some() => {
                self.judge.as_deref().expect("just seen")
            }
            _ => {
                let own = step.and_then(|step| step.agent.as_deref());
                let own =
                    own.filter(|_| task.spec.agent.is_none()).and_then(|name| self.sized_profile(name, task));
                // What crashes or falls silent there is done by the profile of the task after all.
                let own = own.filter(|_| task.counters.restarts == 0 && task.counters.stalls_step == 0);
                own.unwrap_or_else(|| Self::profile_of(task))
            }
        }
    }

    /// The profile of a step for work as large as this task: `spec-l` for a task of size L if there is one, else `spec` if there
    /// is that.
    fn sized_profile<'a>(&'a self, name: &str, task: &Task) -> Option<&'a str> {
        let routed = task.issue.as_ref().and_then(|issue| issue.routed).and_then(|routed| routed.size);
        let size = routed.or(task.spec.size);
        let sized = size.map(|size| format!("{name}-{}", size.word().to_lowercase()));
        let known = |name: &str| self.routes.get_key_value(name).map(|(name, _)| name.as_str());
        sized.and_then(|sized| known(&sized)).or_else(|| known(name))
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
    pub fn open_route<'a>(&'a self, profile: &'a str, now: Timestamp) -> Result<&'a str, WaitReason> {
        let mut first = None;
        for at in self.failover_chain(profile) {
            let account = self.account_of(at);
            let state = self.accounts.get(account);
            let shut = |until: Timestamp| match state {
                AccountState::Troubled { .. } => WaitReason::Backoff {
                    until,
                    cause: format!("passing errors of the provider of `{account}`"),
                },
                AccountState::UsedUp { guessed, .. } => WaitReason::Quota { until, guessed: *guessed },
                AccountState::Open | AccountState::LoggedOut { .. } => {
                    WaitReason::Quota { until, guessed: false }
                }
            };
            let in_the_way = match self.account_permit(account, now) {
                AccountPermit::Free => return Ok(at),
                AccountPermit::One if self.charged.count_on_account(account) == 0 => return Ok(at),
                AccountPermit::One => shut(now),
                AccountPermit::Never { until: Some(until) } => shut(until),
                AccountPermit::Never { until: None } => {
                    let AccountState::LoggedOut { task: asker } = state else {
                        unreachable!("only a person ends such a wait");
                    };
                    WaitReason::Login { account: account.to_owned(), detail: String::new(), asker: *asker }
                }
            };
            first.get_or_insert(in_the_way);
        }
        Err(first.expect("a chain has a beginning"))
    }

    /// What may be done on an account now.
    #[must_use]
    pub fn account_permit(&self, account: &str, now: Timestamp) -> AccountPermit {
        let asks = |id: TaskId| {
            let state = self.get(id).map(|task| &task.state);
            matches!(state, Some(TaskState::Waiting { wait: WaitReason::Login { .. }, .. }))
        };
        match self.accounts.get(account) {
            // Whoever asked has gone on, and the journal was cut before it said so: one agent finds out.
            AccountState::LoggedOut { task } if !asks(*task) => AccountPermit::One,
            state => AccountPermit::for_state(state, now),
        }
    }

    /// What keeps a task that stands in line from going on, if anything does.
    #[must_use]
    pub fn hold_reason(&self, id: TaskId, limits: &ScheduleLimits) -> Option<WaitReason> {
        let seat = self.seats.get(id.0 as usize)?;
        let (standing, _) = seat.place?;
        let full = self.is_full(standing, limits).then_some(WaitReason::Slot);
        let (GrantKind::Slot, Some((profile, areas))) = (standing, &seat.line) else { return full };
        if let Some(ExhaustedBudget { what, until, .. }) = &limits.spent {
            return Some(WaitReason::Budget { what: what.clone(), until: *until });
        }
        let route = match self.open_route(profile, limits.now) {
            Ok(route) => route,
            Err(wait) => return Some(wait),
        };
        let turn = self.full_limit(route).or_else(|| self.charged.full_area(&self.caps, *areas));
        // Where there is room, it starts in spite of the others: see `slot`.
        let turn = turn.or_else(|| full.as_ref().and_then(|_| self.overlapping_task(id)));
        turn.map(WaitReason::Turn).or(full)
    }

    /// Those at the front of the lines who are held back by something of their own, not just by too few slots.
    #[must_use]
    pub fn held_back_tasks(&self, limits: &ScheduleLimits) -> BTreeMap<TaskId, WaitReason> {
        let lines =
            self.by_profile.iter().flat_map(|(profile, lines)| lines.values().map(|line| (line, &**profile)));
        let front = merge_lines(&lines.collect::<Vec<_>>()).take(LOOK_AHEAD);
        let held = front.filter_map(|(rank, _)| Some((rank.task, self.hold_reason(rank.task, limits)?)));
        held.filter(|(_, wait)| matches!(wait, WaitReason::Turn(_))).collect()
    }

    /// Which limit keeps another agent of this profile from starting, if one does.
    fn full_limit(&self, profile: &str) -> Option<TurnBlocker> {
        self.charged.full_limit(&self.caps, profile, self.account_of(profile))
    }

    /// Who is under way with the files of a task that would start anew. What was begun has its turn already.
    fn overlapping_task(&self, id: TaskId) -> Option<TurnBlocker> {
        let task = self.get(id).filter(|task| !is_begun(task))?;
        let (with, path) = self.busy.find_overlap(self.touched_files(task))?;
        Some(TurnBlocker::Overlap { with, path })
    }

    /// All files a task is thought or was seen to touch.
    fn touched_files<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a PathPattern> + Clone {
        task.spec.touches.iter().chain(self.observed.get(&task.id).into_iter().flatten())
    }

    fn is_full(&self, standing: GrantKind, limits: &ScheduleLimits) -> bool {
        let more = u32::from(seeded_bugs::is_active(SeededBug::OneSlotMore) && standing == GrantKind::Slot);
        u32::try_from(self.holder_count(standing)).unwrap_or(u32::MAX)
            >= limits.limit_for(standing).saturating_add(more)
    }

    /// The next moment some task waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<(Timestamp, TaskId)> {
        self.due.iter().copied().find(|(_, id)| self.filter.admits_continuation(*id))
    }

    /// The next moment an account opens that tasks stand in line for.
    #[must_use]
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        let shut = self.by_profile.keys().filter(|profile| self.open_route(profile, now).is_err());
        shut.flat_map(|profile| self.failover_chain(profile))
            .filter_map(|at| match self.account_permit(self.account_of(at), now) {
                AccountPermit::Never { until } => until,
                AccountPermit::Free | AccountPermit::One => None,
            })
            .min()
    }

    /// A profile and those that take over from it.
    fn failover_chain<'a>(&'a self, profile: &'a str) -> impl Iterator<Item = &'a str> {
        let next = |at: &&'a str| self.routes.get(*at).and_then(|route| route.failover.as_deref());
        std::iter::successors(Some(profile), next).take(FAILOVERS_MAX)
    }

    /// A task that waits for an account although it, or one that takes over, can be worked on.
    #[must_use]
    pub fn find_rescuable_task(&self, now: Timestamp) -> Option<TaskId> {
        self.account_waits.iter().copied().find(|id| {
            let route = self.get(*id).map(|task| self.open_route(self.profile_for(task), now));
            // At the reset each is woken by its own time; before that, only where somebody else takes over or it is open.
            match (route, self.get(*id)) {
                (Some(Ok(profile)), Some(task)) => {
                    let account = task.driving.as_ref().map(|driving| driving.account.as_str());
                    let same = account == Some(self.account_of(profile));
                    // Whoever asks for a login goes on asking when another could take over: else nobody would hear of it.
                    let asks =
                        matches!(task.state, TaskState::Waiting { wait: WaitReason::Login { .. }, .. });
                    let own = profile == self.profile_for(task);
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
    pub fn put_task(&mut self, task: Task) {
        let id = task.id;
        let at = id.0 as usize;
        if self.seats.len() <= at {
            self.seats.resize_with(at + 1, ScheduledTask::default);
        }
        let after = Arc::new(task);
        let before = self.seats[at].task.replace(after.clone());

        if let Some(due) = before.as_ref().and_then(|task| task.due_at()) {
            self.due.remove(&(due, id));
        }
        if let Some(due) = after.due_at() {
            self.due.insert((due, id));
        }
        match &after.state {
            TaskState::Waiting { wait: crate::WaitReason::GateBroken { .. }, .. } => {
                self.gate_waits.insert(id)
            }
            _ => self.gate_waits.remove(&id),
        };
        match &after.state {
            TaskState::Waiting { wait: WaitReason::Quota { .. } | WaitReason::Login { .. }, .. } => {
                self.account_waits.insert(id)
            }
            _ => self.account_waits.remove(&id),
        };
        if after.is_over() || after.landed.is_some() {
            self.observed.remove(&id);
        }
        self.note_holding(&after);
        self.note_location(id);
        self.index_needs(before.as_deref(), &after);
        self.index_family(before.as_deref(), &after);
        if before.is_some_and(|task| task.unblocks_dependents()) != after.unblocks_dependents() {
            for dependent in self.dependents(id) {
                self.place_in_line(dependent);
            }
        }
    }

    /// Notes whom the task needs. How many a task unblocks is part of its score, so those move too.
    fn index_needs(&mut self, before: Option<&Task>, after: &Task) {
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
            self.place_in_line(*need);
        }
    }

    /// Notes whose part the task is. Its siblings move only when that tips the scale.
    fn index_family(&mut self, before: Option<&Task>, after: &Task) {
        let part = |task: &Task| task.spec.parent.map(|parent| (parent, task.unblocks_dependents()));
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
                self.place_in_line(sibling);
            }
        }
        self.place_in_line(after.id);
    }

    /// Notes what an active task holds.
    fn note_holding(&mut self, task: &Task) {
        let held = match &task.state {
            TaskState::Active { doing, .. } => match doing {
                AttemptPhase::Queued { .. } => None, // it waits for others; the landing queue knows it
                AttemptPhase::Landing => Some(GrantKind::Landing),
                AttemptPhase::Checking { .. } => Some(GrantKind::Lane),
                AttemptPhase::Reporting => Some(GrantKind::Free),
                AttemptPhase::Exchanging { .. } => Some(exchange_standing(task)),
                AttemptPhase::Recovering { .. } => Some(recover_standing(task).unwrap_or(GrantKind::Free)),
                AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. } => Some(GrantKind::Slot),
            },
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => None,
        };
        let seat = &mut self.seats[task.id.0 as usize];
        if let Some(old) = std::mem::replace(&mut seat.held, held) {
            self.holding[old as usize].remove(&task.id);
        }
        if let Some(standing) = held {
            self.holding[standing as usize].insert(task.id);
        }
    }

    /// Notes which files and areas a task touches, what its agent counts against, and where it stands.
    fn note_location(&mut self, id: TaskId) {
        let Some(task) = self.get(id).cloned() else { return };
        let areas = match self.caps.areas.is_empty() {
            true => RepoAreaSet::default(),
            false => RepoAreaSet::from_touches(&self.caps, self.touched_files(&task)),
        };
        let declared = task.spec.touches.iter();
        let observed = self.observed.get(&id);
        let nothing = BTreeSet::new();
        match self.work_location(&task) {
            WorkLocation::Agent => self.busy.set_touches(id, declared.chain(observed.into_iter().flatten())),
            // What is past its agent changes no more than what was seen: the guess has served.
            WorkLocation::Queue if let Some(observed) = observed => {
                self.busy.set_touches(id, observed.iter())
            }
            WorkLocation::Queue => self.busy.set_touches(id, declared),
            WorkLocation::No => self.busy.set_touches(id, nothing.iter()),
        }
        let seat = &self.seats[id.0 as usize];
        let charge = (seat.held == Some(GrantKind::Slot)).then(|| {
            let profile = task.driving.as_ref().map_or_else(|| self.profile_for(&task), |it| &it.profile);
            let account = task.driving.as_ref().map_or_else(|| self.account_of(profile), |it| &it.account);
            Box::new(ConcurrencyClaim { profile: profile.to_owned(), account: account.to_owned(), areas })
        });
        if seat.charge != charge {
            if let Some(charge) = &seat.charge {
                self.charged.release_claim(charge);
            }
            if let Some(charge) = &charge {
                self.charged.take(charge);
            }
        }
        let seat = &mut self.seats[id.0 as usize];
        (seat.areas, seat.charge) = (areas, charge);
        self.place_in_line(id);
    }

    /// Whether the work of a task is under way: on its way to the base, by the engine's own doing.
    fn work_location(&self, task: &Task) -> WorkLocation {
        match &task.state {
            _ if task.landed.is_some() => WorkLocation::No,
            TaskState::Active {
                doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                ..
            } => WorkLocation::Agent,
            TaskState::Active { .. } => WorkLocation::Queue, // checked, queued, landed: all without an agent
            TaskState::Ready { .. } if is_begun(task) && !task.is_held() => {
                let kind = self.flow_ref(task).and_then(|flow| flow.find_step(task.next_step(flow)));
                match kind.map(|step| &step.kind) {
                    Some(StepKind::Agent { .. }) | None => WorkLocation::No,
                    Some(_) => WorkLocation::Queue,
                }
            }
            // Nobody knows when a person or an account lets it go on: the others do not wait for that.
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => WorkLocation::No,
        }
    }

    /// Puts a task where it belongs: into one line, or into none.
    fn place_in_line(&mut self, id: TaskId) {
        let Some(task) = self.get(id) else { return };
        let place = self.wanted_grant(task).map(|standing| (standing, rank_task(self, task)));
        let seat = &self.seats[id.0 as usize];
        let line = matches!(place, Some((GrantKind::Slot, _))).then(|| (self.profile_for(task), seat.areas));
        let same_line = seat.line.as_ref().map(|(profile, areas)| (&**profile, *areas)) == line;
        if seat.place == place && same_line {
            return;
        }
        let known = |profile| self.by_profile.get_key_value(profile).map(|(known, _)| known.clone());
        let line = line.map(|(profile, areas)| (known(profile).unwrap_or_else(|| profile.into()), areas));
        let seat = &mut self.seats[id.0 as usize];
        let line_before = std::mem::replace(&mut seat.line, line.clone());
        match (std::mem::replace(&mut seat.place, place), line_before) {
            (Some((_, rank)), Some((profile, areas))) => self.leave_line(&profile, areas, &rank),
            (Some((standing, rank)), None) => {
                self.lines[standing as usize].remove(&rank);
            }
            (None, _) => {}
        }
        match (place, line) {
            (Some((_, rank)), Some((profile, areas))) => {
                self.by_profile.entry(profile).or_default().entry(areas).or_default().insert(rank);
                self.wanting_slots += 1;
            }
            (Some((standing, rank)), None) => {
                self.lines[standing as usize].insert(rank);
            }
            (None, _) => {}
        }
    }

    fn leave_line(&mut self, profile: &str, areas: RepoAreaSet, rank: &TaskRank) {
        let Some(lines) = self.by_profile.get_mut(profile) else { return };
        if let Some(line) = lines.get_mut(&areas) {
            self.wanting_slots -= usize::from(line.remove(rank));
            if line.is_empty() {
                lines.remove(&areas);
            }
        }
        if lines.is_empty() {
            self.by_profile.remove(profile);
        }
    }

    /// What a task stands in line for, if it may go on at all.
    fn wanted_grant(&self, task: &Task) -> Option<GrantKind> {
        let TaskState::Ready { .. } = &task.state else { return None };
        if task.is_held() {
            return None;
        }
        let admitted = match is_begun(task) {
            true => self.filter.admits_continuation(task.id),
            false => self.filter.admits_task(&task.spec, task.id),
        };
        let needs = !(seeded_bugs::is_active(SeededBug::NeedIgnoredOnRetry) && task.counters.retries > 0);
        if !admitted || needs && !task.spec.needs.iter().all(|need| self.is_met(*need)) {
            return None;
        }
        let flow = self.flow_ref(task)?;
        let step = flow.find_step(task.next_step(flow))?;
        if let Some(standing) = recover_standing(task) {
            return Some(standing);
        }
        Some(match &step.kind {
            StepKind::Agent { .. } | StepKind::Review | StepKind::Check { .. } | StepKind::Target => {
                GrantKind::Slot
            }
            StepKind::Verify => GrantKind::Lane,
            StepKind::Land if may_land(task) => GrantKind::Free, // it stands in the landing queue
            StepKind::Land => GrantKind::Lane,
            StepKind::Report | StepKind::Ask { .. } => GrantKind::Free,
            StepKind::Converge => GrantKind::Free,
            StepKind::Split | StepKind::Tracker { .. } => exchange_standing(task),
        })
    }
}

/// What is taken by what is due about a failure: an agent that looks is an agent at work.
fn recover_standing(task: &Task) -> Option<GrantKind> {
    Some(match task.recoveries.pending_recovery(task.step()?)? {
        PendingRecovery::Diagnosis => GrantKind::Slot,
        PendingRecovery::Ops(_) => GrantKind::Free,
    })
}

/// What an exchange with a tracker takes: holding promises against what is there runs commands, the rest only asks.
fn exchange_standing(task: &Task) -> GrantKind {
    let step = task.step().and_then(|step| task.flow.as_ref()?.find_step(step));
    match step.map(|step| &step.kind) {
        Some(StepKind::Tracker { act: TrackerOperation::Accept }) => GrantKind::Lane,
        _ => GrantKind::Free,
    }
}

/// Where the work of a task is on its way to the base.
enum WorkLocation {
    /// Not on its way.
    No,
    /// With an agent: files may come.
    Agent,
    /// With the engine: it is verified and landed as it is.
    Queue,
}

/// Whether it is in the middle of its flow. A person's retry begins anew, with its score.
fn is_begun(task: &Task) -> bool {
    let on_the_way = matches!(&task.state, TaskState::Ready { next: Some(_), .. });
    on_the_way || task.landed.is_some() || task.landing.is_some()
}

/// How soon a task should go on; more is sooner.
///
/// 1. Priority, a hundred a level. 2. `next` and `later`, two hundred. 3. `critical` 50, `quick-win` 30. 4. Ten for each
///    task that needs it and is not over. 5. Twenty when more than half of its parent's parts are done.
/// 6. Fifteen less for each retry.
#[must_use]
pub fn score_task(world: &World, task: &Task) -> i64 {
    let mut score = (5 - i64::from(task.spec.priority)) * 100;
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
    if task
        .spec
        .parent
        .and_then(|parent| world.families.get(&parent))
        .is_some_and(SubtaskGroup::is_mostly_done)
    {
        score += 20;
    }
    score - 15 * i64::from(task.counters.retries)
}

/// The place of a ready task in its line.
#[must_use]
pub fn rank_task(world: &World, task: &Task) -> TaskRank {
    let since = match &task.state {
        TaskState::Ready { since, .. } => *since,
        TaskState::Draft
        | TaskState::Active { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => task.created,
    };
    // With needs, it became ready when the last of them landed.
    let landed = |need: &TaskId| world.get(*need).and_then(|need| Some(need.landed.as_ref()?.at));
    let since = task.spec.needs.iter().filter_map(landed).fold(since, Timestamp::max);
    let spoken_to = if is_begun(task) && !task.messages.is_empty() { POINTS_OF_A_WORD } else { 0 };
    let minute = since.0.div_euclid(MS_A_POINT);
    let minute = if seeded_bugs::is_active(SeededBug::NewestFirst) { -minute } else { minute };
    let points = score_task(world, task) - minute + spoken_to;
    TaskRank { begun: Reverse(is_begun(task)), points: Reverse(points), task: task.id }
}

/// Whose agent a person speaks to goes on before the others who were begun: nobody keeps them waiting.
const POINTS_OF_A_WORD: i64 = 1_000_000_000;
const MS_A_POINT: i64 = 60_000; // a minute; a level of priority is worth a hundred of them

/// Who may go on next, if anyone may.
#[must_use]
pub fn plan(world: &World, limits: &ScheduleLimits) -> Option<Grant> {
    GrantKind::ALL.into_iter().find_map(|standing| {
        if world.is_full(standing, limits) {
            return None;
        }
        if standing == GrantKind::Slot {
            return next_slot_grant(world, limits);
        }
        let TaskRank { task, .. } = world.lines[standing as usize].first()?;
        let profile = world.profile_for(world.get(*task)?).to_owned();
        Some(Grant { task: *task, standing, profile })
    })
}

/// How many workspaces should stand ready before anybody asks for one: as many as stand in line for a slot, up to all that
/// could be granted at once. Whoever goes on has a workspace already, and counts all the same: one spare too many is taken
/// by the next.
#[must_use]
pub fn count_wanted_spares(world: &World, limits: &ScheduleLimits) -> usize {
    if limits.spent.is_some() {
        return 0; // no agent starts, and disk is worth more
    }
    let slots = usize::try_from(limits.slots).unwrap_or(usize::MAX);
    world.waiting_for(GrantKind::Slot).min(slots).min(SPARES_MAX)
}

const SPARES_MAX: usize = 8; // a checkout each; agents rarely end more at once

/// Who may run an agent next: the first in line whose account, or one that takes over, is open, with room for one more of
/// its profile, account and areas, and whose files nobody has who is under way.
///
/// Whoever is passed over keeps its files: nobody behind it who would touch them is taken. So those in its way only grow
/// fewer, and it starts when they have landed; at most as many overtake it as start meanwhile. When all would meet others,
/// the first starts after all: a guess never leaves a slot idle.
fn next_slot_grant(world: &World, limits: &ScheduleLimits) -> Option<Grant> {
    if limits.spent.is_some() {
        return None;
    }
    let lines = open_lines(world, limits);
    let fronts = lines.iter().filter_map(|(line, profile)| Some((line.first()?, *profile)));
    let (first, profile) = fronts.min_by_key(|(rank, _)| **rank)?;
    let (task, profile) = match world.overlapping_task(first.task) {
        None => (first.task, profile),
        Some(_) => first_without_overlap(world, &lines).unwrap_or((first.task, profile)),
    };
    Some(Grant { task, standing: GrantKind::Slot, profile: profile.to_owned() })
}

/// The lines with room for one more, each with the profile that would start.
fn open_lines<'a>(world: &'a World, limits: &ScheduleLimits) -> Vec<(&'a BTreeSet<TaskRank>, &'a str)> {
    let mut open = Vec::new();
    for (profile, lines) in &world.by_profile {
        let Ok(route) = world.open_route(profile, limits.now) else { continue };
        if world.full_limit(route).is_some() {
            continue;
        }
        let room = |areas: &RepoAreaSet| world.charged.full_area(&world.caps, *areas).is_none();
        open.extend(lines.iter().filter(|(areas, _)| room(areas)).map(|(_, line)| (line, route)));
    }
    open
}

/// The first in these lines who meets nobody's files: neither of work under way nor of whoever stands before it.
fn first_without_overlap<'a>(
    world: &World,
    lines: &[(&'a BTreeSet<TaskRank>, &'a str)],
) -> Option<(TaskId, &'a str)> {
    let mut kept = ActiveFileIndex::default();
    for (TaskRank { task: id, .. }, profile) in merge_lines(lines).take(LOOK_AHEAD) {
        let task = world.get(id)?;
        if world.overlapping_task(id).is_none()
            && (is_begun(task) || kept.find_overlap(world.touched_files(task)).is_none())
        {
            return Some((id, profile));
        }
        kept.set_touches(id, world.touched_files(task));
    }
    None
}

/// Everybody in these lines, as if it were one.
fn merge_lines<'a>(
    lines: &[(&'a BTreeSet<TaskRank>, &'a str)],
) -> impl Iterator<Item = (TaskRank, &'a str)> + use<'a> {
    let mut rests: Vec<_> = lines.iter().map(|(line, profile)| (line.iter(), *profile)).collect();
    let next = |(rest, _): &mut (btree_set::Iter<'a, TaskRank>, &str), at| Some(Reverse((*rest.next()?, at)));
    let mut fronts: BinaryHeap<_> =
        rests.iter_mut().enumerate().filter_map(|(at, rest)| next(rest, at)).collect();
    std::iter::from_fn(move || {
        let Reverse((rank, at)) = fronts.pop()?;
        fronts.extend(next(&mut rests[at], at));
        Some((rank, rests[at].1))
    })
}

const FAILOVERS_MAX: usize = 8; // profiles that lead round in a circle must not hang the engine

/// How many in line are looked at for one whose files nobody has. When all of them would meet others, one further back might
/// not; the first starts all the same, as if nothing were known about files.
const LOOK_AHEAD: usize = 64;
