//! Every misbehaviour of the scripted agent, from outside: the right status for the right reason, no process left
//! behind, no byte of work lost, and `main` untouched unless the work was proved.

use std::time::{Duration, Instant};

use landfall_testkit::{CommandOutput, ScratchProject};
use serde_json::Value;

use crate::LANDFALL;
use crate::sandbox::off;
use crate::styles::{Style, in_styles};

/// A script that does a piece of work besides what `keys` say.
fn work(keys: &str) -> String {
    format!("{keys}\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n")
}

/// What a story comes to.
struct End {
    code: i32,
    status: &'static str,
    why: &'static [&'static str],
}

const LANDED: End = End { code: 0, status: "done", why: &["it landed as"] };

/// Plays a script to the end of a run and looks at all that must hold whatever the agent did.
#[track_caller]
fn play(settings: &str, script: &str, end: &End) -> ScratchProject {
    play_in(Style::Fresh, settings, script, end)
}

/// The same with an agent that is driven in this style.
#[track_caller]
fn play_in(style: Style, settings: &str, script: &str, end: &End) -> ScratchProject {
    let scratch = style.scratch();
    if !settings.is_empty() {
        scratch.more_settings(settings);
    }
    scratch.task("Story", &style.script(script), &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    settled(&scratch, &before, &run, end);
    scratch
}

#[track_caller]
fn settled(scratch: &ScratchProject, before: &str, run: &CommandOutput, end: &End) {
    let why = scratch.why("T1");
    assert_eq!(scratch.status("T1"), end.status, "{why}\n{}\n{}", run.out, run.err);
    assert_eq!(run.code, Some(end.code), "{why}\n{}\n{}", run.out, run.err);
    for word in end.why {
        assert!(why.contains(word), "`{word}` is not in: {why}");
    }
    assert_eq!(scratch.left_behind(), []);
    let main = scratch.git(&["rev-parse", "main"]);
    if end.status == "done" {
        let certificate = scratch.landfall(&["certificate", "T1"]).json();
        assert_eq!(main, certificate["landing"]["commit"], "main is what was proved");
        let tree = scratch.git(&["rev-parse", "main^{tree}"]);
        assert_eq!(tree, certificate["verification"]["tree"], "and the proof is of its tree");
    } else {
        assert_eq!(main, before, "main is untouched");
    }
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    printable(&run.out);
    printable(&run.err);
    for args in [&["show", "T1"][..], &["log"], &["why", "T1"], &["list"], &["status"], &["--json", "log"]] {
        let said = scratch.landfall(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        printable(&said.out);
        printable(&said.err);
    }
}

/// Whatever an agent wrote, a terminal must not obey it.
#[track_caller]
fn printable(text: &str) {
    let raw = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}')
    };
    assert_eq!(text.chars().find(|c| raw(*c)), None, "{text:?}");
}

/// The work of [`work`] is somewhere a person can get it from.
#[track_caller]
fn nothing_lost(scratch: &ScratchProject) {
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new(), "the work is kept");
}

fn warnings(scratch: &ScratchProject) -> Vec<String> {
    let detail = scratch.detail("T1");
    let list = detail["warnings"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn ok_lands() {
    let scratch = play("", &work("misbehave = \"ok\"\nsignal = \"complete\""), &LANDED);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
}

#[test]
fn fail_is_started_again_three_times_with_a_growing_pause_and_then_given_up() {
    let end = End { code: 8, status: "failed", why: &["agent_crashed", "exit code 1", "4 times in a row"] };
    let scratch = play("", &work("misbehave = \"fail\""), &end);
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 4, "once, and three times again");
    let at = |it: &Value| it["at_ms"].as_i64().expect("a moment");
    let waits: Vec<i64> = scratch.facts("T1", "waited").iter().map(at).collect();
    let resumed: Vec<i64> = scratch.facts("T1", "resumed").iter().map(at).collect();
    let pauses: Vec<i64> = waits.iter().zip(&resumed).map(|(from, to)| to - from).collect();
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]), "each is longer: {pauses:?}");
    assert_eq!(scratch.detail("T1")["iterations"], 0, "a crash is no iteration");
}

