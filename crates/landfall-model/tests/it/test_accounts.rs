//! Accounts that many tasks share: used up, logged out, tried by one, taken over by another profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use landfall_model::{
    AccountPermit, AccountState, Accounts, AgentAssignment, AgentDriveStyle, AgentExit, AgentRunEvidence,
    AgentRunTraces, AgentUsage, AttemptPhase, BudgetScope, ControlSignal, EndedRun, ExhaustedBudget,
    GrantKind, IntakeState, News, POLL_MS, ProfileRoute, RunId, ScheduleLimits, SessionStart, Signal,
    StepName, Task, TaskId, TaskInput, TaskLimits, TaskSpec, TaskState, Timestamp, WaitReason, World, apply,
    decide_and_apply, explain_task_state, plan,
};

use crate::flows_used::loops;
use crate::sim::Rng;
use crate::story::place;

/// A few tasks, an engine around them, and what happens, line by line.
struct Backlog {
    world: World,
    limits: ScheduleLimits,
    told: String,
}

/// `main → a`: a profile and its account. `main → a, else spare`: and the profile that takes over.
fn route(line: &str) -> (String, ProfileRoute) {
    let (profile, rest) = line.split_once(" → ").expect("a profile and its account");
    let (account, failover) = match rest.split_once(", else ") {
        Some((account, failover)) => (account, Some(failover.to_owned())),
        None => (rest, None),
    };
    (profile.to_owned(), ProfileRoute { account: account.to_owned(), failover })
}

/// A task that asks a person to log in.
fn asker(id: u32) -> Task {
    let mut task = Task::from_spec(TaskId(id), TaskSpec::new("a task").expect("a title"), Timestamp(0));
    let account = "any".to_owned();
    task.driving = Some(AgentAssignment {
        profile: "any".to_owned(),
        account: account.clone(),
        style: AgentDriveStyle::Fresh,
    });
    task.spec.agent = Some("any".to_owned());
    let wait = WaitReason::Login { account, detail: String::new(), asker: TaskId(id) };
    task.state = TaskState::Waiting { wait, then: StepName::new("work"), since: Timestamp(0) };
    task
}

impl Backlog {
    /// Tasks that ask for these profiles, in a world with these routes.
    fn new<const N: usize>(routes: &[&str], agents: [&str; N]) -> Self {
        let mut world = World::new(BTreeMap::from([("loop".to_owned(), loops())]), "loop");
        world.set_routes(routes.iter().copied().map(route).collect());
        for (id, agent) in (1..).zip(agents) {
            let mut spec = TaskSpec::new("a task").expect("a title");
            spec.agent = Some(agent.to_owned());
            world.put_task(Task::from_spec(TaskId(id), spec, Timestamp(0)));
        }
        let limits = ScheduleLimits { slots: 9, lanes: 9, now: Timestamp(1_000), spent: None };
        Self { world, limits, told: String::new() }
    }

    fn task(&self, id: u32) -> Task {
        (**self.world.get(TaskId(id)).expect("it exists")).clone()
    }

    fn hear(&mut self, id: u32, news: News) {
        let (at, spent) = (self.limits.now, self.limits.spent.clone());
        let mut task = self.task(id);
        let overruled = match &news {
            News::Retry { .. } => self.world.accounts().state_after_override(&task, at),
            _ => None,
        };
        let input =
            TaskInput { at, drive: IntakeState::Running, spent, attended: true, poll_ms: POLL_MS, news };
        let (after, decision) = decide_and_apply(&task, &input).unwrap_or_else(|refusal| panic!("{refusal}"));
        for event in &decision.events {
            let follows = self.world.accounts().state_after_event(&task, at, event);
            if let Some(state) = follows {
                let account = task.driving.as_ref().expect("a fact about an account").account.clone();
                self.world.set_account(&account, state);
            }
            task = apply(Some(task), TaskId(id), at, event).expect("decided");
        }
        assert_eq!(task, after);
        if let Some((account, state)) = overruled {
            self.world.set_account(&account, state);
        }
        self.world.put_task(after);
    }

    /// Whoever may start, starts, and its agent runs.
    fn start(mut self) -> Self {
        let mut started = Vec::new();
        while let Some(id) = self.world.find_rescuable_task(self.limits.now) {
            self.hear(id.0, News::RouteOpened);
        }
        while let Some(grant) = plan(&self.world, &self.limits) {
            let account = self.world.account_of(&grant.profile).to_owned();
            started.push(format!("{} by {}", grant.task, grant.profile));
            let driving =
                AgentAssignment { profile: grant.profile, account, style: AgentDriveStyle::Session };
            let (flow, limits) = (loops(), TaskLimits::default());
            self.hear(grant.task.0, News::Granted { run: RunId(1), flow, limits, driving });
            let task = self.task(grant.task.0);
            if let TaskState::Active { doing: AttemptPhase::Preparing { .. }, .. } = &task.state {
                let base = landfall_model::Commit::new("base");
                self.hear(grant.task.0, News::WorkspaceReady { attempt: task.attempt, base });
            }
        }
        let started = if started.is_empty() { "nobody".to_owned() } else { started.join(", ") };
        writeln!(self.told, "{started} started").expect("a string takes it");
        self
    }

    fn tell(mut self, what: &str, id: u32) -> Self {
        let place = place(&self.task(id));
        let shut = self.world.accounts().closed_accounts().map(|(account, state)| match state {
            AccountState::Open => unreachable!("those are left out"),
            AccountState::UsedUp { until, .. } => format!("; {account} is used up until {}", until.0),
            AccountState::Troubled { until, .. } => format!("; {account} is in trouble until {}", until.0),
            AccountState::LoggedOut { task } => format!("; {account} is logged out, {task} asks"),
        });
        let shut: String = shut.collect();
        writeln!(self.told, "T{id} {what} → {place}{shut}").expect("a string takes it");
        self
    }

