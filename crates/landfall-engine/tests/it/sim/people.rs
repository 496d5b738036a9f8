//! People: they add, answer, cancel, retry, push, pause, and change their minds.

use landfall_engine::{AskError, NewTaskSpec};
use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason};
use landfall_model::pilot::PilotMode;
use landfall_model::queue::HoldReason;
use landfall_model::review::RedoChoice;
use landfall_model::{
    EndCode, EndKind, Ending, EngineEvent, News, ReviewInput, SignOff, TaskId, TaskLimitOverrides, TaskSpec,
    TaskState, WaitReason,
};

use super::git::{Oid, SETTINGS, Truth, name, oid};
use super::world::Sim;

impl Sim {
    /// A person adds a task or two.
    pub fn add(&mut self) {
        let there = self.core().world().tasks().count();
        if there >= self.scene.tasks_max {
            return;
        }
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.priority = u8::try_from(self.rng.below(10)).expect("small");
        spec.draft = self.faults.person && self.rng.once_in(14);
        if there > 0 && self.rng.once_in(3) {
            spec.needs.insert(self.any_task());
        }
        if there > 0 && self.rng.once_in(4) {
            spec.parent = Some(TaskId(1));
        }
        if self.rng.once_in(3) {
            let file = self.rng.below(usize::from(self.scene.files));
            spec.touches.insert(format!("f{file}").parse().expect("a path"));
        }
        spec.flow = self.rng.once_in(8).then(|| "asking".to_owned());
        spec.agent = self.any_profile();
        let new = NewTaskSpec { spec, needs_here: Vec::new(), parent_here: None, position: None };
        let added = self.core.as_mut().expect("it is open").add_tasks(&self.out, vec![new]);
        self.demand(added.is_ok(), || format!("a task is refused: {added:?}"));
        self.answered.extend(added.into_iter().flatten().map(|task| task.id));
    }

    fn any_task(&mut self) -> TaskId {
        let last = self.core().world().next_id().0 - 1;
        TaskId(1 + self.rng.small(last.max(1) as usize))
    }

    fn any_profile(&mut self) -> Option<String> {
        let profiles = ["main", "main", "spare", "cheap"];
        profiles.get(self.rng.below(profiles.len() + 2)).map(|profile| (*profile).to_owned())
    }

    fn say(&mut self, task: TaskId, news: &News) -> bool {
        let told = self.core.as_mut().expect("it is open").handle_news_for_all(&self.out, &[task], news);
        match told {
            Ok(_) => {
                if matches!(news, News::Retry { .. } | News::Release | News::Answer { .. } | News::Review(_))
                {
                    self.book.spoken.insert(task);
                }
                true
            }
            Err(AskError::Refused(refusal @ landfall_model::NewsRefusal::Bug(_))) => {
                self.fail(&format!("5 {refusal} after {news:?}"))
            }
            Err(_) => false,
        }
    }

    /// A person does something to a task.
    pub fn person_acts(&mut self) {
        if self.core().world().tasks().next().is_none() {
            return;
        }
        let id = self.any_task();
        let task = self.core().expect_task(id);
        match self.rng.below(32) {
            0..=4 => drop(self.say(id, &News::StopTask)),
            5..=6 => drop(self.say(id, &News::Cancel { reason: "no longer wanted".to_owned() })),
            7..=11 => {
                let fresh = self.rng.once_in(3);
                self.say(id, &News::Retry { fresh, note: None });
            }
            12 => drop(self.say(id, &News::Answer { text: "no, not so".to_owned() })),
            13 if task.landed.is_some() => self.roll_back(id),
            14 => self.restore(),
            15 => {
                let redo = match self.rng.below(3) {
                    0 => RedoChoice::Keep,
                    1 => RedoChoice::Fresh,
                    _ => RedoChoice::From(task.seen_head.clone().unwrap_or_else(|| name(0))),
                };
                let (issues, note) = (vec!["tests".to_owned()], "not so".to_owned());
                let said = match self.rng.below(4) {
                    0 => ReviewInput::Reject { note },
                    1 => ReviewInput::Defer,
                    _ => ReviewInput::Changes { issues, note, redo },
                };
                if task.landed.is_none() {
                    self.say(id, &News::Review(said));
                }
            }
            24..=31 => self.intervene(id),
            _ => self.edit(id),
        }
    }

