//! `landfall project module` and `landfall project import AiTasks/`: tasks that live as folders.

use std::fs;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

fn metadata(title: &str, status: &str, more: &str) -> String {
    format!("{{\n  \"title\": \"{title}\",\n  \"status\": \"{status}\"{more}\n}}\n")
}

const TARGET: &str = "# T\n\n## Objective\n\nPeople are greeted.\n\n## Requirements\n\n- by name\n";

#[test]
fn a_module_is_made_filled_and_imported() {
    let scratch = ScratchProject::new(LANDFALL);
    let said = scratch.landfall(&[
        "module",
        "init",
        "greeter",
        "--title",
        "Greet people",
        "--tags",
        "a,b",
        "--worktree",
    ]);
    assert!(said.err.contains("AiTasks/greeter/.target.md"), "{}", said.err);
    let out = said.ok();
    for file in
        [".gitignore", "AiTasks/.type-registry.md", "AiTasks/greeter/.index.json", "AiTasks/.index.json"]
    {
        assert!(out.contains(&format!("wrote {file}\n")), "{out}");
        assert!(scratch.project().join(file).is_file(), "{file}");
    }
    let twice = scratch.landfall(&["module", "init", "greeter"]);
    assert_eq!(twice.code, Some(2), "{}", twice.err);
    assert!(twice.err.contains("`AiTasks/greeter` is there already"), "{}", twice.err);
    let name = scratch.landfall(&["module", "init", "../x"]);
    assert!(name.err.contains("cannot name a module") && name.code == Some(2), "{}", name.err);
    scratch.git(&["branch", "task/other"]);
    let branch = scratch.landfall(&["module", "init", "other"]);
    assert!(branch.err.contains("the branch `task/other` is there already"), "{}", branch.err);
    assert!(!scratch.project().join("AiTasks/other").exists(), "nothing is written when it is refused");

    let empty = scratch.landfall(&["--json", "import", "AiTasks/", "--dry-run"]).json();
    assert_eq!(empty["tasks"][0]["draft"], true, "an empty target is not started: {empty}");
    scratch.file("AiTasks/greeter/.target.md", TARGET);
    let said = scratch.landfall(&["import", "AiTasks/"]);
    assert_eq!(said.clone().ok(), "T1 Greet people\n", "{}", said.err);
    let task = scratch.landfall(&["--json", "show", "T1"]).json();
    assert_eq!(
        (&task["source"], &task["flow"], &task["tags"][0]),
        (&"module:AiTasks/greeter".into(), &"lifecycle".into(), &"a".into())
    );
    assert_eq!(task["criteria"][0], "by name");
    let again = scratch.landfall(&["import", "AiTasks/greeter"]);
    assert!(again.err.contains("there already: T1 Greet people"), "{}", again.err);
}

