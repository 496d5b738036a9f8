//! Random lines before the landing queue: some tasks are bad, some pairs do not go together, checks flake, engines crash.
//! `LANDFALL_SEEDS` sets how many.

use std::collections::BTreeSet;

use landfall_model::gate::CheckOutcome;
use landfall_model::{Commit, QueueEffect, TaskId};

use crate::sim::Rng;
use crate::stage::{Stage, batch_of, has_left_the_line};

const SEEDS: u64 = 2_000;
const TASKS_MAX: usize = 14;

/// Who is bad.
struct Nature {
    bad: BTreeSet<u32>,
    pairs: BTreeSet<(u32, u32)>,
}

impl Nature {
    fn of(rng: &mut Rng, tasks: u32) -> Self {
        // Some seeds know only one kind, and some nobody who is bad.
        let (singles, couples) = (rng.below(4), rng.below(4));
        let mut any = |count: usize| -> Vec<u32> {
            (0..count).map(|_| 1 + u32::try_from(rng.below(tasks as usize)).expect("small")).collect()
        };
        let bad = any(singles).into_iter().collect();
        let (first, second) = (any(couples), any(couples));
        let pairs = first.into_iter().zip(second).filter(|(first, second)| first != second).collect();
        Self { bad, pairs }
    }

    fn is_red(&self, tasks: &[u32]) -> bool {
        let holds = |task: &u32| tasks.contains(task);
        self.bad.iter().any(holds) || self.pairs.iter().any(|(first, second)| holds(first) && holds(second))
    }

    fn is_good(&self, task: u32) -> bool {
        !self.bad.contains(&task)
            && !self.pairs.iter().any(|(first, second)| [*first, *second].contains(&task))
    }
}

fn numbers(heads: &[Commit]) -> Vec<u32> {
    heads.iter().map(|head| head.as_str()[1..].parse().expect("a head")).collect()
}

/// All work that a commit holds.
fn holds(commit: &Commit) -> Vec<u32> {
    commit.as_str().split('+').skip(1).map(|head| head[1..].parse().expect("a head")).collect()
}

fn walk(seed: u64) -> Stage {
    let mut rng = Rng::new(seed);
    let tasks = 1 + u32::try_from(rng.below(TASKS_MAX)).expect("small");
    let nature = Nature::of(&mut rng, tasks);
    let (speculate, flakes, crashes) = (rng.below(3), rng.below(2) == 0, rng.below(2) == 0);
    let mut stage = Stage::new().policy(|policy| {
        policy.speculate = speculate;
        policy.runaway = u32::MAX; // it has a story of its own
    });
    stage.policy.batch_max = 1 + rng.below(8);
    let rush = rng.below(2) == 0; // all at once, or one after the other
    let mut waiting = tasks;
    for round in 0.. {
        assert!(round < 2_000, "seed {seed}: it never ends");
        while waiting > 0 && (rush || rng.below(3) == 0) {
            waiting -= 1;
            stage.stand(tasks - waiting);
        }
        if crashes && rng.below(12) == 0 {
            stage.restart();
        }
        let entries = stage.journal.len();
        stage.look();
        if stage.orders.is_empty() {
            if waiting == 0 && stage.journal.len() == entries {
                break;
            }
            continue;
        }
        let order = stage.orders[rng.below(stage.orders.len())].clone();
        let (before, batch) = (stage.ejected.len(), batch_of(&order));
        match &order {
            QueueEffect::Check { prefix, .. } if flakes && rng.below(4) == 0 => {
                let red = nature.is_red(&holds(&prefix.commit));
                stage.checked(batch.0, if red { CheckOutcome::Timeout } else { CheckOutcome::Flaky });
            }
            _ => stage.answer(&order, &|heads| nature.is_red(&numbers(heads))),
        }
        if let Some(culprit) = stage.ejected.get(before) {
            check_ejected(seed, &stage, &nature, *culprit);
        }
    }
    check_end(seed, &stage, &nature, tasks);
    stage
}

/// Whoever was sent back makes red what is green without it.
fn check_ejected(seed: u64, stage: &Stage, nature: &Nature, culprit: TaskId) {
    let of = |batch: &&landfall_model::queue::LandingBatch| batch.members.iter().any(|it| it.task == culprit);
    let past = stage.queue.past_batches().map(|(batch, _, _)| batch);
    let batch = stage.queue.batches().iter().chain(past).filter(of).max_by_key(|it| it.id);
    let batch = batch.expect("it was in a batch");
    let place = batch.members.iter().position(|member| member.task == culprit).expect("it is in it");
    let with = holds(&batch.prefixes[place].commit);
    let without: Vec<u32> = with.iter().copied().filter(|task| *task != culprit.0).collect();
    assert!(
        nature.is_red(&with) && !nature.is_red(&without),
        "seed {seed}: {culprit} is no culprit in {with:?}"
    );
}

fn check_end(seed: u64, stage: &Stage, nature: &Nature, tasks: u32) {
    for (commit, _) in &stage.history {
        assert!(!nature.is_red(&holds(commit)), "seed {seed}: {commit} is red and landed");
    }
    let (landed, ejected) = (stage.landed(), stage.ejected());
    for task in 1..=tasks {
        let times = landed.iter().filter(|it| **it == task).count();
        let back = ejected.iter().filter(|it| **it == task).count();
        assert_eq!(
            times + back,
            1,
            "seed {seed}: T{task} landed {times} times and was sent back {back} times"
        );
        assert!(times == 1 || !nature.is_good(task), "seed {seed}: T{task} is good and did not land");
        let told = stage.tasks[&TaskId(task)].landed.is_some();
        assert_eq!(told, times == 1, "seed {seed}: T{task} does not know");
        assert!(has_left_the_line(&stage.tasks[&TaskId(task)]), "seed {seed}: T{task} still stands in line");
    }
    // Each batch lands somebody or finds a culprit; only the latter costs halves, and what stood on top.
    let halves = stage.policy.batch_max.next_power_of_two().trailing_zeros() as usize;
    let most = tasks as usize + ejected.len() * (halves + stage.policy.speculate);
    assert!(stage.checks <= most, "seed {seed}: {} verifications, {most} would do", stage.checks);
}

#[test]
fn in_the_end_all_who_are_good_have_landed_and_nothing_red_ever_did() {
    let seeds = std::env::var("LANDFALL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let (mut landed, mut ejected, mut together) = (0, 0, 0);
    for seed in 0..seeds {
        let stage = walk(seed);
        landed += stage.landed().len();
        ejected += stage.ejected().len();
        together += stage.history.iter().filter(|(_, tasks)| tasks.len() > 1).count();
    }
    println!("{landed} landed, {ejected} sent back, {together} landings of several");
    let enough = u64::try_from(ejected.min(together)).expect("a number") >= seeds / 10;
    assert!(enough, "too few to mean anything: {ejected} sent back, {together} landings of several");
}
