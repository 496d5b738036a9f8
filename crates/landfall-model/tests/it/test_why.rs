//! `why` answers in one sentence for every status and every wait there is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect;
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::{
    AttemptPhase, Commit, EndCode, EndKind, Ending, LandingRecord, SessionStart, StepName, StopRequest, Task,
    TaskHold, TaskId, TaskSpec, TaskState, TaskStatus, Timestamp, Tree, TurnBlocker, WaitReason,
    explain_task_state,
};

use crate::flows_used::loops;
use crate::story::concern;

/// One of each, by name: a new variant does not compile until it is in here.
fn waits() -> Vec<WaitReason> {
    let first = |wait: &WaitReason| match wait {
        WaitReason::Dependency(_) => Some(WaitReason::Slot),
        WaitReason::Slot => {
            Some(WaitReason::Turn(TurnBlocker::Profile { name: "default".to_owned(), slots: 2 }))
        }
        WaitReason::Turn(TurnBlocker::Profile { .. }) => {
            Some(WaitReason::Turn(TurnBlocker::Account { name: "main".to_owned(), slots: 2 }))
        }
        WaitReason::Turn(TurnBlocker::Account { .. }) => {
            Some(WaitReason::Turn(TurnBlocker::Area { name: "web".to_owned(), slots: 1 }))
        }
        WaitReason::Turn(TurnBlocker::Area { .. }) => {
            Some(WaitReason::Turn(TurnBlocker::Overlap { with: TaskId(3), path: "src/lib.rs".to_owned() }))
        }
        WaitReason::Turn(TurnBlocker::Overlap { .. }) => {
            Some(WaitReason::Quota { until: Timestamp(60_000), guessed: false })
        }
        WaitReason::Quota { .. } => Some(WaitReason::Login {
            account: "main".to_owned(),
            detail: "401 OAuth token has expired".to_owned(),
            asker: TaskId(7),
        }),
        WaitReason::Login { .. } => {
            Some(WaitReason::Budget { what: "$40.12 of $40.00".to_owned(), until: Some(Timestamp(60_000)) })
        }
        WaitReason::Budget { until: Some(_), .. } => {
            Some(WaitReason::Budget { what: "900 of 800 turns".to_owned(), until: None })
        }
        WaitReason::Budget { until: None, .. } => {
            Some(WaitReason::Question { text: "Which port?".to_owned() })
        }
        WaitReason::Question { .. } => Some(WaitReason::Backoff {
            until: Timestamp(60_000),
            cause: "the agent crashed (exit code 1)".to_owned(),
        }),
        WaitReason::Backoff { .. } => {
            Some(WaitReason::Disk { detail: "1 GB is left, 5 GB are wanted".to_owned() })
        }
        WaitReason::Disk { .. } => Some(WaitReason::Pause),
        WaitReason::Pause => Some(WaitReason::Conflict {
            base: Commit::new("0123456789abcdef"),
            files: vec!["src/a.rs (30 lines)".to_owned(), "logo.png (binary)".to_owned()],
            until: Timestamp(60_000),
            overdue: ConflictTimeoutAction::Defer,
        }),
        WaitReason::Conflict { .. } => Some(WaitReason::GateBroken {
            command: "tests".to_owned(),
            detail: "`cargo test` was not found (exit code 127)".to_owned(),
        }),
        WaitReason::GateBroken { .. } => Some(WaitReason::Parts),
        WaitReason::Parts => {
            Some(WaitReason::Blockers { by: vec!["#3".to_owned(), "other/place#4".to_owned()] })
        }
        WaitReason::Blockers { .. } => None,
    };
    let mut all = vec![WaitReason::Dependency(vec![TaskId(1), TaskId(2)])];
    while let Some(next) = first(all.last().expect("never empty")) {
        all.push(next);
    }
    all
}

