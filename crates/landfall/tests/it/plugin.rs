//! `landfall project plugin`: put in place, brought up to date, taken away; what a person changed stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

const NAMES: [&str; 9] = ["auto", "check", "exec", "merge", "plan", "report", "status", "target", "verify"];

/// Every file below a folder, with its text.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below it").display().to_string();
                found.insert(name, fs::read_to_string(&path).expect("a text"));
            }
        }
    }
    found
}

fn home(scratch: &ScratchProject) -> PathBuf {
    scratch.root().join("home")
}

#[test]
fn it_is_put_in_place_for_all_agents_and_doing_it_again_changes_nothing() {
    let scratch = ScratchProject::bare(LANDFALL); // no project is needed for one's own home
    let would = scratch.landfall(&["plugin", "install", "--dry-run"]).ok();
    assert!(
        would.contains("would write") && would.contains(".claude/skills/landfall/skills/auto/SKILL.md"),
        "{would}"
    );
    assert_eq!(files(&home(&scratch)), BTreeMap::new(), "a rehearsal writes nothing");

    let said = scratch.landfall(&["plugin", "install"]);
    let there = files(&home(&scratch));
    let mut expected: Vec<String> =
        NAMES.iter().map(|name| format!(".agents/skills/landfall-{name}/SKILL.md")).collect();
    expected.extend(NAMES.iter().map(|name| format!(".claude/skills/landfall/skills/{name}/SKILL.md")));
    expected.push(".claude/skills/landfall/README.md".to_owned());
    expected.push(".claude/skills/landfall/.claude-plugin/plugin.json".to_owned());
    expected.sort();
    assert_eq!(there.keys().cloned().collect::<Vec<_>>(), expected);
    for name in &expected {
        assert!(said.out.contains(name), "it lists what it wrote: {name}\n{}", said.out);
    }
    assert!(said.err.contains("/auto"), "{}", said.err);
    let manifest = &there[".claude/skills/landfall/.claude-plugin/plugin.json"];
    assert_eq!(serde_json::from_str::<serde_json::Value>(manifest).expect("JSON")["name"], "landfall");
    assert!(there[".agents/skills/landfall-plan/SKILL.md"].starts_with("---\nname: landfall-plan\n"));
    assert!(there[".claude/skills/landfall/skills/plan/SKILL.md"].starts_with("---\nname: plan\n"));

    let again = scratch.landfall(&["plugin", "install"]).ok();
    assert!(again.contains("up to date") && !again.contains("written"), "{again}");
    assert_eq!(files(&home(&scratch)), there);
    let status = scratch.landfall(&["--json", "plugin", "status"]).json();
    let states: Vec<&str> =
        status.as_array().expect("a list").iter().filter_map(|it| it["state"].as_str()).collect();
    assert_eq!(states, ["installed", "installed"], "{status}");
}

#[test]
fn what_a_person_changed_stays_and_is_named() {
    let scratch = ScratchProject::bare(LANDFALL);
    scratch.landfall(&["plugin", "install", "--for", "claude"]).ok();
    let plugin = home(&scratch).join(".claude/skills/landfall");
    let (auto, plan) = (plugin.join("skills/auto/SKILL.md"), plugin.join("skills/plan/SKILL.md"));
    let (check, mine) = (plugin.join("skills/check/SKILL.md"), plugin.join("skills/mine/SKILL.md"));
    let own = fs::read_to_string(&auto).expect("ours").replace("hands-off", "hands off");
    fs::write(&auto, &own).expect("a person may");
    fs::remove_file(&plan).expect("a person may");
    fs::write(&check, "---\nname: check\ndescription: mine\n---\n").expect("a person may");
    fs::create_dir(plugin.join("skills/mine")).expect("a person may");
    fs::write(&mine, "mine\n").expect("a person may");

    let status = scratch.landfall(&["plugin", "status"]).ok();
    assert!(status.contains("brings it up to date") && status.contains("skills/auto/SKILL.md"), "{status}");
    let said = scratch.landfall(&["--json", "plugin", "install", "--for", "claude"]).json();
    assert_eq!(said[0]["changes"].as_array().map(Vec::len), Some(1), "{said}");
    assert_eq!(said[0]["changes"][0]["what"], "write", "what was missing is there again: {said}");
    let kept: Vec<&str> =
        said[0]["kept"].as_array().expect("a list").iter().filter_map(|it| it["why"].as_str()).collect();
    assert_eq!(kept, ["it was changed since Landfall wrote it", "Landfall did not write it"], "{said}");
    let text = scratch.landfall(&["plugin", "install", "--for", "claude"]);
    assert!(text.out.contains("kept    ") && text.err.contains("move it away"), "{text:?}");
    assert_eq!(fs::read_to_string(&auto).expect("kept"), own);
    assert!(plan.exists());

    let removed = scratch.landfall(&["plugin", "remove", "--for", "claude"]).ok();
    assert!(removed.contains("kept"), "{removed}");
    let left: Vec<String> = files(&plugin).into_keys().collect();
    assert_eq!(left, ["skills/auto/SKILL.md", "skills/check/SKILL.md", "skills/mine/SKILL.md"]);
    assert!(!plugin.join("skills/plan").exists() && !plugin.join(".claude-plugin").exists());
}

