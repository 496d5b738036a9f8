//! Tasks with a plan by hand, from outside: each step alone, what is refused and in which words, the dialogue about an
//! objective, refinements and annotations; the same over HTTP.

use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::serve::Served;
use crate::styles::{Style, in_styles};

const GOOD: &str =
    r#"{"scores": {"d1": 0.9, "d2": 0.9, "d3": 0.9, "d4": 0.9, "d5": 0.9, "d6": 0.9}, "findings": []}"#;

/// A turn of a judge, or of whoever splits an objective, who ends with this.
fn says(step: &str, json: &str) -> String {
    format!("[[step.{step}]]\nsay = ['{json}']\nsignal = \"complete\"\n")
}

fn writes(step: &str, path: &str, text: &str) -> String {
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\n[[step.{step}.write]]\npath = \"{path}\"\ntext = {text:?}\n"
    )
}

const PLAN: &str = "# Plan\n\n## Step 1: Write it\nCovers: R1\n\n## Step 2: Look at it\nCovers: R2\n";

/// Plans, does, and is judged well, in the flow `lifecycle`.
fn lifecycle() -> String {
    let plan = writes("plan", ".landfall/task/plan.md", PLAN);
    let again = writes("re-plan", ".landfall/task/plan.md", &PLAN.replace("Look at", "Read"));
    let exec = writes("exec", "b.txt", "work\n");
    let checks: String = ["check-plan", "check-re-plan", "check-mid", "check-exec"]
        .iter()
        .map(|step| says(step, GOOD))
        .collect();
    format!("{plan}{again}{exec}{checks}")
}

fn planned() -> ScratchProject {
    planned_in(Style::Fresh)
}

fn planned_in(style: Style) -> ScratchProject {
    let scratch = style.scratch();
    scratch.task("Write b", &style.script(&lifecycle()), &["--flow", "lifecycle"]);
    scratch
}

/// Does a step, which must go well; what `--json` says.
#[track_caller]
fn done(scratch: &ScratchProject, words: &[&str]) -> Value {
    let said = scratch.landfall(&[&["--json", "do", "T1"], words].concat());
    assert_eq!(said.code, Some(0), "{words:?}: {}\n{}", said.out, said.err);
    said.json()
}

/// Is refused with exit code 6, and says why in these words; what can be done is named.
#[track_caller]
fn refused(scratch: &ScratchProject, words: &[&str], expected: &str) {
    let said = scratch.landfall(&[&["do", "T1"], words].concat());
    assert_eq!(said.code, Some(6), "{words:?}: {}\n{}", said.out, said.err);
    assert!(said.err.contains(expected), "{words:?}: {} lacks `{expected}`", said.err);
}