/// One of each, likewise.
fn doings() -> Vec<AttemptPhase> {
    let next = |doing: &AttemptPhase| match doing {
        AttemptPhase::Preparing { fresh: true, .. } => {
            Some(AttemptPhase::Preparing { fresh: false, stop: None })
        }
        AttemptPhase::Preparing { fresh: false, stop: None } => {
            Some(AttemptPhase::Preparing { fresh: false, stop: Some(StopRequest::Pause) })
        }
        AttemptPhase::Preparing { fresh: false, stop: Some(_) } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: None,
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: None, .. } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: Some(StopRequest::Pause),
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: Some(StopRequest::Pause), .. } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: Some(StopRequest::Interrupt),
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: Some(StopRequest::Interrupt), .. } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: Some(StopRequest::Cancel { reason: "no longer wanted".to_owned() }),
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: Some(StopRequest::Cancel { .. }), .. } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: Some(StopRequest::Redirect),
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: Some(StopRequest::Redirect), .. } => Some(AttemptPhase::Running {
            iteration: 3,
            since: Timestamp(0),
            stop: Some(StopRequest::Block { reason: "no key".to_owned() }),
            talk: SessionStart::New,
        }),
        AttemptPhase::Running { stop: Some(StopRequest::Block { .. }), .. } => {
            Some(AttemptPhase::Checking { stop: None })
        }
        AttemptPhase::Checking { stop: None } => {
            Some(AttemptPhase::Checking { stop: Some(StopRequest::Redirect) })
        }
        AttemptPhase::Checking { stop: Some(StopRequest::Redirect) } => {
            Some(AttemptPhase::Checking { stop: Some(StopRequest::Pause) })
        }
        AttemptPhase::Checking { stop: Some(_) } => Some(AttemptPhase::Queued { since: Timestamp(60_000) }),
        AttemptPhase::Queued { .. } => Some(AttemptPhase::Landing),
        AttemptPhase::Landing => Some(AttemptPhase::Reporting),
        AttemptPhase::Reporting => Some(AttemptPhase::Exchanging { stop: None }),
        AttemptPhase::Exchanging { stop: None } => {
            Some(AttemptPhase::Exchanging { stop: Some(StopRequest::Pause) })
        }
        AttemptPhase::Exchanging { stop: Some(_) } => Some(AttemptPhase::Recovering { stop: None }),
        AttemptPhase::Recovering { stop: None } => {
            Some(AttemptPhase::Recovering { stop: Some(StopRequest::Pause) })
        }
        AttemptPhase::Recovering { stop: Some(_) } => None,
    };
    let mut all = vec![AttemptPhase::Preparing { fresh: true, stop: None }];
    while let Some(doing) = next(all.last().expect("never empty")) {
        all.push(doing);
    }
    all
}

fn task(state: TaskState) -> Task {
    let spec = TaskSpec::new("a task").expect("a title");
    let mut task = Task::from_spec(TaskId(7), spec, Timestamp(0));
    task.flow = Some(loops());
    task.concerns = vec![concern()];
    task.state = state;
    task
}

fn step(name: &str) -> StepName {
    StepName::new(name)
}

