//! Who may go on now, and in what order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::gate::CheckOutcome;
use landfall_model::{
    AgentAssignment, AgentDriveStyle, Attempt, AttemptPhase, ConcurrencyLimits, EndCode, EndKind, Ending,
    Grant, GrantKind, PathPattern, ProfileRoute, RepoArea, ScheduleLimits, SessionStart, StartFilter,
    StepName, Task, TaskId, TaskSize, TaskSpec, TaskState, Timestamp, TurnBlocker, WaitReason, World,
    count_wanted_spares, explain_task_state, plan,
};

use crate::flows_used::{asks, lifecycle, loops, takes_back, watches};
use crate::story::{command, report};

const LIMITS: ScheduleLimits = ScheduleLimits { slots: 2, lanes: 1, now: Timestamp(0), spent: None };

fn world() -> World {
    let flows = [loops(), takes_back(), asks()];
    World::new(flows.into_iter().map(|flow| (flow.name.clone(), flow)).collect(), "loop")
}

fn task(id: u32, change: impl Fn(&mut TaskSpec)) -> Task {
    let mut spec = TaskSpec::new("a task").expect("a title");
    change(&mut spec);
    Task::from_spec(TaskId(id), spec, Timestamp(0))
}

fn in_state(mut task: Task, state: TaskState) -> Task {
    task.flow = Some(loops());
    task.state = state;
    task
}

fn done(task: Task) -> Task {
    let ending = Ending { kind: EndKind::Done, code: EndCode::Accepted, detail: String::new() };
    in_state(task, TaskState::Ended(ending))
}

fn ready_for(task: Task, step: &str) -> Task {
    in_state(task, TaskState::Ready { next: Some(StepName::new(step)), since: Timestamp(0) })
}

/// Verified and cleared, so that it only has to stand in line.
fn verified(task: Task) -> Task {
    let mut task = ready_for(task, "land");
    task.gate = Some(report(vec![command("tests", CheckOutcome::Pass)]));
    task.cleared = true;
    task
}

fn active(task: Task, step: &str, doing: landfall_model::AttemptPhase) -> Task {
    in_state(task, TaskState::Active { step: StepName::new(step), doing })
}

fn waiting(task: Task, wait: WaitReason) -> Task {
    in_state(task, TaskState::Waiting { wait, then: StepName::new("work"), since: Timestamp(0) })
}

#[test]
fn as_many_workspaces_stand_ready_as_could_be_granted_at_once() {
    let mut world = world();
    assert_eq!(count_wanted_spares(&world, &LIMITS), 0, "nobody stands in line");
    world.put_task(task(1, |_| {}));
    world.put_task(done(task(2, |_| {})));
    assert_eq!(count_wanted_spares(&world, &LIMITS), 1);
    (3..30).for_each(|id| world.put_task(task(id, |_| {})));
    assert_eq!(count_wanted_spares(&world, &LIMITS), 2, "there are two slots");
    let many = ScheduleLimits { slots: 100, ..LIMITS };
    assert_eq!(count_wanted_spares(&world, &many), 8, "a checkout each: not without end");
}

/// The order in which tasks are granted when nothing ever ends and there is room for all.
fn order(world: &World) -> Vec<u32> {
    let (mut world, mut granted) = (world.clone(), Vec::new());
    let room = ScheduleLimits { slots: u32::MAX, lanes: u32::MAX, ..LIMITS };
    while let Some(Grant { task, .. }) = plan(&world, &room) {
        granted.push(task.0);
        let it = (**world.get(task).expect("granted")).clone();
        world.put_task(waiting(it, WaitReason::Pause));
    }
    granted
}

fn check<const N: usize>(tasks: [Task; N], expect: &[u32]) -> World {
    let mut world = world();
    for task in tasks {
        world.put_task(task);
    }
    assert_eq!(order(&world), expect);
    check_rebuilt(&world);
    world
}

/// The world as it was kept is the world as it would be made anew.
fn check_rebuilt(kept: &World) {
    let mut anew = world();
    for task in kept.tasks() {
        anew.put_task((**task).clone());
    }
    assert!(*kept == anew, "the kept world is not the one made anew");
}

