//! Who may go on now, and in what order.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::gate::Outcome;
use landfall_model::{
    Attempt, EndCode, EndKind, Ending, Grant, Limits, Standing, State, StepName, Talk, Task, TaskId,
    TaskSpec, Timestamp, Wait, World, plan,
};

use crate::flows_used::{asks, loops, takes_back};
use crate::story::{command, report};

const LIMITS: Limits = Limits { slots: 2, lanes: 1, now: Timestamp(0), spent: None };

fn world() -> World {
    let flows = [loops(), takes_back(), asks()];
    World::new(flows.into_iter().map(|flow| (flow.name.clone(), flow)).collect(), "loop")
}

fn task(id: u32, change: impl Fn(&mut TaskSpec)) -> Task {
    let mut spec = TaskSpec::new("a task").expect("a title");
    change(&mut spec);
    Task::added(TaskId(id), spec, Timestamp(0))
}

fn in_state(mut task: Task, state: State) -> Task {
    task.flow = Some(loops());
    task.state = state;
    task
}

fn done(task: Task) -> Task {
    let ending = Ending { kind: EndKind::Done, code: EndCode::Accepted, detail: String::new() };
    in_state(task, State::Ended(ending))
}

fn ready_for(task: Task, step: &str) -> Task {
    in_state(task, State::Ready { next: Some(StepName::new(step)), since: Timestamp(0) })
}

/// Verified and cleared, so that it only has to stand in line.
fn verified(task: Task) -> Task {
    let mut task = ready_for(task, "land");
    task.gate = Some(report(vec![command("tests", Outcome::Pass)]));
    task.cleared = true;
    task
}

fn active(task: Task, step: &str, doing: landfall_model::Doing) -> Task {
    in_state(task, State::Active { step: StepName::new(step), doing })
}

fn waiting(task: Task, wait: Wait) -> Task {
    in_state(task, State::Waiting { wait, then: StepName::new("work"), since: Timestamp(0) })
}

/// The order in which tasks are granted when nothing ever ends and there is room for all.
fn order(world: &World) -> Vec<u32> {
    let (mut world, mut granted) = (world.clone(), Vec::new());
    let room = Limits { slots: u32::MAX, lanes: u32::MAX, ..LIMITS };
    while let Some(Grant { task, .. }) = plan(&world, &room) {
        granted.push(task.0);
        let it = (**world.get(task).expect("granted")).clone();
        world.put(waiting(it, Wait::Pause));
    }
    granted
}

fn check<const N: usize>(tasks: [Task; N], expect: &[u32]) -> World {
    let mut world = world();
    for task in tasks {
        world.put(task);
    }
    assert_eq!(order(&world), expect);
    check_rebuilt(&world);
    world
}

/// The world as it was kept is the world as it would be made anew.
fn check_rebuilt(kept: &World) {
    let mut anew = world();
    for task in kept.tasks() {
        anew.put((**task).clone());
    }
    assert!(*kept == anew, "the kept world is not the one made anew");
}

fn grant(task: TaskId, standing: Standing) -> Option<Grant> {
    Some(Grant { task, standing, profile: "default".to_owned() })
}

fn tag(word: &str) -> impl Fn(&mut TaskSpec) {
    let tag: landfall_model::Tag = word.parse().expect("a tag");
    move |spec| {
        spec.tags.insert(tag.clone());
    }
}

#[test]
fn the_oldest_goes_first_when_nothing_else_tells_them_apart() {
    check([task(3, |_| ()), task(1, |_| ()), task(2, |_| ())], &[1, 2, 3]);
}

#[test]
fn priority_then_tags_then_what_a_task_unblocks_move_it_forward() {
    check(
        [task(1, |_| ()), task(2, |spec| spec.priority = 4), task(3, |spec| spec.priority = 0)],
        &[3, 2, 1],
    );
    check(
        [task(1, tag("later")), task(2, |_| ()), task(3, tag("next")), task(4, tag("critical"))],
        &[3, 4, 2, 1],
    );
    check([task(1, |_| ()), task(2, tag("quick-win")), task(3, tag("critical"))], &[3, 2, 1]);
    let needs = |id: u32| move |spec: &mut TaskSpec| spec.needs = BTreeSet::from([TaskId(id)]);
    check([task(1, |_| ()), task(2, |_| ()), task(3, needs(2)), task(4, needs(2))], &[2, 1]);
}

