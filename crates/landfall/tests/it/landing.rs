//! Landing and publishing from outside: what lands is what was tested, a person's own work always wins, and the
//! certificate says what git says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::conflicts::BASE_IN_PROMPT;
use crate::sandbox::{off, open};

/// A script that writes one file and is done.
fn writes(path: &str, text: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"{text}\\n\"\n")
}

/// The same, after a shell command in the workspace.
fn after(command: &str, path: &str, text: &str) -> String {
    format!("run = [\"sh\", \"-c\", '''{command}''']\n{}", writes(path, text))
}

/// Every first-parent commit of `main` passes the check, in a plain checkout that has nothing to do with Landfall.
#[track_caller]
fn all_green(scratch: &ScratchProject) {
    let place = scratch.root().join("plain");
    let path = place.display().to_string();
    scratch.git(&["clone", "--quiet", ".", &path]);
    for commit in scratch.git(&["rev-list", "--first-parent", "main"]).lines() {
        let git =
            |args: &[&str]| Command::new("git").arg("-C").arg(&place).args(args).status().expect("git runs");
        assert!(git(&["checkout", "--quiet", commit]).success());
        let check = Command::new("sh").arg("test.sh").current_dir(&place).output().expect("sh runs");
        assert!(check.status.success(), "{commit}: {}", String::from_utf8_lossy(&check.stdout));
    }
    std::fs::remove_dir_all(place).expect("ours");
}

#[track_caller]
fn done(scratch: &ScratchProject, tasks: &[&str]) {
    for task in tasks {
        assert_eq!(scratch.status(task), "done", "{}", scratch.why(task));
    }
}

fn base(scratch: &ScratchProject) -> Value {
    scratch.landfall(&["--json", "status"]).json()["base"].clone()
}

