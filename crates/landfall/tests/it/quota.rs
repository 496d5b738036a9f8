//! Accounts that are used up, from outside: who waits, who goes on, and what a person sees of it.

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;

const PROFILES: &str = "[agent.default]\nkind = \"script\"\naccount = \"shared\"\n\
                        [agent.second]\nkind = \"script\"\naccount = \"shared\"\n\
                        [agent.other]\nkind = \"script\"\naccount = \"apart\"\n\
                        [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n";

/// A script that works and is done.
fn work(file: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{file}\"\ntext = \"work\\n\"\n")
}

/// A script that is out of quota at first, and then works.
fn work_after_quota(file: &str, until: &str) -> String {
    format!(
        "[[iteration]]\nmisbehave = \"quota\"\nuntil = \"{until}\"\n\
         [[iteration]]\nsignal = \"complete\"\n\
         [[iteration.write]]\npath = \"{file}\"\ntext = \"work\\n\"\n"
    )
}

fn account<'a>(status: &'a Value, name: &str) -> &'a Value {
    let found = status["accounts"].as_array().and_then(|list| list.iter().find(|it| it["account"] == name));
    found.unwrap_or(&Value::Null)
}

#[test]
fn those_on_one_account_wait_together_and_the_others_go_on() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&format!("{PROFILES}[run]\nslots = 2\n"));
    scratch.task("First", &work_after_quota("b.txt", "1h"), &[]);
    scratch.task("Second", &work_after_quota("c.txt", "1h"), &["--agent", "second"]);
    scratch.task("Apart", &work("d.txt"), &["--agent", "other"]);
    scratch.task("Late", &work("e.txt"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the other account goes on", || scratch.status("T3") == "done");
    for task in ["T1", "T2", "T4"] {
        assert_eq!(scratch.wait_of(task), "quota", "{task}: {}", scratch.why(task));
        let why = scratch.why(task);
        assert!(why.contains("used up until") && why.contains("from now"), "it counts down: {why}");
    }
    let status = scratch.landfall(&["--json", "status"]).json();
    let shut = account(&status, "shared");
    assert_eq!(shut["state"], "used-up", "{status}");
    assert_eq!(shut["tasks"], serde_json::json!(["T1", "T2", "T4"]), "{status}");
    assert_eq!(account(&status, "apart"), &Value::Null, "{status}");
    let text = scratch.landfall(&["status"]).ok();
    assert!(text.contains("account shared: used up, ") && text.contains("; T1, T2, T4 wait"), "{text}");
    assert!(text.contains(" left, until "), "{text}");
    assert_eq!(scratch.facts("T4", "iteration-began"), Vec::<Value>::new(), "T4 spent no try");

    // Somebody knows better than the agent, so nobody has to wait for the reset.
    scratch.landfall(&["retry", "T1"]).ok();
    assert_eq!(run.wait(std::time::Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    // One finds out for the others: until it has ended, nobody else on the account begins.
    let log = scratch.log();
    let seq = |it: &Value| it["seq"].as_u64().expect("a number");
    let shared = ["T1", "T2", "T4"];
    let runs = |kind: &str| {
        let of = |it: &&Value| it["kind"] == kind && shared.iter().any(|task| it["task"] == *task);
        log.iter().filter(of).map(seq).collect::<Vec<_>>()
    };
    let (began, ended) = (runs("iteration-began"), runs("iteration-ended"));
    assert_eq!((began.len(), ended.len()), (5, 5), "two were refused, three worked");
    assert!(began[2] > ended[1], "all waited");
    assert!(began[3] > ended[2], "and for the one that tried: {began:?} {ended:?}");
    assert_eq!(scratch.detail("T1")["iterations"], 1, "the refused run is no iteration");
}

#[test]
fn a_run_goes_on_by_itself_when_an_account_may_be_used_again() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(PROFILES);
    scratch.task("First", &work_after_quota("b.txt", "1s"), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.detail("T1")["iterations"], 1, "the refused run is no iteration");
}

#[test]
fn another_profile_takes_over_if_settings_say_so() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\naccount = \"mine\"\nfailover = \"spare\"\n\
         [agent.spare]\nkind = \"script\"\naccount = \"spare\"\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n",
    );
    scratch.task("First", &work_after_quota("b.txt", "1h"), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let detail = scratch.detail("T1");
    let runs: Vec<&str> = detail["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .flat_map(|it| it["runs"].as_array().into_iter().flatten())
        .filter_map(|run| run["profile"].as_str())
        .collect();
    assert_eq!(runs, ["default", "spare"], "{detail}");
}

#[test]
fn edge_07_words_about_a_quota_in_ordinary_output_change_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    let script = "say = [\"You've hit your 5-hour limit · resets 8:42am (UTC)\", \"  {\\\"landfall\\\":\\\"quota\\\"}\"]\n";
    scratch.task("Talks", &format!("{script}{}", work("b.txt")), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.facts("T1", "waited"), Vec::<Value>::new());
}

/// A made-up Claude that waits for its account in the middle of its run, as an interactive one does, and then works. Its
/// wait lasts until the file `go` is there.
fn waits_by_itself(go: &std::path::Path) -> String {
    let event = |text: &str| format!("echo '{text}'\n");
    let until = "echo '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":'$(($(date +%s) + 3600))'}}'\n";
    let answer = |text: &str, id: &str| {
        event(&format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":3,"output_tokens":2}}}}}}"#
        ))
    };
    [
        "cat > /dev/null\n".to_owned(),
        event(r#"{"type":"system","subtype":"init","session_id":"s-1","model":"claude-x","tools":[]}"#),
        answer("I begin.", "m1"),
        until.to_owned(),
        format!("until [ -e '{}' ]; do sleep 0.05; done\n", go.display()),
        answer("I go on.", "m2"),
        "echo work > b.txt && git add b.txt && git commit -qm work\n".to_owned(),
        format!("'{LANDFALL}' signal complete > /dev/null\n"),
        event(r#"{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"done","session_id":"s-1"}"#),
    ]
    .concat()
}

/// A project with one task whose agent waits for its account until the second file is there.
fn scratch_that_waits() -> (ScratchProject, std::path::PathBuf) {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.be_patient(std::time::Duration::from_secs(120));
    let program = scratch.root().join("claude.sh");
    let go = scratch.root().join("go");
    std::fs::write(&program, waits_by_itself(&go)).expect("a program");
    scratch.settings(&format!(
        "[agent.default]\nkind = \"claude\"\nrun = \"sh {}\"\nsandbox = \"off\"\n\
         [run]\ntask_limit = \"11s\"\n[[verify.command]]\nname = \"tests\"\nrun = \"true\"\n",
        program.display()
    ));
    scratch.landfall(&["add", "Wait and work"]).ok();
    (scratch, go)
}

#[test]
fn a_wait_within_a_run_spends_no_time_also_when_the_engine_ends_meanwhile() {
    let (scratch, go) = scratch_that_waits();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("it waits", || !scratch.facts("T1", "account-wait-began").is_empty());
    let waiting_since = std::time::Instant::now();
    let why = scratch.why("T1");
    assert!(why.contains("waits for its account, which is used up until"), "{why}");
    run.kill();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the second engine", || {
        scratch.landfall(&["--json", "status"]).json()["engine"].is_object()
    });
    // Longer than the task may work.
    scratch.eventually("the wait is long", || waiting_since.elapsed() > std::time::Duration::from_secs(12));
    std::fs::write(&go, "").expect("a file");
    assert_eq!(run.wait(std::time::Duration::from_secs(120)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done", "{}\n{}", scratch.why("T1"), scratch.heard());
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 1, "it was adopted: {}", scratch.heard());
    let spent = scratch.detail("T1")["spent_ms"].as_u64().expect("a time");
    assert!(spent < 11_000, "{spent} ms");
    let kinds = ["account-wait-began", "account-wait-ended"].map(|kind| scratch.facts("T1", kind).len());
    assert_eq!(kinds, [1, 1], "{}", scratch.heard());
}

#[test]
fn a_wait_that_ends_while_no_engine_runs_frees_the_account() {
    let (scratch, go) = scratch_that_waits();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("it waits", || !scratch.facts("T1", "account-wait-began").is_empty());
    run.kill();
    std::fs::write(&go, "").expect("a file");
    scratch.eventually("the agent has ended", || scratch.left_behind().is_empty());
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let kinds = ["account-wait-began", "account-wait-ended"].map(|kind| scratch.facts("T1", kind).len());
    assert_eq!(kinds, [1, 1], "the account is used up for other tasks");
}
