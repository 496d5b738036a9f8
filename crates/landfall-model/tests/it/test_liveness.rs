//! Whether an agent is alive, from evidence; and whether it goes round in a circle.

use std::fmt::Write as _;

use expect_test::expect;
use landfall_model::liveness::{
    AccountWaitTime, AgentActivity, ECHOES_MAX, EarlyEndReason, LivenessLimits, LivenessSample, ModelCalls,
    RepetitionDetector, RunEndInputs, StreamDetector, classify_activity, describe_liveness, early_end_reason,
    is_answer, is_life, model_wait_ms,
};
use landfall_model::{
    AgentFinish, AgentUsage, Budget, BudgetScope, ControlSignal, ExhaustedBudget, LoopStep, Signal, Spending,
    TaskLimits, Timestamp,
};

const MINUTE_MS: u64 = 60_000;

const WATCH: LivenessLimits = LivenessLimits {
    beat_ms: MINUTE_MS,
    beats: 3,
    silence_ms: 10 * MINUTE_MS,
    first_output_ms: 5 * MINUTE_MS,
    tool_ms: 30 * MINUTE_MS,
};

/// An agent without a sign of life for so many minutes, after a word of its own.
fn lifeless(minutes: u64) -> LivenessSample {
    let age = minutes * MINUTE_MS;
    LivenessSample {
        running_ms: 60 * MINUTE_MS,
        silent_ms: Some(age),
        idle_ms: age,
        still_ms: age,
        ..LivenessSample::default()
    }
}

/// An agent that has never said a word, with no sign of life since it began.
fn mute(minutes: u64) -> LivenessSample {
    let age = minutes * MINUTE_MS;
    LivenessSample {
        running_ms: age,
        silent_ms: None,
        idle_ms: age,
        still_ms: age,
        ..LivenessSample::default()
    }
}

fn in_tool(pulse: LivenessSample) -> LivenessSample {
    LivenessSample { tools_open: 1, children: 2, ..pulse }
}

