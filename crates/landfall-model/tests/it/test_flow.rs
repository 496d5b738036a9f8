//! Flows: what is wrong with one, and how it is drawn.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::{Expect, expect};
use landfall_model::flow::{TrackerOperation, draw_as_mermaid, draw_as_text};
use landfall_model::score::GatePoint;
use landfall_model::{Flow, StepKind, StepName, StepResult};

use crate::flows_used::{agent, agent_once, ask, asks, at_most, flow, loops, on, polishes, step, takes_back};

fn check(flow: &Flow, expect: Expect) {
    let mut told = String::new();
    for problem in flow.find_problems() {
        let step = problem.step.as_ref().map_or("-", StepName::as_str);
        let at = problem.result.map_or("-", StepResult::word);
        writeln!(told, "{step}/{at}: {} ({})", problem.what, problem.hint).expect("a string takes it");
    }
    expect.assert_eq(&told);
}

fn every_kind() -> [StepKind; 11] {
    [
        agent(),
        StepKind::Verify,
        StepKind::Check { checkpoint: GatePoint::PostPlan, threshold: 700 },
        StepKind::Review,
        StepKind::Land,
        StepKind::Report,
        ask("Is the plan good?"),
        StepKind::Split,
        StepKind::Tracker { act: TrackerOperation::Observe },
        StepKind::Target,
        StepKind::Converge,
    ]
}

#[test]
fn the_flows_these_tests_use_are_sound() {
    for flow in [loops(), takes_back(), asks(), polishes()] {
        assert_eq!(flow.find_problems(), [], "{}", flow.name);
    }
}

