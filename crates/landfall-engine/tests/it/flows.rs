//! Flow files: the built-in ones as pictures, a project's own, and what is said about mistakes.

use std::fs;

use expect_test::{Expect, expect};
use landfall_engine::flows::{self, FlowError};
use landfall_engine::prompts::Prompts;
use landfall_model::flow::{draw_as_mermaid, draw_as_text};
use landfall_model::{Flow, StepKind, StepResult};

fn shown(errors: &[FlowError]) -> String {
    let one = |error: &FlowError| {
        let hint = error.hint.as_deref().map(|hint| format!("\n  hint: {hint}"));
        format!("{error}{}\n", hint.unwrap_or_default())
    };
    errors.iter().map(one).collect()
}

fn parse(source: &str) -> Flow {
    flows::parse_flow(source, "flows/mine.toml").unwrap_or_else(|errors| panic!("{}", shown(&errors)))
}

fn refuses(source: &str, expected: Expect) {
    let errors = flows::parse_flow(source, "mine.toml").expect_err("it should be refused");
    expected.assert_eq(&shown(&errors));
}

fn built_in(name: &str) -> Flow {
    let sources = flows::built_in();
    flows::parse_flow(&sources[name], &format!("{name}.toml"))
        .unwrap_or_else(|errors| panic!("{}", shown(&errors)))
}

