//! A story for every arm of `decide`, in the order of a task's life.

use expect_test::expect;
use landfall_model::gate::{CheckOutcome, GateReport};
use landfall_model::{
    AgentExit, AgentUsage, ControlSignal, Counters, EndCode, EndKind, Ending, Event, Signal, StepName,
    TaskState, TaskStatus, Tree,
};

use crate::flows_used::{asks, loops, polishes, takes_back, tries_once};
use crate::story::{
    Line, Scene, answers, base_advances, base_moved, cancel, cannot_start, changed_nothing, check, check_in,
    checked, checked_as, checking_to_land, command, commit, conflicts, crashes, does_not_match, due, edit,
    fails, falls_silent, fruitless, granted, has_a_passing_error, hits_quota, hits_the_deadline, interrupt,
    is_ejected, is_killed, is_unsure, landing, landing_begins, lands, late, machine_fails, passes,
    passes_with_concern, passes_with_leftovers, queued, ran, rebuilt, report, reported, reporting, retry,
    retry_fresh, retry_with, says_blocked, says_complete, says_nothing, says_pending, stop, taking, usage,
    vanishes, verifying, without_output, working, workspace, workspace_removed,
};

// ── the road to landed ───────────────────────────────────────────────────────────────────────────────────

#[test]
fn complete_and_green_lands_and_is_reported() {
    let task = check(
        [
            granted(),
            workspace(),
            says_complete(),
            granted(),
            passes(),
            granted(),
            landing_begins(),
            lands(),
            granted(),
            reported(),
            workspace_removed(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a3: queued [entered]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
            granted → report a4: reporting [entered] ! report a4
            reported → Done(landed) [reported, left done] ! tidy
            workspace removed → Done(landed) [workspace-removed]
        "#]],
    );
    assert_eq!(TaskStatus::for_task(&task), TaskStatus::Done);
    assert!(task.unblocks_dependents());
}

#[test]
fn no_signal_means_another_iteration_in_the_same_workspace_and_attempt() {
    check(
        [granted(), workspace(), says_nothing(), says_nothing(), says_complete()],
        expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
        COMPLETE → ready for verify [iteration-ended complete, left done]
    "#]],
    );
}

#[test]
fn complete_with_failing_checks_iterates_with_the_failure_in_the_prompt() {
    let task = check_in(
        verifying(),
        [fails(), granted()],
        expect![[r#"
        checked: fail → ready for work [collected, verified, left fail with feedback]
        granted → work a3: preparing [entered] ! prepare a3
    "#]],
    );
    assert_eq!(task.counters.verify_rounds, 1);
    let [feedback] = task.feedback.as_slice() else { panic!("one piece of feedback: {:?}", task.feedback) };
    expect![[r#"
        Verification failed on your work merged with the base
        `run tests` (tests): exit code 1
        tests said so
    "#]]
    .assert_eq(&format!("{}\n{}", feedback.about, feedback.text));
}

#[test]
fn a_check_that_ran_into_its_limit_says_so_in_the_feedback() {
    let task = check_in(
        verifying(),
        [checked(CheckOutcome::Timeout)],
        expect![[r#"
        checked: timeout → ready for work [collected, verified, left fail with feedback]
    "#]],
    );
    expect![[r#"
        `run tests` (tests): TIMEOUT (10s / 300s)
        tests said so
    "#]]
    .assert_eq(&task.feedback[0].text);
}

#[test]
fn a_non_zero_exit_with_complete_is_verified_all_the_same() {
    check_in(
        working(),
        [
            ran("COMPLETE, exit 1", AgentExit::Code(1), [Signal::Said(ControlSignal::Complete)]),
            granted(),
            passes(),
        ],
        expect![[r#"
            COMPLETE, exit 1 → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for land [collected, verified, left pass]
        "#]],
    );
}

#[test]
fn complete_with_blocked_is_blocked_in_either_order() {
    let blocked = || Signal::Said(ControlSignal::Blocked("no access".to_owned()));
    let complete = || Signal::Said(ControlSignal::Complete);
    check_in(
        working(),
        [ran("COMPLETE, BLOCKED", AgentExit::Code(0), [complete(), blocked()])],
        expect![[r#"
        COMPLETE, BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
    "#]],
    );
    check_in(
        working(),
        [ran("BLOCKED, COMPLETE", AgentExit::Code(0), [blocked(), complete()])],
        expect![[r#"
        BLOCKED, COMPLETE → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
    "#]],
    );
}

#[test]
fn blocked_ends_the_task_and_keeps_its_workspace() {
    let task = check_in(
        working(),
        [says_blocked("no access")],
        expect![[r#"
        BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
    "#]],
    );
    assert!(task.workspace.is_some());
}

#[test]
fn pending_frees_the_slot_until_a_person_answers() {
    let task = check_in(
        working(),
        [says_pending("Which port?"), due(), answers("8080"), granted(), workspace()],
        expect![[r#"
            PENDING → waits for an answer to `Which port?`, then work [iteration-ended pending, yielded asked, waited]
            due ✗ T1 is waiting for question: no wait is over
            answer `8080` → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
        "#]],
    );
    expect![[r#"
        A person answered your question
        You asked: Which port?
        The answer: 8080"#]]
    .assert_eq(&format!("{}\n{}", task.feedback[0].about, task.feedback[0].text));
}

#[test]
fn leftovers_are_committed_by_the_engine_with_a_warning() {
    check_in(
        working(),
        [fruitless(says_complete()), granted(), passes_with_leftovers()],
        expect![[r#"
        COMPLETE, no commit → ready for verify [iteration-ended complete, left done]
        granted → verify a2: checking [entered] ! check a2
        checked: pass, leftovers → ready for land [collected, warned: the engine committed what the agent had left uncommitted, verified, left pass]
    "#]],
    );
}

#[test]
fn behaviour_15_a_malformed_signal_is_a_warning_and_nothing_else() {
    let malformed = Signal::Malformed { code: "SIGNAL_UNKNOWN", text: "FINISHED".to_owned() };
    check_in(
        working(),
        [ran("malformed", AgentExit::Code(0), [malformed])],
        expect![[r#"
        malformed → work a1: running 2 [iteration-ended continue, warned: SIGNAL_UNKNOWN: FINISHED, iteration-began] ! spawn a1/2 for 1799s
    "#]],
    );
}

#[test]
fn usage_adds_up_over_iterations() {
    let task = check_in(
        working(),
        [
            ran("uses 3", AgentExit::Code(0), [usage(1), usage(2)]),
            ran("uses 4", AgentExit::Code(1), [usage(4)]),
        ],
        expect![[r#"
            uses 3 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            uses 4 → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
        "#]],
    );
    assert_eq!(
        task.counters.usage,
        AgentUsage { tokens_in: 7, tokens_out: 7, micro_usd: 7, ..AgentUsage::default() }
    );
    assert_eq!(task.counters.spent_ms, 2_000);
}

// ── limits ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn iterations_are_used_up_and_the_last_one_counts() {
    let scene = || Scene::new(loops()).limited(|limits| limits.iterations_max = 2);
    check_in(
        scene(),
        [granted(), workspace(), says_nothing(), says_nothing()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word → Failed(max_iterations: its agent never signalled that it is complete, after all 2 iterations) [iteration-ended continue, ended]
        "#]],
    );
    check_in(
        scene(),
        [granted(), workspace(), says_nothing(), says_complete(), granted(), passes()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for land [collected, verified, left pass]
        "#]],
    );
    check_in(
        scene(),
        [granted(), workspace(), says_nothing(), says_complete(), granted(), fails(), granted(), workspace()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: fail → ready for work [collected, verified, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → Failed(max_iterations: its checks are still red (`tests` fails (exit 1), and writes: tests said so), after all 2 iterations) [workspace-made, ended]
        "#]],
    );
}

#[test]
fn the_deadline_is_a_timeout() {
    let task = check_in(
        working(),
        [hits_the_deadline()],
        expect![[r#"
            deadline → Timeout(task_limit: its agent never signalled that it is complete, after all 30m of its working time) [iteration-ended outoftime, ended]
        "#]],
    );
    assert_eq!(TaskStatus::for_task(&task), TaskStatus::Timeout);
}

#[test]
fn complete_before_the_deadline_counts_and_lands_without_time_left() {
    let late_word = taking(
        30 * 60_000,
        ran("COMPLETE, deadline", AgentExit::Deadline, [Signal::Said(ControlSignal::Complete)]),
    );
    check_in(
        working(),
        [late_word, granted(), passes(), granted(), landing_begins(), lands()],
        expect![[r#"
            COMPLETE, deadline → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a3: queued [entered]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
}

#[test]
fn time_is_used_up_by_agents_and_verification_together() {
    check_in(
        working(),
        [
            taking(20 * 60_000, says_complete()),
            granted(),
            taking(10 * 60_000, fails()),
            granted(),
            workspace(),
        ],
        expect![[r#"
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: fail → ready for work [collected, verified, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → Timeout(task_limit: its checks are still red (`tests` fails (exit 1), and writes: tests said so), after all 30m of its working time) [workspace-made, ended]
        "#]],
    );
}

#[test]
fn waits_do_not_use_up_time() {
    let task = check_in(
        working(),
        [says_pending("Which port?"), Line::Wait(24 * 3_600_000), answers("8080"), granted(), workspace()],
        expect![[r#"
            PENDING → waits for an answer to `Which port?`, then work [iteration-ended pending, yielded asked, waited]
            answer `8080` → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
        "#]],
    );
    assert_eq!(task.counters.spent_ms, 1_000);
}

#[test]
fn every_fifth_iteration_without_a_commit_is_a_warning_and_a_commit_begins_the_count_anew() {
    let dry = || fruitless(says_nothing());
    let task = check_in(
        working(),
        [dry(), dry(), dry(), dry(), dry(), dry(), dry(), dry(), dry(), dry(), says_nothing(), dry()],
        expect![[r#"
            no word, no commit → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word, no commit → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
            no word, no commit → work a1: running 4 [iteration-ended continue, iteration-began] ! spawn a1/4 for 1797s
            no word, no commit → work a1: running 5 [iteration-ended continue, iteration-began] ! spawn a1/5 for 1796s
            no word, no commit → work a1: running 6 [iteration-ended continue, warned: 5 iterations in a row left no commit, iteration-began] ! spawn a1/6 for 1795s
            no word, no commit → work a1: running 7 [iteration-ended continue, iteration-began] ! spawn a1/7 for 1794s
            no word, no commit → work a1: running 8 [iteration-ended continue, iteration-began] ! spawn a1/8 for 1793s
            no word, no commit → work a1: running 9 [iteration-ended continue, iteration-began] ! spawn a1/9 for 1792s
            no word, no commit → work a1: running 10 [iteration-ended continue, iteration-began] ! spawn a1/10 for 1791s
            no word, no commit → work a1: running 11 [iteration-ended continue, warned: 10 iterations in a row left no commit, iteration-began] ! spawn a1/11 for 1790s
            no word → work a1: running 12 [iteration-ended continue, iteration-began] ! spawn a1/12 for 1789s
            no word, no commit → work a1: running 13 [iteration-ended continue, iteration-began] ! spawn a1/13 for 1788s
        "#]],
    );
    assert_eq!(task.counters.fruitless, 1);
}

#[test]
fn four_fifths_of_the_iterations_are_a_warning_once() {
    let scene = Scene::new(loops()).limited(|limits| limits.iterations_max = 5);
    check_in(
        scene,
        [granted(), workspace(), says_nothing(), says_nothing(), says_nothing(), says_nothing()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
            no word → work a1: running 4 [iteration-ended continue, iteration-began] ! spawn a1/4 for 1797s
            no word → work a1: running 5 [iteration-ended continue, warned: 4 of 5 iterations are used, iteration-began] ! spawn a1/5 for 1796s
        "#]],
    );
}

// ── troubles of the agent ────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_fourth_crash_in_a_row_fails_the_task() {
    let task = check_in(
        working(),
        [
            crashes(),
            due(),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            crashes(),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            crashes(),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            crashes(),
        ],
        expect![[r#"
            crash → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due ✗ T1 is waiting for backoff: no wait is over
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            crash → waits for backoff +1061ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1798s
            crash → waits for backoff +2123ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 1 [workspace-made, iteration-began] ! spawn a4/1 for 1797s
            crash → Failed(agent_crashed: the agent crashed (exit code 1), 4 times in a row) [iteration-ended crashed, ended]
        "#]],
    );
    assert_eq!(task.counters.iterations, 0, "a crash is no iteration");
}

#[test]
fn a_run_that_ends_well_begins_the_count_of_crashes_anew() {
    let task = check_in(
        working(),
        [crashes(), Line::Wait(60_000), due(), granted(), workspace(), says_nothing(), crashes()],
        expect![[r#"
            crash → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            no word → work a2: running 2 [iteration-ended continue, iteration-began] ! spawn a2/2 for 1798s
            crash → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
        "#]],
    );
    assert_eq!(task.counters.restarts, 1);
}

#[test]
fn an_agent_that_vanishes_is_started_again_and_given_up_by_its_own_name() {
    let scene = || Scene::new(loops()).limited(|limits| limits.restarts_max = 1);
    check_in(
        scene(),
        [granted(), workspace(), vanishes(), Line::Wait(60_000), due(), granted(), workspace(), vanishes()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            lost → waits for backoff +530ms (the agent vanished and its end was not seen), then work [iteration-ended lost, yielded lost, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            lost → Failed(agent_lost: the agent vanished and its end was not seen, 2 times in a row) [iteration-ended lost, ended]
        "#]],
    );
}

#[test]
fn three_stalls_in_a_step_are_recovered_from_and_the_fourth_ends_it() {
    let task = check_in(
        working(),
        [
            falls_silent(),
            granted(),
            workspace(),
            falls_silent(),
            granted(),
            workspace(),
            falls_silent(),
            granted(),
            workspace(),
            falls_silent(),
        ],
        expect![[r#"
            silent → ready for work [iteration-ended stalled, yielded stalled]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            silent → ready for work [iteration-ended stalled, yielded stalled]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1798s
            silent → ready for work [iteration-ended stalled, yielded stalled]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 1 [workspace-made, iteration-began] ! spawn a4/1 for 1797s
            silent → Failed(stall_limit: the agent fell silent 4 times in this step, 4 times in all) [iteration-ended stalled, ended]
        "#]],
    );
    assert_eq!((task.counters.stalls_step, task.counters.stalls_total), (4, 4));
}

#[test]
fn progress_resets_the_stalls_of_the_step_but_not_those_in_all() {
    let scene = Scene::new(loops()).limited(|limits| limits.stalls_total_max = 2);
    let task = check_in(
        scene,
        [
            granted(),
            workspace(),
            falls_silent(),
            granted(),
            workspace(),
            says_nothing(),
            falls_silent(),
            granted(),
            workspace(),
            says_nothing(),
            falls_silent(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            silent → ready for work [iteration-ended stalled, yielded stalled]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            no word → work a2: running 2 [iteration-ended continue, iteration-began] ! spawn a2/2 for 1798s
            silent → ready for work [iteration-ended stalled, yielded stalled]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1797s
            no word → work a3: running 3 [iteration-ended continue, iteration-began] ! spawn a3/3 for 1796s
            silent → Failed(stall_limit: the agent fell silent once in this step, 3 times in all) [iteration-ended stalled, ended]
        "#]],
    );
    assert_eq!((task.counters.stalls_step, task.counters.stalls_total), (1, 3));
}

#[test]
fn quota_spends_nothing_and_waits_until_a_little_after_its_reset() {
    let task = check_in(
        working(),
        [
            hits_quota(Some(500_000)),
            due(),
            Line::Wait(500_000),
            due(),
            Line::Wait(5_308),
            due(),
            granted(),
            workspace(),
        ],
        expect![[r#"
            quota → waits for quota +499000ms, then work [iteration-ended quota, yielded quota, waited]
            due ✗ T1 is waiting for quota: no wait is over
            due ✗ T1 is waiting for quota: no wait is over
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
        "#]],
    );
    // The run itself took its time; the wait took none.
    let step_runs = [(StepName::new("work"), 2)].into();
    let ran = Counters {
        runs: 2,
        step_runs,
        spent_ms: 1_000,
        agent_ms: 1_000,
        same_words: 1,
        ..Counters::default()
    };
    assert_eq!(task.counters, Counters { quota_waits: 1, ..ran });
}

#[test]
fn quota_without_a_reset_asks_again_later_and_later() {
    let once = || [granted(), workspace(), hits_quota(None), Line::Wait(3_600_000), due()];
    let [a, b, c, d, e] = once();
    let [f, g, h, i, j] = once();
    check(
        [a, b, c, d, e, f, g, h, i, j],
        expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        quota → waits for quota +300000ms, then work [iteration-ended quota, yielded quota, waited]
        due → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
        quota → waits for quota +600000ms, then work [iteration-ended quota, yielded quota, waited]
        due → ready for work [resumed]
    "#]],
    );
}

#[test]
fn passing_errors_are_waited_out_longer_each_time() {
    let scene = || Scene::new(loops());
    let task = check_in(
        scene(),
        [
            granted(),
            workspace(),
            has_a_passing_error(),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            has_a_passing_error(),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            has_a_passing_error(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            transient → waits for backoff +1061ms (a passing error of the provider (overloaded)), then work [iteration-ended transient, yielded transient, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            transient → waits for backoff +2123ms (a passing error of the provider (overloaded)), then work [iteration-ended transient, yielded transient, waited]
            due → ready for work [resumed]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1798s
            transient → waits for backoff +4246ms (a passing error of the provider (overloaded)), then work [iteration-ended transient, yielded transient, waited]
        "#]],
    );
    assert_eq!((task.counters.iterations, task.counters.restarts), (0, 0));
}

#[test]
fn an_agent_that_cannot_start_is_tried_again_unless_that_is_hopeless() {
    check_in(
        working(),
        [cannot_start(false)],
        expect![[r#"
        not started → waits for backoff +530ms (no such program), then work [iteration-ended notstarted, yielded notstarted, waited]
    "#]],
    );
    check_in(
        working(),
        [cannot_start(true)],
        expect![[r#"
        not started, hopeless → Failed(agent_not_started: no such program) [iteration-ended notstarted, ended]
    "#]],
    );
}

#[test]
fn an_agent_that_was_killed_though_nobody_asked_is_lost() {
    check_in(
        working(),
        [is_killed()],
        expect![[r#"
            killed → waits for backoff +530ms (the agent vanished and its end was not seen), then work [iteration-ended lost, yielded lost, waited]
        "#]],
    );
}

// ── troubles of the machine ──────────────────────────────────────────────────────────────────────────────

#[test]
fn a_trouble_of_the_machine_is_tried_again_three_times() {
    check(
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
            machine fails → waits for backoff +4246ms (no room on the disk), then work [yielded machine, waited]
            due → ready for work [resumed]
            granted → work a4: preparing afresh [entered] ! prepare a4 afresh
            machine fails → Failed(machine: no room on the disk) [ended]
        "#]],
    );
}

#[test]
fn a_hopeless_trouble_of_the_machine_fails_the_task_at_once() {
    check(
        [granted(), machine_fails(true), retry(), granted()],
        expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        machine fails for good → Failed(machine: no room on the disk) [ended]
        retry → ready [retried]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
    "#]],
    );
}

#[test]
fn a_trouble_while_landing_or_reporting_is_tried_again_from_there() {
    check_in(
        landing(),
        [
            is_unsure(),
            landing_begins(),
            lands(),
            granted(),
            machine_fails(false),
            Line::Wait(60_000),
            due(),
            granted(),
            reported(),
        ],
        expect![[r#"
            unsure → land a3: queued [requeued unsure]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
            granted → report a4: reporting [entered] ! report a4
            machine fails → waits for backoff +1061ms (no room on the disk), then report [yielded machine, waited]
            due → ready for report [resumed]
            granted → report a5: reporting [entered] ! report a5
            reported → Done(landed) [reported, left done] ! tidy
        "#]],
    );
}

// ── verification ─────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_broken_gate_holds_and_is_tried_again_when_the_base_advances() {
    let task = check_in(
        verifying(),
        [checked(CheckOutcome::Broken), due(), base_advances(), granted(), passes()],
        expect![[r#"
            checked: broken → waits for the gate `tests` (`run tests` was not found (exit code 127)), then verify [collected, verified, yielded gatebroken, waited]
            due ✗ T1 is waiting for gate broken: no wait is over
            base advanced → ready for verify [resumed]
            granted → verify a3: checking [entered] ! check a3
            checked: pass → ready for land [verified, left pass]
        "#]],
    );
    assert_eq!(task.counters.iterations, 1, "the agent is not to blame");
}

#[test]
fn a_check_that_fails_on_the_base_too_holds_and_can_be_retried() {
    check_in(
        verifying(),
        [checked(CheckOutcome::PreExisting), retry(), granted()],
        expect![[r#"
        checked: pre-existing → waits for the gate `tests` (it fails on the base as well, without this work), then verify [collected, verified, yielded gatebroken, waited]
        retry → ready for verify [resumed]
        granted → verify a3: checking [entered] ! check a3
    "#]],
    );
}

#[test]
fn the_worst_of_several_checks_decides() {
    let mixed = || report(vec![command("lint", CheckOutcome::Fail), command("tests", CheckOutcome::Broken)]);
    check_in(
        verifying(),
        [checked_as("fail and broken", mixed(), [])],
        expect![[r#"
        checked: fail and broken → waits for the gate `tests` (`run tests` was not found (exit code 127)), then verify [collected, verified, yielded gatebroken, waited]
    "#]],
    );
}

#[test]
fn a_check_that_ran_no_test_says_so() {
    let mut broken = command("tests", CheckOutcome::Broken);
    broken.exit = Some(0);
    broken.tests = Some(0);
    check_in(
        verifying(),
        [checked_as("no test", report(vec![broken]), [])],
        expect![[r#"
        checked: no test → waits for the gate `tests` (it ran no test (exit code 0)), then verify [collected, verified, yielded gatebroken, waited]
    "#]],
    );
}

#[test]
fn a_flaky_gate_lands_with_a_warning() {
    check_in(
        verifying(),
        [checked(CheckOutcome::Flaky)],
        expect![[r#"
        checked: flaky → ready for land [collected, verified, warned: the check `tests` failed once and then passed: flaky, left pass]
    "#]],
    );
}

#[test]
fn an_empty_gate_passes_loudly() {
    check_in(
        verifying(),
        [checked_as("empty", report(vec![]), [])],
        expect![[r#"
        checked: empty → ready for land [collected, verified, warned: VERIFICATION_EMPTY: no check is configured, so nothing was verified, left pass]
    "#]],
    );
}

#[test]
fn an_empty_gate_holds_where_verification_is_required() {
    let required = GateReport { required: true, ..report(vec![]) };
    check_in(
        verifying(),
        [checked_as("empty, required", required, [])],
        expect![[r#"
        checked: empty, required → waits for the gate `verify` (the project requires verification but configures no command), then verify [collected, verified, warned: VERIFICATION_EMPTY: no check is configured, so nothing was verified, yielded gatebroken, waited]
    "#]],
    );
}

#[test]
fn an_optional_check_that_fails_is_only_a_warning() {
    let optional = report(vec![command("tests", CheckOutcome::Pass), command("lint?", CheckOutcome::Fail)]);
    check_in(
        verifying(),
        [checked_as("lint fails", optional, [])],
        expect![[r#"
        checked: lint fails → ready for land [collected, verified, warned: the optional check `lint` failed, left pass]
    "#]],
    );
}

#[test]
fn a_fourth_conflict_waits_for_a_person() {
    let round = || [granted(), workspace(), says_complete(), granted(), conflicts()];
    let [a, b, c, d, e] = round();
    let [f, g, h, i, j] = round();
    let [k, l, m, n, o] = round();
    let [p, q, r, s, t] = round();
    let task = check(
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            conflict → ready for work [collected, conflicted, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1799s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            conflict → ready for work [conflicted, left fail with feedback]
            granted → work a5: preparing [entered] ! prepare a5
            workspace → work a5: running 3 [workspace-made, iteration-began] ! spawn a5/3 for 1798s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a6: checking [entered] ! check a6
            conflict → ready for work [conflicted, left fail with feedback]
            granted → work a7: preparing [entered] ! prepare a7
            workspace → work a7: running 4 [workspace-made, iteration-began] ! spawn a7/4 for 1797s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a8: checking [entered] ! check a8
            conflict → waits for a person, because of a.txt (3 lines), b.txt (1 line) on newbase, +3600000ms or defer, then verify [conflicted, yielded asked, waited]
        "#]],
    );
    assert_eq!(task.counters.conflicts, 4);
}

#[test]
fn a_conflict_tells_the_agent_what_to_merge() {
    let task = check_in(
        verifying(),
        [conflicts()],
        expect![[r#"
        conflict → ready for work [collected, conflicted, left fail with feedback]
    "#]],
    );
    expect![[r#"
        Your work conflicts with the base branch
        The base has moved to commit newbase and your branch no longer merges into it.
        Files in conflict: a.txt (3 lines), b.txt (1 line)
        Run `git merge newbase` in your workspace, resolve the conflicts keeping what both sides meant, commit, and signal COMPLETE again."#]].assert_eq(&format!("{}\n{}", task.feedback[0].about, task.feedback[0].text));
}

#[test]
fn work_of_a_rebuilt_workspace_goes_back_to_its_agent_and_counts_as_no_failure() {
    let scene = Scene::new(loops());
    let scene = scene.play_all([granted(), workspace(), says_complete(), granted(), rebuilt()]);
    let TaskState::Ready { next: Some(next), .. } = &scene.task.state else {
        panic!("{:?}", scene.task.state)
    };
    assert_eq!(next.to_string(), "work");
    let counters = &scene.task.counters;
    assert_eq!((counters.empty_claims, counters.machine, counters.fruitless), (0, 0, 0));
    // It lands like any other then.
    let scene = scene.play_all([granted(), workspace(), says_complete(), granted(), passes()]);
    assert!(scene.task.gate.as_ref().is_some_and(|gate| gate.outcome().is_green()), "{:?}", scene.task.state);
}

#[test]
fn nothing_changed_is_told_once_and_blocks_the_second_time() {
    check_in(
        working(),
        [
            fruitless(says_complete()),
            granted(),
            changed_nothing(),
            granted(),
            workspace(),
            fruitless(says_complete()),
            granted(),
            changed_nothing(),
        ],
        expect![[r#"
            COMPLETE, no commit → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            nothing changed → ready for work [yielded nothingchanged, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1799s
            COMPLETE, no commit → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            nothing changed → Blocked(nothing_changed: the agent says it is complete, twice, but its branch holds no change) [yielded nothingchanged, ended]
        "#]],
    );
}

// ── landing ──────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_moved_base_puts_it_back_in_line_without_a_new_attempt() {
    check_in(
        landing(),
        [base_moved(), landing_begins(), lands()],
        expect![[r#"
            base moved → land a3: queued [requeued]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
}

#[test]
fn red_on_landing_goes_back_to_the_agent_with_the_output() {
    let task = check_in(
        queued(),
        [is_ejected(), granted(), workspace()],
        expect![[r#"
            ejected → ready for work [ejected, left red with feedback]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
        "#]],
    );
    expect![[r#"
        Verification failed together with what landed meanwhile (base base)
        `run tests` (tests): exit code 1
        tests said so
        Run `git merge base` in your workspace to work on top of it.
    "#]]
    .assert_eq(&format!("{}\n{}", task.feedback[0].about, task.feedback[0].text));
}

#[test]
fn a_conflict_on_landing_goes_back_to_the_agent() {
    check_in(
        queued(),
        [conflicts(), granted()],
        expect![[r#"
            conflict → ready for work [conflicted, left conflict with feedback]
            granted → work a4: preparing [entered] ! prepare a4
        "#]],
    );
}

#[test]
fn a_gate_that_breaks_on_landing_frees_the_landing_and_holds_the_task() {
    check_in(
        checking_to_land(),
        [checked(CheckOutcome::Broken), base_advances(), granted()],
        expect![[r#"
            checked: broken → waits for the gate `tests` (`run tests` was not found (exit code 127)), then land [verified, yielded gatebroken, waited]
            base advanced → ready for land [resumed]
            granted → land a5: checking [entered] ! check a5
        "#]],
    );
}

#[test]
fn a_mismatch_after_landing_fails_loudly() {
    check_in(
        landing(),
        [does_not_match()],
        expect![[r#"
        mismatch → Failed(landing_mismatch: the tree is another) [ended]
    "#]],
    );
}

#[test]
fn a_second_landing_is_refused() {
    check_in(
        landing(),
        [lands(), lands(), granted(), late(lands()), reported(), lands(), reported()],
        expect![[r#"
            landed → ready for report [landed, left landed]
            landed ✗ T1 is ready: it does not stand in the landing queue
            granted → report a4: reporting [entered] ! report a4
            late landed ✗ T1: news of a3, but a4 is the latest attempt
            reported → Done(landed) [reported, left done] ! tidy
            landed ✗ T1 is over (landed): it does not stand in the landing queue
            reported ✗ T1 is over (landed): no report was asked for
        "#]],
    );
}

// ── review ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_concern_waits_for_a_person_and_lands_when_they_approve() {
    let task = check_in(
        verifying(),
        [
            passes_with_concern(),
            granted(),
            due(),
            answers("approve: the test was wrong"),
            granted(),
            landing_begins(),
            lands(),
        ],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            granted ✗ T1 is review: it cannot be started
            due ✗ T1 is review: no wait is over
            answer `approve: the test was wrong` → ready for land [reviewed, left pass]
            granted → land a3: queued [entered]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
    assert_eq!(task.approved.map(|(_, note)| note).as_deref(), Some("the test was wrong"));
}

#[test]
fn a_reviewer_who_wants_changes_sends_it_back_with_their_words() {
    let task = check_in(
        verifying(),
        [passes_with_concern(), answers("no keep that test"), granted(), workspace()],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `no keep that test` → ready for work [reviewed, left changes with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
        "#]],
    );
    expect![[r#"
        A reviewer wants changes
        keep that test"#]]
    .assert_eq(&format!("{}\n{}", task.feedback[0].about, task.feedback[0].text));
}

#[test]
fn words_that_are_neither_yes_nor_no_are_changes_wanted() {
    let task = check_in(
        verifying(),
        [passes_with_concern(), answers("hm, why?")],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `hm, why?` → ready for work [reviewed, left changes with feedback]
        "#]],
    );
    assert_eq!(task.feedback[0].text, "hm, why?");
}

#[test]
fn a_reviewer_who_says_no_where_nothing_leads_back_blocks_the_task() {
    check_in(
        Scene::new(tries_once()),
        [granted(), workspace(), says_complete(), granted(), passes_with_concern(), answers("no, keep it")],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            answer `no, keep it` → Blocked(rejected: keep it) [reviewed, ended]
        "#]],
    );
}

#[test]
fn a_concern_first_seen_on_landing_is_reviewed_there() {
    check_in(
        checking_to_land(),
        [passes_with_concern(), answers("ok"), granted()],
        expect![[r#"
            checked: pass, concern → review, then land [verified, review-wanted]
            answer `ok` → ready for land [reviewed]
            granted → land a5: queued [entered]
        "#]],
    );
}

// ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_drain_lets_the_iteration_end_and_begins_no_other() {
    check_in(
        working(),
        [Line::Drain, says_nothing(), Line::Drive, granted(), workspace()],
        expect![[r#"
        no word → ready for work [iteration-ended continue, yielded drained]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
    "#]],
    );
    check(
        [granted(), Line::Drain, workspace()],
        expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → ready for work [workspace-made, yielded drained]
    "#]],
    );
}

#[test]
fn a_drain_still_finishes_a_landing() {
    check_in(
        queued(),
        [Line::Drain, landing_begins(), base_moved(), landing_begins(), lands()],
        expect![[r#"
            landing begins → land a3: landing [landing-began]
            base moved → land a3: queued [requeued]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
}

#[test]
fn an_interrupt_kills_the_agent_and_the_step_goes_on_next_time() {
    let task = check_in(
        working(),
        [interrupt(), interrupt(), Line::Restart, is_killed(), granted(), workspace()],
        expect![[r#"
            interrupt → work a1: running 1 (interrupted) [stop-asked] ! kill a1
            interrupt ✗ T1 is active in `work` (running): no agent runs
            restart → work a1: running 1 (interrupted) ! spawn a1/1 for 1800s ! kill a1
            killed → ready for work [iteration-ended stopped, yielded drained]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
        "#]],
    );
    assert_eq!(task.counters.iterations, 0, "it is the same iteration again");
    assert_eq!(task.counters.restarts, 0, "an interrupt is no crash");
}

#[test]
fn a_stop_pauses_the_task_until_a_person_wants_it_again() {
    check_in(
        working(),
        [stop(), stop(), is_killed(), granted(), due(), retry(), granted()],
        expect![[r#"
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        stop ✗ T1 is active in `work` (running): there is nothing to stop
        killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
        granted ✗ T1 is waiting for pause: it cannot be started
        due ✗ T1 is waiting for pause: no wait is over
        retry → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
    "#]],
    );
}

#[test]
fn a_stop_while_checking_takes_effect_when_that_is_over() {
    check_in(
        verifying(),
        [stop(), Line::Restart, passes(), retry_with("go on"), granted()],
        expect![[r#"
        stop → verify a2: checking (pausing) [stop-asked]
        restart → verify a2: checking (pausing) ! check a2
        checked: pass → waits for pause, then verify [collected, verified, yielded stopped, waited]
        retry with a note → ready for verify [resumed]
        granted → verify a3: checking [entered] ! check a3
    "#]],
    );
    check_in(
        verifying(),
        [stop(), conflicts()],
        expect![[r#"
        stop → verify a2: checking (pausing) [stop-asked]
        conflict → waits for pause, then verify [collected, conflicted, yielded stopped, waited]
    "#]],
    );
    check_in(
        verifying(),
        [stop(), changed_nothing()],
        expect![[r#"
            stop → verify a2: checking (pausing) [stop-asked]
            nothing changed → waits for pause, then verify [yielded stopped, waited]
        "#]],
    );
    check_in(
        verifying(),
        [stop(), machine_fails(false)],
        expect![[r#"
        stop → verify a2: checking (pausing) [stop-asked]
        machine fails → waits for pause, then verify [yielded stopped, waited]
    "#]],
    );
}

#[test]
fn a_stop_between_steps_or_in_a_wait_that_time_ends_pauses() {
    check_in(
        working(),
        [says_complete(), stop(), retry(), granted()],
        expect![[r#"
        COMPLETE → ready for verify [iteration-ended complete, left done]
        stop → waits for pause, then verify [waited]
        retry → ready for verify [resumed]
        granted → verify a2: checking [entered] ! check a2
    "#]],
    );
    check_in(
        working(),
        [crashes(), stop(), Line::Wait(60_000), due(), retry()],
        expect![[r#"
        crash → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
        stop → waits for pause, then work [waited]
        due ✗ T1 is waiting for pause: no wait is over
        retry → ready for work [resumed]
    "#]],
    );
}

#[test]
fn an_agent_that_ends_by_itself_while_being_stopped_is_stopped_all_the_same() {
    let task = check_in(
        working(),
        [stop(), says_nothing()],
        expect![[r#"
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        no word → waits for pause, then work [iteration-ended continue, yielded stopped, waited]
    "#]],
    );
    assert_eq!(task.counters.iterations, 1);
}

// ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_task_can_be_cancelled_wherever_it_has_not_begun_to_land() {
    check(
        [cancel(), retry(), edit(|spec| spec.priority = 1)],
        expect![[r#"
        cancel → Cancelled(person: no longer wanted) [ended]
        retry ✗ T1 is over (person): there is nothing to retry
        edit ✗ T1 is over (person): its words can no longer be changed
    "#]],
    );
    check(
        [granted(), cancel(), workspace()],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            cancel → work a1: preparing afresh (cancelling) [stop-asked]
            workspace → Cancelled(person: no longer wanted) [workspace-made, ended]
        "#]],
    );
    check_in(
        working(),
        [cancel(), cancel(), Line::Restart, is_killed()],
        expect![[r#"
        cancel → work a1: running 1 (cancelling) [stop-asked] ! kill a1
        cancel ✗ T1 is active in `work` (running): it is being cancelled already
        restart → work a1: running 1 (cancelling) ! spawn a1/1 for 1800s ! kill a1
        killed → Cancelled(person: no longer wanted) [iteration-ended stopped, ended]
    "#]],
    );
    check_in(
        working(),
        [stop(), cancel(), says_complete()],
        expect![[r#"
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        cancel → work a1: running 1 (cancelling) [stop-asked] ! kill a1
        COMPLETE → Cancelled(person: no longer wanted) [iteration-ended complete, ended]
    "#]],
    );
    check_in(
        working(),
        [says_complete(), cancel()],
        expect![[r#"
        COMPLETE → ready for verify [iteration-ended complete, left done]
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
    check_in(
        verifying(),
        [cancel(), passes()],
        expect![[r#"
        cancel → verify a2: checking (cancelling) [stop-asked]
        checked: pass → Cancelled(person: no longer wanted) [collected, verified, ended]
    "#]],
    );
    check_in(
        verifying(),
        [cancel(), cancel(), fails()],
        expect![[r#"
            cancel → verify a2: checking (cancelling) [stop-asked]
            cancel ✗ T1 is active in `verify` (verifying): it is being cancelled already
            checked: fail → Cancelled(person: no longer wanted) [collected, verified, ended]
        "#]],
    );
    check_in(
        working(),
        [says_pending("Which port?"), cancel(), answers("8080")],
        expect![[r#"
        PENDING → waits for an answer to `Which port?`, then work [iteration-ended pending, yielded asked, waited]
        cancel → Cancelled(person: no longer wanted) [ended]
        answer `8080` ✗ T1 is over (person): it asks nothing
    "#]],
    );
    check_in(
        verifying(),
        [passes_with_concern(), cancel(), answers("ok")],
        expect![[r#"
            checked: pass, concern → review, then verify [collected, verified, review-wanted]
            cancel → Cancelled(person: no longer wanted) [ended]
            answer `ok` ✗ T1 is over (person): it asks nothing
        "#]],
    );
    check_in(
        working(),
        [says_blocked("no access"), cancel()],
        expect![[r#"
        BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
}

#[test]
fn a_task_cannot_be_cancelled_once_it_lands() {
    check_in(
        landing(),
        [cancel(), lands(), cancel(), granted(), cancel(), reported(), cancel()],
        expect![[r#"
            cancel ✗ T1 is active in `land` (landing): it is too late to cancel it; `landfall rollback` can take it back
            landed → ready for report [landed, left landed]
            cancel ✗ T1 is ready: it has landed; `landfall rollback` can take it back
            granted → report a4: reporting [entered] ! report a4
            cancel ✗ T1 is active in `report` (reporting): it has landed; `landfall rollback` can take it back
            reported → Done(landed) [reported, left done] ! tidy
            cancel ✗ T1 is over (landed): it has landed; `landfall rollback` can take it back
        "#]],
    );
}

// ── taking up again ──────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_retry_keeps_the_workspace_and_what_was_used_and_forgets_the_other_counters() {
    let task = check_in(
        working(),
        [
            ran("uses 5", AgentExit::Code(0), [usage(5)]),
            says_blocked("no access"),
            retry_with("the key is in the vault"),
            granted(),
            workspace(),
        ],
        expect![[r#"
            uses 5 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
            retry with a note → ready [retried]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
        "#]],
    );
    let kept = AgentUsage { tokens_in: 5, tokens_out: 5, micro_usd: 5, ..AgentUsage::default() };
    let step_runs = [(StepName::new("work"), 3)].into();
    let kept = Counters { runs: 3, step_runs, usage: kept, agent_ms: 2_000, ..Counters::default() };
    assert_eq!(task.counters, Counters { retries: 1, ..kept });
    assert_eq!(task.feedback[0].text, "the key is in the vault");
}

#[test]
fn a_fresh_retry_begins_with_a_new_workspace() {
    check_in(
        working(),
        [says_blocked("no access"), retry_fresh(), granted(), workspace()],
        expect![[r#"
        BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
        retry fresh → ready [retried afresh]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
        workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
    "#]],
    );
}

#[test]
fn a_retry_with_its_workspace_gone_begins_with_a_new_one() {
    check_in(
        working(),
        [says_blocked("no access"), workspace_removed(), retry(), granted()],
        expect![[r#"
        BLOCKED → Blocked(agent_blocked: no access) [iteration-ended blocked, ended]
        workspace removed → Blocked(agent_blocked: no access) [workspace-removed]
        retry → ready [retried]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
    "#]],
    );
}

#[test]
fn a_retry_of_what_is_under_way_or_done_is_refused() {
    check(
        [retry(), granted(), retry(), workspace(), retry()],
        expect![[r#"
        retry ✗ T1 is ready: there is nothing to retry
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        retry ✗ T1 is active in `work` (preparing): there is nothing to retry
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        retry ✗ T1 is active in `work` (running): there is nothing to retry
    "#]],
    );
}

// ── editing ──────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_draft_starts_only_after_it_is_edited_out_of_it() {
    check(
        [
            edit(|spec| spec.draft = true),
            granted(),
            stop(),
            edit(|spec| spec.draft = false),
            granted(),
            edit(|spec| spec.body = "more".to_owned()),
            workspace(),
        ],
        expect![[r#"
            edit → draft [edited]
            granted ✗ T1 is draft: it cannot be started
            stop ✗ T1 is draft: there is nothing to stop
            edit → ready [edited]
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            edit → work a1: preparing afresh [edited]
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        "#]],
    );
}

#[test]
fn a_landed_task_can_no_longer_be_edited() {
    check_in(
        reporting(),
        [reported(), edit(|spec| spec.priority = 1)],
        expect![[r#"
        reported → Done(landed) [reported, left done] ! tidy
        edit ✗ T1 is over (landed): its words can no longer be changed
    "#]],
    );
}

// ── other flows ──────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_rollback_brings_its_own_work_and_begins_with_verification() {
    let scene = || Scene::new(takes_back()).with(Event::Offered { head: commit("revert") });
    check_in(
        scene(),
        [
            granted(),
            Line::Restart,
            passes(),
            granted(),
            landing_begins(),
            base_moved(),
            landing_begins(),
            lands(),
        ],
        expect![[r#"
            granted → verify a1: checking [bound, entered] ! check a1 of revert
            restart → verify a1: checking ! check a1 of revert
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a2: queued [entered]
            landing begins → land a2: landing [landing-began]
            base moved → land a2: queued [requeued]
            landing begins → land a2: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
    check_in(
        scene(),
        [granted(), conflicts()],
        expect![[r#"
        granted → verify a1: checking [bound, entered] ! check a1 of revert
        conflict → Blocked(flow_stop: step `verify` ended with `fail`) [collected, conflicted, left fail with feedback]
    "#]],
    );
}

#[test]
fn a_flow_may_ask_a_person_and_needs_no_landing() {
    check_in(
        Scene::new(asks()),
        [
            granted(),
            workspace(),
            says_nothing(),
            granted(),
            answers("it is"),
            granted(),
            workspace(),
            says_complete(),
            workspace_removed(),
        ],
        expect![[r#"
            granted → plan a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → plan a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word → ready for confirm [iteration-ended continue, left done]
            granted → waits for an answer to `Is the plan good?`, then confirm [waited]
            answer `it is` → ready for work [left answered with feedback]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
            COMPLETE → Done(accepted) [iteration-ended complete, left done] ! tidy
            workspace removed → Done(accepted) [workspace-removed]
        "#]],
    );
}

#[test]
fn a_flow_may_route_blocked_until_its_bound_is_used_up() {
    let scene = Scene::new(asks()).limited(|limits| limits.iterations_max = 50);
    check_in(
        scene,
        [granted(), workspace(), says_blocked("no plan"), granted(), answers("try")],
        expect![[r#"
            granted → plan a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → plan a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            BLOCKED → ready for confirm [iteration-ended blocked, left blocked with feedback]
            granted → waits for an answer to `Is the plan good?`, then confirm [waited]
            answer `try` → ready for work [left answered with feedback]
        "#]],
    );
}

#[test]
fn an_edge_taken_as_often_as_it_may_fails_the_task() {
    let round = || [granted(), workspace(), says_complete(), granted(), fails()];
    let scene = Scene::new(polishes());
    let [a, b, c, d, e] = round();
    let [f, g, h, i, j] = round();
    let [k, l, m, n, o] = round();
    let [p, q, r, s, t] = round();
    check_in(
        scene,
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: fail → ready for work [collected, verified, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            checked: fail → ready for work [verified, left fail with feedback]
            granted → work a5: preparing [entered] ! prepare a5
            workspace → work a5: running 3 [workspace-made, iteration-began] ! spawn a5/3 for 1778s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a6: checking [entered] ! check a6
            checked: fail → ready for work [verified, left fail with feedback]
            granted → work a7: preparing [entered] ! prepare a7
            workspace → work a7: running 4 [workspace-made, iteration-began] ! spawn a7/4 for 1767s
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a8: checking [entered] ! check a8
            checked: fail → Failed(edge_limit: its checks are still red (`tests` fails (exit 1), and writes: tests said so), after step `verify` failed 4 times) [verified, ended]
        "#]],
    );
}

#[test]
fn the_same_red_work_is_not_verified_for_ever() {
    let round = |run: Line| [granted(), workspace(), run, granted(), fails()];
    let mut scene = Scene::new(loops()).play_all(round(says_complete()));
    for idle in 1..=4 {
        scene = scene.play_all(round(fruitless(says_complete())));
        assert_eq!((scene.task.is_over(), scene.task.counters.fruitless), (false, idle));
    }
    let over = scene.play_all(round(fruitless(says_complete()))).task;
    let TaskState::Ended(Ending { kind, code, detail }) = &over.state else { panic!("{:?}", over.state) };
    assert_eq!((*kind, *code), (EndKind::Failed, EndCode::NothingChanged));
    assert!(
        detail.starts_with(
            "its agent was told 5 times in a row what is red, and changed nothing: `tests` fails"
        ),
        "{detail}"
    );
    // Work that changes meanwhile is another matter, whoever committed it.
    let other = || {
        let mut other = report(vec![command("tests", CheckOutcome::Fail)]);
        other.tree = Tree::new("another tree");
        checked_as("fail", other, [])
    };
    let mut scene = Scene::new(loops()).play_all(round(says_complete()));
    for _ in 1..=5 {
        scene = scene.play_all([granted(), workspace(), fruitless(says_complete()), granted(), other()]);
        scene = scene.play_all(round(fruitless(says_complete())));
    }
    assert!(!scene.task.is_over(), "{:?}", scene.task.state);
}

#[test]
fn a_flow_is_frozen_when_the_task_starts_but_limits_may_be_raised() {
    let mut scene = Scene::new(loops()).play_all([granted(), workspace(), says_complete()]);
    scene.flow = asks();
    scene.limits.iterations_max = 99;
    let told = scene.play(&granted());
    expect!["granted → verify a2: checking [bound, entered] ! check a2"].assert_eq(&told.unwrap_or_default());
    assert_eq!(scene.task.flow.as_ref().map(|flow| flow.name.as_str()), Some("loop"));
    assert_eq!(scene.task.limits.iterations_max, 99);
}

// ── late news ────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn news_of_an_older_attempt_is_refused() {
    check_in(
        verifying(),
        [
            late(workspace()),
            late(says_complete()),
            late(passes()),
            late(conflicts()),
            late(changed_nothing()),
            late(landing_begins()),
            late(is_ejected()),
            late(is_unsure()),
            late(lands()),
            late(base_moved()),
            late(does_not_match()),
            late(reported()),
            late(machine_fails(false)),
        ],
        expect![[r#"
            late workspace ✗ T1: news of a1, but a2 is the latest attempt
            late COMPLETE ✗ T1: news of a1, but a2 is the latest attempt
            late checked: pass ✗ T1: news of a1, but a2 is the latest attempt
            late conflict ✗ T1: news of a1, but a2 is the latest attempt
            late nothing changed ✗ T1: news of a1, but a2 is the latest attempt
            late landing begins ✗ T1: news of a1, but a2 is the latest attempt
            late ejected ✗ T1: news of a1, but a2 is the latest attempt
            late unsure ✗ T1: news of a1, but a2 is the latest attempt
            late landed ✗ T1: news of a1, but a2 is the latest attempt
            late base moved ✗ T1: news of a1, but a2 is the latest attempt
            late mismatch ✗ T1: news of a1, but a2 is the latest attempt
            late reported ✗ T1: news of a1, but a2 is the latest attempt
            late machine fails ✗ T1: news of a1, but a2 is the latest attempt
        "#]],
    );
}

#[test]
fn news_of_another_iteration_is_refused() {
    let mut scene = Scene::new(loops()).play_all([granted(), workspace(), says_nothing()]);
    let landfall_model::TaskState::Active {
        doing: landfall_model::AttemptPhase::Running { iteration, .. },
        ..
    } = &scene.task.state
    else {
        panic!("it runs")
    };
    assert_eq!(*iteration, 2);
    let first = landfall_model::News::AgentEnded(landfall_model::EndedRun {
        attempt: scene.task.attempt,
        iteration: 1,
        exit: AgentExit::Code(0),
        seen: vec![Signal::Said(ControlSignal::Complete)],
        evidence: landfall_model::AgentRunEvidence::default(),
        took_ms: 0,
        usage: AgentUsage::default(),
        traces: landfall_model::AgentRunTraces::default(),
        climbed: None,
    });
    expect!["T1 is active in `work` (running): that iteration does not run"]
        .assert_eq(&scene.hear(first).expect_err("refused"));
}

#[test]
fn a_step_is_not_done_before_what_it_must_leave_behind_is_there() {
    let told = check(
        [granted(), workspace(), without_output(says_complete())],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE, no output → ready for work [iteration-ended complete, yielded outputmissing]
        "#]],
    );
    assert_eq!(told.feedback[0].text, "Missing, empty or not written in this run: plan.md");
    check_in(
        Scene::new(asks()),
        [granted(), workspace(), without_output(says_nothing()), granted(), workspace(), says_nothing()],
        expect![[r#"
            granted → plan a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → plan a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, no output → ready for plan [iteration-ended continue, yielded outputmissing]
            granted → plan a2: preparing [entered] ! prepare a2
            workspace → plan a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
            no word → ready for confirm [iteration-ended continue, left done]
        "#]],
    );
}
