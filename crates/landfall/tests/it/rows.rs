//! Rows of design 0011 that are seen only from outside, and the table itself: every row names a test, and every test
//! that is named is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landfall_testkit::ScratchProject;

use crate::lifecycle::{GOOD, covers, plans, says, staged, works};
use crate::styles::{Style, in_styles};

fn behaviour_02_a_module_without_a_target_is_not_begun_and_says_what_to_fill_in(style: Style) {
    let scratch = style.scratch();
    scratch.landfall(&["module", "init", "auth"]).ok();
    scratch.commit("a module");
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["edit", "T1", "--ready"]).ok();
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert!(scratch.status("T1") == "blocked" && why.contains("fill .target.md first"), "{why}");
    assert!(scratch.prompts("T1").is_empty(), "no agent ran");
}
in_styles!(behaviour_02_a_module_without_a_target_is_not_begun_and_says_what_to_fill_in: fresh, session);

fn behaviour_08_a_task_with_a_plan_stops_at_its_iterations_and_at_its_time_with_the_reason(style: Style) {
    let (scratch, log) = stops_after_its_plan(style, "iterations_max = 2", "");
    let why = scratch.why("T1");
    assert!(scratch.status("T1") == "failed" && why.contains("after all 2 iterations"), "{why}");
    assert!(log.contains("a plan of 1 step"), "what was done before counts:\n{log}");
    // The step that the time runs out in hangs. How much time those before it need depends on what else the machine does.
    let is_planned = [4, 16, 64].into_iter().any(|seconds| {
        let limit = format!("task_limit = \"{seconds}s\"\ngrace = \"1s\"");
        let (scratch, log) = stops_after_its_plan(style, &limit, "sleep = \"300s\"\n");
        let why = scratch.why("T1");
        assert!(scratch.status("T1") == "timeout" && why.contains("task_limit"), "{limit}: {why}");
        log.contains("a plan of 1 step")
    });
    assert!(is_planned, "what was done before counts");
}

/// A task with a plan that ends at a limit in the step after it: its project and its log.
fn stops_after_its_plan(style: Style, limit: &str, hangs: &str) -> (ScratchProject, String) {
    let scratch = style.scratch();
    scratch.more_settings(&format!("[run]\n{limit}"));
    let script = [
        plans("plan", "one", 1, ""),
        says("check-plan", GOOD),
        works("exec", "one.txt", "\"complete\""),
        says("check-exec", GOOD),
    ];
    let script = script.concat().replace("[[step.exec]]\n", &format!("[[step.exec]]\n{hangs}"));
    scratch.task("First", &style.script(&script), &["--flow", "lifecycle"]);
    scratch.landfall(&["run"]);
    let log = scratch.landfall(&["log", "T1"]).ok();
    assert!(!log.contains("judged, post-exec"), "{limit}:\n{log}");
    (scratch, log)
}
in_styles!(behaviour_08_a_task_with_a_plan_stops_at_its_iterations_and_at_its_time_with_the_reason: fresh, session);