    /// The agent of a task ends.
    fn ends(mut self, what: &str, id: u32, signals: &[Signal]) -> Self {
        let task = self.task(id);
        let TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } = task.state else {
            panic!("T{id} does not run: {}", place(&task))
        };
        self.hear(
            id,
            News::AgentEnded(EndedRun {
                attempt: task.attempt,
                iteration,
                exit: AgentExit::Code(0),
                seen: signals.to_vec(),
                evidence: AgentRunEvidence::default(),
                took_ms: 1_000,
                usage: AgentUsage::default(),
                traces: AgentRunTraces { session: Some(format!("s{id}")), ..AgentRunTraces::default() },
                climbed: None,
            }),
        );
        self.tell(what, id)
    }

    fn quota(self, id: u32, until: Option<i64>) -> Self {
        self.ends("quota", id, &[Signal::Quota { until: until.map(Timestamp) }])
    }

    fn overloaded(self, id: u32) -> Self {
        self.ends("overloaded", id, &[Signal::Transient { detail: "overloaded".to_owned() }])
    }

    /// The agent of a task has heard from its model, and goes on.
    fn answered(mut self, id: u32) -> Self {
        let account = self.task(id).driving.expect("it runs").account;
        if let Some(state) = self.world.accounts().state_after_answer(&account, self.limits.now) {
            self.world.set_account(&account, state);
        }
        self.tell("is answered", id)
    }

    fn unauthorized(self, id: u32) -> Self {
        self.ends("401", id, &[Signal::Unauthorized { detail: "token expired".to_owned() }])
    }

    fn complete(self, id: u32) -> Self {
        self.ends("COMPLETE", id, &[Signal::Said(ControlSignal::Complete)])
    }

    fn nothing(self, id: u32) -> Self {
        self.ends("no word", id, &[])
    }

    fn person(mut self, what: &str, id: u32, news: News) -> Self {
        self.hear(id, news);
        self.tell(what, id)
    }

    /// Time passes; whoever waited for the moment is told.
    fn at(mut self, now: i64) -> Self {
        self.limits.now = Timestamp(now);
        while let Some((due, task)) = self.world.next_due().filter(|(due, _)| due.0 <= now) {
            assert!(due.0 <= now);
            self.hear(task.0, News::Due);
        }
        writeln!(self.told, "at {now}").expect("a string takes it");
        self
    }

    fn spent(mut self, spent: Option<ExhaustedBudget>) -> Self {
        self.limits.spent = spent;
        self
    }

    /// Why a task is where it is.
    fn why(mut self, id: u32) -> Self {
        let task = self.task(id);
        let held = self.world.hold_reason(TaskId(id), &self.limits);
        let sentence = explain_task_state(&task, &[], held.as_ref(), &|at| format!("{} ms", at.0));
        writeln!(self.told, "why: {sentence}").expect("a string takes it");
        self
    }

    fn check(self, expect: expect_test::Expect) -> Self {
        expect.assert_eq(&self.told);
        self
    }
}

fn answer() -> News {
    News::Answer { text: "done".to_owned() }
}

// ── used up ──────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_used_up_account_is_shut_for_all_its_tasks_and_the_others_go_on() {
    let mut story = Backlog::new(&["main → a", "cheap → a", "other → b"], ["main", "main", "cheap", "other"]);
    story.limits.slots = 1;
    story.start().quota(1, Some(500_000)).start().complete(4).start().why(1).why(2).why(3).check(expect![[
        r#"
        T1 by main started
        T1 quota → waits for quota +499000ms, then work; a is used up until 500000
        T4 by other started
        T4 COMPLETE → ready for verify; a is used up until 500000
        T4 by other started
        why: T1 waits for the agent's account, which is used up until 500000 ms; no try is spent.
        why: T2 waits for the agent's account, which is used up until 500000 ms; no try is spent.
        why: T3 waits for the agent's account, which is used up until 500000 ms; no try is spent.
    "#
    ]]);
}

