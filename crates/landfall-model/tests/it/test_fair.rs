//! The scheduler on random worlds, against one that looks at everything: limits, needs, order, nobody starved, no slot idle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::gate::CheckOutcome;
use landfall_model::{
    AccountState, AgentAssignment, AgentDriveStyle, AttemptPhase, Commit, ConcurrencyLimits, EndCode,
    EndKind, Ending, Grant, GrantKind, LandingRecord, PathPattern, ProfileRoute, RepoArea, ScheduleLimits,
    SessionStart, StartFilter, StepName, Task, TaskId, TaskSpec, TaskState, Timestamp, Tree, WaitReason,
    World, plan,
};

use crate::flows_used::loops;
use crate::sim::Rng;
use crate::story::{command, report};

const MINUTE: u64 = 60_000;
const PATHS: [&str; 8] = [
    "src/a.rs",
    "src/b.rs",
    "src/*.rs",
    "web/",
    "web/deep/x.ts",
    "docs/**/*.md",
    "docs/guide/a.md",
    "Makefile",
];
const PROFILES: [&str; 3] = ["default", "second", "third"];
const ACCOUNTS: [&str; 2] = ["main", "other"];

/// A world, and what it should do: found out by looking at every task.
struct Yard {
    rng: Rng,
    world: World,
    limits: ScheduleLimits,
    routes: BTreeMap<String, ProfileRoute>,
    caps: ConcurrencyLimits,
    filter: StartFilter,
    last: u32,
    grants: u32,
    passed: u32,
    seed: u64,
}