fn behaviour_15_a_broken_word_of_an_agent_is_told_and_changes_nothing(style: Style) {
    let scratch = style.scratch();
    let script = "say = [\"<landfall>PROGRESS:very</landfall>\", \"<landfall>BLOCKED</landfall>\"]\n\
                  signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"";
    scratch.task("First", &style.script(script), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let warned = scratch.facts("T1", "warned");
    assert_eq!(warned.iter().filter(|it| it.to_string().contains("PROGRESS:very")).count(), 1, "{warned:?}");
}
in_styles!(behaviour_15_a_broken_word_of_an_agent_is_told_and_changes_nothing: fresh, session);

#[test]
fn c22_edge_15_a_stage_that_is_given_up_is_kept_under_a_ref_and_only_its_own_branch_goes_back() {
    let scratch = staged(
        Style::Fresh,
        &["it greets", "it leaves"],
        &[
            plans("plan", "one", 1, "Covers: R1, R2"),
            says("check-plan", GOOD),
            works("exec", "one.txt", "\"complete\""),
            works("exec", "bad.txt", "\"complete\""),
            works("exec", "good.txt", "\"complete\""),
            plans("re-plan", "another", 1, "Covers: R1, R2"),
            says("check-re-plan", GOOD),
            says("check-exec", &covers(&[(1, 0.5), (2, 0.5)])),
            says("check-exec", &covers(&[(1, 0.5), (2, 0.5)])),
            says("check-exec", &covers(&[(1, 1.0), (2, 1.0)])),
        ],
    );
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    scratch.landfall(&["answer", "T1", "OK"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(files.contains("one.txt") && files.contains("good.txt"), "{files}");
    assert!(!files.contains("bad.txt"), "what was given up does not land: {files}");
    assert_ne!(scratch.kept("T1", "bad.txt", "x\n"), [""; 0], "and is not lost");
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), before, "nothing but the landing moved main");
    // The record of it lies outside of the branch: whoever plans next reads it.
    let told =
        scratch.prompts("T1").iter().filter(|it| it.contains("The last stage was rolled back")).count();
    assert!(told > 0, "the planner is told");
}

#[test]
fn c29_the_plugin_knows_the_verbs_of_all() {
    let skill = std::fs::read_to_string(root().join("plugin/skills/auto/SKILL.md")).expect("the skill");
    for verb in ["start", "stop", "status", "load", "--stop", "--status", "停止", "状态", "启动"] {
        assert!(skill.contains(verb), "`{verb}` is not known");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the table: a row and the tests that show it, or why there is none.
fn table() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("docs/design/0011-rows.md")).expect("the table");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.map(|(row, tests)| (row.trim().to_owned(), tests.trim().to_owned()));
    rows.filter(|(row, _)| row.ends_with(|last: char| last.is_ascii_digit())).collect()
}

/// The names of all tests in the sources.
fn tests() -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            for told in text.split("\non_both!(").skip(1) {
                let stories = told.split(");").next().unwrap_or_default().split(',');
                names.extend(stories.map(|story| story.trim().to_owned()).filter(|story| !story.is_empty()));
            }
            let mut lines = text.lines().map(str::trim);
            while let Some(line) = lines.next() {
                names.extend(
                    line.strip_prefix("in_styles!(")
                        .and_then(|rest| rest.split_once(':'))
                        .map(|it| it.0.to_owned()),
                );
                if line != "#[test]" {
                    continue;
                }
                let name = lines.find_map(|line| line.strip_prefix("fn ")?.split_once('(')).map(|it| it.0);
                names.extend(name.map(str::to_owned));
            }
        }
    }
    names
}

#[test]
fn every_row_that_was_decided_has_a_test_that_is_named_after_it() {
    let (table, tests) = (table(), tests());
    let decisions = (1..=45).map(|number| (format!("C{number}"), format!("c{number:02}_")));
    let edges = (1..=25).map(|number| (format!("edge {number}"), format!("edge_{number:02}_")));
    let behaviours =
        (1..=21).map(|number| (format!("behaviour {number}"), format!("behaviour_{number:02}_")));
    let mut wrong = Vec::new();
    for (row, tag) in decisions.chain(edges).chain(behaviours) {
        let Some(named) = table.get(&row) else {
            wrong.push(format!("{row} is not in the table"));
            continue;
        };
        if named.starts_with("later:") {
            continue;
        }
        for name in named.split(", ").map(|name| name.trim_matches('`')) {
            if !name.contains(&tag) {
                wrong.push(format!("{row}: `{name}` is not named after it"));
            }
            if !tests.iter().any(|test| test == name) {
                wrong.push(format!("{row}: there is no test `{name}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The styles in which a behaviour is told, by the names of tests.
fn told_in(number: u32) -> Vec<&'static str> {
    let folder = root().join("crates/landfall/tests/it");
    let tag = format!("behaviour_{number:02}_");
    let mut words = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of tests").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a source");
        for call in text.split("in_styles!(").skip(1) {
            let Some((name, styles)) = call.split(')').next().and_then(|it| it.split_once(':')) else {
                continue;
            };
            if name.contains(&tag) {
                words.extend(styles.split(',').map(|word| word.trim().to_owned()));
            }
        }
        for style in ["self", "dispatch"] {
            words.extend(text.contains(&format!("fn {tag}{style}_")).then(|| style.to_owned()));
        }
    }
    let told = |style: &&str| words.iter().any(|word| word == style || (word == "own" && *style == "self"));
    STYLES.into_iter().filter(told).collect()
}

const STYLES: [&str; 4] = ["fresh", "session", "self", "dispatch"];

#[test]
fn every_behaviour_is_told_in_the_styles_that_the_table_names() {
    let table = table();
    let page = std::fs::read_to_string(root().join("docs/design/0011-rows.md")).expect("the table");
    for number in 1..=21 {
        let row = table
            .get(&format!("style of behaviour {number}"))
            .unwrap_or_else(|| panic!("{number} has no row"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let named: Vec<&str> = STYLES
            .into_iter()
            .zip(&cells)
            .filter(|(_, cell)| **cell == "yes")
            .map(|(style, _)| style)
            .collect();
        assert_eq!(told_in(number), named, "behaviour {number}");
        for cell in cells.into_iter().filter(|cell| *cell != "yes") {
            assert!(page.contains(&format!("\n- {cell}: ")), "behaviour {number}: `{cell}` is no reason");
        }
    }
}