#[test]
fn what_was_begun_is_finished_first_and_a_retry_steps_back_a_little() {
    let mut begun = ready_for(task(2, |spec| spec.priority = 9), "work");
    begun.attempt = Attempt(1);
    check([task(1, |spec| spec.priority = 0), begun], &[2, 1]);
    let mut retried = task(1, |_| ());
    retried.counters.retries = 1;
    check([retried, task(2, |_| ())], &[2, 1]);
}

#[test]
fn what_is_nearest_to_landed_goes_first() {
    check(
        [
            ready_for(task(1, |_| ()), "work"),
            ready_for(task(2, |_| ()), "verify"),
            ready_for(task(3, |_| ()), "report"),
            verified(task(4, |_| ())),
        ],
        &[3, 4, 2, 1],
    );
}

#[test]
fn only_a_ready_task_whose_needs_have_landed_is_granted() {
    let needs_one = |spec: &mut TaskSpec| spec.needs = BTreeSet::from([TaskId(1)]);
    let mut world = check([task(1, |_| ()), task(2, needs_one), task(3, |spec| spec.draft = true)], &[1]);
    let unmet = world.unmet(world.get(TaskId(2)).expect("put"));
    assert_eq!(unmet, [TaskId(1)]);
    let ending = Ending { kind: EndKind::Failed, code: EndCode::Machine, detail: String::new() };
    world.put(in_state(task(1, |_| ()), State::Ended(ending)));
    assert_eq!(order(&world), [0; 0], "a failed need is not met");
    world.put(done(task(1, |_| ())));
    assert_eq!(order(&world), [2]);
    check_rebuilt(&world);
}

#[test]
fn a_need_that_does_not_exist_is_never_met() {
    check([task(1, |spec| spec.needs = BTreeSet::from([TaskId(9)]))], &[]);
}

#[test]
fn an_edit_of_needs_moves_both_ends() {
    let mut world = check([task(1, |_| ()), task(2, |_| ()), task(3, |_| ())], &[1, 2, 3]);
    world.put(task(1, |spec| spec.needs = BTreeSet::from([TaskId(3)])));
    assert_eq!(order(&world), [3, 2]);
    assert_eq!(world.dependents(TaskId(3)), [TaskId(1)]);
    world.put(task(1, |spec| spec.needs = BTreeSet::from([TaskId(2)])));
    assert_eq!(order(&world), [2, 3]);
    world.put(task(1, |_| ()));
    assert_eq!(order(&world), [1, 2, 3]);
    check_rebuilt(&world);
}

#[test]
fn more_than_half_of_the_siblings_done_pulls_the_rest_along() {
    let of_nine = |spec: &mut TaskSpec| spec.parent = Some(TaskId(9));
    let mut world = check([task(1, |_| ()), task(2, of_nine), done(task(3, of_nine))], &[1, 2]);
    world.put(done(task(4, of_nine)));
    assert_eq!(order(&world), [2, 1], "two of three are done");
    check_rebuilt(&world);
}

#[test]
fn a_new_sibling_tips_the_scale_back() {
    let of_nine = |spec: &mut TaskSpec| spec.parent = Some(TaskId(9));
    let mut world =
        check([task(1, |_| ()), task(2, of_nine), done(task(3, of_nine)), done(task(4, of_nine))], &[2, 1]);
    world.put(task(5, of_nine));
    assert_eq!(order(&world), [1, 2, 5], "two of four are not more than half");
    check_rebuilt(&world);
    world.put(task(5, |_| ()));
    assert_eq!(order(&world), [2, 1, 5], "it was moved away again");
    check_rebuilt(&world);
}