#[test]
fn it_goes_away_without_a_trace_and_leaves_what_others_put_there() {
    let scratch = ScratchProject::bare(LANDFALL);
    let skills = home(&scratch).join(".agents/skills");
    fs::create_dir_all(skills.join("other")).expect("a folder");
    fs::write(skills.join("other/SKILL.md"), "theirs\n").expect("a file");
    fs::create_dir_all(home(&scratch).join(".claude/skills/other")).expect("a folder");
    fs::write(home(&scratch).join(".claude/skills/other/SKILL.md"), "theirs\n").expect("a file");
    let before = files(&home(&scratch));
    scratch.landfall(&["plugin", "install"]).ok();
    let would = scratch.landfall(&["plugin", "remove", "--dry-run"]).ok();
    assert!(would.contains("would remove"), "{would}");
    assert_eq!(files(&home(&scratch)).len(), before.len() + 20);
    scratch.landfall(&["plugin", "remove"]).ok();
    assert_eq!(files(&home(&scratch)), before);
    assert!(
        !home(&scratch).join(".claude/skills/landfall").exists() && !skills.join("landfall-auto").exists()
    );
    let again = scratch.landfall(&["plugin", "remove"]).ok();
    assert!(again.contains("nothing is there"), "{again}");
}

#[test]
fn an_older_version_is_brought_up_to_date_and_what_it_had_too_much_goes() {
    let scratch = ScratchProject::bare(LANDFALL);
    scratch.landfall(&["plugin", "install"]).ok();
    let plugin = home(&scratch).join(".claude/skills/landfall");
    let now = files(&plugin);
    // A file of another version, with its mark: the words differ, and nobody has changed them since.
    let older = older("---\nname: plan\n---\n\nPlan it.\n");
    fs::write(plugin.join("skills/plan/SKILL.md"), &older).expect("ours");
    fs::create_dir(plugin.join("skills/gone")).expect("ours");
    fs::write(plugin.join("skills/gone/SKILL.md"), &older).expect("ours");
    let skills = home(&scratch).join(".agents/skills/landfall-gone");
    fs::create_dir(&skills).expect("ours");
    fs::write(skills.join("SKILL.md"), &older).expect("ours");
    let said = scratch.landfall(&["plugin", "install"]).ok();
    assert!(said.contains("updated") && said.contains("removed"), "{said}");
    assert_eq!(files(&plugin), now);
    assert!(!plugin.join("skills/gone").exists() && !skills.exists());
}

/// The mark is a digest of the words; this one was made by a version before.
fn older(text: &str) -> String {
    let sum = blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    format!("{text}\n<!-- landfall 0.0.9 {sum} -->\n")
}

#[test]
fn a_project_has_its_own_and_a_place_that_cannot_be_written_is_named() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.landfall(&["plugin", "install", "--project", "--for", "skills", "--for", "claude"]).ok();
    assert_eq!(files(&home(&scratch)), BTreeMap::new());
    assert!(scratch.project().join(".claude/skills/landfall/.claude-plugin/plugin.json").exists());
    assert!(scratch.project().join(".agents/skills/landfall-auto/SKILL.md").exists());
    let status = scratch.landfall(&["plugin", "status"]).ok();
    assert_eq!(status.matches("not installed").count(), 2, "{status}");
    assert_eq!(status.matches("installed (").count(), 2, "{status}");

    let elsewhere = ScratchProject::bare(LANDFALL);
    let said = elsewhere.landfall(&["plugin", "install", "--project"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    fs::create_dir_all(home(&elsewhere).join(".claude")).expect("a folder");
    fs::write(home(&elsewhere).join(".claude/skills"), "a file\n").expect("a file");
    let said = elsewhere.landfall(&["plugin", "install", "--for", "claude"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.err.contains(".claude/skills") && said.err.contains("hint: "), "{said:?}");
    let both = elsewhere.landfall(&["plugin", "install", "--project", "--user"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn claude_is_found_where_its_own_variable_says() {
    let mut scratch = ScratchProject::bare(LANDFALL);
    let own = scratch.root().join("own");
    scratch.set("CLAUDE_CONFIG_DIR", own.to_str().expect("text"));
    scratch.landfall(&["plugin", "install", "--for", "claude"]).ok();
    assert!(own.join("skills/landfall/skills/auto/SKILL.md").exists());
    assert_eq!(files(&home(&scratch)), BTreeMap::new());
}
