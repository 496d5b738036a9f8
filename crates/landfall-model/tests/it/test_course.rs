//! What a run waits for, why it is over, which tasks may begin, and how far agents run ahead.

use std::collections::BTreeSet;

use landfall_model::course::{
    ExpectedEvent, Interruption, PersonPresence, RunSnapshot, ShortageSpan, ShortageStopAction,
    build_start_filter, decide_short_stop, is_far_ahead, waits_for_batch, waits_for_task,
};
use landfall_model::pilot::{Phase, PilotMode};
use landfall_model::queue::BatchDoing;
use landfall_model::resource::MachineResource;
use landfall_model::review::{ReviewMode, ReviewRule};
use landfall_model::sprint::{SprintEnd, SprintEndCondition, SprintEvent, SprintPhase, SprintSpec, Sprints};
use landfall_model::{
    Attempt, AttemptPhase, AttemptStart, BudgetScope, Event, ExhaustedBudget, IntakeState, RunEnd, RunId,
    StepName, Task, TaskId, TaskSpec, TaskState, Timestamp,
};

const NOW: Timestamp = Timestamp(1_000);

fn scene() -> RunSnapshot {
    RunSnapshot {
        drive: IntakeState::Running,
        phase: Phase::Running,
        mode: PilotMode::Autopilot,
        person: PersonPresence::Away,
        pickable: false,
        wants_slot: true,
        spent: None,
        coming: BTreeSet::new(),
        sprint: None,
    }
}

fn spent(until: Option<Timestamp>) -> Option<ExhaustedBudget> {
    Some(ExhaustedBudget { scope: BudgetScope::Day, what: "$1.00 of $1.00".to_owned(), until })
}

#[test]
fn a_run_that_is_to_end_now_waits_for_what_must_be_known_unless_it_was_cut_short() {
    let check = |doing: AttemptPhase, waits: [bool; 3]| {
        let spec = TaskSpec::new("a task").expect("a title");
        let mut task = Task::from_spec(TaskId(1), spec, NOW);
        let step = StepName::new("work");
        task.state = TaskState::Active { step, doing };
        let all = [Interruption::None, Interruption::Asked, Interruption::CutShort];
        assert_eq!(all.map(|interruption| waits_for_task(&task, interruption)), waits, "{:?}", task.state);
    };
    check(AttemptPhase::Preparing { fresh: false, stop: None }, [true, true, false]);
    check(AttemptPhase::Reporting, [true, true, false]);
    check(AttemptPhase::Checking { stop: None }, [true, false, false]);
    check(AttemptPhase::Exchanging { stop: None }, [true, false, false]);
    check(AttemptPhase::Queued { since: NOW }, [false, false, false]);
}

#[test]
fn a_run_waits_for_what_comes_by_itself() {
    assert!(scene().is_idle(), "nothing comes");
    for coming in [ExpectedEvent::Due, ExpectedEvent::Account, ExpectedEvent::Room, ExpectedEvent::Landing] {
        let waits = RunSnapshot { coming: BTreeSet::from([coming]), ..scene() };
        assert!(!waits.is_idle(), "{coming:?}");
        assert!(
            RunSnapshot { drive: IntakeState::Draining, ..waits }.is_idle(),
            "{coming:?}, and it is to end"
        );
    }
    assert!(!RunSnapshot { spent: spent(Some(NOW)), ..scene() }.is_idle(), "tomorrow there is money");
    assert!(RunSnapshot { spent: spent(None), ..scene() }.is_idle(), "this run gets no more");
    let nobody = RunSnapshot { wants_slot: false, spent: spent(Some(NOW)), ..scene() };
    assert!(nobody.is_idle(), "nobody wants the money");
    let room = RunSnapshot { wants_slot: false, coming: BTreeSet::from([ExpectedEvent::Room]), ..scene() };
    assert!(room.is_idle(), "nobody wants the room");
}

#[test]
fn a_pause_waits_for_a_person_who_is_there_and_else_only_for_landings() {
    let paused = RunSnapshot { phase: Phase::Paused, ..scene() };
    assert!(paused.is_idle());
    assert!(!RunSnapshot { person: PersonPresence::There, ..paused.clone() }.is_idle());
    for (coming, idle) in [
        (ExpectedEvent::Due, true),
        (ExpectedEvent::Account, true),
        (ExpectedEvent::Room, true),
        (ExpectedEvent::Landing, false),
    ] {
        let scene = RunSnapshot { coming: BTreeSet::from([coming]), ..paused.clone() };
        assert_eq!(scene.is_idle(), idle, "{coming:?}");
    }
    assert!(RunSnapshot { spent: spent(Some(NOW)), ..paused }.is_idle());
}

#[test]
fn whoever_picks_is_waited_for_while_there_is_something_to_pick() {
    let waits = RunSnapshot {
        phase: Phase::WaitingUser,
        mode: PilotMode::SemiAuto,
        person: PersonPresence::There,
        pickable: true,
        ..scene()
    };
    assert!(!waits.is_idle());
    assert!(RunSnapshot { pickable: false, ..waits.clone() }.is_idle());
    assert!(RunSnapshot { person: PersonPresence::Away, ..waits }.is_idle());
}

