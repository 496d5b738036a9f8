//! The machine: workspaces, agents, checks and landings, carried out as the engine's own threads do. It goes on when the
//! engine does not.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::base_gate::{BaseCheckResult, BaseNews};
use landfall_model::conflict::{ConflictingFile as Clashed, FileConflictKind};
use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::queue::{BatchExclusion, BatchMember, BatchPrefix, HoldReason};
use landfall_model::seeded_bugs::{self, SeededBug};
use landfall_model::{
    AgentExit, AgentRunEvidence, AgentRunTraces, AgentUsage, Attempt, BaseMover, BudgetScope, BudgetUse as _,
    ChangeConcern, ConcernCode, ContextUsage, ControlSignal, Digest, Effect, EndedRun, EngineEvent,
    LandingCandidate, News, QueueEffect, QueueNews, SessionStart, Signal, Spending, Task, TaskId, Tree,
};

use landfall_engine::core::CoreEnvironment as _;

use super::git::{By, Clash, Files, Oid, SETTINGS, Truth, name, oid, tree_name, tree_number};
use super::outside::key;
use super::world::{Mail, Order, Sim};

pub type Key = (TaskId, Attempt, u32);

#[derive(Default)]
pub struct Host {
    pub workspaces: BTreeMap<TaskId, Workspace>,
    pub agents: BTreeMap<Key, Agent>,
    /// Agents that were told to end. It ends with the engine.
    pub stops: BTreeSet<(TaskId, Attempt)>,
    pub sessions: u32,
    /// Sessions that an agent does not know any more.
    pub gone: BTreeSet<String>,
    /// Which machine this is.
    pub environment: u32,
    /// The person's checkout has changes that are not committed.
    pub dirty: bool,
    /// Trees that a check called red although they are green.
    pub slandered: BTreeSet<usize>,
    /// Bases that a person has taken back.
    pub rewritten: Vec<Oid>,
    /// Work that was moved over to a rewritten branch, and what it was.
    pub moved: BTreeMap<Oid, Oid>,
    /// Landings whose independent check disagrees, however often it looks.
    pub mismatched: BTreeSet<Oid>,
}

/// What can be done about work before it is merged, without asking anybody.
enum Settled {
    AsItIs,
    Anew(Oid),
    Conflict(Clash),
}

#[derive(Clone)]
pub struct Workspace {
    pub base: Oid,
    pub head: Oid,
    /// What lies around in it, not committed.
    pub dirt: BTreeMap<u8, u32>,
}

#[derive(Clone)]
pub struct Agent {
    pub killed: bool,
    pub end: Option<EndedRun>,
    pub kind: Option<Kind>,
    pub talk: SessionStart,
}

/// What an agent came to, as it knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It said something that ends or continues the work by its own word.
    Own,
    /// Its time was up.
    Deadline,
    /// It crashed, vanished or never ran.
    Fell,
    /// It was silent.
    Stalled,
    /// Its provider had a passing trouble.
    Transient,
    /// None of these: nothing is counted as a failure.
    Blameless,
}

impl Sim {
    // ── orders ───────────────────────────────────────────────────────────────────────────────────────────

    pub fn perform(&mut self, effect: Effect) {
        self.check_order(&effect);
        if let Effect::Kill { task, attempt, .. } = &effect {
            self.host.stops.insert((*task, *attempt));
            for ((of, under, _), agent) in &mut self.host.agents {
                if of == task && under == attempt {
                    agent.killed = true;
                }
            }
            return;
        }
        self.orders.push(Order::Task(effect));
    }

    pub fn perform_queue(&mut self, effect: QueueEffect) {
        let QueueEffect::Abandon { batch } = effect else {
            return self.orders.push(Order::Queue(effect));
        };
        let of = |order: &Order| matches!(order, Order::Queue(QueueEffect::Check { batch: of, .. }) if *of == batch);
        let Some(at) = self.orders.iter().position(of) else { return };
        let order = self.orders.swap_remove(at);
        // A check that is ended looks like one that failed; nobody waits for it.
        if let Order::Queue(QueueEffect::Check { count, base, heads, prefix, .. }) = order
            && self.rng.once_in(2)
        {
            let head = heads.last().map(oid).expect("somebody is in it");
            let mut report = self.blank(oid(&base), head, oid(&prefix.commit));
            report.commands.push(command(CheckOutcome::Fail));
            self.tell_queue(QueueNews::Checked { batch, count, report });
        }
    }

    fn tell(&mut self, task: TaskId, news: News) {
        self.mail.push_back(Mail::News(task, Box::new(news)));
    }

    fn tell_queue(&mut self, news: QueueNews) {
        self.mail.push_back(Mail::Queue(Box::new(news)));
    }