fn file(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

// What lands.

#[test]
fn two_tasks_green_alone_and_red_together_one_lands_and_the_other_goes_back() {
    let scratch = ScratchProject::new(LANDFALL);
    // The check allows at most one of the two.
    scratch.file("test.sh", "if [ -e x.txt ] && [ -e y.txt ] && [ ! -e both.txt ]; then echo 'x and y do not go together'; exit 1; fi\necho '1 passed, 0 failed'\n");
    scratch.commit("one of two");
    let ready = open(&scratch).join("ready");
    // Both wait for each other, so both are made from the same base.
    let meet = |own: &str, other: &str| {
        format!("touch {0}-{own}; while [ ! -e {0}-{other} ]; do sleep 0.02; done", ready.display())
    };
    for (own, other) in [("x", "y"), ("y", "x")] {
        let script = format!(
            "[[iteration]]\nrun = [\"sh\", \"-c\", \"{}\"]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"{own}.txt\"\ntext = \"{own}\\n\"\n\
             [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"both.txt\"\ntext = \"both\\n\"\n",
            meet(own, other)
        );
        scratch.task(own, &script, &[]);
    }
    scratch.landfall(&["run", "--slots", "2"]).ok();
    done(&scratch, &["T1", "T2"]);
    let landed = |task: &str| scratch.facts(task, "landed")[0]["seq"].as_u64().expect("a number");
    let (first, second) = if landed("T1") < landed("T2") { ("T1", "T2") } else { ("T2", "T1") };
    assert_eq!(scratch.prompts(first).len(), 1, "the first to land was good");
    let prompts = scratch.prompts(second);
    assert_eq!(prompts.len(), 2, "the other went back to its agent");
    assert!(prompts[1].contains("x and y do not go together"), "{}", prompts[1]);
    all_green(&scratch);
}

#[test]
fn a_conflict_goes_back_to_the_agent_with_the_base_commit() {
    let scratch = ScratchProject::new(LANDFALL);
    let go = scratch.root().join("go");
    let slow = format!(
        "[[iteration]]\nrun = [\"sh\", \"-c\", \"while [ ! -e {} ]; do sleep 0.02; done\"]\nsignal = \"complete\"\n\
         [[iteration.edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"slow\"\n\
         [[iteration]]\nrun = [\"sh\", \"-c\", '''{BASE_IN_PROMPT}; git merge -q $base >/dev/null; \
         printf 'one\\nfast and slow\\nthree\\n' > a.txt; git add a.txt; git -c user.name=a -c user.email=a@b commit -qm merged''']\nsignal = \"complete\"\n",
        go.display(),
    );
    scratch.task("Slow", &slow, &[]);
    let fast = "signal = \"complete\"\n[[edit]]\npath = \"a.txt\"\nfind = \"two\"\nreplace = \"fast\"\n";
    scratch.task("Fast", fast, &[]);
    let mut run = scratch.start(&["run", "--slots", "2"]);
    scratch.eventually("the fast one to land", || scratch.git(&["show", "main:a.txt"]).contains("fast"));
    let base = scratch.git(&["rev-parse", "main"]);
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(std::time::Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    done(&scratch, &["T1", "T2"]);
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\nfast and slow\nthree");
    let prompts = scratch.prompts("T1");
    assert!(prompts[1].contains(&format!("git merge {base}")), "{}", prompts[1]);
    assert!(prompts[1].contains("Files in conflict: a.txt"), "{}", prompts[1]);
    all_green(&scratch);
}

#[test]
fn a_conflict_that_the_agent_cannot_resolve_is_blocked_after_three_rounds() {
    let scratch = ScratchProject::new(LANDFALL);
    let go = scratch.root().join("go");
    let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
    let stubborn = format!(
        "run = [\"sh\", \"-c\", \"{wait}\"]\nsignal = \"complete\"\n[[write]]\npath = \"a.txt\"\ntext = \"mine\\n\"\n"
    );
    scratch.task("Stubborn", &stubborn, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the workspace", || file(&scratch.workspace("T1").join("a.txt")) == "mine\n");
    scratch.file("a.txt", "theirs\n");
    scratch.commit("theirs");
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(std::time::Duration::from_secs(30)), Some(8), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "blocked", "{}", scratch.why("T1"));
    assert!(scratch.why("T1").contains("conflict_limit"), "{}", scratch.why("T1"));
    assert!(scratch.why("T1").contains("a.txt"), "{}", scratch.why("T1"));
    assert_eq!(scratch.prompts("T1").len(), 4, "three rounds more");
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "theirs");
    assert_ne!(scratch.kept("T1", "a.txt", "mine\n"), Vec::<String>::new());
}

#[test]
fn the_certificate_says_what_git_says() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("z.txt.want", "z\n");
    scratch.file("z.txt", "z\n");
    scratch.commit("a check");
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.task(
        "Certified",
        &writes("b.txt", "b"),
        &["--criterion", "b is there", "--criterion", "z stays"],
    );
    scratch.landfall(&["run"]).ok();
    let certificate = scratch.landfall(&["certificate", "T1"]).json();
    assert_eq!(certificate["task"], "T1");
    assert_eq!(certificate["criteria"], serde_json::json!(["b is there", "z stays"]));
    let command = &certificate["verification"]["commands"][0];
    assert_eq!(command["name"], "tests");
    assert_eq!(command["command"], "sh test.sh");
    assert_eq!(command["exit"], 0);
    assert_eq!(command["outcome"], "pass");
    assert_eq!(command["tests_run"], 2);
    assert_eq!(certificate["verification"]["tests_run"], 2);
    let landing = &certificate["landing"];
    let commit = landing["commit"].as_str().expect("a commit");
    assert_eq!(scratch.git(&["rev-parse", "main"]), commit);
    let tree = scratch.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    assert_eq!(landing["tree"], tree);
    assert_eq!(certificate["verification"]["tree"], tree, "what was tested is what landed");
    let parents = scratch.git(&["rev-parse", &format!("{commit}^@")]);
    let head = certificate["work"]["head"].as_str().expect("a commit");
    assert_eq!(parents.lines().collect::<Vec<_>>(), [before.as_str(), head]);
    assert_eq!(landing["base_before"], before);
    let proof = landing["proof"].as_str().expect("a proof");
    assert!(proof.contains(&tree), "{proof}");
    let merged = scratch.git(&["merge-tree", "--write-tree", &before, head]);
    assert_eq!(merged, tree, "and git itself comes to the same tree");
    assert_eq!(certificate["review"], Value::Null);
    assert_eq!(certificate["warnings"], serde_json::json!([]));
    verify_elsewhere(&scratch, &certificate);
}

