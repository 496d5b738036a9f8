//! Conflicts: who resolves them, and what happens when nobody does in time.

use expect_test::expect;
use landfall_model::conflict::{
    ConflictClass, ConflictTimeoutAction, ConflictingFile, FileConflictKind, classify_conflict,
};

use crate::flows_used::takes_back;
use crate::story::{
    Line, Scene, answers, cancel, check_in, clash, commit, conflicts, conflicts_badly, due, granted, passes,
    queued, retry, retry_fresh, says_complete, stop, verifying, workspace,
};

fn of(clashes: &[(FileConflictKind, u32)]) -> ConflictClass {
    classify_conflict(
        &clashes.iter().map(|(kind, lines)| clash("a", *kind, *lines)).collect::<Vec<ConflictingFile>>(),
    )
}

#[test]
fn few_lines_are_for_the_agent_and_anything_else_for_a_person() {
    assert_eq!(of(&[]), ConflictClass::Medium);
    assert_eq!(of(&[(FileConflictKind::Content, 19)]), ConflictClass::Medium);
    assert_eq!(of(&[(FileConflictKind::Content, 20)]), ConflictClass::Complex);
    assert_eq!(
        of(&[(FileConflictKind::Content, 10), (FileConflictKind::BothAdded, 9)]),
        ConflictClass::Medium
    );
    assert_eq!(
        of(&[(FileConflictKind::Content, 10), (FileConflictKind::BothAdded, 10)]),
        ConflictClass::Complex,
        "they add up"
    );
    assert_eq!(
        of(&[(FileConflictKind::Content, u32::MAX), (FileConflictKind::Content, 2)]),
        ConflictClass::Complex
    );
    for kind in FileConflictKind::ALL {
        let lines = matches!(kind, FileConflictKind::Content | FileConflictKind::BothAdded);
        let expected = if lines { ConflictClass::Medium } else { ConflictClass::Complex };
        assert_eq!(of(&[(FileConflictKind::Content, 1), (kind, 0)]), expected, "{kind:?}");
    }
}

#[test]
fn a_clash_says_what_it_is() {
    let told = [
        clash("a.rs", FileConflictKind::Content, 0),
        clash("a.rs", FileConflictKind::Content, 1),
        clash("a.rs", FileConflictKind::Content, 7),
        clash("a.rs", FileConflictKind::BothAdded, 7),
        clash("a.rs", FileConflictKind::Deleted, 0),
        clash("a.png", FileConflictKind::Binary, 0),
    ];
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    expect![
        "a.rs; a.rs (1 line); a.rs (7 lines); a.rs (both added); a.rs (changed and deleted); a.png (binary)"
    ]
    .assert_eq(&told.join("; "));
}