    /// Carries an order out. What becomes of it is told by mail.
    pub fn execute(&mut self, order: Order) {
        match order {
            Order::Task(effect) => self.execute_task(effect),
            Order::Follow(task, attempt, iteration, deadline_ms) => {
                let end = self.agent_ends((task, attempt, iteration), deadline_ms);
                self.tell(task, News::AgentEnded(end));
            }
            Order::Queue(QueueEffect::Build { batch, on, members }) => {
                let news = match self.trouble() {
                    true => Err("no room".to_owned()),
                    false => self.build(batch, on.as_ref().map(oid), &members),
                };
                self.tell_queue(news.unwrap_or_else(|detail| QueueNews::Failed { batch, detail }));
            }
            Order::Queue(QueueEffect::Check { batch, count, base, heads, prefix }) => {
                let news = match self.trouble() {
                    true => QueueNews::Failed { batch, detail: "no room".to_owned() },
                    false => {
                        let head = heads.last().map(oid).expect("somebody is in it");
                        let report = self.verify(oid(&base), head, oid(&prefix.commit));
                        QueueNews::Checked { batch, count, report }
                    }
                };
                self.tell_queue(news);
            }
            Order::Queue(effect @ QueueEffect::Land { .. }) => self.land(effect),
            Order::Queue(QueueEffect::Abandon { .. }) => {}
            Order::Swap(effect) => self.swap(effect),
            Order::Publish => self.publish(),
            Order::CheckBase => self.check_base(),
            Order::RebuildSwap { merged, ours } => {
                if self.git.set_base(merged, Some(ours), By::Rebuild).is_ok() {
                    self.check_moved();
                    let (from, to) = (Some(name(ours)), name(merged));
                    self.mail.push_back(Mail::Fact(EngineEvent::BaseMoved {
                        from,
                        to,
                        by: BaseMover::Rebuild,
                    }));
                }
                self.publish();
            }
        }
    }

    /// Runs the checks on the base as it is.
    fn check_base(&mut self) {
        let known = self.core().base_commit().cloned();
        let (found, news) = match self.look() {
            Err(_) => (None, BaseNews::Failed("no base".to_owned())),
            Ok((base, ..)) if self.trouble() => (Some(name(base)), BaseNews::Failed("no room".to_owned())),
            Ok((base, ..)) => (Some(name(base)), BaseNews::Checked(Box::new(self.verify(base, base, base)))),
        };
        self.mail.push_back(Mail::BaseChecked(Box::new(BaseCheckResult { known, found, news })));
    }

    fn trouble(&mut self) -> bool {
        self.faults.machine && self.rng.once_in(25)
    }

    fn execute_task(&mut self, effect: Effect) {
        let id = effect.task();
        let task = self.core().expect_task(id);
        match effect {
            Effect::Prepare { attempt, .. }
            | Effect::Check { attempt, .. }
            | Effect::Report { attempt, .. }
                if self.faults.machine && self.rng.once_in(25) =>
            {
                let hopeless = self.rng.once_in(10);
                self.tell(id, News::MachineFailed { attempt, detail: "no room".to_owned(), hopeless });
            }
            Effect::Prepare { attempt, fresh, .. } => {
                let news = match self.prepare(&task, fresh) {
                    Ok(base) => News::WorkspaceReady { attempt, base: name(base) },
                    Err(detail) => News::MachineFailed { attempt, detail, hopeless: false },
                };
                self.tell(id, news);
            }
            // Who sits with the run cannot be made out: it is given up, and ended first.
            Effect::Spawn { attempt, iteration, .. } if self.faults.machine && self.rng.once_in(40) => {
                if self.host.agents.contains_key(&(id, attempt, iteration)) {
                    self.abandon((id, attempt, iteration));
                }
                let detail = "the record of the run cannot be read".to_owned();
                self.tell(id, News::MachineFailed { attempt, detail, hopeless: false });
            }
            Effect::Spawn { attempt, iteration, deadline_ms, talk, .. } => {
                self.spawn(&task, (id, attempt, iteration), talk);
                self.orders.push(Order::Follow(id, attempt, iteration, deadline_ms));
            }
            Effect::Kill { .. } => {}
            Effect::Exchange { .. } | Effect::Recover { .. } => {
                unreachable!("no flow here follows an issue")
            }
            Effect::Check { attempt, head, .. } => {
                if self.faults.machine && self.rng.once_in(60) {
                    self.host.workspaces.remove(&id); // somebody tidied up
                }
                let news = self.check(&task, attempt, head.as_ref().map(oid));
                let failed = |detail| News::MachineFailed { attempt, detail, hopeless: false };
                self.tell(id, news.unwrap_or_else(failed));
            }
            Effect::Report { attempt, .. } => {
                let certificate = task.landed.is_some().then(|| Digest::new("certificate"));
                self.tell(id, News::Reported { attempt, report: Digest::new("report"), certificate });
            }
            Effect::Tidy { .. } => {
                self.host.workspaces.remove(&id);
                self.tell(id, News::WorkspaceRemoved { kept: None });
            }
        }
    }

    fn prepare(&mut self, task: &Task, fresh: bool) -> Result<Oid, String> {
        if let Some(standing) = self.host.workspaces.get(&task.id) {
            if task.workspace.is_some() || !fresh {
                return Ok(standing.base);
            }
            self.host.workspaces.remove(&task.id);
        }
        let base = match (&task.restart, &task.head) {
            (Some(restart), _) => oid(restart),
            (None, Some(head)) if task.workspace.is_some() => oid(head),
            (None, _) => {
                let ours = self.look()?.0;
                self.spare(task, ours).unwrap_or(ours)
            }
        };
        self.host.workspaces.insert(task.id, Workspace { base, head: base, dirt: BTreeMap::new() });
        Ok(base)
    }

