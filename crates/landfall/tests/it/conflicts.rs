//! Conflicts with the base, from outside: git alone settles what lies side by side, an agent what is small, a person the
//! rest; and when no person does, settings say what happens.

use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::autopilot::OnTerminal;
use crate::batches::{all_green, fill};

/// One task that stands in line, and then a person changes `main`.
fn meets(settings: &str, script: &str, person: &dyn Fn(&ScratchProject)) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    if !settings.is_empty() {
        scratch.more_settings(settings);
    }
    scratch.landfall(&["queue", "pause"]).ok();
    scratch.task("Story", script, &[]);
    // Somebody is there from the beginning.
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    assert_eq!(run.end(&scratch), Some(9), "a held queue needs you: {}", run.screen());
    person(&scratch);
    scratch.commit("person");
    scratch.landfall(&["queue", "resume"]).ok();
    scratch
}

/// Changes the second line, and brings the base in when asked again.
fn edits(again: &str) -> String {
    format!(
        "[[iteration]]\nsignal = \"complete\"\n[[iteration.edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"TWO\"\n\
         [[iteration]]\nsignal = \"complete\"\nrun = [\"sh\", \"-c\", '''{again}''']\n"
    )
}

/// Shell: `base` is the commit that the prompt on stdin names for a merge.
pub const BASE_IN_PROMPT: &str = r"base=$(sed -n 's/^Run `git merge \([0-9a-f]*\)`.*/\1/p' | head -n 1)";

/// What an agent does about a conflict: merges the commit that the prompt names, and keeps what `text` says.
fn merges(text: &str) -> String {
    format!(
        "{BASE_IN_PROMPT}; [ -n \"$base\" ] || exit 1; \
         git merge -q \"$base\"; printf '{text}' > a.txt; git add --all; \
         git -c user.name=a -c user.email=a@example.invalid commit -qm merged"
    )
}

#[test]
fn changes_side_by_side_are_settled_by_git_alone_and_verified() {
    let scratch = meets("", &edits("false"), &|scratch| scratch.file("a.txt", "ONE\ntwo\nthree\n"));
    // Plain git would not merge these two.
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "ONE\nTWO\nthree");
    assert_eq!(scratch.prompts("T1").len(), 1, "the agent is not bothered");
    let certificate = scratch.landfall(&["certificate", "T1"]).json();
    assert_eq!(certificate["verification"]["tree"], scratch.git(&["rev-parse", "main^{tree}"]));
    assert_eq!(scratch.facts("T1", "conflicted").len(), 0);
    all_green(&scratch);
}

#[test]
fn a_settlement_that_does_not_pass_goes_to_the_agent() {
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"TWO\"\n\
                  [[iteration]]\nsignal = \"blocked:they do not fit\"\n";
    let scratch = meets("", script, &|scratch| {
        scratch.file("a.txt", "ONE\ntwo\nthree\n");
        scratch.file(
            "test.sh",
            "if grep -q TWO a.txt; then echo 'no TWO beside ONE'; exit 1; fi; echo '1 passed, 0 failed'\n",
        );
    });
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    assert!(scratch.prompts("T1")[1].contains("no TWO beside ONE"), "{}", scratch.prompts("T1")[1]);
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "ONE\ntwo\nthree");
}

#[test]
fn the_same_line_goes_to_the_agent_with_the_base_and_lands_once_it_is_settled() {
    let script = edits(&merges("one\\nTWO and 2\\nthree\\n"));
    let scratch = meets("", &script, &|scratch| scratch.file("a.txt", "one\n2\nthree\n"));
    let theirs = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\nTWO and 2\nthree");
    let prompts = scratch.prompts("T1");
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains(&format!("git merge {theirs}")), "{}", prompts[1]);
    assert!(prompts[1].contains("a.txt (1 line)"), "{}", prompts[1]);
    all_green(&scratch);
}