#[test]
fn the_first_reason_that_holds_is_why_a_run_is_over() {
    let all = RunSnapshot {
        phase: Phase::Paused,
        mode: PilotMode::SemiAuto,
        pickable: true,
        spent: spent(None),
        sprint: Some(SprintPhase::Completing { why: SprintEnd::Goal }),
        ..scene()
    };
    assert_eq!(all.run_end_reason(), RunEnd::Goal);
    let cancelled =
        RunSnapshot { sprint: Some(SprintPhase::Completing { why: SprintEnd::Cancelled }), ..all.clone() };
    assert_eq!(cancelled.run_end_reason(), RunEnd::Paused);
    let spent = RunSnapshot { phase: Phase::Running, sprint: None, ..all };
    assert_eq!(spent.run_end_reason(), RunEnd::Spent);
    let one = RunSnapshot { spent: None, ..spent };
    assert_eq!(one.run_end_reason(), RunEnd::OneDone);
    assert_eq!(RunSnapshot { pickable: false, ..one }.run_end_reason(), RunEnd::NothingLeft);
}

#[test]
fn a_landing_is_waited_for_always_and_other_batches_only_in_peace() {
    use BatchDoing::{Building, Checking, Landing, Resting};
    for drive in [IntakeState::Running, IntakeState::Draining] {
        for interrupted in [false, true] {
            assert!(waits_for_batch(Landing(1), drive, interrupted));
            for doing in [Building, Checking(1), Resting] {
                let waits = drive == IntakeState::Draining && !interrupted;
                assert_eq!(waits_for_batch(doing, drive, interrupted), waits, "{doing:?} {drive:?}");
            }
        }
    }
}

#[test]
fn agents_run_ahead_by_their_number_or_by_a_batch() {
    assert!(!is_far_ahead(3, 2, 4));
    assert!(is_far_ahead(4, 2, 4));
    assert!(!is_far_ahead(7, 8, 4));
    assert!(is_far_ahead(8, 8, 4));
}

fn begun(goal: SprintEndCondition, tasks: &[u32]) -> Sprints {
    let mut sprints = Sprints::default();
    let sprint = sprints.next_id();
    sprints.apply(NOW, &SprintEvent::Started { sprint, plan: SprintSpec::new(goal), ready: 3 });
    for task in tasks {
        let (step, run, opening) = (StepName::new("work"), RunId(1), AttemptStart::FreshWorkspace);
        sprints.note(NOW, TaskId(*task), &Event::Entered { attempt: Attempt(1), step, run, opening });
    }
    sprints
}

#[test]
fn a_sprint_begins_no_more_than_it_needs() {
    let two = begun(SprintEndCondition::Count(2), &[1, 2]);
    let starts = |goes_on: &dyn Fn(TaskId) -> bool| {
        build_start_filter(two.open(), goes_on, (PilotMode::Autopilot, None), None).starts
    };
    assert_eq!(starts(&|_| true), Some(BTreeSet::new()), "both may do");
    assert_eq!(starts(&|id| id == TaskId(1)), None, "one has given up: another may begin");
    let long = begun(SprintEndCondition::NoReady, &[1, 2]);
    assert_eq!(build_start_filter(long.open(), &|_| true, (PilotMode::Autopilot, None), None).starts, None);
}

#[test]
fn what_a_person_picks_or_names_is_all_that_begins() {
    let picked = build_start_filter(None, &|_| true, (PilotMode::SemiAuto, Some(TaskId(7))), None);
    assert_eq!(picked.starts, Some(BTreeSet::from([TaskId(7)])));
    let nothing = build_start_filter(None, &|_| true, (PilotMode::SemiAuto, None), None);
    assert_eq!(nothing.starts, Some(BTreeSet::new()));
    let only = BTreeSet::from([TaskId(3)]);
    let named = build_start_filter(None, &|_| true, (PilotMode::Autopilot, None), Some(&only));
    assert_eq!((named.only, named.starts), (Some(only), None));
}

#[test]
fn the_end_of_a_run_ends_or_pauses_its_sprint() {
    let ends = |phase: Option<SprintEvent>, why: RunEnd| {
        let mut sprints = begun(SprintEndCondition::Count(2), &[]);
        if let Some(event) = phase {
            sprints.apply(NOW, &event);
        }
        sprints.open().expect("it is open").event_at_run_end(why)
    };
    let over = |why: SprintEnd| Some(SprintEvent::Ended { why });
    let paused = || Some(SprintEvent::Paused { reason: "lunch".to_owned() });
    let stopped = Some(SprintEvent::Paused { reason: "its run was stopped".to_owned() });
    assert_eq!(ends(None, RunEnd::NothingLeft), over(SprintEnd::NothingLeft));
    assert_eq!(ends(None, RunEnd::Spent), over(SprintEnd::Spent));
    for why in [RunEnd::Drained, RunEnd::Interrupted, RunEnd::Paused, RunEnd::OneDone] {
        assert_eq!(ends(None, why), stopped, "{why:?}");
        assert_eq!(ends(paused(), why), None, "{why:?}: it stays paused");
        let completing = Some(SprintEvent::Completing { why: SprintEnd::Goal });
        assert_eq!(ends(completing, why), over(SprintEnd::Goal), "{why:?}");
    }
    assert_eq!(ends(paused(), RunEnd::NothingLeft), over(SprintEnd::NothingLeft));
}