    /// A workspace that stood ready: a little behind the base, with all that the task needs.
    fn spare(&mut self, task: &Task, ours: Oid) -> Option<Oid> {
        let begins = task.counters.runs == 0 && task.head.is_none();
        let behind = self.git.moves.last()?.from.filter(|_| begins && self.rng.once_in(3))?;
        let landed = |need: &TaskId| Some(oid(&self.book.tasks.get(need)?.landed.as_ref()?.commit));
        let mut needs = task.spec.needs.iter().filter_map(landed);
        let fits = self.git.is_ancestor(behind, ours) && needs.all(|need| self.git.is_ancestor(need, behind));
        if fits {
            self.book.meet("begun behind");
        }
        fits.then_some(behind)
    }

    // ── agents ───────────────────────────────────────────────────────────────────────────────────────────

    fn spawn(&mut self, task: &Task, of: Key, talk: SessionStart) {
        if self.host.agents.contains_key(&of) {
            return; // adopted
        }
        let other = self.host.agents.iter().find(|((id, ..), agent)| *id == task.id && agent.end.is_none());
        self.demand(other.is_none(), || format!("9 {} has two agents at once", task.id));
        let stopped = self.host.stops.contains(&(of.0, of.1));
        let agent = Agent { killed: stopped, end: None, kind: None, talk };
        self.host.agents.insert(of, agent);
        if stopped {
            self.ended(
                of,
                Kind::Blameless,
                AgentExit::Asked,
                Vec::new(),
                (None, None),
                AgentUsage::default(),
                AgentRunTraces::default(),
            );
        }
    }

    /// An agent is ended because nobody can follow it.
    fn abandon(&mut self, of: Key) {
        if self.host.agents[&of].end.is_none() && !seeded_bugs::is_active(SeededBug::AbandonWithoutKill) {
            self.book.meet("abandoned");
            self.agent_vanishes(of);
        }
    }

    /// An agent dies while nobody looks.
    pub fn agent_vanishes(&mut self, of: Key) {
        self.ended(
            of,
            Kind::Fell,
            AgentExit::Lost,
            Vec::new(),
            (None, None),
            AgentUsage::default(),
            AgentRunTraces::default(),
        );
    }

    #[expect(clippy::too_many_arguments, reason = "one place where the end of an agent is put together")]
    fn ended(
        &mut self,
        of: Key,
        kind: Kind,
        exit: AgentExit,
        seen: Vec<Signal>,
        heads: (Option<Oid>, Option<Oid>),
        usage: AgentUsage,
        traces: AgentRunTraces,
    ) -> EndedRun {
        let evidence = AgentRunEvidence {
            head_before: heads.0.map(name),
            head_after: heads.1.map(name),
            ..AgentRunEvidence::default()
        };
        let took_ms = 10 + self.rng.ms(2_000);
        let end = EndedRun {
            attempt: of.1,
            iteration: of.2,
            exit,
            seen,
            evidence,
            took_ms,
            usage,
            traces,
            climbed: None,
        };
        let agent = self.host.agents.get_mut(&of).expect("it was started");
        (agent.end, agent.kind) = (Some(end.clone()), Some(kind));
        end
    }

