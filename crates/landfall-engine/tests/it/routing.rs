//! The flows `lifecycle` and `staged` as they are loaded, against the tables of the systems they contain: every result,
//! every way in, every command in every status. Where a flow departs from its table, it is written down here with the
//! reason, and a departure that is none any more fails as well.

use std::collections::{BTreeMap, BTreeSet};

use landfall_engine::flows;
use landfall_model::flow::FlowEdge;
use landfall_model::score::GatePoint;
use landfall_model::{EdgeTarget, Flow, FlowStep, StepKind, StepName, StepResult};

use crate::routing_tables::{
    COMMANDS, ENTRIES_V1, ENTRIES_V2, ENTRIES_V3, STATUSES, V1, V2, V3, allows, becomes, satisfies,
};

fn built_in(name: &str) -> Flow {
    let sources = flows::built_in();
    flows::parse_flow(&sources[name], &format!("{name}.toml"))
        .unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

/// The word the tables have for a step.
fn word(step: &FlowStep) -> &str {
    match &step.kind {
        StepKind::Agent { prompt, .. } => prompt,
        StepKind::Land => "merge",
        other => other.word(),
    }
}

/// The word the tables have for a result.
fn result_word(step: &FlowStep, result: StepResult) -> &'static str {
    match (&step.kind, result) {
        (StepKind::Land, StepResult::Landed) => "success",
        (StepKind::Target, StepResult::Answered) => "done",
        (StepKind::Converge, StepResult::Continue) => "advanced",
        (_, result) => result.word(),
    }
}

/// Whether verification is a step of the table, or happens unseen before every check.
#[derive(Clone, Copy, PartialEq)]
enum Verifying {
    Seen,
    Unseen,
}

/// Where an edge leads, in the words of the tables.
fn next(flow: &Flow, edge: &FlowEdge, verifying: Verifying) -> String {
    match &edge.to {
        EdgeTarget::End | EdgeTarget::Stop => "stop".to_owned(),
        EdgeTarget::Step(name) => {
            let step = flow.find_step(name).expect("a loaded flow leads to its own steps");
            match (&step.kind, verifying) {
                (StepKind::Verify, Verifying::Unseen) => word(after_verify(flow, step)).to_owned(),
                _ => word(step).to_owned(),
            }
        }
    }
}

fn after_verify<'a>(flow: &'a Flow, verify: &FlowStep) -> &'a FlowStep {
    let pass = verify.on.iter().find(|edge| edge.result == StepResult::Pass).expect("it can pass");
    let EdgeTarget::Step(name) = &pass.to else { panic!("a pass leads to a step") };
    flow.find_step(name).expect("a loaded flow leads to its own steps")
}

/// Where a flow leads elsewhere than its table: step, result, where it leads, and why.
type Departure = (&'static str, &'static str, &'static str, &'static str);

/// Compares every edge with the table, and every row of the table with the edges.
fn compare(flow: &Flow, table: &[(&str, &str, &str)], verifying: Verifying, departures: &[Departure]) {
    let mut used: BTreeSet<usize> = BTreeSet::new();
    let mut departed: BTreeSet<usize> = BTreeSet::new();
    for step in &flow.steps {
        if step.kind == StepKind::Verify && verifying == Verifying::Unseen {
            continue;
        }
        for edge in &step.on {
            let (of, result) = (word(step), result_word(step, edge.result));
            let to = next(flow, edge, verifying);
            let told = format!("{}: `{}` ends with {result} and leads to `{to}`", flow.name, step.name);
            let fits = |(by, when, _): &&(&str, &str, &str)| *by == of && (*when == result || *when == "*");
            let exact = table.iter().position(|row| row.0 == of && row.1 == result);
            let row = exact.or_else(|| table.iter().position(|row| fits(&row)));
            if let Some(row) = row {
                used.insert(row);
                if table[row].2 == to {
                    continue;
                }
            }
            let departure = departures.iter().position(|it| it.0 == of && it.1 == result && it.2 == to);
            let Some(departure) = departure else {
                panic!("{told}, the table says {:?}", row.map(|row| table[row]));
            };
            departed.insert(departure);
        }
    }
    let unused: Vec<_> = (0..table.len()).filter(|row| !used.contains(row)).map(|row| table[row]).collect();
    assert!(unused.is_empty(), "{}: no edge for the rows {unused:?}", flow.name);
    let idle: Vec<_> =
        (0..departures.len()).filter(|it| !departed.contains(it)).map(|it| departures[it]).collect();
    assert!(idle.is_empty(), "{}: no departures any more: {idle:?}", flow.name);
}