impl Yard {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let route = |account: &str, failover: Option<&str>| ProfileRoute {
            account: account.to_owned(),
            failover: failover.map(str::to_owned),
        };
        let routes = BTreeMap::from([
            ("default".to_owned(), route("main", Some("third"))),
            ("second".to_owned(), route("main", None)),
            ("third".to_owned(), route("other", None)),
        ]);
        let mut capped = |names: &[&str]| -> BTreeMap<String, u32> {
            let cap =
                |name: &&str| (rng.below(2) == 0).then(|| ((*name).to_owned(), 1 + rng.below(2) as u32));
            names.iter().filter_map(cap).collect()
        };
        let (profiles, accounts) = (capped(&PROFILES), capped(&ACCOUNTS));
        let mut area = |name: &str, path: &str| {
            let slots = 1 + rng.below(2) as u32;
            (rng.below(3) > 0).then(|| RepoArea { name: name.to_owned(), paths: vec![touch(path)], slots })
        };
        let areas = [area("web", "web"), area("sources", "src/**/*.rs"), area("docs", "docs/")];
        let caps = ConcurrencyLimits { profiles, accounts, areas: areas.into_iter().flatten().collect() };
        let limits = ScheduleLimits {
            slots: 1 + rng.below(4) as u32,
            lanes: 1,
            now: Timestamp(1_000_000_000),
            spent: None,
        };
        let mut world = World::new(BTreeMap::from([("loop".to_owned(), loops())]), "loop");
        world.set_routes(routes.clone());
        world.set_caps(caps.clone());
        let filter = StartFilter::default();
        Self { rng, world, limits, routes, caps, filter, last: 0, grants: 0, passed: 0, seed }
    }

    fn task(&self, id: u32) -> Task {
        (**self.world.get(TaskId(id)).expect("it was added")).clone()
    }

    fn put(&mut self, task: Task) {
        self.world.put_task(task);
        self.check_rebuilt();
    }

    /// What was kept up to date is what would be made anew.
    fn check_rebuilt(&self) {
        let mut anew = World::new(BTreeMap::from([("loop".to_owned(), loops())]), "loop");
        anew.set_routes(self.routes.clone());
        for (account, state) in self.world.accounts().closed_accounts() {
            anew.set_account(account, state.clone());
        }
        for task in self.world.tasks().collect::<Vec<_>>().into_iter().rev() {
            anew.put_task((**task).clone());
        }
        anew.set_caps(self.caps.clone());
        anew.set_filter(self.filter.clone());
        for (id, files) in self.world.observed_files() {
            anew.set_observed(id, files.to_vec());
        }
        assert!(anew == self.world, "seed {}: the kept world is not the one made anew", self.seed);
    }

    fn touches(&mut self) -> BTreeSet<PathPattern> {
        (0..self.rng.below(3)).map(|_| touch(PATHS[self.rng.below(PATHS.len())])).collect()
    }

    fn spec(&mut self, id: u32) -> TaskSpec {
        let mut spec = TaskSpec::new("a task").expect("a title");
        let tags = ["critical", "quick-win", "next", "later", "parser"];
        spec.tags = (0..self.rng.below(2)).map(|_| tags[self.rng.below(5)].parse().expect("a tag")).collect();
        spec.priority = 4 + self.rng.below(3) as u8;
        let older = |rng: &mut Rng| TaskId(1 + rng.below(id.max(2) as usize - 1) as u32);
        spec.needs =
            (0..self.rng.below(6) / 4).map(|_| older(&mut self.rng)).filter(|need| need.0 != id).collect();
        spec.parent = (self.rng.below(3) == 0).then(|| TaskId(1 + self.rng.below(3) as u32));
        spec.agent = (self.rng.below(2) == 0).then(|| PROFILES[self.rng.below(3)].to_owned());
        spec.touches = self.touches();
        spec
    }

    fn add(&mut self) {
        self.last += 1;
        let spec = self.spec(self.last);
        self.put(Task::from_spec(TaskId(self.last), spec, self.limits.now));
    }

    fn ready(&self, mut task: Task, step: Option<&str>) -> Task {
        task.state = TaskState::Ready { next: step.map(StepName::new), since: self.limits.now };
        task
    }

    fn ended(mut task: Task, kind: EndKind) -> Task {
        let code = if kind == EndKind::Done { EndCode::Landed } else { EndCode::Machine };
        task.state = TaskState::Ended(Ending { kind, code, detail: String::new() });
        task
    }

    fn landed(&self, mut task: Task) -> Task {
        let commit = Commit::new("c0");
        task.landed = Some(LandingRecord {
            commit: commit.clone(),
            base_before: commit,
            tree: Tree::new("t0"),
            proof: String::new(),
            at: self.limits.now,
        });
        Self::ended(task, EndKind::Done)
    }

    /// Something happens to a task that is under way. `well`: nothing goes wrong.
    fn goes_on(&mut self, id: u32, well: bool) {
        let task = self.task(id);
        let TaskState::Active { doing, .. } = &task.state else { return };
        let next = match (doing, self.rng.below(8)) {
            (AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, 0) if !well => {
                Self::ended(task, EndKind::Failed)
            }
            (AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, 1) if !well => {
                let (wait, then) = (WaitReason::Pause, StepName::new("work"));
                Task { state: TaskState::Waiting { wait, then, since: self.limits.now }, ..task }
            }
            (AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, 2) => {
                self.ready(task, Some("work"))
            }
            (AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, _) => {
                self.ready(task, Some("verify"))
            }
            (AttemptPhase::Checking { .. }, 0) => self.ready(task, Some("work")),
            (AttemptPhase::Checking { .. }, _) => {
                let gate = Some(report(vec![command("tests", CheckOutcome::Pass)]));
                self.ready(Task { gate, cleared: true, ..task }, Some("land"))
            }
            (_, _) => self.landed(task),
        };
        self.put(next);
    }

    fn happens(&mut self) {
        let id = 1 + self.rng.below(self.last.max(1) as usize) as u32;
        match self.rng.below(12) {
            0 | 1 => self.add(),
            2 => {
                let mut task = self.task(id);
                if matches!(task.state, TaskState::Ready { .. }) {
                    task.spec = self.spec(id);
                    self.put(task);
                }
            }
            3 => {
                let files = (0..self.rng.below(4)).map(|_| {
                    let files = ["src/a.rs", "web/deep/x.ts", "docs/guide/a.md", "LICENSE", "src/new.rs"];
                    PathPattern::for_file(files[self.rng.below(5)]).expect("a path")
                });
                let files = files.collect();
                self.world.set_observed(TaskId(id), files);
                self.check_rebuilt();
            }
            4 => {
                let account = ACCOUNTS[self.rng.below(2)];
                let state = match self.rng.below(2) {
                    0 => AccountState::Open,
                    _ => AccountState::UsedUp {
                        until: self.limits.now.plus_ms(self.rng.below(20) as u64 * MINUTE),
                        guessed: false,
                    },
                };
                self.world.set_account(account, state);
            }
            5 => {
                let mut filter = StartFilter::default();
                match self.rng.below(6) {
                    0 => drop(filter.parents.insert(TaskId(1))),
                    1 => drop(filter.tags_in.insert("parser".parse().expect("a tag"))),
                    2 => drop(filter.tags_out.insert("critical".parse().expect("a tag"))),
                    3 => filter.only = Some((1..=id).map(TaskId).collect()),
                    _ => {}
                }
                self.filter = filter.clone();
                self.world.set_filter(filter);
                self.check_rebuilt();
            }
            6 => {
                let task = self.task(id);
                if matches!(&task.state, TaskState::Ended(ending) if ending.kind == EndKind::Failed) {
                    let mut task = self.ready(task, None);
                    task.counters.retries += 1;
                    self.put(task);
                }
            }
            _ => {
                let busy: Vec<u32> = self.world.active_tasks().map(|task| task.id.0).collect();
                if !busy.is_empty() {
                    let id = busy[self.rng.below(busy.len())];
                    self.goes_on(id, false);
                }
            }
        }
    }

    /// Everybody who may start does, and each start is looked at.
    fn grants(&mut self) {
        for _ in 0..1_000 {
            let grant = plan(&self.world, &self.limits);
            assert_eq!(grant, plan(&self.world.clone(), &self.limits), "the same world, the same plan");
            let wanted = self.wanted();
            let Some(Grant { task, standing, profile }) = grant else {
                assert_eq!(wanted, None, "seed {}: a slot is idle", self.seed);
                self.check_told();
                return;
            };
            let mut after = self.task(task.0);
            assert!(
                matches!(after.state, TaskState::Ready { .. }),
                "seed {}: {task} is not ready",
                self.seed
            );
            for need in &after.spec.needs {
                let landed = self.world.get(*need).is_some_and(|need| need.unblocks_dependents());
                assert!(landed, "seed {}: {task} starts before {need} has landed", self.seed);
            }
            let (step, doing) = match standing {
                GrantKind::Slot => {
                    let wanted = wanted.expect("a slot is granted only to whoever should have it");
                    assert_eq!((task, profile.as_str()), (wanted.0, wanted.1.as_str()), "seed {}", self.seed);
                    self.check_limits(&after, &profile);
                    let account = self.routes[&profile].account.clone();
                    after.driving = Some(AgentAssignment { profile, account, style: AgentDriveStyle::Fresh });
                    let talk = SessionStart::New;
                    ("work", AttemptPhase::Running { iteration: 1, since: self.limits.now, stop: None, talk })
                }
                GrantKind::Lane => ("verify", AttemptPhase::Checking { stop: None }),
                GrantKind::Landing | GrantKind::Free => ("land", AttemptPhase::Landing),
            };
            after.attempt = after.attempt.next();
            after.flow = Some(loops());
            after.state = TaskState::Active { step: StepName::new(step), doing };
            self.put(after);
            self.grants += 1;
        }
        panic!("seed {}: grants without end", self.seed);
    }

    /// Who waits is told why, and whoever could start is not told to wait.
    fn check_told(&self) {
        let line = self.line();
        for task in self.world.tasks() {
            let Some(wait) = self.world.hold_reason(task.id, &self.limits) else { continue };
            if matches!(wait, WaitReason::Turn(landfall_model::TurnBlocker::Overlap { .. })) {
                assert!(self.meets_busy(task), "seed {}: {} overlaps with nobody", self.seed, task.id);
            }
        }
        for (task, _) in &line {
            assert!(
                self.world.hold_reason(task.id, &self.limits).is_some(),
                "seed {}: {} waits for nothing",
                self.seed,
                task.id
            );
        }
        let ready = self.world.tasks().filter(|task| self.may_go_on(task)).count();
        assert_eq!(self.world.ready_count(), ready, "seed {}", self.seed);
    }

    fn check_limits(&self, task: &Task, profile: &str) {
        let driven = |by: &dyn Fn(&AgentAssignment) -> bool| {
            self.at_work().filter(|task| task.driving.as_ref().is_some_and(by)).count() as u32
        };
        let seed = self.seed;
        assert!((self.at_work().count() as u32) < self.limits.slots, "seed {seed}: more agents than slots");
        if let Some(cap) = self.caps.profiles.get(profile) {
            assert!(driven(&|it| it.profile == profile) < *cap, "seed {seed}: too many of `{profile}`");
        }
        let account = &self.routes[profile].account;
        if let Some(cap) = self.caps.accounts.get(account) {
            assert!(driven(&|it| it.account == *account) < *cap, "seed {seed}: too many on `{account}`");
        }
        for area in &self.caps.areas {
            let within = self.at_work().filter(|task| self.is_in(task, area)).count() as u32;
            assert!(!self.is_in(task, area) || within < area.slots, "seed {seed}: too many in {}", area.name);
        }
    }

    fn is_in(&self, task: &Task, area: &RepoArea) -> bool {
        self.files(task).iter().any(|file| area.paths.iter().any(|path| path.overlaps_with(file)))
    }

    fn at_work(&self) -> impl Iterator<Item = &Arc<Task>> {
        let agent = |task: &&Arc<Task>| {
            matches!(
                task.state,
                TaskState::Active {
                    doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                    ..
                }
            )
        };
        self.world.tasks().filter(agent)
    }

    fn observed(&self, id: TaskId) -> Vec<PathPattern> {
        self.world
            .observed_files()
            .filter(|(task, _)| *task == id)
            .flat_map(|(_, files)| files.to_vec())
            .collect()
    }

    fn files(&self, task: &Task) -> Vec<PathPattern> {
        task.spec.touches.iter().cloned().chain(self.observed(task.id)).collect()
    }

    /// The files of everybody on the way to the base.
    fn busy(&self) -> Vec<PathPattern> {
        let mut busy = Vec::new();
        for task in self.world.tasks().filter(|task| task.landed.is_none()) {
            let observed = self.observed(task.id);
            match &task.state {
                TaskState::Active {
                    doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                    ..
                } => {
                    busy.extend(self.files(task));
                }
                TaskState::Ready { next: Some(next), .. } if next.as_str() == "work" => {}
                TaskState::Active { .. } | TaskState::Ready { next: Some(_), .. } if observed.is_empty() => {
                    busy.extend(task.spec.touches.iter().cloned());
                }
                TaskState::Active { .. } | TaskState::Ready { next: Some(_), .. } => busy.extend(observed),
                _ => {}
            }
        }
        busy
    }

    fn meets_busy(&self, task: &Task) -> bool {
        let busy = self.busy();
        self.files(task).iter().any(|file| busy.iter().any(|other| other.overlaps_with(file)))
    }

    fn may_go_on(&self, task: &Task) -> bool {
        let TaskState::Ready { next, .. } = &task.state else { return false };
        let StartFilter { only, starts, resting, parents, tags_in, tags_out } = &self.filter;
        let has = |tags: &BTreeSet<landfall_model::Tag>| task.spec.tags.iter().any(|tag| tags.contains(tag));
        let parent = |it: &TaskId| Some(*it) == task.spec.parent || *it == task.id;
        let admitted = next.is_some()
            || starts.as_ref().is_none_or(|starts| starts.contains(&task.id))
                && !resting.contains(&task.id)
                && (parents.is_empty() || parents.iter().any(parent))
                && (tags_in.is_empty() || has(tags_in))
                && !has(tags_out);
        let named = only.as_ref().is_none_or(|only| only.contains(&task.id));
        named
            && admitted
            && task
                .spec
                .needs
                .iter()
                .all(|need| self.world.get(*need).is_some_and(|it| it.unblocks_dependents()))
    }

    /// The points of a task, from the words of the rule.
    fn points(&self, task: &Task) -> i64 {
        let mut points = 100 * (5 - i64::from(task.spec.priority)) - 15 * i64::from(task.counters.retries);
        for (tag, weight) in [("next", 200), ("later", -200), ("critical", 50), ("quick-win", 30)] {
            points += if task.spec.tags.iter().any(|it| it.as_str() == tag) { weight } else { 0 };
        }
        let needs_it = |other: &&Arc<Task>| !other.is_over() && other.spec.needs.contains(&task.id);
        points += 10 * self.world.tasks().filter(needs_it).count() as i64;
        if let Some(parent) = task.spec.parent {
            let parts: Vec<_> = self.world.tasks().filter(|it| it.spec.parent == Some(parent)).collect();
            let done = parts.iter().filter(|it| it.unblocks_dependents()).count();
            points += if 2 * done > parts.len() { 20 } else { 0 };
        }
        points - self.ready_since(task).0.div_euclid(60_000)
    }

    fn ready_since(&self, task: &Task) -> Timestamp {
        let TaskState::Ready { since, .. } = &task.state else { panic!("{} is not ready", task.id) };
        let landed = |need: &TaskId| self.world.get(*need).and_then(|need| Some(need.landed.as_ref()?.at));
        task.spec.needs.iter().filter_map(landed).fold(*since, Timestamp::max)
    }

    /// Everybody who wants an agent, in order.
    fn line(&self) -> Vec<(&Arc<Task>, bool)> {
        let begun = |task: &Task| matches!(task.state, TaskState::Ready { next: Some(_), .. });
        let wants = |task: &&Arc<Task>| {
            let next = match &task.state {
                TaskState::Ready { next, .. } => next.as_ref().is_none_or(|next| next.as_str() == "work"),
                _ => false,
            };
            next && self.may_go_on(task)
        };
        let mut line: Vec<_> = self.world.tasks().filter(wants).map(|task| (task, begun(task))).collect();
        line.sort_by_key(|(task, begun)| (Reverse(*begun), Reverse(self.points(task)), task.id));
        line
    }

    /// The profile a task could start by now.
    fn by(&self, task: &Task) -> Option<String> {
        let mut at = World::profile_of(task).to_owned();
        let profile = loop {
            let ProfileRoute { account, failover } = &self.routes[&at];
            let open = match self.world.accounts().get(account) {
                AccountState::Open => true,
                AccountState::UsedUp { until, .. } if *until <= self.limits.now => {
                    !self.at_work().any(|task| task.driving.as_ref().is_some_and(|it| it.account == *account))
                }
                _ => false,
            };
            if open {
                break at;
            }
            at = failover.clone()?;
        };
        let driven = |by: &dyn Fn(&AgentAssignment) -> bool| {
            self.at_work().filter(|task| task.driving.as_ref().is_some_and(by)).count() as u32
        };
        let account = &self.routes[&profile].account;
        let room = |cap: Option<&u32>, used: u32| cap.is_none_or(|cap| used < *cap);
        let free = |area: &RepoArea| {
            !self.is_in(task, area)
                || (self.at_work().filter(|it| self.is_in(it, area)).count() as u32) < area.slots
        };
        let fits = room(self.caps.profiles.get(&profile), driven(&|it| it.profile == profile))
            && room(self.caps.accounts.get(account), driven(&|it| it.account == *account))
            && self.caps.areas.iter().all(free);
        fits.then_some(profile)
    }

    /// Who should get a slot: the first who meets nobody, or else the first.
    fn wanted(&mut self) -> Option<(TaskId, String)> {
        if self.at_work().count() as u32 >= self.limits.slots {
            return None;
        }
        let able: Vec<_> =
            self.line().into_iter().filter_map(|(task, begun)| Some((task, begun, self.by(task)?))).collect();
        let mut taken = self.busy();
        for (passed, (task, begun, profile)) in (0..).zip(&able) {
            let files = self.files(task);
            if *begun || !files.iter().any(|file| taken.iter().any(|other| other.overlaps_with(file))) {
                let wanted = (task.id, profile.clone());
                self.passed += passed;
                return Some(wanted);
            }
            taken.extend(files); // whoever is passed over keeps its files
        }
        able.first().map(|(task, _, profile)| (task.id, profile.clone()))
    }
}

