//! Targets, baselines, refinements, summaries, hooks, signals, annotations, listings.

use landfall_trackers::modules::annotation::{AnnotationRequest, read_annotations};
use landfall_trackers::modules::baseline::Baseline;
use landfall_trackers::modules::entry::{EntryName, latest_entry};
use landfall_trackers::modules::hooks::ModuleHooks;
use landfall_trackers::modules::listing::{Listing, ListingEntry};
use landfall_trackers::modules::record::{ModuleRecord, ModuleStatus, NotebookStages};
use landfall_trackers::modules::refinement::Refinements;
use landfall_trackers::modules::signal::{LoopSignal, StopOrder};
use landfall_trackers::modules::summary::{LINES_MAX, SummaryHeader, SummarySections, write};
use landfall_trackers::modules::target::{
    AgreementState, ModuleRequirement, ModuleTarget, ModuleTargetItem, ModuleWeight, RequirementDetail,
    StageMark,
};
use landfall_trackers::modules::text::{plain_line, strip_markup};

use super::{fixture, fixtures};

#[test]
fn a_template_says_nothing_and_a_sentence_does() {
    assert!(!ModuleTarget::read(&fixture("target/template.md")).is_substantive());
    assert!(!ModuleTarget::read("").is_substantive());
    assert!(
        !ModuleTarget::read("# T\n\n<!-- a long\ncomment -->\n\n- \n- TODO\n<what you want>\n")
            .is_substantive()
    );
    assert!(ModuleTarget::read(&fixture("target/plain.md")).is_substantive());
    assert!(ModuleTarget::read("make it fast").is_substantive());
    assert!(
        ModuleTarget::read("## Requirements\n\n| # | R |\n|---|---|\n| R1 | it works |\n").is_substantive()
    );
}

#[test]
fn a_plain_target_is_read() {
    let target = ModuleTarget::read(&fixture("target/plain.md"));
    assert_eq!(target.objective, "People log in once and stay logged in.");
    assert_eq!(target.plain_requirements, ["a session lasts a week", "logging out ends it everywhere"]);
    assert_eq!(target.constraints, ["no new dependency"]);
}

#[test]
fn a_notebook_target_is_read_with_its_marks() {
    let target = ModuleTarget::read(&fixture("target/notebook.md"));
    let items: Vec<(&str, RequirementDetail, AgreementState)> =
        target.items.iter().map(|it| (it.text.as_str(), it.detail, it.mark)).collect();
    assert_eq!(
        items,
        [
            ("Read files", RequirementDetail::Requirements(2), AgreementState::Processed),
            ("Write files", RequirementDetail::Requirements(1), AgreementState::Confirmed),
            ("Watch files", RequirementDetail::Pending, AgreementState::None),
            ("Delete files", RequirementDetail::None, AgreementState::None),
        ]
    );
    let numbers: Vec<(u32, &str, ModuleWeight)> =
        target.requirements.iter().map(|it| (it.r, it.item.as_str(), it.weight)).collect();
    assert_eq!(
        numbers,
        [
            (1, "Read files", ModuleWeight::Critical),
            (2, "Read files", ModuleWeight::Important),
            (3, "Write files", ModuleWeight::Critical)
        ]
    );
    assert_eq!(target.requirements[0].criteria, "a test with ümlauts | pipes");
    assert_eq!(target.warnings.len(), 2, "{:?}", target.warnings);
    assert!(target.warnings[1].1.contains("known: critical (3), important (2), optional (1)"));
    let stages: Vec<(u32, &str, StageMark)> =
        target.stages.iter().map(|it| (it.number, it.name.as_str(), it.mark)).collect();
    assert_eq!(stages, [(1, "Reading", StageMark::Complete), (2, "Writing", StageMark::Active)]);
    assert_eq!(target.refinements, ["[2026-03-04] keep file modes"]);
}