    fn agent_ends(&mut self, of: Key, deadline_ms: u64) -> EndedRun {
        let agent = self.host.agents.get(&of).expect("spawned before it is followed").clone();
        if let Some(end) = agent.end {
            return end; // it ended while the engine was away, or its end was lost on the way
        }
        let said = |said| vec![Signal::Said(said)];
        let Some(workspace) = self.host.workspaces.get(&of.0).cloned() else {
            return self.ended(
                of,
                Kind::Fell,
                AgentExit::Code(1),
                Vec::new(),
                (None, None),
                AgentUsage::default(),
                AgentRunTraces::default(),
            );
        };
        let (usage, over) = self.turns_of(of);
        let mut traces = self.traces(&agent);
        let choice = if self.faults.agent { self.rng.below(64) } else { 0 };
        let resumed = agent.talk != SessionStart::New;
        let code = |code, seen| (AgentExit::Code(code), seen);
        let (kind, (exit, seen), works) = match choice {
            _ if agent.killed && self.rng.once_in(4) => {
                (Kind::Own, code(0, said(ControlSignal::Complete)), true)
            } // it was faster
            _ if agent.killed => (Kind::Blameless, (AgentExit::Asked, Vec::new()), false),
            _ if over.is_some() => {
                let (scope, what) = over.expect("just seen");
                (Kind::Blameless, (AgentExit::OverBudget { scope, what }, Vec::new()), false)
            }
            30..=33 => (Kind::Own, code(0, Vec::new()), true),
            34 => (Kind::Own, code(0, said(ControlSignal::Blocked("no access".to_owned()))), false),
            35..=36 => (Kind::Own, code(0, said(ControlSignal::Pending("Which port?".to_owned()))), false),
            37..=39 => (Kind::Fell, code(1, Vec::new()), false),
            40 => (Kind::Fell, (AgentExit::Signal(9), Vec::new()), true),
            41 => (Kind::Fell, (AgentExit::Lost, Vec::new()), true),
            42..=43 => (Kind::Stalled, (AgentExit::Silent, Vec::new()), false),
            44 => {
                let asks = Signal::PermissionAsked { what: "rm".to_owned() };
                (Kind::Own, (AgentExit::Silent, vec![asks]), false)
            }
            45..=47 if self.faults.account => {
                let until = self.rng.once_in(2).then(|| self.now().plus_ms(self.rng.ms(90_000)));
                (Kind::Blameless, code(1, vec![Signal::Quota { until }]), false)
            }
            48..=50 if self.faults.account => {
                (Kind::Transient, code(1, vec![Signal::Transient { detail: "overloaded".to_owned() }]), false)
            }
            51 if self.faults.account => {
                (Kind::Blameless, code(1, vec![Signal::Unauthorized { detail: "401".to_owned() }]), false)
            }
            52 => {
                let hopeless = self.rng.once_in(6);
                let detail = "no such program".to_owned();
                traces = AgentRunTraces::default();
                (Kind::Fell, (AgentExit::NotStarted { detail, hopeless }, Vec::new()), false)
            }
            53 if self.rng.once_in(3) => (Kind::Deadline, (AgentExit::Deadline, Vec::new()), true),
            54 if resumed => {
                if let SessionStart::Resumed { session, .. } = &agent.talk {
                    self.host.gone.insert(session.clone());
                }
                traces.session = None;
                (Kind::Blameless, code(1, vec![Signal::SessionGone]), false)
            }
            55..=56 => (Kind::Blameless, (AgentExit::Looping, Vec::new()), false),
            57 if self.rng.once_in(4) => (Kind::Blameless, (AgentExit::ContextUsedUp, Vec::new()), false),
            58 => (Kind::Own, code(0, said(ControlSignal::Complete)), false), // an empty claim
            59 => (Kind::Own, code(3, said(ControlSignal::Complete)), true),
            60 => (
                Kind::Own,
                code(
                    0,
                    [said(ControlSignal::Complete), said(ControlSignal::Blocked("both".to_owned()))].concat(),
                ),
                true,
            ),
            61 => {
                let seen = [
                    said(ControlSignal::FollowUp("and then this".to_owned())),
                    said(ControlSignal::Complete),
                ]
                .concat();
                (Kind::Own, code(0, seen), true)
            }
            _ => (Kind::Own, code(0, said(ControlSignal::Complete)), true),
        };
        let before = workspace.head;
        let after = if works { self.work(of.0) } else { before };
        let mut end = self.ended(of, kind, exit, seen, (Some(before), Some(after)), usage, traces);
        if kind == Kind::Deadline {
            end.took_ms = deadline_ms;
            self.host.agents.get_mut(&of).expect("it ran").end = Some(end.clone());
        }
        end
    }

    /// The turns an agent takes: after each, whoever watches it looks at the budgets.
    fn turns_of(&mut self, of: Key) -> (AgentUsage, Option<(BudgetScope, String)>) {
        let task = self.core().expect_task(of.0);
        let wanted = 1 + self.rng.below(3);
        let mut usage = AgentUsage::default();
        let mut over = None;
        for _ in 0..wanted {
            usage.turns += 1;
            let here = Spending { usage, time_ms: 0 };
            self.out.note_live_spending(of.0, Some(here));
            let in_all = Spending { usage: task.counters.usage.plus(usage), time_ms: 0 };
            let of_attempt = task.limits.attempt_budget.describe_used_up(task.counters.attempt.plus(here));
            let of_task = task.limits.task_budget.describe_used_up(in_all);
            over = self.out.exhausted_budget().map(|spent| (spent.scope, spent.what));
            over = over.or(of_task.map(|what| (BudgetScope::Task, what)));
            over = over.or(of_attempt.map(|what| (BudgetScope::Attempt, what)));
            if over.is_some() {
                break;
            }
        }
        if over.is_some() && self.rng.once_in(2) {
            over = None; // it was done with its last turn
        }
        (usage, over)
    }

    fn traces(&mut self, agent: &Agent) -> AgentRunTraces {
        if self.rng.once_in(6) {
            return AgentRunTraces::default();
        }
        let session = match &agent.talk {
            SessionStart::Resumed { session, .. } => session.clone(),
            SessionStart::New => {
                self.host.sessions += 1;
                format!("s{}", self.host.sessions)
            }
        };
        let context = self.rng.once_in(2).then(|| ContextUsage { used: self.rng.ms(100), size: 100 });
        AgentRunTraces { session: Some(session), context, ..AgentRunTraces::default() }
    }