fn phase(scratch: &ScratchProject) -> String {
    scratch.detail("T1")["progress"]["phase"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_whole_lifecycle_by_hand_step_by_step() {
    let scratch = planned();
    assert_eq!(phase(&scratch), "draft");
    refused(&scratch, &["exec"], "`exec` cannot be done in the phase `draft`; there you can do: plan");
    refused(&scratch, &["check"], "cannot be done in the phase `draft`");
    refused(&scratch, &["land"], "cannot be done in the phase `draft`");
    let plan = done(&scratch, &["plan"]);
    assert_eq!((&plan["driven"], &plan["phase"]), (&true.into(), &"planning".into()), "{plan}");
    assert_eq!(plan["attempts"].as_array().map(Vec::len), Some(1), "only the one step: {plan}");
    assert_eq!(plan["progress"]["plan_steps"], 2);
    refused(&scratch, &["exec"], "there you can do: check, check/post-plan, plan");
    refused(&scratch, &["check", "--checkpoint", "post-exec"], "cannot be done in the phase `planning`");
    let check = done(&scratch, &["check"]);
    assert_eq!(
        (&check["phase"], &check["progress"]["verdict"]),
        (&"review".into(), &"PASS".into()),
        "{check}"
    );
    refused(&scratch, &["check"], "cannot be done in the phase `review`");
    refused(&scratch, &["report"], "cannot be done in the phase `review`");
    let exec = done(&scratch, &["exec"]);
    assert_eq!(exec["phase"], "executing", "{exec}");
    assert_eq!(exec["progress"]["plan_done"], 2, "it said that all is done: {exec}");
    refused(&scratch, &["land"], "no judge has accepted this work");
    let offered = exec["progress"]["can_do"].as_array().cloned().unwrap_or_default();
    assert!(!offered.contains(&"land".into()) && offered.contains(&"verify".into()), "{offered:?}");
    done(&scratch, &["verify"]);
    let check = done(&scratch, &["check", "--checkpoint", "post-exec"]);
    assert_eq!(check["progress"]["verdict"], "ACCEPT", "{check}");
    assert!(scratch.store(&["show", "refs/heads/main:b.txt"]).is_none(), "nothing lands by itself");
    done(&scratch, &["land"]);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
    assert_eq!(
        scratch.git(&["ls-tree", "-r", "--name-only", "main"]).matches(".landfall").count(),
        0,
        "no paper lands"
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    refused(&scratch, &["plan"], "cannot be done in the phase `complete`");
    let stats = scratch.landfall(&["--json", "stats"]).json();
    let judge = &stats["judges"][0];
    assert_eq!(
        (&judge["accepted"], &judge["landed"], &judge["agreement"]),
        (&1.into(), &1.into(), &1.0.into()),
        "{judge}"
    );
    assert!(scratch.landfall(&["stats"]).ok().contains("100 %"));
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_new_plan_passes_its_own_check_before_anything_is_executed() {
    let scratch = planned();
    for words in [&["plan"][..], &["check"], &["plan"]] {
        done(&scratch, words);
    }
    assert_eq!(phase(&scratch), "re-planning");
    refused(
        &scratch,
        &["exec"],
        "cannot be done in the phase `re-planning`; there you can do: check, check/post-plan, plan",
    );
    let papers = scratch.landfall(&["papers", "T1"]).ok();
    assert!(papers.contains("plan.md") && papers.contains(".plan-superseded-1.md"), "{papers}");
    assert!(scratch.landfall(&["papers", "T1", "plan.md"]).ok().contains("Read it"));
    assert!(scratch.landfall(&["papers", "T1", ".plan-superseded-1.md"]).ok().contains("Look at it"));
    assert_eq!(scratch.landfall(&["papers", "T1", "none.md"]).code, Some(6));
    done(&scratch, &["check"]);
    assert_eq!(phase(&scratch), "review");
    // The rest goes by itself.
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
}

#[test]
fn do_with_run_goes_on_and_a_step_of_the_plan_is_told_to_the_agent() {
    let scratch = planned();
    let bad = scratch.landfall(&["do", "T1", "exec", "--step", "1"]);
    assert_eq!(bad.code, Some(2), "there is no plan yet: {}", bad.err);
    done(&scratch, &["plan"]);
    done(&scratch, &["check"]);
    let bad = scratch.landfall(&["do", "T1", "exec", "--step", "3"]);
    assert!(bad.code == Some(2) && bad.err.contains("has 2 steps"), "{}", bad.err);
    done(&scratch, &["exec", "--step", "2"]);
    let prompts = scratch.prompts("T1");
    assert!(
        prompts.last().is_some_and(|it| it.contains("Do step 2 of the plan now, and no other")),
        "{prompts:#?}"
    );
    done(&scratch, &["verify", "--run"]);
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
}

#[test]
fn do_in_a_run_comes_after_the_step_under_way() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = crate::sandbox::open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let wait = format!(
        "[[step.check-plan]]\nrun = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n\
         say = ['{GOOD}']\nsignal = \"complete\"\n",
        began.display(),
        go.display()
    );
    let script = lifecycle().replace(&says("check-plan", GOOD), &wait);
    scratch.task("Write b", &script, &["--flow", "lifecycle"]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the judge to read the plan", || began.exists());
    let said = scratch.landfall(&["--json", "do", "T1", "plan"]).json();
    assert_eq!(said["driven"], false, "{said}");
    assert!(said["text"].as_str().is_some_and(|it| it.contains("once the step under way is over")), "{said}");
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    let steps: Vec<String> = scratch.detail("T1")["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .map(|it| it["step"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(&steps[..5], ["plan", "check-plan", "plan", "check-plan", "exec"], "{steps:?}");
    assert_eq!(scratch.status("T1"), "done");
}

const SPLIT: &str = r#"{"items": [{"text": "Write b", "requirements": [{"text": "b is there", "criteria": "cat b.txt", "weight": "critical"}, {"text": "it says work", "weight": "optional"}]}], "constraints": ["small"]}"#;
const WHOLE: &str = r#"{"scores": {"d1": 0.9, "d2": 0.9, "d3": 0.9, "d4": 0.9, "d5": 0.9, "d6": 0.9}, "coverage": [{"r": 1, "coverage": 1, "why": "it is"}, {"r": 2, "coverage": 1, "why": "it is"}]}"#;

fn staged(style: Style) -> ScratchProject {
    let scratch = style.scratch();
    let judged = lifecycle().replace(&says("check-exec", GOOD), &says("check-exec", WHOLE));
    let script = format!("{}{judged}", says("target", SPLIT));
    scratch.task("Write b well", &style.script(&script), &["--flow", "staged"]);
    scratch
}

fn target(scratch: &ScratchProject) -> Value {
    scratch.landfall(&["--json", "target", "T1"]).json()
}

fn behaviour_20_an_objective_is_shown_before_a_yes_counts_and_then_it_goes_by_itself(style: Style) {
    let scratch = staged(style);
    let early = scratch.landfall(&["target", "T1", "--ok"]);
    assert!(early.code == Some(6) && early.err.contains("has no objective yet"), "{}", early.err);
    assert_eq!(target(&scratch)["revision"], 0);
    // Before it was shown, a yes is a word like any other: it starts nothing.
    let said = scratch.landfall(&["target", "T1", "OK"]).ok();
    assert!(said.contains("works what you said into its objective"), "{said}");
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "it asks: {}", run.err);
    let shown = target(&scratch);
    assert_eq!((&shown["awaits"], &shown["confirmed"]), (&true.into(), &Value::Null), "{shown}");
    assert_eq!(shown["items"][0]["requirements"][0]["weight"], "critical", "{shown}");
    let text = scratch.landfall(&["target", "T1"]).ok();
    assert!(
        text.contains("R1 (critical) b is there")
            && text.contains("Objectives extracted — 1 items, 2 requirements"),
        "{text}"
    );
    // What is said otherwise is worked in, and shown again; a yes to what was read before does not count.
    let said = scratch.landfall(&["target", "T1", "make", "it", "short"]).ok();
    assert!(said.contains("asks again"), "{said}");
    let early = scratch.landfall(&["target", "T1", "--ok"]);
    assert!(early.code == Some(6), "it was not shown as it will be: {}{}", early.out, early.err);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    assert!(scratch.prompts("T1").iter().any(|it| it.contains("make it short")), "the agent heard it");
    assert_eq!(target(&scratch)["revision"], 2);
    let said = scratch.landfall(&["target", "T1", "--ok"]).ok();
    assert!(said.contains("from here on it goes by itself"), "{said}");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let met = target(&scratch);
    assert_eq!((&met["stages"][0]["convergence"], &met["confirmed"]), (&1.0.into(), &2.into()), "{met}");
    assert_eq!(met["judgements"][0]["scores"].as_array().map(Vec::len), Some(6), "{met}");
    let again = scratch.landfall(&["target", "T1", "--ok"]);
    assert!(again.code == Some(6) && again.err.contains("confirmed already"), "{}", again.err);
}
in_styles!(behaviour_20_an_objective_is_shown_before_a_yes_counts_and_then_it_goes_by_itself: fresh, session);

fn behaviour_21_a_refinement_can_be_taken_back_until_it_is_dealt_with_and_takes_a_done_task_up_again(
    style: Style,
) {
    let scratch = planned_in(style);
    done(&scratch, &["plan"]);
    for text in ["in capitals", "and twice"] {
        scratch.landfall(&["refine", "T1", text]).ok();
    }
    let said = scratch.landfall(&["refine", "T1", "--withdraw", "2"]).ok();
    assert!(said.contains("does without refinement 2"), "{said}");
    assert_eq!(
        scratch.landfall(&["refine", "T1", "--withdraw", "2"]).code,
        Some(6),
        "it is taken back already"
    );
    let states = target(&scratch)["refinements"].clone();
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&"pending".into(), &"withdrawn".into()),
        "{states}"
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(target(&scratch)["refinements"][0]["state"], "taken-in");
    assert!(scratch.prompts("T1").iter().any(|it| it.contains("in capitals")), "whoever works heard it");
    assert!(
        !scratch.prompts("T1").iter().any(|it| it.contains("and twice")),
        "nobody heard what was taken back"
    );
    assert_eq!(scratch.landfall(&["refine", "T1", "--withdraw", "1"]).code, Some(6), "it is dealt with");
    assert_eq!(scratch.status("T1"), "done");
    let said = scratch.landfall(&["refine", "T1", "one more line"]).ok();
    assert!(said.contains("is taken up again"), "{said}");
    assert_eq!(scratch.status("T1"), "ready");
}
in_styles!(behaviour_21_a_refinement_can_be_taken_back_until_it_is_dealt_with_and_takes_a_done_task_up_again: fresh, session);

#[test]
fn annotations_change_the_plan_and_send_it_back_to_its_judge() {
    let scratch = planned();
    let none = scratch.landfall(&["annotate", "T1", "comment", "why?", "--on", "Write it"]);
    assert!(none.code == Some(6) && none.err.contains("has no paper `plan.md`"), "{}", none.err);
    done(&scratch, &["plan"]);
    done(&scratch, &["check"]);
    let said =
        scratch.landfall(&["--json", "annotate", "T1", "comment", "briefly", "--on", "Write it"]).json();
    assert_eq!(said["impact"], "none", "{said}");
    assert_eq!(phase(&scratch), "review", "a comment changes nothing");
    let twice = scratch.landfall(&["annotate", "T1", "delete", "--on", "it"]);
    assert_eq!(twice.code, Some(2), "it stands in several lines: {}", twice.err);
    let said =
        scratch.landfall(&["--json", "annotate", "T1", "replace", "Read it", "--on", "Look at it"]).json();
    assert_eq!(said["impact"], "medium", "{said}");
    assert_eq!(phase(&scratch), "re-planning", "what was judged is not what it says now");
    let plan = scratch.landfall(&["papers", "T1", "plan.md"]).ok();
    assert!(plan.contains("## Step 2: Read it") && plan.contains("📝") && plan.contains("briefly"), "{plan}");
    refused(&scratch, &["exec"], "cannot be done in the phase `re-planning`");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let steps: Vec<Value> = scratch.detail("T1")["attempts"].as_array().expect("attempts").clone();
    assert_eq!(steps[2]["step"], "check-re-plan", "{steps:?}");
    let late = scratch.landfall(&["annotate", "T1", "delete", "--on", "Read it"]);
    assert!(late.code == Some(6) && late.err.contains("it is over"), "{}", late.err);
}

#[test]
fn the_same_over_http_and_not_for_agents() {
    let scratch = staged(Style::Fresh);
    let served = Served::start(&scratch, &[]);
    let post = |path: &str, body: &str| served.post(path, body);
    let (status, said) = post("/api/v1/tasks/T1/do", r#"{"command": "exec"}"#);
    assert!(status == 409 && said.contains(r#""allowed":["target"]"#), "{status} {said}");
    let (status, said) = post("/api/v1/tasks/T1/do", r#"{"command": "target", "alone": true}"#);
    assert_eq!(status, 200, "{said}");
    // A command drives by the server.
    let asked = scratch.landfall(&["run", "T1"]);
    assert_eq!(asked.code, Some(9), "it asks: {}", asked.err);
    let (status, shown) = served.get("/api/v1/tasks/T1/target");
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((status, &shown["awaits"], &shown["revision"]), (200, &true.into(), &1.into()), "{shown}");
    let (status, said) = post("/api/v1/tasks/T1/target/confirm", r#"{"revision": 7}"#);
    assert!(status == 409 && said.contains("you read revision 7, it is 1 now"), "{status} {said}");
    let (status, said) = post("/api/v1/tasks/T1/target/confirm", r#"{"revision": 1}"#);
    assert_eq!(status, 200, "{said}");
    let step = scratch.landfall(&["--json", "do", "T1", "plan"]);
    assert_eq!(step.code, Some(0), "{}", step.err);
    assert_eq!(step.json()["attempts"].as_array().map(Vec::len), Some(1), "{}", step.out);
    let (_, papers) = served.get("/api/v1/tasks/T1/papers");
    assert!(papers.contains("plan.md") && papers.contains("objective.md"), "{papers}");
    let (_, plan) = served.get("/api/v1/tasks/T1/paper");
    assert!(plan.contains("Step 1: Write it"), "{plan}");
    let (status, said) = post("/api/v1/tasks/T1/refinements", r#"{"text": "shorter"}"#);
    assert_eq!(status, 200, "{said}");
    let (status, said) = post("/api/v1/tasks/T1/refinements/withdraw", r#"{"number": 1}"#);
    assert_eq!(status, 200, "{said}");
    let note = r###"{"notes": [{"kind": "insert", "before": "Line3:...# Plan↵↵", "text": "Soon.\n", "after": "## Step 1..."}]}"###;
    let (status, said) = post("/api/v1/tasks/T1/annotations", note);
    assert_eq!(status, 200, "{said}");
    for page in ["gates", "target"] {
        let (status, html) = served.get(&format!("/tasks/T1/{page}"));
        assert_eq!(status, 200, "{page}: {html}");
        assert!(html.contains("R1"), "{page}: {html}");
    }
    served.end();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn cancel_keeps_work_and_with_cleanup_gives_the_workspace_back_and_counts_what_did_not_land() {
    let scratch = planned();
    for words in [&["plan"][..], &["check"], &["exec"]] {
        done(&scratch, words);
    }
    assert!(scratch.workspace("T1").exists());
    let said = scratch.landfall(&["cancel", "T1", "--cleanup", "--reason", "not wanted"]).ok();
    assert!(
        said.contains("1 commit that did not land: kept under") && said.contains("refs/landfall/kept"),
        "{said}"
    );
    assert!(!scratch.workspace("T1").exists(), "it is given back");
    assert!(!scratch.kept("T1", "b.txt", "work\n").is_empty(), "and nothing is lost");
    assert_eq!(scratch.status("T1"), "cancelled");
    refused(&scratch, &["plan"], "cannot be done in the phase `cancelled`");
    assert_eq!(scratch.left_behind(), []);
}
