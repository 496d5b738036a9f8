//! What the console of `landfall serve` prints about loops: one line for each thing that happens to one.

use std::collections::BTreeMap;

use landfall_engine::model::auto::{AgentLoop, LoopState};
use landfall_engine::model::stride::current_agent_step;
use landfall_engine::store::Seq;

use crate::project::place::ProjectLocation;

/// What was printed last of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LoopMark {
    standing: LoopState,
    iterations: u32,
    step: Option<String>,
    stalls: u32,
    restarts: u32,
    is_waiting: bool,
}

/// Compares the loops of a project with what was printed of them.
#[derive(Debug, Default)]
pub(crate) struct LoopConsole {
    /// The last entry of the journal that was read.
    head: Option<Seq>,
    /// By session, and the moment when the loop began.
    printed: BTreeMap<(String, i64), LoopMark>,
}

impl LoopConsole {
    /// One for a server that starts: what is over already is no news.
    pub fn new(place: &ProjectLocation) -> Self {
        let mut console = Self::default();
        console.news(place);
        console
    }

    /// The lines for what happened since the last call.
    pub fn news(&mut self, place: &ProjectLocation) -> Vec<String> {
        let Ok(Some(reader)) = place.open_reader() else { return Vec::new() }; // no loop was begun yet
        let Ok(head) = reader.head() else { return Vec::new() };
        if self.head.replace(head.seq) == Some(head.seq) {
            return Vec::new();
        }
        let Ok(loops) = reader.loops() else { return Vec::new() };
        let mut lines = Vec::new();
        for of in loops.all_loops() {
            let key = (of.session.clone(), of.started.0);
            let before = self.printed.get(&key).cloned();
            if before.is_some()
                && of.over.is_some()
                && before.as_ref().is_some_and(|mark| mark.standing == of.loop_state())
            {
                continue;
            }
            let step = match reader.task(of.task) {
                Ok(Some(task)) if of.over.is_none() => current_agent_step(&task),
                Ok(_) | Err(_) => None,
            };
            let mark = LoopMark {
                standing: of.loop_state(),
                iterations: of.iterations,
                step,
                stalls: of.stalls,
                restarts: of.restarts,
                is_waiting: of.quota_since.is_some(),
            };
            lines.extend(describe_changes(of, before.as_ref(), &mark));
            self.printed.insert(key, mark);
        }
        lines
    }
}

/// What happened to a loop between two marks, one line each.
fn describe_changes(of: &AgentLoop, before: Option<&LoopMark>, now: &LoopMark) -> Vec<String> {
    let mut told = Vec::new();
    if before.is_none() {
        told.push(format!(
            "started on {} ({}), at most {} iterations and {} minutes",
            of.module, of.task, of.iterations_max, of.minutes_max
        ));
    }
    let was = |value: fn(&LoopMark) -> u32| before.map_or(0, value);
    if now.iterations > was(|mark| mark.iterations) {
        told.push(format!("finished iteration {} of {}", now.iterations, of.iterations_max));
    }
    if now.stalls > was(|mark| mark.stalls) {
        told.push(format!("the agent fell silent ({} in this step, {} in all)", of.stalls_step, now.stalls));
    }
    if now.restarts > was(|mark| mark.restarts) {
        told.push(format!("the agent broke off; start {} in a row", now.restarts + 1));
    }
    if now.is_waiting && !before.is_some_and(|mark| mark.is_waiting) {
        told.push("waits for the quota of its account".to_owned());
    }
    if let Some(step) = &now.step
        && before.and_then(|mark| mark.step.as_ref()) != Some(step)
    {
        told.push(format!("step {step}"));
    }
    if before.map(|mark| mark.standing) != Some(now.standing) {
        match now.standing {
            LoopState::Running => {}
            LoopState::Stopping => told.push("stopping: finishes what is under way".to_owned()),
            LoopState::Stopped | LoopState::Failed => {
                let why = of.over.map_or("", |over| over.why.wire_name());
                told.push(format!("{}: {why}", now.standing.wire_name()));
            }
        }
    }
    told.into_iter().map(|what| format!("loop {}: {what}", of.session)).collect()
}