    /// An agent changes files and commits; gives the tip of its branch.
    fn work(&mut self, id: TaskId) -> Oid {
        let mut workspace = self.host.workspaces.get(&id).expect("it stands").clone();
        let files = self.scene.files;
        // Told of a conflict or of red, or good by nature, it brings the base in first.
        let base = self.git.base.unwrap_or(workspace.base);
        if (self.healed || self.rng.once_in(2)) && !self.git.is_ancestor(base, workspace.head) {
            workspace.head = self.bring_in(workspace.head, base);
        }
        let mut tree = self.git.files(workspace.head).clone();
        let mut touched: BTreeSet<u8> = BTreeSet::new();
        let mut file =
            |number: usize| touched.insert(1 + u8::try_from(number % usize::from(files - 1)).expect("small"));
        file(id.0 as usize * 7);
        if self.rng.once_in(2) {
            file(id.0 as usize * 11 + 3);
        }
        if self.rng.once_in(20) {
            file(self.rng.below(usize::from(files)));
        }
        if self.healed || self.rng.once_in(2) {
            // Whatever it left on the way to here that may quarrel is done anew.
            let fork = self.git.fork(base, workspace.head);
            let own = self.git.changed(fork, workspace.head);
            touched.extend(own.into_iter().filter(|file| *file != SETTINGS));
        }
        if self.healed {
            touched
                .extend(self.git.changed(base, workspace.head).into_iter().filter(|file| *file != SETTINGS));
            tree.insert(SETTINGS, self.git.settings(base));
        }
        for file in touched {
            let kind = match self.rng.below(12) {
                _ if self.healed || !self.faults.bad => 0,
                0 => 1,
                1 => 2,
                2..=6 => 3 + self.rng.small(5),
                _ => 0,
            };
            let content = self.git.content(kind);
            tree.insert(file, content);
        }
        if self.faults.tamper && self.rng.once_in(20) {
            let kind = self.rng.small(8);
            let content = self.git.content(kind);
            tree.insert(SETTINGS, content);
        }
        if !self.healed && self.rng.once_in(10) {
            // It forgot to commit.
            workspace.dirt = tree
                .into_iter()
                .filter(|(file, new)| self.git.files(workspace.head).get(file) != Some(new))
                .collect();
        } else {
            workspace.dirt.clear();
            workspace.head = self.git.commit(&[workspace.head], tree);
        }
        let head = workspace.head;
        self.host.workspaces.insert(id, workspace);
        head
    }

    fn bring_in(&mut self, head: Oid, base: Oid) -> Oid {
        let tree = match self.git.merge(head, base) {
            Ok(tree) => tree,
            Err(Clash(paths)) => {
                let fork = self.git.fork(head, base);
                let mut tree = self.git.files(base).clone();
                for file in self.git.changed(fork, head) {
                    if !paths.contains(&file) {
                        let new = self.git.files(head).get(&file).copied();
                        new.map(|new| tree.insert(file, new));
                    } else if file != SETTINGS {
                        let content = self.git.content(0);
                        tree.insert(file, content);
                    }
                }
                tree
            }
        };
        self.git.commit(&[head, base], tree)
    }

    // ── checks ───────────────────────────────────────────────────────────────────────────────────────────

    fn blank(&self, base: Oid, head: Oid, merged: Oid) -> GateReport {
        let of = if seeded_bugs::is_active(SeededBug::SettingsFromCandidate) { merged } else { base };
        let settings = self.git.settings(of);
        GateReport {
            base: name(base),
            head: name(head),
            commit: name(merged),
            tree: tree_name(self.git.tree(merged)),
            config: Digest::new(&format!("s{settings}")),
            environment: Digest::new(&format!("e{}", self.host.environment)),
            commands: Vec::new(),
            took_ms: 0,
            reused: false,
            required: true,
            sandbox: None,
        }
    }

    fn known_pass(&self, report: &GateReport) -> Option<GateReport> {
        let passes = self.out.passes.borrow();
        if seeded_bugs::is_active(SeededBug::PassReused) {
            let same = |known: &&GateReport| known.head == report.head && known.config == report.config;
            return passes.values().find(same).cloned();
        }
        passes.get(&key(&report.tree, report)).cloned()
    }

    /// Verifies a merge, or takes over a pass of the same tree.
    pub fn verify(&mut self, base: Oid, head: Oid, merged: Oid) -> GateReport {
        let mut report = self.blank(base, head, merged);
        if let Some(known) = self.known_pass(&report) {
            report.commands = known.commands;
            report.reused = true;
            return report;
        }
        let settings: u32 = report.config.as_str()[1..].parse().expect("made here");
        let tree = self.git.tree(merged);
        let flakes = self.scene.flake > 0 && self.rng.once_in(self.scene.flake);
        let outcome = match self.git.truth(tree, settings) {
            _ if self.faults.gate && self.rng.once_in(60) => CheckOutcome::Broken,
            Truth::Broken => CheckOutcome::Broken,
            Truth::Green if flakes && self.rng.once_in(self.scene.flake) => {
                self.host.slandered.insert(tree);
                CheckOutcome::Fail
            }
            Truth::Green if flakes => CheckOutcome::Flaky,
            Truth::Green => CheckOutcome::Pass,
            Truth::Red if self.git.truth(self.git.tree(base), settings) == Truth::Red => {
                CheckOutcome::PreExisting
            }
            Truth::Red if self.rng.once_in(6) => CheckOutcome::Timeout,
            Truth::Red => CheckOutcome::Fail,
        };
        report.commands.push(command(outcome));
        report.took_ms = 10 + self.rng.ms(500);
        report
    }

