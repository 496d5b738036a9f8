//! Reviews: when a person looks, what gives reason to, and what their word does.

use expect_test::expect;
use landfall_model::flake::Flakes;
use landfall_model::gate::CheckOutcome;
use landfall_model::review::{QUICK_ISSUES, RedoChoice, ReviewMode, format_complaint, review_reasons};
use landfall_model::sprint::ReviewDecision;
use landfall_model::{Event, ReviewInput, SignOff, Task, Timestamp};

use crate::flows_used::{loops, takes_back};
use crate::story::{
    Line, Scene, answers, cancel, check_in, checked_as, command, commit, concern, fails, granted,
    landing_begins, lands, passes, passes_with_concern, report, reported, retry, reviewed, says_complete,
    says_nothing, says_pending, verifying, workspace,
};

/// A task in the flow `loop` that is being verified under this mode.
fn in_mode(mode: ReviewMode) -> Scene {
    let scene = Scene::new(loops()).limited(|limits| limits.review.mode = mode);
    scene.play_all([granted(), workspace(), says_complete(), granted()])
}

fn approve() -> Line {
    reviewed(ReviewInput::Approve { note: "well done".to_owned() })
}

fn changes(redo: RedoChoice) -> Line {
    reviewed(ReviewInput::Changes { issues: vec!["tests".to_owned()], note: "see line 3".to_owned(), redo })
}

fn why(task: &Task, report: &landfall_model::gate::GateReport) -> Vec<String> {
    review_reasons(task, report).iter().map(ToString::to_string).collect()
}

