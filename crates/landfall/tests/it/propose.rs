//! `landfall propose`: the scripted agent plays the model, well and badly.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landfall_testkit::ScratchProject;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::LANDFALL;

/// A project whose agent says these, one a round.
fn scene(rounds: &[String]) -> ScratchProject {
    scene_with("", rounds)
}

fn scene_with(settings: &str, rounds: &[String]) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("plan.toml", &rounds.concat());
    scratch.more_settings(&format!("[agent.planner]\nkind = \"script\"\nscript = \"plan.toml\"\n{settings}"));
    scratch
}

/// One round of the agent: it says this.
fn says(text: &str) -> String {
    format!(
        "[[iteration]]\nusage = {{ tokens_in = 900, tokens_out = 100, micro_usd = 20000 }}\nsay = {}\n",
        Value::from(text)
    )
}

fn block(proposal: &Value) -> String {
    format!("I looked at the project.\n\n```json\n{proposal:#}\n```\n")
}

fn task(id: &str, title: &str, needs: &[&str]) -> Value {
    let script = format!(
        "```landfall-script\nsignal = \"complete\"\n[[write]]\npath = \"log\"\nappend = \"{id}\\n\"\n```"
    );
    json!({ "id": id, "title": title, "body": format!("Write to the log.\n\n{script}"), "criteria": [format!("`{id}` is in the log")],
        "size": "S", "needs": needs })
}

fn good() -> Value {
    let mut last = task("c", "Write the end", &["a", "b"]);
    last["group"] = "g".into();
    let mut first = task("a", "Write the beginning", &[]);
    first["group"] = "g".into();
    first["touches"] = json!(["log"]);
    json!({ "groups": [{ "id": "g", "title": "The log", "body": "All of it." }],
        "tasks": [last, first, task("b", "Write the middle", &["a"])] })
}

const ASK: [&str; 4] = ["propose", "Keep a log", "--agent", "planner"];