    fn check(&mut self, task: &Task, attempt: Attempt, head: Option<Oid>) -> Result<News, String> {
        let (mut head, mut leftovers) = (head, false);
        if head.is_none() {
            let workspace = self.host.workspaces.get(&task.id).cloned();
            let mut workspace = workspace.ok_or_else(|| "the workspace is gone".to_owned())?;
            if !workspace.dirt.is_empty() {
                let mut tree = self.git.files(workspace.head).clone();
                tree.extend(std::mem::take(&mut workspace.dirt));
                workspace.head = self.git.commit(&[workspace.head], tree);
                leftovers = true;
            }
            head = Some(workspace.head);
            self.host.workspaces.insert(task.id, workspace);
        }
        let head = head.expect("just found");
        let base = self.look()?.0;
        let head = match self.settle(base, head) {
            Settled::AsItIs => head,
            Settled::Anew(settled) => settled,
            Settled::Conflict(clash) => {
                let clashes = self.clashes(&clash);
                return Ok(News::MergeConflict { attempt, head: name(head), base: name(base), clashes });
            }
        };
        let files = match self.git.merge(base, head) {
            Ok(files) => files,
            Err(clash) => {
                let clashes = self.clashes(&clash);
                return Ok(News::MergeConflict { attempt, head: name(head), base: name(base), clashes });
            }
        };
        if files == *self.git.files(base) {
            return Ok(News::NothingChanged { attempt });
        }
        let merged = self.git.commit(&[base, head], files);
        let report = self.verify(base, head, merged);
        let concerns = match report.outcome().is_green() {
            true => self.concerns(base, merged),
            false => Vec::new(),
        };
        Ok(News::Checked {
            attempt,
            head: name(head),
            leftovers,
            report,
            concerns,
            evidence: None,
            proofs: Vec::new(),
            extent: None,
        })
    }

    /// What a person should look at: it is in the work itself, so it is there whenever it is checked.
    pub fn concerns(&self, base: Oid, merged: Oid) -> Vec<ChangeConcern> {
        let changed = self.git.changed(base, merged);
        let concern = |code, detail: &str| ChangeConcern { code, detail: detail.to_owned() };
        let skipped = |file: &u8| {
            *file != SETTINGS && self.git.files(merged).get(file).is_some_and(|content| content % 8 == 7)
        };
        let mut found = Vec::new();
        if changed.contains(&SETTINGS) {
            found.push(concern(ConcernCode::ProtectedPath, "landfall.toml"));
        }
        if changed.iter().any(skipped) {
            found.push(concern(ConcernCode::TestSkipped, "tests/a.rs"));
        }
        found
    }

    fn clashes(&mut self, clash: &Clash) -> Vec<Clashed> {
        let (kind, lines) = match self.rng.below(10) {
            _ if self.healed => (FileConflictKind::Content, 3),
            0 => (FileConflictKind::Binary, 0),
            1 => (FileConflictKind::Content, 30),
            _ => (FileConflictKind::Content, 3),
        };
        clash.0.iter().map(|file| Clashed { path: format!("f{file}"), kind, lines }).collect()
    }

    /// Moves work over that stands on landings which are gone, or brings the base in where that needs nobody.
    fn settle(&mut self, base: Oid, head: Oid) -> Settled {
        // Whoever has brought the new branch in has said what they want of the old one.
        let met = self.git.fork(base, head);
        let old = self.host.rewritten.iter().filter(|gone| self.git.is_ancestor(met, **gone));
        let mut gone = old.map(|gone| self.git.fork(*gone, head));
        if let Some(from) = gone.rfind(|from| !self.git.is_ancestor(*from, base)) {
            return match self.git.move_over(from, base, head) {
                Ok(files) => {
                    let moved = self.git.commit(&[base], files);
                    self.host.moved.insert(moved, head);
                    Settled::Anew(moved)
                }
                Err(clash) => Settled::Conflict(clash),
            };
        }
        match self.git.merge_simple(base, head) {
            Some(files) => Settled::Anew(self.git.commit(&[head, base], files)),
            None => Settled::AsItIs,
        }
    }

    // ── the base ─────────────────────────────────────────────────────────────────────────────────────────

    /// The base, after taking in what a person did to their branch; their branch; what they must say first.
    pub fn look(&mut self) -> Result<(Oid, Option<Oid>, Option<String>), String> {
        let Some(ours) = self.git.base else {
            let theirs = self.git.branch.ok_or("the branch is gone")?;
            self.out.trust_base(&name(theirs));
            self.git.set_base(theirs, None, By::Person).expect("nobody else moves it");
            self.out.note_user_branch_tip(&name(theirs));
            self.tell_moved(None, theirs);
            return Ok((theirs, Some(theirs), None));
        };
        let Some(theirs) = self.git.branch else {
            let reason = "your branch is gone".to_owned();
            self.tell_queue(QueueNews::Hold { why: HoldReason::Deleted, reason: reason.clone() });
            return Ok((ours, None, Some(reason)));
        };
        if !self.out.trusts(&name(ours)) && !self.is_innocent(ours, theirs) {
            return Err(format!("the base is at c{ours}, where neither a landing nor you have put it"));
        }
        let last = self.out.theirs.borrow().as_ref().map(oid);
        if let Some(last) = last.filter(|last| !self.git.is_ancestor(*last, theirs)) {
            let reason = format!("your branch was rewritten: c{last} is no longer part of it");
            self.tell_queue(QueueNews::Hold { why: HoldReason::Rewritten, reason: reason.clone() });
            return Ok((ours, Some(theirs), Some(reason)));
        }
        self.out.note_user_branch_tip(&name(theirs));
        if ours == theirs || !self.git.is_ancestor(ours, theirs) {
            return Ok((ours, Some(theirs), None));
        }
        self.out.trust_base(&name(theirs));
        match self.git.set_base(theirs, Some(ours), By::Person) {
            Ok(()) => {
                self.check_moved();
                self.tell_moved(Some(ours), theirs);
                Ok((theirs, Some(theirs), None))
            }
            Err(actual) => Ok((actual.unwrap_or(ours), Some(theirs), None)),
        }
    }