fn grant(task: TaskId, standing: GrantKind) -> Option<Grant> {
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
fn c27_priority_then_tags_then_what_a_task_unblocks_move_it_forward() {
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
    let unmet = world.unmet_needs(world.get(TaskId(2)).expect("put"));
    assert_eq!(unmet, [TaskId(1)]);
    let ending = Ending { kind: EndKind::Failed, code: EndCode::Machine, detail: String::new() };
    world.put_task(in_state(task(1, |_| ()), TaskState::Ended(ending)));
    assert_eq!(order(&world), [0; 0], "a failed need is not met");
    world.put_task(done(task(1, |_| ())));
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
    world.put_task(task(1, |spec| spec.needs = BTreeSet::from([TaskId(3)])));
    assert_eq!(order(&world), [3, 2]);
    assert_eq!(world.dependents(TaskId(3)), [TaskId(1)]);
    world.put_task(task(1, |spec| spec.needs = BTreeSet::from([TaskId(2)])));
    assert_eq!(order(&world), [2, 3]);
    world.put_task(task(1, |_| ()));
    assert_eq!(order(&world), [1, 2, 3]);
    check_rebuilt(&world);
}

#[test]
fn more_than_half_of_the_siblings_done_pulls_the_rest_along() {
    let of_nine = |spec: &mut TaskSpec| spec.parent = Some(TaskId(9));
    let mut world = check([task(1, |_| ()), task(2, of_nine), done(task(3, of_nine))], &[1, 2]);
    world.put_task(done(task(4, of_nine)));
    assert_eq!(order(&world), [2, 1], "two of three are done");
    check_rebuilt(&world);
}

#[test]
fn a_new_sibling_tips_the_scale_back() {
    let of_nine = |spec: &mut TaskSpec| spec.parent = Some(TaskId(9));
    let mut world =
        check([task(1, |_| ()), task(2, of_nine), done(task(3, of_nine)), done(task(4, of_nine))], &[2, 1]);
    world.put_task(task(5, of_nine));
    assert_eq!(order(&world), [1, 2, 5], "two of four are not more than half");
    check_rebuilt(&world);
    world.put_task(task(5, |_| ()));
    assert_eq!(order(&world), [2, 1, 5], "it was moved away again");
    check_rebuilt(&world);
}

#[test]
fn slots_and_lanes_are_held_apart_and_standing_in_line_to_land_holds_nothing() {
    use landfall_model::AttemptPhase::{Checking, Landing, Preparing, Queued, Reporting, Running};
    let running = || Running { iteration: 1, since: Timestamp(0), stop: None, talk: SessionStart::New };
    let mut world = world();
    world.put_task(active(task(1, |_| ()), "work", running()));
    assert_eq!(plan(&world, &LIMITS), None);
    world.put_task(task(2, |_| ()));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(2), GrantKind::Slot));
    world.put_task(active(task(2, |_| ()), "work", Preparing { fresh: true, stop: None }));
    world.put_task(task(3, |_| ()));
    assert_eq!(plan(&world, &LIMITS), None, "both slots are held");
    assert_eq!(world.hold_reason(TaskId(3), &LIMITS), Some(WaitReason::Slot));
    assert_eq!(world.hold_reason(TaskId(1), &LIMITS), None, "it stands in no line");

    world.put_task(ready_for(task(4, |_| ()), "verify"));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(4), GrantKind::Lane));
    world.put_task(active(task(4, |_| ()), "verify", Checking { stop: None }));
    world.put_task(ready_for(task(5, |_| ()), "verify"));
    assert_eq!(plan(&world, &LIMITS), None, "the lane is held");

    world.put_task(ready_for(task(6, |_| ()), "land"));
    assert_eq!(plan(&world, &LIMITS), None, "what is not verified yet wants the lane first");
    world.put_task(verified(task(6, |_| ())));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(6), GrantKind::Free), "verified, it only stands in line");
    world.put_task(active(task(6, |_| ()), "land", Queued { since: Timestamp(0) }));
    assert_eq!(plan(&world, &LIMITS), None);
    assert_eq!(GrantKind::ALL.map(|standing| world.holder_count(standing)), [0, 0, 1, 2], "it holds nothing");
    world.put_task(active(task(6, |_| ()), "land", Landing));
    world.put_task(active(task(7, |_| ()), "land", Landing));
    assert_eq!(world.holder_count(GrantKind::Landing), 2, "several land together");

    world.put_task(ready_for(task(8, |_| ()), "report"));
    assert_eq!(plan(&world, &LIMITS), grant(TaskId(8), GrantKind::Free));
    world.put_task(active(task(8, |_| ()), "report", Reporting));
    assert_eq!(GrantKind::ALL.map(|standing| world.holder_count(standing)), [2, 1, 1, 2]);
    assert_eq!(GrantKind::ALL.map(|standing| world.waiting_for(standing)), [0, 0, 1, 1]);
    assert_eq!(world.active_tasks().count(), 6);
    check_rebuilt(&world);
}

