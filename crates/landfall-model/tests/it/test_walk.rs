//! Walks at random through a simulated world. `LANDFALL_SEEDS` sets how many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use expect_test::expect;
use landfall_model::{Event, Fact};

use crate::sim::Sim;

const SEEDS: u64 = 10_000;
const TICKS: usize = 400;
const THREADS: u64 = 2; // the machine the tests are measured on has two cores

fn seeds() -> u64 {
    std::env::var("LANDFALL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

/// One walk: trouble first, then none, and everything comes to an end.
fn walk(seed: u64) -> Sim {
    let mut sim = Sim::new(seed);
    for _ in 0..TICKS {
        sim.tick();
    }
    sim.check_rebuilt();
    sim.heal();
    sim
}

#[test]
fn the_invariants_hold_on_every_walk() {
    let (seeds, heard) = (seeds(), AtomicU64::new(0));
    thread::scope(|scope| {
        for first in 0..THREADS {
            let heard = &heard;
            scope.spawn(move || {
                for seed in (first..seeds).step_by(usize::try_from(THREADS).expect("small")) {
                    heard.fetch_add(walk(seed).heard, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{seeds} seeds, {} pieces of news", heard.into_inner());
}

#[test]
fn the_walks_meet_every_fact_every_verdict_and_every_end() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..400 {
        for entry in walk(seed).journal {
            let Fact::Task(_, event) = &entry.fact else { continue };
            *met.entry(event.name().to_owned()).or_default() += 1;
            let more = match event {
                Event::IterationEnded { verdict, .. } => format!("verdict {}", first_word(verdict)),
                Event::Yielded { why, .. } => format!("yielded {}", first_word(why)),
                Event::Waited { wait, .. } => format!("wait {}", wait.word()),
                Event::Left { result, .. } => format!("left {}", result.word()),
                Event::StopAsked { stop } => format!("stop {}", first_word(stop)),
                Event::Ended(ending) => format!("end {}", ending.code.word()),
                Event::Entered { opening, .. } => format!("opening {}", first_word(opening)),
                _ => continue,
            };
            *met.entry(more).or_default() += 1;
        }
    }
    let words = met.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
    println!("{met:?}");
    expect![[r#"
        added
        base-moved
        bound
        collected
        conflicted
        edited
        end agent_blocked
        end agent_crashed
        end agent_lost
        end agent_not_started
        end conflict_limit
        end edge_limit
        end landing_mismatch
        end machine
        end max_iterations
        end nothing_changed
        end person
        end rejected
        end stall_limit
        end task_limit
        ended
        entered
        iteration-began
        iteration-ended
        landed
        left
        left answered
        left blocked
        left changes
        left conflict
        left done
        left fail
        left landed
        left pass
        left red
        offered
        opening Check
        opening FreshWorkspace
        opening Land
        opening Report
        opening Workspace
        reported
        resumed
        retried
        review-wanted
        reviewed
        stop Cancel
        stop Interrupt
        stop Pause
        stop-asked
        verdict Blocked
        verdict Complete
        verdict Continue
        verdict Crashed
        verdict Lost
        verdict NotStarted
        verdict OutOfTime
        verdict Pending
        verdict Quota
        verdict Stalled
        verdict Stopped
        verdict Transient
        verified
        wait backoff
        wait gate broken
        wait pause
        wait question
        wait quota
        waited
        warned
        workspace-made
        workspace-removed
        yielded
        yielded Asked
        yielded Crashed
        yielded Drained
        yielded GateBroken
        yielded Lost
        yielded Machine
        yielded NotStarted
        yielded NothingChanged
        yielded Quota
        yielded Stalled
        yielded Stopped
        yielded Transient"#]]
    .assert_eq(&words);
}

fn first_word(of: &impl std::fmt::Debug) -> String {
    format!("{of:?}").split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

#[test]
fn the_same_seed_is_the_same_walk() {
    for seed in 0..100 {
        let (first, second) = (walk(seed), walk(seed));
        assert!(first.journal == second.journal, "seed {seed} is not the same walk twice");
    }
}