#[test]
fn after_the_reset_one_tries_first_and_when_it_ends_by_its_own_word_all_go_on() {
    let mut story = Backlog::new(&["main → a", "cheap → a"], ["main", "main", "cheap"]);
    story.limits.slots = 1;
    let mut story = story.start().quota(1, Some(500_000));
    story.limits.slots = 9;
    story
        .start()
        .at(499_999)
        .start()
        .at(500_000)
        .start()
        .at(505_308)
        .start()
        .why(1)
        .why(3)
        .nothing(2)
        .start()
        .check(expect![[r#"
        T1 by main started
        T1 quota → waits for quota +499000ms, then work; a is used up until 500000
        nobody started
        at 499999
        nobody started
        at 500000
        T2 by main started
        at 505308
        nobody started
        why: T1 waits for the agent's account, which is used up until 505308 ms; no try is spent.
        why: T3 waits for the agent's account, which is used up until 505308 ms; no try is spent.
        T2 no word → work a1: running 2
        T1 by main, T3 by cheap started
    "#]]);
}

#[test]
fn whoever_tries_first_and_fails_leaves_it_to_the_next() {
    Backlog::new(&["main → a"], ["main", "main"])
        .start()
        .quota(1, Some(500_000))
        .quota(2, Some(500_000))
        .at(506_000)
        .start()
        .overloaded(1)
        .start()
        .quota(2, Some(900_000))
        .start()
        .at(700_000)
        .start()
        .at(906_000)
        .start()
        .check(expect![[r#"
            T1 by main, T2 by main started
            T1 quota → waits for quota +499000ms, then work; a is used up until 500000
            T2 quota → waits for quota +499000ms, then work; a is used up until 500000
            at 506000
            T1 by main started
            T1 overloaded → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work; a is used up until 500000
            T2 by main started
            T2 quota → waits for quota +394000ms, then work; a is used up until 900000
            nobody started
            at 700000
            nobody started
            at 906000
            T1 by main started
        "#]]);
}

#[test]
fn nothing_is_spent_while_an_account_is_used_up() {
    let story = Backlog::new(&[], ["main"]).start().quota(1, Some(5_000_000)).at(6_000_000).start();
    let task = story.task(1);
    let counters = &task.counters;
    assert_eq!(
        (counters.iterations, counters.restarts, counters.transients, counters.stalls_total),
        (0, 0, 0, 0)
    );
    assert_eq!((counters.spent_ms, counters.agent_ms, counters.quota_waits), (1_000, 1_000, 1));
    assert_eq!(
        task.session_start(),
        SessionStart::Resumed { session: "s1".to_owned(), compact: false },
        "it goes on where it was"
    );
}

#[test]
fn a_reset_that_is_past_or_not_told_is_asked_for_again_later_and_later() {
    Backlog::new(&[], ["main"])
        .start()
        .quota(1, Some(-100_000))
        .at(306_308)
        .start()
        .quota(1, None)
        .at(911_616)
        .start()
        .quota(1, None)
        .check(expect![[r#"
            T1 by main started
            T1 quota → waits for quota +300000ms, then work; main is used up until 301000
            at 306308
            T1 by main started
            T1 quota → waits for quota +600000ms, then work; main is used up until 906308
            at 911616
            T1 by main started
            T1 quota → waits for quota +1200000ms, then work; main is used up until 2111616
        "#]]);
}

#[test]
fn a_reset_that_passes_while_the_agent_ends_is_waited_for_no_longer() {
    Backlog::new(&[], ["main"]).start().quota(1, Some(900)).at(8_000).start().quota(1, Some(7_900)).check(
        expect![[r#"
            T1 by main started
            T1 quota → waits for quota +1000ms, then work; main is used up until 2000
            at 8000
            T1 by main started
            T1 quota → waits for quota +2000ms, then work; main is used up until 10000
        "#]],
    );
}

#[test]
fn an_earlier_reset_does_not_shorten_and_a_later_one_lengthens() {
    Backlog::new(&[], ["main", "main", "main"])
        .start()
        .quota(1, Some(500_000))
        .quota(2, Some(400_000))
        .quota(3, Some(600_000))
        .check(expect![[r#"
            T1 by main, T2 by main, T3 by main started
            T1 quota → waits for quota +499000ms, then work; main is used up until 500000
            T2 quota → waits for quota +399000ms, then work; main is used up until 500000
            T3 quota → waits for quota +599000ms, then work; main is used up until 600000
        "#]]);
}

#[test]
fn a_reset_is_kept_once_whoever_tells_it() {
    let until = |story: &Backlog| match story.world.accounts().get("main") {
        AccountState::UsedUp { until, .. } => *until,
        other => panic!("it is {other:?}"),
    };
    let story = Backlog::new(&[], ["main", "main", "main"]).start().quota(1, Some(500_000));
    let first = until(&story);
    let story = story.quota(2, Some(500_000)).quota(3, Some(500_000));
    assert_eq!(until(&story), first);
}

#[test]
fn an_agent_that_was_at_work_already_does_not_open_the_account_before_its_reset() {
    let story = Backlog::new(&[], ["main", "main"]).start().quota(1, Some(500_000)).complete(2);
    let leave = AccountPermit::for_state(story.world.accounts().get("main"), story.limits.now);
    assert!(matches!(leave, AccountPermit::Never { until: Some(_) }), "{leave:?}");
}

fn again() -> News {
    News::Retry { fresh: false, note: None }
}

#[test]
fn a_retry_overrules_a_reset_and_one_finds_out_for_the_others() {
    let told = || {
        let mut story = Backlog::new(&[], ["main", "main", "main"]);
        story.limits.slots = 2;
        let mut story = story.start().quota(1, Some(500_000)).quota(2, Some(500_000));
        story.limits.slots = 9;
        story.told.clear();
        story.at(300_000).person("retry", 1, again()).start()
    };
    // It was right.
    told().nothing(1).start().check(expect![[r#"
        at 300000
        T1 retry → ready for work; main is used up until 300000
        T1 by main started
        T1 no word → work a2: running 2
        T2 by main, T3 by main started
    "#]]);
    // It was wrong: the others are where they were.
    told().quota(1, Some(500_000)).start().check(expect![[r#"
        at 300000
        T1 retry → ready for work; main is used up until 300000
        T1 by main started
        T1 quota → waits for quota +200000ms, then work; main is used up until 500000
        nobody started
    "#]]);
}

#[test]
fn only_a_task_that_waits_for_its_account_overrules_it_and_only_a_time() {
    let shut = |task: u32| {
        let story = Backlog::new(&[], ["main", "main", "main"]).start().quota(1, Some(500_000));
        story.world.accounts().state_after_override(&story.task(task), story.limits.now)
    };
    let tried = AccountState::UsedUp { until: Timestamp(1_000), guessed: false };
    assert_eq!(shut(1), Some(("main".to_owned(), tried)));
    assert_eq!(shut(2), None, "it is at work");
    let story = Backlog::new(&[], ["main", "main"]).start().unauthorized(1);
    let overruled = story.world.accounts().state_after_override(&story.task(1), story.limits.now);
    assert_eq!(overruled, None, "the answer to its question does that");
    let story = Backlog::new(&[], ["main"]).start().quota(1, Some(500_000)).at(500_000);
    let overruled = story.world.accounts().state_after_override(&story.task(1), story.limits.now);
    assert_eq!(overruled, None, "it may be tried already");
}

#[test]
fn the_first_answer_of_the_model_opens_an_account_that_was_to_be_tried() {
    let mut story = Backlog::new(&["main → a"], ["main", "main", "main"]);
    story.limits.slots = 1;
    let mut story = story.start().quota(1, Some(500_000));
    story.limits.slots = 9;
    story.at(506_000).start().start().answered(1).start().check(expect![[r#"
        T1 by main started
        T1 quota → waits for quota +499000ms, then work; a is used up until 500000
        at 506000
        T1 by main started
        nobody started
        T1 is answered → work a2: running 1
        T2 by main, T3 by main started
    "#]]);
}

#[test]
fn an_answer_opens_no_account_before_its_time_or_its_login() {
    let used_up = Backlog::new(&[], ["main", "main"]).start().quota(1, Some(500_000));
    let troubled = Backlog::new(&[], ["main", "main"]).start().overloaded(1).at(3_000).start().overloaded(1);
    let logged_out = Backlog::new(&[], ["main", "main"]).start().unauthorized(1);
    for story in [used_up, troubled, logged_out] {
        let before = story.world.accounts().clone();
        let story = story.answered(2);
        assert_eq!(*story.world.accounts(), before, "{}", story.told);
    }
    let open = Backlog::new(&[], ["main"]).start();
    assert_eq!(open.world.accounts().state_after_answer("main", open.limits.now), None, "it is open already");
}

// ── a provider in trouble ────────────────────────────────────────────────────────────────────────────────

#[test]
fn two_passing_errors_in_a_row_hold_the_account_and_one_tries_first() {
    let mut story = Backlog::new(&["main → a", "cheap → a", "other → b"], ["main", "main", "cheap", "other"]);
    story.limits.slots = 1;
    let mut story = story.start().overloaded(1).at(3_000).start().overloaded(1);
    story.limits.slots = 9;
    story
        .start()
        .why(1)
        .why(2)
        .why(3)
        .at(6_000)
        .start()
        .why(2)
        .overloaded(1)
        .start()
        .at(12_000)
        .start()
        .nothing(1)
        .start()
        .check(expect![[r#"
            T1 by main started
            T1 overloaded → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work
            at 3000
            T1 by main started
            T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; a is in trouble until 5123
            T4 by other started
            why: T1 tries again 5123 ms: a passing error of the provider (overloaded).
            why: T2 tries again 5123 ms: passing errors of the provider of `a`.
            why: T3 tries again 5123 ms: passing errors of the provider of `a`.
            at 6000
            T1 by main started
            why: T2 tries again 6000 ms: passing errors of the provider of `a`.
            T1 overloaded → waits for backoff +4246ms (a passing error of the provider (overloaded)), then work; a is in trouble until 10246
            nobody started
            at 12000
            T1 by main started
            T1 no word → work a4: running 2
            T2 by main, T3 by cheap started
        "#]]);
}

#[test]
fn one_passing_error_may_be_chance_and_so_may_one_of_each_task() {
    let story = Backlog::new(&[], ["main", "main", "main"]).start().overloaded(1).overloaded(2).overloaded(3);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open, "{}", story.told);
}

#[test]
fn a_run_that_goes_well_forgets_the_passing_error_before_it() {
    let story = Backlog::new(&[], ["main"]).start().overloaded(1).at(3_000).start().nothing(1).overloaded(1);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open, "{}", story.told);
}

#[test]
fn only_passing_errors_hold_an_account_not_what_else_a_task_pauses_for() {
    // Twice in trouble, then its model answers and only then it crashes.
    let story = Backlog::new(&[], ["main"])
        .start()
        .overloaded(1)
        .at(3_000)
        .start()
        .overloaded(1)
        .at(6_000)
        .start()
        .answered(1);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open, "{}", story.told);
    let finish = landfall_model::AgentFinish::Error;
    let story = story.ends("crash", 1, &[Signal::Finished { how: finish, text: String::new() }]);
    let task = story.task(1);
    assert!(
        matches!(task.state, TaskState::Waiting { wait: WaitReason::Backoff { .. }, .. }),
        "{}",
        story.told
    );
    assert_eq!(task.counters.transients, 2);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open, "{}", story.told);
}

#[test]
fn a_later_try_is_not_drawn_nearer_by_whoever_was_at_work_as_well() {
    let mut story = Backlog::new(&[], ["main", "main"]);
    story.limits.slots = 1;
    let mut story = story.start().overloaded(1).at(3_000).start().overloaded(1).at(6_000).start();
    // Another finds it open and begins; T1 fails for the third time, the other for the second.
    story = story.answered(1);
    story.limits.slots = 9;
    let mut other = story.task(2);
    other.counters.transients = 1;
    story.world.put_task(other);
    story.told.clear();
    story.start().overloaded(1).overloaded(2).check(expect![[r#"
        T2 by main started
        T1 overloaded → waits for backoff +4246ms (a passing error of the provider (overloaded)), then work; main is in trouble until 10246
        T2 overloaded → waits for backoff +2046ms (a passing error of the provider (overloaded)), then work; main is in trouble until 10246
    "#]]);
}

#[test]
fn a_reset_and_a_login_outweigh_a_passing_trouble() {
    let twice = || {
        let story = Backlog::new(&[], ["main", "main", "main"]).start().overloaded(1).at(3_000).start();
        Backlog { told: String::new(), ..story }
    };
    twice().quota(2, Some(500_000)).overloaded(1).check(expect![[r#"
        T2 quota → waits for quota +497000ms, then work; main is used up until 500000
        T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is used up until 500000
    "#]]);
    twice().overloaded(1).quota(2, Some(500_000)).check(expect![[r#"
        T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is in trouble until 5123
        T2 quota → waits for quota +497000ms, then work; main is used up until 500000
    "#]]);
    twice().unauthorized(2).overloaded(1).check(expect![[r#"
        T2 401 → waits for a login to main (token expired), then work; main is logged out, T2 asks
        T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is logged out, T2 asks
    "#]]);
    twice().overloaded(1).unauthorized(2).check(expect![[r#"
        T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is in trouble until 5123
        T2 401 → waits for a login to main (token expired), then work; main is logged out, T2 asks
    "#]]);
}

#[test]
fn an_outage_at_the_reset_holds_the_account_too() {
    // Otherwise one task after the other would meet it, each with nothing between.
    Backlog::new(&[], ["main", "main"])
        .start()
        .overloaded(1)
        .at(3_000)
        .start()
        .quota(1, Some(500_000))
        .quota(2, Some(500_000))
        .at(506_000)
        .start()
        .overloaded(1)
        .start()
        .check(expect![[r#"
            T1 by main, T2 by main started
            T1 overloaded → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work
            at 3000
            T1 by main started
            T1 quota → waits for quota +497000ms, then work; main is used up until 500000
            T2 quota → waits for quota +497000ms, then work; main is used up until 500000
            at 506000
            T1 by main started
            T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is in trouble until 508123
            nobody started
        "#]]);
}

#[test]
fn a_retry_overrules_a_trouble_and_one_finds_out() {
    let mut story = Backlog::new(&[], ["main", "main"]);
    story.limits.slots = 1;
    let mut story = story.start().overloaded(1).at(3_000).start().overloaded(1);
    story.limits.slots = 9;
    story.start().person("retry", 1, again()).start().overloaded(1).start().check(expect![[r#"
        T1 by main started
        T1 overloaded → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work
        at 3000
        T1 by main started
        T1 overloaded → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work; main is in trouble until 5123
        nobody started
        T1 retry → ready for work; main is used up until 3000
        T1 by main started
        T1 overloaded → waits for backoff +4246ms (a passing error of the provider (overloaded)), then work; main is in trouble until 7246
        nobody started
    "#]]);
}

#[test]
fn in_an_outage_of_days_no_task_fails_and_one_agent_tries_at_a_time() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let mut story = Backlog::new(&[], ["main", "main", "main"]).start();
    let (mut now, mut tries) = (1_000, 0);
    while now < 2 * DAY_MS {
        let at_work: Vec<u32> =
            (1..4).filter(|id| matches!(story.task(*id).state, TaskState::Active { .. })).collect();
        let known = *story.world.accounts().get("main") != AccountState::Open;
        assert!(!known || tries < 9 || at_work.len() <= 1, "{at_work:?} at {now}:\n{}", story.told);
        tries += at_work.len();
        for id in at_work {
            story = story.overloaded(id);
            assert!(matches!(story.task(id).state, TaskState::Waiting { .. }), "{}", story.told);
        }
        let due = story.world.next_due().map(|(due, _)| due.0);
        let opening = story.world.next_opening(story.limits.now).map(|at| at.0);
        now = now.max(due.into_iter().chain(opening).min().expect("it is tried again"));
        story.told.clear();
        story = story.at(now).start();
    }
    // Ten minutes between two tries, whichever task tries: 288 in two days.
    assert!((200..320).contains(&tries), "{tries} tries");
}

#[test]
fn an_answer_that_never_came_shuts_the_account_at_once() {
    let mut story = Backlog::new(&[], ["main", "main"]).start();
    let run = |story: &Backlog, id: u32| {
        let task = story.task(id);
        let TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } = task.state else {
            panic!("T{id} runs")
        };
        EndedRun {
            attempt: task.attempt,
            iteration,
            exit: AgentExit::Silent,
            seen: Vec::new(),
            evidence: AgentRunEvidence {
                unanswered: true,
                model_wait_ms: 600_000,
                ..AgentRunEvidence::default()
            },
            took_ms: 601_500,
            usage: AgentUsage::default(),
            traces: AgentRunTraces::default(),
            climbed: None,
        }
    };
    let ended = run(&story, 1);
    story.hear(1, News::AgentEnded(ended));
    let story = story.tell("is not answered", 1);
    assert!(
        matches!(story.world.accounts().get("main"), AccountState::Troubled { tries: 1, .. }),
        "{}",
        story.told
    );
    let task = story.task(1);
    assert_eq!(task.counters.agent_ms, 1_500, "the silence is no working time");
    assert_eq!((task.counters.stalls_total, task.counters.restarts), (0, 0));
    story.why(1).check(expect![[r#"
        T1 by main, T2 by main started
        T1 is not answered → waits for backoff +1061ms (a passing error of the provider (the model did not answer for 10m)), then work; main is in trouble until 2061
        why: T1 tries again 2061 ms: a passing error of the provider (the model did not answer for 10m).
    "#]]);
}

#[test]
fn an_agent_that_waits_for_its_account_keeps_the_others_away_and_spends_no_time() {
    let mut story = Backlog::new(&[], ["main"]).start();
    let attempt = story.task(1).attempt;
    let began = |until| News::AccountWaitBegan { attempt, iteration: 1, until };
    story.hear(1, began(Some(Timestamp(90_000))));
    assert_eq!(
        *story.world.accounts().get("main"),
        AccountState::UsedUp { until: Timestamp(90_000), guessed: false }
    );
    let told = explain_task_state(&story.task(1), &[], None, &|at| format!("{} ms", at.0));
    assert!(told.contains("waits for its account, which is used up until 90000 ms"), "{told}");
    // What the journal knows is what the next engine begins with.
    assert_eq!(story.task(1).account_waits.since, Some(Timestamp(1_000)));
    story.limits.now = Timestamp(91_000);
    story.hear(1, News::AccountWaitEnded { attempt, iteration: 1 });
    assert_eq!(story.task(1).account_waits.over_ms, 90_000);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open);
}

#[test]
fn whoever_may_take_over_does_while_a_provider_is_in_trouble() {
    let mut story = Backlog::new(&["main → a, else spare", "spare → b"], ["main", "main"]);
    story.limits.slots = 1;
    let mut story = story.start().overloaded(1).at(3_000).start().overloaded(1);
    story.limits.slots = 9;
    let story = story.start();
    assert_eq!(story.told.lines().last(), Some("T2 by spare started"), "{}", story.told);
}

// ── failover ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn another_profile_takes_over_only_if_settings_say_so_and_hands_back_afterwards() {
    Backlog::new(&["main → a, else spare", "spare → b", "alone → a"], ["main", "alone"])
        .start()
        .quota(1, Some(500_000))
        .quota(2, Some(500_000))
        .at(300_000)
        .start()
        .nothing(1)
        .overloaded(1)
        .at(506_000)
        .start()
        .complete(1)
        .start()
        .check(expect![[r#"
            T1 by main, T2 by alone started
            T1 quota → waits for quota +499000ms, then work; a is used up until 500000
            T2 quota → waits for quota +499000ms, then work; a is used up until 500000
            at 300000
            T1 by spare started
            T1 no word → work a2: running 2; a is used up until 500000
            T1 overloaded → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work; a is used up until 500000
            at 506000
            T1 by main started
            T1 COMPLETE → ready for verify
            T1 by main, T2 by alone started
        "#]]);
}

#[test]
fn whoever_meets_the_quota_is_taken_over_as_well() {
    let story = Backlog::new(&["main → a, else spare", "spare → b"], ["main"])
        .start()
        .quota(1, Some(500_000))
        .start();
    let last = story.told.lines().last().expect("told").to_owned();
    assert_eq!(last, "T1 by spare started");
}

#[test]
fn whoever_waits_goes_on_as_soon_as_another_has_found_the_account_open() {
    let mut story = Backlog::new(&[], ["main", "main", "main"]);
    story.limits.slots = 2;
    let mut story = story.start().quota(1, Some(500_000)).quota(2, Some(500_000));
    story.limits.slots = 9;
    story.at(500_000).start().start().nothing(3).start().check(expect![[r#"
        T1 by main, T2 by main started
        T1 quota → waits for quota +499000ms, then work; main is used up until 500000
        T2 quota → waits for quota +499000ms, then work; main is used up until 500000
        at 500000
        T3 by main started
        nobody started
        T3 no word → work a1: running 2
        T1 by main, T2 by main started
    "#]]);
}

#[test]
fn when_both_accounts_are_shut_the_first_is_named_and_profiles_that_lead_round_in_a_circle_end() {
    let mut story = Backlog::new(&["main → a, else spare", "spare → b, else main"], ["main"]);
    story.world.put_task(asker(9));
    story.world.set_account("a", AccountState::UsedUp { until: Timestamp(500_000), guessed: false });
    story.world.set_account("b", AccountState::LoggedOut { task: TaskId(9) });
    story.start().why(1).check(expect![[r#"
        T9 by any, T1 by spare started
        why: T1 is in step `work`: the agent works on iteration 1 of 50 since 1000 ms.
    "#]]);
}

#[test]
fn the_next_opening_is_when_the_account_opens() {
    let mut story = Backlog::new(&["main → a"], ["main"]);
    story.world.put_task(asker(9));
    assert_eq!(story.world.next_opening(Timestamp(0)), None);
    story.world.set_account("a", AccountState::UsedUp { until: Timestamp(500_000), guessed: false });
    assert_eq!(story.world.next_opening(Timestamp(0)), Some(Timestamp(500_000)));
    assert_eq!(story.world.next_opening(Timestamp(500_000)), None);
    story.world.set_account("a", AccountState::LoggedOut { task: TaskId(9) });
    assert_eq!(story.world.next_opening(Timestamp(0)), None);
}

#[test]
fn the_next_opening_is_also_that_of_the_profile_that_takes_over() {
    for first in [
        AccountState::UsedUp { until: Timestamp(900), guessed: false },
        AccountState::LoggedOut { task: TaskId(9) },
    ] {
        let mut story = Backlog::new(&["main → a, else spare", "spare → b"], ["main"]);
        story.world.put_task(asker(9));
        story.world.set_account("a", first);
        story.world.set_account("b", AccountState::UsedUp { until: Timestamp(500), guessed: false });
        let opens = story.world.next_opening(Timestamp(0));
        assert_eq!(opens, Some(Timestamp(500)));
    }
}

// ── logins ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_logged_out_account_holds_all_its_tasks_until_the_asker_is_answered_and_one_tries() {
    let mut story = Backlog::new(&["main → a", "other → b"], ["main", "main", "main", "other"]);
    story.limits.slots = 1;
    let mut story = story.start().unauthorized(1);
    story.limits.slots = 9;
    story.start().why(1).person("answer", 1, answer()).start().nothing(1).start().check(expect![[r#"
        T1 by main started
        T1 401 → waits for a login to a (token expired), then work; a is logged out, T1 asks
        T4 by other started
        why: T1 waits because the account `a` wants a login: token expired; log in, then `landfall answer T1 done` goes on.
        T1 answer → ready for work; a is used up until 1000
        T1 by main started
        T1 no word → work a2: running 2
        T2 by main, T3 by main started
    "#]]);
}

#[test]
fn whoever_asks_for_a_login_goes_on_asking_though_another_profile_could_take_over() {
    // Else nobody would be asked, and whoever asked would meet the same refusal at once, over and over.
    let routes = ["main → a, else spare", "spare → b"];
    Backlog::new(&routes, ["main"]).start().unauthorized(1).start().check(expect![[r#"
        T1 by main started
        T1 401 → waits for a login to a (token expired), then work; a is logged out, T1 asks
        nobody started
    "#]]);
    let mut story = Backlog::new(&routes, ["main", "main"]);
    story.limits.slots = 1;
    let story = story.start().unauthorized(1).start();
    assert_eq!(story.told.lines().last(), Some("T2 by spare started"), "{}", story.told);
}

#[test]
fn whoever_asks_for_a_login_goes_on_once_the_account_is_open() {
    let story = Backlog::new(&[], ["main", "main"]).start().unauthorized(1).unauthorized(2);
    story.person("answer", 2, answer()).start().answered(2).start().check(expect![[r#"
        T1 by main, T2 by main started
        T1 401 → waits for a login to main (token expired), then work; main is logged out, T1 asks
        T2 401 → waits for a login to main (token expired), then work; main is logged out, T2 asks
        T2 answer → ready for work; main is used up until 1000
        T2 by main started
        T2 is answered → work a2: running 1
        T1 by main started
    "#]]);
}

#[test]
fn a_retry_a_pause_or_a_cancel_of_the_asker_lets_one_try_as_well() {
    let asked = || {
        let mut story = Backlog::new(&[], ["main", "main"]);
        story.limits.slots = 1;
        let mut story = story.start().unauthorized(1);
        story.limits.slots = 9;
        story.told.clear();
        story.start()
    };
    asked().person("retry", 1, again()).start().check(expect![[r#"
        nobody started
        T1 retry → ready for work; main is used up until 1000
        T1 by main started
    "#]]);
    asked().person("retry fresh", 1, News::Retry { fresh: true, note: None }).start().check(expect![[r#"
        nobody started
        T1 retry fresh → ready; main is used up until 1000
        T2 by main started
    "#]]);
    asked().person("stop", 1, News::StopTask).start().check(expect![[r#"
        nobody started
        T1 stop → waits for pause, then work; main is used up until 1000
        T2 by main started
    "#]]);
    asked().person("cancel", 1, News::Cancel { reason: String::new() }).start().check(expect![[r#"
        nobody started
        T1 cancel → Cancelled(person); main is used up until 1000
        T2 by main started
    "#]]);
}

#[test]
fn an_agent_that_ends_well_on_a_logged_out_account_opens_it() {
    Backlog::new(&[], ["main", "main", "main"]).start().unauthorized(1).unauthorized(2).complete(3).check(
        expect![[r#"
            T1 by main, T2 by main, T3 by main started
            T1 401 → waits for a login to main (token expired), then work; main is logged out, T1 asks
            T2 401 → waits for a login to main (token expired), then work; main is logged out, T2 asks
            T3 COMPLETE → ready for verify
        "#]],
    );
}

#[test]
fn an_answer_to_either_of_two_askers_lets_one_try() {
    for asker in [1, 2] {
        let mut story = Backlog::new(&[], ["main", "main"]).start().unauthorized(1).unauthorized(2);
        story = story.person("answer", asker, answer());
        let leave = AccountPermit::for_state(story.world.accounts().get("main"), story.limits.now);
        assert_eq!(leave, AccountPermit::One, "after an answer to T{asker}");
    }
}

#[test]
fn an_account_whose_asker_has_gone_on_is_tried_by_one() {
    // As after a crash between the answer and what it means for the account.
    let story = Backlog::new(&[], ["main", "main"]).start().unauthorized(1).nothing(2);
    let mut story = story.person("answer", 1, answer());
    story.world.set_account("main", AccountState::LoggedOut { task: TaskId(1) });
    assert_eq!(story.world.account_permit("main", story.limits.now), AccountPermit::One);
    assert_eq!(
        story.world.hold_reason(TaskId(1), &story.limits),
        Some(WaitReason::Quota { until: story.limits.now, guessed: false })
    );
    let story = story.complete(2);
    assert_eq!(*story.world.accounts().get("main"), AccountState::Open);
}

#[test]
fn a_pause_that_is_over_is_no_login() {
    let story = Backlog::new(&[], ["main", "main"]).start().overloaded(2).unauthorized(1).at(60_000).start();
    assert_eq!(story.told.lines().last(), Some("nobody started"), "{}", story.told);
}

#[test]
fn why_names_the_task_to_answer() {
    let mut story = Backlog::new(&[], ["main", "main"]);
    story.limits.slots = 1;
    let story = story.start().unauthorized(1).start().why(2);
    let sentence = story.told.lines().last().expect("told");
    assert!(sentence.contains("`landfall answer T1 "), "{sentence}");
}

// ── the days budget ──────────────────────────────────────────────────────────────────────────────────────

#[test]
fn with_the_days_budget_used_up_nobody_starts_an_agent_but_verification_goes_on() {
    let spent = ExhaustedBudget {
        scope: BudgetScope::Day,
        what: "$41.00 of $40.00".to_owned(),
        until: Some(Timestamp(86_400_000)),
    };
    Backlog::new(&["main → a, else spare", "spare → b"], ["main", "main"])
        .start()
        .complete(1)
        .spent(Some(spent))
        .start()
        .nothing(2)
        .start()
        .why(2)
        .spent(None)
        .start()
        .check(expect![[r#"
            T1 by main, T2 by main started
            T1 COMPLETE → ready for verify
            T1 by main started
            T2 no word → ready for work
            nobody started
            why: T2 waits because the day's budget is used up ($41.00 of $40.00); agents start again 86400000 ms.
            T2 by main started
        "#]]);
}

#[test]
fn the_budget_of_a_run_holds_until_the_next_run() {
    let spent = ExhaustedBudget { scope: BudgetScope::Run, what: "900 of 800 turns".to_owned(), until: None };
    Backlog::new(&[], ["main"]).spent(Some(spent)).start().why(1).check(expect![[r#"
        nobody started
        why: T1 waits because the budget of this run is used up (900 of 800 turns); another `landfall run` continues.
    "#]]);
}

// ── the lines, against a naive model ─────────────────────────────────────────────────────────────────────

/// What the world should do, found out by looking at everything.
struct Naive<'a> {
    world: &'a World,
    routes: &'a BTreeMap<String, ProfileRoute>,
    accounts: &'a Accounts,
    limits: &'a ScheduleLimits,
}

impl Naive<'_> {
    fn account(&self, profile: &str) -> String {
        self.routes.get(profile).map_or(profile, |route| &route.account).to_owned()
    }

    fn at_work(&self, account: &str) -> usize {
        let works = |task: &&std::sync::Arc<Task>| {
            let agent = AttemptPhase::Preparing { fresh: false, stop: None };
            let at_work = matches!(&task.state, TaskState::Active { doing, .. }
                if std::mem::discriminant(doing) == std::mem::discriminant(&agent)
                    || matches!(doing, AttemptPhase::Running { .. }));
            at_work && task.driving.as_ref().is_some_and(|driving| driving.account == account)
        };
        self.world.tasks().filter(works).count()
    }

    /// Its own profile and all that may take over, in order, each once.
    fn chain(&self, profile: &str) -> Vec<String> {
        let mut chain = vec![profile.to_owned()];
        while let Some(next) =
            self.routes.get(chain.last().expect("never empty")).and_then(|it| it.failover.clone())
        {
            if chain.contains(&next) {
                break;
            }
            chain.push(next);
        }
        chain
    }

    fn may_start(&self, profile: &str) -> bool {
        let account = self.account(profile);
        let leave = match self.accounts.get(&account) {
            AccountState::LoggedOut { task } => {
                let asks = self.world.tasks().any(|it| {
                    it.id == *task
                        && matches!(it.state, TaskState::Waiting { wait: WaitReason::Login { .. }, .. })
                });
                if asks { AccountPermit::Never { until: None } } else { AccountPermit::One }
            }
            state => AccountPermit::for_state(state, self.limits.now),
        };
        match leave {
            AccountPermit::Free => true,
            AccountPermit::One => self.at_work(&account) == 0,
            AccountPermit::Never { .. } => false,
        }
    }

    /// Ready tasks for a slot in the order of their score, with the profile each would start by.
    fn slots(&self) -> Vec<(TaskId, Option<String>)> {
        let ready = |task: &&std::sync::Arc<Task>| {
            matches!(&task.state, TaskState::Ready { next, .. } if
            next.as_ref().is_none_or(|next| next.as_str() == "work"))
        };
        let mut ready: Vec<_> = self.world.tasks().filter(ready).collect();
        ready.sort_by_key(|task| landfall_model::rank_task(self.world, task));
        let by = |task: &Task| {
            self.chain(World::profile_of(task)).into_iter().find(|profile| self.may_start(profile))
        };
        ready.into_iter().map(|task| (task.id, by(task))).collect()
    }
}

#[test]
fn the_lines_agree_with_a_naive_model_and_no_grant_is_on_a_shut_account() {
    let profiles = ["p0", "p1", "p2", "p3", "p4"];
    let (mut grants, mut held) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let routes: BTreeMap<String, ProfileRoute> = profiles[..4]
            .iter()
            .map(|profile| {
                let account = format!("a{}", rng.below(3));
                let failover = (rng.below(2) == 0).then(|| profiles[rng.below(5)].to_owned());
                ((*profile).to_owned(), ProfileRoute { account, failover })
            })
            .collect();
        let mut world = World::new(BTreeMap::from([("loop".to_owned(), loops())]), "loop");
        world.set_routes(routes.clone());
        let mut accounts = Accounts::default();
        let mut limits =
            ScheduleLimits { slots: 1 + rng.below(4) as u32, lanes: 1, now: Timestamp(0), spent: None };
        for tick in 0..120 {
            let id = TaskId(1 + rng.below(10) as u32);
            match rng.below(8) {
                0 => limits.now = limits.now.plus_ms(rng.below(30) as u64),
                1 => {
                    let account = ["a0", "a1", "a2", "p4"][rng.below(4)];
                    let state = match rng.below(4) {
                        0 => {
                            if rng.below(4) > 0 {
                                world.put_task(asker(id.0));
                            }
                            AccountState::LoggedOut { task: id }
                        }
                        1 => AccountState::Open,
                        2 => AccountState::Troubled {
                            until: limits.now.plus_ms(rng.below(40) as u64),
                            tries: 2,
                        },
                        _ => AccountState::UsedUp {
                            until: limits.now.plus_ms(rng.below(40) as u64),
                            guessed: false,
                        },
                    };
                    accounts.set_state(account, state.clone());
                    world.set_account(account, state);
                }
                2 => {
                    let what = "all of it".to_owned();
                    limits.spent = (rng.below(4) == 0).then_some(ExhaustedBudget {
                        scope: BudgetScope::Run,
                        what,
                        until: None,
                    });
                }
                _ => {
                    let mut spec = TaskSpec::new("a task").expect("a title");
                    spec.agent = (rng.below(6) > 0).then(|| profiles[rng.below(5)].to_owned());
                    spec.priority = rng.below(10) as u8;
                    let mut task = Task::from_spec(id, spec, limits.now);
                    task.flow = Some(loops());
                    let name = |word| StepName::new(word);
                    task.state = match rng.below(6) {
                        0..=2 => TaskState::Ready { next: Some(name("work")), since: limits.now },
                        3 => TaskState::Ready { next: Some(name("verify")), since: limits.now },
                        4 => TaskState::Waiting {
                            wait: WaitReason::Pause,
                            then: name("work"),
                            since: limits.now,
                        },
                        _ => TaskState::Active { step: name("report"), doing: AttemptPhase::Reporting },
                    };
                    world.put_task(task);
                }
            }
            let naive = Naive { world: &world, routes: &routes, accounts: &accounts, limits: &limits };
            let line = naive.slots();
            let room = world.holder_count(GrantKind::Slot) < limits.slots as usize && limits.spent.is_none();
            let first = line.iter().find(|(_, by)| by.is_some()).filter(|_| room);
            for (task, by) in &line {
                let free = room && by.is_some();
                assert_eq!(
                    world.hold_reason(*task, &limits).is_none(),
                    free,
                    "seed {seed}, tick {tick}: {task}"
                );
                held += usize::from(!free);
            }
            let grant = plan(&world, &limits).filter(|grant| grant.standing == GrantKind::Slot);
            let other_first = plan(&world, &limits).is_some_and(|grant| grant.standing != GrantKind::Slot);
            if other_first {
                continue;
            }
            let wanted = first.map(|(task, by)| (*task, by.clone().expect("it may start")));
            let got = grant.map(|grant| (grant.task, grant.profile));
            assert_eq!(got, wanted, "seed {seed}, tick {tick}");
            if let Some((id, profile)) = got {
                let mut task = (**world.get(id).expect("granted")).clone();
                let account = naive.account(&profile);
                task.driving = Some(AgentAssignment { profile, account, style: AgentDriveStyle::Fresh });
                let doing = AttemptPhase::Preparing { fresh: true, stop: None };
                task.state = TaskState::Active { step: StepName::new("work"), doing };
                world.put_task(task);
                grants += 1;
            }
        }
        let mut anew = World::new(BTreeMap::from([("loop".to_owned(), loops())]), "loop");
        anew.set_routes(routes.clone());
        for (account, state) in world.accounts().closed_accounts() {
            anew.set_account(account, state.clone());
        }
        for task in world.tasks() {
            anew.put_task((**task).clone());
        }
        assert!(anew == world, "seed {seed}: the kept world is not the one made anew");
    }
    assert!(grants > 1_000 && held > 5_000, "{grants} grants, {held} held: too few to mean anything");
}
