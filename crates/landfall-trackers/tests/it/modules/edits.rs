//! Whatever a person does to a file, not a word of it is lost: it is read and kept, or it lies beside as it was.

use std::fs;

use landfall_trackers::modules::mend::{RepairOrigin, repair_folder_metadata, repaired_metadata};
use landfall_trackers::modules::target::{AgreementState, ModuleTarget, ModuleTargetItem, RequirementDetail};
use landfall_trackers::modules::{Metadata, MetadataFormat, ModuleStatus, read};

use super::{FORMS, NOW, fixture, fixtures, module};

/// Small and repeatable: the seed is in every message.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides.max(1)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const SCRAPS: &[&str] = &[
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    ": ",
    "#",
    " # mine",
    "\n",
    "\r\n",
    "- ",
    "---\n",
    "  ",
    "\t",
    "status",
    "status: draft\n",
    "\"status\": \"review\",",
    "own words",
    "🙂",
    "null",
    "-1",
    "\\",
    "|",
    ">",
    "&a",
    "*a",
    "\u{feff}",
    "<<<<<<< HEAD\n",
    "=======\n",
    "~",
    "@",
];

fn edited(text: &str, dice: &mut Dice) -> String {
    let mut text = text.to_owned();
    for _ in 0..=dice.roll(4) {
        let place = |dice: &mut Dice, text: &str| {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            places[dice.roll(places.len())]
        };
        let (one, other) = (place(dice, &text), place(dice, &text));
        let (from, to) = (one.min(other), one.max(other).min(one.min(other) + 60));
        let to = (from..=to).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(from);
        match dice.roll(5) {
            0 => text.insert_str(from, dice.pick(SCRAPS)),
            1 => text.replace_range(from..to, ""),
            2 => text.replace_range(from..to, dice.pick(SCRAPS)),
            3 => text.truncate(from),
            _ => {
                let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
                let line = lines.get(dice.roll(lines.len())).cloned().unwrap_or_default();
                text.insert_str(from, &line);
            }
        }
    }
    text
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words of `before` that are not in `after`.
fn lost(before: &str, after: &str) -> Vec<String> {
    let mut there = words(after);
    let missing = words(before).into_iter().filter(|word| match there.iter().position(|it| it == word) {
        Some(at) => {
            there.swap_remove(at);
            false
        }
        None => true,
    });
    missing.collect()
}

const SEEDS: u64 = 400;

#[test]
fn no_edit_of_metadata_loses_a_word() {
    let (mut kept, mut beside) = (0, 0);
    for (folder, form) in FORMS {
        for (name, bytes) in fixtures(folder).into_iter().filter(|(name, _)| name.contains("/valid-")) {
            let text = String::from_utf8(bytes).expect("these are text");
            for seed in 0..SEEDS {
                let edited = edited(&text, &mut Dice(seed));
                match Metadata::read(form, &edited) {
                    Ok(metadata) => {
                        check_kept(&format!("{name}, seed {seed}"), form, &edited, &metadata);
                        kept += 1;
                    }
                    Err(_) => {
                        let (mended, _) = repaired_metadata(form, &edited, None, "m", NOW);
                        let read = Metadata::read(form, mended.text());
                        assert!(
                            read.is_ok(),
                            "{name}, seed {seed}: {read:?}\n{edited}\n---\n{}",
                            mended.text()
                        );
                        beside += 1;
                    }
                }
            }
        }
    }
    assert!(kept > 500 && beside > 500, "the edits are too tame or too wild: {kept} kept, {beside} beside");
}

/// Our own change of a file takes away only the values that it changes.
fn check_kept(what: &str, form: MetadataFormat, text: &str, metadata: &Metadata) {
    let mut module = metadata.module.clone();
    let gone = format!("{} {}", module.status, module.completed_steps);
    let before = format!("{} {}", module.updated, module.revision);
    module.status =
        if module.status == ModuleStatus::Blocked { ModuleStatus::Review } else { ModuleStatus::Blocked };
    module.completed_steps += 7;
    module.updated = "2026-03-10T12:00:00Z".to_owned();
    module.revision += 1;
    let new = metadata.with_module(&module);
    let read = Metadata::read(form, new.text());
    assert_eq!(read.as_ref().map(|it| &it.module), Ok(&module), "{what}\n{text}\n---\n{}", new.text());
    // Words that were not understood are kept in a copy of the file before we write over them.
    if !metadata.would_lose(&module) {
        let spellings = "canceled Canceled Re Planning completed done Completed";
        let allowed = words(&format!("{gone} {before} {spellings}"));
        let lost: Vec<String> =
            lost(text, new.text()).into_iter().filter(|word| !allowed.contains(word)).collect();
        assert!(lost.is_empty(), "{what}: {lost:?} lost\n{text}\n---\n{}", new.text());
    }
}

#[test]
fn a_file_that_cannot_be_read_lies_beside_byte_for_byte() {
    for (folder, form) in FORMS {
        let corrupt = fixtures(folder).into_iter().filter(|(name, _)| name.contains("/corrupt-"));
        for (name, bytes) in corrupt {
            let project = tempfile::tempdir().expect("a scratch folder");
            let place = module(project.path(), form, &bytes);
            let seen = read(&place).expect("it can be looked at");
            assert!(!seen.problems().is_empty(), "{name}");
            let mended = repair_folder_metadata(&seen, |_| None, NOW)
                .expect("it can be written")
                .expect("it needs mending");
            let copy = fs::read(place.to_path().join(&mended.copy)).expect("the copy is there");
            assert_eq!(copy, bytes, "{name}");
            assert_eq!(mended.copy, format!("{}.corrupt-2026-03-10", form.file_name()));
            let note = fs::read_to_string(place.to_path().join(&mended.note)).expect("the note is there");
            assert_eq!(mended.note, ".analysis/2026-03-10-index-recovery.md");
            assert!(note.contains(&mended.copy) && note.contains(form.file_name()), "{note}");
            let again = read(&place).expect("it can be looked at");
            assert!(matches!(again.metadata, Some(Ok(_))), "{name}: {:?}", again.metadata);
            assert!(
                repair_folder_metadata(&again, |_| None, NOW).expect("nothing to write").is_none(),
                "{name} is mended once"
            );
        }
    }
}

#[test]
fn a_second_corruption_on_the_same_day_does_not_replace_the_first_copy() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let form = MetadataFormat::IndexJson;
    for (text, copy) in
        [("{one", ".index.json.corrupt-2026-03-10"), ("{two", ".index.json.corrupt-2026-03-10-2")]
    {
        let place = module(project.path(), form, text.as_bytes());
        let mended = repair_folder_metadata(&read(&place).expect("seen"), |_| None, NOW)
            .expect("written")
            .expect("mended");
        assert_eq!(mended.copy, copy);
    }
    let dir = project.path().join("AiTasks/m");
    assert_eq!(fs::read_to_string(dir.join(".index.json.corrupt-2026-03-10")).expect("the first"), "{one");
    assert!(dir.join(".analysis/2026-03-10-index-recovery-2.md").exists());
}