#[test]
fn the_same_line_of_two_in_one_batch_waits_for_the_first_and_then_goes_to_the_agent() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.landfall(&["queue", "pause"]).ok();
    let first = "signal = \"complete\"\n[[edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"first\"\n";
    scratch.task("First", first, &[]);
    let second = edits(&merges("one\\nfirst and second\\nthree\\n"));
    scratch.task("Second", &second, &[]);
    scratch.task("Third", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n", &[]);
    fill(&scratch, &["T1", "T2", "T3"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    for task in ["T1", "T2", "T3"] {
        assert_eq!(scratch.status(task), "done", "{}", scratch.why(task));
    }
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\nfirst and second\nthree");
    assert_eq!(["T1", "T2", "T3"].map(|task| scratch.prompts(task).len()), [1, 2, 1]);
    all_green(&scratch);
}

/// A story for a person: the agent changed a file that they deleted.
fn for_a_person(settings: &str, second: &str) -> ScratchProject {
    meets(settings, &edits(second), &|scratch| {
        std::fs::remove_file(scratch.project().join("a.txt")).expect("ours");
    })
}

fn waits(scratch: &ScratchProject) -> usize {
    let of = |it: &serde_json::Value| it["text"].as_str().is_some_and(|text| text.contains("conflict"));
    scratch.facts("T1", "waited").iter().filter(|it| of(it)).count()
}

#[test]
fn where_nobody_is_there_a_conflict_for_a_person_is_put_aside_at_once() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1h\"\nconflict_overdue = \"notify\"", "false");
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    assert!(
        scratch.why("T1").contains("conflict_limit") && scratch.why("T1").contains("a.txt"),
        "{}",
        scratch.why("T1")
    );
    assert_eq!(scratch.prompts("T1").len(), 1, "no agent guesses");
    assert!(!scratch.project().join("a.txt").exists());
}

#[test]
fn a_person_settles_a_conflict_in_the_workspace_and_it_lands() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1h\"", "false");
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    scratch.eventually("the person to be asked", || scratch.wait_of("T1") == "conflict");
    let why = scratch.why("T1");
    assert!(
        why.contains("a.txt") && why.contains("landfall answer T1 resolved"),
        "it says what to do: {why}"
    );
    assert!(!run.is_over(), "somebody is there, so it waits");
    // They keep what the agent did, under another name.
    let place = scratch.workspace("T1").display().to_string();
    let sh = format!(
        "cd {place} && git merge -q $(git -C {} rev-parse main); git mv -f a.txt kept.txt 2>/dev/null || {{ git add a.txt; git mv a.txt kept.txt; }}; \
         git add --all; git -c user.name=p -c user.email=p@example.invalid commit -qm settled",
        scratch.project().display()
    );
    let settled = std::process::Command::new("sh").arg("-c").arg(sh).output().expect("sh runs");
    assert!(settled.status.success(), "{settled:?}");
    scratch.landfall(&["answer", "T1", "resolved"]).ok();
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:kept.txt"]), "one\nTWO\nthree");
    assert!(!scratch.project().join("a.txt").exists());
    all_green(&scratch);
}

#[test]
fn a_person_says_how_and_the_agent_settles_a_conflict() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1h\"", &merges("one\\nTWO\\nthree\\n"));
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    scratch.eventually("the person to be asked", || scratch.wait_of("T1") == "conflict");
    scratch.landfall(&["answer", "T1", "bring the file back"]).ok();
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\nTWO\nthree");
    assert!(scratch.prompts("T1")[1].contains("bring the file back"), "{}", scratch.prompts("T1")[1]);
}

#[test]
fn a_conflict_that_waited_for_a_person_is_put_aside_by_a_run_that_nobody_attends() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1h\"", "false");
    let run = OnTerminal::start(&scratch, &["run"], &[]);
    scratch.eventually("the person to be asked", || scratch.wait_of("T1") == "conflict");
    drop(run); // which ends it as a power cut would
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
}