fn asked(more: &[&'static str]) -> Vec<&'static str> {
    [&ASK[..], more].concat()
}

fn tasks(scratch: &ScratchProject) -> Vec<Value> {
    scratch.landfall(&["--json", "list"]).json()["tasks"].as_array().expect("a list").clone()
}

#[track_caller]
fn nothing_left(scratch: &ScratchProject) {
    assert_eq!(scratch.left_behind(), []);
    let folders = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path());
    let left: Vec<_> = folders(&scratch.root().join("tmp")).flat_map(|root| folders(&root)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_good_proposal_is_added_with_yes_and_its_order_holds() {
    let scratch = scene(&[says(&block(&good()))]);
    let said = scratch.landfall(&asked(&["--yes"]));
    assert_eq!(
        said.clone().ok(),
        "T1 The log\nT2 Write the end\nT3 Write the beginning\nT4 Write the middle\n"
    );
    for words in [
        "proposal 1: 3 tasks in 1 group; 1 round, ",
        "1k tokens, $0.02",
        "#1 The log\n  #2 Write the end  (S, needs #3, #4)\n     - `c` is in the log\n  #3 Write the beginning  (S)",
        "#4 Write the middle  (S, needs #3)",
        "added; `landfall run` works on them",
    ] {
        assert!(said.err.contains(words), "`{words}` is not in: {}", said.err);
    }
    let end = scratch.landfall(&["--json", "show", "T2"]).json();
    assert_eq!(
        (&end["source"], &end["parent"], &end["needs"]),
        (&"proposal:1".into(), &"T1".into(), &json!(["T3", "T4"]))
    );
    assert_eq!(end["criteria"], json!(["`c` is in the log"]));
    assert_eq!(scratch.landfall(&["--json", "show", "T3"]).json()["touches"], json!(["log"]));
    assert_eq!(scratch.status("T1"), "draft", "nobody works on a group");
    let by_hand = scratch.landfall(&["edit", "T1", "--ready"]);
    assert!(by_hand.code == Some(6) && by_hand.err.contains("T1 is a group"), "{by_hand:?}");
    nothing_left(&scratch);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:log"]), "a\nb\nc");
}

#[test]
fn without_a_terminal_it_is_stored_as_drafts_that_can_be_accepted() {
    let scratch = scene(&[says(&block(&good()))]);
    let said = scratch.landfall(&ASK);
    assert!(
        said.err.contains("stored as drafts, because nobody said yes; `landfall propose --accept 1`"),
        "{}",
        said.err
    );
    assert_eq!(said.ok().lines().count(), 4);
    assert!(tasks(&scratch).iter().all(|task| task["status"] == "draft"));
    scratch.landfall(&["run"]).ok();
    assert!(tasks(&scratch).iter().all(|task| task["status"] == "draft"), "drafts do not start");
    let accepted = scratch.landfall(&["propose", "--accept", "1"]).ok();
    assert_eq!(accepted.lines().count(), 3, "{accepted}");
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T3").as_str()), ("draft", "ready"));
    let again = scratch.landfall(&["propose", "--accept", "1"]);
    assert_eq!(again.code, Some(5), "{}", again.err);
    let other = scratch.landfall(&["propose", "--accept", "9"]);
    assert!(other.err.contains("there is no proposal 9"), "{}", other.err);
}

#[test]
fn a_look_shows_it_and_json_prints_it_and_neither_adds_more_than_it_says() {
    let scratch = scene(&[says(&block(&good()))]);
    let look = scratch.landfall(&asked(&["--dry-run"]));
    assert!(look.out.starts_with("#1 The log\n  #2 Write the end"), "{} {}", look.out, look.err);
    assert_eq!(tasks(&scratch), Vec::<Value>::new());
    let json = scratch.landfall(&asked(&["--json", "--dry-run"])).json();
    assert_eq!(
        (&json["outcome"], &json["number"], &json["rounds"]),
        (&"shown".into(), &1.into(), &1.into()),
        "{json}"
    );
    assert_eq!(json["usage"]["cost_usd"], 0.02);
    assert_eq!(json["tasks"][1]["needs"], json!(["#3", "#4"]));
    let json = scratch.landfall(&asked(&["--json", "--yes"])).json();
    assert_eq!(
        (&json["outcome"], json["added"].as_array().map(Vec::len)),
        (&"added".into(), Some(4)),
        "{json}"
    );
    let again = scratch.landfall(&asked(&["--json"]));
    assert_eq!(again.code, Some(9), "{}", again.err);
    let error: Value = serde_json::from_str(&again.err).expect("one line of JSON and nothing else");
    assert_eq!(error["error"]["message"], "everything that the agent proposes is there already");
    let second = json!({ "tasks": [task("z", "Write more", &["T4"])] });
    scratch.file("plan.toml", &says(&block(&second)));
    let json = scratch.landfall(&asked(&["--json", "--yes"])).json();
    assert_eq!((&json["number"], &json["added"][0]["needs"]), (&2.into(), &json!(["T4"])), "{json}");
}

#[test]
fn what_is_wrong_goes_back_and_what_is_mechanical_is_mended() {
    let circle = json!({ "tasks": [task("a", "One", &["b"]), task("b", "Two", &["a"])] });
    let mut odd = task("a", "Write the beginning", &["a", "nobody"]);
    odd["criteria"] = json!(["it is there", " "]);
    let mended = json!({ "tasks": [odd, task("b", "write the BEGINNING", &[]), task("c", "Old one", &[]), task("d", "Write the rest", &["b", "c"])] });
    let scratch = scene(&[says("I have no idea."), says(&block(&circle)), says(&block(&mended))]);
    scratch.landfall(&["add", "Old one"]).ok();
    let said = scratch.landfall(&asked(&["--yes"]));
    for words in [
        "there is no block of JSON with `tasks` in your answer",
        "round 2 of at most 5",
        "the needs go in a circle: a → b → a",
        "mended: `b` has the same title as `a` and was left out",
        "mended: `c` is there already as T1 and was left out",
        "mended: `a` needed itself",
        "mended: `a` needed `nobody`",
        "proposal 1: 2 tasks; 3 rounds",
    ] {
        assert!(said.err.contains(words), "`{words}` is not in: {}", said.err);
    }
    assert_eq!(said.ok(), "T2 Write the beginning\nT3 Write the rest\n");
    assert_eq!(scratch.landfall(&["--json", "show", "T3"]).json()["needs"], json!(["T1", "T2"]));
}

#[test]
fn the_agent_hears_what_was_wrong_and_sees_the_project() {
    let scratch = scene(&[]);
    // A program of one's own: it keeps its prompt, looks at the checkout, and answers badly twice.
    scratch.file(
        "ask.sh",
        "#!/bin/sh\nread_prompt=$(cat)\nprintf '%s\\n' \"$read_prompt\" > \"$HOME/kept/prompt.$$\"\nls > \"$HOME/kept/ls\"\ncat a.txt >> \"$HOME/kept/ls\"\ngit log --oneline >> \"$HOME/kept/ls\"\necho spoiled > a.txt\necho '{\"tasks\": [{\"id\": \"a\", \"title\": \"Do it\"}]}'\n",
    );
    scratch.commit("ask");
    let kept = scratch.root().join("home/kept");
    std::fs::create_dir(&kept).expect("a new folder");
    scratch.more_settings(&format!(
        "[run]\nsandbox_write = [{:?}]\n[agent.own]\nkind = \"command\"\nrun = \"sh ask.sh\"\n",
        kept.to_str().expect("text")
    ));
    scratch.landfall(&["add", "Something else"]).ok();
    scratch.file("goal.md", "# Count\n\nCount the lines of `a.txt`.\n");
    let said = scratch.landfall(&["propose", "-f", "goal.md", "--agent", "own", "--max", "3"]);
    assert_eq!((said.code, said.out.as_str()), (Some(9), ""), "{}", said.err);
    assert!(said.err.contains("no proposal that holds together in 5 rounds"), "{}", said.err);
    assert!(said.err.contains("`a` has no criteria") && said.err.contains("hint: "), "{}", said.err);
    let look = std::fs::read_to_string(kept.join("ls")).expect("it looked");
    assert!(look.contains("test.sh") && look.contains("one\ntwo\nthree") && look.contains("begin"), "{look}");
    assert_eq!(std::fs::read_to_string(scratch.project().join("a.txt")).expect("ours"), "one\ntwo\nthree\n");
    let prompts: Vec<String> = std::fs::read_dir(&kept)
        .expect("its folder")
        .flatten()
        .filter(|it| it.file_name().to_string_lossy().starts_with("prompt."))
        .map(|it| std::fs::read_to_string(it.path()).expect("a prompt"))
        .collect();
    assert_eq!(prompts.len(), 5);
    let first = prompts.iter().find(|it| it.contains("round 1 of at most 5")).expect("the first");
    for words in [
        "Count the lines of `a.txt`.",
        "- T1 Something else (ready)",
        "at most 3 tasks",
        "    sh test.sh",
        "\"criteria\"",
    ] {
        assert!(first.contains(words), "`{words}` is not in: {first}");
    }
    let second = prompts.iter().find(|it| it.contains("round 2 of at most 5")).expect("the second");
    for words in
        ["- `a` has no body", "- `a` has no size", "{\"tasks\": [{\"id\": \"a\", \"title\": \"Do it\"}]}"]
    {
        assert!(second.contains(words), "`{words}` is not in: {second}");
    }
    assert_eq!(tasks(&scratch).len(), 1);
    nothing_left(&scratch);
}

#[test]
fn an_agent_that_is_asked_in_a_linked_worktree_cannot_read_the_shared_git_folder() {
    let scratch = scene(&[]);
    let shared = scratch.root().join("shared.git");
    let other = scratch.root().join("other");
    let kept = scratch.root().join("home/kept");
    std::fs::create_dir(&kept).expect("a new folder");
    let places = [shared.join("config"), shared.join("hooks/secret"), other.join(".env")];
    let tries: String =
        places.iter().map(|place| format!("cat '{}' >> \"$HOME/kept/read\"\n", place.display())).collect();
    scratch.file(
        "ask.sh",
        &format!(
            "#!/bin/sh\ncat > /dev/null\n{tries}git log --oneline > \"$HOME/kept/log\"\necho '{{\"tasks\": []}}'\n"
        ),
    );
    scratch.more_settings(&format!(
        "[run]\nsandbox_write = [{:?}]\n[agent.own]\nkind = \"command\"\nrun = \"sh ask.sh\"\n",
        kept.to_str().expect("text")
    ));
    // The project becomes a linked worktree of a repository beside it, which has another one.
    let (project, text) = (scratch.project(), |path: &Path| path.to_str().expect("text").to_owned());
    scratch.git(&["clone", "--quiet", "--bare", ".", &text(&shared)]);
    std::fs::remove_dir_all(&project).expect("ours");
    std::fs::create_dir(&project).expect("ours");
    scratch.git(&["--git-dir", &text(&shared), "worktree", "add", "--quiet", &text(&other), "-b", "other"]);
    scratch.git(&["--git-dir", &text(&shared), "worktree", "add", "--quiet", "--force", ".", "main"]);
    std::fs::create_dir_all(shared.join("hooks")).expect("ours");
    for place in [&places[1], &places[2]] {
        std::fs::write(place, "the-secret\n").expect("ours");
    }
    scratch.landfall(&["propose", "Count", "--agent", "own"]);
    let log = std::fs::read_to_string(kept.join("log")).expect("it was asked");
    assert!(log.contains("begin"), "it reads the history: {log}");
    assert_eq!(std::fs::read_to_string(kept.join("read")).expect("it tried"), "", "it reads nothing else");
}

#[test]
fn an_agent_that_fails_is_asked_once_more_and_then_it_is_said() {
    let crash = || "[[iteration]]\nmisbehave = \"crash\"\n".to_owned();
    let once = scene(&[crash(), says(&block(&good()))]);
    let said = once.landfall(&asked(&["--yes"]));
    assert!(said.err.contains("the agent failed: killed by signal 6"), "{}", said.err);
    assert_eq!(said.ok().lines().count(), 4);
    for (rounds, settings, code, words) in [
        (vec![crash(), crash()], "", 9, "the agent failed: killed by signal 6"),
        (
            vec!["[[iteration]]\nmisbehave = \"quota\"\nuntil = \"5m\"\n".to_owned()],
            "",
            9,
            "the agent's account is used up",
        ),
        (
            vec!["[[iteration]]\nsignal = \"blocked:it is done already\"\n".to_owned()],
            "",
            9,
            "no tasks to propose: it is done already",
        ),
        (vec![says("{\"tasks\": [], \"why\": \"too vague\"}")], "", 9, "no tasks to propose: too vague"),
        (
            vec!["[[iteration]]\nmisbehave = \"hang\"\n".to_owned()],
            "[run]\ntask_limit = \"1s\"\ngrace = \"100ms\"\n",
            9,
            "did not answer in time",
        ),
        (
            vec![says("hm"), says("hm")],
            "[budget]\ntask_usd = 0.03\n",
            6,
            "the budget of the task is used up: $0.04 of $0.03",
        ),
    ] {
        let scratch = scene_with(settings, &rounds);
        let said = scratch.landfall(&ASK);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{words}: {}", said.err);
        assert!(said.err.contains(words) && said.err.contains("hint: "), "`{words}` is not in: {}", said.err);
        assert_eq!(tasks(&scratch), Vec::<Value>::new());
        nothing_left(&scratch);
    }
}

#[test]
fn what_cannot_be_asked_is_refused_before_any_agent_starts() {
    let scratch = scene(&[says("x")]);
    for (args, code, words) in [
        (&["propose"][..], 2, "there is no goal"),
        (&["propose", "  "], 2, "the goal is empty"),
        (&["propose", "x", "--agent", "planer"], 4, "did you mean `planner`?"),
        (&["propose", "x", "--max", "0"], 2, "0"),
        (&["propose", "x", "-f", "y"], 2, "cannot be used with"),
        (&["propose", "-f", "none.md"], 2, "read `none.md`"),
    ] {
        let said = scratch.landfall(args);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "`{words}` is not in: {}", said.err);
    }
    scratch.file("big.md", &"x ".repeat(40_000));
    assert!(scratch.landfall(&["propose", "-f", "big.md"]).err.contains("an agent is shown 65536"));
}

#[test]
fn ctrl_c_stops_the_agent_and_adds_nothing() {
    let scratch = scene(&["[[iteration]]\nsay = \"thinking\"\nmisbehave = \"hang\"\n".to_owned()]);
    let mut started = scratch.start(&ASK);
    let at_work = || scratch.left_behind().len() >= 3; // the command, the sitter, the agent
    let deadline = Instant::now() + Duration::from_secs(30);
    while !at_work() {
        assert!(Instant::now() < deadline, "the agent did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    started.signal("INT");
    assert_eq!(started.wait(Duration::from_secs(30)), Some(130));
    nothing_left(&scratch);
    assert_eq!(tasks(&scratch), Vec::<Value>::new());
}

/// A terminal: our end, and that of the program.
fn terminal() -> (std::fs::File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it is ours");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let theirs = rustix::fs::open(
        &name,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY,
        rustix::fs::Mode::empty(),
    );
    (ours.into(), theirs.expect("the other end"))
}

#[test]
fn on_a_terminal_one_question_is_asked() {
    for (answer, statuses) in
        [("what\ny\n", &["draft", "waiting", "ready", "waiting"][..]), ("d\n", &["draft"; 4]), ("\n", &[])]
    {
        let scratch = scene(&[says(&block(&good()))]);
        let (mut ours, theirs) = terminal();
        let mut command = Command::new(LANDFALL);
        command.args(ASK).current_dir(scratch.project()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANDFALL_STATE", scratch.state());
        command.env("HOME", scratch.root().join("home")).env("TMPDIR", scratch.root().join("tmp"));
        command.stdin(theirs.try_clone().expect("shared")).stderr(theirs).stdout(Stdio::piped());
        let child = command.spawn().expect("it starts");
        drop(command); // and with it our copy of their end
        ours.write_all(answer.as_bytes()).expect("typed ahead");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{answer:?}");
        let found: Vec<String> =
            tasks(&scratch).iter().map(|task| task["status"].as_str().expect("text").to_owned()).collect();
        assert_eq!(found, statuses, "{answer:?}");
    }
}

#[test]
fn what_a_proposal_costs_counts_for_the_day_even_if_it_comes_to_nothing() {
    let nonsense = says("I would rather not.");
    let scratch = scene_with("[budget]\nday_usd = 0.05\n", &[nonsense.clone(), nonsense.clone(), nonsense]);
    let said = scratch.landfall(&ASK);
    assert_ne!(said.code, Some(0), "{}", said.out);
    let status = scratch.landfall(&["--json", "status"]).json();
    let day = |status: &Value| {
        let lines = status["spending"].as_array().expect("a list");
        lines.iter().find(|it| it["scope"] == "day").expect("today").clone()
    };
    assert_eq!(day(&status)["usage"]["cost_usd"], 0.06, "{status}");
    scratch.task("Waits for tomorrow", "signal = \"complete\"\n[[write]]\npath = \"b\"\ntext = \"b\"\n", &[]);
    assert!(scratch.why("T1").contains("$0.06 of $0.05"), "{}", scratch.why("T1"));
    let log = scratch.landfall(&["log"]).ok();
    assert!(log.contains("agent `planner` was asked for a proposal"), "{log}");
}

#[test]
fn a_proposal_is_accepted_as_a_whole_or_not_at_all() {
    for (point, accepted) in [("journal.append.before", false), ("journal.append.after", true)] {
        let mut scratch = scene(&[says(&block(&good()))]);
        scratch.landfall(&ASK).ok();
        scratch.set("LANDFALL_CRASH", point);
        let said = scratch.landfall(&["propose", "--accept", "1"]);
        scratch.unset("LANDFALL_CRASH");
        assert_ne!(said.code, Some(0), "it ended in the middle: {said:?}");
        let left: Vec<String> = ["T2", "T3", "T4"].iter().map(|task| scratch.status(task)).collect();
        assert_eq!(left.iter().any(|it| it == "draft"), !accepted, "{point}: {left:?}");
        assert_eq!(left.iter().all(|it| it == "draft"), !accepted, "{point}: {left:?}");
    }
}