/// Every task worth asking about, with its unmet needs and what holds it up.
fn cases() -> Vec<(Task, Vec<TaskId>, Option<WaitReason>)> {
    let ready = |next: Option<&str>| TaskState::Ready { next: next.map(step), since: Timestamp(0) };
    let mut cases = vec![
        (task(TaskState::Draft), vec![], None),
        (task(ready(None)), vec![], None),
        (task(ready(None)), vec![TaskId(3)], None),
        (task(ready(None)), vec![TaskId(3), TaskId(4)], Some(WaitReason::Slot)),
        (task(ready(None)), vec![], Some(WaitReason::Slot)),
        (
            task(ready(None)),
            vec![],
            Some(WaitReason::Turn(TurnBlocker::Overlap { with: TaskId(3), path: "src/lib.rs".to_owned() })),
        ),
        (task(ready(Some("work"))), vec![], None),
        (task(ready(Some("work"))), vec![], Some(WaitReason::Slot)),
        (task(ready(Some("verify"))), vec![], None),
        (task(ready(Some("verify"))), vec![], Some(WaitReason::Slot)),
        (task(ready(Some("land"))), vec![], None),
        (task(ready(Some("land"))), vec![], Some(WaitReason::Slot)),
        (task(ready(Some("land"))), vec![TaskId(3)], None),
        (task(ready(Some("report"))), vec![], None),
    ];
    let asked = WaitReason::Login { account: "main".to_owned(), detail: String::new(), asker: TaskId(3) };
    let shut = WaitReason::Quota { until: Timestamp(60_000), guessed: false };
    let budgets = waits().into_iter().filter(|wait| matches!(wait, WaitReason::Budget { .. }));
    for wait in [asked, shut].into_iter().chain(budgets) {
        cases.push((task(ready(Some("work"))), vec![], Some(wait)));
    }
    for doing in doings() {
        let name = match doing {
            AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. } => "work",
            AttemptPhase::Checking { .. } => "verify",
            AttemptPhase::Queued { .. } | AttemptPhase::Landing => "land",
            AttemptPhase::Reporting | AttemptPhase::Exchanging { .. } | AttemptPhase::Recovering { .. } => {
                "report"
            }
        };
        cases.push((task(TaskState::Active { step: step(name), doing }), vec![], None));
    }
    let checking = TaskState::Active { step: step("land"), doing: AttemptPhase::Checking { stop: None } };
    cases.push((task(checking), vec![], None));
    for wait in waits() {
        cases.push((
            task(TaskState::Waiting { wait, then: step("work"), since: Timestamp(0) }),
            vec![],
            None,
        ));
    }
    cases.push((task(TaskState::Review { then: step("verify") }), vec![], None));
    for kind in EndKind::ALL {
        for code in EndCode::ALL {
            for detail in ["", "something happened"] {
                let ending = Ending { kind, code, detail: detail.to_owned() };
                cases.push((task(TaskState::Ended(ending)), vec![], None));
            }
        }
    }
    for state in [
        ready(None),
        TaskState::Active { step: step("work"), doing: AttemptPhase::Preparing { fresh: false, stop: None } },
        TaskState::Waiting { wait: WaitReason::Slot, then: step("work"), since: Timestamp(0) },
        TaskState::Review { then: step("verify") },
    ] {
        let mut held = task(state);
        held.hold = Some(TaskHold {
            reason: "the design is not settled".to_owned(),
            since: Timestamp(0),
            this_run: false,
        });
        cases.push((held, vec![], None));
    }
    let mut landed =
        task(TaskState::Ended(Ending { kind: EndKind::Done, code: EndCode::Landed, detail: String::new() }));
    landed.landed = Some(LandingRecord {
        commit: Commit::new("0123456789abcdef"),
        base_before: Commit::new("fedcba9876543210"),
        tree: Tree::new("tree"),
        proof: "the tree is the same".to_owned(),
        at: Timestamp(60_000),
    });
    let mut unreported = landed.clone();
    unreported.state = TaskState::Ended(Ending {
        kind: EndKind::Failed,
        code: EndCode::Machine,
        detail: "no room on the disk".to_owned(),
    });
    cases.push((landed, vec![], None));
    cases.push((unreported, vec![], None));
    cases
}

fn when(at: Timestamp) -> String {
    format!("today at 10:{:02}", at.0 / 60_000)
}

fn said(case: &(Task, Vec<TaskId>, Option<WaitReason>)) -> String {
    explain_task_state(&case.0, &case.1, case.2.as_ref(), &when)
}

