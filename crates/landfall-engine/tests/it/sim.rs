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

use world::Sim;

/// Seeds that once showed a bug.
const REGRESSIONS: [u64; 11] = [1, 5, 21, 39, 219, 269, 672, 857, 1442, 2929, 4005];

const SEEDS: u64 = 5_000; // in every test run; `LANDFALL_SEEDS=100000` walks further
const FACTS: usize = 300; // a walk is that long before all trouble ends
const TICKS_MAX: u64 = 2_500; // or that, when nothing much happens

/// What walks have to meet, or they show nothing about it.
const MET: [&str; 48] = [
    "abandoned",
    "account",
    "begun behind",
    "branch deleted",
    "branch rewritten",
    "broken",
    "checkpoint Dropped",
    "checkpoint Made",
    "conflicted",
    "crash",
    "edited",
    "ejected",
    "flaky",
    "held",
    "held deleted",
    "held gate",
    "held machine",
    "held person",
    "held rewritten",
    "held runaway",
    "landed alone",
    "landed in part",
    "landed together",
    "limits-set",
    "message heard",
    "messaged",
    "offered",
    "pilot Assigned",
    "pilot ModeSet",
    "pilot Paused",
    "pilot Resumed",
    "pilot Settled",
    "pre-existing",
    "publish held",
    "push",
    "released",
    "requeued",
    "retried",
    "review-wanted",
    "rewrite accepted",
    "sent-back",
    "signed",
    "speculated",
    "sprint Completing",
    "sprint Paused",
    "sprint Resumed",
    "stop-asked",
    "timeout",
];
const MET_MIN: u64 = 5;

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