// ── when ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn nobody_looks_unless_the_change_gives_reason_to() {
    check_in(
        in_mode(ReviewMode::Skip),
        [passes()],
        expect![[r#"
        checked: pass → ready for land [collected, verified, left pass]
    "#]],
    );
    check_in(
        in_mode(ReviewMode::Skip),
        [passes_with_concern()],
        expect![[r#"
        checked: pass, concern → review, then verify [collected, verified, review-wanted]
    "#]],
    );
}

#[test]
fn per_task_a_person_looks_before_every_landing() {
    let task = check_in(
        in_mode(ReviewMode::PerTask),
        [passes(), approve(), granted()],
        expect![[r#"
        checked: pass → review, then verify [collected, verified, review-wanted]
        review approve → ready for land [reviewed, left pass]
        granted → land a3: queued [entered]
    "#]],
    );
    assert_eq!(task.approved.map(|(_, note)| note).as_deref(), Some("well done"));
}

#[test]
fn red_is_not_for_a_persons_eyes() {
    check_in(
        in_mode(ReviewMode::PerTask),
        [fails()],
        expect![[r#"
        checked: fail → ready for work [collected, verified, left fail with feedback]
    "#]],
    );
}

#[test]
fn what_went_smoothly_is_approved_by_itself() {
    check_in(
        in_mode(ReviewMode::AutoApprove),
        [passes()],
        expect![[r#"
        checked: pass → ready for land [collected, verified, left pass]
    "#]],
    );
}

#[test]
fn what_did_not_go_smoothly_is_looked_at_and_says_why() {
    let scene = || {
        Scene::new(loops()).limited(|limits| {
            limits.review.mode = ReviewMode::AutoApprove;
            limits.review.iterations_max = 2;
        })
    };
    let one = || [granted(), workspace()];
    let smooth = scene().play_all(one()).play_all([says_nothing(), says_complete(), granted()]);
    let green = report(vec![command("tests", CheckOutcome::Pass)]);
    assert_eq!(why(&smooth.task, &green), Vec::<String>::new());

    let long = scene().play_all(one()).play_all([says_nothing(), says_nothing(), says_complete(), granted()]);
    let asked =
        scene().play_all(one()).play_all([says_pending("Which?"), answers("that"), granted(), workspace()]);
    let mut told = Vec::new();
    told.extend(why(&long.task, &green));
    told.extend(why(&asked.task, &green));
    told.extend(why(&smooth.task, &report(vec![command("tests", CheckOutcome::Flaky)])));
    told.extend(why(
        &smooth.task,
        &report(vec![command("tests", CheckOutcome::Pass), command("lint?", CheckOutcome::Fail)]),
    ));
    told.extend(why(&smooth.task, &report(Vec::new())));
    let all_of_it = why(&long.task, &report(Vec::new()));
    expect![[r#"
        is to be reviewed: it took 3 iterations, more than 2
        is to be reviewed: its agent was blocked or had a question on the way
        is to be reviewed: the check `tests` ended as flaky
        is to be reviewed: the check `lint` ended as fail
        is to be reviewed: nothing was verified"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(all_of_it.len(), 2, "each reason is said: {all_of_it:?}");
    check_in(
        long,
        [passes()],
        expect![[r#"
        checked: pass → review, then verify [collected, verified, review-wanted]
    "#]],
    );
}

#[test]
fn what_no_agent_made_needs_nobody() {
    let scene = Scene::new(takes_back())
        .with(Event::Offered { head: commit("revert") })
        .limited(|limits| limits.review.mode = ReviewMode::PerTask);
    let task = check_in(
        scene,
        [granted(), passes(), granted(), landing_begins(), lands()],
        expect![[r#"
        granted → verify a1: checking [bound, entered] ! check a1 of revert
        checked: pass → ready for land [collected, verified, left pass]
        granted → land a2: queued [entered]
        landing begins → land a2: landing [landing-began]
        landed → ready for report [landed, left landed]
    "#]],
    );
    assert_eq!(task.sign_off, SignOff::NotOwed);
}

#[test]
fn in_a_batch_they_look_after_it_landed_and_nothing_waits_for_it() {
    let task = check_in(
        in_mode(ReviewMode::Batch),
        [passes(), granted(), landing_begins(), lands(), granted(), reported(), approve()],
        expect![[r#"
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a3: queued [entered]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, review-owed, left landed]
            granted → report a4: reporting [entered] ! report a4
            reported → Done(landed) [reported, left done] ! tidy
            review approve → Done(landed) [signed approved]
        "#]],
    );
    assert_eq!(task.sign_off, SignOff::Given(ReviewDecision::Approved, "well done".to_owned()));
}

#[test]
fn landed_work_can_be_put_off_and_signed_later_in_any_way() {
    let landed = || {
        let scene = in_mode(ReviewMode::Batch).play_all([passes(), granted(), landing_begins(), lands()]);
        scene.play_all([granted(), reported()])
    };
    check_in(
        landed(),
        [
            reviewed(ReviewInput::Defer),
            reviewed(ReviewInput::Skip),
            reviewed(ReviewInput::Reject { note: "no".to_owned() }),
            changes(RedoChoice::Fresh),
        ],
        expect![[r#"
            review defer → Done(landed) [signed deferred]
            review skip → Done(landed) [signed skipped]
            review reject → Done(landed) [signed rejected]
            review changes → Done(landed) [signed redo]
        "#]],
    );
    let task = landed().play_all([changes(RedoChoice::Keep)]).task;
    assert!(
        matches!(task.sign_off, SignOff::Given(ReviewDecision::Redo, note) if note.ends_with("see line 3"))
    );
}

#[test]
fn nobody_signs_what_nobody_was_asked_about() {
    let scene = in_mode(ReviewMode::Skip).play_all([passes(), granted(), landing_begins(), lands()]);
    check_in(
        scene,
        [approve()],
        expect![[r#"
        review approve ✗ T1 is ready: it has landed and nobody was asked to look at it
    "#]],
    );
    check_in(
        verifying(),
        [approve()],
        expect![[r#"
        review approve ✗ T1 is active in `verify` (verifying): it does not wait for a review
    "#]],
    );
}

// ── what they say ────────────────────────────────────────────────────────────────────────────────────────

/// A task that waits for a review.
fn in_review() -> Scene {
    in_mode(ReviewMode::PerTask).play_all([passes()])
}

#[test]
fn changes_from_what_is_there_go_to_the_agent_with_the_words() {
    let task = check_in(
        in_review(),
        [changes(RedoChoice::Keep), granted(), workspace()],
        expect![[r#"
        review changes → ready for work [reviewed, left changes with feedback]
        granted → work a3: preparing [entered] ! prepare a3
        workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1789s
    "#]],
    );
    let feedback = task.feedback.last().expect("the agent hears it");
    expect![[r#"
        A reviewer wants changes
        - There are no tests for it, or they do not test what matters.
        see line 3"#]]
    .assert_eq(&format!("{}\n{}", feedback.about, feedback.text));
}

#[test]
fn changes_from_scratch_begin_in_a_new_workspace() {
    let task = check_in(
        in_review(),
        [changes(RedoChoice::Fresh), granted()],
        expect![[r#"
        review changes → ready [reviewed, ended, retried afresh]
        granted → work a3: preparing afresh [entered] ! prepare a3 afresh
    "#]],
    );
    assert_eq!((task.head, task.workspace, task.counters.iterations), (None, None, 0));
    assert!(task.feedback.last().is_some_and(|it| it.about == "A reviewer wants it done again"));
}

#[test]
fn changes_from_an_earlier_state_begin_there() {
    let mut scene = in_review().play_all([changes(RedoChoice::From(commit("early"))), granted()]);
    assert_eq!(scene.task.restart, Some(commit("early")), "whoever makes the workspace finds it here");
    let told = scene.play(&workspace());
    expect!["workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1800s"]
        .assert_eq(&told.unwrap_or_default());
    assert_eq!(scene.task.restart, None, "and only once");
}

#[test]
fn what_is_put_off_is_verified_again_and_asked_again() {
    check_in(
        in_review(),
        [reviewed(ReviewInput::Defer), granted(), retry(), granted(), passes(), approve()],
        expect![[r#"
            review defer → waits for pause, then verify [waited]
            granted ✗ T1 is waiting for pause: it cannot be started
            retry → ready for verify [resumed]
            granted → verify a3: checking [entered] ! check a3
            checked: pass → review, then verify [verified, review-wanted]
            review approve → ready for land [reviewed, left pass]
        "#]],
    );
}

#[test]
fn what_is_rejected_is_given_up_for_good() {
    check_in(
        in_review(),
        [reviewed(ReviewInput::Reject { note: "not wanted".to_owned() }), retry(), cancel(), granted()],
        expect![[r#"
            review reject → Cancelled(rejected: not wanted) [reviewed, ended]
            retry ✗ T1 is over (rejected): there is nothing to retry
            cancel ✗ T1 is over (rejected): it cannot be cancelled any more
            granted ✗ T1 is over (rejected): it cannot be started
        "#]],
    );
}

#[test]
fn a_skipped_review_lets_it_pass_and_says_so() {
    let task = check_in(
        in_review(),
        [reviewed(ReviewInput::Skip), granted()],
        expect![[r#"
        review skip → ready for land [reviewed, left pass]
        granted → land a3: queued [entered]
    "#]],
    );
    assert_eq!(task.approved.map(|(_, note)| note).as_deref(), Some("nobody looked: the review was skipped"));
}

#[test]
fn an_approval_is_of_this_work_and_not_of_what_comes_after() {
    let other = || {
        let mut other = report(vec![command("tests", CheckOutcome::Pass)]);
        (other.head, other.tree) = (commit("head2"), landfall_model::Tree::new("tree2"));
        checked_as("pass, other work", other, [])
    };
    let scene = in_review().play_all([approve(), granted(), crate::story::is_ejected()]);
    check_in(
        scene,
        [granted(), workspace(), says_complete(), granted(), other()],
        expect![[r#"
        granted → work a4: preparing [entered] ! prepare a4
        workspace → work a4: running 2 [workspace-made, iteration-began] ! spawn a4/2 for 1789s
        COMPLETE → ready for verify [iteration-ended complete, left done]
        granted → verify a5: checking [entered] ! check a5
        checked: pass, other work → review, then verify [collected, verified, review-wanted]
    "#]],
    );
}

#[test]
fn a_journal_cut_inside_a_review_never_loses_it() {
    for redo in [RedoChoice::Keep, RedoChoice::Fresh, RedoChoice::From(commit("early"))] {
        let told = in_review().play_all([changes(redo.clone())]);
        let from = in_review().journal.len();
        for events in from..=told.journal.len() {
            let mut scene = told.cut(events);
            let state = scene.task.state.name();
            let goes_on = ["review", "ready"].contains(&state.as_str()) || scene.task.is_over();
            assert!(goes_on, "{redo:?}, cut after {events}: {state}");
            assert_eq!(scene.task.landed, None);
            if state == "ready" {
                let told = scene.play(&granted()).unwrap_or_default();
                assert!(!told.contains("queued"), "{redo:?}, cut after {events}: {told}");
            }
        }
    }
}

// ── in words ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn complaints_that_have_a_name_are_spelled_out() {
    let issues = ["scope".to_owned(), "the button is red".to_owned()];
    expect![[r#"
        - It changes more than the task asks for.
        - the button is red
        and so on"#]]
    .assert_eq(&format_complaint(&issues, "  and so on \n"));
    assert_eq!(format_complaint(&[], " "), "");
    assert!(QUICK_ISSUES.iter().all(|(_, sentence)| sentence.ends_with('.')));
}

#[test]
fn a_concern_of_settings_reads_well() {
    let [asked] = &review_reasons(&in_mode(ReviewMode::PerTask).task, &report(Vec::new()))[..] else {
        panic!("one reason")
    };
    expect!["is to be reviewed: a person looks at every task; deletes a test file: tests/a.rs"]
        .assert_eq(&format!("{asked}; {}", concern()));
}

// ── flakes ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_ledger_counts_runs_and_flakes_and_forgets_what_did_not_run() {
    let mut flakes = Flakes::default();
    let seen = |tests, lint| report(vec![command("tests", tests), command("lint?", lint)]);
    flakes.note(Timestamp(1), &seen(CheckOutcome::Flaky, CheckOutcome::Pass));
    flakes.note(Timestamp(2), &seen(CheckOutcome::Fail, CheckOutcome::Flaky));
    flakes.note(Timestamp(3), &seen(CheckOutcome::Flaky, CheckOutcome::Pass));
    let mut reused = seen(CheckOutcome::Flaky, CheckOutcome::Flaky);
    reused.reused = true;
    flakes.note(Timestamp(4), &reused);
    let mut copied = seen(CheckOutcome::Pass, CheckOutcome::Pass);
    copied.commands.iter_mut().for_each(|command| command.copied_from_base = true);
    flakes.note(Timestamp(4), &copied);
    flakes.note(Timestamp(5), &report(vec![command("steady", CheckOutcome::Pass)]));
    let worst: Vec<_> =
        flakes.flakiest_checks().into_iter().map(|(name, it)| (name, it.flakes, it.runs, it.last)).collect();
    assert_eq!(worst, [("tests", 2, 3, Some(Timestamp(3))), ("lint", 1, 3, Some(Timestamp(2)))]);
}