const PLAN_BLOCKED: Departure =
    ("plan", "blocked", "stop", "who cannot plan says so, and a person looks at it");
const RED: Departure =
    ("merge", "red", "exec", "green alone and red on the base: the base moved, the work follows");
const CONFLICT: Departure =
    ("merge", "conflict", "exec", "three rounds, then it stops and can be taken up again");

#[test]
fn the_lifecycle_follows_the_second_table() {
    compare(&built_in("lifecycle"), &V2, Verifying::Unseen, &[PLAN_BLOCKED, RED, CONFLICT]);
}

#[test]
fn c05_the_lifecycle_follows_the_first_table_but_lands_what_is_accepted() {
    // What the first has no word for, the second has: the checks on the way and the merge.
    let mut table = V1.to_vec();
    table.extend(V2.iter().filter(|row| !V1.iter().any(|one| (one.0, one.1) == (row.0, row.1))));
    let lands: Departure = ("check", "ACCEPT", "merge", "accepted work lands before it is reported");
    compare(&built_in("lifecycle"), &table, Verifying::Unseen, &[PLAN_BLOCKED, RED, CONFLICT, lands]);
}

#[test]
fn the_staged_flow_follows_the_third_table() {
    let departures = [
        PLAN_BLOCKED,
        RED,
        CONFLICT,
        ("plan", "done", "check", "a plan is no work: nothing of it can be run"),
        ("verify", "fail", "exec", "what is red at the end is mended before a judge is paid for reading it"),
        ("verify", "conflict", "exec", "what does not merge cannot be verified"),
        ("converge", "satisfied", "merge", "what is met lands before it is reported"),
        ("converge", "NEEDS_FIX", "exec", "the first stage has nothing to go back to"),
    ];
    // It has no words for landing: there, the result stays on its branch.
    let mut table = V3.to_vec();
    table.extend([("merge", "success", "report"), ("report", "*", "stop")]);
    compare(&built_in("staged"), &table, Verifying::Seen, &departures);
}

#[test]
fn c09_work_is_verified_before_it_is_judged() {
    for name in ["lifecycle", "staged"] {
        let flow = built_in(name);
        let leads_to = |from: &FlowStep, to: &StepName| {
            from.on.iter().any(|edge| matches!(&edge.to, EdgeTarget::Step(step) if step == to))
        };
        for check in &flow.steps {
            let StepKind::Check { checkpoint, .. } = &check.kind else { continue };
            for from in flow.steps.iter().filter(|from| leads_to(from, &check.name)) {
                let expected = if *checkpoint == GatePoint::PostPlan { "plan" } else { "verify" };
                assert_eq!(word(from), expected, "{name}: `{}` leads to `{}`", from.name, check.name);
            }
        }
    }
}

