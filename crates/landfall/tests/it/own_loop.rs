//! Agents that run a loop of their own, watched by the files they write. The loop is a shell script that the scripted agent
//! runs: it looks for its stop file before each step and says after each where it is.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::sandbox::{open, open_folder};

const FLOW: [&str; 2] = ["--flow", "watched"];

/// Waits until the engine has read the signal file: the time of the last access is then later than that of the change. A file
/// system that does not keep the former makes every wait as long as the bound.
pub const LOOKED: &str = r#"
looked() {
  tries=0
  until [ -n "$(find $M/.auto-signal -neweram $M/.auto-signal 2>/dev/null)" ] || [ $tries = 600 ]; do
    tries=$((tries + 1)); sleep 0.02
  done
}
"#;

/// What every loop begins with. `$M` is its module, `$OUT` a folder that the test can look into. `said` waits until the engine
/// has read what was signalled, so that the next signal does not take its place before.
const PRELUDE: &str = r#"
M=.landfall/task
OUT="$HOME/open"
signal() {
  printf '{"step":"%s","result":"%s","next":"%s","checkpoint":"","iteration":%s,"timestamp":"2026-01-31T12:00:00Z"}' \
    "$1" "$2" "$3" "$4" > $M/.auto-signal.tmp
  mv $M/.auto-signal.tmp $M/.auto-signal
}
said() { signal "$@"; looked; }
stopped() { [ -e $M/.auto-stop ] && cp $M/.auto-stop "$OUT/stop"; }
step() { echo "$1" >> "$OUT/steps"; }
"#;

/// Steps one after the other until it is asked to stop.
const ENDLESS: &str = r#"
n=0
until stopped; do
  step $n
  said exec "(step-$n)" exec $n
  n=$((n + 1))
done
echo left >> "$OUT/steps"
"#;

/// Three steps, and it is done.
const WORKS: &str = r#"
said plan "(generated)" check 0
said check PASS exec 1
echo '{"status":"complete"}' > $M/.status.json
signal report "(done)" "(stop)" 2
"#;

fn run_in_shell(shell: &str) -> String {
    format!("run = [\"sh\", \"-c\", '''{LOOKED}{PRELUDE}{shell}''']\n")
}

/// A script with one run, which leaves work behind and then runs this loop.
fn walks(shell: &str) -> String {
    format!("{}[[write]]\npath = \"work.txt\"\ntext = \"work\\n\"\n", run_in_shell(shell))
}

fn scratch(settings: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings(&format!("[run]\n{settings}"));
    open(&scratch);
    scratch
}

