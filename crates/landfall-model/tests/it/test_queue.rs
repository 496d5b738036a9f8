//! Stories of the landing queue: who lands together, and who is sent back.

use expect_test::expect;
use landfall_model::conflict::{ConflictingFile, FileConflictKind};
use landfall_model::gate::CheckOutcome;
use landfall_model::queue::{BatchEnd, BatchExclusion, BatchMember, BatchPrefix, HoldReason, Queue};
use landfall_model::{
    Attempt, AttemptStart, BatchId, Commit, ConcernCode, News, QueueEffect, QueueEvent, QueueNews, TaskId,
    TaskState, Timestamp, Tree,
};

use crate::stage::{Stage, has_left_the_line};
use crate::story::{command, report};

/// So many in line, one batch for all of them, nothing verified ahead.
fn line(tasks: u32) -> Stage {
    Stage::new().with(tasks).policy(|policy| {
        policy.batch_max = 8;
        policy.speculate = 0;
    })
}

fn green(_: &[Commit]) -> bool {
    false
}

/// Whether one of these is among the heads.
fn holds(heads: &[Commit], task: u32) -> bool {
    heads.iter().any(|head| head.as_str() == format!("h{task}"))
}

#[test]
fn c26_the_line_is_in_the_order_of_the_facts_whatever_the_clock_says() {
    let mut stage = line(0);
    stage.stand(2);
    stage.at = Timestamp(5); // somebody sets the clock back
    stage.stand(1);
    assert_eq!(stage.queue.line().collect::<Vec<_>>(), [TaskId(2), TaskId(1)]);
}

// ── green ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn one_lands_alone_with_a_pass_that_was_taken_over() {
    let mut stage = line(1);
    stage.look();
    stage.built(1);
    stage.reused(1);
    stage.lands(1);
    stage.look();
    stage.tells(expect![[r#"
        look → B1 of T1 ! build B1
        B1 merged → B1 is T1 on root, checking B1/1 ! check B1/1
        B1/1 pass, reused → T1 landing-began, B1/1 is pass, landing B1/1 ! land B1 (T1)
        B1 landed → T1 landed, B1 over, 1 landed as B1:root+h1
        look → nothing
    "#]]);
    assert_eq!(stage.checks, 0);
    assert!(!stage.queue.is_busy());
}

#[test]
fn four_that_wait_land_as_one() {
    let mut stage = line(4);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 T3 T4 ! build B1
        B1 merged → B1 is T1 T2 T3 T4 on root, checking B1/4 ! check B1/4
        B1/4 pass → T1 landing-began, T2 landing-began, T3 landing-began, T4 landing-began, B1/4 is pass, landing B1/4 ! land B1 (T1 T2 T3 T4)
        B1 landed → T1 landed, T2 landed, T3 landed, T4 landed, B1 over, 4 landed as B1:root+h1+h2+h3+h4
    "#]]);
    assert_eq!(stage.checks, 1);
    for task in stage.tasks.values() {
        let landed = task.landed.as_ref().expect("all landed");
        assert_eq!((landed.commit.as_str(), landed.base_before.as_str()), ("B1:root+h1+h2+h3+h4", "root"));
        assert_eq!(landed.tree.as_str(), "root+h1+h2+h3+h4");
        let gate = task.gate.as_ref().expect("what landed was verified");
        assert_eq!(
            (gate.tree.as_str(), gate.head.as_str()),
            (landed.tree.as_str(), format!("h{}", task.id.0).as_str())
        );
    }
}

#[test]
fn a_batch_is_no_larger_than_settings_say_and_the_urgent_go_first() {
    let mut stage = Stage::new().policy(|policy| (policy.batch_max, policy.speculate) = (3, 0));
    for (id, priority) in [(1, 5), (2, 5), (3, 0), (4, 9), (5, 5)] {
        stage.stand_as(id, priority);
    }
    stage.look();
    stage.tells(expect![[r#"
        look → B1 of T3 T1 T2 ! build B1
    "#]]);
    stage.run(&green);
    assert_eq!(stage.landed(), [3, 1, 2, 5, 4]);
}

#[test]
fn c26_who_needs_another_is_not_taken_before_that_one_landed() {
    let mut stage = line(3);
    stage.unmet.insert(TaskId(2));
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 3]);
    stage.unmet.clear();
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 3, 2]);
}

#[test]
fn flaky_is_green() {
    let mut stage = line(2);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Flaky);
    stage.lands(1);
    assert_eq!(stage.landed(), [1, 2]);
}

