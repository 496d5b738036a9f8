//! Behaviours of agents with a loop of their own, in the styles `self` and `dispatch`: a play is walked through step by
//! step, and after each a signal says what it came to. In `self` the scripted agent runs the whole walk by itself; in
//! `dispatch` an interactive program in a terminal takes each step when it is told to. Skipped, with a line that says so,
//! where a terminal is wanted and tmux is not installed.

use std::time::Duration;

use landfall_testkit::{ScratchProject, has_tmux};
use serde_json::Value;

use crate::LANDFALL;
use crate::own_loop::LOOKED;
use crate::sandbox::{open, open_folder};
use crate::serve::Served;
use crate::styles::{Told, in_styles};

/// Who takes the next step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walker {
    /// The agent by itself.
    Own,
    /// The engine, by typing it.
    Dispatch,
}

impl Told for Walker {
    fn of(word: &str) -> Self {
        match word {
            "own" => Self::Own,
            "dispatch" => Self::Dispatch,
            other => panic!("`{other}` is no style of a walk"),
        }
    }
}

/// Takes the step of the play that comes next: what it does, that it is done, and its signal. A step that was cut short is
/// taken again. `$OUT` is a folder that the test can look into.
const STEP: &str = r#"
M=@MODULE@
OUT="$HOME/open"
status() {
  if [ -e $M/.index.json ]; then sed -i "s/\"status\":\"[a-z-]*\"/\"status\":\"$1\"/" $M/.index.json; return; fi
  printf '{"status":"%s"}' "$1" > $M/.status.json
}
work() {
  echo "$1" > work.txt; git add work.txt
  git -c user.name=W -c user.email=w@example.invalid commit --quiet --message "$1"
}
walk() {
  at=$(( $(cat "$OUT/at" 2>/dev/null || echo 0) + 1 ))
  line=$(sed -n "${at}p" "$OUT/play")
  [ -n "$line" ] || return 1
  step=${line%%|*}; rest=${line#*|}; result=${rest%%|*}; rest=${rest#*|}; next=${rest%%|*}; does=${rest#*|}
  echo "$step" >> "$OUT/begun"
  eval "$does"
  echo $at > "$OUT/at"
  echo "$step" >> "$OUT/steps"
  printf '{"step":"%s","result":"%s","next":"%s","iteration":%s,"timestamp":"2026-01-31T12:00:00Z"}' \
    "$step" "$result" "$next" $((at - 1)) > $M/.auto-signal.tmp
  mv $M/.auto-signal.tmp $M/.auto-signal
}
"#;

/// Walks to the end of the play, or until it is asked to stop.
const BY_ITSELF: &str = r#"
DIE='kill -9 $PPID'
until [ -e $M/.auto-stop ] && cp $M/.auto-stop "$OUT/stop"; do
  walk || break
  looked
done
"#;

/// Takes a step for each command that is typed, and notes the command. What a step puts into `AFTER` is done after its signal.
const WHEN_TOLD: &str = r#"
DIE='kill -9 $$'
echo walker 1.0
while true; do
  printf '> '
  IFS= read -r all || exit 0
  until [[ $all == *'and only that.' || $all == *'and stop.' ]]; do
    IFS= read -r more || exit 0
    all="$all $more"
  done
  printf '%s\n' "$all" >> "$OUT/typed"
  AFTER=
  walk
  eval "$AFTER"
  echo done
done
"#;

/// A step of a play: its name, what it comes to, what follows, and what the shell does in it.
type Step<'a> = (&'a str, &'a str, &'a str, &'a str);

const MODULE: &str = "AiTasks/auth";

impl Walker {
    /// A task whose agent walks through this play; none where that cannot be.
    fn task(self, settings: &str, play: &[Step<'_>]) -> Option<ScratchProject> {
        let scratch = self.scratch(settings)?;
        self.play(&scratch, play);
        let shell = self.shell(".landfall/task");
        scratch.task("Walks", &Self::script(&shell), &["--flow", "watched"]);
        Some(scratch)
    }

    /// The same for a module of the project.
    fn module(self, settings: &str, play: &[Step<'_>]) -> Option<ScratchProject> {
        self.module_in("draft", settings, play)
    }

    /// The same for one in this status.
    fn module_in(self, status: &str, settings: &str, play: &[Step<'_>]) -> Option<ScratchProject> {
        let scratch = self.scratch(settings)?;
        self.play(&scratch, play);
        let script = Self::script(&self.shell(MODULE));
        scratch.file(
            &format!("{MODULE}/.index.json"),
            &format!("{{\"title\":\"Auth\",\"status\":\"{status}\",\"owner\":\"me\"}}\n"),
        );
        let target = format!("# Objective\n\nPeople can log in.\n\n```landfall-script\n{script}```\n");
        scratch.file(&format!("{MODULE}/.target.md"), &target);
        scratch.commit("a module");
        Some(scratch)
    }

    fn scratch(self, settings: &str) -> Option<ScratchProject> {
        if self == Self::Dispatch && !has_tmux() {
            return None;
        }
        let mut scratch = ScratchProject::new(LANDFALL);
        scratch.be_patient(Duration::from_secs(170)); // a terminal is looked at before it is believed
        if self == Self::Dispatch {
            let agent =
                "kind = \"tmux\"\nterminal_poll = \"50ms\"\nrun = \"bash walker.sh\"\nstyle = \"dispatch\"\n";
            let path = scratch.project().join("landfall.toml");
            let before = std::fs::read_to_string(path).expect("the settings can be read");
            scratch.settings(&before.replacen("kind = \"script\"\n", agent, 1));
        }
        scratch.more_settings(&format!("[run]\n{settings}"));
        open(&scratch);
        Some(scratch)
    }

    fn play(self, scratch: &ScratchProject, play: &[Step<'_>]) {
        let lines = play.iter().map(|(step, result, next, does)| format!("{step}|{result}|{next}|{does}\n"));
        std::fs::write(open_folder(scratch).join("play"), lines.collect::<String>()).expect("ours");
    }

    /// What the scripted agent runs. In a terminal it is a file of the project.
    fn shell(self, module: &str) -> String {
        let walk = if self == Self::Own { BY_ITSELF } else { WHEN_TOLD };
        format!("{LOOKED}{}{walk}", STEP.replace("@MODULE@", module))
    }

    fn script(shell: &str) -> String {
        format!("run = [\"bash\", \"-c\", '''{shell}''']\n")
    }

    /// Puts the program of the terminal in its place.
    fn begin(self, scratch: &ScratchProject, module: &str) {
        if self == Self::Dispatch {
            scratch.file("walker.sh", &self.shell(module));
            scratch.commit("the program in the terminal");
        }
    }

    /// The commands of a terminal name these steps, each once, the first in its prompt.
    #[track_caller]
    fn was_told(self, scratch: &ScratchProject, steps: &[&str]) {
        if self == Self::Own {
            return;
        }
        let typed = noted(scratch, "typed");
        assert_eq!(typed.len(), steps.len(), "{typed:#?}");
        for (place, (line, step)) in typed.iter().zip(steps).enumerate() {
            let words = if place == 0 { format!("the step `{step}`") } else { format!(": `{step}`") };
            assert!(line.contains(&words), "`{words}` is not in: {line}");
        }
    }
}

/// Lines of a file in the folder that the test can look into.
fn noted(scratch: &ScratchProject, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(open_folder(scratch).join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The steps that are facts, as people read them.
fn strode(scratch: &ScratchProject) -> Vec<String> {
    let facts = scratch.facts("T1", "strode");
    facts.iter().filter_map(|it| it["text"].as_str().map(str::to_owned)).collect()
}

fn doing(scratch: &ScratchProject) -> String {
    let status = scratch.landfall(&["--json", "status"]).json();
    status["active"][0]["doing"].as_str().unwrap_or_default().to_owned()
}

const PLAN: Step<'static> = ("plan", "(generated)", "check", "status planning");
const PASS: Step<'static> = ("check", "PASS", "exec", "status review");
const EXEC: Step<'static> = ("exec", "(done)", "check", "status executing; work whole");
const ACCEPT: Step<'static> = ("check", "ACCEPT", "report", "");
const REPORT: Step<'static> = ("report", "(done)", "(stop)", "status complete");

fn behaviour_02_a_module_without_a_target_is_not_walked(walker: Walker) {
    let Some(scratch) = walker.scratch("slots = 1") else { return };
    walker.begin(&scratch, MODULE);
    scratch.landfall(&["module", "init", "auth"]).ok();
    scratch.commit("a module");
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["edit", "T1", "--ready", "--flow", "watched"]).ok();
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert!(scratch.status("T1") == "blocked" && why.contains("fill .target.md first"), "{why}");
    assert!(scratch.prompts("T1").is_empty(), "no agent ran");
}
in_styles!(behaviour_02_a_module_without_a_target_is_not_walked: own, dispatch);

fn behaviour_03_every_revision_of_a_walk_is_a_fact_with_its_number_and_the_work_lands(walker: Walker) {
    let revise = ("check", "NEEDS_REVISION", "plan", "");
    let play = [PLAN, revise, PLAN, revise, PLAN, PASS, EXEC, ACCEPT, REPORT];
    let Some(scratch) = walker.task("slots = 1", &play) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "whole");
    let strode = strode(&scratch);
    assert_eq!(strode.len(), play.len(), "{strode:#?}");
    for (number, ((step, result, next, _), text)) in play.iter().zip(&strode).enumerate() {
        let words = format!("{step}: {result} → {next} #{number}");
        assert!(text.contains(&words), "`{words}` is not in: {text}");
    }
    walker.was_told(&scratch, &play.map(|it| it.0));
    assert_eq!(scratch.left_behind(), []);
}
in_styles!(behaviour_03_every_revision_of_a_walk_is_a_fact_with_its_number_and_the_work_lands: own, dispatch);

fn behaviour_06_behaviour_07_a_fix_on_the_way_and_another_plan_are_steps_of_a_walk(walker: Walker) {
    let halfway = ("exec", "(mid-exec)", "check", "work half");
    let fix = ("check", "NEEDS_FIX", "exec", "");
    let replan = ("check", "REPLAN", "plan", "status re-planning");
    let play = [
        PLAN,
        PASS,
        halfway,
        fix,
        EXEC,
        replan,
        PLAN,
        PASS,
        ("exec", "(done)", "check", "work again"),
        ACCEPT,
        REPORT,
    ];
    let Some(scratch) = walker.task("slots = 1", &play) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "again", "what was done last");
    let strode = strode(&scratch);
    assert!(
        strode[3].contains("check: NEEDS_FIX → exec") && strode[5].contains("check: REPLAN → plan"),
        "{strode:#?}"
    );
    walker.was_told(&scratch, &play.map(|it| it.0));
}
in_styles!(behaviour_06_behaviour_07_a_fix_on_the_way_and_another_plan_are_steps_of_a_walk: own, dispatch);

fn behaviour_08_a_walk_ends_between_two_steps_when_as_many_are_finished_as_there_may_be(walker: Walker) {
    let fix = ("check", "NEEDS_FIX", "exec", "");
    let play = [PLAN, PASS, EXEC, fix, EXEC, fix, EXEC, fix, EXEC, fix];
    let Some(scratch) = walker.task("iterations_max = 3", &play) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert!(scratch.status("T1") == "failed" && why.contains("all 3 iterations"), "{why}");
    // The step under way when it was asked is finished, and no other is begun.
    let (begun, steps) = (noted(&scratch, "begun"), noted(&scratch, "steps"));
    assert!((3..=4).contains(&steps.len()) && begun == steps, "{begun:?} {steps:?}");
    assert_eq!(scratch.facts("T1", "iteration-ended").len(), 1, "one run");
    assert_eq!(scratch.left_behind(), []);
}
in_styles!(behaviour_08_a_walk_ends_between_two_steps_when_as_many_are_finished_as_there_may_be: own, dispatch);

#[test]
fn behaviour_09_dispatch_a_question_in_the_terminal_is_answered() {
    let asks =
        ("exec", "(done)", "check", "printf 'Overwrite notes.txt? [y/N] '; read answer; work \"$answer\"");
    let walker = Walker::Dispatch;
    let Some(scratch) = walker.task("slots = 1", &[PLAN, PASS, asks, ACCEPT, REPORT]) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "y", "the default would have been no");
    assert_eq!(noted(&scratch, "steps"), ["plan", "check", "exec", "check", "report"]);
}

fn behaviour_10_a_step_that_computes_in_silence_is_no_stall(walker: Walker) {
    let busy = (
        "exec",
        "(done)",
        "check",
        "end=$(( $(date +%s) + 5 )); while [ $(date +%s) -lt $end ]; do :; done; work busy",
    );
    let settings = "silence = \"3s\"\nfirst_output = \"30s\"\nheartbeat = \"500ms\"\nstalls_step_max = 0";
    let Some(scratch) = walker.task(settings, &[PLAN, PASS, busy, ACCEPT, REPORT]) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "busy");
    assert_eq!(noted(&scratch, "begun").len(), 5, "no step was begun twice");
}
in_styles!(behaviour_10_a_step_that_computes_in_silence_is_no_stall: own);

#[test]
fn behaviour_12_self_a_loop_that_says_the_same_each_time_is_told_so_and_at_last_given_up() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Circle", "say = \"Let me think about this once more.\"\n", &["--flow", "watched"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("reasoning_loop"), "{why}");
    let prompts = scratch.prompts("T1");
    assert!(prompts.iter().any(|it| it.contains("same")), "it was told: {prompts:#?}");
}

fn behaviour_13_a_walk_that_is_killed_goes_on_at_its_step_and_the_fourth_time_fails(walker: Walker) {
    let dies = ("exec", "(done)", "check", "eval \"$DIE\"; sleep 30");
    let Some(scratch) = walker.task("slots = 1\ngrace = \"1s\"", &[PLAN, dies]) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed", "{}", scratch.why("T1"));
    assert_eq!(noted(&scratch, "begun"), ["plan", "exec", "exec", "exec", "exec"], "three restarts");
    assert_eq!(strode(&scratch).len(), 1, "the plan is not made again");
    assert_eq!(scratch.left_behind(), []);
}
in_styles!(behaviour_13_a_walk_that_is_killed_goes_on_at_its_step_and_the_fourth_time_fails: own, dispatch);

fn behaviour_14_a_walk_goes_on_while_the_engine_is_gone_and_no_step_is_taken_twice(walker: Walker) {
    let waits = (
        "exec",
        "(done)",
        "check",
        "status executing; work whole; until [ -e \"$OUT/go\" ]; do sleep 0.02; done",
    );
    let Some(scratch) = walker.task("slots = 1", &[PLAN, PASS, waits, ACCEPT, REPORT]) else { return };
    walker.begin(&scratch, ".landfall/task");
    let mut run = scratch.start(&["run"]);
    scratch.eventually("its third step", || noted(&scratch, "begun").len() == 3);
    run.kill();
    std::fs::write(open_folder(&scratch).join("go"), "").expect("ours");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(noted(&scratch, "begun"), ["plan", "check", "exec", "check", "report"]);
    assert_eq!(strode(&scratch).len(), 5);
    assert_eq!(scratch.facts("T1", "iteration-ended").len(), 1, "one run of the agent");
    walker.was_told(&scratch, &["plan", "check", "exec", "check", "report"]);
    assert_eq!(scratch.left_behind(), []);
}
in_styles!(behaviour_14_a_walk_goes_on_while_the_engine_is_gone_and_no_step_is_taken_twice: own, dispatch);

/// The engine has decided on a command, and ends before the terminal hears of it.
#[test]
fn behaviour_14_dispatch_a_command_that_was_decided_on_is_typed_by_the_next_engine() {
    let walker = Walker::Dispatch;
    let play = [PLAN, PASS, EXEC, ACCEPT, REPORT];
    let Some(mut scratch) = walker.task("slots = 1", &play) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.set("LANDFALL_CRASH", "dispatch.decided:2");
    let crashed = scratch.landfall(&["run"]);
    assert!(crashed.code.is_none(), "it was ended there: {crashed:?}");
    scratch.unset("LANDFALL_CRASH");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    walker.was_told(&scratch, &play.map(|it| it.0));
    assert_eq!(scratch.facts("T1", "iteration-ended").len(), 1, "one run of the agent");
}

fn behaviour_15_a_wrong_signal_of_a_walk_is_told_and_changes_nothing(walker: Walker) {
    let wrong = "printf '{\"step\":\"dance\",\"result\":\"PASS\",\"next\":\"exec\",\"timestamp\":\"2026-01-31T12:00:00Z\"}' > $M/.auto-signal; looked; work whole";
    let exec = ("exec", "(done)", "report", wrong);
    let Some(scratch) = walker.task("slots = 1", &[exec, REPORT]) else { return };
    walker.begin(&scratch, ".landfall/task");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(strode(&scratch).len(), 2, "only what was right");
    let warned = scratch.facts("T1", "warned");
    assert_eq!(
        warned.iter().filter(|it| it.to_string().contains("FILE_UNKNOWN_STEP")).count(),
        1,
        "{warned:?}"
    );
}
in_styles!(behaviour_15_a_wrong_signal_of_a_walk_is_told_and_changes_nothing: own, dispatch);

fn behaviour_16_a_stop_lets_a_walk_finish_its_step_and_shows_as_stopping_until_then(walker: Walker) {
    let waits = ("exec", "(done)", "check", "until [ -e \"$OUT/go\" ]; do sleep 0.02; done; work whole");
    let Some(scratch) = walker.task("slots = 1", &[waits, ACCEPT, REPORT]) else { return };
    walker.begin(&scratch, ".landfall/task");
    let mut run = scratch.start(&["run"]);
    scratch.eventually("its step", || noted(&scratch, "begun").len() == 1);
    scratch.landfall(&["stop", "T1"]).ok();
    scratch.eventually("it stops", || doing(&scratch) == "stopping");
    assert_ne!(scratch.landfall(&["retry", "T1"]).code, Some(0), "nothing begins beside it");
    std::fs::write(open_folder(&scratch).join("go"), "").expect("ours");
    scratch.eventually("it is stopped", || scratch.wait_of("T1") == "pause");
    assert_eq!(
        (noted(&scratch, "begun").len(), noted(&scratch, "steps").len()),
        (1, 1),
        "the step was finished"
    );
    run.wait(Duration::from_secs(30)); // whatever it says of a task that waits for a person
    scratch.landfall(&["retry", "T1"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(noted(&scratch, "steps"), ["exec", "check", "report"], "and it went on from there");
}
in_styles!(behaviour_16_a_stop_lets_a_walk_finish_its_step_and_shows_as_stopping_until_then: own, dispatch);

/// Somebody sends the module back to its plan after a step was finished and before the next is typed.
#[test]
fn behaviour_14_dispatch_a_step_is_typed_only_from_the_state_it_was_named_in() {
    let walker = Walker::Dispatch;
    // The change comes after the signal was seen, and before the terminal shows its prompt again.
    let wait = "until [ -e \"$OUT/seen\" ]; do sleep 0.02; done; status re-planning";
    let later = format!("status review; AFTER='{wait}'");
    let later: Step<'_> = ("check", "PASS", "exec", &later);
    let play = [PLAN, later, PLAN, PASS, EXEC, ACCEPT, REPORT];
    let Some(scratch) = walker.task("slots = 1", &play) else { return };
    walker.begin(&scratch, ".landfall/task");
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the second step is a fact", || strode(&scratch).len() == 2);
    std::fs::write(open_folder(&scratch).join("seen"), "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(170)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    walker.was_told(&scratch, &["plan", "check", "plan", "check", "exec", "check", "report"]);
    let typed = noted(&scratch, "typed");
    assert!(typed[2].contains("Somebody changed the module"), "{}", typed[2]);
    assert!(!typed[3].contains("Somebody changed"), "{}", typed[3]);
}

/// The folder of a module is where the walk is: its task comes from there, its signals are read there, and what it comes to is
/// shown there.
fn a_module_of_the_project_is_walked_in_its_own_folder(walker: Walker) {
    let play = [PLAN, PASS, EXEC, ACCEPT, REPORT];
    let Some(scratch) = walker.module("slots = 1", &play) else { return };
    walker.begin(&scratch, MODULE);
    if walker == Walker::Own {
        let path = scratch.project().join("landfall.toml");
        let before = std::fs::read_to_string(path).expect("the settings can be read");
        scratch.settings(&before.replacen("kind = \"script\"\n", "kind = \"script\"\nstyle = \"self\"\n", 1));
    }
    // A profile whose agent runs a loop of its own gets the flow for that, unless a person says otherwise.
    scratch.landfall(&["import", "AiTasks"]).ok();
    assert_eq!(scratch.detail("T1")["source"], format!("module:{MODULE}"));
    let refused = scratch.landfall(&["edit", "T1", "--flow", "lifecycle"]);
    assert!(refused.code != Some(0) && refused.err.contains("--flow watched"), "{refused:?}");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:work.txt"]), "whole");
    assert_eq!(strode(&scratch).len(), play.len());
    walker.was_told(&scratch, &play.map(|it| it.0));
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(!files.contains(".auto-"), "nothing of the talk lands: {files}");
    let index = std::fs::read_to_string(scratch.project().join(MODULE).join(".index.json")).expect("there");
    let index: Value = serde_json::from_str(&index).expect("JSON");
    assert_eq!((&index["status"], &index["owner"]), (&"complete".into(), &"me".into()), "{index}");
}
in_styles!(a_module_of_the_project_is_walked_in_its_own_folder: own, dispatch);

/// No judge weighs it, so whoever works hears it: in its next run, or, if it was said while the last one was at work, in one more.
#[test]
fn behaviour_21_self_a_refinement_is_heard_where_no_judge_weighs_it() {
    for flow in ["watched", "loop"] {
        let scratch = ScratchProject::new(LANDFALL);
        let folder = open(&scratch);
        let (began, go) = (folder.join("began"), folder.join("go"));
        let script = format!(
            "run = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\nsignal = \"complete\"\n\
             [[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n",
            began.display(),
            go.display()
        );
        scratch.task("Refined", &script, &["--flow", flow]);
        let said = scratch.landfall(&["refine", "T1", "in capitals"]).ok();
        assert!(said.contains("the next run of its agent hears it"), "{flow}: {said}");
        scratch.landfall(&["refine", "T1", "and in red"]).ok();
        scratch.landfall(&["refine", "T1", "--withdraw", "2"]).ok();
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the agent is at work", || began.exists());
        scratch.landfall(&["refine", "T1", "and twice"]).ok();
        std::fs::write(&go, "").expect("ours");
        assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{flow}: {}", scratch.heard());
        let prompts = scratch.prompts("T1");
        assert_eq!(prompts.len(), 2, "{flow}: what was said last is not lost");
        assert!(
            prompts[0].contains("in capitals") && !prompts[0].contains("and twice"),
            "{flow}: {}",
            prompts[0]
        );
        assert!(
            prompts[1].contains("in capitals") && prompts[1].contains("and twice"),
            "{flow}: {}",
            prompts[1]
        );
        assert!(!prompts.concat().contains("and in red"), "{flow}: nobody heard what was taken back");
        assert_ne!(
            scratch.landfall(&["refine", "T1", "--withdraw", "1"]).code,
            Some(0),
            "{flow}: it is dealt with"
        );
    }
}

/// Whichever way its module is walked, one session holds it.
fn behaviour_01_a_module_under_way_is_refused_to_others_naming_the_holder(walker: Walker) {
    let waits = ("exec", "(done)", "report", "until [ -e \"$OUT/go\" ]; do sleep 0.02; done; work whole");
    let Some(scratch) = walker.module_in("review", "slots = 1", &[waits, REPORT]) else { return };
    scratch.file(&format!("{MODULE}/.plan.md"), "# Plan\n\n## Step 1: do it\n");
    scratch.commit("a plan");
    walker.begin(&scratch, MODULE);
    // It was imported where its flow executes the plan; the other flow has no such step.
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["edit", "T1", "--flow", "watched"]).ok();
    let dir = scratch.project().canonicalize().expect("it is there").join(MODULE);
    let body = serde_json::json!({ "taskDir": dir }).to_string();
    let served = Served::start(&scratch, &[]);
    let (status, row) = served.post("/api/sessions/main/task-auto", &body);
    assert_eq!(status, 200, "{row}");
    scratch.eventually("its step", || noted(&scratch, "begun").len() == 1);
    let (status, refused) = served.post("/api/sessions/other/task-auto", &body);
    let refused: Value = serde_json::from_str(&refused).expect("JSON");
    assert_eq!((status, &refused["holder"]), (409, &"main".into()), "{refused}");
    std::fs::write(open_folder(&scratch).join("go"), "").expect("ours");
    scratch.eventually("the end", || scratch.status("T1") == "done");
    let (_, row) = served.get("/api/sessions/main/task-auto");
    let row: Value = serde_json::from_str(&row).expect("JSON");
    assert_eq!((&row["status"], &row["stop_reason"]), (&"stopped".into(), &"complete".into()), "{row}");
    served.end();
}
in_styles!(behaviour_01_a_module_under_way_is_refused_to_others_naming_the_holder: own, dispatch);

/// A client begins with a module that nobody imported: how its agent is driven is said by its profile, from the status on that its
/// folder shows.
fn a_loop_of_a_client_is_driven_as_its_profile_says(walker: Walker) {
    let waits = ("exec", "(done)", "report", "until [ -e \"$OUT/go\" ]; do sleep 0.02; done; work whole");
    let Some(scratch) = walker.module_in("review", "slots = 1", &[waits, REPORT]) else { return };
    scratch.file(&format!("{MODULE}/.plan.md"), "# Plan\n\n## Step 1: do it\n");
    scratch.commit("a plan");
    walker.begin(&scratch, MODULE);
    if walker == Walker::Own {
        let path = scratch.project().join("landfall.toml");
        let before = std::fs::read_to_string(path).expect("the settings can be read");
        scratch.settings(&before.replacen("kind = \"script\"\n", "kind = \"script\"\nstyle = \"self\"\n", 1));
    }
    let dir = scratch.project().canonicalize().expect("it is there").join(MODULE);
    let body = serde_json::json!({ "taskDir": dir, "flow": "watched" }).to_string();
    let served = Served::start(&scratch, &[]);
    let (status, row) = served.post("/api/sessions/main/task-auto", &body);
    assert_eq!(status, 200, "{row}");
    scratch.eventually("its step", || noted(&scratch, "begun").len() == 1);
    std::fs::write(open_folder(&scratch).join("go"), "").expect("ours");
    scratch.eventually("the end", || scratch.status("T1") == "done");
    assert_eq!(noted(&scratch, "steps"), ["exec", "report"], "it begins where its folder says");
    walker.was_told(&scratch, &["exec", "report"]);
    let (_, row) = served.get("/api/sessions/main/task-auto");
    let row: Value = serde_json::from_str(&row).expect("JSON");
    assert_eq!((&row["status"], &row["stop_reason"]), (&"stopped".into(), &"complete".into()), "{row}");
    let task = scratch.detail("T1");
    assert_eq!(task["flow"], "watched", "{task}");
    served.end();
}
in_styles!(a_loop_of_a_client_is_driven_as_its_profile_says: own, dispatch);