#[test]
fn the_class_follows_from_the_evidence() {
    type Made = fn(u64) -> LivenessSample;
    let rows: [(&str, Made); 6] = [
        ("no sign of life", lifeless),
        ("never a word", mute),
        ("in a tool", |minutes| in_tool(lifeless(minutes))),
        ("a tool open, no child", |minutes| LivenessSample { tools_open: 1, ..lifeless(minutes) }),
        ("a child, no tool open", |minutes| LivenessSample { children: 1, ..lifeless(minutes) }),
        ("asking", |minutes| LivenessSample { asking: true, ..lifeless(minutes) }),
    ];
    let mut told = String::new();
    for (name, make) in rows {
        write!(told, "{name}:").expect("a string takes it");
        for minutes in [0, 2, 3, 4, 5, 9, 10, 29, 30] {
            write!(told, " {minutes}m {};", classify_activity(&make(minutes), &WATCH).label())
                .expect("a string takes it");
        }
        told.push('\n');
    }
    expect![[r#"
        no sign of life: 0m working; 2m working; 3m waiting for the model; 4m waiting for the model; 5m waiting for the model; 9m waiting for the model; 10m dead; 29m dead; 30m dead;
        never a word: 0m working; 2m working; 3m waiting for the model; 4m waiting for the model; 5m dead; 9m dead; 10m dead; 29m dead; 30m dead;
        in a tool: 0m in a tool; 2m in a tool; 3m in a tool; 4m in a tool; 5m in a tool; 9m in a tool; 10m in a tool; 29m in a tool; 30m dead;
        a tool open, no child: 0m working; 2m working; 3m waiting for the model; 4m waiting for the model; 5m waiting for the model; 9m waiting for the model; 10m dead; 29m dead; 30m dead;
        a child, no tool open: 0m working; 2m working; 3m waiting for the model; 4m waiting for the model; 5m waiting for the model; 9m waiting for the model; 10m dead; 29m dead; 30m dead;
        asking: 0m waiting for a person; 2m waiting for a person; 3m waiting for a person; 4m waiting for a person; 5m waiting for a person; 9m waiting for a person; 10m dead; 29m dead; 30m dead;
    "#]].assert_eq(&told);
}

#[test]
fn a_silent_child_that_computes_for_minutes_is_work() {
    for minutes in [3, 30, 300] {
        let silent = Some(minutes * MINUTE_MS);
        let busy = LivenessSample {
            silent_ms: silent,
            still_ms: minutes * MINUTE_MS,
            idle_ms: 900,
            children: 1,
            ..lifeless(0)
        };
        assert_eq!(classify_activity(&busy, &WATCH), AgentActivity::Working, "silent for {minutes} minutes");
        assert_eq!(
            classify_activity(&LivenessSample { silent_ms: None, ..busy }, &WATCH),
            AgentActivity::Working,
            "and it never said a word"
        );
        assert_eq!(
            classify_activity(&LivenessSample { tools_open: 1, ..busy }, &WATCH),
            AgentActivity::InTool
        );
        let writes = LivenessSample { idle_ms: minutes * MINUTE_MS, still_ms: 900, ..busy };
        assert_eq!(classify_activity(&writes, &WATCH), AgentActivity::Working, "its workspace changes");
    }
}

#[test]
fn an_idle_process_with_a_dead_connection_is_dead_when_the_silence_is_over_and_not_before() {
    let mut pulse = lifeless(10);
    assert_eq!(classify_activity(&pulse, &WATCH), AgentActivity::Dead);
    pulse.silent_ms = Some(WATCH.silence_ms - 1);
    assert_eq!(classify_activity(&pulse, &WATCH), AgentActivity::WaitingForModel);
}

#[test]
fn an_agent_without_a_word_is_counted_from_its_start() {
    let young = LivenessSample { idle_ms: 60 * MINUTE_MS, still_ms: 60 * MINUTE_MS, ..mute(1) };
    assert_eq!(classify_activity(&young, &WATCH), AgentActivity::Working, "older evidence is of another run");
    let just_before = LivenessSample { running_ms: WATCH.first_output_ms - 1, ..mute(60) };
    assert_eq!(classify_activity(&just_before, &WATCH), AgentActivity::WaitingForModel);
    assert_eq!(classify_activity(&mute(5), &WATCH), AgentActivity::Dead);
    let patient = LivenessLimits { first_output_ms: u64::MAX, ..WATCH };
    assert_eq!(
        classify_activity(&mute(10), &patient),
        AgentActivity::Dead,
        "the first word is due no later than any other"
    );
}

#[test]
fn a_tool_is_borne_with_for_longer_and_not_for_ever() {
    assert_eq!(classify_activity(&in_tool(lifeless(29)), &WATCH), AgentActivity::InTool);
    assert_eq!(classify_activity(&in_tool(lifeless(30)), &WATCH), AgentActivity::Dead);
    assert_eq!(classify_activity(&in_tool(mute(29)), &WATCH), AgentActivity::InTool);
    let ended = LivenessSample { children: 0, ..in_tool(lifeless(10)) };
    assert_eq!(
        classify_activity(&ended, &WATCH),
        AgentActivity::Dead,
        "a tool that left no process is over, whatever was said"
    );
}

#[test]
fn a_circle_is_one_however_lively() {
    for pulse in [
        lifeless(0),
        lifeless(60),
        mute(0),
        in_tool(lifeless(0)),
        LivenessSample { asking: true, ..lifeless(0) },
    ] {
        assert_eq!(
            classify_activity(&LivenessSample { echoes: ECHOES_MAX, ..pulse }, &WATCH),
            AgentActivity::Looping
        );
        assert_ne!(
            classify_activity(&LivenessSample { echoes: ECHOES_MAX - 1, ..pulse }, &WATCH),
            AgentActivity::Looping
        );
    }
}

// ── ends before the end ──────────────────────────────────────────────────────────────────────────────────

fn turns(turns: u64) -> Spending {
    Spending { usage: AgentUsage { turns, ..AgentUsage::default() }, time_ms: 0 }
}

/// At most five turns an attempt, ten a task.
fn five_and_ten() -> TaskLimits {
    let of = |turns| Budget { turns: Some(turns), ..Budget::default() };
    TaskLimits { attempt_budget: of(5), task_budget: of(10), ..TaskLimits::default() }
}

/// An agent that calls a model and has heard nothing for so many minutes, while its own program is busy.
fn unanswered(minutes: u64) -> LivenessSample {
    let age = minutes * MINUTE_MS;
    let calls = ModelCalls { tools_idle_ms: age, inflow_ms: age, connections: 1 };
    LivenessSample { idle_ms: 0, calls: Some(calls), ..lifeless(minutes) }
}

#[test]
fn the_program_of_an_agent_that_waits_for_its_model_is_no_sign_of_life() {
    assert_eq!(classify_activity(&unanswered(9), &WATCH), AgentActivity::WaitingForModel);
    assert_eq!(classify_activity(&unanswered(10), &WATCH), AgentActivity::Unanswered);
    let unknown = LivenessSample { calls: None, ..unanswered(10) };
    assert_eq!(
        classify_activity(&unknown, &WATCH),
        AgentActivity::Working,
        "where nothing is known of its connections"
    );
    let calls = |change: fn(&mut ModelCalls)| {
        let pulse = unanswered(300);
        let mut calls = pulse.calls.expect("it calls one");
        change(&mut calls);
        classify_activity(&LivenessSample { calls: Some(calls), ..pulse }, &WATCH)
    };
    assert_eq!(calls(|calls| calls.inflow_ms = MINUTE_MS), AgentActivity::Working, "it receives an answer");
    assert_eq!(calls(|calls| calls.tools_idle_ms = MINUTE_MS), AgentActivity::Working, "a command computes");
    assert_eq!(calls(|calls| calls.connections = 0), AgentActivity::Unanswered, "between two tries");
    let pulse = unanswered(300);
    assert_eq!(
        classify_activity(&LivenessSample { still_ms: 0, ..pulse }, &WATCH),
        AgentActivity::Working,
        "files change"
    );
    assert_eq!(
        classify_activity(&in_tool(LivenessSample { silent_ms: Some(MINUTE_MS), ..pulse }), &WATCH),
        AgentActivity::InTool
    );
    assert_eq!(
        classify_activity(&LivenessSample { asking: true, idle_ms: 9 * MINUTE_MS, ..pulse }, &WATCH),
        AgentActivity::Dead
    );
}

#[test]
fn without_a_first_word_a_connected_agent_may_wait_as_long_as_any_other() {
    let calls = |connections| Some(ModelCalls { tools_idle_ms: 0, inflow_ms: 5 * MINUTE_MS, connections });
    let calls =
        |connections| calls(connections).map(|calls| ModelCalls { tools_idle_ms: 5 * MINUTE_MS, ..calls });
    assert_eq!(
        classify_activity(&LivenessSample { calls: calls(1), ..mute(5) }, &WATCH),
        AgentActivity::WaitingForModel
    );
    assert_eq!(
        classify_activity(&LivenessSample { calls: calls(0), ..mute(5) }, &WATCH),
        AgentActivity::Dead,
        "its own fault"
    );
    let starting = LivenessSample { calls: calls(0), idle_ms: 0, ..mute(5) };
    assert_eq!(classify_activity(&starting, &WATCH), AgentActivity::Working, "it is starting");
}

#[test]
fn the_wait_for_an_answer_is_no_working_time() {
    assert_eq!(model_wait_ms(&unanswered(2), &WATCH), 0, "a pause between two words");
    assert_eq!(model_wait_ms(&unanswered(9), &WATCH), 9 * MINUTE_MS);
    assert_eq!(model_wait_ms(&lifeless(9), &WATCH), 0, "it calls no model");
}

/// What connections receive, a look every 15 seconds. Each row has the bytes that arrive before it on one connection, or
/// `None` where that one is replaced. Returns at which looks a stream was seen.
fn streams(rows: impl IntoIterator<Item = Option<u64>>) -> Vec<usize> {
    let mut inflow = StreamDetector::default();
    let (mut id, mut received) = (1, 0);
    let mut seen = Vec::new();
    for (look, row) in rows.into_iter().enumerate() {
        match row {
            Some(bytes) => received += bytes,
            None => (id, received) = (id + 1, 50_000),
        }
        if inflow.note_connections(look as u64 * 15_000, &[(id, received)], &WATCH) {
            seen.push(look);
        }
    }
    seen
}

#[test]
fn a_stream_is_life_and_keep_alives_and_new_tries_are_not() {
    let slow_stream = 15 * 150; // a token a second
    assert_eq!(streams(std::iter::repeat_n(Some(slow_stream), 6)), [3, 4, 5]);
    let pings = 15 * 70; // one a second, encrypted
    assert_eq!(streams(std::iter::repeat_n(Some(pings), 100)), [0; 0]);
    // A new try every five minutes: a handshake, the beginning of a stream, and silence.
    let tries =
        (0..200).map(|look| if look % 20 == 0 { None } else { Some(u64::from(look % 20 < 2) * 90_000) });
    assert_eq!(streams(tries), [0; 0]);
    // Thoughts that come in pieces, one in half a minute.
    let pieces = (0..20).map(|look| Some(if look % 2 == 0 { 4_000 } else { 0 }));
    assert_eq!(streams(pieces).len(), 7);
    // After the stream has ended, the next try is none.
    let mut ended = vec![Some(slow_stream); 6];
    ended.extend([Some(0); 8]);
    ended.extend([None, Some(90_000), Some(0), Some(0)]);
    assert_eq!(streams(ended), [3, 4, 5]);
}

#[test]
fn an_error_is_no_answer_of_a_model_however_it_is_told() {
    let error = Signal::Finished { how: AgentFinish::Error, text: "overloaded".to_owned() };
    let usage = Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() });
    assert!(is_answer(&[]) && is_answer(std::slice::from_ref(&usage)));
    assert!(!is_answer(&[usage, error]));
    assert!(!is_answer(&[Signal::Transient { detail: String::new() }]));
    assert!(!is_answer(&[Signal::Quota { until: None }]));
}