/// The certificate agrees with a clone that has no state of Landfall, and no longer does once a claim in it is changed.
fn verify_elsewhere(scratch: &ScratchProject, certificate: &Value) {
    let folder = open(scratch);
    let clone = folder.join("clone").display().to_string();
    scratch.git(&["clone", "--quiet", ".", &clone]);
    let file = folder.join("T1.json");
    let verify = |certificate: &Value| {
        std::fs::write(&file, certificate.to_string()).expect("the folder is there");
        scratch.landfall(&["-C", &clone, "certificate", "--verify", &file.display().to_string()])
    };
    verify(certificate).ok();
    let changed = |path: &str, value: &str| {
        let mut certificate = certificate.clone();
        *certificate.pointer_mut(path).expect("the field is there") = value.into();
        certificate
    };
    let head = certificate["work"]["head"].as_str().expect("a commit");
    let before = certificate["landing"]["base_before"].as_str().expect("a commit");
    let lies = [
        ("/landing/tree", head, "merging the work"),
        ("/verification/tree", head, "the tree that was verified"),
        ("/landing/base_before", head, "merging the work"),
        ("/work/head", before, "contains the work"),
        ("/landing/commit", head, "is on `main`"),
        ("/landing/commit", "0123456789012345678901234567890123456789", "does not have the commit"),
        ("/verification/outcome", "fail", "every required check passed"),
        ("/verification/commands/0/outcome", "fail", "every required check passed"),
    ];
    for (path, value, named) in lies {
        let verdict = verify(&changed(path, value));
        assert_eq!(verdict.code, Some(8), "{path}: {}", verdict.out);
        let failed = verdict.out.lines().find(|line| line.starts_with('✗') && line.contains(named));
        // A head that landed is on the base as well: then the merge does not agree.
        let failed = failed.or_else(|| verdict.out.lines().find(|line| line.starts_with("✗ merging")));
        assert!(failed.is_some(), "{path}: {}", verdict.out);
    }
    let other = verify(&serde_json::json!({ "v": 2 }));
    assert!(other.code == Some(2) && other.err.contains("version 1"), "{}", other.err);
}

#[test]
fn every_first_parent_commit_of_main_is_green() {
    let scratch = ScratchProject::new(LANDFALL);
    for number in 1..=5 {
        let script = format!(
            "signal = \"complete\"\n[[write]]\npath = \"f{number}\"\ntext = \"{number}\\n\"\n[[write]]\npath = \"f{number}.want\"\ntext = \"{number}\\n\"\n"
        );
        scratch.task(&format!("Number {number}"), &script, &[]);
    }
    scratch.landfall(&["run", "--slots", "3"]).ok();
    done(&scratch, &["T1", "T2", "T3", "T4", "T5"]);
    assert_eq!(scratch.git(&["rev-list", "--count", "--first-parent", "main"]), "6");
    all_green(&scratch);
}

#[test]
fn a_need_is_met_by_landing_and_its_work_is_there() {
    let scratch = ScratchProject::new(LANDFALL);
    let seen = open(&scratch).join("seen");
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.task(
        "Second",
        &after(&format!("cat b.txt > {}", seen.display()), "c.txt", "c"),
        &["--needs", "T1"],
    );
    assert!(scratch.why("T2").contains("waits for T1 to land first"), "{}", scratch.why("T2"));
    scratch.landfall(&["run", "--slots", "2"]).ok();
    assert_eq!(file(&seen), "b\n", "it began from what landed");
    let landed = scratch.facts("T1", "landed")[0]["seq"].as_u64();
    let entered = scratch.facts("T2", "entered")[0]["seq"].as_u64();
    assert!(landed < entered, "{landed:?} {entered:?}");
}

#[test]
fn a_task_whose_need_did_not_land_is_not_started() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", "signal = \"blocked:no\"\n", &[]);
    scratch.task("Second", &writes("c.txt", "c"), &["--needs", "T1"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}", run.out);
    assert_eq!(scratch.status("T2"), "waiting");
    assert_eq!(scratch.wait_of("T2"), "dependency");
    assert_eq!(scratch.prompts("T2").len(), 0);
}

#[test]
fn priority_and_tags_say_who_starts_first() {
    let scratch = ScratchProject::new(LANDFALL);
    let order = open(&scratch).join("order");
    let tell =
        |name: &str| after(&format!("echo {name} >> {}", order.display()), &format!("{name}.txt"), name);
    scratch.task("plain", &tell("plain"), &[]);
    scratch.task("urgent", &tell("urgent"), &["--priority", "1"]);
    scratch.task("later", &tell("later"), &["--tag", "later"]);
    scratch.task("next", &tell("next"), &["--tag", "next"]);
    scratch.landfall(&["run", "--slots", "1"]).ok();
    assert_eq!(file(&order).lines().collect::<Vec<_>>(), ["urgent", "next", "plain", "later"]);
}