/// One sentence, about this task, in words, that does no harm.
fn check_sentence(sentence: &str) {
    assert!(sentence.starts_with("T7 "), "names the task: {sentence}");
    assert!(sentence.ends_with('.'), "ends with a full stop: {sentence}");
    assert!(!sentence.ends_with("..") && !sentence.contains(" ."), "one full stop: {sentence}");
    assert!(!sentence.contains('\n'), "one line: {sentence}");
    for leftover in ["{", "}", "Some(", "None", "()", "  ", "::", ": ."] {
        assert!(!sentence.contains(leftover), "no `{leftover}`: {sentence}");
    }
    let commands = sentence.split('`').skip(1).step_by(2);
    for command in commands.filter(|command| command.starts_with("landfall")) {
        let verb = command.split(' ').nth(1).expect("a verb");
        let is_gentle = ["edit", "run", "retry", "answer", "diff", "show"].contains(&verb)
            || command.starts_with("landfall task release ");
        assert!(is_gentle && !command.contains("fresh"), "suggests nothing that loses work: {sentence}");
    }
    let quiet = sentence.split('`').step_by(2).collect::<String>();
    let stops = quiet.trim_end_matches('.').matches(". ").count();
    assert_eq!(stops, 0, "one sentence: {sentence}");
}

#[test]
fn every_status_and_every_wait_is_one_sentence() {
    for case in cases() {
        check_sentence(&said(&case));
    }
}

#[test]
fn every_status_there_is_is_asked_about() {
    let seen: BTreeSet<TaskStatus> = cases()
        .iter()
        .map(|(task, unmet, held)| TaskStatus::for_task_among_others(task, unmet, held.is_some()))
        .collect();
    assert_eq!(seen, TaskStatus::ALL.into_iter().collect());
}

