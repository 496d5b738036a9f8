//! Every place a task can be, times all news: what is taken and what is refused.

use std::fmt::Write as _;

use expect_test::expect;
use landfall_model::ReviewInput;
use landfall_model::gate::CheckOutcome;
use landfall_model::review::ReviewMode;

use crate::flows_used::{asks, loops};
use crate::story::{
    Line, Scene, answers, base_advances, base_moved, cancel, changed_nothing, checked, checking_to_land,
    conflicts, conflicts_badly, crashes, does_not_match, due, edit, granted, hits_quota, hits_the_deadline,
    interrupt, is_ejected, is_refused, is_unsure, landing, landing_begins, lands, machine_fails, passes,
    passes_with_concern, queued, reported, reporting, retry, reviewed, route_opens, says_blocked,
    says_complete, says_nothing, says_pending, stop, verifying, working, workspace, workspace_removed,
};

/// A name and how to get there.
fn places() -> Vec<(&'static str, Scene)> {
    let new = || Scene::new(loops());
    vec![
        ("draft", new().play_all([edit(|spec| spec.draft = true)])),
        ("ready, new", new()),
        ("ready for verify", working().play_all([says_complete()])),
        ("ready for land", verifying().play_all([passes()])),
        ("ready for report", landing().play_all([lands()])),
        ("preparing", new().play_all([granted()])),
        ("running", working()),
        ("running, pausing", working().play_all([stop()])),
        ("running, interrupted", working().play_all([interrupt()])),
        ("running, cancelling", working().play_all([cancel()])),
        ("checking", verifying()),
        ("checking, pausing", verifying().play_all([stop()])),
        ("checking, cancelling", verifying().play_all([cancel()])),
        ("checking on landing", checking_to_land()),
        ("queued", queued()),
        ("queued, unsure", landing().play_all([is_unsure()])),
        ("landing", landing()),
        ("reporting", reporting()),
        ("waits: quota", working().play_all([hits_quota(Some(9_000_000))])),
        ("waits: login", working().play_all([is_refused()])),
        ("waits: backoff", working().play_all([crashes()])),
        ("waits: question", working().play_all([says_pending("Which port?")])),
        ("waits: ask step", Scene::new(asks()).play_all([granted(), workspace(), says_nothing(), granted()])),
        ("waits: pause", working().play_all([says_complete(), stop()])),
        ("waits: conflict", verifying().play_all([conflicts_badly()])),
        ("waits: gate", verifying().play_all([checked(CheckOutcome::Broken)])),
        ("review", verifying().play_all([passes_with_concern()])),
        ("landed, to be looked at", landed_in_batch_review()),
        ("done", reporting().play_all([reported()])),
        ("failed", new().play_all([granted(), machine_fails(true)])),
        ("failed, landed", reporting().play_all([machine_fails(true)])),
        ("timeout", working().play_all([hits_the_deadline()])),
        ("blocked", working().play_all([says_blocked("no access")])),
        ("cancelled", new().play_all([cancel()])),
    ]
}

fn landed_in_batch_review() -> Scene {
    let scene = Scene::new(loops()).limited(|limits| limits.review.mode = ReviewMode::Batch);
    let scene = scene.play_all([granted(), workspace(), says_complete(), granted(), passes(), granted()]);
    scene.play_all([landing_begins(), lands(), granted(), reported()])
}

fn all_news() -> Vec<(&'static str, Line)> {
    vec![
        ("edit", edit(|spec| spec.priority = 1)),
        ("grant", granted()),
        ("workspace", workspace()),
        ("machine", machine_fails(false)),
        ("ended", says_complete()),
        ("checked", passes()),
        ("conflict", conflicts()),
        ("nothing", changed_nothing()),
        ("began", landing_begins()),
        ("ejected", is_ejected()),
        ("unsure", is_unsure()),
        ("landed", lands()),
        ("moved", base_moved()),
        ("mismatch", does_not_match()),
        ("reported", reported()),
        ("due", due()),
        ("advanced", base_advances()),
        ("opened", route_opens()),
        ("answer", answers("yes")),
        ("review", reviewed(ReviewInput::Approve { note: String::new() })),
        ("stop", stop()),
        ("interrupt", interrupt()),
        ("cancel", cancel()),
        ("retry", retry()),
        ("removed", workspace_removed()),
    ]
}

#[test]
fn what_is_taken_and_what_is_refused_is_settled_for_every_place_and_all_news() {
    let mut table = String::new();
    for (place, scene) in places() {
        let mut taken = Vec::new();
        for (name, news) in all_news() {
            let mut scene = scene.cut(scene.journal.len());
            let told = scene.play(&news).expect("news is told");
            if !told.contains('✗') {
                taken.push(name);
            }
        }
        writeln!(table, "{place}: {}", taken.join(", ")).expect("a string takes it");
    }
    expect![[r#"
        draft: edit, cancel
        ready, new: edit, grant, cancel
        ready for verify: edit, grant, stop, cancel
        ready for land: edit, grant, stop, cancel
        ready for report: edit, grant, stop
        preparing: edit, workspace, machine, stop, cancel
        running: edit, machine, ended, stop, interrupt, cancel
        running, pausing: edit, machine, ended, cancel
        running, interrupted: edit, machine, ended, stop, cancel
        running, cancelling: edit, machine, ended
        checking: edit, machine, checked, conflict, nothing, stop, cancel
        checking, pausing: edit, machine, checked, conflict, nothing, cancel
        checking, cancelling: edit, machine, checked, conflict, nothing
        checking on landing: edit, machine, checked, conflict, nothing, stop, cancel
        queued: edit, machine, conflict, nothing, began, ejected, landed, stop, cancel
        queued, unsure: edit, machine, conflict, nothing, began, ejected, landed, stop
        landing: edit, machine, unsure, landed, moved, mismatch
        reporting: edit, machine, reported
        waits: quota: edit, opened, stop, cancel, retry
        waits: login: edit, opened, answer, stop, cancel, retry
        waits: backoff: edit, stop, cancel, retry
        waits: question: edit, answer, cancel
        waits: ask step: edit, answer, cancel
        waits: pause: edit, cancel, retry
        waits: conflict: edit, answer, cancel, retry
        waits: gate: edit, advanced, stop, cancel, retry
        review: edit, answer, review, cancel
        landed, to be looked at: review, removed
        done: removed
        failed: edit, cancel, retry, removed
        failed, landed: edit, retry, removed
        timeout: edit, cancel, retry, removed
        blocked: edit, cancel, retry, removed
        cancelled: removed
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_refusal_says_where_the_task_is_and_what_cannot_be() {
    for (place, scene) in places() {
        for (name, news) in all_news() {
            let mut scene = scene.cut(scene.journal.len());
            let told = scene.play(&news).expect("news is told");
            let Some((_, refusal)) = told.split_once(" ✗ ") else { continue };
            assert!(refusal.starts_with("T1 is "), "{place}, {name}: {refusal}");
            assert!(refusal.contains(": ") && !refusal.contains(['{', '\n']), "{place}, {name}: {refusal}");
        }
    }
}

#[test]
fn an_end_absorbs_all_news_but_a_persons() {
    for (place, scene) in places() {
        if !scene.task.is_over() {
            continue;
        }
        for (name, news) in all_news() {
            let mut scene = scene.cut(scene.journal.len());
            scene.play(&news);
            let persons = ["edit", "cancel", "retry"].contains(&name);
            assert!(persons || scene.task.is_over(), "{place} was left by {name}");
        }
    }
}