#[test]
fn the_last_commit_is_asked_first_and_only_for_what_is_broken() {
    let project = tempfile::tempdir().expect("a scratch folder");
    let good = br#"{"title": "From the commit", "status": "review", "mine": 1}"#;
    let place = module(project.path(), MetadataFormat::IndexJson, b"{torn");
    let asked = |path: &str| {
        assert_eq!(path, "AiTasks/m/.index.json");
        Some(good.to_vec())
    };
    let mended =
        repair_folder_metadata(&read(&place).expect("seen"), asked, NOW).expect("written").expect("mended");
    assert_eq!(mended.origin, RepairOrigin::Head);
    assert_eq!(fs::read(place.to_path().join(".index.json")).expect("it is there"), good);

    // Only the status is a slip: everything else a person changed since the commit stays.
    let place = module(
        project.path(),
        MetadataFormat::IndexJson,
        br#"{"title": "Newer", "status": "reviw", "mine": 2}"#,
    );
    let mended = repair_folder_metadata(&read(&place).expect("seen"), |_| Some(good.to_vec()), NOW)
        .expect("written")
        .expect("mended");
    assert_eq!(mended.origin, RepairOrigin::Fields(vec!["status (from the last commit)".to_owned()]));
    let text = fs::read_to_string(place.to_path().join(".index.json")).expect("it is there");
    assert_eq!(text, r#"{"title": "Newer", "status": "review", "mine": 2}"#);

    // A commit that is broken itself is no help.
    let place = module(
        project.path(),
        MetadataFormat::IndexJson,
        b"{\"title\": \"Torn\", \"status\": \"executing\", \"tags\": [\"a\"],",
    );
    let mended = repair_folder_metadata(&read(&place).expect("seen"), |_| Some(b"{".to_vec()), NOW)
        .expect("written")
        .expect("mended");
    let RepairOrigin::Rebuilt(kept) = &mended.origin else { panic!("{:?}", mended.origin) };
    assert_eq!(kept, &["title", "status", "tags"]);
    assert_eq!(
        (mended.metadata.module.status, mended.metadata.module.title.as_str()),
        (ModuleStatus::Draft, "Torn")
    );
    assert_eq!(mended.metadata.module.tags, ["a"]);
}

#[test]
fn a_torn_front_matter_keeps_its_fields_and_the_words_around_them() {
    let (mended, _) = repaired_metadata(
        MetadataFormat::IndexMd,
        &fixture("index-md/corrupt-conflict-markers.md"),
        None,
        "m",
        NOW,
    );
    assert_eq!(mended.module.title, "Merged worse");
    assert_eq!(mended.module.status, ModuleStatus::Draft);
    let below = mended.text().splitn(3, "---\n").nth(2).expect("there is a front matter");
    assert!(below.contains(">>>>>>> task/x"), "{}", mended.text());
}

#[test]
fn no_edit_of_a_target_loses_a_word() {
    let base = format!("{}\n{}", fixture("target/notebook.md"), fixture("target/plain.md"));
    for seed in 0..SEEDS * 3 {
        let text = edited(&base, &mut Dice(seed));
        let target = ModuleTarget::read(&text);
        let mut items = target.items.clone();
        items.push(ModuleTargetItem {
            text: "One more".to_owned(),
            detail: RequirementDetail::Pending,
            mark: AgreementState::None,
        });
        let constraints: Vec<String> =
            target.constraints.iter().cloned().chain(["one more".to_owned()]).collect();
        let new = target.with_items(&items).with_constraints(&constraints);
        assert_eq!(lost(&text, new.text()), Vec::<String>::new(), "seed {seed}\n{text}\n---\n{}", new.text());
    }
}