#[test]
fn every_wait_has_a_name_and_an_owner() {
    let mut told = String::new();
    for wait in waits() {
        writeln!(told, "{}: ended by {}", wait.word(), wait.owner_label()).expect("a string takes it");
    }
    expect![[r#"
        dependency: ended by the tasks it needs
        slot: ended by the engine
        slot: ended by the engine
        slot: ended by the engine
        slot: ended by the engine
        slot: ended by the engine
        quota: ended by the engine
        login: ended by you
        budget: ended by the engine
        budget: ended by you
        question: ended by you
        backoff: ended by the engine
        disk: ended by you
        pause: ended by you
        conflict: ended by you
        gate broken: ended by you
        sub-issues: ended by the issues it is made of
        blocked by issues: ended by the issues before it
    "#]]
    .assert_eq(&told);
}

#[test]
fn the_sentences_read_well() {
    let mut told = String::new();
    for case in cases() {
        let bare = matches!(&case.0.state, TaskState::Ended(ending) if ending.detail.is_empty());
        let line = said(&case);
        if (!bare || case.0.landed.is_some()) && !told.contains(&line) {
            writeln!(told, "{line}").expect("a string takes it");
        }
    }
    expect![[r#"
        T7 is a draft; `landfall edit T7 --ready` lets it start.
        T7 is ready; `landfall run` starts it.
        T7 waits for T3 to land first.
        T7 waits for T3, T4 to land first.
        T7 waits for a slot; other tasks hold them all.
        T7 is held back: T3, which has not landed, changes `src/lib.rs` as well; it starts when T3 has landed, or when nothing else can run.
        T7 is ready to go on with step `work`; `landfall run` drives it.
        T7 is ready to go on with step `verify`; `landfall run` drives it.
        T7 waits to be verified; other tasks hold every lane.
        T7 is verified and waits for its turn to land.
        T7 is ready to go on with step `report`; `landfall run` drives it.
        T7 waits because the account `main` wants a login; log in, then `landfall answer T3 done` goes on.
        T7 waits for the agent's account, which is used up until today at 10:01; no try is spent.
        T7 waits because the day's budget is used up ($40.12 of $40.00); agents start again today at 10:01.
        T7 waits because the budget of this run is used up (900 of 800 turns); another `landfall run` continues.
        T7 is in step `work`: its workspace is being made.
        T7 is in step `work`: its workspace is being made, and then it stops.
        T7 is in step `work`: the agent works on iteration 3 of 50 since today at 10:00.
        T7 is in step `work`: the agent of iteration 3 is being stopped.
        T7 is in step `work`: the agent of iteration 3 is being stopped, and begins again with what you said.
        T7 is in step `verify`: its work is being merged with the base and verified.
        T7 is in step `verify`: its work is being merged with the base and verified, and then its agent hears what you said.
        T7 is in step `verify`: its work is being merged with the base and verified, and then it stops.
        T7 passed its checks and stands in the landing queue since today at 10:01.
        T7 is in step `land`: the base is being moved to its verified commit.
        T7 is in step `report`: its report is being written.
        T7 is in step `report`: its tracker is asked or told.
        T7 is in step `report`: its tracker is asked or told, and then it stops.
        T7 is in step `report`, which failed: something is done about that.
        T7 is in step `report`, which failed: something is done about that, and then it stops.
        T7 is in step `land`: its work is being merged with the base and verified.
        T7 waits for T1, T2 to land first.
        T7 waits for its turn; other tasks hold all slots of profile `default`, 2 at once.
        T7 waits for its turn; other tasks hold all slots of account `main`, 2 at once.
        T7 waits for its turn; other tasks hold all slots of area `web`, 1 at once.
        T7 waits because the account `main` wants a login: 401 OAuth token has expired; log in, then `landfall answer T7 done` goes on.
        T7 waits for your answer: Which port? (`landfall answer T7 "…"`).
        T7 tries again today at 10:01: the agent crashed (exit code 1).
        T7 waits for room on the disk: 1 GB is left, 5 GB are wanted.
        T7 is paused by you; `landfall retry T7` continues it.
        T7 waits for you to resolve its conflict with 0123456789 in src/a.rs (30 lines), logo.png (binary): in its workspace (`landfall show T7` says where), commit what is there, merge 0123456789 and say `landfall answer T7 resolved`, or say how and the agent does it; after today at 10:01 it stops as blocked.
        T7 waits because the check `tests` cannot be trusted: `cargo test` was not found (exit code 127); when it is mended, `landfall retry T7` goes on, and so does any change of the base.
        T7 waits for the issues it is made of.
        T7 waits for #3, other/place#4 to be done first; the next run looks again.
        T7 passed its checks, but a person must look at it first: it deletes a test file: tests/a.rs; `landfall diff T7` shows it, `landfall answer T7 approve` lets it land.
        T7 is done: something happened.
        T7 failed (landed): something happened; `landfall retry T7` tries it again.
        T7 failed (accepted): something happened; `landfall retry T7` tries it again.
        T7 is out of iterations (max_iterations): something happened; `landfall retry T7` tries it again.
        T7 failed (task_limit): something happened; `landfall retry T7` tries it again.
        T7 failed (agent_blocked): something happened; `landfall retry T7` tries it again.
        T7 failed (agent_crashed): something happened; `landfall retry T7` tries it again.
        T7 failed (agent_lost): something happened; `landfall retry T7` tries it again.
        T7 failed (agent_not_started): something happened; `landfall retry T7` tries it again.
        T7 failed (stall_limit): something happened; `landfall retry T7` tries it again.
        T7 failed (transient_limit): something happened; `landfall retry T7` tries it again.
        T7 failed (reasoning_loop): something happened; `landfall retry T7` tries it again.
        T7 failed (budget): something happened; `landfall retry T7` tries it again.
        T7 failed (context_budget): something happened; `landfall retry T7` tries it again.
        T7 failed (nothing_changed): something happened; `landfall retry T7` tries it again.
        T7 failed (edge_limit): something happened; `landfall retry T7` tries it again.
        T7 failed (flow_stop): something happened; `landfall retry T7` tries it again.
        T7 failed (conflict_limit): something happened; `landfall retry T7` tries it again.
        T7 failed (landing_mismatch): something happened; `landfall retry T7` tries it again.
        T7 failed (machine): something happened; `landfall retry T7` tries it again.
        T7 failed (unsupported_step): something happened; `landfall retry T7` tries it again.
        T7 failed (rejected): something happened; `landfall retry T7` tries it again.
        T7 failed (person): something happened; `landfall retry T7` tries it again.
        T7 failed (empty_target): something happened; `landfall retry T7` tries it again.
        T7 failed (check_blocked): something happened; `landfall retry T7` tries it again.
        T7 failed (check_failed): something happened; `landfall retry T7` tries it again.
        T7 failed (directions_used_up): something happened; `landfall retry T7` tries it again.
        T7 failed (acceptance_failed): something happened; `landfall retry T7` tries it again.
        T7 failed (parts_failed): something happened; `landfall retry T7` tries it again.
        T7 failed (tracker): something happened; `landfall retry T7` tries it again.
        T7 failed (recovery_failed): something happened; `landfall retry T7` tries it again.
        T7 failed (output_missing): something happened; `landfall retry T7` tries it again.
        T7 ran out (landed): something happened; `landfall retry T7` tries it again.
        T7 ran out (accepted): something happened; `landfall retry T7` tries it again.
        T7 ran out (task_limit): something happened; `landfall retry T7` tries it again.
        T7 ran out (agent_blocked): something happened; `landfall retry T7` tries it again.
        T7 ran out (agent_crashed): something happened; `landfall retry T7` tries it again.
        T7 ran out (agent_lost): something happened; `landfall retry T7` tries it again.
        T7 ran out (agent_not_started): something happened; `landfall retry T7` tries it again.
        T7 ran out (stall_limit): something happened; `landfall retry T7` tries it again.
        T7 ran out (transient_limit): something happened; `landfall retry T7` tries it again.
        T7 ran out (reasoning_loop): something happened; `landfall retry T7` tries it again.
        T7 ran out (budget): something happened; `landfall retry T7` tries it again.
        T7 ran out (context_budget): something happened; `landfall retry T7` tries it again.
        T7 ran out (nothing_changed): something happened; `landfall retry T7` tries it again.
        T7 ran out (edge_limit): something happened; `landfall retry T7` tries it again.
        T7 ran out (flow_stop): something happened; `landfall retry T7` tries it again.
        T7 ran out (conflict_limit): something happened; `landfall retry T7` tries it again.
        T7 ran out (landing_mismatch): something happened; `landfall retry T7` tries it again.
        T7 ran out (machine): something happened; `landfall retry T7` tries it again.
        T7 ran out (unsupported_step): something happened; `landfall retry T7` tries it again.
        T7 ran out (rejected): something happened; `landfall retry T7` tries it again.
        T7 ran out (person): something happened; `landfall retry T7` tries it again.
        T7 ran out (empty_target): something happened; `landfall retry T7` tries it again.
        T7 ran out (check_blocked): something happened; `landfall retry T7` tries it again.
        T7 ran out (check_failed): something happened; `landfall retry T7` tries it again.
        T7 ran out (directions_used_up): something happened; `landfall retry T7` tries it again.
        T7 ran out (acceptance_failed): something happened; `landfall retry T7` tries it again.
        T7 ran out (parts_failed): something happened; `landfall retry T7` tries it again.
        T7 ran out (tracker): something happened; `landfall retry T7` tries it again.
        T7 ran out (recovery_failed): something happened; `landfall retry T7` tries it again.
        T7 ran out (output_missing): something happened; `landfall retry T7` tries it again.
        T7 is blocked (landed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (accepted): something happened; `landfall retry T7` tries it again.
        T7 is blocked (max_iterations): something happened; `landfall retry T7` tries it again.
        T7 is blocked (task_limit): something happened; `landfall retry T7` tries it again.
        T7 is blocked; the agent says: something happened; `landfall retry T7` tries it again.
        T7 is blocked (agent_crashed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (agent_lost): something happened; `landfall retry T7` tries it again.
        T7 is blocked (agent_not_started): something happened; `landfall retry T7` tries it again.
        T7 is blocked (stall_limit): something happened; `landfall retry T7` tries it again.
        T7 is blocked (transient_limit): something happened; `landfall retry T7` tries it again.
        T7 is blocked (reasoning_loop): something happened; `landfall retry T7` tries it again.
        T7 is blocked (budget): something happened; `landfall retry T7` tries it again.
        T7 is blocked (context_budget): something happened; `landfall retry T7` tries it again.
        T7 is blocked (nothing_changed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (edge_limit): something happened; `landfall retry T7` tries it again.
        T7 is blocked (flow_stop): something happened; `landfall retry T7` tries it again.
        T7 is blocked (conflict_limit): something happened; `landfall retry T7` tries it again.
        T7 is blocked (landing_mismatch): something happened; `landfall retry T7` tries it again.
        T7 is blocked (machine): something happened; `landfall retry T7` tries it again.
        T7 is blocked (unsupported_step): something happened; `landfall retry T7` tries it again.
        T7 is blocked (rejected): something happened; `landfall retry T7` tries it again.
        T7 is blocked by you: something happened; `landfall retry T7` tries it again.
        T7 is blocked (empty_target): something happened; `landfall retry T7` tries it again.
        T7 is blocked (check_blocked): something happened; `landfall retry T7` tries it again.
        T7 is blocked (check_failed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (directions_used_up): something happened; `landfall retry T7` tries it again.
        T7 is blocked (acceptance_failed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (parts_failed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (tracker): something happened; `landfall retry T7` tries it again.
        T7 is blocked (recovery_failed): something happened; `landfall retry T7` tries it again.
        T7 is blocked (output_missing): something happened; `landfall retry T7` tries it again.
        T7 was cancelled: something happened.
        T7 is held by you: the design is not settled; `landfall task release T7` lets it continue.
        T7 is in step `work`: its workspace is being made; after that you hold it: the design is not settled; `landfall task release T7` lets it continue.
        T7 waits for a slot; other tasks hold them all; after that you hold it: the design is not settled; `landfall task release T7` lets it continue.
        T7 passed its checks, but a person must look at it first: it deletes a test file: tests/a.rs; `landfall diff T7` shows it, `landfall answer T7 approve` lets it land; after that you hold it: the design is not settled; `landfall task release T7` lets it continue.
        T7 is done: it landed as 0123456789 today at 10:01.
        T7 landed as 0123456789, but what comes after that failed (machine): no room on the disk; `landfall retry T7` continues it.
    "#]].assert_eq(&told);
}

#[test]
fn words_from_outside_stay_one_line_and_one_sentence() {
    let long = "x".repeat(5_000);
    let words = ["two\nlines.\r\n\tand more", "ends in dots...", "", "  ", "why?", "stop!", &long, "a  b"];
    for text in words {
        let text = text.to_owned();
        let states = [
            TaskState::Ended(Ending {
                kind: EndKind::Blocked,
                code: EndCode::AgentBlocked,
                detail: text.clone(),
            }),
            TaskState::Ended(Ending { kind: EndKind::Failed, code: EndCode::Machine, detail: text.clone() }),
            TaskState::Ended(Ending {
                kind: EndKind::Cancelled,
                code: EndCode::Person,
                detail: text.clone(),
            }),
            TaskState::Waiting {
                wait: WaitReason::Question { text: text.clone() },
                then: step("work"),
                since: Timestamp(0),
            },
            TaskState::Waiting {
                wait: WaitReason::Backoff { until: Timestamp(0), cause: text.clone() },
                then: step("work"),
                since: Timestamp(0),
            },
            TaskState::Waiting {
                wait: WaitReason::Login {
                    account: "main".to_owned(),
                    detail: text.clone(),
                    asker: TaskId(1),
                },
                then: step("work"),
                since: Timestamp(0),
            },
            TaskState::Waiting {
                wait: WaitReason::Disk { detail: text.clone() },
                then: step("work"),
                since: Timestamp(0),
            },
            TaskState::Waiting {
                wait: WaitReason::GateBroken { command: "tests".to_owned(), detail: text.clone() },
                then: step("work"),
                since: Timestamp(0),
            },
        ];
        for state in states {
            let sentence = explain_task_state(&task(state), &[], None, &when);
            assert!(sentence.starts_with("T7 "), "{sentence}");
            assert!(sentence.ends_with('.') && !sentence.ends_with(".."), "{sentence}");
            assert!(!sentence.contains(['\n', '\r', '\t']), "{sentence:?}");
            assert!(sentence.len() < 700, "{} bytes", sentence.len());
        }
    }
}
