//! The catalogue of recoveries as it ships, what a project may add to it, and how an agent's plan is read.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use landfall_engine::settings::ProfileSettings;
use landfall_engine::{catalogue, diagnose};
use landfall_model::AgentExit;
use landfall_model::issue::ReconcilePoint;
use landfall_model::recovery::{
    OPS, PlanAction, RecoveryOp, RecoveryPlan, RecoveryPlanBounds, Symptoms, check_plan, detect_pattern,
    find_shadowed_patterns,
};

use crate::workspace::Scene;

#[test]
fn every_pattern_gets_its_own_sample_and_orders_this() {
    let catalogue = catalogue::built_in();
    assert_eq!(find_shadowed_patterns(&catalogue), []);
    let line = |sample: &landfall_model::recovery::Pattern| {
        let found = detect_pattern(&catalogue, &sample.sample_symptoms()).expect("something fits");
        assert_eq!(found.name, sample.name);
        let ops: Vec<&str> =
            found.action.to_operations().iter().map(landfall_model::recovery::RecoveryOp::word).collect();
        let ops = if ops.is_empty() { String::new() } else { format!(" ({})", ops.join(", ")) };
        format!("{}: {}{ops}, at most {}×", found.name, found.action.wire_name(), found.limit)
    };
    let told: Vec<String> = catalogue.iter().map(line).collect();
    expect![[r#"
        dco-missing: sign-off (amend-signoff, push-branch), at most 1×
        conflict-marker-residual: retry, at most 1×
        ff-only-merge-fallback: rebase (rebase-onto-base, push-branch), at most 1×
        async-external-commit: resume, at most 2×
        code-base-conflict-overlap: escalate, at most 1×
        code-base-conflict: rebase (rebase-onto-base, push-branch), at most 1×
        mid-run-api-error: restore-label, at most 1×
        ci-wait-silence-timeout: rerun-ci (rerun-checks), at most 1×
        watchdog-kill: raise-timeout, at most 1×
        json-mode-silent-hang: retry, at most 1×
        external-kill-respawn: resume, at most 3×
        killed-after-commit: resume, at most 2×
        wrapper-retry-on-kill: retry, at most 1×
        review-pending: retry-after, at most 2×
        baseline-failure: proceed, at most 2×
        ci-flake-retry: rerun-ci (rerun-checks), at most 1×
        preview-deployment-absent: proceed, at most 1×
        background-notification-wait: retry, at most 1×
        auto-retry-on-fail: retry, at most 3×
        reconciler-header-mismatch: mark-review (mark-review), at most 1×
        review-silent-no-op: rerun-review, at most 1×
        review-completion-false-negative: mark-review (mark-review), at most 1×
        silent-no-op: retry, at most 1×
        code-completed-no-pr: open-pr (rebase-onto-base, push-branch, open-pr), at most 1×
        output-missing: retry, at most 2×"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn no_pattern_fits_when_each_of_its_needed_signs_is_taken_away() {
    let catalogue = catalogue::built_in();
    for pattern in &catalogue {
        let mut blank = pattern.sample_symptoms();
        (blank.tail, blank.exit, blank.matches, blank.took_ms) = (String::new(), None, None, u64::MAX);
        blank.facts.clear();
        assert!(!pattern.matches_symptoms(&blank), "`{}` fits what nothing is known of", pattern.name);
    }
}

const MINE: &str = r#"
[[recovery]]
name = "no-database"
about = "the database is not up yet"
all = [{ says = "connection refused (5432)" }]
action = "retry-after"
wait_s = 30
limit = 2
[recovery.sample]
phase = "verify"
exit = 1
took_s = 3
log = "error: connection refused (5432)"
"#;

fn refused(source: &str, expected: Expect) {
    let error =
        catalogue::extend_catalogue(catalogue::built_in(), source, "mine.toml").expect_err("it is refused");
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_project_adds_patterns_and_changes_built_in_ones_only_by_name() {
    let names = |source: &str| -> Vec<String> {
        let all =
            catalogue::extend_catalogue(catalogue::built_in(), source, "mine.toml").expect("it is fine");
        all.into_iter().map(|pattern| pattern.name).collect()
    };
    let built_in = names("");
    assert_eq!(names(MINE), [built_in.clone(), vec!["no-database".to_owned()]].concat());
    let replaced = names(&MINE.replace("limit = 2", "limit = 2\nreplaces = \"watchdog-kill\""));
    assert_eq!(replaced.len(), built_in.len());
    let place = built_in.iter().position(|name| name == "watchdog-kill").expect("it is built in");
    assert_eq!(replaced[place], "no-database", "it stands where the other stood");
    refused(
        &MINE.replace("no-database", "watchdog-kill"),
        expect![
            "mine.toml:2: there is a pattern called `watchdog-kill` already; say `replaces = \"watchdog-kill\"` to take its place"
        ],
    );
    refused(
        &MINE.replace("log = \"error", "log = \"ERROR: missing sign-off: error"),
        expect!["mine.toml: the sample of `no-database` is taken by `dco-missing`, which comes first"],
    );
}

#[test]
fn what_is_wrong_with_a_catalogue_is_said_with_the_line() {
    refused(
        &MINE.replace("5432)\"\n", "5433)\"\n"),
        expect!["mine.toml: `no-database` does not fit its own sample"],
    );
    refused(
        &MINE.replace("wait_s = 30\n", ""),
        expect!["mine.toml:2: `retry-after` of `no-database` takes `wait_s`, at most 86400"],
    );
    refused(
        &MINE.replace("\"retry-after\"\nwait_s = 30", "\"run\""),
        expect![
            "mine.toml:2: `run` is no action; known: retry, retry-after, resume, open-pr, rebase, sign-off, wait-ci, rerun-ci, restore-label, rerun-review, mark-review, raise-timeout, clean-unrelated, proceed, escalate, stop"
        ],
    );
    refused(
        &MINE.replace("limit = 2", "limit = 99"),
        expect!["mine.toml:2: `limit` of `no-database` is 99; 1 to 20 are allowed"],
    );
    refused(
        &MINE.replace("[{ says = \"connection refused (5432)\" }]", "[]"),
        expect!["mine.toml:2: `no-database` has no signs: it would fit every failure"],
    );
    refused(
        &MINE.replace("{ says = \"connection refused (5432)\" }", "{ fact = \"rain\" }"),
        expect![
            "mine.toml:2: `rain` is no fact; known: commit, no-commit, claims-success, silence, waited-for-checks, vanished, own-changes, no-review, checks-failed, checks-flaky, checks-broken, fails-on-base, base-moved-apart, base-moved-overlapping, criterion-fails"
        ],
    );
    let stray = catalogue::extend_catalogue(Vec::new(), &MINE.replace("took_s", "took"), "mine.toml")
        .expect_err("a slip");
    assert!(stray.line.is_some() && stray.message.contains("took_s"), "{stray}");
}

// ── Plans ──────────────────────────────────────────────────────────────────────────────────────────────

fn measured(words: &str) -> Result<RecoveryPlan, String> {
    let checks = BTreeSet::from(["test".to_owned()]);
    let bounds = RecoveryPlanBounds { matches: Some(false), checks: &checks };
    diagnose::parse_recovery_plan(words)
        .and_then(|draft| check_plan(&draft, &bounds))
        .map_err(|problem| problem.to_string())
}

#[test]
fn the_plan_is_the_last_block_of_the_words() {
    let words = r#"I first thought of {"action": "abort", "rationale": "x"}, but:
        ```json
        {"action": "recover", "rationale": "line 7", "steps": [{"op": "amend-signoff"}, {"op": "push-branch"}]}
        ```"#;
    let plan = measured(words).expect("it is one");
    assert_eq!((plan.action(), plan.rationale(), plan.steps().len()), (PlanAction::Recover, "line 7", 2));
}

#[test]
fn what_is_no_plan_is_refused_with_what_is_wrong() {
    let rows = [
        "",
        "I would try again.",
        r#"{"plan": "retry"}"#,
        r#"{"action": "retry"}"#,
        r#"{"action": 7, "rationale": "x"}"#,
        r#"{"action": "retry", "rationale": "x", "cmd": "git push -f"}"#,
        r#"{"action": "recover", "rationale": "x", "steps": "git push -f"}"#,
        r#"{"action": "recover", "rationale": "x", "steps": ["git push --force"]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "push-branch", "force": true}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"cmd": "git reset --hard"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "reset_hard"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "run_command", "cmd": "gh pr merge"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [1,2,3,4,5,6]}"#,
        r#"{"action": "retry", "action": "skip", "rationale": "x"}"#,
        r#"{"action": "skip", "rationale": "it looks done to me"}"#,
    ];
    let told: Vec<String> = rows.iter().map(|words| measured(words).expect_err(words)).collect();
    expect![[r#"
        it cannot be read as a plan: there is no JSON object with an `action` in it
        it cannot be read as a plan: there is no JSON object with an `action` in it
        it cannot be read as a plan: there is no JSON object with an `action` in it
        it gives no rationale
        it cannot be read as a plan: `action` is a number
        it cannot be read as a plan: it has `cmd`; known are action, rationale, steps
        it cannot be read as a plan: `steps` is a text
        it cannot be read as a plan: step 1 is a text, not an object such as {"op": "push-branch"}
        it cannot be read as a plan: step 1 has true or false as `force`; a text is wanted
        it cannot be read as a plan: step 1 has no `op`
        step 1: `reset_hard` is no operation of a recovery; allowed are commit-leftovers, amend-signoff, rebase-onto-base, merge-base, push-branch, open-pr, comment, set-phase-label, rerun-checks, mark-review, run-check
        step 1: `run_command` is no operation of a recovery; allowed are commit-leftovers, amend-signoff, rebase-onto-base, merge-base, push-branch, open-pr, comment, set-phase-label, rerun-checks, mark-review, run-check
        it has 6 steps; at most 5 are allowed
        it cannot be read as a plan: there is no JSON object with an `action` in it
        it is to skip the step, but what the step was to bring about is not there"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn whatever_bytes_come_only_listed_operations_come_out() {
    let seeds = [
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "amend-signoff"}, {"op": "push-branch"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "comment", "text": "git push -f"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "run-check", "name": "test"}]}"#,
        r#"{"action": "recover", "rationale": "x", "steps": [{"op": "force_push"}]}"#,
    ];
    let scraps =
        ["{", "}", "[", "]", "\"", ",", ":", "op", "push-branch", "--force", "\\u0000", "action", "9", " "];
    let mut state = 1_u64;
    let mut roll = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % sides
    };
    let mut taken = 0;
    for round in 0..20_000 {
        let mut words: Vec<char> = seeds[roll(seeds.len())].chars().collect();
        for _ in 0..roll(4) {
            let at = roll(words.len());
            match roll(3) {
                0 => drop(words.remove(at)),
                1 => drop(words.splice(at..at, scraps[roll(scraps.len())].chars())),
                _ => words.swap(at, 0),
            }
        }
        let words: String = words.into_iter().collect();
        let Ok(plan) = measured(&words) else { continue };
        taken += 1;
        let listed = plan.steps().iter().all(|op| OPS.iter().any(|shape| shape.word == op.word()));
        assert!(listed && plan.steps().len() <= 5, "round {round}: {words}");
    }
    assert!(taken > 1_000, "{taken}");
}

#[test]
fn an_agent_is_shown_the_evidence_and_its_plan_is_measured() {
    let good = r#"See line 1. {"action": "recover", "rationale": "no sign-off", "steps": [{"op": "amend-signoff"}, {"op": "run-check", "name": "test"}]}"#;
    let bad = r#"{"action": "recover", "rationale": "x", "steps": [{"op": "force_push"}]}"#;
    let scene = Scene::new(
        "[agent.looker]\nkind = \"command\"\nrun = \"true\"\nsandbox = \"write\"\n\
         [[verify.command]]\nname = \"test\"\nrun = \"true\"\n",
    );
    let site = scene.site();
    let symptoms = Symptoms::from_step_end(
        ReconcilePoint::CodePr,
        &AgentExit::Code(1),
        5_000,
        "ERROR: missing sign-off",
        Some(false),
    );
    let asked = |answer: &str| {
        // It answers only if it was told what happened. Its program is not in the checkout, which no agent sees.
        let script = site.repo.root().with_file_name("look.sh");
        let text = format!("grep -q 'missing sign-off' || exit 7\ncat <<'END'\n{answer}\nEND\n");
        std::fs::write(&script, text).expect("a file");
        let run = Some(format!("sh {}", script.display()));
        let profile = ProfileSettings { run, ..site.settings.agents["looker"].clone() };
        let asked = diagnose::DiagnosisRequest {
            settings: &site.settings,
            profile: &profile,
            root: site.repo.root(),
            folder: &site.folder,
            program: &site.program,
            environment: &site.env,
            prompts: &site.prompts,
            evidence: diagnose::FailureEvidence {
                task: "T7",
                title: "Greet by name",
                step: "code",
                branch: "landfall/t7",
                symptoms: &symptoms,
                reconciled: "{\"matches_expected\":false}",
                labels: &["phase/code".to_owned()],
                pull_request: "",
                tried: &[],
            },
            budgets: Vec::new(),
            is_stopped: &|| false,
        };
        let prompt = diagnose::build_diagnosis_prompt(&asked).expect("it can be filled");
        let all = [
            "missing sign-off",
            "matches_expected",
            "phase/code",
            "exit code: 1",
            "{\"op\": \"push-branch\"}",
        ];
        for wanted in all {
            assert!(prompt.contains(wanted), "{wanted} in {prompt}");
        }
        diagnose::diagnose_failure(&asked).expect("it answers").plan.map_err(|problem| problem.to_string())
    };
    let plan = asked(good).expect("it is fine");
    assert_eq!(plan.steps(), [RecoveryOp::AmendSignOff, RecoveryOp::RunCheck { name: "test".to_owned() }]);
    let why = asked(bad).expect_err("never");
    assert!(why.starts_with("step 1: `force_push` is no operation"), "{why}");
    let why = asked("I do not know.").expect_err("that is no plan");
    assert_eq!(why, "it cannot be read as a plan: there is no JSON object with an `action` in it");
}
