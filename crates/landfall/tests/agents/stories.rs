//! What can happen to an agent, and what Landfall does about it.

use std::process::Command;
use std::time::{Duration, Instant};

use landfall_testkit::{PlayGate, PlayTurn, skip_test};
use serde_json::json;

use crate::LANDFALL;
use crate::kind::{Kind, now};
use crate::shared::{PRICE, WORK, says_complete, works};
use crate::stage::{Stage, private_folder};

/// The common road: it edits, commits, says the tag with the key, is verified and landed, and what it used is known.
pub fn edits_commits_signals_and_lands(kind: Kind) {
    let prices = "[price.\"gpt-5.5\"]\ninput = 1\ncached = 0.1\noutput = 10\n\n\
                  [price.\"gemini-2.5-pro\"]\ninput = 1\ncached = 0.1\noutput = 10\n";
    let Some(stage) = Stage::unused(kind, "", "") else { return };
    stage.scratch.more_settings(prices);
    stage.play(works());
    stage.until_over(&mut stage.run());
    stage.check_landed();
    let detail = stage.scratch.detail("T1");
    let used = 2 * (PRICE.fresh + PRICE.cached + PRICE.out);
    assert_eq!(detail["tokens"], used, "{detail:#}");
    assert_eq!(detail["iterations"], 1, "{}", stage.story());
    let dollars = |input: f64, cached: f64, output: f64| {
        (2.0 * (1200.0 * input + 300.0 * cached + 40.0 * output) / 1e6 * 1e6).round() / 1e6
    };
    let cost = detail["cost_usd"].as_f64().unwrap_or_default();
    match kind {
        // It reports by a list of its own.
        Kind::Claude | Kind::AcpClaude => assert!(cost > 0.001 && cost < 0.1, "{cost} dollars"),
        // It does not report; the table in the settings holds.
        Kind::Codex | Kind::Gemini => {
            assert_eq!(cost, dollars(1.0, 0.1, 10.0), "{}", stage.story())
        }
        // Nor does it tell what came from a cache.
        Kind::AcpGemini => assert_eq!(cost, dollars(1.0, 1.0, 10.0), "{}", stage.story()),
        // It reports by the list in its own settings.
        Kind::Opencode => assert_eq!(cost, dollars(3.0, 0.3, 15.0), "{}", stage.story()),
    }
    let asked = stage.bodies();
    assert!(asked[0].mentions("Write hello into hello.txt."), "the task is in the prompt");
}

/// Its word may come from its shell: `landfall signal`.
pub fn signals_from_its_shell(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    stage.play([
        PlayTurn::shell(&format!("{WORK} && '{LANDFALL}' signal complete")),
        PlayTurn::say("That was all."),
    ]);
    stage.until_over(&mut stage.run());
    stage.check_landed();
    assert_eq!(stage.scratch.detail("T1")["iterations"], 1, "{}", stage.story());
}

/// What it plants in its own settings would run when a person starts it: they are told.
pub fn is_seen_to_change_its_own_settings(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    let plant = match kind {
        Kind::Claude => "echo '{\"hooks\":{}}' > ~/.claude/settings.json",
        Kind::Codex => "echo 'notify = [\"true\"]' > ~/.codex/config.toml",
        Kind::Gemini | Kind::Opencode | Kind::AcpClaude | Kind::AcpGemini => panic!("no story for {kind:?}"),
    };
    stage.play([PlayTurn::shell(&format!("{WORK} && {plant}")), says_complete()]);
    stage.until_over(&mut stage.run());
    let warnings = stage.scratch.detail("T1")["warnings"].to_string();
    assert!(warnings.contains("AGENT_SETTINGS_CHANGED"), "{warnings}\n{}", stage.story());
}

/// Or from its tools: Landfall's own server, which the agent starts by itself.
pub fn signals_by_its_tools(kind: Kind) {
    if !reads_our_settings(kind) {
        return;
    }
    let Some(stage) = Stage::new(kind, "", "") else { return };
    let found = json!({ "title": "Greet in French too", "body": "Nobody asked for it." });
    stage.play([
        PlayTurn::shell(WORK),
        PlayTurn::tool("landfall", "follow_up", found),
        PlayTurn::tool("landfall", "signal", json!({ "word": "complete" })),
        PlayTurn::say("That was all."),
    ]);
    stage.until_over(&mut stage.run_only("T1"));
    stage.check_landed();
    assert_eq!(stage.scratch.detail("T1")["iterations"], 1, "{}", stage.story());
    let tasks = stage.scratch.landfall(&["--json", "list"]).json();
    assert!(tasks.to_string().contains("Greet in French too"), "the new task is there: {tasks:#}");
}