#[test]
fn a_run_may_be_restricted_to_some_tasks() {
    let mut world = check([task(1, |_| ()), task(2, |_| ()), task(3, |_| ())], &[1, 2, 3]);
    world.set_filter(StartFilter { only: Some(BTreeSet::from([TaskId(3)])), ..StartFilter::default() });
    assert_eq!(order(&world), [3]);
    world.put_task(task(2, |spec| spec.priority = 0));
    assert_eq!(order(&world), [3]);
    world.set_filter(StartFilter::default());
    assert_eq!(order(&world), [2, 1, 3]);
}

#[test]
fn moments_and_broken_gates_are_kept_in_order() {
    let mut world = world();
    world.put_task(waiting(task(1, |_| ()), WaitReason::Quota { until: Timestamp(9), guessed: false }));
    world.put_task(waiting(
        task(2, |_| ()),
        WaitReason::Backoff { until: Timestamp(5), cause: String::new() },
    ));
    world.put_task(waiting(
        task(3, |_| ()),
        WaitReason::GateBroken { command: String::new(), detail: String::new() },
    ));
    assert_eq!(world.next_due(), Some((Timestamp(5), TaskId(2))));
    assert_eq!(world.gate_waits(), [TaskId(3)]);
    world.put_task(task(2, |_| ()));
    world.put_task(task(3, |_| ()));
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
    world.put_task(task(7, |spec| spec.flow = Some("rollback".to_owned())));
    assert_eq!(world.next_id(), TaskId(8));
    let put = world.get(TaskId(7)).expect("put");
    assert_eq!(world.flow_of(put).map(|flow| flow.name.clone()).as_deref(), Some("rollback"));
    assert!(world.get(TaskId(3)).is_none() && world.get(TaskId(99)).is_none());
    let unknown = task(8, |spec| spec.flow = Some("nowhere".to_owned()));
    assert!(world.flow_of(&unknown).is_none());
    assert_eq!(World::new(BTreeMap::new(), "loop").next_due(), None);
}

// ── limits ───────────────────────────────────────────────────────────────────────────────────────────────

const ROOM: ScheduleLimits = ScheduleLimits { slots: 9, lanes: 1, now: Timestamp(0), spent: None };

fn by(profile: &str) -> impl Fn(&mut TaskSpec) {
    let profile = profile.to_owned();
    move |spec| spec.agent = Some(profile.clone())
}

fn touches(path: &str) -> impl Fn(&mut TaskSpec) {
    let touch: PathPattern = path.parse().expect("a path");
    move |spec| spec.touches = BTreeSet::from([touch.clone()])
}

/// The task, at work by this profile on an account.
fn at_work(task: Task, account: &str) -> Task {
    let doing =
        AttemptPhase::Running { iteration: 1, since: Timestamp(0), stop: None, talk: SessionStart::New };
    let mut task = active(task, "work", doing);
    let profile = World::profile_of(&task).to_owned();
    task.driving =
        Some(AgentAssignment { profile, account: account.to_owned(), style: AgentDriveStyle::Fresh });
    task
}

fn told(world: &World, id: u32, limits: &ScheduleLimits) -> String {
    let task = world.get(TaskId(id)).expect("put");
    let held = world.hold_reason(TaskId(id), limits);
    explain_task_state(task, &world.unmet_needs(task), held.as_ref(), &|at| at.0.to_string())
}

