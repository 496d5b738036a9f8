//! An interactive program in a terminal, end to end, and a person who looks for it. Skipped
//! where tmux is not installed.

use std::process::Command;

use landfall_testkit::has_tmux;
use serde_json::Value;

use crate::LANDFALL;
use crate::support::{TestEnvironment, until};

/// Reads what is pasted to its last line, waits for leave, does the work, says so by `landfall signal`, and prompts again.
const TINY: &str = r#"#!/bin/bash
echo tiny 1.0
while true; do
  printf '> '
  until [[ $line == *'There is nobody to give it.' ]]; do IFS= read -r line || exit 0; done
  line=
  echo 'a look-alike: continue? (y/n)'
  echo 'and >'
  until [ -e "$GO" ]; do sleep 0.02; done
  echo hello >hello.txt
  git add hello.txt
  git -c user.name=Tiny -c user.email=tiny@example.invalid commit --quiet --message hello
  "$OUR_BIN" signal complete
  echo all done
done
"#;

#[test]
fn an_interactive_program_lands_its_work_and_a_person_can_attach() {
    if !has_tmux() {
        return;
    }
    let environment = TestEnvironment::new();
    let tiny = environment.path("tiny");
    std::fs::write(&tiny, TINY).expect("a script");
    let go = environment.path("go");
    environment.write(
        "landfall.toml",
        &format!(
            "[project]\nbase = \"main\"\n[verify]\nrequired = true\nred_base = \"start\"\n[[verify.command]]\nname = \"check\"\nrun = \"test -s hello.txt\"\n\
             [agent.default]\nkind = \"tmux\"\nterminal_poll = \"50ms\"\nrun = \"bash {}\"\nenv = {{ GO = \"{}\", OUR_BIN = \"{LANDFALL}\" }}\n",
            tiny.display(),
            go.display()
        ),
    );
    environment.commit("settings");
    environment.trust();
    environment.add(&["Say hello"]);

    let early = environment.landfall(&["attach", "T1"]);
    assert_eq!(early.code, Some(6), "{early:?}");
    assert!(early.err.contains("no agent runs for T1"), "{early:?}");

    let running = environment.start(&["run"]);
    until("there is a terminal", || environment.landfall(&["attach", "--json", "T1"]).code == Some(0));
    let terminal: Value =
        serde_json::from_str(&environment.landfall(&["--json", "attach", "T1"]).out).expect("JSON");
    let field = |name: &str| terminal[name].as_str().expect("a text").to_owned();
    until("the program is seen there", || {
        let seen = Command::new("tmux")
            .args(["-S", &field("socket"), "capture-pane", "-p", "-t", &field("name")])
            .current_dir(field("folder"))
            .output()
            .expect("tmux");
        String::from_utf8_lossy(&seen.stdout).contains("tiny 1.0")
    });
    let piped = environment.landfall(&["attach", "T1"]);
    assert!(piped.err.contains("needs a terminal"), "{piped:?}");

    std::fs::write(&go, "").expect("a file");
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(environment.git(&["show", "main:hello.txt"]), "hello");
}

#[test]
fn c40_an_agent_without_a_terminal_is_followed_in_the_log() {
    let environment = TestEnvironment::new();
    let go = environment.path("go");
    environment.write(
        "landfall.toml",
        &format!(
            "[project]\nbase = \"main\"\n[verify]\nrequired = true\n[[verify.command]]\nname = \"check\"\nrun = \"true\"\n\
             [run]\niterations_max = 1\n[agent.default]\nkind = \"command\"\nrun = \"sh -c 'until [ -e {} ]; do sleep 0.02; done'\"\n",
            go.display()
        ),
    );
    environment.commit("settings");
    environment.add(&["Wait"]);
    let none = environment.landfall(&["attach", "T9"]);
    assert_eq!(none.code, Some(5), "{none:?}");
    let running = environment.start(&["run"]);
    until("it says so", || {
        let said = environment.landfall(&["attach", "T1"]);
        assert_eq!(said.code, Some(6), "{said:?}");
        said.err.contains("does not run in a terminal") && said.err.contains("landfall log T1 --follow")
    });
    std::fs::write(&go, "").expect("a file");
    running.end();
}