#[test]
fn needs_of_modules_become_needs_of_tasks() {
    let scratch = ScratchProject::new(LANDFALL);
    let put = |name: &str, status: &str, more: &str| {
        scratch.file(&format!("AiTasks/{name}/.index.json"), &metadata(name, status, more));
        scratch.file(&format!("AiTasks/{name}/.target.md"), TARGET);
    };
    put("app", "draft", r#", "depends_on": ["base", "done", {"module": "far", "min_status": "review"}]"#);
    put("base", "planning", "");
    put("done", "complete", "");
    put("far", "executing", "");
    put("stuck", "blocked", "");
    // One module is asked for; what it needs and is not far enough comes with it.
    let said = scratch.landfall(&["import", "AiTasks/app"]);
    assert_eq!(said.clone().ok(), "T1 app\nT2 base\n", "{}", said.err);
    let app = scratch.landfall(&["--json", "show", "T1"]).json();
    assert_eq!(app["needs"], serde_json::json!(["T2"]), "{app}");
    let rest = scratch.landfall(&["import", "AiTasks"]);
    assert_eq!(rest.clone().ok(), "T3 far\nT4 stuck\n", "{}", rest.err);
    assert!(rest.err.contains("left out: module that is complete (1)"), "{}", rest.err);
    assert_eq!(scratch.status("T4"), "draft", "what is blocked waits for a person");

    put("lost", "draft", r#", "depends_on": ["nowhere"]"#);
    let lost = scratch.landfall(&["import", "AiTasks"]);
    assert_eq!(lost.code, Some(2), "{}", lost.err);
    assert!(lost.err.contains("it needs the module `nowhere`, which is not there"), "{}", lost.err);
}

#[test]
fn a_broken_module_is_refused_then_mended_from_the_last_commit() {
    let scratch = ScratchProject::new(LANDFALL);
    let good = metadata("Good", "review", ", \"mine\": 1");
    scratch.file("AiTasks/m/.index.json", &good);
    scratch.file("AiTasks/m/.target.md", TARGET);
    scratch.commit("a module");
    scratch.file("AiTasks/m/.index.json", "{\"title\": \"Torn");
    let refused = scratch.landfall(&["import", "AiTasks"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    for words in ["AiTasks/m/.index.json:1: this is no JSON", "landfall project module mend AiTasks/m"] {
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    let mended = scratch.landfall(&["--json", "module", "mend"]).json();
    assert_eq!(mended["mended"][0]["done"], "restored from the last commit", "{mended}");
    let read = |path: &str| fs::read_to_string(scratch.project().join(path)).expect("it is there");
    assert_eq!(read("AiTasks/m/.index.json"), good);
    assert_eq!(read(mended["mended"][0]["copy"].as_str().expect("text")), "{\"title\": \"Torn");
    assert!(
        read(mended["mended"][0]["note"].as_str().expect("text")).contains("restored from the last commit")
    );
    let fine = scratch.landfall(&["module", "mend", "AiTasks/m"]);
    assert!(fine.err.contains("1 module fine") && fine.out.is_empty(), "{}{}", fine.out, fine.err);
    assert_eq!(scratch.landfall(&["import", "AiTasks"]).ok(), "T1 Good\n");
}

#[test]
fn folders_without_modules_and_formats_of_files_are_refused() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("src/x.txt", "x");
    for (args, words) in [
        (&["import", "src"][..], "is not a folder of modules"),
        (&["import", "src", "--format", "prd"], "is a folder"),
        (&["import", "..", "--dry-run"], "is not a folder of modules"),
        (&["import", "."], "there are no task modules"),
        (&["import", "src/x.txt", "--format", "modules"], "task modules are folders"),
    ] {
        let said = scratch.landfall(args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_module_is_committed_when_that_is_asked_for_and_nothing_else_with_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.git(&["config", "user.name", "A Person"]);
    scratch.git(&["config", "user.email", "person@example.com"]);
    scratch.file("loose.txt", "mine\n");
    let made =
        scratch.landfall(&["--json", "module", "init", "greeter", "--title", "Greet", "--commit"]).json();
    let head = scratch.git(&["rev-parse", "HEAD"]);
    assert_eq!(made["commit"], head.as_str(), "{made}");
    assert_eq!(scratch.git(&["log", "-1", "--format=%s"]), "ai-cli-task(greeter):init Greet");
    let files = scratch.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert!(files.contains("AiTasks/greeter/.target.md") && !files.contains("loose.txt"), "{files}");
    assert!(scratch.git(&["branch", "--list", "task/*"]).is_empty(), "no branch is made");
    scratch.file("AiTasks/greeter/.target.md", "changed\n");
    let dirty = scratch.landfall(&["module", "init", "other", "--commit"]);
    assert!(
        dirty.code == Some(2) && dirty.err.contains("1 changed files are not committed"),
        "{}",
        dirty.err
    );
    assert!(!scratch.project().join("AiTasks/other").exists());
}

#[test]
fn a_folder_that_another_session_works_in_is_not_cancelled() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("AiTasks/m/.index.json", &metadata("M", "draft", ""));
    scratch.file("AiTasks/m/.target.md", TARGET);
    scratch.landfall(&["import", "AiTasks"]).ok();
    let lock = |pid: u32| {
        format!("{{\"session\": \"other\", \"pid\": {pid}, \"timestamp\": \"2026-01-01T00:00:00Z\"}}\n")
    };
    scratch.file("AiTasks/m/.lock", &lock(std::process::id()));
    let refused = scratch.landfall(&["cancel", "T1"]);
    assert!(refused.err.contains("locked by session `other`"), "{}", refused.err);
    assert_eq!(refused.code, Some(6), "{}", refused.err);
    assert_eq!(scratch.status("T1"), "ready");
    // A dead one's lock is nobody's.
    scratch.file("AiTasks/m/.lock", &lock(4_000_000));
    scratch.landfall(&["cancel", "T1"]).ok();
    assert_eq!(scratch.status("T1"), "cancelled");
    assert!(!scratch.project().join("AiTasks/m/.lock").exists());
}