#[test]
fn thresholds_and_rounds_are_those_of_the_table() {
    let rounds = |checkpoint: GatePoint, result: StepResult| match (checkpoint, result) {
        (GatePoint::PostPlan, StepResult::NeedsRevision) => Some(3),
        (GatePoint::MidExec, StepResult::NeedsFix) => Some(2),
        (GatePoint::PostExec, StepResult::NeedsFix | StepResult::Replan) => Some(3),
        (GatePoint::MidExec, StepResult::Replan) => Some(3), // no table has a number; like at the end
        _ => None,
    };
    for name in ["lifecycle", "staged"] {
        let flow = built_in(name);
        for step in &flow.steps {
            let StepKind::Check { checkpoint, threshold } = &step.kind else { continue };
            let expected = match checkpoint {
                GatePoint::PostPlan => 700,
                GatePoint::MidExec => 600,
                GatePoint::PostExec => 750,
            };
            assert_eq!(*threshold, expected, "{name}: `{}`", step.name);
            for edge in &step.on {
                let told = format!("{name}: `{}` {}", step.name, edge.result.word());
                assert_eq!(edge.max, rounds(*checkpoint, edge.result), "{told}");
            }
        }
        let every = flow.steps.iter().find_map(|step| match &step.kind {
            StepKind::Agent { every, .. } if *every > 0 => Some(*every),
            _ => None,
        });
        assert_eq!(every, Some(3), "{name}: a judge looks after every third step");
    }
}

/// Where a task begins in a status, in the words of the tables.
fn entry(flow: &Flow, status: &str) -> Option<String> {
    let step = flow.find_step(flow.entries.get(status)?).expect("a loaded flow enters its own steps");
    let step = if step.kind == StepKind::Verify { after_verify(flow, step) } else { step };
    Some(match &step.kind {
        StepKind::Check { checkpoint, .. } => format!("check {}", checkpoint.word()),
        _ => word(step).to_owned(),
    })
}

#[test]
fn a_task_begins_where_the_tables_say() {
    let check = |name: &str, table: &[(&str, &str)], departures: &[(&str, &str)]| {
        let flow = built_in(name);
        for (status, expected) in table {
            let found = entry(&flow, status).unwrap_or_else(|| panic!("{name}: no way in for `{status}`"));
            let departure = departures.iter().find(|it| it.0 == *status);
            let expected = departure.map_or(*expected, |it| it.1);
            assert_eq!(found, expected, "{name}: `{status}`");
        }
        for over in ["blocked", "cancelled"] {
            assert_eq!(entry(&flow, over), None, "{name}: `{over}` is not entered, it stops");
        }
    };
    check("lifecycle", &ENTRIES_V2, &[]);
    // C6: the first always checked a plan that is made anew, even where there was none. The phase decides.
    check("lifecycle", &ENTRIES_V1, &[("re-planning", "plan")]);
    // A confirmed objective leads on to the next stage by itself; a refined one is confirmed first.
    check("staged", &ENTRIES_V3, &[("evolving", "target"), ("satisfied", "target")]);
}

#[test]
fn c06_a_plan_that_is_made_anew_is_entered_by_its_phase() {
    for name in ["lifecycle", "staged"] {
        let flow = built_in(name);
        for (phase, expected) in [
            ("re-planning", "plan"),
            ("re-planning/needs-plan", "plan"),
            ("re-planning/needs-check", "check post-plan"),
        ] {
            assert_eq!(entry(&flow, phase).as_deref(), Some(expected), "{name}: `{phase}`");
        }
    }
}

/// The status of a task that an edge has led on. A step may have another word for a task that has not begun it; it is
/// the word of those who come from another phase, not of those who are sent back.
fn status_after(flow: &Flow, from: &FlowStep, edge: &FlowEdge) -> String {
    match &edge.to {
        EdgeTarget::End => "complete".to_owned(),
        EdgeTarget::Stop => "blocked".to_owned(),
        EdgeTarget::Step(name) => {
            let step = flow.find_step(name).expect("a loaded flow leads to its own steps");
            let before = step.before.as_ref().filter(|_| from.phase != step.phase);
            before.unwrap_or(&step.phase).clone()
        }
    }
}

/// The step a command means in a status.
fn commanded<'a>(flow: &'a Flow, status: &str, command: &str) -> Option<&'a FlowStep> {
    let key = match command {
        "merge" => "land".to_owned(),
        command => command.replace(' ', "/"),
    };
    let step = flow.commands.get(&key)?.get(status)?;
    Some(flow.find_step(step).expect("a loaded flow commands its own steps"))
}

