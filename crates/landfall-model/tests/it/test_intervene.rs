//! Stories about what a person says to one task while it goes on.

use expect_test::expect;
use landfall_model::{AgentExit, BudgetScope, TaskLimitOverrides, TaskState, TaskStatus};

use crate::flows_used::loops;
use crate::story::{
    Line, Scene, accepts, block, but, cancel, check, check_in, crashes, fails, falls_silent, fruitless,
    granted, hits_quota, hits_the_deadline, hold, is_killed, limits, passes, queued, ran, redirect, release,
    retry, retry_fresh, says_blocked, says_complete, says_nothing, stop, tell, verifying, working, workspace,
};

#[test]
fn a_message_goes_with_the_next_run_and_is_gone_once_that_run_was_heard_out() {
    let task = check_in(
        working(),
        [tell("use the other parser"), says_nothing()],
        expect![[r#"
        tell `use the other parser` → work a1: running 1 [messaged]
        no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
    "#]],
    );
    assert_eq!(
        (task.carried.as_slice(), task.messages.len()),
        (["use the other parser".to_owned()].as_slice(), 0)
    );
    let task = check_in(
        working(),
        [tell("one"), tell("two"), says_nothing(), tell("three"), says_nothing()],
        expect![[r#"
            tell `one` → work a1: running 1 [messaged]
            tell `two` → work a1: running 1 [messaged]
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            tell `three` → work a1: running 2 [messaged]
            no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
        "#]],
    );
    assert_eq!(task.carried, ["three"], "the first two were in the prompt of the run before");
    assert_eq!(task.messages, [] as [&str; 0]);
}

#[test]
fn a_message_that_no_model_could_read_is_carried_again_in_its_order() {
    let task = check_in(
        working(),
        [tell("one"), says_nothing(), tell("two"), fruitless(hits_quota(None))],
        expect![[r#"
            tell `one` → work a1: running 1 [messaged]
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            tell `two` → work a1: running 2 [messaged]
            quota, no commit → waits for quota +300000ms, then work [iteration-ended quota, yielded quota, waited]
        "#]],
    );
    assert_eq!(task.messages, ["one", "two"]);
    assert_eq!(task.carried, [] as [&str; 0]);
}

#[test]
fn a_message_to_a_task_at_rest_waits_for_its_start() {
    let task = check(
        [tell("mind the tests"), granted(), workspace()],
        expect![[r#"
        tell `mind the tests` → ready [messaged]
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
    "#]],
    );
    assert_eq!(task.carried, ["mind the tests"]);
}

#[test]
fn a_redirect_ends_the_run_counts_nothing_and_goes_on_with_the_message() {
    let task = check_in(
        working(),
        [redirect("another way"), is_killed(), granted(), workspace()],
        expect![[r#"
            tell `another way` now → work a1: running 1 (redirecting) [messaged, stop-asked] ! kill a1
            killed → ready for work [iteration-ended stopped, yielded redirected]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
        "#]],
    );
    assert_eq!(task.carried, ["another way"]);
    assert_eq!((task.counters.iterations, task.counters.restarts, task.counters.retries), (0, 0, 0));
}

#[test]
fn a_redirect_of_work_that_is_verified_or_in_line_brings_it_back_to_its_agent() {
    check_in(
        verifying(),
        [redirect("another way"), passes(), granted(), workspace()],
        expect![[r#"
        tell `another way` now → verify a2: checking (redirecting) [messaged, stop-asked]
        checked: pass → ready for work [collected, verified, left changes]
        granted → work a3: preparing [entered] ! prepare a3
        workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
    "#]],
    );
    let task = check_in(
        queued(),
        [redirect("another way"), granted(), workspace()],
        expect![[r#"
        tell `another way` now → ready for work [messaged, left changes]
        granted → work a4: preparing [entered] ! prepare a4
        workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
    "#]],
    );
    assert_eq!(task.carried, ["another way"]);
}

#[test]
fn a_stop_after_a_redirect_wins() {
    check_in(
        working(),
        [redirect("another way"), stop(), is_killed(), release()],
        expect![[r#"
        tell `another way` now → work a1: running 1 (redirecting) [messaged, stop-asked] ! kill a1
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
        release → ready for work [resumed]
    "#]],
    );
}

#[test]
fn a_held_task_finishes_its_run_and_then_waits_for_the_person() {
    let task = check_in(
        working(),
        [hold(), hold(), says_nothing(), granted(), retry(), release(), granted()],
        expect![[r#"
            hold → work a1: running 1 [held]
            hold ✗ T1 is active in `work` (running): it is held already
            no word → ready for work [iteration-ended continue, yielded held]
            granted ✗ T1 is ready: a person holds it
            retry ✗ T1 is ready: you hold it; `landfall task release` lets it continue
            release → ready for work [released]
            granted → work a2: preparing [entered] ! prepare a2
        "#]],
    );
    assert_eq!(task.hold, None);
    let task = check_in(
        working(),
        [hold(), says_complete(), granted()],
        expect![[r#"
        hold → work a1: running 1 [held]
        COMPLETE → ready for verify [iteration-ended complete, left done]
        granted ✗ T1 is ready: a person holds it
    "#]],
    );
    assert_eq!(TaskStatus::for_task(&task), TaskStatus::Waiting);
}

#[test]
fn a_hold_keeps_what_is_verified_off_the_base() {
    check_in(
        verifying(),
        [hold(), passes(), granted(), release(), granted()],
        expect![[r#"
        hold → verify a2: checking [held]
        checked: pass → ready for land [collected, verified, left pass]
        granted ✗ T1 is ready: a person holds it
        release → ready for land [released]
        granted → land a3: queued [entered]
    "#]],
    );
    check_in(
        queued(),
        [hold(), granted(), release(), granted()],
        expect![[r#"
        hold → ready for land [held, yielded held]
        granted ✗ T1 is ready: a person holds it
        release → ready for land [released]
        granted → land a4: queued [entered]
    "#]],
    );
    check_in(
        verifying(),
        [hold(), fails(), granted()],
        expect![[r#"
        hold → verify a2: checking [held]
        checked: fail → ready for work [collected, verified, left fail with feedback]
        granted ✗ T1 is ready: a person holds it
    "#]],
    );
}

#[test]
fn a_task_that_never_started_can_be_held() {
    check(
        [hold(), granted(), release(), release(), granted()],
        expect![[r#"
        hold → ready [held]
        granted ✗ T1 is ready: a person holds it
        release → ready [released]
        release ✗ T1 is ready: it is not held
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
    "#]],
    );
}

#[test]
fn what_a_person_blocks_is_blocked_and_can_be_retried() {
    check_in(
        working(),
        [block("no key"), block("no key"), is_killed(), retry()],
        expect![[r#"
        block → work a1: running 1 (blocking) [stop-asked] ! kill a1
        block ✗ T1 is active in `work` (running): it is being ended already
        killed → Blocked(person: no key) [iteration-ended stopped, ended]
        retry → ready [retried]
    "#]],
    );
    check_in(
        verifying(),
        [block("no key"), passes()],
        expect![[r#"
        block → verify a2: checking (blocking) [stop-asked]
        checked: pass → Blocked(person: no key) [collected, verified, ended]
    "#]],
    );
    check(
        [block("no key"), block("no key")],
        expect![[r#"
        block → Blocked(person: no key) [ended]
        block ✗ T1 is over (person): there is nothing to block
    "#]],
    );
}

#[test]
fn limits_of_its_own_stand_above_the_settings() {
    let own =
        TaskLimitOverrides { iterations_max: Some(2), task_ms: Some(3_600_000), micro_usd: Some(5_000_000) };
    let task = check(
        [limits(own), granted(), workspace(), says_nothing(), says_nothing(), retry(), granted()],
        expect![[r#"
            limits → ready [limits-set]
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 3600s
            no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 3599s
            no word → Failed(max_iterations: its agent never signalled that it is complete, after all 2 iterations) [iteration-ended continue, ended]
            retry → ready [retried]
            granted → work a2: preparing [entered] ! prepare a2
        "#]],
    );
    assert_eq!(task.limits.iterations_max, 2);
    assert_eq!(task.limits.task_budget.micro_usd, Some(5_000_000));
}

#[test]
fn a_run_that_ended_at_a_limit_that_was_raised_meanwhile_is_gone_on_with() {
    let own = TaskLimitOverrides { task_ms: Some(7_200_000), ..TaskLimitOverrides::default() };
    check_in(
        working(),
        [limits(own), hits_the_deadline(), granted()],
        expect![[r#"
        limits → work a1: running 1 [limits-set]
        deadline → ready for work [iteration-ended outoftime, yielded redirected]
        granted → work a2: preparing [entered] ! prepare a2
    "#]],
    );
    check_in(
        working(),
        [hits_the_deadline(), limits(own), retry(), granted(), workspace()],
        expect![[r#"
            deadline → Timeout(task_limit: its agent never signalled that it is complete, after all 30m of its working time) [iteration-ended outoftime, ended]
            limits → Timeout(task_limit: its agent never signalled that it is complete, after all 30m of its working time) [limits-set]
            retry → ready [retried]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 7200s
        "#]],
    );
    let spent = || {
        ran(
            "over budget",
            AgentExit::OverBudget { scope: BudgetScope::Task, what: "$2 of $1".to_owned() },
            [],
        )
    };
    let own = TaskLimitOverrides { micro_usd: Some(5_000_000), ..TaskLimitOverrides::default() };
    check_in(
        working(),
        [limits(own), spent(), granted()],
        expect![[r#"
        limits → work a1: running 1 [limits-set]
        over budget → ready for work [iteration-ended overbudget, yielded redirected]
        granted → work a2: preparing [entered] ! prepare a2
    "#]],
    );
    check_in(
        working(),
        [spent()],
        expect![[r#"
            over budget → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: $2 of $1) [iteration-ended overbudget, ended]
        "#]],
    );
}

/// The folder of the attempt before still stands then, for the next workspace to replace.
#[test]
fn an_accepted_task_gives_back_the_workspace_that_a_fresh_retry_discarded() {
    let task = check_in(
        working(),
        [says_blocked("no schema"), retry_fresh(), accepts("somebody else did it")],
        expect![[r#"
            BLOCKED → Blocked(agent_blocked: no schema) [iteration-ended blocked, ended]
            retry fresh → ready [retried afresh]
            accept → Done(person: you said that it is already done, because somebody else did it) [ended] ! tidy
        "#]],
    );
    assert_eq!(landfall_model::expected_task_effects(&task).len(), 1, "a new engine tidies as well");
    let task = check_in(
        working(),
        [stop(), is_killed(), cancel(), accepts("it is there")],
        expect![[r#"
        stop → work a1: running 1 (pausing) [stop-asked] ! kill a1
        killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
        cancel → Cancelled(person: no longer wanted) [ended]
        accept → Done(person: you said that it is already done, because it is there) [ended] ! tidy
    "#]],
    );
    assert_eq!(task.workspace.is_some(), task.has_any_workspace());
}

/// What ended it comes first, with the words of the agent that explain it.
#[test]
fn the_reason_of_a_failure_begins_with_its_cause() {
    let check_end = |last: Line, cause: &str| {
        let scene = Scene::new(loops()).limited(|limits| {
            limits.restarts_max = 0;
            limits.stalls_step_max = 0;
        });
        let mut scene = scene.play_all([granted(), workspace()]);
        scene.play(&last);
        let TaskState::Ended(ending) = &scene.task.state else { panic!("{cause}: it goes on") };
        assert_eq!(ending.detail, cause);
    };
    let says = |line, words: &'static str| {
        but("with last words", line, move |run| {
            run.evidence.last_words = format!("{words}\n\n");
            run.evidence.last_error = "warning: slow\npanic: index out of range\n".to_owned();
        })
    };
    check_end(
        says(crashes(), "reading"),
        "the agent crashed (exit code 1; its last error: \"panic: index out of range\")",
    );
    check_end(
        says(falls_silent(), "waiting for the database"),
        "the agent fell silent (its last words: \"waiting for the database\")",
    );
    check_end(
        says(hits_the_deadline(), "half of it is done"),
        "its agent never signalled that it is complete (its last words: \"half of it is done\"), \
         after all 30m of its working time",
    );
}
