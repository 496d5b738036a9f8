//! Finding, reading, making: on a real disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use landfall_trackers::modules::entry::EntryFolder;
use landfall_trackers::modules::folder::{FolderError, ModuleKind, find_at};
use landfall_trackers::modules::init::{
    InitError, ModuleInitContext, ModuleInitRequest, plan_init, read_init_context,
};
use landfall_trackers::modules::spec::{find_unmet_needs, read_wanted_task};
use landfall_trackers::modules::write::FileError;
use landfall_trackers::modules::{
    ExpectedFile, MetadataFormat, ModuleLocation, ModuleStatus, ModuleWrite, apply, find_modules, read,
};

use super::{FORMS, NOW, fixture, fixtures, module};

fn put(project: &Path, path: &str, text: &str) {
    let file = project.join(path);
    fs::create_dir_all(file.parent().expect("it has one")).expect("a scratch folder can be made");
    fs::write(file, text).expect("a scratch file can be written");
}

fn names(places: &[ModuleLocation]) -> Vec<String> {
    places.iter().map(ModuleLocation::shown_path).collect()
}

#[test]
fn modules_are_found_below_their_roots_and_nowhere_else() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let root = project.path();
    put(root, "TASK/login/.index.md", &fixture("index-md/valid-plain.md"));
    put(root, "AiTasks/search/.index.json", &fixture("index-json/valid-busy.json"));
    put(root, "AiTasks/fresh/.target.md", "make it so");
    put(root, ".worktrees/task-nb/.working/.status.json", &fixture("status-json/valid-stages.json"));
    put(root, "AiTasks/.experiences/software/x.md", "x");
    put(root, "AiTasks/.index.json", "[]");
    put(root, "AiTasks/odd name/.index.json", "{}");
    put(root, "AiTasks/empty/readme.txt", "x");
    put(root, ".worktrees/other/.working/.status.json", "{}");
    put(root, ".worktrees/task-bare/src/main.rs", "x");
    put(root, "src/AiTasks/deep/.index.json", "{}");
    symlink(root.join("AiTasks/search"), root.join("AiTasks/linked")).expect("a link can be made");
    let found = find_modules(root).expect("it can be looked at");
    assert_eq!(
        names(&found.modules),
        ["TASK/login", "AiTasks/fresh", "AiTasks/search", ".worktrees/task-nb/.working"]
    );
    let passed: Vec<String> = found.passed.iter().map(|it| it.path.display().to_string()).collect();
    assert_eq!(passed, ["AiTasks/empty", "AiTasks/linked", "AiTasks/odd name"]);

    let at = |path: &str| find_at(root, Path::new(path)).map(|found| names(&found.modules));
    assert_eq!(at("AiTasks/").expect("a root"), ["AiTasks/fresh", "AiTasks/search"]);
    assert_eq!(at("AiTasks/search").expect("one"), ["AiTasks/search"]);
    assert_eq!(at(".worktrees/task-nb").expect("a notebook"), [".worktrees/task-nb/.working"]);
    assert_eq!(at(root.join("TASK").to_str().expect("plain")).expect("absolute"), ["TASK/login"]);
    assert!(matches!(at("src"), Err(FolderError::Outside(_))));
    assert!(matches!(at("AiTasks/../.."), Err(FolderError::Outside(_))));
    assert!(matches!(at("AiTasks/linked"), Err(FolderError::Link(_))));
    assert!(matches!(at("AiTasks/odd name"), Err(FolderError::Name(_))));
    assert!(matches!(at("nowhere"), Err(FolderError::Io { .. })));
}