#[test]
fn a_hard_conflict_waits_for_a_person_who_resolves_it_and_it_is_verified_anew() {
    check_in(
        verifying(),
        [conflicts_badly(), stop(), granted(), answers("Resolved"), granted(), passes()],
        expect![[r#"
            hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then verify [collected, conflicted, yielded asked, waited]
            stop ✗ T1 is waiting for conflict: there is nothing to stop
            granted ✗ T1 is waiting for conflict: it cannot be started
            answer `Resolved` → ready for verify [resumed]
            granted → verify a3: checking [entered] ! check a3
            checked: pass → ready for land [verified, left pass]
        "#]],
    );
}

#[test]
fn a_hard_conflict_in_the_queue_is_resolved_before_it_stands_there_again() {
    check_in(
        queued(),
        [conflicts_badly(), answers("done"), granted(), passes()],
        expect![[r#"
        hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
        answer `done` → ready for land [resumed]
        granted → land a4: checking [entered] ! check a4
        checked: pass → land a5: queued [verified, entered]
    "#]],
    );
}

#[test]
fn a_person_may_say_how_and_the_agent_does_it() {
    let task = check_in(
        queued(),
        [conflicts_badly(), answers("keep our logo"), granted(), workspace()],
        expect![[r#"
            hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
            answer `keep our logo` → ready for work [left conflict with feedback]
            granted → work a4: preparing [entered] ! prepare a4
            workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
        "#]],
    );
    let told = &task.feedback.last().expect("the agent hears it").text;
    assert!(
        told.contains("logo.png (binary)") && told.contains("A person says how: keep our logo"),
        "{told}"
    );
    assert!(told.contains("git merge newbase"), "{told}");
}

#[test]
fn a_person_may_take_it_up_begin_it_anew_or_give_it_up() {
    check_in(
        queued(),
        [conflicts_badly(), retry(), granted()],
        expect![[r#"
        hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
        retry → ready for land [resumed]
        granted → land a4: checking [entered] ! check a4
    "#]],
    );
    check_in(
        queued(),
        [conflicts_badly(), retry_fresh(), granted()],
        expect![[r#"
        hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
        retry fresh → ready [ended, retried afresh]
        granted → work a4: preparing afresh [entered] ! prepare a4 afresh
    "#]],
    );
    check_in(
        queued(),
        [conflicts_badly(), cancel()],
        expect![[r#"
        hard conflict → waits for a person, because of logo.png (binary) on newbase, +3600000ms or defer, then land [conflicted, yielded asked, waited]
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
}

/// A task that waits for a person because of a conflict, and what happens when they are late.
fn overdue(overdue: ConflictTimeoutAction) -> Scene {
    let scene = Scene::new(crate::flows_used::loops()).limited(|limits| {
        limits.overdue = overdue;
        limits.conflict_ms = 5_000;
    });
    scene.play_all([granted(), workspace(), says_complete(), granted(), conflicts_badly()])
}

#[test]
fn nothing_happens_before_its_time() {
    check_in(
        overdue(ConflictTimeoutAction::Defer),
        [Line::Wait(4_999), due()],
        expect![[r#"
        due ✗ T1 is waiting for conflict: no wait is over
    "#]],
    );
}

#[test]
fn late_it_is_deferred() {
    check_in(
        overdue(ConflictTimeoutAction::Defer),
        [Line::Wait(5_000), due(), retry(), granted()],
        expect![[r#"
        due → Blocked(conflict_limit: it conflicts with the base in logo.png (binary) and nobody resolved it in time) [ended]
        retry → ready [retried]
        granted → work a3: preparing [entered] ! prepare a3
    "#]],
    );
}

#[test]
fn late_it_is_given_up() {
    check_in(
        overdue(ConflictTimeoutAction::Skip),
        [Line::Wait(5_000), due(), retry()],
        expect![[r#"
        due → Cancelled(conflict_limit: it conflicts with the base in logo.png (binary) and nobody resolved it in time) [ended]
        retry ✗ T1 is over (conflict_limit): there is nothing to retry
    "#]],
    );
}

#[test]
fn late_the_agent_tries_it() {
    let task = check_in(
        overdue(ConflictTimeoutAction::Retry),
        [Line::Wait(5_000), due(), granted(), workspace()],
        expect![[r#"
        due → ready for work [left fail with feedback]
        granted → work a3: preparing [entered] ! prepare a3
        workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1799s
    "#]],
    );
    let told = &task.feedback.last().expect("the agent hears it").text;
    assert!(told.contains("git merge newbase") && told.contains("logo.png"), "{told}");
}

#[test]
fn late_they_are_told_again_and_it_waits_once_more() {
    check_in(
        overdue(ConflictTimeoutAction::Notify),
        [Line::Wait(5_000), due(), due(), Line::Wait(5_000), due(), answers("ok"), granted()],
        expect![[r#"
            due → waits for a person, because of logo.png (binary) on newbase, +5000ms or notify, then verify [waited]
            due ✗ T1 is waiting for conflict: no wait is over
            due → waits for a person, because of logo.png (binary) on newbase, +5000ms or notify, then verify [waited]
            answer `ok` → ready for verify [resumed]
            granted → verify a3: checking [entered] ! check a3
        "#]],
    );
}

#[test]
fn without_an_agent_the_flow_says_what_happens() {
    let scene = Scene::new(takes_back()).with(landfall_model::Event::Offered { head: commit("revert") });
    check_in(
        scene,
        [granted(), conflicts_badly()],
        expect![[r#"
        granted → verify a1: checking [bound, entered] ! check a1 of revert
        hard conflict → Blocked(flow_stop: step `verify` ended with `fail`) [collected, conflicted, left fail with feedback]
    "#]],
    );
}

#[test]
fn an_easy_conflict_in_the_queue_takes_the_edge_for_conflicts() {
    let task = check_in(
        queued(),
        [conflicts(), granted()],
        expect![[r#"
        conflict → ready for work [conflicted, left conflict with feedback]
        granted → work a4: preparing [entered] ! prepare a4
    "#]],
    );
    assert_eq!(task.counters.conflicts, 1);
    assert_eq!(task.gate, None, "what was verified before is no candidate any more");
}

#[test]
fn every_action_has_its_word_and_its_sentence() {
    let words: std::collections::BTreeSet<_> =
        ConflictTimeoutAction::ALL.iter().map(|it| (it.word(), it.to_sentence())).collect();
    assert_eq!(words.len(), ConflictTimeoutAction::ALL.len());
    let kinds: std::collections::BTreeSet<_> =
        FileConflictKind::ALL.iter().map(|kind| kind.label()).collect();
    assert_eq!(kinds.len(), FileConflictKind::ALL.len());
}
