//! Who picks the next task, and when a run pauses by itself.

use landfall_model::pilot::{PauseReason, Phase, PilotEvent, PilotMode, PilotState};
use landfall_model::{Attempt, Commit, EndCode, EndKind, Ending, Event, RunEnd, TaskId, Timestamp, Tree};

const NOW: Timestamp = Timestamp(5_000);

fn ended(kind: EndKind) -> Event {
    Event::Ended(Ending { kind, code: EndCode::Person, detail: String::new() })
}

fn landed() -> Event {
    Event::Landed {
        attempt: Attempt(1),
        commit: Commit::new("c"),
        base_before: Commit::new("b"),
        tree: Tree::new("t"),
        proof: String::new(),
    }
}

fn running() -> PilotState {
    let mut pilot = PilotState::default();
    pilot.run_started();
    pilot
}

fn paused(why: PauseReason) -> PilotEvent {
    PilotEvent::Paused { why, reason: "because".to_owned() }
}

/// Lets a pilot see how tasks ended, one after the other.
fn sees<const N: usize>(pilot: &mut PilotState, events: [Event; N]) {
    for (at, event) in events.iter().enumerate() {
        pilot.note(TaskId(1 + u32::try_from(at).expect("small")), event);
    }
}

fn reason(pause: Option<PilotEvent>) -> Option<(PauseReason, String)> {
    match pause {
        Some(PilotEvent::Paused { why, reason }) => Some((why, reason)),
        Some(other) => panic!("{other:?} is no pause"),
        None => None,
    }
}

#[test]
fn a_run_goes_from_idle_to_running_to_completed() {
    let mut pilot = PilotState::default();
    assert_eq!((pilot.phase(), pilot.mode()), (Phase::Idle, PilotMode::Autopilot));
    pilot.run_started();
    assert_eq!(pilot.phase(), Phase::Running);
    pilot.run_ended(RunEnd::NothingLeft);
    assert_eq!(pilot.phase(), Phase::Completed);
    pilot.run_started();
    pilot.run_ended(RunEnd::Drained);
    assert_eq!(pilot.phase(), Phase::Idle, "one that was stopped is not completed");
}

#[test]
fn in_semi_auto_a_person_picks_and_it_waits_for_them_again() {
    let mut pilot = running();
    pilot.apply(NOW, &PilotEvent::ModeSet { mode: PilotMode::SemiAuto });
    assert_eq!(pilot.phase(), Phase::WaitingUser);
    pilot.apply(NOW, &PilotEvent::Assigned { task: TaskId(7) });
    assert_eq!((pilot.phase(), pilot.assigned_task()), (Phase::Running, Some(TaskId(7))));
    pilot.apply(NOW, &PilotEvent::Settled);
    assert_eq!((pilot.phase(), pilot.assigned_task()), (Phase::WaitingUser, None));
    pilot.apply(NOW, &PilotEvent::Assigned { task: TaskId(8) });
    pilot.apply(NOW, &PilotEvent::ModeSet { mode: PilotMode::Autopilot });
    assert_eq!((pilot.phase(), pilot.assigned_task()), (Phase::Running, None));
}

#[test]
fn a_pause_says_why_and_since_when_and_ends_with_a_resume_or_the_run() {
    let mut pilot = running();
    pilot.apply(NOW, &paused(PauseReason::Person));
    let pause = pilot.pause().expect("it is paused");
    assert_eq!((pilot.phase(), pause.why, pause.since), (Phase::Paused, PauseReason::Person, NOW));
    pilot.apply(NOW, &PilotEvent::Resumed);
    assert_eq!((pilot.phase(), pilot.pause()), (Phase::Running, None));
    pilot.apply(NOW, &paused(PauseReason::Person));
    pilot.run_ended(RunEnd::Drained);
    pilot.run_started();
    assert_eq!(pilot.phase(), Phase::Running, "a pause is of its run");
}