#[test]
fn edits_of_a_target_touch_only_their_lines() {
    let text = fixture("target/notebook.md");
    let target = ModuleTarget::read(&text);
    assert_eq!(target.with_items(&target.items).text(), text, "nothing changed");

    let mut items = target.items.clone();
    items[2].detail = RequirementDetail::Requirements(1);
    items[2].mark = AgreementState::Confirmed;
    let mut requirements = target.requirements.clone();
    requirements[1].weight = ModuleWeight::Optional;
    requirements.push(ModuleRequirement {
        r: 6,
        text: "Tells | changes".to_owned(),
        criteria: "within a second".to_owned(),
        weight: ModuleWeight::Important,
        item: "Watch files".to_owned(),
    });
    let edited = target
        .with_items(&items)
        .with_requirements(&requirements)
        .with_constraints(&["No network".to_owned(), "No threads".to_owned()]);
    assert_eq!(edited.items, items);
    assert_eq!(edited.requirements, requirements);
    assert_eq!(edited.constraints, ["No network", "No threads"]);
    assert_eq!(edited.stages, target.stages, "what is not edited stays");
    assert_eq!(edited.refinements, target.refinements);
    for kept in text.lines().filter(|line| !line.trim().is_empty()) {
        let replaced = ["- Watch files", "| R2", "## Stage 2"].iter().any(|start| kept.starts_with(start));
        assert!(
            replaced || edited.text().lines().any(|line| line == kept),
            "lost: {kept}\n{}",
            edited.text()
        );
    }
    assert_eq!(ModuleTarget::read(edited.text()), edited);
}

#[test]
fn a_new_target_reads_back() {
    let items = [
        ModuleTargetItem {
            text: "Read".to_owned(),
            detail: RequirementDetail::Requirements(1),
            mark: AgreementState::None,
        },
        ModuleTargetItem {
            text: "Write".to_owned(),
            detail: RequirementDetail::Pending,
            mark: AgreementState::None,
        },
    ];
    let requirement = |r, item: &str| ModuleRequirement {
        r,
        text: format!("requirement {r}"),
        criteria: "seen".to_owned(),
        weight: ModuleWeight::Critical,
        item: item.to_owned(),
    };
    let requirements = [requirement(1, "Read"), requirement(2, "Read"), requirement(3, "Write")];
    let target = ModuleTarget::new("A title", &items, &requirements, &["small".to_owned()]);
    let read = ModuleTarget::read(target.text());
    assert_eq!(
        (&read.items[..], &read.requirements[..], &read.constraints[..]),
        (&items[..], &requirements[..], &["small".to_owned()][..]),
        "{}",
        target.text()
    );
    let fewer = read.with_requirements(&requirements[..1]);
    assert_eq!(fewer.requirements, requirements[..1], "{}", fewer.text());
}

#[test]
fn headings_in_code_are_no_headings() {
    let target = ModuleTarget::read("## Objective\n\n```\n## Requirements\n- no\n```\n- yes\n");
    assert_eq!(target.plain_requirements, Vec::<String>::new());
    assert!(target.items.iter().any(|it| it.text == "yes"));
}

#[test]
fn baselines_are_read_and_refused_with_their_line() {
    for (name, bytes) in fixtures("baseline") {
        let text = String::from_utf8(bytes).expect("these are text");
        match Baseline::read(&name, &text) {
            Ok(baseline) => {
                assert!(name.contains("/valid"), "{name}");
                assert_eq!(baseline.rows.len(), 3);
                assert_eq!(baseline.rows[2].text, "Writes | atomically");
                assert_eq!(
                    (baseline.generated_from.as_str(), baseline.updated.as_str()),
                    (".target.md", "2026-03-02")
                );
                assert_eq!(
                    Baseline::read(&name, &baseline.to_text()).expect("what we write can be read"),
                    baseline
                );
            }
            Err(error) => {
                assert!(name.contains("/corrupt"), "{error}");
                assert!(error.to_string().starts_with(&name), "{error}");
            }
        }
    }
    let weight = Baseline::read("b.md", &fixture("baseline/corrupt-weight.md")).expect_err("`heavy` is none");
    assert_eq!(weight.line, 5);
    assert!(weight.to_string().contains("known: critical"), "{weight}");
    let many: String = (1..=31).map(|r| format!("| R{r} | a | critical | b |\n")).collect();
    assert!(Baseline::read("b.md", &many).expect_err("too many").to_string().contains("at most 30"));
}