    fn tell_moved(&mut self, from: Option<Oid>, to: Oid) {
        let event = EngineEvent::BaseMoved { from: from.map(name), to: name(to), by: BaseMover::Person };
        self.mail.push_back(Mail::Fact(event));
    }

    fn is_innocent(&self, ours: Oid, theirs: Oid) -> bool {
        if self.git.is_ancestor(ours, theirs) {
            return true;
        }
        let [person, landed] = self.git.parents(ours) else { return false };
        self.out.trusts(&name(*landed))
            && self.git.is_ancestor(*person, theirs)
            && self.git.merge(*person, *landed).is_ok_and(|files| files == *self.git.files(ours))
    }

    /// Their branch was rewritten, and the person says what is meant.
    pub fn accept_rewrite(&mut self, keep: bool) -> Result<Option<EngineEvent>, String> {
        let theirs = self.git.branch.ok_or("the branch is gone")?;
        let Some(ours) = self.git.base else { return Ok(None) };
        self.out.note_user_branch_tip(&name(theirs));
        if keep || ours == theirs {
            return Ok(None);
        }
        self.out.trust_base(&name(theirs));
        self.book.rewritten.insert(self.git.moves.len());
        self.git.set_base(theirs, Some(ours), By::Person).expect("nobody else moves it");
        self.host.rewritten.push(ours);
        self.book.meet("rewrite accepted");
        Ok(Some(EngineEvent::BaseMoved { from: Some(name(ours)), to: name(theirs), by: BaseMover::Person }))
    }

    fn build(
        &mut self,
        batch: landfall_model::BatchId,
        on: Option<Oid>,
        members: &[BatchMember],
    ) -> Result<QueueNews, String> {
        let base = match on {
            Some(on) => on,
            None => self.look()?.0,
        };
        let mut left_out: Vec<(TaskId, BatchExclusion)> = Vec::new();
        let mut work: Vec<(&BatchMember, Oid)> = Vec::new();
        for member in members {
            let candidate = self.core().expect_task(member.task).landing.clone();
            match candidate {
                Some(candidate) if on.is_none() && self.git.is_ancestor(oid(&candidate.commit), base) => {
                    let why = self.landed_before(candidate)?;
                    left_out.push((member.task, why));
                }
                _ => work.push((member, oid(&member.head))),
            }
        }
        let mut resolved = Vec::new();
        if on.is_none() {
            let mut unfit = Vec::new();
            for (member, head) in &mut work {
                match self.settle(base, *head) {
                    Settled::AsItIs => {}
                    Settled::Anew(settled) => {
                        resolved.push((member.task, name(settled)));
                        *head = settled;
                    }
                    Settled::Conflict(clash) => {
                        unfit.push((member.task, BatchExclusion::Conflict(self.clashes(&clash))))
                    }
                }
            }
            work.retain(|(member, _)| unfit.iter().all(|(task, _)| *task != member.task));
            left_out.append(&mut unfit);
        }
        let heads: Vec<Oid> = work.iter().map(|(_, head)| *head).collect();
        let merged = self.git.merge_batch(base, &heads);
        let first = merged.prefixes.first().map(|(place, _)| *place);
        for (place, clash) in &merged.left_out {
            let (member, head) = work[*place];
            let why = match first.is_some_and(|first| first < *place) {
                true => match self.git.merge(base, head) {
                    Ok(files) if files == *self.git.files(base) => BatchExclusion::NothingChanged,
                    Ok(_) => BatchExclusion::Crowded,
                    Err(clash) => BatchExclusion::Conflict(self.clashes(&clash)),
                },
                false => match clash {
                    Some(clash) => BatchExclusion::Conflict(self.clashes(clash)),
                    None => BatchExclusion::NothingChanged,
                },
            };
            left_out.push((member.task, why));
        }
        let prefix = |(_, commit): &(usize, Oid)| BatchPrefix {
            commit: name(*commit),
            tree: tree_name(self.git.tree(*commit)),
        };
        let prefixes = merged.prefixes.iter().map(prefix).collect();
        Ok(QueueNews::Built { batch, base: name(base), prefixes, left_out, resolved })
    }

    fn landed_before(&self, candidate: LandingCandidate) -> Result<BatchExclusion, String> {
        let commit = oid(&candidate.commit);
        let heads = self.git.parents(commit)[1..].to_vec();
        let proof = self.prove(commit, oid(&candidate.base), &heads, &candidate.tree)?;
        Ok(BatchExclusion::Landed { candidate, proof })
    }

    /// What the engine proves before and after it moves the base.
    fn prove(&self, commit: Oid, base: Oid, heads: &[Oid], tree: &Tree) -> Result<String, String> {
        if self.host.mismatched.contains(&commit) {
            return Err("the tree is another".to_owned());
        }
        let parents = self.git.parents(commit);
        if parents.first() != Some(&base) || parents[1..] != *heads {
            return Err("it stands on other commits".to_owned());
        }
        if self.git.tree(commit) != tree_number(tree) {
            return Err("it has another tree".to_owned());
        }
        Ok("merging again gives the same tree".to_owned())
    }