#[test]
fn so_many_failures_in_a_row_pause_the_run_and_name_the_tasks() {
    let mut pilot = running();
    sees(&mut pilot, [ended(EndKind::Failed), ended(EndKind::Timeout)]);
    assert_eq!(reason(pilot.should_pause(3, false)), None);
    pilot.note(TaskId(9), &ended(EndKind::Failed));
    let (why, text) = reason(pilot.should_pause(3, false)).expect("three are enough");
    assert_eq!(
        (why, text.as_str()),
        (PauseReason::Failures, "3 tasks in a row failed or ran out: T1, T2, T9")
    );
    assert_eq!(reason(pilot.should_pause(0, false)), None, "none is as many as one likes");
}

#[test]
fn what_lands_wipes_the_slate_and_what_is_blocked_or_cancelled_says_nothing() {
    let mut pilot = running();
    sees(
        &mut pilot,
        [ended(EndKind::Failed), ended(EndKind::Blocked), ended(EndKind::Cancelled), ended(EndKind::Failed)],
    );
    assert_eq!(pilot.failures(), 2);
    pilot.note(TaskId(5), &landed());
    assert_eq!((pilot.failures(), reason(pilot.should_pause(1, true))), (0, None));
}

#[test]
fn a_sprint_that_wants_to_stops_at_the_first_failure() {
    let mut pilot = running();
    assert_eq!(reason(pilot.should_pause(3, true)), None);
    pilot.note(TaskId(4), &ended(EndKind::Failed));
    let (why, text) = reason(pilot.should_pause(3, true)).expect("one is enough");
    assert_eq!(
        (why, text.as_str()),
        (PauseReason::SprintError, "T4 failed, and this sprint pauses on an error")
    );
}

#[test]
fn a_run_that_is_paused_is_not_paused_again_and_a_resume_counts_anew() {
    let mut pilot = running();
    sees(&mut pilot, [ended(EndKind::Failed), ended(EndKind::Failed)]);
    let pause = pilot.should_pause(2, false).expect("two are enough");
    pilot.apply(NOW, &pause);
    pilot.note(TaskId(3), &ended(EndKind::Failed));
    assert_eq!(reason(pilot.should_pause(2, true)), None, "it is said once");
    pilot.apply(NOW, &PilotEvent::Resumed);
    assert_eq!((pilot.failures(), reason(pilot.should_pause(2, true))), (0, None));
}

#[test]
fn a_new_run_does_not_answer_for_the_last_one() {
    let mut pilot = running();
    sees(&mut pilot, [ended(EndKind::Failed), ended(EndKind::Failed)]);
    pilot.run_ended(RunEnd::Drained);
    pilot.run_started();
    assert_eq!((pilot.failures(), reason(pilot.should_pause(1, true))), (0, None));
}

#[test]
fn a_bad_night_names_only_the_latest() {
    let mut pilot = running();
    (1..=30).for_each(|id| pilot.note(TaskId(id), &ended(EndKind::Failed)));
    let (_, text) = reason(pilot.should_pause(3, false)).expect("many are enough");
    assert!(text.starts_with("30 tasks") && text.ends_with("T29, T30") && !text.contains("T20,"), "{text}");
}

#[test]
fn every_word_is_its_own() {
    let modes: std::collections::BTreeSet<_> = PilotMode::ALL.iter().map(|mode| mode.word()).collect();
    let whys: std::collections::BTreeSet<_> = PauseReason::ALL.iter().map(|why| why.word()).collect();
    assert_eq!((modes.len(), whys.len()), (PilotMode::ALL.len(), PauseReason::ALL.len()));
}

#[test]
fn a_pause_outlives_an_engine_that_is_lost() {
    let mut pilot = PilotState::default();
    pilot.run_started();
    let why = PilotEvent::Paused { why: PauseReason::Failures, reason: "three failed".to_owned() };
    pilot.apply(Timestamp(1), &why);
    pilot.run_ended(RunEnd::Lost);
    pilot.run_started();
    assert_eq!(pilot.phase(), Phase::Paused);
    pilot.run_ended(RunEnd::Paused);
    pilot.run_started();
    assert_eq!(pilot.phase(), Phase::Running, "a person saw it end so, and started it again");
}