#[test]
fn the_matrix_of_status_and_command_is_that_of_the_table() {
    let flow = built_in("lifecycle");
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for status in STATUSES {
        // Notes in the margin and the end by hand have commands of their own.
        for command in COMMANDS.into_iter().filter(|it| !matches!(*it, "annotate" | "cancel")) {
            let step = commanded(&flow, status, command);
            assert_eq!(step.is_some(), allows(status, command), "`{command}` in `{status}`: {step:?}");
            let Some(step) = step else { continue };
            *seen.entry(command).or_default() += 1;
            for edge in &step.on {
                let result = result_word(step, edge.result);
                let told = format!("`{command}` in `{status}` ends with {result}");
                let found = match command {
                    // Planning itself moves the status; where it leads on, the check has it already.
                    "plan" => step.phase.clone(),
                    "exec" if result != "blocked" => step.phase.clone(),
                    _ => status_after(&flow, step, edge),
                };
                // What it meets while it is at work, it meets in the status it moved to.
                let status = if command == "exec" { "executing" } else { status };
                match becomes(status, command, result) {
                    Some(expected) => assert_eq!(found, expected, "{told}"),
                    // Results the table does not have: blocked at the end, red on the base.
                    None => assert!(["BLOCKED", "red"].contains(&result), "{told}: {found}"),
                }
            }
        }
    }
    assert_eq!(seen.len(), COMMANDS.len() - 2, "{seen:?}");
}

#[test]
fn a_need_is_met_at_or_past_its_least_status_by_the_table() {
    let order = ["draft", "planning", "review", "executing", "complete"];
    for (place, status) in order.into_iter().enumerate() {
        for (least, min) in order.into_iter().enumerate() {
            assert_eq!(satisfies(status, min), place >= least, "{status} for {min}");
        }
        for never in ["blocked", "re-planning", "cancelled"] {
            assert!(!satisfies(never, status) && !satisfies(status, never), "{never}, {status}");
        }
    }
}

/// A walk at random over both: the flow with its bounds, and the table with counters of its own.
#[test]
fn walks_at_random_go_where_the_table_says() {
    let flow = built_in("lifecycle");
    for seed in 0..5_000u64 {
        let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = move |below: usize| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            usize::try_from((state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below as u64).expect("small")
        };
        let mut step = flow.find_step(&flow.entry).expect("it has an entry");
        let mut trace: Vec<String> = Vec::new();
        for _ in 0..60 {
            let edge = &step.on[draw(step.on.len())];
            let (of, result) = (word(step), result_word(step, edge.result));
            trace.push(format!("{} {result}", step.name));
            let told = || format!("seed {seed}: {}", trace.join(", "));
            let row = V2.iter().find(|row| row.0 == of && (row.1 == result || row.1 == "*"));
            let to = next(&flow, edge, Verifying::Unseen);
            if let Some(row) = row.filter(|_| !["blocked", "conflict"].contains(&result)) {
                assert_eq!(to, row.2, "{}", told());
            }
            let EdgeTarget::Step(name) = &edge.to else { break };
            step = flow.find_step(name).expect("a loaded flow leads to its own steps");
            // Nothing is executed that no check let pass, and nothing is merged that was not accepted.
            let last =
                |wanted: &[&str]| trace.iter().rev().find(|it| wanted.iter().any(|end| it.ends_with(end)));
            if word(step) == "merge" {
                assert_eq!(
                    last(&["ACCEPT", "REPLAN", "NEEDS_FIX"]).map(|it| it.ends_with("ACCEPT")),
                    Some(true),
                    "{}",
                    told()
                );
            }
            if word(step) == "exec" {
                let plan = trace.iter().rposition(|it| it.starts_with("plan ") || it.starts_with("re-plan "));
                let pass = trace.iter().rposition(|it| it.ends_with(" PASS"));
                assert!(pass > plan, "{}", told());
            }
        }
    }
}
