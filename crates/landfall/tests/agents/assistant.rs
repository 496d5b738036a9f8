//! A person's own Claude Code, with the plugin or the tools, hands work to Landfall, which drives another one.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use landfall_testkit::PlayTurn;
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::kind::Kind;
use crate::shared::{says_complete, works};
use crate::stage::{LIMIT, Stage};

/// The person's assistant on the model's server.
pub const PERSON: &str = "person";

/// A project whose agent is Claude in session style, and `landfall` on the path as a person has it.
pub fn stage() -> Option<Stage> {
    let mut stage = Stage::new(Kind::Claude, "style = \"session\"", "")?;
    let bin = stage.scratch.root().join("bin");
    std::fs::create_dir(&bin).expect("a folder can be made");
    symlink(LANDFALL, bin.join("landfall")).expect("a link");
    let path = stage.path();
    stage.scratch.set("PATH", &format!("{}:{path}", bin.display()));
    Some(stage)
}

/// What the person's Claude writes when it is given this prompt.
#[track_caller]
pub fn claude(stage: &Stage, prompt: &str, flags: &[&str]) -> Vec<Value> {
    let scratch = &stage.scratch;
    let mut command = Command::new("timeout");
    command
        .args([
            &LIMIT.as_secs().to_string(),
            "claude",
            "-p",
            prompt,
            "--output-format",
            "stream-json",
            "--verbose",
        ])
        .arg("--dangerously-skip-permissions")
        .args(flags)
        .env_clear()
        .envs([
            ("PATH", stage.path()),
            ("IS_SANDBOX", "1".to_owned()),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
        ])
        .env("ANTHROPIC_BASE_URL", stage.server.url(PERSON))
        .env("HOME", scratch.root().join("home"))
        .env("TMPDIR", scratch.root().join("tmp"))
        .env("LANDFALL_STATE", scratch.state())
        .envs([
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("TZ", "UTC"),
        ])
        .current_dir(scratch.project())
        .stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}\n{err}\n{}", stage.story());
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What its tools answered, one after the other.
pub fn results(events: &[Value]) -> String {
    let content =
        events.iter().filter(|it| it["type"] == "user").map(|it| it["message"]["content"].to_string());
    content.collect::<Vec<_>>().join("\n")
}

/// Half of the work in the first run of the agent, the other half in the second, which knows the first.
fn works_in_a_session() -> Vec<PlayTurn> {
    let half = "echo half > hello.txt && git add hello.txt && git commit -qm half";
    vec![
        PlayTurn::shell(half),
        PlayTurn::say("Half of it is there."),
        PlayTurn::shell("echo hello > hello.txt && git commit -qam whole"),
        says_complete(),
    ]
}

/// Waits for a task in the shell of the assistant, as the model would by asking again.
const UNTIL_DONE: &str = "for _ in $(seq 300); do landfall --json why T1 | grep -q '\"status\":\"done\"' && break; sleep 0.2; done; landfall why T1";

#[test]
fn the_plugin_is_loaded_and_auto_drives_a_task_to_its_end() {
    let Some(stage) = stage() else { return };
    stage.scratch.landfall(&["plugin", "install"]).ok();
    stage.play(works_in_a_session());
    stage.server.play(
        PERSON,
        [
            PlayTurn::shell("landfall run --detach T1"),
            PlayTurn::shell(UNTIL_DONE),
            PlayTurn::shell("landfall report T1; landfall certificate T1"),
            PlayTurn::say("T1 has landed."),
        ],
    );
    let events = claude(&stage, "/auto T1", &[]);
    let init = events.iter().find(|it| it["subtype"] == "init").expect("it begins");
    let plugins = init["plugins"].to_string();
    assert!(plugins.contains("landfall@skills-dir"), "{plugins}");
    let commands = init["slash_commands"].as_array().expect("a list");
    for name in ["auto", "plan", "check", "exec", "verify", "merge", "report", "target", "status"] {
        assert!(commands.contains(&json!(format!("landfall:{name}"))), "`{name}` is not among {commands:?}");
    }
    let asked = stage.server.asked(PERSON);
    assert!(asked[0].mentions("Drive tasks with Landfall"), "the skill reaches the model");
    assert!(asked[0].mentions("landfall:auto") && asked[0].mentions("T1"), "and so do its words");
    let heard = results(&events);
    assert!(heard.contains("R1 is under way in process"), "{heard}");
    assert!(heard.contains("landed"), "{heard}");
    stage.until("the run to end", || stage.scratch.landfall(&["--json", "status"]).json()["run"].is_null());
    stage.check_landed();
    assert_eq!(stage.scratch.detail("T1")["iterations"], 2, "{}", stage.story());
    assert!(stage.bodies()[2].mentions("Half of it is there."), "the second run has the first in its memory");
}

/// What a person starts by their assistant goes on when the assistant is gone, and `stop` by another one ends it.
#[test]
fn what_auto_began_outlives_the_assistant_and_auto_stop_ends_it() {
    let Some(stage) = stage() else { return };
    stage.scratch.landfall(&["plugin", "install", "--for", "claude"]).ok();
    stage.play([PlayTurn::hang()]);
    stage.server.play(PERSON, [PlayTurn::shell("landfall run --detach"), PlayTurn::say("It runs.")]);
    claude(&stage, "/landfall:auto --start", &[]);
    stage.until_asked(1);
    let status = stage.scratch.landfall(&["--json", "status"]).json();
    assert_eq!(status["run"]["run"], "R1", "{status}\n{}", stage.story());
    stage.server.play(PERSON, [PlayTurn::shell("landfall stop --now"), PlayTurn::say("It stops.")]);
    claude(&stage, "/auto stop", &[]);
    stage.until("the run to end", || stage.scratch.landfall(&["--json", "status"]).json()["run"].is_null());
    assert_eq!(stage.scratch.left_behind(), [], "no process is left");
    let asked = stage.server.asked(PERSON);
    assert!(
        asked.last().is_some_and(|it| it.mentions("Drive tasks with Landfall")),
        "the skill reaches the model"
    );
}

#[test]
fn the_tools_for_a_person_hand_work_over() {
    let Some(stage) = stage() else { return };
    stage.play(works());
    stage.server.play(
        PERSON,
        [
            PlayTurn::tool("landfall", "run", json!({ "tasks": ["T1"] })),
            PlayTurn::shell(UNTIL_DONE),
            PlayTurn::tool("landfall", "certificate", json!({ "task": "T1" })),
            PlayTurn::say("T1 has landed."),
        ],
    );
    let config =
        json!({ "mcpServers": { "landfall": { "command": LANDFALL, "args": ["mcp"] } } }).to_string();
    let events = claude(&stage, "Let Landfall do T1.", &["--strict-mcp-config", "--mcp-config", &config]);
    let heard = results(&events);
    assert!(heard.contains("R1 is under way in process") && heard.contains("certificate"), "{heard}");
    stage.until("the run to end", || stage.scratch.landfall(&["--json", "status"]).json()["run"].is_null());
    stage.check_landed();
}