fn touch(text: &str) -> PathPattern {
    text.parse().expect("a path")
}

#[test]
fn every_limit_need_and_order_holds_on_random_worlds() {
    let (mut grants, mut passed) = (0, 0);
    for seed in 0..60 {
        let mut yard = Yard::new(seed);
        yard.add();
        for _ in 0..120 {
            yard.limits.now = yard.limits.now.plus_ms(yard.rng.below(30) as u64 * MINUTE / 2);
            yard.happens();
            yard.grants();
        }
        grants += yard.grants;
        passed += yard.passed;
    }
    assert!(
        grants > 2_000 && passed > 100,
        "{grants} grants, {passed} passed over: too few to mean anything"
    );
}

#[test]
fn when_nothing_goes_wrong_any_more_everybody_lands() {
    for seed in 0..20 {
        let mut yard = Yard::new(1_000 + seed);
        yard.add();
        for _ in 0..100 {
            yard.happens();
            yard.grants();
        }
        // From now on nothing comes and nothing breaks.
        yard.filter = StartFilter::default();
        yard.world.set_filter(StartFilter::default());
        ACCOUNTS.iter().for_each(|account| yard.world.set_account(account, AccountState::Open));
        for id in 1..=yard.last {
            let task = yard.task(id);
            if matches!(task.state, TaskState::Waiting { .. })
                || matches!(&task.state, TaskState::Ended(it) if it.kind == EndKind::Failed)
            {
                let task = yard.ready(task, None);
                yard.put(task);
            }
        }
        for round in 0.. {
            assert!(round < 2_000, "seed {}: somebody starves", yard.seed);
            yard.limits.now = yard.limits.now.plus_ms(MINUTE);
            yard.grants();
            if yard.world.tasks().all(|task| task.unblocks_dependents()) {
                break;
            }
            let busy: Vec<u32> = yard.world.active_tasks().map(|task| task.id.0).collect();
            assert!(!busy.is_empty(), "seed {}: nobody is at work although tasks are open", yard.seed);
            let id = busy[yard.rng.below(busy.len())];
            yard.goes_on(id, true);
        }
    }
}