#[test]
fn refinements_are_added_without_touching_others() {
    let text =
        "# Pending Refinements\n\nA note of mine.\n- [2026-03-01 10:00] first\n- second, without a date\n";
    let all = Refinements::read(text).with_entry("2026-03-10 12:00", "third\x1b[31m!");
    assert_eq!(
        all.pending.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
        ["first", "second, without a date", "third!"]
    );
    assert_eq!(all.pending[0].at, "2026-03-01 10:00");
    assert!(all.text().starts_with(text), "what was there stays as it is");
    assert_eq!(Refinements::read("").with_entry("2026-03-10 12:00", "x").pending.len(), 1);
}

#[test]
fn a_summary_begins_with_what_recovery_needs_and_stays_short() {
    let mut module = ModuleRecord::new("Search", "2026-03-01");
    module.status = ModuleStatus::Executing;
    module.completed_steps = 3;
    module.branch = "task/search".to_owned();
    module.stage = Some(NotebookStages { current: 2, ..NotebookStages::default() });
    let header = SummaryHeader::for_module(&module, "verify", Some(7));
    let layers = SummarySections {
        plan: "line\n".repeat(500),
        decisions: vec!["use a trie".to_owned()],
        ..SummarySections::default()
    };
    let text = write("Search", &header, &layers);
    assert_eq!(SummaryHeader::read(&text), Some(header.clone()));
    assert_eq!(header.progress, "step 3 of 7, stage 2");
    assert!(text.lines().count() <= LINES_MAX, "{}", text.lines().count());
    let old = SummaryHeader::read(
        "**Status**: review | **Phase**: needs-check | **Progress**: 2/5\n\n## Plan Overview\n",
    );
    assert_eq!(
        old.map(|it| (it.status, it.phase, it.progress)),
        Some(("review".into(), "needs-check".into(), "2/5".into()))
    );
    assert_eq!(SummaryHeader::read("# Nothing here\n"), None);
}

#[test]
fn hooks_are_read_by_status() {
    let hooks = ModuleHooks::read(
        ".hooks.md",
        "# Hooks\n\n## on_complete\n```sh\n# tell\nnotify \"$TITLE\"\n```\n\n## on_blocked\n`page me`\n\n## on_fire\nrun\n",
    );
    let commands: Vec<_> =
        hooks.commands.iter().map(|(status, text)| (status.as_str(), text.as_str())).collect();
    assert_eq!(commands, [("blocked", "page me"), ("complete", "# tell\nnotify \"$TITLE\"")]);
    assert_eq!(hooks.warnings.len(), 1);
    assert!(
        hooks.warnings[0].to_string().contains(".hooks.md:12: `fire` is not a status; known: draft"),
        "{}",
        hooks.warnings[0]
    );
}

#[test]
fn the_latest_entry_is_the_last_by_name() {
    let files =
        ["2026-03-01-post-plan-pass.md", ".summary.md", "2026-03-02-a.md", "2026-03-02-b.md", "zebra.md"];
    assert_eq!(latest_entry(files), Some("2026-03-02-b.md"));
    assert_eq!(latest_entry([".summary.md"]), None);
    let name = EntryName::new("2026-03-10", "Post-Exec: needs/fix ../");
    assert_eq!(name.file_name(), "2026-03-10-post-exec-needs-fix.md");
    assert_eq!(EntryName::read(&name.file_name()), Some(name));
    assert_eq!(EntryName::new("2026-03-10", "../").file_name(), "2026-03-10-entry.md");
}

#[test]
fn signals_of_every_version_are_accepted_and_others_refused_with_what_is_known() {
    for (name, bytes) in fixtures("signal") {
        let text = String::from_utf8(bytes).expect("these are text");
        match LoopSignal::read(&text) {
            Ok(signal) => {
                assert!(name.contains("/valid"), "{name} should be refused");
                assert_eq!(LoopSignal::read(&signal.to_text()).expect("what we write can be read"), signal);
            }
            Err(error) => assert!(name.contains("/corrupt"), "{name}: {error}"),
        }
    }
    let error = LoopSignal::read(&fixture("signal/corrupt-step.json")).expect_err("`deploy` is none");
    assert!(error.to_string().contains("step is `deploy`; known: plan, check"), "{error}");
    let half = LoopSignal::read(&fixture("signal/corrupt-half.json")).expect_err("it is half");
    assert!(half.hint.as_deref().is_some_and(|hint| hint.contains("look again")));
    assert_eq!(
        LoopSignal::read(&fixture("signal/valid-step.json")).expect("valid").compaction_count(),
        Some(2)
    );
    let stop = StopOrder { reason: "user_stop".to_owned(), timestamp: "2026-03-10T12:00:00Z".to_owned() };
    assert_eq!(stop.to_text(), "{\"reason\":\"user_stop\",\"timestamp\":\"2026-03-10T12:00:00Z\"}\n");
}