#[test]
fn only_the_tasks_asked_for_and_what_they_need_are_run() {
    let scratch = ScratchProject::new(LANDFALL);
    for (name, more) in [("one", &[][..]), ("two", &["--needs", "T1"]), ("three", &[])] {
        scratch.task(name, &writes(&format!("{name}.txt"), name), more);
    }
    scratch.landfall(&["run", "T2"]).ok();
    done(&scratch, &["T1", "T2"]);
    assert_eq!(scratch.status("T3"), "ready");
}

#[test]
fn no_more_agents_work_at_once_than_there_are_slots() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (place, peak) = (folder.join("at-work"), folder.join("peak"));
    std::fs::create_dir(&place).expect("ours");
    // The first two wait for each other, so that two are at work at once however slow the machine is.
    let met = folder.join("met");
    let command = format!(
        "touch {0}/$$; until [ -e {2} ] || [ $(ls {0} | wc -l) -ge 2 ]; do sleep 0.02; done; touch {2}; \
         ls {0} | wc -l >> {1}; rm {0}/$$",
        place.display(),
        peak.display(),
        met.display()
    );
    for number in 1..=5 {
        scratch.task(&format!("N{number}"), &after(&command, &format!("f{number}"), "x"), &[]);
    }
    scratch.landfall(&["run", "--slots", "2"]).ok();
    let counts: Vec<u32> = file(&peak).lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert_eq!(counts.len(), 5);
    assert_eq!(counts.iter().max(), Some(&2), "the pool is filled and not overfilled: {counts:?}");
}

// Rollback.

#[test]
fn a_rollback_takes_back_exactly_one_task_and_is_verified() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.task("Second", &writes("c.txt", "c"), &[]);
    scratch.landfall(&["run"]).ok();
    let before = scratch.git(&["rev-parse", "main"]);
    let said = scratch.landfall(&["--json", "rollback", "T1"]).json();
    assert_eq!(said["new_task"], "T3");
    scratch.landfall(&["run"]).ok();
    done(&scratch, &["T3"]);
    assert!(!scratch.project().join("b.txt").exists(), "its work is gone");
    assert_eq!(scratch.git(&["show", "main:c.txt"]), "c", "other work stays");
    assert_eq!(scratch.detail("T3")["gate"]["outcome"], "pass");
    assert_eq!(scratch.prompts("T3").len(), 0, "no agent works on it");
    scratch.git(&["merge-base", "--is-ancestor", &before, "main"]);
    all_green(&scratch);
}

#[test]
fn a_rollback_that_would_break_what_builds_on_it_does_not_land() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.task("Second", &writes("b.txt.want", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["rollback", "T1"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T3"), "blocked", "{}", scratch.why("T3"));
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
}

#[test]
fn what_has_not_landed_cannot_be_rolled_back() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let said = scratch.landfall(&["rollback", "T1"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("has not landed"), "{}", said.err);
}

// The person's own work wins.

#[test]
fn a_dirty_checkout_holds_landed_work_until_it_is_committed() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("a.txt", "mine, not yet done\n");
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    done(&scratch, &["T1"]);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    assert_eq!(file(&scratch.project().join("a.txt")), "mine, not yet done\n");
    assert!(!scratch.project().join("b.txt").exists());
    let base = base(&scratch);
    assert_eq!(base["published"], false);
    assert!(base["held"].as_str().is_some_and(|held| held.contains("a.txt")), "{base}");
    let told = scratch.landfall(&["status"]).ok();
    assert!(told.contains("a.txt"), "{told}");
    scratch.commit("now it is done");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
    assert_eq!(scratch.git(&["show", "main:a.txt"]), "mine, not yet done");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    all_green(&scratch);
}

#[test]
fn a_dirty_checkout_that_is_cleaned_gets_the_landed_work_with_the_next_run() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("a.txt", "an experiment\n");
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.git(&["checkout", "--", "a.txt"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(file(&scratch.project().join("b.txt")), "b\n");
    assert_eq!(base(&scratch)["published"], true);
}

#[test]
fn later_work_builds_on_landed_work_that_is_still_held() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("a.txt", "an experiment\n");
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.task(
        "Second",
        &after("test \"$(cat b.txt)\" = b && echo yes > saw.txt", "c.txt", "c"),
        &["--needs", "T1"],
    );
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.git(&["checkout", "--", "a.txt"]);
    scratch.landfall(&["run"]).ok();
    for path in ["b.txt", "c.txt", "saw.txt"] {
        assert!(scratch.project().join(path).exists(), "{path}");
    }
}

#[test]
fn an_untracked_file_in_the_way_is_not_written_over() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("b.txt", "mine\n");
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(file(&scratch.project().join("b.txt")), "mine\n");
    std::fs::remove_file(scratch.project().join("b.txt")).expect("ours");
    scratch.landfall(&["run"]).ok();
    assert_eq!(file(&scratch.project().join("b.txt")), "b\n");
}

