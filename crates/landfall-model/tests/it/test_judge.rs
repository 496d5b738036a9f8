//! What we make of one run of the agent: signals, exit and nothing else.

use std::fmt::Write as _;

use expect_test::expect;
use landfall_model::{
    AgentExit, AgentFinish, AgentRunEvidence, BudgetScope, ControlSignal, Signal, Timestamp, Verdict, judge,
};

fn check<const N: usize>(seen: [Signal; N], exit: AgentExit, expect: Verdict) {
    let verdict = judge(&seen, &exit, &AgentRunEvidence::default());
    assert_eq!(verdict, expect, "{seen:?} and {exit:?}");
}

fn complete() -> Signal {
    Signal::Said(ControlSignal::Complete)
}
fn blocked(reason: &str) -> Signal {
    Signal::Said(ControlSignal::Blocked(reason.to_owned()))
}
fn pending(question: &str) -> Signal {
    Signal::Said(ControlSignal::Pending(question.to_owned()))
}
fn quota() -> Signal {
    Signal::Quota { until: Some(Timestamp(9)) }
}
fn transient() -> Signal {
    Signal::Transient { detail: "overloaded".to_owned() }
}
fn tool() -> Signal {
    Signal::ToolUse { name: "edit".to_owned(), detail: String::new() }
}
fn finished(error: bool) -> Signal {
    Signal::Finished {
        how: if error { AgentFinish::Error } else { AgentFinish::Success },
        text: String::new(),
    }
}
fn crashed(detail: &str) -> Verdict {
    Verdict::Crashed { detail: detail.to_owned() }
}

#[test]
fn a_model_that_does_not_answer_is_a_trouble_of_the_provider() {
    let evidence = AgentRunEvidence {
        unanswered: true,
        model_wait_ms: 600_000,
        closes: true,
        ..AgentRunEvidence::default()
    };
    let judged = |seen: &[Signal]| judge(seen, &AgentExit::Silent, &evidence);
    let detail = "the model did not answer for 10m".to_owned();
    assert_eq!(judged(&[tool()]), Verdict::Transient { detail });
    assert_eq!(judged(&[quota()]), Verdict::Quota { until: Some(Timestamp(9)) }, "it said why");
    assert_eq!(judge(&[tool()], &AgentExit::Silent, &AgentRunEvidence::default()), Verdict::Stalled);
}

const ODD_EXITS: [AgentExit; 5] =
    [AgentExit::Code(3), AgentExit::Signal(9), AgentExit::Deadline, AgentExit::Silent, AgentExit::Lost];

#[test]
fn a_control_word_outweighs_the_exit_in_both_directions() {
    check([complete()], AgentExit::Code(0), Verdict::Complete);
    for exit in ODD_EXITS {
        check([complete()], exit.clone(), Verdict::Complete);
        check([blocked("x")], exit.clone(), Verdict::Blocked { reason: "x".to_owned() });
        check([pending("x")], exit, Verdict::Pending { question: "x".to_owned() });
    }
    check([], AgentExit::Code(0), Verdict::Continue);
}

#[test]
fn what_we_killed_on_request_is_stopped_whatever_it_said() {
    check([complete()], AgentExit::Asked, Verdict::Stopped);
    check([blocked("x")], AgentExit::Asked, Verdict::Stopped);
    check([quota()], AgentExit::Asked, Verdict::Stopped);
}

#[test]
fn blocked_and_pending_outweigh_complete_and_the_last_of_the_two_wins() {
    let is_blocked = || Verdict::Blocked { reason: "b".to_owned() };
    let is_pending = || Verdict::Pending { question: "p".to_owned() };
    check([complete(), blocked("b")], AgentExit::Code(0), is_blocked());
    check([blocked("b"), complete()], AgentExit::Code(0), is_blocked());
    check([pending("p"), complete()], AgentExit::Code(0), is_pending());
    check([pending("p"), blocked("b")], AgentExit::Code(0), is_blocked());
    check([blocked("b"), pending("p")], AgentExit::Code(0), is_pending());
    check([Signal::Question("p".to_owned())], AgentExit::Code(0), is_pending());
    check([blocked("a"), blocked("b")], AgentExit::Code(0), is_blocked());
}