#[test]
fn a_profile_and_an_account_have_as_many_agents_as_they_may() {
    let mut world = world();
    let one = |name: &str| BTreeMap::from([(name.to_owned(), 1)]);
    world.set_caps(ConcurrencyLimits { profiles: one("slow"), accounts: one("shared"), areas: Vec::new() });
    world.put_task(at_work(task(1, by("slow")), "own"));
    world.put_task(task(2, by("slow")));
    world.put_task(task(3, by("fast")));
    assert_eq!(plan(&world, &ROOM).map(|grant| grant.task), Some(TaskId(3)), "the other goes before it");
    assert_eq!(
        told(&world, 2, &ROOM),
        "T2 waits for its turn; other tasks hold all slots of profile `slow`, 1 at once."
    );
    assert_eq!(world.held_back_tasks(&ROOM).keys().copied().collect::<Vec<_>>(), [TaskId(2)]);

    world.put_task(at_work(task(3, by("shared")), "shared"));
    world.put_task(task(4, by("shared")));
    assert_eq!(plan(&world, &ROOM), None);
    assert_eq!(
        told(&world, 4, &ROOM),
        "T4 waits for its turn; other tasks hold all slots of account `shared`, 1 at once."
    );
    world.put_task(ready_for(task(3, by("shared")), "verify"));
    world.put_task(ready_for(task(1, by("slow")), "verify"));
    world.put_task(at_work(task(9, |_| ()), "own"));
    let room = ScheduleLimits { lanes: 0, ..ROOM };
    assert_eq!(plan(&world, &room).map(|grant| grant.task), Some(TaskId(2)), "both have room again");
}

#[test]
fn an_area_has_as_many_agents_as_it_may() {
    let mut world = world();
    let area = |name: &str, path: &str, slots| RepoArea {
        name: name.to_owned(),
        paths: vec![path.parse().expect("a path")],
        slots,
    };
    world.set_caps(ConcurrencyLimits {
        areas: vec![area("web", "web/", 1), area("docs", "**/*.md", 2)],
        ..ConcurrencyLimits::default()
    });
    world.put_task(at_work(task(1, touches("web/app.ts")), "own"));
    world.put_task(task(2, touches("web/style.css")));
    world.put_task(task(3, touches("docs/guide.md")));
    world.put_task(task(4, |_| ()));
    assert_eq!(order_with(&world, &ROOM), [3, 4], "the area is full, not the house");
    assert_eq!(
        told(&world, 2, &ROOM),
        "T2 waits for its turn; other tasks hold all slots of area `web`, 1 at once."
    );

    // What is seen counts like what was said.
    world.put_task(at_work(task(1, |_| ()), "own"));
    assert_eq!(order_with(&world, &ROOM), [2, 3, 4]);
    world.set_observed(TaskId(1), vec![PathPattern::for_file("web/new.ts").expect("a path")]);
    assert_eq!(order_with(&world, &ROOM), [3, 4]);
    world.put_task(done(task(1, |_| ())));
    assert_eq!(world.observed_files().count(), 0, "what is over touches nothing");
    assert_eq!(order_with(&world, &ROOM), [2, 3, 4]);
}

fn order_with(world: &World, limits: &ScheduleLimits) -> Vec<u32> {
    let (mut world, mut granted) = (world.clone(), Vec::new());
    while let Some(Grant { task, .. }) = plan(&world, limits) {
        granted.push(task.0);
        let it = (**world.get(task).expect("granted")).clone();
        world.put_task(waiting(it, WaitReason::Pause));
    }
    granted
}

// ── files ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn who_would_meet_work_under_way_is_passed_over_while_others_can_run() {
    let mut world = world();
    world.put_task(at_work(task(1, touches("src/lib.rs")), "own"));
    world.put_task(task(2, touches("src/")));
    world.put_task(task(3, touches("src/main.rs")));
    world.put_task(task(4, touches("web/")));
    assert_eq!(plan(&world, &ROOM), grant(TaskId(4), GrantKind::Slot), "T3 would stand in the way of T2");
    world.put_task(at_work(task(4, touches("web/")), "own"));
    assert_eq!(
        told(&world, 2, &LIMITS),
        "T2 is held back: T1, which has not landed, changes `src/lib.rs` as well; it starts when T1 has landed, or when \
         nothing else can run."
    );
    let overlap = WaitReason::Turn(TurnBlocker::Overlap { with: TaskId(1), path: "src/lib.rs".to_owned() });
    assert_eq!(world.held_back_tasks(&LIMITS), BTreeMap::from([(TaskId(2), overlap)]));
    assert_eq!(plan(&world, &ROOM), grant(TaskId(2), GrantKind::Slot), "but no slot is idle for a guess");
}

