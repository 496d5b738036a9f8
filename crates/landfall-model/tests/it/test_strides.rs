//! Agents that run a loop of their own: what counts as a step, and how such a loop is brought to an end.

use landfall_model::liveness::{
    AgentActivity, EarlyEndReason, LoopProgress, LoopStopNotice, RunEndInputs, choose_stop_notice,
    early_end_reason,
};
use landfall_model::{
    AgentAssignment, AgentDriveStyle, Attempt, AttemptStart, Commit, Event, IntakeState, LoopStep, News,
    POLL_MS, RunId, SessionStart, Spending, StepName, StopReason, Task, TaskId, TaskInput, TaskLimits,
    TaskSpec, Timestamp, apply, decide_and_apply,
};

use crate::flows_used::loops;

fn stride(mark: &str, iteration: Option<u32>) -> LoopStep {
    LoopStep { step: "exec".to_owned(), iteration, mark: mark.to_owned(), ..LoopStep::default() }
}

fn running(style: AgentDriveStyle, limits: TaskLimits) -> Task {
    let (id, at, attempt) = (TaskId(1), Timestamp(0), Attempt(1));
    let driving = AgentAssignment { profile: "main".to_owned(), account: "main".to_owned(), style };
    let facts = [
        Event::Added { spec: TaskSpec::new("a task").expect("a title") },
        Event::Bound { flow: loops(), limits, driving },
        Event::Entered {
            attempt,
            step: StepName::new("work"),
            run: RunId(1),
            opening: AttemptStart::FreshWorkspace,
        },
        Event::WorkspaceMade { attempt, base: Commit::new("b0") },
        Event::IterationBegan { attempt, iteration: 1, talk: SessionStart::New },
    ];
    let mut task = None;
    for fact in &facts {
        task = Some(apply(task, id, at, fact).expect("a fact that can be"));
    }
    task.expect("it was added")
}

fn strode(task: &Task, attempt: u32, iteration: u32, stride: LoopStep) -> Result<Task, String> {
    let news = News::Strode { attempt: Attempt(attempt), iteration, stride };
    let input = TaskInput {
        at: Timestamp(5),
        drive: IntakeState::Running,
        spent: None,
        attended: true,
        poll_ms: POLL_MS,
        news,
    };
    decide_and_apply(task, &input).map(|(task, _)| task).map_err(|refusal| refusal.to_string())
}

#[test]
fn a_step_counts_once_and_what_was_missed_is_counted_by_its_number() {
    let mut task = running(AgentDriveStyle::Own, TaskLimits::default());
    task.counters.stalls_step = 2;
    task.counters.stalls_total = 2;
    let mut counted = Vec::new();
    for (mark, iteration) in [("a", Some(0)), ("b", Some(1)), ("c", Some(5)), ("d", Some(2)), ("e", None)] {
        task = strode(&task, 1, 1, stride(mark, iteration)).expect("news");
        counted.push(task.counters.strides);
        assert!(strode(&task, 1, 1, stride(mark, iteration)).expect_err("known").contains("is known"));
    }
    assert_eq!(counted, [1, 2, 6, 7, 8]);
    assert_eq!(task.iterations_done(), 8);
    assert_eq!((task.counters.stalls_step, task.counters.stalls_total), (0, 2), "progress, but not in all");
    strode(&task, 2, 1, stride("f", None)).expect_err("of another attempt");
    strode(&task, 1, 2, stride("f", None)).expect_err("of another run");
    let nonsense = strode(&task, 1, 1, stride("g", Some(u32::MAX))).expect("a claim");
    assert!(strode(&nonsense, 1, 1, stride("h", Some(u32::MAX))).expect("a claim").counters.strides > 8);
}

#[test]
fn steps_are_iterations_only_where_the_loop_is_the_agents_own() {
    for style in AgentDriveStyle::ALL {
        let task = running(style, TaskLimits::default());
        let task = strode(&task, 1, 1, stride("a", None)).expect("news");
        assert_eq!(task.iterations_done(), u32::from(style.runs_own_loop()), "{}", style.word());
    }
}