// ── red ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_culprit_of_a_red_batch_is_found_by_halves() {
    let mut stage = line(5);
    stage.run(&|heads| holds(heads, 3));
    stage.tells(expect![[r#"
        look → B1 of T1 T2 T3 T4 T5 ! build B1
        B1 merged → B1 is T1 T2 T3 T4 T5 on root, checking B1/5 ! check B1/5
        B1/5 fail → B1/5 is fail, checking B1/2 ! check B1/2
        B1/2 pass → B1/2 is pass, checking B1/3 ! check B1/3
        B1/3 fail → T1 landing-began, T2 landing-began, B1/3 is fail, landing B1/2 ! land B1 (T1 T2)
        B1 landed → T1 landed, T2 landed, T3 ejected, B1 over, 2 landed as B1:root+h1+h2, B2 of T4 T5 ! build B2
        B2 merged → B2 is T4 T5 on B1:root+h1+h2, checking B2/2 ! check B2/2
        B2/2 pass → T4 landing-began, T5 landing-began, B2/2 is pass, landing B2/2 ! land B2 (T4 T5)
        B2 landed → T4 landed, T5 landed, B2 over, 2 landed as B2:B1:root+h1+h2+h4+h5
        look → nothing
    "#]]);
}

#[test]
fn wherever_the_culprit_stands_it_alone_is_sent_back() {
    let mut told = String::new();
    for bad in 1..=5 {
        let mut stage = line(5);
        stage.run(&|heads| holds(heads, bad));
        let innocents: Vec<u32> = (1..=5).filter(|task| *task != bad).collect();
        assert_eq!((stage.landed(), stage.ejected()), (innocents, vec![bad]));
        // Five in a row: one look at all, three halves at most, and one at those who stood behind the culprit.
        let search = stage.queue.past_batches().next().expect("the first batch").0.looks.len();
        assert!(search <= 4, "{search} looks for the culprit {bad}");
        let culprit = &stage.tasks[&TaskId(bad)];
        let feedback = culprit.feedback.last().expect("it hears why");
        assert!(feedback.text.contains("`run tests` (tests): exit code 1"), "{}", feedback.text);
        assert_eq!(landfall_model::TaskStatus::for_task(culprit), landfall_model::TaskStatus::Ready);
        told.push_str(&format!("culprit {bad}: {search} looks to find it, {} in all\n", stage.checks));
    }
    expect![[r#"
        culprit 1: 3 looks to find it, 4 in all
        culprit 2: 3 looks to find it, 4 in all
        culprit 3: 3 looks to find it, 4 in all
        culprit 4: 4 looks to find it, 5 in all
        culprit 5: 4 looks to find it, 4 in all
    "#]]
    .assert_eq(&told);
}

#[test]
fn two_that_do_not_go_together_cost_the_later_one_its_place() {
    let mut stage = line(5);
    stage.run(&|heads| holds(heads, 2) && holds(heads, 4));
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 2, 3, 5], vec![4]));
    let feedback = stage.tasks[&TaskId(4)].feedback.last().expect("it hears why");
    expect![[r#"
        Verification failed together with what landed meanwhile (base B1:root+h1)
        `run tests` (tests): exit code 1
        tests said so
        Run `git merge B1:root+h1+h2+h3` in your workspace to work on top of it.
    "#]]
    .assert_eq(&format!("{}\n{}", feedback.about, feedback.text));
}

#[test]
fn several_culprits_are_found_one_after_the_other() {
    let mut stage = line(8);
    stage.run(&|heads| [1, 4, 5, 8].iter().any(|bad| holds(heads, *bad)));
    assert_eq!((stage.landed(), stage.ejected()), (vec![2, 3, 6, 7], vec![1, 4, 5, 8]));
}

#[test]
fn a_batch_of_one_is_not_searched() {
    let mut stage = line(1);
    stage.run(&|_| true);
    stage.tells(expect![[r#"
        look → B1 of T1 ! build B1
        B1 merged → B1 is T1 on root, checking B1/1 ! check B1/1
        B1/1 fail → T1 ejected, B1/1 is fail, B1 over: T1 made it red
        look → nothing
    "#]]);
    assert_eq!(stage.checks, 1);
}

#[test]
fn a_timeout_is_red() {
    let mut stage = line(1);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Timeout);
    assert_eq!(stage.ejected(), [1]);
}

// ── merging ──────────────────────────────────────────────────────────────────────────────────────────────

fn clash() -> BatchExclusion {
    BatchExclusion::Conflict(vec![ConflictingFile {
        path: "a.txt".to_owned(),
        kind: FileConflictKind::Content,
        lines: 2,
    }])
}

#[test]
fn who_cannot_be_merged_is_left_out_and_the_others_land() {
    let mut stage = line(4);
    stage.look();
    stage.built_without(1, vec![(2, clash()), (3, BatchExclusion::NothingChanged)]);
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 T3 T4 ! build B1
        B1 merged → T2 conflicted, T3 yielded, B1 is T1 T4 on root, checking B1/2 ! check B1/2
        B1/2 pass → T1 landing-began, T4 landing-began, B1/2 is pass, landing B1/2 ! land B1 (T1 T4)
        B1 landed → T1 landed, T4 landed, B1 over, 2 landed as B1:root+h1+h4
    "#]]);
}

#[test]
fn a_batch_of_nobody_is_over() {
    let mut stage = line(1);
    stage.look();
    stage.built_without(1, vec![(1, clash())]);
    stage.tells(expect![[r#"
        look → B1 of T1 ! build B1
        B1 merged → T1 conflicted, B1 is  on root, B1 over: nobody in it could be merged
    "#]]);
}

#[test]
fn who_does_not_fit_to_those_before_it_waits_for_them() {
    let mut stage = line(2);
    stage.policy.speculate = 1;
    stage.look();
    stage.built_without(1, vec![(2, BatchExclusion::Crowded)]);
    stage.look();
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 ! build B1
        B1 merged → B1 is T1 on root, T2 crowded out, checking B1/1 ! check B1/1
        look → nothing
        B1/1 pass → T1 landing-began, B1/1 is pass, landing B1/1 ! land B1 (T1)
        B1 landed → T1 landed, B1 over, 1 landed as B1:root+h1, B2 of T2 ! build B2
    "#]]);
}

#[test]
fn a_merge_that_does_not_tell_of_each_member_is_a_trouble_of_the_machine() {
    let mut stage = line(2);
    stage.look();
    let base = stage.base.clone();
    let news = QueueNews::Built {
        batch: BatchId(1),
        base,
        prefixes: Vec::new(),
        left_out: Vec::new(),
        resolved: Vec::new(),
    };
    stage.hear("half a merge", &news);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 ! build B1
        half a merge → B1 over: the merge of the batch does not tell of each member, held (machine) until 3002: the merge of the batch does not tell of each member ! abandon B1
    "#]]);
}

// ── one on top of the other ──────────────────────────────────────────────────────────────────────────────

/// Two batches of two, the second on top of the first, both merged and being verified.
fn two_batches() -> Stage {
    let mut stage = Stage::new().with(4).policy(|policy| (policy.batch_max, policy.speculate) = (2, 1));
    stage.look();
    stage.built(1);
    stage.built(2);
    stage
}

#[test]
fn the_next_batch_is_verified_on_top_and_lands_without_another_look() {
    let mut stage = two_batches();
    stage.checked(2, CheckOutcome::Pass);
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.lands(2);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 ! build B1
        B1 merged → B1 is T1 T2 on root, checking B1/2, B2 of T3 T4 on B1 ! check B1/2 ! build B2 on B1:root+h1+h2
        B2 merged → B2 is T3 T4 on B1:root+h1+h2, checking B2/2 ! check B2/2
        B2/2 pass → B2/2 is pass
        B1/2 pass → T1 landing-began, T2 landing-began, B1/2 is pass, landing B1/2 ! land B1 (T1 T2)
        B1 landed → T1 landed, T2 landed, T3 landing-began, T4 landing-began, B1 over, 2 landed as B1:root+h1+h2, landing B2/2 ! land B2 (T3 T4)
        B2 landed → T3 landed, T4 landed, B2 over, 2 landed as B2:B1:root+h1+h2+h3+h4
    "#]]);
    assert_eq!((stage.checks, stage.landed()), (2, vec![1, 2, 3, 4]));
    assert_eq!(stage.history[1].0.as_str(), "B2:B1:root+h1+h2+h3+h4");
}

#[test]
fn when_the_first_is_red_the_second_is_dropped_and_its_check_abandoned() {
    let mut stage = two_batches();
    stage.forget();
    stage.checked(1, CheckOutcome::Fail);
    stage.tells(expect![[r#"
        B1/2 fail → B1/2 is fail, B2 over: it stood on a batch that was red, checking B1/1 ! abandon B2 ! check B1/1
    "#]]);
    stage.run(&|heads| holds(heads, 2));
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 3, 4], vec![2]));
}

#[test]
fn a_second_that_is_red_is_searched_only_when_the_first_has_landed() {
    let mut stage = two_batches();
    stage.forget();
    stage.checked(2, CheckOutcome::Fail);
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.checked(2, CheckOutcome::Pass);
    stage.lands(2);
    stage.tells(expect![[r#"
        B2/2 fail → B2/2 is fail
        B1/2 pass → T1 landing-began, T2 landing-began, B1/2 is pass, landing B1/2 ! land B1 (T1 T2)
        B1 landed → T1 landed, T2 landed, B1 over, 2 landed as B1:root+h1+h2, checking B2/1 ! check B2/1
        B2/1 pass → T3 landing-began, B2/1 is pass, landing B2/1 ! land B2 (T3)
        B2 landed → T3 landed, T4 ejected, B2 over, 1 landed as B2:B1:root+h1+h2+h3
    "#]]);
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 2, 3], vec![4]));
}

#[test]
fn a_conflict_on_top_of_what_may_never_land_is_seen_again_on_the_base() {
    let mut stage = Stage::new().with(3).policy(|policy| (policy.batch_max, policy.speculate) = (2, 1));
    stage.look();
    stage.built(1);
    stage.built_without(2, vec![(3, clash())]);
    stage.look();
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.built_without(3, vec![(3, clash())]);
    stage.tells(expect![[r#"
        look → B1 of T1 T2 ! build B1
        B1 merged → B1 is T1 T2 on root, checking B1/2, B2 of T3 on B1 ! check B1/2 ! build B2 on B1:root+h1+h2
        B2 merged → B2 is  on B1:root+h1+h2, T3 crowded out, B2 over: nobody in it could be merged
        look → nothing
        B1/2 pass → T1 landing-began, T2 landing-began, B1/2 is pass, landing B1/2 ! land B1 (T1 T2)
        B1 landed → T1 landed, T2 landed, B1 over, 2 landed as B1:root+h1+h2, B3 of T3 ! build B3
        B3 merged → T3 conflicted, B3 is  on B1:root+h1+h2, B3 over: nobody in it could be merged
    "#]]);
}

#[test]
fn a_gate_that_breaks_on_top_is_not_tried_there_again() {
    let mut stage = two_batches();
    stage.forget();
    stage.checked(2, CheckOutcome::Broken);
    stage.look();
    stage.tells(expect![[r#"
        B2/2 broken → B2/2 is broken, B2 over: the check `tests` cannot be trusted: `run tests` was not found (exit code 127)
        look → nothing
    "#]]);
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 2, 3, 4]);
}

#[test]
fn no_more_is_verified_ahead_than_settings_say() {
    let mut stage = Stage::new().with(6).policy(|policy| (policy.batch_max, policy.speculate) = (1, 2));
    stage.look();
    (1..=3).for_each(|batch| stage.built(batch));
    let on: Vec<_> = stage.queue.batches().iter().map(|batch| batch.on.map(|on| on.0)).collect();
    assert_eq!(on, [None, Some(1), Some(2)]);
    stage.run(&|heads| holds(heads, 2));
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 3, 4, 5, 6], vec![2]));
}

// ── the base ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_push_while_it_is_verified_wins_and_the_batch_is_made_again() {
    let mut stage = two_batches();
    stage.forget();
    stage.push("human");
    stage.tells(expect![[r#"
        push human → B2 over: it stood on a batch that did not land, B1 over: the base moved to human, B3 of T1 T2 ! abandon B2 ! abandon B1 ! build B3
    "#]]);
    stage.run(&green);
    assert_eq!(stage.history[1].0.as_str(), "B3:human+h1+h2");
    assert_eq!(stage.landed(), [1, 2, 3, 4]);
}

#[test]
fn a_push_while_it_lands_is_found_out_by_the_landing() {
    let mut stage = line(2);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Pass);
    stage.forget();
    stage.push("human");
    stage.lands(1);
    stage.look();
    stage.tells(expect![[r#"
        push human → nothing
        B1 base was moved → T1 requeued, T2 requeued, B1 over: the base moved to human
        look → B2 of T1 T2 ! build B2
    "#]]);
    assert!(
        stage.tasks.values().all(|task| task.landing.is_none()),
        "the base does not hold it, and they know"
    );
}

#[test]
fn a_base_that_is_where_it_was_changes_nothing() {
    let mut stage = two_batches();
    stage.forget();
    stage.push("root");
    stage.tells(expect![[r#"
        push root → nothing
    "#]]);
}

#[test]
fn a_landing_that_does_not_look_right_ends_its_members_and_nobody_else() {
    let mut stage = Stage::new().with(3).policy(|policy| (policy.batch_max, policy.speculate) = (2, 1));
    stage.look();
    stage.built(1);
    stage.built(2);
    stage.checked(1, CheckOutcome::Pass);
    stage.forget();
    stage.orders.clear();
    stage.hear("mismatch", &QueueNews::LandMismatch { batch: BatchId(1), detail: "another tree".to_owned() });
    stage.tells(expect![[r#"
        mismatch → T1 ended, T2 ended, B2 over: it stood on a batch that did not land, B1 over: another tree, B3 of T3 ! abandon B2 ! build B3
    "#]]);
}

// ── holds ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_broken_gate_holds_the_queue_and_a_new_base_releases_it() {
    for outcome in [CheckOutcome::Broken, CheckOutcome::PreExisting] {
        let mut stage = line(2);
        stage.look();
        stage.built(1);
        stage.checked(1, outcome);
        assert!(stage.ejected().is_empty(), "a gate that says nothing says nothing about them");
        assert_eq!(stage.queue.hold().map(|hold| hold.why), Some(HoldReason::Gate));
        stage.look();
        assert!(stage.orders.is_empty() && !stage.queue.is_busy());
        stage.push("mended");
        assert_eq!(stage.queue.hold(), None);
        stage.run(&green);
        assert_eq!(stage.landed(), [1, 2]);
    }
    let mut stage = line(1);
    stage.look();
    stage.built(1);
    stage.forget();
    stage.checked(1, CheckOutcome::Broken);
    stage.push("mended");
    stage.tells(expect![[r#"
        B1/1 broken → B1/1 is broken, B1 over: the check `tests` cannot be trusted: `run tests` was not found (exit code 127), held (gate) until 16001: the check `tests` cannot be trusted: `run tests` was not found (exit code 127)
        push mended → resumed, B2 of T1 ! build B2
    "#]]);
}

#[test]
fn many_looks_without_a_landing_pause_the_queue_once_with_a_reason() {
    let mut stage = line(0).policy(|policy| (policy.batch_max, policy.runaway) = (1, 3));
    (1..=9).for_each(|id| stage.stand(id));
    stage.run(&|_| true);
    assert_eq!((stage.checks, stage.ejected()), (3, vec![1, 2, 3]));
    let hold = stage.queue.hold().expect("it is paused");
    expect!["runaway: 3 verifications in a row and nothing landed; look at what they say before it goes on"]
        .assert_eq(&format!("{}: {}", hold.why.word(), hold.reason));
    let held = |stage: &Stage| {
        let held = stage.journal.iter().filter(|entry| format!("{:?}", entry.fact).contains("Held"));
        held.count()
    };
    stage.look();
    stage.push("human");
    assert_eq!(held(&stage), 1, "it is said once, and a push does not let it run on");
    stage.resume();
    stage.run(&green);
    assert_eq!(stage.landed(), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_search_that_has_begun_is_finished_before_the_queue_pauses() {
    let mut stage = line(4).policy(|policy| policy.runaway = 1);
    stage.run(&|heads| holds(heads, 1));
    assert_eq!(stage.ejected(), [1], "given up half-way, the same search would begin anew for ever");
    assert_eq!(stage.queue.hold().map(|hold| hold.why), Some(HoldReason::Runaway));
}

#[test]
fn green_lands_even_when_it_took_many_looks() {
    let mut stage = line(4).policy(|policy| policy.runaway = 2);
    stage.run(&|heads| holds(heads, 4));
    assert_eq!((stage.landed(), stage.ejected(), stage.queue.hold()), (vec![1, 2, 3], vec![4], None));
}

#[test]
fn a_persons_pause_finishes_what_is_green_and_takes_nobody() {
    let mut stage = two_batches();
    stage.stand(5);
    stage.forget();
    stage.hold(HoldReason::Person, "let me look");
    stage.checked(1, CheckOutcome::Pass);
    stage.lands(1);
    stage.look();
    stage.tells(expect![[r#"
        hold → held (person): let me look
        B1/2 pass → T1 landing-began, T2 landing-began, B1/2 is pass, landing B1/2 ! land B1 (T1 T2)
        B1 landed → T1 landed, T2 landed, B1 over, 2 landed as B1:root+h1+h2
        look → nothing
    "#]]);
    stage.checked(2, CheckOutcome::Pass);
    stage.lands(2);
    assert_eq!(stage.landed(), [1, 2, 3, 4]);
    assert!(stage.orders.is_empty());
    stage.resume();
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 2, 3, 4, 5]);
    stage.forget();
    stage.resume();
    stage.tells(expect![[r#"
        resume → nothing
    "#]]);
}

#[test]
fn what_is_merged_in_a_pause_is_not_verified() {
    let mut stage = line(1);
    stage.look();
    stage.hold(HoldReason::Person, "let me look");
    stage.built(1);
    assert!(stage.orders.is_empty() && stage.queue.batches().is_empty());
    assert_eq!(stage.queue.len(), 1);
}

#[test]
fn what_a_person_said_is_not_overwritten_by_less() {
    let mut stage = line(1);
    stage.look();
    stage.built(1);
    stage.hold(HoldReason::Person, "let me look");
    stage.hold(HoldReason::Person, "let me look");
    stage.checked(1, CheckOutcome::Broken);
    stage.push("human");
    assert_eq!(stage.queue.hold().map(|hold| hold.why), Some(HoldReason::Person));
    stage.hold(HoldReason::Deleted, "the branch is gone");
    assert_eq!(stage.queue.hold().map(|hold| hold.why), Some(HoldReason::Deleted));
}

#[test]
fn when_nothing_new_is_to_begin_what_is_on_its_way_is_finished() {
    let mut stage = line(2);
    stage.look();
    stage.stand(3);
    stage.policy.forms = false;
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 2]);
    stage.policy.forms = true;
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 2, 3]);
}

#[test]
fn a_trouble_of_the_machine_backs_off_and_a_run_does_not_wait_for_the_third() {
    let mut stage = line(1);
    stage.look();
    stage.fails(1);
    stage.wait(1_999);
    stage.look();
    stage.wait(1);
    stage.look();
    stage.built(2);
    stage.fails(2);
    stage.wait(60_000);
    assert!(stage.queue.resumes_soon());
    stage.look();
    stage.fails(3);
    assert!(!stage.queue.resumes_soon() && stage.queue.hold_until().is_some());
    stage.wait(600_000);
    stage.look();
    stage.tells(expect![[r#"
        look → B1 of T1 ! build B1
        B1 failed → B1 over: no room on the disk, held (machine) until 3001: no room on the disk ! abandon B1
        look → nothing
        look → resumed, B2 of T1 ! build B2
        B2 merged → B2 is T1 on root, checking B2/1 ! check B2/1
        B2 failed → B2 over: no room on the disk, held (machine) until 7001: no room on the disk ! abandon B2
        look → resumed, B3 of T1 ! build B3
        B3 failed → B3 over: no room on the disk, held (machine) until 71001: no room on the disk ! abandon B3
        look → resumed, B4 of T1 ! build B4
    "#]]);
    stage.run(&green);
    assert_eq!(stage.landed(), [1]);
    assert_eq!(stage.queue.hold(), None);
}

#[test]
fn a_landing_that_fails_again_and_again_holds_however_often_its_pass_is_taken_over() {
    let mut stage = line(1);
    for batch in 1..=3 {
        stage.look();
        stage.built(batch);
        if batch == 1 {
            stage.checked(batch, CheckOutcome::Pass)
        } else {
            stage.reused(batch)
        }
        stage.fails(batch);
        assert_eq!(stage.queue.resumes_soon(), batch < 3, "{:?}", stage.queue.hold());
        stage.wait(600_000);
    }
}

#[test]
fn a_hold_that_no_person_has_to_end_ends_by_itself() {
    // By the clock, less and less often.
    let mut stage = line(1);
    let mut pauses = Vec::new();
    for batch in 1..=3 {
        stage.look();
        stage.built(batch);
        stage.checked(batch, CheckOutcome::Broken);
        let hold = stage.queue.hold().expect("the gate is broken").clone();
        assert!(hold.why == HoldReason::Gate && !stage.queue.resumes_soon(), "a run does not wait for it");
        let pause = hold.until.expect("it ends by itself").0 - hold.since.0;
        pauses.push(pause);
        stage.wait(u64::try_from(pause).expect("later"));
    }
    assert_eq!(pauses, [15_000, 30_000, 60_000]);
    stage.run(&green);
    assert_eq!((stage.landed(), stage.queue.hold()), (vec![1], None));

    // By a new run, or a check that passed: what a person has to end stays.
    for (why, retry, restored) in [
        (HoldReason::Gate, true, false),
        (HoldReason::Machine, true, false),
        (HoldReason::Rewritten, false, true),
        (HoldReason::Deleted, false, true),
        (HoldReason::Person, false, false),
        (HoldReason::Runaway, false, false),
    ] {
        for (news, ends) in [(QueueNews::Retry, retry), (QueueNews::BranchRestored, restored)] {
            let mut stage = line(1);
            stage.hold(why, "because");
            stage.hear("news", &news);
            assert_eq!(stage.queue.hold().is_none(), ends, "{why:?} {news:?}");
        }
    }
}

#[test]
fn a_landing_that_failed_after_it_moved_the_base_is_found_by_the_next_merge() {
    let mut stage = line(2);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Pass);
    let landed = stage.land(1);
    assert!(matches!(landed, QueueNews::Landed { .. }));
    stage.forget();
    let failed = QueueNews::Failed { batch: BatchId(1), detail: "killed".to_owned() };
    stage.hear("B1 failed", &failed);
    stage.cancel(1);
    stage.wait(60_000);
    stage.look();
    stage.built(2);
    stage.tells(expect![[r#"
        B1 failed → T1 requeued, T2 requeued, B1 over: killed, held (machine) until 3002: killed
        cancel → T1 ✗ T1 is active in `land` (in the landing queue): it may have landed already; the next run finds out
        look → resumed, B2 of T1 T2 ! build B2
        B2 merged → T1 landed, T2 landed, B2 is  on B1:root+h1+h2, B2 over: nobody in it could be merged
    "#]]);
    assert_eq!(stage.landed(), [1, 2], "once");
    assert!(
        stage
            .tasks
            .values()
            .all(|task| task.landed.as_ref().is_some_and(|it| it.commit.as_str() == "B1:root+h1+h2"))
    );
}

// ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn who_is_cancelled_while_its_batch_is_verified_never_lands() {
    let mut stage = line(3);
    stage.look();
    stage.built(1);
    stage.cancel(2);
    stage.forget();
    stage.checked(1, CheckOutcome::Pass);
    stage.tells(expect![[r#"
        B1/3 pass → B1/3 is pass, B1 over: T2 has left the line, B2 of T1 T3 ! build B2
    "#]]);
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 3]);
}

#[test]
fn who_leaves_during_a_search_is_searched_no_more() {
    let mut stage = line(4);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Fail);
    stage.cancel(3);
    stage.run(&|heads| holds(heads, 3));
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 2, 4], vec![]));
}

#[test]
fn who_lands_can_no_longer_be_cancelled() {
    let mut stage = line(1);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Pass);
    stage.forget();
    stage.cancel(1);
    stage.tells(expect![[r#"
        cancel → T1 ✗ T1 is active in `land` (landing): it is too late to cancel it; `landfall rollback` can take it back
    "#]]);
}

#[test]
fn news_of_a_batch_that_is_over_changes_nothing() {
    let mut stage = two_batches();
    let (_, late) = stage.clone().seen(2, CheckOutcome::Pass, false);
    stage.run(&green);
    let before = stage.queue.clone();
    let id = BatchId(1);
    let news = [
        late,
        QueueNews::Built {
            batch: id,
            base: Commit::new("root"),
            prefixes: Vec::new(),
            left_out: Vec::new(),
            resolved: Vec::new(),
        },
        QueueNews::Checked {
            batch: id,
            count: 2,
            report: report(vec![command("tests", CheckOutcome::Broken)]),
        },
        QueueNews::Landed { batch: id, proof: String::new() },
        QueueNews::LandMoved { batch: id, to: Commit::new("human") },
        QueueNews::LandMismatch { batch: id, detail: String::new() },
        QueueNews::Failed { batch: id, detail: String::new() },
        QueueNews::Resume,
    ];
    for news in news {
        stage.hear("late", &news);
        assert_eq!(stage.queue, before, "{news:?}");
    }
    assert!(stage.orders.is_empty());
}

#[test]
fn a_check_of_another_beginning_than_the_one_ordered_is_not_believed() {
    let mut stage = line(4);
    stage.look();
    stage.built(1);
    let (_, all) = stage.clone().seen(1, CheckOutcome::Pass, false);
    stage.checked(1, CheckOutcome::Fail);
    stage.forget();
    stage.hear("late", &all);
    stage.tells(expect![[r#"
        late → nothing
    "#]]);
}

// ── after a crash ────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_restart_in_every_stage_goes_on_from_there() {
    let mut stage = line(2);
    stage.look();
    stage.forget();
    stage.restart();
    stage.built(1);
    stage.restart();
    stage.checked(1, CheckOutcome::Fail);
    stage.restart();
    stage.checked(1, CheckOutcome::Pass);
    stage.restart();
    stage.lands(1);
    stage.restart();
    stage.tells(expect![[r#"
        restart → ! build B1
        look → nothing
        B1 merged → B1 is T1 T2 on root, checking B1/2 ! check B1/2
        restart → ! check B1/2
        look → nothing
        B1/2 fail → B1/2 is fail, checking B1/1 ! check B1/1
        restart → ! check B1/1
        look → nothing
        B1/1 pass → T1 landing-began, B1/1 is pass, landing B1/1 ! land B1 (T1)
        restart → ! land B1 (T1)
        look → nothing
        B1 landed → T1 landed, T2 ejected, B1 over, 1 landed as B1:root+h1
        restart → 
        look → nothing
    "#]]);
    assert_eq!((stage.landed(), stage.ejected()), (vec![1], vec![2]));
}

#[test]
fn a_restart_while_one_stands_on_the_other_builds_both_again() {
    let mut stage = Stage::new().with(4).policy(|policy| (policy.batch_max, policy.speculate) = (2, 1));
    stage.look();
    stage.built(1);
    stage.forget();
    stage.restart();
    stage.tells(expect![[r#"
        restart → ! check B1/2, ! build B2 on B1:root+h1+h2
        look → nothing
    "#]]);
    stage.run(&green);
    assert_eq!(stage.landed(), [1, 2, 3, 4]);
}

#[test]
fn wherever_the_journal_is_cut_all_who_are_good_land_once() {
    let mut stage = Stage::new().policy(|policy| (policy.batch_max, policy.speculate) = (3, 1));
    (1..=6).for_each(|id| stage.stand(id));
    let from = stage.journal.len();
    let red = |heads: &[Commit]| holds(heads, 2) || (holds(heads, 4) && holds(heads, 5));
    stage.run(&red);
    assert_eq!((stage.landed(), stage.ejected()), (vec![1, 3, 4, 6], vec![2, 5]));
    let mut cuts = 0;
    for entries in from..=stage.journal.len() {
        for ahead in [false, true] {
            let mut after = stage.cut(entries, ahead);
            after.run(&red);
            let mut landed = after.landed();
            landed.sort_unstable();
            assert_eq!(landed, [1, 3, 4, 6], "cut after {entries} entries, ahead: {ahead}");
            let told = after.tasks.values().filter(|task| task.landed.is_some()).map(|task| task.id.0);
            assert_eq!(told.collect::<Vec<_>>(), [1, 3, 4, 6], "cut after {entries} entries, ahead: {ahead}");
            assert!(after.tasks.values().all(has_left_the_line), "cut after {entries} entries");
            cuts += 1;
        }
    }
    assert!(cuts > 60, "{cuts} cuts");
}

#[test]
fn a_gate_that_says_nothing_lets_nobody_land_wherever_the_journal_is_cut() {
    for outcome in [CheckOutcome::Broken, CheckOutcome::PreExisting] {
        let mut stage = line(2);
        let from = stage.journal.len();
        stage.look();
        stage.built(1);
        stage.checked(1, outcome);
        for entries in from..=stage.journal.len() {
            let after = stage.cut(entries, false);
            let lands = after.orders.iter().any(|order| matches!(order, QueueEffect::Land { .. }));
            assert!(!lands, "{outcome:?}, cut after {entries} entries");
            assert!(after.ejected().is_empty(), "{outcome:?}, cut after {entries} entries");
        }
    }
}

#[test]
fn a_batch_of_nobody_that_a_crash_left_behind_is_over() {
    let mut stage = line(1);
    stage.look();
    stage.built_without(1, vec![(1, clash())]);
    let built = stage.journal.iter().position(|entry| format!("{:?}", entry.fact).contains("Built"));
    let mut after = stage.cut(built.expect("it was built") + 1, false);
    assert!(after.queue.batches().is_empty());
    after.run(&green);
    assert_eq!(after.landed(), Vec::<u32>::new());
}

#[test]
fn a_landing_from_before_the_queue_is_stood_in_line_again() {
    let mut stage = Stage::new();
    stage.stand(1);
    let said = stage.hear_task(TaskId(1), News::StopTask);
    assert_eq!(said, "T1 yielded");
    assert_eq!(stage.hear_task(TaskId(1), News::Retry { fresh: false, note: None }), "T1 resumed");
    stage.enter(1, AttemptStart::Land);
    stage.restart();
    stage.run(&green);
    stage.tells(expect![[r#"
        restart → T1 requeued
        look → B1 of T1 ! build B1
        B1 merged → B1 is T1 on root, checking B1/1 ! check B1/1
        B1/1 pass → T1 landing-began, B1/1 is pass, landing B1/1 ! land B1 (T1)
        B1 landed → T1 landed, B1 over, 1 landed as B1:root+h1
        look → nothing
    "#]]);
}

// ── facts that cannot follow ─────────────────────────────────────────────────────────────────────────────

#[test]
fn a_fact_that_cannot_follow_is_refused_in_words() {
    let member = |id: u32| BatchMember { task: TaskId(id), attempt: Attempt(1), head: Commit::new("h") };
    let prefix = || BatchPrefix { commit: Commit::new("c"), tree: Tree::new("t") };
    let (one, two) = (BatchId(1), BatchId(2));
    let formed = |batch, on| QueueEvent::Formed { batch, on, members: vec![member(1)] };
    let built = |batch, prefixes| QueueEvent::Built {
        batch,
        base: Commit::new("root"),
        members: vec![member(1)],
        prefixes,
        crowded: Vec::new(),
    };
    let checked = |count| QueueEvent::Checked {
        batch: one,
        count,
        report: report(vec![command("tests", CheckOutcome::Fail)]),
    };
    let dropped = |batch| QueueEvent::Over { batch, how: BatchEnd::Dropped { reason: String::new() } };
    let mut told = String::new();
    let mut queue = Queue::default();
    let mut say = |queue: &mut Queue, event: QueueEvent| {
        let before = queue.clone();
        match queue.apply(Timestamp(0), &event) {
            Ok(()) => told.push_str("taken\n"),
            Err(illegal) => {
                assert_eq!(before, *queue, "what is refused changes nothing");
                told.push_str(&format!("{illegal}\n"));
            }
        }
    };
    for event in [
        formed(one, Some(two)),
        built(one, vec![prefix()]),
        dropped(one),
        formed(one, None),
        formed(one, None),
        formed(two, Some(two)),
        QueueEvent::CheckBegan { batch: one, count: 1 },
        built(one, Vec::new()),
        built(one, vec![prefix()]),
        QueueEvent::CheckBegan { batch: one, count: 2 },
        QueueEvent::CheckBegan { batch: one, count: 0 },
        QueueEvent::LandingBegan { batch: one, count: 1 },
        checked(1),
        QueueEvent::CheckBegan { batch: one, count: 1 },
        checked(2),
        checked(1),
        QueueEvent::LandingBegan { batch: one, count: 1 },
        dropped(one),
        dropped(one),
    ] {
        say(&mut queue, event);
    }
    expect![[r#"
        the landing queue: B1 cannot be formed
        the landing queue: B1 is not being built
        the landing queue: there is no B1
        taken
        the landing queue: B1 cannot be formed
        the landing queue: B2 cannot be formed
        the landing queue: B1 does not wait to be verified
        the landing queue: B1 has not one merge for each member
        taken
        the landing queue: B1 has no beginning of 2
        the landing queue: B1 has no beginning of 0
        the landing queue: 1 of B1 are not known to be green
        the landing queue: B1 is not being verified
        taken
        the landing queue: B1 is not being verified
        taken
        the landing queue: 1 of B1 are not known to be green
        taken
        the landing queue: there is no B1
    "#]]
    .assert_eq(&told);
}

#[test]
fn what_is_expected_after_a_crash_is_what_was_ordered() {
    let mut stage = two_batches();
    assert_eq!(stage.queue.expected_effects().len(), 2);
    for _ in 0..6 {
        let mut expected = stage.queue.expected_effects();
        let mut ordered = stage.orders.clone();
        let key = |order: &QueueEffect| crate::stage::batch_of(order);
        expected.sort_by_key(key);
        ordered.sort_by_key(key);
        assert_eq!(expected, ordered);
        let Some(order) = stage.orders.first().cloned() else { break };
        stage.answer(&order, &green);
    }
}

// ── doubted ──────────────────────────────────────────────────────────────────────────────────────────────

/// Five in line that agents made, and a base on which ten tests run.
fn five_by_agents() -> Stage {
    let mut stage = line(5);
    for task in stage.tasks.values_mut() {
        task.counters.runs = 1;
        stage.queue.update_task(task);
    }
    let mut base = report(vec![command("tests", CheckOutcome::Pass)]);
    (base.commit, base.commands[0].tests) = (Commit::new("root"), Some(10));
    stage.queue.note_base_report(&base);
    stage
}

/// All is green; so many tests run with these heads.
fn play(stage: &mut Stage, tests: &dyn Fn(&[Commit]) -> Option<u64>) {
    stage.look();
    while let Some(order) = stage.orders.first().cloned() {
        let QueueEffect::Check { batch, prefix, .. } = &order else {
            stage.answer(&order, &green);
            continue;
        };
        let heads: Vec<Commit> = prefix.tree.as_str().split('+').skip(1).map(Commit::new).collect();
        let (name, mut news) = stage.seen(batch.0, CheckOutcome::Pass, false);
        let QueueNews::Checked { report, .. } = &mut news else { panic!("{name}") };
        report.commands[0].tests = tests(&heads);
        stage.hear(&name, &news);
    }
}

#[test]
fn whoever_runs_fewer_tests_than_the_base_is_found_and_waits_for_a_person() {
    for fewer in [Some(9), None] {
        let mut stage = five_by_agents();
        play(&mut stage, &|heads| if holds(heads, 3) { fewer } else { Some(12) });
        assert_eq!(stage.landed(), [1, 2, 4, 5], "{}", stage.told);
        assert!(
            stage.told.contains("B1/5 is doubted") && stage.told.contains("B1/3 is doubted"),
            "{}",
            stage.told
        );
        let task = &stage.tasks[&TaskId(3)];
        assert!(matches!(&task.state, TaskState::Review { .. }), "{}", task.state.name());
        assert_eq!(task.concerns.iter().map(|it| it.code).collect::<Vec<_>>(), [ConcernCode::FewerTests]);
        // Approved, it lands with as many tests as it has, and asks nobody again.
        let head = Commit::new("h3");
        let task = stage.tasks.get_mut(&TaskId(3)).expect("it is there");
        (task.approved_head, task.state) = (Some(head), TaskState::Ready { next: None, since: Timestamp(0) });
        stage.enter(3, AttemptStart::Queue);
        play(&mut stage, &|_| fewer);
        assert_eq!(stage.landed(), [1, 2, 4, 5, 3], "{}", stage.told);
    }
}

#[test]
fn as_many_tests_as_on_the_base_or_a_base_that_does_not_tell_are_no_news() {
    let mut stage = five_by_agents();
    play(&mut stage, &|_| Some(10));
    assert_eq!((stage.landed().len(), stage.checks), (5, 1));
    let mut silent = five_by_agents();
    silent.queue = Queue::default();
    for task in silent.tasks.values() {
        silent.queue.update_task(task);
    }
    play(&mut silent, &|_| Some(1));
    assert_eq!((silent.landed().len(), silent.checks), (5, 1));
}

#[test]
fn a_culprit_is_told_the_commit_it_failed_on_once_that_has_landed() {
    let mut stage = line(2);
    stage.look();
    stage.built(1);
    stage.checked(1, CheckOutcome::Fail);
    stage.checked(1, CheckOutcome::Pass);
    // What it failed on may not land after all: then it is not told to merge that.
    let mut moved = stage.clone();
    moved.push("theirs");
    moved.lands(1);
    assert_eq!((moved.landed(), moved.ejected()), (vec![], vec![]), "{}", moved.told);
    stage.lands(1);
    assert_eq!((stage.landed(), stage.ejected()), (vec![1], vec![2]));
    let (culprit, landed) = (&stage.tasks[&TaskId(2)], &stage.base);
    assert_eq!(culprit.gate.as_ref().map(|gate| &gate.base), Some(landed));
    let feedback = &culprit.feedback[0].text;
    assert!(feedback.contains(&format!("git merge {landed}")), "{feedback}");
}