#[test]
fn resolved_is_complete_and_other_words_end_nothing() {
    check([Signal::Said(ControlSignal::Resolved)], AgentExit::Code(0), Verdict::Complete);
    for said in [
        ControlSignal::Progress(100),
        ControlSignal::DiscoveryLocal("x".to_owned()),
        ControlSignal::DiscoveryGlobal("x".to_owned()),
    ] {
        check([Signal::Said(said)], AgentExit::Code(0), Verdict::Continue);
    }
    check(
        [Signal::Malformed { code: "X", text: "COMPLET".to_owned() }],
        AgentExit::Code(0),
        Verdict::Continue,
    );
    check([Signal::PermissionAsked { what: "rm".to_owned() }], AgentExit::Code(0), Verdict::Continue);
    check([Signal::Text("COMPLETE".to_owned())], AgentExit::Code(0), Verdict::Continue);
}

#[test]
fn an_exit_without_a_word_is_named_for_what_it_was() {
    check([], AgentExit::Code(3), crashed("exit code 3"));
    check([], AgentExit::Signal(9), crashed("killed by signal 9"));
    check([finished(true)], AgentExit::Code(0), crashed("it reported an error of its own, exit code 0"));
    check([], AgentExit::Deadline, Verdict::OutOfTime);
    check([], AgentExit::Silent, Verdict::Stalled);
    check([], AgentExit::Lost, Verdict::Lost);
    let exit = AgentExit::NotStarted { detail: "no such program".to_owned(), hopeless: true };
    check([], exit, Verdict::NotStarted { detail: "no such program".to_owned(), hopeless: true });
}

#[test]
fn what_the_provider_said_explains_a_crash() {
    let is_quota = || Verdict::Quota { until: Some(Timestamp(9)) };
    let is_transient = || Verdict::Transient { detail: "overloaded".to_owned() };
    check([quota()], AgentExit::Code(1), is_quota());
    check([quota()], AgentExit::Signal(15), is_quota());
    check([quota()], AgentExit::Code(0), is_quota());
    check([quota(), finished(true)], AgentExit::Code(1), is_quota());
    check([transient()], AgentExit::Code(1), is_transient());
    check([transient(), finished(true)], AgentExit::Code(0), is_transient());
    check([transient(), quota()], AgentExit::Code(1), is_quota());
}

#[test]
fn a_trouble_of_the_provider_that_passed_explains_nothing() {
    check([transient(), tool()], AgentExit::Code(0), Verdict::Continue);
    check([transient(), tool()], AgentExit::Code(1), crashed("exit code 1"));
    check([transient(), finished(false)], AgentExit::Code(0), Verdict::Continue);
    check([quota(), tool()], AgentExit::Code(0), Verdict::Continue);
    check([quota(), finished(false)], AgentExit::Code(0), Verdict::Quota { until: Some(Timestamp(9)) });
    check([tool(), transient()], AgentExit::Code(1), Verdict::Transient { detail: "overloaded".to_owned() });
}

#[test]
fn waiting_for_the_provider_is_not_a_stall() {
    check([quota()], AgentExit::Silent, Verdict::Quota { until: Some(Timestamp(9)) });
    check([transient()], AgentExit::Silent, Verdict::Transient { detail: "overloaded".to_owned() });
    check([transient(), tool()], AgentExit::Silent, Verdict::Stalled);
}

fn asks_leave(what: &str) -> Signal {
    Signal::PermissionAsked { what: what.to_owned() }
}

#[test]
fn waiting_for_leave_that_only_a_person_gives_is_a_question_and_no_stall() {
    let wants = |what: &str| Verdict::Pending { question: format!("the agent wants leave to go on: {what}") };
    check([asks_leave("rm -r x")], AgentExit::Silent, wants("rm -r x"));
    check([asks_leave("a"), asks_leave("b")], AgentExit::Silent, wants("b"));
    check([tool(), asks_leave("rm -r x")], AgentExit::Silent, wants("rm -r x"));
    check([asks_leave("rm -r x"), tool()], AgentExit::Silent, Verdict::Stalled);
    check([asks_leave("a"), quota()], AgentExit::Silent, Verdict::Quota { until: Some(Timestamp(9)) });
    check([quota(), asks_leave("a")], AgentExit::Silent, Verdict::Quota { until: Some(Timestamp(9)) });
    check([asks_leave("a"), complete()], AgentExit::Silent, Verdict::Complete);
    check([asks_leave("a"), blocked("b")], AgentExit::Silent, Verdict::Blocked { reason: "b".to_owned() });
}