#[test]
fn work_is_in_the_way_until_it_has_landed() {
    let seen = || vec![PathPattern::for_file("src/lib.rs").expect("a path")];
    let mut world = world();
    world.put_task(at_work(task(1, touches("src/")), "own"));
    world.put_task(task(2, touches("src/main.rs")));
    world.put_task(task(3, |_| ()));
    let no_lane = ScheduleLimits { lanes: 0, ..ROOM };
    let first = |world: &World| plan(world, &no_lane).map(|grant| grant.task.0);
    assert_eq!(first(&world), Some(3));
    world.put_task(ready_for(task(1, touches("src/")), "verify"));
    assert_eq!(first(&world), Some(3), "it stands in line to be verified");
    world.set_observed(TaskId(1), seen());
    assert_eq!(first(&world), Some(2), "what it changed is known now: another file");
    world.put_task(active(task(1, touches("src/")), "land", AttemptPhase::Landing));
    assert_eq!(first(&world), Some(2));
    world.set_observed(TaskId(1), Vec::new());
    assert_eq!(first(&world), Some(3));
    world.put_task(waiting(task(1, touches("src/")), WaitReason::Pause));
    assert_eq!(first(&world), Some(2), "nobody knows when it goes on");
    world.put_task(at_work(task(1, touches("src/")), "own"));
    world.put_task(done(task(1, touches("src/"))));
    assert_eq!(first(&world), Some(2));
}

#[test]
fn what_was_begun_is_not_held_back_for_its_files() {
    let mut world = world();
    world.put_task(at_work(task(1, touches("src/lib.rs")), "own"));
    world.put_task(task(2, |_| ()));
    world.put_task(ready_for(task(3, touches("src/lib.rs")), "work"));
    assert_eq!(plan(&world, &ROOM), grant(TaskId(3), GrantKind::Slot));
    assert_eq!(world.hold_reason(TaskId(3), &ScheduleLimits { slots: 1, ..ROOM }), Some(WaitReason::Slot));
}

#[test]
fn beyond_the_look_ahead_the_first_starts_all_the_same() {
    let mut world = world();
    world.put_task(at_work(task(1, touches("src/")), "own"));
    for id in 2..=70 {
        world.put_task(task(id, touches("src/")));
    }
    world.put_task(task(71, |_| ()));
    assert_eq!(plan(&world, &ROOM), grant(TaskId(2), GrantKind::Slot));
    world.put_task(task(71, |spec| spec.priority = 4));
    assert_eq!(plan(&world, &ROOM), grant(TaskId(71), GrantKind::Slot));
}

// ── who may start ────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn points_grow_with_the_minutes_since_a_task_became_ready() {
    let since = |id: u32, minutes: i64, change: &dyn Fn(&mut TaskSpec)| {
        let mut spec = TaskSpec::new("a task").expect("a title");
        change(&mut spec);
        Task::from_spec(TaskId(id), spec, Timestamp(minutes * 60_000))
    };
    let later = |spec: &mut TaskSpec| spec.priority = 6;
    check([since(1, 0, &later), since(2, 99, &|_| ())], &[2, 1]);
    check([since(1, 0, &later), since(2, 100, &|_| ())], &[1, 2]);
    // A task with needs became ready when the last of them landed.
    let landed = |id: u32, minutes: i64| {
        let commit = landfall_model::Commit::new("c0");
        let mut task = done(since(id, 0, &|_| ()));
        task.landed = Some(landfall_model::LandingRecord {
            commit: commit.clone(),
            base_before: commit,
            tree: landfall_model::Tree::new("t0"),
            proof: String::new(),
            at: Timestamp(minutes * 60_000),
        });
        task
    };
    let needs = |spec: &mut TaskSpec| spec.needs = BTreeSet::from([TaskId(1)]);
    check([landed(1, 50), since(2, 0, &needs), since(3, 49, &|_| ())], &[3, 2]);
    check([landed(1, 50), since(2, 0, &needs), since(3, 51, &|_| ())], &[2, 3]);
}

#[test]
fn a_retry_begins_anew_and_does_not_go_before_the_others() {
    let mut retried = task(1, |_| ());
    (retried.attempt, retried.counters.retries) = (Attempt(3), 1);
    check([retried, task(2, |_| ())], &[2, 1]);
}