fn behaviour_09_hang_is_ended_for_silence_and_given_up_after_the_fourth(style: Style) {
    let end = End { code: 8, status: "failed", why: &["stall_limit", "fell silent 4 times"] };
    let scratch = play_in(style, "[run]\nsilence = \"300ms\"", &work("misbehave = \"hang\""), &end);
    nothing_lost(&scratch);
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_09_hang_is_ended_for_silence_and_given_up_after_the_fourth: fresh, session);

#[test]
fn edge_01_hang_is_ended_when_the_task_has_used_its_time() {
    let end = End { code: 8, status: "timeout", why: &["task_limit", "working time"] };
    let scratch = play("[run]\ntask_limit = \"500ms\"", &work("misbehave = \"hang\""), &end);
    nothing_lost(&scratch);
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 1);
}

fn behaviour_10_silent_work_that_uses_the_cpu_is_not_taken_for_a_stall(style: Style) {
    let busy = r#"run = ["sh", "-c", "end=$(($(date +%s%N) / 1000000 + 1200)); while [ $(($(date +%s%N) / 1000000)) -lt $end ]; do :; done"]"#;
    let script = work(&format!("{busy}\nsignal = \"complete\""));
    play_in(style, "[run]\nsilence = \"400ms\"", &script, &LANDED);
}
in_styles!(behaviour_10_silent_work_that_uses_the_cpu_is_not_taken_for_a_stall: fresh, session);

#[test]
fn flood_is_cut_with_a_mark_while_the_memory_stays_small_and_the_work_lands() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\noutput_cap = \"1MiB\"");
    scratch.task("Story", &work("misbehave = \"flood\"\nbytes = \"100MB\"\nsignal = \"complete\""), &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    let mut run = scratch.start(&["run"]);
    let mut peak_kib = 0;
    while !run.is_over() {
        peak_kib = run.memory_peak_kib().unwrap_or(0).max(peak_kib);
        std::thread::sleep(Duration::from_millis(5));
    }
    let code = run.wait(Duration::from_secs(1));
    settled(&scratch, &before, &CommandOutput { code, out: scratch.heard(), err: String::new() }, &LANDED);
    assert!((1..64 << 10).contains(&peak_kib), "the engine needed {peak_kib} KiB");
    let records = std::fs::read_dir(scratch.state().join("attempts")).expect("there are records");
    let spool =
        records.flatten().map(|it| it.path().join("out.log")).find(|it| it.to_string_lossy().contains("-i1"));
    let spool = std::fs::read(spool.expect("the agent wrote")).expect("readable");
    assert!(spool.len() < 3 << 19, "{} bytes are kept", spool.len());
    let text = String::from_utf8_lossy(&spool);
    let mark = text.lines().find(|line| line.contains("landfall") && line.contains("left out"));
    assert!(mark.is_some(), "a mark says what is left out");
}

#[test]
fn an_agent_that_keeps_its_sitter_stopped_is_ended_all_the_same() {
    let end = End { code: 8, status: "timeout", why: &["task_limit"] };
    let stop = "run = [\"sh\", \"-c\", \"while :; do kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); done\"]";
    let scratch =
        play("[run]\nsandbox = \"off\"\ntask_limit = \"500ms\"\ngrace = \"200ms\"", &work(stop), &end);
    nothing_lost(&scratch);
}

#[test]
fn a_check_that_kills_its_sitter_leaves_nothing_behind() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\n[[verify.command]]\nname = \"tests\"\nrun = \"kill -9 $PPID; sleep 60\"\n",
    );
    off(&scratch);
    scratch.task("Story", &work("signal = \"complete\""), &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    assert_ne!(scratch.landfall(&["run"]).code, Some(0));
    assert_eq!(scratch.left_behind(), []);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "main is untouched");
}

#[test]
fn fork_bomb_is_ended_to_the_last_process() {
    let end = End { code: 8, status: "timeout", why: &["task_limit"] };
    let script = work("misbehave = \"fork-bomb\"\ncount = 20\nfor = \"60s\"");
    let scratch = play("[run]\ntask_limit = \"1s\"\ngrace = \"200ms\"", &script, &end);
    nothing_lost(&scratch);
}