/// One of them takes no settings from a folder that others can write to, or that lies in such a one.
fn reads_our_settings(kind: Kind) -> bool {
    let reads = kind != Kind::Gemini || private_folder().is_some();
    if !reads {
        skip_test("Gemini CLI reads no settings here: others can write to the target and the cache folder");
    }
    reads
}

/// In `session` style the second run knows what the first one did, and what was used is not counted twice.
pub fn goes_on_with_its_session(kind: Kind) {
    let Some(stage) = Stage::new(kind, "style = \"session\"", "") else { return };
    stage.play([
        PlayTurn::shell("echo half > hello.txt && git add hello.txt && git commit -qm half").tokens(PRICE),
        PlayTurn::say("A mark that only the session knows: quince.").tokens(PRICE),
        PlayTurn::shell("echo hello > hello.txt && git commit -qam whole").tokens(PRICE),
        says_complete(),
    ]);
    stage.until_over(&mut stage.run());
    stage.check_landed();
    let detail = stage.scratch.detail("T1");
    assert_eq!(detail["iterations"], 2, "{}", stage.story());
    let asked = stage.bodies();
    assert_eq!(asked.len(), 4, "{}", stage.story());
    assert!(asked[2].mentions("quince"), "the second run has the first in its memory\n{}", stage.story());
    assert_eq!(detail["tokens"], 4 * (PRICE.fresh + PRICE.cached + PRICE.out), "{detail:#}");
}

/// When its session is not there any more, a new one is told what happened so far.
pub fn begins_anew_when_its_session_is_gone(kind: Kind) {
    let Some(stage) = Stage::new(kind, "style = \"session\"", "") else { return };
    stage.play([
        PlayTurn::shell("echo half > hello.txt && git add hello.txt && git commit -qm half"),
        PlayTurn::quote("<landfall key=", ">PENDING:question</landfall>"),
    ]);
    let mut run = stage.run();
    stage.until_waits_for("question");
    stage.until("the run to end", || run.is_over());
    let sessions = stage.scratch.root().join("home").join(kind.sessions());
    std::fs::remove_dir_all(&sessions).expect("it keeps its sessions there");
    std::fs::create_dir_all(&sessions).expect("a folder can be made");
    let asked = stage.asked();
    stage.play([PlayTurn::shell("echo hello > hello.txt && git commit -qam whole"), says_complete()]);
    stage.scratch.landfall(&["answer", "T1", "Write it in lower case, said the person."]).ok();
    stage.until_over(&mut stage.run());
    stage.check_landed();
    assert_eq!(stage.counter("sessions lost"), 1, "{}", stage.story());
    let later = &stage.bodies()[asked];
    assert!(later.mentions("said the person"), "the answer is in the new prompt");
    assert!(later.mentions("Write hello into hello.txt."), "and the task, as in a first one");
}

/// `landfall agents --probe` says whether it answers, and what is in the way when it does not.
pub fn answers_a_probe(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    stage.play([PlayTurn::say("ok").always()]);
    let probed = stage.scratch.landfall(&["--json", "agents", "--probe"]).json();
    assert_eq!(probed["profiles"][0]["probe"]["answer"], "answers", "{probed:#}\n{}", stage.story());
    let of = |it: &&serde_json::Value| it["kind"] == kind.name() && it["program"].is_string();
    let kinds = probed["kinds"].as_array().expect("a list");
    for found in kinds.iter().filter(of) {
        let version = found["version"].as_str().unwrap_or_default();
        assert!(version.contains(|c: char| c.is_ascii_digit()), "{probed:#}");
    }
    stage.play([kind.refusal(401).always()]);
    let probed = stage.scratch.landfall(&["--json", "agents", "--probe"]);
    assert_eq!(probed.code, Some(9), "a person has to do something: {probed:?}");
    assert_eq!(probed.json()["profiles"][0]["probe"]["answer"], "wants-login", "{}", probed.out);
    assert_eq!(stage.scratch.left_behind(), [], "no process is left");
    assert_eq!(stage.scratch.git(&["status", "--porcelain"]), "", "the checkout is clean");
}