    /// A person says something to one task while it goes on.
    fn intervene(&mut self, id: TaskId) {
        let news = match self.rng.below(8) {
            0..=1 => {
                self.book.said += 1;
                let (text, now) = (format!("word {}", self.book.said), self.rng.once_in(2));
                News::Message { text, now }
            }
            2..=3 => News::Hold { reason: String::new() },
            4..=5 => News::Release,
            6 => News::Block { reason: "not like this".to_owned() },
            _ => {
                let limits = TaskLimitOverrides {
                    iterations_max: self.rng.once_in(2).then(|| 1 + self.rng.small(12)),
                    task_ms: self.rng.once_in(2).then(|| 60_000 * u64::from(1 + self.rng.small(90))),
                    micro_usd: self.rng.once_in(2).then(|| 1_000 * u64::from(1 + self.rng.small(5_000))),
                };
                News::SetLimits { limits }
            }
        };
        if self.say(id, &news) {
            self.book.meet("intervention");
        }
    }

    fn edit(&mut self, id: TaskId) {
        let mut spec = self.core().expect_task(id).spec.clone();
        match self.rng.below(6) {
            0 => spec.priority = u8::try_from(self.rng.below(10)).expect("small"),
            1 => spec.draft = !spec.draft,
            2 => spec.parent = Some(self.any_task()).filter(|parent| *parent != id),
            3 => spec.agent = self.any_profile(),
            _ => {
                let need = self.any_task();
                if !spec.needs.remove(&need) {
                    spec.needs.insert(need);
                }
            }
        }
        let _ = self.core.as_mut().expect("it is open").edit_task(&self.out, id, spec); // a circle is refused
    }

    /// Landed work is taken back by a task of its own.
    fn roll_back(&mut self, id: TaskId) {
        if self.core().world().tasks().count() >= self.scene.tasks_max + 4 {
            return;
        }
        let task = self.core().expect_task(id);
        let Some(head) = self.revert(&task) else { return };
        self.offer(&format!("Roll back {id}"), head);
    }

    fn restore(&mut self) {
        if self.core().world().tasks().count() >= self.scene.tasks_max + 4 {
            return;
        }
        let kept = self.core().checkpoints().kept_checkpoints().to_vec();
        let Some(checkpoint) = self.rng.pick(&kept) else { return };
        let Ok((base, ..)) = self.look() else { return };
        let files = self.git.files(oid(&checkpoint.commit)).clone();
        let head = self.with_files(base, files);
        self.offer("Restore a checkpoint", head);
    }

    fn offer(&mut self, title: &str, head: Oid) {
        let mut spec = TaskSpec::new(title).expect("a title");
        (spec.flow, spec.priority) = (Some("rollback".to_owned()), 0);
        self.core.as_mut().expect("it is open").add_task_with_work(&self.out, spec, name(head));
    }

    /// A person does something to the run as a whole. What does not fit is refused.
    pub fn person_drives(&mut self) {
        let mode = if self.rng.once_in(2) { PilotMode::SemiAuto } else { PilotMode::Autopilot };
        let pick = self.rng.once_in(2).then(|| self.any_task());
        let choice = self.rng.below(16);
        let core = self.core.as_mut().expect("it runs");
        match choice {
            0..=1 => drop(core.pause_run(&self.out, "")),
            2..=5 => drop(core.resume_run(&self.out)),
            6 => core.set_mode(&self.out, mode),
            7..=9 => drop(core.assign_next_task(&self.out, pick)),
            10 => drop(core.cancel_sprint(&self.out)),
            11 => drop(core.hold_queue(&self.out, Some("wait a moment".to_owned()))),
            12..=13 => self.resume_queue(),
            14 if core.base_commit().is_some() => {
                drop(core.make_checkpoint(&self.out, None, CheckpointReason::Person))
            }
            15 => {
                let kept = core.checkpoints().kept_checkpoints().first().map(|it| it.name.clone());
                if let Some(name) = kept {
                    core.record_engine_event(
                        &self.out,
                        EngineEvent::Checkpoint(CheckpointEvent::Dropped { name }),
                    );
                }
            }
            _ => {}
        }
    }