#[test]
fn a_root_that_is_a_link_is_not_entered() {
    let (project, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
    put(other.path(), "x/.index.json", "{}");
    symlink(other.path(), project.path().join("AiTasks")).expect("a link can be made");
    assert!(find_modules(project.path()).expect("it can be looked at").modules.is_empty());
}

#[test]
fn nothing_is_written_or_read_through_a_link_or_outside() {
    let (project, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
    let root = project.path();
    put(root, "AiTasks/m/.index.json", "{}");
    symlink(other.path(), root.join("AiTasks/m/.analysis")).expect("a link can be made");
    put(other.path(), "secret", "s");
    symlink(other.path().join("secret"), root.join("AiTasks/m/.plan.md")).expect("a link can be made");
    for path in ["AiTasks/m/.analysis/x.md", "../x", "/etc/landfall-x", "AiTasks/m/../../../x", ""] {
        let error = apply(root, &[ModuleWrite::new(path, "x")]).expect_err(path);
        assert!(matches!(error, FileError::Link(_) | FileError::Outside(_)), "{path}: {error}");
    }
    assert_eq!(fs::read_dir(other.path()).expect("it is there").count(), 1, "nothing came there");
    assert!(apply(root, &[ModuleWrite::new("AiTasks/m/.plan.md", "x")]).is_err());
    assert_eq!(fs::read_to_string(other.path().join("secret")).expect("it is there"), "s");
    let seen = read(&find_modules(root).expect("found").modules[0]).expect("it can be read");
    assert_eq!(seen.file_text(".plan.md"), None);
    assert!(seen.warnings.iter().any(|it| it.contains("is a link")), "{:?}", seen.warnings);
}

#[test]
fn a_write_happens_only_over_what_was_expected() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let root = project.path();
    let first = ModuleWrite::new("a/b.md", "one");
    assert!(apply(root, std::slice::from_ref(&first)).expect("written").refused.is_empty());
    assert!(
        apply(root, std::slice::from_ref(&first)).expect("there already").refused.is_empty(),
        "the same again is no trouble"
    );
    let other = ModuleWrite::new("a/b.md", "two");
    assert_eq!(apply(root, &[other]).expect("looked at").refused, ["a/b.md"]);
    let put_over = |text: &str, over: &ModuleWrite| ModuleWrite::Put {
        path: "a/b.md".to_owned(),
        bytes: text.as_bytes().to_vec(),
        expect: ExpectedFile::Digest(over.digest()),
    };
    let second = put_over("two", &first);
    assert!(apply(root, std::slice::from_ref(&second)).expect("written").refused.is_empty());
    fs::write(root.join("a/b.md"), "a person's").expect("they may");
    assert_eq!(apply(root, &[put_over("three", &second)]).expect("looked at").refused, ["a/b.md"]);
    assert_eq!(fs::read_to_string(root.join("a/b.md")).expect("it is there"), "a person's");
    let moved = |to: &str| ModuleWrite::Move {
        from: "a/b.md".into(),
        to: to.into(),
        expect: ModuleWrite::new("", "a person's").digest(),
    };
    fs::write(root.join("a/c.md"), "taken").expect("they may");
    assert_eq!(apply(root, &[moved("a/c.md")]).expect("looked at").refused, ["a/c.md"]);
    for _ in 0..2 {
        assert!(apply(root, &[moved("z/d.md")]).expect("moved, or moved before").refused.is_empty());
    }
    assert!(!root.join("a/b.md").exists() && root.join("z/d.md").exists());
    assert_eq!(fs::read_dir(root.join("a")).expect("it is there").count(), 1, "nothing is left beside");
}

#[test]
fn a_file_that_is_too_large_is_told_and_not_touched() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let place = module(project.path(), MetadataFormat::IndexJson, b"{}");
    let large = "x".repeat(1_100_000);
    fs::write(place.to_path().join(".plan.md"), &large).expect("written");
    let seen = read(&place).expect("it can be read");
    assert!(seen.warnings.iter().any(|it| it.contains("at most")), "{:?}", seen.warnings);
    assert!(apply(&place.to_path(), &[ModuleWrite::new(".plan.md", "small")]).is_err());
}

#[test]
fn the_newest_of_bugfix_and_analysis_guides_a_fix() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let place = module(project.path(), MetadataFormat::IndexJson, b"{}");
    put(project.path(), "AiTasks/m/.analysis/2026-03-01-post-exec-needs-fix.md", "a");
    put(project.path(), "AiTasks/m/.analysis/.summary.md", "s");
    put(project.path(), "AiTasks/m/.bugfix/2026-03-02-tests-red.md", "b");
    let seen = read(&place).expect("read");
    assert_eq!(
        seen.latest_entry(EntryFolder::Analysis).as_deref(),
        Some(".analysis/2026-03-01-post-exec-needs-fix.md")
    );
    assert_eq!(seen.latest_guidance().as_deref(), Some(".bugfix/2026-03-02-tests-red.md"));
    put(project.path(), "AiTasks/m/.analysis/2026-03-03-mid-exec-blocked.md", "c");
    assert_eq!(
        read(&place).expect("read").latest_guidance().as_deref(),
        Some(".analysis/2026-03-03-mid-exec-blocked.md")
    );
    // The oldest folders have one file instead of many.
    let old = tempfile::tempdir().expect("a scratch folder");
    let place = module(old.path(), MetadataFormat::IndexMd, b"---\n---\n");
    put(old.path(), "TASK/m/.bugfix.md", "b");
    assert_eq!(read(&place).expect("read").latest_guidance().as_deref(), Some(".bugfix.md"));
}

