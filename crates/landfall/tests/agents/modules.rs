//! A module of a person's project and the real Claude Code: driven by the plugin's `/auto` in the style `session`, by `/auto`
//! in the agent's own loop (`self`), and by hand, one sub-command after the other. All come to the same.

use landfall_testkit::{PlayTurn, blanked};
use serde_json::{Value, json};

use crate::assistant::{PERSON, claude, results, stage};
use crate::shared::{WORK, says_complete};
use crate::stage::Stage;

const MODULE: &str = "AiTasks/greet";

/// What a judge says of a plan and of work that are fine.
const FINE: &str = "```json\n{\"scores\":{\"d1\":0.9,\"d2\":0.9,\"d3\":0.9,\"d4\":0.9,\"d5\":0.9,\"d6\":0.9},\"reason\":\"fine\"}\n```";

/// A project with a module, whose task is T2.
fn with_module() -> Option<Stage> {
    let stage = stage()?;
    let scratch = &stage.scratch;
    let index = "{\n  \"title\": \"Greet\",\n  \"status\": \"draft\",\n  \"owner\": \"me\"\n}\n";
    scratch.file(&format!("{MODULE}/.index.json"), index);
    scratch.file(&format!("{MODULE}/.target.md"), "# T\n\n## Objective\n\nPeople are greeted.\n");
    scratch.commit("a module");
    scratch.landfall(&["plugin", "install", "--for", "claude"]).ok();
    Some(stage)
}

/// Plans, is judged, works, is judged: four runs.
fn lifecycle() -> Vec<PlayTurn> {
    let plan = "printf '# Plan\\n\\n## Step 1: write it\\n' > .landfall/task/plan.md";
    vec![
        PlayTurn::shell(&format!("mkdir -p .landfall/task && {plan}")),
        says_complete(),
        PlayTurn::say(FINE),
        PlayTurn::shell(WORK),
        says_complete(),
        PlayTurn::say(FINE),
    ]
}

/// A step of the agent's own loop: what it does, and the files that say so.
fn step(does: &str, status: &str, (step, result, next): (&str, &str, &str), number: u32) -> PlayTurn {
    let signal = json!({ "step": step, "result": result, "next": next, "checkpoint": "", "iteration": number,
        "timestamp": "2026-01-31T12:00:00Z" });
    let status = json!({ "status": status });
    PlayTurn::shell(&format!(
        "{does} && (cd {MODULE} && ! test -e .auto-stop && echo '{status}' > .status.json && \
         echo '{signal}' > .auto-signal.tmp && mv .auto-signal.tmp .auto-signal && sleep 0.5)"
    ))
}

/// The whole loop in one run.
fn own_loop() -> Vec<PlayTurn> {
    let plan = format!("printf '# Plan\\n\\n## Step 1: write it\\n' > {MODULE}/.plan.md");
    vec![
        step(&plan, "planning", ("plan", "(generated)", "check"), 0),
        step("true", "review", ("check", "PASS", "exec"), 1),
        step(WORK, "executing", ("exec", "(done)", "check"), 2),
        step("true", "executing", ("check", "ACCEPT", "report"), 3),
        step("true", "complete", ("report", "(done)", "(stop)"), 4),
        PlayTurn::say("My loop is over."),
    ]
}

/// What a task came to, whoever drove it: its status, what main holds, and what its module says.
fn outcome(stage: &Stage) -> Value {
    let scratch = &stage.scratch;
    let index = std::fs::read_to_string(scratch.project().join(MODULE).join(".index.json")).expect("there");
    let index: Value = serde_json::from_str(&index).expect("JSON");
    let certificate = scratch.landfall(&["certificate", "T2"]).json();
    assert_eq!(scratch.git(&["rev-parse", "main"]), certificate["landing"]["commit"], "{}", stage.story());
    assert_eq!(scratch.left_behind(), [], "no process is left");
    assert_eq!(stage.server.strays(), [""; 0], "nothing was asked that the model does not know");
    let files = scratch.git(&["ls-tree", "-r", "main"]);
    let files: Vec<&str> = files.lines().filter(|line| !line.ends_with("landfall.toml")).collect(); // it names its model
    json!({
        "status": scratch.status("T2"),
        "files": files,
        "module": index["status"],
        "owner": index["owner"],
    })
}

/// The person says `/auto` with the name of the module, and their Claude hands it over.
fn by_auto(stage: &Stage, prepare: &str, play: Vec<PlayTurn>) -> Value {
    stage.play(play);
    let until_done = "for _ in $(seq 400); do landfall --json why T2 | grep -q '\"status\":\"done\"' && break; sleep 0.2; done; landfall why T2";
    stage.server.play(
        PERSON,
        [
            PlayTurn::shell(&format!(
                "landfall project import {MODULE}{prepare} && landfall run --detach T2"
            )),
            PlayTurn::shell(until_done),
            PlayTurn::say("T2 has landed."),
        ],
    );
    let events = claude(stage, &format!("/auto {MODULE}"), &[]);
    assert!(
        stage.server.asked(PERSON)[0].mentions("Drive tasks with Landfall"),
        "the skill reaches the model"
    );
    let heard = results(&events);
    assert!(
        heard.contains("is under way in process") && heard.contains("landed"),
        "{heard}\n{}",
        stage.story()
    );
    stage.until("the run to end", || stage.scratch.landfall(&["--json", "status"]).json()["run"].is_null());
    outcome(stage)
}

#[test]
fn a_module_ends_the_same_by_auto_in_a_session_in_its_own_loop_and_by_hand() {
    let (Some(session), Some(own), Some(hand)) = (with_module(), with_module(), with_module()) else {
        return;
    };
    let expected = by_auto(&session, "", lifecycle());
    assert_eq!(
        (&expected["status"], &expected["module"]),
        (&"done".into(), &"complete".into()),
        "{expected}"
    );
    assert_eq!(expected["owner"], "me", "what is a person's stays");

    // One run of the agent is the whole loop, and each of its steps is a fact.
    let watched = by_auto(&own, " && landfall edit T2 --flow watched", own_loop());
    assert_eq!(watched, expected, "{}", own.story());
    let detail = own.scratch.detail("T2");
    let runs: usize = detail["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .map(|it| it["runs"].as_array().map_or(0, Vec::len))
        .sum();
    assert_eq!(runs, 1, "{detail}");
    let strode = own.scratch.facts("T2", "strode");
    assert_eq!(strode.len(), 5, "{}", own.story());
    assert!(own.bodies()[0].mentions(&format!("{MODULE}/.auto-stop")), "it is told of its files");

    hand.play(lifecycle());
    hand.scratch.landfall(&["import", MODULE]).ok();
    for words in [
        &["plan"][..],
        &["check"],
        &["exec"],
        &["verify"],
        &["check", "--checkpoint", "post-exec"],
        &["land"],
    ] {
        let said = hand.scratch.landfall(&[&["do", "T2"], words].concat());
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}\n{}", hand.story());
    }
    hand.scratch.landfall(&["run", "T2"]).ok();
    assert_eq!(outcome(&hand), expected, "{}", hand.story());
    let [run, hand] = [&session, &hand].map(|stage| blanked(&stage.scratch.project().join(MODULE)));
    assert_eq!(run.keys().collect::<Vec<_>>(), hand.keys().collect::<Vec<_>>());
    for (path, text) in &run {
        assert_eq!(text, &hand[path], "{path}");
    }
}
