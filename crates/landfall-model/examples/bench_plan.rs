//! B4: what one grant costs, from 100 to 100,000 tasks, and what a task weighs in memory. One JSON line for each.
//!
//! A grant is `plan` and the `put` of the task that follows from it. Here the task that was granted begins, and
//! the oldest one that runs is over, so that the world stays as full as it was.
//!
//! `B4` is a backlog with priorities, needs and families. `B4 shared` has four profiles with limits on three accounts, eight
//! areas with limits, and files on every task, so that many would meet others and are passed over.
//!
//! `cargo run --release -p landfall-model --example bench_plan`

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use landfall_model::flow::FlowEdge;
use landfall_model::{
    Attempt, AttemptPhase, ConcurrencyLimits, EdgeTarget, EndCode, EndKind, Ending, Flow, FlowStep,
    ProfileRoute, RepoArea, ScheduleLimits, StepKind, StepName, StepResult, Task, TaskId, TaskSpec,
    TaskState, Timestamp, World, plan,
};

/// Counts what is held, so that the weight of a world is exact.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const GRANTS: usize = 2_000; // enough for a steady median, few enough to leave tasks in line at 100,000
const SLOTS: u32 = 8;
const AREAS: u32 = 8;
const PROFILES: [&str; 4] = ["default", "quick", "careful", "judge"];

/// What a backlog is made of.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Shared,
}

fn main() {
    for kind in [Kind::Plain, Kind::Shared] {
        for tasks in [100, 1_000, 10_000, 100_000] {
            let before = HELD.load(Ordering::Relaxed);
            let world = backlog(kind, tasks);
            let bytes = (HELD.load(Ordering::Relaxed) - before) / tasks as usize;
            let mut costs = grants(&world, tasks);
            costs.sort_unstable();
            let (median, slow) = (costs[costs.len() / 2], costs[costs.len() * 99 / 100]);
            let name = match kind {
                Kind::Plain => "B4",
                Kind::Shared => "B4 shared",
            };
            println!(
                "{{\"bench\":\"{name}\",\"tasks\":{tasks},\"grants\":{},\"median_ns\":{median},\"p99_ns\":{slow},\
                 \"bytes_per_task\":{bytes}}}",
                costs.len()
            );
        }
    }
}

/// A backlog as people have it: words, priorities, a need now and then, groups under a parent.
fn backlog(kind: Kind, tasks: u32) -> World {
    let flow = Arc::new(flow());
    let mut world = World::new(BTreeMap::from([("loop".to_owned(), flow)]), "loop");
    if let Kind::Shared = kind {
        share(&mut world);
    }
    for id in 1..=tasks {
        let mut spec =
            TaskSpec::new(&format!("Task {id}: make the {} work with the rest", id % 97)).expect("a title");
        spec.body = "Some words about what is wanted, as long as people write them.".to_owned();
        spec.priority = (id % 10) as u8;
        if id % 7 == 0 && id > 7 {
            spec.needs.insert(TaskId(id - 7));
        }
        if id % 5 != 0 && id > 5 {
            spec.parent = Some(TaskId(id / 5 * 5));
        }
        if let Kind::Shared = kind {
            spec.agent = Some(PROFILES[id as usize % PROFILES.len()].to_owned());
            // A file of some part, and now and then a pattern over all of it or a file of another part.
            let (part, other) = (id % 11, id % 13);
            let file = |part: u32| format!("part{part}/src/f{}.rs", id % 5);
            spec.touches.insert(file(part).parse().expect("a path"));
            match id % 6 {
                0 => {
                    spec.touches.replace(format!("part{part}/**/*.rs").parse().expect("a pattern"));
                }
                1 => {
                    spec.touches.replace(file(other).parse().expect("a path"));
                }
                _ => {}
            }
        }
        world.put_task(Task::from_spec(TaskId(id), spec, Timestamp(0)));
    }
    world
}

/// Limits of every kind, and two profiles on one account.
fn share(world: &mut World) {
    let route = |profile: &str| {
        let account = if profile == "judge" { "careful" } else { profile };
        (profile.to_owned(), ProfileRoute { account: account.to_owned(), failover: None })
    };
    world.set_routes(PROFILES.into_iter().map(route).collect());
    let caps = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 3)).collect();
    let area = |at: u32| RepoArea {
        name: format!("part{at}"),
        paths: vec![format!("part{at}/").parse().expect("a path")],
        slots: 2,
    };
    world.set_caps(ConcurrencyLimits {
        profiles: caps(&PROFILES),
        accounts: caps(&["quick", "careful"]),
        areas: (0..AREAS).map(area).collect(),
    });
}

/// The cost of each grant in turn, in ns. A small backlog is gone through several times.
fn grants(backlog: &World, tasks: u32) -> Vec<u64> {
    let limits = ScheduleLimits { slots: SLOTS, lanes: 2, now: Timestamp(0), spent: None };
    let mut costs = Vec::new();
    while costs.len() < GRANTS {
        let mut world = backlog.clone();
        let mut running: VecDeque<Task> = VecDeque::new();
        for _ in 0..GRANTS.min(tasks as usize / 2) {
            if running.len() == SLOTS as usize {
                let over = running.pop_front().expect("it is full");
                world.put_task(ended(over));
            }
            // What `step` makes of the grant is not ours to measure: it is made before the clock starts.
            let Some(grant) = plan(&world, &limits) else {
                let Some(over) = running.pop_front() else { break };
                world.put_task(ended(over)); // every line that is left is full
                continue;
            };
            let mut task = (**world.get(grant.task).expect("granted")).clone();
            task.attempt = Attempt(1);
            task.state = TaskState::Active {
                step: StepName::new("work"),
                doing: AttemptPhase::Preparing { fresh: true, stop: None },
            };
            running.push_back(task.clone());
            let start = Instant::now();
            let granted = black_box(plan(&world, &limits));
            world.put_task(task);
            costs.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
            assert_eq!(granted, Some(grant));
        }
    }
    costs
}

fn ended(mut task: Task) -> Task {
    task.state =
        TaskState::Ended(Ending { kind: EndKind::Done, code: EndCode::Accepted, detail: String::new() });
    task
}

fn flow() -> Flow {
    let on = |result, to| FlowEdge { result, to, max: None };
    let work = FlowStep {
        name: StepName::new("work"),
        kind: StepKind::Agent { prompt: "work".to_owned(), output: Vec::new(), iterate: true, every: 0 },
        phase: "work".to_owned(),
        before: None,
        agent: None,
        on: vec![on(StepResult::Done, EdgeTarget::End)],
    };
    Flow {
        name: "loop".to_owned(),
        about: String::new(),
        entry: StepName::new("work"),
        entries: BTreeMap::new(),
        commands: BTreeMap::new(),
        style: None,
        steps: vec![work],
    }
}