    pub fn resume_queue(&mut self) {
        let Some(hold) = self.core().queue().hold() else { return };
        if matches!(hold.why, HoldReason::Rewritten | HoldReason::Deleted) {
            if self.git.branch.is_none() {
                self.git.branch = self.git.base;
            }
            let keep = self.rng.once_in(2);
            match self.accept_rewrite(keep) {
                Ok(Some(moved)) => {
                    self.core.as_mut().expect("it is open").record_engine_event(&self.out, moved)
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
        let core = self.core.as_mut().expect("it is open");
        let _ = core.hold_queue(&self.out, None); // it may have been resumed by the new base
    }

    pub fn person_looks(&mut self) {
        self.person_answers();
    }

    /// Someone looks into the inbox. Says whether there was anything.
    pub fn person_answers(&mut self) -> bool {
        let held = self.core().queue().hold().is_some_and(|hold| hold.until.is_none());
        if held && self.rng.once_in(3) {
            self.resume_queue();
            return true;
        }
        let asked: Vec<TaskId> = self
            .core()
            .world()
            .tasks()
            .filter(|task| match &task.state {
                TaskState::Review { .. } => true,
                TaskState::Waiting { wait, .. } => matches!(
                    wait,
                    WaitReason::Question { .. }
                        | WaitReason::Login { .. }
                        | WaitReason::Pause
                        | WaitReason::Conflict { .. }
                        | WaitReason::GateBroken { .. }
                ),
                TaskState::Ready { .. } if task.is_held() => true,
                _ => task.sign_off == SignOff::Owed,
            })
            .map(|task| task.id)
            .collect();
        let Some(id) = self.rng.pick(&asked).copied() else {
            if held {
                self.resume_queue();
            }
            return held;
        };
        let task = self.core().expect_task(id);
        let yes = self.healed || !self.rng.once_in(4);
        let news = match &task.state {
            TaskState::Waiting { wait: WaitReason::Question { .. } | WaitReason::Login { .. }, .. } => {
                News::Answer { text: "done".to_owned() }
            }
            TaskState::Waiting { wait: WaitReason::Conflict { .. }, .. } => {
                // Somebody merges in the workspace, or tells the agent how.
                match self.rng.once_in(2) && self.merge_by_hand(id) {
                    true => News::Answer { text: "resolved".to_owned() },
                    false => News::Answer { text: "take both".to_owned() },
                }
            }
            _ if task.is_held() => News::Release,
            TaskState::Waiting { .. } => News::Retry { fresh: false, note: None },
            TaskState::Review { .. } if yes => News::Review(ReviewInput::Approve { note: String::new() }),
            TaskState::Review { .. } => News::Answer { text: "no, not so".to_owned() },
            _ => News::Review(ReviewInput::Approve { note: String::new() }),
        };
        self.say(id, &news)
    }

    fn merge_by_hand(&mut self, id: TaskId) -> bool {
        let (Some(workspace), Some(base)) = (self.host.workspaces.get(&id).cloned(), self.git.base) else {
            return false;
        };
        let mut files = self.git.files(base).clone();
        let fork = self.git.fork(workspace.head, base);
        let own: Vec<u8> =
            self.git.changed(fork, workspace.head).into_iter().filter(|file| *file != SETTINGS).collect();
        for file in own {
            let content = self.git.content(0);
            files.insert(file, content);
        }
        let head = self.git.commit(&[workspace.head, base], files);
        let workspace = self.host.workspaces.get_mut(&id).expect("just seen");
        (workspace.head, workspace.dirt) = (head, Default::default());
        true
    }

    // ── their own branch ─────────────────────────────────────────────────────────────────────────────────

    /// A person commits on their branch.
    pub fn person_pushes(&mut self) {
        self.host.dirty = self.faults.push && self.rng.once_in(4);
        let Some(tip) = self.git.branch else {
            self.git.branch = self.book.last_branch;
            return;
        };
        let mut files = self.git.files(tip).clone();
        let file = 1 + u8::try_from(self.rng.below(usize::from(self.scene.files) - 1)).expect("small");
        let kind = match self.rng.below(12) {
            0 if self.faults.bad => 1,
            1..=3 if self.faults.bad => 3 + self.rng.small(5),
            _ => 0,
        };
        let content = self.git.content(kind);
        files.insert(file, content);
        if self.faults.tamper && self.rng.once_in(8) {
            let kind = [0, 0, 1, 2, 3, 5, 5, 6, 7][self.rng.below(9)];
            let content = self.git.content(kind);
            files.insert(SETTINGS, content);
        }
        self.git.branch = Some(self.git.commit(&[tip], files));
        self.book.meet("push");
    }

    /// A person rewrites or deletes their branch.
    pub fn person_rewrites(&mut self) {
        // A base that no fact names yet, of a branch that is no more, is refused for ever: see the report of `look`.
        let Some(tip) = self.git.branch.filter(|_| self.book.base == self.git.base) else { return };
        self.book.last_branch = Some(tip);
        if self.rng.once_in(3) {
            self.book.meet("branch deleted");
            self.git.branch = None;
            return;
        }
        self.book.meet("branch rewritten");
        let under = self.git.parents(tip).first().copied().unwrap_or(tip);
        let mut files = self.git.files(under).clone();
        let content = self.git.content(0);
        files.insert(1, content);
        self.git.branch = Some(self.git.commit(&[under], files));
    }

    /// What is wrong with the person's own branch is mended by them, and so is what waits for them alone.
    fn mend_the_branch(&mut self) {
        self.host.dirty = false;
        if self.git.branch.is_none() {
            self.git.branch = self.git.base.or(self.book.last_branch);
        }
        // Both together, as a person would who was told that they conflict.
        let theirs = self.git.branch.expect("it is back");
        let ours = self.git.base.unwrap_or(theirs);
        let mut files = match self.git.merge(theirs, ours) {
            Ok(files) => files,
            Err(_) => self.git.files(ours).clone(),
        };
        let tree = self.git.commit(&[theirs, ours], files.clone());
        let settings = self.git.settings(tree);
        let red = |sim: &Self, at: Oid| sim.git.truth(sim.git.tree(at), settings % 8) != Truth::Green;
        if settings % 8 > 4 {
            let content = self.git.content(0);
            files.insert(SETTINGS, content);
        }
        if red(self, tree) || settings % 8 > 4 {
            for file in 1..self.scene.files {
                let content = self.git.content(0);
                files.insert(file, content);
            }
        }
        if ours != theirs || files != *self.git.files(tree) {
            self.git.branch = Some(self.git.commit(&[theirs, ours], files));
        }
    }

    // ── the end of all trouble ───────────────────────────────────────────────────────────────────────────

    /// Every trouble ends, and everyone does what is asked of them. Then everything comes to an end by itself.
    pub fn heal(&mut self) {
        self.faults = Default::default();
        self.scene.flake = 0;
        self.healed = true;
        self.low_disk = false;
        self.late.clear();
        self.finish_run();
        for round in 0..HEAL_RUNS_MAX {
            self.mend_the_branch();
            self.once(|sim| {
                sim.person_lets_go_on(round);
            });
            if !self.is_anything_left() {
                return self.check_settled();
            }
            self.boot();
            self.finish_run();
        }
        let open = self.book.tasks.values().find(|task| !task.is_over());
        let state = open.map(|task| format!("{} {}", task.id, task.state.name()));
        let (base, branch, hold) = (self.git.base, self.git.branch, self.book.queue.hold());
        let theirs = self.out.theirs.borrow();
        self.fail(&format!(
            "36 {HEAL_RUNS_MAX} runs do not come to an end: {state:?}, {base:?}, {branch:?}, {theirs:?}, {hold:?}"
        ));
    }

    /// Goes on until the run ends by itself.
    pub fn finish_run(&mut self) {
        let bound = 600 + 120 * self.book.tasks.len();
        let mut idle_for = 0;
        for _ in 0..bound {
            if self.core.is_none() {
                return;
            }
            let pass = self.rng.ms(500);
            self.pass(pass);
            let busy = !self.orders.is_empty() || !self.mail.is_empty();
            // Somebody is there in an attended run: they pick, resume and answer.
            if !busy {
                idle_for += 1;
            }
            if !busy && idle_for > 2 && self.attended {
                idle_for = 0;
                let core = self.core.as_mut().expect("it runs");
                drop(core.resume_run(&self.out));
                core.set_mode(&self.out, PilotMode::Autopilot);
                self.person_answers();
                self.turn();
                continue;
            }
            self.go_on();
        }
        let core = self.core();
        let state =
            core.world().active_tasks().next().map(|task| format!("{} {}", task.id, task.state.name()));
        let (pilot, line) = (core.pilot(), core.queue().line().collect::<Vec<_>>());
        let (orders, batches, hold) = (&self.orders, core.queue().batches(), core.queue().hold());
        let due = core.world().next_due();
        let opening = core.world().next_opening(self.now());
        let attended = self.attended;
        self.fail(&format!(
            "36 a run does not end by itself: {state:?}, attended {attended}, {orders:?}, {batches:?}, {line:?}, {hold:?}, \
             due {due:?}, opening {opening:?}, {pilot:?}"
        ));
    }

    /// Each who waits for a person gets what they want; who gave up is tried again.
    pub fn person_lets_go_on(&mut self, round: usize) {
        for _ in 0..4 * self.scene.tasks_max + 20 {
            if !self.person_answers() {
                break;
            }
        }
        if round >= HEAL_RETRIES {
            return;
        }
        let over: Vec<TaskId> = self
            .core()
            .world()
            .tasks()
            .filter(|task| {
                matches!(
                    &task.state,
                    TaskState::Ended(Ending {
                        kind: EndKind::Failed | EndKind::Timeout | EndKind::Blocked,
                        ..
                    })
                )
            })
            .map(|task| task.id)
            .collect();
        for id in over {
            let task = self.core().expect_task(id);
            let ran_out = matches!(
                &task.state,
                TaskState::Ended(
                    Ending { kind: EndKind::Timeout, .. } | Ending { code: EndCode::MaxIterations, .. }
                )
            );
            if ran_out && task.own_limits != TaskLimitOverrides::default() {
                let (iterations_max, task_ms) = (Some(100), Some(24 * 3_600_000));
                let limits = TaskLimitOverrides { iterations_max, task_ms, micro_usd: None };
                self.say(id, &News::SetLimits { limits });
            }
            self.say(id, &News::Retry { fresh: round == 0, note: None });
        }
    }

    /// Whether something could go on, if a run began.
    fn is_anything_left(&self) -> bool {
        self.book.tasks.values().any(|task| match &task.state {
            TaskState::Ended(Ending { kind: EndKind::Done, .. }) => task.workspace.is_some(),
            TaskState::Ended(_) | TaskState::Draft => false,
            TaskState::Ready { .. } => self.book.needs_met(task),
            TaskState::Active { .. } => self.book.needs_met(task) || !self.is_queued(task.id),
            TaskState::Waiting { .. } | TaskState::Review { .. } => true,
        }) || self.git.base != self.git.branch
    }

    pub fn is_queued(&self, id: TaskId) -> bool {
        let doing = self.book.tasks.get(&id).map(|task| &task.state);
        matches!(doing, Some(TaskState::Active { doing: landfall_model::AttemptPhase::Queued { .. }, .. }))
    }
}

/// Runs that may be needed after the last trouble: budgets and pauses end runs early.
const HEAL_RUNS_MAX: usize = 80;
/// Rounds in which those who gave up are tried again.
const HEAL_RETRIES: usize = 30; // of those that want the same file, one lands in each