    fn land(&mut self, effect: QueueEffect) {
        let QueueEffect::Land { batch, base, prefix, members } = &effect else { return };
        let (batch, new, old) = (*batch, oid(&prefix.commit), oid(base));
        let (now, trouble) = match self.look() {
            Ok((now, _, trouble)) => (now, trouble),
            Err(detail) => return self.tell_queue(QueueNews::Failed { batch, detail }),
        };
        let landed_before = now != old && self.git.is_ancestor(new, now);
        if (now != old || trouble.is_some()) && !landed_before {
            return self.tell_queue(QueueNews::LandMoved { batch, to: name(now) });
        }
        if self.trouble() {
            return self.tell_queue(QueueNews::Failed { batch, detail: "no room".to_owned() });
        }
        if !landed_before {
            if self.faults.mismatch && self.rng.once_in(40) {
                self.host.mismatched.insert(new);
            }
            let heads: Vec<Oid> = members.iter().map(|member| oid(&member.head)).collect();
            if let Err(detail) = self.prove(new, old, &heads, &prefix.tree) {
                return self.tell_queue(QueueNews::LandMismatch { batch, detail });
            }
            self.out.trust_base(&prefix.commit);
        }
        self.orders.push(Order::Swap(effect));
    }

    fn swap(&mut self, effect: QueueEffect) {
        let QueueEffect::Land { batch, base, prefix, members } = effect else { return };
        let (new, old) = (oid(&prefix.commit), oid(&base));
        let now = self.git.base.expect("it was looked at");
        let landed_before = now != old && self.git.is_ancestor(new, now);
        if !landed_before {
            let tasks = members.iter().map(|member| member.task).collect();
            match self.git.set_base(new, Some(old), By::Landing(tasks)) {
                Ok(()) => self.check_landing(batch, old, new, now, &members),
                Err(actual) => {
                    let to = name(actual.unwrap_or(old));
                    return self.tell_queue(QueueNews::LandMoved { batch, to });
                }
            }
        }
        let news = match self.trouble() {
            true => QueueNews::Failed { batch, detail: "no room".to_owned() },
            false => QueueNews::Landed { batch, proof: "merging again gives the same tree".to_owned() },
        };
        self.tell_queue(news);
    }

    // ── the person's branch ──────────────────────────────────────────────────────────────────────────────

    fn publish(&mut self) {
        if self.try_publish() {
            self.mail.push_back(Mail::PublishOver);
        }
    }

    /// One try; says whether it is over.
    fn try_publish(&mut self) -> bool {
        let (ours, theirs, trouble) = match self.look() {
            Ok(look) => look,
            Err(_) => return true,
        };
        let (Some(theirs), None) = (theirs, trouble) else { return self.hold_publish(ours) };
        if ours == theirs {
            return true;
        }
        if !self.git.is_ancestor(theirs, ours) && !seeded_bugs::is_active(SeededBug::ForcedPublish) {
            let Ok(files) = self.git.merge(theirs, ours) else { return self.hold_publish(ours) };
            let merged = self.git.commit(&[theirs, ours], files);
            if self.interrupted {
                return true;
            }
            let report = self.verify(theirs, ours, merged);
            if !report.outcome().is_green() {
                return self.hold_publish(ours);
            }
            self.out.trust_base(&name(merged));
            self.book.rebuilds.insert(merged);
            self.orders.push(Order::RebuildSwap { merged, ours });
            return false;
        }
        if self.host.dirty {
            return self.hold_publish(ours);
        }
        self.demand(self.git.is_ancestor(theirs, ours), || format!("35 c{theirs} is overwritten by c{ours}"));
        self.git.branch = Some(ours);
        let how = "the branch was moved".to_owned();
        self.mail.push_back(Mail::Fact(EngineEvent::Published { commit: name(ours), how }));
        true
    }

    fn hold_publish(&mut self, ours: Oid) -> bool {
        let (commit, reason) = (name(ours), "a person is in the way".to_owned());
        self.mail.push_back(Mail::Fact(EngineEvent::PublishHeld { commit, reason }));
        true
    }

    /// The tree of a commit with these files instead.
    pub fn with_files(&mut self, on: Oid, files: Files) -> Oid {
        self.git.commit(&[on], files)
    }

    /// The revert of a landed task, as far as what landed with it stays.
    pub fn revert(&mut self, task: &Task) -> Option<Oid> {
        let landed = task.landed.as_ref()?;
        let commit = oid(&landed.commit);
        let own = task.gate.as_ref().map(|gate| oid(&gate.head));
        let parents = self.git.parents(commit).to_vec();
        let others: Vec<Oid> = parents[1..].iter().copied().filter(|head| Some(*head) != own).collect();
        let without = self.git.merge_batch(parents[0], &others);
        if without.prefixes.len() != others.len() {
            return None;
        }
        let before = without.prefixes.last().map_or(parents[0], |(_, commit)| *commit);
        let files = self.git.files(before).clone();
        Some(self.git.commit(&[commit], files))
    }
}

pub fn command(outcome: CheckOutcome) -> CommandResult {
    let exit = match outcome {
        CheckOutcome::Pass => 0,
        CheckOutcome::Broken => 127,
        CheckOutcome::Flaky | CheckOutcome::PreExisting | CheckOutcome::Fail | CheckOutcome::Timeout => 1,
    };
    CommandResult {
        name: "tests".to_owned(),
        command: "make test".to_owned(),
        required: true,
        outcome,
        exit: Some(exit),
        took_ms: 10,
        limit_ms: 1_000,
        tests: None,
        excerpt: String::new(),
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    }
}