#[test]
fn an_ignored_file_and_an_ignored_folder_survive_a_landing_with_those_names() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".gitignore", ".env\ncache\n");
    scratch.commit("ignore");
    // The task stops ignoring both names and lands files there.
    let script = format!("[[write]]\npath = \".gitignore\"\ntext = \"\"\n{}", {
        "[[write]]\npath = \".env\"\ntext = \"landed\\n\"\n[[write]]\npath = \"cache\"\ntext = \"landed\\n\"\n"
    });
    scratch.task("First", &format!("signal = \"complete\"\n{script}"), &[]);
    scratch.file(".env", "SECRET=1\n");
    scratch.file("cache/deep/work.bin", "a day of work\n");
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    done(&scratch, &["T1"]);
    assert_eq!(file(&scratch.project().join(".env")), "SECRET=1\n");
    assert_eq!(file(&scratch.project().join("cache/deep/work.bin")), "a day of work\n");
    assert_eq!(file(&scratch.project().join(".gitignore")), ".env\ncache\n", "all or nothing");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    let told = scratch.landfall(&["status"]).ok();
    for part in [".env", "cache/deep/work.bin", "mv -n ", "`landfall run`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // The user follows the advice.
    for name in [".env", "cache"] {
        let mine = format!("{name}.mine");
        std::fs::rename(scratch.project().join(name), scratch.project().join(mine)).expect("moved");
    }
    scratch.landfall(&["run"]).ok();
    assert_eq!(file(&scratch.project().join(".env")), "landed\n");
    assert_eq!(file(&scratch.project().join("cache")), "landed\n");
    assert_eq!(file(&scratch.project().join(".env.mine")), "SECRET=1\n");
    assert_eq!(base(&scratch)["unpublished"], Value::Null);
}

#[test]
fn untracked_files_elsewhere_are_no_hindrance() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("notes.txt", "mine\n");
    scratch.landfall(&["run"]).ok();
    assert_eq!(file(&scratch.project().join("b.txt")), "b\n");
    assert_eq!(file(&scratch.project().join("notes.txt")), "mine\n");
}

#[test]
fn a_commit_of_the_person_between_verification_and_landing_is_verified_together() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    // The check itself is the moment: while it looks at the work for the first time, the person commits.
    let check = format!(
        "if [ -e b.txt ]; then touch {}; while [ ! -e {} ]; do sleep 0.02; done; fi\necho '1 passed, 0 failed'\n",
        began.display(),
        go.display()
    );
    scratch.file("test.sh", &check);
    scratch.commit("a check with a moment");
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || began.exists());
    scratch.file("person.txt", "hello\n");
    scratch.commit("person: person.txt");
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(std::time::Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
    assert_eq!(scratch.git(&["show", "main:person.txt"]), "hello");
    let again = |it: &Value| it["kind"] == "queue-checked" && it["data"]["report"]["reused"] != true;
    assert_eq!(
        scratch.log().iter().filter(|it| again(it)).count(),
        1,
        "verified again, with the person's commit"
    );
    assert_eq!(scratch.prompts("T1").len(), 1, "the agent is not bothered");
    let tree = scratch.landfall(&["certificate", "T1"]).json()["verification"]["tree"].clone();
    assert_eq!(tree, scratch.git(&["rev-parse", "main^{tree}"]));
}

#[test]
fn a_commit_of_the_person_while_landed_work_is_held_is_merged_and_verified() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("a.txt", "dirty\n");
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.git(&["checkout", "--", "a.txt"]);
    scratch.file("person.txt", "hello\n");
    scratch.commit("person");
    let theirs = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
    assert_eq!(scratch.git(&["show", "main:person.txt"]), "hello");
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), theirs, "on top of theirs");
    all_green(&scratch);
}