#[test]
fn leave_that_was_asked_for_explains_no_other_end() {
    check([asks_leave("a")], AgentExit::Code(0), Verdict::Continue);
    check([asks_leave("a")], AgentExit::Code(1), crashed("exit code 1"));
    check([asks_leave("a")], AgentExit::Signal(9), crashed("killed by signal 9"));
    check([asks_leave("a")], AgentExit::Deadline, Verdict::OutOfTime);
    check([asks_leave("a")], AgentExit::Looping, Verdict::Looping);
    check([asks_leave("a")], AgentExit::Lost, Verdict::Lost);
    check([asks_leave("a")], AgentExit::Asked, Verdict::Stopped);
}

// ── closing words ────────────────────────────────────────────────────────────────────────────────────────

fn closing(how: AgentFinish) -> Signal {
    Signal::Finished { how, text: String::new() }
}

const FINISHES: [Option<AgentFinish>; 5] = [
    None,
    Some(AgentFinish::Success),
    Some(AgentFinish::Limit),
    Some(AgentFinish::Error),
    Some(AgentFinish::Interrupted),
];

fn exits() -> Vec<(&'static str, AgentExit)> {
    vec![
        ("exit 0", AgentExit::Code(0)),
        ("exit 1", AgentExit::Code(1)),
        ("signal", AgentExit::Signal(15)),
        ("deadline", AgentExit::Deadline),
        ("silent", AgentExit::Silent),
        ("looping", AgentExit::Looping),
        ("over budget", AgentExit::OverBudget { scope: BudgetScope::Day, what: "all of it".to_owned() }),
        ("context", AgentExit::ContextUsedUp),
        ("asked", AgentExit::Asked),
        ("not started", AgentExit::NotStarted { detail: "no such program".to_owned(), hopeless: true }),
        ("lost", AgentExit::Lost),
    ]
}