#[test]
fn where_two_files_say_it_the_newer_form_counts() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let place =
        module(project.path(), MetadataFormat::IndexJson, br#"{"title": "json", "status": "review"}"#);
    put(project.path(), "AiTasks/m/.index.md", "---\ntitle: md\nstatus: draft\n---\n");
    let seen = read(&place).expect("read");
    assert_eq!(seen.form, MetadataFormat::IndexJson);
    assert!(seen.warnings.iter().any(|it| it.contains(".index.md")), "{:?}", seen.warnings);
}

#[test]
fn a_module_becomes_the_words_of_a_task() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let place =
        module(project.path(), MetadataFormat::IndexJson, fixture("index-json/valid-busy.json").as_bytes());
    put(project.path(), "AiTasks/m/.target.md", &fixture("target/plain.md"));
    let task = read_wanted_task(&read(&place).expect("read")).expect("it is a task");
    assert_eq!(task.spec.title, "Search — schneller");
    assert_eq!(task.spec.source, "module:AiTasks/m");
    assert_eq!(task.spec.flow.as_deref(), Some("lifecycle"));
    assert_eq!(task.spec.criteria, ["a session lasts a week", "logging out ends it everywhere"]);
    assert!(task.spec.body.contains("People log in once") && !task.spec.draft);
    assert!(task.spec.tags.iter().any(|tag| tag.as_str() == "backend"), "{:?}", task.spec.tags);
    assert_eq!((task.entry.as_str(), task.completed_steps), ("executing", 4));
    let far = |module: &str| {
        if module == "store" { Some(ModuleStatus::Executing) } else { Some(ModuleStatus::Review) }
    };
    let open = find_unmet_needs(&task.needs, far);
    assert_eq!(open.iter().map(|(need, _)| need.module.as_str()).collect::<Vec<_>>(), ["login"]);

    let place = module(
        project.path(),
        MetadataFormat::StatusJson,
        br#"{"status": "re-planning", "phase": "needs-check", "tags": ["two words"]}"#,
    );
    let task = read_wanted_task(&read(&place).expect("read")).expect("it is a task");
    assert_eq!((task.spec.title.as_str(), task.entry.as_str()), ("m", "re-planning/needs-check"));
    assert_eq!(task.spec.flow.as_deref(), Some("staged"));
    assert!(task.spec.draft, "without an objective it is not started");
    assert!(task.warnings.iter().any(|it| it.contains("two words")), "{:?}", task.warnings);
}

#[test]
fn the_type_of_a_module_and_its_type_profile_become_tags_that_set_its_checks() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let place = module(
        project.path(),
        MetadataFormat::IndexJson,
        br#"{"status": "draft", "type": "software|ml", "tags": ["a"]}"#,
    );
    let profile =
        "# Profile\n\n## Auto Adaptation\n\n- thresholds: 0.60/0.55/0.65\n- mid_exec_check_interval: 5\n";
    put(project.path(), "AiTasks/m/.type-profile.md", profile);
    let task = read_wanted_task(&read(&place).expect("read")).expect("it is a task");
    let tags: Vec<&str> = task.spec.tags.iter().map(|tag| tag.as_str()).collect();
    let expected = [
        "a",
        "interval:5",
        "threshold:mid-exec:0.550",
        "threshold:post-exec:0.650",
        "threshold:post-plan:0.600",
        "type:ml",
        "type:software",
    ];
    assert_eq!(tags, expected);
}

#[test]
fn every_fixture_in_a_folder_is_a_task_or_says_why_not() {
    for (folder, form) in FORMS {
        for (name, bytes) in fixtures(folder) {
            let project = tempfile::tempdir().expect("a scratch folder");
            let place = module(project.path(), form, &bytes);
            let seen = read(&place).expect("it can be looked at");
            match read_wanted_task(&seen) {
                Ok(_) => assert!(!name.contains("/corrupt-"), "{name}"),
                Err(error) => {
                    assert!(name.contains("/corrupt-"), "{name}: {error}");
                    assert!(error.to_string().contains(form.file_name()), "{error}");
                }
            }
        }
    }
}

fn ask(name: &str) -> ModuleInitRequest {
    ModuleInitRequest {
        name: name.to_owned(),
        title: Some("A <!-- x -->title".to_owned()),
        tags: vec!["a".to_owned()],
        worktree: true,
        sort: ModuleKind::AiTasks,
    }
}