/// Reads a command to its last line, notes it, runs a child below what looks like a prompt, and says by its signal what comes
/// next. The child takes longer than a screen must be unchanged to be believed.
const STEPPER: &str = r#"#!/bin/bash
echo stepper 1.0
n=0
while true; do
  printf '> '
  IFS= read -r all || exit 0
  until [[ $all == *'and only that.' || $all == *'and stop.' ]]; do
    IFS= read -r more || exit 0
    all="$all $more"
  done
  case "$all" in
    *'step `plan`'*) said=plan next=check result='(generated)' ;;
    *': `check`'*) said=check next=exec result=PASS ;;
    *': `exec`'*) said=exec next=report result='(done)' ;;
    *': `report`'*) said=report next='(stop)' result='(done)' ;;
    *) said=other next= ;;
  esac
  echo "$said $$" >> steps.txt
  if [ "$said" = check ]; then printf '$ '; sleep 1; echo; fi
  if [ "$said" = exec ]; then
    echo hello >hello.txt
    git add hello.txt steps.txt
    git -c user.name=S -c user.email=s@example.invalid commit --quiet --message hello
  fi
  printf '{"step":"%s","result":"%s","next":"%s","iteration":%s,"timestamp":"2026-01-31T12:00:00Z"}' \
    "$said" "$result" "$next" $n > .landfall/task/.auto-signal.tmp
  mv .landfall/task/.auto-signal.tmp .landfall/task/.auto-signal
  n=$((n + 1))
  echo done
done
"#;

#[test]
fn edge_05_each_next_step_is_typed_into_the_same_terminal_when_it_is_ready() {
    if !has_tmux() {
        return;
    }
    let environment = TestEnvironment::new();
    let stepper = environment.path("stepper");
    std::fs::write(&stepper, STEPPER).expect("a script");
    environment.write(
        "landfall.toml",
        &format!(
            "[project]\nbase = \"main\"\n[verify]\nrequired = true\nred_base = \"start\"\n[[verify.command]]\nname = \"check\"\nrun = \"test -s hello.txt\"\n\
             [agent.default]\nkind = \"tmux\"\nterminal_poll = \"50ms\"\nrun = \"bash {}\"\nstyle = \"dispatch\"\n",
            stepper.display(),
        ),
    );
    environment.commit("settings");
    environment.add(&["Step by step", "--flow", "watched"]);
    let running = environment.start(&["run"]);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let steps = environment.git(&["show", "main:steps.txt"]);
    let told: Vec<(&str, &str)> = steps.lines().filter_map(|line| line.split_once(' ')).collect();
    let names: Vec<&str> = told.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["plan", "check", "exec", "report"],
        "one command for each step, none typed into a child"
    );
    assert!(told.iter().all(|(_, pid)| *pid == told[0].1), "all in one terminal: {told:?}");
}

#[test]
fn an_agent_in_a_terminal_is_refused_where_the_sandbox_has_none() {
    let environment = TestEnvironment::new();
    environment.write(
        "landfall.toml",
        "[project]\nbase = \"main\"\n[verify]\nrequired = true\n[[verify.command]]\nname = \"check\"\nrun = \"true\"\n\
         [agent.default]\nkind = \"tmux\"\nrun = \"sh\"\nsandbox = \"write\"\n",
    );
    environment.commit("settings");
    environment.trust();
    environment.add(&["Say hello"]);
    let refused = environment.landfall(&["run"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(
        refused.err.contains("works in a terminal, and the sandbox level `write` has no terminals"),
        "{refused:?}"
    );
    let doctor = environment.landfall(&["doctor"]);
    assert!(doctor.out.contains("has no terminals"), "{doctor:?}");
    let task = environment.landfall(&["show", "T1"]);
    assert!(task.out.contains("ready"), "nothing has been tried: {task:?}");
}
