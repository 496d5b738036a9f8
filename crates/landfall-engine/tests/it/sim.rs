//! A simulated world around the real core: one seed, no clock, no thread.
//!
//! The journal, the repository, workspaces, agents, checks, people, the disk and the clock are simulated; what decides is
//! the engine's own. Each seed switches kinds of trouble on and off and lets them happen; then all trouble ends, and
//! everything has to come to a good end by itself. After every turn the invariants are checked, each named by its number.
//!
//! `LANDFALL_SEEDS=500000` walks for longer, `LANDFALL_SEED=17` walks one seed. A seed that ever failed is kept in
//! [`REGRESSIONS`].

mod check;
mod git;
mod host;
mod outside;
mod people;
mod rng;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use world::Sim;

/// Seeds that once showed a bug.
const REGRESSIONS: [u64; 0] = [];

const SEEDS: u64 = 10_000;
const FACTS: usize = 300; // a walk is that long before all trouble ends
const TICKS_MAX: u64 = 2_500; // or that, when nothing much happens

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Walks one seed to its end.
fn walk(seed: u64) -> Sim {
    let mut sim = Sim::new(seed);
    while sim.journal.len() < FACTS && sim.ticks < TICKS_MAX {
        sim.tick();
    }
    sim.heal();
    sim
}

/// Walks many seeds on all cores. Gives what was met, or the words of the first seed that failed.
fn walk_all(seeds: impl Iterator<Item = u64> + Send) -> Result<BTreeMap<String, u64>, String> {
    let seeds = Mutex::new(seeds);
    let met: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let failed: Mutex<Option<String>> = Mutex::default();
    let stop = AtomicBool::new(false);
    let walked = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let Some(seed) = seeds.lock().expect("nobody panics here").next() else { return };
                    match catch_unwind(AssertUnwindSafe(|| walk(seed))) {
                        Ok(sim) => {
                            let mut met = met.lock().expect("nobody panics here");
                            for (what, count) in sim.book.met {
                                *met.entry(what).or_default() += u64::from(count);
                            }
                            *met.entry("facts".to_owned()).or_default() += sim.journal.len() as u64;
                            *met.entry("turns".to_owned()).or_default() += sim.turns;
                            *met.entry("landings".to_owned()).or_default() += u64::from(sim.book.landings);
                            walked.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(panic) => {
                            stop.store(true, Ordering::SeqCst);
                            let words = panic.downcast_ref::<String>().cloned();
                            let words = words.or(panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
                            let words = format!("seed {seed} failed: {}", words.unwrap_or_default());
                            failed.lock().expect("nobody panics here").get_or_insert(words);
                        }
                    }
                }
            });
        }
    });
    let mut met = met.into_inner().expect("nobody panics here");
    met.insert("seeds".to_owned(), walked.into_inner());
    match failed.into_inner().expect("nobody panics here") {
        Some(words) => Err(words),
        None => Ok(met),
    }
}

#[test]
fn every_seed_keeps_the_invariants_and_comes_to_a_good_end() {
    std::panic::set_hook(Box::new(|_| {})); // the words of the first failure are enough
    let met = match number("LANDFALL_SEED") {
        Some(seed) => walk_all(std::iter::once(seed)),
        None => {
            let first = number("LANDFALL_FIRST_SEED").unwrap_or(0);
            walk_all(REGRESSIONS.into_iter().chain(first..first + number("LANDFALL_SEEDS").unwrap_or(SEEDS)))
        }
    };
    drop(std::panic::take_hook());
    match met {
        Ok(met) => println!("{met:#?}"),
        Err(words) => panic!("{words}"),
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in [1, 2, 3] {
        assert!(walk(seed).trace() == walk(seed).trace(), "seed {seed} gave two traces");
    }
}
