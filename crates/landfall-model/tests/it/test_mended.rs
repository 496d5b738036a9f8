//! Stories of bugs that were there once. Each was red before its fix.

use expect_test::expect;
use landfall_model::flow::FlowEdge;
use landfall_model::gate::CheckOutcome;
use landfall_model::{
    AttemptPhase, ChangeConcern, ConcernCode, EdgeTarget, EndKind, Event, Flow, StepKind, StepName,
    StepResult, TaskState, TaskStatus, Warning,
};
use std::sync::Arc;

use crate::flows_used::{loops, polishes, takes_back, with_kind};
use crate::story::{
    Line, Scene, answers, base_moved, cancel, cannot_start, changed_nothing, check, check_in, checked_as,
    checking_to_land, command, commit, concern, conflicts, conflicts_badly, crashes, due, fails,
    falls_silent, fruitless, granted, has_a_passing_error, hits_quota, interrupt, is_ejected, is_killed,
    is_unsure, landing, landing_begins, lands, late, machine_fails, out_of_memory, passes,
    passes_with_concern, passes_with_leftovers, queued, report, reported, reporting, retry, retry_fresh,
    says_complete, says_nothing, stop, vanishes, verifying, working, workspace, workspace_rebuilt,
    workspace_removed,
};

#[test]
fn four_fifths_of_seven_iterations_are_a_warning_too() {
    let scene = Scene::new(loops()).limited(|limits| limits.iterations_max = 7);
    let task = check_in(
        scene,
        [
            granted(),
            workspace(),
            says_nothing(),
            says_nothing(),
            says_nothing(),
            says_nothing(),
            says_nothing(),
            says_nothing(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
            no word → work a1: running 4 [iteration-ended continue, iteration-began] ! spawn a1/4 for 1797s
            no word → work a1: running 5 [iteration-ended continue, iteration-began] ! spawn a1/5 for 1796s
            no word → work a1: running 6 [iteration-ended continue, iteration-began] ! spawn a1/6 for 1795s
            no word → work a1: running 7 [iteration-ended continue, warned: 6 of 7 iterations are used, iteration-began] ! spawn a1/7 for 1794s
        "#]],
    );
    assert_eq!(task.warnings, [Warning::NearIterationsMax { used: 6, max: 7 }]);
}

#[test]
fn four_fifths_are_noticed_when_that_iteration_says_complete() {
    let scene = Scene::new(loops()).limited(|limits| limits.iterations_max = 5);
    let task = check_in(
        scene,
        [granted(), workspace(), says_nothing(), says_nothing(), says_nothing(), says_complete()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
            no word → work a1: running 4 [iteration-ended continue, iteration-began] ! spawn a1/4 for 1797s
            COMPLETE → ready for verify [iteration-ended complete, warned: 4 of 5 iterations are used, left done]
        "#]],
    );
    assert_eq!(task.warnings, [Warning::NearIterationsMax { used: 4, max: 5 }]);
}
#[test]
fn feedback_survives_a_run_that_did_not_hear_it_out() {
    let runs =
        [crashes(), vanishes(), falls_silent(), hits_quota(None), has_a_passing_error(), cannot_start(false)];
    for run in runs {
        let mut scene = Scene::new(loops()).play_all([
            granted(),
            workspace(),
            says_complete(),
            granted(),
            fails(),
            granted(),
            workspace(),
        ]);
        let told = scene.task.feedback.clone();
        assert_eq!(told.len(), 1);
        let heard = scene.play(&run);
        assert_eq!(scene.task.feedback, told, "{heard:?}");
    }
}
#[test]
fn a_reset_in_the_past_does_not_start_the_agent_again_at_once() {
    check_in(
        working(),
        [hits_quota(Some(-100_000)), due()],
        expect![[r#"
        quota → waits for quota +300000ms, then work [iteration-ended quota, yielded quota, waited]
        due ✗ T1 is waiting for quota: no wait is over
    "#]],
    );
}
#[test]
fn troubles_of_the_machine_are_counted_in_a_row() {
    let task = check(
        [
            granted(),
            machine_fails(false),
            Line::Wait(60_000),
            due(),
            granted(),
            machine_fails(false),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            says_complete(),
            granted(),
            machine_fails(false),
            Line::Wait(60_000),
            due(),
            granted(),
            machine_fails(false),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            machine fails → waits for backoff +1061ms (no room on the disk), then work [yielded machine, waited]
            due → ready for work [resumed]
            granted → work a2: preparing afresh [entered] ! prepare a2 afresh
            machine fails → waits for backoff +2123ms (no room on the disk), then work [yielded machine, waited]
            due → ready for work [resumed]
            granted → work a3: preparing afresh [entered] ! prepare a3 afresh
            workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            machine fails → waits for backoff +1061ms (no room on the disk), then verify [yielded machine, waited]
            due → ready for verify [resumed]
            granted → verify a5: checking [entered] ! check a5
            machine fails → waits for backoff +2123ms (no room on the disk), then verify [yielded machine, waited]
        "#]],
    );
    assert_eq!(task.counters.machine, 2, "a run of the agent lay between");
}
#[test]
fn a_landed_task_whose_report_failed_is_retried_for_its_report_only() {
    let task = check_in(
        reporting(),
        [machine_fails(true), cancel(), retry(), granted(), granted(), reported()],
        expect![[r#"
            machine fails for good → Failed(machine: no room on the disk) [ended]
            cancel ✗ T1 is over (machine): it has landed; `landfall rollback` can take it back
            retry → ready [retried]
            granted → ready for report [waited, resumed, left landed]
            granted → report a5: reporting [entered] ! report a5
            reported → Done(landed) [reported, left done] ! tidy
        "#]],
    );
    assert_eq!(TaskStatus::for_task(&task), TaskStatus::Done);
}
#[test]
fn nothing_changed_twice_means_in_a_row() {
    check_in(
        working(),
        [
            fruitless(says_complete()),
            granted(),
            changed_nothing(),
            granted(),
            workspace(),
            says_complete(),
            granted(),
            conflicts(),
            granted(),
            workspace(),
            says_complete(),
            granted(),
            changed_nothing(),
        ],
        expect![[r#"
            COMPLETE, no commit → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            nothing changed → ready for work [yielded nothingchanged, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1799s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            conflict → ready for work [collected, conflicted, left fail with feedback]
            granted → work a5: preparing [entered] ! prepare a5
            workspace → work a5: running 3 [workspace-made, iteration-began] ! spawn a5/3 for 1798s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a6: checking [entered] ! check a6
            nothing changed → ready for work [yielded nothingchanged, left fail with feedback]
        "#]],
    );
}
#[test]
fn work_that_the_moved_base_holds_already_goes_back_to_the_agent() {
    check_in(
        queued(),
        [changed_nothing()],
        expect![[r#"
            nothing changed → ready for work [yielded nothingchanged, left red with feedback]
        "#]],
    );
}
#[test]
fn what_an_agent_did_after_verification_is_verified_before_it_lands() {
    check_in(
        Scene::new(polishes()),
        [
            granted(),
            workspace(),
            says_complete(),
            granted(),
            passes(),
            granted(),
            workspace(),
            says_nothing(),
            granted(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for polish [collected, verified, left pass]
            granted → polish a3: preparing [entered] ! prepare a3
            workspace → polish a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
            no word → ready for land [iteration-ended continue, left done]
            granted → land a4: checking [entered] ! check a4
        "#]],
    );
}

#[test]
fn a_journal_cut_inside_a_review_never_lands_what_nobody_approved() {
    let refused = || [passes_with_concern(), answers("no, keep that test")];
    let on_landing = checking_to_land();
    let from = on_landing.journal.len();
    for (told, from) in [(verifying().play_all(refused()), 1), (on_landing.play_all(refused()), from)] {
        check_never_lands(&told, from);
    }
}

fn check_never_lands(told: &Scene, from: usize) {
    for events in from..=told.journal.len() {
        let mut scene = told.cut(events);
        for _ in 0..10 {
            let next = match &scene.task.state {
                TaskState::Ready { .. } => granted(),
                TaskState::Active { doing: AttemptPhase::Checking { .. }, .. } => passes_with_concern(),
                TaskState::Active { doing: AttemptPhase::Preparing { .. }, .. } => workspace(),
                TaskState::Active { doing: AttemptPhase::Running { .. }, .. } => says_complete(),
                TaskState::Review { .. } => break,
                other => panic!("cut after {events} events: it is {}", other.name()),
            };
            scene.play(&next);
        }
        assert!(matches!(scene.task.state, TaskState::Review { .. }), "cut after {events} events");
    }
}
#[test]
fn an_approval_of_the_work_survives_a_move_of_the_base() {
    let mut merged = report(vec![command("tests", CheckOutcome::Pass)]);
    merged.tree = landfall_model::Tree::new("tree2");
    merged.base = commit("newbase");
    merged.commit = commit("merge2");
    check_in(
        verifying(),
        [
            passes_with_concern(),
            answers("approve"),
            granted(),
            is_ejected(),
            granted(),
            workspace(),
            fruitless(says_complete()),
            granted(),
            checked_as("pass, the same concern", merged, [concern()]),
        ],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `approve` → ready for land [reviewed, left pass]
            granted → land a3: queued [entered]
            ejected → ready for work [ejected, left red with feedback]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
            COMPLETE, no commit → ready for verify [iteration-ended complete, left done]
            granted → verify a5: checking [entered] ! check a5
            checked: pass, the same concern → ready for land [verified, left pass]
        "#]],
    );
}

#[test]
fn a_protected_input_that_was_not_shown_needs_another_approval() {
    let protected =
        |lines: &str| ChangeConcern { code: ConcernCode::ProtectedInput, detail: format!("ci.sh: {lines}") };
    let mut merged = report(vec![command("tests", CheckOutcome::Pass)]);
    merged.tree = landfall_model::Tree::new("tree2");
    merged.base = commit("newbase");
    let last = |lines: &str| {
        let scene = verifying().play_all([
            checked_as("shown", report(vec![command("tests", CheckOutcome::Pass)]), [protected("+true")]),
            answers("approve"),
            granted(),
            is_ejected(),
            granted(),
            workspace(),
            fruitless(says_complete()),
            granted(),
            checked_as("on a newer base", merged.clone(), [protected(lines)]),
        ]);
        matches!(scene.task.state, TaskState::Review { .. })
    };
    assert!(!last("+true"), "a person has seen these lines");
    assert!(last("−cargo test"), "nobody has seen these lines");
}

#[test]
fn other_work_needs_another_approval() {
    let mut merged = report(vec![command("tests", CheckOutcome::Pass)]);
    merged.tree = landfall_model::Tree::new("tree2");
    merged.head = commit("head2");
    check_in(
        verifying(),
        [
            passes_with_concern(),
            answers("approve"),
            granted(),
            is_ejected(),
            granted(),
            workspace(),
            says_complete(),
            granted(),
            checked_as("pass, the same concern", merged, [concern()]),
        ],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `approve` → ready for land [reviewed, left pass]
            granted → land a3: queued [entered]
            ejected → ready for work [ejected, left red with feedback]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a5: checking [entered] ! check a5
            checked: pass, the same concern → review, then verify [collected, verified, review-wanted]
        "#]],
    );
}
#[test]
fn a_stop_while_preparing_takes_effect_when_the_workspace_stands() {
    check(
        [granted(), stop(), workspace(), retry(), granted(), late(workspace()), workspace()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            stop → work a1: preparing afresh (pausing) [stop-asked]
            workspace → waits for pause, then work [workspace-made, yielded stopped, waited]
            retry → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            late workspace ✗ T1: news of a1, but a2 is the latest attempt
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
        "#]],
    );
}
#[test]
fn a_landed_task_is_not_cancelled_by_what_its_agent_does_afterwards() {
    check_in(
        Scene::new(polishes()),
        [
            granted(),
            workspace(),
            says_complete(),
            granted(),
            passes(),
            granted(),
            workspace(),
            says_complete(),
            granted(),
            passes(),
            landing_begins(),
            lands(),
            granted(),
            workspace(),
            cancel(),
            says_complete(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for polish [collected, verified, left pass]
            granted → polish a3: preparing [entered] ! prepare a3
            workspace → polish a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
            COMPLETE → ready for land [iteration-ended complete, left done]
            granted → land a4: checking [entered] ! check a4
            checked: pass → land a5: queued [verified, entered]
            landing begins → land a5: landing [landing-began]
            landed → ready for thanks [landed, left landed]
            granted → thanks a6: preparing [entered] ! prepare a6
            workspace → thanks a6: running 3 [workspace-made, iteration-began] ! spawn a6/3 for 1778s
            cancel ✗ T1 is active in `thanks` (running): it has landed; `landfall rollback` can take it back
            COMPLETE → ready for report [iteration-ended complete, left done]
        "#]],
    );
}
#[test]
fn a_fresh_retry_of_a_paused_task_begins_anew() {
    check_in(
        working(),
        [stop(), is_killed(), retry_fresh(), granted()],
        expect![[r#"
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
        retry fresh → ready [ended, retried afresh]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
    "#]],
    );
}
#[test]
fn a_rollback_can_be_retried_afresh_and_still_has_its_work() {
    let scene = Scene::new(takes_back()).with(Event::Offered { head: commit("revert") });
    check_in(
        scene,
        [granted(), fails(), retry_fresh(), granted()],
        expect![[r#"
        granted → verify a1: checking [bound, entered] ! check a1 of revert
        checked: fail → Blocked(flow_stop: step `verify` ended with `fail`) [collected, verified, left fail with feedback]
        retry fresh → ready [retried afresh]
        granted → verify a2: checking [entered] ! check a2 of head
    "#]],
    );
}
#[test]
fn a_flow_that_follows_an_issue_fails_before_anything_starts_where_there_is_none() {
    let mut scene = Scene::new(with_kind(StepKind::Split));
    let told = scene.play(&granted()).expect("news is told");
    assert!(told.contains("Failed(unsupported_step"), "{told}");
    assert!(told.contains("follows an issue") && told.contains("`landfall auto`"), "{told}");
    scene.play(&retry());
    scene.flow = loops();
    let told = scene.play(&granted()).expect("news is told");
    assert!(told.contains("work a1: preparing"), "another flow can be chosen afterwards: {told}");
}
#[test]
fn a_stop_outlives_the_interrupt_it_came_with() {
    check_in(
        working(),
        [interrupt(), stop(), is_killed(), granted()],
        expect![[r#"
        interrupt → work a1: running 1 (interrupted) [stop-asked] ! kill a1
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
        granted ✗ T1 is waiting for pause: it cannot be started
    "#]],
    );
}

#[test]
fn a_workspace_in_use_is_not_said_to_be_gone() {
    check_in(
        working(),
        [workspace_removed(), says_complete(), workspace_removed()],
        expect![[r#"
            workspace removed ✗ T1 is active in `work` (running): its workspace is still needed
            COMPLETE → ready for verify [iteration-ended complete, left done]
            workspace removed ✗ T1 is ready: its workspace is still needed
        "#]],
    );
}

#[test]
fn a_flow_that_begins_with_verification_needs_work_to_verify() {
    check_in(
        Scene::new(takes_back()),
        [granted(), retry(), granted()],
        expect![[r#"
        granted → Blocked(nothing_changed: step `verify` has nothing to verify: no workspace and no commit) [bound, ended]
        retry → ready [retried]
        granted → Blocked(nothing_changed: step `verify` has nothing to verify: no workspace and no commit) [ended]
    "#]],
    );
}

#[test]
fn a_landing_whose_outcome_is_unknown_is_settled_before_anything_else() {
    check_in(
        landing(),
        [is_unsure(), cancel(), stop(), cancel(), retry_fresh(), granted(), lands()],
        expect![[r#"
            unsure → land a3: queued [requeued unsure]
            cancel ✗ T1 is active in `land` (in the landing queue): it may have landed already; the next run finds out
            stop → waits for pause, then land [yielded stopped, waited]
            cancel ✗ T1 is waiting for pause: it may have landed already; `landfall retry` finds out
            retry fresh → ready for land [resumed]
            granted → land a4: queued [entered]
            landed → ready for report [landed, left landed]
        "#]],
    );
    check_in(
        landing(),
        [is_unsure(), landing_begins(), base_moved(), cancel()],
        expect![[r#"
            unsure → land a3: queued [requeued unsure]
            landing begins → land a3: landing [landing-began]
            base moved → land a3: queued [requeued]
            cancel → Cancelled(person: no longer wanted) [ended]
        "#]],
    );
}

#[test]
fn what_the_engine_committed_is_not_the_agents_commit() {
    let mut scene = working().play_all([fruitless(says_complete()), granted(), passes_with_leftovers()]);
    assert_eq!(scene.task.counters.fruitless, 1);
    scene = verifying_leftovers_again(scene);
    assert_eq!(scene.task.counters.fruitless, 2, "the branch stands where the engine left it");
}

/// The work lands red, and the next run leaves the branch where the engine had moved it.
fn verifying_leftovers_again(scene: Scene) -> Scene {
    let mut scene = scene.play_all([granted(), is_ejected(), granted(), workspace()]);
    let run = landfall_model::EndedRun {
        attempt: scene.task.attempt,
        iteration: 2,
        exit: landfall_model::AgentExit::Code(0),
        seen: Vec::new(),
        evidence: landfall_model::AgentRunEvidence {
            head_before: None,
            head_after: Some(commit("head")),
            ..Default::default()
        },
        took_ms: 1,
        usage: landfall_model::AgentUsage::default(),
        traces: landfall_model::AgentRunTraces::default(),
        climbed: None,
    };
    scene.hear(landfall_model::News::AgentEnded(run)).expect("it runs");
    scene
}

#[test]
fn a_fresh_retry_of_a_landed_task_still_gives_its_workspace_up() {
    check_in(
        reporting(),
        [machine_fails(true), retry_fresh(), granted(), granted(), reported()],
        expect![[r#"
            machine fails for good → Failed(machine: no room on the disk) [ended]
            retry fresh → ready [retried]
            granted → ready for report [waited, resumed, left landed]
            granted → report a5: reporting [entered] ! report a5
            reported → Done(landed) [reported, left done] ! tidy
        "#]],
    );
}

#[test]
fn a_rollback_takes_its_tests_back_without_a_review() {
    let scene = Scene::new(takes_back()).with(Event::Offered { head: commit("revert") });
    let task = check_in(
        scene,
        [granted(), passes_with_concern()],
        expect![[r#"
        granted → verify a1: checking [bound, entered] ! check a1 of revert
        checked: pass, concern → ready for land [collected, verified, left pass]
    "#]],
    );
    assert!(task.concerns.is_empty());
}

#[test]
fn an_objection_that_begins_with_ok_is_no_approval() {
    let task = check(
        [
            granted(),
            workspace(),
            says_complete(),
            granted(),
            passes_with_concern(),
            answers("ok, but put the test back"),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `ok, but put the test back` → ready for work [reviewed, left changes with feedback]
        "#]],
    );
    assert_eq!(task.feedback[0].text, "ok, but put the test back");
}

#[test]
fn what_does_not_merge_has_not_landed_and_is_no_longer_in_doubt() {
    check_in(
        landing(),
        [is_unsure(), conflicts_badly(), answers("resolved"), granted(), passes(), cancel()],
        expect![[r#"
            unsure → land a3: queued [requeued unsure]
            hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
            answer `resolved` → ready for land [resumed]
            granted → land a4: checking [entered] ! check a4
            checked: pass → land a5: queued [verified, entered]
            cancel → Cancelled(person: no longer wanted) [ended]
        "#]],
    );
    check_in(
        landing(),
        [is_unsure(), conflicts(), cancel()],
        expect![[r#"
        unsure → land a3: queued [requeued unsure]
        conflict → ready for work [conflicted, left conflict with feedback]
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
    check_in(
        landing(),
        [is_unsure(), changed_nothing(), cancel()],
        expect![[r#"
        unsure → land a3: queued [requeued unsure]
        nothing changed → ready for work [yielded nothingchanged, left red with feedback]
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
}

// ── a resource of the machine that is missing ────────────────────────────────────────────────────────────

#[test]
fn a_missing_resource_is_waited_for_without_an_end() {
    let mut scene = Scene::new(loops()).play_all([granted()]);
    for _ in 0..100 {
        scene = scene.play_all([out_of_memory(true), Line::Wait(60_000), due(), granted()]);
    }
    assert_eq!(scene.task.step().map(ToString::to_string).as_deref(), Some("work"), "{:?}", scene.task.state);
    assert_eq!(scene.task.counters.machine, 0);
}

#[test]
fn an_effect_that_needs_more_than_the_machine_has_fails_in_the_end() {
    let mut scene = Scene::new(loops()).play_all([granted()]);
    let mut tries = 0;
    while !matches!(scene.task.state, TaskState::Ended(_)) {
        tries += 1;
        assert!(tries < 100, "there is no bound");
        scene.play(&out_of_memory(false));
        if !matches!(scene.task.state, TaskState::Ended(_)) {
            scene = scene.play_all([Line::Wait(600_000), due(), granted()]);
        }
    }
    assert_eq!(tries, 21);
}

#[test]
fn tries_for_lack_of_a_resource_are_not_counted_as_failures_of_the_machine() {
    let mut scene = Scene::new(loops()).play_all([granted()]);
    for _ in 0..4 {
        scene = scene.play_all([out_of_memory(false), Line::Wait(600_000), due(), granted()]);
    }
    scene.play(&machine_fails(false));
    assert!(matches!(scene.task.state, TaskState::Waiting { .. }), "{:?}", scene.task.state);
    assert_eq!((scene.task.counters.machine, scene.task.counters.shortages), (1, 4));
}

#[test]
fn work_that_is_lost_before_a_verification_is_done_again_in_a_flow_without_an_edge_back() {
    let mut flow = Flow::clone(&loops());
    for step in &mut flow.steps {
        step.on
            .retain(|edge| !matches!(edge.result, StepResult::Fail | StepResult::Red | StepResult::Changes));
    }
    let scene = Scene::new(Arc::new(flow)).play_all([granted(), workspace(), says_complete(), granted()]);
    let scene = scene.play_all([workspace_rebuilt()]);
    assert_eq!(scene.task.step().map(ToString::to_string).as_deref(), Some("work"), "{:?}", scene.task.state);
}

/// A task whose workspace was rebuilt while it was verified, in a flow that is changed first.
fn rebuilt_in(change: impl Fn(&mut Flow)) -> Scene {
    let mut flow = Flow::clone(&loops());
    change(&mut flow);
    let scene = Scene::new(Arc::new(flow)).play_all([granted(), workspace(), says_complete(), granted()]);
    scene.play_all([workspace_rebuilt()])
}

#[test]
fn work_that_is_lost_goes_to_the_agent_past_edges_that_lead_elsewhere() {
    // Back to the verification itself, or only by a result that a verification never has.
    for (result, to) in [(StepResult::Fail, "verify"), (StepResult::Changes, "work")] {
        let scene = rebuilt_in(|flow| {
            for step in flow.steps.iter_mut().filter(|step| step.name.to_string() == "verify") {
                step.on.retain(|edge| {
                    !matches!(edge.result, StepResult::Fail | StepResult::Red | StepResult::Changes)
                });
                let edge = step.on.first().expect("it passes somewhere").clone();
                step.on.push(FlowEdge { result, to: EdgeTarget::Step(StepName::new(to)), ..edge });
            }
        });
        let next = scene.task.step().map(ToString::to_string);
        assert_eq!(next.as_deref(), Some("work"), "{result:?} {to}: {:?}", scene.task.state);
    }
}

#[test]
fn work_that_no_agent_can_do_again_blocks_the_task_and_does_not_repeat_the_verification() {
    let scene = Scene::new(takes_back()).with(Event::Offered { head: commit("revert") });
    let scene = scene.play_all([granted(), workspace_rebuilt()]);
    let is_blocked = matches!(&scene.task.state, TaskState::Ended(ending) if ending.kind == EndKind::Blocked);
    assert!(is_blocked, "{:?}", scene.task.state);
}

/// Runs of the agent that end by SIGKILL, one for each number of processes that the kernel ended for lack of memory.
fn killed_while(oom_kills: &[u64]) -> Scene {
    let mut scene = working();
    for (number, oom_kills) in oom_kills.iter().enumerate() {
        if matches!(scene.task.state, TaskState::Ended(_)) {
            break;
        }
        if number > 0 {
            scene = scene.play_all([Line::Wait(600_000), due(), granted()]);
        }
        if matches!(&scene.task.state, TaskState::Active { doing: AttemptPhase::Preparing { .. }, .. }) {
            scene = scene.play_all([workspace()]);
        }
        let TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } = &scene.task.state
        else {
            break;
        };
        let run = landfall_model::EndedRun {
            attempt: scene.task.attempt,
            iteration: *iteration,
            exit: landfall_model::AgentExit::Signal(9),
            seen: Vec::new(),
            evidence: landfall_model::AgentRunEvidence { oom_kills: *oom_kills, ..Default::default() },
            took_ms: 1,
            usage: landfall_model::AgentUsage::default(),
            traces: landfall_model::AgentRunTraces::default(),
            climbed: None,
        };
        scene.hear(landfall_model::News::AgentEnded(run)).expect("it runs");
    }
    scene
}

#[test]
fn an_agent_that_ends_for_lack_of_memory_waits_and_uses_up_no_restart() {
    let scene = killed_while(&[1; 8]);
    assert!(matches!(scene.task.state, TaskState::Waiting { .. }), "{:?}", scene.task.state);
    assert_eq!(scene.task.counters.shortages, 8);
    // A crash of its own after that is its first one.
    let scene = killed_while(&[1, 1, 1, 1, 1, 0]);
    assert!(matches!(scene.task.state, TaskState::Waiting { .. }), "{:?}", scene.task.state);
    // Without the kernel's word it is a crash, and tries are few.
    let scene = killed_while(&[0; 8]);
    assert!(matches!(scene.task.state, TaskState::Ended(_)), "{:?}", scene.task.state);
}

#[test]
fn a_machine_that_never_has_enough_memory_ends_the_task() {
    let scene = killed_while(&[1; 30]);
    let TaskState::Ended(ending) = &scene.task.state else { panic!("{:?}", scene.task.state) };
    assert_eq!(ending.kind, EndKind::Failed);
    assert!(ending.detail.contains("out of memory"), "{}", ending.detail);
}