#[test]
fn slots_and_lanes_are_held_apart_and_standing_in_line_to_land_holds_nothing() {
    use landfall_model::Doing::{Checking, Landing, Preparing, Queued, Reporting, Running};
    let running = || Running { iteration: 1, since: Timestamp(0), stop: None, talk: Talk::New };
    let mut world = world();
    world.put(active(task(1, |_| ()), "work", running()));
    assert_eq!(plan(&world, &LIMITS), None);
    world.put(task(2, |_| ()));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(2), Standing::Slot));
    world.put(active(task(2, |_| ()), "work", Preparing { fresh: true, stop: None }));
    world.put(task(3, |_| ()));
    assert_eq!(plan(&world, &LIMITS), None, "both slots are held");
    assert_eq!(world.held(TaskId(3), &LIMITS), Some(Wait::Slot));
    assert_eq!(world.held(TaskId(1), &LIMITS), None, "it stands in no line");

    world.put(ready_for(task(4, |_| ()), "verify"));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(4), Standing::Lane));
    world.put(active(task(4, |_| ()), "verify", Checking { stop: None }));
    world.put(ready_for(task(5, |_| ()), "verify"));
    assert_eq!(plan(&world, &LIMITS), None, "the lane is held");

    world.put(ready_for(task(6, |_| ()), "land"));
    assert_eq!(plan(&world, &LIMITS), None, "what is not verified yet wants the lane first");
    world.put(verified(task(6, |_| ())));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(6), Standing::Free), "verified, it only stands in line");
    world.put(active(task(6, |_| ()), "land", Queued { since: Timestamp(0) }));
    assert_eq!(plan(&world, &LIMITS), None);
    assert_eq!(Standing::ALL.map(|standing| world.holding(standing)), [0, 0, 1, 2], "it holds nothing");
    world.put(active(task(6, |_| ()), "land", Landing));
    world.put(active(task(7, |_| ()), "land", Landing));
    assert_eq!(world.holding(Standing::Landing), 2, "several land together");

    world.put(ready_for(task(8, |_| ()), "report"));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(8), Standing::Free));
    world.put(active(task(8, |_| ()), "report", Reporting));
    assert_eq!(Standing::ALL.map(|standing| world.holding(standing)), [2, 1, 1, 2]);
    assert_eq!(Standing::ALL.map(|standing| world.waiting_for(standing)), [0, 0, 1, 1]);
    assert_eq!(world.active().count(), 6);
    check_rebuilt(&world);
}

#[test]
fn a_run_may_be_restricted_to_some_tasks() {
    let mut world = check([task(1, |_| ()), task(2, |_| ()), task(3, |_| ())], &[1, 2, 3]);
    world.set_only(Some(BTreeSet::from([TaskId(3)])));
    assert_eq!(order(&world), [3]);
    world.put(task(2, |spec| spec.priority = 0));
    assert_eq!(order(&world), [3]);
    world.set_only(None);
    assert_eq!(order(&world), [2, 1, 3]);
}

#[test]
fn moments_and_broken_gates_are_kept_in_order() {
    let mut world = world();
    world.put(waiting(task(1, |_| ()), Wait::Quota { until: Timestamp(9) }));
    world.put(waiting(task(2, |_| ()), Wait::Backoff { until: Timestamp(5), cause: String::new() }));
    world.put(waiting(task(3, |_| ()), Wait::GateBroken { command: String::new(), detail: String::new() }));
    assert_eq!(world.next_due(), Some((Timestamp(5), TaskId(2))));
    assert_eq!(world.gate_waits(), [TaskId(3)]);
    world.put(task(2, |_| ()));
    world.put(task(3, |_| ()));
    let (due, first) = world.next_due().expect("one waits for a reset");
    let late = due.0 - 9;
    assert!(first == TaskId(1) && (5_000..=5_500).contains(&late), "{first} {late} ms after the reset");
    assert_eq!(world.gate_waits(), []);
    check_rebuilt(&world);
}

#[test]
fn numbers_grow_and_flows_are_found_by_name() {
    let mut world = world();
    assert_eq!(world.next_id(), TaskId(1));
    world.put(task(7, |spec| spec.flow = Some("rollback".to_owned())));
    assert_eq!(world.next_id(), TaskId(8));
    let put = world.get(TaskId(7)).expect("put");
    assert_eq!(world.flow_of(put).map(|flow| flow.name.clone()).as_deref(), Some("rollback"));
    assert!(world.get(TaskId(3)).is_none() && world.get(TaskId(99)).is_none());
    let unknown = task(8, |spec| spec.flow = Some("nowhere".to_owned()));
    assert!(world.flow_of(&unknown).is_none());
    assert_eq!(World::new(BTreeMap::new(), "loop").next_due(), None);
}