#[test]
fn ignore_term_is_killed_after_the_grace() {
    let end = End { code: 8, status: "timeout", why: &["task_limit"] };
    let script = work("misbehave = \"ignore-term\"");
    let scratch = play("[run]\ntask_limit = \"500ms\"\ngrace = \"200ms\"", &script, &end);
    nothing_lost(&scratch);
}

#[test]
fn setsid_does_not_outlive_its_agent() {
    let script = work("misbehave = \"setsid\"\ntarget = \"here.log\"\nfor = \"60s\"\nsignal = \"complete\"");
    let began = Instant::now();
    play("", &script, &LANDED);
    assert!(began.elapsed() < Duration::from_secs(30), "nobody waited for it");
}

#[test]
fn orphan_that_holds_the_output_open_delays_nothing() {
    let began = Instant::now();
    play("", &work("misbehave = \"orphan\"\nfor = \"60s\"\nsignal = \"complete\""), &LANDED);
    assert!(began.elapsed() < Duration::from_secs(30), "nobody waited for it");
}

fn behaviour_13_crash_is_started_again_and_then_given_up(style: Style) {
    let end = End { code: 8, status: "failed", why: &["agent_crashed", "signal 6", "2 times in a row"] };
    let scratch = play_in(style, "[run]\nrestarts_max = 1", &work("misbehave = \"crash\""), &end);
    nothing_lost(&scratch);
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_13_crash_is_started_again_and_then_given_up: fresh, session);

#[test]
fn a_crash_that_is_got_over_lands_and_keeps_the_work_from_before_it() {
    let script = r#"
[[iteration]]
misbehave = "crash"
[[iteration.write]]
path = "b.txt"
text = "work\n"
[[iteration]]
signal = "complete"
"#;
    let scratch = play("", script, &LANDED);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "work", "the same workspace goes on");
}

#[test]
fn lie_is_found_out_and_the_agent_hears_the_output() {
    let script = r#"
[[iteration]]
misbehave = "lie"
say = "All tests pass."
[[iteration.write]]
path = "b.txt"
text = "wrong\n"
[[iteration.write]]
path = "b.txt.want"
text = "right\n"
[[iteration]]
signal = "complete"
[[iteration.write]]
path = "b.txt"
text = "right\n"
"#;
    let scratch = play("", script, &LANDED);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "right");
    let prompts = scratch.prompts("T1");
    assert_eq!(prompts.len(), 2);
    assert!(!prompts[0].contains("FAIL b.txt"), "{}", prompts[0]);
    assert!(prompts[1].contains("FAIL b.txt: right is missing"), "{}", prompts[1]);
    assert!(prompts[1].contains("exit code 1"), "{}", prompts[1]);
}

#[test]
fn a_lie_told_for_ever_never_lands() {
    let end = End {
        code: 8,
        status: "failed",
        why: &["out of iterations", "its checks are still red", "all 3 iterations"],
    };
    let script = work("misbehave = \"lie\"\n[[write]]\npath = \"b.txt.want\"\ntext = \"right\\n\"");
    let scratch = play("[run]\niterations_max = 3", &script, &end);
    nothing_lost(&scratch);
    assert_eq!(scratch.detail("T1")["gate"]["outcome"], "fail");
}

const TESTS: &str = "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n\n#[test]\nfn doubles() {\n    assert_eq!(2 * 2, 4);\n}\n";