#[test]
fn annotations_are_read_as_lists_of_texts_and_as_objects() {
    let old = read_annotations(&fixture("annotations/old.json")).expect("valid");
    assert_eq!(old.len(), 4);
    assert_eq!(old[0].remark, AnnotationRequest::Insert("and a test\nfor it".to_owned()));
    assert!(matches!(old[1].remark, AnnotationRequest::Delete(_)));
    assert_eq!(old[2].remark, AnnotationRequest::Replace { old: "old".to_owned(), new: "new".to_owned() });
    assert_eq!((old[3].before.as_str(), old[3].after.as_str()), ("Line9:...a", "b..."));
    assert_eq!(
        read_annotations(r#"[{"file":"plan.md","type":"comment","selected":"fast","comment":"how fast?"}]"#)
            .expect("valid")[0]
            .describe(),
        "plan.md: comment on `fast`: how fast?"
    );
    let error = read_annotations(r#"{"shout": [["a", "b", "c"]]}"#).expect_err("`shout` is none");
    assert!(
        error
            .to_string()
            .ends_with("`shout` is no kind of annotation; known: insert, delete, replace, comment"),
        "{error}"
    );
    assert!(
        read_annotations(&fixture("annotations/corrupt-parts.json"))
            .expect_err("parts are missing")
            .hint
            .is_some()
    );
}

#[test]
fn listings_grow_at_their_end_and_keep_the_rest() {
    let new = ListingEntry { module: "b".to_owned(), title: "Second | one".to_owned() };
    let json = "[\n  {\"module\": \"a\", \"title\": \"First ] one\", \"mine\": 1}\n]\n";
    let grown = Listing::read_json("i", json).expect("valid").with_module(&new);
    assert!(grown.text().contains("\"mine\": 1}"), "{}", grown.text());
    assert_eq!(Listing::read_json("i", grown.text()).expect("valid").modules, grown.modules);
    assert_eq!(grown.with_module(&new), grown, "once is enough");
    let empty = Listing::read_json("i", "").expect("valid").with_module(&new);
    assert_eq!(Listing::read_json("i", empty.text()).expect("valid").modules, std::slice::from_ref(&new));
    let below = Listing::read_json("i", r#"{"modules":["a"],"v":[1]}"#).expect("valid").with_module(&new);
    assert_eq!(Listing::read_json("i", below.text()).expect("valid").modules.len(), 2);
    assert!(Listing::read_json("i", "[{}]").is_err() && Listing::read_json("i", "[").is_err());

    let md = "# Tasks\n\nWords.\n\n| Module | Title | Status |\n|---|---|---|\n| a | First | draft |\n\nMore words.\n";
    let grown = Listing::read_md(md).with_module(&new);
    let read = Listing::read_md(grown.text());
    assert_eq!(read.modules.len(), 2, "{}", grown.text());
    assert_eq!(read.modules[1], new);
    assert!(grown.text().contains("More words."));
    let list = Listing::read_md("# Tasks\n\n- [Login](./login/)\n- `search`: Faster\n");
    assert_eq!(list.modules.iter().map(|it| it.module.as_str()).collect::<Vec<_>>(), ["login", "search"]);
}

#[test]
fn words_from_outside_lose_what_is_hidden_in_them() {
    assert_eq!(plain_line("a <!-- rm\n -rf --> b\x1b[31mred\x1b[0m\x07 c\n\td"), "a bred c d");
    assert_eq!(strip_markup("x\x1b]0;title\x07y <!-- open"), "xy ");
}