#[test]
fn a_commit_that_does_not_pass_together_with_held_work_is_not_published() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.file("a.txt", "dirty\n");
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.git(&["checkout", "--", "a.txt"]);
    scratch.file("test.sh", "[ ! -e b.txt ] || { echo 'no b wanted'; exit 1; }; echo '1 passed, 0 failed'\n");
    scratch.commit("person: no b");
    let theirs = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), theirs, "their branch stays as it is");
    let held = base(&scratch)["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("does not pass"), "{held}");
}

#[test]
fn a_commit_that_conflicts_with_held_work_is_told_in_a_sentence() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "landed"), &[]);
    scratch.file("a.txt", "dirty\n");
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.git(&["checkout", "--", "a.txt"]);
    scratch.file("b.txt", "mine\n");
    scratch.commit("person");
    let theirs = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), theirs);
    let held = base(&scratch)["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("conflict") && held.contains("b.txt"), "{held}");
}

#[test]
fn a_merge_half_way_in_the_checkout_holds() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let head = scratch.git(&["rev-parse", "HEAD"]);
    scratch.file(".git/MERGE_HEAD", &format!("{head}\n"));
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    let held = base(&scratch)["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("MERGE_HEAD"), "{held}");
    assert_eq!(scratch.git(&["rev-parse", "main"]), head);
}

// Where the base branch is.

#[test]
fn a_base_that_is_not_checked_out_is_moved_and_the_checkout_left_alone() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[project]\nbase = \"main\"");
    scratch.git(&["checkout", "--quiet", "-b", "feature"]);
    scratch.file("a.txt", "dirty on another branch\n");
    let feature = scratch.git(&["rev-parse", "feature"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
    assert_eq!(scratch.git(&["rev-parse", "feature"]), feature);
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M a.txt");
    assert!(!scratch.project().join("b.txt").exists());
}

/// The project on a branch of its own, and `main` in a linked worktree.
fn elsewhere() -> (ScratchProject, PathBuf) {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[project]\nbase = \"main\"");
    scratch.git(&["checkout", "--quiet", "-b", "feature"]);
    let other = scratch.root().join("other");
    scratch.git(&["worktree", "add", "--quiet", &other.display().to_string(), "main"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    (scratch, other)
}

#[test]
fn a_base_checked_out_clean_in_another_worktree_is_moved_there() {
    let (scratch, other) = elsewhere();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(file(&other.join("b.txt")), "b\n");
    assert_eq!(scratch.git(&["-C", &other.display().to_string(), "status", "--porcelain"]), "");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_base_checked_out_dirty_in_another_worktree_holds() {
    let (scratch, other) = elsewhere();
    std::fs::write(other.join("a.txt"), "mine\n").expect("ours");
    let before = scratch.git(&["rev-parse", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    assert_eq!(file(&other.join("a.txt")), "mine\n");
    let held = base(&scratch)["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("other") && held.contains("a.txt"), "{held}");
}

// Other ways to publish.

#[test]
fn publish_none_leaves_the_branch_alone_and_the_work_can_be_fetched() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[land]\npublish = \"none\"");
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    done(&scratch, &["T1"]);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    let store = scratch.state().join("store.git").display().to_string();
    let told = scratch.landfall(&["status"]).ok();
    assert!(told.contains(&format!("`git fetch {store} refs/landfall/base`")), "{told}");
    let commit = scratch.landfall(&["certificate", "T1"]).json()["landing"]["commit"]
        .as_str()
        .expect("one")
        .to_owned();
    let listed = scratch.git(&["ls-remote", &store]);
    let name = listed.lines().find(|line| line.starts_with(&commit)).and_then(|line| line.split('\t').nth(1));
    scratch.git(&["fetch", "--quiet", &store, name.expect("a ref names it")]);
    assert_eq!(scratch.git(&["show", "FETCH_HEAD:b.txt"]), "b");
}

fn with_remote() -> (ScratchProject, PathBuf) {
    let scratch = ScratchProject::new(LANDFALL);
    let remote = scratch.root().join("remote.git");
    let path = remote.display().to_string();
    scratch.git(&["init", "--quiet", "--bare", "--initial-branch=main", &path]);
    scratch.git(&["remote", "add", "upstream", &path]);
    scratch.more_settings("[land]\npublish = \"push\"\nremote = \"upstream\"");
    scratch.git(&["push", "--quiet", "upstream", "main"]);
    (scratch, remote)
}

#[test]
fn publish_push_pushes_the_base() {
    let (scratch, remote) = with_remote();
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let remote = remote.display().to_string();
    assert_eq!(scratch.git(&["-C", &remote, "show", "main:b.txt"]), "b");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "the local branch is the person's to pull");
}

/// What a colleague has of a remote.
struct Colleague<'a> {
    scratch: &'a ScratchProject,
    clone: String,
}

impl<'a> Colleague<'a> {
    fn of(scratch: &'a ScratchProject, remote: &Path) -> Self {
        let clone = scratch.root().join("colleague").display().to_string();
        scratch.git(&["clone", "--quiet", &remote.display().to_string(), &clone]);
        Self { scratch, clone }
    }

    fn git(&self, args: &[&str]) -> String {
        self.scratch.git(&[&["-C", &self.clone], args].concat())
    }

    /// Commits a file and pushes it, by `push` and what else is said. Gives the commit.
    fn pushes(&self, file: &str, more: &[&str]) -> String {
        std::fs::write(Path::new(&self.clone).join(file), "theirs\n").expect("ours");
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "theirs"]);
        self.git(&[&["push", "--quiet"], more].concat());
        self.git(&["rev-parse", "HEAD"])
    }
}

