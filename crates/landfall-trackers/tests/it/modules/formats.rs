//! Metadata of every version: valid, partial, corrupt.

use std::fmt::Write as _;

use expect_test::expect_file;
use landfall_trackers::modules::{
    CompletedStage, Metadata, ModuleDependency, ModulePhase, ModuleRecord, ModuleStatus, NotebookStages,
};

use super::{FORMS, fixture, fixtures};

fn shown(module: &ModuleRecord) -> String {
    let need = |need: &ModuleDependency| match need.least {
        Some(least) => format!("{}≥{least}", need.module),
        None => need.module.clone(),
    };
    let ModuleRecord {
        title,
        kind,
        status,
        phase,
        completed_steps,
        created,
        updated,
        tags,
        branch,
        worktree,
        revision,
        ..
    } = module;
    let needs: Vec<String> = module.depends_on.iter().map(need).collect();
    let mut out = format!(
        "  {title:?} [{kind}] {status}/{} steps {completed_steps} rev {revision}\n  {created} → {updated}; needs {needs:?}; tags {tags:?}; {branch:?} in {worktree:?}\n",
        phase.wire_name()
    );
    if let Some(stage) = &module.stage {
        writeln!(out, "  stage {stage:?}").expect("into a string");
    }
    if module.extra != Default::default() {
        writeln!(out, "  {:?}", module.extra).expect("into a string");
    }
    out
}

#[test]
fn every_fixture_reads_as_it_should() {
    let mut out = String::new();
    for (folder, form) in FORMS {
        for (name, bytes) in fixtures(folder) {
            let read = match std::str::from_utf8(&bytes) {
                Ok(text) => Metadata::read_named(form, &name, text),
                Err(_) => continue, // folders tell that, see there
            };
            writeln!(out, "{name}").expect("into a string");
            match read {
                Ok(metadata) => {
                    out.push_str(&shown(&metadata.module));
                    for warning in &metadata.warnings {
                        writeln!(out, "  warning: {warning}").expect("into a string");
                    }
                    let partial = !metadata.warnings.is_empty();
                    assert_eq!(name.contains("/partial-"), partial, "{name}");
                    assert!(!name.contains("/corrupt-"), "{name} should not be read");
                }
                Err(unread) => {
                    for error in &unread.errors {
                        writeln!(out, "  error: {error}").expect("into a string");
                        assert!(error.line >= 1 && error.file == name, "{error:?}");
                    }
                    assert!(name.contains("/corrupt-"), "{name} should be read: {unread}");
                }
            }
        }
    }
    expect_file!["../../../fixtures/modules/read.txt"].assert_eq(&out);
}

#[test]
fn a_change_reads_back_and_keeps_everything_else() {
    let mut kept = 0;
    for (folder, form) in FORMS {
        for (name, bytes) in fixtures(folder).into_iter().filter(|(name, _)| !name.contains("/corrupt-")) {
            let text = String::from_utf8(bytes).expect("these are text");
            let metadata = Metadata::read(form, &text).expect("they can be read");
            assert_eq!(metadata.with_module(&metadata.module).text(), text, "{name}: nothing changed");
            let mut other = metadata.module.clone();
            other.status = if other.status == ModuleStatus::Executing {
                ModuleStatus::Blocked
            } else {
                ModuleStatus::Executing
            };
            other.completed_steps = 41;
            other.phase = ModulePhase::Other("a \"word\": # odd".to_owned());
            other.updated = "2026-03-10T12:00:00Z".to_owned();
            other.revision += 1;
            other.stage = Some(NotebookStages {
                current: 2,
                total: None,
                history: vec![CompletedStage {
                    stage: 1,
                    name: "first: \u{1F600}".to_owned(),
                    completed_at: "2026-03-09".to_owned(),
                    commit: "abc".to_owned(),
                    convergence: Some(0.25),
                }],
            });
            let changed = metadata.with_module(&other);
            let read = Metadata::read(form, changed.text())
                .unwrap_or_else(|error| panic!("{name}: {error}\n{}", changed.text()));
            assert_eq!(read.module.status, other.status, "{name}");
            assert_eq!(read.module.phase, other.phase, "{name}");
            assert_eq!(
                read.module.stage.as_ref().map(|it| &it.history),
                other.stage.as_ref().map(|it| &it.history),
                "{name}"
            );
            assert_eq!(
                read.module,
                ModuleRecord { stage: read.module.stage.clone(), ..other.clone() },
                "{name}\n{}",
                changed.text()
            );
            assert_eq!(unknown_fields(changed.text()), unknown_fields(&text), "{name}");
            assert_eq!(lines_below(changed.text()), lines_below(&text), "{name}: the text below is kept");
            kept += unknown_fields(&text).len();
        }
    }
    assert_eq!(kept, 7, "the fixtures have unknown fields");
}