#[test]
fn a_new_module_has_its_files_and_the_root_gets_its_own_once() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let root = project.path();
    put(root, ".gitignore", "target");
    for (name, sort) in
        [("one", ModuleKind::AiTasks), ("two", ModuleKind::AiTasks), ("old", ModuleKind::Task)]
    {
        let ask = ModuleInitRequest { sort, ..ask(name) };
        let writes =
            plan_init(&ask, &read_init_context(root, &ask).expect("looked"), NOW).expect("it can be made");
        assert!(apply(root, &writes).expect("written").refused.is_empty());
    }
    let found = find_modules(root).expect("found");
    assert_eq!(names(&found.modules), ["TASK/old", "AiTasks/one", "AiTasks/two"]);
    let seen = read(&found.modules[1]).expect("read");
    let module = &seen.metadata.as_ref().expect("there").as_ref().expect("valid").module;
    assert_eq!(
        (module.title.as_str(), module.status, module.branch.as_str()),
        ("A title", ModuleStatus::Draft, "task/one")
    );
    assert_eq!(
        (module.worktree.as_str(), module.created.as_str()),
        (".worktrees/task-one", "2026-03-10T12:00:00Z")
    );
    assert!(!seen.read_target().is_substantive(), "the template says nothing");
    let ignore = fs::read_to_string(root.join(".gitignore")).expect("there");
    assert!(ignore.starts_with("target\n\n"), "{ignore}");
    assert_eq!(ignore.matches("AiTasks/**/.auto-signal\n").count(), 1, "{ignore}");
    let listing = fs::read_to_string(root.join("AiTasks/.index.json")).expect("there");
    assert!(listing.contains("\"one\"") && listing.contains("\"two\""), "{listing}");
    assert!(fs::read_to_string(root.join("TASK/.index.md")).expect("there").contains("| old | A title |"));
    assert!(root.join("AiTasks/.type-registry.md").exists());
}

#[test]
fn a_module_is_refused_before_anything_is_written() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let root = project.path();
    for name in ["", "../x", "a b", "a/b", "ü", ".x"] {
        assert!(matches!(read_init_context(root, &ask(name)), Err(InitError::Name(_))), "{name}");
        assert!(
            matches!(plan_init(&ask(name), &ModuleInitContext::default(), NOW), Err(InitError::Name(_))),
            "{name}"
        );
    }
    put(root, "AiTasks/one/x", "x");
    let around = read_init_context(root, &ask("one")).expect("looked");
    assert!(matches!(plan_init(&ask("one"), &around, NOW), Err(InitError::Taken(_))));
    let around =
        ModuleInitContext { branch_exists: true, ..read_init_context(root, &ask("two")).expect("looked") };
    assert!(
        matches!(plan_init(&ask("two"), &around, NOW), Err(InitError::Branch(branch)) if branch == "task/two")
    );
    let around = ModuleInitContext {
        dirty: vec!["src/lib.rs".to_owned()],
        ..read_init_context(root, &ask("two")).expect("looked")
    };
    assert!(matches!(plan_init(&ask("two"), &around, NOW), Err(InitError::Dirty(_))));
    put(root, "AiTasks/.index.json", "[{");
    let around = read_init_context(root, &ask("two")).expect("looked");
    let error = plan_init(&ask("two"), &around, NOW).expect_err("the listing is broken");
    assert!(error.to_string().starts_with("AiTasks/.index.json:1:") && error.hint().is_some(), "{error}");
}

/// The words under which modules are taken up stand in the flows that take them up.
#[test]
fn every_status_that_goes_on_has_an_entry_in_its_flow() {
    use landfall_trackers::modules::{ModulePhase, spec::entry_name};
    let words = |flow: &str| -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../flows/{flow}.toml"));
        let text = fs::read_to_string(path).expect("the flow is there");
        let lines = text
            .lines()
            .skip_while(|line| *line != "[entries]")
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        lines
            .filter_map(|line| line.split_once(" = "))
            .map(|(word, _)| word.trim_matches('"').to_owned())
            .collect()
    };
    for sort in [ModuleKind::Task, ModuleKind::AiTasks, ModuleKind::Notebook] {
        let known = words(sort.flow_name());
        let own = |status: &&ModuleStatus| {
            sort == ModuleKind::Notebook
                || !matches!(status, ModuleStatus::Evolving | ModuleStatus::Satisfied)
        };
        for status in ModuleStatus::ALL
            .iter()
            .filter(own)
            .filter(|it| !matches!(it, ModuleStatus::Blocked | ModuleStatus::Cancelled))
        {
            for phase in [ModulePhase::None, ModulePhase::NeedsPlan, ModulePhase::NeedsCheck] {
                let word = entry_name(*status, &phase);
                assert!(known.contains(&word), "{word} is no entry of {}: {known:?}", sort.flow_name());
            }
        }
    }
}