/// One slot, ten minutes a task, and every ten minutes something more urgent: how long the least urgent waits.
#[test]
fn the_least_urgent_starts_when_its_age_outweighs_the_rest() {
    let mut yard = Yard::new(0);
    yard.caps = ConcurrencyLimits::default();
    yard.world.set_caps(ConcurrencyLimits::default());
    yard.limits.slots = 1;
    let begin = yard.limits.now;
    let tags = |words: &[&str]| words.iter().map(|word| word.parse().expect("a tag")).collect();
    let mut modest = TaskSpec::new("can wait").expect("a title");
    (modest.priority, modest.tags) = (9, tags(&["later"]));
    let mut urgent = TaskSpec::new("at once").expect("a title");
    (urgent.priority, urgent.tags) = (0, tags(&["next", "critical"]));
    yard.world.put_task(Task::from_spec(TaskId(1), modest, begin));
    let mut last = 1;
    // -400 and -200 against 500, 200 and 50.
    let bound = begin.plus_ms((1_350 + 10) * MINUTE);
    while matches!(yard.task(1).state, TaskState::Ready { .. }) {
        assert!(yard.limits.now <= bound, "it should have started");
        last += 1;
        yard.world.put_task(Task::from_spec(TaskId(last), urgent.clone(), yard.limits.now));
        let grant = plan(&yard.world, &yard.limits).expect("the slot is free");
        let task = yard.task(grant.task.0);
        let next = yard.landed(task);
        yard.world.put_task(next);
        yard.limits.now = yard.limits.now.plus_ms(10 * MINUTE);
    }
    assert!(last > 130, "it waited for the urgent ones: {last}");
}