/// The fields of the fixtures that mean nothing to Landfall, in the order of the file if it is a front matter.
fn unknown_fields(text: &str) -> Vec<String> {
    const UNKNOWN: [&str; 6] = ["owner", "estimate", "notes", "ci", "big", "x"];
    match serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')) {
        Ok(value) => {
            let field = |name: &&str| value.get(*name).map(|value| format!("{name}: {value}"));
            UNKNOWN.iter().filter_map(field).collect()
        }
        Err(_) => {
            let is_unknown =
                |line: &&str| line.split_once(':').is_some_and(|(name, _)| UNKNOWN.contains(&name));
            text.lines().filter(is_unknown).map(str::to_owned).collect()
        }
    }
}

/// The lines below the front matter; none for JSON.
fn lines_below(text: &str) -> Vec<&str> {
    text.lines().skip(1).skip_while(|line| *line != "---").skip(1).collect()
}

#[test]
fn only_the_fields_that_changed_are_touched() {
    let text = fixture("index-json/valid-busy.json");
    let metadata = Metadata::read(FORMS[1].1, &text).expect("it can be read");
    let mut module = metadata.module.clone();
    module.status = ModuleStatus::Blocked;
    module.completed_steps = 5;
    let expected = text
        .replace("\"executing\"", "\"blocked\"")
        .replace("\"completed_steps\": 4", "\"completed_steps\": 5");
    assert_eq!(metadata.with_module(&module).text(), expected);
}

#[test]
fn comments_of_a_person_outlive_the_values_beside_them() {
    let text = fixture("index-md/valid-lists-and-comments.md");
    let metadata = Metadata::read(FORMS[0].1, &text).expect("it can be read");
    let mut module = metadata.module.clone();
    module.status = ModuleStatus::Review;
    module.depends_on.clear();
    let new = metadata.with_module(&module);
    for words in [
        "# kept by hand, please do not sort",
        "status: review   # since Monday",
        "# they share the session",
        "owner: Ann",
    ] {
        assert!(new.text().contains(words), "{words:?} is lost:\n{}", new.text());
    }
}

#[test]
fn unknown_keys_inside_a_stage_outlive_the_next_stage() {
    let text = fixture("status-json/valid-stages.json");
    let metadata = Metadata::read(FORMS[2].1, &text).expect("it can be read");
    let mut module = metadata.module.clone();
    let stage = module.stage.as_mut().expect("it has stages");
    stage.current = 3;
    stage.history.push(CompletedStage {
        stage: 2,
        name: "More".to_owned(),
        completed_at: "2026-03-05".to_owned(),
        commit: "456def".to_owned(),
        convergence: Some(0.75),
    });
    let new = metadata.with_module(&module);
    assert!(
        new.text().contains("\"note\": \"by hand\"") && new.text().contains("\"colour\": \"green\""),
        "{}",
        new.text()
    );
    assert_eq!(Metadata::read(FORMS[2].1, new.text()).expect("it can be read").module, module);
}

#[test]
fn a_new_file_has_every_field_of_its_version_and_reads_back() {
    for (_, form) in FORMS {
        let mut module = ModuleRecord::new("A \"new\" one: # with odd words", "2026-03-10T12:00:00Z");
        module.tags =
            vec!["a".to_owned(), "true".to_owned(), "007".to_owned(), "x: y".to_owned(), "- z".to_owned()];
        module.depends_on = vec![
            ModuleDependency { module: "a".to_owned(), least: None },
            ModuleDependency { module: "b".to_owned(), least: Some(ModuleStatus::Review) },
        ];
        let new = Metadata::new(form, &module);
        let read = Metadata::read(form, new.text()).unwrap_or_else(|error| panic!("{error}\n{}", new.text()));
        assert_eq!(read.module, module, "{}", new.text());
        for field in [
            "title",
            "type",
            "status",
            "phase",
            "completed_steps",
            "created",
            "updated",
            "depends_on",
            "tags",
            "branch",
            "worktree",
        ] {
            assert!(new.text().contains(field), "{field} is missing:\n{}", new.text());
        }
    }
}

#[test]
fn a_need_is_met_by_a_status_at_or_past_its_least() {
    use ModuleStatus::{
        Blocked, Cancelled, Complete, Draft, Evolving, Executing, Planning, RePlanning, Review, Satisfied,
    };
    let order = [Draft, Planning, Review, Executing, Complete];
    for (place, least) in order.iter().enumerate() {
        for (at, status) in order.iter().enumerate() {
            let need = ModuleDependency { module: "m".to_owned(), least: Some(*least) };
            assert_eq!(need.is_met_by(*status), at >= place, "{status} for {least}");
        }
        for never in [Blocked, RePlanning, Cancelled] {
            assert!(!never.satisfies(*least), "{never} satisfies {least}");
        }
    }
    let whole = ModuleDependency { module: "m".to_owned(), least: None };
    assert!(whole.is_met_by(Complete) && whole.is_met_by(Satisfied));
    assert!(!whole.is_met_by(Evolving) && !whole.is_met_by(Executing));
}

#[test]
fn kinds_of_a_hybrid_are_two_and_nonsense_is_software() {
    let kinds = |kind: &str| {
        let module = ModuleRecord { kind: kind.to_owned(), ..ModuleRecord::new("t", "") };
        module.kinds().join("+")
    };
    assert_eq!(kinds("a|b:c"), "a+b:c");
    assert_eq!(kinds(""), "software");
    assert_eq!(kinds("../../etc"), "software");
}