/// A project with a test file, and an agent that weakens it.
fn weakened(how: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("tests/sums.rs", TESTS);
    scratch.commit("tests");
    let script = format!(
        "[[iteration]]\nmisbehave = \"weaken-test\"\ntarget = \"tests/sums.rs\"\nhow = \"{how}\"\n\
         [[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n\
         [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"tests/sums.rs\"\ntext = '''\n{TESTS}'''\n"
    );
    scratch.task("Story", &script, &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    let end = End { code: 9, status: "review", why: &["a person must look at it first"] };
    settled(&scratch, &before, &run, &end);
    nothing_lost(&scratch);
    assert_eq!(scratch.landfall(&["certificate", "T1"]).code, Some(6), "it has not landed");
    scratch
}

#[test]
fn weaken_test_by_deleting_it_waits_for_a_person_who_may_let_it_land() {
    let scratch = weakened("delete");
    assert!(scratch.why("T1").contains("deletes a test file: tests/sums.rs"), "{}", scratch.why("T1"));
    scratch.landfall(&["answer", "T1", "approve", "the module is gone"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let review = scratch.landfall(&["certificate", "T1"]).json()["review"].clone();
    assert_eq!(
        review["approved_tree"],
        scratch.git(&["rev-parse", "main^{tree}"]),
        "the certificate says who looked at what"
    );
    assert_eq!(review["note"], "the module is gone");
    assert_eq!(review["concerns"][0]["code"], "test-deleted");
}

#[test]
fn weaken_test_by_skipping_it_is_sent_back_with_the_words_of_the_person() {
    let scratch = weakened("skip");
    assert!(scratch.why("T1").contains("switches a test off: tests/sums.rs"), "{}", scratch.why("T1"));
    scratch.landfall(&["answer", "T1", "changes: keep the test"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains("keep the test"), "{}", prompts[1]);
    assert_eq!(scratch.git(&["show", "main:tests/sums.rs"]), TESTS.trim_end());
}

#[test]
fn weaken_test_by_making_it_trivial_waits_for_a_person() {
    let scratch = weakened("trivial");
    assert!(
        scratch.why("T1").contains("empties tests: tests/sums.rs: works (it cannot fail)"),
        "{}",
        scratch.why("T1")
    );
}

#[test]
fn a_review_that_says_no_without_words_does_not_land_it() {
    let scratch = weakened("delete");
    scratch.landfall(&["answer", "T1", "no"]).ok();
    assert_ne!(scratch.status("T1"), "done");
    assert_eq!(scratch.git(&["show", "main:tests/sums.rs"]), TESTS.trim_end());
}

#[test]
fn a_test_script_that_is_made_to_pass_does_not_land_by_that() {
    for how in ["delete", "skip", "trivial"] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings("[run]\niterations_max = 2\nrestarts_max = 0");
        scratch.file("b.txt.want", "right\n");
        scratch.file("b.txt", "right\n");
        scratch.commit("a test");
        let script = format!(
            "misbehave = \"weaken-test\"\ntarget = \"test.sh\"\nhow = \"{how}\"\n[[write]]\npath = \"b.txt\"\ntext = \"wrong\\n\"\n"
        );
        scratch.task("Story", &script, &[]);
        let before = scratch.git(&["rev-parse", "main"]);
        let run = scratch.landfall(&["run"]);
        let status = scratch.status("T1");
        assert!(
            ["review", "waiting", "timeout", "failed"].contains(&status.as_str()),
            "{how}: {}",
            scratch.why("T1")
        );
        assert_ne!(run.code, Some(0), "{how}");
        assert_eq!(scratch.git(&["rev-parse", "main"]), before, "{how}: {}", scratch.why("T1"));
    }
}

fn behaviour_11_quota_waits_spends_nothing_and_goes_on_by_itself(style: Style) {
    let script = r#"
[[iteration]]
misbehave = "quota"
until = "1s"
[[iteration]]
signal = "complete"
[[iteration.write]]
path = "b.txt"
text = "work\n"
"#;
    let scratch = play_in(style, "[run]\nrestarts_max = 0\niterations_max = 1", script, &LANDED);
    let waits = scratch.facts("T1", "waited");
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert!(waits[0]["text"].as_str().is_some_and(|text| text.contains("account")), "{waits:?}");
    let resumed = scratch.facts("T1", "resumed");
    let waited =
        resumed[0]["at_ms"].as_i64().expect("a moment") - waits[0]["at_ms"].as_i64().expect("a moment");
    assert!((500..10_000).contains(&waited), "it waited {waited} ms");
    assert_eq!(scratch.detail("T1")["iterations"], 1, "the wait is no iteration");
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_11_quota_waits_spends_nothing_and_goes_on_by_itself: fresh, session);

#[test]
fn quota_frees_the_slot_for_another_task() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\n[agent.other]\nkind = \"script\"\naccount = \"another\"\n",
    );
    scratch.task("Waits", "[[iteration]]\nmisbehave = \"quota\"\nuntil = \"1500ms\"\n[[iteration]]\nsignal = \"blocked:enough\"", &["--agent", "other"]);
    scratch.task("Works", &work("signal = \"complete\""), &[]);
    scratch.landfall(&["run", "--slots", "1"]);
    let landed = &scratch.facts("T2", "landed")[0]["at_ms"];
    let resumed = &scratch.facts("T1", "resumed")[0]["at_ms"];
    assert!(landed.as_i64() < resumed.as_i64(), "T2 landed at {landed}, T1 went on at {resumed}");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn transient_trouble_is_tried_again_after_a_pause() {
    let script = r#"
[[iteration]]
misbehave = "transient"
detail = "overloaded"
[[iteration]]
signal = "complete"
[[iteration.write]]
path = "b.txt"
text = "work\n"
"#;
    let scratch = play("[run]\nrestarts_max = 0\niterations_max = 1", script, &LANDED);
    let waits = scratch.facts("T1", "waited");
    assert!(waits[0]["text"].as_str().is_some_and(|text| text.contains("overloaded")), "{waits:?}");
}

#[test]
fn c17_prompt_gets_the_end_of_its_input_instead_of_an_answer() {
    let end = End { code: 8, status: "failed", why: &["agent_crashed", "exit code 1"] };
    let scratch = play("[run]\nrestarts_max = 0", &work("misbehave = \"prompt\""), &end);
    nothing_lost(&scratch);
}

#[test]
fn garbage_is_kept_apart_from_every_terminal() {
    play("", &work("misbehave = \"garbage\"\nsignal = \"complete\""), &LANDED);
}

#[test]
fn garbage_in_what_it_says_and_asks_is_made_harmless() {
    let end = End { code: 9, status: "waiting", why: &["waits for your answer"] };
    let script =
        work("say = \"\\u001b[2Jboo\\u0007\"\nsignal = \"pending:red \\u001b[31m or \\u202E blue\\u0007?\"");
    play("", &script, &end);
    let end = End { code: 8, status: "blocked", why: &["is blocked"] };
    play("", &work("signal = \"blocked:\\u001b]0;title\\u0007 cannot\""), &end);
}

#[test]
fn huge_line_lands() {
    play(
        "[run]\noutput_cap = \"1MiB\"",
        &work("misbehave = \"huge-line\"\nbytes = \"20MB\"\nsignal = \"complete\""),
        &LANDED,
    );
}

#[test]
fn slow_drip_is_no_silence() {
    let script = work("misbehave = \"slow-drip\"\nfor = \"1s\"\nsignal = \"complete\"");
    play("[run]\nsilence = \"400ms\"", &script, &LANDED);
}

#[test]
fn no_op_is_run_again_until_its_iterations_are_used_with_a_warning_at_five() {
    let end = End {
        code: 8,
        status: "failed",
        why: &["out of iterations", "committed nothing", "all 6 iterations"],
    };
    let scratch = play("[run]\niterations_max = 6", &work("misbehave = \"no-op\""), &end);
    let told = warnings(&scratch);
    assert!(told.iter().any(|it| it == "5 iterations in a row left no commit"), "{told:?}");
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 6);
}

#[test]
fn forget_commit_is_made_good_by_the_engine_and_said() {
    let scratch = play("", &work("misbehave = \"forget-commit\""), &LANDED);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
    let told = warnings(&scratch);
    assert!(told.iter().any(|it| it.contains("left uncommitted")), "{told:?}");
    let certificate = scratch.landfall(&["certificate", "T1"]).out;
    assert!(certificate.contains("left uncommitted"), "{certificate}");
}

#[test]
fn forget_commit_without_help_is_told_that_nothing_changed() {
    let end = End { code: 8, status: "blocked", why: &["nothing_changed", "twice"] };
    let scratch = play("[land]\ncommit_leftovers = false", &work("misbehave = \"forget-commit\""), &end);
    nothing_lost(&scratch);
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains("nothing changed"), "{}", prompts[1]);
}