#[test]
fn a_paused_sprint_completes_by_count_alone() {
    let mut sprints = begun(SprintEndCondition::Until(NOW), &[]);
    let complete = |sprints: &Sprints| sprints.open().expect("it is open").should_complete(NOW, 0);
    assert_eq!(complete(&sprints), Some(SprintEnd::Goal));
    sprints.apply(NOW, &SprintEvent::Paused { reason: "lunch".to_owned() });
    assert_eq!(complete(&sprints), None);
    let mut count = begun(SprintEndCondition::Count(0), &[]);
    count.apply(NOW, &SprintEvent::Paused { reason: "lunch".to_owned() });
    assert_eq!(complete(&count), Some(SprintEnd::Goal));
    assert_eq!(complete(&begun(SprintEndCondition::NoReady, &[])), Some(SprintEnd::NothingLeft));
}

#[test]
fn the_strictest_review_counts_and_looking_after_is_kept() {
    let rule = ReviewRule { mode: ReviewMode::AutoApprove, ..ReviewRule::default() };
    let with = rule.combine_with([ReviewMode::Batch], false);
    assert_eq!((with.mode, with.after), (ReviewMode::AutoApprove, true));
    let with = rule.combine_with([ReviewMode::PerTask, ReviewMode::Skip], false);
    assert_eq!((with.mode, with.after), (ReviewMode::PerTask, false));
    assert!(rule.combine_with([], true).after);
}

#[test]
fn a_run_that_is_to_end_waits_for_a_missing_resource_for_seconds_only() {
    use ShortageStopAction::{Leave, StopNow, Wait};
    let table = [
        // missing for, told to end, told to end at once
        (60_000, None, None, Wait, "it is not to end"),
        (60_000, Some(0), None, Wait, "told just now"),
        (60_000, Some(3_000), None, StopNow, "missing and told for long"),
        (60_000, Some(3_000), Some(0), Wait, "told just now to end at once"),
        (60_000, Some(6_000), Some(3_000), Leave, "told for long to end at once"),
        (0, Some(600_000), None, Wait, "missing just now, told ten minutes ago"),
        (2_999, Some(600_000), None, Wait, "missing for less than the wait"),
        (3_000, Some(600_000), None, StopNow, "missing for the wait"),
        (0, Some(600_000), Some(3_000), Wait, "missing again just now"),
        (3_000, Some(600_000), Some(3_000), Leave, "missing since it was told to end at once"),
    ];
    for resource in MachineResource::ALL {
        let holds_all_up = !matches!(resource, MachineResource::Disk | MachineResource::Inodes);
        for (missing, told, told_now, step, why) in table {
            let wanted = if holds_all_up { step } else { Wait };
            let decided = decide_short_stop(Some((resource, missing)), told, told_now);
            assert_eq!(decided, wanted, "{resource}: {why}");
        }
    }
    assert_eq!(decide_short_stop(None, Some(60_000), Some(60_000)), Wait, "nothing is missing");
}

#[test]
fn a_shortage_lasts_from_its_first_look_and_survives_a_short_gap_only() {
    const FILES: Option<MachineResource> = Some(MachineResource::Descriptors);
    const THREADS: Option<MachineResource> = Some(MachineResource::Processes);
    // The looks, each at a moment, and for how long the last one finds the resource missing.
    let check = |looks: &[(u64, Option<MachineResource>)], missing_ms: Option<u64>, why: &str| {
        let look = |span, (at_ms, found): &(u64, _)| ShortageSpan::after_check(span, *found, *at_ms);
        let span = looks.iter().fold(None, look);
        assert_eq!(span.and_then(|span| span.missing_resource()).map(|(_, ms)| ms), missing_ms, "{why}");
    };
    check(&[(5_000, None)], None, "nothing is missing");
    check(&[(5_000, FILES)], Some(0), "it is missing for the first time");
    check(
        &[(5_000, FILES), (5_500, FILES), (9_000, FILES)],
        Some(4_000),
        "it stays away, and a look is late",
    );
    check(&[(5_000, FILES), (5_500, None)], None, "it is back");
    check(&[(5_000, FILES), (5_500, None), (6_500, FILES)], Some(1_500), "it was back for a moment");
    check(&[(5_000, FILES), (5_500, None), (6_501, FILES)], Some(0), "it was back for longer");
    check(&[(5_000, FILES), (5_500, None), (600_000, FILES)], Some(0), "it is missing again, much later");
    check(&[(5_000, FILES), (9_000, THREADS)], Some(0), "something else is missing");
}