#[test]
fn an_entry_that_is_no_step_is_named() {
    let mut wrong = flow("wrong", [step("work", agent(), [on("done", "end")])]);
    wrong.entry = StepName::new("wrok");
    wrong.entries.insert("planning".to_owned(), StepName::new("plan"));
    check(
        &wrong,
        expect![[r#"
        -/-: the entry `wrok` is not a step (known steps: work)
        -/-: the entry for phase `planning` names `plan`, which is not a step (known steps: work)
        work/-: step `work` cannot be reached from the entry `wrok` (lead an edge to it, or take it out)
    "#]],
    );
}

#[test]
fn an_entry_by_phase_makes_its_step_reachable() {
    let mut entered = flow(
        "entered",
        [
            step("work", agent(), [on("done", "end")]),
            step("verify", StepKind::Verify, [on("pass", "end"), on("fail", "stop")]),
        ],
    );
    assert_eq!(entered.find_problems().len(), 1);
    entered.entries.insert("executing".to_owned(), StepName::new("verify"));
    assert_eq!(entered.find_problems(), []);
}

#[test]
fn an_edge_to_an_unknown_step_is_named_with_the_known_ones() {
    check(
        &flow("wrong", [step("work", agent(), [on("done", "verfy")])]),
        expect![[r#"
        work/done: `verfy` is not a step of this flow (known steps: work)
    "#]],
    );
}

#[test]
fn a_result_that_leads_nowhere_is_named_for_every_kind() {
    let mut told = String::new();
    for kind in every_kind() {
        let flow = flow("wrong", [step("it", kind, [])]);
        let whats: Vec<_> = flow.find_problems().into_iter().map(|problem| problem.what).collect();
        writeln!(told, "{}", whats.join("; ")).expect("a string takes it");
    }
    expect![[r#"
        step `it` leaves the result `done` unrouted
        step `it` leaves the result `pass` unrouted; step `it` leaves the result `fail` unrouted
        step `it` leaves the result `PASS` unrouted; step `it` leaves the result `NEEDS_REVISION` unrouted; step `it` leaves the result `BLOCKED` unrouted
        step `it` leaves the result `approved` unrouted; step `it` leaves the result `changes` unrouted
        step `it` leaves the result `landed` unrouted; step `it` leaves the result `conflict` unrouted; step `it` leaves the result `red` unrouted
        step `it` leaves the result `done` unrouted
        step `it` leaves the result `answered` unrouted
        step `it` leaves the result `done` unrouted
        step `it` leaves the result `triage` unrouted; step `it` leaves the result `spec` unrouted; step `it` leaves the result `code` unrouted; step `it` leaves the result `offered` unrouted; step `it` leaves the result `landed` unrouted; step `it` leaves the result `split` unrouted; step `it` leaves the result `done` unrouted
        step `it` leaves the result `answered` unrouted
        step `it` leaves the result `satisfied` unrouted; step `it` leaves the result `CONTINUE` unrouted; step `it` leaves the result `rollback` unrouted
    "#]].assert_eq(&told);
}

#[test]
fn a_step_that_cannot_be_reached_is_named() {
    check(
        &flow(
            "wrong",
            [
                step("work", agent(), [on("done", "end")]),
                step("lost", agent(), [on("done", "lost2")]),
                step("lost2", agent(), [on("done", "end")]),
            ],
        ),
        expect![[r#"
            lost/-: step `lost` cannot be reached from the entry `work` (lead an edge to it, or take it out)
            lost2/-: step `lost2` cannot be reached from the entry `work` (lead an edge to it, or take it out)
        "#]],
    );
}

#[test]
fn a_cycle_without_a_bound_is_shown() {
    check(
        &flow(
            "wrong",
            [
                step("work", agent(), [on("done", "verify")]),
                step("verify", StepKind::Verify, [on("pass", "end"), on("fail", "work")]),
            ],
        ),
        expect![[r#"
            work/-: the cycle work → verify → work has no bound (give one of its edges a max, e.g. `{ to = "…", max = 3 }`)
        "#]],
    );
    check(
        &flow("wrong", [step("work", agent_once(), [on("done", "work")])]),
        expect![[r#"
        work/-: the cycle work → work has no bound (give one of its edges a max, e.g. `{ to = "…", max = 3 }`)
    "#]],
    );
}

#[test]
fn one_bound_in_a_cycle_is_enough() {
    let bounded = flow(
        "bounded",
        [
            step("work", agent(), [on("done", "verify")]),
            step("verify", StepKind::Verify, [on("pass", "end"), at_most(3, on("fail", "work"))]),
        ],
    );
    assert_eq!(bounded.find_problems(), []);
}

#[test]
fn a_result_the_step_never_has_is_named() {
    check(
        &flow("wrong", [step("work", agent(), [on("done", "end"), on("pass", "end"), on("ACCEPT", "end")])]),
        expect![[r#"
            work/pass: a step of kind `agent` never ends with `pass` (its results: done, blocked, mid-exec)
            work/ACCEPT: a step of kind `agent` never ends with `ACCEPT` (its results: done, blocked, mid-exec)
        "#]],
    );
}

#[test]
fn a_bound_of_zero_is_named() {
    check(
        &flow(
            "wrong",
            [step("verify", StepKind::Verify, [on("pass", "end"), at_most(0, on("fail", "verify"))])],
        ),
        expect![[r#"
            verify/fail: a bound of 0 could never be taken (use `stop` instead, or a bound of at least 1)
        "#]],
    );
}

#[test]
fn every_problem_has_a_hint() {
    let mut wrong = flow(
        "wrong",
        [
            step("work", agent(), [on("pass", "nowhere"), at_most(0, on("blocked", "work"))]),
            step("a", agent(), [on("done", "b")]),
            step("b", agent(), [on("done", "a")]),
        ],
    );
    wrong.entries.insert("x".to_owned(), StepName::new("y"));
    let problems = wrong.find_problems();
    assert!(problems.len() >= 6, "{problems:?}");
    for problem in problems {
        assert!(!problem.what.is_empty() && !problem.hint.is_empty(), "{problem:?}");
        assert!(!problem.what.ends_with('.') && !problem.hint.ends_with('.'), "a fragment: {problem:?}");
    }
}

#[test]
fn every_kind_has_its_word_and_results_of_its_own() {
    let words: Vec<_> = every_kind().iter().map(StepKind::word).collect();
    assert_eq!(words, StepKind::WORDS);
    for kind in every_kind() {
        let all: Vec<_> = kind.must_route().iter().chain(kind.may_route()).collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), distinct.len(), "{} names a result twice", kind.word());
    }
}

#[test]
fn every_result_has_a_word_that_leads_back_to_it() {
    for result in StepResult::ALL {
        assert_eq!(StepResult::from_word(result.word()), Some(result));
    }
    assert_eq!(StepResult::from_word("DONE"), None);
    let words: BTreeSet<_> = StepResult::ALL.map(StepResult::word).into_iter().collect();
    assert_eq!(words.len(), StepResult::ALL.len());
}

#[test]
fn a_flow_is_drawn_as_text() {
    let mut drawn = (*loops()).clone();
    drawn.entries.insert("executing".to_owned(), StepName::new("verify"));
    drawn.steps.push(step("judge", StepKind::Converge, [on("approved", "end"), on("changes", "stop")]));
    expect![[r#"
        loop: The flow loop.

        ● work  [agent, phase work-phase] ◀ entry
          └─ done → verify

        ● verify  [verify, phase verify-phase]
          ├─ pass → land
          └─ fail → work (at most 50×)

        ● land  [land, phase land-phase]
          ├─ landed → report
          ├─ conflict → work (at most 10×)
          └─ red → work (at most 10×)

        ● report  [report, phase report-phase]
          └─ done → end

        ● judge  [converge, phase judge-phase]
          ├─ approved → end
          └─ changes → stop

        entry for phase executing: verify
    "#]]
    .assert_eq(&draw_as_text(&drawn));
}

#[test]
fn a_flow_is_drawn_as_mermaid() {
    expect![[r#"
        flowchart TD
          s0["work (agent)"]
          s1["verify (verify)"]
          s2["land (land)"]
          s3["report (report)"]
          start((start)) --> s0
          s0 -->|"done"| s1
          s1 -->|"pass"| s2
          s1 -->|"fail (at most 50×)"| s0
          s2 -->|"landed"| s3
          s2 -->|"conflict (at most 10×)"| s0
          s2 -->|"red (at most 10×)"| s0
          s3 -->|"done"| finish((end))
    "#]]
    .assert_eq(&draw_as_mermaid(&loops()));
}