/// Lines of a file in the folder that the test can look into.
fn noted(scratch: &ScratchProject, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(open_folder(scratch).join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Why the agent was asked to stop, as it saw it.
fn reason(scratch: &ScratchProject) -> String {
    let text = std::fs::read_to_string(open_folder(scratch).join("stop")).unwrap_or_default();
    let stop: Value = serde_json::from_str(&text).unwrap_or_default();
    assert!(stop["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')), "{text}");
    stop["reason"].as_str().unwrap_or_default().to_owned()
}

fn doing(scratch: &ScratchProject) -> String {
    let status = scratch.landfall(&["--json", "status"]).json();
    status["active"][0]["doing"].as_str().unwrap_or_default().to_owned()
}

fn agent_is_up(scratch: &ScratchProject) {
    scratch.eventually("the first step", || !noted(scratch, "steps").is_empty());
}

fn end(scratch: &ScratchProject, task: &str) -> Value {
    let ended = scratch.facts(task, "ended");
    ended.last().unwrap_or_else(|| panic!("{task} is over: {}", scratch.why(task))).clone()
}

/// Files of this name in the folders of runs.
fn in_runs(scratch: &ScratchProject, name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scratch.state().join("attempts")).expect("runs have folders");
    entries.flatten().map(|entry| entry.path().join(name)).filter(|path| path.exists()).collect()
}

#[test]
fn a_loop_of_its_own_is_followed_verified_and_landed() {
    let scratch = scratch("slots = 1");
    let task = scratch.task("Walks", &walks(WORKS), &FLOW);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done");
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "work");
    let strode = scratch.facts(&task, "strode");
    let texts: Vec<&str> = strode.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(strode.len(), 3, "{texts:?}");
    assert!(texts[1].contains("check: PASS → exec #1"), "{texts:?}");
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(!files.contains(".auto") && !files.contains(".status"), "nothing of the talk lands: {files}");
    let prompt = &scratch.prompts(&task)[0];
    assert!(prompt.contains(".landfall/task/.auto-stop") && prompt.contains("`next`"), "{prompt}");
}

#[test]
fn what_a_loop_claims_is_verified_like_anything_else() {
    let scratch = scratch("iterations_max = 4");
    // The check wants a line in the file that nobody writes.
    let script = format!("{}[[write]]\npath = \"work.txt.want\"\ntext = \"more\\n\"\n", walks(WORKS));
    let task = scratch.task("Claims", &script, &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(end(&scratch, &task)["text"].as_str().map(|it| it.contains("iterations")), Some(true));
    assert_eq!(scratch.facts(&task, "landed"), Vec::<Value>::new());
    assert!(scratch.prompts(&task)[1].contains("more is missing"), "the second loop is told");
}

// Behaviour 8.

#[test]
fn edge_02_twenty_iterations_are_twenty_finished_steps() {
    let scratch = scratch("iterations_max = 3");
    let task = scratch.task("Endless", &walks(ENDLESS), &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status(&task), "failed", "{}", scratch.why(&task));
    assert!(scratch.why(&task).contains("all 3 iterations"), "{}", scratch.why(&task));
    assert_eq!(reason(&scratch), "max_iterations");
    let steps = noted(&scratch, "steps");
    assert_eq!(steps.last().map(String::as_str), Some("left"), "it left by itself: {steps:?}");
    // The step under way when the stop was written is finished, and no other is begun.
    assert!((3..=4).contains(&(steps.len() - 1)), "{steps:?}");
    assert_eq!(scratch.facts(&task, "iteration-ended").len(), 1);
}

#[test]
fn behaviour_08_self_the_wall_clock_stops_a_loop_between_two_steps() {
    let scratch = scratch("task_limit = \"3s\"");
    let task = scratch.task("Endless", &walks(ENDLESS), &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status(&task), "timeout", "{}", scratch.why(&task));
    assert!(scratch.why(&task).contains("working time"), "{}", scratch.why(&task));
    assert_eq!(reason(&scratch), "timeout");
    assert_eq!(noted(&scratch, "steps").last().map(String::as_str), Some("left"));
}

#[test]
fn edge_01_a_step_that_hangs_is_ended_by_the_timer() {
    let scratch = scratch("task_limit = \"2s\"\nstep_grace = \"1s\"\ngrace = \"1s\"");
    let task = scratch.task("Hangs", &walks("signal plan '(generated)' check 0; sleep 300"), &FLOW);
    scratch.landfall(&["run"]); // it would wait for the whole hang otherwise, and no command may take that long
    assert_eq!(scratch.status(&task), "timeout", "{}", scratch.why(&task));
    let asked = in_runs(&scratch, "auto-stop.json");
    let text = std::fs::read_to_string(&asked[0]).expect("it was asked first");
    assert!(text.contains("\"timeout\""), "{text}");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_loop_that_does_not_heed_its_limit_is_ended_for_that_limit() {
    let scratch = scratch("iterations_max = 2\nstep_grace = \"1s\"\ngrace = \"1s\"");
    let deaf = "n=0\nwhile true; do said exec '(done)' check $n; n=$((n + 1)); done";
    let task = scratch.task("Deaf", &walks(deaf), &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status(&task), "failed", "{}", scratch.why(&task));
    assert!(scratch.why(&task).contains("all 2 iterations"), "{}", scratch.why(&task));
}

// Behaviour 9.

#[test]
fn behaviour_09_self_a_loop_that_falls_silent_again_and_again_ends_at_the_stall_limit() {
    let settings =
        "silence = \"1s\"\nfirst_output = \"1s\"\nheartbeat = \"1s\"\nstalls_step_max = 1\ngrace = \"1s\"";
    let scratch = scratch(settings);
    let task = scratch.task("Silent", &walks("exec sleep 300"), &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status(&task), "failed", "{}", scratch.why(&task));
    assert!(scratch.why(&task).contains("silent 2 times"), "{}", scratch.why(&task));
    let asked = in_runs(&scratch, "auto-stop.json");
    assert_eq!(asked.len(), 1, "only the last time is for good");
    assert!(std::fs::read_to_string(&asked[0]).expect("a file").contains("stall_limit"));
}

// Behaviours 13 and 14.

#[test]
fn a_loop_that_is_killed_goes_on_where_it_was_and_the_fourth_time_fails() {
    let scratch = scratch("slots = 1");
    let dies = "echo '{\"status\":\"executing\",\"completed_steps\":1}' > $M/.status.json\nstep run\n\
                said check PASS exec $(wc -l < \"$OUT/steps\"); kill -9 $PPID";
    let task = scratch.task("Dies", &walks(dies), &FLOW);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status(&task), "failed", "{}", scratch.why(&task));
    assert_eq!(noted(&scratch, "steps").len(), 4, "three restarts");
    let prompts = scratch.prompts(&task);
    assert!(!prompts[0].contains("Continue with"), "{}", prompts[0]);
    assert!(prompts[1].contains("Continue with `exec`"), "{}", prompts[1]);
    assert_eq!(scratch.facts(&task, "strode").len(), 4);
}

#[test]
fn behaviour_14_self_a_loop_goes_on_while_the_engine_is_gone_and_no_step_counts_twice() {
    let scratch = scratch("slots = 1");
    let shell = format!(
        "step up\nsignal plan '(generated)' check 0\nuntil [ -e \"$OUT/go\" ]; do sleep 0.02; done\n{}",
        r#"
said check PASS exec 1
echo '{"status":"complete"}' > $M/.status.json
signal report "(done)" "(stop)" 2
"#
    );
    let task = scratch.task("Survives", &walks(&shell), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    scratch.eventually("the step is a fact", || scratch.facts(&task, "strode").len() == 1);
    run.kill();
    let mut again = scratch.start(&["run"]);
    scratch.eventually("it is adopted", || doing(&scratch) == "working");
    std::fs::write(open_folder(&scratch).join("go"), "").expect("a file");
    assert_eq!(again.wait(Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status(&task), "done");
    assert_eq!(noted(&scratch, "steps"), ["up"], "one run of the agent");
    assert_eq!(scratch.facts(&task, "strode").len(), 3);
}

// Behaviour 15.

#[test]
fn behaviour_15_self_signals_that_are_wrong_are_told_and_change_nothing() {
    let scratch = scratch("slots = 1");
    let wrong = r#"
say() { printf '%s' "$1" > $M/.auto-signal; looked; }
say '{"step":"dance","result":"PASS","next":"exec","timestamp":"2026-01-31T12:00:00Z"}'
say '{"step":"check","result":"FINE","next":"exec","timestamp":"2026-01-31T12:00:00Z"}'
say '{"step":"check","result":"PASS","next":"exec","iteration":-1,"timestamp":"2026-01-31T12:00:00Z"}'
say '{"step":"check","result":"PASS","next":"exec","timestamp":"yesterday"}'
say '["a list"]'
"#;
    let task = scratch.task("Wrong", &walks(&format!("{wrong}{WORKS}")), &FLOW);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done");
    assert_eq!(scratch.facts(&task, "strode").len(), 3, "only what was right");
    let warned: Vec<String> = scratch
        .facts(&task, "warned")
        .iter()
        .filter_map(|it| it["text"].as_str().map(str::to_owned))
        .collect();
    for code in [
        "FILE_UNKNOWN_STEP",
        "FILE_UNKNOWN_RESULT",
        "FILE_INVALID_ITERATION",
        "FILE_INVALID_TIMESTAMP",
        "FILE_NOT_AN_OBJECT",
    ] {
        assert_eq!(warned.iter().filter(|text| text.contains(code)).count(), 1, "{code}: {warned:?}");
    }
}

// Behaviour 16.

#[test]
fn behaviour_16_self_edge_03_a_stop_shows_as_stopping_until_the_process_has_ended() {
    let scratch = scratch("slots = 1");
    let shell = "until stopped; do step one; sleep 0.02; done\nuntil [ -e \"$OUT/go\" ]; do sleep 0.02; done\nstep finished";
    let task = scratch.task("Stops", &walks(shell), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    scratch.landfall(&["stop", &task]).ok();
    scratch.eventually("the agent sees it", || !noted(&scratch, "stop").is_empty());
    assert_eq!(reason(&scratch), "user_stop");
    assert_eq!(doing(&scratch), "stopping");
    // Nothing begins beside it.
    assert_ne!(scratch.landfall(&["retry", &task]).code, Some(0));
    assert_eq!(scratch.facts(&task, "iteration-began").len(), 1);
    std::fs::write(open_folder(&scratch).join("go"), "").expect("a file");
    scratch.eventually("it is stopped", || scratch.wait_of(&task) == "pause");
    assert_eq!(
        noted(&scratch, "steps").last().map(String::as_str),
        Some("finished"),
        "the step was finished"
    );
    assert!(!scratch.workspace(&task).join(".landfall/task/.auto-stop").exists(), "nothing stays behind");
    run.wait(Duration::from_secs(30)); // whatever it says of a task that waits for a person
}

#[test]
fn who_cancels_does_not_wait_for_the_step() {
    let scratch = scratch("grace = \"1s\"");
    let task = scratch.task("Cancelled", &walks("step up\nsleep 300"), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    scratch.landfall(&["cancel", &task]).ok();
    scratch.eventually("it is over", || scratch.status(&task) == "cancelled");
    run.wait(Duration::from_secs(30)); // the code says that one was cancelled
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn edge_04_a_persons_stop_outlives_the_engine() {
    let scratch = scratch("slots = 1");
    let task = scratch.task("Stops", &walks(ENDLESS), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    run.kill();
    scratch.landfall(&["stop", &task]).ok();
    scratch.landfall(&["run"]);
    assert_eq!(scratch.wait_of(&task), "pause", "{}", scratch.why(&task));
    assert_eq!(reason(&scratch), "user_stop");
    assert_eq!(scratch.facts(&task, "iteration-began").len(), 1, "it was not started again");
    assert_eq!(noted(&scratch, "steps").iter().filter(|step| *step == "left").count(), 1);
}

#[test]
fn edge_04_a_stale_stop_file_does_not_end_the_next_loop() {
    let scratch = scratch("slots = 1");
    // The first loop leaves a stop file and dies; the second would end at once if it found it.
    let script = format!(
        "[[iteration]]\n{}[[iteration]]\n{}[[iteration.write]]\npath = \"work.txt\"\ntext = \"work\\n\"\n",
        run_in_shell(
            "echo '{\"reason\":\"timeout\",\"timestamp\":\"2026-01-31T12:00:00Z\"}' > $M/.auto-stop\nkill -9 $PPID"
        ),
        run_in_shell(&format!("if stopped; then exit 0; fi\n{WORKS}")),
    );
    let task = scratch.task("Stale", &script, &FLOW);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done");
    assert_eq!(noted(&scratch, "stop"), Vec::<String>::new());
    assert_eq!(scratch.facts(&task, "iteration-began").len(), 2);
}

#[test]
fn edge_07_words_about_a_quota_in_files_and_output_are_no_wait() {
    let scratch = scratch("slots = 1");
    let shell = format!(
        "echo 'rate limit: quota exceeded, try again later'; echo 'usage limit' > notes.txt\n{WORKS}"
    );
    let task = scratch.task("Talks", &walks(&shell), &FLOW);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done");
    assert_eq!(scratch.facts(&task, "waited"), Vec::<Value>::new());
}

#[test]
fn behaviour_11_self_edge_08_every_wait_for_an_account_is_left_out_of_the_working_time() {
    let scratch = scratch("task_limit = \"6s\"");
    let script = format!(
        "[[iteration]]\nmisbehave = \"quota\"\nuntil = \"3s\"\n[[iteration]]\nmisbehave = \"quota\"\nuntil = \"3s\"\n\
         [[iteration]]\n{}[[iteration.write]]\npath = \"work.txt\"\ntext = \"work\\n\"\n",
        run_in_shell(WORKS)
    );
    let task = scratch.task("Waits", &script, &FLOW);
    let began = Instant::now();
    scratch.landfall(&["run"]).ok();
    assert!(began.elapsed() > Duration::from_secs(6), "it waited longer than it may work");
    assert_eq!(scratch.status(&task), "done", "{}", scratch.why(&task));
    assert_eq!(scratch.facts(&task, "waited").len(), 2);
}

#[test]
fn edge_09_time_without_engine_and_agent_is_no_working_time() {
    let scratch = scratch("task_limit = \"6s\"");
    let shell = format!("step up\nif [ $(wc -l < \"$OUT/steps\") = 1 ]; then sleep 300; fi\n{WORKS}");
    let task = scratch.task("Outage", &walks(&shell), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    run.kill();
    for process in landfall_testkit::left_behind(scratch.root()) {
        let _ = std::process::Command::new("kill").args(["-9", &process.pid.to_string()]).status(); // gone with another
    }
    let outage = Instant::now();
    scratch.eventually("an outage longer than it may work", || outage.elapsed() > Duration::from_secs(7));
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done", "{}", scratch.why(&task));
}

#[test]
fn edge_10_half_a_signal_is_waited_for_and_a_missed_one_is_counted() {
    let scratch = scratch("iterations_max = 20");
    let shell = r#"
printf '{"step":"plan","result":"(gener' > $M/.auto-signal; looked
printf '{"step":"plan","result":"(generated)","next":"check","iteration":0,"timestamp":"2026-01-31T12:00:00Z"}' > $M/.auto-signal
looked
signal check PASS exec 1; signal exec "(done)" check 2; said check NEEDS_FIX exec 3
cp $M/.auto-signal again && mv again $M/.auto-signal; looked
echo '{"status":"complete"}' > $M/.status.json
signal report "(done)" "(stop)" 4
"#;
    let task = scratch.task("Hasty", &walks(shell), &FLOW);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status(&task), "done");
    let detail = scratch.detail(&task);
    let counters = detail["counters"].as_array().cloned().unwrap_or_default();
    let steps = counters.iter().find(|it| it["name"] == "steps of its own loop");
    assert_eq!(steps.map(|it| it["used"].clone()), Some(5.into()), "{counters:?}");
    assert_eq!(scratch.facts(&task, "warned"), Vec::<Value>::new(), "half a file is no mistake");
}

#[test]
fn edge_12_a_stopped_loop_keeps_its_history() {
    let scratch = scratch("slots = 1");
    let task = scratch.task("Stops", &walks(ENDLESS), &FLOW);
    let mut run = scratch.start(&["run"]);
    agent_is_up(&scratch);
    scratch.eventually("a step is a fact", || !scratch.facts(&task, "strode").is_empty());
    scratch.landfall(&["stop", &task]).ok();
    scratch.eventually("it is stopped", || scratch.wait_of(&task) == "pause");
    run.wait(Duration::from_secs(30)); // whatever it says of a task that waits for a person
    scratch.landfall(&["cancel", &task]).ok();
    let detail = scratch.detail(&task);
    assert_eq!(detail["attempts"][0]["runs"].as_array().map(Vec::len), Some(1), "{detail}");
    assert!(!scratch.facts(&task, "strode").is_empty());
    assert_eq!(scratch.facts(&task, "stop-asked").len(), 1);
}

#[test]
fn edge_22_a_loop_is_told_to_continue_only_from_the_state_it_left() {
    // A loop that ends without a word after its first run; the second run is done.
    let script = format!(
        "[[iteration]]\n{}[[iteration]]\n{}[[iteration.write]]\npath = \"work.txt\"\ntext = \"work\\n\"\n",
        run_in_shell(
            "echo '{\"status\":\"review\",\"updated\":\"now\"}' > $M/.status.json; said check PASS exec 0"
        ),
        run_in_shell(WORKS),
    );
    let left = scratch("slots = 1");
    let task = left.task("Left alone", &script, &FLOW);
    left.landfall(&["run"]).ok();
    assert!(left.prompts(&task)[1].contains("Continue with `exec`"), "{}", left.prompts(&task)[1]);

    // Within the same second somebody else sends it back to its plan.
    let changed = scratch("slots = 1");
    changed.more_settings(
        "[workspace]\nafter_run = '''printf '{\"status\":\"re-planning\",\"updated\":\"now\"}' > .landfall/task/.status.json'''",
    );
    let task = changed.task("Sent back", &script, &FLOW);
    changed.landfall(&["run"]).ok();
    let prompt = &changed.prompts(&task)[1];
    assert!(!prompt.contains("Continue with"), "{prompt}");
    assert!(prompt.contains("Somebody changed"), "{prompt}");
}
