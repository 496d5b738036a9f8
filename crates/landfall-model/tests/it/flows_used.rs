//! The flows these tests follow. They are small and written out, so that a story can be read without a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_model::flow::FlowEdge;
use landfall_model::score::GatePoint;
use landfall_model::{AgentDriveStyle, EdgeTarget, Flow, FlowStep, StepKind, StepName, StepResult};

/// An edge: `on("pass", "land")`. `end` and `stop` are what they are in a flow file.
pub fn on(result: &str, to: &str) -> FlowEdge {
    let result = StepResult::from_word(result).expect("a known result");
    let to = match to {
        "end" => EdgeTarget::End,
        "stop" => EdgeTarget::Stop,
        step => EdgeTarget::Step(StepName::new(step)),
    };
    FlowEdge { result, to, max: None }
}

/// An edge that may be taken `max` times.
pub fn at_most(max: u32, edge: FlowEdge) -> FlowEdge {
    FlowEdge { max: Some(max), ..edge }
}

pub fn step<const N: usize>(name: &str, kind: StepKind, on: [FlowEdge; N]) -> FlowStep {
    FlowStep {
        name: StepName::new(name),
        kind,
        phase: format!("{name}-phase"),
        before: None,
        agent: None,
        on: on.into(),
    }
}

pub fn agent() -> StepKind {
    StepKind::Agent { prompt: "work".to_owned(), output: Vec::new(), iterate: true, every: 0 }
}

pub fn agent_once() -> StepKind {
    StepKind::Agent { prompt: "plan".to_owned(), output: Vec::new(), iterate: false, every: 0 }
}

pub fn ask(question: &str) -> StepKind {
    StepKind::Ask { question: question.to_owned() }
}

pub fn flow<const N: usize>(name: &str, steps: [FlowStep; N]) -> Flow {
    Flow {
        name: name.to_owned(),
        about: format!("The flow {name}."),
        entry: steps.first().map_or_else(|| StepName::new("none"), |step| step.name.clone()),
        entries: BTreeMap::new(),
        commands: BTreeMap::new(),
        style: None,
        steps: steps.into(),
    }
}

/// Work until COMPLETE and verified, land, report.
pub fn loops() -> Arc<Flow> {
    Arc::new(flow(
        "loop",
        [
            step("work", agent(), [on("done", "verify")]),
            step("verify", StepKind::Verify, [on("pass", "land"), at_most(50, on("fail", "work"))]),
            step(
                "land",
                StepKind::Land,
                [on("landed", "report"), at_most(10, on("conflict", "work")), at_most(10, on("red", "work"))],
            ),
            step("report", StepKind::Report, [on("done", "end")]),
        ],
    ))
}

/// The same for an agent that runs a loop of its own.
pub fn watches() -> Arc<Flow> {
    Arc::new(Flow { name: "watched".to_owned(), style: Some(AgentDriveStyle::Own), ..(*loops()).clone() })
}

/// Work that exists already: verified, landed, reported, and stopped if it does not fit.
pub fn takes_back() -> Arc<Flow> {
    Arc::new(flow(
        "rollback",
        [
            step("verify", StepKind::Verify, [on("pass", "land"), on("fail", "stop")]),
            step("land", StepKind::Land, [on("landed", "report"), on("conflict", "stop"), on("red", "stop")]),
            step("report", StepKind::Report, [on("done", "end")]),
        ],
    ))
}

/// Work that has one chance: nothing leads back.
pub fn tries_once() -> Arc<Flow> {
    Arc::new(flow(
        "once",
        [
            step("work", agent(), [on("done", "verify")]),
            step("verify", StepKind::Verify, [on("pass", "end"), on("fail", "stop")]),
        ],
    ))
}

/// A person confirms a plan before the work begins, and nothing lands.
pub fn asks() -> Arc<Flow> {
    Arc::new(flow(
        "asking",
        [
            step("plan", agent_once(), [on("done", "confirm"), at_most(2, on("blocked", "confirm"))]),
            step("confirm", ask("Is the plan good?"), [on("answered", "work")]),
            step("work", agent(), [on("done", "end")]),
        ],
    ))
}

/// An agent works again between verification and landing.
pub fn polishes() -> Arc<Flow> {
    Arc::new(flow(
        "polishing",
        [
            step("work", agent(), [on("done", "verify")]),
            step("verify", StepKind::Verify, [on("pass", "polish"), at_most(3, on("fail", "work"))]),
            step("polish", agent_once(), [on("done", "land")]),
            step(
                "land",
                StepKind::Land,
                [on("landed", "thanks"), at_most(3, on("conflict", "work")), at_most(3, on("red", "work"))],
            ),
            step("thanks", agent_once(), [on("done", "report")]),
            step("report", StepKind::Report, [on("done", "end")]),
        ],
    ))
}
/// A flow with a step of a kind that this version does not perform.
pub fn with_kind(kind: StepKind) -> Arc<Flow> {
    let edges = kind.must_route().iter().map(|result| on(result.word(), "end")).collect();
    let odd = FlowStep {
        name: StepName::new("odd"),
        kind,
        phase: "odd".to_owned(),
        before: None,
        agent: None,
        on: edges,
    };
    let mut flow = flow("odd", [step("work", agent(), [on("done", "odd")])]);
    flow.steps.push(odd);
    Arc::new(flow)
}