fn queue_hold(scratch: &ScratchProject) -> serde_json::Value {
    scratch.landfall(&["--json", "queue"]).json()["hold"].clone()
}

#[test]
fn a_push_that_the_remote_refuses_is_held_and_never_forced() {
    let (scratch, remote) = with_remote();
    let hook = remote.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho 'not today'\nexit 1\n").expect("ours");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let remote = remote.display().to_string();
    let before = scratch.git(&["-C", &remote, "rev-parse", "main"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["-C", &remote, "rev-parse", "main"]), before, "never by force");
    let held = base(&scratch)["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("refused") && held.contains("not today"), "{held}");
    std::fs::remove_file(hook).expect("ours");
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["-C", &remote, "show", "main:b.txt"]), "b");
}

#[test]
fn what_a_colleague_pushes_is_taken_in_and_work_lands_on_top_of_it() {
    let (scratch, remote) = with_remote();
    let colleague = Colleague::of(&scratch, &remote);
    let one = colleague.pushes("one.txt", &[]);
    let local = scratch.git(&["rev-parse", "main"]);
    scratch.task("First", &writes("b.txt", "b"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let far = remote.display().to_string();
    assert_eq!(scratch.git(&["-C", &far, "show", "main:b.txt"]), "b");
    scratch.git(&["-C", &far, "merge-base", "--is-ancestor", &one, "main"]);
    // And again, with what is known by now.
    colleague.git(&["pull", "--quiet", "--ff-only"]);
    let two = colleague.pushes("two.txt", &[]);
    scratch.task("Second", &writes("c.txt", "c"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    done(&scratch, &["T1", "T2"]);
    scratch.git(&["-C", &far, "merge-base", "--is-ancestor", &two, "main"]);
    assert_eq!(scratch.git(&["-C", &far, "show", "main:c.txt"]), "c");
    assert_eq!(scratch.git(&["rev-parse", "main"]), local, "the local branch is the person's to pull");
}

#[test]
fn a_push_while_an_agent_works_is_brought_together_with_its_work() {
    let (scratch, remote) = with_remote();
    let folder = open(&scratch);
    let (began, go) = (folder.join("began"), folder.join("go"));
    let script = format!(
        "run = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{}",
        began.display(),
        go.display(),
        writes("b.txt", "b")
    );
    scratch.task("First", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent", || began.exists());
    // The engine may still be publishing what it found when it started.
    let far = remote.display().to_string();
    scratch.eventually("the project's own commits are pushed", || {
        scratch.git(&["-C", &far, "rev-parse", "main"]) == scratch.git(&["rev-parse", "main"])
    });
    let theirs = Colleague::of(&scratch, &remote).pushes("one.txt", &[]);
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.git(&["-C", &far, "show", "main:b.txt"]), "b");
    scratch.git(&["-C", &far, "merge-base", "--is-ancestor", &theirs, "main"]);
}

#[test]
fn a_remote_that_was_rewritten_holds_the_queue_until_the_person_says_what_is_meant() {
    let (scratch, remote) = with_remote();
    let far = remote.display().to_string();
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    let colleague = Colleague::of(&scratch, &remote);
    colleague.git(&["reset", "--quiet", "--hard", "HEAD^1"]);
    let theirs = colleague.pushes("one.txt", &["--force"]);
    scratch.task("Second", &writes("c.txt", "c"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(
        scratch.git(&["-C", &far, "rev-parse", "main"]),
        theirs,
        "nothing is pushed over what they did"
    );
    let hold = queue_hold(&scratch);
    assert_eq!(hold["why"], "rewritten", "{hold}");
    let reason = hold["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("`main` of `upstream` was rewritten"), "{reason}");

    scratch.landfall(&["queue", "resume"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    done(&scratch, &["T2"]);
    scratch.git(&["-C", &far, "merge-base", "--is-ancestor", &theirs, "main"]);
    let files = scratch.git(&["-C", &far, "ls-tree", "--name-only", "main"]);
    let has = |name: &str| files.lines().any(|file| file == name);
    assert!(has("c.txt") && has("one.txt") && !has("b.txt"), "their branch as it was, and T2: {files}");
}

#[test]
fn a_branch_that_is_gone_from_the_remote_holds_the_queue_and_is_not_made_up() {
    let (scratch, remote) = with_remote();
    let far = remote.display().to_string();
    scratch.task("First", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    let was = scratch.git(&["-C", &far, "rev-parse", "main"]);
    scratch.git(&["-C", &far, "branch", "--quiet", "kept", "main"]);
    scratch.git(&["-C", &far, "update-ref", "-d", "refs/heads/main"]);
    scratch.task("Second", &writes("c.txt", "c"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(queue_hold(&scratch)["why"], "deleted");
    assert_eq!(scratch.git(&["-C", &far, "branch", "--list", "main"]), "", "it is not made up");
    assert_ne!(scratch.landfall(&["queue", "resume"]).code, Some(0), "it is still gone");
    scratch.git(&["-C", &far, "update-ref", "refs/heads/main", &was]);
    scratch.landfall(&["queue", "resume"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    done(&scratch, &["T2"]);
    assert_eq!(scratch.git(&["-C", &far, "show", "main:c.txt"]), "c");
}

#[test]
fn a_base_that_a_stranger_moved_is_neither_built_upon_nor_published() {
    let scratch = ScratchProject::new(LANDFALL);
    off(&scratch);
    let before = scratch.git(&["rev-parse", "main"]);
    let script = r#"
signal = "complete"
run = ["sh", "-c", "git --git-dir=$(dirname $(head -n 1 .git/objects/info/alternates)) fetch -q . HEAD; git --git-dir=$(dirname $(head -n 1 .git/objects/info/alternates)) update-ref refs/landfall/base FETCH_HEAD"]
[[write]]
path = "evil.txt"
text = "unproved\n"
"#;
    scratch.task("Moves the base itself", script, &[]);
    let run = scratch.landfall(&["run"]);
    assert_ne!(run.code, Some(0), "{}", run.out);
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "the person's branch is where it was");
    assert_eq!(scratch.status("T1"), "failed", "{}", scratch.why("T1"));
    assert!(scratch.why("T1").contains("neither a landing nor you"), "{}", scratch.why("T1"));
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn landed_work_is_published_at_the_end_of_the_run_if_the_user_has_made_way_by_then() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let go = folder.join("go");
    scratch.file("notes.txt", "mine\n");
    scratch.git(&["add", "notes.txt"]);
    scratch.task("Lands", &writes("x.txt", "landed"), &[]);
    let script = format!(
        "signal = \"blocked:nothing to land\"\nrun = [\"sh\", \"-c\", \"while [ ! -e {} ]; do sleep 0.02; done\"]\n",
        go.display()
    );
    scratch.task("Waits", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the change to be in the way", || {
        assert!(!run.is_over(), "the second agent waits: {}", scratch.heard());
        scratch.landfall(&["status"]).out.contains("notes.txt")
    });
    scratch.git(&["rm", "--quiet", "--cached", "notes.txt"]);
    std::fs::write(go, "").expect("ours");
    run.wait(Duration::from_secs(120));
    assert_eq!(scratch.git(&["show", "main:x.txt"]), "landed", "{}", scratch.heard());
    assert_eq!(scratch.git(&["status", "--porcelain"]), "?? notes.txt");
}
