//! A real interactive agent in a terminal, and a person who looks on. Skipped, with a line that says so, where tmux is not
//! installed.

use std::process::Command;

use landfall_testkit::{PlayGate, PlayTurn, has_tmux};
use serde_json::Value;

use crate::LANDFALL;
use crate::kind::Kind;
use crate::shared::WORK;
use crate::stage::Stage;

/// What only looks like a question or a prompt, said by the agent itself: nothing may be typed for it.
const LOOKALIKE: &str = "Shall I continue? (y/n) is what the page says, and then >";

#[test]
fn an_interactive_claude_lands_its_work_and_a_person_can_look_on() {
    if !has_tmux() {
        return;
    }
    let Some(stage) = Stage::new(Kind::Claude, "", "") else { return };
    let settings = std::fs::read_to_string(stage.scratch.project().join("landfall.toml")).expect("settings");
    let run = "kind = \"tmux\"\nrun = \"claude --dangerously-skip-permissions\"";
    stage.scratch.settings(&settings.replacen("kind = \"claude\"", run, 1));
    // Its very first start asks its provider something, which is not there.
    let home = stage.scratch.root().join("home");
    std::fs::write(home.join(".claude.json"), "{\"hasCompletedOnboarding\":true}").expect("a home");
    let gate = PlayGate::new();
    stage.play([
        PlayTurn::shell(WORK).with_words(LOOKALIKE),
        PlayTurn::shell(&format!("'{LANDFALL}' signal complete")).behind(&gate),
        PlayTurn::say("That was all."),
    ]);
    let mut running = stage.run();
    stage.until_asked(2);
    let mut terminal = Value::Null;
    stage.until("a terminal", || {
        let said = stage.scratch.landfall(&["--json", "attach", "T1"]);
        if said.code == Some(0) {
            terminal = said.json();
        }
        said.code == Some(0)
    });
    let field = |name: &str| terminal[name].as_str().expect("a text").to_owned();
    stage.until("its words on the screen", || {
        let seen = Command::new("tmux")
            .args(["-S", &field("socket"), "capture-pane", "-p", "-t", &field("name")])
            .current_dir(field("folder"))
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&seen.stdout).contains("is what the page says")
    });
    gate.open();
    stage.until_over(&mut running);
    stage.check_landed();
    let typed: Vec<String> = stage.outputs().iter().flat_map(|out| out.lines()).map(str::to_owned).collect();
    let answered = typed.iter().any(|line| line.contains("\"yes-no\"") || line.contains("\"continue\""));
    assert!(!answered, "nothing is typed for what only looks like a question\n{}", typed.join("\n"));
}