fn word(verdict: &Verdict) -> String {
    format!("{verdict:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// What was said, how it closed and how it exited: each row tells the verdicts by exit.
fn table(closes: bool, said: &[Signal]) -> String {
    let mut table = String::new();
    for finish in FINISHES {
        let seen: Vec<_> = said.iter().cloned().chain(finish.map(closing)).collect();
        let evidence = AgentRunEvidence { closes, ..AgentRunEvidence::default() };
        let name = finish.map_or("no close".to_owned(), |finish| format!("{finish:?}").to_lowercase());
        let verdicts =
            exits().into_iter().map(|(exit, how)| format!("{exit} {}", word(&judge(&seen, &how, &evidence))));
        writeln!(table, "{name}: {}", verdicts.collect::<Vec<_>>().join(", ")).expect("a string takes it");
    }
    table
}

#[test]
fn complete_of_an_agent_that_closes_counts_only_with_a_close_that_flags_no_error() {
    expect![[r#"
        no close: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        success: exit 0 Complete, exit 1 Complete, signal Complete, deadline Complete, silent Complete, looping Complete, over budget Complete, context Complete, asked Stopped, not started Complete, lost Complete
        limit: exit 0 Complete, exit 1 Complete, signal Complete, deadline Complete, silent Complete, looping Complete, over budget Complete, context Complete, asked Stopped, not started Complete, lost Complete
        error: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        interrupted: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
    "#]].assert_eq(&table(true, &[complete()]));
}

#[test]
fn complete_of_an_agent_that_has_no_closing_word_counts_unless_it_flags_an_error() {
    expect![[r#"
        no close: exit 0 Complete, exit 1 Complete, signal Complete, deadline Complete, silent Complete, looping Complete, over budget Complete, context Complete, asked Stopped, not started Complete, lost Complete
        success: exit 0 Complete, exit 1 Complete, signal Complete, deadline Complete, silent Complete, looping Complete, over budget Complete, context Complete, asked Stopped, not started Complete, lost Complete
        limit: exit 0 Complete, exit 1 Complete, signal Complete, deadline Complete, silent Complete, looping Complete, over budget Complete, context Complete, asked Stopped, not started Complete, lost Complete
        error: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        interrupted: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
    "#]].assert_eq(&table(false, &[complete()]));
}

#[test]
fn without_a_control_word_the_closing_word_outweighs_the_exit_code() {
    expect![[r#"
        no close: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        success: exit 0 Continue, exit 1 Continue, signal Continue, deadline OutOfTime, silent Continue, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        limit: exit 0 Continue, exit 1 Continue, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        error: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        interrupted: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
    "#]].assert_eq(&table(true, &[]));
    expect![[r#"
        no close: exit 0 Continue, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        success: exit 0 Continue, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        limit: exit 0 Continue, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        error: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
        interrupted: exit 0 Crashed, exit 1 Crashed, signal Crashed, deadline OutOfTime, silent Stalled, looping Looping, over budget OverBudget, context ContextUsedUp, asked Stopped, not started NotStarted, lost Lost
    "#]].assert_eq(&table(false, &[]));
}

#[test]
fn blocked_and_pending_need_no_close() {
    for closes in [true, false] {
        for (said, wanted) in [(blocked("x"), "Blocked"), (pending("x"), "Pending")] {
            for finish in FINISHES {
                for (name, exit) in exits() {
                    let seen: Vec<_> =
                        [complete(), said.clone()].into_iter().chain(finish.map(closing)).collect();
                    let evidence = AgentRunEvidence { closes, ..AgentRunEvidence::default() };
                    let wanted = if exit == AgentExit::Asked { "Stopped" } else { wanted };
                    assert_eq!(word(&judge(&seen, &exit, &evidence)), wanted, "{closes} {finish:?} {name}");
                }
            }
        }
    }
}

#[test]
fn the_last_closing_word_counts_and_later_words_change_nothing_about_it() {
    let evidence = AgentRunEvidence { closes: true, ..AgentRunEvidence::default() };
    let of = |seen: &[Signal]| word(&judge(seen, &AgentExit::Code(0), &evidence));
    assert_eq!(of(&[closing(AgentFinish::Error), complete(), closing(AgentFinish::Success)]), "Complete");
    assert_eq!(of(&[complete(), closing(AgentFinish::Success), closing(AgentFinish::Error)]), "Crashed");
    assert_eq!(of(&[closing(AgentFinish::Success), complete()]), "Complete");
}

#[test]
fn what_the_provider_said_last_explains_how_it_closed() {
    let evidence = AgentRunEvidence { closes: true, ..AgentRunEvidence::default() };
    let of = |seen: &[Signal]| word(&judge(seen, &AgentExit::Code(1), &evidence));
    let unauthorized = || Signal::Unauthorized { detail: "401".to_owned() };
    for finish in [None, Some(AgentFinish::Error), Some(AgentFinish::Interrupted)] {
        let with = |signal: Signal| -> Vec<_> { [signal].into_iter().chain(finish.map(closing)).collect() };
        assert_eq!(of(&with(quota())), "Quota");
        assert_eq!(of(&with(transient())), "Transient");
        assert_eq!(of(&with(unauthorized())), "Unauthorized");
        assert_eq!(of(&with(Signal::SessionGone)), "SessionGone");
    }
    assert_eq!(of(&[unauthorized(), tool(), closing(AgentFinish::Success)]), "Continue", "it got over that");
    assert_eq!(
        of(&[quota(), complete(), closing(AgentFinish::Success)]),
        "Complete",
        "the work is judged by itself"
    );
    assert_eq!(of(&[quota(), complete(), closing(AgentFinish::Error)]), "Quota", "it was cut short");
}

#[test]
fn a_run_that_closed_well_and_then_hung_is_over_not_stalled() {
    let evidence = AgentRunEvidence { closes: true, ..AgentRunEvidence::default() };
    let of = |seen: &[Signal], exit: &AgentExit| word(&judge(seen, exit, &evidence));
    for exit in [AgentExit::Silent, AgentExit::Signal(15)] {
        assert_eq!(of(&[closing(AgentFinish::Success)], &exit), "Continue", "{exit:?}");
        assert_eq!(
            of(&[quota(), closing(AgentFinish::Success)], &exit),
            "Quota",
            "{exit:?}: as with an exit code"
        );
    }
    assert_eq!(
        of(&[closing(AgentFinish::Success)], &AgentExit::Deadline),
        "OutOfTime",
        "its time is used all the same"
    );
}