/// Overload and errors of the provider: it waits, spends no iteration, and goes on.
pub fn waits_out_a_passing_error(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    let troubles = kind.troubles();
    stage.play([kind.refusal(troubles[0]).always()]);
    let mut run = stage.run();
    stage.until_waits_for("backoff");
    let detail = stage.scratch.detail("T1");
    assert!(detail["wait"]["until_ms"].is_i64(), "it is known when it goes on: {detail:#}");
    for (status, count) in troubles.iter().zip(1..).skip(1) {
        stage.play([kind.refusal(*status).always()]);
        stage.until(&format!("the passing error {status}"), || stage.counter("transient errors") >= count);
    }
    stage.play(works());
    stage.until_over(&mut run);
    stage.check_landed();
    assert_eq!(stage.counter("agent restarts"), 0, "no restart was spent");
}

/// A login that does not hold is a question to the person, and no retry mends it.
pub fn asks_for_a_login(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    stage.play([kind.refusal(401).always()]);
    let mut run = stage.run();
    stage.until_waits_for("login");
    let asked = stage.asked();
    stage.until("the run to end", || run.is_over());
    assert_eq!(stage.asked(), asked, "it is not tried again");
    stage.play(works());
    let answered = stage.scratch.landfall(&["answer", "T1", "done"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    stage.until_over(&mut stage.run());
    stage.check_landed();
}

/// The account is used up: it waits until the moment the provider named, spends nothing, and goes on by itself.
pub fn waits_for_the_reset_of_its_limit(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    if kind == Kind::Claude {
        stage.log_in(); // it tells of limits only those who log in
    }
    let reset = now() + 20;
    stage.play([kind.limit(reset).always()]);
    let mut run = stage.run();
    stage.until_waits_for("quota");
    let asked = stage.asked();
    stage.play(works());
    let detail = stage.scratch.detail("T1");
    let until = detail["wait"]["until_ms"].as_u64().expect("a moment") / 1000;
    assert!(until >= reset && until <= reset + 6, "the reset is {reset}, the wait ends at {until}");
    assert!(now() < until, "this machine is too slow for this story");
    let freed = stage.scratch.landfall(&["--json", "status"]).json();
    assert_eq!(freed["active"].as_array().map(Vec::len), Some(0), "the slot is free: {freed:#}");
    stage.until_over(&mut run);
    assert!(now() >= reset, "it did not begin before");
    stage.check_landed();
    for spent in ["agent restarts", "retries", "transient errors", "stalls in all"] {
        assert_eq!(stage.counter(spent), 0, "{spent}\n{}", stage.story());
    }
    assert_eq!(stage.counter("quota waits"), 1, "{}", stage.story());
    assert_eq!(stage.asked(), asked + 2, "{}", stage.story());
}

/// A limit without a moment: it waits for the quota all the same, with a moment of its own.
pub fn waits_when_its_limit_names_no_reset(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    stage.play([kind.limit(now() + 60).always()]);
    let run = stage.run();
    stage.until_waits_for("quota");
    let until = stage.scratch.detail("T1")["wait"]["until_ms"].as_u64().expect("a moment") / 1000;
    assert!(until > now(), "it ends by itself");
    drop(run);
}

/// Limits that a test can wait for, and that a CLI which starts on a busy machine keeps.
const SHORT_LIMITS: &str =
    "silence = \"10s\"\nfirst_output = \"30s\"\nheartbeat = \"5s\"\nheartbeats = 1\ngrace = \"1s\"\n";

/// A model that never answers: the agent is stopped on time and started again.
pub fn is_stopped_when_it_hangs(kind: Kind) {
    is_stopped(kind, PlayTurn::hang());
}

/// A stream that stalls in the middle is the same.
pub fn is_stopped_when_its_stream_stalls(kind: Kind) {
    is_stopped(kind, PlayTurn::stall("It begins and then"));
}

fn is_stopped(kind: Kind, silence: PlayTurn) {
    let Some(stage) = Stage::new(kind, "", SHORT_LIMITS) else { return };
    stage.play([silence.always()]);
    let mut run = stage.run();
    stage.until_asked(1);
    let began = Instant::now();
    stage.until("the silent run to be ended", || !stage.scratch.facts("T1", "iteration-ended").is_empty());
    let took = began.elapsed();
    stage.play(works());
    assert!(took < Duration::from_secs(60), "{took:?}\n{}", stage.story());
    assert!(stage.counter("transient errors") >= 1, "{}", stage.story());
    assert_eq!(stage.counter("stalls in all"), 0, "it is no fault of the agent\n{}", stage.story());
    stage.until_over(&mut run);
    stage.check_landed();
}

/// It may take two turns: what it has done stands, and the next run goes on.
pub fn goes_on_after_its_turn_limit(kind: Kind) {
    if !reads_our_settings(kind) {
        return;
    }
    let Some(stage) = Stage::new(kind, "turns_max = 2", "") else { return };
    stage.play([
        PlayTurn::shell("echo half > hello.txt && git add hello.txt && git commit -qm half"),
        PlayTurn::shell("git log --oneline | wc -l"),
        PlayTurn::shell("echo hello > hello.txt && git commit -qam whole"),
        says_complete(),
    ]);
    stage.until_over(&mut stage.run());
    stage.check_landed();
    let detail = stage.scratch.detail("T1");
    assert_eq!(detail["iterations"], 2, "{}", stage.story());
    assert_eq!(stage.asked(), 4, "{}", stage.story());
}

/// Someone else ends it: it is started again, and the work is not lost.
pub fn is_started_again_after_sigterm(kind: Kind) {
    let Some(stage) = Stage::new(kind, "", "") else { return };
    let gate = PlayGate::new();
    stage.play([PlayTurn::shell(WORK), PlayTurn::say("never").behind(&gate)]);
    let mut run = stage.run();
    stage.until_asked(2);
    let agents = agents(&stage, kind);
    assert!(!agents.is_empty(), "{:?}", landfall_testkit::left_behind(stage.scratch.root()));
    stage.play([says_complete()]);
    for pid in &agents {
        let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status(); // its parent may have ended it
    }
    // One of them does not listen while it waits for its model: whoever meant it would use more force after a while.
    let patience = Instant::now() + Duration::from_secs(2);
    let is_there = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    while agents.iter().any(is_there) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    for pid in &agents {
        drop(
            Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .stderr(std::process::Stdio::null())
                .status(),
        ); // it listened
    }
    stage.until_over(&mut run);
    stage.check_landed();
    assert!(stage.scratch.facts("T1", "iteration-ended").len() >= 2, "{}", stage.story());
}

/// The processes of the agent itself.
fn agents(stage: &Stage, kind: Kind) -> Vec<i32> {
    let ours = |process: &landfall_testkit::Process| {
        process.command.split(' ').take(2).any(|word| {
            let word = word.rsplit('/').next().unwrap_or_default();
            kind.programs().contains(&word)
        })
    };
    let all = landfall_testkit::left_behind(stage.scratch.root());
    all.into_iter().filter(ours).map(|process| process.pid).collect()
}

/// The engine is killed in the middle of a turn; another binary takes over. Nothing is run twice, no byte is missing.
pub fn survives_the_end_of_the_engine(kind: Kind) {
    let Some(mut stage) = Stage::new(kind, "", "") else { return };
    let gate = PlayGate::new();
    stage.play([
        PlayTurn::shell(WORK).with_words("Before the end: apricot."),
        PlayTurn::shell("git log --oneline | wc -l").with_words("After the end: medlar.").behind(&gate),
        says_complete(),
    ]);
    let mut first = stage.run();
    stage.until_asked(2);
    first.kill();
    assert!(!agents(&stage, kind).is_empty(), "the agent goes on without the engine");
    let copy = stage.scratch.root().join("landfall-upgraded");
    std::fs::copy(LANDFALL, &copy).expect("the program can be copied");
    stage.scratch.upgrade(&copy);
    let mut second = stage.run();
    stage.until("the second engine", || {
        stage.scratch.landfall(&["--json", "status"]).json()["engine"].is_object()
    });
    gate.open();
    stage.until_over(&mut second);
    stage.check_landed();
    assert_eq!(stage.scratch.detail("T1")["iterations"], 1, "it was adopted:\n{}", stage.story());
    assert_eq!(stage.asked(), 3, "{}", stage.story());
    let outputs = stage.outputs();
    assert_eq!(outputs.len(), 1);
    for word in ["apricot", "medlar"] {
        assert!(outputs[0].contains(word), "`{word}` is in the output:\n{}", outputs[0]);
    }
    let counted = stage.ends()[0]["out"].clone();
    assert_eq!(counted["bytes"], outputs[0].len(), "to the byte, by the count of its sitter: {counted}");
    assert_eq!(counted["left_out"], 0);
    let torn = outputs[0].lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_err());
    assert_eq!(torn.collect::<Vec<_>>(), [""; 0], "every line is whole");
    let used = stage.scratch.detail("T1")["tokens"].clone();
    assert_eq!(
        used,
        2 * 1050 + PRICE.fresh + PRICE.cached + PRICE.out,
        "what was said before is counted too"
    );
}