#[test]
fn c15_a_loop_is_stopped_when_as_many_steps_are_finished_as_there_may_be() {
    let limits = TaskLimits { iterations_max: 20, ..TaskLimits::default() };
    let course = |strides, worked_ms| (LoopProgress { strides, stalls: (0, 0), loops: 0 }, worked_ms);
    let said = |(course, worked_ms), class| {
        early_end_reason(&RunEndInputs {
            stopped: false,
            spent: None,
            here: Spending::default(),
            attempt: Spending::default(),
            task: Spending::default(),
            limits: &limits,
            compactions: 0,
            compactions_max: 3,
            class: Some(class),
            course: Some(course),
            worked_ms,
            worked_max_ms: 1_000,
        })
    };
    assert_eq!(said(course(19, 999), AgentActivity::Working), None);
    assert_eq!(said(course(20, 999), AgentActivity::Working), Some(EarlyEndReason::IterationsUsed));
    assert_eq!(
        said(course(19, 1_000), AgentActivity::InTool),
        Some(EarlyEndReason::TimeUsed),
        "by the timer, in whatever it is"
    );
    assert_eq!(said(course(19, 999), AgentActivity::Dead), Some(EarlyEndReason::Silent));
}

#[test]
fn every_end_of_a_loop_has_its_reason() {
    let limits =
        TaskLimits { stalls_step_max: 3, stalls_total_max: 10, loops_max: 3, ..TaskLimits::default() };
    let course = |stalls, loops| LoopProgress { strides: 0, stalls, loops };
    let calm = course((0, 0), 0);
    for (early, course, told) in [
        (EarlyEndReason::Stopped, calm, LoopStopNotice::AfterStep(StopReason::UserStop)),
        (EarlyEndReason::TimeUsed, calm, LoopStopNotice::AfterStep(StopReason::Timeout)),
        (EarlyEndReason::IterationsUsed, calm, LoopStopNotice::AfterStep(StopReason::MaxIterations)),
        (EarlyEndReason::Silent, course((2, 9), 0), LoopStopNotice::Now(None)),
        (EarlyEndReason::Silent, course((3, 3), 0), LoopStopNotice::Now(Some(StopReason::StallLimit))),
        (EarlyEndReason::Silent, course((0, 10), 0), LoopStopNotice::Now(Some(StopReason::StallLimit))),
        (EarlyEndReason::Looping, course((0, 0), 2), LoopStopNotice::Now(None)),
        (EarlyEndReason::Looping, course((0, 0), 3), LoopStopNotice::Now(Some(StopReason::ReasoningLoop))),
        (EarlyEndReason::ContextUsedUp, calm, LoopStopNotice::Now(None)),
    ] {
        assert_eq!(choose_stop_notice(&early, &course, &limits), told, "{early:?}");
    }
    let words: Vec<&str> = StopReason::ALL.map(StopReason::wire_name).to_vec();
    assert_eq!(words, ["timeout", "max_iterations", "user_stop", "stall_limit", "reasoning_loop"]);
}

/// A run that ended in these words and left no commit.
fn ended(task: &Task, iteration: u32) -> Task {
    let ended = landfall_model::EndedRun {
        attempt: task.attempt,
        iteration,
        exit: landfall_model::AgentExit::Code(0),
        seen: Vec::new(),
        evidence: landfall_model::AgentRunEvidence::default(),
        took_ms: 1_000,
        usage: landfall_model::AgentUsage::default(),
        traces: landfall_model::AgentRunTraces {
            words: Some(landfall_model::Digest::new("Done.")),
            ..landfall_model::AgentRunTraces::default()
        },
        climbed: None,
    };
    let news = News::AgentEnded(ended);
    let input = TaskInput {
        at: Timestamp(9),
        drive: IntakeState::Running,
        spent: None,
        attended: true,
        poll_ms: POLL_MS,
        news,
    };
    decide_and_apply(task, &input).expect("it runs").0
}

#[test]
fn runs_that_report_new_steps_and_end_in_the_same_words_are_no_loop() {
    let loops_of = |reports: bool| {
        let mut task = running(AgentDriveStyle::Own, TaskLimits::default());
        for iteration in 1..=3 {
            if reports {
                task = strode(&task, 1, iteration, stride(&iteration.to_string(), None)).expect("news");
            }
            task = ended(&task, iteration);
        }
        task.counters.loops
    };
    assert_eq!((loops_of(true), loops_of(false)), (0, 1));
}
