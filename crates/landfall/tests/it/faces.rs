//! What a person sees of agents at work, and what agents see of the person's environment.

use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::styles::{Style, in_styles};

/// A project whose agent is this shell script.
fn shell_agent(program: &str, settings: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("agent.sh", program);
    scratch.settings(&format!(
        "[agent.default]\nkind = \"command\"\nrun = \"sh agent.sh\"\n{settings}\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n"
    ));
    scratch
}

fn add(scratch: &ScratchProject) {
    scratch.landfall(&["add", "Work"]).ok();
}

fn at_work(scratch: &ScratchProject) -> Value {
    scratch.landfall(&["--json", "status"]).json()["active"][0].clone()
}

#[test]
fn keys_of_the_person_reach_an_agent_only_where_the_profile_names_them() {
    let program = "echo \"${ANTHROPIC_API_KEY-none} ${GITHUB_TOKEN-none}\" > b.txt\necho '<landfall>COMPLETE</landfall>'\n";
    for (settings, expected) in [("", "none none"), ("pass_env = [\"ANTHROPIC_API_KEY\"]", "sk-secret none")]
    {
        let mut scratch = shell_agent(program, settings);
        scratch.set("ANTHROPIC_API_KEY", "sk-secret");
        scratch.set("GITHUB_TOKEN", "ghp-secret");
        add(&scratch);
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.git(&["show", "main:b.txt"]), expected);
    }
}

#[test]
fn a_silent_agent_that_computes_is_at_work_and_not_ended() {
    let program =
        "while [ ! -e stop ]; do :; done\nrm stop\necho work > b.txt\necho '<landfall>COMPLETE</landfall>'\n";
    let limits = "[run]\nheartbeat = \"400ms\"\nheartbeats = 2\nsilence = \"3s\"\nfirst_output = \"3s\"";
    let scratch = shell_agent(program, limits);
    add(&scratch);
    let mut run = scratch.start(&["run"]);
    // Well beyond both limits.
    scratch.eventually("it computes for a while", || at_work(&scratch)["elapsed_ms"].as_u64() > Some(7_000));
    let line = at_work(&scratch);
    assert_eq!(line["agent"]["class"], "working", "{line}");
    assert!(
        line["agent"]["evidence"].as_str().is_some_and(|it| it.contains("no word since it began")),
        "{line}"
    );
    assert_eq!(
        (&line["agent"]["profile"], &line["agent"]["sandbox"]),
        (&"default".into(), &"isolated".into()),
        "{line}"
    );
    let text = scratch.landfall(&["status"]).ok();
    assert!(text.contains("working (work)") && text.contains("no word since it began"), "{text}");
    std::fs::write(scratch.workspace("T1").join("stop"), "").expect("the workspace is there");
    assert_eq!(run.wait(Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    let detail = scratch.detail("T1");
    assert_eq!(
        detail["attempts"][0]["runs"].as_array().map(Vec::len),
        Some(1),
        "one run was enough: {detail}"
    );
    assert_eq!(detail["attempts"][0]["runs"][0]["sandbox"], "isolated", "{detail}");
}

#[test]
fn an_agent_that_says_nothing_at_all_is_counted_from_its_start() {
    let limits = "[run]\nfirst_output = \"500ms\"\nsilence = \"10m\"\nstalls_step_max = 1";
    let scratch = shell_agent("exec sleep 600\n", limits);
    add(&scratch);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("stall_limit"), "{why}");
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 2, "once, and once again");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn an_agent_that_falls_silent_and_idle_is_ended_and_one_that_waits_is_seen_to() {
    let limits = "[run]\nheartbeat = \"300ms\"\nheartbeats = 1\nsilence = \"4s\"\nstalls_step_max = 1\nstalls_total_max = 1";
    let scratch = shell_agent("echo 'I will think about it.'\nexec sleep 600\n", limits);
    add(&scratch);
    let mut run = scratch.start(&["run"]);
    scratch
        .eventually("it is seen to wait", || at_work(&scratch)["agent"]["class"] == "waiting for the model");
    assert_eq!(at_work(&scratch)["agent"]["words"], "I will think about it.");
    assert_eq!(run.wait(Duration::from_secs(40)), Some(8), "{}", scratch.heard());
    assert!(scratch.why("T1").contains("stall_limit"), "{}", scratch.why("T1"));
    assert_eq!(scratch.left_behind(), []);
}

fn behaviour_12_an_agent_that_repeats_itself_is_told_so_and_at_last_given_up(style: Style) {
    let scratch = style.scratch();
    scratch.task("Circle", &style.script("say = \"Let me think about this once more.\"\n"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("reasoning_loop"), "{why}");
    let prompts = scratch.prompts("T1");
    assert!(prompts.iter().any(|it| it.contains("same")), "it was told: {prompts:#?}");
    let loops = scratch.detail("T1")["counters"].clone();
    let loops = loops.as_array().expect("counters").iter().find(|it| it["name"] == "loops").cloned();
    assert!(loops.is_some_and(|it| it["used"].as_u64() > Some(0)), "loops are counted");
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_12_an_agent_that_repeats_itself_is_told_so_and_at_last_given_up: fresh, session);

#[test]
fn edge_12_show_and_log_tell_of_every_run_of_the_agent() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\nstyle = \"session\"\nmodel = \"m-1\"\n[[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n",
    );
    let script = "session = \"s-1\"\nusage = { tokens_in = 900, tokens_out = 100, micro_usd = 20000 }\n\
                  [[iteration]]\nsay = \"more to do\"\n\
                  [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n";
    scratch.task("Work", script, &[]);
    scratch.landfall(&["run"]).ok();
    let detail = scratch.detail("T1");
    let runs = detail["attempts"][0]["runs"].as_array().cloned().expect("runs");
    assert_eq!(runs.len(), 2, "{detail}");
    for (run, resumed) in runs.iter().zip([false, true]) {
        assert_eq!((&run["session"], &run["model"]), (&"s-1".into(), &"m-1".into()), "{run}");
        assert_eq!((run["resumed"].as_bool(), &run["sandbox"]), (Some(resumed), &"isolated".into()), "{run}");
        assert_eq!(run["usage"]["tokens_in"], 900, "{run}");
    }
    let shown = scratch.landfall(&["show", "T1"]).ok();
    for words in [
        "2k: 1.8k in, 200 out",
        "$0.04, as the agent says",
        "iteration 2 by default with m-1 (resumed session s-1, sandbox isolated): the agent says it is done",
    ] {
        assert!(shown.contains(words), "`{words}` is not in: {shown}");
    }
    let log = scratch.landfall(&["log", "T1"]).ok();
    assert!(log.contains("iteration 2 with m-1 ended after"), "{log}");
    assert!(log.contains("1k tokens, $0.02"), "{log}");
}