/// Every built-in flow as a picture. A new flow fails this test until its picture is here.
#[test]
fn every_built_in_flow_looks_like_this() {
    let pictures = [
        (
            "issue",
            expect![[r#"
                issue: An issue of a tracker: triage, spec, code, review, land, and its acceptance criteria held against the result.

                ● observe  [tracker, phase issue] ◀ entry
                  ├─ triage → triage
                  ├─ spec → spec
                  ├─ code → code
                  ├─ offered → verify
                  ├─ landed → accept
                  ├─ split → split
                  └─ done → report

                ● triage  [agent, phase issue]
                  └─ done → triaged

                ● triaged  [tracker, phase issue]
                  ├─ spec → spec
                  ├─ code → code
                  ├─ split → split
                  └─ fail → triage (at most 2×)

                ● spec  [agent, phase spec]
                  └─ done → sized

                ● sized  [tracker, phase ready]
                  ├─ code → code
                  └─ split → split

                ● code  [agent, phase code]
                  └─ done → verify

                ● verify  [verify, phase code]
                  ├─ pass → offer
                  ├─ fail → code (at most 10×)
                  └─ conflict → code (at most 3×)

                ● offer  [tracker, phase code]
                  ├─ patch → land
                  └─ pr → checks

                ● checks  [tracker, phase review]
                  ├─ pass → review
                  └─ fail → code (at most 3×)

                ● review  [review, phase review]
                  ├─ approved → reviewed
                  └─ changes → code (at most 3×)

                ● reviewed  [tracker, phase merge]
                  └─ done → land

                ● land  [land, phase merge]
                  ├─ landed → merged
                  ├─ conflict → code (at most 3×)
                  └─ red → code (at most 3×)

                ● merged  [tracker, phase verify]
                  └─ done → accept

                ● accept  [tracker, phase verify]
                  ├─ pass → close
                  ├─ fail → code (at most 20×)
                  └─ partial → report

                ● close  [tracker, phase done]
                  └─ done → report

                ● split  [split, phase code]
                  └─ done → gather

                ● gather  [tracker, phase code]
                  ├─ done → accept
                  └─ split → split (at most 20×)

                ● report  [report, phase done]
                  └─ done → end

                entry for phase blocked: observe
                entry for phase code: observe
                entry for phase draft: observe
                entry for phase issue: observe
                entry for phase merge: observe
                entry for phase review: observe
                entry for phase spec: observe
                entry for phase verify: observe
            "#]],
            expect![[r#"
                flowchart TD
                  s0["observe (tracker)"]
                  s1["triage (agent)"]
                  s2["triaged (tracker)"]
                  s3["spec (agent)"]
                  s4["sized (tracker)"]
                  s5["code (agent)"]
                  s6["verify (verify)"]
                  s7["offer (tracker)"]
                  s8["checks (tracker)"]
                  s9["review (review)"]
                  s10["reviewed (tracker)"]
                  s11["land (land)"]
                  s12["merged (tracker)"]
                  s13["accept (tracker)"]
                  s14["close (tracker)"]
                  s15["split (split)"]
                  s16["gather (tracker)"]
                  s17["report (report)"]
                  start((start)) --> s0
                  s0 -->|"triage"| s1
                  s0 -->|"spec"| s3
                  s0 -->|"code"| s5
                  s0 -->|"offered"| s6
                  s0 -->|"landed"| s13
                  s0 -->|"split"| s15
                  s0 -->|"done"| s17
                  s1 -->|"done"| s2
                  s2 -->|"spec"| s3
                  s2 -->|"code"| s5
                  s2 -->|"split"| s15
                  s2 -->|"fail (at most 2×)"| s1
                  s3 -->|"done"| s4
                  s4 -->|"code"| s5
                  s4 -->|"split"| s15
                  s5 -->|"done"| s6
                  s6 -->|"pass"| s7
                  s6 -->|"fail (at most 10×)"| s5
                  s6 -->|"conflict (at most 3×)"| s5
                  s7 -->|"patch"| s11
                  s7 -->|"pr"| s8
                  s8 -->|"pass"| s9
                  s8 -->|"fail (at most 3×)"| s5
                  s9 -->|"approved"| s10
                  s9 -->|"changes (at most 3×)"| s5
                  s10 -->|"done"| s11
                  s11 -->|"landed"| s12
                  s11 -->|"conflict (at most 3×)"| s5
                  s11 -->|"red (at most 3×)"| s5
                  s12 -->|"done"| s13
                  s13 -->|"pass"| s14
                  s13 -->|"fail (at most 20×)"| s5
                  s13 -->|"partial"| s17
                  s14 -->|"done"| s17
                  s15 -->|"done"| s16
                  s16 -->|"done"| s13
                  s16 -->|"split (at most 20×)"| s15
                  s17 -->|"done"| finish((end))
            "#]],
        ),
        (
            "lifecycle",
            expect![[r#"
                lifecycle: Plan, have the plan judged, execute it with judges on the way, verify, judge, land.

                ● plan  [agent, phase planning] ◀ entry
                  ├─ done → check-plan
                  └─ blocked → stop

                ● check-plan  [check, phase planning]
                  ├─ PASS → exec
                  ├─ NEEDS_REVISION → plan (at most 3×)
                  └─ BLOCKED → stop

                ● exec  [agent, phase executing]
                  ├─ done → verify
                  ├─ mid-exec → verify-mid (at most 100×)
                  └─ blocked → stop

                ● verify-mid  [verify, phase executing]
                  ├─ pass → check-mid
                  ├─ fail → check-mid
                  └─ conflict → exec (at most 3×)

                ● check-mid  [check, phase executing]
                  ├─ CONTINUE → exec
                  ├─ NEEDS_FIX → exec (at most 2×)
                  ├─ REPLAN → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● verify  [verify, phase executing]
                  ├─ pass → check-exec
                  ├─ fail → exec (at most 100×)
                  └─ conflict → exec (at most 3×)

                ● check-exec  [check, phase executing]
                  ├─ ACCEPT → land
                  ├─ NEEDS_FIX → exec (at most 3×)
                  ├─ REPLAN → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● re-plan  [agent, phase re-planning]
                  ├─ done → check-re-plan
                  └─ blocked → stop

                ● check-re-plan  [check, phase re-planning]
                  ├─ PASS → exec
                  ├─ NEEDS_REVISION → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● land  [land, phase executing]
                  ├─ landed → report
                  ├─ conflict → exec (at most 3×)
                  └─ red → exec (at most 10×)

                ● report  [report, phase complete]
                  └─ done → end

                entry for phase complete: report
                entry for phase draft: plan
                entry for phase executing: verify
                entry for phase planning: check-plan
                entry for phase re-planning: re-plan
                entry for phase re-planning/needs-check: check-re-plan
                entry for phase re-planning/needs-plan: re-plan
                entry for phase review: exec
            "#]],
            expect![[r#"
                flowchart TD
                  s0["plan (agent)"]
                  s1["check-plan (check)"]
                  s2["exec (agent)"]
                  s3["verify-mid (verify)"]
                  s4["check-mid (check)"]
                  s5["verify (verify)"]
                  s6["check-exec (check)"]
                  s7["re-plan (agent)"]
                  s8["check-re-plan (check)"]
                  s9["land (land)"]
                  s10["report (report)"]
                  start((start)) --> s0
                  s0 -->|"done"| s1
                  s0 -->|"blocked"| halt((stop))
                  s1 -->|"PASS"| s2
                  s1 -->|"NEEDS_REVISION (at most 3×)"| s0
                  s1 -->|"BLOCKED"| halt((stop))
                  s2 -->|"done"| s5
                  s2 -->|"mid-exec (at most 100×)"| s3
                  s2 -->|"blocked"| halt((stop))
                  s3 -->|"pass"| s4
                  s3 -->|"fail"| s4
                  s3 -->|"conflict (at most 3×)"| s2
                  s4 -->|"CONTINUE"| s2
                  s4 -->|"NEEDS_FIX (at most 2×)"| s2
                  s4 -->|"REPLAN (at most 3×)"| s7
                  s4 -->|"BLOCKED"| halt((stop))
                  s5 -->|"pass"| s6
                  s5 -->|"fail (at most 100×)"| s2
                  s5 -->|"conflict (at most 3×)"| s2
                  s6 -->|"ACCEPT"| s9
                  s6 -->|"NEEDS_FIX (at most 3×)"| s2
                  s6 -->|"REPLAN (at most 3×)"| s7
                  s6 -->|"BLOCKED"| halt((stop))
                  s7 -->|"done"| s8
                  s7 -->|"blocked"| halt((stop))
                  s8 -->|"PASS"| s2
                  s8 -->|"NEEDS_REVISION (at most 3×)"| s7
                  s8 -->|"BLOCKED"| halt((stop))
                  s9 -->|"landed"| s10
                  s9 -->|"conflict (at most 3×)"| s2
                  s9 -->|"red (at most 10×)"| s2
                  s10 -->|"done"| finish((end))
            "#]],
        ),
        (
            "loop",
            expect![[r#"
                loop: Work until it is done and verified, then land it.

                ● work  [agent, phase working] ◀ entry
                  ├─ done → verify
                  └─ blocked → stop

                ● verify  [verify, phase verifying]
                  ├─ pass → land
                  ├─ fail → work (at most 100×)
                  └─ conflict → work (at most 3×)

                ● land  [land, phase landing]
                  ├─ landed → report
                  ├─ conflict → work (at most 3×)
                  └─ red → work (at most 10×)

                ● report  [report, phase reporting]
                  └─ done → end
            "#]],
            expect![[r#"
                flowchart TD
                  s0["work (agent)"]
                  s1["verify (verify)"]
                  s2["land (land)"]
                  s3["report (report)"]
                  start((start)) --> s0
                  s0 -->|"done"| s1
                  s0 -->|"blocked"| halt((stop))
                  s1 -->|"pass"| s2
                  s1 -->|"fail (at most 100×)"| s0
                  s1 -->|"conflict (at most 3×)"| s0
                  s2 -->|"landed"| s3
                  s2 -->|"conflict (at most 3×)"| s0
                  s2 -->|"red (at most 10×)"| s0
                  s3 -->|"done"| finish((end))
            "#]],
        ),
        (
            "reviewed",
            expect![[r#"
                reviewed: Work until it is done and verified, have it reviewed by another agent, then land it.

                ● work  [agent, phase working] ◀ entry
                  ├─ done → verify
                  └─ blocked → stop

                ● verify  [verify, phase verifying]
                  ├─ pass → review
                  ├─ fail → work (at most 100×)
                  └─ conflict → work (at most 3×)

                ● review  [review, phase reviewing]
                  ├─ approved → land
                  └─ changes → work (at most 10×)

                ● land  [land, phase landing]
                  ├─ landed → report
                  ├─ conflict → work (at most 3×)
                  └─ red → work (at most 10×)

                ● report  [report, phase reporting]
                  └─ done → end
            "#]],
            expect![[r#"
                flowchart TD
                  s0["work (agent)"]
                  s1["verify (verify)"]
                  s2["review (review)"]
                  s3["land (land)"]
                  s4["report (report)"]
                  start((start)) --> s0
                  s0 -->|"done"| s1
                  s0 -->|"blocked"| halt((stop))
                  s1 -->|"pass"| s2
                  s1 -->|"fail (at most 100×)"| s0
                  s1 -->|"conflict (at most 3×)"| s0
                  s2 -->|"approved"| s3
                  s2 -->|"changes (at most 10×)"| s0
                  s3 -->|"landed"| s4
                  s3 -->|"conflict (at most 3×)"| s0
                  s3 -->|"red (at most 10×)"| s0
                  s4 -->|"done"| finish((end))
            "#]],
        ),
        (
            "rollback",
            expect![[r#"
                rollback: Verify and land a revert that already exists.

                ● verify  [verify, phase verifying] ◀ entry
                  ├─ pass → land
                  ├─ fail → stop
                  └─ conflict → stop

                ● land  [land, phase landing]
                  ├─ landed → report
                  ├─ conflict → stop
                  └─ red → stop

                ● report  [report, phase reporting]
                  └─ done → end
            "#]],
            expect![[r#"
                flowchart TD
                  s0["verify (verify)"]
                  s1["land (land)"]
                  s2["report (report)"]
                  start((start)) --> s0
                  s0 -->|"pass"| s1
                  s0 -->|"fail"| halt((stop))
                  s0 -->|"conflict"| halt((stop))
                  s1 -->|"landed"| s2
                  s1 -->|"conflict"| halt((stop))
                  s1 -->|"red"| halt((stop))
                  s2 -->|"done"| finish((end))
            "#]],
        ),
        (
            "staged",
            expect![[r#"
                staged: Objective with one confirmation, then stages with judges and convergence until it is met; land.

                ● target  [target, phase target] ◀ entry
                  └─ answered → plan

                ● plan  [agent, phase planning]
                  ├─ done → check-plan
                  └─ blocked → stop

                ● check-plan  [check, phase planning]
                  ├─ PASS → exec
                  ├─ NEEDS_REVISION → plan (at most 3×)
                  └─ BLOCKED → stop

                ● exec  [agent, phase executing]
                  ├─ done → verify
                  ├─ mid-exec → verify-mid (at most 100×)
                  └─ blocked → stop

                ● verify-mid  [verify, phase executing]
                  ├─ pass → check-mid
                  ├─ fail → check-mid
                  └─ conflict → exec (at most 3×)

                ● check-mid  [check, phase executing]
                  ├─ CONTINUE → exec
                  ├─ NEEDS_FIX → exec (at most 2×)
                  ├─ REPLAN → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● verify  [verify, phase executing]
                  ├─ pass → check-exec
                  ├─ fail → exec (at most 100×)
                  └─ conflict → exec (at most 3×)

                ● check-exec  [check, phase executing]
                  ├─ ACCEPT → converge
                  ├─ NEEDS_FIX → exec (at most 3×)
                  ├─ REPLAN → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● re-plan  [agent, phase re-planning]
                  ├─ done → check-re-plan
                  └─ blocked → stop

                ● check-re-plan  [check, phase re-planning]
                  ├─ PASS → exec
                  ├─ NEEDS_REVISION → re-plan (at most 3×)
                  └─ BLOCKED → stop

                ● converge  [converge, phase evolving]
                  ├─ satisfied → land
                  ├─ CONTINUE → plan (at most 30×)
                  ├─ rollback → re-plan (at most 10×)
                  └─ NEEDS_FIX → exec (at most 3×)

                ● land  [land, phase accepted]
                  ├─ landed → report
                  ├─ conflict → exec (at most 3×)
                  └─ red → exec (at most 10×)

                ● report  [report, phase satisfied]
                  └─ done → end

                entry for phase accepted: land
                entry for phase complete: report
                entry for phase draft: target
                entry for phase evolving: target
                entry for phase executing: verify
                entry for phase planning: plan
                entry for phase re-planning: re-plan
                entry for phase re-planning/needs-check: check-re-plan
                entry for phase re-planning/needs-plan: re-plan
                entry for phase review: exec
                entry for phase satisfied: target
                entry for phase target: target
            "#]],
            expect![[r#"
                flowchart TD
                  s0["target (target)"]
                  s1["plan (agent)"]
                  s2["check-plan (check)"]
                  s3["exec (agent)"]
                  s4["verify-mid (verify)"]
                  s5["check-mid (check)"]
                  s6["verify (verify)"]
                  s7["check-exec (check)"]
                  s8["re-plan (agent)"]
                  s9["check-re-plan (check)"]
                  s10["converge (converge)"]
                  s11["land (land)"]
                  s12["report (report)"]
                  start((start)) --> s0
                  s0 -->|"answered"| s1
                  s1 -->|"done"| s2
                  s1 -->|"blocked"| halt((stop))
                  s2 -->|"PASS"| s3
                  s2 -->|"NEEDS_REVISION (at most 3×)"| s1
                  s2 -->|"BLOCKED"| halt((stop))
                  s3 -->|"done"| s6
                  s3 -->|"mid-exec (at most 100×)"| s4
                  s3 -->|"blocked"| halt((stop))
                  s4 -->|"pass"| s5
                  s4 -->|"fail"| s5
                  s4 -->|"conflict (at most 3×)"| s3
                  s5 -->|"CONTINUE"| s3
                  s5 -->|"NEEDS_FIX (at most 2×)"| s3
                  s5 -->|"REPLAN (at most 3×)"| s8
                  s5 -->|"BLOCKED"| halt((stop))
                  s6 -->|"pass"| s7
                  s6 -->|"fail (at most 100×)"| s3
                  s6 -->|"conflict (at most 3×)"| s3
                  s7 -->|"ACCEPT"| s10
                  s7 -->|"NEEDS_FIX (at most 3×)"| s3
                  s7 -->|"REPLAN (at most 3×)"| s8
                  s7 -->|"BLOCKED"| halt((stop))
                  s8 -->|"done"| s9
                  s8 -->|"blocked"| halt((stop))
                  s9 -->|"PASS"| s3
                  s9 -->|"NEEDS_REVISION (at most 3×)"| s8
                  s9 -->|"BLOCKED"| halt((stop))
                  s10 -->|"satisfied"| s11
                  s10 -->|"CONTINUE (at most 30×)"| s1
                  s10 -->|"rollback (at most 10×)"| s8
                  s10 -->|"NEEDS_FIX (at most 3×)"| s3
                  s11 -->|"landed"| s12
                  s11 -->|"conflict (at most 3×)"| s3
                  s11 -->|"red (at most 10×)"| s3
                  s12 -->|"done"| finish((end))
            "#]],
        ),
        (
            "watched",
            expect![[r#"
            watched: Watch an agent that runs its own loop, then verify its work and land it.

            ● auto  [agent, phase executing] ◀ entry
              ├─ done → verify
              └─ blocked → stop

            ● verify  [verify, phase executing]
              ├─ pass → land
              ├─ fail → auto (at most 100×)
              └─ conflict → auto (at most 3×)

            ● land  [land, phase executing]
              ├─ landed → report
              ├─ conflict → auto (at most 3×)
              └─ red → auto (at most 10×)

            ● report  [report, phase complete]
              └─ done → end
        "#]],
            expect![[r#"
            flowchart TD
              s0["auto (agent)"]
              s1["verify (verify)"]
              s2["land (land)"]
              s3["report (report)"]
              start((start)) --> s0
              s0 -->|"done"| s1
              s0 -->|"blocked"| halt((stop))
              s1 -->|"pass"| s2
              s1 -->|"fail (at most 100×)"| s0
              s1 -->|"conflict (at most 3×)"| s0
              s2 -->|"landed"| s3
              s2 -->|"conflict (at most 3×)"| s0
              s2 -->|"red (at most 10×)"| s0
              s3 -->|"done"| finish((end))
        "#]],
        ),
    ];
    assert_eq!(
        flows::built_in().into_keys().collect::<Vec<_>>(),
        pictures.each_ref().map(|(name, ..)| *name)
    );
    for (name, as_text, as_mermaid) in pictures {
        as_text.assert_eq(&draw_as_text(&built_in(name)));
        as_mermaid.assert_eq(&draw_as_mermaid(&built_in(name)));
    }
}

#[test]
fn the_prompts_of_built_in_flows_are_there() {
    let prompts = Prompts::load_templates(None).expect("the built-in prompts");
    for (name, flow) in flows::load_flows(None).flows {
        for step in &flow.steps {
            if let StepKind::Agent { prompt, .. } = &step.kind {
                assert!(prompts.template_names().contains(&prompt.as_str()), "{name}: no prompt `{prompt}`");
            }
        }
    }
}

#[test]
fn only_the_flow_of_an_issue_follows_one() {
    for name in ["lifecycle", "loop", "reviewed", "rollback", "staged", "watched"] {
        assert!(!built_in(name).follows_an_issue(), "{name}");
    }
    assert!(built_in("issue").follows_an_issue());
}

const TINY: &str = "[step.work]\nkind = \"agent\"\nprompt = \"work\"\non.done = \"end\"\n";

#[test]
fn what_is_left_out_has_a_default() {
    let flow = parse(TINY);
    assert_eq!((flow.name.as_str(), flow.about.as_str(), flow.entry.as_str()), ("mine", "", "work"));
    assert_eq!(flow.steps[0].phase, "work");
    let StepKind::Agent { prompt, output, iterate, every } = &flow.steps[0].kind else { panic!("an agent") };
    assert_eq!((prompt.as_str(), output.len(), *iterate, *every), ("work", 0, false, 0));
}

#[test]
fn steps_and_edges_keep_the_order_of_the_file() {
    let flow = parse(
        "[step.z]\nkind = \"verify\"\non.pass = \"a\"\non.fail = \"stop\"\non.conflict = \"stop\"\n\
         [step.a]\nkind = \"ask\"\nquestion = \"go on?\"\non.answered = \"end\"\n",
    );
    assert_eq!(flow.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
    assert_eq!(
        flow.steps[0].on.iter().map(|edge| edge.result.word()).collect::<Vec<_>>(),
        ["pass", "fail", "conflict"]
    );
    assert_eq!(flow.entry.as_str(), "z");
}

#[test]
fn thresholds_are_kept_in_thousandths() {
    let with = |threshold: &str| {
        let flow = parse(&format!(
            "[step.c]\nkind = \"check\"\ncheckpoint = \"post-plan\"\nthreshold = {threshold}\non.PASS = \"end\"\non.NEEDS_REVISION = \"stop\"\non.BLOCKED = \"stop\"\n"
        ));
        let StepKind::Check { threshold, .. } = flow.steps[0].kind else { panic!("a check") };
        threshold
    };
    assert_eq!(["0", "0.575", "0.70", "1", "1.0"].map(with), [0, 575, 700, 1000, 1000]);
}

#[test]
fn unknown_words_are_named_with_the_nearest_known_one_all_at_once() {
    refuses(
        "[flow]\nabuot = \"x\"\n[steps.x]\nkind = \"agent\"\n\
         [step.work]\nkind = \"agnet\"\npromt = \"work\"\non.doen = \"end\"\non.done = { to = \"end\", mx = 3 }\n\
         [step.other]\nkind = \"zzz\"\n[step.none]\nphase = \"x\"\n",
        expect![[r#"
            mine.toml:2: unknown key `abuot` in [flow]
              hint: did you mean `about`?
            mine.toml:3: unknown section [steps]
              hint: did you mean `step`?
            mine.toml:6: unknown kind `agnet`
              hint: did you mean `agent`?
            mine.toml:7: unknown key `promt` in [step.work]
              hint: did you mean `prompt`?
            mine.toml:8: unknown result `doen` in [step.work]
              hint: did you mean `done`?
            mine.toml:9: unknown key `mx` in `step.work.on.done`
              hint: did you mean `max`?
            mine.toml:11: unknown kind `zzz`
              hint: known kinds: agent, verify, check, review, land, report, ask, split, tracker, target, converge
            mine.toml:12: step `none` has no `kind`
              hint: known kinds: agent, verify, check, review, land, report, ask, split, tracker, target, converge
        "#]],
    );
}

#[test]
fn wrong_values_say_what_is_wanted() {
    refuses(
        "[flow]\nabout = 3\nentry = \"\"\n[entries]\ndraft = 1\n\
         [step.work]\nkind = \"agent\"\nprompt = [\"work\"]\noutput = \"plan.md\"\non.done = 7\n\
         [step.c]\nkind = \"check\"\ncheckpoint = \"post-plan\"\nthreshold = 1.5\non.BLOCKED = { to = \"stop\", max = -1 }\non.PASS = { max = 3 }\n\
         [step.d]\nkind = \"check\"\ncheckpoint = \"post-plan\"\nthreshold = \"high\"\n\
         [step.e]\nkind = \"agent\"\nprompt = \"p\"\niterate = \"yes\"\n",
        expect![[r#"
            mine.toml:2: `flow.about` should be text in quotes, not a value of type integer
            mine.toml:3: `flow.entry` is empty
            mine.toml:5: `entries.draft` should be text in quotes, not a value of type integer
            mine.toml:8: `step.work.prompt` should be text in quotes, not a value of type array
            mine.toml:9: `step.work.output` should be a list such as ["plan.md"], not a value of type string
            mine.toml:10: `step.work.on.done` should be the name of a step or `{ to = "…", max = 3 }`, not a value of type integer
            mine.toml:14: `step.c.threshold` is out of range: 0.0 to 1.0
            mine.toml:15: `step.c.on.BLOCKED.max` is out of range: 1 to 10000
            mine.toml:16: `step.c.on.PASS` does not say where `to`
              hint: `to` is a step, `end` or `stop`
            mine.toml:20: `step.d.threshold` should be a number such as 0.70, not a value of type string
            mine.toml:24: `step.e.iterate` should be true or false, not a value of type string
        "#]],
    );
    refuses(
        "step = 3\n",
        expect![[r#"
            mine.toml:1: `step` should be a table, not a value of type integer
        "#]],
    );
    refuses(
        "[step]\nwork = 3\n",
        expect![[r#"
            mine.toml:2: `step.work` should be a table, not a value of type integer
        "#]],
    );
}

#[test]
fn keys_belong_to_kinds() {
    refuses(
        "[step.v]\nkind = \"verify\"\nprompt = \"work\"\non.pass = \"end\"\non.fail = \"stop\"\n\
         [step.a]\nkind = \"agent\"\nthreshold = 0.5\non.done = \"end\"\n[step.q]\nkind = \"ask\"\n",
        expect![[r#"
            mine.toml:3: a step of kind `verify` takes no `prompt`
              hint: take it out
            mine.toml:6: step `a` has no `prompt`
              hint: a step of kind `agent` needs one
            mine.toml:8: a step of kind `agent` takes no `threshold`
              hint: take it out
            mine.toml:10: step `q` has no `question`
              hint: a step of kind `ask` needs one
        "#]],
    );
}

#[test]
fn the_words_for_leaving_are_not_steps() {
    refuses(
        &TINY.replace("step.work", "step.end"),
        expect![[r#"
            mine.toml:1: a step cannot be called `end`
              hint: edges use that word for leaving the flow
        "#]],
    );
    refuses(
        &TINY.replace("step.work", "step.\"a b\""),
        expect![[r#"
            mine.toml:1: a step cannot be called `a b`
              hint: letters, digits, `-` and `_`
        "#]],
    );
}

#[test]
fn what_the_model_finds_is_said_at_its_line() {
    refuses(
        &format!("[flow]\nentry = \"nowhere\"\n[entries]\ndraft = \"never\"\n{TINY}"),
        expect![[r#"
            mine.toml:2: the entry `nowhere` is not a step
              hint: known steps: work
            mine.toml:4: the entry for phase `draft` names `never`, which is not a step
              hint: known steps: work
            mine.toml:5: step `work` cannot be reached from the entry `nowhere`
              hint: lead an edge to it, or take it out
        "#]],
    );
    refuses(
        "[step.work]\nkind = \"agent\"\nprompt = \"work\"\n",
        expect![[r#"
            mine.toml:1: step `work` leaves the result `done` unrouted
              hint: add `on.done = "…"` (a step, `end` or `stop`)
        "#]],
    );
    refuses(
        &TINY.replace("\"end\"", "\"ende\""),
        expect![[r#"
            mine.toml:4: `ende` is not a step of this flow
              hint: known steps: work
        "#]],
    );
    refuses(
        &format!("{TINY}on.landed = \"end\"\n"),
        expect![[r#"
            mine.toml:5: a step of kind `agent` never ends with `landed`
              hint: its results: done, blocked, mid-exec
        "#]],
    );
    refuses(
        &format!("{TINY}[step.lost]\nkind = \"report\"\non.done = \"end\"\n"),
        expect![[r#"
            mine.toml:5: step `lost` cannot be reached from the entry `work`
              hint: lead an edge to it, or take it out
        "#]],
    );
    refuses(
        "[step.a]\nkind = \"agent\"\nprompt = \"work\"\non.done = \"b\"\n\
         [step.b]\nkind = \"verify\"\non.pass = \"end\"\non.fail = \"a\"\n",
        expect![[r#"
            mine.toml:1: the cycle a → b → a has no bound
              hint: give one of its edges a max, e.g. `{ to = "…", max = 3 }`
        "#]],
    );
    refuses(
        &TINY.replace("\"end\"", "{ to = \"end\", max = 0 }"),
        expect![[r#"
            mine.toml:4: a bound of 0 could never be taken
              hint: use `stop` instead, or a bound of at least 1
        "#]],
    );
}

#[test]
fn a_file_that_is_no_flow_is_refused() {
    refuses(
        "",
        expect![[r#"
            mine.toml: it has no steps
              hint: add one: `[step.work]` with `kind = "agent"`
        "#]],
    );
    refuses(
        "[flow\n",
        expect![[r#"
            mine.toml:1: not TOML: unclosed table, expected `]`, in `[flow`
        "#]],
    );
    refuses(
        "[flow]\nabout = \"no steps\"\n",
        expect![[r#"
            mine.toml: it has no steps
              hint: add one: `[step.work]` with `kind = "agent"`
        "#]],
    );
}

#[test]
fn a_flow_cut_anywhere_is_understood_or_refused() {
    let whole = &flows::built_in()["lifecycle"];
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        let errors = flows::parse_flow(&whole[..end], "mine.toml").err().unwrap_or_default();
        let lines = whole[..end].lines().count().max(1);
        assert!(errors.iter().all(|error| error.line.is_none_or(|line| line <= lines)), "cut at {end}");
    }
}

#[test]
fn a_projects_own_flow_wins_by_name_and_new_ones_join() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("loop.toml"), TINY).expect("write");
    fs::write(folder.path().join("mine.toml"), TINY).expect("write");
    fs::write(folder.path().join("notes.md"), "not a flow").expect("write");
    let loaded = flows::load_flows(Some(folder.path()));
    assert_eq!(shown(&loaded.errors), "");
    assert_eq!(
        loaded.flows.keys().collect::<Vec<_>>(),
        ["issue", "lifecycle", "loop", "mine", "reviewed", "rollback", "staged", "watched"]
    );
    assert_eq!(loaded.flows["loop"].steps.len(), 1);
    assert_eq!(loaded.sources["loop"], TINY);
}

#[test]
fn a_broken_flow_of_a_project_is_not_replaced_by_the_built_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("loop.toml"), "[step.work]\n").expect("write");
    let loaded = flows::load_flows(Some(folder.path()));
    assert!(!loaded.flows.contains_key("loop"));
    assert_eq!(loaded.errors.len(), 1);
    assert!(loaded.errors[0].file.ends_with("loop.toml"));
    assert!(loaded.flows.contains_key("lifecycle"));
}

#[test]
fn a_folder_that_is_not_there_holds_nothing_and_one_that_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(flows::load_flows(Some(&folder.path().join("none"))).errors.is_empty());
    let file = folder.path().join("file");
    fs::write(&file, "").expect("write");
    assert_eq!(flows::load_flows(Some(&file)).errors.len(), 1);
    fs::write(folder.path().join("big.toml"), vec![b'#'; 1024 * 1024 + 1]).expect("write");
    fs::write(folder.path().join("latin.toml"), [0xe9]).expect("write");
    let errors = flows::load_flows(Some(folder.path())).errors;
    assert_eq!(errors.len(), 2, "{}", shown(&errors));
}

#[test]
fn the_example_on_the_reference_page_can_be_followed() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flows.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, after) = page.split_once("```toml\n").expect("an example");
    let (example, _) = after.split_once("```").expect("its end");
    assert_eq!(parse(example).find_problems(), []);
}

#[test]
fn the_reference_page_names_every_kind_and_result() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flows.md");
    let page = fs::read_to_string(page).expect("the page");
    let words = StepKind::WORDS.into_iter().chain(StepResult::ALL.map(StepResult::word));
    let missing: Vec<&str> = words.filter(|word| !page.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