#[test]
fn a_newly_reported_step_is_no_repetition() {
    let mut echo = RepetitionDetector::default();
    let say = |echo: &mut RepetitionDetector| {
        echo.hear(&Signal::Text("The step is done.".to_owned()));
        echo.hear(&Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() }));
    };
    for number in 1..=5 {
        say(&mut echo);
        let stride = LoopStep { mark: format!("m{number}"), ..LoopStep::default() };
        echo.hear(&Signal::Stride(stride));
        say(&mut echo);
        echo.hear(&Signal::Said(ControlSignal::Step(number)));
        assert!(echo.repeat_count() < ECHOES_MAX, "after step {number}");
    }
    for _ in 0..ECHOES_MAX {
        say(&mut echo);
        echo.hear(&Signal::Stride(LoopStep { mark: "m5".to_owned(), ..LoopStep::default() }));
        echo.hear(&Signal::Said(ControlSignal::Step(5)));
    }
    assert_eq!(echo.repeat_count(), ECHOES_MAX, "the same step again is none");
}

#[test]
fn waits_for_an_account_add_up() {
    let mut waits = AccountWaitTime::default();
    waits.begin_wait(Timestamp(1_000), None);
    waits.begin_wait(Timestamp(2_000), Some(Timestamp(9_000)));
    assert_eq!((waits.all_ms(Timestamp(3_000)), waits.until), (2_000, Some(Timestamp(9_000))));
    waits.end(Timestamp(4_000));
    assert_eq!(waits.all_ms(Timestamp(99_000)), 3_000);
    waits.begin_wait(Timestamp(10_000), None);
    assert_eq!((waits.all_ms(Timestamp(10_500)), waits.until), (3_500, None));
}

