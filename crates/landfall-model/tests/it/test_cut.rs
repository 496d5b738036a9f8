//! The journal cut after every event, with the agent alive or dead, and the base ahead or not: recovery goes on
//! from there and every task still comes to its end.

use crate::sim::Sim;

const SEEDS: u64 = 40;
const TICKS: usize = 70; // about a hundred events, each of them a place to crash
const STAGED_TICKS: usize = 160; // until there are stages to cut between

#[test]
fn every_task_still_ends_wherever_the_journal_is_cut() {
    cut_everywhere(Sim::new, TICKS);
}

/// Plans, judges on the way, objectives, stages that are measured, given up and taken up anew.
#[test]
fn every_staged_task_still_ends_wherever_the_journal_is_cut() {
    cut_everywhere(Sim::staged, STAGED_TICKS);
}

fn cut_everywhere(begin: fn(u64) -> Sim, ticks: usize) {
    let mut cuts = 0;
    for seed in 0..SEEDS {
        let mut sim = begin(seed);
        for _ in 0..ticks {
            sim.tick();
        }
        for entries in 1..=sim.journal.len() {
            let (alive, ahead) = (entries % 2 == 0, entries % 3 != 0);
            let mut after = sim.cut(entries, alive, ahead);
            after.check_rebuilt();
            after.heal();
            cuts += 1;
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > SEEDS * 30, "the walks are too short to mean anything: {cuts} cuts");
}