/// Two slots and small tasks without end, all below one folder: whoever wants the whole folder gets its turn.
#[test]
fn a_broad_task_is_not_starved_by_narrow_ones() {
    let mut yard = Yard::new(0);
    yard.caps = ConcurrencyLimits::default();
    yard.world.set_caps(ConcurrencyLimits::default());
    yard.limits.slots = 2;
    let spec = |touches: &str| {
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.touches.insert(touch(touches));
        spec
    };
    yard.world.put_task(Task::from_spec(TaskId(1), spec("src/one.rs"), yard.limits.now));
    yard.grants();
    yard.world.put_task(Task::from_spec(TaskId(2), spec("src/"), yard.limits.now));
    for id in 3..40 {
        let path = if id % 2 == 0 { format!("src/f{id}.rs") } else { format!("web/f{id}.ts") };
        yard.world.put_task(Task::from_spec(TaskId(id), spec(&path), yard.limits.now));
    }
    let mut overtaken = Vec::new();
    for _ in 0..3 {
        let grant = plan(&yard.world, &yard.limits).expect("a slot is free");
        overtaken.push(grant.task.0);
        let task = yard.task(grant.task.0);
        let next = yard.landed(task);
        yard.world.put_task(next);
    }
    assert_eq!(overtaken, [3, 5, 7], "those of another folder overtake it, those of its own do not");
    let first = yard.task(1);
    let next = yard.landed(first);
    yard.world.put_task(next);
    let grant = plan(&yard.world, &yard.limits).expect("a slot is free");
    assert_eq!(grant.task, TaskId(2), "nobody is in its way any more");
}