#[test]
fn a_conflict_nobody_settles_in_time_is_deferred_and_can_be_taken_up_again() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1s\"\nconflict_overdue = \"defer\"", "false");
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    assert_eq!(run.end(&scratch), Some(8), "{}", run.screen());
    assert_eq!(waits(&scratch), 1);
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    let waited = &scratch.facts("T1", "waited")[0]["at_ms"];
    let ended = &scratch.facts("T1", "ended")[0]["at_ms"];
    let took = ended.as_i64().zip(waited.as_i64()).map(|(to, from)| to - from);
    assert!(took.is_some_and(|ms| (1_000..30_000).contains(&ms)), "it had its time: {took:?}");
    scratch.landfall(&["retry", "T1"]).ok();
}

#[test]
fn a_conflict_nobody_settles_in_time_is_given_up_where_settings_say_skip() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1s\"\nconflict_overdue = \"skip\"", "false");
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    run.end(&scratch);
    assert_eq!(scratch.status("T1"), "cancelled", "{}", scratch.why("T1"));
    assert_ne!(scratch.kept("T1", "a.txt", "one\nTWO\nthree\n"), [""; 0], "the work is kept");
}

#[test]
fn a_conflict_nobody_settles_in_time_goes_to_the_agent_where_settings_say_retry() {
    let scratch = for_a_person(
        "[land]\nconflict_wait = \"1s\"\nconflict_overdue = \"retry\"",
        &merges("one\\nTWO\\nthree\\n"),
    );
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\nTWO\nthree");
    assert!(
        scratch.prompts("T1")[1].contains("conflicts with the base branch"),
        "{}",
        scratch.prompts("T1")[1]
    );
}

#[test]
fn a_conflict_nobody_settles_in_time_is_told_again_where_settings_say_notify() {
    let scratch = for_a_person("[land]\nconflict_wait = \"1s\"\nconflict_overdue = \"notify\"", "false");
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    scratch.eventually("a second word", || waits(&scratch) >= 2);
    assert_eq!(scratch.wait_of("T1"), "conflict");
    assert!(!run.is_over());
    scratch.landfall(&["cancel", "T1"]).ok();
    scratch.eventually("the end", || run.is_over());
    assert_eq!(scratch.status("T1"), "cancelled");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn twenty_lines_are_for_a_person_and_nineteen_for_the_agent() {
    let lines = |count: usize, word: &str| (0..count).map(|at| format!("{word} {at}\n")).collect::<String>();
    for (count, wanted) in [(19, 2), (20, 1)] {
        let script = format!(
            "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"a.txt\"\ntext = '''\n{}'''\n\
             [[iteration]]\nsignal = \"blocked:too hard\"\n",
            lines(count, "mine")
        );
        let scratch = meets("", &script, &|scratch| scratch.file("a.txt", &lines(count, "theirs")));
        assert_eq!(scratch.landfall(&["run"]).code, Some(8));
        assert_eq!(scratch.prompts("T1").len(), wanted, "{count} lines: {}", scratch.why("T1"));
    }
}

#[test]
fn a_conflict_while_the_agent_works_is_found_before_it_stands_in_line() {
    let scratch = ScratchProject::new(LANDFALL);
    let go = scratch.root().join("go");
    let script = format!(
        "[[iteration]]\nrun = [\"sh\", \"-c\", \"while [ ! -e {} ]; do sleep 0.02; done\"]\nsignal = \"complete\"\n\
         [[iteration.edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"TWO\"\n",
        go.display()
    );
    scratch.task("Story", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the edit", || {
        std::fs::read_to_string(scratch.workspace("T1").join("a.txt")).is_ok_and(|text| text.contains("TWO"))
    });
    scratch.file("a.txt", "ONE\ntwo\nthree\n");
    scratch.commit("person");
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "ONE\nTWO\nthree", "settled by git alone there, too");
    assert_eq!(scratch.prompts("T1").len(), 1);
}
