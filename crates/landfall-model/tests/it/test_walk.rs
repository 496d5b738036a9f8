//! Walks at random through a simulated world. `LANDFALL_SEEDS` sets how many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use landfall_model::staged::StagedEvent;
use landfall_model::{EngineEvent, Event, Fact, SessionStart, Verdict};

use crate::sim::Sim;

const SEEDS: u64 = 5_000;
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

const STAGED_SEEDS: u64 = 600;

/// What walks of tasks with plans and objectives must meet.
const MUST_MEET_STAGED: &str = "planned advanced judged objective-set objective-shown objective-confirmed stage-began \
    converged given-up refined refinement-weighed refinements-taken refinement-withdrawn reopened directed landed \
    left:PASS left:NEEDS_REVISION left:ACCEPT left:NEEDS_FIX left:REPLAN left:CONTINUE left:rollback left:satisfied left:mid-exec \
    stage:2 stage:3 end:check_failed end:check_blocked";

#[test]
fn the_invariants_hold_on_every_walk_of_tasks_with_stages_and_they_meet_everything() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let seeds = seeds().min(STAGED_SEEDS);
    for seed in 0..seeds {
        let mut sim = Sim::staged(seed);
        for _ in 0..TICKS {
            sim.tick();
        }
        sim.check_rebuilt();
        sim.heal();
        for entry in &sim.journal {
            let Fact::Task(_, event) = &entry.fact else { continue };
            let more = match event {
                Event::Left { result, .. } => format!("left:{}", result.word()),
                Event::Ended(ending) => format!("end:{}", ending.code.word()),
                Event::Staged(StagedEvent::StageBegan { number, .. }) => format!("stage:{number}"),
                _ => String::new(),
            };
            *met.entry(more).or_default() += 1;
            let name = match event {
                Event::Staged(event) => event.name(),
                event => event.name(),
            };
            *met.entry(name.to_owned()).or_default() += 1;
        }
    }
    println!("{met:?}");
    let missed: Vec<_> =
        MUST_MEET_STAGED.split_whitespace().filter(|word| !met.contains_key(*word)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}");
}

/// What the walks must meet, or they prove little. Rarer things happen too; stories tell those.
const MUST_MEET: &str = "added edited offered bound entered workspace-made iteration-began iteration-ended warned \
    collected verified conflicted landing-began requeued ejected sent-back review-owed signed left yielded waited resumed review-wanted reviewed landed reported \
    stop-asked ended retried workspace-removed \
    opening:Workspace opening:FreshWorkspace opening:Check opening:Queue opening:Report \
    verdict:Complete verdict:Blocked verdict:Pending verdict:Continue verdict:Quota verdict:Transient \
    verdict:Unauthorized verdict:SessionGone verdict:Looping verdict:OverBudget verdict:ContextUsedUp \
    verdict:Crashed verdict:OutOfTime verdict:Stalled verdict:Stopped verdict:NotStarted verdict:Lost \
    yielded:Drained yielded:Stopped yielded:Crashed yielded:Lost yielded:Stalled yielded:NotStarted \
    yielded:Quota yielded:Transient yielded:Asked yielded:GateBroken yielded:NothingChanged yielded:Machine \
    yielded:Budget yielded:Overspent yielded:Login yielded:Looping yielded:SessionGone \
    over:Attempt over:Task over:Run over:Day account:Open account:UsedUp account:Troubled account:LoggedOut another-run \
    rescued opened-by-an-answer overruled warned:Discovery talk:new talk:resumed talk:summed-up driven:itself driven:another \
    wait:quota wait:login wait:question wait:backoff wait:pause wait:conflict wait:gate \
    left:done left:blocked left:pass left:fail left:conflict left:landed left:red left:answered left:changes \
    stop:Pause stop:Interrupt stop:Cancel \
    end:max_iterations end:task_limit end:agent_blocked end:agent_not_started end:nothing_changed \
    end:reasoning_loop end:budget end:context_budget end:conflict_limit end:landing_mismatch end:machine end:rejected end:person \
    requeued:unsure redo:fresh queue:formed-1 queue:formed-2 queue:formed-3 queue:speculated queue:verified queue:searched \
    queue:pass queue:flaky queue:fail queue:timeout queue:broken queue:pre-existing queue:landing queue:landing-in-part \
    queue:landed queue:dropped queue:held-gate queue:held-machine queue:held-person queue:held-runaway queue:resumed \
    messaged held released limits-set stop:Redirect stop:Block yielded:Redirected yielded:Held";

#[test]
fn the_walks_meet_every_fact_every_verdict_and_most_ends() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..400 {
        let sim = walk(seed);
        *met.entry("rescued".to_owned()).or_default() += sim.rescues;
        *met.entry("opened-by-an-answer".to_owned()).or_default() += sim.openings;
        for (word, times) in &sim.met {
            *met.entry(word.clone()).or_default() += times;
        }
        *met.entry("overruled".to_owned()).or_default() += sim.overrulings;
        for entry in &sim.journal {
            let (id, event) = match &entry.fact {
                Fact::Task(id, event) => (*id, event),
                Fact::Engine(EngineEvent::Account { state, .. }) => {
                    *met.entry(format!("account:{}", first_word(state))).or_default() += 1;
                    continue;
                }
                Fact::Engine(EngineEvent::RunStarted { .. }) => {
                    *met.entry("another-run".to_owned()).or_default() += 1;
                    continue;
                }
                Fact::Engine(_) => continue,
            };
            *met.entry(event.name().to_owned()).or_default() += 1;
            let more = match event {
                Event::IterationEnded { verdict: Verdict::OverBudget { scope, .. }, .. } => {
                    *met.entry(format!("over:{scope:?}")).or_default() += 1;
                    "verdict:OverBudget".to_owned()
                }
                Event::IterationEnded { verdict, .. } => format!("verdict:{}", first_word(verdict)),
                Event::IterationBegan { talk, .. } => match talk {
                    SessionStart::New => "talk:new".to_owned(),
                    SessionStart::Resumed { compact: false, .. } => "talk:resumed".to_owned(),
                    SessionStart::Resumed { compact: true, .. } => "talk:summed-up".to_owned(),
                },
                Event::Bound { driving, .. } => {
                    let own = sim.profile_of(id) == driving.profile;
                    format!("driven:{}", if own { "itself" } else { "another" })
                }
                Event::Warned(warning) => format!("warned:{}", first_word(warning)),
                Event::Yielded { why, .. } => format!("yielded:{}", first_word(why)),
                Event::Waited { wait, .. } => format!("wait:{}", first_word(&wait.word()).trim_matches('"')),
                Event::Left { result, .. } => format!("left:{}", result.word()),
                Event::Requeued { unsure: true, .. } => "requeued:unsure".to_owned(),
                Event::Retried { fresh: true, .. } => "redo:fresh".to_owned(),
                Event::StopAsked { stop } => format!("stop:{}", first_word(stop)),
                Event::Ended(ending) => format!("end:{}", ending.code.word()),
                Event::Entered { opening, .. } => format!("opening:{}", first_word(opening)),
                _ => continue,
            };
            *met.entry(more).or_default() += 1;
        }
    }
    println!("{met:?}");
    let missed: Vec<_> =
        MUST_MEET.split_whitespace().filter(|word| met.get(*word).is_none_or(|times| *times == 0)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}");
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