#[test]
fn a_filter_admits_parts_and_tags_and_what_was_begun_goes_on() {
    let of_nine = |spec: &mut TaskSpec| spec.parent = Some(TaskId(9));
    let mut world = check(
        [task(1, |_| ()), task(2, of_nine), task(3, tag("ui")), ready_for(task(4, tag("risky")), "work")],
        &[4, 1, 2, 3],
    );
    assert_eq!(world.ready_count(), 4);
    let word = |word: &str| BTreeSet::from([word.parse().expect("a tag")]);
    world.set_filter(StartFilter {
        parents: BTreeSet::from([TaskId(9), TaskId(1)]),
        ..StartFilter::default()
    });
    assert_eq!(order(&world), [4, 1, 2]);
    assert_eq!(world.ready_count(), 3);
    world.set_filter(StartFilter { tags_in: word("ui"), ..StartFilter::default() });
    assert_eq!(order(&world), [4, 3]);
    world.set_filter(StartFilter { tags_out: word("ui"), ..StartFilter::default() });
    assert_eq!(order(&world), [4, 1, 2]);
    let ui = |spec: &mut TaskSpec| spec.tags = word("ui");
    world.put_task(task(1, ui));
    assert_eq!(order(&world), [4, 2], "an edit is looked at like the rest");
    world.set_filter(StartFilter { only: Some(BTreeSet::from([TaskId(2)])), ..StartFilter::default() });
    assert_eq!(order(&world), [2], "a person who names tasks means just these");
    world.set_filter(StartFilter::default());
    assert_eq!(world.ready_count(), 4);
}

#[test]
fn a_profile_with_a_loop_of_its_own_gets_a_flow_that_is_made_for_that() {
    let flows = [loops(), lifecycle(), watches()];
    let world = World::new(flows.into_iter().map(|flow| (flow.name.clone(), flow)).collect(), "loop");
    let flow_for = |flow: Option<&str>, is_chosen: bool, own: AgentDriveStyle| {
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.flow = flow.map(ToOwned::to_owned);
        world.self_driven_flow(&spec, own, is_chosen)
    };
    let watched = Ok(Some("watched".to_owned()));
    for own in [AgentDriveStyle::Own, AgentDriveStyle::Dispatch] {
        assert_eq!(flow_for(None, false, own), watched, "nobody chose a flow");
        assert_eq!(flow_for(Some("lifecycle"), false, own), watched, "the form of a folder did");
        assert_eq!(flow_for(Some("watched"), true, own), Ok(None));
        assert_eq!(flow_for(Some("loop"), true, own), Ok(None), "it has one step for agents");
        let mismatch = flow_for(Some("lifecycle"), true, own).expect_err("a person chose it");
        let expected = format!(
            "flow `lifecycle` has 3 steps for agents, and an agent driven in style `{}` does the whole task in each",
            own.word()
        );
        assert_eq!((mismatch.to_string(), mismatch.other.as_deref()), (expected, Some("watched")));
    }
    for own in [AgentDriveStyle::Fresh, AgentDriveStyle::Session] {
        assert_eq!(flow_for(None, false, own), Ok(None));
        assert_eq!(flow_for(Some("lifecycle"), false, own), Ok(None));
    }
}

#[test]
fn a_task_that_is_to_begin_at_a_step_of_another_flow_is_granted_all_the_same() {
    let mut task = task(1, |_| ());
    task.state = TaskState::Ready { next: Some(StepName::new("exec")), since: Timestamp(0) };
    check([task], &[1]);
}

#[test]
fn a_step_for_large_work_is_done_by_the_profile_of_that_size_where_there_is_one() {
    let mut flow = (*loops()).clone();
    flow.steps[0].agent = Some("spec".to_owned());
    let mut world = World::new(BTreeMap::from([(flow.name.clone(), Arc::new(flow))]), "loop");
    let route = |name: &str| (name.to_owned(), ProfileRoute { account: "main".to_owned(), failover: None });
    world.set_routes(["default", "spec", "spec-l"].map(route).into());
    let by = |size: Option<TaskSize>, agent: Option<&str>| {
        let sized = task(1, |spec| (spec.size, spec.agent) = (size, agent.map(str::to_owned)));
        world.profile_for(&sized).to_owned()
    };
    assert_eq!(by(Some(TaskSize::L), None), "spec-l");
    assert_eq!([by(Some(TaskSize::M), None), by(None, None)], ["spec", "spec"]);
    assert_eq!(by(Some(TaskSize::L), Some("mine")), "mine", "what a person names counts for more");
}