#[test]
fn a_script_that_cannot_be_read_is_refused_before_the_agent_starts() {
    let end = End { code: 8, status: "failed", why: &["agent_not_started", "did you mean `fail`?"] };
    let scratch = play("", "misbehave = \"fial\"", &end);
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 1, "it is not tried again");
}

// Agents that are not the scripted one, and what they are told.

/// A project whose agent is any program: this shell script.
fn any_program(profile: &str, script: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    let program = scratch.root().join("agent.sh");
    std::fs::write(&program, script).expect("ours");
    let settings = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("readable");
    let run = format!("kind = \"command\"\nrun = 'sh {} {profile}'", program.display());
    let env = "model = \"large\"\nflags = [\"--last one\"]\nenv = { MY_AGENT_QUIET = \"1\" }";
    scratch.settings(&settings.replace("kind = \"script\"", &format!("{run}\n{env}")));
    scratch
}

#[test]
fn any_program_gets_the_prompt_on_stdin_in_its_workspace_without_a_shell() {
    let scratch = any_program(
        "{model} {workspace} {prompt_file} $HOME",
        "cat > prompt.txt; cmp -s prompt.txt \"$3\" && echo same > told.txt\n\
         echo \"$1 $2 $4 $5 $MY_AGENT_QUIET\" >> told.txt; pwd >> told.txt\n\
         echo '<landfall>COMPLETE</landfall>'\n",
    );
    scratch
        .landfall(&["add", "Any program", "--body", "Say what you were told.", "--criterion", "it is said"])
        .ok();
    scratch.landfall(&["run"]).ok();
    let workspace = scratch.workspace("T1").display().to_string();
    let told = scratch.git(&["show", "main:told.txt"]);
    assert_eq!(told, format!("same\nlarge {workspace} $HOME --last one 1\n{workspace}"));
    let prompt = scratch.git(&["show", "main:prompt.txt"]);
    for word in ["Any program", "Say what you were told.", "it is said", "sh test.sh", "landfall/t1"] {
        assert!(prompt.contains(word), "`{word}` is not in: {prompt}");
    }
}