/// Walks many seeds on all cores. Gives what was met, or the words of those that failed first.
fn walk_all(
    seeds: impl Iterator<Item = u64> + Send,
    walk: impl Fn(u64) -> Sim + Sync,
) -> Result<BTreeMap<String, u64>, String> {
    let seeds = Mutex::new(seeds);
    let met: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let failed: Mutex<Vec<(u64, String)>> = Mutex::default();
    let failures_max = number("LANDFALL_FAILURES").unwrap_or(1) as usize;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        loop {
            if failed.lock().expect("nobody panics here").len() >= failures_max {
                return;
            }
            let Some(seed) = seeds.lock().expect("nobody panics here").next() else { return };
            match catch_unwind(AssertUnwindSafe(|| walk(seed))) {
                Ok(sim) => {
                    let mut met = met.lock().expect("nobody panics here");
                    let mut count = |what: &str, more: u64| *met.entry(what.to_owned()).or_default() += more;
                    sim.book.met.iter().for_each(|(what, more)| count(what, u64::from(*more)));
                    count("seeds", 1);
                    count("facts", sim.journal.len() as u64);
                    count("turns", sim.turns);
                    count("landings", u64::from(sim.book.landings));
                }
                Err(panic) => {
                    let words = panic.downcast_ref::<String>().cloned();
                    let words = words.or(panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
                    failed.lock().expect("nobody panics here").push((seed, words.unwrap_or_default()));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let mut failed = failed.into_inner().expect("nobody panics here");
    failed.sort();
    let Some((seed, words)) = failed.first() else {
        return Ok(met.into_inner().expect("nobody panics here"));
    };
    let others = failed[1..].iter().map(|(seed, words)| {
        let line = words.lines().next().unwrap_or_default();
        format!("\nand seed {seed}: {}", line.chars().take(220).collect::<String>())
    });
    Err(format!("`LANDFALL_SEED={seed}` walks it again: {words}{}", others.collect::<String>()))
}

/// The words of a panic are caught and told by whoever walks; the noise of it is not wanted besides.
fn quietly<T>(what: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|_| {}));
    let done = what();
    drop(std::panic::take_hook());
    done
}

#[test]
fn every_seed_keeps_the_invariants_and_comes_to_a_good_end() {
    let met = quietly(|| match number("LANDFALL_SEED") {
        Some(seed) => walk_all(std::iter::once(seed), walk),
        None => {
            let first = number("LANDFALL_FIRST_SEED").unwrap_or(0);
            {
                let seeds = first..first + number("LANDFALL_SEEDS").unwrap_or(SEEDS);
                walk_all(REGRESSIONS.into_iter().chain(seeds), walk)
            }
        }
    });
    let met = met.unwrap_or_else(|words| panic!("{words}"));
    println!("{met:#?}");
    if met.get("seeds").is_some_and(|seeds| *seeds >= SEEDS) {
        let missed = MET.iter().find(|what| met.get(**what).is_none_or(|count| *count < MET_MIN));
        assert!(missed.is_none(), "the walks do not meet enough of `{}`", missed.unwrap_or(&""));
        assert!(met["facts"] >= met["seeds"] * FACTS as u64, "the walks are too short");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in [1, 2, 3] {
        assert!(walk(seed).trace() == walk(seed).trace(), "seed {seed} gave two traces");
    }
}

/// A landing queue with a lot to do, until nothing is left.
fn drain_a_queue(seed: u64) -> Sim {
    let mut rng = rng::Rng::new(seed);
    let scene = world::Scene::busy_queue(&mut rng);
    let mut sim = Sim::with(seed, rng, scene);
    for _ in 0..30 {
        sim.boot();
        while sim.core.is_some() && sim.ticks < 20_000 {
            sim.tick();
        }
        if sim.book.landings >= 47 || sim.core.is_some() {
            break;
        }
        sim.once(|sim| sim.person_lets_go_on(1)); // who gave up is tried again
    }
    let landed = sim.book.landings;
    sim.demand(landed >= 47, || format!("36 only {landed} of 50 have landed"));
    sim.heal();
    let landed = sim.book.landings;
    sim.demand(landed >= 50, || format!("30 only {landed} of 50 landed in the end"));
    sim
}

#[test]
fn two_thousand_landings_are_green_and_nobody_innocent_is_left_out() {
    let landings = number("LANDFALL_LANDINGS").unwrap_or(2_000);
    let met = quietly(|| walk_all(0..landings.div_ceil(50), drain_a_queue));
    let met = met.unwrap_or_else(|words| panic!("{words}"));
    let of = |what: &str| met.get(what).copied().unwrap_or(0);
    println!("{met:#?}");
    assert!(of("landings") >= landings);
    // A check in fifty fails for nothing; of the work, two in five meet a conflict; batches are searched.
    assert!(of("conflicted") * 5 >= of("landings") * 2, "too few conflicts: {}", of("conflicted"));
    assert!(of("flaky") * 100 >= of("pass"), "too few flakes: {}", of("flaky"));
    assert!(of("ejected") > 50 && of("landed in part") > 10 && of("landed together") > 100);
}

#[cfg(feature = "seeded-bugs")]
#[test]
fn every_seeded_bug_is_found() {
    use landfall_model::seeded_bugs::{SeededBug, activate};
    let wanted = std::env::var("LANDFALL_SEEDED_BUG").ok();
    let of = |bug: &SeededBug| wanted.as_ref().is_none_or(|wanted| *wanted == format!("{bug:?}"));
    let mut missed = Vec::new();
    for bug in SeededBug::ALL.into_iter().filter(of) {
        activate(Some(bug));
        let walked = std::sync::atomic::AtomicU64::new(0);
        let count = |seed| {
            walked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            seed
        };
        match quietly(|| walk_all((0..SEEDS).map(count), walk)) {
            Ok(_) => missed.push(bug),
            Err(words) => {
                let line: String = words.lines().next().unwrap_or_default().chars().take(160).collect();
                println!("{bug:?}: {} seeds: {line}", walked.into_inner());
            }
        }
    }
    activate(None);
    assert!(missed.is_empty(), "{SEEDS} seeds do not show {missed:?}");
}