/// A run that nothing is wrong with.
fn calm(limits: &TaskLimits) -> RunEndInputs<'_> {
    RunEndInputs {
        stopped: false,
        spent: None,
        here: Spending::default(),
        attempt: Spending::default(),
        task: Spending::default(),
        limits,
        compactions: 0,
        compactions_max: 3,
        class: Some(AgentActivity::Working),
        course: None,
        worked_ms: 0,
        worked_max_ms: MINUTE_MS,
    }
}

#[test]
fn working_time_that_is_used_up_ends_a_run_whatever_it_is_at() {
    let limits = five_and_ten();
    let case = RunEndInputs { worked_ms: MINUTE_MS, ..calm(&limits) };
    assert_eq!(early_end_reason(&case), Some(EarlyEndReason::TimeUsed));
}

#[test]
fn only_the_dead_and_those_in_a_circle_are_ended() {
    let limits = five_and_ten();
    let told = AgentActivity::ALL.map(|class| {
        let early = early_end_reason(&RunEndInputs { class: Some(class), ..calm(&limits) });
        format!("{}: {early:?}\n", class.label())
    });
    expect![[r#"
        working: None
        in a tool: None
        waiting for the model: None
        waiting for a person: None
        looping: Some(Looping)
        not answered by the model: Some(Unanswered)
        dead: Some(Silent)
    "#]]
    .assert_eq(&told.concat());
    assert_eq!(
        early_end_reason(&RunEndInputs { class: None, ..calm(&limits) }),
        None,
        "its processes are gone, it is at its end"
    );
}

#[test]
fn of_several_reasons_a_person_comes_first_then_money_then_what_it_does() {
    type Mend = fn(&mut RunEndInputs<'_>);
    let limits = five_and_ten();
    let day = ExhaustedBudget {
        scope: BudgetScope::Day,
        what: "$41.00 of $40.00".to_owned(),
        until: Some(Timestamp(9)),
    };
    let mut case = RunEndInputs {
        stopped: true,
        spent: Some(&day),
        here: turns(5),
        attempt: turns(4),
        task: turns(8),
        compactions: 3,
        class: Some(AgentActivity::Dead),
        ..calm(&limits)
    };
    let mends: [(&str, Mend); 7] = [
        ("all of it", |_| {}),
        ("nobody stopped it", |case| case.stopped = false),
        ("there is money today", |case| case.spent = None),
        ("the attempt has a rest", |case| case.attempt = Spending::default()),
        ("and so it has with this run", |case| case.here = turns(4)),
        ("the task has a rest", |case| case.task = turns(5)),
        ("it dropped its context less often", |case| case.compactions = 2),
    ];
    let mut told = String::new();
    for (what, mend) in mends {
        mend(&mut case);
        writeln!(told, "{what}: {:?}", early_end_reason(&case)).expect("a string takes it");
    }
    case.class = Some(AgentActivity::Working);
    writeln!(told, "it works: {:?}", early_end_reason(&case)).expect("a string takes it");
    expect![[r#"
        all of it: Some(Stopped)
        nobody stopped it: Some(OverBudget(Day, "$41.00 of $40.00"))
        there is money today: Some(OverBudget(Attempt, "9 of 5 turns"))
        the attempt has a rest: Some(OverBudget(Attempt, "5 of 5 turns"))
        and so it has with this run: Some(OverBudget(Task, "12 of 10 turns"))
        the task has a rest: Some(ContextUsedUp)
        it dropped its context less often: Some(Silent)
        it works: None
    "#]]
    .assert_eq(&told);
}

#[test]
fn what_a_run_spends_counts_on_top_of_what_was_spent_before() {
    let limits = five_and_ten();
    for (before, here, over) in [(0, 4, false), (0, 5, true), (4, 0, false), (4, 1, true), (1, 3, false)] {
        let case = RunEndInputs { attempt: turns(before), here: turns(here), ..calm(&limits) };
        let scope = early_end_reason(&case).map(|early| match early {
            EarlyEndReason::OverBudget(scope, _) => scope,
            other => panic!("{other:?}"),
        });
        assert_eq!(scope, over.then_some(BudgetScope::Attempt), "{before} before, {here} here");
    }
    let case = RunEndInputs { task: turns(9), here: turns(1), ..calm(&limits) };
    assert!(matches!(early_end_reason(&case), Some(EarlyEndReason::OverBudget(BudgetScope::Task, _))));
}

#[test]
fn a_run_whose_processes_are_gone_is_still_named_for_a_used_up_budget() {
    let limits = five_and_ten();
    let case = RunEndInputs { here: turns(5), class: None, ..calm(&limits) };
    assert!(matches!(early_end_reason(&case), Some(EarlyEndReason::OverBudget(BudgetScope::Attempt, _))));
}

// ── what the class is worth ──────────────────────────────────────────────────────────────────────────────

#[test]
fn whatever_the_figures_more_life_never_makes_it_dead() {
    let mut rng = crate::sim::Rng::new(11);
    for _ in 0..20_000 {
        let mut age = || rng.below(40) as u64 * MINUTE_MS;
        let running_ms = age();
        let pulse = LivenessSample {
            running_ms,
            silent_ms: Some(age()).filter(|silent| *silent <= running_ms),
            idle_ms: age(),
            still_ms: age(),
            calls: None,
            tools_open: rng.below(2) as u32,
            children: rng.below(2) as u32,
            asking: rng.below(4) == 0,
            echoes: rng.below(3) as u32,
        };
        let livelier = [
            LivenessSample { silent_ms: Some(0), ..pulse },
            LivenessSample { idle_ms: 0, ..pulse },
            LivenessSample { still_ms: 0, ..pulse },
        ];
        for other in livelier {
            assert_ne!(classify_activity(&other, &WATCH), AgentActivity::Dead, "{other:?}");
        }
        let all_over =
            pulse.silent_ms.unwrap_or(running_ms).min(pulse.idle_ms).min(pulse.still_ms) >= WATCH.tool_ms;
        assert!(!all_over || classify_activity(&pulse, &WATCH) == AgentActivity::Dead, "{pulse:?}");
    }
}

#[test]
fn the_evidence_is_told_beside_the_class() {
    let pulses = [lifeless(3), mute(4), LivenessSample { echoes: 2, ..in_tool(lifeless(0)) }];
    let told = pulses.map(|pulse| describe_liveness(&pulse)).join("\n");
    expect![[r#"
        last word 3m ago, processor or disk 3m ago
        no word since it began 4m ago, processor or disk 4m ago
        last word 0 ms ago, processor or disk 0 ms ago, 2 processes of its own, the same step 2 times"#]]
    .assert_eq(&told);
}

// ── circles ──────────────────────────────────────────────────────────────────────────────────────────────

fn text(words: &str) -> Signal {
    Signal::Text(words.to_owned())
}

fn tool(detail: &str) -> Signal {
    Signal::ToolUse { name: "shell".to_owned(), detail: detail.to_owned() }
}

fn turn() -> Signal {
    Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() })
}

fn echoes(signals: &[Signal]) -> u32 {
    let mut echo = RepetitionDetector::default();
    signals.iter().for_each(|signal| echo.hear(signal));
    echo.repeat_count()
}

fn repeated(step: &[Signal], times: usize) -> Vec<Signal> {
    (0..times).flat_map(|_| step.iter().cloned()).collect()
}

#[test]
fn the_same_step_three_times_in_a_row_is_a_circle() {
    let steps = [
        vec![text("Let me try."), tool("cargo test"), Signal::ToolDone],
        vec![tool("cargo test"), Signal::ToolDone],
        vec![text("Let me try."), turn()],
        vec![text("Let me try."), tool("cargo test"), turn(), Signal::ToolDone],
        vec![tool("a"), tool("b"), Signal::ToolDone, Signal::ToolDone],
        vec![
            text("I am done."),
            Signal::Finished { how: AgentFinish::Success, text: "I am done.".to_owned() },
        ],
    ];
    for step in steps {
        for times in 1..5 {
            assert_eq!(echoes(&repeated(&step, times)), u32::try_from(times).expect("small"), "{step:?}");
        }
        assert!(echoes(&repeated(&step, 3)) >= ECHOES_MAX);
    }
}

#[test]
fn the_same_tool_on_other_things_is_no_circle() {
    let steps = ["a.rs", "b.rs", "c.rs", "d.rs"].map(|file| [tool(file), Signal::ToolDone]);
    assert_eq!(echoes(&steps.concat()), 1);
    let again = [tool("a.rs"), Signal::ToolDone, tool("b.rs"), Signal::ToolDone];
    assert_eq!(echoes(&repeated(&again, 3)), 1, "one thing after the other");
}

#[test]
fn another_word_before_the_same_tool_is_another_step() {
    let says = |words: &str| [text(words), tool("cargo test"), Signal::ToolDone];
    assert_eq!(echoes(&[says("once"), says("again"), says("and again")].concat()), 1);
    assert_eq!(
        echoes(&[says("so"), says("so"), says("other"), says("so")].concat()),
        1,
        "they must be in a row"
    );
}

#[test]
fn lines_of_progress_are_no_steps() {
    assert_eq!(echoes(&repeated(&[text("compiling …")], 50)), 0, "words alone end no step");
    assert_eq!(echoes(&repeated(&[Signal::Said(ControlSignal::Progress(50))], 50)), 0);
    assert_eq!(
        echoes(&repeated(&[Signal::Usage(AgentUsage { tokens_in: 5, ..AgentUsage::default() })], 50)),
        0
    );
    assert_eq!(echoes(&repeated(&[turn()], 50)), 0, "a turn without a word");
    assert_eq!(echoes(&repeated(&[text("  "), turn()], 50)), 0, "nor with an empty one");
    assert_eq!(echoes(&repeated(&[Signal::ToolDone], 50)), 0);
    let progress = [text("step"), Signal::Said(ControlSignal::Progress(10)), Signal::Cost(3), turn()];
    assert_eq!(echoes(&repeated(&progress, 2)), 2, "and change nothing about the steps around them");
}

#[test]
fn the_same_message_in_other_pieces_is_the_same() {
    let whole = [text("Let me try again."), turn()];
    let pieces = [text("Let me "), text("try again."), turn()];
    assert_eq!(echoes(&[&whole[..], &pieces[..], &whole[..]].concat()), 3);
}

#[test]
fn a_trouble_told_again_is_no_sign_of_life_and_anything_else_is() {
    let trouble = || Signal::Transient { detail: "reconnecting".to_owned() };
    assert!(!is_life(&[trouble(), trouble()]));
    assert!(is_life(&[trouble(), Signal::ToolDone]));
    assert!(is_life(&[]), "what is not understood may be one");
}

#[test]
fn a_newly_reported_step_of_its_own_loop_is_no_circle() {
    let step = |mark: &str| {
        let report = Signal::Stride(LoopStep { mark: mark.to_owned(), ..LoopStep::default() });
        [text("Done."), report, turn()]
    };
    assert_eq!(echoes(&["a", "b", "c", "d"].map(step).concat()), 1, "four steps that end in the same words");
    assert_eq!(echoes(&["a", "a", "a", "a"].map(step).concat()), 4, "one that is reported again and again");
}