#[test]
fn what_any_program_says_on_stderr_is_no_signal() {
    let scratch = any_program("", "echo '<landfall>COMPLETE</landfall>' >&2; echo work > b.txt\n");
    scratch.more_settings("[run]\niterations_max = 2");
    scratch.landfall(&["add", "Mutters"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T1"), "failed");
}

#[test]
fn a_prompt_of_the_project_takes_the_place_of_ours() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".landfall/prompts/work.md", "Our own words for {{ task }}: {{ title }}\n");
    scratch.commit("a prompt");
    scratch.task("Story", &work("signal = \"complete\""), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.prompts("T1")[0].trim(), "Our own words for T1: Story");
}

#[test]
fn a_flow_of_the_project_with_a_question_of_its_own_is_followed() {
    let scratch = ScratchProject::new(LANDFALL);
    let flow = "[flow]\nabout = \"Ask first.\"\nentry = \"ask\"\n\
                [step.ask]\nkind = \"ask\"\nquestion = \"Really?\"\non.answered = \"work\"\n\
                [step.work]\nkind = \"agent\"\nprompt = \"work\"\niterate = true\non.done = \"verify\"\non.blocked = \"stop\"\n\
                [step.verify]\nkind = \"verify\"\non.pass = \"land\"\non.fail = \"stop\"\non.conflict = \"stop\"\n\
                [step.land]\nkind = \"land\"\non.landed = \"end\"\non.conflict = \"stop\"\non.red = \"stop\"\n";
    scratch.file(".landfall/flows/careful.toml", flow);
    scratch.commit("a flow");
    scratch.task("Story", &work("signal = \"complete\""), &["--flow", "careful"]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    assert!(scratch.why("T1").contains("Really?"), "{}", scratch.why("T1"));
    assert_eq!(scratch.prompts("T1").len(), 0);
    scratch.landfall(&["answer", "T1", "yes, really"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert!(scratch.prompts("T1")[0].contains("yes, really"), "{}", scratch.prompts("T1")[0]);
}

#[test]
fn a_flow_with_a_step_that_is_not_performed_yet_says_so() {
    let scratch = ScratchProject::new(LANDFALL);
    let flow = "[step.split]\nkind = \"split\"\non.done = \"work\"\n[step.work]\nkind = \"agent\"\nprompt = \"work\"\non.done = \"end\"\n";
    scratch.file(".landfall/flows/parts.toml", flow);
    scratch.commit("a flow");
    scratch.task("Story", &work("signal = \"complete\""), &["--flow", "parts"]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert!(scratch.why("T1").contains("unsupported_step"), "{}", scratch.why("T1"));
    assert_eq!(scratch.prompts("T1").len(), 0, "nothing was begun");
}