/// An agent that must leave a plan behind.
fn plans() -> StepKind {
    let output = vec![".landfall/task/plan.md".to_owned()];
    StepKind::Agent { prompt: "plan".to_owned(), output, iterate: false, every: 0 }
}

/// An agent that works through a plan, and is looked at after every third step of it.
fn executes() -> StepKind {
    StepKind::Agent { prompt: "exec".to_owned(), output: Vec::new(), iterate: true, every: 3 }
}

fn judges(checkpoint: GatePoint) -> StepKind {
    StepKind::Check { checkpoint, threshold: checkpoint.default_threshold() }
}

fn phased<const N: usize>(name: &str, kind: StepKind, phase: &str, on: [FlowEdge; N]) -> FlowStep {
    FlowStep { phase: phase.to_owned(), ..step(name, kind, on) }
}

/// A plan, its judge, the work with judges on the way, another plan: what both of the long flows have.
fn planned(accepted: &str) -> Vec<FlowStep> {
    let after_fix = || [at_most(3, on("REPLAN", "re-plan")), on("BLOCKED", "stop")];
    let plan = |check| [on("done", check), on("blocked", "stop")];
    let check = |plan| [on("PASS", "exec"), at_most(3, on("NEEDS_REVISION", plan)), on("BLOCKED", "stop")];
    let [replan, blocked] = after_fix();
    let [replan_mid, blocked_mid] = after_fix();
    vec![
        phased("plan", plans(), "planning", plan("check-plan")),
        phased("check-plan", judges(GatePoint::PostPlan), "planning", check("plan")),
        phased(
            "exec",
            executes(),
            "executing",
            [on("done", "verify"), at_most(100, on("mid-exec", "verify-mid")), on("blocked", "stop")],
        ),
        phased(
            "verify-mid",
            StepKind::Verify,
            "executing",
            [on("pass", "check-mid"), on("fail", "check-mid"), at_most(3, on("conflict", "exec"))],
        ),
        phased(
            "check-mid",
            judges(GatePoint::MidExec),
            "executing",
            [on("CONTINUE", "exec"), at_most(2, on("NEEDS_FIX", "exec")), replan_mid, blocked_mid],
        ),
        phased(
            "verify",
            StepKind::Verify,
            "executing",
            [on("pass", "check-exec"), at_most(100, on("fail", "exec")), at_most(3, on("conflict", "exec"))],
        ),
        phased(
            "check-exec",
            judges(GatePoint::PostExec),
            "executing",
            [on("ACCEPT", accepted), at_most(3, on("NEEDS_FIX", "exec")), replan, blocked],
        ),
        phased("re-plan", plans(), "re-planning", plan("check-re-plan")),
        phased("check-re-plan", judges(GatePoint::PostPlan), "re-planning", check("re-plan")),
        phased(
            "land",
            StepKind::Land,
            "accepted",
            [on("landed", "report"), at_most(3, on("conflict", "exec")), at_most(10, on("red", "exec"))],
        ),
        phased("report", StepKind::Report, "complete", [on("done", "end")]),
    ]
}

/// What a hand may do, and where a task begins that is taken up again.
fn by_phase(flow: &mut Flow, entries: &[(&str, &str)]) {
    let name = |(phase, step): &(&str, &str)| ((*phase).to_owned(), StepName::new(step));
    flow.entries = entries.iter().map(name).collect();
    for (command, phases) in [
        ("plan", vec![("planning", "plan"), ("executing", "re-plan"), ("re-planning", "re-plan")]),
        ("check", vec![("planning", "check-plan"), ("executing", "check-exec")]),
        ("exec", vec![("executing", "exec")]),
        ("verify", vec![("executing", "verify")]),
        ("land", vec![("executing", "land"), ("accepted", "land")]),
    ] {
        flow.commands.insert(command.to_owned(), phases.iter().map(name).collect());
    }
}

/// A task with a plan: as `flows/lifecycle.toml` has it.
pub fn lifecycle() -> Arc<Flow> {
    let mut all = flow("lifecycle", []);
    all.steps = planned("land");
    all.entry = StepName::new("plan");
    let entries = [
        ("planning", "check-plan"),
        ("executing", "verify"),
        ("re-planning", "re-plan"),
        ("complete", "report"),
    ];
    by_phase(&mut all, &entries);
    assert_eq!(all.find_problems(), [], "it could be loaded");
    Arc::new(all)
}

/// A task with an objective: as `flows/staged.toml` has it.
pub fn stages() -> Arc<Flow> {
    let mut all = flow("staged", [phased("target", StepKind::Target, "target", [on("answered", "plan")])]);
    all.steps.extend(planned("converge"));
    let measured = [
        on("satisfied", "land"),
        at_most(30, on("CONTINUE", "plan")),
        at_most(10, on("rollback", "re-plan")),
        at_most(3, on("NEEDS_FIX", "exec")),
    ];
    all.steps.push(phased("converge", StepKind::Converge, "evolving", measured));
    let entries = [
        ("target", "target"),
        ("planning", "plan"),
        ("executing", "verify"),
        ("re-planning", "re-plan"),
        ("evolving", "target"),
        ("accepted", "land"),
        ("complete", "report"),
    ];
    by_phase(&mut all, &entries);
    assert_eq!(all.find_problems(), [], "it could be loaded");
    Arc::new(all)
}
